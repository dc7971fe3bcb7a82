"""What are FActScore and D-FActScore of each response, and their means over responses? (MF §2.4,
§4.1, Table 2)

``factscore`` lets any person support a fact; ``dfactscore`` lets only the person to whom the fact's
group is linked. Both are multiplied by the length penalty on the number of *facts*;
``init_factscore`` and ``init_dfactscore`` are not. (MF's published code computes the penalty from
the number of groups, so only its unpenalised D-FActScore can be compared.) A fact without a verdict
counts as not supported; ``_min`` and ``_max`` cover all values of missing verdicts and groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from factaudit.arrays.biographies import SupportMatrix
from factaudit.arrays.figures import share_units
from factaudit.arrays.judgements import MISSING
from factaudit.arrays.response_means import (
    DEFAULT_GAMMA,
    average_responses,
    average_with_bounds,
    count_interval,
    length_penalty,
    mean_of_defined,
    number_clusters,
    share_interval,
)
from factaudit.stats import name_figure
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.influence import bounded_change_interval
from factaudit.stats.mover import mover_weighted_sum

Row = dict[str, Any]

#: If the missing verdicts leave it open for a larger share of the responses whether they are
#: merged, the share of merged responses has only bounds.
MOST_UNDECIDED = 0.1
#: The scores of a response that are averaged, each with its bounds.
SCORES = ("factscore", "dfactscore", "init_factscore", "init_dfactscore")
#: What `estimate_merged_beyond_noise` finds.
NOISE_FIGURES = ("false_positive_rate", "merged_floor", "merged_excess")


def score_biography(
    response: SupportMatrix, rule: str = "argmax", *, gamma: float = DEFAULT_GAMMA
) -> Row:
    """The figures of one response, with its groups linked by one of
    `factaudit.arrays.biographies.LINKING_RULES`.

    FActScore counts the response's own facts. D-FActScore counts those of them that have a group;
    its bounds allow for the others. ``gap`` = init_factscore - init_dfactscore. ``n_elsewhere``:
    facts that somebody supports and the linked person does not. ``merged``: whether there is such a
    fact; null if it depends on the missing verdicts. ``n_open``: the cells of other people that
    would make the response look merged if the verifier erred there. Figures are null if there is no
    fact, or nobody whom the response may be about; a score can then be anything from 0 to 1.
    """
    grouped, own = response.group >= 0, response.own
    person = response.person_of_facts(rule)
    by_any, linked = response.supported_by_any(), response.supported_by(person)
    n, n_grouped = int(own.sum()), int(grouped.sum())
    n_ungrouped = int((own & ~grouped).sum()) if n_grouped else 0
    n_others = (response.prediction != MISSING).sum(axis=1) - ((linked != MISSING) & (person >= 0))
    reasons = {
        "no fact": not n,
        "no candidate": not response.people,
        "no fact was put to a verifier": not response.was_asked,
        "the facts are in no groups": not n_grouped,
    }
    row: Row = {
        "topic": response.key.get("topic"),
        "n_facts": n,
        "n_supported": int((by_any[own] == 1).sum()),
        "n_supported_linked": int((linked[grouped] == 1).sum()),
        "n_unscored": int((by_any[own] == MISSING).sum()),
        "n_unscored_linked": int((linked[grouped] == MISSING).sum()) if n_grouped else n,
        "n_ungrouped": n_ungrouped,
        "n_open": int(n_others[(linked == 0) & own & grouped].sum()),
        "n_candidates": len(response.people),
        "n_biographies": response.n_groups or None,
        "mean_biographies": response.mean_biographies,
        "false_cells": response.false_cells,
        "merged": None,
        "reason": next((text for text, is_so in reasons.items() if is_so), None),
    }
    # For each figure: its value, and the least and the greatest value that are possible.
    unknown = (None, 0.0, 1.0) if n else (None, None, None)
    figures: dict[str, Sequence[Any]] = dict.fromkeys(
        ("init_factscore", "init_dfactscore"), unknown
    )
    figures |= dict.fromkeys(("gap", "n_entities", "n_elsewhere"), (None, None, None))
    if n and response.people:
        (any_least, any_most), (least, most), elsewhere = response.bound_support(rule)
        # A fact without a group may be left out, supported or not.
        total = (n_grouped or n) + n_ungrouped
        ends = {
            "init_factscore": (any_least / n, any_most / n),
            "init_dfactscore": (least / total, (most + n_ungrouped) / total),
            "n_elsewhere": elsewhere,
            "n_entities": response.bound_people(),
        }
        points: Row = dict.fromkeys(ends) | {"gap": None, "n_entities": len(response.list_owners())}
        if response.was_asked:
            points["init_factscore"] = row["n_supported"] / n
        if n_grouped:
            points["n_elsewhere"] = int(((by_any == 1) & (linked == 0) & own & grouped).sum())
        if n_grouped and response.was_asked:
            points["init_dfactscore"] = row["n_supported_linked"] / n_grouped
            points["gap"] = points["init_factscore"] - points["init_dfactscore"]
        # The two scores are about the same facts if all facts have a group and are the response's
        # own.
        ends["gap"] = elsewhere[0] / n, elsewhere[1] / n
        if n_ungrouped or not own.all():
            scores, linked_scores = ends["init_factscore"], ends["init_dfactscore"]
            ends["gap"] = scores[0] - linked_scores[1], scores[1] - linked_scores[0]
        figures |= {name: (points[name], *ends[name]) for name in points}
        row["merged"] = None if elsewhere[0] == 0 < elsewhere[1] else elsewhere[0] > 0
    penalty = float(length_penalty(n, gamma))
    for name in SCORES[:2]:
        shares = figures[f"init_{name}"]
        figures[name] = [None if share is None else penalty * share for share in shares]
    for name, values in figures.items():
        row |= dict(zip((name, f"{name}_min", f"{name}_max"), values, strict=True))
    return row


def summarise_biography_scores(
    response_rows: Sequence[Mapping[str, Any]], intervals: ClusterBootstrap | None = None
) -> Row:
    """D-FActScore over responses, as a flat row: unweighted means over the responses that answered.

    A response that abstained, or in which no fact was found, counts only in ``respond_ratio``. Each
    mean is over the responses that have the figure; ``_min`` and ``_max`` are over all that
    answered, where an undefined score can be anything from 0 to 1. A response without candidates
    (``n_without_candidates``) has no score, and is in none of the other figures or bounds.
    ``share_merged`` is over the responses for which the verdicts decide it (``n_undecided`` counts
    the others). It is None if more than `MOST_UNDECIDED` are undecided, because the decided ones
    are then mostly those with facts of others. `estimate_merged_beyond_noise` says how much of it
    is due to the verifier's errors.
    """
    answered = [row for row in response_rows if row["n_facts"]]
    seen = [row for row in answered if row["n_candidates"]]
    found: Row = {
        "n_responses": len(response_rows),
        "n_answered": len(answered),
        "n_without_candidates": len(answered) - len(seen),
        "n_without_dfactscore": sum(row["init_dfactscore"] is None for row in answered),
        "respond_ratio": len(answered) / len(response_rows) if response_rows else None,
        "facts_per_response": mean_of_defined(row["n_facts"] for row in answered),
    }
    for key in ("n_facts", "n_unscored", "n_unscored_linked", "n_ungrouped"):
        found[key] = sum(row[key] for row in answered)
    for key in SCORES:
        found |= average_with_bounds(key, answered, intervals)
    # If both scores are about the same facts, no gap is below 0, because what the linked page
    # supports is supported by some page.
    is_of_same_facts = all(row["gap_min"] is None or row["gap_min"] >= 0 for row in answered)
    least = 0 if is_of_same_facts else -1
    found |= average_with_bounds("gap", seen, intervals, bounded_change_interval, least)
    found |= average_with_bounds("n_entities", seen, intervals, count_interval, 0)
    topics = number_clusters(row["topic"] for row in seen)
    numbers = [row["n_biographies"] for row in seen]
    found |= average_responses("n_biographies", numbers, intervals, count_interval, 1, topics)
    published = mean_of_defined(row["mean_biographies"] for row in seen)
    if published is not None:
        found |= dict.fromkeys(("n_biographies_low", "n_biographies_high"))
        found["n_biographies"] = published
    for key in ("n_elsewhere", "n_elsewhere_min", "n_elsewhere_max"):
        found[key] = sum(row[key] or 0 for row in seen)
    found["n_undecided"] = sum(row["merged"] is None for row in seen)
    is_open = found["n_undecided"] > MOST_UNDECIDED * len(seen)
    merged = [None if is_open else row["merged"] for row in seen]
    found |= average_responses("share_merged", merged, intervals, share_interval, cluster=topics)
    for end in ("_min", "_max"):
        found[f"share_merged{end}"] = mean_of_defined(row[f"n_elsewhere{end}"] > 0 for row in seen)
    return found


def estimate_merged_beyond_noise(
    response_rows: Sequence[Mapping[str, Any]], intervals: ClusterBootstrap | None = None
) -> Row:
    """How much of the share of merged responses would the verifier's errors alone produce, and how
    much is beyond that?

    A verifier that calls a false cell supported with probability f makes a response look merged if
    it does so in any of the m cells that could do it (``n_open``): with probability 1 − (1 − f)^m.
    The mean of these probabilities is the floor. f is measured on the cells that are known to be
    false (n_false: decoys, and facts that people found to be false of a person); without any of
    these, all figures are None. The pages of people with one name share more with the text (a
    nationality, a profession) than the pages of decoys do, so the true floor may be higher.

    Intervals: f has Wilson's, with the cells of responses about one topic as a cluster; the floor
    is computed at its ends; the excess has MOVER's for two shares.

    >>> shared = {"n_facts": 9, "n_candidates": 2, "topic": None}
    >>> rows = [{"merged": merged, "n_open": n, "false_cells": cells}
    ...         for merged, n, cells in ((True, 2, (5, 1)), (False, 0, (5, 0)), (None, 5, (0, 0)))]
    >>> found = estimate_merged_beyond_noise([shared | row for row in rows])
    >>> [round(found[key], 3) for key in ("false_positive_rate", "merged_floor", "merged_excess")]
    [0.1, 0.095, 0.405]
    """
    seen = [row for row in response_rows if row["n_facts"] and row["n_candidates"]]
    decided = [row for row in seen if row["merged"] is not None]
    cells = np.array([row["false_cells"] for row in seen], dtype=np.int64).reshape(-1, 2)
    figures: Row = dict.fromkeys(
        f"{name}{end}" for name in NOISE_FIGURES for end in ("", "_low", "_high")
    )
    figures["n_false"] = int(cells[:, 0].sum())
    if not decided or not figures["n_false"]:
        return figures
    is_supported = np.concatenate([np.arange(n) < n_supported for n, n_supported in cells])
    topic = np.repeat(number_clusters(row["topic"] for row in seen), cells[:, 0])
    confidence = None if intervals is None else intervals.confidence
    rate = share_units(is_supported, np.ones_like(is_supported), topic, confidence)
    n_open = np.array([row["n_open"] for row in decided])
    # The rate and its two ends, each with the floor that it gives.
    rates = np.concatenate([rate.point, *rate.ends])
    floors = (1 - (1 - rates[:, None]) ** n_open).mean(axis=1)
    merged = np.array([row["merged"] for row in decided], dtype=float)
    of_decided = number_clusters(row["topic"] for row in decided)
    ends = (
        (np.nan, np.nan) if confidence is None else share_interval(merged, confidence, of_decided)
    )
    shares = np.array([[merged.mean(), *ends], floors])
    excess, excess_ends = mover_weighted_sum(
        shares[:, 0], (shares[:, 1], shares[:, 2]), np.array([1, -1])
    )
    for name, values in zip(NOISE_FIGURES, (rates, floors, (excess, *excess_ends)), strict=True):
        figures |= name_figure(name, values[0], values[1:])
    return figures
