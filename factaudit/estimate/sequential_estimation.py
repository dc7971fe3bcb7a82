"""Error rates at every look at growing labels: confidence sequences after each phase of a sample, and when to stop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import LEVELS
from factaudit.audit.core.result_rows import Row
from factaudit.blas_threads import use_one_blas_thread
from factaudit.errors import UsageError
from factaudit.estimate.estimation_case import RateEstimationCase, RateEstimationOptions
from factaudit.estimate.estimation_methods import MIN_INTERVAL_LABELS, estimate_rates_by_labels_alone
from factaudit.estimate.label_sample import LabelSample, check_label_sample_matches
from factaudit.estimate.label_sequence import LabelSequence
from factaudit.estimate.rate_estimation import choose_estimation_covariates, join_claims_for_estimation
from factaudit.estimate.scored_corpus import build_scored_corpora
from factaudit.stats.confidence_sequences import LabelLookBlock, confidence_sequence, log_directional_capital
from factaudit.stats.undefined_values import none_if_undefined
from factaudit.text.display_text import format_count, join_reasons

#: Labelling may stop when no system's interval is wider.
STOP_WIDTH = 0.1


@use_one_blas_thread()
def estimate_rates_at_every_look(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    sample: LabelSample,
    *,
    annotations: pd.DataFrame | None = None,
    rule: str = "majority",
    grades: Mapping[str, int | None] | None = None,
    main: str | None = None,
    covariates: Sequence[str] | None = None,
    levels: Sequence[str] = LEVELS,
    strata: Sequence[str] = (),
    confidence: float = 0.95,
    stop_width: float = STOP_WIDTH,
    seed: int = 0,
) -> dict[str, list[Row]]:
    """The rates and differences after each phase of a sample, by intervals that hold at all looks at once.

    The arguments are those of `factaudit.estimate.rate_estimation.estimate_rates`. Returns the rows of the audits
    ``estimate_looks``, ``estimate_look_differences`` and ``estimate_look_summary``. A phase counts when every claim of
    it was judged or a later phase was drawn; a claim that nobody could decide may be either. Raises `UsageError` for a
    sample of whole documents, which is no draw of claims.
    """
    if sample.plan.same_documents:
        raise UsageError(
            "a sample of the same documents for all systems has no intervals for every look: its claims were drawn "
            "together; draw one without --same-documents"
        )
    judgements = join_claims_for_estimation(claims, verdicts, annotations, rule, grades)
    check_label_sample_matches(sample, judgements, annotations, rule)
    is_judged = judgements.label >= 0
    if annotations is not None:
        is_judged |= judgements.claims["claim_id"].isin(annotations["claim_id"]).to_numpy()
    if main is None and sample.plan.evaluators[0] in judgements.evaluators:
        main = sample.plan.evaluators[0]
    evaluators = choose_estimation_covariates(judgements, verdicts, main, covariates)
    present = [column for column in strata if column in judgements.claims]
    found: dict[str, list[Row]] = {"estimate_look_summary": [], "estimate_looks": [], "estimate_look_differences": []}
    if sample.plan.level not in levels:
        raise UsageError(f"the sample is one of {sample.plan.level}s: --level {sample.plan.level} has its looks")
    for corpus in build_scored_corpora(judgements, sample.plan.level, evaluators, present):
        if not len(corpus.error):
            continue
        draw = sample.corpus_draw(corpus, judgements)
        waiting = np.zeros(len(corpus.error), dtype=bool)
        waiting[corpus.unit_of_claim[(corpus.unit_of_claim >= 0) & ~is_judged]] = True
        n_phases = int(draw.phase.max(initial=-1)) + 1
        n_waiting = int(waiting[draw.rows[draw.phase == n_phases - 1]].sum())
        case = RateEstimationCase(corpus, draw, RateEstimationOptions(confidence=confidence, seed=seed))
        sequence = LabelSequence(case, n_phases - (n_waiting > 0))
        for name, rows in build_label_look_rows(sequence, stop_width, n_waiting).items():
            found[name] += rows
    return found


def build_label_look_rows(sequence: LabelSequence, stop_width: float, n_waiting: int = 0) -> dict[str, list[Row]]:
    """The rows of one corpus; n_waiting: the claims of the last phase that nobody judged yet."""
    corpus, confidence = sequence.case.corpus, sequence.case.options.confidence
    about: Row = {"dataset": corpus.dataset, "level": corpus.level}
    n_systems, n_looks = len(corpus.systems), sequence.n_phases
    unit = np.eye(n_systems)
    labels = [_count_system_labels_until_look(sequence, look) for look in range(n_looks)]
    rates = [_compute_interval_at_looks(sequence, row, 0.0, confidence) for row in unit]
    pairs = {
        (a, b): _compute_interval_at_looks(sequence, unit[a] - unit[b], -1.0, confidence)
        for a, b in combinations(range(n_systems), 2)
    }
    leads = _compute_lead_log_capital(sequence) if n_systems > 1 else np.empty((n_looks, 0, 0))
    rows: list[Row] = []
    differences: list[Row] = []
    summary: list[Row] = []
    for look in range(n_looks):
        at: Row = about | {"look": look + 1}
        for system, (estimate, low, high) in enumerate(rates):
            row: Row = at | {"system": corpus.systems[system], "n": int(corpus.system_sizes[system])}
            row |= {"n_labels": int(labels[look][system]), "rate": none_if_undefined(estimate[look])}
            row |= {"rate_low": float(low[look]), "rate_high": float(high[look])}
            reason = "" if np.isfinite(estimate[look]) else "no phase so far has a label in each of its strata"
            rows.append(row | {"reason": reason or None})
        for (a, b), (estimate, low, high) in pairs.items():
            row = at | {"system_a": corpus.systems[a], "system_b": corpus.systems[b]}
            row |= {"difference": none_if_undefined(estimate[look])}
            row |= {"difference_low": float(low[look]), "difference_high": float(high[look])}
            differences.append(row | {"order": "<" if high[look] < 0 else ">" if low[look] > 0 else "?"})
        width = np.array([high[look] - low[look] for _, low, high in rates])
        best = _find_best_system_by_leads(leads[look], confidence)
        row = at | {"n_labels": int(labels[look].sum()), "width": float(width.mean()), "widest": float(width.max())}
        one_look, why = _compute_single_look_mean_width(sequence, look)
        row |= {"width_one_look": one_look, "n_pairs": len(pairs)}
        row |= {"n_apart": sum(bool(high[look] < 0 or low[look] > 0) for _, low, high in pairs.values())}
        row |= {"best": None if best is None else corpus.systems[best]}
        row |= {"stop": "yes" if width.max() <= stop_width or best is not None else "no", "stop_width": stop_width}
        notes = _list_notes_on_label_looks(sequence, n_waiting) if look == n_looks - 1 else ()
        summary.append(row | {"reason": join_reasons([*notes, why])})
    return {"estimate_look_summary": summary, "estimate_looks": rows, "estimate_look_differences": differences}


def _compute_interval_at_looks(
    sequence: LabelSequence, coefficient: np.ndarray, least: float, confidence: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimate, low and high of a rate or a difference after each look: float64 (J,); NaN, least, 1 before any."""
    found = []
    # A claim that nobody could decide may be either: the low end takes what makes the figure least, the high end most.
    for undecided in ((coefficient < 0), (coefficient > 0)) if sequence.has_undecided else ((coefficient > 0),):
        blocks = list(sequence.build_blocks(coefficient, undecided.astype(np.float64)))
        last = _find_last_blocks(sequence, blocks)
        one = confidence_sequence([block for _, block in blocks], least, 1.0, confidence)
        ends = np.array([[np.nan, *one.estimate], [least, *one.low], [1.0, *one.high]])
        found.append(ends[:, last + 1])
    estimate = np.mean([one[0] for one in found], axis=0)
    return estimate, found[0][1], found[-1][2]


