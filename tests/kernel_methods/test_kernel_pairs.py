"""Kernel CCA and kernel SVD: against dense problems, in blocks, saved, and bad input."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cross_decomposition import CCA
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks

import sksketch
from sksketch import (
    NotMergeableError,
    StreamingKernelCCA,
    StreamingKernelSVD,
    fit_stream,
    open_rows,
)
from sksketch.kernel_methods.pairs import paired_steps

DIGITS = np.random.default_rng(3).permutation(load_digits().data / 16.0)
IMAGES = DIGITS.reshape(-1, 8, 8)
X, Y = IMAGES[:, :, :4].reshape(-1, 32), IMAGES[:, :, 4:].reshape(-1, 32)
TARGET = list(range(32, 64))
TRAIN, TEST = slice(0, 1297), slice(1297, None)


PAIRS = "fit_transform gives the scores of both views, as that of scikit-learn's own CCA"
EXPECTED = {"check_transformer_general": PAIRS, "check_transformer_data_not_an_array": PAIRS}


@parametrize_with_checks(
    [StreamingKernelCCA(1, n_random_features=16), StreamingKernelSVD(1, n_random_features=16)],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_linear_kernel_cca_is_cca():
    # Columns that never change have no correlation.
    some, others = X[:600, X.std(axis=0) > 0.1][:, :8], Y[:600, Y.std(axis=0) > 0.1][:, :8]
    model = StreamingKernelCCA(3, kernel="linear", landmarks=600, ridge=1e-9).fit(some, others)
    theirs = CCA(3, tol=1e-12, max_iter=5000).fit(some, others).transform(some, others)
    wanted = [np.corrcoef(*pair)[0, 1] for pair in zip(*(Z.T for Z in theirs), strict=True)]
    np.testing.assert_allclose(model.correlations_, wanted, atol=1e-5)


def test_scores_come_in_the_container_that_is_asked_for():
    model = StreamingKernelCCA(2, n_random_features=64).set_output(transform="pandas")
    scores, others = model.fit_transform(X[:300], Y[:300])
    assert list(scores.columns) == ["streamingkernelcca0", "streamingkernelcca1"]
    plain = model.set_output(transform="default").transform(X[:300], Y[:300])
    np.testing.assert_array_equal(scores.to_numpy(), plain[0])
    np.testing.assert_array_equal(others, plain[1])


def features_of(model):
    """Return the centred features of both views, for dense computations."""
    found = []
    for features, Z in zip(model._learner.chosen.solver.features, (X, Y), strict=True):
        F = features.transform(Z[TRAIN])
        found.append(F - F.mean(axis=0))
    return found


def test_the_exact_solver_solves_the_dense_problem():
    model = StreamingKernelCCA(5, n_random_features=200, ridge=1e-3).fit(X[TRAIN], Y[TRAIN])
    F, G = features_of(model)
    n = len(F)
    left = np.block([[np.zeros((200, 200)), F.T @ G / n], [G.T @ F / n, np.zeros((200, 200))]])
    inside = [Z.T @ Z / n + 1e-3 * np.eye(200) for Z in (F, G)]
    values = scipy.linalg.eigh(left, scipy.linalg.block_diag(*inside), eigvals_only=True)
    assert model.solver_ == "exact"
    assert model.correlations_ == pytest.approx(values[::-1][:5], abs=1e-8)
    U, V = model.transform(X[TRAIN], Y[TRAIN])
    paired = [np.corrcoef(U[:, j], V[:, j])[0, 1] for j in range(5)]
    # Penalised correlations are below those of the functions.
    assert (np.array(paired) >= model.correlations_ - 1e-9).all()
    assert np.array_equal(model.transform(X[TRAIN]), U)


@pytest.mark.parametrize("n_rows", [12, 100, 120])
def test_few_rows_are_solved_in_what_they_span(n_rows, tmp_path):
    rows, options = slice(0, n_rows), {"n_random_features": 200, "bandwidth": 2.0}
    model = StreamingKernelCCA(3, ridge=1e-3, **options).fit(X[rows], Y[rows])
    maps = model._learner.chosen.solver.features
    F, G = (f.transform(Z[rows]) for f, Z in zip(maps, (X, Y), strict=True))
    F, G = (part - part.mean(axis=0) for part in (F, G))
    cross = F.T @ G / n_rows
    inside = [Z.T @ Z / n_rows + 1e-3 * np.eye(200) for Z in (F, G)]
    roots = [scipy.linalg.inv(scipy.linalg.sqrtm(C)).real for C in inside]
    values = np.linalg.svd(roots[0] @ cross @ roots[1], compute_uv=False)
    np.testing.assert_allclose(model.correlations_, values[:3], atol=1e-8)
    # In parts, merged and saved in between, it is the same problem.
    half = n_rows // 2
    parts = [
        StreamingKernelCCA(3, ridge=1e-3, **options).fit(X[part], Y[part])
        for part in (slice(0, half), slice(half, n_rows))
    ]
    parts[0].save(tmp_path / "half.sks", finished=False)
    merged = sksketch.load(tmp_path / "half.sks").merge(parts[1])
    np.testing.assert_allclose(merged.correlations_, values[:3], atol=1e-8)
    grown = parts[1].partial_fit(X[:half], Y[:half])
    np.testing.assert_allclose(grown.correlations_, values[:3], atol=1e-8)


def test_a_view_that_is_constant_correlates_with_nothing():
    for views in ((np.ones((50, 2)), Y[:50]), (Y[:50], np.ones((50, 2)))):
        model = StreamingKernelCCA(2, n_random_features=64).fit(*views)
        assert not model.correlations_.any()
        assert all(np.isfinite(Z).all() for Z in model.transform(*views))


@pytest.mark.slow
def test_preconditioned_steps_reach_the_exact_solution():
    ridge, options = 1e-3, {"n_random_features": 1024, "random_state": 1}
    exact = StreamingKernelCCA(10, ridge=ridge, **options).fit(X[TRAIN], Y[TRAIN])
    total = exact.score(X[TEST], Y[TEST])
    assert total > 7.5
    steps = StreamingKernelCCA(
        10, ridge=ridge, solver="sgd", n_steps=100, batch_size=512, **options
    ).fit(X[TRAIN], Y[TRAIN])
    assert steps.score(X[TEST], Y[TEST]) == pytest.approx(total, abs=0.2)
    plain = StreamingKernelCCA(
        10, ridge=ridge, solver="sgd", step="plain", n_steps=30, batch_size=512, **options
    ).fit(X[TRAIN], Y[TRAIN])
    start = StreamingKernelCCA(
        10, ridge=ridge, solver="sgd", step="plain", n_steps=1, batch_size=512, **options
    ).fit(X[TRAIN], Y[TRAIN])
    assert start.score(X[TEST], Y[TEST]) < plain.score(X[TEST], Y[TEST])
    both = [exact.total_correlation(X[TEST], Y[TEST], rotate=rotate) for rotate in (False, True)]
    assert both[0] == total
    assert both[1] == pytest.approx(both[0], abs=0.6)


def test_landmarks_and_the_ridge(tmp_path):
    scores = {}
    for ridge in (1e-8, "auto", 1e-2):
        model = StreamingKernelCCA(10, landmarks=300, ridge=ridge).fit(X[TRAIN], Y[TRAIN])
        scores[ridge] = model.score(X[TEST], Y[TEST])
    assert scores["auto"] > max(scores[1e-8], 7.5)
    own = (X[:50], Y[:60])
    model = StreamingKernelCCA(2, landmarks=own, bandwidth=(2.0, 3.0)).fit(X[TRAIN], Y[TRAIN])
    assert model.bandwidths_ == (2.0, 3.0)
    model.save(tmp_path / "own.sks")
    loaded = sksketch.load(tmp_path / "own.sks")
    assert np.array_equal(loaded.transform(X[:9]), model.transform(X[:9]))
    assert loaded.fit(X[TRAIN], Y[TRAIN]).correlations_ == pytest.approx(model.correlations_)


def hermite(n_rows, seed=0):
    return np.random.default_rng(seed).standard_normal((n_rows, 1))


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["exact", "sgd"])
def test_singular_values_of_equal_views_are_eigenvalues(solver):
    rows = hermite(20_000)
    model = StreamingKernelSVD(
        3, bandwidth=1.0, n_random_features=1024, solver=solver, n_steps=150, batch_size=512
    ).fit(rows, rows)
    assert model.singular_values_ == pytest.approx([0.618, 0.236, 0.0902], rel=0.06)
    U, V = model.transform(rows, rows)
    assert np.abs(U - V).max() < 0.15
    cross = U.T @ V / len(U)
    assert np.diag(cross) == pytest.approx(model.singular_values_, rel=0.06)


@pytest.mark.parametrize("center", [False, True])
def test_singular_functions_are_those_of_the_features(center):
    model = StreamingKernelSVD(4, n_random_features=150, center=center).fit(X[TRAIN], Y[TRAIN])
    F, G = (
        f.transform(Z[TRAIN])
        for f, Z in zip(model._learner.chosen.solver.features, (X, Y), strict=True)
    )
    if center:
        F, G = F - F.mean(axis=0), G - G.mean(axis=0)
    s = np.linalg.svd(F.T @ G / len(F), compute_uv=False)[:4]
    assert model.singular_values_ == pytest.approx(s, rel=1e-6)


@pytest.mark.parametrize("kind", [StreamingKernelCCA, StreamingKernelSVD])
@pytest.mark.parametrize("solver", ["exact", "sgd"])
def test_blocks_do_not_matter_and_saving_is_invisible(kind, solver, monkeypatch, tmp_path):
    monkeypatch.setattr(kind, "pilot_rows", 300)
    options = {"n_random_features": 64, "solver": solver, "batch_size": 100}
    whole = kind(2, **options).partial_fit(X, Y)
    parts = kind(2, **options)
    for a, b in zip(*(np.split(Z, [1, 250, 301, 777]) for Z in (X, Y)), strict=True):
        parts.partial_fit(a, b)
        if parts.n_samples_seen_ > 10:
            parts.transform(X[:3], Y[:3])
        parts.save(tmp_path / "pair.sks", finished=False)
        parts = sksketch.load(tmp_path / "pair.sks")
    for found, wanted in zip(parts.transform(X, Y), whole.transform(X, Y), strict=True):
        assert found == pytest.approx(wanted, abs=1e-7)
    stream = fit_stream(
        kind(2, **options),
        open_rows(np.hstack([X, Y]), target=TARGET, batch_rows=200),
        progress=False,
    )
    assert stream.transform(X[:9]) == pytest.approx(whole.transform(X[:9]), abs=1e-7)
    assert clone(parts).get_params() == whole.get_params()


@pytest.mark.parametrize("solver", ["exact", "sgd"])
def test_finished_models_are_small_and_learn_no_more(solver, tmp_path):
    options = {"n_random_features": 128, "ridge": 1e-3, "solver": solver, "n_steps": 3}
    model = StreamingKernelCCA(2, **options).fit(X, Y)
    model.save(tmp_path / "small.sks")
    model.save(tmp_path / "large.sks", finished=False)
    small, large = ((tmp_path / f"{name}.sks").stat().st_size for name in ("small", "large"))
    assert small < 20_000 < large
    loaded = sksketch.load(tmp_path / "small.sks")
    for found, wanted in zip(loaded.transform(X, Y), model.transform(X, Y), strict=True):
        assert np.array_equal(found, wanted)
    assert np.array_equal(loaded.correlations_, model.correlations_)
    assert loaded.solver_ == solver
    with pytest.raises(NotMergeableError, match="saved finished"):
        loaded.partial_fit(X, Y)
    loaded.save(tmp_path / "again.sks")
    assert (tmp_path / "again.sks").read_bytes() == (tmp_path / "small.sks").read_bytes()


def test_exact_ones_merge():
    options = {"n_random_features": 64, "bandwidth": 2.0, "ridge": 1e-3}
    whole = StreamingKernelCCA(3, **options).fit(X, Y)
    one = StreamingKernelCCA(3, **options).fit(X[:800], Y[:800])
    one.merge(StreamingKernelCCA(3, **options).fit(X[800:], Y[800:]))
    assert one.correlations_ == pytest.approx(whole.correlations_, abs=1e-9)
    assert one.n_samples_seen_ == len(X)
    with pytest.raises(NotMergeableError, match="different features"):
        one.merge(StreamingKernelCCA(3, **options | {"bandwidth": 1.0}).fit(X, Y))
    steps = StreamingKernelCCA(3, **options, solver="sgd", n_steps=2).fit(X, Y)
    with pytest.raises(NotMergeableError, match="different solvers"):
        one.merge(steps)
    with pytest.raises(NotMergeableError, match="steps depend"):
        steps.merge(steps)


def test_sparse_views_and_torch():
    dense = StreamingKernelCCA(2, n_random_features=64, ridge=1e-3).fit(X, Y)
    sparse = StreamingKernelCCA(2, n_random_features=64, ridge=1e-3)
    sparse.fit(sp.csr_array(X), sp.csr_array(Y))
    assert sparse.correlations_ == pytest.approx(dense.correlations_, abs=1e-7)
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for solver in ("exact", "sgd"):
        options = {"n_random_features": 128, "ridge": 1e-3, "solver": solver, "n_steps": 5}
        there = StreamingKernelCCA(2, **options).fit(torch.asarray(X), torch.asarray(Y))
        here = StreamingKernelCCA(2, **options).fit(X, Y)
        assert there.correlations_ == pytest.approx(here.correlations_, abs=1e-6)
        assert isinstance(there.transform(torch.asarray(X)), torch.Tensor)
        assert there.transform(X, Y)[1].shape == (len(X), 2)


@pytest.mark.parametrize("solver", ["exact", "sgd"])
def test_a_saved_one_goes_on_with_rows_of_another_library(solver, monkeypatch, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.setattr(StreamingKernelCCA, "pilot_rows", 300)
    options = {"n_random_features": 64, "solver": solver, "batch_size": 100, "ridge": 1e-3}
    plain = StreamingKernelCCA(2, **options).partial_fit(X[:650], Y[:650])
    plain.save(tmp_path / "pair.sks", finished=False)
    moved = sksketch.load(tmp_path / "pair.sks")
    plain.partial_fit(X[650:], Y[650:])
    moved.partial_fit(torch.asarray(X[650:]), torch.asarray(Y[650:]))
    assert moved.correlations_ == pytest.approx(plain.correlations_, abs=1e-7)
    assert moved.transform(X) == pytest.approx(plain.transform(X), abs=1e-6)


def test_divergence_goes_back_to_the_last_good_state(monkeypatch):
    monkeypatch.setattr(paired_steps, "CHECK_EVERY", 2)
    monkeypatch.setattr(paired_steps, "step_sizes", lambda *_: (3e4, 0.0))
    model = StreamingKernelSVD(
        2, n_random_features=64, solver="sgd", n_steps=60, batch_size=100
    ).fit(X, Y)
    assert model._learner.chosen.solver.learner.n_restarts > 0
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": X[:10]}, "inconsistent numbers of samples"),
        ({"X": np.full_like(X, np.nan)}, "NaN"),
        ({"y": np.full_like(Y, np.inf)}, "y contains infinity"),
        ({"y": None}, "requires y to be passed"),
        ({"X": X[:2], "y": Y[:2]}, "n_components=2 needs more than the 2 sample"),
        ({"ridge": -1.0}, "ridge is -1.0; give 'auto'"),
        ({"solver": "magic"}, "solver is 'magic'"),
        ({"step": "huge"}, "step is 'huge'"),
        ({"n_components": 99}, "n_components=99 is more than the 64 features"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(change, message):
    options = {"n_random_features": 64, "ridge": 1e-3}
    model = StreamingKernelCCA(2, **options).fit(X, Y)
    before = model.transform(X[:5])
    rows = {"X": X, "y": Y} | {k: v for k, v in change.items() if k in ("X", "y")}
    model.set_params(**{k: v for k, v in change.items() if k not in ("X", "y")})
    with pytest.raises(ValueError, match=message):
        model.fit(**rows)
    assert np.array_equal(model.transform(X[:5]), before)
    with pytest.raises(ValueError, match="y has 3 features"):
        model.transform(X, Y[:, :3])


def test_constant_columns_equal_rows_and_few_rows():
    same = np.column_stack([X[:, :3], np.ones(len(X))])
    assert np.isfinite(StreamingKernelCCA(2, n_random_features=64).fit(same, Y).correlations_).all()
    doubled = np.vstack([X[:30]] * 4), np.vstack([Y[:30]] * 4)
    for solver in ("exact", "sgd"):
        options = {"n_random_features": 64, "solver": solver, "n_steps": 5}
        for pair in (doubled, (X[:8], Y[:8])):
            model = StreamingKernelCCA(2, **options).fit(*pair)
            assert np.isfinite(model.transform(*pair)[0]).all()
    target = StreamingKernelCCA(1, n_random_features=64).fit(X, X[:, 0])
    assert target.transform(X, X[:, 0])[1].shape == (len(X), 1)
