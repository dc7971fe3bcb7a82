"""Which claims and evaluators are the figures about? What ``results.json`` says of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np

from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.result_rows import Row
from factaudit.tables import STATUSES

#: Evaluators that read nothing: floors for the others, and no candidates.
FLOOR_EVALUATORS = ("always-yes", "always-no", "random")
#: The model that the extra [local] brings: with it the whole path can be tried, and nothing be
#: measured.
TRIAL_MODEL = "SmolLM2-135M"


def describe_audit_inputs(
    judgements: Judgements, evaluator_order: Iterable[str], signatures: Mapping[str, str]
) -> tuple[list[Row], list[Row]]:
    """Rows on the claims, by dataset, and on the evaluators, in the order of their verdicts."""
    return _describe_input_claims(judgements), _describe_input_evaluators(
        judgements, evaluator_order, signatures
    )


def is_floor_evaluator(name: str) -> bool:
    """Whether an evaluator reads nothing, by its name or its signature."""
    return re.split(r"[|:@]", name)[0] in FLOOR_EVALUATORS


def uses_trial_model(evaluator_row: Row) -> bool:
    """Whether the model of ``base_url=local`` that comes along made verdicts, or the facts, by name
    and signature."""
    return TRIAL_MODEL in f"{evaluator_row.get('name')} {evaluator_row.get('signature')}"


def describe_graded_labels(run: AuditedRun) -> str:
    """How people's grades became labels, per data set; more grades than six are a scale, which no
    sentence lists."""
    sentences = []
    for one in run.about.get("graded_labels") or []:
        if one["rule"] is not None and len(one["words"]) <= 6:
            read = ", ".join(f"{row['grade']} ({row['label']})" for row in one["words"])
            sentences.append(
                f"{one['dataset']}: human grades were read as labels: {read}; rule: {one['rule']}."
            )
    return " ".join(sentences)


def _describe_input_claims(judgements: Judgements) -> list[Row]:
    rows = []
    read = judgements.claims[["task", "system", "response_id", "label"]]
    for dataset, code in sorted(
        (str(name), code) for code, name in enumerate(judgements.dataset_names)
    ):
        members = np.flatnonzero(judgements.dataset_codes == code)
        part = read.iloc[members]
        tasks = part["task"].dropna().unique()
        responses = part.loc[
            part["response_id"].notna(), ["system", "response_id"]
        ].drop_duplicates()
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
