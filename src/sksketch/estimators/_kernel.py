"""What the kernel estimators share: rows of any array library, kernels, features and saving."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sksketch._typing import Array, PathLike
from sksketch.arrays.namespace import dtype_name, finite, like, on_device
from sksketch.arrays.random import stream
from sksketch.estimators._callbacks import CallbackSupport
from sksketch.estimators._online_checks import as_text, from_text
from sksketch.learners.bandwidth import resolve_bandwidth
from sksketch.learners.features import FeatureMap, NystromMap, RandomFeatureMap
from sksketch.learners.kernels import Kernel
from sksketch.persistence import State, write_state


class KernelEstimator(CallbackSupport, BaseEstimator, ABC):
    """An estimator that sees rows through a kernel's features."""

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    # The attribute that a fitted one has.
    _fitted: ClassVar[str]
    n_features_in_: int
    feature_names_in_: Array

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # Rows

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Return checked rows: numpy, CSR, or as they are on their device."""
        if not on_device(X):
            rows = validate_data(
                self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset
            )
            return sp.csr_array(rows) if sp.issparse(rows) else rows
        rows = checked_on_device(X)
        if reset:
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_ = rows.shape[1]
        elif rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {rows.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return rows

    @contextmanager
    def _or_as_before(self) -> Iterator[None]:
        """Bring back what was learned before if the body fails."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    # Features

    def _new_features(
        self, X: Any, seed: int, *, bandwidth: Any = None, landmarks: Any = None, columns: int = 0
    ) -> FeatureMap:
        """Return the features that the parameters ask for, fitted to rows ``X``."""
        p = self.get_params(deep=False)
        asked = p["bandwidth"] if bandwidth is None else bandwidth
        params = dict(p.get("kernel_params") or {})
        scale = resolve_bandwidth(asked, p["kernel"], X, seed)
        kernel = Kernel(p["kernel"], scale, params)
        kernel.check(X)
        if kernel.name == "dot-product" and kernel.params["radius"] is None:
            kernel = Kernel(p["kernel"], scale, params | {"radius": _radius(X)})
        if landmarks is not None:
            return NystromMap(kernel, chosen_landmarks(landmarks, X, seed))
        return RandomFeatureMap(
            kernel,
            X.shape[1],
            columns or p["n_random_features"],
            seed,
            block_columns=p.get("feature_batch", 1024),
            pairs=p.get("pairs", True),
            cached=p.get("cache_features", False),
        )

    # Saving

    def save(self, path: PathLike) -> None:
        """Write the fitted estimator to one file, atomically; `sksketch.load` reads it."""
        write_state(self.state(), path)

    @abstractmethod
    def _learned(self, state: State) -> State:
        """Return ``state`` with all that was learned stored in it."""

    @abstractmethod
    def _recall(self, state: State) -> None:
        """Take back what `_learned` has stored."""

    def state(self) -> State:
        """Return the parameters and all that was learned, as plain data."""
        if not hasattr(self, self._fitted):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")
        params = self.get_params(deep=False)
        arrays = {k: np.asarray(v) for k, v in params.items() if _is_array(v)}
        plain = {k: v for k, v in params.items() if k not in arrays}
        meta: dict[str, Any] = {f"param.{k}": as_text(v) for k, v in plain.items()}
        meta["n_features_in"] = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            meta["feature_names"] = json.dumps(list(self.feature_names_in_))
        state = State(self.kind, self.version, meta, {f"param.{k}": v for k, v in arrays.items()})
        return self._learned(state)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the estimator that ``state`` was taken from."""
        state.require(cls.version)
        start, meta = "param.", dict(state.meta)
        params: dict[str, Any] = {
            k.removeprefix(start): from_text(str(v)) for k, v in meta.items() if k.startswith(start)
        }
        params |= {k.removeprefix(start): v for k, v in state.arrays.items() if k.startswith(start)}
        estimator = cls(**params)
        estimator.n_features_in_ = int(str(meta["n_features_in"]))
        if "feature_names" in meta:
            names = json.loads(str(meta["feature_names"]))
            estimator.feature_names_in_ = np.asarray(names, dtype=object)
        estimator._recall(state)
        return estimator

    def _require(self) -> None:
        check_is_fitted(self, self._fitted)


class KernelTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """One that turns rows into columns, in the rows' precision."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def checked_on_device(X: Any) -> Any:
    """Return an array of torch or cupy as rows of floating-point numbers, or refuse it."""
    if X.ndim != 2:
        raise ValueError(f"expected a 2-D array of rows, got {X.ndim}-D; reshape it")
    if 0 in X.shape:
        raise ValueError(
            f"found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s), expected at "
            "least one of each"
        )
    rows = X.detach() if hasattr(X, "detach") else X
    if dtype_name(X) not in ("float32", "float64"):
        rows = like(rows, rows, np.float64)
    if not finite(rows):
        raise ValueError("input X contains NaN or infinity; drop or impute such rows")
    return rows


def seed_of(random_state: Any) -> int:
    """Return a seed: a number is one already."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def sampled(X: Any, n_rows: int, seed: int, purpose: str) -> Any:
    """Return at most so many random rows, in their order."""
    if X.shape[0] <= n_rows:
        return X
    chosen = np.sort(stream(seed, purpose).choice(X.shape[0], n_rows, replace=False))
    return X[like(chosen, X)]


def chosen_landmarks(landmarks: Any, X: Any, seed: int) -> Any:
    """Return landmarks as given, or so many random rows."""
    if not isinstance(landmarks, Integral):
        rows = landmarks if sp.issparse(landmarks) else np.asarray(landmarks, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != X.shape[1]:
            raise ValueError(
                f"landmarks have the shape {rows.shape}, expected rows of {X.shape[1]} features"
            )
        return rows
    if landmarks < 1:
        raise ValueError(f"landmarks is {landmarks}; give a number from 1 on, or rows")
    return sampled(X, int(landmarks), seed, "landmarks")


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number from ``least`` on."""
    if not isinstance(value, Integral) or str(value) == "True" or int(value) < least:
        raise ValueError(f"{name} is {value!r}; give an integer of at least {least}")


def check_choice(name: str, value: Any, known: tuple[Any, ...]) -> None:
    """Refuse what is not one of those known."""
    if value not in known:
        raise ValueError(f"{name} is {value!r}; give one of {', '.join(map(repr, known))}")


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") and getattr(value, "ndim", 0) > 0


def _radius(X: Any) -> float:
    """Return the largest length of a row."""
    if sp.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        return float(np.sqrt(squares.max(initial=0.0)))
    return float((X * X).sum(axis=1).max() ** 0.5)
