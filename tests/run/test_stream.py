"""`fit_stream`: the same bits however often a run is stopped, and a clear refusal otherwise."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, PowerTransformer

import sksketch
from sksketch import (
    OnlineNewtonRegressor,
    StreamingPCA,
    StreamingRidge,
    StreamingSVD,
    fit_stream,
    make_sketch,
    open_rows,
)
from sksketch.run.progress import ProgressLine
from sksketch.state.persistence import read_state
from sksketch.streams.prefetch import is_reading


class StoppedError(Exception):
    """Stands for whatever ends a run early."""


def stopper(n_rows):
    """Return a progress that ends the run once it has so many rows."""

    def stop(n_done, _n_rows):
        if n_done >= n_rows:
            raise StoppedError

    return stop


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3_000, 24)) * np.linspace(4, 1, 24) + 2.0
    return X, X @ rng.normal(size=24) + rng.normal(size=3_000)


def saved_bytes(model, folder):
    (model[-1] if hasattr(model, "steps") else model).save(folder / "model.sks")
    return (folder / "model.sks").read_bytes()


MODELS = {
    "pca": lambda: StreamingPCA(3),
    "pca on fd": lambda: StreamingPCA(3, sketch="rfd", sketch_size=5),
    "svd": lambda: StreamingSVD(3, sketch="2lfd", sketch_size=8),
    "svd on sparse fd": lambda: StreamingSVD(3, sketch="sfd", sketch_size=5),
    "ridge": lambda: StreamingRidge(2.0),
    "ridge on countsketch": lambda: StreamingRidge(2.0, sketch="countsketch"),
    "pipeline": lambda: make_pipeline(
        FunctionTransformer(np.abs), "passthrough", Normalizer(), StreamingPCA(3)
    ),
    **{
        key: lambda key=key: make_sketch(key, 6)
        for key in ("fd", "cfd", "exact", "gaussian", "sign", "countsketch", "srht", "sample")
    },
}


@pytest.mark.parametrize("name", MODELS)
def test_a_stopped_run_goes_on_to_the_same_bits(name, table, tmp_path):
    X, y = table
    # Sketches take targets only inside of a regression or a linear sketch.
    source = open_rows(X, target=y if "ridge" in name else None, batch_rows=170)
    whole = fit_stream(MODELS[name](), source, progress=False)
    expected = saved_bytes(whole, tmp_path)
    path = tmp_path / "run.checkpoint"
    for n_rows in (400, 1_111, 2_500):
        with pytest.raises(StoppedError):
            fit_stream(MODELS[name](), source, checkpoint=path, every=230, progress=stopper(n_rows))
        assert n_rows <= read_state(path).meta["rows_done"] < 3_000
    seen = []
    model = fit_stream(
        MODELS[name](), source, checkpoint=path, progress=lambda done, total: seen.append(done)
    )
    assert seen[0] >= 2_500
    assert saved_bytes(model, tmp_path) == expected
    assert read_state(path).meta["rows_done"] == 3_000


@pytest.mark.parametrize("missing", ["error", "mean", "drop"])
@pytest.mark.parametrize("form", ["csv", "parquet", "svmlight"])
def test_files_go_on_to_the_same_bits(form, missing, tmp_path):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(2_000, 6)), columns=list("abcdef"))
    if form == "svmlight":
        dump_svmlight_file(frame.to_numpy(), np.zeros(2_000), str(tmp_path / "rows.svmlight"))
    else:
        frame = frame.mask(rng.random(frame.shape) < (0.0 if missing == "error" else 0.02))
        frame.to_csv(tmp_path / "rows.csv", index=False)
        frame.to_parquet(tmp_path / "rows.parquet", row_group_size=300)
    file, path = tmp_path / f"rows.{form}", tmp_path / "run.checkpoint"

    def model():
        return StreamingPCA(2, sketch="rfd", sketch_size=3)

    whole = fit_stream(model(), open_rows(file, missing=missing), progress=False)
    for n_rows in (333, 1_201):
        source = open_rows(file, missing=missing)
        with pytest.raises(StoppedError):
            fit_stream(model(), source, checkpoint=path, every=77, progress=stopper(n_rows))
    resumed = fit_stream(model(), open_rows(file, missing=missing), checkpoint=path, progress=False)
    assert saved_bytes(resumed, tmp_path) == saved_bytes(whole, tmp_path)


@pytest.mark.parametrize("n_rows", [250, 700, 1_401])
def test_several_passes_go_on_in_any_of_them(n_rows, table, tmp_path):
    X, y = (part[:700] for part in table)
    pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(y=y).to_csv(
        tmp_path / "rows.csv", index=False
    )
    path = tmp_path / "run.checkpoint"

    def start(**options):
        model, source = OnlineNewtonRegressor(), open_rows(tmp_path / "rows.csv", target="y")
        return fit_stream(model, source, n_passes=3, **options)

    expected = OnlineNewtonRegressor()
    for _ in range(3):
        expected.partial_fit(X, y)
    with pytest.raises(StoppedError):
        start(checkpoint=path, every=70, progress=stopper(n_rows))
    seen = []
    resumed = start(checkpoint=path, progress=lambda done, total: seen.append((done, total)))
    assert n_rows <= seen[0][0] < seen[-1][0] == 2_100
    np.testing.assert_array_equal(resumed.coef_, expected.coef_)
    with pytest.raises(ValueError, match="n_passes is 0; give at least 1"):
        fit_stream(OnlineNewtonRegressor(), X, n_passes=0)


KILLED = """
import sys
from sksketch import StreamingPCA, StreamingRidge, fit_stream, open_rows

