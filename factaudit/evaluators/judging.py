"""Claims in, verdicts out: one evaluator over a claims table, written down as it goes so that nothing is judged twice.

Every verdict goes to a *journal* (one JSON line each, flushed) as it comes. A run that was killed and is started again
reads the journal first; it repeats at most the claims that were in flight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.errors import FactauditError, UsageError
from factaudit.evaluators.base import Claim, Evaluator, Verdict
from factaudit.evaluators.cluster import check_address, judge_on, stays
from factaudit.evaluators.own import as_evaluator
from factaudit.evaluators.registry import make_evaluator
from factaudit.evaluators.reordered import Reordered
from factaudit.evaluators.waiting import Waiting
from factaudit.files import Journal, held
from factaudit.intake.load import frames
from factaudit.signature import digest
from factaudit.spec import parse_spec
from factaudit.tables import DEFAULT_THRESHOLD, STATUSES, merge_verdicts, validate_verdicts
from factaudit.tables.columns import is_encoded
from factaudit.tables.documents import shared_texts
from factaudit.tables.schema import RESERVED
from factaudit.text.printable import printable

#: Verdicts of these statuses are asked for again when a run is resumed; the others are final.
RETRIED = ("error", "skipped")


@dataclass(frozen=True)
class NamedEvaluator:
    """An evaluator, the name that its verdicts carry, and the score above which (strictly) it predicts 1."""

    name: str
    evaluator: Evaluator
    threshold: float = DEFAULT_THRESHOLD
    #: The same evaluator asked again (or with a paraphrased prompt, or passages in another order): repeat 1, 2, ...
    repeats: tuple[Evaluator, ...] = ()

    @property
    def asked(self) -> tuple[Evaluator, ...]:
        """The evaluator, and its repeats."""
        return self.evaluator, *self.repeats

    @property
    def signature(self) -> str:
        """The evaluator's own signature, with the threshold where it is not 0.5, and the repeats."""
        own = self.evaluator.signature
        own += "" if self.threshold == DEFAULT_THRESHOLD else f"|threshold:{self.threshold:g}"
        return own if not self.repeats else f"{own}|repeats:{digest(*(one.signature for one in self.repeats))}"


def name_evaluator(spec: Any, repeats: int | None = None, orders: int | None = None) -> NamedEvaluator:
    """Make an evaluator from ``"NAME[:key=value,...]"`` or, as in a YAML, ``{NAME: {key: value}}``.

    Also from an evaluator itself, or a function of (claim, doc): see `factaudit.evaluators.own`.

    Four options belong to every evaluator: ``name`` (what the verdicts table calls it; by default the evaluator's own
    `verdict_name`, else the spec), ``threshold``, ``repeats`` (how often it is asked) and ``orders`` (how often it is
    asked once more with the documents' passages in another order); the last two here are for those that do not say.
    Raises `UsageError`.
    """
    if isinstance(spec, str):
        kind, given = parse_spec(spec)
        options: dict[str, Any] = dict(given)
    elif not isinstance(spec, Mapping):
        evaluator = as_evaluator(spec)
        name = getattr(evaluator, "verdict_name", None) or type(evaluator).__name__
        return NamedEvaluator(name, evaluator, repeats=_repeated(name, evaluator, repeats, orders))
    else:
        if len(spec) != 1:
            raise UsageError(f"evaluator: expected one NAME: {{options}}, found {dict(spec)!r}")
        kind, found = next(iter(spec.items()))
        options = dict(found or {})
    name = options.pop("name", None)
    threshold = options.pop("threshold", DEFAULT_THRESHOLD)
    repeats, orders = options.pop("repeats", repeats), options.pop("orders", orders)
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
        name = getattr(evaluator, "verdict_name", None) or _canonical(kind, options)
        name += f"@{cut:g}" if cut != DEFAULT_THRESHOLD else ""
    if str(name) in RESERVED:
        raise UsageError(f"evaluator {kind!r}, option name: expected another name than {name!r}, which results have")
    return NamedEvaluator(str(name), evaluator, cut, _repeated(kind, evaluator, repeats, orders))


def _repeated(kind: str, evaluator: Evaluator, repeats: Any, orders: Any = None) -> tuple[Evaluator, ...]:
    """The evaluator asked again: ``again(1)``, ``again(2)``, ...; by default as often as it has paraphrased prompts.
    Then with the documents' passages in another order."""
    prompts = len(getattr(evaluator, "prompts", ()))
    try:
        wanted = 1 + prompts if repeats is None else int(repeats)
    except (TypeError, ValueError):
        wanted = 0
    if wanted < 1 + prompts:
        least = f"{1 + prompts} or more (it has {prompts} paraphrased prompts)" if prompts else "1 or more"
        raise UsageError(f"evaluator {kind!r}, option repeats: expected {least}, found {repeats!r}")
    again = getattr(evaluator, "again", None)
    if wanted > 1 and again is None:
        raise UsageError(f"evaluator {kind!r} gives the same verdict each time: there is nothing to repeat")
    same = tuple(again(repeat) for repeat in range(1, wanted)) if again is not None else ()
    try:
        n_orders = int(orders or 0)
    except (TypeError, ValueError):
        n_orders = -1
    if n_orders < 0:
        raise UsageError(f"evaluator {kind!r}, option orders: expected 0 or more, found {orders!r}")
    return (*same, *(Reordered(evaluator, order) for order in range(1, n_orders + 1)))


