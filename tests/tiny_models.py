"""Tiny transformers models with random weights: the real architectures, tokenizers trained on a few
sentences.

Weights are drawn from a seed and are large, so that scores differ from claim to claim and padding
would show. Imports torch and transformers only when called.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_TEXT = """
the mill by river was built in and it grinds wheat for village every autumn miller has three
sons who sail to sea a bridge stands near old tower where people sell bread fish cloth on market
day each spring flood took away
"""
#: What the tokenizers know.
WORDS = _TEXT.split()
_SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "initializer_range": 0.4,
}


def sentences(rng: random.Random, n: int) -> str:
    """Sentences of words that the tokenizers know."""
    return " ".join(
        " ".join(rng.choices(WORDS, k=rng.randint(4, 12))).capitalize() + "." for _ in range(n)
    )


def judged(evaluator: Any, claims: Iterable[Any]) -> dict[str, Any]:
    """The verdicts by claim_id, one of each claim."""
    found = list(evaluator.judge(claims))
    assert len({verdict.claim_id for verdict in found}) == len(found)
    return {verdict.claim_id: verdict for verdict in found}


def roberta_classifier(
    folder: Path, labels: dict[int, str] | None = None, positions: int = 130
) -> Path:
    """A RoBERTa sequence classifier (2 labels unless given) that reads ``positions`` − 2 tokens."""
    return _save(
        folder, "RobertaForSequenceClassification", _roberta(labels, positions), _byte_bpe()
    )


def deberta_classifier(folder: Path) -> Path:
    """A DeBERTa-v3 sequence classifier, without a table of absolute positions."""
    from transformers import DebertaV2Config

    settings = {
        **_SIZES,
        "vocab_size": 400,
        "num_labels": 2,
        "position_biased_input": False,
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_buckets": 32,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "type_vocab_size": 0,
        "pad_token_id": 0,
    }
    return _save(
        folder, "DebertaV2ForSequenceClassification", DebertaV2Config(**settings), _wordpiece()
    )


def bert_classifier(folder: Path, labels: dict[int, str], positions: int = 64) -> Path:
    """A BERT sequence classifier, which tells premise from hypothesis by token types."""
    from transformers import BertConfig

    config = BertConfig(
        **_SIZES,
        vocab_size=400,
        max_position_embeddings=positions,
        pad_token_id=0,
        **_labels(labels),
    )
    return _save(folder, "BertForSequenceClassification", config, _wordpiece())


def masked_lm(folder: Path, positions: int = 130) -> Path:
    """A RoBERTa masked language model."""
    return _save(folder, "RobertaForMaskedLM", _roberta(None, positions), _byte_bpe())


def t5(folder: Path, answers: tuple[str, ...] = ("▁1", "0", "1")) -> Path:
    """A T5 with the pieces ``answers`` in its vocabulary; as in the published one, "0" is "▁" and
    "0", "1" is "▁1"."""
    from transformers import T5Config

    settings = {
        "vocab_size": 400,
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 64,
        "num_layers": 2,
        "num_heads": 4,
        "initializer_factor": 0.5,
        "tie_word_embeddings": False,
        "feed_forward_proj": "gated-gelu",
        "decoder_start_token_id": 0,
        "pad_token_id": 0,
        "eos_token_id": 1,
    }
    return _save(folder, "T5ForConditionalGeneration", T5Config(**settings), _unigram(answers))


def _save(folder: Path, architecture: str, config: Any, tokenizer: Any) -> Path:
    import torch
    import transformers

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = getattr(transformers, architecture)(config)
        for name, values in model.named_parameters():
            if name.endswith("bias"):
                torch.nn.init.normal_(values, std=0.2)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _labels(labels: dict[int, str] | None) -> dict[str, Any]:
    return (
        {}
        if labels is None
        else {"id2label": labels, "label2id": {name: index for index, name in labels.items()}}
    )


def _roberta(labels: dict[int, str] | None, positions: int) -> Any:
    from transformers import RobertaConfig

    return RobertaConfig(
        **_SIZES,
        vocab_size=400,
        max_position_embeddings=positions,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        **_labels(labels),
    )


def _corpus() -> list[str]:
    return [
        " ".join(WORDS[start:] + WORDS[:start]).capitalize() + "." for start in range(len(WORDS))
    ]


def _byte_bpe() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_corpus(), trainer)
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=False
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
    )


def _wordpiece() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
    alphabet = [*"abcdefghijklmnopqrstuvwxyz0123456789.,"]
    trainer = trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(_corpus(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        cls_token="[CLS]",
        sep_token="[SEP]",
        eos_token="[SEP]",
        pad_token="[PAD]",
        unk_token="[UNK]",
        mask_token="[MASK]",
    )


def _unigram(answers: tuple[str, ...]) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    pieces = [f"▁{word}" for word in dict.fromkeys([*WORDS, "predict", "The"])]
    letters = [*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,:'"]
    vocabulary = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -4.0)]
    vocabulary += [(piece, -3.0) for piece in [*pieces, *answers]] + [
        (letter, -6.0) for letter in letters
    ]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        padding_side="right",
    )
