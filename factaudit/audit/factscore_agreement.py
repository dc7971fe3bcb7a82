"""How close do predicted FActScores come to those by people, and what do they find?

People's score of a response is supported / labelled facts: of the columns ``human_supported``, ``human_not_supported``
and ``human_irrelevant`` where the claims have them (numbers, the same in all rows of a response), else of the labels.
It knows no length penalty. (Min et al. 2023, §3 and §4.2)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np

from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_facts import (
    HUMAN_FACT_COUNTS,
    collect_response_facts,
    has_human_response_facts,
    score_response_facts,
)
from factaudit.arrays.response_means import (
    DEFAULT_GAMMA,
    explain_missing_mean_intervals,
    response_change_with_interval,
    response_mean_with_interval,
)
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.interval_methods import (
    RESPONSE_CHANGE,
    RESPONSE_INFLUENCE,
    RESPONSE_MEAN,
)
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.stats.agreement import correlation_interval, pearson, spearman
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.influence import MIN_CLUSTERS
from factaudit.stats.undefined_values import name_ends
from factaudit.text.display_text import join_reasons

IrrelevantFacts = Literal["exclude", "unsupported"]
#: The machine's figures that are compared with the human score.
COMPARED_SCORES = ("init_score", "score")
#: And the share of the facts that both have judged, with people's share of the same facts.
SAME_FACTS = "same_facts"


def compute_factscore_agreement(
    judgements: Judgements,
    *,
    irrelevant: IrrelevantFacts = "exclude",
    gamma: float = DEFAULT_GAMMA,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """Predicted against human scores, a row per evaluator, system (first ``__all__`` where there are several), figure.

    Over all responses: n_responses, human_respond_ratio (the share that people annotated), n_annotated and
    human_annotated (number and mean of the human scores). Over those that have both scores: n, n_missing (a human
    score, but none predicted), human and predicted means, bias (predicted - human), mae, rmse, pearson_r and spearman_r
    with p-values. ``init_score`` and ``score`` are of all facts, people's score of those that they labelled; the figure
    ``same_facts`` is of the facts that both have judged, on both sides. Intervals (``_low``, ``_high``) resample
    responses. A correlation of fewer than three, or of a constant, is None with a reason.
    """
    rows = []
    for key, human, annotated, predicted in _iterate_human_and_predicted_scores(judgements, irrelevant, gamma):
        known = ~np.isnan(human)
        labelled = not np.isnan(predicted[SAME_FACTS]).all()  # of some annotations only the scores are published
        for figure in (*COMPARED_SCORES, SAME_FACTS) if labelled else COMPARED_SCORES:
            pairs = _pair_human_with_predicted_scores(predicted.get(f"{figure}_human", human), predicted[figure])
            told: Row = {
                "figure": figure,
                "irrelevant": irrelevant,
                "n": len(pairs),
                "n_missing": int(known.sum()) - len(pairs),
                "n_annotated": int(known.sum()),
                "human_annotated": float(human[known].mean()) if known.any() else None,
                "n_responses": len(human),
                "human_respond_ratio": float(annotated.mean()),
            }
            rows.append(key | told | compute_factscore_agreement_errors(pairs, intervals))
    return rows


# -------------------------------------------------------------------------------------------------------- its parts


def _iterate_human_and_predicted_scores(
    judgements: Judgements, irrelevant: str, gamma: float
) -> Iterator[tuple[Row, np.ndarray, np.ndarray, Mapping[str, np.ndarray]]]:
    """Of each evaluator and system: people's scores, whether they annotated, and the predicted scores, by response."""
    facts = collect_response_facts(judgements)
    human, annotated = facts.human_scores(irrelevant), facts.responses[HUMAN_FACT_COUNTS[0]].notna().to_numpy()
    for at, evaluator in enumerate(judgements.evaluators):
        scores = score_response_facts(facts, judgements, at, gamma)
        for key, inside in facts.responses_by_system():
            compared = (*COMPARED_SCORES, SAME_FACTS, f"{SAME_FACTS}_human")
            predicted = {figure: scores.figures[figure][inside] for figure in compared}
            names = {"dataset": key["dataset"], "evaluator": evaluator, "system": key["system"]}
            yield names, human[inside], annotated[inside], predicted


def _pair_human_with_predicted_scores(human_scores: np.ndarray, predicted_scores: np.ndarray) -> np.ndarray:
    """(human, predicted) of the responses that have both: float64 (n, 2)."""
    both = np.column_stack([human_scores, predicted_scores])
    return both[~np.isnan(both).any(axis=1)]


