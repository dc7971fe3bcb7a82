"""How well can the words of a claim be copied from its document? (Min et al. 2023, §4.1, "NP")

Each word of "Fact: ..." is masked in turn; its hidden state looks for itself among the passages'
hidden states, and the probability is the share of attention that falls on the same token. The
claim's is the mean over its words (NPM: Min et al., "Nonparametric Masked Language Modeling",
2023).
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from factaudit.errors import InputError, Problem
from factaudit.evaluators.base import WEIGHTS_NOT_RUN, Claim, Verdict, evaluator
from factaudit.evaluators.transformers_models import (
    TransformersEvaluator,
    TransformersModel,
    load_transformers_model,
)
from factaudit.settings.yaml_paths import NameOrPath

_FACT_PREFIX = "Fact:"


@evaluator(
    "npm",
    needs="the [hf] extra",
    source="Min et al. 2023, FActScore §4.1, NP",
    checked=f"a plain loop over single words and passages, on a tiny model. {WEIGHTS_NOT_RUN}",
    example="npm:model=facebook/npm-single",
)
@dataclass
class NonparametricEvaluator(TransformersEvaluator):
    """The nonparametric masked language model of FActScore: the probability of a claim's words by
    its document.

    Args:
        model: ``facebook/npm-single`` as published, or any masked LM of RoBERTa's kind (a name or a
        folder).
        k: passages that are read: parts of the document between blank lines, of which FActScore's
            begin with the nearest.
        cutoff: a claim is supported where its probability is above this.
        stopwords: a file of token ids, one a line, that are not asked for, such as the original's
            ``roberta_stopwords.txt``; by default scikit-learn's English stop words, and tokens
            without a letter or digit.
    """

    model: NameOrPath = "facebook/npm-single"
    k: int = 3
    cutoff: float = 0.3
    stopwords: Path | None = None

    def load(self) -> TransformersModel:
        """See `TransformersEvaluator.load`."""
        return load_transformers_model(
            self.model, self.revision, self.device, "AutoModelForMaskedLM"
        )

    @cached_property
    def stopword_ids(self) -> set[int]:
        """The tokens that are not asked for."""
        if self.stopwords is not None:
            lines = Path(self.stopwords).read_text(encoding="utf-8").split()
            if not all(line.isdecimal() for line in lines):
                raise InputError(str(self.stopwords), [Problem("expected a token id a line")])
            return set(map(int, lines))
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        tokenizer = self.loaded.tokenizer
        words = [tokenizer.decode([number]) for number in range(len(tokenizer))]
        plain = [word.strip(string.whitespace + string.punctuation).lower() for word in words]
        is_word = [word not in ENGLISH_STOP_WORDS and any(map(str.isalnum, word)) for word in plain]
        return {number for number, one in enumerate(is_word) if not one}

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """One verdict per claim, in order."""
        for claim in claims:
            probability = self.compute_probability(
                claim.claim, (claim.doc or "").split("\n\n")[: self.k]
            )
            if probability is None:
                reason = "the claim has no word to ask for, or its document none to ask"
                yield Verdict(claim.claim_id, status="skipped", raw=reason)
            else:
                yield Verdict(claim.claim_id, probability, int(probability > self.cutoff))

    def compute_probability(self, claim: str, passages: Sequence[str]) -> float | None:
        """The claim's mean probability in [0, 1]; None where it has no word to ask for, or the
        passages no token."""
        from scipy.special import softmax

        tokenizer = self.loaded.tokenizer
        # Tokenizers without a limit of their own report an astronomic one.
        limit = min(tokenizer.model_max_length, self.loaded.max_positions or 512)
        special = tokenizer.all_special_ids

        def encode(text: str) -> np.ndarray:
            return np.array(tokenizer(text, truncation=True, max_length=limit)["input_ids"])

        given = list(map(encode, passages))
        tokens = np.concatenate(given)
        is_text = ~np.isin(tokens, special)
        whole = encode(f"{_FACT_PREFIX} {claim}")
        is_asked = ~np.isin(whole, [*special, *self.stopword_ids])
        # The prefix is no part of the claim; the first token may be a special one.
        n_prefix = len(tokenizer(_FACT_PREFIX, add_special_tokens=False)["input_ids"])
        is_asked[: int(np.isin(whole, special).argmin()) + n_prefix] = False
        asked = np.flatnonzero(is_asked)
        if not len(asked) or not is_text.any():
            return None
        keys = np.concatenate(self._compute_states(given))[is_text]
        masked = np.tile(whole, (len(asked), 1))
        masked[np.arange(len(asked)), asked] = tokenizer.mask_token_id
        states = self._compute_states(list(masked))
        queries = np.stack([own[at] for at, own in zip(asked, states, strict=True)])
        weights = softmax(queries @ keys.T / np.sqrt(queries.shape[1]), axis=1)
        return float((weights * (tokens[is_text] == whole[asked][:, None])).sum(axis=1).mean())

    def _compute_states(self, sequences: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The last hidden states of each sequence, (length, width) float64 each."""
        found: list[np.ndarray] = []
        for start in range(0, len(sequences), self.batch_size):
            batch = sequences[start : start + self.batch_size]
            inputs = [{"input_ids": one.tolist()} for one in batch]
            states = self.loaded.run(inputs, output_hidden_states=True).hidden_states[-1]
            arrays = states.double().cpu().numpy()
            found += [own[: len(one)] for own, one in zip(arrays, batch, strict=True)]
        return found
