"""Where nothing was computed, nothing is concluded: reports of runs without intervals, and of printed rates."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from factaudit.audit.screen import compose_screen
from factaudit.results import Results, compare

#: Words of a test or an interval that nobody made.
CONCLUSIONS = (
    r"cannot be told",
    r"do not tell",
    r"do not say",
    r"leave open",
    r"leave it open",
    r"surely",
    r"shown to",
    r"significant",
)


@pytest.fixture(scope="module")
def without_intervals() -> Results:
    """Two evaluators of 77 and 60 % BAcc on two data sets; no replicates, so no interval."""
    rng = np.random.default_rng(0)
    n = 400
    label = rng.integers(0, 2, n)
    claims = pd.DataFrame(
        {
            "claim_id": [f"c{i}" for i in range(n)],
            "dataset": np.where(np.arange(n) % 2, "d", "e"),
            "claim": "x",
            "label": label,
            "system": [f"s{i % 3}" for i in range(n)],
        }
    )
    verdicts = pd.concat(
        pd.DataFrame(
            {
                "claim_id": claims["claim_id"],
                "evaluator": name,
                "prediction": np.where(label == 1, rng.random(n) < tpr, rng.random(n) > tnr).astype(int),
            }
        )
        for name, tpr, tnr in (("good", 0.97, 0.55), ("poor", 0.7, 0.5))
    )
    return compare(claims, verdicts, audits=["rates", "differences", "quantification"], replicates=0)


def test_no_sentence_of_a_run_without_intervals_says_what_only_an_interval_could(without_intervals: Results) -> None:
    texts = [each["statement"] for each in without_intervals.finding_rows]
    texts += [text for one in without_intervals.decisions for text in (one["figure"], one["why"])]
    texts += [one.sentence for one in compose_screen(without_intervals.to_dict()).advice]
    assert {one["may"] for one in without_intervals.decisions} == {"cannot tell"}
    assert any("no interval was computed" in text.lower() for text in texts)
    for text in texts:
        assert not re.search("|".join(CONCLUSIONS), text), text
