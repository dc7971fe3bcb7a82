"""The invented people that ship: what the folder says of itself, and what D-FActScore finds in
it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from factaudit import Results
from factaudit import run as run_experiment
from factaudit.knowledge.person_names import find_titles_of_same_name


@pytest.fixture(scope="module")
def ran(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Results, list[dict[str, Any]], Path]:
    """The experiment that ships, without a key: its results, and a row per response."""
    out = tmp_path_factory.mktemp("people")
    results = run_experiment(
        root / "experiments/dfactscore_quickstart.yaml", out, settings={"replicates": 100}
    )
    rows = [
        json.loads(line)
        for line in (out / "responses.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    return results, rows, out


@pytest.mark.parametrize(
    ("title", "name", "is_same"),
    [
        ("Tom\u00e1s Quiroga (boxer)", "tomas  quiroga", True),
        ("Toma\u0301s_Quiroga", "Tomás Quiroga", True),
        ("Seán O’Casey", "Sean O'Casey", True),
        ("William J. Sharkey", "W. Sharkey", True),
        ("William J. Sharkey", "William K. Sharkey", False),
        ("Jean Jacques Marie Roy", "Jean Marie Roy", True),
        ("Jean Jacques Marie Roy", "Jean Marie Jacques Roy", False),
        ("Thomas Seymour, 1st Baron Seymour of Sudeley", "Thomas Seymour", True),
        ("Martin Luther King Jr.", "Martin Luther King", True),
        ("Ann Lee (disambiguation)", "Ann Lee", False),
        ("Madonna (singer)", "Madonna", True),
        ("Madonna Ciccone", "Madonna", False),
        ("Bill Sharkey", "William Sharkey", False),
        ("Алла Пугачёва", "Алла Пугачева", True),
        ("", "Ann Lee", False),
        ("(1)", "(1)", False),
    ],
)
def test_a_title_is_of_a_name_where_it_is_the_same_name(title, name, is_same):
    found = find_titles_of_same_name([name], [("Somebody Else", "x"), (title, "page")])[name]
    assert found == (["page"] if is_same else [])


def test_a_page_that_a_redirect_leads_to_is_of_the_name_and_the_very_words_come_first():
    titles = [
        ("A. Lee", "A. Lee"),
        ("Ann Lee (x)", "Ann Lee (x)"),
        ("Ann Lee", "Nan Roy"),
        ("Ann B. Lee", "A. Lee"),
    ]
    assert find_titles_of_same_name(["Ann Lee", "Zoe"], titles) == {
        "Ann Lee": ["Ann Lee (x)", "Nan Roy", "A. Lee"],
        "Zoe": [],
    }


def test_all_merged_biographies_are_found(ran, root):
    lines = (root / "data/people/biographies.jsonl").read_text(encoding="utf-8").splitlines()
    given = {row["response_id"]: row for row in map(json.loads, lines)}
    for row in ran[1]:
        told = given[row["response_id"]]
        assert row["merged"] == (told["category"] == "one bio, N entities")
        # D-FActScore's verdicts are then the labels.
        assert row["n_supported_linked"] == sum(fact["label"] for fact in told["facts"])


def test_the_ranking_of_the_systems_turns_round(
    ran,
):
    rows = {row["system"]: row for row in ran[0].audits["dfactscore"]}
    heron, lark = rows["heron"], rows["lark"]
    assert heron["factscore"] == 1.0 > lark["factscore"]
    assert heron["dfactscore"] == pytest.approx(0.736, abs=5e-4)
    assert heron["dfactscore"] < lark["dfactscore"]
    assert heron["gap_low"] > 0
    # ``# bio`` 1.20 had an interval from 0.93 on.
    every = [*ran[0].rows("dfactscore"), *ran[0].rows("dfactscore_linking")]
    lows = [
        (row["n_biographies_low"], row["n_biographies"])
        for row in every
        if row["n_biographies_low"] is not None
    ]
    assert all(1 <= low <= mean for low, mean in lows)
    assert any(low > 1 for low, _ in lows)
