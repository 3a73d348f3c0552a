"""The labels of a classifier, found by a look at the targets before it learns."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np

from sksketch._typing import Array
from sksketch.models.scikit_learn import is_classifier
from sksketch.streams import RowSource

# With more labels the targets are numbers to predict.
MOST_CLASSES = 1000


def classes_to_learn(model: object, rows: RowSource) -> Array | None:
    """Return the labels that ``partial_fit`` of a classifier wants to know; None for others.

    Rows that can be read only once are not looked at.
    """
    partial_fit = getattr(model, "partial_fit", None)
    if rows.reads_once or not rows.n_targets or not is_classifier(model) or partial_fit is None:
        return None
    return find_classes(rows) if "classes" in signature(partial_fit).parameters else None


def find_classes(rows: RowSource) -> Array:
    """Return the different targets of all rows, in order; only they are read where possible."""
    found: set[Any] = set()
    for targets in rows.targets():
        found.update(np.unique(targets).tolist())
        if len(found) > MOST_CLASSES:
            raise ValueError(
                f"there are more than {MOST_CLASSES:,} different labels; numbers are predicted by "
                "a regression"
            )
    labels = np.array(sorted(found))
    return labels if labels.dtype.kind != "U" else labels.astype(object)
