"""Words for the tables that engines write. Temporary: each becomes an audit of its own."""

from __future__ import annotations

from factaudit.audit.core.declare import Audit, Check, Column, shared

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


#: What the engine finds itself.
_MERGED = Check("merged_facts", "Facts of several people told as one person's", "", lambda audited: ())


def _table(name: str, title: str, text: str, formula: str) -> Audit:
    checks = (_MERGED,) if name == "dfactscore" else ()
    return Audit(name, title, "", _COLUMNS, None, text=text, formula=formula, place=0, checks=checks)


AUDITS = (
    _table(
        "factscore",
        "FActScore, system by system",
        "The unweighted mean over responses, with and without the length penalty.",
        "Responses that abstain or hold no fact count in the respond ratio only; one whose facts have no verdict is "
        "within the bounds.",
    ),
    _table(
        "factscore_agreement",
        "Predicted FActScore against people's",
        "Over the responses that both have scored; people's score knows no length penalty.",
        "Bias = predicted − people's; p-values are of no correlation.",
    ),
    _table(
        "factscore_auc",
        "Whether scores tell supported from unsupported facts",
        "Whatever the threshold.",
        "Area under the ROC curve over labelled facts; ties count half; intervals resample responses.",
    ),
    _table(
        "factscore_thresholds",
        "Finding responses that are good enough",
        "“Predicted score ≥ t” as a test for “people's score ≥ t”.",
        "Precision, recall and F1 over responses.",
    ),
    _table(
        "factscore_calibration",
        "People's scores by predicted score",
        "Responses in ten equal bins of the predicted score (without the penalty).",
        "Mean predicted and mean people's score of each bin.",
    ),
    _table(
        "dfactscore",
        "FActScore and D-FActScore of the systems",
        "A system that merges people of one name keeps its FActScore and loses D-FActScore (MF §4).",
        "Means over the responses that answered; init: without the length penalty. Gap = init FActScore − init "
        "D-FActScore, paired. Merged: some fact is true of somebody else of the name, not of the person it is told of.",
    ),
    _table(
        "dfactscore_printed",
        "Against the printed table",
        "Each printed figure beside what the published decisions give (MF Table 4).",
        "Rebuilt: rounded to the printed decimals.",
    ),
    _table(
        "dfactscore_elsewhere",
        "Facts that belong to someone else",
        "What a reader of the merged paragraphs is misled about.",
        "Linked: the person whom most facts of the group are true of. About: the person whom the fact is true of.",
    ),
    _table(
        "dfactscore_linking",
        "Other ways to group and to link",
        "All read from the same verdicts.",
        "argmax: the entity that supports most of a group (MF Eq. 1); hungarian: the same, but no entity twice.",
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
