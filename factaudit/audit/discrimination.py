"""How good are an evaluator's scores at any threshold, and how good with a tuned one? (VC §5)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from factaudit.arrays import confusion_counts
from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Check, Column, Finding, pick_shared_columns
from factaudit.audit.core.decision_limits import has_interval
from factaudit.audit.core.evaluator_comparison import is_constant_evaluator
from factaudit.audit.core.finding_parts import (
    format_how_many_datasets,
    group_significant_rows_by_evaluator,
    make_row_finding,
)
from factaudit.audit.core.interval_methods import INFLUENCE, MOVER, WILSON
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import (
    CONSTANT_EVALUATOR,
    FEW_CLUSTERS,
    MACRO_MEAN,
    Row,
    average_dataset_rows,
    drop_row_intervals,
    explain_missing_row_intervals,
    explain_undefined_dataset_means,
)
from factaudit.audit.core.significance import p_above_other_figure, select_significant_rows
from factaudit.audit.core.statements import Statement, make_statement
from factaudit.errors import UsageError
from factaudit.stats.bacc_threshold import cross_validate_threshold, find_best_bacc_threshold
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import GroupClusterPairs
from factaudit.stats.roc import RocRankedScores, order_roc_scores_by_group
from factaudit.stats.undefined_values import name_ends, none_if_undefined
from factaudit.text.display_text import join_reasons

#: The figures that have a mean over data sets.
AVERAGED_FIGURES = ("auc", "average_precision", "tuned_tpr", "tuned_tnr", "tuned_bacc", "bacc")
#: Claims of this split tune a threshold for the others, where a data set has them.
DEV_SPLIT = "dev"


def compute_score_discrimination(
    judgements: Judgements, *, folds: int = 5, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """AUC, average precision and BAcc at a tuned threshold, of every evaluator that gives scores.

    folds: of the cross-validation; documents (clusters) stay whole.

    A row per dataset and evaluator over its n labelled claims with a score (n_unscored: labelled, without one): auc,
    average_precision (of finding errors, the least score first), error_rate (the share of errors: what guessing gets as
    average precision), bacc (of the predictions as they are, of the same claims), tuned_threshold (of best BAcc), tuned
    (``dev``: on the claims whose split is dev, tried on the others; else ``cross-validation``: each claim by the
    threshold of the other folds), tuned_tpr, tuned_tnr and tuned_bacc there. Figures have ``_min`` and ``_max`` (what
    they could be, whatever the missing scores) and, where there are intervals, ``_low`` and ``_high``. Row
    ``__macro__``: the means over datasets. An evaluator has no row of a dataset where it gives no score.
    """
    if folds < 2:
        raise UsageError(f"discrimination: expected at least 2 folds, found {folds}")
    dataset, names = judgements.dataset_codes, judgements.dataset_names
    is_dev = (judgements.claims["split"] == DEV_SPLIT).fillna(False).to_numpy(bool)
    size = len(names)
    rows: list[Row] = []
    for at, evaluator in enumerate(judgements.evaluators):
        score = judgements.score[at]
        if np.isnan(score).all():
            continue
        lacks = np.isnan(score) | (
            judgements.stated_prediction[at] != judgements.prediction[at]
        )  # a guess states no score either
        inside, outside = (np.flatnonzero((judgements.label >= 0) & which) for which in (~np.isnan(score), lacks))
        inside = inside[order_roc_scores_by_group(dataset[inside], score[inside], size)]
        outside = outside[np.argsort(dataset[outside], kind="stable")]
        scored = RocRankedScores(
            dataset[inside],
            judgements.label[inside].astype(np.int64),
            score[inside],
            judgements.cluster_codes[inside],
            size,
        )
        curves = {"auc": scored.auc(), "average_precision": scored.average_precision()}
        limits = (
            {key: curve.log_odds_intervals(intervals.confidence) for key, curve in curves.items()} if intervals else {}
        )
        least, most = _bound_discrimination_figures(scored, lacks[inside], dataset[outside], judgements.label[outside])
        ends = [np.searchsorted(dataset[rows], np.arange(size + 1)) for rows in (inside, outside)]
        for place, name in enumerate(names):
            if np.isnan(score[dataset == place]).all():
                continue
            mine, missing = (r[e[place] : e[place + 1]] for r, e in zip((inside, outside), ends, strict=True))
            row: Row = {"dataset": name, "evaluator": evaluator, "n": len(mine)}
            row |= {"n_unscored": int(np.isnan(score[missing]).sum()), "n_datasets": 1}
            row["error_rate"] = float((judgements.label[mine] == 0).mean()) if len(mine) else None
            for key, curve in curves.items():
                row[key] = none_if_undefined(curve.point[place])
                # Average precision with more errors can be higher though they all come last.
                row[f"{key}_min"] = none_if_undefined(np.fmin(least[key][place], curve.point[place]))
                row[f"{key}_max"] = none_if_undefined(np.fmax(most[key][place], curve.point[place]))
                if key in limits:
                    row |= name_ends(key, (end[place] for end in limits[key]))
            row |= _compute_discrimination_at_threshold(
                judgements, mine, lacks, judgements.prediction[at, mine], missing, ("bacc",), "", intervals
            )
            row |= _compute_discrimination_at_tuned_threshold(
                judgements, at, mine, lacks, missing, is_dev, folds, intervals
            )
            rows.append(row | {"reason": _explain_discrimination_row(judgements, mine, row)})
        # The average precision of a constant is the share of errors, which other claims would change.
        if is_constant_evaluator(evaluator):
            mine_rows = [row for row in rows if row["evaluator"] == evaluator]
            fixed = [key for key in AVERAGED_FIGURES if key != "average_precision"]
            drop_row_intervals(mine_rows, CONSTANT_EVALUATOR, *fixed)
    rows.sort(key=lambda row: row["dataset"])
    named = dict.fromkeys(row["evaluator"] for row in rows)
    return rows + [
        _average_dataset_discrimination(evaluator, [row for row in rows if row["evaluator"] == evaluator])
        for evaluator in named
    ]


def _bound_discrimination_figures(
    scored_claims: RocRankedScores, is_guessed: np.ndarray, unscored_groups: np.ndarray, unscored_labels: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The figures of all labelled claims, had the unscored ones the worst scores that there could be; and the best.

    is_guessed: the scored claims that count as unscored, too; unscored_groups, unscored_labels: of each other one.
    """
    if not len(unscored_groups):
        return scored_claims.points(), scored_claims.points()
    ties = scored_claims.ties_without(is_guessed) if is_guessed.any() else scored_claims.ties
    errors, others = (
        np.bincount(unscored_groups[unscored_labels == one], minlength=scored_claims.n_groups) for one in (0, 1)
    )
    both = np.diag([1, 1])[:, :, None] * np.stack([errors, others])  # each class alone, by label
    return ties.add_extreme_claims(both[1], both[0]).points(), ties.add_extreme_claims(both[0], both[1]).points()


