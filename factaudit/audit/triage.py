"""How many claims must people review, so that few of the rest are errors?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from factaudit.arrays.judgements import ALL_TOGETHER, MISSING, Judgements
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.result_rows import Row
from factaudit.errors import UsageError
from factaudit.stats import none_if_undefined
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.risk_control import (
    control_passing_errors,
    find_errors_by_review,
    plan_labels_to_pass,
)
from factaudit.text.display_text import format_count, join_reasons

#: The share of claims for which the audit says how many of the errors a review finds.
REVIEWED = 0.1
#: The number of labels that would be enough is given up to this multiple of the present number; a
#: larger number is too uncertain.
_MOST_MORE_LABELS = 10


def compute_review_shares(
    judgements: Judgements,
    *,
    max_error: float = 0.05,
    confidence: float = 0.9,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """The smallest share of claims to review, by each evaluator's scores, so that few of the others
    are errors.

    A row per dataset and evaluator with verdicts of labelled claims, and one over all datasets. The
    promise is about further claims of this kind. It is tested at the level (1 − confidence) / E if
    E evaluators are tried on the same labels, so all E promises of a dataset hold together. A claim
    that an evaluator left unscored, or whose verdict was guessed, is reviewed.
    """
    if not 0 < max_error < 1 or not 0.5 <= confidence < 1:
        raise UsageError(
            "triage: expected max_error from 0 to 1 and confidence from 0.5 to 1, found"
            f" {max_error} and {confidence}"
        )
    labelled = judgements.label != MISSING
    names = judgements.dataset_names
    parts = [
        (name, labelled & (judgements.dataset_codes == code)) for code, name in enumerate(names)
    ]
    if len(names) > 1:
        parts.append((ALL_TOGETHER, labelled))
    return [
        row
        for name, inside in parts
        for row in _build_triage_review_rows(
            judgements, name, np.flatnonzero(inside), max_error, confidence
        )
    ]


def _build_triage_review_rows(
    judgements: Judgements, dataset: str, claims: np.ndarray, max_error: float, confidence: float
) -> Iterator[Row]:
    asked = [
        name
        for name, status in zip(judgements.evaluators, judgements.status[:, claims], strict=True)
        if (status != MISSING).any()
    ]
    error = 1.0 - judgements.label[claims]
    level = (1 - confidence) / max(len(asked), 1)
    for name in asked:
        support = judgements.compute_support([name])[0, claims]
        is_stated = (
            judgements.stated_prediction[judgements.evaluators.index(name), claims] != MISSING
        )
        risk = np.where(is_stated, 1 - support, np.nan)
        curve = control_passing_errors(
            risk,
            np.arange(len(claims)),
            error,
            1 - level,
            max_error,
            cluster=judgements.cluster_codes[claims],
            is_population=True,
        )
        n_scored = int(is_stated.sum())
        # Predictions alone do not say which claims come first.
        can_order = len(np.unique(support[is_stated])) > 2
        row: Row = {
            "dataset": dataset,
            "evaluator": name,
            "n": n_scored,
            "n_unscored": len(claims) - n_scored,
        }
        row |= {
            "n_errors": int(error.sum()),
            "errors_found": (
                none_if_undefined(find_errors_by_review(risk, error, REVIEWED))
                if can_order
                else None
            ),
        }
        row |= {"review_share": 1.0, "passing_error_share": None, "threshold": None}
        row |= {"max_error": max_error, "confidence": confidence, "reason": None}
        if curve.last >= 0:
            passes = risk <= curve.threshold[curve.last]
            row["review_share"] = float(1 - passes.mean())
            row["passing_error_share"] = float(error[passes].mean())
            row["threshold"] = float(support[passes].min())  # 1 − risk may be rounded above it
        elif not n_scored:  # labels lack nothing
            row["reason"] = "no labelled claim is scored"
        else:
            needed = plan_labels_to_pass(curve, len(claims), max_error, 1 - level)
            most = _MOST_MORE_LABELS * len(claims)
            if needed is not None and needed <= most:
                why = (
                    f"; about {format_count(needed, 'label')} would be enough if errors stay as"
                    " rare"
                )
            else:
                why = (
                    f"; it would take more than {format_count(most, 'label')}, if any number is"
                    " enough"
                )
            row["reason"] = f"the labels are too few to promise anything at any threshold{why}"
        if row["errors_found"] is None and n_scored:
            lacking = (
                "there is no labelled error"
                if can_order
                else "verdicts of yes and no alone do not order claims"
            )
            row["reason"] = join_reasons([row["reason"] or "", lacking])
        yield row


AUDIT = Audit(
    name="triage",
    title="How much review single verdicts need",
    question="How many claims must people review so that few of the others are errors?",
    source="Angelopoulos et al. 2021, Learn then Test; Jung et al. 2024, Trust or Escalate",
    formula=(
        "Thresholds are tested from the highest score down. Claims above a threshold pass as long"
        " as a binomial test rejects that more than max_error of them are errors (fixed-sequence"
        " testing at level (1 − confidence) / number of evaluators; documents whose labels are"
        " alike count for less). Review share = claims that do not pass / all claims."
    ),
    text=(
        "This shows what an evaluator's scores are good for if its single verdicts cannot be"
        " trusted: claims with high scores pass, and people review the others. The guarantee holds"
        " for further claims of the same kind."
    ),
    remedy=(
        "If most claims need review, combine evaluators and label a random sample of your own"
        " claims. `factaudit triage` then gives the guarantee for those claims and lists the ones"
        " to review."
    ),
    columns={
        **pick_shared_columns("dataset", "evaluator"),
        "n": Column("n", "count", "labelled claims with a verdict"),
        "n_unscored": Column(
            "unscored", "count", "labelled claims without a verdict; people review them"
        ),
        "n_errors": Column("errors", "count", "labelled errors"),
        "errors_found": Column(
            "errors in the lowest 10 %",
            "percent",
            "share of the errors among the 10 % of the claims with the lowest scores",
        ),
        "review_share": Column("to review", "percent", "share of the claims that do not pass"),
        "passing_error_share": Column(
            "errors that pass", "percent", "share of labelled errors among the claims that pass"
        ),
        "threshold": Column(
            "threshold", "number", "claims with this score or a higher one pass", digits=3
        ),
        "max_error": Column(
            "promised",
            "percent",
            "at most this share of the claims that pass are errors",
            shown=False,
        ),
        "confidence": Column(
            "confidence",
            "percent",
            "probability that all guarantees of a data set hold",
            shown=False,
        ),
        **pick_shared_columns("reason"),
    },
    options={
        "max_error": "the largest share of errors allowed among the claims that pass",
        "confidence": "probability that the guarantees hold for all evaluators at once",
    },
    compute=compute_review_shares,
)
