"""What readers of fresh reports found false or misleading, fifth round: each test is of a sentence that one tried."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from test_fresh_reports import make_tables

from factaudit.audit import load_all_audits
from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.first_screen import compose_first_screen
from factaudit.audit.quantification import decide_on_quantification
from factaudit.audit.rates_opening import format_rates_opening
from factaudit.report.summary import compose_report_summary_paragraphs
from factaudit.results import compare

Row = dict[str, Any]
ENDS = (("min", 0.0), ("max", 0.0), ("low", -0.01), ("high", 0.01))

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


# ------------------------------------------------------------------------------------- data sets of unlike sizes


def make_rate_row(dataset: str, tpr: float, tnr: float, n_errors: int, n: int) -> Row:
    row: Row = {"dataset": dataset, "evaluator": "e", "n": n, "n_unscored": 0, "n_guessed": 0, "n_unlabelled": 0}
    row |= {"tpr": tpr, "tnr": tnr, "bacc": (tpr + tnr) / 2, "gap": tpr - tnr}
    row |= {"n_unattributable": n_errors, "n_attributable": n - n_errors}
    row["ppr"] = (tpr * (n - n_errors) + (1 - tnr) * n_errors) / n
    for key, half in (("bacc", 0.02), ("gap", 0.04)):
        row |= {f"{key}_min": row[key], f"{key}_max": row[key], f"{key}_low": row[key] - half}
        row[f"{key}_high"] = row[key] + half
    return row


@pytest.mark.parametrize(
    ("n_errors", "told"),
    [
        # Of all claims together it calls 21.5 % errors, of which there are 11.9 %: the large data set is not the mean.
        (200, "As the mean over datasets it calls 21.0 % of the scored claims errors, the labels 30.0 %."),
        (20, "It is significantly better on large"),  # where errors are few, false alarms outnumber what slips through
    ],
)
def test_a_lean_of_the_mean_is_said_with_rates_of_the_same_mean(n_errors: int, told: str) -> None:
    small, large = make_rate_row("small", 0.95, 0.36, n_errors, 400), make_rate_row("large", 0.85, 0.8, 800, 8000)
    mean = make_rate_row("__macro__", 0.9, 0.58, 0, 8400) | {"n_datasets": 2}
    lean = "It leans towards “attributable”, most on small (gap +59.0 points), so that errors slip through. "
    assert lean + told in str(format_rates_opening(AuditedRun({"rates": [small, large, mean]}), "e"))


def test_rates_of_systems_and_of_data_sets_without_any_are_told_apart() -> None:
    """ "Mean |bias| 34.0 points over 10 rates / 11 significantly off": one was of a data set without systems."""
    claims, verdicts = make_tables({"e": (0.4, 0.9)}, n=1200, datasets=2)
    claims.loc[claims["dataset"] == "set1", "system"] = None
    for kept, of_systems, of_far in (
        (None, " of systems", "4 of 4 rates, with those of data sets"),
        ("set0", "", "3 "),
    ):
        part = claims if kept is None else claims[claims["dataset"] == kept]
        said = verdicts[verdicts["claim_id"].isin(part["claim_id"])]
        results = compare(part.reset_index(drop=True), said.reset_index(drop=True), audits=["quantification"])
        answer = decide_on_quantification(AuditedRun(results.audits), "e")
        assert answer is not None
        assert (answer.may, str(answer.figure).split("rates")[1]) == ("no", of_systems)
        assert str(answer.sentence).startswith(of_far)


# ------------------------------------------------------------------------------------------------- the first screen


@pytest.mark.parametrize(("best_tuned", "is_said"), [(0.7, True), (0.87, False)])
def test_a_tuned_threshold_is_compared_with_the_best_one_tuned_too(best_tuned: float, is_said: bool) -> None:
    rows = [
        {"dataset": "d", "evaluator": name, "n": 900, "n_unscored": 0, "bacc": bacc, "tuned_bacc": tuned}
        | {f"{key}_{end}": value + half for key, value in (("bacc", bacc), ("tuned_bacc", tuned)) for end, half in ENDS}
        for name, bacc, tuned in (("best", 0.8, best_tuned), ("other", 0.7, 0.85))
    ]
    advice = load_all_audits()["discrimination"].advice
    assert advice is not None
    assert bool(list(advice(AuditedRun({"discrimination": rows}), ["best"]))) == is_said


def test_few_errors_of_one_data_set_are_named_and_one_who_misses_and_one_who_flags_are_for_no_single_errors() -> None:
    """79 errors in all hid that two of three means rested on 7 and 9 of them."""
    claims, verdicts = make_tables({"misses": (0.97, 0.45), "flags": (0.45, 0.97)}, n=1200, datasets=2)
    errors = claims.index[(claims["dataset"] == "set1") & (claims["label"] == 0)]
    claims = claims.drop(errors[7:]).reset_index(drop=True)
    verdicts = verdicts[verdicts["claim_id"].isin(claims["claim_id"])].reset_index(drop=True)
    results = compare(claims, verdicts, audits=["rates", "differences"], replicates=200)
    advice = [(one.word, str(one.sentence)) for one in compose_first_screen(results.to_dict()).advice]
    assert ("Beware", "few labelled errors behind these means: 7 on set1.") in advice
    told = "flagging single errors: each misses significantly over 20 %, or flags as many correct claims."
    assert ("Not for", told) in advice


def test_few_errors_in_all_say_how_few_the_least_data_set_has() -> None:
    claims, verdicts = make_tables({"good": (0.95, 0.9)}, n=1200, datasets=2)
    for name, kept in (("set0", 16), ("set1", 4)):
        claims = claims.drop(claims.index[(claims["dataset"] == name) & (claims["label"] == 0)][kept:])
    verdicts = verdicts[verdicts["claim_id"].isin(claims["claim_id"])].reset_index(drop=True)
    results = compare(claims.reset_index(drop=True), verdicts, audits=["rates"], replicates=200)
    advice = [(one.word, str(one.sentence)) for one in compose_first_screen(results.to_dict()).advice]
    assert ("Beware", "only 20 labelled errors, 4 of them on set1.") in advice
