"""Classifiers at their defaults, each row predicted before it is learned from."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn import config_context
from sklearn.linear_model import SGDClassifier

from benchmarks.streams.data import Stream
from sksketch import OnlineNewtonClassifier

BLOCK_ROWS = 1000
# SGDClassifier copies its weights at every row; above this many that takes hours.
MOST_WEIGHTS = 200_000
# What a prediction of probability zero costs.
LEAST = 1e-15
N_TREES = 10


@dataclass(frozen=True)
class Method:
    """``run(stream)`` gives the share of errors and the mean log loss, NaN where there is none."""

    run: Callable[[Stream], tuple[float, float]]
    needs: str = ""
    small_only: bool = False
    most_weights: float = math.inf

    def skipped(self, stream: Stream) -> str:
        """Return why it cannot run on a stream, or nothing."""
        if self.needs and importlib.util.find_spec(self.needs) is None:
            return f"{self.needs} is not installed"
        if self.small_only and not stream.small:
            return "slow, only on small streams"
        if stream.X.shape[1] * stream.n_classes > self.most_weights:
            return "copies millions of weights at every row"
        return ""


class Tally:
    """Counts errors, and sums the log loss of the probabilities that labels were given."""

    def __init__(self, n_classes: int) -> None:
        self._n_classes = n_classes
        self.n_rows, self.n_errors, self.loss = 0, 0, 0.0

    def add(self, label: int, found: int | None, probability: float | None) -> None:
        """Count one row; without a prediction it is an error, all labels equally probable."""
        self.n_rows += 1
        self.n_errors += found != label
        given = 1.0 / self._n_classes if probability is None else float(probability)
        self.loss -= math.log(min(max(given, LEAST), 1.0))

    def figures(self, *, with_loss: bool) -> tuple[float, float]:
        return self.n_errors / self.n_rows, self.loss / self.n_rows if with_loss else math.nan


def ours(parameters: dict[str, Any]) -> Callable[[Stream], tuple[float, float]]:
    """Return the run of an `OnlineNewtonClassifier` with some parameters set."""

    def run(stream: Stream) -> tuple[float, float]:
        classes = np.arange(stream.n_classes)
        model = OnlineNewtonClassifier(**parameters)
        n_errors = 0
        for X, y in _blocks(stream, BLOCK_ROWS):
            n_errors += int((model.partial_fit_predict(X, y, classes=classes) != y).sum())
        # With the curvature of the loss, what was paid is the log loss of the probabilities.
        logistic = model.loss == "logistic" and model.curvature == "loss"
        loss = model.cumulative_loss_ / stream.n_rows if logistic else math.nan
        return n_errors / stream.n_rows, loss

    return run


def _blocks(stream: Stream, rows: int) -> Iterator[tuple[Any, np.ndarray]]:
    for start in range(0, stream.n_rows, rows):
        yield stream.X[start : start + rows], stream.y[start : start + rows]


def vw(loss: str) -> Callable[[Stream], tuple[float, float]]:
    """Return the run of Vowpal Wabbit; several classes are one against all."""

    def run(stream: Stream) -> tuple[float, float]:
        from vowpalwabbit import Workspace

        n_classes, several, logistic = stream.n_classes, stream.n_classes > 2, loss == "logistic"
        words = ["--quiet", "--loss_function", loss, "-b", str(_bits(stream))]
        if several:
            words += ["--oaa", str(n_classes), *(["--probabilities"] if logistic else [])]
        workspace, tally = Workspace(" ".join(words)), Tally(n_classes)
        for text, label in zip(vw_lines(stream.X), stream.y.tolist(), strict=True):
            target = label + 1 if several else 2 * label - 1
            example = workspace.parse(f"{target} {text}")
            found = workspace.predict(example)
            probability = None
            if several and logistic:
                probability, found = found[label], int(np.argmax(found))
            elif several:
                found = int(found) - 1
            else:
                probability = 1.0 / (1.0 + math.exp(min(-target * found, 700.0)))
                found = int(found > 0)
            tally.add(label, found, probability)
            workspace.learn(example)
            workspace.finish_example(example)
        workspace.finish()
        return tally.figures(with_loss=logistic)

    return run


def _bits(stream: Stream) -> int:
    """Return the bits with which every column has weights of its own, at least the default."""
    per_class = math.ceil(math.log2(stream.n_classes)) if stream.n_classes > 2 else 0
    return max(18, math.ceil(math.log2(stream.X.shape[1] + 1)) + per_class)


def vw_lines(X: Any) -> Iterator[str]:
    """Yield rows as text; names that are numbers are columns, so that none share one."""
    rows = sp.csr_array(X)
    for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        entries = zip(
            rows.indices[start:stop].tolist(), rows.data[start:stop].tolist(), strict=True
        )
        yield "| " + " ".join(f"{j}:{x!r}" for j, x in entries)


def dictionaries(X: Any) -> Iterator[dict[int, float]]:
    """Yield rows as River takes them."""
    if not sp.issparse(X):
        yield from (dict(enumerate(row)) for row in X.tolist())
        return
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        entries = X.indices[start:stop].tolist(), X.data[start:stop].tolist()
        yield dict(zip(*entries, strict=True))


def river(make: Callable[[int], Any]) -> Callable[[Stream], tuple[float, float]]:
    """Return the run of a model of River, made for a number of classes."""

    def run(stream: Stream) -> tuple[float, float]:
        model, tally = make(stream.n_classes), Tally(stream.n_classes)
        labels = stream.y.tolist() if stream.n_classes > 2 else (stream.y > 0).tolist()
        for x, label in zip(dictionaries(stream.X), labels, strict=True):
            found = model.predict_proba_one(x)
            best = max(found, key=found.get) if found else None
            tally.add(label, best, found.get(label, 0.0) if found else None)
            model.learn_one(x, label)
        return tally.figures(with_loss=True)

    return run


def _logistic(n_classes: int) -> Any:
    from river import linear_model, multiclass, preprocessing

    model = linear_model.LogisticRegression()
    if n_classes > 2:
        model = multiclass.OneVsRestClassifier(model)
    return preprocessing.StandardScaler() | model


def _forest(n_classes: int) -> Any:
    from river import forest

    return forest.AMFClassifier(n_estimators=N_TREES, seed=0)


def _tree(n_classes: int) -> Any:
    from river import tree

    return tree.HoeffdingTreeClassifier()


def sgd(loss: str) -> Callable[[Stream], tuple[float, float]]:
    """Return the run of scikit-learn's stochastic gradient descent, one row at a time."""

    def run(stream: Stream) -> tuple[float, float]:
        model, tally = SGDClassifier(loss=loss, random_state=0), Tally(stream.n_classes)
        classes = np.arange(stream.n_classes)
        # Half of the time would go into checks of one row.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            for number, (x, y) in enumerate(_blocks(stream, 1)):
                label, found, probability = int(y[0]), None, None
                if number:
                    scores = np.ravel(x @ model.coef_.T) + model.intercept_
                    found = int(np.argmax(scores) if len(scores) > 1 else scores[0] > 0)
                    probability = _shares(scores)[label]
                tally.add(label, found, probability)
                model.partial_fit(x, y, classes=classes)
        return tally.figures(with_loss=loss == "log_loss")

    return run


