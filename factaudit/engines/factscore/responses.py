"""What is scored: responses about a topic, with their facts where somebody has already written them down."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factaudit.errors import MAX_PROBLEMS, InputError, Problem
from factaudit.knowledge.build import storable
from factaudit.signature import digest

#: What the original's annotators wrote: supported, not supported, irrelevant.
LABELS = {"S": 1, "NS": 0, "IR": None}
#: Whose facts of the original's annotations to take.
ANNOTATED = ("model", "human")


@dataclass(frozen=True, slots=True)
class Fact:
    """An atomic fact and what a person said of it: S, NS, IR, or None."""

    text: str
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and its facts."""

    text: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Response:
    """One text about one topic.

    ``given``: its sentences with facts, None where they are still to be had from a model. ``abstained``: whether it
    declined to answer, None where nobody has said. ``human``: the number of facts that people labelled S, NS and IR
    over its relevant sentences, None where it was not annotated.
    """

    response_id: str
    topic: str
    output: str
    system: str | None = None
    given: tuple[Sentence, ...] | None = None
    abstained: bool | None = None
    human: tuple[int, int, int] | None = None


def read_responses(
    path: str | Path, *, facts: str | Path | None = None, system: str | None = None, limit: int | None = None
) -> list[Response]:
    """Read responses from JSONL (also ``.gz``): ``{topic, output, [system], [response_id], [facts], [annotations]}``.

    Args:
        facts: None: a model decomposes (but a line's own ``facts`` list is used); ``model`` or ``human``: those of the
            original's ``annotations``, where null means that the response abstained; else a JSONL file of
            ``{facts: [text or {text, label}], [response_id]}``, by ``response_id`` where each line has one, else line
            by line.
        system: for lines that name none; by default the file's name without its suffix.
        limit: only the first so many.

    Raises `InputError` naming the lines that are wrong.
    """
    source = Path(path)
    rows = _read_jsonl(source)[:limit]
    problems: list[Problem] = []
    responses: list[Response] = []
    named = system if system is not None else source.name.removesuffix(".gz").rsplit(".", 1)[0]
    seen: Counter[str] = Counter()
    for number, row in rows:
        try:
            responses.append(_response(row, facts if facts in ANNOTATED else None, named, seen))
        except _Wrong as wrong:
            problems.append(Problem(wrong.message, number, wrong.field, "line"))
    ids = Counter(response.response_id for response in responses)
    problems += [Problem(f"the response_id {one!r} stands {n} times") for one, n in ids.items() if n > 1]
    if problems:
        raise InputError(str(source), problems[:MAX_PROBLEMS], len(problems))
    if facts is not None and facts not in ANNOTATED:
        return _with_facts(responses, Path(facts))
    return responses


def make_response(topic: str, output: str, system: str | None = None, position: int = 0) -> Response:
    """A response with an id made of (system, topic, output, position among equals)."""
    topic, output = storable([topic, output])
    return Response(digest(system, topic, output, str(position)), topic, output, system)


class _Wrong(Exception):
    def __init__(self, message: str, field: str | None = None) -> None:
        self.message, self.field = message, field


def _response(row: dict[str, Any], annotated: str | Path | None, named: str, seen: Counter[str]) -> Response:
    topic, output = _text(row, "topic"), _text(row, "output")
    system = named if row.get("system") is None else _text(row, "system")
    key = digest(system, topic, output)
    made = make_response(topic, output, system, seen[key])
    seen[key] += 1
    given: tuple[Sentence, ...] | None = None
    abstained: bool | None = None
    human: tuple[int, int, int] | None = None
    if row.get("facts") is not None:
        given = (Sentence(output, _facts(row["facts"], "facts")),)
    if "annotations" in row:
        sentences = _annotations(row["annotations"])
        if row["annotations"] is not None:
            human = _counted(sentences)
        if annotated is not None:
            abstained = row["annotations"] is None
            given = tuple(
                Sentence(one["text"], _facts(one.get(f"{annotated}-atomic-facts") or [], "annotations"))
                for one in sentences
            )
    elif annotated is not None:
        raise _Wrong(f"expected annotations, to take the {annotated} facts from")
    own_id = made.response_id if row.get("response_id") is None else _text(row, "response_id")
    return Response(own_id, topic, output, system, given, abstained, human)


