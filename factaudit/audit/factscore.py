"""What share of a response's atomic facts is supported? FActScore (Min et al. 2023, §3; penalty: its code)"""

from __future__ import annotations

import numpy as np

from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_facts import (
    ResponseFacts,
    ResponseFactScores,
    collect_response_facts,
    has_response_facts,
    score_response_facts,
)
from factaudit.arrays.response_means import (
    DEFAULT_GAMMA,
    explain_missing_mean_intervals,
    mean_of_defined,
    response_mean_with_interval,
)
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.interval_methods import RESPONSE_MEAN
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.undefined_values import divide_or_undefined, none_if_undefined


def compute_factscore_audit(
    judgements: Judgements,
    *,
    gamma: float = DEFAULT_GAMMA,
    k: int | None = None,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """FActScore of each system: a row per evaluator, dataset and system; first ``__all__`` where there are several.

    A fact is a claim with a ``response_id`` (rows of one ``fact_id`` are one fact, supported where one of them is). The
    score of a response is penalty × supported / facts, penalty = exp(1 - γ/n) where n < γ = ``gamma``, else 1; a fact
    without a verdict counts as not supported, so that no failure raises a score. The row: ``score`` and ``init_score``
    (without the penalty), unweighted means over the n_scored responses that answered and of which at least one fact
    was put to the evaluator; ``_min`` and ``_max`` let what is unscored (or guessed) be all unsupported or all
    supported, and a response of which nothing was asked score 0 or 1 (n_unscored_responses); intervals resample
    responses. ``f1``: F1@K, with ``k`` facts wanted of a response (None: the median of the data set's responses, the
    upper of two, as VeriScore has it). A sentence that was not decomposed (``n_failed_sentences``) is a fact without a
    verdict; it counts neither in that median nor in ``num_facts_per_response``. ``respond_ratio``: the share
    of responses that did not abstain and said at least one fact.
    """
    facts = collect_response_facts(judgements)
    n_decomposed = facts.count_facts_of_responses(facts.is_decomposed)
    rows = []
    for at, evaluator in enumerate(judgements.evaluators):
        scores = score_response_facts(facts, judgements, at, gamma)
        for key, inside in facts.responses_by_system():
            in_dataset = (facts.responses["dataset"] == key["dataset"]).to_numpy(dtype=bool)
            wanted = np.sort(n_decomposed[in_dataset & (n_decomposed > 0)])
            row: Row = {"dataset": key["dataset"], "evaluator": evaluator, "system": key["system"]}
            row["k"] = k if k is not None or not len(wanted) else int(wanted[len(wanted) // 2])
            rows.append(row | _build_factscore_audit_row(facts, scores, inside, row["k"], intervals))
    return rows


def compute_response_f1_at_k(supported_share: np.ndarray, n_facts: np.ndarray, k: int) -> np.ndarray:
    """F1@K of responses: the harmonic mean of the share of facts that are supported, and of how many of K facts that
    one wants are there and supported. float64 (R,), NaN where the share is. Source: Wei et al. 2024 (SAFE), §3.

    >>> compute_response_f1_at_k(np.array([0.5, 1.0, 0.0]), np.array([8, 2, 4]), 4).round(3).tolist()
    [0.667, 0.667, 0.0]
    """
    recall = np.minimum(supported_share * n_facts / k, 1)
    f1 = divide_or_undefined(2 * supported_share * recall, supported_share + recall)
    return np.where(supported_share == 0, 0.0, f1)


def _build_factscore_audit_row(
    facts: ResponseFacts,
    scores: ResponseFactScores,
    in_system: np.ndarray,
    k: int | None,
    intervals: ClusterBootstrap | None,
) -> Row:
    abstained = facts.responses["abstained"].to_numpy(dtype=bool)
    spoke = in_system & (scores.n_facts > 0)
    scored = spoke & ~np.isnan(scores.figures["score"])
    n_spoke = int(spoke.sum())
    row: Row = {
        "n_responses": int(in_system.sum()),
        "n_abstained": int((in_system & abstained).sum()),
        "n_without_facts": int((in_system & ~abstained & ~spoke).sum()),
        "n_scored": int(scored.sum()),
        "n_unscored_responses": n_spoke - int(scored.sum()),
        "respond_ratio": none_if_undefined(divide_or_undefined(n_spoke, in_system.sum())),
    }
    for key in ("score", "init_score"):
        row |= response_mean_with_interval(key, scores.figures[key][scored].tolist(), intervals)
        for end in ("min", "max"):
            row[f"{key}_{end}"] = mean_of_defined(scores.figures[f"{key}_{end}"][spoke])
    f1 = {
        end: compute_response_f1_at_k(scores.figures[f"init_score{end}"], scores.n_facts, k or 1)
        for end in ("", "_min", "_max")
    }
    row |= response_mean_with_interval("f1", f1[""][scored].tolist(), intervals)
    row |= {f"f1{end}": mean_of_defined(f1[end][spoke]) for end in ("_min", "_max")}
    n_failed = facts.count_facts_of_responses(~facts.is_decomposed)
    whole = spoke & (n_failed == 0)
    row["num_facts_per_response"] = none_if_undefined(divide_or_undefined(scores.n_facts[whole].sum(), whole.sum()))
    row["n_failed_sentences"] = int(n_failed[in_system].sum())
    for name in ("n_facts", "n_supported", "n_unscored", "n_unparsed"):
        row[name] = int(getattr(scores, name)[spoke].sum())
    why = explain_missing_mean_intervals(row, ("score", "init_score", "f1"), intervals)
    row["reason"] = (why or None) if scored.any() else "no response has a scored fact"
    return row


_SCORE_DESCRIPTION = "means over responses; `init_` means without the length penalty"
_NOT_SCORED_DESCRIPTION = "responses that abstained, that contain no fact, or in which no fact was checked"
_FACTSCORE_COLUMNS: dict[str, Column] = {
    **pick_shared_columns("dataset", "evaluator", "system"),
    "n_responses": Column("all responses", "count", "responses, and how many of them are scored", shown=False),
    "n_scored": Column("responses", "count", "responses, and how many of them are scored"),
    "n_facts": Column("facts", "count", "facts, supported facts, and facts without a verdict"),
    "n_supported": Column("supported", "count", "facts, supported facts, and facts without a verdict", shown=False),
    "n_unscored": Column("unscored", "count", "facts, supported facts, and facts without a verdict", shown="any"),
    **pick_shared_columns("n_failed_sentences"),
    "n_unparsed": Column("unparsed", "count", "facts whose reply states no verdict", shown="any"),
    "n_abstained": Column("abstained", "count", _NOT_SCORED_DESCRIPTION, shown="any"),
    "n_without_facts": Column("without facts", "count", _NOT_SCORED_DESCRIPTION, shown="any"),
    "n_unscored_responses": Column("not asked", "count", _NOT_SCORED_DESCRIPTION, shown="any"),
    "score": Column("FActScore", "percent", _SCORE_DESCRIPTION, bounds=True, interval=RESPONSE_MEAN),
    "init_score": Column("without penalty", "percent", _SCORE_DESCRIPTION, bounds=True, interval=RESPONSE_MEAN),
    "k": Column("K", "count", "facts expected of a response: the median of the data set, unless given"),
    "f1": Column(
        "F1@K",
        "percent",
        (
            "mean over responses of the harmonic mean of precision (supported share of the facts) and recall (supported"
            " facts of K)"
        ),
        bounds=True,
        interval=RESPONSE_MEAN,
    ),
    "respond_ratio": Column("respond ratio", "percent", "share of all responses that state a fact"),
    "num_facts_per_response": Column(
        "facts per response",
        "number",
        "mean number of facts of the responses that state a fact and were decomposed",
        digits=1,
    ),
    **pick_shared_columns("reason"),
}

AUDIT = Audit(
    name="factscore",
    after="estimate_differences",
    title="FActScore of the systems",
    question="What share of a response's atomic facts does the knowledge source support?",
    source="Min et al. 2023, §3; F1@K: Wei et al. 2024; Song et al. 2024",
    text=(
        "The unweighted mean over responses, with and without the length penalty. Responses that abstain, and "
        "responses without a fact, count only in the respond ratio."
    ),
    formula=(
        "Penalty × supported facts / facts, averaged over responses. Penalty = exp(1 − γ/n) for responses with "
        "n < γ facts. F1@K = 2PR / (P + R), with P = supported facts / facts and R = min(supported facts / K, "
        "1). A fact without a verdict counts as not supported; the bounds allow either."
    ),
    remedy=(
        "A score means little if you do not know its verifier's errors: label some facts and read their `rates`."
        " If many replies cannot be read, ask with another prompt or model."
    ),
    columns=_FACTSCORE_COLUMNS,
    options={
        "gamma": "γ of the length penalty; 0 turns it off",
        "k": "the number of facts expected of a response, for F1@K; by default the median of the data set",
    },
    compute=compute_factscore_audit,
    applies=has_response_facts,
    plot=PlotSpec(what="FActScore of systems", keys=("score", "init_score"), groups=("system",)),
)
