"""Every shipped experiment runs by its name alone, and its report says what its rows hold.

The server on loopback stands for the network, a scripted one for the model: `test_llm_local.py` has
the real one.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from kills import answer
from llm_server import FaultServer, Plan
from test_audit_findings import assert_numbers_are_evidence

from factaudit import Results
from factaudit.llm.local_server import LocalModelServer
from factaudit.publications import fetching, register

ROOT = Path(__file__).parents[1]
EXPERIMENTS = sorted(path.stem for path in (ROOT / "experiments").glob("*.yaml"))
#: Those that rest on published files that do not ship.
PUBLISHED = {
    "aggrefact_scores",
    "chunking_lexical",
    "dfactscore_published",
    "factscore_labeled",
    "long_documents",
}
PUBLISHED |= {"surface_bias_ragtruth"}
#: Settings for the published files that the reference data have in another form.
REFERENCE_FORMS = {"surface_bias_ragtruth": {"claims.options.text": "ragtruth/qa_test_text.jsonl"}}
#: Without the model that a script makes (tests/test_perturb.py runs it with one), and less of what
#: takes long. `test_factscore_labeled.py` verifies all of ChatGPT's facts by unigram and rouge2,
#: `test_merging_facts.py` reads all files.
SHORTER = {
    "invariance": (
        (
            "evaluators=[rouge2, unigram, {llm: {model: smollm2, base_url: local, template: short,"
            " concurrency: 1}}]"
        ),
    ),
    "chunking_lexical": ("limit_documents=40",),
    "factscore_labeled": (
        "factscore.verifiers=[unigram]",
        "factscore.limit=40",
        "factscore.responses=published:factscore-labeled/third_party/factscore/labeled_data/InstructGPT.jsonl",
        "replicates=50",
    ),
    "dfactscore_published": (
        (
            "claims.0.source=published:merging-facts/result/factscore/"
            "bioqa-gpt-3.5-turbo-0301-gtr-shot2-ndoc5-42_chatgpt_factscore_output.json"
        ),
        "replicates=50",
    ),
}
#: Those that need a model.
MODEL = {"compare_evaluators", "invariance"}


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A scripted server in the place of the one that runs the small model."""
    weights = tmp_path / "weights.gguf"
    weights.write_bytes(b"of a model")
    with FaultServer(
        plan=lambda body, attempt: Plan(text=answer(body["messages"][-1]["content"]))
    ) as server:
        monkeypatch.setattr(LocalModelServer, "find_model", lambda *_: LocalModelServer(weights))
        monkeypatch.setattr(LocalModelServer, "start", lambda _: server.url)
        yield server


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.slow
def test_an_experiment_runs_by_its_name_alone(
    name, request, serve, folder, model, tmp_path, monkeypatch, call
):
    if name in PUBLISHED:
        shared, server = request.getfixturevalue("shared"), request.getfixturevalue("published")
        # Of a publication the server has the files that the reference data have.
        with (shared / "SOURCES.csv").open(encoding="utf-8") as stream:
            rows = [row for row in csv.DictReader(stream) if row["here"]]
        here = {f"{row['repository']}/{row['commit']}/{row['path']}" for row in rows}
        served = tuple(
            file for file in register.list_published_files() if str(file.stored_path) in here
        )
        for module in (register, fetching):
            monkeypatch.setattr(module, "list_published_files", lambda: served)
    else:
        server = serve(lambda path, asked: asked.send_error(404))
    monkeypatch.chdir(tmp_path)
    settings = [
        f"--set={key}={shared / path}" for key, path in REFERENCE_FORMS.get(name, {}).items()
    ]
    shorter = [f"--set={setting}" for setting in SHORTER.get(name, ())]
    code, out, err = call("run", ROOT / "experiments" / f"{name}.yaml", *settings, *shorter)
    assert code == 0, err
    run = tmp_path / "runs" / name
    report = (run / "report.html").read_text(encoding="utf-8")
    if name in PUBLISHED and not settings:
        assert "fetching" in out
        assert (run / "references.bib").read_text(encoding="utf-8").startswith("@")
        assert "references.bib has the citations" in report
    elif name not in PUBLISHED or settings:
        assert not server.asked
    if name == "dfactscore_published":
        check_merging_facts(run)
    assert bool(model.paid) == (name in MODEL)
    check_report(run)


def check_merging_facts(run):
    results = Results.load(run)
    assert {row["evaluator"] for row in results.audits["dfactscore"]} == {"retrieval+ChatGPT"}
    assert [row["recall"] for row in results.audits["citations"]] == pytest.approx(
        [0.4351300866, 0.5543950216]
    )
    assert "Facts that belong to someone else" in (run / "report.html").read_text(encoding="utf-8")
    assert (run / "tables" / "dfactscore.csv").is_file()


@pytest.mark.slow
def test_the_report_of_the_demo_says_what_its_rows_hold(tmp_path, call):
    assert call("run", "demo", "--out", tmp_path)[0] == 0
    check_report(tmp_path)


def check_report(run):
    """Every number that it says is a value of its rows."""
    results = Results.load(run).to_dict()
    for finding in results["findings"]:
        assert_numbers_are_evidence(finding)


def test_the_table_of_experiments_has_them_all():
    table = (ROOT / "experiments" / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| \[(\w+)\]\(\1\.yaml\)", table, re.MULTILINE)) == EXPERIMENTS
