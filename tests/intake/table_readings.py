"""What was read from a file, in the terms in which right readings are written down."""

from __future__ import annotations

import pandas as pd


def write_values(values: pd.Series) -> str:
    return "".join("-" if pd.isna(value) else str(int(value)) for value in values)


def describe_tables(tables):
    """The claims, their labels, systems and people, and what each evaluator predicts when it is
    first asked."""
    claims, verdicts, people = tables.claims, tables.verdicts, tables.annotations
    assert claims is not None
    found = {"claims": len(claims), "labels": write_values(claims["label"])}
    found |= {"claim": claims["claim"][0], "doc": claims["doc"][0]}
    found["systems"] = sorted(claims["system"].dropna().unique())
    found["people"] = 0 if people is None else people["annotator"].nunique()
    found["evaluators"] = {}
    first = None if verdicts is None else verdicts[verdicts["repeat"] == 0]
    for name, rows in [] if first is None else first.groupby("evaluator"):
        found["evaluators"][name] = write_values(
            rows.set_index("claim_id")["prediction"].reindex(claims["claim_id"])
        )
    return found
