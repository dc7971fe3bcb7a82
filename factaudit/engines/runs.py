"""How do files of responses become a run folder? Tables, summary, audits and the report, for both engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.judgements import Judgements
from factaudit.audit.audit_options import read_audit_names_and_options
from factaudit.audit.citations import compute_citation_audit
from factaudit.audit.core.audit_declaration import Column
from factaudit.audit.core.figure_formatting import format_figure_range, format_percent, format_percentage_points
from factaudit.audit.core.result_rows import Row
from factaudit.audit.dfactscore_people import (
    compare_human_and_machine_dfactscores,
    compute_human_dfactscores,
)
from factaudit.audit.sensitivity import BASE_VARIANT
from factaudit.datasets.biography_annotations import read_biography_fact_annotations
from factaudit.engines.citations import judge_citations
from factaudit.engines.conversations import read_conversations
from factaudit.engines.decompose import split_response
from factaudit.engines.dfactscore import DFactScorer
from factaudit.engines.factscore import FactScorer, ScoredFacts, is_own_verifier
from factaudit.engines.responses import Response, read_responses
from factaudit.engines.score_rows import (
    format_dfactscore,
    format_factscore,
    list_dfactscore_responses,
    list_factscore_responses,
    make_merged_section,
    make_score_verdicts,
)
from factaudit.engines.settings import (
    DFactScoreSettings,
    EngineSettings,
    FactScoreSettings,
    Say,
    check_engine_experiment,
    make_scorer,
)
from factaudit.engines.variants import list_score_variants, stack_variants
from factaudit.errors import UsageError
from factaudit.evaluators.judging import make_named_evaluator, walk_evaluator_members
from factaudit.evaluators.unscored_verdicts import format_unscored_verdicts
from factaudit.experiment.folder import (
    RunFolder,
    RunSettings,
    check_run_spares_inputs,
    compare_run_tables,
    count_run_llm_calls,
    list_file_checksums,
    sum_run_call_costs,
)
from factaudit.files import write_json, write_jsonl
from factaudit.publications.fetching import fetch_missing_published_files
from factaudit.results import Results, compare
from factaudit.settings.yaml_file import YamlFile
from factaudit.signature import make_signature
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables import list_plain_rows, write_table
from factaudit.text.display_text import format_count


class FactScoreExperiment(RunSettings):
    """An experiment YAML with a ``factscore:`` block."""

    title: str = "FActScore"
    factscore: FactScoreSettings

    def run_into(self, out: Path, *, progress: bool, overwrite: bool, say: Say) -> Results:
        """See `RunSettings.run_into`."""
        block = self.factscore
        responses, inputs, scorer = _prepare(FactScorer, self, block, out, say)
        variants = {name: make_scorer(FactScorer, one, out) for name, one in list_score_variants(block).items()}
        callers = scorer.callers
        for name, one in variants.items():
            if any(client and client.cache is None for client in (one.llm, one.decomposer)):
                raise UsageError("variants share what they ask through the cache of replies: leave llm.cache as it is")
            callers += [(f"{name}: {who}", client) for who, client in one.callers]
        with RunFolder.open(out, inputs, overwrite=overwrite, say=say) as run:
            with count_run_llm_calls(callers, run.work / "calls.json", self.max_cost) as calls:
                asked: dict[str, Any] = {"journal": run.work / "journal", "progress": progress}
                scored = scorer.score(responses, **asked)
                varied = {name: (one.names[0], one.score(responses, **asked)) for name, one in variants.items()}
            judged = _write_facts(scored, scorer, out, say)
            _write_responses(out, responses, list_factscore_responses(judged, block.gamma))
            gamma = {"gamma": block.gamma}
            audits: dict[str, Row] = {
                "factscore": gamma,
                "discrimination": {},
                "factscore_agreement": {"irrelevant": block.irrelevant, **gamma},
                "decomposition": {"demonstrations": str(block.demos)} if block.demos else {},
            }
            tables = scored.claims, scored.verdicts
            results = _compare(self, scorer, scored, audits, tables, inputs)
            rows = [row for row in results.audits.get("factscore", []) if row["system"] != ALL_TOGETHER]
            lines = [format_factscore(row, self.confidence) for row in rows]
            if variants:
                every = {BASE_VARIANT: (scorer.names[0], scored), **varied}
                lines += _compare_variants(self, every, variants, results, out)
            return _finish(run, self, scorer, results, calls, "factscore", lines)

    def estimate_cost(self) -> list[Row]:
        """See `RunSettings.estimate_cost`."""
        return count_scoring_calls(self.factscore)


class DFactScoreExperiment(RunSettings):
    """An experiment YAML with a ``dfactscore:`` block."""

    title: str = "D-FActScore"
    dfactscore: DFactScoreSettings

    def run_into(self, out: Path, *, progress: bool, overwrite: bool, say: Say) -> Results:
        """See `RunSettings.run_into`."""
        block = self.dfactscore
        responses, inputs, scorer = _prepare(DFactScorer, self, block, out, say)
        judge = None if block.citation_judge is None else make_named_evaluator(block.citation_judge)
        members = () if judge is None else walk_evaluator_members(judge.evaluator)
        callers = [*scorer.callers, *((f"citations: {judge and judge.name}", member) for member, _ in members)]
        cited = None
        with RunFolder.open(out, inputs, overwrite=overwrite, say=say) as run:
            with count_run_llm_calls(callers, run.work / "calls.json", self.max_cost) as calls:
                asked: dict[str, Any] = {"journal": run.work / "journal", "progress": progress}
                scored = scorer.score(responses, **asked)
                if judge is not None:
                    cited = judge_citations(responses, judge, **asked)
            judged = _write_facts(scored, scorer, out, say)
            rows: list[Row] = []
            tables = scored.claims, scored.verdicts
            if scorer.names[0] in judged.evaluators:
                first = judged.evaluators.index(scorer.names[0])
                rows = list_dfactscore_responses(judged, first, block.rule, block.gamma, block.narrow)
                # Other audits would take each fact and person for a claim.
                tables = make_score_verdicts(scored.claims, judged, scorer.names, block.rule)
            _write_responses(out, responses, rows)
            link, figures = {"link": block.rule}, {"gamma": block.gamma, "narrow": block.narrow}
            audits: dict[str, Row] = {
                "dfactscore": link | figures,
                "dfactscore_gap": link,
                "dfactscore_linking": figures,
                "dfactscore_elsewhere": link,
                "decomposition": {"demonstrations": str(block.demos)} if block.demos else {},
            }
            results = _compare(self, scorer, scored, audits, tables, inputs)
            if section := make_merged_section(rows):
                results.sections.append(section)
            intervals = None
            if self.replicates:
                intervals = ClusterBootstrap(**self.model_dump(include={"replicates", "seed", "confidence"}))
            if cited is not None:
                claims, verdicts = cited
                told = claims.drop(columns="doc").merge(verdicts, on="claim_id", how="left")
                write_jsonl(out / "citations.jsonl", list_plain_rows(told))
                results.audits["citations"] = compute_citation_audit(Judgements.join(*cited), intervals=intervals)
            if block.annotations is not None:
                people = read_biography_fact_annotations(block.annotations)
                results.audits["dfactscore_people"] = compare_human_and_machine_dfactscores(
                    compute_human_dfactscores(people), rows, intervals=intervals
                )
            by_first = [row for row in results.audits.get("dfactscore", []) if row["evaluator"] == scorer.names[0]]
            lines = [format_dfactscore(row) for row in by_first if row["system"] != ALL_TOGETHER]
            return _finish(run, self, scorer, results, calls, "dfactscore", lines)

    def estimate_cost(self) -> list[Row]:
        """See `RunSettings.estimate_cost`."""
        return count_scoring_calls(self.dfactscore)


def load_experiment(file: YamlFile) -> FactScoreExperiment | DFactScoreExperiment:
    """Check an experiment YAML; `factaudit.experiment.run.read_experiment` reads it."""
    if "factscore" in file.data:
        return check_engine_experiment(FactScoreExperiment, "factscore", file)
    return check_engine_experiment(DFactScoreExperiment, "dfactscore", file)


# ------------------------------------------------------------------------------------- the steps that both runs share


def _prepare(
    kind: type[FactScorer], experiment: RunSettings, block: EngineSettings, out: Path, say: Say
) -> tuple[list[Response], list[str], Any]:
    """The responses, the files that are read, and the engine."""
    # A misspelt audit is found before an hour of judging, not after.
    read_audit_names_and_options(experiment.audits)
    inputs = block.list_inputs()
    fetch_missing_published_files(inputs, say)
    check_run_spares_inputs(out, inputs)
    responses, notes = read_block_responses(block)
    systems = format_count(len({one.system for one in responses}), "system")
    for line in (*notes, f"responses {len(responses):>9,} of {systems}"):
        say(line)
    # A knowledge source may have gigabytes: the signature tells it.
    named = [path for path in inputs if path != block.knowledge or path.endswith((".jsonl", ".jsonl.gz"))]
    return responses, named, make_scorer(kind, block, out, say)


def _write_facts(scored: ScoredFacts, scorer: Any, out: Path, say: Say) -> Judgements:
    """Write ``claims.parquet`` and ``verdicts.parquet``, and say what they hold."""
    n_facts = scored.claims["claim"].notna().sum()
    unscored = format_unscored_verdicts(scored.verdicts, scorer.names)
    for line in (f"claims    {n_facts:>9,}", *unscored, *scored.notes):
        say(line)
    write_table(scored.claims, out / "claims.parquet")
    write_table(scored.verdicts, out / "verdicts.parquet")
    return Judgements.join(scored.claims, scored.verdicts)


def _write_responses(out: Path, responses: Sequence[Response], rows: Sequence[Row]) -> None:
    """Write ``responses.jsonl``: each response with its scores, in the order of the input."""
    scores = {row["response_id"]: row for row in rows}
    told = []
    for one in responses:
        names = {"response_id": one.response_id, "system": one.system, "topic": one.topic}
        told.append(names | scores.get(one.response_id, {}) | {"output": one.output})
    write_jsonl(out / "responses.jsonl", told)


def _compare(
    experiment: RunSettings,
    scorer: Any,
    scored: ScoredFacts,
    audits: Mapping[str, Row],
    tables: tuple[pd.DataFrame, pd.DataFrame],
    inputs: Sequence[str],
) -> Results:
    """The engine's own audits, of the facts, and the other ones, of ``tables``."""
    results = compare_run_tables(
        *tables,
        scorer.settings,
        engine_tables=(scored.claims, scored.verdicts, audits),
        inputs=list_file_checksums(inputs),
        signatures=scorer.signatures,
        **experiment.model_dump(include={"title", "audits", "replicates", "seed", "confidence"}),
    )
    if scored.notes:
        results.about["reading"] = scored.notes
    return results


