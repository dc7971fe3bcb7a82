"""What are scores computed with? The settings of `factaudit factscore`, and the models and pages
that they name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from factaudit.arrays.response_means import DEFAULT_GAMMA
from factaudit.arrays.support_matrix import NARROW_MARGIN
from factaudit.engines.abstention import is_abstaining_response
from factaudit.engines.candidates import MAX_CANDIDATES
from factaudit.engines.decompose import MAX_FACTS, DecompositionPrompt
from factaudit.engines.grouping import GroupingPrompt
from factaudit.engines.responses import Response
from factaudit.engines.variants import list_score_variants
from factaudit.engines.verifier import (
    NO_CONTEXT,
    OWN_VERIFIERS,
    RETRIEVAL,
    FactVerifier,
    reads_pages,
)
from factaudit.errors import FactauditError, UsageError
from factaudit.evaluators.base import Evaluator
from factaudit.evaluators.judging import (
    NamedEvaluator,
    check_unique_evaluator_names,
    make_named_evaluator,
    walk_evaluator_members,
)
from factaudit.evaluators.registry import make_evaluator
from factaudit.experiment.folder import RunFolder
from factaudit.knowledge.docdb import (
    DocDB,
    create_empty_knowledge_database,
    find_knowledge_database,
)
from factaudit.knowledge.knowledge_builder import build_knowledge_source
from factaudit.knowledge.retrieval import PASSAGES_PER_FACT, PassageRetriever
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.knowledge.wikipedia_api import WikipediaPageCache
from factaudit.llm.client import LLMClient
from factaudit.llm.cost import LLMCostBudget
from factaudit.llm.settings import LLMField, LLMSettings
from factaudit.publications.fetching import is_offline
from factaudit.signature import hash_texts, make_signature

EvaluatorSpec = str | dict[str, dict[str, Any] | None]
Say = Callable[[str], None]


class ScoreSettings(BaseModel):
    """What both scores take.

    - What is scored: responses: files of texts (`factaudit.engines.responses.read_responses`);
      facts: whose facts to take; system, limit; abstain:
      `factaudit.engines.abstention.is_abstaining_response`; dataset: the claims'.
    - Atomic facts: llm, or another one as decomposer; demos: a file of demonstrations in place of
      our own;
      decontextualize: ask, in the decomposing prompt, for facts whose subjects are no pronouns, as
      MF does; max_facts.
    - Passages: knowledge: a knowledge source, or a file of pages (``.jsonl``) that one is built
      from in the run folder;
      missing: what happens with topics that it lacks (`factaudit.knowledge.topic_lookup`);
      wikipedia_tokenizer: a RoBERTa tokenizer that cuts the pages of Wikipedia; retrieval,
      retrieval_model, k: how passages are chosen.
    - Verification: verifiers (or one ``verifier``): ``retrieval`` (the LLM with passages),
      ``no-context`` (the LLM alone), or any evaluator; the first one's score is *the* score.
      parser: ``strict`` or ``original`` (`factaudit.engines.verifier.read_verification`); logprobs:
      ask the server for token probabilities, which become scores; npm: the options of the evaluator
      `npm` where it is combined with the LM's verdict; true for the published ones.
    - Score: gamma: the length penalty's; 0 turns it off. irrelevant: facts labelled IR: ``exclude``
      (no label) or ``unsupported`` (label 0).
    """

    model_config = ConfigDict(extra="forbid")

    responses: list[str] = Field(min_length=1)
    facts: Literal["model", "human"] | None = None
    system: str | None = None
    limit: int | None = Field(default=None, ge=1)
    abstain: Literal["declines", "original", "perplexity_ai", "none"] = "declines"
    dataset: str = "factscore"
    llm: LLMField | None = None
    decomposer: LLMField | None = None
    demos: str | Path | None = None
    decontextualize: bool = False
    max_facts: int = Field(default=MAX_FACTS, ge=1)
    knowledge: str | None = None
    missing: Literal["error", "skip", "wikipedia"] = "skip"
    wikipedia_tokenizer: str | None = None
    retrieval: Literal["bm25", "dense", "all"] = "bm25"
    retrieval_model: str = PassageRetriever.model
    k: int = Field(default=PASSAGES_PER_FACT, ge=1)
    verifiers: list[EvaluatorSpec] = Field(default=[RETRIEVAL], min_length=1)
    parser: Literal["strict", "original"] = "strict"
    logprobs: bool = True
    npm: bool | dict[str, Any] = False
    gamma: float = Field(default=DEFAULT_GAMMA, ge=0)
    irrelevant: Literal["exclude", "unsupported"] = "exclude"
    #: Keys whose values are paths.
    PATHS: ClassVar[tuple[str, ...]] = ("responses", "knowledge", "demos")

    @model_validator(mode="before")
    @classmethod
    def _convert_single_verifier(cls, raw_settings: Any) -> Any:
        if (
            isinstance(raw_settings, dict)
            and "verifier" in raw_settings
            and "verifiers" not in raw_settings
        ):
            others = {key: value for key, value in raw_settings.items() if key != "verifier"}
            return {"verifiers": [raw_settings["verifier"]], **others}
        return raw_settings

    def list_inputs(self) -> list[str]:
        """The files that it names."""
        values = [getattr(self, key) or [] for key in self.PATHS]
        return [
            str(path)
            for value in values
            for path in (value if isinstance(value, list) else [value])
        ]


class FactScoreSettings(ScoreSettings):
    """Everything that `factaudit factscore` takes, by the names of its options.

    conversation: the files hold conversations, of which each turn of the assistant is scored
    (`factaudit.engines.conversations.read_conversations`). topic: what turns without a topic are
    about; the LLM is asked where it is not given.
    variants: settings with the values that each is varied to, one at a time (``{k: [1, 3], parser:
    [original]}``).
    """

    conversation: bool = False
    topic: str | None = Field(default=None, pattern=r"\S")
    variants: dict[str, list[Any]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> FactScoreSettings:
        if self.topic is not None and not self.conversation:
            raise ValueError(
                "a topic for all goes with conversation: elsewhere each line names its own"
            )
        if self.variants and self.conversation and self.topic is None:
            raise ValueError("variants: of conversations, expected a topic for all")
        try:
            list_score_variants(self)
        except UsageError as error:
            raise ValueError(str(error)) from None
        return self


class DFactScoreSettings(ScoreSettings):
    """Everything that `factaudit dfactscore` takes, by the names of its options.

    Without ``knowledge`` the biographies' own documents are used. grouper: who groups the facts
    (`factaudit.engines.grouping.GROUPERS`); group_demos: a file of demonstrations for grouping, in
    place of our own.
    max_candidates: how many pages of a name are put to the verifiers, at a call a fact each, where
    the biography brings
    no candidates. rule: how groups are linked to entities
    (`factaudit.arrays.support_matrix.LINKING_RULES`); the other
    rules stand beside it. narrow: a link whose margin is at most this is counted. citation_judge:
    an evaluator that judges the citations of biographies with documents. annotations: people's
    annotations to compare with.
    """

    dataset: str = "biographies"
    grouper: Literal["llm", "given", "one-group"] = "llm"
    group_demos: str | Path | None = None
    max_candidates: int = Field(default=MAX_CANDIDATES, ge=1)
    rule: Literal["argmax", "hungarian", "given"] = "argmax"
    narrow: float = Field(default=NARROW_MARGIN, ge=0, le=1)
    citation_judge: EvaluatorSpec | None = None
    annotations: str | None = None
    PATHS: ClassVar[tuple[str, ...]] = (*ScoreSettings.PATHS, "group_demos", "annotations")


@dataclass
class Pipeline:
    """The models and pages by which texts are scored, made of their settings.

    llm: decomposes, and verifies where the verifier is an LLM's; decomposer: another one for
    decomposing; neither: not
    needed. npm: the evaluator ``npm``, to combine with the LLM's verdict.

    Raises `UsageError` where something is to be had from an LLM that is not there.
    """

    settings: Any
    knowledge: TopicLookup | None = None
    llm: LLMClient | None = None
    decomposer: LLMClient | None = None
    npm: Evaluator | None = None
    verifiers: list[NamedEvaluator] = field(init=False)

    def __post_init__(self) -> None:
        settings = self.settings
        self.verifiers = [self._make_verifier(spec) for spec in settings.verifiers]
        check_unique_evaluator_names(self.verifiers)
        if self.npm is not None and RETRIEVAL not in settings.verifiers:
            raise UsageError(
                f"the nonparametric probability is combined with the verifier {RETRIEVAL!r}; add it"
            )
        self.retriever = PassageRetriever(settings.retrieval, settings.k, settings.retrieval_model)
        self.prompt = DecompositionPrompt.load(settings.demos, settings.decontextualize)
        self.grouping_prompt: GroupingPrompt | None = None
        if getattr(settings, "grouper", None) == "llm":
            if self.llm is None:
                raise UsageError(
                    "the grouper 'llm' needs an LLM; without one, give the groups with the facts"
                    " ('given')"
                )
            self.grouping_prompt = GroupingPrompt.load(settings.group_demos)

    def _make_verifier(self, spec: EvaluatorSpec) -> NamedEvaluator:
        if spec not in OWN_VERIFIERS:
            return make_named_evaluator(spec)
        if self.llm is None:
            raise UsageError(f"the verifier {spec!r} needs an LLM; without one take, say, unigram")
        npm = self.npm if spec == RETRIEVAL else None
        settings = self.settings
        return make_named_evaluator(
            FactVerifier(self.llm, spec == RETRIEVAL, settings.parser, settings.logprobs, npm)
        )

    @classmethod
    def open(
        cls, settings: ScoreSettings, out: str | Path, say: Say = lambda text: None
    ) -> Pipeline:
        """With all that the settings name; side files (pages of Wikipedia, a knowledge source) go
        under ``out``.

        say: told of what is fetched, before.
        """
        source = None
        looks_up_topics = isinstance(settings, FactScoreSettings) and settings.verifiers != [
            NO_CONTEXT
        ]
        if settings.knowledge is not None or looks_up_topics:
            source = open_knowledge_source(
                settings.knowledge, settings.missing, out, settings.wikipedia_tokenizer
            )
            if source.wikipedia is not None and not is_offline():
                say(
                    "wikipedia pages that the knowledge source lacks are fetched from"
                    f" {source.wikipedia.api}, two requests a topic, text under CC BY-SA, and kept"
                    f" in {source.wikipedia.path}"
                )
        npm = None
        if settings.npm is not False:
            npm = make_evaluator("npm", {} if settings.npm is True else settings.npm)
        return cls(
            settings, source, _make_client(settings.llm), _make_client(settings.decomposer), npm
        )

    @property
    def names(self) -> list[str]:
        """The verifiers' names in the verdicts table; the first one's score is *the* score."""
        return [one.name for one in self.verifiers]

    @property
    def signatures(self) -> dict[str, str]:
        """By verifier's name every setting that can change a verdict, or a group, on one line."""
        asked, settings = self.decomposer or self.llm, self.settings
        facts = {
            "decomposer": asked.signature if asked else None,
            "demos": self.prompt.signature,
            "abstain": settings.abstain,
            "max_facts": settings.max_facts,
            "retrieval": self.retriever.signature,
            "missing": self.knowledge.missing if self.knowledge else None,
            "knowledge": self.knowledge.db.signature if self.knowledge else None,
        }
        parts = [make_signature("facts", facts)]
        if isinstance(settings, DFactScoreSettings):
            groups: dict[str, Any] = {
                "grouper": settings.grouper,
                "max_candidates": settings.max_candidates,
            }
            if self.grouping_prompt is not None and self.llm is not None:
                groups |= {"demos": self.grouping_prompt.signature, "llm": self.llm.signature}
            parts.append(make_signature("groups", groups))
        return {one.name: "|".join([one.signature, *parts]) for one in self.verifiers}

    @property
    def callers(self) -> list[tuple[str, Any]]:
        """Those who ask models, each with the name under which the run lists its calls."""
        own = [one.name for one in self.verifiers if isinstance(one.evaluator, FactVerifier)]
        found: list[tuple[str, Any]] = [
            (own[0] if own else "decomposer", self.llm),
            ("decomposer", self.decomposer),
        ]
        found += [
            (one.name, part)
            for one in self.verifiers
            for part, _ in walk_evaluator_members(one.evaluator)
        ]
        return [(name, one) for name, one in found if one is not None]

    @property
    def needs_pages(self) -> bool:
        """Whether no verifier can judge a fact without a page."""
        return all(reads_pages(one.evaluator) for one in self.verifiers)

    def abstains(self, response: Response) -> bool:
        """Whether a response abstains: as its file says, else as the detector finds."""
        if response.abstained is not None:
            return response.abstained
        return is_abstaining_response(response.output, self.settings.abstain)

    def check_can_decompose(self, responses: Sequence[Response]) -> None:
        """Raise `UsageError` where there is nothing to score, or nobody who could find the
        facts."""
        if not responses:
            raise UsageError("there is no response to score")
        if (
            self.decomposer is None
            and self.llm is None
            and any(one.facts is None for one in responses)
        ):
            raise UsageError(
                "facts are to be had from the responses: that needs an LLM (or give the facts)"
            )


def _make_client(settings: LLMSettings | None) -> LLMClient | None:
    return (
        None
        if settings is None
        else LLMClient(settings, cache=settings.cache_path(), budget=LLMCostBudget(None))
    )


def open_knowledge_source(
    path: str | Path | None = None,
    missing: str = "skip",
    out: str | Path = ".",
    wikipedia_tokenizer: str | None = None,
) -> TopicLookup:
    """A knowledge source with its policy. Pages in JSONL are built into one under ``out/.work``,
    once.

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
        digest = hash_texts(str(source.absolute()), str(stat.st_size), str(stat.st_mtime_ns))
        made = work / f"knowledge-{digest}.db"
        if not made.is_file():
            with RunFolder.open(out):
                build_knowledge_source(source, made)
        source = made
    wikipedia = None
    if missing == "wikipedia":
        side = (
            "wikipedia.db"
            if wikipedia_tokenizer is None
            else f"wikipedia-{hash_texts(wikipedia_tokenizer)}.db"
        )
        wikipedia = WikipediaPageCache(work / side, tokenizer=wikipedia_tokenizer)
    return TopicLookup(DocDB(source, can_be_empty=wikipedia is not None), missing, wikipedia)
