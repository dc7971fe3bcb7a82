"""A mapping applied: the claims, the verdicts and the annotations that a user's tables make.

Whatever form a table has, a column for each evaluator or a row for each, it becomes claims and *statements*: what
somebody says of the claims of some rows, in a column of scores, of predictions or of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd

from factaudit.errors import InputError, Problem
from factaudit.tables.annotations import (
    ANNOTATION_COLUMNS,
    label_claims_by_annotations,
    list_annotator_judgements,
    validate_annotations,
)
from factaudit.tables.cell_values import has_no_value, has_only_words, parse_judgement_numbers
from factaudit.tables.claim_keys import (
    find_common_keys,
    join_key_cells,
    join_passages_into_document,
    list_claim_key_columns,
    name_table_stem,
)
from factaudit.tables.column_mapping import ColumnMapping, EvaluatorColumnMapping
from factaudit.tables.column_parsing import TEXT_DTYPE
from factaudit.tables.label_cells import check_cells, parse_label_cells, parse_label_words
from factaudit.tables.meanings import scale_judgement_numbers
from factaudit.tables.nested_lists import ROW_COLUMN
from factaudit.tables.schema import CLAIM_COLUMNS, GRADE_COLUMN, STATUSES, VERDICT_COLUMNS, make_text_placeholder
from factaudit.tables.standard_columns import OWN_COLUMNS
from factaudit.tables.unreadable_rows import MAX_UNREADABLE_SHARE
from factaudit.tables.validation import (
    make_claim_ids_from_content,
    merge_claim_tables,
    validate_claims,
    validate_verdicts,
)
from factaudit.tables.vocabulary import normalise_vocabulary_words


@dataclass(frozen=True)
class MappedTables:
    """What became of the tables: validated claims, verdicts and annotations, None where there are none; and notes of
    cells that could not be read."""

    claims: pd.DataFrame | None
    verdicts: pd.DataFrame | None
    annotations: pd.DataFrame | None = None
    notes: Sequence[str] = ()


def apply_mapping_to_tables(
    tables: Sequence[tuple[str, pd.DataFrame]], mapping: ColumnMapping, own_kinds: Sequence[str | None] = ()
) -> MappedTables:
    """Make claims, verdicts and annotations of tables (name, rows) by a mapping.

    own_kinds: of each table what `classify_standard_tables` says; a table of ours is that and nothing else.

    A table with a column for ``claim`` gives claims; one with evaluators, or with ``score`` or ``prediction``, gives
    verdicts; one with annotators gives annotations, and claims that have no label of their own get the majority's.
    Where some tables have claims and no verdicts, the verdicts of the others are joined to these; else verdicts belong
    to the claim of their own row (in the long form each claim is taken once). So are annotations. Raises `InputError`
    naming table, row and column.
    """
    read = [
        _MappedTable(name, table.reset_index(drop=True), mapping, kind)
        for (name, table), kind in zip_longest(tables, own_kinds)
    ]
    if not any(one.has_claims for one in read) and any(one.has_verdicts for one in read):
        for one in read:  # labels and verdicts are enough for rates
            one.has_claims = one.has_labels
    # Labels by the ids of claims that stand elsewhere are what one annotator said: of several files each.
    labelled = [one for one in read if one.has_labels and not one.has_claims and not one.has_verdicts]
    stems = [name_table_stem(one.name) for one in labelled]
    for one, stem in zip(labelled, stems, strict=True):
        column = one.columns["label"]
        one.annotators[column if len(labelled) == 1 else one.name if stems.count(stem) > 1 else stem] = column
    for one in read:
        if not one.has_claims and not one.has_verdicts and not one.has_annotations:
            raise InputError(one.name, [Problem(_describe_unmapped_columns([*map(str, one.rows.columns)]))])
    owners = [one for one in read if one.has_claims]
    for is_told in (lambda one: one.has_verdicts, lambda one: one.has_annotator_rows):
        owners = [one for one in owners if not is_told(one)] or owners
    whole, ids = _make_claims(owners, [one for one in read if one not in owners])
    for one in read:
        if one.name not in ids:
            ids[one.name] = one.find_claim_ids(whole)

    said = [(one, one.make_annotations(ids[one.name])) for one in read if one.has_annotations]
    annotations = None
    if said:
        named = ", ".join(one.name for one, _ in said)
        annotations = validate_annotations(pd.concat([rows for _, rows in said]), claims=whole, source=named)
        if whole is not None:
            judged = list_annotator_judgements(annotations)
            majority = whole["claim_id"].map(label_claims_by_annotations("majority", judged)).astype("Int8")
            whole = whole.assign(label=whole["label"].fillna(majority))
    verdicts = [rows for one in read if one.has_verdicts for rows in one.make_verdicts(ids[one.name]) if len(rows)]
    notes = [note for one in read for note in one.notes]
    if not verdicts:
        if whole is None and annotations is None:
            named = ", ".join(one.name for one in read)
            raise InputError(named, [Problem("no column was taken for the claims: say --claim COLUMN")])
        return MappedTables(whole, None, annotations, notes)
    named = ", ".join(one.name for one in read if one.has_verdicts)
    made = validate_verdicts(pd.concat(verdicts, ignore_index=True), claims=whole, source=named)
    return MappedTables(whole, made, annotations, notes)


def _describe_unmapped_columns(names: Sequence[str]) -> str:
    if not names:
        return "nothing in it is mapped: it has no column"
    listed = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")
    expected = "a row for each claim, and columns for 'claim', 'label', and a score or a verdict of each evaluator"
    return f"nothing in it is mapped: expected {expected}; it has {listed}: say --claim COLUMN, or turn the table round"


def _make_claims(
    owners: Sequence[_MappedTable], others: Sequence[_MappedTable]
) -> tuple[pd.DataFrame | None, dict[str, pd.Series]]:
    """The claims of the tables that have some, and by table's name the ids of its rows' claims."""
    parts, rows_of_claims = [], []
    for one in owners:
        for other in others:
            one.join_claim_columns(other)
        first, of_row = one.distinct_claims()
        parts.append(one.make_claims(first))
        rows_of_claims.append(of_row)
    nameless = [claims for one, claims in zip(owners, parts, strict=True) if "claim_id" not in one.columns]
    if len(parts) > 1 and nameless:  # over all files together, so that equal rows of two files get two ids
        together = pd.concat(nameless, ignore_index=True)
        new_ids = make_claim_ids_from_content(together, all("dataset" in one.columns for one in owners)).tolist()
        for claims in nameless:
            claims["claim_id"], new_ids = pd.Series(new_ids[: len(claims)], dtype=TEXT_DTYPE), new_ids[len(claims) :]
    ids = {
        one.name: claims["claim_id"].iloc[of_row].reset_index(drop=True)
        for one, claims, of_row in zip(owners, parts, rows_of_claims, strict=True)
    }
    return merge_claim_tables(parts, [one.name for one in owners]) if parts else None, ids


@dataclass(frozen=True)
class _Statement:
    """What somebody says: in which columns, of which rows; ``who``: one name, or one for each row of the table."""

    who: Any
    columns: EvaluatorColumnMapping
    rows: np.ndarray


class _MappedTable:
    """One table and what the mapping says of its columns."""

    def __init__(self, name: str, rows: pd.DataFrame, mapping: ColumnMapping, own_kind: str | None = None) -> None:
        self.name, self.rows, self.mapping = name, rows.set_axis(rows.columns.map(str), axis=1), mapping
        self.own_kind = own_kind
        self.notes: list[str] = []
        self.evaluators = {
            name: one for name, one in mapping.evaluators.items() if any(column in self.rows for column in one.columns)
        }
        self.annotators = {name: column for name, column in mapping.annotators.items() if column in self.rows}
        self.columns = self._find_columns()
        names = {*self.columns}
        self.has_claims = "claim" in names
        self.has_verdicts = bool(self.evaluators) or bool({"score", "prediction"} & names)
        #: A row for each labelled claim, told from others by its number or id. (Documents without claims are no such.)
        self.has_labels = "label" in names and not {"annotator", "doc"} & names
        self.has_labels = self.has_labels and (self.has_verdicts or "claim_id" in names)
        self.has_annotator_rows = {"annotator", "label"} <= names
        named = self.columns.get("evaluator")
        #: Which rows of the long form hold what a person said.
        self.is_of_people = np.zeros(len(rows), dtype=bool)
        if named is not None and mapping.people_evaluators:
            self.is_of_people = self.rows[named].astype("str").isin(mapping.people_evaluators).to_numpy()

    @property
    def has_annotations(self) -> bool:
        return self.has_annotator_rows or bool(self.annotators) or bool(self.is_of_people.any())

    def _find_columns(self) -> dict[str, str]:
        """Column of ours -> the table's; one that already has our name needs no mapping."""
        found: dict[str, str] = {}
        for ours, theirs in self.mapping.columns.items():
            present = [one for one in ([theirs] if isinstance(theirs, str) else theirs) if one in self.rows]
            if present:
                found[ours] = present[0]
        used = {*found.values(), *(column for one in self.evaluators.values() for column in one.columns)}
        used |= {*self.annotators.values()} | ({*self.mapping.ignore} if self.own_kind is None else set())
        own = (*CLAIM_COLUMNS, *VERDICT_COLUMNS, "annotator") if self.own_kind is None else OWN_COLUMNS[self.own_kind]
        found |= {ours: ours for ours in own if ours in self.rows and ours not in used and ours not in found}
        if self.evaluators:  # the wide form: what else looks like a verdict is a column like any other
            found = {ours: one for ours, one in found.items() if ours in (*CLAIM_COLUMNS, GRADE_COLUMN, "annotator")}
        return found

    def join_claim_columns(self, other: _MappedTable) -> None:
        """Take from a table of verdicts what it alone says of these claims. Raises `InputError` where its rows of one
        claim differ, or label claims otherwise."""
        columns = other.columns
        if other.own_kind == "verdicts":
            columns = columns | {ours: ours for ours in CLAIM_COLUMNS if ours in other.rows}
        if not other.has_verdicts or other.has_annotator_rows:
            return
        keys = find_common_keys(self.rows, self.columns, other.rows, columns)
        if keys is None or (keys.names != ["claim_id"] and keys.first.duplicated().any()):
            return
        if "label" in self.columns and "label" in columns and not self.has_annotator_rows:
            labels = self._parse_labels(self.rows[self.columns["label"]]).set_axis(keys.first)
            theirs = other.rows[columns["label"]]
            said = parse_label_cells(other.name, self.mapping, theirs, str(theirs.name)).set_axis(keys.second).dropna()
            differ = (labels[~labels.index.duplicated()].reindex(said.index) != said).fillna(True)
            if differ.any():
                own = self.columns["label"]
                message = f"labels {int(differ.sum()):,} of {len(said):,} rows differently from {own!r} of {self.name}"
                ways = f"expected one column of labels (--ignore {own}, or --ignore {theirs.name})"
                raise InputError(other.name, [Problem(f"{message}: {ways}", column=str(theirs.name))])
        for ours in (*CLAIM_COLUMNS, GRADE_COLUMN):
            theirs_name = columns.get(ours)
            if theirs_name is None or ours in self.columns or theirs_name in self.rows:
                continue
            said = pd.Series(other.rows[theirs_name].to_numpy(), index=keys.second).dropna()
            said = said[~pd.MultiIndex.from_arrays([said.index, said.astype("str")]).duplicated()]
            if said.index.has_duplicates:
                claim = said.index[said.index.duplicated()][0]
                message = f"expected one {ours} for a claim in all of its rows, found several for {claim!r}"
                raise InputError(other.name, [Problem(message, column=theirs_name)])
            if len(said):
                self.rows = self.rows.assign(**{theirs_name: keys.first.map(said).to_numpy()})
                self.columns[ours] = theirs_name

    def distinct_claims(self) -> tuple[np.ndarray, np.ndarray]:
        """The row in which each claim stands first, and for each row which of these claims it is about."""
        every = np.arange(len(self.rows))
        is_long = self.has_annotator_rows or (self.has_verdicts and not self.evaluators)
        if not is_long and not any(one.repeat is not None for one in self.evaluators.values()):
            return every, every
        keys = ["claim_id"] if "claim_id" in self.columns else list_claim_key_columns(self.columns)
        if ROW_COLUMN in self.rows:
            keyed = self.rows[ROW_COLUMN]
        elif "claim" in keys or keys == ["claim_id"]:
            keyed = join_key_cells(self.rows, [self.columns[key] for key in keys])
        else:
            return every, every  # without text a row is a claim
        of_row, _ = pd.factorize(keyed)
        return np.unique(of_row, return_index=True)[1], of_row

    def make_claims(self, rows: np.ndarray) -> pd.DataFrame:
        """The claims that stand in some rows, validated; columns that are nobody's are kept."""
        table = self.rows.iloc[rows].reset_index(drop=True)
        made: dict[str, Any] = {
            ours: table[self.columns[ours]] for ours in (*CLAIM_COLUMNS, GRADE_COLUMN) if ours in self.columns
        }
        if self.has_annotator_rows:
            made.pop("label", None)  # one annotator's, and no more
        if "dataset" not in made:
            made["dataset"] = pd.Series([name_table_stem(self.name)] * len(table), dtype="object")
        if "claim" not in made:
            places = zip(made["dataset"], rows + 1, strict=True)
            made["claim"] = pd.Series([make_text_placeholder(*place) for place in places], dtype="object")
        if "doc" in made:
            made["doc"] = made["doc"].map(join_passages_into_document)
        if "label" in made:
            column = self.columns["label"]
            made["label"] = self._parse_labels(made["label"])
            if column in self.mapping.threshold and GRADE_COLUMN not in {*table.columns, *made} - {column}:
                made[GRADE_COLUMN] = parse_judgement_numbers(table[column])
        read = {*self.columns.values(), *made, *self.annotators.values(), ROW_COLUMN}
        read |= {*ANNOTATION_COLUMNS} if self.has_annotator_rows else set()
        for one in self.evaluators.values():
            read |= {*one.columns, one.raw or "", one.status or "", one.repeat or ""}
        made |= {column: table[column] for column in table.columns if column not in (*read, *CLAIM_COLUMNS)}
        return validate_claims(pd.DataFrame(made), source=self.name, has_own_dataset="dataset" in self.columns)

    def _parse_labels(self, values: pd.Series) -> pd.Series:
        return parse_label_cells(self.name, self.mapping, values, self.columns["label"])

    def find_claim_ids(self, claims: pd.DataFrame | None) -> pd.Series:
        """For each row the id of the claim, in another table, that it is about. Raises `InputError`."""
        if claims is None and "claim_id" in self.columns:
            return self.rows[self.columns["claim_id"]]
        own = {} if claims is None else {one: one for one in CLAIM_COLUMNS if claims[one].notna().any()}
        keys = None if claims is None else find_common_keys(claims, own, self.rows, self.columns)
        if keys is None:
            expected = "expected a column for 'claim_id', or for 'claim' with the claim's text"
            message = f"cannot tell which claims the verdicts are of: {expected} (--id COLUMN)"
            raise InputError(self.name, [Problem(message)])
        if keys.names == ["claim_id"]:
            self.notes += [] if keys.note is None else [keys.note]
            return keys.second
        if keys.first.duplicated().any():
            message = f"several claims have the same {', '.join(keys.names)}: expected a column for 'claim_id'"
            raise InputError(self.name, [Problem(message)])
        assert claims is not None
        ids = keys.second.map(pd.Series(claims["claim_id"].to_numpy(), index=keys.first))
        column = self.columns["claim"]
        check_cells(self.name, column, self.rows[column], ids.isna(), "expected the text of a claim")
        return ids

    def make_verdicts(self, claim_ids: pd.Series) -> list[pd.DataFrame]:
        """The verdicts of the rows' claims: a table for each statement."""
        made = [self._make_verdict_rows(one, claim_ids) for one in self._list_evaluators()]
        return [self._take_verdicts_once(rows) for rows in made] if self.has_annotator_rows else made

    def _list_evaluators(self) -> list[_Statement]:
        every = np.arange(len(self.rows))
        if self.evaluators:
            return [_Statement(name, one, every) for name, one in self.evaluators.items()]
        columns = {ours: self.columns.get(ours) for ours in ("score", "prediction", "raw", "status", "repeat")}
        status = columns["status"]
        if status is not None and not self.rows[status].dropna().isin(STATUSES).all():
            columns["status"] = None  # it tells of something else
        own = EvaluatorColumnMapping.model_validate(columns)
        named = self.columns.get("evaluator")
        if named is None:
            stem = name_table_stem(self.name)
            return [_Statement(stem, self._add_scale(own, stem), every)]
        who = self.rows[named].astype("str").where(self.rows[named].notna(), None)
        judged = [self.rows[one].notna() for one in own.columns]
        is_said = ~self.is_of_people & ~who.isin(self.mapping.ignore).to_numpy()
        is_said &= (who.notna() | np.logical_or.reduce(judged)).to_numpy()
        if not self.mapping.scale and not self.mapping.threshold:
            return [_Statement(who, own, every[is_said])]
        codes, names = pd.factorize(who, use_na_sentinel=False)
        return [
            _Statement(who, self._add_scale(own, str(name)), np.flatnonzero(is_said & (codes == at)))
            for at, name in enumerate(names)
        ]

    def _add_scale(self, columns: EvaluatorColumnMapping, name: str) -> EvaluatorColumnMapping:
        """The columns of a long table with the scale and the threshold of one evaluator, or of the column."""
        found = {}
        for key in ("scale", "threshold"):
            said = getattr(self.mapping, key)
            found[key] = said.get(name, said.get(columns.score))
        return columns.model_copy(update=found)

    def _make_verdict_rows(self, said: _Statement, claim_ids: pd.Series) -> pd.DataFrame:
        """Verdicts from a column of scores, of predictions or both; an empty cell is an unscored claim."""
        one = said.columns
        rows = self.rows.iloc[said.rows]
        is_long = not self.evaluators
        who = said.who.iloc[said.rows].to_numpy() if isinstance(said.who, pd.Series) else said.who
        made = pd.DataFrame({"claim_id": claim_ids.iloc[said.rows].to_numpy(), "evaluator": who}, index=rows.index)
        predicted = pd.Series(pd.NA, index=rows.index, dtype="Int8")
        score, prediction = one.score, one.prediction
        if score is not None and has_only_words(self.rows[score]):
            score, prediction = None, prediction or score
        raw = pd.Series(None, index=rows.index, dtype="object")
        if score is not None:
            raw = raw.mask(self._find_unreadable_cells(score)[rows.index], rows[score])
            support, predicted, grades = self._scale_scores(rows[score], one)
            made["score"] = support
            if grades is not None and grades.notna().any():
                made[GRADE_COLUMN] = grades
        if prediction is not None:
            predicted = parse_label_words(self.name, self.mapping, rows[prediction], prediction).fillna(predicted)
        if one.raw is not None:
            words = rows[one.raw].map(lambda cell: None if has_no_value(cell) else str(cell)).astype("object")
            raw = words.where(words.notna(), raw)
        made["prediction"], made["raw"] = predicted, raw
        made["status"] = np.where(predicted.notna(), "ok", np.where(raw.notna(), "unparsed", "skipped"))
        if one.status is not None:
            made["status"] = rows[one.status].where(rows[one.status].notna(), made["status"])
        if one.repeat is not None:
            numbers = pd.to_numeric(rows[one.repeat], errors="coerce")
            made["repeat"] = rows[one.repeat] if not numbers.min() > 0 else numbers - numbers.min()  # from 0
        if is_long:
            own = [ours for ours in ("chunk_scores", GRADE_COLUMN) if ours in self.columns and ours not in made]
            made = made.assign(**{ours: rows[self.columns[ours]] for ours in own})
        return made

    def _take_verdicts_once(self, verdicts: pd.DataFrame) -> pd.DataFrame:
        """A verdict for each claim, of a row for each of its annotators. Raises `InputError` where two differ."""
        said = verdicts[[name for name in verdicts if name in VERDICT_COLUMNS]].drop_duplicates()
        if (differ := said.duplicated(["claim_id", "evaluator"])).any():
            row, name = int(said.index[differ][0]), said["evaluator"].iloc[0]
            message = f"expected one verdict of {name} for a claim in all rows of its annotators, found two"
            raise InputError(self.name, [Problem(message, row + 1)])
        return said

    def make_annotations(self, claim_ids: pd.Series) -> pd.DataFrame:
        """What each annotator said of the rows' claims; a cell that is empty says nothing."""
        every = pd.Series(True, index=self.rows.index)
        said: list[tuple[Any, str, pd.Series]] = [(name, column, every) for name, column in self.annotators.items()]
        if self.has_annotator_rows:
            said = [(self.rows[self.columns["annotator"]], self.columns["label"], every)]
        if self.is_of_people.any():
            column = self.columns.get("prediction") or self.columns["score"]
            said = [(self.rows[self.columns["evaluator"]], column, pd.Series(self.is_of_people))]
        parts = []
        for annotator, column, is_mine in said:
            made = pd.DataFrame({"claim_id": claim_ids.to_numpy(), "annotator": annotator})[is_mine.to_numpy()]
            values = self.rows[column][is_mine]
            made["label"] = parse_label_cells(self.name, self.mapping, values, column)
            made["grade"] = [None if has_no_value(value) else str(value) for value in values]
            for ours in ("start", "end", "note", "seconds") if self.has_annotator_rows else ():
                if ours in self.rows:
                    made[ours] = self.rows[ours]
            parts.append(made[made["grade"].notna() | made["label"].notna()])  # a blank cell may be a label
        return pd.concat(parts, ignore_index=True)

    def _find_unreadable_cells(self, column: str) -> pd.Series:
        """The few cells of a column of scores that are no scores ("timeout"), which are told: no verdicts. Raises
        `InputError` where they are more."""
        values = self.rows[column]
        is_present = ~values.map(has_no_value).astype(bool)
        is_wrong = parse_judgement_numbers(values).isna() & is_present
        n_wrong, n_present = int(is_wrong.sum()), int(is_present.sum())
        if n_wrong > MAX_UNREADABLE_SHARE * n_present:
            check_cells(self.name, column, values, is_wrong, "expected a number")
        if n_wrong:
            words = ", ".join(map(repr, dict.fromkeys(map(str, values[is_wrong][:3]))))
            note = f"scores  {column}: {n_wrong:,} of {n_present:,} cells are no scores ({words}): unscored"
            self.notes += [note] if note not in self.notes else []
        return is_wrong

    def _scale_scores(
        self, cells: pd.Series, columns: EvaluatorColumnMapping
    ) -> tuple[pd.Series, pd.Series, pd.Series | None]:
        """Scores brought to [0, 1], whether each is beyond the threshold, and their grades, if any."""
        column = str(columns.score)
        if columns.scale is None and (words := self.mapping.words.get(column)):
            said = {normalise_vocabulary_words(word): value for word, value in words.items()}
            cells = cells.map(lambda cell: said.get(normalise_vocabulary_words(cell), cell))
        scale = columns.scale or (0.0, 1.0)
        found = scale_judgement_numbers(parse_judgement_numbers(cells), scale, columns.threshold)
        low, high = scale if not isinstance(scale, str) else (-np.inf, np.inf)
        expected = f"expected a number from {low:g} to {high:g} (or say --scale {column}=LOW:HIGH)"
        check_cells(self.name, column, cells, (found[0] < 0) | (found[0] > 1), expected)
        return found
