"""``NAME[:key=value,...]``: how one line names an evaluator or a language model with its options."""

from __future__ import annotations

import re

from factaudit.errors import UsageError

FORM = "NAME[:key=value,...]"
#: Options begin at the first colon that a ``key=`` follows: names have colons of their own (``llama3.1:8b``).
_OPTIONS = re.compile(r":\s*(?=[\w.]*\s*=)")


def parse_spec(spec: str, what: str = "evaluator") -> tuple[str, dict[str, str]]:
    """A name and its options; a value may hold ``:`` and ``=``, not a comma.

    Only ``evaluator=SPEC``, the evaluator inside another, may hold commas: it comes last and takes the rest of the
    text. Raises `UsageError`, of ``what``, where the text is of another form.

    >>> parse_spec("llama3.1:8b:base_url=http://localhost:11434/v1,params.seed=1")
    ('llama3.1:8b', {'base_url': 'http://localhost:11434/v1', 'params.seed': '1'})
    """
    name, *rest = (part.strip() for part in _OPTIONS.split(spec.strip(), maxsplit=1))
    options: dict[str, str] = {}
    left = rest[0] if rest else ""
    while left := left.lstrip(", "):
        part, _, after = left.partition(",")
        if part.strip().startswith("evaluator="):
            part, after = left, ""
        left = after
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{what} {spec!r}: expected {FORM}, found {part!r}")
        options[key.strip()] = value.strip()
    return name, options
