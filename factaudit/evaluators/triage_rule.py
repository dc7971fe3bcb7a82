"""By which rule do claims pass without review? It uses the scores of one evaluator or several."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from factaudit.files import write_json

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

    def write(self, path: str | Path) -> None:
        """Write JSON that says how to apply the rule to further claims."""
        write_json(path, {"schema": TRIAGE_RULE_SCHEMA, **asdict(self)})
