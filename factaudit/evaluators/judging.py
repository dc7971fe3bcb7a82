"""Claims in, verdicts out: one evaluator over a claims table, written down as it goes so that nothing is judged twice.

Every verdict goes to a *journal* (one JSON line each, flushed) as it comes. A run that was killed and is started again
reads the journal first; it repeats at most the claims that were in flight.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, Unpack

import pandas as pd

from factaudit.errors import FactauditError, UsageError, format_error_first_line
from factaudit.evaluators.base import Claim, Evaluator, EvaluatorSource, Verdict
from factaudit.evaluators.judging_progress import JudgingProgressBar
from factaudit.evaluators.prompt_examples import check_prompts_spare_claims
from factaudit.evaluators.ray_cluster import check_ray_address, has_language_model, judge_on_ray
from factaudit.evaluators.registry import make_evaluator
from factaudit.evaluators.server_journals import open_server_journal
from factaudit.evaluators.user_evaluators import is_user_evaluator, wrap_as_user_evaluator
from factaudit.files import hold_folder_lock
from factaudit.python_errors import raise_python_errors
from factaudit.python_input import ClaimColumnNames, MappingSource, TableSource, load_python_input_frames
from factaudit.signature import hash_texts
from factaudit.spec_string import parse_spec_string
from factaudit.tables import DEFAULT_THRESHOLD, STATUSES, merge_verdict_tables, validate_verdicts
from factaudit.tables.column_parsing import is_dictionary_encoded
from factaudit.tables.documents import list_shared_texts
from factaudit.tables.schema import RESERVED_NAMES
from factaudit.text.display_text import escape_control_characters

#: Verdicts of these statuses are asked for again when a run is resumed; the others are final.
RETRIED_STATUSES = ("error", "skipped")


@dataclass(frozen=True)
class NamedEvaluator:
    """An evaluator, the name that its verdicts carry, and the score above which (strictly) it predicts 1."""

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
        """The evaluator's own signature, with the threshold where it is not 0.5, and the repeats."""
        own = self.evaluator.signature
        own += "" if self.threshold == DEFAULT_THRESHOLD else f"|threshold:{self.threshold:g}"
        return own if not self.repeats else f"{own}|repeats:{hash_texts(*(one.signature for one in self.repeats))}"


def make_named_evaluator(spec: Any, repeats: int | None = None) -> NamedEvaluator:
    """Make an evaluator from ``"NAME[:key=value,...]"`` or, as in a YAML, ``{NAME: {key: value}}``.

    Also from an evaluator itself, or a function of (claim, doc): see `factaudit.evaluators.user_evaluators`.

    Three options belong to every evaluator: ``name`` (what the verdicts table calls it; by default the evaluator's own
    `verdict_name`, else the spec), ``threshold`` and ``repeats`` (how often it is asked; here for those that do not
    say). Raises `UsageError`.
    """
    if isinstance(spec, str):
        kind, given = parse_spec_string(spec)
        options: dict[str, Any] = dict(given)
    elif not isinstance(spec, Mapping):
        evaluator = wrap_as_user_evaluator(spec)
        name = getattr(evaluator, "verdict_name", None) or type(evaluator).__name__
        return NamedEvaluator(name, evaluator, repeats=_make_repeated_evaluators(name, evaluator, repeats))
    else:
        if len(spec) != 1:
            raise UsageError(f"evaluator: expected one NAME: {{options}}, found {dict(spec)!r}")
        kind, found = next(iter(spec.items()))
        options = dict(found or {})
    name = options.pop("name", None)
    threshold = options.pop("threshold", DEFAULT_THRESHOLD)
    repeats = options.pop("repeats", repeats)
    try:
        cut = float(threshold)
    except (TypeError, ValueError):
        raise UsageError(f"evaluator {kind!r}, option threshold: expected a number, found {threshold!r}") from None
    if not 0 <= cut <= 1:
        raise UsageError(f"evaluator {kind!r}, option threshold: expected 0 to 1, found {cut:g}")
    evaluator = make_evaluator(kind, options)
    if name is not None and not str(name).strip():
        raise UsageError(f"evaluator {kind!r}, option name: expected text, found none")
    if name is None:
        given_options = ",".join(f"{key}={value}" for key, value in options.items())
        name = getattr(evaluator, "verdict_name", None) or ":".join(filter(None, (kind, given_options)))
        name += f"@{cut:g}" if cut != DEFAULT_THRESHOLD else ""
    if str(name) in RESERVED_NAMES:
        raise UsageError(f"evaluator {kind!r}, option name: {name!r} is reserved; choose another name")
    return NamedEvaluator(str(name), evaluator, cut, _make_repeated_evaluators(kind, evaluator, repeats))


