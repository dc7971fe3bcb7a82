"""Does a document support a claim, by AlignScore (Zha et al. 2023; VC, Tables 3 to 7)? A trained
RoBERTa."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from factaudit.errors import FactauditError, UsageError, format_error_first_line
from factaudit.evaluators.base import (
    WEIGHTS_NOT_RUN,
    Claim,
    PartCounts,
    Verdict,
    combine_claim_part_verdicts,
    evaluator,
    name_part,
)
from factaudit.evaluators.transformers_models import (
    Encoding,
    TransformersEvaluator,
    TransformersModel,
    choose_torch_device,
    describe_weights,
    import_transformers,
)
from factaudit.settings.yaml_paths import NameOrPath
from factaudit.signature import compute_file_checksum, make_signature
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
        model: ``large``, ``base`` (the published ones, from the hub) or a checkpoint file:
        Lightning's ``.ckpt``, of
            which only the weights are read.
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
        super().__post_init__()
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
        own = {"model": self.model, "revision": self.revision or "main"}
        if self.model not in PUBLISHED_CHECKPOINTS:
            own = {"model": Path(self.model).name, "file": compute_file_checksum(Path(self.model))}
        return make_signature(
            "alignscore", own | {"backbone": describe_weights(self._backbone, None)["model"]}
        )

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """One verdict per claim: the mean over its sentences."""
        part_counts: PartCounts = {}
        verdicts = super().judge(_split_alignscore_sentences(claims, part_counts))
        yield from combine_claim_part_verdicts(verdicts, part_counts, _average_alignscore_verdicts)

    def load(self) -> TransformersModel:
        transformers = import_transformers("alignscore needs")
        import torch

        try:
            path = Path(self.model)
            if self.model in PUBLISHED_CHECKPOINTS:
                from huggingface_hub import hf_hub_download

                file = PUBLISHED_CHECKPOINTS[self.model][0]
                path = Path(hf_hub_download(HUB_REPOSITORY, file, revision=self.revision))
            config = transformers.AutoConfig.from_pretrained(self._backbone)
            tokenizer = transformers.AutoTokenizer.from_pretrained(self._backbone)
        except Exception as error:  # transformers and the hub raise as they please
            said = format_error_first_line(error)
            raise FactauditError(
                f"alignscore: {self.model!r} with {self._backbone!r} cannot be loaded: {said}"
            ) from error
        weights = read_alignscore_weights(path)
        device = self.device

        class Aligner(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.device = torch.device(choose_torch_device(device))
                self.base_model = transformers.RobertaModel(config, add_pooling_layer=True)
                self.tri_layer = torch.nn.Linear(config.hidden_size, 3)

            def forward(self, **inputs: Any) -> SimpleNamespace:
                return SimpleNamespace(
                    logits=self.tri_layer(self.base_model(**inputs).pooler_output)
                )

        model = Aligner()
        # The heads for two classes, for a number and for masked words are of no use here.
        wanted = {
            name: values
            for name, values in weights.items()
            if name.startswith(("base_model.", "tri_layer."))
        }
        try:
            missing, _ = model.load_state_dict(wanted, strict=False)
        except RuntimeError as error:
            said = str(error).splitlines()[-1].strip()
            raise FactauditError(f"{path} is not of {self._backbone!r}: {said}") from error
        if missing:
            raise FactauditError(
                f"{path} is no AlignScore checkpoint: it lacks {', '.join(sorted(missing)[:3])} ..."
            )
        return TransformersModel(model.to(model.device).float().eval(), tokenizer)

    def encode(self, claim: Claim) -> list[Encoding] | str:
        """The model's inputs for each chunk of the document beside one sentence, or why there are
        none."""
        tokenizer, mark = self.loaded.tokenizer, self.loaded.tokenizer.sep_token
        # A claim must not bring a document of its own.
        said, doc = claim.claim.replace(mark, " "), (claim.doc or "").replace(mark, " ")
        limit = self.loaded.max_positions or tokenizer.model_max_length
        claim_tokens = len(tokenizer("", said, verbose=False)["input_ids"])
        if problem := self.loaded.find_length_problem(said, claim_tokens, limit):
            return problem
        chunks = split_alignscore_chunks(doc)
        return [tokenizer(part, said, max_length=limit, truncation="only_first") for part in chunks]

    def compute_support(self, batch: Sequence[Encoding]) -> list[float]:
        """P(aligned), the first of the three classes."""
        return self.loaded.compute_logits(batch).softmax(dim=-1)[:, 0].tolist()


@lru_cache(maxsize=8)
def split_alignscore_chunks(doc: str) -> tuple[str, ...]:
    """Chunks as AlignScore makes them: equal numbers of sentences, so many that a chunk has about
    350 words.

    What is left over by the division is a chunk more. A blank document is one blank chunk.
    """
    found = split_sentences(doc) or [""]
    size = max(len(found) // (count_words(doc) // CHUNK_WORDS + 1), 1)
    return tuple(" ".join(found[start : start + size]) for start in range(0, len(found), size))


def read_alignscore_weights(path: Path) -> dict[str, Any]:
    """The tensors of a checkpoint by name; never runs what a pickle would.

    Raises `FactauditError` where the file holds more than weights, or is no checkpoint.
    """
    import torch

    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise FactauditError(
            f"{path} contains more than weights, so it is not loaded (a pickle can run any code):"
            " save its state_dict alone with torch.save"
        ) from error
    except Exception as error:  # torch has no common kind for a file that is cut off
        raise FactauditError(
            f"{path} cannot be read as a checkpoint: {format_error_first_line(error)}"
        ) from error
    weights = loaded.get("state_dict", loaded) if isinstance(loaded, dict) else {}
    return {name: values for name, values in weights.items() if isinstance(values, torch.Tensor)}


def _split_alignscore_sentences(
    claims: Iterable[Claim], part_counts: PartCounts
) -> Iterator[Claim]:
    """Each sentence of each claim as a claim of its own; ``part_counts`` gets how many there
    are."""
    for claim in claims:
        found = split_sentences(claim.claim) or [claim.claim]
        part_counts[claim.claim_id] = len(found)
        for position, sentence in enumerate(found):
            yield name_part(claim, position, sentence, claim.doc)


def _average_alignscore_verdicts(claim_id: str, verdicts: Sequence[Verdict]) -> Verdict:
    failed = next((verdict for verdict in verdicts if verdict.score is None), None)
    if failed is not None:
        return Verdict(claim_id, status=failed.status, raw=failed.raw)
    return Verdict(claim_id, sum(verdict.score or 0.0 for verdict in verdicts) / len(verdicts))
