"""Intervals for every look: bets gain nothing on the truth, by enumeration; phases, undecided claims, the command."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import Call
from estimate_data import World, annotated, tables, without_labels

from factaudit.arrays.judgements import Judgements
from factaudit.audit import load_all_audits
from factaudit.errors import UsageError
from factaudit.estimate.estimation_case import RateEstimationCase
from factaudit.estimate.label_sample import draw_label_sample, draw_next_sample_phase
from factaudit.estimate.label_sequence import LabelSequence
from factaudit.estimate.rate_estimation import join_claims_for_estimation
from factaudit.estimate.scored_corpus import build_scored_corpora
from factaudit.estimate.sequential_estimation import build_label_look_rows, estimate_rates_at_every_look
from factaudit.stats.confidence_sequences import LabelLookBlock, log_betting_capital, log_directional_capital
from factaudit.stats.stratified_sampling import StratifiedDraw
from factaudit.tables import write_table

# ---------------------------------------------------------------------------------------- what the bets may not gain


def draws_of(strata: list[list[int]], sizes: list[int]) -> list[list[int]]:
    return [
        [row for part in parts for row in part]
        for parts in product(*(combinations(stratum, n) for stratum, n in zip(strata, sizes, strict=True)))
    ]


def block_of(
    y: np.ndarray, f: np.ndarray, u: np.ndarray, rows: list[int], strata: list[list[int]], sizes: list[int]
) -> LabelLookBlock:
    """One draw of the claims of ``strata``; all others were labelled before."""
    left = [row for stratum in strata for row in stratum]
    share = {row: n / len(stratum) for stratum, n in zip(strata, sizes, strict=True) for row in stratum}
    before = np.setdiff1d(np.arange(len(y)), left)
    return LabelLookBlock(
        label=y[rows],
        predictions=f[:, rows],
        prediction_low=np.full((len(f), len(rows)), f.min()),
        prediction_high=np.full((len(f), len(rows)), f.max()),
        coefficient=u[rows],
        probability=np.array([share[row] for row in rows]),
        predicted_rest=f[:, left] @ u[left],
        known=float(u[before] @ y[before]),
        variance=0.2,
    )


@pytest.mark.parametrize("seed", range(6))
def test_no_bet_gains_on_the_truth_over_all_draws(seed: int) -> None:
    """Two phases, the second of which is drawn by what the first one found: the mean capital is at most 1."""
    random = np.random.default_rng(seed)
    y = (random.random(8) < (0.3, 0.7, 0.2)[seed % 3]).astype(float)
    f = np.stack([np.zeros(8), random.uniform(0.01, 0.99, 8)])
    # A rate, and (odd seeds) a difference of the first four claims' rate and the others'.
    u = np.where(np.arange(8) < 4, 0.25, -0.25) if seed % 2 else np.full(8, 0.125)
    strata, sizes = [[0, 1, 2], [3, 4, 5, 6, 7]], [1, 2]
    truth = np.array([float(u @ y)])
    far = truth + (1.2 if seed % 2 else 0.5)
    capital, wrong, leads = [], [], []
    for first in draws_of(strata, sizes):
        one = block_of(y, f, u, first, strata, sizes)
        left = [[row for row in stratum if row not in first] for stratum in strata]
        # More labels to the stratum that had the errors, and other predictions.
        second = [2, 1] if y[first[0]] else [1, 2]
        g = np.clip(f + 0.1 * y[first].sum() - 0.1, 0, 1)
        after = []
        for rows in draws_of(left, second):
            blocks = [one, block_of(y, g, u, rows, left, second)]
            after.append([log_betting_capital(blocks, null)[-1, 0] for null in (truth, far)])
            leads.append([log_directional_capital(blocks, truth[0], above)[-1] for above in (True, False)])
        mean = np.exp(np.array(after)).mean(0)
        capital.append(mean[0])
        wrong.append(mean[1])
    assert np.mean(capital) <= 1 + 1e-12
    assert np.mean(wrong) > 1, "against another value they do gain"
    # Ville: the greatest capital of one direction reaches 1/α in at most a share α of the draws.
    for way in np.array(leads).T:
        for alpha in (0.5, 0.2, 0.05):
            assert np.mean(way >= -np.log(alpha)) <= alpha


# ------------------------------------------------------------------------------------------------ the phases of a draw


@pytest.fixture(scope="module")
def world() -> tuple[pd.DataFrame, pd.DataFrame]:
    return tables(World(), 3)


@pytest.fixture(scope="module")
def sequence(world: tuple[pd.DataFrame, pd.DataFrame]) -> LabelSequence:
    """Three phases, drawn by the sampling of the package."""
    claims, verdicts = world
    hidden = Judgements.join(without_labels(claims), verdicts)
    sample = draw_label_sample(hidden, ["e0", "e1"], 60, seed=1)
    for _ in range(2):
        judged = join_claims_for_estimation(claims, verdicts, annotated(claims, sample.rows["claim_id"]))
        sample = draw_next_sample_phase(sample, judged, 60, seed=1)
    judged = join_claims_for_estimation(claims, verdicts, annotated(claims, sample.rows["claim_id"]))
    (corpus,) = build_scored_corpora(judged, "claim", ["e0", "e1"])
    return LabelSequence(RateEstimationCase(corpus, sample.corpus_draw(corpus, judged)), 3)


def intervals(sequence: LabelSequence) -> Iterator[tuple[float, float]]:
    for row in build_label_look_rows(sequence, 0.1)["estimate_looks"]:
        yield row["rate_low"], row["rate_high"]


def test_intervals_only_shrink_and_a_claim_that_nobody_decided_may_be_either(sequence: LabelSequence) -> None:
    found = np.array(list(intervals(sequence))).reshape(3, 4, 2)
    assert (np.diff(found[..., 0], axis=0) >= 0).all()
    assert (np.diff(found[..., 1], axis=0) <= 0).all()
    assert (found[2, :, 1] - found[2, :, 0]).max() < 0.4

    case = sequence.case
    some = case.labelled_rows[::9]
    ends = []
    for value in (np.nan, 0.0, 1.0):
        error = case.corpus.error.copy()
        error[some] = value
        changed = replace(sequence, case=replace(case, corpus=replace(case.corpus, error=error)))
        assert changed.has_undecided == np.isnan(value)
        ends.append(np.array(list(intervals(changed))))
    # The model predicts from fewer labels, so that the ends are near those of either filling, not equal.
    assert (ends[0][-4:, 0] <= ends[1][-4:, 0] + 0.03).all()
    assert (ends[0][-4:, 1] >= ends[2][-4:, 1] - 0.03).all()
    assert (ends[0][-4:, 1] - ends[0][-4:, 0] > found[2, :, 1] - found[2, :, 0]).all()


def test_intervals_of_looks_are_said_to_hold_at_once_for_one_system_alone() -> None:
    """Each system's bets miss its rate in 5 % of samples: of several systems one interval misses more often."""
    (plot,) = load_all_audits()["estimate_looks"].plots
    assert plot.reading == "A system's intervals hold at all looks at once; they never grow."


