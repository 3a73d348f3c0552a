"""Learners whose curvature is that of the loss: units do not matter, and there is nothing to tune.

`reference` has the algorithm in plain numpy.
"""
