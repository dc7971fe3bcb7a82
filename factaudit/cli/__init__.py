"""How is the command line built? One file for each family of verbs; `factaudit.cli.app` puts them
together."""

from factaudit.cli.app import cli, main

__all__ = ["cli", "main"]
