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
from sklearn.utils.validation import check_is_fitted

from sksketch._typing import Array, PathLike
from sksketch.arrays.device_sparse import is_sparse_on_device
from sksketch.arrays.random import sampled
from sksketch.kernel_methods.bandwidth import resolve_bandwidth
from sksketch.kernel_methods.batching import Waiting
from sksketch.kernel_methods.feature_maps import FeatureMap, NystromMap, RandomFeatureMap
from sksketch.kernel_methods.kernels import Kernel, check_domain
from sksketch.models.callbacks import CallbackSupport
from sksketch.models.checks import as_text, checked_rows, from_text, host_rows, seed_of
from sksketch.state.guard import Guarded
from sksketch.state.persistence import State, write_state


class KernelEstimator(Guarded, CallbackSupport, BaseEstimator, ABC):
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
        # Features of sparse rows are computed on the host.
        rows = checked_rows(self, host_rows(X) if is_sparse_on_device(X) else X, reset=reset)
        rows = sp.csr_array(rows) if sp.issparse(rows) else rows
        check_domain(self.kernel, rows)
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
        meta: dict[str, Any] = {}
        arrays: dict[str, Array] = {}
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, np.random.RandomState):
                meta[f"param.{name}"] = as_text(seed_of(value))
            elif (rows := _rows_of(value)) is None:
                meta[f"param.{name}"] = as_text(value)
            else:
                # Rows of landmarks, of one view or of two.
                meta[f"rows.{name}"] = len(rows)
                for i, part in enumerate(rows):
                    found = Waiting.of_rows(part).arrays()
                    arrays |= {f"rows.{name}.{i}.{key}": x for key, x in found.items()}
        meta["n_features_in"] = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            meta["feature_names"] = json.dumps(list(self.feature_names_in_))
        return self._learned(State(self.kind, self.version, meta, arrays))

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the estimator that ``state`` was taken from."""
        state.require(cls.version)
        start, meta = "param.", dict(state.meta)
        params: dict[str, Any] = {
            k.removeprefix(start): from_text(str(v)) for k, v in meta.items() if k.startswith(start)
        }
        for key in [name for name in meta if name.startswith("rows.")]:
            found = (state.behind(f"{key}.{i}.") for i in range(int(str(meta[key]))))
            parts = tuple(Waiting.of(arrays).all()[0] for arrays in found)
            params[key.removeprefix("rows.")] = parts if len(parts) > 1 else parts[0]
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


def _rows_of(value: Any) -> list[Any] | None:
    """Return the arrays that a parameter is made of; None if it is no array."""
    parts = list(value) if isinstance(value, tuple) else [value]
    if all(sp.issparse(part) or getattr(part, "ndim", 0) == 2 for part in parts):
        return parts
    return None


def _radius(X: Any) -> float:
    """Return the largest length of a row."""
    if sp.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        return float(np.sqrt(squares.max(initial=0.0)))
    return float((X * X).sum(axis=1).max() ** 0.5)
