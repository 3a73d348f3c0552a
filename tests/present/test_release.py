"""What a release says of itself agrees: versions of Python, dependencies, commands, pages."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("RELEASING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
WORKFLOWS = ROOT / ".github" / "workflows"
pytestmark = pytest.mark.skipif(not WORKFLOWS.exists(), reason="needs a clone")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CLAIMED = {
    found[1]
    for line in PROJECT["classifiers"]
    if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line))
}


def texts():
    paths = [ROOT / name for name in PAGES] + sorted((ROOT / ".github").rglob("*.*"))
    return {path: path.read_text(encoding="utf-8") for path in paths if path.is_file()}


def test_commands_and_files_that_are_named_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for path, text in texts().items():
        named = re.findall(r"(?:^|`|run: )make ([a-z-]+)", text, re.M)
        assert set(named) <= targets, path
        files = re.findall(
            r"(?<![\w/.])((?:tools|tests|docs|benchmarks|src|\.ci)/[\w./-]*\w)", text
        )
        made = ("docs/_build", "tests/golden/X.Y.Z")
        missing = {name for name in files if not name.startswith(made)}
        assert {name for name in missing if not (ROOT / name).exists()} == set(), path


def test_workflows_try_every_version_that_is_claimed():
    yaml = pytest.importorskip("yaml")
    for name, job in (("tests", "tests"), ("wheels", "try")):
        text = (WORKFLOWS / f"{name}.yml").read_text(encoding="utf-8")
        found = yaml.safe_load(text)["jobs"][job]
        matrix = found["strategy"]["matrix"]
        assert set(matrix["python"]) >= CLAIMED
        assert matrix["os"] == ["ubuntu-latest", "macos-latest"]
        # What is not claimed may fail.
        assert set(matrix["python"]) - CLAIMED == set(
            re.findall(r"'(3\.\d+)'", found["continue-on-error"])
        )


def test_pages_name_the_versions_that_are_claimed():
    page = (ROOT / "docs" / "releases.rst").read_text(encoding="utf-8")
    tried = set(re.findall(r"3\.\d+", "".join(re.findall(r"\* - (Python .*)", page))))
    assert tried - {"3.14"} == CLAIMED
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"^Python (.*) are \[tested\]", readme, re.M)
    assert set(re.findall(r"3\.\d+", said)) == CLAIMED


def test_recipe_of_conda_asks_for_the_same():
    recipe = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    run = recipe[recipe.index("  run:") : recipe.index("\ntest:")]
    asked = set(re.findall(r"^    - (\S+) (\S+)$", run, re.M))
    wanted = {
        re.fullmatch(r"([\w-]+)(.*)", requirement).groups()
        for requirement in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["cli"]]
    }
    assert asked == wanted | {("python", PROJECT["requires-python"])}
    pattern = re.search(r"regex_pattern='(.+?)', ", recipe)[1]
    init = (ROOT / "src" / "sksketch" / "__init__.py").read_text(encoding="utf-8")
    assert re.search(pattern, init)
