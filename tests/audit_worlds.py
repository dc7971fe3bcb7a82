"""Claims of two data sets and verdicts of three evaluators, and what is audited of them, for tests
of whole runs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from factaudit import Results, compare, estimate_rates, validate_claims, validate_verdicts

Tables = tuple[pd.DataFrame, pd.DataFrame]
SYSTEMS, EVALUATORS = ("ant", "bee", "cat"), ("quill", "robin", "swift")


def make_world(world: str, n: int = 180, seed: int = 3) -> Tables:
    """Claims of two data sets and verdicts of three evaluators; ``world`` says what is special."""
    random = np.random.default_rng(seed)
    at = np.arange(n)
    claims = pd.DataFrame(
        {
            "claim_id": [f"c{i}" for i in at],
            "dataset": np.where(at % 2, "even", "odd"),
            "system": np.array(SYSTEMS)[at % 3],
            "response_id": [f"r{i // 4}-{i % 2}-{i % 3}" for i in at],
            "doc_id": [f"d{i // 12}" for i in at],
            "claim": "a claim",
        }
    )
    label = (random.random(n) < 0.6 + 0.1 * (at % 3)).astype(int)
    claims["label"] = pd.array(label, dtype="Int8")
    if world == "nothing labelled":
        claims["label"] = pd.array([pd.NA] * n, dtype="Int8")
    parts = []
    for number, evaluator in enumerate(EVALUATORS[: 1 if world == "one evaluator" else 3]):
        score = np.clip(0.25 + 0.5 * label + random.normal(0, 0.2 + 0.1 * number, n), 0, 1).round(3)
        if world == "a constant" and number == 1:
            score = np.full(n, 0.9)
        missing = (random.random(n) < 0.1) & (world == "unscored")
        part = pd.DataFrame({"claim_id": claims["claim_id"], "evaluator": evaluator})
        part["score"] = np.where(missing, np.nan, score)
        part["prediction"] = pd.array(
            np.where(missing, None, (score >= 0.5).astype(int)), dtype="Int8"
        )
        part["status"] = np.where(missing, "error", "ok")
        parts.append(part)
    if world == "one system":
        claims["system"] = "ant"
    return validate_claims(claims), validate_verdicts(pd.concat(parts, ignore_index=True))


def audit_world(tables: Tables, with_estimates: bool = True) -> Results:
    claims, verdicts = tables
    results = compare(claims, verdicts, replicates=50)
    if with_estimates and claims["label"].notna().any():
        few = claims.assign(
            label=claims["label"].where(claims["claim_id"].str[1:].astype(int) * 7 % 10 < 4)
        )
        results.audits.update(estimate_rates(few, verdicts, levels=["claim"]).audits())
    return results
