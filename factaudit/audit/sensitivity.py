"""How much does FActScore, and the order of systems by it, change with one setting of the pipeline?

A FActScore is of a decomposer, demonstrations, a retriever and a verifier as much as of the responses (Wanner et al.
2024; Hu et al. 2024). The claims table has each variant of the pipeline under its name in the column ``variant``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_facts import has_response_facts
from factaudit.arrays.response_means import DEFAULT_GAMMA, mean_of_defined, response_mean_with_interval
from factaudit.arrays.variant_scores import SCORE_KEYS, VariantScores, collect_variant_scores
from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Check, Column, Finding, pick_shared_columns
from factaudit.audit.core.finding_parts import group_finding_rows_by_evaluator, make_row_finding
from factaudit.audit.core.interval_methods import JACKKNIFE, RESPONSE_MEAN
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row, explain_missing_row_intervals
from factaudit.audit.core.significance import (
    select_rows_beyond_limit,
)
from factaudit.audit.core.statements import make_statement
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.influence import interval, mean
from factaudit.stats.undefined_values import name_ends
from factaudit.text.display_text import join_reasons

#: What the pipeline that the others are compared with is called.
BASE_VARIANT = "base"
#: A score that one setting moves by more is a score of the setting, too.
MAX_CHANGE = 0.05


def compute_score_sensitivity(
    judgements: Judgements,
    *,
    base: str = BASE_VARIANT,
    gamma: float = DEFAULT_GAMMA,
    gammas: Mapping[str, float] | None = None,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """The FActScore of each system by each variant: a row per dataset, evaluator, variant and system, ``base`` first.

    ``score`` is as in the audit `factscore`. ``change``: the mean over the n responses that both this variant and the
    base have scored of the difference of their scores; clusters are topics, else responses. The bounds let what is
    unscored, or guessed, be either. gammas: γ of the variants that have their own.
    """
    rows = []
    for scores in collect_variant_scores(judgements, gamma, gammas):
        for variant in scores.list_variants(base):
            for system, inside in scores.responses_by_system(variant):
                row: Row = {"dataset": scores.dataset, "evaluator": scores.evaluator, "variant": variant}
                row |= {"system": system}
                row |= _build_sensitivity_row(scores, variant, base, inside, intervals)
                rows.append(row)
    return rows


def _build_sensitivity_row(
    scores: VariantScores, variant: str, base: str, inside: np.ndarray, intervals: ClusterBootstrap | None
) -> Row:
    score, least, most = (scores.figures[key][variant] for key in SCORE_KEYS)
    scored, is_open = inside & ~np.isnan(score), most - least > 1e-12
    row: Row = {"n_scored": int(scored.sum()), "n": 0, "n_unscored": int((inside & is_open).sum()), "n_clusters": 0}
    row |= response_mean_with_interval("score", score[scored].tolist(), intervals)
    row |= {"score_min": mean_of_defined(least[inside]), "score_max": mean_of_defined(most[inside])}
    row |= dict.fromkeys(("change", "change_min", "change_max"))
    row |= {} if intervals is None else {"change_low": None, "change_high": None}
    why = [] if row["score"] is not None else ["no response has a scored fact"]
    if variant == base or base not in scores.figures["score"]:
        return row | {"reason": join_reasons([*why, "nothing to compare with: change"])}
    first, first_least, first_most = (scores.figures[key][base] for key in SCORE_KEYS)
    both = scored & ~np.isnan(first)
    row["n"] = int(both.sum())
    row["n_unscored"] += int((both & ~is_open & (first_most - first_least > 1e-12)).sum())
    if row["n"]:
        change = mean((score - first)[both])
        row |= {"n_clusters": len(np.unique(scores.cluster[both])), "change": change.point}
        row["change_min"] = min(change.point, float((least - first_most)[both].mean()))
        row["change_max"] = max(change.point, float((most - first_least)[both].mean()))
        if intervals is not None:
            ends = interval(change, scores.cluster[both], confidence=intervals.confidence)
            row |= name_ends("change", ends)
    else:
        why.append("no response is scored by both: change")
    why.append(explain_missing_row_intervals(row, "its responses are fewer than two, or all alike"))
    return row | {"reason": join_reasons(why)}


# ------------------------------------------------------------------------------------------------------ findings


def _find_variant_sensitive_scores(audited_run: AuditedRun) -> Iterator[Finding]:
    every = [row for row in audited_run.rows("sensitivity") if row["change"] is not None]
    beyond = select_rows_beyond_limit(audited_run, every, "change", MAX_CHANGE)
    for _, rows in group_finding_rows_by_evaluator(beyond):
        worst = max(rows, key=lambda row: abs(row["change"]))
        said = make_statement(
            "The setting {worst.variant} changes the score{of} by {worst.change:signed} points. "
            "{rows:count setting} {verb} a score by more than {limit:limit} points.",
            verb="changes" if len(rows) == 1 else "change",
            worst=worst,
            of=make_statement("" if worst["system"] in (None, ALL_TOGETHER) else " of {row.system}", row=worst),
            rows=rows,
            limit=MAX_CHANGE,
        )
        keys = ("variant", "system", "score", "change", "change_low", "change_high", "n")
        yield make_row_finding("fail", worst, said, *keys)


def _has_variants(judgements: Judgements) -> bool:
    return "variant" in judgements.claims and has_response_facts(judgements)


_VARIANT_COLUMN = Column("variant", "text", "the setting that differs from the `base`", key=True)
_OPTIONS = {
    "base": "the variant that the others are compared with",
    "gamma": "γ of the length penalty; 0 turns it off",
    "gammas": "γ for variants that use another value",
}
AUDITS = (
    Audit(
        name="sensitivity",
        after="decomposition_scores",
        title="How far settings of the pipeline move the score",
        question="How much does FActScore depend on the decomposer, the retriever and the verifier?",
        source="Wanner et al. 2024; Hu et al. 2024; Min et al. 2023, §4.2",
        text=(
            "One setting is changed at a time. The audit does not say which variant is right; labelled facts can tell."
        ),
        formula="Change = score of the variant − score of the base, averaged over responses.",
        remedy=(
            "Report the settings together with the score, and the range of scores over equally good settings. "
            "Scores from two papers can be compared only if their pipelines are the same."
        ),
        columns={
            **pick_shared_columns("dataset", "evaluator"),
            "variant": _VARIANT_COLUMN,
            **pick_shared_columns("system"),
            "n_scored": Column("responses", "count", "responses that the variant scored"),
            "n": Column("compared", "count", "responses that both scored"),
            "n_unscored": Column(
                "open", "count", "responses in which a fact is unscored or guessed by either", shown="any"
            ),
            "n_clusters": Column("topics", "count", "their topics or, without topics, responses", shown=False),
            "score": Column(
                "FActScore",
                "percent",
                "score of the variant, with its length penalty",
                bounds=True,
                interval=RESPONSE_MEAN,
                counted_in="n_scored",
            ),
            "change": Column("change", "points", "change from the base", bounds=True, interval=JACKKNIFE),
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
        checks=(
            Check(
                "moved_score",
                "Settings that change the score",
                "a setting changes the score significantly by more than 5 points",
                _find_variant_sensitive_scores,
                null="no setting changes a score by more than 5 points",
                controls="Holm over all variants of all systems and evaluators[ on all data sets]",
                figure="change",
            ),
        ),
    ),
)
