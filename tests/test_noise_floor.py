"""What a verifier's errors alone make look merged: simulated, by hand, and from tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audit_tables import as_declared, find

from factaudit.arrays.biography_scores import score_biography, summarise_biography_scores
from factaudit.arrays.fact_entity_matrix import FactEntityMatrix
from factaudit.arrays.grouped_responses import GroupedResponse
from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.dfactscore import AUDITS, compute_dfactscore_audit
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import wilson_interval
from factaudit.stats.noise_floor import estimate_noise_floor
from factaudit.tables import validate_claims, validate_verdicts

Row = dict[str, Any]
CHECK = AUDITS[0].checks[0]


def simulated(seed: int, *, n: int = 500, merged: float = 0.0, errs: float = 0.05, decoys: int = 2) -> list[Row]:
    """Responses of 20 facts with 5 candidates; a share of them really has two facts of the second candidate."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        cells = (rng.random((20, 5)) < errs).astype(np.int8)
        owner = np.zeros(20, dtype=int)
        if rng.random() < merged:
            owner[:2] = 1
        # A true fact is found supported in 95 of 100.
        cells[np.arange(20), owner] = rng.random(20) < 0.95
        hits = int((rng.random(20 * decoys) < errs).sum())
        one = GroupedResponse(
            {},
            np.arange(20),
            FactEntityMatrix.of("ABCDE", cells),
            np.zeros(20, dtype=np.int64),
            false_cells={"decoys": (20 * decoys, hits), "labels": (0, 0)},
        )
        rows.append(score_biography(one, gamma=0)[0])
    return rows


def told(found: Row) -> list[Any]:
    row = as_declared("dfactscore", {"dataset": "d", "evaluator": "e", "system": "s"} | found)
    return [(one.severity, one.statement) for one in CHECK.run(AuditedRun({"dfactscore": [row]}))]


def test_five_in_a_hundred_errors_make_a_sixth_of_one_person_responses_look_merged() -> None:
    found = summarise_biography_scores(simulated(0), ClusterBootstrap(replicates=500))
    assert found["share_merged"] == pytest.approx(0.17, abs=0.02)
    assert found["false_positive_rate"] == pytest.approx(0.05, abs=0.005)
    assert (found["n_false"], found["false_positives_from"]) == (500 * 40, "decoys")
    assert found["merged_floor"] == pytest.approx(found["share_merged"], abs=0.03)
    assert found["merged_excess_low"] < 0 < found["merged_excess_high"]
    ((severity, statement),) = told(found)
    assert severity == "ok"
    assert "is not shown" in statement


def test_what_exceeds_the_noise_is_a_finding() -> None:
    found = summarise_biography_scores(simulated(1, merged=0.15), ClusterBootstrap(replicates=500))
    assert found["merged_excess_low"] > 0.05
    assert found["merged_excess"] == pytest.approx(0.12, abs=0.04)
    ((severity, statement),) = told(found)
    assert severity == "warn"  # a gap of two points
    assert "would seem to only because the verifier makes mistakes" in statement


def test_the_excess_covers_nothing_where_there_is_nothing() -> None:
    """One-person responses: at most 1 in 20 simulations may find an excess, and 40 of them at most 5."""
    found = [
        summarise_biography_scores(simulated(seed, n=100, decoys=1), ClusterBootstrap(replicates=200))
        for seed in range(40)
    ]
    assert sum(row["merged_excess_low"] > 0 for row in found) <= 5
    assert abs(np.mean([row["merged_excess"] for row in found])) < 0.02


def test_the_floor_by_hand() -> None:
    # One fact that the linked page does not support, with three other candidates.
    one = GroupedResponse(
        {},
        np.arange(2),
        FactEntityMatrix.of("ABCD", np.array([[1, 0, 0, 0], [0, 0, 1, 0]], dtype=np.int8)),
        np.zeros(2, int),
    )
    row, _ = score_biography(one, gamma=0)
    assert (row["merged"], row["n_open"]) == (True, 3)
    found = summarise_biography_scores([row], None, false_positive_rate=0.1)
    assert found["merged_floor"] == pytest.approx(1 - 0.9**3)
    assert found["merged_excess"] == pytest.approx(0.9**3)
    assert (found["false_positives_from"], found["n_false"]) == ("given", 0)
    unknown = summarise_biography_scores([row])
    assert (unknown["merged_floor"], unknown["false_positives_from"]) == (None, None)


def table(rows: list[Row]) -> Judgements:
    claims = [
        {"claim_id": str(n), "dataset": "d", "system": "s", "claim": "c", "group": "1"}
        | {key: value for key, value in row.items() if key != "e"}
        for n, row in enumerate(rows)
    ]
    verdicts = [{"claim_id": str(n), "evaluator": "e", "prediction": row["e"]} for n, row in enumerate(rows)]
    return Judgements.join(validate_claims(pd.DataFrame(claims)), validate_verdicts(pd.DataFrame(verdicts)))


