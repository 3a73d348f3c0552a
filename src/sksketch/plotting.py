"""Pictures of what a sketch found. The only module that draws, and only when asked to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sksketch._typing import FloatArray, PathLike

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_spectrum(
    eigenvalues: FloatArray,
    bounds: FloatArray,
    *,
    true_eigenvalues: FloatArray | None = None,
    quantity: str = "eigenvalue",
    title: str = "",
    path: PathLike | None = None,
) -> Figure:
    """Draw estimated eigenvalues inside their certified intervals.

    Parameters
    ----------
    eigenvalues : array of shape (k,)
        The estimates, largest first.
    bounds : array of shape (k, 2)
        Certified lower and upper ends, as in ``certificate().eigenvalues``.
    true_eigenvalues : array of shape (k,), optional
        Exact values to set beside them, where they are known.
    quantity : str
        Label of the vertical axis.
    title : str
        Text above the picture.
    path : path, optional
        Where to write the picture; the suffix decides the format.

    Returns
    -------
    matplotlib.figure.Figure
        The picture. It belongs to no window system, so it works on any machine.

    Examples
    --------
    >>> figure = plot_spectrum(np.array([4.0, 1.0]), np.array([[3.5, 4.5], [0.5, 1.5]]))
    >>> figure.axes[0].get_ylabel()
    'eigenvalue'
    """
    figure = _new_figure()
    axes = figure.add_subplot()
    number = np.arange(1, len(eigenvalues) + 1)
    low, high = np.asarray(bounds, dtype=float).T
    axes.bar(number, high - low, bottom=low, width=0.3, color="#9ecae1", label="certified interval")
    axes.plot(number, eigenvalues, "_", color="#08519c", ms=16, mew=2.5, label="estimate")
    if true_eigenvalues is not None:
        axes.plot(number, true_eigenvalues, "o", mfc="none", color="#d94801", ms=7, label="true")
    axes.set_xlabel("component")
    axes.set_ylabel(quantity)
    axes.set_xticks(number)
    # A logarithmic axis shows the intervals of the small eigenvalues too.
    floor = min(float(np.min(eigenvalues)), *np.where(low > 0, low, high))
    if floor > 0:
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.7 * floor)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, loc="left", fontsize=10)
    axes.legend(frameon=False)
    if path is not None:
        figure.savefig(path)
    return figure


def _new_figure() -> Figure:
    """Return an empty figure, without a window system behind it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        message = "pictures need matplotlib: pip install 'scikit-sketch[plot]'"
        raise ImportError(message, name="matplotlib") from error
    return Figure(figsize=(8, 4.5), dpi=120, layout="constrained")
