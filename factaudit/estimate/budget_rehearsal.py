"""Rehearsal of a label budget on claims that are labelled already: only the labels of a drawn sample are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.result_rows import Row
from factaudit.errors import UsageError
from factaudit.estimate.comparison_draws import COMPARED_WAYS
from factaudit.estimate.estimation_case import RateEstimationOptions
from factaudit.estimate.estimation_methods import ESTIMATION_METHODS
from factaudit.estimate.label_budget_plan import simulate_compared_way, simulate_labelling_budget
from factaudit.estimate.label_sample import LabelSample, draw_label_sample, draw_next_sample_phase
from factaudit.estimate.rate_estimation import choose_estimation_covariates, join_claims_for_estimation
from factaudit.estimate.scored_corpus import ScoredCorpus, build_scored_corpora
from factaudit.stats.undefined_values import none_if_undefined
from factaudit.tables.annotations import validate_annotations

#: A budget is rehearsed with so many draws.
N_REHEARSALS = 10


def rehearse_label_budget(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    budget: int,
    *,
    main: str | None = None,
    covariates: Sequence[str] | None = None,
    seed: int = 0,
) -> tuple[pd.DataFrame, LabelSample]:
    """Draw a budget as `sample` would, in its phases, and take the labels of the drawn claims from the claims table.

    Returns annotations and the sample, for `estimate_rates`. Raises `UsageError` where a drawn claim has no label.
    """
    hidden = claims.assign(label=pd.Series(pd.NA, index=claims.index, dtype="Int8"))
    judgements = Judgements.join(hidden, verdicts)
    evaluators = choose_estimation_covariates(judgements, verdicts, main, covariates)
    sample = draw_label_sample(judgements, evaluators, budget, seed=seed)
    annotations = _find_labels_of_sampled_claims(claims, sample)
    if any(sample.plan.count_remaining_labels(name) for name in sample.plan.shares):
        sample = draw_next_sample_phase(sample, join_claims_for_estimation(hidden, verdicts, annotations), seed=seed)
        annotations = _find_labels_of_sampled_claims(claims, sample)
    return annotations, sample


def _find_labels_of_sampled_claims(claims: pd.DataFrame, sample: LabelSample) -> pd.DataFrame:
    ids = sample.rows["claim_id"]
    label = claims.set_index("claim_id")["label"].reindex(ids)
    if label.isna().any():
        raise UsageError(
            f"a budget is drawn from labelled claims only: {label.isna().sum()} of those drawn have no label"
        )
    return validate_annotations(
        pd.DataFrame({"claim_id": ids.to_numpy(), "annotator": "claims table", "label": label.to_numpy()})
    )


def rehearse_sampling_designs_by_dataset(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    budget: int,
    *,
    main: str | None = None,
    covariates: Sequence[str] | None = None,
    seed: int = 0,
    confidence: float = 0.95,
) -> list[Row]:
    """`rehearse_sampling_designs` of each dataset whose claims are all labelled; the budget is of each."""
    judgements = Judgements.join(claims, verdicts)
    evaluators = choose_estimation_covariates(judgements, verdicts, main, covariates)
    options = RateEstimationOptions(seed=seed, confidence=confidence)
    return [
        row
        for corpus in build_scored_corpora(judgements, "claim", evaluators)
        if corpus.is_labelled.all() and 2 * len(corpus.systems) <= budget < len(corpus.error)
        for row in rehearse_sampling_designs(corpus, budget, options)
    ]


def rehearse_sampling_designs(
    world: ScoredCorpus, budget: int, options: RateEstimationOptions, n_draws: int = N_REHEARSALS
) -> list[Row]:
    """What a budget buys on a corpus whose labels are all known, by this sample and by other ways: a row per way.

    bias: mean |rate − true rate| over systems and draws; width: mean width of the intervals; held: the share of them
    that hold the true rate; null where a way gives none.
    """
    truth = np.bincount(world.system, world.error, len(world.systems)) / np.maximum(world.system_sizes, 1)
    found: dict[str, list[tuple[float, float, float]]] = {}
    for number in range(n_draws):
        own = replace(options, seed=options.seed + number)
        sample = simulate_labelling_budget(world, budget, own)
        cases = {f"sample, {method}": (sample, method) for method in ("hierarchical", "regression-ppi", "labels")}
        cases |= {way: (simulate_compared_way(way, world, budget, own), to[1]) for way, to in COMPARED_WAYS.items()}
        for way, (case, method) in cases.items():
            for one, true in zip(ESTIMATION_METHODS[method](case), truth, strict=True):
                held = np.nan if np.isnan(one.low) else float(one.low - 1e-9 <= true <= one.high + 1e-9)
                found.setdefault(way, []).append((abs(one.rate - true), one.high - one.low, held))
    rows = []
    for way, figures in found.items():
        row: Row = {"dataset": world.dataset, "level": world.level, "way": way, "n_labels": budget, "n_draws": n_draws}
        for key, values in zip(("bias", "width", "held"), np.transpose(figures), strict=True):
            known = values[~np.isnan(values)]
            row[key] = none_if_undefined(float(known.mean())) if len(known) else None
        rows.append(
            row | {"reason": None if row["width"] is not None else "fewer than 10 labels a system: no interval"}
        )
    return rows
