"""What is scored: biographies, the people they may be about, and what somebody has already found in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from factaudit.datasets.sources import Row, read_json, read_rows
from factaudit.errors import MAX_PROBLEMS, InputError, Problem
from factaudit.signature import digest

_QUESTION = re.compile(r"^\s*(?:tell me (?:a |the )?bio(?:graphy)? of|who is|who was)\s+", re.IGNORECASE)
_LABELS = {"S": 1, "NS": 0, "IR": None}


@dataclass(frozen=True, slots=True)
class Fact:
    """An atomic fact, and where known: its sentence (from 0), the biography that it is part of, whom it is about.

    entity: the title of the page of the person that the fact's *group* is about. label: 1 = true of that person.
    """

    text: str
    sentence: int | None = None
    group: str | None = None
    entity: str | None = None
    label: int | None = None


@dataclass(frozen=True, slots=True)
class Biography:
    """One response to "tell me a bio of ``name``".

    candidates: titles of the knowledge source; None: still to be found. docs: (title, text) of passages that came with
    the response, as citations number them. facts: None where they are still to be had from a model. category: one of
    `factaudit.engines.dfactscore.score.CATEGORIES`, where somebody has said.
    """

    response_id: str
    name: str
    output: str
    system: str | None = None
    candidates: tuple[str, ...] | None = None
    docs: tuple[tuple[str, str], ...] = ()
    facts: tuple[Fact, ...] | None = None
    category: str | None = None

    @property
    def text(self) -> str:
        """The output without citations: ``[1]``, ``[1][3]``."""
        return remove_citations(self.output)


def remove_citations(text: str) -> str:
    """The text without ``[1]`` and the white space before it.

    >>> remove_citations("He died in 1902 [1][2].")
    'He died in 1902.'
    """
    return re.sub(r"\s*\[\d+\]", "", text)


class _Doc(BaseModel):
    title: str
    text: str


class _Fact(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    text: str = Field(pattern=r"\S")
    sentence: int | None = None
    group: str | None = None
    entity: str | None = None
    label: int | str | None = None


class _Line(Row):
    name: str = Field(pattern=r"\S")
    output: str
    system: str | None = None
    response_id: str | None = None
    candidates: list[str] | None = None
    docs: list[_Doc] | None = None
    facts: list[_Fact | str] | None = None
    category: str | None = None


class _Item(BaseModel):
    question: str
    output: str
    docs: list[_Doc] = Field(default_factory=list)


class _Alce(BaseModel):
    data: list[_Item]


def read_biographies(path: str | Path, *, system: str | None = None, limit: int | None = None) -> list[Biography]:
    """Read biographies: JSONL (also ``.gz``), or an output file of ALCE (``.json``).

    A line is ``{name, output, [system], [response_id], [candidates] or [docs], [facts], [category]}``; a fact is a text
    or ``{text, [sentence], [group], [entity], [label]}``. ALCE's ``{"data": [{question, output, docs}]}`` gives the
    name from the question and the candidates from the titles of the documents.

    Args:
        system: for lines that name none; by default the file's name without its suffix.
        limit: only the first so many.

    Raises `InputError` naming the lines that are wrong.
    """
    source = Path(path)
    named = system if system is not None else source.name.removesuffix(".gz").rsplit(".", 1)[0]
    if source.suffix == ".json":
        alce: _Alce = read_json(source, _Alce)
        lines = [_Line(name=name_of(one.question), output=one.output, docs=one.docs) for one in alce.data]
    else:
        lines = read_rows(source, _Line)
    seen: Counter[str] = Counter()
    problems = []
    found = []
    for number, line in enumerate(lines[:limit], start=1):
        owner = line.system or named
        key = digest(owner, line.name, line.output)
        identity = line.response_id or digest(key, str(seen[key]))
        seen[key] += 1
        candidates = line.candidates
        docs = line.docs or []
        if candidates is None and docs:
            candidates = [doc.title for doc in docs]
        try:
            facts = None if line.facts is None else tuple(_fact(one) for one in line.facts)
        except ValueError as error:
            problems.append(Problem(str(error), number, "facts", "item"))
            continue
        found.append(
            Biography(
                identity,
                line.name.strip(),
                line.output,
                owner,
                None if candidates is None else tuple(dict.fromkeys(candidates)),
                tuple((doc.title, doc.text) for doc in docs),
                facts,
                line.category,
            )
        )
    ids = Counter(one.response_id for one in found)
    problems += [Problem(f"the response_id {one!r} stands {n} times") for one, n in ids.items() if n > 1]
    if problems:
        raise InputError(str(source), problems[:MAX_PROBLEMS], len(problems))
    return found


def name_of(question: str) -> str:
    """The name in "Tell me a bio of NAME", without "(disambiguation)" (MF App. A)."""
    return _QUESTION.sub("", question).replace("(disambiguation)", "").strip(" ?.")


def given_groups(facts: Sequence[Fact]) -> tuple[list[str | None], dict[str | None, str | None]]:
    """The marks of the facts' groups, and of each group its entity (the one that most of its facts have).

    Facts without a group are one group together.
    """
    entities: dict[str | None, Counter[str]] = {}
    for fact in facts:
        entities.setdefault(fact.group, Counter())[fact.entity or ""] += fact.entity is not None
    most = {group: max(counts, key=lambda one: counts[one]) for group, counts in entities.items() if counts}
    return [fact.group for fact in facts], {group: entity or None for group, entity in most.items()}


def _fact(given: _Fact | str) -> Fact:
    if isinstance(given, str):
        return Fact(given.strip())
    label: Any = given.label
    if label in _LABELS:
        label = _LABELS[label]
    elif label not in (None, 0, 1):
        raise ValueError(f"expected a label 1, 0, S, NS or IR, found {label!r}")
    return Fact(given.text.strip(), given.sentence, given.group, given.entity, label)
