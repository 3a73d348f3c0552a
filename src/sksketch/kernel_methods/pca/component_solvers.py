"""The two solvers of kernel PCA, with one face: doubly stochastic steps, or a sketch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from sksketch._typing import Array, Rows
from sksketch.arrays.namespace import like, on_device
from sksketch.decomposition.spectrum import read_spectrum
from sksketch.exceptions import NotMergeableError, Option
from sksketch.kernel_methods.batching import BatchQueue
from sksketch.kernel_methods.expansions import Functions
from sksketch.kernel_methods.feature_maps import FeatureMap, load_features
from sksketch.kernel_methods.pairs.pair_solvers import same_features
from sksketch.kernel_methods.pca.doubly_stochastic import DoublyStochasticPCA
from sksketch.kernel_methods.pca.krylov_passes import KrylovPasses
from sksketch.kernel_methods.piloted import Planned
from sksketch.sketches import (
    Centered,
    Certificate,
    ExactCovariance,
    Sketch,
    load_sketch,
    make_sketch,
)
from sksketch.sketches.planning import exact_or_sketch
from sksketch.state.persistence import State

BATCH_ROWS = 8192


class SketchedComponents:
    """PCA of the features by a sketch of them, in one pass.

    Parameters
    ----------
    features : FeatureMap
        Of the rows.
    n_components : int
        Components to find.
    center : bool
        Whether features are centered.
    """

    name: ClassVar[str] = "sketch"

    def __init__(self, features: FeatureMap, n_components: int, center: bool) -> None:
        self.features = features
        self.n_components = n_components
        self._complete = False
        inner: Sketch = ExactCovariance()
        if not exact_or_sketch("kernel components", features.n_columns).exact:
            # Features of slow kernels need a sketch well above the components.
            size = min(max(10 * n_components, 128), features.n_columns)
            inner = make_sketch("rfd", size)
        self.sketch = Centered(inner) if center else inner

    def for_shard(self, index: int, n_shards: int) -> SketchedComponents:
        """Return an empty one with the same features, for one of many parts of the rows."""
        center = isinstance(self.sketch, Centered)
        twin = SketchedComponents(self.features, self.n_components, center)
        twin.sketch = twin.sketch.for_shard(index, n_shards)
        return twin

    def begin(self, pilot: Rows) -> None:
        """Learn from the first rows."""
        self.learn(pilot)

    def learn(self, rows: Rows) -> None:
        """Learn from rows, unless all have come before."""
        if self._complete:
            return
        for part in batches(rows):
            self.sketch.update(self.features.transform(part))

    def fit(self, rows: Rows, pilot: Rows, order: Array, n_passes: int, sample: Rows) -> None:
        """Learn from all rows at once."""
        self.learn(rows)

    def end_pass(self) -> None:
        """All rows have come: later passes have nothing new."""
        self._complete = True

    def functions(self) -> tuple[Array, Functions]:
        """Return eigenvalues and eigenfunctions."""
        spectrum = read_spectrum(self.sketch, self.n_components)
        W = np.asarray(spectrum.components, np.float64).T
        singular_values = np.asarray(spectrum.singular_values, np.float64)
        values = singular_values**2 / self.sketch.n_rows_seen
        mean = self.sketch.mean if isinstance(self.sketch, Centered) else np.zeros(len(W))
        scale = self.features.n_columns**-0.5
        return values, Functions(self.features, W * scale, mean @ W)

    def merge(self, other: SketchedComponents) -> None:
        """Add what another one has learned with the same features."""
        if not same_features(self.features, other.features):
            raise NotMergeableError(
                "the two have different features; give both the same random_state, a number as "
                "bandwidth, and the same landmarks"
            )
        self.sketch.merge(other.sketch)

    def state(self) -> State:
        """Return all it is, as plain data."""
        facts = {"n_components": self.n_components, "complete": self._complete}
        state = State(self.name, 2, facts, {}).with_inner("features", self.features.state())
        return state.with_inner("sketch", self.sketch.state())

    @classmethod
    def from_state(cls, state: State) -> SketchedComponents:
        """Build the one that ``state`` was taken from."""
        features = load_features(state.inner("features"))
        holder, count = state, "n_components"
        if state.version == 1:
            # The sketch was in a PCA of its own.
            holder, count = state.inner("pca"), "param.n_components"
        solver = cls(features, holder.count(count), center=True)
        solver.sketch = load_sketch(holder.inner("sketch"))
        solver._complete = bool(state.meta["complete"])
        return solver


class SteppedComponents:
    """Doubly stochastic steps, one whenever there are rows for it, and passes to polish them."""

    name: ClassVar[str] = "sgd"

    def __init__(self, learner: DoublyStochasticPCA, batch_size: int) -> None:
        self.learner = learner
        self.features = learner.features
        self.batch_size = batch_size
        self._waiting = BatchQueue()
        self._passes: KrylovPasses | None = None

    def begin(self, pilot: Rows) -> None:
        """Start from the first rows."""
        self.learner.begin(pilot)

    def learn(self, rows: Rows) -> None:
        """Make the steps that there are rows for; later rows wait."""
        if self._passes is not None:
            self._passes.add(rows)
            return
        self._waiting.add(rows)
        while len(self._waiting) >= self.batch_size:
            self.learner.learn(self._waiting.take(self.batch_size)[0])

    def fit(self, rows: Rows, pilot: Rows, order: Array, n_passes: int, sample: Rows) -> None:
        """Make steps with all rows in an order, then passes over them."""
        self.learner.begin(pilot)
        # All features must be there at the end, however few the rows.
        n_steps = -(-len(order) // self.batch_size)
        missing = self.features.n_columns - self.learner.coefficients.shape[0]
        self.learner.feature_batch = max(self.learner.feature_batch, -(-missing // n_steps))
        for first in range(0, len(order), self.batch_size):
            chosen = np.sort(order[first : first + self.batch_size])
            self.learner.learn(rows[like(chosen, rows)], len(chosen) / self.batch_size)
        if n_passes:
            passes = self.learner.passes()
            for number in range(n_passes):
                for part in batches(rows):
                    passes.add(part)
                if number + 1 < n_passes:
                    passes.end_pass()
            self.learner.take(passes)
        self.learner.measure(sample)

    def end_pass(self) -> None:
        """All rows have come: begin the next pass of the polish."""
        if self._passes is None:
            self.learner = self._settled()
            self._waiting = BatchQueue()
            self._passes = self.learner.passes()
        else:
            self._passes.end_pass()

    def _settled(self) -> DoublyStochasticPCA:
        """Return a learner that has used all rows, without a change of this one."""
        if not len(self._waiting):
            return self.learner
        learner = self.learner.copy()
        rest = self._waiting.all()[0]
        if on_device(learner.coefficients):
            rest = like(rest, learner.coefficients)
        learner.learn(rest, rest.shape[0] / self.batch_size)
        return learner

    def functions(self) -> tuple[Array, Functions]:
        """Return eigenvalues and eigenfunctions."""
        learner = self._settled()
        if self._passes is not None and self._passes.n_rows:
            learner = learner.copy()
            learner.take(self._passes)
        return learner.functions()

    def merge(self, other: SketchedComponents) -> None:
        """Refuse: steps depend on all rows before them."""
        raise NotMergeableError(
            "steps depend on all rows before them and cannot be merged; use ",
            Option("solver", "sketch"),
        )

    def state(self) -> State:
        """Return all it is, as plain data."""
        arrays = {f"waiting.{k}": v for k, v in self._waiting.arrays().items()}
        if self._passes is not None:
            arrays |= {f"passes.{k}": v for k, v in self._passes.arrays().items()}
        state = State(self.name, 1, {"batch_size": self.batch_size}, arrays)
        state = state.with_inner("features", self.features.state())
        return state.with_inner("learner", self.learner.state())

    @classmethod
    def from_state(cls, state: State) -> SteppedComponents:
        """Build the one that ``state`` was taken from."""
        features = load_features(state.inner("features"))
        learner = DoublyStochasticPCA.from_state(state.inner("learner"), features)
        solver = cls(learner, state.count("batch_size"))
        solver._waiting = BatchQueue.of(state.behind("waiting."))
        if passes := state.behind("passes."):
            solver._passes = KrylovPasses.of(features, passes, learner.center)
        return solver


SOLVERS: dict[str, Any] = {kind.name: kind for kind in (SketchedComponents, SteppedComponents)}


def certificate_of(chosen: Planned | None) -> Certificate:
    """Return what is certain about the covariance of the features, where they are sketched."""
    if chosen is None or not isinstance(chosen.solver, SketchedComponents):
        raise AttributeError("only solver='sketch' has a certificate, once 2000 rows have come")
    return chosen.solver.sketch.certificate()


def batches(rows: Rows) -> Iterator[Any]:
    """Yield rows in batches of `BATCH_ROWS`."""
    for first in range(0, rows.shape[0], BATCH_ROWS):
        yield rows[first : first + BATCH_ROWS]
