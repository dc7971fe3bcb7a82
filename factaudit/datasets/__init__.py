"""Readers of published data sets: a module each makes our tables of a format, and ``formats.yaml``
says which formats there are."""

from factaudit.datasets.conversion import FORMATS, Conversion, check_conversion_options, convert

__all__ = ["FORMATS", "Conversion", "check_conversion_options", "convert"]
