"""The certificate against dense truth, for every rule and read-out, over many drawn streams."""

import numpy as np
import pytest
import scipy.stats

from _support import laws, zoo
from sksketch import Centered, ExactCovariance, FrequentDirections
from sksketch.sketches.certificate import Certificate, certify

N_STREAMS = 100


def random_options(rng, **fixed):
    """Draw the options that a certificate must not care about."""
    size = int(rng.integers(1, 9))
    solver = fixed["solver"]
    options = {
        "sketch_size": size,
        "buffer_rows": size + int(rng.integers(1, 30)) if solver == "exact" else 60 + size,
        "seed": int(rng.integers(1000)),
        "initial_ridge": float(rng.choice([0.0, 0.0, 2.0])),
    }
    if rng.random() < 0.3:
        options["decay"] = float(rng.choice([0.5, 0.9, 0.99]))
    if rng.random() < 0.3:
        options |= {"tol": 0.01, "max_sketch_size": 16}
    return options | fixed


def stream(seed, **fixed):
    """Return a sketch after a random merge tree with weights and saves, and its rows."""
    rng = np.random.default_rng(seed)
    options = random_options(rng, **fixed)
    # The block solver needs more columns than directions to have anything to lose.
    width = int(rng.integers(30, 60)) if fixed["solver"] == "block" else None
    X = zoo.draw(rng, width, max_rows=180)
    sketch, rows = laws.random_tree(
        lambda: FrequentDirections(**options), X, rng, weighted=rng.random() < 0.5
    )
    if sketch.n_features is None:
        sketch.update(X)
        rows.update(X, decay=sketch.decay)
    return sketch, rows.matrix()


@pytest.mark.parametrize("rule", laws.RULES)
def test_exact_solver_is_never_wrong(rule):
    # The state does not depend on the read-out (but for the probes of "energy"), so one stream
    # serves all of them.
    n_shrinks = 0
    for seed in range(N_STREAMS):
        sketch, A = stream(seed, solver="exact", correction="energy", **laws.RULES[rule])
        n_shrinks += sketch.n_shrinks
        for correction in laws.CORRECTIONS:
            read = laws.with_correction(sketch, correction)
            broken = laws.broken_bounds(read, A)
            assert not broken, f"stream {seed}, {correction}: {broken}"
            assert read.summary().confidence == 1.0
    assert n_shrinks > 5 * N_STREAMS


@pytest.mark.parametrize("rule", laws.RULES)
def test_block_solver_keeps_its_confidence(rule):
    # Asked for 4 bounds in 5 to hold, so that a count says something.
    failures, confidences, n_certified = 0, [], 0
    for seed in range(N_STREAMS):
        sketch, A = stream(
            seed, solver="block", correction="energy", failure_probability=0.2, **laws.RULES[rule]
        )
        broken = {}
        for correction in laws.CORRECTIONS:
            read = laws.with_correction(sketch, correction)
            if claims := laws.broken_bounds(read, A):
                broken[correction] = claims
        confidence = sketch.summary().confidence
        confidences.append(confidence)
        n_certified += confidence < 1
        assert not (broken and confidence == 1), f"stream {seed}: {broken}"
        failures += bool(broken)
    assert n_certified > N_STREAMS / 4
    expected = sum(1 - confidence for confidence in confidences)
    assert failures <= scipy.stats.poisson.ppf(1 - 1e-6, expected)
    # In practice the bound is looser than its probability says.
    assert failures <= 0.02 * N_STREAMS


@pytest.mark.parametrize("solver", ["exact", "block"])
def test_centered_certificates_hold(solver):
    for seed in range(60):
        rng = np.random.default_rng(10_000 + seed)
        options = random_options(rng, solver=solver)
        X = zoo.draw(rng, 35, max_rows=600) + float(rng.choice([0.0, 3.0]))
        sketch, rows = laws.random_tree(
            lambda options=options: Centered(FrequentDirections(**options)),
            X,
            rng,
            weighted=rng.random() < 0.5,
        )
        if sketch.n_features is None:
            continue
        A = rows.matrix(centered=True)
        # Centering rounds relative to the rows as they came.
        atol = zoo.atol(A) + 1e-12 * zoo.energy(rows.matrix())
        broken = laws.broken_bounds(sketch, A, atol)
        assert not broken, f"stream {seed}: {broken}"
        scale = np.abs(X).max()
        np.testing.assert_allclose(sketch.mean, rows.mean, rtol=1e-9, atol=1e-12 * scale)
        np.testing.assert_allclose(sketch.total_weight, rows.weights.sum(), rtol=1e-9)


@pytest.mark.parametrize("solver", ["exact", "block", "covariance"])
@pytest.mark.parametrize("animal", ["flat", "power law", "spiked", "low rank", "large mean"])
@pytest.mark.parametrize("kind", ["directions", "covariance"])
def test_float32_bounds_include_their_own_rounding(kind, animal, solver):
    # Bounds that allow for rounding need no tolerance but the oracle's.
    X = zoo.SHAPES[animal](400, 40).astype(np.float32)
    if kind == "covariance":
        sketch = ExactCovariance().update(X)
    else:
        sketch = laws.fd(laws.SOLVERS[solver]).update(X)
    error = np.linalg.norm(zoo.gram(X) - sketch.summary().to_dense(), 2)
    assert error <= sketch.error_bound() + zoo.ORACLE_RTOL * zoo.energy(X)


