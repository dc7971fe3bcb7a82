"""Error rates from few labels, as a run folder has them: what `factaudit.estimate` computed. None is computed here."""

from __future__ import annotations

from collections.abc import Sequence

from factaudit.audit.core.declare import Audit, Audited, Column, shared
from factaudit.audit.core.plot import DotPlot, Forest
from factaudit.audit.core.rows import Row
from factaudit.audit.core.words import percent, points, with_interval
from factaudit.text.printable import count

#: In the order of the forest plot: as predicted, by labels, corrected; then those to compare with.
SHOWN = ("raw", "pooled-threshold", "labels", "regression-ppi", "hierarchical", "ppi", "ppi++", "rogan-gladen")
#: More systems than this have three lines each.
MANY_SYSTEMS = 10
_FEW_METHODS = ("raw", "labels", "hierarchical")
_METHOD = Column(
    "method",
    "text",
    "`hierarchical` (the default to quote), `regression-ppi`, `labels`, `pooled-threshold`, `raw`; on demand `ppi`, "
    "`ppi++`, `rogan-gladen`",
    key=True,
    values={"raw": "as predicted", "labels": "labels only", "hierarchical": "hierarchical (corrected)"},
)
_SYSTEM = Column("system", "text", "the system that wrote the claims", key=True, values={"__all__": "all claims"})
_RATE = Column("error rate", "percent", "the share of unattributable claims or responses", interval=True)


def _readable(rows: Sequence[Row]) -> tuple[list[Row], str]:
    many = len({row["system"] for row in rows}) > MANY_SYSTEMS
    methods = _FEW_METHODS if many else SHOWN
    shown = [row for row in rows if row["method"] in methods]
    order = {name: at for at, name in enumerate(SHOWN)}
    systems: dict[tuple[str, str, str], int] = {}
    for row in rows:
        systems.setdefault((row["dataset"], row["level"], row["system"]), len(systems))
    shown.sort(key=lambda row: (systems[row["dataset"], row["level"], row["system"]], order[row["method"]]))
    return shown, "The other methods' rates are in tables/estimates.csv." if len(shown) < len(rows) else ""


def _sentences(rows: Sequence[Row]) -> list[str]:
    """What is estimated, which method to quote and why, and what the labels bought: a paragraph per row."""
    return [_sentence(row) for row in rows]


def _sentence(row: Row) -> str:
    of = "these claims" if row["target"] == "corpus" else "the population that their documents come from"
    used = f"{row['main']} leading" + (f", with {row['covariates']}" if row["covariates"] else "")
    told = [
        f"{row['dataset']}, {row['level']} level: {count(row['n_labels'], 'label')} for "
        f"{count(row['n_systems'], 'system')} and {count(row['n'], row['level'])}; rates are of {of}; {used}.",
        f"{row['why'][0].upper()}{row['why'][1:]}.",
    ]
    if row["headroom"] is not None:
        told.append(f"The lowest error rate is {with_interval(_HEADROOM, row, 'headroom')}.")
    if row["resolved"] is not None:
        told.append(f"The labels order {percent(row['resolved'])} of {count(row['n_pairs'], 'pair')} of systems.")
    if row["worth"] is not None:
        told.append(
            f"Intervals are {points(row['width'])} points wide on average, where the labels alone give "
            f"{points(row['width_labels'])}: the scores made each label worth {row['worth']:.1f}."
        )
    if row["reason"]:
        told.append(f"Note: {row['reason']}.")
    return " ".join(told)


def _short(row: Row) -> str:
    """What the report's opening says of a row: the rest is in its section."""
    of = f"{row['dataset']}, {row['level']}s: {count(row['n_labels'], 'label')} for {count(row['n_systems'], 'system')}"
    if row["quote"] is None:
        return f"{of}: {row['why']}."
    told = [f"quote the rates of “{row['quote']}”"]
    if row["headroom"] is not None:
        told.append(f"the lowest is {with_interval(_HEADROOM, row, 'headroom')}")
    if row["resolved"] is not None:
        told.append(f"{percent(row['resolved'])} of {count(row['n_pairs'], 'pair')} of systems can be ordered")
    if row["worth"] is not None:
        told.append(f"the scores made each label worth {row['worth']:.1f}")
    return f"{of}: {'; '.join(told)}."