folder = sys.argv[1]
print("ready", flush=True)
for name, model, target in [
    ("pca", StreamingPCA(3, sketch="rfd", sketch_size=8), None),
    ("ridge", StreamingRidge(1.0), 0),
]:
    source = open_rows(f"{folder}/rows.npy", target=target, batch_rows=100)
    checkpoint = f"{folder}/{name}.checkpoint"
    fit_stream(model, source, checkpoint=checkpoint, every=100, progress=False)
    model.save(f"{folder}/{name}.sks")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX signals")
def test_killed_at_any_moment_the_next_run_gives_the_same_file(tmp_path):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(12_000, 60)))
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    chance = random.Random(0)
    n_done = [0]
    # On a busy machine the first checkpoint may take longer than a few kills.
    while len(n_done) < 5 or (n_done[-1] == 0 and len(n_done) < 50):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(chance.uniform(0.0, 0.4))
            process.kill()
        found = [read_state(path).meta["rows_done"] for path in tmp_path.glob("*.checkpoint")]
        n_done.append(sum(found))
    assert n_done == sorted(n_done)
    assert n_done[-1] > 0
    (tmp_path / ".pca.checkpoint.0123abcd.tmp").touch()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert not list(tmp_path.glob(".*.tmp"))
    for name, model, target in [
        ("pca", StreamingPCA(3, sketch="rfd", sketch_size=8), None),
        ("ridge", StreamingRidge(1.0), 0),
    ]:
        source = open_rows(tmp_path / "rows.npy", target=target)
        expected = saved_bytes(fit_stream(model, source, progress=False), tmp_path)
        assert (tmp_path / f"{name}.sks").read_bytes() == expected


def stopped_checkpoint(path, model, source):
    with pytest.raises(StoppedError):
        fit_stream(model, source, checkpoint=path, every=200, progress=stopper(1_000))
    return path.read_bytes()


