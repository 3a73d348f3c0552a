"""Keys that parameters and options take, for whoever lists them without what is behind them."""

from __future__ import annotations

from typing import Any

# Sketches, in the order in which help and errors list them.
SKETCHES = (
    *("fd", "rfd", "cfd", "pfd", "isvd", "sfd", "2lfd", "exact"),
    *("gaussian", "sign", "countsketch", "srht", "sample"),
)

# Online learners and their losses.
ONLINE_METHODS = ("rfd", "fd", "pfd", "rp", "oja", "full", "adagrad", "ogd")
ONLINE_CLASSIFICATION = ("squared", "logistic", "hinge")
ONLINE_REGRESSION = ("squared", "absolute", "huber")

# Ways to learn on few coordinates, and the losses of their dual problems.
REDUCED_METHODS = ("nor", "nordr", "rp", "rpdr", "dsrr")
DUAL_CLASSIFICATION = ("hinge", "squared_hinge", "logistic", "softmax", "squared")
DUAL_REGRESSION = ("squared", "absolute")

# Kernels with their parameters and defaults. All see the rows divided by the bandwidth.
KERNELS: dict[str, dict[str, Any]] = {
    "gaussian": {},
    "laplacian": {},
    "cauchy": {},
    "matern": {"nu": 1.5},
    "linear": {},
    "dot-product": {"coefficients": None, "radius": None},
    "polynomial": {"degree": 3, "coef0": 1.0},
    "exponential-semigroup": {"beta": 1.0},
    "reciprocal-semigroup": {"rate": 1.0},
    "arc-cosine": {"order": 1},
}
