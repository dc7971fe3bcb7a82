"""What the calls of FActScore or D-FActScore will cost, as far as that is known before: nothing is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from factaudit.audit.sensitivity import BASE_VARIANT
from factaudit.engines.abstention import does_response_abstain
from factaudit.engines.conversations import read_conversations
from factaudit.engines.dfactscore.experiment import DFactScoreExperiment, DFactScoreSettings
from factaudit.engines.fact_decomposition import (
    DecompositionDemonstrations,
    split_response_sentences,
)
from factaudit.engines.factscore.experiment import (
    FactScoreExperiment,
    FactScoreSettings,
    build_factscore_variant_scorers,
)
from factaudit.engines.factscore.variant_cost import VariantCostForecast
from factaudit.engines.responses import Response, read_response_files, remove_response_citation_marks
from factaudit.llm.chat_types import ChatRequest
from factaudit.llm.cost import LLMCostBudget, estimate_llm_judging_cost, read_llm_price_table
from factaudit.llm.settings import LLMSettings
from factaudit.llm.transport_choice import find_server_of_cached_llm_replies
from factaudit.run_folder import RunSettings

_UNKNOWN_COST = "cost: what a fact's prompt holds is known only when facts are made and passages found; use max_cost"


@dataclass(frozen=True)
class _DecompositionCalls:
    """The calls that decompose texts, as `estimate_llm_judging_cost` asks an evaluator for them."""

    settings: LLMSettings
    demonstrations: DecompositionDemonstrations

    def __getattr__(self, name: str) -> Any:
        return getattr(self.settings, name)

    def cache_server(self) -> str:
        return find_server_of_cached_llm_replies(self.settings)

    def requests(self, texts: Iterable[str]) -> Iterator[ChatRequest]:
        for text in texts:
            for sentence in split_response_sentences(text):
                if not sentence.is_left_out:
                    request = self.demonstrations.make_request(sentence.text)
                    yield ChatRequest(request.messages, self.settings.request_params(request.params))


def estimate_scoring_cost(experiment: RunSettings, price_table_path: str | Path | None = None) -> list[dict[str, Any]]:
    """Rows of `factaudit.llm.cost.estimate_llm_judging_cost`: decomposing is known; of the verifiers only, where facts
    are given, how many facts they judge. An experiment that asks no language model has none.
    """
    if isinstance(experiment, FactScoreExperiment):
        if experiment.factscore.variants:
            return _estimate_variant_costs(experiment, price_table_path)
        block: FactScoreSettings | DFactScoreSettings = experiment.factscore
    elif isinstance(experiment, DFactScoreExperiment) and isinstance(experiment.dfactscore, DFactScoreSettings):
        block = experiment.dfactscore
    else:
        return []
    responses = [
        one for one in _read_responses_for_scoring_cost(block) if not does_response_abstain(one, block.abstain)
    ]
    rows = []
    texts = [one.output for one in responses if one.facts is None]
    if isinstance(block, DFactScoreSettings):
        texts = [remove_response_citation_marks(text) for text in texts]
    llm = block.decomposer or block.llm
    if texts and llm is not None and not isinstance(llm, str):
        shown = DecompositionDemonstrations.load(block.demos, block.decontextualize is True, block.prompts)
        calls = _DecompositionCalls(llm, shown)
        prices = None if price_table_path is None else read_llm_price_table(price_table_path)
        rows += estimate_llm_judging_cost({"decompose": calls}, texts, prices=prices)
    if block.llm is not None:
        n_facts = None if texts else sum(len(one.facts or ()) for one in responses)
        unknown = dict.fromkeys(("cached_calls", "prompt_tokens", "max_completion_tokens", "cost", "price_date"))
        asked = ["decontextualize"] if isinstance(block.decontextualize, str) else []
        asked += ["verify", *(["explain, at most"] if getattr(block, "explain_unsupported", False) else [])]
        for step in asked:
            row = {"evaluator": step, "model": block.llm.client_key()[0], "calls": n_facts, **unknown}
            rows.append({**row, "counted": "", "reason": _UNKNOWN_COST})
    return rows


def _estimate_variant_costs(
    experiment: FactScoreExperiment, price_table_path: str | Path | None
) -> list[dict[str, Any]]:
    """A row for the base and each variant, by a rehearsal; facts that nobody has made yet are those of the rules."""
    responses = _read_responses_for_scoring_cost(experiment.factscore)
    with TemporaryDirectory() as folder:
        scorer, scorers = build_factscore_variant_scorers(experiment, folder, lambda text: None)
        if price_table_path is not None:
            for one in (scorer, *scorers.values()):
                for _, client in one.counted_clients:
                    client.budget = LLMCostBudget(prices=read_llm_price_table(price_table_path))
        forecast = VariantCostForecast(scorer, scorers, responses)
        rows = forecast.foretell(base_name=BASE_VARIANT)
    counted = "approximately, by a rehearsal"
    reason = "facts by rules stand for those that are not made yet" if forecast.decompositions_are_open else ""
    return [
        {
            "evaluator": row["variant"],
            "model": row["model"],
            **{key: row[key] for key in ("calls", "cached_calls", "prompt_tokens")},
            "max_completion_tokens": row["completion_tokens"],
            "cost": row["cost"],
            "price_date": None,
            "counted": counted,
            "reason": reason if row["cost"] is not None else "no price is known",
        }
        for row in rows
    ]


def _read_responses_for_scoring_cost(block: FactScoreSettings | DFactScoreSettings) -> list[Response]:
    if isinstance(block, FactScoreSettings) and block.conversation:
        return read_conversations(list(map(Path, block.responses)), block.topic, block.system, block.limit)[0]
    paths = block.responses if isinstance(block, FactScoreSettings) else block.biographies
    return read_response_files(paths, facts=block.facts, system=block.system, limit=block.limit)
