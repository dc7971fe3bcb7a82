"""AlignScore (Zha et al. 2023), which VC has in Tables 3 to 7: a RoBERTa that was trained to tell alignment."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from factaudit.errors import FactauditError, UsageError
from factaudit.evaluators import hf
from factaudit.evaluators.base import Claim, Verdict
from factaudit.paths import NameOrPath
from factaudit.signature import file_checksum, signature
from factaudit.text.chunks import words
from factaudit.text.sentences import split_sentences

#: The published checkpoints, all in one repository of the hub, and the RoBERTa that each was trained from.
REPOSITORY = "yzha/AlignScore"
PUBLISHED = {
    "base": ("AlignScore-base.ckpt", "roberta-base"),
    "large": ("AlignScore-large.ckpt", "roberta-large"),
}
#: Words (what the paper calls tokens) that a chunk should have about, as published.
CHUNK_WORDS = 350


@dataclass
class AlignScore:
    """P(aligned) of the three-way head: the maximum over chunks for each sentence of the claim, then their mean.

    Args:
        model: ``large``, ``base`` (the published ones, from the hub) or a checkpoint file: Lightning's ``.ckpt``, which
            is read as weights only, or ``.safetensors``.
        backbone: the RoBERTa whose configuration and tokenizer a checkpoint file goes with: a folder or a hub name.
        revision: of the published checkpoint on the hub. device, batch_size: as in
            `factaudit.evaluators.minicheck.MiniCheck`.

    As the authors' code in its mode ``nli_sp`` (github.com/yuh-zha/AlignScore): the end of a chunk that is longer than
    the model reads beside the sentence is cut off. Where a sentence leaves the document no room, its claim is an error.
    """

    model: NameOrPath = "large"
    backbone: str = ""
    revision: str | None = None
    device: str = "auto"
    batch_size: int = 16

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise UsageError(f"alignscore: expected a batch_size of at least 1, found {self.batch_size}")
        if self.model not in PUBLISHED:
            if not Path(self.model).is_file():
                known = ", ".join(PUBLISHED)
                raise UsageError(f"alignscore: expected model to be {known} or a checkpoint, found {self.model!r}")
            if not self.backbone:
                raise UsageError(
                    "alignscore: a checkpoint file needs backbone=FOLDER or NAME: the RoBERTa that it is of"
                )
        self._backbone = self.backbone or PUBLISHED[self.model][1]
        self._loaded: _Loaded | None = None

    @property
    def signature(self) -> str:
        """The published checkpoint's name and revision, or the file's checksum; and the backbone."""
        own = {"model": self.model, "revision": self.revision or "main"}
        if self.model not in PUBLISHED:
            own = {"model": Path(self.model).name, "file": file_checksum(Path(self.model))}
        backbone = hf.settings(self._backbone, None)
        return signature("alignscore", own | {"backbone": backbone["model"]})

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """One verdict per claim, in any order; claims of one document are best given one after the other."""
        if self._loaded is None:
            self._loaded = self._load()
        waiting: dict[str, _Pending] = {}
        sentences = _sentences(claims, waiting)
        for verdict in hf.judge(sentences, self._loaded.encode, self._loaded.support, self.batch_size):
            claim_id, _, position = verdict.claim_id.rpartition("#")
            pending = waiting[claim_id]
            pending.verdicts[int(position)] = verdict
            if len(pending.verdicts) == pending.sentences:
                del waiting[claim_id]
                yield pending.combined(claim_id)

    def _load(self) -> _Loaded:
        try:
            import torch
            import transformers
        except ImportError as error:
            raise UsageError(f"alignscore needs the [hf] extra: pip install 'factaudit[hf]' ({error})") from error
        path = _published(self.model, self.revision) if self.model in PUBLISHED else Path(self.model)
        weights = read_weights(path)
        try:
            config = transformers.AutoConfig.from_pretrained(self._backbone)
            tokenizer = transformers.AutoTokenizer.from_pretrained(self._backbone)
        except Exception as error:  # transformers and the hub raise as they please
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise FactauditError(
                f"no RoBERTa at {self._backbone!r} (a folder or a name on the hub): {reason}"
            ) from error
        if config.model_type != "roberta":
            raise FactauditError(f"alignscore: expected a RoBERTa as the backbone, found {config.model_type!r}")

        class Aligner(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.config = config
                self.base_model = transformers.RobertaModel(config, add_pooling_layer=True)
                self.tri_layer = torch.nn.Linear(config.hidden_size, 3)

            def forward(self, **inputs: Any) -> SimpleNamespace:
                return SimpleNamespace(logits=self.tri_layer(self.base_model(**inputs).pooler_output))

        model = Aligner()
        # The heads for two classes, for a number and for masked words are of no use here.
        wanted = {name: values for name, values in weights.items() if name.startswith(("base_model.", "tri_layer."))}
        try:
            missing, _ = model.load_state_dict(wanted, strict=False)
        except RuntimeError as error:
            raise FactauditError(
                f"{path} is not of {self._backbone!r}: {str(error).splitlines()[-1].strip()}"
            ) from error
        if missing:
            raise FactauditError(f"{path} is no AlignScore checkpoint: it lacks {', '.join(sorted(missing)[:3])} ...")
        device = hf.pick_device(self.device)
        return _Loaded(hf.Model(model.to(device).float().eval(), tokenizer, device, None))


@dataclass(frozen=True)
class _Loaded:
    """A loaded model with its tokenizer."""

    model: hf.Model

    def encode(self, sentence: Claim) -> list[hf.Encoding] | str:
        """The model's inputs for each chunk of the document beside one sentence, or why there are none."""
        tokenizer, mark = self.model.tokenizer, self.model.tokenizer.sep_token
        # A claim must not bring a document of its own.
        said, doc = sentence.claim.replace(mark, " "), (sentence.doc or "").replace(mark, " ")
        limit = self.model.positions or tokenizer.model_max_length
        if problem := hf.too_long(self.model, said, len(tokenizer("", said, verbose=False)["input_ids"]), limit):
            return problem
        return [tokenizer(part, said, max_length=limit, truncation="only_first") for part in chunks(doc)]

    def support(self, batch: Sequence[hf.Encoding]) -> list[float]:
        """P(aligned), the first of the three classes."""
        return self.model.logits(batch).softmax(dim=-1)[:, 0].tolist()


