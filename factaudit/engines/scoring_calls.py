"""How many calls will a scoring run make at most? Counted before any is made, as far as it can be known."""

from __future__ import annotations

from pathlib import Path

from factaudit.audit.core.result_rows import Row
from factaudit.engines.abstention import does_response_abstain
from factaudit.engines.conversations import read_conversations
from factaudit.engines.decompose import split_response_sentences
from factaudit.engines.factscore import NONPARAMETRIC, is_own_verifier
from factaudit.engines.responses import Response, read_response_files
from factaudit.engines.settings import DFactScoreSettings, FactScoreSettings
from factaudit.engines.variants import list_score_variants
from factaudit.experiment.folder import RunSettings

_REASON = "the cost is not known before the facts are; max_cost limits it"


def count_scoring_calls(experiment: RunSettings) -> list[Row]:
    """A row per step that asks a language model: ``evaluator`` (the step), ``model``, ``calls`` (at most; None: not
    known before the facts are) and ``reason``; what a row of `factaudit.llm.cost.estimate_llm_judging_cost` has besides
    is None. Each variant is counted as if it asked everything anew."""
    block = getattr(experiment, "factscore", None) or getattr(experiment, "dfactscore", None)
    if not isinstance(block, FactScoreSettings | DFactScoreSettings) or not (block.llm or block.decomposer):
        return []
    responses = [one for one in _read_responses(block) if not does_response_abstain(one, block.abstain)]
    texts = [one.output for one in responses if one.facts is None]
    n_asking = sum(is_own_verifier(one) and one != NONPARAMETRIC for one in block.verifiers)
    n_runs = 1 + len(list_score_variants(block)) if isinstance(block, FactScoreSettings) else 1
    calls: dict[str, int | None] = {}
    if texts:
        calls["decompose"] = n_runs * sum(
            not one.is_left_out for text in texts for one in split_response_sentences(text)
        )
    if isinstance(block, DFactScoreSettings) and "llm" in block.groupers:
        calls["group"] = 2 * len(responses)  # once more where the reply cannot be read
    if n_asking:
        pages = [1 if isinstance(block, FactScoreSettings) else len(one.candidates or ()) for one in responses]
        facts = sum(len(one.facts or ()) * n for one, n in zip(responses, pages, strict=True))
        calls["verify"] = None if texts or not all(pages) else n_runs * facts * n_asking
    unknown = dict.fromkeys(("cached_calls", "prompt_tokens", "max_completion_tokens", "cost"))
    rows = []
    for step, number in calls.items():
        llm = block.llm if step != "decompose" else block.decomposer or block.llm
        row: Row = {"evaluator": step, "model": llm.client_key()[0] if llm else None, **unknown}
        why = f"one call for each fact and each page that it is put to; {_REASON}" if number is None else _REASON
        rows.append(row | {"calls": number, "reason": why})
    return rows


def _read_responses(block: FactScoreSettings | DFactScoreSettings) -> list[Response]:
    if isinstance(block, FactScoreSettings) and block.conversation:
        return read_conversations(list(map(Path, block.responses)), block.topic, block.system, block.limit)[0]
    paths = block.responses if isinstance(block, FactScoreSettings) else block.biographies
    return read_response_files(paths, **block.model_dump(include={"facts", "system", "limit"}))
