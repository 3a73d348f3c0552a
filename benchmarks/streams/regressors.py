"""Regressions at their defaults, each row predicted before it is learned from."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import SGDRegressor

from benchmarks.streams.classifiers import dictionaries, vw_lines
from benchmarks.streams.data import Stream
from sksketch import OnlineNewtonRegressor, StreamingRidge


@dataclass(frozen=True)
class Method:
    """``run(stream)`` gives every prediction before its row was learned from."""

    run: Callable[[Stream], np.ndarray]
    needs: str = ""

    def skipped(self, stream: Stream) -> str:
        """Return why it cannot run, or nothing."""
        missing = self.needs and importlib.util.find_spec(self.needs) is None
        return f"{self.needs} is not installed" if missing else ""

    def figures(self, stream: Stream) -> tuple[float, float]:
        """Return the mean absolute error and the root of the mean squared error."""
        # Learners that diverge are shown as they are.
        with np.errstate(over="ignore", invalid="ignore"):
            errors = self.run(stream) - stream.y
            return float(np.abs(errors).mean()), math.sqrt(float((errors**2).mean()))


def ours(parameters: dict[str, Any]) -> Callable[[Stream], np.ndarray]:
    """Return the run of an `OnlineNewtonRegressor` with some parameters set."""

    def run(stream: Stream) -> np.ndarray:
        model = OnlineNewtonRegressor(**parameters)
        return np.asarray(model.partial_fit_predict(stream.X, stream.y))

    return run


def _vw(stream: Stream) -> np.ndarray:
    from vowpalwabbit import Workspace

    workspace, found = Workspace("--quiet"), []
    for text, target in zip(vw_lines(stream.X), stream.y.tolist(), strict=True):
        example = workspace.parse(f"{target!r} {text}")
        found.append(workspace.predict(example))
        workspace.learn(example)
        workspace.finish_example(example)
    workspace.finish()
    return np.array(found)


def _river(stream: Stream) -> np.ndarray:
    from river import linear_model, preprocessing

    model = preprocessing.StandardScaler() | linear_model.LinearRegression()
    found = []
    for x, target in zip(dictionaries(stream.X), stream.y.tolist(), strict=True):
        found.append(model.predict_one(x))
        model.learn_one(x, target)
    return np.array(found)


def _by_rows(make: Callable[[], Any]) -> Callable[[Stream], np.ndarray]:
    """Return the run of an estimator of scikit-learn's form; 0 is predicted at first."""

    def run(stream: Stream) -> np.ndarray:
        model = make()

        def predictions() -> Iterator[float]:
            for i in range(stream.n_rows):
                x = stream.X[i : i + 1]
                yield float(model.predict(x)[0]) if i else 0.0
                model.partial_fit(x, stream.y[i : i + 1])

        return np.fromiter(predictions(), np.float64, stream.n_rows)

    return run


def _mean(stream: Stream) -> np.ndarray:
    """Predict the mean of the targets so far."""
    sums = np.concatenate([[0.0], np.cumsum(stream.y)[:-1]])
    return sums / np.maximum(np.arange(stream.n_rows), 1)


OURS = "OnlineNewtonRegressor"
VW, RIVER, SGD = "VW default", "River scaler + linear", "SGDRegressor"
PEERS = ((VW,), (RIVER,), (SGD,))


def methods(parameters: dict[str, Any]) -> dict[str, Method]:
    return {
        OURS: Method(ours(parameters)),
        VW: Method(_vw, "vowpalwabbit"),
        RIVER: Method(_river, "river"),
        SGD: Method(_by_rows(lambda: SGDRegressor(random_state=0))),
        "StreamingRidge": Method(_by_rows(StreamingRidge)),
        "mean so far": Method(_mean),
    }