def compute_factscore_agreement_errors(score_pairs: np.ndarray, intervals: ClusterBootstrap | None = None) -> Row:
    """How near predicted scores come to people's (see `compute_factscore_agreement`); pairs (human, predicted): float64
    (n, 2)."""
    from scipy import stats  # slow to import, here and below

    row: Row = dict.fromkeys(
        f"{key}{end}" for key in ("human", "predicted", "bias", "mae", "rmse") for end in ("", "_low", "_high")
    )
    for key in ("pearson", "spearman"):
        row |= dict.fromkeys((f"{key}_r", f"{key}_r_low", f"{key}_r_high", f"{key}_p"))
    n = len(score_pairs)
    if not n:
        return row | {"reason": "no response has both scores"}
    human, predicted = score_pairs.T
    error = predicted - human
    for key, values in (("human", human), ("predicted", predicted), ("mae", np.abs(error)), ("rmse", error**2)):
        row |= response_mean_with_interval(key, values.tolist(), intervals)
    row |= response_change_with_interval("bias", error.tolist(), intervals)
    row |= {key: None if row[key] is None else row[key] ** 0.5 for key in ("rmse", "rmse_low", "rmse_high")}
    varied = n >= 3 and bool(np.all(np.ptp(score_pairs, axis=0) > 0))
    why = explain_missing_mean_intervals(row, ("human", "predicted", "bias", "mae", "rmse"), intervals)
    if not varied:
        return row | {
            "reason": join_reasons(["correlations: fewer than three responses, or one score is constant", why])
        }
    row["pearson_p"] = float(stats.pearsonr(human, predicted).pvalue)
    row["spearman_p"] = float(stats.spearmanr(human, predicted).pvalue)
    for key, correlation in (("pearson_r", pearson(human, predicted)), ("spearman_r", spearman(human, predicted))):
        row[key] = correlation.point
        if intervals is not None:
            row |= name_ends(key, correlation_interval(correlation, np.arange(n), intervals.confidence))
    few = intervals is not None and n < MIN_CLUSTERS
    lacking = f"no interval of correlations: fewer than {MIN_CLUSTERS} responses" * few
    return row | {"reason": join_reasons([why, lacking])}


# ------------------------------------------------------------------------------------------------------ declaration


_KEY_COLUMNS: dict[str, Column] = {**pick_shared_columns("dataset", "evaluator", "system")}
_FIGURE_COLUMN = Column(
    "figure",
    "text",
    (
        "which predicted score: with or without the length penalty over all facts, or over the facts that people "
        "labelled"
    ),
    key=True,
    values={"init_score": "without penalty", "score": "with penalty", "same_facts": "on the same facts"},
)
_AGREEMENT_OPTIONS = {
    "irrelevant": "facts that annotators marked as irrelevant: `exclude` them, or count them as `unsupported`",
    "gamma": "γ of the length penalty; 0 turns it off",
}
_ANNOTATED_DESCRIPTION = (
    "all responses, responses with a human score, their mean score, and the share that people annotated"
)

AUDITS = (
    Audit(
        name="factscore_agreement",
        after="dfactscore_people",
        title="Predicted FActScore against people's",
        question="How close are predicted FActScores to human ones?",
        source="Min et al. 2023, §4.2",
        text="Only responses with both scores count. Human scores have no length penalty.",
        formula="Bias = predicted − human score. The p-values test for zero correlation.",
        remedy=(
            "If r is low or the bias is large, do not compare systems by this FActScore: use another verifier, "
            "or labels."
        ),
        columns=_KEY_COLUMNS
        | {
            "figure": _FIGURE_COLUMN,
            "irrelevant": Column(
                "irrelevant facts", "text", "how facts marked as irrelevant were treated", shown=False
            ),
            **pick_shared_columns("n"),
            "n_missing": Column("not predicted", "count", "human scores without a predicted one", shown="any"),
            "human": Column("people's", "percent", "mean scores", interval=RESPONSE_MEAN),
            "predicted": Column("predicted", "percent", "mean scores", interval=RESPONSE_MEAN),
            "bias": Column("bias", "points", "errors of the predicted scores", interval=RESPONSE_CHANGE),
            "mae": Column("MAE", "points", "errors of the predicted scores", interval=RESPONSE_MEAN, signed=False),
            "rmse": Column("RMSE", "points", "errors of the predicted scores", interval=RESPONSE_MEAN, signed=False),
            "pearson_r": Column("Pearson r", "number", "over responses", interval=RESPONSE_INFLUENCE, digits=3),
            "spearman_r": Column("Spearman ρ", "number", "over responses", interval=RESPONSE_INFLUENCE, digits=3),
            "pearson_p": Column("Pearson p", "p", "p-value of zero correlation", shown=False),
            "spearman_p": Column("Spearman p", "p", "p-value of zero correlation", shown=False),
            "n_responses": Column("responses", "count", _ANNOTATED_DESCRIPTION, shown=False),
            "n_annotated": Column("annotated", "count", _ANNOTATED_DESCRIPTION, shown=False),
            "human_annotated": Column("people's, all annotated", "percent", _ANNOTATED_DESCRIPTION, shown=False),
            "human_respond_ratio": Column("human respond ratio", "percent", _ANNOTATED_DESCRIPTION, shown=False),
            **pick_shared_columns("reason"),
        },
        options=_AGREEMENT_OPTIONS,
        compute=compute_factscore_agreement,
        applies=has_human_response_facts,
        plot=PlotSpec(
            what="Errors of predicted FActScores", keys=("bias", "mae"), groups=("system",), guides={"bias": 0.0}
        ),
    ),
)
