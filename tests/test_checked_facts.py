"""What SAFE, VeriScore, FActScore-turbo and OpenFActScore write, read as facts with verdicts.

The files are authored in the shapes that the tools' code writes; the right readings stand beside them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from factaudit.datasets import Conversion, convert
from factaudit.datasets.format_detection import detect_dataset_format
from factaudit.errors import InputError
from factaudit.results import compare

TEXT = "Ada Fenn was a miller in Ludlow. She sold her mill in 1911."


def write(path: Path, content: Any) -> Path:
    lines = content if isinstance(content, list) else [content]
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def statement(fact: str, annotation: str, sentence: int = 0) -> dict[str, Any]:
    rated = annotation != "Irrelevant"
    return {
        "sentence": TEXT.split(". ")[sentence],
        "atomic_fact": fact.replace("Ada Fenn", "She"),
        "self_contained_atomic_fact": fact,
        "relevance_data": {"answer": "Foo" if rated else "Not Foo"},
        "rate_data": {"response": f"So [{annotation}]", "answer": annotation} if rated else None,
        "annotation": annotation,
    }


def make_safe_file() -> dict[str, Any]:
    facts = [
        statement("Ada Fenn was a miller.", "Supported"),
        statement("Ada Fenn lived in Ludlow.", "Not Supported"),
        statement("Ada Fenn is a name.", "Irrelevant"),
    ]
    searched = {"google_searches": [{"query": "Ada Fenn", "result": "A miller."}, {"query": "mill", "result": "1911."}]}
    evaluation = {
        "prompt": "Who was Ada Fenn?",
        "response": TEXT,
        "num_claims": 4,
        "all_atomic_facts": [
            {"sentence": TEXT.split(". ")[0], "atomic_facts": [one["atomic_fact"] for one in facts]},
            {"sentence": TEXT.split(". ")[1], "atomic_facts": ["She sold her mill."]},
        ],
        "checked_statements": facts,
        "revised_fact_jsonified_all": [{}, {}, {}],
        "past_steps_jsonified_all": [searched, {"google_searches": []}, {}],
        "Supported": 1,
        "Irrelevant": 1,
        "Not Supported": 1,
        "f1_64": 0.03,
    }
    other = {**evaluation, "response": "Yes.", "all_atomic_facts": [], "checked_statements": []}
    return {
        "side_1": "gpt_4",
        "side_2": "claude",
        "autoeval_configs": {"model": "OPENAI:gpt-3.5-turbo-0125"},
        "per_prompt_data": [
            {
                "prompt": "Who was Ada Fenn?",
                "side1_response": TEXT,
                "side2_response": "Yes.",
                "side1_posthoc_eval_data": evaluation,
                "side2_posthoc_eval_data": other | {"past_steps_jsonified_all": []},
            }
        ],
    }


def veriscore_line(**more: Any) -> dict[str, Any]:
    found = [
        {
            "claim": "Ada Fenn was a miller.",
            "search_results": "Search result 1\nTitle: A",
            "verification_result": "supported",
        },
        {"claim": "Ada Fenn lived in Ludlow.", "search_results": "", "verification_result": "contradicted"},
        {"claim": "Ada Fenn sold her mill.", "search_results": "", "verification_result": None},
    ]
    return {
        "question": "Who was Ada Fenn?",
        "prompt_source": "longfact",
        "response": TEXT,
        "prompt_tok_cnt": 9,
        "response_tok_cnt": 9,
        "model": "gpt-4",
        "abstained": False,
        "claim_list": [[found[0]["claim"], found[1]["claim"]], [found[2]["claim"], "It was 1911."]],
        "all_claims": [*(one["claim"] for one in found), "It was 1911."],
        "claim_search_results": {},
        "claim_verification_result": found,
    } | more


TURBO = {
    "decisions": [
        [
            {"atom": "Ada Fenn was a miller.", "is_supported": True, "span": [0, 22]},
            {"atom": "Ada Fenn lived in Ludlow.", "is_supported": False, "span": None},
        ],
        [],
    ],
    "scores": [0.5, 0],
    "passages": {"Ada Fenn was a miller.": [{"title": "Ada Fenn", "text": "<s>A miller.</s>"}]},
}
OPEN = {
    "score": 0.27,
    "respond_ratio": 0.5,
    "decisions": [[{"atom": "Ada Fenn was a miller.", "is_supported": True}], None],
    "num_facts_per_response": 1.0,
    "config_name": "retrieval+Olmo+Gemma",
    "init_score": 0.5,
}


def read(found: Conversion) -> list[tuple[Any, ...]]:
    """Each fact with system, prediction, status, sentence and document."""
    assert found.verdicts is not None
    table = found.claims.merge(found.verdicts, on="claim_id", how="left")
    rows = table[["system", "claim", "prediction", "status", "doc"]].astype(object)
    return list(rows.where(rows.notna(), None).itertuples(index=False, name=None))


def test_safe(tmp_path: Path) -> None:
    path = write(tmp_path / "2024-SAFE.json", make_safe_file())
    found = convert("safe-results", [path])
    assert read(found) == [
        ("gpt_4", "Ada Fenn was a miller.", 1, "ok", "A miller.\n\n1911."),
        ("gpt_4", "Ada Fenn lived in Ludlow.", 0, "ok", None),
        ("gpt_4", "She sold her mill.", None, "error", None),
        ("claude", None, None, None, None),
    ]
    assert found.notes == ["1 irrelevant fact left out, as SAFE does"]
    assert found.claims["sentence"].tolist()[:2] == [TEXT.split(". ")[0]] * 2


def test_veriscore(tmp_path: Path) -> None:
    lines = [
        veriscore_line(),
        veriscore_line(model="b", all_claims=["No verifiable claim."], claim_list=[], claim_verification_result=[]),
        {"question": "?", "response": "I'm sorry.", "abstained": True, "prompt_source": "longfact", "model": "b"},
    ]
    found = convert("veriscore-results", [write(tmp_path / "verification_x_3.jsonl", lines)])
    assert read(found) == [
        ("gpt-4", "Ada Fenn was a miller.", 1, "ok", "Search result 1\nTitle: A"),
        ("gpt-4", "Ada Fenn lived in Ludlow.", 0, "ok", None),
        ("gpt-4", "Ada Fenn sold her mill.", None, "unparsed", None),
        ("gpt-4", "It was 1911.", None, "error", None),
        ("b", None, None, None, None),
        ("b", None, None, None, None),
    ]
    assert found.claims["dataset"].unique().tolist() == ["longfact"]
    rows = {row["system"]: row for row in compare(found.claims, found.verdicts, audits=["factscore"]).rows("factscore")}
    assert (rows["b"]["n_abstained"], rows["b"]["n_without_facts"]) == (1, 1)
    assert (rows["gpt-4"]["init_score"], rows["gpt-4"]["init_score_max"]) == (0.25, 0.75)


def test_turbo_and_open_factscore(tmp_path: Path) -> None:
    scored = write(
        tmp_path / "in.jsonl", [{"topic": "Ada Fenn", "output": TEXT}, {"topic": "Bo", "output": "No idea."}]
    )
    turbo = write(tmp_path / "turbo.json", TURBO)
    found = convert("factscore-results", [turbo], responses=scored, system="a")
    assert read(found) == [
        ("a", "Ada Fenn was a miller.", 1, "ok", "A miller."),
        ("a", "Ada Fenn lived in Ludlow.", 0, "ok", None),
        ("a", None, None, None, None),
    ]
    assert found.claims["topic"].tolist() == ["Ada Fenn", "Ada Fenn", "Bo"]
    assert found.claims["abstained"].tolist()[-1] == 0
    opened = convert("factscore-results", [write(tmp_path / "open.json", OPEN)], responses=scored)
    assert read(opened) == [("open", "Ada Fenn was a miller.", 1, "ok", None), ("open", None, None, None, None)]
    assert opened.verdicts is not None
    assert opened.verdicts["evaluator"].unique().tolist() == ["retrieval+Olmo+Gemma"]
    assert opened.claims["abstained"].tolist()[-1] == 1
    # Facts that are read so are audited like our own: "Ludlow" is in the text, "glazier" would not be.
    rows = compare(found.claims, found.verdicts, audits=["decomposition"]).rows("decomposition")
    assert [(row["n"], row["invented"]) for row in rows] == [(2, 0.0)]
    with pytest.raises(InputError, match="expected decisions on each of 1 responses of"):
        convert("factscore-results", [turbo], responses=write(tmp_path / "one.jsonl", [{"output": TEXT}]))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("2024-SAFE.json", make_safe_file(), "safe-results"),
        ("verification_x_3.jsonl", [veriscore_line()], "veriscore-results"),
        ("turbo.json", TURBO, "factscore-results"),
        ("open.json", OPEN, "factscore-results"),
    ],
)
def test_each_is_recognised_by_what_it_holds(name: str, content: Any, expected: str, tmp_path: Path) -> None:
    assert detect_dataset_format(write(tmp_path / name, content)) == expected
