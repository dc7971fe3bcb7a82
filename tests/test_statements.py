"""What reports say, read again from rows: values, names and orders; and recomputed from claims and verdicts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audit_tables import collect_findings
from test_audit_grades import draw_graded

from factaudit.audit import load_all_audits, make_audited_run
from factaudit.audit.adjustment import MIN_CALIBRATION_ERRORS
from factaudit.audit.core.decision_limits import DecisionLimits
from factaudit.audit.core.finding_parts import MAX_TPR_TNR_GAP
from factaudit.audit.core.statements import Statement, StatementValue
from factaudit.audit.stability import MAX_FLIP_RATE
from factaudit.estimate.rate_estimation import estimate_rates
from factaudit.report.document import build_report_document
from factaudit.results import Results, compare
from factaudit.tables import validate_claims, validate_verdicts

Tables = tuple[pd.DataFrame, pd.DataFrame]
SYSTEMS, EVALUATORS = ("ant", "bee", "cat"), ("quill", "robin", "swift")


def make_world(world: str, n: int = 180, seed: int = 3) -> Tables:
    """Claims of two data sets and verdicts of three evaluators; ``world`` says what is special."""
    random = np.random.default_rng(seed)
    at = np.arange(n)
    claims = pd.DataFrame(
        {
            "claim_id": [f"c{i}" for i in at],
            "dataset": np.where(at % 2, "even", "odd"),
            "system": np.array(SYSTEMS)[at % 3],
            "response_id": [f"r{i // 4}-{i % 2}-{i % 3}" for i in at],
            "doc_id": [f"d{i // 12}" for i in at],
            "claim": "a claim",
        }
    )
    label = (random.random(n) < 0.6 + 0.1 * (at % 3)).astype(int)
    claims["label"] = pd.array(label, dtype="Int8")
    if world == "nothing labelled":
        claims["label"] = pd.array([pd.NA] * n, dtype="Int8")
    parts = []
    for number, evaluator in enumerate(EVALUATORS[: 1 if world == "one evaluator" else 3]):
        score = np.clip(0.25 + 0.5 * label + random.normal(0, 0.2 + 0.1 * number, n), 0, 1).round(3)
        if world == "a constant" and number == 1:
            score = np.full(n, 0.9)
        missing = (random.random(n) < 0.1) & (world == "unscored")
        part = pd.DataFrame({"claim_id": claims["claim_id"], "evaluator": evaluator})
        part["score"] = np.where(missing, np.nan, score)
        part["prediction"] = pd.array(np.where(missing, None, (score >= 0.5).astype(int)), dtype="Int8")
        part["status"] = np.where(missing, "error", "ok")
        parts.append(part)
    if world == "one system":
        claims["system"] = "ant"
    return claims, pd.concat(parts, ignore_index=True)


WORLDS = ("whole", "unscored", "a constant", "one evaluator", "one system", "nothing labelled")


def audit_world(tables: Tables, with_estimates: bool = True) -> Results:
    claims, verdicts = validate_claims(tables[0]), validate_verdicts(tables[1])
    results = compare(claims, verdicts, replicates=50)
    if with_estimates and claims["label"].notna().any():
        few = claims.assign(label=claims["label"].where(claims["claim_id"].str[1:].astype(int) * 7 % 10 < 4))
        results.audits.update(estimate_rates(few, verdicts, levels=["claim"]).audits())
    return results


@pytest.fixture(scope="module", params=WORLDS)
def audited_world(request: pytest.FixtureRequest) -> tuple[str, Tables, dict[str, Any]]:
    tables = make_world(request.param)
    return request.param, tables, audit_world(tables).to_dict()


def list_statements(results: dict[str, Any]) -> Iterator[Statement]:
    """All that a report says of figures: what evaluators may be used for, findings and remarks."""
    audited = make_audited_run(results["audits"], results["about"])
    texts: list[tuple[str, object]] = [(one["id"], one["statement"]) for one in collect_findings(**pick(results))]
    for name, audit in load_all_audits().items():
        if not audited.rows(name):
            continue
        for each in results["about"]["evaluators"]:
            answers = [one.answer(audited, each["name"]) for one in audit.decides]
            texts += [(name, text) for one in answers if one is not None for text in (one.figure, one.sentence)]
        if audit.remarks is not None:
            texts += [(name, text) for text in audit.remarks(audited.rows(name), [])]
    for name, text in texts:
        assert isinstance(text, Statement), f"{name} says what is no statement: {text}"
        yield from text.parts


def pick(results: dict[str, Any]) -> dict[str, Any]:
    return {"audit_rows": results["audits"], "about": results["about"]}


def read_value_again(value: StatementValue) -> str:
    """The text of a value from its rows alone, by rules that share nothing with the package."""
    if value.reading == "count":
        return f"{len(value.rows):,}"
    found = [value.number] if value.number is not None else [row[value.key] for row in value.rows]
    if value.reading == "number":
        return f"{sum(found):,}"
    if value.reading == "errors":
        return f"{found[0]}"
    if value.reading == "limit":
        return f"{100 * found[0]:.1f}".removesuffix(".0")
    if value.reading == "points":
        return f"{100 * np.mean(np.abs(found)):.1f}"
    if value.reading == "signed":
        text = f"{100 * found[0]:+.1f}".replace("-", "−")
        return "0.0" if text.strip("+−") == "0.0" else text
    if value.reading == "rest":
        return f"{100 * (1 - found[0]):.0f} of 100"
    if value.reading == "hundredths":
        return f"{found[0]:.2f}".replace("-", "−")
    if value.reading == "decimal":
        return f"{found[0]:.1f}"
    if value.reading == "threshold":
        return f"{found[0]:.6g}"
    if value.reading in ("percent", "interval"):
        low, high = (value.rows[0].get(f"{value.key}_{end}") for end in ("low", "high"))
        has_interval = value.reading == "interval" and low is not None
        return f"{100 * found[0]:.1f} %" + (f" ({100 * low:.1f}–{100 * high:.1f})" if has_interval else "")
    assert value.reading == "name"
    totals = {"__all__": f"all {value.key}s", "__macro__": "mean over data sets"}
    return f"{found[0]:,}" if isinstance(found[0], int) else totals.get(str(found[0]), str(found[0]))


def check_statements(results: dict[str, Any]) -> list[Statement]:
    """Every number of a report's statements is a value of its rows; no quantity has two values."""
    rows = [row for mine in results["audits"].values() for row in mine]
    rows += [*results["about"]["evaluators"], *results["about"]["claims"]]
    by_place: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        by_place.setdefault((row.get("dataset"), row.get("evaluator")), []).append(row)
    names = {str(value) for row in rows for value in row.values() if isinstance(value, str)}
    limits = {*DecisionLimits().as_dict().values(), *results["about"].get("limits", {}).values()}
    limits |= {1 - DecisionLimits().min_rate, MAX_TPR_TNR_GAP, MIN_CALIBRATION_ERRORS, MAX_FLIP_RATE, 0.5, 0.1}
    statements = list(list_statements(results))
    quantities: dict[tuple[Any, ...], str] = {}
    for statement in statements:
        assert not re.search(r"\d", re.sub(r"{[^}]+}", "", statement.template)), (statement, "a number of no row")
        for word in statement.words:
            left = word
            for name in sorted(names, key=len, reverse=True):
                left = left.replace(name, "")
            assert not re.search(r"\d", left), (statement, word, "a number of no row")
        for value in statement.cited:
            text = read_value_again(value)
            assert value.text == text or re.fullmatch(rf"{re.escape(text)} [a-z ]+", value.text), (statement, value)
            if value.number is not None:
                assert value.number in limits, (statement, value)
            for cited in value.rows:
                if isinstance(cited, dict):
                    place = (cited.get("dataset"), cited.get("evaluator"))
                    known = any(row.items() <= cited.items() for row in by_place.get(place, []))
                    assert known or "misordered" in cited, (statement, value.field, "no row of the report")
            if value.rows and value.reading not in ("count", "number", "name"):
                quantity = (value.key, value.reading, *sorted(map(str, value.rows)))
                assert quantities.setdefault(quantity, text) == text, "one quantity, two values"
    return statements


