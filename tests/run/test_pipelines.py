"""Pipelines that learn while they stream: those of memory, in passes, resumed to the same bits."""

from __future__ import annotations

import random

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    StandardScaler,
)

from _support import messy
from sksketch import (
    OnlineNewtonClassifier,
    RandomFeatures,
    SourceError,
    StreamingPCA,
    StreamingRidge,
    TableEncoder,
    fit_dask,
    fit_stream,
    load,
    open_rows,
    save,
)
from sksketch.models.pipelines.plain_states import state_of
from sksketch.run.passes import all_passes
from sksketch.state.persistence import read_state, to_bytes

N_ROWS = 500
TABLE = messy.messy_table(N_ROWS, seed=3)
NUMBERS = TABLE.select(["voltage", "ratio", "small", "price"]).to_pandas().fillna(0.0)
X = NUMBERS.to_numpy()


class StoppedError(Exception):
    """Stands for whatever ends a run early."""


def stopper(n_rows):
    def stop(n_done, _n_rows):
        if n_done >= n_rows:
            raise StoppedError

    return stop


def rows_of(target=None, **options):
    options = {"raw": True, "batch_rows": 90} | options
    columns = [name for name in TABLE.column_names if name != target]
    return open_rows(TABLE, target=target, columns=columns, **options)


def encoder(**options):
    """Return one that makes few columns."""
    return TableEncoder(text="drop", max_categories=8, **options)


def bits(pipeline):
    return to_bytes(state_of(pipeline))


def signless(rows):
    return np.abs(np.asarray(rows))


def without(name):
    return TABLE.drop([name])


def test_components_of_a_table_are_those_of_memory():
    pipeline = make_pipeline(TableEncoder(), StreamingPCA(5, sketch="exact"))
    fit_stream(pipeline, rows_of(), progress=False)
    expected = PCA(5, svd_solver="full").fit(messy.expected(TABLE))
    pca = pipeline[-1]
    assert pca.n_samples_seen_ == N_ROWS
    np.testing.assert_allclose(pca.explained_variance_, expected.explained_variance_, rtol=1e-8)
    wanted = expected.transform(messy.expected(TABLE))
    np.testing.assert_allclose(signless(pipeline.transform(TABLE)), signless(wanted), atol=1e-8)


def test_predictions_for_a_table_are_those_of_memory():
    pipeline = make_pipeline(TableEncoder(), StreamingRidge(2.0))
    fit_stream(pipeline, rows_of("price"), progress=False)
    rows, y = messy.expected(without("price")), TABLE["price"].to_numpy()
    wanted = Ridge(2.0).fit(rows, y).predict(rows)
    np.testing.assert_allclose(pipeline.predict(without("price")), wanted, rtol=1e-8)


def test_classes_with_names_are_found():
    pipeline = make_pipeline(TableEncoder(), OnlineNewtonClassifier())
    fit_stream(pipeline, rows_of("churn"), progress=False)
    assert pipeline.classes_.tolist() == ["no", "yes"]
    assert pipeline.score(without("churn"), TABLE["churn"].to_numpy()) > 0.75


PIPELINES = {
    "scaler": lambda: make_pipeline(StandardScaler(), StreamingPCA(3)),
    "two scalers": lambda: make_pipeline(MinMaxScaler(), StandardScaler(), StreamingPCA(3)),
    "stateless": lambda: make_pipeline(Normalizer(), StandardScaler(), "passthrough", pca()),
    "union": lambda: make_pipeline(
        FeatureUnion([("plain", FunctionTransformer()), ("scaled", StandardScaler())]), pca()
    ),
    "chain in a union": lambda: make_pipeline(
        FeatureUnion(
            [
                ("twice", make_pipeline(MinMaxScaler(), StandardScaler())),
                ("once", StandardScaler()),
            ]
        ),
        StandardScaler(),
        pca(),
    ),
    "nested": lambda: make_pipeline(make_pipeline(StandardScaler(), Normalizer()), pca()),
}


def pca():
    return StreamingPCA(3)


@pytest.mark.parametrize("name", PIPELINES)
def test_steps_of_scikit_learn_as_in_memory(name):
    found = fit_stream(PIPELINES[name](), open_rows(X, batch_rows=90), progress=False)
    wanted = PIPELINES[name]().fit(X)
    np.testing.assert_allclose(
        signless(found.transform(X)), signless(wanted.transform(X)), atol=1e-9
    )
    np.testing.assert_allclose(
        found[-1].explained_variance_, wanted[-1].explained_variance_, rtol=1e-9
    )


def by_columns():
    return make_pipeline(
        make_column_transformer(
            (StandardScaler(), ["voltage", "ratio"]),
            (TableEncoder(), ["city", "seen_at"]),
            (make_pipeline(TableEncoder(numeric="passthrough"), MinMaxScaler()), ["count", "tier"]),
            ("passthrough", ["small"]),
            remainder="drop",
        ),
        StreamingPCA(4),
    )


