"""How is a transformers model loaded and run over claims in batches?

MiniCheck, AlignScore, NLI models and the nonparametric model share this. Each says how its model is
loaded, what the model reads for a claim, and what its output means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from pydantic import PositiveInt

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


class InputTooLongError(ValueError):
    """A claim that the model cannot read beside its document."""


@dataclass(frozen=True)
class TransformersModel:
    """A loaded model with its tokenizer, ready to be asked."""

    model: Any
    tokenizer: Any

    @classmethod
    def place(cls, model: Any, tokenizer: Any, device: str) -> TransformersModel:
        """A model on a torch device, in float32 and for inference. ``auto`` is CUDA, else MPS, else
        the CPU."""
        import torch

        if device == "auto":
            has_mps = torch.backends.mps.is_available()
            device = "cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu"
        return cls(model.to(device=device, dtype=torch.float32).eval(), tokenizer)

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
                unused = 0 if module.padding_idx is None else module.padding_idx + 1
                return module.num_embeddings - unused - getattr(module, "offset", 0)
        return None

    def encode_chunks(
        self, claim: str, chunks: Iterable[str], encode_pair: Callable[[str], Encoding], limit: int
    ) -> list[Encoding]:
        """The inputs for a claim beside each chunk of its document, none longer than ``limit``
        tokens: a chunk that is too long becomes several. Raises `InputTooLongError`."""

        def length(chunk: str) -> int:
            return len(encode_pair(chunk)["input_ids"])

        inputs: list[Encoding] = []
        for chunk in chunks:
            pieces = [chunk]
            if length(chunk) > limit:
                self.check_room(claim, length(""), limit)
                pieces = split_document_into_chunks(chunk, limit, length)
            inputs += map(encode_pair, pieces)
        if any(len(one["input_ids"]) > limit for one in inputs):
            raise InputTooLongError("the document has a word that is longer than the model reads")
        return inputs

    def check_room(self, claim: str, claim_tokens: int, limit: int) -> None:
        """Raise `InputTooLongError` where a claim of so many tokens (with special ones) leaves no
        room for a document."""
        if limit - claim_tokens < _MIN_DOCUMENT_TOKENS:
            raise InputTooLongError(
                f"the claim has {self.count_tokens(claim)} tokens, and the model reads {limit} of"
                " claim and document together"
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


def load_transformers_model(
    name: str, revision: str | None, device: str, auto_class: str, encoder_decoder: str = ""
) -> TransformersModel:
    """Load a model from a local folder or the hub, in float32 and for inference.

    Args:
        auto_class: the class of transformers that loads it.
        encoder_decoder: the class for a model that has an encoder and a decoder, if another one.

    Raises `UsageError` without the [hf] extra, `FactauditError` where no whole model is there.
    """
    transformers = import_transformers(f"the model {name!r} needs")
    try:
        config = transformers.AutoConfig.from_pretrained(name, revision=revision)
        loader = (config.is_encoder_decoder and encoder_decoder) or auto_class
        model, report = getattr(transformers, loader).from_pretrained(
            name, config=config, revision=revision, output_loading_info=True
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, revision=revision)
        loaded = TransformersModel.place(model, tokenizer, device)
    except Exception as error:  # transformers, safetensors, torch and the hub raise as they please
        said = format_error_first_line(error)
        raise FactauditError(
            f"no model at {name!r} (a local folder or a name on the hub): {said}"
        ) from error
    check_missing_weights(f"the model {name!r}", report["missing_keys"])
    return loaded


def check_missing_weights(who: str, missing: Iterable[str]) -> None:
    """Raise `FactauditError` where a model lacks weights, which would be random numbers."""
    if shown := ", ".join(sorted(missing)[:3]):
        raise FactauditError(f"{who} lacks weights that it is to be used with: {shown} ...")


@dataclass
class TransformersEvaluator:
    """An evaluator over a model that is loaded once, when it judges.

    A subclass says how the model is loaded (`load`), what it is given for a claim (`encode`), and
    what its output says (`compute_support`).

    Args:
        model: a folder or a hub name.
        revision: the commit, tag or branch on the hub; a commit pins the weights.
        device: ``auto`` (CUDA, else MPS, else the CPU) or a torch device.
        batch_size: chunks per batch.
    """

    model: str = ""
    revision: str | None = None
    device: str = "auto"
    batch_size: PositiveInt = 16

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
        return make_signature(type(self).entry.name, described)  # type: ignore[attr-defined]

    def load(self) -> TransformersModel:
        """Load the model."""
        raise NotImplementedError

    def encode(self, claim: Claim) -> list[list[Encoding]]:
        """The model's inputs for a claim that has a document: for each part of the claim that is
        judged by itself, one input per chunk of the document. Raises `InputTooLongError`."""
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
        """One verdict per claim, in any order: the maximum over the chunks of its document (the
        mean of these, where the parts of a claim are judged one by one). Claims of one document are
        best given one after the other."""
        tokenizer = self.loaded.tokenizer
        # What the model reads between document and claim: neither must bring it along.
        marks = {mark for mark in (tokenizer.sep_token, tokenizer.eos_token) if mark}
        waiting: list[tuple[str, list[list[Encoding]]]] = []
        n_inputs = 0
        for claim in claims:
            if claim.doc is None:
                yield Verdict(claim.claim_id, status="skipped", raw="the claim has no document")
                continue
            for mark in marks:
                said, doc = claim.claim.replace(mark, " "), (claim.doc or "").replace(mark, " ")
                claim = replace(claim, claim=said, doc=doc)
            try:
                parts = self.encode(claim)
            except InputTooLongError as error:
                yield Verdict(claim.claim_id, status="error", raw=str(error))
                continue
            waiting.append((claim.claim_id, parts))
            n_inputs += sum(map(len, parts))
            if n_inputs >= _BATCHES_READ_AHEAD * self.batch_size:
                yield from self._judge_encoded(waiting)
                waiting, n_inputs = [], 0
        yield from self._judge_encoded(waiting)

    def _judge_encoded(
        self, waiting: Sequence[tuple[str, Sequence[Sequence[Encoding]]]]
    ) -> Iterator[Verdict]:
        """The verdicts of claims, each with its inputs as `encode` gives them."""
        inputs = [one for _, parts in waiting for one in chain.from_iterable(parts)]
        support = np.empty(len(inputs))
        # The longest first: a batch that is too big for the device fails at once.
        order = np.argsort([-len(one["input_ids"]) for one in inputs], kind="stable")
        for start in range(0, len(inputs), self.batch_size):
            places = order[start : start + self.batch_size]
            support[places] = self.compute_support([inputs[at] for at in places])
        scores = iter(support.tolist())
        for claim_id, parts in waiting:
            by_part = [list(islice(scores, len(chunks))) for chunks in parts]
            if not all(map(math.isfinite, chain.from_iterable(by_part))):
                reason = "the model's probability is not a number"
                yield Verdict(claim_id, status="error", raw=reason)
                continue
            chunk_scores = by_part[0] if len(by_part) == 1 else None
            yield Verdict(claim_id, fmean(map(max, by_part)), chunk_scores=chunk_scores)


def describe_weights(model_name: str, revision: str | None) -> dict[str, Any]:
    """What a signature says of a model: its name and revision on the hub; of a file or a folder,
    its name and the checksum of what decides verdicts."""
    path = Path(model_name)
    if path.is_file():
        return {"model": path.name, "file": compute_file_checksum(path)}
    if not path.is_dir():
        return {"model": model_name, "revision": revision or "main"}
    files = sorted(one for one in path.iterdir() if one.suffix in _MODEL_FILES and one.is_file())
    checksums = [f"{one.name} {compute_file_checksum(one)}" for one in files]
    return {"model": path.resolve().name, "files": hash_texts(*checksums)}
