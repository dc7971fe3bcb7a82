"""FActScore from texts to claims and verdicts: decompose, retrieve, verify, all responses at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from tqdm import tqdm

from factaudit.errors import UsageError, hint
from factaudit.evaluators.judging import RETRIED, check_names, judge, name_evaluator, parts
from factaudit.factscore import score as scoring
from factaudit.factscore import verify
from factaudit.factscore.abstain import DETECTORS, is_abstained
from factaudit.factscore.decompose import (
    MAX_FACTS,
    MIN_CHARACTERS,
    Demonstrations,
    distinct,
    is_boilerplate,
    parse_facts,
    sentences,
)
from factaudit.factscore.npm import Npm
from factaudit.factscore.responses import LABELS, Response, make_response
from factaudit.files import Journal
from factaudit.knowledge.docdb import DocDB, Page, resolve
from factaudit.knowledge.retrieval import Retriever
from factaudit.knowledge.topics import Knowledge
from factaudit.llm.types import LLM, Reply, Request
from factaudit.signature import digest, signature
from factaudit.tables import merge_verdicts, validate_claims, validate_verdicts

#: The verifiers that put FActScore's own prompts to the LLM; every other one is an evaluator.
RETRIEVAL, NO_CONTEXT = "retrieval", "no-context"
#: What becomes of facts that people labelled irrelevant: left out, or counted as not supported.
IRRELEVANT = ("exclude", "unsupported")

Row = dict[str, Any]
T = TypeVar("T")


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
        parser: ``original`` or ``strict`` (`factaudit.factscore.verify`).
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
        bar = _Bar(progress, self.llm)
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
        claims = self._claims(responses, ordered)
        verdicts = self._verdicts(claims, ordered, journal, progress)
        rows = self._rows(responses, ordered, claims, verdicts)
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
                for key in ("n_failed_sentences", "n_duplicates", "n_cut", "calls"):
                    row[key] = sum(one[key] for one in members)
            return {"evaluator": name, **whole, "systems": parts}

        every = [told(name) for name in self.names]
        return every[0] | ({"evaluators": every} if len(every) > 1 else {})

    # ------------------------------------------------------------------------------------------ one response

    async def _work(
        self, todo: Iterator[tuple[str, Response]], finished: Callable[[str, Row], None], bar: _Bar
    ) -> None:
        async def worker() -> None:
            # The iterator is shared: each worker takes the next response, so that few are in memory at a time.
            for key, response in todo:
                entry = await self._one(response, bar)
                finished(key, entry)

        async with AsyncExitStack() as stack:
            for llm in {id(one): one for one in (self.llm, self.decomposer) if one is not None}.values():
                if isinstance(llm, AbstractAsyncContextManager):
                    await stack.enter_async_context(llm)
            await _gather(worker() for _ in range(self.window))

    async def _one(self, response: Response, bar: _Bar) -> Row:
        """Everything about one response that costs anything, as plain data for the journal."""
        count = _Count(bar)
        abstained = is_abstained(response.output, self.abstain) if response.abstained is None else response.abstained
        entry: Row = {"abstained": abstained, "sentences": [], "n_duplicates": 0, "n_cut": 0, "verdicts": {}}
        if not abstained:
            if response.given is None:
                await self._decompose(response.output, entry, count)
            else:
                entry["sentences"] = [
                    {"text": one.text, "status": "given", "facts": [asdict(fact) for fact in one.facts]}
                    for one in response.given
                ]
            facts = [fact["text"] for one in entry["sentences"] for fact in one["facts"]]
            bar.decomposed(len(facts))
            page = await self._retrieve(response.topic, facts, entry)
            own = [str(one) for one in self._own]

            async def verified(verifier: str, position: int) -> Row:
                support = await self._verify(verifier, response.topic, page, facts[position], count, entry, position)
                if verifier == own[0]:
                    bar.verified()
                return asdict(support)

            done = await _gather(verified(one, position) for one in own for position in range(len(facts)))
            n = len(facts)
            entry["verdicts"] = {one: done[n * i : n * (i + 1)] for i, one in enumerate(own)}
            if not own:
                bar.verified(n)  # evaluators come after, with a bar of their own
        entry["calls"] = count.calls
        entry["retry"] = count.failed or entry.get("page_status") == "error"
        return entry

    async def _decompose(self, output: str, entry: Row, count: _Count) -> None:
        llm = self.decomposer or self.llm
        assert llm is not None

        async def one(text: str) -> Row:
            if is_boilerplate(text):
                return {"text": text, "status": "boilerplate", "facts": []}
            reply = await count.ask(llm, self._demonstrations.request(text))
            facts = parse_facts(reply.text, self.min_characters) if reply.status == "ok" else []
            told: Row = {"text": text, "status": reply.status, "reply": reply.text, "facts": facts}
            if reply.finish_reason == "length":
                told["truncated"] = True
            return told | ({"error": reply.error} if reply.error else {})

        found = await _gather(map(one, sentences(output)))
        kept, entry["n_duplicates"], entry["n_cut"] = distinct([one["facts"] for one in found], self.max_facts)
        for sentence, facts in zip(found, kept, strict=True):
            sentence["facts"] = [{"text": fact, "label": None} for fact in facts]
        entry["sentences"] = found

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
        self, verifier: str, topic: str, page: Page | None, fact: str, count: _Count, entry: Row, position: int
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
        async with AsyncExitStack() as stack:
            if isinstance(self.llm, AbstractAsyncContextManager):
                await stack.enter_async_context(self.llm)
            reply = await self.llm.ask(asked)
        lines = reply.text.strip().splitlines()
        title = lines[0].strip().strip("\"'*.").removeprefix("Title:").strip() if lines else ""
        if reply.status != "ok" or not title:
            raise UsageError(f"the LLM named no topic ({reply.error or reply.status}); give it")
        return title

    # ------------------------------------------------------------------------------------------ the tables

    def _claims(self, responses: Sequence[Response], entries: Sequence[Row]) -> pd.DataFrame:
        rows = []
        for response, entry in zip(responses, entries, strict=True):
            position = 0
            for sentence in entry["sentences"]:
                for fact in sentence["facts"]:
                    docs = entry.get("docs")
                    doc = None if docs is None else "\n\n".join(entry["passages"][i] for i in docs[position])
                    fact["claim_id"] = f"{response.response_id}.{position}"
                    rows.append(
                        {
                            "claim_id": fact["claim_id"],
                            "dataset": self.dataset,
                            "system": response.system,
                            "response_id": response.response_id,
                            "doc_id": entry.get("page"),
                            "topic": response.topic,
                            "claim": fact["text"],
                            "doc": doc,
                            "label": self._label(fact["label"]),
                            "sentence": sentence["text"],
                        }
                    )
                    position += 1
        return validate_claims(pd.DataFrame(rows)) if rows else no_claims()

    def _label(self, label: str | None) -> int | None:
        if label is None:
            return None
        return 0 if label == "IR" and self.irrelevant == "unsupported" else LABELS[label]

    def _verdicts(
        self, claims: pd.DataFrame, entries: Sequence[Row], journal: str | Path | None, progress: bool
    ) -> pd.DataFrame:
        if claims.empty:
            return no_verdicts()
        ids = claims["claim_id"]
        tables = []
        for verifier in map(str, self._own):
            given = [one for entry in entries for one in entry["verdicts"].get(verifier, [])]
            table = pd.DataFrame({"claim_id": ids, "evaluator": self._name(verifier), **_columns(given)})
            tables.append(validate_verdicts(table, source=self._name(verifier)))
        readable = claims["doc"].notna()
        # A fact without a page has nothing to be judged on: it is unscored, for the reason that its page is missing.
        reasons = [(e.get("page_status"), e.get("reason")) for e in entries for s in e["sentences"] for _ in s["facts"]]
        missing = [
            {"prediction": None, "score": None, "status": status, "raw": reason}
            for (status, reason), has_doc in zip(reasons, readable, strict=True)
            if not has_doc
        ]
        for named in self._evaluators:
            parts = []
            if readable.any():
                parts.append(judge(claims[readable], [named], journal=journal, progress=progress))
            if missing:
                table = pd.DataFrame({"claim_id": ids[~readable], "evaluator": named.name, **_columns(missing)})
                parts.append(validate_verdicts(table, source=named.name))
            both = merge_verdicts(parts) if len(parts) > 1 else parts[0]
            tables.append(both.set_index("claim_id").loc[ids].reset_index())
        order = {name: i for i, name in enumerate(self.names)}
        tables.sort(key=lambda table: order[table["evaluator"].iloc[0]])
        return merge_verdicts(tables)

    def _rows(
        self, responses: Sequence[Response], entries: Sequence[Row], claims: pd.DataFrame, verdicts: pd.DataFrame
    ) -> list[Row]:
        told: dict[str, dict[str, Row]] = {name: {} for name in self.names}
        for name, claim_id, prediction, score, status in zip(
            verdicts["evaluator"],
            verdicts["claim_id"],
            verdicts["prediction"].astype(object),
            verdicts["score"],
            verdicts["status"],
            strict=True,
        ):
            told[name][claim_id] = {
                "prediction": None if pd.isna(prediction) else int(prediction),
                "score": None if pd.isna(score) else float(score),
                "status": status,
            }
        rows = []
        for response, entry in zip(responses, entries, strict=True):
            facts = [fact for sentence in entry["sentences"] for fact in sentence["facts"]]
            figures = {}
            for name in self.names:
                given = [told[name][fact["claim_id"]] for fact in facts]
                figures[name] = {
                    **_figures([one["prediction"] for one in given], entry["abstained"], self.gamma),
                    "n_unparsed": sum(one["status"] == "unparsed" for one in given),
                }
            failed = [one for one in entry["sentences"] if one["status"] not in ("ok", "given", "boilerplate")]
            row: Row = {
                "response_id": response.response_id,
                "system": response.system,
                "topic": response.topic,
                "output": response.output,
                "abstained": entry["abstained"],
                "page": entry.get("page"),
                "matched": entry.get("matched"),
                **figures[self.names[0]],
                "n_failed_sentences": len(failed),
                "n_duplicates": entry["n_duplicates"],
                "n_cut": entry["n_cut"],
                "calls": entry["calls"],
            }
            row["reason"] = entry.get("reason") if row["n_facts"] and entry.get("page") is None else row["reason"]
            if response.human is not None:
                row["human"] = dict(
                    zip(("n_supported", "n_not_supported", "n_irrelevant"), response.human, strict=True)
                )
            row["evaluators"] = figures
            row["sentences"] = [
                one
                | {
                    "facts": [
                        fact | {"verdicts": {name: told[name][fact["claim_id"]] for name in self.names}}
                        for fact in one["facts"]
                    ]
                }
                for one in entry["sentences"]
            ]
            rows.append(row)
        return rows

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
                "knowledge": self.knowledge.db.path.name if isinstance(self.knowledge, Knowledge) else None,
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
        """All that an entry of the journal depends on, the knowledge source's very file included."""
        source = ""
        if isinstance(self.knowledge, Knowledge):
            stat = self.knowledge.db.path.stat()
            source = f"{self.knowledge.db.path.absolute()}:{stat.st_size}:{stat.st_mtime_ns}"
        return "\n".join([*(self._verifier_signature(str(one)) for one in self._own), self._facts_signature(), source])


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also where a loop is running already (a notebook). Errors come out as they are."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        run = asyncio.run
    else:

        def run(main: Coroutine[Any, Any, T]) -> T:  # type: ignore[misc]
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(asyncio.run, main).result()

    try:
        return run(work)
    except BaseExceptionGroup as group:
        raise _first(group) from None