def _shares(scores: np.ndarray) -> np.ndarray:
    """Return probabilities from scores as SGDClassifier does: one against the rest, to sum 1."""
    found = expit(scores)
    if len(found) == 1:
        return np.array([1.0 - found[0], found[0]])
    total = found.sum()
    return found / total if total > 0 else np.full(len(found), 1.0 / len(found))


OURS = "OnlineNewtonClassifier"
VW, VW_LOGISTIC = "VW default", "VW logistic"
RIVER, SGD, SGD_LOG = "River scaler + logistic", "SGDClassifier", "SGDClassifier log_loss"
# Whose errors ours are held against, and whose log losses.
PEERS = ((VW, VW_LOGISTIC), (RIVER,), (SGD,))
LOSS_PEERS = ((VW_LOGISTIC,), (RIVER,), (SGD_LOG,))


def methods(parameters: dict[str, Any]) -> dict[str, Method]:
    return {
        OURS: Method(ours(parameters)),
        VW: Method(vw("squared"), "vowpalwabbit"),
        VW_LOGISTIC: Method(vw("logistic"), "vowpalwabbit"),
        RIVER: Method(river(_logistic), "river"),
        SGD: Method(sgd("hinge"), most_weights=MOST_WEIGHTS),
        SGD_LOG: Method(sgd("log_loss"), most_weights=MOST_WEIGHTS),
        f"River AMF, {N_TREES} trees": Method(river(_forest), "river", small_only=True),
        "River Hoeffding tree": Method(river(_tree), "river", small_only=True),
    }
