"""Standard errors from the command line: text, JSON and report."""

import json

import numpy as np
import pytest

from sksketch import StreamingCCA, StreamingGLM, StreamingPLS, StreamingRidge, cli


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = X @ [1.0, -2.0] + 0.5 + rng.standard_normal(200)
    path = tmp_path / "rows.csv"
    lines = [f"{t:.17g},{a:.17g},{b:.17g}" for t, (a, b) in zip(y, X, strict=True)]
    path.write_text("\n".join(["kwh,temp,wind", *lines]))
    return X, y, path


@pytest.fixture
def run(capfd):
    def call(*words):
        assert cli.main([str(word) for word in words]) == 0
        return capfd.readouterr().out

    return call


def test_ridge_prints_the_table(table, tmp_path, run):
    X, y, path = table
    options = ("--target", "kwh", "--alpha", 0, "--inference", "-o", tmp_path / "m.sks")
    text = run("ridge", path, *options)
    assert "Least squares, classical standard errors" in text
    assert any(line.startswith("temp ") for line in text.splitlines())
    found = json.loads(run("ridge", path, *options, "--json"))["inference"]
    expected = StreamingRidge(alpha=0.0).fit(X, y).inference()
    assert found["names"] == ["(intercept)", "temp", "wind"]
    np.testing.assert_allclose(found["coefficient"], expected.coef, rtol=1e-14)
    np.testing.assert_allclose(found["standard_error"], expected.standard_error, rtol=1e-14)
    assert found["df_resid"] == 197
    page = tmp_path / "page.html"
    run("report", tmp_path / "m.sks", "-o", page)
    assert "Coefficients with standard errors" in page.read_text()


def test_coefficients_of_raw_tables_are_in_their_units(tmp_path, run):
    rng = np.random.default_rng(0)
    city, price = rng.choice(["Bern", "Rome", "Zug"], 300, p=[0.2, 0.5, 0.3]), rng.random(300)
    y = 2.0 * (city == "Zug") + 5.0 * price + rng.standard_normal(300)
    path = tmp_path / "raw.csv"
    lines = [f"{c},{p:.17g},{t:.17g}" for c, p, t in zip(city, price, y, strict=True)]
    path.write_text("\n".join(["city,price,kwh", *lines]))
    options = ("--target", "kwh", "--alpha", 0, "--inference", "-o", tmp_path / "m.sks")
    assert "'Rome' is the reference" in run("ridge", path, *options)
    found = json.loads(run("ridge", path, *options, "--json"))["inference"]
    assert found["names"] == ["(intercept)", "city=Zug", "city=Bern", "price"]
    X = np.column_stack([city == "Zug", city == "Bern", price]).astype(float)
    expected = StreamingRidge(alpha=0.0).fit(X, y).inference()
    np.testing.assert_allclose(found["coefficient"], expected.coef, rtol=1e-12)
    np.testing.assert_allclose(found["standard_error"], expected.standard_error, rtol=1e-12)


def test_a_chosen_penalty_is_refused(table, tmp_path, capfd):
    words = ["ridge", table[2], "--target", "kwh", "--alpha", "auto", "--inference"]
    assert cli.main([*map(str, words), "-o", str(tmp_path / "m.sks")]) == 2
    assert "--alpha 0" in capfd.readouterr().err


def test_files_of_moments_have_facts_and_a_page(table, tmp_path, run):
    X, y, _ = table
    models = {
        "cca": StreamingCCA(1).fit(X, X + y[:, None]),
        "pls": StreamingPLS(1).fit(X, X + y[:, None]),
        "glm": StreamingGLM().fit(X, y > 0),
    }
    words = {"cca": "correlation", "pls": "singular value", "glm": "null deviance"}
    for name, model in models.items():
        path, page = tmp_path / f"{name}.sks", tmp_path / f"{name}.html"
        model.save(path)
        assert words[name] in run("info", path)
        assert json.loads(run("info", path, "--json"))["kind"] == model.kind
        run("report", path, "-o", page)
        assert "What it is" in page.read_text()
