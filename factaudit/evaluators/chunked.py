"""Any evaluator, over chunks of the document: its score is the maximum over chunks, as in the MiniCheck family."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Annotated, Any, Literal

from factaudit.errors import FactauditError, UsageError
from factaudit.evaluators.base import Claim, Evaluator, Verdict
from factaudit.evaluators.judging import NamedEvaluator, name_evaluator
from factaudit.paths import Kind, NameOrPath
from factaudit.signature import signature
from factaudit.tables import DEFAULT_THRESHOLD
from factaudit.text.chunks import chunk, words

#: So many claims of one document are held at once, to ask about its first chunk, then its second: a server's prefix
#: cache then reads each chunk once.
_BLOCK = 256


@dataclass
class Chunked:
    """Judge each claim against each chunk of its document and keep the best (VC §4.2; Tang et al. 2024, §3).

    evaluator: the inner evaluator, as a spec; on the command line it comes last and takes the rest of the text.
    size: words or tokens in a chunk. unit: ``words``, or ``tokens`` of ``tokenizer`` (a local folder or a hub name).

    A claim of which one chunk could not be scored is unscored, with that chunk's status: the maximum over the others
    is no maximum over all. Verdicts keep ``chunk_scores``, in the order of the document.
    """

    evaluator: Annotated[str | dict[str, dict[str, Any] | None], Kind.EVALUATORS]
    size: int = 500
    unit: Literal["words", "tokens"] = "words"
    tokenizer: NameOrPath | None = None

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(f"chunked: expected a size of at least 1, found {self.size}")
        if (self.unit == "tokens") != (self.tokenizer is not None):
            raise UsageError("chunked: unit=tokens and tokenizer=FOLDER-OR-NAME go together")
        self._inner: NamedEvaluator = name_evaluator(self.evaluator)
        if self._inner.threshold != DEFAULT_THRESHOLD:
            raise UsageError("chunked: the maximum over chunks has the threshold: give it to chunked, not inside")

    @property
    def members(self) -> list[Evaluator]:
        """The evaluators inside, for the runner's budget and bookkeeping."""
        return [self._inner.evaluator]

    @property
    def verdict_name(self) -> str:
        """``chunked-NAME``: how the chunking audit finds the pair."""
        return f"chunked-{self._inner.name}"

    @property
    def signature(self) -> str:
        """The inner evaluator's signature is one of the settings."""
        settings = {"evaluator": self._inner.signature, "size": self.size, "unit": self.unit}
        return signature("chunked", settings | ({"tokenizer": self.tokenizer} if self.tokenizer else {}))

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """One verdict per claim; claims of one document are best given one after the other."""
        waiting: dict[str, _Pending] = {}
        for verdict in self._inner.evaluator.judge(self.pieces(claims, waiting)):
            key, _, position = verdict.claim_id.rpartition("#")
            pending = waiting[key]
            pending.verdicts[int(position)] = verdict
            if len(pending.verdicts) == pending.chunks:
                del waiting[key]
                yield pending.combined(key)

    def pieces(self, claims: Iterable[Claim], waiting: dict[str, _Pending] | None = None) -> Iterator[Claim]:
        """What the inner evaluator is given: each claim with each chunk; ``waiting`` is told how many there are."""
        count = self._counter()
        for doc, group in groupby(claims, key=lambda claim: claim.doc):
            # A claim without a document goes to the inner evaluator as it is: what that means is its to say.
            chunks = [doc] if doc is None else [*chunk(doc, self.size, count)] or [doc]
            while block := list(islice(group, _BLOCK)):
                if waiting is not None:
                    waiting |= {claim.claim_id: _Pending(len(chunks)) for claim in block}
                for position, part in enumerate(chunks):
                    for claim in block:
                        yield Claim(f"{claim.claim_id}#{position}", claim.claim, part, claim.topic)

    def _counter(self) -> Callable[[str], int]:
        if self.tokenizer is None:
            return words
        try:
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(self.tokenizer)
        except ImportError as error:
            raise UsageError(f"chunked: tokens need the [hf] extra: pip install 'factaudit[hf]' ({error})") from error
        except (OSError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            raise FactauditError(f"chunked: no tokenizer could be loaded from {self.tokenizer!r}: {reason}") from error
        return lambda text: len(tokenizer.encode(text, add_special_tokens=False))


@dataclass
class _Pending:
    """The verdicts of one claim's chunks, as they come."""

    chunks: int
    verdicts: dict[int, Verdict] = field(default_factory=dict)

    def combined(self, claim_id: str) -> Verdict:
        ordered = [self.verdicts[position] for position in range(self.chunks)]
        # An evaluator that gives labels alone is scored by them.
        scores = [v.score if v.score is not None or v.prediction is None else float(v.prediction) for v in ordered]
        failed = next((v for v, score in zip(ordered, scores, strict=True) if score is None), None)
        if failed is not None:
            status = failed.status if failed.status != "ok" else "error"
            return Verdict(claim_id, status=status, raw=failed.raw, chunk_scores=scores)
        best = max(range(self.chunks), key=lambda position: scores[position] or 0.0)
        chosen = ordered[best]
        unparsed = next((v.status for v in ordered if v.status != "ok"), "ok")
        return Verdict(claim_id, scores[best], chosen.prediction, unparsed, chosen.raw, scores)
