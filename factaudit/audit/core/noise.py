"""How many responses a verifier's errors alone would make look merged (DESIGN, "What the engines compute").

A verifier that calls a false cell supported with probability f makes a response look merged when it does so for a fact
that the linked page does not support, in the cell of any other candidate: with probability 1 - (1 - f)^m, where m is
the number of such cells. f is measured on cells that are known to be false:

* decoys: rows of people whom the response cannot be about (claims column ``decoy`` is 1; they are no candidates);
* else labels: facts that people found not true (label 0) of the person whom their group is about (``given_entity``).

Pages of one name share more than such pages do with the text (a nationality, a profession), so that the floor is a
lower one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.means import percentiles
from factaudit.audit.core.rows import Row

#: Where the false cells come from, the better source first.
SOURCES = ("decoys", "labels")
_FIGURES = ("false_positive_rate", "merged_floor", "merged_excess")


def noise_floor(
    rows: Sequence[Mapping[str, Any]], intervals: Intervals | None, false_positives: float | None = None
) -> Row:
    """The noise floor of the share of merged responses and what exceeds it, over the responses that are decided.

    rows: of responses, with merged, n_open (m above) and, by source, n_false_SOURCE and n_false_SOURCE_supported.
    false_positives: f, where it is known from elsewhere.

    Returns false_positive_rate (f), n_false (the cells that it is measured on), false_positives_from (a source, or
    ``given``), merged_floor and merged_excess (= share_merged - merged_floor), the last three figures with intervals:
    responses are resampled, and f is drawn from its posterior (Jeffreys' prior), so that no error among few cells does
    not mean that there is none. None without a source.
    """
    found: Row = {"false_positives_from": None, "n_false": 0}
    found |= dict.fromkeys(f"{key}{end}" for key in _FIGURES for end in ("", "_low", "_high"))
    source = next((one for one in SOURCES if any(row[f"n_false_{one}"] for row in rows)), None)
    decided = np.array([row["merged"] is not None for row in rows], dtype=bool)
    if not decided.any() or (source is None and false_positives is None):
        return found
    merged = np.array([row["merged"] is True for row in rows], dtype=np.float64)
    cells = np.array([row["n_open"] for row in rows], dtype=np.float64)
    known = np.zeros((2, len(rows)))
    if false_positives is None:
        known = np.array([[row[f"n_false_{source}{end}"] for row in rows] for end in ("", "_supported")], dtype=float)
        rate = float(known[1].sum() / known[0].sum())
        found |= {"false_positives_from": source, "n_false": int(known[0].sum())}
    else:
        rate = false_positives
        found["false_positives_from"] = "given"
    floor = (1 - (1 - rate) ** cells[decided]).mean()
    found |= {"false_positive_rate": rate, "merged_floor": float(floor)}
    found["merged_excess"] = float(merged[decided].mean() - floor)
    if intervals is None or len(rows) < 2:
        return found
    random = np.random.default_rng(intervals.seed)
    drawn = np.full((3, intervals.replicates), np.nan)
    for number in range(intervals.replicates):
        weights = random.multinomial(len(rows), np.full(len(rows), 1 / len(rows)))
        if false_positives is None:
            n, hits = known @ weights
            f = random.beta(hits + 0.5, n - hits + 0.5)
        else:
            f = false_positives
        own = weights * decided
        if own.sum():
            base = float(own @ (1 - (1 - f) ** cells) / own.sum())
            drawn[:, number] = f, base, float(own @ merged / own.sum()) - base
    for key, values in zip(_FIGURES, drawn, strict=True):
        found[f"{key}_low"], found[f"{key}_high"] = percentiles(values, intervals)
    return found