def _finish(
    run: RunFolder,
    experiment: RunSettings,
    scorer: Any,
    results: Results,
    calls: Sequence[Row],
    audit: str,
    lines: Sequence[str],
) -> Results:
    """Say the scores, and write ``summary.json`` (the first verifier's), ``results.json`` and the report."""
    for line in lines or ["no score: no response states a fact"]:
        run.say(line)
    results.calls.extend(calls)
    own = (row for row in results.audits.get(audit, []) if row["evaluator"] == scorer.names[0])
    summary: Row = next(own, {"score": None})
    signature = make_signature(scorer.signatures[scorer.names[0]], scorer.settings)
    write_json(run.path / "summary.json", summary | {"cost": sum_run_call_costs(calls), "signature": signature})
    return run.finish(experiment, results)


def _compare_variants(
    experiment: FactScoreExperiment,
    every: Mapping[str, tuple[str, ScoredFacts]],
    variants: Mapping[str, Any],
    results: Results,
    out: Path,
) -> list[str]:
    """Add the audits that compare the variants with the base; what the command prints of them."""
    claims, verdicts = stack_variants(every)
    write_table(claims, out / "variant_claims.parquet")
    write_table(verdicts, out / "variant_verdicts.parquet")
    gammas = {name: one.options.gamma for name, one in variants.items()}
    more = compare(
        claims,
        verdicts,
        audits=[{"sensitivity": {"gamma": experiment.factscore.gamma, "gammas": gammas}}, "retrieval"],
        **experiment.model_dump(include={"replicates", "seed", "confidence"}),
    )
    results.audits.update({name: rows for name, rows in more.audits.items() if rows})
    results.finding_rows.extend(more.finding_rows)
    results.about["variants"] = {name: one.signatures[one.names[0]] for name, one in variants.items()}
    # The first row of a variant is of all systems.
    first = {row["variant"]: row for row in reversed(results.audits.get("sensitivity", []))}
    return [_format_variant(first[name]) for name in every if name in first]


