"""What do several evaluators say together? The mean of their scores, or their vote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, Literal

from factaudit.errors import UsageError
from factaudit.evaluators.base import Claim, Evaluator, Verdict, evaluator
from factaudit.evaluators.judging import NamedEvaluator, make_named_evaluator
from factaudit.settings.yaml_paths import YamlPathKind
from factaudit.signature import make_signature

#: So many claims are held at once; each member judges them before the next block is read.
_CLAIMS_PER_BLOCK = 2048


@evaluator(
    "ensemble",
    needs="what its members need",
    example="ensemble:how=vote,evaluators=rouge2+unigram+tfidf",
)
@dataclass
class EnsembleEvaluator:
    """Several evaluators as one: the mean of their scores, or their vote.

    With ``how=vote`` the score is the share of members that predict 1. evaluators: specs; on the
    command line names joined by ``+`` (``ensemble:evaluators=rouge2+tfidf``).
    A claim that one member leaves unscored is unscored, with that member's status.
    """

    evaluators: Annotated[
        str | list[str | dict[str, dict[str, Any] | None]], YamlPathKind.EVALUATORS
    ]
    how: Literal["mean", "vote"] = "mean"

    def __post_init__(self) -> None:
        specs = self.evaluators.split("+") if isinstance(self.evaluators, str) else self.evaluators
        self._members: list[NamedEvaluator] = [make_named_evaluator(spec) for spec in specs]
        if len(self._members) < 2:
            raise UsageError("ensemble: expected at least two evaluators (evaluators=rouge2+tfidf)")

    @property
    def members(self) -> list[Evaluator]:
        """The evaluators inside, for the runner's budget and bookkeeping."""
        return [named.evaluator for named in self._members]

    @property
    def verdict_name(self) -> str:
        """``mean(a+b)`` or ``vote(a+b)``."""
        return f"{self.how}({'+'.join(named.name for named in self._members)})"

    @property
    def signature(self) -> str:
        """The members' signatures are among the settings."""
        return make_signature(
            "ensemble",
            {"how": self.how, "evaluators": [named.signature for named in self._members]},
        )

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """One verdict per claim, in blocks."""
        source = iter(claims)
        while block := list(islice(source, _CLAIMS_PER_BLOCK)):
            by_member = [
                {verdict.claim_id: verdict for verdict in member.judge(block)}
                for member in self.members
            ]
            for claim in block:
                yield self._combine_verdicts(
                    claim.claim_id, [verdicts.get(claim.claim_id) for verdicts in by_member]
                )

    def _combine_verdicts(self, claim_id: str, verdicts: list[Verdict | None]) -> Verdict:
        total = 0.0
        for named, verdict in zip(self._members, verdicts, strict=True):
            if verdict is None or (verdict.score is None and verdict.prediction is None):
                found = verdict or Verdict(claim_id, raw="no verdict")
                status = "error" if found.status == "ok" else found.status
                return Verdict(claim_id, status=status, raw=f"{named.name}: {found.raw}")
            score, prediction = verdict.score, verdict.prediction
            if score is None or (self.how == "vote" and prediction is not None):
                total += prediction or 0
            else:
                total += score if self.how == "mean" else score > named.threshold
        return Verdict(claim_id, total / len(verdicts))
