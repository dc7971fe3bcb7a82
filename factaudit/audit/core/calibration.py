"""What one system's labels say of an evaluator: adjusted counts and tuned thresholds (VC §5, A.7; Forman 2006)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.mover import combine_shares
from factaudit.audit.core.rows import Row, ratio
from factaudit.audit.core.shares import Clusters, shares

#: Predictions counted, plainly or corrected; then thresholds on the score.
METHODS = ("none", "adjusted_counts", "zero_bias_threshold", "bacc_threshold")
#: A replicate tunes thresholds between so many bins of scores; distinct scores up to this number have a bin each.
SCORE_BINS = 256


@dataclass(frozen=True)
class Case:
    """m claims (or responses) of S systems of one dataset, under one evaluator, or m kinds of them.

    system: int (m,), 0..n_systems-1; label, prediction, score: (m,), as in `Judged`; cluster: int (m,).
    """

    system: np.ndarray
    label: np.ndarray
    prediction: np.ndarray
    score: np.ndarray
    cluster: np.ndarray
    n_systems: int

    @classmethod
    def of(cls, units: Judged, evaluator: int, rows: np.ndarray, system: np.ndarray, n_systems: int) -> Case:
        return cls(
            system=system,
            label=units.label[rows].astype(np.int64),
            prediction=units.prediction[evaluator, rows].astype(np.int64),
            score=units.score[evaluator, rows],
            cluster=units.clusters[rows],
            n_systems=n_systems,
        )

    def kinds(self) -> tuple[Case, np.ndarray]:
        """The K kinds of claims that the methods can tell apart, at most `SCORE_BINS` scores, and each claim's: (m,).

        A bin of scores is called by its greatest.
        """
        values, score, times = np.unique(self.score, return_inverse=True, return_counts=True)
        scored = times[~np.isnan(values)]
        if len(scored) > SCORE_BINS:
            bins = (np.cumsum(scored) - scored) * SCORE_BINS // scored.sum()
            last = np.flatnonzero(np.diff(bins, append=SCORE_BINS))
            bins = np.append(np.searchsorted(bins[last], bins), len(last))  # NaN, if any, comes last
            values, score = np.append(values[last], np.nan), bins[score]
        codes = ((self.system * len(values) + score) * 3 + self.label + 1) * 3 + self.prediction + 1
        _, first, kind = np.unique(codes, return_index=True, return_inverse=True)
        return (
            replace(
                self,
                system=self.system[first],
                label=self.label[first],
                prediction=self.prediction[first],
                score=values[score[first]],
                cluster=self.cluster[first],
            ),
            kind,
        )

    @property
    def has_scores(self) -> bool:
        return not np.isnan(self.score).all()

    def has_usable(self, method: str) -> np.ndarray:
        """bool (S,): the systems with a claim that a method can use."""
        return np.bincount(self.system[self.usable(method)], minlength=self.n_systems) > 0

    def usable(self, method: str) -> np.ndarray:
        """bool (m,): the claims that a method can use, those with a prediction or those with a score."""
        return ~np.isnan(self.score) if method in METHODS[2:] else self.prediction >= 0


def adjusted_counts(predicted: np.ndarray, table: np.ndarray, *, refuse: bool = True) -> np.ndarray:
    """Forman's adjusted counts with the error as the positive class: clip((p - FNR) / (TNR - FNR), 0, 1).

    predicted: (...) predicted error rates; table: (..., 2, 2) counts [label, prediction] of the calibration system.
    NaN where that is unidentifiable: no error or nothing else is labelled, or TNR <= FNR (Forman 2006; VC A.7). With
    ``refuse=False`` only where TNR = FNR: so are the paper's own tables.
    """
    errors, others = table[..., 0, :].sum(-1), table[..., 1, :].sum(-1)
    tnr, fnr = ratio(table[..., 0, 0], errors), ratio(table[..., 1, 0], others)
    # Compared as products of counts, which are exact: equal rates must not differ in the last bit.
    better = table[..., 0, 0] * others - table[..., 1, 0] * errors
    identified = better > 0 if refuse else better != 0
    return np.clip(ratio(predicted - fnr, np.where(identified, tnr - fnr, 0)), 0, 1)


@dataclass(frozen=True)
class Ranked:
    """The scored claims of one system in the order of their scores.

    scores: (k,), ascending; below: (3, b, k + 1), [label, .., i] the weight of that label (0, 1, none) among the i
    lowest scores.
    """

    scores: np.ndarray
    below: np.ndarray

    @classmethod
    def of(cls, case: Case, system: int, weights: np.ndarray) -> Ranked:
        rows = np.flatnonzero((case.system == system) & ~np.isnan(case.score))
        rows = rows[np.argsort(case.score[rows], kind="stable")]
        below = np.zeros((3, len(weights), len(rows) + 1))
        weights = weights[:, rows]
        for label in (0, 1, -1):
            np.cumsum(weights * (case.label[rows] == label), axis=1, out=below[label, :, 1:])
        return cls(case.score[rows], below)

    def error_rate(self, thresholds: np.ndarray) -> np.ndarray:
        """The share of scores that are not above the thresholds: (b, T) -> (b, T), NaN where a threshold is."""
        cut = np.searchsorted(self.scores, thresholds, side="right")
        errors = sum(np.take_along_axis(below, cut, axis=1) for below in self.below)
        return np.where(np.isnan(thresholds), np.nan, ratio(errors, self.below[:, :, -1:].sum(0)))

    def tune(self, method: str) -> np.ndarray:
        """The best threshold by zero bias or BAcc, among `candidates`; ties go to the one nearest 0.5: (b,)."""
        thresholds, cuts = candidates(self.scores)
        errors_below, others_below = self.below[:2] if len(cuts) == self.below.shape[2] else self.below[:2, :, cuts]
        errors, others = self.below[:2, :, -1:]
        # Weights are whole numbers, so both losses are exact, and a tie is one.
        if method == "zero_bias_threshold":
            loss, defined = errors_below + others_below, errors + others > 0
            loss -= errors
            np.abs(loss, out=loss)
        else:
            loss, defined = others_below * errors, errors * others > 0
            loss -= errors_below * others
        distance = np.where(loss == loss.min(1, keepdims=True), np.abs(thresholds - 0.5), np.inf)
        return np.where(defined[:, 0], thresholds[distance.argmin(1)], np.nan)


def candidates(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The thresholds worth trying on ascending scores in [0, 1], and how many scores each leaves below or at it.

    Midpoints between neighbouring distinct scores, and both ends: 1 (nothing is above it), and 0, or -1 where a score
    is 0, since a prediction is 1 only where the score is *above* the threshold.
    """
    values, first = np.unique(scores, return_index=True)
    middle = (values[:-1] + values[1:]) / 2
    # Of two neighbouring floats the midpoint may be the upper one.
    middle = np.where(middle < values[1:], middle, values[:-1])
    lowest = -1.0 if len(values) and values[0] == 0 else 0.0
    return np.concatenate([[lowest], middle, [1.0]]), np.concatenate([[0], first[1:], [len(scores)]]).astype(np.int64)


