"""The order of systems in two runs on the same claims: where it changed, and whether a pair's difference did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import combinations

import numpy as np

from factaudit.arrays.confusion_counts import estimate_labelled_and_predicted_error_rates, is_group_unlabelled
from factaudit.arrays.count_source import LABEL_FIELD, prediction_field
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.paired_changes import average_repeated_predictions, compute_paired_change_of_difference
from factaudit.arrays.system_rankings import order_system_rankings
from factaudit.audit.core.significance import DEFAULT_CONFIDENCE
from factaudit.audit.ranking_pairs import ORDER_SYMBOLS
from factaudit.results import Row
from factaudit.run_gate import format_points
from factaudit.stats.clustered_pair_test import clustered_pair_p_values
from factaudit.stats.undefined_values import none_if_undefined


def diff_system_orders_of_runs(judgements_of_runs: Sequence[Judgements]) -> list[Row]:
    """The order of the systems of a dataset by predicted error rate, where it changed.

    before, after: the systems from the lowest rate on, those of one rate (``rates_before``, ``rates_after``) by name.
    pairs: those of which a significant order came, went or turned (a test of two proportions that knows clusters, Holm
    over the pairs). That one run finds a difference significant and the other does not is no significant change:
    ``change``, of the rate of system_a minus that of system_b, has a paired interval, which is simultaneous over all
    pairs of systems of the evaluators and datasets on which a verdict changed (Bonferroni; ``n_pairs``); pairs with a
    system of one document have no interval, and are none of these tests (``n_untested_pairs``).
    """
    orders = [_order_systems_of_run(one) for one in judgements_of_runs]
    average_errors = lru_cache(maxsize=1)(partial(_average_predicted_errors, judgements_of_runs))
    first = judgements_of_runs[0]
    rows: list[Row] = []
    n_pairs = n_untested = 0
    for (dataset, evaluator), (rates_before, signs_before) in orders[0].items():
        rates_after, signs_after = orders[1].get((dataset, evaluator), (rates_before, signs_before))
        both = [pair for pair in signs_before if pair in signs_after]
        errors_before, errors_after = average_errors(evaluator)
        inside = first.dataset_codes == first.dataset_names.index(dataset)
        if not np.array_equal(errors_before[inside], errors_after[inside], equal_nan=True):
            steps = errors_after - errors_before
            is_testable = {
                system: len(np.unique(first.cluster_codes[_find_claims_with_step(first, dataset, system, steps)])) > 1
                for system in dict.fromkeys(system for pair in both for system in pair)
            }
            n_testable = sum(is_testable[a] and is_testable[b] for a, b in both)
            n_pairs += n_testable
            n_untested += len(both) - n_testable
        changed = [pair for pair in both if signs_before[pair] != signs_after[pair]]
        if _format_order(rates_before) != _format_order(rates_after) or changed:
            about: Row = {"dataset": dataset, "evaluator": evaluator}
            for when, rates in (("before", rates_before), ("after", rates_after)):
                about |= {when: list(rates), f"rates_{when}": list(rates.values())}
            pairs: list[Row] = [
                {"system_a": a, "system_b": b, "before": signs_before[a, b], "after": signs_after[a, b]}
                for a, b in changed
            ]
            rows.append(about | {"pairs": pairs})
    for row in rows:
        for pair in row["pairs"]:
            errors = average_errors(row["evaluator"])
            pair |= _compute_pair_change_of_runs(first, errors, row["dataset"], pair, n_pairs)
            pair |= {"n_pairs": n_pairs, "n_untested_pairs": n_untested}
    return rows


def list_system_order_sentences(row: Row) -> list[str]:
    """What changed in an evaluator's order of the systems of a dataset: a row of `diff_system_orders_of_runs`."""
    about = f"{row['evaluator']}, {row['dataset']}: "
    said, unsure = [], {"in one run alone": 0, "the other way round": 0}
    for pair in row["pairs"]:
        low, high = pair["change_low"], pair["change_high"]
        if low is None or low <= 0 <= high:
            is_turned = "=" not in (pair["before"], pair["after"])
            unsure["the other way round" if is_turned else "in one run alone"] += 1
            continue
        ends = f"95 % CI {format_points(low)} to {format_points(high)}"
        ends += f", corrected for {pair['n_pairs']} pairs" * (pair["n_pairs"] > 1)
        untested = pair["n_untested_pairs"]
        ends += f"; {untested} more could not be tested (a system has one document)" * bool(untested)
        said.append(
            f"{about}predicted error rate of {pair['system_a']} minus that of {pair['system_b']} "
            f"{format_points(pair['difference_before'])} → {format_points(pair['difference_after'])}: "
            f"{format_points(pair['change'])} points ({ends})"
        )
    more = " more" * bool(said)
    for how, n in unsure.items():
        differ, their = ("differ", "their differences") if n > 1 else ("differs", "its difference")
        if n:
            said.append(
                f"{about}{n}{more} {'pairs' if n > 1 else 'pair'} of systems {differ} significantly {how}, but no "
                f"significant change of {their} is shown"
            )
    before, after = (
        _format_order(dict(zip(row[when], row[f"rates_{when}"], strict=True))) for when in ("before", "after")
    )
    if before != after:
        unchanged = "" if said else "; no pair's significant order changed"
        said.append(f"{about}systems by predicted error rate {before} → {after}{unchanged}")
    return said


