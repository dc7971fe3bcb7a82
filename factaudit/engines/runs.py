"""How do files of responses become a run folder? Tables, summary, audits and the report, for both engines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.judgements import Judgements
from factaudit.audit.audit_options import read_audit_names_and_options
from factaudit.audit.citations import compute_citation_audit
from factaudit.audit.core.audit_declaration import Column
from factaudit.audit.core.figure_formatting import format_figure_range, format_percent, format_percentage_points
from factaudit.audit.core.result_rows import Row
from factaudit.audit.dfactscore_people import (
    compare_human_and_machine_dfactscores,
    compute_annotator_agreement,
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
        return _ScoreRun(self, self.factscore, out, progress, say).run(overwrite)

    def estimate_cost(self) -> list[Row]:
        """See `RunSettings.estimate_cost`."""
        return count_scoring_calls(self)


class DFactScoreExperiment(RunSettings):
    """An experiment YAML with a ``dfactscore:`` block."""

    title: str = "D-FActScore"
    dfactscore: DFactScoreSettings

    def run_into(self, out: Path, *, progress: bool, overwrite: bool, say: Say) -> Results:
        """See `RunSettings.run_into`."""
        return _DScoreRun(self, self.dfactscore, out, progress, say).run(overwrite)

    def estimate_cost(self) -> list[Row]:
        """See `RunSettings.estimate_cost`."""
        return count_scoring_calls(self)


def load_experiment(file: YamlFile) -> FactScoreExperiment | DFactScoreExperiment:
    """Check an experiment YAML; `factaudit.experiment.run.read_experiment` reads it."""
    if "factscore" in file.data:
        return check_engine_experiment(FactScoreExperiment, "factscore", file)
    return check_engine_experiment(DFactScoreExperiment, "dfactscore", file)


class _ScoreRun:
    """A run of FActScore; the same one again resumes and reuses.

    Writes ``claims.parquet``, ``verdicts.parquet``, ``responses.jsonl``, ``summary.json`` (with this run's
    ``seconds_per_example``: what was known already takes none), ``results.json``, tables, figures and the report.
    """

    kind: type[FactScorer] = FactScorer

    def __init__(self, experiment: RunSettings, block: Any, out: Path, progress: bool, say: Say) -> None:
        self.experiment, self.block, self.out, self.progress, self.say = experiment, block, out, progress, say
        # A misspelt audit is found before an hour of judging, not after.
        read_audit_names_and_options(experiment.audits)
        inputs = block.list_inputs()
        fetch_missing_published_files(inputs, say)
        check_run_spares_inputs(out, inputs)
        self.inputs = [path for path in inputs if path != block.knowledge or path.endswith((".jsonl", ".jsonl.gz"))]
        self.responses, notes = read_block_responses(block)
        for note in notes:
            say(note)
        systems = format_count(len({one.system for one in self.responses}), "system")
        say(f"responses {len(self.responses):>9,} of {systems}")
        self.scorer: Any = make_scorer(self.kind, block, out, say)
        self.names = [one.name for one in self.scorer.verifiers]
        self.intervals = None
        if experiment.replicates:
            settings = experiment.model_dump(include={"replicates", "seed", "confidence"})
            self.intervals = ClusterBootstrap(**settings)
        self.further_callers: list[tuple[str, Any]] = []
        self.prepare()

    def run(self, overwrite: bool) -> Results:
        """Score, audit, and write the run folder."""
        with RunFolder.open(self.out, self.inputs, overwrite=overwrite, say=self.say) as run:
            callers = [*self.scorer.callers, *self.further_callers]
            with count_run_llm_calls(callers, run.work / "calls.json", self.experiment.max_cost) as calls:
                start = time.monotonic()
                scored = self.scorer.score(self.responses, journal=run.work / "journal", progress=self.progress)
                seconds = (time.monotonic() - start) / len(self.responses)
                self.score_further(run.work / "journal", scored)
            n_facts = scored.claims["claim"].notna().sum()
            unscored = format_unscored_verdicts(scored.verdicts, self.names)
            for line in (f"claims    {n_facts:>9,}", *unscored, *scored.notes):
                self.say(line)
            write_table(scored.claims, self.out / "claims.parquet")
            write_table(scored.verdicts, self.out / "verdicts.parquet")
            judged = Judgements.join(scored.claims, scored.verdicts)
            outputs = {one.response_id: one.output for one in self.responses}
            rows = {row["response_id"]: row for row in self.list_responses(judged)}
            rows = {name: {"response_id": name, **rows.get(name, {}), "output": outputs[name]} for name in outputs}
            write_jsonl(self.out / "responses.jsonl", rows.values())
            results = compare_run_tables(
                *self.list_audit_tables(scored, judged),
                self.scorer.settings,
                engine_tables=(scored.claims, scored.verdicts, self.list_audits()),
                inputs=list_file_checksums(self.inputs),
                signatures=self.scorer.signatures,
                **self.experiment.model_dump(include={"title", "audits", "replicates", "seed", "confidence"}),
            )
            if scored.notes:
                results.about["reading"] = scored.notes
            self.add_audits(results, list(rows.values()))
            results.calls.extend(calls)
            for line in self.list_lines(results):
                self.say(line)
            own = (row for row in results.audits.get(self.audit, []) if row["evaluator"] == self.names[0])
            whole: Row = next(own, {"score": None})
            summary = whole | {"n_responses": len(self.responses), "cost": sum_run_call_costs(calls)}
            summary |= {"seconds_per_example": round(seconds, 6)}
            summary |= {"signature": make_signature(self.scorer.signatures[self.names[0]], self.scorer.settings)}
            write_json(self.out / "summary.json", summary)
            return run.finish(self.experiment, results)

    # ------------------------------------------------------------------ what is FActScore's own, and D-FActScore's

    #: The audit of the score.
    audit = "factscore"

    def prepare(self) -> None:
        """Make the variants."""
        variants = list_score_variants(self.block)
        self.variants = {name: make_scorer(self.kind, one, self.out) for name, one in variants.items()}
        self.scored_variants: dict[str, tuple[str, ScoredFacts]] = {}
        for name, one in self.variants.items():
            if any(client and client.cache is None for client in (one.llm, one.decomposer)):
                raise UsageError("variants share what they ask through the cache of replies: leave llm.cache as it is")
            self.further_callers += [(f"{name}: {who}", client) for who, client in one.callers]

    def score_further(self, journal: Path, scored: ScoredFacts) -> None:
        """Score the variants."""
        for name, one in self.variants.items():
            own = one.score(self.responses, journal=journal, progress=self.progress)
            self.scored_variants[name] = one.verifiers[0].name, own
        if self.variants:
            self.scored_variants = {BASE_VARIANT: (self.names[0], scored), **self.scored_variants}

    def list_responses(self, judged: Judgements) -> list[Row]:
        """A row per response with its score."""
        return list_factscore_responses(judged, self.block.gamma)

    def list_audits(self) -> dict[str, Row]:
        """The engine's own audits with their options."""
        gamma = {"gamma": self.block.gamma}
        return {
            "factscore": gamma,
            "discrimination": {},
            "factscore_agreement": {"irrelevant": self.block.irrelevant, **gamma},
            "decomposition": {"demonstrations": str(self.block.demos)} if self.block.demos else {},
        }

    def list_audit_tables(self, scored: ScoredFacts, judged: Judgements) -> tuple[Any, Any]:
        """The claims and verdicts that other audits read."""
        return scored.claims, scored.verdicts

    def add_audits(self, results: Results, rows: Sequence[Row]) -> None:
        """The audits that compare the variants with the base."""
        if not self.variants:
            return
        claims, verdicts = stack_variants(self.scored_variants)
        write_table(claims, self.out / "variant_claims.parquet")
        write_table(verdicts, self.out / "variant_verdicts.parquet")
        gammas = {name: one.options.gamma for name, one in self.variants.items()}
        options = {"gamma": self.block.gamma, "gammas": gammas}
        settings = self.experiment.model_dump(include={"replicates", "seed", "confidence"})
        more = compare(claims, verdicts, audits=[{"sensitivity": options}, "retrieval"], **settings)
        results.audits.update({name: found for name, found in more.audits.items() if found})
        results.finding_rows.extend(more.finding_rows)
        signatures = {name: one.signatures[one.verifiers[0].name] for name, one in self.variants.items()}
        results.about["variants"] = signatures

    def list_lines(self, results: Results) -> list[str]:
        """What the command prints of the scores."""
        rows = self.list_system_rows(results)
        lines = [format_factscore(row, self.experiment.confidence) for row in rows]
        # The first row of a variant is of all systems.
        first = {row["variant"]: row for row in reversed(results.audits.get("sensitivity", []))}
        lines += [_format_variant(first[name]) for name in (BASE_VARIANT, *self.variants) if name in first]
        return lines or ["no FActScore: no response states a fact"]

    def list_system_rows(self, results: Results) -> list[Row]:
        """The rows of the score of single systems, by verifier."""
        return [row for row in results.audits.get(self.audit, []) if row["system"] != ALL_TOGETHER]


