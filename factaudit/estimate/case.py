"""One dataset at one level with its labels: what every method reads, each thing computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from factaudit.estimate.columns import Columns, columns_of
from factaudit.estimate.corpus import Corpus
from factaudit.estimate.design import Draw, design_effect, label_weights
from factaudit.estimate.hierarchical import Posterior, fit, point_fit, probabilities
from factaudit.estimate.rates import fitted, rate_draws
from factaudit.signature import digest


@dataclass(frozen=True)
class Settings:
    """How rates are estimated.

    target: ``corpus`` (the claims at hand) or ``population`` (what they were drawn from, documents at random).
    transfer: give rates also for systems without labels of their own.
    """

    target: str = "corpus"
    confidence: float = 0.95
    seed: int = 0
    transfer: bool = False


@dataclass(frozen=True)
class Case:
    """A corpus, the draw that its labels came from, and settings.

    ``draw`` may hold claims that got no label. Everything here is over the corpus's rows, in its order.
    """

    corpus: Corpus
    draw: Draw
    settings: Settings = field(default_factory=Settings)

    def random(self, purpose: str) -> np.random.Generator:
        """A generator of its own for each purpose: what one method draws changes no other's figures."""
        names = digest(self.corpus.dataset, self.corpus.level, purpose)
        return np.random.default_rng([self.settings.seed, int(names, 16)])

    @cached_property
    def rows(self) -> np.ndarray:
        """int (n,): the labelled rows, ascending."""
        return np.flatnonzero(self.corpus.labelled)

    @cached_property
    def n_labels(self) -> np.ndarray:
        """int (S,)"""
        return np.bincount(self.corpus.system[self.rows], minlength=len(self.corpus.systems))

    @cached_property
    def columns(self) -> Columns:
        return columns_of(self.corpus.score, self.corpus.evaluators, self.corpus.stratum)

    @cached_property
    def labels_worth(self) -> float:
        """How many independent labels one is worth: less than 1 where labels of one response are alike."""
        system, error = self.corpus.system[self.rows], self.corpus.error[self.rows]
        mode = point_fit(self.columns, self.rows, system, error, len(self.corpus.systems), tau=1.0)
        p = probabilities(mode, self.columns, self.corpus.system, self.rows)
        return 1 / design_effect((error - p) / np.sqrt(p * (1 - p)), self.corpus.response[self.rows])

    @cached_property
    def posterior(self) -> Posterior:
        system, error = self.corpus.system[self.rows], self.corpus.error[self.rows]
        return fit(
            self.columns,
            self.rows,
            system,
            error,
            len(self.corpus.systems),
            self.random("posterior"),
            weight=self.labels_worth,
        )

    @cached_property
    def fitted(self) -> np.ndarray:
        """float64 (N,): P(error) of each claim or response by the model."""
        return fitted(self.posterior, self.columns, self.corpus.system)

    @cached_property
    def tau(self) -> float:
        """The spread of the system effects that the labels make most likely."""
        return max(self.posterior.modes, key=lambda mode: mode.log_weight).tau

    @cached_property
    def draws(self) -> np.ndarray:
        """float64 (D, S): draws of each system's error rate."""
        corpus = self.corpus
        documents = corpus.document if self.settings.target == "population" else None
        return rate_draws(self.posterior, self.columns, corpus.system, corpus.error, self.random("rates"), documents)

    @cached_property
    def weights(self) -> np.ndarray:
        """float64 (n,): how many claims each labelled row stands for, in the order of ``rows``."""
        drawn = label_weights(self.draw, self.corpus.system[self.draw.row], self.corpus.labelled[self.draw.row])
        weight = np.zeros(len(self.corpus.error))
        weight[self.draw.row] = drawn
        return weight[self.rows]

    @cached_property
    def draw_of(self) -> Mapping[int, Draw]:
        """The draw within each system that it reached."""
        system = self.corpus.system[self.draw.row]
        return {int(name): self.draw.only(system == name) for name in np.unique(system)}

    @cached_property
    def population_variance(self) -> np.ndarray:
        """float64 (S,): how much a system's rate varies from one set of documents to the next; 0 for the corpus."""
        corpus = self.corpus
        if self.settings.target == "corpus":
            return np.zeros(len(corpus.systems))
        mode = point_fit(
            self.columns,
            self.rows,
            corpus.system[self.rows],
            corpus.error[self.rows],
            len(corpus.systems),
            self.tau,
            self.labels_worth,
        )
        p = probabilities(mode, self.columns, corpus.system)
        sizes = np.maximum(corpus.sizes, 1)
        mean = np.bincount(corpus.system, p, minlength=len(sizes)) / sizes
        code = np.unique(corpus.system * (int(corpus.document.max()) + 1) + corpus.document, return_inverse=True)[1]
        of_code = np.zeros(int(code.max()) + 1, dtype=np.int64)
        of_code[code] = corpus.system
        between = np.bincount(of_code, np.bincount(code, p - mean[corpus.system]) ** 2, minlength=len(sizes))
        within = np.bincount(corpus.system, p * (1 - p), minlength=len(sizes))
        return (between + within) / sizes**2