def table_of(case: Case, weights: np.ndarray) -> np.ndarray:
    """(b, S, 2, 2): the weight of [system, label, prediction] among the labelled claims that have a prediction."""
    known = (case.prediction >= 0) & (case.label >= 0)
    return _weighed(case.system * 4 + case.label * 2 + case.prediction, known, weights, case.n_systems * 4).reshape(
        len(weights), case.n_systems, 2, 2
    )


def _weighed(codes: np.ndarray, known: np.ndarray, weights: np.ndarray, size: int) -> np.ndarray:
    """(b, size): the weight of each code among the known claims."""
    found = np.zeros((len(weights), size))
    for code in np.unique(codes[known]):
        found[:, code] = weights[:, known & (codes == code)].sum(1)
    return found


def labelled_rates(case: Case, weights: np.ndarray) -> np.ndarray:
    """(b, S): the share of errors among all labels of each system."""
    labels = _weighed(case.system * 2 + case.label, case.label >= 0, weights, case.n_systems * 2)
    labels = labels.reshape(len(weights), case.n_systems, 2)
    return ratio(labels[..., 0], labels.sum(-1))


def unidentifiable(case: Case, system: int, method: str) -> str | None:
    """Why a system cannot calibrate; None where it can."""
    usable = case.usable(method) & (case.system == system) & (case.label >= 0)
    if method == "none":
        return None
    if not usable.any():
        return "no labelled claim that the method can use"
    label, prediction = case.label[usable], case.prediction[usable]
    errors, others = label == 0, label == 1
    if method != "zero_bias_threshold" and not (errors.any() and others.any()):
        return "no labelled error" if others.any() else "labelled errors only"
    if method != "adjusted_counts":
        return None
    cluster = np.unique(case.cluster[usable], return_inverse=True)[1]
    counts = np.zeros((int(cluster.max()) + 1, 4), dtype=np.int64)
    np.add.at(counts, (cluster, label * 2 + prediction), 1)
    clusters = Clusters(np.zeros(len(counts), dtype=np.int64), np.ones(len(counts), dtype=np.int64), counts, 1)
    hits = np.stack([counts[:, 0], counts[:, 2]], 1)  # of errors TNR, of others FNR
    rates = shares(clusters, hits, np.stack([counts[:, :2].sum(1), counts[:, 2:].sum(1)], 1))
    # The test is that of a correction's denominator, at 95 % whatever the confidence of a run's intervals.
    (apart,), ((low,), _) = combine_shares(rates, np.array([1.0, -1.0]), 0.95)
    if apart == 0:
        return "TNR = FNR"
    if apart < 0:
        return "TNR < FNR: the evaluator does worse than chance on it"
    return None if low > 0 else "TNR − FNR is not clear of 0: the evaluator may do no better than chance on it"


def no_threshold(method: str) -> str:
    return "" if method in METHODS[2:] else "the method has no threshold"


