"""How often an evaluator is right on attributable and on unattributable claims (VC §3.1, Figure 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.caveats import CAVEATS
from factaudit.audit.core.checks import MAX_GAP, beyond, by_evaluator, by_keys, evidence_of, pair_name
from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, Glance, Unit, shared
from factaudit.audit.core.groups import group_by
from factaudit.audit.core.intervals import Intervals, low_high
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.plot import DotPlot
from factaudit.audit.core.rows import (
    ALL,
    MACRO,
    Row,
    is_total,
    number,
    ratio,
    reasons,
    repeats,
    without_interval,
)
from factaudit.audit.core.words import percent, points, span, with_interval

KEYS = ("tpr", "tnr", "fpr", "fnr", "bacc", "ppr", "gap")
#: What a rate needs at least one labelled and scored claim of.
_NEEDS = {"tpr": (1,), "fnr": (1,), "tnr": (0,), "fpr": (0,), "bacc": (1, 0), "gap": (1, 0), "ppr": ()}
_CLASSES = ("unattributable", "attributable")


def rates(judged: Judged, *, by: Sequence[str] = ("dataset",), intervals: Intervals | None = None) -> list[Row]:
    """TPR, TNR, BAcc, PPR and the TPR - TNR gap of each evaluator, over any columns of the claims table.

    A row per group of ``by`` and evaluator: the keys of ``by``, evaluator, n (labelled and scored claims; all scored
    ones where none is both), n_unscored, n_unlabelled, n_attributable, n_unattributable, then tpr, tnr, fpr, fnr, bacc,
    ppr, gap, each with ``_min`` and ``_max`` (what it could be, whatever the missing predictions) and, with intervals,
    ``_low`` and ``_high``. Where ``by`` has dataset, a row of dataset ``__macro__`` has the unweighted mean of each
    figure over the datasets where it is defined.
    """
    groups = group_by(judged.claims, by)
    rows: list[tuple[int, Row]] = []
    means: list[Row] = []
    for at, evaluator in enumerate(judged.evaluators):
        counts = nine.count(groups.codes, len(groups.keys), judged.label, judged.prediction[at])
        over_all = nine.unlabelled(counts)
        figures: dict[str, np.ndarray] = {}
        bounds = nine.rate_bounds(counts)
        for name, values in nine.rates(counts, over_all).items():
            figures |= {name: values, f"{name}_min": bounds[name][0], f"{name}_max": bounds[name][1]}
        replicates = None
        if intervals is not None:
            drawn = nine.replicates(judged, at, groups.codes, over_all, intervals)
            replicates = nine.rates(drawn, over_all)
            for name, values in replicates.items():
                # A class with one claim is either drawn or not: its rate never varies.
                few = [counts[:, label, :2].sum(-1) < 2 for label in _NEEDS[name]]
                values[:, np.any(few, axis=0) if few else np.zeros(len(counts), bool)] = np.nan
            figures |= low_high(intervals, replicates)
        sizes = nine.sizes(counts) | {
            "n_attributable": counts[:, 1, :2].sum(-1),
            "n_unattributable": counts[:, 0, :2].sum(-1),
        }
        for place, key in enumerate(groups.keys):
            row: Row = {**key, "evaluator": evaluator}
            row |= {name: int(values[place]) for name, values in sizes.items()} | {"n_datasets": 1}
            row |= {name: number(values[place]) for name, values in figures.items()}
            rows.append((place, row | {"reason": reasons([*_undefined(counts[place], row), without_interval(row)])}))
        if "dataset" in by:
            means += _macro(groups.keys, evaluator, sizes, figures, replicates, intervals)
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])] + means


def _macro(
    keys: list[Row],
    evaluator: str,
    sizes: dict[str, np.ndarray],
    figures: dict[str, np.ndarray],
    replicates: dict[str, np.ndarray] | None,
    intervals: Intervals | None,
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
        defined = {key: [place for place in places if not np.isnan(figures[key][place])] for key in KEYS}
        if intervals is not None and replicates is not None:
            # A replicate is of use only where the datasets of the mean are all defined in it.
            drawn = {key: replicates[key][:, defined[key]].mean(1) for key in KEYS if defined[key]}
            row |= {name: number(value) for name, value in low_high(intervals, drawn).items()}
        lacking = {key: len(places) - len(defined[key]) for key in KEYS}
        undefined = [f"{key} is undefined in {n} of {len(places)} datasets" for key, n in lacking.items() if n]
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

#: Evaluators whose BAccs are no further apart are alike by BAcc.
LIKE_BACC = 0.02


def _gap(audited: Audited) -> Iterator[Finding]:
    """TPR and TNR more than 20 points apart: the evaluator leans to one answer."""
    for evaluator, rows in by_evaluator(audited.per_dataset("rates", "gap")):
        bad = [row for row in rows if abs(row["gap"]) > MAX_GAP]
        for row in bad:
            passes = row["gap"] > 0
            worse, better = ("unattributable", "attributable") if passes else ("attributable", "unattributable")
            low, high = sorted((row["tpr"], row["tnr"]))
            yield Finding(
                beyond(row, "gap", MAX_GAP if passes else -MAX_GAP),
                evaluator,
                row["dataset"],
                f"On {row['dataset']}, {evaluator} recognises {percent(high)} of {better} but only "
                f"{percent(low)} of {worse} claims: check a sample of what it "
                f"{'passes' if passes else 'rejects'} before you rely on it.",
                evidence_of(row, "tpr", "tnr", "gap", "gap_low", "gap_high", "n"),
            )
        if rows and not bad:
            widest = max(rows, key=lambda row: abs(row["gap"]))
            yield Finding(
                "ok",
                evaluator,
                None,
                f"{evaluator}'s TPR and TNR are at most {points(MAX_GAP)} points apart everywhere "
                f"(widest: {points(abs(widest['gap']))} on {widest['dataset']}).",
                evidence_of(widest, "tpr", "tnr", "gap"),
            )


def _bacc_tie(audited: Audited) -> Iterator[Finding]:
    """Two evaluators of like BAcc, one of which passes and one of which rejects too much."""
    for a, b in like_pairs(audited):
        apart = abs(a["gap"] - b["gap"])
        if a["gap"] * b["gap"] >= 0 or apart <= MAX_GAP:
            continue
        passes, rejects = (a, b) if a["gap"] > 0 else (b, a)
        yield Finding(
            "warn",
            pair_name(a, b),
            a["dataset"],
            f"On {a['dataset']}, {a['evaluator']} and {b['evaluator']} have like BAcc ({percent(a['bacc'])} and "
            f"{percent(b['bacc'])}) but opposite habits: choose {rejects['evaluator']} to catch errors (TNR "
            f"{percent(rejects['tnr'])}), {passes['evaluator']} to keep good claims (TPR {percent(passes['tpr'])}).",
            {
                f"{key}_{side}": row[key]
                for side, row in (("a", a), ("b", b))
                for key in ("evaluator", "bacc", "tpr", "tnr")
            },
        )


def like_pairs(audited: Audited) -> Iterator[tuple[Row, Row]]:
    """Pairs of rows of `rates` on the same dataset whose BAccs are alike."""
    for _, rows in by_keys(audited.per_dataset("rates", "bacc"), "dataset"):
        for at, a in enumerate(rows):
            for b in rows[at + 1 :]:
                if abs(a["bacc"] - b["bacc"]) <= LIKE_BACC:
                    yield a, b


# ---------------------------------------------------------------------------------------------- the report's opening


def overall(rows: Sequence[Row]) -> dict[str, Row]:
    """Each evaluator's one row that stands for all claims: the mean over datasets, else its only row."""
    found: dict[str, Row] = {}
    for evaluator in dict.fromkeys(row["evaluator"] for row in rows):
        mine = [row for row in rows if row["evaluator"] == evaluator and not repeats(row)]
        choices = [[row for row in mine if row.get("dataset") == total] for total in (MACRO, ALL)]
        one = next((only[0] for only in [*choices, mine] if len(only) == 1), None)
        if one is not None:
            found[evaluator] = one
    return found


