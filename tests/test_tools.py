"""The tools that hold the house to its rules see what is wrong."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# The sdist carries the tests, and its users may have taken them alone.
pytestmark = pytest.mark.skipif(not (ROOT / "tools").exists(), reason="needs the tools of a clone")

SOURCE = '''
class Wide:
    """Two arguments and three lines."""

    def work(self, X: Any, *rows: int, ridge: float = 0.0) -> Any:
        """Return nothing.

        The docstring does not count.
        """
        total = sum(rows)

        return X * total
'''


def tool(name):
    return importlib.import_module(f"tools.{name}")


def test_bodies_and_arguments_are_counted_without_docstring_and_self():
    house = tool("house")
    (work,) = [n for n in ast.walk(ast.parse(SOURCE)) if isinstance(n, ast.FunctionDef)]
    assert house.body_lines(work) == 3
    assert house.n_arguments(work) == 3


def test_arguments_without_a_type_and_imports_across_themes_are_found(monkeypatch, tmp_path):
    house = tool("house")
    monkeypatch.setattr(house, "PACKAGE", tmp_path)
    for theme in ("ridge", "kernel_methods"):
        (tmp_path / theme).mkdir()
        (tmp_path / theme / "work.py").write_text(
            f"from sksketch.decomposition import StreamingPCA\n{SOURCE}"
        )
    modules = [house.Module(path) for path in sorted(tmp_path.rglob("*.py"))]
    assert [module.n_any() for module in modules] == [1, 1]
    found = house.across_themes(modules)
    assert found
    assert all(line.startswith("ridge/work.py imports sksketch.decomposition") for line in found)


def test_public_signatures_are_no_offenders():
    house = tool("house")
    named = {m.name: m for m in house.modules()}
    assert named["ridge/streaming_ridge.py"].is_contract("StreamingRidge.__init__")
    assert not named["ridge/streaming_ridge.py"].is_contract("StreamingRidge.path")
    assert named["cli/commands/pca.py"].is_contract("pca")


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("# takes so\n# many rows", "so many, so few, so much"),
        ('"""What is left."""', "docstring that opens with What, All that, Where, Which"),
        ("'the run goes on'", "go on"),
        ("# normalised rows", "-ise and -isation"),
        ("pieces = 3", "chunk, piece, stretch or stack in a name"),
    ],
)
def test_phrases_are_found_in_comments_and_strings(text, phrase, monkeypatch, tmp_path):
    voice = tool("voice")
    monkeypatch.setattr(voice, "ROOT", tmp_path)
    path = tmp_path / "a.py"
    path.write_text(f"{text}\nprecise = otherwise = np.stack\n")
    wanted = voice.patterns()
    found = [name for t in voice.texts(path) for name, _ in voice.phrases(path, t, wanted)]
    assert found == [phrase]


def test_docstrings_are_held_to_numpydoc():
    pytest.importorskip("numpydoc", reason="needs the extra dev")
    docstrings = tool("docstrings")
    names = dict(docstrings.public())
    assert names["sksketch.StreamingPCA"]
    assert not names["sksketch.StreamingPCA.partial_fit"]
    assert "sksketch.datasets" not in names
    assert not [name for name in names if name.endswith("_request")]
