"""What scoring variants will cost, from a rehearsal: the pipeline runs, and nothing is sent.

What the cache has is answered by it. In place of every other reply stands what the base was told of the same sentence
or fact, so that prompts are those that will be sent; facts of a decomposition that is still open are counted as new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from factaudit.audit.core.result_rows import Row
from factaudit.engines.decontextualization import REWRITING_PROMPT_END
from factaudit.engines.fact_tables import build_fact_claims_table
from factaudit.engines.fact_verification import NO_CONTEXT, RETRIEVAL, FactVerifierSet, is_builtin_verifier
from factaudit.engines.factscore.engine import FactScorer
from factaudit.engines.reply_facts import parse_reply_facts
from factaudit.engines.responses import Response
from factaudit.engines.rule_decomposer import RuleDecomposer
from factaudit.engines.unsupported_facts import EXPLANATION_PROMPT_END
from factaudit.errors import UsageError
from factaudit.evaluators.judging_cost import estimate_evaluator_costs
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.cost import BATCH_DISCOUNT, approximate_token_count, count_prompt_tokens
from factaudit.text.clauses import split_sentence_into_statements

#: Before any verdict is known a reply is as long as this, in tokens: "True", or a short sentence.
_UNKNOWN_VERDICT_TOKENS = 4
#: What prompts ask for; the first two make the facts that the others are about.
_DECOMPOSITION, _REWRITING, _VERDICT, _EXPLANATION = PROMPT_KINDS = ("decompose", "rewrite", "verify", "explain")


@dataclass
class BaseVariantReplies:
    """What the base's replies say of others: by prompt, what stands for a reply; by kind, how tokens are counted.

    counted, reported, completion, n: by kind of prompt (`PROMPT_KINDS`) the tokens of prompts by our count and by
    the server's, those of replies, and the number of both. sent: keys of requests that are counted already.
    """

    replies: dict[tuple[str, str], ChatReply] = field(default_factory=dict)
    counted: Counter[str] = field(default_factory=Counter)
    reported: Counter[str] = field(default_factory=Counter)
    completion: Counter[str] = field(default_factory=Counter)
    n: Counter[str] = field(default_factory=Counter)
    sent: set[bytes] = field(default_factory=set)
    open_facts: set[str] = field(default_factory=set)

    def remember(self, kind: str, subject: str, counted_tokens: int, reply: ChatReply) -> None:
        """Learn from a reply that is known."""
        self.replies.setdefault((kind, subject), reply)
        self.counted[kind] += counted_tokens
        self.reported[kind] += reply.prompt_tokens
        self.completion[kind] += reply.completion_tokens
        self.n[kind] += 1

    def make_stand_in(self, kind: str, subject: str) -> ChatReply:
        """What stands for a reply that is not known: of a verdict "False", after which most is asked."""
        reply = self.replies.get((kind, subject))
        if reply is None and kind in (_DECOMPOSITION, _REWRITING):
            made = split_sentence_into_statements(subject) if kind == _DECOMPOSITION else [subject]
            text = "\n".join(f"- {one}" for one in made)
            reply = ChatReply("ok", text, "stop", completion_tokens=approximate_token_count(text))
        elif reply is None:
            mean = self.completion[kind] / self.n[kind] if self.n[kind] else _UNKNOWN_VERDICT_TOKENS
            reply = ChatReply("ok", "False", "stop", completion_tokens=round(mean))
        return reply

    def prompt_tokens(self, kind: str, counted_tokens: int) -> float:
        """The tokens of a prompt as the server counts, of those that we count: in prompts of its kind, else of all."""
        reported, counted = self.reported[kind] or self.reported.total(), self.counted[kind] or self.counted.total()
        return counted_tokens * (reported / counted if reported else 1.0)


def parse_factscore_prompt_kind_and_subject(prompt: str) -> tuple[str, str]:
    """What a prompt asks for (`PROMPT_KINDS`), and the sentence or the fact that it asks about."""
    if prompt.endswith("\n"):
        return _DECOMPOSITION, prompt.rstrip("\n").rpartition("\n")[2].partition(": ")[2]
    if prompt.endswith(REWRITING_PROMPT_END):
        return _REWRITING, prompt.removesuffix(REWRITING_PROMPT_END).rpartition("Statement: ")[2]
    if prompt.endswith(EXPLANATION_PROMPT_END):
        return _EXPLANATION, prompt.removesuffix(EXPLANATION_PROMPT_END).rpartition("Input: ")[2]
    return _VERDICT, prompt.rpartition("Input: ")[2].partition(" True or False?")[0].strip()


class CostRehearsalClient:
    """Stands where a client of a language model stands: sends nothing, and adds up what would be sent.

    asks_decompositions: prompts that decompose are put to the model all the same.
    """

    gathers = False

    def __init__(self, client: LLMClient, known: BaseVariantReplies, asks_decompositions: bool) -> None:
        self.client, self.known, self.asks_decompositions = client, known, asks_decompositions
        self.model, self.signature = client.model, client.signature
        self.calls = self.cached_calls = 0
        self.prompt_tokens = self.completion_tokens = 0.0
        self.has_open_decompositions = False
        self.open_sent: set[bytes] = set()  # of open facts, which are new for each variant

    async def __aenter__(self) -> CostRehearsalClient:
        await self.client.__aenter__()
        return self

    async def __aexit__(self, *details: object) -> None:
        await self.client.__aexit__(*details)

    async def ask(self, request: ChatRequest) -> ChatReply:
        """The cached reply, or what stands for it."""
        known, cache = self.known, self.client.cache
        kind, subject = parse_factscore_prompt_kind_and_subject(request.messages[-1]["content"])
        key, counted = self.client.request_key(request), count_prompt_tokens(request)
        makes_facts = kind in (_DECOMPOSITION, _REWRITING)
        is_open = not makes_facts and subject in known.open_facts
        if not is_open and cache is not None and (reply := cache.get(key)) is not None:
            known.remember(kind, subject, counted, reply)
            self.cached_calls += 1
            return reply
        reply = known.make_stand_in(kind, subject)
        sent = self.open_sent if is_open else known.sent
        is_new = key not in sent
        sent.add(key)
        self.calls += is_new
        self.cached_calls += not is_new
        prompt_tokens, completion_tokens = known.prompt_tokens(kind, counted), reply.completion_tokens
        if makes_facts and self.asks_decompositions:
            reply = await self.client.ask(request)
            prompt_tokens = reply.prompt_tokens or prompt_tokens
            completion_tokens = reply.completion_tokens or completion_tokens
        if is_new:
            self.prompt_tokens += prompt_tokens
            self.completion_tokens += completion_tokens
        if makes_facts and not self.asks_decompositions:
            known.open_facts.update(parse_reply_facts(reply.text).facts)
            self.has_open_decompositions = True
        return reply

    def compute_cost(self) -> float | None:
        """US dollars of what was counted; None where no price is known."""
        price = self.client.model_price()
        discount = BATCH_DISCOUNT if self.client.settings.batch else 1.0
        return None if price is None else discount * price.cost(self.prompt_tokens, self.completion_tokens)


@dataclass
class VariantCostForecast:
    """Foretells what scoring variants costs, once the base is scored (before, facts by rules stand for its own).

    decompositions_are_open: whether facts of some variant are not known yet, so that their number is as the base's.
    """

    base: FactScorer
    variants: Mapping[str, FactScorer]
    responses: Sequence[Response]
    decompositions_are_open: bool = False

    def foretell(self, decomposing: bool = False, base_name: str | None = None) -> list[Row]:
        """A row per variant: variant, model, calls, cached_calls, prompt_tokens, completion_tokens, cost (None: a price
        is not known). Their sums are what is sent: what two variants ask alike is counted in the first.

        decomposing: put to the model what decomposes, which is paid; the number of verdicts is then known.
        base_name: the name of a row for the base, which comes first.
        """
        known = BaseVariantReplies()
        self.decompositions_are_open = False
        first = self._rehearse(self.base, known, decomposing=False)
        if base_name is None:
            known.sent.clear()
            self.decompositions_are_open = False
        rows = [{"variant": base_name, **first}] if base_name is not None else []
        return rows + [
            {"variant": name, **self._rehearse(one, known, decomposing)} for name, one in self.variants.items()
        ]

    def _rehearse(self, scorer: FactScorer, known: BaseVariantReplies, decomposing: bool) -> Row:
        known.open_facts.clear()
        clients = {id(one): CostRehearsalClient(one, known, decomposing) for one in list_rehearsed_clients(scorer)}
        specs: Sequence[Any] = scorer.verifiers  # type: ignore[assignment]
        asking = [one for one in specs if is_builtin_verifier(one) and one in (RETRIEVAL, "llm", NO_CONTEXT)]
        rehearsed = replace(
            scorer,
            llm=clients.get(id(scorer.llm)),
            decomposer=clients.get(id(scorer.decomposer), scorer.decomposer),
            verifiers=asking or ["unigram"],
            npm=None,
        )
        records = rehearsed.make_records(self.responses)
        self.decompositions_are_open |= any(one.has_open_decompositions for one in clients.values())
        row: Row = {"model": ", ".join(dict.fromkeys(one.model for one in clients.values())), "calls": 0}
        row |= {"cached_calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost": 0.0}
        for one in clients.values():
            _add_forecast_call_counts(row, one.calls, one.cached_calls, one.prompt_tokens, one.completion_tokens)
            row["cost"] = _add_costs(row["cost"], one.compute_cost())
        judges = FactVerifierSet(specs, scorer.llm, npm=scorer.npm).evaluators
        if judges:
            claims = build_fact_claims_table(self.responses, records, scorer.dataset)
            readable = claims[claims["claim"].notna() & claims["doc"].notna()]
            for told in estimate_evaluator_costs(judges.values(), readable):
                most = told["max_completion_tokens"] or 0
                _add_forecast_call_counts(row, told["calls"], told["cached_calls"], told["prompt_tokens"], most)
                row["cost"] = _add_costs(row["cost"], told["cost"])
        return row | {key: round(row[key]) for key in ("prompt_tokens", "completion_tokens")}


def check_variants_share_replies(scorer: FactScorer) -> None:
    """Raise `UsageError` where variants would pay twice for what they share."""
    for llm in list_rehearsed_clients(scorer):
        if not isinstance(llm, LLMClient) or llm.cache is None:
            raise UsageError("variants share what they ask through the cache of replies: leave llm.cache as it is")


def list_rehearsed_clients(scorer: FactScorer) -> list[Any]:
    """The models that decompose and verify, each once; rules are none."""
    found = {id(one): one for one in (scorer.llm, scorer.decomposer) if not isinstance(one, RuleDecomposer)}
    return [one for one in found.values() if one is not None]


def _add_forecast_call_counts(
    row: Row, calls: int, cached_calls: int, prompt_tokens: float, completion_tokens: float
) -> None:
    told = {"calls": calls, "cached_calls": cached_calls}
    for key, number in (told | {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}).items():
        row[key] += number


def _add_costs(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
