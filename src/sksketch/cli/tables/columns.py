"""Columns that the user names: by name, number, pattern or range, and those to leave out."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import typer

from sksketch.cli.options import Rows
from sksketch.streams import open_rows
from sksketch.tables.column_summary import kind_of


def is_choosy(rows: Rows) -> bool:
    """Return whether the columns of the table must be known to choose among them."""
    words = [word for text in rows.columns or [] for word in text.split(",")]
    # A word that is no name as it stands, or a name with a comma.
    numbers = any(word.lstrip("-").isdigit() for word in words)
    commas = any("," in text for text in rows.columns or [])
    return has_patterns(rows) or rows.numeric or numbers or commas


def has_patterns(rows: Rows) -> bool:
    """Return whether columns are left out, or given by patterns or ranges."""
    return bool(rows.exclude) or any(set(text) & set("*?[:") for text in rows.columns or [])


def chosen_numbers(rows: Rows, where: Any, reading: dict[str, Any]) -> list[Any]:
    """Return the columns of files whose columns have numbers for names."""
    source = open_rows(where, **{**reading, "columns": None, "target": None})
    names = source.feature_names or [str(i) for i in range(source.n_features)]
    targets = reading["target"] if isinstance(reading["target"], list) else [reading["target"]]
    apart = {
        name for target in targets if target is not None for name in _found([str(target)], names)
    }
    wanted = names if rows.columns is None else _found(rows.columns, names)
    left_out = apart | set(_found(rows.exclude or [], names))
    kept = [name for name in wanted if name not in left_out]
    if not kept:
        raise typer.BadParameter("no column is left; look at --columns and --exclude")
    return [int(name) for name in kept] if source.feature_names is None else kept


def chosen(rows: Rows, where: Any, reading: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the names of the features, and of columns that are left out as no numbers."""
    free = {"columns": None, "one_hot": None, "categories": None, "dtype": None, "missing": "error"}
    table = open_rows(where, **{**reading, **free, "raw": True})
    if table.reads_once:
        raise typer.BadParameter(
            "the columns of stdin are not known before they are read; name them all with --columns"
        )
    names = table.feature_names
    if names is None:
        raise typer.BadParameter(
            "the columns of these files have no names; choose them by their numbers with --columns"
        )
    wanted = list(names) if rows.columns is None else _found(rows.columns, names)
    left_out = set(_found(rows.exclude or [], names))
    kept = [name for name in wanted if name not in left_out]
    skipped: list[str] = []
    if rows.numeric:
        kinds = _kinds(table)
        skipped = [name for name in kept if kinds[name] not in ("number", "boolean", "empty")]
        kept = [name for name in kept if name not in set(skipped)]
    if not kept:
        raise typer.BadParameter("no column is left; look at --columns, --exclude and --numeric")
    return kept, skipped


def _kinds(table: Any) -> dict[str, str]:
    """Return what the columns hold, by a look at the first block."""
    block = next(iter(table.blocks()), None)
    if block is None:
        raise typer.BadParameter("the table has no rows")
    return {field.name: kind_of(field.type) for field in block.X.schema}


def _found(texts: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the names that words stand for, each once."""
    found: dict[str, None] = {}
    for text in texts:
        # A whole name may have commas in it.
        words = [text] if text in names else text.split(",")
        for word in words:
            found |= dict.fromkeys(_matches(word, names))
    return list(found)


def _matches(word: str, names: Sequence[str]) -> list[str]:
    """Return the names that one word stands for.

    >>> names = ["a", "b", "reg_0", "reg_1"]
    >>> _matches("reg_*", names), _matches("a:reg_0", names), _matches("-1", names)
    (['reg_0', 'reg_1'], ['a', 'b', 'reg_0'], ['reg_1'])
    """
    if word in names:
        return [word]
    if any(mark in word for mark in "*?["):
        found = [name for name in names if fnmatchcase(name, word)]
        if not found:
            raise typer.BadParameter(f"no column matches {word!r}; there are {_some(names)}")
        return found
    first, colon, last = word.partition(":")
    if colon:
        start, stop = _place(first, names, 0), _place(last, names, len(names) - 1)
        if start > stop:
            raise typer.BadParameter(f"{word!r}: {first} comes after {last}; turn the range around")
        return list(names[start : stop + 1])
    return [names[_place(word, names, None)]]


def _place(word: str, names: Sequence[str], default: int | None) -> int:
    if word in names:
        return names.index(word)
    if not word and default is not None:
        return default
    if word.lstrip("-").isdigit() and -len(names) <= int(word) < len(names):
        return int(word) % len(names)
    raise typer.BadParameter(f"there is no column {word!r}; there are {_some(names)}")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