def test_every_value_of_a_statement_is_that_of_its_rows(audited_world: tuple[str, Tables, dict[str, Any]]) -> None:
    assert check_statements(audited_world[2])


@pytest.mark.parametrize(("judge", "check"), [({"noise": 50.0}, "grade_order"), ({"shift": 0.8}, "grade_shift")])
def test_every_value_of_a_statement_on_grades_is_that_of_its_rows(judge: dict[str, float], check: str) -> None:
    claims, verdicts, people = draw_graded(8, **judge)  # type: ignore[arg-type]
    people = people.assign(grade=people["grade"].astype(float))
    claims["grade"] = claims["claim_id"].map(people.groupby("claim_id")["grade"].median())
    results = compare(validate_claims(claims), validate_verdicts(verdicts), audits=["grades"], replicates=20)
    assert check in {row["id"] for row in results.finding_rows}
    assert check_statements(results.to_dict())


def list_texts(results: dict[str, Any], tmp_path: Any) -> list[str]:
    """All texts of a report but its signatures and tables."""
    document = build_report_document(results, tmp_path)
    texts = [*document.remarks, *(str(finding["statement"]) for finding in results["findings"])]
    for section in document.sections:
        texts += [*section.paragraphs, *([section.figure.caption] if section.figure else [])]
    return texts


