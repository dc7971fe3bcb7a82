"""Steps of the pipeline that are off by default: facts rewritten, verified within their statement, explained where they
are not supported, and asked for by short prompts."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from llm_server import FaultServer, Plan
from scripted_llm import ScriptedLLM

from factaudit.engines import unsupported_facts
from factaudit.engines.dfactscore.engine import DFactScorer
from factaudit.engines.factscore.engine import FactScorer
from factaudit.engines.factscore.experiment import run_factscore_experiment
from factaudit.engines.responses import AtomicFact, make_response
from factaudit.engines.rule_decomposer import RuleDecomposer
from factaudit.engines.unsupported_facts import parse_unsupported_fact_reply
from factaudit.errors import UsageError
from factaudit.knowledge.docdb import PASSAGE_SEPARATOR, DocDB
from factaudit.knowledge.retrieval import PassageRetriever
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.llm.chat_types import ChatReply, ChatReplyToken
from factaudit.llm.client import LLMClient
from factaudit.results import compare

PASSAGES = ["<s>Ada Fenn was a miller</s>", "She was born in Emberlow.", "Ada Fenn won the Quill. It was 1901."]
OUTPUT = "Ada Fenn was a miller. She won the Quill."
REWRITE = (
    "Rewrite the statement so that it can be understood without the text that it is from: put full names in place of "
    f"pronouns and of parts of names, and add nothing else.\n\nText: {OUTPUT}\n\nStatement: "
)
CONTEXT = (
    "Answer the question about Ada Fenn based on the given context.\n\n"
    "Title: Ada Fenn\nText: Ada Fenn won the Quill. It was 1901.\n\n"
)


@pytest.fixture
def knowledge(tmp_path: Path) -> Iterator[TopicLookup]:
    with sqlite3.connect(tmp_path / "wiki.db") as connection:
        connection.execute("CREATE TABLE documents (title PRIMARY KEY, text)")
        connection.execute("INSERT INTO documents VALUES (?, ?)", ("Ada Fenn", PASSAGE_SEPARATOR.join(PASSAGES)))
    connection.close()
    with DocDB(tmp_path / "wiki.db") as db:
        yield TopicLookup(db)


def answer(prompt: str) -> str | ChatReply:
    """A fact a sentence; a fact is true unless it says "wrong"; why not is told by its last word."""
    if prompt.endswith("\n"):
        return f"- {prompt.rstrip().rpartition(chr(10))[2].partition(': ')[2]}"
    if prompt.endswith("Rewritten statement:"):
        fact = prompt.rpartition("Statement: ")[2].partition("\n")[0]
        return ChatReply("error", error="down") if "down" in fact else fact.replace("She", "Ada Fenn")
    fact = prompt.rpartition("Input: ")[2].partition("\n")[0]
    if prompt.endswith("mentioned.\nOutput:"):
        return fact.rpartition("wrong: ")[2]
    return "False" if "wrong" in fact else "True"


def make_scorer(knowledge: TopicLookup, llm: Any, **options: Any) -> FactScorer:
    plain = {"decomposer": RuleDecomposer(), "retriever": PassageRetriever(k=1), "gamma": 0, "replicates": 0}
    return FactScorer(knowledge, llm, **{**plain, **options})


def test_a_fact_is_rewritten_with_the_whole_response_at_hand(knowledge: TopicLookup) -> None:
    llm = ScriptedLLM(answer)
    said = make_response("Ada Fenn", f"<think>Who is she?</think>{OUTPUT}")  # thoughts are no part of the response
    scored = make_scorer(knowledge, llm, decontextualize="response").score_responses([said])
    asked = [prompt for prompt in llm.prompts if "Quill." in prompt.rpartition("\n\n")[2]]
    assert asked == [
        f"{REWRITE}She won the Quill.\nRewritten statement:",
        f"{CONTEXT}Input: Ada Fenn won the Quill. True or False?\nOutput:",
    ]
    assert scored.claims["claim"].tolist() == ["Ada Fenn was a miller.", "Ada Fenn won the Quill."]
    assert scored.claims["atomic_fact"].tolist() == ["Ada Fenn was a miller.", "She won the Quill."]
    assert scored.summary["score"] == 1


def test_a_fact_is_verified_within_the_statement_that_stands_alone(knowledge: TopicLookup) -> None:
    llm = ScriptedLLM(answer)
    both = {"verifiers": ["retrieval", "no-context"], "decontextualize": "dndscore"}
    scored = make_scorer(knowledge, llm, **both).score_responses([make_response("Ada Fenn", OUTPUT)])
    within = (
        "The input is a part of this statement, which says whom and what it is about. Judge the input alone.\n"
        "Statement: Ada Fenn won the Quill.\n\n"
    )
    assert [prompt for prompt in llm.prompts if within in prompt] == [
        f"{CONTEXT}{within}Input: She won the Quill. True or False?\nOutput:",
        f"{within}She won the Quill. True or False?",
    ]
    assert scored.claims["claim"].tolist()[1] == "She won the Quill."
    assert scored.claims["fact_context"].tolist()[1] == "Ada Fenn won the Quill."


def test_a_fact_that_cannot_be_rewritten_stays_and_is_told_and_equal_ones_are_one(knowledge: TopicLookup) -> None:
    text = "Ada Fenn sang. She sang. She went down."
    scorer = make_scorer(knowledge, ScriptedLLM(answer), decontextualize="response")
    scored = scorer.score_responses([make_response("Ada Fenn", text)])
    assert scored.claims["claim"].tolist() == ["Ada Fenn sang.", "She went down."]
    assert scored.responses[0]["n_duplicates"] == 1
    assert scored.records[0].needs_retry
    assert "Of 2 facts, 1 could not be rewritten and stand in their own words." in scorer.sections(scored)[0]["text"]
    # Given facts are nobody's repetitions.
    given = replace(make_response("Ada Fenn", text), facts=(AtomicFact("Ada Fenn sang."), AtomicFact("She sang.")))
    assert len(scorer.score_responses([given]).claims) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"decontextualize": "dndscor"}, "unknown decontextualize 'dndscor' (did you mean 'dndscore'?)"),
        ({"decontextualize": "response", "llm": None, "verifiers": ["unigram"]}, "give an llm"),
        ({"decontextualize": "dndscore", "verifiers": ["unigram"]}, "an evaluator is given no context"),
        ({"prompts": "jason"}, "unknown prompts 'jason' (did you mean 'json'?)"),
        ({"explain_unsupported": True, "verifiers": ["no-context"]}, "asks the verifier 'retrieval': name it first"),
    ],
)
def test_what_cannot_work_is_said_at_once(knowledge: TopicLookup, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        make_scorer(knowledge, **{"llm": ScriptedLLM(answer), **options})


# --------------------------------------------------------------------------------------- why a fact is not supported

WRONG = ["wrong: Contradicted", "wrong: Supported", "wrong: Not mentioned", "wrong: Well"]


def test_a_fact_that_is_not_supported_is_put_to_the_whole_page(knowledge: TopicLookup, tmp_path: Path) -> None:
    texts = [make_response("Ada Fenn", f"Ada won {one}. Ada sang.", "a") for one in WRONG]
    llm = ScriptedLLM(answer)
    scorer = make_scorer(knowledge, llm, explain_unsupported=True)
    scored = scorer.score_responses(texts, journal=tmp_path)
    explained = [prompt for prompt in llm.prompts if prompt.endswith("mentioned.\nOutput:")]
    assert len(explained) == len(WRONG)  # of the facts that are supported nobody asks why
    assert explained[0] == (
        "Answer the question about Ada Fenn based on the given context.\n\nTitle: Ada Fenn\nText: Ada Fenn was a miller"
        "\n\nShe was born in Emberlow.\n\nAda Fenn won the Quill. It was 1901.\n\nInput: Ada won wrong: Contradicted.\n"
        "Does the context support the input, contradict it, or not mention it? Answer Supported, Contradicted or Not "
        "mentioned.\nOutput:"
    )
    reasons = ["contradicted", "not in the passages", "not in the page", "unexplained"]
    assert scored.claims["unsupported_reason"].dropna().tolist() == reasons
    assert scored.summary["unsupported_reasons"] == dict.fromkeys(sorted(reasons), 1)
    assert scorer.format_summary_lines(scored.summary)[1] == (
        "not supported 4: 1 contradicted, 1 not in the page, 1 not in the passages, 1 unexplained"
    )
    shown = next(one for one in scorer.sections(scored) if one["title"] == "Where to look first")
    assert "Ada won wrong: Contradicted. (contradicted)" in [line[3] for line in shown["table"]["rows"]]
    # Verdicts are those of a run that does not ask why, and a second run asks nothing.
    plain = make_scorer(knowledge, ScriptedLLM(answer)).score_responses(texts)
    assert plain.verdicts.equals(scored.verdicts)
    assert plain.claims.equals(scored.claims.drop(columns="unsupported_reason"))
    again = ScriptedLLM(answer)
    assert (
        make_scorer(knowledge, again, explain_unsupported=True)
        .score_responses(texts, journal=tmp_path)
        .claims.equals(scored.claims)
    )
    assert again.prompts == []


def test_a_model_at_odds_with_itself_and_a_page_that_is_too_long_explain_nothing(
    knowledge: TopicLookup, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [make_response("Ada Fenn", f"Ada won {one}.") for one in WRONG[:2]]
    whole = make_scorer(
        knowledge, ScriptedLLM(answer), explain_unsupported=True, retriever=PassageRetriever(k=3)
    ).score_responses(texts)
    assert whole.claims["unsupported_reason"].tolist() == ["contradicted", "unexplained"]
    monkeypatch.setattr(unsupported_facts, "MAX_PAGE_TOKENS", 5)
    llm = ScriptedLLM(answer)
    long = make_scorer(knowledge, llm, explain_unsupported=True).score_responses(texts)
    assert long.claims["unsupported_reason"].tolist() == ["unexplained"] * 2
    assert len(llm.prompts) == 2


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("contradicted", "contradicted"),
        ("**Not mentioned**: the text is silent", "not in the page"),
        ('{"answer": "Supported"}', "not in the passages"),
        ("Answer: Supported.", "not in the passages"),
        ("Not supported", "unexplained"),
        ("The input is contradicted", "unexplained"),
        ("", "unexplained"),
    ],
)
def test_a_reply_that_does_not_begin_with_an_answer_explains_nothing(reply: str, reason: str) -> None:
    assert parse_unsupported_fact_reply(ChatReply("ok", reply)) == reason
    assert parse_unsupported_fact_reply(ChatReply("error", reply)) == "unexplained"


# -------------------------------------------------------------------------------------------- prompts of small models

TASK = (
    "List the facts that the sentence states, each as a short sentence of its own. Use the words of the sentence, and "
    "add nothing."
)


@pytest.mark.parametrize("style", ["short", "json"])
def test_short_prompts_and_replies_in_json(style: str, knowledge: TopicLookup) -> None:
    sure = (ChatReplyToken("True", -0.1, {"False": -3.0}),)

    def reply(prompt: str) -> str | ChatReply:
        if prompt.endswith("\n"):
            return '{"facts": ["Ada won."]}' if style == "json" else "- Ada won."
        return ChatReply("ok", '{"answer": "True"}' if style == "json" else "True", tokens=sure)

    llm = ScriptedLLM(reply)
    scorer = make_scorer(knowledge, llm, decomposer=None, prompts=style)
    scored = scorer.score_responses([make_response("Ada Fenn", "Ada won.")])
    assert scored.summary["score"] == 1
    # Tokens that are not those of the reply, as llama.cpp gives them beside a grammar, make no score.
    assert scored.verdicts["score"].isna().tolist() == [style == "json"]
    form = ' Reply in JSON, with the key "facts".' if style == "json" else ' Write one fact a line, after "- ".'
    assert llm.prompts[0] == f"{TASK}{form}\n\nSentence: Ada won.\n"
    assert llm.prompts[1].endswith("\n\nInput: Ada won. True or False?\nOutput:")
    schemas = [request.params.get("response_format") for request in llm.requests]
    if style == "short":
        assert schemas == [None, None]
    else:
        properties = [one["json_schema"]["schema"]["properties"] for one in schemas if one]
        assert properties == [
            {"facts": {"type": "array", "items": {"type": "string"}, "maxItems": 24}},
            {"answer": {"type": "string", "enum": ["True", "False"]}},
        ]
    plain = make_scorer(knowledge, ScriptedLLM(reply), decomposer=None)
    assert plain.signatures != scorer.signatures


@pytest.mark.local
@pytest.mark.slow
@pytest.mark.parametrize("style", ["short", "json"])
def test_the_local_model_follows_the_prompts_of_small_models(
    style: str, knowledge: TopicLookup, tmp_path: Path
) -> None:
    client = LLMClient("smollm2", base_url="local", timeout=300, cache=tmp_path / "c.sqlite")
    scorer = make_scorer(knowledge, client, decomposer=None, prompts=style, max_facts=2)
    scored = scorer.score_responses([make_response("Ada Fenn", "Ada Fenn was a miller in Emberlow.")])
    (sentence,) = scored.responses[0]["sentences"]
    assert sentence["status"] == "ok"
    if style == "json":  # whatever 135 million parameters say, the grammar keeps it in its form
        assert 1 <= len(json.loads(sentence["reply"])["facts"]) <= 24
        assert {json.loads(raw)["answer"] for raw in scored.verdicts["raw"]} <= {"True", "False"}
    else:  # in the words of the sentence; of a demonstration there is none
        (row,) = compare(scored.claims, scored.verdicts, audits=["decomposition"]).rows("decomposition")
        assert (row["leaked"], row["invented"]) == (0, 0)


# --------------------------------------------------------------------------------------------------------- variants


def test_what_these_steps_cost_is_foretold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    people = ("Ada Fenn", "Tobin Reyce", "Maren Holt", "Iver Quill")
    rows = [{"topic": one, "output": f"{one} was a miller. She won wrong: Supported. She sang."} for one in people]
    pages = [{"title": one, "text": f"{one} was a miller of Emberlow, known for work. " * 80} for one in people]
    for name, lines in (("texts", rows), ("pages", pages)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines), encoding="utf-8")

    def plan(body: dict[str, Any], attempt: int) -> Plan:
        told = answer(body["messages"][-1]["content"])
        return Plan(text=told if isinstance(told, str) else "")

    with FaultServer(plan=plan) as server:
        llm = {
            "model": "m",
            "base_url": server.url,
            "cache": str(tmp_path / "c"),
            "prices": {"input": 900, "output": 3600},
        }
        block = {"responses": str(tmp_path / "texts.jsonl"), "knowledge": str(tmp_path / "pages.jsonl"), "llm": llm}
        block |= {"logprobs": False, "k": 1, "explain_unsupported": True, "passage_tokens": 64}
        block |= {"variants": {"decontextualize": [True, "response", "dndscore"], "prompts": ["short"]}}
        (tmp_path / "vary.json").write_text(json.dumps({"factscore": block, "replicates": 0}), encoding="utf-8")
        said: list[str] = []
        results = run_factscore_experiment(tmp_path / "vary.json", tmp_path / "run", say=said.append)
        assert set(server.paid.values()) == {1}
    (section,) = [one for one in results.sections if one["title"] == "What the variants cost"]
    costs = [
        (name, float(foretold), float(made))
        for name, foretold, made in re.findall(
            r"(\S+): foretold .*?\$([\d.]+)\), made .*?\$([\d.]+)\)", "\n".join(section["text"])
        )
    ]
    print(costs)
    assert [name for name, *_ in costs] == [
        "decontextualize=true",
        "decontextualize=response",
        "decontextualize=dndscore",
        "prompts=short",
    ]
    for name, foretold, made in costs:
        assert foretold == pytest.approx(made, rel=0.05), name
        assert made > 0, name
    assert "not supported 4: 4 not in the passages" in said


def test_groups_are_of_facts_that_were_rewritten(knowledge: TopicLookup) -> None:
    scorer = DFactScorer(
        knowledge,
        ScriptedLLM(answer),
        decomposer=RuleDecomposer(),
        groupers=("one-group",),
        decontextualize="response",
        replicates=0,
    )
    scored = scorer.score_responses([make_response("Ada Fenn", OUTPUT)])
    assert [fact["text"] for fact in scored.responses[0]["facts"]] == [
        "Ada Fenn was a miller.",
        "Ada Fenn won the Quill.",
    ]
