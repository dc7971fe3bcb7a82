"""What do several checks share? Rows in groups, evidence of a finding, and lists of names in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from factaudit.audit.core.audit_declaration import Finding, Severity
from factaudit.audit.core.result_rows import MACRO_MEAN, Row
from factaudit.audit.core.statements import Statement, join_statements, make_statement

#: |TPR - TNR| over this is a lopsided evaluator (VC §3.2: 20 points).
MAX_TPR_TNR_GAP = 0.20
#: Of fewer things (errors, responses) a count is said, not a share.
MIN_SHARE_COUNT = 30


def group_finding_rows_by_keys(rows: Iterable[Row], *keys: str) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    """Rows by the values of some keys, in order of first appearance."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    yield from groups.items()


def group_finding_rows_by_evaluator(rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    """`group_finding_rows_by_keys` of the evaluator."""
    for (evaluator,), group in group_finding_rows_by_keys(rows, "evaluator"):
        yield evaluator, group


def group_significant_rows_by_evaluator(
    rows: Iterable[Row], significant_rows: Sequence[Row]
) -> Iterator[tuple[str, list[Row], list[Row]]]:
    """Each evaluator that has significant rows, these, and all of its rows."""
    for evaluator, group in group_finding_rows_by_evaluator(rows):
        if significant := [row for row in significant_rows if row["evaluator"] == evaluator]:
            yield evaluator, significant, group


def name_evaluator_pair(row_a: Row, row_b: Row) -> str:
    """Two evaluators as the one that a finding is about."""
    return f"{row_a['evaluator']} / {row_b['evaluator']}"


def pick_finding_evidence(row: Row, *keys: str) -> Row:
    """The figures of a row that a finding rests on, those that the row has."""
    return {key: row[key] for key in keys if key in row}


def make_row_finding(severity: Severity, row: Row, statement: str, *evidence_keys: str, **evidence: Any) -> Finding:
    """A finding on the evaluator and the data set (of a mean: on none) of a row, with figures of it as evidence."""
    dataset = None if row["dataset"] == MACRO_MEAN else row["dataset"]
    return Finding(
        severity, row.get("evaluator"), dataset, statement, pick_finding_evidence(row, *evidence_keys) | evidence
    )


def format_how_many_datasets(concerned: Iterable[Any], every: Iterable[Any]) -> Statement:
    """`` on 9 of 14 datasets``, with the space before it; "" where there is but one. Of rows, or of names."""
    some, all_names = _list_dataset_names(concerned), _list_dataset_names(every)
    several = " on {concerned:count} of {every:count data set}" * (len(all_names) > 1)
    return make_statement(several, concerned=some, every=all_names)


def _list_dataset_names(rows_or_names: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(one["dataset"] if isinstance(one, dict) else one for one in rows_or_names))


def format_first_finding_names(items: Sequence[str]) -> Statement:
    """``a, b, c and 3 more``; of names, or of statements. Four are all named."""
    listed = [one if isinstance(one, Statement) else make_statement("{name}", name=one) for one in items]
    n_shown = len(items) if len(items) <= 4 else 3
    shown, rest = join_statements(listed[:n_shown], ", "), items[n_shown:]
    return make_statement("{shown} and {rest:count} more", shown=shown, rest=rest) if rest else shown
