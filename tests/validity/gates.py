"""How often does ``diff --fail-on`` fail where the judge is the same, and where it got worse?

A judge is right on a share of the claims of either class (in a document together, with a
probability), and each asking differs from it on some claims, so that two askings differ on
``flips`` of them. Worse: BAcc fell by ``fall``. Beside the interval's gate stands that of the
point.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from factaudit.arrays.paired_changes import (
    FigureChange,
    compute_paired_changes,
    compute_paired_flip_shares,
)
from factaudit.diff.gate import judge_changes

#: Figure, sign and number of each condition, as `--fail-on` has them.
CONDITIONS = (
    ("bacc", -1, -0.02),
    ("bacc", -1, 0.0),
    ("tpr", -1, -0.02),
    ("tnr", -1, -0.02),
    ("abs_bias", 1, 0.02),
)


@dataclass(frozen=True)
class Judge:
    """documents x claims; errors: the share of labels that are 0; repeats: how often each run
    asks."""

    documents: int
    claims: int
    flips: float = 0.05
    errors: float = 0.3
    right: float = 0.8
    fall: float = 0.0
    repeats: int = 1

    @property
    def name(self) -> str:
        asked = f", {self.repeats} repeats" if self.repeats > 1 else ""
        size = f"{self.documents * self.claims:,} claims of {self.documents:,} documents"
        return f"{size}, {100 * self.flips:g} % flips, {100 * self.errors:g} % errors{asked}"


SAME = (
    Judge(300, 1),
    Judge(300, 1, errors=0.5),
    Judge(300, 1, errors=0.1),
    Judge(300, 1, flips=0.1),
    Judge(60, 5),
    Judge(60, 5, flips=0.1),
    Judge(20, 15),
    Judge(100, 1),
    Judge(1000, 1),
    Judge(200, 5),
    Judge(300, 1, right=0.97),
    Judge(300, 1, repeats=3),
)
WORSE = tuple(
    replace(Judge(n, 1), fall=fall) for n in (300, 1000, 3000) for fall in (0.02, 0.05, 0.1)
)


def draw_changes(
    judge: Judge, replicates: int, seed: int
) -> tuple[dict[str, FigureChange], np.ndarray]:
    """The changes between two runs in each replicate, and the low end of the share of flips."""
    random = np.random.default_rng(seed)
    n = judge.documents * judge.claims
    groups = np.repeat(np.arange(replicates), n)
    documents = np.arange(replicates * n) // judge.claims
    label = (random.random(len(groups)) >= judge.errors).astype(np.int64)
    together = random.random(replicates * judge.documents)[documents]
    luck = np.where(random.random(len(groups)) < 0.3, together, random.random(len(groups)))
    differs = (1 - np.sqrt(1 - 2 * judge.flips)) / 2

    def ask(right: float) -> np.ndarray:
        settled = luck < right
        asked = [settled ^ (random.random(len(groups)) < differs) for _ in range(judge.repeats)]
        return np.where(np.array(asked), label, 1 - label)

    before = ask(judge.right)
    after = ask(judge.right - judge.fall / (1 - 2 * differs))
    placed = (groups, replicates, documents)
    flips = compute_paired_flip_shares(before[0], after[0], *placed)
    return compute_paired_changes(label, before.mean(0), after.mean(0), *placed), flips[1]


def share_of_failures(judge: Judge, replicates: int, seed: int = 5) -> dict[str, float]:
    """How often each condition holds for sure; ``point``: how often the point of the first one is
    so."""
    changes, flips_low = draw_changes(judge, replicates, seed)
    found = {}
    for key, sign, limit in CONDITIONS:
        _, _, _, low, high = changes[key]
        name = f"{key}{'<' if sign < 0 else '>'}{limit:g}"
        found[name] = float(np.nanmean(high < limit if sign < 0 else low > limit))
    found["flips>0.1"] = float(np.nanmean(flips_low > 0.1))
    return found | {"point": float(np.nanmean(changes["bacc"][2] < -0.02))}


def share_of_significant_changes(
    judge: Judge, n_judges: int, replicates: int, seed: int = 5
) -> float:
    """How often ``diff`` without conditions calls one of so many judges worse, better or
    changed."""
    keys = ("bacc", "tpr", "tnr", "abs_bias")
    drawn = [draw_changes(judge, replicates, seed + at)[0] for at in range(n_judges)]
    found = 0
    for at in range(replicates):
        rows = []
        for name, changes in enumerate(drawn):
            row = {"dataset": "__macro__", "evaluator": str(name), "n_both": 0, "n_flips": 0}
            row |= {"lost": 0, "unscored_low": 0.0}
            for key in keys:
                ends = zip(("", "_low", "_high"), changes[key][2:], strict=True)
                row |= {f"{key}{end}": float(values[at]) for end, values in ends}
            rows.append(row)
        found += judge_changes(rows, [], []).word != "no significant change"
    return found / replicates
