"""How ours stands beside the peers on one stream, and on all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Points of error that ours may be above the best peer, and how often two peers must be beaten.
MARGIN = 0.003
SHARE = 2 / 3

# Names that fit over a column of numbers.
SHORT = {
    "OnlineNewtonClassifier": "ours",
    "OnlineNewtonRegressor": "ours",
    "River scaler + logistic": "River",
    "River scaler + linear": "River",
    "SGDClassifier": "SGD",
    "SGDClassifier log_loss": "SGD log",
    "SGDRegressor": "SGD",
}

Peers = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Verdict:
    """The distance to the best peer, and how many of those that ran are beaten."""

    above_best: float
    n_beaten: int
    n_peers: int

    @property
    def within(self) -> bool:
        return self.above_best <= MARGIN

    @property
    def beats_two(self) -> bool:
        return self.n_beaten >= min(2, self.n_peers)


def verdict(figures: dict[str, float], ours: str, peers: Peers) -> Verdict | None:
    """Compare ours with the peers that have a figure; each is the best of its variants."""
    mine = figures.get(ours, math.nan)
    best = [
        min(known)
        for names in peers
        if (known := [figures[n] for n in names if math.isfinite(figures.get(n, math.nan))])
    ]
    if not best or math.isnan(mine):
        return None
    return Verdict(mine - min(best), sum(mine < figure for figure in best), len(best))


def in_words(found: Verdict | None) -> str:
    """Return one verdict on an error as a sentence."""
    if found is None:
        return "no peer or no figure of ours to compare"
    beaten = f"below {found.n_beaten} of {found.n_peers} peers"
    held = "within" if found.within else "NOT within"
    return f"{beaten}, {100 * found.above_best:+.2f} points from the best: {held} 0.3"


def table(results: dict[str, dict[str, float]], ours: str, peers: Peers) -> list[str]:
    """Return a line for each stream: ours, each variant of the peers, and the verdict."""
    columns = [ours, *(name for names in peers for name in names)]
    heads = [SHORT.get(name, name) for name in columns]
    lines = [f"  {'':16}" + "".join(f"{head:>12}" for head in heads) + "  verdict"]
    for stream, figures in results.items():
        cells = [shortened(figures.get(name, math.nan)) for name in columns]
        found = verdict(figures, ours, peers)
        words = "-" if found is None else f"below {found.n_beaten} of {found.n_peers}"
        if found is not None:
            words += f", {found.above_best:+.4f} from the best"
        lines.append(f"  {stream:16}" + "".join(f"{cell:>12}" for cell in cells) + f"  {words}")
    return lines


def shortened(figure: float) -> str:
    """Return a figure that fits into a column, however far a learner has diverged."""
    if math.isnan(figure):
        return "-"
    return f"{figure:.4f}" if figure < 100 else f"{figure:.4g}"


def summary(verdicts: dict[str, Verdict | None]) -> list[str]:
    """Return the lines that hold all streams against what is asked."""
    found = {name: one for name, one in verdicts.items() if one is not None}
    if not found:
        return ["no stream could be compared"]
    far = [name for name, one in found.items() if not one.within]
    n_close, n_beaten = len(found) - len(far), sum(one.beats_two for one in found.values())
    close = f"within 0.3 points of the best peer on {n_close} of {len(found)} streams"
    beaten = f"below two of three peers on {n_beaten} of {len(found)} streams, two thirds are asked"
    enough = n_beaten >= SHARE * len(found)
    return [
        f"{'FAIL' if far else 'ok'}  {close}" + (f": not on {', '.join(far)}" if far else ""),
        f"{'ok' if enough else 'FAIL'}  {beaten}",
    ]
