"""The engine over a scripted LLM: what it asks, what it makes of the answers, what it keeps, how it resumes."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_llm import ScriptedLLM, answer_two_facts

from factaudit.engines.factscore import FactScorer
from factaudit.engines.nonparametric import NonparametricModel
from factaudit.engines.responses import AtomicFact, Response, make_response, read_response_file
from factaudit.errors import FactauditError, InputError, UsageError
from factaudit.knowledge.docdb import PASSAGE_SEPARATOR, DocDB
from factaudit.knowledge.retrieval import PassageRetriever
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.llm.chat_types import ChatReply, ChatReplyToken
from factaudit.tables import validate_claims, validate_verdicts

PAGES = {
    "Ada Fenn": ["<s>Ada Fenn was a miller</s>", "She was born in Emberlow.", "She won the Quill in 1901."],
    "Tobin Reyce": ["Tobin Reyce is a painter."],
}


@pytest.fixture
def knowledge(tmp_path: Path) -> Iterator[TopicLookup]:
    with sqlite3.connect(tmp_path / "wiki.db") as connection:
        connection.execute("CREATE TABLE documents (title PRIMARY KEY, text)")
        rows = [(title, PASSAGE_SEPARATOR.join(passages)) for title, passages in PAGES.items()]
        connection.executemany("INSERT INTO documents VALUES (?, ?)", rows)
    connection.close()
    with DocDB(tmp_path / "wiki.db") as db:
        yield TopicLookup(db)


def scorer(knowledge: TopicLookup, llm: ScriptedLLM | None = None, **options: Any) -> FactScorer:
    return FactScorer(knowledge, llm or ScriptedLLM(answer_two_facts), **{"replicates": 50, **options})


# -------------------------------------------------------------------------------- what is asked


def test_the_calls_of_one_response_byte_for_byte(knowledge: TopicLookup, tmp_path: Path) -> None:
    demos = tmp_path / "demons.json"
    demos.write_text(json.dumps({"She sang.": ["She sang."]}))
    llm = ScriptedLLM(answer_two_facts)
    scorer(knowledge, llm, demos=demos, retriever=PassageRetriever(k=2)).score(["Ada Fenn"], ["Ada won the Quill."])
    task = "Please breakdown the following sentence into independent facts: "
    shown = f"{task}She sang.\n- She sang.\n\n"
    context = (
        "Answer the question about Ada Fenn based on the given context.\n\n"
        "Title: Ada Fenn\nText: She won the Quill in 1901.\n\nTitle: Ada Fenn\nText: Ada Fenn was a miller.\n\n"
    )
    assert llm.prompts == [
        f"{shown}{shown}{task}Ada won the Quill.\n",
        f"{context}Input: Ada won the Quill. True or False?\nOutput:",
        f"{context}Input: Ada won the Quill indeed. True or False?\nOutput:",
    ]
    assert llm.requests[0].params == {"temperature": 0.0, "max_tokens": 800}
    assert llm.requests[1].params == {"temperature": 0.0, "max_tokens": 50, "logprobs": True, "top_logprobs": 5}


def test_facts_without_pronouns_are_asked_for_in_the_words_of_mf(knowledge: TopicLookup, tmp_path: Path) -> None:
    demos = tmp_path / "demons.json"
    demos.write_text(json.dumps({"She sang.": ["Ada sang."]}))
    llm = ScriptedLLM(lambda prompt: "- Ada won." if prompt.startswith("Please") else "True")
    plain, asked = (scorer(knowledge, llm, demos=demos, decontextualize=one) for one in (False, True))
    asked.score(["Ada Fenn"], ["She won."])
    task = (
        "Please breakdown the following sentence into independent facts. When possible, decontextualize the fact such "
        "that the subject in the fact is a proper noun or noun instead of a pronoun: "
    )
    shown = f"{task}She sang.\n- Ada sang.\n\n"
    assert llm.prompts[0] == f"{shown}{shown}{task}She won.\n"
    assert llm.prompts[1].endswith("Input: Ada won. True or False?\nOutput:")
    (name,) = plain.names
    assert plain.signatures[name] != asked.signatures[name]


def test_no_context_asks_for_the_fact_alone_and_needs_no_knowledge() -> None:
    llm = ScriptedLLM(answer_two_facts)
    result = FactScorer(None, llm, verifiers=["no-context"]).score(["Anybody"], ["She won."])
    assert llm.prompts[1:] == ["She won. True or False?", "She won indeed. True or False?"]
    assert result["init_score"] == 1


def test_all_calls_of_a_step_go_out_at_once(knowledge: TopicLookup) -> None:
    llm = ScriptedLLM(answer_two_facts, together=36)
    topics = ["Ada Fenn"] * 12
    outputs = [f"It is {i}. It was {i}. It will be {i}." for i in range(12)]
    scorer(knowledge, llm).score(topics, outputs)
    assert llm.most_under_way >= 36


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
    shown = scorer(knowledge, llm, prompts=style, retriever=PassageRetriever(k=1), gamma=0)
    scored = shown.score_responses([make_response("Ada Fenn", "Ada won.")])
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
    plain = scorer(knowledge, ScriptedLLM(reply))
    assert plain.signatures != shown.signatures


# -------------------------------------------------------------------------------- what comes of it


def test_the_tables_rows_and_summary_fit_together(knowledge: TopicLookup) -> None:
    made = [
        make_response("Ada Fenn", "Ada was a miller. Ada was wrong.", "one"),
        make_response("Tobin Reyce", "I'm sorry, I know nothing.", "one"),
        make_response("Tobin Reyce", "Tobin paints.", "two"),
    ]
    scored = scorer(knowledge, gamma=0).score_responses(made)
    validate_claims(scored.claims)
    validate_verdicts(scored.verdicts, claims=scored.claims)
    # A response that abstained is a row without a claim.
    assert scored.claims["claim_id"].tolist() == [
        *(f"{made[0].response_id}.{i}" for i in range(4)),
        f"{made[1].response_id}.-",
        *(f"{made[2].response_id}.{i}" for i in range(2)),
    ]
    assert scored.claims["abstained"].astype(object).where(scored.claims["abstained"].notna(), None).tolist() == [
        *([None] * 4),
        1,
        *([None] * 2),
    ]
    assert scored.claims["claim"].tolist()[:2] == ["Ada was a miller.", "Ada was a miller indeed."]
    assert scored.claims["sentence"].tolist()[1] == "Ada was a miller."
    assert set(scored.claims["doc_id"].dropna()) == {"Ada Fenn", "Tobin Reyce"}
    assert scored.claims["doc"].iloc[5] == "Tobin Reyce is a painter."
    assert "<s>" not in "".join(scored.claims["doc"].dropna())
    assert scored.verdicts["prediction"].tolist() == [1, 1, 0, 0, 1, 1]
    assert set(scored.verdicts["evaluator"]) == {"retrieval+scripted"}
    summary = scored.summary
    assert (summary["score"], summary["init_score"]) == (0.75, 0.75)
    assert summary["respond_ratio"] == 2 / 3
    assert (summary["n_facts"], summary["n_supported"], summary["n_unparsed"]) == (6, 4, 0)
    assert summary["num_facts_per_response"] == 3
    assert [(one["system"], one["score"]) for one in summary["systems"]] == [("one", 0.5), ("two", 1.0)]
    assert [row["abstained"] for row in scored.responses] == [False, True, False]
    json.dumps([scored.responses, summary], allow_nan=False)


def answer_seventy_facts(prompt: str) -> str:
    return "\n".join(f"- Fact {i}." for i in range(70)) if prompt.startswith("Please") else "True"


def break_off(prompt: str) -> str | ChatReply:
    return ChatReply("ok", "- It rain", "length") if prompt.startswith("Please") else "True"


@pytest.mark.parametrize(
    ("output", "answer", "n_calls", "row"),
    [
        ("It rained. It rained.", answer_two_facts, 4, {"n_facts": 2, "n_duplicates": 2}),
        ("It rained.", answer_seventy_facts, 51, {"n_facts": 50, "n_cut": 20}),
        ("It rained.", answer_two_facts, 3, {"init_score": 1.0, "score": math.exp(1 - 10 / 2)}),
        ("It rained.", break_off, 1, {"n_truncated_sentences": 1}),
        ("", answer_two_facts, 0, {"reason": "abstained", "score": None, "abstained": True}),
        ("Sure, here is her life.", answer_two_facts, 0, {"reason": "no fact", "score": None, "abstained": False}),
    ],
    ids=["repeated", "beyond the cap", "penalty", "cut off", "empty", "boilerplate"],
)
def test_what_a_text_comes_to(
    knowledge: TopicLookup, output: str, answer: Any, n_calls: int, row: dict[str, Any]
) -> None:
    llm = ScriptedLLM(answer)
    (found,) = scorer(knowledge, llm).score(["Ada Fenn"], [output])["responses"]
    assert {key: found[key] for key in row} == pytest.approx(row)
    assert len(llm.prompts) == n_calls


def test_a_topic_without_a_page_is_not_paid_for_and_leaves_its_response_unscored(knowledge: TopicLookup) -> None:
    llm = ScriptedLLM(answer_two_facts)
    scored = scorer(knowledge, llm, verifiers=["retrieval", "rouge2"], gamma=0).score_responses(
        [make_response("Nobody", "It rained. It rained again."), make_response("Ada Fenn", "Ada was a miller.")]
    )
    assert not [prompt for prompt in llm.prompts if "rained" in prompt.rpartition("sentence into")[2]]
    row = scored.responses[0]
    assert (row["n_facts"], row["n_failed_sentences"], row["score"]) == (2, 2, None)
    assert row["reason"] == "no page for the topic 'Nobody' in the knowledge source"
    assert {one["error"] for one in row["sentences"]} == {row["reason"]}
    summary = scored.summary
    assert (summary["n_scored"], summary["n_unscored_responses"], summary["n_without_facts"]) == (1, 1, 0)
    assert summary["respond_ratio"] == 1
    share = scored.responses[1]["score"]
    assert (summary["score_min"], summary["score_max"]) == (share / 2, (share + 1) / 2)


def test_failed_calls_are_counted_and_bounded_never_dropped(knowledge: TopicLookup) -> None:
    def flaky(prompt: str) -> str | ChatReply:
        if prompt.endswith("facts: It burned.\n"):
            return ChatReply("error", error="gave up")
        if "rained indeed" in prompt:
            return ChatReply("refused", "I won't say")
        return answer_two_facts(prompt)

    llm = ScriptedLLM(flaky)
    row = scorer(knowledge, llm, gamma=0).score(["Ada Fenn"], ["It rained. It burned."])
    response = row["responses"][0]
    # The sentence that failed stands for its facts; what has no verdict is not supported, but in the bounds.
    assert (response["n_facts"], response["n_unscored"], response["n_failed_sentences"]) == (3, 2, 1)
    assert (response["init_score"], response["init_score_min"], response["init_score_max"]) == (1 / 3, 1 / 3, 1)
    assert response["sentences"][1]["error"] == "gave up"
    assert [fact["text"] for fact in response["sentences"][1]["facts"]] == ["It burned."]
    facts = [fact for sentence in response["sentences"] for fact in sentence["facts"]]
    statuses = [fact["verdicts"]["retrieval+scripted"]["status"] for fact in facts]
    assert statuses == ["ok", "refused", "error"]
    assert not any("It burned. True or False?" in prompt for prompt in llm.prompts)


@pytest.mark.parametrize(
    ("reply", "original", "strict"),
    [
        ("Certainly", (1.0, 0, 2), (0.0, 2, 2)),
        ("False. It is not true that this happened.", (1.0, 0, 2), (0.0, 0, 0)),
        ("True. There is nothing false here.", (0.0, 0, 2), (1.0, 0, 0)),
        ("Not true.", (1.0, 0, 2), (0.0, 0, 0)),
        ("The context says she was a painter.", (1.0, 0, 2), (0.0, 2, 2)),
        ("False.", (0.0, 0, 0), (0.0, 0, 0)),
    ],
)
def test_replies_that_do_not_clearly_state_an_answer_are_counted_under_both_parsers(
    knowledge: TopicLookup, reply: str, original: tuple[float, int, int], strict: tuple[float, int, int]
) -> None:
    llm = ScriptedLLM(lambda p: answer_two_facts(p) if p.startswith("Please") else reply)
    for parser, expected in (("original", original), ("strict", strict)):
        result = scorer(knowledge, llm, parser=parser).score(["Ada Fenn"], ["It rained."])
        assert (result["init_score"], result["n_unscored"], result["n_unparsed"]) == expected
        # The published heuristic's guesses leave the whole range open.
        is_open = expected[2] > 0
        assert (result["init_score_min"], result["init_score_max"]) == ((0, 1) if is_open else (expected[0],) * 2)


def test_token_probabilities_stand_beside_the_verdict(knowledge: TopicLookup) -> None:
    def sure(prompt: str) -> str | ChatReply:
        return (
            answer_two_facts(prompt)
            if prompt.startswith("Please")
            else ChatReply("ok", "True", tokens=(ChatReplyToken("True", -0.1),))
        )

    scored = scorer(knowledge, ScriptedLLM(sure)).score_responses([make_response("Ada Fenn", "It rained.")])
    assert scored.verdicts["score"].tolist() == [1.0, 1.0]
    off = ScriptedLLM(sure)
    scorer(knowledge, off, logprobs=False).score(["Ada Fenn"], ["It rained."])
    assert off.requests[-1].params == {"temperature": 0.0, "max_tokens": 50}


# -------------------------------------------------------------------------------- given facts, verifiers


def given(topic: str, *facts: tuple[str, str | None]) -> Response:
    return Response(topic, topic, "All.", "human", tuple(AtomicFact(text, label) for text, label in facts))


def test_given_facts_need_no_llm_and_any_evaluator_verifies(knowledge: TopicLookup) -> None:
    made = [given("Ada Fenn", ("She was born in Emberlow.", "S"), ("He likes tea.", "NS"), ("It is so.", "IR"))]
    scored = FactScorer(knowledge, verifiers=["rouge2", "unigram", "always-no"], gamma=0).score_responses(made)
    assert scored.claims["label"].astype(object).where(scored.claims["label"].notna(), None).tolist() == [1, 0, None]
    assert list(dict.fromkeys(scored.verdicts["evaluator"])) == ["rouge2", "unigram", "always-no"]
    own = {name: scored.verdicts[scored.verdicts["evaluator"] == name] for name in ("rouge2", "always-no")}
    assert own["rouge2"]["prediction"].tolist() == [1, 0, 0]
    assert own["rouge2"]["claim_id"].tolist() == scored.claims["claim_id"].tolist()
    assert scored.summary["evaluator"] == "rouge2"
    assert [one["score"] for one in scored.summary["evaluators"]][::2] == [1 / 3, 0]
    assert scored.responses[0]["evaluators"]["always-no"]["n_supported"] == 0
    strict = FactScorer(knowledge, verifiers=["rouge2"], irrelevant="unsupported").score_responses(made)
    assert strict.claims["label"].tolist() == [1, 0, 0]


class Gate(NonparametricModel):
    """Stands in for the masked language model."""

    def compute_fact_probability(self, page: object, topic: str, fact: str) -> float | None:
        return None if "burned" in fact else 0.2 if "indeed" in fact else 0.4


def test_the_nonparametric_probability_is_combined_by_and(knowledge: TopicLookup) -> None:
    gate: Any = Gate()
    scored = scorer(knowledge, npm=gate).score_responses(
        [make_response("Ada Fenn", "It rained. It was wrong. It burned.")]
    )
    assert scored.verdicts["prediction"].tolist() == [1, 0, 0, 0, 1, 1]
    assert scored.verdicts["raw"].tolist()[:3] == ["True\n[npm 0.4000]", "True\n[npm 0.2000]", "False"]
    assert scored.verdicts["raw"].iloc[4] == "True\n[npm undefined]"
    assert set(scored.verdicts["evaluator"]) == {"retrieval+scripted+npm"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"llm": None}, "the verifier 'retrieval' needs an LLM"),
        ({"parser": "orginal"}, "parser: expected 'strict' or 'original', found 'orginal'"),
        ({"abstain": "originl"}, "abstain: expected 'declines'"),
        ({"verifiers": ["rouge22"]}, "unknown evaluator 'rouge22'"),
        ({"verifiers": []}, "needs a verifier"),
        ({"verifiers": ["rouge2", "rouge2"]}, "rouge2"),
        ({"gamma": -1}, "gamma: expected greater than or equal to 0"),
        ({"max_fact": 9}, "unknown key 'max_fact'"),
        ({"verifiers": ["rouge2"], "npm": Gate()}, "nonparametric probability is combined with"),
    ],
)
def test_wrong_options_are_refused_at_once(knowledge: TopicLookup, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        FactScorer(knowledge, **{"llm": ScriptedLLM(answer_two_facts), **options})


# -------------------------------------------------------------------------------- Python, conversations


# -------------------------------------------------------------------------------- killed and resumed


def test_an_llm_that_cannot_work_stops_the_run_with_its_own_error(knowledge: TopicLookup) -> None:
    def broken(prompt: str) -> str:
        raise FactauditError("no key")

    with pytest.raises(FactauditError, match=r"^no key$"):
        scorer(knowledge, ScriptedLLM(broken)).score(["Ada Fenn"], ["It rained."])


# -------------------------------------------------------------------------------- reading responses


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_responses_are_read_with_system_and_stable_ids(tmp_path: Path) -> None:
    path = write(
        tmp_path / "bios.jsonl",
        {"topic": "A", "output": "x"},
        {"topic": "A", "output": "x"},
        {"topic": "B", "output": "", "system": "gpt", "response_id": 7},
    )
    one, two, three = read_response_file(path)
    assert one.system == two.system == "bios"
    assert one.response_id != two.response_id
    assert (three.system, three.response_id, three.output) == ("gpt", "7", "")
    assert read_response_file(path)[0] == one
    assert read_response_file(path, system="mine", limit=1)[0].system == "mine"


def test_all_that_is_wrong_with_a_file_of_responses_is_said(tmp_path: Path) -> None:
    path = write(
        tmp_path / "r.jsonl",
        {"output": "x"},
        {"topic": "A", "output": None},
        {"topic": "A", "output": "x", "annotations": "S"},
        {"topic": "A", "output": "x", "facts": ["a", 3]},
        {"topic": "A", "output": "x", "facts": [{"text": "a", "label": "yes"}]},
        {"topic": "A", "output": "x", "response_id": "1"},
        {"topic": "A", "output": "y", "response_id": "1"},
    )
    with pytest.raises(InputError) as caught:
        read_response_file(path)
    said = str(caught.value)
    for part in (
        "6 problems",
        "line 1, column 'topic': the field is missing",
        "line 2, column 'output': expected a valid string, found None",
        "line 3, column 'annotations': expected a valid list, found 'S'",
        "line 4, column 'facts[1]': expected a dictionary",
        "line 5, column 'facts[0].label': expected 'S', 'NS' or 'IR', found 'yes'",
        "the response_id '1' stands 2 times",
    ):
        assert part in said
    (tmp_path / "cut.jsonl").write_text('{"topic": "A", "output": "x"}\n{"topic": "A", "out')
    with pytest.raises(InputError, match="line 2: the line is cut off"):
        read_response_file(tmp_path / "cut.jsonl")
    with pytest.raises(InputError, match="expected annotations, to take the human facts from"):
        read_response_file(write(tmp_path / "plain.jsonl", {"topic": "A", "output": "x"}), facts="human")


def test_facts_from_a_file_by_id_or_line_by_line(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", {"topic": "A", "output": "x", "response_id": "1"}, {"topic": "B", "output": "y"})
    lines = write(tmp_path / "f.jsonl", {"facts": ["a"]}, {"facts": [{"text": "b", "label": "NS"}]})
    found = read_response_file(path, facts=lines)
    assert [one.facts for one in found] == [(AtomicFact("a"),), (AtomicFact("b", "NS"),)]
    ids = write(
        tmp_path / "i.jsonl", {"response_id": found[1].response_id, "facts": []}, {"response_id": 1, "facts": ["a"]}
    )
    assert read_response_file(path, facts=ids)[0].facts == (AtomicFact("a"),)
    with pytest.raises(InputError, match="expected a line per response: 2, found 1"):
        read_response_file(path, facts=write(tmp_path / "one.jsonl", {"facts": ["a"]}))
    with pytest.raises(InputError, match="no facts for the response_id '1'"):
        read_response_file(path, facts=write(tmp_path / "x.jsonl", {"response_id": "9", "facts": ["a"]}))
