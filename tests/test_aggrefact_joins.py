"""Systems of LLM-AggreFact's claims from the releases of its data sets, on authored files of their shapes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from factaudit.datasets import convert
from factaudit.datasets.format_detection import detect_dataset_format
from factaudit.datasets.original_datasets import JOINABLE
from factaudit.errors import InputError


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def write_benchmark(folder: Path, rows: list[tuple[str, str, int]]) -> Path:
    """LLM-AggreFact's file: dataset, claim and label."""
    columns = ["dataset", "claim", "label"]
    table = pd.DataFrame(rows, columns=columns).assign(doc="A document.", contamination_identifier="x")
    table.to_parquet(folder / "test.parquet")
    return folder / "test.parquet"


def write_aggrefact(folder: Path) -> Path:
    rows = [
        ("FRANK", "cnndm", "d1", "A fox ran. It slept.", "BART", 1),
        ("CLIFF", "cnndm", "d1", "A dog barked.", "T5", 0),
        ("XSumFaith", "xsum", "d2", "Rain fell.", "PEGASUS", 0),
        ("Goyal21", "xsum", "d3", "Nobody came.", "BART", 1),
        ("Goyal21", "xsum", "d3", "Nobody came.", "PEGASUS", 1),
    ]
    table = pd.DataFrame(rows, columns=["dataset", "origin", "id", "summary", "model_name", "label"])
    table = table.assign(doc=lambda all_rows: "Document " + all_rows["id"], cut="test", DAE_score=0.4, DAE_label=1)
    table.to_csv(folder / "aggre_fact_sota.csv", index=False)
    return folder / "aggre_fact_sota.csv"


def write_reveal(folder: Path) -> Path:
    def step(answer: str, model: str, number: int, text: str, alone: str, label: str) -> dict[str, Any]:
        shared = {
            "dataset": "strategy_qa",
            "question_id": "q",
            "question": "Did it?",
            "answer_is_logically_correct": True,
        }
        shared |= {"answer_id": answer, "answer_model": model, "step_idx": number, "step": text}
        return shared | {
            "decontextualized_step": alone,
            "evidence_id": f"{answer}-{number}-0",
            "evidence": "A passage.",
            "attribution_label": label,
        }

    rows = [
        step("a1", "Flan-PaLM-540B", 0, "It closed in 1902.", "The mill closed in 1902.", "Fully Attributable"),
        step("a1", "Flan-PaLM-540B", 1, "So yes.", "So yes.", "Partially Attributable"),
        step("a2", "text-davinci-003", 0, "Foxes bark.", "Foxes bark.", "Contradictory"),
        step("a2", "text-davinci-003", 1, "So no.", "So no.", ""),
    ]
    pd.DataFrame(rows).to_csv(folder / "reveal_eval.csv", index=False)
    return folder / "reveal_eval.csv"


def write_claimverify(folder: Path) -> Path:
    def judgement(query: str, response: str, statement: str, said: str) -> dict[str, Any]:
        source = {"source_text": "A page.", "source_url": "https://a.org", "source_title": None}
        shared = {"query": query, "response": response, "statement": statement}
        return shared | source | {"source_supports_statement": said}

    def annotation(name: str, query: str, response: str, statement: str) -> dict[str, Any]:
        said = {"statement_is_verification_worthy": True, "statement_supported": "Yes", "citation_annotations": []}
        return {
            "id": f"{query}-{name}",
            "query": query,
            "response": response,
            "system_name": name,
            "statements_to_citation_texts": {statement: ["[1]"]},
            "annotation": {"fluency": "Agree", "statement_to_annotation": {statement: said}},
        }

    write_lines(
        folder / "verifiability_judgments_test.jsonl.gz",
        [
            judgement("q1", "The mill closed [1].", "The mill closed [1].", "complete_support"),
            judgement("q2", "Foxes bark [1].", "Foxes bark [1].", "partial_support"),
            judgement("q3", "Nobody knows.", "Nobody knows.", "no_support"),
        ],
    )
    write_lines(
        folder / "human_evaluation_annotations.jsonl",
        [
            annotation("bing_chat", "q1", "The mill closed [1].", "The mill closed [1]."),
            annotation("you", "q2", "Foxes bark [1].", "Foxes bark [1]."),
        ],
    )
    return folder


def write_expertqa(folder: Path) -> Path:
    def answer(*claims: tuple[str, str]) -> dict[str, Any]:
        own = [
            {"claim_string": text, "evidence": ["[1] A page.", "Another."], "support": support, "worthiness": "Yes"}
            for text, support in claims
        ]
        return {"answer_string": " ".join(text for text, _ in claims), "attribution": [], "claims": own}

    rows = [
        {"question": "Why?", "annotator_id": "1", "metadata": {"field": "Law", "question_type": "I|II"}}
        | {"answers": {"gpt4": answer(("Courts decide [1].", "Complete"), ("So it is.", "N/A"))}},
        {"question": "How?", "annotator_id": "2", "metadata": {"field": "Physics"}}
        | {"answers": {"bing_chat": answer(("Light bends.", "Partial"), ("It  is fast. [2]", "Missing"))}},
    ]
    return write_lines(folder / "r2_compiled_anon.jsonl", rows)


