"""Build the sdist and the wheel, install them where nothing else is, and try them.

``python tools/check_package.py [PYTHON ...]`` uses the interpreters given, or all from 3.11 on
that it finds. One more environment has the lowest versions of all dependencies that
pyproject.toml allows, and runs part of the tests as well.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WANTED = ("3.11", "3.12", "3.13", "3.14")
TESTS = [
    *("tests/sketches", "tests/models/test_base.py", "tests/decomposition/test_decomposition.py"),
    *("tests/ridge/test_ridge.py", "tests/test_golden.py", "tests/state/test_persistence.py"),
    *("tests/test_low_rank.py", "tests/test_metrics.py", "tests/online/test_newton_rows.py"),
]
# What the tests need beside the package itself.
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "pandas")


def interpreters(given: list[str]) -> dict[str, str]:
    """Return one interpreter for each version of Python that can be had."""
    folders = [*os.environ.get("PATH", "").split(os.pathsep)]
    folders += glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin"))
    names = given or [str(Path(f) / f"python{v}") for v in WANTED for f in folders]
    found: dict[str, str] = {}
    for name in names:
        if not (path := shutil.which(name)):
            continue
        code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
        version = done.stdout.strip()
        if done.returncode == 0 and version in WANTED:
            found.setdefault(version, path)
    return dict(sorted(found.items()))


def run(*command: object, cwd: Path | None = None) -> tuple[bool, str]:
    """Run a command and return whether it went well, and its last line."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    # Older scikit-learn asks for it where arrays of other libraries are checked.
    environment |= {"SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    text = (done.stdout + done.stderr).strip().splitlines() or [""]
    said = [line for line in text if line.startswith("ERROR")] if done.returncode else []
    return done.returncode == 0, (said or text)[-1]


def environment(python: str, folder: Path, *packages: object) -> tuple[Path, bool, str]:
    """Make an empty environment with these packages; return its interpreter."""
    inside = folder / "bin" / "python"
    good, said = run(python, "-m", "venv", folder)
    if good and packages:
        good, said = run(inside, "-m", "pip", "install", "-q", *packages)
    return inside, good, said


def lowest_versions(tools: bool = False) -> list[str]:
    """Return every dependency at its lower bound, or what the tests need at theirs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"]
    if tools:
        extra = project["optional-dependencies"]["test"]
        wanted = [d for d in extra if re.split("[>=]", d)[0] in TOOLS]
    return [re.sub(r"^([\w-]+)>=([\w.]+).*", r"\1==\2", d) for d in wanted]


def main() -> int:
    """Check all and print a table; 1 if something is wrong."""
    pythons = interpreters(sys.argv[1:])
    if not pythons:
        sys.exit(f"no Python of {', '.join(WANTED)} was found; name one")
    first = next(iter(pythons.values()))
    lines: list[tuple[str, bool, str]] = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        builder, good, said = environment(first, place / "build", "build")
        if good:
            good, said = run(builder, "-m", "build", "--outdir", place / "dist", ROOT)
        lines.append(("sdist and wheel", good, said))
        if good:
            (wheel,) = (place / "dist").glob("*.whl")
            (sdist,) = (place / "dist").glob("*.tar.gz")
            lines += [tried(f"Python {v}, wheel", p, place / v, wheel) for v, p in pythons.items()]
            lines.append(tried("sdist", first, place / "sdist", sdist))
            pins = lowest_versions()
            lines.append(tried("lowest versions", first, place / "lowest", wheel, *pins))
            pins += lowest_versions(tools=True)
            good, said = run(place / "lowest" / "bin" / "pip", "install", "-q", *pins)
            if good:
                pytest = (place / "lowest" / "bin" / "python", "-m", "pytest", "-q", "-n", "auto")
                good, said = run(*pytest, "-p", "no:cacheprovider", *TESTS, cwd=ROOT)
            lines.append(("lowest versions, tests", good, said))
    width = max(len(what) for what, _, _ in lines)
    for what, good, said in lines:
        sys.stdout.write(f"{what:<{width}}  {'ok' if good else 'FAILED'}  {said}\n")
    return 0 if all(good for _, good, _ in lines) else 1


def tried(what: str, python: str, folder: Path, *packages: object) -> tuple[str, bool, str]:
    """Install into an empty environment and run the smoke test there."""
    inside, good, said = environment(python, folder, *packages)
    if good:
        good, said = run(inside, ROOT / "tools" / "smoke.py", cwd=folder)
    return what, good, said


if __name__ == "__main__":
    sys.exit(main())
