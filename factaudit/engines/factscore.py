"""FActScore: what share of a text's atomic facts does a knowledge source support? (Min et al. 2023)

`factscore` goes through the steps of the paper:

1. *Atomic facts* (§3.1, A.2). A response is split into sentences, and a model splits each into
  short sentences that
   state one thing each; its prompt shows seven fixed demonstrations and the one that BM25 finds
   nearest. Facts of up to three characters and repeated ones are left out, those beyond 50 cut
   (`factaudit.engines.decompose`). A response that declines to answer has no facts
   (`factaudit.engines.abstention`; §4.3).
2. *Passages* (§4.1). Of the topic's page in the knowledge source, cut into passages of 256 tokens,
  BM25 takes the k = 5
   nearest to "TOPIC FACT" (`factaudit.engines.passages`, `factaudit.knowledge.retrieval`). After
   this step there is an
   ordinary table of claims: a fact is a claim, and its passages are the document.
3. *Verification* (§4.1). Each fact is put to an evaluator LM: with its passages ("Retrieve→LM"),
  alone ("No-context
   LM"), or to the nonparametric masked model ("NP", the evaluator `npm`), which may also check what
   the LM finds true ("Retrieve→LM+NP"). Any other evaluator may verify as well. The LM is asked
   "Answer the question about TOPIC based on the given context", then its passages, then "Input:
   FACT True or False?" (`factaudit.engines.verifier`).
4. *Score* (§3.1). f(y) of a response is the share of its facts that are supported, times exp(1 -
  γ/n) where it has
   fewer than γ = 10 facts (the paper's code). FActScore is the mean of f(y) over the responses that
   did not abstain. This is arithmetic on the tables of claims and verdicts:
   `factaudit.arrays.response_facts.score_response_facts` for a response, and the audit `factscore`
   (`factaudit.audit.factscore`) over responses, with intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from factaudit.engines.conversations import ask_for_topics
from factaudit.engines.decompose import (
    decompose,
    leave_undecomposed,
    split_for_decomposition,
    split_response,
)
from factaudit.engines.passages import (
    Candidate,
    FactClaims,
    ScoredFacts,
    build_claims,
    find_topic_pages,
)
from factaudit.engines.pipeline import Pipeline
from factaudit.engines.responses import Response
from factaudit.engines.verifier import AskedWherePossible, reads_pages
from factaudit.evaluators.judging import judge
from factaudit.tables import validate_verdicts


def factscore(
    responses: Sequence[Response],
    models: Pipeline,
    *,
    journal: str | Path | None = None,
    progress: bool = False,
) -> ScoredFacts:
    """The facts of responses with the verifiers' verdicts, each step for all responses at once.

    journal: a folder where verdicts are written down, so that a run that was killed and is started
    again does not repeat them. (Replies of a language model are in its client's cache.) progress:
    show progress bars (on a terminal only).

    Raises `UsageError` where something is to be had from an LLM or a knowledge source that is not
    there, and `InputError` for topics without a page under the policy ``error``, both before any
    call.
    """
    models.check_can_decompose(responses)
    responses = ask_for_topics(responses, models.llm)
    if models.knowledge:
        models.knowledge.check_topics(one.topic for one in responses if one.abstained is not True)
    speaking = [one.topic for one in responses if not models.abstains(one)]
    pages = find_topic_pages(speaking, models.knowledge)
    nowhere = Candidate(None, reason="no knowledge source")
    page_of_topic = [pages.get(one.topic, nowhere) for one in responses]

    # 1. Atomic facts
    known_pages = page_of_topic if models.knowledge else None
    facts, left_out = find_facts(responses, models, pages=known_pages, progress=progress)
    # 2. Passages
    settings = models.settings
    claims = build_claims(
        facts,
        [[page] for page in page_of_topic],
        models.retriever,
        left_out,
        dataset=settings.dataset,
        irrelevant=settings.irrelevant,
    )
    # 3. Verification; the score (4.) is arithmetic on these tables
    return ScoredFacts(claims.table, verify(claims, models, journal, progress), claims.notes)


def find_facts(
    responses: Sequence[Response],
    models: Pipeline,
    *,
    pages: Sequence[Candidate] | None = None,
    unique_by_sentence: bool = False,
    progress: bool = False,
) -> tuple[list[Response], Counter[str]]:
    """The responses with their facts: given ones, or a model's; none where a response abstains. And
    what was left out.

    pages: of the topics. Where there is none, and all verifiers would read it, finding facts would
    be paid for in vain: each sentence stands for its facts, unscored.
    """
    found = list(responses)
    asked: dict[int, Response] = {}
    for at, one in enumerate(responses):
        if models.abstains(one):
            sentences = tuple(split_for_decomposition(one.output))
            found[at] = replace(one, abstained=True, facts=(), sentences=sentences)
        elif one.facts is not None:
            found[at] = _place_given_facts(one)
        elif pages is not None and pages[at].page is None and models.needs_pages:
            sentences = tuple(split_response(one.output)[0])
            _, _, status, reason = pages[at]
            facts = tuple(
                leave_undecomposed(text, n, status, reason) for n, text in enumerate(sentences)
            )
            found[at] = replace(one, facts=facts, sentences=sentences)
        else:
            asked[at] = one
    llm, left_out = models.decomposer or models.llm, Counter[str]()
    if asked and llm is not None:
        decomposed, left_out = decompose(
            list(asked.values()),
            llm,
            models.prompt,
            max_facts=models.settings.max_facts,
            unique_by_sentence=unique_by_sentence,
            progress=progress,
        )
        for at, one in zip(asked, decomposed, strict=True):
            found[at] = one
    return found, left_out


def _place_given_facts(response: Response) -> Response:
    """A response with its facts' sentences: those of its file, the whole text where no fact names
    one, else its own."""
    facts = response.facts or ()
    sentences = response.sentences
    if not sentences:
        is_whole = all(fact.sentence is None for fact in facts)
        sentences = (
            (response.output,) if is_whole else tuple(split_for_decomposition(response.output))
        )
    if len(sentences) == 1:
        facts = tuple(replace(fact, sentence=0) for fact in facts)
    return replace(response, facts=facts, sentences=sentences)


def verify(
    claims: FactClaims, models: Pipeline, journal: str | Path | None = None, progress: bool = False
) -> pd.DataFrame:
    """A verdict per fact and verifier.

    A fact without a page, or whose sentence was not decomposed, is put to nobody: it is unscored,
    with the reason.
    """
    facts = claims.table[claims.table["claim"].notna()]
    if facts.empty:
        return validate_verdicts(
            pd.DataFrame([{"claim_id": "-", "evaluator": "-", "prediction": 1}])
        ).iloc[:0]
    verifiers = []
    for one in models.verifiers:
        unasked = claims.undecomposed | (claims.without_page if reads_pages(one.evaluator) else {})
        verifiers.append(replace(one, evaluator=AskedWherePossible(one.evaluator, unasked)))
    return judge(facts, verifiers, journal=journal, progress=progress)
