"""Reads ``NAME[:key=value,...]``, which names an evaluator or a language model with its options in
one line."""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from typing import Any

from factaudit.errors import UsageError, suggest_near_name_in_error

SPEC_FORM = "NAME[:key=value,...]"
#: Options begin at the first colon before a ``key=``, because names may contain colons, too
#: (``llama3.1:8b``).
_OPTIONS_START = re.compile(r":\s*(?=[\w.]*\s*=)")
_MODULE_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def parse_spec_string(spec: str, spec_kind: str = "evaluator") -> tuple[str, dict[str, str]]:
    """A name and its options. A value may contain ``:`` and ``=``, but no comma.

    Only ``evaluator=SPEC``, the evaluator inside another one, may contain commas: it comes last and
    takes the rest of the text. Raises `UsageError` with ``spec_kind`` if the text has another form.

    >>> parse_spec_string("llama3.1:8b:base_url=http://localhost:11434/v1,params.seed=1")
    ('llama3.1:8b', {'base_url': 'http://localhost:11434/v1', 'params.seed': '1'})
    """
    name, *rest = (part.strip() for part in _OPTIONS_START.split(spec.strip(), maxsplit=1))
    options: dict[str, str] = {}
    left = rest[0] if rest else ""
    while left := left.lstrip(", "):
        part, _, after = left.partition(",")
        if part.strip().startswith("evaluator="):
            part, after = left, ""
        left = after
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{spec_kind} {spec!r}: expected {SPEC_FORM}, found {part!r}")
        options[key.strip()] = value.strip()
    return name, options


def import_object_of_spec_string(spec_kind: str, module: str, attribute: str) -> Any:
    """Import the object that ``MODULE:ATTRIBUTE`` names, also from the working directory. Raises
    `UsageError`."""
    if not _MODULE_NAME.fullmatch(module) or not attribute.isidentifier():
        raise UsageError(
            f"{spec_kind} {module}:{attribute}: expected MODULE:NAME, a module as Python imports it"
            " (here or installed) and a name in it"
        )
    # Unlike `python`, a console script does not search the working directory.
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    try:
        found = import_module(module)
    except Exception as error:  # the module's own code runs and may raise anything
        raise UsageError(
            f"{spec_kind} {module}:{attribute}: cannot import {module!r} ({error})"
        ) from error
    if not hasattr(found, attribute):
        near = suggest_near_name_in_error(
            attribute, [name for name in vars(found) if not name.startswith("_")]
        )
        raise UsageError(f"{spec_kind} {module}:{attribute}: {module!r} has no {attribute!r}{near}")
    return getattr(found, attribute)
