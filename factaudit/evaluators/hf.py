"""What `minicheck` and `nli` share: loading a transformers model, and running it over claims in batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from factaudit.errors import FactauditError, UsageError
from factaudit.evaluators.base import Claim, Verdict
from factaudit.signature import digest, file_checksum

#: One model input as the tokenizer makes it: ``input_ids`` and, where the model has them, ``token_type_ids`` ...
Encoding = Mapping[str, list[int]]

#: So many batches are read ahead and sorted by length, so that little is padded.
_READ_AHEAD = 8
#: A claim must leave room for at least so many tokens of the document.
_LEAST_ROOM = 32
#: The files of a model folder that decide its verdicts.
_MODEL_FILES = (".json", ".safetensors", ".bin", ".model", ".txt", ".jinja")


@dataclass(frozen=True)
class Model:
    """A loaded model, ready to be asked, with its tokenizer and the hub commit that it came from (None: a folder)."""

    model: Any
    tokenizer: Any
    device: str
    commit: str | None

    def logits(self, batch: Sequence[Encoding], **more: Any) -> Any:
        """The model's logits (a float32 tensor on the CPU) for a padded batch."""
        import torch

        inputs = self.tokenizer.pad([dict(encoding) for encoding in batch], return_tensors="pt").to(self.device)
        with torch.inference_mode():
            return self.model(**inputs, **more).logits.float().cpu()

    def count(self, text: str) -> int:
        """How many tokens a text has, without special ones."""
        return len(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    @property
    def positions(self) -> int | None:
        """How many tokens the model's table of absolute positions holds; None where it has none (T5, DeBERTa-v3)."""
        for name, module in self.model.named_modules():
            if name.endswith(("position_embeddings", "embed_positions")) and hasattr(module, "num_embeddings"):
                # RoBERTa counts positions from after its padding index, BART from an offset.
                padding = module.padding_idx
                return module.num_embeddings - (0 if padding is None else padding + 1) - getattr(module, "offset", 0)
        return None


def load(name: str, revision: str | None, device: str, auto: Callable[[Any], str]) -> Model:
    """Load a model from a local folder or the hub, in float32 and for inference.

    Args:
        auto: from the model's config to the name of the transformers class that loads it; raises `FactauditError`
            where the model is of the wrong kind.

    Raises `UsageError` without the [hf] extra or the device, `FactauditError` where no whole model is there.
    """
    try:
        import torch
        import transformers
    except ImportError as error:
        raise UsageError(f"the model {name!r} needs the [hf] extra: pip install 'factaudit[hf]' ({error})") from error
    chosen = pick_device(device)
    if name.startswith(("/", ".", "~")) and not Path(name).is_dir():
        raise FactauditError(f"no model at {name!r}: no such folder")
    try:
        config = transformers.AutoConfig.from_pretrained(name, revision=revision)
        loader = getattr(transformers, auto(config))
        model, report = loader.from_pretrained(name, config=config, revision=revision, output_loading_info=True)
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, revision=revision)
    except FactauditError:
        raise
    except Exception as error:  # transformers, safetensors and the hub raise as they please
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise FactauditError(f"no model at {name!r} (a local folder or a name on the hub): {reason}") from error
    if report["missing_keys"]:
        # transformers fills these with random numbers and goes on.
        missing = ", ".join(sorted(report["missing_keys"])[:3])
        raise FactauditError(f"the model {name!r} lacks weights that {type(model).__name__} needs: {missing} ...")
    model = model.to(device=chosen, dtype=torch.float32).eval()
    return Model(model, tokenizer, chosen, getattr(model.config, "_commit_hash", None))


def settings(name: str, revision: str | None) -> dict[str, str]:
    """What a signature says of a model: its name and revision on the hub; of a folder, the files' checksum."""
    folder = Path(name)
    if not folder.is_dir():
        return {"model": name, "revision": revision or "main"}
    files = sorted(path for path in folder.iterdir() if path.suffix in _MODEL_FILES and path.is_file())
    stats = tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in files)
    return {"model": folder.resolve().name, "files": _checksum(stats)}


def judge(
    claims: Iterable[Claim],
    encode: Callable[[Claim], list[Encoding] | str],
    support: Callable[[Sequence[Encoding]], Sequence[float]],
    batch_size: int,
) -> Iterator[Verdict]:
    """Judge claims by the maximum over the chunks of their documents, batched by length across claims.

    Args:
        encode: the model's inputs for a claim that has a document, one per chunk; or why there is none.
        support: from a batch of inputs to the probabilities of support.
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
            if len(inputs) >= _READ_AHEAD * batch_size:
                break
        if not inputs:
            return
        left = {claim_id: len(chunks) for claim_id, chunks in scores.items()}
        # The longest first: a batch that is too big for the device fails at once.
        inputs.sort(key=lambda item: -len(item[2]["input_ids"]))
        for start in range(0, len(inputs), batch_size):
            batch = inputs[start : start + batch_size]
            found = support([encoding for _, _, encoding in batch])
            for (claim_id, position, _), score in zip(batch, found, strict=True):
                scores[claim_id][position] = score if math.isfinite(score) else None
                left[claim_id] -= 1
                if left[claim_id] == 0:
                    yield _verdict(claim_id, scores.pop(claim_id))


def too_long(model: Model, claim: str, taken: int, limit: int) -> str | None:
    """Why a claim of so many tokens (special ones included) leaves no room for a document; None where it does."""
    if limit - taken >= _LEAST_ROOM:
        return None
    return f"the claim has {model.count(claim)} tokens, and the model reads {limit} of claim and document together"


def _verdict(claim_id: str, scores: list[float | None]) -> Verdict:
    known = [score for score in scores if score is not None]
    if len(known) < len(scores):
        return Verdict(claim_id, status="error", raw="the model's probability is not a number", chunk_scores=scores)
    return Verdict(claim_id, max(known), chunk_scores=scores)


def pick_device(name: str) -> str:
    """A torch device by its name; ``auto``: CUDA, else MPS, else the CPU. Raises `UsageError`."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise UsageError(f"the device {name!r} cannot be used here: {str(error).splitlines()[0]}") from None
    return name


@lru_cache(maxsize=8)
def _checksum(stats: tuple[tuple[Path, int, int], ...]) -> str:
    return digest(*(part for path, _, _ in stats for part in (path.name, file_checksum(path))))
