"""From files as they lie to claims and verdicts: as they are where the columns are ours, else by a mapping."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Sequence
from collections.abc import Mapping as Map
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from factaudit.errors import UsageError, hint
from factaudit.intake.anyfile import read_any
from factaudit.intake.mapping import Mapping, apply
from factaudit.intake.profile import propose
from factaudit.intake.words import COLUMN_NAMES, plain
from factaudit.tables import CLAIM_COLUMNS, VERDICT_COLUMNS, read_claims, read_verdicts


@dataclass(frozen=True)
class Loaded:
    """Validated claims and verdicts (None where there are none), and the mapping that made them (None: none needed)."""

    claims: pd.DataFrame | None
    verdicts: pd.DataFrame | None
    mapping: Mapping | None = None


def load(
    paths: Sequence[str | Path],
    mapping: Any = None,
    settings: Map[str, Any] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Loaded:
    """Read claims and verdicts from one file or several, in any order.

    Files whose columns are all ours are read as they are. Others by ``mapping`` (a `Mapping`, its path or plain data),
    or, without one, by what `propose` takes them for, changed by ``settings`` (keys of a mapping); ``say`` gets a line
    for each thing that was taken for another. Raises `InputError` and `UsageError`.
    """
    if mapping is None and not settings and all(is_standard(path) for path in paths):
        claims = [path for path in paths if "evaluator" not in (_header(path) or ())]
        verdicts = [path for path in paths if path not in claims]
        table = read_claims(*claims) if claims else None
        return Loaded(table, read_verdicts(*verdicts, claims=table) if verdicts else None)
    tables = [(str(path), read_any(path)) for path in paths]
    if mapping is not None:
        if settings:
            raise UsageError("give a mapping, or single settings, not both: put the settings into the mapping")
        made = Mapping.of(mapping)
        mapped = apply(tables, made)
        return Loaded(mapped.claims, mapped.verdicts, made)
    proposal = propose(tables)
    made = changed(proposal.mapping, settings or {})
    told = [*proposal.told, *(f"assumed  {question}" for question in proposal.questions)]
    if proposal.unread:
        told.append(f"unread  {', '.join(proposal.unread)}")
    for line in told:  # before anything can go wrong: what was taken for what explains most errors
        say(line)
    mapped = apply(tables, made)
    return Loaded(mapped.claims, mapped.verdicts, made)


def changed(mapping: Mapping, settings: Map[str, Any]) -> Mapping:
    """A mapping with some settings of the user's in place of its own; in ``columns`` and ``labels`` key by key."""
    data = mapping.model_dump(exclude_defaults=True)
    for key, value in settings.items():
        data[key] = {**data.get(key, {}), **value} if isinstance(value, Map) and key != "evaluators" else value
    own = settings.get("columns", {})
    data["columns"] = {  # a column that the user gives a role loses the one it was taken for
        ours: theirs
        for ours, theirs in data.get("columns", {}).items()
        if theirs not in own.values() or own.get(ours) == theirs
    }
    if "wide" in settings:  # evaluators that the user names are those there are
        data.pop("evaluators", None)
    elif settings.keys() & {"scale", "threshold"}:
        said = {key: settings[key] for key in ("scale", "threshold") if key in settings}
        for one in data.get("evaluators", {}).values():
            one.update(said if one.get("score") else {})
    return Mapping.of(data)


def is_standard(path: str | Path) -> bool:
    """Whether a file can be read as it is: all that it needs is there, and no column stands under another name."""
    header = _header(path)
    if header is None:
        return False
    ours = {*CLAIM_COLUMNS, *VERDICT_COLUMNS}
    is_verdicts = {"claim_id", "evaluator"} <= header and bool({"score", "prediction"} & header)
    if not is_verdicts and not {"dataset", "claim"} <= header:
        return False
    known = {name: column for column, names in COLUMN_NAMES.items() for name in names}
    relevant = VERDICT_COLUMNS if is_verdicts else CLAIM_COLUMNS
    return not any(
        (column := known.get(plain(name))) in relevant and column not in header for name in header if name not in ours
    )


def _header(path: str | Path) -> set[str] | None:
    """The names of a file's columns, from its first line; None where they can't be had so."""
    path = Path(path)
    name = path.name.lower()
    text = name.removesuffix(".gz")
    try:
        if name.endswith(".parquet"):
            return set(pq.read_schema(path).names)
        if not text.endswith((".csv", ".jsonl")):
            return None
        with gzip.open(path, "rb") if name.endswith(".gz") else path.open("rb") as file:
            first = file.readline().decode("utf-8-sig")
        if text.endswith(".csv"):
            names = next(csv.reader([first]), [])
            return set(names) if len(names) > 1 else None
        row = json.loads(first)
        nested = not isinstance(row, dict) or any(isinstance(value, dict) for value in row.values())
        return None if nested else set(row)
    except (OSError, ValueError, EOFError, RecursionError, pa.ArrowException):
        return None  # whoever reads the file says what is wrong with it


def parse_settings(
    columns: Sequence[str] = (),
    labels: str | None = None,
    scale: str | None = None,
    threshold: float | None = None,
    label_threshold: float | None = None,
    wide: Sequence[str] = (),
) -> dict[str, Any]:
    """The command line's single settings as keys of a mapping: ``claim=sentence``, ``supported=1,refuted=0``, ``1:5``.

    Raises `UsageError`.
    """
    found: dict[str, Any] = {}
    for text in columns:
        ours, equals, theirs = text.partition("=")
        if not equals or not theirs:
            raise UsageError(f"--map: expected OURS=THEIRS (or a YAML file), found {text!r}")
        if ours not in COLUMN_NAMES:
            raise UsageError(f"--map: no column {ours!r} of claims or verdicts{hint(ours, list(COLUMN_NAMES))}")
        found.setdefault("columns", {})[ours] = theirs
    if labels is not None:
        values: dict[str, int | None] = {}
        for part in labels.split(","):
            word, equals, value = part.rpartition("=")
            if not equals or value.strip() not in ("0", "1", ""):
                raise UsageError(f"--labels: expected WORD=1, WORD=0 or WORD= (not annotated), found {part!r}")
            values[word.strip()] = int(value) if value.strip() else None
        found["labels"] = values
    if scale is not None:
        low, _, high = scale.partition(":")
        try:
            found["scale"] = (float(low), float(high))
        except ValueError:
            raise UsageError(
                f"--scale: expected LOW:HIGH (1:5; 1:0 where 1 is hallucinated), found {scale!r}"
            ) from None
    given: dict[str, Any] = {"threshold": threshold, "label_threshold": label_threshold, "wide": list(wide) or None}
    return found | {key: value for key, value in given.items() if value is not None}
