"""What is an evaluator? Anything that reads claims and says of each how far its document supports
it.

It is a dataclass whose fields are its options, with a method ``judge(claims)``, or a plain function
of a claim and its document. `evaluator` gives either a name in the listing.
"""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Protocol, SupportsFloat, TypeVar, runtime_checkable

from pydantic import BeforeValidator, Field

from factaudit.errors import UsageError
from factaudit.signature import hash_texts, make_signature
from factaudit.tables import STATUSES

#: Of what our implementation could not be compared with.
WEIGHTS_NOT_RUN = "The published weights could not be run here"

_Item = TypeVar("_Item", bound=Callable[..., Any])


def _refuse_text(value: object) -> object:
    if isinstance(value, str):
        raise ValueError("text is no number")
    return value


_Number = Annotated[float, BeforeValidator(_refuse_text)]
_WholeNumber = Annotated[int, BeforeValidator(_refuse_text)]


@dataclass(frozen=True, slots=True)
class Claim:
    """What an evaluator sees of a row of the claims table; never the label."""

    claim_id: str
    claim: str
    doc: str | None
    topic: str | None = None
    doc_id: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an evaluator said of one claim.

    ``score`` is support for the claim in [0, 1]; ``prediction`` may be left None: it is then
    ``score > threshold`` (0.5 unless the user says otherwise). Without either, ``status`` says why:
    unparsed, refused, error or skipped.
    """

    claim_id: str
    score: Annotated[_Number, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    prediction: Annotated[_WholeNumber, Field(ge=0, le=1)] | None = None
    status: Annotated[str, Field(pattern=f"^({'|'.join(STATUSES)})$")] = "ok"
    raw: str | None = None
    chunk_scores: Sequence[float | None] | None = None


@runtime_checkable
class Evaluator(Protocol):
    """The protocol. An evaluator is a dataclass whose fields are its options, each with a type and
    a default.

    Making one is cheap and checks its options; models are loaded and servers asked only in `judge`.
    """

    @property
    def signature(self) -> str:
        """Every setting that can change a verdict, on one line
        (`factaudit.signature.make_signature`)."""
        ...

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """Yield one verdict per claim, in any order, as they come; read ``claims`` lazily.

        What goes wrong with one claim is that claim's status, not an exception. An exception means
        that the evaluator itself cannot work (no key, no model); what was yielded before it is
        kept.
        """
        ...


#: What may judge: a spec (``rouge2``, ``{"llm": {"model": "m"}}``), an evaluator, or a function of
#: claim and document.
EvaluatorSource = str | Mapping[str, object] | Evaluator | Callable[..., object]


@dataclass(frozen=True)
class EvaluatorEntry:
    """One entry of ``factaudit list evaluators``.

    target: its module and name. summary: its docstring's first line.
    ``checked``: what our implementation was compared with, and what could not be.
    """

    name: str
    target: str
    summary: str
    needs: str = "nothing"
    source: str = ""
    checked: str = ""
    example: str = ""


def evaluator(
    name: str, *, method: Mapping[str, Any] | None = None, **more: str
) -> Callable[[_Item], _Item]:
    """Name a class or function in the listing; ``more``: the fields of `EvaluatorEntry`.

    A dataclass without a signature gets one: the name, its fields, and ``method``, which says how
    it is computed and changes with that.
    """

    def sign(self: Any) -> str:
        options = {one.name: getattr(self, one.name) for one in fields(self)}
        return make_signature(name, {**options, **(method or {})})

    def register(item: _Item) -> _Item:
        summary = (inspect.getdoc(item) or "").split("\n")[0].removesuffix(".")
        item.entry = EvaluatorEntry(name, f"{item.__module__}:{item.__qualname__}", summary, **more)  # type: ignore
        if isinstance(item, type) and not hasattr(item, "signature"):
            item.signature = property(sign)  # type: ignore[attr-defined]
        return item

    return register


@dataclass(frozen=True)
class FromFunction:
    """``function(claim, doc)`` as an evaluator: it returns a score in [0, 1], True or False, None,
    or a `Verdict`.

    None is an unscored claim. What the function raises stops the run, as that of any evaluator;
    what was judged is kept. ``version`` stands in the signature, as does the function's source
    where Python can read it: after a change the claims are judged again.

    Examples:
        >>> ask = FromFunction(lambda claim, doc: claim in doc)
        >>> claim = Claim("1", "It rains.", "It rains. It pours.")
        >>> [verdict.score for verdict in ask.judge([claim])]
        [1.0]
    """

    function: Callable[[str, str | None], Any]
    version: str = ""

    @property
    def verdict_name(self) -> str:
        """The function's name."""
        entry = getattr(self.function, "entry", None)
        own = getattr(self.function, "__name__", type(self.function).__name__).strip("<>")
        return own if entry is None else entry.name

    @property
    def signature(self) -> str:
        """The function's name, source and version."""
        try:
            source = inspect.getsource(self.function)
        except (OSError, TypeError):
            source = ""
        own = f"{getattr(self.function, '__module__', '')}.{self.verdict_name}"
        return make_signature(
            "function", {"name": own, "source": hash_texts(source), "version": self.version}
        )

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """One verdict per claim, in order."""
        for claim in claims:
            said = self.function(claim.claim, claim.doc)
            if said is None:
                yield Verdict(claim.claim_id, status="skipped", raw="the function returned None")
            elif isinstance(said, Verdict):
                yield said
            elif isinstance(said, SupportsFloat):  # booleans too, and those of NumPy
                yield Verdict(claim.claim_id, score=float(said))
            else:
                raise UsageError(
                    f"evaluator {self.verdict_name!r}, claim {claim.claim_id!r}: expected a score"
                    " from 0 to 1, True, False, None or a Verdict, found"
                    f" {reprlib.repr(said)}"
                )


# Parts of claims: sentences, or claims beside chunks of their documents ----------------------

#: By claim id: how many parts a claim has whose verdicts have not all come.
PartCounts = dict[str, int]


def name_part(claim: Claim, position: int, text: str, doc: str | None) -> Claim:
    """A part of a claim as a claim of its own, whose id says which part of which claim it is."""
    return Claim(f"{claim.claim_id}#{position}", text, doc, claim.topic, claim.doc_id)


def combine_claim_part_verdicts(
    verdicts: Iterable[Verdict],
    part_counts: PartCounts,
    combine: Callable[[str, Sequence[Verdict]], Verdict],
) -> Iterator[Verdict]:
    """One verdict per claim, as soon as all its parts have theirs; ``combine`` is given them in the
    parts' order."""
    judged: dict[str, dict[int, Verdict]] = {}
    for verdict in verdicts:
        claim_id, _, position = verdict.claim_id.rpartition("#")
        parts = judged.setdefault(claim_id, {})
        parts[int(position)] = verdict
        if len(parts) == part_counts[claim_id]:
            del judged[claim_id], part_counts[claim_id]
            yield combine(claim_id, [parts[position] for position in sorted(parts)])
