"""FActScore: what share of a text's atomic facts does a knowledge source support? (Min et al. 2023)

`FactScorer.score` goes through the steps of the paper:

1. *Atomic facts* (§3.1, A.2). A response is split into sentences, and a model splits each into short sentences that
   state one thing each; its prompt shows seven fixed demonstrations and the one that BM25 finds nearest. Facts of up to
   three characters and repeated ones are left out, those beyond 50 cut (`factaudit.engines.decompose`). A response that
   declines to answer has no facts (`factaudit.engines.abstention`; §4.3).
2. *Passages* (§4.1). Of the topic's page in the knowledge source, cut into passages of 256 tokens, BM25 takes the k = 5
   nearest to "TOPIC FACT" (`factaudit.engines.passages`, `factaudit.knowledge.retrieval`). After this step there is an
   ordinary table of claims: a fact is a claim, and its passages are the document.
3. *Verification* (§4.1). Each fact is put to an evaluator LM: with its passages ("Retrieve→LM"), alone ("No-context
   LM"), or to the nonparametric masked model ("NP", the evaluator `npm`), which may also have the last word on what
   the LM finds true ("Retrieve→LM+NP"). Any other evaluator may verify as well.
4. *Score* (§3.1). f(y) of a response is the share of its facts that are supported, times exp(1 - γ/n) where it has
   fewer than γ = 10 facts (the paper's code). FActScore is the mean of f(y) over the responses that did not abstain.
   This is arithmetic on the tables of claims and verdicts: `factaudit.arrays.response_facts.score_response_facts` for
   a response, and the audit `factscore` (`factaudit.audit.factscore`) over responses, with intervals.
"""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from factaudit.arrays.response_means import DEFAULT_GAMMA
from factaudit.audit.core.result_rows import Row
from factaudit.engines.abstention import is_abstaining_response
from factaudit.engines.conversations import ask_for_topics
from factaudit.engines.decompose import (
    MAX_FACTS,
    Decomposition,
    DecompositionPrompt,
    decompose,
    leave_undecomposed,
    split_for_decomposition,
    split_response,
)
from factaudit.engines.passages import (
    PASSAGE_BREAK,
    Candidate,
    DecomposedResponse,
    FactClaims,
    build_claims,
    find_topic_pages,
)
from factaudit.engines.responses import Response
from factaudit.errors import UsageError
from factaudit.evaluators.base import Claim, Evaluator, Verdict
from factaudit.evaluators.judging import (
    NamedEvaluator,
    check_unique_evaluator_names,
    judge,
    make_named_evaluator,
    walk_evaluator_members,
)
from factaudit.knowledge.docdb import DocDB, find_knowledge_database
from factaudit.knowledge.retrieval import PassageRetriever
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.llm.ask_all import ask_all
from factaudit.llm.chat_types import ChatModelProtocol, ChatReply, ChatReplyToken, ChatRequest
from factaudit.llm.reply import extract_llm_answer
from factaudit.settings.yaml_file import check_yaml_settings
from factaudit.signature import make_signature
from factaudit.tables import validate_verdicts
from factaudit.text.stated_verdicts import make_answer_parser, read_stated_verdict


class FactScoreOptions(BaseModel):
    """The options of FActScore; the command line and an experiment's YAML have the same.

    demos: a file of demonstrations in place of our own. decontextualize: ask, in the decomposing prompt, for facts
    whose subjects are no pronouns, as MF does. parser: ``strict`` or ``original`` (`read_verification`). logprobs: ask
    the server for token probabilities, which become scores. abstain:
    `factaudit.engines.abstention.is_abstaining_response`. gamma: the length penalty's; 0 turns it off. irrelevant:
    facts labelled IR: ``exclude`` (no label) or ``unsupported`` (label 0). dataset: the claims'.
    """

    model_config = ConfigDict(extra="forbid")

    demos: str | Path | None = None
    decontextualize: bool = False
    max_facts: int = Field(default=MAX_FACTS, ge=1)
    abstain: Literal["declines", "original", "perplexity_ai", "none"] = "declines"
    parser: Literal["strict", "original"] = "strict"
    logprobs: bool = True
    gamma: float = Field(default=DEFAULT_GAMMA, ge=0)
    irrelevant: Literal["exclude", "unsupported"] = "exclude"
    dataset: str = "factscore"


