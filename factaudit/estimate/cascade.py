"""A cascade of judges, certified as a whole, and what it costs: calls of the second judge, and people's minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.count_source import check_count_source_evaluators
from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.result_rows import Row
from factaudit.blas_threads import use_one_blas_thread
from factaudit.errors import UsageError
from factaudit.estimate.label_sample import LabelSample
from factaudit.estimate.triage import (
    CertifiedRiskLimits,
    TriagePromise,
    certify_risk_of_claims,
    check_claims_are_left_to_triage,
    describe_known_errors,
    format_triage_promise,
    order_review_queue,
    read_labelled_judgements,
    weigh_triage_labels,
)
from factaudit.evaluators.cascade_rule import CascadeRule
from factaudit.evaluators.error_odds import ErrorOdds

#: The first judges' risk is fitted to the second's verdicts on so many claims, or more.
_MIN_CLAIMS_JUDGED_BY_BOTH = 20


@dataclass(frozen=True)
class CascadeResults:
    """What `certify_cascade` found.

    ways: a row for the first judges alone, the cascade, and the second judge of all claims: way, n_asked, cost,
    n_passing, n_known_errors, n_review, minutes, and the reason where a figure is null. promises: a row, what passes by
    the cascade and what is promised of it, with ``statement``. curve, queue: as in
    `factaudit.estimate.triage.TriageResults`, the queue with ``ask`` for claims that the second judge has yet to see.
    """

    rule: CascadeRule
    ways: list[Row]
    promises: list[Row]
    curve: list[Row]
    queue: pd.DataFrame


@use_one_blas_thread()
def certify_cascade(
    claims: Any,
    verdicts: Any,
    then: str,
    *,
    annotations: pd.DataFrame | None = None,
    sample: LabelSample | None = None,
    rule: str = "majority",
    max_error: float | None = 0.05,
    min_recall: float | None = None,
    confidence: float = 0.9,
    evaluators: Sequence[str] = (),
    target: str = "corpus",
    call_cost: float | None = None,
) -> CascadeResults:
    """Choose the limit of risk of a cascade (`CascadeRule`), so that few errors are among all that passes.

    Args:
        then: the second judge; of each claim with a label a verdict of it is needed, of the others it may be missing.
        evaluators: the first judges; by default all others in the verdicts.
        call_cost: US dollars that the second judge costs a claim.

    The others are those of `factaudit.estimate.triage.triage_claims`. What the first judges alone, or the second judge
    of all claims, would pass is certified likewise, each way by itself: only the cascade is promised. Seconds of a
    person's time a claim are the annotations' mean ``seconds``.
    """
    promise = TriagePromise(max_error, min_recall, confidence, target == "population")
    promise.check()
    judgements, rows = read_labelled_judgements(claims, verdicts, annotations, sample, rule)
    check_claims_are_left_to_triage(judgements, promise)
    check_count_source_evaluators([then], judgements.evaluators)
    first = [name for name in evaluators or judgements.evaluators if name != then]
    check_count_source_evaluators(first, judgements.evaluators)
    if not first:
        raise UsageError(f"a cascade needs a judge before {then!r}: the verdicts have none")
    score, second = judgements.compute_support(first), judgements.compute_support([then])[0]
    is_asked = judgements.status[judgements.evaluators.index(then)] >= 0
    if not is_asked[rows].all():
        n_missing = int((~is_asked[rows]).sum())
        raise UsageError(f"{then!r} has no verdict on {n_missing:,} of {len(rows):,} labelled claims: they certify it")
    both = np.flatnonzero(~np.isnan(second) & ~np.isnan(score).any(axis=0))
    if len(both) < _MIN_CLAIMS_JUDGED_BY_BOTH:
        raise UsageError(
            f"expected {_MIN_CLAIMS_JUDGED_BY_BOTH} claims or more that {then!r} and {' and '.join(first)} judged, "
            f"found {len(both)}"
        )
    cascade = CascadeRule(ErrorOdds.fit(first, score[:, both], 1 - second[both]), then)
    weight = weigh_triage_labels(judgements, rows, [*first, then], sample)
    first_risk, risk = cascade.compute_first_risk(score), cascade.compute_risk(score, second)
    ways = []
    for way, of_way in (("first", first_risk), ("cascade", risk), ("second", 1 - second)):
        is_complete = bool(is_asked.all()) or way == "first"
        certified = _certify_risk_of_cascade_option(judgements, of_way, rows, weight, promise, is_complete)
        limit = certified.limits[ALL_TOGETHER]
        asked = {"first": np.zeros(len(risk), bool), "second": np.ones(len(risk), bool)}.get(way)
        if asked is None:
            cascade = replace(cascade, limit=limit, promise=_describe_promise_settings(promise, target))
            asked = ~cascade.passes(first_risk) & (limit is not None)
            mine = certified
        n_known, n_passing = certified.promises[0]["n_known_errors"], int(certified.passes.sum())
        if not is_complete and limit is not None:
            n_passing = round(_share_of_labels(of_way <= limit, rows, weight) * len(risk)) - n_known
        ways.append({"way": way, "n_asked": int(asked.sum()), "n_passing": n_passing, "n_known_errors": n_known})
        ways[-1] |= {"limit": limit, "is_estimated": not is_complete}
    _add_costs_of_cascade_options(ways, len(risk), call_cost, _compute_mean_label_seconds(annotations))
    queue = order_review_queue(judgements, risk, mine.passes)
    waits = judgements.claims["claim_id"][~mine.passes & ~is_asked & (cascade.limit is not None)]
    queue["decision"] = queue["decision"].mask(queue["claim_id"].isin(waits) & (queue["decision"] == "review"), "ask")
    row = _describe_cascade_promise(cascade, ways, len(risk), int((judgements.label >= 0).sum()), promise)
    return CascadeResults(cascade, ways, [row], mine.curve, queue)


def _certify_risk_of_cascade_option(
    judgements: Judgements,
    risk: np.ndarray,
    rows: np.ndarray,
    weight: np.ndarray,
    promise: TriagePromise,
    is_complete: bool,
) -> CertifiedRiskLimits:
    """Where the second judge has not seen all claims, how many pass is not known: labels are then taken as drawn from
    infinitely many, which is strict.
    """
    if is_complete:
        return certify_risk_of_claims(judgements, risk, rows, weight, promise, "all")
    found = certify_risk_of_claims(judgements, risk, rows, weight, replace(promise, is_population=True), "all")
    for row in found.curve:
        row["share_passing"] = _share_of_labels(risk <= row["threshold"], rows, weight)
    return found


def _share_of_labels(passes: np.ndarray, rows: np.ndarray, weight: np.ndarray) -> float:
    """The share of claims that pass, as the claims with labels have it."""
    return float(weight @ passes[rows] / weight.sum())


def _describe_promise_settings(promise: TriagePromise, target: str) -> Row:
    names = ("max_error", "min_recall", "confidence")
    return {name: getattr(promise, name) for name in names} | {"target": target}


def _compute_mean_label_seconds(annotations: pd.DataFrame | None) -> float | None:
    """Of a person's time a claim; a claim with several spans has its seconds in each row."""
    if annotations is None or "seconds" not in annotations:
        return None
    once = annotations.drop_duplicates(["claim_id", "annotator"])["seconds"].dropna()
    return float(once.mean()) if len(once) else None


