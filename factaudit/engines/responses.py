"""What is scored? Texts about a topic, with what somebody has already written down about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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

#: What people write of a fact (supported, not supported, irrelevant), as labels.
FACT_LABELS = {"S": 1, 1: 1, "NS": 0, 0: 0, "IR": None}
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


@dataclass(frozen=True, slots=True)
class AtomicFact:
    """An atomic fact, and where known: what a person said of it, its sentence, and whom it is
    about.

    label: one of `FACT_LABELS`. sentence: its number, from 0. group: any mark of the biography that
    it is part of. entity: the title of the page of the person that the group is about. failure,
    reason: the status of the call that should have taken the facts from a sentence, and why: the
    text is then the sentence, which stands for its facts.
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
    """One text about one topic (for D-FActScore: about a name).

    facts: None where a model is still to find them; sentences: those that they are of, None where
    nobody has said. groups: in D-FActScore the group of each fact, None where nobody could group
    them. abstained: whether it declined to answer, None where nobody has said. human: the number of
    facts that people labelled S, NS and IR over its relevant sentences. candidates: titles of the
    pages that it may be about; None: still to be found. docs: (title, text) of passages that came
    with it, as citations number them. conversation_so_far: the conversation up to it, where its
    topic is still to be asked for.
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
    conversation_so_far: str | None = None

    @property
    def abstains(self) -> bool:
        """Whether it is known to have declined to answer."""
        return bool(self.abstained)


def make_response_id(system: str | None, topic: str, output: str, position: int = 0) -> str:
    """An id of a text that has none; position: among equal texts."""
    return hash_texts(system, topic, output, str(position))


# -------------------------------------------------------------------------------------- reading


def _wrap_fact_text(value: Any) -> Any:
    return {"text": value} if isinstance(value, str) else value


_Facts = tuple[Annotated[AtomicFact, BeforeValidator(_wrap_fact_text)], ...]


class _AnnotatedSentence(BaseModel):
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


def read_responses(
    paths: Iterable[str | Path],
    *,
    facts: str | None = None,
    system: str | None = None,
    limit: int | None = None,
) -> list[Response]:
    """Read responses from files of JSON lines (also ``.gz``).

    A line is ``{topic or name, output, [system], [response_id], [facts], [annotations],
    [candidates], [docs]}``; a fact is a text or ``{text, [label], [sentence], [group], [entity]}``,
    its label S, NS, IR, 1 or 0; a document is ``{title, text}``. The candidates of a line with
    ``docs`` alone are the titles of these.

    Args:
        facts: ``model`` or ``human``: take those of the original's ``annotations``, where null
            means that the response abstained. None: use the ``facts`` of a line; a line without
            them is split by a model.
        system: for lines that name none; by default the file's name without its suffix.
        limit: only the first so many of each file.

    Raises `InputError` naming the lines that are wrong.
    """
    found = []
    for path in map(Path, paths):
        lines = read_typed_lines(path, _ResponseLine, limit)
        if facts is not None:
            message = f"expected annotations, to take the {facts} facts from"
            check_file(
                path,
                [
                    Problem(message, number, unit="line")
                    for number, line in lines
                    if "annotations" not in line.model_fields_set
                ],
            )
        seen: Counter[tuple[str, ...]] = Counter()
        for _, line in lines:
            named = line.system or system or name_system_by_file(path)
            key = named, line.topic, line.output
            found.append(_make_response(line, facts, named, seen[key]))
            seen[key] += 1
    for response_id, n in Counter(one.response_id for one in found).items():
        if n > 1:
            raise UsageError(
                f"the response_id {response_id!r} stands {n} times: each response needs its own"
            )
    return found


def _make_response(
    line: _ResponseLine, annotators: str | None, system: str, position: int
) -> Response:
    titles = line.candidates
    if titles is None and line.docs:
        titles = [doc.title for doc in line.docs]
    annotated = line.annotations or []
    facts, sentences, human, abstained = line.facts, None, None, None
    if line.annotations is not None:
        labels = Counter(
            fact.label for one in annotated if one.relevant for fact in one.human or ()
        )
        human = labels["S"], labels["NS"], labels["IR"]
    if annotators is not None:
        abstained = line.annotations is None
        sentences = tuple(one.text for one in annotated)
        facts = tuple(
            AtomicFact(fact.text, fact.label, number, fact.group, fact.entity)
            for number, one in enumerate(annotated)
            for fact in getattr(one, annotators) or ()
        )
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
        docs=tuple((doc.title, doc.text) for doc in line.docs),
    )


def name_system_by_file(path: Path) -> str:
    """The file's name without its suffix."""
    return path.name.removesuffix(".gz").rsplit(".", 1)[0]


def read_typed_lines(
    path: Path, model: type[Any], limit: int | None = None
) -> list[tuple[int, Any]]:
    """The first lines of a JSONL file as ``model``, with their numbers.

    Raises `InputError` where the file is empty, and naming all lines that are wrong.
    """
    found, problems = [], []
    for number, row in islice(read_json_lines(path), limit):
        try:
            found.append((number, model.model_validate(row)))
        except ValidationError as error:
            problems += [
                describe_invalid_row(one, "line", number) for one in error.errors(include_url=False)
            ]
    check_file(path, problems if found or problems else [Problem("the file is empty")])
    return found


def check_file(path: Path, problems: Sequence[Problem]) -> None:
    """Raise the `InputError` of what is wrong with a file, if anything is."""
    if problems:
        raise InputError(str(path), problems[:MAX_PROBLEMS], len(problems))
