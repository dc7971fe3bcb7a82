"""Which demonstrations does a prompt show a model that splits sentences? Sentences with their
atomic facts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from factaudit.errors import InputError, Problem
from factaudit.files import check_no_pipe

#: A file of demonstrations in the original's format, for those who have it.
DEMONSTRATIONS_PATH_VARIABLE = "FACTSCORE_DEMONS_PATH"
_Sentence = Annotated[str, Field(pattern=r"\S")]
_Facts = Annotated[list[str], Field(min_length=1)]
_DEMONSTRATIONS = TypeAdapter(Annotated[dict[_Sentence, _Facts], Field(min_length=1)])


def read_fact_demonstrations(path: str | Path | None = None) -> Mapping[str, Sequence[str]]:
    """Read a JSON object {sentence: [fact, ...]}: ``path``, else ``FACTSCORE_DEMONS_PATH``, else
    our own.

    Raises `InputError` where the file is missing or of another form.
    """
    named = path or os.environ.get(DEMONSTRATIONS_PATH_VARIABLE)
    source = Path(named) if named else files("factaudit.text") / "demonstrations.json"
    check_no_pipe(str(source))
    try:
        return _DEMONSTRATIONS.validate_json(source.read_bytes())
    except (OSError, ValueError) as error:
        message = f"not a readable file of demonstrations ({error})"
        if isinstance(error, ValidationError):
            message = "expected an object of sentences, each with a list of facts"
        raise InputError(str(source), [Problem(message)]) from None
