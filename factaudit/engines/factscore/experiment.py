"""Which settings do `factaudit score` and the block ``factscore:`` have, and how are they run?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, model_validator

from factaudit.engines.conversations import read_conversations
from factaudit.engines.engine_settings import (
    EngineSettings,
    build_engine_arguments_from_yaml,
    load_engine_experiment,
)
from factaudit.engines.fact_verification import NO_CONTEXT
from factaudit.engines.factscore.engine import FactScorer
from factaudit.engines.factscore.score_variants import list_score_variants, make_variant_scoring
from factaudit.engines.scoring_run import score_response_files
from factaudit.errors import UsageError
from factaudit.results import Results
from factaudit.run_folder import RunSettings
from factaudit.yaml_file import YamlFile


class FactScoreSettings(EngineSettings):
    """Everything that `factaudit score` takes, by the names of its options; see `FactScorer` for what they mean.

    conversation: the files hold conversations, of which each turn of the assistant is scored
    (`factaudit.engines.conversations.read_conversations`). topic: of turns that have none; else the LLM is asked.
    variants: settings with the values that each is varied to, one at a time (``{k: [1, 3], parser: [original]}``).
    """

    responses: list[str] = Field(min_length=1)
    conversation: bool = False
    topic: str | None = Field(default=None, pattern=r"\S")
    variants: dict[str, list[Any]] = Field(default_factory=dict)
    PATHS: ClassVar[tuple[str, ...]] = ("responses", *EngineSettings.PATHS)

    @model_validator(mode="after")
    def _check_variants(self) -> FactScoreSettings:
        try:
            list_score_variants(self)
        except UsageError as error:
            raise ValueError(str(error)) from None
        if self.variants and self.conversation and self.topic is None:
            raise ValueError("variants: of conversations, expected a topic for all")
        return self


class FactScoreExperiment(RunSettings):
    """An experiment YAML with a ``factscore:`` block."""

    title: str = "FActScore"
    factscore: FactScoreSettings

    def run_into(self, out: Path, *, progress: bool, overwrite: bool, say: Callable[[str], None]) -> Results:
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
        scorer, scorers = build_factscore_variant_scorers(self, out, say)
        varied: dict[str, Any] = {}
        if scorers:
            varied["extend_results"] = make_variant_scoring(scorer, scorers, say, progress)
            varied["callers"] = [
                (f"{name}: {caller}", client) for name, one in scorers.items() for caller, client in one.counted_clients
            ]
        return score_response_files(
            block.responses,
            scorer,
            out,
            **block.model_dump(include={"facts", "system", "limit"}),
            **self.model_dump(include={"title", "audits", "max_cost"}),
            responses=responses,
            experiment=self,
            overwrite=overwrite,
            progress=progress,
            say=say,
            **varied,
        )


def load_experiment(file: YamlFile) -> FactScoreExperiment:
    """Check an experiment YAML; `factaudit.experiment.read_experiment` reads it."""
    return load_engine_experiment(FactScoreExperiment, "factscore", file)


def build_factscore_variant_scorers(
    experiment: FactScoreExperiment, out: str | Path, say: Callable[[str], None]
) -> tuple[FactScorer, dict[str, FactScorer]]:
    """The engine of an experiment, and those of its variants by name; side files go under ``out``."""

    def make_scorer(block: FactScoreSettings, tell: Callable[[str], None]) -> FactScorer:
        needs_knowledge = any(one != NO_CONTEXT for one in block.verifiers)
        return FactScorer(**build_engine_arguments_from_yaml(block, experiment, out, needs_knowledge, tell))

    block = experiment.factscore
    first = make_scorer(block, say)
    varied = {name: make_scorer(one, lambda text: None) for name, one in list_score_variants(block).items()}
    for scorer in (first, *varied.values()) if varied else ():
        if any(one and getattr(one, "cache", None) is None for one in (scorer.llm, scorer.decomposer)):
            raise UsageError("variants share what they ask through the cache of replies: leave llm.cache as it is")
    return first, varied
