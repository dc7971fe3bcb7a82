"""The transformers evaluators on tiny models: the real code against a plain loop over single
examples."""

from __future__ import annotations

import math
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from tiny_models import judged, sentences

from factaudit import Claim, FactauditError, UsageError, Verdict
from factaudit.evaluators.alignscore import AlignScoreEvaluator
from factaudit.evaluators.minicheck import MiniCheckEvaluator, split_minicheck_chunks
from factaudit.evaluators.nli import NLIEvaluator
from factaudit.evaluators.nonparametric import NonparametricEvaluator
from factaudit.evaluators.registry import make_evaluator
from factaudit.text.chunks import count_words, split_document_into_chunks
from factaudit.text.sentences import split_sentences

NLI_LABELS = {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}


def some_claims(n: int = 15, seed: int = 1) -> list[Claim]:
    """Claims about documents of one line, of several lines and of many sentences; every third
    shares its document."""
    rng = random.Random(seed)
    docs = []
    for number in range(n):
        shared = number % 3 == 2
        docs.append(
            docs[-1]
            if shared
            else "\n".join(sentences(rng, rng.choice([1, 4, 9])) for _ in range(1 + number % 2))
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
        "roberta-nli": tiny_models.roberta_classifier(
            root / "roberta-nli", {0: "not_entailment", 1: "entailment"}
        ),
    }


