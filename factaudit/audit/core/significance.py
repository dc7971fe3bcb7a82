"""How significantly are figures beyond a limit? The p-values come from the figures' own intervals
and are corrected for all rows of a check.

The p-value of a figure inverts its interval, so it is a test that uses clusters. The interval is
moved to either bound, so that nothing is significant that unscored claims could undo. Holm's
correction over all rows of a check keeps the probability of any false alarm at 5 %, however many
rows there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from factaudit.arrays.figures import FEWEST_CLUSTERS_FOR_T_TEST
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.result_rows import Row
from factaudit.stats.hypothesis_tests import (
    holm_adjusted_p,
    p_value_of_interval,
    select_rejectable_tests,
    sign_test_p,
)

#: The side of the limit on which a figure is bad; off: farther from 0 than the limit.
Side = Literal["over", "under", "off"]


class Tests:
    """p-values of the rows' figures against a limit, by their intervals.

    If a row has its own p-value of no difference (``p_bias`` for ``bias``), the p-value is never
    lower than it; without an interval it is the only one. Rows with neither are not tested, but
    they count in the correction.
    """

    def __init__(
        self, run: AuditedRun, rows: Sequence[Row], figure: str, is_share: bool = False
    ) -> None:
        def read(ending: str) -> np.ndarray:
            return np.array([row.get(f"{figure}{ending}") for row in rows], dtype=float)

        self.run, self.is_share = run, is_share
        self.value, self.low, self.high = read(""), read("_low"), read("_high")
        least, most = read("_min"), read("_max")
        self.least, self.most = (np.where(np.isnan(end), self.value, end) for end in (least, most))
        self.own = np.array([row.get(f"p_{figure}") for row in rows], dtype=float)
        self.has_interval = ~np.isnan(self.low) & ~np.isnan(self.high)
        self.freedom = np.array([count_degrees_of_freedom(run, row) for row in rows])
        self.can_reject = self._select_rejectable(rows)

    def _select_rejectable(self, rows: Sequence[Row]) -> np.ndarray:
        """With few clusters, a row's own p-value is at least that of the sign test when all
        clusters err in the same direction. So some rows cannot become significant beside the
        others, and leave their share of the level to these (Tarone 1990)."""
        clusters = np.array([row.get("n_clusters") for row in rows], dtype=float)
        is_few = (clusters < FEWEST_CLUSTERS_FOR_T_TEST) & ~np.isnan(self.own) & self.has_interval
        least_p = np.zeros(len(rows))
        least_p[is_few] = sign_test_p(clusters[is_few], np.zeros(int(is_few.sum())))
        self.own = np.fmax(self.own, np.where(is_few, least_p, np.nan))
        return select_rejectable_tests(least_p, 1 - self.run.confidence)

    def adjust(self, limit: float, side: Side, *, has_bounds: bool = True) -> np.ndarray:
        """Holm's adjusted p-values of the hypothesis that the figure is not beyond the limit; NaN
        if it was not tested.

        has_bounds: whatever the unscored claims are; otherwise as if they were like the scored
        ones.
        """
        p = np.where(self.can_reject, self.compute(limit, side, has_bounds=has_bounds), np.nan)
        adjusted = np.full(len(p), np.nan)
        adjusted[self.can_reject] = holm_adjusted_p(np.nan_to_num(p, nan=1.0)[self.can_reject])
        return np.where(np.isnan(p), np.nan, adjusted)

    def are_within(self, limit: float, side: Side) -> np.ndarray:
        """bool: which figures are within the limit by their intervals and their bounds."""
        low, high = self.low - (self.value - self.least), self.high + (self.most - self.value)
        return {
            "over": high <= limit,
            "under": low >= limit,
            "off": (-limit <= low) & (high <= limit),
        }[side]

    def compute(self, limit: float, side: Side, *, has_bounds: bool = True) -> np.ndarray:
        """Two-sided p-values without adjustment."""
        over = self._on_one_side(limit, 1, has_bounds)
        under = self._on_one_side(-limit if side == "off" else limit, -1, has_bounds)
        p = {"over": over, "under": under, "off": np.minimum(over, under)}[side]
        return np.where(self.has_interval, p, self.own)

    def _on_one_side(self, limit: float, side: int, has_bounds: bool) -> np.ndarray:
        half, end = (
            (self.value - self.low, self.low) if side > 0 else (self.high - self.value, self.high)
        )
        point = (self.least if side > 0 else self.most) if has_bounds else self.value
        # The variance is that at the limit, not at the interval's end.
        if self.is_share and 0 < limit < 1:
            half = half * np.sqrt(limit * (1 - limit) / np.maximum(end * (1 - end), 1e-12))
        p = p_value_of_interval(side * (point - limit), half, self.freedom, self.run.confidence)
        # A figure that is not significantly beyond 0 is not significantly beyond its limit.
        if side * limit >= 0:
            p = np.where(np.isnan(self.own), p, np.maximum(p, self.own))
        return p


def count_degrees_of_freedom(run: AuditedRun, row: Row) -> float:
    """One less than the number of clusters on which a row rests: its own number, else the largest
    possible one of its data set."""
    if row.get("n_clusters") is not None:
        return float(row["n_clusters"] - 1)
    counts = [run.cluster_counts.get(str(row.get("dataset"))), row.get("n")]
    return float(min((count for count in counts if count is not None), default=1e6) - 1)
