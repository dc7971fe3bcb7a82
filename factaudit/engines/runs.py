"""How do files of responses become a run folder? Tables, summary, audits and the report, for both engines."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Discriminator, Tag

from factaudit.arrays.judgements import Judgements
from factaudit.audit.audit_options import read_audit_names_and_options
from factaudit.audit.citations import compute_citation_audit
from factaudit.audit.core.result_rows import Row
from factaudit.audit.dfactscore_people import (
    compare_human_and_machine_dfactscores,
    compute_annotator_agreement,
    compute_human_dfactscores,
)
from factaudit.datasets import FORMATS, convert
from factaudit.datasets.biography_annotations import read_biography_fact_annotations
from factaudit.datasets.conversion import expand_folders
from factaudit.engines.citations import judge_citations
from factaudit.engines.conversations import read_conversations
from factaudit.engines.dfactscore import DFactScorer
from factaudit.engines.factscore import FactScorer
from factaudit.engines.factscore_report import ScoredResponses
from factaudit.engines.responses import ANNOTATED_FACT_SOURCES, Response, read_response_files
from factaudit.engines.scoring_calls import count_scoring_calls
from factaudit.engines.settings import (
    DFactScoreSettings,
    FactScoreSettings,
    PublishedBiographySettings,
    Say,
    check_engine_experiment,
    make_scorer,
)
from factaudit.engines.variants import list_score_variants, score_variants
from factaudit.errors import UsageError
from factaudit.evaluators.judging import make_named_evaluator, walk_evaluator_members
from factaudit.evaluators.unscored_verdicts import format_unscored_verdicts
from factaudit.experiment.folder import (
    RunFolder,
    RunSettings,
    compare_run_tables,
    count_run_llm_calls,
    list_file_checksums,
    sum_run_call_costs,
)
from factaudit.files import write_json, write_jsonl
from factaudit.publications.fetching import fetch_missing_published_files
from factaudit.results import Results
from factaudit.settings.yaml_file import YamlFile
from factaudit.signature import make_signature
from factaudit.tables import list_plain_rows, merge_claim_tables, merge_verdict_tables, write_table
from factaudit.text.display_text import format_count

#: Called with the responses, their scores and the folder of journals while calls are counted; what it returns is
#: called with the results and the run folder, to add to them.
ResultsExtension = Callable[[Sequence[Response], ScoredResponses, Path], Callable[[Results, Path], None]]


class FactScoreExperiment(RunSettings):
    """An experiment YAML with a ``factscore:`` block."""

    title: str = "FActScore"
    factscore: FactScoreSettings

    def run_into(self, out: Path, *, progress: bool, overwrite: bool, say: Say) -> Results:
        """See `RunSettings.run_into`."""
        block = self.factscore
        responses = None
        if block.topic is not None and not block.conversation:
            raise UsageError("a topic for all goes with conversation: elsewhere each line names its own")
        if block.conversation:
            paths = list(map(Path, block.responses))
            responses, notes = read_conversations(paths, block.topic, block.system, block.limit)
            for note in notes:
                say(note)
        scorer = make_scorer(FactScorer, block, self, out, say)
        variants = {name: make_scorer(FactScorer, one, self, out) for name, one in list_score_variants(block).items()}
        for one in (scorer, *variants.values()) if variants else ():
            if any(client and client.cache is None for client in (one.llm, one.decomposer)):
                raise UsageError("variants share what they ask through the cache of replies: leave llm.cache as it is")
        callers = [(f"{name}: {who}", client) for name, one in variants.items() for who, client in one.counted_clients]
        return score_response_files(
            block.responses,
            scorer,
            out,
            **block.model_dump(include={"facts", "system", "limit"}),
            **self.model_dump(include={"title", "audits", "max_cost"}),
            callers=callers,
            extend_results=score_variants(scorer, variants, say, progress) if variants else None,
            responses=responses,
            experiment=self,
            overwrite=overwrite,
            progress=progress,
            say=say,
        )

    def estimate_cost(self) -> list[Row]:
        """See `RunSettings.estimate_cost`."""
        return count_scoring_calls(self)


def _name_settings(block: Any) -> str:
    # Told by its key, so that a complaint is about the block that was meant, and named as the branches of a union are.
    published = isinstance(block, PublishedBiographySettings) or (isinstance(block, dict) and "published" in block)
    return (PublishedBiographySettings if published else DFactScoreSettings).__name__


class DFactScoreExperiment(RunSettings):
    """An experiment YAML with a ``dfactscore:`` block."""

    title: str = "D-FActScore"
    dfactscore: Annotated[
        Annotated[DFactScoreSettings, Tag("DFactScoreSettings")]
        | Annotated[PublishedBiographySettings, Tag("PublishedBiographySettings")],
        Discriminator(_name_settings),
    ]

    def run_into(self, out: Path, *, progress: bool, overwrite: bool, say: Say) -> Results:
        """See `RunSettings.run_into`."""
        block = self.dfactscore
        if isinstance(block, PublishedBiographySettings):
            return _rebuild_published_dfactscores(self, block, out, overwrite, say)
        return score_dfactscore_files(
            block.biographies,
            make_scorer(DFactScorer, block, self, out, say),
            out,
            **block.model_dump(include={"facts", "system", "limit", "citation_judge", "annotations"}),
            **self.model_dump(include={"title", "audits", "max_cost"}),
            inputs=[block.knowledge] if block.knowledge and block.knowledge.endswith(".jsonl") else [],
            experiment=self,
            overwrite=overwrite,
            progress=progress,
            say=say,
        )

    def estimate_cost(self) -> list[Row]:
        """See `RunSettings.estimate_cost`."""
        return count_scoring_calls(self)


def load_experiment(file: YamlFile) -> FactScoreExperiment | DFactScoreExperiment:
    """Check an experiment YAML; `factaudit.experiment.run.read_experiment` reads it."""
    if "factscore" in file.data:
        return check_engine_experiment(FactScoreExperiment, "factscore", file)
    return check_engine_experiment(DFactScoreExperiment, "dfactscore", file)


def score_response_files(
    sources: str | Path | Sequence[str | Path],
    scorer: FactScorer,
    run_folder: str | Path,
    *,
    facts: str | Path | None = None,
    system: str | None = None,
    limit: int | None = None,
    title: str = "",
    audits: Sequence[str | Mapping[str, Any]] | None = None,
    max_cost: float | None = None,
    callers: Sequence[tuple[str, Any]] = (),
    inputs: Sequence[str | Path] = (),
    extend_results: ResultsExtension | None = None,
    responses: Sequence[Response] | None = None,
    experiment: RunSettings | None = None,
    overwrite: bool = False,
    progress: bool = False,
    say: Say = lambda text: None,
) -> Results:
    """Score files of responses into a run folder; the same call again resumes and reuses.

    Writes ``claims.parquet``, ``verdicts.parquet``, ``responses.jsonl``, ``summary.json`` (with this run's
    ``seconds_per_example``: what was known already takes none), ``results.json``, tables, figures and the report.

    Args:
        sources: files as `factaudit.engines.responses.read_response_file` reads them, with ``facts``, ``system``,
            ``limit``.
        audits: which besides the engine's own (`factaudit.results.compare`); None: all where facts have labels.
        max_cost: US dollars that all runs into this folder may spend; None leaves the clients' own limits.
        callers: what else asks models, with the names of its calls. inputs: what else is read. extend_results: adds
            audits of its own.
        responses: what was read of the sources, where these are of another form.
        experiment: the settings that all this is of, for ``experiment.yaml``.
        overwrite: whether results of other sources in the folder may go.
        say: gets one line per stage.
    """
    folder = Path(run_folder)
    read_audit_names_and_options(audits)  # a misspelt audit is found before an hour of judging, not after
    paths = [Path(one) for one in ([sources] if isinstance(sources, str | Path) else sources)]
    if responses is None:
        responses = read_response_files(paths, facts=facts, system=system, limit=limit)
    say(f"responses {len(responses):>9,} of {format_count(len({one.system for one in responses}), 'system')}")
    read = [*paths, *(Path(one) for one in (facts, *inputs) if one is not None and one not in ANNOTATED_FACT_SOURCES)]
    with RunFolder.open(folder, read, overwrite=overwrite, say=say) as run:
        add = None
        with count_run_llm_calls([*scorer.counted_clients, *callers], run.work / "calls.json", max_cost) as calls:
            start = time.monotonic()
            scored = scorer.score_responses(responses, journal=run.work / "journal", progress=progress)
            seconds = (time.monotonic() - start) / max(1, len(responses))
            if extend_results is not None:
                add = extend_results(responses, scored, run.work / "journal")
        unscored = format_unscored_verdicts(scored.verdicts, scorer.names)
        for line in (*unscored, _format_fact_count(scored.summary)):
            say(line)
        write_table(scored.claims, folder / "claims.parquet")
        write_table(scored.verdicts, folder / "verdicts.parquet")
        write_jsonl(folder / "responses.jsonl", scored.responses)
        summary = {key: value for key, value in scored.summary.items() if key != "rows"}  # they are in results.json
        summary |= {"cost": sum_run_call_costs(calls), "seconds_per_example": round(seconds, 6)}
        summary["signature"] = make_signature(scorer.signatures[scorer.names[0]], scorer.settings)
        write_json(folder / "summary.json", summary)
        results = compare_run_tables(
            *scored.audit_tables,
            scorer.settings,
            title=title or scorer.title,
            audits=audits,
            engine_tables=(scored.claims, scored.verdicts, scored.audits),
            inputs=list_file_checksums(read),
            signatures=scorer.signatures,
            replicates=scorer.replicates,
            seed=scorer.seed,
            confidence=scorer.confidence,
        )
        results.sections.extend(scored.sections)
        results.audits.update(scored.tables)
        if add is not None:
            add(results, folder)
        results.calls.extend(calls)
        for line in scored.lines:
            say(line)
        return run.finish(experiment, results)


def _format_fact_count(summary: Row) -> str:
    n_failed, n_left_out = summary["n_failed_sentences"], summary["n_left_out_sentences"]
    line = f"facts     {summary['n_facts'] - n_failed:>9,}, {summary['n_unscored'] - n_failed:,} of them unscored"
    line += f"; {format_count(n_failed, 'sentence')} not decomposed" if n_failed else ""
    return line + (f"; {format_count(n_left_out, 'line')} of layout or talk left out" if n_left_out else "")


def score_dfactscore_files(
    sources: str | Path | Sequence[str | Path],
    scorer: DFactScorer,
    out: str | Path,
    *,
    citation_judge: str | Mapping[str, Any] | None = None,
    annotations: str | Path | None = None,
    inputs: Sequence[str | Path] = (),
    progress: bool = False,
    **options: Any,
) -> Results:
    """Score files of biographies into a run folder, as `score_response_files` does.

    Args:
        citation_judge: an evaluator that judges the citations of biographies with documents (`judge_citations`).
        annotations: people's annotations (`factaudit.datasets.biography_annotations.BiographyFactAnnotation`) to
            compare with.
        inputs, options: of `score_response_files`.
    """
    judge = None if citation_judge is None else make_named_evaluator(citation_judge)
    members = [] if judge is None else walk_evaluator_members(judge.evaluator)

    def extend_results(
        responses: Sequence[Response], scored: ScoredResponses, journal: Path
    ) -> Callable[[Results, Path], None]:
        cited = None if judge is None else judge_citations(responses, judge, journal=journal, progress=progress)

        def add_audits(results: Results, folder: Path) -> None:
            if cited is not None:
                claims, verdicts = cited
                judged = claims.drop(columns="doc").merge(verdicts, on="claim_id", how="left")
                write_jsonl(folder / "citations.jsonl", list_plain_rows(judged))
                joined = Judgements.join(claims, verdicts)
                results.audits["citations"] = compute_citation_audit(joined, intervals=scorer.intervals)
            if annotations is not None:
                people = read_biography_fact_annotations(annotations)
                results.audits["dfactscore_people"] = compare_human_and_machine_dfactscores(
                    compute_human_dfactscores(people), scored.responses, intervals=scorer.intervals
                )
                results.audits["annotator_agreement"] = compute_annotator_agreement(people)

        return add_audits

    return score_response_files(
        sources,
        scorer,
        out,
        callers=[(f"citations: {judge.name}", member) for member, _ in members] if judge is not None else [],
        inputs=[*([] if annotations is None else [annotations]), *inputs],
        extend_results=extend_results,
        progress=progress,
        **options,
    )


def _rebuild_published_dfactscores(
    experiment: DFactScoreExperiment, block: PublishedBiographySettings, folder: Path, overwrite: bool, say: Say
) -> Results:
    """Rebuild MF's Table 4 from its published decisions (`factaudit.datasets.merging_facts`) into a run folder.

    Where citations are named, their recall is computed again.
    """
    paths, citations = [*map(Path, block.published)], [*map(Path, block.citations)]
    fetch_missing_published_files([*paths, *citations], say)
    found = [convert("merging-facts", paths)]
    own: dict[str, Row] = {"dfactscore": {"link": "given", "gamma": 0.0}, "dfactscore_gap": {"link": "given"}}
    own |= {"dfactscore_linking": {"gamma": 0.0}, "dfactscore_elsewhere": {"link": "given"}}
    if citations:
        found.append(convert("alce-citations", citations))
        own["citations"] = {}
    claims = merge_claim_tables([one.claims for one in found])
    verdicts = merge_verdict_tables([one.verdicts for one in found if one.verdicts is not None])
    notes = [note for one in found for note in one.notes]
    with RunFolder.open(folder, [*paths, *citations], overwrite=overwrite, say=say) as run:
        for note in notes:
            run.say(note)
        write_table(claims, folder / "claims.parquet")
        write_table(verdicts, folder / "verdicts.parquet")
        files = [
            *expand_folders(paths, FORMATS["merging-facts"].files),
            *expand_folders(citations, FORMATS["alce-citations"].files),
        ]
        results = compare_run_tables(
            claims,
            verdicts,
            {},
            engine_tables=(claims, verdicts, own),
            inputs=list_file_checksums(files),
            # The other audits would take each pair of a fact and a person for a claim.
            audits=experiment.audits or [],
            **experiment.model_dump(include={"title", "replicates", "seed", "confidence"}),
        )
        text = ["The links are the published ones; groups are the fewest that the decisions allow.", *notes]
        results.sections.append({"title": "The published files", "text": text, "table": None, "figure": None})
        return run.finish(experiment, results)
