"""What the report says of how rates were estimated: the labels, the method to quote and why, the intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.statements import Statement, join_statements, make_statement

#: How many labels the estimates rest on. A response may be labelled that was not drawn whole: it has none to use.
USED_LABELS, NO_USABLE_LABEL = "{row.n_labels:number label}", "no label that can be used"


def list_estimation_remarks(rows: Sequence[Row], findings: Sequence[Row]) -> list[str]:
    """A paragraph of each dataset and level; why a method is to be quoted stands in the first that it is said of."""
    reasons = [row["why"] for row in rows]
    return [
        _state_estimation_methods_and_labels(row, format_estimate_advice(row, reasons[:at]))
        for at, row in enumerate(rows)
    ]


def format_estimate_advice(row: Row, earlier_reasons: Sequence[str]) -> str:
    """What to quote and why; the why once, where it is that of an earlier dataset or level."""
    is_known = row["why"].startswith("quote") and row["why"] in earlier_reasons
    return f"quote {row['quote']}, for the same reason" if is_known else str(row["why"])


def _state_estimation_methods_and_labels(row: Row, why: str) -> Statement:
    """What is estimated, which method to quote and why, and what the labels achieve."""
    noun = "response" if row["level"] == "response" else "claim"
    of = f"these {noun}s" if row["target"] == "corpus" else "the population that their documents come from"
    used = "; main evaluator: {row.main}" + ", with {row.covariates}" * bool(row["covariates"])
    systems = "{row.n_systems:number system} and " * bool(row["n_systems"])
    told = [
        make_statement(
            f"{{row.dataset}}, {{row.level}} level: {USED_LABELS if row['n_labels'] else NO_USABLE_LABEL} for "
            f"{systems}{{row.n:number {noun}}}; rates are of {{of}}{used}.",
            row=row,
            of=of,
        ),
        make_statement("{why}.", why=why[0].upper() + why[1:]),
    ]
    if row["headroom"] is not None and row["n_systems"] > 1:
        text = "By the hierarchical model, the lowest error rate, whichever system has it, is {row.headroom:interval}, "
        # Another system may be best in more of the draws: the table of ranks says so.
        text += "the highest {row.highest:interval}. {row.best_system} has the lowest estimate by it: "
        text += "{row.best_rate:interval}; its "
        told.append(make_statement(text + "interval allows for the choice.", row=row))
    told += _state_estimate_interval_widths(row)
    if row["reason"]:
        told.append(make_statement("Note: {row.reason}.", row=row))
    return join_statements(told)


def _state_estimate_interval_widths(row: Row) -> Iterator[Statement]:
    """What scores narrow, and what pooling of systems and the prior do: with shuffled scores these are left."""
    if row["width"] is not None and row.get("width_shuffled") is not None:  # of old folders it is not known
        text = "Hierarchical intervals are {row.width:points} points wide on average; with useless (shuffled) scores "
        text += "{row.width_shuffled:points}, by these labels alone {row.width_labels:points}. "
        text += "Four times as many labels about halve them."
        yield make_statement(text, row=row)