def check_names(evaluators: Iterable[NamedEvaluator], taken: Iterable[str] = ()) -> None:
    """Two evaluators of one name would be one column of every table: a `UsageError` that says what to do."""
    seen = set(taken)
    for named in evaluators:
        if named.name in seen:
            raise UsageError(f"two evaluators are called {named.name!r}: give one of them another with name=...")
        seen.add(named.name)


def judge(
    claims: Any,
    evaluators: Iterable[Any],
    *,
    journal: str | Path | None = None,
    progress: bool = False,
    repeats: int | None = None,
    orders: int | None = None,
    mapping: Any = None,
    on: str | None = None,
) -> pd.DataFrame:
    """Judge a claims table with one or several evaluators.

    Args:
        claims: a data frame: a validated one (`factaudit.tables.read_claims`), or any by ``mapping``, as
            `factaudit.results.compare` takes it.
        evaluators: specs, evaluators or functions of (claim, doc), as `name_evaluator` takes them; or named ones.
        journal: a folder for the journals, one file per evaluator signature; None keeps nothing on disk.
        progress: show a progress bar (on a terminal only).
        repeats: how often each is asked, where its spec does not say; an audit tells how often they agree.
        orders: how often each is asked with the passages of documents in another order, as further repeats.
        on: a Ray cluster (``ray`` or ``ray://HOST:PORT``; the extra [ray]) for all evaluators but those that ask a
            language model: what bounds these is its server.

    Returns a validated verdicts table: a row per claim and evaluator, in the order of the claims; none for a row that
    stands for a response without claims.
    """
    named = [e if isinstance(e, NamedEvaluator) else name_evaluator(e, repeats, orders) for e in evaluators]
    check_names(named)
    if on is not None:
        check_address(on)
    table = frames(claims, None, mapping).claims
    if table is None:
        raise UsageError("judge: there are no claims in what was given")
    inputs = _Inputs(table)
    if not inputs.ids:
        raise UsageError("there is nothing to judge: every row stands for a response without claims")
    with nullcontext() if journal is None else held(journal, str(journal)):
        tables = []
        for one in named:
            for repeat, evaluator in enumerate(one.asked):
                table = _judge_one(inputs, replace(one, evaluator=evaluator), journal, progress, on)
                table["repeat"] = pd.Series(repeat, index=table.index, dtype=table["repeat"].dtype)
                tables.append(table)
        return merge_verdicts(tables)


def parts(evaluator: Evaluator, claims: Iterable[Claim] = ()) -> Iterator[tuple[Evaluator, Iterable[Claim]]]:
    """An evaluator with the claims that it judges and, where it wraps others (``members``), those with theirs."""
    yield evaluator, claims
    inner = evaluator.pieces(claims) if hasattr(evaluator, "pieces") else claims
    for member in getattr(evaluator, "members", ()):
        yield from parts(member, inner)


def files_of(evaluators: Iterable[NamedEvaluator]) -> Iterator[Path]:
    """The files and folders that options of evaluators (and of those inside them) name."""
    for named in evaluators:
        for part, _ in (pair for asked in named.asked for pair in parts(asked)):
            for value in getattr(part, "__dict__", {}).values():
                if isinstance(value, str | Path) and value and Path(value).exists():
                    yield Path(value)


def as_claims(table: pd.DataFrame) -> Iterator[Claim]:
    """The rows of a claims table as evaluators see them."""
    inputs = _Inputs(table)
    return inputs.claims(inputs.order)


def _judge_one(
    inputs: _Inputs, named: NamedEvaluator, journal: str | Path | None, progress: bool, on: str | None
) -> pd.DataFrame:
    evaluator = named.evaluator
    done: dict[str, Verdict] = {}

    def take(row: dict[str, Any]) -> None:
        """What still holds for the claims as they are now."""
        if (key := row.pop("input", None)) is not None and inputs.fingerprints.get(row["claim_id"]) == key:
            done[row["claim_id"]] = Verdict(**row)

    log = None
    if journal is not None:
        # The threshold turns scores into predictions afterwards, so it is no part of the journal's name.
        path = Path(journal) / f"{digest(evaluator.signature)}.jsonl"
        log = Journal(path, take, header={"evaluator": evaluator.signature})
        done = {claim_id: verdict for claim_id, verdict in done.items() if verdict.status not in RETRIED}
    todo = [row for row in inputs.order if inputs.ids[row] not in done]
    with log or nullcontext(), Waiting(printable(named.name), len(inputs.ids), len(todo), shown=progress) as waiting:
        for verdict in _verdicts(evaluator, inputs.claims(todo), on) if todo else ():
            verdict = _checked(verdict, inputs, named)
            if log is not None:
                row = {key: value for key in _KEYS if (value := getattr(verdict, key)) is not None}
                log.write({"input": inputs.fingerprints[verdict.claim_id], **row})
            done[verdict.claim_id] = verdict
            waiting.judged()
    return _table(inputs.ids, done, named)


