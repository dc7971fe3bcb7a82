"""What are results made of? Claims and verdicts joined once, and a description of both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import MISSING, Judgements, check_first_repeats
from factaudit.audit.core.result_rows import Row
from factaudit.datasets.python_input import (
    ClaimColumnNames,
    MappingSource,
    TableSource,
    load_python_input_frames,
)
from factaudit.errors import UsageError
from factaudit.signature import hash_texts
from factaudit.tables import STATUSES
from factaudit.tables.annotations import (
    count_labels_by_grade,
    has_double_labels,
    list_annotator_judgements,
    relabel_claims_by_annotations,
)
from factaudit.tables.digest import compute_table_digest
from factaudit.tables.validation import make_empty_verdicts

#: Evaluators that read nothing: floors for the others, and no candidates.
FLOOR_EVALUATORS = ("always-yes", "always-no", "random")


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


# ---- what ``results.json`` says of them


def describe_audit_inputs(
    judgements: Judgements, evaluator_order: Iterable[str], signatures: Mapping[str, str]
) -> tuple[list[Row], list[Row]]:
    """Rows on the claims, by dataset, and on the evaluators, in the order of their verdicts."""
    return _describe_input_claims(judgements), _describe_input_evaluators(
        judgements, evaluator_order, signatures
    )


def _describe_input_claims(judgements: Judgements) -> list[Row]:
    rows = []
    claims = judgements.claims[["task", "system", "response_id", "label"]]
    names = [str(name) for name in judgements.dataset_names]
    for code, dataset in sorted(enumerate(names), key=itemgetter(1)):
        members = np.flatnonzero(judgements.dataset_codes == code)
        part = claims.iloc[members]
        tasks = part["task"].dropna().unique()
        responses = part.dropna(subset="response_id")[["system", "response_id"]].drop_duplicates()
        rows.append(
            {
                "dataset": dataset,
                "task": str(tasks[0]) if len(tasks) == 1 else None,
                "n_claims": len(part),
                "n_labelled": int(part["label"].notna().sum()),
                "n_attributable": int((part["label"] == 1).sum()),
                "n_systems": int(part["system"].nunique()),
                "n_responses": len(responses),
                # What the bootstrap resamples: documents, else responses, else claims.
                "n_clusters": len(np.unique(judgements.cluster_codes[members])),
            }
        )
    return rows


def _describe_input_evaluators(
    judgements: Judgements, evaluator_order: Iterable[str], signatures: Mapping[str, str]
) -> list[Row]:
    """Evaluators in the ``evaluator_order`` of their verdicts, and what became of these."""
    rows = []
    for name in evaluator_order:
        at = judgements.evaluators.index(name)
        status = judgements.status[at]
        counts = {f"n_{text}": int((status == code).sum()) for code, text in enumerate(STATUSES)}
        # A prediction all the same: FActScore's published parser reads a meaning into every reply.
        counts["n_guessed"] = int(
            ((status != STATUSES.index("ok")) & (judgements.prediction[at] != MISSING)).sum()
        )
        made = signatures.get(name)
        row: Row = {"name": name, "signature": made, "floor": is_floor_evaluator(made or name)}
        rows.append(row | {"n_verdicts": int((status >= 0).sum()), **counts})
    return rows


def is_floor_evaluator(name: str) -> bool:
    """Whether an evaluator reads nothing, by its name or its signature."""
    return re.split(r"[|:@]", name)[0] in FLOOR_EVALUATORS
