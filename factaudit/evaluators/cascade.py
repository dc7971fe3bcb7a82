"""A cascade of `factaudit triage --then` as an evaluator: the second judge is asked only where the first are unsure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np

from factaudit.evaluators.base import Claim, Verdict
from factaudit.evaluators.cascade_rule import read_cascade_rule
from factaudit.evaluators.error_odds import RuleEvaluator, collect_member_support, read_verdict_support

#: So many claims are held at once.
_CLAIMS_PER_BLOCK = 256


@dataclass
class CascadeEvaluator(RuleEvaluator):
    """Predicts 1 where a claim passes without a person, 0 where people review it; score = 1 − risk.

    rule: the rule.json that `factaudit triage --then` wrote; evaluators: of its judges, the second among them. Of a
    claim that passes at the first judges the second is not asked; one that the second leaves unscored is unscored, with
    its status.
    """

    _kind: ClassVar[str] = "cascade"

    def __post_init__(self) -> None:
        self._rule = read_cascade_rule(self.rule)
        self._make_members([*self._rule.first, self._rule.then])

    @property
    def verdict_name(self) -> str:
        """``cascade(a, then b)``."""
        return f"cascade({'+'.join(self._rule.first)}, then {self._rule.then})"

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """One verdict per claim: those that pass first, then the others as the second judge answers."""
        source = iter(claims)
        while block := list(islice(source, _CLAIMS_PER_BLOCK)):
            score = collect_member_support(self._members[:-1], block)
            risk = self._rule.compute_first_risk(score)
            passes = self._rule.passes(risk)
            for at in np.flatnonzero(passes):
                yield Verdict(block[at].claim_id, 1 - float(risk[at]), 1, raw=f"pass by {'+'.join(self._rule.first)}")
            place = {block[at].claim_id: at for at in np.flatnonzero(~passes)}
            for verdict in self._members[-1].evaluator.judge([block[at] for at in place.values()]):
                yield self._decide_by_second_judge(verdict, score[:, [place[verdict.claim_id]]])

    def _decide_by_second_judge(self, verdict: Verdict, score: np.ndarray) -> Verdict:
        second = self._rule.compute_second_risk(score, np.array([read_verdict_support(verdict)]))
        if np.isnan(second[0]):
            return Verdict(verdict.claim_id, status=verdict.status, raw=verdict.raw)
        decision = f"pass by {self._rule.then}" if self._rule.passes(second)[0] else "review"
        return Verdict(verdict.claim_id, 1 - float(second[0]), int(decision != "review"), raw=decision)
