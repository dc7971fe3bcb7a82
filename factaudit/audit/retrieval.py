"""Do the passages of a fact contain its evidence? How much of what the whole page supports do the
passages support, too?

A fact that is "not supported" may be wrong, or its passages may be the wrong ones. The claims table
has each way of retrieval under its name in the column ``variant``, and the whole page under another
name.
"""

from __future__ import annotations

import numpy as np

from factaudit.arrays.figures import share_units
from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.arrays.response_facts import has_response_facts
from factaudit.audit.core.audit_declaration import (
    WILSON,
    Audit,
    Column,
    PlotSpec,
    pick_shared_columns,
)
from factaudit.audit.core.result_rows import Row, explain_row, pick_figure
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

#: The name of the variant that reads whole pages, from `factaudit factscore --vary retrieval=all`.
PAGE_VARIANT = "retrieval=all"
_FACT = ["dataset", "system", "response_id", "claim"]
_SHARES = ("recall", "not_in_passages")


def compute_retrieval_recall(
    judgements: Judgements, *, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """A row per dataset, evaluator and variant other than `PAGE_VARIANT`, over the facts on which
    both variants have a verdict.

    recall: of the facts that the whole page supports, the share that the passages support.
    not_in_passages: of the facts that the passages do not support, the share that the page
    supports; verdicts do not say whether the others are contradicted or not mentioned there.
    n_only_passages: facts that passages support and the page does not, where the evaluator
    contradicts itself. Facts are told apart by their words; clusters are responses.
    """
    if "variant" not in judgements.claims or not has_response_facts(judgements):
        return []
    claims = judgements.claims[[*_FACT, "variant"]].astype(object)
    facts = claims.where(claims.notna(), None).assign(row=np.arange(len(claims)))
    facts = facts[facts["variant"].notna() & facts["response_id"].notna()].drop_duplicates(
        [*_FACT, "variant"]
    )
    whole = facts[facts["variant"] == PAGE_VARIANT].drop(columns="variant")
    pairs = facts[facts["variant"] != PAGE_VARIANT].merge(whole, on=_FACT, suffixes=("", "_page"))
    rows = []
    for (dataset, variant), of in pairs.groupby(["dataset", "variant"], sort=True):
        cluster = of.groupby(["system", "response_id"], dropna=False).ngroup().to_numpy()
        for at, evaluator in enumerate(judgements.evaluators):
            prediction = judgements.prediction[at]
            both = (prediction[of["row"]] != MISSING) & (prediction[of["row_page"]] != MISSING)
            passages, whole_page = (prediction[of[key]][both] == 1 for key in ("row", "row_page"))
            row: Row = {
                "dataset": dataset,
                "evaluator": evaluator,
                "variant": variant,
                "n": len(passages),
                "n_unscored": int((~both).sum()),
                "n_in_page": int(whole_page.sum()),
                "n_not_supported": int((~passages).sum()),
                "n_only_passages": int((passages & ~whole_page).sum()),
            }
            for name, among, is_hit in zip(
                _SHARES, (whole_page, ~passages), (passages, whole_page), strict=True
            ):
                confidence = None if intervals is None else intervals.confidence
                row |= pick_figure(name, share_units(is_hit, among, cluster[both], confidence), 0)
            rows.append(explain_row(row, _SHARES))
    return sorted(rows, key=lambda row: (row["dataset"], row["evaluator"], row["variant"]))


AUDIT = Audit(
    name="retrieval",
    title="Whether passages hold the evidence",
    question=(
        "Do the retrieved passages contain the evidence for a fact, and are unsupported facts"
        " really missing from the page?"
    ),
    source="Min et al. 2023, §4.1; Wei et al. 2024",
    text=(
        "The same facts are verified with retrieved passages and with the whole page. An evaluator"
        " that makes mistakes on long pages makes evidence seem absent."
    ),
    formula="Recall = facts supported by both / facts supported by the whole page.",
    remedy=(
        "If recall is low, retrieve more passages (`k`) or retrieve them in another way"
        " (`retrieval`). A fact that is only missing from the passages is not an error of the"
        " system."
    ),
    columns={
        **pick_shared_columns("dataset", "evaluator"),
        "variant": Column("variant", "text", "how passages were chosen", key=True),
        "n": Column("facts", "count", "facts with both verdicts, and facts that lack one"),
        "n_unscored": Column(
            "unscored", "count", "facts with both verdicts, and facts that lack one", shown="any"
        ),
        "n_in_page": Column("supported by the page", "count", "denominators of the shares"),
        "n_not_supported": Column("not supported", "count", "denominators of the shares"),
        "n_only_passages": Column(
            "by passages only",
            "count",
            "facts that the passages support but the whole page does not",
            shown="any",
        ),
        "recall": Column(
            "recall",
            "percent",
            "of the facts that the page supports, the share that the passages support",
            interval=WILSON,
            counted_in="n_in_page",
        ),
        "not_in_passages": Column(
            "not in the passages",
            "percent",
            "of the facts that the passages do not support, the share that the whole page does",
            interval=WILSON,
            counted_in="n_not_supported",
        ),
        **pick_shared_columns("reason"),
    },
    compute=compute_retrieval_recall,
    applies=lambda judged: (
        "variant" in judged.claims
        and bool((judged.claims["variant"] == PAGE_VARIANT).fillna(False).any())
    ),
    without_labels=True,
    plot=PlotSpec(
        what="Evidence that passages hold", keys=("recall", "not_in_passages"), groups=("variant",)
    ),
)
