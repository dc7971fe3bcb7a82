"""What a table leaves open: each question with its possible readings, and the options that settle it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factaudit.errors import UsageError

#: How many questions one reading can raise in turn, and how many readings are offered, about.
_MAX_QUESTIONS_IN_TURN, _MAX_READINGS = 12, 6


@dataclass(frozen=True)
class PossibleColumnReading:
    """One way to read what is open: in words, and as the part of a mapping that says so."""

    description: str
    mapping: Mapping[str, Any]

    @property
    def options(self) -> list[str]:
        """The reading as arguments of the command line."""
        return format_mapping_options(self.mapping)


@dataclass(frozen=True)
class OpenQuestion:
    """What cannot be told from the tables alone, and its possible readings, the likeliest first."""

    text: str
    readings: Sequence[PossibleColumnReading]


def leave_columns_unread(names: Sequence[str]) -> PossibleColumnReading:
    """The reading that columns are nothing that is needed."""
    return PossibleColumnReading(f"{', '.join(names)}: read by nothing", {"unread": list(names)})


def read_columns_as_people(names: Sequence[str]) -> PossibleColumnReading:
    """The reading that columns hold what people said: one the labels, of several each what one person said."""
    if len(names) > 1:
        return PossibleColumnReading(f"{', '.join(names)}: each is a person's", {"people": list(names)})
    return PossibleColumnReading(f"{names[0]}: holds people's labels", {"columns": {"label": names[0]}})


def read_columns_as_evaluators(names: Sequence[str]) -> PossibleColumnReading:
    """The reading that each of the columns is an evaluator."""
    each = "each is an evaluator" if len(names) > 1 else "an evaluator"
    return PossibleColumnReading(f"{', '.join(names)}: {each}", {"wide": list(names)})


class AmbiguousReadingError(UsageError):
    """Tables can be read in more than one way. Each of the ``readings`` settles all that is open."""

    def __init__(
        self, source: str, questions: Sequence[OpenQuestion], readings: Sequence[PossibleColumnReading]
    ) -> None:
        self.source, self.questions, self.readings = source, list(questions), list(readings)
        super().__init__(
            self.format_message(lambda reading: f"mapping={json.dumps(reading.mapping, ensure_ascii=False)}")
        )

    def format_message(self, format_reading: Callable[[PossibleColumnReading], str]) -> str:
        """The questions, and each reading with what to say for it."""
        lines = [f"{self.source}: it can be read in more than one way"]
        lines += [f"  {question.text}" for question in self.questions]
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
        elif isinstance(value, list) and isinstance(before, list) and key not in ("scale",):
            merged[key] = [*before, *(one for one in value if one not in before)]
        else:
            merged[key] = value
    return merged


def complete_open_question_readings(
    questions: Sequence[OpenQuestion],
    mapping: Mapping[str, Any],
    ask_again: Callable[[dict[str, Any]], Sequence[OpenQuestion]],
) -> list[PossibleColumnReading]:
    """For each reading of each question one that settles everything: the others are read as is likeliest, and of the
    next that comes up each way.

    ask_again: the questions that are open still under a mapping.
    """
    found: list[PossibleColumnReading] = []
    for place, question in enumerate(questions):
        for number, reading in enumerate(question.readings):
            if place and not number:
                continue  # the likeliest of all is there already
            start = merge_mapping_data({**mapping, "auto": True}, reading.mapping)
            ways = [([reading.description], start)]
            if len(questions) == 1 and (left := ask_again(start)):
                ways = [
                    ([reading.description, one.description], merge_mapping_data(start, one.mapping))
                    for one in left[0].readings
                ]
            for said, data in ways if len(found) < _MAX_READINGS else ways[:1]:
                completed = _add_follow_up_options_to_reading(said, data, ask_again)
                if completed.mapping not in [one.mapping for one in found]:
                    found.append(completed)
    return found


def _add_follow_up_options_to_reading(
    said: Sequence[str], data: dict[str, Any], ask_again: Callable[[dict[str, Any]], Sequence[OpenQuestion]]
) -> PossibleColumnReading:
    """A reading, and the likeliest of what it leaves open."""
    said = [*said]
    for _ in range(_MAX_QUESTIONS_IN_TURN):
        left = ask_again(data)
        more = merge_mapping_data(data, left[0].readings[0].mapping) if left else data
        if more == data:  # nothing is open, or what is cannot be settled
            break
        data, said = more, [*said, left[0].readings[0].description]
    return PossibleColumnReading("; ".join(said), data)


def format_mapping_options(mapping: Mapping[str, Any]) -> list[str]:
    """A mapping as arguments of the command line, as `parse_column_mapping_options` reads them."""
    found: list[str] = []
    for ours, theirs in mapping.get("columns", {}).items():
        found += [
            part for one in ([theirs] if isinstance(theirs, str) else theirs) for part in ("--map", f"{ours}={one}")
        ]
    found += [part for one in mapping.get("unread", ()) for part in ("--map", f"unread={one}")]
    for key in ("people", "wide"):
        found += [part for one in mapping.get(key, ()) for part in (f"--{key}", one)]
    if mapping.get("labels"):
        row = io.StringIO()
        values = (f"{word}={'' if value is None else value}" for word, value in mapping["labels"].items())
        csv.writer(row, lineterminator="").writerow(values)
        found += ["--labels", row.getvalue()]
    for name, scale in mapping.get("scales", {}).items():
        found += ["--scale", f"{name}={_format_scale(scale)}"]
    for name, limit in mapping.get("thresholds", {}).items():
        found += ["--threshold", f"{name}={limit:g}"]
    if mapping.get("scale") is not None:
        found += ["--scale", _format_scale(mapping["scale"])]
    for key in ("threshold", "label_threshold", "sheet", "header"):
        if mapping.get(key) is not None:
            found += [
                f"--{key.replace('_', '-')}",
                f"{mapping[key]:g}" if isinstance(mapping[key], float) else str(mapping[key]),
            ]
    return found


def _format_scale(scale: Any) -> str:
    return scale if isinstance(scale, str) else f"{scale[0]:g}:{scale[1]:g}"
