"""FActScore and D-FActScore of each response from its matrix, and their means over responses (MF
§2.4, §4.1, Table 2).

``factscore`` lets any person support a fact, ``dfactscore`` only the one to whom the fact's group
is linked. Both are multiplied by the length penalty on the number of *facts*; ``init_factscore``
and ``init_dfactscore`` are not. (MF's published code penalises by the number of groups, so that
only its unpenalised D-FActScore can be compared.) A fact without a verdict counts as not supported;
``_min`` and ``_max`` are over all ways to fill in missing verdicts and groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from factaudit.arrays.biographies import FALSE_CELL_SOURCES
from factaudit.arrays.judgements import MISSING
from factaudit.arrays.response_means import (
    DEFAULT_GAMMA,
    average_bounds,
    average_changes,
    average_responses,
    count_interval,
    explain_missing_mean_intervals,
    length_penalty,
    mean_of_defined,
    number_clusters,
    share_interval,
)
from factaudit.arrays.support_matrix import NARROW_MARGIN, GroupLinks, SupportMatrix
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import ClusterCounts, estimate_clustered_proportions
from factaudit.stats.mover import mover_weighted_sum
from factaudit.stats.undefined_values import name_ends
from factaudit.text.display_text import join_reasons

Row = dict[str, Any]

#: MF §2.4's categories; the last is for what they leave open: several biographies, all of one
#: person.
BIOGRAPHY_CATEGORIES = (
    "one bio, one entity",
    "one bio, N entities",
    "N bios, N entities",
    "N bios, one entity",
)
#: Where the missing verdicts leave open of more of the responses whether they are merged, their
#: share has bounds only.
MOST_UNDECIDED = 0.1
#: The scores of a response that are averaged, each with its bounds.
SCORES = ("factscore", "dfactscore", "init_factscore", "init_dfactscore")


def biography_category(n_biographies: int, n_entities: int) -> str:
    """The category of a response (MF §2.4, Table 2), where no supported fact at all counts as one
    person.

    >>> biography_category(1, 2)
    'one bio, N entities'
    """
    if n_biographies <= 1:
        return BIOGRAPHY_CATEGORIES[0] if n_entities <= 1 else BIOGRAPHY_CATEGORIES[1]
    return BIOGRAPHY_CATEGORIES[2] if n_entities > 1 else BIOGRAPHY_CATEGORIES[3]


#: The figures of a response, null where it has no fact, or nobody whom it may be about.
_FIGURES = (
    *(
        f"{name}{end}"
        for name in (*SCORES, "gap", "n_entities", "n_elsewhere")
        for end in ("", "_min", "_max")
    ),
    *("n_biographies_min", "n_biographies_max", "merged", "category", "margin"),
)


def score_biography(
    response: SupportMatrix,
    rule: str = "argmax",
    *,
    gamma: float = DEFAULT_GAMMA,
    narrow: float = NARROW_MARGIN,
) -> tuple[Row, GroupLinks]:
    """The figures of one response, and the links of its groups (`SupportMatrix.link`).

    FActScore is of the response's own facts, D-FActScore of those that have a group; its bounds let
    the others count too. ``gap`` = init_factscore - init_dfactscore. ``n_elsewhere``: facts that
    somebody supports and the linked person
    does not. ``merged``: whether there is one; null where the missing verdicts decide. ``n_open``:
    the cells of other people that would make a response look merged if the verifier erred there.
    """
    grouped, own, links = response.group >= 0, response.own, response.link(rule)
    person = response.person_of_facts(links)
    by_any, linked = response.supported_by_any(), response.supported_by(person)
    n, n_grouped = int(own.sum()), int(grouped.sum())
    others = (response.prediction != MISSING).sum(axis=1) - ((linked != MISSING) & (person >= 0))
    row: Row = {
        **dict.fromkeys(_FIGURES),
        "topic": response.key.get("topic"),
        "n_facts": n,
        "n_supported": int((by_any[own] == 1).sum()),
        "n_unscored": int((by_any[own] == MISSING).sum()),
        "n_unscored_linked": int((linked[grouped] == MISSING).sum()) if n_grouped else n,
        "n_supported_linked": int((linked[grouped] == 1).sum()),
        "n_grouped": n_grouped,
        "n_ungrouped": int((own & ~grouped).sum()) if n_grouped else 0,
        "n_open": int(others[(linked == 0) & own & grouped].sum()),
        "n_candidates": len(response.people),
        "n_groups": response.n_groups,
        "n_biographies": response.n_groups or None,
        "mean_biographies": response.mean_biographies,
        "n_narrow": int(links.narrow(narrow).sum()),
        "false_cells": dict(response.false_cells),
        "categories": (),
    }
    if n:
        is_exact = response.n_groups and response.mean_biographies is None
        row |= {
            "n_biographies_min": response.n_groups or 1,
            "n_biographies_max": response.n_groups if is_exact else n,
        }
        row |= {
            f"init_{name}{end}": value
            for name in SCORES[:2]
            for end, value in (("_min", 0.0), ("_max", 1.0))
        }
    if n and response.people:
        row |= _count_people(response, by_any)
        any_range, linked_range, else_range = response.bound_support(rule)
        row |= _name_range("init_factscore", (any_range[0] / n, any_range[1] / n))
        row |= _name_range(
            "init_dfactscore", _bound_linked_share(response, linked_range, row["n_ungrouped"])
        )
        row |= _name_range("n_elsewhere", else_range)
        if n_grouped:
            row["n_elsewhere"] = int(((by_any == 1) & (linked == 0) & own & grouped).sum())
        if else_range[0] > 0 or else_range[1] == 0:
            row["merged"] = else_range[0] > 0
        if response.was_asked:
            row["init_factscore"] = row["n_supported"] / n
            row["init_dfactscore"] = row["n_supported_linked"] / n_grouped if n_grouped else None
        if row["init_dfactscore"] is not None:
            row["gap"] = row["init_factscore"] - row["init_dfactscore"]
        row |= _name_range("gap", (else_range[0] / n, else_range[1] / n))
        if row["n_ungrouped"] or not own.all():  # the two scores are not of the same facts
            row["gap_min"] = row["init_factscore_min"] - row["init_dfactscore_max"]
            row["gap_max"] = row["init_factscore_max"] - row["init_dfactscore_min"]
        row["categories"] = _list_possible_categories(row)
        row["category"] = row["categories"][0] if len(row["categories"]) == 1 else None
    penalty = float(length_penalty(n, gamma))
    for name in ("factscore", "dfactscore"):
        for end in ("", "_min", "_max"):
            share = row[f"init_{name}{end}"]
            row[f"{name}{end}"] = None if share is None else penalty * share
    if not np.isnan(links.margin).all():
        row["margin"] = float(np.nanmin(links.margin))
    reasons = (
        (not n, "no fact"),
        (not response.people, "no candidate"),
        (not response.was_asked, "no fact was put to a verifier"),
        (not response.n_groups, "the facts are in no groups"),
    )
    row["reason"] = next((text for is_so, text in reasons if is_so), None)
    return row, links


def _name_range(name: str, ends: tuple[float, float]) -> Row:
    return {f"{name}_min": ends[0], f"{name}_max": ends[1]}


def _bound_linked_share(
    response: SupportMatrix, linked_range: tuple[int, int], n_loose: int
) -> tuple[float, float]:
    """Of the facts that have a group; those without one may be left out, supported or not."""
    grouped = response.group >= 0
    n = int(grouped.sum()) or int(response.own.sum())
    maybe = (
        ((response.prediction == 1) | response.unsure)[response.own & ~grouped].any(axis=1).sum()
        if n_loose
        else 0
    )
    return linked_range[0] / (n + n_loose), max(
        linked_range[1] / n, (linked_range[1] + int(maybe)) / (n + n_loose)
    )


def _count_people(response: SupportMatrix, by_any: np.ndarray) -> Row:
    """How many people supported facts are about (# ent.), and its bounds."""
    own = response.own
    if response.about is None:
        n = len(set(response.attribute_facts()[own].tolist()) - {-1})
        return {"n_entities": n, **_name_range("n_entities", response.bound_people())}
    titles = np.array(response.about, dtype=object)[own & (by_any == 1)]
    n, n_unscored = len(set(titles.tolist()) - {None}), int((by_any[own] == MISSING).sum())
    return {"n_entities": n, **_name_range("n_entities", (n, n + n_unscored))}


def _list_possible_categories(row: Row) -> tuple[str, ...]:
    """The categories that are possible, as the missing verdicts or groups go."""
    numbers = {row["n_biographies_min"], min(row["n_biographies_max"], 2)}
    ends = (row["n_entities_min"], row["n_entities_max"])
    possible = {biography_category(number, end) for number in numbers for end in ends}
    return tuple(name for name in BIOGRAPHY_CATEGORIES if name in possible)


def summarise_biography_scores(
    response_rows: Sequence[Mapping[str, Any]], intervals: ClusterBootstrap | None = None
) -> Row:
    """D-FActScore over responses: unweighted means over those that answered, as a flat row.

    A response that abstained, or in which no fact was found, counts in ``respond_ratio`` only. Each
    mean is over the responses that have the figure; ``_min`` and ``_max`` are over all that
    answered, an undefined score being anything from 0 to 1. A response without candidates
    (``n_without_candidates``) has no score, and is in none of the other figures nor in their
    bounds. ``share_merged`` is of the responses of which the verdicts decide it (``n_undecided``:
    of which they don't); it is None where over `MOST_UNDECIDED` are undecided: those with facts of
    others mostly are. What of it is the verifier's error: `estimate_merged_beyond_noise`.
    """
    answered = [row for row in response_rows if row["n_facts"]]
    seen = [row for row in answered if row["n_candidates"]]
    found: Row = {
        "n_responses": len(response_rows),
        "n_answered": len(answered),
        "n_without_candidates": len(answered) - len(seen),
        "respond_ratio": len(answered) / len(response_rows) if response_rows else None,
        "facts_per_response": mean_of_defined(row["n_facts"] for row in answered),
        "n_candidates": mean_of_defined(row["n_candidates"] for row in answered),
        "n_dfactscore_higher": sum(
            row["gap"] is not None and row["gap"] < -1e-9 for row in answered
        ),
    }
    for key in ("n_facts", "n_unscored", "n_unscored_linked", "n_ungrouped", "n_narrow"):
        found[key] = sum(row[key] for row in answered)
    of_answered, of_seen = (
        number_clusters(row["topic"] for row in rows) for rows in (answered, seen)
    )
    for key in SCORES:
        scores = [row[key] for row in answered]
        found |= average_responses(key, scores, intervals, cluster=of_answered) | average_bounds(
            key, answered
        )
    # Any page supports what the linked one does: where both scores are of the same facts no gap is
    # below 0.
    of_same_facts = all(
        row["n_grouped"] == row["n_facts"] and not row["n_ungrouped"] for row in answered
    )
    gaps = [row["gap"] for row in answered]
    found |= average_changes("gap", gaps, intervals, 0 if of_same_facts else -1, of_answered)
    found |= average_bounds("gap", seen)
    for key, least in (("n_biographies", 1), ("n_entities", 0)):
        found |= average_responses(
            key, [row[key] for row in seen], intervals, count_interval, least, of_seen
        )
        found |= average_bounds(key, seen)
    published = mean_of_defined(row["mean_biographies"] for row in seen)
    if published is not None:
        found |= {"n_biographies": published, "n_biographies_low": None, "n_biographies_high": None}
    for key in ("n_elsewhere", "n_elsewhere_min", "n_elsewhere_max"):
        found[key] = sum(row[key] or 0 for row in seen)
    found["n_merged"] = sum(row["merged"] is True for row in seen)
    found["n_undecided"] = sum(row["merged"] is None for row in seen)
    is_open = found["n_undecided"] > MOST_UNDECIDED * len(seen)
    merged = [None if is_open else row["merged"] for row in seen]
    found |= average_responses("share_merged", merged, intervals, share_interval, cluster=of_seen)
    found["share_merged_min"] = mean_of_defined(row["n_elsewhere_min"] > 0 for row in seen)
    found["share_merged_max"] = mean_of_defined(row["n_elsewhere_max"] > 0 for row in seen)
    found |= _share_categories(seen)
    found["reason"] = _explain_means(found, answered, intervals)
    return found


def estimate_merged_beyond_noise(
    response_rows: Sequence[Mapping[str, Any]],
    intervals: ClusterBootstrap | None = None,
    false_positive_rate: float | None = None,
) -> Row:
    """What of the share of merged responses the verifier's errors alone would give, and what is
    beyond it.

    A verifier that calls a false cell supported with probability f makes a response look merged
    when it does so in any of the m cells that could (``n_open``): with probability 1 − (1 − f)^m.
    The mean of these is the floor. f is given (``false_positive_rate``), or measured on cells that
    are known to be false (``false_positives_from``: `FALSE_CELL_SOURCES`, or ``given``); all
    figures are None without either. Pages of one name share more than such cells' pages do with the
    text (a nationality, a profession): the floor is a lower one.

    Intervals: Wilson's of f, over the cells of responses about one topic; the floor at its ends; of
    the excess MOVER's, of two shares. A given f has none, nor has its floor.

    >>> rows = [
    ...     {"merged": True, "n_open": 2, "false_cells": {"decoys": (5, 1)}},
    ...     {"merged": False, "n_open": 0, "false_cells": {"decoys": (5, 0)}},
    ...     {"merged": None, "n_open": 5, "false_cells": {}},
    ... ]
    >>> rows = [{"n_facts": 9, "n_candidates": 2, "topic": None} | row for row in rows]
    >>> found = estimate_merged_beyond_noise(rows)
    >>> [round(found[key], 3) for key in ("false_positive_rate", "merged_floor", "merged_excess")]
    [0.1, 0.095, 0.405]
    """
    seen = [row for row in response_rows if row["n_facts"] and row["n_candidates"]]
    decided = [row for row in seen if row["merged"] is not None]
    names = ("false_positive_rate", "merged_floor", "merged_excess")
    figures: Row = dict.fromkeys(f"{name}{end}" for name in names for end in ("", "_low", "_high"))
    figures |= {"n_false": 0, "false_positives_from": None}
    counts = {
        source: np.array([row["false_cells"].get(source, (0, 0)) for row in seen])
        for source in FALSE_CELL_SOURCES
    }
    source = next((source for source, cells in counts.items() if cells.any()), None)
    if not decided or (source is None and false_positive_rate is None):
        return figures
    rate = false_positive_rate or 0.0
    rate_ends = rate, rate
    figures["false_positives_from"] = "given"
    if false_positive_rate is None and source is not None:
        topic = number_clusters(row["topic"] for row in seen)
        n, hits = (np.bincount(topic, column)[:, None] for column in counts[source].T)
        clusters = ClusterCounts(
            np.zeros(len(n), dtype=np.int64), np.ones(len(n), dtype=np.int64), n, 1
        )
        found = estimate_clustered_proportions(clusters, hits, n)
        rate = found.point.item()
        figures |= {"n_false": int(n.sum()), "false_positives_from": source}
        if intervals is not None:
            low, high = found.wilson_intervals(intervals.confidence)
            rate_ends = low.item(), high.item()
    n_open = np.array([row["n_open"] for row in decided])
    assert rate is not None
    floor, *floor_ends = (float((1 - (1 - each) ** n_open).mean()) for each in (rate, *rate_ends))
    merged = np.array([row["merged"] for row in decided], dtype=float)
    points = (rate, floor, merged.mean() - floor)
    figures |= {name: float(point) for name, point in zip(names, points, strict=True)}
    if intervals is not None:
        share_ends = share_interval(
            merged, intervals.confidence, number_clusters(row["topic"] for row in decided)
        )
        low, high = np.array([share_ends, floor_ends]).T
        shares = np.array([merged.mean(), floor])
        excess_ends = mover_weighted_sum(shares, (low, high), np.array([1, -1]))[1]
        figures |= name_ends("merged_excess", excess_ends)
        if false_positive_rate is None:
            figures |= name_ends("false_positive_rate", rate_ends) | name_ends(
                "merged_floor", floor_ends
            )
    return figures


def _share_categories(response_rows: Sequence[Mapping[str, Any]]) -> Row:
    """Shares of the categories, and their bounds over all responses.

    Missing verdicts decide between one person and several, not between one biography and several:
    the share of either is split as the decided responses of that kind are.
    """
    found: Row = {}
    kinds = (BIOGRAPHY_CATEGORIES[:2], BIOGRAPHY_CATEGORIES[2:])
    of_kind = [
        [row for row in response_rows if set(row["categories"]) <= set(kind)] for kind in kinds
    ]
    n_known = sum(map(len, of_kind))
    for kind, members in zip(kinds, of_kind, strict=True):
        decided = [row for row in members if row["category"] is not None]
        for name in kind:
            share = (
                0.0
                if n_known and not members
                else mean_of_defined(row["category"] == name for row in decided)
            )
            found[name] = None if share is None else share * len(members) / n_known
            found[f"{name}_min"] = mean_of_defined(
                row["categories"] == (name,) for row in response_rows
            )
            found[f"{name}_max"] = mean_of_defined(
                name in row["categories"] for row in response_rows
            )
    return found


def _explain_means(
    found: Row, answered: Sequence[Mapping[str, Any]], intervals: ClusterBootstrap | None
) -> str | None:
    if not answered:
        return "no response with a fact"
    undefined = sum(row["init_dfactscore"] is None for row in answered)
    counts = (
        (undefined, "have no D-FActScore: init_dfactscore, dfactscore"),
        (found["n_without_candidates"], "have no candidate and are in no other figure"),
        (
            found["n_undecided"],
            "may or may not be merged, as the missing verdicts go: share_merged",
        ),
    )
    why = [f"{count:,} of {len(answered):,} responses {what}" for count, what in counts if count]
    averaged = (*SCORES, "gap", "n_biographies", "n_entities")
    told = [
        key for key in averaged if key != "n_biographies" or answered[0]["mean_biographies"] is None
    ]
    return join_reasons([*why, explain_missing_mean_intervals(found, told, intervals)])
