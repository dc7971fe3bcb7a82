"""Is being right associated with X? X is word overlap, a length, the place of the evidence or any
column.

A number gives a slope. A category gives groups, each of which is compared with all other claims.
TPR and TNR are examined separately, because what makes an evaluator pass more claims makes it right
on correct claims and wrong on errors (VC §4.1).

What may being right depend on? A covariate is a number or a category for each claim. Texts give
three (ROUGE-2 precision, the length of the claim and of its document). Long documents give a
fourth: the third of the document in which the evidence lies. The claims' own columns give the
others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from factaudit.arrays.figures import Shares
from factaudit.arrays.judgements import Judgements, encode_claim_group_column
from factaudit.arrays.response_facts import HUMAN_FACT_COUNTS
from factaudit.audit.core.audit_declaration import (
    JACKKNIFE,
    MOVER,
    Audit,
    Column,
    PlotSpec,
    pick_shared_columns,
    share_column,
)
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check
from factaudit.audit.core.result_rows import Row, explain_row, tabulate
from factaudit.audit.surface_bias import RATE_LABELS, encode_task_groups, measure_surface_overlap
from factaudit.errors import UsageError, suggest_known_name
from factaudit.stats import divide_or_undefined, name_ends, name_figure
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import ClusterCounts, GroupClusterPairs
from factaudit.stats.influence import MIN_CLUSTERS, Statistic, interval, slope, slope_bounds
from factaudit.tables.documents import iterate_document_blocks
from factaudit.tables.schema import is_text_placeholder
from factaudit.text.chunks import count_words
from factaudit.text.rouge_overlap import locate_best_rouge_chunks

# ---- covariates

#: Columns that are no covariates: texts, ids, and what was computed from labels or verdicts; also
#: systems, which other audits compare.
NO_COVARIATES = {
    *("claim_id", "dataset", "task", "claim", "doc", "label", "grade", "abstained"),
    *("system", "response_id", "doc_id", "fact_id", *HUMAN_FACT_COUNTS),
}
#: A column with more values than this names single things and does not group them.
MOST_VALUES = 50
#: A column of numbers with at most so many values is a category.
MOST_CATEGORY_NUMBERS = 4
PLACES = ("beginning", "middle", "end")
#: The number of words in the chunk that has the evidence. A document is long if it has more than
#: three times as many.
EVIDENCE_WORDS = 100


@dataclass(frozen=True)
class Covariate:
    """A property of each claim: a category or a number.

    names: the values of a category; codes: int64 (n,), the position of each claim's value among
    them, -1 for none. numbers: float64 (n,), NaN for none; per: the change of the number for which
    its slope is given.
    """

    name: str
    names: Sequence[str] = ()
    codes: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    numbers: np.ndarray | None = None
    per: str = ""


def list_covariates(judgements: Judgements, columns: Sequence[str] | None) -> Iterator[Covariate]:
    """The covariates in which some labelled claims differ. columns: of the claims; by default the
    properties of the texts, and all columns that group claims."""
    claims, labelled = judgements.claims, judgements.label >= 0
    chosen = columns
    if columns is None:
        yield from _list_text_covariates(judgements, labelled)
        chosen = sorted(set(map(str, claims)) - NO_COVARIATES)
    for column in chosen or ():
        if column not in claims:
            hint = suggest_known_name(column, [str(each) for each in claims])
            raise UsageError(f"covariates: the claims have no column {column!r}{hint}")
        found = _read_column_covariate(claims[column], labelled)
        if found is not None:
            yield found
        elif columns is not None:
            raise UsageError(
                f"covariates: column {column!r} sorts no labelled claims: expected numbers, or 2 "
                f"to {MOST_VALUES} different values"
            )


def _list_text_covariates(judgements: Judgements, labelled: np.ndarray) -> Iterator[Covariate]:
    claims = judgements.claims
    for name, values, per in (
        (
            "ROUGE-2 precision",
            measure_surface_overlap(judgements),
            "from no overlap to full overlap",
        ),
        ("claim length", _count_characters(claims["claim"]), _DOUBLING),
        ("document length", _count_characters(claims["doc"]), _DOUBLING),
    ):
        known = labelled & ~np.isnan(values)
        if len(np.unique(values[known])) > 1:
            if per is _DOUBLING:
                # A slope does not depend on the origin; close to the data, sums lose fewer digits.
                values = np.log2(values / np.median(values[known]))
            yield Covariate(name, numbers=np.where(known, values, np.nan), per=per)
    yield Covariate("place of the evidence", PLACES, _locate_evidence(judgements, labelled))


_DOUBLING = "each time it doubles"


def _count_characters(texts: pd.Series) -> np.ndarray:
    """float64 (n,): the number of characters; NaN if the text is missing, empty or only a
    placeholder."""
    found = np.full(len(texts), np.nan)
    for rows, block in iterate_document_blocks(texts):
        lengths = [0 if is_text_placeholder(text) else len(text) for text in block]
        found[rows] = np.where(lengths, lengths, np.nan)
    return found


def count_document_words(judgements: Judgements) -> np.ndarray:
    """int64 (n,): the number of words in each claim's document, 0 without a document. A document
    that many claims share is counted once."""
    lengths = np.zeros(len(judgements.claims), dtype=np.int64)
    for within, docs in iterate_document_blocks(judgements.claims["doc"]):
        known = {doc: count_words(doc) for doc in set(docs)}
        lengths[within] = [known[doc] for doc in docs]
    return lengths


def _locate_evidence(judgements: Judgements, labelled: np.ndarray) -> np.ndarray:
    """int64 (n,): the third of a long document that has the chunk with most of the claim's bigrams.
    -1 if the document is short, if no chunk has a bigram, or if chunks in different thirds have
    equally many."""
    place = np.full(len(labelled), -1)
    is_long = count_document_words(judgements) > len(PLACES) * EVIDENCE_WORDS
    chosen = np.flatnonzero(labelled & is_long)
    some = judgements.claims[["claim", "doc"]].iloc[chosen]
    for rows, docs in iterate_document_blocks(some["doc"]):
        claims = some["claim"].iloc[rows].fillna("").tolist()
        shares = locate_best_rouge_chunks(claims, docs, EVIDENCE_WORDS)
        first, last = (np.nan_to_num(np.floor(len(PLACES) * share), nan=-1) for share in shares)
        place[chosen[rows]] = np.where(first == last, first, -1)
    return place


def _read_column_covariate(values: pd.Series, labelled: np.ndarray) -> Covariate | None:
    """A column as a covariate of the labelled claims; None if it has one value, or a different one
    for each claim."""
    known = labelled & values.notna().to_numpy()
    if pd.api.types.infer_dtype(values[known]) == "mixed":  # lists
        return None
    name, n_values = str(values.name), values[known].nunique()
    is_numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if is_numeric and n_values > MOST_CATEGORY_NUMBERS:
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        low, high = np.quantile(numbers[known], [0.1, 0.9], method="inverted_cdf")
        if high > low:
            scaled = np.where(known, numbers - low, np.nan) / (high - low)
            return Covariate(name, numbers=scaled, per="from its 10th to its 90th percentile")
    if not 2 <= n_values <= MOST_VALUES:
        return None
    codes = np.full(len(values), -1, dtype=np.int64)
    codes[known], found = encode_claim_group_column(values[known].to_frame(name), name)
    names = [f"{each:g}" if isinstance(each, float) else str(each) for each in found]
    return Covariate(name, names, codes)


# ---- the audit

#: The value of a number's row.
SLOPE = "slope"
_RATE_NAMES = {"tpr": "TPR", "tnr": "TNR"}
#: The number of rows that the report shows.
_SHOWN_ROWS = 20
#: A line through fewer claims, or a group with fewer, says nothing: two claims once gave a slope of
#: -866 points.
MIN_CLAIMS = 10


def compute_covariates(
    judgements: Judgements,
    *,
    columns: Sequence[str] | None = None,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """How TPR and TNR depend on properties of the claims, within each task group.

    A row per task group, covariate, rate, value and evaluator has n (scored claims of the rate's
    class), n_unscored, right (the rate among them) and difference, both with bounds and intervals,
    and n_clusters. For a category, ``value`` is a group, and the difference is from all other
    claims of the class. A number has one row with the value ``slope``; its difference is the slope
    of an ordinary least squares fit of "the prediction is right" on the number, for the change that
    ``per`` names.
    """
    confidence = None if intervals is None else intervals.confidence
    task, tasks = encode_task_groups(judgements)
    rows: list[Row] = []
    for covariate in list_covariates(judgements, columns):
        numbers = covariate.numbers
        known = covariate.codes >= 0 if numbers is None else ~np.isnan(numbers)
        for rate, label in RATE_LABELS.items():
            inside = known & (judgements.label == label)
            for place, evaluator in enumerate(judgements.evaluators):
                for at, name in enumerate(tasks):
                    key = {"task": name, "covariate": covariate.name, "rate": rate}
                    part = _select_part(judgements, place, np.flatnonzero(inside & (task == at)))
                    measure = _compare_groups if numbers is None else _fit_line
                    rows += measure(key | {"evaluator": evaluator}, part, covariate, confidence)
    return sorted(rows, key=lambda row: (row["task"], row["covariate"]))


@dataclass(frozen=True)
class _Part:
    """What one evaluator says of the labelled claims of one class in one task.

    rows: int (n,), their positions among all claims. right: int (n,), 1, 0, or -1 if a claim is
    unscored; stated: the same, also -1 if the prediction is guessed. cluster: int (n,).
    """

    rows: np.ndarray
    right: np.ndarray
    stated: np.ndarray
    cluster: np.ndarray


def _select_part(judgements: Judgements, place: int, rows: np.ndarray) -> _Part:
    label = judgements.label[rows]
    said, stated = judgements.prediction[place][rows], judgements.stated_prediction[place][rows]
    right, surely_right = (np.where(one < 0, -1, one == label) for one in (said, stated))
    return _Part(rows, right, surely_right, judgements.cluster_codes[rows])


def _compare_groups(
    key: Row, part: _Part, covariate: Covariate, confidence: float | None
) -> list[Row]:
    """A row for each value of a category that has claims of this class."""
    codes, size = covariate.codes[part.rows], len(covariate.names)
    pairs = GroupClusterPairs.of(np.zeros_like(codes), part.cluster, 1)
    # The claims of each cluster: outside and inside the group, wrong and right.
    counts = [
        pairs.count_codes(np.where(part.right < 0, -1, 2 * (codes == at) + part.right), 4)
        for at in range(size)
    ]
    clusters = ClusterCounts(
        np.repeat(np.arange(size), [len(one.times) for one in counts]),
        np.concatenate([one.times for one in counts]),
        np.vstack([one.counts for one in counts]),
        size,
    )
    cells = clusters.counts.reshape(-1, 2, 2)[:, ::-1]  # inside of the group first
    # The unscored and guessed claims may all be wrong, or all be right.
    stated = np.bincount(codes * 3 + part.stated % 3, minlength=3 * size).reshape(size, 3)
    both = np.stack([stated, stated.sum(0) - stated], axis=1)
    n_labels = both.sum(2)
    least, most = (divide_or_undefined(both[..., 1] + more, n_labels) for more in (0, both[..., 2]))
    shares = Shares(clusters, cells[:, :, 1], cells.sum(2), (least, most), confidence)
    is_few = n_labels.min(1) < MIN_CLAIMS
    figures = {
        "right": shares.sum({0: 1}),
        "difference": shares.sum({0: 1, 1: -1}).where(~is_few),
    }
    n, n_clusters = shares.estimate.n[:, 0], shares.estimate.n_clusters.min(1)
    counts_of = {"n": n, "n_unscored": n_labels[:, 0] - n, "n_clusters": n_clusters}
    counts_of = {name: values.astype(np.int64) for name, values in counts_of.items()}
    keys = [key | {"value": name, "per": ""} for name in covariate.names]
    few = f"no difference: fewer than {MIN_CLAIMS} labels in the group, or outside of it"
    rows = tabulate(keys, counts_of, figures, {few: is_few}, _FEW_CLUSTERS)
    return [row for row in rows if row["n"] or row["n_unscored"]]


def _fit_line(key: Row, part: _Part, covariate: Covariate, confidence: float | None) -> list[Row]:
    """The row of a number, if there are claims of this class: how much the rate changes with it."""
    assert covariate.numbers is not None
    if not len(part.rows):
        return []
    numbers = covariate.numbers[part.rows]
    # In a fixed order, so that the sums do not depend on the order of the table.
    order = np.lexsort([part.cluster, numbers])
    numbers, right, stated = numbers[order], part.right[order], part.stated[order]
    known = right >= 0
    cluster, right = part.cluster[order][known], right[known]
    line = slope(numbers[known], right.astype(np.float64))
    if len(right) < MIN_CLAIMS:
        line = Statistic.undefined(len(right))
    bounds, ends = (line.point, line.point), None
    if not np.isnan(line.point) and (stated < 0).any():
        # The line through the scored claims may lead beyond 0 or 1 at an unscored claim; no
        # completion would.
        least, most = slope_bounds(numbers, np.where(stated < 0, np.nan, stated))
        bounds = min(least, line.point), max(most, line.point)
    if confidence is not None:
        ends = interval(line, cluster, confidence=confidence, min_clusters=MIN_CLUSTERS)
    row = key | {"value": SLOPE, "per": covariate.per, "n": len(right)}
    row["n_unscored"] = len(numbers) - len(right)
    row["n_clusters"] = min(len(np.unique(cluster[right == value])) for value in (0, 1))
    without = None if ends is None else _UNDEFINED
    row |= name_figure("right", np.nan, without) | name_ends("right", _UNDEFINED, ("min", "max"))
    row |= name_figure("difference", line.point, ends)
    row |= name_ends("difference", bounds, ("min", "max"))
    reasons = ["a slope has no rate of a group"]
    if np.isnan(line.point):
        reasons.insert(0, _NO_SLOPE)
    return [explain_row(row, ("right", "difference"), reasons, _FEW_CLUSTERS)]


_UNDEFINED = (np.nan, np.nan)
_NO_SLOPE = f"no slope: fewer than {MIN_CLAIMS} scored claims, or all claims are alike in this"
_FEW_CLUSTERS = "too few clusters, or all are right or wrong"


# ---- checks


def _list_associations(run: AuditedRun) -> Iterator[Row]:
    """The slope of a number, and the difference of each group from the other claims."""
    for row in run.rows("covariates"):
        is_slope = row["value"] == SLOPE
        yield row | {
            "dataset": row["task"],
            "what": row["covariate"] if is_slope else f"{row['covariate']} “{row['value']}”",
            "against": row["per"] if is_slope else "against the other claims",
            "rate_name": _RATE_NAMES[row["rate"]],
        }


CHECK = Check(
    id="covariate",
    title="Accuracy that depends on something else",
    rows=_list_associations,
    figure="difference",
    side="off",
    by=("evaluator", "covariate"),
    says=(
        "{evaluator}'s {rate_name}{on} is {verdict} with the {what}: {difference:signed} points"
        " {against}."
    ),
    beyond="associated",
    severity="warn",
    null="TPR and TNR do not depend on any other property of the claims",
)


def _select_greatest_differences(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """The rows with the greatest differences; those whose interval excludes 0 come first."""

    def order(row: Row) -> tuple[bool, float]:
        low, high = row.get("difference_low"), row.get("difference_high")
        return low is None or high is None or low <= 0 <= high, -abs(row["difference"] or 0)

    if len(rows) <= _SHOWN_ROWS:
        return list(rows), ""
    shown = sorted(rows, key=order)[:_SHOWN_ROWS]
    return shown, "The greatest differences; all rows are in the CSV."


# ---- declaration

AUDIT = Audit(
    name="covariates",
    title="What being right is associated with",
    question=(
        "Does accuracy depend on word overlap, on length, on the place of the evidence or on any"
        " other column?"
    ),
    source="VC §4.1; Liu et al. 2024 (place of evidence)",
    text=(
        "An evaluator that relies on something it should ignore is more often right on correct"
        " claims and less often right on errors as there is more of it, or the other way round."
        " Columns of numbers, and columns with 2 to 50 different values, are tested."
    ),
    formula=(
        "For a number: the slope of a least-squares fit of “the prediction is right”; the fitted"
        " line may leave the range of 0 to 100 %. For a category: the rate of the group − the rate"
        " of all other claims of the class."
    ),
    remedy=(
        "Report results for such claims separately, and do not compare systems whose claims differ"
        " in this property."
    ),
    columns={
        "task": Column(
            "task", "text", "the task group or, if the claims have none, the data set", key=True
        ),
        "covariate": Column("covariate", "text", "the property of the claims", key=True),
        "rate": Column("rate", "text", "`tpr` or `tnr`", key=True, values=_RATE_NAMES),
        "value": Column(
            "value",
            "text",
            f"the group, or `{SLOPE}`: the slope over all values of a number",
            key=True,
        ),
        **pick_shared_columns("evaluator", "n", "n_unscored", "reason"),
        "n_clusters": Column(
            "clusters", "count", "clusters behind the interval of the difference", shown=False
        ),
        "per": Column("per", "text", "the change of the number that the slope refers to"),
        "right": share_column("right", "rate within the group"),
        "difference": share_column(
            "difference",
            "the slope, or the rate of the group − the rate of all others",
            f"{MOVER}; of a slope {JACKKNIFE}",
            "points",
        ),
    },
    options={
        "columns": (
            "columns of the claims; by default properties of the texts and all columns that form"
            " groups"
        ),
    },
    compute=compute_covariates,
    readable=_select_greatest_differences,
    plot=PlotSpec(
        what="How much TPR and TNR differ with what is known of claims",
        reading="Intervals that leave out zero: the evaluator leans on it.",
        keys=("difference",),
        groups=("task", "evaluator", "covariate", "value"),
        series="rate",
        guides={"difference": 0},
        per_page=28,
    ),
    checks=(CHECK,),
)
