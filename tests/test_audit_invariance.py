"""Whether verdicts follow the meaning: by hand, by counting all ways to fill gaps, and where
nothing may be said."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from audit_tables import compute, find, judged, tables

from factaudit import Judgements, UsageError, compare

Row = dict[str, Any]


def pairs(
    said: Iterable[tuple[Any, Any]], expected: str, kind: str = "k", label: int | None = None
) -> list[Row]:
    """Claims and their variants by what ``e`` says of both; each pair has a document of its own."""
    rows = []
    for at, (before, after) in enumerate(said):
        name = f"{expected}-{kind}-{at}"
        rows.append({"claim_id": name, "e": before, "label": label, "doc_id": name})
        rows.append(
            {
                "claim_id": f"{name}~",
                "e": after,
                "doc_id": name,
                "variant_of": name,
                "kind": kind,
                "expected": expected,
            }
        )
    return rows


def test_clusters_are_documents_of_the_claims():
    """100 pairs of one document are one cluster, whatever the variants' own ids say."""
    rows = [row | {"doc_id": None, "response_id": None} for row in pairs([(1, 0)] * 3, "same")]
    rows += [row | {"doc_id": "one"} for row in pairs([(1, 1)] * 100, "same", "other")]
    found = compute("invariance", judged(rows, "e"), replicates=50)
    assert find(found, kind="k")["n_clusters"] == 3
    other = find(found, kind="other")
    assert (other["n_clusters"], other["failure_rate_low"]) == (1, None)
    assert "no interval for failure_rate: fewer than two clusters" in other["reason"]


def filled(table: Judgements) -> Iterable[Judgements]:
    """Every way to fill the gaps of claims and variants."""
    assert table.variants is not None
    both = (table, table.variants)
    gaps = [one.prediction < 0 for one in both]
    for guess in itertools.product((0, 1), repeat=int(sum(gap.sum() for gap in gaps))):
        rest = iter(guess)
        done = []
        for one, gap in zip(both, gaps, strict=True):
            prediction = one.prediction.copy()
            prediction[gap] = [next(rest) for _ in range(int(gap.sum()))]
            done.append(replace(one, prediction=prediction, status=one.status * 0))
        yield replace(done[0], variants=done[1])


@pytest.mark.parametrize("expected", ["same", "changed"])
def test_bounds_hold_every_completion_and_are_reached(expected):
    random = np.random.default_rng(2)
    for _ in range(25):
        said = [tuple(random.choice([0, 1, 1, None], 2)) for _ in range(4)]
        table = judged(pairs(said, expected), "e")
        (row,) = compute("invariance", table)
        rates = [compute("invariance", one)[0]["failure_rate"] for one in filled(table)]
        known = [rate for rate in rates if rate is not None]
        ends = (row["failure_rate_min"], row["failure_rate_max"])
        assert ends == (
            (pytest.approx(min(known)), pytest.approx(max(known))) if known else (None, None)
        ), said


def test_a_guess_is_open_in_the_bounds():
    claims, verdicts = tables(pairs([(1, 1), (1, 0)], "same"), ["e"])
    verdicts.loc[verdicts["claim_id"] == "same-k-1~", "status"] = "unparsed"
    (row,) = compute("invariance", Judgements.join(claims, verdicts))
    assert (row["failure_rate"], row["n_guessed"], row["n_unscored"]) == (0.5, 1, 0)
    assert (row["failure_rate_min"], row["failure_rate_max"]) == (0, 0.5)


def test_variants_are_in_no_other_audit_and_orphans_stay_claims():
    rows = [row | {"label": 1} for row in pairs([(1, 0), (0, 0)], "same")]
    with_them, without = (compare(*tables(one, ["e"]), replicates=0) for one in (rows, rows[::2]))
    assert {
        name: list(found) for name, found in with_them.audits.items() if name != "invariance"
    } == {name: list(found) for name, found in without.audits.items()}
    assert with_them.about["claims"] == without.about["claims"]
    table = judged([*rows, {"e": 1, "variant_of": "gone", "kind": "k", "expected": "same"}], "e")
    assert (len(table.claims), table.variants and len(table.variants.claims)) == (3, 2)


@pytest.mark.parametrize(
    ("column", "value"), [("expected", "maybe"), ("expected", None), ("kind", None)]
)
def test_a_variant_of_which_it_is_not_known_what_should_happen_is_an_error(column, value):
    rows = pairs([(1, 1)], "same")
    rows[1][column] = value
    with pytest.raises(UsageError, match="audit 'invariance': expected"):
        compute("invariance", judged(rows, "e"))


# ---- findings


# ---- first screen, claim browser
