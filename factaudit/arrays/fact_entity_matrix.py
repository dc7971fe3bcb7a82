"""A matrix of verdicts: the facts of one response against the people whom it may be about (MF §4.1).

The same for an engine's tables, for published decisions and for what people annotated (`collect_grouped_responses`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from factaudit.arrays.judgements import MISSING


@dataclass(frozen=True)
class FactEntityMatrix:
    """n facts against m candidate entities.

    entities: m titles, all different.
    prediction: int8 (n, m), 1 the entity's page supports the fact, 0 it doesn't, -1 unscored.
    score: float64 (n, m), support in [0, 1], NaN where the verifier gave none.
    unsure: bool (n, m), the cells that bounds leave open: unscored, or guessed from a reply that states no verdict.
    was_asked: whether a verifier was asked at all, if in vain: a failed call counts, a skipped one doesn't.
    """

    entities: tuple[str, ...]
    prediction: np.ndarray
    score: np.ndarray
    unsure: np.ndarray
    was_asked: bool = True

    def __post_init__(self) -> None:
        shape = (len(self.prediction), len(self.entities))
        if not self.prediction.shape == self.score.shape == self.unsure.shape == shape:
            raise ValueError(f"expected arrays of shape {shape}")
        if len(set(self.entities)) != len(self.entities):
            raise ValueError("an entity is a candidate once")

    @classmethod
    def of(cls, entities: Sequence[str], prediction: np.ndarray, score: np.ndarray | None = None) -> FactEntityMatrix:
        """From predictions alone: what is unscored is unsure, and was asked."""
        scores = np.full(prediction.shape, np.nan) if score is None else score
        return cls(tuple(entities), prediction, scores, prediction == MISSING)

    def fill_unsure(self, value: int) -> FactEntityMatrix:
        """The matrix where all that is unsure is ``value``."""
        prediction = np.where(self.unsure, np.int8(value), self.prediction)
        return replace(self, prediction=prediction, unsure=np.zeros_like(self.unsure))

    def select_facts(self, is_chosen: np.ndarray) -> FactEntityMatrix:
        """The matrix of some facts: bool (n,)."""
        return replace(
            self, prediction=self.prediction[is_chosen], score=self.score[is_chosen], unsure=self.unsure[is_chosen]
        )

    def verdict_of_any_entity(self) -> np.ndarray:
        """Per fact, whether any entity supports it (FActScore's verdict): int8 (n,), 1, 0 or -1.

        A fact that no entity supports is unscored where an entity's verdict is missing, or there is no entity.
        """
        known = (self.prediction != MISSING).all(axis=1) & bool(self.entities)
        return np.where((self.prediction == 1).any(axis=1), 1, np.where(known, 0, MISSING)).astype(np.int8)

    def verdict_of_linked_entity(self, columns: np.ndarray) -> np.ndarray:
        """Per fact, the verdict of one entity (D-FActScore's): int8 (n,), 1, 0 or -1.

        columns: int (n,), a column per fact; -1 where the fact's group was left without an entity, so that nothing
        supports it. Where there is no candidate at all, every fact is unscored.
        """
        verdicts = np.full(len(self.prediction), 0 if self.entities else MISSING, dtype=np.int8)
        linked = columns >= 0
        verdicts[linked] = self.prediction[linked, columns[linked]]
        return verdicts

    def attribute_facts(self) -> np.ndarray:
        """Per supported fact, the entity that it is about: int (n,), a column, -1 for a fact that none supports.

        Among the entities that support the fact it is the one that supports most facts of the response (of equals the
        first in the alphabet), as MF's code counts entities.
        """
        supported = self.prediction == 1
        order = sorted(range(len(self.entities)), key=lambda e: (-int(supported[:, e].sum()), self.entities[e]))
        found = np.full(len(supported), -1)
        for entity in reversed(order):
            found[supported[:, entity]] = entity
        return found
