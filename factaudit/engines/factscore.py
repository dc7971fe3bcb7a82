"""FActScore: what share of a text's atomic facts does a knowledge source support? (Min et al. 2023)

`FactScorer.score_responses` goes through the four steps of the paper:

1. *Atomic facts.* A model splits each sentence of a response into short sentences that state one thing each (§3.1; the
   prompt: `factaudit.engines.decompose`). A response that declines to answer has none (`factaudit.engines.abstention`).
2. *Passages.* Of the topic's page, the k passages nearest to each fact (§4.1; `factaudit.engines.passages`).
3. *Verification.* Each fact is put to an evaluator LM (§4.1): with its passages ("Retrieve→LM"), alone ("No-context
   LM"), or to a nonparametric masked model ("NP"), also combined ("Retrieve→LM+NP"). `FactVerifier` has the prompts and
   how replies are read. Any other evaluator may verify as well.
4. *Score.* Of a response: the share of its facts that are supported, times exp(1 - γ/n) where it has fewer than γ = 10
   facts. FActScore is the mean over the responses that did not abstain (`factaudit.arrays.response_facts`).
"""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from factaudit.audit.core.result_rows import Row
from factaudit.engines.abstention import does_response_abstain
from factaudit.engines.conversations import ask_for_topics, read_conversation_turns
from factaudit.engines.decompose import (
    Decomposition,
    DecompositionPrompt,
    Sentence,
    decompose_texts,
    leave_undecomposed,
    make_json_reply_params,
    split_for_decomposition,
)
from factaudit.engines.factscore_report import ScoredResponses, report_factscore
from factaudit.engines.nonparametric import NonparametricModel
from factaudit.engines.options import FactScoreOptions
from factaudit.engines.passages import Candidate, FactContext, FactRecord, build_claims_table, retrieve_passages
from factaudit.engines.responses import Response, make_response
from factaudit.errors import UsageError
from factaudit.evaluators.base import Claim, Verdict
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
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables import merge_verdict_tables, validate_verdicts
from factaudit.text.stated_verdicts import make_answer_parser, read_stated_verdict

# ------------------------------------------------------------------------------------------------- the prompts


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


def make_verification_request(prompt: str, logprobs: bool = True, in_json: bool = False) -> ChatRequest:
    """A verification prompt as one user message, with the sampling parameters; in_json: the reply is in JSON."""
    params: dict[str, Any] = {"temperature": 0.0, "max_tokens": 50}
    if logprobs:
        params |= {"logprobs": True, "top_logprobs": 5}
    if in_json:
        params |= make_json_reply_params("answer", {"type": "string", "enum": ["True", "False"]})
    return ChatRequest(({"role": "user", "content": prompt},), params)


# ------------------------------------------------------------------------------------------- reading the replies

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


def parse_verification_reply(reply: ChatReply, parser: str = "strict", claim_id: str = "") -> Verdict:
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
    return Verdict(claim_id, compute_true_token_probability(answer.tokens, prediction), prediction, "ok", reply.text)


def compute_true_token_probability(tokens: Sequence[ChatReplyToken] | None, prediction: int) -> float | None:
    """P(True) / (P(True) + P(False)) at the first token that says what was predicted.

    None where the server gave none, and where it would say the opposite of the prediction (a token that was drawn
    though it was the less likely): a score never contradicts the prediction that stands beside it.
    """
    for token in tokens or ():
        if _parse_token(token.text) != prediction:
            continue
        mass = [0.0, 0.0]
        for text, logprob in ({token.text: token.logprob} | dict(token.alternatives)).items():
            if (said := _parse_token(text)) is not None:
                mass[said] += math.exp(logprob)
        score = min(1.0, mass[1] / sum(mass)) if sum(mass) > 0 else None
        return score if score is not None and (score > 0.5) == bool(prediction) else None
    return None


def _parse_token(token: str) -> int | None:
    return {"true": 1, "false": 0}.get(token.strip(string.punctuation + string.whitespace).lower())


# ------------------------------------------------------------------------------------------------- who verifies

#: FActScore's own verifiers, and another name of the first; every other one is an evaluator.
RETRIEVAL, NO_CONTEXT, NONPARAMETRIC = "retrieval", "no-context", "npm"
_OWN_VERIFIERS = {RETRIEVAL: RETRIEVAL, "llm": RETRIEVAL, NO_CONTEXT: NO_CONTEXT, NONPARAMETRIC: NONPARAMETRIC}