def test_other_parameters_another_class_or_another_source_are_refused(table, tmp_path):
    X, y = table
    path = tmp_path / "run.checkpoint"
    source = open_rows(X, target=y)
    before = stopped_checkpoint(path, StreamingRidge(2.0), source)
    for model, rows, difference in [
        (StreamingRidge(3.0), source, "the estimator has changed: alpha was 2.0 and is 3.0"),
        (StreamingPCA(), source, "class was 'StreamingRidge' and is 'StreamingPCA'"),
        (StreamingRidge(2.0), open_rows(X + 1, target=y), "the source has changed"),
        (StreamingRidge(2.0), open_rows(X, target=3), "the source has changed"),
    ]:
        with pytest.raises(ValueError, match=r"delete the file, or pass resume=False") as caught:
            fit_stream(model, rows, checkpoint=path, progress=False)
        assert difference in str(caught.value)
        assert path.read_bytes() == before
    fresh = fit_stream(StreamingRidge(3.0), source, checkpoint=path, progress=False, resume=False)
    assert fresh.n_samples_seen_ == 3_000


def test_a_changed_file_is_noticed_and_named(table, tmp_path):
    file, path = tmp_path / "rows.npy", tmp_path / "run.checkpoint"
    np.save(file, table[0])
    stopped_checkpoint(path, StreamingPCA(2), open_rows(file))
    changed = table[0].copy()
    changed[0, 0] += 1
    np.save(file, changed)
    with pytest.raises(ValueError, match=r"source has changed: rows\.npy is not the same file"):
        fit_stream(StreamingPCA(2), file, checkpoint=path, progress=False)


def test_another_function_in_a_pipeline_is_noticed(table, tmp_path):
    path = tmp_path / "run.checkpoint"
    first = make_pipeline(FunctionTransformer(lambda X: X * 2), StreamingPCA(2))
    stopped_checkpoint(path, first, open_rows(table[0]))
    other = make_pipeline(FunctionTransformer(lambda X: X * 3), StreamingPCA(2))
    with pytest.raises(ValueError, match="the estimator has changed"):
        fit_stream(other, table[0], checkpoint=path, progress=False)


def test_a_pipeline_learns_from_transformed_rows(table):
    X, _ = table
    steps = make_pipeline(FunctionTransformer(np.log1p), Normalizer(), StreamingPCA(2))
    steps = fit_stream(steps, np.abs(X), progress=False)
    direct = StreamingPCA(2).fit(Normalizer().transform(np.log1p(np.abs(X))))
    np.testing.assert_allclose(steps[-1].explained_variance_, direct.explained_variance_)
    assert steps.transform(np.abs(X)).shape == (3_000, 2)


def test_what_can_not_be_streamed_is_refused(table, tmp_path):
    X, y = table
    with pytest.raises(ValueError, match=r"\(PowerTransformer\) learns from all rows at once"):
        fit_stream(make_pipeline(PowerTransformer(), StreamingPCA()), X)
    with pytest.raises(TypeError, match="no partial_fit"):
        fit_stream(Normalizer().fit, X)
    with pytest.raises(ValueError, match="has rows already"):
        fit_stream(make_sketch("fd", 4).update(X), X)
    with pytest.raises(ValueError, match="every is 0"):
        fit_stream(StreamingPCA(), X, every=0)
    with pytest.raises(ValueError, match="gave no rows"):
        fit_stream(StreamingPCA(), np.empty((0, 3)), progress=False)
    with pytest.raises(TypeError, match="cannot be saved as plain data"):
        fit_stream(SGDRegressor(), open_rows(X, target=y), checkpoint=tmp_path / "run.checkpoint")
    assert fit_stream(SGDRegressor(), open_rows(X / 10, target=y), progress=False).t_ > 3_000


def test_a_file_that_is_no_checkpoint_is_not_overwritten(table, tmp_path):
    path = tmp_path / "model.sks"
    StreamingPCA(2).fit(table[0]).save(path)
    before = path.read_bytes()
    for resume in (True, False):
        with pytest.raises(sksketch.StateFormatError, match="not a checkpoint"):
            fit_stream(StreamingPCA(2), table[0], checkpoint=path, resume=resume, progress=False)
    assert path.read_bytes() == before


def test_as_fit_it_forgets_what_was_learned_before(table):
    X, _ = table
    model = StreamingPCA(2).fit(X[:100, :5])
    fit_stream(model, X, progress=False)
    assert (model.n_samples_seen_, model.n_features_in_) == (3_000, 24)


