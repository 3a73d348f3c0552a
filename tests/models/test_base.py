import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sksketch
from _support import laws
from sksketch import FrequentDirections, NotMergeableError, StreamingPCA, StreamingSVD

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 25)) * np.linspace(4.0, 0.3, 25) + np.arange(25)
X = X @ np.linalg.qr(RNG.standard_normal((25, 25)))[0]
NAMES = [f"column {i}" for i in range(25)]


# Merging


@pytest.mark.parametrize("make", [StreamingPCA, StreamingSVD])
def test_merging_exact_estimators_is_one_fit(make):
    parts = np.split(X, [50, 51, 300])
    merged = make(4, sketch="exact").fit(parts[0])
    for part in parts[1:]:
        other = make(4, sketch="exact").partial_fit(part)
        kept = other.components_.copy()
        merged.merge(other)
        np.testing.assert_array_equal(other.components_, kept)
    single = make(4, sketch="exact").fit(X)
    np.testing.assert_allclose(merged.components_, single.components_, atol=1e-8)
    np.testing.assert_allclose(merged.explained_variance_, single.explained_variance_, rtol=1e-9)
    assert merged.n_samples_seen_ == 400


def test_merging_sketched_estimators_is_certified():
    parts = np.array_split(X, 4)
    fitted = [StreamingPCA(3, sketch="rfd", sketch_size=6).fit(part) for part in parts]
    merged = fitted[0].merge(fitted[1]).merge(fitted[2].merge(fitted[3]))
    laws.bound_is_true(merged.sketch_, X - X.mean(axis=0))
    np.testing.assert_allclose(merged.mean_, X.mean(axis=0), rtol=1e-10)


def test_merging_into_an_estimator_that_has_seen_nothing():
    full = StreamingPCA(3).fit(pd.DataFrame(X, columns=NAMES))
    merged = StreamingPCA(3).merge(full)
    np.testing.assert_allclose(merged.components_, full.components_, atol=1e-10)
    assert list(merged.feature_names_in_) == NAMES
    with pytest.raises(NotFittedError):
        full.merge(StreamingPCA(3))


def test_refusals_to_merge():
    pca = StreamingPCA(3).fit(pd.DataFrame(X, columns=NAMES))
    with pytest.raises(NotMergeableError, match="columns"):
        pca.merge(StreamingPCA(3).fit(pd.DataFrame(X, columns=NAMES[::-1])))
    with pytest.raises(NotMergeableError, match="features"):
        StreamingPCA(3).fit(X).merge(StreamingPCA(3).fit(X[:, 1:]))
    with pytest.raises(NotMergeableError, match="StreamingSVD"):
        pca.merge(StreamingSVD(3).fit(X))
    with pytest.raises(NotMergeableError, match="kinds"):
        StreamingPCA(3).fit(X).merge(StreamingPCA(3, sketch="rfd").fit(X))


# Forms of input and output


def test_sparse_rows_are_never_centered_densely():
    rows = sp.random_array((300, 25), density=0.2, format="csr", rng=0)
    dense = StreamingPCA(4).fit(rows.toarray())
    sparse = StreamingPCA(4).fit(rows)
    np.testing.assert_array_equal(dense.components_, sparse.components_)
    np.testing.assert_allclose(dense.transform(rows.toarray()), sparse.transform(rows), atol=1e-10)
    np.testing.assert_allclose(
        dense.score_samples(rows.toarray()), sparse.score_samples(rows), rtol=1e-8
    )
    assert isinstance(sparse.transform(rows.tocsc()), np.ndarray)


def test_single_precision_stays():
    rows = X.astype(np.float32)
    for sketch in ("exact", "rfd"):
        pca = StreamingPCA(3, sketch=sketch, whiten=True).fit(rows)
        assert pca.transform(rows).dtype == np.float32
        # In single precision they would leave the intervals that are certified of them.
        assert pca.components_.dtype == pca.explained_variance_.dtype == np.float64
        assert pca.mean_.dtype == np.float64
    double = StreamingPCA(3, sketch="exact").fit(X)
    single = StreamingPCA(3, sketch="exact").fit(rows)
    np.testing.assert_allclose(single.explained_variance_, double.explained_variance_, rtol=1e-4)


