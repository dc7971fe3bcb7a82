"""The prompts for small models: short ones, and replies that the server keeps in JSON."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_llm import ScriptedLLM

from factaudit.engines.factscore import FactScorer
from factaudit.engines.responses import make_response
from factaudit.knowledge.docdb import PASSAGE_SEPARATOR, DocDB
from factaudit.knowledge.retrieval import PassageRetriever
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.llm.chat_types import ChatReply, ChatReplyToken

PASSAGES = ["<s>Ada Fenn was a miller</s>", "She was born in Emberlow.", "Ada Fenn won the Quill. It was 1901."]


@pytest.fixture
def knowledge(tmp_path: Path) -> Iterator[TopicLookup]:
    with sqlite3.connect(tmp_path / "wiki.db") as connection:
        connection.execute("CREATE TABLE documents (title PRIMARY KEY, text)")
        connection.execute("INSERT INTO documents VALUES (?, ?)", ("Ada Fenn", PASSAGE_SEPARATOR.join(PASSAGES)))
    connection.close()
    with DocDB(tmp_path / "wiki.db") as db:
        yield TopicLookup(db)


def make_scorer(knowledge: TopicLookup, llm: Any, **options: Any) -> FactScorer:
    plain = {"retriever": PassageRetriever(k=1), "gamma": 0, "replicates": 0}
    return FactScorer(knowledge, llm, **{**plain, **options})


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
    scorer = make_scorer(knowledge, llm, prompts=style)
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
    plain = make_scorer(knowledge, ScriptedLLM(reply))
    assert plain.signatures != scorer.signatures
