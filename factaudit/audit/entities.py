"""D-FActScore: is each fact true of the person whom its group tells of? (MF §3)

From claims with a row per fact and entity: ``fact_id`` (the same for all entities of a fact), ``entity`` (null: the
fact has no candidate) and ``group`` (the facts of one biography; null: in none). A row that is missing is a page that
was not asked. Optional columns, of each fact the same in all its rows:

* ``given_entity``: the title that its group is linked to, as somebody said (rule `given`);
* ``about``: the title that the fact is true of, where the source says so: # ent. is then counted by it;
* ``invented``: 1 where the fact is none of the response's own (a grouping's reply made it): FActScore leaves it out;
* ``mean_biographies``: the mean number of biographies of the source's responses, where it tells no more: groups are
  then the fewest that there can be;
* ``decoy`` (of a row, not a fact): 1 where the entity is somebody whom the response cannot be about. Such rows are no
  candidates: they measure how often the verifier errs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal

import numpy as np

from factaudit.audit.core.biographies import CATEGORIES, score, summarise
from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, Severity, shared
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.matrix import NARROW, RULES, Link, Response, columns_of, responses
from factaudit.audit.core.means import GAMMA, bootstrap_mean
from factaudit.audit.core.plot import DotPlot, Lines
from factaudit.audit.core.rows import ALL, Row
from factaudit.audit.core.words import percent

Rule = Literal["argmax", "hungarian", "given"]
#: From this difference on, FActScore alone is a wrong account of a system.
LARGE_GAP = 0.05
#: "FActScore − D-FActScore is at least": the steps of `gaps`.
STEPS = tuple(step / 20 for step in range(21))


def entities(
    judged: Judged,
    *,
    link: Rule = "argmax",
    group: str = "group",
    gamma: float = GAMMA,
    narrow: float = NARROW,
    false_positives: float | None = None,
    intervals: Intervals | None = None,
) -> list[Row]:
    """FActScore and D-FActScore: a row per dataset, evaluator and system; first ``__all__`` where there are several.

    link: how a group's entity is found (`factaudit.audit.core.matrix.link`). group: the column that has the groups.
    gamma: of the length penalty, which is of the number of facts; 0 turns it off. narrow: a link whose margin is at
    most this is counted in ``n_narrow``. false_positives: how often the verifier finds a false cell supported, where it
    is known from elsewhere. The figures: `factaudit.audit.core.biographies.summarise`.
    """
    rows = []
    for key, members in _systems(judged, group):
        told = [score(one, link, gamma=gamma, narrow=narrow)[0] for one in members]
        rows.append((key, told))
    return [key | {"link": link} | summarise(told, intervals, false_positives) for key, told in _together(rows)]


def linking(
    judged: Judged,
    *,
    group: str = "group",
    gamma: float = GAMMA,
    narrow: float = NARROW,
    intervals: Intervals | None = None,
) -> list[Row]:
    """The figures that depend on links, by every rule that the table has what it takes for; systems apart."""
    rows = []
    for key, members in _systems(judged, group):
        for rule in RULES:
            if rule == "given" and not _has_given(members):
                continue
            row = summarise([score(one, rule, gamma=gamma, narrow=narrow)[0] for one in members], intervals)
            rows.append({"grouper": group, "link": rule} | key | {name: row[name] for name in _with_ends(_LINKED)})
    return rows


def elsewhere(
    judged: Judged, *, link: Rule = "argmax", group: str = "group", intervals: Intervals | None = None
) -> list[Row]:
    """The facts that belong to somebody else, a row each, the most merged responses first: what to act on.

    ``linked``: the title that the fact's group is linked to. ``about``: whom the fact is true of.
    """
    found: list[tuple[int, str, list[Row]]] = []
    texts = judged.claims["claim"].to_numpy(dtype=object)
    for key, members in _systems(judged, group):
        for one in members:
            row, links = score(one, link)
            if row["n_elsewhere"]:
                names = {"system": key["system"], "name": one.key["topic"], "response_id": one.key["response_id"]}
                facts = [
                    {"dataset": key["dataset"], "evaluator": key["evaluator"], **names, **fact}
                    for fact in _elsewhere(one, links, texts)
                ]
                found.append((-row["n_elsewhere"], str(one.key["response_id"]), facts))
    return [fact for _, _, facts in sorted(found, key=lambda each: each[:2]) for fact in facts]


def gaps(
    judged: Judged, *, link: Rule = "argmax", group: str = "group", intervals: Intervals | None = None
) -> list[Row]:
    """How FActScore - D-FActScore (no penalty) is distributed over the responses of each system.

    Rows: at_least (0, 0.05, ... 1), n (responses that have both scores), share (of them, with a gap of at least so
    much) and its interval.
    """
    rows = []
    for key, members in _systems(judged, group):
        values = [score(one, link, gamma=0)[0]["gap"] for one in members]
        known = np.array([value for value in values if value is not None])
        for step in STEPS:
            reached = (known >= step - 1e-9).astype(np.float64)
            low, high = bootstrap_mean(reached, intervals)
            share = float(reached.mean()) if len(known) else None
            rows.append(key | {"at_least": step, "n": len(known), "share": share, "share_low": low, "share_high": high})
    return rows


# -------------------------------------------------------------------------------------------------------- its parts


def _applies(judged: Judged) -> bool:
    """Whether the claims have a row per fact and entity."""
    claims = judged.claims
    return bool((claims["fact_id"].notna() & claims["entity"].notna() & claims["response_id"].notna()).any())


def _systems(judged: Judged, group: str) -> Iterator[tuple[Row, list[Response]]]:
    """The responses of each dataset, evaluator and system, where facts have entities and the evaluator a verdict."""
    for at, evaluator in enumerate(judged.evaluators):
        every = responses(judged, at, group)
        named = {one.key["dataset"] for one in every if one.matrix.entities}
        scored = set(judged.claims["dataset"][judged.status[at] >= 0])
        for dataset in dict.fromkeys(one.key["dataset"] for one in every):
            if dataset not in named & scored:
                continue
            mine = [one for one in every if one.key["dataset"] == dataset]
            key: Row = {"dataset": dataset, "evaluator": evaluator}
            for system in dict.fromkeys(one.key["system"] for one in mine):
                yield key | {"system": system}, [one for one in mine if one.key["system"] == system]


def _together(parts: Sequence[tuple[Row, list[Row]]]) -> Iterator[tuple[Row, list[Row]]]:
    """What the systems of a dataset and evaluator have, before them all of it where there are several."""
    for _, same in groupby(parts, key=lambda part: (part[0]["dataset"], part[0]["evaluator"])):
        systems = list(same)
        if len(systems) > 1:
            yield systems[0][0] | {"system": ALL}, [row for _, rows in systems for row in rows]
        yield from systems


def _has_given(members: Sequence[Response]) -> bool:
    """Whether somebody said whom groups tell of, and never somebody who is no candidate."""
    named = [set(one.given.values()) <= set(one.matrix.entities) for one in members if one.given]
    return bool(named) and all(named)


def _elsewhere(response: Response, links: Sequence[Link], texts: np.ndarray) -> Iterator[Row]:
    columns = columns_of(links, response.groups)
    matrix = response.matrix
    by_any, linked, attributed = matrix.by_any(), matrix.by_entity(columns), matrix.attributed()
    for fact in np.flatnonzero((by_any == 1) & (linked == 0) & response.own & (response.groups >= 0)):
        told = response.about[fact] if response.about is not None else None
        yield {
            "linked": None if columns[fact] < 0 else matrix.entities[columns[fact]],
            "fact": texts[response.rows[fact]],
            "about": told if told is not None else matrix.entities[attributed[fact]],
        }


# ------------------------------------------------------------------------------------------------------ declaration


def _merged_facts(audited: Audited) -> Iterator[Finding]:
    """What FActScore hides of each system, beyond what the verifier's errors would make it seem to hide."""
    for row in audited.rows("dfactscore"):
        if row["system"] == ALL or row["gap"] is None or (row.get("gap_low") or 0) <= 0 or not row["n_elsewhere"]:
            continue
        name = row["system"] or "The system"
        keys = ("gap", "gap_low", "gap_high", "share_merged", "merged_floor", "merged_excess", "merged_excess_low")
        evidence = {"system": row["system"], **{key: row[key] for key in (*keys, "n_elsewhere", "n_facts")}}
        scores = (
            f"a FActScore of {percent(row['init_factscore'])} and a D-FActScore of {percent(row['init_dfactscore'])}"
        )
        merged = "–" if row["share_merged"] is None else percent(row["share_merged"])
        of_others = f"{merged} of its responses tell of one person what is true of another of the name"
        large = row["gap"] >= LARGE_GAP and row["gap_min"] > 0
        severity: Severity = "fail" if large else "warn"
        if row["merged_floor"] is None:
            said = f"{name} has {scores}: {of_others}, or so the verifier finds: how often it errs is not measured. "
            said, severity = f"{said}Judge cells that are known to be false (decoys) before you rely on it.", "warn"
        elif (row["merged_excess_low"] or 0) > 0:
            noise = f" ({percent(row['merged_floor'])} would seem to by the verifier's errors alone)"
            said = f"{name} has {scores}: {of_others}{noise}. Do not quote its FActScore alone."
        else:
            noise = f"its errors alone would make {percent(row['merged_floor'])} seem to"
            said = (
                f"{name} has {scores}. By the verifier, {of_others}, but {noise}: that it merges people is not shown."
            )
            severity = "ok"
        yield Finding(severity, row["evaluator"], row["dataset"], said, evidence)


