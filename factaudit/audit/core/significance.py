"""Which of many figures are significantly beyond a limit? Corrected for all that a check looks at in a run.

The p-value of a figure is that of its own interval: a test that knows clusters. Holm's correction over all rows of the
run that a check looks at keeps the chance of one false alarm or more at 5 %, however many rows there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from factaudit.audit.core.audit_declaration import DEFAULT_CONFIDENCE as DEFAULT_CONFIDENCE
from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.core.decision_limits import widen_interval_for_decision_limits
from factaudit.audit.core.result_rows import Row
from factaudit.stats.multiplicity import holm_adjusted_p, p_value_of_interval


def read_confidence(audited_run: AuditedRun) -> float:
    """The confidence of the run's intervals."""
    return float(audited_run.about.get("confidence") or DEFAULT_CONFIDENCE)


def p_above_limit(audited_run: AuditedRun, row: Row, key: str, limit: float, is_share: bool = False) -> float:
    """The two-sided p-value of "the figure is not above the limit", by its interval and its bounds; NaN without one.

    is_share: the interval is Wilson's, so that the test is the score test at the limit. A row that has its own p-value
    of no difference (``p_bias`` of ``bias``) is never taken for more significant than that.
    """
    return _compute_p_value_on_one_side(audited_run, row, key, limit, 1, is_share)


def p_below_limit(audited_run: AuditedRun, row: Row, key: str, limit: float, is_share: bool = False) -> float:
    """As `p_above_limit`, for a figure under the limit."""
    return _compute_p_value_on_one_side(audited_run, row, key, limit, -1, is_share)


def p_beyond_limit(audited_run: AuditedRun, row: Row, key: str, limit: float) -> float:
    """The p-value of "the figure is no farther than ``limit`` from 0"."""
    return min(p_above_limit(audited_run, row, key, limit), p_below_limit(audited_run, row, key, -limit))


def select_significant_rows(
    audited_run: AuditedRun, rows: Sequence[Row], p_values: Iterable[float], n_tests: int | None = None
) -> list[Row]:
    """The rows whose p-values, corrected by Holm for the number of rows, are below the run's level.

    A row without a p-value (NaN) is not tested, and counts in the correction all the same. n_tests: how many tests
    they are of, where p-values are already corrected for others.
    """
    p, level = np.array(list(p_values), dtype=float), 1 - read_confidence(audited_run)
    audited_run.test_counts.append(int((~np.isnan(p)).sum()) if n_tests is None else n_tests)
    p = np.where(np.isnan(p), 1.0, p)
    return [row for row, adjusted in zip(rows, holm_adjusted_p(p), strict=True) if adjusted < level] if len(p) else []


def select_rows_beyond_limit(audited_run: AuditedRun, rows: Sequence[Row], key: str, limit: float) -> list[Row]:
    """The rows whose figure is significantly farther than ``limit`` from 0 (Holm over ``rows``)."""
    return select_significant_rows(audited_run, rows, [p_beyond_limit(audited_run, row, key, limit) for row in rows])


def p_above_other_figure(audited_run: AuditedRun, row: Row, key: str, other_row: Row, other_key: str) -> float:
    """The p-value of "a figure is not above another one", as if the two were independent; NaN without intervals."""
    mine, its = widen_interval_for_decision_limits(row, key), widen_interval_for_decision_limits(other_row, other_key)
    if mine is None or its is None:
        return float("nan")
    half, other_half = row[key] - row[f"{key}_low"], other_row[f"{other_key}_high"] - other_row[other_key]
    return _normal_or_t_p(audited_run, row, (mine[0] + half) - (its[1] - other_half), (half**2 + other_half**2) ** 0.5)


def _normal_or_t_p(audited_run: AuditedRun, row: Row, distance: float, half_width: float) -> float:
    freedom = np.array(significance_degrees_of_freedom(audited_run, row))
    return float(p_value_of_interval(np.array(distance), np.array(half_width), freedom, read_confidence(audited_run)))


def _compute_p_value_on_one_side(
    audited_run: AuditedRun, row: Row, key: str, limit: float, side: int, is_share: bool
) -> float:
    ends, value = widen_interval_for_decision_limits(row, key), row.get(key)
    if ends is None or value is None:
        return float("nan")
    low, high = row[f"{key}_low"], row[f"{key}_high"]
    # Bounds move the interval as a whole: its half-width is that of the interval as it stands in the row.
    half, end = (value - low, low) if side > 0 else (high - value, high)
    distance = side * ((ends[0] if side > 0 else ends[1]) - limit) + half
    if distance <= 0:
        return 1.0
    if is_share and 0 < limit < 1:  # the variance at the limit, not at the interval's end
        half *= (limit * (1 - limit) / max(end * (1 - end), 1e-12)) ** 0.5
    # Nothing is significantly beyond a limit that is not significantly beyond 0.
    own = row.get(f"p_{key}") if side * limit >= 0 else None
    return max(_normal_or_t_p(audited_run, row, distance, half), own if own is not None else 0.0)


def significance_degrees_of_freedom(audited_run: AuditedRun, row: Row) -> float:
    """One less than the clusters that a row rests on: its own number of them, else what its data set has at most."""
    if row.get("n_clusters") is not None:
        return float(row["n_clusters"] - 1)
    known = {each.get("dataset"): each.get("n_clusters") for each in audited_run.about.get("claims") or []}
    counts = [known.get(row.get("dataset")), row.get("n")]
    return float(min((count for count in counts if count is not None), default=1e6) - 1)
