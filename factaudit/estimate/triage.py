"""Which claims can pass without review, and which should a person see first? A rule with a
promise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.judgements import Judgements, check_evaluators
from factaudit.audit.core.result_rows import Row
from factaudit.datasets.python_input import load_python_input_frames
from factaudit.errors import UsageError
from factaudit.estimate.corpus import build_corpora
from factaudit.estimate.rates import ESTIMATION_TARGETS, load_labelled_judgements
from factaudit.estimate.sample import LabelSample
from factaudit.stats.blas_threads import use_one_blas_thread
from factaudit.stats.risk_control import (
    MAX_LABEL_FACTOR,
    RiskCurve,
    are_labels_clustered,
    combine_risks,
    control_passing_errors,
    error_share_upper_limits,
    plan_labels_to_pass,
    risk_scale,
)
from factaudit.stats.sampling import label_weights
from factaudit.stats.undefined_values import divide_or_undefined, none_if_undefined
from factaudit.text.display_text import format_count

TRIAGE_GROUPS = ("all", "dataset", "system")
TRIAGE_RULE_SCHEMA = "factaudit.triage_rule/1"
#: Weights that differ by less are of equal chances, of which whole labels were drawn.
_ROUNDED_WEIGHTS = 1.05
#: Labels are taken as drawn within systems where their shares differ more than chance does.
_UNEVEN_DRAW_P = 0.001


@dataclass(frozen=True)
class TriageResults:
    """What `triage_claims` found.

    rule: how to apply it to further claims. Those pass whose risk is at most the threshold of their
    group (of the ``column``, where each has its own; None: nothing passes). Of one evaluator the
    risk is 1 − score, of several the weighted mean of the logits of 1 − score, standardised by
    ``mean`` and ``spread``.
    promises: a row per group (all claims, a data set or a system) with statement; curve: a row per
    group and threshold;
    queue: a row per claim, those to review first, the riskiest before the others. A labelled error
    does not pass.
    """

    rule: Row
    promises: list[Row]
    curve: list[Row]
    queue: pd.DataFrame


@dataclass(frozen=True)
class TriagePromise:
    """max_error: of what passes; min_recall: of all errors, in what is reviewed; either may be
    None, not both.

    Raises `UsageError` where it promises nothing or what no labels can show.
    """

    max_error: float | None
    min_recall: float | None
    confidence: float
    target: str

    def __post_init__(self) -> None:
        if self.max_error is None and self.min_recall is None:
            raise UsageError(
                "expected --max-error, --min-recall or both: they say what triage must promise"
            )
        for name, share in (("max error", self.max_error), ("min recall", self.min_recall)):
            if share is not None and not 0 < share < 1:
                raise UsageError(f"expected a {name} between 0 and 1, found {share}")
        if not 0.5 <= self.confidence < 1:
            raise UsageError(f"expected a confidence from 0.5 to 1, found {self.confidence}")

    @property
    def is_population(self) -> bool:
        return self.target == "population"

    def __str__(self) -> str:
        parts = []
        if self.max_error is not None:
            parts.append(f"at most {100 * self.max_error:g}% of what passes are errors")
        if self.min_recall is not None:
            parts.append(
                f"at least {100 * self.min_recall:g}% of all errors are among what is reviewed"
            )
        return " and ".join(parts)


@use_one_blas_thread()
def triage_claims(
    claims: Any,
    verdicts: Any = None,
    *,
    annotations: pd.DataFrame | None = None,
    sample: LabelSample | None = None,
    rule: str = "majority",
    mapping: Any = None,
    max_error: float | None = 0.05,
    min_recall: float | None = None,
    confidence: float = 0.9,
    evaluators: Sequence[str] = (),
    by: str = "all",
    target: str = "corpus",
    seed: int = 0,
) -> TriageResults:
    """Choose the claims that pass without review, so that few errors do, with a stated confidence.

    Args:
        claims, verdicts: tables, frames or paths of any shape; the claims' labels count where no
        annotations are given.
        annotations: what people said, made labels by ``rule``.
        sample: the file that the labels were drawn by; without it they are taken as drawn at
        random.
        max_error: the promised share of errors among what passes, at most.
        min_recall: the promised share of all errors among what is reviewed, at least.
        evaluators: one, whose score gets a threshold, or several, which are combined by weights
        from the labels; by
            default all in the verdicts.
        by: ``all`` makes one promise over all claims, ``dataset`` or ``system`` one for each, which
        holds by itself.
        target: ``corpus``, these claims, or ``population``, further claims of the same kind, on new
        documents.

    Raises `UsageError` for what cannot be promised, `InputError` for labels that the sample did not
    draw.
    """
    promise = TriagePromise(max_error, min_recall, confidence, target)
    if by not in TRIAGE_GROUPS or target not in ESTIMATION_TARGETS:
        raise UsageError(
            f"expected by {', '.join(TRIAGE_GROUPS)} and target {', '.join(ESTIMATION_TARGETS)}"
        )
    loaded = load_python_input_frames(claims, verdicts, mapping)
    judgements = load_labelled_judgements("triage", loaded, annotations, sample, rule)[0]
    rows = np.flatnonzero(judgements.label >= 0)
    if not len(rows):
        raise UsageError(
            "no label was found; draw claims to label with `factaudit sample --at-random`, then"
            " name the labels with --label-file"
        )
    if not promise.is_population and (judgements.label >= 0).all():
        raise UsageError(
            f"all {len(judgements.label):,} claims are labelled, so no claim is left to triage; "
            "--target population makes a rule for new claims like these"
        )
    names = list(evaluators or judgements.evaluators)
    check_evaluators(names, judgements.evaluators)
    error = 1.0 - judgements.label[rows]
    score, cluster = judgements.compute_support(names), judgements.cluster_codes
    risk, weights = combine_risks(score, rows, error, cluster, np.random.default_rng(seed))
    weight = _weigh_labels(judgements, rows, names, sample)
    thresholds: dict[str, float | None] = {}
    promises: list[Row] = []
    curve_rows: list[Row] = []
    passes = np.zeros(len(risk), dtype=bool)
    groups = judgements.make_groups("claim", () if by == "all" else (by,))
    for place, key in enumerate(groups.keys):
        group, inside = key.get(by, ALL_TOGETHER), groups.codes == place
        if group is None:
            raise UsageError(
                f"--by {by}: {format_count(int(inside.sum()), 'claim')} without a {by}"
            )
        mine = inside[rows]
        own_rows = (np.cumsum(inside) - 1)[rows[mine]]
        clustered = promise.is_population or are_labels_clustered(own_rows, cluster[inside])
        curve = control_passing_errors(
            risk[inside],
            own_rows,
            error[mine],
            confidence,
            max_error,
            min_recall,
            weight[mine],
            cluster[rows[mine]] if clustered else None,
            promise.is_population,
        )
        if not promise.is_population and mine.sum() == inside.sum():  # nothing is left to promise
            curve = replace(curve, last=-1)
        limit = float(curve.threshold[curve.last]) if curve.last >= 0 else None
        thresholds[group] = limit
        if limit is not None:
            passes[inside] = (risk[inside] <= limit) & (judgements.label[inside] != 0)
        described = _describe_promise(curve, int(inside.sum()), error[mine], promise)
        if by != "all":
            described["statement"] = f"{group}: {described['statement']}"
        promises.append({"group" if by == "all" else by: group, **described})
        curve_rows.extend(_list_curve_rows(group, curve, int(inside.sum()), promise))
    rule_row: Row = {
        "schema": TRIAGE_RULE_SCHEMA,
        "weights": dict(zip(names, weights.tolist(), strict=True)),
        "thresholds": thresholds,
        "column": None if by == "all" else by,
        "promise": vars(promise),
    }
    if len(names) > 1:
        mean, spread = risk_scale(score)
        rule_row["mean"] = dict(zip(names, mean.tolist(), strict=True))
        rule_row["spread"] = {
            name: one if np.isfinite(one) else None
            for name, one in zip(names, spread.tolist(), strict=True)
        }
    return TriageResults(rule_row, promises, curve_rows, _order_queue(judgements, risk, passes))


def _weigh_labels(
    judgements: Judgements, rows: np.ndarray, evaluators: Sequence[str], sample: LabelSample | None
) -> np.ndarray:
    """float64 (n,): how many claims each label stands for."""
    weight = np.zeros(len(judgements.label))
    if sample is None:
        system = pd.factorize(judgements.claims["system"].astype("string").fillna(""))[0]
        labelled = judgements.label >= 0
        counts = np.array([np.bincount(system, labelled), np.bincount(system, ~labelled)])
        if (counts.sum(axis=1) == 0).any() or scipy.stats.chi2_contingency(
            counts
        ).pvalue > _UNEVEN_DRAW_P:
            system = np.zeros_like(system)
        elif not np.bincount(system, labelled).all():
            raise UsageError(
                "the labels were not drawn at random over systems, and some system has none: draw"
                " them with `factaudit sample`, or give each system its own promise (by system)"
            )
        n_labelled = np.bincount(system, labelled)
        return (np.bincount(system) / np.maximum(n_labelled, 1))[system[rows]]
    for corpus in build_corpora(judgements, "claim", evaluators):
        draw = sample.find_draw(corpus, judgements)
        in_corpus = np.flatnonzero(corpus.unit_of_claim >= 0)
        claim_of_unit = np.empty(len(corpus.error), dtype=np.int64)
        claim_of_unit[corpus.unit_of_claim[in_corpus]] = in_corpus
        for system in np.unique(corpus.system[draw.rows]):
            mine = draw.select(corpus.system[draw.rows] == system)
            weight[claim_of_unit[mine.rows]] = label_weights(mine, corpus.is_labelled[mine.rows])
    of_labels = weight[rows]
    return (
        np.full(len(rows), of_labels.mean())
        if of_labels.max() < _ROUNDED_WEIGHTS * of_labels.min()
        else of_labels
    )


def _describe_promise(
    curve: RiskCurve, n_claims: int, error: np.ndarray, promise: TriagePromise
) -> Row:
    """What passes of a group of claims and what is promised of it, with a sentence; or why nothing
    is."""
    limit, needed = None, None
    n_known = n_passing = 0
    if curve.last >= 0:
        limit, n_known = float(curve.threshold[curve.last]), int(curve.n_known[curve.last])
        n_passing = int(curve.n_claims[curve.last]) - n_known
        known = f", not counting {format_count(n_known, 'known error')}" if n_known else ""
        which = "further claims of this kind" if promise.is_population else "these claims"
        statement = (
            f"{n_passing:,} of {n_claims:,} claims ({n_passing / n_claims:.1%}) pass without review"
            f"{known}: {promise} "
            f"({100 * promise.confidence:g}% confidence, for {which})."
        )
    elif not promise.is_population and len(error) == n_claims:
        statement = f"all {n_claims:,} claims are labelled, so no claim is left to triage."
    else:
        labels = format_count(len(error), "label")
        statement = (
            f"No claim can pass without review: {labels} are too few to promise that {promise}."
        )
        # Of both nobody knows how many would do.
        if promise.max_error is not None and promise.min_recall is None:
            needed = plan_labels_to_pass(curve, len(error), promise.max_error, promise.confidence)
            if needed is not None:
                statement += f" About {needed:,} labels may let some pass."
            else:
                most = format_count(MAX_LABEL_FACTOR * len(error), "label")
                statement += f" It would take more than {most}, if any number is enough."
    return {
        "n": n_claims,
        "n_labels": len(error),
        "n_labelled_errors": int(error.sum()),
        "n_passing": n_passing,
        "share_passing": n_passing / n_claims,
        "n_known_errors": n_known,
        "threshold": limit,
        "labels_needed": needed,
        "statement": statement.replace("%", " %"),
        "reason": None if limit is not None else "the labels keep the promise at no threshold",
    }


def _list_curve_rows(
    group: str, curve: RiskCurve, n_claims: int, promise: TriagePromise
) -> Iterator[Row]:
    share, n_passing = divide_or_undefined(curve.n_errors, curve.n_labels), curve.n_claims
    of = None if promise.is_population else n_passing
    high = error_share_upper_limits(curve.n_labels, curve.n_errors, promise.confidence, of)
    if not promise.is_population:  # of these claims, labelled errors do not pass
        n_passing = curve.n_claims - curve.n_known
        share, high = (
            divide_or_undefined(np.maximum(one * curve.n_claims - curve.n_known, 0), n_passing)
            for one in (share, high)
        )
    for at, threshold in enumerate(curve.threshold.tolist()):
        yield {
            "group": group,
            "threshold": threshold,
            "share_passing": float(n_passing[at] / n_claims),
            "n_labels": float(curve.n_labels[at]),
            "error_share": none_if_undefined(share[at]),
            "error_share_high": none_if_undefined(high[at]),
            "is_rule": at == curve.last,
        }


def _order_queue(judgements: Judgements, risk: np.ndarray, passes: np.ndarray) -> pd.DataFrame:
    """A row per claim: those to review first, the riskiest before the others; then those that pass,
    those with a label.

    passes: bool (N,), of a labelled error False: it is known, and in no list to review. Unscored
    claims come before all
    others: nothing is known of them.
    """
    stage = np.where(judgements.label >= 0, 2, passes)
    table = judgements.claims[["claim_id", "dataset", "system", "claim", "doc"]].assign(
        decision=np.array(["review", "pass", "labelled"], dtype=object)[stage],
        passes=passes.astype(int),
        risk=risk,
        label=judgements.claims["label"],
    )
    order = np.lexsort([table["claim_id"].astype(str), -np.nan_to_num(risk, nan=np.inf), stage])
    table = table.iloc[order].reset_index(drop=True)
    table.insert(0, "rank", np.arange(1, len(table) + 1))
    return table
