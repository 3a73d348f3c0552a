"""Online learners, ours and the peers': how each is set up, fed and read."""

from __future__ import annotations

import importlib.util
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier

from benchmarks.speed.online import paper_in_numpy
from benchmarks.speed.online.data import Stream
from sksketch import OnlineNewtonClassifier

BLOCK_ROWS = 1000
LABELS = np.array([-1.0, 1.0])
# What the defaults were in version 0.1, so that kept figures of it compare.
PAPER = {"loss": "squared", "curvature": "gradient", "normalize": False}


@dataclass(frozen=True)
class Pass:
    """A learner that is set up: `learn`, which is timed, then `scores`, then `close`.

    ``scores`` gives the score of each row before it was learned, from what ``learn`` returned.
    """

    learn: Callable[[], Any]
    scores: Callable[[Any], np.ndarray] | None = None
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Method:
    """``begin(stream, setting)`` sets a learner up, untimed, and returns the pass to time.

    ``settings`` are those to choose from beside the default, the empty one; ``n_rows`` limits
    the rows of what is slow.
    """

    begin: Callable[[Stream, Any], Pass]
    settings: tuple[Any, ...] = ()
    n_rows: int | None = None
    missing: str = ""


@dataclass
class Line:
    """One method on one stream: seconds a row, accuracies, or why it was skipped."""

    n_rows: int = 0
    seconds: list[float] = field(default_factory=list)
    setup: float = math.nan
    accuracy: float = math.nan
    best_accuracy: float = math.nan
    best_setting: str = ""
    skipped: str = ""

    @property
    def microseconds(self) -> list[float]:
        return [1e6 * seconds / self.n_rows for seconds in self.seconds]

    @property
    def time(self) -> float:
        """Microseconds a row, the median of the repeats."""
        return statistics.median(self.microseconds) if self.seconds else math.nan


def ours(size: int) -> str:
    return f"OnlineNewtonClassifier m={size}"


def as_paper(size: int) -> str:
    """Return the name of ours with the curvature of the paper, a variant of the default."""
    return f"  as in the paper m={size}"


def paper(size: int) -> str:
    return f"paper in numpy m={size}"


def oja(size: int) -> str:
    return f"VW OjaNewton m={size}"


SGD_ROWS, SGD_WHOLE = "SGDClassifier, row by row", "SGDClassifier, whole"
RIVER, VW = "River LogisticRegression", "VW"


