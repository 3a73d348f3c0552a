"""Numbers and certificates in plain words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from sksketch.models.base import Estimator
from sksketch.present.findings import Findings, quality_of, quality_text
from sksketch.sketches.certificate import rounded_down, rounded_up
from sksketch.time import StreamingOutlierDetector

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MINUS, TIMES = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"

# A coefficient that is certain only up to its own length can be anything.
VACUOUS = 1.0
WEAK = 0.5
# Relative errors below this are those of rounding.
ROUNDING = 1e-9


def number(value: float, digits: int = 3, direction: int = 0) -> str:
    """Return a number for readers: few digits, and powers of ten where it has many.

    It is not below the value if ``direction`` is 1, as an upper bound must be read, and not above
    it if that is -1.

    >>> number(1234.5), number(-0.02), number(1.82e7), number(1e-6), number(float("inf"))
    ('1,234', '−0.02', '1.82 × 10⁷', '10⁻⁶', 'unbounded')
    >>> number(1.0049, direction=1), number(1.0049, direction=-1), number(1234.5, direction=1)
    ('1.01', '1', '1,235')
    """
    if math.isinf(value):
        return "unbounded"
    if direction:
        value = _outward(value, digits, direction)
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        # Whole digits are never rounded away.
        whole = abs(value) >= 10 ** (digits - 1)
        text = f"{value:,.0f}" if whole else f"{value:.{digits}g}"
    else:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        power = f"10{str(int(exponent)).translate(SUPERSCRIPTS)}"
        text = power if mantissa == "1" else f"{mantissa} {TIMES} {power}"
    return text.replace("-", MINUS)


def _outward(value: float, digits: int, direction: int) -> float:
    if 10 ** (digits - 1) <= abs(value) < 1e5:
        return float(math.ceil(value) if direction > 0 else math.floor(value))
    rounded = rounded_up if direction > 0 else rounded_down
    return float(rounded(value, digits))


def tick(value: float) -> str:
    """Return a number for an axis, where room is short.

    >>> tick(0.5), tick(20_000.0), tick(-1e-6)
    ('0.5', '2×10⁴', '−10⁻⁶')
    """
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:,.6g}".replace("-", MINUS)
    sign = MINUS if value < 0 else ""
    mantissa, exponent = f"{abs(value):.6e}".split("e")
    power = f"10{str(int(exponent)).translate(SUPERSCRIPTS)}"
    factor = f"{float(mantissa):g}"
    return f"{sign}{power}" if factor == "1" else f"{sign}{factor}{TIMES}{power}"


def aligned(values: Sequence[float]) -> list[str]:
    """Return numbers for one column of a table, all with the same decimals where that is short.

    >>> aligned([12.5, -0.25]), aligned([0.5, 1e-9])
    (['12.50', '−0.25'], ['0.5000', '0.0000'])
    """
    largest = max((abs(value) for value in values), default=0.0)
    if not 1e-3 <= largest < 1e5:
        return [number(value) for value in values]
    decimals = max(3 - math.floor(math.log10(largest)), 0)
    texts = [f"{value:,.{decimals}f}" for value in values]
    # What is rounded to nothing has no sign.
    return [t.lstrip("-") if not t.strip("-0.,") else t.replace("-", MINUS) for t in texts]


def percent(share: float, direction: int = 0) -> str:
    """Return a fraction as a percentage, rounded as by `number`.

    >>> percent(0.5834), percent(0.99996), percent(1.0 - 1e-12), percent(3e-16)
    ('58.3%', '99.99%', '100%', '3 × 10⁻¹⁴%')
    >>> percent(0.99501, direction=-1), percent(0.00321, direction=1)
    ('99.5%', '0.322%')
    """
    text = number(100 * share, direction=direction)
    # 99.96% is not all of it.
    if text == "100" and share < 1 - 1e-6:
        text = f"{math.floor(1e4 * share) / 100:.4g}"
    return f"{text}%"


def interval(ends: Iterable[float], show: Callable[..., str] = number) -> str:
    """Return an interval as text, its ends rounded outward unless they are equal to rounding.

    >>> interval((1.0, 2.0049)), interval((3.0, 3.0 + 1e-12))
    ('1 to 2.01', '3')
    """
    least, most = (float(end) for end in ends)
    if most - least <= ROUNDING * max(abs(least), abs(most)):
        return str(show(most))
    low, high = show(least, direction=-1), show(most, direction=1)
    return low if low == high else f"{low} to {high}"


def in_short(found: Findings) -> str:
    """Return the plain result in one sentence, empty where there is none.

    >>> import numpy as np
    >>> from sksketch import StreamingPCA
    >>> rows = np.random.default_rng(0).normal(size=(50, 4)) * [9.0, 3.0, 1.0, 1.0]
    >>> in_short(Findings(StreamingPCA(2).fit(rows)))
    '2 components explain 97.4% of the variance.'
    """
    if found.is_regression:
        rated = quality_of(found.model)
        name = "holdout" if "holdout" in rated else "training"
        return f"{quality_text(name, rated[name])}." if rated else ""
    if isinstance(found.model, StreamingOutlierDetector):
        return f"Rows that score below {number(found.model.offset_)} do not fit."
    if found.n_components == 0:
        return ""
    whole = "variance" if found.is_centered else "energy"
    verb = "explains" if found.n_components == 1 else "explain"
    share = percent(float(found.captured.values[-1]))
    return f"{plural(found.n_components, 'component')} {verb} {share} of the {whole}."


def plural(n: int, word: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "row"), plural(20_000, "row")
    ('1 row', '20,000 rows')
    """
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"


