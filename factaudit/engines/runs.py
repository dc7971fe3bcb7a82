"""How do files of responses become a run folder? Tables, scores, audits and the report, for both
engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from factaudit.arrays.judgements import Judgements
from factaudit.audit import choose_supported_audits, list_computable_audits
from factaudit.audit.core.result_rows import Row
from factaudit.audit.human_scores import compare_biography_scores, score_human_biographies
from factaudit.audit.sensitivity import BASE_VARIANT
from factaudit.datasets.biography_annotations import read_biography_fact_annotations
from factaudit.engines.citations import judge_citations
from factaudit.engines.decompose import split_response
from factaudit.engines.dfactscore import dfactscore
from factaudit.engines.factscore import factscore
from factaudit.engines.passages import VerifiedFacts
from factaudit.engines.pipeline import DFactScoreSettings, FactScoreSettings, Pipeline, Say
from factaudit.engines.score_rows import (
    format_scored_responses,
    format_variants,
    list_factscore_rows,
    make_merged_section,
    score_biographies,
)
from factaudit.engines.variants import list_score_variants, stack_variants
from factaudit.engines.verifier import OWN_VERIFIERS
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
from factaudit.publications.fetching import fetch_missing_published_files
from factaudit.results import Results, compare
from factaudit.settings.yaml_file import YamlFile, check_yaml_settings
from factaudit.settings.yaml_paths import (
    YamlPathKind,
    YamlPaths,
    YamlPlace,
    find_yaml_path_options,
)
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables import list_plain_rows, write_table
from factaudit.text.display_text import format_count

_SCORES: Mapping[str, Callable[..., VerifiedFacts]] = {
    "factscore": factscore,
    "dfactscore": dfactscore,
}


class _ScoreExperiment(RunSettings):
    """What the experiments of both scores do."""

    #: The score's name: of its block of settings, its audit, and the function that computes it.
    score: ClassVar[str]

    @property
    def block(self) -> Any:
        """The settings of the score."""
        return getattr(self, self.score)

    @property
    def own_audits(self) -> dict[str, Row]:
        """The audits of the score, with their options."""
        demos = self.block.demos
        return {"decomposition": {"demonstrations": demos} if demos else {}}

    def run_into(self, out: Path, *, progress: bool, overwrite: bool, say: Say) -> Results:
        """See `RunSettings.run_into`."""
        block = self.block
        self._read_audits()  # a misspelt audit is found before an hour of judging, not after
        inputs = block.list_inputs()
        fetch_missing_published_files(inputs, say)
        check_run_spares_inputs(out, inputs)
        # A knowledge source may have gigabytes: the signature names it.
        if not str(block.knowledge).endswith((".jsonl", ".jsonl.gz")):
            inputs = [path for path in inputs if path != block.knowledge]
        responses = block.read_responses()
        systems = format_count(len({one.system for one in responses}), "system")
        say(f"responses {len(responses):>9,} of {systems}")
        # Variants share what they ask through the cache of replies.
        settings = {BASE_VARIANT: block, **list_score_variants(block)}
        pipelines = {name: Pipeline.open(one, out) for name, one in settings.items()}
        callers = [
            (who if name == BASE_VARIANT else f"{name}: {who}", caller)
            for name, one in pipelines.items()
            for who, caller in one.callers
        ]
        models = pipelines[BASE_VARIANT]
        with RunFolder.open(out, inputs, overwrite=overwrite, say=say) as run:
            cited = None
            with count_run_llm_calls(callers, run.work / "calls.json", self.max_cost) as calls:
                asked: dict[str, Any] = {"journal": run.work / "journal", "progress": progress}
                score = _SCORES[self.score]
                scored = {name: score(responses, one, **asked) for name, one in pipelines.items()}
                if models.citation_judge is not None:
                    cited = judge_citations(responses, models.citation_judge, **asked)
            claims, verdicts, notes = scored[BASE_VARIANT]
            say(f"claims    {claims['claim'].notna().sum():>9,}")
            for line in (*format_unscored_verdicts(verdicts, models.names, notes), *notes):
                say(line)
            write_table(claims, out / "claims.parquet")
            write_table(verdicts, out / "verdicts.parquet")
            judged = Judgements.join(claims, verdicts)
            given = self.compare_arguments | {"audits": self._choose_audits(judged)}
            read = list_file_checksums(inputs)
            results = compare(claims, verdicts, inputs=read, signatures=models.signatures, **given)
            if notes:
                results.about["reading"] = notes
            rows = self._score_responses(judged, results, models.names[0])
            write_jsonl(out / "responses.jsonl", rows)
            say(format_scored_responses(results.audits.get(self.score, [])))
            if cited is not None:
                table = cited[0].drop(columns="doc").merge(cited[1], on="claim_id", how="left")
                write_jsonl(out / "citations.jsonl", list_plain_rows(table))
                self._add_audits(results, cited, ["citations"])
            if len(pipelines) > 1:
                for line in self._compare_variants(results, pipelines, scored, out):
                    say(line)
            results.calls.extend(calls)
            return run.finish(self, results)

    def estimate_cost(self) -> list[Row]:
        """A row for each step that asks a language model: ``evaluator`` (the step) and ``calls``
        (how many at most; None for what depends on the facts). What they cost is not known before
        the facts are. Each variant is counted as if it asked everything anew."""
        block = self.block
        responses = block.read_responses()
        texts = [one.output for one in responses if one.facts is None]
        n_sentences = sum(len(split_response(text)[0]) for text in texts)
        steps: dict[str, int | None] = {}
        if n_sentences and (block.decomposer or block.llm):
            steps["decompose"] = (1 + len(list_score_variants(block))) * n_sentences
        if block.llm and getattr(block, "grouper", None) == "llm":
            steps["group"] = len(responses)
        if block.llm and any(spec in OWN_VERIFIERS for spec in block.verifiers):
            steps["verify"] = None
        unknown = dict.fromkeys(("cached_calls", "prompt_tokens", "max_completion_tokens", "cost"))
        reason = "the cost is not known before the facts are; max_cost limits it"
        return [
            unknown | {"evaluator": step, "calls": n_calls, "reason": reason}
            for step, n_calls in steps.items()
        ]

    def _read_audits(self) -> dict[str, Row]:
        """The audits that ``audits`` names with their options, by default all that may be
        computed."""
        return choose_supported_audits(self.audits, list(list_computable_audits()), "")

    def _choose_audits(self, judged: Judgements) -> list[dict[str, Row]]:
        """The score's own audits, those that ``audits`` names, and, if it names none, all others
        that apply. Without human labels, only those that need none apply."""
        known, own, named = list_computable_audits(), self.own_audits, self._read_audits()
        has_labels = bool((judged.label >= 0).any())
        chosen = []
        for name in dict.fromkeys([*own, *named]):
            audit = known[name]
            is_wanted = name in own or (
                len(judged.claims) > 0 and (has_labels or audit.without_labels)
            )
            if (self.audits is not None and name in named) or (
                is_wanted and (audit.applies is None or audit.applies(judged))
            ):
                chosen.append({name: own.get(name, {}) | named.get(name, {})})
        return chosen

    def _score_responses(self, judged: Judgements, results: Results, verifier: str) -> list[Row]:
        """The scores of each response. What the report shows besides audits is added to the
        results.

        verifier: the name of the one whose score is *the* score.
        """
        raise NotImplementedError

    def _add_audits(
        self, results: Results, tables: tuple[pd.DataFrame, pd.DataFrame], audits: list[Any]
    ) -> None:
        """Add audits of other tables than the facts'."""
        drawn = self.model_dump(include={"replicates", "seed", "confidence"})
        more = compare(*tables, audits=audits, **drawn)
        results.audits.update({name: rows for name, rows in more.audits.items() if rows})
        results.finding_rows.extend(more.finding_rows)

    def _compare_variants(
        self,
        results: Results,
        pipelines: Mapping[str, Pipeline],
        scored: Mapping[str, VerifiedFacts],
        out: Path,
    ) -> list[str]:
        """Add the audits that compare the variants with the base; lines about them."""
        first_names = {name: one.names[0] for name, one in pipelines.items()}
        tables = stack_variants(first_names, scored)
        write_table(tables[0], out / "variant_claims.parquet")
        write_table(tables[1], out / "variant_verdicts.parquet")
        gammas = {name: one.settings.gamma for name, one in pipelines.items()}
        options = {"gamma": gammas.pop(BASE_VARIANT), "gammas": gammas}
        self._add_audits(results, tables, [{"sensitivity": options}, "retrieval"])
        results.about["variants"] = {
            name: pipelines[name].signatures[first_names[name]] for name in gammas
        }
        # The first row of a variant is of all systems.
        first: dict[str, Row] = {}
        for row in results.audits.get("sensitivity", []):
            first.setdefault(row["variant"], row)
        return format_variants(first.values())


