"""Does what one system's labels say of an evaluator hold for the others? What every correction supposes (VC §5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from factaudit.audit.core.checks import by_evaluator, evidence_of, of_datasets
from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, shared
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import LEVELS
from factaudit.audit.core.rows import Row
from factaudit.audit.core.shares import Clusters, shares
from factaudit.audit.core.tallies import LABEL, Tallies, says
from factaudit.audit.core.transfer import homogeneity
from factaudit.audit.core.words import percent, points
from factaudit.text.printable import count

#: Each rate with the label of its class.
_CLASSES = {"tpr": 1, "tnr": 0}
#: The difference between systems that the power is told for, in points.
POINTS = 10


def transfer(
    judged: Tallies, *, levels: Sequence[str] = LEVELS, alpha: float = 0.05, intervals: Intervals | None = None
) -> list[Row]:
    """Are an evaluator's TPR and TNR the same on all systems of a dataset?

    A row per dataset, level, evaluator and rate (``tpr``, ``tnr``): n_systems (with scored claims of the class), n,
    n_unscored, lowest and highest (of the systems' rates), p (of the test that all are equal, over clusters:
    `factaudit.audit.core.transfer`), power_10 (how probably it finds that one system is 10 points off the others),
    missable (the largest such difference that it would have missed more than once in five times), and transfers:
    ``no`` where the test rejects, ``yes`` where it does not and would have found 10 points with a power of 80 %, else
    ``cannot tell``: a test without power licenses nothing.
    """
    del intervals  # a test has none
    rows: list[Row] = []
    for level in dict.fromkeys(levels):
        systems = judged.group(level, systems=True)
        for at, evaluator in enumerate(judged.evaluators):
            for dataset in judged.dataset_names:
                places = [place for place, key in enumerate(systems.keys) if key["dataset"] == dataset]
                clusters = judged.together(systems, places, LABEL, says(at))
                for rate, label in _CLASSES.items():
                    row: Row = {"dataset": dataset, "level": level, "evaluator": evaluator, "rate": rate}
                    rows.append(row | _tested(clusters, label, len(places), alpha))
    rows.sort(key=lambda row: row["dataset"])
    return rows


def _tested(clusters: Clusters, label: int, n_systems: int, alpha: float) -> Row:
    counts = clusters.counts.reshape(len(clusters.group), n_systems, 3, 3)[:, :, label]
    found = shares(clusters, counts[..., label], counts[..., :2].sum(-1))
    total = clusters.total(counts)[0]
    scored = total[:, :2].sum(-1)
    row: Row = {"n_systems": int((scored > 0).sum()), "n": int(scored.sum()), "n_unscored": int(total[:, 2].sum())}
    defined = found.point[0][scored > 0].tolist()
    row |= {"lowest": min(defined, default=None), "highest": max(defined, default=None)}
    test = homogeneity(found, 0, alpha)
    if test is None:
        why = f"{count(row['n_systems'], 'system')} with claims of this class in several clusters: nothing to compare"
        return row | {"p": None, f"power_{POINTS}": None, "missable": None, "transfers": "cannot tell", "reason": why}
    powerful = test.missable <= POINTS / 100
    verdict = "no" if test.p < alpha else "yes" if powerful else "cannot tell"
    row |= {"p": test.p, f"power_{POINTS}": test.power(POINTS / 100), "missable": test.missable, "transfers": verdict}
    return row | {"reason": None}


# ----------------------------------------------------------------------------------------------------------- findings


def _no_transfer(audited: Audited) -> Iterator[Finding]:
    """What one system's labels say that does not hold for the others, or is not known to."""
    rows = [row for row in audited.rows("transfer") if row["level"] == "claim" and row["p"] is not None]
    for evaluator, mine in by_evaluator(rows):
        rejected = [row for row in mine if row["transfers"] == "no"]
        blind = [row for row in mine if row["transfers"] == "cannot tell"]
        if rejected:
            worst = max(rejected, key=lambda row: row["highest"] - row["lowest"])
            some, every = (list(dict.fromkeys(row["dataset"] for row in each)) for each in (rejected, mine))
            where = of_datasets(some, every)
            yield Finding(
                "fail",
                evaluator,
                worst["dataset"],
                f"{evaluator} does not judge all systems alike{where}: its {worst['rate'].upper()} on "
                f"{worst['dataset']} "
                f"goes from {percent(worst['lowest'])} to {percent(worst['highest'])} over systems. One system's "
                "labels "
                "do not correct the others.",
                evidence_of(worst, "rate", "lowest", "highest", "p", "n_systems"),
            )
        elif blind:
            worst = max(blind, key=lambda row: row["missable"])
            yield Finding(
                "warn",
                evaluator,
                worst["dataset"],
                f"Whether {evaluator} judges all systems alike is not known: the test would miss a "
                f"{worst['rate'].upper()} {points(worst['missable'])} points off on {worst['dataset']}. A correction "
                "by "
                "one system rests on it.",
                evidence_of(worst, "rate", "p", f"power_{POINTS}", "missable", "n"),
            )


# --------------------------------------------------------------------------------------------------------- declaration

_RANGE = "the systems' lowest and highest rate"

AUDIT = Audit(
    name="transfer",
    place=110,
    title="Whether an evaluator judges all systems alike",
    question="Are TPR and TNR the same on all systems, as a correction by one system's labels supposes?",
    source="VC §5; Rao & Scott 1984",
    formula="Pearson's X² of equal rates over systems, corrected for clusters. Missable: the largest difference of one "
    "system from the others that the test would have missed more than once in five times.",
    text="A correction by one system's labels holds for the others as far as the evaluator judges them alike. Not to "
    "reject that says nothing where the test had no power.",
    columns={
        **shared("dataset", "level", "evaluator"),
        "rate": Column("rate", "text", "`tpr` or `tnr`", key=True, values={"tpr": "TPR", "tnr": "TNR"}),
        **shared("n", "n_unscored", "reason"),
        "n_systems": Column("systems", "count", "systems with scored claims of the class"),
        "lowest": Column("lowest", "percent", _RANGE),
        "highest": Column("highest", "percent", _RANGE),
        "p": Column("p", "p", "of the test that all systems share one rate"),
        f"power_{POINTS}": Column(
            f"power for {POINTS} points", "percent", f"how probably it finds one system {POINTS} points off the others"
        ),
        "missable": Column(
            "missable",
            "points",
            "the largest difference of one system that it would have missed more than once in five times",
            signed=False,
        ),
        "transfers": Column(
            "transfers", "text", f"`yes` (not rejected, and {POINTS} points would have shown), `no`, or `cannot tell`"
        ),
    },
    options={"levels": "`claim`, `response`", "alpha": "of the test (0.05)"},
    compute=transfer,
    tallies=True,
    checks=(
        Check(
            "transfer",
            "Rates that differ between systems",
            "TPR or TNR differs between systems, or the test could not have told",
            _no_transfer,
        ),
    ),
)
