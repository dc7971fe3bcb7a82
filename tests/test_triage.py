"""The verb ``triage`` and what it works by: a promise of few errors among what passes, and whom it
is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from estimate_data import World, annotated, tables, without_labels

from factaudit import UsageError, read_sample, write_table
from factaudit.estimate.rates import join_claims
from factaudit.estimate.sample import draw_sample
from factaudit.estimate.triage import TriageResults, triage_claims

GOOD = World(rates=(-2.0, -1.5), size=300, skill=(5.0, 3.0))
USELESS = World(rates=(-1.0, -1.0), size=300, skill=(0.0,))


def draw_annotations(claims: pd.DataFrame, n: int, seed: int = 0) -> pd.DataFrame:
    ids = claims["claim_id"].sample(n, random_state=seed)
    return annotated(claims, ids).astype({"label": "Int8"})


def triage(
    world: World, n_labels: int = 200, seed: int = 0, **more: object
) -> tuple[TriageResults, pd.DataFrame]:
    """What is found by labels drawn at random, and the claims with all their labels."""
    claims, verdicts = tables(world, seed)
    annotations = draw_annotations(claims, n_labels, seed)
    return triage_claims(without_labels(claims), verdicts, annotations=annotations, **more), claims


def share_of_errors(claims: pd.DataFrame, ids: pd.Series) -> float:
    return float(1 - claims.set_index("claim_id")["label"][ids].mean())


def test_what_passes_has_few_errors_and_the_queue_begins_with_the_riskiest():
    results, claims = triage(GOOD, max_error=0.05)
    queue = results.queue
    passing = queue.loc[queue["passes"] == 1, "claim_id"]
    promise = results.rule["promise"]
    assert promise["n_passing"] == len(passing) > 0.5 * len(claims)
    assert share_of_errors(claims, passing) <= 0.05
    n_known = int(((queue["label"] == 0) & (queue["risk"] <= results.rule["threshold"])).sum())
    assert promise["n_known_errors"] == n_known > 0
    assert (
        f"not counting {n_known} known errors: at most 5 % of what passes are errors"
        in promise["statement"]
    )
    known = queue[queue["label"] == 0]
    assert (set(known["decision"]), set(known["passes"])) == ({"labelled"}, {0})
    review = queue[queue["decision"] == "review"]
    assert review["risk"].is_monotonic_decreasing
    assert review.index.max() < queue.index[queue["decision"] != "review"].min()
    assert (
        share_of_errors(claims, review["claim_id"])
        > 4 * share_of_errors(claims, claims["claim_id"]) / 2
    )
    assert set(queue.loc[queue["decision"] == "labelled", "claim_id"]) == set(
        queue.dropna(subset="label")["claim_id"]
    )


def test_scores_that_tell_nothing_pass_nothing():
    results, _ = triage(USELESS, max_error=0.05)
    promise = results.rule["promise"]
    assert (promise["n_passing"], promise["labels_needed"]) == (0, None)
    assert results.rule["threshold"] is None
    assert "It would take more than" in promise["statement"]
    assert (results.queue["passes"] == 0).all()


def test_too_few_labels_say_how_many_would_do():
    results, _ = triage(GOOD, n_labels=30, max_error=0.05)
    promise = results.rule["promise"]
    assert promise["n_passing"] == 0
    assert 45 <= promise["labels_needed"] <= 200
    assert f"About {promise['labels_needed']:,} labels" in promise["statement"]


def test_a_promise_of_new_claims_passes_less_and_says_so():
    of_these, _ = triage(GOOD, max_error=0.05)
    of_new, _ = triage(GOOD, max_error=0.05, target="population")
    new, these = of_new.rule["promise"], of_these.rule["promise"]
    assert 0 < new["n_passing"] < these["n_passing"]
    assert "for further claims of this kind" in new["statement"]


def test_an_unscored_claim_never_passes_and_is_reviewed_first():
    claims, verdicts = tables(GOOD)
    verdicts.loc[verdicts["claim_id"].isin(["c000003", "c000007"]), ["score", "prediction"]] = [
        np.nan,
        pd.NA,
    ]
    verdicts.loc[verdicts["claim_id"].isin(["c000003", "c000007"]), "status"] = "refused"
    labels = draw_annotations(claims[~claims["claim_id"].isin(["c000003", "c000007"])], 200)
    results = triage_claims(without_labels(claims), verdicts, annotations=labels, max_error=0.1)
    assert results.queue.head(2)["claim_id"].tolist() == ["c000003", "c000007"]
    assert results.queue.head(2)["passes"].tolist() == [0, 0]


def test_labels_of_a_sample_count_by_what_they_stand_for(tmp_path):
    claims, verdicts = tables(GOOD)
    judged = join_claims(without_labels(claims), verdicts)
    sample = draw_sample(judged, ["e0", "e1"], 200, phases=1)
    annotations = annotated(claims, sample.rows["claim_id"]).astype({"label": "Int8"})
    by_plan = triage_claims(
        without_labels(claims), verdicts, annotations=annotations, sample=sample, max_error=0.1
    )
    passing = by_plan.queue.loc[by_plan.queue["passes"] == 1, "claim_id"]
    assert share_of_errors(claims, passing) <= 0.1
    assert len(passing) > 0
    # A draw with equal chances loses none of its labels, that for rates some.
    at_random = draw_sample(judged, ["e0", "e1"], 200, is_at_random=True)
    assert at_random.rows["system"].value_counts().tolist() == [100, 100]
    annotations = annotated(claims, at_random.rows["claim_id"]).astype({"label": "Int8"})
    found = triage_claims(
        without_labels(claims), verdicts, annotations=annotations, sample=at_random, max_error=0.1
    )
    assert found.rule["promise"]["n_passing"] >= len(passing)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"max_error": 0.0}, "expected a max error between 0 and 1, found 0"),
        ({"confidence": 0.3}, "expected a confidence from 0.5 to 1, found 0.3"),
        ({"evaluators": ["e7"]}, "e7"),
        ({"target": "color"}, "expected a target of corpus or population, found 'color'"),
    ],
)
def test_what_cannot_be_promised_is_refused(more, message):
    with pytest.raises(UsageError, match=message):
        triage(GOOD, **more)


def test_no_label_is_an_error_that_says_what_to_do():
    claims, verdicts = tables(GOOD)
    with pytest.raises(
        UsageError, match="draw claims to label with `factaudit sample --at-random`"
    ):
        triage_claims(without_labels(claims), verdicts)


def test_where_every_claim_is_labelled_nothing_is_promised():
    claims, verdicts = tables(GOOD)
    with pytest.raises(
        UsageError,
        match=r"all 600 claims are labelled, so no claim is left to triage; --target pop",
    ):
        triage_claims(claims, verdicts)
    new = triage_claims(claims, verdicts, target="population").rule["promise"]
    assert new["n_passing"] > 0


def test_labels_of_one_system_promise_nothing_of_the_other():
    claims, verdicts = tables(GOOD)
    labels = draw_annotations(claims[claims["system"] == "s00"], 150)
    with pytest.raises(UsageError, match="not drawn at random over systems"):
        triage_claims(without_labels(claims), verdicts, annotations=labels)


def test_the_command_writes_a_queue_a_rule_and_a_page(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    claims, verdicts = tables(GOOD)
    write_table(without_labels(claims), "claims.parquet")
    write_table(verdicts, "verdicts.parquet")
    drawn = ("--budget", "200", "--one-phase", "--out", "sample.parquet")
    code, _, err = call("sample", "claims.parquet", "verdicts.parquet", *drawn)
    assert code == 0, err
    write_table(annotated(claims, read_sample("sample.parquet").rows["claim_id"]), "labels.csv")
    arguments = [
        "claims.parquet",
        "verdicts.parquet",
        "--label-file",
        "labels.csv",
        "--sample",
        "sample.parquet",
    ]
    code, out, err = call("triage", *arguments, "--max-error", "0.1", "--out", "t")
    assert code == 0, err
    queue = pd.read_csv("t/queue.csv")
    promise = json.loads(Path("t/rule.json").read_text())["promise"]
    assert queue["passes"].sum() == promise["n_passing"] > 0
    assert share_of_errors(claims, queue.loc[queue["passes"] == 1, "claim_id"]) <= 0.1
    page = Path("t/review.html").read_text()
    first = queue.loc[queue["decision"] == "review", "claim_id"].iloc[0]
    assert page.index(first) == min(
        page.index(one) for one in queue.loc[queue["decision"] == "review", "claim_id"]
    )
    some = pd.read_csv("labels.csv", dtype=str)
    some.loc[:5, "label"] = "?"
    some.to_csv("labels.csv", index=False)
    code, out, err = call("triage", *arguments, "--evaluator", "e0", "--out", "t")
    assert code == 0, err
    assert "undecided 6 claims, treated as unlabelled" in out
    assert json.loads(Path("t/rule.json").read_text())["weights"] == {"e0": 1.0}
