"""Facts that stand alone: each is rewritten with its whole response at hand (Gunjal & Durrett 2024, Molecular Facts).

The rewritten fact is verified in place of its fact; or it is the context in which the fact itself is verified (Wanner,
Van Durme & Dredze 2025, DnDScore). The prompts are ours, not those of the papers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from factaudit.engines.progress import ResponseCallCounter
from factaudit.engines.records import DecompositionRecord, ResponseRecord
from factaudit.engines.reply_facts import parse_reply_facts
from factaudit.engines.responses import AtomicFact
from factaudit.errors import UsageError, suggest_known_name
from factaudit.llm.answer_extraction import extract_llm_answer
from factaudit.llm.chat_types import ChatModelProtocol, ChatRequest
from factaudit.llm.coroutine_runner import run_coroutines_concurrently
from factaudit.text.display_text import format_count
from factaudit.text.stated_verdicts import strip_thoughts

#: Values of the setting `decontextualize` that cost a call a fact: verify the rewritten fact; verify the fact in it.
REWRITTEN, DNDSCORE = "response", "dndscore"

_TASK = (
    "Rewrite the statement so that it can be understood without the text that it is from: put full names in place of "
    "pronouns and of parts of names, and add nothing else."
)
#: How such a prompt ends, by which it is told from others.
REWRITING_PROMPT_END = "\nRewritten statement:"


def make_decontextualization_prompt(text: str, fact: str) -> str:
    """The prompt that asks for a fact in words that need no text around them. text: the whole response."""
    return f"{_TASK}\n\nText: {strip_thoughts(text).strip()}\n\nStatement: {fact.strip()}{REWRITING_PROMPT_END}"


def check_decontextualization(way: bool | str, llm: ChatModelProtocol | None, verifiers: Collection[str]) -> None:
    """Raise `UsageError` for a way that is not known, or that asks a language model where there is none.

    verifiers: those that put FActScore's prompts to the model; evaluators are given no context.
    """
    if isinstance(way, str) and way not in (REWRITTEN, DNDSCORE):
        raise UsageError(f"unknown decontextualize {way!r}{suggest_known_name(way, (REWRITTEN, DNDSCORE))}")
    if isinstance(way, str) and llm is None:
        raise UsageError(f"decontextualize={way} asks a language model of each fact: give an llm")
    if way == DNDSCORE and not verifiers:
        raise UsageError(
            f"decontextualize={way} is a way of the verifier 'retrieval': an evaluator is given no context"
        )


async def decontextualize_facts(
    record: DecompositionRecord,
    text: str,
    llm: ChatModelProtocol | None,
    calls: ResponseCallCounter,
    way: str,
    removes_repeated: bool,
) -> DecompositionRecord:
    """The record with its facts rewritten (`REWRITTEN`), or each with its rewritten form as context (`DNDSCORE`).

    A fact of which no rewritten form could be had stays as it is. removes_repeated: of rewritten facts with the same
    words the first alone stays.
    """

    assert llm is not None

    async def rewrite_fact(fact: AtomicFact) -> AtomicFact:
        if fact.failure_status is not None:
            return fact
        prompt = make_decontextualization_prompt(text, fact.text)
        request = ChatRequest(({"role": "user", "content": prompt},), {"temperature": 0.0, "max_tokens": 200})
        reply = await calls.ask(llm, request)
        answer = extract_llm_answer(reply)
        found = parse_reply_facts(answer.text).facts if answer.status == "ok" else []
        if len(found) != 1:
            return fact
        return replace(fact, context=found[0]) if way == DNDSCORE else replace(fact, text=found[0], atomic=fact.text)

    facts = await run_coroutines_concurrently(map(rewrite_fact, record.facts))
    kept: dict[str | int, AtomicFact] = {}
    for place, one in enumerate(facts):
        kept.setdefault(one.text if removes_repeated and one.failure_status is None else place, one)
    n_removed = len(facts) - len(kept)
    return replace(record, facts=tuple(kept.values()), n_duplicates=record.n_duplicates + n_removed)


def describe_decontextualized_facts(records: Sequence[ResponseRecord]) -> list[str]:
    """What the report says of facts that could not be rewritten; nothing where all could."""
    facts = [fact for record in records for fact in record.decomposed.facts if fact.failure_status is None]
    lost = sum(fact.context is None and fact.atomic is None for fact in facts)
    if not lost:
        return []
    return [f"Of {format_count(len(facts), 'fact')}, {lost:,} could not be rewritten and stand in their own words."]