def is_own_verifier(spec: Any) -> bool:
    """Whether a verifier is FActScore's own, and no other evaluator."""
    return isinstance(spec, str) and spec in _OWN_VERIFIERS


@dataclass(frozen=True)
class FactVerifier:
    """The evaluator LM of FActScore, with passages or alone; it judges facts as any evaluator judges claims.

    npm: also put what the LM finds true to the nonparametric model, which has the last word. contexts: what each claim
    is checked against, by its id.
    """

    llm: ChatModelProtocol
    with_passages: bool = True
    parser: str = "strict"
    logprobs: bool = True
    in_json: bool = False
    npm: NonparametricModel | None = None
    contexts: Mapping[str, FactContext] = field(default_factory=dict)

    @property
    def verdict_name(self) -> str:
        """As the original's names: "retrieval+ChatGPT"."""
        model = str(getattr(self.llm, "model", None) or "llm")
        return f"{RETRIEVAL if self.with_passages else NO_CONTEXT}+{model}" + ("+npm" if self.npm else "")

    @property
    def signature(self) -> str:
        settings: dict[str, Any] = {"llm": self.llm.signature, "parser": self.parser, "logprobs": self.logprobs}
        settings |= {"json": True} if self.in_json else {}
        settings |= {"npm": self.npm.signature} if self.npm else {}
        return make_signature(RETRIEVAL if self.with_passages else NO_CONTEXT, settings)

    @property
    def cache_server(self) -> str:
        """The server as the cache's keys have it."""
        return getattr(self.llm, "cache_server", "")

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        for asked, reply in ask_all(self.llm, self._make_requests(claims)):
            if self.in_json and "".join(token.text for token in reply.tokens or ()) != reply.text:
                reply = replace(reply, tokens=None)  # llama.cpp gives those that its grammar did not let pass
            for claim in asked:
                yield self._combine_with_npm(claim, parse_verification_reply(reply, self.parser, claim.claim_id))

    def _make_requests(self, claims: Iterable[Claim]) -> Iterator[tuple[list[Claim], ChatRequest]]:
        if self.with_passages:
            for claim in claims:
                page, passages = self.contexts[claim.claim_id]
                yield (
                    [claim],
                    self._make_request(make_retrieval_prompt(claim.topic or "", page.title, passages, claim.claim)),
                )
            return
        # Without context, a fact of several people is one question.
        same: dict[str, list[Claim]] = {}
        for claim in claims:
            same.setdefault(claim.claim, []).append(claim)
        for fact, members in same.items():
            yield members, self._make_request(make_no_context_prompt(fact))

    def _make_request(self, prompt: str) -> ChatRequest:
        return make_verification_request(prompt, self.logprobs, self.in_json)

    def _combine_with_npm(self, claim: Claim, verdict: Verdict) -> Verdict:
        """As in the original, the probability is looked at only where the LM says True."""
        if self.npm is None or verdict.prediction != 1:
            return verdict
        page = self.contexts[claim.claim_id].page
        probability = self.npm.compute_fact_probability(page, claim.topic or "", claim.claim)
        if probability is None:  # no word to ask for: the LM's verdict stands
            return replace(verdict, raw=f"{verdict.raw}\n[npm undefined]")
        supported = probability > self.npm.threshold
        # P(True) is no score for a fact that was found unsupported in spite of it.
        score = verdict.score if supported else None
        return replace(verdict, prediction=int(supported), score=score, raw=f"{verdict.raw}\n[npm {probability:.4f}]")


def make_verifiers(
    specs: Sequence[Any], llm: ChatModelProtocol | None, options: FactScoreOptions, npm: NonparametricModel | None
) -> list[NamedEvaluator]:
    """The verifiers in order, each with its name in the verdicts table. Raises `UsageError` for what cannot work."""
    if not specs:
        raise UsageError("an engine needs a verifier")
    found = []
    for spec in specs:
        own = _OWN_VERIFIERS.get(spec) if isinstance(spec, str) else None
        if own == NONPARAMETRIC:
            found.append(NamedEvaluator(NONPARAMETRIC, npm or NonparametricModel()))
        elif own is None:
            found.append(make_named_evaluator(spec))
        elif llm is None:
            raise UsageError(f"the verifier {spec!r} needs an LLM; without one take, say, unigram")
        else:
            told = options.parser, options.logprobs, options.prompts == "json"
            verifier = FactVerifier(llm, own == RETRIEVAL, *told, npm if own == RETRIEVAL else None)
            found.append(NamedEvaluator(verifier.verdict_name, verifier))
    check_unique_evaluator_names(found)
    if npm is not None and not any(
        isinstance(spec, str) and _OWN_VERIFIERS.get(spec) in (RETRIEVAL, NONPARAMETRIC) for spec in specs
    ):
        raise UsageError(f"the nonparametric probability is combined with the verifier {RETRIEVAL!r}; add it")
    return found


