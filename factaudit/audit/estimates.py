"""What are the error rates by few labels? Rows that `factaudit.estimate` computed, and what the
first screen says of them: which rates to report, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import itemgetter
from statistics import mean

from factaudit.audit.core.audit_declaration import Audit, Column, PlotSpec, pick_shared_columns
from factaudit.audit.core.audited_run import AuditedRun, has_interval
from factaudit.audit.core.result_rows import Row, is_total_key
from factaudit.audit.core.wording import (
    PERCENT_COLUMN,
    fill,
    format_audit_figure,
    format_figure_range,
    join_names,
)

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


# ---- the first screen


def _list_quotable(run: AuditedRun) -> list[Row]:
    """The summaries with an estimate to report: of claims where there are any, for labels of
    responses are the same labels again."""
    rows = [row for row in run.rows("estimate_summary") if row.get("quote")]
    return [row for row in rows if row["level"] == "claim"] or rows


def _list_quoted(run: AuditedRun) -> list[Row]:
    """The estimates to report, a row for each system, the least rate first, with the rate that the
    main evaluator predicts (``raw``)."""
    quoted = []
    for summary in _list_quotable(run):
        here = [
            row
            for row in run.rows("estimates")
            if all(row[key] == summary[key] for key in ("dataset", "level"))
            and row.get("rate") is not None
        ]
        raw = {row["system"]: row["rate"] for row in here if row["method"] == "raw"}
        mine = [row for row in here if row["method"] == summary["quote"]]
        mine.sort(key=itemgetter("rate"))
        quoted += [row | {"raw": raw.get(row["system"])} for row in mine]
    return quoted


def tabulate_estimates(run: AuditedRun) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """Headings, and a row for each system with the rate to report; cells are "" where nothing is
    known."""
    quoted, quotable = _list_quoted(run), _list_quotable(run)
    mains = ", ".join(dict.fromkeys(str(row["main"]) for row in quotable))
    heads = [
        ("", "system"),
        ("estimated error", f"rate, % ({100 * run.confidence:.3g} % CI)"),
        ("predicted", f"by {mains}"),
    ]
    has_datasets = len({row["dataset"] for row in quoted}) > 1
    table = []
    for row in quoted:
        system = f"all {row['level']}s" if is_total_key(row["system"]) else row["system"]
        name = f"{row['dataset']}, {system}" if has_datasets else system
        table.append([name, *(format_cell(PERCENT_COLUMN, row, key) for key in ("rate", "raw"))])
    return heads, table


def format_cell(column: Column, row: Row, key: str) -> str:
    """A figure as a cell of a column with its unit: ``86.7 (74.3–93.6)``, without an interval
    ``86.7``, and "" if it is undefined."""
    if row[key] is None:
        return ""
    text = format_audit_figure(column, row[key])
    if has_interval(row, key):
        text += f" ({format_figure_range(column, row[f'{key}_low'], row[f'{key}_high'])})"
    return text


def advise_on_estimates(run: AuditedRun) -> Iterator[tuple[str, str]]:
    """Of a run that only estimates, in words and sentences: which rates to report."""
    rows = _list_quoted(run)
    quoted = [row for row in rows if has_interval(row, "rate")]
    if quoted:
        n_labels = sum(row["n_labels"] or 0 for row in _list_quotable(run))
        told = {"n": n_labels, "width": mean(row["rate_high"] - row["rate_low"] for row in quoted)}
        average = " on average" if len(quoted) > 1 else ""
        text = f"the estimated rates: {{n:number label}} give {100 * run.confidence:.3g} % CIs of"
        yield "Use", fill(f"{text} {{width:rough}}{average}.", told)
    lone = [row["system"] for row in rows if not row["n_labels"]]
    if lone:
        text = f"No claim of {join_names(lone)} was labelled; the rate rests on the labels of the"
        yield "Beware", f"{text} other systems."
    places = {(row["dataset"], row["level"], row["method"]) for row in run.rows("estimates")}
    for row in run.rows("estimate_summary"):
        if (row["dataset"], row["level"], row.get("quote")) not in places:
            yield "Beware", f"On {row['dataset']} ({row['level']} level), {row['why']}."


def expect_corrected_rates(run: AuditedRun, biases: Sequence[Row]) -> str:
    """How far corrected rates are expected to be off, where that is nearer than the predicted ones
    are; else "".

    biases: the predicted rates of systems, with how far they are off.
    """
    estimated = [row for row in _list_quoted(run) if has_interval(row, "rate")]
    places = {(row["dataset"], row["system"]) for row in estimated}
    raw = [abs(row["bias"]) for row in biases if (row["dataset"], row["system"]) in places]
    n_labels = {row["n_labels"] for row in _list_quotable(run)}
    if not raw:
        return ""
    width = mean(row["rate_high"] - row["rate_low"] for row in estimated)
    told = {
        "expected": DISTANCE_PER_WIDTH * width,
        "half": width / 2,
        "raw": mean(raw),
        "n": max(n_labels),
        "evaluator": biases[0]["evaluator"],
    }
    if told["expected"] >= told["raw"]:
        return ""
    text = "correct the rates with human labels (factaudit sample, then factaudit estimate): with"
    text += " at most {n} labels" if len(n_labels) > 1 else " {n} labels"
    text += " per data set" if len(_list_quotable(run)) > 1 else ""
    has_systems = len(places) > len({dataset for dataset, _ in places})
    text += " for all systems together" if has_systems else ""
    text += ", they are expected to be off by {expected:rough} on average"
    text += f" ({100 * run.confidence:.3g} % CIs of about ±{{half:rough}}), instead of"
    text += " {evaluator}'s {raw:rough}."
    return fill(text, told)
