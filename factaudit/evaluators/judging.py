"""Claims in, verdicts out: one evaluator over a claims table, written down as it goes so that
nothing is judged twice.

Every verdict goes to a *journal* (one JSON line each, flushed) as it comes. A run that was killed
and is started again reads the journal first; it repeats at most the claims that were in flight.
What language models reply is kept in their cache instead (`factaudit.llm.store`).
"""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Unpack

import pandas as pd
from pydantic import Field, TypeAdapter, ValidationError

from factaudit.datasets.python_input import (
    ClaimColumnNames,
    MappingSource,
    TableSource,
    load_python_input_frames,
)
from factaudit.errors import FactauditError, UsageError, format_error_first_line
from factaudit.evaluators.base import Claim, Evaluator, EvaluatorSource, Verdict
from factaudit.evaluators.ray_cluster import asks_language_model, check_ray_address, judge_on_ray
from factaudit.evaluators.registry import make_evaluator, wrap_as_evaluator
from factaudit.files import JsonLinesJournal, hold_folder_lock
from factaudit.llm.cost import estimate_llm_judging_cost
from factaudit.llm.settings import make_from_options
from factaudit.settings.python_errors import raise_python_errors
from factaudit.settings.spec_string import parse_spec_string
from factaudit.signature import hash_texts
from factaudit.tables import DEFAULT_THRESHOLD, merge_verdict_tables, validate_verdicts
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
        signature = self.evaluator.signature
        if self.threshold != DEFAULT_THRESHOLD:
            signature += f"|threshold:{self.threshold:g}"
        if self.repeats:
            signature += f"|repeats:{hash_texts(*(one.signature for one in self.repeats))}"
        return signature


@dataclass
class _CommonOptions:
    """The options that belong to every evaluator."""

    #: In a YAML a name may look like a number.
    __pydantic_config__: ClassVar[dict[str, Any]] = {"coerce_numbers_to_str": True}

    name: str | None = None
    threshold: Annotated[float, Field(ge=0, le=1)] = DEFAULT_THRESHOLD
    repeats: Annotated[int, Field(ge=1)] | None = None


