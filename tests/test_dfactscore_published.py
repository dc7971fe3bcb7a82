"""The experiment on files as MF publish them (theirs: test_shipped_experiments), and what is wrong with a YAML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from factaudit.errors import InputError
from factaudit.experiment import read_experiment
from factaudit.experiment import run as run_experiment

#: The result files of the authors' repository, by folder; two systems have an earlier file, with an underscore.
PUBLISHED = {
    "result/factscore": [
        "_bioqa-Llama-2-13b-chat-hf-gtr-shot2-ndoc5-42_factscore_output.json",
        "_bioqa-gpt-3.5-turbo-0301-gtr-shot2-ndoc5-42_factscore_output.json",
        "bioqa-Llama-2-13b-chat-hf-gtr-careful-shot2-ndoc5-42_factscore_output.json",
        "bioqa-Llama-2-13b-chat-hf-gtr-no-ambig-shot2-ndoc5-42_factscore_output.json",
        "bioqa-Llama-2-13b-chat-hf-gtr-shot2-ndoc5-42_chatgpt_factscore_output.json",
        "bioqa-Llama-2-13b-chat-hf-gtr-shot2-ndoc5-42_factscore_output.json",
        "bioqa-Llama-2-70b-chat-hf-gtr-no-ambig-shot2-ndoc5-42_factscore_output.json",
        "bioqa-Llama-2-70b-chat-hf-gtr-shot2-ndoc5-42_factscore_output.json",
        "bioqa-gpt-3.5-turbo-0301-gtr-no-ambig-shot2-ndoc5-42_factscore_output.json",
        "bioqa-gpt-3.5-turbo-0301-gtr-shot2-ndoc5-42_chatgpt_factscore_output.json",
        "bioqa-gpt-3.5-turbo-0301-gtr-shot2-ndoc5-42_factscore_output.json",
        "bioqa-tulu-2-dpo-13b-gtr-no-ambig-shot2-ndoc5-42_factscore_output.json",
        "bioqa-tulu-2-dpo-13b-gtr-shot2-ndoc5-42_chatgpt_factscore_output.json",
        "bioqa-tulu-2-dpo-13b-gtr-shot2-ndoc5-42_factscore_output.json",
        "bioqa-vicuna-7b-v1.5-16k-gtr-careful-shot2-ndoc5-42_factscore_output.json",
        "bioqa-vicuna-7b-v1.5-16k-gtr-no-ambig-shot2-ndoc5-42_factscore_output.json",
        "bioqa-vicuna-7b-v1.5-16k-gtr-shot2-ndoc5-42_factscore_output.json",
    ],
    "result/alce_score": [
        "bioqa-Llama-2-13b-chat-hf-gtr-careful-shot2-ndoc5-42.json.score",
        "bioqa-gpt-3.5-turbo-0301-gtr-no-ambig-shot2-ndoc5-42.json.score",
        "bioqa-tulu-2-dpo-13b-gtr-shot2-ndoc5-42.json.score",
        "bioqa-vicuna-7b-v1.5-16k-gtr-careful-shot2-ndoc5-42.json.score",
        "bioqa-vicuna-7b-v1.5-16k-gtr-shot2-ndoc5-42.json.score",
    ],
}


def decisions(number: int) -> dict[str, Any]:
    """What a result file holds, of four responses; whose first is about two people in every other file."""

    def fact(atom: str, topic: str | None) -> dict[str, Any]:
        return {"atom": atom, "is_supported": topic is not None, "supporting_topic": topic}

    other = "Ada (boxer)" if number % 2 else "Ada"
    known = [[fact("a", "Ada"), fact("b", other), fact("c", None)], [fact("d", "Bo")], None, [fact("e", None)]]
    linked = [[fact("b", "Ada" if other == "Ada" else None), fact("c", None)], [], None, [fact("e", None)]]
    return {
        "score": 0.4,
        "respond_ratio": 0.75,
        "decisions": known,
        "num_supporting_topics": 1.0 if other == "Ada (boxer)" else 2 / 3,
        "num_facts_per_response": 5 / 3,
        "init_score": 5 / 9,
        "global_score": 0.1,
        "init_global_score": 0.25 if other == "Ada" else 0.0,
        "global_decisions": linked,
        "num_groups": 1.25,
        "nan": 1.0,
    }


@pytest.mark.slow
def test_the_authors_repository_runs_as_it_is(root: Path, tmp_path: Path) -> None:
    said: list[str] = []
    for folder, names in PUBLISHED.items():
        (tmp_path / "data" / folder).mkdir(parents=True)
        for number, name in enumerate(names):
            judged = {"qid": 0, "output": "He ran [1].", "claim": "He ran [1].", "passage": ["Title: A\nHe ran."]}
            scores = {"citation_rec": 50.0, "citation_prec": 60.0}
            scores["autoais_log"] = [judged | {"model_output": 1}, judged | {"qid": 1, "model_output": 0}]
            content = scores if name.endswith(".score") else decisions(number)
            (tmp_path / "data" / folder / name).write_text(json.dumps(content))
    (tmp_path / "data" / "Readme.md").write_text("# Merging Facts")
    # A file whose recall is not that of its judgements is named and left out; the others are compared.
    odd = tmp_path / "data" / "bioqa-odd-gtr-shot2.json.score"
    odd.write_text(json.dumps(scores | {"citation_rec": 99.0}))
    data = [str(tmp_path / "data")]
    settings = {"dfactscore.published": data, "dfactscore.citations": data, "replicates": 20}
    results = run_experiment(
        root / "experiments/dfactscore_published.yaml",
        tmp_path / "out",
        settings=settings | {"replicates": 20},
        say=said.append,
    )
    systems = {row["system"] for row in results.audits["dfactscore"]} - {"__all__"}
    assert len(systems) == 17
    assert "gpt-3.5-turbo-0301 (_bioqa-gpt-3.5-turbo-0301-gtr-shot2-ndoc5-42_factscore_output.json)" in systems
    # Pairs of a fact and a person are no claims: rates of them were "predicted error rates" of a system.
    assert "quantification" not in results.audits
    assert {row["system"]: row["recall"] for row in results.audits["citations"]} == dict.fromkeys(
        [
            "Llama-2-13b-chat, careful",
            "gpt-3.5-turbo-0301, no ambiguity",
            "tulu-2-dpo-13b",
            "vicuna-7b-v1.5-16k",
            "vicuna-7b-v1.5-16k, careful",
        ],
        0.5,
    )
    assert not [line for line in said if "by its decisions" in line]
    assert [line for line in said if line.startswith(f"{odd.name}: the file is left out")]


def test_a_wrong_experiment_is_said_by_line(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text("dfactscore:\n  published: x.json\n  knowlege: y\n")
    with pytest.raises(InputError, match=r"line 3.*knowlege"):
        read_experiment(path)
    path.write_text("dfactscore:\n  biographies: x.jsonl\n  groupers: giwen\n")
    with pytest.raises(InputError, match="line 3"):
        read_experiment(path)
    path.write_text("dfactscore:\n  biographies: e.yaml\n  verifier: unigran\naudits: [rate]\n")
    with pytest.raises(InputError, match=r"line 3.*did you mean 'unigram'[\s\S]*line 4: unknown audit"):
        read_experiment(path)
    path.write_text("dfactscore:\n  biographies: x.jsonl\n")
    with pytest.raises(InputError, match="line 2: no such file"):
        read_experiment(path)
    path.write_text("dfactscore:\n  biographies: ${data}/x.jsonl\n")
    with pytest.raises(InputError, match="'data' is not set"):
        read_experiment(path)
