"""How names, groups and figures are put in words: one place for tables, figures and text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Row = dict[str, Any]

#: Stands for an undefined figure; its reason is given beside it.
UNDEFINED = "–"

_SPECIAL = {
    ("dataset", "__macro__"): "mean over datasets",
    ("dataset", "__all__"): "all datasets",
    ("system", "__all__"): "all systems",
    ("group", "__all__"): "all systems",
    ("calibration_system", "__cv__"): "mean, each in turn",
}
_METHODS = {
    "none": "no adjustment",
    "adjusted_counts": "adjusted counts",
    "zero_bias_threshold": "threshold: zero bias",
    "bacc_threshold": "threshold: best BAcc",
}
#: Columns that say what a row is about, in the order in which they are shown; all others hold figures.
KEYS = (
    "dataset",
    "task",
    "level",
    "group",
    "class",
    "system",
    "system_a",
    "system_b",
    "evaluator",
    "evaluator_a",
    "evaluator_b",
    "chunked_evaluator",
    "method",
    "calibration_system",
    "r2_diff",
    "bin",
)


def name(column: str, value: Any) -> str:
    """A key's value as a reader should see it: ``__macro__`` is "mean over datasets", null is "–"."""
    if value is None:
        return UNDEFINED
    if column == "method":
        return _METHODS.get(str(value), str(value))
    if column in ("key", "rate"):
        return _LABELS.get(str(value), str(value))
    return _SPECIAL.get((column, str(value)), str(value))


def is_total(value: Any) -> bool:
    """Whether a key's value stands for several others (``__all__``, ``__macro__``)."""
    return value in ("__all__", "__macro__")


def repeats(row: Row) -> bool:
    """Whether a row is the mean over a single dataset, which has a row of its own."""
    return row.get("dataset") == "__macro__" and row.get("n_datasets") == 1


def group_columns(rows: Sequence[Row], known: Iterable[str]) -> list[str]:
    """The columns that rows are grouped ``by``: `dataset`, and whatever text columns an experiment asked for.

    ``known`` are the audit's other key columns. `dataset` is left out where it is all datasets and another column tells
    the rows apart.
    """
    taken = {*known, "reason", "labelled_order", "predicted_order", "labelled_system", "predicted_system", "dataset"}
    others = [
        column
        for column in dict.fromkeys(column for row in rows for column in row)
        if column not in taken
        and any(isinstance(row.get(column), str) for row in rows)
        and all(row.get(column) is None or isinstance(row[column], str) for row in rows)
    ]
    if others and all(row.get("dataset") in (None, "__all__") for row in rows):
        return others
    return ["dataset", *others]


def group_label(row: Row, columns: Sequence[str]) -> str:
    """One label for a row's group: ``MediaSum`` or ``MediaSum · numbers``."""
    return " · ".join(name(column, row.get(column)) for column in columns)


def unique(values: Iterable[Any]) -> list[Any]:
    """Distinct values in order of first appearance."""
    return list(dict.fromkeys(values))


def in_order(rows: Sequence[Row], evaluators: Sequence[str]) -> list[Row]:
    """Rows with ``evaluators`` in this order within each group of rows; the groups, and all else, as they are."""
    if not any("evaluator" in row or "evaluator_a" in row for row in rows):
        return list(rows)
    place = {evaluator: at for at, evaluator in enumerate(evaluators)}
    columns = [*group_columns(rows, KEYS), "dataset", "task", "level"]
    groups: dict[tuple[Any, ...], int] = {}

    def key(row: Row) -> tuple[int, ...]:
        group = groups.setdefault(tuple(row.get(column) for column in columns), len(groups))
        mine = [row.get(column) for column in ("evaluator", "evaluator_a", "evaluator_b")]
        return group, *sorted(place.get(one, len(place)) for one in mine if one is not None)

    return sorted(rows, key=key)


# --- figures in words ------------------------------------------------------------------------------------------------

