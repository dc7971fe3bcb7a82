"""Is being right associated with X: slopes and groups by hand, by statsmodels and by every
completion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from audit_tables import collect_findings, compute, find, judged

from factaudit import UsageError

Row = dict[str, Any]


def draw_rows(seed: int, slope: float, n: int = 400) -> list[Row]:
    """Claims with a number, a kind and a family; "e" misses errors of kind "a" and the more the
    greater the number."""
    random = np.random.default_rng(seed)
    rows = []
    for at in range(n):
        label, number, kind = (
            int(at % 2),
            float(random.uniform(0, 10)),
            "abc"[int(random.integers(3))],
        )
        right = random.random() < 0.9 - slope * number / 10 - (0.5 * slope) * (kind == "a") * (
            label == 0
        )
        rows.append(
            {
                "label": label,
                "doc_id": str(at // 4),
                "number": number,
                "kind": kind,
                "family": "XY"[at % 3 == 0],
            }
            | {"e": label if right else 1 - label}
        )
    return rows


def test_a_slope_is_that_of_statsmodels_from_the_10th_to_the_90th_percentile():
    rows = draw_rows(1, 0.4)
    table = pd.DataFrame(rows)
    low, high = np.quantile(table["number"], [0.1, 0.9], method="inverted_cdf")
    found = compute("covariates", judged(rows, "e"), columns=["number"], replicates=20)
    for rate, label in (("tpr", 1), ("tnr", 0)):
        part = table[table["label"] == label]
        fit = sm.OLS(part["e"] == label, sm.add_constant(part["number"])).fit(
            cov_type="cluster", cov_kwds={"groups": part["doc_id"].astype(int)}
        )
        row = find(found, value="slope", rate=rate)
        assert row["difference"] == pytest.approx(fit.params["number"] * (high - low))
        width = row["difference_high"] - row["difference_low"]
        assert width == pytest.approx(2 * 1.96 * fit.bse["number"] * (high - low), rel=0.25)


def test_a_group_is_compared_with_all_other_claims_of_the_class():
    rows = draw_rows(2, 0.4)
    table = pd.DataFrame(rows)
    for row in compute("covariates", judged(rows, "e"), columns=["kind"], replicates=20):
        part = table[table["label"] == {"tpr": 1, "tnr": 0}[row["rate"]]]
        right, inside = part["e"] == part["label"], part["kind"] == row["value"]
        assert (row["n"], row["right"]) == (inside.sum(), right[inside].mean())
        assert row["difference"] == pytest.approx(right[inside].mean() - right[~inside].mean())
        assert row["difference_low"] < row["difference"] < row["difference_high"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"columns": ["knd"]}, "no column 'knd'"),
        ({"columns": ["doc_id"]}, "sorts no labelled claims"),
    ],
)
def test_options_that_cannot_be_are_refused(options, said):
    with pytest.raises(UsageError, match=said):
        compute("covariates", judged(draw_rows(5, 0.0), "e"), **options)


def test_findings_are_of_what_matters_and_of_nothing_else():
    def find_covariates(slope):
        table = judged(draw_rows(6, slope, 1600), "e")
        rows = compute("covariates", table, replicates=20, columns=["number", "kind"])
        found = collect_findings({"covariates": rows})
        return {one["evidence"]["covariate"] for one in found if one["id"] == "covariate"}

    assert find_covariates(0.5) == {"number", "kind"}
    assert find_covariates(0.0) == set()
