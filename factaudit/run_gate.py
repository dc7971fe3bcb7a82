"""Conditions on what changed between two runs: those that hold for sure fail a build, those of the point warn."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from factaudit.audit.core.result_rows import MACRO_MEAN
from factaudit.audit.core.significance import DEFAULT_CONFIDENCE
from factaudit.errors import UsageError, suggest_known_name
from factaudit.results import Row
from factaudit.stats.multiplicity import holm_adjusted_p, p_value_of_interval
from factaudit.text.display_text import format_count

#: The figures that a condition may be on, in words.
GATE_FIGURES = {
    "bacc": "BAcc",
    "tpr": "TPR",
    "tnr": "TNR",
    "ppr": "PPR",
    "bias": "size of bias",
    "unscored": "the share of unscored claims",
    "flips": "the share of changed predictions",
}
_OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_PATTERN = re.compile(r"\s*([\w_]+)\s*(<=|>=|<|>)\s*([+-]?\d*\.?\d+)\s*")


@dataclass(frozen=True)
class RunGateCondition:
    """``bacc<-0.02``: a figure's change (after - before) against a number; of ``bias`` the change of its size, of
    ``flips`` the share itself.

    >>> RunGateCondition.parse("bacc < -0.02", "--fail-on")
    RunGateCondition(figure='bacc', sign='<', limit=-0.02)
    """

    figure: str
    sign: str
    limit: float

    @classmethod
    def parse(cls, text: str, option: str) -> RunGateCondition:
        """Raises `UsageError`, which names the option."""
        found = _PATTERN.fullmatch(text)
        if found is None or found[1] not in GATE_FIGURES:
            known = suggest_known_name(found[1], [*GATE_FIGURES]) if found else f" (known: {', '.join(GATE_FIGURES)})"
            raise UsageError(f"{option}: expected FIGURE<NUMBER or FIGURE>NUMBER, found {text!r}{known}")
        return cls(found[1], found[2], float(found[3]))

    @property
    def key(self) -> str:
        """The figure's key in a row of `factaudit.run_diff.RunDiff.changes`."""
        return "abs_bias" if self.figure == "bias" else self.figure

    def is_met(self, value: float) -> bool:
        """Whether a value is below (above) the number."""
        return bool(_OPERATORS[self.sign](value, self.limit))

    def is_significantly_met(self, row: Row) -> bool | None:
        """Whether the whole interval of the change is; None where there is no interval."""
        end = row.get(f"{self.key}_{'high' if self.sign.startswith('<') else 'low'}")
        return None if end is None else self.is_met(end)

    def __str__(self) -> str:
        return f"{self.figure}{self.sign}{self.limit:g}"


@dataclass(frozen=True)
class RunGateVerdict:
    """What a gate says: ``word`` and sentences. failing: what fails it; warnings: what it warns of; undecided: what
    could not be checked; others: what else it tells.

    ``word`` is ``fail``, ``cannot tell``, ``warn`` or ``pass``; of two runs without conditions ``worse``, ``better``,
    ``changed`` (another figure did, significantly, BAcc not), ``no significant change`` or ``cannot tell``.
    """

    word: str
    failing: list[str]
    warnings: list[str]
    undecided: list[str]
    others: list[str]

    @property
    def sentences(self) -> list[str]:
        """All of them, what the word rests on first; what it does not rest on has its own word before it."""
        told = {"fail": self.failing, "cannot tell": self.undecided, "warn": self.warnings}
        heads = {word: f"{word}: " * (word != self.word) for word in told}
        return [heads[word] + sentence for word, each in told.items() for sentence in each] + self.others

    @property
    def json_keys(self) -> dict[str, str | list[str]]:
        """What JSON has of it: the word as ``verdict``, and the sentences that conditions rest on."""
        lists = {"failing": self.failing, "warnings": self.warnings, "undecided": self.undecided}
        return {"verdict": self.word, **lists}


