"""FActScore as an audit: scores, bounds and failures by hand; people's scores against scipy,
scikit-learn, goldens."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audit_tables import find, judged
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from factaudit import Judgements, UsageError, validate_claims, validate_verdicts
from factaudit.arrays.response_means import average_responses, length_penalty
from factaudit.audit.factscore import compute_factscore_audit
from factaudit.audit.human_scores import compare_with_human_scores, compute_factscore_agreement
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

Row = dict[str, Any]
#: What a response holds: a prediction or a status for each fact; None where it abstained.
Facts = Sequence[int | str] | None


def table(
    responses: Sequence[Facts], human: Sequence[tuple[int, int, int] | None] = (), **shared: Any
) -> Judgements:
    claims = []
    verdicts = []
    for number, facts in enumerate(responses):
        key = {"dataset": "d", "system": "s", "response_id": f"r{number}"} | shared
        if human:
            names = ("human_supported", "human_not_supported", "human_irrelevant")
            key |= dict(zip(names, human[number] or (None, None, None), strict=True))
        if not facts:
            lone = {"claim_id": f"r{number}", "claim": None, "abstained": int(facts is None)}
            claims.append(key | lone)
        for position, value in enumerate(facts or ()):
            claims.append(key | {"claim_id": f"r{number}.{position}", "claim": "a fact"})
            known = isinstance(value, int)
            told = {"prediction": value if known else None, "status": "ok" if known else value}
            verdicts.append({"claim_id": claims[-1]["claim_id"], "evaluator": "e"} | told)
    # Somewhere a verdict, so that the evaluator is known.
    if not verdicts:
        claims.append({"claim_id": "x", "dataset": "other", "claim": "c"})
        verdicts.append({"claim_id": "x", "evaluator": "e", "prediction": 1, "status": "ok"})
    return Judgements.join(
        validate_claims(pd.DataFrame(claims)), validate_verdicts(pd.DataFrame(verdicts))
    )


def scored(responses: Sequence[Facts], gamma: float = 0) -> Row:
    return find(compute_factscore_audit(table(responses), gamma=gamma), dataset="d", system="s")


# ---- scores


@pytest.mark.parametrize("gamma", [10, 2.5, 0])
def test_the_length_penalty(gamma):
    expected = [math.exp(1 - gamma / n) if 0 < n < gamma else float(n >= gamma) for n in range(12)]
    assert length_penalty(np.arange(12), gamma) == pytest.approx(expected)
    with pytest.raises(UsageError, match="gamma"):
        scored([[1]], gamma=-1)


@pytest.mark.parametrize(
    ("responses", "gamma", "expected"),
    [
        (
            [[1, 0, 1, 1, 0]],
            10,
            {"init_score": 0.6, "init_score_min": 0.6, "score": 0.6 * math.exp(-1)},
        ),
        # Failures never raise the score.
        ([[1, *["error"] * 9]], 0, {"score": 0.1, "score_min": 0.1, "score_max": 1.0}),
        # A response of which every call failed answered all the same; one of which nothing was
        # asked has no score.
        (
            [[1, 0], ["refused", "unparsed"], ["skipped", "skipped"]],
            0,
            {
                "score": 0.25,
                "n_scored": 2,
                "n_unscored_responses": 1,
                "score_min": 0.5 / 3,
                "score_max": 2.5 / 3,
            },
        ),
        # The mean is over responses, and nothing leaves silently.
        (
            [[1, 1, 0, 0], [1], None, [], ["skipped", "skipped"]],
            0,
            {
                "score": 0.75,
                "score_min": 0.5,
                "score_max": 2.5 / 3,
                "respond_ratio": 3 / 5,
            }
            | {
                "n_responses": 5,
                "n_abstained": 1,
                "n_without_facts": 1,
                "n_scored": 2,
                "n_unscored_responses": 1,
            }
            | {
                "n_facts": 7,
                "n_supported": 3,
                "n_unscored": 2,
                "n_failed_sentences": 0,
                "n_unparsed": 0,
            }
            | {"num_facts_per_response": 7 / 3},
        ),
        (
            [None],
            0,
            {"score": None, "num_facts_per_response": None, "respond_ratio": 0}
            | {"reason": "no response has a scored fact"},
        ),
    ],
)
def test_scores_by_hand(responses, gamma, expected):
    row = scored(responses, gamma)
    for key, value in expected.items():
        assert row[key] == (pytest.approx(value) if isinstance(value, float) else value), key
    json.dumps(row, allow_nan=False)


@given(
    st.lists(st.lists(st.sampled_from((0, 1)), min_size=1, max_size=5), min_size=1, max_size=4),
    st.data(),
)
@settings(max_examples=25)
def test_a_lost_verdict_never_raises_a_score(responses, data):
    before = scored(responses)["score"]
    lost = data.draw(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=6))
    row = scored(
        [
            ["refused" if (r, f) in lost else v for f, v in enumerate(own)]
            for r, own in enumerate(responses)
        ]
    )
    assert row["score"] <= before + 1e-12
    assert row["score_min"] - 1e-12 <= row["score"] <= row["score_max"] + 1e-12
    assert row["score_max"] >= before - 1e-12


def test_a_guess_counts_as_it_is_and_as_unknown_in_the_bounds():
    one = table([[1, 1]])
    one.status[0, 0] = 1  # unparsed, with a prediction all the same
    (row,) = compute_factscore_audit(one, gamma=0)
    assert (row["score"], row["score_min"], row["score_max"], row["n_unparsed"]) == (1, 0.5, 1, 1)


def test_responses_about_one_topic_are_a_cluster():
    """The same scores of a second system on the same topics say nothing new of how topics
    differ."""
    scores = [1, 1, 0, 1, 0, 1, 1, 0]
    rows = [
        {"system": system, "response_id": f"{system}{n}", "topic": f"t{n}", "e": value}
        for system in ("a", "b")
        for n, value in enumerate(scores)
    ]
    both, one, _ = compute_factscore_audit(judged(rows, "e"), gamma=0, intervals=ClusterBootstrap())
    ends = ("score", "score_low", "score_high")
    assert [both[end] for end in ends] == pytest.approx([one[end] for end in ends])


def test_intervals_are_korn_and_graubards_over_responses():
    scores = np.array([0.0, 0.5, 1.0, 1.0])
    row = average_responses("score", scores, ClusterBootstrap())
    mean, t = 0.625, stats.t.ppf(0.975, 3)
    units = mean * (1 - mean) / (scores.var(ddof=1) / 4) * (stats.norm.ppf(0.975) / t) ** 2
    assert row["score_low"] == pytest.approx(
        stats.beta.ppf(0.025, mean * units, (1 - mean) * units + 1)
    )
    assert row["score_high"] == pytest.approx(
        stats.beta.ppf(0.975, mean * units + 1, (1 - mean) * units)
    )
    assert average_responses("score", [0.5], ClusterBootstrap())["score_low"] is None


# ---- with people


def people(human: Sequence[float | None], predicted: Sequence[float | None]) -> Judgements:
    """Responses of twenty facts each, with these shares supported by people and by the evaluator
    (None: not known)."""
    facts = [
        ["skipped"] * 20 if share is None else [int(n < round(20 * share)) for n in range(20)]
        for share in predicted
    ]
    counts = [
        None if share is None else (round(20 * share), 20 - round(20 * share), 0) for share in human
    ]
    return table(facts, counts)


def test_the_human_score_and_its_two_conventions():
    one = table([[1]], [(3, 1, 2)])
    assert compute_factscore_agreement(one)[0]["human"] == 0.75
    assert compute_factscore_agreement(one, irrelevant="unsupported")[0]["human"] == 0.5
    none = table([[1]], [(0, 0, 2)])
    assert compute_factscore_agreement(none)[0]["human"] is None
    assert compute_factscore_agreement(none, irrelevant="unsupported")[0]["human"] == 0


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [1, 0, 3, 2]])
def test_a_fact_that_is_put_to_several_people_has_the_labels_of_all_its_rows(order):
    """One fact is true of Q and not of P; of the other one only Q was asked about."""
    rows = [
        {"fact_id": fact, "entity": entity, "label": label, "response_id": "r", "e": 1}
        for fact, entity, label in (("f", "P", 0), ("f", "Q", 1), ("g", "P", None), ("g", "Q", 0))
    ]
    found = compute_factscore_agreement(judged([rows[at] for at in order], "e"))
    assert {row["figure"]: row["human"] for row in found} == {
        "init_score": 0.5,
        "score": 0.5,
        "same_facts": 0.5,
    }


def test_agreement_equals_scipys_and_leaves_nothing_out_silently():
    rng = np.random.default_rng(1)
    human = rng.integers(0, 21, 30) / 20
    predicted = np.round(20 * np.clip(human + rng.normal(0, 0.2, 30), 0, 1)) / 20
    both = people([*human, 0.5, None], [*predicted, None, 0.5])
    found = compute_factscore_agreement(both, intervals=ClusterBootstrap(replicates=500))[0]
    assert (found["system"], found["figure"], found["n"], found["n_missing"]) == (
        "s",
        "init_score",
        30,
        1,
    )
    assert found["human"] == pytest.approx(human.mean())
    assert found["mae"] == pytest.approx(np.abs(predicted - human).mean())
    assert found["bias"] == pytest.approx((predicted - human).mean())
    for key, reference in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        assert found[f"{key}_r"] == pytest.approx(reference(human, predicted).statistic)
        assert found[f"{key}_r_low"] < found[f"{key}_r"] < found[f"{key}_r_high"]
    assert found == compute_factscore_agreement(both, intervals=ClusterBootstrap(replicates=500))[0]


@pytest.mark.parametrize("mode", ["strict", "wikipedia"])
def test_the_re_implementations_figures_to_the_printed_digit(shared, root, mode):
    path = shared / f"factscore/reimplementation/factscore_pipeline_results_{mode}.json"
    printed = json.loads(path.read_text())
    examples = printed["per_example_results"]
    pairs = np.array([[one["ground_truth_accuracy"], one["predicted_score"]] for one in examples])
    assert len(pairs) == printed["evaluated_count"] == 493
    found = compare_with_human_scores(pairs)
    for one in printed["metrics_by_threshold"].values():
        for theirs, ours in (
            ("mae", "mae"),
            ("pearson_correlation", "pearson_r"),
            ("spearman_correlation", "spearman_r"),
        ):
            assert found[ours] == pytest.approx(one[theirs], rel=1e-9)
