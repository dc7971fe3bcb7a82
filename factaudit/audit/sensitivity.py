"""How far FActScore, and the order of systems by it, move where one setting of the pipeline is another.

A FActScore is of a decomposer, demonstrations, a retriever and a verifier as much as of the responses (Wanner et al.
2024; Hu et al. 2024). The claims table has each variant of the pipeline under its name in the column ``variant``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_facts import has_response_facts
from factaudit.arrays.response_means import DEFAULT_GAMMA, mean_of_defined, response_mean_with_interval
from factaudit.arrays.variant_scores import SCORE_KEYS, VariantScores, collect_variant_scores
from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Check, Column, Finding, pick_shared_columns
from factaudit.audit.core.finding_parts import group_finding_rows_by_evaluator, make_row_finding
from factaudit.audit.core.interval_methods import JACKKNIFE, ORDER_BOOTSTRAP, RESPONSE_MEAN
from factaudit.audit.core.plot_specs import DotPlotSpec
from factaudit.audit.core.result_rows import Row, explain_missing_row_intervals
from factaudit.audit.core.significance import (
    DEFAULT_CONFIDENCE,
    read_confidence,
    select_rows_beyond_limit,
    select_significant_rows,
)
from factaudit.audit.core.statements import make_statement
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_means import clustered_mean, clustered_mean_difference
from factaudit.stats.multiplicity import p_value_of_interval
from factaudit.stats.rank_correlation import MIN_CORRELATED_SYSTEMS, kendall_tau, kendall_tau_interval
from factaudit.stats.undefined_values import divide_or_undefined, name_ends, none_if_undefined
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
        confidence = DEFAULT_CONFIDENCE if intervals is None else intervals.confidence
        found = clustered_mean((score - first)[both], scores.cluster[both], confidence)
        row |= {"n_clusters": found.n_clusters, "change": found.point}
        row["change_min"] = min(found.point, float((least - first_most)[both].mean()))
        row["change_max"] = max(found.point, float((most - first_least)[both].mean()))
        if intervals is not None:
            row |= name_ends("change", (found.low, found.high))
    else:
        why.append("no response is scored by both: change")
    why.append(explain_missing_row_intervals(row, "its responses are fewer than two, or all alike"))
    return row | {"reason": join_reasons(why)}


def compute_system_order_sensitivity(
    judgements: Judgements,
    *,
    base: str = BASE_VARIANT,
    gamma: float = DEFAULT_GAMMA,
    gammas: Mapping[str, float] | None = None,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """Whether a variant orders systems as the base does: a row per dataset, evaluator and variant but the base.

    Of the systems with a score by both. A pair is settled where its difference is significant (jackknife over topics,
    else responses). n_swapped: pairs in another order; n_reversed: in another order, and significantly so on both
    sides, corrected by Bonferroni for the pairs; p_reversal: the least corrected p-value of these. kendall_tau: between
    the scores by both; null below three systems.
    """
    return [
        {"dataset": scores.dataset, "evaluator": scores.evaluator, "variant": variant}
        | _build_order_sensitivity_row(scores, variant, base, intervals)
        for scores in collect_variant_scores(judgements, gamma, gammas)
        for variant in scores.list_variants(base)
        if variant != base
    ]


def _build_order_sensitivity_row(
    scores: VariantScores, variant: str, base: str, intervals: ClusterBootstrap | None
) -> Row:
    nothing = np.full(len(scores.cluster), np.nan)
    sides = np.stack([scores.figures["score"].get(base, nothing), scores.figures["score"][variant]])
    names = [name for name in dict.fromkeys(scores.system) if name is not None]
    members = {name: ~np.isnan(sides) & (scores.system == name) for name in names}
    members = {name: inside for name, inside in members.items() if inside.any(1).all()}
    means = np.array([[side[inside[at]].mean() for inside in members.values()] for at, side in enumerate(sides)])
    confidence = DEFAULT_CONFIDENCE if intervals is None else intervals.confidence
    a, b = np.triu_indices(len(members), 1)
    gaps = means[:, a] - means[:, b]
    rows = list(members.values())
    p = np.array(
        [
            [
                _test_equal_scores_of_systems(side, rows[i][at], rows[j][at], scores.cluster, confidence)
                for i, j in zip(a, b, strict=True)
            ]
            for at, side in enumerate(sides)
        ]
    ).reshape(2, -1)
    is_swapped = (gaps[0] * gaps[1] < 0) & (np.abs(gaps).min(0, initial=np.inf) > 1e-12)
    reversal = np.where(is_swapped, np.minimum(1.0, p.max(0) * len(a)), 1.0)
    row: Row = {"n_systems": len(members), "n_pairs": len(a)}
    row |= dict(zip(("n_settled_base", "n_settled"), (p < 1 - confidence).sum(1).tolist(), strict=True))
    row |= {"n_swapped": int(is_swapped.sum()), "n_reversed": int((reversal < 1 - confidence).sum())}
    row |= {"p_reversal": float(reversal.min()) if len(a) else None, "kendall_tau": None}
    row |= {} if intervals is None else {"kendall_tau_low": None, "kendall_tau_high": None}
    why = [] if len(a) else ["fewer than two systems: p_reversal"]
    if len(members) < MIN_CORRELATED_SYSTEMS:
        why.append(f"fewer than {MIN_CORRELATED_SYSTEMS} systems: kendall_tau")
    elif (tau := none_if_undefined(kendall_tau(means[0], means[1]))) is None:
        why.append("all systems have one score: kendall_tau")
    else:
        row["kendall_tau"] = tau
        draws = None if intervals is None else _resample_system_means(sides, rows, scores.cluster, intervals)
        if intervals is not None and draws is not None and len(draws):
            low, high = kendall_tau_interval(draws[:, 0], draws[:, 1], confidence)
            row |= {"kendall_tau_low": min(low, tau), "kendall_tau_high": max(high, tau)}
    return row | {"reason": join_reasons([*why, explain_missing_row_intervals(row, "too few topics")])}


def _test_equal_scores_of_systems(
    score: np.ndarray, one: np.ndarray, other: np.ndarray, cluster: np.ndarray, confidence: float
) -> float:
    """The two-sided p-value of equal mean scores; 1 where nothing says how they vary."""
    found = clustered_mean_difference(score[one], cluster[one], score[other], cluster[other], confidence)
    half, freedom = np.array((found.high - found.low) / 2), np.array(found.n_clusters - 1)
    p = float(p_value_of_interval(np.array(abs(found.point)), half, freedom, confidence))
    return 1.0 if np.isnan(p) else p


def _resample_system_means(
    sides: np.ndarray, systems: Sequence[np.ndarray], cluster: np.ndarray, intervals: ClusterBootstrap
) -> np.ndarray:
    """Bootstrap replicates (B, 2, S) of the systems' means by both variants: topics are drawn, the same for all.

    sides: (2, R) scores; systems: of each which of them count, bool (2, R).
    """
    size = int(cluster.max()) + 1
    kept = [(side, inside[at]) for at, side in enumerate(sides) for inside in systems]
    sums = np.stack([np.bincount(cluster[inside], side[inside], size) for side, inside in kept])
    counts = np.stack([np.bincount(cluster[inside], minlength=size) for _, inside in kept])
    used = counts.any(0)
    n = int(used.sum())
    weights = np.random.default_rng(intervals.seed).multinomial(n, np.full(n, 1 / n), intervals.replicates)
    draws = divide_or_undefined(weights @ sums[:, used].T, weights @ counts[:, used].T)
    return draws[~np.isnan(draws).any(1)].reshape(-1, 2, len(systems))


# ------------------------------------------------------------------------------------------------------ findings


def _find_variant_sensitive_scores(audited_run: AuditedRun) -> Iterator[Finding]:
    every = [row for row in audited_run.rows("sensitivity") if row["change"] is not None]
    beyond = select_rows_beyond_limit(audited_run, every, "change", MAX_CHANGE)
    for _, rows in group_finding_rows_by_evaluator(beyond):
        worst = max(rows, key=lambda row: abs(row["change"]))
        said = make_statement(
            "{worst.variant} moves the score{of} by {worst.change:signed} points "
            "({rows:count change|changes} of more than {limit:limit} points).",
            worst=worst,
            of=make_statement("" if worst["system"] in (None, ALL_TOGETHER) else " of {row.system}", row=worst),
            rows=rows,
            limit=MAX_CHANGE,
        )
        keys = ("variant", "system", "score", "change", "change_low", "change_high", "n")
        yield make_row_finding("fail", worst, said, *keys)


def _find_variant_sensitive_orders(audited_run: AuditedRun) -> Iterator[Finding]:
    every = [row for row in audited_run.rows("sensitivity_order") if row["p_reversal"] is not None]
    level = 1 - read_confidence(audited_run)
    for row in select_significant_rows(audited_run, every, [row["p_reversal"] for row in every]):
        if row["p_reversal"] < level:
            said = make_statement(
                "{row.variant} significantly reverses {row.n_reversed:number} of {row.n_pairs:number pair} of systems.",
                row=row,
            )
            keys = ("variant", "n_reversed", "n_swapped", "n_pairs", "p_reversal")
            yield make_row_finding("fail", row, said, *keys)


def _has_variants(judgements: Judgements) -> bool:
    return "variant" in judgements.claims and has_response_facts(judgements)


_VARIANT_COLUMN = Column("variant", "text", "the setting that is another than in the `base`", key=True)
_SETTLED_DESCRIPTION = "pairs of systems with a significant difference in the base, and by the variant"
_OPTIONS = {
    "base": "the variant that the others are compared with",
    "gamma": "γ of the length penalty; 0 turns it off",
    "gammas": "γ of variants that have another",
}
AUDITS = (
    Audit(
        name="sensitivity",
        after="decomposition_scores",
        title="How far settings of the pipeline move the score",
        question="How far does FActScore move where the decomposer, the retriever or the verifier is another?",
        source="Wanner et al. 2024; Hu et al. 2024; Min et al. 2023, §4.2",
        text="One setting is varied at a time. Which variant is right is not said: labels of facts say it.",
        formula="Change = mean over responses of the score by the variant − the score by the base.",
        remedy="Report the setting with the score, and the range over the settings that are as good. Scores of two "
        "papers are comparable only where their pipelines are the same.",
        columns={
            **pick_shared_columns("dataset", "evaluator"),
            "variant": _VARIANT_COLUMN,
            **pick_shared_columns("system"),
            "n_scored": Column("responses", "count", "responses that the variant has scored"),
            "n": Column("compared", "count", "responses that both have scored"),
            "n_unscored": Column("open", "count", "responses with unscored or guessed facts by either", shown="any"),
            "n_clusters": Column("topics", "count", "topics of these, else responses", shown=False),
            "score": Column(
                "FActScore",
                "percent",
                "by the variant, with its length penalty",
                bounds=True,
                interval=RESPONSE_MEAN,
                counted_in="n_scored",
            ),
            "change": Column("change", "points", "from the base", bounds=True, interval=JACKKNIFE),
            **pick_shared_columns("reason"),
        },
        options=_OPTIONS,
        compute=compute_score_sensitivity,
        applies=_has_variants,
        without_labels=True,
        plots=(
            DotPlotSpec(
                what="FActScore with one setting another, and its change from the base",
                keys=("score", "change"),
                groups=("variant",),
                series="system",
                guides={"change": 0.0},
            ),
        ),
        checks=(
            Check(
                "moved_score",
                "Settings that move the score",
                "a setting moves the score significantly by more than 5 points",
                _find_variant_sensitive_scores,
                null="no setting moves a score by more than 5 points",
                controls="Holm over all variants of all systems and evaluators[ on all datasets]",
                figure="change",
            ),
        ),
    ),
    Audit(
        name="sensitivity_order",
        after="sensitivity",
        title="Whether settings of the pipeline reorder systems",
        question="Are systems in the same order by every variant of the pipeline?",
        source="Wanner et al. 2024; Hu et al. 2024",
        text="Pairs that no side settles may be in another order by chance.",
        formula="τ-b between the systems' scores by the base and by the variant.",
        remedy="Call one system better than another only where every variant that is as good says so.",
        columns={
            **pick_shared_columns("dataset", "evaluator"),
            "variant": _VARIANT_COLUMN,
            "n_systems": Column("systems", "count", "systems that both have scored, and pairs of them"),
            "n_pairs": Column("pairs", "count", "systems that both have scored, and pairs of them"),
            "n_settled_base": Column("settled in the base", "count", _SETTLED_DESCRIPTION),
            "n_settled": Column("settled", "count", _SETTLED_DESCRIPTION),
            "n_swapped": Column("swapped", "count", "pairs in another order than in the base"),
            "n_reversed": Column(
                "reversed", "count", "of these, significantly so on both sides, corrected for all pairs"
            ),
            "p_reversal": Column("p", "p", "the least p-value of a reversed pair, corrected for all pairs"),
            "kendall_tau": Column("τ", "number", "agreement of both orders", digits=2, interval=ORDER_BOOTSTRAP),
            **pick_shared_columns("reason"),
        },
        options=_OPTIONS,
        compute=compute_system_order_sensitivity,
        applies=lambda judged: _has_variants(judged) and judged.claims["system"].nunique() > 1,
        without_labels=True,
        checks=(
            Check(
                "moved_order",
                "Settings that reverse systems",
                "a setting significantly reverses two systems",
                _find_variant_sensitive_orders,
                null="no setting reverses two systems",
                controls="Bonferroni over pairs, Holm over all variants and evaluators[ on all datasets]",
                figure="p_reversal",
                gravity=lambda evidence: evidence["n_reversed"],
            ),
        ),
    ),
)
