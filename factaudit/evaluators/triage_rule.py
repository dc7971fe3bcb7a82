"""By which rule do claims pass without review? It uses the scores of one evaluator or several."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from factaudit.files import write_json
from factaudit.stats.score_combination import ScoreStandardiser

TRIAGE_RULE_SCHEMA = "factaudit.triage_rule/1"


@dataclass(frozen=True)
class TriageRule:
    """Claims of at most a threshold's risk pass.

    weights: of each evaluator, with sum 1; mean, spread: of the logit of 1 − score of each, by which several are
    combined (of one evaluator the risk is 1 − score); column: ``dataset`` or ``system`` where each has its own
    threshold; thresholds: by the column's values, None where nothing passes; promise: what was promised.
    """

    weights: dict[str, float]
    thresholds: dict[str, float | None]
    column: str | None = None
    mean: dict[str, float] = field(default_factory=dict)
    spread: dict[str, float | None] = field(default_factory=dict)
    promise: dict[str, Any] = field(default_factory=dict)

    def compute_risk(self, score: np.ndarray) -> np.ndarray:
        """float64 (N,) of scores (E, N) in the order of ``weights``; NaN where one is missing."""
        if len(self.weights) == 1:
            risk: np.ndarray = 1 - score[0]
            return risk
        spread = [np.inf if self.spread[name] is None else self.spread[name] for name in self.weights]
        scale = ScoreStandardiser(
            np.array([self.mean[name] for name in self.weights]), np.array(spread, dtype=np.float64)
        )
        combined: np.ndarray = np.array(list(self.weights.values())) @ scale.standardise(score)
        return combined

    def write(self, path: str | Path) -> None:
        """Write JSON that says how to apply the rule to further claims."""
        write_json(path, {"schema": TRIAGE_RULE_SCHEMA, **asdict(self)})
