"""The commands kpca and kcca: components of rows, and of two views of them, through a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from sksketch.cli.options import Rows, Run, Spread
from sksketch.cli.running import finish, in_parts, keep_sources, open_source, stream
from sksketch.cli.saving import STDOUT, Saved, write
from sksketch.cli.show import print_model, say
from sksketch.kernel_methods import StreamingKernelCCA, StreamingKernelPCA
from sksketch.kernel_methods.kernels import PARAMETERS
from sksketch.streams import RowSource
from sksketch.streams.files import STDIN


def known_kernels(incomplete: str) -> list[str]:
    """Return the kernels that begin so, for the completion of the shell."""
    return [name for name in PARAMETERS if name.startswith(incomplete)]


class PcaSolver(StrEnum):
    """Solvers of kernel PCA."""

    auto = "auto"
    sgd = "sgd"
    sketch = "sketch"


class CcaSolver(StrEnum):
    """Solvers of kernel CCA."""

    auto = "auto"
    exact = "exact"
    sgd = "sgd"


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


def kpca(
    rows: Rows,
    run: Run,
    features: Features,
    spread: Spread,
    components: Count = 2,
    solver: Annotated[PcaSolver, typer.Option(help="Solver of the components.")] = PcaSolver.auto,
    polish: Annotated[
        int, typer.Option(min=0, help="Further passes over the rows, for --solver sgd.")
    ] = 0,
    center: Annotated[
        bool, typer.Option("--center/--no-center", help="Whether features are centered.")
    ] = True,
) -> None:
    """Find kernel principal components in flat memory, and say which features were taken."""
    keep_sources(rows, run.output)
    if STDIN in rows.sources and polish:
        raise typer.BadParameter("stdin can be read only once; give a file for --polish")
    source = open_source(rows)
    model = StreamingKernelPCA(
        components, solver=solver.value, polish=polish, center=center, **features.options()
    )
    if not in_parts(model, source, rows, None, run, spread):
        stream(model, source, run, device=spread.device)
    _save(model, source, rows, run)


def kcca(
    rows: Rows,
    run: Run,
    features: Features,
    other: Annotated[
        str, typer.Option("--other", metavar="A,B", help="Columns of the second view.")
    ],
    components: Count = 2,
    ridge: Annotated[
        str, typer.Option(metavar="NUMBER", help="Penalty; auto follows the number of rows.")
    ] = "auto",
    solver: Annotated[CcaSolver, typer.Option(help="Solver of the components.")] = CcaSolver.auto,
) -> None:
    """Find functions of two views of the rows that correlate most, in flat memory."""
    keep_sources(rows, run.output)
    source = open_source(rows, other)
    model = StreamingKernelCCA(
        components, ridge=_ridge(ridge), solver=solver.value, **features.options()
    )
    stream(model, source, run)
    _save(model, source, rows, run)


def _save(model: Any, source: RowSource, rows: Rows, run: Run) -> None:
    """Save a model with some rows' components for its report, and print what was found."""
    if STDIN not in rows.sources:
        block = next(source.blocks())
        # The blocks are bare arrays, and scikit-learn would miss their names.
        names = vars(model).pop("feature_names_in_", None)
        model.keep_embedding(*(part for part in block if part is not None))
        if names is not None:
            model.feature_names_in_ = names
    saved = Saved(model, source.feature_names)
    write(saved, run.output)
    finish(run)
    if run.output == STDOUT:
        say(run, "saved to stdout")
    elif run.as_json or not run.quiet:
        print_model(saved, run.output, run.as_json)


def _bandwidth(text: str) -> float | str:
    return text if text == "median" else _number("--bandwidth", text)


def _ridge(text: str) -> float | str:
    return text if text == "auto" else _number("--ridge", text)


def _parameter(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    number = _number(f"--parameter {name}", value)
    return name, int(number) if number == int(number) else number


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{option} {text}: expected a number") from None
