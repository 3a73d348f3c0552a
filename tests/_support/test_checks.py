"""The torture itself: it must see a lie, count it, and find the same stream again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sksketch
from _support import checks, families, oracle, torture, torture_run
from _support.configurations import Configuration

ROWS = np.random.default_rng(0).standard_normal((200, 12)) / np.arange(1, 13)
PLAIN = Configuration(lambda: sksketch.FrequentDirections(4, solver="exact"), "plain", False)


def answer():
    sketch = PLAIN.make().update(ROWS)
    return sketch.summary(), sketch.certificate(), oracle.truth(oracle.Rows(12).update(ROWS))


def broken(summary, certificate, found):
    made = checks.of_answer(summary, certificate, found, len(ROWS), PLAIN)
    return {one.kind for one in made if one.broken}


def test_a_true_certificate_passes():
    assert broken(*answer()) == set()


@pytest.mark.parametrize(
    ("kind", "lie"),
    [
        ("spectral error, upper end", lambda c: {"spectral_error": (0.0, 1e-3)}),
        ("spectral error, lower end", lambda c: {"spectral_error": (1e3, 1e4)}),
        ("eigenvalue, upper end", lambda c: {"eigenvalues": c.eigenvalues * [1.0, 0.9]}),
        ("eigenvalue, lower end", lambda c: {"eigenvalues": c.eigenvalues * [1.1, 1.1]}),
        ("captured energy, upper end", lambda c: {"captured_energy": c.captured_energy * [1, 0.9]}),
        ("captured energy, lower end", lambda c: {"captured_energy": c.captured_energy * 1.1}),
        ("certain directions", lambda c: {"n_certain": 12}),
        ("squared norm", lambda c: {"squared_norm": 2 * c.squared_norm}),
        ("finite numbers", lambda c: {"eigenvalues": c.eigenvalues * np.nan}),
    ],
)
def test_a_lie_is_seen(kind, lie):
    summary, certificate, found = answer()
    assert kind in broken(summary, replace(certificate, **lie(certificate)), found)


def test_a_bound_may_be_off_by_no_more_than_the_oracle():
    assert not checks.check("kind", 1.0, 1.0).broken
    assert not checks.check("kind", 1.0 + 1e-15, 1.0, 1e-14).broken
    assert checks.check("kind", 1.0 + 1e-13, 1.0, 1e-14).broken
    assert checks.check("kind", 1.0, np.nan).broken
    assert checks.check("kind", 1.0, 2.0).ratio == 2.0


def test_probabilistic_bounds_may_fail_as_often_as_they_say():
    tally = torture.Tally()
    for low in [1.0] * 1 + [0.0] * 99:
        one = checks.check("kind", low, 0.5, failure=0.02)
        tally.add(torture.Case(0, "theme", "name", [one], []))
    assert tally.holds
    for _ in range(3):
        one = checks.check("kind", 1.0, 0.5, failure=0.02)
        tally.add(torture.Case(0, "theme", "name", [one], []))
    assert not tally.holds
    other = torture.Tally()
    other.merge(tally.plain())
    assert other.rows() == tally.rows()


def test_a_case_is_the_same_each_time():
    for number in range(8):
        first, second = torture.run(number), torture.run(number)
        assert first.name == second.name
        np.testing.assert_equal(first.checks, second.checks)


@pytest.mark.parametrize("name", families.FAMILIES)
def test_families_give_finite_rows_in_range(name):
    for dtype in (np.float64, np.float32):
        for seed in range(5):
            rng = np.random.default_rng(seed)
            rows = families.fitted(families.draw(rng, 20, 5, name)[1], dtype)
            assert rows.shape == (20, 5)
            assert rows.dtype == dtype
            assert float(np.abs(rows).max()) <= families.LARGEST[np.dtype(dtype).name] * 2


def test_the_command_prints_tables(capsys):
    torture_run.main(["--streams", "12", "--workers", "1"])
    torture_run.main(["--case", "3"])
    text = capsys.readouterr().out
    assert "12 streams" in text
    assert "spectral error, upper end" in text
    assert "case 3" in text
