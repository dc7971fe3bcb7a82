"""Which options do FActScore and D-FActScore have? Python, the command line and an experiment's YAML say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from factaudit.arrays.response_means import DEFAULT_GAMMA
from factaudit.arrays.support_matrix import NARROW_MARGIN
from factaudit.engines.candidates import MAX_CANDIDATES
from factaudit.engines.decompose import MAX_FACTS
from factaudit.engines.reply_facts import MIN_FACT_CHARACTERS


def wrap_in_list(value: Any) -> Any:
    """What stands alone as a list of one."""
    return [value] if isinstance(value, str | dict) else value


class FactScoreOptions(BaseModel):
    """The options of both scores.

    demos: a file of demonstrations in place of our own. prompts: ``original``; for small models ``short`` or ``json``
    (`factaudit.engines.decompose.DecompositionPrompt`). decontextualize: ask, in the decomposing prompt, for facts
    whose subjects are no pronouns, as MF does. parser: ``strict`` or ``original``
    (`factaudit.engines.factscore.parse_verification_reply`). logprobs: ask the server for token probabilities, which
    become scores. abstain: `factaudit.engines.abstention.is_abstaining_response`. gamma: the length penalty's; 0 turns
    it off. irrelevant: facts labelled IR: ``exclude`` (no label) or ``unsupported`` (label 0). dataset: the claims'.
    """

    model_config = ConfigDict(extra="forbid")

    demos: str | Path | None = None
    prompts: Literal["original", "short", "json"] = "original"
    decontextualize: bool = False
    parser: Literal["strict", "original"] = "strict"
    logprobs: bool = True
    abstain: Literal["declines", "original", "perplexity_ai", "none"] = "declines"
    gamma: float = Field(default=DEFAULT_GAMMA, ge=0)
    max_facts: int = Field(default=MAX_FACTS, ge=1)
    min_characters: int = Field(default=MIN_FACT_CHARACTERS, ge=0)
    irrelevant: Literal["exclude", "unsupported"] = "exclude"
    dataset: str = "factscore"


class DFactScoreOptions(FactScoreOptions):
    """Those of D-FActScore besides.

    groupers: who groups the facts (`factaudit.engines.grouping.GROUPERS`). The first one's groups are scored; the
    others are compared with it, at no further call but their own. group_demos: a file of demonstrations for grouping,
    in place of our own. max_candidates: how many pages of a name are put to the verifiers, at a call a fact each, where
    the biography brings no candidates. rule: how groups are linked to entities
    (`factaudit.arrays.support_matrix.LINKING_RULES`); the other rules stand beside it. narrow: a link whose
    margin is at most this is flagged.
    """

    groupers: Annotated[
        list[Literal["llm", "given", "one-group"]], BeforeValidator(wrap_in_list), Field(min_length=1)
    ] = ["llm"]
    group_demos: str | Path | None = None
    max_candidates: int = Field(default=MAX_CANDIDATES, ge=1)
    rule: Literal["argmax", "hungarian", "given"] = "argmax"
    narrow: float = Field(default=NARROW_MARGIN, ge=0, le=1)
    dataset: str = "biographies"
