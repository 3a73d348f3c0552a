"""Findings of models and sketches, as the numbers that pictures, tables and reports show."""

from sksketch.present.findings.kernel_and_reduction import PLAIN, plain_findings
from sksketch.present.findings.moments import inference_of, named, record_of
from sksketch.present.findings.plain import PlainFindings
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
    "inference_of",
    "largest_columns",
    "named",
    "plain_findings",
    "quality_of",
    "quality_text",
    "record_of",
]
