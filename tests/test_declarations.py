"""The declarations of the audits against what the audits really give."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pandas as pd
import pytest
from audit_tables import judged
from test_audit_properties import EVALUATORS, of

from factaudit.audit import list_computable_audits, load_builtin_audits
from factaudit.audit.core.interval_methods import is_random_interval_method
from factaudit.audit.core.result_rows import Row
from factaudit.audit.findings import list_checks
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


def rows_of(name: str, replicates: int) -> list[Row]:
    """The rows of an audit on claims that give it something to say."""
    options = {"size": 3} if name.startswith("chunking") else {}
    if name == "covariates":
        options = {"columns": ["system"], "min_labels": 1}
    again = [row | {"e": [row["e"], row["e"]]} for row in of()]
    if name == "pairs":
        again = [
            row
            | {"claim_id": f"c{at}", "label": at % 2, "error_type": "ab"[at % 4 // 2]}
            | ({} if at % 2 else {"pair_of": f"c{at + 1}"})
            for at, row in enumerate(again[: len(again) // 2 * 2])
        ]
    if name == "retrieval":
        again = [
            row
            | {"variant": variant, "claim_id": f"{row['claim_id']} {variant}", "claim": f"fact {at}"}
            | ({"e": 1} if variant != "base" else {})
            for variant in ("base", "retrieval=all")
            for at, row in enumerate(facts())
        ]
    if name.startswith("sensitivity"):
        again = [
            row
            | {"variant": variant, "claim_id": f"{row['claim_id']} {variant}"}
            | ({"e": 1} if variant == "other" and at % 3 == 0 else {})
            for variant in ("base", "other")
            for at, row in enumerate(facts())
        ]
    if name == "invariance":
        again += [
            row
            | {
                "claim_id": f"v{at}",
                "variant_of": f"c{at}",
                "kind": "kc"[at % 2],
                "expected": ["same", "changed"][at % 2],
            }
            | {"label": None, "e": 1 - at % 3 % 2, "f": 1 - row["f"]}
            for at, row in enumerate(again)
        ]
        again = [{"claim_id": f"c{at}"} | row for at, row in enumerate(again)]
    table = judged(
        facts() if "factscore" in name or name == "citations" or "decomposition" in name else again, *EVALUATORS
    )
    said = [(claim, who, at % (4 + who) > 0) for at, claim in enumerate(table.claims["claim_id"]) for who in range(3)]
    people = pd.DataFrame(said, columns=["claim_id", "annotator", "label"]).astype({"label": "Int8"})
    if name.startswith("grade"):
        people = people.assign(grade=[at % (4 + who) % 5 for at in range(len(people) // 3) for who in range(3)])
        options |= {"scale": (0, 4)}
    table = replace(table, annotations=people)
    return list_computable_audits()[name].compute(table, intervals=ClusterBootstrap(replicates), **options)


@pytest.mark.parametrize("name", list_computable_audits())
def test_intervals_that_move_with_the_replicates_and_no_others_are_called_bootstrap(name):
    """No audit says True for the way its intervals are made, and captions name a bootstrap only where one draws."""
    columns = list_computable_audits()[name].columns
    few, many = rows_of(name, 5), rows_of(name, 60)
    for key, column in columns.items():
        if column.interval:
            assert isinstance(column.interval, str), key
            ends = [[(row[f"{key}_low"], row[f"{key}_high"]) for row in rows] for rows in (few, many)]
            known = [pair for pair in zip(*ends, strict=True) if None not in (*pair[0], *pair[1])]
            varied = [pair for pair in known if pair[0][0] < pair[0][1] or pair[1][0] < pair[1][1]]
            moves = any(one != other for one, other in known)
            assert moves <= is_random_interval_method(column.interval), f"{key} is drawn, and called {column.interval}"
            assert moves or not varied or not is_random_interval_method(column.interval), f"{key} is called a bootstrap"


@pytest.mark.parametrize("name", list_computable_audits())
def test_every_key_of_real_rows_is_declared_and_no_other(name):
    audit = list_computable_audits()[name]
    rows = rows_of(name, 5)
    assert rows
    declared = {
        key + end
        for key, column in audit.columns.items()
        for end in ("", *ENDS["bounds"] * bool(column.bounds), *ENDS["interval"] * bool(column.interval))
    }
    assert {key for row in rows for key in row} == declared


@pytest.mark.parametrize("name", list_computable_audits())
def test_every_option_and_every_key_is_told_of(name):
    audit = list_computable_audits()[name]
    assert set(audit.options) == set(audit.options_model().model_fields)
    assert audit.question.endswith("?")
    assert audit.remedy


def test_every_key_of_every_table_is_told_of():
    """Of audits, and of tables that commands write."""
    untold = [
        f"{audit.name}: {key}"
        for audit in load_builtin_audits()
        for key in audit.columns
        if not audit.columns[key].what
    ]
    assert untold == []


def test_every_finding_has_an_id_of_its_own():
    ids = Counter(check.id for check in list_checks())
    assert ids["gap"] == 1
    assert set(ids.values()) == {1}
    assert all(check.title for check in list_checks())
