"""How far do annotators agree, and does it matter how their labels become one?

Their agreement limits how well an evaluator can agree with them: the ceiling is the BAcc of one annotator against the
others. And the evaluator that is best under one label rule may not be under another (Bao et al. 2024).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from factaudit.arrays.evaluator_contrast import compare_evaluators
from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Column, pick_shared_columns
from factaudit.audit.core.checks import Check, group_rows
from factaudit.audit.core.interval_methods import DISCORDANT, MOVER, WILSON
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.tabulate import pick_figure
from factaudit.audit.rates import compute_evaluator_rates
from factaudit.stats.agreement import krippendorff_alpha
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.undefined_values import divide_or_undefined, none_if_undefined
from factaudit.tables import STATUSES, find_claim_positions_in_table
from factaudit.tables.annotations import label_claims_by_annotations

#: The two that disagree most: what most annotators say, and what any one of them objects to.
DEFAULT_LABEL_RULES = ("majority", "any_unattributable")
_ANNOTATORS_AS_EVALUATOR = "\0people"  # no evaluator can be called that
_ENDS = ("", "_min", "_max", "_low", "_high")


def compute_annotator_ceiling(judgements: Judgements, *, intervals: ClusterBootstrap | None = None) -> list[Row]:
    """BAcc of one annotator against the others, and of each evaluator against the same: a row per dataset, evaluator.

    Each annotator of a claim in turn is left out: the majority of the others is the label (ties have none), what the
    one left out said a prediction, and so is what the evaluator said. ``ceiling`` is the annotators' BAcc, ``bacc`` the
    evaluator's, ``room`` = ceiling - bacc, paired; n judgements of ``n_claims`` claims that two or more annotated;
    ``agree`` is the share of pairs of judgements that agree, ``alpha`` Krippendorff's.
    """
    if judgements.annotations is None:
        return []
    left_out = _leave_out_annotators(judgements)
    confidence = None if intervals is None else intervals.confidence
    rates = {(row["dataset"], row["evaluator"]): row for row in compute_evaluator_rates(left_out, intervals=intervals)}
    datasets = left_out.make_groups("claim")
    contrasts = {
        evaluator: compare_evaluators(left_out, datasets, 0, left_out.evaluators.index(evaluator), confidence)
        for evaluator in judgements.evaluators
    }
    rows = []
    for at, dataset in enumerate(left_out.dataset_names):
        agreement, people = _measure_agreement(judgements, dataset), rates[dataset, _ANNOTATORS_AS_EVALUATOR]
        ends = [end for end in _ENDS if f"bacc{end}" in people]
        for evaluator, contrast in contrasts.items():
            own = rates[dataset, evaluator]
            row: Row = {"dataset": dataset, "evaluator": evaluator, **agreement}
            row |= {"n": own["n"], "n_unscored": own["n_unscored"]}
            row |= {f"ceiling{end}": people[f"bacc{end}"] for end in ends}
            row |= {f"bacc{end}": own[f"bacc{end}"] for end in ends}
            rows.append(row | pick_figure("room", contrast.figures["bacc"], at) | {"reason": own["reason"]})
    return rows


def _leave_out_annotators(judgements: Judgements) -> Judgements:
    """A row per claim and annotator whose claim others annotated too: label, what the others say; the annotators are
    the first evaluator, what each of them said its prediction."""
    at, said, _ = _list_annotators_labels(judgements)
    ones, zeros = (np.bincount(at[said == value], minlength=len(judgements.claims)) for value in (1, 0))
    balance = (ones - zeros)[at] - np.where(said == 1, 1, -1)  # of the others
    kept = ((ones + zeros)[at] > 1) & (balance != 0)
    at, said, balance = at[kept], said[kept], balance[kept]
    ok = np.full((1, len(at)), STATUSES.index("ok"), dtype=np.int8)
    return replace(
        judgements,
        claims=judgements.claims.iloc[at].reset_index(drop=True),
        evaluators=(_ANNOTATORS_AS_EVALUATOR, *judgements.evaluators),
        label=(balance > 0).astype(np.int8),
        prediction=np.concatenate([said[None].astype(np.int8), judgements.prediction[:, at]]),
        score=np.concatenate([np.full((1, len(at)), np.nan), judgements.score[:, at]]),
        status=np.concatenate([ok, judgements.status[:, at]]),
        repeat_predictions=None,
        annotations=None,
    )


def _list_annotators_labels(judgements: Judgements) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The claim's row, the label (1 or 0) and the annotator of each judgement; undecided ones are left out."""
    assert judgements.annotations is not None
    table = judgements.annotations.dropna(subset="label")
    at = find_claim_positions_in_table(judgements.claims, table["claim_id"])
    return at, table["label"].to_numpy(dtype=np.int64), table["annotator"].to_numpy()


