"""Weights of rows: from the importance of a line, or from an iterable, to `sample_weight`."""

import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from sksketch import (
    FrequentDirections,
    OnlineNewtonClassifier,
    OnlineNewtonRegressor,
    RandomFeatures,
    StreamingRidge,
    cli,
    fit_stream,
    load,
    metrics,
    open_rows,
)
from sksketch.cli.progressive import Progressive
from sksketch.run.workers import fit_workers
from sksketch.streams import Block, divide, files, reblock
from sksketch.streams.device import device_blocks

# The three lines of Vowpal Wabbit's tutorial.
HOUSES = """\
0 | price:.23 sqft:.25 age:.05 2006
1 2 'second_house | price:.18 sqft:.15 age:.35 1976
0 1 0.5 'third_house | price:.53 sqft:.32 age:.87 1924
"""


def vw_line(label, weight, row):
    entries = " ".join(f"{j}:{x!r}" for j, x in enumerate(row.tolist()))
    return f"{label!r} {weight!r} | {entries}"


@pytest.fixture
def weighted(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 8))
    y = np.sign(X @ rng.standard_normal(8))
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], 300)
    path = tmp_path / "rows.vw"
    rows = zip(y.tolist(), weights.tolist(), X, strict=True)
    path.write_text("\n".join(vw_line(*row) for row in rows))
    return path, sp.csr_array(X), y, weights


def blocks_with_weights(X, y, weights, rows):
    for start in range(0, len(y), rows):
        part = slice(start, start + rows)
        yield X[part], y[part], weights[part]


def test_the_houses_of_the_tutorial_are_learned_from(tmp_path):
    path = tmp_path / "houses.vw"
    path.write_text(HOUSES)
    with pytest.warns(UserWarning, match="houses.vw, line 3: the initial prediction is not used"):
        model = fit_stream(OnlineNewtonRegressor(), open_rows(path, n_features=64), progress=False)
    with pytest.warns(UserWarning, match="initial prediction"):
        (block,) = open_rows(path, n_features=64).blocks()
    assert block.sample_weight.tolist() == [1.0, 2.0, 1.0]
    given = OnlineNewtonRegressor().partial_fit(block.X, block.y, sample_weight=[1.0, 2.0, 1.0])
    assert model.n_samples_seen_ == 3
    np.testing.assert_array_equal(model.coef_, given.coef_)


def test_weights_of_lines_are_those_of_partial_fit_to_the_bit(weighted, monkeypatch):
    monkeypatch.setattr(files, "TEXT_BYTES", 1000)
    path, X, y, weights = weighted
    source = open_rows(path, n_features=8)
    assert sum(1 for _ in source.blocks()) > 3
    model = fit_stream(OnlineNewtonClassifier(), source, classes=[-1, 1], progress=False)
    given = OnlineNewtonClassifier().partial_fit(X, y, [-1, 1], weights)
    np.testing.assert_array_equal(model.coef_, given.coef_)
    once = OnlineNewtonClassifier().partial_fit(X, y, [-1, 1])
    assert not np.array_equal(model.coef_, once.coef_)


@pytest.mark.parametrize("batch_rows", [None, 7])
def test_iterables_bring_weights(weighted, batch_rows):
    _, X, y, weights = weighted
    dense = X.toarray()
    rows = blocks_with_weights(dense, y, weights, 40)
    model = fit_stream(StreamingRidge(), open_rows(rows, batch_rows=batch_rows), progress=False)
    given = StreamingRidge().partial_fit(dense, y, weights)
    np.testing.assert_allclose(model.coef_, given.coef_, rtol=1e-12)
    sketch = fit_stream(FrequentDirections(4), [Block(dense, None, weights)], progress=False)
    same = FrequentDirections(4).update(dense, weights)
    np.testing.assert_array_equal(sketch.summary().components, same.summary().components)


def test_a_run_resumes_in_the_middle_of_weighted_rows(weighted, tmp_path):
    path, X, y, weights = weighted
    source = open_rows(path, n_features=8, batch_rows=50)

    def stop(done, _):
        if done >= 150:
            raise KeyboardInterrupt

    checkpoint = tmp_path / "run.sks"
    options = {"checkpoint": checkpoint, "classes": [-1, 1], "every": 50}
    with pytest.raises(KeyboardInterrupt):
        fit_stream(OnlineNewtonClassifier(), source, **options, progress=stop)
    done = []
    model = fit_stream(
        OnlineNewtonClassifier(), source, **options, progress=lambda n, _: done.append(n)
    )
    assert done[0] == 150
    given = OnlineNewtonClassifier().partial_fit(X, y, [-1, 1], weights)
    np.testing.assert_array_equal(model.coef_, given.coef_)


