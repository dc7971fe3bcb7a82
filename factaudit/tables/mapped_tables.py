"""Makes claims, verdicts and annotations of tables whose columns are placed.

Some tables *own* claims: those with a column of claim texts. Each row of the other tables is about
one of these claims, which is found by its id or its text. What a table says about the claims of its
rows becomes verdicts (a column for each evaluator, or a row for each) and annotations (a column for
each annotator, or a row for each).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from factaudit.errors import InputError, Problem
from factaudit.tables.annotations import (
    ANNOTATION_COLUMNS,
    fill_labels_by_majority,
    validate_annotations,
)
from factaudit.tables.cell_values import has_no_value, has_only_words, parse_judgement_numbers
from factaudit.tables.claim_keys import (
    find_common_keys,
    join_key_cells,
    join_passages_into_document,
    list_key_columns,
    name_table_stem,
)
from factaudit.tables.column_kinds import is_name_of_model
from factaudit.tables.column_mapping import ColumnMapping, EvaluatorColumnMapping
from factaudit.tables.column_parsing import TEXT_DTYPE
from factaudit.tables.label_cells import check_cells, parse_label_cells, parse_label_words
from factaudit.tables.meanings import scale_judgement_numbers
from factaudit.tables.roles import TableRoles
from factaudit.tables.schema import (
    CLAIM_COLUMNS,
    GRADE_COLUMN,
    STATUSES,
    VERDICT_COLUMNS,
    make_text_placeholder,
)
from factaudit.tables.unreadable_rows import MAX_UNREADABLE_SHARE
from factaudit.tables.validation import (
    REPEATED_ID_REMEDY,
    make_claim_ids,
    merge_claim_tables,
    validate_claims,
    validate_verdicts,
)


@dataclass(frozen=True)
class MappedTables:
    """Validated claims, verdicts and annotations, each None where there are none, and notes about
    cells that could not be read."""

    claims: pd.DataFrame | None
    verdicts: pd.DataFrame | None
    annotations: pd.DataFrame | None = None
    notes: Sequence[str] = ()


@dataclass(eq=False)
class _Table:
    """One table, the roles of its columns, and the claim of each row.

    columns: factaudit's name of a column to the name in the table. evaluators: those with columns
    of their own, by name. annotators: the column of each annotator, by name. is_of_people: bool
    (n,), the rows of the long form that hold the judgement of a person.
    """

    name: str
    rows: pd.DataFrame
    mapping: ColumnMapping
    kind: str | None
    columns: dict[str, str]
    evaluators: dict[str, EvaluatorColumnMapping]
    annotators: dict[str, str]
    is_of_people: np.ndarray
    ids: pd.Series | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def place(cls, table: TableRoles, mapping: ColumnMapping) -> _Table:
        rows, columns = table.rows.reset_index(drop=True), dict(table.roles)
        evaluators: dict[str, EvaluatorColumnMapping] = {}
        if table.kind is None:
            evaluators = {
                name: one for name, one in mapping.evaluators.items() if {*one.columns} & {*rows}
            }
        annotators = {column: column for column in table.people}
        if evaluators:  # other columns that look like verdicts have no role
            read = (*CLAIM_COLUMNS, GRADE_COLUMN, "annotator", "repeat")
            columns = {ours: one for ours, one in columns.items() if ours in read}
        people = np.zeros(len(rows), dtype=bool)
        if "evaluator" in columns and table.people_evaluators:
            who = rows[columns["evaluator"]].astype("str")
            people = who.isin(table.people_evaluators).to_numpy()
        if "status" in columns and not rows[columns["status"]].dropna().isin(STATUSES).all():
            del columns["status"]  # it holds something else
        if "repeat" in columns:  # files often count from 1; repeats count from 0
            numbers = pd.to_numeric(rows[columns["repeat"]], errors="coerce")
            if (first := numbers.min()) > 0:
                rows = rows.assign(**{columns["repeat"]: numbers - first})
        return cls(table.name, rows, mapping, table.kind, columns, evaluators, annotators, people)

    @property
    def has_verdicts(self) -> bool:
        return bool(self.evaluators or {"score", "prediction"} & {*self.columns})

    @property
    def has_annotator_rows(self) -> bool:
        return {"annotator", "label"} <= {*self.columns}

    @property
    def has_labels(self) -> bool:
        """Whether it has a row for each labelled claim. (A table of documents without claims has
        none.)"""
        names = {*self.columns}
        is_named = "claim" in names or ("claim_id" in names and "doc" not in names)
        return "label" in names and "annotator" not in names and (self.has_verdicts or is_named)

    @property
    def has_annotations(self) -> bool:
        return self.has_annotator_rows or bool(self.annotators) or bool(self.is_of_people.any())


def apply_mapping_to_tables(placed: Sequence[TableRoles], mapping: ColumnMapping) -> MappedTables:
    """Make claims, verdicts and annotations of tables whose columns are placed.

    Claims without a label of their own get the label of most annotators. Raises `InputError` that
    names table, row and column.
    """
    tables = [_Table.place(one, mapping) for one in placed]
    owners = _find_owners(tables)
    others = [one for one in tables if one not in owners]
    _name_single_annotators(owners, others)
    for one in others:
        if not one.has_verdicts and not one.has_annotations and "claim" not in one.columns:
            raise InputError(
                one.name, [Problem(_describe_unmapped_columns([*map(str, one.rows.columns)]))]
            )
    claims = _make_claims(owners)
    for one in others:
        one.ids = _find_claim_ids(one, claims)
        if claims is not None and one.has_verdicts and not one.has_annotator_rows:
            claims = _add_to_claims(one, claims, owners)

    annotations = None
    if said := [one for one in tables if one.has_annotations]:
        whole = pd.concat([_make_annotations(one) for one in said])
        source = ", ".join(one.name for one in said)
        annotations = validate_annotations(whole, claims=claims, source=source)
    if annotations is not None and claims is not None:
        claims = fill_labels_by_majority(claims, annotations)
    judges = [one for one in tables if one.has_verdicts]
    made = [rows for one in judges for rows in _make_verdicts(one) if len(rows)]
    verdicts = None
    if made:
        source = ", ".join(one.name for one in judges)
        verdicts = validate_verdicts(
            pd.concat(made, ignore_index=True), claims=claims, source=source
        )
    elif claims is None and annotations is None:
        named = ", ".join(one.name for one in tables)
        raise InputError(named, [Problem("no column was taken for the claims: say --claim COLUMN")])
    notes = [note for one in tables for note in one.notes]
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


# Claims
# ------------------------------------------------------------


def _find_owners(tables: Sequence[_Table]) -> list[_Table]:
    """The tables whose rows are the claims. If several tables hold the same claims, the largest of
    them."""
    owners = [one for one in tables if "claim" in one.columns]
    # Rates need only labels and verdicts.
    if not owners and any(one.has_verdicts for one in tables):
        owners = [one for one in tables if one.has_labels]
        owners = owners or [one for one in tables if one.has_annotations]
    owners = [one for one in owners if not one.has_verdicts] or owners
    owners = [one for one in owners if not one.has_annotator_rows] or owners
    if len(owners) > 1:
        largest = max(owners, key=lambda one: len(one.rows))
        others = [one for one in owners if one is not largest]
        same = [_find_same_columns(largest, one) for one in others]
        if None not in same:
            _leave_out_same_columns(others, [names or set() for names in same])
            named = ", ".join(one.name for one in owners)
            largest.notes.append(f"claims  the same in {named}: read once")
            return [largest]
    return owners


def _find_same_columns(largest: _Table, other: _Table) -> set[str] | None:
    """The columns that are equal in both tables; None if the other table has other claims."""
    keys = find_common_keys(largest.rows, largest.columns, other.rows, other.columns)
    if keys is None or keys.first.duplicated().any() or keys.second.duplicated().any():
        return None
    if not keys.second.isin(keys.first).all():
        return None
    rows = largest.rows.set_axis(pd.Index(keys.first), axis=0).loc[keys.second].astype("str")
    both = [str(name) for name in other.rows if name in rows]
    return {name for name in both if (rows[name].array == other.rows[name].astype("str")).all()}


def _leave_out_same_columns(others: Sequence[_Table], same: Sequence[set[str]]) -> None:
    """Leave out verdicts that several tables repeat, because a copy is no second judgement. The
    same is done with labels if all tables repeat them. If some labels differ, those of each file
    are taken for one annotator's."""
    told = [(one, names) for one, names in zip(others, same, strict=True) if one.has_labels]
    if all(one.columns["label"] in names for one, names in told):
        for one, _ in told:
            del one.columns["label"]
    for one, names in zip(others, same, strict=True):
        kept = {name: own for name, own in one.evaluators.items() if not {*own.columns} <= names}
        one.evaluators = kept


