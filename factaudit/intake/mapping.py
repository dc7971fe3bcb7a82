"""What a user's columns and words mean, as checked data."""

from __future__ import annotations

from collections.abc import Mapping as Map
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from factaudit.errors import UsageError, hint
from factaudit.intake.words import COLUMN_NAMES
from factaudit.tables import CLAIM_COLUMNS, VERDICT_COLUMNS
from factaudit.yamlfile import plain_yaml


class Wide(BaseModel):
    """One evaluator of a table in the wide form: the columns that hold what it said of the row's claim.

    ``scale``: the score's values for *not supported at all* and for *fully supported* (``[1, 5]``; ``[1, 0]`` where the
    column tells of hallucination). ``threshold``: on that scale; support strictly beyond it is prediction 1; by
    default the middle.
    """

    model_config = ConfigDict(extra="forbid")

    score: str | None = None
    prediction: str | None = None
    scale: tuple[float, float] | None = None
    threshold: float | None = None


class Mapping(BaseModel):
    """How tables become claims and verdicts.

    auto: what is not said here is proposed from the tables (`factaudit.intake.profile.propose`) and told. columns:
    column of ours (`factaudit.tables.CLAIM_COLUMNS`, or of verdicts in the long form) to theirs, or to several of which
    a file has one. constants: column of ours to a value for all rows (``dataset: mine``). labels: words to 1, 0 or
    null; words: the same for one column of theirs. label_threshold: labels are grades, those above are 1. evaluators:
    the evaluators of a wide table by name. wide: patterns of columns that are evaluators each (``judge_*``). scale,
    threshold: of scores, where an evaluator has none of its own. annotators: by name the columns that hold what one of
    several people said; in the long form the column ``annotator`` says who. Labels are by majority then.
    """

    model_config = ConfigDict(extra="forbid")

    auto: bool = False
    columns: dict[str, str | list[str]] = Field(default_factory=dict)
    constants: dict[str, str] = Field(default_factory=dict)
    labels: dict[str, int | None] = Field(default_factory=dict)
    words: dict[str, dict[str, int | None]] = Field(default_factory=dict)
    evaluators: dict[str, Wide] = Field(default_factory=dict)
    wide: list[str] = Field(default_factory=list)
    annotators: dict[str, str] = Field(default_factory=dict)
    scale: tuple[float, float] | None = None
    threshold: float | None = None
    label_threshold: float | None = None

    @field_validator("columns", "constants")
    @classmethod
    def _known(cls, given: dict[str, Any]) -> dict[str, Any]:
        known = [*dict.fromkeys((*CLAIM_COLUMNS, *VERDICT_COLUMNS, *COLUMN_NAMES))]
        for name in given:
            if name not in known:
                raise ValueError(f"no column {name!r} of claims or verdicts{hint(name, known)}")
        return given

    @field_validator("labels")
    @classmethod
    def _binary(cls, given: dict[str, int | None]) -> dict[str, int | None]:
        for word, value in given.items():
            if value not in (0, 1, None):
                raise ValueError(f"label {word!r}: expected 1, 0 or null, found {value!r}")
        return given

    @field_validator("scale")
    @classmethod
    def _apart(cls, given: tuple[float, float] | None) -> tuple[float, float] | None:
        if given is not None and given[0] == given[1]:
            raise ValueError("the two ends of a scale differ")
        return given

    @classmethod
    def of(cls, given: Mapping | Map[str, Any] | str | Path | None) -> Mapping:
        """From a mapping, ``auto``, its path (YAML) or plain data. Raises `UsageError` that names the key."""
        if given is None:
            return cls()
        if given == "auto":
            return cls(auto=True)
        if isinstance(given, Mapping):
            return given
        place = "mapping"
        if isinstance(given, str | Path):
            place = str(given)
            try:
                given = plain_yaml(Path(given).read_text(encoding="utf-8"))
            except OSError as error:
                raise UsageError(f"{place}: cannot be read ({error.strerror})") from None
            except (yaml.YAMLError, ValueError, RecursionError) as error:
                raise UsageError(f"{place}: not YAML: {error}") from None
        if not isinstance(given, Map):
            raise UsageError(f"{place}: expected keys like columns, labels and evaluators")
        try:
            return cls(**{str(key): value for key, value in given.items()})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            known = hint(str(first["loc"][0]), list(cls.model_fields)) if first["type"] == "extra_forbidden" else ""
            raise UsageError(f"{place}, {where}: {first['msg']}{known}") from None

    def to_yaml(self) -> str:
        """The mapping as YAML, without what is not said."""
        return yaml.safe_dump(self.model_dump(exclude_defaults=True, mode="json"), sort_keys=False, allow_unicode=True)