def test_a_part_is_as_its_phase_drew_it(sequence: LabelSequence) -> None:
    corpus, draw = sequence.case.corpus, sequence.case.draw
    seen = np.concatenate([part.at for part in sequence.parts])
    assert sorted(seen) == list(range(len(draw.rows)))
    for part in sequence.parts:
        rows = draw.rows[part.at]
        assert part.is_left[rows].all(), "no claim is labelled twice"
        # The labels of a part stand for all claims that are left.
        weight = np.bincount(corpus.system[rows], 1 / part.probability, len(corpus.systems))
        left = np.bincount(corpus.system[part.is_left], minlength=len(corpus.systems))
        assert np.abs(weight - left).max() < 1e-9


def test_what_a_later_label_says_changes_no_earlier_prediction(sequence: LabelSequence) -> None:
    case = sequence.case
    at = len(sequence.parts) // 2
    error = case.corpus.error.copy()
    later = np.concatenate([case.draw.rows[part.at] for part in sequence.parts[at:]])
    error[later] = 1 - error[later]
    turned = replace(sequence, case=replace(case, corpus=replace(case.corpus, error=error)))
    for before, after in zip(sequence.parts[: at + 1], turned.parts[: at + 1], strict=True):
        np.testing.assert_array_equal(before.predictions, after.predictions)


def test_a_phase_that_leaves_out_a_stratum_is_not_bet_on(sequence: LabelSequence) -> None:
    """No label of a stratum says nothing of it: the estimate would not be one of all claims."""
    case, draw = sequence.case, sequence.case.draw
    lacking = (draw.phase == 1) & (draw.stratum == draw.stratum[draw.phase == 1][0])
    part = StratifiedDraw(*(one[~lacking] for one in (draw.rows, draw.phase, draw.stratum, draw.frame_size)))
    system = case.corpus.system[draw.rows[lacking][0]]
    fewer = LabelSequence(replace(case, draw=part), 3)
    unit = np.eye(len(case.corpus.systems))
    phases = {phase for phase, _ in fewer.build_blocks(unit[system], unit[system])}
    assert 1 not in phases
    assert 0 in phases
    notes = build_label_look_rows(fewer, 0.1)["estimate_look_summary"][-1]["reason"]
    assert "without a label in each stratum" in notes