def _name_single_annotators(owners: Sequence[_Table], others: Sequence[_Table]) -> None:
    """Take the labels of each table beside the claims for those of one annotator. The annotator is
    named after the column, or after the file if there are several. If each file repeats the claims,
    this includes the labels of the table that owns them.

    Raises `InputError` if such a file is named after a model.
    """
    labelled = [one for one in others if one.has_labels and not one.has_verdicts]
    repeated = [one for one in labelled if "claim" in one.columns]
    repeated += [one for one in owners if repeated and one.has_labels and not one.has_verdicts]
    for one in repeated:
        if is_name_of_model(name_table_stem(one.name)):
            message = (
                "several files have labels of the same claims, and this one is called after a"
                " model: rename its column of labels to NAME_verdict"
            )
            raise InputError(one.name, [Problem(message)])
    named = [*labelled, *(one for one in repeated if one not in labelled)]
    stems = [name_table_stem(one.name) for one in named]
    for one, stem in zip(named, stems, strict=True):
        column = one.columns["label"]
        name = stem if stems.count(stem) == 1 else one.name
        one.annotators[column if len(named) == 1 else name] = column
        if one not in others:
            del one.columns["label"]


def _make_claims(owners: Sequence[_Table]) -> pd.DataFrame | None:
    """The claims of the tables that own some. Each of these tables gets the ids of the claims of
    its rows."""
    distinct = [_find_distinct_claims(one) for one in owners]
    parts = [_read_claims(one, first) for one, (first, _) in zip(owners, distinct, strict=True)]
    nameless = [
        claims for one, claims in zip(owners, parts, strict=True) if "claim_id" not in one.columns
    ]
    # Ids are made over all files together, so that equal rows in two files get different ids.
    if len(parts) > 1 and nameless:
        has_own_dataset = all("dataset" in one.columns for one in owners)
        ids = make_claim_ids(pd.concat(nameless, ignore_index=True), has_own_dataset)
        ends = np.cumsum([len(claims) for claims in nameless])[:-1]
        for claims, own in zip(nameless, np.split(ids.to_numpy(), ends), strict=True):
            claims["claim_id"] = pd.Series(own, dtype=TEXT_DTYPE)
    for one, claims, (_, of_row) in zip(owners, parts, distinct, strict=True):
        one.ids = claims["claim_id"].iloc[of_row].reset_index(drop=True)
    return merge_claim_tables(parts, [one.name for one in owners]) if parts else None