def test_columns_of_their_own_as_in_memory():
    whole = TABLE.to_pandas().assign(
        voltage=NUMBERS["voltage"].to_numpy(), ratio=NUMBERS["ratio"].to_numpy()
    )
    source = open_rows(whole, raw=True, batch_rows=90)
    found = fit_stream(by_columns(), source, progress=False)
    wanted = by_columns().fit(whole)
    assert isinstance(found[0], ColumnTransformer)
    np.testing.assert_allclose(
        signless(found.transform(whole)), signless(wanted.transform(whole)), atol=1e-9
    )
    assert found[0].get_feature_names_out().tolist() == wanted[0].get_feature_names_out().tolist()


def test_frozen_and_fitted_steps_stay_as_they_are():
    frozen = FrozenEstimator(StandardScaler().fit(X[:50]))
    fitted = PowerTransformer(method="yeo-johnson").fit(X[:, :3])
    for step, rows in ((frozen, X), (fitted, X[:, :3])):
        before = step.transform(rows)
        found = fit_stream(make_pipeline(step, StreamingPCA(2)), rows, progress=False)
        np.testing.assert_array_equal(step.transform(rows), before)
        np.testing.assert_allclose(found[-1].mean_, before.mean(axis=0), atol=1e-12)


def test_a_second_run_forgets_the_first():
    pipeline = make_pipeline(StandardScaler(), StreamingPCA(2))
    fit_stream(pipeline, 5.0 * X + 3.0, progress=False)
    fit_stream(pipeline, X, progress=False)
    expected = fit_stream(make_pipeline(StandardScaler(), StreamingPCA(2)), X, progress=False)
    assert bits(pipeline) == bits(expected)


def test_random_features_behind_an_encoder():
    def pipeline():
        features = RandomFeatures(n_random_features=32)
        return make_pipeline(TableEncoder(text="drop"), features, OnlineNewtonClassifier())

    found = fit_stream(pipeline(), rows_of("churn"), progress=False)
    other = fit_stream(pipeline(), rows_of("churn", batch_rows=37), progress=False)
    assert bits(found) == bits(other)
    rows = TableEncoder(text="drop").fit(without("churn")).transform(without("churn"))
    expected = RandomFeatures(n_random_features=32).fit(rows[: RandomFeatures.settling_rows])
    np.testing.assert_array_equal(found[1].transform(rows[:5]), expected.transform(rows[:5]))
    assert found.score(without("churn"), TABLE["churn"].to_numpy()) > 0.7


def test_progress_covers_all_passes():
    seen = []
    pipeline = make_pipeline(MinMaxScaler(), StandardScaler(), StreamingPCA(2))
    fit_stream(
        pipeline,
        open_rows(X, batch_rows=90),
        progress=lambda *counts: seen.append(counts),
        n_passes=1,
    )
    done = [n for n, _ in seen]
    assert {total for _, total in seen} == {3 * N_ROWS}
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, 3 * N_ROWS)


@pytest.mark.parametrize("pilot", [1, 130, 10_000])
def test_a_pilot_makes_it_one_pass(pilot):
    def blocks():
        for start in range(0, N_ROWS, 70):
            yield X[start : start + 70]

    seen = []
    pipeline = make_pipeline(MinMaxScaler(), StandardScaler(), StreamingPCA(2))
    fit_stream(pipeline, blocks(), pilot=pilot, progress=lambda n, _: seen.append(n))
    assert seen[-1] == N_ROWS
    first = X[:pilot]
    early = MinMaxScaler().fit(first)
    late = StandardScaler().fit(early.transform(first))
    rows = late.transform(early.transform(X))
    np.testing.assert_allclose(pipeline[-1].mean_, rows.mean(axis=0), rtol=1e-9, atol=1e-9)
    assert pipeline[-1].n_samples_seen_ == N_ROWS


def test_a_pilot_of_a_table_that_is_read_once():
    blocks = (TABLE[start : start + 60] for start in range(0, N_ROWS, 60))
    pipeline = make_pipeline(encoder(), StreamingPCA(3))
    fit_stream(pipeline, open_rows(blocks, raw=True), pilot=200, progress=False)
    assert pipeline[0].n_samples_seen_ == 200
    assert pipeline[1].n_samples_seen_ == N_ROWS
    alone = encoder().fit(TABLE[:200])
    assert bits(pipeline[0]) == bits(alone)


def test_rows_that_are_read_once_are_not_read_twice():
    blocks = (X[start : start + 60] for start in range(0, N_ROWS, 60))
    with pytest.raises(SourceError, match=r"reads the rows 2 times.*pilot"):
        fit_stream(make_pipeline(StandardScaler(), StreamingPCA(2)), blocks, progress=False)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (VarianceThreshold(), "'variancethreshold' .*learns from all rows at once"),
        (FeatureUnion([("bad", PCA(2))]), "'bad' .*learns from all rows at once"),
        (make_column_transformer((PCA(1), [0])), "'pca' .*learns from all rows at once"),
    ],
)
def test_steps_that_cannot_stream_are_refused(step, message):
    with pytest.raises(ValueError, match=message):
        fit_stream(make_pipeline(step, StreamingPCA(1)), X, progress=False)
    with pytest.raises(ValueError, match="pilot is 0"):
        fit_stream(make_pipeline(StandardScaler(), StreamingPCA(1)), X, pilot=0)
    with pytest.raises(TypeError, match="PCA has no partial_fit"):
        fit_stream(make_pipeline(StandardScaler(), PCA(1)), X)


