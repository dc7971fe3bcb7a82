"""Which method should be quoted for a corpus, what is a label worth, and what are the caveats?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import scipy

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.audit.core.result_rows import Row
from factaudit.estimate.estimation_case import RateEstimationCase
from factaudit.estimate.estimation_methods import (
    MIN_INTERVAL_LABELS,
    MIN_LABELS,
    RateEstimate,
    estimate_rates_by_hierarchical_model,
)
from factaudit.estimate.system_comparison import extreme_system_rates
from factaudit.stats.hierarchical_regression import MIN_EFFECTIVE_PROPOSALS
from factaudit.stats.undefined_values import none_if_undefined
from factaudit.tables.annotations import UNDECIDED_MARK
from factaudit.text.display_text import format_count

#: A method's name to its estimates, one per system; each method is run once.
EstimatesByMethod = Callable[[str], list[RateEstimate]]
#: Hierarchical and regression-PPI further apart than so many standard errors are flagged.
CONTRADICTION_Z = 2.0
#: Where more than this share of the systems is flagged so, the model is not the one to quote.
MAX_CONTRADICTING_SHARE = 0.2


def find_systems_whose_methods_contradict(estimates_by_method: EstimatesByMethod, confidence: float) -> list[int]:
    """The systems whose hierarchical and regression-PPI rates contradict each other."""
    z = scipy.special.ndtri((1 + confidence) / 2)
    found = []
    for at, (model, design) in enumerate(
        zip(estimates_by_method("hierarchical"), estimates_by_method("regression-ppi"), strict=True)
    ):
        # Where an interval is cut off at 0 or 1, the other side has its standard error.
        error = max(design.high - design.rate, design.rate - design.low) / z
        if abs(model.rate - design.rate) > CONTRADICTION_Z * error:  # false where one is NaN
            found.append(at)
    return found


def summarise_estimates(estimation: RateEstimationCase, orders: Sequence[str]) -> Row:
    """What was estimated, the share of pairs of systems told apart (``orders``), the lowest, highest and best rate."""
    corpus = estimation.corpus
    return {
        "main": corpus.evaluators[0],
        "covariates": ", ".join(corpus.evaluators[1:]) or None,
        "target": estimation.options.target,
        "n": len(corpus.error),
        "n_labels": len(estimation.labelled_rows),
        "n_systems": 0 if corpus.systems == (ALL_TOGETHER,) else len(corpus.systems),
        "n_pairs": len(orders),
        "resolved": none_if_undefined(np.mean([order != "?" for order in orders])) if orders else None,
        **extreme_system_rates(estimation),
    }


def compare_interval_widths_with_and_without_scores(
    estimation: RateEstimationCase, estimates_by_method: EstimatesByMethod
) -> Row:
    """Mean widths of the intervals with the scores, with shuffled scores and by labels alone, over the systems that
    have all.

    worth: the squared ratio of widths, labels alone to with scores; worth_shuffled: the same of scores that tell
    nothing, which is what the model's pooling of systems and its prior do.
    """
    shuffled = (
        estimate_rates_by_hierarchical_model(_shuffle_scores_across_claims(estimation))
        if estimation.labelled_rows.size
        else []
    )
    widths = [
        [one.high - one.low for one in ones]
        for ones in (estimates_by_method("hierarchical"), shuffled, estimates_by_method("labels"))
        if ones
    ]
    both = [of_system for of_system in zip(*widths, strict=True) if all(width > 0 for width in of_system)]
    width, without, alone = np.mean(both, axis=0) if both and len(widths) == 3 else (np.nan,) * 3
    return {
        "width": none_if_undefined(width),
        "width_shuffled": none_if_undefined(without),
        "width_labels": none_if_undefined(alone),
        "worth": none_if_undefined((alone / width) ** 2),
        "worth_shuffled": none_if_undefined((alone / without) ** 2),
    }


def _shuffle_scores_across_claims(estimation: RateEstimationCase) -> RateEstimationCase:
    """The same labels with the scores of other claims."""
    corpus = estimation.corpus
    order = estimation.random_generator("shuffled scores").permutation(len(corpus.error))
    return replace(estimation, corpus=replace(corpus, score=corpus.score[:, order]))


def recommend_estimation_method(
    estimation: RateEstimationCase, contradicting_systems: Sequence[int], refusal_reason: str, methods: Sequence[str]
) -> Row:
    """``quote``: the method to quote, or None; ``why``: the sentence that says why; methods: those asked for."""
    if set(methods) == {"raw"}:
        return {"quote": None, "why": "only the predicted rates were asked for (--method)"}
    advice = _choose_method_to_quote(estimation, contradicting_systems, refusal_reason)
    if advice["quote"] in (None, *methods):
        return advice
    return advice | {"why": f"the method to quote is {advice['quote']}, which was not asked for (--method)"}


def _choose_method_to_quote(
    estimation: RateEstimationCase, contradicting_systems: Sequence[int], refusal_reason: str
) -> Row:
    labelled_systems = int((estimation.n_labels > 0).sum())
    if refusal_reason:
        return {"quote": None, "why": "no rate can be quoted: the labels that there are cannot be used"}
    if not len(estimation.labelled_rows):
        return {"quote": None, "why": "no rate can be quoted: there is no label to correct the predictions by"}
    if estimation.corpus.is_labelled.all() and estimation.options.target == "corpus":
        why = "quote the labels: everything is labelled, so that the rates are counts and no estimates"
        return {"quote": "labels", "why": why}
    if len(contradicting_systems) > MAX_CONTRADICTING_SHARE * labelled_systems:
        systems = f"{len(contradicting_systems)} of {labelled_systems} systems"
        why = f"quote the labels: for {systems} the model and the design-based estimate contradict each other"
        return {"quote": "labels", "why": why}
    labelled = estimation.n_labels[estimation.n_labels > 0]
    if has_uninformative_scores(estimation) and labelled.min() >= MIN_INTERVAL_LABELS:
        why = "quote the labels: they do not show that the scores tell errors from correct claims, so that scores add "
        return {"quote": "labels", "why": why + "nothing that can be relied on"}
    if np.median(labelled) < MIN_LABELS:
        why = f"quote hierarchical for its interval, though fewer than {MIN_LABELS} labels a system say little"
        return {"quote": "hierarchical", "why": why}
    why = "quote hierarchical: it uses the scores and all systems' labels, and its intervals are calibrated"
    return {"quote": "hierarchical", "why": why}


def has_uninformative_scores(estimation: RateEstimationCase) -> bool:
    """Whether the labels leave it open that scores are no higher for correct claims than for errors."""
    if "shared" not in estimation.covariates.names:
        return True
    return bool(np.quantile(estimation.posterior.slopes[:, 0], 0.05) <= 0)


def list_estimation_caveats(estimation: RateEstimationCase, has_sample: bool) -> list[str]:
    """What a reader of one corpus's estimates should know: about labels, scores, the fit and what was left out."""
    corpus = estimation.corpus
    notes = []
    main = corpus.evaluators[0]
    if len(estimation.labelled_rows):
        error = corpus.error[estimation.labelled_rows]
        if error.min() == error.max():
            notes.append(f"all labels are {'unattributable' if error[0] else 'attributable'}")
        if "shared" in estimation.covariates.names and has_uninformative_scores(estimation):
            notes.append("the labels do not show that the scores are higher for correct claims")
        few = int(((estimation.n_labels > 0) & (estimation.n_labels < MIN_LABELS)).sum())
        if few and np.median(estimation.n_labels[estimation.n_labels > 0]) >= MIN_LABELS:
            notes.append(f"{format_count(few, 'system')} with fewer than {MIN_LABELS} labels")
        if not has_sample and not corpus.is_labelled.all():
            notes.append("no sample file: the labels are taken as drawn at random within each system")
        if estimation.posterior.n_effective_proposals < MIN_EFFECTIVE_PROPOSALS:
            n_effective = f"an effective number of {estimation.posterior.n_effective_proposals:.0f}"
            notes.append(
                f"the posterior is known roughly only: its draws have {n_effective}, below {MIN_EFFECTIVE_PROPOSALS}"
            )
    if missing := int(np.isnan(corpus.score[0]).sum()):
        notes.append(f"{main} did not score {missing:,} of {format_count(len(corpus.error), corpus.level)}")
    known = corpus.score[0][~np.isnan(corpus.score[0])]
    if len(known) and known.min() == known.max():
        notes.append(f"all scores of {main} are equal: they add nothing")
    if len(corpus.systems) < 2:
        notes.append(f"{'no' if corpus.systems == (ALL_TOGETHER,) else 'one'} system: there is nothing to compare")
    if corpus.n_left_out:
        what = "without a system" if corpus.level == "claim" else "without a response_id"
        notes.append(f"{format_count(corpus.n_left_out, 'claim')} {what} left out")
    if corpus.n_partial:
        notes.append(
            f"{format_count(corpus.n_partial, 'response')} with labels for only some claims count as not labelled"
        )
    return notes


def describe_undecided_claims(estimation: RateEstimationCase, undecided_reasons: Mapping[str, int]) -> list[str]:
    """How many claims people looked at and could not decide, and what that means for the rates."""
    n = int(estimation.n_undecided.sum())
    n_seen = n + len(estimation.labelled_rows)
    if not n:
        return []
    common = sorted(undecided_reasons.items(), key=lambda each: (-each[1], each[0]))
    reasons = ", ".join([f"{reason} {times}" for reason, times in common if reason != UNDECIDED_MARK][:3])
    told = f"people could not decide {n} of {format_count(n_seen, estimation.corpus.level)} that they looked at"
    told += f" ({reasons})" * bool(reasons) + ": they count as unlabelled, and the bounds as right and as wrong"
    return [told]
