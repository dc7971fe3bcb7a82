"""How well can the words of a fact be copied from passages? (Min et al. 2023, §4.1, "NP")

Each word of "Fact: ..." is masked in turn; its hidden state looks for itself among the passages' hidden states, and the
probability is the share of attention that falls on the same token. The fact's is the mean over its words (NPM: Min et
al., "Nonparametric Masked Language Modeling", 2023).
"""

from __future__ import annotations

import string
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from factaudit.engines.passages import FactContext
from factaudit.errors import FactauditError, InputError, Problem, format_error_first_line
from factaudit.evaluators.base import Claim, Verdict
from factaudit.knowledge.docdb import KnowledgePage
from factaudit.knowledge.retrieval import PassageRetriever
from factaudit.signature import make_signature

_FACT_PREFIX = "Fact:"


@dataclass
class NonparametricModel:
    """A masked language model over the ``k`` passages that BM25 finds for a fact. Safe to use from several threads.

    Args:
        model: ``facebook/npm-single`` as published, or any masked LM of RoBERTa's kind (a name or a folder).
        threshold: a fact is supported where its probability is above this (strictly).
        stopwords: a file of token ids, one a line, that are not asked for, such as the original's
            ``roberta_stopwords.txt``; None: scikit-learn's English stop words, and tokens without a letter or digit.
        device: torch's; None means the GPU where there is one.
        contexts: the pages that claims are checked against, by their ids.
    """

    model: str = "facebook/npm-single"
    k: int = 3
    threshold: float = 0.3
    stopwords: str | Path | None = None
    revision: str | None = None
    device: str | None = None
    contexts: Mapping[str, FactContext] = field(default_factory=dict, repr=False)
    _retriever: PassageRetriever = field(init=False, repr=False)
    _loaded: tuple[Any, Any, frozenset[int]] | None = field(default=None, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        self._retriever = PassageRetriever(k=self.k)

    @property
    def signature(self) -> str:
        """Every setting that can change a probability, on one line."""
        settings = {"model": self.model, "k": self.k, "threshold": self.threshold, "revision": self.revision}
        return make_signature("npm", settings | {"stopwords": str(self.stopwords) if self.stopwords else None})

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """The verdicts of the probability alone."""
        for claim in claims:
            page = self.contexts[claim.claim_id].page
            found = self.compute_fact_probability(page, claim.topic or "", claim.claim)
            if found is None:
                reason = "the fact has no word to ask for, or the page none to ask"
                yield Verdict(claim.claim_id, status="skipped", raw=reason)
            else:
                yield Verdict(claim.claim_id, found, int(found > self.threshold))

    def compute_fact_probability(self, page: KnowledgePage, topic: str, fact: str) -> float | None:
        """The fact's mean probability in [0, 1]; None where it has no word to ask for, or the page has no token.

        Raises `FactauditError` without torch and transformers (extra ``[hf]``) or without the model.
        """
        passages = self._retriever.retrieve(page, topic, fact)
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load_masked_model()
            tokenizer, model, stopwords = self._loaded
            return _compute_nonparametric_probability(tokenizer, model, stopwords, passages, fact)

    def _load_masked_model(self) -> tuple[Any, Any, frozenset[int]]:
        try:
            import torch
            from transformers import AutoModelForMaskedLM, AutoTokenizer
        except ImportError as error:
            raise FactauditError("the nonparametric probability needs: pip install 'factaudit[hf]'") from error
        try:
            tokenizer = AutoTokenizer.from_pretrained(self.model, revision=self.revision or "main")
            model = AutoModelForMaskedLM.from_pretrained(self.model, revision=self.revision or "main")
        except (OSError, ValueError) as error:
            raise FactauditError(
                f"no masked language model at {self.model!r}: {format_error_first_line(error)}"
            ) from None
        if tokenizer.mask_token_id is None:
            raise FactauditError(f"{self.model!r} has no mask token: it is no masked language model")
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        return tokenizer, model.to(device).eval(), self._list_stopword_ids(tokenizer)

    def _list_stopword_ids(self, tokenizer: Any) -> frozenset[int]:
        if self.stopwords is not None:
            lines = Path(self.stopwords).read_text(encoding="utf-8").split()
            if not all(line.isdecimal() for line in lines):
                raise InputError(str(self.stopwords), [Problem("expected a token id a line")])
            return frozenset(map(int, lines))
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        ids = set(tokenizer.all_special_ids)
        for number in range(len(tokenizer)):
            word = tokenizer.decode([number]).strip(string.whitespace + string.punctuation).lower()
            if word in ENGLISH_STOP_WORDS or not any(character.isalnum() for character in word):
                ids.add(number)
        return frozenset(ids)


def _compute_nonparametric_probability(
    tokenizer: Any, model: Any, stopwords: frozenset[int], passages: list[str], fact: str
) -> float | None:
    # What the model takes at most; tokenizers without a limit of their own report an astronomic one.
    limit = min(tokenizer.model_max_length, model.config.max_position_embeddings - 2)
    prefix = tokenizer(_FACT_PREFIX, add_special_tokens=False)["input_ids"]
    whole = tokenizer(f"{_FACT_PREFIX} {fact}", truncation=True, max_length=limit)["input_ids"]
    special = set(tokenizer.all_special_ids)
    start = next(i for i, token in enumerate(whole) if token not in special)
    if whole[start : start + len(prefix)] == prefix:
        start += len(prefix)
    asked = [i for i in range(start, len(whole)) if whole[i] not in special and whole[i] not in stopwords]
    given = [tokenizer(passage, truncation=True, max_length=limit)["input_ids"] for passage in passages]
    tokens = np.array([token for one in given for token in one if token not in special])
    if not asked or not len(tokens):
        return None
    masked = [[*whole[:i], tokenizer.mask_token_id, *whole[i + 1 :]] for i in asked]
    keys = np.concatenate(
        [
            states[[token not in special for token in one]]
            for one, states in zip(given, _compute_nonparametric_hidden_states(model, tokenizer, given), strict=True)
        ]
    )
    queries = np.stack(
        [
            states[i]
            for i, states in zip(asked, _compute_nonparametric_hidden_states(model, tokenizer, masked), strict=True)
        ]
    )
    scores = queries @ keys.T / np.sqrt(keys.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    same = tokens[None, :] == np.array([whole[i] for i in asked])[:, None]
    return float((weights * same).sum(axis=1).mean())


def _compute_nonparametric_hidden_states(model: Any, tokenizer: Any, sequences: list[list[int]]) -> list[np.ndarray]:
    """The last hidden states of each sequence, (length, width) float64 each; 16 sequences at a time."""
    import torch

    pad = tokenizer.pad_token_id or 0
    found: list[np.ndarray] = []
    for start in range(0, len(sequences), 16):
        batch = sequences[start : start + 16]
        width = max(map(len, batch))
        ids = torch.tensor([[*one, *[pad] * (width - len(one))] for one in batch], device=model.device)
        mask = torch.tensor([[1] * len(one) + [0] * (width - len(one)) for one in batch], device=model.device)
        with torch.no_grad():
            states = model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states[-1]
        found += [state[: len(one)].double().cpu().numpy() for state, one in zip(states, batch, strict=True)]
    return found
