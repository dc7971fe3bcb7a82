"""From tables to rows: every method, dataset and level, with what the systems' comparison and the labels are worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
from scipy.special import ndtri

from factaudit.audit.core.judged import LEVELS, Judged
from factaudit.audit.core.rows import Row, number, reasons
from factaudit.audit.core.tallies import check_evaluators
from factaudit.audit.core.units import Held
from factaudit.errors import UsageError, hint
from factaudit.estimate.case import Case, Settings
from factaudit.estimate.compare import differences, lowest, ranks
from factaudit.estimate.corpus import Corpus, corpora, held_corpora
from factaudit.estimate.design import random_draw
from factaudit.estimate.hierarchical import MIN_EFFECTIVE
from factaudit.estimate.methods import DEFAULT_METHODS, METHODS, MIN_LABELS, Estimate
from factaudit.estimate.sample import Sample, check_corpus
from factaudit.tables import claim_positions
from factaudit.tables.annotations import judgements, labels_by
from factaudit.text.printable import count
from factaudit.threads import one_thread

#: A method's name to its estimates, one per system; each method is run once.
Estimated = Callable[[str], list[Estimate]]
TARGETS = ("corpus", "population")
#: Hierarchical and regression-PPI further apart than so many standard errors are flagged.
APART = 2.0
#: Where more than this share of the systems is flagged so, the model is not the one to quote.
MANY_APART = 0.2


@dataclass(frozen=True)
class Estimates:
    """What `estimate_rates` found, as flat rows.

    rates: dataset, level, system, method, n, n_labels, rate, rate_low, rate_high, reason; differences, ranks: of the
    systems by the hierarchical model; summary: per dataset and level headroom, the share of pairs resolved, what the
    labels bought, which method to quote and why.
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


@one_thread()
def estimate_rates(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    *,
    annotations: pd.DataFrame | None = None,
    sample: Sample | None = None,
    rule: str = "majority",
    grades: Mapping[str, int | None] | None = None,
    main: str | None = None,
    covariates: Sequence[str] | None = None,
    methods: Sequence[str] = DEFAULT_METHODS,
    levels: Sequence[str] = LEVELS,
    strata: Sequence[str] = ("task",),
    target: str = "corpus",
    confidence: float = 0.95,
    seed: int = 0,
    transfer: bool = False,
) -> Estimates:
    """Estimate the error rate of every system from a few labels and the scores of evaluators on all claims.

    Args:
        claims: a validated table; its labels count where no annotations are given.
        verdicts: a validated table, of all claims.
        annotations: a validated third table, made labels by ``rule`` and ``grades`` (`factaudit.tables.annotations`).
        sample: the file that the labels were drawn by; without it they are taken as drawn at random in each system.
        main: the evaluator that leads (by default the first in ``verdicts``).
        covariates: the other evaluators to use (by default all).
        methods: of `factaudit.estimate.methods.METHODS`.
        strata: columns of the claims that the model may use.
        target: ``corpus``, these claims, or ``population``, what their documents were drawn from.
        transfer: give rates to systems without labels of their own too, with a test of whether systems are alike.

    Raises `UsageError` for unknown names, `InputError` for labels that the sample did not draw.
    """
    _check(methods, target, confidence)
    judged = labelled(claims, verdicts, annotations, rule, grades)
    if sample is not None:
        check_corpus(sample, judged)
        sample.check_labels(judged.claims["claim_id"][judged.label >= 0])
    evaluators = chosen_evaluators(judged, verdicts, main, covariates)
    present = [column for column in strata if column in judged.claims]
    settings = Settings(target=target, confidence=confidence, seed=seed, transfer=transfer)
    found = Estimates([], [], [], [])
    for corpus in _at(levels, lambda level: corpora(judged, level, evaluators, present)):
        _add(found, corpus, judged, sample, settings, methods)
        del corpus  # else it is held while the next one is made
    return found


@one_thread()
def estimate_held(
    held: Held,
    *,
    annotations: pd.DataFrame | None = None,
    rule: str = "majority",
    grades: Mapping[str, int | None] | None = None,
    main: str | None = None,
    covariates: Sequence[str] | None = None,
    methods: Sequence[str] = DEFAULT_METHODS,
    levels: Sequence[str] = LEVELS,
    strata: Sequence[str] = ("task",),
    target: str = "corpus",
    confidence: float = 0.95,
    seed: int = 0,
    transfer: bool = False,
) -> Estimates:
    """`estimate_rates` of claims that are not in memory, dataset by dataset.

    Labels are taken as drawn at random within each system. Tables have no order: of several evaluators ``main`` is
    named, and covariates are in alphabetical order where they are not.
    """
    _check(methods, target, confidence)
    if main is None and len(held.evaluators) > 1:
        known = ", ".join(held.evaluators)
        raise UsageError(f"estimate: expected main, one of {known}: tables past memory have no first evaluator")
    main = held.evaluators[0] if main is None else main
    names = list(dict.fromkeys([main, *(held.evaluators if covariates is None else covariates)]))
    check_evaluators(names, held.evaluators)
    if annotations is not None:
        made = _made(annotations, rule, grades)
        held.relabel({str(name): None if pd.isna(one) else int(one) for name, one in made.items()})
    settings = Settings(target=target, confidence=confidence, seed=seed, transfer=transfer)
    found = Estimates([], [], [], [])
    for corpus in _at(levels, lambda level: held_corpora(held, level, names, strata)):
        _add(found, corpus, None, None, settings, methods)
        del corpus
    return found


