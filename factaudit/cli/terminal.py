"""How is text printed safely? Quoted text cannot control the terminal, and keys are left out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click

from factaudit.text.display_text import escape_control_characters, mask_secrets_in_text

#: Whether lines go to standard error, because standard output is for a JSON document.
_lines_go_to_stderr = False


@contextmanager
def redirect_lines_to_stderr(is_redirected: bool) -> Iterator[None]:
    """If ``is_redirected``, print lines on standard error inside the block, from any thread."""
    global _lines_go_to_stderr
    before, _lines_go_to_stderr = _lines_go_to_stderr, is_redirected
    try:
        yield
    finally:
        _lines_go_to_stderr = before


def format_terminal_text(text: str) -> str:
    """The text without control characters that a terminal would obey, and without keys and
    passwords."""
    return escape_control_characters(mask_secrets_in_text(text))


#: The attribute of an exception that holds the exit code of the command.
EXIT_CODE_KEY = "factaudit_exit_code"


@contextmanager
def exit_command_with_two_on_errors() -> Iterator[None]:
    """Any error inside the block ends the command with exit code 2, because its exit code 1 has
    another meaning."""
    try:
        yield
    except Exception as error:
        setattr(error, EXIT_CODE_KEY, 2)
        raise


def print_terminal_traceback() -> None:
    """Print the current exception with its traceback on standard error."""
    import traceback

    print_line(traceback.format_exc().rstrip(), error=True)


def print_line(text: str = "", *, error: bool = False) -> None:
    """Print a line on standard output, or on standard error."""
    click.echo(format_terminal_text(text), err=error or _lines_go_to_stderr)


_original_warning_format = warnings.formatwarning


def escape_control_characters_in_warnings() -> None:
    """Escape control characters in warnings and log lines, too."""
    warnings.formatwarning = lambda *arguments, **options: format_terminal_text(
        _original_warning_format(*arguments, **options)
    )
    import logging

    class PrintableLogFormatter(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return format_terminal_text(super().format(record))

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(PrintableLogFormatter())
