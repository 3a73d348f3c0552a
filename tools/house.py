"""Measure the floor plan of the package and hold it to its limits.

``python tools/house.py`` prints a line for each folder of src/sksketch and what counts for all of
them; ``--check`` lists what is beyond a limit and exits with 1. A function's body is counted
without signature and docstring, its arguments without self. Public constructors and functions, and
the functions of commands, have the signatures that users need: their arguments are not limited.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sklearn.base import BaseEstimator

import sksketch

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "sksketch"
THEMES = ("decomposition", "ridge", "online", "kernel_methods", "reduction", "moments")
# Kernel components are components of features.
ALLOWED = {("kernel_methods", "decomposition")}
MOST_FILES, LONGEST_FILE, LONGEST_BODY, MOST_ARGUMENTS = 15, 400, 60, 10
MOST_BASES, MOST_ANY, MOST_NAMESAKES = 6, 300, 2
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Measured:
    """A function: where it is, how long its body is and what it takes."""

    place: str
    body: int
    arguments: int
    contract: bool


@dataclass
class Module:
    """A file of the package, read as a tree."""

    path: Path
    public: set[str] = field(default_factory=set)

    @cached_property
    def tree(self) -> ast.Module:
        """The file as a syntax tree."""
        return ast.parse(self.path.read_text())

    @property
    def name(self) -> str:
        """Its path inside the package."""
        return self.path.relative_to(PACKAGE).as_posix()

    @property
    def theme(self) -> str:
        """The first folder of its path."""
        return self.path.relative_to(PACKAGE).parts[0]

    @cached_property
    def n_lines(self) -> int:
        """How long the file is."""
        return len(self.path.read_text().splitlines())

    def functions(self) -> Iterator[Measured]:
        """Measure every function, also those inside classes and functions."""
        todo: list[tuple[ast.AST, str]] = [(self.tree, "")]
        while todo:
            node, inside = todo.pop()
            for child in ast.iter_child_nodes(node):
                name = inside
                if isinstance(child, Function | ast.ClassDef):
                    name = f"{inside}.{child.name}" if inside else child.name
                if isinstance(child, Function):
                    yield Measured(
                        f"{self.name}: {name}",
                        body_lines(child),
                        n_arguments(child),
                        self.is_contract(name),
                    )
                todo.append((child, name))

    def is_contract(self, name: str) -> bool:
        """Return whether a signature is public, or that of a command."""
        if self.path.parent == PACKAGE / "cli" / "commands":
            return not name.startswith("_")
        return name.removesuffix(".__init__") in self.public

    def imports(self) -> set[str]:
        """Return the modules of the package that the file imports, anywhere in it."""
        found = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module} | {f"{node.module}.{a.name}" for a in node.names}
        return {name for name in found if name.startswith("sksketch.")}

    def n_any(self) -> int:
        """Count the lines of signatures in which an argument has the type Any."""
        taken = [
            argument
            for node in ast.walk(self.tree)
            if isinstance(node, Function)
            for argument in arguments_of(node)
        ]
        untyped = [
            a for a in taken if isinstance(a.annotation, ast.Name) and a.annotation.id == "Any"
        ]
        return len({argument.lineno for argument in untyped})


def body_lines(function: Function) -> int:
    """Return the lines of a body without its docstring."""
    body = function.body
    if ast.get_docstring(function, clean=False) is not None:
        body = body[1:]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def arguments_of(function: Function) -> list[ast.arg]:
    """Return every argument, with ``*args`` and ``**kwargs`` as one each."""
    taken = function.args
    more = [given for given in (taken.vararg, taken.kwarg) if given is not None]
    return [*taken.posonlyargs, *taken.args, *taken.kwonlyargs, *more]


def n_arguments(function: Function) -> int:
    """Count the arguments beside self."""
    return sum(argument.arg not in ("self", "cls") for argument in arguments_of(function))


def modules() -> list[Module]:
    """Read the package, with the public names that each file defines."""
    public: dict[Path, set[str]] = defaultdict(set)
    for name in sksketch.__all__:
        value = getattr(sksketch, name)
        if inspect.isclass(value) or inspect.isroutine(value):
            public[Path(inspect.getfile(inspect.unwrap(value))).resolve()].add(name)
    return [Module(path, public[path]) for path in sorted(PACKAGE.rglob("*.py"))]


def base_classes() -> dict[str, type]:
    """Return the classes of ours that a public estimator inherits and a user does not import."""
    found = {}
    for value in map(sksketch.__dict__.get, sksketch.__all__):
        if inspect.isclass(value) and issubclass(value, BaseEstimator):
            for base in value.__mro__:
                ours = base.__module__.partition(".")[0] == "sksketch"
                if ours and base.__name__ not in sksketch.__all__:
                    found[f"{base.__module__}.{base.__qualname__}"] = base
    return dict(sorted(found.items()))


def across_themes(house: list[Module]) -> list[str]:
    """Return imports from one theme to another."""
    found = []
    for module in house:
        for name in sorted(module.imports()):
            to = name.split(".")[1]
            themes = {module.theme, to} <= set(THEMES) and to != module.theme
            if themes and (module.theme, to) not in ALLOWED:
                found.append(f"{module.name} imports {name}")
    return found


def namesakes(house: list[Module]) -> dict[str, list[str]]:
    """Return names that several files have."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in house:
        if module.path.stem != "__init__":
            found[module.path.name].append(module.name)
    return {name: places for name, places in found.items() if len(places) > MOST_NAMESAKES}


