"""The labels of a sample in the order in which they were drawn: what a confidence sequence bets on, part by part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from factaudit.estimate.estimation_case import RateEstimationCase
from factaudit.stats.confidence_sequences import LabelLookBlock
from factaudit.stats.hierarchical_regression import error_probabilities_at_mode

#: A phase is read in at most so many parts: what the earlier ones say of the model is used for the later ones.
MAX_PARTS = 4
#: The spread of the system effects of the model that predicts.
PREDICTION_EFFECT_SCALE = 1.0
#: Predictions are kept this far from 0 and 1, those of scores alone further.
PREDICTION_MARGIN, SCORE_MARGIN = 0.01, 0.05
#: Pooled labels' worth in the share of errors that a system's own labels predict.
SHARE_PRIOR_LABELS = 2.0


@dataclass(frozen=True)
class LabelSequencePart:
    """Labels of one part of a phase, and what was known before it.

    phase: the look that it belongs to, from 0; at: int (n,), places in the draw; probability: float64 (n,), the share
    of the claims then left in its stratum that the part drew; is_left: bool (N,), claims that no earlier part drew;
    predictions: float64 (3, N), P(error) without labels of this part or later: by the system's share of errors so far,
    by the mean of that and the model's, and by the model; is_covered: bool (S,), whether the part has a label of each
    stratum of the system.
    """

    phase: int
    at: np.ndarray
    probability: np.ndarray
    is_left: np.ndarray
    predictions: np.ndarray
    is_covered: np.ndarray


@dataclass(frozen=True)
class LabelSequence:
    """The parts of a case's draw. n_phases: the first phases, whose claims people have all judged; others wait."""

    case: RateEstimationCase
    n_phases: int

    @cached_property
    def parts(self) -> list[LabelSequencePart]:
        """Those that have any label, in their order."""
        return list(self._iterate_parts())

    @cached_property
    def has_undecided(self) -> bool:
        """Whether a claim of the phases in use has no label: it counts as either."""
        draw = self.case.draw
        return bool(np.isnan(self.case.corpus.error[draw.rows[draw.phase < self.n_phases]]).any())

    def build_blocks(self, coefficient: np.ndarray, undecided: np.ndarray) -> Iterator[tuple[int, LabelLookBlock]]:
        """The blocks of a weighted sum of the systems' rates, each with its phase.

        coefficient: float64 (S,), of each system's rate; undecided: float64 (S,), 1 or 0, what claims of each system
        that nobody could decide count as, so that bounds come from two sequences.
        """
        corpus, draw = self.case.corpus, self.case.draw
        error = np.where(np.isnan(corpus.error), undecided[corpus.system], corpus.error)
        weight = coefficient[corpus.system] / corpus.system_sizes[corpus.system]
        inside = weight != 0
        for part in self.parts:
            mine = inside[draw.rows[part.at]]
            rows = draw.rows[part.at[mine]]
            if not len(rows) or not part.is_covered[np.unique(corpus.system[inside])].all():
                continue
            left = part.is_left & inside
            least, greatest = (
                _find_extreme_values_by_system(part.predictions, left, corpus.system, end) for end in (0, 1)
            )
            rest = part.predictions[:, left]
            p = float(np.clip(rest[0].mean(), 0.02, 0.5))
            yield (
                part.phase,
                LabelLookBlock(
                    label=error[rows],
                    predictions=part.predictions[:, rows],
                    prediction_low=least[:, corpus.system[rows]],
                    prediction_high=greatest[:, corpus.system[rows]],
                    coefficient=weight[rows],
                    probability=part.probability[mine],
                    predicted_rest=rest @ weight[left],
                    known=float(weight[inside & ~part.is_left] @ error[inside & ~part.is_left]),
                    variance=p * (1 - p),
                ),
            )

    def _iterate_parts(self) -> Iterator[LabelSequencePart]:
        corpus, draw = self.case.corpus, self.case.draw
        is_left = np.ones(len(corpus.error), dtype=bool)
        n_systems = len(corpus.systems)
        for phase in range(self.n_phases):
            here = np.flatnonzero(draw.phase == phase)
            if not len(here):
                continue
            code, size = np.unique(draw.stratum[here], return_inverse=True, return_counts=True)[1:]
            order = np.argsort(code, kind="stable")
            rank = np.empty(len(here), dtype=np.int64)
            rank[order] = np.arange(len(here)) - np.searchsorted(code[order], code[order])
            n_parts = int(min(MAX_PARTS, size.min()))
            part_of = rank * n_parts // size[code]
            frame = draw.frame_size[here].astype(np.float64)
            strata = np.unique(code, return_index=True)[1]
            known = np.bincount(corpus.system[draw.rows[here[strata]]], frame[strata], n_systems)
            covered = known >= np.bincount(corpus.system[is_left], minlength=n_systems) - 0.5
            for number in range(n_parts):
                inside = part_of == number
                before = np.bincount(code, part_of < number)[code]
                taken = np.bincount(code, inside)[code]
                yield LabelSequencePart(
                    phase,
                    here[inside],
                    (taken / (frame - before))[inside],
                    is_left.copy(),
                    self._predict_errors(~is_left),
                    covered,
                )
                is_left[draw.rows[here[inside]]] = False

    def _predict_errors(self, is_known: np.ndarray) -> np.ndarray:
        """P(error) of all claims by the labels of some: float64 (3, N)."""
        corpus = self.case.corpus
        error = np.where(is_known, corpus.error, np.nan)
        labelled = ~np.isnan(error)
        if not labelled.any():
            score = np.where(np.isnan(corpus.score[0]), 0.5, corpus.score[0])
            return _mix_predictions(np.zeros(len(error)), np.clip(1 - score, SCORE_MARGIN, 1 - SCORE_MARGIN))
        n_systems = len(corpus.systems)
        pooled = (error[labelled].sum() + 0.5) / (labelled.sum() + 1)
        errors = np.bincount(corpus.system[labelled], error[labelled], n_systems)
        labels = np.bincount(corpus.system[labelled], minlength=n_systems)
        share = (errors + SHARE_PRIOR_LABELS * pooled) / (labels + SHARE_PRIOR_LABELS)
        case = RateEstimationCase(replace(corpus, error=error), self.case.draw, self.case.options)
        mode = case.fit_mode(PREDICTION_EFFECT_SCALE, 1.0)
        model = error_probabilities_at_mode(mode, self.case.covariates, corpus.system)
        return _mix_predictions(share[corpus.system], np.clip(model, PREDICTION_MARGIN, 1 - PREDICTION_MARGIN))


def _mix_predictions(share: np.ndarray, model: np.ndarray) -> np.ndarray:
    return np.stack([share, (share + model) / 2, model])


def _find_extreme_values_by_system(values: np.ndarray, mask: np.ndarray, system: np.ndarray, end: int) -> np.ndarray:
    """The least (``end`` 0) or greatest value of each system's claims in a mask: float64 (V, S)."""
    found = np.full((len(values), int(system.max(initial=0)) + 1), (np.inf, -np.inf)[end])
    for at, row in enumerate(values):
        (np.minimum, np.maximum)[end].at(found[at], system[mask], row[mask])
    return found
