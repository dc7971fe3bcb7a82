"""Can one labelled system mend the error rates of the others? Adjusted counts and threshold tuning (VC §5, A.7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from factaudit.audit.core.intervals import Intervals, low_high
from factaudit.audit.core.judged import LEVELS, Judged
from factaudit.audit.core.rows import Row, counted, number, ratio, reasons, without_interval
from factaudit.audit.quantification import by_system
from factaudit.errors import UsageError, hint

#: Predictions counted, plainly or corrected; then thresholds on the score.
METHODS = ("none", "adjusted_counts", "zero_bias_threshold", "bacc_threshold")
#: The calibration_system of a row that is the mean over all calibrations.
CV = "__cv__"
#: A replicate tunes thresholds between so many bins of scores; distinct scores up to this number have a bin each.
SCORE_BINS = 256


def adjustment(
    judged: Judged,
    *,
    levels: Sequence[str] = LEVELS,
    methods: Sequence[str] = METHODS,
    intervals: Intervals | None = None,
) -> list[Row]:
    """Each system of a dataset calibrates in turn; what bias is left in the error rates of the others?

    A row per dataset, level, evaluator, method and calibration_system: calibration_error_rate (its labelled one) and
    calibration_errors (their number), threshold (of the threshold methods), mean_abs_bias and worst_abs_bias over the
    n_systems others, change (= mean_abs_bias - that of method ``none``: negative where the method helps),
    unidentifiable (1 where the calibration system cannot give what the method needs; reason says why). Row ``__cv__``:
    the means over the n_systems calibrations that could be made, and the number of those that could not. n, n_unscored:
    labelled claims (or responses) of all systems that the method could use and could not. Without scores there are no
    threshold rows.

    With intervals, ``_low`` and ``_high`` of calibration_error_rate, both biases and the change: each replicate
    calibrates again, choosing among the observed candidates. Approximated there, and there alone: where a dataset has
    more than `SCORE_BINS` distinct scores, a replicate's candidates lie between that many bins of equally many claims
    (so that its threshold may miss the best one by a bin). A mean of absolute values is pushed up by
    noise and never reaches 0, so read the interval of the change. There are no bounds.
    """
    for method in methods:
        if method not in METHODS:
            raise UsageError(f"adjustment: unknown method {method!r}{hint(method, METHODS)}")
    rows: list[Row] = []
    for level in dict.fromkeys(levels):
        units, systems = judged.at(level), by_system(judged, level)
        for dataset in judged.datasets[1]:
            places = [at for at, key in enumerate(systems.keys) if key["dataset"] == dataset]
            names = [systems.keys[at]["system"] for at in places]
            inside, of = _labelled(units, systems.codes, places)
            cases = [_Case.of(units, at, inside, of, len(places)) for at in range(len(judged.evaluators))]
            used = [[m for m in METHODS if m in methods and (m in METHODS[:2] or case.has_scores)] for case in cases]
            drawn = _replicates(cases, used, units.clusters[inside], dataset, intervals)
            for at, evaluator in enumerate(judged.evaluators):
                about: Row = {"dataset": dataset, "level": level, "evaluator": evaluator}
                rows += [about | row for row in _rows(cases[at], names, used[at], drawn[at], intervals)]
    rows.sort(key=lambda row: row["dataset"])
    return rows


def adjust(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    evaluator: str | None,
    calibrate: str,
    *,
    levels: Sequence[str] = ("claim",),
    methods: Sequence[str] = METHODS,
) -> list[Row]:
    """Calibrate on one labelled system and correct the predicted error rates of the others, labelled or not.

    A row per dataset (where ``calibrate`` has claims), level, evaluator (all, or the one named), method and other
    system: threshold, n (its scored claims), n_unscored, predicted_error_rate (as predicted), adjusted_error_rate,
    labelled_error_rate and bias (= adjusted - labelled) where its scored claims have labels (over those), reason.
    Raises `UsageError` for an unknown evaluator or system, or where no dataset has another system.
    """
    judged = Judged.join(claims, verdicts)
    known = sorted(set(claims["system"].dropna()))
    if calibrate not in known:
        raise UsageError(f"unknown system {calibrate!r}{hint(calibrate, known)}" if known else "no claim has a system")
    if evaluator is not None and evaluator not in judged.evaluators:
        raise UsageError(f"unknown evaluator {evaluator!r}{hint(evaluator, judged.evaluators)}")
    for method in methods:
        if method not in METHODS:
            raise UsageError(f"unknown method {method!r}{hint(method, METHODS)}")
    rows: list[Row] = []
    for level in dict.fromkeys(levels):
        units, systems = judged.at(level), by_system(judged, level)
        for place in [at for at, key in enumerate(systems.keys) if key["system"] == calibrate]:
            dataset = systems.keys[place]["dataset"]
            others = [(o, k["system"]) for o, k in enumerate(systems.keys) if k["dataset"] == dataset and o != place]
            for at in [e for e, name in enumerate(judged.evaluators) if evaluator in (None, name)]:
                case = _Case.of(units, at, *_labelled(units, systems.codes, [place]), 1)
                for other, system in others:
                    row: Row = {"dataset": dataset, "level": level, "evaluator": judged.evaluators[at]}
                    row |= {"calibration_system": calibrate, "system": system}
                    claims_of = np.flatnonzero(systems.codes == other)
                    rows += [row | _corrected(units, at, claims_of, case, method) for method in methods]
    if not rows:
        raise UsageError(
            f"nothing to correct: {calibrate!r} shares no dataset with another system ({', '.join(levels)})"
        )
    return rows


def _labelled(units: Judged, codes: np.ndarray, places: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The labelled claims (or responses) of the systems at ``places``: their rows (m,), and each one's place (m,)."""
    place = np.full(int(codes.max(initial=-1)) + 2, -1, dtype=np.int64)  # the last one is that of code -1
    place[list(places)] = np.arange(len(places))
    rows = np.flatnonzero((place[codes] >= 0) & (units.label >= 0))
    return rows, place[codes[rows]]


