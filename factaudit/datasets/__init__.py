"""Readers of published data sets: one module each, which declares its format and makes our
tables."""

from importlib import import_module

from factaudit.datasets.conversion import FORMATS, Conversion, check_conversion_options, convert

__all__ = ["FORMATS", "Conversion", "check_conversion_options", "convert"]

#: The modules that declare formats, in the order in which these are listed.
_READERS = (
    *("aggrefact", "ragtruth", "tofueval", "lfqa", "wice", "merging_facts", "factscore_results"),
    *("safe_results", "veriscore_results", "alce_citations", "aggrefact_scores", "metric_columns"),
    *("reveal", "claimverify", "expertqa"),
)
for _name in _READERS:
    import_module(f"factaudit.datasets.{_name}")