def methods(sizes: tuple[int, ...], slow_rows: int) -> dict[str, Method]:
    """Return every method; ``slow_rows`` is for what takes a millisecond for a row."""
    found = {ours(size): Method(partial(begin_ours, size)) for size in sizes}
    found |= {as_paper(size): Method(partial(begin_ours, size, **PAPER)) for size in sizes}
    for size in sizes:
        rows = max(slow_rows * 20 // max(size, 20), 4 * size)
        found[paper(size)] = Method(partial(begin_paper, size), n_rows=rows)
    hinge = [{"alpha": alpha} for alpha in (1e-6, 1e-5)]
    logistic = [{"alpha": alpha, "loss": "log_loss"} for alpha in (1e-6, 1e-5)]
    found[SGD_ROWS] = Method(begin_sgd_rows, n_rows=slow_rows)
    found[SGD_WHOLE] = Method(begin_sgd_whole, (*hinge, *logistic))
    found[RIVER] = Method(begin_river, (0.1, 1.0, 10.0), missing=missing("river"))
    logarithmic = "--loss_function logistic"
    steps = ("-l 0.1", logarithmic, f"{logarithmic} -l 4")
    found[VW] = Method(partial(begin_vw, ""), steps, missing=missing("vowpalwabbit"))
    inverses = tuple(f"--alpha_inverse {value:g}" for value in (0.1, 10.0))
    for size in sizes:
        options = f"--OjaNewton --sketch_size {size}"
        begin = partial(begin_vw, options)
        found[oja(size)] = Method(begin, inverses, missing=missing("vowpalwabbit"))
    return found


def missing(library: str) -> str:
    """Return why a peer can not run, or nothing."""
    found = importlib.util.find_spec(library)
    return "" if found else f"{library} is not installed; try pip install {library}"


def begin_ours(size: int, stream: Stream, setting: Any, **options: Any) -> Pass:
    model = OnlineNewtonClassifier(sketch_size=size, fit_intercept=False, **options)
    X, y = stream.X, stream.y

    def learn() -> list[np.ndarray]:
        said = []
        for start in range(0, X.shape[0], BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            said.append(model.partial_fit_predict(X[part], y[part], classes=LABELS))
        return said

    return Pass(learn, np.concatenate)


def begin_paper(size: int, stream: Stream, setting: Any) -> Pass:
    return Pass(lambda: paper_in_numpy.scores(stream.X, stream.y, size), lambda found: found)


def begin_sgd_rows(stream: Stream, setting: Any) -> Pass:
    model = SGDClassifier(fit_intercept=False, random_state=0)
    rows = [stream.X[i : i + 1] for i in range(len(stream.y))]

    def learn() -> None:
        for row, label in zip(rows, stream.y, strict=True):
            model.partial_fit(row, [label], classes=LABELS)

    return Pass(learn)


def begin_sgd_whole(stream: Stream, setting: Any) -> Pass:
    # One epoch over all rows in one call. It does not tell what it would have predicted on
    # the way, so its accuracy is found with `sgd_scores`.
    model = SGDClassifier(fit_intercept=False, random_state=0, shuffle=False, **(setting or {}))

    return Pass(
        lambda: model.partial_fit(stream.X, stream.y, classes=LABELS),
        lambda fitted: sgd_scores(stream, setting or {}),
    )


def sgd_scores(stream: Stream, setting: dict[str, Any]) -> np.ndarray:
    """Return the scores of rows before they are learned, in blocks of 10 to end in time."""
    model = SGDClassifier(fit_intercept=False, random_state=0, shuffle=False, **setting)
    found = np.zeros(len(stream.y))
    for start in range(0, len(found), 10):
        part = slice(start, start + 10)
        if start:
            found[part] = stream.X[part] @ model.coef_[0]
        model.partial_fit(stream.X[part], stream.y[part], classes=LABELS)
    return found


def begin_river(stream: Stream, setting: Any) -> Pass:
    from river import linear_model, optim

    step = {} if setting is None else {"optimizer": optim.SGD(setting)}
    model = linear_model.LogisticRegression(intercept_lr=0.0, **step)
    rows = _dictionaries(stream.X)
    labels = [bool(label > 0) for label in stream.y]

    def learn() -> list[bool | None]:
        said = []
        for row, label in zip(rows, labels, strict=True):
            said.append(model.predict_one(row))
            model.learn_one(row, label)
        return said

    return Pass(learn, lambda said: np.where(np.array(said, dtype=bool), 1.0, -1.0))


def _dictionaries(X: Any) -> list[dict[int, float]]:
    if not sp.issparse(X):
        return [dict(enumerate(row)) for row in X.tolist()]
    columns, values = X.indices.tolist(), X.data.tolist()
    edges = X.indptr.tolist()
    return [dict(zip(columns[a:b], values[a:b], strict=True)) for a, b in pairwise(edges)]


def begin_vw(options: str, stream: Stream, setting: Any) -> Pass:
    import vowpalwabbit
    from vowpalwabbit import pyvw

    bits = max(math.ceil(math.log2(stream.X.shape[1])), 4)
    model = vowpalwabbit.Workspace(f"--quiet --noconstant -b {bits} {options} {setting or ''}")
    examples = [
        model.parse(f"{label:g} | " + " ".join(f"{j}:{v:.8g}" for j, v in row.items()))
        for row, label in zip(_dictionaries(stream.X), stream.y, strict=True)
    ]
    learn_one = pyvw.pylibvw.vw.learn

    def learn() -> None:
        for example in examples:
            learn_one(model, example)

    def scores(nothing: None) -> np.ndarray:
        # An example keeps the prediction that was made before it was learned.
        return np.array([example.get_simplelabel_prediction() for example in examples])

    def close() -> None:
        for example in examples:
            model.finish_example(example)
        model.finish()

    return Pass(learn, scores, close)
