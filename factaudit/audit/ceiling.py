"""How far do annotators agree with each other? This limits how well an evaluator can agree with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from factaudit.arrays.evaluator_contrast import compare_evaluators
from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.audit_declaration import (
    Audit,
    AuditedRun,
    Check,
    Column,
    Finding,
    Severity,
    pick_shared_columns,
)
from factaudit.audit.core.decision_limits import (
    can_warn_without_intervals,
    is_significantly_above,
    read_decision_limits,
)
from factaudit.audit.core.finding_parts import (
    format_first_finding_names,
    group_finding_rows_by_keys,
    pick_finding_evidence,
)
from factaudit.audit.core.interval_methods import DISCORDANT, MOVER
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.significance import p_below_limit, select_significant_rows
from factaudit.audit.core.statements import make_statement
from factaudit.audit.core.tabulate import pick_figure
from factaudit.audit.rates import compute_evaluator_rates
from factaudit.stats.agreement import krippendorff_alpha
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.undefined_values import divide_or_undefined, none_if_undefined
from factaudit.tables import STATUSES, find_claim_positions_in_table
from factaudit.text.display_text import join_reasons

_ANNOTATORS_AS_EVALUATOR = "\0people"  # no evaluator can be called that
_END_SUFFIXES = ("", "_min", "_max", "_low", "_high")


def compute_annotator_ceiling(judgements: Judgements, *, intervals: ClusterBootstrap | None = None) -> list[Row]:
    """BAcc of one annotator against the others, and of each evaluator against the same: a row per dataset, evaluator.

    Each annotator of a claim in turn is left out: the majority of the others is the label (ties have none), what the
    one left out said a prediction, and so is what the evaluator said. ``ceiling`` is the annotators' BAcc, ``bacc`` the
    evaluator's, ``room`` = ceiling - bacc, paired; n judgements of ``n_claims`` claims that two or more annotated;
    ``agree`` is the share of pairs of judgements that agree, ``alpha`` Krippendorff's.
    """
    if judgements.annotations is None:
        return []
    left_out = _leave_out_annotators_for_ceiling(judgements)
    confidence = None if intervals is None else intervals.confidence
    figures = {
        (row["dataset"], row["evaluator"]): row for row in compute_evaluator_rates(left_out, intervals=intervals)
    }
    agreed, datasets = _compute_ceiling_by_dataset(judgements), left_out.make_groups("claim")
    places = [left_out.evaluators.index(evaluator) for evaluator in judgements.evaluators]
    contrasts = [compare_evaluators(left_out, datasets, 0, place, confidence) for place in places]
    rows = []
    for at, name in enumerate(left_out.dataset_names):
        people = figures[name, _ANNOTATORS_AS_EVALUATOR]
        shared_keys = {f"ceiling{end}": people[f"bacc{end}"] for end in _END_SUFFIXES if f"bacc{end}" in people}
        for evaluator, contrast in zip(judgements.evaluators, contrasts, strict=True):
            mine = figures[name, evaluator]
            row: Row = {"dataset": name, "evaluator": evaluator, **agreed[name]}
            row |= {"n": mine["n"], "n_unscored": mine["n_unscored"], **shared_keys}
            row |= {f"bacc{end}": mine[f"bacc{end}"] for end in _END_SUFFIXES if f"bacc{end}" in mine}
            rows.append(
                row
                | pick_figure("room", contrast.figures["bacc"], at)
                | {"reason": join_reasons([mine["reason"] or ""])}
            )
    return rows


def _leave_out_annotators_for_ceiling(judgements: Judgements) -> Judgements:
    """A row per claim and annotator whose claim others annotated too: label, what the others say; the annotators are
    the first evaluator, what each of them said its prediction."""
    at, said, _ = _list_decided_annotator_labels(judgements)
    size = len(judgements.claims)
    ones, zeros = (np.bincount(at[said == value], minlength=size) for value in (1, 0))
    balance = (ones - zeros)[at] - np.where(said == 1, 1, -1)  # of the others
    kept = ((ones + zeros)[at] > 1) & (balance != 0)
    at, said, label = at[kept], said[kept], (balance[kept] > 0).astype(np.int8)
    ok = np.full((1, len(at)), STATUSES.index("ok"), dtype=np.int8)
    return replace(
        judgements,
        claims=judgements.claims.iloc[at].reset_index(drop=True),
        evaluators=(_ANNOTATORS_AS_EVALUATOR, *judgements.evaluators),
        label=label,
        prediction=np.concatenate([said[None].astype(np.int8), judgements.prediction[:, at]]),
        score=np.concatenate([np.full((1, len(at)), np.nan), judgements.score[:, at]]),
        status=np.concatenate([ok, judgements.status[:, at]]),
        repeat_predictions=None,
        annotations=None,
    )


def _list_decided_annotator_labels(judgements: Judgements) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The claim's row, the label (1 or 0) and the annotator of each judgement; undecided ones are left out."""
    assert judgements.annotations is not None
    table = judgements.annotations.dropna(subset="label")
    at = find_claim_positions_in_table(judgements.claims, table["claim_id"])
    return at, table["label"].to_numpy(dtype=np.int64), table["annotator"].to_numpy()


