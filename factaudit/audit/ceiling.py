"""How far annotators agree with each other: more than that no evaluator can be told to agree with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from factaudit.audit.core.agreement import krippendorff_alpha
from factaudit.audit.core.checks import by_keys, evidence_of, names
from factaudit.audit.core.contrast import Contrast
from factaudit.audit.core.decisions import limits_of, surely_above, surely_below
from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, shared
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.plot import DotPlot
from factaudit.audit.core.rows import Row, ratio, reasons
from factaudit.audit.core.words import percent
from factaudit.audit.rates import rates
from factaudit.tables import STATUSES, claim_positions

_PEOPLE = "\0people"  # no evaluator can be called that
_ENDS = ("", "_min", "_max", "_low", "_high")


def ceiling(judged: Judged, *, intervals: Intervals | None = None) -> list[Row]:
    """BAcc of one annotator against the others, and of each evaluator against the same: a row per dataset, evaluator.

    Each annotator of a claim in turn is left out: the majority of the others is the label (ties have none), what the
    one left out said a prediction, and so is what the evaluator said. ``ceiling`` is the annotators' BAcc, ``bacc`` the
    evaluator's, ``room`` = ceiling - bacc, paired; n judgements of ``n_claims`` claims that two or more annotated;
    ``agree`` is the share of pairs of judgements that agree, ``alpha`` Krippendorff's.
    """
    if judged.annotations is None:
        return []
    left_out = _left_out(judged)
    confidence = None if intervals is None else intervals.confidence
    figures = {(row["dataset"], row["evaluator"]): row for row in rates(left_out, intervals=intervals)}
    agreed, datasets = _agreement(judged), left_out.group("claim")
    places = [left_out.evaluators.index(evaluator) for evaluator in judged.evaluators]
    contrasts = [Contrast.of(left_out, datasets, 0, place, confidence) for place in places]
    rows = []
    for at, name in enumerate(left_out.datasets[1]):
        people = figures[name, _PEOPLE]
        shared_keys = {f"ceiling{end}": people[f"bacc{end}"] for end in _ENDS if f"bacc{end}" in people}
        for evaluator, contrast in zip(judged.evaluators, contrasts, strict=True):
            mine = figures[name, evaluator]
            row: Row = {"dataset": name, "evaluator": evaluator, **agreed[name]}
            row |= {"n": mine["n"], "n_unscored": mine["n_unscored"], **shared_keys}
            row |= {f"bacc{end}": mine[f"bacc{end}"] for end in _ENDS if f"bacc{end}" in mine}
            rows.append(row | contrast.row(at, "bacc", "room") | {"reason": reasons([mine["reason"] or ""])})
    return rows


def _left_out(judged: Judged) -> Judged:
    """A row per claim and annotator whose claim others annotated too: label, what the others say; the annotators are
    the first evaluator, what each of them said its prediction."""
    at, said, _ = _judgements(judged)
    size = len(judged.claims)
    ones, zeros = (np.bincount(at[said == value], minlength=size) for value in (1, 0))
    balance = (ones - zeros)[at] - np.where(said == 1, 1, -1)  # of the others
    kept = ((ones + zeros)[at] > 1) & (balance != 0)
    at, said, label = at[kept], said[kept], (balance[kept] > 0).astype(np.int8)
    ok = np.full((1, len(at)), STATUSES.index("ok"), dtype=np.int8)
    return replace(
        judged,
        claims=judged.claims.iloc[at].reset_index(drop=True),
        evaluators=(_PEOPLE, *judged.evaluators),
        label=label,
        prediction=np.concatenate([said[None].astype(np.int8), judged.prediction[:, at]]),
        score=np.concatenate([np.full((1, len(at)), np.nan), judged.score[:, at]]),
        status=np.concatenate([ok, judged.status[:, at]]),
        repeats=None,
        annotations=None,
    )


def _judgements(judged: Judged) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each judgement the place of its claim, 1 or 0, and the annotator; undecided ones are none."""
    assert judged.annotations is not None
    table = judged.annotations.dropna(subset="label")
    at = claim_positions(judged.claims, table["claim_id"])
    return at, table["label"].to_numpy(dtype=np.int64), table["annotator"].to_numpy()