def one_by_one(
    folder: Path, first_token: tuple[int, int] | None = None
) -> Callable[[list[tuple[str, ...]]], np.ndarray]:
    """From texts or pairs to probabilities (n, labels), each run alone, without any of the
    project's code."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    kind = "AutoModelForSequenceClassification" if first_token is None else "AutoModelForSeq2SeqLM"
    model = getattr(transformers, kind).from_pretrained(folder).eval()

    def probabilities(texts: list[tuple[str, ...]]) -> np.ndarray:
        rows = []
        for text in texts:
            inputs = dict(tokenizer(*text, return_tensors="pt"))
            if first_token is not None:
                inputs = {
                    "input_ids": inputs["input_ids"],
                    "decoder_input_ids": torch.zeros((1, 1), dtype=torch.long),
                }
            with torch.no_grad():
                logits = model(**inputs).logits[0]
            if first_token is not None:
                logits = logits[0, list(first_token)]
            rows.append(torch.softmax(logits, dim=-1).numpy())
        return np.array(rows)

    return probabilities


# MiniCheck


def make_judge(folders: dict[str, Path], kind: str, **options: Any) -> Any:
    """The evaluator that reads a model: NLI's or MiniCheck's."""
    return (NLIEvaluator if kind.endswith("nli") else MiniCheckEvaluator)(
        str(folders[kind]), **options
    )


def verdicts_of(
    folders: dict[str, Path], kind: str, claims: list[Claim], **options: Any
) -> dict[str, Verdict]:
    return judged(make_judge(folders, kind, **options), claims)


@pytest.mark.slow
@pytest.mark.hf
@pytest.mark.parametrize(
    ("kind", "size", "batch_size"),
    [("roberta", 60, 1), ("roberta", 60, 64), ("deberta", 60, 5), ("t5", 30, 5)],
)
def test_minicheck_equals_a_plain_loop(folders, kind, size, batch_size):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folders[kind])
    claims = some_claims()
    found = verdicts_of(folders, kind, claims, size=size, batch_size=batch_size)
    boundary = {"roberta": "</s>", "deberta": "[SEP]", "t5": "</s>"}[kind]

    def count(text):
        return len(
            text.split() if kind == "t5" else tokenizer.encode(text, add_special_tokens=False)
        )

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
        expected = plain([(f"{prefix}{text}{boundary}{claim.claim}",) for text in chunks])[:, 1]
        assert found[claim.claim_id].chunk_scores == pytest.approx(expected, abs=1e-5)
        assert found[claim.claim_id].score == max(found[claim.claim_id].chunk_scores)
    assert 3 < chunked < len(claims)
    assert np.std([verdict.score for verdict in found.values()]) > 0.01


@pytest.mark.hf
@pytest.mark.parametrize(("kind", "size"), [("deberta", 400), ("t5", 500)])
def test_published_sizes_are_the_defaults(folders, kind, size):
    doc = sentences(random.Random(3), 150)  # 1,200 words or so
    evaluator = make_judge(folders, kind)
    found = judged(evaluator, [Claim("a", "The mill.", doc)])["a"]
    count = count_words if kind == "t5" else evaluator.loaded.count_tokens
    assert len(found.chunk_scores) == len(split_minicheck_chunks(doc, size, count)) > 1


@pytest.mark.hf
@pytest.mark.parametrize("answers", [("0", "1"), ()])
def test_answers_that_cannot_be_told_apart_are_refused(tmp_path, answers):
    with pytest.raises(FactauditError, match="cannot tell '0' and '1'"):
        judged(MiniCheckEvaluator(str(tiny_models.t5(tmp_path, answers))), some_claims(1))


@pytest.mark.hf
def test_a_long_input_loses_neither_claim_nor_document(folders):
    rng = random.Random(5)
    # One sentence of about 150 words: more than the model's 128 tokens.
    doc = " ".join(rng.choices(tiny_models.WORDS, k=150)).capitalize() + "."
    claim = Claim("a", sentences(rng, 2), doc)
    evaluator = make_judge(folders, "roberta")
    (encoded,) = evaluator.encode(claim)
    texts = [evaluator.loaded.tokenizer.decode(one["input_ids"]) for one in encoded]
    assert len(texts) == len(judged(evaluator, [claim])["a"].chunk_scores) > 1
    assert all(len(one["input_ids"]) <= 128 for one in encoded)
    assert all(text.endswith(f"</s>{claim.claim}</s>") for text in texts)
    read = " ".join(text.removeprefix("<s>").split("</s>")[0] for text in texts)
    assert read.split() == doc.split()


@pytest.mark.hf
@pytest.mark.parametrize("kind", ["roberta", "bert-nli"])
def test_claims_that_cannot_be_judged_are_unscored_alone(folders, kind):
    rng = random.Random(5)
    claims = [
        Claim("long", sentences(rng, 30), sentences(rng, 30)),
        Claim("short", "The mill.", sentences(rng, 30)),
        Claim("none", "The mill.", None),
        Claim("blank", "The mill.", " \n "),
        Claim("empty", "The mill.", ""),
    ]
    found = verdicts_of(folders, kind, claims)
    assert {key: verdict.status for key, verdict in found.items()} == {
        "long": "error",
        "short": "ok",
        "none": "skipped",
        "blank": "ok",
        "empty": "ok",
    }
    assert "the claim has" in found["long"].raw
    assert "of claim and document together" in found["long"].raw
    assert found["empty"].score == pytest.approx(found["blank"].score, abs=1e-5)


# Natural language inference


@pytest.mark.hf
@pytest.mark.parametrize("batch_size", [1, 64])
@pytest.mark.parametrize(("kind", "label"), [("bert-nli", 2), ("roberta-nli", 1)])
def test_nli_equals_a_plain_loop(folders, kind, label, batch_size):
    from transformers import AutoTokenizer

    claims = some_claims()
    found = verdicts_of(folders, kind, claims, size=40, batch_size=batch_size)
    tokenizer = AutoTokenizer.from_pretrained(folders[kind])

    def count(text):
        return len(tokenizer.encode(text, add_special_tokens=False))

    plain = one_by_one(folders[kind])
    chunked = 0
    for claim in claims:
        chunks = split_document_into_chunks(claim.doc, 40, count)
        expected = plain([(text, claim.claim) for text in chunks])[:, label]
        assert found[claim.claim_id].chunk_scores == pytest.approx(expected, abs=1e-5)
        assert found[claim.claim_id].score == max(found[claim.claim_id].chunk_scores)
        chunked += len(chunks) > 1
    assert 0 < chunked < len(claims)
    assert np.std([verdict.score for verdict in found.values()]) > 0.01


# Both


@pytest.mark.hf
def test_a_probability_that_is_no_number_is_an_error_of_its_claim(folders, monkeypatch):
    evaluator = make_judge(folders, "roberta")
    inputs = {"a": [[{"input_ids": [1]}, {"input_ids": [1, 2]}]], "b": [[{"input_ids": [1, 2, 3]}]]}
    monkeypatch.setattr(evaluator, "encode", lambda claim: inputs[claim.claim_id])
    monkeypatch.setattr(
        evaluator,
        "compute_support",
        lambda batch: [math.nan if len(one["input_ids"]) == 2 else 0.7 for one in batch],
    )
    found = judged(evaluator, [Claim("a", "x", "y"), Claim("b", "x", "y")])
    assert (found["a"].status, found["a"].score) == ("error", None)
    assert (found["b"].status, found["b"].score) == ("ok", 0.7)


@pytest.mark.hf
def test_signatures_follow_what_changes_verdicts(folders, tmp_path):
    import shutil

    folder = tmp_path / "roberta"
    shutil.copytree(folders["roberta"], folder)
    plain = MiniCheckEvaluator(str(folder)).signature
    assert (
        plain == MiniCheckEvaluator(str(folders["roberta"]), batch_size=2, device="cpu").signature
    )
    assert plain.startswith("minicheck|files:")
    assert plain != MiniCheckEvaluator(str(folder), size=300).signature
    tiny_models.roberta_classifier(folder, positions=100)
    assert plain != MiniCheckEvaluator(str(folder)).signature


def test_making_one_imports_no_model_code():
    script = (
        "import sys; from factaudit.evaluators.registry import make_evaluator as make;"
        "make('minicheck').signature; make('nli', {'model': 'a/b'}).signature;"
        "print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["torch", "transformers"])
@pytest.mark.parametrize("make", [MiniCheckEvaluator, NLIEvaluator])
def test_without_the_extra_it_says_what_to_install(monkeypatch, make, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=r"pip install 'factaudit\[hf\]'"):
        list(make("somewhere").judge(some_claims(1)))


@pytest.mark.hf
@pytest.mark.parametrize("make", [MiniCheckEvaluator, NLIEvaluator])
def test_what_is_no_model_is_refused(tmp_path, folders, make):
    from safetensors.torch import load_file, save_file

    def refusal(folder, **options):
        with pytest.raises(FactauditError) as error:
            list(make(str(folder), **options).judge(some_claims(1)))
        return str(error.value)

    assert "no model at" in refusal(tmp_path / "nowhere")
    assert "no model at" in refusal(tmp_path)
    assert "quantum" in refusal(folders["roberta-nli"], device="quantum")
    assert "lacks weights" in refusal(tiny_models.masked_lm(tmp_path / "masked"))
    wrong = folders["bert-nli"] if make is MiniCheckEvaluator else folders["roberta"]
    assert re.search("expected 2 classes, found 3|has: label_0, label_1", refusal(wrong))
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


# AlignScore


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A RoBERTa's folder with ``AlignScore.ckpt`` in it: what Lightning saves of the authors'
    model."""
    import torch
    import transformers

    folder = tiny_models.masked_lm(tmp_path_factory.mktemp("alignscore") / "roberta")
    base = transformers.RobertaModel.from_pretrained(folder, add_pooling_layer=True)
    hidden = base.config.hidden_size
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        for values in base.pooler.parameters():
            torch.nn.init.normal_(values, std=0.4)
        heads = {
            name: torch.nn.Linear(hidden, size)
            for name, size in (("bin", 2), ("tri", 3), ("reg", 1))
        }
        for head in heads.values():
            torch.nn.init.normal_(head.weight, std=0.4)
    weights = {f"base_model.{name}": values for name, values in base.state_dict().items()}
    # Older transformers, which the published checkpoints are of, saved this buffer, too.
    weights["base_model.embeddings.position_ids"] = torch.arange(
        base.config.max_position_embeddings
    )[None]
    weights["mlm_head.bias"] = torch.zeros(base.config.vocab_size)
    for name, head in heads.items():
        weights |= {f"{name}_layer.{key}": values for key, values in head.state_dict().items()}
    settings = {"model": "roberta-large", "using_pretrained": True, "adam_epsilon": 1e-6}
    torch.save(
        {"epoch": 3, "state_dict": weights, "hyper_parameters": settings},
        folder / "AlignScore.ckpt",
    )
    return folder


