"""How is a transformers model loaded and run over claims in batches? `minicheck` and `nli` share this."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from factaudit.errors import FactauditError, UsageError, format_error_first_line
from factaudit.evaluators.base import Claim, Verdict
from factaudit.signature import compute_file_checksum, hash_texts

#: One model input as the tokenizer makes it: ``input_ids`` and, where the model has them, ``token_type_ids`` ...
Encoding = Mapping[str, list[int]]

#: So many batches are read ahead and sorted by length, so that little is padded.
_BATCHES_READ_AHEAD = 8
#: A claim must leave room for at least so many tokens of the document.
_MIN_DOCUMENT_TOKENS = 32
#: The files of a model folder that decide its verdicts.
_MODEL_FILES = (".json", ".safetensors", ".bin", ".model", ".txt", ".jinja")


@dataclass(frozen=True)
class TransformersModel:
    """A loaded model, ready to be asked, with its tokenizer and the hub commit that it came from (None: a folder)."""

    model: Any
    tokenizer: Any
    device: str
    commit: str | None

    def compute_logits(self, batch: Sequence[Encoding], **more: Any) -> Any:
        """The model's logits (a float32 tensor on the CPU) for a padded batch."""
        import torch

        inputs = self.tokenizer.pad([dict(encoding) for encoding in batch], return_tensors="pt").to(self.device)
        with torch.inference_mode():
            return self.model(**inputs, **more).logits.float().cpu()

    def count_tokens(self, text: str) -> int:
        """How many tokens a text has, without special ones."""
        return len(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    @property
    def max_positions(self) -> int | None:
        """How many tokens the model's table of absolute positions holds; None where it has none (T5, DeBERTa-v3)."""
        for name, module in self.model.named_modules():
            if name.endswith(("position_embeddings", "embed_positions")) and hasattr(module, "num_embeddings"):
                # RoBERTa counts positions from after its padding index, BART from an offset.
                padding = module.padding_idx
                return module.num_embeddings - (0 if padding is None else padding + 1) - getattr(module, "offset", 0)
        return None


def import_transformers(who_needs: str) -> Any:
    """The package transformers, where PyTorch is there as well. Raises `UsageError` without the [hf] extra."""
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as error:
        raise UsageError(f"{who_needs} the [hf] extra: pip install 'factaudit[hf]' ({error})") from error
    return transformers


def load_transformers_model(
    model_name: str, revision: str | None, device: str, choose_auto_class: Callable[[Any], str]
) -> TransformersModel:
    """Load a model from a local folder or the hub, in float32 and for inference.

    Args:
        choose_auto_class: from the model's config to the name of the transformers class that loads it; raises
            `FactauditError` where the model is of the wrong kind.

    Raises `UsageError` without the [hf] extra or the device, `FactauditError` where no whole model is there.
    """
    transformers = import_transformers(f"the model {model_name!r} needs")
    import torch

    chosen = choose_torch_device(device)
    if model_name.startswith(("/", ".", "~")) and not Path(model_name).is_dir():
        raise FactauditError(f"no model at {model_name!r}: no such folder")
    try:
        config = transformers.AutoConfig.from_pretrained(model_name, revision=revision)
        loader = getattr(transformers, choose_auto_class(config))
        model, report = loader.from_pretrained(model_name, config=config, revision=revision, output_loading_info=True)
        tokenizer = transformers.AutoTokenizer.from_pretrained(model_name, revision=revision)
    except FactauditError:
        raise
    except Exception as error:  # transformers, safetensors and the hub raise as they please
        raise FactauditError(
            f"no model at {model_name!r} (a local folder or a name on the hub): {format_error_first_line(error)}"
        ) from error
    if report["missing_keys"]:
        # transformers fills these with random numbers and goes on.
        missing = ", ".join(sorted(report["missing_keys"])[:3])
        raise FactauditError(f"the model {model_name!r} lacks weights that {type(model).__name__} needs: {missing} ...")
    model = model.to(device=chosen, dtype=torch.float32).eval()
    return TransformersModel(model, tokenizer, chosen, getattr(model.config, "_commit_hash", None))


def transformers_signature_settings(model_name: str, revision: str | None) -> dict[str, str]:
    """What a signature says of a model: its name and revision on the hub; of a folder, the files' checksum."""
    folder = Path(model_name)
    if not folder.is_dir():
        return {"model": model_name, "revision": revision or "main"}
    files = sorted(path for path in folder.iterdir() if path.suffix in _MODEL_FILES and path.is_file())
    stats = tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in files)
    return {"model": folder.resolve().name, "files": _checksum_model_files(stats)}


