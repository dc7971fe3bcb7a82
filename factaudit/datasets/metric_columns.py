"""AggreFact and LLM-AggreFact with what metrics said beside each claim (Tang et al. 2023, 2024).

Files: ``aggre_fact_final.csv`` and ``aggre_fact_sota.csv`` of Liyan06/AggreFact, and files in
LLM-AggreFact's columns, with columns ``NAME_score``, ``NAME_label``, ``NAME_pred`` or
``NAME_prediction`` of metrics.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.datasets.conversion import VERDICTS, Conversion
from factaudit.datasets.source_files import describe_wrong_file
from factaudit.tables import list_plain_rows, read_table

_COLUMNS = {"summary": "claim", "model_name": "system", "cut": "split", "id": "doc_id"}
_EXPECTED = "the columns dataset, doc, claim, label, and NAME_score or NAME_label of metrics"
_METRIC = re.compile("(.+)_(score|label|pred|prediction)", re.IGNORECASE)


def convert_predicted(sources: Sequence[Path]) -> Conversion:
    """A summary (or claim) is a claim, a metric an evaluator.

    A metric's own label is its prediction (AggreFact tunes thresholds for each data set); scores
    outside [0, 1] are left out where it has one.
    """
    claims: list[dict[str, Any]] = []
    for path in sources:
        table = read_table(path).rename(columns=_COLUMNS)
        metrics = [name for name in table if _METRIC.fullmatch(str(name))]
        if not metrics or not {"dataset", "doc", "claim", "label"} <= {*table}:
            found = ", ".join(map(str, table.columns))
            raise describe_wrong_file(path, f"expected {_EXPECTED}, found {found}")
        verdicts = _list_verdicts(table[metrics])
        table = table.drop(columns=[*metrics, "claim_id"], errors="ignore")
        documents = table.get("doc_id", table.groupby("doc").ngroup())
        table["doc_id"] = path.stem + ":" + documents.astype(str)
        rows = zip(list_plain_rows(table), verdicts, strict=True)
        claims += [row | {VERDICTS: said} for row, said in rows]
    return Conversion.from_claims("predicted", claims)


def _list_verdicts(table: pd.DataFrame) -> list[list[dict[str, Any]]]:
    """What each metric said of each row; nothing where it has neither a score nor a label."""
    said: dict[str, dict[str, pd.Series]] = {}
    for column in table:
        name, _, kind = str(column).rpartition("_")
        kind = "score" if kind.lower() == "score" else "prediction"
        said.setdefault(name, {})[kind] = pd.to_numeric(table[column], errors="coerce")
    rows: list[list[dict[str, Any]]] = [[] for _ in table.index]
    for name, own in said.items():
        if len(own) == 2 and not own["score"].dropna().between(0, 1).all():
            del own["score"]
        for row, values in zip(rows, list_plain_rows(pd.DataFrame(own)), strict=True):
            if {*values.values()} != {None}:
                row.append({"evaluator": name, **values})
    return rows
