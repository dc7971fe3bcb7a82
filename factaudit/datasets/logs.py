"""What the logs of evaluation frameworks have in common: samples with fields, and what metrics said of them.

A log's metric is an evaluator here, a sample's output the claim, and the document and the label are fields that the
user's own data brought (``metadata.context``, say): which, is an option where the framework has no place of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.datasets.sources import Conversion, expand
from factaudit.errors import InputError, Problem, UsageError, hint
from factaudit.intake.words import polarity
from factaudit.tables import validate_claims, validate_verdicts
from factaudit.text.printable import count


@dataclass(frozen=True)
class Said:
    """What a metric said of a sample: a number, a truth value or a word; or why it said nothing.

    ``prediction``: what the metric itself concluded from its number.
    """

    value: Any
    raw: str | None = None
    status: str = "ok"
    prediction: bool | None = None


@dataclass(frozen=True)
class Sample:
    """A line of a log. ``fields`` are flat: an object within is ``name.key``."""

    id: str
    fields: Mapping[str, Any]
    said: Mapping[str, Said]
    repeat: int = 0


@dataclass(frozen=True)
class Places:
    """Where a framework keeps things: names of fields, the likelier first."""

    claim: Sequence[str]
    doc: Sequence[str] = ()
    label: Sequence[str] = ()
    system: Sequence[str] = ()

    def fields(self, samples: Sequence[Sample], own: Mapping[str, str | None], source: str) -> dict[str, str]:
        """The field of each role that the samples have; `UsageError` for one of the user's that none has."""
        present = list(dict.fromkeys(name for sample in samples for name in sample.fields))
        chosen: dict[str, str] = {}
        for role, usual in (("claim", self.claim), ("doc", self.doc), ("label", self.label), ("system", self.system)):
            name = own.get(role)
            if name is not None and name not in present:
                raise UsageError(f"option {role}: no sample has a field {name!r}{hint(name, present)}")
            name = name or next((one for one in usual if one in present), None)
            if name is not None:
                chosen[role] = name
        if "claim" not in chosen:
            raise InputError(source, [Problem(f"no field holds the claims: name one by claim= ({', '.join(present)})")])
        return chosen


def make(samples: Sequence[Sample], places: Places, own: Mapping[str, Any], *, source: str, dataset: str) -> Conversion:
    """Claims and verdicts of a log's samples, and notes on which field was taken for what."""
    if not samples:
        raise InputError(source, [Problem("the log holds no samples")])
    wanted = [own["metrics"]] if isinstance(own.get("metrics"), str) else own.get("metrics")
    known = list(dict.fromkeys(name for sample in samples for name in sample.said))
    for name in wanted or ():
        if name not in known:
            raise UsageError(f"option metrics: the log has no metric {name!r}{hint(name, known)}")
    fields = places.fields(samples, own, source)
    rows: dict[str, dict[str, Any]] = {}
    verdicts = []
    for sample in samples:
        rows.setdefault(
            sample.id,
            {
                "claim_id": f"{dataset}:{sample.id}",
                "dataset": own.get("dataset") or dataset,
                "system": _text(sample.fields.get(fields.get("system", ""))),
                "response_id": sample.id,
                "claim": _text(sample.fields.get(fields["claim"])),
                "doc": _text(sample.fields.get(fields.get("doc", ""))),
                "label": _label(sample, fields.get("label"), source),
            },
        )
        verdicts += [
            {"claim_id": f"{dataset}:{sample.id}", "evaluator": name, "repeat": sample.repeat, **_verdict(said)}
            for name, said in sample.said.items()
            if wanted is None or name in wanted
        ]
    claims = validate_claims(pd.DataFrame(list(rows.values())), source=source)
    notes = [f"{count(len(claims), 'claim')}: {', '.join(f'{name} is {role}' for role, name in fields.items())}"]
    if "doc" not in fields:
        notes.append("no field was taken for the documents: audits that read text are left out (option doc)")
    table = None
    if verdicts:
        table = validate_verdicts(pd.DataFrame(verdicts), claims=claims, source=source)
        without = int(table["prediction"].isna().sum())
        told = f"{count(len(table), 'verdict')} of {', '.join(table['evaluator'].unique())}"
        notes.append(told + (f", {without:,} without a prediction" if without else ""))
    return Conversion(claims, table, notes)


def flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """An object's fields, those of objects within as ``name.key``.

    >>> flat({"id": 1, "meta": {"human": 0}})
    {'id': 1, 'meta.human': 0}
    """
    found: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            found |= flat(inner, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = inner
    return found


def listed(value: Any) -> Any:
    """A list or an object that CSV holds as Python writes it."""
    if isinstance(value, str) and value.startswith(("[", "{")):
        try:
            return ast.literal_eval(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return value
    return value


def one_source(sources: Sequence[Path], *patterns: str) -> Path:
    """The only file of a format that takes one, given or in a folder by its name. Raises `UsageError`."""
    found = list(expand(sources, *patterns))
    if len(found) != 1:
        raise UsageError(f"expected one log, found {len(found)}: {', '.join(map(str, found[:5]))}")
    return found[0]


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, list):
        return "\n\n".join(part for one in value if (part := _text(one))) or None
    if isinstance(value, Mapping):
        return _text(value.get("content") or value.get("text"))
    return str(value) or None


def _label(sample: Sample, name: str | None, source: str) -> int | None:
    value = sample.fields.get(name or "")
    if value is None or value == "":
        return None
    meaning = polarity(value)
    if meaning is None:
        expected = "expected 1, 0 or a word like supported or refuted"
        raise InputError(source, [Problem(f"sample {sample.id!r}: {expected}, found {value!r}", column=name)])
    return meaning


def _verdict(said: Said) -> dict[str, Any]:
    """A number from 0 to 1 is a score; a truth value, or a word for one, a prediction; anything else is unparsed."""
    value: dict[str, Any] = {"raw": said.raw, "status": said.status}
    if said.status != "ok":
        return value
    if isinstance(said.value, int | float) and not isinstance(said.value, bool):
        if not 0 <= said.value <= 1:
            return value | {"status": "unparsed", "raw": said.raw or str(said.value)}
        own = {} if said.prediction is None else {"prediction": int(said.prediction)}
        return value | {"score": float(said.value)} | own
    meaning = polarity(said.value) if said.value is not None else None
    if meaning is None:
        return value | {"status": "unparsed", "raw": said.raw or str(said.value)}
    return value | {"prediction": meaning}
