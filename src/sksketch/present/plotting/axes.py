"""Matplotlib axes in the style of the project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ESTIMATE, INTERVAL, OTHER = "#0b6180", "#a9cfdd", "#c2571a"


def new_axes() -> Axes:
    """Return axes of a figure without a window system behind it, for files."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise _missing() from error
    return Figure(figsize=(8, 4.5), dpi=120, layout="constrained").add_subplot()


def drawn_on(ax: Axes | None) -> Axes:
    """Return the axes given, or new ones that ``pyplot.show`` knows; without needless lines."""
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise _missing() from error
        _, ax = pyplot.subplots(layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def number_components(ax: Axes, n: int) -> None:
    """Label the horizontal axis with whole numbers from 1 on."""
    ax.set_xlabel("component")
    if n <= 15:
        ax.set_xticks(range(1, n + 1))


def figure_of(ax: Axes) -> Any:
    """Return the whole picture that the axes are in."""
    return ax.get_figure(root=True)


def _missing() -> ImportError:
    message = "pictures need matplotlib: pip install 'scikit-sketch[plot]'"
    return ImportError(message, name="matplotlib")
