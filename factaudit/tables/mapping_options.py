"""Turns the command line's options for reading files into a mapping, and a mapping into such
options."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from factaudit.errors import UsageError, suggest_known_name
from factaudit.tables.column_mapping import CLAIM_OPTIONS, SCORE_TRANSFORM_NAMES, ColumnMapping
from factaudit.tables.schema import GRADE_COLUMN
from factaudit.tables.vocabulary import COLUMN_NAMES


def parse_column_mapping_options(
    *,
    columns: Sequence[str] = (),
    evaluator: Sequence[str] = (),
    people: Sequence[str] = (),
    ignore: Sequence[str] = (),
    high_is_error: Sequence[str] = (),
    labels: Sequence[str] = (),
    scale: Sequence[str] = (),
    threshold: Sequence[str] = (),
    sheet: str | None = None,
    **named: str | None,
) -> ColumnMapping:
    """The command line's options as a mapping: ``label="human"``, ``labels=["good=1,bad=0"]``,
    ``scale=["geval=1:5"]``.

    columns: the path of a mapping (YAML), to which the other options are added, or ``OURS=THEIRS``
    for columns that have no option of their own. named: the options of `CLAIM_OPTIONS`. Raises
    `UsageError`.
    """
    given: dict[str, Any] = {"columns": {}}
    for text in columns:
        ours, equals, theirs = text.partition("=")
        if text.endswith((".yaml", ".yml")):
            kept = ColumnMapping.from_source(Path(text)).model_dump(
                exclude_defaults=True, mode="json"
            )
            given |= kept | {"columns": given["columns"] | kept.get("columns", {})}
        elif not equals or not theirs:
            raise UsageError(f"--columns: expected a YAML file or NAME=COLUMN, found {text!r}")
        elif ours not in (*COLUMN_NAMES, GRADE_COLUMN):
            known = suggest_known_name(ours, [*COLUMN_NAMES, GRADE_COLUMN])
            if theirs in (*COLUMN_NAMES, GRADE_COLUMN):
                known = f": the name of ours stands first, perhaps --columns {theirs}={ours}"
            raise UsageError(f"--columns: no column {ours!r} of claims or verdicts{known}")
        else:
            given["columns"][ours] = theirs
    given["columns"] |= {
        CLAIM_OPTIONS[option]: theirs for option, theirs in named.items() if theirs is not None
    }
    lists = {
        "evaluator": evaluator,
        "people": people,
        "ignore": ignore,
        "high_is_error": high_is_error,
    }
    for key, names in lists.items():
        given[key] = [*given.get(key, []), *names]
    for text in labels:
        given["labels"] = {**given.get("labels", {}), **_parse_label_words(text)}
    for text in scale:
        name, ends = _parse_scale(text)
        given["scale"] = {**given.get("scale", {}), name: ends}
    for text in threshold:
        name, _, value = text.rpartition("=")
        try:
            given["threshold"] = {**given.get("threshold", {}), name: float(value)}
        except ValueError:
            name = ""
        if not name:
            raise UsageError(f"--threshold: expected NAME=NUMBER (gpt4_score=0.7), found {text!r}")
    if sheet is not None:
        given["sheet"] = sheet
    return ColumnMapping.from_source(given)


def _parse_label_words(text: str) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for part in next(csv.reader([text]), []):
        word, equals, value = part.rpartition("=")
        if not equals or value.strip() not in ("0", "1", ""):
            raise UsageError(
                f"--labels: expected WORD=1, WORD=0 or WORD= (not annotated), found {part!r}"
            )
        found[word.strip()] = int(value) if value.strip() else None
    return found


def _parse_scale(text: str) -> tuple[str, list[float] | str]:
    """The evaluator and its scale in ``geval=1:5``, ``nli=logit``, ``nli=-logit`` or ``lm=log``."""
    name, _, ends = text.rpartition("=")
    if ends in SCORE_TRANSFORM_NAMES and name:
        return name, ends
    low, _, high = ends.partition(":")
    try:
        found = [float(low), float(high)]
    except ValueError:
        name = ""
    if not name:
        expected = "NAME=LOW:HIGH (gpt4_score=1:5), NAME=logit, =-logit, =log or =-log"
        raise UsageError(f"--scale: expected {expected}, found {text!r}")
    return name, found


def format_mapping_options(mapping: Mapping[str, Any]) -> list[str]:
    """A mapping as arguments of the command line that `parse_column_mapping_options` can read."""
    options = {ours: option for option, ours in CLAIM_OPTIONS.items()}
    found: list[str] = []
    for ours, theirs in mapping.get("columns", {}).items():
        for name in [theirs] if isinstance(theirs, str) else theirs:
            found += (
                [f"--{options[ours]}", name] if ours in options else ["--columns", f"{ours}={name}"]
            )
    for key in ("evaluator", "people", "ignore", "high_is_error"):
        found += [
            part for name in mapping.get(key, ()) for part in (f"--{key.replace('_', '-')}", name)
        ]
    if mapping.get("labels"):
        row = io.StringIO()
        values = (
            f"{word}={'' if value is None else value}" for word, value in mapping["labels"].items()
        )
        csv.writer(row, lineterminator="").writerow(values)
        found += ["--labels", row.getvalue()]
    for name, scale in mapping.get("scale", {}).items():
        ends = scale if isinstance(scale, str) else f"{scale[0]:.10g}:{scale[1]:.10g}"
        found += ["--scale", f"{name}={ends}"]
    for name, limit in mapping.get("threshold", {}).items():
        found += ["--threshold", f"{name}={limit:.10g}"]
    if mapping.get("sheet") is not None:
        found += ["--sheet", mapping["sheet"]]
    return found
