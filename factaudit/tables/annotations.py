"""The table of annotations: what *people* said about claims, and the rules by which it becomes
labels.

A row is the judgement of one annotator on one claim. An annotator who marked several spans of a
claim has a row for each, all with the same label. Grades (words or numbers on the source's own
scale) become labels by a map.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from factaudit.errors import UsageError, suggest_known_name
from factaudit.tables.claim_keys import name_table_stem
from factaudit.tables.column_parsing import parse_binary_column, parse_text_column
from factaudit.tables.plain_values import list_plain_rows
from factaudit.tables.problems import TableProblemCollector
from factaudit.tables.schema import POSITIONS_KEY, name_row_unit
from factaudit.tables.table_files import read_table
from factaudit.tables.validation import find_claim_positions

ANNOTATION_COLUMNS = ("claim_id", "annotator", "label", "grade", "start", "end", "note", "seconds")
#: How the labels of several annotators become one. The name of an annotator is a rule, too.
LABEL_RULES = ("majority", "any_unattributable", "all_attributable")
#: The label of an annotator who could not decide.
UNDECIDED_MARK = "?"
#: Whole numbers are exact in a float up to here.
_MOST = 2**53
#: Why a claim with as many labels 1 as 0 is undecided.
DISAGREEMENT_REASON = "annotators disagree"


def read_annotations(*paths: str | Path, claims: pd.DataFrame | None = None) -> pd.DataFrame:
    """Read and validate annotations from one or several files, in the order given.

    If there are several files, one without a column ``annotator`` belongs to the annotator after
    whom it is named. Raises `InputError` naming file, row and column, also if an annotator has two
    labels for one claim.
    """
    stems = [name_table_stem(str(path)) for path in paths]
    tables = [read_table(path) for path in paths]
    for table, path, stem in zip(tables, paths, stems, strict=True):
        if "annotator" not in table and len(paths) > 1:  # a file of each annotator
            table["annotator"] = stem if stems.count(stem) == 1 else str(path)
    return combine_annotations(tables, [str(path) for path in paths], claims)


def combine_annotations(
    tables: Sequence[pd.DataFrame], sources: Sequence[str], claims: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Validate tables of annotations and put them under each other, as `read_annotations` does."""
    validated = [
        validate_annotations(table, claims, source, name_row_unit(source))
        for table, source in zip(tables, sources, strict=True)
    ]
    if len(validated) == 1:
        return validated[0]
    parts = [(source, len(table)) for source, table in zip(sources, validated, strict=True)]
    problems = TableProblemCollector("annotations", parts=parts)
    together = pd.concat(validated, ignore_index=True)
    _report_contradictions(problems, together)
    problems.raise_if_any()
    return together.drop_duplicates(ignore_index=True)


def validate_annotations(
    table: pd.DataFrame,
    claims: pd.DataFrame | None = None,
    source: str = "annotations",
    unit: str = "row",
) -> pd.DataFrame:
    """Check a table of annotations and bring it into the standard form: a new DataFrame with
    `ANNOTATION_COLUMNS`.

    A missing annotator is ``annotator``. The label ``?`` becomes null, with the note ``?`` if there
    is no other (`find_undecided_claims`). With ``claims``, an annotation of an unknown claim is an
    error.
    """
    problems = TableProblemCollector(source, unit, table.attrs.get(POSITIONS_KEY))
    table = table.reset_index(drop=True)
    table.attrs = {}
    problems.add_missing_columns(table, ("claim_id",))
    if "label" not in table and "grade" not in table:
        problems.add("expected a column 'label' or a column 'grade'")
    problems.add_if_empty(table)
    problems.raise_if_any()

    given = table.reindex(columns=list(ANNOTATION_COLUMNS))
    annotations = given.copy()
    for column in ("claim_id", "annotator", "grade", "note"):
        annotations[column] = parse_text_column(given[column], column, problems)
    ids = annotations["claim_id"]
    is_empty = given["claim_id"].isna() | (ids == "")
    problems.add_where(is_empty, "claim_id", "expected an id, found none")
    annotations["annotator"] = annotations["annotator"].fillna("annotator")
    is_undecided = given["label"].map(_is_undecided_mark).astype(bool)
    label = given["label"].mask(is_undecided)
    expected = "expected 1 (attributable), 0 (unattributable), ? (undecided) or nothing"
    annotations["label"] = parse_binary_column(label, label.index, "label", expected, problems)
    is_unexplained = is_undecided & annotations["note"].isna()
    annotations["note"] = annotations["note"].mask(is_unexplained, UNDECIDED_MARK)
    for column in ("start", "end"):
        annotations[column] = _parse_position(given[column], column, problems)
    seconds = pd.to_numeric(given["seconds"], errors="coerce").astype("float64")
    is_wrong = given["seconds"].notna() & ~seconds.between(0, _MOST, inclusive="left")
    problems.add_where(is_wrong, "seconds", "expected seconds, or nothing", given["seconds"])
    annotations["seconds"] = seconds
    one_end = annotations["start"].isna() != annotations["end"].isna()
    problems.add_where(one_end, "end", "expected both start and end, or neither")
    backwards = (annotations["start"] >= annotations["end"]).fillna(False)
    problems.add_where(backwards, "end", "expected an end behind the start", annotations["end"])
    if claims is not None:
        unknown = find_claim_positions(claims, ids) < 0
        problems.add_where(
            unknown, "claim_id", "expected the id of a claim, but no claim has it", ids
        )
    problems.raise_if_any()
    _report_contradictions(problems, annotations)
    problems.raise_if_any()
    return annotations.drop_duplicates(ignore_index=True)