def labelled_claims(units: Judged, codes: np.ndarray, places: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The labelled claims (or responses) of the systems at ``places``: their rows (m,), and each one's place (m,)."""
    place = np.full(int(codes.max(initial=-1)) + 2, -1, dtype=np.int64)  # the last one is that of code -1
    place[list(places)] = np.arange(len(places))
    rows = np.flatnonzero((place[codes] >= 0) & (units.label >= 0))
    return rows, place[codes[rows]]


def estimates_of(case: Case, weights: np.ndarray, methods: Sequence[str]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Per method the corrected error rates of S systems by each of S calibrations, and the calibrations' thresholds.

    weights: (b, m), how often each claim was drawn; ones give the observed figures. Gives (b, calibration, system) and
    (b, calibration). Where `unidentifiable` says so, a calibration's are NaN in all weightings.
    """
    table = table_of(case, weights)
    said = _weighed(case.system * 2 + case.prediction, case.prediction >= 0, weights, case.n_systems * 2)
    said = said.reshape(len(weights), case.n_systems, 2)
    predicted = ratio(said[..., 0], said.sum(-1))
    # Uncorrected, every calibration system gives the others the same estimates.
    plain = np.broadcast_to(predicted[:, None], (len(weights), case.n_systems, case.n_systems))
    tuned = case.n_systems and set(methods) & set(METHODS[2:])
    ranked = [Ranked.of(case, at, weights) for at in range(case.n_systems)] if tuned else []
    found = {}
    for method in methods:
        estimates, threshold = plain, np.full(predicted.shape, np.nan)
        if method == "adjusted_counts":
            estimates = adjusted_counts(plain, table[:, :, None])
        elif method in METHODS[2:] and ranked:
            threshold = np.stack([system.tune(method) for system in ranked], axis=1)
            estimates = np.stack([system.error_rate(threshold) for system in ranked], axis=2)
        found[method] = estimates, threshold
    return found


@dataclass(frozen=True)
class Resampled:
    """Of B bootstrap replicates: estimates, per method (B, calibration, system); labelled (B, system)."""

    estimates: Mapping[str, np.ndarray]
    labelled: np.ndarray
    n_clusters: int


def resampled(case: Case, methods: Sequence[str], dataset: str, intervals: Intervals | None) -> Resampled | None:
    """Resample whole clusters, calibrate and correct again; None where there is nothing to resample."""
    from scipy.sparse import csr_array  # slow to import

    names, cluster = np.unique(case.cluster, return_inverse=True)
    if intervals is None or len(names) < 2:
        return None
    kinds, kind = case.kinds()
    # How many claims of each kind a cluster has: what a draw of clusters makes of the kinds is a product.
    members = csr_array((np.ones(len(kind)), (kind, cluster)), shape=(len(kinds.label), len(names)))
    blocks: dict[str, list[np.ndarray]] = {method: [] for method in methods}
    labelled = []
    # Blocks that stay in the processor's cache take half the time.
    for drawn in intervals.weights(np.ones(len(names), dtype=np.int64), dataset, width=16 * len(kinds.label)):
        weights = np.ascontiguousarray((members @ np.ascontiguousarray(drawn.T)).T)
        labelled.append(labelled_rates(kinds, weights))
        for method, (estimates, _) in estimates_of(kinds, weights, methods).items():
            blocks[method].append(estimates)
    return Resampled({m: np.concatenate(each) for m, each in blocks.items()}, np.concatenate(labelled), len(names))


def mean_of(values: np.ndarray) -> np.ndarray:
    """The mean along the first axis of what is defined; NaN where nothing is."""
    return ratio(np.nansum(values, axis=0), (~np.isnan(values)).sum(axis=0))


def ends_of(
    intervals: Intervals, drawn: Resampled | None, method: str, of: Sequence[int], system: int, row: Row
) -> Row:
    """The interval of an adjusted rate, and of its bias: of one system, by the mean over some calibrations."""
    found: Row = {f"{key}_{end}": None for key in ("adjusted_error_rate", "bias") for end in ("low", "high")}
    if drawn is None or row["adjusted_error_rate"] is None:
        return found
    # As the observed mean is over the calibrations that could be made, so is each replicate's.
    rates = mean_of(drawn.estimates[method][:, of, system].T)
    for key, values in (("adjusted_error_rate", rates), ("bias", rates - drawn.labelled[:, system])):
        if row[key] is not None:
            low, high = (float(end) for end in intervals.ends(values, drawn.n_clusters))
            if low < high:  # where nothing varied when it was resampled, something might in the next claims
                found |= {f"{key}_low": min(low, row[key]), f"{key}_high": max(high, row[key])}
    return found


def over_others(estimates: np.ndarray, labelled: np.ndarray, usable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and greatest |estimate - labelled| over the systems other than the calibration system: (b, C) each.

    estimates: (b, C, S), by calibration system and system; labelled: (b, S); usable: bool (S,), systems with claims.
    """
    error = np.abs(estimates - labelled[:, None])
    others = ~np.eye(len(usable), dtype=bool) & usable
    mean = ratio(np.where(others, error, 0).sum(-1), others.sum(-1))
    worst = np.where(others, error, -1).max(-1, initial=-1)
    return mean, np.where(others.any(-1), worst, np.nan)