def no_claims() -> pd.DataFrame:
    """A claims table of no rows, for responses that all abstained."""
    row = {"claim_id": "-", "dataset": "-", "claim": "-", "sentence": "-"}
    return validate_claims(pd.DataFrame([row])).iloc[:0]


def no_verdicts() -> pd.DataFrame:
    """A verdicts table of no rows."""
    return validate_verdicts(pd.DataFrame([{"claim_id": "-", "evaluator": "-", "prediction": 1}])).iloc[:0]


class _Count:
    """The calls behind one response."""

    def __init__(self, bar: _Bar) -> None:
        self.calls = 0
        self.failed = False
        self.bar = bar

    async def ask(self, llm: LLM, request: Request) -> Reply:
        reply = await llm.ask(request)
        self.calls += 1
        self.failed |= reply.status in RETRIED
        self.bar.called(reply)
        return reply


class _Bar:
    """One progress bar: facts verified of those decomposed so far, and beside it cached calls and the cost so far."""

    def __init__(self, shown: bool, llm: LLM | None) -> None:
        self._bar = tqdm(desc="facts verified", total=0, unit="fact", disable=None if shown else True)
        self._usage = getattr(llm, "usage", None)
        self._cached = 0

    def decomposed(self, n: int) -> None:
        self._bar.total = (self._bar.total or 0) + n

    def called(self, reply: Reply) -> None:
        self._cached += reply.cached

    def verified(self, n: int = 1) -> None:
        cost = getattr(self._usage, "cost", None)
        told: Row = {"decomposed": self._bar.total, "cached": self._cached}
        self._bar.set_postfix(told | ({"cost": f"${cost:.2f}"} if cost is not None else {}), refresh=False)
        self._bar.update(n)

    def close(self) -> None:
        self._bar.close()


async def _gather(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run at the same time; the first error cancels the rest (`asyncio.gather` would leave them running)."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in work]
    return [task.result() for task in tasks]


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _figures(predictions: list[int | None], abstained: bool, gamma: float) -> Row:
    figures = scoring.response_score(predictions, gamma)
    return figures | {"reason": "abstained"} if abstained else figures


def _columns(given: Sequence[Mapping[str, Any]]) -> Row:
    return {
        "prediction": pd.array([one["prediction"] for one in given], dtype="Int8"),
        "score": [one["score"] for one in given],
        "status": [one["status"] for one in given],
        "raw": [one["raw"] for one in given],
    }


def _of(rows: Sequence[Row], system: str | None) -> list[Row]:
    return [row for row in rows if row["system"] == system]
