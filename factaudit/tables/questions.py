"""The questions that tables leave open: what was placed, what is unclear, and the commands that
settle it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factaudit.errors import UsageError
from factaudit.tables.mapping_options import format_mapping_options


@dataclass(frozen=True)
class PossibleReading:
    """One answer to the open questions, as part of a mapping."""

    mapping: Mapping[str, Any]

    @property
    def options(self) -> list[str]:
        """The answer as arguments of the command line."""
        return format_mapping_options(self.mapping)


@dataclass(frozen=True)
class OpenQuestion:
    """A question that the tables leave open, and its answers as parts of a mapping, the likeliest
    first."""

    text: str
    answers: Sequence[Mapping[str, Any]]


class AmbiguousReadingError(UsageError):
    """Tables can be read in more than one way. Each of the ``readings`` answers all questions.

    placed: what is certain, in words.
    """

    def __init__(
        self, source: str, questions: Sequence[OpenQuestion], placed: Sequence[str] = ()
    ) -> None:
        self.source, self.questions, self.placed = source, list(questions), list(placed)
        super().__init__(
            self.format_message(
                lambda reading: f"mapping={json.dumps(reading.mapping, ensure_ascii=False)}"
            )
        )

    @property
    def readings(self) -> list[PossibleReading]:
        """First the likeliest answer to every question; then each other answer, with the likeliest
        ones to the remaining questions."""
        likeliest = [one.answers[0] for one in self.questions]
        found = [_join_answers(likeliest)]
        for at, question in enumerate(self.questions):
            found += [
                _join_answers([*likeliest[:at], other, *likeliest[at + 1 :]])
                for other in question.answers[1:]
            ]
        return [PossibleReading(one) for at, one in enumerate(found) if one not in found[:at]]

    def format_questions(self) -> str:
        """What is certain, and what is not."""
        lines = [f"{self.source}: it can be read in more than one way"]
        lines += [f"placed    {', '.join(self.placed)}"] if self.placed else []
        return "\n".join([*lines, *(f"unclear   {question.text}" for question in self.questions)])

    def format_message(self, format_reading: Callable[[PossibleReading], str]) -> str:
        """The questions, and a line for each reading."""
        said = [format_reading(reading) for reading in self.readings]
        lines = [f"{'or' if at else 'try':<8}  {line}" for at, line in enumerate(said)]
        return "\n".join([self.format_questions(), *lines])


def _join_answers(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    for one in answers:
        joined = merge_mapping_data(joined, one)
    return joined


def merge_mapping_data(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Two parts of a mapping as one. If both set the same key, the second counts."""
    merged = dict(first)
    for key, value in second.items():
        before = merged.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            merged[key] = {**before, **value}
        elif isinstance(value, list) and isinstance(before, list):
            merged[key] = [*before, *(one for one in value if one not in before)]
        else:
            merged[key] = value
    return merged