def one_by_one_alignscore(folder: Path) -> Any:
    """From a pair of texts to P(aligned), each run alone, without any of the project's code."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    saved = torch.load(folder / "AlignScore.ckpt", weights_only=True)["state_dict"]
    base = transformers.RobertaModel(transformers.AutoConfig.from_pretrained(folder)).eval()
    base.load_state_dict({name: saved[f"base_model.{name}"] for name in base.state_dict()})

    def aligned(premise: str, hypothesis: str) -> float:
        inputs = tokenizer(
            premise, hypothesis, truncation="only_first", max_length=128, return_tensors="pt"
        )
        with torch.no_grad():
            pooled = base(**inputs).pooler_output[0]
        return float(
            torch.softmax(saved["tri_layer.weight"] @ pooled + saved["tri_layer.bias"], -1)[0]
        )

    return aligned


@pytest.mark.hf
@pytest.mark.parametrize("batch_size", [1, 7])
def test_alignscore_equals_a_plain_loop(folder, batch_size):
    rng = random.Random(1)
    docs = [sentences(rng, n) for n in (1, 60, 90, 60)]
    # 700 words are cut into three chunks of as many sentences each, and what is left over.
    claims = [Claim(f"c#{n}", sentences(rng, 1 + n % 3), docs[n % 4]) for n in range(8)]
    evaluator = AlignScoreEvaluator(
        str(folder / "AlignScore.ckpt"), backbone=str(folder), batch_size=batch_size
    )
    found = judged(evaluator, claims)
    aligned = one_by_one_alignscore(folder)
    several = cut = 0
    for claim in claims:
        assert claim.doc is not None
        parts, said = split_sentences(claim.doc), split_sentences(claim.claim)
        size = max(len(parts) // (len(claim.doc.split()) // 350 + 1), 1)
        premises = [" ".join(parts[at : at + size]) for at in range(0, len(parts), size)]
        expected = np.mean(
            [max(aligned(premise, sentence) for premise in premises) for sentence in said]
        )
        assert found[claim.claim_id].score == pytest.approx(expected, abs=1e-5)
        several += len(said) > 1
        cut += len(premises) > 1
    assert several > 2
    assert cut > 2
    long = " ".join(rng.choices(tiny_models.WORDS, k=150)).capitalize() + "."
    odd = [
        Claim("none", "The mill.", None),
        Claim("blank", "The mill.", " "),
        Claim("long", long, docs[0]),
    ]
    statuses = {key: verdict.status for key, verdict in judged(evaluator, odd).items()}
    assert statuses == {"none": "skipped", "blank": "ok", "long": "error"}


class Harm:
    """A pickle that would write a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.path, "run")