def list_annotator_judgements(
    annotations: pd.DataFrame, grade_labels: Mapping[str, int | None] | None = None
) -> pd.DataFrame:
    """One row for each claim and annotator: claim_id, annotator, label (Int8: 1, 0 or null) and
    grade, in the order of the table.

    grade_labels: the label of each grade; without it grades do not change labels. Raises
    `UsageError` for a grade that is not in the map.
    """
    label = annotations["label"]
    if grade_labels is not None:
        grade = annotations["grade"]
        for name in grade.dropna().unique():
            if name not in grade_labels:
                hint = suggest_known_name(str(name), list(grade_labels))
                raise UsageError(f"grade {name!r} is not in the map of grades{hint}")
        label = grade.map(grade_labels).where(grade.notna(), label).astype("Int8")
    rows = annotations.reindex(columns=["claim_id", "annotator", "label", "grade"]).assign(
        label=label
    )
    return rows.drop_duplicates(["claim_id", "annotator"], ignore_index=True)


def label_claims_by_annotations(rule: str, judgements: pd.DataFrame) -> pd.Series:
    """The label of each claim by a rule: a Series by claim_id, Int8 with nulls.

    judgements: from `list_annotator_judgements`. Rules: ``majority``: the label of most annotators,
    null if both labels have as many. ``any_unattributable``: 0 if at least one annotator says 0.
    ``all_attributable``: 1 only if all say 1 and nobody is undecided; 0 if one says 0. The name of
    an annotator: the labels of that annotator. Raises `UsageError` for an unknown rule.
    """
    annotators = list(judgements["annotator"].unique())
    if rule not in LABEL_RULES and rule not in annotators:
        raise UsageError(
            f"unknown label rule {rule!r}{suggest_known_name(rule, [*LABEL_RULES, *annotators])}"
        )
    if rule in annotators:
        mine = judgements[judgements["annotator"] == rule]
        return mine.set_index("claim_id")["label"]
    ids, claims = pd.factorize(judgements["claim_id"])
    label = judgements["label"].fillna(-1).to_numpy(dtype=np.int64)
    ones, zeros, none = (
        np.bincount(ids[label == value], minlength=len(claims)) for value in (1, 0, -1)
    )
    index = pd.Index(claims, name="claim_id")
    if rule == "majority":
        found = np.where(ones > zeros, 1, np.where(zeros > ones, 0, -1))
    else:
        undecided = (ones == 0) if rule == "any_unattributable" else (none > 0) | (ones == 0)
        found = np.where(zeros > 0, 0, np.where(undecided, -1, 1))
    labels = pd.Series(found, index=index, name="label").astype("Int8")
    return labels.mask(found < 0)


def fill_labels_by_majority(claims: pd.DataFrame, annotations: pd.DataFrame) -> pd.DataFrame:
    """The claims. Those without a label of their own get the label of most annotators."""
    judged = list_annotator_judgements(annotations)
    majority = claims["claim_id"].map(label_claims_by_annotations("majority", judged))
    return claims.assign(label=claims["label"].fillna(majority.astype("Int8")))


def has_double_labels(judgements: pd.DataFrame | None) -> bool:
    """Whether two annotators or more labelled the same claim (`list_annotator_judgements`)."""
    known = None if judgements is None else judgements.dropna(subset="label")
    return known is not None and bool(known["claim_id"].duplicated().any())


def find_disputed_claims(judgements: pd.DataFrame) -> pd.Index:
    """The ids of claims to which annotators gave both labels, in the order of the table.

    judgements: from `list_annotator_judgements`.
    """
    n_labels = judgements.groupby("claim_id", sort=False)["label"].nunique()
    return n_labels.index[n_labels > 1]


