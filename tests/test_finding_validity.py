"""Every check that tests something says when nothing is wrong, and is simulated; a few runs of it
here."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from factaudit.audit import load_builtin_audits

sys.path.insert(0, str(Path(__file__).parent / "validity"))
from findings import (
    FAMILIES,
    count_warnings,
    limit_of_false_alarms,
    list_simulated_worlds,
    list_tested_checks,
    list_world_checks,
    read_stored_rows,
)

#: Checks that test nothing: they count unscored claims or faulty facts, or compare two scores of
#: the same responses.
COUNTING_CHECKS = {"unscored", "faulty_facts", "uncovered_text", "merged_facts_unmeasured"}
#: A check is simulated in so many worlds or more in which nothing is wrong.
FEWEST_NULL_WORLDS = 4
#: So many runs of a world are drawn here; `tests/validity/findings.py` draws 200.
RUNS = 4
CHECKS = {check.id: check for audit in load_builtin_audits() for check in audit.checks}


def test_each_check_says_what_it_tests_and_is_simulated():
    assert {name for name, check in CHECKS.items() if not check.null} == COUNTING_CHECKS
    simulated = [
        check for family in FAMILIES.values() for check in list_tested_checks(family.audits)
    ]
    assert sorted(simulated) == sorted(CHECKS.keys() - COUNTING_CHECKS)
    for family in FAMILIES.values():
        of_power = {check for world in family.effects for check in world.made_for}
        assert of_power == set(list_tested_checks(family.audits)), "an effect for each check"


def test_no_check_was_above_five_in_a_hundred_in_the_simulated_worlds():
    rows = read_stored_rows()
    simulated = {(row["family"], row["kind"], row["world"], row["check"]) for row in rows}
    expected = {
        (family.name, kind, world.name, check)
        for family, kind, world in list_simulated_worlds()
        for check in list_world_checks(family, world)
    }
    assert simulated == expected, (
        "worlds are drawn otherwise now: simulate again by tests/validity/findings.py"
    )
    tested = CHECKS.keys() - COUNTING_CHECKS
    worlds = Counter(row["check"] for row in rows if row["kind"] == "null")
    assert {check: worlds[check] for check in tested if worlds[check] < FEWEST_NULL_WORLDS} == {}
    assert {row["check"] for row in rows if row["kind"] == "power"} >= tested
    for row in rows:
        if row["kind"] == "null":
            assert row["runs"] >= 200
            assert row["warned"] / row["runs"] <= limit_of_false_alarms(row["runs"]), row


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "biographies"])
def test_checks_stay_silent_where_nothing_is_wrong(name):
    """Of 4 runs and up to 12 checks of a family at 5 % none warns more than once (a chance of 1 in
    70 each)."""
    family = FAMILIES[name]
    world = next(world for world in family.null_worlds if world.systems == 3)
    found = count_warnings(family, world, RUNS)
    assert {
        check: found[check] for check in list_world_checks(family, world) if found[check] > 1
    } == {}


#: By check the family and the last of the worlds in which it has something to find.
EFFECTS = {
    check: (family, world)
    for family in FAMILIES.values()
    for world in family.effects
    for check in world.made_for
}


@pytest.mark.parametrize("check", EFFECTS)
def test_checks_warn_where_something_is_wrong(check):
    assert count_warnings(*EFFECTS[check], 3)[check] >= 2