RUNS = {
    "table": (
        lambda: make_pipeline(encoder(), StandardScaler(with_mean=False), StreamingPCA(4)),
        {},
    ),
    "pilot": (lambda: make_pipeline(encoder(), StreamingPCA(4)), {"pilot": 170}),
    "features": (
        lambda: make_pipeline(
            encoder(),
            StandardScaler(),
            RandomFeatures(n_random_features=16),
            StreamingPCA(2),
        ),
        {},
    ),
}


@pytest.fixture
def short_tiles(monkeypatch):
    """Let steps of scikit-learn learn from few rows at a time, so that a pass can be stopped."""
    monkeypatch.setattr(all_passes, "TILE_ROWS", 32)


@pytest.mark.usefixtures("short_tiles")
@pytest.mark.parametrize("name", RUNS)
def test_killed_anywhere_it_resumes_to_the_same_bits(name, tmp_path):
    make, options = RUNS[name]
    expected = bits(fit_stream(make(), rows_of(), progress=False, **options))
    n_all = N_ROWS * (1 if "pilot" in options else 3)
    chance = random.Random(name)
    path = tmp_path / "run.checkpoint"
    places = sorted(chance.sample(range(1, n_all), 20))
    for place in places:
        with pytest.raises(StoppedError):
            fit_stream(
                make(), rows_of(), checkpoint=path, every=50, progress=stopper(place), **options
            )
        assert read_state(path).meta["rows_done"] >= place
    resumed = fit_stream(make(), rows_of(), checkpoint=path, progress=False, **options)
    assert bits(resumed) == expected


@pytest.mark.usefixtures("short_tiles")
@pytest.mark.parametrize("place", [40, 490, 501, 760, 999, 1001])
def test_resumed_once_from_any_pass(place, tmp_path):
    make, _ = RUNS["table"]
    path = tmp_path / "run.checkpoint"
    with pytest.raises(StoppedError):
        fit_stream(make(), rows_of(), checkpoint=path, every=10, progress=stopper(place))
    seen = []
    resumed = fit_stream(
        make(), rows_of(), checkpoint=path, progress=lambda n, total: seen.append((n, total))
    )
    assert seen[0][0] >= place
    assert seen[-1] == (3 * N_ROWS, 3 * N_ROWS)
    assert bits(resumed) == bits(fit_stream(make(), rows_of(), progress=False))


def test_a_checkpoint_of_another_pipeline_is_refused(tmp_path):
    path = tmp_path / "run.checkpoint"
    start = make_pipeline(encoder(), StreamingPCA(2))
    fit_stream(start, rows_of(), checkpoint=path, progress=False)
    other = make_pipeline(encoder().set_params(max_categories=3), StreamingPCA(2))
    with pytest.raises(ValueError, match="max_categories was 8 and is 3"):
        fit_stream(other, rows_of(), checkpoint=path, progress=False)
    same = make_pipeline(encoder(), StreamingPCA(2))
    with pytest.raises(ValueError, match="pilot was None and is 10"):
        fit_stream(same, rows_of(), checkpoint=path, progress=False, pilot=10)


def test_saved_pipelines_come_back(tmp_path):
    path = tmp_path / "pipeline.sks"
    encoded = fit_stream(
        make_pipeline(encoder(), StandardScaler(with_mean=False), StreamingPCA(4)),
        rows_of(),
        progress=False,
    )
    frozen = make_pipeline(FrozenEstimator(StandardScaler().fit(X)), "passthrough", Normalizer())
    frozen.steps.append(("model", StreamingRidge().fit(frozen.transform(X), X[:, 0])))
    for pipeline, rows, method in ((encoded, TABLE, "transform"), (frozen, X, "predict")):
        save(pipeline, path)
        loaded = load(path)
        assert [name for name, _ in loaded.steps] == [name for name, _ in pipeline.steps]
        np.testing.assert_array_equal(
            getattr(loaded, method)(rows), getattr(pipeline, method)(rows)
        )
        save(loaded, path)
        assert bits(load(path)) == bits(pipeline)
    with pytest.raises(TypeError, match="PowerTransformer cannot be saved as plain data"):
        save(make_pipeline(PowerTransformer().fit(X), StreamingPCA(1).fit(X)), path)


def test_dask_gives_the_same_pipeline():
    dd = pytest.importorskip("dask.dataframe")
    frame = messy.as_frame(TABLE.drop(["nothing", "birthday", "price"]))
    parts = dd.from_pandas(frame, npartitions=4)
    y = dd.from_pandas(TABLE["price"].to_pandas(), npartitions=4)
    found = fit_dask(make_pipeline(encoder(), StreamingRidge(2.0)), parts, y)
    wanted = make_pipeline(encoder(), StreamingRidge(2.0)).fit(frame, TABLE["price"].to_numpy())
    assert found[0].columns_ == wanted[0].columns_
    np.testing.assert_allclose(found.predict(frame), wanted.predict(frame), rtol=1e-9)
