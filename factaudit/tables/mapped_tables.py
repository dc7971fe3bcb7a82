"""A mapping applied: the claims, the verdicts and the annotations that a user's tables make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd

from factaudit.errors import InputError, Problem
from factaudit.tables import (
    CLAIM_COLUMNS,
    VERDICT_COLUMNS,
    make_claim_ids_from_content,
    merge_claim_tables,
    validate_claims,
    validate_verdicts,
)
from factaudit.tables.annotations import (
    ANNOTATION_COLUMNS,
    label_claims_by_annotations,
    list_annotator_judgements,
    validate_annotations,
)
from factaudit.tables.cell_values import has_no_value, has_only_words, parse_judgement_numbers
from factaudit.tables.claim_joins import check_labels_agree, find_claim_ids, join_claim_columns, list_common_claim_keys
from factaudit.tables.claim_keys import (
    join_claim_key_cells,
    join_passages_into_document,
    list_claim_key_columns,
    name_table_stem,
)
from factaudit.tables.column_mapping import ColumnMapping, EvaluatorColumnMapping
from factaudit.tables.column_parsing import TEXT_DTYPE
from factaudit.tables.label_cells import check_cells, parse_label_cells, parse_label_words
from factaudit.tables.meanings import scale_judgement_numbers
from factaudit.tables.schema import GRADE_COLUMN, STATUSES, make_text_placeholder
from factaudit.tables.standard_columns import OWN_COLUMNS
from factaudit.tables.unmapped_tables import describe_unmapped_table
from factaudit.tables.unreadable_rows import MAX_UNREADABLE_SHARE
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
    Where some tables have claims and no verdicts, the verdicts of the others are joined to these by ``claim_id``, else
    by the claim's text where no two claims share it; else verdicts belong to the claim of their own row (in the long
    form each claim is taken once). So are annotations. Raises `InputError` naming table, row and column.
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
        column = one.source_columns["label"]
        name = column if len(labelled) == 1 else one.name if stems.count(stem) > 1 else stem
        one.annotators[name] = column
        one.has_annotations = True
    for one, (_, table) in zip(read, tables, strict=True):
        if not one.has_claims and not one.has_verdicts and not one.has_annotations:
            raise InputError(one.name, [Problem(describe_unmapped_table(table))])
    owners = [one for one in read if one.has_claims]
    for told in (lambda one: one.has_verdicts, lambda one: one.has_annotator_rows):
        owners = [one for one in owners if not told(one)] or owners
    parts, rows_of_claims = [], []
    for one in owners:
        for other in read:
            if other not in owners:
                one.join_claim_columns(other)
        first, of_row = one.distinct_claims()
        parts.append((one.name, one.make_claims(first)))
        rows_of_claims.append(of_row)
    nameless = [claims for one, (_, claims) in zip(owners, parts, strict=True) if "claim_id" not in one.source_columns]
    if len(parts) > 1 and nameless:  # over all files together, so that equal rows of two files get two ids
        together = pd.concat(nameless, ignore_index=True)
        new_ids = make_claim_ids_from_content(together, all(map(_MappedTable.names_dataset, owners))).tolist()
        for claims in nameless:
            claims["claim_id"], new_ids = pd.Series(new_ids[: len(claims)], dtype=TEXT_DTYPE), new_ids[len(claims) :]
    own_ids = {
        name: claims["claim_id"].iloc[of_row].reset_index(drop=True)
        for (name, claims), of_row in zip(parts, rows_of_claims, strict=True)
    }
    whole = merge_claim_tables([claims for _, claims in parts], [name for name, _ in parts]) if parts else None

    ids = {one.name: own_ids[one.name] if one.name in own_ids else one.find_claim_ids(whole) for one in read}
    people = [(one.name, one.make_annotations(ids[one.name])) for one in read if one.has_annotations]
    annotations = None
    if people:
        named = ", ".join(name for name, _ in people)
        annotations = validate_annotations(pd.concat([rows for _, rows in people]), claims=whole, source=named)
        if whole is not None:
            majority = (
                whole["claim_id"]
                .map(label_claims_by_annotations("majority", list_annotator_judgements(annotations)))
                .astype("Int8")
            )
            whole = whole.assign(label=whole["label"].fillna(majority))
    verdicts = [rows for one in read if one.has_verdicts for rows in one.make_verdicts(ids[one.name]) if len(rows)]
    if not verdicts:
        if whole is None and annotations is None:
            named = ", ".join(one.name for one in read)
            raise InputError(named, [Problem("no column was taken for the claims: say --claim COLUMN")])
        return MappedTables(whole, None, annotations)
    named = ", ".join(one.name for one in read if one.has_verdicts)
    made = validate_verdicts(pd.concat(verdicts, ignore_index=True), claims=whole, source=named)
    return MappedTables(whole, made, annotations, [note for one in read for note in one.notes])


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
        self.source_columns = self._find_source_columns()
        self.has_claims = "claim" in self.source_columns
        #: A row for each labelled claim, told from others by its number or id. (Documents without claims are no such.)
        self.has_labels = (
            "label" in self.source_columns
            and not {"annotator", "doc"} & set(self.source_columns)
            and (bool(self.evaluators) or bool({"claim_id", "score", "prediction"} & set(self.source_columns)))
        )
        self.has_annotator_rows = {"annotator", "label"} <= set(self.source_columns)
        self.has_annotations = self.has_annotator_rows or bool(self.annotators) or bool(self._list_people_rows().any())
        self.has_verdicts = bool(self.evaluators) or bool({"score", "prediction"} & set(self.source_columns))

    def _list_people_rows(self) -> pd.Series:
        """Which rows of the long form hold what a person said."""
        named = self.source_columns.get("evaluator")
        if named is None or not self.mapping.people_evaluators:
            return pd.Series(False, index=self.rows.index)
        return self.rows[named].astype("str").isin(self.mapping.people_evaluators)

    def _find_source_columns(self) -> dict[str, str]:
        """Column of ours -> the table's; one that already has our name needs no mapping."""
        found: dict[str, str] = {}
        for ours, theirs in self.mapping.columns.items():
            present = [one for one in ([theirs] if isinstance(theirs, str) else theirs) if one in self.rows]
            if len(present) > 1:
                message = f"for {ours!r} the mapping names {present!r}, and the table has both"
                raise InputError(self.name, [Problem(message)])
            if present:
                found[ours] = present[0]
        used = {*found.values(), *(column for one in self.evaluators.values() for column in one.columns)}
        used |= {*self.annotators.values()} | ({*self.mapping.ignore} if self.own_kind is None else set())
        own = (*CLAIM_COLUMNS, *VERDICT_COLUMNS, "annotator") if self.own_kind is None else OWN_COLUMNS[self.own_kind]
        for ours in dict.fromkeys(own):
            if ours in self.rows and ours not in used and ours not in found:
                found[ours] = ours
        if self.evaluators:  # the wide form: what else looks like a verdict is a column like any other
            found = {
                o: theirs for o, theirs in found.items() if o in (*CLAIM_COLUMNS, GRADE_COLUMN, "annotator", "agreed")
            }
        return found

    def join_claim_columns(self, other: _MappedTable) -> None:
        """Take from a table of verdicts what it alone says of these claims."""
        columns = other.source_columns
        if other.own_kind == "verdicts":
            columns = columns | {ours: ours for ours in CLAIM_COLUMNS if ours in other.rows}
        if not other.has_verdicts or other.has_annotator_rows:
            return
        keys = list_common_claim_keys(self.rows, self.source_columns, other.rows, columns)
        if keys is None:
            return
        if "label" in self.source_columns and "label" in columns and not self.has_annotator_rows:
            own, theirs = self.source_columns["label"], columns["label"]
            labels = self._parse_labels(self.rows[own], own).set_axis(keys[0]).rename(own)
            said = other._parse_labels(other.rows[theirs], theirs).set_axis(keys[1]).rename(theirs)
            check_labels_agree(labels, said, self.name, other.name)
        self.rows, self.source_columns = join_claim_columns(
            self.rows, self.source_columns, other.name, other.rows, columns, keys
        )

    def distinct_claims(self) -> tuple[np.ndarray, np.ndarray]:
        """The row in which each claim stands first, and for each row which of these claims it is about."""
        is_repeated = any(one.repeat is not None for one in self.evaluators.values())
        if not self.has_annotator_rows and not is_repeated and (not self.has_verdicts or self.evaluators):
            rows = np.arange(len(self.rows))
            return rows, rows
        keys = ["claim_id"] if "claim_id" in self.source_columns else list_claim_key_columns(self.source_columns)
        if "claim" not in keys and keys != ["claim_id"]:
            return np.arange(len(self.rows)), np.arange(len(self.rows))  # without text a row is a claim
        of_row, _ = pd.factorize(join_claim_key_cells(self.rows, [self.source_columns[key] for key in keys]))
        return np.unique(of_row, return_index=True)[1], of_row

    def make_claims(self, rows: np.ndarray) -> pd.DataFrame:
        """The claims that stand in some rows, validated; columns that are nobody's are kept."""
        table = self.rows.iloc[rows].reset_index(drop=True)
        made: dict[str, Any] = {}
        for ours in (*CLAIM_COLUMNS, GRADE_COLUMN):
            if ours == "label" and self.has_annotator_rows:
                continue  # one annotator's, and no more
            if ours in self.source_columns:
                made[ours] = table[self.source_columns[ours]]
        if "dataset" not in made:
            made["dataset"] = pd.Series([name_table_stem(self.name)] * len(table), dtype="object")
        if "claim" not in made:
            places = zip(made["dataset"], rows + 1, strict=True)
            made["claim"] = pd.Series([make_text_placeholder(*place) for place in places], dtype="object")
        if "doc" in made:
            made["doc"] = made["doc"].map(join_passages_into_document)
        if "label" in made:
            column = self.source_columns.get("label", "label")
            made["label"] = self._parse_labels(made["label"], column, rows)
            if column in self.mapping.threshold and GRADE_COLUMN not in {*table.columns, *made} - {column}:
                made[GRADE_COLUMN] = parse_judgement_numbers(table[column])
        said = {column for one in self.evaluators.values() for column in one.columns}
        said |= {*self.annotators.values(), *(ANNOTATION_COLUMNS if self.has_annotator_rows else ())}
        said |= {column for one in self.evaluators.values() for column in (one.raw, one.status, one.repeat) if column}
        read = {*self.source_columns.values(), *said, *made}
        made |= {column: table[column] for column in table.columns if column not in read}
        return validate_claims(pd.DataFrame(made), source=self.name, has_own_dataset=self.names_dataset())

    def names_dataset(self) -> bool:
        """Whether the data set is more than the file's name."""
        return "dataset" in self.source_columns

    def _parse_labels(self, values: pd.Series, column: str, rows: np.ndarray | slice = slice(None)) -> pd.Series:
        """Labels as 1, 0 or null; where a column says whether somebody agreed with them, what follows from both."""
        labels = parse_label_cells(self.name, self.mapping, values, column)
        if "agreed" not in self.source_columns:
            return labels
        name = self.source_columns["agreed"]
        agreed = parse_label_words(self.name, self.mapping, self.rows[name].iloc[rows].set_axis(labels.index), name)
        return labels.where(agreed == 1, 1 - labels).mask(agreed.isna(), pd.NA)

    def find_claim_ids(self, claims: pd.DataFrame | None) -> pd.Series:
        """For each row the id of the claim, in another table, that it is about."""
        ids, note = find_claim_ids(self.name, self.rows, self.source_columns, claims)
        if note is not None:
            self.notes.append(note)
        return ids

    def make_verdicts(self, claim_ids: pd.Series) -> list[pd.DataFrame]:
        """The verdicts of the rows' claims, a table per evaluator (or one, in the long form)."""
        if self.evaluators:
            made = [
                self._add_what_a_log_says(
                    self._make_verdict_rows(claim_ids, name, one.score, one.prediction, one.scale, one.threshold), one
                )
                for name, one in self.evaluators.items()
            ]
            return [self._take_verdicts_once(rows) for rows in made] if self.has_annotator_rows else made
        evaluator: Any = name_table_stem(self.name)
        if "evaluator" in self.source_columns:
            evaluator = self.rows[self.source_columns["evaluator"]].to_numpy()
        rows = self._make_verdict_rows(
            claim_ids, evaluator, self.source_columns.get("score"), self.source_columns.get("prediction")
        )
        for ours in ("raw", "chunk_scores", "repeat", *([GRADE_COLUMN] if self.own_kind == "verdicts" else [])):
            if ours in self.source_columns:
                rows[ours] = self.rows[self.source_columns[ours]].to_numpy()
        if "repeat" in rows and (numbers := pd.to_numeric(rows["repeat"], errors="coerce")).min() > 0:
            rows["repeat"] = numbers - numbers.min()  # people count from 1
        if "status" in self.source_columns:
            said = self.rows[self.source_columns["status"]]
            if said.dropna().isin(STATUSES).all():  # else it tells of something else
                rows["status"] = said.fillna("ok").to_numpy()
        further = [str(name) for name in self.rows if name not in {*self.source_columns.values(), *VERDICT_COLUMNS}]
        rows[further] = self.rows[further].to_numpy()  # one may tell runs of an evaluator apart
        is_skipped = self._list_people_rows() | rows["evaluator"].astype("str").isin(self.mapping.ignore)
        return [rows[~is_skipped.to_numpy()]]

    def _add_what_a_log_says(self, rows: pd.DataFrame, evaluator: EvaluatorColumnMapping) -> pd.DataFrame:
        """One evaluator's verdicts with its words, why it failed, and which repeat of a claim's verdicts each is."""
        if evaluator.raw is not None:
            said = self.rows[evaluator.raw].map(lambda cell: None if has_no_value(cell) else str(cell))
            rows["raw"] = said.where(said.notna(), rows.get("raw"))
            rows["status"] = rows["status"].mask(rows["prediction"].isna() & rows["raw"].notna(), "unparsed")
        if evaluator.status is not None:
            said = self.rows[evaluator.status]
            rows["status"] = said.where(said.notna(), rows["status"])
        return rows if evaluator.repeat is None else rows.assign(repeat=self.rows[evaluator.repeat].to_numpy())

    def _take_verdicts_once(self, verdicts: pd.DataFrame) -> pd.DataFrame:
        """A verdict for each claim, of a row for each of its annotators. Raises `InputError` where two differ."""
        said = verdicts.drop_duplicates()
        if (differ := said["claim_id"].duplicated()).any():
            row, name = int(said.index[differ][0]), said["evaluator"].iloc[0]
            message = f"expected one verdict of {name} for a claim in all rows of its annotators, found two"
            raise InputError(self.name, [Problem(message, row + 1)])
        return said

    def make_annotations(self, claim_ids: pd.Series) -> pd.DataFrame:
        """What each annotator said of the rows' claims; a cell that is empty says nothing."""
        said = {name: (pd.Series(name, index=self.rows.index), column) for name, column in self.annotators.items()}
        if self.has_annotator_rows:
            said = {"": (self.rows[self.source_columns["annotator"]], self.source_columns["label"])}
        people, parts = self._list_people_rows(), []
        if people.any():
            column = self.source_columns.get("prediction") or self.source_columns["score"]
            said = {"": (self.rows[self.source_columns["evaluator"]], column)}
        for annotator, column in said.values():
            values = self.rows[column].where(people, None) if people.any() else self.rows[column]
            rows = pd.DataFrame({"claim_id": claim_ids.to_numpy(), "annotator": annotator.to_numpy()})
            rows["label"] = self._parse_labels(values, column).to_numpy()
            is_grade = "agreed" not in self.source_columns
            rows["grade"] = [str(value) if is_grade and not has_no_value(value) else None for value in values]
            for ours in ("start", "end", "note", "seconds") if self.has_annotator_rows else ():
                if ours in self.rows:
                    rows[ours] = self.rows[ours].to_numpy()
            is_said = rows["grade"].notna() | rows["label"].notna()  # a blank cell may be a label
            parts.append(rows[is_said & people.to_numpy()] if people.any() else rows[is_said])
        return pd.concat(parts, ignore_index=True)

    def _make_verdict_rows(
        self,
        claim_ids: pd.Series,
        evaluator: Any,
        score: str | None,
        prediction: str | None,
        scale: tuple[float, float] | str | None = None,
        threshold: float | None = None,
    ) -> pd.DataFrame:
        """Verdicts from a column of scores, of predictions or both; an empty cell is an unscored claim."""
        if score is not None and has_only_words(self.rows[score]):
            score, prediction = None, prediction or score
        rows = pd.DataFrame({"claim_id": claim_ids.to_numpy(), "evaluator": evaluator})
        predicted = pd.Series(pd.NA, index=self.rows.index, dtype="Int8")
        if score is not None and score in self.rows:
            groups: dict[str | None, np.ndarray] = {None: np.ones(len(rows), dtype=bool)}
            if isinstance(evaluator, np.ndarray) and any(
                (self.mapping.scale, self.mapping.threshold, self.mapping.ignore)
            ):
                groups = {name: rows["evaluator"].astype("str").to_numpy() == name for name in set(map(str, evaluator))}
            support, grade = (pd.Series(np.nan, index=self.rows.index) for _ in range(2))
            unreadable = self._find_unreadable_cells(score)
            for name, mask in groups.items():
                keys = [name or str(evaluator), score]
                own = (
                    next((self.mapping.scale[key] for key in keys if key in self.mapping.scale), scale),
                    next((self.mapping.threshold[key] for key in keys if key in self.mapping.threshold), threshold),
                )
                if name not in (*self.mapping.ignore, *self.mapping.people_evaluators):
                    support[mask], predicted[mask], grades = self._scale_scores(score, mask, *own)
                    grade[mask] = np.nan if grades is None else grades
            rows["score"] = support.to_numpy()
            if grade.notna().any():
                rows[GRADE_COLUMN] = grade.to_numpy()
            if unreadable.any():
                rows["raw"] = self.rows[score].where(unreadable, None).to_numpy()
        if prediction is not None and prediction in self.rows:
            predicted = parse_label_words(self.name, self.mapping, self.rows[prediction], prediction).fillna(predicted)
        rows["prediction"] = predicted.to_numpy()
        rows["status"] = np.where(predicted.isna().to_numpy(), "skipped", "ok")
        if "raw" in rows:
            rows.loc[rows["raw"].notna().to_numpy() & predicted.isna().to_numpy(), "status"] = "unparsed"
        return rows

    def _find_unreadable_cells(self, column: str) -> pd.Series:
        """The few cells of a column of scores that are no scores ("timeout"), which are told: no verdicts. Raises
        `InputError` where they are more."""
        values = self.rows[column]
        is_wrong = parse_judgement_numbers(values).isna() & ~values.map(has_no_value)
        n_wrong, n_present = int(is_wrong.sum()), int((~values.map(has_no_value)).sum())
        if n_wrong > MAX_UNREADABLE_SHARE * n_present:
            check_cells(self.name, self.rows[column], is_wrong, "expected a number")
        if n_wrong:
            words = ", ".join(map(repr, dict.fromkeys(map(str, values[is_wrong][:3]))))
            self.notes.append(f"scores  {column}: {n_wrong:,} of {n_present:,} cells are no scores ({words}): unscored")
        return is_wrong

    def _scale_scores(
        self, column: str, is_mine: np.ndarray, scale: tuple[float, float] | str | None, threshold: float | None
    ) -> tuple[pd.Series, pd.Series, pd.Series | None]:
        """Some rows' scores brought to [0, 1], whether each is beyond the threshold, and their grades, if any."""
        cells = self.rows[column][is_mine]
        if scale is None and (words := self.mapping.words.get(column)):
            said = {normalise_vocabulary_words(word): value for word, value in words.items()}
            cells = cells.map(lambda cell: said.get(normalise_vocabulary_words(cell), cell))
        scale = scale or (0.0, 1.0)
        found = scale_judgement_numbers(parse_judgement_numbers(cells), scale, threshold)
        wrong = pd.Series(False, index=self.rows.index)
        wrong[is_mine] = (found[0] < 0) | (found[0] > 1)
        low, high = scale if not isinstance(scale, str) else (-np.inf, np.inf)
        check_cells(
            self.name,
            self.rows[column],
            wrong,
            f"expected a number from {low:g} to {high:g} (or say --scale {column}=LOW:HIGH)",
        )
        return found
