"""What `factaudit dscore` and an experiment's ``dfactscore:`` block may say, as checked data, and running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from factaudit.engines.dfactscore.engine import LLM_VERIFIER, DFactScorer
from factaudit.engines.dfactscore.link import NARROW
from factaudit.engines.dfactscore.run import published_files, score_files
from factaudit.engines.factscore.decompose import MAX_FACTS
from factaudit.engines.factscore.score import GAMMA
from factaudit.engines.factscore.settings import PACKAGES, open_knowledge
from factaudit.errors import UsageError
from factaudit.knowledge.retrieval import K, Retriever
from factaudit.knowledge.wikipedia import API
from factaudit.llm.settings import LLMField
from factaudit.results import Results
from factaudit.runfolder import RunSettings, check_audits, resolve_evaluator, write_lock
from factaudit.yamlfile import Paths, YamlFile, check

#: Settings that the engine has under the same name.
_PASSED = (
    "groupers",
    "rule",
    "demos",
    "group_demos",
    "candidates",
    "parser",
    "abstain",
    "gamma",
    "narrow",
    "max_facts",
    "logprobs",
    "dataset",
)
_PATHS = (
    "biographies",
    "published",
    "citations",
    "knowledge",
    "demos",
    "group_demos",
    "printed",
    "annotations",
    "views",
)


class DScoreSettings(BaseModel):
    """Everything that `factaudit dscore` takes, by the names of its options; see `DFactScorer` for what they mean.

    ``knowledge``: a knowledge source, or a file of pages (``.jsonl``) that one is made of in the run folder; without
    it the biographies' own documents are used.

    ``candidates``: how to find the people a biography may be about, where it brings neither candidates nor documents.
    ``titles``: the pages whose titles share the name, but for a suffix, initials or middle names. ``passages``: the
    pages of the ``k`` passages that BM25 ranks best for the name over the whole knowledge source, which may have at
    most 50,000 pages. By default titles, and passages for a name that no title shares.
    """

    model_config = ConfigDict(extra="forbid")

    biographies: list[str] = Field(min_length=1)
    knowledge: str | None = None
    missing: Literal["error", "skip", "wikipedia"] = "skip"
    wikipedia_api: str = API
    system: str | None = None
    limit: int | None = Field(default=None, ge=1)
    llm: LLMField | None = None
    verifier: str | dict[str, dict[str, Any] | None] = LLM_VERIFIER
    groupers: list[Literal["heuristic", "llm", "one-group", "given"]] = Field(default=["llm"], min_length=1)
    rule: Literal["argmax", "hungarian", "given"] = "argmax"
    demos: str | None = None
    group_demos: str | None = None
    candidates: Literal["titles", "passages"] | None = None
    retrieval: Literal["bm25", "dense", "all"] = "bm25"
    k: int = Field(default=K, ge=1)
    parser: Literal["original", "strict"] = "original"
    abstain: Literal["generic", "perplexity_ai", "none"] = "generic"
    gamma: float = Field(default=GAMMA, ge=0)
    narrow: float = Field(default=NARROW, ge=0, le=1)
    max_facts: int = Field(default=MAX_FACTS, ge=1)
    logprobs: bool = True
    dataset: str = "biographies"
    citation_judge: str | dict[str, dict[str, Any] | None] | None = None
    annotations: str | None = None
    views: str | None = None


class PublishedSettings(BaseModel):
    """MF's published outputs: evaluation files, the printed figures to compare with, ALCE's citation judgements."""

    model_config = ConfigDict(extra="forbid")

    published: list[str] = Field(min_length=1)
    printed: str | None = None
    citations: list[str] = Field(default_factory=list)


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
    """Read and check an experiment YAML; ``settings`` (``{"seed": 1, "dfactscore.k": 3}``) override its keys.

    In the result all paths are absolute. Raises `InputError` naming the line of everything that is wrong.
    """
    file = YamlFile(path)
    file.override(settings or {})
    if isinstance(file.data, dict):
        file.listed(file.data.get("dfactscore"), "biographies", "groupers", "published", "citations")
    experiment = check(DScoreExperiment, file.data, file)
    paths = Paths(file, experiment.data)
    given = experiment.dfactscore
    changed: dict[str, Any] = {}
    for key in _PATHS:
        value = getattr(given, key, None)
        if isinstance(value, list):
            changed[key] = [paths.absolute(one, ("dfactscore", key, i)) for i, one in enumerate(value)]
        elif value is not None:
            changed[key] = paths.absolute(value, ("dfactscore", key))
    for key in ("verifier", "citation_judge"):
        spec = getattr(given, key, None)
        if spec is not None and spec != LLM_VERIFIER:
            changed[key] = resolve_evaluator(paths, spec, "dfactscore", key)
    check_audits(file, paths.problems, experiment.audits)
    paths.check()
    return experiment.model_copy(update={"dfactscore": given.model_copy(update=changed)})


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
            make_scorer(experiment, out),
            out,
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


def make_scorer(experiment: DScoreExperiment, out: str | Path) -> DFactScorer:
    """The engine that an experiment describes; side files (a knowledge source made of pages) go under ``out``."""
    block = experiment.dfactscore
    if not isinstance(block, DScoreSettings):
        raise UsageError("published outputs are read, not scored")
    llm = None if block.llm is None else block.llm.client()
    knowledge = None
    if block.knowledge is not None:
        knowledge = open_knowledge(block.knowledge, block.missing, out, block.wikipedia_api)
    return DFactScorer(
        knowledge,
        llm,
        block.verifier,
        retriever=Retriever(block.retrieval, block.k),
        replicates=experiment.replicates,
        seed=experiment.seed,
        confidence=experiment.confidence,
        **block.model_dump(include={*_PASSED}),
    )
