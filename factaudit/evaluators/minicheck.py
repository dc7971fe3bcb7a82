"""Does a document support a claim, by the MiniCheck models (Tang et al. 2024)?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pydantic import PositiveInt

from factaudit.errors import FactauditError
from factaudit.evaluators.base import WEIGHTS_NOT_RUN, Claim, evaluator
from factaudit.evaluators.transformers_models import (
    Encoding,
    TransformersEvaluator,
    TransformersModel,
    load_transformers_model,
)
from factaudit.settings.yaml_paths import NameOrPath
from factaudit.text.chunks import count_words
from factaudit.text.sentences import split_sentences

#: The published models by the names that their authors' code gives them.
PUBLISHED_MODELS = {
    "roberta-large": "lytang/MiniCheck-RoBERTa-Large",
    "deberta-v3-large": "lytang/MiniCheck-DeBERTa-v3-Large",
    "flan-t5-large": "lytang/MiniCheck-Flan-T5-Large",
}
#: Tokens that a model without a table of positions reads, as published; RoBERTa's table holds 512.
MAX_LENGTH = 2048
#: The size of a chunk, as published: tokens for the classifiers, words for Flan-T5.
CLASSIFIER_TOKENS, SEQ2SEQ_WORDS = 400, 500


@evaluator(
    "minicheck",
    needs="the [hf] extra",
    source="Tang, Laban and Durrett 2024, MiniCheck",
    checked=(
        "a plain loop over single examples, on tiny models of the three architectures."
        f" {WEIGHTS_NOT_RUN}"
    ),
    example="minicheck:model=flan-t5-large",
)
@dataclass
class MiniCheckEvaluator(TransformersEvaluator):
    """A MiniCheck model: RoBERTa, DeBERTa or Flan-T5, over chunks of the document.

    The score is the probability of support, the maximum over chunks.

    Args:
        model: ``roberta-large``, ``deberta-v3-large``, ``flan-t5-large``, or a folder or hub name
            of such a model (a classifier of two classes, the second one "supported"; or a
            sequence-to-sequence model that says 0 or 1).
        size: of a chunk; by default 400 tokens for a classifier, 500 words for a
            sequence-to-sequence model.
        revision, device, batch_size: as in
            `factaudit.evaluators.transformers_models.TransformersEvaluator`.

    As the authors' code (github.com/Liyan06/MiniCheck), but where an input is longer than the model
    reads: that code cuts off its end, which is the claim; here the chunk is cut in two or more. A
    claim that leaves no room is an error.
    """

    model: NameOrPath = "flan-t5-large"
    size: PositiveInt | None = None

    @property
    def weights_name(self) -> str:
        """The published model's name on the hub, or the user's."""
        return PUBLISHED_MODELS.get(self.model, self.model)

    def load(self) -> TransformersModel:
        loaded = load_transformers_model(
            self.weights_name,
            self.revision,
            self.device,
            "AutoModelForSequenceClassification",
            "AutoModelForSeq2SeqLM",
        )
        config = loaded.model.config
        if not config.is_encoder_decoder and config.num_labels != 2:
            raise FactauditError(
                f"{self.model!r} is no MiniCheck model: expected 2 classes, found"
                f" {config.num_labels}"
            )
        return loaded

    def encode(self, claim: Claim) -> list[list[Encoding]]:
        """The model's inputs for each chunk of the claim's document."""
        tokenizer = self.loaded.tokenizer
        boundary = tokenizer.eos_token or tokenizer.sep_token

        def encode_pair(text: str) -> Encoding:
            if self._answer_tokens is None:
                return tokenizer(f"{text}{boundary}{claim.claim}", verbose=False)
            encoded = tokenizer(f"predict: {text}{boundary}{claim.claim}", verbose=False)
            return {"input_ids": encoded["input_ids"]}

        is_classifier = self._answer_tokens is None
        size = self.size or (CLASSIFIER_TOKENS if is_classifier else SEQ2SEQ_WORDS)
        count = self.loaded.count_tokens if is_classifier else count_words
        # A blank document is judged too: what it supports is the model's to say.
        chunks = split_minicheck_chunks(claim.doc or "", size, count) or [""]
        limit = min(self.loaded.max_positions or MAX_LENGTH, MAX_LENGTH)
        return [self.loaded.encode_chunks(claim.claim, chunks, encode_pair, limit)]

    def compute_support(self, batch: Sequence[Encoding]) -> list[float]:
        """The probability of support for each input of a batch."""
        if self._answer_tokens is None:
            logits = self.loaded.compute_logits(batch)
        else:
            import torch

            start = self.loaded.model.config.decoder_start_token_id
            first = torch.full((len(batch), 1), start, device=self.loaded.model.device)
            logits = self.loaded.compute_logits(batch, decoder_input_ids=first)
            logits = logits[:, 0, list(self._answer_tokens)]
        return logits.softmax(dim=-1)[:, 1].tolist()

    @cached_property
    def _answer_tokens(self) -> tuple[int, int] | None:
        """The first tokens of the answers "0" (not supported) and "1" (supported): 3 ("▁") and 209
        ("▁1") in T5. None: the model is a classifier."""
        if not self.loaded.model.config.is_encoder_decoder:
            return None
        tokenizer = self.loaded.tokenizer
        no, yes = (tokenizer.encode(answer, add_special_tokens=False) for answer in "01")
        if not no or not yes or no[0] == yes[0] or tokenizer.unk_token_id in (no[0], yes[0]):
            raise FactauditError(
                f"the tokenizer of {self.model!r} cannot tell '0' and '1' by their first token"
            )
        return no[0], yes[0]


@lru_cache(maxsize=8)  # claims come document by document
def split_minicheck_chunks(doc: str, size: int, count_units: Callable[[str], int]) -> list[str]:
    """Chunks as MiniCheck makes them: whole sentences, line by line, while their counts sum to at
    most ``size``.

    Sentences are joined by one space, lines by their break. A sentence longer than ``size`` is a
    chunk of its own. (`factaudit.text.chunks.split_document_into_chunks` cuts the document as it
    stands and never passes ``size``; the models were published with this.)

    >>> split_minicheck_chunks("It rains. It snows.\\nIt is dry.", 18, len)
    ['It rains. It snows.', 'It is dry.']
    """
    parts: list[str] = []
    for number, line in enumerate(doc.split("\n")):
        parts += ["\n"] * (number > 0) + split_sentences(line)
    groups: list[list[str]] = [[]]
    total = 0
    for part in parts:
        length = count_units(part)
        if total + length > size:
            groups.append([])
            total = 0
        groups[-1].append(part)
        total += length
    texts = (" ".join(group).replace(" \n ", "\n").strip() for group in groups)
    return [text for text in texts if text]
