"""A budget of labels rehearsed where all labels are known: this sample, and other ways to spend as many."""

from __future__ import annotations

from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns

AUDIT = Audit(
    name="estimate_rehearsal",
    after="estimate_differences",
    title="The same budget, spent in other ways",
    question="What would as many labels achieve, drawn and used in another way?",
    source="Angelopoulos et al. 2023; Fisch et al. 2024 (stratified PPI); Zrnic & Candès 2024 (active inference)",
    text="Where all labels are known, the budget is drawn again and again, and rates are compared with the true ones. "
    "Beside this sample stand labels at random, PPI++ within thirds of the main evaluator's score, and labels by its "
    "uncertainty.",
    columns={
        **pick_shared_columns("dataset", "level"),
        "way": Column(
            "way",
            "text",
            "`sample, METHOD`: labels of `factaudit sample`; `random, labels`: at random, the labels alone; "
            "`stratified-ppi` and `active`: with the draws that these methods are made for",
            key=True,
        ),
        "n_labels": Column("labels", "count", "labels in each draw, and draws"),
        "n_draws": Column("draws", "count", "labels in each draw, and draws"),
        "bias": Column(
            "mean distance", "points", "of the rates from the true ones, over systems and draws", signed=False
        ),
        "width": Column("width", "points", "mean width of the intervals", signed=False),
        "held": Column("intervals that hold", "percent", "share of the intervals that hold the true rate"),
        **pick_shared_columns("reason"),
    },
    compute=None,
)