_PERCENT = {"tpr", "tnr", "fpr", "fnr", "bacc", "ppr", "labelled", "predicted", "detectable"}
_PERCENT |= {"score", "init_score", "respond_ratio", "human", "human_annotated", "human_respond_ratio"}
_POINTS = {"bias", "gap", "difference", "change", "slope", "mae", "rmse"}
_LABELS = {
    "tpr": "TPR",
    "tnr": "TNR",
    "fpr": "FPR",
    "fnr": "FNR",
    "bacc": "BAcc",
    "ppr": "PPR",
    "n_attributable": "label 1",
    "n_unattributable": "label 0",
    "n_no_r2": "no R2",
    "n_a": "n a",
    "n_b": "n b",
    "n_pos": "label 1",
    "n_neg": "label 0",
    "iou": "IoU",
    "kappa": "Cohen's κ",
    "kendall_tau": "Kendall τ-b",
    "pearson_r": "Pearson r",
    "pearson_p": "Pearson p",
    "spearman_r": "Spearman r",
    "spearman_p": "Spearman p",
    "mae": "MAE",
    "rmse": "RMSE",
    "auc": "AUC",
    "f1": "F1",
    "score": "FActScore",
    "init_score": "FActScore without penalty",
    "num_facts_per_response": "facts per response",
    "human": "people's",
    "human_annotated": "people's, all annotated",
    "r2_diff": "R2-diff",
    "chunk_size": "words in a chunk",
    "r2_low": "ROUGE-2 from",
    "r2_high": "ROUGE-2 to",
    "mean_abs_bias": "mean |bias|",
    "worst_abs_bias": "worst |bias|",
    "detectable_5": "pairs with power for 5 points",
    "detectable_10": "pairs with power for 10 points",
    "power_5": "power for 5 points",
    "power_10": "power for 10 points",
    "key": "figure",
    "flip_1_to_0": "flips 1 → 0",
    "flip_0_to_1": "flips 0 → 1",
}


def is_percent(key: str) -> bool:
    """Whether a column holds shares, which are shown in percent."""
    key = key.removesuffix("_a").removesuffix("_b")
    return key in _PERCENT or key.endswith(("_rate", "_share")) or key.startswith(("flip_", "detectable_", "power_"))


def is_points(key: str) -> bool:
    """Whether a column holds differences of shares, which are shown in percentage points."""
    return key in _POINTS or key.endswith(("_bias", "_change"))


def column_label(key: str) -> str:
    """A column's heading, with its unit: ``TPR (%)``, ``bias (points)``, ``labelled error rate (%)``."""
    if key not in _LABELS and key.endswith(("_a", "_b")) and key[:-2] in _LABELS:
        label = f"{_LABELS[key[:-2]]} {key[-1]}"
    else:
        label = _LABELS.get(key, key.removeprefix("n_") if key != "n_" else key)
    unit = " (%)" if is_percent(key) else " (points)" if is_points(key) else ""
    return label.replace("_", " ") + unit


def figure(key: str, value: Any) -> str:
    """A figure as it is printed: percent and points with one decimal, counts with thousands separators, null as "–"."""
    if value is None:
        return UNDEFINED
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not (is_percent(key) or is_points(key)):
        return f"{value:,}".replace("-", "−")
    if is_percent(key):
        text = f"{100 * value:.1f}"
    elif is_points(key):
        text = f"{100 * value:.1f}" if "abs" in key else f"{100 * value:+.1f}"
    elif key.startswith("p_"):
        text = "<0.001" if value < 0.001 else f"{value:.3f}"
    elif key in ("iou", "kappa", "kendall_tau", "pearson_r"):
        text = f"{value:.2f}"
    elif key.startswith("r2_") or key == "threshold":
        text = f"{value:.3f}"
    else:
        text = f"{value:.4g}"
    # A rounded zero has no sign.
    if float(text.lstrip("<")) == 0:
        text = text.lstrip("+-")
    return text.replace("-", "−")


def span(key: str, low: Any, high: Any) -> str:
    """A range: ``71.2–80.4``, or with "to" where a sign would read like the dash."""
    first, last = figure(key, low), figure(key, high)
    return f"{first} to {last}" if "−" in first + last or "+" in first + last else f"{first}–{last}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """``1 claim``, ``1,200 claims``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
