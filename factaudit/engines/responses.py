"""What is scored? Texts about a topic, with what somebody has already written down about them.

A file of responses has a JSON object on each line. `read_responses` checks it and makes a
`Response` of each line; the steps of the scores then fill in what the file does not have: the
facts, the sentences that they come from, and (D-FActScore) their groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from factaudit.datasets.source_files import describe_invalid_row
from factaudit.errors import MAX_PROBLEMS, InputError, Problem, UsageError
from factaudit.knowledge.json_lines import read_json_lines
from factaudit.signature import hash_texts

#: The labels that a person may give a fact (supported, not supported, irrelevant), and the label of
#: its claim.
FACT_LABELS = {"S": 1, 1: 1, "NS": 0, 0: 0, "IR": None}
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


@dataclass(frozen=True, slots=True)
class AtomicFact:
    """A short statement of one thing that a response says.

    text: the statement. label: what a person says of it, one of `FACT_LABELS`. sentence: the number
    of its sentence in the response, from 0. group: in D-FActScore any mark that the facts about one
    person share. entity: the title of the page of that person. failure, reason: set if the call
    that should have split a sentence failed. ``text`` is then the whole sentence, which stands for
    its facts.
    """

    __pydantic_config__ = ConfigDict(coerce_numbers_to_str=True)

    text: _Text
    label: Literal["S", "NS", "IR", 1, 0] | None = None
    sentence: int | None = None
    group: str | None = None
    entity: str | None = None
    failure: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """One text about one topic (for D-FActScore: about everybody of one name).

    In all fields None means that the file does not say it.

    facts: None if a model is still to find them. sentences: those that the facts come from. groups:
    in D-FActScore the number of each fact's group; None if nobody could group them. abstained:
    whether the response declines to answer. human: how many of its facts people labelled S, NS and
    IR, over the sentences that are relevant. candidates: the titles of the pages that it may be
    about. docs: (title, text) of the passages that came with it, in the order in which citations
    number them. left_out: how much the steps have left out, by what it is (of one, of several).
    """

    response_id: str
    topic: str
    output: str
    system: str | None = None
    facts: tuple[AtomicFact, ...] | None = None
    sentences: tuple[str, ...] | None = None
    groups: tuple[int, ...] | None = None
    abstained: bool | None = None
    human: tuple[int, int, int] | None = None
    candidates: tuple[str, ...] | None = None
    docs: tuple[tuple[str, str], ...] = ()
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter, compare=False)


def make_response_id(system: str | None, topic: str, output: str, position: int = 0) -> str:
    """An id for a text that has none. position: its number among equal texts of the file."""
    return hash_texts(system, topic, output, str(position))


# -------------------------------------------------------------------------------------- reading


def _wrap_fact_text(value: Any) -> Any:
    return {"text": value} if isinstance(value, str) else value


_Facts = tuple[Annotated[AtomicFact, BeforeValidator(_wrap_fact_text)], ...]


class _AnnotatedSentence(BaseModel):
    """A sentence of the files that the authors of FActScore published, with a model's facts and
    with a person's."""

    text: str
    relevant: bool = Field(default=True, alias="is-relevant")
    model: _Facts | None = Field(default=None, alias="model-atomic-facts")
    human: _Facts | None = Field(default=None, alias="human-atomic-facts")


class _Document(BaseModel):
    title: str
    text: str