def test_answers_have_the_precision_of_what_is_given():
    rows, target = X.astype(np.float32), X[:, 0]
    answers = [
        (StreamingPCA(3, whiten=True), "transform"),
        (StreamingSVD(3), "transform"),
        (sksketch.StreamingRidge(), "predict"),
        (sksketch.OnlineNewtonRegressor(), "predict"),
        (sksketch.ReducedRegressor(8), "predict"),
        (sksketch.RandomReduction(8), "transform"),
        (sksketch.StreamingKernelPCA(2, n_random_features=32), "transform"),
        (sksketch.StreamingGLM("gaussian"), "predict"),
    ]
    for model, method in answers:
        model.fit(rows, target)
        single, double = (getattr(model, method)(made) for made in (rows, X))
        assert (single.dtype, double.dtype) == (np.float32, np.float64), model
        np.testing.assert_allclose(single, double, rtol=1e-3, atol=1e-3 * np.abs(double).max())
        if hasattr(model, "inverse_transform") and not isinstance(
            model, sksketch.StreamingKernelPCA
        ):
            assert model.inverse_transform(single).dtype == np.float32
            assert model.inverse_transform(double).dtype == np.float64


def test_pandas_in_and_out():
    frame = pd.DataFrame(X, columns=NAMES)
    pca = StreamingPCA(2).set_output(transform="pandas").fit(frame)
    out = pca.transform(frame)
    assert isinstance(out, pd.DataFrame)
    assert list(out.columns) == ["streamingpca0", "streamingpca1"]
    assert list(pca.get_feature_names_out()) == list(out.columns)
    assert list(pca.feature_names_in_) == NAMES
    assert out.index.equals(frame.index)
    np.testing.assert_array_equal(out.to_numpy(), StreamingPCA(2).fit(X).transform(X))


def test_other_names_are_refused():
    frame = pd.DataFrame(X, columns=NAMES)
    pca = StreamingPCA(2).fit(frame)
    renamed = frame.rename(columns={"column 3": "other"})
    for act in (pca.partial_fit, pca.transform, pca.score_samples):
        with pytest.raises(ValueError, match="feature names should match"):
            act(renamed)
    assert pca.n_samples_seen_ == 400


def test_pipelines_and_clones():
    pipeline = make_pipeline(StandardScaler(), StreamingPCA(3)).fit(X)
    assert pipeline.transform(X).shape == (400, 3)
    pca = StreamingPCA(3, sketch=FrequentDirections(7, solver="exact"), whiten=True).fit(X)
    twin = clone(pca)
    assert not hasattr(twin, "sketch_")
    assert twin.get_params()["whiten"] is True
    np.testing.assert_array_equal(twin.fit(X).components_, pca.components_)
    # The sketch that was passed is a pattern, and stays empty.
    assert pca.sketch.n_features is None


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_go_on_alone(duplicate):
    pca = StreamingPCA(3, sketch="rfd").fit(X)
    twin = duplicate(pca)
    np.testing.assert_array_equal(pca.components_, twin.components_)
    twin.partial_fit(5 * X)
    assert pca.n_samples_seen_ == 400


@pytest.mark.parametrize(
    "make",
    [
        lambda: StreamingPCA(3, whiten=True),
        lambda: StreamingPCA(0.9, sketch="rfd", sketch_size=12),
        lambda: StreamingPCA(np.int64(2), tol=0.01, max_sketch_size=9, sketch="rfd"),
        lambda: StreamingSVD(sketch="cfd", sketch_size=5),
        lambda: StreamingSVD(3, sketch=FrequentDirections(7, solver="exact")),
    ],
)
@pytest.mark.parametrize("names", [False, True])
def test_saving_and_loading(make, names, tmp_path):
    rows = pd.DataFrame(X, columns=NAMES) if names else X
    estimator = make().fit(rows)
    estimator.save(tmp_path / "estimator.sks")
    loaded = sksketch.load(tmp_path / "estimator.sks")
    assert type(loaded) is type(estimator)
    for name, value in estimator.get_params().items():
        if name != "sketch" or isinstance(value, str):
            assert getattr(loaded, name) == value
    if names:
        assert list(loaded.feature_names_in_) == NAMES
    for one in (estimator, loaded):
        one.partial_fit(rows)
    np.testing.assert_array_equal(loaded.components_, estimator.components_)
    np.testing.assert_array_equal(loaded.transform(rows), estimator.transform(rows))
    assert loaded.n_samples_seen_ == 800
    assert loaded.target_met_ == estimator.target_met_


