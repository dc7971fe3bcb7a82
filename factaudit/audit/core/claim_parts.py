"""How is a part of the claims audited alone? As judgements of these claims."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from factaudit.arrays.judgements import Judgements


def select_claims(judgements: Judgements, rows: np.ndarray) -> Judgements:
    """The judgements of the claims in these rows (of one several times, where its row stands there
    so often), without annotations, variants and responses without claims."""
    by_evaluator = {
        name: getattr(judgements, name)[:, rows] for name in ("prediction", "score", "status")
    }
    repeats = judgements.repeat_predictions
    return replace(
        judgements,
        claims=judgements.claims.iloc[rows].reset_index(drop=True),
        label=judgements.label[rows],
        **by_evaluator,
        repeat_predictions=None if repeats is None else repeats[:, :, rows],
        grade=None if judgements.grade is None else judgements.grade[:, rows],
        annotations=None,
        variants=None,
        empty_responses=judgements.empty_responses.iloc[:0],
    )
