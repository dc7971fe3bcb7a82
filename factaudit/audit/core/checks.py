"""Which figures are significantly beyond a limit? An audit declares checks; what they find is data,
and worded last.

A `Check` names rows, a figure of them and a limit. Its test is the figure's own interval, moved to
either bound, so that it knows clusters and unscored claims; Holm's correction over all rows that it
looks at keeps the chance that it warns of nothing at 5 % a run (`tests/validity/findings.py`). The
rows of an evaluator make one `Finding`: that of its worst row, with how many others are like it.
Its sentence cites nothing but fields of the finding (`Finding.evidence`).

    Check(
        id="stability",
        title="Verdicts that change when asked again",
        rows=methodcaller("per_dataset", "stability"),
        figure="flip_rate",
        limit=0.05,
        says="Asked again, {evaluator} changes {flip_rate:percent} of its verdicts{on}, {verdict}.",
        beyond="more than {limit:limit} %",
        advice="All its figures vary by chance; ask several times and take the majority.",
        null="at most 5 % of the verdicts change, on every data set",
    )

`Count` tests nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from factaudit.arrays.figures import FEWEST_CLUSTERS_FOR_T_TEST, Figure
from factaudit.arrays.judgements import ALL_TOGETHER
from factaudit.audit.core.audited_run import AuditedRun, DecisionLimits, count_open
from factaudit.audit.core.result_rows import MACRO_MEAN, Row, group_rows, is_total_key, pick_figure
from factaudit.audit.core.wording import list_cited_fields
from factaudit.stats.hypothesis_tests import (
    holm_adjusted_p,
    p_value_of_interval,
    select_rejectable_tests,
    sign_test_p,
)
from factaudit.stats.mover import mover_weighted_sum

# ---- significance
# The p-value of a figure inverts its interval, so it is a test that uses clusters. The interval is
# moved to either bound, so that nothing is significant that unscored claims could undo. Holm's
# correction over all rows of a check keeps the probability of any false alarm at 5 %, however many
# rows there are.

#: The side of the limit on which a figure is bad; off: farther from 0 than the limit.
Side = Literal["over", "under", "off"]


class Tests:
    """p-values of the rows' figures against a limit, by their intervals.

    If a row has its own p-value of no difference (``p_bias`` for ``bias``), the p-value is never
    lower than it; without an interval it is the only one. Rows with neither are not tested, but
    they count in the correction.
    """

    def __init__(
        self, run: AuditedRun, rows: Sequence[Row], figure: str, is_share: bool = False
    ) -> None:
        def read(ending: str) -> np.ndarray:
            return np.array([row.get(f"{figure}{ending}") for row in rows], dtype=float)

        self.run, self.is_share = run, is_share
        self.value, self.low, self.high = read(""), read("_low"), read("_high")
        least, most = read("_min"), read("_max")
        self.least, self.most = (np.where(np.isnan(end), self.value, end) for end in (least, most))
        self.own = np.array([row.get(f"p_{figure}") for row in rows], dtype=float)
        self.has_interval = ~np.isnan(self.low) & ~np.isnan(self.high)
        self.freedom = np.array([count_degrees_of_freedom(run, row) for row in rows])
        self.can_reject = self._select_rejectable(rows)

    def _select_rejectable(self, rows: Sequence[Row]) -> np.ndarray:
        """With few clusters, a row's own p-value is at least that of the sign test when all
        clusters err in the same direction. So some rows cannot become significant beside the
        others, and leave their share of the level to these (Tarone 1990)."""
        clusters = np.array([row.get("n_clusters") for row in rows], dtype=float)
        is_few = (clusters < FEWEST_CLUSTERS_FOR_T_TEST) & ~np.isnan(self.own) & self.has_interval
        least_p = np.zeros(len(rows))
        least_p[is_few] = sign_test_p(clusters[is_few], np.zeros(int(is_few.sum())))
        self.own = np.fmax(self.own, np.where(is_few, least_p, np.nan))
        return select_rejectable_tests(least_p, 1 - self.run.confidence)

    def adjust(self, limit: float, side: Side, *, has_bounds: bool = True) -> np.ndarray:
        """Holm's adjusted p-values of the hypothesis that the figure is not beyond the limit; NaN
        if it was not tested.

        has_bounds: whatever the unscored claims are; otherwise as if they were like the scored
        ones.
        """
        p = np.where(self.can_reject, self.compute(limit, side, has_bounds=has_bounds), np.nan)
        adjusted = np.full(len(p), np.nan)
        adjusted[self.can_reject] = holm_adjusted_p(np.nan_to_num(p, nan=1.0)[self.can_reject])
        return np.where(np.isnan(p), np.nan, adjusted)

    def are_within(self, limit: float, side: Side) -> np.ndarray:
        """bool: which figures are within the limit by their intervals and their bounds."""
        low, high = self.low - (self.value - self.least), self.high + (self.most - self.value)
        return {
            "over": high <= limit,
            "under": low >= limit,
            "off": (-limit <= low) & (high <= limit),
        }[side]

    def compute(self, limit: float, side: Side, *, has_bounds: bool = True) -> np.ndarray:
        """Two-sided p-values without adjustment."""
        over = self._on_one_side(limit, 1, has_bounds)
        under = self._on_one_side(-limit if side == "off" else limit, -1, has_bounds)
        p = {"over": over, "under": under, "off": np.minimum(over, under)}[side]
        return np.where(self.has_interval, p, self.own)

    def _on_one_side(self, limit: float, side: int, has_bounds: bool) -> np.ndarray:
        half, end = (
            (self.value - self.low, self.low) if side > 0 else (self.high - self.value, self.high)
        )
        point = (self.least if side > 0 else self.most) if has_bounds else self.value
        # The variance is that at the limit, not at the interval's end.
        if self.is_share and 0 < limit < 1:
            half = half * np.sqrt(limit * (1 - limit) / np.maximum(end * (1 - end), 1e-12))
        p = p_value_of_interval(side * (point - limit), half, self.freedom, self.run.confidence)
        # A figure that is not significantly beyond 0 is not significantly beyond its limit.
        if side * limit >= 0:
            p = np.where(np.isnan(self.own), p, np.maximum(p, self.own))
        return p


def count_degrees_of_freedom(run: AuditedRun, row: Row) -> float:
    """One less than the number of clusters on which a row rests: its own number, else the largest
    possible one of its data set."""
    if row.get("n_clusters") is not None:
        return float(row["n_clusters"] - 1)
    counts = [run.cluster_counts.get(str(row.get("dataset"))), row.get("n")]
    return float(min((count for count in counts if count is not None), default=1e6) - 1)


# ---- checks and findings

#: fail: significantly beyond a limit; warn: a lesser fault, or one that is not certain; ok:
#: significantly within it.
Severity = Literal["fail", "warn", "ok"]
#: beyond: significantly beyond the limit. slight: significantly not 0, and not significantly beyond
#: the limit. open: the unscored claims decide. within: significantly within the limit. From the
#: gravest to the least, with the words that stand for {verdict} in a sentence.
VERDICT_WORDS = {
    "beyond": "significantly {beyond}",
    "slight": "significantly {slight}, but not significantly {beyond}",
    "open": "{beyond} or not: that depends on {n_open:number unscored claim}",
    "not shown": "not significantly {beyond}",
    "within": "significantly not {beyond}",
}
_GRAVEST_FIRST = list(VERDICT_WORDS)


@dataclass(frozen=True)
class Finding:
    """What a check found of an evaluator (or a pair of them, "a / b"; None: of the claims).

    verdict: one of `VERDICT_WORDS`. severity: fail, warn, ok; None where nothing can be said.
    evidence: all that the
    statement cites. row: what it is about; alike: all rows with this verdict.
    """

    id: str
    verdict: str
    severity: Severity | None
    evaluator: str | None
    dataset: str | None
    statement: str
    evidence: Row
    row: Row = field(repr=False)
    alike: tuple[Row, ...] = field(repr=False)

    def as_dict(self) -> Row:
        """As ``results.json`` has it."""
        return {
            key: getattr(self, key)
            for key in ("id", "severity", "evaluator", "dataset", "statement", "evidence")
        }


@dataclass(frozen=True, kw_only=True)
class Check:
    """A figure of rows against a limit.

    ``says`` is a sentence on a row, in which ``{verdict}`` becomes "significantly" and ``beyond``;
    ``{on}`` its data set; ``{bias:points}``, ``{n:number claim}`` values of the row
    (`factaudit.audit.core.wording`). ``null`` says in a line when nothing is wrong; then it warns
    in at most 5 % of runs.
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
    #: Which claims are behind it, of the kinds that the claim browser has (``disagree``,
    #: ``unscored``, ``contrary``).
    claims: str = "wrong"
    #: Whether the first screen says it.
    on_screen: bool = False
    _words: ClassVar[Mapping[str, str]] = VERDICT_WORDS

    def find(self, run: AuditedRun) -> list[Finding]:
        """A finding for each group of rows, also where nothing can be said (severity None)."""
        judged = self.judge_rows(run)
        return [self._summarise(run, rows) for rows in group_rows(judged, *self.by).values()]

    def measure_gravity(self, evidence: Row) -> float:
        """How far beyond the limit a finding with this evidence is."""
        return (
            self._exceed(evidence, evidence.get("limit") or 0.0) if self.figure in evidence else 0.0
        )

    def judge_rows(self, run: AuditedRun) -> list[Row]:
        """The rows with their ``verdict``, the ``limit``, how many ``n_tests`` were made and ``p``,
        adjusted for all of them; None where a row was not tested."""
        limit, level = self._read_limit(run), 1 - run.confidence
        rows = [row for row in self.rows(run) if row.get(self.figure) is not None]
        tests = Tests(run, rows, self.figure, self.is_share)
        p = tests.adjust(limit, self.side)
        p_of_scored = tests.adjust(limit, self.side, has_bounds=False)
        p_of_zero = tests.adjust(0.0, self.side) if self.slight else np.ones(len(rows))
        conditions = {
            "beyond": p < level,
            "within": tests.are_within(limit, self.side),
            "slight": p_of_zero < level,
            "open": p_of_scored < level,
        }
        verdicts = np.select(list(conditions.values()), list(conditions), "not shown")
        told = {"limit": limit, "n_tests": int(np.isfinite(p).sum())}
        return [
            row | told | {"verdict": str(verdict), "p": None if np.isnan(one) else float(one)}
            for row, verdict, one in zip(rows, verdicts, p, strict=True)
        ]

    def _read_limit(self, run: AuditedRun) -> float:
        return self.limit(run.limits) if callable(self.limit) else self.limit

    def _exceed(self, row: Row, limit: float) -> float:
        value = row[self.figure]
        return float(
            {"over": value - limit, "under": limit - value, "off": abs(value) - limit}[self.side]
        )

    def _summarise(self, run: AuditedRun, rows: Sequence[Row]) -> Finding:
        """The finding of a group of rows: of its parts, where one of them has the verdict, else of
        their totals."""
        verdict = min((row["verdict"] for row in rows), key=_GRAVEST_FIRST.index)
        parts = [row for row in rows if not _is_total(row)] or rows
        is_of_total = all(row["verdict"] != verdict for row in parts)
        looked, unit = parts, self.unit
        if is_of_total:
            looked, unit = [row for row in rows if _is_total(row)], "data set"
        alike = [row for row in looked if row["verdict"] == verdict]
        worst = max(alike, key=lambda row: self._exceed(row, row["limit"]))
        counts = {
            "n_beyond": _count(unit, alike),
            "n_compared": _count(unit, looked),
            "n_open": count_open(worst),
        }
        severity: Severity | None = None if verdict == "not shown" else "warn"
        says = self.says
        if verdict == "beyond":
            severity = worst.get("severity", self.severity)
        elif verdict == "within":
            says, severity = self.within, "ok" if self.within else None
        if verdict in ("beyond", "slight"):
            preposition = "on" if unit == "data set" else "for"
            if counts["n_compared"] > 1:
                some = "{n_beyond} of {n_compared}"
                if counts["n_beyond"] == counts["n_compared"]:
                    some = "both" if counts["n_compared"] == 2 else "all {n_compared}"
                says += f" This is so {preposition} {some} {unit}s."
        if verdict == "beyond" and self.advice:
            says += f" {self.advice}"
        return self._word(run, verdict, severity, says, worst | counts, alike)

    def _word(
        self,
        run: AuditedRun,
        verdict: str,
        severity: Severity | None,
        says: str,
        fields: Row,
        alike: Sequence[Row],
    ) -> Finding:
        """The finding with its sentences, whose slots are filled first with words and then with
        figures."""
        words = {"on": describe_place(fields), "verdict": self._words[verdict]}
        for name, text in (words | {"slight": self.slight, "beyond": self.beyond}).items():
            says = says.replace(f"{{{name}}}", text)
        ends = [f"{self.figure}{end}" for end in ("", "_low", "_high", "_min", "_max")]
        cited = [*self.by, *list_cited_fields(says, fields), *ends]
        cited += ["n", "n_unscored", "limit", "p", "n_tests"]
        known = fields.keys() - {"evaluator", "dataset"}
        dataset = fields.get("dataset")
        return Finding(
            id=self.id,
            verdict=verdict,
            severity=severity,
            evaluator=name_evaluator(fields),
            dataset=None if verdict == "within" or is_total_key(dataset) else dataset,
            statement=run.fill(says, fields),
            evidence={key: fields[key] for key in cited if key in known},
            row=fields,
            alike=tuple(alike),
        )