def _format_order(rates: Mapping[str, float]) -> str:
    """Systems from the lowest rate on; their names do not order those that have one rate.

    >>> _format_order({"a": 0.04, "b": 0.04, "c": 0.2})
    'a = b, c'
    """
    told, last = "", None
    for name, rate in rates.items():
        told += "" if last is None else " = " if np.isclose(rate, last, rtol=1e-9) else ", "
        told += name
        last = rate
    return told


def _average_predicted_errors(judgements_of_runs: Sequence[Judgements], evaluator: str) -> list[np.ndarray]:
    """float64 (n,) for each run: the share of repeats that predict an error; NaN where the run has no verdict."""
    return [1 - average_repeated_predictions(one, evaluator) for one in judgements_of_runs]


def _find_claims_with_step(first: Judgements, dataset: str, system: str, steps: np.ndarray) -> np.ndarray:
    """bool (n,): the claims of a system, the labelled ones where it has any, that both runs judged."""
    inside = first.dataset_codes == first.dataset_names.index(dataset)
    inside &= (first.claims["system"] == system).to_numpy(dtype=bool, na_value=False)
    is_labelled = inside & (first.label >= 0)
    found: np.ndarray = (is_labelled if is_labelled.any() else inside) & ~np.isnan(steps)
    return found


def _compute_pair_change_of_runs(
    first: Judgements, errors: Sequence[np.ndarray], dataset: str, pair: Row, n_pairs: int
) -> dict[str, float | None]:
    steps = errors[1] - errors[0]
    sides = [_find_claims_with_step(first, dataset, pair[key], steps) for key in ("system_a", "system_b")]
    confidence = 1 - (1 - DEFAULT_CONFIDENCE) / max(n_pairs, 1)  # none where repeats changed and their mean did not
    ends = compute_paired_change_of_difference(steps, sides[0], sides[1], first.cluster_codes, confidence)
    found = dict(zip(("change", "change_low", "change_high"), map(none_if_undefined, ends), strict=True))
    for key, error in zip(("difference_before", "difference_after"), errors, strict=True):
        found[key] = none_if_undefined(error[sides[0]].mean() - error[sides[1]].mean())
    return found


def _order_systems_of_run(
    judgements_of_run: Judgements,
) -> dict[tuple[str, str], tuple[dict[str, float], dict[tuple[str, str], str]]]:
    """By dataset and evaluator: predicted error rates of systems from the lowest on, and the order of each pair."""
    systems = judgements_of_run.make_groups("claim", systems=True)
    found = {}
    for at, evaluator in enumerate(judgements_of_run.evaluators):
        fields = LABEL_FIELD, prediction_field(at)
        is_unlabelled = is_group_unlabelled(judgements_of_run.count_cells(systems, *fields))
        rates = estimate_labelled_and_predicted_error_rates(
            judgements_of_run.count_clusters(systems, *fields), is_unlabelled
        )
        for dataset in judgements_of_run.dataset_names:
            inside = [
                place
                for place, key in enumerate(systems.keys)
                if key["dataset"] == dataset and not np.isnan(rates.point[place, 1])
            ]
            predicted = rates.select_as_one_group(inside, 1)
            rate_of = dict(zip((systems.keys[place]["system"] for place in inside), predicted.point[0], strict=True))
            n = predicted.n[0]
            signs = order_system_rankings(
                predicted.point[0] * n, n, correction="holm", p_values=clustered_pair_p_values(predicted)
            )[1]
            symbols = dict(zip(combinations(rate_of, 2), (ORDER_SYMBOLS[int(sign)] for sign in signs), strict=True))
            if rate_of:
                ordered = sorted((float(rate), name) for name, rate in rate_of.items())
                found[dataset, evaluator] = {name: rate for rate, name in ordered}, symbols
    return found
