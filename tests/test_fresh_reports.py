"""What readers of fresh reports found false or misleading: each test is of a sentence that such a reader tried."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from factaudit.audit import find_audit_declaration
from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.findings import collect_findings, list_audit_check_outcomes, list_checks
from factaudit.audit.first_screen import compose_first_screen
from factaudit.audit.first_screen_systems import list_first_screen_system_advice
from factaudit.audit.rates_checks import RATES_CHECKS
from factaudit.datasets import convert
from factaudit.report.check_table import build_report_check_table
from factaudit.report.report_document import build_report_document
from factaudit.report.summary import (
    build_report_evaluator_overview,
    compose_report_summary_paragraphs,
    format_report_summary_finding_evidence,
    group_report_summary_findings_by_check,
)
from factaudit.results import Results, compare
from factaudit.run_matching import compare_findings_of_runs
from factaudit.run_reuse import describe_run_audit_rows
from factaudit.tables import validate_claims, validate_verdicts
from factaudit.tables.annotations import count_labels_by_grade, validate_annotations
from factaudit.tables.standard_columns import list_further_columns_of_scores

Row = dict[str, Any]


# ---------------------------------------------------------------------------------- TPR and TNR apart, on average


def make_rate_row(dataset: str, gap: float, half: float | None, n_datasets: int = 1) -> Row:
    row: Row = {"dataset": dataset, "evaluator": "e", "n": 100, "n_datasets": n_datasets, "tpr": 0.9, "tnr": 0.9 - gap}
    ends = (None, None) if half is None else (gap - half, gap + half)
    return row | {"gap": gap, "gap_min": gap, "gap_max": gap, "gap_low": ends[0], "gap_high": ends[1]}


def find_gap(gaps: list[float], half: float | None, n_datasets: int | None = None) -> list[Any]:
    """What the check finds of gaps by data set, and of their mean; half: of each interval."""
    rows = [make_rate_row(f"d{at}", gap, half) for at, gap in enumerate(gaps)]
    of_mean = None if half is None else half / len(gaps) ** 0.5
    mean = make_rate_row("__macro__", float(np.mean(gaps)), of_mean, n_datasets or len(gaps))
    return list(RATES_CHECKS[0].run(AuditedRun({"rates": [*rows, mean]})))


def test_a_gap_that_no_data_set_shows_alone_is_found_in_their_mean() -> None:
    (finding,) = find_gap([0.45] * 4, 0.26)
    assert (finding.severity, finding.dataset) == ("fail", None)
    assert finding.statement == (
        "e recognises 90.0 % of attributable but only 45.0 % of unattributable claims as the mean over 4 datasets. "
        "Check a sample of what it passes before you rely on it. That mean is significantly over 20 points; no dataset "
        "alone is."
    )


@pytest.mark.parametrize(
    ("gaps", "half", "n_datasets"),
    [
        ([0.45, -0.45, 0.45, -0.45], 0.26, None),  # they cancel: on average it leans to neither answer
        ([0.30] * 4, 0.26, None),  # the mean's interval holds the limit
        ([0.45], 0.26, None),  # the mean of one is that one
        ([0.45] * 4, 0.26, 5),  # another data set has no gap: the mean is of other claims than TPR and TNR
    ],
)
def test_a_mean_gap_is_not_said_where_it_is_not_shown(gaps: list[float], half: float, n_datasets: int | None) -> None:
    assert find_gap(gaps, half, n_datasets) == []


def test_a_rate_without_an_interval_is_no_warning_beside_others_that_have_one() -> None:
    """A data set with one error has no interval; that the evaluator missed it is no sign of a habit."""
    alone = make_rate_row("d0", 0.9, 0.1) | {"gap_low": None, "gap_high": None}
    other = make_rate_row("d1", 0.1, 0.4)
    assert list(RATES_CHECKS[0].run(AuditedRun({"rates": [alone, other]}))) == []
    (finding,) = RATES_CHECKS[0].run(AuditedRun({"rates": [alone]}))
    assert finding.severity == "warn"


_APART, _MIXED = " Its TPR and TNR are {how}over 20 points apart", " Its TPR is {how}over its TNR by over 20 points"


@pytest.mark.parametrize(
    ("gaps", "scope"),
    [
        ([0.5, 0.3, 0.1, 0.1], "{check}" + _APART + " on 2 of 4 datasets."),
        ([0.5, 0.3, -0.3], _MIXED + " on 2 of 3 datasets, under it on 1."),
        ([0.5, -0.19, -0.19, -0.19], _APART + " on 1 of 4 datasets."),
        ([0.5], "{check}"),
    ],
)
@pytest.mark.parametrize("half", [None, 0.05])
def test_what_to_check_is_not_said_by_the_worst_data_set_alone(
    gaps: list[float], scope: str, half: float | None
) -> None:
    """ "Check a sample of what it passes" came of 1 of 14 data sets; on 3 it rejects too much, and so on average."""
    (finding,) = find_gap(gaps, half)
    how, unsure = ("", " (no interval was computed)") if half is None else ("significantly ", "")
    told = scope.format(how=how, check=" Check a sample of what it passes before you rely on it.")
    assert str(finding.statement).endswith(f"claims on d0{unsure}.{told}")


@pytest.mark.parametrize(
    ("tpr_low", "half", "why"),
    [
        (0.91, 0.2, "TNR: not significant either way"),
        (0.70, 0.2, "TPR and TNR: not significant either way"),
        (None, None, "No interval was computed"),
    ],
)
def test_the_rate_that_is_open_is_named(tpr_low: float | None, half: float | None, why: str) -> None:
    """ "Not significant either way" stood behind two rates, of which one was over the limit by its interval."""
    row = make_rate_row("d", 0.1, None) | {
        "tpr": 0.985,
        "tnr": 0.885,
        "tpr_low": tpr_low,
        "tpr_high": tpr_low and 0.999,
    }
    row |= {"tnr_low": half and 0.885 - half, "tnr_high": half and 0.98, "n_unscored": 0}
    answer = find_audit_declaration("rates").decides[0].answer(AuditedRun({"rates": [row]}), "e")
    assert answer is not None
    assert (answer.may, answer.sentence) == ("cannot tell", f"{why}; required: 80 % of both classes.")


# ------------------------------------------------------------------------------------------------- what was checked


def make_tables(
    rates: dict[str, tuple[float, float]], n: int = 600, datasets: int = 1
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Claims of three systems, 30 % of them errors, and verdicts of evaluators with these (TPR, TNR)."""
    draw, parts = np.random.default_rng(5), []
    claims = pd.DataFrame({"claim_id": [f"c{at}" for at in range(n)], "claim": "a claim"})
    claims["dataset"] = [f"set{at % datasets}" for at in range(n)]
    claims["system"] = [("ant", "bee", "cow")[at // datasets % 3] for at in range(n)]
    claims["label"] = (draw.random(n) < 0.7).astype(int)
    for name, (tpr, tnr) in rates.items():
        hit = draw.random(n)
        said = np.where(claims["label"] == 1, hit < tpr, hit >= tnr).astype(int)
        parts.append(claims[["claim_id"]].assign(evaluator=name, prediction=said, status="ok"))
    return validate_claims(claims), validate_verdicts(pd.concat(parts, ignore_index=True))


def test_a_correction_over_datasets_is_said_where_there_are_several() -> None:
    assert all("dataset" not in one.describe_controls(has_several_datasets=False) for one in list_checks())
    for datasets in (1, 2):
        results = compare(*make_tables({"e": (0.9, 0.8)}, datasets=datasets), replicates=20)
        table = build_report_check_table(results.to_dict())
        assert table is not None
        controls = " ".join(line[2].text for line in table.rows)
        assert "Holm over all evaluators" in controls
        assert ("datasets" in controls) == (datasets == 2)


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ({"rates": 2, "ranking": 1}, "audits            3 rows in 2 audits"),
        ({"rates": 2, "ranking": 1, "chunking": 0}, "audits            3 rows in 2 audits"),
        ({"rates": 2, "estimates": 5}, "audits            2 rows in 1 audit, 5 in 1 table beside them"),
        ({"estimates": 5, "estimate_summary": 1}, "tables            6 rows in 2 tables"),
    ],
)
def test_audits_that_computed_something_are_counted(sizes: dict[str, int], told: str) -> None:
    """Not those without a row, nor tables that a command writes."""
    audits: dict[str, Any] = {name: [{}] * n for name, n in sizes.items()}
    assert describe_run_audit_rows(Results("s", {}, audits)) == told


