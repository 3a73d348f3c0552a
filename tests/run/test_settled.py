"""Pipelines of random features and an online learner: one pass, resumed to the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PowerTransformer

from sksketch import (
    OnlineNewtonClassifier,
    RandomFeatures,
    fit_stream,
    open_rows,
)
from sksketch.run.passes.settled import TILE_ROWS

N_ROWS = 5_000


@pytest.fixture(scope="module")
def moons():
    return make_moons(N_ROWS, noise=0.15, random_state=0)


def pipeline(**options):
    features = RandomFeatures(n_random_features=64, **options)
    return make_pipeline(features, OnlineNewtonClassifier())


def stream(model, moons, batch_rows=None, **options):
    source = open_rows(moons[0], target=moons[1], batch_rows=batch_rows)
    options = {"progress": False} | options
    return fit_stream(model, source, classes=[0, 1], **options)


def test_it_learns_what_no_line_can_tell(moons):
    model = stream(pipeline(), moons)
    plain = stream(OnlineNewtonClassifier(), moons)
    assert model[-1].n_samples_seen_ == N_ROWS
    assert model[-1].online_error_ < 0.5 * plain.online_error_
    fresh = make_moons(1_000, noise=0.15, random_state=1)
    assert model.score(*fresh) > 0.95


def test_the_features_are_those_of_the_first_rows(moons):
    model = stream(pipeline(), moons)
    assert RandomFeatures.settling_rows < N_ROWS
    expected = RandomFeatures(n_random_features=64).fit(moons[0][: RandomFeatures.settling_rows])
    assert model[0].bandwidth_ == expected.bandwidth_
    np.testing.assert_array_equal(model[0].transform(moons[0]), expected.transform(moons[0]))


@pytest.mark.parametrize("options", [{}, {"landmarks": 40}])
@pytest.mark.parametrize("batch_rows", [None, 37, 700, 4_999])
def test_how_rows_are_cut_changes_no_bit(moons, batch_rows, options):
    whole = stream(pipeline(**options), moons)
    other = stream(pipeline(**options), moons, batch_rows)
    np.testing.assert_array_equal(other[-1].coef_, whole[-1].coef_)


@pytest.mark.parametrize("every", [1, 700])
@pytest.mark.parametrize("stop_at", [1, 1_500, 2_100, 4_500])
def test_an_interrupted_run_resumes_to_the_same_bits(moons, tmp_path, stop_at, every):
    def stop(done, _):
        if done >= stop_at:
            raise KeyboardInterrupt

    run = {"checkpoint": tmp_path / "run.sks", "every": every}
    with pytest.raises(KeyboardInterrupt):
        stream(pipeline(), moons, 300, **run, progress=stop)
    reported = []
    resumed = pipeline()
    stream(resumed, moons, 450, **run, progress=lambda done, _: reported.append(done))
    assert 0 < reported[0] < N_ROWS
    assert reported[0] % TILE_ROWS == 0
    whole = stream(pipeline(), moons)
    np.testing.assert_array_equal(resumed[-1].coef_, whole[-1].coef_)
    np.testing.assert_array_equal(resumed.predict(moons[0]), whole.predict(moons[0]))


def test_several_passes_resume_as_well(moons, tmp_path):
    def stop(done, _):
        if done >= N_ROWS + 1_000:
            raise KeyboardInterrupt

    run = {"checkpoint": tmp_path / "run.sks", "n_passes": 2, "every": 100}
    with pytest.raises(KeyboardInterrupt):
        stream(pipeline(), moons, **run, progress=stop)
    resumed = stream(pipeline(), moons, **run)
    whole = stream(pipeline(), moons, n_passes=2)
    assert resumed[-1].n_samples_seen_ == 2 * N_ROWS
    np.testing.assert_array_equal(resumed[-1].coef_, whole[-1].coef_)


def test_a_second_run_forgets_the_first(moons):
    model = stream(pipeline(), moons)
    scaled = moons[0] * 10, moons[1]
    again = stream(model, scaled)
    np.testing.assert_array_equal(again[-1].coef_, stream(pipeline(), scaled)[-1].coef_)


def test_steps_before_the_features_are_applied_to_their_first_rows(moons):
    double = make_pipeline(
        FunctionTransformer(lambda rows: 2.0 * rows),
        RandomFeatures(n_random_features=64),
        OnlineNewtonClassifier(),
    )
    stream(double, moons)
    by_hand = stream(pipeline(), (2.0 * moons[0], moons[1]))
    np.testing.assert_array_equal(double[-1].coef_, by_hand[-1].coef_)


def test_steps_that_learn_from_all_rows_at_once_are_refused(moons):
    with pytest.raises(ValueError, match="learns from all rows at once.*with partial_fit"):
        stream(make_pipeline(PowerTransformer(), OnlineNewtonClassifier()), moons)


def test_a_stream_shorter_than_the_first_rows(moons):
    X, y = moons[0][:300], moons[1][:300]
    model = stream(pipeline(), (X, y), 50)
    assert model[0].bandwidth_ == RandomFeatures().fit(X).bandwidth_
    assert model[-1].n_samples_seen_ == 300