def _make_repeated_evaluators(evaluator_name: str, evaluator: Evaluator, repeats: Any) -> tuple[Evaluator, ...]:
    """The evaluator asked again: ``again(1)``, ``again(2)``, ...; by default as often as it has paraphrased prompts."""
    prompts = len(getattr(evaluator, "prompts", ()))
    try:
        wanted = 1 + prompts if repeats is None else int(repeats)
    except (TypeError, ValueError):
        wanted = 0
    if wanted < 1 + prompts:
        least = f"{1 + prompts} or more (it has {prompts} paraphrased prompts)" if prompts else "1 or more"
        raise UsageError(f"evaluator {evaluator_name!r}, option repeats: expected {least}, found {repeats!r}")
    again = getattr(evaluator, "again", None)
    if wanted > 1 and again is None:
        raise UsageError(f"evaluator {evaluator_name!r} gives the same verdict each time: there is nothing to repeat")
    return tuple(again(repeat) for repeat in range(1, wanted)) if again is not None else ()


def check_unique_evaluator_names(evaluators: Iterable[NamedEvaluator], taken_names: Iterable[str] = ()) -> None:
    """Two evaluators of one name would be one column of every table: a `UsageError` that says what to do."""
    seen = set(taken_names)
    for named in evaluators:
        if named.name in seen:
            raise UsageError(f"two evaluators are called {named.name!r}: give one of them another with name=...")
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
        claims: a data frame: a validated one (`factaudit.tables.read_claims`), or any by ``mapping`` or ``columns``, as
            `factaudit.results.compare` takes it.
        evaluators: specs, evaluators or functions of (claim, doc), as `make_named_evaluator` takes them; or named ones.
        journal: a folder for the journals, one file per evaluator and server; None keeps nothing on disk.
        progress: show a progress bar (on a terminal only).
        repeats: how often each is asked, where its spec does not say; an audit tells how often they agree.
        on: a Ray cluster (``ray`` or ``ray://HOST:PORT``; the extra [ray]) for all evaluators but those that ask a
            language model: what bounds these is its server.

    Returns a validated verdicts table: a row per claim and evaluator, in the order of the claims; none for a row that
    stands for a response without claims.
    """
    named = [e if isinstance(e, NamedEvaluator) else make_named_evaluator(e, repeats) for e in evaluators]
    check_unique_evaluator_names(named)
    if on is not None:
        check_ray_address(on)
    table = load_python_input_frames(claims, None, mapping, columns).claims
    if table is None:
        raise UsageError("judge: there are no claims in what was given")
    asked = [part for one in named for each in one.evaluator_and_repeats for part in _list_evaluator_members(each)]
    check_prompts_spare_claims(asked, table)
    inputs = _JudgingInputs(table)
    if not inputs.ids:
        raise UsageError("there is nothing to judge: every row stands for a response without claims")
    with nullcontext() if journal is None else hold_folder_lock(journal, str(journal)):
        tables = []
        for one in named:
            for repeat, evaluator in enumerate(one.evaluator_and_repeats):
                table = _judge_with_one_evaluator(inputs, replace(one, evaluator=evaluator), journal, progress, on)
                table["repeat"] = pd.Series(repeat, index=table.index, dtype=table["repeat"].dtype)
                tables.append(table)
        return merge_verdict_tables(tables)


def walk_evaluator_members(
    evaluator: Evaluator, claims: Iterable[Claim] = ()
) -> Iterator[tuple[Evaluator, Iterable[Claim]]]:
    """An evaluator with the claims that it judges and, where it wraps others (``members``), those with theirs."""
    yield evaluator, claims
    inner = evaluator.pieces(claims) if hasattr(evaluator, "pieces") else claims
    for member in getattr(evaluator, "members", ()):
        yield from walk_evaluator_members(member, inner)


def _list_evaluator_members(evaluator: Evaluator) -> list[Evaluator]:
    return [part for part, _ in walk_evaluator_members(evaluator)]


def list_files_named_by_evaluator_options(evaluators: Iterable[NamedEvaluator]) -> Iterator[Path]:
    """The files and folders that options of evaluators (and of those inside them) name."""
    for named in evaluators:
        for part, _ in (pair for asked in named.evaluator_and_repeats for pair in walk_evaluator_members(asked)):
            for value in getattr(part, "__dict__", {}).values():
                if isinstance(value, str | Path) and value and Path(value).exists():
                    yield Path(value)


def iterate_table_claims(claims_table: pd.DataFrame) -> Iterator[Claim]:
    """The rows of a claims table as evaluators see them."""
    inputs = _JudgingInputs(claims_table)
    return inputs.iterate_claims(inputs.row_order)


def _judge_with_one_evaluator(
    inputs: _JudgingInputs,
    named_evaluator: NamedEvaluator,
    journal: str | Path | None,
    progress: bool,
    ray_address: str | None,
) -> pd.DataFrame:
    evaluator = named_evaluator.evaluator
    done: dict[str, Verdict] = {}

    def take(row: dict[str, Any]) -> None:
        """What still holds for the claims as they are now."""
        if (key := row.pop("input", None)) is not None and inputs.fingerprints.get(row["claim_id"]) == key:
            done[row["claim_id"]] = Verdict(**row)

    log = None
    if journal is not None:
        # The threshold turns scores into predictions afterwards, so it is no part of the journal's name.
        asked = _list_evaluator_members(evaluator)
        header = {"evaluator": evaluator.signature}
        log = open_server_journal(journal, evaluator.signature, asked, take, header=header)
        done = {claim_id: verdict for claim_id, verdict in done.items() if verdict.status not in RETRIED_STATUSES}
    todo = [row for row in inputs.row_order if inputs.ids[row] not in done]
    with (
        log or nullcontext(),
        JudgingProgressBar(
            escape_control_characters(named_evaluator.name), len(inputs.ids), len(todo), shown=progress
        ) as waiting,
    ):
        for verdict in (
            _iterate_judged_verdicts(named_evaluator, inputs.iterate_claims(todo), ray_address) if todo else ()
        ):
            verdict = _check_judged_verdict(verdict, inputs, named_evaluator)
            if log is not None:
                row = {key: value for key in _VERDICT_FIELDS if (value := getattr(verdict, key)) is not None}
                log.write_row({"input": inputs.fingerprints[verdict.claim_id], **row})
            done[verdict.claim_id] = verdict
            waiting.count_judged_claim()
    return _make_judged_verdicts_table(inputs.ids, done, named_evaluator)


def _iterate_judged_verdicts(
    named_evaluator: NamedEvaluator, claims: Iterable[Claim], ray_address: str | None
) -> Iterator[Any]:
    """What an evaluator says. Where it is not ours, what it raises is its own error and no bug of factaudit."""
    try:
        yield from _judge_here_or_on_ray(named_evaluator.evaluator, claims, ray_address)
    except (FactauditError, OSError, MemoryError):
        raise
    except Exception as error:
        if not any(is_user_evaluator(part) for part, _ in walk_evaluator_members(named_evaluator.evaluator)):
            raise
        raise FactauditError(
            f"evaluator {named_evaluator.name!r} failed: {type(error).__name__}: {format_error_first_line(error)}"
            " (factaudit --debug ... shows where)"
        ) from error


def _judge_here_or_on_ray(evaluator: Evaluator, claims: Iterable[Claim], ray_address: str | None) -> Iterator[Verdict]:
    members = _list_evaluator_members(evaluator)
    if ray_address is None or has_language_model(members):
        return evaluator.judge(claims)
    return judge_on_ray(ray_address, evaluator, members, claims)


def _check_judged_verdict(verdict: Any, inputs: _JudgingInputs, named_evaluator: NamedEvaluator) -> Verdict:
    """What no evaluator may give, said before it is kept: of ours it would be a bug, of another's a message."""
    wrong = None
    if not isinstance(verdict, Verdict) or not isinstance(verdict.claim_id, str):
        raise FactauditError(
            f"evaluator {named_evaluator.name!r}: expected a Verdict with the claim's id, found {reprlib.repr(verdict)}"
        )
    if verdict.claim_id not in inputs.known_ids:
        wrong = "was not asked about"
    elif verdict.status not in STATUSES:
        wrong = f"gave the status {verdict.status!r} (expected one of {', '.join(STATUSES)})"
    elif verdict.score is not None and not (isinstance(verdict.score, Real) and 0 <= verdict.score <= 1):
        wrong = f"gave the score {verdict.score!r} (expected 0 to 1, or None)"
    elif verdict.prediction not in (0, 1, None):
        wrong = f"gave the prediction {verdict.prediction!r} (expected 1, 0 or None)"
    elif not isinstance(verdict.raw, str | None):
        wrong = f"gave a raw reply that is no text: {reprlib.repr(verdict.raw)}"
    elif verdict.status == "ok" and verdict.score is None and verdict.prediction is None:
        wrong = "gave neither a score nor a prediction, and no status that says why"
    if wrong:
        raise FactauditError(f"evaluator {named_evaluator.name!r}, claim {verdict.claim_id!r}: it {wrong}")
    if verdict.raw is not None and not verdict.raw.isascii():
        # A model's reply may hold half of a surrogate pair, which no file can.
        return replace(verdict, raw=verdict.raw.encode("utf-8", "replace").decode())
    return verdict


@dataclass
class _JudgingInputs:
    """The claims as evaluators see them, made one at a time, and a fingerprint of all that a verdict can depend on.

    Rows that stand for a response without claims are left out.
    """

    table: pd.DataFrame
    ids: list[str] = field(init=False)
    known_ids: set[str] = field(init=False)
    #: Row numbers, the claims of one document together: evaluators and servers then read it once.
    row_order: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.table = self.table[self.table["abstained"].isna()]
        self.ids = self.table["claim_id"].tolist()
        self.known_ids = set(self.ids)
        self._columns = {name: _list_cell_texts_for_judging(self.table[name]) for name in ("claim", "doc", "topic")}
        first: dict[str | None, int] = {}
        documents_in_order = [first.setdefault(doc, row) for row, doc in enumerate(self._columns["doc"])]
        self.row_order = sorted(range(len(self.ids)), key=documents_in_order.__getitem__)

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """By claim id; made where a journal needs them."""
        documents: dict[str, str] = {}  # a document is long and shared by many claims: it is hashed once
        found = {}
        for claim_id, claim, doc, topic in zip(self.ids, *self._columns.values(), strict=True):
            if doc is not None and doc not in documents:
                documents[doc] = hash_texts(doc, length=64)
            found[claim_id] = hash_texts(claim, None if doc is None else documents[doc], topic)
        return found

    def iterate_claims(self, rows: Iterable[int]) -> Iterator[Claim]:
        columns = self._columns
        for row in rows:
            yield Claim(self.ids[row], columns["claim"][row], columns["doc"][row], columns["topic"][row])


_VERDICT_FIELDS = tuple(key.name for key in fields(Verdict))


def _make_judged_verdicts_table(
    claim_ids: list[str], verdict_by_claim: Mapping[str, Verdict], named_evaluator: NamedEvaluator
) -> pd.DataFrame:
    missing = Verdict("", status="error", raw="the evaluator gave no verdict")
    verdicts = [verdict_by_claim.get(claim_id, missing) for claim_id in claim_ids]
    table = pd.DataFrame(
        {
            "claim_id": claim_ids,
            "evaluator": named_evaluator.name,
            "score": [verdict.score for verdict in verdicts],
            "prediction": pd.array(
                [_predict_verdict_by_threshold(verdict, named_evaluator.threshold) for verdict in verdicts],
                dtype="Int8",
            ),
            "status": [verdict.status for verdict in verdicts],
            "raw": pd.Series([verdict.raw for verdict in verdicts], dtype="object"),
            "chunk_scores": pd.Series(
                [None if v.chunk_scores is None else list(v.chunk_scores) for v in verdicts], dtype="object"
            ),
        }
    )
    return validate_verdicts(table, source=f"verdicts of {named_evaluator.name}")


def _predict_verdict_by_threshold(verdict: Verdict, threshold: float) -> int | None:
    # A threshold that the user gives goes before a prediction that the evaluator made with its own.
    own = verdict.prediction is not None and threshold == DEFAULT_THRESHOLD
    if own or verdict.score is None or verdict.status != "ok":
        return verdict.prediction
    return int(verdict.score > threshold)


def _list_cell_texts_for_judging(column: pd.Series) -> list[Any]:
    if is_dictionary_encoded(column):
        return list_shared_texts(column)
    return column.astype(object).where(column.notna(), None).tolist()
