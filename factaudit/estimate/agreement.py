"""How far annotators agree: percent, Cohen's κ, Krippendorff's α, with intervals; and what they disagree on."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from factaudit.audit.core.rows import Row, number, reasons

REPLICATES = 2000


def agreement(judged: pd.DataFrame, seed: int = 0, replicates: int = REPLICATES, confidence: float = 0.95) -> list[Row]:
    """A row per pair of annotators, and one of all (annotator_a ``__all__``): n claims that both (or several) labelled.

    judged: claim_id, annotator, label, as `factaudit.tables.annotations.judgements` gives it. Each row: percent (the
    share of pairs of labels that agree), kappa (Cohen 1960; of pairs only), alpha (Krippendorff, nominal; any number of
    annotators, with labels missing), with ``_low`` and ``_high`` from a bootstrap of claims; null with a reason where
    nothing is labelled twice or nothing varies. What an annotator left undecided is missing.
    """
    table = judged.pivot(index="claim_id", columns="annotator", values="label")
    table = table[list(dict.fromkeys(judged["annotator"]))]
    values = table.to_numpy(dtype=np.float64, na_value=np.nan)
    names = [str(name) for name in table.columns]
    random = np.random.default_rng([seed, len(values)])
    rows = []
    if len(names) > 1:
        rows.append({"annotator_a": "__all__", "annotator_b": None, **_figures(values, random, replicates, confidence)})
    if len(names) > 2:
        for a, b in combinations(range(len(names)), 2):
            found = _figures(values[:, [a, b]], random, replicates, confidence)
            rows.append({"annotator_a": names[a], "annotator_b": names[b], **found})
    return rows


def disagreements(judged: pd.DataFrame) -> pd.Index:
    """The claims that annotators gave both labels, in the order of the table."""
    labels = judged.dropna(subset="label").groupby("claim_id", sort=False)["label"].nunique()
    return labels.index[labels > 1]


def _figures(values: np.ndarray, random: np.random.Generator, replicates: int, confidence: float) -> Row:
    """values: (claims, annotators), NaN where missing."""
    ones, total = np.nansum(values, axis=1), (~np.isnan(values)).sum(1)
    twice = total > 1
    ones, total, values = ones[twice], total[twice], values[twice]
    pair = values.shape[1] == 2
    keys = ("percent", "kappa", "alpha") if pair else ("percent", "alpha")
    row: Row = {"n": len(ones)}
    row |= {f"{key}{end}": None for key in ("percent", "kappa", "alpha") for end in ("", "_low", "_high")}
    if not len(ones):
        return row | {"reason": "no claim has two labels"}
    # Only how many of how many labels are 1 matters (and, for κ, whose): claims of a kind are drawn together.
    kinds, times = np.unique(np.column_stack([ones, total, values[:, 0]]), axis=0, return_counts=True)
    drawn = random.multinomial(len(ones), times / len(ones), size=replicates)
    observed, spread = _all_figures(kinds, times[None], pair), _all_figures(kinds, drawn, pair)
    tail = (1 - confidence) / 2
    lacking = []
    for key in keys:
        value = number(observed[key][0])
        row[key] = value
        replicated = spread[key][~np.isnan(spread[key])]
        if value is None:
            lacking.append(f"no {key}: all labels are the same")
        elif len(kinds) < 2 or len(replicated) < replicates / 2:
            lacking.append(f"no interval for {key}: nothing varies")
        else:
            low, high = np.quantile(replicated, [tail, 1 - tail])
            row |= {f"{key}_low": min(number(low), value), f"{key}_high": max(number(high), value)}  # type: ignore[type-var]
    return row | {"reason": reasons(lacking)}


def _all_figures(kinds: np.ndarray, times: np.ndarray, pair: bool) -> dict[str, np.ndarray]:
    """Figures of (R, kinds) numbers of claims of each kind: columns ones, labels, first annotator's label."""
    ones, total, first = kinds.T
    # Pairs of labels within a claim, each weighing 1 / (labels − 1), as in Krippendorff's coincidence matrix.
    differ = times @ (2 * ones * (total - ones) / (total - 1))
    n, n_ones = times @ total, times @ ones
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = 2 * n_ones * (n - n_ones) / (n - 1)
        found = {
            "percent": 1 - times @ (2 * ones * (total - ones) / (total * (total - 1))) / times.sum(1),
            "alpha": np.where(expected > 0, 1 - differ / expected, np.nan),
        }
        if pair:
            claims = times.sum(1)
            a, b = times @ first / claims, times @ (ones - first) / claims
            chance = a * b + (1 - a) * (1 - b)
            found["kappa"] = np.where(chance < 1, (found["percent"] - chance) / (1 - chance), np.nan)
    return found
