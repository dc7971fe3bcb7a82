"""How do files of responses become a run folder? Tables, scores, audits and the report, for both
engines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.judgements import Judgements
from factaudit.audit import list_computable_audits
from factaudit.audit.audit_options import read_audit_names_and_options
from factaudit.audit.core.result_rows import Row
from factaudit.audit.dfactscore_people import (
    compare_human_and_machine_dfactscores,
    compute_human_dfactscores,
)
from factaudit.audit.sensitivity import BASE_VARIANT
from factaudit.datasets.biography_annotations import read_biography_fact_annotations
from factaudit.engines.citations import judge_citations
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
    format_score,
    format_variant,
    list_factscore_rows,
    make_merged_section,
    score_biographies,
)
from factaudit.engines.variants import list_score_variants, stack_variants
from factaudit.engines.verifier import OWN_VERIFIERS
from factaudit.errors import UsageError
from factaudit.evaluators.judging import (
    NamedEvaluator,
    make_named_evaluator,
    walk_evaluator_members,
)
from factaudit.evaluators.unscored_verdicts import format_unscored_verdicts
from factaudit.experiment.folder import (
    RunFolder,
    RunSettings,
    check_run_spares_inputs,
    count_run_llm_calls,
    list_file_checksums,
)
from factaudit.experiment.inputs import check_audit_specs, resolve_evaluator_paths
from factaudit.files import write_jsonl
from factaudit.publications.fetching import fetch_missing_published_files, is_offline
from factaudit.results import Results, compare
from factaudit.settings.yaml_file import YamlFile, check_yaml_settings
from factaudit.settings.yaml_paths import YamlPaths, YamlPlace
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables import list_plain_rows, write_table
from factaudit.text.display_text import format_count


class _ScoreExperiment(RunSettings):
    """What the experiments of both scores do."""

    @property
    def block(self) -> Any:
        """The settings of the score."""
        return getattr(self, "factscore", None) or getattr(self, "dfactscore", None)

    def run_into(self, out: Path, *, progress: bool, overwrite: bool, say: Say) -> Results:
        """See `RunSettings.run_into`."""
        block = self.block
        self._list_audits()  # a misspelt audit is found before an hour of judging, not after
        inputs = block.list_inputs()
        fetch_missing_published_files(inputs, say)
        check_run_spares_inputs(out, inputs)
        # A knowledge source may have gigabytes: the signature names it.
        if not str(block.knowledge).endswith((".jsonl", ".jsonl.gz")):
            inputs = [path for path in inputs if path != block.knowledge]
        responses = read_block_responses(block)
        systems = format_count(len({one.system for one in responses}), "system")
        say(f"responses {len(responses):>9,} of {systems}")
        settings = {BASE_VARIANT: block, **list_score_variants(block)}
        pipelines = {name: Pipeline.open(one, out) for name, one in settings.items()}
        sources = [one.knowledge for one in pipelines.values() if one.knowledge is not None]
        if sources and sources[0].wikipedia is not None and not is_offline():
            wikipedia = sources[0].wikipedia
            say(
                "wikipedia pages that the knowledge source lacks are fetched from"
                f" {wikipedia.api}, two requests a topic, text under CC BY-SA, and kept in"
                f" {wikipedia.path}"
            )
        models = pipelines[BASE_VARIANT]
        judge = None if block.citation_judge is None else make_named_evaluator(block.citation_judge)
        callers = _list_callers(pipelines, judge)
        with RunFolder.open(out, inputs, overwrite=overwrite, say=say) as run:
            with count_run_llm_calls(callers, run.work / "calls.json", self.max_cost) as calls:
                asked: dict[str, Any] = {"journal": run.work / "journal", "progress": progress}
                score = dfactscore if isinstance(block, DFactScoreSettings) else factscore
                scored = {name: score(responses, one, **asked) for name, one in pipelines.items()}
                cited = None if judge is None else judge_citations(responses, judge, **asked)
            claims, verdicts, notes = scored[BASE_VARIANT]
            n_facts = claims["claim"].notna().sum()
            unscored = format_unscored_verdicts(verdicts, models.names, notes)
            for line in (f"claims    {n_facts:>9,}", *unscored, *notes):
                say(line)
            write_table(claims, out / "claims.parquet")
            write_table(verdicts, out / "verdicts.parquet")
            judged = Judgements.join(claims, verdicts)
            results = compare(
                claims,
                verdicts,
                audits=self._choose_audits(judged),
                inputs=list_file_checksums(inputs),
                signatures=models.signatures,
                title=self.title,
                **self._interval_options,
            )
            if notes:
                results.about["reading"] = notes
            for line in self._describe_scores(results, judged, models.names[0], out):
                say(line)
            if cited is not None:
                told = cited[0].drop(columns="doc").merge(cited[1], on="claim_id", how="left")
                write_jsonl(out / "citations.jsonl", list_plain_rows(told))
                self._add_audits(results, cited, ["citations"])
            for line in self._compare_variants(results, pipelines, scored, out):
                say(line)
            results.calls.extend(calls)
            return run.finish(self, results)

    def estimate_cost(self) -> list[Row]:
        """See `RunSettings.estimate_cost`."""
        return count_scoring_calls(self.block)

    @property
    def _interval_options(self) -> dict[str, Any]:
        return self.model_dump(include={"replicates", "seed", "confidence"})

    def _list_audits(self) -> dict[str, Row]:
        """The score's own audits with their options, then those of ``audits``, by default all.
        D-FActScore has its own alone: others would take each fact and person for a claim."""
        own, named = _list_own_audits(self.block), read_audit_names_and_options(self.audits)
        others = {name: given for name, given in named.items() if name not in own}
        if isinstance(self.block, DFactScoreSettings):
            if others and self.audits is not None:
                raise UsageError(
                    f"audits: D-FActScore has its own ({', '.join(own)}), and {min(others)!r} is"
                    " none of them; leave it out"
                )
            others = {}
        return {name: given | named.get(name, {}) for name, given in own.items()} | others

    def _choose_audits(self, judged: Judgements) -> list[dict[str, Row]]:
        """The audits that apply: without labels, of the others only those that need none."""
        known, own = list_computable_audits(), _list_own_audits(self.block)
        named = [] if self.audits is None else read_audit_names_and_options(self.audits)
        has_labels = bool((judged.label >= 0).any())
        chosen = []
        for name, given in self._list_audits().items():
            one = known[name]
            has_facts = name in own or len(judged.claims) > 0
            applies = has_facts and (one.applies is None or one.applies(judged))
            if name in named or (applies and (name in own or has_labels or one.without_labels)):
                chosen.append({name: given})
        return chosen

    def _describe_scores(
        self, results: Results, judged: Judgements, first: str, out: Path
    ) -> list[str]:
        """Write the scores of each response, add what the report shows besides audits, and return
        what the command prints: a line for each system.

        first: the name of the verifier whose score is *the* score.
        """
        block, audit = self.block, "factscore"
        figures = {"FActScore": "score", "without the length penalty": "init_score"}
        if isinstance(block, FactScoreSettings):
            write_jsonl(out / "responses.jsonl", list_factscore_rows(judged, block.gamma))
        else:
            audit = "dfactscore"
            figures = {"FActScore": "init_factscore", "D-FActScore": "init_dfactscore"}
            scored = score_biographies(judged, block.rule, block.gamma)
            write_jsonl(out / "responses.jsonl", [one.row for one in scored])
            own = [one for one in scored if one.row["evaluator"] == first]
            if section := make_merged_section(own):
                results.sections.append(section)
            if block.annotations is not None:
                people = read_biography_fact_annotations(block.annotations)
                results.audits["dfactscore_people"] = compare_human_and_machine_dfactscores(
                    compute_human_dfactscores(people),
                    [one.row for one in own],
                    intervals=ClusterBootstrap(**self._interval_options)
                    if self.replicates
                    else None,
                )
        rows = [row for row in results.audits.get(audit, []) if row["system"] != ALL_TOGETHER]
        lines = [format_score(row, figures) for row in rows]
        return lines or ["no score: no response states a fact"]

    def _add_audits(
        self, results: Results, tables: tuple[pd.DataFrame, pd.DataFrame], audits: list[Any]
    ) -> None:
        """Add audits of other tables than the facts'."""
        more = compare(*tables, audits=audits, **self._interval_options)
        results.audits.update({name: rows for name, rows in more.audits.items() if rows})
        results.finding_rows.extend(more.finding_rows)

    def _compare_variants(
        self,
        results: Results,
        pipelines: Mapping[str, Pipeline],
        scored: Mapping[str, ScoredFacts],
        out: Path,
    ) -> list[str]:
        """Add the audits that compare the variants with the base; a line for each."""
        if len(pipelines) == 1:
            return []
        tables = stack_variants({name: (pipelines[name].names[0], scored[name]) for name in scored})
        write_table(tables[0], out / "variant_claims.parquet")
        write_table(tables[1], out / "variant_verdicts.parquet")
        gammas = {name: one.settings.gamma for name, one in pipelines.items()}
        options = {"gamma": gammas.pop(BASE_VARIANT), "gammas": gammas}
        self._add_audits(results, tables, [{"sensitivity": options}, "retrieval"])
        results.about["variants"] = {
            name: pipelines[name].signatures[pipelines[name].names[0]] for name in gammas
        }
        # The first row of a variant is of all systems.
        rows = results.audits.get("sensitivity", [])
        first = {row["variant"]: row for row in reversed(rows)}
        return [format_variant(first[name]) for name in scored if name in first]