def list_reasons(results: Results) -> dict[str, str]:
    return {one.check.id: one.not_run for one in list_audit_check_outcomes(results.audits, results.about)}


def test_what_nothing_could_have_shown_is_not_checked() -> None:
    """No response, labels that order no pair, documents too few: that nothing is found there says nothing."""
    claims, verdicts = make_tables({"e": (0.9, 0.8)}, n=36)
    few = compare(validate_claims(claims.assign(doc_id=[f"d{at % 4}" for at in range(36)])), verdicts, replicates=20)
    reasons = list_reasons(few)
    assert reasons["level"] == "no response has several claims"
    assert reasons["order"] == "the labels order no pair of systems significantly"
    assert "none could reject" in reasons["bias"]
    assert reasons["adjustment"] == "no evaluator could be found off"
    assert {"level", "order", "bias", "adjustment"}.isdisjoint(few.about["n_tests"])
    screen = compose_first_screen(few.to_dict())
    assert "reversed" not in " ".join(" ".join(head) for head in screen.columns), "0 of 3 would look like a merit"


def test_systems_that_differ_by_one_test_alone_are_no_sign_that_they_are_alike() -> None:
    """The evaluator with most evidence against it had no warning, those with less had one."""
    row = {"level": "claim", "evaluator": "e", "rate": "tnr", "n": 45, "n_unscored": 0, "n_systems": 3, "lowest": 0.2}
    row |= {
        "highest": 0.8,
        "n_lowest": 5,
        "n_highest": 15,
        "p": 0.03,
        "power_10": 0.1,
        "missable": 0.7,
        "transfers": "no",
        "reason": None,
    }
    rows = [row | {"dataset": name} for name in ("c", "d")]
    (finding,) = collect_findings({"transfer": rows}, {})
    assert finding["severity"] == "fail"
    told = (
        "e does not judge all systems alike, by 2 tests of its rates together. Which rates differ is not shown: 2 of 2 "
    )
    assert finding["statement"].startswith(told + "reject alone, none after the correction for 2 tests.")
    (finding,) = collect_findings({"transfer": rows[:1]}, {})
    assert "its TNR on c goes from 20.0 % (5 claims) to 80.0 % (15) over systems" in finding["statement"]
    (finding,) = collect_findings({"transfer": [rows[0], rows[1] | {"p": 0.9, "transfers": "cannot tell"}]}, {})
    assert finding["severity"] == "warn"
    assert "is not known: 1 of 2 tests of its rates rejects alone, but not all together." in finding["statement"]


