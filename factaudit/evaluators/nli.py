"""Does a document entail a claim, by any cross-encoder for natural language inference?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from factaudit.errors import FactauditError, UsageError
from factaudit.evaluators.base import WEIGHTS_NOT_RUN, Claim, evaluator
from factaudit.evaluators.transformers_models import (
    Encoding,
    TransformersEvaluator,
    TransformersModel,
    load_transformers_model,
)
from factaudit.settings.yaml_paths import NameOrPath
from factaudit.text.chunks import split_document_into_chunks

#: A model that states no length reads so many tokens.
MAX_LENGTH = 512
# The room for a chunk is rounded down to these, so that claims of about one length share a
# document's chunks.
_ROOM_STEP_TOKENS = 32


@evaluator(
    "nli",
    needs="the [hf] extra",
    source="Laban et al. 2022, SummaC",
    checked=(
        f"a plain loop over single examples, on tiny models of two architectures. {WEIGHTS_NOT_RUN}"
    ),
    example="nli:model=cross-encoder/nli-deberta-v3-base",
)
@dataclass
class NLIEvaluator(TransformersEvaluator):
    """An NLI cross-encoder: the probability that the document entails the claim.

    The document is the premise and the claim the hypothesis; the score is the maximum over chunks
    of complete sentences.

    Args:
        model: a folder or hub name of a sequence classifier of text pairs.
        label: which of the model's labels is support, whatever its case.
        size: tokens of a chunk; by default as many as the model can read beside the claim.
        revision, device, batch_size: as in
        `factaudit.evaluators.transformers_models.TransformersEvaluator`.
    """

    model: NameOrPath = ""
    label: str = "entailment"
    size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.model:
            raise UsageError("nli: expected model=NAME, a folder or a name on the hub")

    def load(self) -> TransformersModel:
        return load_transformers_model(
            self.model, self.revision, self.device, "ForSequenceClassification"
        )

    def encode(self, claim: Claim) -> list[Encoding] | str:
        """The model's inputs for each chunk of the claim's document, or why there are none."""
        tokenizer = self.loaded.tokenizer
        separator = tokenizer.sep_token or tokenizer.eos_token
        doc, said = claim.doc or "", claim.claim
        if separator is not None:  # a claim must not bring a document of its own
            doc, said = doc.replace(separator, " "), said.replace(separator, " ")

        def encode_pair(text: str) -> Encoding:
            return tokenizer(text, said, verbose=False)

        limit = self._find_limit()
        room = limit - len(encode_pair("")["input_ids"])
        size = min(self.size or room, room)
        # A blank document is judged too: what it supports is the model's to say.
        parts = [doc]
        if size > 0 and self.loaded.count_tokens(doc) > size:
            rounded = max(1, room // _ROOM_STEP_TOKENS) * _ROOM_STEP_TOKENS
            parts = self._split_document(doc, min(self.size or rounded, rounded))
        return self.loaded.encode_parts(said, parts, encode_pair, limit)

    def compute_support(self, batch: Sequence[Encoding]) -> list[float]:
        """The label's probability for each input of a batch."""
        return self.loaded.compute_logits(batch).softmax(dim=-1)[:, self._label_index].tolist()

    def _find_limit(self) -> int:
        """How many tokens the model reads at once."""
        model = self.loaded
        stated = (
            model.max_positions,
            model.tokenizer.model_max_length,
            model.model.config.max_position_embeddings,
        )
        # A tokenizer that knows no length states an absurd one.
        return min(
            (length for length in stated if length and 0 < length < 1_000_000), default=MAX_LENGTH
        )

    @cached_property
    def _label_index(self) -> int:
        """The index of the model's label by its whole name: "not_entailment" is no "entailment"."""
        labels = {
            str(name).strip().casefold(): index
            for index, name in self.loaded.model.config.id2label.items()
        }
        wanted = self.label.strip().casefold()
        if wanted not in labels:
            raise FactauditError(
                f"the model {self.model!r} has no label {self.label!r}: choose one with label=NAME"
                f" (has: {', '.join(labels)})"
            )
        return int(labels[wanted])

    @cached_property
    def _split_document(self) -> Callable[[str, int], list[str]]:
        # Claims come document by document.
        @lru_cache(maxsize=8)
        def split(doc: str, size: int) -> list[str]:
            return split_document_into_chunks(doc, size, self.loaded.count_tokens)

        return split
