"""Sentences, tokens, chunks and overlap; against rouge-score on real and random text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import DefaultTokenizer

from factaudit import judge
from factaudit.text.chunks import count_words, split_document_into_chunks
from factaudit.text.display_text import mask_secrets_in_text
from factaudit.text.rouge_overlap import (
    rouge2_chunk_differences,
    rouge2_precision,
    split_rouge_tokens,
)
from factaudit.text.scripts import (
    find_claims_in_other_script,
    has_latin_words,
    is_latin_text,
    split_words_of_any_script,
)
from factaudit.text.sentences import find_sentence_spans, split_sentences

SCORER = RougeScorer(["rouge2"], use_stemmer=False)
TOKENIZER = DefaultTokenizer(use_stemmer=False)


class ScriptTokenizer:
    tokenize = staticmethod(split_words_of_any_script)


# rouge-score on the words of other languages.
SCRIPT_SCORER = RougeScorer(["rouge2"], tokenizer=ScriptTokenizer())

# Any Unicode, and text that looks like prose: few words, so that bigrams repeat, and all that ends
# a sentence or not.
ANY = st.text(max_size=200)
BITS = [
    "the",
    "cat",
    "cat",
    "Dr.",
    "A.",
    "e.g.",
    "3.5",
    "K\u212a",
    "\u0130x",
    "—",
    "(so.)",
    '"No!"',
    "foo.[1]",
    "…",
]
ENDS = [
    " ",
    " ",
    " ",
    ". ",
    "! ",
    "?! ",
    ".\n",
    "\n\n",
    "\t",
    "\u3000",
    ".",
    "...",
    "\r\n",
    "\x1c",
    "",
]
PROSE = st.lists(st.tuples(st.sampled_from(BITS), st.sampled_from(ENDS)), max_size=60).map(
    lambda pairs: "".join(bit + end for bit, end in pairs)
)
TEXT = ANY | PROSE
SIZE = st.integers(1, 20)


def expected_precision(claim: str, doc: str | None) -> float:
    if doc is None or find_claims_in_other_script([claim], doc)[0]:
        return float("nan")
    is_latin = is_latin_text(doc) or has_latin_words(claim)
    tokenizer, scorer = (TOKENIZER, SCORER) if is_latin else (ScriptTokenizer, SCRIPT_SCORER)
    return (
        scorer.score(doc, claim)["rouge2"].precision
        if len(tokenizer.tokenize(claim)) > 1
        else float("nan")
    )


def expected_diff(claim: str, doc: str | None, size: int) -> float:
    whole = expected_precision(claim, doc)
    if doc is None or whole != whole:
        return float("nan")
    is_latin = is_latin_text(doc) or has_latin_words(claim)
    scorer = SCORER if is_latin else SCRIPT_SCORER
    return whole - max(
        (
            scorer.score(part, claim)["rouge2"].precision
            for part in split_document_into_chunks(doc, size)
        ),
        default=0,
    )


# ---- sentences


def test_sentences_are_those_of_punkt():
    text = (
        'Dr. Smith met J. R. Lee at 3.5 p.m. in Washington. "Was it late?" he asked. (It was.)'
        " Yes! "
    )
    assert split_sentences(text) == [
        "Dr. Smith met J. R. Lee at 3.5 p.m. in Washington.",
        '"Was it late?"',
        "he asked.",
        "(It was.)",
        "Yes!",
    ]
    assert split_sentences("") == split_sentences(" \n\t") == []


@given(TEXT)
def test_sentences_lose_only_white_space(text):
    spans = find_sentence_spans(text)
    assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(
        text.split()
    )
    assert all(text[start:end].strip() for start, end in spans)
    assert [text[start:end] for start, end in spans] == split_sentences(text)


# ---- tokens


@given(TEXT)
@example("\u212aelvin \u0130stanbul ΣΑΣ \ud800 ﬁ ½ ²")
def test_tokens_are_those_of_rouge_score(text):
    assert [token.decode() for token in split_rouge_tokens(text)] == TOKENIZER.tokenize(text)


# ---- chunks


def test_chunks_take_as_many_sentences_as_fit():
    text = "One two three. Four five. Six seven eight nine.  Ten."
    assert split_document_into_chunks(text, 5) == [
        "One two three. Four five.",
        "Six seven eight nine.  Ten.",
    ]
    assert split_document_into_chunks(text, 4) == [
        "One two three.",
        "Four five.",
        "Six seven eight nine.",
        "Ten.",
    ]
    assert split_document_into_chunks(text, 100) == [text]
    assert split_document_into_chunks("", 5) == split_document_into_chunks(" \n ", 5) == []


def test_a_sentence_longer_than_a_chunk_is_split():
    assert split_document_into_chunks("The old cat sat there all day. It was grey.", 3) == [
        "The old cat",
        "sat there all",
        "day.",
        "It was grey.",
    ]
    # What is left of it takes the next sentences along.
    assert split_document_into_chunks("The old cat sat. It purred.", 3) == [
        "The old cat",
        "sat. It purred.",
    ]
    # At line breaks where there are any, else between words.
    assert split_document_into_chunks("Title of it\nsome more words here and there", 5) == [
        "Title of it",
        "some more words here and",
        "there",
    ]


def test_a_word_longer_than_a_chunk_is_split_beside_letters_and_digits():
    assert split_document_into_chunks("世界你好", 3, count_tokens=len) == ["世界你", "好"]
    assert split_document_into_chunks("well-known", 5, count_tokens=len) == ["well-", "known"]
    # ... but not between them: the words of ROUGE stay whole.
    assert split_document_into_chunks("international x", 5, count_tokens=len) == [
        "international",
        "x",
    ]


@given(
    TEXT,
    SIZE,
    st.sampled_from(
        [count_words, len, lambda text: len(split_rouge_tokens(text)) + text.count("."), None]
    ),
)
def test_chunks_hold_the_document_and_keep_their_size(text, size, count):
    counter = (
        count if callable(count) else lambda part: sum(1 + len(word) // 3 for word in part.split())
    )
    chunks = split_document_into_chunks(text, size, counter)
    assert all(part.strip() for part in chunks)
    assert "".join("".join(part.split()) for part in chunks) == "".join(text.split())
    assert [token for part in chunks for token in split_rouge_tokens(part)] == split_rouge_tokens(
        text
    )
    for part in chunks:
        assert counter(part) <= size or part.isalnum()


@given(PROSE, SIZE)
def test_chunks_end_where_sentences_do(text, size):
    """What is read of the end of a chunk gives the sentences of the whole: each cut is the last
    that is possible."""
    sentence_ends = [end for _, end in find_sentence_spans(text)]
    start = 0
    for part in split_document_into_chunks(text, size):
        start = text.index(part, start)
        end = start + len(part)
        possible = [
            stop for stop in sentence_ends if start < stop and count_words(text[start:stop]) <= size
        ]
        if text[end:].strip():
            assert end == possible[-1] if possible else count_words(part) <= size
        start = end


# ---- overlap


def test_precision_by_hand():
    claims = ["the cat sat", "the cat the cat", "cat", "the cat", "", "the cat"]
    docs = ["The cat ran; a cat sat.", "the cat", "cat", None, "the cat", ""]
    # (the cat, cat sat) are both there; of (the cat, cat the, the cat) one "the cat" is.
    assert rouge2_precision(claims, docs) == pytest.approx(
        [1, 1 / 3, np.nan, np.nan, np.nan, 0], nan_ok=True
    )
    assert rouge2_precision([], []).shape == (0,)


@given(st.lists(st.tuples(TEXT, st.none() | TEXT), max_size=4), TEXT)
def test_precision_equals_rouge_score(pairs, common):
    claims = [claim for claim, _ in pairs] + [claim for claim, _ in pairs]
    docs = [doc for _, doc in pairs] + [common for _ in pairs]
    found = rouge2_precision(claims, docs)
    expected = [expected_precision(claim, doc) for claim, doc in zip(claims, docs, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@given(st.lists(TEXT, min_size=1, max_size=3), TEXT, SIZE)
def test_diff_equals_rouge_score_and_is_never_negative(claims, doc, size):
    claims = [*claims, *split_sentences(doc)[:2]]
    docs = [doc] * len(claims)
    (found,) = rouge2_chunk_differences(claims, docs, [size])
    expected = [expected_diff(claim, doc, size) for claim in claims]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert np.all(found[~np.isnan(found)] >= 0)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(rouge2_precision(claims, docs)))


def test_a_key_is_not_shown_and_the_name_of_a_model_is():
    for key in ("hf_AbCdEfGhIjKlMnOpQrSt", "sk-proj-0123456789abcdef", "gsk_0123456789abcdef"):
        assert mask_secrets_in_text(f"with {key}, it said") == "with ***, it said"
    name = "bioqa-Llama-2-13b-chat-hf-gtr-no-ambig-shot2-ndoc5-42.json"
    assert mask_secrets_in_text(name) == name


# Other languages than English
# ------------------------------------------------------------

CHINESE = "北京是中国的首都。人口超过两千万！它位于华北平原的北部。"
ENGLISH = "Beijing is the capital of China. It has over twenty million people."


def test_overlap_with_a_chunk_by_hand():
    assert split_document_into_chunks(CHINESE, 10) == split_sentences(CHINESE)
    # 7 of 8 bigrams are in the document (not 京人), 6 of them in its second sentence; 都人
    # crosses the first cut.
    claims = ["北京人口超过两千万", "首都人口"]
    assert rouge2_chunk_differences(claims, [CHINESE] * 2, [10])[0] == pytest.approx([1 / 8, 2 / 3])


def test_a_claim_in_latin_script_has_the_tokens_of_rouge_score_on_any_document():
    """A document of WiCE that is mostly names of a planet in other scripts moved an AUC."""
    claim = "In Hebrew, Rahab (רהב) was selected for the planet Neptun (נפטון)."
    doc = "The planet Rahab was selected. 海王星 해왕성 נפטון Нептун Νεπτούνια ดาวเนปจูน"
    assert not is_latin_text(doc)
    assert rouge2_precision([claim], [doc])[0] == SCORER.score(doc, claim)["rouge2"].precision > 0


def test_claims_in_another_script_have_no_overlap():
    claims = [
        "Beijing is the capital of China.",
        "iPhone 15 Pro Max 发布",
        "1949",
        "北京是首都",
        "Пекин столица",
    ]
    assert find_claims_in_other_script(claims, CHINESE) == [True, False, False, False, False]
    assert find_claims_in_other_script(claims, ENGLISH) == [False, False, False, True, True]
    assert find_claims_in_other_script(["首都は東京です。"], "东京是日本的首都。") == [False]
    assert find_claims_in_other_script(["北京"], "1949") == [False]
    np.testing.assert_array_equal(
        np.isnan(rouge2_precision(claims, [ENGLISH] * 5)), [False, False, True, True, True]
    )


def test_unigrams_of_chinese_are_characters():
    claims = pd.DataFrame({"claim": ["北京在华南。"], "doc": [CHINESE]})
    # 在 and 南 are nowhere.
    assert judge(claims, ["unigram"])["score"].tolist() == [3 / 5]
