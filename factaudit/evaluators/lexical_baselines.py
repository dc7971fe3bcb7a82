"""How far do word overlap, or reading nothing, get? Evaluators that need no model."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from factaudit.evaluators.base import Claim, Verdict, evaluator
from factaudit.signature import hash_texts
from factaudit.text.content_words import STOP_WORDS
from factaudit.text.rouge_overlap import rouge2_precision
from factaudit.text.scripts import (
    OTHER_SCRIPT_REASON,
    find_claims_in_other_script,
    is_latin_text,
    split_words_of_any_script,
)
from factaudit.text.sentences import split_sentences

_WORD_PATTERN = re.compile(r"\w+")


@evaluator(
    "rouge2",
    method={"stemmer": False, "tokens": "rouge-score+scripts"},
    source="Lin 2004, as VC §4.1 uses it",
    checked="the rouge-score package",
)
@dataclass(frozen=True)
class Rouge2Evaluator:
    """ROUGE-2 precision: the share of the claim's bigrams that the document has.

    A bigram that the claim has more often than the document counts as often as there (Lin 2004).

    A claim of fewer than two tokens has no bigram and is skipped.
    """

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        return _judge_by_lexical_score(
            claims, _score_rouge2_precision, "the claim has fewer than two tokens, so no bigram"
        )


@evaluator(
    "unigram",
    method={"words": "scripts", "stop_words": hash_texts(*sorted(STOP_WORDS), length=8)},
    checked="figures worked out by hand",
)
@dataclass(frozen=True)
class UnigramEvaluator:
    """The share of the claim's content words that the document has.

    Content words are all but `STOP_WORDS`; repeated ones count each time. Words are compared in
    lower case, without stemming; where words are not spaced (Chinese), each character is one. A
    claim without a content word is skipped.
    """

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        return _judge_by_lexical_score(
            claims, _score_unigram_share, "the claim has no content word"
        )


@evaluator(
    "tfidf",
    method={"words": "scripts", "sentences": "punkt+marks", "idf": "smooth"},
    checked="figures worked out by hand",
)
@dataclass(frozen=True)
class TfidfEvaluator:
    """TF-IDF cosine between the claim and the nearest sentence of the document.

    Document frequencies are those of the document's sentences (smoothed, as scikit-learn does), so
    that a verdict depends on its own claim and document only. The claim's words that the document
    lacks are the rarest of all: they lengthen the claim's vector and so lower its score. A claim
    without a word is skipped.
    """

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        return _judge_by_lexical_score(claims, _score_tfidf_cosine, "the claim has no word")


@evaluator("always-yes")
@dataclass(frozen=True)
class AlwaysYesEvaluator:
    """Finds every claim attributable: a floor.

    Also one without a document.
    """

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        return (Verdict(claim.claim_id, score=1.0) for claim in claims)


@evaluator("always-no")
@dataclass(frozen=True)
class AlwaysNoEvaluator:
    """Finds no claim attributable: a floor."""

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        return (Verdict(claim.claim_id, score=0.0) for claim in claims)


@evaluator("random", example="random:seed=1")
@dataclass(frozen=True)
class RandomEvaluator:
    """A coin per claim, seeded: a floor.

    The score is drawn evenly from [0, 1), with or without a document, from the seed and the claim's
    id alone: the order of the claims does not matter, nor do other claims.
    """

    seed: int = 0

    def again(self, repeat: int) -> RandomEvaluator:
        """Another coin."""
        return RandomEvaluator(self.seed + repeat)

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        for claim in claims:
            # 53 bits are what a float in [0, 1) can hold.
            bits = int(hash_texts("random", str(self.seed), claim.claim_id), 16) >> 11
            yield Verdict(claim.claim_id, score=bits / 2**53)


#: The scores of claims against one document; None for a claim that cannot have one.
_ScoreFunction = Callable[[str, list[str]], Sequence[float | None]]


def _judge_by_lexical_score(
    claims: Iterable[Claim], score: _ScoreFunction, unscorable_reason: str
) -> Iterator[Verdict]:
    """Score the claims of each document together; claims of one document are best given one after
    the other."""
    for doc, group in groupby(claims, key=lambda claim: claim.doc):
        if doc is None:
            for claim in group:
                yield Verdict(claim.claim_id, status="skipped", raw="no document")
            continue
        asked = list(group)
        texts = [claim.claim for claim in asked]
        is_other = find_claims_in_other_script(texts, doc)
        for claim, value, other in zip(asked, score(doc, texts), is_other, strict=True):
            if other or value is None:
                reason = OTHER_SCRIPT_REASON if other else unscorable_reason
                yield Verdict(claim.claim_id, status="skipped", raw=reason)
            else:
                yield Verdict(claim.claim_id, score=value)


def _score_rouge2_precision(doc: str, claims: list[str]) -> list[float | None]:
    found = rouge2_precision(claims, [doc] * len(claims)).tolist()
    return [None if math.isnan(value) else value for value in found]


def _choose_word_list(doc: str) -> Callable[[str], list[str]]:
    """How words are found in a document and the claims on it: in Latin script they are what is
    spaced."""
    if is_latin_text(doc):
        return lambda text: _WORD_PATTERN.findall(text.lower())
    return split_words_of_any_script


def _score_unigram_share(doc: str, claims: list[str]) -> list[float | None]:
    list_words = _choose_word_list(doc)
    there = set(list_words(doc))
    scores: list[float | None] = []
    for claim in claims:
        content = [word for word in list_words(claim) if word not in STOP_WORDS]
        scores.append(sum(word in there for word in content) / len(content) if content else None)
    return scores


def _score_tfidf_cosine(doc: str, claims: list[str]) -> list[float | None]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    list_words = _choose_word_list(doc)
    is_wordless = [not list_words(claim) for claim in claims]
    sentences = split_sentences(doc)
    if all(is_wordless) or not list_words(doc):
        return [None if wordless else 0.0 for wordless in is_wordless]
    # A word that only claims have is in no sentence, and has the greatest weight that smoothing
    # allows.
    vocabulary = {word for text in sentences + claims for word in list_words(text)}
    weigh = TfidfVectorizer(analyzer=list_words, vocabulary=vocabulary).fit(sentences)
    cosine = weigh.transform(claims) @ weigh.transform(sentences).T
    # Rounding may leave a sentence's cosine with itself a little over 1.
    best = cosine.max(axis=1).toarray().ravel().clip(max=1.0).tolist()
    return [None if wordless else value for wordless, value in zip(is_wordless, best, strict=True)]
