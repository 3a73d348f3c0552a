"""scikit-learn's private names: this fails when a release renames one of them."""

from __future__ import annotations

import inspect

import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import SGDRegressor
from sklearn.utils.metadata_routing import get_routing_for_object

from sksketch import StreamingPCA
from sksketch.models import scikit_learn
from sksketch.models.base import forget

has_callbacks = pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9), reason="no callbacks yet"
)
ROWS = [[1.0, 2.0], [3.0, 5.0], [4.0, 9.0]]


class Listener:
    """A callback that looks at the estimator while it is fitted."""

    def __init__(self):
        self.seen = {}

    def setup(self, estimator, context):
        self.seen["setup"] = set(vars(estimator))

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        self.seen["begin"] = set(vars(estimator))

    def on_fit_task_end(self, estimator, context):
        pass


@has_callbacks
def test_callbacks_are_kept_where_they_are_looked_for():
    listener = Listener()
    model = StreamingPCA(1).set_callbacks(listener)
    assert vars(model)[scikit_learn.CALLBACKS] == [listener]
    model.fit(ROWS)
    assert {scikit_learn.TEARDOWN, scikit_learn.FIT_TASK} <= listener.seen["begin"]
    assert {scikit_learn.TEARDOWN, scikit_learn.FIT_TASK}.isdisjoint(vars(model))
    assert scikit_learn.CALLBACKS.startswith(scikit_learn.SETTINGS)


@has_callbacks
def test_the_task_of_a_fit_begins_as_it_is_called():
    from sklearn.callback import CallbackSupportMixin

    begin = getattr(CallbackSupportMixin, scikit_learn.BEGIN_FIT)
    assert list(inspect.signature(begin).parameters)[:2] == ["self", "task_name"]
    assert "max_subtasks" in inspect.signature(begin).parameters
    source = inspect.getsource(begin)
    assert any(f"_parent{rest}" in source for rest in ("_callback_ctx", ""))


def test_output_is_read_where_set_output_writes():
    model = StreamingPCA(1)
    assert scikit_learn.output_of(model) == "default"
    model.set_output(transform="pandas")
    assert scikit_learn.OUTPUT in vars(model)
    assert scikit_learn.output_of(model) == "pandas"
    assert scikit_learn.output_of(clone(model)) == "pandas"


def test_settings_survive_a_fresh_start():
    model = SGDRegressor()
    before = set(vars(model))
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_fit_request(sample_weight=True)
        settings = set(vars(model)) - before
        assert settings
        assert all(name.startswith(scikit_learn.SETTINGS) for name in settings)
        model.fit(ROWS, [1.0, 2.0, 3.0])
        forget(model)
        assert not hasattr(model, "coef_")
        assert get_routing_for_object(model).fit.requests["sample_weight"] is True
