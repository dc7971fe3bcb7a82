"""What are the error rates by few labels? Rows that `factaudit.estimate` computed; nothing is
computed here."""

from __future__ import annotations

import math
from collections.abc import Sequence

from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.wording import fill

#: How far an estimate is from the truth on average, by the width of its 95 % interval: a normal
#: one's √(2/π) standard deviations. Measured where rates are known: 0.18 to 0.22.
DISTANCE_PER_WIDTH = (2 / math.pi) ** 0.5 / (2 * 1.96)
_METHOD_COLUMN = Column(
    "method",
    "text",
    "`hierarchical` (report this one unless told otherwise), `regression-ppi`, `labels`, `raw`",
    key=True,
    values={
        "raw": "as predicted",
        "labels": "labels only",
        "hierarchical": "hierarchical (corrected)",
    },
)
_SYSTEM_COLUMN = Column(
    "system", "text", "the system that wrote the claims", key=True, values={"__all__": "all claims"}
)
_POSTERIOR = "from the posterior"
_ESTIMATE_INTERVAL = f"{_POSTERIOR} where a rate is hierarchical, else by the design of the sample"
_RATE_COLUMN = Column(
    "error rate",
    "percent",
    "the share of unattributable claims or responses; bounds: none of the undecided (of predicted"
    " rates: of the unscored) is an error, all are",
    bounds=(
        "the rate with none, and with all, of the undecided or (of predicted rates) unscored claims"
        " as errors"
    ),
    interval=_ESTIMATE_INTERVAL,
    counted_in="n_labels",
)


def list_estimation_remarks(rows: Sequence[Row]) -> list[str]:
    """What the labels of each data set and level are, and which estimate to quote: a paragraph for
    all that have the same answer."""
    labels_by_answer: dict[str, list[str]] = {}
    for row in rows:
        labels = "{n_labels:number label}" if row["n_labels"] else "no usable label"
        systems = "{n_systems:number system} and " if row["n_systems"] else ""
        text = f"{{dataset}}, {{level}} level: {labels} for {systems}{{n:number {row['level']}}}."
        text += " Note: {reason}." if row["reason"] else ""
        labels_by_answer.setdefault(str(row["why"]), []).append(fill(text, row))
    return [
        f"{' '.join(labels)} {why[0].upper()}{why[1:]}." for why, labels in labels_by_answer.items()
    ]


_DIFFERENCE_COLUMN = Column(
    "difference", "points", "rate of system_a − rate of system_b", interval=_POSTERIOR
)

AUDITS = (
    Audit(
        name="estimates",
        title="Error rates from few labels",
        question="What is the error rate of each system, and how sure is that?",
        source="Gelman & Little 1997; Angelopoulos et al. 2023; VC §5",
        text=(
            "Rates by each method: what the main evaluator predicts (raw), what the labels alone"
            " say, and what a model makes of both. Raw rates have no interval, because their error"
            " is not estimated. Labels alone and regression-PPI need at least 10 labels for an"
            " interval."
        ),
        formula=(
            "Hierarchical: logit P(error) = a + β·z + γ·(the system's mean score) + u_system over"
            " the labels, imputed for all others. z: the evaluators' standardised logit scores, and"
            " indicators of lacking scores and of what the option strata names. β, γ and u have"
            " normal priors; of three or more systems, one may differ much from the others."
        ),
        columns={
            **pick_shared_columns("dataset", "level"),
            "system": _SYSTEM_COLUMN,
            "method": _METHOD_COLUMN,
            **pick_shared_columns("n"),
            "n_unpredicted": Column(
                "unscored",
                "count",
                "claims without a prediction of the main evaluator",
                shown="any",
            ),
            "n_labels": Column("labels", "count", "labels of this system that are used"),
            "n_undecided": Column(
                "without label",
                "count",
                "claims of the system that annotators looked at and could not decide",
                shown="any",
            ),
            "rate": _RATE_COLUMN,
            **pick_shared_columns("reason"),
        },
        compute=None,
        plot=PlotSpec(
            what="Error rates",
            keys=("rate",),
            groups=("dataset", "system"),
            series="method",
            per_page=28,
        ),
    ),
    Audit(
        name="estimate_summary",
        title="What the labels achieve",
        question="Which estimate should be reported, and how much do the labels tell?",
        columns={
            **pick_shared_columns("dataset", "level"),
            "main": Column(
                "main evaluator", "text", "the main evaluator of the sample and the model"
            ),
            "n": Column(
                "n", "count", "number of claims (or responses), of labelled ones, and of systems"
            ),
            "n_labels": Column(
                "labels",
                "count",
                "number of claims (or responses), of labelled ones, and of systems",
            ),
            "n_systems": Column(
                "systems",
                "count",
                "number of claims (or responses), of labelled ones, and of systems",
            ),
            "n_undecided": Column(
                "without label", "count", "claims that annotators could not decide", shown="any"
            ),
            "quote": Column(
                "to quote", "text", "the method whose rates you should report, and the reason"
            ),
            "why": Column(
                "why",
                "text",
                "the method whose rates you should report, and the reason",
                shown=False,
            ),
            **pick_shared_columns("reason"),
        },
        compute=None,
        remarks=list_estimation_remarks,
    ),
    Audit(
        name="estimate_ranks",
        title="Which system is best, and how sure is that",
        question="How probable is it that each system has the fewest errors?",
        text=(
            "Ranks by error rate (1 is the best) over the draws of the hierarchical model. Two"
            " systems may have different mean ranks and not differ significantly."
        ),
        columns={
            **pick_shared_columns("dataset", "level"),
            "system": _SYSTEM_COLUMN,
            "p_best": Column(
                "probability of being best",
                "percent",
                "share of the draws in which it has the lowest rate",
            ),
            "rank": Column(
                "rank",
                "number",
                "mean rank over the draws (1: the lowest rate)",
                interval=_POSTERIOR,
                digits=1,
            ),
        },
        compute=None,
    ),
    Audit(
        name="estimate_differences",
        title="Differences between systems",
        question="Which systems' error rates differ?",
        formula=(
            "< or >: “wrong order” (of the draws, or by a normal's tail where that is more) is at"
            " most half of what an interval leaves out (2.5 % at 95 %), and adjusted for all pairs"
            " (Benjamini–Hochberg) at most 5 %. So at most 5 % of the pairs so called are expected"
            " in the wrong order (directional false discovery rate, Benjamini & Yekutieli 2005)."
            " The interval is of this pair alone."
        ),
        columns={
            **pick_shared_columns("dataset", "level"),
            "system_a": Column("system a", "text", "the two systems", key=True),
            "system_b": Column("system b", "text", "the two systems", key=True),
            "difference": _DIFFERENCE_COLUMN,
            "p_wrong": Column(
                "wrong order",
                "percent",
                "probability that the difference has the other sign: the share of the draws, or the"
                " tail of a normal distribution with their mean and spread, whichever is larger",
            ),
            "order": Column(
                "order", "text", "`<` or `>` where the two differ significantly, else `?`"
            ),
        },
        compute=None,
    ),
)
