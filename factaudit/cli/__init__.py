"""How is the command line built? A file for each family of verbs, put together in
`factaudit.cli.app`."""

from factaudit.cli.app import cli, main

__all__ = ["cli", "main"]
