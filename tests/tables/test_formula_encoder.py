"""Rows by a formula, over blocks, against formulaic on the whole table."""

import json

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from sksketch import StreamingRidge, cli, fit_stream, load, save
from sksketch.tables import FormulaEncoder

formulaic = pytest.importorskip("formulaic", reason="formulaic is not installed: extra formula")
pd = pytest.importorskip("pandas")

FORMULAS = [
    "temp",
    "temp + C(city) + temp:weekend",
    "temp * city",
    "C(hour) + log(temp)",
    "city - 1",
    "city:temp",
    "C(city) * C(hour) + exp(temp / 10)",
]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "temp": rng.uniform(1.0, 9.0, 300),
            "weekend": rng.integers(0, 2, 300),
            "city": rng.choice(["Oslo", "Bern", "Rome"], 300),
            "hour": rng.integers(0, 4, 300),
            "kwh": rng.standard_normal(300),
        }
    )
    # Levels that come late.
    return pd.concat([frame[frame.city == "Rome"], frame[frame.city != "Rome"]])


@pytest.mark.parametrize("formula", FORMULAS)
def test_blocks_give_the_matrix_of_the_whole_table(table, formula):
    encoder = FormulaEncoder(formula)
    for start in range(0, 300, 40):
        encoder.partial_fit(table[start : start + 40])
    functions = {"log": np.log, "exp": np.exp}
    whole = formulaic.Formula(formula).get_model_matrix(table, context=functions)
    whole = whole.drop(columns=["Intercept"], errors="ignore")
    assert list(encoder.get_feature_names_out()) == list(whole.columns)
    found = np.vstack([encoder.transform(table[i : i + 70]) for i in range(0, 300, 70)])
    np.testing.assert_allclose(found, whole.to_numpy(dtype=float), rtol=1e-14)
    assert encoder.has_intercept_ == ("- 1" not in formula)
    left, right = FormulaEncoder(formula).fit(table[:120]), FormulaEncoder(formula).fit(table[120:])
    np.testing.assert_array_equal(left.merge(right).transform(table), encoder.transform(table))


def test_a_pipeline_streams_and_is_saved(table, tmp_path):
    pipeline = make_pipeline(FormulaEncoder("temp + C(city)"), StreamingRidge(alpha=0.0))
    fit_stream(pipeline, (table.drop(columns="kwh"), table.kwh.to_numpy()), progress=False)
    save(pipeline, tmp_path / "model.sks")
    again = load(tmp_path / "model.sks")
    np.testing.assert_array_equal(again.predict(table), pipeline.predict(table))
    assert again[0].levels_ == {"city": ["Bern", "Oslo", "Rome"]}
    assert again[0].columns_["city"].text == "3 levels, reference Bern"


def test_the_command(table, tmp_path, capfd):
    path, model = tmp_path / "rows.csv", tmp_path / "model.sks"
    table.to_csv(path, index=False)
    words = ["ridge", path, "--formula", "kwh ~ temp + C(city)", "--alpha", 0, "--inference"]
    assert cli.main([*map(str, words), "--json", "-o", str(model)]) == 0
    found = json.loads(capfd.readouterr().out)["inference"]
    assert found["names"] == ["(intercept)", "temp", "C(city)[T.Oslo]", "C(city)[T.Rome]"]
    dummies = [table.city == "Oslo", table.city == "Rome"]
    design = np.column_stack([np.ones(300), table.temp, *dummies]).astype(float)
    expected = np.linalg.lstsq(design, table.kwh, rcond=None)[0]
    np.testing.assert_allclose(found["coefficient"], expected, rtol=1e-9)
    assert cli.main(["apply", str(model), str(path), "-o", str(tmp_path / "out.csv")]) == 0


@pytest.mark.parametrize(
    "formula",
    [
        "kwh ~ __import__('os').system('true')",
        "kwh ~ center(temp)",
        "kwh ~ temp.__class__",
        "kwh ~ (lambda: 1)()",
        "kwh ~ C(city, contr.helmert)",
        "kwh ~ +++",
        "a ~ b | c",
    ],
)
def test_a_formula_runs_no_code(table, formula):
    with pytest.raises(ValueError, match="the formula"):
        FormulaEncoder(formula).fit(table)


def test_refusals(table):
    with pytest.raises(ValueError, match="the formula names 'wind'"):
        FormulaEncoder("wind").fit(table)
    encoder = FormulaEncoder("C(city)").fit(table[:5])
    with pytest.raises(ValueError, match="which was not there"):
        encoder.transform(table)
    with pytest.raises(ValueError, match="has no value in row 0"):
        FormulaEncoder("temp").fit(table.assign(temp=np.nan))
    with pytest.raises(ValueError, match="not finite"):
        FormulaEncoder("log(temp)").fit(table).transform(table.assign(temp=0.0))
