"""How good a model predicts, on the rows learned from and on those kept apart."""

from __future__ import annotations

from typing import Any

Numbers = dict[str, float]


def quality_of(model: Any) -> dict[str, Numbers]:
    """Return the numbers of each set of rows that a model has been rated on."""
    found = {
        "training": getattr(model, "training_quality_", None),
        "holdout": getattr(model, "holdout_quality_", None),
    }
    return {name: numbers for name, numbers in found.items() if numbers}


def quality_text(name: str, numbers: Numbers) -> str:
    """Return numbers in words, with the constant beside the model.

    >>> quality_text("holdout", {"rows": 9, "r2": 0.5, "rmse": 1.0, "baseline_rmse": 2.0})
    'R2 0.5000, RMSE 1 (the mean: 2), 9 rows kept apart'
    """
    rows = f"{numbers['rows']:,} rows {'kept apart' if name == 'holdout' else 'learned from'}"
    if "rmse" in numbers:
        constant = f"the mean: {numbers['baseline_rmse']:.5g}"
        return f"R2 {numbers['r2']:.4f}, RMSE {numbers['rmse']:.5g} ({constant}), {rows}"
    text = f"accuracy {numbers['accuracy']:.2%}"
    text += f" (the commonest label: {numbers['baseline_accuracy']:.2%})"
    if "log_loss" in numbers:
        constant = f"a constant: {numbers['baseline_log_loss']:.4f}"
        text += f", log loss {numbers['log_loss']:.4f} ({constant})"
    return f"{text}, {rows}"
