"""The experiment on MF's own outputs (see test_merging_facts), and what is wrong with a YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from factaudit.engines.dfactscore.settings import load, run
from factaudit.errors import InputError


def test_the_experiment_rebuilds_the_table(shared: Path, root: Path, tmp_path: Path) -> None:
    settings = {"data": str(shared), "replicates": 50}
    results = run(root / "experiments/dfactscore_published.yaml", tmp_path, settings=settings)
    printed = [row for row in results.audits["dfactscore_printed"] if row["rebuilt"] is not None]
    assert len(printed) == 16
    assert all(row["same"] for row in printed)
    assert {row["evaluator"] for row in results.audits["dfactscore"]} == {"retrieval+ChatGPT"}
    assert [row["recall"] for row in results.audits["citations"]] == pytest.approx([0.4351300866, 0.5543950216])
    assert "Facts that belong to someone else" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "tables/dfactscore.csv").is_file()


def test_a_wrong_experiment_is_said_by_line(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text("dfactscore:\n  published: x.json\n  knowlege: y\n")
    with pytest.raises(InputError, match=r"line 3.*knowlege"):
        load(path)
    path.write_text("dfactscore:\n  biographies: x.jsonl\n  groupers: heuristics\n")
    with pytest.raises(InputError, match="line 3"):
        load(path)
    path.write_text("dfactscore:\n  biographies: e.yaml\n  verifier: unigran\naudits: [rate]\n")
    with pytest.raises(InputError, match=r"line 3.*did you mean 'unigram'[\s\S]*line 4: unknown audit"):
        load(path)
    path.write_text("dfactscore:\n  biographies: x.jsonl\n")
    with pytest.raises(InputError, match="line 2: no such file"):
        load(path)
    path.write_text("dfactscore:\n  biographies: ${data}/x.jsonl\n")
    with pytest.raises(InputError, match="'data' is not set"):
        load(path)
