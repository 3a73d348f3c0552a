"""`compare`: what certainly changed between two states, and the record that says it."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sksketch._typing import Array
from sksketch.exceptions import NotMergeableError
from sksketch.models.constraints import NOTHING, check_value, number, whole
from sksketch.sketches import Regression
from sksketch.sketches.certificate import rounded_down, rounded_up
from sksketch.time.differences import (
    MeanShift,
    difference,
    mean_shift,
    principal_angles,
    sampling_error,
)
from sksketch.time.ratios import Ratios, changed_ratios
from sksketch.time.states import PerRow, per_row, sketch_of

# Components whose angles are looked at, and columns that are printed.
ANGLES, SHOWN = 5, 8


class ColumnChange(NamedTuple):
    """How one column changed.

    Parameters
    ----------
    name : str
        Its name, or its number.
    means, variances : (float, float)
        Before and after.
    z_mean, z_variance : float
        Both changes in standard errors.
    """

    name: str
    means: tuple[float, float]
    variances: tuple[float, float]
    z_mean: float
    z_variance: float


class CoefficientChange(NamedTuple):
    """How the coefficients of two ridge models differ.

    Parameters
    ----------
    difference : array of shape (n_features,) or (n_targets, n_features)
        Coefficients of the second model less those of the first.
    error_bound : float or array of shape (n_targets,)
        Bound on the length of what sketches and rounding have done to it.
    certain : array of bool
        Where a coefficient of the rows certainly changed.
    """

    difference: Array
    error_bound: Any
    certain: Array


@dataclass(frozen=True, eq=False)
class Comparison:
    """Changes between two states, as a record that prints itself; `compare` makes it.

    Parameters
    ----------
    largest_change : (float, float)
        Interval of the largest change of variance per row in any direction, between the rows of
        the two states: certain, from both certificates.
    n_changed : int
        Directions in which the variance changed by more than errors, and with a ``confidence``
        samples of one distribution, can explain.
    distinguishable : bool
        Whether there is such a direction, or a mean that moved by more than that.
    confidence : float or None
        Probability that nothing is called a change that is none; None where samples are not
        allowed for, and all is about the rows themselves.
    error, allowance : float
        What both certificates, and what two samples, leave open of a variance.
    directions, changes : arrays of shape (n_changed, n_features) and (n_changed, 2)
        Those directions, and intervals of the change of variance in each.
    angles : array of shape (k, 2)
        Intervals of the principal angles between the leading components, in degrees.
    mean_shift : MeanShift or None
        How means moved, with standard errors; None of rows that are not centered.
    columns : list of ColumnChange
        All columns, those first that changed most beside their standard errors.
    coefficients : CoefficientChange or None
        For two ridge models.
    n_rows : (int, int)
        Rows of the two states.

    See Also
    --------
    compare : Makes it.
    Archive : States to compare.

    Notes
    -----
    Eigenvalues of the difference are certain by Weyl's inequality, angles by that of Davis and
    Kahan [1]_.

    References
    ----------
    .. [1] Davis, C. and Kahan, W. M. (1970). "The Rotation of Eigenvectors by a Perturbation. III".
       SIAM Journal on Numerical Analysis 7(1). doi:10.1137/0707001

    Examples
    --------
    >>> from sksketch import ExactCovariance
    >>> rng = np.random.default_rng(0)
    >>> a, b = (ExactCovariance().update(rng.standard_normal((500, 3))) for _ in range(2))
    >>> print(compare(a, b))
    not distinguishable: 500 and 500 rows, at confidence 0.99
      largest change of variance  0.102 to 0.103, up to 1.57 between samples
      directions changed          0
      principal angles            k=1: 0 to 0.01, k=2: 0 to 0.01, k=3: 0 to 0.01 degrees
    """

    largest_change: tuple[float, float]
    n_changed: int
    distinguishable: bool
    confidence: float | None
    error: float
    allowance: float
    directions: Array
    changes: Array
    angles: Array
    mean_shift: MeanShift | None
    columns: list[ColumnChange]
    coefficients: CoefficientChange | None
    n_rows: tuple[int, int]

    @property
    def verdict(self) -> str:
        """The first line: whether the two can be distinguished, and how surely that is said."""
        found = "certainly changed" if self.distinguishable else "not distinguishable"
        sure = "as the rows are" if self.confidence is None else f"at confidence {self.confidence}"
        return f"{found}: {self.n_rows[0]:,} and {self.n_rows[1]:,} rows, {sure}"

    def facts(self) -> list[tuple[str, str]]:
        """Return what is found in words, as names and values.

        Returns
        -------
        list of pairs
            As they are printed.
        """
        low, high = self.largest_change
        change = f"{rounded_down(low)} to {rounded_up(high)}"
        if self.confidence is not None:
            change += f", up to {rounded_up(self.error + self.allowance)} between samples"
        found = [
            ("largest change of variance", change),
            ("directions changed", str(self.n_changed)),
            ("principal angles", self._angles() + " degrees"),
        ]
        if self.mean_shift is not None:
            moved = int(np.count_nonzero(self.mean_shift.certain))
            found.append(("means moved", f"{moved} of {len(self.mean_shift.certain)} columns"))
        if self.coefficients is not None:
            moved = int(np.count_nonzero(self.coefficients.certain))
            found.append(("coefficients changed", f"{moved} of {self.coefficients.certain.size}"))
        return found

    def _angles(self) -> str:
        ends = [
            (math.floor(100 * low) / 100, math.ceil(100 * high) / 100) for low, high in self.angles
        ]
        texts = [f"{low:g} to {high:g}" for low, high in ends]
        return ", ".join(f"k={i + 1}: {text}" for i, text in enumerate(texts)) or "none"

    def __str__(self) -> str:
        facts = self.facts()
        width = max(len(name) for name, _ in facts)
        lines = [self.verdict, *(f"  {name:<{width}}  {value}" for name, value in facts)]
        if self.mean_shift is not None:
            lines += [f"  {line}" for line in self._table()]
        return "\n".join(lines)

    def _table(self) -> list[str]:
        rows = [
            (
                *(c.name, f"{c.means[0]:.4g}", f"{c.means[1]:.4g}", f"{c.z_mean:+.3g}"),
                *(f"{c.variances[0]:.4g}", f"{c.variances[1]:.4g}", f"{c.z_variance:+.3g}"),
            )
            for c in self.columns[:SHOWN]
        ]
        rows.insert(0, ("column", "mean", "then", "z", "variance", "then", "z"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in rows
        ]

    def _repr_html_(self) -> str:
        """Return the record for notebooks."""
        facts = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self.facts()
        )
        head = "".join(f"<th>{n}</th>" for n in ("column", "means", "z", "variances", "z"))
        rows = "".join(
            f"<tr><td>{html.escape(c.name)}</td><td>{c.means[0]:.4g}, {c.means[1]:.4g}</td>"
            f"<td>{c.z_mean:+.3g}</td><td>{c.variances[0]:.4g}, {c.variances[1]:.4g}</td>"
            f"<td>{c.z_variance:+.3g}</td></tr>"
            for c in self.columns[:SHOWN]
        )
        return (
            f"<p><b>{html.escape(self.verdict)}</b></p><table>{facts}</table>"
            f"<table><tr>{head}</tr>{rows}</table>"
        )


def compare(
    a: Any,
    b: Any,
    *,
    confidence: float | None = 0.99,
    n_components: int | None = None,
    kurtosis: float = 3.0,
) -> Comparison:
    """Say what certainly changed from one state to another.

    Parameters
    ----------
    a, b : Sketch or estimator
        Of the same columns: the state before and the one after. A window is taken as it is now.
    confidence : float or None, default=0.99
        With which nothing is called a change that two samples of one distribution explain. None:
        about the rows themselves, which always differ somewhat.
    n_components : int, default=None
        Leading components whose angles are given; by default as many as are certain in both, and
        at most five.
    kurtosis : float, default=3.0
        Largest kurtosis of the rows in any direction, 3 for Gaussian ones; more for heavier tails.

    Returns
    -------
    Comparison
        The record; print it.

    Raises
    ------
    NotMergeableError
        If the two are of other columns, or only one is centered.

    See Also
    --------
    Archive : Keeps states of periods.
    SlidingWindow : The last rows of a stream.

    Notes
    -----
    ``largest_change`` is certain about the rows of both. ``n_changed`` and ``distinguishable`` also
    allow for sampling: rows are taken as independent, with tails no heavier than ``kurtosis``
    says. Rows that depend on their neighbors count as fewer than they are. A direction counts if
    its variance differs by more than any variance of a sample may, or if it is too many times
    what it was; ratios below a tenth of the mean variance do not count, since rare values of a
    column are not Gaussian.

    Examples
    --------
    >>> from sksketch import StreamingPCA
    >>> rng = np.random.default_rng(0)
    >>> march = StreamingPCA(2).fit(rng.standard_normal((2000, 4)))
    >>> april = StreamingPCA(2).fit(rng.standard_normal((2000, 4)) * [3, 1, 1, 1])
    >>> change = compare(march, april)
    >>> change.n_changed, change.columns[0].name
    (1, '0')
    """
    check_value("confidence", confidence, number(0.0, 1.0, bounds="()"), NOTHING)
    check_value("n_components", n_components, whole(1), NOTHING)
    check_value("kurtosis", kurtosis, number(1.0, bounds="()"))
    first, second = per_row(a), per_row(b)
    _check_alike(first, second)
    spectrum = difference(first, second)
    chance = None if confidence is None else 1.0 - confidence
    allowance, ratios = 0.0, Ratios.none(first.n_features)
    if chance is not None:
        # Two tests, and two samples in each.
        share = chance / 4.0
        allowance = sum(sampling_error(state, share, kurtosis) for state in (first, second))
        ratios = changed_ratios(first, second, spectrum.error, chance / 2.0, kurtosis)
    beyond = np.abs(spectrum.values) > spectrum.error + allowance
    n_others = first.n_features - len(spectrum.values)
    n_changed = int(np.count_nonzero(beyond))
    n_changed += n_others if abs(spectrum.outside) > spectrum.error + allowance else 0
    directions, changes = spectrum.directions[beyond], spectrum.values[beyond]
    if len(ratios.changes) > n_changed:
        n_changed, (directions, changes) = len(ratios.changes), ratios
    shift = mean_shift(first, second, chance)
    coefficients = _coefficients(a, b)
    return Comparison(
        largest_change=spectrum.norm,
        n_changed=n_changed,
        distinguishable=bool(n_changed or (shift is not None and shift.certain.any())),
        confidence=confidence,
        error=spectrum.error,
        allowance=allowance,
        directions=directions,
        changes=np.stack([changes - spectrum.error, changes + spectrum.error], axis=1),
        angles=principal_angles(first, second, _n_angles(first, second, n_components)),
        mean_shift=shift,
        columns=_columns(first, second, shift, kurtosis),
        coefficients=coefficients,
        n_rows=(sketch_of(a).n_rows_seen, sketch_of(b).n_rows_seen),
    )


def _check_alike(a: PerRow, b: PerRow) -> None:
    if a.n_features != b.n_features:
        raise NotMergeableError(
            f"cannot compare states of {a.n_features} and {b.n_features} columns; "
            "give two of the same columns"
        )
    if (a.mean is None) != (b.mean is None):
        raise NotMergeableError("only one of the two is centered; compare two alike")
    numbers = [str(i) for i in range(a.n_features)]
    if numbers not in (a.names, b.names) and a.names != b.names:
        raise NotMergeableError(
            f"cannot compare columns {a.names[:5]} with {b.names[:5]}; give two of the same columns"
        )


def _n_angles(a: PerRow, b: PerRow, wanted: int | None) -> int:
    most = min(len(a.components), len(b.components))
    if wanted is not None:
        return min(wanted, most)
    certain = min(int(np.count_nonzero(s.eigenvalues > s.error)) for s in (a, b))
    return min(certain, ANGLES, most)


def _columns(a: PerRow, b: PerRow, shift: MeanShift | None, kurtosis: float) -> list[ColumnChange]:
    """Return all columns, those first that changed most."""
    parts = [(kurtosis - 1.0) * state.diagonal**2 / max(state.n_effective, 1.0) for state in (a, b)]
    # Of a sketch the variances of columns are known to its error only.
    standard = np.sqrt(parts[0] + parts[1]) + (a.error + b.error if a.mean is None else 0.0)
    moved = b.diagonal - a.diagonal
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(standard > 0, moved / standard, np.where(moved == 0, 0.0, np.inf))
        z = np.copysign(np.abs(z), moved)
    z_mean = np.zeros_like(z) if shift is None else shift.z
    means = [np.full(len(z), np.nan) if s.mean is None else s.mean for s in (a, b)]
    order = np.argsort(-np.maximum(np.abs(z), np.abs(z_mean)), kind="stable")
    names = b.names if a.names == [str(i) for i in range(len(z))] else a.names
    return [
        ColumnChange(
            names[i],
            (float(means[0][i]), float(means[1][i])),
            (float(a.diagonal[i]), float(b.diagonal[i])),
            float(z_mean[i]),
            float(z[i]),
        )
        for i in order.tolist()
    ]


def _coefficients(a: Any, b: Any) -> CoefficientChange | None:
    """Return how the coefficients of two ridge models differ; None of other states."""
    if not all(hasattr(model, "coef_error_bound_absolute_") for model in (a, b)):
        return None
    if not all(isinstance(model.sketch_, Regression) for model in (a, b)):
        return None
    mine, theirs = a.coef_, b.coef_
    if mine.shape != theirs.shape:
        raise NotMergeableError(
            f"cannot compare coefficients of shapes {mine.shape} and {theirs.shape}; give models "
            "of the same targets"
        )
    moved = theirs - mine
    # Bounds are for columns in units of their own, where there are some.
    bounds = [m.coef_error_bound_absolute_ / float(np.min(m.scale_)) for m in (a, b)]
    bound = bounds[0] + bounds[1] + 4.0 * np.finfo(np.float64).eps * float(np.abs(moved).max())
    return CoefficientChange(moved, bound, np.abs(moved) > np.expand_dims(bound, -1))
