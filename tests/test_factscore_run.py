"""`factaudit factscore` end to end: the run folder, the experiment, the real client; kills are in
test_kills.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from llm_server import FaultServer, Plan
from published_server import read_wiki_pages
from scripted_llm import answer_two_facts

from factaudit import FactauditError, Results, read_claims, read_verdicts
from factaudit import run as run_experiment
from factaudit.engines.pipeline import DFactScoreSettings, Pipeline, open_knowledge_source
from factaudit.engines.runs import FactScoreExperiment

PAGES = [
    {
        "title": "Ada Fenn",
        "text": "Ada Fenn was a miller. She was born in Emberlow. She won the Quill in 1901.",
    },
    {"title": "Tobin Reyce", "text": "Tobin Reyce is a painter. He lives in Port Candle."},
]
RESPONSES = [
    {"topic": "Ada Fenn", "output": "Ada was a miller. She was wrong. She won.", "system": "one"},
    {"topic": "Tobin Reyce", "output": "I'm sorry, I do not know.", "system": "one"},
    {"topic": "Tobin Reyce", "output": "Tobin paints.", "system": "two"},
    {"topic": "Nobody", "output": "Nobody sang.", "system": "two"},
]


def plan(body: dict[str, Any], attempt: int) -> Plan:
    return Plan(text=answer_two_facts(body["messages"][-1]["content"]), delay=0.002)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    return write(tmp_path / "pages.jsonl", PAGES)


def score(
    tmp_path: Path, rows: list[dict[str, Any]], said: list[str] | None = None, **block: Any
) -> Results:
    """A run into ``run``, with a scripted server where no verifiers are named."""
    with FaultServer(plan=plan) as server:
        llm = {
            "model": "m",
            "base_url": server.url,
            "server_name": "s",
            "cache": str(tmp_path / "llm.sqlite"),
        }
        settings = {
            "responses": [str(write(tmp_path / "bios.jsonl", rows))],
            "gamma": 0,
            **block,
        }
        settings |= {"knowledge": str(tmp_path / "pages.jsonl")}
        settings |= {} if "verifiers" in block else {"llm": llm}
        experiment = FactScoreExperiment.model_validate({"factscore": settings, "replicates": 50})
        results = run_experiment(
            experiment, tmp_path / "run", say=(said if said is not None else []).append
        )
        assert set(server.paid.values()) <= {1}
    return results


def test_a_run_folder_has_all_that_it_takes_to_question_the_number(pages, tmp_path):
    out = tmp_path / "run"
    said = []
    results = score(tmp_path, RESPONSES, said)
    claims = read_claims(out / "claims.parquet")
    verdicts = read_verdicts(out / "verdicts.parquet", claims=claims)
    rows = [json.loads(line) for line in (out / "responses.jsonl").read_text().splitlines()]
    # Nothing was paid for the response of whose topic there is no page: its sentence stands for its
    # facts.
    assert claims["claim"].notna().sum() == len(verdicts) == 9
    assert claims["abstained"].notna().sum() == 1
    told = {(row["system"], row["topic"]): (row["score"], row["n_facts"]) for row in rows}
    assert told == {
        ("one", "Ada Fenn"): (4 / 6, 6),
        ("one", "Tobin Reyce"): (None, 0),
        ("two", "Tobin Reyce"): (1.0, 2),
        ("two", "Nobody"): (None, 1),
    }
    whole = results.audits["factscore"][0]
    assert results.about["reading"] == ["no page for the topic 'Nobody' in the knowledge source"]
    assert whole["score"] == pytest.approx((4 / 6 + 1) / 2)
    assert (whole["respond_ratio"], whole["n_responses"], whole["n_facts"]) == (0.75, 4, 9)
    assert (whole["num_facts_per_response"], whole["n_unparsed"]) == (8 / 2, 0)
    assert [(row["system"], row["n_scored"]) for row in results.audits["factscore"]] == [
        ("__all__", 2),
        ("one", 1),
        ("two", 1),
    ]
    assert "scored            2 of 4 responses; 1 abstained" in said
    assert sum("'Nobody'" in one for one in said) == 1
    # Without labels, systems' error rates are all that can be said at the level of claims.
    levels = [row for row in results.audits["quantification"] if row["level"] == "claim"]
    rates = {row["system"]: row["predicted_error_rate"] for row in levels}
    assert rates["one"] == pytest.approx(2 / 6)
    assert "factscore_agreement" not in results.audits
    # A sentence that nobody decomposed is no fact of the decomposer's: not in its faults, nor in
    # what it left out.
    whole = results.audits["decomposition"][0]
    assert (whole["system"], whole["n"], whole["n_responses"], whole["n_sentences"]) == (
        "__all__",
        8,
        2,
        4,
    )
    html = (out / "report.html").read_text(encoding="utf-8")
    assert "FActScore of the systems" in html
    assert (out / "figures/factscore.svg").is_file()
    # A finished run asks nothing.
    (asked,) = results.calls
    assert (asked["evaluator"], asked["calls"]) == ("retrieval+m", 4 + 8)
    (again,) = score(tmp_path, RESPONSES).calls
    assert again["calls"] == 12


def test_labels_bring_the_audits_and_the_agreement_with_people(pages, tmp_path):
    def annotated(topic, *facts):
        labelled = [{"text": text, "label": label} for text, label in facts]
        sentence = {
            "text": "All.",
            "is-relevant": True,
            "model-atomic-facts": [],
            "human-atomic-facts": labelled,
        }
        return {"topic": topic, "output": "All.", "annotations": [sentence]}

    rows = [
        annotated(
            "Ada Fenn",
            ("Ada Fenn was a miller.", "S"),
            ("She likes tea.", "NS"),
            ("It is so.", "IR"),
        ),
        annotated("Tobin Reyce", ("Tobin Reyce is a painter.", "S")),
        {"topic": "Ada Fenn", "output": "Nothing.", "annotations": None},
    ]
    results = score(tmp_path, rows, verifiers=["rouge2", "always-yes"], facts="human")
    rates = {
        row["evaluator"]: row for row in results.audits["rates"] if row["dataset"] == "factscore"
    }
    assert (rates["rouge2"]["tpr"], rates["rouge2"]["tnr"]) == (1, 1)
    assert rates["always-yes"]["tnr"] == 0
    figures = [
        row for row in results.audits["factscore_agreement"] if row["figure"] == "init_score"
    ]
    agreement = {row["evaluator"]: row for row in figures}
    assert agreement["rouge2"]["human"] == 0.75
    assert {row["evaluator"]: row["auc"] for row in results.audits["discrimination"]}["rouge2"] == 1
    html = (tmp_path / "run/report.html").read_text(encoding="utf-8")
    assert "Predicted scores against people" in html


def test_an_experiment_runs_from_its_yaml(pages, tmp_path):
    path = tmp_path / "score.yaml"
    path.write_text(
        "title: Bios\nfactscore:\n  responses: bios.jsonl\n  knowledge: pages.jsonl\n"
        "  verifiers: [rouge2, {unigram: {threshold: 0.7}}]\nreplicates: 20\n",
    )
    write(
        tmp_path / "bios.jsonl",
        [row | {"facts": ["She was born in Emberlow."]} for row in RESPONSES],
    )
    results = run_experiment(path, tmp_path / "run", settings={"seed": 3, "factscore.k": 2})
    assert (results.about["title"], results.about["seed"]) == ("Bios", 3)
    assert [row["name"] for row in results.about["evaluators"]] == ["rouge2", "unigram@0.7"]
    assert "k:2" in results.about["evaluators"][0]["signature"]
    inputs = {Path(row["path"]).name for row in results.about["inputs"]}
    assert inputs == {"bios.jsonl", "pages.jsonl"}
    told = yaml.safe_load((tmp_path / "run/experiment.yaml").read_text())
    assert told["made_with"]["signature"] == results.signature
    assert told["factscore"]["k"] == 2
    assert set(told["made_with"]["evaluators"]) == {"rouge2", "unigram@0.7"}
    again = run_experiment(tmp_path / "run/experiment.yaml", tmp_path / "again")
    assert (again.signature, again.audits) == (results.signature, results.audits)


# ---- Wikipedia


@pytest.mark.parametrize(
    ("offline", "message"),
    [
        ("1", "was not asked, because of --offline"),
        ("", r"127.0.0.1:9/ could not be asked: HTTPConnection\(.*refused"),
    ],
)
def test_wikipedia_alone_is_tried_before_anything_is_paid_for(
    tmp_path, monkeypatch, offline, message
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FACTSCORE_DB_PATH", raising=False)
    monkeypatch.setenv("FACTAUDIT_WIKIPEDIA_API", "http://127.0.0.1:9/")
    monkeypatch.setenv("FACTAUDIT_OFFLINE", offline)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    source = open_knowledge_source(missing="wikipedia", out=tmp_path / "run")
    with pytest.raises(FactauditError, match=message):
        source.check_topics(["Ada Fenn", "Tobin Reyce"])


def test_all_pages_can_come_from_wikipedia(published, shared, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FACTSCORE_DB_PATH", raising=False)
    source = open_knowledge_source(missing="wikipedia", out=tmp_path / "run")
    topic = next(iter(read_wiki_pages(shared)))
    source.check_topics([topic])
    assert source.find_page(topic).status == "ok"
    assert source.find_page("Nobody Known").status == "skipped"
    assert sum(published.asked.values()) == 3
    # So can those of people whose names are given.
    people = DFactScoreSettings(responses=["-"], grouper="given", verifiers=["unigram"])
    assert Pipeline.open(people, tmp_path / "run").knowledge is None
    asks = people.model_copy(update={"missing": "wikipedia"})
    assert Pipeline.open(asks, tmp_path / "run").knowledge == source