class _DScoreRun(_ScoreRun):
    """A run of D-FActScore."""

    kind = DFactScorer
    audit = "dfactscore"

    def prepare(self) -> None:
        """Make the judge of citations."""
        self.judge = None if self.block.citation_judge is None else make_named_evaluator(self.block.citation_judge)
        if self.judge is not None:
            members = walk_evaluator_members(self.judge.evaluator)
            self.further_callers = [(f"citations: {self.judge.name}", member) for member, _ in members]

    def score_further(self, journal: Path, scored: ScoredFacts) -> None:
        """Judge the citations."""
        if self.judge is not None:
            self.cited = judge_citations(self.responses, self.judge, journal=journal, progress=self.progress)

    def list_responses(self, judged: Judgements) -> list[Row]:
        """A row per response with its scores, groups and facts, by the first verifier."""
        if self.names[0] not in judged.evaluators:
            return []
        first = judged.evaluators.index(self.names[0])
        return list_dfactscore_responses(judged, first, self.block.rule, self.block.gamma, self.block.narrow)

    def list_audits(self) -> dict[str, Row]:
        """The engine's own audits with their options."""
        link, figures = {"link": self.block.rule}, {"gamma": self.block.gamma, "narrow": self.block.narrow}
        return {
            "dfactscore": link | figures,
            "dfactscore_gap": link,
            "dfactscore_linking": figures,
            "dfactscore_elsewhere": link,
            "decomposition": super().list_audits()["decomposition"],
        }

    def list_audit_tables(self, scored: ScoredFacts, judged: Judgements) -> tuple[Any, Any]:
        """What the two scores say of each fact: other audits would take each fact and person for a claim."""
        if self.names[0] not in judged.evaluators:
            return scored.claims, scored.verdicts
        return make_score_verdicts(scored.claims, judged, self.names, self.block.rule)

    def add_audits(self, results: Results, rows: Sequence[Row]) -> None:
        """Merged paragraphs, citations, and people's annotations."""
        if section := make_merged_section([row for row in rows if row.get("merged")]):
            results.sections.append(section)
        if self.judge is not None:
            claims, verdicts = self.cited
            judged = claims.drop(columns="doc").merge(verdicts, on="claim_id", how="left")
            write_jsonl(self.out / "citations.jsonl", list_plain_rows(judged))
            joined = Judgements.join(claims, verdicts)
            results.audits["citations"] = compute_citation_audit(joined, intervals=self.intervals)
        if self.block.annotations is not None:
            people = read_biography_fact_annotations(self.block.annotations)
            scored = [row for row in rows if "init_factscore" in row]
            results.audits["dfactscore_people"] = compare_human_and_machine_dfactscores(
                compute_human_dfactscores(people), scored, intervals=self.intervals
            )
            results.audits["annotator_agreement"] = compute_annotator_agreement(people)

    def list_lines(self, results: Results) -> list[str]:
        """What the command prints of the scores."""
        rows = [row for row in self.list_system_rows(results) if row["evaluator"] == self.names[0]]
        return list(map(format_dfactscore, rows)) or ["no D-FActScore: no response states a fact"]


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


def count_scoring_calls(experiment: RunSettings) -> list[Row]:
    """A row per step that asks a language model: ``evaluator`` (the step), ``model``, ``calls`` (at most; None: not
    known before the facts are) and ``reason``; what a row of `factaudit.llm.cost.estimate_llm_judging_cost` has besides
    is None. Each variant is counted as if it asked everything anew."""
    block = getattr(experiment, "factscore", None) or getattr(experiment, "dfactscore", None)
    if not isinstance(block, EngineSettings) or not (block.llm or block.decomposer):
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