LONG_STREAMS = {
    "varied": lambda rng: rng.standard_normal((20_000, 40)) / np.arange(1, 41),
    "rank three": lambda rng: rng.standard_normal((20_000, 3)) @ rng.standard_normal((3, 40)),
    "constant": lambda rng: np.full((40_000, 20), 0.1),
}


@pytest.mark.parametrize(
    ("name", "solver", "buffer_rows"),
    [
        *(("varied", "exact", 14), ("rank three", "exact", 14), ("constant", "exact", 14)),
        *(("varied", "block", 24), ("constant", "block", 24)),
    ],
)
def test_bounds_hold_after_a_thousand_shrinks_in_single_precision(name, solver, buffer_rows):
    # Rounding adds up: in a random walk where rows vary, and steadily where they do not.
    X = LONG_STREAMS[name](np.random.default_rng(0)).astype(np.float32)
    sketch = FrequentDirections(4, solver=solver, buffer_rows=buffer_rows, correction="none")
    sketch.update(X)
    assert sketch.n_shrinks >= 999
    # Rows in single precision; what is kept of them is not, or it would stop growing.
    assert sketch.dtype == np.float32
    assert sketch.matrix.dtype == np.float64
    # Bounds that allow for rounding need no tolerance but the oracle's.
    error = np.linalg.norm(zoo.gram(X) - sketch.summary().to_dense(), 2)
    assert error <= sketch.error_bound() + zoo.ORACLE_RTOL * zoo.energy(X)
    laws.bound_is_true(sketch, X)


@pytest.mark.parametrize("solver", ["exact", "block"])
def test_the_squared_norm_of_single_precision_rows_is_a_double(solver):
    X = np.full((8_000, 40), 0.1, dtype=np.float32)
    sketch = FrequentDirections(4, solver=solver, buffer_rows=24).update(X)
    np.testing.assert_allclose(sketch.squared_norm, zoo.energy(X), rtol=1e-8)


def test_certify_follows_its_formulas():
    certificate = certify(
        np.array([10.0, 4.0, 1.0]),
        lost=(0.5, 2.0),
        lost_mass=5.0,
        allowance=0.0,
        spectral_error=(0.1, 2.0),
        squared_norm=20.0,
        n_rows_seen=7,
        confidence=0.9,
    )
    assert isinstance(certificate, Certificate)
    np.testing.assert_allclose(certificate.eigenvalues, [[10.5, 12.0], [4.5, 6.0], [1.5, 3.0]])
    np.testing.assert_allclose(
        certificate.captured_energy, [[10.5 / 20, 12 / 20], [15 / 20, 18 / 20], [16.5 / 20, 1.0]]
    )
    assert certificate.n_certain == 2
    assert certificate.relative_error == 0.1


def test_a_certificate_of_nothing():
    certificate = FrequentDirections(3, solver="exact").update(np.zeros((2, 4))).certificate()
    assert certificate.relative_error == 0.0
    assert certificate.n_certain == 0
    assert certificate.spectral_error == (0.0, 0.0)
    assert "no components" in str(certificate)


def test_a_certificate_prints_as_one_block():
    certificate = laws.fd(laws.BLOCK).update(zoo.SHAPES["flat"](300, 50)).certificate()
    text = str(certificate)
    lines = text.splitlines()
    assert len(lines) == 5
    # And as a table in notebooks.
    page = certificate._repr_html_()
    assert all(value in page for _, value in certificate.facts())
    assert page.count("<tr>") == page.count("</tr>") == 4
    assert "confidence 0.99" in lines[0]
    assert "nan" not in text


def test_merged_block_sketches_add_their_failure_probabilities():
    X = zoo.SHAPES["flat"](400, 50)
    one = laws.fd(laws.BLOCK, failure_probability=0.1).update(X[:200])
    two = laws.fd(laws.BLOCK, failure_probability=0.1).update(X[200:])
    alone = [1 - sketch.summary().confidence for sketch in (one, two)]
    merged = 1 - (one | two).summary().confidence
    assert merged >= max(alone)
    assert merged <= 0.2


def test_uncertified_blocks_are_bounded_by_the_lost_mass():
    X = zoo.SHAPES["power law"](400, 50)
    sketch = laws.fd(laws.BLOCK, certify=False, correction="none").update(X)
    lost = zoo.energy(X) - zoo.energy(sketch.matrix)
    assert sketch.error_bound() <= lost * (1 + 1e-9)
    assert sketch.summary().confidence == 1.0
    assert sketch.error_bound() > laws.fd(laws.BLOCK, correction="none").update(X).error_bound()
    laws.bound_is_true(sketch, X)