def test_names_of_columns_come_with_the_source(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("a,b\n1,2\n3,5\n4,4\n")
    model = fit_stream(StreamingPCA(1), file, progress=False)
    assert list(model.feature_names_in_) == ["a", "b"]


def test_a_source_that_fails_leaves_the_rows_before(tmp_path):
    def blocks():
        for _ in range(4):
            yield np.ones((10, 2))
        raise OSError("the disk is gone")

    path = tmp_path / "run.checkpoint"
    with pytest.raises(OSError, match="the disk is gone"):
        fit_stream(make_sketch("exact", 2), blocks(), checkpoint=path, progress=False)
    assert read_state(path).meta["rows_done"] == 40


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_an_interrupt_waits_for_the_block_and_saves(tmp_path):
    class Interrupting(StreamingPCA):
        def partial_fit(self, X, y=None, sample_weight=None):
            if self.__dict__.get("_sketch") is not None:
                os.kill(os.getpid(), signal.SIGINT)
            return super().partial_fit(X)

    rows = np.random.default_rng(0).normal(size=(100, 3))
    path = tmp_path / "run.checkpoint"
    # A shell's background jobs are started with Ctrl-C ignored.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        source = open_rows(rows, batch_rows=10)
        with pytest.raises(KeyboardInterrupt):
            fit_stream(Interrupting(1), source, checkpoint=path, progress=False)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, former)
    assert read_state(path).meta["rows_done"] == 20


class Terminal(io.StringIO):
    """A file that says it is a terminal."""

    def isatty(self):
        return True


def test_progress_is_a_line_with_rows_speed_and_time_left(table, capsys):
    fit_stream(StreamingPCA(2), table[0])
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("3,000 of 3,000 rows (100%), ")
    assert err.endswith(" rows/s\n")
    fit_stream(StreamingPCA(2), (block for block in [table[0][:700]]))
    assert capsys.readouterr().err.startswith("700 rows, ")
    fit_stream(StreamingPCA(2), table[0], progress=False)
    assert capsys.readouterr().err == ""

    # Where a notebook's output is, too, the line is written over.
    notebook = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})
    for file in (Terminal(), notebook()):
        line = ProgressLine(file)
        line(0, 4_000)
        time.sleep(0.12)
        line(1_000, 4_000)
        line.finish()
        assert "\r1,000 of 4,000 rows (25%), " in file.getvalue()
        assert " s left" in file.getvalue()


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9), reason="no callbacks yet"
)
def test_callbacks_of_scikit_learn_hear_of_every_block(table):
    class Listener:
        def __init__(self):
            self.heard = []

        def setup(self, estimator, context):
            self.heard.append("setup")

        def teardown(self, estimator, context):
            self.heard.append("teardown")

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, X=None):
            self.heard.append((context.task_name, None if X is None else len(X)))

    listener = Listener()
    model = StreamingPCA(2).set_callbacks(listener)
    fit_stream(model, open_rows(table[0], batch_rows=1_200), progress=False)
    blocks = [("block", 1_200), ("block", 1_200), ("block", 600)]
    assert listener.heard == ["setup", *blocks, ("fit_stream", None), "teardown"]
    listener.heard.clear()
    model.fit(table[0])
    assert listener.heard == ["setup", ("fit", None), "teardown"]


class _Refusing(StreamingPCA):
    def partial_fit(self, X, y=None, sample_weight=None):
        raise ValueError("not these rows")


@pytest.mark.parametrize(("model", "hole"), [(StreamingPCA(2), np.nan), (_Refusing(2), 0.0)])
def test_an_error_that_is_kept_does_not_keep_the_thread_that_reads(tmp_path, model, hole):
    X = np.random.default_rng(0).standard_normal((200_000, 20))
    X[30_000, 3] = hole
    pd.DataFrame(X, columns=[f"c{i}" for i in range(20)]).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="missing value|not these rows") as kept:
        fit_stream(model, tmp_path / "rows.parquet", progress=False)
    assert kept.value.__traceback__ is not None
    assert not is_reading()
