"""FActScore and D-FActScore from one matrix, and what tells a merged response (MF §2.4, §3, Table 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from factaudit.engines.dfactscore.link import NARROW, Link, entity_of_facts
from factaudit.engines.dfactscore.matrix import Matrix
from factaudit.engines.factscore.score import GAMMA, bootstrap_mean, response_score

Row = dict[str, Any]

#: MF §2.4's categories; the last is for what they leave open: several biographies, all of one entity.
CATEGORIES = ("one bio, one entity", "one bio, N entities", "N bios, N entities", "N bios, one entity")
#: The figures of a response that are averaged, each with ``_min`` and ``_max``.
SCORES = ("factscore", "dfactscore", "init_factscore", "init_dfactscore")

_MAXIMA = {"dfactscore": "score_max", "init_dfactscore": "init_score_max"}


def category(n_biographies: int, n_entities: int) -> str:
    """The category of a response (MF §2.4, Table 2), where no supported fact at all counts as one entity.

    >>> category(1, 2)
    'one bio, N entities'
    """
    if n_biographies <= 1:
        return CATEGORIES[0] if n_entities <= 1 else CATEGORIES[1]
    return CATEGORIES[2] if n_entities > 1 else CATEGORIES[3]


def score(
    matrix: Matrix,
    groups: Sequence[int] | None,
    links: Sequence[Link],
    *,
    best: Sequence[Link] | None = None,
    gamma: float = GAMMA,
    narrow: float = NARROW,
) -> Row:
    """The figures of one response, as a flat row.

    ``factscore`` lets any candidate support a fact, ``dfactscore`` only the entity that the fact's group is linked to;
    both are multiplied by the length penalty on the number of *facts* (γ = ``gamma``, 0: none), ``init_factscore`` and
    ``init_dfactscore`` are not. (MF's published code penalises by the number of groups, so that only its unpenalised
    D-FActScore can be compared.) ``_min``, ``_max``: the least and the greatest value, whatever the missing verdicts
    had been; links follow verdicts, so that the greatest D-FActScore may be that of other links. ``gap`` =
    init_factscore - init_dfactscore. ``n_elsewhere``: facts that another candidate supports and the linked one doesn't;
    a response with any is ``merged``. ``margin``: the least over the groups.

    groups: None where the facts could not be grouped: D-FActScore is then undefined.
    best: the links of `Matrix.at_best`; by default, those of ``links``.
    """
    any_verdicts = matrix.by_any()
    row: Row = _named(response_score(_optional(any_verdicts), gamma), "factscore")
    n_entities = len(set(matrix.attributed()) - {-1})
    if groups is None:
        linked = np.full(len(matrix.facts), -1, dtype=np.int8)
        n_biographies = None
    else:
        linked = matrix.by_entity(entity_of_facts(links, groups))
        n_biographies = len(links)
    row |= _named(response_score(_optional(linked), gamma), "dfactscore", "_linked")
    if groups is not None and best is not None:
        most = _optional(matrix.at_best().by_entity(entity_of_facts(best, groups)))
        row |= {f"{name}_max": response_score(most, gamma)[figure] for name, figure in _MAXIMA.items()}
    del row["n_facts_linked"]
    margins = [one.margin for one in links if one.margin is not None]
    elsewhere = int(((any_verdicts == 1) & (linked == 0)).sum())
    known = n_biographies is not None and row["n_facts"] > 0
    both = row["init_factscore"] is not None and row["init_dfactscore"] is not None
    return row | {
        "gap": row["init_factscore"] - row["init_dfactscore"] if both else None,
        "n_biographies": n_biographies,
        "n_entities": n_entities,
        "n_candidates": len(matrix.entities),
        "category": category(n_biographies or 0, n_entities) if known else None,
        "n_elsewhere": elsewhere if known else None,
        "merged": elsewhere > 0 if known else None,
        "margin": min(margins) if margins else None,
        "n_narrow": sum(one.is_narrow(narrow) for one in links),
    }


def summarise(
    rows: Sequence[Mapping[str, Any]], *, replicates: int = 2000, seed: int = 0, confidence: float = 0.95
) -> Row:
    """D-FActScore over responses: unweighted means over those that answered, as a flat row.

    A response that abstained, or in which no fact was found, counts in ``respond_ratio`` only; one whose facts could
    not be had because calls failed (``n_failed_sentences``) did answer. Each mean is over the
    responses that have the figure; ``_min`` and ``_max`` are over all that answered, an undefined one being 0 or 1.
    ``gap`` and its interval are paired: over the responses that have both scores. Intervals (``_low``, ``_high``) are
    percentiles of a bootstrap over responses. ``share_merged`` and the shares of categories are of the responses that
    have a category.
    """
    answered = [row for row in rows if not row.get("abstained") and (row["n_facts"] or row.get("n_failed_sentences"))]
    found: Row = {
        "n_responses": len(rows),
        "n_answered": len(answered),
        "respond_ratio": len(answered) / len(rows) if rows else None,
        "n_facts": sum(row["n_facts"] for row in answered),
        "n_unscored": sum(row["n_unscored"] for row in answered),
        "n_unscored_linked": sum(row["n_unscored_linked"] for row in answered),
        "facts_per_response": _mean([row["n_facts"] for row in answered]),
    }
    for key in (*SCORES, "gap"):
        values = np.array([row[key] for row in answered if row[key] is not None], dtype=np.float64)
        found[key] = _mean(values)
        found[f"{key}_low"], found[f"{key}_high"] = bootstrap_mean(values, replicates, seed, confidence)
    for key in SCORES:
        for end, missing in (("min", 0.0), ("max", 1.0)):
            ends = (row[f"{key}_{end}"] for row in answered)
            found[f"{key}_{end}"] = _mean([missing if value is None else value for value in ends])
    for key in ("n_biographies", "n_entities", "n_candidates"):
        found[key] = _mean([row[key] for row in answered if row[key] is not None])
    told = [row for row in answered if row["category"] is not None]
    found["n_merged"] = sum(row["merged"] for row in told)
    found["share_merged"] = _mean([row["merged"] for row in told])
    found["n_elsewhere"] = sum(row["n_elsewhere"] for row in told)
    found["n_narrow"] = sum(row["n_narrow"] for row in answered)
    for name in CATEGORIES:
        found[name] = _mean([row["category"] == name for row in told])
    undefined = sum(row["dfactscore"] is None for row in answered)
    found["reason"] = None if answered else "no response with a fact"
    if undefined:
        found["reason"] = f"{undefined} of {len(answered)} responses have no D-FActScore (see dfactscore_min, _max)"
    return found


def _named(row: Row, name: str, counts: str = "") -> Row:
    """`response_score`'s row under the names of this module."""
    found: Row = {}
    for key, value in row.items():
        if key.startswith("n_") or key == "reason":
            found[f"{key}{counts}"] = value
        else:
            found[key.replace("score", name)] = value
    return found


def _optional(verdicts: np.ndarray) -> list[int | None]:
    return [None if verdict < 0 else int(verdict) for verdict in verdicts.tolist()]


def _mean(values: Any) -> float | None:
    return float(np.mean(values)) if len(values) else None
