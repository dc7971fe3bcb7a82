"""How do files of responses become a run folder? Tables, summary, audits and the report, for both
engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.judgements import Judgements
from factaudit.audit import list_computable_audits
from factaudit.audit.audit_options import read_audit_names_and_options
from factaudit.audit.citations import compute_citation_audit
from factaudit.audit.core.audit_declaration import Column
from factaudit.audit.core.figure_formatting import (
    format_figure_range,
    format_percent,
    format_percentage_points,
)
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
from factaudit.engines.dfactscore import dfactscore
from factaudit.engines.factscore import factscore
from factaudit.engines.passages import ScoredFacts
from factaudit.engines.pipeline import (
    DFactScoreSettings,
    FactScoreSettings,
    Pipeline,
    Say,
    ScoreSettings,
)
from factaudit.engines.responses import Response, read_responses
from factaudit.engines.score_rows import (
    format_dfactscore,
    format_factscore,
    list_dfactscore_responses,
    list_factscore_responses,
    make_merged_section,
)
from factaudit.engines.variants import list_score_variants, stack_variants
from factaudit.engines.verifier import OWN_VERIFIERS
from factaudit.errors import UsageError
from factaudit.evaluators.judging import make_named_evaluator, walk_evaluator_members
from factaudit.evaluators.unscored_verdicts import format_unscored_verdicts
from factaudit.experiment.folder import (
    RunFolder,
    RunSettings,
    check_run_spares_inputs,
    count_run_llm_calls,
    list_file_checksums,
    sum_run_call_costs,
)
from factaudit.experiment.inputs import check_audit_specs, resolve_evaluator_paths
from factaudit.files import write_json, write_jsonl
from factaudit.publications.fetching import fetch_missing_published_files
from factaudit.results import Results, compare
from factaudit.settings.yaml_file import YamlFile, check_yaml_settings
from factaudit.settings.yaml_paths import YamlPaths
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
        responses, inputs, models = _prepare(self, block, out, say)
        variants = {
            name: Pipeline.open(one, out) for name, one in list_score_variants(block).items()
        }
        callers = models.callers
        for name, one in variants.items():
            if any(client and client.cache is None for client in (one.llm, one.decomposer)):
                raise UsageError(
                    "variants share what they ask through the cache of replies: leave llm.cache as"
                    " it is"
                )
            callers += [(f"{name}: {who}", client) for who, client in one.callers]
        with RunFolder.open(out, inputs, overwrite=overwrite, say=say) as run:
            with count_run_llm_calls(callers, run.work / "calls.json", self.max_cost) as calls:
                asked: dict[str, Any] = {"journal": run.work / "journal", "progress": progress}
                scored = factscore(responses, models, **asked)
                varied = {
                    name: (one.names[0], factscore(responses, one, **asked))
                    for name, one in variants.items()
                }
            judged = _write_facts(scored, models, run)
            _write_responses(out, responses, list_factscore_responses(judged, block.gamma))
            gamma = {"gamma": block.gamma}
            audits: dict[str, Row] = {
                "factscore": gamma,
                "discrimination": {},
                "factscore_agreement": {"irrelevant": block.irrelevant, **gamma},
                "decomposition": {"demonstrations": str(block.demos)} if block.demos else {},
            }
            results = _compare(self, models, scored, judged, audits, inputs, self.audits)
            rows = [
                row for row in results.audits.get("factscore", []) if row["system"] != ALL_TOGETHER
            ]
            lines = [format_factscore(row, self.confidence) for row in rows]
            if variants:
                every = {BASE_VARIANT: (models.names[0], scored), **varied}
                lines += _compare_variants(self, every, variants, results, out)
            return _finish(run, self, models, results, calls, "factscore", lines)

    def estimate_cost(self) -> list[Row]:
        """See `RunSettings.estimate_cost`."""
        return count_scoring_calls(self.factscore)


class DFactScoreExperiment(RunSettings):
    """An experiment YAML with a ``dfactscore:`` block. Other audits than its own would take each
    fact and person for a claim."""

    title: str = "D-FActScore"
    dfactscore: DFactScoreSettings

    def run_into(self, out: Path, *, progress: bool, overwrite: bool, say: Say) -> Results:
        """See `RunSettings.run_into`."""
        block = self.dfactscore
        link, figures = {"link": block.rule}, {"gamma": block.gamma, "narrow": block.narrow}
        audits: dict[str, Row] = {
            "dfactscore": link | figures,
            "dfactscore_gap": link,
            "dfactscore_linking": figures,
            "dfactscore_elsewhere": link,
            "decomposition": {"demonstrations": str(block.demos)} if block.demos else {},
        }
        if others := set(read_audit_names_and_options(self.audits or ())) - set(audits):
            raise UsageError(
                f"audits: D-FActScore has its own ({', '.join(audits)}), and {sorted(others)[0]!r}"
                " is none of them; leave it out"
            )
        responses, inputs, models = _prepare(self, block, out, say)
        judge = None if block.citation_judge is None else make_named_evaluator(block.citation_judge)
        callers, cited = models.callers, None
        if judge is not None:
            members = walk_evaluator_members(judge.evaluator)
            callers += [(f"citations: {judge.name}", member) for member, _ in members]
        with RunFolder.open(out, inputs, overwrite=overwrite, say=say) as run:
            with count_run_llm_calls(callers, run.work / "calls.json", self.max_cost) as calls:
                asked: dict[str, Any] = {"journal": run.work / "journal", "progress": progress}
                scored = dfactscore(responses, models, **asked)
                if judge is not None:
                    cited = judge_citations(responses, judge, **asked)
            judged = _write_facts(scored, models, run)
            rows: list[Row] = []
            if models.names[0] in judged.evaluators:
                first = judged.evaluators.index(models.names[0])
                rows = list_dfactscore_responses(
                    judged, first, block.rule, block.gamma, block.narrow
                )
            _write_responses(out, responses, rows)
            results = _compare(self, models, scored, judged, audits, inputs, self.audits or [])
            if section := make_merged_section(rows):
                results.sections.append(section)
            intervals = None
            if self.replicates:
                intervals = ClusterBootstrap(
                    **self.model_dump(include={"replicates", "seed", "confidence"})
                )
            if cited is not None:
                claims, verdicts = cited
                told = claims.drop(columns="doc").merge(verdicts, on="claim_id", how="left")
                write_jsonl(out / "citations.jsonl", list_plain_rows(told))
                results.audits["citations"] = compute_citation_audit(
                    Judgements.join(*cited), intervals=intervals
                )
            if block.annotations is not None:
                people = read_biography_fact_annotations(block.annotations)
                results.audits["dfactscore_people"] = compare_human_and_machine_dfactscores(
                    compute_human_dfactscores(people), rows, intervals=intervals
                )
            by_first = [
                row
                for row in results.audits.get("dfactscore", [])
                if row["evaluator"] == models.names[0]
            ]
            lines = [format_dfactscore(row) for row in by_first if row["system"] != ALL_TOGETHER]
            return _finish(run, self, models, results, calls, "dfactscore", lines)

    def estimate_cost(self) -> list[Row]:
        """See `RunSettings.estimate_cost`."""
        return count_scoring_calls(self.dfactscore)


def load_experiment(file: YamlFile) -> FactScoreExperiment | DFactScoreExperiment:
    """The experiment of a YAML with the block of an engine, all paths absolute, for
    `read_experiment`.

    Raises `InputError` naming the line of everything that is wrong.
    """
    name, model = (
        ("factscore", FactScoreExperiment)
        if "factscore" in file.data
        else ("dfactscore", DFactScoreExperiment)
    )
    own = file.data.get(name)
    file.wrap_in_lists(own, "responses", "verifiers")
    experiment: Any = check_yaml_settings(model, file.data, file)
    paths = YamlPaths(file, experiment.data)
    block = getattr(experiment, name)

    def resolve(key: str, value: Any, *place: str | int) -> Any:
        """The value of a key, or of its variant, with absolute paths."""
        if key in block.PATHS:
            return paths.resolve_path(value, place)
        is_evaluator = (
            key in ("verifier", "verifiers", "citation_judge") and value not in OWN_VERIFIERS
        )
        return resolve_evaluator_paths(paths, value, *place) if is_evaluator else value

    changed: dict[str, Any] = {}
    for key in ("knowledge", "demos", "group_demos", "annotations", "citation_judge"):
        if (value := getattr(block, key, None)) is not None:
            changed[key] = resolve(key, value, name, key)
    changed["responses"] = [
        paths.resolve_path(*one)
        for one in paths.expand_patterns(block.responses, name, "responses")
    ]
    key = "verifier" if "verifier" in own else "verifiers"
    changed["verifiers"] = [
        resolve(key, one, name, key, at) for at, one in enumerate(block.verifiers)
    ]
    if variants := getattr(block, "variants", None):
        changed["variants"] = {
            key: [resolve(key, value, name, "variants", key, at) for at, value in enumerate(values)]
            for key, values in variants.items()
        }
    check_audit_specs(paths, experiment.audits)
    paths.check_problems()
    return experiment.model_copy(update={name: block.model_copy(update=changed)})


# ---- the steps that both runs share


def _prepare(
    experiment: RunSettings, block: ScoreSettings, out: Path, say: Say
) -> tuple[list[Response], list[str], Pipeline]:
    """The responses, the files that are read, and the models."""
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
    named = [
        path for path in inputs if path != block.knowledge or path.endswith((".jsonl", ".jsonl.gz"))
    ]
    return responses, named, Pipeline.open(block, out, say)


def _write_facts(scored: ScoredFacts, models: Pipeline, run: RunFolder) -> Judgements:
    """Write ``claims.parquet`` and ``verdicts.parquet``, and say what they hold."""
    n_facts = scored.claims["claim"].notna().sum()
    unscored = format_unscored_verdicts(scored.verdicts, models.names)
    for line in (f"claims    {n_facts:>9,}", *unscored, *scored.notes):
        run.say(line)
    write_table(scored.claims, run.path / "claims.parquet")
    write_table(scored.verdicts, run.path / "verdicts.parquet")
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
    models: Pipeline,
    scored: ScoredFacts,
    judged: Judgements,
    engine_audits: Mapping[str, Row],
    inputs: Sequence[str],
    audits: Sequence[Any] | None,
) -> Results:
    """The engine's own audits, then the others of ``audits``: by default all, or without labels
    those that need none.

    There may be no label, or no fact at all: audits that do not apply are left out.
    """
    known = list_computable_audits()
    named = read_audit_names_and_options(audits)
    chosen = set() if audits is None else set(named)
    if audits is None:
        has_labels = scored.claims["label"].notna().any()
        named = {name: {} for name, one in known.items() if has_labels or one.without_labels}
    asked = {name: {**given, **named.get(name, {})} for name, given in engine_audits.items()}
    if scored.claims["claim"].notna().any():
        asked |= {name: given for name, given in named.items() if name not in engine_audits}
    applicable = []
    for name, given in asked.items():
        applies = known[name].applies
        if name in chosen or applies is None or applies(judged):
            applicable.append({name: given})
    results = compare(
        scored.claims,
        scored.verdicts,
        audits=applicable,
        inputs=list_file_checksums(inputs),
        signatures=models.signatures,
        **experiment.model_dump(include={"title", "replicates", "seed", "confidence"}),
    )
    if scored.notes:
        results.about["reading"] = scored.notes
    return results


def _finish(
    run: RunFolder,
    experiment: RunSettings,
    models: Pipeline,
    results: Results,
    calls: Sequence[Row],
    audit: str,
    lines: Sequence[str],
) -> Results:
    """Say the scores, and write ``summary.json`` (the first verifier's), ``results.json`` and the
    report."""
    for line in lines or ["no score: no response states a fact"]:
        run.say(line)
    results.calls.extend(calls)
    own = (row for row in results.audits.get(audit, []) if row["evaluator"] == models.names[0])
    summary: Row = next(own, {"score": None})
    more = {"cost": sum_run_call_costs(calls), "signature": results.signature}
    write_json(run.path / "summary.json", summary | more)
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
    gammas = {name: one.settings.gamma for name, one in variants.items()}
    more = compare(
        claims,
        verdicts,
        audits=[
            {"sensitivity": {"gamma": experiment.factscore.gamma, "gammas": gammas}},
            "retrieval",
        ],
        **experiment.model_dump(include={"replicates", "seed", "confidence"}),
    )
    results.audits.update({name: rows for name, rows in more.audits.items() if rows})
    results.finding_rows.extend(more.finding_rows)
    results.about["variants"] = {
        name: one.signatures[one.names[0]] for name, one in variants.items()
    }
    # The first row of a variant is of all systems.
    first = {row["variant"]: row for row in reversed(results.audits.get("sensitivity", []))}
    return [_format_variant(first[name]) for name in every if name in first]


def _format_variant(row: Row) -> str:
    """A variant's score, and its change from the base in points, each with its interval."""
    score = _format_with_interval(row, "score", Column("", "percent"), format_percent)
    change = _format_with_interval(
        row, "change", Column("", "points"), partial(format_percentage_points, with_sign=True)
    )
    return f"{row['variant']:<28} {score or '–':<22} {change}".rstrip()


def _format_with_interval(
    row: Row, key: str, column: Column, format_figure: Callable[[float], str]
) -> str:
    if row[key] is None:
        return ""
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    ends = "" if low is None or high is None else f" ({format_figure_range(column, low, high)})"
    return format_figure(row[key]) + ends


def read_block_responses(block: ScoreSettings) -> tuple[list[Response], list[str]]:
    """The responses that a block of settings names, and what was left out of them."""
    if isinstance(block, FactScoreSettings) and block.conversation:
        return read_conversations(
            list(map(Path, block.responses)), block.topic, block.system, block.limit
        )
    return (
        read_responses(block.responses, facts=block.facts, system=block.system, limit=block.limit),
        [],
    )


def count_scoring_calls(block: ScoreSettings) -> list[Row]:
    """A row per step that asks a language model: ``evaluator`` (the step), ``model``, ``calls`` (at
    most; None: not known before the facts are) and ``reason``; what a row of
    `factaudit.llm.cost.estimate_llm_judging_cost` has besides is None. Each variant is counted as
    if it asked everything anew."""
    if not (block.llm or block.decomposer):
        return []
    responses, _ = read_block_responses(block)
    n_runs = 1 + len(list_score_variants(block)) if isinstance(block, FactScoreSettings) else 1
    decomposer, limit = (
        block.decomposer or block.llm,
        "the cost is not known before the facts are; max_cost limits it",
    )
    steps: list[tuple[str, Any, int | None, str]] = []
    if texts := [one.output for one in responses if one.facts is None]:
        n_sentences = sum(len(split_response(text)[0]) for text in texts)
        steps.append(("decompose", decomposer, n_runs * n_sentences, limit))
    if getattr(block, "grouper", None) == "llm":  # once more where the reply cannot be read
        steps.append(("group", block.llm, 2 * len(responses), limit))
    if any(spec in OWN_VERIFIERS for spec in block.verifiers):
        steps.append(
            (
                "verify",
                block.llm,
                None,
                f"one call for each fact and each page that it is put to; {limit}",
            )
        )
    unknown = dict.fromkeys(("cached_calls", "prompt_tokens", "max_completion_tokens", "cost"))
    return [
        {
            **unknown,
            "evaluator": step,
            "model": llm and llm.client_key()[0],
            "calls": n_calls,
            "reason": reason,
        }
        for step, llm, n_calls, reason in steps
    ]
