"""How do conversations become responses? Every turn of the assistant is one, with its own topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from factaudit.engines.responses import (
    Response,
    name_system_by_file,
    raise_problems,
    read_typed_lines,
)
from factaudit.errors import Problem, UsageError
from factaudit.llm.ask_all import ask_all
from factaudit.llm.chat_types import ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.reply import extract_llm_answer
from factaudit.signature import hash_texts
from factaudit.text.display_text import format_count

#: Whose turns are scored.
SCORED_ROLES = ("assistant", "therapist")
#: A turn of fewer words says nothing to check ("You're welcome!").
MIN_TURN_WORDS = 4
_TOPIC_TASK = (
    "Which one person, place, work or thing is the last answer of this conversation about? "
    "Reply with the title of its encyclopedia article and nothing else."
)
_TOPIC_PARAMETERS = {"temperature": 0.0, "max_tokens": 30}
_Topic = Annotated[str, Field(pattern=r"\S")]


class _Turn(BaseModel):
    """content: a text, or a list of texts and of parts ``{type: text, text}`` (others hold no
    text)."""

    role: str
    content: str | list[str | dict[str, Any]] | None = None
    topic: _Topic | None = None

    @property
    def text(self) -> str:
        parts = self.content if isinstance(self.content, list) else [self.content or ""]
        texts = [one if isinstance(one, str) else one.get("text") for one in parts]
        return "\n".join(one for one in texts if isinstance(one, str)).strip()


class _Conversation(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    turns: list[_Turn] = Field(
        min_length=1, validation_alias=AliasChoices("turns", "messages", "conversation")
    )
    id: str | None = Field(
        default=None, validation_alias=AliasChoices("id", "conversation_id", "response_id")
    )
    topic: _Topic | None = None
    system: str | None = None


def read_conversations(
    paths: Sequence[Path],
    topic: str | None = None,
    system: str | None = None,
    limit: int | None = None,
) -> tuple[list[Response], list[str]]:
    """The assistant's turns of files of conversations, and what was left out, a line per file.

    JSONL, a conversation per line: ``{messages or turns: [{role, content, [topic]}], [topic],
    [system], [id]}``. A turn's topic is its own, else the conversation's, else ``topic``; where
    there is none it is to be asked for.

    Raises `InputError` naming the lines that are wrong, or a file without a turn to score.
    """
    found: list[Response] = []
    notes = []
    for path in paths:
        n_before, n_short = len(found), 0
        for number, talk in read_typed_lines(path, _Conversation, limit):
            name = talk.id or hash_texts(path.name, str(number))
            for at, turn in enumerate(talk.turns, start=1):
                if turn.role.strip().casefold() not in SCORED_ROLES:
                    continue
                if len(turn.text.split()) < MIN_TURN_WORDS:
                    n_short += 1
                    continue
                named = turn.topic or talk.topic or topic
                so_far = "\n\n".join(f"{one.role}: {one.text}" for one in talk.turns[:at])
                made = Response(f"{name}.{at}", (named or "").strip(), turn.text)
                made = replace(made, system=talk.system or system or name_system_by_file(path))
                found.append(replace(made, conversation_so_far=None if named else so_far))
        if len(found) == n_before:
            roles = " or ".join(SCORED_ROLES)
            raise_problems(
                path, [Problem(f"no turn of {roles} with at least {MIN_TURN_WORDS} words")]
            )
        if n_short:
            notes.append(
                f"{path.name}: {format_count(n_short, 'turn')} of fewer than {MIN_TURN_WORDS} words"
                " left out"
            )
    return found, notes


def ask_for_topics(responses: Sequence[Response], llm: LLMClient | None) -> list[Response]:
    """The responses with the topics that the LLM names; one of which it names none has no page, and
    says so."""
    requests = []
    for at, one in enumerate(responses):
        if one.conversation_so_far:
            content = f"{_TOPIC_TASK}\n\n{one.conversation_so_far}\n\nTitle:"
            requests.append(
                (at, ChatRequest(({"role": "user", "content": content},), _TOPIC_PARAMETERS))
            )
    if not requests:
        return list(responses)
    if llm is None:
        raise UsageError("give the topic, or an LLM to ask for it")
    found, reasons = list(responses), []
    for at, reply in ask_all(llm, requests):
        answer = extract_llm_answer(reply)
        first = answer.text.strip().partition("\n")[0]
        title = (
            first.strip().strip("\"'*.").removeprefix("Title:").strip()
            if answer.status == "ok"
            else ""
        )
        if not title:
            reasons.append(answer.error or answer.status)
        found[at] = replace(responses[at], topic=title, conversation_so_far=None)
    if len(reasons) == len(requests):
        raise UsageError(f"the LLM named no topic ({reasons[0]}); give it")
    return found
