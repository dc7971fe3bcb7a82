"""Train a tiny entailment model from minibench's documents, in a minute: ``python
experiments/tiny_nli.py``.

Nothing is fetched and no label is used (extra [hf]). Words in a row follow from the sentences that
hold them, not from others, and no more once a word was exchanged. So the model learns which words
occur, not what is meant.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

import factaudit

ROOT = Path(__file__).parent.parent
CLAIMS = ROOT / "data" / "minibench" / "claims.jsonl.gz"
#: Where invariance.yaml looks for it.
FOLDER = ROOT / "build" / "tiny_nli"
LABELS = ("not_entailment", "entailment")
STEPS, PAIRS_PER_STEP, LEARNING_RATE = 800, 32, 1e-3
PREMISE_SENTENCES = 3


def train_tiny_nli(folder: Path, steps: int = STEPS, seed: int = 0) -> Path:
    """Save a BERT of two layers and its tokenizer into the folder."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    docs = list(factaudit.read_claims(CLAIMS)["doc"].unique())
    sentences = [
        [each for each in re.split(r"(?<=[.!?])\s+|\n+", doc) if len(each.split()) > 4]
        for doc in docs
    ]
    tokenizer = train_tokenizer(docs)
    model = make_untrained_model(len(tokenizer))
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps)
    for _ in range(steps):
        pairs = [draw_training_pair(sentences, rng) for _ in range(PAIRS_PER_STEP)]
        premises, hypotheses, entailed = (list(each) for each in zip(*pairs, strict=True))
        inputs = tokenizer(premises, hypotheses, padding=True, return_tensors="pt")
        optimizer.zero_grad()
        model(**inputs, labels=torch.tensor(entailed)).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def draw_training_pair(sentences: list[list[str]], rng: random.Random) -> tuple[str, str, int]:
    """Sentences of one document, some words, and 1 where the sentences hold these words in a row,
    else 0."""
    doc = rng.choice(sentences)
    start = rng.randrange(max(1, len(doc) - PREMISE_SENTENCES + 1))
    premise = doc[start : start + PREMISE_SENTENCES]
    kind = rng.choice(("same", "same", "exchanged", "other"))
    words = rng.choice(rng.choice(sentences) if kind == "other" else premise).split()
    first = rng.randrange(max(1, len(words) - 5))
    words = words[first : first + rng.randint(4, 14)]
    if kind == "exchanged":
        words[rng.randrange(len(words))] = rng.choice(rng.choice(rng.choice(sentences)).split())
    return " ".join(premise), " ".join(words), int(" ".join(words) in " ".join(premise))


def make_untrained_model(vocabulary_size: int) -> BertForSequenceClassification:
    """Its first layer attends to equal words from the start: to learn that takes longer than all
    the rest."""
    config = BertConfig(
        vocab_size=vocabulary_size,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        initializer_range=0.15,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        id2label=dict(enumerate(LABELS)),
        label2id={name: index for index, name in enumerate(LABELS)},
    )
    model = BertForSequenceClassification(config)
    attention = model.bert.encoder.layer[0].attention.self
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight.mul_(4)
        model.bert.embeddings.token_type_embeddings.weight.mul_(2)
        for part in (attention.query, attention.key):
            part.weight.copy_(torch.eye(config.hidden_size))
    return model


def train_tokenizer(docs: Iterable[str]) -> PreTrainedTokenizerFast:
    special = {
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "unk_token": "[UNK]",
    }
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=3000, special_tokens=list(special.values()), show_progress=False
    )
    tokenizer.train_from_iterator(docs, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=512, model_input_names=inputs, **special
    )


if __name__ == "__main__":
    print(f"saved {train_tiny_nli(FOLDER)}")
