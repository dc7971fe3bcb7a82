"""FActScore: what share of a text's atomic facts does a knowledge source support? (Min et al. 2023)

The steps of the paper, in the order in which `factscore` takes them:

1. *Abstention* (§4.3). A response that declines to answer has no facts, and counts in the respond
   ratio alone. If its file does not say whether it declines, rules decide, not a model
   (`factaudit.engines.abstention`).
2. *Atomic facts* (§3.1, A.2). A response is split into sentences by NLTK's Punkt, but for lines of
   layout and talk to the user. A model splits each sentence into short sentences that state one
   thing each; its prompt shows seven fixed demonstrations and the one that BM25 finds nearest to
   the sentence. Facts of up to three characters and repeated ones are left out
   (`factaudit.engines.decompose`).
3. *Passages* (§4.1). The topic's page is the page of this title in the knowledge source, or the
   one that a redirect of this title leads to; with the setting ``missing: wikipedia`` Wikipedia's
   search finds a page where the source has none (`factaudit.knowledge.topic_lookup`). The page was
   cut into passages of 256 tokens when the source was built (of RoBERTa's tokens in the published
   source; `factaudit.knowledge.knowledge_builder`). BM25 takes the k = 5 nearest to "TOPIC FACT".
   (The setting ``retrieval`` can choose GTR, ``dense``, or the whole page, ``all``;
   `factaudit.knowledge.retrieval`.) After this step there is an ordinary table of claims: a fact is
   a claim, and its passages are the document (`factaudit.engines.passages`).
4. *Verification* (§4.1). Each fact is put to one or several verifiers:

   - ``retrieval``, "Retrieve→LM": the evaluator LM reads "Answer the question about TOPIC based on
     the given context.", then the passages, the nearest last, then "Input: FACT True or False?";
   - ``no-context``, "No-context LM": it reads "FACT True or False?" alone;
   - ``npm``, "NP": the nonparametric masked model. A fact is supported if the mean probability of
     its words in the passages is above 0.3 (`factaudit.evaluators.nonparametric`);
   - ``retrieval+npm``, "Retrieve→LM+NP": a fact is supported if both find it supported. NP is
     asked only about facts that the LM finds supported;
   - or any other evaluator.

   The LM is asked at temperature 0 for up to 50 tokens. If its reply says neither true nor false,
   or says both, the fact has no verdict. ``parser: original`` reads replies as the paper's code
   does, which finds a verdict in each of them (`factaudit.engines.verifier`).

5. *Score* (§3.1). f(y) of a response is the share of its facts that are supported
   (``init_score``); a fact without a verdict counts as not supported. The length penalty of the
   paper's code multiplies it by exp(1 - γ/n) where there are n < γ = 10 facts (``score``).
   FActScore is the mean over the responses that have facts, except those of which no fact could be
   put to the verifier (the topic has no page, say). The respond ratio is the share of the responses
   that have facts. This is arithmetic on the tables of claims and verdicts:
   `factaudit.arrays.response_facts.score_response_facts` for each response, and the audit
   `factscore` (`factaudit.audit.factscore`) over responses, with intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from factaudit.engines.candidates import find_topic_pages
from factaudit.engines.decompose import (
    decompose,
    leave_undecomposed,
    remove_repeated_facts,
    split_for_decomposition,
)
from factaudit.engines.passages import (
    FactClaims,
    VerifiedFacts,
    build_claims,
    validate_any_verdicts,
)
from factaudit.engines.pipeline import Pipeline
from factaudit.engines.responses import Response
from factaudit.engines.verifier import reads_pages
from factaudit.errors import UsageError
from factaudit.evaluators.judging import judge


def factscore(
    responses: Sequence[Response],
    models: Pipeline,
    *,
    journal: str | Path | None = None,
    progress: bool = False,
) -> VerifiedFacts:
    """The facts of responses with the verifiers' verdicts: steps 1 to 4, each for all responses at
    once.

    The scores, step 5, are then ``factaudit.compare(found.claims, found.verdicts,
    audits=["factscore"])``.

    models: the models and pages of the steps, with the settings. journal: a folder where verdicts
    are written down, so that a run that was killed and is started again does not repeat them.
    (Replies of a language model are in its client's cache.) progress: show progress bars (on a
    terminal only).

    Raises `UsageError` where something is to be had from an LLM or a knowledge source that is not
    there, and `FactauditError` where all pages are to come from Wikipedia and it cannot be asked,
    both before any call.
    """
    models.check_can_decompose(responses)
    if models.knowledge is None and any(reads_pages(one.evaluator) for one in models.verifiers):
        raise UsageError("the facts are to be checked against pages: that needs a knowledge source")
    # 1. Abstention
    responses = mark_abstentions(responses, models)

    # The pages of step 3 cost nothing, and what is missing is said before anything is paid for.
    pages = find_topic_pages(responses, models.knowledge)

    # 2. Atomic facts. Where there is no page, and all verifiers would read it, finding facts would
    # be paid for in vain: each sentence stands for its facts, unscored.
    to_decompose = list(responses)
    if models.knowledge and models.needs_pages:
        for at, (one, topic_page) in enumerate(zip(responses, pages, strict=True)):
            if one.facts is None and topic_page.page is None:
                to_decompose[at] = leave_undecomposed(one, topic_page.status, topic_page.reason)
    with_facts = find_facts(to_decompose, models, progress=progress)
    for at, given in enumerate(responses):
        if given.facts is None:
            with_facts[at] = remove_repeated_facts(with_facts[at])

    # 3. Passages: a claim for each fact, with the passages of its topic's page that the retriever
    # finds for it. (D-FActScore has several candidate pages for a fact.)
    claims = build_claims(with_facts, [[one] for one in pages], models.retriever)

    # 4. Verification
    return VerifiedFacts(claims.table, verify(claims, models, journal, progress), claims.notes)


def mark_abstentions(responses: Sequence[Response], models: Pipeline) -> list[Response]:
    """The responses, without facts where they abstain (their sentences are still shown)."""
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
    progress: bool = False,
) -> list[Response]:
    """The responses with their facts and sentences.

    Facts that a response has already stay as they are; a model finds those of the others.
    """
    found = list(responses)
    for at, one in enumerate(responses):
        if one.facts is not None and one.sentences is None:
            found[at] = _add_sentences(one)
    llm = models.decomposer or models.llm
    without_facts = [at for at, one in enumerate(responses) if one.facts is None]
    if without_facts and llm is not None:
        # Split into sentences, and ask about each.
        asked = [responses[at] for at in without_facts]
        decomposed = decompose(asked, llm, models.prompt, progress=progress)
        for at, one in zip(without_facts, decomposed, strict=True):
            found[at] = one
    return found


def _add_sentences(response: Response) -> Response:
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
    """A verdict per fact (in D-FActScore per fact and candidate) and verifier.

    What cannot be asked is unscored, with the reason: a fact whose sentence was not decomposed, and
    one without a page, unless the verifier reads no pages.
    """
    facts = claims.table[claims.table["claim"].notna()]
    tables = []
    for verifier in models.verifiers:
        unasked = claims.unasked
        if not reads_pages(verifier.evaluator):
            unasked = unasked[unasked["is_undecomposed"]]
        asked = facts[~facts["claim_id"].isin(unasked["claim_id"])]
        verdicts = unasked.drop(columns="is_undecomposed").assign(evaluator=verifier.name)
        if len(asked):
            judged = judge(asked, [verifier], journal=journal, progress=progress)
            verdicts = pd.concat([judged, verdicts], ignore_index=True)
        tables.append(verdicts.set_index("claim_id").loc[facts["claim_id"]].reset_index())
    return validate_any_verdicts(pd.concat(tables, ignore_index=True))
