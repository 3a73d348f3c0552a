"""Spark: the same bytes as on dask, columns of every kind, and tasks that fail and come again."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from sksketch import (
    FrequentDirections,
    GaussianSketch,
    NotMergeableError,
    OnlineNewtonRegressor,
    PartitionError,
    StreamingCCA,
    StreamingGLM,
    StreamingKernelPCA,
    StreamingPCA,
    StreamingRidge,
    StreamingSVD,
    SubspaceReduction,
    fit_dask,
    fit_spark,
    sketch_dask,
    transform_spark,
)
from sksketch.state.persistence import to_bytes

pyspark = pytest.importorskip("pyspark", reason="needs the extra spark")
da = pytest.importorskip("dask.array", reason="needs the extra dask")

pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
    # Spark's own, of its pandas and of sockets that it leaves to the collector.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

# One test of a real session is part of every run.
slow = pytest.mark.slow
N_PARTS, PART_ROWS, N_FEATURES = 8, 250, 10
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N_PARTS * PART_ROWS, N_FEATURES)) / np.arange(1, N_FEATURES + 1) + 0.3
NAMES = [f"c{i}" for i in range(N_FEATURES)]


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = (
            # Two threads, and two attempts for every task.
            SparkSession.builder.master("local[2,2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.host", "127.0.0.1")
            # Several batches in each partition.
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture(scope="module")
def frame(spark):
    """The rows of X, with those of partition i in partition i."""
    numbers = spark.sparkContext.parallelize(range(N_PARTS), N_PARTS)
    rows = X

    def part(i):
        return [tuple(map(float, row)) for row in rows[i * PART_ROWS : (i + 1) * PART_ROWS]]

    return spark.createDataFrame(numbers.flatMap(part), NAMES).cache()


def on_dask():
    return da.from_array(X, chunks=(PART_ROWS, N_FEATURES))


@pytest.mark.parametrize(
    ("sketch", "fan_in"),
    [(FrequentDirections(4), 3), pytest.param(GaussianSketch(4, seed=3), 2, marks=slow)],
    ids=["fd", "gaussian"],
)
def test_eight_partitions_give_the_bytes_of_dask(frame, sketch, fan_in):
    assert frame.rdd.getNumPartitions() == N_PARTS
    here = fit_spark(sketch.fresh(), frame, fan_in=fan_in)
    there = sketch_dask(sketch.fresh(), on_dask(), fan_in=fan_in)
    assert to_bytes(here.state()) == to_bytes(there.state())


@slow
def test_pca_holds_its_certificate_and_is_applied(frame):
    pca = fit_spark(StreamingPCA(2, sketch="rfd", sketch_size=4), frame)
    twin = fit_dask(StreamingPCA(2, sketch="rfd", sketch_size=4), on_dask())
    assert to_bytes(pca.sketch_.state()) == to_bytes(twin.sketch_.state())
    assert list(pca.feature_names_in_) == NAMES
    scatter = np.cov(X.T) * (len(X) - 1)
    error = np.linalg.norm(scatter - pca.sketch_.summary().to_dense(), 2)
    assert error <= pca.certificate_.spectral_error[1]
    scores = transform_spark(pca, frame, output="pc")
    assert scores.dtypes[-1] == ("pc", "array<double>")
    found = np.array([row.pc for row in scores.select("pc").collect()])
    np.testing.assert_array_equal(found, twin.transform(X))
    with pytest.raises(ValueError, match="has a column 'c0' already"):
        transform_spark(pca, frame, output="c0")
    with pytest.raises(ValueError, match="has learned from"):
        transform_spark(pca, frame, features=NAMES[::-1])


@slow
def test_targets_and_weights(frame):
    weighted = frame.withColumnRenamed("c9", "w").selectExpr(*NAMES[:9], "w * w as w")
    ridge = fit_spark(StreamingRidge(2.0), weighted, target="c0", weight="w")
    expected = StreamingRidge(2.0).fit(X[:, 1:9], X[:, 0], X[:, 9] ** 2)
    np.testing.assert_allclose(ridge.coef_, expected.coef_, rtol=1e-8)
    answers = transform_spark(ridge, weighted, output="y")
    assert answers.dtypes[-1] == ("y", "double")
    assert answers.head().y == pytest.approx(expected.predict(X[:1, 1:9])[0])


@slow
def test_pilots_and_passes(frame):
    kernel = fit_spark(StreamingKernelPCA(2, solver="sketch", n_random_features=32), frame)
    twin = fit_dask(StreamingKernelPCA(2, solver="sketch", n_random_features=32), on_dask())
    np.testing.assert_allclose(kernel.eigenvalues_, twin.eigenvalues_)
    reduction = fit_spark(SubspaceReduction(3, n_power_iter=1), frame)
    alike = fit_dask(SubspaceReduction(3, n_power_iter=1), on_dask())
    # Power passes add up block by block, and Spark cuts its own blocks.
    np.testing.assert_allclose(reduction.components_, alike.components_, rtol=1e-9)


@slow
def test_vectors_and_arrays(spark):
    from pyspark.ml.linalg import Vectors

    rows = RNG.standard_normal((60, 6)) * (RNG.uniform(size=(60, 6)) < 0.5)
    vectors = [
        Vectors.dense(row) if i % 3 == 0 else Vectors.sparse(6, dict(enumerate(row)))
        for i, row in enumerate(rows)
    ]
    several = spark.createDataFrame(
        [(v, Vectors.dense(r), [float(x) for x in r]) for v, r in zip(vectors, rows, strict=True)],
        ["mixed", "dense", "array"],
    ).repartition(3)
    expected = StreamingSVD(2).fit(rows).singular_values_
    for name in ("mixed", "dense", "array"):
        svd = fit_spark(StreamingSVD(2), several, features=name)
        np.testing.assert_allclose(svd.singular_values_, expected)
    assert len(transform_spark(svd, several, features="mixed").head().scores) == 2
    sparse = fit_spark(StreamingSVD(2, sketch="sfd", sketch_size=3), several, features="mixed")
    assert sparse.n_samples_seen_ == 60
    with pytest.raises(ValueError, match="one of vectors or arrays"):
        fit_spark(StreamingSVD(2), several, features=["mixed", "dense"])


@slow
def test_empty_partitions_and_shuffles(frame):
    few = frame.filter("c0 > 3.0")
    assert fit_spark(StreamingPCA(1), few).n_samples_seen_ == np.sum(X[:, 0] > 3.0)
    groups = frame.selectExpr("cast(c0 * 10 as int) as k", "c1").groupBy("k").sum("c1")
    assert fit_spark(StreamingPCA(1), groups).n_samples_seen_ == groups.count()
    with pytest.raises(ValueError, match="hold no rows"):
        fit_spark(StreamingPCA(1), frame.filter("c0 > 1e9"))


@slow
def test_a_corrupt_partition_names_itself(spark, frame):
    numbers = spark.sparkContext.parallelize(range(4), 4)

    rows = numbers.flatMap(lambda i: [(float(i), None if i == 2 else 1.0)] * 3)
    broken = spark.createDataFrame(rows, "a double, b double")
    with pytest.raises(PartitionError, match="^partition 2 of 4: column 'b' has a missing value"):
        fit_spark(StreamingPCA(1), broken)


@slow
def test_mistakes_are_told_before_any_work(frame):
    with pytest.raises(NotMergeableError, match="each step depends"):
        fit_spark(OnlineNewtonRegressor(), frame)
    with pytest.raises(ValueError, match="no column 'nothing'"):
        fit_spark(StreamingPCA(), frame, features=["nothing"])
    with pytest.raises(ValueError, match="column 'name' is string"):
        fit_spark(StreamingPCA(), frame.selectExpr("c0", "'x' as name"))


@slow
def test_a_task_that_kills_its_worker_once_costs_a_retry(spark, frame, tmp_path):
    mark = str(tmp_path / "killed")

    def deadly(batches):
        from pyspark import TaskContext

        for batch in batches:
            if TaskContext.get().partitionId() == 3 and not Path(mark).exists():
                Path(mark).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    risky = frame.mapInArrow(deadly, frame.schema)
    here = fit_spark(FrequentDirections(4), risky)
    assert Path(mark).exists()
    there = sketch_dask(FrequentDirections(4), on_dask())
    assert to_bytes(here.state()) == to_bytes(there.state())


@slow
def test_a_task_that_always_kills_its_worker_names_its_partition(frame):
    def deadly(batches):
        from pyspark import TaskContext

        if TaskContext.get().partitionId() == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    with pytest.raises(PartitionError, match="^partition 5 of 8: its task was lost 2 times"):
        fit_spark(FrequentDirections(4), frame.mapInArrow(deadly, frame.schema))


@slow
def test_standard_errors_two_views_and_generalized_models(spark):
    y = X[:, 0] + RNG.standard_normal(len(X))
    rows = np.column_stack([X, y, y > 0.0]).tolist()
    frame = spark.createDataFrame(rows, [*NAMES, "y", "label"]).repartition(3)
    by_target = {"features": NAMES, "target": "y"}
    model = fit_spark(StreamingRidge(alpha=0.0), frame, **by_target)
    whole = StreamingRidge(alpha=0.0).fit(X, y)
    errors = whole.inference().standard_error
    assert np.array_equal(model.inference().standard_error, errors)
    second = fit_spark(model.robust_pass("HC3"), frame, **by_target)
    found = model.inference("HC3", second_pass=second).standard_error
    np.testing.assert_allclose(found, whole.inference("HC3").standard_error, rtol=1e-9)
    glm = fit_spark(StreamingGLM(), frame, features=NAMES, target="label")
    np.testing.assert_allclose(glm.coef_, StreamingGLM().fit(X, y > 0.0).coef_, rtol=1e-8)
    cca = fit_spark(StreamingCCA(1), frame, features=NAMES[:5], target=NAMES[5:])
    exact = StreamingCCA(1).fit(X[:, :5], X[:, 5:])
    np.testing.assert_allclose(cca.correlations_, exact.correlations_, rtol=1e-9)