def _best(rows: Sequence[Row]) -> list[str]:
    scored = [row for row in overall(rows).values() if row.get("bacc") is not None]
    return [row["evaluator"] for row in sorted(scored, key=lambda row: -row["bacc"])]


def _opening(audited: Audited, evaluator: str | None) -> str:
    """How good the best evaluator is, whether the next one is clearly worse, and on what it does best and worst."""
    rows, floors = audited.rows("rates"), audited.floors
    if evaluator is None:
        return (
            "No evaluator has one balanced accuracy for all claims here (labels of both classes are needed); "
            "the tables below say what can be said of each part."
        )
    of = overall(rows)
    ranked = [of[name] for name in _best(rows)]
    best = of[evaluator]
    others = [row for row in [r for r in ranked if r["evaluator"] not in floors] or ranked if row is not best]
    over = " as the mean over datasets" if best.get("dataset") == MACRO else ""
    head = (
        f"{evaluator} has a balanced accuracy of"
        if not others
        else (f"{evaluator} has the highest balanced accuracy of these evaluators:")
    )
    said = [f"{head} {with_interval(_BACC, best, 'bacc')}{over}.", *_habits(best)]
    if others:
        said.append(_second(best, others[0], audited.rows("differences")))
    beaten = next((row for row in ranked if row["evaluator"] in floors), None)
    if beaten is not None and evaluator not in floors and best["bacc"] <= beaten["bacc"]:
        floor = f"{beaten['evaluator']}, which reads nothing ({percent(beaten['bacc'])})"
        said.append(f"No evaluator here does better than {floor}.")
    parts = [row for row in rows if row["evaluator"] == evaluator and not is_total(row.get("dataset"))]
    parts = sorted((row for row in parts if row.get("bacc") is not None), key=lambda row: row["bacc"])
    if len({row["dataset"] for row in parts}) == len(parts) > 1:
        (worst, lowest), (top, highest) = ((row["dataset"], percent(row["bacc"])) for row in (parts[0], parts[-1]))
        said.append(f"{evaluator} does best on {top} ({highest}) and worst on {worst} ({lowest}).")
    return " ".join(said)


