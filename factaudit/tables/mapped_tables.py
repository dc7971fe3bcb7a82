"""A mapping applied: the claims, the verdicts and the annotations that a user's tables make.

One table, or several, *own* the claims: those with a column for them. The rows of every other table
are about one of these, by its id or by its text. What a table says of its rows' claims becomes
verdicts (a column for each evaluator, or a row for each) and annotations (a column for each
annotator, or a row for each).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from factaudit.tables.column_kinds import is_name_of_model
from factaudit.tables.column_mapping import ColumnMapping, EvaluatorColumnMapping
from factaudit.tables.column_parsing import TEXT_DTYPE
from factaudit.tables.label_cells import check_cells, parse_label_cells, parse_label_words
from factaudit.tables.meanings import scale_judgement_numbers
from factaudit.tables.schema import (
    CLAIM_COLUMNS,
    GRADE_COLUMN,
    STATUSES,
    VERDICT_COLUMNS,
    make_text_placeholder,
)
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
    """What became of the tables: validated claims, verdicts and annotations, None where there are
    none; and notes of cells that could not be read."""

    claims: pd.DataFrame | None
    verdicts: pd.DataFrame | None
    annotations: pd.DataFrame | None = None
    notes: Sequence[str] = ()


def apply_mapping_to_tables(
    tables: Sequence[tuple[str, pd.DataFrame]],
    mapping: ColumnMapping,
    own_kinds: Sequence[str | None] = (),
) -> MappedTables:
    """Make claims, verdicts and annotations of tables (name, rows) by a mapping.

    own_kinds: of each table what `classify_standard_tables` says; a table of ours is that and
    nothing else. Claims that have no label of their own get the majority's of their annotators.
    Raises `InputError` naming table, row and column.
    """
    read = [
        _MappedTable(name, table.reset_index(drop=True), mapping, kind)
        for (name, table), kind in zip_longest(tables, own_kinds)
    ]
    owners = [one for one in read if "claim" in one.columns]
    # Labels and verdicts are enough for rates.
    if not owners and any(one.has_verdicts for one in read):
        owners = [one for one in read if one.has_labels]
    for is_told in (lambda one: one.has_verdicts, lambda one: one.has_annotator_rows):
        owners = [one for one in owners if not is_told(one)] or owners
    notes: list[str] = []
    if len(owners) > 1 and _join_tables_of_same_claims(owners):
        notes.append(f"claims  the same in {', '.join(one.name for one in owners)}: read once")
        owners = [max(owners, key=lambda one: len(one.rows))]
    others = [one for one in read if one not in owners]
    # What one annotator said each.
    labelled = [one for one in others if one.has_labels and not one.has_verdicts]
    stems = [name_table_stem(one.name) for one in labelled]
    for one, stem in zip(labelled, stems, strict=True):
        column = one.columns["label"]
        one.annotators[
            column if len(labelled) == 1 else one.name if stems.count(stem) > 1 else stem
        ] = column
    for one in others:
        if not one.has_verdicts and not one.has_annotations and "claim" not in one.columns:
            raise InputError(
                one.name, [Problem(_describe_unmapped_columns([*map(str, one.rows.columns)]))]
            )

    claims, ids = _make_claims(owners)
    for one in others:
        ids[one.name] = one.find_claim_ids(claims)
        if claims is not None and one.has_verdicts and not one.has_annotator_rows:
            claims = one.add_to_claims(claims, ids[one.name], owners)
    annotations = None
    if said := [one for one in read if one.has_annotations]:
        whole = pd.concat([one.make_annotations(ids[one.name]) for one in said])
        annotations = validate_annotations(
            whole, claims=claims, source=", ".join(one.name for one in said)
        )
    if annotations is not None and claims is not None:
        judged = list_annotator_judgements(annotations)
        majority = (
            claims["claim_id"].map(label_claims_by_annotations("majority", judged)).astype("Int8")
        )
        claims = claims.assign(label=claims["label"].fillna(majority))
    judges = [one for one in read if one.has_verdicts]
    made = [rows for one in judges for rows in one.make_verdicts(ids[one.name]) if len(rows)]
    notes += [note for one in read for note in one.notes]
    if not made:
        if claims is None and annotations is None:
            named = ", ".join(one.name for one in read)
            raise InputError(
                named, [Problem("no column was taken for the claims: say --claim COLUMN")]
            )
        return MappedTables(claims, None, annotations, notes)
    source = ", ".join(one.name for one in judges)
    verdicts = validate_verdicts(pd.concat(made, ignore_index=True), claims=claims, source=source)
    return MappedTables(claims, verdicts, annotations, notes)


def _describe_unmapped_columns(names: Sequence[str]) -> str:
    if not names:
        return "nothing in it is mapped: it has no column"
    listed = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")
    expected = (
        "a row for each claim, and columns for 'claim', 'label', and a score or a verdict of each"
        " evaluator"
    )
    return (
        f"nothing in it is mapped: expected {expected}; it has {listed}: say --claim COLUMN, or"
        " turn the table round"
    )


def _join_tables_of_same_claims(owners: Sequence[_MappedTable]) -> bool:
    """Join tables that hold the claims of the largest one, or some of them; False where they do
    not.

    Each keeps what one person or one judge said; columns that repeat the largest table's leave it.
    Where the labels differ, each file's are those of one annotator. Raises `InputError` where such
    a file is called after a model.
    """
    largest = max(owners, key=lambda one: len(one.rows))
    others = [one for one in owners if one is not largest]
    keys = [
        find_common_keys(largest.rows, largest.columns, one.rows, one.columns) for one in others
    ]
    for one in keys:
        if one is None or one.first.duplicated().any() or one.second.duplicated().any():
            return False
        if not one.second.isin(one.first).all():
            return False
    same: list[list[str]] = []
    for other, one in zip(others, keys, strict=True):
        assert one is not None
        base = largest.rows.set_axis(pd.Index(one.first), axis=0).loc[one.second].astype("str")
        both = [str(name) for name in other.rows if name in base]
        same.append(
            [
                name
                for name in both
                if (base[name].to_numpy() == other.rows[name].astype("str")).all()
            ]
        )
    told = [(one, names) for one, names in zip(others, same, strict=True) if "label" in one.columns]
    differing = any(one.columns["label"] not in names for one, names in told)
    for other, names in zip(others, same, strict=True):
        roles = ("claim_id", "claim", "doc", "system", *(["label"] if differing else []))
        kept = {other.columns[ours] for ours in roles if ours in other.columns}
        other.rows = other.rows.drop(columns=[name for name in names if name not in kept])
        other.find_columns()
    if differing and "label" in largest.columns:  # each is what one annotator said
        for name in (one.name for one in owners if is_name_of_model(name_table_stem(one.name))):
            message = (
                "the labels of the same claims differ between the files, and this one is called"
                " after a model"
            )
            raise InputError(
                name, [Problem(f"{message}: rename its column of labels to NAME_verdict")]
            )
        largest.annotators[name_table_stem(largest.name)] = largest.columns.pop("label")
    return True


def _make_claims(
    owners: Sequence[_MappedTable],
) -> tuple[pd.DataFrame | None, dict[str, pd.Series]]:
    """The claims of the tables that own some, and by table's name the ids of its rows' claims."""
    distinct = [one.distinct_claims() for one in owners]
    parts = [one.make_claims(first) for one, (first, _) in zip(owners, distinct, strict=True)]
    nameless = [
        claims for one, claims in zip(owners, parts, strict=True) if "claim_id" not in one.columns
    ]
    # Over all files together, so that equal rows of two files get two ids.
    if len(parts) > 1 and nameless:
        together = pd.concat(nameless, ignore_index=True)
        new_ids = make_claim_ids_from_content(
            together, all("dataset" in one.columns for one in owners)
        ).tolist()
        for claims in nameless:
            claims["claim_id"], new_ids = (
                pd.Series(new_ids[: len(claims)], dtype=TEXT_DTYPE),
                new_ids[len(claims) :],
            )
    ids = {
        one.name: claims["claim_id"].iloc[of_row].reset_index(drop=True)
        for one, claims, (_, of_row) in zip(owners, parts, distinct, strict=True)
    }
    return merge_claim_tables(parts, [one.name for one in owners]) if parts else None, ids


class _MappedTable:
    """One table and what the mapping says of its columns."""

    def __init__(
        self, name: str, rows: pd.DataFrame, mapping: ColumnMapping, own_kind: str | None
    ) -> None:
        self.name, self.rows, self.mapping = (
            name,
            rows.set_axis(rows.columns.map(str), axis=1),
            mapping,
        )
        self.own_kind = own_kind
        self.notes: list[str] = []
        self.find_columns()

    def find_columns(self) -> None:
        """Find which column of ours is which of the table's; one that already has our name needs no
        mapping."""
        mapping, kind = self.mapping, self.own_kind
        self.evaluators = {
            name: one
            for name, one in mapping.evaluators.items()
            if any(column in self.rows for column in one.columns)
        }
        self.annotators = {
            name: column for name, column in mapping.annotators.items() if column in self.rows
        }
        found: dict[str, str] = {}
        for ours, theirs in mapping.columns.items():
            present = [
                one for one in ([theirs] if isinstance(theirs, str) else theirs) if one in self.rows
            ]
            found |= {ours: present[0]} if present else {}
        used = {
            *found.values(),
            *self.annotators.values(),
            *(mapping.ignore if kind is None else ()),
        }
        used |= {column for one in self.evaluators.values() for column in one.columns}
        own = (*CLAIM_COLUMNS, *VERDICT_COLUMNS, "annotator") if kind is None else OWN_COLUMNS[kind]
        found |= {
            ours: ours
            for ours in own
            if ours in self.rows and ours not in used and ours not in found
        }
        # In the wide form what else looks like a verdict is a column like any other.
        if self.evaluators:
            found = {
                ours: one
                for ours, one in found.items()
                if ours in (*CLAIM_COLUMNS, GRADE_COLUMN, "annotator")
            }
        self.columns = found
        self.has_verdicts = bool(self.evaluators) or bool({"score", "prediction"} & {*found})
        self.has_annotator_rows = {"annotator", "label"} <= {*found}
        #: A row for each labelled claim, told from others by its number or id. (Documents without
        #: claims are no such.)
        is_document = "doc" in found and "claim" not in found
        self.has_labels = "label" in found and "annotator" not in found and not is_document
        self.has_labels = self.has_labels and (
            self.has_verdicts or bool({"claim_id", "claim"} & {*found})
        )
        #: Which rows of the long form hold what a person said.
        self.is_of_people = np.zeros(len(self.rows), dtype=bool)
        if "evaluator" in found and mapping.people_evaluators:
            self.is_of_people = (
                self.rows[found["evaluator"]]
                .astype("str")
                .isin(mapping.people_evaluators)
                .to_numpy()
            )

    @property
    def has_annotations(self) -> bool:
        return self.has_annotator_rows or bool(self.annotators) or bool(self.is_of_people.any())

    # Claims
    # ------------------------------------------------------------

    def distinct_claims(self) -> tuple[np.ndarray, np.ndarray]:
        """The row in which each claim stands first, and for each row which of these claims it is
        about."""
        every = np.arange(len(self.rows))
        is_long = self.has_annotator_rows or (self.has_verdicts and not self.evaluators)
        if not is_long and not any(one.repeat is not None for one in self.evaluators.values()):
            return every, every
        keys = ["claim_id"] if "claim_id" in self.columns else list_claim_key_columns(self.columns)
        if "claim" not in keys and keys != ["claim_id"]:
            return every, every  # without text a row is a claim
        keyed = join_key_cells(self.rows, [self.columns[key] for key in keys])
        of_row, _ = pd.factorize(keyed)
        return np.unique(of_row, return_index=True)[1], of_row

    def make_claims(self, rows: np.ndarray) -> pd.DataFrame:
        """The claims that stand in some rows, validated; columns that are nobody's are kept."""
        table = self.rows.iloc[rows].reset_index(drop=True)
        made: dict[str, Any] = {
            ours: self._read_claim_column(ours, table)
            for ours in (*CLAIM_COLUMNS, GRADE_COLUMN)
            if ours in self.columns and not (ours == "label" and self.has_annotator_rows)
        }
        made.setdefault(
            "dataset", pd.Series(name_table_stem(self.name), index=table.index, dtype="object")
        )
        if "claim" not in made:
            places = zip(made["dataset"], rows + 1, strict=True)
            made["claim"] = pd.Series(
                [make_text_placeholder(*place) for place in places], dtype="object"
            )
        column = self.columns.get("label")
        if column in self.mapping.threshold and GRADE_COLUMN not in {*table.columns, *made} - {
            column
        }:
            made[GRADE_COLUMN] = parse_judgement_numbers(table[column])
        read = {
            *CLAIM_COLUMNS,
            *self.columns.values(),
            *made,
            *self.annotators.values(),
        }
        read |= {*ANNOTATION_COLUMNS} if self.has_annotator_rows else set()
        for one in self.evaluators.values():
            read |= {*one.columns, one.raw or "", one.status or "", one.repeat or ""}
        made |= {column: table[column] for column in table.columns if column not in read}
        return validate_claims(
            pd.DataFrame(made), source=self.name, has_own_dataset="dataset" in self.columns
        )

    def _read_claim_column(self, ours: str, table: pd.DataFrame) -> pd.Series:
        # A table of our verdicts may hold columns of claims, too.
        values = table[self.columns.get(ours, ours)]
        if ours == "label":
            return parse_label_cells(self.name, self.mapping, values, str(values.name))
        return values.map(join_passages_into_document) if ours == "doc" else values

    def find_claim_ids(self, claims: pd.DataFrame | None) -> pd.Series:
        """For each row the id of the claim, in another table, that it is about. Raises
        `InputError`."""
        if claims is None and "claim_id" in self.columns:
            return self.rows[self.columns["claim_id"]]
        own = (
            {}
            if claims is None
            else {one: one for one in CLAIM_COLUMNS if claims[one].notna().any()}
        )
        keys = None if claims is None else find_common_keys(claims, own, self.rows, self.columns)
        if keys is None or claims is None:
            expected = "expected a column for 'claim_id', or for 'claim' with the claim's text"
            message = f"cannot tell which claims the verdicts are of: {expected} (--id COLUMN)"
            raise InputError(self.name, [Problem(message)])
        if keys.names == ["claim_id"]:
            self.notes += [] if keys.note is None else [keys.note]
            return keys.second
        if keys.first.duplicated().any():
            message = (
                f"several claims have the same {', '.join(keys.names)}: expected a column for"
                " 'claim_id'"
            )
            raise InputError(self.name, [Problem(message)])
        ids = keys.second.map(pd.Series(claims["claim_id"].to_numpy(), index=keys.first))
        column = self.columns["claim"]
        check_cells(
            self.name, column, self.rows[column], ids.isna(), "expected the text of a claim"
        )
        return ids

    def add_to_claims(
        self, claims: pd.DataFrame, ids: pd.Series, owners: Sequence[_MappedTable]
    ) -> pd.DataFrame:
        """The claims with what this table of verdicts alone says of them. Raises `InputError` where
        its rows of one claim differ, or where its labels differ from those of the claims' own
        table."""
        for ours in CLAIM_COLUMNS[1:]:
            column = self.columns.get(ours, ours if self.own_kind == "verdicts" else "")
            is_told = claims[ours].notna().any() and any(ours in one.columns for one in owners)
            if column not in self.rows or (is_told and ours != "label"):
                continue
            said = self._read_claim_column(ours, self.rows)
            said = pd.Series(said.to_numpy(), index=ids.to_numpy()).dropna()
            said = said[~pd.MultiIndex.from_arrays([said.index, said.astype("str")]).duplicated()]
            if is_told:
                known = claims.set_index("claim_id")["label"].reindex(said.index)
                if n_differ := int((known.fillna(-1).to_numpy() != said.to_numpy()).sum()):
                    theirs = owners[0].columns["label"]
                    message = (
                        f"labels {n_differ:,} of {len(said):,} rows differently from {theirs!r} of"
                        f" {owners[0].name}"
                    )
                    ways = (
                        f"expected one column of labels (--ignore {theirs}, or --ignore {column})"
                    )
                    raise InputError(self.name, [Problem(f"{message}: {ways}", column=column)])
            elif said.index.has_duplicates:
                claim = said.index[said.index.duplicated()][0]
                message = (
                    f"expected one {ours} for a claim in all of its rows, found several for"
                    f" {claim!r}"
                )
                raise InputError(self.name, [Problem(message, column=column)])
            elif len(said):
                values = claims["claim_id"].map(said)
                claims = claims.assign(
                    **{ours: values.astype("Int8" if ours == "label" else TEXT_DTYPE)}
                )
        return claims

    # Verdicts
    # ------------------------------------------------------------

    def make_verdicts(self, claim_ids: pd.Series) -> Iterator[pd.DataFrame]:
        """The verdicts of the rows' claims: a table for each column of an evaluator's, or for each
        scale."""
        for who, columns, places in self._list_statements():
            rows = self.rows.iloc[places]
            said_by = who.iloc[places].to_numpy() if isinstance(who, pd.Series) else who
            made = pd.DataFrame(
                {"claim_id": claim_ids.iloc[places].to_numpy(), "evaluator": said_by},
                index=rows.index,
            )
            made = made.assign(**self._read_judgements(rows, columns))
            if self.has_annotator_rows:  # a row for each of a claim's annotators
                made = made[[name for name in made if name in VERDICT_COLUMNS]].drop_duplicates()
                if (differ := made.duplicated(["claim_id", "evaluator"])).any():
                    row, name = int(made.index[differ][0]), made["evaluator"].iloc[0]
                    message = (
                        f"expected one verdict of {name} for a claim in all rows of its annotators,"
                        " found two"
                    )
                    raise InputError(self.name, [Problem(message, row + 1)])
            yield made

    def _list_statements(self) -> Iterator[tuple[Any, EvaluatorColumnMapping, np.ndarray]]:
        """Who says something, one name or one for each row of the table; in which columns; and of
        which rows."""
        every = np.arange(len(self.rows))
        for name, one in self.evaluators.items():
            yield name, one, every
        if self.evaluators:
            return
        columns = {
            ours: self.columns.get(ours)
            for ours in ("score", "prediction", "raw", "status", "repeat")
        }
        if (
            columns["status"] is not None
            and not self.rows[columns["status"]].dropna().isin(STATUSES).all()
        ):
            columns["status"] = None  # it tells of something else
        own = EvaluatorColumnMapping.model_validate(columns)
        named = self.columns.get("evaluator")
        if named is None:
            stem = name_table_stem(self.name)
            yield stem, self._add_scale(own, stem), every
            return
        who = self.rows[named].astype("str").where(self.rows[named].notna(), None)
        is_said = self.rows[own.columns].notna().any(axis=1) | who.notna()
        is_said &= ~self.is_of_people & ~who.isin(self.mapping.ignore)
        if not self.mapping.scale and not self.mapping.threshold:
            yield who, own, every[is_said]
            return
        codes, names = pd.factorize(who, use_na_sentinel=False)
        for at, name in enumerate(names):
            yield who, self._add_scale(own, str(name)), np.flatnonzero(is_said & (codes == at))

    def _add_scale(self, columns: EvaluatorColumnMapping, name: str) -> EvaluatorColumnMapping:
        """The columns of a long table with the scale and the threshold of one evaluator, or of the
        column."""
        scale, threshold = self.mapping.scale, self.mapping.threshold
        column = str(columns.score)
        found = {
            "scale": scale.get(name, scale.get(column)),
            "threshold": threshold.get(name, threshold.get(column)),
        }
        return columns.model_copy(update=found)

    def _read_judgements(self, rows: pd.DataFrame, one: EvaluatorColumnMapping) -> dict[str, Any]:
        """The columns of verdicts that scores, predictions or both make; an empty cell is an
        unscored claim."""
        made: dict[str, Any] = {}
        score, prediction = one.score, one.prediction
        if score is not None and has_only_words(self.rows[score]):
            score, prediction = None, prediction or score
        raw = pd.Series(None, index=rows.index, dtype="object")
        predicted = pd.Series(pd.NA, index=rows.index, dtype="Int8")
        if score is not None:
            raw = raw.mask(self._find_unreadable_cells(score)[rows.index], rows[score])
            made["score"], predicted, grades = self._scale_scores(rows[score], one)
            if grades is not None and grades.notna().any():
                made[GRADE_COLUMN] = grades
        if prediction is not None:
            predicted = parse_label_words(
                self.name, self.mapping, rows[prediction], prediction
            ).fillna(predicted)
        if one.raw is not None:
            words = (
                rows[one.raw]
                .map(lambda cell: None if has_no_value(cell) else str(cell))
                .astype("object")
            )
            raw = words.where(words.notna(), raw)
        status = pd.Series(np.where(raw.notna(), "unparsed", "skipped"), index=rows.index)
        made |= {
            "prediction": predicted,
            "raw": raw,
            "status": status.mask(predicted.notna(), "ok"),
        }
        if one.status is not None:
            made["status"] = rows[one.status].where(rows[one.status].notna(), made["status"])
        if one.repeat is not None:
            numbers = pd.to_numeric(rows[one.repeat], errors="coerce")
            # Repeats count from 0.
            made["repeat"] = rows[one.repeat] if not numbers.min() > 0 else numbers - numbers.min()
        for ours in ("chunk_scores", GRADE_COLUMN) if not self.evaluators else ():
            if ours in self.columns:
                made.setdefault(ours, rows[self.columns[ours]])
        return made

    def _find_unreadable_cells(self, column: str) -> pd.Series:
        """The few cells of a column of scores that are no scores ("timeout"), which are told: no
        verdicts. Raises `InputError` where they are more."""
        values = self.rows[column]
        is_present = ~values.map(has_no_value).astype(bool)
        is_wrong = parse_judgement_numbers(values).isna() & is_present
        n_wrong, n_present = int(is_wrong.sum()), int(is_present.sum())
        if n_wrong > MAX_UNREADABLE_SHARE * n_present:
            check_cells(self.name, column, values, is_wrong, "expected a number")
        if n_wrong:
            words = ", ".join(map(repr, dict.fromkeys(map(str, values[is_wrong][:3]))))
            note = (
                f"scores  {column}: {n_wrong:,} of {n_present:,} cells are no scores ({words}):"
                " unscored"
            )
            self.notes += [note] if note not in self.notes else []
        return is_wrong

    def _scale_scores(
        self, cells: pd.Series, columns: EvaluatorColumnMapping
    ) -> tuple[pd.Series, pd.Series, pd.Series | None]:
        """Scores brought to [0, 1], whether each is beyond the threshold, and their grades, if
        any."""
        column, scale = str(columns.score), columns.scale or (0.0, 1.0)
        if columns.scale is None and (words := self.mapping.words.get(column)):
            said = {normalise_vocabulary_words(word): value for word, value in words.items()}
            cells = cells.map(lambda cell: said.get(normalise_vocabulary_words(cell), cell))
        found = scale_judgement_numbers(parse_judgement_numbers(cells), scale, columns.threshold)
        low, high = scale if not isinstance(scale, str) else (-np.inf, np.inf)
        expected = f"expected a number from {low:g} to {high:g} (or say --scale {column}=LOW:HIGH)"
        check_cells(self.name, column, cells, (found[0] < 0) | (found[0] > 1), expected)
        return found

    # Annotations
    # ------------------------------------------------------------

    def make_annotations(self, claim_ids: pd.Series) -> pd.DataFrame:
        """What each annotator said of the rows' claims; a cell that is empty says nothing."""
        every = np.ones(len(self.rows), dtype=bool)
        said: list[tuple[Any, str, np.ndarray]] = [
            (name, column, every) for name, column in self.annotators.items()
        ]
        if self.has_annotator_rows:
            said = [(self.rows[self.columns["annotator"]], self.columns["label"], every)]
        if self.is_of_people.any():
            column = self.columns.get("prediction") or self.columns["score"]
            said = [(self.rows[self.columns["evaluator"]], column, self.is_of_people)]
        parts = []
        for annotator, column, is_mine in said:
            made = pd.DataFrame({"claim_id": claim_ids.to_numpy(), "annotator": annotator})[is_mine]
            values = self.rows[column][is_mine]
            made["label"] = parse_label_cells(self.name, self.mapping, values, column)
            made["grade"] = [None if has_no_value(value) else str(value) for value in values]
            for ours in ("start", "end", "note", "seconds") if self.has_annotator_rows else ():
                if ours in self.rows:
                    made[ours] = self.rows[ours]
            # A blank cell may be a label.
            parts.append(made[made["grade"].notna() | made["label"].notna()])
        return pd.concat(parts, ignore_index=True)
