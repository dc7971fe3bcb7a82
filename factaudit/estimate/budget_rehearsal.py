"""Rehearsal of a label budget on claims that are labelled already: only the labels of a drawn sample are read."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from factaudit.arrays.judgements import Judgements
from factaudit.errors import UsageError
from factaudit.estimate.label_sample import LabelSample, draw_label_sample, draw_next_sample_phase
from factaudit.estimate.rate_estimation import choose_estimation_covariates, join_claims_for_estimation
from factaudit.tables.annotations import validate_annotations


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
    annotations = _look_up_rehearsed_labels(claims, sample)
    if any(sample.plan.count_remaining_labels(name) for name in sample.plan.shares):
        sample = draw_next_sample_phase(sample, join_claims_for_estimation(hidden, verdicts, annotations), seed=seed)
        annotations = _look_up_rehearsed_labels(claims, sample)
    return annotations, sample


def _look_up_rehearsed_labels(claims: pd.DataFrame, sample: LabelSample) -> pd.DataFrame:
    ids = sample.rows["claim_id"]
    label = claims.set_index("claim_id")["label"].reindex(ids)
    if label.isna().any():
        raise UsageError(
            f"a budget is drawn from labelled claims only: {label.isna().sum()} of those drawn have no label"
        )
    return validate_annotations(
        pd.DataFrame({"claim_id": ids.to_numpy(), "annotator": "claims table", "label": label.to_numpy()})
    )
