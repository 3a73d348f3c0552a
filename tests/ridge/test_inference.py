"""Standard errors, tests and intervals, against textbook formulas on dense rows."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from sksketch import StreamingRidge, fit_dask, fit_stream, load
from sksketch.exceptions import NotMergeableError
from sksketch.ridge.inference import second_pass

KINDS = ["HC0", "HC1", "HC2", "HC3", "cluster"]
FIELDS = ["coef", "standard_error", "statistic", "p_value", "interval", "r2", "aic", "f_statistic"]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def table(rng):
    X = rng.standard_normal((400, 4)) * [1.0, 1e-4, 1e5, 1.0] + [1e3, 0.0, 0.0, -5.0]
    y = X @ [1.0, 2e4, 1e-5, 0.0] + np.abs(X[:, 3]) * rng.standard_normal(400)
    return X, y


def dense(X, y, covariance="classical", w=None, groups=None, analytic=False, ridge=0.0):
    """Return coefficients and standard errors by the formulas, on columns in units."""
    center, units = X.mean(axis=0), X.std(axis=0)
    U = np.column_stack([np.ones(len(X)), (X - center) / units])
    w = np.ones(len(X)) if w is None else w
    penalties = np.diag([0.0, *(ridge / units**2)])
    C = U.T @ (w[:, None] * U)
    G = np.linalg.inv(C + penalties)
    b = G @ (U.T @ (w * y))
    e = y - U @ b
    n = float(len(X)) if analytic else w.sum()
    df = n - np.trace(G @ C)
    if covariance == "classical":
        V = (w * e**2).sum() / df * (G @ C @ G)
    elif covariance == "cluster":
        scores = np.stack([((w * e)[:, None] * U)[groups == g].sum(0) for g in np.unique(groups)])
        m = len(scores)
        V = G @ scores.T @ scores @ G * m / (m - 1) * (n - 1) / df
    else:
        h = np.vecdot(U @ G, U) * (w if analytic else 1.0)
        f = {"HC0": 1.0, "HC1": n / df, "HC2": 1 / (1 - h), "HC3": 1 / (1 - h) ** 2}[covariance]
        V = G @ (U.T @ (((w**2 if analytic else w) * e**2 * f)[:, None] * U)) @ G
    T = np.diag([1.0, *(1.0 / units)])
    T[0, 1:] = -center / units
    return T @ b, np.sqrt(np.diag(T @ V @ T.T)), df


@pytest.mark.parametrize("analytic", [False, True])
@pytest.mark.parametrize("covariance", ["classical", *KINDS])
def test_equals_the_formulas(table, rng, covariance, analytic):
    X, y = table
    w = rng.integers(1, 4, len(X)).astype(float) if not analytic else rng.random(len(X)) + 0.1
    groups = rng.integers(0, 25, len(X))
    for weights in (None, w):
        model = StreamingRidge(alpha=0.0).fit(X, y, sample_weight=weights)
        how = "analytic" if analytic else "frequency"
        found = model.inference(covariance, 0.9, weights=how, groups=groups)
        b, errors, df = dense(X, y, covariance, weights, groups, analytic)
        np.testing.assert_allclose(found.coef, b, rtol=1e-9)
        np.testing.assert_allclose(found.standard_error, errors, rtol=1e-9)
        assert found.df_resid == pytest.approx(df)
        law = stats.t(df) if covariance == "classical" else stats.norm()
        half = law.ppf(0.95) * errors
        np.testing.assert_allclose(found.interval, np.stack([b - half, b + half], 1), rtol=1e-7)
        np.testing.assert_allclose(found.p_value, 2 * law.sf(np.abs(b / errors)), atol=1e-9)


def test_a_penalty_has_effective_degrees_of_freedom(table):
    X, y = table
    model = StreamingRidge(alpha=3.0).fit(X, y)
    found = model.inference()
    b, errors, df = dense(X, y, ridge=3.0)
    np.testing.assert_allclose(found.coef, b, rtol=1e-8)
    np.testing.assert_allclose(found.standard_error, errors, rtol=1e-8)
    assert found.df_resid == pytest.approx(df)
    assert found.df_model < 4
    np.testing.assert_allclose(model.coef_, b[1:], rtol=1e-8)
    assert (found.standard_error_bound < 1.001 * found.standard_error).all()


def test_frequency_weights_are_copies(table, rng):
    X, y = table
    counts = rng.integers(0, 4, len(X))
    some = StreamingRidge(alpha=0.0).fit(X, y, sample_weight=counts.astype(float))
    all_ = StreamingRidge(alpha=0.0).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    groups = np.arange(len(X)) % 20
    for covariance in ("classical", *KINDS):
        a = some.inference(covariance, groups=groups)
        b = all_.inference(
            covariance,
            X=np.repeat(X, counts, axis=0),
            y=np.repeat(y, counts),
            groups=np.repeat(groups, counts),
        )
        for name in FIELDS:
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-7, err_msg=name)


def test_months_merge_to_the_year_bit_for_bit(rng):
    X = rng.standard_normal((1200, 6)) * np.logspace(-8, 8, 6) + 1e3
    y = X @ rng.standard_normal(6) + rng.standard_normal(1200)
    w = rng.random(1200) * 3
    for weights in (None, w):
        whole = StreamingRidge(alpha=0.0).fit(X, y, sample_weight=weights).inference()
        cuts = np.sort(rng.choice(np.arange(1, 1200), 11, replace=False))
        parts = []
        for rows in np.split(np.arange(1200), cuts):
            part = StreamingRidge(alpha=0.0)
            for some in np.array_split(rows, min(3, len(rows))):
                counted = None if weights is None else weights[some]
                part.partial_fit(X[some], y[some], sample_weight=counted)
            parts.append(part)
        order = rng.permutation(12)
        year = copy.deepcopy(parts[order[0]])
        for month in order[1:]:
            year.merge(type(year).from_state(parts[month].state()))
        found = year.inference()
        for name in FIELDS:
            assert np.array_equal(getattr(found, name), getattr(whole, name)), name
        single = StreamingRidge(alpha=0.0).fit(X, y, sample_weight=weights)
        assert np.array_equal(year.coef_, single.coef_)
        assert year.intercept_ == single.intercept_


def test_rank_deficiency_is_said(table):
    X, y = table
    wide = np.column_stack([X, X[:, 0] + X[:, 3], X[:, 2]])
    found = StreamingRidge(alpha=0.0).fit(wide, y).inference()
    design = np.column_stack([np.ones(len(X)), wide])
    units = np.linalg.norm(design, axis=0)
    assert found.rank == 5
    assert len(found.dependent) == 2
    assert "depend on other columns" in str(found)
    # The shortest of all solutions: what a pseudo-inverse gives.
    inverse = np.linalg.pinv(design, rcond=1e-15)
    np.testing.assert_allclose(design @ found.coef, design @ (inverse @ y), rtol=1e-9)
    null = np.array([0, 1, 0, 0, 1, -1, 0.0]), np.array([0, 0, 0, 1, 0, 0, -1.0])
    for direction in null:
        assert abs(direction @ found.coef) < 1e-12 * units.max()
    assert np.isfinite(found.standard_error).all()


def test_no_degrees_of_freedom():
    found = StreamingRidge(alpha=0.0).fit(np.eye(3), [1.0, 2.0, 3.0]).inference()
    assert np.isinf(found.standard_error).all()
    assert (found.p_value == 1.0).all()
    assert "no degrees of freedom" in str(found)


def test_many_targets(table, rng):
    X, y = table
    Y = np.column_stack([y, rng.standard_normal(len(y))])
    both = StreamingRidge(alpha=0.0).fit(X, Y)
    for covariance in ("classical", "HC3"):
        found = both.inference(covariance)
        assert found.coef.shape == (2, 5)
        for k in range(2):
            one = StreamingRidge(alpha=0.0).fit(X, Y[:, k]).inference(covariance)
            for name in FIELDS:
                np.testing.assert_allclose(
                    getattr(found, name)[k], getattr(one, name), rtol=1e-12, err_msg=name
                )
            assert list(found.to_frame(k).lower) == pytest.approx(list(one.to_frame().lower))


@pytest.mark.parametrize("covariance", KINDS)
def test_the_second_pass_through_every_runner(table, rng, covariance):
    X, y = table
    groups = rng.integers(0, 20, len(X)).astype(float)
    expected = StreamingRidge(alpha=0.0).fit(X, y).inference(covariance, groups=groups)
    targets = np.column_stack([y, groups]) if covariance == "cluster" else y
    model = fit_stream(StreamingRidge(alpha=0.0), (X, y), progress=False)
    with pytest.raises(ValueError, match="second look at the rows"):
        model.inference(covariance)
    streamed = fit_stream(model.robust_pass(covariance), (X, targets), progress=False)
    halves = [model.robust_pass(covariance).partial_fit(X[s], targets[s]) for s in (slice(0, 99),)]
    halves.append(
        type(streamed).from_state(
            model.robust_pass(covariance).partial_fit(X[99:], targets[99:]).state()
        )
    )
    found = [
        model.inference(covariance, second_pass=streamed),
        model.inference(covariance, second_pass=halves[0].merge(halves[1])),
        model.inference(covariance, source=(X, targets)),
        model.inference(covariance, X=sp.csr_array(X), y=y, groups=groups),
    ]
    for one in found:
        np.testing.assert_allclose(one.standard_error, expected.standard_error, rtol=1e-9)


def test_the_second_pass_on_dask(table):
    da = pytest.importorskip("dask.array")
    X, y = table
    expected = StreamingRidge(alpha=0.0).fit(X, y)
    rows, targets = da.from_array(X, (90, -1)), da.from_array(y, 90)
    model = fit_dask(StreamingRidge(alpha=0.0), rows, targets)
    assert np.array_equal(model.inference().standard_error, expected.inference().standard_error)
    found = model.inference("HC2", X=rows, y=targets)
    np.testing.assert_allclose(
        found.standard_error, expected.inference("HC2").standard_error, rtol=1e-9
    )


def test_a_second_pass_must_be_over_the_same_rows(table):
    X, y = table
    model = StreamingRidge(alpha=0.0).fit(X, y)
    with pytest.raises(ValueError, match="do not look like the 400 rows"):
        model.inference("HC3", X=X[:300], y=y[:300])
    with pytest.raises(ValueError, match="do not look like"):
        model.inference("HC3", X=X, y=y + 1.0)
    other = StreamingRidge(alpha=0.0).fit(X[1:], y[1:])
    with pytest.raises(ValueError, match="other coefficients"):
        model.inference("HC3", second_pass=other.robust_pass("HC3"))
    with pytest.raises(ValueError, match="'HC2'"):
        model.inference("HC3", second_pass=model.robust_pass("HC2"))
    with pytest.raises(NotMergeableError, match="different models"):
        model.robust_pass("HC3").merge(other.robust_pass("HC3"))
    with pytest.raises(ValueError, match="give groups"):
        model.inference("cluster")
    with pytest.raises(ValueError, match="covariance is 'HC9'"):
        model.inference("HC9")


def test_many_rows_of_fit_are_not_kept(table, tmp_path, monkeypatch):
    X, y = table
    model = StreamingRidge(alpha=0.0).fit(X.copy(), y)
    assert np.isfinite(model.inference("HC3").standard_error).all()
    monkeypatch.setattr(second_pass, "KEPT_BYTES", 1000)
    model = StreamingRidge(alpha=0.0).fit(X, y)
    assert np.isfinite(model.inference("HC3").standard_error).all()
    model = StreamingRidge(alpha=0.0).fit(X.copy(), y)
    with pytest.raises(ValueError, match="second look"):
        model.inference("HC3")
    model = StreamingRidge(alpha=0.0).fit(X.tolist(), y.tolist())
    expected = model.inference("HC3").standard_error
    for twin in (pickle.loads(pickle.dumps(model)), saved(model, tmp_path)):
        with pytest.raises(ValueError, match="second look"):
            twin.inference("HC3")
        assert np.array_equal(twin.inference().coef, model.inference().coef)
        found = twin.inference("HC3", X=X, y=y)
        np.testing.assert_allclose(found.standard_error, expected)
    model.partial_fit(X, y)
    with pytest.raises(ValueError, match="second look"):
        model.inference("HC3")


def saved(model, folder):
    model.save(folder / "model.sks")
    return load(folder / "model.sks")


def test_names_and_frame(table):
    pd = pytest.importorskip("pandas")
    X, y = table
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    found = StreamingRidge(alpha=0.0).fit(frame, y).inference()
    assert list(found.to_frame().index) == ["(intercept)", "a", "b", "c", "d"]
    assert found.to_frame().loc["b", "coefficient"] == found.coef[2]
    assert "std err" in str(found)
    page = found._repr_html_()
    assert page.count("<tr>") == 1 + len(found.names)
    assert all(f"<th>{name}</th>" in page for name in found.names)
    given = StreamingRidge(alpha=0.0).fit(X, y)
    assert given.inference(feature_names=frame.columns).names == found.names
    with pytest.raises(ValueError, match="got 2 names for 4 columns"):
        given.inference(feature_names=["a", "b"])
    no = StreamingRidge(alpha=0.0, fit_intercept=False).fit(frame, y).inference()
    assert no.names == ("a", "b", "c", "d")


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("sketch", ["rfd", "fd"])
@pytest.mark.parametrize("standardize", [False, True])
def test_a_sketch_is_never_narrower(rng, sketch, standardize, weights):
    basis = rng.standard_normal((5, 80))
    X = rng.standard_normal((1000, 5)) @ basis * 10 + rng.standard_normal((1000, 80))
    y = X[:, 0] + rng.standard_normal(1000)
    w = rng.integers(0, 3, 1000).astype(float) if weights else None
    for alpha in (0.0, 1.0, 1e3, 1e5):
        options = {"standardize": standardize}
        exact = StreamingRidge(alpha, sketch="exact", **options).fit(X, y, sample_weight=w)
        model = StreamingRidge(alpha, sketch=sketch, sketch_size=12, **options)
        found, true = model.fit(X, y, sample_weight=w).inference(), exact.inference()
        assert (found.interval[:, 0] <= true.interval[:, 0]).all()
        assert (found.interval[:, 1] >= true.interval[:, 1]).all()
        assert (found.standard_error_bound >= true.standard_error * (1 - 1e-9)).all()
        assert (found.p_value >= true.p_value - 1e-9).all()
        if alpha >= 1.0:
            assert np.isfinite(found.interval).all()
    with pytest.raises(ValueError, match="sketch='exact'"):
        model.inference("HC3")


def test_linear_sketches_certify_nothing(table):
    X, y = table
    with pytest.raises(ValueError, match="certifies nothing"):
        StreamingRidge(1.0, sketch="gaussian", sketch_size=50).fit(X, y).inference()


def test_without_exact_products(rng):
    """More columns than the sums without rounding have: floats, and their bounds."""
    X = rng.standard_normal((900, 300))
    y = X[:, 0] + rng.standard_normal(900)
    model = StreamingRidge(alpha=0.0).fit(X, y)
    assert model.sketch_.products is None
    found = model.inference("HC3")
    b, errors, _ = dense(X, y, "HC3")
    np.testing.assert_allclose(found.coef, b, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.standard_error, errors, rtol=1e-8)
    half = stats.norm.ppf(0.975) * errors
    np.testing.assert_allclose(found.interval[:, 1] - found.coef, half, rtol=1e-5)


# Simulated sets; all of them are a slow test.
some_sets = pytest.mark.parametrize("n_sets", [400, pytest.param(2000, marks=pytest.mark.slow)])


def two_errors(n_sets):
    """Two standard errors of a share of 0.95."""
    return 2.0 * (0.95 * 0.05 / n_sets) ** 0.5


@some_sets
def test_coverage_is_nominal(rng, n_sets):
    design = rng.standard_normal((60, 3))
    true = np.array([1.0, -2.0, 0.0])
    covered = {"classical": 0, "HC3": 0, "sketch": 0}
    for _ in range(n_sets):
        y = design @ true + 0.5 + rng.standard_normal(60)
        model = StreamingRidge(alpha=0.0).fit(design, y)
        for name in ("classical", "HC3"):
            low, high = model.inference(name).interval[1:].T
            covered[name] += int(((low <= true) & (true <= high)).sum())
        model = StreamingRidge(alpha=0.0, sketch="rfd", sketch_size=3).fit(design, y)
        low, high = model.inference().interval[1:].T
        covered["sketch"] += int(((low <= true) & (true <= high)).sum())
    shares = {name: count / (3 * n_sets) for name, count in covered.items()}
    assert abs(shares["classical"] - 0.95) < two_errors(n_sets)
    # Of so small samples HC3 is somewhat too wide.
    assert abs(shares["HC3"] - 0.95) < two_errors(n_sets) + 0.01
    assert shares["sketch"] >= 0.95 - two_errors(n_sets)


@some_sets
def test_coverage_of_a_sketch_that_loses_something_is_at_least_nominal(rng, n_sets):
    """The coefficients meant are those of ridge regression itself."""
    design = 3.0 * rng.standard_normal((120, 3)) @ rng.standard_normal((3, 8))
    design += rng.standard_normal((120, 8))
    around = design - design.mean(axis=0)
    C, true, alpha = around.T @ around, rng.standard_normal(8), 30.0
    meant = np.linalg.solve(C + alpha * np.eye(8), C @ true)
    covered = 0
    for _ in range(n_sets):
        y = design @ true + 0.5 + rng.standard_normal(120)
        model = StreamingRidge(alpha, sketch="rfd", sketch_size=4).fit(design, y)
        low, high = model.inference().interval[1:].T
        assert np.isfinite(high - low).all()
        covered += int(((low <= meant) & (meant <= high)).sum())
    assert covered / (8 * n_sets) >= 0.95 - two_errors(n_sets)


def test_columns_that_depend_on_none_are_not_charged_for_those_that_do():
    rng = np.random.default_rng(0)
    n = 600
    when = np.arange(n) / n
    # Levels that add up to one, and two columns that differ in their last digits.
    levels = np.eye(3)[rng.integers(0, 3, n)]
    plain = rng.standard_normal((n, 2))
    X = np.column_stack([levels, when, when + 1e-11 * rng.standard_normal(n), plain])
    y = levels @ [1.0, 2.0, 3.0] + plain @ [1.0, -1.0] + rng.standard_normal(n)
    found = StreamingRidge(0.0).fit(X, y).inference()
    assert found.rank == 7
    assert len(found.dependent) == 1
    alone = StreamingRidge(0.0).fit(np.column_stack([levels[:, 1:], when, plain]), y).inference()
    np.testing.assert_allclose(found.coef[-2:], alone.coef[-2:], atol=0.02)
    assert (found.coef_error_bound[-2:] < 1e-9).all()
    widths = np.diff(found.interval)[-2:] / np.diff(alone.interval)[-2:]
    np.testing.assert_allclose(widths, 1.0, atol=0.02)
