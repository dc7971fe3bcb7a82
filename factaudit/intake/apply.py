"""A mapping applied: the claims, the verdicts and the annotations that a user's tables make."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping as Map
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from factaudit.errors import InputError, Problem
from factaudit.intake.mapping import Mapping, Wide
from factaudit.intake.words import plain
from factaudit.tables import CLAIM_COLUMNS, VERDICT_COLUMNS, merge_claims, validate_claims, validate_verdicts
from factaudit.tables.annotations import ANNOTATION_COLUMNS, judgements, labels_by, validate_annotations


@dataclass(frozen=True)
class Mapped:
    """What became of the tables: validated claims, verdicts and annotations, None where there are none."""

    claims: pd.DataFrame | None
    verdicts: pd.DataFrame | None
    annotations: pd.DataFrame | None = None


def apply(tables: Sequence[tuple[str, pd.DataFrame]], mapping: Mapping) -> Mapped:
    """Make claims, verdicts and annotations of tables (name, rows) by a mapping.

    A table with a column for ``claim`` gives claims; one with evaluators, or with ``score`` or ``prediction``, gives
    verdicts; one with annotators gives annotations, and claims that have no label of their own get the majority's.
    Where some tables have claims and no verdicts, the verdicts of the others are joined to these by ``claim_id``, else
    by the claim's text where no two claims share it; else verdicts belong to the claim of their own row (in the long
    form each claim is taken once). So are annotations. Raises `InputError` naming table, row and column.
    """
    read = [_Table(name, table.reset_index(drop=True), mapping) for name, table in tables]
    for one, (_, table) in zip(read, tables, strict=True):
        if not one.has_claims and not one.has_verdicts and not one.has_annotations:
            expected = "a column for 'claim', for 'score' or 'prediction', or evaluators"
            has = ", ".join(map(str, table.columns[:8])) or "no column"
            message = f"nothing in it is mapped: expected {expected}; it has {has}: say --map claim=COLUMN"
            raise InputError(one.name, [Problem(message)])
    owners = [one for one in read if one.has_claims]
    for told in (lambda one: one.has_verdicts, lambda one: one.each_says):
        owners = [one for one in owners if not told(one)] or owners
    parts, own_ids = [], {}
    for one in owners:
        first, of_row = one.distinct_claims()
        claims = one.claims(first)
        parts.append((one.name, claims))
        own_ids[one.name] = claims["claim_id"].iloc[of_row].reset_index(drop=True)
    whole = _together(parts)

    def ids(one: _Table) -> pd.Series:
        return own_ids[one.name] if one.name in own_ids else one.ids(whole)

    people = [(one.name, one.annotations(ids(one))) for one in read if one.has_annotations]
    annotations = None
    if people:
        named = ", ".join(name for name, _ in people)
        annotations = validate_annotations(pd.concat([rows for _, rows in people]), claims=whole, source=named)
        if whole is not None:
            majority = whole["claim_id"].map(labels_by("majority", judgements(annotations))).astype("Int8")
            whole = whole.assign(label=whole["label"].fillna(majority))
    verdicts = [rows for one in read if one.has_verdicts for rows in one.verdicts(ids(one))]
    if not verdicts:
        return Mapped(whole, None, annotations)
    named = ", ".join(one.name for one in read if one.has_verdicts)
    made = validate_verdicts(pd.concat(verdicts, ignore_index=True), claims=whole, source=named)
    return Mapped(whole, made, annotations)


class _Table:
    """One table and what the mapping says of its columns."""

    def __init__(self, name: str, rows: pd.DataFrame, mapping: Mapping) -> None:
        self.name, self.rows, self.mapping = name, rows.set_axis(rows.columns.map(str), axis=1), mapping
        self.evaluators = self._evaluators()
        self.annotators = {name: column for name, column in mapping.annotators.items() if column in self.rows}
        self.theirs = self._columns()
        self.has_claims = "claim" in self.theirs
        #: A row for what each annotator said of a claim.
        self.each_says = {"annotator", "label"} <= set(self.theirs)
        self.has_annotations = self.each_says or bool(self.annotators)
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
        used |= {*self.annotators.values()}
        for ours in dict.fromkeys((*CLAIM_COLUMNS, *VERDICT_COLUMNS, "annotator")):
            if ours in self.rows and ours not in used and ours not in found and ours not in self.mapping.constants:
                found[ours] = ours
        if self.evaluators:  # the wide form: what else looks like a verdict is a column like any other
            found = {ours: theirs for ours, theirs in found.items() if ours in CLAIM_COLUMNS}
        return found

    def distinct_claims(self) -> tuple[np.ndarray, np.ndarray]:
        """The row in which each claim stands first, and for each row which of these claims it is about."""
        if not self.each_says and (not self.has_verdicts or self.evaluators):
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
            if ours == "label" and self.each_says:
                continue  # one annotator's, and no more
            if ours in self.theirs:
                made[ours] = table[self.theirs[ours]]
            elif ours in self.mapping.constants:
                made[ours] = pd.Series([self.mapping.constants[ours]] * len(table), dtype="object")
        if "dataset" not in made:
            made["dataset"] = pd.Series([_stem(self.name)] * len(table), dtype="object")
        if "doc" in made:
            made["doc"] = made["doc"].map(_joined)
        if "label" in made:
            made["label"] = self._labels(made["label"], self.theirs.get("label", "label"))
        said = {column for one in self.evaluators.values() for column in (one.score, one.prediction)}
        said |= {*self.annotators.values(), *(ANNOTATION_COLUMNS if self.each_says else ())}
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

    def annotations(self, ids: pd.Series) -> pd.DataFrame:
        """What each annotator said of the rows' claims; a cell that is empty says nothing."""
        said = {name: (pd.Series(name, index=self.rows.index), column) for name, column in self.annotators.items()}
        if self.each_says:
            said = {"": (self.rows[self.theirs["annotator"]], self.theirs["label"])}
        parts = []
        for annotator, column in said.values():
            values = self.rows[column]
            rows = pd.DataFrame({"claim_id": ids.to_numpy(), "annotator": annotator.to_numpy()})
            rows["label"] = self._labels(values, column).to_numpy()
            rows["grade"] = [None if _empty(value) else str(value) for value in values]
            for ours in ("start", "end", "note", "seconds") if self.each_says else ():
                if ours in self.rows:
                    rows[ours] = self.rows[ours].to_numpy()
            parts.append(rows[rows["grade"].notna()])
        return pd.concat(parts, ignore_index=True)

    def _labels(self, values: pd.Series, column: str) -> pd.Series:
        """Labels as 1, 0 or null: grades by the mapping's threshold, words by its words."""
        limit = self.mapping.label_threshold
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
