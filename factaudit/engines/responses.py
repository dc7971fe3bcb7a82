"""What is scored? Texts about a topic, with what somebody has already written down about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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

from factaudit.datasets.source_files import describe_invalid_row, read_json
from factaudit.errors import MAX_PROBLEMS, InputError, Problem, UsageError
from factaudit.knowledge.json_lines import read_json_lines
from factaudit.signature import hash_texts

#: What the original's annotators wrote of a fact (supported, not supported, irrelevant), as labels.
FACT_LABELS = {"S": 1, "NS": 0, "IR": None}

_BIOGRAPHY_QUESTION = re.compile(
    r"^\s*(?:tell me (?:a |the )?bio(?:graphy)? of|who is|who was)\s+", re.IGNORECASE
)


def _convert_fact_label(value: Any) -> Any:
    return {1: "S", 0: "NS"}.get(value, value) if isinstance(value, int) else value


@dataclass(frozen=True, slots=True)
class AtomicFact:
    """An atomic fact, and where known: what a person said of it, its sentence, and whom it is
    about.

    label: S, NS or IR. sentence: its number, from 0. group: any mark of the biography that it is
    part of. entity: the title of the page of the person that the group is about. failure, reason:
    the status of the call that should have
    taken the facts from a sentence, and why: the text is then the sentence, which stands for its
    facts.
    """

    __pydantic_config__ = ConfigDict(coerce_numbers_to_str=True)

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    label: Annotated[Literal["S", "NS", "IR"] | None, BeforeValidator(_convert_fact_label)] = None
    sentence: int | None = None
    group: str | None = None
    entity: str | None = None
    failure: str | None = None
    reason: str | None = None

    def as_claim_label(self, irrelevant: str) -> int | None:
        """S is 1, NS is 0; IR is no label, or 0 where irrelevant facts count as ``unsupported``."""
        if self.label is None:
            return None
        return 0 if self.label == "IR" and irrelevant == "unsupported" else FACT_LABELS[self.label]


@dataclass(frozen=True, slots=True)
class Response:
    """One text about one topic (for D-FActScore: about a name).

    facts: None where a model is still to find them; sentences: those that they are of, None where
    nobody has said.
    groups: in D-FActScore the group of each fact, None where nobody could group them. abstained:
    whether it declined to
    answer, None where nobody has said. human: the number of facts that people labelled S, NS and IR
    over its relevant
    sentences. candidates: titles of the pages that it may be about; None: still to be found. docs:
    (title, text) of passages that came with it, as citations number them. conversation_so_far: the
    conversation up to it, where its topic is still to be asked for.
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


def make_response(
    topic: str, output: str, system: str | None = None, position: int = 0
) -> Response:
    """A response with an id made of (system, topic, output, position among equals)."""
    return Response(hash_texts(system, topic, output, str(position)), topic, output, system)


# ---- reading


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

    topic: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] = Field(
        validation_alias=AliasChoices("topic", "name")
    )
    output: str
    system: Annotated[str, Field(pattern=r"\S")] | None = None
    response_id: str | None = None
    facts: _Facts | None = None
    annotations: list[_AnnotatedSentence] | None = None
    candidates: list[str] | None = None
    docs: list[_Document] = Field(default_factory=list)


class _AlceItem(BaseModel):
    question: str
    output: str
    docs: list[_Document] = Field(default_factory=list)


class _AlceFile(BaseModel):
    data: list[_AlceItem]


def read_responses(
    paths: Iterable[str | Path],
    *,
    facts: str | None = None,
    system: str | None = None,
    limit: int | None = None,
) -> list[Response]:
    """Read responses from files: JSONL (also ``.gz``), or an output file of ALCE (``.json``).

    A line is ``{topic or name, output, [system], [response_id], [facts], [annotations],
    [candidates] or [docs]}``; a fact is a text or ``{text, [label], [sentence], [group],
    [entity]}``, its label S, NS, IR, 1 or 0. ALCE's ``{"data": [{question, output, docs}]}`` gives
    the name from the question; the candidates of a line with ``docs`` alone are the titles of
    these.

    Args:
        facts: ``model`` or ``human``: take those of the original's ``annotations``, where null
        means that the response
            abstained. None: use the ``facts`` of a line; a line without them is split by a model.
        system: for lines that name none; by default the file's name without its suffix.
        limit: only the first so many of each file.

    Raises `InputError` naming the lines that are wrong.
    """
    responses = [one for path in paths for one in _read_file(Path(path), facts, system, limit)]
    for response_id, n in Counter(one.response_id for one in responses).items():
        if n > 1:
            raise UsageError(
                f"the response_id {response_id!r} stands {n} times: each response needs its own"
            )
    return responses


