"""Evaluators of the user's own without a package: a class, a function, a classifier or a pipeline."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any

from factaudit.errors import UsageError, hint
from factaudit.evaluators.base import Claim, Evaluator, Verdict
from factaudit.signature import digest, signature

#: Claims that a classifier or pipeline is given at a time.
_BATCH = 64


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
        return signature("function", {"name": own, "source": digest(source), "version": self.version})

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        for claim in claims:
            said = self.function(claim.claim, claim.doc)
            if isinstance(said, Verdict):
                yield said
            elif said is None:
                yield Verdict(claim.claim_id, status="skipped", raw="the function returned None")
            else:
                yield Verdict(claim.claim_id, score=float(said))


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
        return signature("classifier", {"class": type(self.model).__qualname__, "version": self.version})

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        yield from _in_batches(claims, self._scores)

    def _scores(self, claims: Sequence[Claim]) -> Iterable[float]:
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
        return signature("pipeline", {"version": self.version, "attributable": self.attributable})

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        yield from _in_batches(claims, self._scores)

    def _scores(self, claims: Sequence[Claim]) -> Iterable[float]:
        pairs = [{"text": claim.doc or "", "text_pair": claim.claim} for claim in claims]
        for labels in self.pipeline(pairs, top_k=None):
            by_label = {str(one["label"]): float(one["score"]) for one in labels}
            if self.attributable not in by_label:
                raise UsageError(
                    f"the pipeline has no label {self.attributable!r}{hint(self.attributable, [*by_label])}"
                )
            yield by_label[self.attributable]


def _in_batches(claims: Iterable[Claim], scores: Callable[[Sequence[Claim]], Iterable[float]]) -> Iterator[Verdict]:
    claims = iter(claims)
    while batch := list(islice(claims, _BATCH)):
        grounded = [claim for claim in batch if claim.doc is not None]
        for claim, score in zip(grounded, scores(grounded) if grounded else (), strict=True):
            yield Verdict(claim.claim_id, score=min(max(score, 0.0), 1.0))
        for claim in batch:
            if claim.doc is None:
                yield Verdict(claim.claim_id, status="skipped", raw="no document")


def as_evaluator(given: Any) -> Evaluator:
    """An evaluator, or a function of (claim, doc) as one. Raises `UsageError`."""
    if isinstance(given, Evaluator):
        return given
    if callable(given) and not isinstance(given, type):
        return FromFunction(given)
    raise UsageError(
        f"expected an evaluator (with a signature and a method judge) or a function of (claim, doc), found {given!r}"
    )


def load(module: str, attribute: str) -> Any:
    """What ``MODULE:ATTRIBUTE`` names; modules are also looked for in the folder one stands in. Raises `UsageError`."""
    if (here := os.getcwd()) not in sys.path:  # a console script does not have it there, as `python` has
        sys.path.insert(0, here)
    try:
        found = import_module(module)
    except ImportError as error:
        raise UsageError(f"evaluator {module}:{attribute}: cannot import {module!r} ({error})") from error
    if not hasattr(found, attribute):
        names = [name for name in vars(found) if not name.startswith("_")]
        raise UsageError(f"evaluator {module}:{attribute}: {module!r} has no {attribute!r}{hint(attribute, names)}")
    return getattr(found, attribute)