# ------------------------------------------------------------------------------------------------ the verifier's prompt


def make_retrieval_prompt(topic: str, title: str, passages: Sequence[str], fact: str) -> str:
    """The prompt with retrieved passages, best first in ``passages``, last in the prompt: byte for byte the original's.

    ``passages`` come without ``<s>`` and ``</s>`` (`factaudit.knowledge.retrieval.remove_special_tokens`).
    """
    context = "".join(f"Title: {title}\nText: {passage}\n\n" for passage in reversed(passages)).strip()
    definition = f"Answer the question about {topic} based on the given context.\n\n{context}"
    if definition[-1] not in string.punctuation:
        definition += "."
    return f"{definition.strip()}\n\nInput: {fact.strip()} True or False?\nOutput:"


def make_no_context_prompt(fact: str) -> str:
    """The prompt without passages."""
    return f"{fact.strip()} True or False?"


# ------------------------------------------------------------------------------------------- reading its replies

_parse_true_or_false = make_answer_parser(["true"], ["false"])


def parse_as_original(reply: str) -> int:
    """The original's reading, which finds a verdict in every reply.

    One of the words "true" and "false": that one. Both: the one whose *first* occurrence is later. Neither: 0 if not,
    cannot, unknown or information is among the words, else 1.
    """
    answer = reply.lower()
    true, false = answer.find("true"), answer.find("false")
    if true >= 0 or false >= 0:
        return int(true > false)
    words = answer.translate(str.maketrans("", "", string.punctuation)).split()
    return int(not any(word in words for word in ("not", "cannot", "unknown", "information")))


def read_verification(reply: ChatReply, parser: str = "strict", claim_id: str = "") -> Verdict:
    """The verdict that a reply states.

    ``strict`` takes the answer that it states; where it states none, or contradicts itself, the fact is unscored. Where
    ``original`` reads a reply otherwise it is a guess: its verdict has a prediction *and* the status ``unparsed``, is
    scored as published, and is within the bounds. A reply that has no answer (refused, error, skipped, empty, cut off)
    leaves the fact unscored under its own status, whatever the parser.
    """
    answer = extract_llm_answer(reply)
    if answer.status != "ok":
        return Verdict(claim_id, status=answer.status, raw=answer.error or answer.text or None)
    found = read_stated_verdict(answer.text, _parse_true_or_false)
    stated = None if found is None else found.value
    prediction = parse_as_original(answer.text) if parser == "original" else stated
    if prediction is None or prediction != stated:
        return Verdict(claim_id, None, prediction, "unparsed", reply.text)
    return Verdict(claim_id, compute_true_probability(answer.tokens, prediction), prediction, "ok", reply.text)


def compute_true_probability(tokens: Sequence[ChatReplyToken] | None, prediction: int) -> float | None:
    """P(True) / (P(True) + P(False)) at the first token that says what was predicted.

    None where the server gave none, and where it would say the opposite of the prediction (a token that was drawn
    though it was the less likely): a score never contradicts the prediction that stands beside it.
    """
    token = next((one for one in tokens or () if _parse_token(one.text) == prediction), None)
    if token is None:
        return None
    mass = [0.0, 0.0]
    for text, logprob in ({token.text: token.logprob} | dict(token.alternatives)).items():
        if (said := _parse_token(text)) is not None:
            mass[said] += math.exp(logprob)
    score = min(1.0, mass[1] / sum(mass)) if sum(mass) > 0 else None
    return score if score is not None and (score > 0.5) == bool(prediction) else None


def _parse_token(token: str) -> int | None:
    return {"true": 1, "false": 0}.get(token.strip(string.punctuation + string.whitespace).lower())


# ------------------------------------------------------------------------------------------------- who verifies

#: FActScore's own verifiers; every other one is an evaluator.
RETRIEVAL, NO_CONTEXT = "retrieval", "no-context"


def is_own_verifier(spec: Any) -> bool:
    """Whether a verifier is FActScore's own, and no other evaluator."""
    return isinstance(spec, str) and spec in (RETRIEVAL, NO_CONTEXT)


