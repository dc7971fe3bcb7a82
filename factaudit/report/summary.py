"""The report's opening in plain language: which evaluator, how far to trust it, on what; and the findings by check.

What is said of figures comes from the audits' declarations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from factaudit.audit import declared
from factaudit.audit.core.decisions import limits_of
from factaudit.audit.core.declare import Audited, Column
from factaudit.audit.core.rows import ALL, MACRO, Row
from factaudit.audit.core.words import UNDEFINED, figure, heading, percent, round_points, span
from factaudit.report.tables import Cell, Table, beside
from factaudit.text.printable import count

#: From the gravest to the least.
SEVERITIES = ("fail", "warn", "ok")


def best_first(audited: Audited) -> list[str]:
    """The evaluators from the best on, by the first audit that can say so; floors, no candidates, come last."""
    for name, audit in declared().items():
        if audit.best is not None and (found := audit.best(audited.rows(name))):
            return sorted(found, key=audited.floors.__contains__)
    return []


def lead(results: Mapping[str, Any]) -> list[str]:
    """A few sentences that answer the question; one string per paragraph."""
    audited = Audited(results["audits"], results["about"])
    best = next(iter(best_first(audited)), None)
    if best in audited.floors and len(audited.floors) < len(results["about"].get("evaluators") or []):
        best = None  # what is judged has no figure: to tell of what it is measured by would mislead
    paragraphs = [_about(results["about"])]
    said = {name: a.opening(audited, best) for name, a in declared().items() if a.opening and audited.rows(name)}
    # Who is best comes first.
    paragraphs += [said.pop(name) for name in list(said) if declared()[name].best is not None]
    paragraphs += said.values()
    told = results["about"].get("evaluators", [])
    missing = _shares({each["name"]: (_without_prediction(each), each.get("n_verdicts") or 0) for each in told})
    if missing:
        paragraphs.append(
            f"Verdicts without a prediction: {missing}. They count as unscored: they leave no denominator, "
            "and each figure that they could change comes with the bounds between which it would lie."
        )
    guessed = _shares({each["name"]: (each.get("n_guessed") or 0, each.get("n_verdicts") or 0) for each in told})
    if guessed:
        paragraphs.append(f"Replies that could not be read and were counted as a verdict all the same: {guessed}.")
    return [text for text in paragraphs if text]


_FAILED = ("unparsed", "refused", "error", "skipped")


def _without_prediction(each: Row) -> int:
    return sum(each.get(f"n_{status}") or 0 for status in _FAILED) - (each.get("n_guessed") or 0)


def _shares(counts: Mapping[str, tuple[int, int]]) -> str:
    return ", ".join(f"{name} ({part:,} of {whole:,})" for name, (part, whole) in counts.items() if part)


def _about(about: Mapping[str, Any]) -> str:
    claims = about.get("claims") or []
    evaluators = about.get("evaluators") or []
    labelled = sum(row.get("n_labelled") or 0 for row in claims)
    attributable = sum(row.get("n_attributable") or 0 for row in claims)
    total = sum(row.get("n_claims") or 0 for row in claims)
    if not claims:
        return ""
    text = f"{count(total, 'claim')} from {count(len(claims), 'dataset')}"
    floors = sum(bool(row.get("floor")) for row in evaluators)
    told = count(len(evaluators) - floors, "evaluator") + (f" and {count(floors, 'floor')}" if floors else "")
    text = f"{told}, {text}" if evaluators else text
    if not labelled:
        return f"{text}; none of the claims is labelled, so that evaluators can be compared with each other only."
    which = "all labelled" if labelled == total else f"{labelled:,} of them labelled"
    return f"{text}, {which}: {percent(attributable / labelled)} of the labels say attributable."


def decisions(results: Mapping[str, Any]) -> Table | None:
    """May each evaluator be used for each task? A line per evaluator, a column per task, with figure and sentence."""
    audited = Audited(results["audits"], results["about"])
    tasks = [one for name, audit in declared().items() if audited.rows(name) for one in audit.decides]
    tasks.sort(key=lambda one: one.place)
    given = [row["name"] for row in results["about"].get("evaluators") or []]
    names = [name for name in dict.fromkeys([*best_first(audited), *given]) if name not in audited.floors]
    answers = {(name, one.task): one.answer(audited, name) for name in names for one in tasks}
    tasks = [one for one in tasks if any(answers[name, one.task] is not None for name in names)]
    names = [name for name in names if any(answers[name, one.task] is not None for one in tasks)]
    if not names or not tasks:
        return None
    body = []
    for name in names:
        cells = [Cell(name)]
        for one in tasks:
            answer = answers[name, one.task]
            cells.append(Cell(UNDEFINED) if answer is None else Cell(answer.may, [answer.figure, answer.sentence]))
        body.append(cells)
    limits = limits_of(audited)
    caption = (
        f"May it be used to …? By these limits, which can be set: TPR and TNR over {percent(limits.min_rate)} for "
        f"single errors, every system's error rate within {round_points(limits.max_bias)} points, at most "
        f"{percent(limits.max_misordered)} of the pairs of systems misordered where the labels order at least "
        f"{percent(limits.min_orderable)}. “Cannot tell”: these labels do not say."
    )
    columns = ["evaluator", *(one.task for one in tasks)]
    return Table(caption, columns, [False] * len(columns), body, len(body))


def glance(results: Mapping[str, Any]) -> Table | None:
    """One line per evaluator: what to know before trusting it."""
    audited = Audited(results["audits"], results["about"])
    glances = {name: audit.glance for name, audit in declared().items() if audit.glance and audited.rows(name)}
    names = [row["name"] for row in results["about"].get("evaluators") or []]
    names += [row["evaluator"] for name in glances for row in audited.rows(name)]
    names = sorted(dict.fromkeys([*best_first(audited), *names]), key=audited.floors.__contains__)
    found = {
        name: {each: row for each in names if (row := one.figures(audited.rows(name), each)) is not None}
        for name, one in glances.items()
    }
    glances = {name: one for name, one in glances.items() if found[name]}
    order = [each for each in names if any(each in rows for rows in found.values())]
    if not order:
        return None
    findings = results.get("findings") or []
    columns = ["evaluator", *(heading(column) for one in glances.values() for column in one.columns.values())]
    columns += ["findings: fail", "findings: warn"] * bool(findings)
    body = []
    for evaluator in order:
        floor = evaluator in audited.floors
        cells = [Cell(evaluator, ["a floor: reads nothing"] if floor else [])]
        for name, one in glances.items():
            row = found[name].get(evaluator, {})
            for key, column in one.columns.items():
                defined = row.get(key) is not None
                notes = beside({k: v for k, v in row.items() if k in (f"{key}_low", f"{key}_high")}, key, column)
                why = "" if defined else str(row.get("reason") or "")
                cells.append(Cell(figure(column, row.get(key)), notes if defined else [], why))
        if findings:
            for severity in ("fail", "warn"):
                mine = [f for f in findings if f.get("evaluator") == evaluator and f.get("severity") == severity]
                cells.append(Cell(UNDEFINED) if floor else Cell(str(len(mine))))
        body.append(cells)
    notes = [one.note(next(iter(found[name].values()))) for name, one in glances.items()]
    caption = " ".join(["The evaluators at a glance.", *filter(None, notes)])
    return Table(caption, columns, [False] + [True] * (len(columns) - 1), body, len(body))


@dataclass(frozen=True)
class Warned:
    """The findings of one check, gravest first, within a severity those on the best evaluators first."""

    title: str
    findings: list[Row]
    #: The audit whose check it is; "" where none declares it.
    audit: str = ""

    def counts(self) -> str:
        """``3 fail, 1 warn``."""
        severities = [each.get("severity") for each in self.findings]
        return ", ".join(f"{severities.count(one)} {one}" for one in SEVERITIES if one in severities)


#: So many findings open the report.
MOST_HEADLINES = 5


@dataclass(frozen=True)
class Headline:
    """What a check found of an evaluator: its gravest finding, which stands for those on ``more`` other data sets."""

    check: Warned
    finding: Row
    more: int

    @property
    def statement(self) -> str:
        text = str(self.finding.get("statement"))
        return f"{text} (And so on {count(self.more, 'more dataset')}.)" if self.more else text


def headlines(groups: Sequence[Warned], most: int = MOST_HEADLINES) -> list[Headline]:
    """The findings to read first: of every check the one on the best evaluator, then the next; the gravest first, and
    among equals those that hold on most data sets."""
    ranked = []
    for group in groups:
        lines: dict[tuple[Any, Any], list[Row]] = {}
        for each in group.findings:
            lines.setdefault((each.get("severity"), each.get("evaluator")), []).append(each)
        for depth, ((severity, _), found) in enumerate(lines.items()):
            more = len({each.get("dataset") for each in found} - {None, ALL, MACRO, found[0].get("dataset")})
            gravity = SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)
            ranked.append((gravity, depth, -more, Headline(group, found[0], more)))
    return [headline for *_, headline in sorted(ranked, key=lambda one: one[:3])[:most]]


def checks(results: Mapping[str, Any]) -> tuple[list[Warned], list[Row]]:
    """The checks that have something to warn of, and the findings that are ``ok``."""
    gravity = {severity: position for position, severity in enumerate(SEVERITIES)}
    best = best_first(Audited(results["audits"], results.get("about", {})))
    rank = {evaluator: position for position, evaluator in enumerate(best)}
    known = {check.id: (check.title, audit.name) for audit in declared().values() for check in audit.checks}

    def order(finding: Row) -> tuple[int, int]:
        return gravity.get(str(finding.get("severity")), 0), rank.get(str(finding.get("evaluator")), len(rank))

    found = results.get("findings") or []
    grave = [each for each in found if each.get("severity") != "ok"]
    groups = [
        Warned(title, sorted((f for f in grave if f.get("id") == one), key=order), audit)
        for one in dict.fromkeys(each.get("id") for each in grave)
        for title, audit in [known.get(str(one), (str(one), ""))]
    ]
    return groups, [each for each in found if each.get("severity") == "ok"]


def evidence(finding: Row) -> str:
    """A finding's figures in one line: ``TPR 91.0 %, gap +42.8 points (+30.1 to +55.0), n 120``."""
    figures = finding.get("evidence") or {}
    said = []
    for key, value in figures.items():
        if key.endswith(("_low", "_high", "_min", "_max")) and key.rpartition("_")[0] in figures:
            continue
        column = _column(str(finding.get("id")), key)
        unit = {"percent": "%", "points": "points"}.get(column.unit, "")
        text = " ".join(part for part in (column.heading, figure(column, value), unit) if part)
        low, high = figures.get(f"{key}_low"), figures.get(f"{key}_high")
        if low is not None and high is not None:
            text += f" ({span(column, low, high)})"
        least, most = figures.get(f"{key}_min"), figures.get(f"{key}_max")
        if least is not None and most is not None:
            text += f", bounds {span(column, least, most)}"
        said.append(text)
    return ", ".join(said)


def _column(check: str, key: str) -> Column:
    """The column of a figure in a finding's evidence."""
    for audit in declared().values():
        for each in audit.checks:
            if each.id == check:
                known = {**audit.columns, **each.evidence}
                if key in known:
                    return known[key]
                if key[-2:] in ("_a", "_b") and key[:-2] in known:
                    return replace(known[key[:-2]], heading=f"{known[key[:-2]].heading} {key[-1]}")
    return Column(key.removeprefix("n_").replace("_", " "))
