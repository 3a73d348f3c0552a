"""The command report: what is on the page, for every kind of file."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from sksketch import (
    FrequentDirections,
    GaussianSketch,
    StreamingPCA,
    StreamingRidge,
    StreamingRidgeCV,
    StreamingSVD,
    __version__,
    cli,
    fit_stream,
)
from sksketch.present.report import Source, render

GOLDEN = sorted((Path(__file__).parents[1] / "golden" / __version__).glob("*.sks"))
VOID = {"meta", "link", "line", "rect", "circle", "path", "polyline", "polygon"}


class Page(HTMLParser):
    """Checks that tags are closed in order, and collects identities, tags and text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.tags, self.text = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def text_of(page):
    return " ".join(" ".join(Page(page).text).split())


def rendered(model, names=None):
    return render(model, Source("model.sks", 1234), names)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    return rng.normal(size=(200, 12)) * np.geomspace(8, 0.5, 12)


def small_sketch():
    return FrequentDirections(4, solver="exact")


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_saved_file_has_a_page(path, tmp_path, capsys):
    pages = [tmp_path / "a.html", tmp_path / "b.html"]
    for page in pages:
        assert cli.main(["report", str(path), "-o", str(page)]) == 0
    out, err = capsys.readouterr()
    assert str(pages[0]) in out
    assert err == ""
    assert pages[0].read_bytes() == pages[1].read_bytes()
    page = Page(text := pages[0].read_text(encoding="utf-8"))
    assert len(page.ids) == len(set(page.ids))
    assert {"script", "img", "iframe"}.isdisjoint(page.tags)
    assert not re.search(r"https?:|//[a-z]|url\(|@import", text)
    assert not re.search(r"\bnan\b|\binf\b", text)
    assert not list(tmp_path.glob(".*"))


def test_the_page_of_a_pca_shows_what_it_certifies_and_its_loadings(rows):
    names = [f"column <{i}> & co" for i in range(12)]
    model = StreamingPCA(3, sketch=small_sketch()).fit(rows)
    page = rendered(model, names)
    text = text_of(page)
    assert "Principal components" in text
    assert "StreamingPCA: 200 rows of 12 columns" in text
    assert "These statements are certain" in text
    assert f"{model.certificate_.n_certain} directions are certainly real" in text
    assert model.plan_ in text
    largest = np.argmax(np.abs(model.components_[0]))
    assert names[largest] in text
    assert "<0>" not in page
    assert page.count("<h3>Component ") == 3
    assert page.count('class="interval" x=') == 3


def test_a_random_sketch_says_that_nothing_is_certified(rows):
    text = text_of(page := rendered(GaussianSketch(6).update(rows)))
    assert "Nothing is certified" in text
    assert "certified interval" not in text
    assert 'class="interval" x=' not in page


def test_a_bound_that_says_nothing_is_called_so(rows):
    y = rows[:, 0]
    model = StreamingRidge(0.0, sketch=FrequentDirections(2, correction="none", solver="exact"))
    assert "No bound on the error of these coefficients" in text_of(rendered(model.fit(rows, y)))
    flat = np.random.default_rng(0).normal(size=(300, 60))
    weak = FrequentDirections(3, solver="exact").update(flat)
    assert "No direction is certainly real" in text_of(rendered(weak))
    vague = StreamingRidge(1.0, sketch=FrequentDirections(3, correction="none", solver="exact"))
    assert "can be anything" in text_of(rendered(vague.fit(flat, flat[:, 0])))


def test_the_page_of_a_ridge_shows_coefficients_and_their_path(rows):
    y = np.stack([rows @ np.arange(12.0), rows[:, 0]], axis=1)
    names = [f"c{i}" for i in range(12)]
    model = StreamingRidge(300.0, sketch=small_sketch()).fit(rows, y)
    text = text_of(page := rendered(model, names))
    assert "off by at most" in text
    assert "Target 2" in text
    assert page.count('class="chart small"') == 6
    # One bar for each of 13 penalties in every panel.
    panel = page[page.index('aria-labelledby="path-0-0') :]
    assert panel[: panel.index("</svg>")].count('class="whisker') == 13
    exact = text_of(rendered(StreamingRidge(1.0).fit(rows, y[:, 0])))
    assert "exact coefficients" in exact
    refined = StreamingRidge(1.0, sketch=small_sketch(), refine=2).fit(rows, y[:, 0])
    assert "have refined these coefficients" in text_of(rendered(refined))


def test_a_chosen_penalty_comes_with_its_scores(rows, tmp_path, capsys):
    model = StreamingRidgeCV([1.0, 10.0, 100.0], sketch=small_sketch()).fit(rows, rows[:, 0])
    text = text_of(rendered(model))
    assert "Scores of the penalties" in text
    assert f"chosen: {model.alpha_:g}" in text
    model.save(path := tmp_path / "cv.sks")
    assert cli.main(["info", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["alpha"] == model.alpha_


def test_odd_models_have_a_page(rows):
    assert "seen no rows yet" in text_of(rendered(FrequentDirections(4)))
    assert "All rows are equal" in text_of(rendered(StreamingPCA(2).fit(np.ones((5, 3)))))
    one = text_of(
        rendered(StreamingPCA(1).fit(rows), ["größe 温度", "x" * 5000, *map(str, range(10))])
    )
    assert "größe 温度" in one
    assert "x" * 100 not in one
    wide = np.random.default_rng(0).normal(size=(20, 100_000))
    page = rendered(StreamingSVD(2, sketch="rfd", sketch_size=4).fit(wide))
    assert "The 10 largest of 100,000 columns" in page
    assert len(page) < 100_000
    nothing = StreamingRidge(0.0).fit(rows, np.zeros(len(rows)))
    Page(rendered(nothing))


def test_a_checkpoint_is_reported_as_an_unfinished_run(rows, tmp_path, capsys):
    path = tmp_path / "run.checkpoint"

    def blocks():
        yield rows[:100]
        yield rows[100:]
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="broke"):
        fit_stream(StreamingPCA(2), blocks(), checkpoint=path, every=100, progress=False)
    assert cli.main(["report", str(path), "-o", str(tmp_path / "r.html"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert record["kind"] == "streaming-pca"
    assert record["bytes"] == len(page.encode())
    assert "an unfinished run" in page


def test_where_the_page_goes(rows, tmp_path, capfd):
    model, page = str(tmp_path / "m.sks"), str(tmp_path / "r.html")
    StreamingPCA(2).fit(rows).save(model)
    assert cli.main(["report", model, "-o", page, "--quiet"]) == 0
    assert capfd.readouterr() == ("", "")
    assert cli.main(["report", model, "-o", "-"]) == 0
    assert capfd.readouterr().out == Path(page).read_text(encoding="utf-8")
    before = Path(model).read_bytes()
    for output in (model, str(tmp_path), str(tmp_path / "nowhere" / "r.html")):
        assert cli.main(["report", model, "-o", output]) == 2
        assert capfd.readouterr().err.count("\n") == 1
    assert Path(model).read_bytes() == before
    assert cli.main(["report", page, "-o", str(tmp_path / "x.html")]) == 2
    assert not (tmp_path / "x.html").exists()
