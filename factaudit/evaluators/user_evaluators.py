"""How does a user's class, function, classifier or pipeline become an evaluator?"""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

from factaudit.errors import UsageError, suggest_known_name
from factaudit.evaluators.base import Claim, Evaluator, Verdict
from factaudit.llm.settings import LLMSettings
from factaudit.signature import hash_texts, make_signature

#: Claims that a classifier or pipeline is given at a time.
_CLAIMS_PER_BATCH = 64


@dataclass(frozen=True)
class FromFunction:
    """``function(claim, doc)`` as an evaluator: it returns a score in [0, 1], True or False, None, or a `Verdict`.

    None is an unscored claim. What the function raises stops the run, as that of any evaluator; what was judged is
    kept. ``version`` stands in the signature, as does the function's source where Python can read it: after a change
    the claims are judged again.

    Examples:
        >>> from factaudit.evaluators.base import Claim
        >>> ask = FromFunction(lambda claim, doc: claim in doc)
        >>> [verdict.score for verdict in ask.judge([Claim("1", "It rains.", "It rains. It pours.")])]
        [1.0]
    """

    function: Callable[[str, str | None], Any]
    version: str = ""

    @property
    def verdict_name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__).strip("<>")

    @property
    def signature(self) -> str:
        try:
            source = inspect.getsource(self.function)
        except (OSError, TypeError):
            source = ""
        own = f"{getattr(self.function, '__module__', '')}.{self.verdict_name}"
        return make_signature("function", {"name": own, "source": hash_texts(source), "version": self.version})

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        for claim in claims:
            said = self.function(claim.claim, claim.doc)
            if isinstance(said, Verdict):
                yield said
            elif said is None:
                yield Verdict(claim.claim_id, status="skipped", raw="the function returned None")
            else:
                yield Verdict(claim.claim_id, score=self._parse_score(said, claim))

    def _parse_score(self, value: Any, claim: Claim) -> float:
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            raise UsageError(
                f"evaluator {self.verdict_name!r}, claim {claim.claim_id!r}: expected a score from 0 to 1, True, False,"
                f" None or a Verdict, found {reprlib.repr(value)}"
            ) from None


@dataclass(frozen=True)
class FromClassifier:
    """A classifier with ``predict_proba`` (scikit-learn's protocol), trained on texts: column 1 is "attributable".

    ``text(claim, doc)`` makes the text; by default the document, a line break and the claim. ``version`` tells one
    trained model from another in the signature.
    """

    model: Any
    version: str
    text: Callable[[str, str], str] = "{1}\n{0}".format

    @property
    def verdict_name(self) -> str:
        return type(self.model).__name__

    @property
    def signature(self) -> str:
        return make_signature("classifier", {"class": type(self.model).__qualname__, "version": self.version})

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        yield from _judge_in_user_batches(claims, self._score_claims)

    def _score_claims(self, claims: Sequence[Claim]) -> Iterable[float]:
        texts = [self.text(claim.claim, claim.doc or "") for claim in claims]
        return [float(row[1]) for row in self.model.predict_proba(texts)]


@dataclass(frozen=True)
class FromPipeline:
    """A text-classification pipeline of Hugging Face's: the probability of the label ``attributable``.

    The pipeline is given the document as ``text`` and the claim as ``text_pair``. ``version`` tells one model from
    another in the signature.
    """

    pipeline: Callable[..., Any]
    version: str
    attributable: str = "entailment"

    verdict_name = "pipeline"

    @property
    def signature(self) -> str:
        return make_signature("pipeline", {"version": self.version, "attributable": self.attributable})

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        yield from _judge_in_user_batches(claims, self._score_claims)

    def _score_claims(self, claims: Sequence[Claim]) -> Iterable[float]:
        pairs = [{"text": claim.doc or "", "text_pair": claim.claim} for claim in claims]
        for labels in self.pipeline(pairs, top_k=None):
            by_label = {str(one["label"]): float(one["score"]) for one in labels}
            if self.attributable not in by_label:
                suggestion = suggest_known_name(self.attributable, [*by_label])
                raise UsageError(f"the pipeline has no label {self.attributable!r}{suggestion}")
            yield by_label[self.attributable]


def _judge_in_user_batches(
    claims: Iterable[Claim], score_claims: Callable[[Sequence[Claim]], Iterable[float]]
) -> Iterator[Verdict]:
    claims = iter(claims)
    while batch := list(islice(claims, _CLAIMS_PER_BATCH)):
        grounded = [claim for claim in batch if claim.doc is not None]
        for claim, score in zip(grounded, score_claims(grounded) if grounded else (), strict=True):
            yield Verdict(claim.claim_id, score=min(max(score, 0.0), 1.0))
        for claim in batch:
            if claim.doc is None:
                yield Verdict(claim.claim_id, status="skipped", raw="no document")


def is_user_evaluator(evaluator: Evaluator) -> bool:
    """Whether an evaluator runs code that is not ours."""
    wrappers = (FromFunction, FromClassifier, FromPipeline)
    return isinstance(evaluator, wrappers) or type(evaluator).__module__.partition(".")[0] != "factaudit"


def check_evaluator_class(cls: type, name: str) -> None:
    """Raise `UsageError` where a class that the user names makes no evaluators."""
    if not callable(getattr(cls, "judge", None)):
        raise UsageError(f"evaluator {name}: the class {cls.__name__} has no method judge(claims)")
    if not hasattr(cls, "signature") and "signature" not in getattr(cls, "__dataclass_fields__", {}):
        raise UsageError(f"evaluator {name}: the class {cls.__name__} has no signature")


def wrap_as_user_evaluator(candidate: Any, name: str | None = None) -> Evaluator:
    """Make an evaluator of a function of (claim, doc), or of a language model. Raises `UsageError`.

    name: what the user wrote for it, where it was named.
    """
    called = "" if name is None else f"evaluator {name}: "
    if isinstance(candidate, Evaluator):
        return candidate
    if isinstance(candidate, LLMSettings):
        from factaudit.evaluators.llm_judges import LLMJudge

        return LLMJudge(**{one.name: getattr(candidate, one.name) for one in fields(candidate)})
    if callable(candidate) and not isinstance(candidate, type):
        _check_user_function_arguments(candidate, called)
        return FromFunction(candidate)
    raise UsageError(
        f"{called}expected an evaluator (with a signature and a method judge) or a function of (claim, doc),"
        f" found {reprlib.repr(candidate)}"
    )


def _check_user_function_arguments(function: Callable[..., Any], called: str) -> None:
    try:
        parameters = inspect.signature(function)
    except (TypeError, ValueError):  # some of C have none
        return
    try:
        parameters.bind("claim", "doc")
    except TypeError:
        name = getattr(function, "__name__", type(function).__name__)
        raise UsageError(f"{called}expected a function of (claim, doc), found {name}{parameters}") from None