def _compute_discrimination_at_tuned_threshold(
    judgements: Judgements,
    evaluator_position: int,
    scored_rows: np.ndarray,
    lacks_score: np.ndarray,
    unscored_rows: np.ndarray,
    is_dev: np.ndarray,
    folds: int,
    intervals: ClusterBootstrap | None,
) -> Row:
    """The tuned threshold and the rates at it, on claims that did not tune it."""
    dev, rest = scored_rows[is_dev[scored_rows]], scored_rows[~is_dev[scored_rows]]
    threshold, tried, prediction, how = (
        None,
        scored_rows,
        np.full(len(scored_rows), -1, dtype=np.int8),
        "cross-validation",
    )
    if len(dev) and len(rest):
        tried, unscored_rows, how = rest, unscored_rows[~is_dev[unscored_rows]], DEV_SPLIT
        threshold = find_best_bacc_threshold(judgements.label[dev], judgements.score[evaluator_position, dev])
        prediction = np.full(len(tried), -1, dtype=np.int8)
        if threshold is not None:
            prediction = (judgements.score[evaluator_position, tried] > threshold).astype(np.int8)
    elif len(scored_rows):
        seed = intervals.seed if intervals is not None else 0
        found = cross_validate_threshold(
            judgements.label[scored_rows],
            judgements.score[evaluator_position, scored_rows],
            judgements.cluster_codes[scored_rows],
            folds=folds,
            seed=seed,
        )
        if found is not None and (found.prediction >= 0).all():  # else some documents hold a class alone
            threshold, prediction = found.threshold, found.prediction
    if (prediction < 0).any():  # nothing was tried, so nothing is known of what is missing either
        tried, unscored_rows, prediction = tried[:0], unscored_rows[:0], prediction[:0]
    row: Row = {"tuned": how, "tuned_threshold": threshold}
    return row | _compute_discrimination_at_threshold(
        judgements, tried, lacks_score, prediction, unscored_rows, ("tpr", "tnr", "bacc"), "tuned_", intervals
    )


