"""Labels that are unsure: `?` and disagreement travel from the label file to the rates, and no claim vanishes."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pandas as pd
import pytest
from estimate_data import World, annotated, tables, without_labels

from factaudit.audit import load_all_audits
from factaudit.audit.estimate_remarks import list_estimation_remarks
from factaudit.estimate.rate_estimation import EstimationResults, estimate_rates
from factaudit.stats.posterior_comparison import (
    compact_letter_display,
    lowest_rate_interval,
    select_directed_pairs,
    selected_rate_interval,
    wrong_direction_probabilities,
)
from factaudit.tables.annotations import (
    find_undecided_claims,
    label_claims_by_annotations,
    list_annotator_judgements,
    validate_annotations,
)


def read_labels(text: str) -> pd.DataFrame:
    return validate_annotations(pd.read_csv(io.StringIO(text)))


def undecided_of(annotations: pd.DataFrame, rule: str = "majority", grades: dict | None = None) -> dict[str, str]:
    labels = label_claims_by_annotations(rule, list_annotator_judgements(annotations, grades))
    return find_undecided_claims(rule, annotations, labels).to_dict()


def test_a_question_mark_is_a_label_and_an_empty_row_is_none() -> None:
    annotations = read_labels(
        "claim_id,label,note,seconds\na,?,,\nb,?,unclear claim,\nc,,,\nd,,partly,\ne,,,3.5\nf,1,,\n"
    )
    assert annotations["label"].tolist() == [pd.NA, pd.NA, pd.NA, pd.NA, pd.NA, 1]
    assert undecided_of(annotations) == {"a": "?", "b": "unclear claim", "d": "partly", "e": "?"}
    again = validate_annotations(annotations)
    assert undecided_of(again) == undecided_of(annotations)


def test_annotators_who_split_evenly_are_undecided_and_a_majority_is_not() -> None:
    annotations = read_labels(
        "claim_id,annotator,label\na,x,1\na,y,0\nb,x,1\nb,y,?\nc,x,?\nc,y,?\nd,x,1\nd,y,0\nd,z,0\ne,y,1\n"
    )
    assert undecided_of(annotations) == {"a": "annotators disagree", "c": "?"}
    assert undecided_of(annotations, "x") == {"c": "?"}
    assert undecided_of(annotations, "any_unattributable") == {"c": "?"}


def test_a_grade_that_means_no_label_is_the_reason() -> None:
    annotations = read_labels("claim_id,grade\na,partly\nb,yes\n")
    assert undecided_of(annotations, grades={"partly": None, "yes": 1}) == {"a": "partly"}


def case(share_of_errors: float, share_of_others: float, seed: int = 3) -> tuple[EstimationResults, EstimationResults]:
    """Estimates from 200 labels of which so many are `?`, which errors are more likely to be: kept, and left out."""
    claims, verdicts = tables(World(), seed)
    ids = claims["claim_id"].sample(200, random_state=seed)
    annotations = annotated(claims, ids)
    is_error = annotations["label"].to_numpy(dtype=float) == 0
    is_open = np.random.default_rng(seed).random(200) < np.where(is_error, share_of_errors, share_of_others)
    annotations["label"] = annotations["label"].astype(object).mask(is_open, "?")
    annotations = annotations.assign(note=pd.Series(pd.NA, index=annotations.index).mask(is_open, "unclear"))
    read = validate_annotations(annotations)
    kept, left = (
        estimate_rates(without_labels(claims), verdicts, annotations=read, levels=["claim"], undecided=choice)
        for choice in ("keep", "leave-out")
    )
    return kept, left


def hierarchical_rates(found: EstimationResults) -> pd.DataFrame:
    return found.table().query("method == 'hierarchical'").set_index("system")


def test_undecided_claims_stay_in_the_rates() -> None:
    kept, left = case(0.45, 0.05)
    table = kept.table()
    assert (table["rate_min"] <= table["rate"] + 1e-12).all()
    assert (table["rate"] <= table["rate_max"] + 1e-12).all()
    mine, without = hierarchical_rates(kept), hierarchical_rates(left)
    assert mine["n_undecided"].sum() == without["n_undecided"].sum() == kept.summary[0]["n_undecided"] > 20
    assert (mine["rate_high"] - mine["rate_low"]).mean() > (without["rate_high"] - without["rate_low"]).mean()
    assert (mine["rate_max"] - mine["rate_min"]).min() > 0.02
    assert (without["rate_max"] == without["rate"]).all()
    truth = 1 - tables(World(), 3)[0].groupby("system")["label"].mean()
    held = (mine["rate_low"] <= truth) & (truth <= mine["rate_high"])
    assert held.all()
    for method in ("labels", "regression-ppi"):
        rows = table[(table["method"] == method) & (table["n_undecided"] > 0)].dropna(subset="rate_low")
        assert (rows["rate_low"] <= rows["rate_min"]).all()
        assert (rows["rate_max"] <= rows["rate_high"]).all()
        assert (rows["rate_min"] < rows["rate_max"]).all()


def test_many_undecided_claims_are_flagged_with_what_they_do() -> None:
    kept, left = case(0.45, 0.05)
    n = kept.summary[0]["n_undecided"]
    worst = hierarchical_rates(kept).assign(span=lambda t: t["rate_max"] - t["rate_min"])["span"].idxmax()
    row = hierarchical_rates(kept).loc[worst]
    reason = kept.summary[0]["reason"]
    assert f"people could not decide {n} of 200 claims that they looked at (unclear {n})" in reason
    assert (
        f"of {worst}: its rate is {100 * row['rate_min']:.1f} % if no claim that people cannot decide is an error"
        in reason
    )
    assert f"{100 * row['rate_max']:.1f} % if each is" in reason
    assert "rates count such claims as no errors, as errors, or as the model says, each with a third" in reason
    assert f"{100 * hierarchical_rates(left).loc[worst, 'rate']:.1f} % by a model of the labels without them" in reason
    assert (
        f"people could not decide {n} of 200 claims that they looked at (unclear {n}), left out"
        in left.summary[0]["reason"]
    )
    assert "a third of the probability" not in left.summary[0]["reason"]
    remarks = [list_estimation_remarks(made.summary, [])[0] for made in (kept, left)]
    assert ["without what people cannot decide" in text for text in remarks] == [False, True]
    assert ["the table's ratios are of decided claims" in text for text in remarks] == [True, False]
    notes = [load_all_audits()["estimates"].readable(made.rates)[1] for made in (kept, left)]
    assert ["each with a third of the probability" in note for note in notes] == [True, False]


def test_few_undecided_claims_are_kept_and_not_flagged() -> None:
    kept, _ = case(0.03, 0.02)
    assert 0 < kept.summary[0]["n_undecided"] <= 10
    assert "its rate is" not in kept.summary[0]["reason"]
    assert (
        "rates count such claims as no errors, as errors, or as the model says, each with a third"
        in kept.summary[0]["reason"]
    )
    none, _ = case(0.0, 0.0)
    assert "could not decide" not in (none.summary[0]["reason"] or "")
    rows = none.table()
    assert (rows["rate_min"] == rows["rate"]).all()
    assert (rows["n_undecided"] == 0).all()


def test_a_response_is_unattributable_where_one_claim_is_whatever_is_undecided() -> None:
    claims, verdicts = tables(World(size=80), 1)
    claims["response_id"] = [f"r{at // 4}" for at in range(len(claims))]
    annotations = annotated(claims, claims["claim_id"])
    annotations["label"] = annotations["label"].astype(object)
    labels = claims["label"].to_numpy(dtype=int).reshape(-1, 4)
    with_error, without = (np.flatnonzero(labels.all(1) == whole)[:3] for whole in (False, True))
    for response in with_error:  # an attributable claim of it is undecided: the response stays unattributable
        if labels[response].any():
            annotations.loc[4 * response + int(labels[response].argmax()), "label"] = "?"
    for response in without:
        annotations.loc[4 * response, "label"] = "?"
    found = estimate_rates(
        without_labels(claims), verdicts, annotations=validate_annotations(annotations), levels=["response"]
    )
    rows = hierarchical_rates(found)
    assert rows["n_undecided"].sum() == 3
    assert rows["n_labels"].sum() == len(labels) - 3
    least, most = ((1 - labels.all(1)).sum() + extra for extra in (0, 3))
    assert (rows["rate_min"] * rows["n"]).sum() == pytest.approx(least, abs=1e-3)
    assert (rows["rate_max"] * rows["n"]).sum() == pytest.approx(most, abs=1e-3)


def by_two_annotators(accuracy: float, n_overlap: int) -> EstimationResults:
    claims, verdicts = tables(World(), 5)
    ids = claims["claim_id"].sample(240, random_state=5).reset_index(drop=True)
    random = np.random.default_rng(5)
    parts = []
    for name, mine in (("x", ids), ("y", ids[:n_overlap])):
        part = annotated(claims, mine, name)
        flip = random.random(len(part)) > accuracy
        part["label"] = np.where(flip, 1 - part["label"], part["label"])
        parts.append(part)
    annotations = validate_annotations(pd.concat(parts, ignore_index=True))
    return estimate_rates(without_labels(claims), verdicts, annotations=annotations, levels=["claim"])


def test_disagreement_is_carried_into_the_interval_and_said() -> None:
    found = by_two_annotators(0.88, 120)
    summary = found.summary[0]
    assert summary["n_overlap"] == 120
    assert summary["n_disputed"] > 10
    assert summary["width"] > summary["width_majority"]
    assert f"annotators disagree on {summary['n_disputed']} of 120 claims" in summary["reason"]
    assert f"{summary['width'] / summary['width_majority']:.2f} times as wide" in summary["reason"]
    # Two annotators who disagree split evenly: such claims have no label, and nobody left them undecided.
    assert summary["n_split"] == summary["n_disputed"] == summary["n_undecided"]
    assert "could not decide" not in summary["reason"]
    few = by_two_annotators(0.88, 15).summary[0]
    assert few["width_majority"] is None
    assert few["n_split"] == 0
    assert "too few to estimate their errors from" in few["reason"]


# -------------------------------------------------------------------------------------------------- many systems


@pytest.mark.parametrize("seed", range(20))
def test_systems_share_a_letter_where_they_are_not_told_apart(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 9))
    pairs = [pair for pair in itertools.combinations(range(n), 2) if random.random() < random.choice([0.1, 0.5, 0.9])]
    groups = compact_letter_display(n, pairs)
    for a, b in itertools.combinations(range(n), 2):
        assert bool(set(groups[a]) & set(groups[b])) == ((a, b) not in pairs)


def test_pairs_are_called_while_the_expected_share_of_wrong_ones_allows() -> None:
    p = np.array([0.0, 0.02, 0.02, 0.02, 0.4])
    assert select_directed_pairs(p, 0.05, 0.025).tolist() == [True, True, True, True, False]
    assert select_directed_pairs(p, 0.05, 0.015).tolist() == [True, False, False, False, False]
    # Of many pairs that are all but equal a few look sure by chance.
    assert not select_directed_pairs(np.array([0.003] + [0.3] * 54), 0.05, 0.025).any()
    assert not len(select_directed_pairs(np.array([]), 0.05, 0.025))


def test_the_lowest_rate_is_no_wider_than_the_lowest_upper_limit() -> None:
    draws = np.random.default_rng(0).beta(3, 9, (1000, 20))
    mean, low, high = lowest_rate_interval(draws, 0.95)
    assert low <= mean <= high <= np.quantile(draws, 0.975, axis=0).min()
    best = int(draws.mean(0).argmin())
    mean, best_low, best_high = selected_rate_interval(draws, best, 0.95)
    # Luck made it look best: its interval reaches farther up than its own, and as far down as the lowest rate's.
    assert best_low == low <= mean <= np.quantile(draws[:, best], 0.975) < best_high


def test_no_direction_is_surer_than_the_normal_tail_of_its_draws() -> None:
    """1,000 draws without one of the other sign: 0 of them is no probability of 0."""
    draws = np.random.default_rng(0).normal(0, 1, (1000, 3)) + np.array([4.0, -4.0, 0.0])
    draws[:, 2] = 0
    assert wrong_direction_probabilities(draws) == pytest.approx([3.2e-5, 3.2e-5, 0.5], rel=1)
