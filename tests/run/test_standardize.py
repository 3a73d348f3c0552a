"""Units of columns where rows are streamed, resumed, and learned in parts."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

import sksketch
from sksketch import FrequentDirections, StreamingPCA, StreamingRidge, fit_stream
from sksketch.run.shards import Rows, fit_parts, learn_shard, merge_tree

SKETCH = FrequentDirections(6, solver="exact")


@pytest.fixture
def X():
    rng = np.random.default_rng(7)
    return (rng.standard_normal((4000, 30)) + 2.0) * np.geomspace(1e-4, 1e4, 30)


def model():
    return StreamingPCA(3, sketch=SKETCH, standardize=True)


def same(one, other):
    np.testing.assert_array_equal(one.scale_, other.scale_)
    np.testing.assert_array_equal(one.components_, other.components_)
    np.testing.assert_array_equal(one.mean_, other.mean_)


def test_all_rows_are_measured_first(X):
    seen = []
    found = fit_stream(model(), X, progress=lambda done, total: seen.append((done, total)))
    np.testing.assert_allclose(found.scale_, StandardScaler().fit(X).scale_)
    assert "all rows" in found.plan_
    assert found.n_samples_seen_ == 4000
    assert seen[-1] == (8000, 8000)
    blocks = sksketch.open_rows(X, batch_rows=37)
    same(fit_stream(model(), blocks, progress=False), found)


def test_rows_that_come_once_have_the_units_of_the_first(X):
    found = fit_stream(model(), iter(np.split(X, 10)), progress=False)
    np.testing.assert_allclose(found.scale_, StandardScaler().fit(X[:1000]).scale_)
    assert "first 1,000 rows" in found.plan_
    assert found.n_samples_seen_ == 4000


def test_nothing_is_read_twice_where_the_covariance_is_kept(X):
    seen = []
    found = fit_stream(
        StreamingPCA(3, standardize=True), X, progress=lambda done, total: seen.append(total)
    )
    assert set(seen) == {4000}
    assert found.n_samples_seen_ == 4000


@pytest.mark.parametrize("stop", [1000, 3500, 4500, 7900])
def test_a_run_resumes_in_either_pass_to_the_same_bits(X, tmp_path, stop):
    whole = fit_stream(model(), X, progress=False)

    def interrupt(done, total):
        if done >= stop:
            raise KeyboardInterrupt

    options = {"checkpoint": tmp_path / "run.sks", "every": 512}
    with pytest.raises(KeyboardInterrupt):
        fit_stream(model(), X, progress=interrupt, **options)
    firsts = []
    resumed = model()
    fit_stream(resumed, X, progress=lambda done, total: firsts.append((done, total)), **options)
    assert firsts[0][0] >= stop - 512
    assert firsts[0][1] == 8000
    same(resumed, whole)


@pytest.mark.parametrize("kind", ["pca", "ridge"])
def test_parts_share_the_units_of_a_pilot(X, kind):
    y = X[:, 0]
    parts = np.array_split(np.arange(4000), 5)

    def learn(template):
        shards = []
        for index, part in enumerate(parts):
            rows = Rows(X[part], y[part] if kind == "ridge" else None)
            shards.append(learn_shard(template, [rows], index, len(parts)))
        return merge_tree(type(template), shards)

    made = model() if kind == "pca" else StreamingRidge(sketch=SKETCH, standardize=True)
    fit_parts(made, len(parts), learn, lambda n: X[:n])
    np.testing.assert_allclose(made.scale_, StandardScaler().fit(X[:1000]).scale_)
    assert made.n_samples_seen_ == 4000
    more = made.partial_fit(X, *(() if kind == "pca" else (y,)))
    assert more.n_samples_seen_ == 8000


def test_dask_learns_in_the_same_units(X):
    da = pytest.importorskip("dask.array")
    found = model().fit(da.from_array(X, chunks=(900, 30)))
    np.testing.assert_allclose(found.scale_, StandardScaler().fit(X[:1000]).scale_)
    found.partial_fit(da.from_array(X, chunks=(900, 30)))
    assert found.n_samples_seen_ == 8000
    exact = StreamingPCA(3, standardize=True).fit(da.from_array(X, chunks=(900, 30)))
    np.testing.assert_allclose(exact.scale_, StandardScaler().fit(X).scale_)
