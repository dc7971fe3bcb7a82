"""How far do annotators agree? Their agreement limits how well an evaluator can agree with them.

Two audits: ``agreement`` compares the annotators with each other and needs no evaluator;
``ceiling`` is the BAcc of one annotator against the others, beside that of each evaluator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

import numpy as np

from factaudit.arrays.judgements import ALL_TOGETHER, Judgements
from factaudit.audit.core.audit_declaration import (
    FISHER_JACKKNIFE,
    INFLUENCE,
    MOVER,
    Audit,
    Column,
    PlotSpec,
    pick_shared_columns,
    share_column,
)
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check
from factaudit.audit.core.result_rows import Row, explain_row, group_rows
from factaudit.audit.rates import compute_evaluator_rates
from factaudit.stats import name_figure
from factaudit.stats.agreement import krippendorff_alpha, weighted_kappa
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.influence import Scale, Statistic, interval, mean
from factaudit.tables import STATUSES, find_claim_positions

_ANNOTATORS_AS_EVALUATOR = "\0people"  # no evaluator can be called that
_ENDS = ("", "_min", "_max", "_low", "_high")
#: Of more annotators, pairs are not listed: a crowd of 50 has 1,225 of them.
MAX_LISTED_ANNOTATORS = 10


def compute_annotator_agreement(
    judgements: Judgements, *, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """A row per dataset and pair of annotators; of three annotators or more first one of all
    together (both ``__all__``).

    n: the claims to which two or more of them gave a label; n_split: those with both labels. agree:
    the mean over these claims of the share of pairs of their labels that are equal (Fleiss 1971),
    so that a claim counts once however many people labelled it. kappa: Cohen 1960, of pairs only.
    alpha: Krippendorff's, nominal, which allows labels to be missing. An undecided label is
    missing.
    """
    if judgements.annotations is None:
        return []
    at, said, annotator = _list_annotators_labels(judgements)
    annotator = annotator.astype(str)
    rows = []
    for place, dataset in enumerate(judgements.dataset_names):
        inside = judgements.dataset_codes[at] == place
        names = sorted(set(annotator[inside].tolist()))
        groups = [tuple(names)]
        if 2 < len(names) <= MAX_LISTED_ANNOTATORS:
            groups += combinations(names, 2)
        for group in groups if len(names) > 1 else ():
            mine = np.flatnonzero(inside & np.isin(annotator, group))
            mine = mine[np.lexsort((annotator[mine], at[mine]))]
            one, other = group if len(group) == 2 else (ALL_TOGETHER, ALL_TOGETHER)
            row: Row = {"dataset": dataset, "annotator_a": one, "annotator_b": other}
            claim, cluster = at[mine], judgements.cluster_codes[at[mine]]
            row |= _measure_agreement(claim, said[mine], cluster, len(group), intervals)
            rows.append(row)
    return rows


def _measure_agreement(
    claim: np.ndarray,
    said: np.ndarray,
    cluster: np.ndarray,
    n_annotators: int,
    intervals: ClusterBootstrap | None,
) -> Row:
    """The figures of r labels, sorted by claim and annotator: the row of the claim, the label (1 or
    0) and the claim's cluster, (r,) each."""
    is_shared = np.isin(claim, claim[1:][claim[1:] == claim[:-1]])
    said = said[is_shared]
    _, first, unit = np.unique(claim[is_shared], return_index=True, return_inverse=True)
    # Sums of numbers round by their order: that of the claims' rows must not matter.
    ones, total = np.bincount(unit, said), np.bincount(unit)
    order = np.lexsort((said[first], ones, total, cluster[is_shared][first]))
    unit = np.argsort(order)[unit]
    cluster, ones, total = cluster[is_shared][first][order], ones[order], total[order]
    by_annotator, by_label = np.argsort(unit, kind="stable"), np.lexsort((said, unit))
    split = ones * (total - ones)
    figures: dict[str, tuple[Statistic, Scale]] = {
        "agree": (mean(1 - split / (total * (total - 1) / 2)), "logit"),
        "alpha": (krippendorff_alpha(said[by_label], unit[by_label], len(total)), "fisher"),
    }
    row: Row = {"n": len(total), "n_split": int((split > 0).sum()), "kappa": None}
    if n_annotators == 2:
        figures["kappa"] = (
            weighted_kappa(*said[by_annotator].reshape(-1, 2).T.astype(float)),
            "fisher",
        )
    for name, (statistic, scale) in figures.items():
        ends = None
        if intervals is not None:
            ends = interval(statistic, cluster, scale, intervals.confidence)
        row |= name_figure(name, statistic.point, ends)
    why = ["" if len(total) else "no claim has two labels"]
    if n_annotators > 2:
        why.append("kappa is of two annotators only")
    return explain_row(row, figures, why, "labels do not vary, or all claims are of one document")


