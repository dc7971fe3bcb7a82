"""How often is the promise of `factaudit triage` broken? Prints a row per regime.

    python tests/validity/triage.py [replicates, default 1000]

A promise of at most 5 or 10 % errors with a confidence of 90 % may be broken in 10 % of draws, and
2 points more (what
is approximate: design effects, weights by cross-fitting). All truths are known: of a corpus the
errors among the claims that pass, labelled errors aside; of a population those among the claims of
many further documents.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit as logistic
from worlds import WORLDS, make_worlds

from factaudit import Judgements, validate_claims, validate_verdicts
from factaudit.audit.triage import compute_review_shares
from factaudit.stats.regression import risk_logit
from factaudit.stats.risk_control import (
    RiskCurve,
    are_labels_clustered,
    combine_risks,
    control_passing_errors,
    risk_scale,
)
from factaudit.stats.sampling import (
    StratifiedDraw,
    draw_first_phase,
    draw_next_phase,
    label_weights,
)

CONFIDENCE = 0.9
FIGURES = Path(__file__).with_name("coverage_triage.json")
#: Claims of the population that a rule is tried on.
N_NEW_CLAIMS = 20_000


@dataclass(frozen=True)
class TriageRegime:
    """A world of claims, and how its labels are drawn.

    skill: the log odds of an error per score unit, of each evaluator; document_effect: the standard
    deviation of the log odds of documents, unknown to the scores; shift: of one of four systems;
    draw: ``random`` claims, ``documents`` with all their claims, ``sample``, two phases by the
    scores, or ``all``: every claim has a label, and each evaluator a promise of its own, as the
    audit ``triage`` makes them (broken where one of them is; the greatest share passes);
    target: ``corpus`` or ``population``.
    """

    name: str
    rate: float = 0.2
    max_error: float = 0.05
    skill: tuple[float, ...] = (2.0,)
    n_claims: int = 1000
    n_labels: int = 200
    claims_per_document: int = 1
    document_effect: float = 0.0
    shift: float = 0.0
    draw: str = "random"
    target: str = "corpus"


@dataclass(frozen=True)
class SimulatedClaims:
    score: np.ndarray
    error: np.ndarray
    document: np.ndarray
    system: np.ndarray


def simulate_claims(regime: TriageRegime, n: int, random: np.random.Generator) -> SimulatedClaims:
    """Scores first, then errors by their odds; the intercept makes the rate, about."""
    document = np.arange(n) // regime.claims_per_document
    risk = random.standard_normal((len(regime.skill), n))
    system = random.integers(4, size=n)
    odds = np.array(regime.skill) @ risk + regime.shift * (system == 0)
    odds += regime.document_effect * random.standard_normal(document[-1] + 1)[document]
    spread = np.sqrt(sum(one**2 for one in regime.skill) + regime.document_effect**2)
    middle = np.log(regime.rate / (1 - regime.rate)) * np.sqrt(1 + spread**2 * np.pi / 8)
    error = (random.random(n) < logistic(odds + middle)).astype(np.float64)
    return SimulatedClaims(logistic(-risk), error, document, system)


def draw_labels(
    regime: TriageRegime, world: SimulatedClaims, random: np.random.Generator
) -> StratifiedDraw:
    """Rows to label, and how they were drawn."""
    n, budget = len(world.error), regime.n_labels
    one_stratum = np.zeros(n, dtype=np.int64)
    if regime.draw == "sample":
        guess = 1 - world.score[0]
        first = draw_first_phase(guess, world.system, budget // 2, random, has_second_phase=True)
        return first.append(
            draw_next_phase(guess, world.system, first, budget - budget // 2, random)
        )
    if regime.draw == "documents":
        chosen = random.choice(
            world.document[-1] + 1, budget // regime.claims_per_document, replace=False
        )
        rows = np.flatnonzero(np.isin(world.document, chosen))
    else:
        rows = random.choice(n, budget, replace=False)
    zeros = one_stratum[: len(rows)]
    return StratifiedDraw(rows, zeros, zeros, np.full(len(rows), n))


def simulate_promise(regime: TriageRegime, random: np.random.Generator) -> tuple[bool, float]:
    """Whether the promise is broken, and the share of claims that pass."""
    world = simulate_claims(regime, regime.n_claims, random)
    draw = draw_labels(regime, world, random)
    rows = draw.rows
    labels = world.error[rows]
    weight, system = np.zeros(len(rows)), world.system[rows] * (regime.draw == "sample")
    for at in np.unique(system):
        mine = draw.select(system == at)
        weight[system == at] = label_weights(mine, np.ones(len(mine.rows), bool))
    is_population = regime.target == "population"
    risk, weights = combine_risks(world.score, rows, labels, world.document, random)
    is_clustered = is_population or are_labels_clustered(rows, world.document)
    curve = control_passing_errors(
        risk,
        rows,
        labels,
        CONFIDENCE,
        regime.max_error,
        weight,
        world.document[rows] if is_clustered else None,
        is_population,
    )
    if curve.last < 0:
        return False, 0.0
    if regime.target == "population":
        new = simulate_claims(regime, N_NEW_CLAIMS, random)
        mean, spread = risk_scale(world.score)
        combined = weights @ ((risk_logit(new.score) - mean[:, None]) / spread[:, None])
        return is_broken(
            regime, curve, 1 - new.score[0] if len(new.score) == 1 else combined, new.error
        )
    return is_broken(regime, curve, risk, world.error, rows[labels == 1])


def simulate_audit(regime: TriageRegime, random: np.random.Generator) -> tuple[bool, float]:
    """Whether one of the promises that the audit makes of new claims is broken, and the greatest
    share that passes."""
    world = simulate_claims(regime, regime.n_claims, random)
    names = [f"e{at}" for at in range(len(regime.skill))]
    columns = {
        "dataset": "d",
        "doc_id": [f"d{one}" for one in world.document],
        "label": 1 - world.error.astype(int),
    }
    claims = pd.DataFrame(columns).assign(
        claim="a claim", claim_id=[f"c{at}" for at in range(regime.n_claims)]
    )
    verdicts = [
        pd.DataFrame({"claim_id": claims["claim_id"], "evaluator": name, "score": score})
        for name, score in zip(names, world.score, strict=True)
    ]
    judgements = Judgements.join(
        validate_claims(claims), validate_verdicts(pd.concat(verdicts, ignore_index=True))
    )
    new = simulate_claims(regime, N_NEW_CLAIMS, random)
    broken, shares = False, [0.0]
    for row in compute_review_shares(judgements):
        if row["threshold"] is not None:
            passes = new.score[names.index(row["evaluator"])] >= row["threshold"]
            broken = broken or bool(new.error[passes].mean() > row["max_error"])
            shares.append(1 - row["review_share"])
    return broken, max(shares)


def is_broken(
    regime: TriageRegime,
    curve: RiskCurve,
    risk: np.ndarray,
    error: np.ndarray,
    known_errors: Sequence[int] = (),
) -> tuple[bool, float]:
    """Whether the claims that pass hold too many errors, and their share."""
    passes = risk <= curve.threshold[curve.last]
    passes[list(known_errors)] = False
    broken = passes.any() and error[passes].mean() > regime.max_error
    return bool(broken), float(passes.mean())


REGIMES = make_worlds(TriageRegime, WORLDS["triage"])


def measure_regime(regime: TriageRegime, replicates: int, seed: int) -> tuple[float, float]:
    """The share of broken promises, and the mean share of claims that pass."""
    simulate = simulate_audit if regime.draw == "all" else simulate_promise
    found = [simulate(regime, np.random.default_rng([seed, at])) for at in range(replicates)]
    broken, passed = zip(*found, strict=True)
    return float(np.mean(broken)), float(np.mean(passed))


def main() -> None:
    replicates = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    figures = []
    for regime in REGIMES:
        broken, passed = measure_regime(regime, replicates, seed=1)
        mark = "*" if broken > 1 - CONFIDENCE + 0.02 else ""
        print(
            f"{regime.name:55s} broken {100 * broken:5.1f} %{mark:1s} passes {100 * passed:5.1f} %",
            flush=True,
        )
        figures.append(
            {"regime": regime.name, "broken": broken, "passed": passed, "replicates": replicates}
        )
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
