"""Shi and Phillips (2021): ridge regression from Frequent Directions."""
