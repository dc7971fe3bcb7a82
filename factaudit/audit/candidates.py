"""How far D-FActScore depends on whom the facts were put to: on the way candidates are found, and on how many.

Of claims with a row per fact and entity, and two more columns: ``found_by`` (``titles``, ``passages`` that the facts
find, or ``both``) and ``candidate_rank`` (from 1, the likeliest first). Read from the same verdicts: nobody is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from factaudit.audit.core.biographies import score, summarise
from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, shared
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.matrix import NARROW, Response, responses
from factaudit.audit.core.means import GAMMA
from factaudit.audit.core.rows import Row
from factaudit.audit.core.words import percent
from factaudit.audit.entities import Rule

#: The ways, each with the values of ``found_by`` that it would have found.
WAYS = {"both": {"titles", "passages", "both"}, "titles": {"titles", "both"}, "passages": {"passages", "both"}}
#: "Only the first so many candidates."
CAPS = (1, 2, 3, 5)
#: A D-FActScore that moves so much with the way candidates are found says as much of the search as of the system.
LARGE = 0.05
_FIGURES = ("n_candidates", "n_without_candidates", "init_factscore", "init_dfactscore", "share_merged")
_COLUMNS = ("found_by", "candidate_rank")


def candidates(
    judged: Judged,
    *,
    link: Rule = "argmax",
    group: str = "group",
    gamma: float = GAMMA,
    narrow: float = NARROW,
    intervals: Intervals | None = None,
) -> list[Row]:
    """The scores by the candidates that titles, passages, or both find, and by the first few of both: a row each.

    Over the responses whose candidates were found. ``cap``: only so many, the likeliest; null: all. One whom no such
    candidate is left for has no score (``n_without_candidates``), and its bounds are 0 and 1.
    """
    found = _found(judged)
    rows = []
    for at, evaluator in enumerate(judged.evaluators):
        mine = [one for one in responses(judged, at, group) if _key(one) in found]
        for dataset, system in dict.fromkeys((one.key["dataset"], one.key["system"]) for one in mine):
            members = [one for one in mine if (one.key["dataset"], one.key["system"]) == (dataset, system)]
            for way, cap in [*((way, None) for way in WAYS), *(("both", cap) for cap in CAPS)]:
                kept = [_only(one, found[_key(one)], WAYS[way], cap) for one in members]
                told = summarise([score(one, link, gamma=gamma, narrow=narrow)[0] for one in kept], intervals)
                figures = {key: value for key, value in told.items() if key.startswith(_FIGURES)}
                rows.append(
                    {"dataset": dataset, "evaluator": evaluator, "system": system, "candidates": way, "cap": cap}
                    | {"n_responses": told["n_responses"], **figures, "reason": told["reason"]}
                )
    return rows


def _key(response: Response) -> tuple[str, str]:
    return response.key["dataset"], response.key["response_id"]


def _found(judged: Judged) -> dict[tuple[str, str], dict[str, tuple[str, int]]]:
    """(dataset, response) -> entity -> how and at which place it was found."""
    table = judged.claims
    if not set(_COLUMNS) <= set(table.columns):
        return {}
    table = table[table["found_by"].isin(WAYS) & table["entity"].notna() & table["response_id"].notna()]
    found: dict[tuple[str, str], dict[str, tuple[str, int]]] = {}
    columns = (table[name] for name in ("dataset", "response_id", "entity", *_COLUMNS))
    for dataset, response, entity, way, rank in zip(*columns, strict=True):
        found.setdefault((dataset, response), {})[entity] = way, int(rank)
    return found


def _only(response: Response, found: dict[str, tuple[str, int]], ways: set[str], cap: int | None) -> Response:
    """The response as if only these candidates had been found; those that it brought itself stay."""
    matrix = response.matrix
    ranked = sorted(found[one][1] for one in matrix.entities if one in found and found[one][0] in ways)[:cap]
    kept = [
        number
        for number, one in enumerate(matrix.entities)
        if one not in found or (found[one][0] in ways and found[one][1] in ranked)
    ]
    cells = {name: getattr(matrix, name)[:, kept] for name in ("prediction", "score", "unsure")}
    entities = tuple(np.array(matrix.entities, dtype=object)[kept])
    given = {number: title for number, title in response.given.items() if title in entities}
    return replace(response, matrix=replace(matrix, entities=entities, **cells), given=given)


def _applies(judged: Judged) -> bool:
    return set(_COLUMNS) <= set(judged.claims.columns) and bool(judged.claims["found_by"].isin(WAYS).any())


def _sensitive(audited: Audited) -> Iterator[Finding]:
    """Systems whose score moves with the way candidates are found."""
    rows = [row for row in audited.rows("dfactscore_candidates") if row["cap"] is None]
    for system, evaluator in dict.fromkeys((row["system"], row["evaluator"]) for row in rows):
        mine = {row["candidates"]: row for row in rows if (row["system"], row["evaluator"]) == (system, evaluator)}
        scores = {way: row["init_dfactscore"] for way, row in mine.items() if row["init_dfactscore"] is not None}
        if len(scores) > 1 and max(scores.values()) - min(scores.values()) >= LARGE:
            told = ", ".join(f"{percent(value)} by {way}" for way, value in scores.items())
            yield Finding(
                "warn",
                evaluator,
                mine["both"]["dataset"],
                f"{system or 'The system'}'s D-FActScore depends on how candidates are found: {told}. Say how you "
                "found them where you quote it.",
                {"system": system, **{f"init_dfactscore_{way}": value for way, value in scores.items()}},
            )


_WHO = "how candidates were found, and the first how many of them were kept"
AUDIT = Audit(
    name="dfactscore_candidates",
    place=5,
    title="How far the scores depend on the candidates",
    question="What would D-FActScore be with other candidates, or with fewer?",
    source="MF §4.1 takes the people whom Wikipedia's disambiguation pages list",
    text="Read from the same verdicts, of the responses whose candidates were found. Each candidate costs a call a "
    "fact; more of them find more people, and let more facts be supported by chance.",
    formula="As D-FActScore, with the columns of the other candidates left out.",
    columns={
        **shared("dataset", "evaluator"),
        "system": Column("system", "text", "names as in the claims", key=True),
        "candidates": Column("candidates by", "text", _WHO, key=True),
        "cap": Column("at most", "count", _WHO, key=True),
        "n_responses": Column("responses", "count", "responses whose candidates were found"),
        "n_candidates": Column("candidates", "number", "candidates a response, on average", digits=1),
        "n_without_candidates": Column("without", "count", "responses left without a candidate", shown="any"),
        "init_factscore": Column("FActScore", "percent", "the scores, without penalty", bounds=True, interval=True),
        "init_dfactscore": Column("D-FActScore", "percent", "the scores, without penalty", bounds=True, interval=True),
        "share_merged": Column("merged", "percent", "merged responses", bounds=True, interval=True),
        **shared("reason"),
    },
    options={
        "link": "how a group's entity is found: `argmax`, `hungarian`, `given`",
        "group": "the column that has the groups",
        "gamma": "of the length penalty",
        "narrow": "a link whose margin is at most this is narrow",
    },
    compute=candidates,
    applies=_applies,
    checks=(
        Check(
            "candidate_sensitivity",
            "Scores that depend on the candidates",
            f"D-FActScore moves by {100 * LARGE:.0f} points or more with the way candidates are found",
            _sensitive,
        ),
    ),
)