def _at(levels: Sequence[str], made: Callable[[str], Iterable[Corpus]]) -> Iterator[Corpus]:
    """What is ``made`` at each level, once, of datasets that have any claims or responses."""
    for level in dict.fromkeys(levels):
        for corpus in made(level):
            if len(corpus.error):
                yield corpus
            del corpus


def _check(methods: Sequence[str], target: str, confidence: float) -> None:
    for name in methods:
        if name not in METHODS:
            raise UsageError(f"unknown method {name!r}{hint(name, list(METHODS))}")
    if target not in TARGETS:
        raise UsageError(f"unknown target {target!r}{hint(target, TARGETS)}")
    if not 0 < confidence < 1:
        raise UsageError(f"expected a confidence between 0 and 1, found {confidence}")


def labelled(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    annotations: pd.DataFrame | None = None,
    rule: str = "majority",
    grades: Mapping[str, int | None] | None = None,
) -> Judged:
    """Claims and verdicts joined, with the labels that a rule makes of annotations where there are any."""
    if annotations is None:
        return Judged.join(claims, verdicts)
    made = _made(annotations, rule, grades)
    at = claim_positions(claims, pd.Series(made.index))
    if (at < 0).any():
        raise UsageError(f"{(at < 0).sum()} annotated claims are not in the claims table ({made.index[at < 0][0]!r})")
    label = pd.Series(pd.NA, index=claims.index, dtype="Int8")
    label.iloc[at] = made.to_numpy()
    return Judged.join(claims.assign(label=label), verdicts)


def _made(annotations: pd.DataFrame, rule: str, grades: Mapping[str, int | None] | None) -> pd.Series:
    """The labels that a rule makes of annotations, by claim_id."""
    if rule == "mean":
        raise UsageError("the label rule 'mean' gives soft labels, which a rate cannot be estimated from")
    return labels_by(rule, judgements(annotations, grades))


def chosen_evaluators(
    judged: Judged, verdicts: pd.DataFrame, main: str | None, covariates: Sequence[str] | None
) -> list[str]:
    """The main evaluator and its covariates, in the order of the verdicts."""
    order = [str(name) for name in verdicts["evaluator"].unique()]
    main = order[0] if main is None else main
    others = [name for name in order if name != main] if covariates is None else list(covariates)
    names = list(dict.fromkeys([main, *others]))
    check_evaluators(names, judged.evaluators)
    return names


def _add(
    found: Estimates,
    corpus: Corpus,
    judged: Judged | None,
    sample: Sample | None,
    settings: Settings,
    methods: Sequence[str],
) -> None:
    about: Row = {"dataset": corpus.dataset, "level": corpus.level}
    refused = ""
    if sample is None or judged is None:
        if corpus.n_partial > 0.1 * max(1, corpus.labelled.sum()):
            partial = count(corpus.n_partial, "response")
            refused = f"{partial} with labels for some of their claims only: sample with --level response"
        draw = random_draw(corpus.labelled, corpus.system)
    else:
        try:
            draw = sample.draw(corpus, judged)
        except UsageError as error:
            refused = str(error)
            draw = random_draw(corpus.labelled, corpus.system)
    if refused:
        corpus = replace(corpus, error=np.full(len(corpus.error), np.nan))
        draw = random_draw(corpus.labelled, corpus.system)
    case = Case(corpus, draw, settings)
    estimated = cache(lambda name: METHODS[name](case))
    apart = _apart(estimated, settings.confidence)
    for at, system in enumerate(corpus.systems):
        for name in methods:
            one = estimated(name)[at]
            flags = [one.reason, refused if name != "raw" else None]
            if name in ("hierarchical", "regression-ppi") and at in apart:
                flags.append(f"hierarchical and regression-ppi are more than {APART:.0f} standard errors apart")
            row = about | {"system": system, "method": name, "n": int(corpus.sizes[at])}
            row |= {"n_labels": int(case.n_labels[at]), "rate": number(one.rate)}
            row |= {"rate_low": number(one.low), "rate_high": number(one.high), "reason": reasons(filter(None, flags))}
            found.rates.append(row)
    pairs = differences(case)
    found.differences.extend(about | row for row in pairs)
    found.ranks.extend(about | row for row in ranks(case))
    summary = _summary(case, [row["order"] for row in pairs]) | _bought(estimated) | _advice(case, apart, refused)
    found.summary.append(about | summary | {"reason": reasons([refused, *_notes(case, sample)])})


