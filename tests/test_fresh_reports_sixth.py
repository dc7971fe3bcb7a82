"""What readers of fresh reports found false or misleading, sixth round: each test is of a sentence that one tried."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from test_fresh_reports import make_tables

from factaudit.audit.findings import collect_findings, list_audit_check_outcomes
from factaudit.results import compare

Row = dict[str, Any]

ABOUT = {"dataset": "d", "level": "claim", "evaluator": "e"}
RATES = {"labelled_error_rate": 0.2, "predicted_error_rate": 0.8, "bias_min": 0.6, "bias_max": 0.6}


def make_corrected_rows(n_clusters: dict[str, int]) -> dict[str, list[Row]]:
    """Rates of systems of so many documents that are far off, before and after a calibration; and of all together."""
    off = {"bias": 0.6, "bias_low": 0.5, "bias_high": 0.7}
    sizes = {**n_clusters, "__all__": 40}
    biases = [ABOUT | RATES | off | {"system": name, "n": 3 * k, "n_clusters": k} for name, k in sizes.items()]
    rows = [
        ABOUT | off | {"method": method, "calibration_system": by, "system": name}
        for by, name in permutations(n_clusters, 2)
        for method in ("none", "bacc_threshold")
    ]
    return {"quantification": biases, "adjusted_bias": rows}


@pytest.mark.parametrize(
    ("n_clusters", "said", "is_tested"),
    [
        ((7, 6, 7), "The 6 corrected rates could not be tested (too few documents).", False),
        ((7, 60, 60), "4 of 4 corrected rates are significantly off; 2 more could not be tested", True),
        ((60, 60, 60), "6 of 6 corrected rates are significantly off.", True),
    ],
)
def test_corrected_rates_of_few_documents_are_not_called_significantly_off(
    n_clusters: tuple[int, ...], said: str, is_tested: bool
) -> None:
    """ "39 of 120 corrected rates are significantly off", of 6 or 7 documents each: no sign test of them can reject."""
    audits = make_corrected_rows(dict(zip("stu", n_clusters, strict=True)))
    (found,) = [one for one in collect_findings(audits) if one["id"] == "adjustment"]
    assert said in found["statement"]
    assert ("significantly off" in found["statement"]) == is_tested
    (outcome,) = [one for one in list_audit_check_outcomes(audits) if one.check.id == "adjustment"]
    assert ("too few documents" in outcome.not_run) == (not is_tested)


def test_a_constant_evaluator_s_bias_varies_as_the_labels_do() -> None:
    """always-yes: bias "−14.3 (−40.5 to +14.7)": above 0 it is of no claims whatever; its IoU "0.00 (0.00–0.11)"."""
    claims, verdicts = make_tables({"always-yes": (1.0, 0.0), "always-no": (0.0, 1.0), "e": (0.9, 0.6)}, n=40)
    audits = compare(claims, verdicts, audits=["quantification", "headroom", "consistency"], replicates=200).audits
    for name, rate in (("quantification", "_error_rate"), ("headroom", "")):
        for row in audits[name]:
            if row["evaluator"] != "e" and row["bias"] is not None:
                predicted, low, high = (row[key + rate + end] for key, end in WANTED)
                assert (row["bias_low"], row["bias_high"]) == pytest.approx((predicted - high, predicted - low))
                assert row[f"predicted{rate}_low"] is None
    for row in audits["consistency"]:
        never = {"attributable": "always-no", "unattributable": "always-yes"}[row["class"]]
        is_never = never in (row["evaluator_a"], row["evaluator_b"])
        assert (row["iou_low"] is None) == is_never
        assert ("gives the class to no claim" in (row["reason"] or "")) == is_never


WANTED = (("predicted", ""), ("labelled", "_low"), ("labelled", "_high"))
