"""Pictures of a spectrum: eigenvalues, and the share of the whole that they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from sksketch.present.findings import Findings
from sksketch.present.plotting.axes import (
    ESTIMATE,
    INTERVAL,
    OTHER,
    drawn_on,
    figure_of,
    number_components,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class SpectrumDisplay:
    """Eigenvalues inside their certified intervals.

    Parameters
    ----------
    eigenvalues : array-like of shape (n_components,)
        Estimates, largest first.
    intervals : array-like of shape (n_components, 2), default=None
        Certified lower and upper ends; None where nothing is certified.
    true_eigenvalues : array-like of shape (n_components,), default=None
        Exact values to set beside them, where they are known.
    quantity : str, default="eigenvalue"
        Label of the vertical axis.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes that it was drawn on.
    figure_ : matplotlib.figure.Figure
        Figure of these axes.

    See Also
    --------
    ExplainedVarianceDisplay : Shares of the variance.
    LoadingsDisplay : Columns of a component.

    Examples
    --------
    >>> from sksketch import StreamingPCA
    >>> pca = StreamingPCA(2).fit(np.diag([4.0, 3.0, 2.0, 1.0]))
    >>> display = SpectrumDisplay.from_estimator(pca)
    >>> display.ax_.get_ylabel(), display.eigenvalues.round(1)
    ('variance', array([4.5, 2.2]))
    """

    ax_: Axes
    figure_: Any

    def __init__(
        self,
        eigenvalues: npt.ArrayLike,
        intervals: npt.ArrayLike | None = None,
        *,
        true_eigenvalues: npt.ArrayLike | None = None,
        quantity: str = "eigenvalue",
    ) -> None:
        self.eigenvalues = np.asarray(eigenvalues, dtype=np.float64)
        self.intervals = None if intervals is None else np.asarray(intervals, dtype=np.float64)
        self.true_eigenvalues = true_eigenvalues
        self.quantity = quantity

    @classmethod
    def from_estimator(
        cls, estimator: object, *, n_components: int | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw the spectrum of a fitted estimator or of a sketch.

        Parameters
        ----------
        estimator : estimator or Sketch
            `StreamingPCA` and `StreamingSVD` show variances per row, all others eigenvalues
            of A'A.
        n_components : int, default=None
            Number of components to draw; by default all.
        ax : matplotlib axes, default=None
            Axes to draw on; by default new ones.

        Returns
        -------
        SpectrumDisplay
            The display, drawn.
        """
        found = Findings(estimator)
        shown = slice(n_components)
        intervals = found.spectrum.intervals
        return cls(
            found.spectrum.values[shown],
            None if intervals is None else intervals[shown],
            quantity=found.quantity,
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw, on the axes given or on new ones.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Axes to draw on; by default new ones.

        Returns
        -------
        self
            The display, with ``ax_`` and ``figure_``.
        """
        ax = drawn_on(ax)
        number = np.arange(1, len(self.eigenvalues) + 1)
        positive = self.eigenvalues[self.eigenvalues > 0]
        if self.intervals is not None:
            low, high = self.intervals.T
            ax.bar(number, high - low, bottom=low, width=0.4, color=INTERVAL, label="certified")
            positive = np.concatenate([positive, np.where(low > 0, low, high)])
        ax.plot(number, self.eigenvalues, "_", color=ESTIMATE, ms=14, mew=2.5, label="estimate")
        if self.true_eigenvalues is not None:
            ax.plot(number, self.true_eigenvalues, "o", mfc="none", color=OTHER, ms=7, label="true")
        number_components(ax, len(number))
        ax.set_ylabel(self.quantity)
        # A logarithmic axis shows the intervals of the small eigenvalues too.
        if (floor := float(positive.min(initial=np.inf))) > 0 and np.isfinite(floor):
            ax.set_yscale("log")
            ax.set_ylim(bottom=0.7 * floor)
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


class ExplainedVarianceDisplay:
    """Share of the variance along each component, and of the first ones together.

    Parameters
    ----------
    shares : array-like of shape (n_components,)
        Fraction of the total variance along each component.
    intervals : array-like of shape (n_components, 2), default=None
        Certified interval of each share; None where nothing is certified.
    cumulative_intervals : array-like of shape (n_components, 2), default=None
        Certified intervals of the sums of the first shares.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes that it was drawn on.
    figure_ : matplotlib.figure.Figure
        Figure of these axes.

    See Also
    --------
    SpectrumDisplay : Eigenvalues inside their intervals.
    StreamingPCA : The model that is drawn.

    Examples
    --------
    >>> from sksketch import StreamingSVD
    >>> svd = StreamingSVD(2).fit(np.diag([3.0, 1.0, 1.0]))
    >>> display = ExplainedVarianceDisplay.from_estimator(svd)
    >>> display.shares.round(2)
    array([0.82, 0.09])
    """

    ax_: Axes
    figure_: Any

    def __init__(
        self,
        shares: npt.ArrayLike,
        intervals: npt.ArrayLike | None = None,
        cumulative_intervals: npt.ArrayLike | None = None,
    ) -> None:
        self.shares = np.asarray(shares, dtype=np.float64)
        self.intervals = intervals
        self.cumulative_intervals = cumulative_intervals

    @classmethod
    def from_estimator(
        cls, estimator: object, *, n_components: int | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw what the components of a fitted estimator or sketch explain.

        Parameters
        ----------
        estimator : estimator or Sketch
            Any that has seen rows.
        n_components : int, default=None
            Number of components to draw; by default all.
        ax : matplotlib axes, default=None
            Axes to draw on; by default new ones.

        Returns
        -------
        ExplainedVarianceDisplay
            The display, drawn.
        """
        found = Findings(estimator)
        shown = slice(n_components)
        each, together = found.shares.intervals, found.captured.intervals
        return cls(
            found.shares.values[shown],
            None if each is None else each[shown],
            None if together is None else together[shown],
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw, on the axes given or on new ones.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Axes to draw on; by default new ones.

        Returns
        -------
        self
            The display, with ``ax_`` and ``figure_``.
        """
        ax = drawn_on(ax)
        number = np.arange(1, len(self.shares) + 1)
        ax.bar(number, self.shares, width=0.6, color=INTERVAL, label="share")
        if self.intervals is not None:
            low, high = np.asarray(self.intervals).T
            ax.vlines(number, low, high, color=ESTIMATE, lw=2)
        ax.plot(number, np.cumsum(self.shares), "o-", color=ESTIMATE, ms=4, label="together")
        if self.cumulative_intervals is not None:
            low, high = np.asarray(self.cumulative_intervals).T
            ax.fill_between(number, low, high, color=ESTIMATE, alpha=0.2, lw=0, label="certified")
        number_components(ax, len(number))
        ax.set_ylabel("share of the total")
        ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        ax.set_ylim(0, 1.03)
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self
