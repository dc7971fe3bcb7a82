"""Do rates hold that are made public? The best system, and many pairs.

All truths are known: corpora, labels and scores are simulated as arrays. *Extremes*: intervals of
the lowest rate. *Pairs*: how many are told apart, how many of these are in the wrong order, and the
mean share of wrong ones over runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from factaudit.estimate.corpus import Corpus
from factaudit.estimate.methods import Estimation
from factaudit.estimate.rates import compare_pairs, find_lowest_rate
from factaudit.stats.regression import logistic
from factaudit.stats.sampling import simple_random_draw

#: Claims of each system.
SIZE = 250


def log_odds(rate: float | np.ndarray) -> np.ndarray:
    return np.log(rate) - np.log1p(-np.asarray(rate))


def draw_corpus(
    rates: np.ndarray, skill: float, n_labels: int, random: np.random.Generator
) -> tuple[Corpus, np.ndarray]:
    """A corpus whose claims are labelled, as many of each system, and which rows those are."""
    n = len(rates) * SIZE
    system = np.repeat(np.arange(len(rates)), SIZE)
    error = (random.random(n) < rates[system]).astype(np.float64)
    score = logistic(-skill * (error - 0.5) - random.standard_normal((2, n)))
    each = np.diff(np.linspace(0, n_labels, len(rates) + 1).astype(int))
    rows = np.concatenate(
        [at * SIZE + random.choice(SIZE, k, replace=False) for at, k in enumerate(each)]
    )
    corpus = Corpus(
        dataset="simulated",
        level="claim",
        systems=tuple(f"s{at:02d}" for at in range(len(rates))),
        evaluators=("a", "b"),
        system=system,
        score=score,
        prediction=(score > 0.5).astype(np.int8),
        error=error,
        document=np.arange(n),
        response=np.arange(n),
        unit_of_claim=np.arange(n),
        stratum=None,
        n_left_out=0,
        n_partial=0,
        undecided=np.zeros(n, dtype=bool),
    )
    return corpus, np.sort(rows)


def reveal(corpus: Corpus, rows: np.ndarray) -> Estimation:
    """The case in which these rows were labelled."""
    drawn = np.zeros(len(corpus.error), dtype=bool)
    drawn[rows] = True
    known = np.where(drawn, corpus.error, np.nan)
    return Estimation(replace(corpus, error=known), simple_random_draw(drawn, corpus.system))


def holds(truth: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return (low - 1e-9 <= truth) & (truth <= high + 1e-9)


@dataclass(frozen=True)
class SystemsWorld:
    """Systems whose true rates are drawn anew each time: spread is the standard deviation of their
    log-odds; far: the rate of the first one, where it is not drawn as the others are."""

    name: str
    n_systems: int
    n_labels: int
    spread: float
    skill: float = 1.2
    far: float | None = None


WORLDS = (
    SystemsWorld("alike", 11, 100, 0.0),
    SystemsWorld("apart", 11, 100, 0.8),
    SystemsWorld("one far", 20, 400, 0.0, 0.5, 0.05),
)


def system_figures(world: SystemsWorld, replicates: int) -> dict[str, float]:
    """Coverage of extremes, their widths, and what became of pairs."""
    held: dict[str, list[float]] = {}
    called = wrong = pairs = 0
    shares = []
    for replicate in range(replicates):
        random = np.random.default_rng(
            [world.n_systems, world.n_labels, int(100 * world.spread), replicate]
        )
        rates = logistic(log_odds(0.27) + world.spread * random.standard_normal(world.n_systems))
        if world.far is not None:
            rates[0] = world.far
        corpus, rows = draw_corpus(rates, world.skill, world.n_labels, random)
        case = reveal(corpus, rows)
        truth = np.bincount(corpus.system, corpus.error) / SIZE
        row = find_lowest_rate(case)
        upper = np.quantile(case.rate_draws, 0.975, axis=0).min()
        held.setdefault("headroom", []).append(
            float(holds(truth.min(), row["headroom_low"], row["headroom_high"]))
        )
        held.setdefault("no wider", []).append(float(row["headroom_high"] <= upper + 1e-9))
        n_wrong = n_called = 0
        by_name = dict(zip(corpus.systems, truth, strict=True))
        for pair in compare_pairs(case):
            pairs += 1
            if pair["order"] != "?":
                n_called += 1
                true = by_name[pair["system_a"]] - by_name[pair["system_b"]]
                n_wrong += (true >= 0) if pair["order"] == "<" else (true <= 0)
        called, wrong = called + n_called, wrong + n_wrong
        shares.append(n_wrong / max(n_called, 1))
    found = {key: float(np.mean(values)) for key, values in held.items()}
    return found | {
        "called": called / pairs,
        "wrong": wrong / max(called, 1),
        "wrong share": float(np.mean(shares)),
    }
