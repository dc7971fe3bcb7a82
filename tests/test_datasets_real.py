"""The converters on the files that their authors publish: labelled error rates to the printed
digit."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from factaudit import convert


@pytest.fixture(scope="module")
def tofueval(shared: Path) -> pd.DataFrame:
    return convert("tofueval", [shared / "tofueval"]).claims


def test_ragtruth_text_agrees_with_the_scores_file(shared):
    folder = shared / "ragtruth"
    texts = convert("ragtruth", [folder / "qa_test_text.jsonl"]).claims
    scored = convert(
        "ragtruth-scores",
        [folder / "responses_test_scores.jsonl"],
        text=folder / "qa_test_text.jsonl",
    )
    both = texts.merge(scored.claims, on="claim_id", suffixes=("", "_scored"))
    assert len(both) == 600
    for column in ("label", "claim", "doc", "system", "doc_id", "dataset", "response_id"):
        assert (both[column] == both[f"{column}_scored"]).all(), column
    assert any(
        note.startswith("1,200 claims with scores but without a text") for note in scored.notes
    )


def test_aggrefact_scores_rows_labels_and_scores(shared):
    folder = shared / "aggrefact_scores"
    converted = convert("aggrefact-scores", [folder])
    claims, verdicts = converted.claims, converted.verdicts
    assert verdicts is not None
    sizes = (558, 558, 726, 772, 358, 1710, 1088, 1566, 3702, 1911, 16371)
    assert tuple(claims.groupby("dataset", sort=False).size()) == sizes
    assert len(claims) == 29320
    for path in folder.glob("*.json"):
        published = json.loads(path.read_text("utf-8"))
        mine = verdicts[verdicts["evaluator"] == path.stem].merge(
            claims[["claim_id", "dataset", "label"]]
        )
        for dataset, rows in mine.groupby("dataset"):
            labels, scores = zip(*published[dataset], strict=True)
            assert rows["label"].tolist() == list(labels)
            assert rows["score"].tolist() == list(scores)


@pytest.mark.slow
def test_aggrefact_joins_recover_systems_from_the_originals(shared, tmp_path):
    """LLM-AggreFact's own columns, made of the originals' text, get their systems and responses
    back."""
    tofueval = convert("tofueval", [shared / "tofueval"]).claims.assign(doc="a dialogue")
    lfqa = convert("lfqa", [shared / "lfqa"]).claims
    ragtruth = convert(
        "ragtruth", [shared / "ragtruth" / "qa_test_text.jsonl"], level="sentence"
    ).claims
    names = {
        "TofuEval-MediaSum": "TofuEval-MediaS",
        "TofuEval-MeetingBank": "TofuEval-MeetB",
        "LFQA": "Lfqa",
        "RAGTruth-QA": "RAGTruth",
    }
    originals = pd.concat([tofueval, lfqa, ragtruth], ignore_index=True)
    table = originals[["dataset", "doc", "claim", "label"]].replace({"dataset": names})
    table["claim"] = table["claim"].str.replace(" ", "  ") + "\n"
    table.to_parquet(tmp_path / "test-00000-of-00001.parquet")
    specs = [
        f"tofueval:{shared}/tofueval",
        f"lfqa:{shared}/lfqa",
        f"ragtruth:{shared}/ragtruth/qa_test_text.jsonl",
    ]
    joined = convert("aggrefact", [tmp_path], join=specs)
    claims = joined.claims
    known = claims["system"].notna().to_numpy()
    assert (claims["system"][known] == originals["system"][known]).all()
    whole = claims["response_id"].notna().to_numpy()
    assert (claims["response_id"][whole] == originals["response_id"][whole]).all()
    # What stays without a system is what several systems wrote word for word.
    key = originals["dataset"] + originals["claim"].str.split().str.join(" ")
    several = originals.groupby(key)["system"].transform("nunique") > 1
    assert (known == ~several.to_numpy()).all()
    assert [note.partition(":")[0] for note in joined.notes if note.startswith("join ")] == [
        "join tofueval",
        "join lfqa",
        "join ragtruth",
    ]
    assert (
        claims["claim_id"].tolist() == convert("aggrefact", [tmp_path]).claims["claim_id"].tolist()
    )
