"""What a claim of a paper is, and how the verdicts that a script wrote are read back."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

HOLDS, FAILS, UNTESTABLE = "holds", "does not hold", "not testable here"
# Scripts that feed a sketch in two ways decide a claim on each.
READINGS = {
    "printed": ", as printed",
    "default": ", as users get it",
    "exact": ", exact ridge",
    "verdict": "",
}
SMALL = "small sizes, "
OURS_ONLY = "- (ours, not the paper's)"


@dataclass(frozen=True)
class Row:
    """One claim beside the paper's figure and ours; ``why`` says what is missing."""

    claim: str
    published: str
    ours: str
    verdict: str
    why: str = ""


@dataclass(frozen=True)
class Expected:
    """A claim of a paper: words that the script's own claim contains, and the paper's figure.

    ``part`` is the data or part of the script without which it can not be decided, ``why`` what
    is missing where the script does not say it.
    """

    words: str
    published: str
    part: str = ""
    why: str = ""


@dataclass(frozen=True)
class Run:
    """What a script left: its JSON by file, its text, and why it failed if it did."""

    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    printed: str = ""
    failure: str = ""
    quick: bool = False

    def why_missing(self, part: str = "") -> str:
        """Say why a figure is not there: failed, skipped for want of data, or small sizes."""
        if self.failure:
            return f"the script failed: {self.failure}"
        if self.quick:
            return "not part of the quick form"
        lines = [line.strip() for line in self.printed.splitlines()]
        for line, following in pairwise(lines):
            # "TEMP skipped: set ...", or a case and its reason on the next line.
            if line.startswith(f"{part} skipped:"):
                return line
            if line.startswith(f"{part}:") and following.startswith("skipped:"):
                return f"{part} {following}"
        skipped = [line for line in lines if " skipped: " in line and not part]
        return (skipped or ["it was not run"])[0]

    def claims(self) -> list[dict[str, str]]:
        """Return every claim that the script decided itself."""
        return [claim for figures in self.results.values() for claim in figures.get("claims", [])]


def split(text: str) -> tuple[str, str]:
    """Return what was found and the verdict of a line such as 'in 3 of 3 cases: holds'."""
    for ending, verdict in (
        ("not testable here", UNTESTABLE),
        ("not testable", UNTESTABLE),
        ("does not hold", FAILS),
        ("holds", HOLDS),
    ):
        if text.endswith(ending):
            return text.removesuffix(ending).rstrip(": "), verdict
    raise ValueError(f"no verdict at the end of {text!r}")


def listed(run: Run, expected: list[Expected]) -> list[Row]:
    """Return the claims of a script with the paper's figures, and those it did not decide."""
    rows, met = [], set()
    for claim in run.claims():
        text = claim["claim"].strip()
        known = next((e for e in expected if e.words in text), None)
        met.add(known)
        published, why = (known.published, known.why) if known else (OURS_ONLY, "")
        for key, suffix in READINGS.items():
            if key in claim:
                rows.append(read(text + suffix, published, claim[key], why))
    absent = [e for e in expected if e not in met]
    return rows + [missing(e.words, e.published, run, e.part) for e in absent]


def read(claim: str, published: str, line: str, why: str) -> Row:
    """Return the row of a line such as 'in 3 of 3 cases: holds'."""
    found, verdict = split(line)
    if verdict != UNTESTABLE:
        return Row(claim, published, found, verdict)
    if found.startswith(SMALL):
        return Row(claim, published, found.removeprefix(SMALL), verdict, SMALL.rstrip(", "))
    return Row(claim, published, found if why and found else "-", verdict, why or found)


def missing(claim: str, published: str, run: Run, part: str = "") -> Row:
    """Return the row of a claim that has no figure."""
    return Row(claim, published, "-", UNTESTABLE, run.why_missing(part))


def decided(
    claim: str, published: str, ours: str, holds: bool | None, why: str = "small sizes"
) -> Row:
    """Return the row of a claim; ``holds`` is None where the sizes or the machine are not its."""
    if holds is None:
        return Row(claim, published, ours, UNTESTABLE, why)
    return Row(claim, published, ours, HOLDS if holds else FAILS)
