"""D-FActScore as an audit: links, scores and bounds by hand, by enumeration, and from tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factaudit.arrays.biography_scores import (
    BIOGRAPHY_CATEGORIES,
    biography_category,
    score_biography,
    summarise_biography_scores,
)
from factaudit.arrays.entity_linking import EntityLink, link_groups_to_entities
from factaudit.arrays.fact_entity_matrix import FactEntityMatrix
from factaudit.arrays.grouped_responses import GroupedResponse, collect_grouped_responses
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.support_matrix_bounds import bound_entity_count
from factaudit.audit.dfactscore import AUDITS, compute_dfactscore_audit, compute_dfactscore_audit_by_link_rule
from factaudit.audit.dfactscore_elsewhere import list_dfactscore_facts_of_other_entities
from factaudit.audit.dfactscore_gap import compute_dfactscore_gaps
from factaudit.errors import FactauditError, UsageError
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables import validate_claims, validate_verdicts

Row = dict[str, Any]


def response(
    rows: Sequence[Sequence[int]],
    groups: Sequence[int] | None,
    entities: str = "ABCDEFG",
    scores: Sequence[Sequence[float]] | None = None,
    given: Mapping[int, str] | None = None,
) -> GroupedResponse:
    """A row per fact, a column per entity; groups None: the facts could not be grouped."""
    prediction = np.array(rows, dtype=np.int8)
    matrix = FactEntityMatrix.of(
        entities[: prediction.shape[1]], prediction, None if scores is None else np.array(scores)
    )
    numbers = np.full(len(rows), -1) if groups is None else np.array(groups, dtype=np.int64)
    return GroupedResponse({}, np.arange(len(rows)), matrix, numbers, given or {})


def links(one: GroupedResponse, rule: str = "argmax") -> list[int | None]:
    return [each.entity for each in link_groups_to_entities(one.matrix, one.groups, rule, one.given_entities)]


def figures(one: GroupedResponse, rule: str = "argmax", gamma: float = 0) -> Row:
    return score_biography(one, rule, gamma=gamma)[0]


# ------------------------------------------------------------------------------------------------- hand-made cases


def test_a_merged_paragraph_has_factscore_1_and_a_low_dfactscore() -> None:
    one = response([[1, 0], [1, 0], [1, 0], [0, 1]], [0, 0, 0, 0])
    row, (only,) = score_biography(one, gamma=0)
    assert (row["factscore"], row["dfactscore"]) == (1.0, 0.75)
    assert row["gap"] == pytest.approx(0.25)
    assert row["category"] == "one bio, N entities"
    assert row["merged"] is True
    assert row["n_elsewhere"] == 1
    assert only.margin == pytest.approx(0.5)


def test_the_same_facts_in_two_groups_lose_nothing() -> None:
    row = figures(response([[1, 0], [1, 0], [1, 0], [0, 1]], [0, 0, 0, 1]))
    assert (row["factscore"], row["dfactscore"], row["category"]) == (1.0, 1.0, "N bios, N entities")
    assert row["merged"] is False


def test_the_length_penalty_is_of_the_number_of_facts() -> None:
    row = figures(response([[1], [1], [1], [0]], [0, 0, 0, 0]), gamma=10)
    assert row["init_dfactscore"] == 0.75
    assert row["dfactscore"] == pytest.approx(math.exp(1 - 10 / 4) * 0.75)
    # Two groups of two facts: still four facts.
    two = figures(response([[1], [1], [1], [0]], [0, 0, 1, 1]), gamma=10)
    assert two["dfactscore"] == row["dfactscore"]


def test_hungarian_gives_no_entity_twice() -> None:
    one = response([[1, 1], [1, 0], [1, 0], [1, 0]], [0, 1, 1, 1])
    assert links(one) == [0, 0]
    assert links(one, "hungarian") == [1, 0]
    # With three facts of the first group on A alone, sharing A costs the assignment facts.
    one = response([[1, 0], [1, 0], [1, 0], [1, 0], [1, 0]], [0, 0, 1, 1, 1])
    assert figures(one)["dfactscore"] == 1.0
    assert figures(one, "hungarian")["dfactscore"] == pytest.approx(0.6)


def test_hungarian_leaves_a_group_without_an_entity_where_there_are_too_few() -> None:
    one = response([[1], [1], [1]], [0, 1, 1])
    assert links(one, "hungarian") == [None, 0]
    assert figures(one, "hungarian")["dfactscore"] == pytest.approx(2 / 3)


def test_ties_go_to_the_greater_score_and_then_to_the_first_title() -> None:
    rows = [[1, 1], [0, 0]]
    assert links(response(rows, [0, 0], "BA")) == [1]
    assert links(response(rows, [0, 0], "BA", [[0.9, 0.8], [0.1, 0.1]])) == [0]


def test_given_links_and_what_is_wrong_with_them() -> None:
    one = response([[1, 0], [0, 1]], [0, 1], given={0: "B", 1: "B"})
    assert links(one, "given") == [1, 1]
    assert (
        link_groups_to_entities(one.matrix, one.groups, "given", one.given_entities)[0].margin == -1.0
    )  # the rule did not take the best
    assert figures(one, "given")["dfactscore"] == 0.5
    with pytest.raises(FactauditError, match="'Z' is not a candidate"):
        links(replace(one, given_entities={0: "Z"}), "given")
    with pytest.raises(UsageError, match="did you mean 'hungarian'"):
        links(one, "hungarain")


def test_a_narrow_margin_is_counted() -> None:
    row = figures(response([[1, 1], [1, 1], [1, 0], [0, 1], [1, 1]], [0] * 5))
    assert (row["margin"], row["n_narrow"]) == (0.0, 1)
    assert not EntityLink(0, 1.0, 1, 0.2).is_narrow()


def test_an_unscored_fact_counts_as_not_supported_and_widens_the_bounds() -> None:
    row = figures(response([[1, 0], [-1, 0], [1, -1], [-1, 1]], [0] * 4))
    # FActScore: yes, unscored, yes, yes. D-FActScore (A): yes, unscored, yes, unscored.
    assert (row["n_facts"], row["n_unscored"], row["n_unscored_linked"]) == (4, 1, 2)
    assert (row["factscore"], row["factscore_min"], row["factscore_max"]) == (0.75, 0.75, 1.0)
    assert (row["dfactscore"], row["dfactscore_min"], row["dfactscore_max"]) == (0.5, 0.5, 1.0)


def test_without_candidates_or_groups_scores_are_undefined() -> None:
    row = figures(response(np.zeros((1, 0), dtype=np.int8), [0]))  # type: ignore[arg-type]
    assert (row["factscore"], row["dfactscore"], row["reason"]) == (None, None, "no candidate")
    assert (row["factscore_min"], row["factscore_max"], row["n_entities_max"]) == (0, 1, None)
    assert row["n_unscored"] == row["n_unscored_linked"] == 1
    row = figures(response([[1, 0], [0, 1]], None))
    assert row["factscore"] == 1.0
    # One group for both, or a group for each.
    assert (row["dfactscore"], row["dfactscore_min"], row["dfactscore_max"]) == (None, 0.5, 1.0)
    assert (row["category"], row["merged"]) == (None, None)
    assert figures(response([[1, 0], [1, 0]], None))["merged"] is False  # in whatever groups
    assert set(row["categories"]) == {"one bio, N entities", "N bios, N entities"}


def test_entities_are_counted_by_the_one_that_supports_most() -> None:
    # Facts 0 and 1 are supported by both; A supports three facts in all, so both are A's; fact 3 is only B's.
    one = response([[1, 1], [1, 1], [1, 0], [0, 1], [0, 0]], [0] * 5)
    assert one.matrix.attribute_facts().tolist() == [0, 0, 0, 1, -1]
    assert figures(one)["n_entities"] == 2


def test_categories() -> None:
    assert [biography_category(*n) for n in ((1, 0), (1, 1), (1, 2), (2, 2), (3, 1))] == [
        BIOGRAPHY_CATEGORIES[0],
        BIOGRAPHY_CATEGORIES[0],
        BIOGRAPHY_CATEGORIES[1],
        BIOGRAPHY_CATEGORIES[2],
        BIOGRAPHY_CATEGORIES[3],
    ]


def test_a_summary_keeps_the_undefined_in_its_bounds_and_tells_of_names_without_candidates() -> None:
    nobody = response(np.zeros((2, 0), dtype=np.int8), [0, 0])  # type: ignore[arg-type]
    rows = [figures(response([[1, 0], [1, 0]], groups)) for groups in ([0, 0], None)]
    rows += [figures(nobody), figures(response(np.zeros((0, 0), dtype=np.int8), []))]  # type: ignore[arg-type]
    found = summarise_biography_scores(rows, ClusterBootstrap(replicates=200))
    assert (found["n_responses"], found["n_answered"], found["n_without_candidates"]) == (4, 3, 1)
    assert found["respond_ratio"] == 3 / 4
    assert found["dfactscore"] == 1.0
    assert (found["dfactscore_min"], found["dfactscore_max"]) == (pytest.approx(2 / 3), 1.0)
    assert (found["n_entities"], found["n_entities_max"]) == (1, 1)
    assert "2 of 3 responses have no D-FActScore: init_dfactscore, dfactscore" in found["reason"]
    assert "1 of 3 responses have no candidate" in found["reason"]
    assert summarise_biography_scores([])["factscore"] is None


def test_what_the_missing_verdicts_decide_is_not_counted_as_not_merged() -> None:
    rows = [figures(response([[1, 0], [1, cell]], [0, 0])) for cell in (0, 1)]
    rows += [figures(response([[1, 0], cells], [0, 0])) for cells in ([0, 1], [0, -1])]
    found = summarise_biography_scores(rows)
    assert [row["merged"] for row in rows] == [False, False, True, None]
    # Of a quarter it is open, mostly of those that may be merged: a share of the others would be too low.
    assert (found["share_merged"], found["n_undecided"]) == (None, 1)
    assert (found["share_merged_min"], found["share_merged_max"]) == (1 / 4, 2 / 4)
    # 1 alone would be said of facts of others, where a linked cell without a verdict leaves one more or none.
    assert [found[f"n_elsewhere{end}"] for end in ("", "_min", "_max")] == [1, 1, 2]
    few = summarise_biography_scores(rows + 6 * rows[:1])
    assert (few["share_merged"], few["n_undecided"]) == (pytest.approx(1 / 9), 1)
    merged = "one bio, N entities"
    assert (found[merged], found[f"{merged}_min"], found[f"{merged}_max"]) == (pytest.approx(1 / 3), 1 / 4, 2 / 4)


# ------------------------------------------------------------------------------------------------------ properties


@st.composite
def cases(draw: st.DrawFn, most_facts: int = 8) -> GroupedResponse:
    n, m = draw(st.integers(1, most_facts)), draw(st.integers(1, 4))
    cells = st.lists(st.sampled_from((1, 1, 0, 0, -1)), min_size=m, max_size=m)
    rows = draw(st.lists(cells, min_size=n, max_size=n))
    scores = draw(st.lists(st.lists(st.sampled_from((0.1, 0.5, 0.9)), min_size=m, max_size=m), min_size=n, max_size=n))
    groups = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return response(rows, pd.factorize(np.array(groups))[0].tolist(), "BACD", scores)


RULES = st.sampled_from(("argmax", "hungarian"))


@given(cases(), RULES)
def test_dfactscore_never_exceeds_factscore(one: GroupedResponse, rule: str) -> None:
    row = figures(one, rule, gamma=10)
    for name in ("", "init_"):
        low, high = row[f"{name}dfactscore"], row[f"{name}factscore"]
        assert low is None or low <= high + 1e-12
        for end in ("_min", "_max"):
            assert row[f"{name}dfactscore{end}"] <= row[f"{name}factscore{end}"] + 1e-12


def filled(one: GroupedResponse) -> Iterator[GroupedResponse]:
    """All ways to fill in what is missing."""
    places = tuple(np.argwhere(one.matrix.unsure).T)
    for values in product((0, 1), repeat=int(one.matrix.unsure.sum())):
        prediction = one.matrix.prediction.copy()
        prediction[places] = values
        yield replace(one, matrix=FactEntityMatrix.of(one.matrix.entities, prediction, one.matrix.score))


BOUNDED = ("factscore", "dfactscore", "init_factscore", "init_dfactscore", "gap", "n_entities", "n_elsewhere")
#: Their bounds may be wider than need be.
COUNTED = ("gap", "n_entities", "n_elsewhere")


@given(cases(most_facts=5), st.sampled_from(("argmax", "hungarian", "given")))
@settings(max_examples=100)
def test_bounds_hold_all_ways_to_fill_the_matrix(one: GroupedResponse, rule: str) -> None:
    if one.matrix.unsure.sum() > 8:
        return
    one = replace(one, given_entities={0: one.matrix.entities[0], 1: one.matrix.entities[-1]})
    row = figures(one, rule)
    reached = [figures(each, rule) for each in filled(one)]
    for name in BOUNDED:
        values = [each[name] for each in reached]
        low, high = row[f"{name}_min"], row[f"{name}_max"]
        assert low - 1e-12 <= min(values) <= max(values) <= high + 1e-12
        if name not in COUNTED or len(reached) == 1:
            assert (low, high) == (pytest.approx(min(values)), pytest.approx(max(values)))
        if row[name] is not None:
            assert low - 1e-12 <= row[name] <= high + 1e-12
    assert {each["category"] for each in reached} <= set(row["categories"])
    assert row["merged"] in (None, reached[0]["merged"])
    if len(reached) == 1:
        assert row["merged"] == reached[0]["merged"]


@given(cases(), RULES, st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_a_lost_verdict_never_raises_a_score(one: GroupedResponse, rule: str, random: Random) -> None:
    prediction = one.matrix.prediction.copy()
    prediction[random.randrange(prediction.shape[0]), random.randrange(prediction.shape[1])] = -1
    fewer = replace(one, matrix=FactEntityMatrix.of(one.matrix.entities, prediction, one.matrix.score))
    for name in ("factscore", "init_dfactscore"):
        assert figures(fewer, rule)[name] <= figures(one, rule)[name] + 1e-12


@given(cases())
def test_they_are_equal_with_one_candidate(many: GroupedResponse) -> None:
    matrix = many.matrix
    only = FactEntityMatrix.of(matrix.entities[:1], matrix.prediction[:, :1], matrix.score[:, :1])
    row = figures(replace(many, matrix=only))
    assert row["dfactscore"] == row["factscore"]
    assert row["n_elsewhere"] == 0


@given(cases(), RULES, st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_no_order_matters(one: GroupedResponse, rule: str, random: Random) -> None:
    matrix = one.matrix
    facts, columns = list(range(len(matrix.prediction))), list(range(len(matrix.entities)))
    random.shuffle(facts)
    random.shuffle(columns)
    titles = [matrix.entities[i] for i in columns]
    other = FactEntityMatrix.of(titles, matrix.prediction[facts][:, columns], matrix.score[facts][:, columns])
    shuffled = replace(one, matrix=other, groups=pd.factorize(one.groups[facts])[0])
    before, after = figures(one, rule), figures(shuffled, rule)
    assert {key: pytest.approx(value) if isinstance(value, float) else value for key, value in before.items()} == after


@given(cases())
def test_the_best_assignment_is_found(one: GroupedResponse) -> None:
    n_groups, n_entities = one.n_groups, len(one.matrix.entities)
    supported = np.zeros((n_groups, n_entities))
    np.add.at(supported, one.groups, one.matrix.prediction == 1)
    slots = [*range(n_entities), *([None] * n_groups)]
    best = max(
        sum(supported[g, e] for g, e in enumerate(choice) if e is not None) for choice in permutations(slots, n_groups)
    )
    assigned = figures(one, "hungarian")
    assert assigned["n_supported_linked"] == best <= figures(one)["n_supported_linked"]


def test_the_number_of_entities_is_bounded_where_counting_alone_does_not_tell() -> None:
    # A comes first with two facts; B may own fact 2 only if it comes before C, which knows two facts, too.
    matrix = FactEntityMatrix.of(
        "ABC", np.array([[1, 0, 0], [1, 0, 0], [0, -1, 1], [0, 0, 1], [0, -1, 0]], dtype=np.int8)
    )
    assert bound_entity_count(matrix) == (2, 3)


# ------------------------------------------------------------------------------------------------------ from tables


def judged(rows: Sequence[Row], *evaluators: str) -> Judgements:
    """Rows of {response, fact, entity, group, ...}, with a prediction (or a status) for each evaluator."""
    claims, verdicts = [], []
    for number, row in enumerate(rows):
        fixed = {"claim_id": str(number), "dataset": "d", "system": "s", "claim": row.get("fact_id"), "group": "1"}
        claims.append(fixed | {key: value for key, value in row.items() if key not in evaluators})
        for name in evaluators:
            if name in row:
                lost = isinstance(row[name], str)
                verdict = {"prediction": None if lost else row[name], "status": row[name] if lost else "ok"}
                verdicts.append({"claim_id": str(number), "evaluator": name} | verdict)
    return Judgements.join(validate_claims(pd.DataFrame(claims)), validate_verdicts(pd.DataFrame(verdicts)))


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


def test_rows_are_of_systems_and_first_of_all_together() -> None:
    rows = compute_dfactscore_audit(judged(TABLE, "e"), gamma=0, intervals=ClusterBootstrap(replicates=100))
    assert [(row["dataset"], row["evaluator"], row["link"], row["system"]) for row in rows] == [
        ("d", "e", "argmax", "__all__"),
        ("d", "e", "argmax", "s"),
        ("d", "e", "argmax", "t"),
    ]
    whole, s, t = rows
    assert (s["factscore"], s["dfactscore"], s["share_merged"]) == (1.0, 0.75, 1.0)
    assert (t["n_responses"], t["n_answered"], t["n_without_candidates"], t["factscore"]) == (3, 2, 1, 1.0)
    assert (whole["n_responses"], whole["dfactscore"], whole["share_merged"]) == (4, 0.875, 0.5)


def test_every_verifier_links_for_itself_and_every_rule_stands_beside_the_other() -> None:
    table = [row | {"f": 1 - row["e"]} for row in TABLE[:8]]
    rows = compute_dfactscore_audit(judged(table, "e", "f"))
    assert [(row["evaluator"], row["init_dfactscore"]) for row in rows] == [("e", 0.75), ("f", 0.75)]
    found = compute_dfactscore_audit_by_link_rule(judged(table, "e"))
    assert [(row["grouper"], row["link"]) for row in found] == [("group", "argmax"), ("group", "hungarian")]
    told = [row | {"given_entity": "B"} for row in table]
    found = compute_dfactscore_audit_by_link_rule(judged(told, "e"))
    assert {row["link"]: row["init_dfactscore"] for row in found} == {"argmax": 0.75, "hungarian": 0.75, "given": 0.25}
    regrouped = [row | {"other": str(row["fact_id"] == "4")} for row in table]
    (row,) = compute_dfactscore_audit(judged(regrouped, "e"), group="other")
    assert (row["n_biographies"], row["init_dfactscore"]) == (2, 1.0)
    with pytest.raises(UsageError, match="no column 'gruop'"):
        compute_dfactscore_audit(judged(table, "e"), group="gruop")


def test_facts_of_somebody_else_are_listed() -> None:
    assert list_dfactscore_facts_of_other_entities(judged(TABLE, "e")) == [
        {
            "dataset": "d",
            "evaluator": "e",
            "system": "s",
            "name": None,
            "response_id": "r",
            "linked": "A",
            "fact": "4",
            "about": "B",
        }
    ]
    rows = compute_dfactscore_gaps(judged(TABLE, "e"))
    assert [row["share"] for row in rows if row["system"] == "s"] == [1.0] * 5 + [0.0] * 15
    again = [row | {"response_id": f"{row['response_id']}{at}"} for row in TABLE for at in range(5)]
    rows = compute_dfactscore_gaps(judged(again, "e"), intervals=ClusterBootstrap(replicates=20))
    mine = [row for row in rows if row["system"] == "s"]
    assert [row["share"] for row in mine] == [1.0] * 5 + [0.0] * 15
    assert all(0.3 < row["share_low"] < 0.9 for row in mine[:5]), "five of five responses are no certainty"
    assert all(0.1 < row["share_high"] < 0.7 for row in mine[5:])


def test_a_failed_call_counts_against_the_score_and_a_skipped_response_leaves_it() -> None:
    failed = [*cells("r", "1", 1, 0), *(row for fact in "23" for row in cells("r", fact, "error", "refused"))]
    (row,) = compute_dfactscore_audit(judged(failed, "e"), gamma=0)
    assert (row["factscore"], row["factscore_min"], row["factscore_max"]) == (
        pytest.approx(1 / 3),
        pytest.approx(1 / 3),
        1,
    )
    (row,) = compute_dfactscore_audit(judged([*failed, *cells("q", "1", "error", "error")], "e"), gamma=0)
    assert row["factscore"] == pytest.approx(1 / 6)
    (row,) = compute_dfactscore_audit(judged([*failed, *cells("q", "1", "skipped", "skipped")], "e"), gamma=0)
    assert (row["factscore"], row["factscore_max"]) == (pytest.approx(1 / 3), 1)


def test_a_guess_counts_as_it_is_and_as_unknown_in_the_bounds() -> None:
    table = judged(cells("r", "1", 1, 0), "e")
    table.status[:] = 1  # unparsed, with a prediction all the same
    (row,) = compute_dfactscore_audit(table, gamma=0)
    assert (row["factscore"], row["factscore_min"], row["factscore_max"]) == (1, 0, 1)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*cells("r", "1", 1, 0), *cells("r", "1", 1, 0)], "put to the same entity twice"),
        ([*cells("r", "1", 1, 0)[:1], *cells("r", "1", 1, 0, group="2")[1:]], "in different groups"),
    ],
)
def test_a_table_that_is_no_matrix_is_refused(rows: list[Row], message: str) -> None:
    with pytest.raises(UsageError, match=f"response 'r'.*{message}"):
        collect_grouped_responses(judged(rows, "e"), 0)


def test_they_apply_where_facts_have_entities() -> None:
    assert all(audit.applies is not None and audit.applies(judged(TABLE, "e")) for audit in AUDITS)
    plain = judged([{"response_id": "r", "e": 1, "claim": "c"}], "e")
    assert not any(audit.applies is not None and audit.applies(plain) for audit in AUDITS)
    assert (
        compute_dfactscore_audit(plain)
        == compute_dfactscore_audit_by_link_rule(plain)
        == list_dfactscore_facts_of_other_entities(plain)
        == []
    )


@pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
def test_whatever_share_of_calls_is_refused_the_bounds_hold_the_truth(share: float) -> None:
    rng = np.random.default_rng(int(10 * share))
    whole, fewer = [], []
    for _ in range(40):
        n, m = rng.integers(2, 9), rng.integers(1, 4)
        prediction = (rng.random((n, m)) < rng.choice([0.2, 0.9], size=m)).astype(np.int8)
        groups = pd.factorize(rng.integers(0, 2, n))[0]
        one = response(prediction, groups)
        lost = np.where(rng.random((n, m)) < share, np.int8(-1), prediction)
        whole.append(figures(one))
        fewer.append(figures(replace(one, matrix=FactEntityMatrix.of(one.matrix.entities, lost))))
    truth, found = summarise_biography_scores(whole), summarise_biography_scores(fewer)
    for name in ("factscore", "dfactscore"):
        assert found[name] <= truth[name] + 1e-12
    for name in (*BOUNDED[:-1], "n_biographies", "share_merged", *BIOGRAPHY_CATEGORIES):
        assert found[f"{name}_min"] - 1e-12 <= truth[name] <= found[f"{name}_max"] + 1e-12, name
        if found[name] is not None:
            assert found[f"{name}_min"] - 1e-12 <= found[name] <= found[f"{name}_max"] + 1e-12, name
    # What is not verified is not "not merged".
    assert found["n_undecided"] > 0
    if share == 1:
        assert (found["share_merged"], found["factscore"]) == (0, 0) or found["share_merged"] is None
