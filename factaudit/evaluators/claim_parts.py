"""How do the verdicts on parts of a claim (its sentences, or chunks of its document) become one verdict?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from factaudit.evaluators.base import Claim, Verdict

#: By claim id: how many parts a claim has whose verdicts have not all come.
PartCounts = dict[str, int]


def name_part(claim: Claim, position: int, text: str, doc: str | None) -> Claim:
    """A part of a claim as a claim of its own, whose id says which part of which claim it is."""
    return Claim(f"{claim.claim_id}#{position}", text, doc, claim.topic)


def combine_claim_part_verdicts(
    verdicts: Iterable[Verdict], part_counts: PartCounts, combine: Callable[[str, Sequence[Verdict]], Verdict]
) -> Iterator[Verdict]:
    """One verdict per claim, as soon as all its parts have theirs; ``combine`` is given them in the parts' order."""
    judged: dict[str, dict[int, Verdict]] = {}
    for verdict in verdicts:
        claim_id, _, position = verdict.claim_id.rpartition("#")
        parts = judged.setdefault(claim_id, {})
        parts[int(position)] = verdict
        if len(parts) == part_counts[claim_id]:
            del judged[claim_id], part_counts[claim_id]
            yield combine(claim_id, [parts[position] for position in sorted(parts)])
