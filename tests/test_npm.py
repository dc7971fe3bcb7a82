"""The nonparametric probability on a tiny masked language model, against the definition written out."""

from __future__ import annotations

import math
import operator
import random
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiny_models

from factaudit.engines.factscore import FactScorer
from factaudit.engines.nonparametric import NonparametricModel
from factaudit.engines.responses import AtomicFact, Response
from factaudit.knowledge.docdb import KnowledgePage
from factaudit.knowledge.topic_lookup import TopicLookup

pytestmark = pytest.mark.hf


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.masked_lm(tmp_path_factory.mktemp("npm"))


@pytest.fixture(scope="module")
def page() -> KnowledgePage:
    rng = random.Random(2)
    return KnowledgePage("The mill", tuple(" ".join(rng.choices(tiny_models.WORDS, k=30)) for _ in range(6)))


class Pages(TopicLookup):
    """A knowledge source of one page."""

    def __init__(self, page: KnowledgePage) -> None:
        super().__init__(SimpleNamespace(find=lambda topic: page, signature="one page", is_empty=False))


def by_hand(folder: Path, passages: list[str], fact: str, skipped: frozenset[int]) -> float:
    """One masked word and one passage at a time, in plain Python."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()

    def states(ids: list[int]) -> list[list[float]]:
        with torch.no_grad():
            return model(torch.tensor([ids]), output_hidden_states=True).hidden_states[-1][0].tolist()

    memory = []
    for passage in passages:
        ids = tokenizer(passage)["input_ids"]
        memory += list(zip(ids, states(ids), strict=True))[1:-1]
    whole = tokenizer(f"Fact: {fact}")["input_ids"]
    first = len(tokenizer("Fact:", add_special_tokens=False)["input_ids"]) + 1
    probabilities = []
    for position in range(first, len(whole) - 1):
        if whole[position] in skipped:
            continue
        query = states([*whole[:position], tokenizer.mask_token_id, *whole[position + 1 :]])[position]
        weights = [math.exp(sum(map(operator.mul, query, key)) / math.sqrt(len(key))) for _, key in memory]
        same = [w for w, (token, _) in zip(weights, memory, strict=True) if token == whole[position]]
        probabilities.append(sum(same) / sum(weights))
    return sum(probabilities) / len(probabilities)


def test_the_probability_is_the_mean_share_of_the_word_itself(folder, page):
    npm = NonparametricModel(str(folder))
    passages = npm._retriever.retrieve(page, "The mill", "the river took the bridge away")
    assert len(passages) == npm.k == 3
    found = npm.compute_fact_probability(page, "The mill", "the river took the bridge away")
    assert npm._loaded is not None
    assert found == pytest.approx(by_hand(folder, passages, "the river took the bridge away", npm._loaded[2]), abs=1e-6)
    assert 0 < found < 1


def test_stop_words_of_a_file_are_not_asked_for(folder, page, tmp_path):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(" river", add_special_tokens=False)["input_ids"]
    (tmp_path / "stop.txt").write_text("\n".join(map(str, ids)), encoding="utf-8")
    npm = NonparametricModel(str(folder), stopwords=tmp_path / "stop.txt")
    fact = "three sons of the river"
    passages = npm._retriever.retrieve(page, "The mill", fact)
    found = npm.compute_fact_probability(page, "The mill", fact)
    assert found == pytest.approx(by_hand(folder, passages, fact, frozenset(ids)), abs=1e-6)
    assert found != pytest.approx(
        NonparametricModel(str(folder)).compute_fact_probability(page, "The mill", fact), abs=1e-6
    )


def test_a_fact_without_a_word_to_ask_for_has_none(folder, page):
    assert NonparametricModel(str(folder)).compute_fact_probability(page, "The mill", "it was the . , !") is None


def test_it_verifies_alone_without_an_llm(folder, page):
    npm = NonparametricModel(str(folder), threshold=0.1)
    fact = "the river took the bridge away"
    scorer = FactScorer(verifiers=["npm", "always-no"], npm=npm, knowledge=Pages(page))
    scored = scorer.score_responses([Response("r", "The mill", fact, "s", facts=(AtomicFact(fact),))])
    (row,) = scored.verdicts[scored.verdicts["evaluator"] == "npm"].to_dict("records")
    probability = npm.compute_fact_probability(page, "The mill", fact)
    assert (row["score"], row["prediction"], row["status"]) == (probability, int(probability > 0.1), "ok")
    assert scorer.signatures["npm"].startswith(npm.signature)
