"""How often an evaluator is right on attributable and on unattributable claims (VC §3.1, Figure 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.groups import group_by
from factaudit.audit.core.intervals import Intervals, low_high
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.rows import MACRO, Row, number, ratio, reasons, without_interval

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