def _compute_lead_log_capital(sequence: LabelSequence) -> np.ndarray:
    """After each look the log of the capital of bets that system a has a lower rate than b: float64 (J, S, S)."""
    n_systems = len(sequence.case.corpus.systems)
    unit = np.eye(n_systems)
    found = np.zeros((sequence.n_phases, n_systems, n_systems))
    for a, b in permutations(range(n_systems), 2):
        blocks = list(sequence.build_blocks(unit[a] - unit[b], unit[a]))
        last = _find_last_blocks(sequence, blocks)
        capital = log_directional_capital([block for _, block in blocks], 0.0, is_above=False)
        found[:, a, b] = np.append(0.0, capital)[last + 1]
    return found


def _find_last_blocks(sequence: LabelSequence, blocks: Sequence[tuple[int, LabelLookBlock]]) -> np.ndarray:
    """int (J,): the last block of each look or of those before it, -1 where there is none."""
    return np.searchsorted([phase for phase, _ in blocks], np.arange(sequence.n_phases), side="right") - 1


def _find_best_system_by_leads(lead: np.ndarray, confidence: float) -> int | None:
    """The system whose rate is below each other's, wrongly with a probability of at most 1 − confidence at any look.

    Another one than the best is named only where one of its S − 1 comparisons with the best is wrong, so that each
    is made at a level of (1 − confidence) / (S − 1).
    """
    if len(lead) < 2:
        return None
    needed = np.log((len(lead) - 1) / (1 - confidence))
    sure = [bool(np.delete(row, at).min() >= needed) for at, row in enumerate(lead)]
    return sure.index(True) if any(sure) else None