@pytest.mark.hf
def test_what_is_no_checkpoint_runs_nothing_and_is_said(tmp_path, folder):
    import torch

    written, path = tmp_path / "written", tmp_path / "bad.ckpt"
    small = tiny_models.masked_lm(tmp_path / "small", positions=66)
    good = folder / "AlignScore.ckpt"

    def refusal(checkpoint, backbone=folder):
        with pytest.raises(FactauditError) as error:
            judged(AlignScoreEvaluator(str(checkpoint), backbone=str(backbone)), some_claims(1))
        return str(error.value)

    torch.save({"state_dict": {}, "callbacks": Harm(written)}, path)
    assert "bad.ckpt contains more than weights" in refusal(path)
    assert not written.exists()
    torch.save({"state_dict": {"weight": torch.zeros(2)}}, path)
    assert "bad.ckpt lacks weights that it is to be used with: classifier" in refusal(path)
    path.write_bytes(good.read_bytes()[:1000])
    assert "bad.ckpt cannot be read as a checkpoint" in refusal(path)
    assert re.search(r"AlignScore\.ckpt is not of .*small", refusal(good, small))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "alignscore",
            {"model": "huge"},
            "expected model to be base, large or a checkpoint, found 'huge'",
        ),
        ("alignscore", {"model": __file__}, "a checkpoint file needs backbone="),
        (
            "alignscore",
            {"batch_size": 0},
            "option batch_size: .* greater than 0, found 0",
        ),
        ("minicheck", {"size": 0}, "option size: .* greater than 0, found 0"),
        ("nli", {}, "expected model=NAME"),
    ],
)
def test_options_are_checked(name, options, message):
    with pytest.raises(UsageError, match=message):
        make_evaluator(name, options)


