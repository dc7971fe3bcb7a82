"""What is scored? Texts about a topic, with what somebody has already written down about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from factaudit.datasets.source_files import describe_invalid_row, read_json
from factaudit.errors import MAX_PROBLEMS, InputError, Problem, UsageError
from factaudit.knowledge.json_lines import read_json_lines, replace_surrogates_in_knowledge_json
from factaudit.signature import hash_texts

#: What the original's annotators wrote of a fact (supported, not supported, irrelevant), as labels.
FACT_LABELS = {"S": 1, "NS": 0, "IR": None}
#: Whose facts of the original's annotations to take.
ANNOTATED_FACT_SOURCES = ("model", "human")

_BIOGRAPHY_QUESTION = re.compile(r"^\s*(?:tell me (?:a |the )?bio(?:graphy)? of|who is|who was)\s+", re.IGNORECASE)


def _convert_fact_label(value: Any) -> Any:
    return {1: "S", 0: "NS"}.get(value, value) if isinstance(value, int) else value


@dataclass(frozen=True, slots=True)
class AtomicFact:
    """An atomic fact, and where known: what a person said of it, its sentence, and whom it is about.

    label: S, NS or IR. sentence: its number, from 0. group: any mark of the biography that it is part of. entity: the
    title of the page of the person that the group is about. failure_status: the status of the call that should have
    taken the facts from a sentence: the text is then the sentence, which stands for them, and is not decomposed.
    """

    __pydantic_config__ = ConfigDict(coerce_numbers_to_str=True)

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    label: Annotated[Literal["S", "NS", "IR"] | None, BeforeValidator(_convert_fact_label)] = None
    sentence: int | None = None
    group: str | None = None
    entity: str | None = None
    failure_status: str | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """One text about one topic (for D-FActScore: about a name).

    facts: None where they are still to be had from a model; ``sentences`` are then those that they are of, None where
    nobody has told. abstained: whether it declined to answer, None where nobody has said. human: the number of facts
    that people labelled S, NS and IR over its relevant sentences, None where it was not annotated. candidates: titles
    of the pages that it may be about; None: still to be found. docs: (title, text) of passages that came with it, as
    citations number them. category: of `CATEGORIES` of MF §2.4, where somebody has said. conversation_so_far: the
    conversation up to it, where its topic is still to be asked for.
    """

    response_id: str
    topic: str
    output: str
    system: str | None = None
    facts: tuple[AtomicFact, ...] | None = None
    sentences: tuple[str, ...] | None = None
    abstained: bool | None = None
    human: tuple[int, int, int] | None = None
    candidates: tuple[str, ...] | None = None
    docs: tuple[tuple[str, str], ...] = ()
    category: str | None = None
    conversation_so_far: str | None = None


def make_response(topic: str, output: str, system: str | None = None, position: int = 0) -> Response:
    """A response with an id made of (system, topic, output, position among equals)."""
    topic, output = replace_surrogates_in_knowledge_json([topic, output])
    return Response(hash_texts(system, topic, output, str(position)), topic, output, system)


def remove_response_citation_marks(text: str) -> str:
    """The text without ``[1]`` and the white space before it.

    >>> remove_response_citation_marks("He died in 1902 [1][2].")
    'He died in 1902.'
    """
    return re.sub(r"\s*\[\d+\]", "", text)


def parse_name_from_question(question: str) -> str:
    """The name in "Tell me a bio of NAME", without "(disambiguation)" (MF App. A)."""
    return _BIOGRAPHY_QUESTION.sub("", question).replace("(disambiguation)", "").strip(" ?.")


def find_group_entities(facts: Sequence[AtomicFact]) -> dict[str | None, str | None]:
    """Of each group its entity: the one that most of its facts have. Facts without a group are one group together."""
    entities: dict[str | None, Counter[str]] = {}
    for fact in facts:
        entities.setdefault(fact.group, Counter()).update([fact.entity] if fact.entity else [])
    return {group: counts.most_common(1)[0][0] if counts else None for group, counts in entities.items()}


# -------------------------------------------------------------------------------------------------------- reading


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
    category: str | None = None


class _FactsLine(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    facts: _Facts
    response_id: str | None = None


class _AlceItem(BaseModel):
    question: str
    output: str
    docs: list[_Document] = Field(default_factory=list)


class _AlceFile(BaseModel):
    data: list[_AlceItem]


def read_response_files(
    paths: Iterable[str | Path], *, facts: str | Path | None = None, system: str | None = None, limit: int | None = None
) -> list[Response]:
    """`read_response_file` of several files; a response that stands in two of them is a `UsageError`."""
    responses = [one for path in paths for one in read_response_file(path, facts=facts, system=system, limit=limit)]
    for response_id, n in Counter(one.response_id for one in responses).items():
        if n > 1:
            raise UsageError(f"the same response stands in two of the files (response_id {response_id!r})")
    return responses


def read_response_file(
    path: str | Path, *, facts: str | Path | None = None, system: str | None = None, limit: int | None = None
) -> list[Response]:
    """Read responses: JSONL (also ``.gz``), or an output file of ALCE (``.json``).

    A line is ``{topic or name, output, [system], [response_id], [facts], [annotations], [candidates] or [docs],
    [category]}``; a fact is a text or ``{text, [label], [sentence], [group], [entity]}``, its label S, NS, IR, 1 or 0.
    ALCE's ``{"data": [{question, output, docs}]}`` gives the name from the question; the candidates of a line with
    ``docs`` alone are the titles of these.

    Args:
        facts: None: a model decomposes (but a line's own ``facts`` are used); ``model`` or ``human``: those of the
            original's ``annotations``, where null means that the response abstained; else a JSONL file of
            ``{facts, [response_id]}``, by ``response_id`` where each line has one, else line by line.
        system: for lines that name none; by default the file's name without its suffix.
        limit: only the first so many.

    Raises `InputError` naming the lines that are wrong.
    """
    source = Path(path)
    named = system if system is not None else source.name.removesuffix(".gz").rsplit(".", 1)[0]
    problems: list[Problem] = []
    if source.suffix == ".json":
        alce: _AlceFile = read_json(source, _AlceFile)
        lines = [
            (at, _ResponseLine.model_validate({**dict(one), "name": parse_name_from_question(one.question)}))
            for at, one in enumerate(alce.data[:limit], start=1)
        ]
    else:
        lines = validate_lines(read_lines(source)[:limit], _ResponseLine, problems)
    fact_source = str(facts) if facts in ANNOTATED_FACT_SOURCES else None
    seen: Counter[str] = Counter()
    responses = []
    for number, line in lines:
        if fact_source is not None and "annotations" not in line.model_fields_set:
            message = f"expected annotations, to take the {fact_source} facts from"
            problems.append(Problem(message, number, unit="line"))
        else:
            responses.append(_make_response(line, fact_source, named, seen))
    ids = Counter(response.response_id for response in responses)
    problems += [Problem(f"the response_id {one!r} stands {n} times") for one, n in ids.items() if n > 1]
    _raise_problems(source, problems)
    return responses if facts is None or fact_source else _add_facts(responses, Path(facts))


def _make_response(line: _ResponseLine, source: str | None, default_system: str, seen: Counter[str]) -> Response:
    """source: whose facts to take of the original's annotations, which are null where the response abstained."""
    system = line.system or default_system
    key = hash_texts(system, line.topic, line.output)
    made = make_response(line.topic, line.output, system, seen[key])
    seen[key] += 1
    titles = [doc.title for doc in line.docs] or None if line.candidates is None else line.candidates
    made = replace(
        made,
        response_id=line.response_id or made.response_id,
        facts=line.facts,
        candidates=None if titles is None else tuple(dict.fromkeys(titles)),
        docs=tuple((doc.title, doc.text) for doc in line.docs),
        category=line.category,
    )
    sentences = line.annotations or []
    if line.annotations is not None:
        labels = Counter(fact.label for one in sentences if one.relevant for fact in one.human or ())
        made = replace(made, human=(labels["S"], labels["NS"], labels["IR"]))
    if source is None:
        return made
    facts = [replace(fact, sentence=at) for at, one in enumerate(sentences) for fact in getattr(one, source) or ()]
    told = tuple(one.text for one in sentences)
    return replace(made, abstained=line.annotations is None, sentences=told, facts=tuple(facts))


def _add_facts(responses: list[Response], path: Path) -> list[Response]:
    """The responses with the facts of another file, by response_id where all lines have one, else line by line."""
    problems: list[Problem] = []
    given = [line for _, line in validate_lines(read_lines(path), _FactsLine, problems)]
    _raise_problems(path, problems)
    if all(line.response_id is not None for line in given):
        by_id = {line.response_id: line.facts for line in given}
        lost = [one.response_id for one in responses if one.response_id not in by_id]
        _raise_problems(path, [Problem(f"no facts for the response_id {one!r}") for one in lost])
        facts = [by_id[one.response_id] for one in responses]
    else:
        if len(given) != len(responses):
            message = f"expected a line per response: {len(responses)}, found {len(given)}"
            _raise_problems(path, [Problem(message)])
        facts = [line.facts for line in given]
    return [replace(one, facts=own, sentences=None) for one, own in zip(responses, facts, strict=True)]


def read_lines(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a JSONL file with the numbers of their lines; one at least."""
    rows = list(read_json_lines(path))
    _raise_problems(path, [] if rows else [Problem("the file is empty")])
    return rows


def validate_lines(
    rows: Sequence[tuple[int, dict[str, Any]]], model: type[Any], problems: list[Problem]
) -> list[tuple[int, Any]]:
    """The rows that are of the form, with their line numbers; what is wrong with others is added to ``problems``."""
    found = []
    for number, row in rows:
        try:
            found.append((number, model.model_validate(row)))
        except ValidationError as error:
            found_wrong = ({**one, "loc": (0, *one["loc"])} for one in error.errors(include_url=False))
            problems += [describe_invalid_row(one, "line", [number]) for one in found_wrong]
    return found


def _raise_problems(path: Path, problems: Sequence[Problem]) -> None:
    if problems:
        raise InputError(str(path), problems[:MAX_PROBLEMS], len(problems))
