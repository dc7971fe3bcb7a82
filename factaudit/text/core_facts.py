"""The core of a response's facts: distinct and informative ones that say the most (Core: Jiang et al. 2024)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from factaudit.text.content_words import is_trivial_statement, list_informative_words
from factaudit.text.fact_faults import find_repeating_fact_pairs


def compute_content_word_rarity(texts: Iterable[str]) -> dict[str, float]:
    """The self-information of each content word by how many of N texts have it: log((N + 1) / texts with it)."""
    counts: Counter[str] = Counter()
    n_texts = 0
    for text in texts:
        n_texts += 1
        counts.update({word.stem for word in list_informative_words(text)})
    return {stem: math.log((n_texts + 1) / count) for stem, count in counts.items()}


def select_core_facts(
    facts: Sequence[str], topic: str | None = None, word_rarity: Mapping[str, float] | None = None
) -> list[bool]:
    """Whether each fact is of the core: the facts of the greatest total weight of which none says what another says.

    A fact weighs the rarity of its words (`compute_content_word_rarity`; a word that is not in it weighs as much as the
    rarest, without rarities each weighs 1). Trivial facts weigh nothing. The selection is an integer program
    (SciPy's HiGHS).

    >>> facts = ["Ada sang.", "Ada sang in Rome.", "Ada is a person.", "In Rome, Ada sang."]
    >>> select_core_facts(facts, "Ada Fenn")
    [False, True, False, False]
    """
    rarity = word_rarity or {}
    most = max(rarity.values(), default=1.0)
    weights = np.zeros(len(facts))
    for place, fact in enumerate(facts):
        if not is_trivial_statement(fact, topic):
            stems = {word.stem for word in list_informative_words(fact, topic)}
            weights[place] = sum(rarity.get(stem, most) for stem in sorted(stems))
    pairs = [pair for pair in find_repeating_fact_pairs(facts, topic) if weights[list(pair)].all()]
    if not pairs:
        return (weights > 0).tolist()
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    rows, columns = np.repeat(np.arange(len(pairs)), 2), np.array(pairs).ravel()
    limits = coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(pairs), len(facts))).tocsr()
    # Of equal totals more facts, and of these the first.
    gain = weights + 1e-6 * (weights > 0) * (2 - np.arange(len(facts)) / len(facts))
    solution = milp(
        -gain,
        integrality=np.ones(len(facts), dtype=np.int64),
        bounds=Bounds(0, (weights > 0).astype(float)),
        constraints=LinearConstraint(limits, -np.inf, 1),
    )
    assert solution.x is not None, "to choose nothing is a solution"
    chosen: list[bool] = (solution.x > 0.5).tolist()
    return chosen