def _agreement(judged: Judged) -> dict[str, Row]:
    """By data set: how many claims two or more annotated, and how far these agree."""
    at, said, annotator = _judgements(judged)
    dataset, sets = judged.datasets
    found = {}
    for place, name in enumerate(sets):
        mine = dataset[at] == place
        which = np.unique(at[mine], return_inverse=True)[1]
        ones, total = np.bincount(which, said[mine]).astype(np.int64), np.bincount(which)
        pairs, apart = total * (total - 1) / 2, ones * (total - ones)
        units = [[1] * int(one) + [0] * int(every - one) for one, every in zip(ones, total, strict=True)]
        agree = 1 - ratio(apart.sum(), pairs.sum())
        found[name] = {
            "n_claims": int((total > 1).sum()),
            "n_annotators": len(set(annotator[mine])),
            "agree": None if np.isnan(agree) else float(agree),
            "alpha": krippendorff_alpha(units),
        }
    return found


# ----------------------------------------------------------------------------------------------------------- findings


def _low(audited: Audited) -> Iterator[Finding]:
    """Labels on which people agree less than is asked of an evaluator; evaluators that are beyond the ceiling."""
    asked = limits_of(audited).min_rate
    keys = ("ceiling", "ceiling_low", "ceiling_high", "agree", "alpha", "n_claims", "n_annotators")
    for (dataset,), rows in by_keys(audited.rows("ceiling"), "dataset"):
        one = rows[0]
        if one["ceiling"] is None:
            continue
        told = f"On {dataset} one annotator agrees with the others to a BAcc of {percent(one['ceiling'])}, the ceiling"
        beyond = [row["evaluator"] for row in rows if surely_below(row, "room", 0)]
        if beyond:
            agree = "agrees" if len(beyond) == 1 else "agree"
            told += f" ({names(beyond)} surely {agree} with them more than that)"
        if one["ceiling"] < asked:
            sure = surely_below(one, "ceiling", asked)
            told += (
                f": {'surely ' if sure else ''}less than the {percent(asked)} that are asked of an evaluator. Beyond "
            )
            told += "the ceiling a higher BAcc is no sign of a better evaluator: get labels that people agree on."
            yield Finding("fail" if sure else "warn", None, dataset, told, evidence_of(one, *keys))
        elif surely_above(one, "ceiling", asked):
            told += f": surely above the {percent(asked)} that are asked of an evaluator."
            yield Finding("ok", None, dataset, told, evidence_of(one, *keys))


AUDIT = Audit(
    name="ceiling",
    place=131,
    title="How far annotators agree: the ceiling of any evaluator",
    question="How well do annotators agree with each other, and how far is each evaluator from that?",
    source="Krippendorff 2011 (α)",
    formula="Ceiling = BAcc of one annotator against the majority of the others, each left out in turn; BAcc = the "
    "evaluator's against the same majorities; room = ceiling − BAcc, paired.",
    text="Where annotators disagree, an evaluator can be right and be counted wrong: beyond the ceiling a higher BAcc "
    "says nothing.",
    columns={
        **shared("dataset", "evaluator"),
        "n_claims": Column("claims", "count", "claims with two judgements or more"),
        "n_annotators": Column("annotators", "count", "people who judged claims"),
        "n": Column("n", "count", "judgements with the others' majority, scored by the evaluator"),
        "n_unscored": Column("unscored", "count", "those that it did not score"),
        "agree": Column("agree", "percent", "pairs of judgements of a claim that agree"),
        "alpha": Column("Krippendorff's α", "number", "agreement beyond chance", digits=2),
        "ceiling": Column("ceiling", "percent", "BAcc of an annotator against the others", bounds=True, interval=True),
        "bacc": Column("BAcc", "percent", "the evaluator's, against the same others", bounds=True, interval=True),
        "room": Column("room", "points", "ceiling − BAcc, paired", bounds=True, interval=True),
        **shared("reason"),
    },
    compute=ceiling,
    applies=lambda judged: judged.twice,
    plots=(
        DotPlot(
            what="Evaluators, and the ceiling that annotators' agreement sets", keys=("bacc",), reference="ceiling"
        ),
    ),
    checks=(
        Check(
            "ceiling",
            "How far annotators agree",
            "an annotator's BAcc against the others is below what is asked of an evaluator",
            _low,
        ),
    ),
)
