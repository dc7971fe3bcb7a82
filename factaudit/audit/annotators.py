"""How far do annotators agree? Their agreement limits how well an evaluator can agree with them.

The ceiling is the BAcc of one annotator against the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns, share_column
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check
from factaudit.audit.core.claim_parts import select_claims
from factaudit.audit.core.interval_methods import MOVER
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row, group_rows
from factaudit.audit.rates import compute_evaluator_rates
from factaudit.stats.agreement import krippendorff_alpha
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.undefined_values import divide_or_undefined, none_if_undefined
from factaudit.tables import STATUSES, find_claim_positions_in_table

_ANNOTATORS_AS_EVALUATOR = "\0people"  # no evaluator can be called that
_ENDS = ("", "_min", "_max", "_low", "_high")


def compute_annotator_ceiling(
    judgements: Judgements, *, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """BAcc of one annotator against the others, and of each evaluator against the same: a row per
    dataset, evaluator.

    Each annotator of a claim in turn is left out: the majority of the others is the label (ties
    have none), what the one left out said a prediction, and so is what the evaluator said.
    ``ceiling`` is the annotators' BAcc, ``bacc`` the evaluator's; n judgements of ``n_claims``
    claims that two or more annotated; ``agree`` is the share of pairs of judgements that agree,
    ``alpha`` Krippendorff's.
    """
    if judgements.annotations is None:
        return []
    left_out = _leave_out_annotators(judgements)
    rates = {
        (row["dataset"], row["evaluator"]): row
        for row in compute_evaluator_rates(left_out, intervals=intervals)
    }
    rows = []
    for dataset in left_out.dataset_names:
        agreement = _measure_agreement(judgements, dataset)
        people = rates[dataset, _ANNOTATORS_AS_EVALUATOR]
        for evaluator in judgements.evaluators:
            own = rates[dataset, evaluator]
            row: Row = {"dataset": dataset, "evaluator": evaluator, **agreement}
            row |= {key: own[key] for key in ("n", "n_unscored", "reason")}
            for end in (end for end in _ENDS if f"bacc{end}" in people):
                row |= {f"ceiling{end}": people[f"bacc{end}"], f"bacc{end}": own[f"bacc{end}"]}
            rows.append(row)
    return rows


def _leave_out_annotators(judgements: Judgements) -> Judgements:
    """A row per claim and annotator whose claim others annotated too: label, what the others say;
    the annotators are the first evaluator, what each of them said its prediction."""
    at, said, _ = _list_annotators_labels(judgements)
    ones, zeros = (
        np.bincount(at[said == value], minlength=len(judgements.claims)) for value in (1, 0)
    )
    balance = (ones - zeros)[at] - np.where(said == 1, 1, -1)  # of the others
    kept = ((ones + zeros)[at] > 1) & (balance != 0)
    at, said, balance = at[kept], said[kept], balance[kept]
    part = select_claims(judgements, at)
    ok = np.full((1, len(at)), STATUSES.index("ok"), dtype=np.int8)
    return replace(
        part,
        evaluators=(_ANNOTATORS_AS_EVALUATOR, *judgements.evaluators),
        label=(balance > 0).astype(np.int8),
        prediction=np.concatenate([said[None].astype(np.int8), part.prediction]),
        score=np.concatenate([np.full((1, len(at)), np.nan), part.score]),
        status=np.concatenate([ok, part.status]),
        repeat_predictions=None,
        grade=None,
    )


def _list_annotators_labels(judgements: Judgements) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The claim's row, the label (1 or 0) and the annotator of each judgement; undecided ones are
    left out."""
    assert judgements.annotations is not None
    table = judgements.annotations.dropna(subset="label")
    at = find_claim_positions_in_table(judgements.claims, table["claim_id"])
    return at, table["label"].to_numpy(dtype=np.int64), table["annotator"].to_numpy()


def _measure_agreement(judgements: Judgements, dataset: str) -> Row:
    """How many claims of a data set two or more annotated, and how far these agree."""
    at, said, annotator = _list_annotators_labels(judgements)
    inside = judgements.dataset_codes[at] == judgements.dataset_names.index(dataset)
    claim = np.unique(at[inside], return_inverse=True)[1]
    ones, total = np.bincount(claim, said[inside]).astype(np.int64), np.bincount(claim)
    apart = divide_or_undefined((ones * (total - ones)).sum(), (total * (total - 1) / 2).sum())
    return {
        "n_claims": int((total > 1).sum()),
        "n_annotators": len(set(annotator[inside])),
        "agree": none_if_undefined(1 - apart),
        "alpha": none_if_undefined(krippendorff_alpha(said[inside], claim, len(total)).point),
    }


# ---- checks


def _list_ceilings(run: AuditedRun) -> Iterator[Row]:
    """A row per data set: the ceiling is the same beside every evaluator."""
    for rows in group_rows(run.rows("ceiling"), "dataset").values():
        yield {key: value for key, value in rows[0].items() if key != "evaluator"}


CHECK = Check(
    id="ceiling",
    title="How far annotators agree",
    rows=_list_ceilings,
    figure="ceiling",
    limit=lambda limits: limits.min_rate,
    side="under",
    by=("dataset",),
    says=(
        "One annotator reaches a BAcc of {ceiling:percent} against the others{on}, which is the"
        " ceiling for evaluators, {verdict}."
    ),
    beyond="less than the {limit:limit} % that an evaluator must reach",
    advice=(
        "Above the ceiling, a higher BAcc does not mean a better evaluator: get labels that people"
        " agree on."
    ),
    within=(
        "One annotator reaches a BAcc of {ceiling:percent} against the others{on}: the ceiling for"
        " evaluators."
    ),
    by_figure=True,
    null=(
        "annotators agree with each other as much as an evaluator must agree with them, on every"
        " data set"
    ),
)
AUDIT = Audit(
    name="ceiling",
    title="How far annotators agree: the ceiling of any evaluator",
    question=(
        "How well do annotators agree with each other, and how far is each evaluator from that?"
    ),
    source="Krippendorff 2011 (α)",
    formula=(
        "Ceiling = BAcc of one annotator against the majority of the others, for each annotator in"
        " turn. BAcc = the evaluator's, against the same majorities."
    ),
    text=(
        "If annotators disagree, an evaluator can be right and still be counted as wrong. Above the"
        " ceiling, a higher BAcc means nothing."
    ),
    remedy=(
        "If the ceiling is low, improve the guideline or ask more annotators before you compare"
        " evaluators. Near the ceiling, a higher BAcc means nothing."
    ),
    columns={
        **pick_shared_columns("dataset", "evaluator"),
        "n_claims": Column("claims", "count", "claims with at least two labels"),
        "n_annotators": Column("annotators", "count", "people who labelled claims"),
        "n": Column(
            "judgements",
            "count",
            "labels that have a majority of the other annotators and an evaluator's score",
        ),
        "n_unscored": Column("unscored", "count", "such labels without an evaluator's score"),
        "agree": Column("agree", "percent", "share of pairs of labels of a claim that agree"),
        "alpha": Column("Krippendorff's α", "number", "agreement beyond chance", digits=2),
        "ceiling": share_column("ceiling", "BAcc of one annotator against the others", MOVER),
        "bacc": share_column("BAcc", "BAcc of the evaluator against the same others", MOVER),
        **pick_shared_columns("reason"),
    },
    compute=compute_annotator_ceiling,
    applies=lambda judged: judged.has_double_labels,
    plot=PlotSpec(
        what="Evaluators, and the ceiling that annotators' agreement sets",
        keys=("bacc",),
        reference="ceiling",
    ),
    checks=(CHECK,),
)
