"""Converters: published data sets and logs as claims (and verdicts), one module per upstream format."""

from factaudit.datasets.conversion import check_conversion_options, convert
from factaudit.datasets.formats import FORMATS

__all__ = ["FORMATS", "check_conversion_options", "convert"]
