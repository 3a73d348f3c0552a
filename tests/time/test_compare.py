"""Comparisons: true about the rows, silent about samples of one distribution, and not too shy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sksketch
from sksketch import (
    Centered,
    Comparison,
    ExactCovariance,
    FrequentDirections,
    NotMergeableError,
    SlidingWindow,
    StreamingPCA,
    StreamingRidge,
    compare,
)

MAKERS = {
    "exact": ExactCovariance,
    "fd": lambda: FrequentDirections(4, solver="exact"),
    "full": lambda: FrequentDirections(3, solver="exact", correction="full"),
}


def covariance(X, centered):
    X = X - X.mean(0) if centered else X
    return X.T @ X / len(X)


def drawn(rng, n, d, kind=None):
    """Return rows of one of several distributions, none with tails above Gaussian ones."""
    kind = rng.integers(4) if kind is None else kind
    scale = 10.0 ** rng.uniform(-2, 2, d)
    mix = np.linalg.qr(rng.standard_normal((d, d)))[0] if rng.random() < 0.5 else np.eye(d)

    def draw(size):
        if kind == 0:
            X = rng.standard_normal((size, d))
        elif kind == 1:
            X = rng.uniform(-1, 1, (size, d))
        elif kind == 2:
            X = (rng.random((size, d)) < 0.4).astype(float)
        else:
            X = rng.standard_normal((size, d)) + 100.0
        return (X * scale) @ mix

    return draw


@pytest.mark.parametrize("name", MAKERS)
@given(seed=st.integers(0, 2**16))
@settings(max_examples=25)
def test_every_statement_about_the_rows_is_true(name, seed):
    rng = np.random.default_rng(seed)
    d, centered = int(rng.integers(1, 15)), bool(rng.random() < 0.5)
    draw = drawn(rng, 0, d)
    X, Y = draw(int(rng.integers(2, 200))), draw(int(rng.integers(2, 200)))
    Y[:, 0] *= rng.choice([1.0, 3.0])
    make = (lambda: Centered(MAKERS[name]())) if centered else MAKERS[name]
    found = compare(make().update(X), make().update(Y), confidence=None)
    D = covariance(Y, centered) - covariance(X, centered)
    slack = 1e-10 * (np.trace(covariance(X, False)) + np.trace(covariance(Y, False)))
    values = np.linalg.eigvalsh(D)
    low, high = found.largest_change
    assert low - slack <= abs(values).max() <= high + slack
    # So many directions have a change that is none of rounding.
    assert found.n_changed <= np.count_nonzero(abs(values) > 0)
    for direction, (least, most) in zip(found.directions, found.changes, strict=True):
        change = direction @ D @ direction
        assert least - slack <= change <= most + slack
    k = len(found.angles)
    if k:
        V, W = (np.linalg.eigh(covariance(Z, centered))[1][:, ::-1][:, :k] for Z in (X, Y))
        s = np.clip(np.linalg.svd(V.T @ W, compute_uv=False), 0, 1)
        true = np.degrees(np.arccos(s))
        assert (found.angles[:, 0] - 1e-4 <= true).all()
        assert (true <= found.angles[:, 1] + 1e-4).all()
    if centered:
        off = np.linalg.norm(found.mean_shift.difference - (Y.mean(0) - X.mean(0)))
        assert off <= found.mean_shift.error + 1e-10 * np.linalg.norm(X.mean(0))


def test_samples_of_one_distribution_are_not_distinguishable():
    # At the stated confidence 4 of 400 may be; the constants are on the safe side.
    alarms = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 30))
        draw = drawn(rng, 0, d)
        make = MAKERS["exact" if seed % 2 else "fd"]
        a = Centered(make()).update(draw(int(rng.integers(2, 400))))
        b = Centered(make()).update(draw(int(rng.integers(2, 400))))
        alarms += compare(a, b).distinguishable
    assert alarms == 0


def test_a_change_of_three_times_the_bounds_is_found():
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(400, 1500)), int(rng.integers(2, 20))
        make = (
            (lambda: Centered(FrequentDirections(5, solver="exact")))
            if seed % 2
            else (lambda: Centered(ExactCovariance()))
        )
        a = make().update(rng.standard_normal((n, d)))
        null = compare(a, make().update(rng.standard_normal((n, d))))
        change = 3.0 * (null.error + null.allowance)
        v = rng.standard_normal(d)
        v /= np.linalg.norm(v)
        X = rng.standard_normal((n, d))
        X += np.outer(X @ v, v) * (np.sqrt(1.0 + change) - 1.0)
        found += compare(a, make().update(X)).n_changed >= 1
    assert found >= 57


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_all_variances_four_times_as_large_are_found(factor):
    # The allowance for the largest variance would hide this.
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, 500, 6))
    found = compare(*(Centered(ExactCovariance()).update(Z) for Z in (X, factor * Y)))
    assert found.n_changed >= 3
    assert found.directions.shape == (found.n_changed, 6)
    D = covariance(factor * Y, True) - covariance(X, True)
    for direction, (least, most) in zip(found.directions, found.changes, strict=True):
        assert least - 1e-9 <= direction @ D @ direction <= most + 1e-9


def test_a_small_variance_beside_large_ones_is_found():
    rng = np.random.default_rng(1)
    scales = np.array([10.0, 10.0, 4.0])
    X, Y = rng.standard_normal((2, 2000, 3)) * scales
    Y[:, 2] *= 3.0
    found = compare(*(Centered(ExactCovariance()).update(Z) for Z in (X, Y)))
    assert found.n_changed == 1
    assert abs(found.directions[0, 2]) > 0.9


def test_rare_values_are_no_change():
    rng = np.random.default_rng(0)
    for _ in range(50):
        X, Y = (
            np.column_stack([rng.standard_normal((1000, 3)), rng.random((1000, 2)) < 0.002])
            for _ in range(2)
        )
        assert not compare(*(Centered(ExactCovariance()).update(Z) for Z in (X, Y))).distinguishable


def test_standard_errors_of_means_cover():
    inside = total = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        d = 5
        draw, shift = drawn(rng, 0, d), rng.standard_normal(d)
        a, b = (Centered(ExactCovariance()).update(draw(200) + m) for m in (0.0, shift))
        found = compare(a, b).mean_shift
        inside += int((abs(found.difference - shift) <= 1.96 * found.standard_error).sum())
        total += d
    assert 0.93 <= inside / total <= 0.97


def test_a_moved_mean_and_a_new_variance_come_first():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, 1000, 4))
    Y[:, 2] += 1.0
    Y[:, 1] *= 2.0
    pd = pytest.importorskip("pandas")
    frames = [pd.DataFrame(Z, columns=["a", "wide", "moved", "d"]) for Z in (X, Y)]
    found = compare(*(StreamingPCA(2).fit(frame) for frame in frames))
    assert isinstance(found, Comparison)
    assert found.distinguishable
    assert {column.name for column in found.columns[:2]} == {"wide", "moved"}
    np.testing.assert_array_equal(found.mean_shift.certain, [False, False, True, False])
    text = str(found)
    assert text.startswith("certainly changed: 1,000 and 1,000 rows, at confidence 0.99")
    assert "wide" in text
    assert "moved" in found._repr_html_()
    assert "<script" not in found._repr_html_()


def test_coefficients_of_ridge_models():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, 2000, 6))
    w = np.ones(6)
    a = StreamingRidge(1.0).fit(X, X @ w)
    b = StreamingRidge(1.0).fit(Y, Y @ (w + np.eye(6)[3]))
    found = compare(a, b).coefficients
    assert found.certain[3]
    np.testing.assert_allclose(found.difference, [0, 0, 0, 1, 0, 0], atol=0.01)
    assert found.error_bound < 1e-6
    assert "coefficients changed" in str(compare(a, b))
    assert compare(StreamingPCA(2).fit(X), StreamingPCA(2).fit(Y)).coefficients is None


def test_windows_and_archived_states_compare():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 5))
    X[2000:] *= 3.0
    window = SlidingWindow(Centered(ExactCovariance()), rows=900).update(X)
    before = Centered(ExactCovariance()).update(X[:2000])
    assert compare(before, window).n_changed == 5
    model = StreamingPCA(2, window=900).fit(X)
    assert compare(StreamingPCA(2).fit(X[:2000]), model).n_changed == 5


def test_what_cannot_be_compared_is_refused():
    X = np.random.default_rng(0).standard_normal((50, 4))
    exact = ExactCovariance().update(X)
    for other, words in (
        (ExactCovariance().update(X[:, :3]), "of 4 and 3 columns"),
        (Centered(ExactCovariance()).update(X), "one of the two is centered"),
    ):
        with pytest.raises(NotMergeableError, match=words):
            compare(exact, other)
    with pytest.raises(ValueError, match="seen no rows"):
        compare(exact, ExactCovariance())
    with pytest.raises(TypeError, match="certifies no error"):
        compare(exact, sksketch.GaussianSketch(3).update(X))
    with pytest.raises(TypeError, match="got a dict"):
        compare(exact, {})
    with pytest.raises(ValueError, match="confidence is"):
        compare(exact, exact, confidence=1.0)
    with pytest.raises(ValueError, match="kurtosis is"):
        compare(exact, exact, kurtosis=1.0)
    scaled = StreamingPCA(2, sketch="rfd", sketch_size=2, standardize=True).fit(X)
    with pytest.raises(NotMergeableError, match="divided by their own"):
        compare(scaled, scaled)
