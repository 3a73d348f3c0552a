"""Standard errors, tests and intervals of ridge regression and least squares."""
