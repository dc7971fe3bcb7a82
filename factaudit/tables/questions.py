"""What a table leaves open: each question with its possible readings, and the command that settles it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factaudit.errors import InputError, UsageError
from factaudit.tables.mapping_options import format_mapping_options

#: How many questions a reading can raise in turn.
_MAX_FOLLOW_UPS = 8
#: Tables with more rows are not read before a reading is offered.
_MAX_TRIED_ROWS = 20_000


@dataclass(frozen=True)
class PossibleReading:
    """One way to read what is open: in words, and as the part of a mapping that says so."""

    description: str
    mapping: Mapping[str, Any]

    @property
    def options(self) -> list[str]:
        """The reading as arguments of the command line."""
        return format_mapping_options(self.mapping)


@dataclass(frozen=True)
class OpenQuestion:
    """What the tables alone do not tell, and its possible readings, the likeliest first."""

    text: str
    readings: Sequence[PossibleReading]


def ignore_columns(names: Sequence[str]) -> PossibleReading:
    """The reading that columns are not needed."""
    return PossibleReading(f"ignore {', '.join(names)}", {"ignore": list(names)})


def read_columns_as_people(names: Sequence[str]) -> PossibleReading:
    """The reading that columns hold what people said: one the labels, of several each one annotator's."""
    if len(names) > 1:
        return PossibleReading(f"{', '.join(names)}: one annotator each", {"people": list(names)})
    return PossibleReading(f"{names[0]} holds the labels of people", {"columns": {"label": names[0]}})


def read_columns_as_evaluators(names: Sequence[str]) -> PossibleReading:
    """The reading that each of the columns is an evaluator."""
    said = "is an evaluator" if len(names) == 1 else "are evaluators"
    return PossibleReading(f"{', '.join(names)} {said}", {"evaluator": list(names)})


class AmbiguousReadingError(UsageError):
    """Tables can be read in more than one way. Each of the ``readings`` settles all that is open.

    placed: what is certain, in lines.
    """

    def __init__(
        self,
        source: str,
        questions: Sequence[OpenQuestion],
        readings: Sequence[PossibleReading],
        placed: Sequence[str] = (),
    ) -> None:
        self.source, self.questions, self.readings = source, list(questions), list(readings)
        self.placed = list(placed)
        super().__init__(
            self.format_message(lambda reading: f"mapping={json.dumps(reading.mapping, ensure_ascii=False)}")
        )

    def format_questions(self) -> str:
        """What is certain, and what is not."""
        lines = [f"{self.source}: it can be read in more than one way"]
        lines += [f"  {line}" for line in self.placed]
        return "\n".join([*lines, *(f"  unclear  {question.text}" for question in self.questions)])

    def format_message(self, format_reading: Callable[[PossibleReading], str]) -> str:
        """The questions, and each reading with what to say for it."""
        lines = [self.format_questions()]
        for reading in self.readings:
            lines += [f"{reading.description}:", f"  {format_reading(reading)}"]
        return "\n".join(lines)


def merge_mapping_data(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Two parts of a mapping as one: of what both say once, the second counts."""
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


def settle_readings(
    questions: Sequence[OpenQuestion], given: Mapping[str, Any], read: Callable[[dict[str, Any]], object], n_rows: int
) -> list[PossibleReading]:
    """For each reading of the first question one that settles everything else, too, as is likeliest.

    given: the mapping so far. read: reads the tables by a mapping, and raises `AmbiguousReadingError` where more is
    open, `InputError` or `UsageError` where the mapping does not fit: such a reading is not offered. Large tables are
    not tried. A reading without claims is offered where no other is. Raises the last error where no reading works.
    """
    found: list[PossibleReading] = []
    without_claims: list[PossibleReading] = []
    error: InputError | UsageError | None = None
    for way in questions[0].readings:
        mapping = merge_mapping_data(given, way.mapping)
        said = [way.description]
        for follow_up in questions[1:] if n_rows > _MAX_TRIED_ROWS else ():
            mapping = merge_mapping_data(mapping, follow_up.readings[0].mapping)
            said.append(follow_up.readings[0].description)
        for _ in range(_MAX_FOLLOW_UPS if n_rows <= _MAX_TRIED_ROWS else 0):
            try:
                has_claims = getattr(read(mapping), "claims", None) is not None
            except AmbiguousReadingError as more:
                likeliest = more.readings[0]
                mapping, before = merge_mapping_data(mapping, likeliest.mapping), mapping
                said.append(likeliest.description)
                if mapping == before:
                    break
            except (InputError, UsageError) as one:
                error = one
                break
            else:
                (found if has_claims else without_claims).append(PossibleReading("; ".join(said), mapping))
                break
        else:
            if n_rows > _MAX_TRIED_ROWS:
                found.append(PossibleReading("; ".join(said), mapping))
    if not (found or without_claims) and error is not None:
        raise error
    return found or without_claims
