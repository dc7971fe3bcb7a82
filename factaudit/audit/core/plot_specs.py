"""What does a figure show? Said without drawing it: `factaudit.report.plots` draws it and knows no
audit.

All keys are of an audit's rows; units, headings, intervals and bounds are those of its `columns`.
Where rows are of claims and of responses there is a figure for each level. Limits and guides are in
the units of the rows (a share of a half is 0.5). ``what`` opens the caption of a figure, and
``reading`` says how to read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class PlotSpec:
    """Groups down the side, a marker with its interval for each series, a panel for each figure.

    A figure has a group for each dataset (and each column that an experiment groups ``by``), or for
    each value of ``groups``.
    """

    what: str
    reading: str = ""
    #: Columns that make the groups, in place of ``dataset``; () means ``dataset``. Of several
    #: columns those that have one value are left out.
    groups: tuple[str, ...] = ()
    #: The figure has so many groups at the most.
    per_page: int = 14
    #: A panel each.
    keys: tuple[str, ...]
    series: str = "evaluator"
    #: Panel titles other than the columns' headings.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: A dashed line in a key's panel, and its limits, where they are not those of what is drawn.
    guides: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    #: A key that is the same for all series, drawn as a black line across the group (in the first
    #: key's panel).
    reference: str | None = None


@dataclass(frozen=True, kw_only=True)
class ScatterPlot:
    """One figure of each row against another, both shares; a marker and a colour for each
    evaluator.

    A mean over data sets is drawn large with its intervals, the rows that it is of are small and
    pale.
    """

    what: str
    reading: str = ""
    x: str
    y: str
    #: The diagonal, on which both figures are equal, or lines on which their mean, balanced
    #: accuracy, is.
    lines: Literal["diagonal", "equal_bacc"]
    series: str = "evaluator"
    reference: None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The figures that it shows."""
        return self.x, self.y


@dataclass(frozen=True, kw_only=True)
class LinePlot:
    """Figures over ordered bins, a line with intervals for each evaluator: a column of panels for
    each figure, a row for each value of ``rows``."""

    what: str
    reading: str = ""
    x: str
    #: What the bins are of, for the axis.
    what_is_binned: str
    keys: tuple[str, ...]
    rows: str = "dataset"
    series: str = "evaluator"
    reference: None = None


AnyPlot = PlotSpec | ScatterPlot | LinePlot
