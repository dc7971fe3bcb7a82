"""The converters on the files that their authors publish: labelled error rates to the printed
digit."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from factaudit import convert
from factaudit.datasets import aggrefact_subsets

# Verify with Caution, Tables 11, 13, 14 and 16.
TOFUEVAL = {
    "TofuEval-MediaSum": {
        "claims": (395, 274, 284, 290, 269, 301),
        "claim": (19.2, 19.7, 20.4, 20.0, 18.6, 19.3),
        "response": (49.0, 38.1, 41.9, 39.4, 37.5, 38.5),
    },
    "TofuEval-MeetingBank": {
        "claims": (285, 256, 286, 259, 279, 259),
        "claim": (14.0, 19.9, 22.4, 20.1, 11.8, 19.3),
        "response": (29.8, 35.2, 45.2, 34.6, 26.0, 34.4),
    },
}


@pytest.fixture(scope="module")
def tofueval(shared: Path) -> pd.DataFrame:
    return convert("tofueval", [shared / "tofueval"]).claims


def test_tofueval_keeps_documents_topics_and_error_types(tofueval: pd.DataFrame) -> None:
    assert len(tofueval) == 1813 + 1624
    assert tofueval["claim_id"].is_unique
    assert tofueval["doc"].isna().all()
    assert tofueval.groupby("dataset")["doc_id"].nunique().to_dict() == dict.fromkeys(TOFUEVAL, 35)
    assert set(tofueval["split"]) == {"dev"}
    assert (tofueval["error_type"].notna() == (tofueval["label"] == 0)).all()
    subsets = pd.read_csv(Path(aggrefact_subsets.__file__).with_suffix(".csv"), index_col="dataset")
    assert set(subsets["systems"]["TofuEval-MediaSum"].split(";")) == set(tofueval["system"])


def test_ragtruth_text_agrees_with_the_scores_file(shared: Path) -> None:
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


def test_aggrefact_scores_rows_labels_and_scores(shared: Path) -> None:
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
def test_aggrefact_joins_recover_systems_from_the_originals(shared: Path, tmp_path: Path) -> None:
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
    counts = {
        name: (int((known & part).sum()), int((~known & part).sum()))
        for name, part in (
            ("tofueval", originals["dataset"].str.startswith("TofuEval").to_numpy()),
            ("lfqa", (originals["dataset"] == "LFQA").to_numpy()),
            ("ragtruth", (originals["dataset"] == "RAGTruth-QA").to_numpy()),
        )
    }
    for name, (matched, ambiguous) in counts.items():
        note = next(note for note in joined.notes if note.startswith(f"join {name}:"))
        assert f" {matched:,} matched (" in note
        assert f" {ambiguous:,} ambiguous (several systems wrote the text), 0 not matched" in note
    assert (
        claims["claim_id"].tolist() == convert("aggrefact", [tmp_path]).claims["claim_id"].tolist()
    )
