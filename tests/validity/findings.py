"""How often does each check warn where nothing is wrong, and how often where something is? Prints a
table.

    python tests/validity/findings.py [runs, default 200] [families, default all]

A family is what some audits need: systems, repeats, annotators, chunks, biographies. Null:
`finding_worlds.py` draws worlds in which what a check calls nothing wrong (`Check.null`) is true,
at the limit of the check where it has one. A check should warn in at most 5 % of the runs. In
worlds that are made for one check, one half of what it looks
for is there and the other is not. Power: in half as many runs, the same with an effect of a stated
size. `WORKERS` processes (by default as many as cores) share the worlds. The counts are kept in
``findings.json`` beside this file; a world that it has is not drawn again.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bending_worlds import draw_families, draw_graded_claims
from finding_worlds import (
    World,
    draw_annotated,
    draw_biography_rows,
    draw_chunks,
    draw_repeats,
    draw_rewordings,
    draw_systems,
    draw_variants,
)
from worlds import WORLDS, make_worlds

from factaudit import Judgements
from factaudit.audit import load_all_audits, run_audit_checks
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

Row = dict[str, Any]
RESULTS = Path(__file__).with_name("findings.json")
DRAWS = {
    "systems": draw_systems,
    "repeats": draw_repeats,
    "rewordings": draw_rewordings,
    "variants": draw_variants,
    "chunks": draw_chunks,
    "covariates": draw_families,
    "grades": draw_graded_claims,
    "people": draw_annotated,
}


@dataclass(frozen=True)
class Family:
    """What some audits need: their options by name, and the worlds in which nothing is wrong, or
    one thing is."""

    name: str
    audits: dict[str, Row]
    null_worlds: Sequence[World]
    effects: Sequence[World]


def read_families() -> dict[str, Family]:
    found = WORLDS["findings"]
    null = {name: make_worlds(World, worlds) for name, worlds in found["nothing_wrong"].items()}
    return {
        name: Family(
            name,
            family["audits"],
            [world for group in family["nothing_wrong"] for world in null[group]],
            make_worlds(World, family["effects"]),
        )
        for name, family in found["families"].items()
    }


FAMILIES = read_families()
#: What a check reads beside the rows of its own audit.
_ALSO_READ = {"iou": "rates", "adjustment": "quantification"}
#: Worlds with more systems are drawn without calibrations, which grow with the square of their
#: number: `adjustment` warns only where `bias` does.
MAX_CALIBRATED_SYSTEMS = 6
#: Checks of which the other worlds say nothing: their labels are too few for most pairs of systems.
_OWN_WORLDS_ONLY = ("power",)


def list_world_audits(family: Family, world: World) -> dict[str, Row]:
    """The audits of a family with their options; of a world that was made for some checks those
    that they read."""
    if world.made_for:
        declared = load_all_audits()
        wanted = {
            name
            for name in family.audits
            if any(check.id in world.made_for for check in declared[name].checks)
        }
        wanted |= {_ALSO_READ[check] for check in world.made_for if check in _ALSO_READ}
    else:
        wanted = family.audits.keys() - (
            {"adjustment"} if world.systems > MAX_CALIBRATED_SYSTEMS else set()
        )
    return {name: options for name, options in family.audits.items() if name in wanted}


def list_tested_checks(audits: Iterable[str]) -> list[str]:
    """The checks of some audits that test something."""
    return [check.id for name in audits for check in load_all_audits()[name].checks if check.null]


def list_world_checks(family: Family, world: World) -> list[str]:
    """The checks that a world is told for: all that its audits test, or those that it was made
    for."""
    tested = list_tested_checks(list_world_audits(family, world))
    return [
        check
        for check in tested
        if (check in world.made_for if world.made_for else check not in _OWN_WORLDS_ONLY)
    ]


def list_simulated_worlds() -> list[tuple[Family, str, World]]:
    """Each world with its family and its kind: ``null`` or ``power``."""
    kinds = {"null": "null_worlds", "power": "effects"}
    return [
        (family, kind, world)
        for family in FAMILIES.values()
        for kind, worlds in kinds.items()
        for world in getattr(family, worlds)
    ]


def collect_run_findings(
    family: Family, world: World, seed: Sequence[int], replicates: int = 400
) -> list[Row]:
    """The findings of one run of a world."""
    random = np.random.default_rng(seed)
    if family.name == "biographies":
        return run_audit_checks({"dfactscore": draw_biography_rows(world, random)}, {})[0]
    judgements = Judgements.join(**DRAWS[family.name](world, random))
    intervals = ClusterBootstrap(replicates=replicates, seed=seed[-1])
    rows = {}
    for name, options in list_world_audits(family, world).items():
        compute = load_all_audits()[name].compute
        assert compute is not None
        rows[name] = compute(judgements, **options, intervals=intervals)
    claims = [{"dataset": name, "n_clusters": world.documents} for name in judgements.dataset_names]
    return run_audit_checks(rows, {"claims": claims, "evaluators": []})[0]


def count_warnings(family: Family, world: World, runs: int, seed: int = 7) -> Counter[str]:
    """In how many runs each check failed or warned: that a test had no power is a caveat, and
    true."""
    found: Counter[str] = Counter()
    for run in range(runs):
        findings = collect_run_findings(family, world, (seed, run))
        found.update({each["id"] for each in findings if each["severity"] in ("fail", "warn")})
    return found


def limit_of_false_alarms(runs: int) -> float:
    """5 %, and two standard errors of so many runs."""
    return 0.05 + 2 * (0.05 * 0.95 / runs) ** 0.5


def simulate_world(family_name: str, kind: str, world: World, runs: int) -> list[Row]:
    """A row for each check that the world is told for."""
    family = FAMILIES[family_name]
    found = count_warnings(family, world, runs)
    about = {"family": family_name, "kind": kind, "world": world.name, "runs": runs}
    return [
        about | {"check": each, "warned": found[each]} for each in list_world_checks(family, world)
    ]


def read_stored_rows() -> list[Row]:
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def main(runs: int = 200, *families: str) -> None:
    """Draw the worlds that are not stored yet, store their counts, and print all as a table."""
    stored = {(row["family"], row["kind"], row["world"]) for row in read_stored_rows()}
    worlds = [(family.name, kind, world) for family, kind, world in list_simulated_worlds()]
    wanted = [
        each
        for each in worlds
        if (*each[:2], each[2].name) not in stored and each[0] in (families or FAMILIES)
    ]
    order = [(name, kind, world.name) for name, kind, world in worlds]
    with ProcessPoolExecutor(int(os.environ.get("WORKERS", "0")) or None) as pool:
        jobs = [
            pool.submit(simulate_world, *each, runs if each[1] == "null" else max(runs // 2, 1))
            for each in wanted
        ]
        for done in as_completed(jobs):
            rows = [*read_stored_rows(), *done.result()]
            rows.sort(
                key=lambda row: (
                    row["kind"],
                    order.index((row["family"], row["kind"], row["world"])),
                )
            )
            RESULTS.write_text(
                "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n", encoding="utf-8"
            )
    print("| kind | check | world | runs | % |\n|---|---|---|--:|--:|")
    for row in sorted(read_stored_rows(), key=lambda row: (row["kind"], row["check"])):
        warned = 100 * row["warned"] / row["runs"]
        print(
            f"| {row['kind']} | `{row['check']}` | {row['world']} | {row['runs']} | {warned:.1f} |"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
