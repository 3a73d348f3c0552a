"""The commands of the guides about time and standard errors run as they are printed."""

from __future__ import annotations

import re
import shlex
from glob import glob
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sksketch.cli import main

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
pytestmark = pytest.mark.skipif(not GUIDES.exists(), reason="needs the guides of a clone")


def commands(guide):
    """Return the lines of a guide that begin with sksketch."""
    text = (GUIDES / f"{guide}.rst").read_text(encoding="utf-8")
    return re.findall(r"^ +(?:\$ )?(sksketch .+)$", text, re.MULTILINE)


def run(line):
    """Run one line, its patterns filled in as a shell does."""
    words = shlex.split(line)[1:]
    filled = [sorted(glob(word)) or [word] if "*" in word else [word] for word in words]
    assert main([word for part in filled for word in part]) == 0, line


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def draw(seed, n=600):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(rng.standard_normal((n, 5)), columns=list("abcde"))
        frame["y"] = frame["a"] - frame["b"] + 0.1 * rng.standard_normal(n)
        return frame

    return draw


def test_last_week(table, tmp_path):
    (tmp_path / "days").mkdir()
    for day in (1, 2, 3):
        when = pd.date_range(f"2026-03-0{day}", periods=600, freq="min")
        table(day).assign(when=when).to_csv(f"days/{day}.csv", index=False)
    for line in commands("last_week"):
        run(line)


def test_what_changed(table):
    days = pd.date_range("2026-03-01", "2026-04-01")
    for day in days[:-1].strftime("%Y-%m-%d"):
        table(int(day[-2:])).to_csv(f"{day}.csv", index=False)
    table(99).to_csv("april.csv", index=False)
    first, *others = commands("what_changed")
    run(first)
    run(others.pop(0))
    for i in range(1, 31):
        start, end = days[i : i + 2].strftime("%Y-%m-%d")
        run(f"sksketch pca {start}.csv -q -o day.sks")
        run(f"sksketch archive add sales day.sks --from {start} --to {end}")
    run("sksketch pca april.csv -q -o april.sks")
    raw = next(i for i, line in enumerate(others) if line.endswith("march.csv -o march.sks"))
    for line in others[:raw]:
        run(line)
    for month in ("march", "april", "may"):
        city = np.where(np.arange(600) % 3, "Oslo", "Bergen")
        table(len(month)).assign(city=city).to_csv(f"{month}.csv", index=False)
    for line in others[raw:]:
        run(line)


def test_rows_that_do_not_fit(table, capsys):
    for name in ("rows", "tomorrow"):
        table(len(name)).assign(customer=np.arange(600)).to_csv(f"{name}.csv", index=False)
    for line in commands("rows_that_do_not_fit"):
        run(line)
    assert "customer=" in capsys.readouterr().out


def test_standard_errors(table, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"temp": rng.normal(10.0, 5.0, 600), "weekend": rng.integers(0, 2, 600)})
    frame["city"] = rng.choice(["Bergen", "Oslo", "Turku"], 600)
    frame["kwh"] = 20.0 - 0.5 * frame["temp"] + rng.standard_normal(600)
    frame.to_parquet("rows.parquet")
    found = commands("standard_errors")
    assert len(found) == 2
    for line in found:
        run(line)
        assert "std err" in capsys.readouterr().out
