"""What `factaudit score` and an experiment's ``factscore:`` block may say, and running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from factaudit.engines.conversations import read_conversations
from factaudit.engines.engine_settings import (
    LOCKED_PACKAGES,
    EngineSettings,
    build_engine_arguments_from_yaml,
    load_engine_experiment,
)
from factaudit.engines.fact_verification import NO_CONTEXT
from factaudit.engines.factscore.engine import FactScorer
from factaudit.engines.scoring_run import score_response_files
from factaudit.errors import UsageError
from factaudit.results import Results
from factaudit.run_folder import RunSettings, write_run_lock_file


class FactScoreSettings(EngineSettings):
    """Everything that `factaudit score` takes, by the names of its options; see `FactScorer` for what they mean.

    conversation: the files hold conversations, of which each turn of the assistant is scored
    (`factaudit.engines.conversations.read_conversations`). topic: of turns that have none; else the LLM is asked.
    """

    responses: list[str] = Field(min_length=1)
    conversation: bool = False
    topic: str | None = Field(default=None, pattern=r"\S")
    PATHS: ClassVar[tuple[str, ...]] = ("responses", *EngineSettings.PATHS)


class FactScoreExperiment(RunSettings):
    """An experiment YAML with a ``factscore:`` block."""

    title: str = "FActScore"
    factscore: FactScoreSettings


def load_factscore_experiment(path: str | Path, settings: Mapping[str, Any] | None = None) -> FactScoreExperiment:
    """Read and check an experiment YAML; ``settings`` (``{"seed": 1, "factscore.k": 3}``) override its keys."""
    return load_engine_experiment(FactScoreExperiment, "factscore", path, settings)


def run_factscore_experiment(
    experiment: str | Path | FactScoreExperiment,
    out: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Results:
    """Run a FActScore experiment (a YAML's path, or one with absolute paths) and write its run folder."""
    if not isinstance(experiment, FactScoreExperiment):
        experiment = load_factscore_experiment(experiment, settings)
    block = experiment.factscore
    responses = None
    if block.topic is not None and not block.conversation:
        raise UsageError("a topic for all goes with conversation: elsewhere each line names its own")
    if block.conversation:
        responses, notes = read_conversations(list(map(Path, block.responses)), block.topic, block.system, block.limit)
        for note in notes:
            say(note)
    knowledge = any(one != NO_CONTEXT for one in block.verifiers)
    results = score_response_files(
        block.responses,
        FactScorer(**build_engine_arguments_from_yaml(block, experiment, out, knowledge, say)),
        out,
        facts=block.facts,
        system=block.system,
        limit=block.limit,
        title=experiment.title,
        audits=experiment.audits,
        max_cost=experiment.max_cost,
        responses=responses,
        progress=progress,
        say=say,
    )
    write_run_lock_file(Path(out), experiment, results, packages=LOCKED_PACKAGES)
    return results
