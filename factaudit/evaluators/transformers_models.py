"""How is a transformers model loaded and run over claims in batches? MiniCheck, AlignScore and NLI
share this."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from factaudit.errors import FactauditError, UsageError, format_error_first_line
from factaudit.evaluators.base import Claim, Verdict
from factaudit.signature import compute_file_checksum, hash_texts, make_signature
from factaudit.text.chunks import split_document_into_chunks

#: One model input as the tokenizer makes it: ``input_ids`` and, where the model has them,
#: ``token_type_ids`` ...
Encoding = Mapping[str, list[int]]

#: So many batches are read ahead and sorted by length, so that little is padded.
_BATCHES_READ_AHEAD = 8
#: A claim must leave room for at least so many tokens of the document.
_MIN_DOCUMENT_TOKENS = 32
#: The files of a model folder that decide its verdicts.
_MODEL_FILES = (".json", ".safetensors", ".bin", ".model", ".txt", ".jinja")


@dataclass(frozen=True)
class TransformersModel:
    """A loaded model with its tokenizer, ready to be asked."""

    model: Any
    tokenizer: Any

    def run(self, batch: Sequence[Encoding], **more: Any) -> Any:
        """The model's output for a padded batch."""
        import torch

        padded = self.tokenizer.pad([dict(one) for one in batch], return_tensors="pt")
        with torch.inference_mode():
            return self.model(**padded.to(self.model.device), **more)

    def compute_logits(self, batch: Sequence[Encoding], **more: Any) -> Any:
        """The model's logits (a float32 tensor on the CPU) for a padded batch."""
        return self.run(batch, **more).logits.float().cpu()

    def count_tokens(self, text: str) -> int:
        """How many tokens a text has, without special ones."""
        return len(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    @property
    def max_positions(self) -> int | None:
        """How many tokens the model's table of absolute positions holds; None where it has none
        (T5, DeBERTa-v3)."""
        for name, module in self.model.named_modules():
            if name.endswith(("position_embeddings", "embed_positions")) and hasattr(
                module, "num_embeddings"
            ):
                # RoBERTa counts positions from after its padding index, BART from an offset.
                padding = module.padding_idx
                return (
                    module.num_embeddings
                    - (0 if padding is None else padding + 1)
                    - getattr(module, "offset", 0)
                )
        return None

    def encode_parts(
        self, claim: str, parts: Iterable[str], encode_pair: Callable[[str], Encoding], limit: int
    ) -> list[Encoding] | str:
        """The inputs for a claim beside each part of its document, none longer than ``limit``
        tokens: a part that is too long becomes several. Or why there are none."""

        def length(part: str) -> int:
            return len(encode_pair(part)["input_ids"])

        inputs = []
        for part in parts:
            if length(part) <= limit:
                inputs.append(encode_pair(part))
                continue
            if problem := self.find_length_problem(claim, length(""), limit):
                return problem
            inputs += [
                encode_pair(piece) for piece in split_document_into_chunks(part, limit, length)
            ]
        if any(len(encoded["input_ids"]) > limit for encoded in inputs):
            return "the document has a word that is longer than the model reads"
        return inputs

    def find_length_problem(self, claim: str, claim_tokens: int, limit: int) -> str | None:
        """Why a claim of so many tokens (special ones included) leaves no room for a document; None
        where it does."""
        if limit - claim_tokens >= _MIN_DOCUMENT_TOKENS:
            return None
        length = self.count_tokens(claim)
        return (
            f"the claim has {length} tokens, and the model reads {limit} of claim and document"
            " together"
        )


def import_transformers(who_needs: str) -> Any:
    """The package transformers, where PyTorch is there as well. Raises `UsageError` without the
    [hf] extra."""
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as error:
        raise UsageError(
            f"{who_needs} the [hf] extra: pip install 'factaudit[hf]' ({error})"
        ) from error
    return transformers


#: By the ending of a model's architecture: the class of transformers that loads it.
_AUTO_CLASSES = {
    "ForSequenceClassification": "AutoModelForSequenceClassification",
    "ForConditionalGeneration": "AutoModelForSeq2SeqLM",
    "ForMaskedLM": "AutoModelForMaskedLM",
}


def load_transformers_model(
    name: str, revision: str | None, device: str, *endings: str
) -> TransformersModel:
    """Load a model from a local folder or the hub, in float32 and for inference.

    Args:
        device: a torch device; ``auto``: CUDA, else MPS, else the CPU.
        endings: how the model's architecture may end (`_AUTO_CLASSES`).

    Raises `UsageError` without the [hf] extra, `FactauditError` where no whole model is there.
    """
    transformers = import_transformers(f"the model {name!r} needs")
    import torch

    if name.startswith(("/", ".", "~")) and not Path(name).is_dir():
        raise FactauditError(f"no model at {name!r}: no such folder")
    try:
        config = transformers.AutoConfig.from_pretrained(name, revision=revision)
        built = (config.architectures or [""])[0]
        ending = next(filter(built.endswith, endings), None)
        if ending is None:
            raise FactauditError(
                f"the model {name!r} is a {built or 'model without architecture'}, expected one"
                f" whose name ends in {' or '.join(endings)}"
            )
        loader = getattr(transformers, _AUTO_CLASSES[ending])
        model, report = loader.from_pretrained(
            name, config=config, revision=revision, output_loading_info=True
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, revision=revision)
        model = model.to(device=choose_torch_device(device), dtype=torch.float32).eval()
    except FactauditError:
        raise
    except Exception as error:  # transformers, safetensors, torch and the hub raise as they please
        said = format_error_first_line(error)
        raise FactauditError(
            f"no model at {name!r} (a local folder or a name on the hub): {said}"
        ) from error
    if report["missing_keys"]:
        # transformers fills these with random numbers and goes on.
        missing = ", ".join(sorted(report["missing_keys"])[:3])
        raise FactauditError(
            f"the model {name!r} lacks weights that {type(model).__name__} needs: {missing} ..."
        )
    return TransformersModel(model, tokenizer)


def choose_torch_device(device: str) -> str:
    """A torch device by its name; ``auto``: CUDA, else MPS, else the CPU."""
    import torch

    if device != "auto":
        return device
    return (
        "cuda"
        if torch.cuda.is_available()
        else "mps"
        if torch.backends.mps.is_available()
        else "cpu"
    )


@dataclass
class TransformersEvaluator:
    """An evaluator over a model that is loaded once, when it judges.

    A subclass says how the model is loaded (`load`), what it is given for a claim (`encode`), and
    what its output says (`compute_support`).

    Args:
        model: a folder or a hub name. revision: the commit, tag or branch on the hub; a commit pins
        the weights.
        device: ``auto`` (CUDA, else MPS, else the CPU) or a torch device. batch_size: chunks per
        batch.
    """

    model: str = ""
    revision: str | None = None
    device: str = "auto"
    batch_size: int = 16

    def __post_init__(self) -> None:
        for option in ("batch_size", "size"):
            value = getattr(self, option, None)
            if value is not None and value < 1:
                raise UsageError(f"{self._kind}: expected a {option} of at least 1, found {value}")

    @property
    def _kind(self) -> str:
        return type(self).entry.name  # type: ignore[attr-defined]

    @property
    def weights_name(self) -> str:
        """The model's folder or its name on the hub."""
        return self.model

    @cached_property
    def signature(self) -> str:
        """The model (a folder by its checksum), and the other options that are not as by
        default."""
        described = describe_weights(self.weights_name, self.revision)
        for one in fields(self):
            value = getattr(self, one.name)
            if (
                one.name not in ("model", "revision", "device", "batch_size")
                and value != one.default
            ):
                described[one.name] = value
        return make_signature(self._kind, described)

    def load(self) -> TransformersModel:
        """Load the model."""
        raise NotImplementedError

    def encode(self, claim: Claim) -> list[Encoding] | str:
        """The model's inputs for a claim that has a document, one per chunk; or why there are
        none."""
        raise NotImplementedError

    def compute_support(self, batch: Sequence[Encoding]) -> Sequence[float]:
        """The probability of support for each input of a batch."""
        raise NotImplementedError

    @cached_property
    def loaded(self) -> TransformersModel:
        """The model, loaded when it is first asked for."""
        return self.load()

    @property
    def provenance(self) -> dict[str, str | None]:
        """The model's name and the hub commit that it was loaded from (None before `judge`, and for
        a folder)."""
        model = self.loaded.model if "loaded" in vars(self) else None
        return {
            "model": self.weights_name,
            "commit": getattr(getattr(model, "config", None), "_commit_hash", None),
        }

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """One verdict per claim, in any order: the maximum over the chunks of its document. Claims
        of one document are best given one after the other."""
        _ = self.loaded
        source = iter(claims)
        inputs: list[tuple[str, int, Encoding]] = []
        for claim in source:
            encoded = self.encode(claim) if claim.doc is not None else ""
            if claim.doc is None:
                yield Verdict(claim.claim_id, status="skipped", raw="the claim has no document")
            elif isinstance(encoded, str):
                yield Verdict(claim.claim_id, status="error", raw=encoded)
            else:
                inputs += [
                    (claim.claim_id, position, encoding)
                    for position, encoding in enumerate(encoded)
                ]
            if len(inputs) >= _BATCHES_READ_AHEAD * self.batch_size:
                yield from self._judge_inputs(inputs)
                inputs = []
        yield from self._judge_inputs(inputs)

    def _judge_inputs(self, inputs: list[tuple[str, int, Encoding]]) -> Iterator[Verdict]:
        """The verdicts of claims by their inputs: claim_id, the chunk's place, and the chunk;
        batched by length."""
        scores: dict[str, dict[int, float]] = {}
        # The longest first: a batch that is too big for the device fails at once.
        inputs.sort(key=lambda item: -len(item[2]["input_ids"]))
        for start in range(0, len(inputs), self.batch_size):
            batch = inputs[start : start + self.batch_size]
            found = self.compute_support([encoding for _, _, encoding in batch])
            for (claim_id, position, _), score in zip(batch, found, strict=True):
                scores.setdefault(claim_id, {})[position] = score
        for claim_id, by_chunk in scores.items():
            in_order = [by_chunk[position] for position in sorted(by_chunk)]
            if all(map(math.isfinite, in_order)):
                yield Verdict(claim_id, max(in_order), chunk_scores=in_order)
            else:
                yield Verdict(
                    claim_id, status="error", raw="the model's probability is not a number"
                )


def describe_weights(model_name: str, revision: str | None) -> dict[str, Any]:
    """What a signature says of a model: its name and revision on the hub; of a folder, the files'
    checksum."""
    folder = Path(model_name)
    if not folder.is_dir():
        return {"model": model_name, "revision": revision or "main"}
    files = sorted(
        path for path in folder.iterdir() if path.suffix in _MODEL_FILES and path.is_file()
    )
    checksums = [f"{path.name} {compute_file_checksum(path)}" for path in files]
    return {"model": folder.resolve().name, "files": hash_texts(*checksums)}
