"""Is each fact true of the person whom its group is about? D-FActScore (MF §4.1)

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
from dataclasses import replace
from itertools import groupby
from typing import Literal

from factaudit.arrays.biography_scores import BIOGRAPHY_CATEGORIES, score_biography, summarise_biography_scores
from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.entity_linking import LINKING_RULES, NARROW_MARGIN
from factaudit.arrays.grouped_responses import GroupedResponse, collect_grouped_responses
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_means import DEFAULT_GAMMA
from factaudit.audit.core.audit_declaration import (
    Audit,
    AuditedRun,
    Check,
    Column,
    Finding,
    Severity,
    pick_shared_columns,
)
from factaudit.audit.core.finding_parts import MIN_SHARE_COUNT
from factaudit.audit.core.interval_methods import (
    RESPONSE_BOOTSTRAP,
    RESPONSE_CHANGE,
    RESPONSE_COUNT,
    RESPONSE_MEAN,
    RESPONSE_WILSON,
    SHARE_BEYOND_FLOOR,
)
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.significance import p_above_limit, select_significant_rows
from factaudit.audit.core.statements import Statement, make_statement
from factaudit.audit.dfactscore_grouping import state_shares_merged_by_other_groups
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

LinkRule = Literal["argmax", "hungarian", "given"]
#: From this difference on, FActScore alone is a wrong account of a system.
LARGE_GAP = 0.05


def compute_dfactscore_audit(
    judgements: Judgements,
    *,
    link: LinkRule = "argmax",
    group: str = "group",
    gamma: float = DEFAULT_GAMMA,
    narrow: float = NARROW_MARGIN,
    false_positives: float | None = None,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """FActScore and D-FActScore: a row per dataset, evaluator and system; first ``__all__`` where there are several.

    link: how a group's entity is found (`factaudit.arrays.entity_linking.link_groups_to_entities`). group: the
    column that has the groups. gamma: of the length penalty, which is of the number of facts; 0 turns it off. narrow: a
    link whose margin is at most this is counted in ``n_narrow``. false_positives: how often the verifier finds a false
    cell supported, where it is known from elsewhere. The figures:
    `factaudit.arrays.biography_scores.summarise_biography_scores`.
    """
    rows = []
    for key, members in iterate_audited_dfactscore_systems(judgements, group):
        told = [score_biography(one, link, gamma=gamma, narrow_margin=narrow)[0] for one in members]
        rows.append((key, told))
    return [
        key | {"link": link} | summarise_biography_scores(told, intervals, false_positives)
        for key, told in _prepend_dfactscore_rows_over_all_systems(rows)
    ]


def compute_dfactscore_audit_by_link_rule(
    judgements: Judgements,
    *,
    group: str | Sequence[str] = "group",
    gamma: float = DEFAULT_GAMMA,
    narrow: float = NARROW_MARGIN,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """The figures that depend on links, by every rule that the table has what it takes for; systems apart.

    group: of several columns those that the table has.
    """
    rows = []
    columns = [group] if isinstance(group, str) else [one for one in group if one in judgements.claims]
    for column in columns:
        for key, members in iterate_audited_dfactscore_systems(judgements, column):
            for rule in LINKING_RULES:
                if rule == "given" and not _has_given_entities(members):
                    continue
                row = summarise_biography_scores(
                    [score_biography(one, rule, gamma=gamma, narrow_margin=narrow)[0] for one in members],
                    intervals,
                    with_noise_floor=False,
                )
                rows.append(
                    {"grouper": column, "link": rule}
                    | key
                    | {name: row[name] for name in _list_dfactscore_row_keys(_LINK_DEPENDENT_FIGURES)}
                )
    return rows


# -------------------------------------------------------------------------------------------------------- its parts


def has_fact_entities(judgements: Judgements) -> bool:
    """Whether the claims have a row per fact and entity."""
    claims = judgements.claims
    return bool((claims["fact_id"].notna() & claims["entity"].notna() & claims["response_id"].notna()).any())


def iterate_audited_dfactscore_systems(
    judgements: Judgements, group_column: str
) -> Iterator[tuple[Row, list[GroupedResponse]]]:
    """The responses of each dataset, evaluator and system, where facts have entities and the evaluator a verdict."""
    for at, evaluator in enumerate(judgements.evaluators):
        every = collect_grouped_responses(judgements, at, group_column)
        named = {one.key["dataset"] for one in every if one.matrix.entities}
        scored = set(judgements.claims["dataset"][judgements.status[at] >= 0])
        for dataset in dict.fromkeys(one.key["dataset"] for one in every):
            if dataset not in named & scored:
                continue
            mine = [one for one in every if one.key["dataset"] == dataset]
            key: Row = {"dataset": dataset, "evaluator": evaluator}
            for system in dict.fromkeys(one.key["system"] for one in mine):
                yield key | {"system": system}, [one for one in mine if one.key["system"] == system]


def _prepend_dfactscore_rows_over_all_systems(
    system_rows: Sequence[tuple[Row, list[Row]]],
) -> Iterator[tuple[Row, list[Row]]]:
    """The rows of each system; before those of a dataset with several systems, all of them together as ``__all__``."""
    for _, same in groupby(system_rows, key=lambda part: (part[0]["dataset"], part[0]["evaluator"])):
        systems = list(same)
        if len(systems) > 1:
            yield systems[0][0] | {"system": ALL_TOGETHER}, [row for _, rows in systems for row in rows]
        yield from systems


def _has_given_entities(members: Sequence[GroupedResponse]) -> bool:
    """Whether the claims say whom groups are linked to (``given_entity``), and always name a candidate."""
    named = [set(one.given_entities.values()) <= set(one.matrix.entities) for one in members if one.given_entities]
    return bool(named) and all(named)


# ------------------------------------------------------------------------------------------------------ declaration


def _find_dfactscores_of_merged_people(audited_run: AuditedRun) -> Iterator[Finding]:
    """What FActScore hides of each system, beyond what the verifier's errors would make it seem to hide."""
    every = [row for row in audited_run.rows("dfactscore") if row["system"] != ALL_TOGETHER]
    merging = select_significant_rows(
        audited_run, every, [p_above_limit(audited_run, row, "merged_excess", 0) for row in every]
    )
    for row in every:
        if not row["gap"] or row["gap"] < 0 or not row["n_elsewhere"]:
            continue
        # Where all responses have the same gap it has no interval: the share of merged ones has.
        if not (row["gap_low"] > 0 if row.get("gap_low") is not None else row in merging):
            continue
        name = row["system"] or "The system"
        keys = ("gap", "gap_low", "gap_high", "share_merged", "merged_floor", "merged_excess", "merged_excess_low")
        evidence = {"system": row["system"], **{key: row[key] for key in (*keys, "n_elsewhere", "n_facts")}}
        scores = (
            "{name} has a FActScore of {row.init_factscore:percent} and a D-FActScore of {row.init_dfactscore:percent}."
        )
        merged = "some" if row["share_merged"] is None else "{row.share_merged:percent} of its"
        if row["n_answered"] < MIN_SHARE_COUNT and not row["n_undecided"] + row["n_without_candidates"]:
            merged = "{row.n_merged:number} of {row.n_answered:number}"  # all are decided: these are the share
        of_others = (
            f"{merged} responses say about one person what is true of another person with the same name{{others}}"
        )
        others = state_shares_merged_by_other_groups(audited_run, row)
        large = row["gap"] >= LARGE_GAP and row["gap_min"] > 0
        severity: Severity = "fail" if large else "warn"
        if row["merged_floor"] is None:
            severity = "warn"
            said = (
                f"{scores} By the verifier and these groups of facts, {of_others}. It is not known how often the "
                f"verifier "
                "is wrong: let it judge facts that are known to be false (decoys) before you rely on this."
            )
        elif row in merging:
            noise, alone = " ({row.merged_floor:percent} would seem to only because the verifier makes mistakes)", ""
            if not row["merged_floor"]:
                noise = ""
                alone = (
                    "Of {row.n_false:number fact} known to be false of a person, the verifier found none supported by "
                    "that person's page. "
                ) * bool(row["n_false"])
            said = f"{scores} {of_others[0].upper()}{of_others[1:]}{noise}. {alone}Do not quote its FActScore alone."
        else:
            severity = "ok"
            said = (
                f"{scores} By the verifier and these groups of facts, {of_others}. But "
                f"{{row.merged_floor:percent}} would "
                "seem to only because the verifier makes mistakes, so it is not shown that the system merges people."
            )
        evidence = {key: value for key, value in evidence.items() if value is not None or not key.startswith("merged")}
        said = make_statement(said, name=name, row=row, others=others)
        yield Finding(severity, row["evaluator"], row["dataset"], said, evidence)