class FactScoreExperiment(_ScoreExperiment):
    """An experiment YAML with a ``factscore:`` block."""

    title: str = "FActScore"
    factscore: FactScoreSettings


class DFactScoreExperiment(_ScoreExperiment):
    """An experiment YAML with a ``dfactscore:`` block."""

    title: str = "D-FActScore"
    dfactscore: DFactScoreSettings


def _list_own_audits(block: ScoreSettings) -> dict[str, Row]:
    """The audits of a score, with their options."""
    gamma = {"gamma": block.gamma}
    shown = {"demonstrations": block.demos} if block.demos else {}
    if isinstance(block, DFactScoreSettings):
        link = {"link": block.rule}
        return {
            "dfactscore": link | gamma,
            "dfactscore_gap": link,
            "dfactscore_linking": gamma,
            "dfactscore_elsewhere": link,
            "decomposition": shown,
        }
    return {
        "factscore": gamma,
        "discrimination": {},
        "factscore_agreement": gamma,
        "decomposition": shown,
    }


def _list_callers(
    pipelines: Mapping[str, Pipeline], judge: NamedEvaluator | None
) -> list[tuple[str, Any]]:
    """Who asks models in which variant. Variants share what they ask through the cache."""
    callers = []
    for name, one in pipelines.items():
        prefix = "" if name == BASE_VARIANT else f"{name}: "
        for who, client in one.callers:
            callers.append((f"{prefix}{who}", client))
            if prefix and getattr(client, "cache", "") is None:
                raise UsageError(
                    "variants share what they ask through the cache of replies: leave llm.cache as"
                    " it is"
                )
    if judge is not None:
        for member, _ in walk_evaluator_members(judge.evaluator):
            callers.append((f"citations: {judge.name}", member))
    return callers