def _count_system_labels_until_look(sequence: LabelSequence, look: int) -> np.ndarray:
    """int (S,): the labels of each system up to a look."""
    corpus, draw = sequence.case.corpus, sequence.case.draw
    rows = draw.rows[draw.phase <= look]
    return np.bincount(corpus.system[rows[corpus.is_labelled[rows]]], minlength=len(corpus.systems))


def _compute_single_look_mean_width(sequence: LabelSequence, look: int) -> tuple[float | None, str]:
    """The mean width of the labels' intervals that hold at one look only; None, and why, where a system has none.

    As at every look, a claim that nobody could decide may be either: none of them an error, then all.
    """
    corpus, draw = sequence.case.corpus, sequence.case.draw
    part = draw.select(draw.phase <= look)
    none, every = (
        estimate_rates_by_labels_alone(RateEstimationCase(replace(corpus, error=known), part, sequence.case.options))
        for known in _fill_labels_until_look(corpus.error, part.rows)
    )
    widths = [max(one.high, other.high) - min(one.low, other.low) for one, other in zip(none, every, strict=True)]
    lacking = [name for name, width in zip(corpus.systems, widths, strict=True) if np.isnan(width)]
    why = f"no width at one look: labels alone give no interval for {lacking[0]}" if lacking else ""
    why += f" and {format_count(len(lacking) - 1, 'more system')}" * (len(lacking) > 1)
    why += f" (it takes {MIN_INTERVAL_LABELS} labels of its own)" * bool(lacking)
    return none_if_undefined(float(np.mean(widths))), why


def _fill_labels_until_look(error: np.ndarray, rows: np.ndarray) -> Iterator[np.ndarray]:
    """float64 (N,) twice: the labels of these rows, undecided ones as no errors, then as errors; NaN elsewhere."""
    for undecided in (0.0, 1.0):
        known = np.full(len(error), np.nan)
        known[rows] = np.where(np.isnan(error[rows]), undecided, error[rows])
        yield known


def _list_notes_on_label_looks(sequence: LabelSequence, n_waiting: int) -> Iterator[str]:
    corpus, draw = sequence.case.corpus, sequence.case.draw
    if n_waiting:
        yield (
            f"{format_count(n_waiting, corpus.level)} of phase {sequence.n_phases + 1} not judged yet: it counts when "
            "all are"
        )
    rows = draw.rows[draw.phase < sequence.n_phases]
    undecided = int((~corpus.is_labelled[rows]).sum())
    if undecided:
        yield f"{format_count(undecided, corpus.level)} without a label: intervals hold whether they are errors or not"
    skipped = sum(not part.is_covered.all() for part in sequence.parts)
    if skipped:
        yield f"{format_count(skipped, 'part')} of phases without a label in each stratum: they are not bet on"
