"""What all runs share: calls counted over resumed runs under one limit, the folder held, stale
files removed."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from scripted_llm import ChatReply, LLMCostBudget, Send

from factaudit import FactauditError
from factaudit.experiment.folder import RunFolder, count_run_llm_calls, sum_run_call_costs
from factaudit.llm.cost import LLMCallUsage


class Caller:
    """Counts calls and has a limit, as clients and evaluators do."""

    signature = "llm|model:m"

    def __init__(self) -> None:
        self.usage = LLMCallUsage()
        self.budget: LLMCostBudget | None = None

    def send(
        self,
        most: float | None,
        cost: float | None = None,
        status: str = "ok",
    ) -> None:
        """Write down a send, and settle it where a cost is given."""
        assert self.budget is not None
        store, send = (
            self.budget.open_store(None),
            Send(uuid.uuid4().bytes, self.budget.run, self.usage.caller, most, 3),
        )
        assert self.budget.begin(store, send) == "send"
        if cost is not None:
            store.finish(send.key, status, (3, 2), cost)


def test_calls_are_counted_over_runs_and_no_caller_is_lost(tmp_path):
    path = tmp_path / "calls.json"
    one, two = Caller(), Caller()
    for _ in range(2):
        one.usage.cached_calls += 5  # before this run: not of this folder
        with count_run_llm_calls(
            [("judge", one), ("judge", two), ("silent", object())], path
        ) as rows:
            one.send(0.5, 0.5)
            one.usage.cached_calls += 1
            two.send(9.0, 0.25)
            two.usage.count_reply(ChatReply("ok", model="m-1", fingerprint="fp"))
    told = [
        (row["evaluator"], row["calls"], row["cached_calls"], row["cost"], row["served"])
        for row in rows
    ]
    assert told == [("judge", 2, 2, 1.0, None), ("judge", 2, 0, 0.5, "m-1 (fp)")]
    assert sum_run_call_costs(rows) == 1.5
    assert one.budget is None, "what a caller had before it has again"


def test_the_counts_are_kept_where_a_run_fails(tmp_path):
    caller = Caller()

    def stopped():
        with count_run_llm_calls([("judge", caller)], tmp_path / "calls.json"):
            caller.send(1.0, 0.5)
            caller.usage.cached_calls += 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    with count_run_llm_calls([("judge", caller)], tmp_path / "calls.json") as rows:
        pass
    assert (rows[0]["calls"], rows[0]["cached_calls"], rows[0]["cost"]) == (1, 1, 0.5)


def test_what_a_killed_process_paid_or_may_have_paid_counts_too(tmp_path):
    path = tmp_path / "calls.json"
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[2]); from pathlib import Path\nfrom"
        " test_runfolder import Caller, count_run_llm_calls\ncaller = Caller(); run ="
        " count_run_llm_calls([('judge', caller)], Path(sys.argv[1]));"
        " run.__enter__()\ncaller.send(0.75, 0.5); caller.send(0.75);"
        " os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(path), str(Path(__file__).parent)])
    assert killed.returncode == -9
    again = Caller()
    with count_run_llm_calls([("judge", again)], path, 2.0) as rows:
        assert again.budget is not None
        assert again.budget.spent == 1.25
        send = Send(b"x", again.budget.run, most_cost=0.8)
        assert again.budget.begin(again.budget.open_store(None), send) == "over"
        again.send(0.75, 0.25)
    assert [
        (row["calls"], row["possible_calls"], row["cost"], row["possible_cost"]) for row in rows
    ] == [(3, 1, 1.5, 0.75)]


def test_one_limit_is_shared_by_all_callers_and_all_runs(tmp_path):
    one, two = Caller(), Caller()
    with count_run_llm_calls([("a", one), ("b", two)], tmp_path / "calls.json", 2.0):
        one.send(1.5, 1.5)
    with count_run_llm_calls([("a", one), ("b", two)], tmp_path / "calls.json", 2.0):
        assert one.budget is two.budget is not None
        assert (one.budget.max_cost, one.budget.spent) == (2.0, 1.5)


def test_a_folder_is_held_and_what_is_stale_is_removed(tmp_path):
    (tmp_path / ".factaudit-0123.csv").write_text("half")
    with RunFolder.open(tmp_path):
        assert not (tmp_path / ".factaudit-0123.csv").exists()
        with (
            pytest.raises(FactauditError, match="another run is writing"),
            RunFolder.open(tmp_path),
        ):
            pass
