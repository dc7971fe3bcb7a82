"""Does a document entail a claim, by any cross-encoder for natural language inference?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pydantic import PositiveInt

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

#: Tokens of a document's chunk, and so many tokens reads a model that states no length.
CHUNK_TOKENS, MAX_LENGTH = 400, 512


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
        size: tokens of a chunk. By default a document is one chunk where it fits beside the claim,
            and else has chunks of 400 tokens. A chunk that does not fit is cut in two or more.
        revision, device, batch_size: as in
            `factaudit.evaluators.transformers_models.TransformersEvaluator`.
    """

    model: NameOrPath = ""
    label: str = "entailment"
    size: PositiveInt | None = None

    def __post_init__(self) -> None:
        if not self.model:
            raise UsageError("nli: expected model=NAME, a folder or a name on the hub")

    def load(self) -> TransformersModel:
        return load_transformers_model(
            self.model, self.revision, self.device, "AutoModelForSequenceClassification"
        )

    def encode(self, claim: Claim) -> list[list[Encoding]]:
        """The model's inputs for each chunk of the claim's document."""
        model = self.loaded

        def encode_pair(text: str) -> Encoding:
            return model.tokenizer(text, claim.claim, verbose=False)

        # A tokenizer that knows no length states an absurd one.
        stated = (
            model.max_positions,
            model.tokenizer.model_max_length,
            getattr(model.model.config, "max_position_embeddings", MAX_LENGTH),
        )
        limit = min(filter(None, stated))
        chunks = [claim.doc or ""]
        if self.size is not None or len(encode_pair(chunks[0])["input_ids"]) > limit:
            chunks = _split_document(chunks[0], self.size or CHUNK_TOKENS, model.count_tokens)
        # A blank document is judged too: what it supports is the model's to say.
        return [model.encode_chunks(claim.claim, chunks or [""], encode_pair, limit)]

    def compute_support(self, batch: Sequence[Encoding]) -> list[float]:
        """The label's probability for each input of a batch."""
        return self.loaded.compute_logits(batch).softmax(dim=-1)[:, self._label_index].tolist()

    @cached_property
    def _label_index(self) -> int:
        """The index of the model's label, whose name is compared as a whole: "not_entailment" is
        no "entailment"."""
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


# Claims come document by document.
_split_document = lru_cache(maxsize=8)(split_document_into_chunks)
