"""What changed between two run folders: verdicts on the same claims, rates, systems, findings and costs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.rows import MACRO
from factaudit.audit.differences import differences
from factaudit.audit.quantification import quantification
from factaudit.audit.rates import rates
from factaudit.errors import InputError, Problem, UsageError, hint
from factaudit.files import write_json, write_text
from factaudit.results import Results
from factaudit.tables import read_claims, read_verdicts

Row = dict[str, Any]
#: The figures whose change is told; a change of BAcc or of bias has a paired interval.
FIGURES = ("bacc", "tpr", "tnr", "ppr", "bias", "unscored", "flips")
_CONDITION = re.compile(r"\s*([\w_]+)\s*(<=|>=|<|>)\s*([+-]?\d*\.?\d+)\s*")


@dataclass(frozen=True)
class RunDiff:
    """Two runs on the claims that they share.

    changes: a row per evaluator and dataset (``__macro__``: the mean over datasets): n claims, flips (share of the
    claims' predictions that differ), to_right and to_wrong (labelled claims whose prediction became so), and per
    figure ``KEY_before``, ``KEY_after`` and ``KEY`` (= after - before), BAcc and bias with ``_low`` and ``_high``.
    systems: where an evaluator's order of systems by predicted error rate changed. findings: those that appeared and
    those that went. costs: US dollars of the calls, where known.
    """

    before: str
    after: str
    n_claims: int
    only_before: int
    only_after: int
    changes: list[Row]
    systems: list[Row]
    findings: list[Row]
    costs: Row

    def failing(self, conditions: Sequence[str]) -> list[str]:
        """The conditions (``bacc<-0.02``) that some evaluator meets over all datasets, as sentences.

        A condition is on a figure's change (after - before); of ``flips`` on the share itself. Raises `UsageError`.
        """
        told = []
        for text in conditions:
            found = _CONDITION.fullmatch(text)
            if found is None or found[1] not in FIGURES:
                known = hint(found[1], FIGURES) if found else f" (known: {', '.join(FIGURES)})"
                raise UsageError(f"--fail-on: expected FIGURE<NUMBER or FIGURE>NUMBER, found {text!r}{known}")
            key, sign, limit = found[1], found[2], float(found[3])
            for row in self.changes:
                value = row[key]
                if row["dataset"] == MACRO and value is not None and _holds(value, sign, limit):
                    told.append(f"{row['evaluator']}: {key} changed by {value:+.4f} ({text.strip()})")
        return told


def compare_runs(before: str | Path, after: str | Path, *, replicates: int = 2000, seed: int = 0) -> RunDiff:
    """Compare two run folders on the claims that both have (by claim_id). Raises `InputError`."""
    first, second = Results.load(before), Results.load(after)
    claims, other = (read_claims(Path(folder) / "claims.parquet") for folder in (before, after))
    shared = claims[claims["claim_id"].isin(other["claim_id"])].reset_index(drop=True)
    if shared.empty:
        raise InputError(f"{before}, {after}", [Problem("the two runs have no claim in common (by claim_id)")])
    tables = [read_verdicts(Path(folder) / "verdicts.parquet") for folder in (before, after)]
    names = [name for name in first.evaluators if name in set(second.evaluators)]
    judged = [Judged.join(shared, table[table["evaluator"].isin(names)]) for table in tables]
    intervals = Intervals(replicates=replicates, seed=seed) if replicates else None
    return RunDiff(
        str(before),
        str(after),
        len(shared),
        len(claims) - len(shared),
        len(other) - len(shared),
        _changes(shared, tables, judged, names, intervals),
        _systems(judged),
        [*_findings(second, first, "new"), *_findings(first, second, "gone")],
        {"before": _cost(first), "after": _cost(second)},
    )


def write_diff(found: RunDiff, path: Path, failing: Sequence[str] = ()) -> None:
    """Write a diff as a page (``.html``) or as JSON. ``failing``: the conditions that hold, as sentences."""
    if path.suffix != ".html":
        write_json(path, asdict(found))
        return
    from factaudit.report.html import environment, style_of

    keys = ("bacc", "tpr", "tnr", "ppr", "bias", "unscored")
    made = environment().get_template("diff.html.j2")
    write_text(path, made.render(found=found, failing=failing, keys=keys, style=style_of()))


def _changes(
    claims: pd.DataFrame,
    tables: Sequence[pd.DataFrame],
    judged: Sequence[Judged],
    names: Sequence[str],
    intervals: Intervals | None,
) -> list[Row]:
    # The same evaluator before and after is a pair of evaluators on the same claims: the paired audit tells them apart.
    marked = []
    for table, mark in zip(tables, ("\0before", "\0after"), strict=True):
        table = table[table["evaluator"].isin(names)]
        marked.append(table.assign(evaluator=table["evaluator"] + mark))
    pairs = {f"{name}\0after": f"{name}\0before" for name in names}
    both = Judged.join(claims, pd.concat(marked, ignore_index=True))
    paired = {
        (row["dataset"], row["evaluator_a"].removesuffix("\0after"), row["key"]): row
        for row in differences(both, pairs=pairs, intervals=intervals)
    }
    figures = [{(row["dataset"], row["evaluator"]): row for row in rates(one, intervals=None)} for one in judged]
    dataset, datasets = judged[0].datasets
    rows = []
    for name in names:
        first, second = (one.prediction[one.evaluators.index(name)] for one in judged)
        for place in [*datasets, MACRO]:
            inside = slice(None) if place == MACRO else dataset == datasets.index(place)
            a, b, label = first[inside], second[inside], judged[0].label[inside]
            changed, known = a != b, label >= 0
            row: Row = {"dataset": place, "evaluator": name, "n": len(a), "flips": float(changed.mean())}
            row["to_right"] = int((known & changed & (b == label)).sum())
            row["to_wrong"] = int((known & changed & (a == label)).sum())
            for key in ("bacc", "tpr", "tnr", "ppr"):
                row |= _change(key, *(one.get((place, name), {}).get(key) for one in figures))
            row |= _change("unscored", float((a < 0).mean()), float((b < 0).mean()))
            for key in ("bacc", "bias"):
                found = paired.get((place, name, key), {})
                row[key] = found.get("difference")
                row |= {f"{key}_{end}": found.get(f"difference_{end}") for end in ("low", "high")}
            rows.append(row)
    return rows


def _change(key: str, before: float | None, after: float | None) -> Row:
    defined = before is not None and after is not None
    return {f"{key}_before": before, f"{key}_after": after, key: after - before if defined else None}  # type: ignore[operator]


def _systems(judged: Sequence[Judged]) -> list[Row]:
    """The order of the systems of a dataset by predicted error rate, where it changed."""
    orders: list[dict[tuple[str, str], list[str]]] = []
    for one in judged:
        found: dict[tuple[str, str], list[tuple[float, str]]] = {}
        for row in quantification(one, levels=("claim",), intervals=None):
            if row["system"] not in (None, "__all__") and row["predicted_error_rate"] is not None:
                place = found.setdefault((row["dataset"], row["evaluator"]), [])
                place.append((row["predicted_error_rate"], row["system"]))
        orders.append({key: [system for _, system in sorted(rated)] for key, rated in found.items()})
    return [
        {"dataset": key[0], "evaluator": key[1], "before": order, "after": orders[1][key]}
        for key, order in orders[0].items()
        if key in orders[1] and orders[1][key] != order
    ]


def _findings(of: Results, other: Results, what: str) -> list[Row]:
    def key(finding: Row) -> tuple[Any, ...]:
        return finding["id"], finding["severity"], finding["evaluator"], finding["dataset"]

    there = {key(finding) for finding in other.findings}
    return [{"change": what, **finding} for finding in of.findings if key(finding) not in there]


def _cost(results: Results) -> float | None:
    costs = [float(call["cost"]) for call in results.calls if call.get("cost") is not None]
    return sum(costs) if costs and len(costs) == len(results.calls) else None


def _holds(value: float, sign: str, limit: float) -> bool:
    return {"<": value < limit, "<=": value <= limit, ">": value > limit, ">=": value >= limit}[sign]
