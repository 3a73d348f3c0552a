"""Hold the docstrings of public names to numpydoc's rules.

``python tools/docstrings.py`` validates every public class with its methods and properties, and
every public function, and prints how often each rule is broken; ``-v`` also prints where, and
``--check`` exits with 1 if one is.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from numpydoc.validate import validate

import sksketch

# Layout, and parameters, results and sections as numpydoc writes them.
RULES = {
    *("GL01", "GL02", "GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "GL10"),
    *("SS01", "SS02", "SS03", "SS04", "SS06"),
    *("PR01", "PR02", "PR03", "PR04", "PR05", "PR06", "PR07", "PR08", "PR09", "PR10"),
    *("RT01", "RT02", "RT03", "RT04", "RT05", "YD01"),
    *("SA02", "SA03", "SA04"),
}
# A class shows its neighbors and an example; so does a function.
OF_CLASSES = {"SA01", "EX01"}
# Ours beyond numpydoc: the papers that a class implements are named.
NO_REFERENCES = "REF01"
WITHOUT_PAPER = {"Certificate", "LowRankPlusRidge", "Sketch", "Centered", "ExactCovariance"}


def is_ours(member: Any) -> bool:
    """Return whether a member is documented here and not by scikit-learn."""
    function = member.fget if isinstance(member, property) else inspect.unwrap(member)
    return (getattr(function, "__module__", "") or "").startswith("sksketch")


def members(name: str, value: type) -> Iterator[str]:
    """Give the public methods and properties of a class, also inherited ones of ours."""
    for inner in dir(value):
        member = inspect.getattr_static(value, inner)
        if isinstance(member, classmethod | staticmethod):
            member = member.__func__
        documented = inspect.isfunction(member) or isinstance(member, property)
        if not inner.startswith("_") and documented and is_ours(member):
            yield f"sksketch.{name}.{inner}"


def public() -> Iterator[tuple[str, bool]]:
    """Give the public names; true for those that are found on the page of the reference."""
    for name in sksketch.__all__:
        value = getattr(sksketch, name)
        if inspect.ismodule(value):
            functions = getattr(value, "__all__", ())
            yield from ((f"sksketch.{name}.{inner}", True) for inner in functions)
        elif inspect.isclass(value) and issubclass(value, Exception):
            continue
        elif inspect.isclass(value) or inspect.isroutine(value):
            yield f"sksketch.{name}", True
            if inspect.isclass(value):
                yield from ((member, False) for member in members(name, value))


def names_a_paper(name: str) -> bool:
    """Return whether the docstring of a class has references, where it should have them."""
    short = name.rpartition(".")[2]
    value = getattr(sksketch, short, None)
    if not inspect.isclass(value) or short in WITHOUT_PAPER or short.endswith("Display"):
        return True
    return "References\n" in (inspect.getdoc(value) or "")


def findings() -> dict[str, list[str]]:
    """Return the places where each rule is broken."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, on_its_own_page in public():
        rules = RULES | OF_CLASSES if on_its_own_page else RULES
        for code, message in validate(name)["errors"]:
            if code in rules:
                found[code].append(f"{name}: {message}")
        if on_its_own_page and not names_a_paper(name):
            found[NO_REFERENCES].append(f"{name}: No References section")
    return dict(sorted(found.items()))


def main() -> int:
    """Print the counts; with --check, return 1 unless there are none."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 if a rule is broken")
    parser.add_argument("-v", "--verbose", action="store_true", help="also print where")
    options = parser.parse_args()
    found = findings()
    for code, places in found.items():
        sys.stdout.write(f"{code}{len(places):6}  {places[0].partition(': ')[2]}\n")
        if options.verbose:
            sys.stdout.write("".join(f"            {place}\n" for place in places))
    total = sum(map(len, found.values()))
    sys.stdout.write(f"{total:10}  findings\n")
    return 1 if options.check and total else 0


if __name__ == "__main__":
    sys.exit(main())