# ----------------------------------------------------------------------------------------------------- first screen


def list_lines(results: Results, word: str) -> list[str]:
    return [str(one.sentence) for one in compose_first_screen(results.to_dict()).advice if one.word == word]


def test_a_fault_of_each_evaluator_under_use_is_named() -> None:
    """The reader may take the second as well."""
    results = compare(*make_tables({"a": (0.95, 0.6), "b": (0.95, 0.6)}, n=1800), replicates=50)
    assert "or" in list_lines(results, "Best")[0]
    (line,) = [one for one in list_lines(results, "Beware") if "error rates" in one]
    text = r"error rates: 3 of 3 by (\w), 3 of 3 by (\w) are significantly off \(worst: [\d.]+ points\), "
    text += "none significantly by over 5\\."
    found = re.fullmatch(text, line)
    assert found is not None, line
    assert {found[1], found[2]} == {"a", "b"}


def test_a_fault_of_the_second_under_use_alone_is_named() -> None:
    about = {"dataset": "d", "level": "claim", "n": 90, "n_clusters": 90, "labelled_error_rate": 0.3}
    rows = [
        about
        | {"evaluator": name, "system": system, "bias": bias, "bias_min": bias, "bias_max": bias}
        | {"bias_low": bias - 0.05, "bias_high": bias + 0.05, "predicted_error_rate": 0.3 + bias}
        for name, bias in (("first", 0.0), ("second", 0.3))
        for system in ("ant", "bee")
    ]
    lines = list(list_first_screen_system_advice(AuditedRun({"quantification": rows}), ["first", "second"]))
    assert [word for word, _ in lines] == ["Not for", "Instead"]
    assert (
        lines[0][1] == "reporting error rates: 2 of 2 by second are significantly off by over 5 points (worst: 30.0)."
    )


