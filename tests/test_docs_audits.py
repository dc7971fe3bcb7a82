"""The declarations of the audits against what the audits really give, and docs/audits.md against the declarations."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from audit_tables import judged
from test_audit_properties import EVALUATORS, of

from factaudit.audit import computable, docs, own
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.findings import checks

ENDS = {"bounds": ("_min", "_max"), "interval": ("_low", "_high")}


def test_the_page_is_what_the_declarations_say(root: Path):
    page = docs.page(audit for audit in own() if audit.compute is not None)
    assert (root / "docs/audits.md").read_text(encoding="utf-8") == page, (
        "run: python -m factaudit.audit.docs docs/audits.md"
    )


def facts():
    """The same claims as facts of responses, each put to two people."""
    for number, row in enumerate(of()):
        for title in ("A", "B"):
            fact = {
                "response_id": f"r{number // 5}",
                "fact_id": str(number),
                "group": "1",
                "entity": title,
                "cited": "1,2" if title == "A" else "1",
                "found_by": "titles" if title == "A" else "both",
                "candidate_rank": 1 if title == "A" else 2,
            }
            verdicts = {name: int((number % 3 == 0) == (title == "A")) for name in EVALUATORS}
            yield row | fact | verdicts | {"claim_id": f"{number}{title}"}


@pytest.mark.parametrize("name", computable())
def test_every_key_of_real_rows_is_declared_and_no_other(name):
    audit = computable()[name]
    options = {"size": 3} if name.startswith("chunking") else {}
    again = [row | {"e": [row["e"], row["e"]]} for row in of()]
    if name == "pairs":
        again = [
            row
            | {"claim_id": f"c{at}", "label": at % 2, "error_type": "ab"[at % 4 // 2]}
            | ({} if at % 2 else {"pair_of": f"c{at + 1}"})
            for at, row in enumerate(again[: len(again) // 2 * 2])
        ]
    table = judged(facts() if "factscore" in name or name == "citations" else again, *EVALUATORS)
    said = [(claim, who, at % (4 + who) > 0) for at, claim in enumerate(table.claims["claim_id"]) for who in range(3)]
    people = pd.DataFrame(said, columns=["claim_id", "annotator", "label"]).astype({"label": "Int8"})
    rows = audit.compute(replace(table, annotations=people), intervals=Intervals(5), **options)
    assert rows
    declared = {
        key + end
        for key, column in audit.columns.items()
        for end in ("", *ENDS["bounds"] * column.bounds, *ENDS["interval"] * column.interval)
    }
    assert {key for row in rows for key in row} == declared


@pytest.mark.parametrize("name", computable())
def test_every_option_and_every_key_is_told_of(name):
    audit = computable()[name]
    assert set(audit.options) == set(audit.options_model().model_fields)
    assert audit.question.endswith("?")
    assert all(column.what for column in audit.columns.values())


def test_every_finding_has_an_id_of_its_own():
    ids = Counter(check.id for check in checks())
    assert ids["gap"] == 1
    assert set(ids.values()) == {1}
    assert all(check.title for check in checks())
