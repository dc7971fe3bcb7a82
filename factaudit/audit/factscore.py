"""What share of a response's atomic facts is supported, and how close is that to what people find?
FActScore.

Score of a response = penalty × supported / facts, with penalty = exp(1 − γ/n) if n < γ. The score
of a system is the mean over its responses (Min et al. 2023, §3; the penalty is from their code).
The score by people is supported / labelled facts. It comes from the columns ``human_supported``,
``human_not_supported`` and ``human_irrelevant`` if the claims have them (numbers, the same in all
rows of a response), else from the labels. It has no length penalty (§4.2).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_facts import (
    collect_response_facts,
    has_human_response_facts,
    has_response_facts,
    score_response_facts,
)
from factaudit.arrays.response_means import (
    DEFAULT_GAMMA,
    TOO_FEW_RESPONSES,
    average_changes,
    average_responses,
    mean_of_defined,
    split_by_system,
)
from factaudit.audit.core.audit_declaration import (
    Audit,
    Column,
    pick_shared_columns,
    share_column,
)
from factaudit.audit.core.interval_methods import (
    RESPONSE_CHANGE,
    RESPONSE_INFLUENCE,
    RESPONSE_MEAN,
)
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.tabulate import explain_row
from factaudit.stats.agreement import correlation_interval, pearson, spearman
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.influence import MIN_CLUSTERS
from factaudit.stats.undefined_values import name_ends, none_if_undefined


def compute_factscore_audit(
    judgements: Judgements,
    *,
    gamma: float = DEFAULT_GAMMA,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """FActScore of each system: a row per evaluator, dataset and system; ``__all__`` comes first if
    there are several systems.

    A fact is a claim with a ``response_id``. Rows with one ``fact_id`` are one fact, which is
    supported if one of them is. A fact without a verdict counts as not supported, so that no
    failure raises a score. ``score`` and ``init_score`` (without the penalty) are unweighted means
    over the n_scored responses that answered and of which at least one fact was put to the
    evaluator. For ``_min`` and ``_max``, everything unscored (or guessed) is unsupported or
    supported, and a response of which nothing was asked scores 0 or 1 (n_unscored_responses). A
    sentence that could not be decomposed (``n_failed_sentences``) is a fact without a verdict; its
    response does not count in ``num_facts_per_response``. ``respond_ratio``: the share of responses
    that did not abstain and contain at least one fact.
    """
    facts = collect_response_facts(judgements)
    responses = facts.responses[["abstained", "cluster"]].assign(
        n_failed_sentences=facts.count(~facts.is_decomposed)
    )
    rows = []
    for at, evaluator in enumerate(judgements.evaluators):
        scores = responses.join(score_response_facts(facts, judgements, at, gamma))
        for key, inside in split_by_system(facts.responses):
            own = scores[inside]
            spoke = own[own["n_facts"] > 0]
            scored = spoke[spoke["score"].notna()]
            whole = spoke[spoke["n_failed_sentences"] == 0]
            row: Row = {"dataset": key["dataset"], "evaluator": evaluator, "system": key["system"]}
            row |= {
                "n_responses": len(own),
                "n_abstained": int(own["abstained"].sum()),
                "n_without_facts": int((~own["abstained"] & (own["n_facts"] == 0)).sum()),
                "n_scored": len(scored),
                "n_unscored_responses": len(spoke) - len(scored),
                "respond_ratio": len(spoke) / len(own),
                "num_facts_per_response": mean_of_defined(whole["n_facts"]),
                "n_failed_sentences": int(own["n_failed_sentences"].sum()),
            }
            for name in ("n_facts", "n_supported", "n_unscored", "n_unparsed"):
                row[name] = int(spoke[name].sum())
            for name in ("score", "init_score"):
                cluster = scored["cluster"].to_numpy()
                row |= average_responses(name, scored[name], intervals, cluster=cluster)
                # The point is the mean of fewer responses, so it may lie outside what the mean of
                # all can be: an unscored response of one fact scores at most exp(1 − γ).
                for end, narrower in (("_min", min), ("_max", max)):
                    known = [row[name], mean_of_defined(spoke[f"{name}{end}"])]
                    row[f"{name}{end}"] = narrower(
                        (each for each in known if each is not None), default=None
                    )
            why = "" if len(scored) else "no response has a scored fact"
            rows.append(explain_row(row, ("score", "init_score"), [why], TOO_FEW_RESPONSES))
    return rows


def compute_factscore_agreement(
    judgements: Judgements,
    *,
    irrelevant: Literal["exclude", "unsupported"] = "exclude",
    gamma: float = DEFAULT_GAMMA,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """Predicted against human scores: a row per evaluator, system (``__all__`` comes first if there
    are several) and figure.

    figure: ``init_score`` and ``score`` use all facts, and the score by people uses the facts that
    they labelled; ``same_facts`` uses the facts that both judged, on both sides. n: responses with
    a human and a predicted score. n_missing: those with a human score only.
    """
    facts = collect_response_facts(judgements)
    human = facts.human_scores(irrelevant)
    rows = []
    for at, evaluator in enumerate(judgements.evaluators):
        scores = score_response_facts(facts, judgements, at, gamma)
        scores = scores.assign(
            init_score_human=human, score_human=human, cluster=facts.responses["cluster"]
        )
        for key, inside in split_by_system(facts.responses):
            own = scores[inside]
            for figure in ("init_score", "score", "same_facts"):
                if own[figure].isna().all() and figure == "same_facts":
                    continue  # of some annotations only the scores are published
                known = own[own[[f"{figure}_human", figure]].notna().all(axis=1)]
                row: Row = {
                    "dataset": key["dataset"],
                    "evaluator": evaluator,
                    "system": key["system"],
                }
                n_missing = int(own["score_human"].notna().sum()) - len(known)
                row |= {
                    "figure": figure,
                    "irrelevant": irrelevant,
                    "n": len(known),
                    "n_missing": n_missing,
                }
                pairs = known[[f"{figure}_human", figure]].to_numpy()
                rows.append(
                    row | compare_with_human_scores(pairs, intervals, known["cluster"].to_numpy())
                )
    return rows


def compare_with_human_scores(
    score_pairs: np.ndarray,
    intervals: ClusterBootstrap | None = None,
    cluster: np.ndarray | None = None,
) -> Row:
    """How close are predicted scores to those by people? pairs (human, predicted): float64 (n, 2);
    cluster: int (n,).

    The figures are both means, bias (predicted - human), mae, pearson_r and spearman_r. The
    correlations are None for fewer than three responses, or if one side is constant.
    """
    human, predicted = score_pairs.T
    own = np.arange(len(score_pairs)) if cluster is None else cluster
    row: Row = {}
    for name, values in (
        ("human", human),
        ("predicted", predicted),
        ("mae", np.abs(predicted - human)),
    ):
        row |= average_responses(name, values, intervals, cluster=own)
    row |= average_changes("bias", predicted - human, intervals, cluster=own)
    for name, measure in (("pearson_r", pearson), ("spearman_r", spearman)):
        correlation = measure(human, predicted)
        is_known = len(score_pairs) > 2
        row[name] = none_if_undefined(correlation.point) if is_known else None
        if intervals is not None:
            ends = correlation_interval(correlation, own, intervals.confidence)
            row |= name_ends(name, ends if is_known else (np.nan, np.nan))
    why = "" if len(score_pairs) else "no response has both scores"
    if len(score_pairs) and row["pearson_r"] is None:
        why = "correlations: fewer than three responses, or one score is constant"
    figures = ("human", "predicted", "bias", "mae", "pearson_r", "spearman_r")
    few = f"too few responses (of correlations {MIN_CLUSTERS}), or all are alike"
    return explain_row(row, figures, [why], few)


# ---- declarations


_SCORE_DESCRIPTION = "means over responses; `init_` means without the length penalty"
_NOT_SCORED_DESCRIPTION = (
    "responses that abstained, that contain no fact, or in which no fact was checked"
)
_FACTSCORE_COLUMNS: dict[str, Column] = {
    **pick_shared_columns("dataset", "evaluator", "system"),
    "n_responses": Column(
        "all responses", "count", "responses, and how many of them are scored", shown=False
    ),
    "n_scored": Column("responses", "count", "responses, and how many of them are scored"),
    "n_facts": Column("facts", "count", "facts, supported facts, and facts without a verdict"),
    "n_supported": Column(
        "supported", "count", "facts, supported facts, and facts without a verdict", shown=False
    ),
    "n_unscored": Column(
        "unscored", "count", "facts, supported facts, and facts without a verdict", shown="any"
    ),
    **pick_shared_columns("n_failed_sentences"),
    "n_unparsed": Column("unparsed", "count", "facts whose reply states no verdict", shown="any"),
    "n_abstained": Column("abstained", "count", _NOT_SCORED_DESCRIPTION, shown="any"),
    "n_without_facts": Column("without facts", "count", _NOT_SCORED_DESCRIPTION, shown="any"),
    "n_unscored_responses": Column("not asked", "count", _NOT_SCORED_DESCRIPTION, shown="any"),
    "score": share_column("FActScore", _SCORE_DESCRIPTION, RESPONSE_MEAN),
    "init_score": share_column("without penalty", _SCORE_DESCRIPTION, RESPONSE_MEAN),
    "respond_ratio": Column("respond ratio", "percent", "share of all responses that state a fact"),
    "num_facts_per_response": Column(
        "facts per response",
        "number",
        "mean number of facts of the responses that state a fact and were decomposed",
        digits=1,
    ),
    **pick_shared_columns("reason"),
}

_FIGURE_COLUMN = Column(
    "figure",
    "text",
    "which predicted score: with or without the length penalty over all facts, or over the facts"
    " that people labelled",
    key=True,
    values={
        "init_score": "without penalty",
        "score": "with penalty",
        "same_facts": "on the same facts",
    },
)
_AGREEMENT_OPTIONS = {
    "irrelevant": (
        "facts that annotators marked as irrelevant: `exclude` them, or count them as `unsupported`"
    ),
    "gamma": "γ of the length penalty; 0 turns it off",
}
AUDITS = (
    Audit(
        name="factscore",
        title="FActScore of the systems",
        question="What share of a response's atomic facts does the knowledge source support?",
        source="Min et al. 2023, §3",
        text=(
            "The unweighted mean over responses, with and without the length penalty. Responses"
            " that abstain, and responses without a fact, count only in the respond ratio."
        ),
        formula=(
            "Penalty × supported facts / facts, averaged over responses. Penalty = exp(1 − γ/n) for"
            " responses with n < γ facts. A fact without a verdict counts as not supported; the"
            " bounds allow either."
        ),
        remedy=(
            "A score means little if you do not know its verifier's errors: label some facts and"
            " read their `rates`. If many replies cannot be read, ask with another prompt or model."
        ),
        columns=_FACTSCORE_COLUMNS,
        options={"gamma": "γ of the length penalty; 0 turns it off"},
        compute=compute_factscore_audit,
        applies=has_response_facts,
        plot=PlotSpec(
            what="FActScore of systems", keys=("score", "init_score"), groups=("system",)
        ),
    ),
    Audit(
        name="factscore_agreement",
        title="Predicted FActScore against people's",
        question="How close are predicted FActScores to human ones?",
        source="Min et al. 2023, §4.2",
        text="Only responses with both scores count. Human scores have no length penalty.",
        formula="Bias = predicted − human score; MAE = mean |bias|; r and ρ are over responses.",
        remedy=(
            "If r is low or the bias is large, do not compare systems by this FActScore: use"
            " another verifier, or labels."
        ),
        columns={
            **pick_shared_columns("dataset", "evaluator", "system"),
            "figure": _FIGURE_COLUMN,
            "irrelevant": Column(
                "irrelevant facts",
                "text",
                "how facts marked as irrelevant were treated",
                shown=False,
            ),
            **pick_shared_columns("n"),
            "n_missing": Column(
                "not predicted", "count", "human scores without a predicted one", shown="any"
            ),
            "human": Column("people's", "percent", "mean scores", interval=RESPONSE_MEAN),
            "predicted": Column("predicted", "percent", "mean scores", interval=RESPONSE_MEAN),
            "bias": Column(
                "bias", "points", "errors of the predicted scores", interval=RESPONSE_CHANGE
            ),
            "mae": Column(
                "MAE",
                "points",
                "errors of the predicted scores",
                interval=RESPONSE_MEAN,
                signed=False,
            ),
            "pearson_r": Column(
                "Pearson r", "number", "over responses", interval=RESPONSE_INFLUENCE, digits=3
            ),
            "spearman_r": Column(
                "Spearman ρ", "number", "over responses", interval=RESPONSE_INFLUENCE, digits=3
            ),
            **pick_shared_columns("reason"),
        },
        options=_AGREEMENT_OPTIONS,
        compute=compute_factscore_agreement,
        applies=has_human_response_facts,
        plot=PlotSpec(
            what="Errors of predicted FActScores",
            keys=("bias", "mae"),
            groups=("system",),
            guides={"bias": 0.0},
        ),
    ),
)
