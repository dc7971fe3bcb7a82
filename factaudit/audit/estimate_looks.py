"""Error rates at every look at growing labels, as a run folder has them: what `factaudit.estimate` computed."""

from __future__ import annotations

from collections.abc import Sequence

from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.plot_specs import LinePlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.statements import Statement, join_statements, make_statement

_SEQUENCE = "a confidence sequence: all looks hold at once (betting; Waudby-Smith & Ramdas 2024)"
_LOOK_COLUMN = Column("look", "count", "1, 2, ...: after this phase of the sample", key=True)
_SYSTEM_COLUMN = Column(
    "system", "text", "the system that wrote the claims", key=True, values={"__all__": "all claims"}
)


def _state_sequential_estimate_look(row: Row) -> Statement:
    """What the last look says: whether to stop, and what it costs to look as often as one likes."""
    head = "{row.dataset}, look {row.look:number}, {row.n_labels:number label}: intervals that hold at every look are "
    head += "{row.width:points} points wide on average"
    if row["width_one_look"] is not None:
        head += ", those of the labels alone, which hold at one look only, {row.width_one_look:points}"
    told = [make_statement(head + ".", row=row)]
    if row["best"] is not None:
        text = "{row.best} is known to have the lowest error rate: labelling may stop."
        told.append(make_statement(text, row=row))
    elif row["stop"] == "yes":
        text = "No interval is wider than {row.stop_width:points} points: labelling may stop."
        told.append(make_statement(text, row=row))
    else:
        text = "Go on: the widest interval is {row.widest:points} points wide, and no system is known to be best."
        told.append(make_statement(text, row=row))
    if row["reason"]:
        told.append(make_statement("Note: {row.reason}.", row=row))
    return join_statements(told)


def select_last_looks(rows: Sequence[Row]) -> list[Row]:
    """The rows of the last look at each data set and level."""
    last = {(row["dataset"], row["level"]): row["look"] for row in rows}
    return [row for row in rows if row["look"] == last[row["dataset"], row["level"]]]


AUDITS = (
    Audit(
        name="estimate_look_summary",
        after="estimate_rehearsal",
        title="Looks at growing labels",
        question="May labelling stop, and what does it cost to look again and again?",
        source="Waudby-Smith & Ramdas 2024; Ville 1939; Hoeffding 1963",
        text="After each phase of the sample: intervals that hold at all looks at once, whenever labelling stops.",
        formula="The values against which no bet on the labels has multiplied its capital by 1/(1 − confidence) yet; "
        "a system is best where the bets on each other one have multiplied it by (S − 1)/(1 − confidence).",
        columns={
            **pick_shared_columns("dataset", "level"),
            "look": _LOOK_COLUMN,
            "n_labels": Column("labels", "count", "claims (or responses) labelled so far"),
            "width": Column("width", "points", "mean and greatest width of the systems' intervals", signed=False),
            "widest": Column("widest", "points", "mean and greatest width of the systems' intervals", signed=False),
            "width_one_look": Column(
                "width at one look",
                "points",
                "mean width of the intervals of labels alone, which hold at a single look; null where one lacks",
                signed=False,
            ),
            "n_pairs": Column("pairs", "count", "pairs of systems, and those that differ significantly"),
            "n_apart": Column("pairs that differ", "count", "pairs of systems, and those that differ significantly"),
            "best": Column("best", "text", "the system known to have the lowest rate; null where none is"),
            "stop": Column(
                "stop", "text", "`yes`: no interval is wider than `stop_width`, or the best system is known"
            ),
            "stop_width": Column("width to stop at", "points", "as asked for", signed=False, shown=False),
            **pick_shared_columns("reason"),
        },
        compute=None,
        remarks=lambda rows, findings: [_state_sequential_estimate_look(row) for row in select_last_looks(rows)],
    ),
    Audit(
        name="estimate_looks",
        after="estimate_look_summary",
        title="Error rates at every look",
        question="How many errors does each system make, by intervals that hold however often one looks?",
        columns={
            **pick_shared_columns("dataset", "level"),
            "system": _SYSTEM_COLUMN,
            "look": _LOOK_COLUMN,
            **pick_shared_columns("n"),
            "n_labels": Column("labels", "count", "labels of the system's own so far"),
            "rate": Column(
                "error rate",
                "percent",
                "the share of unattributable claims or responses: the model's predictions, corrected by the labels",
                interval=_SEQUENCE,
                counted_in="n_labels",
            ),
            **pick_shared_columns("reason"),
        },
        compute=None,
        plots=(
            LinePlotSpec(
                what="Error rates at every look",
                reading="A system's intervals hold at all looks at once; they never grow.",
                x="look",
                x_label="look",
                keys=("rate",),
                series="system",
            ),
        ),
    ),
    Audit(
        name="estimate_look_differences",
        after="estimate_looks",
        title="Differences between systems at every look",
        question="Which systems' error rates differ, however often one looks?",
        formula="< or >: the interval lies on one side of 0. It is of this pair alone.",
        columns={
            **pick_shared_columns("dataset", "level"),
            "look": _LOOK_COLUMN,
            "system_a": Column("system a", "text", "the two systems", key=True),
            "system_b": Column("system b", "text", "the two systems", key=True),
            "difference": Column(
                "difference", "points", "the rate of system_a minus that of system_b", interval=_SEQUENCE
            ),
            "order": Column("order", "text", "`<` or `>` where the interval is on one side of 0, else `?`"),
        },
        compute=None,
        readable=lambda rows: (select_last_looks(rows), "Earlier looks are in tables/estimate_look_differences.csv."),
    ),
)