def load_experiment(file: YamlFile) -> FactScoreExperiment | DFactScoreExperiment:
    """The experiment of a YAML with the block of an engine, all paths absolute, for
    `read_experiment`.

    Raises `InputError` naming the line of everything that is wrong.
    """
    model: Any = FactScoreExperiment if "factscore" in file.data else DFactScoreExperiment
    experiment = check_yaml_settings(model, file.data, file)
    paths = YamlPaths(file, experiment.data)
    block = experiment.block
    name = "factscore" if isinstance(block, FactScoreSettings) else "dfactscore"

    def resolve(key: str, value: Any, place: YamlPlace) -> Any:
        """The value of a key, or of its variant, with absolute paths."""
        if isinstance(value, list):
            return [resolve(key, one, (*place, at)) for at, one in enumerate(value)]
        if key in block.PATHS:
            return paths.resolve_path(value, place)
        if key in ("verifier", "verifiers", "citation_judge") and value not in OWN_VERIFIERS:
            return resolve_evaluator_paths(paths, value, *place)
        return value

    responses = paths.expand_patterns(block.responses, name, "responses")
    changed: dict[str, Any] = {"responses": [paths.resolve_path(*one) for one in responses]}
    for key in (*block.PATHS[1:], "verifiers", "citation_judge"):
        if (value := getattr(block, key)) is not None:
            changed[key] = resolve(key, value, (name, key))
    if varied := getattr(block, "variants", None):
        changed["variants"] = {
            key: resolve(key, values, (name, "variants", key)) for key, values in varied.items()
        }
    check_audit_specs(paths, experiment.audits)
    paths.check_problems()
    return experiment.model_copy(update={name: block.model_copy(update=changed)})


def read_block_responses(block: ScoreSettings) -> list[Response]:
    """The responses that a block of settings names."""
    return read_responses(
        block.responses, facts=block.facts, system=block.system, limit=block.limit
    )


def count_scoring_calls(block: ScoreSettings) -> list[Row]:
    """A row per step that asks a language model: ``evaluator`` (the step), ``model``, ``calls`` (at
    most; None: not known before the facts are) and ``reason``; what a row of
    `factaudit.llm.cost.estimate_llm_judging_cost` has besides is None. Each variant is counted as
    if it asked everything anew."""
    responses = read_block_responses(block)
    limit = "the cost is not known before the facts are; max_cost limits it"
    rows: list[Row] = []

    def add(step: str, llm: Any, n_calls: int | None, reason: str = limit) -> None:
        unknown = dict.fromkeys(("cached_calls", "prompt_tokens", "max_completion_tokens", "cost"))
        model = llm and llm.client_key()[0]
        told = {"evaluator": step, "model": model, "calls": n_calls, "reason": reason}
        rows.append(unknown | told)

    texts = [one.output for one in responses if one.facts is None]
    if texts and (decomposer := block.decomposer or block.llm):
        n_sentences = sum(len(split_response(text)[0]) for text in texts)
        add("decompose", decomposer, (1 + len(list_score_variants(block))) * n_sentences)
    if block.llm and isinstance(block, DFactScoreSettings) and block.grouper == "llm":
        add("group", block.llm, len(responses))
    if block.llm and any(spec in OWN_VERIFIERS for spec in block.verifiers):
        reason = f"one call for each fact and each page that it is put to; {limit}"
        add("verify", block.llm, None, reason)
    return rows
