"""AggreFact and LLM-AggreFact with what metrics said beside each claim (Tang et al. 2023, 2024).

``aggre_fact_final.csv`` and ``aggre_fact_sota.csv`` of Liyan06/AggreFact (``summary``, ``model_name``, ``cut``), and
files in LLM-AggreFact's columns (``claim``), with columns ``NAME_score``, ``NAME_label``, ``NAME_pred`` or
``NAME_prediction``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.datasets import registry
from factaudit.datasets.sources import Conversion, expand
from factaudit.errors import InputError, Problem
from factaudit.intake.anyfile import read_any
from factaudit.tables import validate_claims, validate_verdicts
from factaudit.text.printable import count

_THEIRS = {"summary": "claim", "model_name": "system", "cut": "split", "id": "doc_id"}
_KINDS = {"_score": "score", "_label": "prediction", "_pred": "prediction", "_prediction": "prediction"}


def convert(sources: Sequence[Path]) -> Conversion:
    """A summary (or claim) is a claim, a metric an evaluator.

    A metric's own label is its prediction (AggreFact tunes thresholds per data set); scores outside [0, 1] are left
    out where it has one.
    """
    claims, verdicts, notes = [], [], []
    for path in expand(sources, "aggre_fact_*.csv", "*.csv", "*.parquet", "*.jsonl"):
        table = read_any(path).rename(columns=lambda name: _THEIRS.get(str(name), str(name)))
        if missing := [name for name in ("dataset", "doc", "claim", "label") if name not in table]:
            raise InputError(str(path), [Problem(f"expected the column {name!r}") for name in missing])
        metrics = _metrics(list(table.columns))
        if not metrics:
            raise InputError(str(path), [Problem("expected columns NAME_score, NAME_label or NAME_pred of metrics")])
        own = table[[c for c in table.columns if not any(c in part.values() for part in metrics.values())]].copy()
        own["doc_id"] = path.stem + ":" + own.get("doc_id", own.groupby("doc").ngroup()).astype(str)
        own["task"] = [registry.task(str(name)) for name in own["dataset"]]
        checked = validate_claims(own.drop(columns=["claim_id"], errors="ignore"), source=str(path))
        claims.append(checked)
        for name, part in metrics.items():
            verdicts.append(_verdicts(checked["claim_id"], table, name, part))
        notes.append(f"{path.name}: {count(len(checked), 'claim')}, {count(len(metrics), 'metric')}")
    whole = validate_claims(pd.concat(claims, ignore_index=True), source="predicted")
    return Conversion(whole, validate_verdicts(pd.concat(verdicts, ignore_index=True), claims=whole), notes)


def _metrics(columns: Sequence[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for column in columns:
        for ending, kind in _KINDS.items():
            if column.lower().endswith(ending) and len(column) > len(ending):
                found.setdefault(column[: -len(ending)], {})[kind] = column
    return found


def _verdicts(ids: pd.Series, table: pd.DataFrame, name: str, part: dict[str, str]) -> pd.DataFrame:
    rows: dict[str, Any] = {"claim_id": ids.to_numpy(), "evaluator": name}
    if "prediction" in part:
        rows["prediction"] = pd.to_numeric(table[part["prediction"]], errors="coerce").to_numpy()
    if "score" in part:
        score = pd.to_numeric(table[part["score"]], errors="coerce")
        if score.dropna().between(0, 1).all() or "prediction" not in part:
            rows["score"] = score.to_numpy()
    frame = pd.DataFrame(rows)
    return frame.dropna(subset=[kind for kind in ("score", "prediction") if kind in frame], how="all")
