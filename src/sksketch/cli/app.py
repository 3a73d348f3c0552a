"""The application: its commands, its exit codes and the one line that a mistake gets."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from sksketch._command import leave_quietly
from sksketch.cli.printing import echo
from sksketch.cli.stopping import exit_code, stoppable
from sksketch.exceptions import ExplainedError, Option, StreamExhaustedError

try:
    import rich  # noqa: F401  (only to know)
    import typer
except ImportError as error:
    _MISSING: str | None = error.name
else:
    _MISSING = None

USER_MISTAKE = 2

# Options whose spelling is not that of the argument, with dashes and its values.
SPELLINGS: dict[str, Callable[[Option], str]] = {
    "categories": lambda option: f"--one-hot {_only_key(option.values[0])}=A,B",
    "columns": lambda option: f"--columns {_listed(option.values[0])}".rstrip(),
    "one_hot": lambda option: f"--one-hot {option.values[0]}=A,B",
    "header": lambda _: "--header or --no-header",
    "resume": lambda _: "--restart",
    "raw": lambda _: "--encode",
    "replace": lambda _: "--replace",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 is success, 2 and one line a user's mistake, 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP. Anything
    unexpected is an exception, which ends the program with its traceback and code 1.

    Examples
    --------
    >>> main(["info", "no-such-file.sks"])
    2
    """
    if _MISSING is not None:
        return fail(f"the commands need {_MISSING}: pip install 'scikit-sketch[cli]'")
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments and "_SKSKETCH_COMPLETE" not in os.environ:
        from sksketch.cli.help import BEGINNING

        for line in BEGINNING.splitlines():
            echo(line)
        return 0
    try:
        app = build_app()
        with stoppable():
            code = app(args=arguments, prog_name="sksketch", standalone_mode=False)
    except typer.TyperException as error:
        return fail(error.format_message())
    except (KeyboardInterrupt, typer.Abort) as error:
        fail("stopped")
        return exit_code(error)
    except SystemExit as error:
        # Typer's answer where whoever read our output has had enough.
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        return 0
    except OSError as error:
        name = "" if error.filename is None else f": {error.filename}"
        return fail(f"{error.strerror or error}{name}")
    except MemoryError as error:
        return fail(f"not enough memory ({error}); take a smaller sketch, or say --memory")
    except (ValueError, ImportError, StreamExhaustedError) as error:
        return fail(in_options(error))
    return code if isinstance(code, int) else 0


def run() -> NoReturn:
    """Run the command of this process, and end the process with its exit code.

    A thread that still waits for input would come back into an interpreter that is being taken
    down, which is not safe inside of every library.
    """
    leave_quietly()
    code = main()
    # What is left goes with the process, and need not be looked through for garbage.
    gc.freeze()
    if threading.active_count() > 1 and _is_reading():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _is_reading() -> bool:
    """Return whether a thread still waits for input; there is none where nothing was read."""
    from sksketch.streams.prefetch import is_reading

    return is_reading()


def build_app() -> Any:
    """Return the commands as one application."""
    from sksketch.cli.commands import (
        apply,
        info,
        kcca,
        kpca,
        merge,
        online,
        pca,
        reduce,
        report,
        ridge,
        sketch,
        svd,
        times,
        tour,
    )
    from sksketch.cli.help import SHORT, PlainCommand, before_commands, epilog, grouped

    app = typer.Typer(
        help="Learn from matrices that do not fit: one pass, flat memory, certified error.",
        add_completion=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(before_commands)
    learning: list[Any] = [
        *(pca.pca, svd.svd, ridge.ridge, online.online),
        *(kpca.kpca, kcca.kcca, reduce.reduce, sketch.sketch),
    ]
    using: list[Any] = [
        *(merge.merge, apply.apply, times.compare, times.anomalies),
        *(info.info, report.report, tour.tour),
    ]
    for command in (*learning, *using):
        name = command.__name__
        listed = app.command(cls=PlainCommand, short_help=SHORT[name], epilog=epilog(name))
        listed(grouped(command))
    archive = typer.Typer(help="Keep states by period, and answer for any range of them.")
    parts: dict[str, Any] = {"add": times.add, "query": times.query, "list": times.list_periods}
    for name, command in parts.items():
        text = epilog(f"archive {name}")
        archive.command(name, cls=PlainCommand, epilog=text)(grouped(command))
    app.add_typer(archive, name="archive")
    return app


def in_options(error: Exception) -> str:
    """Return what an error of the library says, with the options of the command in it.

    >>> in_options(ExplainedError("missing value; pass ", Option("missing", "mean", "drop")))
    'missing value; pass --missing mean or drop'
    """
    return error.spelled(as_option) if isinstance(error, ExplainedError) else str(error)


def _listed(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else ""


def _only_key(value: object) -> object:
    assert isinstance(value, Mapping)
    (key,) = value
    return key


def as_option(option: Option) -> str:
    """Return an argument as a user of the command types it.

    >>> as_option(Option("n_features"))
    '--n-features'
    """
    if option.name in SPELLINGS:
        return SPELLINGS[option.name](option)
    name = f"--{option.name.replace('_', '-')}"
    return " ".join([name, " or ".join(map(str, option.values))]).rstrip()


def fail(message: str) -> int:
    """Put one line on stderr and return the code for a user's mistake."""
    echo(f"sksketch: {' '.join(message.split())}", err=True)
    return USER_MISTAKE
