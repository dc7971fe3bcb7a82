"""How far do annotators agree, and on what do they disagree? Percent, Cohen's κ and Krippendorff's
α with intervals."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import name_documents
from factaudit.audit.core.result_rows import Row
from factaudit.stats.agreement import krippendorff_alpha, weighted_kappa
from factaudit.stats.influence import Scale, Statistic, interval, mean
from factaudit.stats.undefined_values import name_ends, none_if_undefined
from factaudit.text.display_text import join_reasons


def compute_label_agreement(
    annotator_labels: pd.DataFrame, claims: pd.DataFrame | None = None
) -> list[Row]:
    """A row per pair of annotators, and one of all (annotator_a ``__all__``): n claims with two
    labels or more.

    annotator_labels: claim_id, annotator, label, of
    `factaudit.tables.annotations.list_annotator_judgements`.
    Each row: percent (the share of pairs of labels that agree), kappa (Cohen 1960; of pairs only),
    alpha (Krippendorff, nominal; any number of annotators, with labels missing), with ``_low`` and
    ``_high`` by clusters of documents, which ``claims`` has (without it every claim is its own);
    null with a reason where nothing is labelled twice or nothing varies. An undecided label counts
    as missing.
    """
    table = annotator_labels.pivot(index="claim_id", columns="annotator", values="label")
    table = table[list(dict.fromkeys(annotator_labels["annotator"]))]
    values = table.to_numpy(dtype=np.float64, na_value=np.nan)
    names = [str(name) for name in table.columns]
    clusters = np.arange(len(values))
    if claims is not None:
        documents = name_documents(claims).fillna(claims["claim_id"])
        of_claim = pd.Series(
            (claims["dataset"].astype(str) + "\x1f" + documents).to_numpy(), claims["claim_id"]
        )
        clusters = pd.factorize(
            of_claim.reindex(table.index).fillna(pd.Series(table.index, table.index))
        )[0]
    groups: list[tuple[str, str | None, np.ndarray]] = []
    if len(names) > 1:
        groups.append(("__all__", None, values))
    if len(names) > 2:
        groups += [
            (names[a], names[b], values[:, [a, b]]) for a, b in combinations(range(len(names)), 2)
        ]
    return [
        {"annotator_a": a, "annotator_b": b, **_compute_figures(labels, clusters)}
        for a, b, labels in groups
    ]


def find_disputed_claims(annotator_labels: pd.DataFrame) -> pd.Index:
    """The claims that annotators gave both labels, in the order of the table."""
    labels = (
        annotator_labels.dropna(subset="label").groupby("claim_id", sort=False)["label"].nunique()
    )
    return labels.index[labels > 1]


def _compute_figures(labels: np.ndarray, clusters: np.ndarray) -> Row:
    """labels: (claims, annotators), NaN where missing; clusters: (claims,), their documents."""
    known = ~np.isnan(labels)
    is_shared = known.sum(1) > 1
    labels, known, clusters = labels[is_shared], known[is_shared], clusters[is_shared]
    n, ones = known.sum(1), np.nansum(labels, axis=1)
    unit, _ = np.nonzero(known)
    coefficients: dict[str, tuple[Statistic, Scale]] = {
        "percent": (mean(1 - 2 * ones * (n - ones) / (n * (n - 1))), "logit"),
        "kappa": (
            weighted_kappa(*labels.T) if labels.shape[1] == 2 else Statistic.undefined(len(n)),
            "fisher",
        ),
        "alpha": (krippendorff_alpha(labels[known], unit, len(n)), "fisher"),
    }
    row: Row = {"n": len(n)}
    lacking = [] if len(n) else ["no claim has two labels"]
    for key, (statistic, scale) in coefficients.items():
        ends = interval(statistic, clusters, scale)
        row |= {key: none_if_undefined(statistic.point)} | name_ends(key, ends)
        is_asked = len(n) > 0 and (key != "kappa" or labels.shape[1] == 2)
        if is_asked and row[f"{key}_low"] is None:
            lacking.append(f"no interval for {key}: nothing varies")
    return row | {"reason": join_reasons(lacking)}