class FactScoreExperiment(_ScoreExperiment):
    """An experiment YAML with a ``factscore:`` block."""

    title: str = "FActScore"
    factscore: FactScoreSettings
    score = "factscore"

    @property
    def own_audits(self) -> dict[str, Row]:
        gamma = {"gamma": self.block.gamma}
        own = {"factscore": gamma, "discrimination": {}, "factscore_agreement": gamma}
        return own | super().own_audits

    def _score_responses(self, judged: Judgements, results: Results, verifier: str) -> list[Row]:
        return list_factscore_rows(judged, self.block.gamma)


class DFactScoreExperiment(_ScoreExperiment):
    """An experiment YAML with a ``dfactscore:`` block."""

    title: str = "D-FActScore"
    dfactscore: DFactScoreSettings
    score = "dfactscore"

    @property
    def own_audits(self) -> dict[str, Row]:
        gamma, link = {"gamma": self.block.gamma}, {"link": self.block.rule}
        people = {"dfactscore_gap": link, "dfactscore_linking": gamma, "dfactscore_elsewhere": link}
        return {"dfactscore": link | gamma, **people, **super().own_audits}

    def _read_audits(self) -> dict[str, Row]:
        # Others would take each fact and person for a claim.
        refusal = "is none of D-FActScore's: with it"
        return choose_supported_audits(self.audits, list(self.own_audits), refusal)

    def _score_responses(self, judged: Judgements, results: Results, verifier: str) -> list[Row]:
        scored = score_biographies(judged, self.block.rule, self.block.gamma)
        own = [one for one in scored if one.row["evaluator"] == verifier]
        if section := make_merged_section(own):
            results.sections.append(section)
        if self.block.annotations is not None:
            people = score_human_biographies(
                read_biography_fact_annotations(self.block.annotations)
            )
            drawn = ClusterBootstrap(self.replicates, self.seed, self.confidence)
            results.audits["factscore_agreement"] = compare_biography_scores(
                people, [one.row for one in own], verifier, drawn if self.replicates else None
            )
        return [one.row for one in scored]


