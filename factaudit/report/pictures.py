"""The figures of an audit's rows: how many files, what is on each, and its caption. Nothing is drawn here."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factaudit.audit.core.declare import Audit, columns_of
from factaudit.audit.core.plot import CrossTable, DotPlot, Flips, Forest, Grid, HeatMap, Lines, Plot, Scatter
from factaudit.audit.core.rows import Row, is_total
from factaudit.report.plots.groups import group_columns, group_label, without_all, without_floors
from factaudit.signature import digest
from factaudit.text.printable import count

if TYPE_CHECKING:
    from factaudit.report.plots.canvas import Canvas

#: Inches of a page for a dot plot, and of these for what stands over and under a panel: none is longer than a page.
_ROOM, _HEAD = 9.0, 0.6
#: A figure of one kind goes over at most so many pages; tables and CSVs have the rest.
MAX_PAGES = 3
#: Lines of a forest plot on a page.
LINES_PER_PAGE = 48
_SHAPES: dict[type[Plot], str] = {
    DotPlot: "Dot plot",
    Flips: "Dot plot",
    Scatter: "Scatter plots",
    HeatMap: "Heat maps",
    CrossTable: "Tables of counts",
    Grid: "Heat map",
    Lines: "Line plots",
    Forest: "Forest plot",
}


@dataclass(frozen=True)
class Picture:
    """A figure of the report: ``figures/<stem>.svg``; ``draw`` is None where it is there already, else it draws
    at a width in inches (None: a page's).

    ``of``: all that is drawn, as text: the same text gives the same figure.
    """

    stem: str
    caption: str
    alt: str
    draw: Callable[[float | None], Canvas] | None = None
    of: str = ""


@functools.cache
def version_of_figures() -> str:
    """A digest of the code that draws."""
    core = Path(__file__).parents[1] / "audit" / "core"
    sources = [*Path(__file__).parent.glob("plots/*.py"), core / "words.py", core / "declare.py", core / "plot.py"]
    return digest(version("matplotlib"), *(path.read_bytes() for path in sorted(sources)))


def pictures(audit: Audit, rows: Sequence[Row], evaluators: Sequence[str], about: Mapping[str, Any]) -> list[Picture]:
    """The figures that an audit declares, of its rows; one for each level, and further ones where groups are many."""
    shown = [plot for plot in audit.plots if not plot.asked]
    return [picture for plot in shown for picture in _of_plot(audit, plot, list(rows), evaluators, about)]


def drawn_keys(plot: Plot) -> tuple[str, ...]:
    """The keys whose figures are drawn."""
    if isinstance(plot, DotPlot):
        return (*plot.keys, *filter(None, (plot.reference, plot.beyond)))
    if isinstance(plot, Flips | Lines):
        return plot.keys
    if isinstance(plot, Scatter):
        return (plot.x, plot.y)
    if isinstance(plot, HeatMap | Grid):
        return (plot.value,)
    if isinstance(plot, CrossTable):
        return (plot.rows, plot.columns)
    assert isinstance(plot, Forest)
    return (plot.key,)


def defined(rows: Sequence[Row], plot: Plot) -> bool:
    """Whether there is something to draw."""
    keys = drawn_keys(plot)
    # A point of a scatter, and a cell of a table, need both of their keys.
    every = all if isinstance(plot, Scatter | CrossTable) else any
    return any(every(row.get(key) is not None for key in keys) for row in rows)


def _of_plot(
    audit: Audit, plot: Plot, rows: list[Row], evaluators: Sequence[str], about: Mapping[str, Any]
) -> list[Picture]:
    found = []
    floors = {row["name"] for row in about.get("evaluators") or [] if row.get("floor")}
    rows = without_floors(plot, rows, floors)
    levels = list(dict.fromkeys(row.get("level") for row in rows)) if "level" in audit.columns else [None]
    for level in levels:
        mine = [row for row in rows if level is None or row.get("level") == level]
        if not defined(mine, plot):
            continue
        present = columns_of(audit.columns, mine)
        by = [] if isinstance(plot, CrossTable | Grid) else group_columns(plot, audit.columns, present, mine)
        labels = {id(row): group_label(row, by, present) for row in mine}
        drawn = [page for family in _families(plot, mine) for page in _pages(plot, family, labels)]
        for number, (part, page, pages, left) in enumerate(drawn, start=1):
            parts = [audit.name, plot.name, str(level or ""), str(number) if len(drawn) > 1 else ""]
            # A level is data, and must not lead out of the folder.
            stem = re.sub(r"[^A-Za-z0-9_-]", "-", "_".join(filter(None, parts)))
            what = plot.what + (f", {level} level" if level else "") + (f" ({page} of {pages})" if pages > 1 else "")
            caption = _caption(what, audit, plot, part, about)
            if left:
                caption += f" {left}"
            among = f"; {count(len(_evaluators(part)), 'evaluator')}" if _evaluators(part) else ""
            alt = f"{_SHAPES[type(plot)]}: {what}{among}. The table of this section has the figures."
            of = json.dumps(
                [repr(plot), repr(audit.columns), list(evaluators), sorted(floors), caption.split(".")[0], part]
            )
            found.append(Picture(stem, caption, alt, _drawing(audit, plot, part, evaluators, floors), of))
    return found


def _families(plot: Plot, rows: list[Row]) -> Iterator[list[Row]]:
    """The rows that are drawn together: all, or those of panels that have the same groups. Where these are more panels
    than fit on a page with all their groups, there is no such figure."""
    if not isinstance(plot, DotPlot) or plot.panels is None or not plot.families:
        yield rows
        return
    (column,) = plot.groups
    rows = without_all(plot, rows)
    members: dict[Any, set[Any]] = {}
    for row in rows:
        members.setdefault(row[plot.panels], set()).add(row[column])
    families: dict[frozenset[Any], list[Any]] = {}
    for panel, groups in members.items():
        families.setdefault(frozenset(groups), []).append(panel)
    for shared, panels in families.items():
        lines = max(1, int(_ROOM / (len(shared) * _line(plot, rows) + _HEAD)))
        size = 4 if len(panels) == 4 and lines > 1 else 3 * lines
        if len(panels) <= size:
            yield [row for row in rows if row[plot.panels] in panels]


def _line(plot: DotPlot, rows: Sequence[Row]) -> float:
    """Inches that a group takes."""
    return 0.08 + 0.066 * len({row.get(plot.series) for row in rows})


def _pages(plot: Plot, rows: list[Row], labels: Mapping[int, str]) -> Iterator[tuple[list[Row], int, int, str]]:
    """The rows of each page, its number and how many there are, and on the last what was left out.

    ``labels``: of each row's ``id`` the group.
    """
    groups = list(dict.fromkeys(labels[id(row)] for row in rows))
    size = _per_page(plot, rows, len(groups))
    pages = min(MAX_PAGES, math.ceil(len(groups) / size))
    size = min(size, math.ceil(len(groups) / max(1, pages)))  # as many on each
    for page in range(1, pages + 1):
        chosen = set(groups[(page - 1) * size : page * size])
        left = ""
        if page == pages and len(groups) > pages * size:
            left = f"Drawn: the first {pages * size} of {len(groups)} groups; the CSV has all."
        yield [row for row in rows if labels[id(row)] in chosen], page, pages, left


def _per_page(plot: Plot, rows: Sequence[Row], groups: int) -> int:
    """How many groups go into one figure: fewer where each takes more room."""
    if isinstance(plot, HeatMap):
        evaluators = len(_evaluators(rows))
        return plot.per_page if evaluators <= 4 else 8 if evaluators <= 6 else 5
    if isinstance(plot, Forest):
        return max(1, LINES_PER_PAGE * groups // max(1, len(rows)))
    if isinstance(plot, DotPlot):
        panels = 1 if plot.panels is None else len({row.get(plot.panels) for row in rows})
        lines = math.ceil(panels / (2 if panels == 4 else 3))
        return max(1, min(plot.per_page // lines, int((_ROOM / lines - _HEAD) / _line(plot, rows))))
    return plot.per_page


def _evaluators(rows: Sequence[Row]) -> set[str]:
    return {row[key] for row in rows for key in ("evaluator", "evaluator_a", "evaluator_b") if row.get(key)}


def _drawing(
    audit: Audit, plot: Plot, rows: list[Row], evaluators: Sequence[str], floors: Set[str]
) -> Callable[[float | None], Canvas]:
    def draw(width: float | None = None) -> Canvas:
        from factaudit.report import plots

        return plots.draw(plot, rows, audit.columns, evaluators, floors, width)

    return draw


def _caption(what: str, audit: Audit, plot: Plot, rows: Sequence[Row], about: Mapping[str, Any]) -> str:
    keys = drawn_keys(plot)
    text = [f"{what}.", audit.formula, plot.reading]
    # Tables of counts and heat maps show no interval, and a line to another figure is none.
    lines = not isinstance(plot, HeatMap | CrossTable | Grid) and not (isinstance(plot, DotPlot) and plot.beyond)
    if lines and any(f"{key}_low" in row and f"{key}_high" in row for row in rows for key in keys):
        confidence = about.get("confidence")
        share = f"{100 * confidence:g} % " if confidence else ""
        replicates = f" ({about['replicates']:,} replicates)" if about.get("replicates") else ""
        text.append(f"Thin lines: {share}{audit.intervals or f'bootstrap intervals{replicates}'}.")
    text.append(_counts(rows))
    unscored = any(row.get("n_unscored") for row in rows if not is_total(row.get("dataset")))
    if lines and unscored and any(f"{key}_min" in row for row in rows for key in keys):
        text.append("Pale bars: where a figure could lie whatever the unscored claims' predictions had been.")
    if any(key in row and row[key] is None for row in rows for key in keys):
        text.append("Undefined figures are not drawn.")
    return " ".join(part for part in text if part)


def _counts(rows: Sequence[Row]) -> str:
    counts = [row["n"] for row in rows if row.get("n") is not None and not is_total(row.get("dataset"))]
    if not counts:
        return ""
    low, high = min(counts), max(counts)
    each = f"n = {low:,}" if low == high else f"n = {low:,} to {high:,}"
    unscored = sum(row.get("n_unscored") or 0 for row in rows if not is_total(row.get("dataset")))
    return f"{each} behind each point" + (f"; {unscored:,} unscored in all." if unscored else ".")
