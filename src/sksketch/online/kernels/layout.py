"""Places in the arrays that the online learners share with their compiled loops."""

SQUARED, LOGISTIC, HINGE, ABSOLUTE, HUBER = range(5)

# Rows of the buffer above which a shrink is left to LAPACK, which is faster from there on.
OWN_EIGEN_ROWS = 100

# Versions in a block of the table of maps, and blocks in a block of blocks, and so on.
BASE = 16

# Counters: rows learned from, rows of the buffer in use and those of them that a shrink has made
# orthogonal, the version, features in the cache; whether factors have to be multiplied out.
T, USED, KEPT, NOW, CACHED, WORN = range(6)
N_COUNTERS = 6

# Sums: the ridge now and at the start, what shrinks took, the bound of predictions, the loss,
# then what bounds the regret: g'H^-1 g, the rounds' slack, |w|^2, and the cuts times the powers
# 0, 1 and 2 of |w|. Last the largest |x| per unit of the limit, first of rounds that moved w to
# the limit, which is the one before the row, then of rounds that learned under the one after it;
# and the sizes of all that was added to |w|^2, whose rounding is relative to them.
ALPHA, RIDGE, SHRINKAGE, LIMIT, LOSS, STEPS, SLACK, NORM2, DRIFT = range(9)
REACH = DRIFT + 3
SPAN = REACH + 2
N_SUMS = SPAN + 1
