"""How often an evaluator is right on attributable and on unattributable claims (VC §3.1, Figure 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.caveats import CAVEATS
from factaudit.audit.core.checks import MAX_GAP, by_evaluator, evidence_of, names, of_datasets, pair_name
from factaudit.audit.core.compared import LIKE_BACC, apart, like_pairs, overall
from factaudit.audit.core.decisions import (
    limits_of,
    range_of,
    surely_above,
    surely_below,
    surely_beyond,
    surely_within,
    unsure_share,
)
from factaudit.audit.core.declare import Answer, Audit, Audited, Check, Column, Decision, Finding, Glance, Unit, shared
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.mover import combine
from factaudit.audit.core.plot import DotPlot
from factaudit.audit.core.rows import (
    ALL,
    MACRO,
    Row,
    is_total,
    number,
    ratio,
    reasons,
    without_interval,
)
from factaudit.audit.core.tallies import LABEL, Tallies, says, states
from factaudit.audit.core.words import percent, points, round_points, with_interval
from factaudit.text.printable import count

KEYS = ("tpr", "tnr", "fpr", "fnr", "bacc", "ppr", "gap")
_CLASSES = ("unattributable", "attributable")


def rates(judged: Tallies, *, by: Sequence[str] = ("dataset",), intervals: Intervals | None = None) -> list[Row]:
    """TPR, TNR, BAcc, PPR and the TPR - TNR gap of each evaluator, over any columns of the claims table.

    A row per group of ``by`` and evaluator: the keys of ``by``, evaluator, n (labelled and scored claims; all scored
    ones where none is labelled), n_unscored, n_guessed, n_unlabelled, n_attributable, n_unattributable, then tpr, tnr,
    fpr, fnr, bacc, ppr, gap, each with ``_min`` and ``_max`` (what it could be, whatever the missing predictions) and,
    with intervals, ``_low`` and ``_high``. Where ``by`` has dataset, a row of dataset ``__macro__`` has the unweighted
    mean of each figure over the datasets where it is defined.
    """
    groups = judged.group("claim", by)
    rows: list[tuple[int, Row]] = []
    means: list[Row] = []
    for at, evaluator in enumerate(judged.evaluators):
        counts, sure = (judged.count(groups, LABEL, field(at)) for field in (says, states))
        over_all = nine.unlabelled(counts)
        limits = None
        if intervals is not None:
            clusters = judged.clusters_of(groups, LABEL, says(at))
            limits = nine.rate_limits(clusters, over_all, intervals.confidence)
        figures = nine.with_ends(nine.rates(counts, over_all), nine.rate_bounds(sure), limits)
        sizes = nine.sizes(counts, sure) | {
            "n_attributable": counts[:, 1, :2].sum(-1),
            "n_unattributable": counts[:, 0, :2].sum(-1),
        }
        for place, key in enumerate(groups.keys):
            row: Row = {**key, "evaluator": evaluator}
            row |= {name: int(values[place]) for name, values in sizes.items()} | {"n_datasets": 1}
            row |= {name: number(values[place]) for name, values in figures.items()}
            rows.append((place, row | {"reason": reasons([*_undefined(counts[place], row), without_interval(row)])}))
        if "dataset" in by:
            means += _macro(groups.keys, evaluator, sizes, figures)
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])] + means


def _macro(
    keys: list[Row],
    evaluator: str,
    sizes: dict[str, np.ndarray],
    figures: dict[str, np.ndarray],
) -> list[Row]:
    """The unweighted means over datasets, for each combination of the other columns."""
    members: dict[tuple[object, ...], list[int]] = {}
    for place, group in enumerate(keys):
        members.setdefault(tuple(v for k, v in group.items() if k != "dataset"), []).append(place)
    rows = []
    for places in members.values():
        row: Row = {**keys[places[0]], "dataset": MACRO, "evaluator": evaluator}
        row |= {name: int(values[places].sum()) for name, values in sizes.items()} | {"n_datasets": len(places)}
        row |= {name: number(_mean(values[places])) for name, values in figures.items()}
        # Where a data set is not scored, it has bounds and no figure: the mean of bounds is over more data sets.
        for key in KEYS:
            if row[key] is not None:
                row[f"{key}_min"] = min(row[f"{key}_min"], row[key])
                row[f"{key}_max"] = max(row[f"{key}_max"], row[key])
        defined = {key: [place for place in places if not np.isnan(figures[key][place])] for key in KEYS}
        for key in KEYS if "tpr_low" in figures else ():
            # The data sets are independent.
            ends = [figures[f"{key}_{end}"][defined[key]] for end in ("low", "high")]
            weights = np.full(len(defined[key]), 1 / max(1, len(defined[key])))
            _, (low, high) = combine(figures[key][defined[key]], (ends[0], ends[1]), weights)
            row |= {f"{key}_low": number(low) if defined[key] else None}
            row |= {f"{key}_high": number(high) if defined[key] else None}
        lacking = {key: len(places) - len(defined[key]) for key in KEYS}
        undefined = [
            f"undefined in {n} of {len(places)} datasets: {', '.join(key for key in KEYS if lacking[key] == n)}"
            for n in dict.fromkeys(lacking.values())
            if n
        ]
        rows.append(row | {"reason": reasons([*undefined, without_interval(row)])})
    return rows


def _mean(values: np.ndarray) -> np.ndarray:
    """The mean along the first axis of what is defined; NaN where nothing is."""
    return ratio(np.nansum(values, axis=0), (~np.isnan(values)).sum(axis=0))


def _undefined(counts: np.ndarray, row: Row) -> list[str]:
    scored = counts[:, :2].sum(-1)
    found = [
        f"no {_CLASSES[label]} claim is labelled and scored" if counts[label].sum() else f"no {_CLASSES[label]} label"
        for label in (1, 0)
        if scored[label] == 0
    ]
    if nine.unlabelled(counts):
        found.append("ppr is over all scored claims" if row["n"] else "no claim is scored")
    return found


# ----------------------------------------------------------------------------------------------------------- findings


def _gap(audited: Audited) -> Iterator[Finding]:
    """TPR and TNR more than 20 points apart: the evaluator leans to one answer."""
    for evaluator, rows in by_evaluator(audited.per_dataset("rates", "gap")):
        far = [row for row in rows if abs(row["gap"]) > MAX_GAP]
        sure = [row for row in far if surely_beyond(row, "gap", MAX_GAP)]
        if far:
            worst = max(sure or far, key=lambda row: abs(row["gap"]))
            passes = worst["gap"] > 0
            worse, better = ("unattributable", "attributable") if passes else ("attributable", "unattributable")
            low, high = sorted((worst["tpr"], worst["tnr"]))
            where = of_datasets(sure, rows)
            total = (
                f" Its TPR and TNR are surely over {round_points(MAX_GAP)} points apart{where}."
                if where and sure
                else ""
            )
            unsure = " (its interval or bounds leave open whether they are over 20 points apart)"
            yield Finding(
                "fail" if sure else "warn",
                evaluator,
                worst["dataset"],
                f"{evaluator} recognises {percent(high)} of {better} but only {percent(low)} of {worse} claims on "
                f"{worst['dataset']}{'' if sure else unsure}: "
                f"check a sample of what it {'passes' if passes else 'rejects'} before you rely on it.{total}",
                evidence_of(worst, "tpr", "tnr", "gap", "gap_low", "gap_high", "n") | {"n_sure": len(sure)},
            )
        elif rows and all(surely_within(row, "gap", MAX_GAP) for row in rows):
            widest = max(rows, key=lambda row: abs(row["gap"]))
            yield Finding(
                "ok",
                evaluator,
                None,
                f"{evaluator}'s TPR and TNR are surely within {round_points(MAX_GAP)} points of each other everywhere "
                f"(widest: {points(abs(widest['gap']))} on {widest['dataset']}).",
                evidence_of(widest, "tpr", "tnr", "gap"),
            )


def _bacc_tie(audited: Audited) -> Iterator[Finding]:
    """Two evaluators of like BAcc, one of which passes and one of which rejects too much."""
    rows = {(row["dataset"], row["evaluator"]): row for row in audited.per_dataset("rates", "gap")}
    found = []
    pairs = like_pairs(audited)
    for first, second in pairs:
        for dataset in dict.fromkeys(dataset for dataset, _ in rows):
            a, b = rows.get((dataset, first)), rows.get((dataset, second))
            if a and b and a["gap"] * b["gap"] < 0 and abs(a["gap"] - b["gap"]) > MAX_GAP:
                sure = surely_beyond(a, "gap", 0) and surely_beyond(b, "gap", 0)
                found.append((sure, abs(a["gap"] - b["gap"]), a, b))
    if not found:
        return
    sure, _, a, b = max(found, key=lambda each: each[:2])
    passes, rejects = (a, b) if a["gap"] > 0 else (b, a)
    told = {pair_name(each[2], each[3]) for each in found}
    yield Finding(
        "warn",
        pair_name(a, b),
        a["dataset"],
        f"{a['evaluator']} and {b['evaluator']} have like BAcc but opposite habits on {a['dataset']}: choose "
        f"{rejects['evaluator']} to catch errors (TNR {percent(rejects['tnr'])} against {percent(passes['tnr'])}), "
        f"{passes['evaluator']} to keep good claims (TPR {percent(passes['tpr'])} against {percent(rejects['tpr'])})."
        + (f" So do {len(told)} of {len(pairs)} pairs of like BAcc somewhere." if len(pairs) > 1 else ""),
        {f"{key}_{side}": row[key] for side, row in (("a", a), ("b", b)) for key in ("bacc", "tpr", "tnr")},
    )


# ---------------------------------------------------------------------------------------------- the report's opening


def _best(rows: Sequence[Row]) -> list[str]:
    scored = [row for row in overall(rows).values() if row.get("bacc") is not None]
    return [row["evaluator"] for row in sorted(scored, key=lambda row: -row["bacc"])]


def _opening(audited: Audited, evaluator: str | None) -> str:
    """How good the best evaluator is, from which ones it can be told, and on what it does best and worst."""
    rows, floors = audited.rows("rates"), audited.floors
    if evaluator is None:
        return (
            "No evaluator has one balanced accuracy for all claims here (scored claims with labels of both classes are "
            "needed); "
            "the tables below say what can be said of each part."
        )
    of = overall(rows)
    ranked = [of[name] for name in _best(rows)]
    best = of[evaluator]
    others = [row for row in ranked if row is not best and row["evaluator"] not in floors]
    over = " as the mean over datasets" if best.get("dataset") == MACRO else ""
    figure = _told(best, limits_of(audited).max_unscored)
    where = "On the same claims " if audited.rows("differences") else ""
    below = [row["evaluator"] for row in others if apart(audited, best, row["evaluator"])]
    alike = [row["evaluator"] for row in others if row["evaluator"] not in below]
    if others and not alike:
        said = [f"{evaluator} has the highest balanced accuracy of these evaluators: {figure}{over}."]
        said.append(f"{where}it is surely above {names(below)}." if where else f"It is surely above {names(below)}.")
    elif alike:
        told = names([f"{name} ({percent(of[name]['bacc'])})" for name in alike])
        head = f"{evaluator} has a balanced accuracy of {figure}{over}"
        said = [f"{head}; {where.lower()}these labels do not tell it from {told}."]
        if below:
            said.append(f"It is surely above {names(below)}.")
    else:
        said = [f"{evaluator} has a balanced accuracy of {figure}{over}."]
    said += _habits(audited, best)
    beaten = next((row for row in ranked if row["evaluator"] in floors), None)
    if beaten is not None and evaluator not in floors and not apart(audited, best, beaten["evaluator"]):
        said.append(
            f"No evaluator here is shown to do better than {beaten['evaluator']}, which reads nothing "
            f"({percent(beaten['bacc'])})."
        )
    parts = [row for row in rows if row["evaluator"] == evaluator and not is_total(row.get("dataset"))]
    parts = sorted((row for row in parts if row.get("bacc") is not None), key=lambda row: row["bacc"])
    if len({row["dataset"] for row in parts}) == len(parts) > 1:
        worst, top = parts[0], parts[-1]
        ends = range_of(worst, "bacc"), range_of(top, "bacc")
        if ends[0] is not None and ends[1] is not None and ends[0][1] < ends[1][0]:
            said.append(
                f"It is surely better on {top['dataset']} ({percent(top['bacc'])}) than on {worst['dataset']} "
                f"({percent(worst['bacc'])})."
            )
    return " ".join(said)


def _told(row: Row, most: float) -> str:
    """BAcc with its interval; its bounds instead, where much is unscored or guessed."""
    lacking = (row.get("n_unscored") or 0) + (row.get("n_guessed") or 0)
    if unsure_share(row) > most and row.get("bacc_min") is not None:
        return f"{percent(row['bacc_min'])} to {percent(row['bacc_max'])} ({lacking:,} claims are unscored or guessed)"
    return with_interval(_BACC, row, "bacc")


def _habits(audited: Audited, best: Row) -> list[str]:
    if not surely_above(best, "bacc", 0.5):
        return ["That cannot be told from guessing (50 %): do not rely on it to tell attributable claims from others."]
    if best.get("tpr") is None or best.get("tnr") is None:
        return []
    said = [
        f"On as many attributable as unattributable claims it would judge about {round(100 * (1 - best['bacc']))} of "
        f"100 wrongly: it finds {percent(best['tpr'])} of the attributable (TPR) and {percent(best['tnr'])} of the "
        "unattributable ones (TNR)."
    ]
    mine = [row for row in audited.per_dataset("rates", "ppr") if row["evaluator"] == best["evaluator"]]
    n = sum(row["n"] for row in mine)
    errors, others = (sum(row.get(key) or 0 for row in mine) for key in ("n_unattributable", "n_attributable"))
    if not n or not errors + others or errors + others != n:
        return said
    predicted, labelled = sum((1 - row["ppr"]) * row["n"] for row in mine) / n, errors / n
    of_all = f"it calls {percent(predicted)} of these claims errors, the labels {percent(labelled)}"
    if surely_above(best, "gap", MAX_GAP):
        said.append(f"It leans towards “attributable”, so that errors slip through; {of_all}.")
    elif surely_below(best, "gap", -MAX_GAP):
        said.append(f"It leans towards “unattributable”, so that good claims are rejected; {of_all}.")
    return said


def _find_errors(audited: Audited, evaluator: str) -> Answer | None:
    """May single errors be found with it?"""
    row, least = overall(audited.rows("rates")).get(evaluator), limits_of(audited).min_rate
    if row is None:
        return None
    if row.get("tpr") is None or row.get("tnr") is None:
        scored = count(row.get("n") or 0, "claim")
        return Answer("cannot tell", f"{scored} scored", "TPR and TNR need scored claims with labels of both classes.")
    figure = f"TPR {percent(row['tpr'])}, TNR {percent(row['tnr'])}"
    asked = f"{round(100 * least)} % of either class are asked"
    rates = {"tpr": "the attributable claims", "tnr": "the errors"}
    if all(surely_above(row, key, least) for key in rates):
        return Answer("yes", figure, f"It surely finds more than {round(100 * least)} % of the errors and of the rest.")
    tuned = overall(audited.rows("discrimination")).get(evaluator, {})
    if all(surely_above(tuned, f"tuned_{key}", least) for key in rates):
        found = f"TPR {percent(tuned['tuned_tpr'])}, TNR {percent(tuned['tuned_tnr'])}"
        return Answer("with a correction", figure, f"With a threshold tuned to each dataset: {found}, surely enough.")
    short = [key for key in rates if surely_below(row, key, least)]
    if short:
        key = min(short, key=lambda each: row[each])
        return Answer("no", figure, f"It finds {percent(row[key])} of {rates[key]}; {asked}.")
    return Answer("cannot tell", figure, f"The intervals or bounds do not say whether it is good enough: {asked}.")


def _glance_note(row: Row) -> str:
    over = {MACRO: "; rates are means over datasets", ALL: "; rates are over all claims"}
    return f"The best balanced accuracy first{over.get(row.get('dataset', ''), '')}."


# --------------------------------------------------------------------------------------------------------- declaration


def _rate(heading: str, what: str, unit: Unit = "percent", shown: bool = True, claims: str = "wrong") -> Column:
    return Column(heading, unit, what, bounds=True, interval=True, shown=shown, claims=claims)


_BACC = _rate("BAcc", "(TPR + TNR) / 2")
#: Also of the audits that compute rates of a part of the claims.
COLUMNS: dict[str, Column] = {
    **shared("dataset", "evaluator", "n", "n_unscored", "n_guessed", "n_unlabelled", "reason"),
    "n_attributable": Column("label 1", "count", "scored claims of each label"),
    "n_unattributable": Column("label 0", "count", "scored claims of each label"),
    "n_datasets": Column("datasets", "count", "how many data sets a mean is over; 1 elsewhere", shown=False),
    "tpr": _rate("TPR", "P(prediction 1 given label 1), P(prediction 0 given label 0)", claims="rejected"),
    "tnr": _rate("TNR", "P(prediction 1 given label 1), P(prediction 0 given label 0)", claims="passed"),
    "fpr": _rate("FPR", "1 − TNR, 1 − TPR", shown=False, claims="passed"),
    "fnr": _rate("FNR", "1 − TNR, 1 − TPR", shown=False, claims="rejected"),
    "bacc": _BACC,
    "ppr": _rate("PPR", "share predicted 1"),
    "gap": _rate("gap", "TPR − TNR", "points"),
}

AUDIT = Audit(
    name="rates",
    place=10,
    title="How often each evaluator is right",
    question="How often is each evaluator right on attributable and on unattributable claims?",
    source="VC §3.1, Fig. 3",
    formula="TPR = P(prediction 1 | label 1); TNR = P(prediction 0 | label 0); BAcc = (TPR + TNR) / 2; PPR = share "
    "predicted 1; gap = TPR − TNR. FPR = 1 − TNR and FNR = 1 − TPR are in the CSV.",
    text="Against the labels, on claims that people judged. A high TPR with a low TNR is an evaluator that says yes "
    "too readily; the same balanced accuracy can hide opposite habits (VC Fig. 3).",
    columns=COLUMNS,
    options={"by": "columns of the claims"},
    compute=rates,
    tallies=True,
    counts="joint",
    plots=(
        DotPlot(
            what="TPR, TNR and BAcc of evaluators across datasets",
            keys=("tpr", "tnr", "bacc"),
            guides={"bacc": 0.5},
            per_page=16,
        ),
    ),
    checks=(
        Check("gap", "TPR and TNR far apart", f"TPR and TNR are more than {round_points(MAX_GAP)} points apart", _gap),
        Check(
            "bacc_tie",
            "Like BAcc, unlike habits",
            f"two evaluators of like BAcc (within {round_points(LIKE_BACC)} points) have opposite habits",
            _bacc_tie,
        ),
        *CAVEATS,
    ),
    best=_best,
    opening=_opening,
    decides=(Decision("find single errors", _find_errors),),
    glance=Glance(
        {key: COLUMNS[key] for key in ("bacc", "tpr", "tnr")},
        lambda rows, evaluator: overall(rows).get(evaluator),
        _glance_note,
    ),
)
