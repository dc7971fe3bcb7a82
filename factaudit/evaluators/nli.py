"""Does a document entail a claim, by any cross-encoder for natural language inference?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

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
from factaudit.text.chunks import split_document_into_chunks

#: A model that states no length reads so many tokens.
MAX_LENGTH = 512
# The room for a chunk is rounded down to these, so that claims of about one length share a document's chunks.
_ROOM_STEP_TOKENS = 32


@evaluator(
    "nli",
    needs="the [hf] extra",
    source="Laban et al. 2022, SummaC",
    checked=f"a plain loop over single examples, on tiny models of two architectures. {WEIGHTS_NOT_RUN}",
    example="nli:model=cross-encoder/nli-deberta-v3-base",
)
@dataclass
class NLIEvaluator(TransformersEvaluator):
    """An NLI cross-encoder: the probability that the document entails the claim.

    The document is the premise and the claim the hypothesis; the score is the maximum over chunks.

    Args:
        model: a folder or hub name of a sequence classifier of text pairs.
        label: which of the model's labels is support, whatever its case.
        chunks: cut a long document into chunks of complete sentences; else its end is cut off.
        size: tokens of a chunk; by default as many as the model can read beside the claim.
        revision, device, batch_size, max_length: as in `factaudit.evaluators.minicheck.MiniCheckEvaluator`.
    """

    model: NameOrPath
    label: str = "entailment"
    chunks: bool = True
    size: int | None = None
    revision: str | None = None
    device: str = "auto"
    batch_size: int = 16
    max_length: int | None = None

    def __post_init__(self) -> None:
        self._check_counts("batch_size", "size", "max_length")
        if self.size is not None and not self.chunks:
            raise UsageError("nli: size is the size of chunks, so it cannot be combined with chunks=false")

    @property
    def signature(self) -> str:
        """The model (a folder by its checksum), label and chunks; ``size`` and ``max_length`` where given."""
        own = {"label": self.label.casefold(), "chunks": self.chunks}
        given = {"size": self.size, "max_length": self.max_length}
        return make_signature(
            "nli",
            transformers_signature_settings(self.model, self.revision) | own | {k: v for k, v in given.items() if v},
        )

    def _load_model(self) -> _NLIModel:
        model = load_transformers_model(self.model, self.revision, self.device, _choose_nli_class)
        config = model.model.config
        stated = (
            model.max_positions,
            model.tokenizer.model_max_length,
            getattr(config, "max_position_embeddings", None),
        )
        # A tokenizer that knows no length states an absurd one.
        limit = min((length for length in stated if length and 0 < length < 1_000_000), default=MAX_LENGTH)
        if self.max_length is not None and model.max_positions is not None and self.max_length > model.max_positions:
            raise UsageError(
                f"nli: the model {self.model!r} reads {model.max_positions} tokens, found max_length {self.max_length}"
            )

        # Claims come document by document.
        @lru_cache(maxsize=8)
        def cut(doc: str, size: int) -> list[str]:
            return split_document_into_chunks(doc, size, model.count_tokens)

        target = find_nli_entailment_label(config.id2label, self.label, self.model)
        return _NLIModel(model, target, self.max_length or limit, self.size, cut if self.chunks else None)


@dataclass(frozen=True)
class _NLIModel:
    """A loaded model with what is known of it only then. ``split_document``: from document and size to chunks; None: no
    chunks.
    """

    model: TransformersModel
    label: int
    max_length: int
    size: int | None
    split_document: Callable[[str, int], list[str]] | None

    def encode(self, claim: Claim) -> list[Encoding] | str:
        """The model's inputs for each chunk of the claim's document, or why there are none."""
        tokenizer = self.model.tokenizer
        separator = tokenizer.sep_token or tokenizer.eos_token
        doc, said = claim.doc or "", claim.claim
        if separator is not None:  # a claim must not bring a document of its own
            doc, said = doc.replace(separator, " "), said.replace(separator, " ")
        taken = len(tokenizer("", said, verbose=False)["input_ids"])
        room = self.max_length - taken
        if self.model.count_tokens(doc) <= (room if self.size is None else min(self.size, room)):
            # A blank document is judged too: what it supports is the model's to say.
            return [tokenizer(doc, said, verbose=False)]
        if problem := find_transformers_length_problem(self.model, said, taken, self.max_length):
            return problem
        if self.split_document is None:
            return [tokenizer(doc, said, max_length=self.max_length, truncation="only_first")]
        room = room // _ROOM_STEP_TOKENS * _ROOM_STEP_TOKENS
        inputs = [
            tokenizer(part, said, verbose=False)
            for part in self.split_document(doc, room if self.size is None else min(self.size, room)) or [""]
        ]
        if any(len(encoded["input_ids"]) > self.max_length for encoded in inputs):
            return "the document has a word that is longer than the model reads"
        return inputs

    def compute_support(self, batch: Sequence[Encoding]) -> list[float]:
        """The label's probability for each input of a batch."""
        return self.model.compute_logits(batch).softmax(dim=-1)[:, self.label].tolist()


def find_nli_entailment_label(labels: dict[int, str], label_name: str, model_name: str) -> int:
    """The index of a model's label by its whole name: "not_entailment" is no "entailment".

    >>> find_nli_entailment_label({0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}, "entailment", "a-model")
    2
    """
    found = [index for index, name in labels.items() if str(name).strip().casefold() == label_name.strip().casefold()]
    if len(found) != 1:
        have = ", ".join(str(name) for name in labels.values())
        raise FactauditError(
            f"the model {model_name!r} has no label {label_name!r}: choose one with label=NAME (has: {have})"
        )
    return int(found[0])


def _choose_nli_class(config: Any) -> str:
    built = (config.architectures or [""])[0]
    if not built.endswith("ForSequenceClassification"):
        raise FactauditError(f"nli: expected a sequence classifier, found {built!r}")
    return "AutoModelForSequenceClassification"