def make_named_evaluator(spec: Any, repeats: int | None = None) -> NamedEvaluator:
    """Make an evaluator from ``"NAME[:key=value,...]"`` or, as in a YAML, ``{NAME: {key: value}}``.

    Also from an evaluator itself, or a function of (claim, doc): see `factaudit.evaluators.base`.

    Three options belong to every evaluator: ``name`` (what the verdicts table calls it; by default
    the evaluator's own `verdict_name`, else the spec), ``threshold`` and ``repeats`` (how often it
    is asked; here for those that do not say). Raises `UsageError`.
    """
    kind, options = "", dict[str, Any]()
    if isinstance(spec, str):
        kind, options = parse_spec_string(spec)
    elif isinstance(spec, Mapping):
        if len(spec) != 1:
            raise UsageError(f"evaluator: expected one NAME: {{options}}, found {dict(spec)!r}")
        ((kind, given),) = spec.items()
        options = dict(given or {})
    who = f"evaluator {kind!r}"
    own = [one.name for one in fields(_CommonOptions) if one.name in options]
    common = make_from_options(_CommonOptions, {name: options.pop(name) for name in own}, who)
    evaluator = make_evaluator(kind, options) if kind else wrap_as_evaluator(spec)
    name, cut = common.name, common.threshold
    if name is None:
        # Of a file the name: its folder is another on every machine.
        told = ",".join(
            f"{key}={Path(value).name if str(value).startswith('/') else value}"
            for key, value in options.items()
        )
        spec_name = f"{kind}:{told}" if told else kind
        name = getattr(evaluator, "verdict_name", None) or spec_name or type(evaluator).__name__
        name += f"@{cut:g}" if cut != DEFAULT_THRESHOLD else ""
    if not name.strip() or name in RESERVED_NAMES:
        raise UsageError(f"{who}, option name: {name!r} is reserved or empty; choose another name")
    n_asked = common.repeats or repeats or 1
    ask_again: Any = getattr(evaluator, "again", None)
    if n_asked > 1 and ask_again is None:
        raise UsageError(
            f"evaluator {name!r} gives the same verdict each time: there is nothing to repeat"
        )
    again = tuple(ask_again(repeat) for repeat in range(1, n_asked))
    return NamedEvaluator(name, evaluator, cut, again)


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
            ``mapping`` or ``columns``, as `factaudit.results.compare` takes it.
        evaluators: specs, evaluators or functions of (claim, doc), as `make_named_evaluator` takes
            them; or named ones.
        journal: a folder for the journals, one file per evaluator; None keeps nothing on disk. What
            a language model replies is kept in its cache alone.
        progress: show a progress bar (on a terminal only).
        repeats: how often each is asked, where its spec does not say; an audit tells how often they
            agree.
        on: a Ray cluster (``ray`` or ``ray://HOST:PORT``; the extra [ray]) for all evaluators but
            those that ask a language model: what bounds these is its server.

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
    inputs = list_table_claims(table)
    if not inputs:
        raise UsageError(
            "there is nothing to judge: every row stands for a response without claims"
        )
    ids = table["claim_id"][table["abstained"].isna()].tolist()
    tables = []
    with nullcontext() if journal is None else hold_folder_lock(journal, str(journal)):
        for one in named:
            for repeat, evaluator in enumerate(one.evaluator_and_repeats):
                asked = replace(one, evaluator=evaluator)
                verdicts = _judge_all(inputs, asked, journal, progress, on)
                tables.append(_make_table(ids, verdicts, one, repeat))
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


def estimate_evaluator_costs(
    evaluators: Iterable[NamedEvaluator], claims: pd.DataFrame
) -> list[dict[str, Any]]:
    """What judging claims would cost at the most: a row of `estimate_llm_judging_cost` per
    evaluator, repeat and member that asks a language model. Nothing is sent.
    """
    table_claims = list_table_claims(claims)
    return [
        {"evaluator": one.name, **estimate_llm_judging_cost(member, list(asked))}
        for one in evaluators
        for evaluator in one.evaluator_and_repeats
        for member, asked in walk_evaluator_members(evaluator, table_claims)
        if hasattr(member, "requests")
    ]


def _judge_all(
    claims: Sequence[Claim],
    named: NamedEvaluator,
    journal: str | Path | None,
    progress: bool,
    ray_address: str | None,
) -> dict[str, Verdict]:
    """All claims' verdicts by one evaluator, those that the journal has among them."""
    members = [part for part, _ in walk_evaluator_members(named.evaluator)]
    by_id = {claim.claim_id: claim for claim in claims}
    done: dict[str, Verdict] = {}

    def take(row: dict[str, Any]) -> None:
        """What still holds for the claims as they are now."""
        fingerprint, verdict = row.pop("input"), Verdict(**row)
        claim = by_id.get(verdict.claim_id)
        if claim is not None and fingerprint == _hash_claim(claim):
            done[verdict.claim_id] = verdict

    log = None
    # Replies of language models are kept in their cache.
    if journal is not None and not asks_language_model(members):
        # The threshold turns scores into predictions afterwards, so it is no part of the journal's
        # name.
        signature = named.evaluator.signature
        path = Path(journal) / f"{hash_texts(signature)}.jsonl"
        log = JsonLinesJournal(path, take, {"evaluator": signature})
        done = {key: one for key, one in done.items() if one.status not in RETRIED_STATUSES}
    todo = [claim for claim in claims if claim.claim_id not in done]
    bar = progress_bar(
        escape_control_characters(named.name), "claim", len(claims), len(done), shown=progress
    )
    with log or nullcontext(), bar:
        for said in _iterate_verdicts(named, members, todo, ray_address) if todo else ():
            verdict = _check_verdict(said, by_id, named.name)
            if log is not None:
                log.write_row({"input": _hash_claim(by_id[verdict.claim_id]), **asdict(verdict)})
            done[verdict.claim_id] = verdict
            bar.update()
    return done


def _iterate_verdicts(
    named: NamedEvaluator,
    members: Sequence[Evaluator],
    claims: Iterable[Claim],
    ray_address: str | None,
) -> Iterator[Any]:
    """What an evaluator says; what it raises becomes a `FactauditError` that names it."""
    try:
        if ray_address is None or asks_language_model(members):
            yield from named.evaluator.judge(claims)
        else:
            yield from judge_on_ray(ray_address, named.evaluator, members, claims)
    except (FactauditError, OSError, MemoryError):
        raise
    except Exception as error:
        said = format_error_first_line(error)
        raise FactauditError(
            f"evaluator {named.name!r} failed: {type(error).__name__}: {said}"
            " (factaudit --debug ... shows where)"
        ) from error


def _check_verdict(verdict: Any, known_claims: Collection[str], name: str) -> Verdict:
    """What an evaluator gave, if it is a verdict. Raises `FactauditError` for an evaluator's
    mistake."""
    who = f"evaluator {name!r}"
    if not isinstance(verdict, Verdict):
        found = reprlib.repr(verdict)
        raise FactauditError(f"{who}: expected a Verdict with the claim's id, found {found}")
    try:
        checked: Verdict = _VERDICT_ADAPTER.validate_python(verdict)
    except ValidationError as error:
        first = error.errors()[0]
        wrong, expected = str(first["loc"][0]), first["msg"]
    else:
        if checked.claim_id not in known_claims:
            wrong, expected = "claim_id", "expected one that it was asked about"
        elif checked.status == "ok" and checked.score is None and checked.prediction is None:
            wrong, expected = "status", "ok needs a score or a prediction"
        else:
            return checked
    found = reprlib.repr(getattr(verdict, wrong))
    raise FactauditError(
        f"{who}, claim {verdict.claim_id!r}: it gave the {wrong} {found} ({expected})"
    )


def list_table_claims(table: pd.DataFrame) -> list[Claim]:
    """The rows of a claims table as evaluators see them, those of one document together: evaluators
    and servers then read it once. Rows that stand for a response without claims are left out."""
    table = table[table["abstained"].isna()]
    names = ("claim_id", "claim", "doc", "topic", "doc_id")
    columns = [table[name].astype(object).where(table[name].notna(), None) for name in names]
    claims = list(map(Claim, *columns))
    first: dict[str | None, int] = {}
    for number, claim in enumerate(claims):
        first.setdefault(claim.doc, number)
    return sorted(claims, key=lambda claim: first[claim.doc])


def _hash_claim(claim: Claim) -> str:
    """A fingerprint of all that a verdict can depend on."""
    return hash_texts(claim.claim, claim.doc, claim.topic, claim.doc_id)


_VERDICT_ADAPTER = TypeAdapter(Verdict)


def _make_table(
    claim_ids: Iterable[str], verdicts: Mapping[str, Verdict], named: NamedEvaluator, repeat: int
) -> pd.DataFrame:
    """The verdicts as a validated table, in the order of the claims."""
    none = Verdict("", status="error", raw="the evaluator gave no verdict")
    rows = [{**asdict(verdicts.get(one, none)), "claim_id": one} for one in claim_ids]
    for row in rows:
        # A threshold that the user gives takes precedence over a prediction that the evaluator made
        # with its own.
        is_open = row["prediction"] is None or named.threshold != DEFAULT_THRESHOLD
        if row["status"] == "ok" and row["score"] is not None and is_open:
            row["prediction"] = int(row["score"] > named.threshold)
    table = pd.DataFrame(rows).assign(evaluator=named.name, repeat=repeat)
    return validate_verdicts(table, source=f"verdicts of {named.name}")
