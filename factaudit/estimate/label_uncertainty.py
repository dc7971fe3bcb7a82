"""What is said of labels that are themselves unsure: claims that people could not decide, annotators who disagree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from factaudit.audit.core.result_rows import Row
from factaudit.estimate.estimate_summary import EstimatesByMethod
from factaudit.estimate.estimation_case import RateEstimationCase
from factaudit.estimate.estimation_methods import estimate_rates_by_hierarchical_model
from factaudit.stats.annotator_errors import MIN_OVERLAP, count_overlapping_claims
from factaudit.stats.undefined_values import none_if_undefined
from factaudit.tables.annotations import DISAGREEMENT_REASON, UNDECIDED_MARK
from factaudit.text.display_text import format_count

#: A greater share of undecided claims is flagged.
MAX_UNDECIDED_SHARE = 0.05


def describe_label_uncertainty(
    estimation: RateEstimationCase, estimates_by_method: EstimatesByMethod, undecided_reasons: Mapping[str, int]
) -> tuple[Row, list[str]]:
    """Keys of the summary row, and sentences: what undecided claims and annotators' errors do to the rates.

    n_undecided; n_split: those of them on which annotators split evenly, where their errors are estimated; n_overlap
    and n_disputed: claims with two labels or more, and with both; width_majority: the mean width
    of the hierarchical intervals were the majority's labels the truth, null where they are taken for it.
    """
    labels = estimation.corpus.annotator_labels
    n_overlap, n_disputed = (0, 0) if labels is None else count_overlapping_claims(labels)
    n_undecided, n_open = (int(one.n_undecided.sum()) for one in (estimation, _count_splits_as_labels(estimation)))
    row: Row = {"n_undecided": n_undecided, "n_split": n_undecided - n_open}
    row |= {"n_overlap": n_overlap, "n_disputed": n_disputed}
    notes = _describe_undecided_claims(estimation, estimates_by_method, undecided_reasons)
    width_majority: float = np.nan
    if estimation.imputed_cases:
        kept = estimates_by_method("hierarchical")
        # As the rule has it, claims on which annotators split evenly have no label.
        without_ties = estimation.imputed_cases[0].corpus.undecided
        corpus = replace(estimation.corpus, annotator_labels=None, undecided=without_ties)
        by_majority = estimate_rates_by_hierarchical_model(replace(estimation, corpus=corpus))
        width, width_majority = (
            float(np.nanmean([one.high - one.low for one in ones])) for ones in (kept, by_majority)
        )
        moved = [abs(one.rate - other.rate) for one, other in zip(kept, by_majority, strict=True)]
        notes.append(
            f"annotators disagree on {n_disputed} of {format_count(n_overlap, 'claim')} that several labelled; with "
            f"their errors in the model, intervals are {width / width_majority:.2f} times as wide as with the "
            f"majority's labels, and rates move by up to {100 * np.nanmax(moved):.1f} points"
        )
    elif n_disputed:
        notes.append(
            f"annotators disagree on {n_disputed} of {format_count(n_overlap, 'claim')} that several labelled, too few "
            f"to estimate their errors from (fewer than {MIN_OVERLAP}): the majority's labels are taken for true"
        )
    return row | {"width_majority": none_if_undefined(width_majority)}, notes


def _count_splits_as_labels(estimation: RateEstimationCase) -> RateEstimationCase:
    """Claims on which annotators split evenly are no longer undecided where their errors are estimated."""
    return estimation.imputed_cases[0] if estimation.imputed_cases else estimation


def _describe_undecided_claims(
    estimation: RateEstimationCase, estimates_by_method: EstimatesByMethod, undecided_reasons: Mapping[str, int]
) -> list[str]:
    corpus = estimation.corpus
    counted = _count_splits_as_labels(estimation)
    undecided = counted.n_undecided
    looked_at = undecided + counted.n_labels
    n, n_looked_at = int(undecided.sum()), int(looked_at.sum())
    if not n or not len(estimation.labelled_rows):
        return []
    unsaid = (UNDECIDED_MARK, *[DISAGREEMENT_REASON] * bool(estimation.imputed_cases))
    common = sorted(undecided_reasons.items(), key=lambda each: (-each[1], each[0]))
    reasons = ", ".join([f"{reason} {times}" for reason, times in common if reason not in unsaid][:3])
    said = (
        f"people could not decide {n} of {format_count(n_looked_at, corpus.level)} that they looked at"
        + f" ({reasons})" * bool(reasons)
    )
    if not estimation.keeps_undecided:
        return [f"{said}, left out: rates are of the {corpus.level}s that people can decide"]
    counted_as = f"rates count such {corpus.level}s as no errors, as errors, or as the model says, "
    counted_as += "each with a third of the probability"
    if n <= MAX_UNDECIDED_SHARE * n_looked_at:
        return [f"{said}: {counted_as}"]
    kept = estimates_by_method("hierarchical")
    spans = [np.nan if one.least is None or one.greatest is None else one.greatest - one.least for one in kept]
    at = int(np.nanargmax(spans))
    leaves_out = replace(estimation, options=replace(estimation.options, undecided="leave-out"))
    rates = kept[at].least, kept[at].greatest, estimate_rates_by_hierarchical_model(leaves_out)[at].rate
    least, most, without = (f"{100 * (np.nan if rate is None else rate):.1f} %" for rate in rates)
    return [
        f"{said}, {undecided[at]} of {looked_at[at]} of {corpus.systems[at]}: its rate is {least} if no {corpus.level} "
        f"that people cannot decide is an error, {most} if each is, and {without} by a model of the "
        f"labels without them; {counted_as}"
    ]
