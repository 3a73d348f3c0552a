"""One row at a time, as River has it: names, order, refusals, and the answers of blocks."""

import numpy as np
import pytest

from sksketch import StreamingOutlierDetector, StreamingPCA, StreamingSVD, load

MAKERS = {
    "pca": lambda: StreamingPCA(2),
    "svd": lambda: StreamingSVD(2),
    "window": lambda: StreamingPCA(2, window=50),
    "detector": StreamingOutlierDetector,
}
NAMES = ["b", "a", "d", "c"]


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((300, 4)) * [1, 10, 1, 100] + 5.0


def scores(model, X):
    if isinstance(model, StreamingOutlierDetector):
        return -model.score_samples(X)
    return model.reconstruction_error(X)


@pytest.mark.parametrize("name", MAKERS)
def test_rows_by_name_are_rows_of_a_block(name, X, tmp_path):
    model = MAKERS[name]()
    assert model.score_one(dict(zip(NAMES, X[0], strict=True))) == 0.0
    for i, row in enumerate(X):
        named = list(zip(NAMES, row, strict=True))
        # In any order but for the first one.
        model.learn_one(dict(named if i % 2 == 0 else named[::-1]))
        if i == 100:
            model.save(tmp_path / "model.sks")
            model = load(tmp_path / "model.sks")
    whole = MAKERS[name]().partial_fit(X)
    found = [model.score_one(dict(zip(NAMES[::-1], row[::-1], strict=True))) for row in X[:9]]
    np.testing.assert_allclose(found, scores(whole, X[:9]), rtol=1e-9)
    assert list(model.feature_names_in_) == NAMES
    assert model.n_samples_seen_ == whole.n_samples_seen_
    for wrong in ({"a": 1.0}, dict.fromkeys([*NAMES, "e"], 1.0), dict.fromkeys("abce", 1.0)):
        with pytest.raises(ValueError, match=r"expected \['b', 'a', 'd', 'c'\]"):
            model.learn_one(wrong)
        with pytest.raises(ValueError, match="as in the first row"):
            model.score_one(wrong)
    with pytest.raises(ValueError, match="column 1 of the row is nan"):
        model.learn_one(dict(zip(NAMES, [1.0, np.nan, 2.0, 3.0], strict=True)))
    assert model.n_samples_seen_ == whole.n_samples_seen_


@pytest.mark.parametrize("name", MAKERS)
def test_names_of_a_frame_are_known(name, X):
    pd = pytest.importorskip("pandas")
    model = MAKERS[name]().fit(pd.DataFrame(X, columns=NAMES))
    by_name = model.score_one(dict(sorted(zip(NAMES, X[3], strict=True))))
    assert by_name == pytest.approx(model.score_one(X[3]))
    expected = scores(model, pd.DataFrame(X[3:4], columns=NAMES))[0]
    assert by_name == pytest.approx(expected)


@pytest.mark.parametrize("name", MAKERS)
def test_columns_without_names_are_numbered(name, X):
    model = MAKERS[name]().learn_one(dict(enumerate(X[0])))
    for row in X[1:]:
        model.learn_one(row)
    assert not hasattr(model, "feature_names_in_")
    numbered = dict(list(enumerate(X[7]))[::-1])
    assert model.score_one(numbered) == model.score_one(X[7])
    with pytest.raises(ValueError, match="X has 3 features"):
        model.learn_one(X[0, :3])