def _compute_discrimination_at_threshold(
    judgements: Judgements,
    scored_rows: np.ndarray,
    lacks_score: np.ndarray,
    predictions: np.ndarray,
    unscored_rows: np.ndarray,
    rate_names: Sequence[str],
    prefix: str,
    intervals: ClusterBootstrap | None,
) -> Row:
    """Rates of some claims under other predictions than the evaluator's own; bounds with the missing ones.

    scored_rows: claims with a score, of which some ``lacks_score`` a stated one; unscored_rows: all those without.
    """
    cells, everywhere = (
        confusion_counts.encode_label_prediction_cells(judgements.label[scored_rows], predictions),
        np.zeros(len(scored_rows), dtype=np.int64),
    )
    clusters = GroupClusterPairs.of(everywhere, judgements.cluster_codes[scored_rows], 1).count_codes(
        cells, confusion_counts.N_CONFUSION_CELLS
    )
    counts = clusters.sum_by_group(clusters.counts).reshape(1, 3, 3)
    over_all = np.zeros(1, dtype=bool)
    figures = confusion_counts.confusion_rates(counts, over_all)
    row: Row = {f"{prefix}{key}": none_if_undefined(figures[key][0]) for key in rate_names}
    # A guess is among the rows as predicted, and free in the bounds.
    known = ~lacks_score[scored_rows]
    certain = confusion_counts.count_confusion_cells(
        np.zeros(known.sum(), dtype=np.int64), 1, judgements.label[scored_rows][known], predictions[known]
    )
    nothing = np.full(len(unscored_rows), -1, dtype=np.int8)
    certain += confusion_counts.count_confusion_cells(
        np.zeros(len(unscored_rows), dtype=np.int64), 1, judgements.label[unscored_rows], nothing
    )
    bounds = confusion_counts.confusion_rate_bounds(certain)
    for key in rate_names:
        row |= name_ends(f"{prefix}{key}", (end[0] for end in bounds[key]), ("min", "max"))
    if intervals is not None:
        limits = confusion_counts.confusion_rate_intervals(clusters, over_all, intervals.confidence)
        for key in rate_names:
            row |= name_ends(f"{prefix}{key}", (end[0] for end in limits[key]))
    return row


def _average_dataset_discrimination(evaluator: str, dataset_rows: Sequence[Row]) -> Row:
    row: Row = {"dataset": MACRO_MEAN, "evaluator": evaluator}
    row |= average_dataset_rows(dataset_rows, AVERAGED_FIGURES, ("n", "n_unscored", "n_datasets"))
    shares = [one["error_rate"] for one in dataset_rows if one["error_rate"] is not None]
    row |= {"error_rate": sum(shares) / len(shares) if shares else None, "tuned": None, "tuned_threshold": None}
    why = [*explain_undefined_dataset_means(dataset_rows, AVERAGED_FIGURES), "each data set has a threshold of its own"]
    return row | {"reason": join_reasons([*why, explain_missing_row_intervals(row, "a data set has none")])}


