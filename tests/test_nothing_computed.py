"""Where nothing was computed, nothing is concluded: reports of runs without intervals, and of
printed rates."""

from __future__ import annotations

import re

import pytest
from audit_worlds import make_world

import factaudit
from factaudit import Results
from factaudit.audit.screen import compose_screen

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
    """No replicates, so no interval."""
    return factaudit.compare(
        *make_world("whole"), audits=["rates", "differences", "quantification"], replicates=0
    )


def test_no_sentence_of_a_run_without_intervals_says_what_only_an_interval_could(
    without_intervals,
):
    texts = [each["statement"] for each in without_intervals.finding_rows]
    texts += [
        text for one in without_intervals.decisions for text in (one["figure"], one["required"])
    ]
    texts += [one.sentence for one in compose_screen(without_intervals.to_dict()).advice]
    assert {one["may"] for one in without_intervals.decisions} == {"cannot tell"}
    assert any("no intervals were computed" in text.lower() for text in texts)
    for text in texts:
        assert not re.search("|".join(CONCLUSIONS), text), text