def test_dropped_and_skipped_rows_take_their_weights_along(tmp_path):
    lines = ["1 2 | 0:1", "| 0:2", "-1 3 | 0:3", "1 | 0:4", "-1 4 | 0:5"]
    path = tmp_path / "rows.vw"
    path.write_text("\n".join(lines))
    source = open_rows(path, n_features=2, missing="drop", batch_rows=9)
    for start_row, expected in ((0, [2.0, 3.0, 1.0, 4.0]), (2, [1.0, 4.0])):
        (block,) = source.blocks(start_row)
        assert block.sample_weight.tolist() == expected
    (block,) = open_rows(path, n_features=2, missing="drop", batch_rows=9).between(0, 3).blocks()
    assert block.sample_weight.tolist() == [2.0, 3.0]


@pytest.mark.slow
def test_workers_learn_with_weights(weighted, tmp_path):
    path, X, y, weights = weighted
    lines = path.read_text().splitlines()
    for k in range(2):
        (tmp_path / f"part{k}.vw").write_text("\n".join(lines[150 * k : 150 * (k + 1)]))
    source = open_rows(str(tmp_path / "part*.vw"), n_features=8)
    parts = divide(source, {"n_features": 8})
    model = fit_workers(StreamingRidge(), source, parts, 1, progress=False)
    given = StreamingRidge().partial_fit(X, y, weights)
    np.testing.assert_allclose(model.coef_, given.coef_, rtol=1e-9)


def test_what_takes_no_weights_says_so_unless_all_are_one(weighted):
    _, X, y, weights = weighted
    dense = X.toarray()
    first = f"{weights[weights != 1][0]:g}"
    words = f"a row of weight {first}, and RandomFeatures takes no sample_weight"
    with pytest.raises(ValueError, match=words):
        fit_stream(RandomFeatures(), [(dense, y, weights)], progress=False)
    fit_stream(RandomFeatures(), [(dense, y, np.ones(300))], progress=False)
    summary = FrequentDirections(4).update(dense).summary()
    with pytest.raises(ValueError, match="the exact error takes no sample_weight"):
        metrics.spectral_error([(dense, y, weights)], summary)


def test_blocks_carry_weights_beside_the_pair():
    blocks = [
        Block(np.ones((2, 1)), None, np.array([2.0, 3.0])),
        Block(np.ones((2, 1))),
        Block(np.ones((1, 1)), None, np.array([4.0])),
    ]
    found = [block.sample_weight for block in reblock(blocks, 3)]
    assert [part.tolist() for part in found] == [[2.0, 3.0, 1.0], [1.0, 4.0]]
    again = pickle.loads(pickle.dumps(blocks[0]))
    assert again.sample_weight.tolist() == [2.0, 3.0]
    X, y = again
    assert X.shape == (2, 1)
    assert y is None
    with pytest.raises(ValueError, match=r"2 rows came with weights of shape \(1,\)"):
        open_rows([(np.ones((2, 1)), None, [1.0])])


def test_weights_travel_to_a_device():
    pytest.importorskip("torch")
    weights = np.array([2.0, 3.0])
    blocks = [Block(np.ones((2, 1)), None, weights), Block(np.ones((1, 1)))]
    (block,) = device_blocks(iter(blocks), "cpu")
    assert block.sample_weight.tolist() == [2.0, 3.0, 1.0]
    (block,) = device_blocks(iter([Block(sp.csr_array(np.ones((2, 1))), None, weights)]), "cpu")
    assert block.sample_weight.tolist() == [2.0, 3.0]


def test_the_command_learns_with_weights_and_prints_the_mean_of_weighted_losses(
    weighted, tmp_path, capsys
):
    path, X, y, weights = weighted
    out = tmp_path / "model.sks"
    assert cli.main(["online", str(path), "--n-features", "8", "-o", str(out), "--json"]) == 0
    model = load(out)
    given = type(model)(**model.get_params()).partial_fit(X, y, [-1, 1], weights)
    np.testing.assert_array_equal(model.coef_, given.coef_)
    last = json.loads(capsys.readouterr().out)["table"][-1]
    assert last["loss"] == pytest.approx(given.cumulative_loss_ / weights.sum())


def test_marks_written_before_there_were_weights_count_every_row_once(weighted):
    _, X, y, _ = weighted
    run = Progressive(OnlineNewtonClassifier()).partial_fit(X, y, [-1, 1])
    state = run.state()
    marks = [mark[:4] for mark in json.loads(state.meta["table"])]
    older = type(state)(
        state.kind, state.version, {**state.meta, "table": json.dumps(marks)}, state.arrays
    )
    assert Progressive.from_state(older).table() == run.table()
