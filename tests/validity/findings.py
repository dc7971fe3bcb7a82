"""How often does each check warn where nothing is wrong, and how often where something is? Prints two tables.

    python tests/validity/findings.py [runs, default 200] [families, default all]

Null: `finding_worlds.py` draws worlds in which what a check calls nothing wrong (`Check.null`) is true, at the limit of
the check where it has one. A check should warn in at most 5 % of the runs. In worlds that are made for one check, one
half of what it looks for is there and the other is not. Power: in half as many runs, the same with an effect of a
stated size. `WORKERS` processes (by default as many as cores) share the worlds. The counts are kept in
``findings.json`` beside this file; a world that it has is not drawn again.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from finding_families import FAMILIES, Family, collect_run_findings, list_world_checks
from finding_worlds import World

from factaudit.audit import load_all_audits
from factaudit.audit.findings import list_checks

RESULTS = Path(__file__).with_name("findings.json")


def is_false_alarm(finding: dict[str, Any]) -> bool:
    """A finding that says something is wrong; that a test had no power is a caveat, and true."""
    return finding["severity"] in ("fail", "warn")


def list_family_checks(family: Family) -> list[str]:
    """The checks of a family's audits that test something."""
    names = [each if isinstance(each, str) else next(iter(each)) for each in family.audits]
    return [check.id for name in names for check in load_all_audits()[name].checks if check.null]


def list_simulated_checks() -> list[str]:
    return [check for family in FAMILIES.values() for check in list_family_checks(family)]


def count_warnings(family: Family, world: World, runs: int, seed: int = 7) -> Counter[str]:
    """In how many runs each check failed or warned."""
    found: Counter[str] = Counter()
    for run in range(runs):
        findings = collect_run_findings(family, world, (seed, run))
        found.update({each["id"] for each in findings if is_false_alarm(each)})
    return found


def limit_of_false_alarms(runs: int) -> float:
    """5 %, and two standard errors of so many runs."""
    return 0.05 + 2 * (0.05 * 0.95 / runs) ** 0.5


def render_rows(title: str, results: Sequence[dict[str, Any]]) -> str:
    """A line for each check: the share of runs in which it warned, in each world."""
    lines = [f"### {title}\n", "| check | world | runs | % |", "|---|---|--:|--:|"]
    for check in dict.fromkeys(row["check"] for row in results):
        lines += [
            f"| `{check}` | {row['world']} | {row['runs']} | {100 * row['warned'] / row['runs']:.1f} |"
            for row in results
            if row["check"] == check
        ]
    return "\n".join(lines)


def simulate_world(family_name: str, kind: str, world: World, runs: int) -> list[dict[str, Any]]:
    """A row for each check that the world is told for."""
    family = FAMILIES[family_name]
    found = count_warnings(family, world, runs)
    about = {"family": family_name, "kind": kind, "world": world.name, "runs": runs}
    return [about | {"check": each, "warned": found[each]} for each in list_world_checks(family, world)]


def read_stored_rows() -> list[dict[str, Any]]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []


def list_open_worlds(runs: int, families: Sequence[str]) -> list[tuple[str, str, World, int]]:
    """What is still to be simulated: family, kind, world, number of runs."""
    stored = {(row["family"], row["kind"], row["world"]) for row in read_stored_rows()}
    return [
        (name, kind, world, runs if kind == "null" else max(runs // 2, 1))
        for name, family in FAMILIES.items()
        if not families or name in families
        for kind, worlds in (("null", family.null_worlds), ("power", family.effects))
        for world in worlds
        if (name, kind, world.name) not in stored
    ]


def main(runs: int = 200, *families: str) -> None:
    places = [
        (name, world.name) for name, family in FAMILIES.items() for world in (*family.null_worlds, *family.effects)
    ]
    with ProcessPoolExecutor(int(os.environ.get("WORKERS", "0")) or None) as pool:
        for done in as_completed([pool.submit(simulate_world, *each) for each in list_open_worlds(runs, families)]):
            rows = [*read_stored_rows(), *done.result()]
            rows.sort(key=lambda row: (row["kind"], places.index((row["family"], row["world"]))))
            RESULTS.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n", encoding="utf-8")
            print({row["check"]: row["warned"] for row in done.result()}, done.result()[0]["world"], flush=True)
    stored = read_stored_rows()
    for kind, title in (
        ("null", f"False alarms (at most {100 * limit_of_false_alarms(runs):.1f} %)"),
        ("power", "Power"),
    ):
        print(render_rows(title, [row for row in stored if row["kind"] == kind]))
    counting = [check.id for check in list_checks() if not check.null]
    print(f"\nNothing is tested, things are counted: {', '.join(counting)}.")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
