"""What does a figure show? Said without drawing it: `factaudit.report.plots` draws it and knows no audit.

All keys are of an audit's rows; units, headings, intervals and bounds are those of its `columns`. A figure has a group
for each dataset (and each column that an experiment groups ``by``), or for each value of ``groups``. Where rows are of
claims and of responses there is a figure for each level. Limits and guides are in the units of the rows (a share of a
half is 0.5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class PlotSpec:
    """Groups down the side, a marker with its interval for each series, a panel for each figure.

    ``what`` opens the caption and ``reading`` says how to read the figure.
    """

    what: str
    reading: str = ""
    #: Columns that make the groups, in place of ``dataset``; () means ``dataset``. Of several columns those that have
    #: one value are left out.
    groups: tuple[str, ...] = ()
    #: The figure has so many groups at the most.
    per_page: int = 14
    #: A panel each.
    keys: tuple[str, ...]
    series: str = "evaluator"
    #: Panel titles other than the columns' headings.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: A dashed line in a key's panel, and its limits; panels of one unit share their limits otherwise.
    guides: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    #: A key that is the same for all series, drawn as a black line across the group (in the first key's panel).
    reference: str | None = None
    #: Whether the figures may be 0, so that their axes may begin there (a rank begins at 1).
    has_zero: bool = True
