"""Every audit that tables of claims and verdicts allow: `Results` of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, TypedDict, Unpack

import pandas as pd

from factaudit.audit import (
    list_computable_audits,
    read_audit_names_and_options,
    run_audit_checks,
)
from factaudit.audit.core.audited_run import DecisionLimits
from factaudit.audit.core.result_rows import Row
from factaudit.audit.screen import DEFAULT_TITLE
from factaudit.datasets.python_input import ClaimColumnNames, MappingSource, TableSource
from factaudit.errors import UsageError, suggest_known_name
from factaudit.results.comparison_tables import ComparisonTables, describe_audit_inputs
from factaudit.results.results import Results
from factaudit.settings.python_errors import raise_python_errors
from factaudit.signature import hash_texts, make_signature
from factaudit.stats import use_one_blas_thread
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.version import __version__


class AuditRunOptions(TypedDict, total=False):
    """What `compare` and `compare_counts` have in common, explained at `compare`."""

    title: str
    seed: int
    replicates: int
    confidence: float
    require: Mapping[str, float] | None
    trained_on: Mapping[str, Sequence[str]] | None
    inputs: Sequence[Row]


def make_intervals(options: AuditRunOptions) -> ClusterBootstrap | None:
    replicates = options.get("replicates", 2000)
    if not replicates:
        return None
    return ClusterBootstrap(replicates, options.get("seed", 0), options.get("confidence", 0.95))


def assemble_results(
    tables_digest: str,
    claim_and_evaluator_rows: tuple[list[Row], list[Row]],
    chosen: Mapping[str, Mapping[str, Any]],
    audit_rows: dict[str, Sequence[Row]],
    options: AuditRunOptions,
) -> Results:
    """The results of audits with their signature and findings.

    tables_digest: of what they are computed on. claim_and_evaluator_rows: rows of the claims by
    dataset, and of the
    evaluators. chosen: the audits with their options.
    """
    claims, evaluators = claim_and_evaluator_rows
    names, trained_on = [row["name"] for row in evaluators], options.get("trained_on") or {}
    for name in trained_on:
        if name not in names:
            raise UsageError(f"trained_on: no evaluator {name!r}{suggest_known_name(name, names)}")
    for row in evaluators:
        if row["name"] in trained_on:
            row["trained_on"] = list(trained_on[row["name"]])
    drawn: Row = {"seed": options.get("seed", 0), "replicates": options.get("replicates", 2000)}
    drawn["confidence"] = options.get("confidence", 0.95)
    about = {
        "title": options.get("title", DEFAULT_TITLE),
        "factaudit": __version__,
        **drawn,
        "limits": DecisionLimits.parse(options.get("require")).as_dict(),
        "options": {name: dict(given) for name, given in chosen.items() if given},
        "claims": claims,
        "evaluators": evaluators,
        "inputs": list(options.get("inputs", ())),
    }
    in_order = sorted(evaluators, key=itemgetter("name"))
    own = {
        "evaluators": hash_texts(*(f"{row['name']}={row['signature'] or ''}" for row in in_order)),
        "audits": hash_texts(*(make_signature(name, given) for name, given in chosen.items())),
    }
    signature = make_signature(
        "factaudit", {**drawn, "tables": tables_digest, "version": __version__, **own}
    )
    findings, about["n_tests"] = run_audit_checks(audit_rows, about)
    return Results(signature, about, audit_rows, findings)


@raise_python_errors
def compare(
    claims: TableSource | Sequence[TableSource] | ComparisonTables,
    verdicts: TableSource | Sequence[TableSource] | None = None,
    *,
    evaluators: Sequence[str] | None = None,
    audits: Sequence[str | Mapping[str, object]] | None = None,
    title: str = DEFAULT_TITLE,
    seed: int = 0,
    replicates: int = 2000,
    confidence: float = 0.95,
    require: Mapping[str, float] | None = None,
    trained_on: Mapping[str, Sequence[str]] | None = None,
    signatures: Mapping[str, str] | None = None,
    inputs: Sequence[Row] = (),
    annotations: pd.DataFrame | None = None,
    label_rule: str | None = None,
    mapping: MappingSource | None = None,
    **columns: Unpack[ClaimColumnNames],
) -> Results:
    """Audit evaluators on claims.

    Args:
        claims: a frame or the path of a file, of any shape, or several of them. A validated table
            (`factaudit.tables`) is taken as it is. `ComparisonTables` hold the verdicts and
            annotations, too.
        verdicts: likewise, the verdicts on these claims. None if the claims' frame has them.
        evaluators: the columns that hold what one evaluator said each; in a table of verdicts, the
            evaluators to read.
        audits: the audits to run, each a name (``"rates"``) or a name with options
            (``{"rates": {...}}``). By default all that the tables allow.
        columns: which of your columns is which: ``label="human", system="model"``. Others are
            found by their names and values.
        mapping: what else says how the frames are read, as a YAML of `factaudit inspect --write`
            does.
        title: the heading of the report.
        seed: the seed of the bootstrap, for intervals that need one.
        replicates: the number of bootstrap replicates. With 0 there are no intervals at all.
        confidence: the share of intervals that should contain the true figure.
        require: limits that decide what an evaluator may be used for, such as
            ``{"max_bias": 0.03}`` (`factaudit.audit.core.audited_run.DecisionLimits`).
        trained_on: for each evaluator the data sets, or the beginnings of their names, that it was
            trained on. The first screen warns about them.
        signatures: for each evaluator the signature with which its verdicts were made, if known.
        inputs: ``{"path", "checksum"}`` of the files behind the tables.
        annotations: what people said about the claims (`factaudit.tables.annotations`). If two of
            them labelled the same claims, no verdicts are needed: then the audit measures only how
            far the annotators agree.
        label_rule: how the annotations become labels: ``majority``, ``any_unattributable``,
            ``all_attributable`` or the name of an annotator. By default, the labels are those of
            the claims.
    """
    known = list_computable_audits()
    chosen = read_audit_names_and_options(audits)
    if isinstance(claims, ComparisonTables):
        ready = claims
    else:
        ready = ComparisonTables.join(
            claims, verdicts, annotations, label_rule, mapping, columns, evaluators
        )
    judged = ready.judged
    if not judged.evaluators and judged.has_double_labels:
        able = {name: given for name, given in chosen.items() if known[name].without_evaluators}
        if audits is not None and (lacking := [name for name in chosen if name not in able]):
            raise UsageError(f"audit {lacking[0]!r} needs verdicts, and there are none")
        chosen = able
    if audits is None:
        applies = {name: known[name].applies for name in chosen}
        chosen = {
            name: given
            for name, given in chosen.items()
            if (asked := applies[name]) is None or asked(judged)
        }
    for name, given in chosen.items():
        if (complete := known[name].complete) is not None:
            chosen[name] = complete(given, signatures or {})
    if title == DEFAULT_TITLE and [*chosen] == ["agreement"]:
        title = "Annotators compared"
    options: AuditRunOptions = {
        "title": title,
        "seed": seed,
        "replicates": replicates,
        "confidence": confidence,
        "require": require,
        "trained_on": trained_on,
        "inputs": inputs,
    }
    intervals, found = make_intervals(options), dict[str, Sequence[Row]]()
    for name, given in chosen.items():
        compute = known[name].compute
        assert compute is not None
        with use_one_blas_thread():
            found[name] = compute(judged, **given, intervals=intervals)
    about = describe_audit_inputs(judged, ready.evaluator_order, signatures or {})
    results = assemble_results(ready.tables_digest, about, chosen, found, options)
    if ready.graded_labels:
        results.about["graded_labels"] = list(ready.graded_labels)
    if ready.label_rule is None:
        return results
    return replace(results, signature=f"{results.signature}|label_rule:{ready.label_rule}")