def compute_annotator_ceiling(
    judgements: Judgements, *, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """BAcc of one annotator against the others, and of each evaluator against the same: a row per
    dataset, evaluator.

    Each annotator of a claim in turn is left out: the majority of the others is the label (ties
    have none), what the one left out said a prediction, and so is what the evaluator said.
    ``ceiling`` is the annotators' BAcc, ``bacc`` the evaluator's; n judgements of ``n_claims``
    that have a majority of others.
    """
    if judgements.annotations is None:
        return []
    left_out = _leave_out_annotators(judgements)
    rates = {
        (row["dataset"], row["evaluator"]): row
        for row in compute_evaluator_rates(left_out, intervals=intervals)
    }
    rows = []
    for dataset, evaluator in product(left_out.dataset_names, judgements.evaluators):
        people, own = rates[dataset, _ANNOTATORS_AS_EVALUATOR], rates[dataset, evaluator]
        row: Row = {"dataset": dataset, "evaluator": evaluator}
        row |= {key: own[key] for key in ("n", "n_unscored", "reason")}
        row |= {f"ceiling{end}": people[f"bacc{end}"] for end in _ENDS if f"bacc{end}" in people}
        row |= {f"bacc{end}": own[f"bacc{end}"] for end in _ENDS if f"bacc{end}" in own}
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
    part = judgements.select(at)
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
    at = find_claim_positions(judgements.claims, table["claim_id"])
    return at, table["label"].to_numpy(dtype=np.int64), table["annotator"].to_numpy()


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
    null=(
        "annotators agree with each other as much as an evaluator must agree with them, on every"
        " data set"
    ),
)
CEILING = Audit(
    name="ceiling",
    title="How far annotators agree: the ceiling of any evaluator",
    question=(
        "How well does one annotator agree with the others, and how far is each evaluator from"
        " that?"
    ),
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
        "n": Column(
            "judgements",
            "count",
            "labels that have a majority of the other annotators and an evaluator's score",
        ),
        "n_unscored": Column("unscored", "count", "such labels without an evaluator's score"),
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
AGREEMENT = Audit(
    name="agreement",
    title="How far annotators agree with each other",
    question=(
        "How often do annotators give a claim the same label, and how far is that beyond chance?"
    ),
    source="Fleiss 1971 (agreement), Cohen 1960 (κ), Krippendorff 2011 (α)",
    formula=(
        "Agreement = mean over claims of the share of pairs of their labels that are equal. κ and α"
        " are 1 if all labels agree and 0 if they agree as often as by chance."
    ),
    remedy=(
        "Read the claims with both labels in the claim browser (shown: annotators disagree), make"
        " the guideline clearer, and let one more person label these claims."
    ),
    columns={
        **pick_shared_columns("dataset"),
        **{
            name: Column(
                name.replace("_", " "),
                "text",
                "the two annotators; `__all__` is all of them together. Of more than"
                f" {MAX_LISTED_ANNOTATORS} annotators, pairs are not listed",
                key=True,
                values={ALL_TOGETHER: "all annotators"},
            )
            for name in ("annotator_a", "annotator_b")
        },
        "n": Column("claims", "count", "claims with at least two labels of these annotators"),
        "n_split": Column("with both labels", "count", "such claims on which they disagree"),
        "agree": Column(
            "agreement",
            "percent",
            "mean over claims of the share of pairs of labels that are equal",
            interval=INFLUENCE,
        ),
        "kappa": Column(
            "Cohen's κ",
            "number",
            "agreement of two annotators beyond chance",
            interval=FISHER_JACKKNIFE,
            digits=2,
        ),
        "alpha": Column(
            "Krippendorff's α",
            "number",
            "agreement of any number of annotators beyond chance",
            interval=FISHER_JACKKNIFE,
            digits=2,
        ),
        **pick_shared_columns("reason"),
    },
    compute=compute_annotator_agreement,
    without_evaluators=True,
    applies=lambda judged: judged.has_double_labels,
)
AUDITS = (AGREEMENT, CEILING)
