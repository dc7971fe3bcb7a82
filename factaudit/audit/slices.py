"""On which kinds of claims, by any column of theirs, is an evaluator significantly worse than on all others?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from factaudit.arrays.claim_groups import encode_claim_group_column
from factaudit.arrays.covariate_rates import RATE_LABELS
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_facts import HUMAN_FACT_COUNTS
from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Check, Column, Finding, pick_shared_columns
from factaudit.audit.core.evaluator_comparison import drop_constant_evaluator_intervals
from factaudit.audit.core.finding_parts import (
    format_first_finding_names,
    group_finding_rows_by_evaluator,
    make_row_finding,
)
from factaudit.audit.core.interval_methods import MOVER
from factaudit.audit.core.plot_specs import ForestPlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.significance import DEFAULT_CONFIDENCE, p_below_limit, read_confidence
from factaudit.audit.core.statements import Statement, join_statements, make_statement
from factaudit.audit.retrieval import REASON_COLUMN
from factaudit.errors import UsageError, suggest_known_name
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import ClusteredProportions
from factaudit.stats.mover import mover_proportion_sum
from factaudit.stats.multiplicity import benjamini_hochberg_adjusted_p
from factaudit.stats.slice_comparison import count_slice_and_rest_hits, estimate_slice_and_rest_proportions
from factaudit.stats.undefined_values import divide_or_undefined, name_ends, none_if_undefined
from factaudit.text.display_text import format_count

#: Columns that make no slices by default: texts, keys, what rows are made by anyway; and systems: see `transfer`.
_NO_SLICES = (
    *("claim_id", "dataset", "claim", "doc", "label", "grade", "abstained"),
    *("system", "response_id", "doc_id", "fact_id"),
    *(REASON_COLUMN, *HUMAN_FACT_COUNTS),  # made of a verdict, and of labels
)
#: A column with more values is left out: it names things, and does not sort them.
MOST_VALUES = 50
#: Columns with the most values are left out where there would be more rows.
MOST_ROWS = 20_000
#: Of slices that are not significantly worse the report shows so many.
_SHOWN_ROWS = 20
_FIGURE_NAMES = {"bacc": "BAcc", "tpr": "TPR", "tnr": "TNR"}


@dataclass(frozen=True)
class _ClaimColumnSlices:
    """names: the values, or ranges of values; codes: int64 (n,), the slice of each claim, -1 for none; left_out: why
    the column is not looked at."""

    column: str
    names: list[str]
    codes: np.ndarray
    left_out: str = ""


def compute_slice_differences(
    judgements: Judgements,
    *,
    columns: Sequence[str] | None = None,
    bins: int = 4,
    min_labels: int = 10,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """How much worse, or better, an evaluator is on the claims with one value of a column than on the others.

    columns: those that make slices; by default all but texts, ids, systems and counts of labels. A column of more than
    `MOST_VALUES` values, or of lists, is left out, and one with a single value says nothing. bins: numbers of more
    values are cut into so many ranges with equal numbers of claims. min_labels: of a class, in the slice and outside.

    Within each dataset a row per column, value and evaluator: dataset, column, value, evaluator, figure (``bacc``;
    ``tpr`` or ``tnr`` where the slice or the others have too few labels of the other class), n (labelled and scored
    claims of the slice), n_unscored, n_pos and n_neg (its labels), n_clusters (that the interval rests on), rate (the
    figure in the slice), rest (on all other labelled claims of the dataset) and difference = rate - rest, with ``_min``
    and ``_max`` and, with intervals, ``_low`` and ``_high``. Of a column that is left out there is one row for each
    evaluator, without a value.
    """
    rows: list[Row] = []
    for place, dataset in enumerate(judgements.dataset_names):
        inside = np.flatnonzero((judgements.dataset_codes == place) & (judgements.label >= 0))
        made = _slice_claim_columns(judgements.claims.iloc[inside], columns, bins)
        found = _leave_out_columns_of_most_rows(made, len(judgements.evaluators))
        for slices in found:
            for at, evaluator in enumerate(judgements.evaluators):
                about: Row = {"dataset": dataset, "column": slices.column}
                each = _compare_slice_with_others(judgements, inside, at, slices, min_labels, intervals)
                rows += [about | {"value": row.pop("value"), "evaluator": evaluator} | row for row in each]
    drop_constant_evaluator_intervals(rows, "difference")
    return sorted(rows, key=lambda row: (row["dataset"], row["column"], row["value"] or ""))


def _slice_claim_columns(claims: pd.DataFrame, columns: Sequence[str] | None, bins: int) -> list[_ClaimColumnSlices]:
    asked = [str(name) for name in claims if name not in _NO_SLICES] if columns is None else columns
    for column in asked:
        if column not in claims:
            raise UsageError(
                f"the claims have no column {column!r}{suggest_known_name(column, [str(c) for c in claims])}"
            )
    made = (_slice_claim_column(claims, column, bins) for column in sorted(asked))
    return [slices for slices in made if slices is not None]


def _slice_claim_column(claims: pd.DataFrame, column: str, bins: int) -> _ClaimColumnSlices | None:
    """The slices of a column; None where it has one value at most."""
    nothing = np.full(len(claims), -1)
    try:
        n_values = claims[column].nunique(dropna=True)
    except TypeError:
        return _ClaimColumnSlices(column, [], nothing, f"{column} holds lists or objects")
    if n_values < 2:
        return None
    values, known = claims[column], claims[column].notna().to_numpy()
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values) and n_values > bins:
        numbers = values[known].to_numpy(dtype=np.float64)
        edges = np.unique(np.quantile(numbers, np.arange(1, bins) / bins, method="inverted_cdf"))
        codes = np.searchsorted(edges, numbers, side="left")
        used, codes = np.unique(codes, return_inverse=True)
        names = [f"{numbers[codes == at].min():g} to {numbers[codes == at].max():g}" for at in range(len(used))]
    elif n_values > MOST_VALUES:
        return _ClaimColumnSlices(column, [], nothing, f"{column} has {n_values:,} different values")
    else:
        codes, found = encode_claim_group_column(claims[known], column)
        names = [f"{name:g}" if isinstance(name, float) else str(name) for name in found]
    nothing[known] = codes
    return _ClaimColumnSlices(column, names, nothing) if len(names) > 1 else None


def _leave_out_columns_of_most_rows(columns: list[_ClaimColumnSlices], n_evaluators: int) -> list[_ClaimColumnSlices]:
    kept = list(columns)
    while sum(len(each.names) for each in kept) * n_evaluators > MOST_ROWS:
        most = max(range(len(kept)), key=lambda at: len(kept[at].names))
        why = f"{kept[most].column} has too many values ({len(kept[most].names)}) for {n_evaluators} evaluators"
        kept[most] = _ClaimColumnSlices(kept[most].column, [], kept[most].codes, why)
    return kept


def _compare_slice_with_others(
    judgements: Judgements,
    rows: np.ndarray,
    evaluator: int,
    slices: _ClaimColumnSlices,
    min_labels: int,
    intervals: ClusterBootstrap | None,
) -> Iterator[Row]:
    label, said = judgements.label[rows], judgements.prediction[evaluator][rows]
    certain = judgements.stated_prediction[evaluator][rows]
    kinds, size = np.array(list(RATE_LABELS.values())), len(slices.names)
    if slices.left_out:
        row: Row = {"value": None, "figure": None, "n": int((said >= 0).sum()), "n_unscored": int((said < 0).sum())}
        row |= {"n_pos": int((label == 1).sum()), "n_neg": int((label == 0).sum()), "n_clusters": None}
        yield row | _make_difference(intervals) | {"reason": slices.left_out}
        return
    kind, cluster = np.where(label == kinds[0], 0, 1), judgements.cluster_codes[rows]
    arguments = (kind, 2, slices.codes, size)
    found = estimate_slice_and_rest_proportions(np.where(said < 0, -1, said == label), *arguments, cluster)
    # What a rate could be: all that is unscored or guessed is wrong, or is right.
    least, most = (
        divide_or_undefined(*count_slice_and_rest_hits(np.where(certain < 0, value, certain == label), *arguments))
        for value in (0, 1)
    )
    _, labels = count_slice_and_rest_hits(np.ones(len(label), dtype=np.int64), *arguments)
    scored, unscored = (
        np.bincount(slices.codes[inside & (slices.codes >= 0)], minlength=size) for inside in (said >= 0, said < 0)
    )
    for at, name in enumerate(slices.names):
        counts = labels[at]
        chosen = [each for each in (0, 1) if min(counts[each], counts[2 + each]) >= min_labels]
        figure = None if not chosen else "bacc" if len(chosen) == 2 else list(RATE_LABELS)[chosen[0]]
        row = {"value": name, "figure": figure, "n": int(scored[at]), "n_unscored": int(unscored[at])}
        row |= {"n_pos": int(counts[0]), "n_neg": int(counts[1])}
        if figure is None:
            where = "outside of it" if counts[:2].max() >= min_labels else "in it"
            reason = f"too few labels: under {min_labels} of either class {where}"
            yield row | {"n_clusters": None} | _make_difference(intervals) | {"reason": reason}
            continue
        ends = [each + 2 * side for side in (0, 1) for each in chosen]
        weights = np.array([1.0] * len(chosen) + [-1.0] * len(chosen)) / len(chosen)
        one = _select_proportions(found, at, ends)
        confidence = DEFAULT_CONFIDENCE if intervals is None else intervals.confidence
        difference, (low, high) = mover_proportion_sum(one, weights, confidence)
        row["n_clusters"] = int(one.n_clusters.min())
        half = len(chosen)
        row |= _make_difference(intervals) | {
            "rate": none_if_undefined(one.point[0, :half].mean()),
            "rest": none_if_undefined(one.point[0, half:].mean()),
            "difference": none_if_undefined(difference[0]),
        }
        if row["difference"] is None:
            yield row | {"reason": "the evaluator scored no claim of a class in the slice, or outside of it"}
            continue
        bounds = [
            (weights * np.where(weights > 0, up[at, ends], down[at, ends])).sum()
            for up, down in ((least, most), (most, least))
        ]
        row |= {
            "difference_min": min(bounds[0], row["difference"]),
            "difference_max": max(bounds[1], row["difference"]),
        }
        if (certain >= 0).all():
            row |= {"difference_min": row["difference"], "difference_max": row["difference"]}
        if intervals is not None:
            row |= name_ends("difference", (low[0], high[0]))
        lacks = intervals is not None and row["difference_low"] is None
        yield row | {"reason": "no interval for difference: fewer than two clusters of a class" if lacks else None}


def _make_difference(intervals: ClusterBootstrap | None) -> Row:
    ends = ("", "_min", "_max") + (("_low", "_high") if intervals is not None else ())
    return dict.fromkeys(["rate", "rest", *(f"difference{end}" for end in ends)])


def _select_proportions(found: ClusteredProportions, group: int, columns: Sequence[int]) -> ClusteredProportions:
    picked = {each.name: getattr(found, each.name)[[group]][:, columns] for each in fields(found)}
    joint = {key: picked[key][:, :, columns] for key in ("correlation", "rests_on_one")}
    return ClusteredProportions(**(picked | joint))


def _has_slices(judgements: Judgements) -> bool:
    some = judgements.claims[judgements.label >= 0]
    return any(not slices.left_out for slices in _slice_claim_columns(some, None, 4))


# ----------------------------------------------------------------------------------------------------------- findings


def select_worse_slices(audited_run: AuditedRun) -> list[Row]:
    """The slices on which an evaluator is significantly worse: at most 5 % of such a list are false (Benjamini and
    Hochberg, over all slices of all evaluators that were looked at)."""
    rows = _list_tested_slices(audited_run.rows("slices"))
    audited_run.test_counts.append(len(rows))
    if not rows:
        return []
    p = np.array([p_below_limit(audited_run, row, "difference", 0) for row in rows])
    adjusted = benjamini_hochberg_adjusted_p(np.where(np.isnan(p), 1.0, p))
    return [row for row, one in zip(rows, adjusted, strict=True) if one < 1 - read_confidence(audited_run)]


def _list_tested_slices(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.get("difference_low") is not None]


def _find_worse_slices(audited_run: AuditedRun) -> Iterator[Finding]:
    """Slices of the claims on which an evaluator is significantly worse."""
    every = _list_tested_slices(audited_run.rows("slices"))
    for evaluator, mine in group_finding_rows_by_evaluator(select_worse_slices(audited_run)):
        worst = min(mine, key=lambda row: row["difference"])
        looked_at = [row for row in every if row["evaluator"] == evaluator]
        text = "{evaluator} is significantly worse on {mine:count} of {looked_at:count slice} of the claims. At worst, "
        text += "{worst} Report it on such claims apart, and label more of them."
        state = {"mine": mine, "looked_at": looked_at, "worst": _state_worse_slice(worst)}
        said = make_statement(text, evaluator=evaluator, **state)
        keys = ("column", "value", "figure", "rate", "rest", "difference", "n")
        yield make_row_finding("warn", worst, said, *keys)


def _state_worse_slice(row: Row) -> Statement:
    text = f"where {{row.column}} is “{{row.value}}” on {{row.dataset}}, its {_FIGURE_NAMES[row['figure']]} is "
    return make_statement(text + "{row.rate:percent}, and {row.rest:percent} elsewhere.", row=row)


def _list_slice_advice(audited_run: AuditedRun, evaluators: Sequence[str]) -> Iterator[tuple[str, Statement]]:
    rows = [row for row in select_worse_slices(audited_run) if row["evaluator"] == next(iter(evaluators), None)]
    if rows:
        worst = min(rows, key=lambda row: row["difference"])
        text = "{row.evaluator} is significantly worse on some claims: {slice}"
        yield "Beware", make_statement(text, row=worst, slice=_state_worse_slice(worst))


# ------------------------------------------------------------------------------------------------------- what is shown


def _select_worst_slices_for_report(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """The slices on which an evaluator is worse, those whose interval is below 0 first."""
    every = _list_tested_slices(rows)
    tested = [row for row in every if row["difference"] < 0]
    n_below = sum(row["difference_high"] < 0 for row in tested)
    shown = sorted(tested, key=lambda row: (row["difference_high"] >= 0, row["difference"]))
    shown = shown[: max(_SHOWN_ROWS, min(n_below, 3 * _SHOWN_ROWS))]
    if not shown:
        none = "No comparison with an interval is below 0" if every else "No slice could be compared"
        return list(rows)[:_SHOWN_ROWS], f"{none}; all rows are in the CSV."
    which = "These are" if len(shown) == len(tested) else f"The {len(shown)} worst of"
    of = f"the {len(tested)} of {format_count(len(every), 'comparison')} with an interval that are below 0"
    return shown, f"{which} {of}; all rows are in the CSV."


def _list_slice_test_remarks(rows: Sequence[Row], findings: Sequence[Row]) -> list[str]:
    """How many slices were tested, which columns were left out, and which slices have too few labels."""
    del findings
    every = {_place_slice(row): row for row in rows if row["value"] is not None}
    tested = {_place_slice(row) for row in _list_tested_slices(rows)}
    columns = list(dict.fromkeys(column for _, column, _ in every))
    text = "No slice could be tested."
    if every:
        text = "{tested:count}" if tested else "None"
        text += " of {every:count slice} of {columns:count column} could be tested."
    said = [make_statement(text, tested=list(tested), every=list(every), columns=columns)]
    left_out = list(
        {(row["column"], row["reason"], row["dataset"]): row for row in rows if row["value"] is None}.values()
    )
    if left_out:
        where = " on {row.dataset}" * (len({row["dataset"] for row in rows}) > 1)
        names = [make_statement("{why}" + where, why=row["reason"], row=row) for row in left_out]
        said.append(make_statement("Not compared: {names}.", names=join_statements(names, "; ")))
    few = [row for row in every.values() if str(row["reason"]).startswith("too few labels")]
    if few:
        where = " on {row.dataset}" * (len({dataset for dataset, _, _ in every}) > 1)
        names = [make_statement("{row.column} “{row.value}”" + where, row=row) for row in few]
        text = "Too few labels for {few:count}: {names}."
        said.append(make_statement(text, few=few, names=format_first_finding_names(names)))
    if other := len(every) - len(tested) - len(few):
        text = "No interval, or no score, for {other:count}: see their reason in the CSV."
        said.append(make_statement(text, other=range(other)))
    return [join_statements(said)]


def _place_slice(row: Row) -> tuple[str, str, str]:
    return row["dataset"], row["column"], row["value"]


# --------------------------------------------------------------------------------------------------------- declaration

_RATES_DESCRIPTION = "the figure in the slice, and on all other labelled claims of the data set"
_SIZES_DESCRIPTION = "labels 1, labels 0 of the slice"


def _declare_text(heading: str, what: str = "", **more: Any) -> Column:
    return Column(heading, "text", what, **more)


AUDIT = Audit(
    name="slices",
    after="self_preference",
    title="Kinds of claims on which evaluators are worse",
    question="On which kinds of claims, by any column of theirs, is an evaluator significantly worse?",
    source="Benjamini & Hochberg 1995; Chung et al. 2019 (Slice Finder)",
    formula="Difference = BAcc in the slice − BAcc on all other labelled claims of the data set; TPR or TNR alone "
    "where one class has too few labels on either side. At most 5 % of the slices in findings are expected to be "
    "false, whatever number was looked at (Benjamini–Hochberg).",
    text="A mean over all claims hides where an evaluator fails. The more slices one looks at, the more differ by "
    "chance: the number that was looked at is told, and findings correct for it. Systems are no slices here: see "
    "`transfer`.",
    remedy="Report the evaluator's rates on such claims apart, and label more of them. Do not use it on data that has "
    "many of them.",
    columns={
        **pick_shared_columns("dataset"),
        "column": _declare_text("column", "the column of the claims, and its value or range of values", key=True),
        "value": _declare_text("value", "the column of the claims, and its value or range of values", key=True),
        **pick_shared_columns("evaluator", "n", "n_unscored", "reason"),
        "n_pos": Column("label 1", "count", _SIZES_DESCRIPTION),
        "n_neg": Column("label 0", "count", _SIZES_DESCRIPTION),
        "n_clusters": Column("clusters", "count", "clusters of claims that the interval rests on", shown=False),
        "figure": _declare_text("figure", "what is compared: `bacc`, `tpr` or `tnr`", values=_FIGURE_NAMES),
        "rate": Column("in the slice", "percent", _RATES_DESCRIPTION),
        "rest": Column("elsewhere", "percent", _RATES_DESCRIPTION),
        "difference": Column("difference", "points", "rate − rest", bounds=True, interval=MOVER),
    },
    options={
        "columns": "of the claims; by default all but texts, ids, systems and counts of labels",
        "bins": "ranges that numbers are cut into",
        "min_labels": "of a class, in the slice and outside of it",
    },
    compute=compute_slice_differences,
    applies=_has_slices,
    advice=_list_slice_advice,
    readable=_select_worst_slices_for_report,
    remarks=_list_slice_test_remarks,
    plots=(
        ForestPlotSpec(
            what="How much worse an evaluator is on a slice than on the other claims: the worst slices",
            reading="To the left of zero: worse on the slice. Intervals are of one slice, findings correct for all.",
            key="difference",
            labels=("column", "value", "evaluator"),
            guide=0,
        ),
    ),
    checks=(
        Check(
            "slice",
            "Claims on which an evaluator is worse",
            "an evaluator is worse on a slice of the claims than on the others",
            _find_worse_slices,
            {
                "column": _declare_text("column"),
                "value": _declare_text("value"),
                "figure": _declare_text("figure", values=_FIGURE_NAMES),
            },
            null="an evaluator is as good on each slice as on all other claims",
            controls="Benjamini–Hochberg over all slices of all evaluators",
            figure="difference",
        ),
    ),
)
