"""Groups of facts: replies read and reconciled, the heuristic, the prompt."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scripted_llm import ScriptedLLM

from factaudit.engines.dfactscore.fact_grouping import (
    FactGroupingDemonstrations,
    ask_for_fact_groups,
    assign_facts_to_reply_groups,
    compare_fact_groupings,
    make_single_group,
    number_fact_groups,
)
from factaudit.engines.dfactscore.grouping_reply_layout import parse_fact_group_reply_layout
from factaudit.engines.dfactscore.heuristic_grouping import group_facts_by_heuristic
from factaudit.engines.records import FactGroupingRecord
from factaudit.engines.responses import remove_response_citation_marks
from factaudit.errors import InputError
from factaudit.knowledge.person_names import name_likeness
from factaudit.llm.chat_types import ChatReply
from factaudit.text.sentences import split_sentences

FACTS = ["He was born in Kribi.", "He was born in 1958.", "He is a luthier.", "She rows.", "She won in Poznań."]


# ---------------------------------------------------------------------------------------------- reading a reply


def read(facts: list[str], reply: str) -> FactGroupingRecord:
    return assign_facts_to_reply_groups(facts, parse_fact_group_reply_layout(reply, facts).groups)


def test_bullets_numbers_and_breaks_are_read() -> None:
    reply = "Here:\n- One.\n* Two.\n\n- ===\n1. Three.\n(2) Four.\n=====\n===\n• Five.\nThis one is new."
    facts = ["One.", "Two.", "Three.", "Four.", "Five."]
    assert parse_fact_group_reply_layout(reply, facts).groups == (
        ("One.", "Two."),
        ("Three.", "Four."),
        ("Five.", "This one is new."),
    )
    assert parse_fact_group_reply_layout("", facts).groups == ()
    assert parse_fact_group_reply_layout("===\n- ===", facts).groups == ()


def test_the_first_fact_of_a_reply_is_kept() -> None:
    # The published code loses it, whatever stands before the first "===".
    found = read(FACTS, "\n".join(f"- {fact}" for fact in FACTS))
    assert found.groups == (0, 0, 0, 0, 0)
    assert found.n_dropped == 0


def test_two_people_are_two_groups() -> None:
    lines = [f"- {fact}" for fact in FACTS]
    found = read(FACTS, "\n".join([*lines[:3], "- ===", *lines[3:]]))
    assert found.groups == (0, 0, 0, 1, 1)
    assert (found.n_changed, found.n_dropped, found.n_invented, found.n_repeated) == (0, 0, 0, 0)


def test_changed_dropped_invented_and_repeated_facts_are_counted() -> None:
    reply = [
        ["he was born in KRIBI", "He was born in the year 1958.", "He likes cheese a lot."],
        ["She rows.", "She rows."],
    ]
    found = assign_facts_to_reply_groups(FACTS, reply)
    # Changed: 1958. Dropped: the luthier (after 1958, so with it) and Poznań (after the rower).
    assert found.groups == (0, 0, 0, 1, 1)
    assert (found.n_changed, found.n_dropped, found.n_invented, found.n_repeated) == (1, 2, 1, 1)


def test_a_fact_dropped_at_the_start_goes_with_the_first_that_follows() -> None:
    assert assign_facts_to_reply_groups(FACTS, [["He is a luthier."], ["She rows."]]).groups == (0, 0, 0, 1, 1)


def test_a_fact_that_stands_twice_is_placed_twice() -> None:
    found = assign_facts_to_reply_groups(["She won.", "She won."], [["She won."], ["She won."]])
    assert found.groups == (0, 1)
    assert found.n_repeated == 0


@given(st.lists(st.text(min_size=1, max_size=30), max_size=12), st.text(max_size=400))
@example(FACTS, "- ===\n- ===\n")
@example(FACTS, "\n".join(f"- {fact}\n- ===" for fact in reversed(FACTS)))
def test_every_fact_is_in_exactly_one_group_for_any_reply(facts: list[str], reply: str) -> None:
    found = read(facts, reply)
    assert found.groups is not None
    assert len(found.groups) == len(facts)
    # Numbered 0, 1, 2, ... by first appearance: no group is empty.
    assert found.groups == number_fact_groups(found.groups)
    lines = sum(map(len, parse_fact_group_reply_layout(reply, facts).groups))
    placed = len(facts) - found.n_dropped
    assert placed + found.n_repeated + found.n_invented == lines


@given(st.lists(st.sampled_from(FACTS), min_size=1, max_size=8), st.data())
def test_a_faithful_reply_gives_its_own_groups(facts: list[str], data: st.DataObject) -> None:
    groups = data.draw(st.lists(st.integers(0, 2), min_size=len(facts), max_size=len(facts)).map(sorted))
    blocks = [
        "\n".join(f"- {fact}" for fact, group in zip(facts, groups, strict=True) if group == number)
        for number in sorted(set(groups))
    ]
    found = read(facts, "\n- ===\n".join(blocks))
    assert found.groups == number_fact_groups(groups)
    assert (found.n_changed, found.n_dropped, found.n_invented, found.n_repeated) == (0, 0, 0, 0)


def test_comparing_groupings() -> None:
    assert compare_fact_groupings((0, 0, 1), (0, 0, 1)) == (True, 1.0)
    assert compare_fact_groupings((0, 0, 1), (0, 0, 0)) == (False, pytest.approx(2 / 3))
    assert compare_fact_groupings((0, 1, 2), (0, 1, 1)) == (False, pytest.approx(2 / 3))
    assert compare_fact_groupings((), ()) == (True, 1.0)
    assert make_single_group(3).groups == (0, 0, 0)


# ------------------------------------------------------------------------------------------------ the heuristic


@pytest.mark.parametrize(
    ("sentences", "groups"),
    [
        # "Another" opens a group; pronouns stay with the one that is open.
        (
            ["Ann Lee was a baker.", "She lived in Bath.", "Another Ann Lee was a diver.", "She died in 1930."],
            (0, 0, 1, 1),
        ),
        # Years of birth that contradict each other.
        (["Ann Lee was born in 1901.", "Ann Lee was born in 1950."], (0, 1)),
        (["Ann Lee (1901–1980) wrote plays.", "Ann Lee (born 1950) sang."], (0, 1)),
        # Occupations that contradict each other, also under a longer name.
        (["Ann Lee was a painter.", "Ann K. Lee is an astronaut from Texas."], (0, 1)),
        # ... and back to the first.
        (["Ann Lee was a painter.", "Ann Lee is an astronaut.", "Ann Lee was a painter of birds."], (0, 1, 0)),
        # The same person under the full name again.
        (["Ann Lee was a painter.", "Ann Lee was the first woman at the school.", "Ann Lee died in 1930."], (0, 0, 0)),
        # A merged paragraph without the name: nothing says that it is about somebody else.
        (["Ann Lee was a painter.", "She was born in 1901.", "She flew to the moon in 1969."], (0, 0, 0)),
        # Several are announced before the first is told of.
        (["Two people are named Ann Lee.", "Ann Lee was a painter.", "A second Ann Lee flew."], (0, 0, 1)),
    ],
)
def test_the_heuristic(sentences: list[str], groups: tuple[int, ...]) -> None:
    assert (
        group_facts_by_heuristic("Ann Lee (disambiguation)", sentences, sentences, list(range(len(sentences)))).groups
        == groups
    )
    assert group_facts_by_heuristic("Ann Lee", sentences, sentences).groups == groups


@given(st.text(max_size=30), st.lists(st.text(max_size=60), max_size=6), st.lists(st.text(max_size=40), max_size=6))
def test_the_heuristic_groups_anything(name: str, sentences: list[str], facts: list[str]) -> None:
    groups = group_facts_by_heuristic(name, sentences, facts).groups
    assert groups is not None
    assert groups == number_fact_groups(groups)
    assert len(groups) == len(facts)


# ---------------------------------------------------------------------------------------------------- the model


def test_the_demonstrations_are_two_of_one_and_two_of_several_people() -> None:
    shown = FactGroupingDemonstrations.load()
    assert [len(groups) for _, _, groups in shown.examples] == [1, 3, 1, 3]
    assert [text[:13] for text, *_ in shown.examples[:2]] == ["Park Chan-woo", "Gavin Hamilto"]  # as Table 8 prints


def test_the_prompt_is_the_one_that_merging_facts_prints() -> None:
    shown = FactGroupingDemonstrations((("A. B.", ("A1.", "B1."), (("A1.",), ("B1.",))), ("C.", ("C1.",), (("C1.",),))))
    task = (
        "Next, refer to the paragraph again and see if it explicitly states that it contains the biographies of "
        "multiple individuals. If there are multiple biographies, split the independent facts from different biography "
        'using "====". If the paragraph does not contain multiple biographies from different individuals, repeat the '
        "independent facts.\n"
    )
    assert shown.make_prompt("He was born.", ["He was.", "Born."]) == (
        "Please breakdown the following sentence into independent facts: A. B.\n- A1.\n- B1.\n"
        f"{task}- A1.\n- =====\n- B1.\n\n"
        f"Please breakdown the following sentence into independent facts: C.\n- C1.\n{task}- C1.\n\n"
        f"Please breakdown the following sentence into independent facts: He was born.\n- He was.\n- Born.\n{task}"
    )
    assert shown.make_request("x", ["fact"] * 500).params["max_tokens"] > 4000


def test_replaced_demonstrations_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "demos.json"
    file.write_text(json.dumps({"A.": [["a", "b"], ["a", "- ===", "b"]]}))
    assert FactGroupingDemonstrations.load(file).examples == (("A.", ("a", "b"), (("a",), ("b",))),)
    for wrong in ('{"A.": [["a", "b"], ["a"]]}', "[]", "{", "{}", '{"A.": ["a"]}'):
        file.write_text(wrong)
        with pytest.raises(InputError, match=r"demos\.json"):
            FactGroupingDemonstrations.load(file)


def test_the_llm_grouper_reads_failures_as_failures() -> None:
    def group(reply: str | ChatReply) -> object:
        return asyncio.run(
            ask_for_fact_groups(ScriptedLLM(lambda _: reply).ask, FactGroupingDemonstrations.load(), "P.", FACTS)
        )

    faithful = group("\n".join([f"- {fact}" for fact in FACTS[:3]] + ["- ==="] + [f"- {fact}" for fact in FACTS[3:]]))
    assert faithful.groups == (0, 0, 0, 1, 1)  # type: ignore[attr-defined]
    failed = group(ChatReply("error", error="gave up"))
    assert (failed.groups, failed.status, failed.raw) == (None, "error", "gave up")  # type: ignore[attr-defined]
    talk = group("I cannot help with that.")
    assert (talk.groups, talk.status) == (None, "refused")  # type: ignore[attr-defined]
    talk = group("These are all about one person.")
    assert (talk.groups, talk.status) == (None, "unparsed")  # type: ignore[attr-defined]
    cut = group(ChatReply("ok", "\n".join(f"- {fact}" for fact in FACTS[:3]), "length"))
    assert (cut.groups, cut.status) == (None, "unparsed")  # type: ignore[attr-defined]
    assert "raise max_tokens" in cut.raw  # type: ignore[attr-defined]
    thought = group("<think>\n- ===\n</think>\n" + "\n".join(f"- {fact}" for fact in FACTS))
    assert thought.groups == (0, 0, 0, 0, 0)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("sentences", "groups"),
    [
        (
            ["Carl Fischer sold flutes.", "Meanwhile, Karl von Fischer was an architect.", "He died in Munich."],
            (0, 1, 1),
        ),
        (["Carl Fischer sold flutes.", "Carl G. Fischer was a builder.", "Carl H. Fischer was a poet."], (0, 0, 1)),
        (
            ["There are two people of this name.", "One is a poet.", "Another is a rower.", "He won in Oslo."],
            (0, 0, 1, 1),
        ),
        (["Carl Fischer is a poet.", "There is no information on a person named Carl H. Fischer."], (0, 0)),
        (["Carl Fischer was a poet.", "Carl's brother, Hans Fischer, was a rower.", "Fischer died."], (0, 0, 0)),
        (["Carl Fischer (poet) wrote.", "Carl Fischer (rower) is a rower.", "Carl Fischer (poet) died."], (0, 1, 0)),
        (["Carl Fischer wrote.", "In contrast, Carl Fischer was Duke of Ulm.", "He rode."], (0, 1, 1)),
        (["Carl Fischer was a poet.", "His son, Carl Fischer Jr., was a rower."], (0, 0)),
        (["Carl Fischer wrote.", "Born in 1901, he died young.", "Carl Fischer, born 1950, rows."], (0, 0, 1)),
        (["Sir Carl Fischer rode.", "Carl Fischer was a knight.", "Bill Fischer was his horse."], (0, 0, 0)),
    ],
)
def test_the_heuristic_knows_other_ways_to_write_the_name(sentences: list[str], groups: tuple[int, ...]) -> None:
    assert group_facts_by_heuristic("Carl Fischer", sentences, sentences, list(range(len(sentences)))).groups == groups


def test_the_heuristic_parts_published_paragraphs_of_two_people(shared: Path) -> None:
    """Paragraphs whose sentences are supported by pages of two people of the name; of one, by all its sentences."""
    files = sorted(shared.glob("dfactscore/citation/*.score"))
    if not files:
        pytest.skip("the published citation judgements are not here")
    parted: dict[bool, list[bool]] = {True: [], False: []}
    for path in files:
        rows: dict[int, list[dict[str, Any]]] = {}
        for row in json.loads(path.read_text(encoding="utf-8"))["autoais_log"]:
            rows.setdefault(row["qid"], []).append(row)
        for claims in rows.values():
            name = re.sub(r"Tell me a bio of|\(disambiguation\)", "", claims[0]["question"]).strip()
            passages = ["\n".join(one["passage"]) for one in claims if one["model_output"]]
            told = [set(re.findall(r"Title: (.*?)\n", text)) for text in passages]
            people = {
                title for titles in told if len(titles) == 1 for title in titles if name_likeness(name, title) >= 0.8
            }
            text = split_sentences(remove_response_citation_marks(claims[0]["output"]))
            if len(people) > 1 or (len(people) == 1 and len(told) == len(claims) >= len(text)):
                found = group_facts_by_heuristic(name, text, text, list(range(len(text)))).groups
                assert found is not None
                parted[len(people) > 1].append(len(set(found)) > 1)
    assert {several: len(found) for several, found in parted.items()} == {True: 223, False: 81}
    assert sum(parted[True]) >= 171  # 136 by the same name and key facts alone
    assert (
        sum(parted[False]) <= 4
    )  # 3; these 4 do tell of several people, though no sentence about the others is judged
