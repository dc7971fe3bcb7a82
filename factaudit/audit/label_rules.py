"""What becomes of evaluators under other rules that make one label of several annotators' (Bao et al. 2024)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from factaudit.audit.core.checks import by_keys
from factaudit.audit.core.contrast import Contrast
from factaudit.audit.core.decisions import surely_above
from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, shared
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import MISSING, Judged
from factaudit.audit.core.plot import DotPlot
from factaudit.audit.core.rows import MACRO, Row, number, reasons
from factaudit.audit.core.words import points
from factaudit.audit.rates import rates
from factaudit.tables.annotations import labels_by

#: The two that disagree most: what most annotators say, and what any one of them objects to.
RULES = ("majority", "any_unattributable")
_FIGURES = (
    "n",
    "n_unscored",
    "n_attributable",
    "n_unattributable",
    *(f"{key}{end}" for key in ("bacc", "tpr", "tnr") for end in ("", "_min", "_max", "_low", "_high")),
)


def label_rules(judged: Judged, *, rules: Sequence[str] | None = None, intervals: Intervals | None = None) -> list[Row]:
    """The rates of each evaluator under each rule, and how far it is behind the best one under that rule.

    rules: of `factaudit.tables.annotations.labels_by`, also the name of an annotator; by default those that the run
    names, else `RULES`. A row per dataset, rule and evaluator, over the claims that the rule labels: bacc, tpr, tnr as
    in `rates`; best, the evaluator with the highest BAcc there; behind = its BAcc - this one's, paired; correlation =
    Pearson's r of the scores (of the predictions, where there are none) with the labels. ``mean`` makes soft labels, of
    which only the correlation is known.
    """
    if judged.annotations is None:
        return []
    rows: list[Row] = []
    for rule in dict.fromkeys(rules or judged.label_rules or RULES):
        found = labels_by(rule, judged.annotations).astype("float64")
        soft = judged.claims["claim_id"].map(found).to_numpy(dtype=np.float64, na_value=np.nan)
        by_rule = replace(judged, label=np.full(len(soft), MISSING, dtype=np.int8), annotations=None)
        if rule != "mean":
            by_rule = replace(by_rule, label=np.where(np.isnan(soft), MISSING, soft).astype(np.int8))
        rows += _rows(by_rule, soft, rule, intervals)
    rows.sort(key=lambda row: row["dataset"])
    return rows


def _rows(judged: Judged, soft: np.ndarray, rule: str, intervals: Intervals | None) -> Iterator[Row]:
    dataset, names = judged.datasets
    confidence = None if intervals is None else intervals.confidence

    @cache  # it is of all data sets
    def contrast(first: int, second: int) -> Contrast:
        return Contrast.of(judged, judged.group("claim"), first, second, confidence)

    place = {name: at for at, name in enumerate(names)}
    figures = [row for row in rates(judged, intervals=intervals) if row["dataset"] != MACRO]
    for (name,), group in by_keys(figures, "dataset"):
        inside = dataset == place[name]
        if np.isnan(soft[inside]).all():
            continue  # nobody annotated this data set
        ranked = [row for row in group if row["bacc"] is not None]
        best = max(ranked, key=lambda row: row["bacc"])["evaluator"] if ranked else None
        for row in group:
            at = judged.evaluators.index(row["evaluator"])
            made: Row = {"dataset": name, "rule": rule, "evaluator": row["evaluator"]}
            if rule == "mean":
                made |= {key: None for key in _FIGURES if key in row}
                made["n"], made["n_unscored"] = _sizes(judged, at, soft, inside)
            else:
                made |= {key: row[key] for key in _FIGURES if key in row}
            made["best"] = best
            if best is None or row["evaluator"] == best:
                ends = ("", "_min", "_max", *(("_low", "_high") if intervals is not None else ()))
                made |= {f"behind{end}": None if best is None else 0.0 for end in ends}
            else:
                made |= contrast(judged.evaluators.index(best), at).row(place[name], "bacc", "behind")
            made["correlation"] = _correlation(judged, at, soft, inside)
            told = "a soft label is neither right nor wrong: rates need 1 or 0" if rule == "mean" else row["reason"]
            alone = "" if made["correlation"] is not None else "no correlation: scores or labels do not vary"
            yield made | {"reason": reasons([told or "", alone])}


def _sizes(judged: Judged, at: int, soft: np.ndarray, inside: np.ndarray) -> tuple[int, int]:
    labelled = inside & ~np.isnan(soft)
    scored = int((labelled & (judged.prediction[at] >= 0)).sum())
    return scored, int(labelled.sum()) - scored


def _correlation(judged: Judged, at: int, soft: np.ndarray, inside: np.ndarray) -> float | None:
    said = judged.score[at]
    if np.isnan(said[inside]).all():
        said = np.where(judged.prediction[at] >= 0, judged.prediction[at], np.nan)
    both = inside & ~np.isnan(said) & ~np.isnan(soft)
    if both.sum() < 3 or np.ptp(said[both]) == 0 or np.ptp(soft[both]) == 0:
        return None
    return number(np.corrcoef(said[both], soft[both])[0, 1])


def _other_best(audited: Audited) -> Iterator[Finding]:
    """The best evaluator of one rule is surely behind under another, whose best is surely behind under the first."""
    for (dataset,), rows in by_keys(audited.rows("label_rules"), "dataset"):
        by = {(row["rule"], row["evaluator"]): row for row in rows}
        best = {row["rule"]: row["best"] for row in rows if row["best"] is not None}
        for one, other in ((a, b) for a in best for b in best if a < b and best[a] != best[b]):
            first, second = by.get((other, best[one])), by.get((one, best[other]))
            if first is None or second is None:  # a floor
                continue
            if surely_above(first, "behind", 0) and surely_above(second, "behind", 0):
                yield Finding(
                    "fail",
                    f"{best[one]} / {best[other]}",
                    dataset,
                    f"Which evaluator is best on {dataset} depends on how annotators' labels are made one: "
                    f"{best[one]} by {_named(one)} ({points(second['behind'])} points of BAcc before {best[other]}), "
                    f"{best[other]} by {_named(other)} ({points(first['behind'])} before {best[one]}): say which rule "
                    "your task needs, and name it beside every figure.",
                    {"bacc_a": by[one, best[one]]["bacc"], "bacc_b": by[other, best[other]]["bacc"]},
                )


def _named(rule: str) -> str:
    return _RULE_WORDS.get(rule, rule)


_RULE_WORDS = {
    "majority": "majority",
    "any_unattributable": "any objection",
    "all_attributable": "unanimity",
    "mean": "their mean",
}
AUDIT = Audit(
    name="label_rules",
    place=132,
    title="Under other rules for several annotators",
    question="Does which evaluator is best depend on how several annotators' labels are made one?",
    source="Bao et al. 2024, FaithBench",
    formula="majority: what more annotators say; any objection: 0 as soon as one says 0; unanimity: 1 only where all "
    "say 1. Behind = BAcc of the rule's best evaluator − this one's, paired on the same claims.",
    text="All other sections are by the rule that the claims' labels were made with.",
    columns={
        **shared("dataset"),
        "rule": Column("rule", "text", "how labels were made, or an annotator's name", key=True, values=_RULE_WORDS),
        **shared("evaluator", "n", "n_unscored"),
        "n_attributable": Column("attributable", "count", "scored claims that are 1 under the rule"),
        "n_unattributable": Column("unattributable", "count", "scored claims that are 0 under the rule"),
        "bacc": Column("BAcc", "percent", "(TPR + TNR) / 2 under the rule", bounds=True, interval=True),
        "tpr": Column("TPR", "percent", "share of attributable claims found so", bounds=True, interval=True),
        "tnr": Column("TNR", "percent", "share of unattributable claims found so", bounds=True, interval=True),
        "best": Column("best", "text", "the evaluator with the highest BAcc under the rule"),
        "behind": Column("behind the best", "points", "its BAcc − this one's, paired", bounds=True, interval=True),
        "correlation": Column("r", "number", "Pearson's r of the scores with the (soft) labels", digits=2),
        **shared("reason"),
    },
    options={"rules": "`majority`, `any_unattributable`, `all_attributable`, `mean` or an annotator's name"},
    compute=label_rules,
    applies=lambda judged: judged.twice,
    plots=(DotPlot(what="BAcc under each label rule", keys=("bacc",), panels="rule"),),
    checks=(
        Check(
            "label_rule",
            "Which evaluator is best depends on the label rule",
            "the best evaluators of two rules are each surely behind under the other's",
            _other_best,
        ),
    ),
)
