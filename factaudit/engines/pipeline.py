"""What are scores computed with? The settings of `factaudit factscore` and `factaudit dfactscore`,
and the models and pages that they name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from factaudit.arrays.response_means import DEFAULT_GAMMA
from factaudit.engines.abstention import is_abstaining_response
from factaudit.engines.decompose import DecompositionPrompt
from factaudit.engines.grouping import sign_grouping_prompt
from factaudit.engines.responses import Response, read_responses
from factaudit.engines.variants import list_score_variants
from factaudit.engines.verifier import (
    NO_CONTEXT,
    OWN_VERIFIERS,
    RETRIEVAL,
    RETRIEVAL_AND_NPM,
    FactVerifier,
    reads_pages,
)
from factaudit.errors import FactauditError, UsageError
from factaudit.evaluators.judging import (
    NamedEvaluator,
    check_unique_evaluator_names,
    make_named_evaluator,
    walk_evaluator_members,
)
from factaudit.evaluators.registry import make_evaluator
from factaudit.experiment.folder import RunFolder
from factaudit.knowledge.docdb import DocDB, find_knowledge_database
from factaudit.knowledge.knowledge_builder import build_knowledge_source
from factaudit.knowledge.retrieval import PASSAGES_PER_FACT, PassageRetriever
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.knowledge.wikipedia_api import WikipediaPageCache
from factaudit.llm.client import LLMClient
from factaudit.llm.settings import LLMField
from factaudit.settings.yaml_paths import YamlPathKind
from factaudit.signature import hash_texts, make_signature
from factaudit.text.display_text import format_count

Say = Callable[[str], None]
EvaluatorSpec = Annotated[str | dict[str, dict[str, Any] | None], YamlPathKind.EVALUATORS]
#: The file of a setting. In a YAML it is relative to the YAML's folder.
InputPath = Annotated[str, YamlPathKind.PATH]


def _wrap_single_value(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


class ScoreSettings(BaseModel):
    """What both scores take.

    - What is scored: responses: files of texts (`factaudit.engines.responses.read_responses`);
      facts: whose facts to take; system, limit; abstain:
      `factaudit.engines.abstention.is_abstaining_response`.
    - Atomic facts: llm, or another one as decomposer; demos: a file of demonstrations in place of
      our own; decontextualize: ask, in the decomposing prompt, for facts whose subjects are no
      pronouns, as MF does.
    - Passages: knowledge: a knowledge source, or a file of pages (``.jsonl``) that one is built
      from in the run folder; missing: what happens with topics that it lacks
      (`factaudit.knowledge.topic_lookup`); retrieval, k: how passages are chosen.
    - Verification: verifiers (or one ``verifier``): ``retrieval`` (the LLM with passages),
      ``no-context`` (the LLM alone), ``retrieval+npm`` (the LLM with passages, and the evaluator
      `npm` for what it finds true), or any evaluator; the first one's score is *the* score.
      parser: ``strict`` or ``original`` (`factaudit.engines.verifier.read_verification`).
    - Score: gamma: the length penalty's; 0 turns it off.
    - citation_judge: an evaluator that judges the citations of responses with documents.
    """

    model_config = ConfigDict(extra="forbid")

    responses: Annotated[list[InputPath], BeforeValidator(_wrap_single_value)] = Field(min_length=1)
    facts: Literal["model", "human"] | None = None
    system: str | None = None
    limit: int | None = Field(default=None, ge=1)
    abstain: Literal["declines", "original", "none"] = "declines"
    llm: LLMField | None = None
    decomposer: LLMField | None = None
    demos: InputPath | None = None
    decontextualize: bool = False
    knowledge: InputPath | None = None
    missing: Literal["skip", "wikipedia"] = "skip"
    retrieval: Literal["bm25", "dense", "all"] = "bm25"
    k: int = Field(default=PASSAGES_PER_FACT, ge=1)
    verifiers: Annotated[list[EvaluatorSpec], BeforeValidator(_wrap_single_value)] = Field(
        default=[RETRIEVAL],
        min_length=1,
        validation_alias=AliasChoices("verifiers", "verifier"),
    )
    parser: Literal["strict", "original"] = "strict"
    gamma: float = Field(default=DEFAULT_GAMMA, ge=0)
    citation_judge: EvaluatorSpec | None = None

    def list_inputs(self) -> list[str]:
        """The files that it names."""
        others = (self.knowledge, self.demos, getattr(self, "annotations", None))
        return [*self.responses, *filter(None, others)]

    def read_responses(self) -> list[Response]:
        """The responses of the files."""
        return read_responses(
            self.responses, facts=self.facts, system=self.system, limit=self.limit
        )


class FactScoreSettings(ScoreSettings):
    """Everything that `factaudit factscore` takes, by the names of its options.

    variants: settings with the values that each is varied to, one at a time (``{k: [1, 3], parser:
    [original]}``).
    """

    variants: dict[str, list[Any]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> FactScoreSettings:
        try:
            list_score_variants(self)
        except UsageError as error:
            raise ValueError(str(error)) from None
        return self


class DFactScoreSettings(ScoreSettings):
    """Everything that `factaudit dfactscore` takes, by the names of its options.

    Without ``knowledge`` the biographies' own documents are used. grouper: who groups the facts:
    ``llm``, as in the paper, or ``given``, the groups of the facts in the file (facts without a
    group are in one). rule: how groups are linked to entities
    (`factaudit.arrays.biographies.LINKING_RULES`); the other rules stand beside it. annotations:
    people's annotations to compare with.
    """

    grouper: Literal["llm", "given"] = "llm"
    rule: Literal["argmax", "hungarian"] = "argmax"
    annotations: InputPath | None = None


@dataclass
class Pipeline:
    """The models and pages by which texts are scored, made of their settings.

    llm: decomposes, and verifies where the verifier is an LLM's; decomposer: another one for
    decomposing; neither: not needed.

    Raises `UsageError` where something is to be had from an LLM that is not there.
    """

    settings: Any
    knowledge: TopicLookup | None = None
    llm: LLMClient | None = None
    decomposer: LLMClient | None = None
    verifiers: list[NamedEvaluator] = field(init=False)
    citation_judge: NamedEvaluator | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        settings = self.settings
        self.verifiers = [self._make_verifier(spec) for spec in settings.verifiers]
        check_unique_evaluator_names(self.verifiers)
        if settings.citation_judge is not None:
            self.citation_judge = make_named_evaluator(settings.citation_judge)
        self.retriever = PassageRetriever(settings.retrieval, settings.k)
        self.prompt = DecompositionPrompt.load(settings.demos, settings.decontextualize)
        if getattr(settings, "grouper", None) == "llm" and self.llm is None:
            raise UsageError(
                "the grouper 'llm' needs an LLM; without one, give the groups with the facts"
                " ('given')"
            )

    def _make_verifier(self, spec: EvaluatorSpec) -> NamedEvaluator:
        if spec not in OWN_VERIFIERS:
            return make_named_evaluator(spec)
        if self.llm is None:
            raise UsageError(f"the verifier {spec!r} needs an LLM; without one take, say, unigram")
        npm = make_evaluator("npm", {}) if spec == RETRIEVAL_AND_NPM else None
        verifier = FactVerifier(self.llm, spec != NO_CONTEXT, self.settings.parser, npm)
        return make_named_evaluator(verifier)

    @classmethod
    def open(cls, settings: ScoreSettings, out: str | Path) -> Pipeline:
        """With all that the settings name; side files (pages of Wikipedia, a knowledge source) go
        under ``out``."""
        source = None
        if isinstance(settings, FactScoreSettings):
            needs_source = settings.verifiers != [NO_CONTEXT]
        else:  # biographies may bring their own documents
            needs_source = settings.missing == "wikipedia"
        if settings.knowledge or needs_source:
            source = open_knowledge_source(settings.knowledge, settings.missing, out)
        clients = [
            None if one is None else LLMClient(one) for one in (settings.llm, settings.decomposer)
        ]
        return cls(settings, source, *clients)

    @property
    def names(self) -> list[str]:
        """The verifiers' names in the verdicts table; the first one's score is *the* score."""
        return [one.name for one in self.verifiers]

    @property
    def signatures(self) -> dict[str, str]:
        """By verifier's name every setting that can change a verdict, or a group, on one line."""
        asked, settings = self.decomposer or self.llm, self.settings
        facts = settings.model_dump(include={"abstain", "missing"})
        facts["demos"], facts["retrieval"] = self.prompt.signature, self.retriever.signature
        facts["decomposer"] = asked.signature if asked else None
        source = self.knowledge and self.knowledge.db
        facts["knowledge"] = source.signature if source else None
        made = make_signature("facts", facts)
        if isinstance(settings, DFactScoreSettings):
            groups: dict[str, Any] = {"grouper": settings.grouper}
            if settings.grouper == "llm" and self.llm is not None:
                groups |= {"demos": sign_grouping_prompt(), "llm": self.llm.signature}
            made += "|" + make_signature("groups", groups)
        return {one.name: f"{one.signature}|{made}" for one in self.verifiers}

    @property
    def callers(self) -> list[tuple[str, Any]]:
        """Those who ask models, each once, with the name under which the run lists its calls."""
        named = [(one.name, one.evaluator) for one in self.verifiers]
        if self.citation_judge is not None:
            judge = self.citation_judge
            named.append((f"citations: {judge.name}", judge.evaluator))
        found: list[tuple[str, Any]] = [
            (name, part) for name, one in named for part, _ in walk_evaluator_members(one)
        ]
        found += [("decomposer", one) for one in (self.llm, self.decomposer) if one is not None]
        once: dict[int, tuple[str, Any]] = {}
        for name, caller in found:
            once.setdefault(id(caller), (name, caller))
        return list(once.values())

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
        n_without = sum(one.facts is None for one in responses)
        if n_without and (self.decomposer or self.llm) is None:
            raise UsageError(
                f"facts are missing in {n_without:,} of {format_count(len(responses), 'response')}:"
                " name a language model that finds them with --llm, or give the facts in the file"
            )


def open_knowledge_source(
    path: str | Path | None = None, missing: str = "skip", out: str | Path = "."
) -> TopicLookup:
    """A knowledge source with its policy. Pages in JSONL are built into one under ``out/.work``,
    once.

    Where none is named or found, and missing pages come from Wikipedia, all of them do.
    """
    work = Path(out) / ".work"
    wikipedia = WikipediaPageCache(work / "wikipedia.db") if missing == "wikipedia" else None
    try:
        source = find_knowledge_database(path)
    except FactauditError:
        if wikipedia is None:
            raise
        return TopicLookup(None, wikipedia)
    if source.name.endswith((".jsonl", ".jsonl.gz")) and source.is_file():
        stat = source.stat()
        version = hash_texts(str(source.absolute()), str(stat.st_size), str(stat.st_mtime_ns))
        made = work / f"knowledge-{version}.db"
        if not made.is_file():
            with RunFolder.open(out):
                build_knowledge_source(source, made)
        source = made
    return TopicLookup(DocDB(source), wikipedia)
