"""What was found, for people: findings as numbers, plots, reports and the tour."""
