"""Which figures are significantly beyond a limit? An audit declares checks; what they find is data, and worded last.

A `Check` names rows, a figure of them and a limit. Its test is the figure's own interval, moved to either bound, so
that it knows clusters and unscored claims; Holm's correction over all rows that it looks at keeps the chance that it
warns of nothing at 5 % a run (`tests/validity/findings.py`). The rows of an evaluator make one `Finding`: that of its
worst row, with how many others are like it. Its sentence cites nothing but fields of the finding (`Finding.evidence`).

    Check(
        id="stability",
        title="Verdicts that change when asked again",
        rows=per_dataset("stability"),
        figure="flip_rate",
        limit=0.05,
        says="Asked again, {evaluator} changes {flip_rate:percent} of its verdicts{on}, {verdict}.",
        beyond="more than {limit:limit} %",
        advice="All its figures vary by chance; ask several times and take the majority.",
        null="at most 5 % of the verdicts change, on every data set",
    )

`Opposite` looks for rows of which one is over 0 and another one under; `Count` tests nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.audit.core.audit_declaration import AuditedRun, Severity
from factaudit.audit.core.decision_limits import (
    DecisionLimits,
    count_unscored_or_guessed,
    is_mostly_open,
    widen_interval_for_decision_limits,
)
from factaudit.audit.core.result_rows import MACRO_MEAN, Row, group_rows, is_total_key
from factaudit.audit.core.significance import Side, Tests
from factaudit.audit.core.wording import fill, format_share_of, list_cited_fields

#: beyond: significantly beyond the limit. slight: significantly not 0, and not significantly beyond the limit. figure:
#: beyond, where no row has an interval. open: the unscored claims decide. within: significantly within the limit.
Verdict = Literal["beyond", "slight", "figure", "open", "not shown", "within"]
#: From the gravest to the least, with the words that stand for {verdict} in a sentence.
VERDICT_WORDS: dict[Verdict, str] = {
    "beyond": "significantly {beyond}",
    "slight": "significantly {slight}, but not significantly {beyond}",
    "figure": "{beyond} (no interval was computed)",
    "open": "{beyond} or not: that depends on {n_open:number unscored claim}",
    "not shown": "not significantly {beyond}",
    "within": "significantly not {beyond}",
}


@dataclass(frozen=True)
class Finding:
    """What a check found of an evaluator (or a pair of them, "a / b"; None: of the claims).

    severity: fail, warn, ok; None where nothing can be said. evidence: all that the statement cites.
    """

    id: str
    verdict: Verdict
    severity: Severity | None
    evaluator: str | None
    dataset: str | None
    statement: str
    evidence: Row
    #: The row that it is about, and all rows with this verdict.
    row: Row = field(repr=False)
    alike: tuple[Row, ...] = field(repr=False)

    def as_dict(self) -> Row:
        """As ``results.json`` has it."""
        return {key: getattr(self, key) for key in ("id", "severity", "evaluator", "dataset", "statement", "evidence")}


@dataclass(frozen=True)
class Judged:
    """A row with its verdict; p: adjusted for all rows of the check, NaN where it was not tested."""

    row: Row
    verdict: Verdict
    p: float

    @property
    def is_total(self) -> bool:
        """Whether the row sums up others: a mean over data sets, or one that says so (``is_total``)."""
        return bool(self.row.get("is_total", self.row.get("dataset") == MACRO_MEAN))


@dataclass(frozen=True, kw_only=True)
class Check:
    """A figure of rows against a limit.

    ``says`` is a sentence on a row, in which ``{verdict}`` becomes "significantly" and ``beyond``; ``{on}`` its data
    set; ``{bias:points}``, ``{n:number claim}`` values of the row (`factaudit.audit.core.wording`). ``null`` says in a
    line when nothing is wrong; then it warns in at most 5 % of runs.
    """

    id: str
    #: Heads its findings.
    title: str
    rows: Callable[[AuditedRun], Iterable[Row]]
    figure: str
    says: str
    #: What "significantly" is said of: "more than {limit:limit} points apart".
    beyond: str = ""
    limit: float | Callable[[DecisionLimits], float] = 0.0
    side: Side = "over"
    #: What to do.
    advice: str = ""
    #: The sentence where all rows are significantly within the limit; "": then it says nothing.
    within: str = ""
    #: Where a figure is not 0 and not beyond the limit is a warning, too: what it is then ("off").
    slight: str = ""
    #: Of what is beyond; a row may have its own (``severity``).
    severity: Severity = "fail"
    #: The rows that share these values make one finding: those of an evaluator; (): all of the run.
    by: tuple[str, ...] = ("evaluator",)
    #: What rows are counted as, in the singular.
    unit: str = "data set"
    null: str = ""
    #: Whether the interval is Wilson's, so that the test is the score test at the limit.
    is_share: bool = False
    #: Whether the figure alone is a warning where no row has an interval, as of published rates.
    by_figure: bool = False
    #: Which claims are behind it, of the kinds that the claim browser has (``disagree``, ``unscored``, ``contrary``).
    claims: str = "wrong"
    #: Whether the first screen says it.
    on_screen: bool = False

    def find(self, run: AuditedRun) -> list[Finding]:
        """A finding for each group of rows, also where nothing can be said (severity None)."""
        limit = self.read_limit(run.limits)
        judged = self._judge(run, [row for row in self.rows(run) if row.get(self.figure) is not None], limit)
        n_tests = sum(math.isfinite(one.p) for one in judged)
        groups: dict[tuple[Any, ...], list[Judged]] = {}
        for one in judged:
            groups.setdefault(tuple(one.row.get(key) for key in self.by), []).append(one)
        return [self._summarise(run, group, limit, n_tests) for group in groups.values()]

    def measure_gravity(self, evidence: Row) -> float:
        """How far beyond the limit a finding with this evidence is."""
        return self._exceed(evidence[self.figure], evidence.get("limit") or 0.0) if self.figure in evidence else 0.0

    def read_limit(self, limits: DecisionLimits) -> float:
        return self.limit(limits) if callable(self.limit) else self.limit

    def _judge(self, run: AuditedRun, rows: Sequence[Row], limit: float) -> list[Judged]:
        tests = Tests(run, rows, self.figure, self.is_share)
        p, p_of_scored = tests.adjust(limit, self.side), tests.adjust(limit, self.side, has_bounds=False)
        p_of_zero = tests.adjust(0.0, self.side) if self.slight else np.ones(len(rows))
        is_without_intervals = self.by_figure and not tests.has_interval.any()
        level, judged = 1 - run.confidence, []
        for at, row in enumerate(rows):
            verdict: Verdict = "not shown"
            if p[at] < level:
                verdict = "beyond"
            elif is_within(row, self.figure, limit, self.side):
                verdict = "within"
            elif p_of_zero[at] < level:
                verdict = "slight"
            elif p_of_scored[at] < level:
                verdict = "open"
            elif is_without_intervals and self._exceed(row[self.figure], limit) > 0:
                verdict = "figure"
            judged.append(Judged(row, verdict, float(p[at])))
        return judged

    def _exceed(self, value: float, limit: float) -> float:
        return {"over": value - limit, "under": limit - value, "off": abs(value) - limit}[self.side]

    def _summarise(self, run: AuditedRun, judged: Sequence[Judged], limit: float, n_tests: int) -> Finding:
        """The finding of a group of rows: of its parts, where one of them has the verdict, else of their totals."""
        verdict = min((one.verdict for one in judged), key=list(VERDICT_WORDS).index)
        parts = [one for one in judged if not one.is_total] or judged
        is_of_total = all(one.verdict != verdict for one in parts)
        looked = [one for one in judged if one.is_total] if is_of_total else parts
        alike = [one for one in looked if one.verdict == verdict]
        worst = max(alike, key=lambda one: self._exceed(one.row[self.figure], limit))
        unit = "data set" if is_of_total else self.unit
        fields = worst.row | {
            "limit": limit,
            "n_beyond": _count(unit, alike),
            "n_compared": _count(unit, looked),
            "n_parts": _count(self.unit, parts),
            "n_open": count_unscored_or_guessed(worst.row),
            "n_tests": n_tests,
            "p": worst.p if math.isfinite(worst.p) else None,
        }
        says, severity = [self.says], worst.row.get("severity", self.severity)
        if verdict == "within":
            says, severity = [self.within], "ok" if self.within else None
        elif verdict != "beyond":
            severity = None if verdict == "not shown" else "warn"
        if verdict in ("beyond", "slight", "figure"):
            scope = format_share_of(fields["n_beyond"], fields["n_compared"], unit)
            none_alone = (
                f"{'On' if self.unit == 'data set' else 'For'} none of the {{n_parts}} {self.unit}s alone is this so."
            )
            says.append(none_alone if is_of_total and len(parts) > 1 else scope)
        if verdict in ("beyond", "figure"):
            says.append(self.advice)
        return self._word(run, verdict, severity, says, fields, [one.row for one in alike])

    def _word(
        self,
        run: AuditedRun,
        verdict: Verdict,
        severity: Severity | None,
        says: Sequence[str],
        fields: Row,
        alike: Sequence[Row],
    ) -> Finding:
        """The finding with its sentences, whose slots are filled first with words and then with figures."""
        template = " ".join(filter(None, says))
        words = {"verdict": self._words(verdict), "beyond": self.beyond, "slight": self.slight}
        words["on"] = describe_place(fields)
        for name in ("on", "verdict", "slight", "beyond"):
            template = template.replace(f"{{{name}}}", words[name])
        ends = [f"{self.figure}{end}" for end in ("", "_low", "_high", "_min", "_max")]
        cited = [*self.by, *list_cited_fields(template, fields), *ends, "n", "n_unscored", "limit", "p", "n_tests"]
        cited = [key for key in cited if key not in ("evaluator", "dataset")]
        dataset = fields.get("dataset")
        if verdict == "within" or is_total_key(dataset) or fields.get("other_dataset", dataset) != dataset:
            dataset = None
        return Finding(
            self.id,
            verdict,
            severity,
            name_evaluator(fields),
            dataset,
            fill(template, fields, is_mostly_open(fields, run.limits)),
            {key: fields[key] for key in dict.fromkeys(cited) if key in fields},
            fields,
            tuple(alike),
        )

    def _words(self, verdict: Verdict) -> str:
        return VERDICT_WORDS[verdict]


@dataclass(frozen=True, kw_only=True)
class Count(Check):
    """A figure that is counted and not tested: beyond its limit, whatever other claims would give."""

    severity: Severity = "warn"

    def _judge(self, run: AuditedRun, rows: Sequence[Row], limit: float) -> list[Judged]:
        del run
        is_beyond = [self._exceed(row[self.figure], limit) > 0 for row in rows]
        return [
            Judged(row, "beyond" if beyond else "within", math.nan) for row, beyond in zip(rows, is_beyond, strict=True)
        ]

    def _words(self, verdict: Verdict) -> str:
        return "{beyond}" if verdict == "beyond" else "not {beyond}"


@dataclass(frozen=True, kw_only=True)
class Opposite(Check):
    """Rows of a group of which one is significantly over 0 and another one under: the farthest to either side.

    In ``says``, fields of the row under 0 begin with ``other_``.
    """

    side: Side = "off"
    #: From the run and its rows to those that may be opposite; by default the rows of an evaluator.
    groups: Callable[[AuditedRun, Sequence[Row]], Iterable[Sequence[Row]]] = lambda _, rows: group_rows(
        rows, "evaluator"
    ).values()
    #: How far apart the two must be.
    apart: float = 0.0
    #: Whether one finding, of the pair that is farthest apart, stands for all.
    only_worst: bool = False

    def find(self, run: AuditedRun) -> list[Finding]:
        rows = [row for row in self.rows(run) if row.get(self.figure) is not None]
        judged = self._judge(run, rows, 0.0)
        n_tests = sum(math.isfinite(one.p) for one in judged)
        verdicts = {id(one.row): one.verdict for one in judged if one.verdict in ("beyond", "figure")}
        found = []
        for group in self.groups(run, rows):
            far = [row for row in group if id(row) in verdicts]
            over, under = ([row for row in far if row[self.figure] * side > 0] for side in (1, -1))
            if not over or not under:
                continue
            most, least = (max(some, key=lambda row: abs(row[self.figure])) for some in (over, under))
            distance = most[self.figure] - least[self.figure]
            if distance > self.apart:
                verdict = verdicts[id(most)]
                fields = most | {f"other_{key}": value for key, value in least.items()} | {"n_tests": n_tests}
                finding = self._word(run, verdict, self.severity, [self.says, self.advice], fields, far)
                found.append((distance, finding))
        found.sort(key=lambda one: -one[0])
        return [finding for _, finding in (found[:1] if self.only_worst else found)]

    def measure_gravity(self, evidence: Row) -> float:
        return abs(evidence.get(self.figure) or 0.0) + abs(evidence.get(f"other_{self.figure}") or 0.0)


def is_within(row: Row, figure: str, limit: float, side: Side) -> bool:
    """Whether a figure is within a limit by its interval and its bounds."""
    ends = widen_interval_for_decision_limits(row, figure)
    if ends is None:
        return False
    return {"over": ends[1] <= limit, "under": ends[0] >= limit, "off": -limit <= ends[0] and ends[1] <= limit}[side]


# ------------------------------------------------------------------------------------- which rows, and what they are of


def per_dataset(audit: str, **wanted: str) -> Callable[[AuditedRun], Iterator[Row]]:
    """The rows of an audit of one data set (or of all together) that have these values, without means."""

    def select(run: AuditedRun) -> Iterator[Row]:
        for row in run.per_dataset(audit):
            if all(row.get(key) == value for key, value in wanted.items()):
                yield row

    return select


def subtract_figures(name: str, row: Row, figure: str, other: Row, other_figure: str) -> Row:
    """A figure less another one, as if they were independent: the figure ``name`` with its bounds and interval."""
    a, b = (_read_ends(row, figure), _read_ends(other, other_figure))
    found: Row = {name: a[0] - b[0], f"{name}_min": a[3] - b[4], f"{name}_max": a[4] - b[3]}
    found |= {f"{name}_low": None, f"{name}_high": None}
    if None not in (a[1], a[2], b[1], b[2]):
        found[f"{name}_low"] = found[name] - ((a[0] - a[1]) ** 2 + (b[2] - b[0]) ** 2) ** 0.5
        found[f"{name}_high"] = found[name] + ((a[2] - a[0]) ** 2 + (b[0] - b[1]) ** 2) ** 0.5
    return found


def scale_figure(name: str, row: Row, figure: str, factor: float) -> Row:
    """A figure times a factor, as the figure ``name`` with bounds and interval: a factor below 0 turns their ends."""
    turned = {"": "", "_low": "_high", "_high": "_low", "_min": "_max", "_max": "_min"}
    ends = {end: row.get(f"{figure}{turned[end] if factor < 0 else end}") for end in turned}
    return {f"{name}{end}": None if value is None else factor * value for end, value in ends.items()}


def _read_ends(row: Row, figure: str) -> tuple[Any, ...]:
    value = row[figure]
    least, most = (row.get(f"{figure}{end}") for end in ("_min", "_max"))
    ends = row.get(f"{figure}_low"), row.get(f"{figure}_high")
    return value, *ends, value if least is None else least, value if most is None else most


def name_evaluator(row: Mapping[str, Any]) -> str | None:
    """Whom a row is about; a pair of evaluators is one, "a / b"."""
    if row.get("evaluator") is not None:
        others = row.get("other_evaluator")
        return row["evaluator"] if others in (None, row["evaluator"]) else f"{row['evaluator']} / {others}"
    pair = row.get("evaluator_a"), row.get("evaluator_b")
    return None if None in pair else " / ".join(map(str, pair))


def describe_place(row: Row) -> str:
    """The template of where a row is from: `` on {dataset}``, or on what average."""
    if row.get("dataset") == MACRO_MEAN:
        return " on average over {n_datasets:number data set}"
    return "" if row.get("dataset") in (None, ALL_TOGETHER) else " on {dataset}"


def _count(unit: str, judged: Sequence[Judged]) -> int:
    return len({one.row.get("dataset") for one in judged}) if unit == "data set" else len(judged)
