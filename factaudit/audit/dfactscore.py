"""Is each fact true of the person whom its group is about? D-FActScore (MF §4.1).

The claims have a row for each fact and person (`factaudit.arrays.biographies`). The audits give the
scores of the systems by each linking rule (MF App. C.1), the difference between FActScore and
D-FActScore for each response (MF §4.3), and the facts that are true of somebody else than the
person whom the text describes (MF Fig. 1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from factaudit.arrays.biographies import (
    LINKING_RULES,
    SupportMatrix,
    collect_biographies,
    has_fact_entities,
)
from factaudit.arrays.biography_scores import (
    NOISE_FIGURES,
    SCORES,
    estimate_merged_beyond_noise,
    score_biography,
    summarise_biography_scores,
)
from factaudit.arrays.judgements import ALL_TOGETHER, Judgements
from factaudit.arrays.response_means import (
    DEFAULT_GAMMA,
    TOO_FEW_RESPONSES,
    average_responses,
    number_clusters,
    share_interval,
    split_by_system,
)
from factaudit.audit.core.audit_declaration import (
    MOVER,
    RESPONSE_CHANGE,
    RESPONSE_COUNT,
    RESPONSE_MEAN,
    RESPONSE_WILSON,
    Audit,
    Column,
    PlotSpec,
    pick_shared_columns,
    share_column,
)
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check, Count
from factaudit.audit.core.result_rows import Row, explain_row
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.text.display_text import join_reasons

LinkRule = Literal["argmax", "hungarian", "given"]
#: From this difference on, FActScore alone misrepresents a system.
LARGE_GAP = 0.05
#: The thresholds of `compute_dfactscore_gaps`: "FActScore − D-FActScore is at least".
GAP_STEPS = tuple(step / 20 for step in range(1, 21))
#: The figures that depend on links.
_LINKED_FIGURES = (
    *("n_answered", "init_dfactscore", "dfactscore", "gap", "share_merged", "n_undecided"),
    *("n_elsewhere", "n_biographies", "reason"),
)


def compute_dfactscore_audit(
    judgements: Judgements,
    *,
    link: LinkRule = "argmax",
    gamma: float = DEFAULT_GAMMA,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """FActScore and D-FActScore: a row per dataset, evaluator and system; ``__all__`` comes first
    if there are several systems.

    link: how the person of a group is found (`factaudit.arrays.biographies.LINKING_RULES`). gamma:
    of the length penalty on the number of facts; 0 turns it off. The figures are those of
    `factaudit.arrays.biography_scores.summarise_biography_scores`.
    """
    rows = []
    for key, responses in _split_responses(judgements):
        scored = [score_biography(one, link, gamma=gamma) for one in responses]
        noise = estimate_merged_beyond_noise(scored, intervals)
        row = key | {"link": link} | _summarise(scored, intervals) | noise
        if not noise["n_false"]:
            unknown = f"no fact is known to be false: {', '.join(NOISE_FIGURES)}"
            row["reason"] = join_reasons([row["reason"] or "", unknown])
        rows.append(row)
    return rows


def compute_dfactscore_audit_by_link_rule(
    judgements: Judgements,
    *,
    gamma: float = DEFAULT_GAMMA,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """The figures that depend on links, by every rule for which the table has what it needs."""
    rows = []
    for key, responses in _split_responses(judgements):
        # The rule `given` needs claims that name the person of each group, and this person must be
        # a candidate.
        named = [set(one.given.values()) <= set(one.people) for one in responses if one.given]
        for rule in LINKING_RULES if named and all(named) else LINKING_RULES[:2]:
            figures = _summarise(
                [score_biography(one, rule, gamma=gamma) for one in responses], intervals
            )
            names = {name: re.sub("_(low|high|min|max)$", "", name) for name in figures}
            shown = {
                name: value for name, value in figures.items() if names[name] in _LINKED_FIGURES
            }
            rows.append({"grouper": "group", "link": rule} | key | shown)
    return rows


def _summarise(scored: Sequence[Row], intervals: ClusterBootstrap | None) -> Row:
    """The means over responses, with a reason for each figure that is null."""
    row = summarise_biography_scores(scored, intervals)
    counts = {
        "no D-FActScore": row.pop("n_without_dfactscore"),
        "no candidate, and are in no other figure": row["n_without_candidates"],
        "no answer to whether they are merged, because of missing verdicts": row["n_undecided"],
    }
    n = row["n_answered"]
    reasons = [
        f"{count:,} of {n:,} responses have {what}" for what, count in counts.items() if count
    ]
    averaged = [*SCORES, "gap", "n_entities"]
    return explain_row(
        row, averaged, reasons if n else ["no response with a fact"], TOO_FEW_RESPONSES
    )


def compute_dfactscore_gaps(
    judgements: Judgements,
    *,
    link: LinkRule = "argmax",
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """The share of responses in which FActScore − D-FActScore (without penalty) is at least 0.05,
    0.1, ... 1.

    n: the responses that have both scores.
    """
    rows = []
    for key, responses in _split_responses(judgements):
        scored = [score_biography(one, link, gamma=0) for one in responses]
        known = [row for row in scored if row["gap"] is not None]
        gaps = np.array([row["gap"] for row in known])
        cluster = number_clusters(row["topic"] for row in known)
        for step in GAP_STEPS:
            is_large = gaps >= step - 1e-9
            share = average_responses("share", is_large, intervals, share_interval, cluster=cluster)
            rows.append(key | {"at_least": step, "n": len(known)} | share)
    return rows


def list_facts_of_other_people(
    judgements: Judgements,
    *,
    link: LinkRule = "argmax",
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """The facts that belong to somebody else, a row each, from the most merged responses on. These
    are the facts to correct.

    ``linked``: the title that the fact's group is linked to. ``about``: the person of whom the fact
    is true.
    """
    by_response: list[list[Row]] = []
    for key, responses in _split_responses(judgements):
        for one in responses if key["system"] != ALL_TOGETHER else ():
            names = {"name": one.key["topic"], "response_id": one.key["response_id"]}
            by_response.append(
                [key | names | fact for fact in _list_facts_of_other_people(one, link)]
            )
    by_response.sort(key=lambda facts: (-len(facts), *(fact["response_id"] for fact in facts[:1])))
    return [fact for facts in by_response for fact in facts]


def _list_facts_of_other_people(response: SupportMatrix, link: LinkRule) -> Iterator[Row]:
    person, about = response.person_of_facts(link), response.attribute_facts()
    elsewhere = (response.supported_by_any() == 1) & (response.supported_by(person) == 0)
    for fact in np.flatnonzero(elsewhere & response.own & (response.group >= 0)).tolist():
        titles = [*response.people, None]  # -1: nobody
        linked, owner = titles[person[fact]], titles[about[fact]]
        yield {"linked": linked, "fact": response.texts[fact], "about": owner}


def _split_responses(judgements: Judgements) -> Iterator[tuple[Row, list[SupportMatrix]]]:
    """The responses of each system by evaluator and data set; ``__all__`` comes first if there are
    several systems.

    Only data sets whose facts have people, and for which the evaluator has verdicts, are listed.
    """
    for at, evaluator in enumerate(judgements.evaluators):
        responses = collect_biographies(judgements, at)
        scored = set(judgements.claims["dataset"][judgements.status[at] >= 0])
        scored &= {one.key["dataset"] for one in responses if one.people}
        keys = pd.DataFrame([one.key for one in responses], columns=["dataset", "system"])
        for key, inside in split_by_system(keys):
            if key["dataset"] in scored:
                own = [responses[place] for place in np.flatnonzero(inside)]
                yield (
                    {"dataset": key["dataset"], "evaluator": evaluator, "system": key["system"]},
                    own,
                )


# ---- declaration


def _list_gaps(run: AuditedRun) -> Iterator[Row]:
    """The systems with facts of others in their groups, and how serious that is."""
    for row in run.rows("dfactscore"):
        if row["system"] != ALL_TOGETHER and row["n_elsewhere"] and (row["gap"] or 0) > 0:
            is_large = row["gap"] >= LARGE_GAP and row["gap_min"] > 0
            yield row | {
                "name": row["system"] or "The system",
                "severity": "fail" if is_large else "warn",
            }


def _list_unmeasured_gaps(run: AuditedRun) -> Iterator[Row]:
    """The systems that look merged although it is not known how often the verifier is wrong."""
    for row in _list_gaps(run):
        if row["merged_floor"] is None and (row.get("gap_low") or 0) > 0:
            yield row | {"severity": "warn"}


CHECKS = (
    Check(
        id="merged_facts",
        title="People merged into one",
        rows=_list_gaps,
        figure="merged_excess",
        by=("dataset", "evaluator", "system"),
        says=(
            "{name} has a FActScore of {init_factscore:percent} and a D-FActScore of"
            " {init_dfactscore:percent}. {share_merged:percent} of its responses say about one"
            " person what is true of another person with the same name, {verdict}."
        ),
        beyond=(
            "more than the {merged_floor:percent} that would seem to only because the verifier"
            " makes mistakes"
        ),
        advice="Do not quote its FActScore alone.",
        null="no more responses of a system look merged than the verifier's errors make look so",
    ),
    Count(
        id="merged_facts_unmeasured",
        title="People merged into one, by a verifier whose errors are not known",
        rows=_list_unmeasured_gaps,
        figure="gap",
        by=("dataset", "evaluator", "system"),
        says=(
            "{name} has a FActScore of {init_factscore:percent} and a D-FActScore of"
            " {init_dfactscore:percent}, but it is not known how often the verifier is wrong."
        ),
        advice="Let it judge facts that are known to be false (decoys) before you rely on this.",
    ),
)


_KEY_COLUMNS: dict[str, Column] = pick_shared_columns("dataset", "evaluator", "system") | {
    "evaluator": Column(
        "verifier", "text", "the evaluator whose verdicts FActScore and D-FActScore use", key=True
    )
}
_LINK_COLUMNS: dict[str, Column] = {
    "grouper": Column("groups", "text", "the column with the groups of facts", key=True),
    "link": Column("links", "text", "how groups are linked to entities", key=True),
}
_SCORES_DESCRIPTION = (
    "means over the responses that answered; `init_` means without the length penalty"
)
_UNSCORED_DESCRIPTION = "facts without a verdict for FActScore, and for D-FActScore"
_ENTITIES_DESCRIPTION = "mean number of groups, and of distinct persons, per response"
_MERGED_DESCRIPTION = (
    "responses in which at least one fact is true of another person of the same name and not of the"
    " person it is told of; no share if missing verdicts leave more than a tenth of the responses"
    " open"
)
_FLOOR_DESCRIPTION = (
    "the share of responses that look merged through the verifier's errors alone, and the share"
    " beyond it"
)
_FALSE_CELLS_DESCRIPTION = (
    "false positive rate of the verifier, and the number of false cells behind it"
)
_COUNT_COLUMNS: dict[str, Column] = {
    "n_responses": Column(
        "all responses", "count", "responses, and how many of them answered", shown=False
    ),
    "n_answered": Column("responses", "count", "responses, and how many of them answered"),
    "respond_ratio": Column(
        "respond ratio", "percent", "share of responses that answered", shown=False
    ),
    "n_facts": Column("facts", "count", "number of facts, in all and per response"),
    "facts_per_response": Column(
        "facts per response", "number", "number of facts, in all and per response", shown=False
    ),
    "n_unscored": Column("unscored", "count", _UNSCORED_DESCRIPTION, shown="any"),
    "n_unscored_linked": Column("unscored, linked", "count", _UNSCORED_DESCRIPTION, shown="any"),
    "n_ungrouped": Column(
        "in no group", "count", "facts in no group although other facts have one", shown="any"
    ),
    "n_without_candidates": Column(
        "no candidate", "count", "responses without a candidate person", shown="any"
    ),
}
_FIGURE_COLUMNS: dict[str, Column] = {
    "init_factscore": share_column("FActScore", _SCORES_DESCRIPTION, RESPONSE_MEAN),
    "factscore": share_column(
        "FActScore, penalised", _SCORES_DESCRIPTION, RESPONSE_MEAN, shown=False
    ),
    "init_dfactscore": share_column("D-FActScore", _SCORES_DESCRIPTION, RESPONSE_MEAN),
    "dfactscore": share_column(
        "D-FActScore, penalised", _SCORES_DESCRIPTION, RESPONSE_MEAN, shown=False
    ),
    "gap": share_column(
        "gap",
        "FActScore − D-FActScore, paired, without the length penalty",
        RESPONSE_CHANGE,
        "points",
    ),
    "share_merged": share_column("merged responses", _MERGED_DESCRIPTION, RESPONSE_WILSON),
    "merged_floor": Column("noise floor", "percent", _FLOOR_DESCRIPTION, interval=RESPONSE_WILSON),
    "merged_excess": Column("merged beyond noise", "points", _FLOOR_DESCRIPTION, interval=MOVER),
    "false_positive_rate": Column(
        "false positives",
        "percent",
        _FALSE_CELLS_DESCRIPTION,
        interval=RESPONSE_WILSON,
        shown=False,
    ),
    "n_false": Column("false cells", "count", _FALSE_CELLS_DESCRIPTION, shown=False),
    "n_undecided": Column(
        "undecided",
        "count",
        "responses that are merged or not depending on missing verdicts",
        shown="any",
    ),
    "n_elsewhere": Column(
        "facts of others",
        "count",
        "facts that are true of another person of the same name",
        bounds=True,
    ),
    "n_biographies": Column(
        "# bio", "number", _ENTITIES_DESCRIPTION, interval=RESPONSE_COUNT, digits=2
    ),
    "n_entities": Column(
        "# ent.", "number", _ENTITIES_DESCRIPTION, bounds=True, interval=RESPONSE_COUNT, digits=2
    ),
    **pick_shared_columns("reason"),
}
_DFACTSCORE_OPTIONS = {
    "link": (
        "`argmax` (the entity that supports most facts of the group, MF Eq. 1), `hungarian` (the"
        " same, but no entity twice) or `given` (column `given_entity`)"
    ),
    "gamma": "γ of the length penalty; 0 turns it off",
}


_DFACTSCORE_FORMULA = (
    "For a response, FActScore = facts that the page of any candidate supports / facts; D-FActScore"
    " = facts supported by the page of the one person to whom their group is linked / facts. For a"
    " system, the mean over its responses. A fact without a verdict counts as not supported; the"
    " bounds cover all ways to fill in missing verdicts and groups."
)


def _pick_options(*names: str) -> dict[str, str]:
    return {name: _DFACTSCORE_OPTIONS[name] for name in names}


AUDITS = (
    Audit(
        name="dfactscore",
        title="FActScore and D-FActScore of the systems",
        question="Is each fact true of the person whom its paragraph describes?",
        source="MF §4.1, Tables 3 and 4",
        text=(
            "FActScore counts a fact as supported if it is true of any person with the name."
            " D-FActScore counts it only if it is true of the one person to whom the fact's group"
            " is linked. A system that merges people with the same name keeps its FActScore and"
            " loses D-FActScore."
        ),
        formula=_DFACTSCORE_FORMULA,
        remedy=(
            "If more responses are merged than the noise floor explains, report D-FActScore beside"
            " FActScore. If the floor is close to the share, first choose a verifier with fewer"
            " false positives."
        ),
        columns={
            **_KEY_COLUMNS,
            "link": _LINK_COLUMNS["link"],
            **_COUNT_COLUMNS,
            **_FIGURE_COLUMNS,
        },
        options=_DFACTSCORE_OPTIONS,
        compute=compute_dfactscore_audit,
        applies=has_fact_entities,
        plot=PlotSpec(
            what="FActScore and D-FActScore of systems, without the length penalty",
            keys=("init_factscore", "init_dfactscore"),
            groups=("system",),
        ),
        checks=CHECKS,
    ),
    Audit(
        name="dfactscore_linking",
        title="Other ways to link",
        question="How would D-FActScore change with another linking rule?",
        source="MF App. C.1",
        text="All rules use the same verdicts.",
        formula=(
            "argmax: the person whose page supports most facts of the group (MF Eq. 1). hungarian:"
            " the same, but no person twice. given: as the data say."
        ),
        remedy=(
            "If the rules give different scores, the links are ambiguous. Say which rule you"
            " report."
        ),
        columns={
            **_KEY_COLUMNS,
            **_LINK_COLUMNS,
            **{name: (_COUNT_COLUMNS | _FIGURE_COLUMNS)[name] for name in _LINKED_FIGURES},
        },
        options=_pick_options("gamma"),
        compute=compute_dfactscore_audit_by_link_rule,
        applies=has_fact_entities,
    ),
    Audit(
        name="dfactscore_gap",
        title="How much FActScore leaves unseen, response by response",
        question="In how many responses is FActScore higher than D-FActScore, and by how much?",
        source="MF §4.3",
        formula=(
            "Share of responses whose FActScore is at least so much higher than their D-FActScore"
            " (no penalty)."
        ),
        remedy="Read the responses with the largest gap (`dfactscore_elsewhere`).",
        columns=_KEY_COLUMNS
        | {
            "at_least": Column("a gap of at least", "points", "the gap", key=True, signed=False),
            **pick_shared_columns("n"),
            "share": Column(
                "share of responses",
                "percent",
                "responses with such a gap",
                interval=RESPONSE_WILSON,
            ),
        },
        options=_pick_options("link"),
        compute=compute_dfactscore_gaps,
        applies=has_fact_entities,
        plot=PlotSpec(
            what="Responses by their gap, FActScore − D-FActScore",
            keys=("share",),
            groups=("system", "at_least"),
            per_page=28,
        ),
    ),
    Audit(
        name="dfactscore_elsewhere",
        title="Facts that belong to someone else",
        question="Which facts are true of another person of the same name?",
        source="MF Fig. 1",
        text=(
            "These facts mislead a reader of the merged paragraphs, according to the verifier and"
            " the grouping (labels may disagree). The most merged responses come first."
        ),
        formula="Linked to: the person to whom the fact's group is linked.",
        remedy="Read these facts first: they are what misleads a reader.",
        columns=_KEY_COLUMNS
        | {
            "name": Column("name", "text", "the topic of the response", key=True),
            "response_id": Column("response", "text", "the response", key=True),
            "linked": Column("linked to", "text", "the person of whom the fact is told"),
            "fact": Column("fact", "text", "the fact"),
            "about": Column("true of", "text", "the person of whom the fact is true"),
        },
        options=_pick_options("link"),
        compute=list_facts_of_other_people,
        applies=has_fact_entities,
    ),
)
