"""Feature maps: laws, addresses, precision, sparse rows, other array libraries."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel

from sksketch import _keys
from sksketch.kernel_methods.bandwidth import median_distance, resolve_bandwidth
from sksketch.kernel_methods.feature_maps import NystromMap, RandomFeatureMap, load_features
from sksketch.kernel_methods.kernels import Kernel, canonical_name, check_domain

RNG = np.random.default_rng(0)
X = np.abs(RNG.standard_normal((6, 4))) * 0.5
KERNELS = [
    *((name, {}) for name in _keys.KERNELS if name not in ("dot-product", "matern", "arc-cosine")),
    ("matern", {"nu": 1.5}),
    ("matern", {"nu": 0.8}),
    ("dot-product", {"radius": 2.0}),
    ("dot-product", {"coefficients": [0.5, 0.0, 2.0], "radius": 2.0}),
    *(("arc-cosine", {"order": order}) for order in range(3)),
]
IDS = [f"{name} {params}" for name, params in KERNELS]
# Features of so few columns are nearly all exact: there is no error to measure.
NOISY = [(name, params) for name, params in KERNELS if name != "linear"]


def by_definition(name, params, x, y):
    """Return the kernel of two rows from the table of the paper, corrected, without our code."""
    dot, distance = float(x @ y), float(np.linalg.norm(x - y))
    if name == "gaussian":
        return math.exp(-(distance**2) / 2)
    if name == "laplacian":
        return math.exp(-np.abs(x - y).sum())
    if name == "cauchy":
        return np.prod(1 / (1 + (x - y) ** 2))
    if name == "matern":
        return Matern(nu=params["nu"])(x[None], y[None])[0, 0]
    if name == "dot-product":
        series = params.get("coefficients", [1 / math.factorial(n) for n in range(30)])
        return sum(a * dot**n for n, a in enumerate(series))
    if name == "linear":
        return dot
    if name == "polynomial":
        return (dot + 1) ** 3
    if name == "exponential-semigroup":
        return math.exp(-np.sqrt(x + y).sum())
    if name == "reciprocal-semigroup":
        return np.prod(1 / (1 + x + y))
    # Arc-cosine: 2 E[max(0, wx)^n max(0, wy)^n], by the angle's integral in the plane of x and y.
    n, a, b = params["order"], np.linalg.norm(x), np.linalg.norm(y)
    theta = math.acos(min(1.0, dot / (a * b)))
    phi = np.linspace(-math.pi / 2 + theta, math.pi / 2, 200_001)
    moment = {0: 1.0, 1: 2.0, 2: 8.0}[n]
    product = (np.cos(phi) ** n) * (np.cos(phi - theta) ** n)
    return 2 * a**n * b**n * moment * np.trapezoid(product, phi) / (2 * math.pi)


@pytest.mark.parametrize(("name", "params"), KERNELS, ids=IDS)
def test_kernels_are_their_definitions(name, params):
    scale = 1.3
    values = Kernel(name, scale, params)(X, X[:3])
    wanted = [[by_definition(name, params, x / scale, y / scale) for y in X[:3]] for x in X]
    assert values == pytest.approx(np.array(wanted), abs=1e-7)
    sparse = Kernel(name, scale, params)(sp.csr_array(X), sp.csr_array(X[:3]))
    assert sparse == pytest.approx(values, abs=1e-7)


def test_kernels_agree_with_scikit_learn():
    assert Kernel("rbf", 2.0)(X, X) == pytest.approx(rbf_kernel(X, gamma=1 / 8))
    assert Kernel("laplacian", 2.0)(X, X) == pytest.approx(laplacian_kernel(X, gamma=0.5))
    assert Kernel("linear", 2.0)(X, X) == pytest.approx(linear_kernel(X) / 4)
    cubic = Kernel("polynomial", 1.0, {"degree": 2, "coef0": 0.5})(X, X)
    assert cubic == pytest.approx(polynomial_kernel(X, degree=2, gamma=1.0, coef0=0.5))


@pytest.mark.parametrize(("name", "params"), NOISY, ids=map(str, NOISY))
def test_features_reproduce_their_kernel_within_four_standard_errors(name, params):
    kernel = Kernel(name, 1.3, params)
    features = RandomFeatureMap(kernel, X.shape[1], 100_000, seed=5, block_columns=1000)
    exact = kernel(X, X)
    blocks = []
    for start in range(0, 100_000, 1000):
        order, parameters = features.parameters(start, start + 1000, X)
        assert sorted(order) == list(range(start, start + 1000))
        F = features.values(start, start + 1000, parameters, X)
        blocks.append(F @ F.T / 1000)
    blocks = np.array(blocks)
    standard_error = blocks.std(axis=0) / math.sqrt(len(blocks))
    assert (np.abs(blocks.mean(axis=0) - exact) <= 4 * standard_error + 1e-12).all()
    # 100 times the features, a tenth of the error.
    alone = np.abs(blocks - exact).mean()
    assert np.abs(blocks.mean(axis=0) - exact).mean() < 0.35 * alone + 1e-12


def test_linear_features_are_unbiased_and_those_of_landmarks_exact():
    kernel, exact = Kernel("linear", 1.3), X @ X.T / 1.3**2
    found = [RandomFeatureMap(kernel, 4, 8, seed).transform(X) for seed in range(400)]
    products = np.array([Z @ Z.T for Z in found])
    standard_error = products.std(axis=0) / math.sqrt(len(products))
    assert (np.abs(products.mean(axis=0) - exact) <= 4 * standard_error + 1e-12).all()
    Z = NystromMap(kernel, X).transform(X)
    assert Z.shape == (6, 4)
    assert pytest.approx(exact) == Z @ Z.T


@pytest.mark.parametrize(("name", "params"), KERNELS, ids=IDS)
def test_features_are_functions_of_seed_and_number(name, params):
    kernel = Kernel(name, 1.3, params)
    one = RandomFeatureMap(kernel, 4, 600, seed=5, block_columns=200)
    again = load_features(one.state())
    Z = one.transform(X)
    assert np.array_equal(Z, again.transform(X))
    # Other rows beside them, other stretches, and other precision change nothing else.
    assert one.transform(np.vstack([X[2:3], X]))[1:] == pytest.approx(Z, abs=1e-12)
    found = np.empty_like(Z)
    for start in range(0, 600, 200):
        for rows, columns, values in one.blocks(X, start, start + 200):
            found[rows, columns] = values
    assert found * 600**-0.5 == pytest.approx(Z, abs=1e-12)
    single = one.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    assert single == pytest.approx(Z, abs=2e-3 * np.abs(Z).max())
    sparse = one.transform(sp.csr_array(X))
    assert sparse == pytest.approx(Z, abs=1e-9)
    assert not np.array_equal(RandomFeatureMap(kernel, 4, 600, seed=6).transform(X), Z)
    kept = RandomFeatureMap(kernel, 4, 600, seed=5, block_columns=200, cached=True)
    for _ in range(2):
        assert np.array_equal(kept.transform(X), Z)


@pytest.mark.parametrize(("name", "params"), KERNELS, ids=IDS)
def test_features_are_the_same_in_torch(name, params):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    features = RandomFeatureMap(Kernel(name, 1.3, params), 4, 600, seed=5, block_columns=200)
    Z = features.transform(X)
    found = features.transform(torch.asarray(X))
    assert isinstance(found, torch.Tensor)
    assert found.numpy() == pytest.approx(Z, abs=1e-9 * max(1.0, np.abs(Z).max()))
    assert features.transform(torch.asarray(X, dtype=torch.float32)).dtype == torch.float32
    a = RNG.standard_normal((600, 2))
    values = features.evaluate(torch.asarray(X), a).numpy()
    assert values == pytest.approx(Z @ a * 600**0.5, abs=1e-7)


def test_pairs_have_less_error_than_phases():
    kernel = Kernel("gaussian")
    errors = {}
    for pairs in (True, False):
        maps = [RandomFeatureMap(kernel, 4, 512, seed=s, pairs=pairs) for s in range(30)]
        errors[pairs] = np.mean(
            [np.abs(m.transform(X) @ m.transform(X).T - kernel(X, X)) for m in maps]
        )
    assert errors[True] < 0.9 * errors[False]
    odd = RandomFeatureMap(kernel, 4, 7, seed=0).transform(X)
    assert odd.shape == (6, 7)


def test_nystrom_is_exact_on_its_landmarks():
    rows = RNG.standard_normal((60, 3))
    kernel = Kernel("laplacian", 2.0)
    features = NystromMap(kernel, rows[:20])
    Z = features.transform(rows)
    assert Z[:20] @ Z[:20].T == pytest.approx(kernel(rows[:20], rows[:20]), abs=1e-9)
    again = load_features(features.state())
    assert np.array_equal(again.transform(rows), Z)
    a = RNG.standard_normal((features.n_columns, 2))
    wanted = Z @ a * features.n_columns**0.5
    assert features.evaluate(rows, a) == pytest.approx(wanted, abs=1e-9)
    # Equal landmarks add nothing.
    doubled = NystromMap(kernel, np.vstack([rows[:20], rows[:20]]))
    assert doubled.n_columns == 20
    sparse = NystromMap(Kernel("gaussian"), sp.csr_array(rows[:20]))
    assert load_features(sparse.state()).transform(sp.csr_array(rows)).shape == (60, 20)


def test_bandwidth_is_the_median_of_distances_between_distinct_rows():
    rows = np.array([[0.0], [1.0], [1.0], [3.0]])
    assert median_distance(rows, "gaussian", 0) == pytest.approx(2.0)
    assert median_distance(np.ones((5, 2)), "gaussian", 0) == 1.0
    assert resolve_bandwidth("median", "polynomial", rows, 0) == 1.0
    many = RNG.standard_normal((4000, 3))
    distances = np.linalg.norm(many[:500, None] - many[None, 500:1000], axis=2)
    assert median_distance(many, "gaussian", 0) == pytest.approx(np.median(distances), rel=0.03)
    city = np.abs(many[:500, None] - many[None, 500:1000]).sum(axis=2)
    assert median_distance(many, "laplacian", 0) == pytest.approx(np.median(city), rel=0.03)


@pytest.mark.parametrize(
    ("name", "bandwidth", "params", "message"),
    [
        ("sigmoid", 1.0, {}, "there is no kernel 'sigmoid'; give one of gaussian"),
        ("gaussian", 0.0, {}, "bandwidth is 0.0; give a positive number"),
        ("gaussian", 1.0, {"nu": 1}, "has no parameter 'nu'; it takes none"),
        ("matern", 1.0, {"nu": -1}, "nu is -1; give a positive number"),
        ("polynomial", 1.0, {"degree": 2.5}, "degree is 2.5"),
        ("polynomial", 1.0, {"coef0": -1.0}, "coef0 is -1.0"),
        ("arc-cosine", 1.0, {"order": 3}, "order is 3; give 0, 1 or 2"),
        ("dot-product", 1.0, {"coefficients": [1.0, -1.0]}, "not negative"),
    ],
)
def test_strange_kernels_are_refused(name, bandwidth, params, message):
    with pytest.raises(ValueError, match=message):
        Kernel(name, bandwidth, params)


def test_names_are_read_kindly():
    assert canonical_name("Arc_Cosine") == "arc-cosine"
    with pytest.raises(ValueError, match="defined for numbers from 0 on, got -1"):
        check_domain("reciprocal-semigroup", np.array([[0.0, -1.0]]))
    with pytest.raises(ValueError, match="bandwidth is 'wide'"):
        resolve_bandwidth("wide", "gaussian", X, 0)
