"""Which claims are drawn for labels, what the file keeps of it, and what is refused."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from audit_tables import join
from estimate_data import World, annotated, tables, without_labels

from factaudit import InputError, UsageError, estimate_rates, read_sample
from factaudit.estimate.rates import join_claims
from factaudit.estimate.sample import SAMPLE_COLUMNS, LabelSample, draw_next_phase, draw_sample
from factaudit.stats.sampling import Strata, make_strata
from factaudit.tables.annotations import validate_annotations

EVALUATORS = ("e0", "e1")


def drawn(
    budget: int = 120, seed: int = 0, world: World | None = None, **options: object
) -> tuple[pd.DataFrame, pd.DataFrame, LabelSample]:
    claims, verdicts = tables(world or World())
    judged = join(without_labels(claims), verdicts)
    return claims, verdicts, draw_sample(judged, EVALUATORS, budget, seed=seed, **options)


def test_strata_are_thirds_of_each_system_and_missing_scores_one_of_their_own():
    guess = np.array([0.1, 0.9, 0.5, 0.2, 0.6, 0.8, np.nan, 0.5, 0.5])
    system = np.array([0, 0, 0, 0, 0, 0, 0, 1, 1])
    strata = make_strata(guess, system, np.ones(9, dtype=bool), 3, 0.03)
    assert strata.code.tolist() == [0, 2, 1, 0, 1, 2, 3, 4, 5]
    assert strata.size.tolist() == [2, 2, 2, 1, 1, 1]
    assert strata.need[0] == pytest.approx(2 * np.sqrt(0.15 * 0.85))
    assert strata.need[3] == pytest.approx(0.5), "an unscored claim may be anything"


def test_labels_go_where_they_tell_most():
    strata = Strata(np.empty(0), np.array([100, 100, 3]), np.array([50.0, 10.0, 1.0]))
    labels = strata.allocate(60, 2)
    assert labels.sum() == 60
    assert labels[0] > 4 * labels[1]
    assert labels[2] == 2
    assert strata.allocate(500, 2).tolist() == [100, 100, 3]
    assert strata.allocate(6, 2).tolist() == [2, 2, 2]
    with pytest.raises(UsageError, match="5 labels are too few for 3 strata"):
        strata.allocate(5, 2)


def test_a_sample_is_what_it_says():
    claims, _, sample = drawn(60)
    rows = sample.rows
    assert tuple(rows.columns) == SAMPLE_COLUMNS
    assert len(rows) == 60 == rows["claim_id"].nunique()
    assert set(rows["claim_id"]) <= set(claims["claim_id"])
    assert rows["order"].tolist() == list(range(60))
    times = rows["stratum"].map(Counter(rows["stratum"]))
    np.testing.assert_allclose(rows["probability"], times / rows["frame"])
    assert rows.groupby("system")["stratum"].nunique().tolist() == [3] * 4
    assert not rows["system"].is_monotonic_increasing, "the order tells nothing of the system"


@pytest.mark.slow
def test_inclusion_probabilities_are_true():
    """Over 400 seeds each claim is drawn as often as its probability says."""
    claims, verdicts = tables(World(rates=(-1.0, 0.0), size=40))
    judged = join(without_labels(claims), verdicts)
    times, expected = Counter[str](), {}
    for seed in range(400):
        rows = draw_sample(judged, EVALUATORS, 20, seed=seed).rows
        times.update(rows["claim_id"])
        expected.update(zip(rows["claim_id"], rows["probability"], strict=True))
    assert len(times) == 80
    share = np.array([times[claim] / 400 for claim in expected])
    p = np.array(list(expected.values()))
    assert np.abs((share - p) / np.sqrt(p * (1 - p) / 400)).max() < 4.5


def test_two_phases_and_more():
    claims, verdicts, sample = drawn(120)
    assert sample.plan.drawn == ({"sim": 60},)
    judged = join_claims(claims, verdicts, annotated(claims, sample.rows["claim_id"]))
    second = draw_next_phase(sample, judged, seed=1)
    assert second.plan.drawn == ({"sim": 60}, {"sim": 60})
    pd.testing.assert_frame_equal(second.rows.iloc[:60], sample.rows)
    assert second.rows["claim_id"].is_unique
    later = second.rows[second.rows["phase"] == 1]
    assert later.groupby("system").size().tolist() == [15] * 4
    assert set(later["stratum"]).isdisjoint(sample.rows["stratum"])
    judged = join_claims(claims, verdicts, annotated(claims, second.rows["claim_id"]))
    with pytest.raises(UsageError, match="--more"):
        draw_next_phase(second, judged)
    third = draw_next_phase(second, judged, extra_labels=30)
    assert (third.plan.budget, len(third.rows)) == (150, 150)
    assert third.rows["order"].is_unique


def test_further_phases_need_labels():
    claims, verdicts, sample = drawn(120)
    with pytest.raises(UsageError, match="no label was found: the second phase"):
        draw_next_phase(sample, join(without_labels(claims), verdicts))


def test_the_same_seed_gives_the_same_file(tmp_path):
    claims, verdicts, sample = drawn(60, seed=5)
    mixed = claims.sample(frac=1, random_state=2).reset_index(drop=True)
    again = draw_sample(join(without_labels(mixed), verdicts), EVALUATORS, 60, seed=5)
    assert sorted(sample.rows["claim_id"]) == sorted(again.rows["claim_id"])
    first = ["c000023", "c000025", "c000059"]
    assert sorted(sample.rows["claim_id"])[:3] == first, "as in earlier versions"
    other = drawn(60, seed=6)[2]
    assert sorted(sample.rows["claim_id"]) != sorted(other.rows["claim_id"])
    sample.write(tmp_path / "a.parquet")
    sample.write(tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    read = read_sample(tmp_path / "a.parquet")
    assert read.plan == sample.plan
    pd.testing.assert_frame_equal(read.rows, sample.rows, check_dtype=False)


def test_a_share_of_the_claims_is_for_everybody_and_the_others_are_dealt_out():
    rows = drawn(40, annotators=2, overlap=0.5)[2].rows
    assert Counter(rows["annotators"]) == {"1 2": 20, "1": 10, "2": 10}


def test_single_claims_tell_nothing_of_whole_responses():
    claims, verdicts = tables(World(size=20, documents=10))
    claims["response_id"] = claims["doc_id"]
    sample = draw_sample(join(without_labels(claims), verdicts), EVALUATORS, 60, phases=1)
    said = annotated(claims, sample.rows["claim_id"]).assign(note="?")
    said.loc[::3, "label"] = None
    found = estimate_rates(claims, verdicts, annotations=said, sample=sample, levels=["response"])
    of = claims.merge(said["claim_id"])
    n = Counter(Counter(of["system"] + of["response_id"]).values())
    told = f"({n[2]} responses labelled whole, {n[1]} in part): sample with --level response"
    assert told in found.rates[0]["reason"]


def test_whole_responses_are_drawn():
    claims, verdicts = tables(World(size=120, documents=30))
    claims["response_id"] = claims["doc_id"]
    judged = join(without_labels(claims), verdicts)
    sample = draw_sample(judged, EVALUATORS, 24, level="response")
    keys = ["system", "doc_id"]
    picked = claims[claims["claim_id"].isin(sample.rows["claim_id"])]
    assert len(picked.drop_duplicates(keys)) == 24
    assert len(picked) == 24 * 4, "every claim of each"
    together = sample.rows.merge(claims[["claim_id", "doc_id"]])
    assert together.groupby(keys)["order"].agg(lambda order: order.max() - order.min()).eq(3).all()


@pytest.mark.slow
def test_claims_of_drawn_responses_give_claim_rates():
    """Responses are drawn, their claims counted: unbiased, and the labels of one response are worth
    less."""
    claims, verdicts = tables(World(rates=(-1.0, -0.5), size=400, documents=100, cluster=1.5))
    claims["response_id"] = claims["doc_id"]
    judged = join(without_labels(claims), verdicts)
    truth = 1 - claims.groupby("system")["label"].mean()
    found = []
    for seed in range(40):
        sample = draw_sample(judged, EVALUATORS, 30, level="response", seed=seed)
        made = estimate_rates(
            claims,
            verdicts,
            annotations=annotated(claims, sample.rows["claim_id"]),
            sample=sample,
            methods=["hierarchical", "labels"],
            levels=["claim"],
        ).table()
        found.append(made.assign(truth=made["system"].map(truth)))
    rows = pd.concat(found)
    for method, part in rows.groupby("method"):
        assert abs((part["rate"] - part["truth"]).mean()) < 0.03, method
        assert (
            (part["rate_low"] <= part["truth"]) & (part["truth"] <= part["rate_high"])
        ).mean() > 0.85, method


# ---- what is refused


@pytest.fixture
def work(tmp_path: Path) -> tuple[Path, pd.DataFrame, pd.DataFrame, LabelSample]:
    claims, verdicts, sample = drawn(60)
    path = tmp_path / "sample.parquet"
    sample.write(path)
    return path, claims, verdicts, sample


def test_labels_drawn_otherwise_are_refused(
    work,
):
    path, claims, verdicts, sample = work
    ids = pd.concat(
        [
            sample.rows["claim_id"],
            claims["claim_id"][~claims["claim_id"].isin(sample.rows["claim_id"])][:2],
        ]
    )
    with pytest.raises(InputError, match="2 of 62 labels are of claims that were not drawn"):
        estimate_rates(
            claims, verdicts, annotations=annotated(claims, ids), sample=read_sample(path)
        )
    # A claim that people left undecided was judged, too; a row without anything in it was not.
    other = annotated(claims, ids[-2:]).assign(label=None)
    for note, refused in (("?", True), (None, False)):
        said = validate_annotations(
            pd.concat([annotated(claims, ids[:-2]), other.assign(note=note)])
        )
        judged = join_claims(claims, verdicts, said)
        with pytest.raises(InputError, match="2 of 62 labels") if refused else nullcontext():
            sample.check_matches(judged, said)
    some = annotated(claims, sample.rows["claim_id"][:50])
    made = estimate_rates(
        claims, verdicts, annotations=some, sample=read_sample(path), levels=["claim"]
    )
    assert made.summary[0]["n_labels"] == 50


def test_a_sample_edited_by_hand_is_refused(
    work,
):
    path, _, _, _ = work
    table = pq.read_table(path)
    frame = table.to_pandas()
    frame.loc[0, "probability"] = 0.5
    edited = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(
        table.schema.metadata
    )
    pq.write_table(edited, path)
    with pytest.raises(InputError, match="changed after they were drawn"):
        read_sample(path)


def test_another_table_than_the_one_drawn_from_is_refused(
    work,
):
    path, claims, verdicts, sample = work
    fewer = claims.iloc[:-5].reset_index(drop=True)
    labels = annotated(claims, sample.rows["claim_id"])
    labels = labels[labels["claim_id"].isin(fewer["claim_id"])]
    with pytest.raises(InputError, match="drawn from another claims table"):
        estimate_rates(fewer, verdicts, annotations=labels, sample=read_sample(path))
