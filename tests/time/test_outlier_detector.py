"""The detector: its scores beside a dense computation, its threshold, and laws of streams."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.covariance import EmpiricalCovariance
from sklearn.datasets import load_digits
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from sksketch import StreamingOutlierDetector, fit_stream, load
from sksketch.exceptions import NotMergeableError


def data(n=3000, d=6, seed=0, share=0.01):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 3, d) + 50.0
    y = rng.random(n) < share
    X[y] = 50.0 + 8.0 * (X[y] - 50.0)
    return X, y


def in_blocks(model, X, step=100, **named):
    for start in range(0, len(X), step):
        part = slice(start, start + step)
        model.partial_fit(X[part], **{key: value[part] for key, value in named.items()})
    return model


def test_scores_are_mahalanobis_distances_where_the_covariance_is_kept():
    X, _ = data()
    model = StreamingOutlierDetector().fit(X)
    exact = EmpiricalCovariance().fit(X).mahalanobis(X) * (len(X) - 1) / len(X)
    np.testing.assert_allclose(-model.score_samples(X), exact, rtol=1e-6)
    np.testing.assert_allclose(model.contributions(X).sum(axis=1), model.score_samples(X))
    np.testing.assert_array_equal(model.decision_function(X) < 0, model.predict(X) == -1)
    # Units do not matter.
    again = StreamingOutlierDetector().fit(X * 10.0 ** np.arange(6))
    np.testing.assert_allclose(
        again.score_samples(X * 10.0 ** np.arange(6)), model.score_samples(X), rtol=1e-6
    )


@pytest.mark.parametrize("contamination", [0.003, 0.01, 0.1, 0.5])
def test_the_threshold_flags_that_part_of_the_rows(contamination):
    X, _ = data()
    model = StreamingOutlierDetector(contamination=contamination).fit(X)
    assert abs((model.predict(X) == -1).mean() - contamination) <= 1 / len(X)
    assert model.offset_rank_error_ == 0.0
    streamed = in_blocks(StreamingOutlierDetector(contamination=contamination), X)
    assert abs((streamed.predict(X) == -1).mean() - contamination) <= 0.2 * contamination + 0.003


def test_the_columns_that_make_a_row_an_outlier():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 5))
    X[:, 1] = X[:, 0] + 0.1 * rng.standard_normal(2000)
    odd = np.zeros((1, 5))
    odd[0, 3] = 7.0
    model = StreamingOutlierDetector().fit(X)
    assert model.contributions(odd)[0].argmin() == 3
    # Usual numbers that do not go together.
    both = np.zeros((1, 5))
    both[0, :2] = [1.5, -1.5]
    assert set(model.contributions(both)[0].argsort()[:2].tolist()) == {0, 1}
    assert model.predict(both)[0] == -1


@pytest.mark.parametrize(
    "options",
    [{}, {"window": 900}, {"half_life": 300.0}, {"robust": True}, {"n_components": 2}],
    ids=str,
)
@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_and_saving_are_invisible(options, sparse, tmp_path):
    X, _ = data(2200)
    X = sp.csr_array(np.where(abs(X - 50.0) < 1.0, 0.0, X)) if sparse else X
    whole = StreamingOutlierDetector(**options).partial_fit(X)
    split = StreamingOutlierDetector(**options)
    for i, start in enumerate(range(0, 2200, 130)):
        split.partial_fit(X[start : start + 130])
        if i == 7:
            split.save(tmp_path / "model.sks")
            split = load(tmp_path / "model.sks")
            # Who looks changes nothing.
            split.predict(X[:10])
    assert whole.offset_ == split.offset_
    assert whole.n_flagged_ == split.n_flagged_
    np.testing.assert_array_equal(whole.score_samples(X), split.score_samples(X))
    np.testing.assert_array_equal(
        whole.offset_, fit_stream(StreamingOutlierDetector(**options), X, progress=False).offset_
    )


def test_merged_is_whole():
    X, _ = data(6000)
    parts = [in_blocks(StreamingOutlierDetector(), part) for part in np.split(X, [1000, 3500])]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    whole = in_blocks(StreamingOutlierDetector(), X)
    np.testing.assert_allclose(merged.score_samples(X), whole.score_samples(X), rtol=1e-7)
    assert merged.n_samples_seen_ == 6000
    assert abs((merged.predict(X) == -1).mean() - 0.01) < 0.004
    with pytest.raises(NotMergeableError, match="robust"):
        merged.merge(StreamingOutlierDetector(robust=True).fit(X))
    with pytest.raises(NotMergeableError, match="windows or half-lives"):
        merged.merge(StreamingOutlierDetector(window=100).fit(X))
    da = pytest.importorskip("dask.array")
    on_dask = StreamingOutlierDetector().fit(da.from_array(X, chunks=(900, -1)))
    np.testing.assert_allclose(on_dask.score_samples(X), whole.score_samples(X), rtol=1e-7)


def test_a_window_forgets_what_was_usual():
    rng = np.random.default_rng(0)
    before, after = rng.standard_normal((2, 6000, 4)) * [[[1.0]], [[5.0]]]
    for options in ({"window": 1500}, {"half_life": 500.0}):
        model = in_blocks(StreamingOutlierDetector(**options), before)
        assert (model.predict(after[:500]) == -1).mean() > 0.5
        in_blocks(model, after)
        assert (model.predict(after[-500:]) == -1).mean() < 0.05
    times = np.datetime64("2026-01-01") + np.arange(6000) * np.timedelta64(1, "m")
    model = StreamingOutlierDetector(window="1d")
    in_blocks(model, before, times=times)
    in_blocks(model, after, times=times + np.timedelta64(10, "D"))
    assert (model.predict(after[-500:]) == -1).mean() < 0.05
    assert model.n_samples_seen_ == pytest.approx(1440, abs=5)


def test_the_robust_option_does_not_learn_from_outliers():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8000, 4))
    bad = np.arange(3000, 8000, 20)
    X[bad, 0] = 30.0
    plain, robust = (
        in_blocks(StreamingOutlierDetector(contamination=0.05, robust=flag), X)
        for flag in (False, True)
    )
    probe = np.array([[6.0, 0.0, 0.0, 0.0]])
    assert robust.score_samples(probe)[0] < 3.0 * plain.score_samples(probe)[0]
    assert robust.n_samples_seen_ < 8000


def test_a_robust_window_of_time(tmp_path):
    X, _ = data(2200, share=0.05)
    times = np.datetime64("2026-01-01") + np.arange(2200) * np.timedelta64(1, "m")
    whole = StreamingOutlierDetector(window="10h", robust=True).partial_fit(X, times=times)
    assert 100 < whole.n_samples_seen_ <= 600
    split = StreamingOutlierDetector(window="10h", robust=True)
    for start in range(0, 2200, 130):
        part = slice(start, start + 130)
        split.partial_fit(X[part], times=times[part])
        split.save(tmp_path / "model.sks")
        split = load(tmp_path / "model.sks")
    assert split.n_flagged_ == whole.n_flagged_
    np.testing.assert_array_equal(whole.score_samples(X), split.score_samples(X))
    # Rows still wait to be scored: their times count as well.
    with pytest.raises(ValueError, match="give rows in order of time"):
        split.partial_fit(X[:5], times=times[2190:2195])
    with pytest.raises(NotMergeableError, match="in the order of their times"):
        split.merge(whole)
    by_number = StreamingOutlierDetector(window=36_000.0 / 60, robust=True)
    with pytest.raises(ValueError, match="window is"):
        by_number.fit(X)


def test_one_row_at_a_time():
    X, _ = data(600)
    model = StreamingOutlierDetector()
    assert model.score_one(dict(enumerate(X[0]))) == 0.0
    names = [f"x{i}" for i in range(6)]
    for row in X:
        model.learn_one(dict(zip(names, row, strict=True)))
    whole = StreamingOutlierDetector().partial_fit(X)
    shuffled = dict(zip(names[::-1], X[5][::-1], strict=True))
    assert model.score_one(shuffled) == -whole.score_samples(X[5:6])[0]
    with pytest.raises(ValueError, match="as in the first row"):
        model.learn_one({"other": 1.0})


def test_outliers_are_found_about_as_well_as_by_a_forest():
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    ours, forests = [], []
    for digit in range(10):
        few = rng.choice(np.flatnonzero(y == digit), 32, replace=False)
        rows = np.concatenate([np.flatnonzero(y != digit), few])
        truth = y[rows] == digit
        ours.append(
            roc_auc_score(truth, -StreamingOutlierDetector().fit(X[rows]).score_samples(X[rows]))
        )
        forest = IsolationForest(random_state=0, n_estimators=50).fit(X[rows])
        forests.append(roc_auc_score(truth, -forest.score_samples(X[rows])))
    assert np.mean(ours) > np.mean(forests) - 0.01


def test_wide_rows_are_sketched():
    rng = np.random.default_rng(0)
    d = 3100
    X = rng.standard_normal((700, 3)) @ rng.standard_normal((3, d))
    X += 0.1 * rng.standard_normal((700, d))
    X[5] += rng.standard_normal(d)
    model = StreamingOutlierDetector(n_components=3).fit(X)
    assert model.score_samples(X).argmin() == 5
    assert "FrequentDirections" in model.plan_


def test_names_that_first_come_late_do_not_make_the_threshold_of_a_stream():
    rng = np.random.default_rng(0)
    # The first row of a name is beyond all measure, by what is usual without it.
    names = np.minimum(rng.zipf(1.3, 8000), 80)
    X = np.column_stack([rng.standard_normal((8000, 3)), np.eye(81)[names]])
    model = in_blocks(StreamingOutlierDetector(), X, 500)
    assert 0.002 < (model.predict(X) < 0).mean() < 0.03
