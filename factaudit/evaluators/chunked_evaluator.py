"""What does an evaluator say if it reads one chunk at a time? Its score is the maximum over chunks,
as in MiniCheck."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Annotated, Any

from pydantic import PositiveInt

from factaudit.errors import UsageError
from factaudit.evaluators.base import Claim, Evaluator, Verdict, evaluator
from factaudit.evaluators.judging import NamedEvaluator, make_named_evaluator
from factaudit.settings.yaml_paths import YamlPathKind
from factaudit.signature import make_signature
from factaudit.tables import DEFAULT_THRESHOLD
from factaudit.text.chunks import split_document_into_chunks
from factaudit.text.scripts import OTHER_SCRIPT_REASON

#: So many claims of one document are held at once, to ask about its first chunk, then its second: a
#: server's prefix cache then reads each chunk once.
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

    evaluator: the inner evaluator, as a spec; on the command line it comes last and takes the rest
    of the text.
    size: words in a chunk. (Models of transformers cut documents by their own tokens.)

    A claim of which one chunk could not be scored is unscored, with that chunk's status: the
    maximum over the others is no maximum over all. Verdicts keep ``chunk_scores``, in the order of
    the document.
    """

    evaluator: Annotated[str | dict[str, dict[str, Any] | None], YamlPathKind.EVALUATORS]
    size: PositiveInt = 500

    def __post_init__(self) -> None:
        self._inner: NamedEvaluator = make_named_evaluator(self.evaluator)
        if self._inner.threshold != DEFAULT_THRESHOLD:
            raise UsageError(
                "chunked: give the threshold to chunked, not to the evaluator inside; it applies to"
                " the best chunk"
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
        return make_signature(
            "chunked", {"evaluator": self._inner.signature, "size": self.size, "unit": "words"}
        )

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """One verdict per claim, as soon as all its chunks have theirs; claims of one document are
        best given one after the other."""
        n_chunks: dict[str, int] = {}
        judged: dict[str, dict[int, Verdict]] = {}
        for verdict in self._inner.evaluator.judge(self.pieces(claims, n_chunks)):
            claim_id, _, position = verdict.claim_id.rpartition("#")
            by_chunk = judged.setdefault(claim_id, {})
            by_chunk[int(position)] = verdict
            if len(by_chunk) == n_chunks[claim_id]:
                del judged[claim_id], n_chunks[claim_id]
                in_order = [by_chunk[position] for position in sorted(by_chunk)]
                yield _choose_best_chunk_verdict(claim_id, in_order)

    def pieces(
        self, claims: Iterable[Claim], n_chunks: dict[str, int] | None = None
    ) -> Iterator[Claim]:
        """What the inner evaluator is given: each claim with each chunk, as a claim of its own.
        ``n_chunks`` gets how many chunks each claim has."""
        for doc, group in groupby(claims, key=lambda claim: claim.doc):
            # A claim without a document goes to the inner evaluator as it is: what that means is
            # its to say.
            chunks = [doc] if doc is None else split_document_into_chunks(doc, self.size) or [doc]
            while block := list(islice(group, _CLAIMS_PER_BLOCK)):
                if n_chunks is not None:
                    n_chunks |= {claim.claim_id: len(chunks) for claim in block}
                for position, chunk in enumerate(chunks):
                    for claim in block:
                        yield replace(claim, claim_id=f"{claim.claim_id}#{position}", doc=chunk)


def _choose_best_chunk_verdict(claim_id: str, verdicts: Sequence[Verdict]) -> Verdict:
    scores = [_find_support(verdict) for verdict in verdicts]
    # A chunk in another script than the claim's is no chunk to look in, unless there is no other.
    told = [verdict for verdict in verdicts if verdict.raw != OTHER_SCRIPT_REASON] or verdicts
    for verdict in told:
        if _find_support(verdict) is None:
            status = verdict.status if verdict.status != "ok" else "error"
            return Verdict(claim_id, status=status, raw=verdict.raw, chunk_scores=scores)
    best = max(told, key=lambda verdict: _find_support(verdict) or 0.0)
    guessed = next((verdict.status for verdict in told if verdict.status != "ok"), "ok")
    return Verdict(claim_id, _find_support(best), best.prediction, guessed, best.raw, scores)


def _find_support(verdict: Verdict) -> float | None:
    """The score; of an evaluator that gives labels alone, the label."""
    if verdict.score is None and verdict.prediction is not None:
        return float(verdict.prediction)
    return verdict.score
