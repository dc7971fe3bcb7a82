"""How much does FActScore, and the order of systems by it, change with one setting of the pipeline?

A FActScore depends on the decomposer, the demonstrations, the retriever and the verifier as much as
on the responses (Wanner et al. 2024; Hu et al. 2024). The claims table has each variant of the
pipeline under its name in the column ``variant``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import ALL_TOGETHER, Judgements
from factaudit.arrays.response_facts import (
    collect_response_facts,
    has_response_facts,
    score_response_facts,
)
from factaudit.arrays.response_means import (
    DEFAULT_GAMMA,
    TOO_FEW_RESPONSES,
    average_responses,
    mean_of_defined,
    split_by_system,
)
from factaudit.audit.core.audit_declaration import (
    JACKKNIFE,
    RESPONSE_MEAN,
    Audit,
    Column,
    PlotSpec,
    pick_shared_columns,
    share_column,
)
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check
from factaudit.audit.core.result_rows import Row, explain_row
from factaudit.stats import name_figure
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.influence import interval, mean

#: The name of the pipeline with which the others are compared.
BASE_VARIANT = "base"
#: If one setting changes a score by more than this, the score also measures the setting.
MAX_CHANGE = 0.05
_RESPONSE = ["dataset", "system", "response_id", "evaluator"]
_SCORES = ["score", "score_min", "score_max"]


def compute_score_sensitivity(
    judgements: Judgements,
    *,
    gamma: float = DEFAULT_GAMMA,
    gammas: Mapping[str, float] | None = None,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """The FActScore of each system by each variant: a row per dataset, evaluator, variant and
    system; the base comes first.

    ``score`` is as in the audit `factscore`. ``change``: the mean difference of the scores over the
    n responses that both this variant and the base scored; clusters are topics. For the bounds,
    everything unscored or guessed may be either. gammas: γ of the variants that have their own.
    """
    rows: list[Row] = []
    if "variant" not in judgements.claims:
        return rows
    scores = _score_variants(judgements, gamma, gammas or {})
    first = scores.loc[scores["variant"] == BASE_VARIANT, [*_RESPONSE, *_SCORES]]
    scores = scores.merge(first, how="left", on=_RESPONSE, suffixes=("", "_base"))
    # The base has no change.
    scores.loc[scores["variant"] == BASE_VARIANT, "score_base"] = np.nan
    for (dataset, evaluator), of in scores.groupby(["dataset", "evaluator"]):
        for variant in sorted(
            of["variant"].unique(), key=lambda name: (name != BASE_VARIANT, name)
        ):
            own = of[of["variant"] == variant]
            for key, inside in split_by_system(own):
                row: Row = {"dataset": dataset, "evaluator": evaluator, "variant": variant}
                row["system"] = key["system"]
                rows.append(row | _compare_with_base(own[inside], intervals))
    return rows


def _score_variants(
    judgements: Judgements, gamma: float, gammas: Mapping[str, float]
) -> pd.DataFrame:
    """The responses with facts, as each evaluator scored them in each variant."""
    columns = [*_RESPONSE, "variant", "cluster", *_SCORES]
    parts = [pd.DataFrame(columns=columns)]
    variants = judgements.claims["variant"].to_numpy(dtype=object)
    for name in pd.unique(variants[pd.notna(variants)]):
        alone = judgements.select(np.flatnonzero(variants == name))
        facts = collect_response_facts(alone)
        for at, evaluator in enumerate(alone.evaluators):
            if (alone.status[at] >= 0).any():
                scores = score_response_facts(facts, alone, at, gammas.get(name, gamma))
                told = facts.responses.assign(variant=name, evaluator=evaluator)
                parts.append(told.join(scores)[columns].dropna(subset="score_max"))
    return pd.concat(parts[1:] or parts, ignore_index=True)


def _compare_with_base(responses: pd.DataFrame, intervals: ClusterBootstrap | None) -> Row:
    """The figures of responses with their scores by a variant and by the base (``score_base``,
    ...)."""
    both = responses.dropna(subset=["score", "score_base"])
    is_open = responses["score_max"] - responses["score_min"] > 1e-12
    base_is_open = both["score_max_base"] - both["score_min_base"] > 1e-12
    row: Row = {
        "n_scored": int(responses["score"].notna().sum()),
        "n": len(both),
        "n_clusters": both["cluster"].nunique(),
        "n_unscored": int(is_open.sum() + (base_is_open & ~is_open[both.index]).sum()),
    }
    row |= average_responses("score", responses["score"], intervals)
    row |= {key: mean_of_defined(responses[key]) for key in ("score_min", "score_max")}
    change = mean((both["score"] - both["score_base"]).to_numpy(dtype=float))
    least = mean_of_defined(both["score_min"] - both["score_max_base"])
    most = mean_of_defined(both["score_max"] - both["score_min_base"])
    ends = None
    if intervals is not None:
        cluster = both["cluster"].to_numpy(dtype=np.int64)
        ends = interval(change, cluster, confidence=intervals.confidence)
    row |= name_figure("change", change.point, ends)
    row["change_min"] = None if least is None else min(change.point, least)
    row["change_max"] = None if most is None else max(change.point, most)
    why = "" if len(both) else "no response is scored by both a variant and the base"
    return explain_row(row, ("score", "change"), [why], TOO_FEW_RESPONSES)


def _list_changes(run: AuditedRun) -> Iterator[Row]:
    for row in run.rows("sensitivity"):
        yield row | {
            "whose": "" if row["system"] in (None, ALL_TOGETHER) else f" of {row['system']}"
        }


CHECK = Check(
    id="moved_score",
    title="Settings that change the score",
    rows=_list_changes,
    figure="change",
    limit=MAX_CHANGE,
    side="off",
    unit="score",
    says="The setting {variant} changes the score{whose} by {change:signed} points, {verdict}.",
    beyond="more than {limit:limit} points",
    advice="Report the settings together with the score.",
    null="no setting changes a score by more than 5 points",
)


def _has_variants(judgements: Judgements) -> bool:
    return "variant" in judgements.claims and has_response_facts(judgements)


_OPTIONS = {
    "gamma": "γ of the length penalty; 0 turns it off",
    "gammas": "γ for variants that use another value",
}
AUDITS = (
    Audit(
        name="sensitivity",
        title="How far settings of the pipeline move the score",
        question=(
            "How much does FActScore depend on the decomposer, the retriever and the verifier?"
        ),
        source="Wanner et al. 2024; Hu et al. 2024; Min et al. 2023, §4.2",
        text=(
            "One setting is changed at a time. The audit does not say which variant is right;"
            " labelled facts can tell."
        ),
        formula="Change = score of the variant − score of the base, averaged over responses.",
        remedy=(
            "Report the settings together with the score, and the range of scores over equally good"
            " settings. Scores from two papers can be compared only if their pipelines are the"
            " same."
        ),
        columns={
            **pick_shared_columns("dataset", "evaluator"),
            "variant": Column(
                "variant", "text", "the setting that differs from the `base`", key=True
            ),
            **pick_shared_columns("system"),
            "n_scored": Column("responses", "count", "responses that the variant scored"),
            "n": Column("compared", "count", "responses that both scored"),
            "n_unscored": Column(
                "open",
                "count",
                "responses in which a fact is unscored or guessed by either",
                shown="any",
            ),
            "n_clusters": Column(
                "topics", "count", "their topics or, without topics, responses", shown=False
            ),
            "score": share_column(
                "FActScore",
                "score of the variant, with its length penalty",
                RESPONSE_MEAN,
                counted_in="n_scored",
            ),
            "change": share_column("change", "change from the base", JACKKNIFE, "points"),
            **pick_shared_columns("reason"),
        },
        options=_OPTIONS,
        compute=compute_score_sensitivity,
        applies=_has_variants,
        without_labels=True,
        plot=PlotSpec(
            what="FActScore with one setting another, and its change from the base",
            keys=("score", "change"),
            groups=("variant",),
            series="system",
            guides={"change": 0.0},
        ),
        checks=(CHECK,),
    ),
)
