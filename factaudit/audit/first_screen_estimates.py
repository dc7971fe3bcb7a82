"""What the first screen says of estimates: which rates to report, and whether those that are predicted will do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.core.decision_limits import has_interval, read_decision_limits
from factaudit.audit.core.result_rows import Row, is_total_key
from factaudit.audit.core.significance import select_rows_beyond_limit
from factaudit.audit.core.statements import Statement, make_statement
from factaudit.audit.estimate_looks import select_last_looks
from factaudit.audit.estimates import add_labelled_rates_to_audit_estimates


def list_first_screen_estimate_advice(run: AuditedRun) -> Iterator[tuple[str, Statement]]:
    """Of a run without evaluators to compare: which rates to report, and whether those that are predicted will do."""
    summary = [row for row in run.rows("estimate_summary") if row.get("quote")]
    if not summary:
        return
    methods = {row["quote"] for row in summary}
    level, has_levels = select_level_of_estimates(summary), len({row["level"] for row in summary}) > 1
    of_level = [row for row in summary if row["level"] == level]
    estimated = [row for row in list_first_screen_estimates(run) if row["level"] == level]
    if len(methods) == 1 and estimated:
        # As elsewhere, without rates that are borrowed from other systems' labels.
        own = [row for row in estimated if row["n_labels"]] or estimated
        estimated = add_widths_to_first_screen_estimates(own)
        text = "the {method} rates: {summary.n_labels:number label} "
        text += f"of {level}s give their rates " if has_levels else "give "
        text += "intervals {estimated.width:points} points wide" + (" on average." if len(estimated) > 1 else ".")
        method = {"labels": "labels-only"}.get(name := methods.pop(), name)
        yield ("Use", make_statement(text, method=method, summary=of_level, estimated=estimated))
    key = ("dataset", "level", "system")
    raw = {tuple(row[one] for one in key): row["rate"] for row in run.rows("estimates") if row["method"] == "raw"}
    quoted = [row for row in list_first_screen_estimates(run) if raw.get(tuple(row[one] for one in key)) is not None]
    beside = []
    for row in quoted:
        predicted = raw[tuple(row[one] for one in key)]
        ends = {"low": predicted - row["rate_high"], "high": predicted - row["rate_low"]}
        beside.append(row | {"off": predicted - row["rate"]} | {f"off_{end}": value for end, value in ends.items()})
    if off := select_rows_beyond_limit(run, beside, "off", 0):
        mains = list(dict.fromkeys(row["main"] for row in summary))
        outside = [row for row in beside if row["off_low"] > 0 or row["off_high"] < 0]
        text = "the rates that {mains} {predict}: {off:count} of {beside:count} "
        text += ("differs" if len(off) == 1 else "differ") + " significantly from these estimates"
        text += " ({outside:count} lie outside their intervals)." if len(outside) > len(off) else "."
        yield (
            "Avoid",
            make_statement(
                text,
                off=off,
                beside=beside,
                outside=outside,
                mains=" and ".join(mains),
                predict="predict" if len(mains) > 1 else "predicts",
            ),
        )
    yield from _list_undecided_claims(summary, quoted)
    if left_out := [row for row in of_level if row.get("undecided") == "leave-out" and row["n_undecided"]]:
        seen = [row | {"n_seen": row["n_labels"] + row["n_undecided"]} for row in of_level]
        text = f"the rates are of the {level}s that people can decide: of {{seen.n_seen:number {level}}} that they "
        text += "looked at, {left_out.n_undecided:number} are left out."
        yield ("Beware", make_statement(text, seen=seen, left_out=left_out))
    yield from _list_systems_without_labels(run, of_level)
    yield from _list_datasets_without_rates(run)
    for row in select_last_looks(run.rows("estimate_look_summary")):
        if row["look"] > 1:
            where = "of {row.dataset} " if len({one["dataset"] for one in summary}) > 1 else ""
            text = "the intervals above hold at one look. After {row.look:number look} those "
            text += where + "that hold at every look are "
            text += (
                "{row.width:points} points wide on average" + " ({row.level}s)." * has_levels + "." * (not has_levels)
            )
            yield ("Beware", make_statement(text, row=row))
    for row in summary:
        compared = [
            each
            for each in run.rows("estimate_differences")
            if (each["dataset"], each["level"]) == (row["dataset"], row["level"])
        ]
        apart = [each for each in compared if each["order"] != "?"]
        if compared and len(apart) < read_decision_limits(run).min_orderable * len(compared):
            text = "of {compared:count pair} of systems on {row.dataset} the hierarchical estimates "
            text += "of {row.level}s " * has_levels + "tell "
            text += "only {apart:count} apart." if apart else "none apart."
            yield ("Beware", make_statement(text, apart=apart, compared=compared, row=row))


def _list_undecided_claims(summary: Sequence[Row], quoted: Sequence[Row]) -> Iterator[tuple[str, Statement]]:
    """What undecided claims count for. Where annotators' errors are estimated, a split of theirs says something."""
    undecided = [row for row in quoted if row.get("n_undecided") and row["rate_min"] < row["rate_max"]]
    level = select_level_of_estimates(undecided)
    counts = []
    for of in (row for row in summary if row["level"] == level):
        mine = [row for row in undecided if (row["dataset"], row["level"]) == (of["dataset"], level)]
        n_split = (of.get("n_split") or 0) if of["quote"] == "hierarchical" else 0
        if (n_open := sum(row["n_undecided"] for row in mine) - n_split) > 0:
            counts.append(of | {"n_open": n_open})
    if counts:
        text = f"people could not decide {{counts.n_open:number {level}}}: the rates count such {level}s as no errors, "
        text += "as errors, or as the model says, each with a third of the probability."
        yield ("Beware", make_statement(text, counts=counts))


