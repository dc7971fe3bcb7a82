"""FActScore and D-FActScore of each response from its matrix, and their means (MF §2.4, §4.1, Table 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from factaudit.arrays.entity_linking import NARROW_MARGIN, EntityLink, link_groups_to_entities, linked_entity_columns
from factaudit.arrays.grouped_responses import FALSE_CELL_SOURCES, GroupedResponse
from factaudit.arrays.judgements import MISSING
from factaudit.arrays.response_means import (
    DEFAULT_GAMMA,
    explain_missing_mean_intervals,
    mean_of_defined,
    response_change_with_interval,
    response_count_with_interval,
    response_length_penalty,
    response_mean_with_interval,
    response_share_with_interval,
)
from factaudit.arrays.support_matrix_bounds import bound_entity_count, bound_supported_facts
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.noise_floor import estimate_noise_floor
from factaudit.text.display_text import join_reasons

#: MF §2.4's categories; the last is for what they leave open: several biographies, all of one entity.
BIOGRAPHY_CATEGORIES = ("one bio, one entity", "one bio, N entities", "N bios, N entities", "N bios, one entity")
#: Where the missing verdicts leave open of more of the responses whether they are merged, their share has bounds only.
MOST_UNDECIDED = 0.1
#: The figures of a response that are averaged, each with ``_min`` and ``_max``.
AVERAGED_SCORES = ("factscore", "dfactscore", "init_factscore", "init_dfactscore")


def biography_category(n_biographies: int, n_entities: int) -> str:
    """The category of a response (MF §2.4, Table 2), where no supported fact at all counts as one entity.

    >>> biography_category(1, 2)
    'one bio, N entities'
    """
    if n_biographies <= 1:
        return BIOGRAPHY_CATEGORIES[0] if n_entities <= 1 else BIOGRAPHY_CATEGORIES[1]
    return BIOGRAPHY_CATEGORIES[2] if n_entities > 1 else BIOGRAPHY_CATEGORIES[3]


def score_biography(
    response: GroupedResponse,
    rule: str = "argmax",
    *,
    gamma: float = DEFAULT_GAMMA,
    narrow_margin: float = NARROW_MARGIN,
) -> tuple[dict[str, Any], list[EntityLink]]:
    """The figures of one response as a flat row, and the links of its groups.

    ``factscore`` lets any candidate support a fact, ``dfactscore`` only the entity that the fact's group is linked to;
    both are multiplied by the length penalty on the number of *facts* (γ = ``gamma``, 0: none), ``init_factscore`` and
    ``init_dfactscore`` are not. (MF's published code penalises by the number of groups, so that only its unpenalised
    D-FActScore can be compared.) A fact without a verdict counts as not supported; ``_min`` and ``_max`` are over all
    ways to fill the matrix. D-FActScore is of the facts that have a group; its bounds let those without one count too.
    ``gap`` = init_factscore - init_dfactscore. ``n_elsewhere``: facts that another candidate supports and the linked
    one does not. ``merged``: whether there is one; null where the missing verdicts decide. ``margin``: the least over
    the groups.
    """
    matrix, groups, own = response.matrix, response.groups, response.is_own_fact
    grouped = groups >= 0
    if rule not in response.cache:
        made = link_groups_to_entities(matrix, groups, rule, response.given_entities) if grouped.any() else []
        response.cache[rule] = made, bound_supported_facts(matrix, groups, rule, response.given_entities, own)
    links, told = response.cache[rule]
    columns = linked_entity_columns(links, groups)
    by_any, linked = matrix.verdict_of_any_entity(), matrix.verdict_of_linked_entity(columns)
    n, n_grouped = int(own.sum()), int(grouped.sum())
    n_loose = int((own & ~grouped).sum()) if n_grouped else 0
    possible = bool(matrix.entities)
    row: dict[str, Any] = {"n_facts": n, "n_supported": int((by_any[own] == 1).sum()), "n_ungrouped": n_loose}
    row["n_unscored"] = int((by_any[own] == MISSING).sum())
    row["n_unscored_linked"] = int((linked[grouped] == MISSING).sum()) if n_grouped else n
    row["n_supported_linked"] = int((linked[grouped] == 1).sum())
    row["n_grouped"] = n_grouped
    anything = possible and matrix.was_asked
    factscore = row["n_supported"] / n if n and anything else None
    dfactscore = row["n_supported_linked"] / n_grouped if n_grouped and anything else None
    _add_penalised_biography_share(
        row,
        "factscore",
        factscore,
        _support_share_bounds(told.by_any_entity, n, possible),
        response_length_penalty(n, gamma),
    )
    _add_penalised_biography_share(
        row,
        "dfactscore",
        dfactscore,
        _bound_biography_supported_fact_share(response, told.by_linked_entity, n_loose, possible),
        response_length_penalty(n, gamma),
    )
    row["gap"] = None if factscore is None or dfactscore is None else factscore - dfactscore
    row |= _bound_factscore_dfactscore_gap(row, told.by_other_entity_only, n, n_loose, response)
    n_entities, entities = _count_biography_entities(response, by_any)
    n_groups = response.n_groups or None
    exact = n_groups if response.mean_biographies is None else None
    row["n_biographies"] = n_groups
    row["n_biographies_min"], row["n_biographies_max"] = (n_groups or 1, exact or n) if n else (None, None)
    row["mean_biographies"] = response.mean_biographies
    row["n_entities"], row["n_entities_min"], row["n_entities_max"] = n_entities, *entities
    row["n_candidates"] = len(matrix.entities)
    known = bool(n and possible and n_grouped)
    elsewhere = (by_any == 1) & (linked == 0) & own & grouped
    # What a verifier's error alone could make "somebody else's": the other candidates' cells of unsupported facts.
    other = (matrix.prediction != MISSING).sum(axis=1) - (linked != MISSING) * (columns >= 0)
    row["n_open"] = int(other[(linked == 0) & own & grouped].sum())
    for source in FALSE_CELL_SOURCES:
        counts = response.false_cells.get(source, (0, 0))
        row[f"n_false_{source}"], row[f"n_false_{source}_supported"] = counts
    row["n_elsewhere"] = int(elsewhere.sum()) if known else None
    row["n_elsewhere_min"], row["n_elsewhere_max"] = told.by_other_entity_only if n and possible else (None, None)
    row["merged"] = _is_merged_response(told.by_other_entity_only) if n and possible else None
    row["categories"] = _possible_biography_categories(response, entities) if n and possible else ()
    row["category"] = row["categories"][0] if len(row["categories"]) == 1 else None
    margins = [one.margin for one in links if one.margin is not None]
    row["margin"] = min(margins) if margins else None
    row["n_narrow"] = sum(one.is_narrow(narrow_margin) for one in links)
    row["n_groups"] = response.n_groups
    row["reason"] = _explain_undefined_biography_scores(row, response, anything)
    return row, links


def summarise_biography_scores(
    response_rows: Sequence[Mapping[str, Any]],
    intervals: ClusterBootstrap | None = None,
    false_positive_rate: float | None = None,
    with_noise_floor: bool = True,
) -> dict[str, Any]:
    """D-FActScore over responses: unweighted means over those that answered, as a flat row.

    A response that abstained, or in which no fact was found, counts in ``respond_ratio`` only. Each mean is over the
    responses that have the figure; ``_min`` and ``_max`` are over all that answered, an undefined score being anything
    from 0 to 1. A response without candidates (``n_without_candidates``) has no score, and is in none of the other
    figures nor in their bounds. ``gap`` and its interval are paired: over the responses that have both scores.
    Intervals (``_low``, ``_high``) are those of `factaudit.arrays.response_means`.
    ``share_merged`` is of the responses of which the verdicts decide it (``n_undecided``: of which they don't), and so
    are the shares of categories; their bounds are over all. It is None where over `MOST_UNDECIDED` of the responses are
    undecided: those with facts of others mostly are. What of it is the verifier's error:
    `factaudit.stats.noise_floor`.
    """
    answered = [row for row in response_rows if row["n_facts"]]
    seen = [row for row in answered if row["n_candidates"]]
    found: dict[str, Any] = {
        "n_responses": len(response_rows),
        "n_answered": len(answered),
        "n_without_candidates": len(answered) - len(seen),
        "respond_ratio": len(answered) / len(response_rows) if response_rows else None,
        "n_facts": sum(row["n_facts"] for row in answered),
        "n_unscored": sum(row["n_unscored"] for row in answered),
        "n_unscored_linked": sum(row["n_unscored_linked"] for row in answered),
        "n_ungrouped": sum(row["n_ungrouped"] for row in answered),
        "facts_per_response": mean_of_defined(row["n_facts"] for row in answered),
    }
    for key in AVERAGED_SCORES:
        found |= response_mean_with_interval(key, [row[key] for row in answered], intervals)
    # Any page supports what the linked one does: where both scores are of the same facts no gap is below 0.
    of_same_facts = all(row["n_grouped"] == row["n_facts"] and not row["n_ungrouped"] for row in answered)
    least_gap = 0 if of_same_facts else -1
    found |= response_change_with_interval("gap", [row["gap"] for row in answered], intervals, least_gap)
    for key in AVERAGED_SCORES:
        for end in ("min", "max"):
            found[f"{key}_{end}"] = mean_of_defined(row[f"{key}_{end}"] for row in answered)
    for end in ("min", "max"):
        found[f"gap_{end}"] = mean_of_defined(row[f"gap_{end}"] for row in seen)
    for key, least in (("n_biographies", 1), ("n_entities", 0)):
        found |= response_count_with_interval(key, [row[key] for row in seen], intervals, least)
        for end in ("min", "max"):
            found[f"{key}_{end}"] = mean_of_defined(row[f"{key}_{end}"] for row in seen)
    told = mean_of_defined(row["mean_biographies"] for row in seen)
    if told is not None:
        found |= {"n_biographies": told, "n_biographies_low": None, "n_biographies_high": None}
    found["n_candidates"] = mean_of_defined(row["n_candidates"] for row in answered)
    found["n_merged"] = sum(row["merged"] is True for row in seen)
    found["n_undecided"] = sum(row["merged"] is None for row in seen)
    is_open = found["n_undecided"] > MOST_UNDECIDED * len(seen)
    found |= response_share_with_interval(
        "share_merged", [None if is_open else row["merged"] for row in seen], intervals
    )
    found["share_merged_min"] = mean_of_defined(row["n_elsewhere_min"] > 0 for row in seen)
    found["share_merged_max"] = mean_of_defined(row["n_elsewhere_max"] > 0 for row in seen)
    if with_noise_floor:
        found |= _biography_noise_floor(seen, intervals, false_positive_rate)
    for key in ("n_elsewhere", "n_elsewhere_min", "n_elsewhere_max"):
        found[key] = sum(row[key] or 0 for row in seen)
    found["n_narrow"] = sum(row["n_narrow"] for row in answered)
    found |= _compute_biography_category_shares(seen)
    found["n_dfactscore_higher"] = sum(row["gap"] is not None and row["gap"] < -1e-9 for row in answered)
    floor = ("false_positive_rate", "merged_floor", "merged_excess")
    lacks_floor = with_noise_floor and found["merged_floor"] is None
    unmeasured = f"no decoys or labelled errors: {', '.join(floor)}" if lacks_floor else ""
    means = (*AVERAGED_SCORES, "gap", *(() if told is not None else ("n_biographies",)), "n_entities")
    why = [
        *_explain_undefined_biography_means(found, answered),
        unmeasured if seen else "",
        explain_missing_mean_intervals(found, means, intervals),
    ]
    found["reason"] = join_reasons(why)
    return found


def _biography_noise_floor(
    response_rows: Sequence[Mapping[str, Any]], intervals: ClusterBootstrap | None, false_positive_rate: float | None
) -> dict[str, Any]:
    """The noise floor of the share of merged responses and what exceeds it, over the responses that are decided.

    Gives false_positive_rate, n_false (the cells that it is measured on), false_positives_from (a source, or
    ``given``), merged_floor and merged_excess, with intervals; all None without false cells. Pages of one
    name share more than such cells' pages do with the text (a nationality, a profession): the floor is a lower one.
    """
    source = next((one for one in FALSE_CELL_SOURCES if any(row[f"n_false_{one}"] for row in response_rows)), None)
    figures: dict[str, Any] = {"false_positives_from": None, "n_false": 0}
    keys = ("false_positive_rate", "merged_floor", "merged_excess")
    figures |= dict.fromkeys(f"{key}{end}" for key in keys for end in ("", "_low", "_high"))
    false_cells = np.zeros((2, len(response_rows)))
    if source is not None and false_positive_rate is None:
        ends = ("", "_supported")
        false_cells = np.array([[row[f"n_false_{source}{end}"] for row in response_rows] for end in ends], dtype=float)
    floor = estimate_noise_floor(
        np.array([np.nan if row["merged"] is None else row["merged"] for row in response_rows], dtype=float),
        np.array([row["n_open"] for row in response_rows], dtype=float),
        false_cells,
        intervals,
        false_positive_rate,
    )
    if floor is None:
        return figures
    if false_positive_rate is None:
        figures |= {"false_positives_from": source, "n_false": int(false_cells[0].sum())}
    else:
        figures["false_positives_from"] = "given"
    points = (floor.false_positive_rate, floor.floor, floor.excess)
    for key, point, (low, high) in zip(keys, points, floor.intervals, strict=True):
        figures |= {key: point, f"{key}_low": low, f"{key}_high": high}
    return figures


def _compute_biography_category_shares(response_rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Shares of the categories, and their bounds over all responses.

    Missing verdicts decide between one entity and several, not between one biography and several: the share of either
    is split as the decided responses of that kind are.
    """
    found: dict[str, Any] = {}
    kinds = (BIOGRAPHY_CATEGORIES[:2], BIOGRAPHY_CATEGORIES[2:])
    of_kind = [[row for row in response_rows if set(row["categories"]) <= set(kind)] for kind in kinds]
    n_known = sum(map(len, of_kind))
    for kind, members in zip(kinds, of_kind, strict=True):
        decided = [row for row in members if row["category"] is not None]
        for name in kind:
            share = 0.0 if n_known and not members else mean_of_defined(row["category"] == name for row in decided)
            found[name] = None if share is None else share * len(members) / n_known
            found[f"{name}_min"] = mean_of_defined(row["categories"] == (name,) for row in response_rows)
            found[f"{name}_max"] = mean_of_defined(name in row["categories"] for row in response_rows)
    return found


def _explain_undefined_biography_means(
    summary: dict[str, Any], answered_rows: Sequence[Mapping[str, Any]]
) -> list[str]:
    if not answered_rows:
        return ["no response with a fact"]
    n = len(answered_rows)
    undefined = sum(row["init_dfactscore"] is None for row in answered_rows)
    told = [
        (undefined, "have no D-FActScore: init_dfactscore, dfactscore"),
        (summary["n_without_candidates"], "have no candidate and are in no other figure"),
        (summary["n_undecided"], "may or may not be merged, as the missing verdicts go: share_merged"),
    ]
    return [f"{count:,} of {n:,} responses {what}" for count, what in told if count]


def _add_penalised_biography_share(
    row: dict[str, Any], name: str, share: float | None, share_bounds: tuple[float, float] | None, penalty_factor: float
) -> None:
    """The share and its bounds under two names: with the penalty, and ``init_`` without."""
    low, high = share_bounds or (None, None)
    for key, value in (("", share), ("_min", low), ("_max", high)):
        row[f"init_{name}{key}"] = value
        row[f"{name}{key}"] = None if value is None else penalty_factor * value


def _support_share_bounds(count_range: tuple[int, int], n_facts: int, possible: bool) -> tuple[float, float] | None:
    if not n_facts:
        return None
    return (count_range[0] / n_facts, count_range[1] / n_facts) if possible else (0.0, 1.0)


def _bound_biography_supported_fact_share(
    response: GroupedResponse, count_range: tuple[int, int], n_loose: int, possible: bool
) -> tuple[float, float] | None:
    """Of the facts that have a group; those without one may be left out, supported or not."""
    n = int((response.groups >= 0).sum()) or int(response.is_own_fact.sum())
    if not n or not possible:
        return (0.0, 1.0) if n else None
    loose = response.is_own_fact & (response.groups < 0)
    matrix = response.matrix
    maybe = int(((matrix.prediction == 1) | matrix.unsure)[loose].any(axis=1).sum()) if n_loose else 0
    return count_range[0] / (n + n_loose), max(count_range[1] / n, (count_range[1] + maybe) / (n + n_loose))


def _bound_factscore_dfactscore_gap(
    row: dict[str, Any], bounds_elsewhere: tuple[int, int], n_facts: int, n_loose: int, response: GroupedResponse
) -> dict[str, Any]:
    if not n_facts or not response.matrix.entities:
        return {"gap_min": None, "gap_max": None}
    if n_loose or not response.is_own_fact.all():  # the two scores are not of the same facts
        low = row["init_factscore_min"] - row["init_dfactscore_max"]
        return {"gap_min": low, "gap_max": row["init_factscore_max"] - row["init_dfactscore_min"]}
    return {"gap_min": bounds_elsewhere[0] / n_facts, "gap_max": bounds_elsewhere[1] / n_facts}


def _count_biography_entities(
    response: GroupedResponse, verdicts: np.ndarray
) -> tuple[int | None, tuple[int | None, int | None]]:
    """The number of distinct entities that supported facts are about, and its bounds."""
    own = response.is_own_fact
    if not own.any() or not response.matrix.entities:
        return None, (None, None)
    if response.true_entities is None:
        matrix = response.matrix.select_facts(own)
        return len(set(matrix.attribute_facts().tolist()) - {-1}), bound_entity_count(matrix)
    told = {
        one
        for one, mine, verdict in zip(response.true_entities, own, verdicts, strict=True)
        if mine and verdict == 1 and one
    }
    unscored = int((verdicts[own] == MISSING).sum())
    return len(told), (len(told), len(told) + unscored)


def _is_merged_response(bounds_elsewhere: tuple[int, int]) -> bool | None:
    if bounds_elsewhere[0] > 0:
        return True
    return False if bounds_elsewhere[1] == 0 else None


def _possible_biography_categories(
    response: GroupedResponse, entity_bounds: tuple[int | None, int | None]
) -> tuple[str, ...]:
    """The categories that are possible, as the missing verdicts (or groups) go."""
    # Where groups are not known for sure, there may be more biographies than one.
    unsure = (not response.n_groups or response.mean_biographies is not None) and response.is_own_fact.sum() > 1
    numbers = {response.n_groups or 1, 2} if unsure else {response.n_groups or 1}
    both = {biography_category(number, end) for number in numbers for end in entity_bounds if end is not None}
    return tuple(name for name in BIOGRAPHY_CATEGORIES if name in both)


def _explain_undefined_biography_scores(
    row: dict[str, Any], response: GroupedResponse, was_any_asked: bool
) -> str | None:
    if not row["n_facts"]:
        return "no fact"
    if not response.matrix.entities:
        return "no candidate"
    if not was_any_asked:
        return "no fact was put to a verifier"
    return None if response.n_groups else "the facts are in no groups"
