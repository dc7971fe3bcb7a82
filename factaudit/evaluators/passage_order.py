"""An evaluator asked again with the passages of its documents in another order: what should change nothing."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from factaudit.evaluators.base import Claim, Evaluator, Verdict
from factaudit.signature import make_signature

#: What parts the passages of a document; several references of a claim are joined so (`factaudit.tables`).
_PASSAGE_BREAK_PATTERN = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class ReorderedPassagesEvaluator:
    """``evaluator`` on documents whose passages, parted by blank lines, stand in another order.

    ``order`` 1 turns them round, 2 and more shuffle them, each document in its own way that follows from its text. A
    claim whose document has one passage is skipped: there is nothing to swap.
    """

    evaluator: Evaluator
    order: int

    @property
    def signature(self) -> str:
        return make_signature("reordered", {"evaluator": self.evaluator.signature, "order": self.order})

    @property
    def members(self) -> tuple[Evaluator, ...]:
        """The evaluator inside, for the runner's budget and bookkeeping."""
        return (self.evaluator,)

    def pieces(self, claims: Iterable[Claim]) -> Iterator[Claim]:
        """What the evaluator inside is given."""
        return (found for claim in claims if (found := self._reorder_passages(claim)) is not None)

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        alone: list[str] = []

        def turned() -> Iterator[Claim]:
            for claim in claims:
                found = self._reorder_passages(claim)
                if found is not None:
                    yield found
                else:
                    alone.append(claim.claim_id)

        yield from self.evaluator.judge(turned())
        for claim_id in alone:
            yield Verdict(claim_id, status="skipped", raw="the document has one passage: there is nothing to swap")

    def _reorder_passages(self, claim: Claim) -> Claim | None:
        passages = [part for part in _PASSAGE_BREAK_PATTERN.split(claim.doc or "") if part.strip()]
        if len(set(passages)) < 2:
            return None
        other = passages[::-1]
        if self.order > 1:
            random.Random(f"{self.order}|{claim.doc}").shuffle(other)
            if other == passages:
                other = passages[1:] + passages[:1]
        return replace(claim, doc="\n\n".join(other))
