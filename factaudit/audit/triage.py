"""How many claims must people review, so that few of the rest are errors?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from factaudit.arrays.judgements import ALL_TOGETHER, MISSING, Judgements
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.result_rows import Row
from factaudit.stats import none_if_undefined
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.risk_control import control_passing_errors, find_errors_by_review
from factaudit.text.display_text import join_reasons

#: The share of claims for which the audit says how many of the errors a review finds.
REVIEWED = 0.1
#: The largest share of errors among the claims that pass, and how sure it is that no promise of a
#: data set is broken.
MAX_ERROR, CONFIDENCE = 0.05, 0.9


def compute_review_shares(
    judgements: Judgements, *, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """The smallest share of claims to review, by each evaluator's scores, so that few of the others
    are errors.

    A row per dataset and evaluator with verdicts of labelled claims, and one over all datasets. The
    promise is about further claims of this kind. It is tested at the level (1 − confidence) / E if
    E evaluators are tried on the same labels, so all E promises of a dataset hold together. A claim
    that an evaluator left unscored, or whose verdict was guessed, is reviewed.
    """
    labelled, names = judgements.label != MISSING, judgements.dataset_names
    parts = {name: judgements.dataset_codes == code for code, name in enumerate(names)}
    if len(names) > 1:
        parts[ALL_TOGETHER] = np.ones(len(labelled), dtype=bool)
    return [
        row
        for name, inside in parts.items()
        for row in _build_review_rows(judgements, name, np.flatnonzero(labelled & inside))
    ]


def _build_review_rows(judgements: Judgements, dataset: str, claims: np.ndarray) -> Iterator[Row]:
    asked = np.flatnonzero((judgements.status[:, claims] != MISSING).any(axis=1))
    error, level = 1.0 - judgements.label[claims], (1 - CONFIDENCE) / max(len(asked), 1)
    for at in asked.tolist():
        evaluator = judgements.evaluators[at]
        support = judgements.compute_support([evaluator])[0, claims]
        is_stated = judgements.stated_prediction[at, claims] != MISSING
        n_scored = int(is_stated.sum())
        risk = np.where(is_stated, 1 - support, np.nan)
        curve = control_passing_errors(
            risk,
            np.arange(len(claims)),
            error,
            1 - level,
            MAX_ERROR,
            cluster=judgements.cluster_codes[claims],
            is_population=True,
        )
        row: Row = {"dataset": dataset, "evaluator": evaluator, "n": n_scored}
        row |= {"n_unscored": len(claims) - n_scored, "n_errors": int(error.sum())}
        row |= {"errors_found": None, "review_share": 1.0, "passing_error_share": None}
        row |= {"threshold": None, "max_error": MAX_ERROR, "confidence": CONFIDENCE}
        reasons = []
        if curve.last >= 0:
            passes = risk <= curve.threshold[curve.last]
            row["review_share"] = float(1 - passes.mean())
            row["passing_error_share"] = float(error[passes].mean())
            row["threshold"] = float(support[passes].min())  # 1 − risk may be rounded above it
        elif not n_scored:  # labels lack nothing
            reasons.append("no labelled claim is scored")
        else:
            reasons.append("the labels are too few to promise anything at any threshold")
        # Predictions alone do not say which claims come first.
        if len(np.unique(support[is_stated])) > 2:
            row["errors_found"] = none_if_undefined(find_errors_by_review(risk, error, REVIEWED))
            reasons += ["there is no labelled error"] * (row["errors_found"] is None)
        elif n_scored:
            reasons.append("verdicts of yes and no alone do not order claims")
        yield row | {"reason": join_reasons(reasons)}


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
    compute=compute_review_shares,
)
