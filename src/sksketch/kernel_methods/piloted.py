"""Kernel estimators that learn from a stream, once its first rows have told how."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from sksketch.arrays.namespace import to_numpy
from sksketch.exceptions import NotMergeableError
from sksketch.kernel_methods.batching import Waiting
from sksketch.kernel_methods.kernel_estimator import KernelEstimator
from sksketch.models.checks import seed_of
from sksketch.models.lazy import LazyAnswers
from sksketch.state.persistence import State

EMBEDDED_ROWS = 400


class PilotedEstimator(LazyAnswers, KernelEstimator):
    """Rows of one or two views wait for a pilot; a solver chosen by it learns from the rest."""

    _fitted = "n_samples_seen_"
    _pilot_rows: ClassVar[int]
    # Solvers by their names, for saved files.
    _solvers: ClassVar[dict[str, Any]]
    n_samples_seen_: int
    _solver: Any
    # Of the solver; while rows wait there is none, whatever a look at them would choose.
    _plan: str | None

    @abstractmethod
    def _check_params(self) -> None:
        """Refuse parameters that mean nothing."""

    @abstractmethod
    def _checked_views(self, views: tuple[Any, ...], *, reset: bool) -> tuple[Any, ...]:
        """Return checked rows of every view."""

    @abstractmethod
    def _planned(self, pilot: tuple[Any, ...], n_rows: int | None) -> Any:
        """Return the solver to use, by pilot rows; of ``n_rows`` in all, where that is known."""

    def _start(self, *views: Any) -> tuple[Any, ...]:
        """Begin with nothing learned; return checked rows."""
        self._check_params()
        rows = self._checked_views(views, reset=True)
        self._seed = seed_of(self.random_state)
        self._waiting = Waiting()
        self._solver = self._plan = None
        self.__dict__.pop("embedding_sample_", None)
        self._answers = {}
        self.n_samples_seen_ = 0
        return rows

    def _enough(self, n_rows: int, least: int) -> None:
        if n_rows < least:
            raise ValueError(
                f"n_components={self.n_components} needs more than the {n_rows} sample(s) given; "
                "ask for fewer, or give more rows"
            )

    def _go_on(self, *views: Any) -> None:
        """Learn from one more block of rows."""
        first = not hasattr(self, "n_samples_seen_")
        with self._or_as_before():
            rows = self._start(*views) if first else self._checked_views(views, reset=False)
            if self._solver is not None:
                self._solver.learn(*rows)
            else:
                self._waiting.add(*rows)
                if len(self._waiting) >= self._pilot_rows:
                    self._begin_stream(Waiting.of_rows(*self._waiting.all()))
            self.n_samples_seen_ += self._n_new(rows[0].shape[0])
            self._answers = {}
            self.__dict__.pop("embedding_sample_", None)

    def _n_new(self, n_rows: int) -> int:
        """Return how many of so many rows come for the first time."""
        return n_rows

    def _begin_stream(self, waiting: Waiting) -> None:
        pilot = waiting.take(self._pilot_rows)
        solver = self._planned(pilot, None)
        solver.begin(*pilot)
        if len(waiting):
            solver.learn(*waiting.all())
        self._solver, self._waiting = solver, Waiting()

    def _found(self) -> Any:
        """Return what the solver has found, computed once after each update."""
        self._require()
        answers = self._answers
        if "found" not in answers:
            solver, plan = self._solver, self._plan
            if solver is None:
                # Fewer rows than a pilot have come: they are all there is to learn from.
                params = self.get_params(deep=False) | {"random_state": self._seed}
                trial: Any = type(self)(**params)
                trial.fit(*self._waiting.all())
                solver, plan = trial._solver, trial._plan
            answers["solver"] = getattr(solver, "solver", solver.name)
            answers["plan"] = plan
            answers["found"] = solver.functions()
        return answers["found"]

    @property
    def solver_(self) -> str:
        """The solver used."""
        self._found()
        return str(self._answers["solver"])

    @property
    def plan_(self) -> str:
        """What was chosen, and why."""
        self._found()
        return str(self._answers["plan"])

    def keep_embedding(self, *views: Any) -> Self:
        """Keep the components of some rows, for the pictures of a report.

        `fit` does so by itself; after a stream the rows have gone.

        Parameters
        ----------
        *views : arrays
            Rows, of both views if there are two; the first 400 are taken.

        Returns
        -------
        self
        """
        found = self.transform(*(view[:EMBEDDED_ROWS] for view in views))
        self._keep(*(found if isinstance(found, tuple) else (found,)))
        return self

    def _keep(self, *scores: Any) -> None:
        self.embedding_sample_ = tuple(to_numpy(part).astype(np.float32) for part in scores)

    @abstractmethod
    def transform(self, *views: Any) -> Any:
        """Return the components of rows."""

    def merge(self, other: Self) -> Self:
        """Add what another one has learned from other rows, if the solver can.

        Parameters
        ----------
        other : estimator of the same class
            With the same features: give both the same seed, numbers as ``bandwidth`` and, if
            landmarks are used, the same rows as ``landmarks``. It is left as it was.

        Returns
        -------
        self
        """
        for one in (self, other):
            if one.__dict__.get("_solver") is None:
                raise NotMergeableError(
                    f"both must have seen {self._pilot_rows} rows or called fit to be merged"
                )
        if type(self._solver) is not type(other._solver):
            raise NotMergeableError("the two were learned by different solvers; name one for both")
        self._solver.merge(other._solver)
        self.n_samples_seen_ += other.n_samples_seen_
        self._answers = {}
        return self

    def _learned(self, state: State) -> State:
        facts = {
            "seed": self._seed,
            "n_samples_seen": self.n_samples_seen_,
            "plan": self._plan,
        }
        arrays = {f"waiting.{k}": v for k, v in self._waiting.arrays().items()}
        for i, scores in enumerate(self.__dict__.get("embedding_sample_", ())):
            arrays[f"embedding.{i}"] = scores
        state = state.with_more(facts, arrays)
        return state if self._solver is None else state.with_inner("solver", self._solver.state())

    def _recall(self, state: State) -> None:
        meta: Any = state.meta
        self._seed, self.n_samples_seen_ = meta["seed"], meta["n_samples_seen"]
        self._waiting, self._answers = Waiting.of(state.behind("waiting.")), {}
        self._solver = self._plan = None
        if sample := state.behind("embedding."):
            self.embedding_sample_ = tuple(sample[str(i)] for i in range(len(sample)))
        if "solver.kind" in meta:
            self._plan = meta["plan"]
            self._solver = self._solvers[meta["solver.kind"]].from_state(state.inner("solver"))