def _explain_discrimination_row(judgements: Judgements, scored_rows: np.ndarray, row: Row) -> str | None:
    if not len(scored_rows):
        return "no labelled claim has a score"
    if judgements.label[scored_rows].min() == judgements.label[scored_rows].max():
        return "only one class among the labelled claims that have a score"
    of_class = [scored_rows[judgements.label[scored_rows] == label] for label in (0, 1)]
    cause = "all claims of one class are of one document"
    cause = "a single claim of one class" if min(map(len, of_class)) == 1 else cause
    untuned = "too few documents of each class to tune on some and try on others"
    unpredicted = "not of both classes some claim with a score has a prediction"
    return join_reasons(
        [
            untuned if row["tuned_bacc"] is None else "",
            unpredicted if row["bacc"] is None else "",
            explain_missing_row_intervals(row, cause, ("auc", "average_precision")),
            explain_missing_row_intervals(row, FEW_CLUSTERS, ("bacc", "tuned_tpr", "tuned_tnr", "tuned_bacc")),
        ]
    )


# ----------------------------------------------------------------------------------------------------------- findings


def _list_tuned_rows(audited_run: AuditedRun) -> list[Row]:
    rows = audited_run.per_dataset("discrimination", "tuned_bacc")
    return [row for row in rows if has_interval(row, "tuned_bacc") and has_interval(row, "bacc")]


def _select_rows_of_better_thresholds(audited_run: AuditedRun) -> list[Row]:
    """The rows whose tuned BAcc is significantly above the untuned one."""
    every = _list_tuned_rows(audited_run)
    p_values = [p_above_other_figure(audited_run, row, "tuned_bacc", row, "bacc") for row in every]
    return select_significant_rows(audited_run, every, p_values)


def _list_threshold_advice(audited_run: AuditedRun, evaluators: Sequence[str]) -> Iterator[tuple[str, Statement]]:
    """An evaluator that is not recommended and that a threshold raises above the best, were that one tuned, too."""
    best = {row["dataset"]: row for row in audited_run.rows("discrimination") if row["evaluator"] == evaluators[0]}
    rows = [
        row
        for row in _select_rows_of_better_thresholds(audited_run)
        if row["evaluator"] not in evaluators and row["evaluator"] not in audited_run.floors
        if (rival := best.get(row["dataset"], {}).get("bacc")) is not None
        if row["tuned_bacc"] > max(rival, best[row["dataset"]].get("tuned_bacc") or 0)
    ]
    if rows:
        row = max(rows, key=lambda each: each["tuned_bacc"] - best[each["dataset"]]["bacc"])
        text = "With a tuned threshold, {row.evaluator} has a balanced accuracy of {row.tuned_bacc:percent} on "
        text += "{row.dataset}; {best.evaluator} has {best.bacc:percent} as it is"
        text += " and {best.tuned_bacc:percent} tuned" * (best[row["dataset"]].get("tuned_bacc") is not None) + "."
        yield "Beware", make_statement(text, row=row, best=best[row["dataset"]])


def _find_wrong_discrimination_thresholds(audited_run: AuditedRun) -> Iterator[Finding]:
    """A threshold that leaves much of what the scores could tell."""
    every = _list_tuned_rows(audited_run)
    better = _select_rows_of_better_thresholds(audited_run)
    for _, sure, rows in group_significant_rows_by_evaluator(every, better):
        worst = max(sure, key=lambda row: row["tuned_bacc"] - row["bacc"])
        said = make_statement(
            "Another threshold would make {worst.evaluator} significantly more accurate{where}. On {worst.dataset} it "
            "would raise BAcc from {worst.bacc:percent} to {worst.tuned_bacc:percent} (TPR {worst.tuned_tpr:percent}, "
            "TNR {worst.tuned_tnr:percent}), measured on documents that did not tune it. The threshold tuned on all "
            "documents is {worst.tuned_threshold:threshold}. Check it on your own labels.",
            worst=worst,
            where=format_how_many_datasets(sure, rows),
        )
        keys = ("auc", "auc_low", "auc_high", "bacc", "tuned_bacc", "tuned_threshold", "n")
        yield make_row_finding("warn", worst, said, *keys)


