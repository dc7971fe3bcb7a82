"""The declarations of the audits against what the audits really give."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pandas as pd
import pytest
from audit_tables import judged
from test_audit_properties import EVALUATORS, check_rows, of

from factaudit.audit import list_checks, list_computable_audits
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

ENDS = {"bounds": ("_min", "_max"), "interval": ("_low", "_high")}


def facts():
    """The same claims as facts of responses, each put to two people."""
    for number, row in enumerate(of()):
        for title in ("A", "B"):
            fact = {
                "response_id": f"r{number // 5}",
                "fact_id": str(number),
                "group": "1",
                "entity": title,
                "sentence": "Ada ran. Ben sat.",
                "cited": "1,2" if title == "A" else "1",
            }
            verdicts = {name: int((number % 3 == 0) == (title == "A")) for name in EVALUATORS}
            yield row | fact | verdicts | {"claim_id": f"{number}{title}"}


def vary(rows, other):
    """The rows as they are, and once more as another variant, of which evaluators say more often
    that it is true."""
    return [
        row
        | {"variant": variant, "claim_id": f"{row['claim_id']} {variant}"}
        | ({"e": 1} if is_kind else {})
        for variant in ("base", other)
        for at, row in enumerate(rows)
        for is_kind in [variant != "base" and (at % 3 == 0 or "=" in other)]
    ]


def make_rows(name):
    """Claims that give an audit something to say."""
    rows = [
        {"claim_id": f"c{at}"} | row | {"e": [row["e"], row["e"]]} for at, row in enumerate(of())
    ]
    if "factscore" in name or name == "citations" or "decomposition" in name:
        return list(facts())
    if name == "retrieval":
        return vary(
            [row | {"claim": f"fact {row['claim_id']}"} for row in facts()], "retrieval=all"
        )
    if name.startswith("sensitivity"):
        return vary(list(facts()), "other")
    if name == "invariance":
        return rows + [
            row
            | {
                "claim_id": f"v{at}",
                "variant_of": f"c{at}",
                "label": None,
                "e": 1 - at % 3 % 2,
                "f": 1 - row["f"],
            }
            | {"kind": "kc"[at % 2], "expected": ["same", "changed"][at % 2]}
            for at, row in enumerate(rows)
        ]
    return rows


OPTIONS = {
    "chunking": {"size": 3},
    "chunking_rates": {"size": 3},
    "covariates": {"columns": ["system"]},
    "grades": {"scale": (0, 4)},
}


def rows_of(name, replicates, is_turned=False):
    """The rows of an audit; with the tables turned upside down on request."""
    rows = make_rows(name)
    table = judged(reversed(rows) if is_turned else rows, *EVALUATORS)
    said = [
        (row["claim_id"], who, at % (4 + who)) for at, row in enumerate(rows) for who in range(3)
    ]
    people = pd.DataFrame(said, columns=["claim_id", "annotator", "grade"])
    people = people.assign(label=(people["grade"] > 0).astype("Int8"), grade=people["grade"] % 5)
    if not name.startswith("grade"):
        people = people.drop(columns="grade")
    table = replace(table, annotations=people)
    intervals = ClusterBootstrap(replicates)
    return list_computable_audits()[name].compute(
        table, intervals=intervals, **OPTIONS.get(name, {})
    )


@pytest.mark.parametrize("name", list_computable_audits())
def test_rows_are_flat_and_do_not_depend_on_the_order_of_the_tables(name):
    rows = rows_of(name, 5)
    check_rows({name: rows})
    assert [row for row in rows_of(name, 5, is_turned=True) if row not in rows] == []


@pytest.mark.parametrize("name", list_computable_audits())
def test_every_key_of_real_rows_is_declared_and_no_other(name):
    audit = list_computable_audits()[name]
    rows = rows_of(name, 5)
    assert rows
    declared = {
        key + end
        for key, column in audit.columns.items()
        for end in (
            "",
            *ENDS["bounds"] * bool(column.bounds),
            *ENDS["interval"] * bool(column.interval),
        )
    }
    assert {key for row in rows for key in row} == declared


@pytest.mark.parametrize("name", list_computable_audits())
def test_every_option_and_every_key_is_told_of(name):
    audit = list_computable_audits()[name]
    assert set(audit.options) == set(audit.options_model().model_fields)
    assert audit.question.endswith("?")
    assert audit.remedy


def test_every_finding_has_an_id_of_its_own():
    ids = Counter(check.id for check in list_checks())
    assert ids["gap"] == 1
    assert set(ids.values()) == {1}
    assert all(check.title for check in list_checks())
