"""The command line's settings of how files are read, as a mapping."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from factaudit.errors import UsageError, suggest_known_name
from factaudit.tables.column_mapping import SCORE_TRANSFORM_NAMES, ColumnMapping
from factaudit.tables.schema import GRADE_COLUMN
from factaudit.tables.vocabulary import COLUMN_NAMES

#: What ``--map`` calls columns that nothing is to read.
UNREAD = "unread"


def parse_column_mapping_options(
    columns: Sequence[str] = (),
    labels: str | Sequence[str] | None = None,
    scale: str | Sequence[str] | None = None,
    threshold: float | str | Sequence[str] | None = None,
    label_threshold: float | None = None,
    wide: Sequence[str] = (),
    people: Sequence[str] = (),
    sheet: str | None = None,
    header: int | None = None,
) -> ColumnMapping:
    """The command line's single settings as a mapping: ``claim=sentence``, ``supported=1,refuted=0``, ``geval=1:5``.

    ``columns`` may instead be the path of a mapping (YAML), alone. Raises `UsageError`.
    """
    if len(columns) == 1 and columns[0].endswith((".yaml", ".yml")):
        if any([labels, scale, wide, people, threshold not in (None, ()), label_threshold is not None, sheet, header]):
            raise UsageError("give a mapping's file or single settings, not both: put the settings into the file")
        return ColumnMapping.from_source(Path(columns[0]))
    given: dict[str, Any] = {"auto": True, "label_threshold": label_threshold, "sheet": sheet, "header": header}
    given |= {"wide": list(wide), "people": list(people), "columns": {}, UNREAD: []}
    for text in columns:
        ours, equals, theirs = text.partition("=")
        if not equals or not theirs:
            raise UsageError(f"--map: expected OURS=THEIRS, or one YAML file, found {text!r}")
        if ours == UNREAD:
            given[UNREAD].append(theirs)
            continue
        if ours not in (*COLUMN_NAMES, GRADE_COLUMN):
            known = suggest_known_name(ours, [*COLUMN_NAMES, GRADE_COLUMN, UNREAD])
            if theirs in (*COLUMN_NAMES, GRADE_COLUMN, UNREAD):
                known = f": OURS=THEIRS, perhaps --map {theirs}={ours}"
            raise UsageError(f"--map: no column {ours!r} of claims or verdicts{known}")
        given["columns"][ours] = theirs
    given["labels"] = {}
    for text in _list_texts(labels):
        given["labels"] |= _parse_label_words(text)
    for text in _list_texts(scale):
        name, scale_ends = _parse_score_scale_option(text)
        given |= {"scale": scale_ends} if not name else {"scales": {**given.get("scales", {}), name: scale_ends}}
    for text in _list_texts(threshold):
        name, _, value = str(text).rpartition("=")
        try:
            limit = float(value)
        except ValueError:
            raise UsageError(f"--threshold: expected a number, or EVALUATOR=NUMBER, found {text!r}") from None
        given |= {"threshold": limit} if not name else {"thresholds": {**given.get("thresholds", {}), name: limit}}
    return ColumnMapping.from_source(given)


def _list_texts(setting: Any) -> list[Any]:
    return [] if setting is None else list(setting) if isinstance(setting, list | tuple) else [setting]


def _parse_label_words(text: str) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for part in next(csv.reader([text]), []):
        word, equals, value = part.rpartition("=")
        if not equals or value.strip() not in ("0", "1", ""):
            raise UsageError(f"--labels: expected WORD=1, WORD=0 or WORD= (not annotated), found {part!r}")
        found[word.strip()] = int(value) if value.strip() else None
    return found


def _parse_score_scale_option(text: str) -> tuple[str, tuple[float, float] | str]:
    """``1:5``, ``geval=1:5``, ``nli=logit``, ``nli=-logit``, ``lm=log``."""
    name, _, ends = text.rpartition("=")
    if ends in SCORE_TRANSFORM_NAMES and name:
        return name, ends
    low, _, high = ends.partition(":")
    try:
        return name, (float(low), float(high))
    except ValueError:
        expected = "LOW:HIGH (1:5; 1:0 where 1 is hallucinated), EVALUATOR=LOW:HIGH, EVALUATOR=logit, =-logit or =log"
        raise UsageError(f"--scale: expected {expected}, found {text!r}") from None
