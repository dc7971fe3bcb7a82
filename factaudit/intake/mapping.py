"""What a user's columns and words mean, as checked data; and the claims and verdicts that they make."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping as Map
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from factaudit.errors import InputError, Problem, UsageError, hint
from factaudit.intake.words import COLUMN_NAMES, plain
from factaudit.tables import CLAIM_COLUMNS, VERDICT_COLUMNS, merge_claims, validate_claims, validate_verdicts
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
    threshold: of scores, where an evaluator has none of its own.
    """

    model_config = ConfigDict(extra="forbid")

    auto: bool = False
    columns: dict[str, str | list[str]] = Field(default_factory=dict)
    constants: dict[str, str] = Field(default_factory=dict)
    labels: dict[str, int | None] = Field(default_factory=dict)
    words: dict[str, dict[str, int | None]] = Field(default_factory=dict)
    evaluators: dict[str, Wide] = Field(default_factory=dict)
    wide: list[str] = Field(default_factory=list)
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


@dataclass(frozen=True)
class Mapped:
    """What became of the tables: validated claims and verdicts, None where there are none."""

    claims: pd.DataFrame | None
    verdicts: pd.DataFrame | None


def apply(tables: Sequence[tuple[str, pd.DataFrame]], mapping: Mapping) -> Mapped:
    """Make claims and verdicts of tables (name, rows) by a mapping.

    A table with a column for ``claim`` gives claims; one with evaluators, or with ``score`` or ``prediction``, gives
    verdicts. Where some tables have claims and no verdicts, the verdicts of the others are joined to these by
    ``claim_id``, else by the claim's text where no two claims share it; else verdicts belong to the claim of their own
    row (in the long form each claim is taken once). Raises `InputError` naming table, row and column.
    """
    read = [_Table(name, table.reset_index(drop=True), mapping) for name, table in tables]
    for one in read:
        if not one.has_claims and not one.has_verdicts:
            expected = "a column for 'claim', for 'score' or 'prediction', or evaluators"
            raise InputError(one.name, [Problem(f"nothing in it is mapped: expected {expected}")])
    owners = [one for one in read if one.has_claims and not one.has_verdicts] or [one for one in read if one.has_claims]
    parts, own_ids = [], {}
    for one in owners:
        first, of_row = one.distinct_claims()
        claims = one.claims(first)
        parts.append((one.name, claims))
        own_ids[one.name] = claims["claim_id"].iloc[of_row].reset_index(drop=True)
    whole = _together(parts)
    verdicts = [
        rows
        for one in read
        if one.has_verdicts
        for rows in one.verdicts(own_ids[one.name] if one.name in own_ids else one.ids(whole))
    ]
    if not verdicts:
        return Mapped(whole, None)
    named = ", ".join(one.name for one in read if one.has_verdicts)
    return Mapped(whole, validate_verdicts(pd.concat(verdicts, ignore_index=True), claims=whole, source=named))