def _measure_agreement(judgements: Judgements, dataset: str) -> Row:
    """How many claims of a data set two or more annotated, and how far these agree."""
    at, said, annotator = _list_annotators_labels(judgements)
    inside = judgements.dataset_codes[at] == judgements.dataset_names.index(dataset)
    claim = np.unique(at[inside], return_inverse=True)[1]
    ones, total = np.bincount(claim, said[inside]).astype(np.int64), np.bincount(claim)
    apart = divide_or_undefined((ones * (total - ones)).sum(), (total * (total - 1) / 2).sum())
    return {
        "n_claims": int((total > 1).sum()),
        "n_annotators": len(set(annotator[inside])),
        "agree": none_if_undefined(1 - apart),
        "alpha": none_if_undefined(krippendorff_alpha(said[inside], claim, len(total)).point),
    }


def compute_rates_by_label_rule(
    judgements: Judgements, *, rules: Sequence[str] | None = None, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """The rates of each evaluator under each rule, and how far it is behind the best one under that rule.

    rules: of `factaudit.tables.annotations.label_claims_by_annotations`, also the name of an annotator; by default
    those that the run names, else `DEFAULT_LABEL_RULES`. A row per dataset, rule and evaluator, over the claims that
    the rule labels: bacc, tpr, tnr as in `compute_evaluator_rates`; best, the evaluator with the highest BAcc there;
    behind = its BAcc - this one's, paired.
    """
    if judgements.annotations is None:
        return []
    confidence = None if intervals is None else intervals.confidence
    rows: list[Row] = []
    for rule in dict.fromkeys(rules or judgements.label_rules or DEFAULT_LABEL_RULES):
        labels = judgements.claims["claim_id"].map(label_claims_by_annotations(rule, judgements.annotations))
        label = labels.astype("Int8").fillna(MISSING).to_numpy(dtype=np.int8)
        by_rule = replace(judgements, label=label, annotations=None)
        rates = compute_evaluator_rates(by_rule, intervals=intervals)
        for at, dataset in enumerate(by_rule.dataset_names):
            own = [row for row in rates if row["dataset"] == dataset]
            if (label[by_rule.dataset_codes == at] == MISSING).all():
                continue  # nobody annotated this data set
            best = max((row for row in own if row["bacc"] is not None), key=lambda row: row["bacc"], default=None)
            for row in own:
                made: Row = {"dataset": dataset, "rule": rule}
                made |= {key: value for key, value in row.items() if key.removesuffix(_end_of(key)) in _RATES}
                made["best"] = best and best["evaluator"]
                made |= {f"behind{end}": best and 0.0 for end in _ENDS if f"bacc{end}" in row}
                if best is not None and best is not row:
                    first, second = (by_rule.evaluators.index(one["evaluator"]) for one in (best, row))
                    contrast = compare_evaluators(by_rule, by_rule.make_groups("claim"), first, second, confidence)
                    made |= pick_figure("behind", contrast.figures["bacc"], at)
                rows.append(made | {"reason": row["reason"]})
    return sorted(rows, key=lambda row: row["dataset"])


_RATES = ("evaluator", "n", "n_unscored", "n_attributable", "n_unattributable", "bacc", "tpr", "tnr")


def _end_of(key: str) -> str:
    """``_low`` of ``bacc_low``; "" of a figure."""
    return next((end for end in _ENDS[1:] if key.endswith(end)), "")


# ------------------------------------------------------------------------------------------------------------- checks

_LABEL_RULE_PHRASES = {
    "majority": "majority",
    "any_unattributable": "any objection",
    "all_attributable": "unanimity",
}


def _list_ceilings(run: AuditedRun) -> Iterator[Row]:
    """A row per data set: the ceiling is the same beside every evaluator."""
    for rows in group_rows(run.rows("ceiling"), "dataset").values():
        yield {key: value for key, value in rows[0].items() if key != "evaluator"}


def _list_reversals(run: AuditedRun) -> Iterator[Row]:
    """Pairs of rules, each with a best evaluator that is behind under the other's: that of the two which is less so."""
    for rows in group_rows(run.rows("label_rules"), "dataset").values():
        by = {(row["rule"], row["evaluator"]): row for row in rows}
        best = {row["rule"]: row["best"] for row in rows if row["best"] is not None}
        for one, other in combinations(sorted(best), 2):
            behind = [by.get((rule, best[than])) for rule, than in ((one, other), (other, one))]
            pair = [row for row in behind if row is not None and row.get("behind_low") is not None]
            if best[one] == best[other] or len(pair) < 2:
                continue
            less = dict(min(pair, key=lambda row: row["behind_low"]))
            del less["evaluator"]
            rules = {"one": _LABEL_RULE_PHRASES.get(one, one), "other": _LABEL_RULE_PHRASES.get(other, other)}
            yield less | rules | {"evaluator_a": best[one], "evaluator_b": best[other]}


CEILING_CHECK = Check(
    id="ceiling",
    title="How far annotators agree",
    rows=_list_ceilings,
    figure="ceiling",
    limit=lambda limits: limits.min_rate,
    side="under",
    by=("dataset",),
    says=(
        "One annotator reaches a BAcc of {ceiling:percent} against the others{on}, which is the ceiling for "
        "evaluators, {verdict}."
    ),
    beyond="less than the {limit:limit} % that an evaluator must reach",
    advice="Above the ceiling, a higher BAcc does not mean a better evaluator: get labels that people agree on.",
    within="One annotator reaches a BAcc of {ceiling:percent} against the others{on}: the ceiling for evaluators.",
    by_figure=True,
    null="annotators agree with each other as much as an evaluator must agree with them, on every data set",
)
LABEL_RULE_CHECK = Check(
    id="label_rule",
    title="Which evaluator is best depends on the label rule",
    rows=_list_reversals,
    figure="behind",
    by=("dataset", "one", "other"),
    says=(
        "By {one} of several annotators' labels the best evaluator{on} is {evaluator_a}, by {other} it is "
        "{evaluator_b}, each {verdict} by the other rule."
    ),
    beyond="behind the other one",
    advice="Decide which rule your task needs, and name it beside every figure.",
    null="no two label rules have different best evaluators, on every data set",
)

AUDITS = (
    Audit(
        name="ceiling",
        after="stability",
        title="How far annotators agree: the ceiling of any evaluator",
        question="How well do annotators agree with each other, and how far is each evaluator from that?",
        source="Krippendorff 2011 (α)",
        formula=(
            "Ceiling = BAcc of one annotator against the majority of the others, for each annotator in turn. BAcc ="
            " the evaluator's, against the same majorities. Room = ceiling − BAcc, paired."
        ),
        text=(
            "If annotators disagree, an evaluator can be right and still be counted as wrong. Above the ceiling, a "
            "higher BAcc means nothing."
        ),
        remedy="If the ceiling is low, improve the guideline or ask more annotators before you compare evaluators. "
        "Near the "
        "ceiling, a higher BAcc means nothing.",
        columns={
            **pick_shared_columns("dataset", "evaluator"),
            "n_claims": Column("claims", "count", "claims with at least two labels"),
            "n_annotators": Column("annotators", "count", "people who labelled claims"),
            "n": Column(
                "judgements", "count", ("labels that have a majority of the other annotators and an evaluator's score")
            ),
            "n_unscored": Column("unscored", "count", "such labels without an evaluator's score"),
            "agree": Column("agree", "percent", "share of pairs of labels of a claim that agree"),
            "alpha": Column("Krippendorff's α", "number", "agreement beyond chance", digits=2),
            "ceiling": Column(
                "ceiling", "percent", "BAcc of one annotator against the others", bounds=True, interval=MOVER
            ),
            "bacc": Column(
                "BAcc", "percent", "BAcc of the evaluator against the same others", bounds=True, interval=MOVER
            ),
            "room": Column("room", "points", "ceiling − BAcc, paired", bounds=True, interval=DISCORDANT),
            **pick_shared_columns("reason"),
        },
        compute=compute_annotator_ceiling,
        applies=lambda judged: judged.has_double_labels,
        plot=PlotSpec(
            what="Evaluators, and the ceiling that annotators' agreement sets", keys=("bacc",), reference="ceiling"
        ),
        checks=(CEILING_CHECK,),
    ),
    Audit(
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
            "tpr": Column(
                "TPR", "percent", "share of supported claims that are accepted", bounds=True, interval=WILSON
            ),
            "tnr": Column("TNR", "percent", "share of errors that are found", bounds=True, interval=WILSON),
            "best": Column("best", "text", "the evaluator with the highest BAcc under the rule"),
            "behind": Column(
                "behind the best",
                "points",
                "BAcc of the best evaluator − BAcc of this one, paired",
                bounds=True,
                interval=DISCORDANT,
            ),
            **pick_shared_columns("reason"),
        },
        options={"rules": "`majority`, `any_unattributable`, `all_attributable` or an annotator's name"},
        compute=compute_rates_by_label_rule,
        applies=lambda judged: judged.has_double_labels,
        plot=PlotSpec(what="BAcc under each label rule", keys=("bacc",), groups=("dataset", "rule")),
        checks=(LABEL_RULE_CHECK,),
    ),
)
