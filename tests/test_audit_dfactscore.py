"""D-FActScore as an audit: links, scores and bounds by hand, by enumeration, and from tables of
claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from audit_tables import compute, find, join, make_matrix
from hypothesis import given, settings
from hypothesis import strategies as st

from factaudit import FactauditError, Judgements, UsageError, validate_claims, validate_verdicts
from factaudit.arrays.biographies import collect_biographies
from factaudit.arrays.biography_scores import (
    NOISE_FIGURES,
    estimate_merged_beyond_noise,
    score_biography,
    summarise_biography_scores,
)
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

Row = dict[str, Any]
MATRICES = yaml.safe_load(
    (Path(__file__).parent / "golden/support_matrices.yaml").read_text(encoding="utf-8")
)


def figures(one, rule="argmax", gamma=0):
    return score_biography(one, rule, gamma=gamma)


def respond(cells: Any, group: Sequence[int], **more: Any) -> Row:
    return figures(make_matrix(cells, group, **more))


# ---- hand-made cases


@pytest.mark.parametrize("case", MATRICES, ids=str)
def test_by_hand(case):
    cells, row = np.array(case["cells"]), respond(np.array(case["cells"]), case["group"])
    for key, value in case.get("row", {}).items():
        assert row[key] == (tuple(value) if isinstance(value, list) else pytest.approx(value)), key
    if "links" in case:
        links = case["links"]
        found = make_matrix(cells, case["group"], **links.get("more", {})).link(links["rule"])
        assert found.tolist() == links["person"]


def test_links_that_cannot_be():
    one = make_matrix([[1, 0]], [0], given={0: "Z"})
    with pytest.raises(FactauditError, match="'Z' is not a candidate"):
        one.link("given")
    with pytest.raises(UsageError, match="did you mean 'hungarian'"):
        one.link("hungarain")


# ---- properties


@st.composite
def cases(draw, most_facts=8):
    n, m = draw(st.integers(1, most_facts)), draw(st.integers(1, 4))
    cells = draw(
        st.lists(
            st.lists(st.sampled_from((1, 1, 0, 0, -1)), min_size=m, max_size=m),
            min_size=n,
            max_size=n,
        )
    )
    scores = draw(
        st.lists(
            st.lists(st.sampled_from((0.1, 0.5, 0.9)), min_size=m, max_size=m),
            min_size=n,
            max_size=n,
        )
    )
    groups = pd.factorize(np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))))[0]
    return make_matrix(cells, groups, scores, given={0: "A", 1: "ABCD"[m - 1]})


RULES = st.sampled_from(("argmax", "hungarian", "given"))
#: Their bounds are reached by some filling, those of the others hold them all.
REACHED = ("factscore", "dfactscore", "init_factscore", "init_dfactscore")
BOUNDED = (*REACHED, "gap", "n_entities", "n_elsewhere")


def fill(one):
    """All ways to fill in what is missing."""
    places = tuple(np.argwhere(one.unsure).T)
    for values in product((0, 1), repeat=int(one.unsure.sum())):
        prediction = one.prediction.copy()
        prediction[places] = values
        yield replace(one, prediction=prediction, unsure=np.zeros_like(one.unsure))


FACT_BITS = st.integers(0, 31)


@given(cases(most_facts=5), RULES, FACT_BITS, FACT_BITS, st.none() | st.integers(-1, 0))
@settings(max_examples=300)
def test_bounds_hold_all_ways_to_fill_the_matrix(one, rule, invented, ungrouped, about):
    if one.unsure.sum() > 8:
        return
    n = len(one.group)
    is_invented, is_alone = (
        np.array([bits >> fact & 1 for fact in range(n)], dtype=bool)
        for bits in (invented, ungrouped)
    )
    group = pd.factorize(np.where(is_alone, np.nan, one.group))[0]
    owner = None if about is None else np.full(n, about)
    one = replace(one, own=~is_invented, group=group, about=owner)
    row, reached = figures(one, rule), [figures(each, rule) for each in fill(one)]
    for name in BOUNDED if row["n_facts"] else ():
        values = [each[name] for each in reached]
        low, high = row[f"{name}_min"], row[f"{name}_max"]
        assert high - low >= 0
        if row[name] is None:
            assert is_alone.all()
            continue
        assert low - 1e-12 <= min(values) <= max(values) <= high + 1e-12
        assert low - 1e-12 <= row[name] <= high + 1e-12
        is_exact = one.own.all() and not is_alone.any()
        if (name in REACHED or len(reached) == 1) and is_exact:
            assert (low, high) == (pytest.approx(min(values)), pytest.approx(max(values)))
    if row["n_facts"]:
        assert {each["merged"] for each in reached} == {row["merged"]} or row["merged"] is None


@given(cases(), RULES, st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_what_holds_of_any_matrix(one, rule, random):
    row = figures(one, rule, gamma=10)
    for name, end in product(("", "init_"), ("", "_min", "_max")):
        assert row[f"{name}dfactscore{end}"] <= row[f"{name}factscore{end}"] + 1e-12
    # A lost verdict never raises a score.
    lost = one.prediction.copy()
    lost[random.randrange(len(lost)), random.randrange(lost.shape[1])] = -1
    fewer = figures(replace(one, prediction=lost, unsure=lost < 0), rule, gamma=10)
    assert all(fewer[name] <= row[name] + 1e-12 for name in ("factscore", "dfactscore"))
    # With one candidate the two scores are one.
    alone = figures(make_matrix(one.prediction[:, :1], one.group))
    assert (alone["dfactscore"], alone["n_elsewhere"]) == (alone["factscore"], 0)


@given(cases())
def test_the_best_assignment_is_found(one):
    supported = np.zeros((one.n_groups, len(one.people)))
    np.add.at(supported, one.group, one.prediction == 1)
    slots = [*range(len(one.people)), *([None] * one.n_groups)]
    best = max(
        sum(supported[group, person] for group, person in enumerate(choice) if person is not None)
        for choice in permutations(slots, one.n_groups)
    )
    n, most = len(one.group), figures(one)["init_dfactscore"]
    assert figures(one, "hungarian")["init_dfactscore"] == pytest.approx(best / n)
    assert best / n <= most + 1e-12


# ---- over responses


def test_what_the_missing_verdicts_decide_is_not_counted_as_not_merged():
    rows = [respond([[1, 0], cells], [0, 0]) for cells in ([1, 0], [1, 1], [0, 1], [0, -1])]
    assert [row["merged"] for row in rows] == [False, False, True, None]
    # Of a quarter it is open, mostly of those that may be merged: a share of the others would be
    # too low.
    expected = {
        "share_merged": None,
        "n_undecided": 1,
        "share_merged_min": 1 / 4,
        "share_merged_max": 2 / 4,
    }
    # 1 alone would be said of facts of others, where a linked cell without a verdict leaves one
    # more or none.
    expected |= {"n_elsewhere": 1, "n_elsewhere_min": 1, "n_elsewhere_max": 2}
    assert summarise_biography_scores(rows).items() >= expected.items()
    few = summarise_biography_scores(rows + 6 * rows[:1])
    assert (few["share_merged"], few["n_undecided"]) == (pytest.approx(1 / 9), 1)


# ---- merged beyond noise


def simulate(
    seed: int, *, n: int, merged: float, errs: float = 0.005, decoys: int = 2
) -> list[Row]:
    """Responses of 20 facts with 5 candidates; a share of them really has two facts of the second
    candidate."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        cells = (rng.random((20, 5)) < errs).astype(np.int8)
        owner = np.zeros(20, dtype=int)
        owner[:2] = rng.random() < merged
        # A true fact is found supported in 95 of 100.
        cells[np.arange(20), owner] = rng.random(20) < 0.95
        false = 20 * decoys, int((rng.random(20 * decoys) < errs).sum())
        rows.append(respond(cells, [0] * 20, false_cells=false))
    return rows


