"""Which settings do `factaudit score --people` and the block ``dfactscore:`` have, and how are they run?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from factaudit.arrays.entity_linking import NARROW_MARGIN
from factaudit.arrays.judgements import Judgements
from factaudit.audit.annotator_agreement import compute_biography_annotator_agreement
from factaudit.audit.citations import compute_citation_audit
from factaudit.audit.dfactscore_people import compare_human_and_machine_dfactscores, compute_human_dfactscores
from factaudit.datasets import convert
from factaudit.datasets.biography_annotations import read_biography_fact_annotations
from factaudit.datasets.source_files import expand_dataset_source_folders
from factaudit.engines.citation_judging import judge_citations
from factaudit.engines.dfactscore.candidate_finder import MAX_CANDIDATES
from factaudit.engines.dfactscore.engine import DFactScorer
from factaudit.engines.engine_settings import (
    EngineSettings,
    build_engine_arguments_from_yaml,
    load_engine_experiment,
)
from factaudit.engines.records import ScoredResponseRecords
from factaudit.engines.responses import Response
from factaudit.engines.scoring_engine import Row
from factaudit.engines.scoring_run import Say, score_response_files
from factaudit.evaluators.judging import make_named_evaluator, walk_evaluator_members
from factaudit.files import write_jsonl
from factaudit.publications.fetching import fetch_missing_published_files
from factaudit.results import Results
from factaudit.run_folder import RunFolder, RunSettings, compare_run_tables, list_file_checksums
from factaudit.tables import list_plain_rows, merge_claim_tables, merge_verdict_tables, write_table
from factaudit.yaml_file import YamlFile


class DFactScoreSettings(EngineSettings):
    """Everything that `factaudit score --people` takes, by the names of its options; `DFactScorer` says what they mean.

    Without ``knowledge`` the biographies' own documents are used.

    The people that a biography may be about, where it brings neither candidates nor documents, are the pages whose
    title or redirect is the name. ``max_candidates``: at most so many, and so many calls a fact. ``prefilter``: of all
    candidates, also given ones, put each fact to so many only, those with the nearest passages.
    """

    biographies: list[str] = Field(min_length=1)
    groupers: list[Literal["llm", "given", "one-group"]] = Field(default=["llm"], min_length=1)
    group_demos: str | None = None
    max_candidates: int = Field(default=MAX_CANDIDATES, ge=1)
    prefilter: int | None = Field(default=None, ge=1)
    rule: Literal["argmax", "hungarian", "given"] = "argmax"
    narrow: float = Field(default=NARROW_MARGIN, ge=0, le=1)
    dataset: str = "biographies"
    citation_judge: str | dict[str, dict[str, Any] | None] | None = None
    annotations: str | None = None
    PATHS: ClassVar[tuple[str, ...]] = (*("biographies", "group_demos", "annotations"), *EngineSettings.PATHS)
    PASSED: ClassVar[tuple[str, ...]] = (
        *("groupers", "group_demos", "max_candidates", "prefilter", "rule", "narrow"),
        *EngineSettings.PASSED,
    )


class PublishedBiographySettings(BaseModel):
    """MF's published outputs: evaluation files and ALCE's citation judgements."""

    model_config = ConfigDict(extra="forbid")

    published: list[str] = Field(min_length=1)
    citations: list[str] = Field(default_factory=list)
    PATHS: ClassVar[tuple[str, ...]] = ("published", "citations")


def _get_settings_name(block: Any) -> str:
    # Told by its key, so that a complaint is about the block that was meant, and named as the branches of a union are.
    published = isinstance(block, PublishedBiographySettings) or (isinstance(block, dict) and "published" in block)
    return (PublishedBiographySettings if published else DFactScoreSettings).__name__


class DFactScoreExperiment(RunSettings):
    """An experiment YAML with a ``dfactscore:`` block."""

    title: str = "D-FActScore"
    dfactscore: Annotated[
        Annotated[DFactScoreSettings, Tag("DFactScoreSettings")]
        | Annotated[PublishedBiographySettings, Tag("PublishedBiographySettings")],
        Discriminator(_get_settings_name),
    ]

    def run_into(self, out: Path, *, progress: bool, overwrite: bool, say: Say) -> Results:
        """See `RunSettings.run_into`."""
        block = self.dfactscore
        if isinstance(block, PublishedBiographySettings):
            return _rebuild_published_dfactscores(self, block, out, overwrite, say)
        return score_dfactscore_files(
            block.biographies,
            DFactScorer(**build_engine_arguments_from_yaml(block, self, out, False, say)),
            out,
            **block.model_dump(include={"facts", "system", "limit", "citation_judge", "annotations"}),
            **self.model_dump(include={"title", "audits", "max_cost"}),
            pages=block.knowledge if block.knowledge is not None and block.knowledge.endswith(".jsonl") else None,
            experiment=self,
            overwrite=overwrite,
            progress=progress,
            say=say,
        )


def load_experiment(file: YamlFile) -> DFactScoreExperiment:
    """Check an experiment YAML; `factaudit.experiment.read_experiment` reads it."""
    return load_engine_experiment(DFactScoreExperiment, "dfactscore", file)


def score_dfactscore_files(
    sources: str | Path | Sequence[str | Path],
    scorer: DFactScorer,
    out: str | Path,
    *,
    citation_judge: str | Mapping[str, Any] | None = None,
    annotations: str | Path | None = None,
    pages: str | Path | None = None,
    progress: bool = False,
    **options: Any,
) -> Results:
    """Score files of biographies into a run folder, as `factaudit.engines.scoring_run.score_response_files` does.

    Args:
        citation_judge: an evaluator that judges the citations of biographies with documents (`judge_citations`).
        annotations: people's annotations (`factaudit.datasets.biography_annotations.BiographyFactAnnotation`) to
        compare with.
        pages: the file that the scorer's knowledge source was built from, for the report's list of inputs.
        options: of `score_response_files`.
    """
    judge = None if citation_judge is None else make_named_evaluator(citation_judge)
    members = [] if judge is None else walk_evaluator_members(judge.evaluator)

    def extend_results(
        responses: Sequence[Response], scored: ScoredResponseRecords, journal: Path
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
                results.audits["annotator_agreement"] = compute_biography_annotator_agreement(people)

        return add_audits

    return score_response_files(
        sources,
        scorer,
        out,
        callers=[(f"citations: {judge.name}", member) for member, _ in members] if judge is not None else [],
        inputs=[one for one in (annotations, pages) if one is not None],
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
            *expand_dataset_source_folders(paths, "*_factscore_output.json"),
            *expand_dataset_source_folders(citations, "*.score"),
        ]
        tables = (claims, verdicts)
        results = compare_run_tables(
            *tables,
            {},
            engine_tables=(*tables, own),
            inputs=list_file_checksums(files),
            # The other audits would take each pair of a fact and a person for a claim.
            audits=experiment.audits or [],
            **experiment.model_dump(include={"title", "replicates", "seed", "confidence"}),
        )
        text = ["The links are the published ones; groups are the fewest that the decisions allow.", *notes]
        results.sections.append({"title": "The published files", "text": text, "table": None, "figure": None})
        return run.finish(experiment, results)