# --------------------------------------------------------------------------------------------------------- declaration

_TUNED_RATES_DESCRIPTION = "at tuned thresholds, on claims that were not used for tuning"

AUDIT = Audit(
    name="discrimination",
    after="differences",
    title="What the scores are worth, whatever the threshold",
    question="How well do an evaluator's scores separate supported claims from errors, and at which threshold?",
    source="VC §5; DeLong et al. 1988; Obuchowski 1997",
    formula=(
        "AUC = probability that a supported claim scores higher than an error (ties count half). Average "
        "precision is for finding errors, the lowest score first. The tuned threshold maximises BAcc on other "
        "documents than those it is tested on (cross-validation, or the split dev), so it can be worse than the"
        " original threshold."
    ),
    text=(
        "Balanced accuracy depends on one threshold. An evaluator whose scores rank claims well can still have a "
        "bad threshold."
    ),
    remedy=(
        "If the tuned BAcc is well above the original one, set the threshold (`unigram:threshold=0.9`) and check"
        " it on claims that were not used for tuning. If AUC is near 0.5, no threshold helps: choose another "
        "evaluator."
    ),
    columns={
        **pick_shared_columns("dataset", "evaluator", "n", "n_unscored", "reason", "n_datasets"),
        "error_rate": Column("errors", "percent", "share of label 0, which is the average precision of guessing"),
        "auc": Column("AUC", "number", "area under the ROC curve", digits=3, bounds=True, interval=INFLUENCE),
        "average_precision": Column(
            "AP of errors", "number", "average precision of finding errors", digits=3, bounds=True, interval=INFLUENCE
        ),
        "bacc": Column(
            "BAcc as it is",
            "percent",
            "of the evaluator's own predictions, on the same claims",
            bounds=True,
            interval=MOVER,
        ),
        "tuned_bacc": Column("BAcc tuned", "percent", _TUNED_RATES_DESCRIPTION, bounds=True, interval=MOVER),
        "tuned_tpr": Column("TPR tuned", "percent", _TUNED_RATES_DESCRIPTION, bounds=True, interval=WILSON),
        "tuned_tnr": Column("TNR tuned", "percent", _TUNED_RATES_DESCRIPTION, bounds=True, interval=WILSON),
        "tuned_threshold": Column(
            "threshold",
            "number",
            (
                "the threshold with the best BAcc on all claims that may be used for tuning; a prediction is 1 if the "
                "score is above it"
            ),
            digits=3,
        ),
        "tuned": Column(
            "tuned on",
            "text",
            f"`{DEV_SPLIT}` (the claims of this split, if the data set has some) or `cross-validation`",
        ),
    },
    options={"folds": "number of folds of the cross-validation; claims of one document stay in one fold"},
    compute=compute_score_discrimination,
    applies=lambda judged: not np.isnan(judged.score).all(),
    advice=_list_threshold_advice,
    checks=(
        Check(
            "threshold",
            "Scores at the wrong threshold",
            "a threshold tuned on other documents makes a significantly better BAcc than the evaluator's own",
            _find_wrong_discrimination_thresholds,
            null="no threshold has a better BAcc on other documents than the evaluator's own",
            controls="Holm over all evaluators[ on all data sets]",
            figure="tuned_bacc",
            gravity=lambda evidence: evidence["tuned_bacc"] - evidence["bacc"],
        ),
    ),
    plot=PlotSpec(
        what="What scores are worth: AUC, and BAcc as it is and at a tuned threshold",
        keys=("auc", "bacc", "tuned_bacc"),
        guides={"auc": 0.5, "bacc": 0.5, "tuned_bacc": 0.5},
    ),
)
