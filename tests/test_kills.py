"""Commands that are killed at random moments and started again end as if nobody had.

30 % of the requests fail at first, and the server keeps books of its own.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kills import Starter, answer, contents, starter
from llm_server import FaultServer, Plan, completion, fingerprint

CONCURRENCY = 8
MODEL = (
    f"base_url=URL,concurrency={CONCURRENCY},cache=LIFE/cache.sqlite,prices.input=1000000"
    ",prices.output=1000000"
)
ENGINE = f"--knowledge pages.jsonl --llm m:{MODEL} --set replicates=20"
#: Commands whose results come into ``LIFE/out``.
COMMANDS = {
    "judge": f"judge claims.jsonl --evaluator llm:model=m,{MODEL} --out LIFE/out/v.parquet",
    "batch": (
        f"judge claims.jsonl --evaluator llm:model=m,{MODEL},batch=true --out LIFE/out/v.parquet"
    ),
    "score": f"factscore bios.jsonl {ENGINE} --set audits=[rates] --out LIFE/out",
    "people": f"dfactscore names.jsonl {ENGINE} --set audits=[dfactscore] --out LIFE/out",
    "run": (
        f"run run.yaml --set evaluators=[rouge2,'llm:model=m,{MODEL}'] --set replicates=20"
        " --set audits=[rates] --out LIFE/out"
    ),
}
#: What the server charges for though nothing usable comes back, and what it does not.
CHARGED = ("reset", "close", "truncated", "not-json", "empty-choices", "wrong-shape")
FREE = ("429", "429-retry-after", "500", "503")


class Books:
    """What the server has charged: each token costs a dollar, heard of or not."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.billed = 0
        self.usable: Counter[str] = Counter()

    def plan(self, body: dict[str, Any], attempt: int) -> Plan:
        draw = random.Random(f"{self.seed}:{fingerprint(body)}:{attempt}")
        fault = draw.choice(CHARGED + FREE) if attempt < 2 and draw.random() < 0.3 else None
        return self.charge(body, fault, delay=draw.uniform(0.0, 0.02))

    def plan_line(self, body: dict[str, Any], attempt: int) -> Plan:
        """What comes of a line of a batch."""
        draw = random.Random(f"{self.seed}:{fingerprint(body)}:{attempt}")
        return self.charge(body, "500" if attempt == 0 and draw.random() < 0.3 else None)

    def charge(self, body: dict[str, Any], fault: str | None, delay: float = 0.0) -> Plan:
        plan = Plan(fault, text=answer(body["messages"][-1]["content"]), delay=delay)
        if fault not in FREE:
            self.billed += completion(plan, body)["usage"]["total_tokens"]
        self.usable[fingerprint(body)] += fault is None
        return plan


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the commands read."""
    claims = [
        {"dataset": "d", "system": f"s{i % 3}", "claim": f"Number {i} rains."}
        | {"doc": f"Document {i % 9}.", "label": i % 2}
        for i in range(120)
    ]
    outputs = [" ".join(f"It rained {i} {j}." for j in range(4)) for i in range(8)]
    files = {
        "claims.jsonl": claims,
        "pages.jsonl": [
            {"title": f"Ann Lee ({one})", "text": f"She was a {one}."}
            for one in ("painter", "diver")
        ],
        "bios.jsonl": [{"topic": "Ann Lee (painter)", "output": output} for output in outputs],
        "names.jsonl": [{"topic": "Ann Lee", "output": output} for output in outputs[:5]],
    }
    made = tmp_path_factory.mktemp("files")
    for name, rows in files.items():
        (made / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (made / "run.yaml").write_text("claims: claims.jsonl\nevaluators: [rouge2]\n")
    return made


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starter]:
    with starter(tmp_path_factory.mktemp("kills") / "output.txt") as made:
        yield made


class Life:
    """One output folder, the server that is asked for it, and the command that fills it."""

    def __init__(self, command: str, folder: Path, out: Path, start: Starter, books: Books) -> None:
        self.folder, self.out, self.starter, self.books = folder, out / "out", start, books
        self.out.mkdir(parents=True)
        self.server = FaultServer(plan=books.plan, line_plan=books.plan_line, keep=False)
        self.command = COMMANDS[command].replace("LIFE", str(out))

    def start(self, limit: int = 0) -> int:
        line = self.command.replace("URL", self.server.url).split()
        return self.starter.start(line, limit, self.folder)

    def finish(self) -> dict[str, bytes]:
        """Run the command to its end; what it leaves."""
        self.start()
        assert self.starter.wait() == 0, self.starter.output.read_text()
        assert not [path for path in self.out.rglob(".factaudit-*") if path.is_file()]
        return contents(self.out)


@contextmanager
def living(command: str, folder: Path, out: Path, start: Starter, seed: int) -> Iterator[Life]:
    life = Life(command, folder, out, start, Books(seed))
    with life.server:
        yield life
    shutil.rmtree(out)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_killed_and_resumed_it_ends_as_if_undisturbed(command, folder, start, tmp_path):
    begun = time.monotonic()
    with living(command, folder, tmp_path / "whole", start, -1) as life:
        whole = life.finish()
    seconds, kills, chance = time.monotonic() - begun, 0, random.Random(command)
    while kills < 2:
        with living(command, folder, tmp_path / "life", start, 1) as life:
            mine = 0
            for _ in range(2):
                process = life.start()
                time.sleep(chance.uniform(0.0, seconds * chance.choice((0.3, 0.6, 1.0))))
                os.kill(process, signal.SIGKILL)
                ended = start.wait()
                assert ended in (0, -signal.SIGKILL), start.output.read_text()
                mine += ended != 0
                seconds *= 1.0 if ended else 0.8  # the kill came too late
            assert life.finish() == whole, "byte by byte as without kills"
            # What was under way when it was killed may be paid for again; batches never are.
            twice = sum(max(0, count - 1) for count in life.books.usable.values())
            assert twice <= (0 if command == "batch" else CONCURRENCY * mine)
            results = life.out / "results.json"
            if results.exists():
                cost = sum(row["cost"] for row in json.loads(results.read_text())["calls"])
                assert 0 < life.books.billed <= cost
            kills += mine


@pytest.mark.slow
def test_on_a_full_disk_a_run_stops_and_goes_on_when_there_is_room(folder, start, tmp_path):
    with living("run", folder, tmp_path / "whole", start, -1) as life:
        whole = life.finish()
    with living("run", folder, tmp_path / "life", start, 1) as life:
        # The cache cannot be made; the journal, a table cannot be written.
        for limit in (2_000, 20_000, 60_000):
            start.output.write_text("")
            life.start(limit)
            assert start.wait() == 1, limit
            said = start.output.read_text()
            assert str(tmp_path) in said, said
            assert not any(word in said for word in ("Traceback", "This is a bug", "damaged"))
        assert life.finish() == whole
        assert not list((tmp_path / "life").glob("*.damaged-*"))