def test_a_difference_that_unscored_claims_leave_open_is_not_called_insignificant() -> None:
    """The paired interval beside it is on one side of 0."""
    claims, verdicts = make_tables({"a": (0.95, 0.7), "b": (0.93, 0.55)}, n=600)
    is_lost = (verdicts["evaluator"] == "b") & (np.arange(len(verdicts)) % 6 == 0)
    verdicts.loc[is_lost, "prediction"] = pd.NA
    verdicts.loc[is_lost, "status"] = "error"
    results = compare(claims, verdicts, audits=["rates", "differences"], replicates=20)
    (row,) = results.rows("differences", key="bacc", dataset="set0")
    assert row["difference_low"] > 0 > row["difference_low"] + row["difference_min"] - row["difference"]
    assert list_lines(results, "Best") == ["a or b: the difference is open by the unscored claims."]
    assert "The difference from b" in (told := " ".join(compose_report_summary_paragraphs(results.to_dict())))
    assert "is open by the unscored claims." in told


@pytest.mark.parametrize("datasets", [1, 2])
def test_the_first_line_says_what_rates_are_means_of(datasets: int) -> None:
    results = compare(*make_tables({"e": (0.9, 0.8)}, datasets=datasets), replicates=20)
    size = compose_first_screen(results.to_dict()).size
    assert ("data sets (rates are their means), all labelled" in size) == (datasets == 2)


@pytest.mark.parametrize(
    ("tnr", "audit", "n_passed"), [(6 / 33, "dfactscore", 27), (1.0, "dfactscore", 0), (0.5, "e", 0)]
)
def test_an_error_of_d_factscore_may_be_true_of_somebody(tnr: float, audit: str, n_passed: int) -> None:
    """ "It misses 82 of 100 errors": 27 of 33 were true of another person of the name, which is what it counts."""
    row = make_rate_row("d", 0.1, None) | {"evaluator": "FActScore", "tnr": tnr, "n_unattributable": 33}
    advise = find_audit_declaration("dfactscore").advice
    assert advise is not None
    told = [str(text) for _, text in advise(AuditedRun({"rates": [row], audit: [{}]}), [])]
    assert [text.partition(" are true of somebody")[0] for text in told] == [f"{n_passed} of 33 errors"] * (
        n_passed > 0
    )


@pytest.mark.parametrize(
    ("n_systems", "told"), [((3, 3), ""), ((3, 2), "over 5 system rates of 2)"), ((3, 0), "over 3")]
)
def test_over_what_the_mean_bias_is_is_said_where_data_sets_weigh_unequally(
    n_systems: tuple[int, int], told: str
) -> None:
    """ "Rates are means over data sets" stood over a mean of 61 system rates of 12 of the 14 data sets."""
    claims, verdicts = make_tables({"e": (0.9, 0.8)}, datasets=2)
    number = claims["dataset"].map({"set0": n_systems[0], "set1": n_systems[1]})
    at = claims["system"].map({"ant": 0, "bee": 1, "cow": 2}) % number.replace(0, 1)
    claims["system"] = ("s" + at.astype(str)).where(number > 0, None)
    results = compare(validate_claims(claims), verdicts, audits=["rates", "quantification"], replicates=20).to_dict()
    size = compose_first_screen(results).size
    assert ("“off by” is the mean" in size) == bool(told)
    assert told in size
    table = build_report_evaluator_overview(results)
    assert table is not None
    n_rates, n_datasets = sum(n_systems), sum(n > 0 for n in n_systems)
    assert (f"are off, over {n_rates} rates of {n_datasets} datasets." in table.caption) == (n_datasets > 1)


