"""The report in a browser: it renders, asks for nothing, fits a phone and can be dark."""

from __future__ import annotations

import re

import numpy as np
import pytest

from _support import browser
from sksketch import (
    FrequentDirections,
    GaussianSketch,
    StreamingPCA,
    StreamingRidge,
    StreamingRidgeCV,
    StreamingSVD,
)
from sksketch.present.report import Source, render

PROGRAM = browser.find()
pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason=f"none of {', '.join(browser.NAMES)} is installed"
)
KINDS = ["pca", "svd", "ridge", "ridge-cv", "sketch", "random", "empty"]
MOST_CHARTS = "ridge-cv"
DESKTOP, PHONE, SMALL_PHONE = (1280, 900), (390, 844), (360, 740)

# Labels that leave their chart, with a pixel for the rounding of fonts.
OVERFLOWING = """
[...document.querySelectorAll('svg text')].filter(label => {
  const inner = label.getBoundingClientRect();
  const outer = label.closest('svg').getBoundingClientRect();
  return inner.left < outer.left - 1 || inner.right > outer.right + 1
    || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
}).map(label => label.textContent)
"""
# Neighbours on one axis that run into each other.
COLLIDING = """
[...document.querySelectorAll('svg')].flatMap(svg => {
  const boxes = [...svg.querySelectorAll('text')].map(t => [t, t.getBoundingClientRect()]);
  return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([b, q]) =>
    p.left < q.right && q.left < p.right && p.top + 3 < q.bottom && q.top + 3 < p.bottom
  ).map(([b]) => a.textContent + ' | ' + b.textContent));
})
"""
EMPTY_CHARTS = """
[...document.querySelectorAll('svg')].filter(svg => {
  const box = svg.getBoundingClientRect();
  return box.width < 100 || box.height < 50 || svg.getBBox().width < 50;
}).length
"""
UNFOLD = "document.querySelectorAll('details').forEach(part => { part.open = true; })"
COLOURS = """
[...document.querySelectorAll('h1, h2, p, td, th, dd, dt, summary, li, footer')].map(part => {
  let behind = part;
  while (behind.parentElement && getComputedStyle(behind).backgroundColor === 'rgba(0, 0, 0, 0)')
    behind = behind.parentElement;
  return [getComputedStyle(part).color, getComputedStyle(behind).backgroundColor];
})
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """One page of each kind, with names that no layout likes."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 90)) * np.geomspace(20, 0.1, 90)
    names = [f"feature_{i}" for i in range(90)]
    names[0], names[1], names[2] = "<b>'\"&amp;", "unbroken" * 40, "größe in µm, 温度, العربية"
    y = 1e5 * X[:, 0] + X @ rng.normal(size=90)
    models = {
        "pca": StreamingPCA(6, sketch="rfd", sketch_size=9).fit(X),
        "svd": StreamingSVD(60).fit(1e-9 * X),
        "ridge": StreamingRidge(50.0, sketch="rfd", sketch_size=9).fit(X, np.c_[y, X[:, 1]]),
        "ridge-cv": StreamingRidgeCV(np.geomspace(1e-3, 1e5, 9)).fit(X, y),
        "sketch": FrequentDirections(12).update(X),
        "random": GaussianSketch(12).update(X),
        "empty": FrequentDirections(12),
    }
    folder = tmp_path_factory.mktemp("pages")
    for kind, model in models.items():
        page = render(model, Source(f"{kind}.sks", 1000), names if kind != "empty" else None)
        (folder / f"{kind}.html").write_text(page, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser.Browser(PROGRAM, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=() if k == MOST_CHARTS else pytest.mark.slow) for k in KINDS]
)
def test_the_page_renders_without_complaint_and_asks_for_nothing(kind, pages, chromium):
    address = (pages / f"{kind}.html").as_uri()
    for width, height in (DESKTOP, PHONE, SMALL_PHONE):
        chromium.open(address, width=width, height=height)
        for unfolded in (False, True):
            if unfolded:
                chromium.evaluate(UNFOLD)
            assert chromium.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert chromium.evaluate("innerWidth") == width
        assert chromium.evaluate(EMPTY_CHARTS) == 0
        assert chromium.evaluate(OVERFLOWING) == []
        assert chromium.evaluate(COLLIDING) == []
        assert chromium.problems == []
        assert [url for url in chromium.requests if not url.startswith("data:")] == [address]
    n_charts = chromium.evaluate("document.querySelectorAll('svg[role=img] > title').length")
    assert n_charts == {"empty": 0, "ridge": 8, "ridge-cv": 9}.get(kind, 2)


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
def test_the_text_stands_out_from_its_background_in_light_and_dark(dark, pages, chromium):
    for kind in ("pca", "ridge", "random"):
        address = (pages / f"{kind}.html").as_uri()
        chromium.open(address, width=DESKTOP[0], height=DESKTOP[1], dark=dark)
        pairs = {tuple(pair) for pair in chromium.evaluate(COLOURS)}
        assert len(pairs) > 2
        for text, behind in pairs:
            assert (luminance(behind) < 0.05) == dark
            # The Web Content Accessibility Guidelines ask for 4.5 to 1.
            assert contrast(text, behind) >= 4.5, (text, behind)
        assert chromium.problems == []


@pytest.mark.slow
def test_the_page_can_be_printed(pages, chromium):
    chromium.open((pages / "pca.html").as_uri(), width=DESKTOP[0], height=DESKTOP[1])
    assert chromium.screenshot().startswith(b"\x89PNG")
    assert chromium.call("Page.printToPDF")["data"].startswith("JVBER")


def contrast(first, second):
    """Return the contrast ratio of two colours, as the guidelines define it."""
    darker, lighter = sorted([luminance(first), luminance(second)])
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour):
    channels = np.array([float(n) for n in re.findall(r"[\d.]+", colour)[:3]]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