@dataclass(frozen=True)
class FactVerifier:
    """The evaluator LM of FActScore, with passages or alone; it judges facts as any evaluator judges claims.

    npm: an evaluator that judges the facts that the LM finds true; its verdict then replaces the LM's.
    """

    llm: ChatModelProtocol
    with_passages: bool = True
    parser: str = "strict"
    logprobs: bool = True
    npm: Evaluator | None = None

    @property
    def verdict_name(self) -> str:
        """As the original's names: "retrieval+ChatGPT"."""
        model = str(getattr(self.llm, "model", None) or "llm")
        return f"{RETRIEVAL if self.with_passages else NO_CONTEXT}+{model}" + ("+npm" if self.npm else "")

    @property
    def signature(self) -> str:
        settings: dict[str, Any] = {"llm": self.llm.signature, "parser": self.parser, "logprobs": self.logprobs}
        settings |= {"npm": self.npm.signature} if self.npm else {}
        return make_signature(RETRIEVAL if self.with_passages else NO_CONTEXT, settings)

    @property
    def cache_server(self) -> str:
        """The server as the cache's keys have it."""
        return getattr(self.llm, "cache_server", "")

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        requests = ((claim, self.make_request(claim)) for claim in claims)
        for claim, reply in ask_all(self.llm, requests):
            verdict = read_verification(reply, self.parser, claim.claim_id)
            yield verdict if self.npm is None or verdict.prediction != 1 else self._ask_npm(claim, verdict)

    def make_request(self, claim: Claim) -> ChatRequest:
        """The prompt as one user message, with the original's sampling parameters."""
        prompt = make_no_context_prompt(claim.claim)
        if self.with_passages:
            passages = (claim.doc or "").split(PASSAGE_BREAK)
            prompt = make_retrieval_prompt(claim.topic or "", claim.doc_id or "", passages, claim.claim)
        params: dict[str, Any] = {"temperature": 0.0, "max_tokens": 50}
        if self.logprobs:
            params |= {"logprobs": True, "top_logprobs": 5}
        return ChatRequest(({"role": "user", "content": prompt},), params)

    def _ask_npm(self, claim: Claim, verdict: Verdict) -> Verdict:
        """As in the original, the probability is looked at only where the LM says True."""
        assert self.npm is not None
        (said,) = self.npm.judge([claim])
        if said.prediction is None:  # no word to ask for: the LM's verdict stands
            return replace(verdict, raw=f"{verdict.raw}\n[npm undefined]")
        # P(True) is no score for a fact that was found unsupported in spite of it.
        score = verdict.score if said.prediction == 1 else None
        return replace(verdict, prediction=said.prediction, score=score, raw=f"{verdict.raw}\n[npm {said.score:.4f}]")


@dataclass(frozen=True)
class _AskedWherePossible:
    """A verifier that judges only some facts; for each of the others, ``unasked`` has the status and the reason."""

    evaluator: Evaluator
    unasked: Mapping[str, tuple[str, str | None]]

    @property
    def signature(self) -> str:
        return self.evaluator.signature

    @property
    def members(self) -> tuple[Evaluator, ...]:
        return (self.evaluator,)

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        asked = []
        for claim in claims:
            if claim.claim_id in self.unasked:
                status, reason = self.unasked[claim.claim_id]
                yield Verdict(claim.claim_id, status=status, raw=reason)
            else:
                asked.append(claim)
        yield from self.evaluator.judge(asked)


# --------------------------------------------------------------------------------------------------- the pipeline


class ScoredFacts(NamedTuple):
    """The facts as claims, what the verifiers say of them, and what was left out, a line each."""

    claims: pd.DataFrame
    verdicts: pd.DataFrame
    notes: list[str]