def test_the_gravest_of_rates_that_differ_is_the_surest_and_says_where() -> None:
    """ "Lowest 0.0 %, highest 100.0 %" was of one of four data sets, and stood so for all three evaluators."""
    ps = {"good": [0.004, 0.004, 0.02], "better": [0.0005, 0.001, 0.0005]}
    about = {
        "level": "claim",
        "rate": "tpr",
        "lowest": 0.0,
        "highest": 1.0,
        "n_systems": 6,
        "n_lowest": 9,
        "n_highest": 9,
        "transfers": "no",
    }
    rows = [
        about | {"dataset": f"d{at}", "evaluator": name, "p": p}
        for name, each in ps.items()
        for at, p in enumerate(each)
    ]
    found = [one for one in collect_findings({"transfer": rows}) if one["id"] == "transfer"]
    rates = [{"dataset": "d0", "evaluator": name, "bacc": bacc} for name, bacc in (("good", 0.9), ("better", 0.8))]
    ((group,), _) = group_report_summary_findings_by_check({"audits": {"rates": rates}, "findings": found})
    assert [one["evaluator"] for one in group.findings] == ["better", "good"]
    assert [format_report_summary_finding_evidence(one).split(",")[0] for one in group.findings] == ["dataset d0"] * 2


# ------------------------------------------------------------------------------------------- how grades became labels


def test_the_report_says_how_grades_became_labels(tmp_path: Path) -> None:
    """1,703 "errors" hid that annotators had said "partially" of 234 of them, and disagreed on 136."""
    yes, part, no = "supported", "partially", "not_supported"
    votes = [(yes, yes, no), (yes, part, part), (yes, part, no), (no, no, no), (no, no, part), (yes, yes, yes)]
    sentences = [{"answer": f"Sentence {at}.", "labels": labels} for at, labels in enumerate(votes)]
    folder = tmp_path / "annotations"
    folder.mkdir()
    path = folder / "annotations-alpaca.json"
    pd.Series([{"question_id": "q", "annotations": sentences}]).to_json(path, orient="values")
    converted = convert("lfqa", [path])
    assert converted.annotations is not None
    (one,) = count_labels_by_grade(converted.claims, converted.annotations)
    assert one["rule"] == "majority"
    assert {row["grade"]: row["label"] for row in one["words"]} == {yes: 1, part: 0, no: 0}
    assert {(row["label"], row["grade"]): row["n"] for row in one["counts"]} == {
        (1, yes): 2,
        (0, no): 2,
        (0, part): 1,
        (0, None): 1,
    }
    verdicts = validate_verdicts(converted.claims[["claim_id"]].assign(evaluator="e", prediction=1))
    results = compare(converted.claims, verdicts, annotations=converted.annotations, audits=["rates"], replicates=0)
    text = " ".join(build_report_document(results.to_dict(), tmp_path).sections[-1].paragraphs)
    assert (
        "LFQA: people's grades were read as labels, supported (1), not_supported (0), partially (0); a claim's label "
        "is that of most annotators. Of 4 claims with label 0 most annotators gave not_supported (2), partially (1); 1 "
        "claim of them without a grade of most."
    ) in text