def _habits(best: Row) -> list[str]:
    low = best.get("bacc_low")
    if best["bacc"] <= 0.5 or (low is not None and low <= 0.5):
        return ["That cannot be told from guessing (50 %): do not rely on it to tell attributable claims from others."]
    if best.get("tpr") is None or best.get("tnr") is None:
        return []
    said = [
        f"On as many attributable as unattributable claims it would judge about {round(100 * (1 - best['bacc']))} of "
        f"100 wrongly: it finds {percent(best['tpr'])} of the attributable (TPR) and {percent(best['tnr'])} of the "
        "unattributable ones (TNR)."
    ]
    gap = best["tpr"] - best["tnr"]
    if gap >= MAX_GAP:
        said.append("It leans towards “attributable”: errors slip through, and a predicted error rate tends to be low.")
    elif gap <= -MAX_GAP:
        said.append("It leans towards “unattributable”: many of the errors that it reports are none.")
    return said


def _second(first: Row, second: Row, differences: Sequence[Row]) -> str:
    """The runner-up, and whether the claims settle which of the two is better: paired where that was computed."""
    text = f"{second['evaluator']} follows with {with_interval(_BACC, second, 'bacc')}"
    pair = {first["evaluator"], second["evaluator"]}
    for row in differences:
        same = {row["evaluator_a"], row["evaluator_b"]} == pair and row.get("key") == "bacc"
        low, high = row.get("difference_low"), row.get("difference_high")
        if same and row.get("dataset") == first.get("dataset") and low is not None and high is not None:
            if low <= 0 <= high:
                return f"{text}; on the same claims the difference is within chance, so neither is shown to be better."
            low, high = sorted((abs(low), abs(high)))
            apart = span(Column("", "points", signed=False), low, high)
            return f"{text}; on the same claims the difference is clear ({apart} points)."
    low, high = first.get("bacc_low"), second.get("bacc_high")
    if low is not None and high is not None and low <= high:
        text += "; their intervals overlap, so which of the two is better is not settled by these claims"
    return f"{text}."


def _glance_note(row: Row) -> str:
    over = {MACRO: "; rates are means over datasets", ALL: "; rates are over all claims"}
    return f"The best balanced accuracy first{over.get(row.get('dataset', ''), '')}."


# --------------------------------------------------------------------------------------------------------- declaration


def _rate(heading: str, what: str, unit: Unit = "percent", shown: bool = True) -> Column:
    return Column(heading, unit, what, bounds=True, interval=True, shown=shown)


_BACC = _rate("BAcc", "(TPR + TNR) / 2")
#: Also of the audits that compute rates of a part of the claims.
COLUMNS: dict[str, Column] = {
    **shared("dataset", "evaluator", "n", "n_unscored", "n_unlabelled", "reason"),
    "n_attributable": Column("label 1", "count", "scored claims of each label"),
    "n_unattributable": Column("label 0", "count", "scored claims of each label"),
    "n_datasets": Column("datasets", "count", "how many data sets a mean is over; 1 elsewhere", shown=False),
    "tpr": _rate("TPR", "P(prediction 1 given label 1), P(prediction 0 given label 0)"),
    "tnr": _rate("TNR", "P(prediction 1 given label 1), P(prediction 0 given label 0)"),
    "fpr": _rate("FPR", "1 − TNR, 1 − TPR", shown=False),
    "fnr": _rate("FNR", "1 − TNR, 1 − TPR", shown=False),
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
        Check("gap", "TPR and TNR far apart", f"TPR and TNR are more than {points(MAX_GAP)} points apart", _gap),
        Check(
            "bacc_tie",
            "Like BAcc, unlike habits",
            f"two evaluators of like BAcc (within {points(LIKE_BACC)} points) have opposite habits",
            _bacc_tie,
        ),
        *CAVEATS,
    ),
    best=_best,
    opening=_opening,
    glance=Glance(
        {key: COLUMNS[key] for key in ("bacc", "tpr", "tnr")},
        lambda rows, evaluator: overall(rows).get(evaluator),
        _glance_note,
    ),
)
