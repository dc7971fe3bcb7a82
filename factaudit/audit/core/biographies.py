"""FActScore and D-FActScore of each response from its matrix, and their means over responses (MF §2.4, §3, Table 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from factaudit.audit.core.fillings import count_entities, spans
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import MISSING
from factaudit.audit.core.matrix import NARROW, Link, Response, columns_of, link
from factaudit.audit.core.means import GAMMA, averaged, mean, penalty
from factaudit.audit.core.noise import SOURCES, noise_floor
from factaudit.audit.core.rows import Row, reasons

#: MF §2.4's categories; the last is for what they leave open: several biographies, all of one entity.
CATEGORIES = ("one bio, one entity", "one bio, N entities", "N bios, N entities", "N bios, one entity")
#: The figures of a response that are averaged, each with ``_min`` and ``_max``.
SCORES = ("factscore", "dfactscore", "init_factscore", "init_dfactscore")


def category(n_biographies: int, n_entities: int) -> str:
    """The category of a response (MF §2.4, Table 2), where no supported fact at all counts as one entity.

    >>> category(1, 2)
    'one bio, N entities'
    """
    if n_biographies <= 1:
        return CATEGORIES[0] if n_entities <= 1 else CATEGORIES[1]
    return CATEGORIES[2] if n_entities > 1 else CATEGORIES[3]


def score(
    response: Response, rule: str = "argmax", *, gamma: float = GAMMA, narrow: float = NARROW
) -> tuple[Row, list[Link]]:
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
    matrix, groups, own = response.matrix, response.groups, response.own
    grouped = groups >= 0
    if rule not in response.kept:
        made = link(matrix, groups, rule, response.given) if grouped.any() else []
        response.kept[rule] = made, spans(matrix, groups, rule, response.given, own)
    links, told = response.kept[rule]
    columns = columns_of(links, groups)
    by_any, linked = matrix.by_any(), matrix.by_entity(columns)
    n, n_grouped = int(own.sum()), int(grouped.sum())
    n_loose = int((own & ~grouped).sum()) if n_grouped else 0
    possible = bool(matrix.entities)
    row: Row = {"n_facts": n, "n_supported": int((by_any[own] == 1).sum()), "n_ungrouped": n_loose}
    row["n_unscored"] = int((by_any[own] == MISSING).sum())
    row["n_unscored_linked"] = int((linked[grouped] == MISSING).sum()) if n_grouped else n
    row["n_supported_linked"] = int((linked[grouped] == 1).sum())
    row["n_grouped"] = n_grouped
    anything = possible and matrix.asked
    factscore = row["n_supported"] / n if n and anything else None
    dfactscore = row["n_supported_linked"] / n_grouped if n_grouped and anything else None
    _span(row, "factscore", factscore, _shares(told.by_any, n, possible), penalty(n, gamma))
    _span(row, "dfactscore", dfactscore, _linked_shares(response, told.linked, n_loose, possible), penalty(n, gamma))
    row["gap"] = None if factscore is None or dfactscore is None else factscore - dfactscore
    row |= _gap_bounds(row, told.elsewhere, n, n_loose, response)
    n_entities, entities = _entities(response, by_any)
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
    for source in SOURCES:
        counts = response.false_cells.get(source, (0, 0))
        row[f"n_false_{source}"], row[f"n_false_{source}_supported"] = counts
    row["n_elsewhere"] = int(elsewhere.sum()) if known else None
    row["n_elsewhere_min"], row["n_elsewhere_max"] = told.elsewhere if n and possible else (None, None)
    row["merged"] = _merged(told.elsewhere) if n and possible else None
    row["categories"] = _categories(response, entities) if n and possible else ()
    row["category"] = row["categories"][0] if len(row["categories"]) == 1 else None
    margins = [one.margin for one in links if one.margin is not None]
    row["margin"] = min(margins) if margins else None
    row["n_narrow"] = sum(one.is_narrow(narrow) for one in links)
    row["n_groups"] = response.n_groups
    row["reason"] = _reason(row, response, anything)
    return row, links


def summarise(
    rows: Sequence[Mapping[str, Any]], intervals: Intervals | None = None, false_positives: float | None = None
) -> Row:
    """D-FActScore over responses: unweighted means over those that answered, as a flat row.

    A response that abstained, or in which no fact was found, counts in ``respond_ratio`` only. Each mean is over the
    responses that have the figure; ``_min`` and ``_max`` are over all that answered, an undefined score being anything
    from 0 to 1. A response without candidates (``n_without_candidates``) has no score, and is in none of the other
    figures nor in their bounds. ``gap`` and its interval are paired: over the responses that have both scores.
    Intervals (``_low``, ``_high``) are percentiles of a bootstrap over responses. ``share_merged`` is of the responses
    of which the verdicts decide it (``n_undecided``: of which they don't), and so are the shares of categories; their
    bounds are over all. What of it is the verifier's error: `factaudit.audit.core.noise.noise_floor`.
    """
    answered = [row for row in rows if row["n_facts"]]
    seen = [row for row in answered if row["n_candidates"]]
    found: Row = {
        "n_responses": len(rows),
        "n_answered": len(answered),
        "n_without_candidates": len(answered) - len(seen),
        "respond_ratio": len(answered) / len(rows) if rows else None,
        "n_facts": sum(row["n_facts"] for row in answered),
        "n_unscored": sum(row["n_unscored"] for row in answered),
        "n_unscored_linked": sum(row["n_unscored_linked"] for row in answered),
        "n_ungrouped": sum(row["n_ungrouped"] for row in answered),
        "facts_per_response": mean(row["n_facts"] for row in answered),
    }
    for key in (*SCORES, "gap"):
        found |= averaged(key, [row[key] for row in answered], intervals)
    for key in SCORES:
        for end in ("min", "max"):
            found[f"{key}_{end}"] = mean(row[f"{key}_{end}"] for row in answered)
    for end in ("min", "max"):
        found[f"gap_{end}"] = mean(row[f"gap_{end}"] for row in seen)
    for key in ("n_biographies", "n_entities"):
        found |= averaged(key, [row[key] for row in seen], intervals)
        for end in ("min", "max"):
            found[f"{key}_{end}"] = mean(row[f"{key}_{end}"] for row in seen)
    if (told := mean(row["mean_biographies"] for row in seen)) is not None:
        found |= {"n_biographies": told, "n_biographies_low": None, "n_biographies_high": None}
    found["n_candidates"] = mean(row["n_candidates"] for row in answered)
    found["n_merged"] = sum(row["merged"] is True for row in seen)
    found |= averaged("share_merged", [row["merged"] for row in seen], intervals)
    found["share_merged_min"] = mean(row["n_elsewhere_min"] > 0 for row in seen)
    found["share_merged_max"] = mean(row["n_elsewhere_max"] > 0 for row in seen)
    found |= noise_floor(seen, intervals, false_positives)
    found["n_undecided"] = sum(row["merged"] is None for row in seen)
    found["n_elsewhere"] = sum(row["n_elsewhere"] or 0 for row in seen)
    found["n_narrow"] = sum(row["n_narrow"] for row in answered)
    found |= _category_shares(seen)
    found["n_dfactscore_higher"] = sum(row["gap"] is not None and row["gap"] < -1e-9 for row in answered)
    found["reason"] = reasons(_reasons(found, answered))
    return found


def _category_shares(rows: Sequence[Mapping[str, Any]]) -> Row:
    """Shares of the categories, and their bounds over all responses.

    Missing verdicts decide between one entity and several, not between one biography and several: the share of either
    is split as the decided responses of that kind are.
    """
    found: Row = {}
    kinds = (CATEGORIES[:2], CATEGORIES[2:])
    of_kind = [[row for row in rows if set(row["categories"]) <= set(kind)] for kind in kinds]
    n_known = sum(map(len, of_kind))
    for kind, members in zip(kinds, of_kind, strict=True):
        decided = [row for row in members if row["category"] is not None]
        for name in kind:
            share = 0.0 if n_known and not members else mean(row["category"] == name for row in decided)
            found[name] = None if share is None else share * len(members) / n_known
            found[f"{name}_min"] = mean(row["categories"] == (name,) for row in rows)
            found[f"{name}_max"] = mean(name in row["categories"] for row in rows)
    return found


def _reasons(found: Row, answered: Sequence[Mapping[str, Any]]) -> list[str]:
    if not answered:
        return ["no response with a fact"]
    n = len(answered)
    undefined = sum(row["init_dfactscore"] is None for row in answered)
    told = [
        (undefined, "have no D-FActScore (see dfactscore_min, _max)"),
        (found["n_without_candidates"], "have no candidate and are in no other figure"),
        (found["n_undecided"], "may or may not be merged, as the missing verdicts go (see share_merged_min, _max)"),
    ]
    return [f"{count} of {n} responses {what}" for count, what in told if count]


def _span(row: Row, name: str, share: float | None, ends: tuple[float, float] | None, factor: float) -> None:
    """The share and its bounds under two names: with the penalty, and ``init_`` without."""
    low, high = ends or (None, None)
    for key, value in (("", share), ("_min", low), ("_max", high)):
        row[f"init_{name}{key}"] = value
        row[f"{name}{key}"] = None if value is None else factor * value


def _shares(span: tuple[int, int], n: int, possible: bool) -> tuple[float, float] | None:
    if not n:
        return None
    return (span[0] / n, span[1] / n) if possible else (0.0, 1.0)


def _linked_shares(
    response: Response, span: tuple[int, int], n_loose: int, possible: bool
) -> tuple[float, float] | None:
    """Of the facts that have a group; those without one may be left out, supported or not."""
    n = int((response.groups >= 0).sum()) or int(response.own.sum())
    if not n or not possible:
        return (0.0, 1.0) if n else None
    loose = response.own & (response.groups < 0)
    matrix = response.matrix
    maybe = int(((matrix.prediction == 1) | matrix.unsure)[loose].any(axis=1).sum()) if n_loose else 0
    return span[0] / (n + n_loose), max(span[1] / n, (span[1] + maybe) / (n + n_loose))


def _gap_bounds(row: Row, elsewhere: tuple[int, int], n: int, n_loose: int, response: Response) -> Row:
    if not n or not response.matrix.entities:
        return {"gap_min": None, "gap_max": None}
    if n_loose or not response.own.all():  # the two scores are not of the same facts
        low = row["init_factscore_min"] - row["init_dfactscore_max"]
        return {"gap_min": low, "gap_max": row["init_factscore_max"] - row["init_dfactscore_min"]}
    return {"gap_min": elsewhere[0] / n, "gap_max": elsewhere[1] / n}


def _entities(response: Response, by_any: np.ndarray) -> tuple[int | None, tuple[int | None, int | None]]:
    """The number of distinct entities that supported facts are about, and its bounds."""
    own = response.own
    if not own.any() or not response.matrix.entities:
        return None, (None, None)
    if response.about is None:
        matrix = response.matrix.facts(own)
        return len(set(matrix.attributed().tolist()) - {-1}), count_entities(matrix)
    told = {
        one for one, mine, verdict in zip(response.about, own, by_any, strict=True) if mine and verdict == 1 and one
    }
    unscored = int((by_any[own] == MISSING).sum())
    return len(told), (len(told), len(told) + unscored)


def _merged(elsewhere: tuple[int, int]) -> bool | None:
    if elsewhere[0] > 0:
        return True
    return False if elsewhere[1] == 0 else None


def _categories(response: Response, entities: tuple[int | None, int | None]) -> tuple[str, ...]:
    """The categories that are possible, as the missing verdicts (or groups) go."""
    # Where groups are not known for sure, there may be more biographies than one.
    unsure = (not response.n_groups or response.mean_biographies is not None) and response.own.sum() > 1
    numbers = {response.n_groups or 1, 2} if unsure else {response.n_groups or 1}
    both = {category(number, end) for number in numbers for end in entities if end is not None}
    return tuple(name for name in CATEGORIES if name in both)


def _reason(row: Row, response: Response, anything: bool) -> str | None:
    if not row["n_facts"]:
        return "no fact"
    if not response.matrix.entities:
        return "no candidate"
    if not anything:
        return "no fact was put to a verifier"
    return None if response.n_groups else "the facts are in no groups"
