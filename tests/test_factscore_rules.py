"""FActScore's exact rules: sentences, prompts byte for byte, parsers, abstention."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import yaml
from scripted_llm import ChatReply, ChatReplyToken

from factaudit import InputError
from factaudit.engines.abstention import is_abstaining_response
from factaudit.engines.decompose import (
    DecompositionPrompt,
    split_for_decomposition,
    split_response,
)
from factaudit.engines.reply_facts import parse_reply_facts
from factaudit.engines.verifier import (
    make_retrieval_prompt,
    parse_as_original,
    read_verification,
)

# ---- sentences


def test_sentences_go_paragraph_by_paragraph():
    assert split_for_decomposition("Ada was a miller. She died.\n\n \nHer son lives.\n") == [
        "Ada was a miller.",
        "She died.",
        "Her son lives.",
    ]
    assert split_for_decomposition("") == []
    assert split_for_decomposition(" \n\t\n") == []


@pytest.mark.parametrize(
    "sentence",
    [
        "J. R. R. Oldkirk wrote it.",
        "The book by J. R. Oldkirk sold well.",
        "It was filmed by K. V. Anders in 1990.",
        "He met J.R. Oldkirk there.",
    ],
)
def test_initials_are_kept_together(sentence):
    assert split_for_decomposition(f"He was born in Emberlow. {sentence} It rained.") == [
        "He was born in Emberlow.",
        sentence,
        "It rained.",
    ]


@pytest.mark.parametrize(
    ("split", "mended"),
    [
        (
            ["He read J.", "R. Oldkirk.", "It rained there."],
            ["He read J. R. Oldkirk.", "It rained there."],
        ),
        (["She met A.", "B.", "C. Fenn there."], ["She met A. B. C. Fenn there."]),
        (
            ["He sailed to Port C.", "It rained there."],
            ["He sailed to Port C.", "It rained there."],
        ),
        (["Well.", "She won it."], ["Well. She won it."]),
        (["She won it.", "Twice.", "He lost it."], ["She won it. Twice.", "He lost it."]),
        (
            ["She won the prize of St.", "martin in 1990."],
            ["She won the prize of St. martin in 1990."],
        ),
        (["Yes."], ["Yes."]),
        (['"Quoted" it began.', "(Then) it ended."], ['"Quoted" it began.', "(Then) it ended."]),
    ],
)
def test_what_was_split_wrongly_is_mended(split, mended, monkeypatch):
    monkeypatch.setattr("factaudit.engines.decompose.split_sentences", lambda text: split)
    assert split_for_decomposition("Any text.") == mended


# ---- demonstrations

TEN = {f"Sentence {word} here.": [f"{word} one.", f"{word} two."] for word in "abcdefghij"}


def block(letter: str) -> str:
    task = "Please breakdown the following sentence into independent facts: "
    return f"{task}Sentence {letter} here.\n- {letter} one.\n- {letter} two.\n\n"


def test_the_prompt_has_seven_demonstrations_the_nearest_and_the_sentence():
    assert DecompositionPrompt(TEN).make_text("About i today") == (
        "".join(map(block, "abcdefgi"))
        + "Please breakdown the following sentence into independent facts: About i today\n"
    )


def test_the_nearest_is_chosen_among_all_even_if_it_is_shown_already():
    assert (
        DecompositionPrompt(TEN)
        .make_text("About b today")
        .startswith("".join(map(block, "abcdefgb")))
    )


def test_the_nearest_is_rank_bm25s_over_words_between_white_space():
    demonstrations = DecompositionPrompt.load()
    nearest = demonstrations.find_nearest("He died of pneumonia in 1950.")
    assert nearest == "He died of pneumonia on 17 November 1948 at the age of 71."
    # "here." and "here" are two words; nothing fits, and the last of equals is taken.
    assert DecompositionPrompt(TEN).find_nearest("here") == "Sentence j here."


def test_fewer_demonstrations_than_seven_are_all_shown():
    two = dict(list(TEN.items())[:2])
    assert DecompositionPrompt(two).make_text("x").count("Please breakdown") == 2 + 1 + 1


def test_our_demonstrations_are_in_the_originals_format(monkeypatch, tmp_path):
    monkeypatch.delenv("FACTSCORE_DEMONS_PATH", raising=False)
    ours = DecompositionPrompt.load()
    assert len(ours.facts) >= 12
    assert all(len(facts) >= 2 for facts in ours.facts.values())
    own = tmp_path / "demons.json"
    own.write_text(json.dumps(TEN))
    monkeypatch.setenv("FACTSCORE_DEMONS_PATH", str(own))
    assert DecompositionPrompt.load().facts == TEN
    own.write_text(json.dumps({"A sentence.": "a fact"}))
    with pytest.raises(
        InputError, match="expected an object of sentences, each with a list of facts"
    ):
        DecompositionPrompt.load()
    with pytest.raises(InputError, match="not a readable file of demonstrations"):
        DecompositionPrompt.load(tmp_path / "absent.json")


# ---- facts


def test_facts_lose_their_numbering_and_bullets():
    reply = (
        "Here are the independent facts:\n- She is a miller.\n* She is old.\n• She lives in"
        " Emberlow.\n1. She won.\n2) She lost.\n(3) She left.\n4. - She came back.\n-She sang."
        "\nFact 5: She danced.\n\n- Yes\n- No.\n"
    )
    assert parse_reply_facts(reply)[0] == [
        "She is a miller.",
        "She is old.",
        "She lives in Emberlow.",
        "She won.",
        "She lost.",
        "She left.",
        "She came back.",
        "She sang.",
        "She danced.",
    ]


def test_what_only_looks_like_a_bullet_stays():
    reply = (
        "- 1949 was the year of her birth.\n- -5 degrees was the record.\n- 1.5 million came.\n"
        "- 1. FC Ember is a club."
    )
    assert parse_reply_facts(reply)[0] == [
        "1949 was the year of her birth.",
        "-5 degrees was the record.",
        "1.5 million came.",
        "1. FC Ember is a club.",
    ]


def test_boilerplate_of_a_reply_is_no_fact_but_a_bulleted_title_is():
    assert parse_reply_facts("- Sure!\n- Of course.\n- Sure Start is a programme.")[0] == [
        "Sure Start is a programme."
    ]
    reply = "Sure!\nFacts:\n- Please Please Me is an album.\nPlease tell me if you need more."
    assert parse_reply_facts(reply)[0] == ["Please Please Me is an album."]
    assert parse_reply_facts("")[0] == []
    assert parse_reply_facts("Yes")[0] == []


# ---- verification


def test_the_prompt_has_the_passages_in_reverse_order_byte_for_byte():
    assert (
        make_retrieval_prompt(
            "Ada Fenn", "Ada Fenn", ["Best one.", "Second one"], " She was a miller. "
        )
        == "Answer the question about Ada Fenn based on the given context.\n\n"
        "Title: Ada Fenn\nText: Second one\n\nTitle: Ada Fenn\nText: Best one.\n\n"
        "Input: She was a miller. True or False?\nOutput:"
    )


@pytest.mark.parametrize(
    ("passage", "end"),
    [("no stop", "no stop."), ("stop!", "stop!"), ('in "quotes"', 'in "quotes"')],
)
def test_a_context_without_punctuation_at_its_end_gets_a_full_stop(passage, end):
    assert f"Text: {end}\n\nInput:" in make_retrieval_prompt("T", "T", [passage, "other"], "fact")


def test_the_prompt_equals_the_originals_code_on_real_passages(shared):
    import string

    from factaudit.knowledge.retrieval import remove_special_tokens

    with (shared / "factscore/knowledge/passages_157_entities.jsonl").open(
        encoding="utf-8"
    ) as file:
        for row in map(json.loads, file):
            topic, fact = row["title"], f"{row['title']} is a person."
            # As in the original's _get_score.
            definition = f"Answer the question about {topic} based on the given context.\n\n"
            context = ""
            for text in reversed(row["passages"][:5]):
                context += "Title: {}\nText: {}\n\n".format(
                    topic, text.replace("<s>", "").replace("</s>", "")
                )
            definition += context.strip()
            if definition[-1] not in string.punctuation:
                definition += "."
            expected = f"{definition.strip()}\n\nInput: {fact.strip()} True or False?\nOutput:"
            assert (
                make_retrieval_prompt(
                    topic,
                    topic,
                    [remove_special_tokens(text) for text in row["passages"][:5]],
                    fact,
                )
                == expected
            )


@pytest.mark.parametrize(
    ("reply", "supported", "stated"),
    [
        ("True", 1, 1),
        ("TRUE.", 1, 1),
        ("The statement is untrue", 1, None),  # as published: the letters are there
        ("False", 0, 0),
        ("It is false, not true", 1, 0),
        ("True, not false", 0, 1),
        ("true false true", 0, None),  # the first occurrences count
        ("False. It is not true that this happened.", 1, 0),
        ("I do not know", 0, None),
        ("It cannot be said", 0, None),
        ("Unknown.", 0, None),
        ("There is no information.", 0, None),
        ("Notable indeed", 1, None),  # "not" must be a word
        ("Yes", 1, None),
    ],
)
def test_the_parsers_truth_table(reply, supported, stated):
    assert parse_as_original(reply) == supported
    original, strict = (
        read_verification(ChatReply("ok", reply), name) for name in ("original", "strict")
    )
    # What the original reads otherwise than the strict parser is a guess.
    assert (original.prediction, original.status) == (
        supported,
        "ok" if supported == stated else "unparsed",
    )
    assert (strict.prediction, strict.status) == (stated, "unparsed" if stated is None else "ok")
    assert original.raw == reply


def test_token_probabilities_become_the_score():
    top = {
        " True": math.log(0.6),
        " true": math.log(0.1),
        "False": math.log(0.2),
        "Maybe": math.log(0.1),
    }
    tokens = (
        ChatReplyToken("Answer", -0.1, {"True": -3.0}),
        ChatReplyToken(" True", math.log(0.6), top),
        ChatReplyToken("False", 0.0),
    )
    assert read_verification(ChatReply("ok", "Answer True", tokens=tokens)).score == pytest.approx(
        0.7 / 0.9
    )
    only = (ChatReplyToken("False", math.log(0.9)),)
    assert read_verification(ChatReply("ok", "False", tokens=only)).score == 0
    assert read_verification(ChatReply("ok", "False")).score is None


def test_a_score_never_contradicts_its_prediction():
    sure, unsure = (
        {"True": math.log(0.993), "False": math.log(0.007)},
        {"True": math.log(0.3), "False": math.log(0.7)},
    )
    tokens = (
        ChatReplyToken("The statement is", -0.1),
        ChatReplyToken(" true", -0.1, sure),
        ChatReplyToken(", not", -0.1),
        ChatReplyToken(" false", math.log(0.7), {" True": math.log(0.3)}),
    )
    both = ChatReply("ok", "The statement is true, not false.", tokens=tokens)
    assert read_verification(both).score == pytest.approx(0.993, abs=0.01)
    # The original takes the word that comes last: a guess, and so without a score.
    guess = read_verification(both, "original")
    assert (guess.prediction, guess.score, guess.status) == (0, None, "unparsed")
    # A token that was drawn though it was the less likely.
    drawn = read_verification(
        ChatReply("ok", "True", tokens=(ChatReplyToken("True", math.log(0.3), unsure),))
    )
    assert (drawn.prediction, drawn.score) == (1, 1)
    even = {"True": math.log(0.5), "False": math.log(0.5)}
    assert read_verification(
        ChatReply("ok", "False", tokens=(ChatReplyToken("False", math.log(0.5), even),))
    ).score == pytest.approx(0.5)


# ---- abstention


@pytest.mark.parametrize(
    ("output", "original"),
    [
        ("I'm sorry, I do not know her.", True),
        ("Could you provide more details?", True),
        ("In 2016 she asked the club to provide more boats.", True),
        ("", False),
        ("Ada is a miller.", False),
    ],
)
def test_the_originals_abstentions(output, original):
    assert is_abstaining_response(output, "original") is original
    assert not is_abstaining_response(output, "none")


ABSTENTIONS = yaml.safe_load(
    (Path(__file__).parent / "golden" / "abstentions.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize(
    ("output", "abstains"), [(one, kind) for kind, many in ABSTENTIONS.items() for one in many]
)
def test_abstentions(output, abstains):
    assert is_abstaining_response(output) is abstains


# ---- Markdown

MARKDOWN = yaml.safe_load(
    (Path(__file__).parent / "golden" / "markdown.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("row", MARKDOWN, ids=[row["shape"] for row in MARKDOWN])
def test_lines_that_only_lay_a_response_out_are_left_out_and_counted(row):
    assert split_response(row["text"]) == (row["sentences"], row["left_out"])
