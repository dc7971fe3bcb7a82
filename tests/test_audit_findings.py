"""Findings: tables that set a check off and tables that do not; what a finding says is in its
evidence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from audit_tables import find, tables
from audit_worlds import audit_world, make_world

import factaudit

Row = dict[str, Any]
CASES = yaml.safe_load((Path(__file__).parent / "golden/findings.yaml").read_text(encoding="utf-8"))
#: Audits that know claims and responses: claims, unless a case asks for others.
WITH_LEVELS = ("quantification", "headroom", "ranking", "adjustment")


def make_rows(claims: list[Row]) -> list[Row]:
    """The rows of a case, one for each claim."""
    rows = []
    for each in claims:
        columns = {
            key: value for key, value in each.items() if key not in ("n", "response", "document")
        }
        for at in range(each["n"]):
            row = dict(columns)
            for key in ("response", "document"):
                if key in each:
                    name, size = each[key]
                    row["doc_id" if key == "document" else "response_id"] = f"{name}{at // size}"
            rows.append(row)
    return rows


def audit_rows(rows: list[Row], audits: list[Any], **options: Any) -> factaudit.Results:
    """The results of some audits of such rows."""
    asked = [{each: {"levels": ["claim"]}} if each in WITH_LEVELS else each for each in audits]
    evaluators = sorted({"a", "b", "e"} & set(rows[0]))
    return factaudit.compare(
        *tables(rows, evaluators), audits=asked, **({"replicates": 300} | options)
    )


def cells(tp: int, fn: int, tn: int, fp: int, **columns: Any) -> list[Row]:
    counts = ((tp, 1, 1), (fn, 1, 0), (tn, 0, 0), (fp, 0, 1))
    return make_rows([{"n": n, "label": label, "e": said} | columns for n, label, said in counts])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_a_check_says_what_is_wrong_and_nothing_else(case):
    results = audit_rows(make_rows(case["claims"]), case["audits"], **case.get("options", {}))
    found = [one for one in results.finding_rows if one["id"] == case["check"]]
    assert [one["severity"] for one in found] == case["severity"].split()
    for one in found:
        assert_numbers_are_evidence(one)


# ---- what a finding says is its evidence


def assert_numbers_are_evidence(finding: Row) -> None:
    """Every number of a statement is read again from the evidence, by rules that share nothing with
    the package."""
    texts = {"0.0"}
    statement = finding["statement"]
    for value in sorted(map(str, finding["evidence"].values()), key=len, reverse=True):
        if not value.replace(".", "").replace("-", "").isdigit():
            statement = statement.replace(value, "")
    for value in finding["evidence"].values():
        if isinstance(value, int | float):
            texts |= {
                f"{value:,}",
                f"{value:.6g}",
                f"{value:.2f}",
                f"{100 * value:.1f}",
                f"{100 * abs(value):.1f}",
            }
            texts |= {
                f"{100 * value:+.1f}".replace("-", "−"),
                f"{100 * value:.1f}".removesuffix(".0"),
            }
    for name in filter(None, (finding["dataset"], *str(finding["evaluator"]).split(" / "))):
        statement = statement.replace(name, "")
    numbers = re.findall(r"[+−]?\d[\d,]*(?:\.\d+)?", statement)
    assert not [number for number in numbers if number not in texts], (
        finding["statement"],
        finding["evidence"],
    )
    assert "nan" not in statement
    assert "{" not in statement


@pytest.mark.parametrize("world", ["unscored", "a constant"])
def test_every_number_of_a_run_is_of_a_row(world):
    results = audit_world(make_world(world))
    assert results.finding_rows
    rows = [row for mine in results.audits.values() for row in mine]
    for finding in results.finding_rows:
        assert_numbers_are_evidence(finding)
        own = {
            key: value
            for key, value in finding["evidence"].items()
            if key in ("tpr", "tnr", "iou", "bacc", "n")
        }
        assert not own or any(own.items() <= row.items() for row in rows), finding


def test_new_names_and_another_order_change_nothing_but_names():
    claims, verdicts = make_world("whole")
    before = audit_world((claims, verdicts), with_estimates=False)
    new_names = {
        "ant": "zebra",
        "bee": "yak",
        "cat": "wolf",
        "quill": "owl",
        "robin": "lark",
        "swift": "crane",
    }
    order = np.random.default_rng(1).permutation(len(claims))
    claims = claims.assign(system=claims["system"].map(new_names)).iloc[order]
    verdicts = verdicts.assign(evaluator=verdicts["evaluator"].map(new_names))
    after = audit_world((claims, verdicts), with_estimates=False)
    pattern = re.compile(r"\b(" + "|".join(new_names) + r")\b")
    renamed = {
        pattern.sub(lambda name: new_names[name[0]], each["statement"])
        for each in before.finding_rows
    }
    assert renamed == {each["statement"] for each in after.finding_rows}
    told = [
        (each["task"], each["may"], each["figure"], each["required"]) for each in before.decisions
    ]
    assert told == [
        (each["task"], each["may"], each["figure"], each["required"]) for each in after.decisions
    ]


def test_the_p_value_of_a_bias_is_exact_where_few_clusters_are_judged_wrongly():
    row = find(
        audit_rows(cells(0, 6, 0, 0, system="s"), ["quantification"]).audits["quantification"],
        system="s",
    )
    assert row["p_bias"] == pytest.approx(2 * 0.5**6)
    assert row["n_clusters"] == 6
