"""Comparing evaluators: each one's overall row, pairs alike by BAcc, and how much review one needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.core.decision_limits import is_significantly_above
from factaudit.audit.core.result_rows import MACRO_MEAN, Row, is_redundant_macro_row

#: Evaluators whose BAccs are no further apart are alike by BAcc.
ALIKE_BACC_DIFFERENCE = 0.02


def rank_evaluators_by_bacc(rows: Sequence[Row]) -> list[str]:
    """The evaluators from the highest balanced accuracy on; without those that have none."""
    scored = [row for row in find_overall_evaluator_rows(rows).values() if row.get("bacc") is not None]
    return [row["evaluator"] for row in sorted(scored, key=lambda row: -row["bacc"])]


def is_constant_evaluator(name: str) -> bool:
    """Whether an evaluator says one thing of every claim by its nature, and not by chance of these claims.

    >>> is_constant_evaluator("always-no"), is_constant_evaluator("random:seed=0")
    (True, False)
    """
    return re.split(r"[|:@]", name)[0] in ("always-yes", "always-no")


def find_overall_evaluator_rows(rows: Sequence[Row]) -> dict[str, Row]:
    """Each evaluator's one row that stands for all claims: the mean over datasets, else its only row."""
    found: dict[str, Row] = {}
    for evaluator in dict.fromkeys(row["evaluator"] for row in rows):
        mine = [row for row in rows if row["evaluator"] == evaluator and not is_redundant_macro_row(row)]
        choices = [[row for row in mine if row.get("dataset") == total] for total in (MACRO_MEAN, ALL_TOGETHER)]
        one = next((only[0] for only in [*choices, mine] if len(only) == 1), None)
        if one is not None:
            found[evaluator] = one
    return found


def list_evaluators_alike_by_bacc(audited_run: AuditedRun) -> list[tuple[str, str]]:
    """Pairs of evaluators whose BAccs are alike *on average* (as VC pairs them), none of them at chance."""
    able = [
        row
        for name, row in find_overall_evaluator_rows(audited_run.rows("rates")).items()
        if name not in audited_run.floors and row.get("bacc") is not None
        if (is_significantly_above(row, "bacc", 0.5) if "bacc_low" in row else row["bacc"] > 0.5)
    ]
    alike = [(a, b) for a, b in combinations(able, 2) if abs(a["bacc"] - b["bacc"]) <= ALIKE_BACC_DIFFERENCE]
    return [(a["evaluator"], b["evaluator"]) for a, b in alike]


def find_review_row(audited_run: AuditedRun, evaluator: str) -> Row | None:
    """The evaluator's overall row of `triage`; None where more must be reviewed than the limit says, or nothing: then
    errors are so rare that no evaluator is needed."""
    row = find_overall_evaluator_rows(audited_run.rows("triage")).get(evaluator)
    return row if row is not None and 0 < row["review_share"] <= audited_run.limits.max_review else None
