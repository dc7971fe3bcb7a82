"""How are evaluators audited of which only numbers of claims are published?

The counts become `Judgements` with one claim for each claim counted, so that every audit computes
on them with the code that it has for claims. If only the two error rates are known, and not how
many of the labelled errors the evaluator found, the claims are laid out so that it found as few as
possible. The two rates are then as loosely tied as they can be, and the interval of their
difference (the bias) is the widest. An audit that reads labels and predictions together
(``Audit.counts`` is "joint") must not be given such rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import LEVELS, MISSING, Judgements
from factaudit.audit import choose_supported_audits, list_computable_audits
from factaudit.audit.core.result_rows import Row
from factaudit.results.comparison_tables import describe_audit_inputs
from factaudit.results.compute import AuditRunOptions, assemble_results, make_intervals
from factaudit.results.results import Results
from factaudit.stats import use_one_blas_thread
from factaudit.tables import CLAIM_COLUMNS, STATUSES, list_plain_rows
from factaudit.tables.digest import compute_table_digest
from factaudit.text.display_text import join_reasons


def expand_published_counts(counts_table: pd.DataFrame, level: str) -> Judgements:
    """Lay out the rows of a validated counts table at one level, with a claim for each claim
    counted.

    At the level of responses, each row has a ``response_id`` of its own, so it is the same at both
    levels. An evaluator without a row for a system left its claims unscored. A counts table does
    not say which claims belong together, so they count as independent.
    """
    rows = list_plain_rows(counts_table[counts_table["level"] == level])
    names = sorted({row["evaluator"] for row in rows})
    groups: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["dataset"], row["system"]), []).append(row)
    sizes = [group[0]["n"] for group in groups.values()]
    label = np.ones(sum(sizes), dtype=np.int8)
    prediction = np.full((len(names), sum(sizes)), MISSING, dtype=np.int8)
    start = 0
    for size, group in zip(sizes, groups.values(), strict=True):
        errors = group[0]["labelled_errors"]
        label[start : start + errors] = 0
        for row in group:
            flagged, found = row["predicted_errors"], row["errors_found"]
            if found is None:
                found = max(0, errors + flagged - size)
            # Errors that are flagged and that are not, then correct claims likewise.
            cells = [found, errors - found, flagged - found, size - errors - flagged + found]
            said = np.repeat([0, 1, 0, 1], cells)
            prediction[names.index(row["evaluator"]), start : start + size] = said
        start += size
    claims = pd.DataFrame(index=range(start), columns=list(CLAIM_COLUMNS), dtype="str")
    claims["claim_id"] = claims.index.astype("str")
    if level == "response":
        claims["response_id"] = claims["claim_id"]
    for place, column in enumerate(("dataset", "system")):
        values = np.array([key[place] for key in groups], dtype=object)
        claims[column] = pd.Series(np.repeat(values, sizes), dtype="str")
    claims["label"] = pd.Series(label, dtype="Int8")
    status = np.where(prediction == MISSING, MISSING, STATUSES.index("ok")).astype(np.int8)
    score = np.full(prediction.shape, np.nan)
    return Judgements(claims, tuple(names), label, prediction, score, status)


UNKNOWN_COUNTS = "numbers of claims are not published"
#: What follows from numbers of claims alone: numbers of claims, tests, power, intervals and bounds.
_COUNT_FIGURES = re.compile(r"n_(?!systems$|datasets$|pairs).*|n|p_.*|.*_(low|high|min|max)")


def blank_unknown_counts(rows: Sequence[Row]) -> list[Row]:
    """The rows with the figures null that follow from numbers of claims alone, and the reason why.

    Where counts only fit published rates, they give these rates, and with them orders of systems
    and corrections. They are not unique, so nothing else is shown as if it had been observed.
    """
    blanked = []
    for row in rows:
        left = {key: None if _COUNT_FIGURES.fullmatch(key) else value for key, value in row.items()}
        left["reason"] = join_reasons([UNKNOWN_COUNTS, row.get("reason") or ""])
        blanked.append(left)
    return blanked


@use_one_blas_thread()
def compare_counts(
    counts: pd.DataFrame,
    *,
    audits: Sequence[str | Mapping[str, Any]] | None = None,
    **options: Unpack[AuditRunOptions],
) -> Results:
    """Audit evaluators of which only numbers of claims are known, by the code that audits claims.

    counts: a validated counts table (`factaudit.tables.counts_table`); the rest as in `compare`. By
    default all audits that can do with it; those that need to know how many labelled errors were
    found read the rows that say so. Where ``n_known`` is 0, figures that follow from numbers of
    claims alone are null. Raises `UsageError` for an audit that needs claims.
    """
    known = list_computable_audits()
    able = [name for name, audit in known.items() if audit.counts is not None]
    chosen = choose_supported_audits(audits, able, "needs claims: of a counts table")
    tables = {"margins": counts, "joint": counts[counts["errors_found"].notna()]}
    levels = [level for level in LEVELS if (counts["level"] == level).any()]
    units = {
        (level, kind): expand_published_counts(table, level)
        for level in levels
        for kind, table in tables.items()
    }
    intervals = make_intervals(options)
    found: dict[str, Sequence[Row]] = {}
    for name, given in chosen.items():
        audit, rows = known[name], list[Row]()
        assert audit.compute is not None
        by_level = "levels" in audit.options_model().model_fields
        for level in levels if by_level else levels[:1]:
            if level in given.get("levels", LEVELS):
                asked = given | ({"levels": [level]} if by_level else {})
                rows += audit.compute(units[level, str(audit.counts)], **asked, intervals=intervals)
        found[name] = sorted(rows, key=lambda row: str(row["dataset"])) if by_level else rows
    claims, evaluators = describe_audit_inputs(
        units[levels[0], "margins"], counts["evaluator"].unique(), {}
    )
    is_unknown = not counts["n_known"].all()
    if is_unknown:
        found, claims = {name: blank_unknown_counts(rows) for name, rows in found.items()}, []
    digest = compute_table_digest(counts)
    results = assemble_results(digest, (claims, evaluators), chosen, found, options)
    if is_unknown:
        results.about["counts"] = UNKNOWN_COUNTS
    return results