def _find_distinct_claims(table: _Table) -> tuple[np.ndarray, np.ndarray]:
    """The row in which each claim stands first, int (claims,), and for each row the number of its
    claim, int (n,)."""
    every = np.arange(len(table.rows))
    is_long = table.has_annotator_rows or "repeat" in table.columns
    is_long |= table.has_verdicts and not table.evaluators
    named = {"claim_id", "claim"} & {*table.columns}
    if not is_long or not named:
        return every, every  # without texts and ids, each row is a claim
    keys = ["claim_id"] if "claim_id" in named else list_key_columns(table.columns)
    of_row, _ = pd.factorize(join_key_cells(table.rows, [table.columns[key] for key in keys]))
    may_repeat = table.has_annotator_rows or {"evaluator", "repeat"} & {*table.columns}
    if not may_repeat and (np.bincount(of_row) == 1).any():
        return every, every  # a data set may hold a claim twice
    return np.unique(of_row, return_index=True)[1], of_row


def _read_claims(table: _Table, rows: np.ndarray) -> pd.DataFrame:
    """The claims of some rows, validated. Columns without a role are kept."""
    cells = table.rows.iloc[rows].reset_index(drop=True)
    made: dict[str, Any] = {
        ours: _read_claim_column(table, ours, cells)
        for ours in (*CLAIM_COLUMNS, GRADE_COLUMN)
        if ours in table.columns and not (ours == "label" and table.has_annotator_rows)
    }
    made.setdefault(
        "dataset", pd.Series(name_table_stem(table.name), index=cells.index, dtype="object")
    )
    if "claim" not in made:
        places = zip(made["dataset"], rows + 1, strict=True)
        made["claim"] = pd.Series(
            [make_text_placeholder(*place) for place in places], dtype="object"
        )
    label = table.columns.get("label")
    if label in table.mapping.threshold and GRADE_COLUMN not in {*cells, *made} - {label}:
        made[GRADE_COLUMN] = parse_judgement_numbers(cells[label])
    read = {*CLAIM_COLUMNS, *table.columns.values(), *made, *table.annotators.values()}
    read |= {*ANNOTATION_COLUMNS} if table.has_annotator_rows else set()
    for own in table.evaluators.values():
        read |= {*own.columns}
    made |= {str(column): cells[column] for column in cells if column not in read}
    return validate_claims(
        pd.DataFrame(made),
        source=table.name,
        has_own_dataset="dataset" in table.columns,
        remedy=REPEATED_ID_REMEDY,
    )


