"""Places in the arrays that the learners share with their compiled loops."""

SQUARED, LOGISTIC, HINGE, ABSOLUTE, HUBER, SOFTMAX = range(6)

# Units of a column: what it is divided by, its own scale, which the ridge is about, the
# curvature of it that shrinks have taken (in its own units), and the center. Where columns are
# centered also an origin, and the sums of the values and of their squares around it.
SCALE, BASE_SCALE, LOST, CENTER, ORIGIN, SUM, SQUARES = range(7)
N_UNITS, N_CENTERED_UNITS = 4, 8

# Rows learned from; rows of the buffer in use, version and cached features as in
# `online.kernels.layout`, whose loops read them there; rows counted for the centers.
T, USED, KEPT, NOW, CACHED, COUNTED = range(6)
N_COUNTERS = 6

# Ridge now and at the start, what shrinks took, the loss, sums of weights and of absolute
# residuals, what bounds the regret: y^2 q/(1 + q) less z^2 q/(1 + q)^2, |w|^2, and the cuts times
# the powers 0, 1 and 2 of |w|.
ALPHA, RIDGE, SHRINKAGE, LOSS, WEIGHT, RESIDUAL, STEPS, NORM2, DRIFT = range(9)
N_SUMS = DRIFT + 3
# A value this many scales from the center gives its column a larger scale.
REACH = 4.0
# It grows by no more than this at a time, after the first rows of all: an outlier is no new unit.
MOST_RISE, FIRST_ROWS = 2.0, 32
