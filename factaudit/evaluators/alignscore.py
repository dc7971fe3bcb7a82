"""Does a document support a claim, by AlignScore (Zha et al. 2023; VC, Tables 3 to 7)? A trained
RoBERTa judges each sentence of the claim beside chunks of the document."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from factaudit.errors import FactauditError, UsageError, format_error_first_line
from factaudit.evaluators.base import WEIGHTS_NOT_RUN, Claim, evaluator
from factaudit.evaluators.transformers_models import (
    Encoding,
    TransformersEvaluator,
    TransformersModel,
    check_missing_weights,
    describe_weights,
    import_transformers,
)
from factaudit.settings.yaml_paths import NameOrPath
from factaudit.signature import make_signature
from factaudit.text.chunks import count_words
from factaudit.text.sentences import split_sentences

#: The published checkpoints, all in one repository of the hub, and the RoBERTa that each was
#: trained from.
HUB_REPOSITORY = "yzha/AlignScore"
PUBLISHED_CHECKPOINTS = {
    "base": ("AlignScore-base.ckpt", "roberta-base"),
    "large": ("AlignScore-large.ckpt", "roberta-large"),
}
#: Words (what the paper calls tokens) that a chunk should have about, as published.
CHUNK_WORDS = 350
#: The beginnings of a checkpoint's names and of those of the same weights in
#: ``RobertaForSequenceClassification``, whose head is AlignScore's pooler and three-way layer.
_WEIGHT_NAMES = (
    ("base_model.pooler.dense.", "classifier.dense."),
    ("base_model.", "roberta."),
    ("tri_layer.", "classifier.out_proj."),
)


@evaluator(
    "alignscore",
    needs="the [hf] extra",
    source="Zha et al. 2023, AlignScore",
    checked=(
        "a plain loop over single examples, on a tiny checkpoint of the authors' form."
        f" {WEIGHTS_NOT_RUN}"
    ),
    example="alignscore:model=large",
)
@dataclass
class AlignScoreEvaluator(TransformersEvaluator):
    """AlignScore: P(aligned) for each sentence of the claim over chunks of the document, then the
    mean.

    P(aligned) is that of the three-way head, the maximum over chunks.

    Args:
        model: ``large``, ``base`` (the published ones, from the hub) or a checkpoint file,
            Lightning's ``.ckpt``, of which only the weights are read.
        backbone: the RoBERTa whose configuration and tokenizer a checkpoint file goes with: a
            folder or a hub name.
        revision: of the published checkpoint on the hub. device, batch_size: as in
            `factaudit.evaluators.transformers_models.TransformersEvaluator`.

    As the authors' code in its mode ``nli_sp`` (github.com/yuh-zha/AlignScore): the end of a chunk
    that is longer than the model reads beside the sentence is cut off. Where a sentence leaves the
    document no room, its claim is an error.
    """

    model: NameOrPath = "large"
    backbone: str = ""

    def __post_init__(self) -> None:
        if self.model not in PUBLISHED_CHECKPOINTS:
            if not Path(self.model).is_file():
                known = ", ".join(PUBLISHED_CHECKPOINTS)
                raise UsageError(
                    f"alignscore: expected model to be {known} or a checkpoint, found"
                    f" {self.model!r}"
                )
            if not self.backbone:
                raise UsageError(
                    "alignscore: a checkpoint file needs backbone=FOLDER or NAME, its RoBERTa model"
                )
        self._backbone = self.backbone or PUBLISHED_CHECKPOINTS[self.model][1]

    @property
    def signature(self) -> str:
        """The published checkpoint's name and revision, or the file's checksum; and the
        backbone."""
        backbone = describe_weights(self._backbone, None)["model"]
        weights = describe_weights(self.model, self.revision)
        return make_signature("alignscore", weights | {"backbone": backbone})

    def load(self) -> TransformersModel:
        transformers = import_transformers("alignscore needs")
        try:
            path = Path(self.model)
            if self.model in PUBLISHED_CHECKPOINTS:
                from huggingface_hub import hf_hub_download

                file = PUBLISHED_CHECKPOINTS[self.model][0]
                path = Path(hf_hub_download(HUB_REPOSITORY, file, revision=self.revision))
            config = transformers.AutoConfig.from_pretrained(self._backbone, num_labels=3)
            tokenizer = transformers.AutoTokenizer.from_pretrained(self._backbone)
            model = transformers.RobertaForSequenceClassification(config)
        except Exception as error:  # transformers and the hub raise as they please
            said = format_error_first_line(error)
            raise FactauditError(
                f"alignscore: {self.model!r} with {self._backbone!r} cannot be loaded: {said}"
            ) from error
        try:
            missing, _ = model.load_state_dict(read_alignscore_weights(path), strict=False)
        except RuntimeError as error:
            said = str(error).splitlines()[-1].strip()
            raise FactauditError(f"{path} is not of {self._backbone!r}: {said}") from error
        check_missing_weights(f"the checkpoint {path}", missing)
        return TransformersModel.place(model, tokenizer, self.device)

    def encode(self, claim: Claim) -> list[list[Encoding]]:
        """For each sentence of the claim the model's inputs, one per chunk of the document."""
        tokenizer = self.loaded.tokenizer
        limit = self.loaded.max_positions or tokenizer.model_max_length
        chunks = split_alignscore_chunks(claim.doc or "")
        found = []
        for said in split_sentences(claim.claim) or [claim.claim]:
            self.loaded.check_room(
                said, len(tokenizer("", said, verbose=False)["input_ids"]), limit
            )
            found.append(
                [tokenizer(one, said, max_length=limit, truncation="only_first") for one in chunks]
            )
        return found

    def compute_support(self, batch: Sequence[Encoding]) -> list[float]:
        """P(aligned), the first of the three classes."""
        return self.loaded.compute_logits(batch).softmax(dim=-1)[:, 0].tolist()


@lru_cache(maxsize=8)  # claims come document by document
def split_alignscore_chunks(doc: str) -> tuple[str, ...]:
    """Chunks as AlignScore makes them: equal numbers of sentences, so many that a chunk has about
    350 words.

    What is left over by the division is a chunk more. A blank document is one blank chunk.
    """
    found = split_sentences(doc) or [""]
    size = max(len(found) // (count_words(doc) // CHUNK_WORDS + 1), 1)
    return tuple(" ".join(found[start : start + size]) for start in range(0, len(found), size))


def read_alignscore_weights(path: Path) -> dict[str, Any]:
    """The tensors of a checkpoint, by their names in ``RobertaForSequenceClassification``; never
    runs what a pickle would.

    Raises `FactauditError` where the file holds more than weights, or is no checkpoint.
    """
    import torch

    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
        saved = loaded.get("state_dict", loaded)
    except pickle.UnpicklingError as error:
        raise FactauditError(
            f"{path} contains more than weights, so it is not loaded (a pickle can run any code):"
            " save its state_dict alone with torch.save"
        ) from error
    except Exception as error:  # torch has no common kind for a file that is cut off
        raise FactauditError(
            f"{path} cannot be read as a checkpoint: {format_error_first_line(error)}"
        ) from error
    weights = {}
    for name, values in saved.items():
        for theirs, ours in _WEIGHT_NAMES:
            if name.startswith(theirs):
                weights[ours + name.removeprefix(theirs)] = values
                break
    return weights