def test_column_names_survive_whatever_they_are(tmp_path):
    names = ["a\nb", "", "é", '"quoted"', *NAMES[4:]]
    StreamingPCA(2).fit(pd.DataFrame(X, columns=names)).save(tmp_path / "pca.sks")
    assert list(sksketch.load(tmp_path / "pca.sks").feature_names_in_) == names


def test_reading_before_fit_says_so(tmp_path):
    for estimator in (StreamingPCA(2), StreamingSVD(2)):
        for act in (estimator.transform, estimator.reconstruction_error):
            with pytest.raises(NotFittedError):
                act(X)
        with pytest.raises(NotFittedError):
            estimator.save(tmp_path / "nothing.sks")
        with pytest.raises(AttributeError, match="before fit"):
            _ = estimator.components_
        assert not hasattr(estimator, "components_")
        assert not hasattr(estimator, "mean_")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 0}, "n_components is 0; give an integer of at least 1"),
        ({"n_components": -3}, "an integer of at least 1"),
        ({"n_components": 1.5}, "a positive number below 1 or None"),
        ({"n_components": float("nan")}, "n_components is nan"),
        ({"n_components": "mle"}, "n_components is 'mle'"),
        ({"n_components": True}, "n_components is True"),
        ({"n_components": 9, "sketch_size": 4}, "sketch_size=4"),
        ({"tol": 0.0}, "tol is 0.0; give a positive number or None"),
        ({"sketch": "best"}, "sketch is 'best'; give one of 'auto', 'fd'"),
        ({"sketch": None}, "sketch"),
        ({"sketch_size": 0}, "sketch_size"),
    ],
)
def test_bad_parameters_are_named(params, message):
    for make in (StreamingPCA, StreamingSVD):
        with pytest.raises((ValueError, TypeError), match=message):
            make(**({"sketch": "rfd"} | params)).fit(X)


def test_degenerate_rows():
    constant = StreamingPCA(2).fit(np.full((10, 4), 3.0))
    assert constant.explained_variance_.max() <= 1e-20
    assert np.isfinite(constant.transform(np.ones((1, 4)))).all()
    assert np.isfinite(constant.explained_variance_ratio_).all()
    with pytest.warns(UserWarning, match="n_components=5 is more than the 1 columns"):
        narrow = StreamingPCA(5).fit(X[:, :1])
    assert narrow.n_components_ == 1
    whitened = StreamingPCA(2, whiten=True).fit(np.full((10, 4), 3.0))
    assert np.isfinite(whitened.transform(np.ones((1, 4)))).all()
    with pytest.raises(ValueError, match="at least two rows"):
        StreamingPCA(1).fit(X[:1])
    with pytest.raises(ValueError, match="weights are zero"):
        StreamingPCA(1).fit(X, sample_weight=np.zeros(400))


@pytest.mark.parametrize("solver", ["exact", "block"])
def test_constant_rows_through_a_real_sketch(solver):
    pca = StreamingPCA(2, sketch=laws.fd(laws.SOLVERS[solver])).fit(np.full((500, 40), 3.0))
    np.testing.assert_allclose(pca.mean_, 3.0)
    assert pca.explained_variance_.max() <= 1e-18


def test_plans_are_told():
    assert "exact" in StreamingPCA(2).fit(X).plan_.lower()
    assert "sketch" in StreamingPCA(2, sketch="rfd").fit(X).plan_.lower()


def test_another_kind_is_refused_by_its_name_and_not_as_unfitted():
    for other in (sksketch.OnlineNewtonRegressor().fit(X, X[:, 0]), sksketch.TableEncoder().fit(X)):
        with pytest.raises(NotMergeableError, match=f"cannot merge a {type(other).__name__}"):
            sksketch.StreamingPCA(1).fit(X).merge(other)
