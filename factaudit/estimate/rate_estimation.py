"""How do tables become estimated rates? Rows for each data set, level, system and method."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Unpack

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import LEVELS, MISSING, Judgements, check_evaluators
from factaudit.audit.core.result_rows import Row
from factaudit.blas_threads import use_one_blas_thread
from factaudit.errors import UsageError, suggest_known_name
from factaudit.estimate.estimate_summary import (
    CONTRADICTION_Z,
    compare_interval_widths_with_and_without_scores,
    describe_undecided_claims,
    find_systems_whose_methods_contradict,
    list_estimation_caveats,
    recommend_estimation_method,
    summarise_estimates,
)
from factaudit.estimate.estimation_case import RateEstimationCase, RateEstimationOptions
from factaudit.estimate.estimation_methods import (
    ESTIMATION_METHODS,
    RateEstimate,
    estimate_rates_by_method,
)
from factaudit.estimate.label_sample import LabelSample, check_label_sample_matches
from factaudit.estimate.scored_corpus import (
    CorpusAnnotatorLabels,
    ScoredCorpus,
    build_scored_corpora,
)
from factaudit.estimate.system_comparison import pairwise_rate_differences, posterior_system_ranks
from factaudit.python_errors import raise_python_errors
from factaudit.python_input import ClaimColumnNames, MappingSource, TableSource, load_python_input_frames
from factaudit.stats.stratified_sampling import assume_simple_random_draw
from factaudit.stats.undefined_values import none_if_undefined
from factaudit.tables import find_claim_positions_in_table
from factaudit.tables.annotations import label_claims_by_annotations, list_annotator_judgements
from factaudit.text.display_text import format_count, join_reasons

ESTIMATION_TARGETS = ("corpus", "population")


@dataclass(frozen=True)
class EstimationResults:
    """What `estimate_rates` found, as flat rows.

    rates: dataset, level, system, method, n, n_unpredicted, n_labels, n_undecided, rate, rate_low, rate_high, rate_min
    and rate_max (the rate were none of the undecided claims an error, and were all; of predicted rates of the unscored
    ones), reason; differences, ranks: of the systems by
    the hierarchical model; summary: per dataset and level headroom, the share of pairs resolved, the worth of a label
    with the scores, which method to quote and why.
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
    claims: TableSource | Sequence[TableSource] | Judgements,
    verdicts: TableSource | Sequence[TableSource] | None = None,
    *,
    annotations: pd.DataFrame | None = None,
    sample: LabelSample | None = None,
    rule: str = "majority",
    grades: Mapping[str, int | None] | None = None,
    mapping: MappingSource | None = None,
    main: str | None = None,
    covariates: Sequence[str] | None = None,
    methods: Sequence[str] = tuple(ESTIMATION_METHODS),
    levels: Sequence[str] = LEVELS,
    strata: Sequence[str] = ("task",),
    target: str = "corpus",
    confidence: float = 0.95,
    seed: int = 0,
    evaluators: Sequence[str] | None = None,
    **columns: Unpack[ClaimColumnNames],
) -> EstimationResults:
    """Estimate the error rate of every system from a few labels and the scores of evaluators on all claims.

    Args:
        claims, verdicts: tables, frames or paths of any shape, as `factaudit.results.compare` takes them, read by
            ``mapping``, ``columns`` and ``evaluators``; the verdicts are of all claims. The
            claims' labels count where no annotations are given. Or `Judgements`, which are both in one.
        annotations: a validated third table, made labels by ``rule`` and ``grades`` (`factaudit.tables.annotations`).
        sample: the file that the labels were drawn by; without it they are taken as drawn at random in each system.
        main: the evaluator that leads (by default the one that drew the sample, else the first in ``verdicts``).
        covariates: the other evaluators to use (by default all).
        methods: of `factaudit.estimate.estimation_methods.ESTIMATION_METHODS`.
        strata: columns of the claims that the model may use.
        target: ``corpus``, these claims, or ``population``, what their documents were drawn from.

    Raises `UsageError` for unknown names, `InputError` for labels that the sample did not draw.
    """
    check_estimation_names(methods, levels, target)
    if isinstance(claims, Judgements):
        judgements, order = claims, list(claims.evaluators)
        if main is None and len(order) > 1 and sample is None:
            raise UsageError(
                f"estimate: expected main, one of {', '.join(order)}: these tables have no first evaluator"
            )
        if annotations is not None:
            judgements = _relabel_judgements(judgements, annotations, rule, grades)
    else:
        loaded = load_python_input_frames(claims, verdicts, mapping, columns, evaluators)
        if loaded.claims is None or loaded.verdicts is None:
            raise UsageError(
                f"estimate_rates: there are no {'claims' if loaded.claims is None else 'verdicts'} in what was given"
            )
        annotations = loaded.annotations if annotations is None else annotations
        judgements = join_claims_for_estimation(loaded.claims, loaded.verdicts, annotations, rule, grades)
        order = list(map(str, loaded.verdicts["evaluator"].unique()))
    if sample is not None:
        check_label_sample_matches(sample, judgements, annotations, rule)
    people = None if annotations is None else CorpusAnnotatorLabels.join(judgements, annotations, rule, grades)
    if main is None and sample is not None and sample.plan.evaluators[0] in judgements.evaluators:
        main = sample.plan.evaluators[0]
    evaluators = choose_estimation_covariates(judgements, order, main, covariates)
    present = [column for column in strata if column in judgements.claims]
    options = RateEstimationOptions(target, confidence, seed)
    corpora = _make_corpora_of_estimate_levels(
        levels, lambda level: build_scored_corpora(judgements, level, evaluators, present, people)
    )
    return _estimate_rates_of_corpora(corpora, options, methods, judgements, sample, people)


