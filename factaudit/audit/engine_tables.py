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
        "dfactscore_printed",
        "Against the printed table",
        "Each printed figure beside what the published decisions give (MF Table 4).",
        "Rebuilt: rounded to the printed decimals.",
    ),
    _table(
        "dfactscore_grouping",
        "What the groupers did",
        "Every fact ends in exactly one group, whatever a reply holds.",
        "Same: exactly the same groups; agreement: share of facts in the corresponding group, mean over responses.",
    ),
    _table(
        "dfactscore_people",
        "People and the machine",
        "The same scores by annotators and by the machine, over the responses that both scored (MF §5.2).",
        "People: S / (S + NS), for D-FActScore an S only where the supporting page is the entity's. Pearson's r over "
        "responses.",
    ),
    _table(
        "annotator_agreement",
        "How far annotators agree",
        "What the machine can be asked to agree with at most (MF §4.2).",
        "Percent: pairs of judgements that agree; κ is Cohen's (two annotators), α Krippendorff's (nominal).",
    ),
    _table(
        "popularity",
        "Does the better-known person win?",
        "Page views of the candidates against the person whom a response is mostly about (MF §5.3).",
        "Most viewed: share of responses about the candidate with most views; mean rank: 0 is the most viewed, 1 the "
        "least.",
    ),
    _table(
        "citations",
        "Citation recall and precision",
        "After ALCE (MF App. D). Malformed citations are reported, not judged; they are in citations.jsonl.",
        "Recall = sentences that their cited documents together support / sentences; precision = citations that are "
        "needed or sufficient / citations; means over responses.",
    ),
    _table(
        "citation_recall",
        "Citation recall",
        "Computed again from published judgements (MF App. D, Table 7).",
        "Recall = sentences that their cited documents together support / sentences, mean over responses.",
    ),
)
