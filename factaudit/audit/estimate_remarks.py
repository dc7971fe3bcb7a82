"""How were error rates estimated, which method should be quoted, and why? The sentences of the report about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.statements import Statement, join_statements, make_statement

#: How many labels the estimates rest on. A response may be labelled that was not drawn whole: it has none to use.
USED_LABELS, NO_USABLE_LABEL = "{row.n_labels:number label}", "no usable label"


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
    of = f"about these {noun}s" if row["target"] == "corpus" else "about the population that their documents come from"
    used = " They use the scores of {row.main}" + " and of {row.covariates}" * bool(row["covariates"]) + "."
    systems = "{row.n_systems:number system} and " * bool(row["n_systems"])
    labels = USED_LABELS if row["n_labels"] else NO_USABLE_LABEL
    verb = "are" if (row["n_labels"] or 1) > 1 else "is"
    told = [
        make_statement(
            f"{{row.dataset}}, {{row.level}} level: there {verb} {labels} for "
            f"{systems}{{row.n:number {noun}}}. Rates are {{of}}.{used}",
            row=row,
            of=of,
        ),
        make_statement("{why}.", why=why[0].upper() + why[1:]),
    ]
    if row["headroom"] is not None and row["n_systems"] > 1:
        text = "By the hierarchical model, the lowest error rate of any system is {row.headroom:interval} and the "
        # Another system may be best in more of the draws: the table of ranks says so.
        text += "highest is {row.highest:interval}. {row.best_system} has the lowest estimate: "
        text += "{row.best_rate:interval}. This interval allows for choosing the lowest of several."
        told.append(make_statement(text, row=row))
    told += _state_estimate_interval_widths(row)
    if row["reason"]:
        told.append(make_statement("Note: {row.reason}.", row=row))
    return join_statements(told)


def _state_estimate_interval_widths(row: Row) -> Iterator[Statement]:
    """What scores narrow, and what pooling of systems and the prior do: with shuffled scores these are left."""
    if row["width"] is not None and row.get("width_shuffled") is not None:  # of old folders it is not known
        text = "The intervals of the hierarchical model are {row.width:points} points wide on average. With useless "
        text += "(shuffled) scores they would be {row.width_shuffled:points} points wide, and from the labels alone "
        text += "{row.width_labels:points} points. Four times as many labels make them about half as wide."
        yield make_statement(text, row=row)
