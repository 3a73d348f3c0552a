"""Inference for linear models: a record of what coefficients are worth, printed as a table."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special

from sksketch._typing import Array

INTERCEPT = "(intercept)"


@dataclass(frozen=True, eq=False)
class Inference:
    """Coefficients with standard errors, tests and intervals, and how well the model fits.

    Arrays have the intercept first, if there is one, and then the columns in their order; with
    several targets they have one row for each. Print it for the table, or take `to_frame`.

    Parameters
    ----------
    names : tuple of str
        Names of the coefficients.
    coef, standard_error, statistic, p_value : arrays of shape (n_coef,) or (n_targets, n_coef)
        Coefficients, their standard errors, their quotients, and two-sided p-values. With a sketch
        p-values are the largest that its error bound allows.
    interval : array of shape (n_coef, 2) or (n_targets, n_coef, 2)
        Confidence intervals, widened by the two error bounds.
    coef_error_bound, standard_error_bound : arrays of the shape of ``coef``
        Certified bounds on what sketch and rounding have done to the coefficients, and the most
        that the exact standard errors can be.
    coef_covariance : array of shape (n_coef, n_coef) or (n_targets, n_coef, n_coef)
        Covariance of the coefficients; empty where a sketch has too many columns for it.
    r2, adjusted_r2 : float or array of shape (n_targets,)
        Share of the variance that is explained, and the same adjusted for the columns.
    f_statistic, f_p_value : float or array of shape (n_targets,)
        Test of all coefficients but the intercept; with a robust covariance that of Wald.
    log_likelihood, aic, bic : float or array of shape (n_targets,)
        Of normal errors, or of the family of a generalized linear model.
    residual_deviance, scale : float or array of shape (n_targets,)
        Sum of squared errors, or the deviance; and the dispersion.
    df_model, df_resid : float
        Degrees of freedom: of all but the intercept, and of the residuals. With a penalty those
        of the model are the trace of the hat matrix.
    rank : int
        Coefficients that the rows determine, the intercept included.
    dependent : tuple of str
        Columns that are linear in others. The coefficients are then the shortest, as those of a
        pseudo-inverse.
    n_rows : float
        Rows, or the sum of frequency weights.
    covariance : str
        How the covariance was estimated.
    weights : str
        What weights mean: "frequency" or "analytic".
    confidence : float
        Level of the intervals.
    distribution : {"t", "normal"}
        Of the statistics.
    title : str
        First words of the table.
    notes : tuple of str
        Further remarks.

    See Also
    --------
    StreamingRidge.inference : Returns it for least squares and ridge regression.
    StreamingGLM.inference : Returns it for generalized linear models.

    Notes
    -----
    Adjusted R2, the F test and the criteria of Akaike and Schwarz are those of [1]_; a penalty
    counts by the trace of the hat matrix.

    References
    ----------
    .. [1] Greene, W. H. (2018). "Econometric Analysis". 8th edition, Pearson.

    Examples
    --------
    >>> from sksketch import StreamingRidge
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = StreamingRidge(alpha=0.0).fit(X, np.array([1.0, 3.1, 4.9, 7.0]))
    >>> found = model.inference()
    >>> found.coef.round(3), found.standard_error.round(3), round(found.r2, 4)
    (array([1.03, 1.98]), array([0.079, 0.042]), 0.9991)
    """

    names: tuple[str, ...]
    coef: Array
    standard_error: Array
    statistic: Array
    p_value: Array
    interval: Array
    coef_error_bound: Array
    standard_error_bound: Array
    coef_covariance: Array
    r2: Any
    adjusted_r2: Any
    f_statistic: Any
    f_p_value: Any
    log_likelihood: Any
    aic: Any
    bic: Any
    residual_deviance: Any
    scale: Any
    df_model: float
    df_resid: float
    rank: int
    dependent: tuple[str, ...]
    n_rows: float
    covariance: str
    weights: str
    confidence: float
    distribution: str
    title: str = "Least squares"
    notes: tuple[str, ...] = field(default=())

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return 1 if self.coef.ndim == 1 else len(self.coef)

    def to_frame(self, target: int = 0) -> Any:
        """Return the table as a data frame of pandas, one row for each coefficient.

        Parameters
        ----------
        target : int, default=0
            Number of the target.

        Returns
        -------
        pandas.DataFrame
            With the columns ``coefficient``, ``standard_error``, ``statistic``, ``p_value``,
            ``lower`` and ``upper``.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas") from None
        return pandas.DataFrame(self.columns(target), index=list(self.names))

    def columns(self, target: int = 0) -> dict[str, Array]:
        """Return the table as arrays by name.

        Parameters
        ----------
        target : int, default=0
            Number of the target.

        Returns
        -------
        dict of str to array
            The columns of `to_frame`.
        """
        interval = np.atleast_3d(self.interval.T).T if self.interval.ndim == 2 else self.interval
        found = {
            "coefficient": self.coef,
            "standard_error": self.standard_error,
            "statistic": self.statistic,
            "p_value": self.p_value,
        }
        table = {name: np.atleast_2d(values)[target] for name, values in found.items()}
        return table | {"lower": interval[target][:, 0], "upper": interval[target][:, 1]}

    def facts(self, target: int = 0) -> dict[str, float]:
        """Return the numbers that describe the model as a whole.

        Parameters
        ----------
        target : int, default=0
            Number of the target.

        Returns
        -------
        dict of str to float
            R2, tests, criteria and degrees of freedom.
        """
        names = (
            *("r2", "adjusted_r2", "f_statistic", "f_p_value", "log_likelihood", "aic", "bic"),
            *("residual_deviance", "scale"),
        )
        found = {name: float(np.atleast_1d(getattr(self, name))[target]) for name in names}
        return found | {
            "df_model": self.df_model,
            "df_resid": self.df_resid,
            "rank": self.rank,
            "rows": self.n_rows,
        }

    def __str__(self) -> str:
        tables = [self._table(target) for target in range(self.n_targets)]
        return "\n\n".join(tables)

    def _repr_html_(self) -> str:
        """Return the tables for notebooks."""
        return "".join(self._page(target) for target in range(self.n_targets))

    def _page(self, target: int) -> str:
        lines = "<br>".join(map(html.escape, self._lines(target)))
        head, *rows = self._cells(target)
        cells = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
        body = "".join(
            f"<tr><th>{html.escape(name)}</th>"
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in numbers)
            + "</tr>"
            for name, *numbers in rows
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<p>{lines}</p><table><tr>{cells}</tr>{body}</table>{notes}"

    def _table(self, target: int) -> str:
        cells = self._cells(target)
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        head, *rows = [
            "  ".join(
                cell.ljust(width) if k == 0 else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in cells
        ]
        return "\n".join([*self._lines(target), rule, head, rule, *rows, rule, *self.notes])

    def _lines(self, target: int) -> list[str]:
        """Return the lines above the coefficients."""
        facts = self.facts(target)
        many = f", target {target + 1} of {self.n_targets}" if self.n_targets > 1 else ""
        return [
            f"{self.title}, {self.covariance} standard errors{many}",
            f"rows {facts['rows']:,.10g}   df of model {facts['df_model']:.6g}   "
            f"df of residuals {facts['df_resid']:,.10g}   rank {self.rank} of {len(self.names)}",
            f"R2 {facts['r2']:.6g}   adjusted R2 {facts['adjusted_r2']:.6g}   "
            f"F {facts['f_statistic']:.6g} (p {_p(facts['f_p_value'])})",
            f"residual deviance {facts['residual_deviance']:.6g}   scale {facts['scale']:.6g}   "
            f"AIC {facts['aic']:.6g}   BIC {facts['bic']:.6g}",
        ]

    def _cells(self, target: int) -> list[list[str]]:
        """Return the names of the columns, and a row for each coefficient."""
        letter = "t" if self.distribution == "t" else "z"
        cells = [["", "coef", "std err", letter, f"P>|{letter}|", *self._ends()]]
        for name, *values in zip(self.names, *self.columns(target).values(), strict=True):
            coefficient, error, statistic, p, low, high = (float(value) for value in values)
            numbers = [f"{coefficient:.6g}", f"{error:.4g}", f"{statistic:.3f}", _p(p)]
            cells.append([str(name), *numbers, f"{low:.6g}", f"{high:.6g}"])
        return cells

    def _ends(self) -> list[str]:
        tail = 0.5 * (1.0 - self.confidence)
        return [f"[{tail:.3g}", f"{1.0 - tail:.3g}]"]


def _p(p: float) -> str:
    return f"{p:.3f}" if p >= 0.0005 or p == 0.0 or math.isnan(p) else f"{p:.1e}"


def tail(statistic: Array, df: float, distribution: str) -> Array:
    """Return two-sided p-values.

    >>> tail(np.array([1.959963984540054]), 10.0, "normal").round(6)
    array([0.05])
    """
    size = -np.abs(statistic)
    if distribution == "normal":
        return np.asarray(2.0 * special.ndtr(size))
    return np.asarray(2.0 * special.stdtr(df, size)) if df > 0 else np.ones_like(size)


def quantile(confidence: float, df: float, distribution: str) -> float:
    """Return half the width of an interval in standard errors; inf without degrees of freedom."""
    upper = 0.5 + 0.5 * confidence
    if distribution == "normal":
        return float(special.ndtri(upper))
    return float(special.stdtrit(df, upper)) if df > 0 else math.inf


def f_tail(statistic: Array, df_model: float, df_resid: float) -> Array:
    """Return p-values of F statistics."""
    if df_model <= 0 or df_resid <= 0:
        return np.ones_like(statistic)
    # Beyond all numbers where the fit is perfect.
    found = special.fdtrc(df_model, df_resid, np.minimum(statistic, 1e300))
    return np.asarray(np.where(np.isinf(statistic), 0.0, found))


def judged(
    coef: Array, errors: Array, bounds: tuple[Array, Array], df: float, how: tuple[float, str]
) -> dict[str, Array]:
    """Return statistics, p-values and intervals of coefficients.

    Parameters
    ----------
    coef, errors : arrays of one shape
        Coefficients and standard errors.
    bounds : tuple of two arrays
        Bounds on the errors of coefficients, and the most that standard errors can be.
    df : float
        Degrees of freedom of the residuals.
    how : (float, str)
        Confidence of the intervals, and the distribution of the statistics.

    Returns
    -------
    dict of str to array
        Fields of `Inference`.
    """
    confidence, distribution = how
    off, most = bounds
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(coef == 0.0, 0.0, coef / errors)
        # The least that the exact one can be.
        nearest = np.maximum(np.abs(coef) - off, 0.0)
        least = np.where(nearest == 0.0, 0.0, nearest / most)
        half = np.where(most == 0.0, 0.0, quantile(confidence, df, distribution) * most) + off
    p = tail(np.nan_to_num(least, nan=0.0, posinf=np.inf), df, distribution)
    interval = np.stack([coef - half, coef + half], axis=-1)
    return {"statistic": statistic, "p_value": p, "interval": interval}


def names_of(columns: Sequence[object] | None, n_features: int, intercept: bool) -> tuple[str, ...]:
    """Return the names of coefficients.

    >>> names_of(None, 2, True)
    ('(intercept)', 'x0', 'x1')
    """
    found = [f"x{j}" for j in range(n_features)] if columns is None else [str(c) for c in columns]
    return (INTERCEPT, *found) if intercept else tuple(found)