def _compute_ceiling_by_dataset(judgements: Judgements) -> dict[str, Row]:
    """By data set: how many claims two or more annotated, and how far these agree."""
    at, said, annotator = _list_decided_annotator_labels(judgements)
    dataset, sets = judgements.dataset_codes, judgements.dataset_names
    found = {}
    for place, name in enumerate(sets):
        mine = dataset[at] == place
        which = np.unique(at[mine], return_inverse=True)[1]
        ones, total = np.bincount(which, said[mine]).astype(np.int64), np.bincount(which)
        pairs, apart = total * (total - 1) / 2, ones * (total - ones)
        agree = 1 - divide_or_undefined(apart.sum(), pairs.sum())
        found[name] = {
            "n_claims": int((total > 1).sum()),
            "n_annotators": len(set(annotator[mine])),
            "agree": None if np.isnan(agree) else float(agree),
            "alpha": none_if_undefined(krippendorff_alpha(said[mine], which, len(total)).point),
        }
    return found


# ----------------------------------------------------------------------------------------------------------- findings


def _find_low_annotator_ceiling(audited_run: AuditedRun) -> Iterator[Finding]:
    """Labels on which people agree less than is asked of an evaluator; evaluators that are beyond the ceiling."""
    asked = read_decision_limits(audited_run).min_rate
    keys = ("ceiling", "ceiling_low", "ceiling_high", "agree", "alpha", "n_claims", "n_annotators")
    every = list(audited_run.rows("ceiling"))
    better = select_significant_rows(audited_run, every, [p_below_limit(audited_run, row, "room", 0) for row in every])
    first = [rows[0] for _, rows in group_finding_rows_by_keys(every, "dataset")]
    low = select_significant_rows(
        audited_run, first, [p_below_limit(audited_run, row, "ceiling", asked) for row in first]
    )
    for (dataset,), rows in group_finding_rows_by_keys(every, "dataset"):
        one = rows[0]
        if one["ceiling"] is None:
            continue
        told = (
            "On {one.dataset}, one annotator reaches a BAcc of {one.ceiling:percent} against the others, which is the "
        )
        told += "ceiling for evaluators"
        beyond = [row["evaluator"] for row in better if row["dataset"] == dataset]
        if beyond:
            agree = "agrees" if len(beyond) == 1 else "agree"
            told += f" ({{beyond}} significantly {agree} with them more than an annotator does)"
        sure = one in low
        if sure or (one["ceiling"] < asked and can_warn_without_intervals(every, "ceiling")):
            severity: Severity = "fail" if sure else "warn"
            told += (
                f". This is {'significantly ' if sure else ''}less than the {{asked:limit}} % that an evaluator must "
                "reach. Above the ceiling, a higher BAcc does not mean a better evaluator: get labels that "
                "people agree "
                "on."
            )
        elif is_significantly_above(one, "ceiling", asked):
            severity = "ok"
            told += ". This is significantly more than the {asked:limit} % that an evaluator must reach."
        else:
            continue
        statement = make_statement(told, one=one, asked=asked, beyond=format_first_finding_names(beyond))
        yield Finding(severity, None, dataset, statement, pick_finding_evidence(one, *keys))


AUDIT = Audit(
    name="ceiling",
    after="stability",
    title="How far annotators agree: the ceiling of any evaluator",
    question="How well do annotators agree with each other, and how far is each evaluator from that?",
    source="Krippendorff 2011 (α)",
    formula=(
        "Ceiling = BAcc of one annotator against the majority of the others, for each annotator in turn. BAcc ="
        " the evaluator's, against the same majorities. Room = ceiling − BAcc, paired."
    ),
    text=(
        "If annotators disagree, an evaluator can be right and still be counted as wrong. Above the ceiling, a "
        "higher BAcc means nothing."
    ),
    remedy="If the ceiling is low, improve the guideline or ask more annotators before you compare evaluators. "
    "Near the "
    "ceiling, a higher BAcc means nothing.",
    columns={
        **pick_shared_columns("dataset", "evaluator"),
        "n_claims": Column("claims", "count", "claims with at least two labels"),
        "n_annotators": Column("annotators", "count", "people who labelled claims"),
        "n": Column(
            "judgements", "count", ("labels that have a majority of the other annotators and an evaluator's score")
        ),
        "n_unscored": Column("unscored", "count", "such labels without an evaluator's score"),
        "agree": Column("agree", "percent", "share of pairs of labels of a claim that agree"),
        "alpha": Column("Krippendorff's α", "number", "agreement beyond chance", digits=2),
        "ceiling": Column(
            "ceiling", "percent", "BAcc of one annotator against the others", bounds=True, interval=MOVER
        ),
        "bacc": Column("BAcc", "percent", "BAcc of the evaluator against the same others", bounds=True, interval=MOVER),
        "room": Column("room", "points", "ceiling − BAcc, paired", bounds=True, interval=DISCORDANT),
        **pick_shared_columns("reason"),
    },
    compute=compute_annotator_ceiling,
    applies=lambda judged: judged.has_double_labels,
    plot=PlotSpec(
        what="Evaluators, and the ceiling that annotators' agreement sets", keys=("bacc",), reference="ceiling"
    ),
    checks=(
        Check(
            "ceiling",
            "How far annotators agree",
            "annotators agree with each other less than an evaluator must agree with them",
            _find_low_annotator_ceiling,
            null="annotators agree with each other as much as an evaluator must agree with them, on every data set",
            controls="Holm over all evaluators' room[ on all data sets, and over the ceilings of all data sets]",
            figure="ceiling",
            gravity=lambda evidence: -evidence["ceiling"],
        ),
    ),
)