DFACTSCORE_KEY_COLUMNS: dict[str, Column] = pick_shared_columns("dataset", "evaluator", "system") | {
    "evaluator": Column("verifier", "text", "the evaluator whose verdicts FActScore and D-FActScore use", key=True)
}
_LINK_COLUMNS: dict[str, Column] = {
    "grouper": Column("groups", "text", "the column with the groups of facts", key=True),
    "link": Column("links", "text", "how groups are linked to entities", key=True),
}
_SCORES_DESCRIPTION = "means over the responses that answered; `init_` means without the length penalty"
_UNSCORED_DESCRIPTION = "facts without a verdict for FActScore, and for D-FActScore"
_ENTITIES_DESCRIPTION = "mean number of groups, and of distinct persons, per response"
_MERGED_DESCRIPTION = (
    "responses in which at least one fact is true of another person of the same name and not of the person it is "
    "told of; no share if missing verdicts leave more than a tenth of the responses open"
)
#: What bounds are over: a fact in no group has no linked entity, whatever its verdicts.
DFACTSCORE_BOUNDS = "the least and the greatest value that missing verdicts and facts in no group leave possible"
_FLOOR_DESCRIPTION = (
    "the share of responses that look merged through the verifier's errors alone, and the share beyond it"
)
_FALSE_CELLS_DESCRIPTION = (
    "false positive rate of the verifier, the number of false cells behind it, and where they come from"
)
_COUNT_COLUMNS: dict[str, Column] = {
    "n_responses": Column("all responses", "count", "responses, and how many of them answered", shown=False),
    "n_answered": Column("responses", "count", "responses, and how many of them answered"),
    "respond_ratio": Column("respond ratio", "percent", "share of responses that answered", shown=False),
    "n_facts": Column("facts", "count", "number of facts, in all and per response"),
    "facts_per_response": Column(
        "facts per response", "number", "number of facts, in all and per response", shown=False
    ),
    "n_unscored": Column("unscored", "count", _UNSCORED_DESCRIPTION, shown="any"),
    "n_unscored_linked": Column("unscored, linked", "count", _UNSCORED_DESCRIPTION, shown="any"),
    "n_ungrouped": Column("in no group", "count", "facts in no group although other facts have one", shown="any"),
    "n_without_candidates": Column("no candidate", "count", "responses without a candidate person", shown="any"),
    "n_candidates": Column("candidates", "number", "mean number of candidates of a response", shown=False),
}
_FIGURE_COLUMNS: dict[str, Column] = {
    "init_factscore": Column("FActScore", "percent", _SCORES_DESCRIPTION, bounds=True, interval=RESPONSE_MEAN),
    "factscore": Column(
        "FActScore, penalised", "percent", _SCORES_DESCRIPTION, bounds=True, interval=RESPONSE_MEAN, shown=False
    ),
    "init_dfactscore": Column("D-FActScore", "percent", _SCORES_DESCRIPTION, bounds=True, interval=RESPONSE_MEAN),
    "dfactscore": Column(
        "D-FActScore, penalised", "percent", _SCORES_DESCRIPTION, bounds=True, interval=RESPONSE_MEAN, shown=False
    ),
    "gap": Column(
        "gap",
        "points",
        "FActScore − D-FActScore, paired, without the length penalty",
        bounds=True,
        interval=RESPONSE_CHANGE,
    ),
    "n_dfactscore_higher": Column(
        "D-FActScore higher",
        "count",
        (
            "responses whose D-FActScore is higher than their FActScore, which can happen if the two cover different "
            "facts"
        ),
        shown="any",
    ),
    "n_merged": Column("merged", "count", _MERGED_DESCRIPTION, shown=False),
    "share_merged": Column("merged responses", "percent", _MERGED_DESCRIPTION, bounds=True, interval=RESPONSE_WILSON),
    "merged_floor": Column("noise floor", "percent", _FLOOR_DESCRIPTION, interval=RESPONSE_BOOTSTRAP),
    "merged_excess": Column("merged beyond noise", "points", _FLOOR_DESCRIPTION, interval=SHARE_BEYOND_FLOOR),
    "false_positive_rate": Column(
        "false positives", "percent", _FALSE_CELLS_DESCRIPTION, interval=RESPONSE_BOOTSTRAP, shown=False
    ),
    "n_false": Column("false cells", "count", _FALSE_CELLS_DESCRIPTION, shown=False),
    "false_positives_from": Column("measured on", "text", _FALSE_CELLS_DESCRIPTION, shown=False),
    "n_undecided": Column(
        "undecided", "count", "responses that are merged or not depending on missing verdicts", shown="any"
    ),
    "n_elsewhere": Column(
        "facts of others", "count", "facts that are true of another person of the same name", bounds=True
    ),
    "n_biographies": Column("# bio", "number", _ENTITIES_DESCRIPTION, bounds=True, interval=RESPONSE_COUNT, digits=2),
    "n_entities": Column("# ent.", "number", _ENTITIES_DESCRIPTION, bounds=True, interval=RESPONSE_COUNT, digits=2),
    "n_narrow": Column(
        "narrow links", "count", "groups whose second-best person is supported by almost as many facts", shown=False
    ),
    **{
        name: Column(name, "percent", "shares of responses in each category (MF §2.4)", bounds=True, shown=False)
        for name in BIOGRAPHY_CATEGORIES
    },
    **pick_shared_columns("reason"),
}
_FIGURE_COLUMNS = {name: replace(one, bounds=one.bounds and DFACTSCORE_BOUNDS) for name, one in _FIGURE_COLUMNS.items()}
#: The figures that depend on links.
_LINK_DEPENDENT_FIGURES = (
    *("n_answered", "init_dfactscore", "dfactscore", "gap", "share_merged", "n_undecided", "n_elsewhere"),
    *("n_biographies", "n_narrow", "reason"),
)