def test_the_floor_by_hand():
    # One fact unsupported, with three other candidates.
    row = respond([[1, 0, 0, 0], [0, 0, 1, 0]], [0, 0])
    found = estimate_merged_beyond_noise([row | {"false_cells": (10, 1)}])
    assert (found["merged_floor"], found["merged_excess"]) == pytest.approx((1 - 0.9**3, 0.9**3))
    assert set(estimate_merged_beyond_noise([row]).values()) == {None, 0}


def test_intervals_of_the_rate_the_floor_and_the_excess():
    found = estimate_merged_beyond_noise(simulate(0, n=60, merged=0.8), ClusterBootstrap())
    for name in NOISE_FIGURES:
        assert 0 < found[f"{name}_low"] < found[name] < found[f"{name}_high"] < 1


# ---- from tables


def judged(rows: Sequence[Row], *evaluators: str) -> Judgements:
    """Rows of {response_id, fact_id, entity, group, ...}, with a prediction (or a status) for each
    evaluator."""
    claims, verdicts = [], []
    for number, row in enumerate(rows):
        fixed = {
            "claim_id": str(number),
            "dataset": "d",
            "system": "s",
            "claim": row.get("fact_id"),
            "group": "1",
        }
        claims.append(fixed | {key: value for key, value in row.items() if key not in evaluators})
        for name in evaluators:
            if name in row:
                lost = isinstance(row[name], str)
                verdict = {
                    "prediction": None if lost else row[name],
                    "status": row[name] if lost else "ok",
                }
                verdicts.append({"claim_id": str(number), "evaluator": name} | verdict)
    return join(validate_claims(pd.DataFrame(claims)), validate_verdicts(pd.DataFrame(verdicts)))


def cells(response_id: str, fact_id: str, a: Any, b: Any, **more: Any) -> list[Row]:
    fixed = {"response_id": response_id, "fact_id": fact_id}
    return [fixed | {"entity": title, "e": value} | more for title, value in (("A", a), ("B", b))]