def judge_run_gate_changes(
    changes: Sequence[Row], fail_on: Sequence[str], warn_on: Sequence[str], without_partner: Sequence[str] = ()
) -> RunGateVerdict:
    """Judge the changes over all data sets. A condition of ``fail_on`` fails the gate where the interval of the paired
    difference leaves no doubt, one of ``warn_on`` warns where the point is so, or is undefined.

    without_partner: evaluators that could not be compared, as sentences. Raises `UsageError`.
    """
    rows = [row for row in changes if row["dataset"] == MACRO_MEAN]
    failing, warnings, undecided = [], [], []
    failures = [RunGateCondition.parse(text, "--fail-on") for text in fail_on]
    warned = [RunGateCondition.parse(text, "--warn-on") for text in warn_on]
    for condition in failures:
        for row in rows:
            is_sure = condition.is_significantly_met(row)
            if row[condition.key] is None or is_sure is None:
                undecided.append(_format_undecided_run_gate_condition(row, condition))
            elif is_sure:
                failing.append(f"{format_run_gate_change(row, condition.figure)}: {condition} holds")
            elif condition.is_met(row[condition.key]):
                warnings.append(f"{format_run_gate_change(row, condition.figure)}: {condition} holds, but not for sure")
    for condition in warned:
        for row in rows:
            if row[condition.key] is None:  # what nobody could look at has not passed
                warnings.append(_format_undecided_run_gate_condition(row, condition))
            elif condition.is_met(row[condition.key]):
                warnings.append(f"{format_run_gate_change(row, condition.figure)}: {condition} holds")
    undecided += without_partner if fail_on else ()
    if fail_on or warn_on:
        word = "fail" if failing else "cannot tell" if undecided else "warn" if warnings else "pass"
        figures = dict.fromkeys(condition.figure for condition in [*failures, *warned])
        tested = [format_run_gate_change(row, figure) for row in rows for figure in figures]
        others = [] if failing or undecided or warnings else tested
        return RunGateVerdict(word, failing, list(dict.fromkeys(warnings)), undecided, others)
    alpha = 1 - DEFAULT_CONFIDENCE
    moved = [row for row, _ in _select_significant_run_gate_changes(rows, {"bacc": "bacc"}, _BACC_SHARE * alpha)]
    figures_besides = {"tpr": "tpr", "tnr": "tnr", "bias": "abs_bias", "unscored": "unscored"}
    besides = _select_significant_run_gate_changes(rows, figures_besides, (1 - _BACC_SHARE) * alpha)
    word = _name_run_gate_change_without_conditions(rows, moved, bool(besides))
    moved.sort(key=lambda row: word == "worse" and row["bacc"] > 0)
    told = [
        "besides, better: " * (word == "worse" and row["bacc"] > 0) + format_run_gate_change(row, "bacc")
        for row in moved
    ]
    told += [format_run_gate_change(row, figure) for row, figure in besides]
    # Below "worse" an evaluator that is as good as before would be read as a worse one.
    named = [row for row in rows if row in moved or any(row is other for other, _ in besides)]
    told += [
        "besides, " * bool(named and row not in named)
        + _format_run_gate_change_without_significance(row, sum(_has_changed_prediction(row) for row in rows))
        for row in rows
        if row not in moved
    ]
    return RunGateVerdict(word, [], [], [], told)


#: What of the 5 % false alarms BAcc may make; the other figures, tested beside it, make the rest.
_BACC_SHARE = 0.8


def _select_significant_run_gate_changes(
    rows: Sequence[Row], figures: Mapping[str, str], alpha: float
) -> list[tuple[Row, str]]:
    """The evaluators and figures (their keys in a row) that changed, by their intervals: Holm over all of both.

    An evaluator of which no prediction changed, or that lost and got no verdict, could never be significant, and is no
    test (Tarone 1990).
    """
    tested = [
        (row, figure)
        for row in rows
        for figure, key in figures.items()
        if row.get(f"{key}_low") is not None
        and (row[key] != 0 if figure == "unscored" else _has_changed_prediction(row))
    ]
    p_values = [_compute_run_gate_change_p_value(row, figures[figure]) for row, figure in tested]
    adjusted: list[float] = holm_adjusted_p(np.array(p_values)).tolist() if tested else []
    return [one for one, p in zip(tested, adjusted, strict=True) if p < alpha]


