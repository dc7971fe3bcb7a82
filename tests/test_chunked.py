"""Evaluators made of evaluators: chunks and ensembles."""

from __future__ import annotations

import pytest

from factaudit import Claim, UsageError, Verdict
from factaudit.evaluators.judging import NamedEvaluator, make_named_evaluator
from factaudit.evaluators.registry import make_evaluator
from factaudit.text.chunks import split_document_into_chunks

DOC = " ".join(f"Sentence {n} tells of the mill number {n} by the river." for n in range(30))


def test_the_score_is_the_maximum_over_chunks_and_all_are_kept():
    plain, chunked = (
        make_evaluator("rouge2"),
        make_evaluator("chunked", {"evaluator": "rouge2", "size": 40}),
    )
    claims = [Claim(f"c{n}", f"The mill number {n} by the river.", DOC) for n in range(5)]
    parts = split_document_into_chunks(DOC, 40)
    assert len(parts) > 3
    found = {verdict.claim_id: verdict for verdict in chunked.judge(claims)}
    for claim in claims:
        scores = [next(iter(plain.judge([Claim("x", claim.claim, part)]))).score for part in parts]
        assert found[claim.claim_id].chunk_scores == scores
        assert found[claim.claim_id].score == max(scores)


def test_a_chunk_that_failed_leaves_the_claim_unscored():
    class Fails:
        signature = "fails"

        def judge(self, claims):
            for number, claim in enumerate(claims):
                yield (
                    Verdict(claim.claim_id, status="error", raw="503")
                    if number == 1
                    else Verdict(claim.claim_id, 0.9)
                )

    chunked = make_evaluator("chunked", {"evaluator": "rouge2", "size": 40})
    chunked._inner = NamedEvaluator("fails", Fails())
    (verdict,) = chunked.judge([Claim("c", "The mill.", DOC)])
    assert (verdict.score, verdict.status, verdict.raw) == (None, "error", "503")
    assert verdict.chunk_scores is not None
    assert verdict.chunk_scores[:2] == [0.9, None]


def test_claims_without_a_document_are_the_inner_evaluators():
    (verdict,) = make_evaluator("chunked", {"evaluator": "rouge2"}).judge(
        [Claim("c", "The mill turns.", None)]
    )
    assert verdict.status == "skipped"
    (verdict,) = make_evaluator("chunked", {"evaluator": "always-yes"}).judge(
        [Claim("c", "The mill turns.", "")]
    )
    assert verdict.prediction == 1 or verdict.score == 1


ENSEMBLES = [
    "ensemble:evaluators=rouge2+unigram",
    "ensemble:evaluators=rouge2+tfidf",
    "ensemble:evaluators=rouge2+tfidf,how=vote",
]


def test_names_signatures_and_specs():
    inner = make_named_evaluator("chunked:size=40,evaluator=random:seed=3")
    assert (
        inner.signature != make_named_evaluator("chunked:size=40,evaluator=random:seed=4").signature
    )
    assert len({inner.signature for inner in map(make_named_evaluator, ENSEMBLES)}) == len(
        ENSEMBLES
    )
    named = make_named_evaluator("chunked:size=40,evaluator=rouge2")
    assert named.name == "chunked-rouge2"
    assert named.signature != make_named_evaluator("chunked:size=41,evaluator=rouge2").signature
    with pytest.raises(UsageError, match="greater than 0"):
        make_named_evaluator("chunked:size=0,evaluator=rouge2")
    with pytest.raises(UsageError, match="did you mean 'rouge2'"):
        make_named_evaluator("chunked:evaluator=rogue2")


def test_an_ensemble_is_the_mean_or_the_vote():
    claims = [Claim(f"c{n}", f"Sentence {n} tells of the castle.", DOC) for n in range(6)]
    singles = [list(make_evaluator(name).judge(claims)) for name in ("rouge2", "unigram", "tfidf")]
    mean = list(make_evaluator("ensemble", {"evaluators": "rouge2+unigram+tfidf"}).judge(claims))
    vote = list(
        make_evaluator("ensemble", {"evaluators": "rouge2+unigram+tfidf", "how": "vote"}).judge(
            claims
        )
    )
    for position in range(6):
        scores = [verdicts[position].score for verdicts in singles]
        assert mean[position].score == pytest.approx(sum(scores) / 3)
        assert vote[position].score == pytest.approx(sum(score > 0.5 for score in scores) / 3)


def test_a_member_without_a_score_leaves_the_claim_unscored():
    # One token has no bigram.
    (verdict,) = make_evaluator("ensemble", {"evaluators": "rouge2+unigram"}).judge(
        [Claim("c", "Mill", "A mill.")]
    )
    assert verdict.score is None
    assert verdict.status == "skipped"
    with pytest.raises(UsageError, match="at least two"):
        make_evaluator("ensemble", {"evaluators": "rouge2"})
