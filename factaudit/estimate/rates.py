"""What is the error rate of every system, by few labels? Rows for each data set, level, system and
method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Unpack

import numpy as np
import pandas as pd
import scipy

from factaudit.arrays.judgements import ALL_TOGETHER, LEVELS, Judgements, check_evaluators
from factaudit.audit.core.result_rows import Row
from factaudit.datasets.python_input import (
    ClaimColumnNames,
    MappingSource,
    TableSource,
    load_python_input_frames,
)
from factaudit.errors import UsageError, suggest_known_name
from factaudit.estimate.corpus import Corpus, build_corpora
from factaudit.estimate.methods import (
    ESTIMATION_METHODS,
    MIN_INTERVAL_LABELS,
    MIN_LABELS,
    Estimation,
    RateEstimate,
    estimate_by_method,
)
from factaudit.estimate.sample import LabelSample
from factaudit.settings.python_errors import raise_python_errors
from factaudit.stats import name_ends, name_figure, none_if_undefined, use_one_blas_thread
from factaudit.stats import posterior_comparison as posterior
from factaudit.stats.sampling import simple_random_draw
from factaudit.tables.annotations import (
    find_undecided_claims,
    label_claims_by_annotations,
    list_annotator_judgements,
    relabel_claims_by_annotations,
)
from factaudit.tables.table_loading import LoadedTables
from factaudit.text.display_text import format_count, join_reasons

#: Hierarchical and regression-PPI further apart than so many standard errors are flagged.
CONTRADICTION_Z = 2.0
#: Where more than this share of the systems is flagged so, the model is not the one to quote.
MAX_CONTRADICTING_SHARE = 0.2
#: Of the pairs of systems that are told apart at most this share is expected in the wrong order.
MAX_WRONG_PAIR_SHARE = 0.05

#: A method's name to its estimates, one per system; each method is run once.
EstimatesByMethod = Callable[[str], list[RateEstimate]]


@dataclass(frozen=True)
class EstimationResults:
    """What `estimate_rates` found, as flat rows.

    rates: dataset, level, system, method, n, n_unpredicted, n_labels, n_undecided, rate, rate_low,
    rate_high, rate_min and rate_max (the rate were none of the undecided claims an error, and were
    all; of predicted rates of the unscored ones), reason; differences, ranks: of the systems by the
    hierarchical model; summary: per dataset and level the numbers of labels, which method to quote
    and why.
    """

    rates: list[Row]
    differences: list[Row]
    ranks: list[Row]
    summary: list[Row]

    def audits(self) -> dict[str, list[Row]]:
        """As ``results.json`` has them."""
        return {
            "estimates": self.rates,
            "estimate_summary": self.summary,
            "estimate_ranks": self.ranks,
            "estimate_differences": self.differences,
        }

    def table(self) -> pd.DataFrame:
        """``rates`` as a DataFrame."""
        return pd.DataFrame(self.rates)


@use_one_blas_thread()
@raise_python_errors
def estimate_rates(
    claims: TableSource | Sequence[TableSource],
    verdicts: TableSource | Sequence[TableSource] | None = None,
    *,
    annotations: pd.DataFrame | None = None,
    sample: LabelSample | None = None,
    rule: str = "majority",
    grades: Mapping[str, int | None] | None = None,
    mapping: MappingSource | None = None,
    main: str | None = None,
    methods: Sequence[str] = tuple(ESTIMATION_METHODS),
    levels: Sequence[str] = LEVELS,
    strata: Sequence[str] = ("task",),
    confidence: float = 0.95,
    seed: int = 0,
    evaluators: Sequence[str] | None = None,
    **columns: Unpack[ClaimColumnNames],
) -> EstimationResults:
    """Estimate the error rate of every system from a few labels and the scores of evaluators on all
    claims.

    Args:
        claims, verdicts: tables, frames or paths of any shape, as `factaudit.results.compare` takes
        them, read by
            ``mapping``, ``columns`` and ``evaluators``; the verdicts are of all claims. The
            claims' labels count where no annotations are given.
        annotations: a validated third table, made labels by ``rule`` and ``grades``
        (`factaudit.tables.annotations`).
        sample: the file that the labels were drawn by; without it they are taken as drawn at random
        in each system.
        main: the evaluator that leads (by default the one that drew the sample, else the first in
        ``verdicts``).
        methods: of `factaudit.estimate.methods.ESTIMATION_METHODS`.
        strata: columns of the claims that the model may use.

    Rates are those of these claims. The other evaluators are covariates of the model.

    Raises `UsageError` for unknown names, `InputError` for labels that the sample did not draw.
    """
    for what, names, known in (
        ("method", methods, list(ESTIMATION_METHODS)),
        ("level", levels, LEVELS),
    ):
        for name in names:
            if name not in known:
                raise UsageError(f"unknown {what} {name!r}{suggest_known_name(name, known)}")
    if not 0 < confidence < 1:
        raise UsageError(f"expected a confidence between 0 and 1, found {confidence}")
    judgements, order, annotations = load_labelled_judgements(
        "estimate_rates",
        load_python_input_frames(claims, verdicts, mapping, columns, evaluators),
        annotations,
        sample,
        rule,
        grades,
    )
    if sample is not None and main is None and sample.plan.evaluators[0] in order:
        main = sample.plan.evaluators[0]
    names = order_evaluators(judgements, order, main)
    present = [column for column in strata if column in judgements.claims]
    undecided = np.zeros(len(judgements.label), dtype=bool)
    if annotations is not None:
        labels = label_claims_by_annotations(rule, list_annotator_judgements(annotations, grades))
        found = find_undecided_claims(rule, annotations, labels)
        undecided = judgements.claims["claim_id"].isin(found.index).to_numpy()
    results = EstimationResults([], [], [], [])
    n_claims: dict[str, int] = {}
    for level in dict.fromkeys(levels):
        for corpus in build_corpora(judgements, level, names, present, undecided):
            n = len(corpus.error)
            # Where each response is a single claim, its rates would be those of the claims, drawn
            # again.
            if n and (level == "claim" or n_claims.get(corpus.dataset) != n):
                estimation, refused = _make_estimation(corpus, judgements, sample, methods)
                estimation = replace(estimation, confidence=confidence, seed=seed)
                _append_estimates(results, estimation, refused, methods, sample is not None)
            if level == "claim":
                n_claims[corpus.dataset] = n
            del corpus  # else it is held while the next one is made
    return results


def load_labelled_judgements(
    caller: str,
    tables: LoadedTables,
    annotations: pd.DataFrame | None,
    sample: LabelSample | None,
    rule: str,
    grades: Mapping[str, int | None] | None = None,
) -> tuple[Judgements, list[str], pd.DataFrame | None]:
    """Claims and verdicts joined, with the labels of the annotations where there are any; the
    evaluators in the order of the verdicts; and the annotations.

    Raises `UsageError` for what is missing, and `InputError` for labels that the sample did not
    draw.
    """
    if tables.claims is None or tables.verdicts is None:
        missing = "claims" if tables.claims is None else "verdicts"
        raise UsageError(f"{caller}: there are no {missing} in what was given")
    annotations = tables.annotations if annotations is None else annotations
    judgements = join_claims(tables.claims, tables.verdicts, annotations, rule, grades)
    if sample is not None:
        sample.check_matches(judgements, annotations, rule)
    return judgements, list(map(str, tables.verdicts["evaluator"].unique())), annotations


def join_claims(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    annotations: pd.DataFrame | None = None,
    rule: str = "majority",
    grades: Mapping[str, int | None] | None = None,
) -> Judgements:
    """Claims and verdicts joined, with the labels that a rule makes of annotations where there are
    any."""
    if annotations is None:
        return Judgements.join(claims, verdicts)
    if rule == "mean":
        raise UsageError(
            "the label rule 'mean' gives numbers between 0 and 1, from which no rate can be"
            " estimated; choose majority or another rule"
        )
    judged = list_annotator_judgements(annotations, grades)
    unknown = judged["claim_id"][~judged["claim_id"].isin(claims["claim_id"])].unique()
    if len(unknown):
        raise UsageError(
            f"{len(unknown)} annotated claims are not in the claims table ({unknown[0]!r})"
        )
    bare = claims.assign(label=pd.Series(pd.NA, index=claims.index, dtype="Int8"))
    return Judgements.join(relabel_claims_by_annotations(bare, judged, rule), verdicts)


def order_evaluators(judgements: Judgements, order: Sequence[str], main: str | None) -> list[str]:
    """The main evaluator (by default the first), then the others in the ``order`` of the
    verdicts."""
    names = list(order) if main is None else [main, *(name for name in order if name != main)]
    check_evaluators(names, judgements.evaluators)
    return names


def _make_estimation(
    corpus: Corpus, judgements: Judgements, sample: LabelSample | None, methods: Sequence[str]
) -> tuple[Estimation, str]:
    """The corpus with the draw of its labels; without labels where they cannot be used, and then
    why."""
    refused = ""
    draw = simple_random_draw(corpus.is_labelled | corpus.undecided, corpus.system)
    if sample is not None:
        try:
            draw = sample.find_draw(corpus, judgements)
        except UsageError as error:
            refused = str(error)
    elif corpus.n_partial > 0.1 * max(1, corpus.is_labelled.sum()):
        partial = format_count(corpus.n_partial, "response")
        # The reason stands in the row of each system.
        of_all = " of all systems" * (len(corpus.systems) > 1)
        refused = (
            f"{partial}{of_all} with labels for some of their claims only: sample with --level"
            " response"
        )
    if refused or set(methods) == {"raw"}:  # predicted rates need no label, and nothing is fitted
        nothing = np.zeros(len(corpus.error), dtype=bool)
        n_partial = 0 if refused else corpus.n_partial
        corpus = replace(
            corpus, error=np.full(len(nothing), np.nan), undecided=nothing, n_partial=n_partial
        )
        draw = simple_random_draw(nothing, corpus.system)
    return Estimation(corpus, draw), refused


def _append_estimates(
    results: EstimationResults,
    estimation: Estimation,
    refused: str,
    methods: Sequence[str],
    has_sample: bool,
) -> None:
    corpus = estimation.corpus
    about: Row = {"dataset": corpus.dataset, "level": corpus.level}
    estimated = cache(lambda name: estimate_by_method(name, estimation))
    contradicting = find_contradictions(estimated, estimation.confidence)
    n_unpredicted = corpus.count_by_system(corpus.prediction[0] < 0)
    for at, system in enumerate(corpus.systems):
        for name in methods:
            one = estimated(name)[at]
            flags = [one.reason or "", refused if name != "raw" else ""]
            if one.low == one.high and not corpus.is_labelled[corpus.system == at].all():
                # A few labels that are all alike do not make a rate certain.
                one = replace(one, low=np.nan, high=np.nan)
                flags.append("no interval: it would be a single point")
            if name in ("hierarchical", "regression-ppi") and at in contradicting:
                flags.append(
                    f"hierarchical and regression-ppi are more than {CONTRADICTION_Z:.0f} of"
                    " regression-ppi's standard errors apart"
                )
            bounds = [one.rate if end is None else end for end in (one.least, one.greatest)]
            results.rates.append(
                about
                | {
                    "system": system,
                    "method": name,
                    "n": int(corpus.system_sizes[at]),
                    "n_unpredicted": int(n_unpredicted[at]),
                    "n_labels": int(estimation.n_labels[at]),
                    "n_undecided": int(estimation.n_undecided[at]),
                    **name_figure("rate", one.rate, (one.low, one.high)),
                    **name_ends("rate", bounds, ("min", "max")),
                    "reason": join_reasons(flags),
                }
            )
    results.differences.extend(about | row for row in compare_pairs(estimation))
    results.ranks.extend(about | row for row in rank_systems(estimation))
    quote, why = _recommend_method(estimation, len(contradicting), refused, methods)
    results.summary.append(
        about
        | {
            "main": corpus.evaluators[0],
            "n": len(corpus.error),
            "n_labels": len(estimation.labelled_rows),
            "n_systems": 0 if corpus.systems == (ALL_TOGETHER,) else len(corpus.systems),
            "quote": quote,
            "why": why,
            "n_undecided": int(estimation.n_undecided.sum()),
            "reason": join_reasons([refused, *_list_caveats(estimation, has_sample)]),
        }
    )


# ---- systems side by side


def _list_compared_systems(estimation: Estimation) -> list[int]:
    """The systems that have a rate of the model: those with labels."""
    return np.flatnonzero(estimation.n_labels).tolist()


def compare_pairs(estimation: Estimation) -> list[Row]:
    """A row per pair of systems: difference = the error rate of system_a minus that of system_b,
    with its interval.

    p_wrong: the probability that the difference has the other sign. ``order`` is ``<`` or ``>`` of
    the pairs that this alone tells apart (`MAX_WRONG_PAIR_SHARE`), else ``?``.
    """
    pairs = list(combinations(_list_compared_systems(estimation), 2))
    if not pairs:
        return []
    a, b = np.array(pairs).T
    differences = estimation.rate_draws[:, a] - estimation.rate_draws[:, b]
    means, lows, highs = posterior.posterior_interval(differences, estimation.confidence)
    p_wrong = posterior.wrong_direction_probabilities(differences)
    apart = posterior.select_directed_pairs(
        p_wrong, MAX_WRONG_PAIR_SHARE, (1 - estimation.confidence) / 2
    )
    systems = estimation.corpus.systems
    return [
        {
            "system_a": systems[one],
            "system_b": systems[other],
            **name_figure("difference", means[at], (lows[at], highs[at])),
            "p_wrong": float(p_wrong[at]),
            "order": ("<" if means[at] < 0 else ">") if apart[at] else "?",
        }
        for at, (one, other) in enumerate(pairs)
    ]


def rank_systems(estimation: Estimation) -> list[Row]:
    """A row per system: p_best, the probability of the lowest error rate, and its rank (1 is best)
    with an interval."""
    members = _list_compared_systems(estimation)
    if len(members) < 2:
        return []
    p_best, (rank, low, high) = posterior.rank_posterior_draws(
        estimation.rate_draws[:, members], estimation.confidence
    )
    return [
        {
            "system": estimation.corpus.systems[at],
            "p_best": none_if_undefined(p_best[i]),
            **name_figure("rank", rank[i], (low[i], high[i])),
        }
        for i, at in enumerate(members)
    ]


# ---- what to make of them


def find_contradictions(estimates_by_method: EstimatesByMethod, confidence: float) -> list[int]:
    """The systems whose hierarchical and regression-PPI rates contradict each other."""
    z = scipy.special.ndtri((1 + confidence) / 2)
    found = []
    both = zip(
        estimates_by_method("hierarchical"), estimates_by_method("regression-ppi"), strict=True
    )
    for at, (model, design) in enumerate(both):
        # Where an interval is cut off at 0 or 1, the other side has its standard error.
        error = max(design.high - design.rate, design.rate - design.low) / z
        if abs(model.rate - design.rate) > CONTRADICTION_Z * error:  # false where one is NaN
            found.append(at)
    return found


def _recommend_method(
    estimation: Estimation, n_contradicting: int, refused: str, methods: Sequence[str]
) -> tuple[str | None, str]:
    """The method to quote, or None, and the sentence that says why; methods: those asked for."""
    if set(methods) == {"raw"}:
        return None, "only the predicted rates were asked for (--method)"
    method, why = _choose_method(estimation, n_contradicting, refused)
    if method not in (None, *methods):
        why = f"the method to quote is {method}, which was not asked for (--method)"
    return method, why


def _choose_method(
    estimation: Estimation, n_contradicting: int, refused: str
) -> tuple[str | None, str]:
    labelled = estimation.n_labels[estimation.n_labels > 0]
    if refused:
        return None, "no rate can be quoted: the labels that there are cannot be used"
    if not len(labelled):
        return None, "no rate can be quoted: there is no label to correct the predictions by"
    method = "labels"
    if estimation.corpus.is_labelled.all():
        why = "everything is labelled, so that the rates are counts and no estimates"
    elif n_contradicting > MAX_CONTRADICTING_SHARE * len(labelled):
        systems = f"{n_contradicting} of {len(labelled)} systems"
        why = f"for {systems} the model and the design-based estimate contradict each other"
    elif not _scores_tell_errors(estimation) and labelled.min() >= MIN_INTERVAL_LABELS:
        why = "they do not show that the scores tell errors from correct claims, so that scores add"
        why += " nothing that can be relied on"
    else:
        method = "hierarchical"
        why = "it uses the scores and all systems' labels, and its intervals are calibrated"
        if np.median(labelled) < MIN_LABELS:
            why = f"its interval says how little fewer than {MIN_LABELS} labels a system can tell"
    return method, f"quote {'the labels' if method == 'labels' else method}: {why}"


def _scores_tell_errors(estimation: Estimation) -> bool:
    """Whether the labels show that scores are higher for correct claims than for errors."""
    if "shared" not in estimation.covariates.names:
        return False
    return bool(np.quantile(estimation.posterior.slopes[:, 0], 0.05) > 0)


def _list_caveats(estimation: Estimation, has_sample: bool) -> Iterator[str]:
    """What a reader of one corpus's estimates should know about its labels and scores, and what was
    left out."""
    corpus, n_labels = estimation.corpus, estimation.n_labels[estimation.n_labels > 0]
    few = int((n_labels < MIN_LABELS).sum())
    if few and np.median(n_labels) >= MIN_LABELS:
        yield f"{format_count(few, 'system')} with fewer than {MIN_LABELS} labels"
    if len(n_labels) and not has_sample and not corpus.is_labelled.all():
        yield "no sample file: the labels are taken as drawn at random within each system"
    if missing := int(np.isnan(corpus.score[0]).sum()):
        yield (
            f"{corpus.evaluators[0]} did not score {missing:,} of"
            f" {format_count(len(corpus.error), corpus.level)}"
        )
    if corpus.n_left_out:
        what = "without a system" if corpus.level == "claim" else "without a response_id"
        yield f"{format_count(corpus.n_left_out, 'claim')} {what} left out"
    if corpus.n_partial:
        yield (
            f"{format_count(corpus.n_partial, 'response')} with labels for only some claims count"
            " as not labelled"
        )
    if undecided := int(estimation.n_undecided.sum()):
        seen = format_count(undecided + len(estimation.labelled_rows), corpus.level)
        yield (
            f"people could not decide {undecided} of {seen} that they looked at: they count as"
            " unlabelled, and the bounds as right and as wrong"
        )
