"""What audits compute of small tables, by hand (`golden/audit_rows.yaml`)."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from audit_tables import compute, find, judged

Row = dict[str, Any]
CASES = yaml.safe_load(
    (Path(__file__).parent / "golden/audit_rows.yaml").read_text(encoding="utf-8")
)


def read_expected(value: Any) -> Any:
    """A fraction, ``2/3``, as a number; all else as it is."""
    is_fraction = (
        isinstance(value, str)
        and value.replace("/", "", 1).removeprefix("-").isdigit()
        and "/" in value
    )
    return pytest.approx(float(Fraction(value))) if is_fraction else value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_rows_are_those_by_hand(case):
    claims = [{key: value for key, value in each.items() if key != "n"} for each in case["claims"]]
    rows = [
        row
        for row, each in zip(claims, case["claims"], strict=True)
        for _ in range(each.get("n", 1))
    ]
    evaluators = [name for name in ("e", "f") if any(name in row for row in rows)]
    replicates = 50 if case.get("with_intervals") else None
    found = compute(case["audit"], judged(rows, *evaluators), replicates, **case.get("options", {}))
    assert len(found) == case.get("n_rows", len(found))
    for expected in case["rows"]:
        row, values = find(found, **expected["where"]), expected.keys() - {"where", "says"}
        assert expected.get("says", "") in (row["reason"] or "")
        assert {key: row[key] for key in values} == {
            key: read_expected(expected[key]) for key in values
        }
