"""FActScore over a scripted LLM: what it asks, what it makes of the answers, and how responses are
read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_llm import (
    AtomicFact,
    ChatReply,
    ChatReplyToken,
    Response,
    ScriptedLLM,
    answer_two_facts,
    make_models,
    make_response,
)

import factaudit
from factaudit import Claim, FactauditError, InputError, UsageError, Verdict
from factaudit.engines.factscore import factscore
from factaudit.engines.pipeline import FactScoreSettings, open_knowledge_source
from factaudit.engines.responses import read_responses

PAGES = {
    "Ada Fenn": [
        "<s>Ada Fenn was a miller</s>",
        "She was born in Emberlow.",
        "She won the Quill in 1901.",
    ],
    "Tobin Reyce": ["Tobin Reyce is a painter."],
}


@pytest.fixture
def knowledge(tmp_path):
    rows = [{"title": title, "passages": passages} for title, passages in PAGES.items()]
    return open_knowledge_source(write(tmp_path / "pages.jsonl", *rows), out=tmp_path)


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def score(knowledge, llm, *outputs, **options):
    responses = [make_response("Ada Fenn", output, "s", at) for at, output in enumerate(outputs)]
    return factscore(responses, make_models(FactScoreSettings, knowledge, llm, **options))


def score_given(knowledge, given, llm=None, **options):
    return factscore(given, make_models(FactScoreSettings, knowledge, llm, **options))


def audit(scored, gamma=0):
    """The audit's row of all responses by the first verifier."""
    found = factaudit.compare(
        scored.claims, scored.verdicts, audits=[{"factscore": {"gamma": gamma}}], replicates=0
    )
    return found.audits["factscore"][0]


# ---- what is asked


@pytest.mark.parametrize("decontextualize", [False, True])
def test_the_calls_of_one_response_byte_for_byte(knowledge, tmp_path, decontextualize):
    demos = str(write(tmp_path / "demons.json", {"She sang.": ["She sang."]}))
    llm = ScriptedLLM(answer_two_facts)
    options = {"demos": demos, "decontextualize": decontextualize, "k": 2}
    score(knowledge, llm, "Ada won the Quill.", **options)
    more = (
        ". When possible, decontextualize the fact such that the subject in the fact is a proper"
        " noun or noun instead of a pronoun"
    )
    task = (
        "Please breakdown the following sentence into independent"
        f" facts{more if decontextualize else ''}: "
    )
    shown = f"{task}She sang.\n- She sang.\n\n"
    context = (
        "Answer the question about Ada Fenn based on the given context.\n\nTitle: Ada Fenn\nText:"
        " She won the Quill in 1901.\n\nTitle: Ada Fenn\nText: Ada Fenn was a miller.\n\n"
    )
    assert llm.prompts == [
        f"{shown}{shown}{task}Ada won the Quill.\n",
        f"{context}Input: Ada won the Quill. True or False?\nOutput:",
        f"{context}Input: Ada won the Quill indeed. True or False?\nOutput:",
    ]
    assert llm.requests[0].params == {"temperature": 0.0, "max_tokens": 800}
    assert llm.requests[1].params == {
        "temperature": 0.0,
        "max_tokens": 50,
        "logprobs": True,
        "top_logprobs": 5,
    }


def test_no_context_asks_for_the_fact_alone_and_needs_no_knowledge():
    llm = ScriptedLLM(answer_two_facts)
    scored = score(None, llm, "She won.", verifiers=["no-context"])
    assert llm.prompts[1:] == ["She won. True or False?", "She won indeed. True or False?"]
    assert (scored.verdicts["prediction"].tolist(), scored.notes) == ([1, 1], [])
    with pytest.raises(UsageError, match="needs a knowledge source"):
        score(None, llm, "She won.", verifiers=["no-context", "retrieval"])
    assert len(llm.prompts) == 3


def test_all_calls_of_a_step_go_out_at_once(knowledge):
    llm = ScriptedLLM(answer_two_facts, together=36)
    score(knowledge, llm, *[f"It is {i}. It was {i}. It will be {i}." for i in range(12)])
    assert llm.most_under_way >= 36


# ---- what comes of it


