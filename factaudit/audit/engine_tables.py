"""Words for the tables that engines write. Temporary: each becomes an audit of its own."""

from __future__ import annotations

from factaudit.audit.core.declare import Audit, Column, shared

_COLUMNS = {
    **shared("evaluator"),
    "system": Column("system", "text", key=True, values={"__all__": "all systems"}),
    "bin": Column("bin", "count", key=True),
    **shared("reason"),
    "score": Column("FActScore", "percent"),
    "init_score": Column("FActScore without penalty", "percent"),
    "num_facts_per_response": Column("facts per response"),
    "respond_ratio": Column("respond ratio", "percent"),
    "human": Column("people's", "percent"),
    "human_annotated": Column("people's, all annotated", "percent"),
    "human_respond_ratio": Column("human respond ratio", "percent"),
    "predicted": Column("predicted", "percent"),
    "bias": Column("bias", "points"),
    "gap": Column("gap", "points"),
    "mae": Column("MAE", "points"),
    "rmse": Column("RMSE", "points"),
    "pearson_r": Column("Pearson r", digits=2),
    "pearson_p": Column("Pearson p"),
    "spearman_r": Column("Spearman r"),
    "spearman_p": Column("Spearman p"),
    "kappa": Column("Cohen's κ", digits=2),
    "auc": Column("AUC"),
    "f1": Column("F1"),
    "threshold": Column("threshold", digits=3),
}


def _table(name: str, title: str, text: str, formula: str) -> Audit:
    return Audit(name, title, "", _COLUMNS, None, text=text, formula=formula, place=0)


AUDITS = (
    _table(
        "dfactscore_grouping",
        "What the groupers did",
        "Every fact ends in exactly one group, whatever a reply holds.",
        "Same: exactly the same groups; agreement: share of facts in the corresponding group, mean over responses.",
    ),
    _table(
        "citation_recall",
        "Citation recall",
        "Computed again from published judgements (MF App. D, Table 7).",
        "Recall = sentences that their cited documents together support / sentences, mean over responses.",
    ),
)
