"""Are evaluators ranked alike whichever rule makes one label of several annotators'? (Bao et al. 2024)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from factaudit.arrays.evaluator_contrast import EvaluatorContrast, compare_evaluators
from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Check, Column, Finding, pick_shared_columns
from factaudit.audit.core.finding_parts import group_finding_rows_by_keys
from factaudit.audit.core.interval_methods import DISCORDANT, MOVER, WILSON
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import MACRO_MEAN, Row
from factaudit.audit.core.significance import p_above_limit, select_significant_rows
from factaudit.audit.core.statements import make_statement
from factaudit.audit.core.tabulate import pick_figure
from factaudit.audit.rates import compute_evaluator_rates
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.undefined_values import none_if_undefined
from factaudit.tables.annotations import label_claims_by_annotations
from factaudit.text.display_text import join_reasons

#: The two that disagree most: what most annotators say, and what any one of them objects to.
DEFAULT_LABEL_RULES = ("majority", "any_unattributable")
_RATE_FIGURES = (
    "n",
    "n_unscored",
    "n_attributable",
    "n_unattributable",
    *(f"{key}{end}" for key in ("bacc", "tpr", "tnr") for end in ("", "_min", "_max", "_low", "_high")),
)


def compute_rates_by_label_rule(
    judgements: Judgements, *, rules: Sequence[str] | None = None, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """The rates of each evaluator under each rule, and how far it is behind the best one under that rule.

    rules: of `factaudit.tables.annotations.label_claims_by_annotations`, also the name of an annotator; by default
    those that
    the run names, else `DEFAULT_LABEL_RULES`. A row per dataset, rule and evaluator, over the claims that the rule
    labels: bacc, tpr, tnr as in `compute_evaluator_rates`; best, the evaluator with the highest BAcc there; behind =
    its BAcc - this one's, paired; correlation = Pearson's r of the scores (of the predictions, where there are none)
    with the labels. ``mean`` makes soft labels, of which only the correlation is known.
    """
    if judgements.annotations is None:
        return []
    rows: list[Row] = []
    for rule in dict.fromkeys(rules or judgements.label_rules or DEFAULT_LABEL_RULES):
        found = label_claims_by_annotations(rule, judgements.annotations).astype("float64")
        soft = judgements.claims["claim_id"].map(found).to_numpy(dtype=np.float64, na_value=np.nan)
        by_rule = replace(judgements, label=np.full(len(soft), MISSING, dtype=np.int8), annotations=None)
        if rule != "mean":
            by_rule = replace(by_rule, label=np.where(np.isnan(soft), MISSING, soft).astype(np.int8))
        rows += _build_label_rule_rows(by_rule, soft, rule, intervals)
    rows.sort(key=lambda row: row["dataset"])
    return rows


def _build_label_rule_rows(
    judgements: Judgements, soft_labels: np.ndarray, rule: str, intervals: ClusterBootstrap | None
) -> Iterator[Row]:
    dataset, names = judgements.dataset_codes, judgements.dataset_names
    confidence = None if intervals is None else intervals.confidence

    @cache  # it is of all data sets
    def contrast(first: int, second: int) -> EvaluatorContrast:
        return compare_evaluators(judgements, judgements.make_groups("claim"), first, second, confidence)

    place = {name: at for at, name in enumerate(names)}
    figures = [row for row in compute_evaluator_rates(judgements, intervals=intervals) if row["dataset"] != MACRO_MEAN]
    for (name,), group in group_finding_rows_by_keys(figures, "dataset"):
        inside = dataset == place[name]
        if np.isnan(soft_labels[inside]).all():
            continue  # nobody annotated this data set
        ranked = [row for row in group if row["bacc"] is not None]
        best = max(ranked, key=lambda row: row["bacc"])["evaluator"] if ranked else None
        for row in group:
            at = judgements.evaluators.index(row["evaluator"])
            made: Row = {"dataset": name, "rule": rule, "evaluator": row["evaluator"]}
            if rule == "mean":
                made |= {key: None for key in _RATE_FIGURES if key in row}
                made["n"], made["n_unscored"] = _count_claims_labelled_by_rule(judgements, at, soft_labels, inside)
            else:
                made |= {key: row[key] for key in _RATE_FIGURES if key in row}
            made["best"] = best
            if best is None or row["evaluator"] == best:
                ends = ("", "_min", "_max", *(("_low", "_high") if intervals is not None else ()))
                made |= {f"behind{end}": None if best is None else 0.0 for end in ends}
            else:
                found = contrast(judgements.evaluators.index(best), at).figures["bacc"]
                made |= pick_figure("behind", found, place[name])
            made["correlation"] = _correlate_scores_with_label_rule(judgements, at, soft_labels, inside)
            told = "a soft label is neither right nor wrong: rates need 1 or 0" if rule == "mean" else row["reason"]
            alone = "" if made["correlation"] is not None else "no correlation: scores or labels do not vary"
            yield made | {"reason": join_reasons([told or "", alone])}


def _count_claims_labelled_by_rule(
    judgements: Judgements, evaluator_position: int, soft_labels: np.ndarray, in_dataset: np.ndarray
) -> tuple[int, int]:
    labelled = in_dataset & ~np.isnan(soft_labels)
    scored = int((labelled & (judgements.prediction[evaluator_position] >= 0)).sum())
    return scored, int(labelled.sum()) - scored


def _correlate_scores_with_label_rule(
    judgements: Judgements, evaluator_position: int, soft_labels: np.ndarray, in_dataset: np.ndarray
) -> float | None:
    said = judgements.score[evaluator_position]
    if np.isnan(said[in_dataset]).all():
        said = np.where(
            judgements.prediction[evaluator_position] >= 0, judgements.prediction[evaluator_position], np.nan
        )
    both = in_dataset & ~np.isnan(said) & ~np.isnan(soft_labels)
    if both.sum() < 3 or np.ptp(said[both]) == 0 or np.ptp(soft_labels[both]) == 0:
        return None
    return none_if_undefined(np.corrcoef(said[both], soft_labels[both])[0, 1])


def _find_label_rule_dependence(audited_run: AuditedRun) -> Iterator[Finding]:
    """The best evaluator of one rule is surely behind under another, whose best is surely behind under the first."""
    every = list(audited_run.rows("label_rules"))
    behind = select_significant_rows(
        audited_run, every, [p_above_limit(audited_run, row, "behind", 0) for row in every]
    )
    for (dataset,), rows in group_finding_rows_by_keys(every, "dataset"):
        by = {(row["rule"], row["evaluator"]): row for row in rows}
        best = {row["rule"]: row["best"] for row in rows if row["best"] is not None}
        for one, other in ((a, b) for a in best for b in best if a < b and best[a] != best[b]):
            first, second = by.get((other, best[one])), by.get((one, best[other]))
            if first is None or second is None:  # a floor
                continue
            if first in behind and second in behind:
                rules = [_LABEL_RULE_PHRASES.get(rule, rule) for rule in (one, other)]
                yield Finding(
                    "fail",
                    f"{best[one]} / {best[other]}",
                    dataset,
                    make_statement(
                        "On {first.dataset}, the best evaluator depends on the rule that combines several annotators' "
                        "labels. By {one} it is {first.evaluator}, {second.behind:points} points of BAcc ahead of "
                        "{second.evaluator}. By {other} it is {second.evaluator}, {first.behind:points} points "
                        "ahead of "
                        "{first.evaluator}. Decide which rule your task needs, and name it beside every figure.",
                        one=rules[0],
                        other=rules[1],
                        first=first,
                        second=second,
                    ),
                    {"bacc_a": by[one, best[one]]["bacc"], "bacc_b": by[other, best[other]]["bacc"]}
                    | {"behind": max(first["behind"], second["behind"])},
                )


_LABEL_RULE_PHRASES = {
    "majority": "majority",
    "any_unattributable": "any objection",
    "all_attributable": "unanimity",
    "mean": "their mean",
}
AUDIT = Audit(
    name="label_rules",
    after="ceiling",
    title="Under other rules for several annotators",
    question="Does the choice of the best evaluator depend on how the labels of several annotators are combined?",
    source="Bao et al. 2024, FaithBench",
    formula=(
        "Majority: what most annotators say. Any objection: 0 as soon as one annotator says 0. Unanimity: 1 "
        "only if all say 1 and nobody is undecided. Behind = BAcc of the best evaluator by the rule − BAcc of "
        "this one, paired on the same claims."
    ),
    text="All other sections use the rule with which the claims' labels were made.",
    remedy=(
        "If the best evaluator changes with the rule, choose the rule by what an error costs you, before you "
        "look at the results, and report both."
    ),
    columns={
        **pick_shared_columns("dataset"),
        "rule": Column(
            "rule",
            "text",
            "how labels were combined, or the name of an annotator",
            key=True,
            values=_LABEL_RULE_PHRASES,
        ),
        **pick_shared_columns("evaluator", "n", "n_unscored"),
        "n_attributable": Column("attributable", "count", "scored claims with label 1 under the rule"),
        "n_unattributable": Column("unattributable", "count", "scored claims with label 0 under the rule"),
        "bacc": Column("BAcc", "percent", "(TPR + TNR) / 2 under the rule", bounds=True, interval=MOVER),
        "tpr": Column("TPR", "percent", "share of supported claims that are accepted", bounds=True, interval=WILSON),
        "tnr": Column("TNR", "percent", "share of errors that are found", bounds=True, interval=WILSON),
        "best": Column("best", "text", "the evaluator with the highest BAcc under the rule"),
        "behind": Column(
            "behind the best",
            "points",
            "BAcc of the best evaluator − BAcc of this one, paired",
            bounds=True,
            interval=DISCORDANT,
        ),
        "correlation": Column("r", "number", "Pearson's r of the scores with the (soft) labels", digits=2),
        **pick_shared_columns("reason"),
    },
    options={"rules": "`majority`, `any_unattributable`, `all_attributable`, `mean` or an annotator's name"},
    compute=compute_rates_by_label_rule,
    applies=lambda judged: judged.has_double_labels,
    plot=PlotSpec(what="BAcc under each label rule", keys=("bacc",), groups=("dataset", "rule")),
    checks=(
        Check(
            "label_rule",
            "Which evaluator is best depends on the label rule",
            "the best evaluator by one label rule is significantly behind by another rule, and the reverse",
            _find_label_rule_dependence,
            null="no two label rules have different best evaluators, on every data set",
            controls="Holm over all evaluators and rules[ on all data sets]",
            figure="behind",
        ),
    ),
)
