"""The command line: a file per family of verbs, put together in `factaudit.cli.app`."""

from factaudit.cli.app import cli, main

__all__ = ["cli", "main"]
