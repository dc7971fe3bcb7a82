"""The invented people that ship: what the folder says of itself, and what D-FActScore finds in it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from factaudit.arrays.biography_scores import BIOGRAPHY_CATEGORIES
from factaudit.engines.dfactscore import DFactScorer
from factaudit.engines.factscore_report import ScoredResponses
from factaudit.engines.responses import Response, read_response_file
from factaudit.engines.settings import open_knowledge_source
from factaudit.experiment.run import run as run_experiment
from factaudit.knowledge.person_names import (
    find_titles_of_same_name,
    is_title_of_name,
)


@pytest.fixture(scope="module")
def biographies(root: Path) -> list[Response]:
    return read_response_file(root / "data/people/biographies.jsonl")


@pytest.fixture(scope="module")
def scored(root: Path, biographies: list[Response], tmp_path_factory: pytest.TempPathFactory) -> ScoredResponses:
    out = tmp_path_factory.mktemp("people")
    scorer = DFactScorer(
        open_knowledge_source(root / "data/people/pages.jsonl", out=out),
        verifiers="unigram:threshold=0.9",
        groupers=("given", "one-group"),
        gamma=0,
        replicates=200,
    )
    return scorer.score_responses(biographies)


def pages(root: Path) -> dict[str, str]:
    lines = (root / "data/people/pages.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["title"]: row["text"] for row in map(json.loads, lines)}


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
def test_a_title_is_of_a_name_where_it_is_the_same_name(title: str, name: str, is_same: bool) -> None:
    assert is_title_of_name(title, name) is is_same
    found = find_titles_of_same_name([name], [("Somebody Else", "x"), (title, "page")])[name]
    assert found == (["page"] if is_same else [])


def test_a_page_that_a_redirect_leads_to_is_of_the_name_and_the_very_words_come_first() -> None:
    titles = [("A. Lee", "A. Lee"), ("Ann Lee (x)", "Ann Lee (x)"), ("Ann Lee", "Nan Roy"), ("Ann B. Lee", "A. Lee")]
    assert find_titles_of_same_name(["Ann Lee", "Zoe"], titles) == {
        "Ann Lee": ["Ann Lee (x)", "Nan Roy", "A. Lee"],
        "Zoe": [],
    }


def test_all_merged_biographies_are_found_with_given_groups(scored: ScoredResponses) -> None:
    assert scored.summary["category_accuracy"] == 1.0
    merged = {row["response_id"] for row in scored.responses if row["merged"]}
    assert merged == {
        row["response_id"] for row in scored.responses if row["given_category"] == BIOGRAPHY_CATEGORIES[1]
    }
    # D-FActScore's verdicts are then the labels.
    assert all(fact["dfactscore"] == fact["label"] for row in scored.responses for fact in row["facts"])


def test_the_ranking_of_the_systems_turns_round(scored: ScoredResponses) -> None:
    heron, lark = scored.summary["systems"]
    assert heron["factscore"] == 1.0
    assert heron["factscore"] > lark["factscore"]
    assert heron["dfactscore"] < lark["dfactscore"]
    assert heron["gap_low"] > 0


def test_the_quickstart_needs_no_key(root: Path, tmp_path: Path) -> None:
    results = run_experiment(root / "experiments/dfactscore_quickstart.yaml", tmp_path, settings={"replicates": 100})
    rows = {row["system"]: row for row in results.audits["dfactscore"]}
    assert rows["heron"]["factscore"] == 1.0
    assert rows["heron"]["dfactscore"] == pytest.approx(0.736, abs=5e-4)
    assert results.calls == []
    assert results.about["n_tests"]["merged_facts"] == 2, "the tests of the engine's own audits count, too"
    assert results.about["n_tests"]["gap"] == 2
    told = yaml.safe_load((tmp_path / "experiment.yaml").read_text(encoding="utf-8"))
    assert told["dfactscore"]["groupers"] == ["given", "one-group"]
    assert told["replicates"] == 100
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Merged paragraphs" in report
    assert "1 verifier (unigram@0.9), 164 facts in 1 data set" in report, "two scores by it are no two evaluators"
    (found,) = [one["statement"] for one in results.finding_rows if one["id"] == "merged_facts"]
    assert "70.0 % of its responses say about one person what is true of another person with the same name" in found
    assert results.sections[0]["text"] == [
        "Verified by unigram@0.9; groups by 'given'; linked by 'argmax'.",
        "20 responses came with their candidates.",
    ]
    assert not re.search(r'(?:src|href)="https?:', report)
