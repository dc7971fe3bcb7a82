"""How far do annotators agree, and does it matter how their labels become one?

Their agreement limits how well an evaluator can agree with them: the ceiling is the BAcc of one annotator against the
others. And the evaluator that is best under one label rule may not be under another (Bao et al. 2024).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from factaudit.arrays.evaluator_contrast import compare_evaluators
from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.audit.core.audit_declaration import (
    Audit,
    AuditedRun,
    Check,
    Column,
    Finding,
    Severity,
    pick_shared_columns,
)
from factaudit.audit.core.decision_limits import (
    can_warn_without_intervals,
    is_significantly_above,
    read_decision_limits,
)
from factaudit.audit.core.finding_parts import (
    format_first_finding_names,
    group_finding_rows_by_keys,
    pick_finding_evidence,
)
from factaudit.audit.core.interval_methods import DISCORDANT, MOVER, WILSON
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.significance import p_above_limit, p_below_limit, select_significant_rows
from factaudit.audit.core.statements import make_statement
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


# ----------------------------------------------------------------------------------------------------------- findings


def _find_low_annotator_ceiling(audited_run: AuditedRun) -> Iterator[Finding]:
    """Labels on which people agree less than is asked of an evaluator; evaluators that are beyond the ceiling."""
    asked = read_decision_limits(audited_run).min_rate
    keys = ("ceiling", "ceiling_low", "ceiling_high", "agree", "alpha", "n_claims", "n_annotators")
    every = list(audited_run.rows("ceiling"))
    better = select_significant_rows(audited_run, every, [p_below_limit(audited_run, row, "room", 0) for row in every])
    first = [rows[0] for _, rows in group_finding_rows_by_keys(every, "dataset")]
    low = select_significant_rows(
        audited_run, first, [p_below_limit(audited_run, row, "ceiling", asked) for row in first]
    )
    for (dataset,), rows in group_finding_rows_by_keys(every, "dataset"):
        one = rows[0]
        if one["ceiling"] is None:
            continue
        told = (
            "On {one.dataset}, one annotator reaches a BAcc of {one.ceiling:percent} against the others, which is the "
        )
        told += "ceiling for evaluators"
        beyond = [row["evaluator"] for row in better if row["dataset"] == dataset]
        if beyond:
            agree = "agrees" if len(beyond) == 1 else "agree"
            told += f" ({{beyond}} significantly {agree} with them more than an annotator does)"
        sure = one in low
        if sure or (one["ceiling"] < asked and can_warn_without_intervals(every, "ceiling")):
            severity: Severity = "fail" if sure else "warn"
            told += (
                f". This is {'significantly ' if sure else ''}less than the {{asked:limit}} % that an evaluator must "
                "reach. Above the ceiling, a higher BAcc does not mean a better evaluator: get labels that "
                "people agree "
                "on."
            )
        elif is_significantly_above(one, "ceiling", asked):
            severity = "ok"
            told += ". This is significantly more than the {asked:limit} % that an evaluator must reach."
        else:
            continue
        statement = make_statement(told, one=one, asked=asked, beyond=format_first_finding_names(beyond))
        yield Finding(severity, None, dataset, statement, pick_finding_evidence(one, *keys))


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
}
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
        checks=(
            Check(
                "ceiling",
                "How far annotators agree",
                "annotators agree with each other less than an evaluator must agree with them",
                _find_low_annotator_ceiling,
                null="annotators agree with each other as much as an evaluator must agree with them, on every data set",
                controls="Holm over all evaluators' room[ on all data sets, and over the ceilings of all data sets]",
                figure="ceiling",
                gravity=lambda evidence: -evidence["ceiling"],
            ),
        ),
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
    ),
)
