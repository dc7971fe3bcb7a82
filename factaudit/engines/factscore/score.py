"""FActScore from verdicts: per response, per system, with intervals (Min et al. 2023, §3; penalty: its code)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from factaudit.errors import UsageError

#: Responses of fewer facts than this are penalised.
GAMMA = 10.0
Row = dict[str, Any]


def penalty(n_facts: int, gamma: float = GAMMA) -> float:
    """exp(1 − γ/n) where n < γ, else 1; 0 at n = 0 (its limit), 1 everywhere where γ is 0."""
    if gamma < 0:
        raise UsageError(f"gamma is at least 0, found {gamma:g}")
    if n_facts >= gamma:
        return 1.0
    return math.exp(1 - gamma / n_facts) if n_facts else 0.0


def response_score(predictions: Sequence[int | None], gamma: float = GAMMA) -> Row:
    """The figures of one response that did not abstain, from its facts' predictions (None: unscored).

    Returns score, init_score (without the penalty), their ``_min`` and ``_max`` (all unscored facts unsupported, all
    supported), n_facts, n_supported, n_unscored, and a reason where the scores are None. The penalty is of n_facts.
    """
    n = len(predictions)
    supported = sum(prediction == 1 for prediction in predictions)
    unscored = sum(prediction is None for prediction in predictions)
    shares: dict[str, float | None] = {"init_score": None, "init_score_min": None, "init_score_max": None}
    if n:
        shares["init_score"] = supported / (n - unscored) if n > unscored else None
        shares["init_score_min"] = supported / n
        shares["init_score_max"] = (supported + unscored) / n
    factor = penalty(n, gamma)
    scores = {key.removeprefix("init_"): None if share is None else factor * share for key, share in shares.items()}
    reason = "no fact" if not n else "no fact has a verdict" if n == unscored else None
    return {
        **scores,
        **shares,
        "n_facts": n,
        "n_supported": supported,
        "n_unscored": unscored,
        "reason": reason,
    }


def summarise(
    responses: Sequence[Mapping[str, Any]],
    *,
    replicates: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Row:
    """FActScore over responses: the unweighted mean over those that have a score (a flat row).

    Each response is a mapping with the keys of `response_score` and ``abstained``. ``respond_ratio`` is the share of
    responses that did not abstain and said at least one fact, as the original counts; a response whose facts could
    not be had because calls failed (``n_failed_sentences``) did respond. Bounds (``score_min``, ``score_max``) let the
    unscored facts be all unsupported or all supported, and a response without any verdict score 0 or 1.
    Intervals are percentiles of a bootstrap over responses; there are none from fewer than two.
    """
    answered = [r for r in responses if not r["abstained"]]
    scored = [r for r in answered if r["score"] is not None]
    # Spoke, but calls failed: unscored, and within the bounds. Said nothing: the respond ratio tells.
    failed = [r for r in answered if r["score"] is None and (r["n_facts"] or r.get("n_failed_sentences"))]
    row: Row = {
        "n_responses": len(responses),
        "n_abstained": len(responses) - len(answered),
        "n_without_facts": len(answered) - len(scored) - len(failed),
        "n_scored": len(scored),
        "n_unscored_responses": len(failed),
        "respond_ratio": _ratio(len(scored) + len(failed), len(responses)),
    }
    for key in ("score", "init_score"):
        values = np.array([r[key] for r in scored], dtype=np.float64)
        row[key] = float(values.mean()) if len(values) else None
        for end, missing in (("min", 0.0), ("max", 1.0)):
            ends = [r[f"{key}_{end}"] for r in scored] + [_or(r[f"{key}_{end}"], missing) for r in failed]
            row[f"{key}_{end}"] = float(np.mean(ends)) if ends else None
        row[f"{key}_low"], row[f"{key}_high"] = bootstrap_mean(values, replicates, seed, confidence)
    n_facts = sum(r["n_facts"] for r in answered)
    spoke = [r["n_facts"] for r in answered if r["n_facts"]]
    row["num_facts_per_response"] = _ratio(sum(spoke), len(spoke))
    row["n_facts"] = n_facts
    row["n_supported"] = sum(r["n_supported"] for r in answered)
    row["n_unscored"] = sum(r["n_unscored"] for r in answered)
    row["reason"] = None if scored else "no response has a scored fact"
    return row


def by_system(
    responses: Sequence[Mapping[str, Any]], *, replicates: int = 2000, seed: int = 0, confidence: float = 0.95
) -> list[Row]:
    """`summarise` for each system, in order of first appearance."""
    systems = list(dict.fromkeys(r["system"] for r in responses))
    return [
        {"system": system}
        | summarise(
            [r for r in responses if r["system"] == system], replicates=replicates, seed=seed, confidence=confidence
        )
        for system in systems
    ]


def bootstrap_mean(
    values: np.ndarray, replicates: int = 2000, seed: int = 0, confidence: float = 0.95
) -> tuple[float | None, float | None]:
    """A percentile interval of the mean, resampling the values; (None, None) from fewer than two or 0 replicates."""
    if len(values) < 2 or not replicates:
        return None, None
    draws = np.random.default_rng(seed).integers(0, len(values), (replicates, len(values)))
    low, high = np.quantile(values[draws].mean(axis=1), [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _or(value: float | None, default: float) -> float:
    return default if value is None else value
