"""Groups survive any layout: replies as models lay them out, what nobody can tell, and the second question."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from scripted_llm import ScriptedLLM

from factaudit.engines.dfactscore.fact_grouping import (
    FactGroupingDemonstrations,
    ask_for_fact_groups,
    number_fact_groups,
)
from factaudit.engines.dfactscore.grouping_reply_layout import parse_fact_group_reply_layout
from factaudit.engines.records import FactGroupingRecord
from factaudit.llm.chat_types import ChatReply

GOLDEN: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent / "golden" / "group_layouts.yaml").read_text(encoding="utf-8")
)
FACTS, NAME = GOLDEN["facts"], GOLDEN["name"]
TWO = "- " + "\n- ".join([*FACTS[:2], "===", *FACTS[2:]])


def group(*replies: str | ChatReply) -> tuple[FactGroupingRecord, ScriptedLLM]:
    left = list(replies)
    llm = ScriptedLLM(lambda _: left.pop(0) if len(left) > 1 else left[0])
    return asyncio.run(ask_for_fact_groups(llm.ask, FactGroupingDemonstrations.load(), "P.", FACTS, NAME)), llm


def meant(groups: str | list[list[int]] | None) -> tuple[int, ...] | None:
    numbers = GOLDEN[groups] if isinstance(groups, str) else groups
    if numbers is None:
        return None
    return number_fact_groups([next(n for n, own in enumerate(numbers) if fact in own) for fact in range(len(FACTS))])


@pytest.mark.parametrize("one", GOLDEN["layouts"], ids=lambda one: one["layout"])
def test_a_layout_gives_the_groups_that_it_means(one: dict[str, Any]) -> None:
    found, llm = group(one["reply"])
    assert found.groups == meant(one["groups"])
    assert len(llm.requests) == (1 if found.groups is not None else 2)
    if found.groups is None:
        assert (found.status, found.raw) == ("unparsed", one["reply"])
    elif "changed" not in one["layout"]:
        assert (found.n_changed, found.n_dropped, found.n_repeated) == (0, 0, 0)


def test_there_are_many_layouts_and_each_is_another() -> None:
    layouts = GOLDEN["layouts"]
    assert len({one["reply"] for one in layouts}) == len({one["layout"] for one in layouts}) == len(layouts) >= 60
    assert sum(one["groups"] == "two" for one in layouts) >= 40


def test_what_could_not_be_read_is_asked_for_once_more_in_the_same_conversation() -> None:
    unclear = next(one["reply"] for one in GOLDEN["layouts"] if one["layout"] == "headings that nobody can tell")
    found, llm = group(unclear, TWO)
    assert found.groups == (0, 0, 1, 1, 1)
    first, second = llm.requests
    assert second.messages[0] == first.messages[0]
    assert second.messages[1] == {"role": "assistant", "content": unclear}
    assert "could not be read" in second.messages[2]["content"]
    assert second.params == first.params
    failed, llm = group(unclear, ChatReply("error", error="gave up"))
    assert (failed.groups, failed.status, failed.raw) == (None, "error", "gave up")
    failed, llm = group(ChatReply("refused", "No."))
    assert (failed.status, len(llm.requests)) == ("refused", 1)


def test_a_reply_that_broke_off_before_the_last_facts_is_asked_for_again() -> None:
    broken = ChatReply("ok", "\n".join(TWO.split("\n")[:5]), "length")
    found, llm = group(broken, TWO)
    assert (found.groups, len(llm.requests)) == ((0, 0, 1, 1, 1), 2)
    whole, llm = group(ChatReply("ok", TWO + "\n\nLet me", "length"))
    assert (whole.groups, len(llm.requests)) == ((0, 0, 1, 1, 1), 1)


@pytest.mark.parametrize(
    "fact", ["Person 2 was his code name:", "Another Ann Lee sang", "=== is her signature", "1. FC"]
)
def test_a_fact_is_a_fact_whatever_it_looks_like(fact: str) -> None:
    facts = ["Ann Lee sang in Oslo.", fact, "She died."]
    for reply in ("- " + "\n- ".join(facts), "\n".join(facts), "- " + "\n- ".join(f"**{one}**" for one in facts)):
        layout = parse_fact_group_reply_layout(reply, facts, "Ann Lee")
        assert (len(layout.groups), layout.is_doubtful) == (1, False)