def load_experiment(file: YamlFile) -> FactScoreExperiment | DFactScoreExperiment:
    """The experiment of a YAML with the block of an engine, all paths absolute, for
    `read_experiment`.

    Raises `InputError` naming the line of everything that is wrong.
    """
    name = "factscore" if "factscore" in file.data else "dfactscore"
    model: Any = FactScoreExperiment if name == "factscore" else DFactScoreExperiment
    experiment = check_yaml_settings(model, file.data, file)
    paths, block = YamlPaths(file, experiment.data), experiment.block
    kinds = find_yaml_path_options(type(block))

    def resolve(key: str, value: Any, place: YamlPlace) -> Any:
        """The value of a setting, or of its variants, with absolute paths."""
        kind = kinds.get("verifiers" if key == "verifier" else key)
        if isinstance(value, list):
            return [resolve(key, one, (*place, at)) for at, one in enumerate(value)]
        if kind is YamlPathKind.EVALUATORS and value is not None and value not in OWN_VERIFIERS:
            return resolve_evaluator_paths(paths, value, *place)
        return paths.resolve_option(kind, value, place)

    changed: dict[str, Any] = {
        key: resolve(key, getattr(block, key), (name, key)) for key in kinds if key != "responses"
    }
    changed["responses"] = paths.resolve_files(block.responses, name, "responses")
    if name == "factscore":
        changed["variants"] = {
            key: resolve(key, values, (name, "variants", key))
            for key, values in block.variants.items()
        }
    check_audit_specs(paths, experiment.audits)
    paths.check_problems()
    return experiment.model_copy(update={name: block.model_copy(update=changed)})
