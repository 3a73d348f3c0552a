"""The passes of iteratively reweighted least squares: what each starts from, and when they end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from sksketch._typing import Array
from sksketch.moments.families import FAMILIES
from sksketch.moments.scoring import Model, PassSums, Step, halfway, step_of
from sksketch.state.persistence import State

# Linear predictors beyond this have means as near to 0 or 1 as no rows can tell.
SEPARATED = 15.0
ENDLESS = (
    "the coefficients grow without end: a plane separates zeros from ones, so that there is no "
    "estimate; leave out what separates them, or set alpha"
)
UNFINISHED = (
    "not converged after {} passes; enlarge max_passes, standardize the columns, or set alpha"
)
_MODELS = ("model", "good", "last_model")


@dataclass(frozen=True, eq=False)
class Reweighting:
    """A pass that is running, and what is left of those before; only its sums ever change.

    Parameters
    ----------
    model : Model
        What the pass is at.
    sums : PassSums
        Of the rows so far.
    alpha, tol : float
        Penalty, and the share of the deviance that is no longer worth a pass.
    max_passes : int
        Most passes.
    good : Model or None
        The last model with a deviance that was not too large.
    good_objective : float
        That deviance with the penalty.
    n_done : int
        Passes that are over.
    settled : bool
        Whether no more rows are to be taken.
    last, last_model : PassSums and Model, or None
        The pass before.
    """

    model: Model
    sums: PassSums
    alpha: float
    tol: float
    max_passes: int
    good: Model | None = None
    good_objective: float = np.inf
    n_done: int = 0
    settled: bool = False
    last: PassSums | None = None
    last_model: Model | None = None

    @classmethod
    def begun(cls, params: dict[str, Any], n_features: int = 0) -> Self:
        """Return the first pass over rows of that width, by the parameters of the estimator."""
        link = params["link"]
        link = FAMILIES[params["family"]].link if link == "auto" else link
        limits = float(params["alpha"]), float(params["tol"]), int(params["max_passes"])
        sums = PassSums(bool(params["fit_intercept"]))
        model = Model(params["family"], link)
        if params["start"] is not None:
            start = np.asarray(params["start"], dtype=np.float64)
            if len(start) != n_features + 1:
                raise ValueError(
                    f"start has {len(start)} numbers, expected an intercept and {n_features} "
                    "coefficients"
                )
            first = float(start[0]) if params["fit_intercept"] else 0.0
            model = replace(model, coef=start[1:], intercept=first)
        return cls(model, sums, *limits)

    def add(self, rows: Any, targets: Array, weights: Array | None) -> None:
        """Add rows to the pass, unless they are refused."""
        self.sums.regression.check(rows, weights, targets)
        self.sums.add(self.model, rows, targets, weights)

    def _objective(self) -> float:
        """Return the deviance with the penalty; inf in the first pass, before there is a model."""
        coef = self.model.coef
        if coef is None:
            return np.inf
        return self.sums.totals()["deviance"] + self.alpha * float(coef @ coef)

    def ends(self) -> bool:
        """Return whether the pass that is over was the last one."""
        if self.n_done + 1 >= self.max_passes:
            return True
        return self.has_converged(self.sums, self.model)

    def has_converged(self, sums: PassSums, model: Model) -> bool:
        """Return whether no more is to be gained after a pass."""
        if model.coef is None:
            return model.family == "gaussian" and model.link == "identity"
        if np.isnan(model.mean_target):
            # Begun at coefficients: what a constant does is known from the next pass on.
            return False
        penalty = self.alpha * float(model.coef @ model.coef)
        objective = sums.totals()["deviance"] + penalty
        return step_of(sums, model, self.alpha).decrement <= self.tol * (objective + self.tol)

    def turned(self) -> Reweighting:
        """Return the next pass, or this one for good."""
        if self.settled or self.ends():
            return replace(self, settled=True)
        return self.next()

    def next(self) -> Reweighting:
        """Return the next pass."""
        sums, model = self.sums, self.model
        objective = self._objective()
        good, good_objective = self.good, self.good_objective
        slack = 0.0 if good is None else 1e-10 * abs(good_objective)
        if good is not None and not objective <= good_objective + slack:
            following = halfway(model, good)
        else:
            step = step_of(sums, model, self.alpha)
            if model.coef is not None:
                good, good_objective = model, objective
            totals = sums.totals()
            mean = totals["target"] / (totals["weight"] or 1.0)
            following = replace(model, coef=step.coef, intercept=step.intercept, mean_target=mean)
        return replace(
            self,
            model=following,
            sums=PassSums(sums.regression.centered),
            good=good,
            good_objective=good_objective,
            n_done=self.n_done + 1,
            last=sums,
            last_model=model,
        )

    def part(self) -> Reweighting:
        """Return the same pass without rows, for a part of them."""
        return replace(self, sums=PassSums(self.sums.regression.centered))

    def starts_like(self, other: Reweighting) -> bool:
        """Return whether both are in the same pass."""
        a, b = self.model, other.model
        same = (a.family, a.link, a.intercept) == (b.family, b.link, b.intercept)
        return same and np.array_equal(a.coef, b.coef)  # type: ignore[arg-type]

    def merged(self, other: Reweighting) -> Reweighting:
        """Return the pass with the rows of another part of it."""
        sums = self.sums.copy() if self.sums.n_rows else PassSums(self.sums.regression.centered)
        if other.sums.n_rows:
            sums.merge(other.sums)
        return replace(self, sums=sums)

    def end(self) -> tuple[PassSums, Model, Step]:
        """Return the sums of the last pass with rows, the model they are at, and their step."""
        sums, model = self.sums, self.model
        if not sums.n_rows and self.last is not None:
            assert self.last_model is not None
            sums, model = self.last, self.last_model
        return sums, model, step_of(sums, model, self.alpha)

    def state(self) -> State:
        """Return all that it is, as plain data."""
        meta: dict[str, Any] = {"n_done": self.n_done, "settled": self.settled}
        meta |= {"good_objective": self.good_objective, "family": self.model.family}
        arrays: dict[str, Array] = {}
        for name in _MODELS:
            model: Model | None = getattr(self, name)
            if model is not None:
                meta |= {f"{name}_link": model.link, f"{name}_intercept": model.intercept}
                meta[f"{name}_target"] = model.mean_target
                if model.coef is not None:
                    arrays[f"{name}_coef"] = model.coef.copy()
        state = State("reweighting", 1, meta, arrays).with_inner("sums", self.sums.state())
        return state if self.last is None else state.with_inner("last", self.last.state())

    @classmethod
    def from_state(cls, state: State, params: dict[str, Any]) -> Self:
        """Build what `state` was taken from, with the parameters of the estimator."""
        state.require(1)
        meta: Any = state.meta
        models = {}
        for name in _MODELS:
            if f"{name}_link" in meta:
                parts = meta[f"{name}_intercept"], meta[f"{name}_target"]
                coef = state.arrays.get(f"{name}_coef")
                models[name] = Model(meta["family"], meta[f"{name}_link"], coef, *parts)
        last = PassSums.from_state(state.inner("last")) if "last.kind" in meta else None
        return replace(
            cls.begun(params),
            **models,  # type: ignore[arg-type]
            sums=PassSums.from_state(state.inner("sums")),
            last=last,
            good_objective=float(meta["good_objective"]),
            n_done=int(meta["n_done"]),
            settled=bool(meta["settled"]),
        )
