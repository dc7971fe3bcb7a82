"""How near are rates from few labels, and do their intervals hold? On real data and in simulated
worlds.

*Real*: draws of labels from three fully labelled sets, every method on the same draws: mean |bias|
over systems and draws, mean width and coverage of the intervals, and how many of the resolved pairs
are resolved wrongly.
*Simulated*: the share of intervals that hold the true rate of the corpus; 93
to 98 % in order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from factaudit import convert

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from estimate_data import World, tables
from worlds import WORLDS

from factaudit import Judgements
from factaudit.estimate.corpus import Corpus, build_corpora
from factaudit.estimate.methods import ESTIMATION_METHODS, Estimation
from factaudit.estimate.rates import compare_pairs
from factaudit.stats.sampling import (
    StratifiedDraw,
    draw_first_phase,
    draw_next_phase,
    first_phase_budget,
)

#: Claims of each of the 11 sets that stand for systems in `aggrefact_scores`.
PER_SET = 200


# ---- the real sets


def ragtruth(dataset: str, main: str, shared: Path) -> Corpus:
    found = convert("ragtruth-scores", [str(shared / "ragtruth" / "responses_test_scores.jsonl")])
    names = [main, *sorted(set(found.verdicts["evaluator"]) - {main})]
    judged = Judgements.join(
        found.claims[found.claims["dataset"] == dataset].reset_index(drop=True), found.verdicts
    )
    (corpus,) = build_corpora(judged, "claim", names)
    return corpus


def aggrefact(seed: int, shared: Path) -> Corpus:
    judged = _aggrefact(shared)
    random = np.random.default_rng(seed)
    sets, names = judged.dataset_codes, judged.dataset_names
    rows = np.concatenate(
        [
            random.choice(np.flatnonzero(sets == s), PER_SET, replace=False)
            for s in range(len(names))
        ]
    )
    claims = judged.claims.iloc[rows].reset_index(drop=True)
    claims = claims.assign(system=claims["dataset"], dataset="LLM-AggreFact")
    part = replace(
        judged,
        claims=claims,
        label=judged.label[rows],
        prediction=judged.prediction[:, rows],
        score=judged.score[:, rows],
        status=judged.status[:, rows],
    )
    main = "factcg-base"
    (corpus,) = build_corpora(
        part, "claim", [main, *(name for name in judged.evaluators if name != main)]
    )
    return corpus


@cache
def _aggrefact(shared: Path) -> Judgements:
    found = convert("aggrefact-scores", [str(shared / "aggrefact_scores")])
    return Judgements.join(found.claims, found.verdicts)


def real_sets(shared: Path) -> dict[str, Callable[[int], Corpus]]:
    """By name a function from a draw's seed to the corpus; only AggreFact's depends on it."""
    qa = cache(lambda: ragtruth("RAGTruth-QA", "modernbert_b", shared))
    summary = cache(lambda: ragtruth("RAGTruth-Summary", "modernbert_a", shared))
    return {
        "RAGTruth QA": lambda seed: qa(),
        "RAGTruth Summary": lambda seed: summary(),
        "AggreFact, 11 sets": lambda seed: aggrefact(seed, shared),
    }


# ---- one draw


def true_rates(corpus: Corpus) -> np.ndarray:
    return np.bincount(corpus.system, corpus.error) / corpus.system_sizes


@dataclass
class Score:
    """Sums over draws and systems of one method."""

    bias: list[float]
    width: list[float]
    covered: list[bool]


def simulate_labelling_budget(world: Corpus, budget: int, seed: int) -> Estimation:
    """Draw a budget from a corpus whose labels are all known, in the phases that `sample` would,
    and label it."""
    random = np.random.default_rng([seed, budget])
    first = first_phase_budget(budget, len(world.systems))
    draw = draw_first_phase(
        1 - world.score[0], world.system, first, random, world.stratum, first < budget
    )
    case = _reveal_labels(world, draw, seed)
    if first < budget:
        draw = draw.append(
            draw_next_phase(case.error_probabilities, world.system, draw, budget - first, random)
        )
        case = _reveal_labels(world, draw, seed)
    return case


def _reveal_labels(world: Corpus, draw: StratifiedDraw, seed: int) -> Estimation:
    known = np.full(len(world.error), np.nan)
    known[draw.rows] = world.error[draw.rows]
    return Estimation(replace(world, error=known), draw, seed=seed)


@dataclass
class Outcome:
    """Of one set and budget: methods' scores, and of the resolved pairs how many are wrong."""

    methods: dict[str, Score]
    pairs: int = 0
    resolved: int = 0
    wrong: int = 0

    def row(self, method: str) -> tuple[float, float, float]:
        """Mean |bias|, mean width and coverage; NaN without intervals."""
        score = self.methods[method]
        mean = [
            float(np.mean(values)) if values else np.nan for values in (score.width, score.covered)
        ]
        return float(np.mean(score.bias)), mean[0], mean[1]


def compare(corpus_of: Callable[[int], Corpus], budget: int, draws: int) -> Outcome:
    """Every method on the same ``draws`` draws of ``budget`` labels."""
    outcome = Outcome({name: Score([], [], []) for name in ESTIMATION_METHODS})
    for seed in range(draws):
        corpus = corpus_of(seed)
        truth = true_rates(corpus)
        case = simulate_labelling_budget(corpus, budget, seed)
        for name, score in outcome.methods.items():
            for one, true in zip(ESTIMATION_METHODS[name](case), truth, strict=True):
                score.bias.append(abs(one.rate - true))
                if not np.isnan(one.low):
                    score.width.append(one.high - one.low)
                    score.covered.append(one.low - 1e-9 <= true <= one.high + 1e-9)
        by_name = dict(zip(corpus.systems, truth, strict=True))
        for pair in compare_pairs(case):
            outcome.pairs += 1
            true = by_name[pair["system_a"]] - by_name[pair["system_b"]]
            if pair["order"] != "?":
                outcome.resolved += 1
                outcome.wrong += (true >= 0) if pair["order"] == "<" else (true <= 0)
    return outcome


# ---- simulated worlds


@dataclass(frozen=True)
class Regime:
    name: str
    world: World
    budget: int = 120


REGIMES = tuple(
    Regime(
        name,
        World(**{key: value for key, value in fields.items() if key != "budget"}),
        fields.get("budget", 120),
    )
    for name, fields in WORLDS["estimation"].items()
)


def coverage(regime: Regime, replicates: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Which of the systems' intervals hold the true rate, by method; which resolved pairs are in
    the right order."""
    held = {}
    for replicate in range(replicates):
        claims, verdicts = tables(regime.world, seed * 1_000_003 + replicate)
        names = [f"e{at}" for at in range(len(regime.world.skill))]
        (corpus,) = build_corpora(Judgements.join(claims, verdicts), "claim", names)
        case, true = simulate_labelling_budget(corpus, regime.budget, replicate), true_rates(corpus)
        for name in ("hierarchical", "regression-ppi", "labels"):
            for one, rate in zip(ESTIMATION_METHODS[name](case), true, strict=True):
                if not np.isnan(one.low):
                    held.setdefault(name, []).append(one.low - 1e-9 <= rate <= one.high + 1e-9)
        for pair in compare_pairs(case):
            a, b = (corpus.systems.index(pair[f"system_{which}"]) for which in "ab")
            if pair["order"] != "?":
                held.setdefault("resolved pairs", []).append(
                    (true[a] - true[b]) * (1 if pair["order"] == ">" else -1) > 0
                )
    return {name: np.array(found) for name, found in held.items()}
