"""Claims and verdicts joined once, and the settings by which they are compared: what results are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import pandas as pd

from factaudit.arrays.judgements import Judgements
from factaudit.audit import list_computable_audits
from factaudit.audit.core.decision_limits import DecisionLimits
from factaudit.audit.core.result_rows import Row
from factaudit.audit.findings import run_audit_checks
from factaudit.audit.screen import DEFAULT_TITLE
from factaudit.blas_threads import use_one_blas_thread
from factaudit.errors import UsageError, suggest_known_name
from factaudit.python_input import ClaimColumnNames, MappingSource, TableSource, load_python_input_frames
from factaudit.signature import hash_texts, make_signature
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables.annotations import count_labels_by_grade, list_annotator_judgements, relabel_claims_by_annotations
from factaudit.tables.digest import compute_table_digest
from factaudit.version import __version__


@dataclass(frozen=True)
class ComparisonTables:
    """All that `compare` needs of claims and verdicts: whoever has this can let go of the verdicts.

    tables_digest: of what was joined; evaluator_order: that of their verdicts; graded_labels: how people's grades
    became labels (`count_labels_by_grade`).
    """

    judged: Judgements
    tables_digest: str
    evaluator_order: Sequence[str]
    graded_labels: Sequence[Row] = ()

    @classmethod
    def join(
        cls,
        claims: TableSource | Sequence[TableSource],
        verdicts: TableSource | Sequence[TableSource] | None,
        annotations: pd.DataFrame | None = None,
        label_rules: Sequence[str] = (),
        mapping: MappingSource | None = None,
        columns: ClaimColumnNames | None = None,
        evaluators: Sequence[str] | None = None,
    ) -> ComparisonTables:
        """The arguments are those of `compare`."""
        loaded = load_python_input_frames(claims, verdicts, mapping, columns, evaluators)
        if loaded.claims is None or loaded.verdicts is None:
            missing = "claims" if loaded.claims is None else "verdicts"
            raise UsageError(f"compare: there are no {missing} in what was given")
        table, verdict_table = loaded.claims, loaded.verdicts
        if missed := {*verdict_table["evaluator"]} - {*verdict_table["evaluator"][verdict_table["repeat"] == 0]}:
            listed = ", ".join(sorted(map(str, missed)))
            raise UsageError(f"compare: no verdict of {listed} has repeat 0, which audits read: number repeats from 0")
        annotations = loaded.annotations if annotations is None else annotations
        if label_rules and annotations is None:
            raise UsageError("label_rules: there are no annotations that they could be made of")
        said = None if annotations is None else list_annotator_judgements(annotations)
        if said is not None and label_rules:
            table = relabel_claims_by_annotations(table, said, label_rules[0])
        judged = replace(Judgements.join(table, verdict_table, said), label_rules=tuple(label_rules))
        read = [table, verdict_table] if said is None else [table, verdict_table, said]
        digest = hash_texts(*map(compute_table_digest, read), *label_rules)
        order = list(verdict_table["evaluator"].unique())
        return cls(judged, digest, order, count_labels_by_grade(table, annotations))


@dataclass(frozen=True)
class AuditRunSettings:
    """What results depend on beside the audits' options; ``tables``: a digest of what they are computed on."""

    tables: str
    title: str = DEFAULT_TITLE
    seed: int = 0
    replicates: int = 2000
    confidence: float = 0.95
    decisions: Mapping[str, float] | None = None
    trained_on: Mapping[str, Sequence[str]] | None = None
    inputs: Sequence[Row] = ()

    @property
    def intervals(self) -> ClusterBootstrap | None:
        return ClusterBootstrap(self.replicates, self.seed, self.confidence) if self.replicates else None

    @property
    def _signed_settings(self) -> dict[str, Any]:
        names = ("seed", "replicates", "confidence", "tables")
        return {name: getattr(self, name) for name in names} | {"version": __version__}

    def compute_audit_rows(self, judged: Judgements, chosen: Mapping[str, dict[str, Any]]) -> dict[str, Sequence[Row]]:
        """The rows of the audits with their options."""
        found: dict[str, Sequence[Row]] = {}
        for name, options in chosen.items():
            audit = list_computable_audits()[name]
            with use_one_blas_thread():
                found[name] = audit.compute(judged, **options, intervals=self.intervals) if audit.compute else []
        return found

    def assemble_results(
        self,
        claim_and_evaluator_rows: tuple[list[Row], list[Row]],
        chosen: Mapping[str, Mapping[str, Any]],
        audit_rows: dict[str, Sequence[Row]],
        more_about: Mapping[str, Any] | None = None,
    ) -> tuple[str, dict[str, Any], dict[str, Sequence[Row]], list[Row]]:
        """The signature, what the rows are about, the rows, and their findings: what `Results` begins with.

        claim_and_evaluator_rows: rows of the claims by dataset, and of the evaluators. more_about: what else the rows
        are about.
        """
        claims, evaluators = claim_and_evaluator_rows
        names = [row["name"] for row in evaluators]
        for name in self.trained_on or {}:
            if name not in names:
                raise UsageError(f"trained_on: no evaluator {name!r}{suggest_known_name(name, names)}")
        evaluators = [
            row | ({"trained_on": list(seen)} if (seen := (self.trained_on or {}).get(row["name"])) else {})
            for row in evaluators
        ]
        about = {
            "title": self.title,
            "factaudit": __version__,
            "seed": self.seed,
            "replicates": self.replicates,
            "confidence": self.confidence,
            "limits": DecisionLimits.parse(self.decisions).as_dict(),
            "options": {name: dict(options) for name, options in chosen.items() if options},
            "claims": claims,
            "evaluators": evaluators,
            "inputs": list(self.inputs),
            **(more_about or {}),
        }
        in_order = sorted(evaluators, key=itemgetter("name"))
        own = {
            "evaluators": hash_texts(*(f"{row['name']}={row['signature'] or ''}" for row in in_order)),
            "audits": hash_texts(*(make_signature(name, options) for name, options in chosen.items())),
        }
        signature = make_signature("factaudit", {**self._signed_settings, **own})
        findings, about["n_tests"] = run_audit_checks(audit_rows, about)
        return signature, about, audit_rows, findings
