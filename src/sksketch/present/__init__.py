"""Results for people: findings as numbers, plots, reports and the tour."""