def _format_variant(row: Row) -> str:
    """A variant's score, and its change from the base in points, each with its interval."""
    told = []
    columns = (("score", Column("", "percent"), format_percent), ("change", Column("", "points"), _format_change))
    for key, column, shown in columns:
        low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
        ends = "" if low is None or high is None else f" ({format_figure_range(column, low, high)})"
        told.append("" if row[key] is None else shown(row[key]) + ends)
    return f"{row['variant']:<28} {told[0] or '–':<22} {told[1]}".rstrip()


def _format_change(change: float) -> str:
    return format_percentage_points(change, with_sign=True)


def read_block_responses(block: EngineSettings) -> tuple[list[Response], list[str]]:
    """The responses that a block of settings names, and what was left out of them."""
    if isinstance(block, FactScoreSettings) and block.conversation:
        return read_conversations(list(map(Path, block.responses)), block.topic, block.system, block.limit)
    return read_responses(block.responses, facts=block.facts, system=block.system, limit=block.limit), []


def count_scoring_calls(block: EngineSettings) -> list[Row]:
    """A row per step that asks a language model: ``evaluator`` (the step), ``model``, ``calls`` (at most; None: not
    known before the facts are) and ``reason``; what a row of `factaudit.llm.cost.estimate_llm_judging_cost` has besides
    is None. Each variant is counted as if it asked everything anew."""
    if not (block.llm or block.decomposer):
        return []
    responses, _ = read_block_responses(block)
    n_runs = 1 + len(list_score_variants(block)) if isinstance(block, FactScoreSettings) else 1
    calls: dict[str, int | None] = {}
    if texts := [one.output for one in responses if one.facts is None]:
        calls["decompose"] = n_runs * sum(len(split_response(text)[0]) for text in texts)
    if getattr(block, "grouper", None) == "llm":
        calls["group"] = 2 * len(responses)  # once more where the reply cannot be read
    if any(map(is_own_verifier, block.verifiers)):
        calls["verify"] = None
    limit = "the cost is not known before the facts are; max_cost limits it"
    rows = []
    for step, number in calls.items():
        llm = block.decomposer or block.llm if step == "decompose" else block.llm
        row: Row = dict.fromkeys(("cached_calls", "prompt_tokens", "max_completion_tokens", "cost"))
        row |= {"evaluator": step, "model": llm.client_key()[0] if llm else None, "calls": number}
        why = "one call for each fact and each page that it is put to; " if number is None else ""
        rows.append(row | {"reason": why + limit})
    return rows