def _opening(audited: Audited, best: str | None) -> str:
    rows = audited.rows("estimate_summary")
    told = " ".join(_short(row) for row in rows[:2])
    more = len(rows) - 2
    return told + (f" {count(more, 'more dataset or level', 'more datasets and levels')} below." if more > 0 else "")


_HEADROOM = Column("lowest rate", "percent", "the lowest error rate among the systems", interval=True)
_DIFFERENCE = Column("difference", "points", "the rate of system_a minus that of system_b", interval=True)

AUDITS = (
    Audit(
        name="estimates",
        place=2,
        title="Error rates from few labels",
        question="How many errors does each system make, and how sure is that?",
        source="Gelman & Little 1997; Angelopoulos et al. 2023; VC §5",
        text="What the main evaluator predicts, what the labels alone say, and what a model makes of both. A rate "
        "without an interval is one of which nobody knows how far off it is.",
        formula="Hierarchical: logit P(error) = a + β·scores + u_system over the labels, imputed for all others.",
        columns={
            **shared("dataset", "level"),
            "system": _SYSTEM,
            "method": _METHOD,
            **shared("n"),
            "n_labels": Column("labels", "count", "labels of the system's own"),
            "rate": _RATE,
            **shared("reason"),
        },
        compute=None,
        readable=_readable,
        intervals="intervals, of the hierarchical rates from the posterior, of the others by the design of the sample",
        plots=(Forest(what="Error rates", key="rate", labels=("system",), series="method", per_page=2),),
    ),
    Audit(
        name="estimate_summary",
        place=1,
        title="What the labels bought",
        question="Which estimate is to be quoted, and what did the labels buy?",
        columns={
            **shared("dataset", "level"),
            "main": Column("main evaluator", "text"),
            "covariates": Column("covariates", "text", shown=False),
            "target": Column("target", "text", "`corpus`: these claims; `population`: what they were drawn from"),
            "n": Column("n", "count"),
            "n_labels": Column("labels", "count"),
            "n_systems": Column("systems", "count"),
            "n_pairs": Column("pairs", "count", shown=False),
            "headroom": _HEADROOM,
            "resolved": Column("pairs in order", "percent", "pairs whose difference has an interval without 0"),
            "width": Column("width", "points", "mean width of the hierarchical intervals", signed=False),
            "width_labels": Column("width by labels only", "points", signed=False),
            "worth": Column(
                "worth of a label", "number", "how many times as many labels the labels alone would need", digits=1
            ),
            "quote": Column("to quote", "text"),
            "why": Column("why", "text", shown=False),
            **shared("reason"),
        },
        compute=None,
        remarks=lambda rows, findings: _sentences(rows),
        opening=_opening,
    ),
    Audit(
        name="estimate_ranks",
        place=3,
        title="Which system is best, and how sure is that",
        question="What is the probability that each system makes the fewest errors?",
        text="Ranks by error rate (1 is best) over the draws of the hierarchical model.",
        columns={
            **shared("dataset", "level"),
            "system": _SYSTEM,
            "p_best": Column("probability of being best", "percent"),
            "rank": Column("rank", "number", interval=True, digits=1),
        },
        compute=None,
        plots=(DotPlot(what="Probability of the lowest error rate", keys=("p_best",), series="system"),),
    ),
    Audit(
        name="estimate_differences",
        place=4,
        title="Differences between systems",
        question="Which systems' error rates differ?",
        columns={
            **shared("dataset", "level"),
            "system_a": Column("system a", "text", key=True),
            "system_b": Column("system b", "text", key=True),
            "difference": _DIFFERENCE,
            "order": Column("order", "text", "`<` or `>` where the interval is on one side of 0, else `?`"),
        },
        compute=None,
    ),
)
