"""Claims and verdicts joined once: what results are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from factaudit.arrays.judgements import Judgements, check_first_repeats
from factaudit.audit.core.result_rows import Row
from factaudit.datasets.python_input import (
    ClaimColumnNames,
    MappingSource,
    TableSource,
    load_python_input_frames,
)
from factaudit.errors import UsageError
from factaudit.signature import hash_texts
from factaudit.tables.annotations import (
    count_labels_by_grade,
    has_double_labels,
    list_annotator_judgements,
    relabel_claims_by_annotations,
)
from factaudit.tables.digest import compute_table_digest
from factaudit.tables.validation import make_empty_verdicts


@dataclass(frozen=True)
class ComparisonTables:
    """All that `compare` needs of claims and verdicts: whoever has this can let go of the verdicts.

    tables_digest: a hash of the tables that were joined.
    evaluator_order: the evaluators in the order of their verdicts.
    graded_labels: how people's grades became labels (`count_labels_by_grade`).
    label_rule: how the annotations became labels; None if the labels are those of the claims.
    """

    judged: Judgements
    tables_digest: str
    evaluator_order: Sequence[str]
    graded_labels: Sequence[Row] = ()
    label_rule: str | None = None

    @classmethod
    def join(
        cls,
        claims: TableSource | Sequence[TableSource],
        verdicts: TableSource | Sequence[TableSource] | None,
        annotations: pd.DataFrame | None = None,
        label_rule: str | None = None,
        mapping: MappingSource | None = None,
        columns: ClaimColumnNames | None = None,
        evaluators: Sequence[str] | None = None,
    ) -> ComparisonTables:
        """The arguments are those of `compare`."""
        loaded = load_python_input_frames(claims, verdicts, mapping, columns, evaluators)
        annotations = loaded.annotations if annotations is None else annotations
        said = None if annotations is None else list_annotator_judgements(annotations)
        if loaded.claims is None or (loaded.verdicts is None and not has_double_labels(said)):
            missing = "claims" if loaded.claims is None else "verdicts"
            raise UsageError(f"compare: there are no {missing} in what was given")
        table = loaded.claims
        verdict_table = make_empty_verdicts() if loaded.verdicts is None else loaded.verdicts
        is_first = verdict_table["repeat"] == 0
        check_first_repeats({*verdict_table["evaluator"]} - {*verdict_table["evaluator"][is_first]})
        if label_rule is not None:
            if said is None:
                raise UsageError("label_rule: there are no annotations to make labels from")
            table = relabel_claims_by_annotations(table, said, label_rule)
        judged = Judgements.join(table, verdict_table, said)
        read = [table, verdict_table] if said is None else [table, verdict_table, said]
        digest = hash_texts(*map(compute_table_digest, read), *filter(None, [label_rule]))
        order = list(verdict_table["evaluator"].unique())
        return cls(judged, digest, order, count_labels_by_grade(table, annotations), label_rule)
