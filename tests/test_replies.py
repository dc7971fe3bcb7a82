"""What replies of real models mean: a golden file of their shapes, and no reply at all that breaks
a parser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scripted_llm import (
    AtomicFact,
    ChatReply,
    ChatReplyToken,
    LLMJudge,
    Response,
    ScriptedLLM,
    make_response,
)

from factaudit import Verdict, validate_verdicts
from factaudit.engines import verifier
from factaudit.engines.decompose import (
    DecompositionPrompt,
    decompose,
    remove_repeated_facts,
    split_for_decomposition,
)
from factaudit.engines.grouping import ask_for_groups
from factaudit.engines.reply_facts import is_boilerplate_reply_sentence, parse_reply_facts
from factaudit.evaluators.judge_prompt import JudgePromptTemplate
from factaudit.evaluators.unscored_verdicts import format_unscored_verdicts
from factaudit.llm.reply import extract_llm_answer, parse_chat_completion
from factaudit.tables.cell_values import find_verdict_in_reply
from factaudit.tables.vocabulary import parse_label_word

GOLDEN = [
    json.loads(line)
    for line in (
        (Path(__file__).parent / "golden" / "replies.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    )
]


def shapes(kind: str) -> Any:
    rows = [row for row in GOLDEN if row["as"] == kind]
    return pytest.mark.parametrize("row", rows, ids=[row["shape"] for row in rows])


def reply_of(row: dict[str, Any]) -> ChatReply:
    reply = parse_chat_completion(json.dumps({"choices": [row["choice"]]}))
    assert isinstance(reply, ChatReply)
    return reply


def decomposed(reply: ChatReply) -> tuple[list[str], str]:
    given = [make_response("Ada", "She lived.")]
    llm = ScriptedLLM(lambda prompt: reply)
    (found,) = decompose(given, llm, DecompositionPrompt.load())
    found = remove_repeated_facts(found)
    # Where a reply could not be read the sentence stands for its facts, unscored: none is lost, and
    # none made up.
    failed = [(fact.text, fact.failure) for fact in found.facts or () if fact.failure]
    assert all(text == "She lived." for text, _ in failed)
    return [fact.text for fact in found.facts or () if not fact.failure], (
        str(failed[0][1]) if failed else "ok"
    )


@shapes("verify")
def test_verdicts_of_factscores_prompt(row: dict[str, Any]) -> None:
    reply = reply_of(row)
    original, strict = (verifier.read_verification(reply, name) for name in ("original", "strict"))
    assert (original.prediction, original.status) == (row["prediction"], row["status"])
    stated = row.get("strict", row["prediction"])
    assert (strict.prediction, strict.status) == (stated, row["status"] if stated is None else "ok")
    assert row.get("says", "") in (original.raw or "")


@shapes("judge")
def test_verdicts_of_a_judge(row: dict[str, Any]) -> None:
    assert_verdict(LLMJudge(model="m", template=row["template"]), reply_of(row), row)


def assert_verdict(judge: LLMJudge, reply: ChatReply, row: dict[str, Any]) -> None:
    verdict: Verdict = judge._make_verdict("a", reply)
    assert (verdict.score, verdict.status) == (row["score"], row["status"])
    assert row.get("says", "") in (verdict.raw or "")


STATED = yaml.safe_load(
    (Path(__file__).parent / "golden" / "stated_verdicts.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize(
    ("how", "text", "verdict"),
    [(how, *row) for how, rows in STATED.items() if how != "words" for row in rows],
)
def test_verdicts_that_replies_state(
    how: str, text: str, verdict: int | None, tmp_path: Path
) -> None:
    if how == "saved":
        words = find_verdict_in_reply(text)
        assert (None if words is None else parse_label_word(words)) == verdict
        return
    if how == "verifier":
        read = verifier.read_verification(ChatReply("ok", text))
        assert (read.prediction, read.status) == (verdict, "unparsed" if verdict is None else "ok")
        return
    template = how
    if how == "json":
        path = tmp_path / "json.yaml"
        path.write_text("user: '{claim}'\npositive: ['true']\nnegative: ['false']\njson: SCORE\n")
        template = str(path)
    said = LLMJudge(model="m", template=template)._make_verdict("a", ChatReply("ok", text))
    assert (said.score, said.status) == (verdict, "unparsed" if verdict is None else "ok")
    # Whatever was cut off before its end is no verdict.
    cut = LLMJudge(model="m", template=template)._make_verdict("a", ChatReply("ok", text, "length"))
    assert (cut.score, cut.status) == (None, "unparsed")


@pytest.mark.parametrize(("positive", "negative", "text", "verdict"), STATED["words"])
def test_verdicts_in_a_templates_own_words(
    positive: list[str], negative: list[str], text: str, verdict: int | None
) -> None:
    assert (
        JudgePromptTemplate(user="{claim}", positive=positive, negative=negative).parse_score(text)
        == verdict
    )


@shapes("facts")
def test_facts_of_a_sentence(row: dict[str, Any]) -> None:
    assert decomposed(reply_of(row)) == (row["facts"], row["status"])


@shapes("response")
def test_sentences_of_a_response(row: dict[str, Any]) -> None:
    found = [
        is_boilerplate_reply_sentence(sentence, is_first_sentence=n == 0)
        for n, sentence in enumerate(split_for_decomposition(row["text"]))
    ]
    assert found == row["boilerplate"]


def test_what_a_response_only_thought_is_not_decomposed() -> None:
    llm = ScriptedLLM(lambda prompt: "- A fact that is long enough.")
    text = "<think>\nShe is a baker.\n</think>\nShe is old."
    (found,) = decompose([make_response("Ada", text)], llm, DecompositionPrompt.load())
    assert found.sentences == ("She is old.",)
    assert len(llm.prompts) == 1


def test_tokens_of_thoughts_are_no_score() -> None:
    true = ChatReplyToken("True", -0.1, {"True": -0.1, "False": -2.4})
    text = "<think>True</think>False"
    read = verifier.read_verification(ChatReply("ok", text, tokens=(true,)))
    assert (read.prediction, read.score) == (0, None)


def test_a_judges_options_decide_what_can_be_cut() -> None:
    reply = ChatReply("ok", "Yes", "length")
    for options, score in (
        ({}, None),
        ({"max_tokens": 1}, 1.0),
        ({"params": {"max_completion_tokens": 1}}, 1.0),
    ):
        verdict = LLMJudge(model="m", **options)._make_verdict("a", reply)  # type: ignore[arg-type]
        assert verdict.score == score


CUT = "[cut off (finish_reason: length): raise max_tokens]"
#: Status, prediction and reply of the verdicts beside 98 whole ones, and what a user is told.
TOLD = [
    (
        [("unparsed", None, CUT)] * 2,
        "gpt: 2 of 100 verdicts are unscored: 2 without an answer that can be read ('[cut off",
    ),
    ([("unparsed", None, "Hm")], "1 of 99 verdicts are unscored: 1 without an answer that can be"),
    (
        [("unparsed", None, '```json\n{"SCORE": "True"}\n```')],
        "`json: FIELD` with one of its fields (SCORE)",
    ),
    ([("unparsed", None, "这份文件没有提到这件事" * 20)], "('这份文件"),  # no blank to cut at
    ([("skipped", None, "no page")] * 3, "gpt: 3 of 101 verdicts are unscored: 3 skipped."),
    (
        [("error", None, "HTTP 503")] * 2 + [("error", None, "HTTP 400")],
        "3 failed (most often 'HTTP 503')",
    ),
    ([("error", None, "the claim has 900 tokens")], "1 failed ('the claim has 900 tokens')."),
    ([("unparsed", 1, "Hm")] * 2, "2 predictions are guesses"),
    (
        [("error", None, "HTTP 400: no")],
        "1 failed ('HTTP 400: no'). The server rejects 1 request and would do so again",
    ),
    (
        [
            ("error", None, "gave up after 6 attempts: HTTP 503"),
            ("skipped", None, "max_cost of 1.0"),
            ("refused", None, "No"),
        ],
        "3 of 101 verdicts are unscored: 1 failed ('gave up after 6 attempts: HTTP 503'),"
        " 1 refused ('No'), 1 skipped ('max_cost of 1.0'). To retry what failed, run the same"
        " command again.",
    ),
]


@pytest.mark.parametrize(("odd", "said"), TOLD)
def test_a_user_is_told_of_what_could_not_be_read(
    odd: list[tuple[str, int | None, str]], said: str
) -> None:
    rows = [*odd, *[("ok", 1, "True")] * 98]
    table = pd.DataFrame(rows, columns=["status", "prediction", "raw"]).assign(evaluator="gpt")
    table["claim_id"] = table.index.astype(str)
    (line,) = format_unscored_verdicts(validate_verdicts(table), ["gpt"], ["no page"])
    assert said in line
    may_pass = any(str(raw).startswith("gave up") for _, _, raw in odd)
    assert ("run the same command again" in line) == may_pass


# Any reply at all
# ------------------------------------------------------------

PIECES = st.sampled_from(
    """True|false|Yes|no|<think>|</think>|<tool_call>|[TOOL_CALLS]|- |1. |===|Note:|No facts
