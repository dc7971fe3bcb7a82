"""How can audits use a table of published counts? It becomes `Judgements` with one claim for each
claim counted.

Every audit then computes on published counts with the code that it has for claims. If only the two
error rates are known, and not how many of the labelled errors the evaluator found, the claims are
laid out so that it found as few as possible. The two rates are then as loosely tied as they can be,
and the interval of their difference (the bias) is the widest. An audit that reads labels and
predictions together (``Audit.counts`` is "joint") must not be given such rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.tables import CLAIM_COLUMNS, STATUSES, list_plain_rows


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
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    label = np.ones(starts[-1], dtype=np.int8)
    prediction = np.full((len(names), starts[-1]), MISSING, dtype=np.int8)
    for start, size, group in zip(starts, sizes, groups.values(), strict=False):
        errors = group[0]["labelled_errors"]
        label[start : start + errors] = 0
        for row in group:
            at, predicted, found = (
                names.index(row["evaluator"]),
                row["predicted_errors"],
                row["errors_found"],
            )
            if found is None:
                found = max(0, errors + predicted - size)
            prediction[at, start : start + size] = 1
            prediction[at, start : start + found] = 0
            prediction[at, start + errors : start + errors + predicted - found] = 0
    ids = pd.Series(np.arange(starts[-1]).astype(str), dtype="str")
    claims = pd.DataFrame(
        {column: pd.Series(None, index=ids.index, dtype="str") for column in CLAIM_COLUMNS}
    )
    claims["claim_id"] = ids
    if level == "response":
        claims["response_id"] = ids
    for place, column in enumerate(("dataset", "system")):
        values = np.array([key[place] for key in groups], dtype=object)
        claims[column] = pd.Series(np.repeat(values, sizes), dtype="str")
    claims["label"] = pd.Series(label, dtype="Int8")
    ok = STATUSES.index("ok")
    status = np.where(prediction == MISSING, MISSING, ok).astype(np.int8)
    return Judgements(
        claims, tuple(names), label, prediction, np.full(prediction.shape, np.nan), status
    )
