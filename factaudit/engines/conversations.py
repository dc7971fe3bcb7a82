"""How do conversations become responses? Every turn of the assistant is one, with its own topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from factaudit.engines.responses import (
    Response,
    check_file,
    name_system_by_file,
    read_typed_lines,
)
from factaudit.errors import Problem, UsageError
from factaudit.llm.ask_all import ask_all
from factaudit.llm.chat_types import ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.reply import extract_llm_answer
from factaudit.signature import hash_texts
from factaudit.text.display_text import format_count

#: A turn of fewer words says nothing to check ("You're welcome!").
MIN_TURN_WORDS = 4
_TOPIC_TASK = (
    "Which one person, place, work or thing is the last answer of this conversation about? "
    "Reply with the title of its encyclopedia article and nothing else."
)
_TOPIC_PARAMETERS = {"temperature": 0.0, "max_tokens": 30}
_Topic = Annotated[str, Field(pattern=r"\S")]


class _Turn(BaseModel):
    """content: a text, or a list of parts, of which those with a ``text`` count."""

    role: str
    content: str | list[dict[str, Any]] | None = None
    topic: _Topic | None = None

    @property
    def text(self) -> str:
        if not isinstance(self.content, list):
            return (self.content or "").strip()
        return "\n".join(str(part["text"]) for part in self.content if part.get("text")).strip()


class _Conversation(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    messages: list[_Turn] = Field(min_length=1)
    id: str | None = None
    topic: _Topic | None = None
    system: str | None = None


def read_conversations(
    paths: Sequence[Path],
    topic: str | None = None,
    system: str | None = None,
    limit: int | None = None,
) -> tuple[list[Response], list[str]]:
    """The assistant's turns of files of conversations, and what was left out, a line per file.

    JSONL, a conversation per line: ``{messages: [{role, content, [topic]}], [topic], [system],
    [id]}``. A turn's topic is its own, else the conversation's, else ``topic``; where there is none
    it is to be asked for.

    Raises `InputError` naming the lines that are wrong, or a file without a turn to score.
    """
    found: list[Response] = []
    notes = []
    for path in paths:
        n_before, n_short = len(found), 0
        for number, talk in read_typed_lines(path, _Conversation, limit):
            name = talk.id or hash_texts(path.name, str(number))
            speaker = talk.system or system or name_system_by_file(path)
            so_far = ""
            for at, turn in enumerate(talk.messages, start=1):
                so_far += f"{turn.role}: {turn.text}\n\n"
                if turn.role.strip().casefold() != "assistant":
                    continue
                if len(turn.text.split()) < MIN_TURN_WORDS:
                    n_short += 1
                    continue
                named = (turn.topic or talk.topic or topic or "").strip()
                made = Response(f"{name}.{at}", named, turn.text, speaker)
                asked = None if named else so_far.strip()
                found.append(replace(made, conversation_so_far=asked))
        if len(found) == n_before:
            message = f"no turn of the role assistant with at least {MIN_TURN_WORDS} words"
            check_file(path, [Problem(message)])
        if n_short:
            turns = format_count(n_short, "turn")
            notes.append(f"{path.name}: {turns} of fewer than {MIN_TURN_WORDS} words left out")
    return found, notes


def ask_for_topics(responses: Sequence[Response], llm: LLMClient | None) -> list[Response]:
    """The responses with the topics that the LLM names; one of which it names none has no page, and
    says so."""
    requests = []
    for at, one in enumerate(responses):
        if one.conversation_so_far:
            content = f"{_TOPIC_TASK}\n\n{one.conversation_so_far}\n\nTitle:"
            message = {"role": "user", "content": content}
            requests.append((at, ChatRequest((message,), _TOPIC_PARAMETERS)))
    if requests and llm is None:
        raise UsageError("give the topic, or an LLM to ask for it")
    found, reasons = list(responses), []
    for at, reply in ask_all(llm, requests) if llm is not None else ():
        answer = extract_llm_answer(reply)
        first = answer.text.strip().partition("\n")[0] if answer.status == "ok" else ""
        title = first.strip().strip("\"'*.").removeprefix("Title:").strip()
        if not title:
            reasons.append(answer.error or answer.status)
        found[at] = replace(responses[at], topic=title, conversation_so_far=None)
    if requests and len(reasons) == len(requests):
        raise UsageError(f"the LLM named no topic ({reasons[0]}); give it")
    return found