# The nonparametric probability
# ------------------------------------------------------------


@pytest.fixture(scope="module")
def folder_npm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.masked_lm(tmp_path_factory.mktemp("npm"))


def by_hand(folder_npm: Path, passages: list[str], fact: str, skipped: frozenset[int]) -> float:
    """One masked word and one passage at a time."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder_npm)
    model = AutoModelForMaskedLM.from_pretrained(folder_npm).eval()

    def states(ids: list[int]) -> np.ndarray:
        with torch.no_grad():
            return (
                model(torch.tensor([ids]), output_hidden_states=True)
                .hidden_states[-1][0]
                .double()
                .numpy()
            )

    read = [tokenizer(passage)["input_ids"] for passage in passages]
    tokens = np.concatenate([ids[1:-1] for ids in read])
    keys = np.concatenate([states(ids)[1:-1] for ids in read])
    whole = tokenizer(f"Fact: {fact}")["input_ids"]
    first = len(tokenizer("Fact:", add_special_tokens=False)["input_ids"]) + 1
    probabilities = []
    for position in range(first, len(whole) - 1):
        if whole[position] not in skipped:
            query = states([*whole[:position], tokenizer.mask_token_id, *whole[position + 1 :]])[
                position
            ]
            weights = np.exp(keys @ query / math.sqrt(len(query)))
            probabilities.append(weights[tokens == whole[position]].sum() / weights.sum())
    return float(np.mean(probabilities))


MILL = [" ".join(random.Random(at).choices(tiny_models.WORDS, k=30)) for at in range(6)]


@pytest.mark.hf
def test_the_probability_is_the_mean_share_of_the_word_itself(folder_npm):
    npm = NonparametricEvaluator(str(folder_npm))
    fact = "the river took the bridge away"
    found = npm.compute_probability(fact, MILL)
    assert found == pytest.approx(
        by_hand(folder_npm, MILL, fact, frozenset(npm.stopword_ids)), abs=1e-6
    )
    assert 0 < found < 1
    # Of a document the first k passages are read; above the cutoff a claim is supported.
    claims = [
        Claim("a", fact, "\n\n".join(MILL)),
        Claim("b", "it was the . , !", MILL[0]),
        Claim("c", fact, None),
    ]
    verdicts = list(npm.judge(claims))
    assert verdicts[0].score == pytest.approx(npm.compute_probability(fact, MILL[:3]))
    assert [one.prediction for one in verdicts] == [int(verdicts[0].score > 0.3), None, None]
    assert [one.status for one in verdicts[1:]] == ["skipped", "skipped"]


@pytest.mark.hf
def test_stop_words_of_a_file_are_not_asked_for(folder_npm, tmp_path):
    (tmp_path / "stop.txt").write_text("20\n30\n40\n", encoding="utf-8")
    npm = NonparametricEvaluator(str(folder_npm), stopwords=tmp_path / "stop.txt")
    fact = "three sons of the river"
    assert npm.compute_probability(fact, MILL) == pytest.approx(
        by_hand(folder_npm, MILL, fact, frozenset({20, 30, 40})), abs=1e-6
    )
