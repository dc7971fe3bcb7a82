"""FActScore against people: how near the predicted scores come, and what they find.

People's score of a response is supported / labelled facts: of the columns ``human_supported``, ``human_not_supported``
and ``human_irrelevant`` where the claims have them (numbers, the same in all rows of a response), else of the labels.
It knows no length penalty. (Min et al. 2023, §3 and §4.2)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from factaudit.audit.core.declare import Audit, Column, shared
from factaudit.audit.core.facts import HUMAN, facts_of, labelled, scores_of
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.means import GAMMA, percentiles
from factaudit.audit.core.plot import DotPlot, Lines
from factaudit.audit.core.rows import Row

Irrelevant = Literal["exclude", "unsupported"]
#: "Score > t" for these t, as a classifier of responses.
THRESHOLDS = tuple(round(0.1 * i, 1) for i in range(1, 10))
#: Bins of the predicted score in the calibration rows.
BINS = 10
#: The machine's figures that are compared with the human score.
FIGURES = ("init_score", "score")
#: And the share of the facts that both have judged, with people's share of the same facts.
SAME_FACTS = "same_facts"


def agreement(
    judged: Judged, *, irrelevant: Irrelevant = "exclude", gamma: float = GAMMA, intervals: Intervals | None = None
) -> list[Row]:
    """Predicted against human scores, a row per evaluator, system (first ``__all__`` where there are several), figure.

    Over all responses: n_responses, human_respond_ratio (the share that people annotated), n_annotated and
    human_annotated (number and mean of the human scores). Over those that have both scores: n, n_missing (a human
    score, but none predicted), human and predicted means, bias (predicted - human), mae, rmse, pearson_r and spearman_r
    with p-values. ``init_score`` and ``score`` are of all facts, people's score of those that they labelled; the figure
    ``same_facts`` is of the facts that both have judged, on both sides. Intervals (``_low``, ``_high``) resample
    responses. A correlation of fewer than three, or of a constant, is None with a reason.
    """
    rows = []
    for key, human, annotated, predicted in _groups(judged, irrelevant, gamma):
        known = ~np.isnan(human)
        labelled = not np.isnan(predicted[SAME_FACTS]).all()  # of some annotations only the scores are published
        for figure in (*FIGURES, SAME_FACTS) if labelled else FIGURES:
            pairs = _pairs(predicted.get(f"{figure}_human", human), predicted[figure])
            told: Row = {
                "figure": figure,
                "irrelevant": irrelevant,
                "n": len(pairs),
                "n_missing": int(known.sum()) - len(pairs),
                "n_annotated": int(known.sum()),
                "human_annotated": float(human[known].mean()) if known.any() else None,
                "n_responses": len(human),
                "human_respond_ratio": float(annotated.mean()),
            }
            rows.append(key | told | errors(pairs, intervals))
    return rows


def thresholds(
    judged: Judged,
    *,
    irrelevant: Irrelevant = "exclude",
    gamma: float = GAMMA,
    grid: Sequence[float] = THRESHOLDS,
    intervals: Intervals | None = None,
) -> list[Row]:
    """For each evaluator, system, figure and t: does "predicted > t" find the responses whose human score is > t?

    Rows: threshold, n, tp, tn, fp, fn, n_human (human > t), n_predicted, accuracy, precision, recall, f1 (None where a
    denominator is 0), and best: whether no other t has a higher f1.
    """
    rows: list[Row] = []
    for key, human, _, predicted in _groups(judged, irrelevant, gamma):
        for figure in FIGURES:
            pairs = _pairs(human, predicted[figure])
            mine = [key | {"figure": figure} | classified(pairs, t) for t in grid]
            best = max((row["f1"] for row in mine if row["f1"] is not None), default=None)
            rows += [row | {"best": best is not None and row["f1"] == best} for row in mine]
    return rows


def calibration(
    judged: Judged,
    *,
    irrelevant: Irrelevant = "exclude",
    gamma: float = GAMMA,
    bins: int = BINS,
    intervals: Intervals | None = None,
) -> list[Row]:
    """The mean human score of responses by their predicted one (init_score), in ``bins`` equal steps of [0, 1].

    Rows (empty bins are left out): bin (1..bins), low, high, n, predicted, human.
    """
    rows: list[Row] = []
    for key, human, _, predicted in _groups(judged, irrelevant, gamma):
        pairs = _pairs(human, predicted["init_score"])
        which = np.minimum((pairs[:, 1] * bins).astype(int), bins - 1)
        for one in np.unique(which):
            inside = pairs[which == one]
            ends = {"bin": int(one) + 1, "low": float(one / bins), "high": float((one + 1) / bins)}
            means = {"predicted": float(inside[:, 1].mean()), "human": float(inside[:, 0].mean())}
            rows.append(key | ends | {"n": len(inside)} | means)
    return rows


# -------------------------------------------------------------------------------------------------------- its parts


def _groups(
    judged: Judged, irrelevant: str, gamma: float
) -> Iterator[tuple[Row, np.ndarray, np.ndarray, Mapping[str, np.ndarray]]]:
    """Of each evaluator and system: people's scores, whether they annotated, and the predicted scores, by response."""
    facts = facts_of(judged)
    human, annotated = facts.human(irrelevant), facts.responses[HUMAN[0]].notna().to_numpy()
    for at, evaluator in enumerate(judged.evaluators):
        scores = scores_of(facts, judged, at, gamma)
        for key, inside in facts.systems():
            compared = (*FIGURES, SAME_FACTS, f"{SAME_FACTS}_human")
            predicted = {figure: scores.figures[figure][inside] for figure in compared}
            names = {"dataset": key["dataset"], "evaluator": evaluator, "system": key["system"]}
            yield names, human[inside], annotated[inside], predicted


