"""Errors of the Python API: they name arguments where those of the command line name options."""

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

#: In a click context's ``meta``: the command line is ours.
COMMAND_LINE_KEY = "factaudit.command_line"
#: Options of the command line in messages, and what a Python user says in their place.
_PYTHON_WORDS = (
    (r"--(label|claim|doc|system|dataset) ([\w.\[\]]+)", r'\1="\2"'),
    (r"--evaluator COLUMN", 'evaluators=["COLUMN"]'),
    (
        r"--(people|ignore|high-is-error) ([\w.]+)",
        lambda found: f'mapping={{"{found[1].replace("-", "_")}": ["{found[2]}"]}}',
    ),
    (r"--columns (\w+)=(\w+)", r'mapping={"columns": {"\1": "\2"}}'),
    (r"--labels WORD=1,WORD=0", 'mapping={"labels": {"WORD": 1, "WORD": 0}}'),
    (r"--scale ([^=,;]+)=LOW:HIGH", r'mapping={"scale": {"\1": [LOW, HIGH]}}'),
    (r"--scale ([^=,;]+)=1:0", r'mapping={"scale": {"\1": [1, 0]}}'),
    (r"--label-rule (\w+)", r'label_rules=["\1"]'),
    (r"--option (\w+)=([^\s)]+)", r'\1="\2"'),
    (r"--level (\w+)", r'level="\1"'),
    (r"--pair OLD=NEW", 'pairs={"OLD": "NEW"}'),
    (r"--replicates 0", "replicates=0"),
    (r"--(sheet|threshold) ", r"mapping \1 "),
    (r"--set data=FOLDER", 'settings={"data": "FOLDER"}'),
    (r"--set ([\w.]+)", r'settings["\1"]'),
    (r"--fail-on\b", "fail_on"),
    (r"--warn-on\b", "warn_on"),
    (r"(?<![\w-])--([a-z]+)-?([a-z]*)\b", lambda found: "_".join(filter(None, found.groups()))),
)


def translate_error_text_to_python(text: str) -> str:
    """A message that names options of the command line, as it names arguments; within a command it stays.

    >>> translate_error_text_to_python("no claims in it: say --claim COLUMN, or name the file that has them")
    'no claims in it: say claim="COLUMN", or name the file that has them'
    """
    if _is_within_our_command():
        return text
    parts = re.split(r"(`factaudit [^`]*`)", text)  # a whole command stays one
    for at in range(0, len(parts), 2):
        for pattern, words in _PYTHON_WORDS:
            parts[at] = re.sub(pattern, words, parts[at])
    return "".join(parts)


def raise_python_errors(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Let errors of a function of the Python API say what Python users can do: `translate_error_text_to_python`."""

    @functools.wraps(function)
    def with_python_errors(*positional: Arguments.args, **named: Arguments.kwargs) -> Returned:
        try:
            return function(*positional, **named)
        except InputError as error:
            error.problems = [
                replace(one, message=translate_error_text_to_python(one.message)) for one in error.problems
            ]
            raise
        except FactauditError as error:
            error.args = (translate_error_text_to_python(str(error)),)
            raise

    return with_python_errors


def _is_within_our_command() -> bool:
    click = sys.modules.get("click")
    context = None if click is None else click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().meta.get(COMMAND_LINE_KEY))
