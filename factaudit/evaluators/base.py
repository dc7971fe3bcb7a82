"""What is an evaluator? Anything that reads claims and says of each how far its document supports it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Claim:
    """What an evaluator sees of a row of the claims table; never the label."""

    claim_id: str
    claim: str
    doc: str | None
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an evaluator said of one claim.

    ``score`` is support for the claim in [0, 1]; ``prediction`` may be left None: it is then ``score > threshold`` (0.5
    unless the user says otherwise). Without either, ``status`` says why: unparsed, refused, error or skipped.
    """

    claim_id: str
    score: float | None = None
    prediction: int | None = None
    status: str = "ok"
    raw: str | None = None
    chunk_scores: Sequence[float | None] | None = None


@runtime_checkable
class Evaluator(Protocol):
    """The protocol. An evaluator is a dataclass whose fields are its options, each with a type and a default.

    Making one is cheap and checks its options; models are loaded and servers asked only in `judge`.
    """

    @property
    def signature(self) -> str:
        """Every setting that can change a verdict, on one line (`factaudit.signature.make_signature`)."""
        ...

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """Yield one verdict per claim, in any order, as they come; read ``claims`` lazily.

        What goes wrong with one claim is that claim's status, not an exception. An exception means that the evaluator
        itself cannot work (no key, no model); what was yielded before it is kept.
        """
        ...


#: What may judge: a spec (``rouge2``, ``{"llm": {"model": "m"}}``), an evaluator, or a function of claim and document.
EvaluatorSource = str | Mapping[str, object] | Evaluator | Callable[..., object]