def _pairs(human: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """(human, predicted) of the responses that have both: float64 (n, 2)."""
    both = np.column_stack([human, predicted])
    return both[~np.isnan(both).any(axis=1)]


def classified(pairs: np.ndarray, t: float) -> Row:
    """What "predicted > t" finds of "people's score > t"; pairs (human, predicted): float64 (n, 2)."""
    true, found = pairs[:, 0] > t, pairs[:, 1] > t
    tp, fp, fn = int((true & found).sum()), int((~true & found).sum()), int((true & ~found).sum())
    n = len(pairs)
    return {
        "threshold": t,
        "n": n,
        "tp": tp,
        "tn": n - tp - fp - fn,
        "fp": fp,
        "fn": fn,
        "n_human": tp + fn,
        "n_predicted": tp + fp,
        "accuracy": (n - fp - fn) / n if n else None,
        "precision": tp / (tp + fp) if tp + fp else None,
        "recall": tp / (tp + fn) if tp + fn else None,
        "f1": 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else None,
        "reason": None if tp + fn and tp + fp else "no response is above the threshold",
    }


def errors(pairs: np.ndarray, intervals: Intervals | None = None) -> Row:
    """How near predicted scores come to people's (see `agreement`); pairs (human, predicted): float64 (n, 2)."""
    from scipy import stats  # slow to import, here and below

    row: Row = dict.fromkeys(
        f"{key}{end}" for key in ("human", "predicted", "bias", "mae", "rmse") for end in ("", "_low", "_high")
    )
    for key in ("pearson", "spearman"):
        row |= dict.fromkeys((f"{key}_r", f"{key}_r_low", f"{key}_r_high", f"{key}_p"))
    n = len(pairs)
    if not n:
        return row | {"reason": "no response has both scores"}
    row |= {key: float(value[0]) for key, value in _figures(pairs[None]).items() if not np.isnan(value[0])}
    varied = n >= 3 and bool(np.all(np.ptp(pairs, axis=0) > 0))
    if varied:
        row["pearson_p"] = float(stats.pearsonr(pairs[:, 0], pairs[:, 1]).pvalue)
        row["spearman_p"] = float(stats.spearmanr(pairs[:, 0], pairs[:, 1]).pvalue)
    else:
        row["pearson_r"] = row["spearman_r"] = None
    if n > 1 and intervals is not None:
        draws = np.random.default_rng(intervals.seed).integers(0, n, (intervals.replicates, n))
        for key, values in _figures(pairs[draws]).items():
            if row[key] is not None:
                row[f"{key}_low"], row[f"{key}_high"] = percentiles(values, intervals)
    return row | {"reason": None if varied else "correlations: fewer than three responses, or one score is constant"}


def _figures(pairs: np.ndarray) -> dict[str, np.ndarray]:
    """The figures of each of r sets of pairs (r, n, 2), each (r,); NaN where a correlation does not exist."""
    from scipy import stats

    human, predicted = pairs[..., 0], pairs[..., 1]
    error = predicted - human
    ranks = stats.rankdata(pairs, axis=1)
    return {
        "human": human.mean(axis=1),
        "predicted": predicted.mean(axis=1),
        "bias": error.mean(axis=1),
        "mae": np.abs(error).mean(axis=1),
        "rmse": np.sqrt((error**2).mean(axis=1)),
        "pearson_r": pearson(human, predicted),
        "spearman_r": pearson(ranks[..., 0], ranks[..., 1]),
    }


def pearson(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Pearson's r along the last axis; NaN where one side is constant."""
    a, b = a - a.mean(axis=-1, keepdims=True), b - b.mean(axis=-1, keepdims=True)
    product = np.sqrt((a**2).sum(axis=-1) * (b**2).sum(axis=-1))
    flat = product < 1e-12
    return np.where(flat, np.nan, (a * b).sum(axis=-1) / np.where(flat, 1.0, product))


# ------------------------------------------------------------------------------------------------------ declaration


_KEYS: dict[str, Column] = {
    **shared("dataset", "evaluator"),
    "system": Column(
        "system", "text", "the system that wrote the responses", key=True, values={"__all__": "all systems"}
    ),
}
_FIGURE = Column(
    "figure",
    "text",
    "of the machine's: with the length penalty or without, of all facts; or of the facts that people labelled",
    key=True,
    values={"init_score": "without penalty", "score": "with penalty", "same_facts": "on the same facts"},
)
_OPTIONS = {
    "irrelevant": "facts that people found irrelevant: `exclude`, or count them as `unsupported`",
    "gamma": "γ of the length penalty; 0 turns it off",
}
_ANNOTATED = "all responses, those with a human score, their mean score, and the share that people annotated"
_COUNTS = "true and false positives and negatives"
_FOUND = "over responses"

AUDITS = (
    Audit(
        name="factscore_agreement",
        place=5,
        title="Predicted FActScore against people's",
        question="How near do predicted FActScores come to people's?",
        source="Min et al. 2023, §4.2",
        text="Over the responses that both have scored; people's score knows no length penalty.",
        formula="Bias = predicted − people's; p-values are of no correlation.",
        columns=_KEYS
        | {
            "figure": _FIGURE,
            "irrelevant": Column(
                "irrelevant facts", "text", "what became of facts that people found irrelevant", shown=False
            ),
            **shared("n"),
            "n_missing": Column("not predicted", "count", "people's scores without a predicted one", shown="any"),
            "human": Column("people's", "percent", "mean scores", interval=True),
            "predicted": Column("predicted", "percent", "mean scores", interval=True),
            "bias": Column("bias", "points", "errors of the predicted scores", interval=True),
            "mae": Column("MAE", "points", "errors of the predicted scores", interval=True, signed=False),
            "rmse": Column("RMSE", "points", "errors of the predicted scores", interval=True, signed=False),
            "pearson_r": Column("Pearson r", "number", "over responses", interval=True, digits=3),
            "spearman_r": Column("Spearman ρ", "number", "over responses", interval=True, digits=3),
            "pearson_p": Column("Pearson p", "p", "of no correlation", shown=False),
            "spearman_p": Column("Spearman p", "p", "of no correlation", shown=False),
            "n_responses": Column("responses", "count", _ANNOTATED, shown=False),
            "n_annotated": Column("annotated", "count", _ANNOTATED, shown=False),
            "human_annotated": Column("people's, all annotated", "percent", _ANNOTATED, shown=False),
            "human_respond_ratio": Column("human respond ratio", "percent", _ANNOTATED, shown=False),
            **shared("reason"),
        },
        options=_OPTIONS,
        compute=agreement,
        applies=labelled,
        plots=(
            DotPlot(
                what="Errors of predicted FActScores", keys=("bias", "mae"), groups=("system",), guides={"bias": 0.0}
            ),
        ),
    ),
    Audit(
        name="factscore_thresholds",
        place=7,
        title="Finding responses that are good enough",
        question="Does “predicted > t” find the responses whose score by people is > t?",
        formula="Precision, recall, F1 and accuracy over responses; best: the highest F1.",
        columns=_KEYS
        | {
            "figure": _FIGURE,
            "threshold": Column("t", "number", "the threshold, strictly exceeded", key=True, digits=2),
            **shared("n"),
            **{name: Column(name.upper(), "count", _COUNTS) for name in ("tp", "tn", "fp", "fn")},
            "accuracy": Column("accuracy", "percent", _FOUND),
            "precision": Column("precision", "percent", _FOUND),
            "recall": Column("recall", "percent", _FOUND),
            "f1": Column("F1", "number", _FOUND, digits=3),
            "best": Column("best", "text", "whether no other threshold has a higher F1"),
            "n_human": Column("people's above", "count", "responses above the threshold", shown=False),
            "n_predicted": Column("predicted above", "count", "responses above the threshold", shown=False),
            **shared("reason"),
        },
        options=_OPTIONS | {"grid": "the thresholds"},
        compute=thresholds,
        applies=labelled,
    ),
    Audit(
        name="factscore_calibration",
        place=8,
        title="People's scores by predicted score",
        question="Do responses of a predicted score have that score by people?",
        text="Responses in equal bins of the predicted score (without the penalty).",
        formula="Mean predicted and mean people's score of each bin.",
        columns=_KEYS
        | {
            "bin": Column("bin", "count", "equal steps of the predicted score", key=True),
            **shared("n"),
            "low": Column("from", "percent", "ends of the bin", shown=False),
            "high": Column("to", "percent", "ends of the bin", shown=False),
            "predicted": Column("predicted", "percent", "mean scores"),
            "human": Column("people's", "percent", "mean scores"),
        },
        options=_OPTIONS | {"bins": "their number"},
        compute=calibration,
        applies=labelled,
        plots=(
            Lines(
                what="People's score by predicted score",
                x="bin",
                x_label="bin of the predicted score",
                keys=("human", "predicted"),
                groups=("system",),
            ),
        ),
    ),
)