def _read_claim_column(table: _Table, ours: str, cells: pd.DataFrame) -> pd.Series:
    # A table with factaudit's columns of verdicts may also hold columns of claims.
    values = cells[table.columns.get(ours, ours)]
    if ours == "label":
        return parse_label_cells(table.name, table.mapping, values, str(values.name))
    return values.map(join_passages_into_document) if ours == "doc" else values


# Other tables, by the claims that their rows are about
# ------------------------------------------------------------


def _find_claim_ids(table: _Table, claims: pd.DataFrame | None) -> pd.Series:
    """The id of the claim that each row is about. Raises `InputError`."""
    if claims is None and "claim_id" in table.columns:
        return table.rows[table.columns["claim_id"]]
    keys = None
    if claims is not None:
        own = {ours: ours for ours in CLAIM_COLUMNS if claims[ours].notna().any()}
        keys = find_common_keys(claims, own, table.rows, table.columns)
    if keys is None or claims is None:
        expected = "expected a column for 'claim_id', or for 'claim' with the claim's text"
        message = f"cannot tell which claims the verdicts are of: {expected} (--id COLUMN)"
        raise InputError(table.name, [Problem(message)])
    if keys.names == ["claim_id"]:
        table.notes += [] if keys.note is None else [keys.note]
        return keys.second
    if keys.first.duplicated().any():
        same = ", ".join(keys.names)
        message = f"several claims have the same {same}: expected a column for 'claim_id'"
        raise InputError(table.name, [Problem(message)])
    ids = keys.second.map(pd.Series(claims["claim_id"].to_numpy(), index=keys.first))
    column = table.columns["claim"]
    check_cells(table.name, column, table.rows[column], ids.isna(), "expected the text of a claim")
    return ids


def _add_to_claims(table: _Table, claims: pd.DataFrame, owners: Sequence[_Table]) -> pd.DataFrame:
    """Add to the claims what a table of verdicts says about them. Raises `InputError` if its rows
    disagree about a claim, or if its labels differ from those in the table of claims."""
    assert table.ids is not None
    for ours in CLAIM_COLUMNS[1:]:
        is_told = claims[ours].notna().any() and any(ours in owner.columns for owner in owners)
        column = table.columns.get(ours, ours if table.kind == "verdicts" else "")
        if column not in table.rows or (is_told and ours != "label"):
            continue
        said = _read_claim_column(table, ours, table.rows)
        said = pd.Series(said.to_numpy(), index=table.ids.to_numpy()).dropna()
        said = said[~pd.MultiIndex.from_arrays([said.index, said.astype("str")]).duplicated()]
        if is_told:
            known = claims.set_index("claim_id")["label"].reindex(said.index)
            if n_differ := int((known.fillna(-1).to_numpy() != said.to_numpy()).sum()):
                theirs = owners[0].columns["label"]
                way = f"--ignore {theirs}, or --ignore {column}"
                if theirs == column:  # the option would ignore both
                    way = "delete it from one of the files"
                message = (
                    f"labels {n_differ:,} of {len(said):,} rows differently from {theirs!r} of"
                    f" {owners[0].name}: expected one column of labels ({way})"
                )
                raise InputError(table.name, [Problem(message, column=column)])
        elif said.index.has_duplicates:
            claim = said.index[said.index.duplicated()][0]
            message = (
                f"expected one {ours} for a claim in all of its rows, found several for {claim!r}"
            )
            raise InputError(table.name, [Problem(message, column=column)])
        elif len(said):
            values = claims["claim_id"].map(said)
            kind: Any = "Int8" if ours == "label" else TEXT_DTYPE
            claims = claims.assign(**{ours: values.astype(kind)})
    return claims


