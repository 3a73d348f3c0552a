"""Lines of text that a terminal shows and does not obey."""

from __future__ import annotations

import sys


def printable(text: str) -> str:
    r"""Return one line of text; what is no character to be seen is as Python would write it.

    Names of columns, files and categories come from whoever wrote the file.

    >>> print(printable("größe \x1b[2J\n"))
    größe \x1b[2J\n
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def echo(text: str = "", *, err: bool = False) -> None:
    """Print one line."""
    file = sys.stderr if err else sys.stdout
    if file is None:
        # Closed by whoever started the command.
        return
    file.write(f"{printable(text)}\n")
    file.flush()


def label_text(label: object) -> str:
    """Return a label as it is shown: numbers without needless digits, names as they are.

    >>> label_text(1.0), label_text("yes")
    ('1', 'yes')
    """
    return str(label) if isinstance(label, str) else f"{label:g}"
