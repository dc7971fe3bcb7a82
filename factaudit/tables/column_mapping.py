"""What the user says about columns and words, as checked data."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Map
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from factaudit.errors import UsageError, suggest_known_name
from factaudit.files import check_no_pipe
from factaudit.settings.yaml_file import parse_plain_yaml
from factaudit.tables.schema import CLAIM_COLUMNS, GRADE_COLUMN, VERDICT_COLUMNS
from factaudit.tables.vocabulary import COLUMN_NAMES

#: Scores without a scale. ``-logit`` are logits of hallucination; ``-log`` is high where the
#: support is low.
ScoreTransform = Literal["logit", "-logit", "log", "-log"]
SCORE_TRANSFORM_NAMES: dict[str, str] = {
    "logit": "logits",
    "-logit": "logits of hallucination",
    "log": "logarithms of probabilities",
    "-log": "negative logarithms of probabilities",
}


#: The options that name a column of claims, with factaudit's name of the column.
CLAIM_OPTIONS = {
    **{name: name for name in ("label", "claim", "doc", "system", "dataset")},
    "response": "response_id",
    "id": "claim_id",
}


class EvaluatorColumnMapping(BaseModel):
    """The columns in which one evaluator judges the claim of each row.

    scale: the values of the score for *not supported at all* and for *fully supported*, for example
    ``[1, 5]``, or ``[1, 0]`` if the column scores hallucination; or one of `SCORE_TRANSFORM_NAMES`.
    threshold: on that scale; the prediction is 1 if the support is strictly beyond it. By default
    it is the middle of the scale.
    """

    model_config = ConfigDict(extra="forbid")

    score: str | None = None
    prediction: str | None = None
    scale: tuple[float, float] | ScoreTransform | None = None
    threshold: float | None = None

    @property
    def judgements(self) -> dict[str, str]:
        """The columns that hold its judgements, by ``score`` and ``prediction``."""
        columns = {"score": self.score, "prediction": self.prediction}
        return {kind: column for kind, column in columns.items() if column is not None}

    @property
    def columns(self) -> list[str]:
        return [*self.judgements.values()]


class ColumnMapping(BaseModel):
    """How tables are read: what the user says about columns and values.

    Anything else is read from the names of columns. In YAML and in Python the keys are those of the
    command line's options. Columns of claims may stand beside them (``label: human``, ``doc:
    context``).

    columns: factaudit's name of a column (`factaudit.tables.CLAIM_COLUMNS`, or of verdicts in the
    long form) to its name in the table, or to several names of which each file has one.
    labels: words to 1, 0 or null; "" is a blank cell.
    evaluator: the evaluators to read: columns, patterns of columns (``judge_*``), or names of
    evaluators.
    evaluators: evaluators with columns of their own, by name.
    people: columns, or patterns of columns, each with the judgements of one person. In the long
    form, the evaluators that are people. The label of a claim is then that of the majority.
    scale, threshold: by evaluator or column. If a column of labels has a threshold, it holds
    grades, and those above the threshold are 1. The scale ``[1, 0]`` turns a column of labels or
    predictions round.
    high_is_error: evaluators or columns in which 1, or a high score, means an error.
    ignore: columns to leave out; in the long form also evaluators.
    sheet: the sheet of a workbook that has several.
    """

    model_config = ConfigDict(extra="forbid")

    columns: dict[str, str | list[str]] = Field(default_factory=dict)
    labels: dict[str, int | None] = Field(default_factory=dict)
    evaluator: list[str] = Field(default_factory=list)
    evaluators: dict[str, EvaluatorColumnMapping] = Field(default_factory=dict)
    people: list[str] = Field(default_factory=list)
    scale: dict[str, tuple[float, float] | ScoreTransform] = Field(default_factory=dict)
    threshold: dict[str, float] = Field(default_factory=dict)
    high_is_error: list[str] = Field(default_factory=list)
    ignore: list[str] = Field(default_factory=list)
    sheet: str | None = None

    @field_validator("evaluator", "people", "high_is_error", "ignore", mode="before")
    @classmethod
    def _list_single_names(cls, names: Any) -> Any:
        return [names] if isinstance(names, str) else names

    @field_validator("columns")
    @classmethod
    def _check_column_names(cls, column_names: dict[str, Any]) -> dict[str, Any]:
        known = [*dict.fromkeys((*CLAIM_COLUMNS, *VERDICT_COLUMNS, GRADE_COLUMN, *COLUMN_NAMES))]
        for name in column_names:
            if name not in known:
                raise ValueError(
                    f"no column {name!r} of claims or verdicts{suggest_known_name(name, known)}"
                )
        return column_names

    @field_validator("labels")
    @classmethod
    def _check_label_values(cls, label_words: dict[str, int | None]) -> dict[str, int | None]:
        for word, value in label_words.items():
            if value not in (0, 1, None):
                raise ValueError(f"label {word!r}: expected 1, 0 or null, found {value!r}")
        return label_words

    @field_validator("scale")
    @classmethod
    def _check_scale_ends(cls, scales: dict[str, Any]) -> dict[str, Any]:
        for name, ends in scales.items():
            if not isinstance(ends, str) and ends[0] == ends[1]:
                raise ValueError(f"the two ends of the scale of {name!r} are the same")
        return scales

    @classmethod
    def from_source(
        cls, source: ColumnMapping | Map[str, Any] | str | Path | None
    ) -> ColumnMapping:
        """From a mapping, ``auto``, a path (YAML) or plain data. Raises `UsageError` that names the
        key."""
        if source is None or source == "auto":
            return cls()
        if isinstance(source, ColumnMapping):
            return source
        place = "mapping"
        if isinstance(source, str | Path):
            place = str(source)
            check_no_pipe(source)
            try:
                source = parse_plain_yaml(Path(source).read_text(encoding="utf-8"))
            except OSError as error:
                raise UsageError(f"{place}: cannot be read ({error.strerror})") from None
            except (yaml.YAMLError, ValueError, RecursionError) as error:
                raise UsageError(f"{place}: not YAML: {error}") from None
        if not isinstance(source, Map):
            raise UsageError(f"{place}: expected keys like columns, labels and evaluators")
        given = {str(key): value for key, value in source.items()}
        named = {
            CLAIM_OPTIONS.get(key, key): key
            for key in given
            if CLAIM_OPTIONS.get(key, key) in CLAIM_COLUMNS
        }
        if named:
            given = {
                "columns": {ours: given.pop(key) for ours, key in named.items()}
                | given.pop("columns", {}),
                **given,
            }
        try:
            return cls(**given)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            known = (
                suggest_known_name(str(first["loc"][0]), [*cls.model_fields, *CLAIM_OPTIONS])
                if first["type"] == "extra_forbidden"
                else ""
            )
            raise UsageError(f"{place}, {where}: {first['msg']}{known}") from None

    def to_yaml(self) -> str:
        """The mapping as YAML, without what is not set."""
        return yaml.safe_dump(
            self.model_dump(exclude_defaults=True, mode="json"), sort_keys=False, allow_unicode=True
        )


def match_column_patterns(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """The names that equal or match one of the patterns (``judge_*``), in their order."""
    return [
        name
        for name in names
        if any(name == one or fnmatch.fnmatchcase(name, one) for one in patterns)
    ]