def test_the_tables_are_facts_with_their_passages_and_verdicts(knowledge):
    made = [
        make_response("Ada Fenn", "Ada was a miller. Ada was wrong.", "one"),
        make_response("Tobin Reyce", "I'm sorry, I know nothing.", "one"),
        make_response("Tobin Reyce", "Tobin paints.", "two"),
    ]
    scored = score_given(knowledge, made, ScriptedLLM(answer_two_facts))
    claims = scored.claims.astype(object).where(scored.claims.notna(), None)
    # A response that abstained is a row without a claim.
    assert claims["claim_id"].tolist() == [
        *(f"{made[0].response_id}.{i}" for i in range(4)),
        f"{made[1].response_id}.-",
        *(f"{made[2].response_id}.{i}" for i in range(2)),
    ]
    assert claims["abstained"].tolist() == [*([None] * 4), 1, *([None] * 2)]
    assert claims["claim"].tolist()[:2] == ["Ada was a miller.", "Ada was a miller indeed."]
    assert claims["sentence"].tolist()[1] == "Ada was a miller."
    assert claims["doc_id"].tolist() == [*(["Ada Fenn"] * 4), None, *(["Tobin Reyce"] * 2)]
    assert (
        claims["doc"].iloc[0]
        == "Ada Fenn was a miller\n\nShe was born in Emberlow.\n\nShe won the Quill in 1901."
    )
    assert scored.verdicts["prediction"].tolist() == [1, 1, 0, 0, 1, 1]
    assert set(scored.verdicts["evaluator"]) == {"retrieval+scripted"}
    row = audit(scored)
    assert (row["score"], row["respond_ratio"], row["num_facts_per_response"]) == (0.75, 2 / 3, 3)


@pytest.mark.parametrize(
    ("output", "answer", "n_calls", "n_facts", "note"),
    [
        ("It rained. It rained.", answer_two_facts, 4, 2, "left out: 2 repeated facts"),
        ("", answer_two_facts, 0, 0, None),
        ("Sure, here is her life.", answer_two_facts, 0, 0, "left out: 1 line of layout or talk"),
    ],
    ids=["repeated", "empty", "talk"],
)
def test_what_is_left_out_of_a_text_is_said(knowledge, output, answer, n_calls, n_facts, note):
    llm = ScriptedLLM(answer)
    scored = score(knowledge, llm, output)
    assert len(llm.prompts) == n_calls
    assert scored.claims["claim"].notna().sum() == len(scored.verdicts) == n_facts
    assert [one.startswith(note or "-") for one in scored.notes] == ([True] if note else [])


def test_a_topic_without_a_page_is_not_paid_for_and_leaves_its_response_unscored(
    knowledge,
):
    llm = ScriptedLLM(answer_two_facts)
    given = [
        make_response("Nobody", "It rained. It rained again."),
        make_response("Ada Fenn", "Ada was a miller."),
    ]
    scored = score_given(knowledge, given, llm, verifiers=["retrieval", "rouge2"])
    assert not [
        prompt for prompt in llm.prompts if "rained" in prompt.rpartition("sentence into")[2]
    ]
    lost = scored.verdicts[scored.verdicts["status"] == "skipped"]
    reason = "no page for the topic 'Nobody' in the knowledge source"
    assert lost["raw"].tolist() == [f"the sentence was not decomposed: {reason}"] * 4
    assert scored.notes == [reason]
    row = audit(scored)
    assert (row["n_scored"], row["n_unscored_responses"], row["n_failed_sentences"]) == (1, 1, 2)
    assert (row["respond_ratio"], row["score_min"], row["score_max"]) == (1, 0.5, 1)


