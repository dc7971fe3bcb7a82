"""Printing: whatever a line quotes is shown, and nothing in it is obeyed by the terminal."""

from __future__ import annotations

import logging
import warnings

import click

from factaudit.text.printable import printable


def say(text: str = "", *, error: bool = False) -> None:
    """Print a line on standard output, or on standard error."""
    click.echo(printable(text), err=error)


def titled(title: str, text: str) -> None:
    """Print ``title: text`` with the title in bold."""
    click.echo(f"{click.style(printable(title), bold=True)}: {printable(text)}")


class _Printable(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


_format_warning = warnings.formatwarning


def tame_warnings() -> None:
    """Let warnings and log lines, too, show what they quote."""
    warnings.formatwarning = lambda *arguments, **options: printable(_format_warning(*arguments, **options))
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Printable())