def test_new_names_change_nothing_but_names(audited_world: tuple[str, Tables, dict[str, Any]], tmp_path: Any) -> None:
    """Names in the other order of the alphabet; figures, counts and the systems that are told of stay."""
    _, (claims, verdicts), _ = audited_world
    before = list_texts(audit_world((claims, verdicts), with_estimates=False).to_dict(), tmp_path)
    new_names = {"ant": "zebra", "bee": "yak", "cat": "wolf", "quill": "owl", "robin": "lark", "swift": "crane"}
    claims = claims.assign(system=claims["system"].map(new_names))
    verdicts = verdicts.assign(evaluator=verdicts["evaluator"].map(new_names))
    after = list_texts(audit_world((claims, verdicts), with_estimates=False).to_dict(), tmp_path)
    pattern = re.compile(r"\b(" + "|".join(new_names) + r")\b")
    renamed = [pattern.sub(lambda found: new_names[found[0]], text) for text in before]
    # Where a text lists names, it does so in the order of the table.
    words = re.compile(r"\w\S*\w|\w")
    found, expected = ({tuple(sorted(words.findall(text))) for text in texts} for texts in (after, renamed))
    assert found == expected


@pytest.mark.slow
def test_permuted_rows_change_nothing(audited_world: tuple[str, Tables, dict[str, Any]], tmp_path: Any) -> None:
    _, (claims, verdicts), _ = audited_world
    before = list_texts(audit_world((claims, verdicts), with_estimates=False).to_dict(), tmp_path)
    order = np.random.default_rng(1).permutation(len(claims))
    first = {name: at for at, name in enumerate(EVALUATORS)}  # the order of evaluators is the user's, and stays
    shuffled = verdicts.sample(frac=1, random_state=2)
    shuffled = shuffled.sort_values("evaluator", key=lambda names: names.map(first), kind="stable")
    after = audit_world((claims.iloc[order], shuffled), with_estimates=False).to_dict()
    assert set(list_texts(after, tmp_path)) ^ set(before) == set()


def test_the_report_tells_how_many_tests_were_made(tmp_path: Any) -> None:
    results = audit_world(make_world("whole"), with_estimates=False).to_dict()
    rows = results["audits"]["quantification"]
    of_claims = [row for row in rows if row["level"] == "claim" and row["bias_low"] is not None]
    told = results["about"]["n_tests"]
    assert told["bias"] == len(of_claims), "each system, and each data set as a whole, by each evaluator"
    assert told["order"] == sum(row["n_pairs"] for row in results["audits"]["ranking"] if row["level"] == "claim")
    assert "unscored" not in told, "it counts, and tests nothing"
    text = f"{len(told)} checks of this run made {sum(told.values()):,} tests."
    assert any(text in paragraph for paragraph in build_report_document(results, tmp_path).methods)


def read_values(statement: Statement) -> dict[str, StatementValue]:
    return {value.field: value for value in statement.cited}


def test_a_report_explains_its_terms_once(audited_world: tuple[str, Tables, dict[str, Any]], tmp_path: Any) -> None:
    world, _, results = audited_world
    text = " ".join(build_report_document(results, tmp_path).methods)
    assert text.count("Label and prediction 1 mean attributable") == 1
    assert ("Estimates use the labels of the claims" in text) == (world != "nothing labelled")
