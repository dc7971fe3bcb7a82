"""How do responses become claims and verdicts? Decompose, group, find candidates, retrieve, verify; all at once.

Engines differ in what they do between the facts and the passages (`ScoringEngine.group_facts`, `find_candidates`).
Everything that costs calls is written down response by response, so that a run that was killed goes on where it was.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from pydantic import TypeAdapter

from factaudit.arrays.response_facts import IRRELEVANT_RULES
from factaudit.arrays.response_means import DEFAULT_GAMMA, response_length_penalty
from factaudit.audit.core.result_rows import Row
from factaudit.engines.abstention import ABSTENTION_DETECTORS, does_response_abstain
from factaudit.engines.fact_decomposition import (
    MAX_FACTS,
    DecompositionDemonstrations,
    decompose_into_facts,
    make_undecomposed_record,
    remove_facts_repeated_in_groups,
    split_sentences_for_decomposition,
)
from factaudit.engines.fact_passages import retrieve_fact_passages
from factaudit.engines.fact_tables import build_fact_claims_table, build_fact_verdicts_table
from factaudit.engines.fact_verification import RETRIEVAL, FactVerifierSet
from factaudit.engines.nonparametric_probability import NonparametricModel
from factaudit.engines.progress import FactProgressBar, ResponseCallCounter
from factaudit.engines.records import (
    CandidatePageRecord,
    CandidatePageSearchRecord,
    DecompositionRecord,
    FactGroupingRecord,
    ResponseRecord,
    ScoredResponseRecords,
    SentenceDecomposition,
    VerifiedResponseRecords,
)
from factaudit.engines.reply_facts import MIN_FACT_CHARACTERS
from factaudit.engines.reply_formats import JSON_PROMPTS, ORIGINAL_PROMPTS, PROMPT_STYLES
from factaudit.engines.responses import Response
from factaudit.errors import UsageError, suggest_known_name
from factaudit.evaluators.server_journals import open_server_journal
from factaudit.knowledge.docdb import DocDB, find_knowledge_database
from factaudit.knowledge.retrieval import PassageRetriever
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.llm.chat_types import ChatModelProtocol
from factaudit.llm.coroutine_runner import open_llm_clients_for_block, run_coroutine, run_coroutines_concurrently
from factaudit.signature import hash_texts, make_signature
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

_RECORD_ADAPTER = TypeAdapter(ResponseRecord)


@dataclass
class ScoringEngine:
    """What FActScore and D-FActScore share.

    Args:
        knowledge: a knowledge source (its path, or with a policy for missing topics); None resolves it as
            `factaudit.knowledge.docdb.find_knowledge_database` says.
        llm: decomposes, and verifies where the verifier is an LLM's; neither: not needed.
        verifiers: ``retrieval`` (the LLM with passages; also ``llm``), ``no-context`` (the LLM alone), ``npm`` (the
            nonparametric probability alone), or any evaluator (``rouge2``, ``{"minicheck": {...}}``, one of your own).
            The first one's score is *the* score; the others stand beside it.
        decomposer: another LLM for decomposing.
        demos: a file of demonstrations in place of our own.
        prompts: ``original``; for small models ``short`` or ``json`` (`factaudit.engines.reply_formats`).
        decontextualize: ask, in the decomposing prompt, for facts whose subjects are no pronouns, as MF does.
        retriever: how passages are chosen. parser: ``strict`` or ``original`` (`factaudit.engines.fact_verification`).
        abstain: ``declines``, ``original``, ``perplexity_ai`` or ``none``.
        irrelevant: facts labelled IR: ``exclude`` (no label) or ``unsupported`` (label 0).
        npm: combine the LLM's verdict with a nonparametric probability.
        logprobs: ask the server for token probabilities, which become scores.
        dataset: the claims' dataset.
        window: responses in work at the same time, enough for 1,000 calls at a time; with the Batch API all are.
        gamma: the length penalty's; 0 turns it off.
        replicates, seed, confidence: of the bootstrap intervals over responses.
    """

    knowledge: TopicLookup | str | Path | None = None
    llm: ChatModelProtocol | None = None
    verifiers: str | Mapping[str, Any] | Sequence[Any] = (RETRIEVAL,)
    decomposer: ChatModelProtocol | None = None
    demos: str | Path | None = None
    prompts: str = ORIGINAL_PROMPTS
    decontextualize: bool = False
    retriever: PassageRetriever = field(default_factory=PassageRetriever)
    parser: str = "strict"
    abstain: str = "declines"
    max_facts: int = MAX_FACTS
    min_characters: int = MIN_FACT_CHARACTERS
    irrelevant: str = "exclude"
    npm: NonparametricModel | None = None
    logprobs: bool = True
    dataset: str = "factscore"
    window: int = 256
    gamma: float = DEFAULT_GAMMA
    replicates: int = 2000
    seed: int = 0
    confidence: float = 0.95
    #: Begins the name of the journal; of its report.
    name: ClassVar[str]
    title: ClassVar[str]
    #: Whether a knowledge source is looked for where none is given; whether equal facts may be of two people.
    needs_knowledge: ClassVar[bool]
    groups_facts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, value, known in (
            ("abstain", self.abstain, ABSTENTION_DETECTORS),
            ("irrelevant", self.irrelevant, IRRELEVANT_RULES),
            ("prompts", self.prompts, PROMPT_STYLES),
        ):
            if value not in known:
                raise UsageError(f"unknown {name} {value!r}{suggest_known_name(value, known)}")
        for name, number in (("max_facts", self.max_facts), ("window", self.window)):
            if number < 1:
                raise UsageError(f"{name} is at least 1, found {number}")
        if isinstance(self.verifiers, str | Mapping):
            self.verifiers = (self.verifiers,)
        response_length_penalty(1, self.gamma)
        told = (self.parser, self.logprobs, self.npm, self.prompts == JSON_PROMPTS)
        self._verifiers = FactVerifierSet(self.verifiers, self.llm, *told)
        self._demonstrations = DecompositionDemonstrations.load(self.demos, self.decontextualize, self.prompts)
        given = isinstance(self.knowledge, str | Path)
        if given or (self.knowledge is None and self.needs_knowledge and self._verifiers.need_passages):
            self.knowledge = TopicLookup(DocDB(find_knowledge_database(self.knowledge)))  # type: ignore[arg-type]

    def get_scored_text(self, response: Response) -> str:
        """The text of a response that is decomposed."""
        return response.output

    def split_given_sentences(self, response: Response) -> tuple[str, ...]:
        """The sentences of a response whose given facts name none."""
        return (response.output,)

    def prepare_responses(self, responses: Sequence[Response]) -> None:
        """Look at all responses before any call: what cannot work is said here."""
        raise NotImplementedError

    async def group_facts(
        self, response: Response, decomposed: DecompositionRecord, calls: ResponseCallCounter
    ) -> dict[str, FactGroupingRecord]:
        """The groups of a response's facts, by grouper."""
        return {}

    def find_hopeless_reason(self, response: Response) -> CandidatePageRecord | None:
        """Why none of a response's facts could be verified, whatever they are: it is then not decomposed, which costs
        calls; None where they may."""
        return None

    def find_candidates(self, response: Response, decomposed: DecompositionRecord) -> CandidatePageSearchRecord:
        """The pages that a response may be about."""
        raise NotImplementedError

    def record_settings(self) -> dict[str, Any]:
        """The engine's own settings that a record depends on."""
        return {}

    def score_responses(
        self, responses: Sequence[Response], *, journal: str | Path | None = None, progress: bool = False
    ) -> ScoredResponseRecords:
        """`verify_responses`, and the figures of each response and of all."""
        raise NotImplementedError

    def audits(self) -> dict[str, Row]:
        """The audits that compute the engine's figures from its tables, with their options."""
        shown = {} if self.demos is None else {"demonstrations": str(self.demos)}
        return {"decomposition": dict(shown), "decomposition_scores": dict(shown)}

    def sections(self, scored: ScoredResponseRecords) -> list[Row]:
        """What the report says besides the audits (`factaudit.results.Results.sections`)."""
        return []

    def tables(self, scored: ScoredResponseRecords) -> dict[str, list[Row]]:
        """Rows of tables that only the engine can make, by name."""
        return {}

    def format_summary_lines(self, scored: ScoredResponseRecords) -> list[str]:
        """The lines that the command prints at its end."""
        return []

    @property
    def names(self) -> list[str]:
        """The evaluators' names in the verdicts table, in the order of ``verifiers``."""
        return self._verifiers.names

    @property
    def signatures(self) -> dict[str, str]:
        """For each name, every setting that can change a verdict, on one line."""
        return {name: f"{told}|{self._facts_signature()}" for name, told in self._verifiers.signatures.items()}

    @property
    def settings(self) -> Row:
        """What changes figures, but no verdict."""
        return {"gamma": self.gamma, "irrelevant": self.irrelevant}

    @property
    def intervals(self) -> ClusterBootstrap | None:
        """How intervals are made; None without replicates."""
        if not self.replicates:
            return None
        return ClusterBootstrap(replicates=self.replicates, seed=self.seed, confidence=self.confidence)

    @property
    def counted_clients(self) -> list[tuple[str, Any]]:
        """The clients that count their calls (``usage``), each with the name under which the run lists them."""
        asked = next(iter(self._verifiers.builtin_verifiers), "decomposer")
        found = [(asked, self.llm), ("decomposer", self.decomposer), *self._verifiers.counted_clients]
        return [(name, one) for name, one in found if getattr(one, "usage", None) is not None]

    def verify_responses(
        self, responses: Sequence[Response], *, journal: str | Path | None = None, progress: bool = False
    ) -> VerifiedResponseRecords:
        """Make the rows of responses, many at once.

        Args:
            journal: a folder where finished responses and verdicts are written down, so that a run that was killed
                and is started again does not repeat them (calls under way are in the LLM client's cache).
            progress: show progress bars (on a terminal only).

        Raises `UsageError` where something is to be had from an LLM or a knowledge source that is not there, and
        `InputError` for topics without a page under the policy ``error``, both before any call.
        """
        if not responses:
            raise UsageError("there is no response to score")
        if self.decomposer is None and self.llm is None and any(one.facts is None for one in responses):
            raise UsageError("facts are to be had from the responses: that needs an LLM (or give the facts)")
        self.prepare_responses(responses)
        records = self.make_records(responses, journal, progress)
        claims = build_fact_claims_table(responses, records, self.dataset, self.irrelevant)
        verdicts = build_fact_verdicts_table(claims, records, self._verifiers, journal, progress)
        return VerifiedResponseRecords(tuple(responses), tuple(records), claims, verdicts)

    def make_records(
        self, responses: Sequence[Response], journal: str | Path | None = None, progress: bool = False
    ) -> list[ResponseRecord]:
        """The records of the responses: from the journal where it has them, else made and written down."""
        keys = [hash_texts(json.dumps(asdict(one), ensure_ascii=False)) for one in responses]
        wanted = set(keys)
        done: dict[str, ResponseRecord] = {}

        def take(row: Any) -> None:
            if row["key"] in wanted:
                done[row["key"]] = _RECORD_ADAPTER.validate_python(row["record"])

        log = None
        if journal is not None:
            asked = (self.llm, self.decomposer)
            log = open_server_journal(journal, self._record_signature(), asked, take, prefix=f"{self.name}-")
        done = {key: record for key, record in done.items() if not record.needs_retry}
        todo = [(key, one) for key, one in zip(keys, responses, strict=True) if key not in done]
        bar = FactProgressBar(progress, self.llm)
        for count in (bar.add_decomposed_facts, bar.add_verified_facts):
            count(sum(len(one.decomposed.facts) for one in done.values()))

        def finished(key: str, record: ResponseRecord) -> None:
            done[key] = record
            if log is not None:
                log.write_row({"key": key, "record": _RECORD_ADAPTER.dump_python(record, mode="json")})

        try:
            if todo:
                gathers = any(getattr(one, "gathers", False) for one in (self.llm, self.decomposer))
                run_coroutine(self._process_responses(iter(todo), len(todo) if gathers else self.window, finished, bar))
        finally:
            bar.close()
            if log is not None:
                log.close()
        return [done[key] for key in keys]

    async def _process_responses(
        self,
        waiting_responses: Iterator[tuple[str, Response]],
        window: int,
        write_record: Callable[[str, ResponseRecord], None],
        bar: FactProgressBar,
    ) -> None:
        async def worker() -> None:
            # The iterator is shared: each worker takes the next response, so that few are in memory at a time.
            for key, response in waiting_responses:
                record = await self._make_record(response, bar)
                write_record(key, record)

        self._beginning, self._retrieving = asyncio.Lock(), asyncio.Lock()
        async with open_llm_clients_for_block(self.llm, self.decomposer):
            await run_coroutines_concurrently(worker() for _ in range(window))

    async def _make_record(self, response: Response, bar: FactProgressBar) -> ResponseRecord:
        """Everything about one response that costs anything."""
        calls = ResponseCallCounter(bar)
        decomposed = await self._decompose_response(response, calls)
        groupings = await self.group_facts(response, decomposed, calls)
        if response.facts is None:
            decomposed, groupings = remove_facts_repeated_in_groups(decomposed, groupings)
        bar.add_decomposed_facts(len(decomposed.facts))
        found = await asyncio.to_thread(self.find_candidates, response, decomposed)
        record = replace(await self._retrieve_in_turn(response.topic, decomposed, found), groupings=groupings)
        supports = await self._verifiers.verify_record(response.topic, record, found.pages, calls, bar)
        lost = any(one.status == "error" for one in found.candidates)
        return replace(record, supports=supports, calls=calls.n_calls, needs_retry=calls.has_failed_calls or lost)

    async def _decompose_response(self, response: Response, calls: ResponseCallCounter) -> DecompositionRecord:
        text = self.get_scored_text(response)
        if does_response_abstain(response, self.abstain):
            return DecompositionRecord(True, tuple(map(SentenceDecomposition, split_sentences_for_decomposition(text))))
        if response.facts is not None:
            given = response.sentences if response.sentences is not None else self.split_given_sentences(response)
            facts = response.facts
            if len(given) == 1:
                facts = tuple(replace(fact, sentence=0) for fact in facts)
            return DecompositionRecord(False, tuple(map(SentenceDecomposition, given)), facts)
        if (hopeless := await asyncio.to_thread(self.find_hopeless_reason, response)) is not None:
            return make_undecomposed_record(text, hopeless.status, hopeless.reason)
        llm = self.decomposer or self.llm
        assert llm is not None
        async with self._beginning:  # the first calls go out before the last response is split into sentences
            await asyncio.sleep(0)
        return await decompose_into_facts(
            text,
            partial(calls.ask, llm),
            self._demonstrations,
            unique_by_sentence=self.groups_facts,
            max_facts=self.max_facts,
            min_characters=self.min_characters,
        )

    async def _retrieve_in_turn(
        self, topic: str, decomposed: DecompositionRecord, found: CandidatePageSearchRecord
    ) -> ResponseRecord:
        """The record with its passages; one response's are ranked at a time, and in between calls are sent and read.

        Ranking words is Python's work: threads would take turns with the event loop, which waits its turn at each thing
        that it sends or reads. An embedding model lets the event loop go on.
        """
        async with self._retrieving:
            if self.retriever.method == "dense":
                return await asyncio.to_thread(self._retrieve_passages, topic, decomposed, found)
            await asyncio.sleep(0)
            return self._retrieve_passages(topic, decomposed, found)

    def _retrieve_passages(
        self, topic: str, decomposed: DecompositionRecord, found: CandidatePageSearchRecord
    ) -> ResponseRecord:
        return retrieve_fact_passages(self.retriever, topic, decomposed, found)

    def _facts_signature(self) -> str:
        llm = self.decomposer or self.llm
        knowledge = self.knowledge if isinstance(self.knowledge, TopicLookup) else None
        return make_signature(
            "facts",
            {
                "decomposer": None if llm is None else llm.signature,
                "demos": self._demonstrations.signature,
                "abstain": self.abstain,
                "max_facts": self.max_facts,
                "min_characters": self.min_characters,
                "retrieval": self.retriever.signature,
                "missing": None if knowledge is None else knowledge.missing,
                "knowledge": None if knowledge is None else knowledge.db.signature,
                **self.record_settings(),
            },
        )

    def _record_signature(self) -> str:
        """All that a record depends on but the servers."""
        source = ""
        if isinstance(self.knowledge, TopicLookup):
            # A large one is told by its size alone: here, on one machine, also by its date.
            source = f"{self.knowledge.db.signature}:{self.knowledge.db.path.stat().st_mtime_ns}"
        asked = [told for name, told in self._verifiers.signatures.items() if name in self._verifiers.builtin_verifiers]
        return "\n".join([*asked, self._facts_signature(), source])
