"""What captions and table notes say, against the rows that are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from factaudit.audit import load_all_audits
from factaudit.estimate.system_comparison import MAX_WRONG_PAIR_SHARE
from factaudit.report.report_document import _explain_report_claims_labels_and_intervals
from factaudit.report.report_figures import list_report_figures
from factaudit.report.report_tables import build_report_table
from factaudit.stats.posterior_comparison import select_directed_pairs

Row = dict[str, Any]


def compose_captions(audit_name: str, *rows: Row) -> str:
    audit = load_all_audits()[audit_name]
    found = list_report_figures(audit, rows, ["e"], {"confidence": 0.95, "replicates": 2000})
    return " ".join(figure.caption for figure in found)


def test_a_caption_says_where_dashed_lines_stand_and_that_something_is_undefined() -> None:
    row = {"evaluator": "e", "n": 10, "n_attributable": 7, "n_unattributable": 3, "tpr": 0.8, "tnr": 0.6, "bacc": 0.7}
    whole = compose_captions("rates", row | {"dataset": "d"})
    assert "Dashed line: 50 % (BAcc)." in whole
    assert "Undefined" not in whole
    empty = {"dataset": "a", "tnr": None, "bacc": None}
    assert "Undefined figures are not drawn" in compose_captions("rates", row | {"dataset": "d"}, row | empty)
    assert "Dashed" not in compose_captions("consistency", {"dataset": "d", "class": "attributable", "iou": 0.5})


@pytest.mark.parametrize(("greatest", "is_shown"), [(0.2 + 1e-16, False), (0.3, True)])
def test_a_table_shows_bounds_only_where_they_leave_something_open(greatest: float, is_shown: bool) -> None:
    row = {"task": "t", "rate": "tpr", "evaluator": "e", "n": 9, "difference": 0.2, "difference_min": 0.2 - 1e-16}
    table = build_report_table([row | {"difference_max": greatest}], load_all_audits()["covariates"].columns, "")
    assert any("that the unscored claims leave possible" in note for note in table.notes) == is_shown
    assert any(cell.notes for line in table.rows for cell in line) == is_shown


def test_bounds_of_an_estimate_are_of_undecided_and_unscored_claims() -> None:
    row = {"dataset": "d", "level": "claim", "system": "s", "method": "labels", "n": 9, "n_labels": 8, "n_undecided": 1}
    row |= {"rate": 0.2, "rate_min": 0.1, "rate_max": 0.3}
    notes = build_report_table([row], load_all_audits()["estimates"].columns, "").notes
    assert notes == [
        "In brackets: the rate with none, and with all, of the undecided or (of predicted rates) unscored claims as "
        "errors."
    ]


def test_the_formula_of_differences_gives_the_pairs_that_are_told_apart() -> None:
    """Pairs at 1.7 and 2.4 % met both conditions that were named, and stood as not told apart."""
    formula = load_all_audits()["estimate_differences"].formula
    assert "is at most half of what an interval leaves out (2.5 % at 95 %), and adjusted for all pairs" in formula
    assert "(Benjamini–Hochberg) at most 5 %." in formula
    for p_wrong in ([0.017, 0.024, 0.2, 0.3, 0.4], [0.001, 0.002, 0.003, 0.024, 0.026]):
        n = len(p_wrong)  # ascending
        adjusted = [min(p_wrong[j] * n / (j + 1) for j in range(i, n)) for i in range(n)]
        told = [p <= 0.025 and q <= 0.05 for p, q in zip(p_wrong, adjusted, strict=True)]
        assert select_directed_pairs(np.array(p_wrong), MAX_WRONG_PAIR_SHARE, 0.025).tolist() == told
        assert sum(told) == (0 if p_wrong[0] > 0.01 else 4)


def test_a_report_says_what_significant_and_the_order_of_systems_rest_on() -> None:
    audits = {"estimate_differences": [{"dataset": "d"}], "chunking": []}
    about = {"claims": [{"dataset": "d"}], "confidence": 0.95, "replicates": 9, "n_tests": {"gap": 3}}
    said = " ".join(_explain_report_claims_labels_and_intervals({"audits": audits, "about": about}))
    assert "leaves out 0, and at most 5 % of all such pairs are expected to be in the wrong order." in said
    assert "a bias whose interval leaves out 0 need not be significant" in said
    assert "These audits do not apply to these claims and verdicts: What cutting documents into chunks" in said


@pytest.mark.parametrize(
    ("n_labelled", "audits", "is_said"), [(0, [], True), (1, [], False), (0, ["estimates"], False)]
)
def test_a_report_without_labels_says_what_it_lacks(n_labelled: int, audits: list[str], is_said: bool) -> None:
    about = {"claims": [{"dataset": "d", "n_labelled": n_labelled}], "confidence": 0.95, "replicates": 9}
    results = {"audits": {name: [{"dataset": "d"}] for name in ["dfactscore", *audits]}, "about": about}
    said = " ".join(_explain_report_claims_labels_and_intervals(results))
    assert ("No claim is labelled, so no figure that needs labels was computed." in said) == is_said


def test_a_report_says_where_the_method_of_each_interval_stands() -> None:
    """Captions are of what is drawn: tables have intervals of κ, of a bias, of a gap, that no figure has."""
    about = {"claims": [{"dataset": "d"}], "confidence": 0.95, "replicates": 9}
    text = " ".join(
        _explain_report_claims_labels_and_intervals({"audits": {"rates": [{}], "headroom": []}, "about": about})
    )
    assert "captions say how it is made" not in text
    assert "the page of audits says it for all of them" in text
