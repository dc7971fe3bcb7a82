"""Groups of facts: MF's prompt, and replies read and reconciled."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scripted_llm import AtomicFact, ChatReply, Response, ScriptedLLM

from factaudit.engines.grouping import (
    ask_for_groups,
    make_grouping_request,
    make_grouping_text,
    match_facts,
    number_groups,
    split_groups,
)

FACTS = [
    "He was born in Kribi.",
    "He was born in 1958.",
    "He is a luthier.",
    "She rows.",
    "She won in Poznań.",
]


@pytest.mark.parametrize(
    ("reply", "groups"),
    [
        ("- One.\n- Two.", [["One.", "Two."]]),
        ("- One.\n- =====\n- Two.\n", [["One."], ["Two."]]),
        ("\n- One.\r\n\r\n====\r\n  - Two.", [["One."], ["Two."]]),
        ("- ===\n- One.\n===\n- ===\n- === is her mark.", [["One."], ["=== is her mark."]]),
        ("", None),
        ("===\n- ===", None),
        ("1. One.\n2. Two.", None),
        ("One.\nTwo.", None),
        ("* One.\n* Two.", None),
        ("- One.\n---\n- Two.", None),
        ("- One.\n=== Person 2 ===\n- Two.", None),
        ("Person 1:\n- One.\nPerson 2:\n- Two.", None),
        ("Here are the facts:\n- One.\n- Two.", None),
        ('[["One."], ["Two."]]', None),
    ],
)
def test_a_reply_is_read_in_the_layout_of_the_prompt_alone(reply, groups):
    assert split_groups(reply) == groups


def test_changed_facts_are_found_and_other_lines_counted():
    reply = [
        ["he was born in KRIBI", "He was born in the year 1958.", "He likes cheese a lot."],
        ["She rows.", "She rows."],
    ]
    assert match_facts(FACTS, reply) == ([0, 0, None, 1, None], 1)
    assert match_facts(["She won.", "She won."], [["She won."], ["She won."]]) == ([0, 1], 0)


@given(st.lists(st.text(min_size=1, max_size=30), max_size=12), st.text(max_size=400))
@example(FACTS, "- ===\n- ===\n")
@example(FACTS, "\n".join(f"- {fact}\n- ===" for fact in reversed(FACTS)))
def test_every_fact_has_at_most_one_group_for_any_reply(facts, reply):
    groups = split_groups(reply) or []
    found, n_invented = match_facts(facts, groups)
    assert len(found) == len(facts)
    assert len(facts) - found.count(None) + n_invented <= sum(map(len, groups))


@given(st.lists(st.sampled_from(FACTS), min_size=1, max_size=8), st.data())
def test_a_faithful_reply_gives_its_own_groups(facts, data):
    groups = data.draw(
        st.lists(st.integers(0, 2), min_size=len(facts), max_size=len(facts)).map(sorted)
    )
    blocks = [
        "\n".join(f"- {fact}" for fact, group in zip(facts, groups, strict=True) if group == number)
        for number in sorted(set(groups))
    ]
    found, n_invented = match_facts(facts, split_groups("\n- ===\n".join(blocks)) or [])
    assert (number_groups(found), n_invented) == (number_groups(groups), 0)


def test_the_prompt_is_the_one_that_merging_facts_prints():
    shown = {"A. B.": [["A1."], ["B1."]], "C.": [["C1."]]}
    task = (
        "Next, refer to the paragraph again and see if it explicitly states that it contains the"
        " biographies of multiple individuals. If there are multiple biographies, split the"
        ' independent facts from different biography using "====". If the paragraph does not'
        " contain multiple biographies from different individuals, repeat the independent facts.\n"
    )
    assert (
        make_grouping_text("He was born.", ["He was.", "Born."], shown)
        == "Please breakdown the following sentence into independent facts: A. B.\n- A1.\n-"
        f" B1.\n{task}- A1.\n- =====\n- B1.\n\nPlease breakdown the following sentence into"
        f" independent facts: C.\n- C1.\n{task}- C1.\n\nPlease breakdown the following sentence"
        f" into independent facts: He was born.\n- He was.\n- Born.\n{task}"
    )
    assert make_grouping_request("x", ["fact"] * 500).params["max_tokens"] > 4000


TWO = "- " + "\n- ".join([*FACTS[:3], "===", *FACTS[3:]])


def group(reply: str | ChatReply) -> tuple[int, ...] | None:
    given = Response("r", "N", "P.", facts=tuple(map(AtomicFact, FACTS)))
    (found,) = ask_for_groups(ScriptedLLM(lambda _: reply), [given])
    return found


@pytest.mark.parametrize(
    ("reply", "groups"),
    [
        (TWO, (0, 0, 0, 1, 1)),
        ("<think>\n- ===\n</think>\n" + "\n".join(f"- {fact}" for fact in FACTS), (0,) * 5),
        (TWO.replace("- He is a luthier.\n", ""), (0, 0, 0, 1, 1)),
        (ChatReply("ok", TWO[:60], "length"), None),
        (ChatReply("error", error="gave up"), None),
        (ChatReply("refused", "No."), None),
        ("I cannot help with that.", None),
        ("These are all about one person.", None),
        ("- She rows.\n- ===\n- She won in Poznań.", None),
        ("\n".join(f"{number}. {fact}" for number, fact in enumerate(FACTS)), None),
        # Lines besides the facts may be headings that tell two people apart: this is not one group.
        (TWO.replace("- ===", "- The rower of that name:"), None),
    ],
)
def test_a_grouping_fails_where_the_reply_cannot_be_read(reply, groups):
    assert group(reply) == groups
