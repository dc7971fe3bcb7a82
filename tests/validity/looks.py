"""Do intervals hold at every one of eight looks at growing labels? Confidence sequences, and intervals for one look.

    python tests/validity/looks.py [replicates, default 200]
    python tests/validity/looks.py one-look [replicates, default 60]

A sample grows by 50 labels (or as a regime has it) at each look, drawn as `factaudit sample --more` draws them. A row
counts the runs in which the interval of a system's rate, or of the difference of two systems, misses the true one at
any look; beside it the mean widths at the first, fourth and last look. *one-look*: the same of the hierarchical
model's intervals, which promise to hold at a single look.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from estimate_data import World, tables
from estimation import SHARED, real_sets, true_rates

from factaudit.arrays.judgements import Judgements
from factaudit.estimate.estimation_case import RateEstimationCase, RateEstimationOptions
from factaudit.estimate.label_sequence import PREDICTION_EFFECT_SCALE, LabelSequence
from factaudit.estimate.scored_corpus import ScoredCorpus, build_scored_corpora
from factaudit.estimate.sequential_estimation import build_label_look_rows
from factaudit.stats.allocation import allocate_first_phase, allocate_further_phase
from factaudit.stats.confidence_sequences import log_betting_capital
from factaudit.stats.hierarchical_regression import error_probabilities_at_mode
from factaudit.stats.posterior_comparison import posterior_interval

N_LOOKS = 8
#: Intervals are computed in so many runs; in all it is asked whether the bets against the truth won.
N_WITH_WIDTHS = 10


@dataclass(frozen=True)
class LookRegime:
    name: str
    world: World
    per_look: int = 50


REGIMES = (
    LookRegime("four systems", World()),
    LookRegime("25 labels a look", World(), 25),
    LookRegime("100 labels a look", World(size=600), 100),
    LookRegime("2 % errors", World(rates=(-4.4, -4.2, -4.0, -3.8), size=500)),
    LookRegime("mostly errors", World(rates=(0.5, 1.0, 2.0, 3.0))),
    LookRegime("equal systems", World(rates=(-1.2,) * 4)),
    LookRegime("useless evaluators", World(skill=(0.0, 0.0))),
    LookRegime("nearly perfect evaluators", World(skill=(6.0, 4.0))),
    LookRegime("an evaluator that is wrong", World(skill=(-2.0, 0.0))),
    LookRegime("documents alike", World(documents=50, cluster=1.5)),
)


def simulated_corpus(world: World, seed: int) -> ScoredCorpus:
    claims, verdicts = tables(world, seed)
    judged = Judgements.join(claims, verdicts)
    (corpus,) = build_scored_corpora(judged, "claim", [f"e{at}" for at in range(len(world.skill))])
    return corpus


def reveal(corpus: ScoredCorpus, rows: np.ndarray) -> ScoredCorpus:
    error = np.full(len(corpus.error), np.nan)
    error[rows] = corpus.error[rows]
    return replace(corpus, error=error)


def draw_looks(corpus: ScoredCorpus, per_look: int, seed: int, n_looks: int = N_LOOKS) -> RateEstimationCase:
    """A sample of so many phases; each is drawn by the mode of the model of the labels before it."""
    random = np.random.default_rng([seed, per_look])
    draw = allocate_first_phase(1 - corpus.score[0], corpus.system, per_look, random)
    for _ in range(1, n_looks):
        case = RateEstimationCase(reveal(corpus, draw.rows), draw)
        p = error_probabilities_at_mode(case.fit_mode(PREDICTION_EFFECT_SCALE, 1.0), case.covariates, corpus.system)
        draw = draw.append(allocate_further_phase(p, corpus.system, draw, per_look, random))
    return RateEstimationCase(reveal(corpus, draw.rows), draw, RateEstimationOptions(seed=seed))


@dataclass
class LookOutcome:
    """Of a regime: whether each figure was missed at any look, and widths by look."""

    rate_missed: list[bool]
    difference_missed: list[bool]
    width: list[np.ndarray]
    width_one_look: list[float]
    n_wrong_best: int = 0
    n_best: int = 0


def follow_sequences(corpus_of: Callable[[int], ScoredCorpus], per_look: int, replicates: int) -> LookOutcome:
    """Confidence sequences of all systems and pairs. An interval misses the truth where the bets against it won."""
    outcome = LookOutcome([], [], [], [])
    for seed in range(replicates):
        corpus = corpus_of(seed)
        truth = true_rates(corpus)
        sequence = LabelSequence(draw_looks(corpus, per_look, seed), N_LOOKS)
        unit = np.eye(len(truth))
        for a in range(len(truth)):
            outcome.rate_missed.append(is_refuted(sequence, unit[a], truth))
            outcome.difference_missed += [is_refuted(sequence, unit[a] - unit[b], truth) for b in range(a)]
        if seed < N_WITH_WIDTHS:
            found = build_label_look_rows(sequence, 0.1)["estimate_look_summary"]
            named = {row["best"] for row in found} - {None}
            outcome.n_best += bool(named)
            outcome.n_wrong_best += any(truth[corpus.systems.index(name)] > truth.min() + 1e-12 for name in named)
            outcome.width.append(np.array([row["width"] for row in found]))
            outcome.width_one_look.append(found[-1]["width_one_look"] or np.nan)
    return outcome


def is_refuted(sequence: LabelSequence, coefficient: np.ndarray, truth: np.ndarray) -> bool:
    """Whether the true value of a figure is outside its interval at any look."""
    blocks = [block for _, block in sequence.build_blocks(coefficient, np.zeros(len(truth)))]
    return bool(log_betting_capital(blocks, np.array([coefficient @ truth])).max() >= np.log(20))


def follow_one_look_intervals(corpus_of: Callable[[int], ScoredCorpus], per_look: int, replicates: int) -> LookOutcome:
    """The hierarchical model's intervals at each look, of the first system and of the first pair."""
    outcome = LookOutcome([], [], [], [])
    for seed in range(replicates):
        corpus = corpus_of(seed)
        truth = true_rates(corpus)
        whole = draw_looks(corpus, per_look, seed)
        missed = np.zeros(2, dtype=bool)
        widths = []
        for look in range(N_LOOKS):
            draw = whole.draw.select(whole.draw.phase <= look)
            drawn = RateEstimationCase(reveal(corpus, draw.rows), draw, whole.options).rate_draws
            for at, (values, true) in enumerate(
                ((drawn[:, 0], truth[0]), (drawn[:, 0] - drawn[:, 1], truth[0] - truth[1]))
            ):
                _, low, high = posterior_interval(values, 0.95)
                missed[at] |= not low - 1e-9 <= true <= high + 1e-9
            widths.append(float(np.mean(np.subtract(*posterior_interval(drawn, 0.95)[2:0:-1]))))
        outcome.rate_missed.append(bool(missed[0]))
        outcome.difference_missed.append(bool(missed[1]))
        outcome.width.append(np.array(widths))
    return outcome


