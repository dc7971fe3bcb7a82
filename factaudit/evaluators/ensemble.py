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
                {v.claim_id: v for v in named.evaluator.judge(block)} for named in self._members
            ]
            for claim in block:
                yield self._combine_verdicts(
                    claim.claim_id, [verdicts.get(claim.claim_id) for verdicts in by_member]
                )

    def _combine_verdicts(self, claim_id: str, verdicts: list[Verdict | None]) -> Verdict:
        values = []
        for named, verdict in zip(self._members, verdicts, strict=True):
            value = None if verdict is None else self._verdict_value(verdict, named.threshold)
            if value is None:
                status = "error" if verdict is None or verdict.status == "ok" else verdict.status
                return Verdict(
                    claim_id,
                    status=status,
                    raw=f"{named.name}: {verdict.raw if verdict else 'no verdict'}",
                )
            values.append(value)
        return Verdict(claim_id, sum(values) / len(values))

    def _verdict_value(self, verdict: Verdict, threshold: float) -> float | None:
        if self.how == "mean" and verdict.score is not None:
            return verdict.score
        if verdict.prediction is not None:
            return float(verdict.prediction)
        return None if verdict.score is None else float(verdict.score > threshold)
