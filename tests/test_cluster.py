"""Judging on a Ray cluster: a real one of two nodes on this machine, of which one is killed in
mid-run."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scripted_llm import LLMJudge

from factaudit import UsageError, judge, validate_claims
from factaudit.evaluators import ray_cluster
from factaudit.evaluators.base import FromFunction
from factaudit.evaluators.judging import (
    NamedEvaluator,
    list_table_claims,
    make_named_evaluator,
    walk_evaluator_members,
)

CLAIMS = validate_claims(
    pd.DataFrame(
        {
            "claim_id": [f"c{i:03}" for i in range(120)],
            "dataset": "d",
            "doc": [f"Document {i // 10} is about {i // 10}." for i in range(120)],
            "claim": [f"It is about {i % 13}." for i in range(120)],
        }
    )
)
#: An evaluator of the user's own, which no node can import. It notes whom it judged, where, and
#: takes its time.
MODULE = '''
import json, os, sys, time
from dataclasses import dataclass
from factaudit import FactauditError
from factaudit import Verdict

@dataclass
class Slow:
    notes: str = ""
    seconds: float = 0.0
    fails_at: str = ""
    nodes: int = 0
    signature = "slow|version:1"

    def judge(self, claims):
        self.gpu = os.environ.get("CUDA_VISIBLE_DEVICES")
        self.meet()
        for claim in claims:
            if claim.claim_id == self.fails_at:
                raise FactauditError("no weights here")
            time.sleep(self.seconds)
            with open(self.notes, "a") as file:
                file.write(json.dumps([claim.claim_id, self.node(), self.gpu]) + chr(10))
            said = claim.claim.split()[-1] in claim.doc
            raw = f"{claim.topic} {claim.doc[-6:]}"
            yield Verdict(claim.claim_id, score=0.75 if said else 0.25, raw=raw)

    def node(self):
        ray = sys.modules.get("ray")
        return ray.get_runtime_context().get_node_id() if ray and ray.is_initialized() else ""

    def meet(self):
        """Wait until so many nodes are at work: how soon each has started its worker is chance."""
        here, patience = f"{self.notes}.nodes", time.time() + 60
        os.makedirs(f"{here}/{self.node()}", exist_ok=True)
        while self.nodes > len(os.listdir(here)) and time.time() < patience:
            time.sleep(0.05)

@dataclass
class OnGPU(Slow):
    device: str = "auto"
    signature = "gpu|version:1"

@dataclass
class Broken(Slow):
    signature = "broken|version:1"
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module with the evaluator, importable here alone."""
    (tmp_path / "slow_evaluator.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    import slow_evaluator

    yield slow_evaluator
    sys.modules.pop("slow_evaluator")


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A cluster with a head that judges nothing, and two nodes of one core and one GPU each; it
    takes long to start."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield from start_nodes(monkeypatch)


def start_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    ray = pytest.importorskip("ray", reason="needs the [ray] extra")
    pytest.importorskip("grpc", reason="needs the [ray] extra")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setattr(ray_cluster, "CLAIMS_PER_BLOCK", 6)
    folder = tempfile.mkdtemp(
        prefix="ray-"
    )  # the path of a socket is bounded: pytest's own folders are too deep
    monkeypatch.setenv("RAY_TMPDIR", folder)
    monkeypatch.setenv(
        "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S", "180"
    )  # two busy cores need more than Ray's 30 s
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {"object_store_memory": 80_000_000, "include_dashboard": False}
    started = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "ray_client_server_port": port, **options},
    )
    try:
        started.judges = [
            started.add_node(num_cpus=1, num_gpus=1, object_store_memory=80_000_000)
            for _ in range(2)
        ]
        started.wait_for_nodes()
        started.client = f"ray://127.0.0.1:{port}"
        monkeypatch.setenv("RAY_ADDRESS", started.address)
        yield started
    finally:
        ray.shutdown()
        started.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


