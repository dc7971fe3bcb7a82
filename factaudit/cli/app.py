"""How does the command ``factaudit`` end? With 0 if it succeeded, 1 if the work failed and 2 if it
was called wrongly; tracebacks are shown only with ``--debug``.

A *family* is a module in this folder with a tuple ``COMMANDS``; a new command also needs a place in
`_SECTIONS`. Families import what they need inside their verbs, so that ``factaudit --help`` loads
nothing but the command line.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Sequence
from io import StringIO
from typing import Any

import click

from factaudit.cli import (
    audit,
    convert,
    diff,
    estimate,
    export,
    factscore,
    inspect,
    judge,
    knowledge,
    listing,
    perturb,
    run,
    sample,
    triage,
    view,
)
from factaudit.cli.options import CommandGroup
from factaudit.cli.terminal import (
    EXIT_CODE_KEY,
    escape_control_characters_in_warnings,
    print_line,
    print_terminal_traceback,
)
from factaudit.errors import FactauditError, UsageError
from factaudit.settings.python_errors import COMMAND_LINE_KEY
from factaudit.version import __version__

#: The headings of the help and the commands under each of them, in order.
_SECTIONS = {
    "Audit": (run, inspect, perturb, judge, audit, view, diff),
    "Label": (sample, estimate, triage),
    "Import and export": (export, convert, listing),
    "Metrics": (factscore, knowledge),
}


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="factaudit")
@click.option("--debug", is_flag=True, help="Show the full traceback if something fails.")
def cli(debug: bool) -> None:
    """Find out what a factuality metric can be used for.

    \b
    Start here:
      factaudit run demo
      factaudit audit claims.jsonl verdicts.parquet --out runs/mine
    """
    escape_control_characters_in_warnings()
    click.get_current_context().meta[COMMAND_LINE_KEY] = True


for _heading, _families in _SECTIONS.items():
    cli.add_section(_heading, [command for family in _families for command in family.COMMANDS])


class _Terminated(KeyboardInterrupt):
    """SIGTERM ends a command as Ctrl-C does."""

    number = signal.SIGTERM


def _raise_terminated(signal_number: int, frame: Any) -> None:
    raise _Terminated


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script. It never returns: it exits with 0, 1 or 2, or with 130 or 143 after a
    signal."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    # Importing libraries makes no garbage. With Python's own threshold, looking for garbage takes a
    # twelfth of a run.
    gc.set_threshold(100_000, 50, 100)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _raise_terminated)
    try:
        # Without standalone mode, click returns the exit code of --help and --version, and the
        # return value of a command, which is None.
        sys.exit(cli.main(arguments, prog_name="factaudit", standalone_mode=False) or 0)
    except click.ClickException as error:
        message = StringIO()
        error.show(message)
        print_line(message.getvalue().rstrip(), error=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt) as error:
        print_line(
            "\nstopped; everything done so far is kept: run the same command again to continue",
            error=True,
        )
        # A shell reports the signal that ended a command in this way. click wraps the exceptions
        # that it catches.
        sys.exit(128 + getattr(error.__cause__ or error, "number", signal.SIGINT))
    except BrokenPipeError:
        # The reader of our output has closed it (`| head`), so nothing more may be written, not
        # even flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if "--debug" in arguments:
            print_terminal_traceback()
        else:
            print_line(f"factaudit: {_format_cli_error(error)}", error=True)
        sys.exit(getattr(error, EXIT_CODE_KEY, 2 if isinstance(error, UsageError) else 1))


def _format_cli_error(error: Exception) -> str:
    if isinstance(error, FactauditError):
        # Name files in the working folder as the user typed them.
        return str(error).replace(os.path.join(os.getcwd(), ""), "")
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error}"
    if isinstance(error, MemoryError):
        return (
            "there is not enough memory: use fewer claims or evaluators at a time, or a machine"
            " with more memory"
        )
    bug = "This is a bug in factaudit: please report it, with what `factaudit --debug ...` prints."
    return f"{type(error).__name__}: {error}\n{bug}"