class TransformersEvaluator:
    """What evaluators over a loaded model share: it is loaded once, when they judge.

    `_load_model` gives an object with ``model`` (a `TransformersModel`), and ``encode`` and ``compute_support`` as
    `judge_by_transformers_chunks` takes them.
    """

    model: str
    batch_size: int
    _loaded: Any = None

    def _load_model(self) -> Any:
        raise NotImplementedError

    def _check_counts(self, *options: str) -> None:
        for option in options:
            value = getattr(self, option)
            if value is not None and value < 1:
                name = type(self).entry.name  # type: ignore[attr-defined]
                raise UsageError(f"{name}: expected a {option} of at least 1, found {value}")

    @property
    def provenance(self) -> dict[str, str | None]:
        """The model's name and the hub commit that it was loaded from (None before `judge`, and for a folder)."""
        name = getattr(self, "_name", self.model)
        return {"model": name, "commit": self._loaded.model.commit if self._loaded else None}

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """One verdict per claim, in any order; claims of one document are best given one after the other."""
        if self._loaded is None:
            self._loaded = self._load_model()
        yield from judge_by_transformers_chunks(
            claims, self._loaded.encode, self._loaded.compute_support, self.batch_size
        )


def judge_by_transformers_chunks(
    claims: Iterable[Claim],
    encode: Callable[[Claim], list[Encoding] | str],
    compute_support: Callable[[Sequence[Encoding]], Sequence[float]],
    batch_size: int,
) -> Iterator[Verdict]:
    """Judge claims by the maximum over the chunks of their documents, batched by length across claims.

    Args:
        encode: the model's inputs for a claim that has a document, one per chunk; or why there is none.
        compute_support: from a batch of inputs to the probabilities of support.
    """
    source = iter(claims)
    while True:
        inputs: list[tuple[str, int, Encoding]] = []
        scores: dict[str, list[float | None]] = {}
        for claim in source:
            if claim.doc is None:
                yield Verdict(claim.claim_id, status="skipped", raw="the claim has no document")
                continue
            encoded = encode(claim)
            if isinstance(encoded, str):
                yield Verdict(claim.claim_id, status="error", raw=encoded)
                continue
            inputs += [(claim.claim_id, position, encoding) for position, encoding in enumerate(encoded)]
            scores[claim.claim_id] = [None] * len(encoded)
            if len(inputs) >= _BATCHES_READ_AHEAD * batch_size:
                break
        if not inputs:
            return
        left = {claim_id: len(chunks) for claim_id, chunks in scores.items()}
        # The longest first: a batch that is too big for the device fails at once.
        inputs.sort(key=lambda item: -len(item[2]["input_ids"]))
        for start in range(0, len(inputs), batch_size):
            batch = inputs[start : start + batch_size]
            found = compute_support([encoding for _, _, encoding in batch])
            for (claim_id, position, _), score in zip(batch, found, strict=True):
                scores[claim_id][position] = score if math.isfinite(score) else None
                left[claim_id] -= 1
                if left[claim_id] == 0:
                    yield _make_transformers_chunk_verdict(claim_id, scores.pop(claim_id))


def find_transformers_length_problem(
    model: TransformersModel, claim: str, claim_tokens: int, max_tokens: int
) -> str | None:
    """Why a claim of so many tokens (special ones included) leaves no room for a document; None where it does."""
    if max_tokens - claim_tokens >= _MIN_DOCUMENT_TOKENS:
        return None
    length = model.count_tokens(claim)
    return f"the claim has {length} tokens, and the model reads {max_tokens} of claim and document together"


def _make_transformers_chunk_verdict(claim_id: str, chunk_scores: list[float | None]) -> Verdict:
    known = [score for score in chunk_scores if score is not None]
    if len(known) < len(chunk_scores):
        return Verdict(
            claim_id, status="error", raw="the model's probability is not a number", chunk_scores=chunk_scores
        )
    return Verdict(claim_id, max(known), chunk_scores=chunk_scores)


def choose_torch_device(device_name: str) -> str:
    """A torch device by its name; ``auto``: CUDA, else MPS, else the CPU. Raises `UsageError`."""
    import torch

    if device_name == "auto":
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.zeros(1, device=device_name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise UsageError(f"the device {device_name!r} cannot be used here: {format_error_first_line(error)}") from None
    return device_name


@lru_cache(maxsize=8)
def _checksum_model_files(file_stats: tuple[tuple[Path, int, int], ...]) -> str:
    return hash_texts(*(part for path, _, _ in file_stats for part in (path.name, compute_file_checksum(path))))