def _list_datasets_without_rates(run: AuditedRun) -> Iterator[tuple[str, Statement]]:
    """Data sets none of whose levels has a rate to report: the table beside has no line of them."""
    rows = run.rows("estimate_summary")
    reported = {row["dataset"] for row in rows if row.get("quote")}
    for dataset in dict.fromkeys(row["dataset"] for row in rows if row["dataset"] not in reported):
        row = next(row for row in rows if row["dataset"] == dataset)
        yield ("Beware", make_statement("on {row.dataset} {row.why}.", row=row))


def _list_systems_without_labels(run: AuditedRun, summary: Sequence[Row]) -> Iterator[tuple[str, Statement]]:
    """Systems without a label of their own: whose rate is other systems', and of which there is none."""
    for of in summary:
        place = (of["dataset"], of["level"], of["quote"])
        rows = [row for row in run.rows("estimates") if (row["dataset"], row["level"], row["method"]) == place]
        lone = [
            row for row in rows if not row["n_labels"] and not row["n_undecided"] and not is_total_key(row["system"])
        ]
        for is_borrowed in (True, False):
            mine = [row for row in lone if (row.get("rate") is not None) == is_borrowed]
            if not mine:
                continue
            text = "{mine:count system} on {of.dataset} {have} no label: {names}. "
            text += "Its rate is borrowed from others' labels." if is_borrowed else "No rate of it can be reported."
            if len(mine) > 1:
                text = text.replace("Its rate is", "Their rates are").replace("of it", "of them")
            names = ", ".join(row["system"] for row in mine)
            have = "has" if len(mine) == 1 else "have"
            yield ("Beware", make_statement(text, mine=mine, of=of, have=have, names=names))


def select_level_of_estimates(rows: Sequence[Row]) -> str:
    """The level that is counted: claims where there are any, as labels of responses are these over again."""
    return "claim" if any(row["level"] == "claim" for row in rows) else "response"


def list_first_screen_estimates(run: AuditedRun) -> list[Row]:
    """The estimates to report that have an interval, a row per system (of claims without one, of all), with the rate by
    all labels where known."""
    quotes = {(row["dataset"], row["level"]): row["quote"] for row in run.rows("estimate_summary")}
    rows = [
        row
        for row in run.rows("estimates")
        if has_interval(row, "rate") and row["method"] == quotes.get((row["dataset"], row["level"]))
    ]
    return add_labelled_rates_to_audit_estimates(run, rows)


def add_widths_to_first_screen_estimates(rows: Sequence[Row]) -> list[Row]:
    """The rows with the width of their interval: also of systems whose labels alone give none."""
    return [row | {"width": row["rate_high"] - row["rate_low"]} for row in rows]