def _add_costs_of_cascade_options(
    ways: list[Row], n_claims: int, call_cost: float | None, seconds: float | None
) -> None:
    for row in ways:
        row["n_review"] = n_claims - row["n_passing"]
        row["cost"] = 0.0 if not row["n_asked"] else None if call_cost is None else call_cost * row["n_asked"]
        row["minutes"] = None if seconds is None else seconds * row["n_review"] / 60
        lacking = ["no price of a call is known"] if row["cost"] is None else []
        lacking += ["the labels have no seconds"] if seconds is None else []
        row["reason"] = "; ".join(lacking) or None


def _describe_cascade_promise(
    cascade: CascadeRule, ways: list[Row], n_claims: int, n_labels: int, promise: TriagePromise
) -> Row:
    _, mine, second = ways
    wanted, then = format_triage_promise(promise).replace("%", " %"), cascade.then
    row: Row = {"n": n_claims, "n_labels": n_labels, **mine}
    if cascade.limit is None:
        statement = f"No claim passes without review: {n_labels:,} labels cannot promise of this cascade that {wanted}."
        return row | {"statement": statement}
    about = "about " if mine["is_estimated"] else ""
    which = "further claims of this kind" if promise.is_population else "these claims"
    statement = (
        f"{about}{mine['n_passing']:,} of {n_claims:,} claims pass without review"
        f"{describe_known_errors(mine['n_known_errors'])}: {wanted} "
        f"(confidence {100 * promise.confidence:g} %, of {which}). {then} is asked of {mine['n_asked']:,}; "
    )
    more = mine["n_passing"] - second["n_passing"]
    compared = f"asked of all, {about}{abs(more):,} {'fewer' if more > 0 else 'more'} would pass"
    if second["limit"] is None:
        compared = "asked of all, it could not promise this of any"
    statement += f"{compared if more or second['limit'] is None else 'asked of all, as many would pass'}."
    return row | {"statement": statement[0].upper() + statement[1:]}
