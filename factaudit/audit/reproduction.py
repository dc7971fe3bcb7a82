"""A paper's printed figures beside ours: what an experiment that recomputes a paper writes."""

from __future__ import annotations

from collections.abc import Sequence

from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.plot_specs import GridPlotSpec
from factaudit.audit.core.result_rows import Row

_CELL_DESCRIPTION = "the cell: names as the paper prints them, and the figure"
_TABLE_COLUMN = Column("table", "count", "the paper's number", key=True, values={})
_UNITS_DESCRIPTION = "in the units of the paper: rates in per cent, τ and r as they are, pairs as numbers"


def _select_reproduction_disagreements(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """The cells that do not agree."""
    compared = [row for row in rows if row["within_rounding"] is not None]
    missed = [row for row in compared if not row["within_rounding"]]
    note = (
        f"A cell that is computed in two ways is compared twice. The {len(missed)} of {len(compared):,} comparisons "
        "that do not agree; tables/reproduction.csv has all cells"
    )
    inputs = sum(row["within_rounding"] is None for row in rows)
    return missed, f"{note}, and the {inputs:,} that were inputs or cannot be recomputed."


AUDITS = (
    Audit(
        name="reproduction_agreement",
        after="estimate_look_differences",
        title="How far the paper's tables agree with ours",
        question="How many of a paper's printed figures come out again?",
        source="Tables 1 and 3 to 31 of VC",
        formula="A cell agrees where values that round to the printed inputs give one that rounds to the printed cell. "
        "Where numbers of claims are recovered, these must give it. A cell that is computed in two ways agrees where "
        "both give it.",
        text="Each printed figure that can be computed from other printed figures, by the audits that compute it on "
        "claims. Numbers of claims that are not printed are chosen to fit.",
        columns={
            "table": _TABLE_COLUMN,
            "evaluator": Column("evaluator", "text", "as the paper prints it", key=True),
            "n": Column("compared", "count", "cells that were compared, and those that agree"),
            "n_agree": Column("agree", "count", "cells that were compared, and those that agree"),
            "share": Column("agree", "percent", "n_agree / n"),
            "cells": Column("of", "text", "n_agree/n, as a text", shown=False),
        },
        compute=None,
        plots=(
            GridPlotSpec(
                what="Printed cells that agree with ours, of those compared, by table and evaluator",
                rows="table",
                columns="evaluator",
                value="share",
                text="cells",
            ),
        ),
    ),
    Audit(
        name="reproduction",
        after="reproduction_agreement",
        title="Printed figures that do not agree",
        question="Which of a paper's printed figures come out otherwise, and why?",
        source="Tables 1 and 3 to 31 of VC",
        columns={
            "table": _TABLE_COLUMN,
            **pick_shared_columns("dataset", "level"),
            "system": Column("system", "text", _CELL_DESCRIPTION, key=True),
            "evaluator": Column("evaluator", "text", _CELL_DESCRIPTION, key=True),
            "quantity": Column("quantity", "text", _CELL_DESCRIPTION, key=True),
            "published": Column("published", what=_UNITS_DESCRIPTION),
            "recomputed": Column("recomputed", what=_UNITS_DESCRIPTION),
            "within_rounding": Column(
                "agrees", "count", "1, 0, or null where nothing was recomputed: an input, or no inputs", shown=False
            ),
            "note": Column("note", "text", "from what it was recomputed, by which rule; of a miss, why"),
        },
        compute=None,
        readable=_select_reproduction_disagreements,
    ),
    Audit(
        name="reproduction_text",
        after="reproduction",
        title="What the paper's text says, and its tables",
        question="Which figures of a paper's running text do not agree with its own tables?",
        source="VC §3 to §5, App. A",
        columns={
            "where": Column("where", "text", "the section, figure or page of the sentence", key=True),
            "sentence": Column("sentence", "text", "the sentence"),
            "printed": Column("in the text", what="the figure in the running text, and by the tables", digits=1),
            "found": Column("in the tables", what="the figure in the running text, and by the tables", digits=2),
            "agrees": Column("agrees", "count", "1, 0, or null: the text does not say whose figure it is"),
        },
        compute=None,
        remarks=lambda rows, findings: [row["sentence"] for row in rows if not row["agrees"]],
    ),
)
