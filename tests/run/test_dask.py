"""Dask on threads: every kind of collection, lazy answers, and mistakes that name themselves."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from sksketch import (
    FrequentDirections,
    GaussianSketch,
    NotMergeableError,
    OnlineNewtonClassifier,
    OnlineNewtonRegressor,
    PartitionError,
    RandomFeatures,
    ReducedClassifier,
    ReducedRegressor,
    StreamingKernelCCA,
    StreamingKernelPCA,
    StreamingOutlierDetector,
    StreamingPCA,
    StreamingRidge,
    StreamingSpectralClustering,
    StreamingSVD,
    SubspaceReduction,
    fit_dask,
    sketch_dask,
)
from sksketch.run.shards import Rows, learn_shard, merge_tree, shard_template
from sksketch.state.persistence import to_bytes

dask = pytest.importorskip("dask", reason="needs the extra dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((800, 20)) / np.arange(1, 21) + 1.0
Y = X @ np.arange(20.0)
CHUNKS = (150, 150, 0, 250, 250)
NAMES = [f"c{i}" for i in range(20)]


def pca():
    return StreamingPCA(3, sketch="rfd", sketch_size=6)


def reference(estimator, blocks, fan_in=8):
    """The in-process tree of the same partitions."""
    template = shard_template(estimator)
    shards = [learn_shard(template, [Rows(b)], i, len(blocks)) for i, b in enumerate(blocks)]
    return to_bytes(merge_tree(type(estimator), shards, fan_in).state)


def cut(rows, lengths=CHUNKS):
    return [rows[sum(lengths[:i]) : sum(lengths[: i + 1])] for i in range(len(lengths))]


def frame():
    return dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=4)


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_an_array_is_learned_as_in_the_reference_tree(scheduler):
    with dask.config.set(scheduler=scheduler):
        found = pca().fit(da.from_array(X, chunks=(CHUNKS, 20)))
    assert to_bytes(found.state()) == reference(pca(), cut(X))
    error = np.linalg.norm(np.cov(X.T) * 799 - found.sketch_.summary().to_dense(), 2)
    assert error <= found.certificate_.spectral_error[1]


def test_chunks_of_columns_change_nothing():
    by_columns = da.from_array(X, chunks=(CHUNKS, 7))
    assert to_bytes(pca().fit(by_columns).state()) == reference(pca(), cut(X))
    assert pca().fit(by_columns).transform(by_columns).compute().shape == (800, 3)


@pytest.mark.parametrize("width", [20, 8])
def test_sparse_chunks_stay_sparse(width):
    rows = sp.random_array((800, 20), density=0.2, format="csr", rng=np.random.default_rng(1))
    chunked = da.from_array(rows.toarray(), chunks=(200, width)).map_blocks(sp.csr_array)
    svd = fit_dask(StreamingSVD(2, sketch="sfd", sketch_size=5), chunked)
    expected = reference(StreamingSVD(2, sketch="sfd", sketch_size=5), cut(rows, [200] * 4))
    assert to_bytes(svd.state()) == expected


def test_chunks_of_unknown_length():
    rows = da.from_array(X, chunks=(200, 20))
    some = rows[da.from_array(X[:, 0] > 1.0, chunks=200)]
    assert np.isnan(some.chunks[0][0])
    kept = [part[part[:, 0] > 1.0] for part in cut(X, [200] * 4)]
    found = pca().fit(some)
    assert to_bytes(found.state()) == reference(pca(), kept)
    assert found.transform(some).compute().shape == (sum(map(len, kept)), 3)


def test_a_frame_gives_names_and_gets_named_columns():
    found = pca().fit(frame())
    assert list(found.feature_names_in_) == NAMES
    scores = found.transform(frame())
    assert list(scores.columns) == ["streamingpca0", "streamingpca1", "streamingpca2"]
    expected = found.transform(pd.DataFrame(X, columns=NAMES))
    np.testing.assert_allclose(scores.compute().to_numpy(), expected)
    assert list(scores.compute().index) == list(range(800))
    with pytest.raises(ValueError, match="feature names"):
        found.transform(frame()[NAMES[::-1]])
    with pytest.raises(ValueError, match="set_output makes tables in memory"):
        found.set_output(transform="pandas").transform(frame())


def test_delayed_blocks():
    parts = [dask.delayed(block) for block in cut(X)]
    found = fit_dask(pca(), parts)
    assert to_bytes(found.state()) == reference(pca(), cut(X))
    assert [s.compute().shape for s in found.transform([parts[0], parts[1]])] == [(150, 3)] * 2
    with pytest.raises(TypeError, match="give a list of them"):
        fit_dask(pca(), parts[0])


def test_targets_and_weights_come_with_their_rows():
    rows, weights = da.from_array(X, chunks=(CHUNKS, 20)), RNG.uniform(0.5, 2.0, 800)
    y, w = da.from_array(Y, chunks=300), da.from_array(weights, chunks=100)
    ridge = fit_dask(StreamingRidge(3.0), rows, y, w)
    expected = StreamingRidge(3.0).fit(X, Y, weights)
    np.testing.assert_allclose(ridge.coef_, expected.coef_, rtol=1e-8)
    lazy = ridge.predict(rows)
    assert lazy.shape == (800,)
    assert lazy.chunks == (CHUNKS,)
    np.testing.assert_allclose(lazy.compute(), expected.predict(X))
    table = frame().assign(y=Y[0])
    of_frame = StreamingRidge().fit(table[NAMES], table["c0"])
    assert of_frame.predict(table[NAMES]).compute().shape == (800,)
    several = StreamingRidge().fit(rows, da.from_array(np.stack([Y, -Y], axis=1), chunks=(80, 1)))
    assert several.predict(rows).compute().shape == (800, 2)


def test_targets_in_other_partitions_are_refused():
    rows = da.from_array(X, chunks=(200, 20))
    with pytest.raises(ValueError, match="700 rows and X has 800"):
        fit_dask(StreamingRidge(), rows, da.from_array(Y[:700], chunks=100))
    with pytest.raises(ValueError, match="4 partitions and X has 2, of unknown"):
        fit_dask(StreamingRidge(), [dask.delayed(X)] * 2, da.from_array(Y, chunks=200))
    with pytest.raises(PartitionError, match="partition 1 of 2: it has 800 rows and 400 targets"):
        fit_dask(
            StreamingRidge(),
            [dask.delayed(X)] * 2,
            [dask.delayed(Y), dask.delayed(Y[:400])],
        )
    with pytest.raises(TypeError, match="y is in memory"):
        fit_dask(StreamingRidge(), rows, Y)
    with pytest.raises(TypeError, match="expected a dask array"):
        fit_dask(pca(), X)
    with pytest.raises(TypeError, match="takes no sample_weight"):
        fit_dask(StreamingKernelPCA(solver="sketch"), rows, sample_weight=rows[:, 0])


def test_kernels_and_subspaces():
    rows = da.from_array(X, chunks=(200, 20))
    kernel = StreamingKernelPCA(2, solver="sketch", n_random_features=32).fit(rows)
    scores = kernel.transform(rows)
    assert isinstance(scores, da.Array)
    np.testing.assert_allclose((scores.compute() ** 2).mean(axis=0), kernel.eigenvalues_)
    reduction = SubspaceReduction(3, n_power_iter=1)
    assert reduction.fit_transform(rows).compute().shape == (800, 3)
    top = np.linalg.svd(X)[2][0]
    assert np.linalg.norm(reduction.components_ @ top) > 0.999


def test_sketches_number_their_partitions():
    rows = da.from_array(X, chunks=(200, 20))
    sketch = GaussianSketch(5, shard=1)
    assert sketch_dask(sketch, rows, fan_in=2) is sketch
    assert sketch.shards == (4, 5, 6, 7)
    with pytest.raises(TypeError, match="call fit_dask"):
        sketch_dask(pca(), rows)
    with pytest.raises(ValueError, match="has rows already"):
        sketch_dask(sketch, rows)


def test_partial_fit_goes_on():
    rows = da.from_array(X, chunks=(200, 20))
    found = StreamingPCA(2).partial_fit(rows).partial_fit(rows)
    assert found.n_samples_seen_ == 1600
    with pytest.raises(NotMergeableError, match="call fit, or"):
        StreamingKernelPCA(2, solver="sketch").fit(X).partial_fit(rows)


def test_progress_counts_rows_of_all_passes():
    seen = []
    rows = da.from_array(X, chunks=(CHUNKS, 20))
    reduction = SubspaceReduction(3, n_power_iter=1)
    fit_dask(reduction, rows, progress=lambda done, n: seen.append((done, n)))
    assert seen[0] == (0, 1600)
    assert seen[-1] == (1600, 1600)
    assert sorted(seen) == seen
    fit_dask(pca(), [dask.delayed(X)], progress=lambda done, n: seen.append((done, n)))
    assert seen[-1] == (800, None)


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_a_partition_that_can_not_be_read_names_itself(scheduler):
    def read(i):
        if i == 2:
            raise OSError("the disk is gone")
        return cut(X)[i]

    blocks = [dask.delayed(read)(i) for i in range(5)]
    model = pca().fit(X)
    with (
        dask.config.set(scheduler=scheduler),
        pytest.raises(PartitionError, match="^partition 2 of 5: the disk is gone"),
    ):
        fit_dask(model, blocks)
    assert model.n_samples_seen_ == 800


def test_a_corrupt_partition_names_itself():
    bad = X.copy()
    bad[400, 3] = np.inf
    with pytest.raises(PartitionError, match="^partition 3 of 5: "):
        pca().fit(da.from_array(bad, chunks=(CHUNKS, 20)))


def test_what_can_not_be_merged_is_refused_before_any_work():
    def explode():
        raise AssertionError("was computed")

    rows = [dask.delayed(explode)()]
    with pytest.raises(NotMergeableError, match="each step depends"):
        fit_dask(OnlineNewtonRegressor(), rows)
    with pytest.raises(NotMergeableError, match="each step depends"):
        OnlineNewtonRegressor().fit(da.from_array(X), da.from_array(Y))
    with pytest.raises(NotMergeableError, match="solver='sketch'"):
        StreamingKernelPCA(2).fit(rows)
    with pytest.raises(ValueError, match="fan_in is 1"):
        fit_dask(pca(), rows, fan_in=1)


MISSING = """
import sys
sys.modules["dask"] = sys.modules["pyspark"] = None
import numpy, sksketch
for call in (
    lambda: sksketch.fit_dask(sksketch.StreamingPCA(), numpy.ones((2, 2))),
    lambda: sksketch.fit_spark(sksketch.StreamingPCA(), None),
    lambda: sksketch.transform_spark(sksketch.StreamingPCA(), None),
):
    try:
        call()
    except ImportError as error:
        print(error)