def plan(house: list[Module]) -> str:
    """Return the table of folders."""
    bases = Counter(Path(inspect.getfile(base)).parent for base in base_classes().values())
    head = ("files", "median", "longest", "body", "args", "bases")
    lines = [f"{'folder':<36}" + "".join(f"{name:>8}" for name in head)]
    for folder in sorted({module.path.parent for module in house}):
        inside = [module for module in house if module.path.parent == folder]
        lengths = [module.n_lines for module in inside]
        functions = [found for module in inside for found in module.functions()]
        body = max((found.body for found in functions), default=0)
        arguments = max((f.arguments for f in functions if not f.contract), default=0)
        lines.append(
            f"{folder.relative_to(PACKAGE.parent).as_posix():<36}{len(inside):8}"
            f"{statistics.median(lengths):8.0f}{max(lengths):8}{body:8}{arguments:8}"
            f"{bases[folder]:8}"
        )
    return "\n".join(lines)


def offenders(house: list[Module]) -> dict[str, list[str]]:
    """Return what is beyond each limit."""
    functions = [found for module in house for found in module.functions()]
    tests = sorted((ROOT / "tests").rglob("*.py"))
    lengths = {f"src/sksketch/{module.name}": module.n_lines for module in house}
    lengths |= {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in tests}
    folders = Counter(module.path.parent for module in house)
    bases = list(base_classes())
    any_by_file = {module.name: module.n_any() for module in house}
    most_any = sorted(any_by_file, key=lambda name: -any_by_file[name])[:10]
    return {
        f"folders of more than {MOST_FILES} files": [
            f"{folder.relative_to(ROOT)}: {n}" for folder, n in folders.items() if n > MOST_FILES
        ],
        f"files of more than {LONGEST_FILE} lines": [
            f"{name}: {n}" for name, n in lengths.items() if n > LONGEST_FILE
        ],
        f"functions of more than {LONGEST_BODY} lines": [
            f"{found.place}: {found.body}" for found in functions if found.body > LONGEST_BODY
        ],
        f"functions of more than {MOST_ARGUMENTS} arguments": [
            f"{found.place}: {found.arguments}"
            for found in functions
            if found.arguments > MOST_ARGUMENTS and not found.contract
        ],
        f"base classes beyond {MOST_BASES}": bases if len(bases) > MOST_BASES else [],
        f"names that more than {MOST_NAMESAKES} files have": [
            f"{name}: {', '.join(places)}" for name, places in namesakes(house).items()
        ],
        "imports across themes": across_themes(house),
        f"lines with arguments of type Any beyond {MOST_ANY}, the files with most": [
            f"{name}: {any_by_file[name]}"
            for name in most_any
            if sum(any_by_file.values()) > MOST_ANY
        ],
    }


def main() -> int:
    """Print the plan; with --check, return 1 if something is beyond a limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="list offenders, exit with 1")
    options = parser.parse_args()
    house = modules()
    exempt = [found for module in house for found in module.functions() if found.contract]
    wide = max(exempt, key=lambda found: found.arguments)
    sys.stdout.write(
        f"{plan(house)}\n\n"
        f"own base classes of estimators: {len(base_classes())} (at most {MOST_BASES})\n"
        f"imports across themes: {len(across_themes(house))}\n"
        f"names that more than {MOST_NAMESAKES} files have: {len(namesakes(house))}\n"
        f"lines of signatures with an argument of type Any: "
        f"{sum(module.n_any() for module in house)} (at most {MOST_ANY})\n"
        f"public signatures and commands, not limited: {len(exempt)}, the widest "
        f"{wide.place} with {wide.arguments}\n"
    )
    if not options.check:
        return 0
    found = {limit: places for limit, places in offenders(house).items() if places}
    for limit, places in found.items():
        sys.stdout.write(f"\n{limit}:\n" + "".join(f"  {place}\n" for place in places))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