def _make_corpora_of_estimate_levels(
    levels: Sequence[str], make_corpora: Callable[[str], Iterable[ScoredCorpus]]
) -> Iterator[ScoredCorpus]:
    """The corpora of each level, once, of datasets that have any claims or responses.

    Where each response is a single claim, the responses' rates would be those of the claims, drawn again: they are
    left out.
    """
    n_claims: dict[str, int] = {}
    for level in dict.fromkeys(levels):
        for corpus in make_corpora(level):
            if level == "claim":
                n_claims[corpus.dataset] = len(corpus.error)
            if len(corpus.error) and (level == "claim" or n_claims.get(corpus.dataset) != len(corpus.error)):
                yield corpus
            del corpus


def check_estimation_names(methods: Sequence[str], levels: Sequence[str], target: str) -> None:
    """Raise `UsageError` for a name that is none of the methods, levels or targets."""
    for what, names, known in (
        ("method", methods, list(ESTIMATION_METHODS)),
        ("level", levels, LEVELS),
        ("target", [target], ESTIMATION_TARGETS),
    ):
        for name in names:
            if name not in known:
                raise UsageError(f"unknown {what} {name!r}{suggest_known_name(name, known)}")


def join_claims_for_estimation(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    annotations: pd.DataFrame | None = None,
    rule: str = "majority",
    grades: Mapping[str, int | None] | None = None,
) -> Judgements:
    """Claims and verdicts joined, with the labels that a rule makes of annotations where there are any."""
    if annotations is not None:
        claims = _relabel_claims(claims, annotations, rule, grades)
    return Judgements.join(claims, verdicts)


def _relabel_judgements(
    judgements: Judgements, annotations: pd.DataFrame, rule: str, grades: Mapping[str, int | None] | None
) -> Judgements:
    claims = _relabel_claims(judgements.claims, annotations, rule, grades)
    return replace(judgements, claims=claims, label=claims["label"].fillna(MISSING).to_numpy(dtype=np.int8))


def _relabel_claims(
    claims: pd.DataFrame, annotations: pd.DataFrame, rule: str, grades: Mapping[str, int | None] | None
) -> pd.DataFrame:
    labels = _decide_labels_for_estimation(annotations, rule, grades)
    at = find_claim_positions_in_table(claims, pd.Series(labels.index))
    if (at < 0).any():
        raise UsageError(f"{(at < 0).sum()} annotated claims are not in the claims table ({labels.index[at < 0][0]!r})")
    label = pd.Series(pd.NA, index=claims.index, dtype="Int8")
    label.iloc[at] = labels.to_numpy()
    return claims.assign(label=label)


def _decide_labels_for_estimation(
    annotations: pd.DataFrame, rule: str, grades: Mapping[str, int | None] | None
) -> pd.Series:
    """The labels that a rule makes of annotations, by claim_id."""
    if rule == "mean":
        raise UsageError(
            "the label rule 'mean' gives numbers between 0 and 1, from which no rate can be estimated; choose "
            "majority or another rule"
        )
    return label_claims_by_annotations(rule, list_annotator_judgements(annotations, grades))


def choose_estimation_covariates(
    judgements: Judgements, order: Sequence[str], main: str | None, covariates: Sequence[str] | None
) -> list[str]:
    """The main evaluator and its covariates, in the ``order`` of the verdicts."""
    main = order[0] if main is None else main
    others = [name for name in order if name != main] if covariates is None else list(covariates)
    names = list(dict.fromkeys([main, *others]))
    check_evaluators(names, judgements.evaluators)
    return names


def _estimate_rates_of_corpora(
    corpora: Iterable[ScoredCorpus],
    options: RateEstimationOptions,
    methods: Sequence[str],
    judgements: Judgements | None = None,
    sample: LabelSample | None = None,
    people: CorpusAnnotatorLabels | None = None,
) -> EstimationResults:
    if not 0 < options.confidence < 1:
        raise UsageError(f"expected a confidence between 0 and 1, found {options.confidence}")
    results = EstimationResults([], [], [], [])
    for corpus in corpora:
        _append_corpus_estimates(results, corpus, judgements, sample, options, methods, people)
        del corpus  # else it is held while the next one is made
    return results


