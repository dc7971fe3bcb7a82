"""Biographies of people who share a name: found, grouped in ten layouts, linked, and told from those of one person."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from scripted_llm import ScriptedLLM, find_paragraph_to_group

from factaudit.arrays.biography_scores import BIOGRAPHY_CATEGORIES
from factaudit.engines.dfactscore.engine import DFactScorer
from factaudit.engines.engine_settings import open_engine_knowledge_source
from factaudit.engines.records import ScoredResponseRecords
from factaudit.engines.responses import Response, find_given_fact_groups, read_response_file

Groups = list[list[str]]


def _lines(groups: Groups, head: Callable[[int], str] = lambda n: "", bullet: str = "- ") -> str:
    parts = []
    for number, facts in enumerate(groups, start=1):
        told = head(number) if len(groups) > 1 or number > 1 else ""
        parts.append("\n".join([*([told] if told else []), *(f"{bullet}{fact}" for fact in facts)]))
    return "\n".join(parts)


def _between(groups: Groups, rule: str) -> str:
    return f"\n{rule}\n".join("\n".join(f"- {fact}" for fact in facts) for facts in groups)


def _numbered(groups: Groups) -> str:
    flat = [line for facts in groups for line in ("===", *facts)][1:]
    return "\n".join(f"{number}. {line}" for number, line in enumerate(flat, start=1))


#: How models lay out the groups that they were asked for.
LAYOUTS: dict[str, Callable[[Groups], str]] = {
    "as asked": lambda groups: _between(groups, "- ==="),
    "numbered": _numbered,
    "quoted": lambda groups: _between(groups, '"==="'),
    "bold": lambda groups: _between(groups, "**===**"),
    "titled": lambda groups: _lines(groups, lambda n: f"=== Person {n} ==="),
    "dashes": lambda groups: _between(groups, "---"),
    "headed": lambda groups: _lines(groups, lambda n: f"Person {n}:", bullet="* "),
    "Markdown": lambda groups: _lines(groups, lambda n: f"## Person {n}"),
    "JSON": json.dumps,
    "labelled": lambda groups: "\n".join(
        f"- Person {n}: {fact}" for n, facts in enumerate(groups, 1) for fact in facts
    ),
}


@pytest.fixture(scope="module")
def biographies(root: Path) -> list[Response]:
    return read_response_file(root / "data/people/ambiguous/biographies.jsonl")


@pytest.fixture(scope="module")
def scored(root: Path, biographies: list[Response], tmp_path_factory: pytest.TempPathFactory) -> ScoredResponseRecords:
    layouts = list(LAYOUTS.values())
    groups: dict[str, str] = {}
    for number, one in enumerate(biographies):
        assert one.facts is not None
        by_mark: dict[str | None, list[str]] = {}
        for fact in one.facts:
            by_mark.setdefault(fact.group, []).append(fact.text)
        groups[one.output] = layouts[number % len(layouts)](list(by_mark.values()))

    def answer(prompt: str) -> str:
        return groups[find_paragraph_to_group(prompt)]

    out = tmp_path_factory.mktemp("ambiguous")
    scorer = DFactScorer(
        open_engine_knowledge_source(root / "data/people/ambiguous/pages.jsonl", out=out),
        ScriptedLLM(answer),
        verifiers="unigram:threshold=0.9",
        groupers=("llm", "heuristic", "one-group"),
        gamma=0,
        replicates=0,
    )
    return scorer.score_responses(biographies)


def _table(root: Path, biographies: list[Response], scored: ScoredResponseRecords) -> list[str]:
    """A row for each kind of name: links that are right, merged biographies found, others taken for merged."""
    lines = (root / "data/people/ambiguous/biographies.jsonl").read_text(encoding="utf-8").splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in (*dict.fromkeys(kinds), "all")}
    for kind, one, row in zip(kinds, biographies, scored.responses, strict=True):
        assert one.facts is not None
        marks, entities = find_given_fact_groups(one.facts)
        wanted = [entities[mark] for mark in dict.fromkeys(marks)]
        found = [group["entity"] for group in row["groups"]]
        is_merged = one.category == BIOGRAPHY_CATEGORIES[1]
        for counted in (counts[kind], counts["all"]):
            counted["n"] += 1
            counted["groups"] += len(wanted)
            counted["right"] += sum(a == b for a, b in zip(wanted, found, strict=False)) * (len(found) == len(wanted))
            counted["merged"] += is_merged
            counted["found"] += is_merged and row["merged"] is True
            counted["false"] += not is_merged and row["merged"] is not False
    return [
        f"| {kind} | {c['n']} | {c['right']} of {c['groups']} | {c['found']} of {c['merged']} "
        f"| {c['false']} of {c['n'] - c['merged']} |"
        for kind, c in counts.items()
    ]


def test_the_biographies_are_of_all_kinds(biographies: list[Response]) -> None:
    assert Counter(one.category for one in biographies) == {
        BIOGRAPHY_CATEGORIES[0]: 18,
        BIOGRAPHY_CATEGORIES[1]: 9,
        BIOGRAPHY_CATEGORIES[2]: 9,
    }
    assert all(one.candidates is None and not one.docs for one in biographies), "candidates are to be found"


def test_everybody_meant_is_a_candidate(biographies: list[Response], scored: ScoredResponseRecords) -> None:
    for one, row in zip(biographies, scored.responses, strict=True):
        meant = {fact.entity for fact in one.facts or ()} - {None}
        assert meant <= set(row["candidates"]), one.response_id


def test_ten_layouts_are_ten_ways_to_say_the_same(scored: ScoredResponseRecords) -> None:
    (row,) = [row for row in scored.summary["grouping"] if row["grouper"] == "llm"]
    assert len(LAYOUTS) == 10
    assert (row["same_as_given"], row["n_failed"], row["n_dropped"], row["n_invented"]) == (1.0, 0, 0, 0)


def test_the_table_is_as_the_folder_says(
    root: Path, biographies: list[Response], scored: ScoredResponseRecords
) -> None:
    told = (root / "data/people/README.md").read_text(encoding="utf-8").splitlines()
    table = _table(root, biographies, scored)
    assert table[-1] == "| all | 36 | 45 of 45 | 9 of 9 | 0 of 27 |"
    assert set(table) <= set(told), "\n".join(table)


def test_without_groups_whoever_is_told_apart_is_a_false_alarm(scored: ScoredResponseRecords) -> None:
    by_grouper = {row["grouper"]: row for row in scored.summary["linking"] if row["link"] == "argmax"}
    assert by_grouper["llm"]["share_merged"] == 9 / 36
    assert by_grouper["one-group"]["share_merged"] == 18 / 36
    grouping = {row["grouper"]: row["same_as_given"] for row in scored.summary["grouping"]}
    assert grouping["heuristic"] == 1.0
