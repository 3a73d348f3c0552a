"""Options of the kernel commands, and their ending."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from sksketch.cli.learning import save
from sksketch.cli.options import Rows, Run
from sksketch.cli.saving import of_source
from sksketch.kernel_methods.kernels import PARAMETERS
from sksketch.streams import RowSource
from sksketch.streams.files import STDIN


def known_kernels(incomplete: str) -> list[str]:
    """Return the kernels that begin so, for the completion of the shell."""
    return [name for name in PARAMETERS if name.startswith(incomplete)]


@dataclass(frozen=True)
class Features:
    """The kernel, and the features that stand for it."""

    kernel: Annotated[
        str,
        typer.Option(
            metavar="NAME", help=f"{', '.join(PARAMETERS)}.", autocompletion=known_kernels
        ),
    ] = "gaussian"
    bandwidth: Annotated[
        str, typer.Option(metavar="NUMBER", help="Width of the kernel; median estimates it.")
    ] = "median"
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER", help="Parameter of the kernel: nu, degree, coef0, order ..."
        ),
    ] = None
    features: Annotated[int, typer.Option(min=1, help="Number of random features.")] = 4096
    landmarks: Annotated[
        int | None,
        typer.Option(min=1, help="Number of Nyström landmarks, instead of random features."),
    ] = None
    batch: Annotated[int, typer.Option(min=1, help="Rows per batch.")] = 1024
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0

    def options(self) -> dict[str, Any]:
        """Return the parameters of an estimator."""
        return {
            "kernel": self.kernel,
            "bandwidth": _bandwidth(self.bandwidth),
            "kernel_params": dict(map(_parameter, self.parameter or [])) or None,
            "n_random_features": self.features,
            "landmarks": self.landmarks,
            "batch_size": self.batch,
            "random_state": self.seed,
        }


Count = Annotated[
    int, typer.Option("--components", "-k", min=1, metavar="N", help="Number of components.")
]


def save_with_embedding(model: Any, source: RowSource, rows: Rows, run: Run) -> None:
    """Save a model with some rows' components for its report, and print what was found."""
    if STDIN not in rows.sources:
        block = next(source.blocks())
        # The blocks are bare arrays, and scikit-learn would miss their names.
        names = vars(model).pop("feature_names_in_", None)
        model.keep_embedding(*(part for part in block if part is not None))
        if names is not None:
            model.feature_names_in_ = names
    save(of_source(model, source), run)


def _bandwidth(text: str) -> float | str:
    return text if text == "median" else number_of("--bandwidth", text)


def _parameter(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    number = number_of(f"--parameter {name}", value)
    return name, int(number) if number == int(number) else number


def number_of(option: str, text: str) -> float:
    """Return the number that an option gives."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{option} {text}: expected a number") from None
