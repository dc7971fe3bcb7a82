"""What readers of fresh reports found false or misleading, sixth round: each test is of a sentence that one tried."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from factaudit.audit.findings import collect_findings, list_audit_check_outcomes

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
