"""Which settings do both engines have, and how are experiments and their files read?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from factaudit.arrays.response_means import DEFAULT_GAMMA
from factaudit.engines.fact_decomposition import MAX_FACTS
from factaudit.engines.fact_verification import is_builtin_verifier
from factaudit.engines.nonparametric_probability import NonparametricModel
from factaudit.engines.reply_facts import MIN_FACT_CHARACTERS
from factaudit.engines.responses import ANNOTATED_FACT_SOURCES
from factaudit.errors import FactauditError, UsageError
from factaudit.experiment_inputs import check_audit_specs, resolve_evaluator_paths
from factaudit.knowledge.docdb import DocDB, create_empty_knowledge_database, find_knowledge_database
from factaudit.knowledge.knowledge_builder import PASSAGE_TOKENS, build_knowledge_source
from factaudit.knowledge.retrieval import PASSAGES_PER_FACT, PassageRetriever
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.knowledge.wikipedia_api import WIKIPEDIA_API, WikipediaPageCache
from factaudit.llm.settings import LLMField
from factaudit.publications.fetching import fetch_missing_published_files, is_offline
from factaudit.run_folder import RunFolder, RunSettings, check_run_spares_inputs
from factaudit.signature import hash_texts
from factaudit.yaml_file import YamlFile, check_yaml_settings
from factaudit.yaml_paths import YamlPaths


class EngineSettings(BaseModel):
    """The settings of both engines; `factaudit.engines.scoring_engine.ScoringEngine` says what the names mean.

    knowledge: a knowledge source, or a file of pages (``.jsonl``) that one is built from in the run folder. facts:
    whose facts to take (`factaudit.engines.responses.read_response_file`). ``verifier`` stands for ``verifiers``.
    passage_tokens: of the passages that a file of pages is cut into. wikipedia_tokenizer: a RoBERTa tokenizer that cuts
    the pages of Wikipedia (`factaudit.knowledge.wikipedia_api`).
    """

    model_config = ConfigDict(extra="forbid")

    knowledge: str | None = None
    missing: Literal["error", "skip", "wikipedia"] = "skip"
    wikipedia_api: str = WIKIPEDIA_API
    wikipedia_tokenizer: str | None = None
    facts: str | None = None
    system: str | None = None
    limit: int | None = Field(default=None, ge=1)
    llm: LLMField | None = None
    decomposer: LLMField | None = None
    verifiers: list[str | dict[str, dict[str, Any] | None]] = Field(default=["retrieval"], min_length=1)
    demos: str | None = None
    prompts: Literal["original", "short", "json"] = "original"
    decontextualize: bool = False
    retrieval: Literal["bm25", "dense", "all"] = "bm25"
    retrieval_model: str | None = None
    k: int = Field(default=PASSAGES_PER_FACT, ge=1)
    passage_tokens: int | None = Field(default=None, ge=1)
    parser: Literal["strict", "original"] = "strict"
    abstain: Literal["declines", "original", "perplexity_ai", "none"] = "declines"
    gamma: float = Field(default=DEFAULT_GAMMA, ge=0)
    max_facts: int = Field(default=MAX_FACTS, ge=1)
    min_characters: int = Field(default=MIN_FACT_CHARACTERS, ge=0)
    irrelevant: Literal["exclude", "unsupported"] = "exclude"
    npm: bool | dict[str, Any] = False
    logprobs: bool = True
    dataset: str = "factscore"
    #: Keys whose values are paths; the first holds the responses.
    PATHS: ClassVar[tuple[str, ...]] = ("knowledge", "demos", "facts")
    #: Settings that the engine has under the same name.
    PASSED: ClassVar[tuple[str, ...]] = (
        *("parser", "abstain", "gamma", "max_facts", "min_characters", "irrelevant", "logprobs", "dataset"),
        *("decontextualize", "prompts"),
    )

    def list_inputs(self) -> list[str]:
        """The files that it names."""
        named = [getattr(self, key) or [] for key in self.PATHS]
        return [path for value in named for path in ([value] if isinstance(value, str) else value)]

    @model_validator(mode="before")
    @classmethod
    def _convert_single_verifier(cls, raw_settings: Any) -> Any:
        if isinstance(raw_settings, dict) and "verifier" in raw_settings and "verifiers" not in raw_settings:
            others = {key: value for key, value in raw_settings.items() if key != "verifier"}
            return {"verifiers": [raw_settings["verifier"]], **others}
        return raw_settings


ExperimentSettings = TypeVar("ExperimentSettings", bound=RunSettings)


def load_engine_experiment(model: type[ExperimentSettings], block_name: str, file: YamlFile) -> ExperimentSettings:
    """Check an experiment YAML with an engine's block; `factaudit.experiment.read_experiment` calls this.

    In the result all paths are absolute. Raises `InputError` naming the line of everything that is wrong.
    """
    own = file.data.get(block_name) if isinstance(file.data, dict) else None
    file.wrap_in_lists(own, "responses", "biographies", "groupers", "published", "citations", "verifiers")
    experiment = check_yaml_settings(model, file.data, file)
    paths = YamlPaths(file, experiment.data)
    given = getattr(experiment, block_name)
    changed: dict[str, Any] = {}
    for key in given.PATHS:
        value = getattr(given, key)
        if isinstance(value, list):
            changed[key] = [paths.resolve_path(*one) for one in paths.expand_patterns(value, block_name, key)]
        elif value is not None and value not in ANNOTATED_FACT_SOURCES:
            changed[key] = paths.resolve_path(value, (block_name, key))
    if isinstance(given, EngineSettings):
        place = (block_name, "verifier") if isinstance(own, dict) and "verifier" in own else (block_name, "verifiers")
        changed["verifiers"] = [
            one if is_builtin_verifier(one) else resolve_evaluator_paths(paths, one, *place, number)
            for number, one in enumerate(given.verifiers)
        ]
    if variants := getattr(given, "variants", None):
        changed["variants"] = _resolve_variant_paths(paths, variants, given.PATHS, block_name)
    if (judge := getattr(given, "citation_judge", None)) is not None:
        changed["citation_judge"] = resolve_evaluator_paths(paths, judge, block_name, "citation_judge")
    check_audit_specs(paths, experiment.audits)
    paths.check_problems()
    return experiment.model_copy(update={block_name: given.model_copy(update=changed)})


def _resolve_variant_paths(
    paths: YamlPaths, variants: Mapping[str, list[Any]], path_keys: Sequence[str], block_name: str
) -> dict[str, list[Any]]:
    """The values of settings that are varied, with absolute paths; what is wrong with them is a problem."""
    found: dict[str, list[Any]] = {}
    for key, values in variants.items():
        place = (block_name, "variants", key)
        found[key] = [
            paths.resolve_path(value, (*place, number))
            if key in path_keys
            else resolve_evaluator_paths(paths, value, *place, number)
            if key == "verifier" and not is_builtin_verifier(value)
            else value
            for number, value in enumerate(values)
        ]
    return found


def build_engine_arguments_from_yaml(
    block: EngineSettings,
    experiment: RunSettings,
    out: str | Path,
    needs_knowledge: bool,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """An engine's arguments; side files (pages of Wikipedia, a knowledge source) go under ``out``.

    needs_knowledge: open a knowledge source also where the settings name none
    (`factaudit.knowledge.docdb.find_knowledge_database`). say: told of what is fetched, before.
    """
    from factaudit.llm.batch_client import make_llm_client

    inputs = block.list_inputs()
    fetch_missing_published_files(inputs, say)
    check_run_spares_inputs(Path(out), inputs)
    retriever = PassageRetriever(block.retrieval, block.k)
    if block.retrieval_model is not None:
        retriever.model = block.retrieval_model
    npm = None
    if block.npm is not False:
        try:
            npm = NonparametricModel(**(block.npm if isinstance(block.npm, dict) else {}))
        except (TypeError, ValidationError) as error:
            raise UsageError(f"npm: {error}") from None
    source = None
    if needs_knowledge or block.knowledge is not None:
        source = open_engine_knowledge_source(
            block.knowledge, block.missing, out, block.wikipedia_api, block.wikipedia_tokenizer, block.passage_tokens
        )
        if source.wikipedia is not None and not is_offline():
            say(
                f"wikipedia pages that the knowledge source lacks are fetched from {source.wikipedia.api}, two requests"
                f" a topic, text under CC BY-SA, and kept in {source.wikipedia.path}"
            )
    return {
        "knowledge": source,
        "llm": None if block.llm is None else make_llm_client(block.llm),
        "decomposer": None if block.decomposer is None else make_llm_client(block.decomposer),
        "verifiers": [one if isinstance(one, str) else dict(one) for one in block.verifiers],
        "demos": block.demos,
        "retriever": retriever,
        "npm": npm,
        **experiment.model_dump(include={"replicates", "seed", "confidence"}),
        **block.model_dump(include={*block.PASSED}),
    }


def open_engine_knowledge_source(
    path: str | Path | None = None,
    missing: str = "skip",
    out: str | Path = ".",
    wikipedia_api: str = WIKIPEDIA_API,
    wikipedia_tokenizer: str | None = None,
    passage_tokens: int | None = None,
) -> TopicLookup:
    """A knowledge source with its policy. Pages in JSONL are built into one under ``out/.work``, once.

    Where none is named or found, and missing pages come from Wikipedia, all of them do. passage_tokens: of the passages
    of pages in JSONL; a knowledge source that is built keeps its own.
    """
    work = Path(out) / ".work"
    try:
        source = find_knowledge_database(path)
    except FactauditError:
        if missing != "wikipedia":
            raise
        source = create_empty_knowledge_database(work / "no-pages.db")
    if source.name.endswith((".jsonl", ".jsonl.gz")) and source.is_file():
        stat = source.stat()
        told = [str(source.absolute()), str(stat.st_size), str(stat.st_mtime_ns)]
        told += [] if passage_tokens is None else [f"{passage_tokens} tokens"]
        made = work / f"knowledge-{hash_texts(*told)}.db"
        if not made.is_file():
            with RunFolder.open(out):
                build_knowledge_source(source, made, passage_tokens=passage_tokens or PASSAGE_TOKENS)
        source = made
    elif passage_tokens is not None:
        raise UsageError(f"passage_tokens: {source} keeps the passages that it was built with; name a file of pages")
    wikipedia = None
    if missing == "wikipedia":
        side = "wikipedia.db" if wikipedia_tokenizer is None else f"wikipedia-{hash_texts(wikipedia_tokenizer)}.db"
        wikipedia = WikipediaPageCache(work / side, api=wikipedia_api, tokenizer=wikipedia_tokenizer)
    return TopicLookup(DocDB(source, can_be_empty=wikipedia is not None), missing, wikipedia)
