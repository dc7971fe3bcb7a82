"""Printing: what a line quotes is shown, nothing in it is obeyed by the terminal, and keys are left out."""

from __future__ import annotations

import logging
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click

from factaudit.text.printable import printable, without_secrets

#: Whether lines go to standard error, because standard output is for a JSON document.
_aside = False


@contextmanager
def lines_aside(aside: bool) -> Iterator[None]:
    """Where ``aside``, print lines on standard error inside the block, from any thread."""
    global _aside
    before, _aside = _aside, aside
    try:
        yield
    finally:
        _aside = before


def shown(text: str) -> str:
    """The text without what a terminal would obey, and without keys and passwords."""
    return printable(without_secrets(text))


def say_traceback() -> None:
    """Print the exception under way on standard error."""
    say(traceback.format_exc().rstrip(), error=True)


def say(text: str = "", *, error: bool = False) -> None:
    """Print a line on standard output, or on standard error."""
    click.echo(shown(text), err=error or _aside)


def titled(title: str, text: str) -> None:
    """Print ``title: text`` with the title in bold."""
    click.echo(f"{click.style(shown(title), bold=True)}: {shown(text)}", err=_aside)


class _Printable(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return shown(super().format(record))


_format_warning = warnings.formatwarning


def tame_warnings() -> None:
    """Let warnings and log lines, too, show what they quote."""
    warnings.formatwarning = lambda *arguments, **options: shown(_format_warning(*arguments, **options))
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Printable())
