"""Tags of scikit-learn that several estimators set alike."""

from __future__ import annotations

from sklearn.utils import Tags


def preserving_precision(tags: Tags) -> Tags:
    """Return the tags of a transformer whose columns have the precision of the rows."""
    assert tags.transformer_tags is not None
    tags.transformer_tags.preserves_dtype = ["float64", "float32"]
    return tags
