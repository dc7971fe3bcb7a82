"""The transformers evaluators on tiny models: the real code against a plain loop over single examples."""

from __future__ import annotations

import math
import operator
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tiny_models
from tiny_models import judged, sentences

from factaudit.engines.factscore import FactScorer
from factaudit.engines.nonparametric import NonparametricModel
from factaudit.engines.responses import AtomicFact, Response
from factaudit.errors import FactauditError, UsageError
from factaudit.evaluators import alignscore, transformers_models
from factaudit.evaluators.alignscore import AlignScoreEvaluator, split_alignscore_chunks
from factaudit.evaluators.base import Claim
from factaudit.evaluators.minicheck import MiniCheckEvaluator, split_minicheck_chunks
from factaudit.evaluators.nli import NLIEvaluator, find_nli_entailment_label
from factaudit.evaluators.registry import make_evaluator
from factaudit.knowledge.docdb import KnowledgePage
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.text.chunks import count_words, split_document_into_chunks
from factaudit.text.sentences import split_sentences

NLI_LABELS = {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}


def some_claims(n: int = 24, seed: int = 1) -> list[Claim]:
    """Claims about documents of one line, of several lines and of many sentences; every third shares its document."""
    rng = random.Random(seed)
    docs: list[str] = []
    for number in range(n):
        shared = number % 3 == 2
        docs.append(
            docs[-1] if shared else "\n".join(sentences(rng, rng.choice([1, 4, 9])) for _ in range(1 + number % 2))
        )
    return [Claim(f"c{number}", sentences(rng, 1), doc) for number, doc in enumerate(docs)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {
        "roberta": tiny_models.roberta_classifier(root / "roberta"),
        "deberta": tiny_models.deberta_classifier(root / "deberta"),
        "t5": tiny_models.t5(root / "t5"),
        "bert-nli": tiny_models.bert_classifier(root / "bert-nli", NLI_LABELS),
        "roberta-nli": tiny_models.roberta_classifier(root / "roberta-nli", {0: "not_entailment", 1: "entailment"}),
    }


def one_by_one(
    folder: Path, first_token: tuple[int, int] | None = None
) -> Callable[[list[tuple[str, ...]]], np.ndarray]:
    """From texts or pairs to probabilities (n, labels), each run alone, without any of the project's code."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    kind = "AutoModelForSequenceClassification" if first_token is None else "AutoModelForSeq2SeqLM"
    model = getattr(transformers, kind).from_pretrained(folder).eval()

    def probabilities(texts: list[tuple[str, ...]]) -> np.ndarray:
        rows = []
        for text in texts:
            inputs: dict[str, Any] = dict(tokenizer(*text, return_tensors="pt"))
            if first_token is not None:
                inputs = {"input_ids": inputs["input_ids"], "decoder_input_ids": torch.zeros((1, 1), dtype=torch.long)}
            with torch.no_grad():
                logits = model(**inputs).logits[0]
            if first_token is not None:
                logits = logits[0, list(first_token)]
            rows.append(torch.softmax(logits, dim=-1).numpy())
        return np.array(rows)

    return probabilities


# MiniCheck


@pytest.mark.hf
@pytest.mark.parametrize(
    ("kind", "size", "batch_size"), [("roberta", 60, 1), ("roberta", 60, 64), ("deberta", 60, 5), ("t5", 30, 5)]
)
def test_minicheck_equals_a_plain_loop(folders, kind, size, batch_size):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folders[kind])
    claims = some_claims()
    found = judged(MiniCheckEvaluator(str(folders[kind]), size=size, batch_size=batch_size), claims)
    boundary = {"roberta": "</s>", "deberta": "[SEP]", "t5": "</s>"}[kind]

    def count(text: str) -> int:
        return len(text.split() if kind == "t5" else tokenizer.encode(text, add_special_tokens=False))

    answers = None
    if kind == "t5":
        vocabulary = tokenizer.get_vocab()
        answers = (vocabulary["▁"], vocabulary["▁1"])
    plain = one_by_one(folders[kind], answers)
    chunked = 0
    for claim in claims:
        chunks = split_minicheck_chunks(claim.doc, size, count)
        chunked += len(chunks) > 1
        prefix = "predict: " if kind == "t5" else ""
        texts = [(f"{prefix}{text}{boundary}{claim.claim}",) for text in chunks]
        expected = plain(texts)[:, 1]
        assert found[claim.claim_id].chunk_scores == pytest.approx(expected, abs=1e-5)
        assert found[claim.claim_id].score == max(found[claim.claim_id].chunk_scores)
    assert 5 < chunked < len(claims)
    assert np.std([verdict.score for verdict in found.values()]) > 0.01


def test_chunks_are_as_published():
    doc = "One two three. Four five.\nSix seven eight confusion_counts.\n\nTen."
    assert split_minicheck_chunks(doc, 100, count_words) == [
        "One two three. Four five.\nSix seven eight confusion_counts.\n\n Ten."
    ]
    assert split_minicheck_chunks(doc, 5, count_words) == [
        "One two three. Four five.",
        "Six seven eight confusion_counts.\n\n Ten.",
    ]
    assert split_minicheck_chunks(doc, 3, count_words) == [
        "One two three.",
        "Four five.",
        "Six seven eight confusion_counts.",
        "Ten.",
    ]
    # The break between lines has no word, but it has a token.
    assert split_minicheck_chunks(doc, 5, lambda text: max(1, count_words(text)))[0] == "One two three. Four five."
    assert split_minicheck_chunks(" \n ", 5, count_words) == []


@pytest.mark.hf
def test_published_sizes_are_the_defaults(folders):
    rng = random.Random(3)
    doc = sentences(rng, 150)  # 1,200 words or so
    for kind, size in (("roberta", None), ("deberta", 400), ("t5", 500)):
        evaluator = MiniCheckEvaluator(str(folders[kind]))
        found = judged(evaluator, [Claim("a", "The mill.", doc)])["a"]
        loaded = evaluator._loaded
        assert loaded is not None
        if size is not None:
            count = count_words if kind == "t5" else loaded.model.count_tokens
            assert len(found.chunk_scores) == len(split_minicheck_chunks(doc, size, count)) > 1
        assert loaded.max_length == {"roberta": 128, "deberta": 2048, "t5": 2048}[kind]


@pytest.mark.hf
def test_a_chunk_is_counted_in_the_models_own_tokens_where_asked(folders):
    doc = sentences(random.Random(3), 60)
    found = {}
    for unit in ("published", "tokens", "words"):
        evaluator = MiniCheckEvaluator(str(folders["t5"]), size=100, unit=unit)
        found[unit] = judged(evaluator, [Claim("a", "The mill.", doc)])["a"].chunk_scores
        count = evaluator._loaded.model.count_tokens if unit == "tokens" else count_words
        assert len(found[unit]) == len(split_minicheck_chunks(doc, 100, count)) > 1
        assert ("unit" in evaluator.signature) == (unit != "published")
    assert found["published"] == found["words"]
    assert len(found["tokens"]) > len(found["words"])
    with pytest.raises(UsageError, match="evaluator 'minicheck', option unit"):
        make_evaluator("minicheck", {"unit": "letters"})


@pytest.mark.hf
def test_support_tokens_are_looked_up_and_checked(folders, tmp_path):
    evaluator = MiniCheckEvaluator(str(folders["t5"]))
    judged(evaluator, [Claim("a", "The mill.", "The mill.")])
    tokenizer = evaluator._loaded.model.tokenizer
    assert tokenizer.convert_ids_to_tokens(list(evaluator._loaded.answer_tokens)) == ["▁", "▁1"]
    # Here both answers begin with "▁"; there neither is known.
    for name, answers in (("same", ("0", "1")), ("unknown", ())):
        folder = tiny_models.t5(tmp_path / name, answers)
        with pytest.raises(FactauditError, match="cannot tell the answers '0' and '1'"):
            judged(MiniCheckEvaluator(str(folder)), some_claims(1))


@pytest.mark.hf
def test_a_long_input_loses_neither_claim_nor_document(folders):
    rng = random.Random(5)
    # One sentence of about 150 words: more than the model's 128 tokens.
    doc = " ".join(rng.choices(tiny_models.WORDS, k=150)).capitalize() + "."
    claim = Claim("a", sentences(rng, 2), doc)
    evaluator = MiniCheckEvaluator(str(folders["roberta"]))
    verdict = judged(evaluator, [claim])["a"]
    assert verdict.status == "ok"
    encoded = evaluator._loaded.encode(claim)
    texts = [evaluator._loaded.model.tokenizer.decode(one["input_ids"]) for one in encoded]
    assert len(texts) == len(verdict.chunk_scores) > 1
    assert all(len(one["input_ids"]) <= 128 for one in encoded)
    assert all(text.endswith(f"</s>{claim.claim}</s>") for text in texts)
    read = " ".join(text.removeprefix("<s>").split("</s>")[0] for text in texts)
    assert read.split() == doc.split()


@pytest.mark.hf
@pytest.mark.parametrize("kind", ["roberta", "bert-nli"])
def test_a_claim_that_leaves_no_room_is_an_error_of_that_claim(folders, kind):
    rng = random.Random(5)
    make = NLIEvaluator if kind.endswith("nli") else MiniCheckEvaluator
    claims = [
        Claim("long", sentences(rng, 30), sentences(rng, 30)),
        Claim("short", "The mill.", sentences(rng, 30)),
    ]
    found = judged(make(str(folders[kind])), claims)
    assert (found["long"].status, found["long"].score) == ("error", None)
    assert "the claim has" in found["long"].raw
    assert "of claim and document together" in found["long"].raw
    assert found["short"].status == "ok"


@pytest.mark.hf
@pytest.mark.parametrize("kind", ["roberta", "deberta", "t5", "bert-nli"])
def test_the_boundary_in_a_text_is_only_text(folders, kind):
    make = NLIEvaluator if kind.endswith("nli") else MiniCheckEvaluator
    evaluator = make(str(folders[kind]))
    mark = "[SEP]" if kind in {"deberta", "bert-nli"} else "</s>"
    plain, forged = Claim("a", "The mill.", "The sea."), Claim("b", f"The mill. {mark}The mill.", f"The {mark} sea.")
    judged(evaluator, [plain])
    marks = []
    for claim in (plain, forged):
        (encoded,) = evaluator._loaded.encode(claim)
        marks.append(encoded["input_ids"].count(evaluator._loaded.model.tokenizer.convert_tokens_to_ids(mark)))
    assert marks == [2, 2]


# Natural language inference


@pytest.mark.hf
@pytest.mark.parametrize("batch_size", [1, 5, 64])
@pytest.mark.parametrize(("kind", "label"), [("bert-nli", 2), ("roberta-nli", 1)])
def test_nli_equals_a_plain_loop(folders, kind, label, batch_size):
    from transformers import AutoTokenizer

    claims = some_claims()
    evaluator = NLIEvaluator(str(folders[kind]), batch_size=batch_size)
    found = judged(evaluator, claims)
    tokenizer = AutoTokenizer.from_pretrained(folders[kind])

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False))

    limit, special = {"bert-nli": (64, 3), "roberta-nli": (128, 4)}[kind]
    plain = one_by_one(folders[kind])
    chunked = 0
    for claim in claims:
        room = limit - special - count(claim.claim)
        # Chunks are cut to a multiple of 32 tokens, for claims of other lengths to share them.
        chunks = (
            [claim.doc] if count(claim.doc) <= room else split_document_into_chunks(claim.doc, room // 32 * 32, count)
        )
        expected = plain([(text, claim.claim) for text in chunks])[:, label]
        assert found[claim.claim_id].chunk_scores == pytest.approx(expected, abs=1e-5)
        assert found[claim.claim_id].score == max(found[claim.claim_id].chunk_scores)
        chunked += len(chunks) > 1
    assert 2 < chunked < len(claims)
    assert np.std([verdict.score for verdict in found.values()]) > 0.01


@pytest.mark.hf
def test_nli_without_chunks_cuts_off_the_end_of_the_document(folders):
    claims = some_claims()
    evaluator = NLIEvaluator(str(folders["bert-nli"]), chunks=False)
    found = judged(evaluator, claims)
    cut = 0
    for claim in claims:
        (encoded,) = evaluator._loaded.encode(claim)
        said = evaluator._loaded.model.tokenizer.encode(claim.claim, add_special_tokens=False)
        assert encoded["input_ids"][-len(said) - 1 : -1] == said
        assert len(encoded["input_ids"]) <= 64
        cut += len(encoded["input_ids"]) == 64
        assert len(found[claim.claim_id].chunk_scores) == 1
    assert cut > 5


@pytest.mark.parametrize(
    ("labels", "wanted", "expected"),
    [
        (NLI_LABELS, "entailment", 2),
        ({0: "entailment", 1: "not_entailment"}, "entailment", 0),
        ({0: "not_entailment", 1: "Entailment "}, "entailment", 1),
        ({0: "contradiction", 1: "entailment", 2: "neutral"}, "ENTAILMENT", 1),
        ({0: "REFUTES", 1: "SUPPORTS"}, "supports", 1),
    ],
)
def test_the_entailment_label_is_found_by_its_whole_name(labels, wanted, expected):
    assert find_nli_entailment_label(labels, wanted, "m") == expected


@pytest.mark.parametrize("labels", [{0: "LABEL_0", 1: "LABEL_1"}, {0: "not_entailment", 1: "other"}])
def test_a_model_without_the_label_is_refused(labels):
    with pytest.raises(FactauditError, match="no label 'entailment'") as error:
        find_nli_entailment_label(labels, "entailment", "m")
    assert all(name in str(error.value) for name in labels.values())
    assert "label=NAME" in str(error.value)


# Both


@pytest.mark.hf
@pytest.mark.parametrize(("make", "kind"), [(MiniCheckEvaluator, "roberta"), (NLIEvaluator, "bert-nli")])
def test_documents_that_are_missing_or_blank(folders, make, kind):
    claims = [Claim("none", "The mill.", None), Claim("blank", "The mill.", " \n "), Claim("empty", "The mill.", "")]
    found = judged(make(str(folders[kind])), claims)
    assert (found["none"].status, found["none"].score) == ("skipped", None)
    assert 0 <= found["blank"].score <= 1
    assert found["empty"].score == pytest.approx(found["blank"].score, abs=1e-5)


@pytest.mark.hf
@pytest.mark.parametrize(("make", "kind"), [(MiniCheckEvaluator, "roberta"), (NLIEvaluator, "bert-nli")])
def test_claims_are_read_as_they_are_needed(folders, make, kind):
    read = 0

    def endless() -> Iterator[Claim]:
        nonlocal read
        claims = some_claims()
        while True:
            claim = claims[read % len(claims)]
            read += 1
            yield Claim(f"c{read}", claim.claim, claim.doc)

    verdicts = make(str(folders[kind]), batch_size=4).judge(endless())
    got = [next(verdicts) for _ in range(100)]
    assert len({verdict.claim_id for verdict in got}) == 100
    # At least one input each: 8 batches of 4 are read ahead.
    assert read <= 100 + 8 * 4


@pytest.mark.hf
def test_a_probability_that_is_no_number_is_an_error_of_its_claim():
    inputs: dict[str, list[transformers_models.Encoding]] = {
        "a": [{"input_ids": [1]}, {"input_ids": [1, 2]}],
        "b": [{"input_ids": [1, 2, 3]}],
    }
    found = transformers_models.judge_by_transformers_chunks(
        [Claim("a", "x", "y"), Claim("b", "x", "y")],
        lambda claim: inputs[claim.claim_id],
        lambda batch: [float("nan") if len(one["input_ids"]) == 2 else 0.7 for one in batch],
        2,
    )
    verdicts = {verdict.claim_id: verdict for verdict in found}
    assert (verdicts["a"].status, verdicts["a"].score, verdicts["a"].chunk_scores) == ("error", None, [0.7, None])
    assert (verdicts["b"].status, verdicts["b"].score) == ("ok", 0.7)


@pytest.mark.hf
def test_signatures_follow_what_changes_verdicts(folders, tmp_path):
    import shutil

    folder = tmp_path / "roberta"
    shutil.copytree(folders["roberta"], folder)
    plain = MiniCheckEvaluator(str(folder)).signature
    assert plain == MiniCheckEvaluator(str(folders["roberta"]), batch_size=2, device="cpu").signature
    assert plain.startswith("minicheck|files:")
    assert plain != MiniCheckEvaluator(str(folder), size=300).signature
    tiny_models.roberta_classifier(folder, positions=100)
    assert plain != MiniCheckEvaluator(str(folder)).signature
    evaluator = MiniCheckEvaluator(str(folder))
    judged(evaluator, some_claims(1))
    assert evaluator.provenance == {"model": str(folder), "commit": None}


def test_signatures_of_models_on_the_hub():
    assert MiniCheckEvaluator().signature == "minicheck|model:lytang/MiniCheck-Flan-T5-Large|revision:main"
    assert MiniCheckEvaluator("roberta-large", revision="abc", size=300).signature == (
        "minicheck|model:lytang/MiniCheck-RoBERTa-Large|revision:abc|size:300"
    )
    assert NLIEvaluator("a/b", label="Supports").signature == "nli|chunks:true|label:supports|model:a/b|revision:main"


def test_making_one_imports_no_model_code():
    script = (
        "import sys; from factaudit.evaluators.registry import make_evaluator as make;"
        "make('minicheck').signature; make('nli', {'model': 'a/b'}).signature;"
        "print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["torch", "transformers"])
@pytest.mark.parametrize("make", [MiniCheckEvaluator, NLIEvaluator])
def test_without_the_extra_it_says_what_to_install(monkeypatch, make, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=r"pip install 'factaudit\[hf\]'"):
        list(make("somewhere").judge(some_claims(1)))


@pytest.mark.hf
@pytest.mark.parametrize("make", [MiniCheckEvaluator, NLIEvaluator])
def test_what_is_no_model_is_refused(tmp_path, folders, make, monkeypatch):
    import torch
    from safetensors.torch import load_file, save_file

    def refusal(folder: Path) -> str:
        with pytest.raises(FactauditError) as error:
            list(make(str(folder)).judge(some_claims(1)))
        return str(error.value)

    assert "no such folder" in refusal(tmp_path / "nowhere")
    assert "no model at" in refusal(tmp_path)
    assert "expected a sequence classifier" in refusal(tiny_models.masked_lm(tmp_path / "masked"))
    labels = {0: "not_entailment", 1: "entailment"}
    headless = tiny_models.roberta_classifier(tmp_path / "headless", labels)
    weights = load_file(headless / "model.safetensors")
    save_file(
        {name: values for name, values in weights.items() if not name.startswith("classifier.")},
        headless / "model.safetensors",
        metadata={"format": "pt"},
    )
    assert "lacks weights" in refusal(headless)
    (headless / "model.safetensors").write_bytes(b"cut off")
    assert "no model at" in refusal(headless)
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.hf
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("bert", 512),
        ("bart", 1024),
        ("xlm-roberta", 510),  # its positions begin after the padding's
        ("deberta-v2", 512),
        ("t5", None),
        ("modernbert", None),
    ],
)
def test_how_many_positions_an_architecture_has(kind, expected):
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    with torch.device("meta"):
        model = AutoModelForSequenceClassification.from_config(AutoConfig.for_model(kind))
    assert transformers_models.TransformersModel(model, None, "cpu", None).max_positions == expected


@pytest.mark.hf
def test_settings_that_the_model_cannot_have_are_refused(folders, tmp_path):
    claims = some_claims(1)
    with pytest.raises(FactauditError, match="expected 2 classes, found 3"):
        judged(MiniCheckEvaluator(str(folders["bert-nli"])), claims)
    with pytest.raises(UsageError, match="reads 128 tokens, found max_length 500"):
        judged(MiniCheckEvaluator(str(folders["roberta"]), max_length=500), claims)
    with pytest.raises(UsageError, match="reads 64 tokens, found max_length 500"):
        judged(NLIEvaluator(str(folders["bert-nli"]), max_length=500), claims)
    with pytest.raises(UsageError, match="the device 'quantum' cannot be used"):
        judged(MiniCheckEvaluator(str(folders["roberta"]), device="quantum"), claims)
    with pytest.raises(FactauditError, match=r"has: LABEL_0, LABEL_1"):
        judged(NLIEvaluator(str(folders["roberta"])), claims)


# alignscore ---------------------------------------------------------------------------------------------------------


def some_claims_alignscore(n: int = 18) -> list[Claim]:
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


def one_by_one_alignscore(folder: Path) -> Any:
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
    claims = some_claims_alignscore()
    found = judged(AlignScoreEvaluator(str(folder / "AlignScore.ckpt"), str(folder), batch_size=batch_size), claims)
    aligned = one_by_one_alignscore(folder)
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
        judged(AlignScoreEvaluator(str(path), backbone=str(folder)), some_claims_alignscore(1))
    assert not written.exists()


@pytest.mark.hf
def test_what_is_no_checkpoint_is_said(tmp_path: Path, folder: Path) -> None:
    import torch

    path = tmp_path / "other.ckpt"
    torch.save({"state_dict": {"weight": torch.zeros(2)}}, path)
    with pytest.raises(FactauditError, match=r"other\.ckpt is no AlignScore checkpoint: it lacks base_model"):
        judged(AlignScoreEvaluator(str(path), backbone=str(folder)), some_claims_alignscore(1))
    path.write_bytes((folder / "AlignScore.ckpt").read_bytes()[:1000])
    with pytest.raises(FactauditError, match=r"other\.ckpt cannot be read as a checkpoint"):
        judged(AlignScoreEvaluator(str(path), backbone=str(folder)), some_claims_alignscore(1))
    bert = tiny_models.bert_classifier(tmp_path / "bert", {0: "a", 1: "b"})
    with pytest.raises(FactauditError, match="expected a RoBERTa as the backbone, found 'bert'"):
        judged(AlignScoreEvaluator(str(folder / "AlignScore.ckpt"), backbone=str(bert)), some_claims_alignscore(1))
    small = tiny_models.masked_lm(tmp_path / "small", positions=66)
    with pytest.raises(FactauditError, match=r"AlignScore\.ckpt is not of .*small"):
        judged(AlignScoreEvaluator(str(folder / "AlignScore.ckpt"), backbone=str(small)), some_claims_alignscore(1))


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


# The nonparametric probability --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder_npm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.masked_lm(tmp_path_factory.mktemp("npm"))


@pytest.fixture(scope="module")
def page() -> KnowledgePage:
    rng = random.Random(2)
    return KnowledgePage("The mill", tuple(" ".join(rng.choices(tiny_models.WORDS, k=30)) for _ in range(6)))


class Pages(TopicLookup):
    """A knowledge source of one page."""

    def __init__(self, page: KnowledgePage) -> None:
        super().__init__(SimpleNamespace(find=lambda topic: page, signature="one page", is_empty=False))


def by_hand(folder_npm: Path, passages: list[str], fact: str, skipped: frozenset[int]) -> float:
    """One masked word and one passage at a time, in plain Python."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder_npm)
    model = AutoModelForMaskedLM.from_pretrained(folder_npm).eval()

    def states(ids: list[int]) -> list[list[float]]:
        with torch.no_grad():
            return model(torch.tensor([ids]), output_hidden_states=True).hidden_states[-1][0].tolist()

    memory = []
    for passage in passages:
        ids = tokenizer(passage)["input_ids"]
        memory += list(zip(ids, states(ids), strict=True))[1:-1]
    whole = tokenizer(f"Fact: {fact}")["input_ids"]
    first = len(tokenizer("Fact:", add_special_tokens=False)["input_ids"]) + 1
    probabilities = []
    for position in range(first, len(whole) - 1):
        if whole[position] in skipped:
            continue
        query = states([*whole[:position], tokenizer.mask_token_id, *whole[position + 1 :]])[position]
        weights = [math.exp(sum(map(operator.mul, query, key)) / math.sqrt(len(key))) for _, key in memory]
        same = [w for w, (token, _) in zip(weights, memory, strict=True) if token == whole[position]]
        probabilities.append(sum(same) / sum(weights))
    return sum(probabilities) / len(probabilities)


@pytest.mark.hf
def test_the_probability_is_the_mean_share_of_the_word_itself(folder_npm, page):
    npm = NonparametricModel(str(folder_npm))
    passages = npm._retriever.retrieve(page, "The mill", "the river took the bridge away")
    assert len(passages) == npm.k == 3
    found = npm.compute_fact_probability(page, "The mill", "the river took the bridge away")
    assert npm._loaded is not None
    assert found == pytest.approx(
        by_hand(folder_npm, passages, "the river took the bridge away", npm._loaded[2]), abs=1e-6
    )
    assert 0 < found < 1


@pytest.mark.hf
def test_stop_words_of_a_file_are_not_asked_for(folder_npm, page, tmp_path):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder_npm)
    ids = tokenizer(" river", add_special_tokens=False)["input_ids"]
    (tmp_path / "stop.txt").write_text("\n".join(map(str, ids)), encoding="utf-8")
    npm = NonparametricModel(str(folder_npm), stopwords=tmp_path / "stop.txt")
    fact = "three sons of the river"
    passages = npm._retriever.retrieve(page, "The mill", fact)
    found = npm.compute_fact_probability(page, "The mill", fact)
    assert found == pytest.approx(by_hand(folder_npm, passages, fact, frozenset(ids)), abs=1e-6)
    assert found != pytest.approx(
        NonparametricModel(str(folder_npm)).compute_fact_probability(page, "The mill", fact), abs=1e-6
    )


@pytest.mark.hf
def test_a_fact_without_a_word_to_ask_for_has_none(folder_npm, page):
    assert NonparametricModel(str(folder_npm)).compute_fact_probability(page, "The mill", "it was the . , !") is None


@pytest.mark.hf
def test_it_verifies_alone_without_an_llm(folder_npm, page):
    npm = NonparametricModel(str(folder_npm), threshold=0.1)
    fact = "the river took the bridge away"
    scorer = FactScorer(verifiers=["npm", "always-no"], npm=npm, knowledge=Pages(page))
    scored = scorer.score_responses([Response("r", "The mill", fact, "s", facts=(AtomicFact(fact),))])
    (row,) = scored.verdicts[scored.verdicts["evaluator"] == "npm"].to_dict("records")
    probability = npm.compute_fact_probability(page, "The mill", fact)
    assert (row["score"], row["prediction"], row["status"]) == (probability, int(probability > 0.1), "ok")
    assert scorer.signatures["npm"].startswith(npm.signature)