def _read_file(
    path: Path, annotators: str | None, system: str | None, limit: int | None
) -> list[Response]:
    named = system if system is not None else name_system_by_file(path)
    if path.suffix == ".json":
        alce: _AlceFile = read_json(path, _AlceFile)
        rows = [
            {**one.model_dump(), "name": _parse_name(one.question)} for one in alce.data[:limit]
        ]
        lines = parse_typed_rows(path, _ResponseLine, list(enumerate(rows, start=1)))
    else:
        lines = read_typed_lines(path, _ResponseLine, limit)
    if annotators is not None:
        lacking = [number for number, line in lines if "annotations" not in line.model_fields_set]
        message = f"expected annotations, to take the {annotators} facts from"
        raise_problems(path, [Problem(message, number, unit="line") for number in lacking])
    seen: Counter[str] = Counter()
    return [_make_response(line, annotators, line.system or named, seen) for _, line in lines]


def _make_response(
    line: _ResponseLine, annotators: str | None, system: str, seen: Counter[str]
) -> Response:
    titles = (
        [doc.title for doc in line.docs] or None if line.candidates is None else line.candidates
    )
    key = hash_texts(system, line.topic, line.output)
    made = replace(
        make_response(line.topic, line.output, system, seen[key]),
        facts=line.facts,
        candidates=None if titles is None else tuple(dict.fromkeys(titles)),
        docs=tuple((doc.title, doc.text) for doc in line.docs),
    )
    seen[key] += 1
    if line.response_id is not None:
        made = replace(made, response_id=line.response_id)
    sentences = line.annotations or []
    if line.annotations is not None:
        labels = Counter(
            fact.label for one in sentences if one.relevant for fact in one.human or ()
        )
        made = replace(made, human=(labels["S"], labels["NS"], labels["IR"]))
    if annotators is None:
        return made
    facts = [
        replace(fact, sentence=at)
        for at, one in enumerate(sentences)
        for fact in getattr(one, annotators) or ()
    ]
    texts = tuple(one.text for one in sentences)
    return replace(made, abstained=line.annotations is None, sentences=texts, facts=tuple(facts))


def _parse_name(question: str) -> str:
    """The name in "Tell me a bio of NAME", without "(disambiguation)" (MF App. A)."""
    return _BIOGRAPHY_QUESTION.sub("", question).replace("(disambiguation)", "").strip(" ?.")


def name_system_by_file(path: Path) -> str:
    """The file's name without its suffix."""
    return path.name.removesuffix(".gz").rsplit(".", 1)[0]


def read_typed_lines(
    path: Path, model: type[Any], limit: int | None = None
) -> list[tuple[int, Any]]:
    """The first lines of a JSONL file as ``model``, with their numbers.

    Raises `InputError` where the file is empty, and naming all lines that are wrong.
    """
    return parse_typed_rows(path, model, list(islice(read_json_lines(path), limit)))


def parse_typed_rows(
    path: Path, model: type[Any], rows: Sequence[tuple[int, Any]]
) -> list[tuple[int, Any]]:
    """`read_typed_lines` of lines that were read already."""
    raise_problems(path, [] if rows else [Problem("the file is empty")])
    found, problems = [], []
    for number, row in rows:
        try:
            found.append((number, model.model_validate(row)))
        except ValidationError as error:
            problems += [
                describe_invalid_row(one, "line", number) for one in error.errors(include_url=False)
            ]
    raise_problems(path, problems)
    return found


def raise_problems(path: Path, problems: Sequence[Problem]) -> None:
    """Raise the `InputError` of what is wrong with a file, if anything is."""
    if problems:
        raise InputError(str(path), problems[:MAX_PROBLEMS], len(problems))
