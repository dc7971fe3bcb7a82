"""Sources with several annotators: their judgements as the table of annotations, and the claims' labels by a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from factaudit.datasets.source_files import Conversion
from factaudit.tables import validate_claims
from factaudit.tables.annotations import label_claims_by_annotations, list_annotator_judgements, validate_annotations
from factaudit.text.display_text import format_count


def convert_annotated_claims(
    claims: Sequence[dict[str, Any]],
    annotations: Sequence[dict[str, Any]],
    *,
    rule: str,
    grades: Mapping[str, int | None] | None,
    source: str,
    notes: Sequence[str] = (),
    verdicts: pd.DataFrame | None = None,
) -> Conversion:
    """Claims (with their ``claim_id``) labelled by ``rule`` from what annotators said of them.

    grades: what the source's grades mean, as the annotations' labels say then. A claim that nobody judged has no label.
    """
    table = pd.DataFrame(claims)
    known = validate_annotations(pd.DataFrame(annotations), source=source)
    judged = list_annotator_judgements(known, grades)
    said = pd.MultiIndex.from_frame(judged[["claim_id", "annotator"]])
    rows = pd.MultiIndex.from_frame(known[["claim_id", "annotator"]])
    known["label"] = judged["label"].to_numpy()[said.get_indexer(rows)]  # what a grade means, for rules to come
    labels = label_claims_by_annotations(rule, judged)
    table["label"] = table["claim_id"].map(labels).astype("Int8")
    annotators = known["annotator"].nunique()
    without = int(table["label"].isna().sum())
    told = f"{format_count(len(table), 'claim')}, {format_count(annotators, 'annotator')}, labels by {rule}"
    told += f", {without:,} without a label" if without else ""
    return Conversion(validate_claims(table, source=source), verdicts, [told, *notes], annotations=known)
