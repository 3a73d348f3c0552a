"""Settings of all tests: repeatable examples, and no time limits that a busy machine can break."""

import os

import pytest
from hypothesis import HealthCheck, settings

from sksketch.arrays import products
from sksketch.sketches import buffer
from sksketch.sketches.directions import gram_sums
from sksketch.sketches.windows import templates

_COMMON = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("default", max_examples=25, **_COMMON)
settings.register_profile("thorough", max_examples=400, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark scikit-learn's checks of further variants of an estimator slow: one runs by default."""
    first = {}
    for item in items:
        estimator = getattr(item, "callspec", None) and item.callspec.params.get("estimator")
        if estimator is not None and "contract" in item.name:
            place = item.path, type(estimator)
            if repr(first.setdefault(place, estimator)) != repr(estimator):
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="module")
def short_tiles():
    """Center rows in short tiles, and let few wait in windows, so that a few rows fill several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buffer, "TILE_ROWS", (256, 256))
        patch.setattr(gram_sums, "MOST_ROWS", 512)
        patch.setattr(products, "GROUP_ROWS", (512, 512))
        patch.setattr(templates, "FEWEST_BYTES", 0)
        yield
