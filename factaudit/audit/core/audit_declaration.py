"""What does an audit declare? Its columns, checks and figures, which the tables, reports and pages
read.

An audit is one file in `factaudit.audit` (or in a package with an entry point in the group
``factaudit.audits``) that has ``AUDIT = Audit(...)``, or ``AUDITS = (Audit(...), ...)`` if several
belong together. Texts that appear only on the audits page are Markdown (``what``, ``options``,
``Check.says``); all others are plain.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from factaudit.audit.core.result_rows import Row
from factaudit.errors import UsageError

if TYPE_CHECKING:
    from factaudit.arrays.judgements import Judgements
    from factaudit.audit.core import checks

# ---- how intervals are computed: the names that `Column.interval` uses, in the words of captions

WILSON = "Wilson, with the effective sample size of the clusters"
MOVER = "MOVER, from Wilson intervals"
DISCORDANT = "paired, from discordant claims"
SIMULTANEOUS = "simultaneous over systems, from Wilson intervals"
JACKKNIFE = "jackknife over clusters"
INFLUENCE = f"on the log-odds scale, {JACKKNIFE}"
RESPONSE_WILSON = "Wilson, with the effective number of responses"
RESPONSE_MEAN = "Korn and Graubard, over responses"
RESPONSE_CHANGE = (
    "Student's t over responses, at least as wide as Korn and Graubard if all change in one"
    " direction"
)
RESPONSE_INFLUENCE = "Fisher's z, jackknife over responses"
RESPONSE_COUNT = "Student's t on the log scale, over responses"
OPEN_ORDERS = "all orders of the systems that tests of pairs leave open"
FISHER = "Fisher's z, over systems"
FISHER_JACKKNIFE = f"Fisher's z, {JACKKNIFE}"
#: Drawn: it moves with the number of replicates, and captions say it.
CLUSTER_BOOTSTRAP = "cluster bootstrap"


# ---- what a figure shows
# These classes say it without drawing; `factaudit.report.plots` draws and knows no audit. All keys
# are keys of the audit's rows; units, headings, intervals and bounds come from its columns. If
# there are rows for claims and for responses, each level has a figure of its own. Limits and guides
# are in the units of the rows (0.5 for a share of one half). ``what`` begins the caption of a
# figure, and ``reading`` says how to read it.


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


# ---- columns

#: percent: a share, shown as 100 times its value. points: a difference of shares. p: a p-value.
#: text: shown as it is (keys, yes and no).
Unit = Literal["percent", "points", "number", "count", "p", "text"]


@dataclass(frozen=True)
class Column:
    """One key of an audit's rows.

    ``heading`` has no unit, because tables and figures add it. Neighbouring columns with the same
    ``what`` share a line of the audits page. The order of the columns is that of the report's
    table: first what a row is about (``key``), then numbers of claims, then figures. Rows are
    sorted by the order of the evaluators, within the keys that come before theirs.
    """

    heading: str
    unit: Unit = "number"
    #: What the values mean.
    what: str = ""
    #: Whether it says what a row is about (a key of the row).
    key: bool = False
    #: Whether there are ``_min`` and ``_max``. Words say what they are if they are not the extremes
    #: that the unscored claims allow.
    bounds: bool | str = False
    #: The method of its interval (``_low`` and ``_high``): one of
    #: `factaudit.audit.core.audit_declaration`, or words. "": it has none.
    interval: str = ""
    #: Whether the report's table shows it ("any": only if some value is neither null nor 0). The
    #: CSV always has it.
    shown: bool | Literal["any"] = True
    #: The decimals of a number; by default it has four significant digits.
    digits: int | None = None
    #: For points: whether a plus sign is shown (not for an absolute difference).
    signed: bool = True
    #: How values are shown, if not as they are.
    values: Mapping[str, str] = field(default_factory=dict)
    #: For a figure: the claims behind a point of it, as a kind that the claim browser has.
    claims: str = "wrong"
    #: For a figure: the column that counts the claims in its denominator.
    counted_in: str = "n"


def share_column(
    heading: str, what: str, interval: str = WILSON, unit: Unit = "percent", **options: Any
) -> Column:
    """A column for a share, or a difference of shares (unit: points), with bounds and an
    interval."""
    return Column(heading, unit, what, bounds=True, interval=interval, **options)


_END_SUFFIXES = ("_low", "_high", "_min", "_max")
#: The seed of a run that names no other.
DEFAULT_CONFIDENCE = 0.95

#: Keys that many audits have, always with the same meaning.
SHARED_COLUMNS: dict[str, Column] = {
    "dataset": Column(
        "dataset",
        "text",
        "a data set; `__macro__` is the unweighted mean over data sets, `__all__` all of them"
        " together. An audit with the option `by` has its columns here",
        key=True,
        values={"__macro__": "mean over data sets", "__all__": "all data sets"},
    ),
    **{
        name: Column(
            name.replace("_", " "), "text", "evaluators, named as in the verdicts", key=True
        )
        for name in ("evaluator", "evaluator_a", "evaluator_b", "chunked_evaluator")
    },
    "system": Column(
        "system",
        "text",
        "the system that wrote the responses",
        key=True,
        values={"__all__": "all systems"},
    ),
    "level": Column(
        "level",
        "text",
        "`claim`, or `response`: a response is supported if all its claims are",
        key=True,
    ),
    **{
        name: Column(
            heading,
            "count",
            "claims (or responses) behind the figures, and those that the evaluator left without a"
            " prediction",
        )
        for name, heading in (("n", "n"), ("n_unscored", "unscored"))
    },
    "n_datasets": Column(
        "datasets",
        "count",
        "number of data sets in a mean, and number of those left out because the figure is"
        " undefined there (see `reason`); 1 elsewhere",
        shown=False,
    ),
    # What an engine adds to rows: shown where something went wrong, as facts that were given were
    # never decomposed.
    **{
        name: Column(heading, "count", what, shown="any")
        for name, heading, what in (
            (
                "n_failed_sentences",
                "sentences not decomposed",
                "sentences that could not be decomposed; each counts as a fact without a verdict",
            ),
            ("n_unparsed", "unparsed", "replies that state no verdict"),
        )
    },
    "n_guessed": Column(
        "guessed",
        "count",
        "predictions in n that were guessed, because the reply does not state one; the bounds treat"
        " them as unscored",
        shown="any",
    ),
    "n_unlabelled": Column(
        "unlabelled",
        "count",
        "claims without a label; they are not counted where labels are needed",
        shown="any",
    ),
    "n_labelled": Column(
        "labelled",
        "count",
        "claims (or responses) with a label, scored or not: the denominator of labelled_error_rate",
    ),
    "reason": Column(
        "reason",
        "text",
        "which figures are null and why, or what else limits the row; null if nothing does",
        shown=False,
    ),
}


def pick_shared_columns(*column_names: str) -> dict[str, Column]:
    """The columns of `SHARED_COLUMNS` with these names, in this order."""
    return {name: SHARED_COLUMNS[name] for name in column_names}


# ---- audit


@dataclass(frozen=True)
class Audit:
    """An audit: what it asks, how it is computed, and what the rest of the project needs to know
    about it.

    ``name`` is the key in ``results.json`` and the name of the CSV. ``title`` is the heading of its
    section in the report, ``question`` appears in ``factaudit list audits`` and on the audits page,
    ``text`` under the title, and ``formula`` in the captions. ``compute(judged, *, <options>,
    intervals) -> rows``: its keyword-only arguments are the audit's options, each of which is
    described in ``options``. None: an engine writes the table.
    """

    name: str
    title: str
    question: str
    columns: Mapping[str, Column]
    compute: Callable[..., Sequence[Row]] | None
    #: Paper, section, table or figure.
    source: str = ""
    formula: str = ""
    text: str = ""
    #: What to do if its figures are bad; shown on the audits page.
    remedy: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    plot: AnyPlot | None = None
    checks: tuple[checks.Check, ...] = ()
    #: Whether it says something about claims without any label.
    without_labels: bool = False
    #: Whether it is about the labels alone, so that it needs no verdicts.
    without_evaluators: bool = False
    #: What it needs of a counts table (`factaudit.tables.counts_table`): the two error rates, or
    #: also how many of the labelled errors were found ("joint"). None: it needs claims.
    counts: Literal["margins", "joint"] | None = None
    #: Whether it is computed if nobody asked for audits by name; None: always.
    applies: Callable[[Judgements], bool] | None = None
    #: The options that follow from the evaluators: a function of the given options and of each
    #: evaluator's signature.
    complete: Callable[[dict[str, Any], Mapping[str, str]], dict[str, Any]] | None = None
    #: The rows that the report's table and figures show, and a note that says where the others are;
    #: None: all rows.
    readable: Callable[[Sequence[Row]], tuple[list[Row], str]] | None = None
    #: Further paragraphs of its section, made from its rows.
    remarks: Callable[[Sequence[Row]], list[str]] | None = None

    def options_model(self) -> type[BaseModel]:
        """A pydantic model of the options: the keyword-only arguments of ``compute``, except the
        intervals, which belong to the whole run."""
        if self.compute is None:
            raise UsageError(
                f"audit {self.name!r} is a table that an engine writes: it cannot be computed"
            )
        return _make_options_model(self.name, self.compute)


@cache  # pydantic takes milliseconds to make a model, and every check of an experiment needs them
def _make_options_model(name: str, compute: Callable[..., Any]) -> type[BaseModel]:
    hints = get_type_hints(compute)
    fields: dict[str, Any] = {
        key: (hints.get(key, Any), Field(default=parameter.default))
        for key, parameter in inspect.signature(compute).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and key != "intervals"
    }
    return create_model(f"{name}_options", __config__=ConfigDict(extra="forbid"), **fields)


def list_declared_columns(
    declared_columns: Mapping[str, Column], rows: Sequence[Row]
) -> dict[str, Column]:
    """The columns that rows have: ``dataset``, the columns that they are grouped ``by`` (those that
    are not declared), and the declared ones.

    Intervals and bounds are not columns of their own.
    """
    present = dict.fromkeys(key for row in rows for key in row)
    known = {key: column for key, column in declared_columns.items() if key in present}
    groups = {
        key: Column(key.replace("_", " "), "text", key=True)
        for key in present
        if key not in known and not key.endswith(_END_SUFFIXES)
    }
    return {key: known[key] for key in known if key == "dataset"} | groups | known


def sort_declared_rows(
    rows: Sequence[Row], columns: Mapping[str, Column], evaluators: Sequence[str]
) -> list[Row]:
    """Rows in which ``evaluators`` come in this order, within the keys that come before the
    evaluator's column. Everything else keeps its order."""
    keys = [key for key, column in columns.items() if column.key]
    mine = [key for key in keys if key in ("evaluator", "evaluator_a", "evaluator_b")]
    if not mine:
        return list(rows)
    before = keys[: keys.index(mine[0])]
    place = {evaluator: at for at, evaluator in enumerate(evaluators)}
    groups: dict[tuple[Any, ...], int] = {}

    def order(row: Row) -> tuple[int, ...]:
        group = groups.setdefault(tuple(row.get(key) for key in before), len(groups))
        return group, *sorted(
            place.get(row[key], len(place)) for key in mine if row.get(key) is not None
        )

    return sorted(rows, key=order)
