"""Findings of models and sketches, as the numbers that pictures, tables and reports show."""

from sksketch.present.findings.kernel_and_reduction import PLAIN, PlainFindings, plain_findings
from sksketch.present.findings.progressive import ONLINE, OnlineFindings, largest_columns
from sksketch.present.findings.rated import quality_of, quality_text
from sksketch.present.findings.sketched import CoefficientPath, Estimates, Findings

__all__ = [
    "ONLINE",
    "PLAIN",
    "CoefficientPath",
    "Estimates",
    "Findings",
    "OnlineFindings",
    "PlainFindings",
    "largest_columns",
    "plain_findings",
    "quality_of",
    "quality_text",
]
