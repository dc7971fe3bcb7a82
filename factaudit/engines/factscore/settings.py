"""What `factaudit score` and an experiment's ``factscore:`` block may say, and running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from factaudit.engines.conversations import read_conversations
from factaudit.engines.factscore.engine import FactScorer
from factaudit.engines.run import score_files
from factaudit.engines.settings import PACKAGES, EngineSettings, engine_options, load_block
from factaudit.engines.verify import NO_CONTEXT
from factaudit.errors import UsageError
from factaudit.results import Results
from factaudit.runfolder import RunSettings, write_lock


class ScoreSettings(EngineSettings):
    """Everything that `factaudit score` takes, by the names of its options; see `FactScorer` for what they mean.

    conversation: the files hold conversations, of which each turn of the assistant is scored
    (`factaudit.engines.conversations.read_conversations`). topic: of turns that have none; else the LLM is asked.
    """

    responses: list[str] = Field(min_length=1)
    conversation: bool = False
    topic: str | None = Field(default=None, pattern=r"\S")
    PATHS: ClassVar[tuple[str, ...]] = ("responses", *EngineSettings.PATHS)


class ScoreExperiment(RunSettings):
    """An experiment YAML with a ``factscore:`` block."""

    title: str = "FActScore"
    factscore: ScoreSettings


def load(path: str | Path, settings: Mapping[str, Any] | None = None) -> ScoreExperiment:
    """Read and check an experiment YAML; ``settings`` (``{"seed": 1, "factscore.k": 3}``) override its keys."""
    return load_block(ScoreExperiment, "factscore", path, settings)


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
    block = experiment.factscore
    responses = None
    if block.topic is not None and not block.conversation:
        raise UsageError("a topic for all goes with conversation: elsewhere each line names its own")
    if block.conversation:
        responses, notes = read_conversations(list(map(Path, block.responses)), block.topic, block.system, block.limit)
        for note in notes:
            say(note)
    knowledge = any(one != NO_CONTEXT for one in block.verifiers)
    results = score_files(
        block.responses,
        FactScorer(**engine_options(block, experiment, out, knowledge)),
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
    write_lock(Path(out), experiment, results, packages=PACKAGES)
    return results
