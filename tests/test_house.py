"""The rules of the house: what is public is documented, and every module keeps to its place."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sksketch

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "sksketch"
MODULES = sorted(PACKAGE.rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
EXTRAS = {
    *("typer", "rich", "matplotlib", "pyarrow", "zarr", "torch", "pandas"),
    *("dask", "distributed", "pyspark", "py4j", "river"),
}
THEMES = ("decomposition", "ridge", "online", "kernel_methods", "reduction", "tables", "time")

# Imports every module into a package whose __init__ never ran, with nothing of its own folder.
# Lower layers stay: they do not import from higher ones, and were tried before them.
IMPORT_EACH_ALONE = """
import gc, importlib, json, sys, traceback, types
import pytest

location, names = json.loads(sys.stdin.read())
failures = {}
# Most of the time would go into looking for garbage among modules.
gc.disable()
package = types.ModuleType("sksketch")
package.__path__ = [location]
sys.modules["sksketch"] = package
for name in names:
    folder = name.split(".")[1]
    for loaded in [m for m in sys.modules if m.split(".")[:2] == ["sksketch", folder]]:
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except Exception:
        failures[name] = traceback.format_exc(limit=-1)
print(json.dumps(failures))
"""


def run_python(code: str, standard_input: str = "") -> str:
    return subprocess.run(
        [sys.executable, "-c", code],
        input=standard_input,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_public_names_are_documented_with_an_example():
    values = {name: getattr(sksketch, name) for name in set(sksketch.__all__) - {"__version__"}}
    assert [name for name, value in values.items() if not inspect.getdoc(value)] == []
    shown = {
        name: value
        for name, value in values.items()
        if not inspect.ismodule(value)
        and not (inspect.isclass(value) and issubclass(value, Exception))
    }
    assert [name for name, value in shown.items() if ">>>" not in value.__doc__] == []


def test_public_names_are_unique_and_sorted_out_by_hand():
    assert len(sksketch.__all__) == len(set(sksketch.__all__))
    assert not [n for n in sksketch.__all__ if n.startswith("_") and n != "__version__"]


@pytest.mark.slow
def test_every_module_imports_alone():
    contract = PROJECT["importlinter"]["contracts"][0]
    assert contract["name"] == "Imports point down"
    layers = [set(re.findall(r"\w+", layer)) for layer in reversed(contract["layers"])]
    names = [module_name(path) for path in MODULES if path.stem != "__main__"]
    names.remove("sksketch")
    ordered = [name for layer in layers for name in names if name.split(".")[1] in layer]
    assert sorted(ordered) == sorted(names)
    failures = json.loads(run_python(IMPORT_EACH_ALONE, json.dumps([str(PACKAGE), ordered])))
    assert not failures, "\n".join(failures.values())


def test_importing_sksketch_imports_no_extra():
    # What the dependencies import by themselves (scikit-learn looks for pandas) is theirs.
    dependencies = "array_api_compat, narwhals, numba, safetensors.numpy, sklearn.base"
    before, after = json.loads(
        run_python(
            f"import json, sys, {dependencies}; before = sorted(sys.modules); import sksketch; "
            "print(json.dumps([before, sorted(sys.modules)]))"
        )
    )
    assert EXTRAS & (set(after) - set(before)) == set()


def test_importing_sksketch_imports_no_library_and_finds_every_name():
    loaded = json.loads(
        run_python(
            "import json, sys, sksketch; loaded = sorted(sys.modules); "
            "assert set(sksketch.__all__) <= set(dir(sksketch)); "
            "assert all(getattr(sksketch, name) is not None for name in sksketch.__all__); "
            "assert sksketch.run.loading.load is sksketch.load; print(json.dumps(loaded))"
        )
    )
    assert {"numpy", "scipy", "sklearn", "sksketch.run"} & set(loaded) == set()
    with pytest.raises(AttributeError, match="no attribute 'StreamingPCB'"):
        sksketch.StreamingPCB  # noqa: B018


# Every help, the version, and what TAB shows, in one process.
ASK_FOR_HELP = """
import json, os, sys
from sksketch.cli import main
from sksketch.cli.help import EXAMPLES

sys.stdout = open(os.devnull, "w")
helps = ([*command.split(), "--help"] for command in EXAMPLES)
codes = [main(words) for words in [["--help"], ["--version"], *helps]]
for words in ["", "pca --sketch ", "kpca --kernel ", "online -"]:
    line = f"sksketch {words}"
    os.environ |= {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    os.environ["_SKSKETCH_COMPLETE"] = "complete_bash"
    try:
        main([])
    except SystemExit as done:
        codes.append(done.code)
print(json.dumps([codes, sorted(sys.modules)]), file=sys.__stdout__)
"""


def test_help_and_completion_load_no_library_that_computes():
    codes, loaded = json.loads(run_python(ASK_FOR_HELP))
    assert set(codes) == {0}
    heavy = {"numpy", "scipy", "sklearn", "narwhals", "numba", "safetensors", "array_api_compat"}
    assert heavy & set(loaded) == set()


def test_type_checkers_see_the_names_that_are_looked_up():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    (block,) = [n for n in tree.body if isinstance(n, ast.If) and isinstance(n.test, ast.Name)]
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert seen.keys() == set(sksketch.__all__)
    assert {name: f"sksketch.{place}" for name, place in sksketch._PLACE_OF.items()} == {
        name: module for name, module in seen.items() if module != "sksketch"
    }


def test_rows_of_dask_load_what_runs_them():
    code = (
        "import sys, dask.array as da; from sksketch.decomposition import StreamingPCA; "
        "assert 'sksketch.run' not in sys.modules; "
        "X = da.ones((8, 2), chunks=(4, 2)) * [1.0, 2.0] + da.eye(8, chunks=4)[:, :2]; "
        "print(StreamingPCA(1).fit(X).n_samples_seen_)"
    )
    assert run_python(code) == "8\n"


def test_only_the_namespace_module_names_device_libraries():
    naming = [path for path in MODULES if words(path) & {"torch", "cupy"}]
    assert naming == [PACKAGE / "arrays" / "namespace.py"]


def words(path: Path) -> set[str]:
    """Return the names that a module imports or uses, and its strings up to a dot."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value.partition(".")[0])
    return found


def test_every_estimator_is_public_in_its_theme():
    for name in sksketch.__all__:
        value = getattr(sksketch, name)
        theme = getattr(value, "__module__", "").split(".")[1:2]
        if inspect.isclass(value) and theme and theme[0] in THEMES:
            package = getattr(sksketch, theme[0])
            assert name in package.__all__
            assert getattr(package, name) is value


def test_commands_of_the_readme_are_targets():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"^make ([a-z-]+)", (ROOT / "README.md").read_text(), re.M))
    assert {"tour", "test"} <= named <= targets


def test_reference_page_lists_every_public_name():
    listed = set(re.findall(r"^   (?:\w+\.)*(\w+)$", (ROOT / "docs" / "api.rst").read_text(), re.M))
    assert set(sksketch.__all__) - {"__version__"} <= listed


def test_version_is_the_same_everywhere():
    assert f"\nversion: {sksketch.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    heading = "Unreleased" if ".dev" in sksketch.__version__ else sksketch.__version__
    assert f"\n## {heading}\n" in (ROOT / "CHANGELOG.md").read_text()