class _Table:
    """One table and what the mapping says of its columns."""

    def __init__(self, name: str, rows: pd.DataFrame, mapping: Mapping) -> None:
        self.name, self.rows, self.mapping = name, rows.set_axis(rows.columns.map(str), axis=1), mapping
        self.evaluators = self._evaluators()
        self.theirs = self._columns()
        self.has_claims = "claim" in self.theirs
        self.has_verdicts = bool(self.evaluators) or bool({"score", "prediction"} & set(self.theirs))

    def _evaluators(self) -> dict[str, Wide]:
        """The evaluators of the wide form whose columns the table has."""
        mapping = self.mapping
        found = {
            name: one
            for name, one in mapping.evaluators.items()
            if any(column in self.rows for column in (one.score, one.prediction) if column)
        }
        taken = {column for one in found.values() for column in (one.score, one.prediction)}
        for pattern in mapping.wide:
            for column in self.rows.columns:
                if fnmatch.fnmatchcase(column, pattern) and column not in taken:
                    found[column] = Wide(score=column)
        return found

    def _columns(self) -> dict[str, str]:
        """Column of ours -> the table's; one that already has our name needs no mapping."""
        found: dict[str, str] = {}
        for ours, theirs in self.mapping.columns.items():
            present = [one for one in ([theirs] if isinstance(theirs, str) else theirs) if one in self.rows]
            if len(present) > 1:
                message = f"for {ours!r} the mapping names {present!r}, and the table has both"
                raise InputError(self.name, [Problem(message)])
            if present:
                found[ours] = present[0]
        used = {*found.values(), *(c for one in self.evaluators.values() for c in (one.score, one.prediction))}
        for ours in dict.fromkeys((*CLAIM_COLUMNS, *VERDICT_COLUMNS)):
            if ours in self.rows and ours not in used and ours not in found and ours not in self.mapping.constants:
                found[ours] = ours
        if self.evaluators:  # the wide form: what else looks like a verdict is a column like any other
            found = {ours: theirs for ours, theirs in found.items() if ours in CLAIM_COLUMNS}
        return found

    def distinct_claims(self) -> tuple[np.ndarray, np.ndarray]:
        """The row in which each claim stands first, and for each row which of these claims it is about."""
        if not self.has_verdicts or self.evaluators:
            rows = np.arange(len(self.rows))
            return rows, rows
        keys = ["claim_id"] if "claim_id" in self.theirs else _keys(self.theirs)
        of_row, _ = pd.factorize(_joint(self.rows, [self.theirs[key] for key in keys]))
        return np.unique(of_row, return_index=True)[1], of_row

    def claims(self, rows: np.ndarray) -> pd.DataFrame:
        """The claims that stand in some rows, validated; columns that are nobody's are kept."""
        table = self.rows.iloc[rows].reset_index(drop=True)
        made: dict[str, Any] = {}
        for ours in CLAIM_COLUMNS:
            if ours in self.theirs:
                made[ours] = table[self.theirs[ours]]
            elif ours in self.mapping.constants:
                made[ours] = pd.Series([self.mapping.constants[ours]] * len(table), dtype="object")
        if "dataset" not in made:
            made["dataset"] = pd.Series([_stem(self.name)] * len(table), dtype="object")
        if "doc" in made:
            made["doc"] = made["doc"].map(_joined)
        if "label" in made:
            made["label"] = self._labels(made["label"])
        said = {column for one in self.evaluators.values() for column in (one.score, one.prediction)}
        for column in table.columns:
            if column not in (*self.theirs.values(), *said, *made):
                made[column] = table[column]
        return validate_claims(pd.DataFrame(made), source=self.name)

    def ids(self, claims: pd.DataFrame | None) -> pd.Series:
        """For each row the id of the claim, in another table, that it is about."""
        if "claim_id" in self.theirs:
            return self.rows[self.theirs["claim_id"]]
        if claims is None or not self.has_claims:
            expected = "a column for 'claim_id'" + ("" if claims is None else ", or for 'claim' with the claim's text")
            raise InputError(self.name, [Problem(f"cannot tell which claims the verdicts are of: expected {expected}")])
        keys = [key for key in _keys(self.theirs) if claims[key].notna().any()]
        known = _joint(claims, keys)
        if known.duplicated().any():
            message = f"several claims have the same {', '.join(keys)}: expected a column for 'claim_id'"
            raise InputError(self.name, [Problem(message)])
        wanted = _joint(self.rows, [self.theirs[key] for key in keys])
        found = wanted.map(pd.Series(claims["claim_id"].to_numpy(), index=known))
        self._refuse(self.theirs["claim"], found.isna(), "expected the text of a claim")
        return found

    def verdicts(self, ids: pd.Series) -> list[pd.DataFrame]:
        """The verdicts of the rows' claims, a table per evaluator (or one, in the long form)."""
        if self.evaluators:
            return [
                self._said(ids, name, one.score, one.prediction, one.scale, one.threshold)
                for name, one in self.evaluators.items()
            ]
        evaluator: Any = self.mapping.constants.get("evaluator", _stem(self.name))
        if "evaluator" in self.theirs:
            evaluator = self.rows[self.theirs["evaluator"]].to_numpy()
        rows = self._said(ids, evaluator, self.theirs.get("score"), self.theirs.get("prediction"))
        for ours in ("raw", "chunk_scores", "repeat"):
            if ours in self.theirs:
                rows[ours] = self.rows[self.theirs[ours]].to_numpy()
        if "status" in self.theirs:
            rows["status"] = self.rows[self.theirs["status"]].fillna("ok").to_numpy()
        return [rows]

    def _labels(self, values: pd.Series) -> pd.Series:
        """Labels as 1, 0 or null: grades by the mapping's threshold, words by its words."""
        limit, column = self.mapping.label_threshold, self.theirs["label"]
        if limit is None:
            return self._binary(values, column)
        numbers = pd.to_numeric(values, errors="coerce")
        self._refuse(column, numbers.isna() & ~values.map(_empty), "expected a number")
        return (numbers > limit).astype("Int8").mask(numbers.isna(), pd.NA)

    def _binary(self, values: pd.Series, column: str) -> pd.Series:
        """Words as 1, 0 or null: the mapping's, however they are written; 1, 0, true and false are themselves."""
        table: dict[str, int | None] = {"1": 1, "0": 0, "true": 1, "false": 0}
        own = self.mapping.labels | self.mapping.words.get(column, {})
        table |= {plain(word): value for word, value in own.items()}
        words = values.map(lambda value: None if _empty(value) else plain(value))
        bad = words.notna() & ~words.isin(list(table))
        if bad.any():
            unknown = sorted({str(value) for value in values[bad]})
            shown = ", ".join(map(repr, unknown[:5])) + (" ..." if len(unknown) > 5 else "")
            message = f"expected 1, 0 or a word that the mapping knows, found {shown} in {int(bad.sum()):,} rows"
            problem = Problem(f"{message}; say --labels WORD=1,WORD=0", int(np.flatnonzero(bad)[0]) + 1, column)
            raise InputError(self.name, [problem])
        return words.map(lambda word: pd.NA if _empty(word) or table[word] is None else table[word]).astype("Int8")

    def _said(
        self,
        ids: pd.Series,
        evaluator: Any,
        score: str | None,
        prediction: str | None,
        scale: tuple[float, float] | None = None,
        threshold: float | None = None,
    ) -> pd.DataFrame:
        """Verdicts from a column of scores, of predictions or both; an empty cell is an unscored claim."""
        if score is not None and _is_words(self.rows[score]):
            score, prediction = None, prediction or score
        rows = pd.DataFrame({"claim_id": ids.to_numpy(), "evaluator": evaluator})
        predicted = pd.Series(pd.NA, index=self.rows.index, dtype="Int8")
        if score is not None and score in self.rows:
            low, high = scale or self.mapping.scale or (0.0, 1.0)
            values = self.rows[score]
            numbers = pd.to_numeric(values, errors="coerce").astype("float64")
            self._refuse(score, numbers.isna() & ~values.map(_empty), "expected a number")
            support = (numbers - low) / (high - low)
            outside = (support < 0) | (support > 1)
            self._refuse(score, outside, f"expected a number from {low:g} to {high:g} (or say --scale LOW:HIGH)")
            rows["score"] = support.to_numpy()
            limit = threshold if threshold is not None else self.mapping.threshold
            limit = (low + high) / 2 if limit is None else limit
            beyond = numbers > limit if high > low else numbers < limit
            predicted = beyond.astype("Int8").mask(numbers.isna(), pd.NA)
        if prediction is not None and prediction in self.rows:
            predicted = self._binary(self.rows[prediction], prediction).fillna(predicted)
        rows["prediction"] = predicted.to_numpy()
        rows["status"] = np.where(predicted.isna().to_numpy(), "skipped", "ok")
        return rows

    def _refuse(self, column: str, bad: pd.Series, message: str) -> None:
        rows = np.flatnonzero(bad)
        if len(rows):  # one message per cause: the first row, and how many there are
            more = f" ({len(rows):,} rows)" if len(rows) > 1 else ""
            found = f"{message}, found {self.rows[column].iloc[rows[0]]!r}{more}"
            raise InputError(self.name, [Problem(found, int(rows[0]) + 1, column)])


def _keys(theirs: Map[str, str]) -> list[str]:
    return [key for key in ("dataset", "system", "response_id", "doc", "claim") if key in theirs]


def _joint(table: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Several columns as one text a row. (Not with "\\0" between: pandas 2 reads a text up to the first.)"""
    parts = [table[column].map(_joined) for column in columns]
    joined = ("\x1f".join("" if _empty(value) else str(value) for value in row) for row in zip(*parts, strict=True))
    return pd.Series(list(joined), dtype="object")


def _joined(value: Any) -> Any:
    """Several passages as one document."""
    if isinstance(value, list | tuple | np.ndarray):
        return "\n\n".join(str(item.get("text", item) if isinstance(item, dict) else item) for item in value) or None
    return value


def _empty(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and value != value)


def _is_words(values: pd.Series) -> bool:
    present = values[~values.map(_empty)]
    return bool(len(present)) and bool(pd.to_numeric(present, errors="coerce").isna().all())


def _stem(name: str) -> str:
    return Path(name).name.split(".")[0]


def _together(parts: Sequence[tuple[str, pd.DataFrame]]) -> pd.DataFrame | None:
    return merge_claims([claims for _, claims in parts], [name for name, _ in parts]) if parts else None