# Verdicts
# ------------------------------------------------------------


def _make_verdicts(table: _Table) -> Iterator[pd.DataFrame]:
    """The verdicts in a table: a frame for each column of an evaluator, or for each scale."""
    assert table.ids is not None
    for who, columns, places in _list_statements(table):
        rows = table.rows.iloc[places]
        said_by = who.iloc[places].to_numpy() if isinstance(who, pd.Series) else who
        made = pd.DataFrame(
            {"claim_id": table.ids.iloc[places].to_numpy(), "evaluator": said_by}, index=rows.index
        )
        made = made.assign(**_read_judgements(table, rows, columns))
        if table.has_annotator_rows:  # each claim has a row for each annotator
            made = made[[ours for ours in made if ours in VERDICT_COLUMNS]].drop_duplicates()
            if (differ := made.duplicated(["claim_id", "evaluator"])).any():
                message = (
                    f"expected one verdict of {made['evaluator'][differ].iloc[0]} for a claim in"
                    " all rows of its annotators, found two"
                )
                raise InputError(table.name, [Problem(message, int(made.index[differ][0]) + 1)])
        yield made


def _list_statements(table: _Table) -> Iterator[tuple[Any, EvaluatorColumnMapping, np.ndarray]]:
    """The evaluators that judge in a table: a name, or a name for each row; the columns that hold
    the judgement; and the rows, as positions."""
    every = np.arange(len(table.rows))
    if table.evaluators:
        yield from ((name, columns, every) for name, columns in table.evaluators.items())
        return
    own = EvaluatorColumnMapping(
        score=table.columns.get("score"), prediction=table.columns.get("prediction")
    )
    if "evaluator" not in table.columns:
        stem = name_table_stem(table.name)
        yield stem, _add_scale(table.mapping, own, stem), every
        return
    named = table.rows[table.columns["evaluator"]]
    who = named.astype("str").where(named.notna(), None)
    is_said = table.rows[own.columns].notna().any(axis=1) | who.notna()
    is_said &= ~table.is_of_people & ~who.isin(table.mapping.ignore)
    if not table.mapping.scale and not table.mapping.threshold:
        yield who, own, every[is_said]
        return
    codes, names = pd.factorize(who, use_na_sentinel=False)
    for at, name in enumerate(names):
        places = np.flatnonzero(is_said & (codes == at))
        yield who, _add_scale(table.mapping, own, str(name)), places


def _add_scale(
    mapping: ColumnMapping, columns: EvaluatorColumnMapping, name: str
) -> EvaluatorColumnMapping:
    """The columns of a long table with the scale and the threshold that the user gave for one
    evaluator, or for the column."""
    found = {
        "scale": mapping.scale.get(name, mapping.scale.get(str(columns.score))),
        "threshold": mapping.threshold.get(name, mapping.threshold.get(str(columns.score))),
    }
    return columns.model_copy(update=found)


