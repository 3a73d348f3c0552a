"""Write the public names, their signatures and fields to ``tests/golden/api.json``.

Run ``python tests/_support/write_api.py`` after a change of the public surface that is meant: the
file then shows it in review, and `test_packaging.py` holds everything else to it.
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import sksketch

GOLDEN = Path(__file__).parents[1] / "golden" / "api.json"


def signature(value: Any) -> str:
    """Return a signature as text, without annotations, which may be spelled in many ways."""
    found = inspect.signature(value)
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def members(value: type) -> dict[str, str]:
    """Return the public attributes that the class itself or a base of ours defines."""
    found: dict[str, str] = {}
    for base in reversed(value.__mro__):
        if base.__module__.partition(".")[0] != "sksketch":
            continue
        for name, member in vars(base).items():
            # scikit-learn adds methods for metadata, other ones in every release.
            if not name.startswith("_") and not name.endswith("_request"):
                found[name] = described(member)
        for name in getattr(base, "__annotations__", {}):
            if not name.startswith("_"):
                found.setdefault(name, "field")
    return dict(sorted(found.items()))


def described(member: Any) -> str:
    """Return the kind of a member, with its signature where it has one."""
    if isinstance(member, classmethod | staticmethod):
        return f"{type(member).__name__}{signature(member.__func__)}"
    if inspect.isfunction(member):
        return f"method{signature(member)}"
    if isinstance(member, property) or inspect.isdatadescriptor(member):
        return "property"
    return "field"


def surface() -> dict[str, Any]:
    """Return all that is public."""
    found: dict[str, Any] = {}
    for name in sorted(sksketch.__all__):
        value = getattr(sksketch, name)
        if inspect.ismodule(value):
            listed = value.__all__ if hasattr(value, "__all__") else vars(value)
            for inner in sorted(name for name in listed if not name.startswith("_")):
                function = getattr(value, inner)
                home = getattr(function, "__module__", "") or ""
                if inspect.isroutine(function) and home.startswith(value.__name__):
                    found[f"{name}.{inner}"] = {"function": signature(function)}
        elif inspect.isclass(value):
            bases = [base.__name__ for base in value.__mro__ if issubclass(base, Exception)]
            found[name] = (
                {"exception": bases[1:2]}
                if bases
                else {"class": signature(value), "members": members(value)}
            )
        elif inspect.isroutine(value):
            found[name] = {"function": signature(value)}
        else:
            found[name] = {"value": type(value).__name__}
    return found


def main() -> None:
    """Write the file."""
    GOLDEN.write_text(json.dumps(surface(), indent=1) + "\n")
    sys.stdout.write(f"{len(surface())} public names in {GOLDEN}\n")


if __name__ == "__main__":
    main()