def _apart(estimated: Estimated, confidence: float) -> list[int]:
    """The systems whose hierarchical and regression-PPI rates contradict each other."""
    z = ndtri((1 + confidence) / 2)
    found = []
    for at, (model, design) in enumerate(zip(estimated("hierarchical"), estimated("regression-ppi"), strict=True)):
        # An interval that is cut off at 0 or 1 tells its standard error on the other side.
        error = max(design.high - design.rate, design.rate - design.low) / z
        if abs(model.rate - design.rate) > APART * error:  # false where one is NaN
            found.append(at)
    return found


def _summary(case: Case, orders: Sequence[str]) -> Row:
    corpus = case.corpus
    return {
        "main": corpus.evaluators[0],
        "covariates": ", ".join(corpus.evaluators[1:]) or None,
        "target": case.settings.target,
        "n": len(corpus.error),
        "n_labels": len(case.rows),
        "n_systems": len(corpus.systems),
        "n_pairs": len(orders),
        "resolved": number(np.mean([order != "?" for order in orders])) if orders else None,
        **lowest(case),
    }


def _bought(estimated: Estimated) -> Row:
    """Mean widths of the intervals with the scores and by labels alone, over the systems that have both.

    worth: how many times as many labels the labels alone would need for the same width.
    """
    pairs = list(zip(estimated("hierarchical"), estimated("labels"), strict=True))
    both = [(model.high - model.low, alone.high - alone.low) for model, alone in pairs if alone.high > alone.low]
    width, alone = np.mean(both, axis=0) if both else (np.nan, np.nan)
    worth = (alone / width) ** 2 if width > 0 else np.nan
    return {"width": number(width), "width_labels": number(alone), "worth": number(worth)}


def _advice(case: Case, apart: Sequence[int], refused: str) -> Row:
    """Which method to quote, and the sentence that says why."""
    quote, why = _quoted(case, apart, refused)
    return {"quote": quote, "why": why}


def _quoted(case: Case, apart: Sequence[int], refused: str) -> tuple[str | None, str]:
    labelled_systems = int((case.n_labels > 0).sum())
    if refused or not len(case.rows):
        return None, "no rate can be quoted: there is no label to correct the predictions by"
    if case.corpus.labelled.all() and case.settings.target == "corpus":
        return "labels", "quote the labels: everything is labelled, so that the rates are counts and no estimates"
    if len(apart) > MANY_APART * labelled_systems:
        return "labels", (
            f"quote the labels: for {len(apart)} of {labelled_systems} systems the model and the design-based estimate "
            "contradict each other"
        )
    if np.median(case.n_labels[case.n_labels > 0]) < MIN_LABELS:
        return "hierarchical", (
            f"quote hierarchical for its interval; with fewer than {MIN_LABELS} labels a system its rates are no "
            "nearer than those of the pooled threshold on half of the sets measured"
        )
    return (
        "hierarchical",
        "quote hierarchical: on the sets measured its rates came nearest on average, and its intervals held",
    )


def _notes(case: Case, sample: Sample | None) -> list[str]:
    corpus = case.corpus
    notes = []
    main = corpus.evaluators[0]
    if len(case.rows):
        error = corpus.error[case.rows]
        if error.min() == error.max():
            notes.append(f"all labels are {'unattributable' if error[0] else 'attributable'}")
        if "shared" in case.columns.names:
            slope = np.quantile(case.posterior.slopes[:, 0], 0.05)
            if slope <= 0:
                notes.append("the labels do not show that the scores tell errors from others: they bought little")
        if sample is None and not corpus.labelled.all():
            notes.append("no sample file: the labels are taken as drawn at random within each system")
        if case.posterior.effective < MIN_EFFECTIVE:
            few = f"an effective number of {case.posterior.effective:.0f}, below {MIN_EFFECTIVE}"
            notes.append(f"the posterior is known roughly only: its draws have {few}")
    missing = float(np.isnan(corpus.score[0]).mean())
    if missing:
        notes.append(f"{main} scored {100 * (1 - missing):.0f} % of the {corpus.level}s")
    known = corpus.score[0][~np.isnan(corpus.score[0])]
    if len(known) and known.min() == known.max():
        notes.append(f"all scores of {main} are equal: they tell nothing")
    if len(corpus.systems) < 2:
        notes.append("one system: there is nothing to compare")
    if corpus.n_left_out:
        what = "without a system" if corpus.level == "claim" else "without a response_id"
        notes.append(f"{count(corpus.n_left_out, 'claim')} {what} left out")
    if corpus.n_partial:
        notes.append(f"{count(corpus.n_partial, 'response')} with labels for only some claims count as not labelled")
    return notes
