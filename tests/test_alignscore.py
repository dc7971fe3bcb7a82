"""AlignScore on a tiny model: the real architecture and checkpoint format against a plain loop over single examples."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from tiny_models import judged, sentences

from factaudit.errors import FactauditError, UsageError
from factaudit.evaluators import alignscore
from factaudit.evaluators.alignscore import AlignScoreEvaluator, split_alignscore_chunks
from factaudit.evaluators.base import Claim
from factaudit.evaluators.registry import make_evaluator
from factaudit.text.sentences import split_sentences


def some_claims(n: int = 18) -> list[Claim]:
    rng = random.Random(1)
    docs: list[str] = []
    for number in range(n):
        docs.append(docs[-1] if number % 3 == 2 else sentences(rng, rng.choice([1, 60, 90])))
    return [Claim(f"c#{number}", sentences(rng, rng.choice([1, 1, 3])), doc) for number, doc in enumerate(docs)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A RoBERTa's folder with ``AlignScore.ckpt`` in it: what Lightning saves of the authors' model."""
    import torch
    import transformers

    folder = tiny_models.masked_lm(tmp_path_factory.mktemp("alignscore") / "roberta")
    base = transformers.RobertaModel.from_pretrained(folder, add_pooling_layer=True)
    hidden = base.config.hidden_size
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        for values in base.pooler.parameters():
            torch.nn.init.normal_(values, std=0.4)
        heads = {name: torch.nn.Linear(hidden, size) for name, size in (("bin", 2), ("tri", 3), ("reg", 1))}
        for head in heads.values():
            torch.nn.init.normal_(head.weight, std=0.4)
    weights = {f"base_model.{name}": values for name, values in base.state_dict().items()}
    # Older transformers, which the published checkpoints are of, saved this buffer, too.
    weights["base_model.embeddings.position_ids"] = torch.arange(base.config.max_position_embeddings)[None]
    weights["mlm_head.bias"] = torch.zeros(base.config.vocab_size)
    for name, head in heads.items():
        weights |= {f"{name}_layer.{key}": values for key, values in head.state_dict().items()}
    settings = {"model": "roberta-large", "using_pretrained": True, "adam_epsilon": 1e-6}
    torch.save({"epoch": 3, "state_dict": weights, "hyper_parameters": settings}, folder / "AlignScore.ckpt")
    return folder


@pytest.fixture
def evaluator(folder: Path) -> AlignScoreEvaluator:
    return AlignScoreEvaluator(str(folder / "AlignScore.ckpt"), backbone=str(folder), device="cpu")


def one_by_one(folder: Path) -> Any:
    """From a pair of texts to P(aligned), each run alone, without any of the project's code."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    saved = torch.load(folder / "AlignScore.ckpt", weights_only=True)["state_dict"]
    base = transformers.RobertaModel(transformers.AutoConfig.from_pretrained(folder)).eval()
    own = base.state_dict()
    base.load_state_dict({name: saved[f"base_model.{name}"] for name in own})

    def aligned(premise: str, hypothesis: str) -> float:
        inputs = tokenizer(premise, hypothesis, truncation="only_first", max_length=128, return_tensors="pt")
        with torch.no_grad():
            pooled = base(**inputs).pooler_output[0]
        return float(torch.softmax(saved["tri_layer.weight"] @ pooled + saved["tri_layer.bias"], -1)[0])

    return aligned


@pytest.mark.hf
@pytest.mark.parametrize("batch_size", [1, 7])
def test_equals_a_plain_loop(folder: Path, batch_size: int) -> None:
    claims = some_claims()
    found = judged(AlignScoreEvaluator(str(folder / "AlignScore.ckpt"), str(folder), batch_size=batch_size), claims)
    aligned = one_by_one(folder)
    several = cut = 0
    for claim in claims:
        assert claim.doc is not None
        parts, said = split_sentences(claim.doc), split_sentences(claim.claim)
        size = max(len(parts) // (len(claim.doc.split()) // 350 + 1), 1)
        premises = [" ".join(parts[at : at + size]) for at in range(0, len(parts), size)]
        expected = np.mean([max(aligned(premise, sentence) for premise in premises) for sentence in said])
        assert found[claim.claim_id].score == pytest.approx(expected, abs=1e-5)
        several += len(said) > 1
        cut += len(premises) > 1
    assert several > 2
    assert cut > 2
    assert np.std([verdict.score for verdict in found.values()]) > 0.01


def test_chunks_are_equal_numbers_of_sentences() -> None:
    sentence = "One two three four five six seven eight nine ten."
    assert split_alignscore_chunks(" ".join([sentence] * 34)) == (" ".join([sentence] * 34),)  # 340 words
    # 800 words: three chunks are wanted, 80 sentences make them 26 long, and two sentences are left over.
    assert [len(split_sentences(part)) for part in split_alignscore_chunks(" ".join([sentence] * 80))] == [
        26,
        26,
        26,
        2,
    ]
    assert split_alignscore_chunks(" \n ") == ("",)


class Harm:
    """A pickle that would write a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.path, "run")


