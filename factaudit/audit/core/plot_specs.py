"""What does a figure show? These classes say it without drawing; `factaudit.report.plots` draws and
knows no audit.

All keys are keys of an audit's rows; units, headings, intervals and bounds come from its `columns`.
If there are rows for claims and for responses, each level has a figure of its own. Limits and
guides are in the units of the rows (0.5 for a share of one half). ``what`` begins the caption of a
figure, and ``reading`` says how to read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class PlotSpec:
    """Groups down the side, with a marker and its interval for each series, and a panel for each
    figure.

    There is a group for each dataset (and each column that an experiment groups ``by``), or for
    each value of ``groups``.
    """

    what: str
    reading: str = ""
    #: The columns that make the groups; () means ``dataset``. Of several columns, those with a
    #: single value are left out.
    groups: tuple[str, ...] = ()
    #: The largest number of groups in the figure.
    per_page: int = 14
    #: The figures; each has a panel.
    keys: tuple[str, ...]
    series: str = "evaluator"
    #: Titles of panels, if they are not the columns' headings.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: A dashed line in the panel of a key, and the limits of its axis if the drawn values do not
    #: set them.
    guides: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    #: A key with the same value for all series, drawn as a black line across the group in the panel
    #: of the first key.
    reference: str | None = None


@dataclass(frozen=True, kw_only=True)
class ScatterPlot:
    """One figure of each row against another, both shares, with a marker and a colour for each
    evaluator.

    Means over data sets are large and have intervals; the data sets behind them are small and pale.
    """

    what: str
    reading: str = ""
    x: str
    y: str
    #: The diagonal, on which both figures are equal, or lines of equal balanced accuracy, which is
    #: their mean.
    lines: Literal["diagonal", "equal_bacc"]
    series: str = "evaluator"
    reference: None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The two figures that are shown."""
        return self.x, self.y


@dataclass(frozen=True, kw_only=True)
class LinePlot:
    """Figures over ordered bins, as a line with intervals for each evaluator. There is a column of
    panels for each figure, and a row of panels for each value of ``rows``."""

    what: str
    reading: str = ""
    x: str
    #: What is binned, for the label of the axis.
    what_is_binned: str
    keys: tuple[str, ...]
    rows: str = "dataset"
    series: str = "evaluator"
    reference: None = None


AnyPlot = PlotSpec | ScatterPlot | LinePlot