def _annotations(value: Any) -> list[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(
        isinstance(one, dict) and isinstance(one.get("text"), str) for one in value
    ):
        raise _Wrong("expected null or a list of sentences, each with a text", "annotations")
    return value


def _counted(sentences: Sequence[dict[str, Any]]) -> tuple[int, int, int]:
    labels = Counter(
        fact.label
        for one in sentences
        if one.get("is-relevant", True)
        for fact in _facts(one.get("human-atomic-facts") or [], "annotations")
    )
    return labels["S"], labels["NS"], labels["IR"]


def _facts(value: Any, field: str) -> tuple[Fact, ...]:
    if not isinstance(value, list):
        raise _Wrong(f"expected a list of facts, found {type(value).__name__}", field)
    facts = []
    for one in value:
        text, label = (one, None) if isinstance(one, str) else (None, None)
        if isinstance(one, dict):
            text, label = one.get("text"), one.get("label")
        if not isinstance(text, str) or not text.strip():
            raise _Wrong(f"expected a fact's text, found {one!r}", field)
        if label is not None and label not in LABELS:
            raise _Wrong(f"expected a label S, NS or IR, found {label!r}", field)
        facts.append(Fact(text.strip(), label))
    return tuple(facts)


def _with_facts(responses: list[Response], path: Path) -> list[Response]:
    rows = _read_jsonl(path)
    problems: list[Problem] = []
    by_id: dict[Any, tuple[Fact, ...]] = {}
    named = all(row.get("response_id") is not None for _, row in rows)
    if not named and len(rows) != len(responses):
        problems.append(Problem(f"expected a line per response: {len(responses)}, found {len(rows)}"))
    for position, (number, row) in enumerate(rows):
        try:
            by_id[str(row["response_id"]) if named else position] = _facts(row.get("facts"), "facts")
        except _Wrong as wrong:
            problems.append(Problem(wrong.message, number, wrong.field, "line"))
    keys = [response.response_id if named else position for position, response in enumerate(responses)]
    problems += [Problem(f"no facts for the response_id {key!r}") for key in keys if named and key not in by_id]
    if problems:
        raise InputError(str(path), problems[:MAX_PROBLEMS], len(problems))
    return [
        Response(r.response_id, r.topic, r.output, r.system, (Sentence(r.output, by_id[key]),), r.abstained, r.human)
        for r, key in zip(responses, keys, strict=True)
    ]


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if isinstance(value, str) and (value.strip() or name == "output"):
        return value
    if isinstance(value, int) and name == "response_id":
        return str(value)
    raise _Wrong(f"expected text, found {'none' if value is None else repr(value)}", name)


def _read_jsonl(path: Path) -> list[tuple[int, dict[str, Any]]]:
    if not path.is_file():
        raise InputError(str(path), [Problem("no such file" if not path.is_dir() else "this is a folder")])
    rows: list[tuple[int, dict[str, Any]]] = []
    problems: list[Problem] = []
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except UnicodeDecodeError:
                problems.append(Problem("not UTF-8 text", number, unit="line"))
                continue
            except json.JSONDecodeError as error:
                what = "not JSON" if line.endswith(b"\n") else "the line is cut off"
                problems.append(Problem(f"{what}: {error.msg} at character {error.pos + 1}", number, unit="line"))
                continue
            if isinstance(row, dict):
                rows.append((number, storable(row)))
            else:
                problems.append(Problem(f"expected a JSON object, found {type(row).__name__}", number, unit="line"))
    if not rows and not problems:
        problems.append(Problem("the file is empty"))
    if problems:
        raise InputError(str(path), problems[:MAX_PROBLEMS], len(problems))
    return rows
