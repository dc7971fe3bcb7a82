"""Small claims and verdicts for the tests of audits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factaudit import Judgements, validate_claims, validate_verdicts
from factaudit.arrays.biographies import SupportMatrix
from factaudit.audit import list_computable_audits, run_audit_checks
from factaudit.datasets import input_tables
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

Row = dict[str, Any]


def tables(
    rows: Iterable[Mapping[str, Any]], evaluators: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Claims and verdicts of rows like ``{"dataset", "system", "label", "e1": prediction or score
    or None, ...}``.

    An evaluator's value is a prediction (int), a score (float) or None for unscored, or a list of
    them, one for each repeat; where the key is absent there is no verdict at all.
    """
    claims, verdicts = [], []
    for number, row in enumerate(rows):
        claim_id = str(row.get("claim_id", f"c{number}"))
        claim = (
            {"dataset": "d", "claim": "a claim", "label": None} | dict(row) | {"claim_id": claim_id}
        )
        claims.append({key: value for key, value in claim.items() if key not in evaluators})
        for name in evaluators:
            values = (
                row[name] if isinstance(row.get(name), list) else [row[name]] if name in row else []
            )
            for repeat, value in enumerate(values):
                verdict = {
                    "claim_id": claim_id,
                    "evaluator": name,
                    "score": None,
                    "prediction": None,
                }
                verdict |= {"repeat": repeat} if repeat else {}
                verdict |= {"status": "ok" if value is not None else "unparsed"}
                verdict |= {"score": value} if isinstance(value, float) else {"prediction": value}
                verdicts.append(verdict)
    columns = ["claim_id", "evaluator", "score", "prediction", "status"]
    columns += ["repeat"] if any("repeat" in verdict for verdict in verdicts) else []
    return validate_claims(pd.DataFrame(claims)), validate_verdicts(
        pd.DataFrame(verdicts, columns=columns)
    )


def join(*given: pd.DataFrame, **options: Any) -> Judgements:
    """Claims, verdicts and perhaps annotations as audits read them."""
    return Judgements.join(*given, **options)


def load_input_tables(*given, **options):
    """Claims, verdicts and what people said of files or frames, as every verb reads them."""
    return input_tables.load_input_tables(*given, **options)


def judged(rows: Iterable[Mapping[str, Any]], *evaluators: str) -> Judgements:
    """What audits read of such rows."""
    return join(*tables(rows, evaluators))


def compute(
    audit: str, table: Judgements, replicates: int | None = None, **options: Any
) -> list[Row]:
    """The rows of an audit, by its name; with intervals where a number of replicates is given."""
    if replicates is not None:
        options["intervals"] = ClusterBootstrap(replicates)
    return list(list_computable_audits()[audit].compute(table, **options))


def find(rows: Iterable[Row], **values: Any) -> Row:
    """The only row with these values."""
    found = [row for row in rows if all(row[key] == value for key, value in values.items())]
    assert len(found) == 1, f"{len(found)} rows with {values}"
    return found[0]


def collect_findings(
    audit_rows: Mapping[str, Sequence[Row]], about: Mapping[str, Any] | None = None
) -> list[Row]:
    """The findings of all checks on rows by audit name."""
    return run_audit_checks(audit_rows, about)[0]


def make_matrix(prediction: Any, group: Any, score: Any = None, **more: Any) -> SupportMatrix:
    """A matrix of predictions and groups alone: what is unscored is unsure, and was asked."""
    cells = np.array(prediction, dtype=np.int8)
    return SupportMatrix(
        people=tuple("ABCDEFGH"[: cells.shape[1]]),
        prediction=cells,
        score=np.full(cells.shape, np.nan) if score is None else np.array(score, dtype=float),
        unsure=cells < 0,
        group=np.array(group, dtype=np.int64),
        own=np.ones(len(cells), dtype=bool),
        **more,
    )