def show(replicates: int, follow: Callable[..., LookOutcome], with_all: bool) -> None:
    print(f"{N_LOOKS} looks, {replicates} runs; missed at any look, in percent; mean widths in points")
    print(
        f"{'regime':<28}{'rates':>8}{'differences':>13}{'width at 1':>12}{'4':>6}{'8':>6}{'labels, one look':>18}  best"
    )
    worlds = [
        (regime.name, lambda seed, world=regime.world: simulated_corpus(world, seed), regime.per_look)
        for regime in (REGIMES if with_all else REGIMES[:1])
    ]
    if SHARED.is_dir():
        worlds += [(name, corpus_of, 50) for name, corpus_of in list(real_sets(SHARED).items())[:2]]
    for name, corpus_of, per_look in worlds:
        found = follow(corpus_of, per_look, replicates)
        width = 100 * np.mean(found.width, axis=0)
        alone = f"{100 * np.nanmean(found.width_one_look):.1f}" if found.width_one_look else ""
        print(
            f"{name:<28}{100 * np.mean(found.rate_missed):>8.1f}{100 * np.mean(found.difference_missed):>13.1f}"
            f"{width[0]:>12.1f}{width[3]:>6.1f}{width[7]:>6.1f}{alone:>18}  "
            f"{found.n_best} named, {found.n_wrong_best} wrongly",
            flush=True,
        )


if __name__ == "__main__":
    is_one_look = sys.argv[1:2] == ["one-look"]
    count = [int(word) for word in sys.argv[1:] if word.isdigit()]
    show(
        count[0] if count else 60 if is_one_look else 200,
        follow_one_look_intervals if is_one_look else follow_sequences,
        with_all=not is_one_look,
    )
