"""The matrix that every figure is read from: the facts of one response against its candidate entities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factaudit.audit.core.judged import MISSING


@dataclass(frozen=True)
class Matrix:
    """n facts against m candidate entities, each pair verified once.

    facts: n texts. entities: m titles, all different.
    prediction: int8 (n, m), 1 the entity's page supports the fact, 0 it doesn't, -1 unscored.
    score: float64 (n, m), support in [0, 1], NaN where the verifier gave none.
    """

    facts: tuple[str, ...]
    entities: tuple[str, ...]
    prediction: np.ndarray
    score: np.ndarray

    def __post_init__(self) -> None:
        shape = (len(self.facts), len(self.entities))
        if self.prediction.shape != shape or self.score.shape != shape:
            raise ValueError(f"expected arrays of shape {shape}")
        if len(set(self.entities)) != len(self.entities):
            raise ValueError("an entity is a candidate once")

    def at_best(self) -> Matrix:
        """The matrix where all that is unscored is supported."""
        return Matrix(self.facts, self.entities, np.where(self.prediction == MISSING, 1, self.prediction), self.score)

    def by_any(self) -> np.ndarray:
        """Per fact, whether any entity supports it (FActScore's verdict): int8 (n,), 1, 0 or -1.

        A fact that no entity supports is unscored where an entity's verdict is missing, or there is no entity.
        """
        known = (self.prediction != MISSING).all(axis=1) & bool(self.entities)
        return np.where((self.prediction == 1).any(axis=1), 1, np.where(known, 0, MISSING)).astype(np.int8)

    def by_entity(self, entities: np.ndarray) -> np.ndarray:
        """Per fact, the verdict of one entity (D-FActScore's): int8 (n,), 1, 0 or -1.

        entities: int (n,), a column per fact; -1 where the fact's group was left without an entity, so that nothing
        supports it. Where there is no candidate at all, every fact is unscored.
        """
        verdicts = np.full(len(self.facts), 0 if self.entities else MISSING, dtype=np.int8)
        linked = entities >= 0
        verdicts[linked] = self.prediction[linked, entities[linked]]
        return verdicts

    def attributed(self) -> np.ndarray:
        """Per supported fact, the entity that it is about: int (n,), a column, -1 for a fact that none supports.

        Among the entities that support the fact it is the one that supports most facts of the response (of equals the
        first in the alphabet), as MF counts entities (§4.1).
        """
        supported = self.prediction == 1
        order = sorted(range(len(self.entities)), key=lambda e: (-int(supported[:, e].sum()), self.entities[e]))
        found = np.full(len(self.facts), -1)
        for entity in reversed(order):
            found[supported[:, entity]] = entity
        return found