def test_decoys_are_no_candidates_and_measure_the_errors() -> None:
    rows = [
        {"response_id": "r", "fact_id": fact, "entity": title, "e": value, "decoy": int(title == "Z")}
        for fact, values in (("1", (1, 0, 1)), ("2", (0, 1, 0)))
        for title, value in zip("ABZ", values, strict=True)
    ]
    (row,) = compute_dfactscore_audit(table(rows), gamma=0)
    assert (row["n_candidates"], row["factscore"], row["dfactscore"]) == (2, 1.0, 0.5)
    assert (row["false_positive_rate"], row["n_false"], row["false_positives_from"]) == (0.5, 2, "decoys")
    assert row["merged_floor"] == pytest.approx(0.5)


def test_labels_measure_the_errors_where_there_are_no_decoys() -> None:
    rows = [
        {"response_id": "r", "fact_id": fact, "entity": title, "e": value, "label": label, "given_entity": "A"}
        for fact, label, values in (("1", 1, (1, 0)), ("2", 0, (1, 1)), ("3", 0, (0, 1)))
        for title, value in zip("AB", values, strict=True)
    ]
    row = find(compute_dfactscore_audit(table(rows)), system="s")
    assert (row["false_positive_rate"], row["n_false"], row["false_positives_from"]) == (0.5, 2, "labels")


def test_a_label_is_read_on_the_page_of_the_person_it_is_about_whatever_the_grouping() -> None:
    """A paragraph of A takes two facts of B, which another grouper puts in a group of their own: B's page is right."""
    rows = [
        {"response_id": "r", "fact_id": fact, "entity": title, "e": value, "given_entity": true_of, "other": group}
        | {"label": label if title == "A" else None}
        for fact, true_of, group, label, values in (
            ("1", "A", "1", 1, (1, 0)),
            ("2", "A", "1", 1, (1, 0)),
            ("3", "B", "2", 0, (0, 1)),
            ("4", "B", "2", 0, (0, 1)),
        )
        for title, value in zip("AB", values, strict=True)
    ]
    for column in ("other", "group"):
        row = find(compute_dfactscore_audit(table(rows), group=column), system="s")
        assert (row["false_positive_rate"], row["n_false"], row["false_positives_from"]) == (0.0, 2, "labels")
        assert row["merged_floor"] == 0.0


def test_where_errors_are_not_measured_the_finding_says_so() -> None:
    found = summarise_biography_scores(
        [row | {"n_false_decoys": 0} for row in simulated(2, merged=0.5)], ClusterBootstrap(replicates=200)
    )
    ((severity, statement),) = told(found)
    assert severity == "warn"
    assert "It is not known how often the verifier is wrong" in statement


def test_the_excess_of_few_responses_may_be_as_large_as_their_share() -> None:
    """Where the verifier never errs on known cells the excess is the share, and not less sure than it."""
    for merged in (0, 1, 7, 10):
        is_merged = (np.arange(10) < merged).astype(float)
        found = estimate_noise_floor(is_merged, np.full(10, 3), np.array([[3] * 10, [0] * 10]), ClusterBootstrap())
        assert found is not None
        low, high = found.intervals[2]
        share_low, share_high = wilson_interval(np.array(merged / 10), np.array(10), np.array(9), 0.95)
        assert low is not None
        assert low <= share_low
        assert high is not None
        assert high >= share_high


def test_no_gap_is_below_zero_where_both_scores_are_of_the_same_facts() -> None:
    """One of ten responses has two facts of somebody else: Student's t alone would reach below 0."""

    def respond(*entities: int, groups: Sequence[int] = (0,) * 10) -> Row:
        cells = np.zeros((10, 2), dtype=np.int8)
        cells[np.arange(10), entities] = 1
        one = GroupedResponse({}, np.arange(10), FactEntityMatrix.of("AB", cells), np.array(groups))
        return score_biography(one, gamma=0)[0]

    rows = [respond(*[0] * 8, 1, 1), *[respond(*[0] * 10)] * 9]
    found = summarise_biography_scores(rows, ClusterBootstrap(replicates=100))
    assert found["gap"] == pytest.approx(0.02)
    assert 0 <= found["gap_low"] < 0.02
    # A fact without a group is in FActScore alone.
    rows[0] = respond(*[0] * 8, 1, 1, groups=[0] * 9 + [-1])
    assert summarise_biography_scores(rows, ClusterBootstrap(replicates=100))["gap_low"] < 0
