"""How do conversations become responses? Every turn of the assistant is one, with its own topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from factaudit.engines.responses import Response, read_lines, validate_lines
from factaudit.errors import InputError, Problem, UsageError
from factaudit.knowledge.json_lines import replace_surrogates_in_knowledge_json
from factaudit.llm.ask_all import ask_all
from factaudit.llm.chat_types import ChatModelProtocol, ChatRequest
from factaudit.llm.reply import extract_llm_answer
from factaudit.signature import hash_texts
from factaudit.text.display_text import format_count

#: Whose turns are scored.
SCORED_ROLES = ("assistant", "therapist")
#: A turn of fewer words says nothing to check ("You're welcome!").
MIN_TURN_WORDS = 4


class ConversationTurn(BaseModel):
    """One turn; content: a text, or a list of texts and of parts ``{type: text, text}`` (others hold no text)."""

    model_config = ConfigDict(extra="ignore")

    role: str
    content: str | list[str | dict[str, Any]] | None = None
    topic: Annotated[str, Field(pattern=r"\S")] | None = None

    @property
    def text(self) -> str:
        """What was said."""
        if not isinstance(self.content, list):
            return (self.content or "").strip()
        parts = (one if isinstance(one, str) else one.get("text") for one in self.content)
        return "\n".join(one for one in parts if isinstance(one, str)).strip()


class Conversation(BaseModel):
    """A line of a file: its turns, and what holds for all of them."""

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    turns: list[ConversationTurn] = Field(
        min_length=1, validation_alias=AliasChoices("turns", "messages", "conversation")
    )
    id: str | None = Field(default=None, validation_alias=AliasChoices("id", "conversation_id", "response_id"))
    topic: Annotated[str, Field(pattern=r"\S")] | None = None
    system: str | None = None


def list_assistant_turn_responses(
    conversation: Conversation, id_prefix: str, default_topic: str | None = None
) -> tuple[list[Response], list[int]]:
    """The assistant's turns as responses ``NAME.1``, ...; and the numbers of those too short to say anything.

    A turn's topic is its own, else the conversation's, else ``default_topic``; where there is none it is to be asked
    for, and the response has the ``conversation`` so far.
    """
    made, short = [], []
    for number, turn in enumerate(conversation.turns):
        if turn.role.strip().casefold() not in SCORED_ROLES:
            continue
        if len(turn.text.split()) < MIN_TURN_WORDS:
            short.append(number + 1)
            continue
        so_far = "\n\n".join(f"{one.role}: {one.text}" for one in conversation.turns[: number + 1])
        told = turn.topic or conversation.topic or default_topic
        title, text = replace_surrogates_in_knowledge_json([told or "", turn.text])
        made.append(
            Response(
                f"{id_prefix}.{number + 1}",
                title.strip(),
                text,
                conversation.system,
                conversation_so_far=None if told else replace_surrogates_in_knowledge_json(so_far),
            )
        )
    return made, short


def read_conversation_turns(
    turns: Sequence[Mapping[str, Any]], topic: str | None = None
) -> tuple[list[Response], list[int]]:
    """`list_assistant_turn_responses` of plain turns. Raises `UsageError` where there is none to score."""
    try:
        talk = Conversation.model_validate({"turns": list(turns)})
    except ValidationError as error:
        raise UsageError(f"not a conversation of {{role, content}} turns: {error.errors()[0]['msg']}") from None
    responses, left_out = list_assistant_turn_responses(talk, "turn", topic)
    if not responses:
        raise UsageError(f"the conversation has no assistant turn of at least {MIN_TURN_WORDS} words")
    return responses, left_out


def ask_for_topics(responses: Sequence[Response], llm: ChatModelProtocol | None) -> list[Response]:
    """The responses with the topics that the LLM names; one of which it names none has no page, and says so."""
    if llm is None:
        raise UsageError("give the topic, or an LLM to ask for it")
    task = (
        "Which one person, place, work or thing is the last answer of this conversation about? "
        "Reply with the title of its encyclopedia article and nothing else."
    )
    params = {"temperature": 0.0, "max_tokens": 30}
    requests = [
        (at, ChatRequest(({"role": "user", "content": f"{task}\n\n{one.conversation_so_far}\n\nTitle:"},), params))
        for at, one in enumerate(responses)
        if one.conversation_so_far is not None
    ]
    found, reasons = list(responses), []
    for at, reply in ask_all(llm, requests):
        answer = extract_llm_answer(reply)
        first = answer.text.strip().partition("\n")[0]
        title = first.strip().strip("\"'*.").removeprefix("Title:").strip() if answer.status == "ok" else ""
        if not title:
            reasons.append(answer.error or answer.status)
        found[at] = replace(responses[at], topic=title, conversation_so_far=None)
    if len(reasons) == len(requests):
        raise UsageError(f"the LLM named no topic ({reasons[0]}); give it")
    return found


def read_conversations(
    paths: Sequence[Path], topic: str | None = None, system: str | None = None, limit: int | None = None
) -> tuple[list[Response], list[str]]:
    """The assistant's turns of files of conversations, and what was left out, a line per file.

    JSONL, a conversation per line: ``{messages or turns: [{role, content, [topic]}], [topic], [system], [id]}``.

    Raises `InputError` naming the lines that are wrong, or a file without a turn to score.
    """
    found: list[Response] = []
    notes = []
    for path in paths:
        problems: list[Problem] = []
        n_short = 0
        before = len(found)
        for number, talk in validate_lines(read_lines(path)[:limit], Conversation, problems):
            talk.system = talk.system or system or path.name.removesuffix(".gz").rsplit(".", 1)[0]
            turns, short = list_assistant_turn_responses(talk, talk.id or hash_texts(path.name, str(number)), topic)
            found += turns
            n_short += len(short)
        if not problems and len(found) == before:
            problems.append(Problem(f"no turn of {' or '.join(SCORED_ROLES)} with at least {MIN_TURN_WORDS} words"))
        if problems:
            raise InputError(str(path), problems)
        if n_short:
            notes.append(f"{path.name}: {format_count(n_short, 'turn')} of fewer than {MIN_TURN_WORDS} words left out")
    return found, notes
