"""The matrix, linking and scores: hand-made cases, and properties that hold for every matrix."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factaudit.engines.dfactscore.group import number_groups
from factaudit.engines.dfactscore.link import link
from factaudit.engines.dfactscore.matrix import Matrix
from factaudit.engines.dfactscore.score import CATEGORIES, category, score, summarise
from factaudit.errors import FactauditError, UsageError


def matrix(rows: list[list[int]], entities: str = "ABCDEFG", scores: list[list[float]] | None = None) -> Matrix:
    """A row per fact, a column per entity."""
    prediction = np.array(rows, dtype=np.int8)
    titles = tuple(entities[: prediction.shape[1]])
    score = np.full(prediction.shape, np.nan) if scores is None else np.array(scores)
    return Matrix(tuple(f"fact {n}" for n in range(len(rows))), titles, prediction, score)


# ------------------------------------------------------------------------------------------------- hand-made cases


def test_a_merged_paragraph_has_factscore_1_and_a_low_dfactscore() -> None:
    one = matrix([[1, 0], [1, 0], [1, 0], [0, 1]])
    links = link(one, [0, 0, 0, 0])
    row = score(one, [0, 0, 0, 0], links, gamma=0)
    assert (row["factscore"], row["dfactscore"]) == (1.0, 0.75)
    assert row["gap"] == pytest.approx(0.25)
    assert row["category"] == "one bio, N entities"
    assert row["merged"] is True
    assert row["n_elsewhere"] == 1
    assert links[0].margin == pytest.approx(0.5)


def test_the_same_facts_in_two_groups_lose_nothing() -> None:
    one = matrix([[1, 0], [1, 0], [1, 0], [0, 1]])
    row = score(one, [0, 0, 0, 1], link(one, [0, 0, 0, 1]), gamma=0)
    assert (row["factscore"], row["dfactscore"], row["category"]) == (1.0, 1.0, "N bios, N entities")
    assert row["merged"] is False


def test_the_length_penalty_is_of_the_number_of_facts() -> None:
    one = matrix([[1], [1], [1], [0]])
    row = score(one, [0, 1, 1, 1], link(one, [0, 1, 1, 1]), gamma=10)
    # The published code would take the two groups: exp(1 - 10/2).
    assert row["dfactscore"] == pytest.approx(math.exp(1 - 10 / 4) * 0.75)
    assert row["init_dfactscore"] == 0.75


def test_argmax_and_hungarian_differ_where_two_groups_want_one_entity() -> None:
    # Both groups are best supported by A; together they do best with A for the second and B for the first.
    one = matrix([[1, 1], [1, 0], [1, 0], [1, 0]])
    groups = [0, 1, 1, 1]
    greedy, assigned = link(one, groups), link(one, groups, "hungarian")
    assert [a.entity for a in greedy] == [0, 0]
    assert [a.entity for a in assigned] == [1, 0]
    # With three facts of the first group on A alone, sharing A costs the assignment facts.
    one = matrix([[1, 0], [1, 0], [1, 0], [1, 0], [1, 0]])
    groups = [0, 0, 1, 1, 1]
    assert score(one, groups, link(one, groups), gamma=0)["dfactscore"] == 1.0
    assert score(one, groups, link(one, groups, "hungarian"), gamma=0)["dfactscore"] == pytest.approx(0.6)


def test_hungarian_leaves_a_group_without_an_entity_where_there_are_too_few() -> None:
    one = matrix([[1], [1], [1]])
    links = link(one, [0, 1, 1], "hungarian")
    assert [a.entity for a in links] == [None, 0]
    assert score(one, [0, 1, 1], links, gamma=0)["dfactscore"] == pytest.approx(2 / 3)


def test_ties_go_to_the_greater_score_and_then_to_the_first_title() -> None:
    rows = [[1, 1], [0, 0]]
    assert link(matrix(rows, "BA"), [0, 0])[0].entity == 1
    assert link(matrix(rows, "BA", [[0.9, 0.8], [0.1, 0.1]]), [0, 0])[0].entity == 0


def test_given_links_and_what_is_wrong_with_them() -> None:
    one = matrix([[1, 0], [0, 1]])
    links = link(one, [0, 1], "given", {0: "B", 1: "B"})
    assert [a.entity for a in links] == [1, 1]
    assert links[0].margin == -1.0  # the rule did not take the best
    assert score(one, [0, 1], links, gamma=0)["dfactscore"] == 0.5
    with pytest.raises(FactauditError, match="'Z' is not a candidate"):
        link(one, [0, 1], "given", {0: "Z"})
    with pytest.raises(UsageError, match="did you mean 'hungarian'"):
        link(one, [0, 1], "hungarain")


def test_a_narrow_margin_is_flagged() -> None:
    one = matrix([[1, 1], [1, 1], [1, 0], [0, 1], [1, 1]])
    row = score(one, [0] * 5, link(one, [0] * 5))
    assert row["margin"] == 0.0
    assert row["n_narrow"] == 1


def test_unscored_facts_widen_the_bounds_and_leave_no_denominator_unseen() -> None:
    one = matrix([[1, 0], [-1, 0], [1, -1], [-1, 1]])
    row = score(one, [0] * 4, link(one, [0] * 4), gamma=0)
    # FActScore: yes, unscored, yes, yes. D-FActScore (A): yes, unscored, yes, unscored.
    assert (row["n_facts"], row["n_unscored"], row["n_unscored_linked"]) == (4, 1, 2)
    assert (row["factscore"], row["factscore_min"], row["factscore_max"]) == (1.0, 0.75, 1.0)
    assert (row["dfactscore"], row["dfactscore_min"], row["dfactscore_max"]) == (1.0, 0.5, 1.0)


def test_without_candidates_or_groups_scores_are_undefined() -> None:
    nobody = Matrix(("a fact",), (), np.zeros((1, 0), dtype=np.int8), np.zeros((1, 0)))
    row = score(nobody, [0], link(nobody, [0]))
    assert row["factscore"] is None
    assert row["dfactscore"] is None
    assert row["n_unscored"] == row["n_unscored_linked"] == 1
    one = matrix([[1, 0]])
    row = score(one, None, [], gamma=0)
    assert row["factscore"] == 1.0
    assert (row["dfactscore"], row["dfactscore_min"], row["dfactscore_max"]) == (None, 0.0, 1.0)
    assert row["category"] is None
    assert row["merged"] is None


def test_entities_are_counted_by_the_one_that_supports_most() -> None:
    # Facts 0 and 1 are supported by both; A supports three facts in all, so both are A's; fact 3 is only B's.
    one = matrix([[1, 1], [1, 1], [1, 0], [0, 1], [0, 0]])
    assert one.attributed().tolist() == [0, 0, 0, 1, -1]
    assert score(one, [0] * 5, link(one, [0] * 5))["n_entities"] == 2


def test_categories() -> None:
    assert [category(*n) for n in ((1, 0), (1, 1), (1, 2), (2, 2), (3, 1))] == [
        CATEGORIES[0],
        CATEGORIES[0],
        CATEGORIES[1],
        CATEGORIES[2],
        CATEGORIES[3],
    ]


def test_summary_keeps_the_undefined_in_its_bounds() -> None:
    good = matrix([[1, 0], [1, 0]])
    rows = [
        score(good, [0, 0], link(good, [0, 0]), gamma=0),
        score(good, None, [], gamma=0),
        score(good, [0, 0], link(good, [0, 0]), gamma=0) | {"abstained": True},
    ]
    found = summarise(rows, replicates=200)
    assert (found["n_responses"], found["n_answered"]) == (3, 2)
    assert found["respond_ratio"] == pytest.approx(2 / 3)
    assert (found["dfactscore"], found["dfactscore_min"], found["dfactscore_max"]) == (1.0, 0.5, 1.0)
    assert "1 of 2 responses have no D-FActScore" in found["reason"]
    assert summarise([])["factscore"] is None


# ------------------------------------------------------------------------------------------------------ properties


@st.composite
def cases(draw: st.DrawFn) -> tuple[Matrix, tuple[int, ...]]:
    n, m = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    cells = st.lists(st.sampled_from((1, 1, 0, 0, -1)), min_size=m, max_size=m)
    rows = draw(st.lists(cells, min_size=n, max_size=n))
    scores = draw(st.lists(st.lists(st.sampled_from((0.1, 0.5, 0.9)), min_size=m, max_size=m), min_size=n, max_size=n))
    groups = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return matrix(rows, "ABCD", scores), number_groups(groups)


RULES = st.sampled_from(("argmax", "hungarian"))


@given(cases(), RULES)
def test_dfactscore_never_exceeds_factscore(case: tuple[Matrix, tuple[int, ...]], rule: str) -> None:
    one, groups = case
    row = score(one, groups, link(one, groups, rule))
    for name in ("", "init_"):
        low, high = row[f"{name}dfactscore"], row[f"{name}factscore"]
        assert low is None or high is None or low <= high + 1e-12
        assert row[f"{name}dfactscore_max"] <= row[f"{name}factscore_max"] + 1e-12
        assert row[f"{name}dfactscore_min"] <= row[f"{name}factscore_min"] + 1e-12


@given(cases(), RULES, st.randoms(use_true_random=False))
def test_bounds_hold_whatever_the_missing_verdicts_had_been(
    case: tuple[Matrix, tuple[int, ...]], rule: str, random: Random
) -> None:
    one, groups = case
    row = score(one, groups, link(one, groups, rule), best=link(one.at_best(), groups, rule))
    reached = []
    for fill in [0, 1, *([None] * 20)]:
        drawn = [random.randint(0, 1) if fill is None else fill for _ in range(one.prediction.size)]
        filled = np.where(one.prediction == -1, np.array(drawn).reshape(one.prediction.shape), one.prediction)
        whole = Matrix(one.facts, one.entities, filled, one.score)
        reached.append(score(whole, groups, link(whole, groups, rule)))
    for name in ("factscore", "init_factscore", "dfactscore", "init_dfactscore"):
        low, high = row[f"{name}_min"], row[f"{name}_max"]
        assert all(low - 1e-12 <= found[name] <= high + 1e-12 for found in reached)
        # They are reached: no wider than they have to be.
        assert (reached[0][name], reached[1][name]) == (pytest.approx(low), pytest.approx(high))


@given(cases())
def test_they_are_equal_with_one_candidate(case: tuple[Matrix, tuple[int, ...]]) -> None:
    many, groups = case
    one = Matrix(many.facts, many.entities[:1], many.prediction[:, :1], many.score[:, :1])
    row = score(one, groups, link(one, groups))
    assert row["dfactscore"] == row["factscore"]
    assert row["n_elsewhere"] == 0


@given(cases(), RULES, st.randoms(use_true_random=False))
@settings(max_examples=200)
def test_no_order_matters(case: tuple[Matrix, tuple[int, ...]], rule: str, random: object) -> None:
    one, groups = case
    facts, entities = list(range(len(one.facts))), list(range(len(one.entities)))
    random.shuffle(facts)  # type: ignore[attr-defined]
    random.shuffle(entities)  # type: ignore[attr-defined]
    other = Matrix(
        tuple(one.facts[i] for i in facts),
        tuple(one.entities[i] for i in entities),
        one.prediction[facts][:, entities],
        one.score[facts][:, entities],
    )
    shuffled = number_groups([groups[i] for i in facts])
    before, after = score(one, groups, link(one, groups, rule)), score(other, shuffled, link(other, shuffled, rule))
    assert {key: pytest.approx(value) for key, value in before.items()} == after


@given(cases())
def test_argmax_supports_at_least_as_many_facts_as_hungarian(case: tuple[Matrix, tuple[int, ...]]) -> None:
    one, groups = case
    greedy, assigned = link(one, groups), link(one, groups, "hungarian")
    rows = [score(one, groups, links) for links in (greedy, assigned)]
    assert rows[0]["n_supported_linked"] >= rows[1]["n_supported_linked"]
    chosen = [a.entity for a in assigned if a.entity is not None]
    assert len(chosen) == len(set(chosen))
    if len({a.entity for a in greedy}) == len(greedy):
        # Where no two groups want one entity, the assignment is free to take the best of each.
        assert rows[0]["n_supported_linked"] == rows[1]["n_supported_linked"]


@given(cases())
def test_the_best_assignment_is_found(case: tuple[Matrix, tuple[int, ...]]) -> None:
    from itertools import permutations

    one, groups = case
    n_groups, n_entities = max(groups) + 1, len(one.entities)
    supported = np.zeros((n_groups, n_entities))
    np.add.at(supported, np.array(groups), one.prediction == 1)
    slots = [*range(n_entities), *([None] * n_groups)]
    best = max(
        sum(supported[g, e] for g, e in enumerate(choice) if e is not None) for choice in permutations(slots, n_groups)
    )
    assert score(one, groups, link(one, groups, "hungarian"))["n_supported_linked"] == best