def _drop_interval_of_a_point(estimate: RateEstimate, case: RateEstimationCase, system: int) -> RateEstimate:
    """Without an interval that is a single point: a few labels that are all alike do not make a rate certain."""
    if estimate.low != estimate.high or case.corpus.is_labelled[case.corpus.system == system].all():
        return estimate
    reason = join_reasons([estimate.reason or "", "no interval: it would be a single point"])
    return replace(estimate, low=np.nan, high=np.nan, reason=reason)


def _append_corpus_estimates(
    results: EstimationResults,
    corpus: ScoredCorpus,
    judgements: Judgements | None,
    sample: LabelSample | None,
    options: RateEstimationOptions,
    methods: Sequence[str],
    people: CorpusAnnotatorLabels | None,
) -> None:
    about: Row = {"dataset": corpus.dataset, "level": corpus.level}
    refused = ""
    draw = assume_simple_random_draw(corpus.is_labelled | corpus.undecided, corpus.system)
    if sample is not None and judgements is not None:
        try:
            draw = sample.corpus_draw(corpus, judgements)
        except UsageError as error:
            refused = str(error)
    elif corpus.n_partial > 0.1 * max(1, corpus.is_labelled.sum()):
        partial = format_count(corpus.n_partial, "response")
        of_all = " of all systems" * (len(corpus.systems) > 1)  # the reason stands in the row of each system
        refused = f"{partial}{of_all} with labels for some of their claims only: sample with --level response"
    if refused:
        unknown = np.full(len(corpus.error), np.nan)
        corpus = replace(corpus, error=unknown, undecided=np.isfinite(unknown), n_partial=0)
        draw = assume_simple_random_draw(corpus.is_labelled, corpus.system)
    if set(methods) == {"raw"}:  # no label is needed, and nothing is fitted
        unlabelled = np.full(len(corpus.error), np.nan)
        corpus = replace(corpus, error=unlabelled, undecided=np.isfinite(unlabelled))
        draw = assume_simple_random_draw(corpus.is_labelled, corpus.system)
    case = RateEstimationCase(corpus, draw, options)
    estimated = cache(lambda name: estimate_rates_by_method(name, case))
    apart = find_systems_whose_methods_contradict(estimated, options.confidence)
    for at, system in enumerate(corpus.systems):
        for name in methods:
            one = _drop_interval_of_a_point(estimated(name)[at], case, at)
            flags = [one.reason or "", refused if name != "raw" else ""]
            if name in ("hierarchical", "regression-ppi") and at in apart:
                flags.append(
                    f"hierarchical and regression-ppi are more than {CONTRADICTION_Z:.0f} of regression-ppi's standard "
                    "errors apart"
                )
            row = about | {"system": system, "method": name, "n": int(corpus.system_sizes[at])}
            row |= {"n_unpredicted": int((corpus.prediction[0, corpus.system == at] < 0).sum())}
            row |= {"n_labels": int(case.n_labels[at]), "n_undecided": int(case.n_undecided[at])}
            row |= {"rate": none_if_undefined(one.rate)}
            row |= {"rate_low": none_if_undefined(one.low), "rate_high": none_if_undefined(one.high)}
            least, most = (one.rate if end is None else end for end in (one.least, one.greatest))
            row |= {"rate_min": none_if_undefined(least), "rate_max": none_if_undefined(most)}
            results.rates.append(row | {"reason": join_reasons(flags)})
    pairs = pairwise_rate_differences(case)
    results.differences.extend(about | row for row in pairs)
    results.ranks.extend(about | row for row in posterior_system_ranks(case, pairs))
    summary = (
        summarise_estimates(case, [row["order"] for row in pairs])
        | compare_interval_widths_with_and_without_scores(case, estimated)
        | recommend_estimation_method(case, apart, refused, methods)
    )
    # Reasons are those of claims.
    reasons = people.count_undecided_reasons(corpus.dataset) if people is not None and corpus.level == "claim" else {}
    summary |= {"n_undecided": int(case.n_undecided.sum())}
    caveats = describe_undecided_claims(case, reasons)
    caveats += list_estimation_caveats(case, has_sample=sample is not None)
    if summary["width"] is None and len(case.labelled_rows):
        why = "no system has intervals with scores, with shuffled scores and by labels alone"
        why = "everything is labelled, and no interval has a width" if corpus.is_labelled.all() else why
        caveats.append(f"no widths are compared: {why}")
    results.summary.append(about | summary | {"reason": join_reasons([refused, *caveats])})
