"""Checks on what limits every figure of a run: claims that were not scored, and too few documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from factaudit.audit.core.checks import MAX_GAP, by_evaluator, evidence_of, names, of_datasets
from factaudit.audit.core.declare import Audited, Check, Column, Finding
from factaudit.audit.core.rows import ALL, Row
from factaudit.audit.core.words import round_points
from factaudit.text.printable import count

#: A bootstrap of fewer clusters gives intervals that are too narrow (Cameron, Gelbach & Miller 2008).
MIN_CLUSTERS = 10


def _unscored(audited: Audited) -> Iterator[Finding]:
    """Unscored claims, and guesses, that could change what is said of an evaluator."""
    every = list(audited.per_dataset("rates"))
    biases = {
        (row["dataset"], row["evaluator"]): row
        for row in audited.per_dataset("quantification", "bias")
        if row["system"] == ALL and row["level"] == "claim"
    }
    orders = {
        (row["dataset"], row["evaluator"]): row
        for row in audited.per_dataset("ranking", "error_rate_min")
        if row["level"] == "claim"
    }
    for evaluator, mine in by_evaluator(every):
        lacking = [row for row in mine if row["n_unscored"] or row.get("n_guessed")]
        none = [row for row in lacking if not row["n"]]
        open_questions = {row["dataset"]: _questions(row, every, biases, orders) for row in lacking if row["n"]}
        matter = [dataset for dataset, questions in open_questions.items() if questions]
        total = sum(row["n_unscored"] + (row.get("n_guessed") or 0) for row in lacking)
        if none:
            where = of_datasets(none, mine) or f" on {none[0]['dataset']}"
            text = f"{evaluator} has scored no claim{where}: judge them first."
            yield Finding("fail", evaluator, none[0]["dataset"], text, {"n_unscored": total})
        elif matter:
            worst = max((row for row in lacking if row["dataset"] in matter), key=lambda row: row["n_unscored"])
            lost = worst["n_unscored"] + (worst.get("n_guessed") or 0)
            more = f" Something is open so{of_datasets(matter, mine)}." if len(mine) > 1 else ""
            yield Finding(
                "warn",
                evaluator,
                worst["dataset"],
                f"{count(lost, 'claim')} on {worst['dataset']} that {evaluator} did not score, or that were guessed, "
                f"could change {' and '.join(open_questions[worst['dataset']])}: judge them again before you conclude."
                f"{more}",
                evidence_of(worst, "n", "n_unscored", "gap", "gap_min", "gap_max", "bacc", "bacc_min", "bacc_max"),
            )
        elif mine:
            said = f"{count(total, 'unscored claim')} of {evaluator} cannot change any of these conclusions."
            yield Finding(
                "ok",
                evaluator,
                None,
                said if total else f"{evaluator} has scored every labelled claim.",
                {"n_unscored": total},
            )
    named = [each["name"] for each in audited.about.get("evaluators") or [] if each["name"] not in audited.floors]
    judged = {row["evaluator"] for row in every}
    for name in named if judged else ():
        if name not in judged:
            yield Finding("fail", name, None, f"{name} has no verdict on any claim.")


_ByPair = Mapping[tuple[str, str], Row]


def _questions(row: Row, every: Sequence[Row], biases: _ByPair, orders: _ByPair) -> list[str]:
    """What the bounds of an evaluator's rates on one dataset leave open."""
    dataset, evaluator = row["dataset"], row["evaluator"]
    found = []
    if row["gap"] is not None and not _settled(row, "gap", -MAX_GAP, MAX_GAP):
        found.append(f"whether its TPR and TNR are over {round_points(MAX_GAP)} points apart")
    bias = biases.get((dataset, evaluator))
    if bias is not None and not _settled(bias, "bias", 0):
        found.append("whether its error rate is too low or too high")
    order = orders.get((dataset, evaluator))
    if order is not None and order["error_rate_min"] < order["error_rate_max"]:
        found.append("how many pairs of systems it misorders")
    rivals = [
        other["evaluator"]
        for other in every
        if other["dataset"] == dataset and other["evaluator"] != evaluator and _could_swap(row, other)
    ]
    return [*found, f"whether its BAcc is above that of {names(rivals)}"] if rivals else found


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
    claims = [each for each in audited.about.get("claims") or [] if each.get("n_clusters") is not None]
    few = [each for each in claims if each["n_clusters"] < MIN_CLUSTERS]
    if few:
        worst = min(few, key=lambda each: each["n_clusters"])
        clusters = worst["n_clusters"]
        what = "document or response" if clusters == 1 else "documents or responses"
        more = f" Documents are few{of_datasets(few, claims)}." if len(claims) > 1 else ""
        yield Finding(
            "warn",
            None,
            worst["dataset"],
            f"All claims of {worst['dataset']} come from {clusters} {what}, so that intervals say little, where "
            f"there are any: judge more documents before you rely on them.{more}",
            {"n_clusters": clusters, "n": worst["n_claims"]},
        )


CAVEATS = (
    Check(
        "unscored",
        "Unscored claims that matter",
        "unscored claims that could change one of these conclusions",
        _unscored,
        claims="unscored",
    ),
    Check(
        "clusters",
        "Too few documents for intervals",
        f"fewer than {MIN_CLUSTERS} documents or responses: intervals are too narrow",
        _clusters,
        {"n_clusters": Column("clusters", "count")},
    ),
)