CASES: dict[str, tuple[Any, list[tuple[str, str, int]], list[str | None]]] = {
    "predicted": (
        write_aggrefact,
        [
            ("AggreFact-CNN", "A fox ran. It slept.", 1),
            ("AggreFact-CNN", "A dog barked.", 0),
            ("AggreFact-XSum", "Rain fell.", 0),
            ("AggreFact-XSum", "Nobody came.", 1),  # two systems wrote it
            ("AggreFact-CNN", "Rain fell.", 0),  # of the other data set
        ],
        ["BART", "T5", "PEGASUS", None, None],
    ),
    "reveal": (
        write_reveal,
        [("Reveal", "The mill closed in 1902.", 1), ("Reveal", "It closed in 1902.", 1), ("Reveal", "Foxes bark.", 0)],
        ["Flan-PaLM-540B", "Flan-PaLM-540B", "text-davinci-003"],
    ),
    "claimverify": (
        write_claimverify,
        [
            ("ClaimVerify", "The mill closed.", 1),
            ("ClaimVerify", "Foxes bark [1].", 0),
            ("ClaimVerify", "Nobody knows.", 0),
        ],
        ["Bing Chat", "YouChat", None],
    ),
    "expertqa": (
        write_expertqa,
        [("ExpertQA", "Courts decide.", 1), ("ExpertQA", "light bends", 0), ("ExpertQA", "It is fast.", 0)],
        ["gpt4", None, "bing_chat"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_systems_are_found_by_the_claims_text(name: str, tmp_path: Path) -> None:
    write_release, benchmark, systems = CASES[name]
    source = write_release(tmp_path)
    found = convert("aggrefact", [write_benchmark(tmp_path, benchmark)], join=f"{name}:{source}")
    assert [None if pd.isna(one) else one for one in found.claims["system"]] == systems
    assert found.claims["response_id"].notna().tolist() == [one is not None for one in systems]
    assert found.claims["label"].tolist() == [label for _, _, label in benchmark]
    (note,) = [note for note in found.notes if note.startswith(f"join {name}")]
    matched = sum(one is not None for one in systems)
    share = f"{matched / len(systems):.1%}"
    assert note.startswith(f"join {name}: of {len(systems)} claims, {matched} matched ({share}), ")
    assert "have another label there" not in note


def test_why_claims_were_not_joined_is_said(tmp_path: Path) -> None:
    source = write_expertqa(tmp_path)
    rows = [("ExpertQA", text, 1) for text in ("light bends", "Courts", "Stars shine.", "Courts decide.")]
    (note,) = convert("aggrefact", [write_benchmark(tmp_path, rows)], join=f"expertqa:{source}").notes[1:]
    assert note == (
        "join expertqa: of 4 claims, 1 matched (25.0%), 0 ambiguous, 3 not matched; "
        "1 not in the files of the release that were given; 1 with another case or punctuation there; "
        "1 within a longer text there"
    )
    benchmark = write_benchmark(
        tmp_path, [("AggreFact-XSum", "Nobody came.", 1), ("AggreFact-XSum", "A dog barked.", 0)]
    )
    (note,) = convert("aggrefact", [benchmark], join=f"predicted:{write_aggrefact(tmp_path)}").notes[1:]
    assert note.endswith("1 ambiguous (several systems wrote the text), 1 not matched; 1 there under another data set")
    benchmark = write_benchmark(tmp_path, [("ClaimVerify", "Nobody knows.", 0)])
    (note,) = convert("aggrefact", [benchmark], join=f"claimverify:{write_claimverify(tmp_path)}").notes[1:]
    assert note.endswith("1 in the release without a system")


def test_the_releases_are_claims_of_their_own(tmp_path: Path) -> None:
    reveal = convert("reveal", [write_reveal(tmp_path)]).claims
    assert [None if pd.isna(label) else label for label in reveal["label"]] == [1, 0, 0, None]
    assert reveal["response_id"].nunique() == 2
    verified = convert("claimverify", [write_claimverify(tmp_path)])
    assert verified.claims["label"].tolist() == [1, 0, 0]
    assert verified.claims["doc"].tolist() == ["A page."] * 3
    assert "1 claim without a system: their response is not among the annotations" in verified.notes
    alone = convert("claimverify", [tmp_path / "human_evaluation_annotations.jsonl"]).claims
    assert alone["system"].tolist() == ["Bing Chat", "YouChat"]
    expert = convert("expertqa", [write_expertqa(tmp_path)]).claims
    assert [None if pd.isna(label) else label for label in expert["label"]] == [1, None, 0, 0]
    assert expert["doc"].tolist() == ["[1] A page.\n\nAnother."] * 4
    assert expert["topic"].unique().tolist() == ["Law", "Physics"]


def test_the_releases_are_recognised(tmp_path: Path) -> None:
    assert detect_dataset_format(write_reveal(tmp_path)) == "reveal"
    assert detect_dataset_format(write_expertqa(tmp_path)) == "expertqa"
    assert detect_dataset_format(write_aggrefact(tmp_path)) == "predicted"
    folder = write_claimverify(tmp_path)
    for name in ("verifiability_judgments_test.jsonl.gz", "human_evaluation_annotations.jsonl"):
        assert detect_dataset_format(folder / name) == "claimverify"


def test_a_release_without_origin_is_an_error(tmp_path: Path) -> None:
    path = write_aggrefact(tmp_path)
    pd.read_csv(path).drop(columns="origin").to_csv(path, index=False)
    with pytest.raises(InputError, match="expected the column 'origin'"):
        convert("aggrefact", [write_benchmark(tmp_path, [("AggreFact-CNN", "x", 1)])], join=f"predicted:{path}")


def test_all_data_sets_with_several_systems_can_be_joined() -> None:
    """Of the others people wrote the claims (WiCE), or one system did (FactCheck-GPT)."""
    assert set(JOINABLE) == {"tofueval", "lfqa", "ragtruth", "predicted", "reveal", "claimverify", "expertqa"}
