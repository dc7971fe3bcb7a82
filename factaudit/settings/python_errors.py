"""Rewords errors for users of Python: messages name arguments in place of the command line's
options."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import ParamSpec, TypeVar

from factaudit.errors import FactauditError, InputError

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")

#: Key in the ``meta`` of a click context: this is factaudit's command line.
COMMAND_LINE_KEY = "factaudit.command_line"


def translate_error_text_to_python(text: str) -> str:
    """A message with arguments in place of the command line's options. Inside a command it stays as
    it is.

    >>> translate_error_text_to_python(
    ...     "no claims in it: say --claim COLUMN, or name the file that has them"
    ... )
    'no claims in it: say claim="COLUMN", or name the file that has them'
    """
    click = sys.modules.get("click")
    context = None if click is None else click.get_current_context(silent=True)
    if context is not None and context.find_root().meta.get(COMMAND_LINE_KEY):
        return text
    parts = re.split(r"(`factaudit [^`]*`)", text)  # a whole command stays as it is
    for at in range(0, len(parts), 2):
        part = re.sub(r"--evaluator COLUMN", 'evaluators=["COLUMN"]', parts[at])
        part = re.sub(r"--option (\w+)=([^\s,;)]+)", r'\1="\2"', part)
        part = re.sub(r"--(people|ignore|high-is-error) ([\w.]+)", r"mapping={'\1': ['\2']}", part)
        part = re.sub(
            r"--(columns|labels|scale|threshold) ([^\s;)=]+=[^\s;)]*[^\s;),])",
            _format_mapping,
            part,
        )
        part = re.sub(r"--([a-z-]+) ([\w.\[\]]+)", _format_argument, part)
        parts[at] = re.sub(r"(?<![\w-])--([a-z-]+)", lambda found: found[1].replace("-", "_"), part)
    return "".join(parts)


def _format_argument(option: re.Match[str]) -> str:
    """``--claim COLUMN`` as ``claim="COLUMN"``."""
    value = option[2] if option[2].isdecimal() else f'"{option[2]}"'
    return f"{option[1].replace('-', '_')}={value}"


def _format_mapping(option: re.Match[str]) -> str:
    """``--labels good=1,bad=0`` as ``mapping={"labels": {"good": 1, "bad": 0}}``; a scale ``1:5``
    as ``[1, 5]``."""
    pairs = []
    for pair in option[2].split(","):
        name, _, value = pair.partition("=")
        if ":" in value:
            value = f"[{value.replace(':', ', ')}]"
        elif not re.fullmatch(r"-?[\d.]+", value):
            value = f'"{value}"'
        pairs.append(f'"{name}": {value}')
    return f'mapping={{"{option[1]}": {{{", ".join(pairs)}}}}}'


def raise_python_errors(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Decorate a function of the Python API, so that its errors say what Python users can do
    (`translate_error_text_to_python`)."""

    @functools.wraps(function)
    def with_python_errors(*positional: Arguments.args, **named: Arguments.kwargs) -> Returned:
        try:
            return function(*positional, **named)
        except InputError as error:
            error.problems = [
                replace(one, message=translate_error_text_to_python(one.message))
                for one in error.problems
            ]
            raise
        except FactauditError as error:
            error.args = (translate_error_text_to_python(str(error)),)
            raise

    return with_python_errors
