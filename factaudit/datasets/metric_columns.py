"""AggreFact and LLM-AggreFact with what metrics said beside each claim (Tang et al. 2023, 2024).

``aggre_fact_final.csv`` and ``aggre_fact_sota.csv`` of Liyan06/AggreFact (``summary``,
``model_name``, ``cut``), and files in LLM-AggreFact's columns (``claim``), with columns
``NAME_score``, ``NAME_label``, ``NAME_pred`` or ``NAME_prediction``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from factaudit.datasets.conversion import VERDICTS, Conversion
from factaudit.errors import InputError, Problem
from factaudit.tables import CLAIM_COLUMNS, list_plain_rows
from factaudit.tables.column_profiles import find_judged_columns
from factaudit.tables.table_files import read_table
from factaudit.tables.unreadable_rows import leave_out_columns_of_judgements

_COLUMNS = {"summary": "claim", "model_name": "system", "cut": "split", "id": "doc_id"}
_ORIGINS = {"cnndm": "AggreFact-CNN", "xsum": "AggreFact-XSum"}
_EXPECTED = "the columns dataset, doc, claim, label, and NAME_score or NAME_label of metrics"
_METRIC = re.compile("(.+)_(score|label|pred|prediction)", re.IGNORECASE)


def convert_predicted(
    sources: Sequence[Path], *, datasets: Literal["source", "origin"] = "source"
) -> Conversion:
    """A summary (or claim) is a claim, a metric an evaluator.

    datasets: what they are: those that AggreFact was made of (``source``), or its two (``origin``),
    of which LLM-AggreFact has a part.

    A metric's own label is its prediction (AggreFact tunes thresholds per data set); scores outside
    [0, 1] are left out where it has one.
    """
    claims: list[dict[str, Any]] = []
    for path in sources:
        table = read_table(path).rename(columns=_COLUMNS)
        if datasets == "origin":
            origins = table.get("origin", pd.Series("", index=table.index))
            table["dataset"] = origins.str.lower().map(_ORIGINS)
            if table["dataset"].isna().any():
                message = f"expected a column origin of {' and '.join(_ORIGINS)}"
                raise InputError(str(path), [Problem(message)])
        missing = [name for name in ("dataset", "doc", "claim", "label") if name not in table]
        metrics = [name for name in table if _METRIC.fullmatch(str(name))]
        if missing or not (metrics or datasets == "origin"):
            found = ", ".join(map(str, table.columns))
            message = f"expected {_EXPECTED}, found {found}"
            raise InputError(str(path), [Problem(message)])
        verdicts = _list_verdicts(table[metrics])
        table = table.drop(columns=[*metrics, "claim_id"], errors="ignore")
        further = [name for name in table.columns if name not in CLAIM_COLUMNS]
        found_judged = find_judged_columns({name: table[name].tolist() for name in further})
        leave_out_columns_of_judgements(path, [*found_judged])
        documents = table.get("doc_id", table.groupby("doc").ngroup())
        table["doc_id"] = path.stem + ":" + documents.astype(str)
        if datasets == "origin" and "system" in table:  # a summary is one claim
            table["response_id"] = table["doc_id"] + "/" + table["system"].astype(str)
        rows = zip(list_plain_rows(table), verdicts, strict=True)
        claims += [row | {VERDICTS: said} for row, said in rows]
    return Conversion.from_claims("predicted", claims)


def _list_verdicts(table: pd.DataFrame) -> list[list[dict[str, Any]]]:
    """What each metric said of each row; nothing where it has neither a score nor a label."""
    said: dict[str, pd.DataFrame] = {}
    for column in table:
        name, _, kind = str(column).rpartition("_")
        kind = "score" if kind.lower() == "score" else "prediction"
        own = said.setdefault(name, pd.DataFrame(index=table.index))
        own[kind] = pd.to_numeric(table[column], errors="coerce")
    rows: list[list[dict[str, Any]]] = [[] for _ in table.index]
    for name, own in said.items():
        if len(own.columns) == 2 and not own["score"].dropna().between(0, 1).all():
            own = own[["prediction"]]
        for row, values in zip(rows, list_plain_rows(own), strict=True):
            if {*values.values()} != {None}:
                row.append({"evaluator": name, **values})
    return rows