"""


def test_a_missing_extra_names_itself():
    command = [sys.executable, "-c", MISSING]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    spark = "pyspark is needed: pip install 'scikit-sketch[spark]'"
    assert done.stdout.splitlines() == [
        "dask is needed: pip install 'scikit-sketch[dask]'",
        spark,
        spark,
    ]


def test_fan_in_is_part_of_the_result_and_the_scheduler_is_not():
    rows = da.from_array(X, chunks=(50, 20))
    found = {}
    for fan_in in (2, 5):
        for scheduler in ("sync", "threads"):
            with dask.config.set(scheduler=scheduler):
                sketch = sketch_dask(FrequentDirections(4), rows, fan_in=fan_in)
            found[fan_in, scheduler] = to_bytes(sketch.state())
        assert found[fan_in, "sync"] == found[fan_in, "threads"]
    assert found[2, "sync"] != found[5, "sync"]


LABELS = np.array(["low", "middle", "highest"])[(X[:, 0] > 1).astype(int) + (X[:, 0] > 2)]
ANSWERS = [
    (StreamingPCA(3), "score_samples reconstruction_error"),
    (OnlineNewtonRegressor(), "predict"),
    (OnlineNewtonClassifier(), "predict decision_function predict_proba predict_log_proba"),
    (ReducedClassifier(8, loss="logistic"), "predict decision_function predict_proba"),
    (ReducedRegressor(8), "predict"),
    (RandomFeatures(n_random_features=16), "transform"),
    (StreamingKernelCCA(2, n_random_features=32), "transform"),
    (StreamingSpectralClustering(2), "predict transform"),
    (StreamingOutlierDetector(), "score_samples contributions decision_function predict"),
]


@pytest.mark.parametrize(("model", "methods"), ANSWERS, ids=lambda part: str(part)[:24])
def test_every_answer_is_lazy(model, methods):
    from sklearn.base import clone, is_classifier

    targets = LABELS if is_classifier(model) else Y
    if isinstance(model, StreamingKernelCCA):
        targets = X[:, :5]
    found = clone(model).fit(X, targets)
    rows = da.from_array(X, chunks=(CHUNKS, 7))
    for method in methods.split():
        wanted, lazy = getattr(found, method)(X), getattr(found, method)(rows)
        assert isinstance(lazy, da.Array)
        assert lazy.shape == wanted.shape
        some = lazy.compute()
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(some, wanted, rtol=1e-9, atol=1e-12)
        else:
            np.testing.assert_array_equal(some, wanted)