@pytest.mark.hf
def test_a_checkpoint_runs_nothing(tmp_path: Path, folder: Path) -> None:
    import torch

    path, written = tmp_path / "bad.ckpt", tmp_path / "written"
    torch.save({"state_dict": {}, "callbacks": Harm(written)}, path)
    with pytest.raises(FactauditError, match=r"bad\.ckpt contains more than weights.*convert it to \.safetensors"):
        judged(AlignScoreEvaluator(str(path), backbone=str(folder)), some_claims(1))
    assert not written.exists()


@pytest.mark.hf
def test_what_is_no_checkpoint_is_said(tmp_path: Path, folder: Path) -> None:
    import torch

    path = tmp_path / "other.ckpt"
    torch.save({"state_dict": {"weight": torch.zeros(2)}}, path)
    with pytest.raises(FactauditError, match=r"other\.ckpt is no AlignScore checkpoint: it lacks base_model"):
        judged(AlignScoreEvaluator(str(path), backbone=str(folder)), some_claims(1))
    path.write_bytes((folder / "AlignScore.ckpt").read_bytes()[:1000])
    with pytest.raises(FactauditError, match=r"other\.ckpt cannot be read as a checkpoint"):
        judged(AlignScoreEvaluator(str(path), backbone=str(folder)), some_claims(1))
    bert = tiny_models.bert_classifier(tmp_path / "bert", {0: "a", 1: "b"})
    with pytest.raises(FactauditError, match="expected a RoBERTa as the backbone, found 'bert'"):
        judged(AlignScoreEvaluator(str(folder / "AlignScore.ckpt"), backbone=str(bert)), some_claims(1))
    small = tiny_models.masked_lm(tmp_path / "small", positions=66)
    with pytest.raises(FactauditError, match=r"AlignScore\.ckpt is not of .*small"):
        judged(AlignScoreEvaluator(str(folder / "AlignScore.ckpt"), backbone=str(small)), some_claims(1))


def test_options_are_checked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected model to be base, large or a checkpoint, found 'huge'"):
        make_evaluator("alignscore", {"model": "huge"})
    path = tmp_path / "some.ckpt"
    path.write_bytes(b"")
    with pytest.raises(UsageError, match="a checkpoint file needs backbone="):
        make_evaluator("alignscore", {"model": str(path)})
    with pytest.raises(UsageError, match="expected a batch_size of at least 1, found 0"):
        make_evaluator("alignscore", {"batch_size": 0})
    made = make_evaluator("alignscore", {"model": "base"})
    assert made.signature == "alignscore|backbone:roberta-base|model:base|revision:main"
    assert alignscore.PUBLISHED_CHECKPOINTS["large"] == ("AlignScore-large.ckpt", "roberta-large")


@pytest.mark.hf
def test_missing_documents_and_sentences_that_are_too_long(evaluator: AlignScoreEvaluator) -> None:
    rng = random.Random(5)
    long = " ".join(rng.choices(tiny_models.WORDS, k=150)).capitalize() + "."
    claims = [
        Claim("none", "The mill. The sea.", None),
        Claim("blank", "The mill.", " "),
        Claim("long", f"The mill. {long}", sentences(rng, 5)),
        Claim("fine", "The mill.", sentences(rng, 5)),
    ]
    found = judged(evaluator, claims)
    assert (found["none"].status, found["none"].score) == ("skipped", None)
    assert (found["long"].status, found["long"].score) == ("error", None)
    assert "of claim and document together" in str(found["long"].raw)
    assert found["blank"].score is not None
    assert found["fine"].status == "ok"
