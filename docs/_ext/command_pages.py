"""The directive that lists all commands, made of the commands themselves."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import typer
from site_pages import Made, shown

from sksketch.cli.app import build_app
from sksketch.cli.options import PANELS


class Commands(Made):
    """The list of some commands: their help, examples, and options under their headings."""

    required_arguments = 1
    final_argument_whitespace = True

    def made(self) -> list[str]:
        wanted = self.arguments[0].split()
        commands = dict(found(typer.main.get_command(build_app()), "sksketch"))
        lines: list[str] = []
        for word in wanted:
            name = f"sksketch {word.replace('-', ' ')}"
            lines += described(name, commands[name])
        return lines


def found(command: Any, name: str) -> list[tuple[str, Any]]:
    """Return all commands below one, by their names."""
    below = getattr(command, "commands", None)
    if below is None:
        return [(name, command)]
    return [pair for n, c in below.items() for pair in found(c, f"{name} {n}")]


def described(name: str, command: Any) -> list[str]:
    """Return a section about a command."""
    context = typer.Context(command, info_name=name)
    lines = ["", name, "-" * len(name), "", *prose(command.help or "")]
    examples = [e.strip() for e in (command.epilog or "").splitlines() if "sksketch" in e]
    if examples:
        lines += [".. code-block:: console", "", *(f"   $ {line}" for line in examples), ""]
    panels = defaultdict(list)
    for parameter in command.get_params(context):
        if (record := parameter.get_help_record(context)) is not None:
            panels[heading(parameter)].append(record)
    lines += [".. list-table::", "   :class: figures", "   :widths: 35 65", ""]
    for panel in ("Arguments", *PANELS, "Options"):
        for words, help_text in panels.get(panel, []):
            names = re.sub(r" <(list\[)?str\]?>", "", words)
            lines += [f"   * - ``{names}``", f"     - {shown(' '.join(help_text.split()))}"]
    return [*lines, ""]


def heading(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return "Arguments"
    return getattr(parameter, "rich_help_panel", None) or "Options"


def prose(text: str) -> list[str]:
    """Return the paragraphs of a help text."""
    paragraphs = re.split(r"\n\s*\n", text.replace("\b", "").strip())
    return [line for part in paragraphs for line in (shown(" ".join(part.split())), "")]


DIRECTIVES = (("commands", Commands),)
