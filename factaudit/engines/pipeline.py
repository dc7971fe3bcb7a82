"""From responses to claims and verdicts: decompose, group, find candidates, retrieve, verify; all responses at once.

An engine differs from another in what it does between the facts and the passages (`Engine.group`, `Engine.find`); all
that costs calls is written down response by response, so that a run that was killed goes on where it was.
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

from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.means import GAMMA, penalty
from factaudit.engines.abstain import DETECTORS, is_abstained
from factaudit.engines.decompose import MAX_FACTS, Demonstrations, decompose, sentences, undecomposed
from factaudit.engines.entities import EntityFilter
from factaudit.engines.facts import MIN_CHARACTERS
from factaudit.engines.npm import Npm
from factaudit.engines.progress import Bar, Calls
from factaudit.engines.records import Candidate, Decomposed, Found, Grouping, Made, Record, Scored, Sentence, Support
from factaudit.engines.responses import Fact, Response
from factaudit.engines.tables import claims_table, verdicts_table
from factaudit.engines.verify import RETRIEVAL, Verifiers
from factaudit.errors import UsageError, hint
from factaudit.files import Journal
from factaudit.knowledge.docdb import DocDB, Page, resolve
from factaudit.knowledge.retrieval import Retriever
from factaudit.knowledge.topics import Knowledge
from factaudit.llm.together import gather, run_sync, sessions
from factaudit.llm.types import LLM
from factaudit.signature import digest, signature

#: What becomes of facts that people labelled irrelevant: left out, or counted as not supported.
IRRELEVANT = ("exclude", "unsupported")

Row = dict[str, Any]
_RECORD = TypeAdapter(Record)


@dataclass
class Engine:
    """What FActScore and D-FActScore share.

    Args:
        knowledge: a knowledge source (its path, or with a policy for missing topics); None resolves it as
            `factaudit.knowledge.docdb.resolve` says.
        llm: decomposes, and verifies where the verifier is an LLM's. Not needed where facts are given and an
            evaluator verifies.
        verifiers: ``retrieval`` (the LLM with passages; also ``llm``), ``no-context`` (the LLM alone), ``npm`` (the
            nonparametric probability alone), or any evaluator (``rouge2``, ``{"minicheck": {...}}``, one of your own).
            The first one's score is *the* score; the others stand beside it.
        decomposer: another LLM for decomposing.
        demos: a file of demonstrations in place of our own.
        decontextualize: ask for facts whose subjects are no pronouns, as MF does (`Demonstrations`).
        entity_filter: a pipeline of spaCy (``en_core_web_sm``) by which the original filters facts; None: all stay.
        retriever: how passages are chosen.
        parser: ``original`` or ``strict`` (`factaudit.engines.verify`).
        abstain: ``generic``, ``perplexity_ai`` or ``none``.
        irrelevant: facts labelled IR: ``exclude`` (no label) or ``unsupported`` (label 0).
        npm: combine the LLM's verdict with a nonparametric probability.
        logprobs: ask the server for token probabilities, which become scores.
        dataset: the claims' dataset.
        window: responses in work at the same time, enough for 1,000 calls at a time; with the Batch API all are.
        gamma: the length penalty's; 0 turns it off.
        replicates, seed, confidence: of the bootstrap intervals over responses.
    """

    knowledge: Knowledge | str | Path | None = None
    llm: LLM | None = None
    verifiers: str | Mapping[str, Any] | Sequence[Any] = (RETRIEVAL,)
    decomposer: LLM | None = None
    demos: str | Path | None = None
    decontextualize: bool = False
    entity_filter: str | None = None
    retriever: Retriever = field(default_factory=Retriever)
    parser: str = "original"
    abstain: str = "generic"
    max_facts: int = MAX_FACTS
    min_characters: int = MIN_CHARACTERS
    irrelevant: str = "exclude"
    npm: Npm | None = None
    logprobs: bool = True
    dataset: str = "factscore"
    window: int = 256
    gamma: float = GAMMA
    replicates: int = 2000
    seed: int = 0
    confidence: float = 0.95
    #: Begins the name of the journal; of its report.
    name: ClassVar[str]
    title: ClassVar[str]
    #: Whether a knowledge source is looked for where none is given.
    needs_knowledge: ClassVar[bool]

    def __post_init__(self) -> None:
        for name, value, known in (
            ("abstain", self.abstain, DETECTORS),
            ("irrelevant", self.irrelevant, IRRELEVANT),
        ):
            if value not in known:
                raise UsageError(f"unknown {name} {value!r}{hint(value, known)}")
        for name, number in (("max_facts", self.max_facts), ("window", self.window)):
            if number < 1:
                raise UsageError(f"{name} is at least 1, found {number}")
        if isinstance(self.verifiers, str | Mapping):
            self.verifiers = (self.verifiers,)
        penalty(1, self.gamma)
        self._verifiers = Verifiers(self.verifiers, self.llm, self.parser, self.logprobs, self.npm)
        self._demonstrations = Demonstrations.load(self.demos, self.decontextualize)
        self._filter = None if self.entity_filter is None else EntityFilter(self.entity_filter)
        given = isinstance(self.knowledge, str | Path)
        if given or (self.knowledge is None and self.needs_knowledge and self._verifiers.need_passages):
            self.knowledge = Knowledge(DocDB(resolve(self.knowledge)))  # type: ignore[arg-type]

    # ------------------------------------------------------------------------------------ what engines differ in

    def text(self, response: Response) -> str:
        """What is decomposed."""
        return response.output

    def given_sentences(self, response: Response) -> tuple[str, ...]:
        """The sentences of given facts that name none."""
        return (response.output,)

    def prepare(self, responses: Sequence[Response], journal: str | Path | None = None) -> None:
        """Look at all responses before any call: what cannot work is said here. journal: as in `make`."""
        raise NotImplementedError

    async def group(self, response: Response, decomposed: Decomposed, calls: Calls) -> dict[str, Grouping]:
        """The groups of a response's facts, by grouper."""
        return {}

    def hopeless(self, response: Response) -> Candidate | None:
        """Why none of a response's facts could be verified, whatever they are: it is then not decomposed, which costs
        calls; None where they may."""
        return None

    def find(self, response: Response, decomposed: Decomposed) -> Found:
        """The pages that a response may be about."""
        raise NotImplementedError

    def work_settings(self) -> dict[str, Any]:
        """Settings of the engine's own that a record depends on."""
        return {}

    def score_responses(
        self, responses: Sequence[Response], *, journal: str | Path | None = None, progress: bool = False
    ) -> Scored:
        """`make`, and the figures of each response and of all."""
        raise NotImplementedError

    def audits(self) -> dict[str, Row]:
        """The audits that compute the engine's figures from its tables, with their options."""
        raise NotImplementedError

    def sections(self, scored: Scored) -> list[Row]:
        """What the report says besides the audits (`factaudit.results.Results.sections`)."""
        return []

    def tables(self, scored: Scored) -> dict[str, list[Row]]:
        """Rows of tables that only the engine can make, by name."""
        return {}

    def told(self, summary: Row) -> list[str]:
        """What a user wants to know at the end, a line each."""
        return []

    # ------------------------------------------------------------------------------------------------- the names

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
    def intervals(self) -> Intervals | None:
        """How intervals are made; None without replicates."""
        if not self.replicates:
            return None
        return Intervals(replicates=self.replicates, seed=self.seed, confidence=self.confidence)

    @property
    def callers(self) -> list[tuple[str, Any]]:
        """Whatever counts calls (``usage``), with the name under which its calls are told."""
        asked = next(iter(self._verifiers.asked), "decomposer")
        found = [(asked, self.llm), ("decomposer", self.decomposer), *self._verifiers.callers]
        return [(name, one) for name, one in found if getattr(one, "usage", None) is not None]

    # -------------------------------------------------------------------------------------------------- the work

    def make(self, responses: Sequence[Response], *, journal: str | Path | None = None, progress: bool = False) -> Made:
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
        self.prepare(responses, journal)
        records = self._records(responses, journal, progress)
        claims = claims_table(responses, records, self.dataset, self.irrelevant)
        verdicts = verdicts_table(claims, records, self._verifiers, journal, progress)
        return Made(tuple(responses), tuple(records), claims, verdicts)

    def _records(self, responses: Sequence[Response], journal: str | Path | None, progress: bool) -> list[Record]:
        """The records of the responses: from the journal where it has them, else made and written down."""
        keys = [digest(json.dumps(asdict(one), ensure_ascii=False)) for one in responses]
        wanted = set(keys)
        done: dict[str, Record] = {}

        def take(row: Any) -> None:
            if row["key"] in wanted:
                done[row["key"]] = _RECORD.validate_python(row["record"])

        log = None
        if journal is not None:
            log = Journal(Path(journal) / f"{self.name}-{digest(self._work_signature())}.jsonl", take)
        done = {key: record for key, record in done.items() if not record.retry}
        todo = [(key, one) for key, one in zip(keys, responses, strict=True) if key not in done]
        bar = Bar(progress, self.llm)
        known = sum(len(one.decomposed.facts) for one in done.values())
        bar.decomposed(known)
        bar.verified(known)

        def finished(key: str, record: Record) -> None:
            done[key] = record
            if log is not None:
                log.write({"key": key, "record": _RECORD.dump_python(record, mode="json")})

        try:
            if todo:
                gathers = any(getattr(one, "gathers", False) for one in (self.llm, self.decomposer))
                run_sync(self._work(iter(todo), len(todo) if gathers else self.window, finished, bar))
        finally:
            bar.close()
            if log is not None:
                log.close()
        return [done[key] for key in keys]

    async def _work(
        self, todo: Iterator[tuple[str, Response]], window: int, finished: Callable[[str, Record], None], bar: Bar
    ) -> None:
        async def worker() -> None:
            # The iterator is shared: each worker takes the next response, so that few are in memory at a time.
            for key, response in todo:
                record = await self._record(response, bar)
                finished(key, record)

        self._beginning, self._retrieving = asyncio.Lock(), asyncio.Lock()
        async with sessions(self.llm, self.decomposer):
            await gather(worker() for _ in range(window))

    async def _record(self, response: Response, bar: Bar) -> Record:
        """Everything about one response that costs anything."""
        calls = Calls(bar)
        decomposed = await self._decompose(response, calls)
        bar.decomposed(len(decomposed.facts))
        groupings = await self.group(response, decomposed, calls)
        found = await asyncio.to_thread(self.find, response, decomposed)
        record = replace(await self._retrieved(response.topic, decomposed, found), groupings=groupings)
        supports = await self._verify(response.topic, record, found.pages, calls, bar)
        lost = any(one.status == "error" for one in found.candidates)
        return replace(record, supports=supports, calls=calls.calls, retry=calls.failed or lost)

    async def _decompose(self, response: Response, calls: Calls) -> Decomposed:
        text = self.text(response)
        abstained = is_abstained(response.output, self.abstain) if response.abstained is None else response.abstained
        if abstained:
            return Decomposed(True, tuple(map(Sentence, sentences(text))))
        if response.facts is None and (hopeless := await asyncio.to_thread(self.hopeless, response)) is not None:
            return undecomposed(text, hopeless.status, hopeless.reason)
        if response.facts is not None:
            given = response.sentences if response.sentences is not None else self.given_sentences(response)
            facts = response.facts
            if len(given) == 1:
                facts = tuple(replace(fact, sentence=0) for fact in facts)
            return Decomposed(False, tuple(map(Sentence, given)), facts)
        llm = self.decomposer or self.llm
        assert llm is not None
        async with self._beginning:  # the first calls go out before the last response is split into sentences
            await asyncio.sleep(0)
        limits = {"max_facts": self.max_facts, "min_characters": self.min_characters}
        passing = None if self._filter is None else self._filter.passing
        return await decompose(text, partial(calls.ask, llm), self._demonstrations, passing=passing, **limits)

    async def _retrieved(self, topic: str, decomposed: Decomposed, found: Found) -> Record:
        """The record with its passages; one response's are ranked at a time, and in between calls are sent and read.

        Ranking words is Python's work: threads would take turns with the event loop, which waits its turn at each thing
        that it sends or reads. An embedding model lets the event loop go on.
        """
        async with self._retrieving:
            if self.retriever.method == "dense":
                return await asyncio.to_thread(self._retrieve, topic, decomposed, found)
            await asyncio.sleep(0)
            return self._retrieve(topic, decomposed, found)

    def _retrieve(self, topic: str, decomposed: Decomposed, found: Found) -> Record:
        """The record with the passages of each fact and candidate: texts once, in the order of first use."""
        numbers: dict[str, int] = {}

        def numbered(page: Page | None, fact: Fact) -> tuple[int, ...] | None:
            if page is None or fact.failed is not None:
                return None
            passages = self.retriever.retrieve(page, topic, fact.text)
            return tuple(numbers.setdefault(one, len(numbers)) for one in passages)

        docs = tuple(tuple(numbered(page, fact) for page in found.pages) for fact in decomposed.facts)
        return Record(decomposed, {}, found.candidates, found.source, found.n_left_out, tuple(numbers), docs)

    async def _verify(
        self, topic: str, record: Record, pages: Sequence[Page | None], calls: Calls, bar: Bar
    ) -> dict[str, tuple[Support, ...]]:
        """The verdicts of those verifiers that ask the LLM; evaluators come after, with a bar of their own."""
        facts = record.decomposed.facts

        async def one(name: str, fact: int, number: int) -> Support:
            page, passages = pages[number], record.doc(fact, number)
            if facts[fact].failed or (passages is None and self._verifiers.reads(name)):
                return record.missing(fact, number)
            assert self.llm is not None
            return await self._verifiers.verify(
                name, topic, page, passages or (), facts[fact].text, partial(calls.ask, self.llm)
            )

        async def of_fact(name: str, fact: int) -> list[Support]:
            # Without context, all candidates are one question.
            several = self._verifiers.reads(name)
            if not several or len(pages) == 1:
                given = [await one(name, fact, 0)]
            else:
                given = await gather(one(name, fact, number) for number in range(len(pages)))
            if name == self.names[0]:
                bar.verified()
            return given if several else given * len(pages)

        names = list(self._verifiers.asked)
        made = await gather(of_fact(name, fact) for name in names for fact in range(len(facts)))
        if self.names[0] not in names:
            bar.verified(len(facts))
        n = len(facts)
        return {
            name: tuple(support for given in made[n * i : n * (i + 1)] for support in given)
            for i, name in enumerate(names)
        }

    # -------------------------------------------------------------------------------------------- the signatures

    def _facts_signature(self) -> str:
        llm = self.decomposer or self.llm
        knowledge = self.knowledge if isinstance(self.knowledge, Knowledge) else None
        filtered = {} if self._filter is None else {"entities": self._filter.signature}
        return signature(
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
                **filtered,
                **self.work_settings(),
            },
        )

    def _work_signature(self) -> str:
        """All that a record depends on."""
        source = ""
        if isinstance(self.knowledge, Knowledge):
            # A large one is told by its size alone: here, on one machine, also by its date.
            source = f"{self.knowledge.db.signature}:{self.knowledge.db.path.stat().st_mtime_ns}"
        asked = [told for name, told in self._verifiers.signatures.items() if name in self._verifiers.asked]
        return "\n".join([*asked, self._facts_signature(), source])
