"""Words, sentences, chunks and overlap of texts in other languages than English, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from factaudit.evaluators.base import Claim
from factaudit.evaluators.registry import make_evaluator
from factaudit.text.chunks import count_words, split_document_into_chunks
from factaudit.text.rouge_overlap import rouge2_chunk_differences, rouge2_precision
from factaudit.text.scripts import find_claims_in_other_script, has_rouge_words, split_words_of_any_script
from factaudit.text.sentences import split_sentences

CHINESE = "北京是中国的首都。人口超过两千万！它位于华北平原的北部。"
JAPANESE = "東京は日本の首都です。スカイツリーは2012年に完成した。"
GERMAN = "Dies ist die Straße für alle Fußgänger der Stadt. Sie wurde im Jahr 1911 eröffnet."
ARABIC = "القاهرة هي عاصمة مصر. هل هي كبيرة؟ نعم."
HINDI = "दिल्ली भारत की राजधानी है। यह यमुना नदी के किनारे है।"
ENGLISH = "Beijing is the capital of China. It has over twenty million people."


@pytest.mark.parametrize(
    ("claim", "doc", "right"),
    [
        # 北京 and 首都 of 北京, 京是, 是首, 首都; 京是 is there as well, 是首 is not.
        ("北京是首都", CHINESE, 3 / 4),
        # Of 人口, 口是, 是两, 两千, 千万: the first, and the last two.
        ("人口是两千万。", CHINESE, 3 / 5),
        # The long vowel is a character; full-width digits are digits: スカ カイ イツ ツリ リー, ーは, は2012, 2012年.
        ("スカイツリーは２０１２年", JAPANESE, 1),
        # 東京, 京は, は大, 大阪.
        ("東京は大阪", JAPANESE, 2 / 4),
        # "die straße", "straße für" and not "für fußgänger"; the ß is a letter, in capitals too.
        ("Die STRASSE für Fußgänger", GERMAN, 2 / 3),
        # The same with the accents as marks of their own.
        ("Sie wurde 1911 ero\u0308ffnet", GERMAN, 2 / 3),
        # "Cairo is" and "is the-capital", not "the-capital France".
        ("القاهرة هي عاصمة فرنسا", ARABIC, 2 / 3),
        # दिल्ली भारत, भारत की, की नदी: vowel signs do not cut words.
        ("दिल्ली भारत की नदी", HINDI, 2 / 3),
        # Cut at vowel signs, these would share their bigram.
        ("दा ला", "दि लि", 0),
    ],
)
def test_overlap_by_hand(claim: str, doc: str, right: float) -> None:
    assert rouge2_precision([claim], [doc])[0] == pytest.approx(right)


def test_overlap_with_a_chunk_by_hand() -> None:
    assert split_document_into_chunks(CHINESE, 10) == split_sentences(CHINESE)
    # 7 of 8 bigrams are in the document (not 京人), 6 of them in its second sentence; 都人 crosses the first cut.
    claims = ["北京人口超过两千万", "首都人口"]
    assert rouge2_chunk_differences(claims, [CHINESE] * 2, [10])[0] == pytest.approx([1 / 8, 2 / 3])


def test_sentences_and_chunks() -> None:
    assert split_sentences(CHINESE) == ["北京是中国的首都。", "人口超过两千万！", "它位于华北平原的北部。"]
    assert split_sentences("彼は「行く。」と言った。雨だった。") == ["彼は「行く。」と言った。", "雨だった。"]
    assert split_sentences(ARABIC) == ["القاهرة هي عاصمة مصر.", "هل هي كبيرة؟", "نعم."]
    assert split_sentences(HINDI) == ["दिल्ली भारत की राजधानी है।", "यह यमुना नदी के किनारे है।"]
    # In English the mark is part of a name.
    name = "The group モーニング娘。 was formed in 1997; モーニング娘。, too."
    assert split_sentences(name) == [name]
    assert count_words(CHINESE) == 8 + 7 + 10
    assert split_document_into_chunks(CHINESE, 16) == ["北京是中国的首都。人口超过两千万！", "它位于华北平原的北部。"]
    assert split_document_into_chunks(HINDI, 7) == split_sentences(HINDI)
    # No sentence fits: cut after a character.
    assert split_document_into_chunks(CHINESE, 4)[:2] == ["北京是中", "国的首都。"]


def test_english_is_counted_as_before() -> None:
    assert has_rouge_words("In Zürich, Zoë Müller and her sister were known for the café that they had owned.")
    assert has_rouge_words("Staff: Jörgen Lantto, José Romero, Jón Dadi Bödvarsson (editors), Condé Nast")
    assert not any(map(has_rouge_words, (CHINESE, JAPANESE, GERMAN, ARABIC, HINDI)))
    # rouge-score's tokens: "zo" and "s", and nothing of what is not ASCII.
    assert rouge2_precision(["Zo s mill"], ["It is the mill of Zoë's: Zoë's mill, as it was known."])[0] == 1
    assert split_words_of_any_script("GPT-4由OpenAI发布") == ["gpt", "4", "由", "openai", "发", "布"]


def test_claims_in_another_script_have_no_overlap() -> None:
    claims = ["Beijing is the capital of China.", "iPhone 15 Pro Max 发布", "1949", "北京是首都", "Пекин столица"]
    assert find_claims_in_other_script(claims, CHINESE) == [True, False, False, False, True]
    assert find_claims_in_other_script(claims, ENGLISH) == [False, False, False, True, True]
    assert find_claims_in_other_script(["首都は東京です。"], "东京是日本的首都。") == [False]
    assert find_claims_in_other_script(["北京"], "1949") == [False]
    np.testing.assert_array_equal(np.isnan(rouge2_precision(claims, [ENGLISH] * 5)), [False, False, True, True, True])


@pytest.mark.parametrize("name", ["rouge2", "unigram", "tfidf"])
def test_evaluators_skip_claims_in_another_script(name: str) -> None:
    claims = [Claim("a", "北京是首都。", ENGLISH), Claim("b", "北京是首都。", CHINESE), Claim("c", "法国巴黎", CHINESE)]
    a, b, c = sorted(make_evaluator(name).judge(claims), key=lambda verdict: verdict.claim_id)
    assert (a.status, a.score, a.raw) == ("skipped", None, "the claim is in another script than its document")
    assert isinstance(b.score, float)
    assert isinstance(c.score, float)
    assert c.score < b.score


def test_a_chunk_in_another_script_is_left_out() -> None:
    evaluator = make_evaluator("chunked", {"evaluator": "rouge2", "size": 8})
    quoted = Claim("a", "Beijing is the capital of China.", f"{ENGLISH} {CHINESE} {ENGLISH}")
    a, b = evaluator.judge([quoted, Claim("b", "Beijing is the capital.", CHINESE)])
    assert (a.status, a.score) == ("ok", 1)
    assert a.chunk_scores is not None
    assert None in a.chunk_scores
    assert (b.status, b.score) == ("skipped", None)


def test_unigrams_of_chinese_are_characters() -> None:
    (verdict,) = make_evaluator("unigram").judge([Claim("a", "北京在华南。", CHINESE)])
    # 在 and 南 are nowhere.
    assert verdict.score == 3 / 5