# ------------------------------------------------------------------------------------------------------- from tables


def test_a_phase_counts_when_all_of_it_is_judged(world: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    claims, verdicts = world
    hidden = without_labels(claims)
    sample = draw_label_sample(Judgements.join(hidden, verdicts), ["e0", "e1"], 60, seed=2)
    ids = sample.rows["claim_id"]
    people = annotated(claims, ids)

    def looks(annotations: pd.DataFrame) -> dict[str, list[dict[str, object]]]:
        return estimate_rates_at_every_look(hidden, verdicts, sample, annotations=annotations)

    (whole,) = looks(people)["estimate_look_summary"]
    assert whole["reason"] is None
    assert looks(people.iloc[:-1]) == {
        "estimate_look_summary": [],
        "estimate_looks": [],
        "estimate_look_differences": [],
    }
    undecided = people.assign(label=people["label"].where(people.index > 2).astype("Int8"))
    (row,) = looks(undecided)["estimate_look_summary"]
    assert row["n_labels"] == 57
    assert row["width_one_look"] > whole["width_one_look"], "the price is of like things: either may be an error"
    assert row["reason"] == "3 claims without a label: intervals hold whether they are errors or not"


def test_a_width_that_no_labels_give_is_null_with_its_reason(world: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    claims, verdicts = world
    hidden = without_labels(claims)
    sample = draw_label_sample(Judgements.join(hidden, verdicts), ["e0", "e1"], 12, seed=2)
    people = annotated(claims, sample.rows["claim_id"])
    (row,) = estimate_rates_at_every_look(hidden, verdicts, sample, annotations=people)["estimate_look_summary"]
    assert row["width_one_look"] is None
    assert re.search(r"no width at one look: .* no interval for \w+ and \d more system", row["reason"])


def test_documents_drawn_together_are_refused(world: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    claims, verdicts = world
    sample = draw_label_sample(
        Judgements.join(without_labels(claims), verdicts), ["e0", "e1"], 60, seed=2, same_documents=True
    )
    with pytest.raises(UsageError, match="without --same-documents"):
        estimate_rates_at_every_look(claims, verdicts, sample)


def test_the_command_tells_when_to_stop_and_warns_of_looks(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims, verdicts = tables(World(rates=(-2.0, 0.3)), 1)
    monkeypatch.chdir(tmp_path)
    write_table(without_labels(claims), tmp_path / "claims.parquet")
    write_table(verdicts, tmp_path / "verdicts.parquet")
    files = ("claims.parquet", "verdicts.parquet")

    def label(sample: str) -> None:
        rows = pd.read_parquet(tmp_path / sample)
        write_table(annotated(claims, rows["claim_id"]), tmp_path / "labels.jsonl")

    def estimate(sample: str, *more: str) -> str:
        code, out, err = call(
            "estimate",
            *files,
            "--labels",
            "labels.jsonl",
            "--sample",
            sample,
            "--out",
            "r",
            "--method",
            "labels",
            *more,
        )
        assert code == 0, err
        return out

    assert call("sample", *files, "--budget", "12", "--out", "s1.parquet")[0] == 0
    label("s1.parquet")
    first = estimate("s1.parquet", "--sequential")
    assert "1 look: intervals that hold at every look" in first
    assert "go on: the widest interval is" in first
    assert "at one look only" not in first
    assert "grew" not in estimate("s1.parquet")
    found = call(
        "sample", *files, "--then", "s1.parquet", "--labels", "labels.jsonl", "--more", "60", "--out", "s2.parquet"
    )
    assert found[0] == 0, found
    label("s2.parquet")
    told = estimate("s2.parquet")
    assert "the sample grew from 12 to 72 labels" in told
    assert "of simulated runs with eight looks, 23 % had a wrong interval of a rate" in told
    assert "--sequential gives intervals that hold at every look" in told
    last = estimate("s2.parquet", "--sequential")
    assert "stop: s00 is known to have the lowest rate" in last
    assert "grew" not in last
    assert "intervals that hold at every look; those above hold at one look only" in last
    rows = json.loads((tmp_path / "r/results.json").read_text())["audits"]
    assert [(row["look"], row["best"], row["stop"]) for row in rows["estimate_look_summary"]] == [
        (1, None, "no"),
        (2, "s00", "yes"),
    ]
    truth = claims.groupby("system")["label"].agg(lambda labels: 1 - labels.mean())
    for row in rows["estimate_looks"]:
        assert row["rate_low"] <= truth[row["system"]] <= row["rate_high"]
    code, _, err = call("estimate", *files, "--labels", "labels.jsonl", "--sequential", "--out", "r")
    assert code == 2
    assert "expected a sample" in err
