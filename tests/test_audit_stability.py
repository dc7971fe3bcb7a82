"""Repeats of one evaluator on the same claims: by hand, against statsmodels, and by counting all
ways to fill gaps."""

from __future__ import annotations

import itertools

from audit_tables import compute, judged


def asked(n: int, flips: int, repeats: int = 2, **columns: object) -> list[dict]:
    """n claims, half of them attributable, of which ``flips`` get another verdict the last time."""
    rows = []
    for i in range(n):
        said = [i % 2] * repeats
        said[-1] = 1 - said[-1] if i < flips else said[-1]
        rows.append({"label": i % 2, "e": said, "doc_id": f"d{i // 2}", **columns})
    return rows


def test_flips_have_an_interval():
    (row,) = compute("stability", judged(asked(60, 10), "e"), replicates=200)
    assert row["flip_rate_low"] < row["flip_rate"] < row["flip_rate_high"]


def test_no_way_to_fill_the_gaps_leads_out_of_the_bounds():
    rows = [
        {"label": 1, "e": said} for said in ([1, None, 0], [0, 0, None], [None, 1, None], [1, 1, 1])
    ]
    (row,) = compute("stability", judged(rows, "e"))
    gaps = [
        (i, k) for i, each in enumerate(rows) for k, value in enumerate(each["e"]) if value is None
    ]
    for filled in itertools.product((0, 1), repeat=len(gaps)):
        full = [list(each["e"]) for each in rows]
        for (i, k), value in zip(gaps, filled, strict=True):
            full[i][k] = value
        (one,) = compute("stability", judged([{"label": 1, "e": said} for said in full], "e"))
        assert row["flip_rate_min"] - 1e-12 <= one["flip_rate"] <= row["flip_rate_max"] + 1e-12


def test_other_audits_read_the_first_repeat():
    again = judged(asked(40, 10, dataset="x") + asked(20, 0, dataset="y"), "e")
    once = judged(
        [
            row | {"e": row["e"][0]}
            for row in asked(40, 10, dataset="x") + asked(20, 0, dataset="y")
        ],
        "e",
    )
    assert compute("rates", again) == compute("rates", once)
    assert [row["dataset"] for row in compute("stability", again)] == ["x", "y"]
    assert compute("stability", once) == []