_KEYS: dict[str, Column] = {
    **shared("dataset", "evaluator"),
    "system": Column(
        "system", "text", "the system that wrote the responses", key=True, values={"__all__": "all systems"}
    ),
}
_LINK: dict[str, Column] = {
    "grouper": Column("groups", "text", "the column of the claims that has the groups", key=True),
    "link": Column("links", "text", "how groups are linked to entities", key=True),
}
_SCORES = "means over the responses that answered; `init_`: without the length penalty"
_UNSCORED = "facts without FActScore's, and D-FActScore's verdict"
_ENTITIES = "groups, and distinct entities, of a response"
_MERGED = "responses in which some fact is true of somebody else of the name, and not of the person it is told of"
_FLOOR = "the share of responses that the verifier's errors alone would make look merged, and what exceeds it"
_FALSE = "how often it finds a false cell supported, the cells that this is measured on, and where they are from"
_COUNTS: dict[str, Column] = {
    "n_responses": Column("all responses", "count", "responses, and those of them that answered", shown=False),
    "n_answered": Column("responses", "count", "responses, and those of them that answered"),
    "respond_ratio": Column("respond ratio", "percent", "their share", shown=False),
    "n_facts": Column("facts", "count", "their facts, in all and of a response"),
    "facts_per_response": Column("facts per response", "number", "their facts, in all and of a response", shown=False),
    "n_unscored": Column("unscored", "count", _UNSCORED, shown="any"),
    "n_unscored_linked": Column("unscored, linked", "count", _UNSCORED, shown="any"),
    "n_ungrouped": Column(
        "in no group", "count", "facts in no group, where others of the response have one", shown="any"
    ),
    "n_without_candidates": Column("no candidate", "count", "responses that nobody could be about", shown="any"),
    "n_candidates": Column("candidates", "number", "mean number of candidates of a response", shown=False),
}
_FIGURES: dict[str, Column] = {
    "init_factscore": Column("FActScore", "percent", _SCORES, bounds=True, interval=True),
    "factscore": Column("FActScore, penalised", "percent", _SCORES, bounds=True, interval=True, shown=False),
    "init_dfactscore": Column("D-FActScore", "percent", _SCORES, bounds=True, interval=True),
    "dfactscore": Column("D-FActScore, penalised", "percent", _SCORES, bounds=True, interval=True, shown=False),
    "gap": Column("gap", "points", "FActScore − D-FActScore, without the penalty, paired", bounds=True, interval=True),
    "n_dfactscore_higher": Column(
        "D-FActScore higher",
        "count",
        "responses whose D-FActScore exceeds their FActScore, as it can where the two are not of the same facts",
        shown="any",
    ),
    "n_merged": Column("merged", "count", _MERGED, shown=False),
    "share_merged": Column("merged responses", "percent", _MERGED, bounds=True, interval=True),
    "merged_floor": Column("noise floor", "percent", _FLOOR, interval=True),
    "merged_excess": Column("merged beyond noise", "points", _FLOOR, interval=True),
    "false_positive_rate": Column("false positives", "percent", _FALSE, interval=True, shown=False),
    "n_false": Column("false cells", "count", _FALSE, shown=False),
    "false_positives_from": Column("measured on", "text", _FALSE, shown=False),
    "n_undecided": Column("undecided", "count", "responses that may be merged, as missing verdicts go", shown="any"),
    "n_elsewhere": Column("facts of others", "count", "facts that are true of somebody else"),
    "n_biographies": Column("# bio", "number", _ENTITIES, bounds=True, interval=True, digits=2),
    "n_entities": Column("# ent.", "number", _ENTITIES, bounds=True, interval=True, digits=2),
    "n_narrow": Column("narrow links", "count", "groups whose second-best entity supports nearly as much", shown=False),
    **{
        name: Column(name, "percent", "shares of the categories (MF §2.4)", bounds=True, shown=False)
        for name in CATEGORIES
    },
    **shared("reason"),
}
#: The figures that depend on links.
_LINKED = (
    *("n_answered", "init_dfactscore", "dfactscore", "gap", "share_merged", "n_undecided", "n_elsewhere"),
    *("n_biographies", "n_narrow", "reason"),
)


