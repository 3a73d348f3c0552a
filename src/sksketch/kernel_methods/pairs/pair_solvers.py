"""The two ways to learn from paired rows, with one face: exact moments, or steps."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

import numpy as np

from sksketch._typing import Array, Rows
from sksketch.arrays.namespace import like, on_device, to_numpy
from sksketch.exceptions import NotMergeableError, Option
from sksketch.kernel_methods.batching import BatchQueue
from sksketch.kernel_methods.expansions import Functions
from sksketch.kernel_methods.feature_maps import FeatureMap, load_features
from sksketch.kernel_methods.pairs.pair_moments import PairedFunctions, PairMoments
from sksketch.kernel_methods.pairs.paired_steps import PairedSteps
from sksketch.state.persistence import State

BATCH_ROWS = 4096
# Share of the mean variance that, divided by the rows, is the default ridge.
AUTO_RIDGE = 0.06


class ExactPairs:
    """All covariances of the features, and one dense problem at the end."""

    name: ClassVar[str] = "exact"

    def __init__(
        self,
        x: FeatureMap,
        y: FeatureMap,
        n_components: int,
        task: str,
        center: bool,
        ridge: float | str,
    ) -> None:
        self.features = (x, y)
        self.n_components = n_components
        self.task, self.center, self.ridge = task, center, ridge
        self.moments: PairMoments | None = None

    def learn(self, X: Rows, Y: Rows) -> None:
        """Add pairs of rows."""
        if self.moments is None:
            device = X if on_device(X) else np.empty(0)
            self.moments = PairMoments(*self.features, device, within=self.task == "cca")
        for first in range(0, X.shape[0], BATCH_ROWS):
            part = slice(first, first + BATCH_ROWS)
            self.moments.add(X[part], Y[part])

    begin = learn

    def fit(self, X: Rows, Y: Rows, order: Array, n_steps: int, sample: Array) -> None:
        """Learn from all pairs at once."""
        self.learn(X, Y)

    def functions(self) -> PairedFunctions:
        """Return paired functions, most strongly related first."""
        assert self.moments is not None
        if self.task == "svd":
            return self.moments.svd(self.n_components, self.center)
        ridge = self.ridge
        if ridge == "auto":
            ridge = AUTO_RIDGE * self.moments.variance(0) / self.moments.n_rows
        return self.moments.cca(self.n_components, float(ridge))

    def merge(self, other: ExactPairs) -> None:
        """Add the pairs that another one has seen through the same features."""
        for mine, theirs in zip(self.features, other.features, strict=True):
            if not same_features(mine, theirs):
                raise NotMergeableError(
                    "the two have different features; give both the same random_state, numbers "
                    "as bandwidth, and the same landmarks"
                )
        assert self.moments is not None
        assert other.moments is not None
        self.moments.merge(other.moments)

    def state(self) -> State:
        """Return all it is, as plain data."""
        assert self.moments is not None
        meta = {name: getattr(self, name) for name in ("n_components", "task", "center", "ridge")}
        meta["n_rows"] = self.moments.n_rows
        state = State(self.name, 1, meta, self.moments.arrays())
        for name, features in zip("xy", self.features, strict=True):
            state = state.with_inner(name, features.state())
        return state

    @classmethod
    def from_state(cls, state: State) -> ExactPairs:
        """Build the one that ``state`` was taken from."""
        meta: Any = state.meta
        x, y = (load_features(state.inner(name)) for name in "xy")
        solver = cls(x, y, *(meta[k] for k in ("n_components", "task", "center", "ridge")))
        solver.moments = PairMoments(x, y, np.empty(0), within=solver.task == "cca")
        solver.moments.restore(dict(state.arrays), meta["n_rows"])
        return solver


class SteppedPairs:
    """Doubly stochastic steps, one whenever there are pairs for it."""

    name: ClassVar[str] = "sgd"

    def __init__(self, learner: PairedSteps, batch_size: int) -> None:
        self.learner = learner
        self.features = learner.features
        self.batch_size = batch_size
        self._waiting = BatchQueue()

    def begin(self, X: Rows, Y: Rows) -> None:
        """Start from the first pairs."""
        self.learner.begin(X, Y)

    def learn(self, X: Rows, Y: Rows) -> None:
        """Make the steps that there are pairs for; later ones wait."""
        self._waiting.add(X, Y)
        while len(self._waiting) >= self.batch_size:
            self.learner.learn(*self._waiting.take(self.batch_size))

    def fit(self, X: Rows, Y: Rows, order: Array, n_steps: int, sample: Array) -> None:
        """Make ``n_steps`` steps, over all pairs in an order, from the start again at its end."""
        pilot = like(np.sort(order[:PILOT_ROWS]), X)
        self.learner.begin(X[pilot], Y[pilot])
        batch = min(self.batch_size, len(order))
        for number in range(n_steps):
            first = number * batch % len(order)
            chosen = np.take(order, range(first, first + batch), mode="wrap")
            rows = like(np.sort(chosen), X)
            self.learner.learn(X[rows], Y[rows], batch / self.batch_size)
        rows = like(sample, X)
        self.learner.measure(X[rows], Y[rows])

    def functions(self) -> PairedFunctions:
        """Return paired functions, most strongly related first."""
        learner = self.learner
        if len(self._waiting):
            learner = learner.copy()
            rest = self._waiting.all()
            if on_device(learner.views[0].coefficients):
                rest = tuple(like(part, learner.views[0].coefficients) for part in rest)
            X, Y = rest
            learner.learn(X, Y, X.shape[0] / self.batch_size)
        return learner.functions()

    def merge(self, other: ExactPairs) -> None:
        """Refuse: steps depend on all rows before them."""
        raise NotMergeableError(
            "steps depend on all rows before them and cannot be merged; use ",
            Option("solver", "exact"),
        )

    def state(self) -> State:
        """Return all it is, as plain data."""
        arrays = {f"waiting.{k}": v for k, v in self._waiting.arrays().items()}
        state = State(self.name, 1, {"batch_size": self.batch_size}, arrays)
        for name, features in zip("xy", self.features, strict=True):
            state = state.with_inner(name, features.state())
        return state.with_inner("learner", self.learner.state())

    @classmethod
    def from_state(cls, state: State) -> SteppedPairs:
        """Build the one that ``state`` was taken from."""
        x, y = (load_features(state.inner(name)) for name in "xy")
        learner = PairedSteps.from_state(state.inner("learner"), x, y)
        solver = cls(learner, state.count("batch_size"))
        solver._waiting = BatchQueue.of(state.behind("waiting."))
        return solver


class FinishedPairs:
    """The functions alone, without what is needed to learn more."""

    name: ClassVar[str] = "finished"

    def __init__(self, found: PairedFunctions, solver: str) -> None:
        self._found = found
        self.features = (found.x.features, found.y.features)
        self.solver = solver

    def functions(self) -> PairedFunctions:
        """Return paired functions, most strongly related first."""
        return self._found

    def _refuse(self) -> NoReturn:
        raise NotMergeableError(
            "the model was saved finished, without what is needed to learn more; save it with "
            "finished=False"
        )

    def learn(self, X: Rows, Y: Rows) -> None:
        """Refuse to learn."""
        self._refuse()

    def merge(self, other: ExactPairs) -> None:
        """Refuse to learn."""
        self._refuse()

    def state(self) -> State:
        """Return the functions, as plain data."""
        arrays = {"strengths": self._found.strengths}
        for name, side in zip("xy", self._found[1:], strict=True):
            arrays[f"{name}.coefficients"] = to_numpy(side.coefficients)
            arrays[f"{name}.offset"] = to_numpy(side.offset)
        state = State(self.name, 1, {"solver": self.solver}, arrays)
        for name, features in zip("xy", self.features, strict=True):
            state = state.with_inner(f"{name}_features", features.state())
        return state

    @classmethod
    def from_state(cls, state: State) -> FinishedPairs:
        """Build the one that ``state`` was taken from."""
        sides = [
            Functions(
                load_features(state.inner(f"{name}_features")),
                state.arrays[f"{name}.coefficients"],
                state.arrays[f"{name}.offset"],
            )
            for name in "xy"
        ]
        found = PairedFunctions(state.arrays["strengths"], *sides)
        return cls(found, str(state.meta["solver"]))


PILOT_ROWS = 4000
SOLVERS: dict[str, Any] = {kind.name: kind for kind in (ExactPairs, SteppedPairs, FinishedPairs)}


def same_features(a: FeatureMap, b: FeatureMap) -> bool:
    """Return whether two maps give the same columns."""
    mine, theirs = a.state(), b.state()
    if mine.kind != theirs.kind or mine.meta != theirs.meta:
        return False
    return mine.arrays.keys() == theirs.arrays.keys() and all(
        np.array_equal(mine.arrays[name], theirs.arrays[name]) for name in mine.arrays
    )
