"""Plan, sample, page, labels, estimate, report on the quickstart's data, with a scripted annotator in the browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import run_command
from test_estimate_page import Page, browser, browser_test

import factaudit

__all__ = ["browser"]


@browser_test
@pytest.mark.slow
def test_on_the_quickstarts_data(root: Path, tmp_path: Path, browser: Callable[[], Page]) -> None:
    work = tmp_path / "work"
    truth = factaudit.read_claims(root / "data" / "minibench" / "claims.jsonl.gz")
    truth = truth[truth["dataset"].isin(["mini-summ", "mini-verify"])].reset_index(drop=True)
    answers = dict(zip(truth["claim"], truth["label"], strict=True))
    factaudit.write_table(truth.assign(label=None), work / "claims.parquet")
    evaluators = [part for name in ("rouge2", "unigram", "tfidf") for part in ("--evaluator", name)]
    assert run_command("judge", work / "claims.parquet", *evaluators, "--out", work / "verdicts.parquet") == 0
    tables = (work / "claims.parquet", work / "verdicts.parquet", "--main", "tfidf")
    written = ("--out", work / "sample.parquet", "--page", work / "label.html")
    assert run_command("sample", *tables, "--budget", "48", *written) == 0

    view = browser().open(work / "label.html")
    while view.text("count") != "48 of 48":
        view.press(str(answers[view.text("claim")]))
    labels = view.download()

    assert run_command("labels", labels, "--claims", work / "claims.parquet", "--out", work / "labels.parquet") == 0
    with_labels = ("--label-file", work / "labels.parquet", "--sample", work / "sample.parquet")
    assert run_command("estimate", *tables, *with_labels, "--level", "claim", "--out", work / "rates") == 0
    audits = json.loads((work / "rates" / "results.json").read_text(encoding="utf-8"))["audits"]
    assert sum(row["n_labels"] for row in audits["estimate_summary"]) == 48
    rates = [row for row in audits["estimates"] if row["method"] == "hierarchical"]
    known = truth.assign(error=1 - truth["label"]).groupby(["dataset", "system"])["error"].mean()
    held = [row["rate_low"] <= known[row["dataset"], row["system"]] <= row["rate_high"] for row in rates]
    assert len(held) == 12
    assert sum(held) >= 9
    assert (work / "rates" / "report.html").is_file()
