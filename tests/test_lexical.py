"""Evaluators that need no model."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from factaudit import Claim, Verdict
from factaudit.evaluators.lexical_baselines import RandomEvaluator
from factaudit.evaluators.registry import make_evaluator

LEXICAL = ("rouge2", "unigram", "tfidf")
DOC = "Ada Lovelace wrote the first program in 1843. She worked with Charles Babbage."

WORDS = ["Ada", "Babbage", "wrote", "The", "first.", "program", "in", "1843.", "and", "É", "!"]
TEXT = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


def verdicts(name: str, *claims: Claim, **options: object) -> dict[str, Verdict]:
    found = list(make_evaluator(name, options).judge(iter(claims)))
    assert len(found) == len(claims)
    return {verdict.claim_id: verdict for verdict in found}


def score(name: str, claim: str, doc: str | None = DOC) -> float | None:
    return verdicts(name, Claim("c", claim, doc))["c"].score


# ---- the evaluators


def test_rouge2_is_rouge_score_s_precision():
    for claim in (
        "Ada Lovelace wrote the first poem",
        "She worked with Charles Babbage",
        "of the of the",
        "no match",
    ):
        expected = RougeScorer(["rouge2"]).score(DOC, claim)["rouge2"].precision
        assert score("rouge2", claim) == pytest.approx(expected, abs=1e-12)


def test_unigram_by_hand():
    # Content words: ada, lovelace, met, babbage, 1843; "with" and "in" are none.
    assert score("unigram", "Ada Lovelace met with Babbage in 1843") == 0.8
    assert score("unigram", "Program, program: poem!") == pytest.approx(2 / 3)
    assert score("unigram", "program first 1843 won") == 3 / 4


def test_tfidf_by_hand():
    sentences = ["the cat sat", "the dog ran fast"]
    doc = "The cat sat. The dog ran fast."
    claim = "the dog sat down"

    def weights(text):
        times = Counter(text.split())
        found = {
            w: n * (math.log(3 / (1 + sum(w in s.split() for s in sentences))) + 1)
            for w, n in times.items()
        }
        length = math.sqrt(sum(x * x for x in found.values()))
        return {word: x / length for word, x in found.items()}

    mine = weights(claim)
    expected = max(sum(mine.get(word, 0) * x for word, x in weights(s).items()) for s in sentences)
    assert score("tfidf", claim, doc) == pytest.approx(expected, abs=1e-12)
    # A word that the document lacks lowers the score; a sentence of the document is itself.
    assert 0 < (score("tfidf", claim, doc) or 0) < (score("tfidf", "the dog sat", doc) or 0)
    assert score("tfidf", "The dog ran fast!", doc) == pytest.approx(1)


def test_a_random_score_depends_on_seed_and_claim_alone():
    claims = [Claim(f"c{n}", "A claim.", DOC) for n in range(50)]
    forward = verdicts("random", *claims, seed=1)
    assert forward == verdicts("random", *claims[::-1], seed=1)
    assert forward["c7"] == verdicts("random", claims[7], seed=1)["c7"]
    assert forward != verdicts("random", *claims, seed=2)
    assert RandomEvaluator(1).signature != RandomEvaluator(2).signature


@pytest.mark.parametrize("name", LEXICAL)
def test_what_cannot_be_scored_is_skipped_and_says_why(name):
    found = verdicts(
        name,
        Claim("nodoc", "Ada wrote it.", None),
        Claim("nothing", "?!", DOC),
        Claim("fine", DOC, DOC),
    )
    assert found["nodoc"] == Verdict("nodoc", status="skipped", raw="no document")
    assert found["nothing"].score is None
    assert found["nothing"].status == "skipped"
    assert (found["nothing"].raw or "").startswith("the claim has ")
    assert found["fine"].status == "ok"
    if name == "tfidf":  # its nearest sentence is half of it
        assert 0.5 < (found["fine"].score or 0) < 1
    else:
        assert found["fine"].score == 1


@pytest.mark.parametrize("name", LEXICAL)
@pytest.mark.parametrize("doc", ["", " \n", "?!"])
def test_a_document_without_words_supports_nothing(name, doc):
    assert score(name, "Ada wrote it.", doc) == 0


def test_one_word_is_no_bigram_but_a_word():
    assert score("rouge2", "Ada") is None
    assert score("unigram", "Ada") == 1
    assert score("unigram", "She was with it") is None
    assert score("tfidf", "Ada") is not None


@settings(max_examples=30)
@given(st.lists(st.tuples(TEXT, st.none() | TEXT), min_size=1, max_size=6), st.randoms())
@pytest.mark.slow
def test_a_verdict_depends_on_its_own_claim_alone(pairs, random):
    claims = [Claim(str(at), claim, doc) for at, (claim, doc) in enumerate(pairs)]
    shuffled = random.sample(claims, len(claims))
    for name in LEXICAL:
        together = verdicts(name, *shuffled)
        for claim in claims:
            verdict = together[claim.claim_id]
            assert verdict == verdicts(name, claim)[claim.claim_id]
            assert verdict.score is None or 0 <= verdict.score <= 1
            assert (verdict.status == "ok") == (verdict.score is not None)
