"""What a budget of labels would have bought: labelled claims, of which only a sample's labels are looked at."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from factaudit.audit.core.judged import Judged
from factaudit.errors import UsageError
from factaudit.estimate.run import chosen_evaluators, labelled
from factaudit.estimate.sample import Sample, draw_again, draw_sample
from factaudit.tables.annotations import validate_annotations


def rehearse(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    budget: int,
    *,
    main: str | None = None,
    covariates: Sequence[str] | None = None,
    level: str = "claim",
    seed: int = 0,
) -> tuple[pd.DataFrame, Sample]:
    """Draw a budget as `sample` would, in its phases, and take the labels of the drawn claims from the claims table.

    Returns annotations and the sample, for `estimate_rates`. Raises `UsageError` where a drawn claim has no label.
    """
    hidden = claims.assign(label=pd.Series(pd.NA, index=claims.index, dtype="Int8"))
    judged = Judged.join(hidden, verdicts)
    evaluators = chosen_evaluators(judged, verdicts, main, covariates)
    sample = draw_sample(judged, evaluators, budget, level=level, seed=seed)
    annotations = _looked_up(claims, sample)
    if any(sample.plan.remaining(name) for name in sample.plan.shares):
        sample = draw_again(sample, labelled(hidden, verdicts, annotations), seed=seed)
        annotations = _looked_up(claims, sample)
    return annotations, sample


def _looked_up(claims: pd.DataFrame, sample: Sample) -> pd.DataFrame:
    ids = sample.rows["claim_id"]
    label = claims.set_index("claim_id")["label"].reindex(ids)
    if label.isna().any():
        raise UsageError(
            f"a budget is drawn from labelled claims only: {label.isna().sum()} of those drawn have no label"
        )
    return validate_annotations(
        pd.DataFrame({"claim_id": ids.to_numpy(), "annotator": "claims table", "label": label.to_numpy()})
    )
