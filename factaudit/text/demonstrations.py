"""Demonstrations of decomposing: sentences with their atomic facts, as prompts show them to a
model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from factaudit.errors import InputError, Problem
from factaudit.files import check_no_pipe, parse_json_file_text

#: A file of demonstrations in the original's format, for those who have it.
DEMONSTRATIONS_PATH_VARIABLE = "FACTSCORE_DEMONS_PATH"


def read_fact_demonstrations(path: str | Path | None = None) -> Mapping[str, Sequence[str]]:
    """Read a JSON object {sentence: [fact, ...]}: ``path``, else ``FACTSCORE_DEMONS_PATH``, else
    our own.

    Raises `InputError` where the file is missing or of another form.
    """
    named = path or os.environ.get(DEMONSTRATIONS_PATH_VARIABLE)
    source = Path(named) if named else files("factaudit.text") / "demonstrations.json"
    check_no_pipe(str(source))
    try:
        found = parse_json_file_text(source.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            str(source), [Problem(f"not a readable file of demonstrations ({error})")]
        ) from None
    if (
        not isinstance(found, dict)
        or not found
        or not all(
            key.strip()
            and isinstance(facts, list)
            and facts
            and all(isinstance(fact, str) for fact in facts)
            for key, facts in found.items()
        )
    ):
        raise InputError(
            str(source), [Problem("expected an object of sentences, each with a list of facts")]
        )
    return found
