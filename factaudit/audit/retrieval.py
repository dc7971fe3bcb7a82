"""Do the passages of a fact contain its evidence? What the whole page supports, and what of it passages do.

A fact that is "not supported" may be wrong, or its passages may be the wrong ones. The claims table has each way of
retrieval under its name in the column ``variant``, and the whole page under one.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from factaudit.arrays.clustered_shares import estimate_clustered_shares
from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.arrays.response_facts import has_response_facts
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.interval_methods import WILSON
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import FEW_CLUSTERS, Row, explain_missing_row_intervals
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.text.display_text import join_reasons

#: The variant that reads whole pages, as `factaudit score --vary retrieval=all` calls it.
PAGE_VARIANT = "retrieval=all"
_FACT_KEYS = ["dataset", "system", "response_id", "claim"]
_SHARES = ("recall", "not_in_passages", "not_in_page")


def compute_retrieval_recall(
    judgements: Judgements, *, page: str = PAGE_VARIANT, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """A row per dataset, evaluator and variant but ``page``, over the facts that both variants have a verdict on.

    recall: of the facts that the whole page supports, the share that the passages support. Of the facts that the
    passages do not support: not_in_passages, the share that the page supports; not_in_page, the share that it does not
    (contradicted or not told there: verdicts do not say which). n_only_passages: facts that passages support and the
    page does not, where the evaluator is at odds with itself. Facts are told by their words; clusters are responses.
    """
    if "variant" not in judgements.claims or not has_response_facts(judgements):
        return []
    claims = judgements.claims[[*_FACT_KEYS, "variant"]].astype(object)
    told = claims.where(claims.notna(), None).assign(row=np.arange(len(claims)))
    told = told[told["variant"].notna() & told["response_id"].notna()].drop_duplicates([*_FACT_KEYS, "variant"])
    whole = told[told["variant"] == page].drop(columns="variant")
    pairs = told[told["variant"] != page].merge(whole, on=_FACT_KEYS, suffixes=("", "_page"))
    rows = []
    for (dataset, variant), of in pairs.groupby(["dataset", "variant"], sort=True):
        responses = of["system"].map(repr) + " " + of["response_id"].astype(str)
        cluster = pd.factorize(responses, sort=True)[0]
        for at, evaluator in enumerate(judgements.evaluators):
            said, by_page = (judgements.prediction[at][of[key].to_numpy()] for key in ("row", "row_page"))
            row: Row = {"dataset": str(dataset), "evaluator": evaluator, "variant": str(variant)}
            rows.append(row | _build_retrieval_row(said, by_page, cluster, intervals))
    return sorted(rows, key=lambda row: (row["dataset"], row["evaluator"], row["variant"]))


def _build_retrieval_row(
    passages: np.ndarray, page: np.ndarray, cluster: np.ndarray, intervals: ClusterBootstrap | None
) -> Row:
    both = (passages != MISSING) & (page != MISSING)
    passages, page = passages[both], page[both]
    row: Row = {"n": int(both.sum()), "n_unscored": int((~both).sum()), "n_in_page": int((page == 1).sum())}
    row |= {
        "n_not_supported": int((passages == 0).sum()),
        "n_only_passages": int(((passages == 1) & (page == 0)).sum()),
    }
    hits = np.stack(
        [(passages == 1) & (page == 1), (passages == 0) & (page == 1), (passages == 0) & (page == 0)], axis=1
    )
    totals = np.stack([page == 1, passages == 0, passages == 0], axis=1)
    counts = np.zeros((int(cluster.max(initial=-1)) + 1, 6), dtype=np.int64)
    np.add.at(counts, cluster[both], np.concatenate([hits, totals], axis=1))
    counts = counts[counts.any(1)]
    row |= estimate_clustered_shares(_SHARES, counts[:, :3], counts[:, 3:], intervals)
    lacking = [name for name in _SHARES if row[name] is None]
    why = [f"no such fact: {', '.join(lacking)}" if lacking else "", explain_missing_row_intervals(row, FEW_CLUSTERS)]
    return row | {"reason": join_reasons(why)}


_NOT_SUPPORTED_DESCRIPTION = (
    "of the facts that the passages do not support, the share that the whole page does, or does not, support"
)
AUDIT = Audit(
    name="retrieval",
    after="sensitivity",
    title="Whether passages hold the evidence",
    question=(
        "Do the retrieved passages contain the evidence for a fact, and are unsupported facts really missing "
        "from the page?"
    ),
    source="Min et al. 2023, §4.1; Wei et al. 2024",
    text=(
        "The same facts are verified with retrieved passages and with the whole page. An evaluator that makes "
        "mistakes on long pages makes evidence seem absent."
    ),
    formula="Recall = facts supported by both / facts supported by the whole page.",
    remedy=(
        "If recall is low, retrieve more passages (`k`) or retrieve them in another way (`retrieval`). A fact "
        "that is only missing from the passages is not an error of the system."
    ),
    columns={
        **pick_shared_columns("dataset", "evaluator"),
        "variant": Column("variant", "text", "how passages were chosen", key=True),
        "n": Column("facts", "count", "facts with both verdicts, and facts that lack one"),
        "n_unscored": Column("unscored", "count", "facts with both verdicts, and facts that lack one", shown="any"),
        "n_in_page": Column("supported by the page", "count", "denominators of the shares"),
        "n_not_supported": Column("not supported", "count", "denominators of the shares"),
        "n_only_passages": Column(
            "by passages only", "count", "facts that the passages support but the whole page does not", shown="any"
        ),
        "recall": Column(
            "recall",
            "percent",
            "of the facts that the page supports, the share that the passages support",
            interval=WILSON,
            counted_in="n_in_page",
        ),
        "not_in_passages": Column(
            "not in the passages", "percent", _NOT_SUPPORTED_DESCRIPTION, interval=WILSON, counted_in="n_not_supported"
        ),
        "not_in_page": Column(
            "not in the page", "percent", _NOT_SUPPORTED_DESCRIPTION, interval=WILSON, counted_in="n_not_supported"
        ),
        **pick_shared_columns("reason"),
    },
    options={"page": "the variant that reads whole pages"},
    compute=compute_retrieval_recall,
    applies=lambda judged: (
        "variant" in judged.claims and bool((judged.claims["variant"] == PAGE_VARIANT).fillna(False).any())
    ),
    without_labels=True,
    plot=PlotSpec(what="Evidence that passages hold", keys=("recall", "not_in_page"), groups=("variant",)),
)
