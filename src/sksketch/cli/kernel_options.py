"""Options of the kernel commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from sksketch._keys import KERNELS
from sksketch.cli.options import in_kernel, in_model


def known_kernels(incomplete: str) -> list[str]:
    """Return the kernels that begin so, for the completion of the shell."""
    return [name for name in KERNELS if name.startswith(incomplete)]


@dataclass(frozen=True)
class Features:
    """The kernel, and the features that stand for it."""

    kernel: Annotated[
        str,
        in_kernel(metavar="NAME", help=f"{', '.join(KERNELS)}.", autocompletion=known_kernels),
    ] = "gaussian"
    bandwidth: Annotated[
        str, in_kernel(metavar="NUMBER", help="Width of the kernel; median estimates it.")
    ] = "median"
    parameter: Annotated[
        list[str] | None,
        in_kernel(
            metavar="NAME=NUMBER", help="Parameter of the kernel: nu, degree, coef0, order ..."
        ),
    ] = None
    features: Annotated[int, in_kernel(min=1, help="Number of random features.")] = 4096
    landmarks: Annotated[
        int | None,
        in_kernel(min=1, help="Number of Nyström landmarks, instead of random features."),
    ] = None
    batch: Annotated[int, in_kernel(min=1, help="Rows per batch.")] = 1024
    seed: Annotated[int, in_kernel(help="Random seed.")] = 0

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
    int,
    in_model(
        "--components",
        "-k",
        min=1,
        metavar="N",
        help="Number of components.",
    ),
]


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
