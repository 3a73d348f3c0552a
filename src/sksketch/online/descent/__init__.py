"""Further passes: from the weights of one online pass to the optimum of the regularized loss."""

from sksketch.online.descent.descent import Descent, DescentResult, descend
from sksketch.online.descent.pass_sums import PassSums
from sksketch.online.descent.row_sample import RowSample
from sksketch.online.descent.smooth_losses import SmoothLoss

__all__ = ["Descent", "DescentResult", "PassSums", "RowSample", "SmoothLoss", "descend"]
