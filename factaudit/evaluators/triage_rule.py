"""Which claims pass without review by a rule that was saved? The rule uses the scores of one evaluator or several."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import TypeAdapter

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.errors import InputError, Problem, UsageError, suggest_known_name
from factaudit.files import parse_json_file_text, write_json
from factaudit.stats.score_combination import ScoreStandardiser

TRIAGE_RULE_SCHEMA = "factaudit.triage_rule/1"


@dataclass(frozen=True)
class TriageRule:
    """Claims of at most a threshold's risk pass.

    weights: of each evaluator, with sum 1; mean, spread: of the logit of 1 − score of each, by which several are
    combined (of one evaluator the risk is 1 − score); column: ``dataset`` or ``system`` where each has its own
    threshold; thresholds: by the column's values, None where nothing passes; promise: what was promised.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

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

    def select_passing_claims(self, verdicts: pd.DataFrame, claims: pd.DataFrame | None = None) -> pd.DataFrame:
        """claim_id, risk, passes (1 or 0) of each claim with a verdict of all the rule's evaluators.

        A claim that one of them left unscored does not pass. ``claims`` are needed where the rule has a threshold for
        each data set or system; one that the rule does not know passes nothing. Raises `UsageError` where an evaluator
        has no verdict.
        """
        own = verdicts[verdicts["repeat"] == 0] if "repeat" in verdicts else verdicts
        known = own["evaluator"].unique().tolist()
        for name in self.weights:
            if name not in known:
                raise UsageError(f"the rule needs verdicts of {name!r}{suggest_known_name(name, known)}")
        own = own[own["evaluator"].isin(self.weights)]
        support = own["score"].astype("float64")
        support = support.where(support.notna(), own["prediction"].astype("float64"))
        wide = own.assign(support=support).pivot(index="claim_id", columns="evaluator", values="support")
        risk = self.compute_risk(wide[list(self.weights)].to_numpy().T)
        groups: Any = [ALL_TOGETHER] * len(wide)
        if self.column is not None:
            if claims is None:
                raise UsageError(f"the rule has a threshold for each {self.column}: expected the claims, too")
            groups = claims.set_index("claim_id")[self.column].reindex(wide.index)
        limits = np.array([self.thresholds.get(str(name)) for name in groups], dtype=np.float64)
        passes = np.nan_to_num(risk, nan=np.inf) <= np.nan_to_num(limits, nan=-np.inf)
        return pd.DataFrame({"claim_id": wide.index.to_numpy(), "risk": risk, "passes": passes.astype(int)})

    def write(self, path: str | Path) -> None:
        """Write JSON."""
        write_json(path, {"schema": TRIAGE_RULE_SCHEMA, **asdict(self)})


def read_triage_rule(path: str | Path) -> TriageRule:
    """Read a rule that `factaudit triage` wrote. Raises `InputError` where the file is none."""
    try:
        data = parse_json_file_text(Path(path).read_bytes())
        if data.pop("schema") != TRIAGE_RULE_SCHEMA:
            raise ValueError
        rule = TypeAdapter(TriageRule).validate_python(data)
        if not rule.weights or (len(rule.weights) > 1 and not set(rule.weights) == set(rule.mean) == set(rule.spread)):
            raise ValueError
    except FileNotFoundError:
        raise InputError(str(path), [Problem("no such file")]) from None
    except (ValueError, TypeError, KeyError, AttributeError):
        message = "this is not a rule of this version of factaudit; expected a file that `factaudit triage` wrote"
        raise InputError(str(path), [Problem(message)]) from None
    return rule
