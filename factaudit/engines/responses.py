"""What is scored? Texts about a topic, with what somebody has already written down about them."""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from factaudit.datasets.source_files import describe_invalid_source_row, read_dataset_source_json
from factaudit.errors import MAX_PROBLEMS, InputError, Problem, UsageError
from factaudit.files import open_input_file
from factaudit.knowledge.json_lines import parse_knowledge_json_line, replace_surrogates_in_knowledge_json
from factaudit.signature import hash_texts

#: What the original's annotators wrote of a fact (supported, not supported, irrelevant), as labels.
FACT_LABELS = {"S": 1, "NS": 0, "IR": None}
#: Whose facts of the original's annotations to take.
ANNOTATED_FACT_SOURCES = ("model", "human")

_BIOGRAPHY_QUESTION = re.compile(r"^\s*(?:tell me (?:a |the )?bio(?:graphy)? of|who is|who was)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AtomicFact:
    """An atomic fact, and where known: what a person said of it, its sentence, and whom it is about.

    label: S, NS or IR. sentence: its number, from 0. group: any mark of the biography that it is part of. entity: the
    title of the page of the person that the group is about. failure_status: the status of the call that should have
    taken the facts from a sentence: the text is then the sentence, which stands for them, and nobody is asked about it.
    """

    text: str
    label: str | None = None
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


def find_given_fact_groups(facts: Sequence[AtomicFact]) -> tuple[list[str | None], dict[str | None, str | None]]:
    """The marks of the facts' groups, and of each group its entity (the one that most of its facts have).

    Facts without a group are one group together.
    """
    entities: dict[str | None, Counter[str]] = {}
    for fact in facts:
        entities.setdefault(fact.group, Counter())[fact.entity or ""] += fact.entity is not None
    most = {group: max(counts, key=lambda one: counts[one]) for group, counts in entities.items() if counts}
    return [fact.group for fact in facts], {group: entity or None for group, entity in most.items()}


# ------------------------------------------------------------------------------------------------- the files' forms


def _convert_fact_label(value: Any) -> Any:
    return {1: "S", 0: "NS"}.get(value, value) if isinstance(value, int) else value


def _wrap_fact_text(value: Any) -> Any:
    return {"text": value} if isinstance(value, str) else value


class _ResponseFileFactRow(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    text: str = Field(pattern=r"\S")
    label: Annotated[Literal["S", "NS", "IR"] | None, BeforeValidator(_convert_fact_label)] = None
    sentence: int | None = None
    group: str | None = None
    entity: str | None = None


_FactRows = list[Annotated[_ResponseFileFactRow, BeforeValidator(_wrap_fact_text)]]


class _ResponseFileSentenceRow(BaseModel):
    text: str
    relevant: bool = Field(default=True, alias="is-relevant")
    model: _FactRows | None = Field(default=None, alias="model-atomic-facts")
    human: _FactRows | None = Field(default=None, alias="human-atomic-facts")


class _DocumentRow(BaseModel):
    title: str
    text: str


class _ResponseFileRow(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    topic: str = Field(pattern=r"\S", validation_alias=AliasChoices("topic", "name"))
    output: str
    system: Annotated[str, Field(pattern=r"\S")] | None = None
    response_id: str | None = None
    facts: _FactRows | None = None
    annotations: list[_ResponseFileSentenceRow] | None = None
    candidates: list[str] | None = None
    docs: list[_DocumentRow] = Field(default_factory=list)
    category: str | None = None


class _ResponseFileGivenFactsRow(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    facts: _FactRows
    response_id: str | None = None


class _AlceItem(BaseModel):
    question: str
    output: str
    docs: list[_DocumentRow] = Field(default_factory=list)


class _AlceOutputFile(BaseModel):
    data: list[_AlceItem]


# ------------------------------------------------------------------------------------------------------- reading


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
        alce: _AlceOutputFile = read_dataset_source_json(source, _AlceOutputFile)
        lines = [
            (number, _ResponseFileRow.model_validate({**dict(one), "name": parse_name_from_question(one.question)}))
            for number, one in enumerate(alce.data[:limit], start=1)
        ]
    else:
        lines = validate_response_file_rows(read_response_lines(source)[:limit], _ResponseFileRow, problems)
    fact_source = str(facts) if facts in ANNOTATED_FACT_SOURCES else None
    seen: Counter[str] = Counter()
    responses = []
    for number, line in lines:
        if fact_source is not None and "annotations" not in line.model_fields_set:
            message = f"expected annotations, to take the {fact_source} facts from"
            problems.append(Problem(message, number, unit="line"))
        else:
            responses.append(_make_response_from_row(line, fact_source, named, seen))
    ids = Counter(response.response_id for response in responses)
    problems += [Problem(f"the response_id {one!r} stands {n} times") for one, n in ids.items() if n > 1]
    _raise_problems(source, problems)
    return responses if facts is None or fact_source else _add_facts_to_read_responses(responses, Path(facts))


def _make_response_from_row(
    line: _ResponseFileRow, fact_source: str | None, default_system: str, occurrences: Counter[str]
) -> Response:
    system = line.system or default_system
    key = hash_texts(system, line.topic, line.output)
    made = make_response(line.topic.strip(), line.output, system, occurrences[key])
    occurrences[key] += 1
    candidates = line.candidates
    if candidates is None and line.docs:
        candidates = [doc.title for doc in line.docs]
    given = replace(
        made,
        response_id=line.response_id or made.response_id,
        facts=None if line.facts is None else _make_atomic_facts(line.facts),
        candidates=None if candidates is None else tuple(dict.fromkeys(candidates)),
        docs=tuple((doc.title, doc.text) for doc in line.docs),
        category=line.category,
    )
    return replace(given, **_extract_response_line_annotations(line, fact_source))


def _extract_response_line_annotations(line: _ResponseFileRow, fact_source: str | None) -> dict[str, Any]:
    """What the original's annotations tell: null means that the response abstained."""
    found: dict[str, Any] = {}
    sentences = line.annotations or []
    if line.annotations is not None:
        labels = Counter(fact.label for one in sentences if one.relevant for fact in one.human or ())
        found["human"] = labels["S"], labels["NS"], labels["IR"]
    if fact_source is not None:
        found["abstained"] = line.annotations is None
        found["sentences"] = tuple(one.text for one in sentences)
        found["facts"] = tuple(
            replace(fact, sentence=number)
            for number, one in enumerate(sentences)
            for fact in _make_atomic_facts(getattr(one, fact_source) or ())
        )
    return found


def _add_facts_to_read_responses(responses: list[Response], path: Path) -> list[Response]:
    rows = read_response_lines(path)
    problems: list[Problem] = []
    by_id: dict[str | int, tuple[AtomicFact, ...]] = {}
    named = all(row.get("response_id") is not None for _, row in rows)
    if not named and len(rows) != len(responses):
        problems.append(Problem(f"expected a line per response: {len(responses)}, found {len(rows)}"))
    places = {number: position for position, (number, _) in enumerate(rows)}
    for number, given in validate_response_file_rows(rows, _ResponseFileGivenFactsRow, problems):
        by_id[str(given.response_id) if named else places[number]] = _make_atomic_facts(given.facts)
    keys = [response.response_id if named else position for position, response in enumerate(responses)]
    problems += [Problem(f"no facts for the response_id {key!r}") for key in keys if named and key not in by_id]
    _raise_problems(path, problems)
    return [replace(one, facts=by_id[key], sentences=None) for one, key in zip(responses, keys, strict=True)]


def _make_atomic_facts(facts: Sequence[_ResponseFileFactRow]) -> tuple[AtomicFact, ...]:
    return tuple(AtomicFact(one.text.strip(), one.label, one.sentence, one.group, one.entity) for one in facts)


def validate_response_file_rows(
    rows: Sequence[tuple[int, dict[str, Any]]], row_model: type[Any], problems: list[Problem]
) -> list[tuple[int, Any]]:
    """The rows that are of the form, with their line numbers; what is wrong with others is added to ``problems``."""
    found = []
    for number, row in rows:
        try:
            found.append((number, row_model.model_validate(row)))
        except ValidationError as error:
            told = error.errors(include_url=False)
            problems += [
                describe_invalid_source_row({**one, "loc": (0, *one["loc"])}, "line", [number]) for one in told
            ]
    return found


def _raise_problems(path: Path, problems: Sequence[Problem]) -> None:
    if problems:
        raise InputError(str(path), problems[:MAX_PROBLEMS], len(problems))


def read_response_lines(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """The lines that are not blank, with their numbers; half of a surrogate pair in a text becomes "?"."""
    rows: list[tuple[int, dict[str, Any]]] = []
    problems: list[Problem] = []
    with open_input_file(path) as file:
        for number, line in _iterate_numbered_response_lines(file, problems):
            try:
                rows.append((number, parse_knowledge_json_line(line, number)))
            except ValueError as error:
                problems.append(Problem(str(error), number, unit="line"))
    if not rows and not problems:
        problems.append(Problem("the file is empty"))
    _raise_problems(path, problems)
    return rows


def _iterate_numbered_response_lines(file: Iterable[bytes], problems: list[Problem]) -> Iterator[tuple[int, bytes]]:
    """The lines that hold something, with their numbers, up to where the file cannot be read."""
    number = 0
    try:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        problems.append(Problem(f"not a whole gzip file ({error})", number + 1, unit="line"))