#: Ray ends the process of a driver whose node is lost, and its client has ended its own by a fault
#: in gRPC, for either of which pytest-xdist waits for ever: they have a process of their own.
DRIVER = """
import json, sys
import pandas as pd
import slow_evaluator
from factaudit.evaluators import ray_cluster
from factaudit import judge
from factaudit.evaluators.judging import NamedEvaluator
claims, folder, address, out, evaluators = sys.argv[1:]
ray_cluster.CLAIMS_PER_BLOCK = 6
named = [
    NamedEvaluator(name, getattr(slow_evaluator, kind)(f"{folder}/{name}", **settings))
    for name, kind, settings in json.loads(evaluators)
]
judge(pd.read_parquet(claims), named, journal=f"{folder}/journal", on=address).to_parquet(out)
"""
#: An evaluator's name, its class, and its settings.
Asked = tuple[str, str, dict[str, Any]]


def judge_in_a_process(
    claims: pd.DataFrame, folder: Path, address: str, *evaluators: Asked
) -> tuple[pd.DataFrame | None, subprocess.CompletedProcess[str]]:
    """The verdicts (None where the process failed), and how it ended; each evaluator's notes stand
    under its name."""
    given, out = folder / "claims.parquet", folder / "verdicts.parquet"
    claims.to_parquet(given)
    paths = os.pathsep.join(
        [str(folder), *sys.path]
    )  # the evaluator's module, and what is tested here
    arguments = [str(given), str(folder), address, str(out), json.dumps(evaluators)]
    ran = subprocess.run(
        [sys.executable, "-c", DRIVER, *arguments],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=400,
    )
    return pd.read_parquet(out) if ran.returncode == 0 else None, ran


def noted(path: Path) -> list[tuple[str, str]]:
    """The claims that were judged, in turn, each with its node (none: this process)."""
    return [
        (claim_id, node) for claim_id, node, _ in map(json.loads, path.read_text().splitlines())
    ]


def journaled(folder: Path) -> set[str]:
    lines = [
        json.loads(line)
        for path in folder.glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    return {line["claim_id"] for line in lines if "claim_id" in line}


@pytest.mark.slow
def test_a_node_that_is_killed_costs_what_it_had_in_flight(own, nodes, tmp_path):
    journal = tmp_path / "journal"
    kept = set()

    def kill():
        while len(journaled(journal)) < 30:
            time.sleep(0.05)
        kept.update(journaled(journal))
        nodes.remove_node(nodes.judges[1], allow_graceful=False)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    # Where the driver's own node is the one that is killed, Ray ends it: the next one goes on with
    # the journal.
    for _ in range(2):
        found, ran = judge_in_a_process(
            CLAIMS, tmp_path, "ray", ("slow", "Slow", {"seconds": 0.05, "nodes": 2})
        )
        if found is not None:
            break
    assert found is not None, ran.stderr[-2000:]
    killer.join(60)
    assert len(kept) >= 30
    judged = noted(tmp_path / "slow")
    assert len({node for _, node in judged}) == 2
    twice = {
        claim_id
        for claim_id, times in Counter(claim_id for claim_id, _ in judged).items()
        if times > 1
    }
    assert not twice & kept
    assert len(twice) <= 3 * ray_cluster.CLAIMS_PER_BLOCK
    # The same as in one process.
    here = judge(CLAIMS, [NamedEvaluator("slow", own.Slow(str(tmp_path / "here")))])
    pd.testing.assert_frame_equal(found, here)


def test_a_language_model_is_asked_from_here():
    judges = [
        LLMJudge(model="m", cache="none"),
        make_named_evaluator("chunked:evaluator=llm:model=m,cache=none").evaluator,
    ]
    assert [
        ray_cluster.asks_language_model(part for part, _ in walk_evaluator_members(one))
        for one in judges
    ] == [
        True,
        True,
    ]
    assert not ray_cluster.asks_language_model(
        part
        for part, _ in walk_evaluator_members(
            make_named_evaluator("chunked:evaluator=rouge2").evaluator
        )
    )


def test_an_address_that_is_none(monkeypatch):
    with pytest.raises(UsageError, match=r"on: expected ray or ray://HOST:PORT, found 'spark'"):
        judge(CLAIMS, ["rouge2"], on="spark")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"needs the extra \[ray\]"):
        judge(CLAIMS, ["rouge2"], on="ray")


def test_a_node_whose_evaluator_is_another_is_refused():
    worker = ray_cluster.RayWorker(FromFunction(len), signature="another|version:2")
    verdicts, failure = worker.judge(list_table_claims(CLAIMS))
    assert verdicts == []
    assert "not as another|version:2" in str(failure)