def test_failed_calls_are_counted_and_bounded_never_dropped(knowledge):
    def flaky(prompt):
        if prompt.endswith("facts: It burned.\n"):
            return ChatReply("error", error="gave up")
        if "rained indeed" in prompt:
            return ChatReply("refused", "I won't say")
        return answer_two_facts(prompt)

    llm = ScriptedLLM(flaky)
    scored = score(knowledge, llm, "It rained. It burned.")
    # The sentence that failed stands for its facts; what has no verdict is not supported, but in
    # the bounds.
    assert scored.claims["claim"].tolist() == ["It rained.", "It rained indeed.", "It burned."]
    assert scored.verdicts["status"].tolist() == ["ok", "refused", "error"]
    assert scored.verdicts["raw"].iloc[2] == "the sentence was not decomposed: gave up"
    row = audit(scored)
    assert (row["n_facts"], row["n_unscored"], row["n_failed_sentences"]) == (3, 2, 1)
    assert (row["score"], row["score_min"], row["score_max"]) == (1 / 3, 1 / 3, 1)
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
    knowledge,
    reply,
    original,
    strict,
):
    llm = ScriptedLLM(lambda p: answer_two_facts(p) if p.startswith("Please") else reply)
    for parser, expected in (("original", original), ("strict", strict)):
        row = audit(score(knowledge, llm, "It rained.", parser=parser))
        assert (row["score"], row["n_unscored"], row["n_unparsed"]) == expected
        # The published heuristic's guesses leave the whole range open.
        is_open = expected[2] > 0
        assert (row["score_min"], row["score_max"]) == ((0, 1) if is_open else (expected[0],) * 2)


def test_token_probabilities_stand_beside_the_verdict(knowledge):
    sure = ChatReply("ok", "True", tokens=(ChatReplyToken("True", -0.1),))
    llm = ScriptedLLM(
        lambda prompt: answer_two_facts(prompt) if prompt.startswith("Please") else sure
    )
    assert score(knowledge, llm, "It rained.").verdicts["score"].tolist() == [1.0, 1.0]


# ---- given facts, verifiers


def test_given_facts_need_no_llm_and_any_evaluator_verifies(knowledge):
    told = (("She was born in Emberlow.", "S"), ("He likes tea.", "NS"), ("It is so.", "IR"))
    made = [Response("a", "Ada Fenn", "All.", "human", tuple(AtomicFact(*one) for one in told))]
    scored = score_given(knowledge, made, verifiers=["rouge2", "unigram", "always-no"])
    labels = scored.claims["label"].astype(object).where(scored.claims["label"].notna(), None)
    assert labels.tolist() == [1, 0, None]
    assert list(dict.fromkeys(scored.verdicts["evaluator"])) == ["rouge2", "unigram", "always-no"]
    own = {
        name: scored.verdicts[scored.verdicts["evaluator"] == name]
        for name in ("rouge2", "always-no")
    }
    assert own["rouge2"]["prediction"].tolist() == [1, 0, 0]
    assert own["rouge2"]["claim_id"].tolist() == scored.claims["claim_id"].tolist()
    assert own["always-no"]["prediction"].tolist() == [0, 0, 0]


class Gate:
    """Stands in for the nonparametric masked language model."""

    signature = "gate"

    def judge(self, claims: Iterator[Claim]) -> Iterator[Verdict]:
        for claim in claims:
            probability = (
                None if "burned" in claim.claim else 0.2 if "indeed" in claim.claim else 0.4
            )
            if probability is None:
                yield Verdict(claim.claim_id, status="skipped", raw="no word to ask for")
            else:
                yield Verdict(claim.claim_id, probability, int(probability > 0.3))


def test_the_nonparametric_probability_is_combined_by_and(knowledge, monkeypatch):
    monkeypatch.setattr("factaudit.engines.pipeline.make_evaluator", lambda name, options: Gate())
    llm = ScriptedLLM(answer_two_facts)
    texts = "It rained. It was wrong. It burned."
    scored = score(knowledge, llm, texts, verifiers=["retrieval+npm"])
    assert scored.verdicts["prediction"].fillna(-1).tolist() == [1, 0, 0, 0, -1, -1]
    assert scored.verdicts["raw"].tolist()[:3] == ["True\n[npm 0.4]", "True\n[npm 0.2]", "False"]
    assert scored.verdicts["raw"].iloc[4] == "True\n[npm no word to ask for]"
    assert scored.verdicts["status"].iloc[4] == "unparsed"
    assert set(scored.verdicts["evaluator"]) == {"retrieval+scripted+npm"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"llm": None}, "the verifier 'retrieval' needs an LLM"),
        ({"parser": "orginal"}, "parser: expected 'strict' or 'original', found 'orginal'"),
        ({"abstain": "originl"}, "abstain: expected 'declines'"),
        ({"verifiers": ["rouge22"]}, "unknown evaluator 'rouge22'"),
        ({"verifiers": []}, "verifiers: List should have at least 1"),
        ({"verifiers": ["rouge2", "rouge2"]}, "rouge2"),
        ({"gamma": -1}, "gamma: expected greater than or equal to 0"),
        ({"gama": 9}, "unknown key 'gama'"),
    ],
)
def test_wrong_options_are_refused_at_once(knowledge, options, said):
    with pytest.raises(UsageError, match=said):
        make_models(
            FactScoreSettings, knowledge, **{"llm": ScriptedLLM(answer_two_facts), **options}
        )


