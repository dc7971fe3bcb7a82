"""Which settings do `factaudit score` and the blocks ``factscore:`` and ``dfactscore:`` have?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field, model_validator

from factaudit.engines.dfactscore import DFactScoreOptions
from factaudit.engines.factscore import FactScoreOptions, FactScorer, is_own_verifier
from factaudit.engines.variants import list_score_variants
from factaudit.errors import FactauditError, UsageError
from factaudit.evaluators.registry import make_evaluator
from factaudit.experiment.folder import RunFolder, RunSettings
from factaudit.experiment.inputs import check_audit_specs, resolve_evaluator_paths
from factaudit.knowledge.docdb import DocDB, create_empty_knowledge_database, find_knowledge_database
from factaudit.knowledge.knowledge_builder import build_knowledge_source
from factaudit.knowledge.retrieval import PASSAGES_PER_FACT, PassageRetriever
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.knowledge.wikipedia_api import WikipediaPageCache
from factaudit.llm.client import LLMClient
from factaudit.llm.cost import LLMCostBudget
from factaudit.llm.settings import LLMField, LLMSettings
from factaudit.publications.fetching import is_offline
from factaudit.settings.yaml_file import YamlFile, check_yaml_settings
from factaudit.settings.yaml_paths import YamlPaths
from factaudit.signature import hash_texts

EvaluatorSpec = str | dict[str, dict[str, Any] | None]
Say = Callable[[str], None]


class EngineSettings(FactScoreOptions):
    """What both engines are given besides their options.

    responses: files of texts (`factaudit.engines.responses.read_responses`). knowledge: a knowledge source, or a file
    of pages (``.jsonl``) that one is built from in the run folder. facts: whose facts to take. ``verifier`` stands for
    ``verifiers``. wikipedia_tokenizer: a RoBERTa tokenizer that cuts the pages of Wikipedia
    (`factaudit.knowledge.wikipedia_api`). npm: the options of the evaluator `npm` where it is combined with the LM's
    verdict; true for the published ones.
    """

    responses: list[str] = Field(min_length=1)
    facts: Literal["model", "human"] | None = None
    system: str | None = None
    limit: int | None = Field(default=None, ge=1)
    knowledge: str | None = None
    missing: Literal["error", "skip", "wikipedia"] = "skip"
    wikipedia_tokenizer: str | None = None
    llm: LLMField | None = None
    decomposer: LLMField | None = None
    verifiers: list[EvaluatorSpec] = Field(default=["retrieval"], min_length=1)
    retrieval: Literal["bm25", "dense", "all"] = "bm25"
    retrieval_model: str | None = None
    k: int = Field(default=PASSAGES_PER_FACT, ge=1)
    npm: bool | dict[str, Any] = False
    #: Keys whose values are paths.
    PATHS: ClassVar[tuple[str, ...]] = ("responses", "knowledge", "demos")

    @model_validator(mode="before")
    @classmethod
    def _convert_single_verifier(cls, raw_settings: Any) -> Any:
        if isinstance(raw_settings, dict) and "verifier" in raw_settings and "verifiers" not in raw_settings:
            others = {key: value for key, value in raw_settings.items() if key != "verifier"}
            return {"verifiers": [raw_settings["verifier"]], **others}
        return raw_settings

    def list_inputs(self) -> list[str]:
        """The files that it names."""
        values = [getattr(self, key) or [] for key in self.PATHS]
        return [path for value in values for path in (value if isinstance(value, list) else [value])]


class FactScoreSettings(EngineSettings):
    """Everything that `factaudit score` takes, by the names of its options.

    conversation: the files hold conversations, of which each turn of the assistant is scored
    (`factaudit.engines.conversations.read_conversations`). topic: of turns that have none; else the LLM is asked.
    variants: settings with the values that each is varied to, one at a time (``{k: [1, 3], parser: [original]}``).
    """

    conversation: bool = False
    topic: str | None = Field(default=None, pattern=r"\S")
    variants: dict[str, list[Any]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> FactScoreSettings:
        if self.topic is not None and not self.conversation:
            raise ValueError("a topic for all goes with conversation: elsewhere each line names its own")
        if self.variants and self.conversation and self.topic is None:
            raise ValueError("variants: of conversations, expected a topic for all")
        try:
            list_score_variants(self)
        except UsageError as error:
            raise ValueError(str(error)) from None
        return self


class DFactScoreSettings(DFactScoreOptions, EngineSettings):
    """Everything that `factaudit score --dfactscore` takes, by the names of its options.

    Without ``knowledge`` the biographies' own documents are used. citation_judge: an evaluator that judges the
    citations of biographies with documents. annotations: people's annotations to compare with.
    """

    citation_judge: EvaluatorSpec | None = None
    annotations: str | None = None
    PATHS: ClassVar[tuple[str, ...]] = (*EngineSettings.PATHS, "group_demos", "annotations")


_Experiment = TypeVar("_Experiment", bound=RunSettings)


def check_engine_experiment(model: type[_Experiment], name: str, file: YamlFile) -> _Experiment:
    """The experiment of a YAML with the block of an engine, all paths absolute.

    Raises `InputError` naming the line of everything that is wrong.
    """
    own = file.data.get(name) if isinstance(file.data, dict) else None
    file.wrap_in_lists(own, "responses", "verifiers")
    experiment = check_yaml_settings(model, file.data, file)
    paths = YamlPaths(file, experiment.data)
    block = getattr(experiment, name)
    changed: dict[str, Any] = {}
    for key in block.PATHS:
        value = getattr(block, key)
        if isinstance(value, list):
            changed[key] = [paths.resolve_path(*one) for one in paths.expand_patterns(value, name, key)]
        elif value is not None:
            changed[key] = paths.resolve_path(value, (name, key))

    def resolve_verifier(spec: Any, *place: str | int) -> Any:
        return spec if is_own_verifier(spec) else resolve_evaluator_paths(paths, spec, *place)

    key = "verifier" if isinstance(own, dict) and "verifier" in own else "verifiers"
    changed["verifiers"] = [resolve_verifier(one, name, key, at) for at, one in enumerate(block.verifiers)]
    if isinstance(block, FactScoreSettings):
        changed["variants"] = dict(block.variants)
        for key in set(block.variants) & {*block.PATHS, "verifier"}:
            resolve = resolve_verifier if key == "verifier" else lambda value, *place: paths.resolve_path(value, place)
            values = enumerate(block.variants[key])
            changed["variants"][key] = [resolve(value, name, "variants", key, at) for at, value in values]
    if isinstance(block, DFactScoreSettings) and block.citation_judge is not None:
        changed["citation_judge"] = resolve_evaluator_paths(paths, block.citation_judge, name, "citation_judge")
    check_audit_specs(paths, experiment.audits)
    paths.check_problems()
    return experiment.model_copy(update={name: block.model_copy(update=changed)})


def make_scorer(kind: type[FactScorer], block: EngineSettings, out: str | Path, say: Say = lambda text: None) -> Any:
    """The engine of a block; side files (pages of Wikipedia, a knowledge source) go under ``out``.

    say: told of what is fetched, before.
    """
    retriever = PassageRetriever(block.retrieval, block.k)
    if block.retrieval_model is not None:
        retriever.model = block.retrieval_model
    source = None
    if block.knowledge is not None or (kind.needs_knowledge and block.verifiers != ["no-context"]):
        source = open_knowledge_source(block.knowledge, block.missing, out, block.wikipedia_tokenizer)
        if source.wikipedia is not None and not is_offline():
            say(
                f"wikipedia pages that the knowledge source lacks are fetched from {source.wikipedia.api}, two requests"
                f" a topic, text under CC BY-SA, and kept in {source.wikipedia.path}"
            )
    npm = None if block.npm is False else make_evaluator("npm", {} if block.npm is True else block.npm)
    return kind(
        source,
        _make_client(block.llm),
        decomposer=_make_client(block.decomposer),
        verifiers=block.verifiers,
        retriever=retriever,
        npm=npm,
        **block.model_dump(include=set(kind.OPTIONS.model_fields)),
    )


def _make_client(settings: LLMSettings | None) -> LLMClient | None:
    return None if settings is None else LLMClient(settings, cache=settings.cache_path(), budget=LLMCostBudget(None))


def open_knowledge_source(
    path: str | Path | None = None,
    missing: str = "skip",
    out: str | Path = ".",
    wikipedia_tokenizer: str | None = None,
) -> TopicLookup:
    """A knowledge source with its policy. Pages in JSONL are built into one under ``out/.work``, once.

    Where none is named or found, and missing pages come from Wikipedia, all of them do.
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
        made = work / f"knowledge-{hash_texts(str(source.absolute()), str(stat.st_size), str(stat.st_mtime_ns))}.db"
        if not made.is_file():
            with RunFolder.open(out):
                build_knowledge_source(source, made)
        source = made
    wikipedia = None
    if missing == "wikipedia":
        side = "wikipedia.db" if wikipedia_tokenizer is None else f"wikipedia-{hash_texts(wikipedia_tokenizer)}.db"
        wikipedia = WikipediaPageCache(work / side, tokenizer=wikipedia_tokenizer)
    return TopicLookup(DocDB(source, can_be_empty=wikipedia is not None), missing, wikipedia)
