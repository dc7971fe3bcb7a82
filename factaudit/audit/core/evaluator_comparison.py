"""Which evaluators are alike, and which say one thing of every claim?"""

from __future__ import annotations

import re
from itertools import combinations

from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.decision_limits import widen_interval

#: Evaluators whose BAccs are no further apart are alike by BAcc.
ALIKE_BACC_DIFFERENCE = 0.02


def is_constant_evaluator(name: str) -> bool:
    """Whether an evaluator says one thing of every claim by its nature, and not by chance of these
    claims.

    >>> is_constant_evaluator("always-no"), is_constant_evaluator("random:seed=0")
    (True, False)
    """
    return re.split(r"[|:@]", name)[0] in ("always-yes", "always-no")


def list_evaluators_alike_by_bacc(run: AuditedRun) -> list[tuple[str, str]]:
    """Pairs of evaluators whose BAccs are alike *on average* (as VC pairs them), none of them at
    chance."""
    able = {}
    for name, row in run.overall("rates").items():
        if name not in run.floors and row.get("bacc") is not None:
            low = widen_interval(row, "bacc")[0] if "bacc_low" in row else row["bacc"]
            if low > 0.5:
                able[name] = row["bacc"]
    return [
        (a, b) for a, b in combinations(able, 2) if abs(able[a] - able[b]) <= ALIKE_BACC_DIFFERENCE
    ]