def _verdicts(evaluator: Evaluator, claims: Iterable[Claim], on: str | None) -> Iterator[Verdict]:
    members = [part for part, _ in parts(evaluator)]
    if on is None or stays(members):
        return evaluator.judge(claims)
    return judge_on(on, evaluator, members, claims)


def _checked(verdict: Verdict, inputs: _Inputs, named: NamedEvaluator) -> Verdict:
    """What no evaluator may give, said before it is kept: of ours it would be a bug, of another's a message."""
    wrong = None
    if verdict.claim_id not in inputs.known:
        wrong = "was not asked about"
    elif verdict.status not in STATUSES:
        wrong = f"gave the status {verdict.status!r} (expected one of {', '.join(STATUSES)})"
    elif verdict.score is not None and not 0 <= verdict.score <= 1:
        wrong = f"gave the score {verdict.score!r} (expected 0 to 1, or None)"
    elif verdict.prediction not in (0, 1, None):
        wrong = f"gave the prediction {verdict.prediction!r} (expected 1, 0 or None)"
    elif verdict.status == "ok" and verdict.score is None and verdict.prediction is None:
        wrong = "gave neither a score nor a prediction, and no status that says why"
    if wrong:
        raise FactauditError(f"evaluator {named.name!r}, claim {verdict.claim_id!r}: it {wrong}")
    if verdict.raw is not None and not verdict.raw.isascii():
        # A model's reply may hold half of a surrogate pair, which no file can.
        return replace(verdict, raw=verdict.raw.encode("utf-8", "replace").decode())
    return verdict


@dataclass
class _Inputs:
    """The claims as evaluators see them, made one at a time, and a fingerprint of all that a verdict can depend on.

    Rows that stand for a response without claims are left out.
    """

    table: pd.DataFrame
    ids: list[str] = field(init=False)
    known: set[str] = field(init=False)
    #: Row numbers, the claims of one document together: evaluators and servers then read it once.
    order: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.table = self.table[self.table["abstained"].isna()]
        self.ids = self.table["claim_id"].tolist()
        self.known = set(self.ids)
        self._columns = {name: _values(self.table[name]) for name in ("claim", "doc", "topic")}
        first: dict[str | None, int] = {}
        documents_in_order = [first.setdefault(doc, row) for row, doc in enumerate(self._columns["doc"])]
        self.order = sorted(range(len(self.ids)), key=documents_in_order.__getitem__)

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """By claim id; made where a journal needs them."""
        documents: dict[str, str] = {}  # a document is long and shared by many claims: it is hashed once
        found = {}
        for claim_id, claim, doc, topic in zip(self.ids, *self._columns.values(), strict=True):
            if doc is not None and doc not in documents:
                documents[doc] = digest(doc, length=64)
            found[claim_id] = digest(claim, None if doc is None else documents[doc], topic)
        return found

    def claims(self, rows: Iterable[int]) -> Iterator[Claim]:
        columns = self._columns
        for row in rows:
            yield Claim(self.ids[row], columns["claim"][row], columns["doc"][row], columns["topic"][row])


_KEYS = tuple(key.name for key in fields(Verdict))


def _table(ids: list[str], done: Mapping[str, Verdict], named: NamedEvaluator) -> pd.DataFrame:
    missing = Verdict("", status="error", raw="the evaluator gave no verdict")
    verdicts = [done.get(claim_id, missing) for claim_id in ids]
    table = pd.DataFrame(
        {
            "claim_id": ids,
            "evaluator": named.name,
            "score": [verdict.score for verdict in verdicts],
            "prediction": pd.array([_prediction(verdict, named.threshold) for verdict in verdicts], dtype="Int8"),
            "status": [verdict.status for verdict in verdicts],
            "raw": pd.Series([verdict.raw for verdict in verdicts], dtype="object"),
            "chunk_scores": pd.Series(
                [None if v.chunk_scores is None else list(v.chunk_scores) for v in verdicts], dtype="object"
            ),
        }
    )
    return validate_verdicts(table, source=f"verdicts of {named.name}")


def _prediction(verdict: Verdict, threshold: float) -> int | None:
    # A threshold that the user gives goes before a prediction that the evaluator made with its own.
    own = verdict.prediction is not None and threshold == DEFAULT_THRESHOLD
    if own or verdict.score is None or verdict.status != "ok":
        return verdict.prediction
    return int(verdict.score > threshold)


def _canonical(kind: str, options: Mapping[str, Any]) -> str:
    return kind if not options else f"{kind}:{','.join(f'{key}={value}' for key, value in options.items())}"


def _values(column: pd.Series) -> list[Any]:
    return shared_texts(column) if is_encoded(column) else column.astype(object).where(column.notna(), None).tolist()
