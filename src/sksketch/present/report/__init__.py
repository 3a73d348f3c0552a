"""One page about a saved model: no scripts, nothing to fetch."""

from sksketch.present.report.page import Source, render

__all__ = ["Source", "render"]