def _read_judgements(
    table: _Table, rows: pd.DataFrame, columns: EvaluatorColumnMapping
) -> dict[str, Any]:
    """The columns of verdicts that a score, a prediction or both make. An empty cell means that the
    claim is unscored."""
    made: dict[str, Any] = {}
    score, prediction = columns.score, columns.prediction
    if score is not None and has_only_words(rows[score]):
        score, prediction = None, prediction or score
    raw = pd.Series(None, index=rows.index, dtype="object")
    predicted = pd.Series(pd.NA, index=rows.index, dtype="Int8")
    if score is not None:
        raw = raw.mask(_find_unreadable_cells(table, rows[score], score), rows[score])
        made["score"], predicted, grades = _scale_scores(table, rows[score], columns)
        if grades is not None and grades.notna().any():
            made[GRADE_COLUMN] = grades
    if prediction is not None:
        said = parse_label_words(table.name, table.mapping, rows[prediction], prediction)
        predicted = said.fillna(predicted)
    further = {
        ours: rows[table.columns[ours]]
        for ours in ("raw", "status", "repeat", "chunk_scores", GRADE_COLUMN)
        if ours in table.columns and (ours == "repeat" or not table.evaluators)
    }
    if "raw" in further:
        words = further.pop("raw").map(lambda cell: None if has_no_value(cell) else str(cell))
        words = words.astype("object")
        raw = words.where(words.notna(), raw)
    made |= {"prediction": predicted, "raw": raw}
    outcome = np.where(predicted.notna(), "ok", np.where(raw.notna(), "unparsed", "skipped"))
    made["status"] = pd.Series(outcome, index=rows.index)
    if "status" in further:
        given = further.pop("status")
        made["status"] = given.where(given.notna(), made["status"])
    return {**further, **made}


def _find_unreadable_cells(table: _Table, values: pd.Series, column: str) -> pd.Series:
    """Whether each cell of a column of scores holds no number ("timeout"). Such claims are
    unscored, and a note says how many there are. Raises `InputError` if there are too many."""
    is_present = ~values.map(has_no_value).astype(bool)
    is_wrong = parse_judgement_numbers(values).isna() & is_present
    n_wrong, n_present = int(is_wrong.sum()), int(is_present.sum())
    if n_wrong > MAX_UNREADABLE_SHARE * n_present:
        check_cells(table.name, column, values, is_wrong, "expected a number")
    if n_wrong:
        words = ", ".join(map(repr, dict.fromkeys(map(str, values[is_wrong][:3]))))
        note = (
            f"scores  {column}: {n_wrong:,} of {n_present:,} cells are no scores ({words}):"
            " unscored"
        )
        table.notes += [note] if note not in table.notes else []
    return is_wrong


def _scale_scores(
    table: _Table, cells: pd.Series, columns: EvaluatorColumnMapping
) -> tuple[pd.Series, pd.Series, pd.Series | None]:
    """Scores on the scale from 0 to 1, predictions by the threshold, and grades, if any."""
    column, scale = str(columns.score), columns.scale or (0.0, 1.0)
    found = scale_judgement_numbers(parse_judgement_numbers(cells), scale, columns.threshold)
    low, high = scale if not isinstance(scale, str) else (-np.inf, np.inf)
    expected = f"expected a number from {low:g} to {high:g} (or say --scale {column}=LOW:HIGH)"
    check_cells(table.name, column, cells, (found[0] < 0) | (found[0] > 1), expected)
    return found


# Annotations
# ------------------------------------------------------------


def _make_annotations(table: _Table) -> pd.DataFrame:
    """The judgement of each annotator on the claims of the rows. An empty cell is no judgement."""
    assert table.ids is not None
    every = np.ones(len(table.rows), dtype=bool)
    said: list[tuple[Any, str, np.ndarray]] = [
        (name, column, every) for name, column in table.annotators.items()
    ]
    if table.has_annotator_rows:
        said = [(table.rows[table.columns["annotator"]], table.columns["label"], every)]
    if table.is_of_people.any():
        column = table.columns.get("prediction") or table.columns["score"]
        said = [(table.rows[table.columns["evaluator"]], column, table.is_of_people)]
    parts = []
    for annotator, column, is_mine in said:
        made = pd.DataFrame({"claim_id": table.ids.to_numpy(), "annotator": annotator})[is_mine]
        values = table.rows[column][is_mine]
        made["label"] = parse_label_cells(table.name, table.mapping, values, column)
        made["grade"] = [None if has_no_value(value) else str(value) for value in values]
        for ours in ("start", "end", "note", "seconds") if table.has_annotator_rows else ():
            if ours in table.rows:
                made[ours] = table.rows[ours]
        # A mapping may say that a blank cell is a label.
        parts.append(made[made["grade"].notna() | made["label"].notna()])
    return pd.concat(parts, ignore_index=True)