def test_no_rule_is_said_of_labels_that_no_rule_makes() -> None:
    claims = validate_claims(pd.DataFrame({"claim_id": ["a", "b"], "dataset": "d", "claim": "a", "label": [1, 0]}))
    said = [{"claim_id": name, "annotator": "p", "label": 0, "grade": "bad"} for name in "ab"]
    (one,) = count_labels_by_grade(claims, validate_annotations(pd.DataFrame(said)))
    assert one["rule"] is None
    assert count_labels_by_grade(claims, None) == []
    assert count_labels_by_grade(claims, validate_annotations(pd.DataFrame(said).drop(columns="grade"))) == []


def test_a_column_of_scores_with_gaps_is_offered_as_an_evaluator_too() -> None:
    claims = pd.DataFrame({"claim_id": list("abc"), "whole": [0.1, 0.5, 0.9], "gaps": [0.2, None, 0.8], "n": [1, 2, 3]})
    assert list_further_columns_of_scores(claims) == ["whole", "gaps"]


# --------------------------------------------------------------------------------------------------------- diff


def make_results(rates: dict[str, tuple[float, float]], findings: list[Row]) -> Results:
    made = compare(*make_tables(rates, n=900), audits=["rates", "consistency", "quantification"], replicates=20)
    made.finding_rows[:] = findings
    return made


def test_a_finding_that_is_gone_is_told_with_its_reason() -> None:
    """ "a and b share only 35 %" was gone where they shared less: their BAcc were no longer alike."""
    before = [
        {"id": check, "severity": severity, "evaluator": who, "dataset": "set0", "statement": check}
        for check, severity, who in (("iou", "fail", "a / b"), ("gap", "fail", "a"), ("gap", "ok", "b"))
    ]
    alike, apart = {"a": (0.9, 0.9), "b": (0.9, 0.9)}, {"a": (0.95, 0.95), "b": (0.7, 0.7)}
    names = {"a": "a", "b": "b"}
    rows, _ = compare_findings_of_runs(make_results(alike, before), make_results(apart, []), names)
    assert [(row["change"], row["id"], row["why"]) for row in rows] == [
        ("gone", "iou", "Not checked now: a and b are not within 2 points of BAcc of each other."),
        (
            "gone",
            "gap",
            "The check does not report this now: “TPR and TNR are more than 20 points apart, on a data set or as the "
            "mean over data sets”.",
        ),
        ("gone", "gap", "This is not shown now."),
    ]
    now = [{"id": "iou", "severity": "fail", "evaluator": "a / c", "dataset": "set0", "statement": "iou"}]
    three = alike | {"c": (0.9, 0.9)}
    rows, _ = compare_findings_of_runs(make_results(three, before[:1]), make_results(three, now), names | {"c": "c"})
    assert [row["change"] for row in rows] == ["new", "gone"]
    assert rows[1]["why"] == "Of several pairs the check names the worst, which is now a / c."
    # A pair that the check no longer looks at was not overtaken by a worse one.
    after = make_results(alike | {"b": (0.7, 0.7), "c": (0.9, 0.9)}, now)
    rows, _ = compare_findings_of_runs(make_results(three, before[:1]), after, names | {"c": "c"})
    assert rows[1]["why"] == "Not checked now: a and b are not within 2 points of BAcc of each other."


@pytest.mark.parametrize(
    ("third", "why"),
    [
        (0.8, "no two of 3 evaluators clear of chance are within 2 points of BAcc."),
        (0.95, "a and b are not within 2 points of BAcc of each other."),
    ],
)
def test_a_pair_that_is_gone_is_not_counted_as_all_evaluators_of_its_run(third: float, why: str) -> None:
    """ "No two of 2 evaluators clear of chance" of a run with three: all but the finding's pair had been left out."""
    before = [{"id": "iou", "severity": "fail", "evaluator": "a / b", "dataset": "set0", "statement": "iou"}]
    alike = make_results(dict.fromkeys("abc", (0.9, 0.9)), before)
    apart = make_results({"a": (0.95, 0.95), "b": (0.7, 0.7), "c": (third, third)}, [])
    rows, _ = compare_findings_of_runs(alike, apart, {name: name for name in "abc"})
    assert [row["why"] for row in rows] == [f"Not checked now: {why}"]