def find_undecided_claims(rule: str, annotations: pd.DataFrame, labels: pd.Series) -> pd.Series:
    """Why people could not decide, by claim_id, for each claim that they looked at and that has no
    label.

    labels: the result of `label_claims_by_annotations` for the rule. A row without a label counts
    if it has a note (``?`` is one), a grade or a time. An empty row is a claim that nobody has
    looked at yet. If annotators gave both labels equally often, the reason is that they disagree.

    >>> table = pd.DataFrame({"claim_id": ["a", "b", "c"], "label": ["?", None, "1"]})
    >>> table["note"] = ["unclear", None, None]
    >>> annotations = validate_annotations(table)
    >>> labels = label_claims_by_annotations("majority", list_annotator_judgements(annotations))
    >>> find_undecided_claims("majority", annotations, labels).to_dict()
    {'a': 'unclear'}
    """
    rows = annotations[annotations["claim_id"].isin(labels.index[labels.isna()])].reindex(
        columns=ANNOTATION_COLUMNS
    )
    if rule not in LABEL_RULES:
        rows = rows[rows["annotator"] == rule]
    rows = rows[rows[["label", "grade", "note", "seconds"]].notna().any(axis=1)]
    reason = rows["note"].fillna(rows["grade"]).fillna(UNDECIDED_MARK)
    reason = reason.mask(rows["label"].notna(), DISAGREEMENT_REASON)
    return reason.groupby(rows["claim_id"], sort=False).first()


def count_labels_by_grade(
    claims: pd.DataFrame, annotations: pd.DataFrame | None
) -> list[dict[str, Any]]:
    """How grades became labels: a row for each data set with grades.

    ``words``: the label of each grade. ``rule``: the label rule that gives all claims their labels,
    null if there is none.
    """
    if annotations is None or "grade" not in annotations or annotations["grade"].isna().all():
        return []
    graded = annotations.dropna(subset=["grade"])
    judged = list_annotator_judgements(graded)
    known = claims.loc[claims["claim_id"].isin(graded["claim_id"])]
    label = known["label"].astype("Int8").fillna(-1)
    is_as_by_rule = pd.DataFrame(
        {
            rule: known["claim_id"].map(label_claims_by_annotations(rule, judged)).fillna(-1)
            == label
            for rule in LABEL_RULES
        }
    )
    found = []
    for dataset, part in known.groupby("dataset", sort=True):
        fits = is_as_by_rule.loc[part.index].all()
        words = graded.loc[graded["claim_id"].isin(part["claim_id"]), ["grade", "label"]]
        found.append(
            {
                "dataset": str(dataset),
                "rule": next(iter(fits.index[fits]), None),
                "words": list_plain_rows(words.drop_duplicates()),
            }
        )
    return found


def relabel_claims_by_annotations(
    claims: pd.DataFrame, judgements: pd.DataFrame, rule: str
) -> pd.DataFrame:
    """The claims with labels by a rule. Claims without annotations keep their labels."""
    made = claims["claim_id"].map(label_claims_by_annotations(rule, judgements)).astype("Int8")
    annotated = claims["claim_id"].isin(judgements["claim_id"])
    return claims.assign(label=claims["label"].where(~annotated, made))


def _is_undecided_mark(value: Any) -> bool:
    return isinstance(value, str) and value.strip() == UNDECIDED_MARK


def _parse_position(values: pd.Series, column: str, problems: TableProblemCollector) -> pd.Series:
    """Where in the claim an annotation starts or ends, as Int64."""
    found = pd.to_numeric(values, errors="coerce").astype("float64")
    is_good = found.between(0, _MOST, inclusive="left") & (found % 1 == 0)
    expected = "expected a character's position from 0 on, or nothing"
    problems.add_where(values.notna() & ~is_good, column, expected, values)
    return found.where(is_good).astype("Int64")


def _report_contradictions(problems: TableProblemCollector, annotations: pd.DataFrame) -> None:
    """Report two different labels or grades of one annotator for one claim."""
    said = annotations["label"].astype("str").fillna("") + "|" + annotations["grade"].fillna("")
    keys = [annotations["claim_id"], annotations["annotator"]]
    different = said.groupby(keys).transform("nunique").to_numpy() > 1
    first = ~annotations.duplicated(["claim_id", "annotator"]).to_numpy()

    def message(row: int) -> str:
        name, claim = annotations["annotator"].iloc[row], annotations["claim_id"].iloc[row]
        return f"expected one label per claim and annotator, but {name!r} has another on {claim!r}"

    problems.add_rows(np.flatnonzero(different & ~first), "label", message)