def reads_pages(verifier: NamedEvaluator) -> bool:
    """Whether a verifier reads a knowledge source: all do, but the LM alone."""
    return not isinstance(verifier.evaluator, FactVerifier) or verifier.evaluator.with_passages


def verify_facts(
    claims: pd.DataFrame,
    records: Sequence[FactRecord],
    verifiers: Sequence[NamedEvaluator],
    journal: str | Path | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """A verdict per fact and verifier, the verifiers in their order.

    A fact without a page, or whose sentence was not decomposed, is put to nobody: it is unscored, with the reason.
    """
    facts = claims[claims["claim"].notna()]
    contexts: dict[str, FactContext] = {}
    unasked: dict[str, Row] = {}
    has_fact: dict[str, bool] = {}
    for record in records:
        for claim_id, fact, candidate in record.iterate_claims():
            has_fact[claim_id] = record.decomposition.facts[fact].failure_status is None
            if (context := record.contexts[fact][candidate]) is not None:
                contexts[claim_id] = context
            else:
                status, reason = record.explain_missing_verdict(fact, candidate)
                unasked[claim_id] = {"claim_id": claim_id, "prediction": None, "status": status, "raw": reason}
    tables = []
    for verifier in verifiers:
        askable = facts["claim_id"].map(contexts.__contains__ if reads_pages(verifier) else has_fact.__getitem__)
        asked, rest = facts[askable.to_numpy(dtype=bool)], facts["claim_id"][~askable.to_numpy(dtype=bool)]
        if isinstance(verifier.evaluator, FactVerifier | NonparametricModel):
            verifier = replace(verifier, evaluator=replace(verifier.evaluator, contexts=contexts))
        parts = [judge(asked, [verifier], journal=journal, progress=progress)] if len(asked) else []
        if len(rest):
            rows = [unasked[claim_id] | {"evaluator": verifier.name} for claim_id in rest]
            parts.append(validate_verdicts(pd.DataFrame(rows), source=verifier.name))
        if len(parts) > 1:
            parts = [merge_verdict_tables(parts).set_index("claim_id").loc[facts["claim_id"]].reset_index()]
        tables += parts
    nothing = validate_verdicts(pd.DataFrame([{"claim_id": "-", "evaluator": "-", "prediction": 1}])).iloc[:0]
    return merge_verdict_tables(tables) if tables else nothing


# --------------------------------------------------------------------------------------------------- the pipeline


class FactScorer:
    """FActScore of responses.

    >>> scorer = FactScorer("wiki.db", Client("gpt-4o-mini"))  # doctest: +SKIP
    >>> scorer.score(["Ada Lovelace"], ["Ada Lovelace was a mathematician."])["score"]  # doctest: +SKIP

    Args:
        knowledge: a knowledge source (its path, or with a policy for missing topics); None resolves it as
            `factaudit.knowledge.docdb.find_knowledge_database` says.
        llm: decomposes, and verifies where the verifier is an LLM's; neither: not needed.
        verifiers: ``retrieval`` (the LLM with passages; also ``llm``), ``no-context`` (the LLM alone), ``npm`` (the
            nonparametric probability alone), or any evaluator (``rouge2``, ``{"minicheck": {...}}``, one of your own).
            The first one's score is *the* score; the others stand beside it.
        decomposer: another LLM for decomposing.
        retriever: how passages are chosen.
        npm: combine the LLM's verdict with a nonparametric probability.
        replicates, seed, confidence: of the bootstrap intervals over responses.
        options: `factaudit.engines.options.FactScoreOptions`.
    """

    #: The block of an experiment; of its report.
    name: ClassVar[str] = "factscore"
    title: ClassVar[str] = "FActScore"
    OPTIONS: ClassVar[type[FactScoreOptions]] = FactScoreOptions
    #: Whether a knowledge source is looked for where none is given.
    needs_knowledge: ClassVar[bool] = True

    def __init__(
        self,
        knowledge: TopicLookup | str | Path | None = None,
        llm: ChatModelProtocol | None = None,
        *,
        verifiers: str | Mapping[str, Any] | Sequence[Any] = (RETRIEVAL,),
        decomposer: ChatModelProtocol | None = None,
        retriever: PassageRetriever | None = None,
        npm: NonparametricModel | None = None,
        replicates: int = 2000,
        seed: int = 0,
        confidence: float = 0.95,
        **options: Any,
    ) -> None:
        self.options: Any = check_yaml_settings(self.OPTIONS, options)
        self.llm, self.decomposer = llm, decomposer
        specs = [verifiers] if isinstance(verifiers, str | Mapping) else list(verifiers)
        self.verifiers = make_verifiers(specs, llm, self.options, npm)
        self.retriever = retriever or PassageRetriever()
        self.prompt = DecompositionPrompt.load(self.options.demos, self.options.decontextualize, self.options.prompts)
        self.replicates, self.seed, self.confidence = replicates, seed, confidence
        self.knowledge: TopicLookup | None = None
        if isinstance(knowledge, TopicLookup):
            self.knowledge = knowledge
        elif knowledge is not None or (self.needs_knowledge and any(map(reads_pages, self.verifiers))):
            self.knowledge = TopicLookup(DocDB(find_knowledge_database(knowledge)))

    @property
    def names(self) -> list[str]:
        """The evaluators' names in the verdicts table, in the order of ``verifiers``."""
        return [one.name for one in self.verifiers]

    @property
    def signatures(self) -> dict[str, str]:
        """For each name, every setting that can change a verdict, on one line."""
        asked = self.decomposer or self.llm
        facts = {
            "decomposer": asked.signature if asked else None,
            "demos": self.prompt.signature,
            **self.options.model_dump(include={"abstain", "max_facts", "min_characters"}),
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
    def intervals(self) -> ClusterBootstrap | None:
        """How intervals are made; None without replicates."""
        if not self.replicates:
            return None
        return ClusterBootstrap(replicates=self.replicates, seed=self.seed, confidence=self.confidence)

    @property
    def counted_clients(self) -> list[tuple[str, Any]]:
        """The clients that count their calls (``usage``), each with the name under which the run lists them."""
        asking = [one.name for one in self.verifiers if isinstance(one.evaluator, FactVerifier)]
        found: list[tuple[str, Any]] = [(asking[0] if asking else "decomposer", self.llm)]
        found.append(("decomposer", self.decomposer))
        found += [(one.name, part) for one in self.verifiers for part, _ in walk_evaluator_members(one.evaluator)]
        return [(name, one) for name, one in found if getattr(one, "usage", None) is not None]

    def score(self, topics: Sequence[str], outputs: Sequence[str], **options: Any) -> Row:
        """Score texts; topic and text at the same position belong together. ``options``: of `score_responses`.

        Returns a plain dictionary: the summary's figures (score, init_score, respond_ratio, num_facts_per_response,
        ...) and ``responses``, one per text in order, each with its sentences and facts.
        """
        if isinstance(topics, str) or isinstance(outputs, str) or len(topics) != len(outputs):
            raise UsageError("topics and outputs are two lists of the same length")
        seen: dict[tuple[str, str], int] = {}
        responses = []
        for topic, output in zip(topics, outputs, strict=True):
            seen[topic, output] = position = seen.get((topic, output), -1) + 1
            responses.append(make_response(topic, output, position=position))
        scored = self.score_responses(responses, **options)
        return {**scored.summary, "responses": scored.responses}

    def score_conversation(self, turns: Sequence[Mapping[str, Any]], topic: str | None = None, **options: Any) -> Row:
        """Score every turn of the assistant's (or therapist's) in a conversation of ``{role, content, [topic]}`` turns.

        A turn's topic is its own, else ``topic``, else the LLM is asked for the title of the page that it is about.
        Returns what `score` does, and ``left_out``: the numbers (from 1) of the turns too short to say anything. A turn
        in which no fact is found has no score (null).
        """
        responses, left_out = read_conversation_turns(turns, topic)
        scored = self.score_responses(responses, **options)
        return {**scored.summary, "responses": scored.responses, "left_out": left_out}

    def score_responses(
        self, responses: Sequence[Response], *, journal: str | Path | None = None, progress: bool = False
    ) -> ScoredResponses:
        """Score responses, each step for all of them at once.

        Args:
            journal: a folder where verdicts are written down, so that a run that was killed and is started again does
                not repeat them. (Replies of a language model are in its client's cache.)
            progress: show progress bars (on a terminal only).

        Raises `UsageError` where something is to be had from an LLM or a knowledge source that is not there, and
        `InputError` for topics without a page under the policy ``error``, both before any call.
        """
        self.check_responses(responses)
        if any(one.conversation_so_far for one in responses):
            responses = ask_for_topics(responses, self.llm)
        speaking = [one for one in responses if not does_response_abstain(one, self.options.abstain)]
        if self.knowledge:
            self.knowledge.check_topics(one.topic for one in responses if one.abstained is not True)
        topics = list(dict.fromkeys(one.topic for one in speaking))
        with ThreadPoolExecutor(8) as pool:  # Wikipedia's pages take a while each
            pages = dict(zip(topics, pool.map(self._find_page, topics), strict=True))
        nowhere = Candidate(None, reason="no knowledge source")
        # Where nobody could verify a fact, finding the facts would be paid for in vain.
        in_vain = {topic for topic, page in pages.items() if page.page is None} if self.knowledge else set()
        in_vain = in_vain if all(map(reads_pages, self.verifiers)) else set()
        texts = [one.output for one in responses]
        # 1. Atomic facts.
        decompositions = self.decompose(responses, texts, progress, {topic: pages[topic] for topic in in_vain})
        # 2. Passages.
        records = [
            retrieve_passages(FactRecord(one, made, (pages.get(one.topic, nowhere),)), self.retriever)
            for one, made in zip(responses, decompositions, strict=True)
        ]
        claims = build_claims_table(records, self.options.dataset, self.options.irrelevant)
        # 3. Verification.
        verdicts = verify_facts(claims, records, self.verifiers, journal, progress)
        # 4. Score.
        return report_factscore(records, claims, verdicts, self)

    def check_responses(self, responses: Sequence[Response]) -> None:
        """Raise `UsageError` where there is nothing to score, or nobody to find the facts."""
        if not responses:
            raise UsageError("there is no response to score")
        if self.decomposer is None and self.llm is None and any(one.facts is None for one in responses):
            raise UsageError("facts are to be had from the responses: that needs an LLM (or give the facts)")

    def decompose(
        self,
        responses: Sequence[Response],
        texts: Sequence[str],
        progress: bool = False,
        in_vain: Mapping[str, Candidate] | None = None,
        **options: Any,
    ) -> list[Decomposition]:
        """The facts of responses: given ones, or a model's; none where a response abstains.

        in_vain: topics of which no fact could be verified, with the reason: each of their sentences stands for its
        facts, unscored. options: of `decompose_texts`.
        """
        found: dict[int, Decomposition] = {}
        for at, (one, text) in enumerate(zip(responses, texts, strict=True)):
            if does_response_abstain(one, self.options.abstain):
                found[at] = Decomposition(True, tuple(map(Sentence, split_for_decomposition(text))))
            elif one.facts is not None:
                whole = (text,) if all(fact.sentence is None for fact in one.facts) else None
                given = one.sentences or whole or split_for_decomposition(text)
                facts = tuple(replace(fact, sentence=0) for fact in one.facts) if len(given) == 1 else one.facts
                found[at] = Decomposition(False, tuple(map(Sentence, given)), facts)
            elif in_vain and one.topic in in_vain:
                found[at] = leave_undecomposed(text, in_vain[one.topic].status, in_vain[one.topic].reason)
        asked = [at for at in range(len(responses)) if at not in found]
        if asked:
            llm = self.decomposer or self.llm
            assert llm is not None
            limits = self.options.model_dump(include={"max_facts", "min_characters"})
            made = decompose_texts(
                [texts[at] for at in asked], llm, self.prompt, progress=progress, **limits, **options
            )
            found.update(zip(asked, made, strict=True))
        return [found[at] for at in range(len(responses))]

    def _find_page(self, topic: str) -> Candidate:
        if self.knowledge is None:
            return Candidate(None, reason="no knowledge source")
        page, status, reason = self.knowledge.find_page(topic)
        return Candidate(None if page is None else page.title, page, status, reason)