def certainty(confidence: float, measured: float = 0.0) -> str:
    """Return in words how sure the bounds are, and whether they allow for roundings as measured."""
    also = " They allow for roundings of single precision as measured." if measured > 0 else ""
    if confidence == 1:
        sure = "These statements are certain: they follow from the sketch by arithmetic alone."
        return sure + also
    chance = percent(confidence, direction=-1)
    return f"These statements hold together with a probability of at least {chance}.{also}"


def certificate(found: Findings) -> list[str]:
    """Return what is certain about the rows, one sentence each."""
    record = found.certificate
    if not found.is_certified:
        return [
            "Nothing is certified. A random sketch is unbiased, but nothing in it "
            "bounds the error of this one; everything below is an estimate.",
        ]
    whole = "variance" if found.is_centered else "energy"
    n, k = record.n_certain, found.n_components
    if k == 0:
        alike = "equal" if found.is_centered else "zero"
        return [f"All rows are {alike}, so there is no direction to find."]
    error = percent(record.relative_error, direction=1)
    sentences = [f"No direction's {whole} is off by more than {error} of the total {whole}."]
    if record.relative_error < ROUNDING:
        sentences = [f"Every {whole} on this page is exact, to rounding: nothing was lost."]
    if n == 0:
        sentences.append(
            "No direction is certainly real: what the sketch may have lost is as large as the "
            "largest thing it kept. A larger sketch size helps."
        )
    elif record.relative_error >= ROUNDING and n == 1:
        sentences.append(
            "One direction is certainly real: it holds more than the sketch can have lost anywhere."
        )
    elif record.relative_error >= ROUNDING:
        sentences.append(
            f"{n:,} directions are certainly real: each holds more than the sketch can have lost "
            "anywhere."
        )
    held = interval(record.captured_energy[k - 1], percent)
    subject = "The first component holds" if k == 1 else f"The first {k:,} components together hold"
    sentences.append(f"{subject} {held} of the total {whole}.")
    sentences.append(certainty(record.confidence, record.measured))
    return sentences


def coefficients(found: Findings) -> str:
    """Return in words how far the coefficients of a regression can be off."""
    bound = found.model.coef_error_bound_
    if found.is_refined:
        return (
            "Further passes over the rows have refined these coefficients; what is certified "
            f"({percent(bound, direction=1)} of their length) is the sketch's answer before them."
        )
    if bound < ROUNDING:
        return "The covariance was kept exactly, so these are the exact coefficients, to rounding."
    if math.isinf(bound):
        return "No bound on the error of these coefficients is certified."
    advice = "A larger penalty or sketch size helps, and columns of similar units."
    confidence = found.certificate.confidence
    chance, most = percent(confidence, direction=-1), percent(bound, direction=1)
    sure = "" if confidence == 1 else f", with a probability of at least {chance}"
    if bound >= VACUOUS:
        return (
            f"The bound on their error, {most} of their length, says nothing: at this "
            f"penalty the coefficients can be anything. {advice}"
        )
    if bound >= WEAK:
        return (
            f"The coefficients are off by at most {most} of their length{sure}, which "
            f"says little. {advice}"
        )
    return f"The coefficients are off by at most {most} of their length{sure}."


def quality(model: Estimator) -> list[str]:
    """Return how good predictions are, a sentence for each set of rows."""
    names = {"training": "On the rows learned from", "holdout": "On rows kept apart"}
    return [
        f"{names[name]}: {quality_text(name, numbers)}"
        for name, numbers in quality_of(model).items()
    ]


def each_coefficient(error: float, largest: float) -> str:
    """Return in words how far a single coefficient can be off; nothing if that is known by then."""
    if not ROUNDING * largest < error < math.inf:
        return ""
    if error > largest:
        return (
            f"One alone can be off by {number(error)}, more than the largest of them, so no "
            "sign is certain."
        )
    return f"Each is certain to ± {number(error)}."