@dataclass(frozen=True)
class _Case:
    """The labelled claims (or responses) of the S systems of one dataset, under one evaluator: m of them, or m kinds.

    system: int (m,), 0..n_systems-1; label, prediction, score: (m,), as in `Judged`.
    """

    system: np.ndarray
    label: np.ndarray
    prediction: np.ndarray
    score: np.ndarray
    n_systems: int

    @classmethod
    def of(cls, units: Judged, evaluator: int, rows: np.ndarray, system: np.ndarray, n_systems: int) -> _Case:
        return cls(
            system=system,
            label=units.label[rows].astype(np.int64),
            prediction=units.prediction[evaluator, rows].astype(np.int64),
            score=units.score[evaluator, rows],
            n_systems=n_systems,
        )

    def kinds(self) -> tuple[_Case, np.ndarray]:
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
        codes = ((self.system * len(values) + score) * 2 + self.label) * 3 + self.prediction + 1
        _, first, kind = np.unique(codes, return_index=True, return_inverse=True)
        return (
            replace(
                self,
                system=self.system[first],
                label=self.label[first],
                prediction=self.prediction[first],
                score=values[score[first]],
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


#: The figures of a calibration that get intervals, and those that have a mean over calibrations.
_SPREAD = ("calibration_error_rate", "mean_abs_bias", "worst_abs_bias", "change")
_MEANT = _SPREAD[1:]


#: Per method the replicates of each figure of `_SPREAD`: (replicates, S).
_Drawn = Mapping[str, Mapping[str, np.ndarray]]


def _replicates(
    cases: Sequence[_Case],
    methods: Sequence[Sequence[str]],
    clusters: np.ndarray,
    dataset: str,
    intervals: Intervals | None,
) -> list[_Drawn]:
    """The resampled figures of each evaluator's case, all from the same draws; empty where there is no interval."""
    names, cluster = np.unique(clusters, return_inverse=True)
    if intervals is None or len(names) < 2:
        return [{} for _ in cases]
    from scipy.sparse import csr_array

    reduced = []
    for case in cases:
        kinds, kind = case.kinds()
        # How many claims of each kind a cluster has: what a draw of clusters makes of the kinds is a product.
        ones = np.ones(len(kind))
        reduced.append((kinds, csr_array((ones, (kind, cluster)), shape=(len(kinds.label), len(names)))))
    # Blocks that stay in the processor's cache take half the time.
    width = 16 * max(len(kinds.label) for kinds, _ in reduced)
    blocks: list[list[_Drawn]] = [[] for _ in cases]
    for drawn in intervals.weights(np.ones(len(names), dtype=np.int64), dataset, width=width):
        by_cluster = np.ascontiguousarray(drawn.T)
        for at, (kinds, members) in enumerate(reduced):
            blocks[at].append(_figures(kinds, np.ascontiguousarray((members @ by_cluster).T), methods[at]))
    return [
        {m: {key: np.concatenate([block[m][key] for block in blocks[at]]) for key in _SPREAD} for m in methods[at]}
        for at in range(len(cases))
    ]


def _rows(
    case: _Case, names: Sequence[str], methods: Sequence[str], drawn: _Drawn, intervals: Intervals | None
) -> list[Row]:
    observed = _figures(case, np.ones((1, len(case.label))), methods)
    rows: list[Row] = []
    for method in methods:
        figures = {key: values[0] for key, values in observed[method].items()}
        usable = case.usable(method)
        with_claims = case.has_usable(method)
        why = [_unidentifiable(case, at, method) for at in range(len(names))]
        made = np.flatnonzero(~np.isnan(figures["mean_abs_bias"]))
        about: Row = {"method": method, "n": int(usable.sum()), "n_unscored": int((~usable).sum())}
        for at, name in enumerate(names):
            others = int(with_claims.sum() - with_claims[at])
            row = about | {"calibration_system": name, "n_systems": others, "unidentifiable": int(why[at] is not None)}
            row["calibration_errors"] = int((usable & (case.system == at) & (case.label == 0)).sum())
            row |= {key: number(values[at]) for key, values in figures.items()}
            if intervals is not None:
                row |= _ends(intervals, {key: drawn[method][key][:, at] for key in _SPREAD if drawn})
            reason = [why[at] or "", "" if others else "no other system", _no_threshold(method), without_interval(row)]
            rows.append(row | {"reason": reasons(reason)})
        row = about | {"calibration_system": CV, "n_systems": len(made)}
        row |= {"unidentifiable": sum(reason is not None for reason in why), "calibration_errors": None}
        row |= {key: number(_mean(values[made])) if key in _MEANT else None for key, values in figures.items()}
        if intervals is not None:
            # As the observed mean is over the calibrations that could be made, so is each replicate's.
            row |= _ends(intervals, {key: _mean(drawn[method][key][:, made].T) for key in _MEANT if drawn})
        reason = [f"{name}: {reason}" for name, reason in zip(names, why, strict=True) if reason]
        if len(names) < 2:
            reason.append(f"{counted(len(names), 'system')}: one to calibrate on and another to correct are needed")
        reason += ["a mean over calibrations has no threshold of its own", without_interval(row)]
        rows.append(row | {"reason": reasons(reason)})
    return rows


def _figures(case: _Case, weights: np.ndarray, methods: Sequence[str]) -> dict[str, dict[str, np.ndarray]]:
    """Per method the figures of each of S calibration systems, in each of b weightings of the m claims: (b, S).

    Weights (b, m) are the numbers of times that a claim was drawn; ones give the observed figures.
    """
    found: dict[str, dict[str, np.ndarray]] = {}
    table = _table(case, weights)
    labelled = ratio(table[..., 0, :].sum(-1), table.sum((-1, -2)))
    predicted = ratio(table[..., 0].sum(-1), table.sum((-1, -2)))
    # Uncorrected, every calibration system gives the others the same estimates.
    plain = np.broadcast_to(predicted[:, None], (len(weights), case.n_systems, case.n_systems))
    without, _ = _over_others(plain, labelled, case.has_usable("none"))
    tuned = case.n_systems and set(methods) & set(METHODS[2:])
    ranked = [_Ranked.of(case, at, weights) for at in range(case.n_systems)] if tuned else []
    for method in methods:
        estimates, rates, threshold = plain, labelled, np.full(labelled.shape, np.nan)
        if method == "adjusted_counts":
            estimates = adjusted_counts(plain, table[:, :, None])
        elif method in METHODS[2:] and ranked:
            threshold = np.stack([system.tune(method) for system in ranked], axis=1)
            estimates = np.stack([system.error_rate(threshold) for system in ranked], axis=2)
            rates = np.stack([system.labelled_error_rate() for system in ranked], axis=1)
        mean, worst = _over_others(estimates, rates, case.has_usable(method))
        found[method] = {
            "calibration_error_rate": rates,
            "threshold": threshold,
            "mean_abs_bias": mean,
            "worst_abs_bias": worst,
            "change": mean - without,
        }
    return found


def adjusted_counts(predicted: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Forman's adjusted counts with the error as the positive class: clip((p - FNR) / (TNR - FNR), 0, 1).

    predicted: (...) predicted error rates; table: (..., 2, 2) counts [label, prediction] of the calibration system.
    NaN where that is unidentifiable: no error or nothing else is labelled, or TNR = FNR (Forman 2006; VC A.7).
    """
    errors, others = table[..., 0, :].sum(-1), table[..., 1, :].sum(-1)
    tnr, fnr = ratio(table[..., 0, 0], errors), ratio(table[..., 1, 0], others)
    # Compared as products of counts, which are exact: equal rates must not differ in the last bit.
    same = table[..., 0, 0] * others == table[..., 1, 0] * errors
    return np.clip(ratio(predicted - fnr, np.where(same, 0, tnr - fnr)), 0, 1)


@dataclass(frozen=True)
class _Ranked:
    """The scored claims of one system in the order of their scores.

    scores: (k,), ascending; below: (2, b, k + 1), [label, .., i] the weight of that label among the i lowest scores.
    """

    scores: np.ndarray
    below: np.ndarray

    @classmethod
    def of(cls, case: _Case, system: int, weights: np.ndarray) -> _Ranked:
        rows = np.flatnonzero((case.system == system) & ~np.isnan(case.score))
        rows = rows[np.argsort(case.score[rows], kind="stable")]
        below = np.zeros((2, len(weights), len(rows) + 1))
        weights = weights[:, rows]
        for label in (0, 1):
            np.cumsum(weights * (case.label[rows] == label), axis=1, out=below[label, :, 1:])
        return cls(case.score[rows], below)

    def labelled_error_rate(self) -> np.ndarray:
        return ratio(self.below[0, :, -1], self.below[:, :, -1].sum(0))

    def error_rate(self, thresholds: np.ndarray) -> np.ndarray:
        """The share of scores that are not above the thresholds: (b, T) -> (b, T), NaN where a threshold is."""
        cut = np.searchsorted(self.scores, thresholds, side="right")
        errors = sum(np.take_along_axis(below, cut, axis=1) for below in self.below)
        return np.where(np.isnan(thresholds), np.nan, ratio(errors, self.below[:, :, -1:].sum(0)))

    def tune(self, method: str) -> np.ndarray:
        """The best threshold by zero bias or BAcc, among `candidates`; ties go to the one nearest 0.5: (b,)."""
        thresholds, cuts = candidates(self.scores)
        errors_below, others_below = self.below if len(cuts) == self.below.shape[2] else self.below[:, :, cuts]
        errors, others = self.below[:, :, -1:]
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


def _table(case: _Case, weights: np.ndarray) -> np.ndarray:
    """(b, S, 2, 2): the weight of [system, label, prediction] among the claims that have a prediction."""
    codes = np.where(case.prediction >= 0, case.system * 4 + case.label * 2 + case.prediction, -1)
    table = np.zeros((len(weights), case.n_systems * 4))
    for code in np.unique(codes[codes >= 0]):
        table[:, code] = weights[:, codes == code].sum(1)
    return table.reshape(len(weights), case.n_systems, 2, 2)


def _over_others(estimates: np.ndarray, labelled: np.ndarray, usable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and greatest |estimate - labelled| over the systems other than the calibration system: (b, C) each.

    estimates: (b, C, S), by calibration system and system; labelled: (b, S); usable: bool (S,), systems with claims.
    """
    error = np.abs(estimates - labelled[:, None])
    others = ~np.eye(len(usable), dtype=bool) & usable
    mean = ratio(np.where(others, error, 0).sum(-1), others.sum(-1))
    worst = np.where(others, error, -1).max(-1, initial=-1)
    return mean, np.where(others.any(-1), worst, np.nan)


def _mean(values: np.ndarray) -> np.ndarray:
    """The mean along the first axis of what is defined; NaN where nothing is."""
    return ratio(np.nansum(values, axis=0), (~np.isnan(values)).sum(axis=0))


def _ends(intervals: Intervals, drawn: Mapping[str, np.ndarray]) -> Row:
    row: Row = {f"{key}_{end}": None for key in _SPREAD for end in ("low", "high")}
    return row | {key: number(value) for key, value in low_high(intervals, drawn).items()}


def _unidentifiable(case: _Case, system: int, method: str) -> str | None:
    """Why a system cannot calibrate; None where it can."""
    usable = case.usable(method) & (case.system == system)
    if method == "none":
        return None
    if not usable.any():
        return "no labelled claim that the method can use"
    label, prediction = case.label[usable], case.prediction[usable]
    errors, others = label == 0, label == 1
    if method != "zero_bias_threshold" and not (errors.any() and others.any()):
        return "no labelled error" if others.any() else "labelled errors only"
    if method == "adjusted_counts":
        table = np.bincount(label * 2 + prediction, minlength=4).reshape(2, 2)
        if np.isnan(adjusted_counts(np.array(0.5), table)):
            return "TNR = FNR"
    return None


def _no_threshold(method: str) -> str:
    return "" if method in METHODS[2:] else "the method has no threshold"


def _corrected(units: Judged, evaluator: int, rows: np.ndarray, calibration: _Case, method: str) -> Row:
    """One line of `adjust`: the error rate of one system, ``rows`` of ``units``, after a calibration."""
    label, prediction, score = units.label[rows], units.prediction[evaluator, rows], units.score[evaluator, rows]
    usable = ~np.isnan(score) if method in METHODS[2:] else prediction >= 0
    # As in every audit: the labelled ones where there are any, so that the bias is of the same claims.
    population = label >= 0 if (usable & (label >= 0)).any() else np.ones(len(rows), dtype=bool)
    used = usable & population
    predicted = ratio((prediction[used] == 0).sum(), (prediction[used] >= 0).sum())
    ones = np.ones((1, len(calibration.label)))
    threshold, adjusted = np.array(np.nan), predicted
    why = _unidentifiable(calibration, 0, method)
    if method in METHODS[2:]:
        threshold = _Ranked.of(calibration, 0, ones).tune(method)[0]
        adjusted = ratio((score[used] <= threshold).sum(), 0 if why else used.sum())
    elif method == "adjusted_counts":
        adjusted = adjusted_counts(predicted, _table(calibration, ones)[0, 0])
    labelled = ratio((label[used] == 0).sum(), (label[used] >= 0).sum())
    return {
        "method": method,
        "threshold": number(threshold),
        "n": int(used.sum()),
        "n_unscored": int((population & ~usable).sum()),
        "predicted_error_rate": number(predicted),
        "adjusted_error_rate": number(adjusted),
        "labelled_error_rate": number(labelled),
        "bias": number(adjusted - labelled),
        "reason": reasons(
            [
                f"calibration system: {why}" if why else "",
                "" if used.any() else "no claim that the method can use",
                "no label" if used.any() and np.isnan(labelled) else "",
                _no_threshold(method),
            ]
        ),
    }