@lru_cache(maxsize=8)
def chunks(doc: str) -> tuple[str, ...]:
    """Chunks as AlignScore makes them: equal numbers of sentences, so many that a chunk has about 350 words.

    What is left over by the division is a chunk more. A blank document is one blank chunk.
    """
    found = split_sentences(doc) or [""]
    size = max(len(found) // (words(doc) // CHUNK_WORDS + 1), 1)
    return tuple(" ".join(found[start : start + size]) for start in range(0, len(found), size))


def read_weights(path: Path) -> dict[str, Any]:
    """The tensors of a checkpoint by name; never runs what a pickle would.

    Raises `FactauditError` where the file holds more than weights, or is no checkpoint.
    """
    import torch

    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise FactauditError(
            f"{path} holds more than weights, which is not read (a pickle can run anything): convert it to .safetensors"
        ) from error
    except Exception as error:  # torch and safetensors have no common kind for a file that is cut off
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise FactauditError(f"{path} cannot be read as a checkpoint: {reason}") from error
    weights = loaded.get("state_dict", loaded) if isinstance(loaded, dict) else {}
    return {name: values for name, values in weights.items() if isinstance(values, torch.Tensor)}


def _published(model: str, revision: str | None) -> Path:
    try:
        from huggingface_hub import hf_hub_download

        return Path(hf_hub_download(REPOSITORY, PUBLISHED[model][0], revision=revision))
    except Exception as error:  # the hub's client raises as it pleases
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise FactauditError(f"{REPOSITORY}/{PUBLISHED[model][0]} could not be downloaded: {reason}") from error


def _sentences(claims: Iterable[Claim], waiting: dict[str, _Pending]) -> Iterator[Claim]:
    """Each sentence of each claim as a claim of its own; ``waiting`` is told how many there are."""
    for claim in claims:
        found = split_sentences(claim.claim) or [claim.claim]
        waiting[claim.claim_id] = _Pending(len(found))
        for position, sentence in enumerate(found):
            yield Claim(f"{claim.claim_id}#{position}", sentence, claim.doc, claim.topic)


@dataclass
class _Pending:
    """The verdicts of one claim's sentences, as they come."""

    sentences: int
    verdicts: dict[int, Verdict] = field(default_factory=dict)

    def combined(self, claim_id: str) -> Verdict:
        ordered = [self.verdicts[position] for position in range(self.sentences)]
        failed = next((verdict for verdict in ordered if verdict.score is None), None)
        if failed is not None:
            return Verdict(claim_id, status=failed.status, raw=failed.raw)
        return Verdict(claim_id, sum(verdict.score or 0.0 for verdict in ordered) / len(ordered))
