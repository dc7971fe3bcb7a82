"""A cascade as a file: what a cheap judge passes, what a second one passes of the rest, and what people review.

The order of claims is fixed without any label. The first risk of a claim is the probability that the second judge calls
it an error, by the scores of the first judges (a regression on claims that both judged). The second risk, once the
second judge was asked, is the mean of that and of its own 1 − score. A claim passes at the first risk that is at most
the limit; so the whole cascade has one threshold, and one test certifies all that passes without a person.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from factaudit.evaluators.error_odds import ErrorOdds, make_rule_file_error, read_evaluator_rule_json
from factaudit.files import write_json

CASCADE_RULE_SCHEMA = "factaudit.cascade_rule/1"


@dataclass(frozen=True)
class CascadeRule:
    """Claims of at most the limit's risk pass; None: nothing does.

    odds: of "the second judge calls it an error", by the first judges' scores; then: the second judge's name; promise:
    what was promised of all that passes.
    """

    odds: ErrorOdds
    then: str
    limit: float | None = None
    promise: dict[str, Any] = field(default_factory=dict)

    @property
    def first(self) -> list[str]:
        """The names of the first judges."""
        return list(self.odds.slopes)

    def compute_first_risk(self, score: np.ndarray) -> np.ndarray:
        """float64 (n,) of the first judges' scores (E, n); NaN where one is missing: the second judge is asked."""
        return np.where(np.isnan(score).any(axis=0), np.nan, self.odds.compute_error_probabilities(score))

    def compute_second_risk(self, score: np.ndarray, then_score: np.ndarray) -> np.ndarray:
        """float64 (n,): NaN where the second judge gave no score: people review the claim."""
        second: np.ndarray = (self.odds.compute_error_probabilities(score) + 1 - then_score) / 2
        return second

    def compute_risk(self, score: np.ndarray, then_score: np.ndarray) -> np.ndarray:
        """float64 (n,): the lower of the two; NaN where both are missing."""
        return np.fmin(self.compute_first_risk(score), self.compute_second_risk(score, then_score))

    def passes(self, risk: np.ndarray) -> np.ndarray:
        """bool (n,)."""
        limit = -np.inf if self.limit is None else self.limit
        return np.nan_to_num(risk, nan=np.inf) <= limit

    def write(self, path: str | Path) -> None:
        """Write JSON."""
        data = {"odds": self.odds.to_json(), "then": self.then, "limit": self.limit, "promise": self.promise}
        write_json(path, {"schema": CASCADE_RULE_SCHEMA, **data})


def read_cascade_rule(path: str | Path) -> CascadeRule:
    """Read a rule that `factaudit triage --then` wrote. Raises `InputError` where the file is none."""
    data = read_evaluator_rule_json(path, CASCADE_RULE_SCHEMA, "triage --then")
    try:
        rule = CascadeRule(**data | {"odds": ErrorOdds.from_json(data["odds"])})
        if (
            not isinstance(rule.promise, dict)
            or not isinstance(rule.then, str)
            or not (rule.limit is None or np.isfinite(rule.limit))
        ):
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError):
        raise make_rule_file_error(path, "triage --then") from None
    return rule