TABLE = [
    *(row for fact in "123" for row in cells("r", fact, 1, 0)),
    *cells("r", "4", 0, 1),
    *cells("q", "1", 1, 0, system="t"),
    {"response_id": "none", "fact_id": "1", "entity": None, "e": "skipped", "system": "t"},
    {"response_id": "silent", "abstained": 1, "claim": None, "system": "t", "group": None},
]


def test_every_verifier_links_for_itself_and_every_rule_stands_beside_the_other():
    table = [row | {"f": 1 - row["e"], "given_entity": "B"} for row in TABLE[:8]]
    rows = compute("dfactscore", judged(table, "e", "f"))
    assert [(row["evaluator"], row["init_dfactscore"]) for row in rows] == [
        ("e", 0.75),
        ("f", 0.75),
    ]
    found = compute("dfactscore_linking", judged(table, "e"))
    assert {row["link"]: row["init_dfactscore"] for row in found} == {
        "argmax": 0.75,
        "hungarian": 0.75,
        "given": 0.25,
    }
    assert "init_dfactscore_max" in found[0]
    assert "init_factscore" not in found[0]
    regrouped = [row | {"group": str(row["fact_id"] == "4")} for row in table]
    (row,) = compute("dfactscore", judged(regrouped, "e"))
    assert (row["n_biographies"], row["init_dfactscore"]) == (2, 1.0)


def test_facts_of_somebody_else_are_listed_and_gaps_counted():
    (fact,) = compute("dfactscore_elsewhere", judged(TABLE, "e"))
    assert (
        fact.items()
        >= {"system": "s", "response_id": "r", "linked": "A", "fact": "4", "about": "B"}.items()
    )
    again = [row | {"response_id": f"{row['response_id']}{at}"} for row in TABLE for at in range(5)]
    rows = compute("dfactscore_gap", judged(again, "e"), replicates=20)
    mine = [row for row in rows if row["system"] == "s"]
    assert [row["share"] for row in mine] == [1.0] * 5 + [0.0] * 15
    assert all(0.3 < row["share_low"] < 0.9 for row in mine[:5]), (
        "five of five responses are no certainty"
    )


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ([], (1 / 3, 1 / 3, 1)),
        (
            cells("q", "1", "error", "error"),
            (1 / 6, 1 / 6, 1),
        ),  # a failed call counts against the score
        (
            cells("q", "1", "skipped", "skipped"),
            (1 / 3, 1 / 6, 1),
        ),  # of a skipped response there is none
    ],
)
def test_failed_calls(more, expected):
    failed = [
        *cells("r", "1", 1, 0),
        *(row for fact in "23" for row in cells("r", fact, "error", "refused")),
    ]
    (row,) = compute("dfactscore", judged([*failed, *more], "e"), gamma=0)
    assert (row["factscore"], row["factscore_min"], row["factscore_max"]) == pytest.approx(expected)


def test_a_guess_counts_as_it_is_and_as_unknown_in_the_bounds():
    table = judged(cells("r", "1", 1, 0), "e")
    table.status[:] = 1  # unparsed, with a prediction all the same
    (row,) = compute("dfactscore", table, gamma=0)
    assert (row["factscore"], row["factscore_min"], row["factscore_max"]) == (1, 0, 1)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*cells("r", "1", 1, 0), *cells("r", "1", 1, 0)], "put to the same entity twice"),
        (
            [*cells("r", "1", 1, 0)[:1], *cells("r", "1", 1, 0, group="2")[1:]],
            "in different groups",
        ),
    ],
)
def test_a_table_that_is_no_matrix_is_refused(rows, message):
    with pytest.raises(UsageError, match=f"response 'r'.*{message}"):
        collect_biographies(judged(rows, "e"), 0)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        # Z is a decoy: no candidate, and what the verifier finds supported there is an error.
        ({"1": {"A": 1, "B": 0, "Z": 1}, "2": {"A": 0, "B": 1, "Z": 0}}, (0.5, 2)),
        # Labels of whom the group is about.
        (
            {
                "1": {"A": (1, 1), "B": (0, 1)},
                "2": {"A": (1, 0), "B": (1, 0)},
                "3": {"A": (0, 0), "B": (1, 0)},
            },
            (0.5, 2),
        ),
        # Labels of A alone, where B's page is right and another grouper gives B a group of their
        # own.
        (
            {"1": {"A": (1, 1), "B": 0}, "3": {"A": (0, 0), "B": 1}, "4": {"A": (0, 0), "B": 1}},
            (0.0, 2),
        ),
    ],
)
def test_what_measures_the_verifiers_errors(facts, expected):
    rows = []
    for fact, people in facts.items():
        for title, cell in people.items():
            value, label = cell if isinstance(cell, tuple) else (cell, None)
            rows.append(
                {"response_id": "r", "fact_id": fact, "entity": title, "e": value, "label": label}
            )
            rows[-1] |= {
                "decoy": int(title == "Z"),
                "given_entity": "A",
                "group": str(int(fact) > 2),
            }
    row = find(compute("dfactscore", judged(rows, "e")), system="s")
    assert (row["false_positive_rate"], row["n_false"]) == expected
