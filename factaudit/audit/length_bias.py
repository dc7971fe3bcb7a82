"""Whether an evaluator judges long claims, or claims on long documents, differently from short ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from factaudit.arrays.covariate_rates import (
    MIN_SLOPE_CLAIMS,
    RATE_CLASS_NAMES,
    RATE_LABELS,
    compute_covariate_rate_slopes,
    encode_task_groups,
)
from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Check, Column, Finding, pick_shared_columns
from factaudit.audit.core.finding_parts import (
    format_how_many_datasets,
    group_finding_rows_by_keys,
    group_significant_rows_by_evaluator,
    measure_greatest_slope,
)
from factaudit.audit.core.interval_methods import JACKKNIFE
from factaudit.audit.core.plot_specs import ForestPlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.significance import p_beyond_limit, select_significant_rows
from factaudit.audit.core.statements import Statement, join_statements, make_statement
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.cluster_jackknife import MIN_JACKKNIFE_CLUSTERS
from factaudit.stats.undefined_values import none_if_undefined
from factaudit.tables.documents import iterate_document_blocks
from factaudit.tables.schema import is_text_placeholder

#: The texts whose length is looked at, with the column of the claims table that has them.
_LENGTH_COLUMNS = {"claim": "claim", "document": "doc"}


@dataclass(frozen=True)
class _ClaimAndDocumentLengths:
    """``by_text``: for claims and documents float64 (n,), characters; NaN where the text is missing or empty."""

    tasks: list[str]
    task_codes: np.ndarray
    by_text: dict[str, np.ndarray]


def compute_length_bias(judgements: Judgements, *, intervals: ClusterBootstrap | None = None) -> list[Row]:
    """How much TPR and TNR change each time a claim, or its document, doubles in length, within each task group.

    The slope of an ordinary least squares fit of "the prediction is right" on the logarithm (to base 2) of the number
    of characters, over the claims of the rate's class. Characters, so that texts without spaces between words count.

    A row per task group, evaluator, length (``claim`` or ``document``) and rate (``tpr`` or ``tnr``): task (the
    dataset's name where the claims have no task), n (scored claims of the class), n_unscored, n_no_text (labelled
    claims of the class without the text), short and long (a tenth of the class's texts have fewer characters, a tenth
    more), slope with ``_min`` and ``_max`` and, with intervals, ``_low`` and ``_high``.
    """
    lengths = _get_text_lengths(judgements)
    n_tasks = len(lengths.tasks)
    rows: list[tuple[int, int, Row]] = []
    for length, characters in lengths.by_text.items():
        for rate, label in RATE_LABELS.items():
            of_class, is_known = judgements.label == label, ~np.isnan(characters)
            codes = np.where(of_class & is_known, lengths.task_codes, -1)
            lost = np.bincount(lengths.task_codes[of_class & ~is_known], minlength=n_tasks)
            # Slopes are the same from any origin; near the data sums round off less.
            doublings = np.log2(characters / np.nanmedian(characters)) if is_known.any() else characters
            slopes = compute_covariate_rate_slopes(judgements, doublings, codes, n_tasks, label, intervals)
            for place, task in enumerate(lengths.tasks):
                short, long = _find_length_range(characters[codes == place])
                for at, evaluator in enumerate(judgements.evaluators):
                    row: Row = {
                        "task": task,
                        "evaluator": evaluator,
                        "length": length,
                        "rate": rate,
                        "n": int(slopes.n[at, place]),
                        "n_unscored": int(slopes.n_unscored[at, place]),
                        "n_no_text": int(lost[place]),
                        "short": short,
                        "long": long,
                    }
                    row |= {key: none_if_undefined(values[at, place]) for key, values in slopes.figures.items()}
                    if slopes.n_clusters is not None:
                        row["n_clusters"] = int(slopes.n_clusters[at, place])
                    rows.append((place, at, row | {"reason": _explain_length_slope(row)}))
    return [row for *_, row in sorted(rows, key=lambda each: each[:2])]


def _get_text_lengths(judgements: Judgements) -> _ClaimAndDocumentLengths:
    """The lengths, counted once."""

    def measure() -> _ClaimAndDocumentLengths:
        task_codes, tasks = encode_task_groups(judgements)
        by_text = {name: _count_text_column_characters(judgements, column) for name, column in _LENGTH_COLUMNS.items()}
        return _ClaimAndDocumentLengths(tasks, task_codes, by_text)

    return judgements.compute_once(("text lengths",), measure)


def _count_text_column_characters(judgements: Judgements, column: str) -> np.ndarray:
    """float64 (n,): NaN where the text is missing, empty or only stands for one."""
    found = np.full(len(judgements.claims), np.nan)
    for rows, texts in iterate_document_blocks(judgements.claims[column]):
        found[rows] = [
            len(text)
            if isinstance(text, str) and text and not (text[0] == "(" and is_text_placeholder(text))
            else np.nan
            for text in texts
        ]
    return found


def _find_length_range(characters: np.ndarray) -> tuple[int | None, int | None]:
    """The lengths under and over which a tenth of the texts are; None without texts."""
    if not len(characters):
        return None, None
    short, long = np.quantile(characters, [0.1, 0.9], method="inverted_cdf")
    return int(short), int(long)


def _explain_length_slope(row: Row) -> str | None:
    if row["slope"] is not None:
        if row.get("slope_low", 0) is not None:
            return None
        few = f"fewer than {MIN_JACKKNIFE_CLUSTERS} clusters"
        return f"no interval for slope: {few}, or all predictions right or all wrong"
    if row["short"] is None:
        return f"no {RATE_CLASS_NAMES[row['rate']]} claim has the text of its {row['length']}"
    if row["n"] == 0:
        return f"no {RATE_CLASS_NAMES[row['rate']]} claim with the text of its {row['length']} is scored"
    few = f"fewer than {MIN_SLOPE_CLAIMS} claims have no slope"
    return "all texts are of the same length" if row["n"] >= MIN_SLOPE_CLAIMS else few


def _has_text_lengths(judgements: Judgements) -> bool:
    return any(not np.isnan(characters).all() for characters in _get_text_lengths(judgements).by_text.values())


# ----------------------------------------------------------------------------------------------------------- findings

#: What an evaluator does where a rate falls (-1) or rises (1) with the length of a text.
_LENGTH_FAULTS = {
    ("tpr", -1): "rejects more correct claims where {text} long (TPR {row.slope:signed} points",
    ("tpr", 1): "rejects more correct claims where {text} short (TPR {row.slope:signed} points",
    ("tnr", -1): "misses more errors where {text} long (TNR {row.slope:signed} points",
    ("tnr", 1): "misses more errors where {text} short (TNR {row.slope:signed} points",
}
_LENGTH_SUBJECTS = {"claim": "claims are", "document": "documents are"}


def _find_length_bias(audited_run: AuditedRun) -> Iterator[Finding]:
    """TPR or TNR that changes with the length of claims or documents."""
    rows = [row for row in audited_run.rows("length_bias") if row["slope"] is not None]
    changing = select_significant_rows(
        audited_run, rows, [p_beyond_limit(audited_run, row, "slope", 0) for row in rows]
    )
    for evaluator, found, mine in group_significant_rows_by_evaluator(rows, changing):
        worst = max(found, key=lambda row: abs(row["slope"]) * np.log2(row["long"] / row["short"]))
        place = (worst["task"], worst["length"])
        (both,) = [group for key, group in group_finding_rows_by_keys(found, "task", "length") if key == place]
        leans = len(both) == 2 and both[0]["slope"] * both[1]["slope"] < 0
        yield Finding(
            "fail" if leans else "warn",
            evaluator,
            worst["task"],
            make_statement(
                "What {evaluator} says depends significantly on length{where}. On {task} it {faults}. Compare with it "
                "only systems whose texts are of like length.",
                evaluator=evaluator,
                where=format_how_many_datasets(found, mine, "task"),
                task=worst["task"],
                faults=join_statements([_state_length_fault(row, row is both[0]) for row in both], " and "),
            ),
            {"length": worst["length"]}
            | {f"{row['rate']}_{key}": row[key] for row in both for key in ("slope", "slope_low", "slope_high")},
        )


def _state_length_fault(row: Row, is_first: bool) -> Statement:
    text = _LENGTH_FAULTS[row["rate"], 1 if row["slope"] > 0 else -1]
    text += " per doubling)" if is_first else ")"
    return make_statement(text, row=row, text=_LENGTH_SUBJECTS[row["length"]])


# --------------------------------------------------------------------------------------------------------- declaration

_SLOPE_COLUMN = Column(
    "slope per doubling",
    "points",
    'the change of the rate each time the text doubles in length: ordinary least squares of "the prediction is right" '
    "on the logarithm of the characters, to base 2",
    bounds=True,
    interval=JACKKNIFE,
)
_RANGE_DESCRIPTION = (
    "characters: a tenth of the texts of the class are no longer than `short`, a tenth longer than `long`"
)

AUDIT = Audit(
    name="length_bias",
    after="surface_trend",
    title="Whether verdicts depend on length",
    question="How much do TPR and TNR change with the length of claims and of documents?",
    source="Zheng et al. 2023 (verbosity bias of LLM judges)",
    formula="Slope of a least squares fit of “the prediction is right” on log2 of the number of characters, over the "
    "claims of the rate's class: the change each time the text doubles in length.",
    text="Where TPR and TNR change to opposite sides, the evaluator leans on length itself: it accepts, or rejects, "
    "long texts whether they are right or wrong. Where both fall, long texts are harder for it. Without an "
    "interval a slope may be chance.",
    remedy="Do not compare systems that write claims of different length by this evaluator's raw error rates. Estimate "
    "them from labels of each system (`factaudit sample`). Where long documents are harder, see `evidence_position`, "
    "and `chunking` before you cut them.",
    columns={
        "task": Column("task", "text", "the task group; the data set where claims have none", key=True),
        "length": Column("length of", "text", "`claim` or `document`: whose length it is", key=True),
        "rate": Column("rate", "text", "`tpr` or `tnr`", key=True, values={"tpr": "TPR", "tnr": "TNR"}),
        **pick_shared_columns("evaluator", "n", "n_unscored", "reason"),
        "n_no_text": Column("no text", "count", "labelled claims of the rate's class without the text", shown="any"),
        "short": Column("short", "count", _RANGE_DESCRIPTION),
        "long": Column("long", "count", _RANGE_DESCRIPTION),
        "n_clusters": Column(
            "clusters",
            "count",
            "clusters of claims with a verdict of the rarer kind, right or wrong, by which findings test the slope",
            shown=False,
        ),
        "slope": _SLOPE_COLUMN,
    },
    compute=compute_length_bias,
    applies=_has_text_lengths,
    plots=(
        ForestPlotSpec(
            what="How much TPR and TNR change each time a text doubles in length, by task group",
            reading="Intervals on opposite sides of zero: the evaluator leans on length. Both to the left: long texts "
            "are harder for it.",
            key="slope",
            labels=("evaluator",),
            series="rate",
            guide=0,
            groups=("task", "length"),
        ),
    ),
    checks=(
        Check(
            "length",
            "Verdicts that depend on length",
            "TPR or TNR changes with the length of claims or documents",
            _find_length_bias,
            {
                "length": Column("length of", "text"),
                "tpr_slope": replace(_SLOPE_COLUMN, heading="slope of TPR"),
                "tnr_slope": replace(_SLOPE_COLUMN, heading="slope of TNR"),
            },
            null="TPR and TNR are the same for short and long claims and documents, in any task",
            controls="Holm over both rates and both lengths in all tasks of all evaluators",
            figure="slope",
            gravity=measure_greatest_slope,
        ),
    ),
)
