"""FActScore: what share of a text's atomic facts does a knowledge source support? (Min et al. 2023)

`factscore` goes through the steps of the paper:

1. *Atomic facts* (§3.1, A.2). A response is split into sentences, and a model splits each into
   short sentences that state one thing each; its prompt shows seven fixed demonstrations and the
   one that BM25 finds nearest. Facts of up to three characters and repeated ones are left out,
   those beyond 50 cut (`factaudit.engines.decompose`). A response that declines to answer has no
   facts (`factaudit.engines.abstention`; §4.3).
2. *Passages* (§4.1). Of the topic's page in the knowledge source, cut into passages of 256 tokens,
   BM25 takes the k = 5 nearest to "TOPIC FACT" (`factaudit.engines.passages`,
   `factaudit.knowledge.retrieval`). After this step there is an ordinary table of claims: a fact is
   a claim, and its passages are the document.
3. *Verification* (§4.1). Each fact is put to an evaluator LM: with its passages ("Retrieve→LM"),
   alone ("No-context LM"), or to the nonparametric masked model ("NP", the evaluator `npm`), which
   may also check what the LM finds true ("Retrieve→LM+NP", the verifier ``retrieval+npm``). Any
   other evaluator may verify as well. The LM is asked "Answer the question about TOPIC based on the
   given context", then its passages, then "Input: FACT True or False?"
   (`factaudit.engines.verifier`).
4. *Score* (§3.1). f(y) of a response is the share of its facts that are supported, times
   exp(1 - γ/n) where it has fewer than γ = 10 facts (the paper's code). FActScore is the mean of
   f(y) over the responses that did not abstain. This is arithmetic on the tables of claims and
   verdicts: `factaudit.arrays.response_facts.score_response_facts` for a response, and the audit
   `factscore` (`factaudit.audit.factscore`) over responses, with intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from factaudit.engines.decompose import (
    decompose,
    leave_undecomposed,
    split_for_decomposition,
)
from factaudit.engines.passages import (
    Candidate,
    FactClaims,
    ScoredFacts,
    build_claims,
    find_topic_page,
    validate_any_verdicts,
)
from factaudit.engines.pipeline import Pipeline
from factaudit.engines.responses import Response
from factaudit.engines.verifier import reads_pages
from factaudit.evaluators.judging import judge


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
    responses = mark_abstentions(responses, models)
    topics = dict.fromkeys(one.topic for one in responses if not one.abstained)
    if models.knowledge:
        models.knowledge.check_topics(topics)
    pages = {topic: find_topic_page(topic, models.knowledge) for topic in topics}
    page_of_topic = [pages.get(one.topic, Candidate(None)) for one in responses]

    # 1. Atomic facts. Where there is no page, and all verifiers would read it, finding facts would
    # be paid for in vain: each sentence stands for its facts, unscored.
    known = list(responses)
    for at, (one, page) in enumerate(zip(responses, page_of_topic, strict=True)):
        if one.facts is None and page.page is None and models.knowledge and models.needs_pages:
            known[at] = leave_undecomposed(one, page.status, page.reason)
    facts, left_out = find_facts(known, models, progress=progress)
    # 2. Passages
    claims = build_claims(
        facts,
        [[page] for page in page_of_topic],
        models.retriever,
        left_out,
    )
    # 3. Verification; the score (4.) is arithmetic on these tables
    return ScoredFacts(claims.table, verify(claims, models, journal, progress), claims.notes)


def mark_abstentions(responses: Sequence[Response], models: Pipeline) -> list[Response]:
    """The responses, without facts where they abstain."""
    found = []
    for one in responses:
        if models.abstains(one):
            sentences = tuple(split_for_decomposition(one.output))
            one = replace(one, abstained=True, facts=(), sentences=sentences)
        found.append(one)
    return found


def find_facts(
    responses: Sequence[Response],
    models: Pipeline,
    *,
    unique_by_sentence: bool = False,
    progress: bool = False,
) -> tuple[list[Response], Counter[str]]:
    """The responses with their facts, given ones or a model's, and what was left out."""
    found = list(responses)
    asked = {at: one for at, one in enumerate(responses) if one.facts is None}
    for at, one in enumerate(responses):
        if at not in asked and one.sentences is None:
            found[at] = _place_given_facts(one)
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
    """A response whose file has facts and no sentences: they are the text's, or, where no fact
    names one, the whole text is the sentence of all."""
    facts = response.facts or ()
    sentences = tuple(split_for_decomposition(response.output))
    if len(sentences) == 1 or all(fact.sentence is None for fact in facts):
        sentences = (response.output,)
        facts = tuple(replace(fact, sentence=0) for fact in facts)
    return replace(response, facts=facts, sentences=sentences)


def verify(
    claims: FactClaims,
    models: Pipeline,
    journal: str | Path | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """A verdict per fact and verifier.

    A fact without a page, or whose sentence was not decomposed, is put to nobody: it is unscored,
    with the reason.
    """
    facts = claims.table[claims.table["claim"].notna()]
    tables = []
    for one in models.verifiers:
        unasked = claims.unasked
        if not reads_pages(one.evaluator):
            unasked = unasked[unasked["is_undecomposed"]]
        asked = facts[~facts["claim_id"].isin(unasked["claim_id"])]
        told = unasked.drop(columns="is_undecomposed").assign(evaluator=one.name)
        if len(asked):
            judged = judge(asked, [one], journal=journal, progress=progress)
            told = pd.concat([judged, told], ignore_index=True)
        tables.append(told.set_index("claim_id").loc[facts["claim_id"]].reset_index())
    return validate_any_verdicts(pd.concat(tables, ignore_index=True))