I'm sorry|{|}|["a"]|```|**|answer|can't assist|Here are|:|．""".replace("\n", "|").split("|")
) | st.sampled_from(
    ["|", "\n", "\x00", "\ud83d", "\ufeff", "\u202e", "<|channel|>final<|message|>"]
)
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=40).map("".join),
)
FINISH = st.sampled_from(["stop", "length", "tool_calls", "content_filter", None, "eos"])


@given(TEXTS, FINISH)
def test_any_reply_is_read_or_left_unscored(text: str, finish: str | None) -> None:
    reply = ChatReply("ok", text, finish)
    answer = extract_llm_answer(reply)
    assert answer.status in ("ok", "unparsed", "refused")
    assert answer.status != "ok" or answer.text.strip()
    assert answer.status == "ok" or answer.error or answer.text
    for parser in ("strict", "original"):
        read = verifier.read_verification(reply, parser)
        assert read.status == "ok" or read.score is None
        assert (read.prediction is None) <= (read.status != "ok")
        if finish == "length" or not text.strip():
            assert (read.prediction, read.status) == (None, "unparsed")
    for template in ("default", "reason", "short"):
        verdict = LLMJudge(model="m", template=template)._make_verdict("a", reply)
        assert (verdict.score is None) == (verdict.status != "ok")
    facts, says_none = parse_reply_facts(text)
    assert all(len(fact) > 3 and "\n" not in fact for fact in facts)
    assert not (facts and says_none)
    llm = ScriptedLLM(lambda prompt: reply)
    facts = (AtomicFact("One fact."), AtomicFact("Two facts."))
    paragraph = Response("r", "N", "P.", facts=facts)
    (groups,) = ask_for_groups(llm, [paragraph])
    assert groups in (None, (0, 0), (0, 1))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda x: (
            st.lists(x, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "choices",
                        "message",
                        "content",
                        "finish_reason",
                        "refusal",
                        "logprobs",
                        "usage",
                        "model",
                        "text",
                        "type",
                    ]
                ),
                x,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_any_body_is_a_reply_or_a_failure(body: Any) -> None:
    for wrapped in (
        body,
        {"choices": [{"message": body}]},
        {"choices": [body]},
        {"choices": [{"message": {"content": body}}]},
    ):
        answer = parse_chat_completion(json.dumps(wrapped))
        assert not isinstance(answer, ChatReply) or isinstance(answer.text, str)
