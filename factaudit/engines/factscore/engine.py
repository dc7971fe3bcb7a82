"""How is FActScore computed? Each response's facts against the page of its topic (Min et al. 2023)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ValidationError

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.audit.core.audit_declaration import Column
from factaudit.audit.core.figure_formatting import format_figure_range, format_percent
from factaudit.engines.conversations import MIN_TURN_WORDS, Conversation, list_assistant_turn_responses
from factaudit.engines.facts_section import build_facts_section
from factaudit.engines.factscore.report_sections import (
    build_factscore_unsupported_section,
    count_pages,
    find_missing_pages,
    format_topics_without_page,
)
from factaudit.engines.factscore.response_scores import build_factscore_response_rows, summarise_factscore
from factaudit.engines.records import (
    CandidatePageRecord,
    CandidatePageSearchRecord,
    DecompositionRecord,
    ScoredResponseRecords,
)
from factaudit.engines.responses import Response, make_response
from factaudit.engines.scoring_engine import Row, ScoringEngine
from factaudit.errors import UsageError
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.llm.answer_extraction import extract_llm_answer
from factaudit.llm.chat_types import ChatRequest
from factaudit.llm.coroutine_runner import open_llm_clients_for_block, run_coroutine, run_coroutines_concurrently
from factaudit.text.display_text import format_count

#: What a summary has besides the audit's figures.
_SUMMARY_KEYS = ("systems", "evaluators", "n_topics_without_page")


@dataclass
class FactScorer(ScoringEngine):
    """FActScore of responses.

    >>> scorer = FactScorer("wiki.db", Client("gpt-4o-mini"))  # doctest: +SKIP
    >>> scorer.score(["Ada Lovelace"], ["Ada Lovelace was a mathematician."])["score"]  # doctest: +SKIP
    """

    name: ClassVar[str] = "factscore"
    title: ClassVar[str] = "FActScore"
    needs_knowledge: ClassVar[bool] = True

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
        try:
            talk = Conversation.model_validate({"turns": list(turns)})
        except ValidationError as error:
            raise UsageError(f"not a conversation of {{role, content}} turns: {error.errors()[0]['msg']}") from None
        responses, left_out = list_assistant_turn_responses(talk, "turn", topic)
        if not responses:
            raise UsageError(f"the conversation has no assistant turn of at least {MIN_TURN_WORDS} words")
        scored = self.score_responses(responses, **options)
        return {**scored.summary, "responses": scored.responses, "left_out": left_out}

    def score_responses(
        self, responses: Sequence[Response], *, journal: str | Path | None = None, progress: bool = False
    ) -> ScoredResponseRecords:
        """Score responses, many at once; see `factaudit.engines.scoring_engine.ScoringEngine.verify_responses`."""
        if any(one.conversation_so_far for one in responses):
            responses = run_coroutine(self._add_asked_topics(responses))
        made = self.verify_responses(responses, journal=journal, progress=progress)
        rows = build_factscore_response_rows(made, self.names, self.gamma)
        summary = summarise_factscore(made, rows, self.names, self.gamma, self.intervals)
        summary["n_topics_without_page"] = len(find_missing_pages(rows))
        return ScoredResponseRecords(
            made.claims, made.verdicts, rows, summary, (made.claims, made.verdicts), made.records
        )

    def audits(self) -> dict[str, Row]:
        people = {"irrelevant": self.irrelevant, "gamma": self.gamma}
        own: dict[str, Row] = {"factscore": {"gamma": self.gamma}, "discrimination": {}}
        own["factscore_agreement"] = people
        return own | super().audits()

    def sections(self, scored: ScoredResponseRecords) -> list[Row]:
        text = f"Verified by {self.names[0]}."
        if self.names[0] in self._verifiers.builtin_verifiers:
            text += f" Replies are read by the parser {self.parser!r}."
        if any(row.get("human") for row in scored.responses):
            how = "are left out" if self.irrelevant == "exclude" else "count as not supported"
            text += f" Facts that people found irrelevant {how}; people's score knows no length penalty."
        told = build_facts_section(scored.summary, text, count_pages(scored.responses))
        first = build_factscore_unsupported_section(scored.responses, self.names[0])
        return [told, *([first] if first else [])]

    def tables(self, scored: ScoredResponseRecords) -> dict[str, list[Row]]:
        """The audit's rows with what only an engine knows: calls, failed sentences, facts removed and cut."""
        rows = []
        for one in scored.summary.get("evaluators", [scored.summary]):
            if len(one["systems"]) != 1:
                rows.append({key: value for key, value in one.items() if key not in _SUMMARY_KEYS})
            rows += one["systems"]
        return {"factscore": rows}

    def format_summary_lines(self, scored: ScoredResponseRecords) -> list[str]:
        lines = [
            self._format_score_line(row | {"evaluator": verifier["evaluator"]})
            for verifier in scored.summary.get("evaluators", [scored.summary])
            for row in verifier["systems"] or [verifier]
        ]
        asks_wikipedia = isinstance(self.knowledge, TopicLookup) and self.knowledge.missing == "wikipedia"
        return lines + format_topics_without_page(scored.responses, asks_wikipedia)

    def _format_score_line(self, row: Row) -> str:
        """The score of a system by a verifier: its interval, what unscored facts leave open, and of how many."""
        n, who = row["n_facts"] - row["n_failed_sentences"], row["system"]
        who = "all" if who in (None, ALL_TOGETHER) else who
        of = [f"{row['n_scored']:,} of {format_count(row['n_responses'], 'response')} scored"]
        left_out = {
            "n_abstained": "abstained",
            "n_without_facts": "without facts",
            "n_unscored_responses": "not asked about",
        }
        of += [f"{row[key]:,} {what}" for key, what in left_out.items() if row.get(key)]
        if (
            n == 0 or row["score"] is None or row["n_unscored"] == row["n_facts"]
        ):  # unscored facts count as not supported: 0.0 %
            of[0] = format_count(row["n_responses"], "response")
            score = f"no score by {row['evaluator']}: "
            if row.get("n_abstained") == row["n_responses"]:
                score += "every response abstained"
            else:
                score += f"none of {format_count(n, 'fact')} has a verdict" if n else "there is no fact"
        else:
            shown = Column("", "percent")
            score = f"{format_percent(row['score'])} by {row['evaluator']}"
            if row.get("score_low") is not None:
                ends = format_figure_range(shown, row["score_low"], row["score_high"])
                of.insert(0, f"{100 * self.confidence:g} % CI {ends}")
            if row["score_min"] < row["score_max"]:
                ends = format_figure_range(shown, row["score_min"], row["score_max"])
                of.insert(0, f"what is unscored or guessed leaves {ends}")
            if row["score"] != row["init_score"]:
                of.append(f"without the length penalty {format_percent(row['init_score'])}")
        return f"{who}: FActScore {score} ({'; '.join(of)})"

    # ------------------------------------------------------------------------------------------ the one page

    def prepare_responses(self, responses: Sequence[Response]) -> None:
        """Under the policy ``error``, raise for topics without a page."""
        if isinstance(self.knowledge, TopicLookup):
            self.knowledge.check_topics(one.topic for one in responses if one.abstained is not True)

    def find_hopeless_reason(self, response: Response) -> CandidatePageRecord | None:
        """A topic without a page, where all verifiers read pages."""
        if not isinstance(self.knowledge, TopicLookup) or not self._verifiers.all_need_passages:
            return None
        page, status, reason = self.knowledge.find_page(response.topic)
        return None if page is not None else CandidatePageRecord(None, status, reason)

    def find_candidates(self, response: Response, decomposed: DecompositionRecord) -> CandidatePageSearchRecord:
        """The page of the topic."""
        if not isinstance(self.knowledge, TopicLookup) or decomposed.abstained:
            return CandidatePageSearchRecord((CandidatePageRecord(None, "skipped", "no knowledge source"),), (None,))
        page, status, reason = self.knowledge.find_page(response.topic)
        if page is None:
            return CandidatePageSearchRecord((CandidatePageRecord(None, status, reason),), (None,))
        return CandidatePageSearchRecord((CandidatePageRecord(page.title, title_match=page.title_match),), (page,))

    async def _add_asked_topics(self, responses: Sequence[Response]) -> list[Response]:
        """The responses with the topics that the LLM names; one of which it names none has no page, and says so."""
        if self.llm is None:
            raise UsageError("give the topic, or an LLM to ask for it")
        async with open_llm_clients_for_block(self.llm):
            found = await run_coroutines_concurrently(self._ask_for_topic(one) for one in responses)
        reasons = [why for _, why in found if why]
        if reasons and len(reasons) == sum(one.conversation_so_far is not None for one in responses):
            raise UsageError(f"the LLM named no topic ({reasons[0]}); give it")
        return [
            replace(one, topic=title, conversation_so_far=None)
            for one, (title, _) in zip(responses, found, strict=True)
        ]

    async def _ask_for_topic(self, response: Response) -> tuple[str, str | None]:
        """The topic, or "" and why there is none."""
        if response.conversation_so_far is None:
            return response.topic, None
        task = (
            "Which one person, place, work or thing is the last answer of this conversation about? "
            "Reply with the title of its encyclopedia article and nothing else."
        )
        content = f"{task}\n\n{response.conversation_so_far}\n\nTitle:"
        asked = ChatRequest(({"role": "user", "content": content},), {"temperature": 0.0, "max_tokens": 30})
        assert self.llm is not None
        reply = extract_llm_answer(await self.llm.ask(asked))
        lines = reply.text.strip().splitlines()
        title = lines[0].strip().strip("\"'*.").removeprefix("Title:").strip() if lines else ""
        return (title, None) if reply.status == "ok" and title else ("", reply.error or reply.status)
