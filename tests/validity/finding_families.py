"""The kinds of audits whose checks are simulated, each with the worlds that are drawn for it (`finding_worlds.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bending_worlds import draw_families, draw_graded_claims
from finding_worlds import (
    Tables,
    World,
    draw_annotated,
    draw_biography_rows,
    draw_chunks,
    draw_repeats,
    draw_rewordings,
    draw_systems,
    draw_twins,
    draw_variants,
)

from factaudit.arrays.judgements import Judgements
from factaudit.audit import load_all_audits
from factaudit.audit.findings import run_audit_checks
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

Row = dict[str, Any]

NULL_WORLDS = (
    World("6 systems, 50 documents"),
    World("3 systems, 12 documents", systems=3, documents=12),
    World("6 systems, 25 documents of 4 claims", documents=25, claims=4, shared=0.5),
    World("6 systems, errors 4 %", documents=80, error=0.04, seen=0.85),
    World("24 systems, 20 documents", systems=24, documents=20, evaluators=2),
)


@dataclass(frozen=True)
class Family:
    """What is drawn for some audits."""

    audits: tuple[str | Row, ...]
    draw: Callable[[World, np.random.Generator], Tables] | None
    null_worlds: Sequence[World]
    effects: Sequence[World]


#: Responses with candidates of one name, which cost more to score.
BIOGRAPHY_WORLDS = (
    World("6 systems, 30 responses", documents=30),
    World("3 systems, 12 responses", systems=3, documents=12),
    World("6 systems, 40 responses, errors 4 %", documents=40, error=0.04),
    World("24 systems, 10 responses", systems=24, documents=10),
)
#: Of what a check looks for one half is there, and the other is not.
HALF_WORLDS = (
    World("one dataset off by 15 points, the other not", effect="one dataset off", size=0.15, made_for=("direction",)),
    World("one dataset off, 12 documents", documents=12, effect="one dataset off", size=0.15, made_for=("direction",)),
    World("labels order systems, predictions do not", effect="labels alone", size=0.3, made_for=("order",)),
    World(
        "labels alone order 24 systems", systems=24, documents=20, effect="labels alone", size=0.3, made_for=("order",)
    ),
    World("one of two alike leans to one answer", effect="one leans", evaluators=2, made_for=("bacc_tie",)),
    World("one of two leans, 12 documents", documents=12, effect="one leans", evaluators=2, made_for=("bacc_tie",)),
    World("6 datasets of 20 documents", datasets=6, systems=1, documents=20, made_for=("gap",)),
    World("all systems off alike by 15 points", effect="all systems off", size=0.15, made_for=("adjustment",)),
    World("all off alike, 150 documents", documents=150, effect="all systems off", size=0.15, made_for=("adjustment",)),
)
#: Enough labels to show 10 points between two systems after Holm's correction, which the other worlds have not.
MANY_LABELS_WORLDS = (
    World("6 systems, 800 documents", documents=800, evaluators=1, made_for=("power",)),
    World("3 systems, 500 documents", systems=3, documents=500, evaluators=1, made_for=("power",)),
    World(
        "6 systems, 400 documents of 4 claims", documents=400, claims=4, shared=0.5, evaluators=1, made_for=("power",)
    ),
    World(
        "6 systems, 500 documents, errors 4 %", documents=500, error=0.04, seen=0.85, evaluators=1, made_for=("power",)
    ),
    World("24 systems, 1,100 documents", datasets=1, systems=24, documents=1100, evaluators=1, made_for=("power",)),
)
#: Each response has four facts by four variants.
VARIANT_WORLDS = (
    World("3 systems, 40 topics", datasets=1, systems=3, documents=40),
    World("3 systems, 12 topics", datasets=1, systems=3, documents=12),
    World("6 systems, 25 topics", datasets=1, documents=25),
    World("3 systems, 30 topics, errors 4 %", datasets=1, systems=3, documents=30, error=0.04),
)
FAMILIES = {
    "systems": Family(
        (
            *("rates", "quantification", "headroom", "ranking", "discrimination", "consistency"),
            "adjusted_bias",
        ),
        draw_systems,
        (*NULL_WORLDS, *HALF_WORLDS, *MANY_LABELS_WORLDS),
        (
            World("sees 40 % of what others see: gap", effect="misses errors", size=0.4, made_for=("gap",)),
            World(
                "sees 30 % of what others see: gap, 6 datasets of 20 documents",
                datasets=6,
                systems=1,
                documents=20,
                effect="misses errors",
                size=0.3,
                made_for=("gap",),
            ),
            World("BAcc alike, 40 points to either side", effect="opposite habits", size=0.6, made_for=("bacc_tie",)),
            World("one of 6 systems off by 15 points", effect="one system off", size=0.15, made_for=("bias",)),
            World(
                "one of 6 systems off by 15 points, 150 documents",
                documents=150,
                effect="one system off",
                size=0.15,
                made_for=("bias",),
            ),
            World("all systems off by 15 points", effect="all systems off", size=0.15, made_for=("bias", "headroom")),
            World(
                "all systems off by 15 points, 150 documents",
                documents=150,
                effect="all systems off",
                size=0.15,
                made_for=("headroom",),
            ),
            World(
                "half of the systems off by +15 points, half by -15",
                effect="systems off to two sides",
                size=0.15,
                made_for=("adjustment",),
            ),
            World(
                "half off by +15 points, half by -15, 150 documents",
                documents=150,
                effect="systems off to two sides",
                size=0.15,
                made_for=("adjustment",),
            ),
            World(
                "one dataset off by +15 points, one by -15",
                effect="datasets off to two sides",
                size=0.15,
                made_for=("direction",),
            ),
            World(
                "errors heaped in responses",
                documents=100,
                claims=4,
                shared=0.95,
                effect="errors heaped in responses",
                made_for=("level",),
            ),
            World(
                "half of the systems reversed, 30 points",
                documents=150,
                effect="reversed",
                size=0.3,
                made_for=("order",),
            ),
            World("50 labels a system", made_for=("power",)),
            World("threshold 0.2 too low", effect="threshold too low", made_for=("threshold",)),
            World("two evaluators see other errors", effect="other errors", made_for=("iou",)),
        ),
    ),
    "repeats": Family(
        ("stability",),
        draw_repeats,
        NULL_WORLDS,
        (World("10 % of verdicts change", effect="changes", size=0.1, made_for=("stability",)),),
    ),
    "twins": Family(
        ("pairs",), draw_twins, NULL_WORLDS, (World("40 % different", effect="blind", size=0.4, made_for=("pairs",)),)
    ),
    "rewordings": Family(
        ("invariance",),
        draw_rewordings,
        NULL_WORLDS,
        (
            World("12 % of verdicts flip", effect="same", size=0.12, made_for=("invariance",)),
            World("35 % of changes missed", effect="changed", size=0.35, made_for=("missed_changes",)),
        ),
    ),
    "variants": Family(
        ({"sensitivity": {"gamma": 0.0}},),
        draw_variants,
        VARIANT_WORLDS,
        (
            World(
                "one variant moves scores by 15 points",
                datasets=1,
                systems=3,
                effect="moves",
                size=0.15,
                made_for=("moved_score",),
            ),
        ),
    ),
    "chunks": Family(
        ({"chunking": {"size": 3}},),
        draw_chunks,
        NULL_WORLDS,
        (World("15 points more of the split claims", effect="splits", size=0.15, made_for=("chunking",)),),
    ),
    "covariates": Family(
        ("covariates",),
        draw_families,
        NULL_WORLDS,
        (
            World(
                "TNR 40 points lower on one kind of four, 150 documents",
                documents=150,
                effect="worse on a kind",
                size=0.4,
                made_for=("covariate",),
            ),
        ),
    ),
    "grades": Family(
        ("grades",),
        draw_graded_claims,
        NULL_WORLDS,
        (
            World("grades of one judge unrelated to people's", effect="unrelated grades", made_for=("grade_order",)),
            World(
                "grades of one judge 12.5 % of the scale higher",
                effect="lenient grades",
                size=0.125,
                made_for=("grade_shift",),
            ),
        ),
    ),
    "people": Family(
        ("ceiling", "label_rules"),
        draw_annotated,
        NULL_WORLDS,
        (
            World("BAcc of people 75 %", effect="people disagree", size=0.75, made_for=("ceiling",)),
            World("evaluators follow two rules", effect="rules part evaluators", size=0.1, made_for=("label_rule",)),
        ),
    ),
    "biographies": Family(
        ("dfactscore",),
        None,
        BIOGRAPHY_WORLDS,
        (
            World(
                "20 % of responses merge two people", systems=3, effect="merges", size=0.2, made_for=("merged_facts",)
            ),
        ),
    ),
}


#: What a check reads beside the rows of its own audit.
_ALSO_READ = {"iou": "rates", "adjustment": "quantification"}


def list_world_audits(family: Family, world: World) -> dict[str, Row]:
    """The audits of a family with their options; of a world that was made for some checks those that they read.

    With many systems calibrations are left out: `adjustment` warns only where `bias` does.
    """
    chosen = {each: {} for each in family.audits if isinstance(each, str)}
    chosen |= {name: options for each in family.audits if not isinstance(each, str) for name, options in each.items()}
    if world.made_for:
        declared = load_all_audits()
        wanted = {name for name in chosen if any(check.id in world.made_for for check in declared[name].checks)}
        wanted |= {_ALSO_READ[check] for check in world.made_for if check in _ALSO_READ}
    else:
        wanted = chosen.keys() - ({"adjusted_bias"} if world.systems > MAX_CALIBRATED_SYSTEMS else set())
    return {name: options for name, options in chosen.items() if name in wanted}


#: Worlds with more systems are drawn without calibrations, which grow with the square of their number.
MAX_CALIBRATED_SYSTEMS = 6


#: Checks of which the other worlds say nothing: their labels are too few for most pairs of systems.
_OWN_WORLDS_ONLY = ("power",)


def list_world_checks(family: Family, world: World) -> list[str]:
    """The checks that a world is told for: all that its audits test, or those that it was made for."""
    tested = [
        check.id for name in list_world_audits(family, world) for check in load_all_audits()[name].checks if check.null
    ]
    return [check for check in tested if (check in world.made_for if world.made_for else check not in _OWN_WORLDS_ONLY)]


def collect_run_findings(family: Family, world: World, seed: Sequence[int], replicates: int = 400) -> list[Row]:
    """The findings of one run of a world."""
    random = np.random.default_rng(seed)
    if family.draw is None:
        return run_audit_checks({"dfactscore": draw_biography_rows(world, random)}, {})[0]
    judgements = Judgements.join(**family.draw(world, random))
    intervals = ClusterBootstrap(replicates=replicates, seed=seed[-1])
    declared, rows = load_all_audits(), {}
    for name, options in list_world_audits(family, world).items():
        compute = declared[name].compute
        assert compute is not None
        rows[name] = compute(judgements, **options, intervals=intervals)
    claims = [{"dataset": name, "n_clusters": world.documents} for name in judgements.dataset_names]
    return run_audit_checks(rows, {"claims": claims, "evaluators": []})[0]