class FactScorer:
    """FActScore of responses.

    >>> scorer = FactScorer("wiki.db", Client("gpt-4o-mini"))  # doctest: +SKIP
    >>> claims, verdicts, notes = scorer.score([make_response("Ada Lovelace", "Ada was a poet.")])  # doctest: +SKIP
    >>> factaudit.compare(claims, verdicts, audits=["factscore"])  # doctest: +SKIP

    Args:
        knowledge: a knowledge source (its path, or with a policy for missing topics); None resolves it as
            `factaudit.knowledge.docdb.find_knowledge_database` says.
        llm: decomposes, and verifies where the verifier is an LLM's; neither: not needed.
        verifiers: ``retrieval`` (the LLM with passages), ``no-context`` (the LLM alone), or any evaluator (``npm``,
            ``rouge2``, ``{"minicheck": {...}}``, one of your own). The first one's score is *the* score.
        decomposer: another LLM for decomposing.
        retriever: how passages are chosen.
        npm: the evaluator ``npm``, to combine with the LLM's verdict.
        options: `FactScoreOptions`.
    """

    OPTIONS: ClassVar[type[FactScoreOptions]] = FactScoreOptions
    #: Whether a knowledge source is looked for where none is given.
    needs_knowledge: ClassVar[bool] = True

    def __init__(
        self,
        knowledge: TopicLookup | str | Path | None = None,
        llm: ChatModelProtocol | None = None,
        *,
        verifiers: Sequence[Any] = (RETRIEVAL,),
        decomposer: ChatModelProtocol | None = None,
        retriever: PassageRetriever | None = None,
        npm: Evaluator | None = None,
        **options: Any,
    ) -> None:
        self.options: Any = check_yaml_settings(self.OPTIONS, options)
        self.llm, self.decomposer = llm, decomposer
        self.verifiers = [self._make_verifier(spec, npm) for spec in verifiers]
        check_unique_evaluator_names(self.verifiers)
        if not self.verifiers:
            raise UsageError("an engine needs a verifier")
        if npm is not None and RETRIEVAL not in verifiers:
            raise UsageError(f"the nonparametric probability is combined with the verifier {RETRIEVAL!r}; add it")
        self.retriever = retriever or PassageRetriever()
        self.prompt = DecompositionPrompt.load(self.options.demos, self.options.decontextualize)
        self.knowledge: TopicLookup | None = None
        if isinstance(knowledge, TopicLookup):
            self.knowledge = knowledge
        elif knowledge is not None or (self.needs_knowledge and any(map(_reads_pages, self.verifiers))):
            self.knowledge = TopicLookup(DocDB(find_knowledge_database(knowledge)))

    def _make_verifier(self, spec: Any, npm: Evaluator | None) -> NamedEvaluator:
        if not is_own_verifier(spec):
            return make_named_evaluator(spec)
        if self.llm is None:
            raise UsageError(f"the verifier {spec!r} needs an LLM; without one take, say, unigram")
        npm = npm if spec == RETRIEVAL else None
        return make_named_evaluator(
            FactVerifier(self.llm, spec == RETRIEVAL, self.options.parser, self.options.logprobs, npm)
        )

    @property
    def names(self) -> list[str]:
        """The verifiers' names in the verdicts table; the first one's score is *the* score."""
        return [one.name for one in self.verifiers]

    @property
    def signatures(self) -> dict[str, str]:
        """By verifier's name every setting that can change a verdict, on one line."""
        asked = self.decomposer or self.llm
        facts = {
            "decomposer": asked.signature if asked else None,
            "demos": self.prompt.signature,
            **self.options.model_dump(include={"abstain", "max_facts"}),
            "retrieval": self.retriever.signature,
            "missing": self.knowledge.missing if self.knowledge else None,
            "knowledge": self.knowledge.db.signature if self.knowledge else None,
        }
        return {one.name: f"{one.signature}|{make_signature('facts', facts)}" for one in self.verifiers}

    @property
    def settings(self) -> Row:
        """What changes figures, but no verdict."""
        return self.options.model_dump(include={"gamma", "irrelevant"})

    @property
    def callers(self) -> list[tuple[str, Any]]:
        """Those who ask models, each with the name under which the run lists its calls."""
        own = [one.name for one in self.verifiers if isinstance(one.evaluator, FactVerifier)]
        found: list[tuple[str, Any]] = [(own[0] if own else "decomposer", self.llm), ("decomposer", self.decomposer)]
        found += [(one.name, part) for one in self.verifiers for part, _ in walk_evaluator_members(one.evaluator)]
        return [(name, one) for name, one in found if one is not None]

    def score(
        self, responses: Sequence[Response], *, journal: str | Path | None = None, progress: bool = False
    ) -> ScoredFacts:
        """The facts of responses with the verifiers' verdicts, each step for all responses at once.

        Args:
            journal: a folder where verdicts are written down, so that a run that was killed and is started again does
                not repeat them. (Replies of a language model are in its client's cache.)
            progress: show progress bars (on a terminal only).

        Raises `UsageError` where something is to be had from an LLM or a knowledge source that is not there, and
        `InputError` for topics without a page under the policy ``error``, both before any call.
        """
        if not responses:
            raise UsageError("there is no response to score")
        if self.decomposer is None and self.llm is None and any(one.facts is None for one in responses):
            raise UsageError("facts are to be had from the responses: that needs an LLM (or give the facts)")
        made = self.make_claims(ask_for_topics(responses, self.llm), progress)
        return ScoredFacts(made.table, self.verify(made, journal, progress), made.notes)

    def make_claims(self, responses: Sequence[Response], progress: bool = False) -> FactClaims:
        """Steps 1 and 2: the atomic facts with their passages."""
        if self.knowledge:
            self.knowledge.check_topics(one.topic for one in responses if one.abstained is not True)
        speaking = [one.topic for one in responses if not self.abstains(one)]
        pages = find_topic_pages(speaking, self.knowledge)
        nowhere = Candidate(None, reason="no knowledge source")
        candidates = [pages.get(one.topic, nowhere) for one in responses]
        texts = [one.output for one in responses]
        # 1. Atomic facts.
        made = self.find_facts(responses, texts, candidates if self.knowledge else (), progress)
        # 2. Passages.
        decomposed = [
            DecomposedResponse(one, facts, [page]) for one, facts, page in zip(responses, made, candidates, strict=True)
        ]
        return build_claims(decomposed, self.retriever, self.options.dataset, self.options.irrelevant)

    def abstains(self, response: Response) -> bool:
        """Whether a response abstains: as its file says, else as the detector finds."""
        if response.abstained is not None:
            return response.abstained
        return is_abstaining_response(response.output, self.options.abstain)

    def find_facts(
        self,
        responses: Sequence[Response],
        texts: Sequence[str],
        candidates: Sequence[Candidate] = (),
        progress: bool = False,
        unique_by_sentence: bool = False,
    ) -> list[Decomposition]:
        """The facts of responses: given ones, or a model's; none where a response abstains.

        candidates: the pages of the topics. Where there is none, and all verifiers would read it, finding facts would
        be paid for in vain: each sentence stands for its facts, unscored.
        """
        all_read_pages = all(map(_reads_pages, self.verifiers))
        found: dict[int, Decomposition] = {}
        for at, (one, text) in enumerate(zip(responses, texts, strict=True)):
            if self.abstains(one):
                found[at] = Decomposition(tuple(split_for_decomposition(text)), abstained=True)
            elif one.facts is not None:
                whole = (text,) if all(fact.sentence is None for fact in one.facts) else None
                given = one.sentences or whole or tuple(split_for_decomposition(text))
                facts = tuple(replace(fact, sentence=0) for fact in one.facts) if len(given) == 1 else one.facts
                found[at] = Decomposition(given, facts)
            elif candidates and candidates[at].page is None and all_read_pages:
                _, _, status, reason = candidates[at]
                sentences, _ = split_response(text)
                facts = tuple(leave_undecomposed(two, n, status, reason) for n, two in enumerate(sentences))
                found[at] = Decomposition(tuple(sentences), facts)
        asked = [at for at in range(len(responses)) if at not in found]
        if (llm := self.decomposer or self.llm) is not None:
            options = {"max_facts": self.options.max_facts, "unique_by_sentence": unique_by_sentence}
            made = decompose([texts[at] for at in asked], llm, self.prompt, progress=progress, **options)
            found.update(zip(asked, made, strict=True))
        return [found[at] for at in range(len(responses))]

    def verify(self, made: FactClaims, journal: str | Path | None = None, progress: bool = False) -> pd.DataFrame:
        """Step 3: a verdict per fact and verifier.

        A fact without a page, or whose sentence was not decomposed, is put to nobody: it is unscored, with the reason.
        """
        facts = made.table[made.table["claim"].notna()]
        if facts.empty:
            return validate_verdicts(pd.DataFrame([{"claim_id": "-", "evaluator": "-", "prediction": 1}])).iloc[:0]
        verifiers = []
        for one in self.verifiers:
            unasked = made.undecomposed | (made.without_page if _reads_pages(one) else {})
            verifiers.append(replace(one, evaluator=_AskedWherePossible(one.evaluator, unasked)))
        return judge(facts, verifiers, journal=journal, progress=progress)


def _reads_pages(verifier: NamedEvaluator) -> bool:
    """Whether a verifier reads a knowledge source: all do, but the LM alone."""
    return not isinstance(verifier.evaluator, FactVerifier) or verifier.evaluator.with_passages
