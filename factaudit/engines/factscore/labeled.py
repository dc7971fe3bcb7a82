"""FActScore against people's labels: the human score, and how near the machine comes (Min et al. 2023, §3 and §4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from factaudit.tables import claim_positions

#: "Score ≥ t" for these t, as a classifier of responses.
THRESHOLDS = tuple(round(0.1 * i, 1) for i in range(1, 10))
#: Bins of the predicted score in the calibration rows.
BINS = 10
#: The machine's figures that are compared with the human score, which knows no length penalty.
FIGURES = ("init_score", "score")

Row = dict[str, Any]


def human_score(counts: Mapping[str, int] | None, irrelevant: str = "exclude") -> float | None:
    """S / (S + NS), or S / (S + NS + IR) where irrelevant facts count as ``unsupported``; None without such a fact.

    ``counts``: n_supported, n_not_supported and n_irrelevant over a response's relevant sentences.
    """
    if counts is None:
        return None
    n = counts["n_supported"] + counts["n_not_supported"]
    n += counts["n_irrelevant"] if irrelevant == "unsupported" else 0
    return counts["n_supported"] / n if n else None


def agreement(
    responses: Sequence[Row],
    *,
    irrelevant: str = "exclude",
    replicates: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> list[Row]:
    """Predicted against human scores, a row per evaluator, system (`__all__` besides) and figure.

    ``responses`` are the rows of a run (``responses.jsonl``). Over all of them: n_responses, human_respond_ratio (the
    share that people annotated), n_annotated and human_annotated (number and mean of the human scores). Over those
    that have both scores: n, n_missing (a human score, but none predicted), human and predicted means, bias
    (predicted − human), mae, rmse, pearson_r and spearman_r with p-values. Intervals (``_low``, ``_high``) resample
    responses. A correlation of fewer than three, or of a constant, is None with a reason.
    """
    rows = []
    for evaluator, system, members in _groups(responses):
        human = [human_score(row.get("human"), irrelevant) for row in members]
        judged = sum(value is not None for value in human)
        for figure in FIGURES:
            pairs = _pairs(members, human, evaluator, figure)
            told: Row = {
                "evaluator": evaluator,
                "system": system,
                "figure": figure,
                "irrelevant": irrelevant,
                "n": len(pairs),
                "n_missing": judged - len(pairs),
                "n_annotated": judged,
                "human_annotated": float(np.mean([one for one in human if one is not None])) if judged else None,
                "n_responses": len(members),
                "human_respond_ratio": sum(row.get("human") is not None for row in members) / len(members),
            }
            rows.append(told | _errors(pairs, replicates, seed, confidence))
    return rows


def thresholds(
    responses: Sequence[Row], *, irrelevant: str = "exclude", grid: Sequence[float] = THRESHOLDS
) -> list[Row]:
    """For each evaluator, system, figure and t: does "predicted ≥ t" find the responses whose human score is ≥ t?

    Rows: threshold, n, n_human (human ≥ t), n_predicted, precision, recall, f1; None where a denominator is 0.
    """
    rows = []
    for evaluator, system, members in _groups(responses):
        human = [human_score(row.get("human"), irrelevant) for row in members]
        for figure in FIGURES:
            pairs = _pairs(members, human, evaluator, figure)
            for t in grid:
                true, found = pairs[:, 0] >= t, pairs[:, 1] >= t
                hits, n_true, n_found = int((true & found).sum()), int(true.sum()), int(found.sum())
                rows.append(
                    {
                        "evaluator": evaluator,
                        "system": system,
                        "figure": figure,
                        "threshold": t,
                        "n": len(pairs),
                        "n_human": n_true,
                        "n_predicted": n_found,
                        "precision": hits / n_found if n_found else None,
                        "recall": hits / n_true if n_true else None,
                        "f1": 2 * hits / (n_true + n_found) if n_true + n_found else None,
                        "reason": None if n_true and n_found else "no response reaches the threshold",
                    }
                )
    return rows


def calibration(responses: Sequence[Row], *, irrelevant: str = "exclude", bins: int = BINS) -> list[Row]:
    """The mean human score of responses by their predicted one (init_score), in ``bins`` equal steps of [0, 1].

    Rows (empty bins are left out): bin (1..bins), low, high, n, predicted, human.
    """
    rows = []
    for evaluator, system, members in _groups(responses):
        human = [human_score(row.get("human"), irrelevant) for row in members]
        pairs = _pairs(members, human, evaluator, "init_score")
        which = np.minimum((pairs[:, 1] * bins).astype(int), bins - 1)
        for number in np.unique(which):
            inside = pairs[which == number]
            rows.append(
                {
                    "evaluator": evaluator,
                    "system": system,
                    "bin": int(number) + 1,
                    "low": int(number) / bins,
                    "high": (int(number) + 1) / bins,
                    "n": len(inside),
                    "predicted": float(inside[:, 1].mean()),
                    "human": float(inside[:, 0].mean()),
                }
            )
    return rows


def discrimination(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    *,
    replicates: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> list[Row]:
    """How well scores tell supported from unsupported facts: the area under the ROC curve, per evaluator and system.

    Rows: n (labelled facts with a score), n_unscored (labelled facts without), auc; its interval resamples responses.
    None with a reason where one class is missing. Ties count half.
    """
    rows = []
    labels = claims["label"].to_numpy(dtype="float64", na_value=np.nan)
    systems = claims["system"].fillna("–").to_numpy()
    clusters = pd.factorize(claims["response_id"])[0]
    names = list(dict.fromkeys(systems))
    groups = [*(["__all__"] if len(names) > 1 else []), *names]
    for evaluator, part in verdicts.groupby("evaluator", sort=False):
        scores = np.full(len(claims), np.nan)
        scores[claim_positions(claims, part["claim_id"])] = part["score"].to_numpy(dtype="float64")
        for system in groups:
            labelled = ~np.isnan(labels) & ((systems == system) | (system == "__all__"))
            use = labelled & ~np.isnan(scores)
            row: Row = {"evaluator": str(evaluator), "system": str(system), "n": int(use.sum())}
            row |= {"n_unscored": int((labelled & ~use).sum()), "auc": None, "auc_low": None, "auc_high": None}
            values, low, high = _auc(labels[use], scores[use], clusters[use], replicates, seed, confidence)
            why = None if values is not None else "no score" if not use.any() else "labels of one class only"
            rows.append(row | {"auc": values, "auc_low": low, "auc_high": high, "reason": why})
    return rows


def _auc(
    labels: np.ndarray, scores: np.ndarray, clusters: np.ndarray, replicates: int, seed: int, confidence: float
) -> tuple[float | None, float | None, float | None]:
    if not (labels == 1).any() or not (labels == 0).any():
        return None, None, None
    # Facts in the order of their scores; a resampled response counts as often as it was drawn.
    order = np.argsort(scores, kind="stable")
    positive = labels[order] == 1
    steps = np.flatnonzero(np.r_[True, np.diff(scores[order]) > 0])
    _, which = np.unique(clusters[order], return_inverse=True)
    n = int(which.max()) + 1

    def auc(weights: np.ndarray) -> np.ndarray:
        up = np.add.reduceat(np.where(positive, weights, 0.0), steps, axis=1)
        down = np.add.reduceat(np.where(positive, 0.0, weights), steps, axis=1)
        pairs = up.sum(axis=1) * down.sum(axis=1)
        wins = (up * (np.cumsum(down, axis=1) - down / 2)).sum(axis=1)
        return np.divide(wins, pairs, out=np.full(len(weights), np.nan), where=pairs > 0)

    value = float(auc(np.ones((1, len(order))))[0])
    if n < 2 or not replicates:
        return value, None, None
    rng = np.random.default_rng(seed)
    drawn = []
    for start in range(0, replicates, 100):  # 100 at a time: the weights are as wide as there are facts
        counts = rng.multinomial(n, np.full(n, 1 / n), size=min(100, replicates - start))
        drawn.append(auc(counts[:, which].astype(np.float64)))
    values = np.concatenate(drawn)
    values = values[~np.isnan(values)]
    if not len(values):
        return value, None, None
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return value, float(low), float(high)


def _groups(responses: Sequence[Row]) -> list[tuple[str, str, list[Row]]]:
    evaluators = list(dict.fromkeys(name for row in responses for name in row["evaluators"]))
    systems = list(dict.fromkeys(row["system"] for row in responses))
    groups = [("__all__", list(responses))] if len(systems) > 1 else []
    groups += [(str(system), [row for row in responses if row["system"] == system]) for system in systems]
    return [(evaluator, name, members) for evaluator in evaluators for name, members in groups]


def _pairs(members: Sequence[Row], human: Sequence[float | None], evaluator: str, figure: str) -> np.ndarray:
    """(human, predicted) of the responses that have both: float64 (n, 2)."""
    pairs = [
        (value, row["evaluators"][evaluator][figure])
        for value, row in zip(human, members, strict=True)
        if value is not None and row["evaluators"][evaluator][figure] is not None
    ]
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


def _errors(pairs: np.ndarray, replicates: int, seed: int, confidence: float) -> Row:
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
    if n > 1 and replicates:
        draws = np.random.default_rng(seed).integers(0, n, (replicates, n))
        for key, values in _figures(pairs[draws]).items():
            # A draw of equal scores has no correlation; it says nothing of the interval.
            values = values[~np.isnan(values)]
            if row[key] is not None and len(values):
                low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
                row[f"{key}_low"], row[f"{key}_high"] = float(low), float(high)
    return row | {"reason": None if varied else "correlations: fewer than three responses, or one score is constant"}


def _figures(pairs: np.ndarray) -> dict[str, np.ndarray]:
    """The figures of each of r sets of pairs (r, n, 2), each (r,); NaN where a correlation does not exist."""
    human, predicted = pairs[..., 0], pairs[..., 1]
    error = predicted - human
    ranks = stats.rankdata(pairs, axis=1)
    return {
        "human": human.mean(axis=1),
        "predicted": predicted.mean(axis=1),
        "bias": error.mean(axis=1),
        "mae": np.abs(error).mean(axis=1),
        "rmse": np.sqrt((error**2).mean(axis=1)),
        "pearson_r": _pearson(human, predicted),
        "spearman_r": _pearson(ranks[..., 0], ranks[..., 1]),
    }


def _pearson(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    product = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    flat = product < 1e-12
    return np.where(flat, np.nan, (a * b).sum(axis=1) / np.where(flat, 1.0, product))