def _with_ends(names: Sequence[str]) -> Iterator[str]:
    """The keys of rows: each name with its bounds and its interval."""
    for name in names:
        column = (_COUNTS | _FIGURES)[name]
        yield name
        yield from (f"{name}{end}" for end in ("_low", "_high") if column.interval)
        yield from (f"{name}{end}" for end in ("_min", "_max") if column.bounds)


_OPTIONS = {
    "link": "`argmax` (the entity that supports most facts of the group, MF Eq. 1), `hungarian` (the same, but no "
    "entity twice) or `given` (column `given_entity`)",
    "group": "the column that has the groups",
    "gamma": "of the length penalty; 0 turns it off",
    "narrow": "a link whose margin is at most this is counted as narrow",
    "false_positives": "how often the verifier finds a false cell supported, where that is known from elsewhere",
}
_FORMULA = (
    "FActScore: facts that any candidate's page supports / facts; D-FActScore: facts that the page of the one entity "
    "supports to which their group is linked / facts. A fact without a verdict counts as not supported; the bounds are "
    "over all ways to fill in the missing verdicts."
)


def _options(*names: str) -> dict[str, str]:
    return {name: _OPTIONS[name] for name in names}


AUDITS = (
    Audit(
        name="dfactscore",
        place=1,
        title="FActScore and D-FActScore of the systems",
        question="Is each fact true of the person whom its paragraph tells of?",
        source="MF §3, Tables 3 and 4",
        text="FActScore lets any person of the name support a fact; D-FActScore only the one to whom the fact's group "
        "is linked. A system that merges people of one name keeps its FActScore and loses D-FActScore.",
        formula=_FORMULA,
        columns={**_KEYS, "link": _LINK["link"], **_COUNTS, **_FIGURES},
        options=_options("link", "group", "gamma", "narrow", "false_positives"),
        compute=entities,
        applies=_applies,
        plots=(
            DotPlot(
                what="FActScore and D-FActScore of systems, without the length penalty",
                keys=("init_factscore", "init_dfactscore"),
                groups=("system",),
            ),
        ),
        checks=(
            Check(
                "merged_facts",
                "People merged into one",
                f"FActScore exceeds D-FActScore clearly (fail: by {100 * LARGE_GAP:.0f} points), and more responses "
                "are merged than the verifier's errors make look so",
                _merged_facts,
            ),
        ),
    ),
    Audit(
        name="dfactscore_gap",
        place=2,
        title="How much FActScore leaves unseen, response by response",
        question="In how many responses does FActScore exceed D-FActScore by how much?",
        source="MF §4.3",
        formula="The share of responses whose FActScore exceeds their D-FActScore by at least so much (no penalty).",
        columns=_KEYS
        | {
            "at_least": Column("a gap of at least", "points", "the gap", key=True, signed=False),
            **shared("n"),
            "share": Column("share of responses", "percent", "responses with such a gap", interval=True),
        },
        options=_options("link", "group"),
        compute=gaps,
        applies=_applies,
        plots=(
            Lines(
                what="Responses by their gap",
                x="at_least",
                x_label="FActScore − D-FActScore is at least",
                keys=("share",),
                groups=("system",),
            ),
        ),
    ),
    Audit(
        name="dfactscore_linking",
        place=3,
        title="Other ways to link",
        question="What would D-FActScore be by another linking rule?",
        source="MF App. C.1",
        text="All read from the same verdicts.",
        formula="argmax: the entity that supports most of a group (MF Eq. 1); hungarian: the same, but no entity "
        "twice; given: as somebody said.",
        columns={**_KEYS, **_LINK, **{name: (_COUNTS | _FIGURES)[name] for name in _LINKED}},
        options=_options("group", "gamma", "narrow"),
        compute=linking,
        applies=_applies,
    ),
    Audit(
        name="dfactscore_elsewhere",
        place=4,
        title="Facts that belong to someone else",
        question="Which facts are true of somebody else of the name?",
        source="MF Fig. 1",
        text="What a reader of the merged paragraphs is misled about, the most merged responses first.",
        formula="Linked: the person whom most facts of the group are true of. About: whom the fact is true of.",
        columns=_KEYS
        | {
            "name": Column("name", "text", "the topic of the response", key=True),
            "response_id": Column("response", "text", "the response", key=True),
            "linked": Column("linked to", "text", "the person whom the fact is told of"),
            "fact": Column("fact", "text", "the fact"),
            "about": Column("true of", "text", "the person whom the fact is true of"),
        },
        options=_options("link", "group"),
        compute=elsewhere,
        applies=_applies,
    ),
)