class _ResponseLine(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    topic: _Text = Field(validation_alias=AliasChoices("topic", "name"))
    output: str
    system: _Text | None = None
    response_id: str | None = None
    facts: _Facts | None = None
    annotations: list[_AnnotatedSentence] | None = None
    candidates: list[str] | None = None
    docs: list[_Document] = Field(default_factory=list)


class _Turn(BaseModel):
    """content: a text, or as some chat APIs have it a list of parts, whose texts count."""

    role: str
    content: str | list[dict[str, Any]] | None = None

    def text(self) -> str:
        if not isinstance(self.content, list):
            return self.content or ""
        return "\n".join(str(part["text"]) for part in self.content if part.get("text"))


class _Conversation(BaseModel):
    messages: list[_Turn]


def _read_lines(row: dict[str, Any]) -> list[_ResponseLine]:
    """The responses of a line: one, or each answer of the assistant in a conversation. (A line with
    an output may have the prompt in its messages.)"""
    if "messages" not in row or "output" in row:
        return [_ResponseLine.model_validate(row)]
    line = _ResponseLine.model_validate(row | {"output": ""})
    turns = _Conversation.model_validate(row).messages
    answers = [turn.text() for turn in turns if turn.role.casefold() == "assistant"]
    said = line.response_id
    return [
        line.model_copy(update={"output": answer, "response_id": said and f"{said}.{at}"})
        for at, answer in enumerate(answers, start=1)
        if answer.strip()
    ]


def read_responses(
    paths: Iterable[str | Path],
    *,
    facts: str | None = None,
    system: str | None = None,
    limit: int | None = None,
) -> list[Response]:
    """Read responses from files of JSON lines (also ``.gz``).

    A line is ``{topic or name, output, [system], [response_id], [facts], [annotations],
    [candidates], [docs]}``. A fact is a text or ``{text, [label], [sentence], [group], [entity]}``;
    its label is S, NS, IR, 1 or 0. A document is ``{title, text}``. If a line has ``docs`` and no
    ``candidates``, their titles are the candidates. A line ``{topic, messages}`` without an
    ``output`` is a conversation, of which each answer of the assistant is a response.

    Args:
        facts: ``model`` or ``human``: take the facts from the ``annotations`` of the original's
            files, in which null means that the response abstained. None: take the ``facts`` of a
            line; a line without them is split by a model.
        system: the system of lines that name none; by default the file's name without its suffix.
        limit: read only the first so many lines of each file.

    Raises `InputError` that names the lines that are wrong, and `UsageError` if two responses have
    one id.
    """
    found: list[Response] = []
    for path in map(Path, paths):
        name = system or path.name.removesuffix(".gz").rsplit(".", 1)[0]
        n_equal: Counter[tuple[str, ...]] = Counter()
        n_before, problems = len(found), list[Problem]()
        for number, row in islice(read_json_lines(path), limit):
            try:
                lines = _read_lines(row)
            except ValidationError as error:
                for one in error.errors(include_url=False):
                    problems.append(describe_invalid_row(one, "line", number))
                continue
            if not lines:
                problems.append(Problem("no answer of the assistant", number, unit="line"))
            for line in lines:
                if facts is not None and "annotations" not in line.model_fields_set:
                    message = f"expected annotations, to take the {facts} facts from"
                    problems.append(Problem(message, number, unit="line"))
                key = line.system or name, line.topic, line.output
                found.append(_make_response(line, facts, key[0], n_equal[key]))
                n_equal[key] += 1
        if len(found) == n_before and not problems:
            problems = [Problem("the file is empty")]
        if problems:
            raise InputError(str(path), problems[:MAX_PROBLEMS], len(problems))
    for response_id, n in Counter(one.response_id for one in found).items():
        if n > 1:
            raise UsageError(
                f"the response_id {response_id!r} stands {n} times: each response needs its own"
            )
    return found


def _make_response(
    line: _ResponseLine, annotator: str | None, system: str, position: int
) -> Response:
    facts, sentences, human, abstained = line.facts, None, None, None
    annotated = line.annotations or []
    if line.annotations is not None:
        labels = Counter(
            fact.label for one in annotated if one.relevant for fact in one.human or ()
        )
        human = labels["S"], labels["NS"], labels["IR"]
    if annotator is not None:
        abstained = line.annotations is None
        sentences = tuple(one.text for one in annotated)
        facts = tuple(
            replace(fact, sentence=number)
            for number, one in enumerate(annotated)
            for fact in getattr(one, annotator) or ()
        )
    docs = tuple((doc.title, doc.text) for doc in line.docs)
    titles = line.candidates
    if titles is None and docs:
        titles = [title for title, _ in docs]
    return Response(
        line.response_id or make_response_id(system, line.topic, line.output, position),
        line.topic,
        line.output,
        system,
        facts,
        sentences,
        abstained=abstained,
        human=human,
        candidates=None if titles is None else tuple(dict.fromkeys(titles)),
        docs=docs,
    )
