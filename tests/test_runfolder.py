"""What all runs share: calls counted over resumed runs under one limit, the folder held, stale files removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from factaudit.engines.factscore.engine import FactScorer
from factaudit.errors import FactauditError
from factaudit.llm.cost import Budget, Usage
from factaudit.results import Results
from factaudit.runfolder import counted, finish, opened, total_cost


class Caller:
    """Counts calls and has a limit, as clients and evaluators do."""

    signature = "llm|model:m"

    def __init__(self) -> None:
        self.usage = Usage()
        self.budget: Budget | None = None


def test_calls_are_counted_over_runs_and_no_caller_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "calls.json"
    one, two = Caller(), Caller()
    one.usage.paid(100, 10, 7.0)  # before this run: not of this folder
    for _ in range(2):
        with counted([("judge", one), ("judge", two), ("silent", object())], path) as rows:
            one.usage.paid(3, 2, 0.5)
            two.usage.paid(1, 1, 0.25)
    assert [(row["evaluator"], row["calls"], row["cost"]) for row in rows] == [("judge", 2, 1.0), ("judge", 2, 0.5)]
    assert total_cost(rows) == 1.5
    with counted([("judge", one)], path) as rows:
        one.usage.paid(3, 2, None)
    assert (rows[0]["calls"], rows[0]["cost"], total_cost(rows)) == (3, None, None)


def test_the_counts_are_kept_where_a_run_fails(tmp_path: Path) -> None:
    caller = Caller()

    def killed() -> None:
        with counted([("judge", caller)], tmp_path / "calls.json"):
            caller.usage.paid(3, 2, 0.5)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        killed()
    (row,) = json.loads((tmp_path / "calls.json").read_text()).values()
    assert row["cost"] == 0.5


def test_what_a_killed_process_paid_counts_too(tmp_path: Path) -> None:
    path = tmp_path / "calls.json"
    caller = Caller()
    run = counted([("judge", caller)], path)
    run.__enter__()
    for _ in range(3):
        caller.usage.paid(3, 2, 0.5)
    left = (tmp_path / "calls.jsonl").read_text()
    run.__exit__(None, None, None)
    assert not (tmp_path / "calls.jsonl").exists()
    # Killed, the process would have left this instead of its sum.
    path.unlink()
    (tmp_path / "calls.jsonl").write_text(left + '["judge|llm|mo')
    again = Caller()
    with counted([("judge", again)], path, 2.0) as rows:
        assert again.budget is not None
        assert again.budget.spent == 1.5
        again.usage.paid(3, 2, 0.25)
    assert [(row["calls"], row["prompt_tokens"], row["cost"]) for row in rows] == [(4, 12, 1.75)]


def test_one_limit_is_shared_by_all_callers_and_all_runs(tmp_path: Path) -> None:
    one, two = Caller(), Caller()
    with counted([("a", one), ("b", two)], tmp_path / "calls.json", 2.0):
        one.usage.paid(3, 2, 1.5)
    with counted([("a", one), ("b", two)], tmp_path / "calls.json", 2.0):
        assert one.budget is two.budget is not None
        assert (one.budget.max_cost, one.budget.spent) == (2.0, 1.5)


def test_an_evaluator_that_verifies_facts_is_limited_too(tmp_path: Path) -> None:
    from factaudit.knowledge.build import build

    (tmp_path / "pages.jsonl").write_text('{"title": "Ada", "text": "Ada sang."}\n')
    build(tmp_path / "pages.jsonl", tmp_path / "wiki.db")
    scorer = FactScorer(tmp_path / "wiki.db", verifiers=[{"llm": {"model": "gpt-4o-mini"}}])
    callers: list[tuple[str, Any]] = scorer.callers
    with counted(callers, tmp_path / "calls.json", 1.0):
        limits = [caller.budget.max_cost for _, caller in callers]
    assert limits == [1.0]


def test_a_folder_is_held_and_what_is_stale_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".factaudit-0123.csv").write_text("half")
    with opened(tmp_path):
        assert not (tmp_path / ".factaudit-0123.csv").exists()
        with pytest.raises(FactauditError, match="another run is writing"), opened(tmp_path):
            pass
    about = {"title": "t", "factaudit": "0", "seed": 0, "replicates": 0, "claims": [], "evaluators": [], "inputs": []}
    finish(tmp_path, Results("s", about, {"one": [{"n": 1}], "two": [{"n": 2}]}))
    mine = tmp_path / "tables/mine.csv"
    mine.write_text("a user's own")
    finish(tmp_path, Results("s", about, {"one": [{"n": 1}]}))
    names = {path.name for path in (tmp_path / "tables").iterdir()}
    assert {"mine.csv", "one.csv"} <= names
    assert "two.csv" not in names
