"""Does a document support a claim, by the MiniCheck models (Tang et al. 2024)?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from factaudit.errors import FactauditError, UsageError
from factaudit.evaluators.base import WEIGHTS_NOT_RUN, Claim, evaluator
from factaudit.evaluators.transformers_models import (
    Encoding,
    TransformersEvaluator,
    TransformersModel,
    find_transformers_length_problem,
    load_transformers_model,
    transformers_signature_settings,
)
from factaudit.settings.yaml_paths import NameOrPath
from factaudit.signature import make_signature
from factaudit.text.chunks import count_words, split_document_into_chunks
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
    checked=f"a plain loop over single examples, on tiny models of the three architectures. {WEIGHTS_NOT_RUN}",
    example="minicheck:model=flan-t5-large",
)
@dataclass
class MiniCheckEvaluator(TransformersEvaluator):
    """A MiniCheck model: RoBERTa, DeBERTa or Flan-T5, over chunks of the document.

    The score is the probability of support, the maximum over chunks.

    Args:
        model: ``roberta-large``, ``deberta-v3-large``, ``flan-t5-large``, or a folder or hub name of such a model (a
            classifier of two classes, the second one "supported"; or a sequence-to-sequence model that says 0 or 1).
        revision: the commit, tag or branch on the hub; a commit pins the weights.
        device: ``auto`` (CUDA, else MPS, else the CPU) or a torch device. batch_size: chunks per batch.
        size: of a chunk; by default 400 tokens for a classifier, 500 words for a sequence-to-sequence model.
        unit: what ``size`` counts, as published by default; ``tokens`` are the model's own, ``words`` between blanks.
        max_length: tokens that the model reads at once; by default what its positions allow, at most 2048.

    As the authors' code (github.com/Liyan06/MiniCheck), but where an input is longer than ``max_length``: that code
    cuts off its end, which is the claim; here the chunk is cut in two or more. A claim that leaves no room is an error.
    """

    model: NameOrPath = "flan-t5-large"
    revision: str | None = None
    device: str = "auto"
    batch_size: int = 16
    size: int | None = None
    unit: Literal["published", "tokens", "words"] = "published"
    max_length: int | None = None

    def __post_init__(self) -> None:
        self._check_counts("batch_size", "size", "max_length")
        self._name = PUBLISHED_MODELS.get(self.model, self.model)

    @property
    def signature(self) -> str:
        """The model (a folder by its checksum), and ``size``, ``unit``, ``max_length`` where they are not published."""
        unit = None if self.unit == "published" else self.unit
        given = {"size": self.size, "unit": unit, "max_length": self.max_length}
        return make_signature(
            "minicheck",
            transformers_signature_settings(self._name, self.revision) | {k: v for k, v in given.items() if v},
        )

    def _load_model(self) -> _MiniCheckModel:
        return _MiniCheckModel.load(self._name, self.revision, self.device, self.size, self.unit, self.max_length)


@dataclass(frozen=True)
class _MiniCheckModel:
    """A loaded model. ``answer_tokens``: the tokens for 0 and 1; None: a classifier."""

    model: TransformersModel
    max_length: int
    separator: str
    answer_tokens: tuple[int, int] | None
    split_document: Callable[[str], list[str]]

    @classmethod
    def load(
        cls, name: str, revision: str | None, device: str, size: int | None, unit: str, max_length: int | None
    ) -> _MiniCheckModel:
        model = load_transformers_model(name, revision, device, _choose_minicheck_class)
        tokenizer, config = model.tokenizer, model.model.config
        positions = model.max_positions or MAX_LENGTH
        if max_length is not None and model.max_positions is not None and max_length > positions:
            raise UsageError(f"minicheck: the model {name!r} reads {positions} tokens, found max_length {max_length}")
        boundary = tokenizer.eos_token or tokenizer.sep_token
        if boundary is None:
            raise FactauditError(f"the tokenizer of {name!r} has no token to put between document and claim")
        if _choose_minicheck_class(config) == "AutoModelForSequenceClassification":
            if config.num_labels != 2:
                raise FactauditError(f"{name!r} is no MiniCheck model: expected 2 classes, found {config.num_labels}")
            answers, count, published = None, model.count_tokens, CLASSIFIER_TOKENS
        else:
            answers, count, published = _find_minicheck_answer_tokens(name, tokenizer), count_words, SEQ2SEQ_WORDS
        count = {"published": count, "tokens": model.count_tokens, "words": count_words}[unit]

        # Claims come document by document.
        @lru_cache(maxsize=8)
        def chunks(doc: str) -> list[str]:
            return split_minicheck_chunks(doc, size or published, count)

        return cls(model, max_length or min(positions, MAX_LENGTH), boundary, answers, chunks)

    def encode(self, claim: Claim) -> list[Encoding] | str:
        """The model's inputs for each chunk of the claim's document, or why there are none."""
        inputs = []
        doc = (claim.doc or "").replace(self.separator, " ")
        said = claim.claim.replace(self.separator, " ")  # a claim must not bring a document of its own

        def length(part: str) -> int:
            return len(self._encode_pair(part, said)["input_ids"])

        # A blank document is judged too: what it supports is the model's to say.
        for text in self.split_document(doc) or [""]:
            encoded = self._encode_pair(text, said)
            if len(encoded["input_ids"]) <= self.max_length:
                inputs.append(encoded)
                continue
            if problem := find_transformers_length_problem(self.model, said, length(""), self.max_length):
                return problem
            cut = [self._encode_pair(part, said) for part in split_document_into_chunks(text, self.max_length, length)]
            if any(len(part["input_ids"]) > self.max_length for part in cut):
                return "the document has a word that is longer than the model reads"
            inputs += cut
        return inputs

    def compute_support(self, batch: Sequence[Encoding]) -> list[float]:
        """The probability of support for each input of a batch."""
        if self.answer_tokens is None:
            logits = self.model.compute_logits(batch)
        else:
            import torch

            start = self.model.model.config.decoder_start_token_id
            first = torch.full((len(batch), 1), start, device=self.model.device)
            logits = self.model.compute_logits(batch, decoder_input_ids=first)[:, 0, list(self.answer_tokens)]
        return logits.softmax(dim=-1)[:, 1].tolist()

    def _encode_pair(self, text: str, claim: str) -> Encoding:
        prefix = "" if self.answer_tokens is None else "predict: "
        encoded = self.model.tokenizer(f"{prefix}{text}{self.separator}{claim}", verbose=False)
        return encoded if self.answer_tokens is None else {"input_ids": encoded["input_ids"]}


def split_minicheck_chunks(doc: str, size: int, count_units: Callable[[str], int]) -> list[str]:
    """Chunks as MiniCheck makes them: whole sentences, line by line, while their counts sum to at most ``size``.

    Sentences are joined by one space, lines by their break. A sentence longer than ``size`` is a chunk of its own.
    (`factaudit.text.chunks.split_document_into_chunks` cuts the document as it stands and never passes ``size``; the
    models were published with this.)
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


def _choose_minicheck_class(config: Any) -> str:
    built = (config.architectures or [""])[0]
    if built.endswith("ForSequenceClassification"):
        return "AutoModelForSequenceClassification"
    if config.is_encoder_decoder:
        return "AutoModelForSeq2SeqLM"
    raise FactauditError(f"minicheck: expected a sequence classifier or a sequence-to-sequence model, found {built!r}")


def _find_minicheck_answer_tokens(model_name: str, tokenizer: Any) -> tuple[int, int]:
    """The first tokens of the answers "0" (not supported) and "1" (supported): 3 ("▁") and 209 ("▁1") in T5."""
    no, yes = (tokenizer.encode(answer, add_special_tokens=False) for answer in "01")
    if not no or not yes or no[0] == yes[0] or tokenizer.unk_token_id in (no[0], yes[0]):
        raise FactauditError(
            f"the tokenizer of {model_name!r} cannot tell the answers '0' and '1' by their first token"
        )
    return no[0], yes[0]
