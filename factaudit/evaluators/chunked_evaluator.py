"""What does an evaluator say if it reads one chunk at a time? Its score is the maximum over chunks, as in MiniCheck."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Annotated, Any, Literal

from factaudit.errors import FactauditError, UsageError, format_error_first_line
from factaudit.evaluators.base import (
    Claim,
    Evaluator,
    PartCounts,
    Verdict,
    combine_claim_part_verdicts,
    evaluator,
    name_part,
)
from factaudit.evaluators.judging import NamedEvaluator, make_named_evaluator
from factaudit.evaluators.transformers_models import import_transformers
from factaudit.settings.yaml_paths import NameOrPath, YamlPathKind
from factaudit.signature import make_signature
from factaudit.tables import DEFAULT_THRESHOLD
from factaudit.text.chunks import count_words, split_document_into_chunks
from factaudit.text.scripts import OTHER_SCRIPT_REASON

#: So many claims of one document are held at once, to ask about its first chunk, then its second: a server's prefix
#: cache then reads each chunk once.
_CLAIMS_PER_BLOCK = 256


@evaluator(
    "chunked",
    needs="what the inner evaluator needs",
    source="Tang et al. 2024, §3; VC §4.2",
    example="chunked:size=500,evaluator=rouge2",
)
@dataclass
class ChunkedEvaluator:
    """Any evaluator over chunks of the document: the maximum over chunks.

    evaluator: the inner evaluator, as a spec; on the command line it comes last and takes the rest of the text.
    size: words or tokens in a chunk. unit: ``words``, or ``tokens`` of ``tokenizer`` (a local folder or a hub name).

    A claim of which one chunk could not be scored is unscored, with that chunk's status: the maximum over the others
    is no maximum over all. Verdicts keep ``chunk_scores``, in the order of the document.
    """

    evaluator: Annotated[str | dict[str, dict[str, Any] | None], YamlPathKind.EVALUATORS]
    size: int = 500
    unit: Literal["words", "tokens"] = "words"
    tokenizer: NameOrPath | None = None

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(f"chunked: expected a size of at least 1, found {self.size}")
        if (self.unit == "tokens") != (self.tokenizer is not None):
            raise UsageError("chunked: unit=tokens and tokenizer=FOLDER-OR-NAME go together")
        self._inner: NamedEvaluator = make_named_evaluator(self.evaluator)
        if self._inner.threshold != DEFAULT_THRESHOLD:
            raise UsageError(
                "chunked: give the threshold to chunked, not to the evaluator inside; it applies to the best chunk"
            )

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
        return make_signature("chunked", settings | ({"tokenizer": self.tokenizer} if self.tokenizer else {}))

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """One verdict per claim; claims of one document are best given one after the other."""
        part_counts: PartCounts = {}
        verdicts = self._inner.evaluator.judge(self.pieces(claims, part_counts))
        yield from combine_claim_part_verdicts(verdicts, part_counts, _choose_best_chunk_verdict)

    def pieces(self, claims: Iterable[Claim], part_counts: PartCounts | None = None) -> Iterator[Claim]:
        """What the inner evaluator is given: each claim with each chunk; ``part_counts`` gets how many there are."""
        count = self._make_length_counter()
        for doc, group in groupby(claims, key=lambda claim: claim.doc):
            # A claim without a document goes to the inner evaluator as it is: what that means is its to say.
            chunks = [doc] if doc is None else [*split_document_into_chunks(doc, self.size, count)] or [doc]
            while block := list(islice(group, _CLAIMS_PER_BLOCK)):
                if part_counts is not None:
                    part_counts |= {claim.claim_id: len(chunks) for claim in block}
                for position, part in enumerate(chunks):
                    for claim in block:
                        yield name_part(claim, position, claim.claim, part)

    def _make_length_counter(self) -> Callable[[str], int]:
        if self.tokenizer is None:
            return count_words
        transformers = import_transformers("chunked: tokens need")
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(self.tokenizer)
        except (OSError, ValueError) as error:
            reason = format_error_first_line(error)
            raise FactauditError(f"chunked: no tokenizer could be loaded from {self.tokenizer!r}: {reason}") from error
        return lambda text: len(tokenizer.encode(text, add_special_tokens=False))


def _choose_best_chunk_verdict(claim_id: str, verdicts: Sequence[Verdict]) -> Verdict:
    # An evaluator that gives labels alone is scored by them.
    scores = [v.score if v.score is not None or v.prediction is None else float(v.prediction) for v in verdicts]
    # What a document quotes in another script than the claim's is no chunk to look in, unless nothing else is there.
    foreign = [v.raw == OTHER_SCRIPT_REASON and v.score is None for v in verdicts]
    foreign = [each and not all(foreign) for each in foreign]
    failed = next(
        (v for v, score, out in zip(verdicts, scores, foreign, strict=True) if score is None and not out), None
    )
    if failed is not None:
        status = failed.status if failed.status != "ok" else "error"
        return Verdict(claim_id, status=status, raw=failed.raw, chunk_scores=scores)
    best = max((at for at, out in enumerate(foreign) if not out), key=lambda position: scores[position] or 0.0)
    chosen = verdicts[best]
    unparsed = next((v.status for v, out in zip(verdicts, foreign, strict=True) if v.status != "ok" and not out), "ok")
    return Verdict(claim_id, scores[best], chosen.prediction, unparsed, chosen.raw, scores)
