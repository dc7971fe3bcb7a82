"""Checks on what limits every figure of a run: claims that were not scored, and too few documents."""

from __future__ import annotations

from collections.abc import Iterator

from factaudit.audit.core.checks import MAX_GAP, by_evaluator, evidence_of
from factaudit.audit.core.declare import Audited, Check, Column, Finding
from factaudit.audit.core.rows import ALL, Row, counted
from factaudit.audit.core.words import points

#: A bootstrap of fewer clusters gives intervals that are too narrow (Cameron, Gelbach & Miller 2008).
MIN_CLUSTERS = 10


def _unscored(audited: Audited) -> Iterator[Finding]:
    """Unscored claims that could change what is said of an evaluator."""
    every = list(audited.per_dataset("rates"))
    biases = {
        (row["dataset"], row["evaluator"]): row
        for row in audited.per_dataset("quantification", "bias")
        if row["system"] == ALL and row["level"] == "claim"
    }
    for evaluator, mine in by_evaluator(every):
        lacking = [row for row in mine if row["n_unscored"]]
        changed = False
        for row in lacking:
            dataset = row["dataset"]
            if not row["n"]:
                changed = True
                all_of_them = counted(row["n_unscored"], "claim")
                text = f"On {dataset}, {evaluator} has scored none of {all_of_them}: judge them first."
                yield Finding("fail", evaluator, dataset, text, evidence_of(row, "n", "n_unscored"))
                continue
            open_questions = []
            if row["gap"] is not None and not _settled(row, "gap", -MAX_GAP, MAX_GAP):
                open_questions.append(f"whether its TPR and TNR are over {points(MAX_GAP)} points apart")
            bias = biases.get((dataset, evaluator))
            if bias is not None and not _settled(bias, "bias", 0):
                open_questions.append("whether its error rate is too low or too high")
            rivals = [
                other["evaluator"]
                for other in every
                if other["dataset"] == dataset and other["evaluator"] != evaluator and _could_swap(row, other)
            ]
            if rivals:
                open_questions.append(f"whether its BAcc is above that of {', '.join(rivals)}")
            if not open_questions:
                continue
            changed = True
            yield Finding(
                "warn",
                evaluator,
                dataset,
                f"On {dataset}, {counted(row['n_unscored'], 'claim')} that {evaluator} did not score could change "
                f"{' and '.join(open_questions)}: judge them again before you conclude.",
                evidence_of(row, "n", "n_unscored", "gap", "gap_min", "gap_max", "bacc", "bacc_min", "bacc_max"),
            )
        if mine and not changed:
            total = sum(row["n_unscored"] for row in lacking)
            said = f"{counted(total, 'unscored claim')} of {evaluator} cannot change any of these conclusions."
            none = f"{evaluator} has scored every labelled claim."
            yield Finding("ok", evaluator, None, said if total else none, {"n_unscored": total})
    judged = {row["evaluator"] for row in audited.rows("rates")}
    for each in audited.about.get("evaluators") or []:
        if judged and each["name"] not in judged | audited.floors:
            yield Finding("fail", each["name"], None, f"{each['name']} has no verdict on any claim.")


def _settled(row: Row, key: str, *limits: float) -> bool:
    """Whether the bounds of a figure are on the same side of every limit."""
    low, high = row[f"{key}_min"], row[f"{key}_max"]
    return all(not low < limit < high for limit in limits)


def _could_swap(row: Row, other: Row) -> bool:
    """Whether two evaluators could change places by BAcc if all claims were scored."""
    if row["bacc"] is None or other["bacc"] is None or row["bacc"] == other["bacc"]:
        return False
    lower, upper = sorted((row, other), key=lambda each: each["bacc"])
    return lower["bacc_max"] >= upper["bacc_min"]


def _clusters(audited: Audited) -> Iterator[Finding]:
    """Too few documents or responses for intervals that hold."""
    if not any("tpr_low" in row for row in audited.rows("rates")):
        return
    for each in audited.about.get("claims") or []:
        clusters = each.get("n_clusters")
        if clusters is not None and clusters < MIN_CLUSTERS:
            what = "document or response" if clusters == 1 else "documents or responses"
            yield Finding(
                "warn",
                None,
                each["dataset"],
                f"On {each['dataset']}, all claims come from {clusters} {what}, so that intervals are too narrow where "
                "there are any: judge more documents before you rely on them.",
                {"n_clusters": clusters, "n": each["n_claims"]},
            )


CAVEATS = (
    Check(
        "unscored",
        "Unscored claims that matter",
        "unscored claims that could change one of these conclusions",
        _unscored,
    ),
    Check(
        "clusters",
        "Too few documents for intervals",
        f"fewer than {MIN_CLUSTERS} documents or responses: intervals are too narrow",
        _clusters,
        {"n_clusters": Column("clusters", "count")},
    ),
)
