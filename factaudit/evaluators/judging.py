"""Claims in, verdicts out: one evaluator over a claims table, written down as it goes so that
nothing is judged twice.

Every verdict goes to a *journal* (one JSON line each, flushed) as it comes. A run that was killed
and is started again reads the journal first; it repeats at most the claims that were in flight.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, Unpack

import pandas as pd

from factaudit.datasets.python_input import (
    ClaimColumnNames,
    MappingSource,
    TableSource,
    load_python_input_frames,
)
from factaudit.errors import FactauditError, UsageError, format_error_first_line
from factaudit.evaluators.base import Claim, Evaluator, EvaluatorSource, Verdict
from factaudit.evaluators.ray_cluster import check_ray_address, has_language_model, judge_on_ray
from factaudit.evaluators.registry import is_user_evaluator, make_evaluator, wrap_as_evaluator
from factaudit.files import JsonLinesJournal, hold_folder_lock
from factaudit.llm.cost import estimate_llm_judging_cost
from factaudit.settings.python_errors import raise_python_errors
from factaudit.settings.spec_string import parse_spec_string
from factaudit.signature import hash_texts
from factaudit.tables import DEFAULT_THRESHOLD, STATUSES, merge_verdict_tables, validate_verdicts
from factaudit.tables.schema import RESERVED_NAMES
from factaudit.text.display_text import escape_control_characters
from factaudit.text.progress_lines import progress_bar

#: Verdicts of these statuses are asked for again when a run is resumed; the others are final.
RETRIED_STATUSES = ("error", "skipped")


@dataclass(frozen=True)
class NamedEvaluator:
    """An evaluator, the name that its verdicts carry, and the score above which (strictly) it
    predicts 1."""

    name: str
    evaluator: Evaluator
    threshold: float = DEFAULT_THRESHOLD
    #: The same evaluator asked again (or with a paraphrased prompt): repeat 1, 2, ...
    repeats: tuple[Evaluator, ...] = ()

    @property
    def evaluator_and_repeats(self) -> tuple[Evaluator, ...]:
        """The evaluator, and its repeats."""
        return self.evaluator, *self.repeats

    @property
    def signature(self) -> str:
        """The evaluator's own signature, with the threshold where it is not 0.5, and the
        repeats."""
        own = self.evaluator.signature
        own += "" if self.threshold == DEFAULT_THRESHOLD else f"|threshold:{self.threshold:g}"
        return (
            own
            if not self.repeats
            else f"{own}|repeats:{hash_texts(*(one.signature for one in self.repeats))}"
        )


def make_named_evaluator(spec: Any, repeats: int | None = None) -> NamedEvaluator:
    """Make an evaluator from ``"NAME[:key=value,...]"`` or, as in a YAML, ``{NAME: {key: value}}``.

    Also from an evaluator itself, or a function of (claim, doc): see `factaudit.evaluators.base`.

    Three options belong to every evaluator: ``name`` (what the verdicts table calls it; by default
    the evaluator's own `verdict_name`, else the spec), ``threshold`` and ``repeats`` (how often it
    is asked; here for those that do not say). Raises `UsageError`.
    """
    kind, options = "", dict[str, Any]()
    if isinstance(spec, str):
        kind, given = parse_spec_string(spec)
        options = dict(given)
    elif isinstance(spec, Mapping):
        if len(spec) != 1:
            raise UsageError(f"evaluator: expected one NAME: {{options}}, found {dict(spec)!r}")
        ((kind, own),) = spec.items()
        options = dict(own or {})
    name, threshold = options.pop("name", None), options.pop("threshold", DEFAULT_THRESHOLD)
    repeats = options.pop("repeats", repeats)
    try:
        cut = float(threshold)
    except (TypeError, ValueError):
        cut = math.nan
    if not 0 <= cut <= 1:
        raise UsageError(
            f"evaluator {kind!r}, option threshold: expected a number from 0 to 1, found"
            f" {threshold!r}"
        )
    evaluator = make_evaluator(kind, options) if kind else wrap_as_evaluator(spec)
    if name is None:
        told = ":".join(
            filter(None, (kind, ",".join(f"{key}={value}" for key, value in options.items())))
        )
        name = getattr(evaluator, "verdict_name", None) or told or type(evaluator).__name__
        name += f"@{cut:g}" if cut != DEFAULT_THRESHOLD else ""
    name = str(name)
    if not name.strip() or name in RESERVED_NAMES:
        raise UsageError(
            f"evaluator {kind!r}, option name: {name!r} is reserved or empty; choose another name"
        )
    return NamedEvaluator(name, evaluator, cut, _repeat_evaluator(kind or name, evaluator, repeats))


def _repeat_evaluator(name: str, evaluator: Evaluator, repeats: Any) -> tuple[Evaluator, ...]:
    """The evaluator asked again: ``again(1)``, ``again(2)``, ...; by default as often as it has
    paraphrased prompts."""
    least = 1 + len(getattr(evaluator, "prompts", ()))
    try:
        wanted = least if repeats is None else int(repeats)
    except (TypeError, ValueError):
        wanted = 0
    if wanted < least:
        raise UsageError(
            f"evaluator {name!r}, option repeats: expected {least} or more (one for each of its"
            f" prompts), found {repeats!r}"
        )
    again = getattr(evaluator, "again", None)
    if wanted > 1 and again is None:
        raise UsageError(
            f"evaluator {name!r} gives the same verdict each time: there is nothing to repeat"
        )
    return tuple(again(repeat) for repeat in range(1, wanted)) if again else ()


def check_unique_evaluator_names(
    evaluators: Iterable[NamedEvaluator], taken_names: Iterable[str] = ()
) -> None:
    """Two evaluators of one name would be one column of every table: a `UsageError` that says what
    to do."""
    seen = set(taken_names)
    for named in evaluators:
        if named.name in seen:
            raise UsageError(
                f"two evaluators are called {named.name!r}: give one of them another with name=..."
            )
        seen.add(named.name)


@raise_python_errors
def judge(
    claims: TableSource | Sequence[TableSource],
    evaluators: Iterable[EvaluatorSource | NamedEvaluator],
    *,
    journal: str | Path | None = None,
    progress: bool = False,
    repeats: int | None = None,
    mapping: MappingSource | None = None,
    on: str | None = None,
    **columns: Unpack[ClaimColumnNames],
) -> pd.DataFrame:
    """Judge a claims table with one or several evaluators.

    Args:
        claims: a data frame: a validated one (`factaudit.tables.read_claims`), or any by
        ``mapping`` or ``columns``, as
            `factaudit.results.compare` takes it.
        evaluators: specs, evaluators or functions of (claim, doc), as `make_named_evaluator` takes
        them; or named ones.
        journal: a folder for the journals, one file per evaluator and server; None keeps nothing on
        disk.
        progress: show a progress bar (on a terminal only).
        repeats: how often each is asked, where its spec does not say; an audit tells how often they
        agree.
        on: a Ray cluster (``ray`` or ``ray://HOST:PORT``; the extra [ray]) for all evaluators but
        those that ask a
            language model: what bounds these is its server.

    Returns a validated verdicts table: a row per claim and evaluator, in the order of the claims;
    none for a row that stands for a response without claims.
    """
    named = [
        e if isinstance(e, NamedEvaluator) else make_named_evaluator(e, repeats) for e in evaluators
    ]
    check_unique_evaluator_names(named)
    if on is not None:
        check_ray_address(on)
    table = load_python_input_frames(claims, None, mapping, columns).claims
    if table is None:
        raise UsageError("judge: there are no claims in what was given")
    inputs = _Inputs(table)
    if not inputs.ids:
        raise UsageError(
            "there is nothing to judge: every row stands for a response without claims"
        )
    with nullcontext() if journal is None else hold_folder_lock(journal, str(journal)):
        tables = []
        for one in named:
            for repeat, evaluator in enumerate(one.evaluator_and_repeats):
                verdicts = _judge_all(
                    inputs, replace(one, evaluator=evaluator), journal, progress, on
                )
                verdicts["repeat"] = pd.Series(
                    repeat, index=verdicts.index, dtype=verdicts["repeat"].dtype
                )
                tables.append(verdicts)
        return merge_verdict_tables(tables)


def walk_evaluator_members(
    evaluator: Evaluator, claims: Iterable[Claim] = ()
) -> Iterator[tuple[Evaluator, Iterable[Claim]]]:
    """An evaluator with the claims that it judges and, where it wraps others (``members``), those
    with theirs."""
    yield evaluator, claims
    inner = evaluator.pieces(claims) if hasattr(evaluator, "pieces") else claims
    for member in getattr(evaluator, "members", ()):
        yield from walk_evaluator_members(member, inner)


def _list_members(*evaluators: Evaluator) -> list[Evaluator]:
    return [part for one in evaluators for part, _ in walk_evaluator_members(one)]


def list_files_named_by_evaluator_options(evaluators: Iterable[NamedEvaluator]) -> Iterator[Path]:
    """The files and folders that evaluators, and evaluators inside them, read. A cache is left out:
    it is written."""
    for part in _list_members(*(each for one in evaluators for each in one.evaluator_and_repeats)):
        for name, value in getattr(part, "__dict__", {}).items():
            if name != "cache" and isinstance(value, str | Path) and value and Path(value).exists():
                yield Path(value)


def iterate_table_claims(claims_table: pd.DataFrame) -> Iterator[Claim]:
    """The rows of a claims table as evaluators see them."""
    inputs = _Inputs(claims_table)
    return inputs.iterate_claims(inputs.row_order)


def estimate_evaluator_costs(
    evaluators: Iterable[NamedEvaluator], claims: pd.DataFrame
) -> list[dict[str, Any]]:
    """What judging claims would cost at the most: a row of `estimate_llm_judging_cost` per
    evaluator, repeat and member that asks a language model. Nothing is sent.
    """
    table_claims = list(iterate_table_claims(claims))
    return [
        {"evaluator": one.name, **estimate_llm_judging_cost(member, list(asked))}
        for one in evaluators
        for evaluator in one.evaluator_and_repeats
        for member, asked in walk_evaluator_members(evaluator, table_claims)
        if hasattr(member, "requests")
    ]


def _judge_all(
    inputs: _Inputs,
    named: NamedEvaluator,
    journal: str | Path | None,
    progress: bool,
    ray_address: str | None,
) -> pd.DataFrame:
    """All claims' verdicts by one evaluator, those that the journal has among them."""
    done: dict[str, Verdict] = {}

    def take(row: dict[str, Any]) -> None:
        """What still holds for the claims as they are now."""
        if (key := row.pop("input", None)) is not None and inputs.fingerprints.get(
            row["claim_id"]
        ) == key:
            done[row["claim_id"]] = Verdict(**row)

    log = None
    if journal is not None:
        # The threshold turns scores into predictions afterwards, so it is no part of the journal's
        # name. What a model says is its server's.
        signature = named.evaluator.signature
        asked = {getattr(part, "cache_server", "") for part in _list_members(named.evaluator)}
        servers = sorted(asked - {""})
        header = {"evaluator": signature, **({"servers": servers} if servers else {})}
        log = JsonLinesJournal(
            Path(journal) / f"{hash_texts(signature, *servers)}.jsonl", take, header
        )
        done = {
            claim_id: verdict
            for claim_id, verdict in done.items()
            if verdict.status not in RETRIED_STATUSES
        }
    todo = [row for row in inputs.row_order if inputs.ids[row] not in done]
    shown_name, total = escape_control_characters(named.name), len(inputs.ids)
    with (
        log or nullcontext(),
        progress_bar(shown_name, "claim", total, total - len(todo), shown=progress) as bar,
    ):
        judged = _iterate_verdicts(named, inputs.iterate_claims(todo), ray_address) if todo else ()
        for verdict in judged:
            verdict = _check_verdict(verdict, inputs, named)
            if log is not None:
                row = {
                    key: value
                    for key in _VERDICT_FIELDS
                    if (value := getattr(verdict, key)) is not None
                }
                log.write_row({"input": inputs.fingerprints[verdict.claim_id], **row})
            done[verdict.claim_id] = verdict
            bar.update()
    return _make_table(inputs.ids, done, named)


def _iterate_verdicts(
    named: NamedEvaluator, claims: Iterable[Claim], ray_address: str | None
) -> Iterator[Any]:
    """What an evaluator says. Where it is not ours, what it raises is its own error and no bug of
    factaudit."""
    members = _list_members(named.evaluator)
    try:
        if ray_address is None or has_language_model(members):
            yield from named.evaluator.judge(claims)
        else:
            yield from judge_on_ray(ray_address, named.evaluator, members, claims)
    except (FactauditError, OSError, MemoryError):
        raise
    except Exception as error:
        if not any(map(is_user_evaluator, members)):
            raise
        raise FactauditError(
            f"evaluator {named.name!r} failed: {type(error).__name__}:"
            f" {format_error_first_line(error)} (factaudit --debug ... shows where)"
        ) from error


def _check_verdict(verdict: Any, inputs: _Inputs, named: NamedEvaluator) -> Verdict:
    """What an evaluator gave, if it is a verdict. Raises `FactauditError` for an evaluator's
    mistake."""
    who = f"evaluator {named.name!r}"
    if not isinstance(verdict, Verdict) or not isinstance(verdict.claim_id, str):
        raise FactauditError(
            f"{who}: expected a Verdict with the claim's id, found {reprlib.repr(verdict)}"
        )
    score, raw = verdict.score, verdict.raw
    says_nothing = score is None and verdict.prediction is None
    wrong = {
        "claim_id": verdict.claim_id not in inputs.known_ids,
        "status": verdict.status not in STATUSES or (verdict.status == "ok" and says_nothing),
        "score": score is not None and not (isinstance(score, Real) and 0 <= float(score) <= 1),
        "prediction": verdict.prediction not in (0, 1, None),
        "raw": not isinstance(raw, str | None),
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            found = reprlib.repr(getattr(verdict, name))
            raise FactauditError(
                f"{who}, claim {verdict.claim_id!r}: it gave the {name} {found} (expected"
                f" {_EXPECTED[name]})"
            )
    if raw is not None and not raw.isascii():
        # A model's reply may hold half of a surrogate pair, which no file can.
        return replace(verdict, raw=raw.encode("utf-8", "replace").decode())
    return verdict


#: What the fields of a verdict may be.
_EXPECTED = {
    "claim_id": "one that it was asked about",
    "status": f"{', '.join(STATUSES)}; ok only with a score or a prediction",
    "score": "0 to 1, or None",
    "prediction": "1, 0 or None",
    "raw": "text, or None",
}


class _Inputs:
    """The claims as evaluators see them, made one at a time, and a fingerprint of all that a
    verdict can depend on.

    Rows that stand for a response without claims are left out. ``row_order``: row numbers, the
    claims of one document
    together: evaluators and servers then read it once.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        table = table[table["abstained"].isna()]
        self.ids: list[str] = table["claim_id"].tolist()
        self.known_ids = set(self.ids)
        self._columns = [_list_texts(table[name]) for name in ("claim", "doc", "topic", "doc_id")]
        first: dict[str | None, int] = {}
        documents_in_order = [
            first.setdefault(doc, row) for row, doc in enumerate(self._columns[1])
        ]
        self.row_order = sorted(range(len(self.ids)), key=documents_in_order.__getitem__)

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """By claim id; made where a journal needs them."""
        # A document is long and shared by many claims: it is hashed once.
        documents: dict[str, str] = {}
        found = {}
        for claim_id, claim, doc, *names in zip(self.ids, *self._columns, strict=True):
            if doc is not None and doc not in documents:
                documents[doc] = hash_texts(doc, length=64)
            found[claim_id] = hash_texts(claim, None if doc is None else documents[doc], *names)
        return found

    def iterate_claims(self, rows: Iterable[int]) -> Iterator[Claim]:
        return (Claim(self.ids[row], *(column[row] for column in self._columns)) for row in rows)


_VERDICT_FIELDS = tuple(key.name for key in fields(Verdict))


def _make_table(
    claim_ids: list[str], verdict_by_claim: Mapping[str, Verdict], named: NamedEvaluator
) -> pd.DataFrame:
    missing = Verdict("", status="error", raw="the evaluator gave no verdict")
    verdicts = [verdict_by_claim.get(claim_id, missing) for claim_id in claim_ids]
    chunk_scores = [
        None if verdict.chunk_scores is None else list(verdict.chunk_scores) for verdict in verdicts
    ]
    table = pd.DataFrame(
        {
            "claim_id": claim_ids,
            "evaluator": named.name,
            "score": [verdict.score for verdict in verdicts],
            "prediction": pd.array(
                [_predict(verdict, named.threshold) for verdict in verdicts], dtype="Int8"
            ),
            "status": [verdict.status for verdict in verdicts],
            "raw": pd.Series([verdict.raw for verdict in verdicts], dtype="object"),
            "chunk_scores": pd.Series(chunk_scores, dtype="object"),
        }
    )
    return validate_verdicts(table, source=f"verdicts of {named.name}")


def _predict(verdict: Verdict, threshold: float) -> int | None:
    # A threshold that the user gives goes before a prediction that the evaluator made with its own.
    own = verdict.prediction is not None and threshold == DEFAULT_THRESHOLD
    if own or verdict.score is None or verdict.status != "ok":
        return verdict.prediction
    return int(verdict.score > threshold)


def _list_texts(column: pd.Series) -> list[Any]:
    return column.astype(object).where(column.notna(), None).tolist()
