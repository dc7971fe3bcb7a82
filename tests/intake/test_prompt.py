"""On a terminal the open reading is asked for, and the answer is what is read."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pandas as pd
import pytest
from conftest import run_command

CLAIMS = [f"The ferry {i} leaves at noon." for i in range(12)]


class Terminal(io.StringIO):
    """What is typed, or shown."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    rows = {"claim": CLAIMS, "human_label": [1, 2, 1] * 4, "judge": [0.9, 0.2, 0.7] * 4}
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def run_on_terminal(
    monkeypatch: pytest.MonkeyPatch, typed: str, *arguments: object
) -> tuple[int, str]:
    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys, "stdout", shown)
    return run_command(*arguments), shown.getvalue()


@pytest.mark.parametrize(
    ("typed", "share"), [("1\n", "66.7%"), ("2\n1\n", "33.3%"), ("9\nx\n1\n", "66.7%")]
)
def test_the_answer_is_what_is_read(typed, share, table, monkeypatch):
    code, shown = run_on_terminal(monkeypatch, typed, "inspect", table)
    assert code == 0
    assert "unclear   human_label (1, 2): from which value on is a claim supported" in shown
    assert "1  --labels 1=1,2=0" in shown
    assert "2  --labels 1=0,2=1" in shown
    assert f"12 labelled ({share} attributable)" in shown


def test_without_an_answer_nothing_is_read(table, monkeypatch):
    code, shown = run_on_terminal(monkeypatch, "", "inspect", table)
    assert code != 0
    assert "12 labelled" not in shown


def test_without_a_terminal_the_commands_are_said(table, call):
    code, out, err = call("inspect", table)
    assert code == 2
    assert "12 labelled" not in out
    assert f"factaudit inspect {table} --labels 1=1,2=0" in err


def test_a_page_to_label_on_needs_text(tmp_path, call):
    rows = {"case_id": range(12), "human_label": [1, 0, 1] * 4, "judge": [0.9, 0.2, 0.7] * 4}
    path, page, sample = tmp_path / "ids.csv", tmp_path / "page.html", tmp_path / "sample.parquet"
    pd.DataFrame(rows).to_csv(path, index=False)
    code, _, err = call("sample", path, "--budget", 6, "--out", sample, "--page", page)
    assert code == 2
    assert "has no text to show on a page" in err
    assert "--claim COLUMN" in err
    assert not page.exists()
    assert not sample.exists()
    assert call("sample", path, "--budget", 6, "--out", sample)[0] == 0
