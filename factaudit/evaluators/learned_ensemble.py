"""An ensemble that was learned from labels, as a file and as an evaluator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from factaudit.evaluators.base import Claim, Verdict
from factaudit.evaluators.error_odds import (
    ErrorOdds,
    RuleEvaluator,
    collect_member_support,
    make_rule_file_error,
    read_evaluator_rule_json,
)
from factaudit.files import write_json
from factaudit.stats.bacc_threshold import find_best_bacc_threshold

LEARNED_ENSEMBLE_SCHEMA = "factaudit.learned_ensemble/1"
#: So many claims are held at once.
_CLAIMS_PER_BLOCK = 2048


@dataclass(frozen=True)
class LearnedEnsembleRule:
    """Score = 1 − the probability of an error; prediction 1 above the threshold of best balanced accuracy.

    measured: its honest figures, from claims that were left out, and whether it is better than its best member.
    """

    odds: ErrorOdds
    threshold: float
    measured: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def fit(cls, evaluators: Sequence[str], score: np.ndarray, label: np.ndarray) -> LearnedEnsembleRule:
        """score: float64 (E, n), support; label: int (n,), both 1 and 0 among them."""
        odds = ErrorOdds.fit(evaluators, score, 1.0 - label)
        threshold = find_best_bacc_threshold(label, 1 - odds.compute_error_probabilities(score))
        return cls(odds, 0.5 if threshold is None else threshold)

    def with_measured_figures(self, measured: Mapping[str, Any]) -> LearnedEnsembleRule:
        return replace(self, measured=dict(measured))

    def write(self, path: str | Path) -> None:
        """Write JSON."""
        data = {"odds": self.odds.to_json(), "threshold": self.threshold, "measured": self.measured}
        write_json(path, {"schema": LEARNED_ENSEMBLE_SCHEMA, **data})


def read_learned_ensemble(path: str | Path) -> LearnedEnsembleRule:
    """Read what `factaudit estimate --combine` wrote. Raises `InputError` where the file is something else."""
    data = read_evaluator_rule_json(path, LEARNED_ENSEMBLE_SCHEMA, "estimate --combine")
    try:
        rule = LearnedEnsembleRule(**data | {"odds": ErrorOdds.from_json(data["odds"])})
        if not np.isfinite(rule.threshold):
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError):
        raise make_rule_file_error(path, "estimate --combine") from None
    return rule


@dataclass
class LearnedEnsembleEvaluator(RuleEvaluator):
    """Score = 1 − the probability of an error by the weights in a file; prediction by the file's threshold.

    rule: the file that `factaudit estimate --combine` wrote. A claim that a member leaves unscored is unscored.
    """

    _kind: ClassVar[str] = "learned"

    def __post_init__(self) -> None:
        self._rule = read_learned_ensemble(self.rule)
        self._make_members(list(self._rule.odds.slopes))

    @property
    def verdict_name(self) -> str:
        """``learned(a+b)``."""
        return f"learned({'+'.join(self._rule.odds.slopes)})"

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """One verdict per claim, in blocks."""
        source = iter(claims)
        while block := list(islice(source, _CLAIMS_PER_BLOCK)):
            score = collect_member_support(self._members, block)
            support = 1 - self._rule.odds.compute_error_probabilities(score)
            for claim, one, is_lacking in zip(block, support.tolist(), np.isnan(score).any(axis=0), strict=True):
                if is_lacking:
                    yield Verdict(claim.claim_id, status="skipped", raw="a member of the ensemble left it unscored")
                else:
                    yield Verdict(claim.claim_id, one, int(one > self._rule.threshold))
