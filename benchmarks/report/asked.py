"""What the scripts of speed/ are held to, gathered from what they print, and why some fall short.

A script prints a line "ok    ..." or "FAIL  ..." for every figure that is asked of it.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

LINE = re.compile(r"^\s*(ok|FAIL)\s{2,}(.+?)\s*$", re.MULTILINE)


class Reason(NamedTuple):
    """Why the lines of a script in which ``words`` are found may fail."""

    script: str
    words: str
    why: str


REASONS = (
    Reason(
        "dense",
        r"default [\d.]+ x IPCA",
        "the verification and the passes over the rows that are no products take as long as the "
        "products; the ratio varies with the machine",
    ),
    Reason(
        "dense",
        r"exact [\d.]+ x IPCA",
        "at this width the eigenproblem of three sketch sizes costs as much as the products; the "
        "ratio varies with the machine around what is asked",
    ),
    Reason(
        "online",
        r"OjaNewton",
        "Vowpal Wabbit keeps its sketch in float32 and takes no projection step; ours are in "
        "float64, and a prediction is held within C",
    ),
    Reason(
        "online",
        r"paper in numpy",
        "the ratio varies with the machine around what is asked",
    ),
    Reason(
        "online",
        r"River",
        "a step with ten directions is about ten times the arithmetic of River's first-order one",
    ),
    Reason(
        "reduction",
        r"NOR",
        "500 directions of the subspace hold less than all words do; nordr, which takes the dual "
        "model back to all columns, is within the margin",
    ),
    Reason(
        "parquet",
        r"speed",
        "reading takes both processors when it is alone, but the sums of the ridge take one of "
        "them; about two seconds of the run are the start of the interpreter",
    ),
    Reason(
        "windows",
        r"error of DS-FD",
        "its directions leave one by one, each with a time of its own; a bucket of ours leaves as "
        "a whole, and half of the one at the edge is part of the error",
    ),
    Reason(
        "windows",
        r"rows/s",
        "in so little memory the buckets are of few rows each; with what a window keeps by default "
        "they are of hundreds",
    ),
    Reason(
        "outliers",
        r"HalfSpaceTrees",
        "the trees look at few columns of a row, however many it has, and ours at all pairs",
    ),
    Reason(
        "moments",
        r"bare scan",
        "sums that are never rounded multiply three slices of every number, which takes longer "
        "than reading it from a warm page cache",
    ),
    Reason(
        "canonical",
        r"cca-zoo",
        "with the best of 21 settings, whose search is not counted; a step of it is linear in the "
        "columns, and products of all columns are not",
    ),
    Reason(
        "dask",
        r"two workers",
        "the scheduler and the client have no processor of their own here; what the workers "
        "reach with nothing to schedule is printed beside it",
    ),
)


# Why a peer may take less time, by the script and the name of the peer.
LOSSES = (
    Reason("online", r"OjaNewton", "it keeps its sketch in float32 and takes no projection step"),
    Reason(
        "online",
        r"SGD|VW|River",
        "its steps are of first order, without a sketch to keep; they have a rate to tune",
    ),
    Reason("reduction", r"RandomProjection", "it looks for no directions, and errs more"),
    Reason(
        "reduction",
        r"LinearSVC|SGD",
        "these rows and columns fit into memory, so that nothing has to be reduced",
    ),
    Reason(
        "sparse",
        r"TruncatedSVD|gensim",
        "it has all rows at hand for several passes, or takes them by the ten thousand, and gives "
        "no error bound",
    ),
    Reason(
        "sparse",
        r"SFD paper",
        "a sketch of few rows shrinks often, and the paper's form verifies less at each shrink",
    ),
    Reason(
        "sparse",
        r"FD, ",
        "where rows are dense, or a sketch of few rows is cheap, random directions gain nothing",
    ),
    Reason("dense", r"eigh", "it has all rows in memory, and sums in their own precision"),
    Reason(
        "ridge",
        r"SGD|river",
        "it takes one pass of first-order steps, and gives no error bound",
    ),
    Reason("ridge", r"Ridge", "it has all rows in memory"),
    Reason("kernel", r"KernelPCA", "the kernel matrix of so few rows fits into memory"),
    Reason("kernel", r"Nystroem", "it takes few landmarks, and gives no error bound"),
    Reason("io", r"", "it reads into memory at once, and checks no value"),
)


def why_lost(script: str, peer: str) -> str:
    """Return the reason why a peer may take less time."""
    return _reason(LOSSES, script, peer)


def _reason(known: tuple[Reason, ...], script: str, text: str) -> str:
    found = (r.why for r in known if r.script == script and re.search(r.words, text))
    return next(found, "no reason is known")


class Asked(NamedTuple):
    """One figure that was asked for."""

    script: str
    met: bool
    text: str

    @property
    def why(self) -> str:
        """The reason why it may fall short, if it does."""
        return "" if self.met else _reason(REASONS, self.script, self.text)


def asked(scripts: dict[str, dict[str, Any]]) -> list[Asked]:
    """Return every figure that the scripts say they are held to, those that fall short first."""
    found = [
        Asked(name, verdict == "ok", " ".join(text.split()))
        for name, script in scripts.items()
        for verdict, text in LINE.findall(script["printed"])
    ]
    return sorted(found, key=lambda one: one.met)