def test_an_llm_that_cannot_work_stops_the_run_with_its_own_error(knowledge):
    def broken(prompt):
        raise FactauditError("no key")

    with pytest.raises(FactauditError, match=r"^no key$"):
        score(knowledge, ScriptedLLM(broken), "It rained.")


# ---- reading responses


def test_responses_are_read_with_system_and_stable_ids(tmp_path):
    path = write(
        tmp_path / "bios.jsonl",
        {"topic": "A", "output": "x"},
        {"topic": "A", "output": "x"},
        {"topic": "B", "output": "", "system": "gpt", "response_id": 7},
    )
    one, two, three = read_responses([path])
    assert one.system == two.system == "bios"
    assert one.response_id != two.response_id
    assert (three.system, three.response_id, three.output) == ("gpt", "7", "")
    assert read_responses([path])[0] == one
    assert read_responses([path], system="mine", limit=1)[0].system == "mine"


def test_each_answer_of_a_conversation_is_a_response(tmp_path):
    parts = [{"type": "text", "text": "He wrote"}, {"type": "image"}, {"text": "verse."}]
    turns = [("user", "A?"), ("assistant", "A sang."), ("user", "?"), ("assistant", parts)]
    messages = [{"role": role, "content": content} for role, content in turns]
    path = write(
        tmp_path / "talks.jsonl",
        {"topic": "A", "messages": messages, "response_id": 7},
        {"topic": "B", "output": "x", "messages": messages[:1]},  # its prompt
    )
    read = [(one.topic, one.output, one.system) for one in read_responses([path])]
    answers = [("A", "A sang.", "talks"), ("A", "He wrote\nverse.", "talks")]
    assert read == [*answers, ("B", "x", "talks")]
    assert [one.response_id for one in read_responses([path])[:2]] == ["7.1", "7.2"]


WRONG_LINES = [
    ([{"output": "x"}], None, "line 1, column 'topic': the field is missing"),
    ([{"messages": []}], None, "line 1, column 'topic': the field is missing"),
    ([{"messages": [], "topic": "A"}], None, "line 1: no answer of the assistant"),
    (
        [{"topic": "A", "output": None}],
        None,
        "line 1, column 'output': expected a valid string, found None",
    ),
    (
        [{"topic": "A", "output": "x", "annotations": "S"}],
        None,
        "column 'annotations': expected a valid list",
    ),
    (
        [{"topic": "A", "output": "x", "facts": ["a", 3]}],
        None,
        "column 'facts.1': expected a dictionary",
    ),
    (
        [{"topic": "A", "output": "x", "facts": [{"text": "a", "label": "yes"}]}],
        None,
        "column 'facts.0.label': expected 'S', 'NS', 'IR', 1 or 0, found 'yes'",
    ),
    (
        [{"topic": "A", "output": one, "response_id": "1"} for one in "xy"],
        None,
        "response_id '1' stands 2 times",
    ),
    (
        [{"topic": "A", "output": "x"}],
        "human",
        "expected annotations, to take the human facts from",
    ),
    ([{"output": "x"}, {"topic": "A", "output": None}], None, "2 problems"),
]


@pytest.mark.parametrize(("rows", "facts", "said"), WRONG_LINES)
def test_all_that_is_wrong_with_a_file_of_responses_is_said(rows, facts, said, tmp_path):
    with pytest.raises((InputError, UsageError), match=re.escape(said)):
        read_responses([write(tmp_path / "r.jsonl", *rows)], facts=facts)
