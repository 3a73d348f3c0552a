"""Streaming kernel PCA against the dense eigenproblem, in blocks, saved, on other libraries."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import sksketch
from sksketch import NotMergeableError, RandomFeatures, StreamingKernelPCA, fit_stream, open_rows
from sksketch.kernel_methods.pca import doubly_stochastic

RNG = np.random.default_rng(0)
DIGITS = load_digits().data / 16.0
SMALL = {"n_random_features": 128, "batch_size": 64, "feature_batch": 32}


@parametrize_with_checks(
    [
        RandomFeatures(n_random_features=20),
        RandomFeatures(n_random_features=20, landmarks=5),
        StreamingKernelPCA(1, n_random_features=64),
        StreamingKernelPCA(1, solver="sgd", n_random_features=64),
        StreamingKernelPCA(1, solver="sketch", n_random_features=64),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def exact(X, rank, bandwidth, center=True):
    """Return eigenvalues and eigenvectors of the dense kernel matrix."""
    squares = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2) if len(X) < 500 else None
    if squares is None:
        norms = (X * X).sum(axis=1)
        squares = norms[:, None] + norms - 2 * X @ X.T
    K = np.exp(-squares / (2 * bandwidth**2))
    if center:
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    if len(X) > 2000:
        # All eigenvectors of so many rows take most of a minute.
        values, vectors = eigsh(K / len(X), rank, v0=np.ones(len(X)) + np.arange(len(X)))
    else:
        values, vectors = np.linalg.eigh(K / len(X))
    return values[::-1][:rank], vectors[:, ::-1][:, :rank]


def sine_squared(H, V):
    Q = np.linalg.qr(H)[0]
    return 1 - np.linalg.svd(V.T @ Q, compute_uv=False).min() ** 2


@pytest.mark.parametrize("center", [True, False])
def test_few_rows_are_solved_exactly(center):
    X = DIGITS[:400]
    pca = StreamingKernelPCA(4, center=center).fit(X)
    values, V = exact(X, 4, pca.bandwidth_, center)
    assert "exact" in pca.plan_
    assert pca.eigenvalues_ == pytest.approx(values, rel=1e-5)
    assert sine_squared(pca.transform(X), V) < 1e-8
    if center:
        peer = KernelPCA(4, kernel="rbf", gamma=0.5 / pca.bandwidth_**2).fit(X)
        found, wanted = pca.transform(DIGITS[400:500]), peer.transform(DIGITS[400:500])
        assert np.abs(found) == pytest.approx(np.abs(wanted), abs=1e-5)


@pytest.mark.parametrize("solver", ["auto", "sgd", "sketch"])
def test_all_solvers_find_the_components(solver):
    pca = StreamingKernelPCA(3, solver=solver, n_random_features=8192).fit(DIGITS)
    values, V = exact(DIGITS, 3, pca.bandwidth_)
    assert pca.solver_ == ("sketch" if solver == "auto" else solver)
    assert sine_squared(pca.transform(DIGITS), V) < (1e-3 if solver == "auto" else 0.02)
    assert pca.eigenvalues_ == pytest.approx(values, rel=0.03)
    H = pca.transform(DIGITS)
    assert (H**2).mean(axis=0) == pytest.approx(pca.eigenvalues_, rel=0.05)


def in_feature_space(pca, X):
    """Return the leading subspace of the features that the estimator has, densely."""
    F = pca._learner.chosen.solver.features.transform(X)
    F = F - F.mean(axis=0)
    return np.linalg.svd(F, full_matrices=False)[0]


def test_polish_solves_for_the_features_that_there_are(monkeypatch):
    monkeypatch.setattr(StreamingKernelPCA, "pilot_rows", 100)
    errors = []
    for polish in (0, 1, 3, 6):
        pca = StreamingKernelPCA(5, solver="sgd", n_random_features=512, polish=polish).fit(DIGITS)
        errors.append(sine_squared(pca.transform(DIGITS), in_feature_space(pca, DIGITS)[:, :5]))
    assert errors[3] < 1e-7
    assert errors[3] < errors[2] < errors[1] < errors[0]


@pytest.mark.parametrize("options", [{"step": "scalar"}, {"order": "gha"}, {"step": "matrix"}])
def test_steps_alone_come_close(options, monkeypatch):
    monkeypatch.setattr(StreamingKernelPCA, "pilot_rows", 200)
    X = np.tile(RNG.permutation(DIGITS), (6, 1))
    pca = StreamingKernelPCA(
        3, solver="sgd", polish=0, n_random_features=512, batch_size=256, **options
    ).fit(X)
    V = in_feature_space(pca, DIGITS)[:, :3]
    assert sine_squared(pca.transform(DIGITS), V) < 0.08
    if options.get("order") == "gha":
        H = pca.transform(DIGITS)
        cosines = np.abs((H / np.linalg.norm(H, axis=0)).T @ V)
        assert np.diag(cosines).min() > 0.95


def test_blocks_do_not_matter(monkeypatch):
    monkeypatch.setattr(StreamingKernelPCA, "pilot_rows", 150)
    for options in ({"solver": "sgd"}, {"solver": "sketch"}):
        whole = StreamingKernelPCA(2, **SMALL, **options).partial_fit(DIGITS[:700])
        parts = StreamingKernelPCA(2, **SMALL, **options)
        for part in np.split(DIGITS[:700], [1, 2, 100, 151, 400, 650]):
            parts.partial_fit(part)
            if parts.n_samples_seen_ > 3:
                parts.transform(DIGITS[:5])
        assert parts.transform(DIGITS) == pytest.approx(whole.transform(DIGITS), abs=1e-9)
        assert parts.n_samples_seen_ == 700


@pytest.mark.parametrize("n_rows", [60, 400])
@pytest.mark.parametrize("solver", ["sgd", "sketch"])
def test_saving_is_invisible(n_rows, solver, monkeypatch, tmp_path):
    monkeypatch.setattr(StreamingKernelPCA, "pilot_rows", 150)
    pca = StreamingKernelPCA(2, solver=solver, **SMALL).partial_fit(DIGITS[:n_rows])
    pca.save(tmp_path / "kpca.sks")
    loaded = sksketch.load(tmp_path / "kpca.sks")
    assert np.array_equal(loaded.transform(DIGITS[:20]), pca.transform(DIGITS[:20]))
    for one in (pca, loaded):
        one.partial_fit(DIGITS[n_rows:900])
    assert np.array_equal(loaded.transform(DIGITS[:20]), pca.transform(DIGITS[:20]))
    assert loaded.get_params() == pca.get_params()


def test_the_file_does_not_grow_with_the_columns(tmp_path):
    sizes = []
    for width in (10, 1000):
        X = RNG.standard_normal((300, width))
        StreamingKernelPCA(2, solver="sgd", **SMALL).fit(X).save(tmp_path / "model.sks")
        sizes.append((tmp_path / "model.sks").stat().st_size)
    assert sizes[1] < sizes[0] + 200


def test_a_stream_with_polish_and_checkpoints(monkeypatch, tmp_path):
    monkeypatch.setattr(StreamingKernelPCA, "pilot_rows", 300)
    options = {"solver": "sgd", "polish": 5, **SMALL}
    rows = open_rows(DIGITS, batch_rows=97)
    pca = fit_stream(StreamingKernelPCA(3, **options), rows, progress=False)
    assert pca.n_samples_seen_ == len(DIGITS)
    assert sine_squared(pca.transform(DIGITS), in_feature_space(pca, DIGITS)[:, :3]) < 1e-6

    class StopError(Exception):
        pass

    for stop in (500, 2500, 6000):

        def interrupt(done, total, stop=stop):
            if done >= stop:
                raise StopError

        path = tmp_path / f"{stop}.ckpt"
        with pytest.raises(StopError):
            fit_stream(StreamingKernelPCA(3, **options), rows, checkpoint=path, progress=interrupt)
        resumed = StreamingKernelPCA(3, **options)
        fit_stream(resumed, rows, checkpoint=path, progress=False)
        assert np.array_equal(resumed.transform(DIGITS[:9]), pca.transform(DIGITS[:9]))


def test_later_passes_do_not_count_rows_again():
    rows = open_rows(np.vstack([DIGITS, DIGITS]), batch_rows=500)
    pca = fit_stream(StreamingKernelPCA(2, polish=2), rows, progress=False)
    assert pca.solver_ == "sketch"
    assert pca._learner.chosen.solver.sketch.n_rows_seen == pca.n_samples_seen_ == 2 * len(DIGITS)


@pytest.mark.slow
def test_four_thousand_digits_are_close_to_the_dense_solution():
    folder = os.environ.get("SKSKETCH_DATA")
    if folder is None:
        pytest.skip("SKSKETCH_DATA is not set: mnist.npz is needed")
    X = np.load(Path(folder) / "mnist.npz")["X"][:4000] / 255.0
    pca = StreamingKernelPCA(10, polish=3).fit(X)
    values, V = exact(X, 10, pca.bandwidth_)
    assert sine_squared(pca.transform(X), V) < 5e-3
    assert pca.eigenvalues_ == pytest.approx(values, rel=0.01)


def test_sketches_merge_and_steps_do_not():
    options = {"solver": "sketch", "bandwidth": 2.0, "n_random_features": 200}
    whole = StreamingKernelPCA(3, **options).fit(DIGITS)
    one, other = (StreamingKernelPCA(3, **options).fit(part) for part in np.split(DIGITS, [700]))
    assert one.merge(other).n_samples_seen_ == len(DIGITS)
    assert one.eigenvalues_ == pytest.approx(whole.eigenvalues_, rel=1e-9)
    assert np.abs(one.transform(DIGITS)) == pytest.approx(np.abs(whole.transform(DIGITS)), abs=1e-7)
    with pytest.raises(NotMergeableError, match="different features"):
        one.merge(StreamingKernelPCA(3, **options | {"bandwidth": 3.0}).fit(DIGITS))
    steps = [StreamingKernelPCA(2, **SMALL, solver="sgd").fit(DIGITS[:200]) for _ in range(2)]
    with pytest.raises(NotMergeableError, match="steps depend on all rows"):
        steps[0].merge(steps[1])
    assert whole.certificate_.n_rows_seen == len(DIGITS)
    with pytest.raises(AttributeError, match="only solver='sketch'"):
        steps[0].certificate_  # noqa: B018


@pytest.mark.parametrize("solver", ["auto", "sgd"])
def test_rows_of_torch_stay_in_torch(solver):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X = torch.asarray(DIGITS[:1200])
    options = {"n_random_features": 512, "solver": solver}
    pca = StreamingKernelPCA(3, **options).fit(X)
    H = pca.transform(X)
    assert isinstance(H, torch.Tensor)
    assert H.dtype == torch.float64
    same = StreamingKernelPCA(3, **options | {"solver": "sgd"}).fit(DIGITS[:1200])
    if solver == "sgd":
        assert H.numpy() == pytest.approx(same.transform(DIGITS[:1200]), abs=1e-6)
    # What was learned on one library works on the other, and in float32.
    assert pca.transform(DIGITS[:50]) == pytest.approx(H[:50].numpy(), abs=1e-9)
    assert pca.transform(X[:50].to(torch.float32)).dtype == torch.float32
    stream = StreamingKernelPCA(3, **options).partial_fit(X[:100]).partial_fit(X[100:])
    assert stream.transform(X[:5]).shape == (5, 3)
    for bad, message in [
        (X[0], "expected a 2-D array"),
        (X[:, :9], "X has 9 features"),
        (X * torch.nan, "NaN or infinity"),
    ]:
        with pytest.raises(ValueError, match=message):
            pca.transform(bad)


@pytest.mark.parametrize("solver", ["sgd", "sketch"])
def test_a_stream_may_change_its_library(solver, monkeypatch, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.setattr(StreamingKernelPCA, "pilot_rows", 300)
    blocks = np.split(DIGITS[:900], [100, 350, 600])
    plain, mixed = (StreamingKernelPCA(2, solver=solver, **SMALL) for _ in range(2))
    for i, block in enumerate(blocks):
        plain.partial_fit(block)
        mixed.partial_fit(torch.asarray(block) if i % 2 else block)
        mixed.save(tmp_path / "mixed.sks")
        mixed = sksketch.load(tmp_path / "mixed.sks")
    assert mixed.transform(DIGITS[:50]) == pytest.approx(plain.transform(DIGITS[:50]), abs=1e-7)


def test_rows_outside_of_the_kernels_domain_are_refused_when_they_come():
    pca = StreamingKernelPCA(1, kernel="exponential-semigroup", **SMALL).partial_fit(DIGITS[:50])
    with pytest.raises(ValueError, match="defined for numbers from 0 on"):
        pca.partial_fit(DIGITS[:50] - 1.0)
    assert pca.partial_fit(DIGITS[50:80]).n_samples_seen_ == 80
    assert pca.transform(DIGITS[:5]).shape == (5, 1)


@pytest.mark.parametrize("landmarks", [DIGITS[:20], sp.csr_array(DIGITS[:20])])
def test_given_landmarks_are_saved_with_the_parameters(landmarks, tmp_path):
    features = RandomFeatures(landmarks=landmarks, random_state=np.random.RandomState(0))
    features.fit(DIGITS).save(tmp_path / "features.sks")
    loaded = sksketch.load(tmp_path / "features.sks")
    assert np.array_equal(loaded.transform(DIGITS[:9]), features.transform(DIGITS[:9]))
    assert np.array_equal(loaded.fit(DIGITS).transform(DIGITS[:9]), features.transform(DIGITS[:9]))


def test_sparse_rows_and_float32():
    X = DIGITS[:500] * (DIGITS[:500] > 0.4)
    dense = StreamingKernelPCA(2, solver="sgd", n_random_features=256).fit(X)
    sparse = StreamingKernelPCA(2, solver="sgd", n_random_features=256).fit(sp.csr_array(X))
    assert sparse.transform(sp.csc_array(X)) == pytest.approx(dense.transform(X), abs=1e-6)
    single = StreamingKernelPCA(2, solver="sgd", n_random_features=256).fit(X.astype(np.float32))
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert single.transform(X) == pytest.approx(dense.transform(X), abs=1e-3)


def test_the_way_back():
    pca = StreamingKernelPCA(30, fit_inverse_transform=True).fit(DIGITS)
    back = pca.inverse_transform(pca.transform(DIGITS))
    error = ((back - DIGITS) ** 2).sum() / ((DIGITS - DIGITS.mean(axis=0)) ** 2).sum()
    assert error < 0.2
    with pytest.raises(ValueError, match="expected 30 columns"):
        pca.inverse_transform(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="pass fit_inverse_transform=True"):
        StreamingKernelPCA(2).fit(DIGITS[:50]).inverse_transform(np.zeros((2, 2)))


def test_divergence_goes_back_to_the_last_good_state(monkeypatch):
    monkeypatch.setattr(doubly_stochastic, "CHECK_EVERY", 2)
    monkeypatch.setattr(doubly_stochastic, "step_sizes", lambda *_: (1e4, 0.0))
    pca = StreamingKernelPCA(2, solver="sgd", step="scalar", polish=0, **SMALL).fit(
        np.tile(DIGITS, (4, 1))
    )
    assert pca._learner.chosen.solver.learner.n_restarts > 0
    assert np.isfinite(pca.transform(DIGITS)).all()


@pytest.mark.parametrize("solver", ["auto", "sgd", "sketch"])
def test_strange_rows(solver):
    options = {"solver": solver, **SMALL}
    X = np.column_stack([DIGITS[:300, 20:25], np.ones(300)])
    assert np.isfinite(StreamingKernelPCA(2, **options).fit(X).transform(X)).all()
    doubled = np.vstack([DIGITS[:40]] * 10)
    assert np.isfinite(StreamingKernelPCA(3, **options).fit(doubled).transform(doubled)).all()
    few = StreamingKernelPCA(2, **options).fit(DIGITS[:5])
    assert np.isfinite(few.transform(DIGITS[:9])).all()
    with pytest.raises(ValueError, match="NaN"):
        few.partial_fit(np.full((3, 64), np.nan))
    with pytest.raises(ValueError, match="n_components=9 needs more than the 5 sample"):
        StreamingKernelPCA(9, **options).fit(DIGITS[:5])
    assert few.n_samples_seen_ == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components is 0; give an integer of at least 1"),
        ({"n_random_features": 2.5}, "n_random_features is 2.5"),
        ({"solver": "newton"}, "solver is 'newton'; give one of 'auto'"),
        ({"step": "big"}, "step is 'big'"),
        ({"order": "random"}, "order is 'random'"),
        ({"polish": -1}, "polish is -1"),
        ({"kernel": "tanh"}, "kernel is 'tanh'; give one of 'gaussian'"),
        ({"kernel_params": {"nu": 2}}, "has no parameter 'nu'"),
        ({"landmarks": np.zeros((3, 2))}, "landmarks have the shape"),
        ({"landmarks": 0}, "landmarks is 0"),
        ({"bandwidth": "wide"}, "bandwidth is 'wide'"),
    ],
)
def test_strange_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        StreamingKernelPCA(**options).fit(DIGITS[:100])


def test_in_a_pipeline_with_names():
    pipeline = make_pipeline(StandardScaler(), StreamingKernelPCA(2)).set_output(transform="pandas")
    frame = pipeline.fit_transform(DIGITS[:200])
    assert list(frame.columns) == ["streamingkernelpca0", "streamingkernelpca1"]
    features = RandomFeatures(n_random_features=3).fit(DIGITS[:20])
    assert list(features.get_feature_names_out()) == [f"randomfeatures{i}" for i in range(3)]
