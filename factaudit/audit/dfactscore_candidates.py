"""How far D-FActScore depends on its candidates: on the way they are found, and on their number.

Of claims with a row per fact and entity, and two more columns: ``found_by`` (``titles``, ``passages`` that the facts
find, or ``both``) and ``candidate_rank`` (from 1, the likeliest first). All is read from the same verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from factaudit.arrays.biography_scores import score_biography, summarise_biography_scores
from factaudit.arrays.entity_linking import NARROW_MARGIN
from factaudit.arrays.grouped_responses import GroupedResponse, collect_grouped_responses
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_means import DEFAULT_GAMMA
from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Check, Column, Finding, pick_shared_columns
from factaudit.audit.core.interval_methods import RESPONSE_MEAN, RESPONSE_WILSON
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.statements import join_statements, make_statement
from factaudit.audit.dfactscore import DFACTSCORE_BOUNDS, LinkRule
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

#: The ways, each with the values of ``found_by`` that it would have found.
CANDIDATE_SOURCES = {
    "both": {"titles", "passages", "both"},
    "titles": {"titles", "both"},
    "passages": {"passages", "both"},
}
#: "Only the first so many candidates."
CANDIDATE_LIMITS = (1, 2, 3, 5)
#: A D-FActScore that moves so much with the way candidates are found says as much of the search as of the system.
LARGE_SCORE_SHIFT = 0.05
_FIGURE_PREFIXES = ("n_candidates", "n_without_candidates", "init_factscore", "init_dfactscore", "share_merged")
_CANDIDATE_COLUMNS = ("found_by", "candidate_rank")


def compute_dfactscore_by_candidates(
    judgements: Judgements,
    *,
    link: LinkRule = "argmax",
    group: str = "group",
    gamma: float = DEFAULT_GAMMA,
    narrow: float = NARROW_MARGIN,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """The scores by the candidates that titles, passages, or both find, and by the first few of both: a row each.

    Over the responses whose candidates were found. ``cap``: only so many, the likeliest; null: all. A response that
    no such candidate is left for has no score (``n_without_candidates``), and its bounds are 0 and 1.
    """
    found = _index_how_candidate_entities_were_found(judgements)
    rows = []
    for at, evaluator in enumerate(judgements.evaluators):
        mine = [one for one in collect_grouped_responses(judgements, at, group) if _response_key(one) in found]
        for dataset, system in dict.fromkeys((one.key["dataset"], one.key["system"]) for one in mine):
            members = [one for one in mine if (one.key["dataset"], one.key["system"]) == (dataset, system)]
            for way, cap in [*((way, None) for way in CANDIDATE_SOURCES), *(("both", cap) for cap in CANDIDATE_LIMITS)]:
                kept = [
                    _restrict_audited_dfactscore_candidates(one, found[_response_key(one)], CANDIDATE_SOURCES[way], cap)
                    for one in members
                ]
                told = summarise_biography_scores(
                    [score_biography(one, link, gamma=gamma, narrow_margin=narrow)[0] for one in kept], intervals
                )
                figures = {key: value for key, value in told.items() if key.startswith(_FIGURE_PREFIXES)}
                rows.append(
                    {"dataset": dataset, "evaluator": evaluator, "system": system, "candidates": way, "cap": cap}
                    | {"n_responses": told["n_responses"], **figures, "reason": told["reason"]}
                )
    return rows


def _response_key(response: GroupedResponse) -> tuple[str, str]:
    return response.key["dataset"], response.key["response_id"]


def _index_how_candidate_entities_were_found(
    judgements: Judgements,
) -> dict[tuple[str, str], dict[str, tuple[str, int]]]:
    """(dataset, response) -> entity -> how and at which place it was found."""
    table = judgements.claims
    if not set(_CANDIDATE_COLUMNS) <= set(table.columns):
        return {}
    table = table[table["found_by"].isin(CANDIDATE_SOURCES) & table["entity"].notna() & table["response_id"].notna()]
    found: dict[tuple[str, str], dict[str, tuple[str, int]]] = {}
    columns = (table[name] for name in ("dataset", "response_id", "entity", *_CANDIDATE_COLUMNS))
    for dataset, response, entity, way, rank in zip(*columns, strict=True):
        found.setdefault((dataset, response), {})[entity] = way, int(rank)
    return found


def _restrict_audited_dfactscore_candidates(
    response: GroupedResponse,
    candidate_origins: dict[str, tuple[str, int]],
    accepted_origins: set[str],
    max_candidates: int | None,
) -> GroupedResponse:
    """The response as if only these candidates had been found; those that it brought itself stay."""
    matrix = response.matrix
    ranked = sorted(
        candidate_origins[one][1]
        for one in matrix.entities
        if one in candidate_origins and candidate_origins[one][0] in accepted_origins
    )[:max_candidates]
    kept = [
        number
        for number, one in enumerate(matrix.entities)
        if one not in candidate_origins
        or (candidate_origins[one][0] in accepted_origins and candidate_origins[one][1] in ranked)
    ]
    cells = {name: getattr(matrix, name)[:, kept] for name in ("prediction", "score", "unsure")}
    entities = tuple(np.array(matrix.entities, dtype=object)[kept])
    given = {number: title for number, title in response.given_entities.items() if title in entities}
    return replace(response, matrix=replace(matrix, entities=entities, **cells), given_entities=given)


def _has_candidate_origins(judgements: Judgements) -> bool:
    return set(_CANDIDATE_COLUMNS) <= set(judgements.claims.columns) and bool(
        judgements.claims["found_by"].isin(CANDIDATE_SOURCES).any()
    )


def _find_candidate_sensitive_dfactscores(audited_run: AuditedRun) -> Iterator[Finding]:
    """Systems whose score moves with the way candidates are found."""
    rows = [row for row in audited_run.rows("dfactscore_candidates") if row["cap"] is None]
    for system, evaluator in dict.fromkeys((row["system"], row["evaluator"]) for row in rows):
        mine = {row["candidates"]: row for row in rows if (row["system"], row["evaluator"]) == (system, evaluator)}
        scores = {way: row["init_dfactscore"] for way, row in mine.items() if row["init_dfactscore"] is not None}
        if len(scores) > 1 and max(scores.values()) - min(scores.values()) >= LARGE_SCORE_SHIFT:
            text = "{row.init_dfactscore:percent} by {row.candidates}"
            told = join_statements([make_statement(text, row=mine[way]) for way in scores], ", ")
            yield Finding(
                "warn",
                evaluator,
                mine["both"]["dataset"],
                make_statement(
                    "{name}'s D-FActScore depends on how candidates are found: {told}. Say how you found them where "
                    "you quote it.",
                    name=system or "The system",
                    told=told,
                ),
                {"system": system, **{f"init_dfactscore_{way}": value for way, value in scores.items()}},
            )


_CANDIDATES_DESCRIPTION = "how candidates were found, and the first how many of them were kept"
AUDIT = Audit(
    name="dfactscore_candidates",
    after="dfactscore_elsewhere",
    title="How far the scores depend on the candidates",
    question="What would D-FActScore be with other candidates, or with fewer?",
    source="MF §2.1, §4.2, App. C.1",
    text="Read from the same verdicts, of the responses whose candidates were found. Each candidate costs a call a "
    "fact; more of them find more people, and let more facts be supported by chance. The paper's annotators had the "
    "pages of a disambiguation page; its pipeline takes the pages of the top five passages.",
    formula="As D-FActScore, with the columns of the other candidates left out.",
    remedy="A score that moves with the candidates: fix how they are found, and report it with the score.",
    columns={
        **pick_shared_columns("dataset", "evaluator"),
        "system": Column("system", "text", "names as in the claims", key=True),
        "candidates": Column("candidates by", "text", _CANDIDATES_DESCRIPTION, key=True),
        "cap": Column("at most", "count", _CANDIDATES_DESCRIPTION, key=True),
        "n_responses": Column("responses", "count", "responses whose candidates were found"),
        "n_candidates": Column("candidates", "number", "candidates a response, on average", digits=1),
        "n_without_candidates": Column("without", "count", "responses left without a candidate", shown="any"),
        "init_factscore": Column(
            "FActScore", "percent", "the scores, without penalty", bounds=DFACTSCORE_BOUNDS, interval=RESPONSE_MEAN
        ),
        "init_dfactscore": Column(
            "D-FActScore", "percent", "the scores, without penalty", bounds=DFACTSCORE_BOUNDS, interval=RESPONSE_MEAN
        ),
        "share_merged": Column(
            "merged", "percent", "merged responses", bounds=DFACTSCORE_BOUNDS, interval=RESPONSE_WILSON
        ),
        **pick_shared_columns("reason"),
    },
    options={
        "link": "how a group's entity is found: `argmax`, `hungarian`, `given`",
        "group": "the column that has the groups",
        "gamma": "of the length penalty",
        "narrow": "a link whose margin is at most this is narrow",
    },
    compute=compute_dfactscore_by_candidates,
    applies=_has_candidate_origins,
    checks=(
        Check(
            "candidate_sensitivity",
            "Scores that depend on the candidates",
            f"D-FActScore moves by {100 * LARGE_SCORE_SHIFT:.0f} points or more with the way candidates are found",
            _find_candidate_sensitive_dfactscores,
        ),
    ),
)
