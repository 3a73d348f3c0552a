"""Every example of the gallery runs and draws something."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot")

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "docs" / "examples").glob("plot_*.py"))
pytestmark = pytest.mark.skipif(not EXAMPLES, reason="needs the examples of a clone")


@pytest.fixture(autouse=True)
def _no_windows(monkeypatch):
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    yield
    plt.close("all")


def test_there_are_enough_of_them():
    assert len(EXAMPLES) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_draws(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert plt.get_fignums()
    for number in plt.get_fignums():
        figure = plt.figure(number)
        figure.canvas.draw()
        assert all(ax.has_data() for ax in figure.axes)
