"""Which claims can pass without review, and which should a person see first? A rule with a
promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy

from factaudit.arrays.judgements import Judgements, check_evaluators
from factaudit.audit.core.result_rows import Row
from factaudit.datasets.python_input import load_python_input_frames
from factaudit.errors import UsageError
from factaudit.estimate.corpus import build_corpora
from factaudit.estimate.rates import load_labelled_judgements
from factaudit.estimate.sample import LabelSample
from factaudit.stats import use_one_blas_thread
from factaudit.stats.risk_control import (
    MAX_LABEL_FACTOR,
    RiskCurve,
    are_labels_clustered,
    combine_risks,
    control_passing_errors,
    plan_labels_to_pass,
    risk_scale,
)
from factaudit.stats.sampling import label_weights
from factaudit.text.display_text import format_count

TRIAGE_TARGETS = ("corpus", "population")
TRIAGE_RULE_SCHEMA = "factaudit.triage_rule/1"
#: Weights that differ by less are of equal chances, of which whole labels were drawn.
_ROUNDED_WEIGHTS = 1.05
#: Labels are taken as drawn within systems where their shares differ more than chance does.
_UNEVEN_DRAW_P = 0.001


@dataclass(frozen=True)
class TriageResults:
    """What `triage_claims` found.

    rule: how to apply it to further claims. Those pass whose risk is at most ``threshold`` (None:
    nothing passes). Of one evaluator the risk is 1 − score, of several the weighted mean of the
    logits of 1 − score, standardised by ``mean`` and ``spread``. Its ``promise`` has a statement.
    queue: a row per claim, those to review first, the riskiest before the others. A labelled error
    does not pass.
    """

    rule: Row
    queue: pd.DataFrame


@use_one_blas_thread()
def triage_claims(
    claims: Any,
    verdicts: Any = None,
    *,
    annotations: pd.DataFrame | None = None,
    sample: LabelSample | None = None,
    rule: str = "majority",
    mapping: Any = None,
    max_error: float = 0.05,
    confidence: float = 0.9,
    evaluators: Sequence[str] = (),
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
        evaluators: one, whose score gets a threshold, or several, which are combined by weights
        from the labels; by default all in the verdicts.
        target: ``corpus``, these claims, or ``population``, further claims of the same kind, on new
        documents.

    Raises `UsageError` for what cannot be promised, `InputError` for labels that the sample did not
    draw.
    """
    if not 0 < max_error < 1:
        raise UsageError(f"expected a max error between 0 and 1, found {max_error}")
    if not 0.5 <= confidence < 1:
        raise UsageError(f"expected a confidence from 0.5 to 1, found {confidence}")
    if target not in TRIAGE_TARGETS:
        raise UsageError(f"expected a target of {' or '.join(TRIAGE_TARGETS)}, found {target!r}")
    loaded = load_python_input_frames(claims, verdicts, mapping)
    judgements = load_labelled_judgements("triage", loaded, annotations, sample, rule)[0]
    rows = np.flatnonzero(judgements.label >= 0)
    is_population, n_claims = target == "population", len(judgements.label)
    if not len(rows):
        raise UsageError(
            "no label was found; draw claims to label with `factaudit sample --at-random`, then"
            " name the labels with --label-file"
        )
    if not is_population and len(rows) == n_claims:
        raise UsageError(
            f"all {n_claims:,} claims are labelled, so no claim is left to triage; "
            "--target population makes a rule for new claims like these"
        )
    names = list(evaluators or judgements.evaluators)
    check_evaluators(names, judgements.evaluators)
    error = 1.0 - judgements.label[rows]
    score, cluster = judgements.compute_support(names), judgements.cluster_codes
    risk, weights = combine_risks(score, rows, error, cluster, np.random.default_rng(seed))
    curve = control_passing_errors(
        risk,
        rows,
        error,
        confidence,
        max_error,
        _weigh_labels(judgements, rows, names, sample),
        cluster[rows] if is_population or are_labels_clustered(rows, cluster) else None,
        is_population,
    )
    threshold = float(curve.threshold[curve.last]) if curve.last >= 0 else None
    passes = np.zeros(n_claims, dtype=bool)
    if threshold is not None:
        passes = (risk <= threshold) & (judgements.label != 0)
    promise: Row = {"max_error": max_error, "confidence": confidence, "target": target}
    rule_row: Row = {
        "schema": TRIAGE_RULE_SCHEMA,
        "weights": dict(zip(names, weights.tolist(), strict=True)),
        "threshold": threshold,
        "promise": promise | _describe_promise(curve, n_claims, error, promise),
    }
    if len(names) > 1:
        mean, spread = risk_scale(score)
        rule_row["mean"] = dict(zip(names, mean.tolist(), strict=True))
        rule_row["spread"] = {
            name: one if np.isfinite(one) else None
            for name, one in zip(names, spread.tolist(), strict=True)
        }
    return TriageResults(rule_row, _order_queue(judgements, risk, passes))


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
                " them with `factaudit sample --at-random`"
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


def _describe_promise(curve: RiskCurve, n_claims: int, error: np.ndarray, promise: Row) -> Row:
    """What passes of the claims and what is promised of it, with a sentence; or why nothing is."""
    max_error, confidence = promise["max_error"], promise["confidence"]
    promised = f"at most {100 * max_error:g} % of what passes are errors"
    n_known = n_passing = 0
    needed = None
    if curve.last >= 0:
        n_known = int(curve.n_known[curve.last])
        n_passing = int(curve.n_claims[curve.last]) - n_known
        known = f", not counting {format_count(n_known, 'known error')}" if n_known else ""
        which = "these claims" if promise["target"] == "corpus" else "further claims of this kind"
        statement = (
            f"{n_passing:,} of {n_claims:,} claims ({100 * n_passing / n_claims:.1f} %) pass"
            f" without review{known}: {promised} ({100 * confidence:g} % confidence, for {which})."
        )
    else:
        labels = format_count(len(error), "label")
        statement = (
            f"No claim can pass without review: {labels} are too few to promise that {promised}."
        )
        needed = plan_labels_to_pass(curve, len(error), max_error, confidence)
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
        "labels_needed": needed,
        "statement": statement,
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
