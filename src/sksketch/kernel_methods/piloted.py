"""Learning from a stream whose first rows, a pilot, say how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from sksketch._typing import Array, Rows
from sksketch.arrays.namespace import to_numpy
from sksketch.exceptions import NotMergeableError
from sksketch.kernel_methods.batching import BatchQueue
from sksketch.state.persistence import State

#: Rows of one or two views, side by side.
Views: TypeAlias = tuple[Any, ...]

EMBEDDED_ROWS = 400
CHOSEN = (
    "the features of this one are chosen, and those of dask's rows would be others; call fit, or "
    "give blocks in memory"
)
NOT_YET = "both must have seen {} rows or called fit to be merged"


class Planned(NamedTuple):
    """A solver for some rows, and why it was chosen."""

    solver: Any
    plan: str


class Found(NamedTuple):
    """A solver and the sentence that says why it was chosen."""

    solver: str
    plan: str
    functions: Any


class PilotedLearner:
    """Rows of one or two views wait for a pilot; a solver chosen by it learns from the rest.

    Parameters
    ----------
    pilot_rows : int
        Rows that the choice is made by.
    seed : int
        Of features and samples.
    chosen : Planned, default=None
        The solver, where it has been chosen already.
    n_rows : int, default=0
        Rows that it has learned from.
    """

    def __init__(
        self, pilot_rows: int, seed: int, chosen: Planned | None = None, n_rows: int = 0
    ) -> None:
        self.pilot_rows = pilot_rows
        self.seed = seed
        self.chosen = chosen
        self.n_rows = n_rows
        self._waiting = BatchQueue()

    def with_solver(self, chosen: Planned, n_rows: int = 0) -> PilotedLearner:
        """Return one with the same seed and a solver that has been chosen."""
        return PilotedLearner(self.pilot_rows, self.seed, chosen, n_rows)

    def for_shard(self, index: int, n_shards: int) -> PilotedLearner:
        """Return an empty one with the same solver, for one of many parts of the rows."""
        assert self.chosen is not None
        solver, plan = self.chosen
        return self.with_solver(Planned(solver.for_shard(index, n_shards), plan))

    def learn(
        self,
        views: Views,
        choose: Callable[[Views], Planned],
        *,
        again: bool = False,
    ) -> None:
        """Learn from one more block of rows.

        Parameters
        ----------
        views : tuple of rows
            One of each view.
        choose : callable
            Makes a solver of the pilot.
        again : bool, default=False
            Whether the rows have come, and were counted, before.
        """
        self._take(views, choose)
        self.n_rows += 0 if again else views[0].shape[0]

    def _take(self, views: Views, choose: Callable[[Views], Planned]) -> None:
        if self.chosen is not None:
            self.chosen.solver.learn(*views)
            return
        self._waiting.add(*views)
        if len(self._waiting) < self.pilot_rows:
            return
        waiting = BatchQueue.of_rows(*self._waiting.all())
        pilot = waiting.take(self.pilot_rows)
        chosen = choose(pilot)
        chosen.solver.begin(*pilot)
        if len(waiting):
            chosen.solver.learn(*waiting.all())
        self.chosen, self._waiting = chosen, BatchQueue()

    def found(self, fit: Callable[[Views], Planned]) -> Found:
        """Return what was found; ``fit`` solves for all rows while they are fewer than a pilot."""
        solver, plan = fit(self._waiting.all()) if self.chosen is None else self.chosen
        return Found(getattr(solver, "solver", solver.name), plan, solver.functions())

    def merge(self, other: PilotedLearner) -> None:
        """Add what another one has learned from other rows, if the solver can."""
        if self.chosen is None or other.chosen is None:
            raise NotMergeableError(NOT_YET.format(self.pilot_rows))
        mine, theirs = self.chosen.solver, other.chosen.solver
        if type(mine) is not type(theirs):
            raise NotMergeableError("the two were learned by different solvers; name one for both")
        mine.merge(theirs)
        self.n_rows += other.n_rows

    def stored(self, state: State) -> State:
        """Return a state with all of it stored in it."""
        arrays = {f"waiting.{k}": v for k, v in self._waiting.arrays().items()}
        plan = None if self.chosen is None else self.chosen.plan
        facts = {"seed": self.seed, "n_samples_seen": self.n_rows, "plan": plan}
        state = state.with_more(facts, arrays)
        if self.chosen is None:
            return state
        return state.with_inner("solver", self.chosen.solver.state())

    @classmethod
    def of(cls, state: State, pilot_rows: int, solvers: Mapping[str, Any]) -> PilotedLearner:
        """Build it again from what `stored` gave; ``solvers`` are those that a file may name."""
        meta: Any = state.meta
        learner = cls(pilot_rows, meta["seed"], n_rows=meta["n_samples_seen"])
        learner._waiting = BatchQueue.of(state.behind("waiting."))
        if "solver.kind" in meta:
            solver = solvers[meta["solver.kind"]].from_state(state.inner("solver"))
            learner.chosen = Planned(solver, meta["plan"])
        return learner


class WithPilot(Protocol):
    """A fitted estimator with a learner, and how it solves for fewer rows than a pilot has."""

    pilot_rows: int
    embedding_sample_: tuple[Array, ...]
    _learner: PilotedLearner

    def _require_fitted(self) -> None: ...

    def _once(self, name: str, compute: Callable[[], Any]) -> Any: ...

    def _solved(self, views: Views) -> Planned: ...

    def _embedded(self, views: Views) -> Views: ...


Estimator = TypeVar("Estimator", bound=WithPilot)


# Methods of such estimators: they take them into their classes by name.


def found_by(self: WithPilot) -> Found:
    """Return what the solver has found, computed once after each update."""
    self._require_fitted()
    found: Found = self._once("found", lambda: self._learner.found(self._solved))
    return found


def n_samples_seen_(self: WithPilot) -> int:
    """Rows, or pairs of rows, learned from."""
    return int(self._once("n_samples_seen_", lambda: self._learner.n_rows))


def solver_(self: WithPilot) -> str:
    """Name of the solver used."""
    return found_by(self).solver


def plan_(self: WithPilot) -> str:
    """One sentence: the solver that was chosen, and why."""
    return found_by(self).plan


def keep_embedding(self: Estimator, *views: Rows) -> Estimator:
    """Keep the components of some rows, for the pictures of a report.

    `fit` does so by itself; after a stream the rows have gone.

    Parameters
    ----------
    *views : array-like or sparse matrix of shape (n_samples, n_features)
        Rows of each view; the first 400 are taken.

    Returns
    -------
    self
        This estimator.
    """
    scores = self._embedded(tuple(view[:EMBEDDED_ROWS] for view in views))
    self.embedding_sample_ = embedding_of(*scores)
    return self


def absorb(self: Estimator, other: Estimator) -> None:
    """Add what another one has learned from other rows."""
    if not hasattr(self, "_learner"):
        raise NotMergeableError(NOT_YET.format(self.pilot_rows))
    self._learner.merge(other._learner)


def embedding_of(*scores: Rows) -> tuple[Array, ...]:
    """Return components of some rows as a report keeps them, in single precision."""
    return tuple(to_numpy(part).astype(np.float32) for part in scores)


def with_embedding(state: State, embedding: tuple[Array, ...]) -> State:
    """Return a state with the components of some rows stored in it."""
    return state.with_more({}, {f"embedding.{i}": scores for i, scores in enumerate(embedding)})


def stored_embedding(state: State) -> tuple[Array, ...]:
    """Return what `with_embedding` has stored; empty if there was nothing."""
    sample = state.behind("embedding.")
    return tuple(sample[str(i)] for i in range(len(sample)))


def check_enough(n_components: int, n_rows: int, least: int) -> None:
    """Refuse fewer rows than components can be found in."""
    if n_rows < least:
        raise ValueError(
            f"n_components={n_components} needs more than the {n_rows} sample(s) given; "
            "ask for fewer, or give more rows"
        )