def _list_dfactscore_row_keys(figure_names: Sequence[str]) -> Iterator[str]:
    """The keys of rows: each name with its bounds and its interval."""
    for name in figure_names:
        column = (_COUNT_COLUMNS | _FIGURE_COLUMNS)[name]
        yield name
        yield from (f"{name}{end}" for end in ("_low", "_high") if column.interval)
        yield from (f"{name}{end}" for end in ("_min", "_max") if column.bounds)


_DFACTSCORE_OPTIONS = {
    "link": "`argmax` (the entity that supports most facts of the group, MF Eq. 1), `hungarian` (the same, but no "
    "entity twice) or `given` (column `given_entity`)",
    "group": "the column with the groups of facts",
    "gamma": "γ of the length penalty; 0 turns it off",
    "narrow": "a link counts as narrow if its margin is at most this",
    "false_positives": "the false positive rate of the verifier, if it is known from elsewhere",
}


def _list_advice_on_errors_true_of_others(
    audited_run: AuditedRun, evaluators: Sequence[str]
) -> Iterator[tuple[str, Statement]]:
    """How many labelled errors FActScore passes: facts that some person's page supports, and not of whom they tell."""
    rates = audited_run.per_dataset("rates", "tnr") if audited_run.rows("dfactscore") else ()
    mine = [row for row in rates if row["evaluator"] == "FActScore"]
    passed = [row | {"n_passed": round((1 - row["tnr"]) * row["n_unattributable"])} for row in mine]
    if any(row["n_passed"] for row in passed):
        text = "{passed.n_passed:number} of {passed.n_unattributable:number error} are true of another person with the "
        text += "same name. FActScore counts them as supported."
        yield "Beware", make_statement(text, passed=passed)


