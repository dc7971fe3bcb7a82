"""AggreFact and LLM-AggreFact with what metrics said beside each claim (Tang et al. 2023, 2024).

``aggre_fact_final.csv`` and ``aggre_fact_sota.csv`` of Liyan06/AggreFact (``summary``, ``model_name``, ``cut``), and
files in LLM-AggreFact's columns (``claim``), with columns ``NAME_score``, ``NAME_label``, ``NAME_pred`` or
``NAME_prediction``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from factaudit.datasets.aggrefact_subsets import find_dataset_task
from factaudit.datasets.source_files import Conversion, expand_dataset_source_folders
from factaudit.errors import InputError, Problem
from factaudit.tables import CLAIM_COLUMNS, validate_claims, validate_verdicts
from factaudit.tables.column_kinds import find_judged_columns
from factaudit.tables.table_files import read_table
from factaudit.tables.unreadable_rows import leave_out_columns_of_judgements
from factaudit.text.display_text import format_count

_AGGREFACT_COLUMNS = {"summary": "claim", "model_name": "system", "cut": "split", "id": "doc_id"}
_ORIGINS = {"cnndm": "AggreFact-CNN", "xsum": "AggreFact-XSum"}
_METRIC_SUFFIXES = {"_score": "score", "_label": "prediction", "_pred": "prediction", "_prediction": "prediction"}


def convert_predicted(sources: Sequence[Path], *, datasets: Literal["source", "origin"] = "source") -> Conversion:
    """A summary (or claim) is a claim, a metric an evaluator.

    datasets: what they are: those that AggreFact was made of (``source``), or its two (``origin``), of which
    LLM-AggreFact has a part.

    A metric's own label is its prediction (AggreFact tunes thresholds per data set); scores outside [0, 1] are left
    out where it has one.
    """
    claims, verdicts, notes = [], [], []
    for path in expand_dataset_source_folders(sources, "aggre_fact_*.csv", "*.csv", "*.parquet", "*.jsonl"):
        table = read_table(path).rename(columns=lambda name: _AGGREFACT_COLUMNS.get(str(name), str(name)))
        if missing := [name for name in ("dataset", "doc", "claim", "label") if name not in table]:
            raise InputError(str(path), [Problem(f"expected the column {name!r}") for name in missing])
        if datasets == "origin":
            table["dataset"] = _name_metric_column_datasets(path, table)
        metrics = _find_metric_columns(list(table.columns))
        if not metrics and datasets == "source":
            raise InputError(str(path), [Problem("expected columns NAME_score, NAME_label or NAME_pred of metrics")])
        own = table[[c for c in table.columns if not any(c in part.values() for part in metrics.values())]].copy()
        further = {str(name): own[name].tolist() for name in own.columns if name not in CLAIM_COLUMNS}
        leave_out_columns_of_judgements(path, [*find_judged_columns(further)])
        own["doc_id"] = path.stem + ":" + own.get("doc_id", own.groupby("doc").ngroup()).astype(str)
        if datasets == "origin" and "system" in own:
            own["response_id"] = own["doc_id"] + "/" + own["system"].astype(str)  # a summary is one claim
        own["task"] = [find_dataset_task(str(name)) for name in own["dataset"]]
        checked = validate_claims(own.drop(columns=["claim_id"], errors="ignore"), source=str(path))
        claims.append(checked)
        for name, part in metrics.items():
            verdicts.append(_make_metric_column_verdicts(checked["claim_id"], table, name, part))
        notes.append(f"{path.name}: {format_count(len(checked), 'claim')}, {format_count(len(metrics), 'metric')}")
    whole = validate_claims(pd.concat(claims, ignore_index=True), source="predicted")
    said = validate_verdicts(pd.concat(verdicts, ignore_index=True), claims=whole) if verdicts else None
    return Conversion(whole, said, notes)


def _name_metric_column_datasets(path: Path, table: pd.DataFrame) -> pd.Series:
    """AggreFact-CNN or AggreFact-XSum for each row. Raises `InputError` where a row is of neither."""
    if "origin" not in table:
        raise InputError(str(path), [Problem("expected the column 'origin' (cnndm or xsum), for the option dataset")])
    names = table["origin"].map(lambda text: _ORIGINS.get(str(text).lower()))
    bad = [
        Problem(f"expected {' or '.join(_ORIGINS)}, found {text!r}", number, "origin")
        for number, (text, name) in enumerate(zip(table["origin"], names, strict=True), start=1)
        if name is None
    ]
    if bad:
        raise InputError(str(path), bad)
    return names


def _find_metric_columns(columns: Sequence[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for column in columns:
        for ending, kind in _METRIC_SUFFIXES.items():
            if column.lower().endswith(ending) and len(column) > len(ending):
                found.setdefault(column[: -len(ending)], {})[kind] = column
    return found


def _make_metric_column_verdicts(
    claim_ids: pd.Series, table: pd.DataFrame, metric: str, metric_columns: dict[str, str]
) -> pd.DataFrame:
    rows: dict[str, Any] = {"claim_id": claim_ids.to_numpy(), "evaluator": metric}
    if "prediction" in metric_columns:
        rows["prediction"] = pd.to_numeric(table[metric_columns["prediction"]], errors="coerce").to_numpy()
    if "score" in metric_columns:
        score = pd.to_numeric(table[metric_columns["score"]], errors="coerce")
        if score.dropna().between(0, 1).all() or "prediction" not in metric_columns:
            rows["score"] = score.to_numpy()
    frame = pd.DataFrame(rows)
    return frame.dropna(subset=[kind for kind in ("score", "prediction") if kind in frame], how="all")
