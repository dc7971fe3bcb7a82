"""What is an evaluator? Anything that reads claims and says of each how far its document supports
it.

It is a dataclass whose fields are its options, with a method ``judge(claims)``, or a plain function
of a claim and its document. `evaluator` gives either a name in the listing.
"""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Protocol, SupportsFloat, TypeVar, runtime_checkable

from pydantic import BeforeValidator, Field

from factaudit.errors import UsageError
from factaudit.signature import hash_texts, make_signature
from factaudit.tables import STATUSES

#: What ``checked`` says of a model whose published weights were never loaded by our tests.
WEIGHTS_NOT_RUN = "The published weights could not be run here"

_Item = TypeVar("_Item", bound=Callable[..., Any])


def _refuse_text(value: object) -> object:
    if isinstance(value, str):
        raise ValueError("text is no number")
    return value


def _replace_half_characters(value: object) -> object:
    # A model's reply may hold half of a surrogate pair, which no file can.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _list_numbers(value: object) -> object:
    return list(value) if isinstance(value, Iterable) else value  # a tuple, or an array


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

    #: What an evaluator gives is checked by these types, though it is a `Verdict` already.
    __pydantic_config__: ClassVar[dict[str, Any]] = {"revalidate_instances": "always"}

    claim_id: str
    score: Annotated[_Number, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    prediction: Annotated[_WholeNumber, Field(ge=0, le=1)] | None = None
    status: Annotated[str, Field(pattern=f"^({'|'.join(STATUSES)})$")] = "ok"
    raw: Annotated[str | None, BeforeValidator(_replace_half_characters)] = None
    chunk_scores: Annotated[Sequence[float | None] | None, BeforeValidator(_list_numbers)] = None


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

    summary: its docstring's first line. checked: what our implementation was compared with, and
    what could not be.
    """

    name: str
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
        item.entry = EvaluatorEntry(name, summary, **more)  # type: ignore[attr-defined]
        if isinstance(item, type) and not hasattr(item, "signature"):
            item.signature = property(sign)  # type: ignore[attr-defined]
        return item

    return register


@dataclass(frozen=True)
class FromFunction:
    """``function(claim, doc)`` as an evaluator: it returns a score in [0, 1], True or False, None,
    or a `Verdict`.

    None is an unscored claim. What the function raises stops the run, as that of any evaluator;
    what was judged is kept. The function's source stands in the signature where Python can read it:
    after a change the claims are judged again.

    Examples:
        >>> ask = FromFunction(lambda claim, doc: claim in doc)
        >>> claim = Claim("1", "It rains.", "It rains. It pours.")
        >>> [verdict.score for verdict in ask.judge([claim])]
        [1.0]
    """

    function: Callable[[str, str | None], Any]

    @property
    def verdict_name(self) -> str:
        """The function's name."""
        entry = getattr(self.function, "entry", None)
        own = getattr(self.function, "__name__", type(self.function).__name__).strip("<>")
        return own if entry is None else entry.name

    @property
    def signature(self) -> str:
        """The function's name and source."""
        source = ""
        with suppress(OSError, TypeError):
            source = inspect.getsource(self.function)
        own = f"{getattr(self.function, '__module__', '')}.{self.verdict_name}"
        return make_signature("function", {"name": own, "source": hash_texts(source)})

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
                    f" from 0 to 1, True, False, None or a Verdict, found {reprlib.repr(said)}"
                )
