"""FActScore from texts to claims and verdicts: decompose, retrieve, verify, all responses at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.engines.factscore import score as scoring
from factaudit.engines.factscore import verify
from factaudit.engines.factscore.abstain import DETECTORS, is_abstained
from factaudit.engines.factscore.decompose import MAX_FACTS, MIN_CHARACTERS, Demonstrations, decompose
from factaudit.engines.factscore.npm import Npm
from factaudit.engines.factscore.progress import Bar, Count
from factaudit.engines.factscore.responses import Response, make_response
from factaudit.engines.factscore.tabulate import (
    claims_table,
    evaluator_verdicts,
    facts_of,
    no_verdicts,
    own_verdicts,
    response_rows,
)
from factaudit.errors import UsageError, hint
from factaudit.evaluators.judging import check_names, name_evaluator, parts
from factaudit.files import Journal
from factaudit.knowledge.docdb import DocDB, Page, resolve
from factaudit.knowledge.retrieval import Retriever
from factaudit.knowledge.topics import Knowledge
from factaudit.llm.together import gather, run_sync, sessions
from factaudit.llm.types import LLM, Request
from factaudit.signature import digest, signature
from factaudit.tables import merge_verdicts

#: The verifiers that put FActScore's own prompts to the LLM; every other one is an evaluator.
RETRIEVAL, NO_CONTEXT = "retrieval", "no-context"
#: What becomes of facts that people labelled irrelevant: left out, or counted as not supported.
IRRELEVANT = ("exclude", "unsupported")

Row = dict[str, Any]


@dataclass(frozen=True)
class Scored:
    """What came of it: the two tables, a row per response (with its sentences and facts), and the summary."""

    claims: pd.DataFrame
    verdicts: pd.DataFrame
    responses: list[Row]
    summary: Row


@dataclass
class FactScorer:
    """FActScore of responses (Min et al. 2023).

    >>> scorer = FactScorer("wiki.db", Client("gpt-4o-mini"))  # doctest: +SKIP
    >>> scorer.score(["Ada Lovelace"], ["Ada Lovelace was a mathematician."])["score"]  # doctest: +SKIP

    Args:
        knowledge: a knowledge source (its path, or with a policy for missing topics); None resolves it as
            `factaudit.knowledge.docdb.resolve` says.
        llm: decomposes, and verifies where the verifier is an LLM's. Not needed where facts are given and an
            evaluator verifies.
        verifiers: ``retrieval`` (the LLM with passages), ``no-context`` (the LLM alone), or any evaluator
            (``rouge2``, ``{"minicheck": {...}}``). The first one's score is *the* score; the others stand beside it.
        decomposer: another LLM for decomposing.
        demos: a file of demonstrations in place of our own.
        retriever: how passages are chosen.
        parser: ``original`` or ``strict`` (`factaudit.engines.factscore.verify`).
        abstain: ``generic``, ``perplexity_ai`` or ``none``.
        gamma: the length penalty's; 0 turns it off.
        irrelevant: facts labelled IR: ``exclude`` (no label) or ``unsupported`` (label 0).
        npm: combine the LLM's verdict with a nonparametric probability.
        logprobs: ask the server for token probabilities, which become scores.
        dataset: the claims' dataset.
        window: responses in work at the same time.
        replicates, seed, confidence: of the bootstrap intervals over responses.
    """

    knowledge: Knowledge | str | Path | None = None
    llm: LLM | None = None
    verifiers: Sequence[str | Mapping[str, Any]] = (RETRIEVAL,)
    decomposer: LLM | None = None
    demos: str | Path | None = None
    retriever: Retriever = field(default_factory=Retriever)
    parser: str = "original"
    abstain: str = "generic"
    gamma: float = scoring.GAMMA
    max_facts: int = MAX_FACTS
    min_characters: int = MIN_CHARACTERS
    irrelevant: str = "exclude"
    npm: Npm | None = None
    logprobs: bool = True
    dataset: str = "factscore"
    window: int = 128
    replicates: int = 2000
    seed: int = 0
    confidence: float = 0.95

    def __post_init__(self) -> None:
        for name, value, known in (
            ("parser", self.parser, verify.PARSERS),
            ("abstain", self.abstain, DETECTORS),
            ("irrelevant", self.irrelevant, IRRELEVANT),
        ):
            if value not in known:
                raise UsageError(f"unknown {name} {value!r}{hint(value, known)}")
        for name, number, least in (("max_facts", self.max_facts, 1), ("window", self.window, 1)):
            if number < least:
                raise UsageError(f"{name} is at least {least}, found {number}")
        scoring.penalty(1, self.gamma)
        if not self.verifiers:
            raise UsageError("FActScore needs a verifier")
        self._own = [one for one in self.verifiers if one in (RETRIEVAL, NO_CONTEXT)]
        self._evaluators = [name_evaluator(one) for one in self.verifiers if one not in (RETRIEVAL, NO_CONTEXT)]
        check_names(self._evaluators, taken=[self._name(str(one)) for one in self._own])
        if len(set(map(str, self.verifiers))) < len(self.verifiers):
            raise UsageError("a verifier is named twice")
        if self._own and self.llm is None:
            raise UsageError(f"the verifier {self._own[0]!r} needs an LLM")
        if self.npm is not None and RETRIEVAL not in self._own:
            raise UsageError(f"the nonparametric probability is combined with the verifier {RETRIEVAL!r}; add it")
        self._demonstrations = Demonstrations.load(self.demos)
        if any(one != NO_CONTEXT for one in self.verifiers) and not isinstance(self.knowledge, Knowledge):
            self.knowledge = Knowledge(DocDB(resolve(self.knowledge)))

    @property
    def names(self) -> list[str]:
        """The evaluators' names in the verdicts table, in the order of ``verifiers``."""
        evaluators = iter(self._evaluators)
        return [
            self._name(one) if isinstance(one, str) and one in self._own else next(evaluators).name
            for one in self.verifiers
        ]

    @property
    def signatures(self) -> dict[str, str]:
        """For each name, every setting that can change a verdict, on one line."""
        told = {self._name(str(one)): self._verifier_signature(str(one)) for one in self._own}
        return {**told, **{one.name: f"{one.signature}|{self._facts_signature()}" for one in self._evaluators}}

    @property
    def settings(self) -> Row:
        """What changes figures, but no verdict."""
        return {"gamma": self.gamma, "irrelevant": self.irrelevant}

    @property
    def callers(self) -> list[tuple[str, Any]]:
        """Whatever counts calls (``usage``), with the name under which its calls are told."""
        found: list[tuple[str, Any]] = [(self.names[0] if self._own else "decomposer", self.llm)]
        found.append(("decomposer", self.decomposer))
        found += [(one.name, part) for one in self._evaluators for part, _ in parts(one.evaluator)]
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

    def score_conversation(self, turns: Sequence[Mapping[str, str]], topic: str | None = None) -> Row:
        """Score the last assistant turn of a conversation of ``{role, content}`` turns.

        Without a ``topic``, the LLM is asked for the title of the page that the turn is about. Returns the response's
        row as a plain dictionary, with ``topic``.
        """
        said = [turn.get("content") or "" for turn in turns if turn.get("role") == "assistant"]
        if not said:
            raise UsageError("the conversation has no assistant turn")
        if not isinstance(said[-1], str):
            raise UsageError(f"the content of a turn is text, found {type(said[-1]).__name__}")
        if topic is None:
            topic = run_sync(self._ask_topic(turns))
        result: Row = self.score([topic], [said[-1]])["responses"][0]
        return result

    def score_responses(
        self, responses: Sequence[Response], *, journal: str | Path | None = None, progress: bool = False
    ) -> Scored:
        """Score responses, all at once.

        Args:
            journal: a folder where finished responses and verdicts are written down, so that a run that was killed
                and is started again does not repeat them (calls under way are in the LLM client's cache).
            progress: show a progress bar (on a terminal only).

        Raises `UsageError` where facts are to be had and there is no LLM, and `InputError` for topics without a page
        under the policy ``error``, both before any call.
        """
        if not responses:
            raise UsageError("there is no response to score")
        if self.decomposer is None and self.llm is None and any(one.given is None for one in responses):
            raise UsageError("facts are to be had from the responses: that needs an LLM (or give the facts)")
        if isinstance(self.knowledge, Knowledge):
            self.knowledge.check(one.topic for one in responses if one.abstained is not True)
        done: dict[str, Row] = {}

        def take(row: Row) -> None:
            done[row["key"]] = row["entry"]

        log = None
        if journal is not None:
            log = Journal(Path(journal) / f"factscore-{digest(self._work_signature())}.jsonl", take)
        keys = [digest(json.dumps(asdict(one), ensure_ascii=False)) for one in responses]
        entries: dict[str, Row] = {key: done[key] for key in keys if key in done and not done[key]["retry"]}
        todo = [(key, one) for key, one in zip(keys, responses, strict=True) if key not in entries]
        done.clear()
        bar = Bar(progress, self.llm)
        try:
            known = sum(len(one["facts"]) for entry in entries.values() for one in entry["sentences"])
            bar.decomposed(known)
            bar.verified(known)
            if todo:

                def finished(key: str, entry: Row) -> None:
                    entries[key] = entry
                    if log is not None:
                        log.write({"key": key, "entry": entry})

                run_sync(self._work(iter(todo), finished, bar))
        finally:
            bar.close()
            if log is not None:
                log.close()
        ordered = [entries[key] for key in keys]
        claims = claims_table(responses, ordered, self.dataset, self.irrelevant)
        verdicts = self._verdicts(claims, ordered, journal, progress)
        rows = response_rows(responses, ordered, verdicts, self.names, self.gamma)
        return Scored(claims, verdicts, rows, self.summarise(rows))

    def summarise(self, rows: Sequence[Row]) -> Row:
        """The first verifier's figures over response rows, the same per system and, if several, per verifier."""

        def told(name: str) -> Row:
            own = [row | row["evaluators"][name] for row in rows]
            options: Row = {"replicates": self.replicates, "seed": self.seed, "confidence": self.confidence}
            whole = scoring.summarise(own, **options)
            parts = scoring.by_system(own, **options)
            for row, members in ((whole, own), *((part, _of(own, part["system"])) for part in parts)):
                row["n_unparsed"] = sum(one["n_unparsed"] for one in members)
                for key in ("n_failed_sentences", "n_truncated_sentences", "n_duplicates", "n_cut", "calls"):
                    row[key] = sum(one[key] for one in members)
            return {"evaluator": name, **whole, "systems": parts}

        every = [told(name) for name in self.names]
        return every[0] | ({"evaluators": every} if len(every) > 1 else {})

    # ------------------------------------------------------------------------------------------ one response

    async def _work(self, todo: Iterator[tuple[str, Response]], finished: Callable[[str, Row], None], bar: Bar) -> None:
        async def worker() -> None:
            # The iterator is shared: each worker takes the next response, so that few are in memory at a time.
            for key, response in todo:
                entry = await self._one(response, bar)
                finished(key, entry)

        async with sessions(self.llm, self.decomposer):
            await gather(worker() for _ in range(self.window))

    async def _one(self, response: Response, bar: Bar) -> Row:
        """Everything about one response that costs anything, as plain data for the journal."""
        count = Count(bar)
        abstained = is_abstained(response.output, self.abstain) if response.abstained is None else response.abstained
        entry: Row = {"abstained": abstained, "sentences": [], "n_duplicates": 0, "n_cut": 0, "verdicts": {}}
        if not abstained:
            if response.given is None:
                llm = self.decomposer or self.llm
                assert llm is not None
                entry["sentences"], entry["n_duplicates"], entry["n_cut"] = await decompose(
                    response.output,
                    partial(count.ask, llm),
                    self._demonstrations,
                    max_facts=self.max_facts,
                    min_characters=self.min_characters,
                )
                for sentence in entry["sentences"]:
                    sentence["facts"] = [{"text": fact, "label": None} for fact in sentence["facts"]]
            else:
                entry["sentences"] = [
                    {"text": one.text, "status": "given", "facts": [asdict(fact) for fact in one.facts]}
                    for one in response.given
                ]
            facts = [fact["text"] for fact in facts_of(entry)]
            bar.decomposed(len(facts))
            page = await self._retrieve(response.topic, facts, entry)
            own = [str(one) for one in self._own]

            async def verified(verifier: str, position: int) -> Row:
                support = await self._verify(verifier, response.topic, page, facts[position], count, entry, position)
                if verifier == own[0]:
                    bar.verified()
                return asdict(support)

            done = await gather(verified(one, position) for one in own for position in range(len(facts)))
            n = len(facts)
            entry["verdicts"] = {one: done[n * i : n * (i + 1)] for i, one in enumerate(own)}
            if not own:
                bar.verified(n)  # evaluators come after, with a bar of their own
        entry["calls"] = count.calls
        entry["retry"] = count.failed or entry.get("page_status") == "error"
        return entry

    async def _retrieve(self, topic: str, facts: list[str], entry: Row) -> Page | None:
        """Find the page and, for each fact, its passages (texts once, in the order of first use; numbers per fact)."""
        knowledge = self.knowledge
        if not isinstance(knowledge, Knowledge):
            return None

        def look() -> tuple[Page | None, str, str | None, list[list[str]]]:
            page, status, reason = knowledge.find(topic)
            found = [] if page is None else [self.retriever.retrieve(page, topic, fact) for fact in facts]
            return page, status, reason, found

        page, entry["page_status"], entry["reason"], found = await asyncio.to_thread(look)
        if page is not None:
            numbers = {text: i for i, text in enumerate(dict.fromkeys(text for one in found for text in one))}
            entry["page"], entry["matched"] = page.title, page.matched
            entry["passages"] = list(numbers)
            entry["docs"] = [[numbers[text] for text in one] for one in found]
        return page

    async def _verify(
        self, verifier: str, topic: str, page: Page | None, fact: str, count: Count, entry: Row, position: int
    ) -> verify.Support:
        assert self.llm is not None
        if verifier == NO_CONTEXT:
            text = verify.no_context_prompt(fact)
        elif page is None:
            return verify.Support(None, None, entry["page_status"], entry["reason"])
        else:
            passages = [entry["passages"][i] for i in entry["docs"][position]]
            text = verify.prompt(topic, page.title, passages, fact)
        support = verify.read(await count.ask(self.llm, verify.request(text, self.logprobs)), self.parser)
        if self.npm is not None and verifier == RETRIEVAL and page is not None and support.prediction == 1:
            # As in the original, the probability is looked at only where the LLM says True.
            probability = await asyncio.to_thread(self.npm.probability, page, topic, fact)
            if probability is None:  # no word to ask for: the LLM's verdict stands
                return replace(support, raw=f"{support.raw}\n[npm undefined]")
            raw = f"{support.raw}\n[npm {probability:.4f}]"
            supported = probability > self.npm.threshold
            # P(True) is no score for a fact that was found unsupported in spite of it.
            support = replace(support, prediction=int(supported), score=support.score if supported else None, raw=raw)
        return support

    async def _ask_topic(self, turns: Sequence[Mapping[str, str]]) -> str:
        if self.llm is None:
            raise UsageError("give the topic, or an LLM to ask for it")
        talk = "\n\n".join(f"{turn.get('role')}: {turn.get('content')}" for turn in turns)
        task = (
            "Which one person, place, work or thing is the last answer of this conversation about? "
            "Reply with the title of its encyclopedia article and nothing else."
        )
        asked = Request(
            ({"role": "user", "content": f"{task}\n\n{talk}\n\nTitle:"},), {"temperature": 0.0, "max_tokens": 30}
        )
        async with sessions(self.llm):
            reply = await self.llm.ask(asked)
        lines = reply.text.strip().splitlines()
        title = lines[0].strip().strip("\"'*.").removeprefix("Title:").strip() if lines else ""
        if reply.status != "ok" or not title:
            raise UsageError(f"the LLM named no topic ({reply.error or reply.status}); give it")
        return title

    # ------------------------------------------------------------------------------------------ the verdicts

    def _verdicts(
        self, claims: pd.DataFrame, entries: Sequence[Row], journal: str | Path | None, progress: bool
    ) -> pd.DataFrame:
        """Of each verifier, in their order."""
        if claims.empty:
            return no_verdicts()
        evaluators = iter(self._evaluators)
        return merge_verdicts(
            [
                own_verdicts(claims, entries, one, self._name(one))
                if isinstance(one, str) and one in self._own
                else evaluator_verdicts(claims, entries, next(evaluators), journal, progress)
                for one in self.verifiers
            ]
        )

    # ------------------------------------------------------------------------------------------ signatures

    def _name(self, verifier: str) -> str:
        """As the original's: "retrieval+ChatGPT", with "+npm" where it is combined."""
        model = str(getattr(self.llm, "model", None) or "llm")
        return f"{verifier}+{model}" + ("+npm" if self.npm is not None and verifier == RETRIEVAL else "")

    def _facts_signature(self) -> str:
        llm = self.decomposer or self.llm
        return signature(
            "facts",
            {
                "decomposer": None if llm is None else llm.signature,
                "demos": self._demonstrations.signature,
                "abstain": self.abstain,
                "max_facts": self.max_facts,
                "min_characters": self.min_characters,
                "retrieval": self.retriever.signature,
                "missing": self.knowledge.missing if isinstance(self.knowledge, Knowledge) else None,
                "knowledge": self.knowledge.db.signature if isinstance(self.knowledge, Knowledge) else None,
            },
        )

    def _verifier_signature(self, verifier: str) -> str:
        settings: Row = {
            "llm": self.llm.signature if self.llm else None,
            "parser": self.parser,
            "logprobs": self.logprobs,
        }
        if self.npm is not None and verifier == RETRIEVAL:
            settings["npm"] = self.npm.signature
        return f"{signature(verifier, settings)}|{self._facts_signature()}"

    def _work_signature(self) -> str:
        """All that an entry of the journal depends on."""
        source = ""
        if isinstance(self.knowledge, Knowledge):
            # A large one is told by its size alone: here, on one machine, also by its date.
            source = f"{self.knowledge.db.signature}:{self.knowledge.db.path.stat().st_mtime_ns}"
        return "\n".join([*(self._verifier_signature(str(one)) for one in self._own), self._facts_signature(), source])


def _of(rows: Sequence[Row], system: str | None) -> list[Row]:
    return [row for row in rows if row["system"] == system]
