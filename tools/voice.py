"""Count phrases that the project does not use, in the package and its documentation.

``python tools/voice.py`` prints how often each is found in src, docs, README.md and
CONTRIBUTING.md; ``-v`` also prints where, and ``--check`` exits with 1 if there is one. Of modules
comments and strings are read. Names with a word for rows that we do not use are shown as well.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "docs")
PAGES = ("README.md", "CONTRIBUTING.md")
# What Sphinx has made, and the papers' own words.
MADE = {"_build", "generated", "gallery", "_static"}

# Verbs and nouns that have an American form with z; "size", "precise" and "otherwise" end alike.
BRITISH = (
    r"(?:general|normal|regular|optim|initial|organ|recogn|summar|minim|maxim|standard|vector"
    r"|parallel|serial|final|factor|random|parameter|symmetr|linear|local|token|visual|penal"
    r"|character|discret|diagonal|orthogonal|orthonormal|stabil|util|real|emphas|special|categor"
    r"|quant|synchron|memor|material|ideal|equal|central|author|custom|crystall|global|marginal"
    r"|polar|prior|scrutin|modern|monopol|apolog|symbol|analog)"
    r"is(?:e|es|ed|er|ers|ing|ation|ations)"
)
PHRASES = {
    "so many, so few, so much": r"so (?:many|few|much)",
    "go on": r"(?:go|goes|going|gone|went) on",
    "say whether": r"says? whether",
    "hear": r"(?:hear|hears|heard|hearing)",
    "told": r"told",
    "can not": r"can not",
    "-ise and -isation": BRITISH,
    "analyse": r"analys(?:e|es|ed|ing)",
    "centre": r"(?:re)?cent(?:re|res|red|ring)",
    "colour, behaviour, neighbour, favour": r"(?:colour|behaviour|neighbour|favour)\w*",
    "chunk": r"chunks?",
    "piece": r"pieces?",
    "stretch": r"stretch(?:es)?",
    "stack": r"stacks?",
}
OPENING = "docstring that opens with What, All that, Where, Which"
OPENS = re.compile(r"(?:What|All that|Where|Which)\b")
NAMES = "chunk, piece, stretch or stack in a name"
ROW_WORD = re.compile(
    r"(?:^|_|(?<=[a-z]))(?:chunk|piece|stretch|stack)(?:s|es)?(?=_|$|(?-i:[A-Z]))", re.I
)
# Words of other libraries, as they spell them.
FOREIGN = re.compile(
    r"\w*stack\(|chunks=|\.chunks\b|rechunk\w*|(?:call|numpy\.\w*)\s*stack|stacklevel"
)
LIBRARY_NAMES = {"stack", "column_stack", "hstack", "vstack", "chunks", "stacklevel", "rechunk"}
# Dask and Zarr cut arrays into chunks, Parquet has column chunks.
WITH_CHUNKS = re.compile(r"dask|zarr|parquet|cluster")


STRINGS = (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1))


class Text(NamedTuple):
    """Words of a file and the line that they begin in; some are docstrings, some are names."""

    line: int
    words: str
    docstring: bool = False
    name: bool = False


def python_text(source: str) -> Iterator[Text]:
    """Give the comments, strings and names of a module."""
    docstrings = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and ast.get_docstring(node, clean=False) is not None:
                docstrings.add(first.lineno)
    comment = Text(0, "")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            # A comment of several lines is one text.
            if comment.words and line == comment.line + comment.words.count("\n") + 1:
                comment = Text(comment.line, f"{comment.words}\n{token.string}")
            else:
                yield comment
                comment = Text(line, token.string)
        elif token.type in STRINGS:
            yield Text(line, token.string, token.type == tokenize.STRING and line in docstrings)
        elif token.type == tokenize.NAME and token.string not in LIBRARY_NAMES:
            yield Text(line, token.string, name=True)
    yield comment


def texts(path: Path) -> Iterator[Text]:
    """Give the words of a file."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from python_text(source)
    else:
        yield Text(1, source)


def files() -> list[Path]:
    """Return what users and readers of the code see."""
    found = [ROOT / page for page in PAGES]
    for folder in FOLDERS:
        for suffix in ("*.py", "*.rst", "*.md", "*.html"):
            found += sorted((ROOT / folder).rglob(suffix))
    return [path for path in found if not MADE & set(path.relative_to(ROOT).parts)]


def patterns() -> dict[str, re.Pattern[str]]:
    """Return what to look for; a phrase may run on in the next line."""
    return {
        name: re.compile(rf"\b{pattern}\b".replace(" ", r"\s+(?:#\s+)?"), re.IGNORECASE)
        for name, pattern in PHRASES.items()
    }


def phrases(
    path: Path, text: Text, wanted: dict[str, re.Pattern[str]]
) -> Iterator[tuple[str, str]]:
    """Give each phrase in a text, with its place."""
    where = path.relative_to(ROOT)
    with_chunks = WITH_CHUNKS.search(path.name) is not None
    if text.name:
        if (found := ROW_WORD.search(text.words)) and not ("chunk" in found[0] and with_chunks):
            yield NAMES, f"{where}:{text.line}: {text.words}"
        return
    foreign = {n for match in FOREIGN.finditer(text.words) for n in range(*match.span())}
    for name, pattern in wanted.items():
        for match in pattern.finditer(text.words):
            if match.start() not in foreign and not (name == "chunk" and with_chunks):
                line = text.line + text.words[: match.start()].count("\n")
                yield name, f"{where}:{line}: {' '.join(match[0].split())}"
    if text.docstring and OPENS.match(text.words.lstrip("rR\"' \n")):
        yield OPENING, f"{where}:{text.line}: {text.words.splitlines()[0][:70]}"


def places() -> dict[str, list[str]]:
    """Return where each phrase is found."""
    wanted = patterns()
    found: dict[str, list[str]] = {name: [] for name in (*PHRASES, OPENING, NAMES)}
    for path in files():
        for text in texts(path):
            for name, place in phrases(path, text, wanted):
                found[name].append(place)
    return found


def main() -> int:
    """Print the counts; with --check, return 1 unless all are zero."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 if a phrase is found")
    parser.add_argument("-v", "--verbose", action="store_true", help="also print where")
    options = parser.parse_args()
    found = places()
    for name, where in found.items():
        sys.stdout.write(f"{len(where):6}  {name}\n")
        if options.verbose:
            sys.stdout.write("".join(f"        {place}\n" for place in where))
    # A name is no phrase: those are shown, and not counted.
    total = sum(len(where) for name, where in found.items() if name != NAMES)
    sys.stdout.write(f"{total:6}  in all\n")
    return 1 if options.check and total else 0


if __name__ == "__main__":
    sys.exit(main())
