"""A rule of `factaudit triage` as an evaluator: which claims pass, and another evaluator for those that do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, ClassVar

import numpy as np

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.errors import UsageError
from factaudit.evaluators.base import Claim, Evaluator, Verdict
from factaudit.evaluators.error_odds import RuleEvaluator, collect_member_support
from factaudit.evaluators.judging import make_named_evaluator
from factaudit.evaluators.triage_rule import read_triage_rule
from factaudit.yaml_paths import YamlPathKind

#: So many claims are held at once.
_CLAIMS_PER_BLOCK = 2048


@dataclass
class TriageEvaluator(RuleEvaluator):
    """Predicts 1 where a claim passes by the rule, 0 where it is to be reviewed; score = 1 / (1 + exp(risk)).

    rule: the rule.json that `factaudit triage` wrote. then: an evaluator that is asked of the claims that do not pass,
    and no other; its verdicts are theirs. A claim that one of the rule's leaves unscored is unscored, or ``then``'s.
    """

    then: Annotated[str | dict[str, dict[str, Any] | None] | None, YamlPathKind.EVALUATORS] = None
    _kind: ClassVar[str] = "triage"

    def __post_init__(self) -> None:
        self._rule = read_triage_rule(self.rule)
        if self._rule.column is not None:
            raise UsageError(
                f"{self.rule} has a threshold for each {self._rule.column}, which evaluators do not see: apply it with "
                "`read_triage_rule(...).select_passing_claims(verdicts, claims)`"
            )
        self._make_members(list(self._rule.weights))
        self._next = None if self.then is None else make_named_evaluator(self.then)

    @property
    def members(self) -> list[Evaluator]:
        return [*super().members, *([self._next.evaluator] if self._next else [])]

    @property
    def verdict_name(self) -> str:
        """``triage(a+b)``, ``triage(a+b, then c)``."""
        then = "" if self._next is None else f", then {self._next.name}"
        return f"triage({'+'.join(one.name for one in self._members)}{then})"

    @property
    def _signed_settings(self) -> dict[str, Any]:
        return super()._signed_settings | {"then": None if self._next is None else self._next.signature}

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """One verdict per claim, in blocks."""
        source = iter(claims)
        while block := list(islice(source, _CLAIMS_PER_BLOCK)):
            yield from self._judge_block(block)

    def _judge_block(self, block: list[Claim]) -> Iterator[Verdict]:
        support = collect_member_support(self._members, block)
        risk = self._rule.compute_risk(support)
        limit = self._rule.thresholds.get(ALL_TOGETHER)
        passes = np.zeros(len(block), dtype=bool) if limit is None else np.nan_to_num(risk, nan=np.inf) <= limit
        asked_next = [claim for claim, is_passing in zip(block, passes, strict=True) if not is_passing]
        if self._next is not None:
            for verdict in self._next.evaluator.judge(asked_next):
                if verdict.prediction is None and verdict.score is not None:
                    verdict = Verdict(
                        verdict.claim_id, verdict.score, int(verdict.score > self._next.threshold), raw=verdict.raw
                    )
                yield verdict
        for claim, one_risk, is_passing in zip(block, risk.tolist(), passes.tolist(), strict=True):
            if is_passing or self._next is None:
                if np.isnan(one_risk):
                    yield Verdict(claim.claim_id, status="skipped", raw="an evaluator of the rule left it unscored")
                else:
                    score = 1 - one_risk if len(self._members) == 1 else 1 / (1 + np.exp(one_risk))
                    yield Verdict(claim.claim_id, float(score), int(is_passing), raw="pass" if is_passing else "review")
