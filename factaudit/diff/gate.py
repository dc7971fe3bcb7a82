"""Does a change break a limit? A condition fails the build if it holds for the whole interval, and
warns if only the point is beyond the limit."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from factaudit.audit.core.audit_declaration import DEFAULT_CONFIDENCE
from factaudit.audit.core.result_rows import MACRO_MEAN
from factaudit.errors import UsageError, suggest_known_name
from factaudit.results import Row
from factaudit.stats.hypothesis_tests import holm_adjusted_p, p_value_of_interval

#: The figures that a condition may name: the key in a row of changes, and the figure in words.
GATE_FIGURES = {
    "bacc": ("bacc", "BAcc"),
    "tpr": ("tpr", "TPR"),
    "tnr": ("tnr", "TNR"),
    "ppr": ("ppr", "PPR"),
    "bias": ("abs_bias", "size of bias"),
    "unscored": ("unscored", "the share of unscored claims"),
    "flips": ("flips", "the share of changed predictions"),
}
_OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_PATTERN = re.compile(r"\s*([\w_]+)\s*(<=|>=|<|>)\s*([+-]?\d*\.?\d+)\s*")


@dataclass(frozen=True)
class GateCondition:
    """``bacc<-0.02``: the change of a figure (after - before) compared with a number. For ``bias``
    it is the change of its absolute value, for ``flips`` the share itself.

    >>> GateCondition.parse("bacc < -0.02", "--fail-on")
    GateCondition(figure='bacc', sign='<', limit=-0.02)
    """

    figure: str
    sign: str
    limit: float

    @classmethod
    def parse(cls, text: str, option: str) -> GateCondition:
        """Raises `UsageError` that names the option."""
        found = _PATTERN.fullmatch(text)
        if found is None or found[1] not in GATE_FIGURES:
            known = (
                suggest_known_name(found[1], [*GATE_FIGURES])
                if found
                else f" (known: {', '.join(GATE_FIGURES)})"
            )
            raise UsageError(
                f"{option}: expected FIGURE<NUMBER or FIGURE>NUMBER, found {text!r}{known}"
            )
        return cls(found[1], found[2], float(found[3]))

    def check(self, row: Row) -> tuple[bool | None, bool | None]:
        """Whether the point of a change is beyond the limit, and whether its whole interval is;
        None if undefined."""
        key = GATE_FIGURES[self.figure][0]
        sure_end = f"{key}_high" if self.sign.startswith("<") else f"{key}_low"
        values = row[key], row.get(sure_end)
        point, whole = (
            None if value is None else bool(_OPERATORS[self.sign](value, self.limit))
            for value in values
        )
        return point, whole

    def __str__(self) -> str:
        return f"{self.figure}{self.sign}{self.limit:g}"


@dataclass(frozen=True)
class GateVerdict:
    """The verdict of a gate: a ``word`` and sentences.

    failing: what fails it; undecided: what could not be checked; warnings: what it warns of;
    others: further remarks. ``word`` is ``fail``, ``cannot tell``, ``warn`` or ``pass``. For two
    runs without conditions it is ``worse``, ``better``, ``changed``, ``no significant change`` or
    ``cannot tell``.
    """

    word: str
    failing: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """The word with its reasons; below it, the remarks that do not support it, each with a word
        of its own."""
        found = []
        for word, sentences in (
            ("fail", self.failing),
            ("cannot tell", self.undecided),
            ("warn", self.warnings),
        ):
            head = "" if word == self.word else f"{word}: "
            found += [head + sentence for sentence in sentences]
        first, *more = [*found, *self.others] or [""]
        return [
            ": ".join(filter(None, [self.word.upper(), first])),
            *(f"{'':10}{sentence}" for sentence in more),
        ]


def judge_changes(
    changes: Sequence[Row],
    fail_on: Sequence[str],
    warn_on: Sequence[str],
    not_compared: Sequence[str] = (),
) -> GateVerdict:
    """Judge the changes over all data sets.

    A condition of ``fail_on`` fails the gate if the interval of the paired difference leaves no
    doubt. One of ``warn_on`` warns if the point is beyond the limit or is undefined.
    not_compared: sentences about evaluators that could not be compared. Raises `UsageError`.
    """
    rows = [row for row in changes if row["dataset"] == MACRO_MEAN]
    failures = [GateCondition.parse(text, "--fail-on") for text in fail_on]
    warned = [GateCondition.parse(text, "--warn-on") for text in warn_on]
    if not failures and not warned:
        return _judge_without_conditions(rows)
    failing: list[str] = []
    undecided, warnings = list(not_compared) if failures else [], list[str]()
    for row in rows:
        for condition in failures:
            is_likely, is_sure = condition.check(row)
            told = f"{format_change(row, condition.figure)}: {condition} holds"
            if is_likely is None or is_sure is None:
                undecided.append(_format_unchecked(row, condition))
            elif is_sure:
                failing.append(told)
            elif is_likely:
                warnings.append(f"{told}, but not for sure")
        for condition in warned:
            is_likely, _ = condition.check(row)
            if is_likely is None:  # what could not be checked has not passed
                warnings.append(_format_unchecked(row, condition))
            elif is_likely:
                warnings.append(f"{format_change(row, condition.figure)}: {condition} holds")
    word = "fail" if failing else "cannot tell" if undecided else "warn" if warnings else "pass"
    figures = dict.fromkeys(condition.figure for condition in [*failures, *warned])
    tested = (
        [format_change(row, figure) for row in rows for figure in figures] if word == "pass" else []
    )
    return GateVerdict(
        word, failing, undecided, list(dict.fromkeys(warnings)), tested + _describe_missing(rows)
    )


def _judge_without_conditions(rows: Sequence[Row]) -> GateVerdict:
    """Judge two runs without conditions.

    The word is worse or better if BAcc changed significantly, after Holm's correction over the
    evaluators whose predictions changed. It is changed if an evaluator traded TPR for TNR, which
    its BAcc does not show. A run that lost significantly many verdicts counts neither as better nor
    as unchanged, because the lost verdicts are unknown.
    """
    moved = _find_significant_changes(rows, ("bacc",))
    rates = (
        []
        if moved
        else [
            (row["evaluator"], key) for row, key in _find_significant_changes(rows, ("tpr", "tnr"))
        ]
    )
    both = {name for name, key in rates if key == "tpr"} & {
        name for name, key in rates if key == "tnr"
    }
    traded = [row for row in rows if row["evaluator"] in both and row["tpr"] * row["tnr"] < 0]
    missing = _describe_missing(rows)
    if any(row["bacc"] < 0 for row, _ in moved):
        word = "worse"
    elif any(map(_lacks_many_verdicts, rows)) or all(row["bacc_low"] is None for row in rows):
        word = "cannot tell"
    elif moved:
        word = "better"
    else:
        word = "changed" if traded else "no significant change"
    told = [format_change(row, figure) for row, figure in moved]
    told += [format_change(row, figure) for row in traded for figure in ("tpr", "tnr")]
    told = told + missing if word == "worse" else missing + told
    still = [row for row in rows if not any(row is one for one, _ in moved)]
    return GateVerdict(word, others=told + [_format_insignificant_change(row) for row in still])


def _find_significant_changes(rows: Sequence[Row], figures: Sequence[str]) -> list[tuple[Row, str]]:
    """The figures that changed significantly, with their rows, the largest fall first."""
    tested = [
        (row, figure)
        for figure in figures
        for row in rows
        if row[f"{figure}_low"] is not None and (row["n_flips"] or row[figure])
    ]
    if not tested:
        return []
    adjusted = holm_adjusted_p(np.array([_compute_p_value(row, figure) for row, figure in tested]))
    moved = [one for one, p in zip(tested, adjusted, strict=True) if p < 1 - DEFAULT_CONFIDENCE]
    return sorted(moved, key=lambda one: one[0][one[1]])


def _lacks_many_verdicts(row: Row) -> bool:
    """Whether significantly more claims have no verdict than before."""
    if row["unscored_low"] is None:
        return row["lost"] > row["gained"]
    return row["unscored_low"] > 0


def _describe_missing(rows: Sequence[Row]) -> list[str]:
    """A sentence for each evaluator that did not judge claims which it had judged before."""
    told = []
    for row in rows:
        if row["lost"]:
            n_before = row["n_both"] + row["lost"]
            are = "is" if row["lost"] == 1 else "are"
            share = f"{100 * row['lost'] / n_before:.2g} %"
            told.append(
                f"{row['evaluator']}: {row['lost']:,} of {n_before:,} verdicts ({share}) {are}"
                " missing after; the figures leave these claims out"
            )
    return told


def _compute_p_value(row: Row, key: str) -> float:
    """The p-value of "no change", from the interval of the change; 1 if the interval contains 0."""
    size, towards_0 = abs(row[key]), row[f"{key}_low"] if row[key] > 0 else -row[f"{key}_high"]
    if towards_0 <= 0:
        return 1.0
    many = np.array(1e6)  # degrees of freedom
    return float(
        p_value_of_interval(np.array(size), np.array(size - towards_0), many, DEFAULT_CONFIDENCE)
    )


def _format_insignificant_change(row: Row) -> str:
    """The sentence about a change that was not significant and stands below the verdict. Its
    interval, which is about this change alone, may exclude 0."""
    if row["n_both"] and not row["n_flips"]:
        return f"{row['evaluator']}: no prediction changed"
    told = ", not significant after the correction for all evaluators" * (
        row["bacc_low"] is not None
    )
    return format_change(row, "bacc") + told


def _format_unchecked(row: Row, condition: GateCondition) -> str:
    key, figure = GATE_FIGURES[condition.figure]
    lacks, why = (
        ("is undefined", "are there labels?")
        if row[key] is None
        else ("has no interval", "too few documents?")
    )
    return f"{row['evaluator']}: {figure} {lacks}, so that {condition} cannot be checked ({why})"


def format_change(row: Row, figure: str) -> str:
    """The change of a figure with its interval, in percentage points.

    >>> change = {"bacc": -0.066, "bacc_low": -0.099, "bacc_high": -0.032}
    >>> format_change({"evaluator": "judge"} | change, "bacc")
    'judge: BAcc changed by −6.6 points (95 % CI −9.9 to −3.2)'
    """
    key, words = GATE_FIGURES[figure]
    value, low, high = row[key], row.get(f"{key}_low"), row.get(f"{key}_high")
    if value is None:
        return f"{row['evaluator']}: the change of {words} is undefined"
    if figure == "flips":
        told = (
            "" if low is None or high is None else f" (95 % CI {100 * low:.1f} to {100 * high:.1f})"
        )
        return f"{row['evaluator']}: {100 * value:.1f} % of predictions changed{told}"
    told = (
        ""
        if low is None or high is None
        else f" (95 % CI {format_points(low)} to {format_points(high)})"
    )
    return f"{row['evaluator']}: {words} changed by {format_points(value)} points{told}"


def format_points(value: float) -> str:
    """A difference in percentage points with its sign. Zero has no sign; a value that rounds to
    zero keeps its own.

    >>> format_points(-0.066), format_points(0.0), format_points(-0.0003), format_points(0.0005)
    ('−6.6', '0.0', '−0.03', '+0.1')
    """
    points = 100 * value
    text = (
        f"{points:+.1f}"
        if abs(points) >= 0.05
        else f"{points:+.1g}"
        if abs(points) >= 0.001
        else "0.0"
    )
    return text.replace("-", "−")
