"""What can be said of published rates without numbers of claims, where the counts only fit the
rates?

Such numbers give the published rates, and with them orders of systems and corrections. They are not
unique, so what follows from them alone is not shown as if it had been observed: numbers of claims,
tests, power, intervals and bounds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from factaudit.audit.core.result_rows import Row
from factaudit.text.display_text import join_reasons

UNKNOWN_COUNTS = "numbers of claims are not published"
_COUNT_FIGURES = re.compile(
    r"n_(?!systems$|datasets$|calibrations$|pairs).*|n|calibration_errors|p_.*|"
    r".*_(low|high|min|max)"
)


def blank_unknown_counts(rows: Sequence[Row]) -> list[Row]:
    """The rows with these figures null, and the reason why."""
    blanked = []
    for row in rows:
        left = {key: None if _COUNT_FIGURES.fullmatch(key) else value for key, value in row.items()}
        left["reason"] = join_reasons([UNKNOWN_COUNTS, row.get("reason") or ""])
        blanked.append(left)
    return blanked