@dataclass(frozen=True, kw_only=True)
class Count(Check):
    """A figure that is counted and not tested: beyond its limit, whatever other claims would
    give."""

    severity: Severity = "warn"
    _words: ClassVar[Mapping[str, str]] = {"beyond": "{beyond}", "within": "not {beyond}"}

    def judge_rows(self, run: AuditedRun) -> list[Row]:
        limit, judged = self._read_limit(run), []
        for row in self.rows(run):
            if row.get(self.figure) is not None:
                verdict = "beyond" if self._exceed(row, limit) > 0 else "within"
                judged.append(row | {"limit": limit, "verdict": verdict, "n_tests": 0, "p": None})
        return judged


# ---- which rows, and what they are of


def combine_figures(name: str, *parts: tuple[Row, str, float]) -> Row:
    """The figure ``name`` with its bounds and interval: a weighted sum of figures of rows, as if
    independent."""
    ends = [
        [row.get(f"{key}{end}") for end in ("", "_low", "_high", "_min", "_max")]
        for row, key, _ in parts
    ]
    point, low, high, least, most = np.array(ends, dtype=float).T[:, None]
    weight = np.array([part[2] for part in parts])
    total, interval = mover_weighted_sum(point, (low, high), weight)
    least, most = (np.where(np.isnan(end), point, end) for end in (least, most))
    smallest, greatest = (
        (weight * np.where(weight * side > 0, most, least)).sum(-1) for side in (-1, 1)
    )
    return pick_figure(name, Figure(total, (smallest, greatest), interval), 0)


def name_evaluator(row: Mapping[str, Any]) -> str | None:
    """Whom a row is about; a pair of evaluators is one, "a / b"."""
    if row.get("evaluator") is not None:
        return str(row["evaluator"])
    pair = row.get("evaluator_a"), row.get("evaluator_b")
    return None if None in pair else " / ".join(map(str, pair))


def describe_place(row: Row) -> str:
    """The template of where a row is from: `` on {dataset}``, or on what average."""
    if row.get("dataset") == MACRO_MEAN:
        return " on average over {n_datasets:number data set}"
    return "" if row.get("dataset") in (None, ALL_TOGETHER) else " on {dataset}"


def _is_total(row: Row) -> bool:
    """Whether the row sums up others: a mean over data sets, or one that says so (``is_total``)."""
    return bool(row.get("is_total", row.get("dataset") == MACRO_MEAN))


def _count(unit: str, rows: Sequence[Row]) -> int:
    return len({row.get("dataset") for row in rows}) if unit == "data set" else len(rows)
