"""How many calls will a scoring run make at most? Counted before any is made, as far as it can be known."""

from __future__ import annotations

from pathlib import Path

from factaudit.audit.core.result_rows import Row
from factaudit.engines.abstention import does_response_abstain
from factaudit.engines.conversations import read_conversations
from factaudit.engines.decompose import split_response_sentences
from factaudit.engines.factscore import NONPARAMETRIC, is_own_verifier
from factaudit.engines.responses import Response, read_response_files
from factaudit.engines.runs import DFactScoreExperiment, FactScoreExperiment
from factaudit.engines.settings import DFactScoreSettings, FactScoreSettings
from factaudit.engines.variants import list_score_variants
from factaudit.run_folder import RunSettings

_REASON = "the cost is not known before the facts are; max_cost limits it"
_UNKNOWN_NUMBER_REASON = f"one call for each fact and each page that it is put to; {_REASON}"


def count_scoring_calls(experiment: RunSettings) -> list[Row]:
    """A row per step that asks a language model: ``evaluator`` (the step), ``model``, ``calls`` (at most; None: not
    known before the facts are) and ``reason``; what a row of `factaudit.llm.cost.estimate_llm_judging_cost` has besides
    is None. Each variant is counted as if it asked everything anew."""
    block: FactScoreSettings | DFactScoreSettings | None = None
    if isinstance(experiment, FactScoreExperiment):
        block = experiment.factscore
    elif isinstance(experiment, DFactScoreExperiment) and isinstance(experiment.dfactscore, DFactScoreSettings):
        block = experiment.dfactscore
    if block is None or (block.llm is None and block.decomposer is None):
        return []
    responses = [one for one in _read_responses(block) if not does_response_abstain(one, block.abstain)]
    texts = [one.output for one in responses if one.facts is None]
    asking = [one for one in block.verifiers if is_own_verifier(one) and one != NONPARAMETRIC]
    calls: dict[str, int | None] = {}
    if texts:
        calls["decompose"] = sum(not one.is_left_out for text in texts for one in split_response_sentences(text))
    if isinstance(block, DFactScoreSettings) and "llm" in block.groupers:
        calls["group"] = 2 * len(responses)  # once more where the reply cannot be read
    if asking:
        n_pages = [1 if isinstance(block, FactScoreSettings) else len(one.candidates or ()) for one in responses]
        n_facts = sum(len(one.facts or ()) * n for one, n in zip(responses, n_pages, strict=True))
        calls["verify"] = None if texts or not all(n_pages) else n_facts * len(asking)
    n_runs = 1 + len(list_score_variants(block)) if isinstance(block, FactScoreSettings) else 1
    unknown = dict.fromkeys(("cached_calls", "prompt_tokens", "max_completion_tokens", "cost", "price_date"))
    rows = []
    for step, number in calls.items():
        llm = block.llm if step != "decompose" else block.decomposer or block.llm
        row = {"evaluator": step, "model": llm.client_key()[0] if llm else None, **unknown, "counted": ""}
        told = {"calls": None, "reason": _UNKNOWN_NUMBER_REASON}
        rows.append(row | (told if number is None else {"calls": number * n_runs, "reason": _REASON}))
    return rows


def _read_responses(block: FactScoreSettings | DFactScoreSettings) -> list[Response]:
    if isinstance(block, DFactScoreSettings):
        return read_response_files(block.biographies, facts=block.facts, system=block.system, limit=block.limit)
    if block.conversation:
        return read_conversations(list(map(Path, block.responses)), block.topic, block.system, block.limit)[0]
    return read_response_files(block.responses, facts=block.facts, system=block.system, limit=block.limit)
