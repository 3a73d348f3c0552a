"""Certified answers of the Statistical Reference Datasets of NIST (public domain)."""

import numpy as np
import pytest

from sksketch import StreamingRidge

LONGLEY = np.array(
    [
        [60323, 83.0, 234289, 2356, 1590, 107608, 1947],
        [61122, 88.5, 259426, 2325, 1456, 108632, 1948],
        [60171, 88.2, 258054, 3682, 1616, 109773, 1949],
        [61187, 89.5, 284599, 3351, 1650, 110929, 1950],
        [63221, 96.2, 328975, 2099, 3099, 112075, 1951],
        [63639, 98.1, 346999, 1932, 3594, 113270, 1952],
        [64989, 99.0, 365385, 1870, 3547, 115094, 1953],
        [63761, 100.0, 363112, 3578, 3350, 116219, 1954],
        [66019, 101.2, 397469, 2904, 3048, 117388, 1955],
        [67857, 104.6, 419180, 2822, 2857, 118734, 1956],
        [68169, 108.4, 442769, 2936, 2798, 120445, 1957],
        [66513, 110.8, 444546, 4681, 2637, 121950, 1958],
        [68655, 112.6, 482704, 3813, 2552, 123366, 1959],
        [69564, 114.2, 502601, 3931, 2514, 125368, 1960],
        [69331, 115.7, 518173, 4806, 2572, 127852, 1961],
        [70551, 116.9, 554894, 4007, 2827, 130081, 1962],
    ]
)
LONGLEY_COEF = [
    *(-3482258.63459582, 15.0618722713733, -0.358191792925910e-01, -2.02022980381683),
    *(-1.03322686717359, -0.511041056535807e-01, 1829.15146461355),
]
LONGLEY_ERRORS = [
    *(890420.383607373, 84.9149257747669, 0.334910077722432e-01, 0.488399681651699),
    *(0.214274163161675, 0.226073200069370, 455.478499142212),
]
NOISE = [759, -2048, 2048, -2048, 2523, -2048, 2048, -2048, 1838, -2048]
NOISE = np.array([*NOISE, 2048, *NOISE[::-1]], dtype=float)
WAMPLER_ERRORS = np.array(
    [
        *(2152.32624678170, 2363.55173469681, 779.343524331583, 101.475507550350),
        *(5.64566512170752, 0.112324854679312),
    ]
)


def digits(found, certified):
    """Return the digits that are right, of the worst number."""
    found, certified = np.asarray(found), np.asarray(certified)
    with np.errstate(divide="ignore"):
        return float(-np.log10(np.abs(found - certified) / np.abs(certified)).max().clip(-99))


def wampler(number):
    x = np.arange(21.0)
    X = np.stack([x**k for k in range(1, 6)], axis=1)
    coef = np.full(6, 1.0) if number != 2 else 0.1 ** np.arange(6)
    y = np.polynomial.polynomial.polyval(x, coef)
    return X, y + {3: 1.0, 4: 100.0, 5: 1e4}.get(number, 0.0) * NOISE, coef


def streamed(X, y):
    model = StreamingRidge(alpha=0.0)
    for i in range(0, len(X), 5):
        model.partial_fit(X[i : i + 5], y[i : i + 5])
    return model


@pytest.mark.parametrize("fit", [lambda X, y: StreamingRidge(alpha=0.0).fit(X, y), streamed])
def test_longley(fit):
    model = fit(LONGLEY[:, 1:], LONGLEY[:, 0])
    found = model.inference()
    assert digits(found.coef, LONGLEY_COEF) > 12
    assert digits(found.standard_error, LONGLEY_ERRORS) > 12
    assert digits(np.sqrt(found.scale), 304.854073561965) > 12
    assert digits(found.r2, 0.995479004577296) > 12
    assert digits(found.f_statistic, 330.285339234588) > 12
    assert digits(model.coef_, LONGLEY_COEF[1:]) > 12
    assert model.coef_error_bound_ < 1e-12


@pytest.mark.parametrize("fit", [lambda X, y: StreamingRidge(alpha=0.0).fit(X, y), streamed])
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_wampler(number, fit):
    X, y, coef = wampler(number)
    found = fit(X, y).inference()
    assert digits(found.coef, coef) > 9
    if number > 2:
        scale = 100.0 ** (number - 3)
        assert digits(found.standard_error, WAMPLER_ERRORS * scale) > 9
        assert digits(np.sqrt(found.scale), 2360.14502379268 * scale) > 12
    elif number == 1:
        assert not found.standard_error.any()
        assert found.r2 == 1.0
    else:
        # Tenths and hundredths are rounded in the rows themselves.
        assert (found.standard_error < 1e-12 * np.abs(coef)).all()


@pytest.mark.parametrize("degree", [10])
def test_columns_of_great_condition(degree):
    """Ten powers of numbers from -9 to -3, as in Filip: normal equations in floats know nothing."""
    from fractions import Fraction

    x = np.linspace(-9.0, -3.0, 50).round(3)
    X = np.stack([x**k for k in range(1, degree + 1)], axis=1)
    y = np.sin(x)
    found = StreamingRidge(alpha=0.0).fit(X, y).inference()
    # The same in rational numbers.
    rows = [[Fraction(1), *map(Fraction, row)] for row in X.tolist()]
    targets = [Fraction(value) for value in y.tolist()]
    k = degree + 1
    A = [
        [sum(r[i] * r[j] for r in rows) for j in range(k)]
        + [sum(r[i] * t for r, t in zip(rows, targets, strict=True))]
        for i in range(k)
    ]
    for i in range(k):
        A[i] = [a / A[i][i] for a in A[i]]
        for j in range(k):
            if j != i:
                A[j] = [a - A[j][i] * b for a, b in zip(A[j], A[i], strict=True)]
    exact = np.array([float(row[-1]) for row in A])
    assert digits(found.coef, exact) > 7
    assert (np.abs(found.coef - exact) <= found.coef_error_bound + 1e-16 * np.abs(exact)).all()
