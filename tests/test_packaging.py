"""What a user installs: metadata, what an import loads, and a public surface that stays."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sksketch
from _support import write_api

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# What an import may load beside scikit-learn; numba comes with the first kernel.
KNOWN = {"array_api_compat", "narwhals", "safetensors", "sksketch"}
PRESENT = {"joblib", "numpy", "scipy", "sklearn", "threadpoolctl"}


def modules_after(statement):
    code = f"import sys; {statement}; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_an_import_loads_only_the_dependencies():
    # Its time is these modules: `python tools/smoke.py` prints it.
    before = modules_after("import numpy, scipy.sparse, sklearn.base, sklearn.utils.validation")
    more = modules_after("import sksketch") - before
    packages = {name.partition(".")[0] for name in more} - set(sys.stdlib_module_names)
    assert {name for name in packages if not name.startswith("_")} <= KNOWN | PRESENT
    assert not [name for name in more if name.startswith("sksketch.cli")]
    assert len(more) <= 250


def test_metadata_says_what_is_needed():
    about = importlib.metadata.metadata("scikit-sketch")
    assert about["Name"] == PROJECT["name"] == "scikit-sketch"
    assert about["Version"] == sksketch.__version__
    assert about["Requires-Python"] == PROJECT["requires-python"] == ">=3.11"
    assert about["License-Expression"] == "BSD-3-Clause"
    scripts = importlib.metadata.entry_points(group="console_scripts", name="sksketch")
    assert scripts["sksketch"].load() is not None


@pytest.mark.parametrize("requirement", PROJECT["dependencies"])
def test_every_dependency_has_both_bounds(requirement):
    assert ">=" in requirement
    assert ",<" in requirement


def test_the_package_says_that_it_is_typed():
    assert (Path(sksketch.__file__).parent / "py.typed").exists()


# The public surface

HOW = (
    "; if the change is meant, run `python tests/_support/write_api.py`, look at the difference "
    "and add a line to CHANGELOG.md"
)


def test_public_names_are_those_written_down():
    golden = json.loads(write_api.GOLDEN.read_text())
    now = write_api.surface()
    lost, new = sorted(golden.keys() - now.keys()), sorted(now.keys() - golden.keys())
    assert not lost, f"no longer public: {lost}{HOW}"
    assert not new, f"newly public: {new}{HOW}"


@pytest.mark.parametrize("name", sorted(json.loads(write_api.GOLDEN.read_text())))
def test_signatures_and_fields_are_those_written_down(name):
    golden = json.loads(write_api.GOLDEN.read_text())[name]
    now = json.loads(json.dumps(write_api.surface().get(name)))
    assert now == golden, f"{name} has changed{HOW}"