_DFACTSCORE_FORMULA = (
    "For a response, FActScore = facts that the page of any candidate supports / facts; D-FActScore = facts "
    "supported by the page of the one person to whom their group is linked / facts. For a system, the mean over its"
    " responses. A fact without a verdict counts as not supported; the bounds cover all ways to fill in missing "
    "verdicts and groups."
)


def select_dfactscore_options(*names: str) -> dict[str, str]:
    return {name: _DFACTSCORE_OPTIONS[name] for name in names}


AUDITS = (
    Audit(
        name="dfactscore",
        after="factscore",
        title="FActScore and D-FActScore of the systems",
        question="Is each fact true of the person whom its paragraph describes?",
        source="MF §4.1, Tables 3 and 4",
        text=(
            "FActScore counts a fact as supported if it is true of any person with the name. D-FActScore counts it"
            " only if it is true of the one person to whom the fact's group is linked. A system that merges people"
            " with the same name keeps its FActScore and loses D-FActScore."
        ),
        formula=_DFACTSCORE_FORMULA,
        remedy=(
            "If more responses are merged than the noise floor explains, report D-FActScore beside FActScore. If"
            " the floor is close to the share, first choose a verifier with fewer false positives."
        ),
        columns={**DFACTSCORE_KEY_COLUMNS, "link": _LINK_COLUMNS["link"], **_COUNT_COLUMNS, **_FIGURE_COLUMNS},
        options=select_dfactscore_options("link", "group", "gamma", "narrow", "false_positives"),
        compute=compute_dfactscore_audit,
        applies=has_fact_entities,
        plot=PlotSpec(
            what="FActScore and D-FActScore of systems, without the length penalty",
            keys=("init_factscore", "init_dfactscore"),
            groups=("system",),
        ),
        advice=_list_advice_on_errors_true_of_others,
        checks=(
            Check(
                "merged_facts",
                "People merged into one",
                f"FActScore exceeds D-FActScore clearly (fail: by {100 * LARGE_GAP:.0f} points), and more responses "
                "are merged than the verifier's errors make look so",
                _find_dfactscores_of_merged_people,
                null="no more responses of a system look merged than the verifier's errors make look so",
                controls="Holm over all systems and evaluators; where its errors are not measured, nothing is tested",
                figure="merged_excess",
            ),
        ),
    ),
    Audit(
        name="dfactscore_linking",
        after="dfactscore_gap",
        title="Other ways to link",
        question="How would D-FActScore change with another linking rule?",
        source="MF App. C.1",
        text="All rules use the same verdicts.",
        formula=(
            "argmax: the person whose page supports most facts of the group (MF Eq. 1). hungarian: the same, "
            "but no person twice. given: as the data say."
        ),
        remedy=(
            "If the rules give different scores, the links are ambiguous (`n_narrow`). Read those groups, and "
            "say which rule you report."
        ),
        columns={
            **DFACTSCORE_KEY_COLUMNS,
            **_LINK_COLUMNS,
            **{name: (_COUNT_COLUMNS | _FIGURE_COLUMNS)[name] for name in _LINK_DEPENDENT_FIGURES},
        },
        options=select_dfactscore_options("group", "gamma", "narrow"),
        compute=compute_dfactscore_audit_by_link_rule,
        applies=has_fact_entities,
    ),
)
