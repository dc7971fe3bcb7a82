"""How close are predicted FActScores and D-FActScores to those by people?

The score by people is supported / labelled facts. It comes from the columns ``human_supported``,
``human_not_supported`` and ``human_irrelevant`` if the claims have them (numbers, the same in all
rows of a response), else from the labels. It has no length penalty (Min et al. 2023, §4.2).

People's D-FActScore comes from a file of annotations, which the engine of D-FActScore reads (MF
§4.2, §4.3). An annotation is a mapping with system, response_id, annotator, fact, biography,
entity, label and page, as described by
`factaudit.datasets.biography_annotations.BiographyFactAnnotation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_facts import (
    collect_response_facts,
    has_human_response_facts,
    score_response_facts,
)
from factaudit.arrays.response_means import (
    DEFAULT_GAMMA,
    average_responses,
    split_by_system,
)
from factaudit.audit.core.audit_declaration import (
    RESPONSE_CHANGE,
    RESPONSE_INFLUENCE,
    RESPONSE_MEAN,
    Audit,
    Column,
    PlotSpec,
    pick_shared_columns,
)
from factaudit.audit.core.result_rows import Row, explain_row
from factaudit.stats import name_figure
from factaudit.stats.agreement import correlation_interval, pearson, spearman
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.influence import MIN_CLUSTERS, Statistic, bounded_change_interval

_RESPONSE = ["system", "response_id"]
#: The figures of D-FActScore that people's annotations give, named as in the rows of responses.
_BIOGRAPHY_SCORES = ["init_factscore", "init_dfactscore"]


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
    row |= average_responses(
        "bias", predicted - human, intervals, bounded_change_interval, -1, cluster=own
    )
    for name, measure in (("pearson_r", pearson), ("spearman_r", spearman)):
        correlation, ends = Statistic.undefined(len(own)), None
        if len(own) > 2:
            correlation = measure(human, predicted)
        if intervals is not None:
            ends = correlation_interval(correlation, own, intervals.confidence)
        row |= name_figure(name, correlation.point, ends)
    why = "" if len(score_pairs) else "no response has both scores"
    if len(score_pairs) and row["pearson_r"] is None:
        why = "correlations: fewer than three responses, or one score is constant"
    figures = ("human", "predicted", "bias", "mae", "pearson_r", "spearman_r")
    few = f"too few responses (of correlations {MIN_CLUSTERS}), or all are alike"
    return explain_row(row, figures, [why], few)


def score_human_biographies(annotations: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """FActScore and D-FActScore of each response by people, the means over its annotators.

    ``init_dfactscore``: the share of facts that the page of the person whom their biography is
    about supports (S, with that page or none). ``init_factscore``: the share that some page
    supports: an S, and an NS that was found on somebody else's page. Irrelevant facts are left out
    of both, and so are responses without any other.
    """
    columns = [*_RESPONSE, "annotator", "entity", "label", "page"]
    facts = pd.DataFrame(list(annotations), columns=columns).astype(object)
    facts = facts[facts["label"] != "IR"]
    is_supported = facts["label"] == "S"
    is_own_page = facts["page"].isna() | (facts["page"] == facts["entity"])
    facts = facts.assign(
        init_factscore=is_supported | ~is_own_page, init_dfactscore=is_supported & is_own_page
    )
    by_annotator = facts.groupby([*_RESPONSE, "annotator"], sort=False)[_BIOGRAPHY_SCORES].mean()
    return by_annotator.groupby(_RESPONSE, sort=False).mean().reset_index()


def compare_biography_scores(
    human_scores: pd.DataFrame,
    machine_rows: Sequence[Mapping[str, Any]],
    evaluator: str,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """Rows of the audit `factscore_agreement` for D-FActScore: one for each system and score.

    human_scores: from `score_human_biographies`. machine_rows: rows of responses with system,
    response_id and both scores (`factaudit.arrays.biography_scores.score_biography`), by the
    verdicts of this ``evaluator``.
    """
    machine = pd.DataFrame(machine_rows, columns=[*_RESPONSE, *_BIOGRAPHY_SCORES])
    both = human_scores.merge(machine, on=_RESPONSE, how="left", suffixes=("_human", ""))
    rows = []
    for key, inside in split_by_system(both.assign(dataset=None)):
        for figure in _BIOGRAPHY_SCORES:
            known = both.loc[inside, [f"{figure}_human", figure]].astype(float).dropna()
            row: Row = key | {"evaluator": evaluator, "figure": figure, "irrelevant": "exclude"}
            row |= {"n": len(known), "n_missing": int(inside.sum()) - len(known)}
            rows.append(row | compare_with_human_scores(known.to_numpy(), intervals))
    return rows


# ---- declaration

_FIGURE_COLUMN = Column(
    "figure",
    "text",
    "which predicted score: with or without the length penalty over all facts, or over the facts"
    " that people labelled; of D-FActScore both scores without penalty",
    key=True,
    values={
        "init_score": "without penalty",
        "score": "with penalty",
        "same_facts": "on the same facts",
        "init_factscore": "FActScore of biographies",
        "init_dfactscore": "D-FActScore",
    },
)
_AGREEMENT_OPTIONS = {
    "irrelevant": (
        "facts that annotators marked as irrelevant: `exclude` them, or count them as `unsupported`"
    ),
    "gamma": "γ of the length penalty; 0 turns it off",
}
AUDIT = Audit(
    name="factscore_agreement",
    title="Predicted scores against people's",
    question="How close are predicted FActScores and D-FActScores to human ones?",
    source="Min et al. 2023, §4.2; MF §4.2, §4.3",
    text="Only responses with both scores count. Human scores have no length penalty.",
    formula=(
        "Bias = predicted − human score; MAE = mean |bias|; r and ρ are over responses. Human"
        " D-FActScore = facts supported by the page of the person whom their biography is about /"
        " facts; human FActScore of biographies = facts found on any page / facts."
    ),
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
)
