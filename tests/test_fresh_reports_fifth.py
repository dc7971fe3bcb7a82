"""What readers of fresh reports found false or misleading, fifth round: each test is of a sentence that one tried."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from test_fresh_reports import make_tables

from factaudit.report.summary import compose_report_summary_paragraphs
from factaudit.results import compare

Row = dict[str, Any]

# --------------------------------------------------------------------------------------------- labels of a sample


@pytest.mark.parametrize(
    ("n_labelled", "n_unscored", "told"),
    [
        (600, 0, ""),
        (600, 3, "Predicted rates are of the scored claims, labelled rates of all."),
        (90, 0, "Predicted rates are of the labelled claims, labelled rates of all labelled claims (90 of 600)"),
        (
            90,
            3,
            "Predicted rates are of the labelled claims that are scored, labelled rates of all labelled claims (90",
        ),
    ],
)
def test_rates_are_said_to_be_of_the_claims_that_they_are_of(n_labelled: int, n_unscored: int, told: str) -> None:
    claims, verdicts = make_tables({"e": (0.9, 0.8)})
    claims.loc[n_labelled:, "label"] = pd.NA
    verdicts.loc[: n_unscored - 1, ["prediction", "status"]] = [pd.NA, "refused"]
    results = compare(claims, verdicts, audits=["rates", "quantification"], replicates=20)
    found = [each for each in compose_report_summary_paragraphs(results.to_dict()) if "Predicted rates" in each]
    assert [each[: len(told)] for each in found] == ([told] if told else [])