def _has_changed_prediction(row: Row) -> bool:
    """Of one that was asked several times the mean may change where the first reply did not."""
    return bool(row.get("n_flips") or row["bacc"])


def _compute_run_gate_change_p_value(row: Row, key: str) -> float:
    """Of no change, by the interval of the change; 1 where that holds 0."""
    size, towards_0 = abs(row[key]), row[f"{key}_low"] if row[key] > 0 else -row[f"{key}_high"]
    if towards_0 <= 0:
        return 1.0
    many = np.array(1e6)  # degrees of freedom
    return float(p_value_of_interval(np.array(size), np.array(size - towards_0), many, DEFAULT_CONFIDENCE))


def _format_run_gate_change_without_significance(row: Row, n_tested: int) -> str:
    """What stands below a verdict that it had no part in; its interval, of one change alone, may leave out 0."""
    if row.get("n_both") and not row["n_flips"]:
        lost = f"; {format_count(row['lost'], 'verdict')} lost" if row["lost"] else ""
        return f"{row['evaluator']}: none of {format_count(row['n_both'], 'prediction')} changed{lost}"
    known = row["bacc_low"] is not None and row["bacc_high"] is not None
    alpha = 100 * (1 - DEFAULT_CONFIDENCE)
    told = f", not significant at {_BACC_SHARE * alpha:.2g} %"
    if known and _compute_run_gate_change_p_value(row, "bacc") < _BACC_SHARE * (1 - DEFAULT_CONFIDENCE):
        told += f" after the correction for {n_tested} evaluators"
    told += f" (other figures are tested at {(1 - _BACC_SHARE) * alpha:.2g} %)"
    return format_run_gate_change(row, "bacc") + told * known


def _name_run_gate_change_without_conditions(rows: Sequence[Row], moved: Sequence[Row], has_others: bool) -> str:
    if any(row["bacc"] < 0 for row in moved):
        return "worse"
    if moved:
        return "better"
    if has_others:
        return "changed"
    return "no significant change" if any(row["bacc_low"] is not None for row in rows) else "cannot tell"


def _format_undecided_run_gate_condition(row: Row, condition: RunGateCondition) -> str:
    figure = GATE_FIGURES[condition.figure]
    if row[condition.key] is None:
        return f"{row['evaluator']}: {figure} is undefined, so that {condition} cannot be checked (are there labels?)"
    return f"{row['evaluator']}: {figure} has no interval, so that {condition} cannot be checked (too few documents?)"


def format_run_gate_change(row: Row, figure: str) -> str:
    """A figure's change with its interval, in points.

    >>> format_run_gate_change({"evaluator": "judge", "bacc": -0.066, "bacc_low": -0.099, "bacc_high": -0.032}, "bacc")
    'judge: BAcc changed by −6.6 points (95 % CI −9.9 to −3.2)'
    """
    key = "abs_bias" if figure == "bias" else figure
    value, low, high = row[key], row.get(f"{key}_low"), row.get(f"{key}_high")
    if value is None:
        return f"{row['evaluator']}: the change of {GATE_FIGURES[figure]} is undefined"
    besides = [f"95 % CI {format_points(low)} to {format_points(high)}"] if low is not None and high is not None else []
    besides += ["smaller is better"] * (figure == "bias")
    told = f" ({'; '.join(besides)})" if besides else ""
    if figure == "flips":
        told = "" if low is None or high is None else f" (95 % CI {100 * low:.1f} to {100 * high:.1f})"
        return f"{row['evaluator']}: {100 * value:.1f} % of predictions changed{told}"
    return f"{row['evaluator']}: {GATE_FIGURES[figure]} changed by {format_points(value)} points{told}"


def format_points(value: float) -> str:
    """A difference in points, with its sign; nothing has none, and what is nearly nothing keeps the side it is on.

    >>> format_points(-0.066), format_points(0.0), format_points(-0.0003)
    ('−6.6', '0.0', '−0.03')
    """
    points = 100 * value
    text = f"{points:+.1f}" if abs(points) >= 0.05 else f"{points:+.1g}" if abs(points) >= 0.001 else "0.0"
    return text.replace("-", "−")
