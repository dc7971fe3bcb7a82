"""What `factaudit dscore` and an experiment's ``dfactscore:`` block may say, and running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from factaudit.audit.core.matrix import NARROW
from factaudit.engines.dfactscore.candidates import CAP
from factaudit.engines.dfactscore.engine import DFactScorer
from factaudit.engines.dfactscore.run import published_files, score_files
from factaudit.engines.settings import PACKAGES, EngineSettings, engine_options, load_block
from factaudit.results import Results
from factaudit.runfolder import RunSettings, write_lock


class DScoreSettings(EngineSettings):
    """Everything that `factaudit dscore` takes, by the names of its options; see `DFactScorer` for what they mean.

    Without ``knowledge`` the biographies' own documents are used.

    ``candidates``: how to find the people a biography may be about, where it brings neither candidates nor documents.
    ``titles``: the pages whose titles and redirects are like the name (honorifics, nicknames, initials, spellings).
    ``passages``: the pages that hold the best passage for one of its facts, and the name; of knowledge sources of at
    most 50,000 pages. By default both. ``max_candidates``: at most so many, and so many calls a fact.
    ``prefilter``: of all candidates, also given ones, put each fact to so many only, those with the nearest passages.
    """

    biographies: list[str] = Field(min_length=1)
    groupers: list[Literal["heuristic", "llm", "one-group", "given"]] = Field(default=["llm"], min_length=1)
    group_demos: str | None = None
    candidates: Literal["titles", "passages"] | None = None
    max_candidates: int = Field(default=CAP, ge=1)
    prefilter: int | None = Field(default=None, ge=1)
    rule: Literal["argmax", "hungarian", "given"] = "argmax"
    narrow: float = Field(default=NARROW, ge=0, le=1)
    dataset: str = "biographies"
    citation_judge: str | dict[str, dict[str, Any] | None] | None = None
    annotations: str | None = None
    views: str | None = None
    PATHS: ClassVar[tuple[str, ...]] = (
        *("biographies", "group_demos", "annotations", "views"),
        *EngineSettings.PATHS,
    )
    PASSED: ClassVar[tuple[str, ...]] = (
        *("groupers", "group_demos", "candidates", "max_candidates", "prefilter", "rule", "narrow"),
        *EngineSettings.PASSED,
    )


class PublishedSettings(BaseModel):
    """MF's published outputs: evaluation files, the printed figures to compare with, ALCE's citation judgements."""

    model_config = ConfigDict(extra="forbid")

    published: list[str] = Field(min_length=1)
    printed: str | None = None
    citations: list[str] = Field(default_factory=list)
    PATHS: ClassVar[tuple[str, ...]] = ("published", "printed", "citations")


def _kind(block: Any) -> str:
    # Told by its key, so that a complaint is about the block that was meant, and named as the branches of a union are.
    published = isinstance(block, PublishedSettings) or (isinstance(block, dict) and "published" in block)
    return (PublishedSettings if published else DScoreSettings).__name__


class DScoreExperiment(RunSettings):
    """An experiment YAML with a ``dfactscore:`` block."""

    title: str = "D-FActScore"
    dfactscore: Annotated[
        Annotated[DScoreSettings, Tag("DScoreSettings")] | Annotated[PublishedSettings, Tag("PublishedSettings")],
        Discriminator(_kind),
    ]


def load(path: str | Path, settings: Mapping[str, Any] | None = None) -> DScoreExperiment:
    """Read and check an experiment YAML; ``settings`` (``{"seed": 1, "dfactscore.k": 3}``) override its keys."""
    return load_block(DScoreExperiment, "dfactscore", path, settings)


def run(
    experiment: str | Path | DScoreExperiment,
    out: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Results:
    """Run a D-FActScore experiment (a YAML's path, or one with absolute paths) and write its run folder."""
    if not isinstance(experiment, DScoreExperiment):
        experiment = load(experiment, settings)
    block = experiment.dfactscore
    if isinstance(block, PublishedSettings):
        results = published_files(
            block.published,
            out,
            printed=block.printed,
            citations=block.citations,
            audits=experiment.audits,
            title=experiment.title,
            say=say,
            **experiment.model_dump(include={"replicates", "seed", "confidence"}),
        )
    else:
        results = score_files(
            block.biographies,
            DFactScorer(**engine_options(block, experiment, out, False)),
            out,
            facts=block.facts,
            system=block.system,
            limit=block.limit,
            title=experiment.title,
            audits=experiment.audits,
            max_cost=experiment.max_cost,
            citation_judge=block.citation_judge,
            annotations=block.annotations,
            views=block.views,
            progress=progress,
            say=say,
        )
    write_lock(Path(out), experiment, results, packages=PACKAGES)
    return results
