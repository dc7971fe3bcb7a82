"""Plan, sample, page, labels, estimate, report on the quickstart's data, with a scripted annotator in the browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from test_estimate_page import Page, browser, browser_test

import factaudit
from factaudit.cli import main

__all__ = ["browser"]


def run(*arguments: str | Path) -> None:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    assert left.value.code == 0


@browser_test
@pytest.mark.slow
def test_on_the_quickstarts_data(root: Path, tmp_path: Path, browser: Callable[[], Page]) -> None:
    work = tmp_path / "work"
    truth = factaudit.read_claims(root / "data" / "minibench" / "claims.jsonl.gz")
    truth = truth[truth["dataset"].isin(["mini-summ", "mini-verify"])].reset_index(drop=True)
    answers = dict(zip(truth["claim"], truth["label"], strict=True))
    factaudit.write_table(truth.assign(label=None), work / "claims.parquet")
    evaluators = [part for name in ("rouge2", "unigram", "tfidf") for part in ("--evaluator", name)]
    run("judge", work / "claims.parquet", *evaluators, "--out", work / "verdicts.parquet")
    tables = (work / "claims.parquet", work / "verdicts.parquet", "--main", "tfidf")
    run("plan", *tables, "--tpr", "0.5", "--tnr", "0.7", "--budget", "40", "--out", work / "plan.csv")
    run("sample", *tables, "--budget", "48", "--out", work / "sample.parquet", "--page", work / "label.html")

    view = browser().open(work / "label.html")
    while view.text("count") != "48 of 48":
        view.press(str(answers[view.text("claim")]))
    labels = view.download()

    run("labels", labels, "--claims", work / "claims.parquet", "--out", work / "labels.parquet")
    with_labels = ("--labels", work / "labels.parquet", "--sample", work / "sample.parquet")
    run("estimate", *tables, *with_labels, "--level", "claim", "--out", work / "rates")
    audits = json.loads((work / "rates" / "results.json").read_text(encoding="utf-8"))["audits"]
    assert sum(row["n_labels"] for row in audits["estimate_summary"]) == 48
    rates = [row for row in audits["estimates"] if row["method"] == "hierarchical"]
    known = truth.assign(error=1 - truth["label"]).groupby(["dataset", "system"])["error"].mean()
    held = [row["rate_low"] <= known[row["dataset"], row["system"]] <= row["rate_high"] for row in rates]
    assert len(held) == 12
    assert sum(held) >= 9
    assert (work / "rates" / "report.html").is_file()
