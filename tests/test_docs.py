"""The site builds without a warning, its links lead somewhere, and a browser can search it."""

from __future__ import annotations

import http.server
import importlib.util
import os
import subprocess
import sys
import threading
import time
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from _support import browser

DOCS = Path(__file__).resolve().parents[1] / "docs"
NEEDED = ("sphinx", "pydata_sphinx_theme", "sphinx_gallery", "numpydoc", "matplotlib")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(MISSING), reason=f"{MISSING} not installed: pip install '.[docs,plot]'"
    ),
    pytest.mark.skipif(not DOCS.exists(), reason="needs the docs of a clone"),
]
PROGRAM = browser.find()
needs_browser = pytest.mark.skipif(
    PROGRAM is None, reason=f"none of {', '.join(browser.NAMES)} is installed"
)
GUIDES = [
    *("file_larger_than_memory", "ridge_path", "online_classifier", "kernel_cca", "gpu"),
    *("ten_million_columns", "cluster", "certificate", "when_not_to_sketch", "nonlinear_stream"),
    *("switching", "file_formats", "deployment"),
]
# Pages that are made of other files.
MADE = ["commands", *sorted(f"{path.parent.name}/{path.stem}" for path in DOCS.glob("commands/*"))]
MADE += sorted(f"{path.parent.name}/{path.stem}" for path in DOCS.glob("measured/*"))
PAGES = ["index", "start", "benchmarks", "gallery/index", "scale", "changelog", "xie2015", *MADE]
PAGES += ["generated/sksketch.StreamingPCA", *(f"guides/{name}" for name in GUIDES)]
# Nobody reads to the end of a longer page; the changelog and a class are lists to look things up.
TALLEST, TALL = 8000, {"changelog", "generated/sksketch.StreamingPCA"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"),
            *("-d", str(folder / "doctrees"), str(DOCS), str(folder / "html")),
        ],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder / "html"


class Page(HTMLParser):
    """The names on a page, and what it refers to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.names |= {value for key in ("id", "name") if (value := found.get(key))}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in ("script", "img", "iframe") and found.get("src"):
            self.loaded.append(found["src"])
        if tag == "link" and found.get("rel") == "stylesheet":
            self.loaded.append(found["href"])


@pytest.fixture(scope="module")
def pages(site):
    paths = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    return {path: Page(path) for path in paths}


def test_every_page_is_there(site):
    for name in PAGES:
        assert (site / f"{name}.html").exists()
    assert len(list((site / "gallery").glob("plot_*.html"))) >= 8


def test_no_internal_link_is_broken(pages):
    broken = []
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = target in pages
            if not target.exists() or (
                known and parts.fragment and unquote(parts.fragment) not in pages[target].names
            ):
                broken.append(f"{path.name}: {link}")
    assert broken == []


def test_pages_load_nothing_from_elsewhere(pages):
    assert [s for page in pages.values() for s in page.loaded if urlsplit(s).netloc] == []


@pytest.fixture(scope="module")
def address(site):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(site))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with browser.Browser(PROGRAM, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@needs_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_render_and_fit_their_screen(address, window, width):
    for name in PAGES:
        window.open(f"{address}/{name}.html", width=width, height=900)
        # The theme says in the console which of its modes it is in.
        assert [text for text in window.problems if "[PST]" not in text] == [], name
        assert all(asked.startswith((address, "data:")) for asked in window.requests)
        assert window.evaluate("document.querySelector('h1').textContent.length > 3"), name
        assert window.evaluate("document.documentElement.scrollWidth") <= width, name
        height = window.evaluate("document.documentElement.scrollHeight")
        assert width < 1280 or height <= TALLEST or name in TALL, (name, height)
        empty = "[...document.images].filter(i => i.complete && !i.naturalWidth).length"
        assert window.evaluate(empty) == 0, name


@needs_browser
@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("ridge path", "ridge_path"),
        ("StreamingKernelCCA", "StreamingKernelCCA"),
        ("outlier", "rows_that_do_not_fit"),
        ("standardize", "messy_tables"),
        ("missing", "messy_tables"),
        ("s3", "file_formats"),
        ("feather", "file_formats"),
        ("scree", "plot_spectrum"),
    ],
)
def test_search_finds_pages(address, window, words, page):
    window.open(f"{address}/search.html?q={words.replace(' ', '+')}", width=1280, height=900)
    links = "[...document.querySelectorAll('#search-results li a')].map(a => a.href).join(' ')"
    end = time.monotonic() + 30
    while page not in (found := window.evaluate(links)) and time.monotonic() < end:
        time.sleep(0.2)
    assert page in found
