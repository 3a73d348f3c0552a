"""Pictures of columns: what a component is made of, and coefficients against the penalty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from sksketch.present.findings import Findings, largest_columns
from sksketch.present.plotting.axes import ESTIMATE, OTHER, drawn_on, figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class LoadingsDisplay:
    """The columns that a component is made of, largest first.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    loadings : array-like of shape (n_columns,)
        Entries of the columns in the component.
    component : int, default=1
        Number of the component, from 1 on, for the label.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes that it was drawn on.
    figure_ : matplotlib.figure.Figure
        Figure of these axes.

    See Also
    --------
    SpectrumDisplay : Eigenvalues inside their intervals.
    RidgePathDisplay : Coefficients against the penalty.

    Examples
    --------
    >>> from sksketch import StreamingSVD
    >>> svd = StreamingSVD(2).fit(np.diag([3.0, 2.0, 1.0]))
    >>> LoadingsDisplay.from_estimator(svd, component=2, n_loadings=1).names
    ['column 1']
    """

    ax_: Axes
    figure_: Any

    def __init__(
        self, names: Sequence[str], loadings: npt.ArrayLike, *, component: int = 1
    ) -> None:
        self.names = list(names)
        self.loadings = np.asarray(loadings, dtype=np.float64)
        self.component = component

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        *,
        component: int = 1,
        n_loadings: int = 10,
        feature_names: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the largest entries of a component of a fitted estimator or sketch.

        Parameters
        ----------
        estimator : estimator or Sketch
            Any that has seen rows.
        component : int, default=1
            Number of the component, from 1 on.
        n_loadings : int, default=10
            Number of columns to draw.
        feature_names : sequence of str, default=None
            Names of the columns; by default those that the estimator was fitted with.
        ax : matplotlib axes, default=None
            Axes to draw on; by default new ones.

        Returns
        -------
        LoadingsDisplay
            The display, drawn.
        """
        found = Findings(estimator, feature_names)
        if not 1 <= component <= found.n_components:
            raise ValueError(f"got component={component}; give one from 1 to {found.n_components}")
        largest = found.largest(found.components[component - 1], n_loadings)
        names, loadings = [name for name, _ in largest], [value for _, value in largest]
        return cls(names, loadings, component=component).plot(ax)

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
        place = np.arange(len(self.names))
        ax.barh(place, self.loadings, color=np.where(self.loadings < 0, OTHER, ESTIMATE))
        # Names come from data, where a dollar is no formula.
        ax.set_yticks(place, self.names, parse_math=False)
        ax.invert_yaxis()
        ax.axvline(0.0, color="0.5", lw=0.8)
        ax.set_xlabel(f"loading of component {self.component}")
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


class RidgePathDisplay:
    """Coefficients of a ridge regression against the penalty, with their certified error.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,)
        Penalties, above zero.
    coef : array-like of shape (n_alphas, n_columns)
        Coefficients of the columns to draw.
    errors : array-like of shape (n_alphas,)
        Certified error of every coefficient; ``inf`` draws no bar.
    names : sequence of str
        Names of the columns.
    alpha : float, default=None
        Penalty of the model, which is marked.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes that it was drawn on.
    figure_ : matplotlib.figure.Figure
        Figure of these axes.

    See Also
    --------
    StreamingRidge : The model that is drawn.
    LoadingsDisplay : Columns of a component.

    Examples
    --------
    >>> from sksketch import StreamingRidge
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> ridge = StreamingRidge(alpha=1.0).fit(X, X @ [1.0, -5.0, 0.0])
    >>> display = RidgePathDisplay.from_estimator(ridge, n_coefficients=2)
    >>> display.names, display.coef.shape
    (['column 1', 'column 0'], (13, 2))
    """

    ax_: Axes
    figure_: Any

    def __init__(
        self,
        alphas: npt.ArrayLike,
        coef: npt.ArrayLike,
        errors: npt.ArrayLike,
        names: Sequence[str],
        *,
        alpha: float | None = None,
    ) -> None:
        self.alphas = np.asarray(alphas, dtype=np.float64)
        self.coef = np.asarray(coef, dtype=np.float64)
        self.errors = np.asarray(errors, dtype=np.float64)
        self.names = list(names)
        self.alpha = alpha

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        *,
        alphas: npt.ArrayLike | None = None,
        n_coefficients: int = 6,
        target: int = 0,
        feature_names: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the largest coefficients of a fitted ridge regression for many penalties.

        Parameters
        ----------
        estimator : StreamingRidge or StreamingRidgeCV
            A fitted model.
        alphas : array-like of shape (n_alphas,), default=None
            Penalties; by default thirteen around that of the model.
        n_coefficients : int, default=6
            Number of columns to draw.
        target : int, default=0
            Number of the target, from 0 on.
        feature_names : sequence of str, default=None
            Names of the columns; by default those that the estimator was fitted with.
        ax : matplotlib axes, default=None
            Axes to draw on; by default new ones.

        Returns
        -------
        RidgePathDisplay
            The display, drawn.
        """
        found = Findings(estimator, feature_names)
        columns = largest_columns(found.coefficients[target], n_coefficients)
        path = found.path(alphas, target=target)
        names = [found.name(column) for column in columns]
        display = cls(path.alphas, path.coef[:, columns], path.errors, names, alpha=found.alpha)
        return display.plot(ax)

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
        certified = np.where(np.isfinite(self.errors), self.errors, np.nan)
        for name, values in zip(self.names, self.coef.T, strict=True):
            lines = ax.errorbar(self.alphas, values, yerr=certified, marker="o", ms=3, elinewidth=1)
            # A label that begins so would be left out of the legend, and a dollar is no formula.
            lines.set_label(name.lstrip("_").replace("$", r"\$") or name)
        ax.axhline(0.0, color="0.5", lw=0.8)
        if self.alpha:
            ax.axvline(self.alpha, color="0.5", lw=0.8, ls="--")
        ax.set_xscale("log")
        ax.set_xlabel("alpha")
        ax.set_ylabel("coefficient")
        # Bars that say nothing would make the coefficients a flat line; they may leave the picture.
        low, high = float(self.coef.min(initial=0.0)), float(self.coef.max(initial=0.0))
        room = 0.5 * (high - low) or 1.0
        ax.set_ylim(low - room, high + room)
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self
