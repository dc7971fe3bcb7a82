"""Commands that are killed at any moment and started again, against a server that fails: what is
left, what was paid.

`trial` does it for one command and tells how it went.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_server import FaultServer, Plan, completion, fingerprint
from scripted_llm import find_facts_to_group

#: Imports once, then forks for each line: {arguments, output, folder, limit} in, the process's id
#: out; null in, the end of the one that was started first out.
FORKS = """
import json, os, resource, sys
import factaudit.experiment.run, factaudit.engines.runs
import factaudit.report.plots.drawing, factaudit.report.document, factaudit.tables.table_loading
import aiohttp, openai, sklearn, statsmodels.api
from factaudit.cli import main
from factaudit.llm import batch_api, rate_limits
rate_limits.BACKOFF_SECONDS, rate_limits.MAX_BACKOFF_SECONDS = 0.002, 0.01
batch_api.POLL_SECONDS = 0.02
children = []
print("ready", flush=True)
for line in iter(sys.stdin.readline, ""):
    told = json.loads(line)
    if told is None:  # the next of those that were started
        print(os.waitstatus_to_exitcode(os.waitpid(children.pop(0), 0)[1]), flush=True)
        continue
    child = os.fork()
    if child == 0:
        os.chdir(told["folder"])
        for number in (1, 2):
            os.dup2(os.open(told["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
        if told["limit"]:
            resource.setrlimit(resource.RLIMIT_FSIZE, (told["limit"], told["limit"]))
        try:
            main(told["arguments"])
        except SystemExit as end:
            os._exit(end.code or 0)
        except BaseException:
            import traceback
            traceback.print_exc()
        os._exit(1)
    children.append(child)  # until it is waited for its id is nobody else's
    print(child, flush=True)
"""
COMMANDS = ("judge", "score", "people", "run", "batch")
CONCURRENCY = 8
PRICE = 1.0  # US dollars per token, in and out
#: What the server charges for though nothing usable comes back, and what it does not.
CHARGED = ("reset", "close", "truncated", "not-json", "empty-choices", "wrong-shape")
FREE = ("429", "429-retry-after", "500", "503")
#: Of a run folder, what tells calls and costs, which a kill changes: they are compared as money,
#: not as bytes.
OF_CALLS = ("report.html", "calls.csv")


class Starter:
    """Starts commands in processes that can be killed, without importing everything for each."""

    def __init__(self, output: Path) -> None:
        self.output = output
        environment = os.environ | {
            "OPENAI_API_KEY": "k",
            "NO_PROXY": "127.0.0.1",
            "OMP_NUM_THREADS": "1",
        }
        self._server = subprocess.Popen(
            [sys.executable, "-c", FORKS],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == "ready\n"

    def start(self, arguments: list[str], limit: int = 0, folder: Path | None = None) -> int:
        """The id of a new process; no file may grow beyond ``limit`` bytes (0: as it likes), as on
        a full disk."""
        return self._ask(
            {
                "arguments": arguments,
                "output": str(self.output),
                "folder": str(folder or "."),
                "limit": limit,
            }
        )

    def wait(self) -> int:
        """How the process that was started first ended: its exit code, or minus the signal."""
        return self._ask(None)

    def _ask(self, message: dict[str, Any] | None) -> int:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(message) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())

    def close(self) -> None:
        self._server.communicate()


@contextmanager
def starter(output: Path) -> Iterator[Starter]:
    """A `Starter` for as long as the block lasts."""
    made = Starter(output)
    try:
        yield made
    finally:
        made.close()


class Books:
    """A server's own: 30 % of the requests fail at first, and what was worked on is charged for,
    heard of or not."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.billed = 0.0
        self.usable: Counter[str] = Counter()

    def plan(self, body: dict[str, Any], attempt: int) -> Plan:
        key = fingerprint(body)
        draw = random.Random(f"{self.seed}:{key}:{attempt}")
        fault = draw.choice(CHARGED + FREE) if attempt < 2 and draw.random() < 0.3 else None
        plan = Plan(
            fault, text=answer(body["messages"][-1]["content"]), delay=draw.uniform(0.0, 0.02)
        )
        return self.charged(body, plan)

    def line(self, body: dict[str, Any], attempt: int) -> Plan:
        """What comes of a line of a batch."""
        draw = random.Random(f"{self.seed}:{fingerprint(body)}:{attempt}")
        lost = attempt == 0 and draw.random() < 0.3
        return self.charged(
            body, Plan("500" if lost else None, text=answer(body["messages"][-1]["content"]))
        )

    def charged(self, body: dict[str, Any], plan: Plan) -> Plan:
        if plan.fault not in FREE:
            usage = completion(plan, body)["usage"]
            self.billed += PRICE * (usage["prompt_tokens"] + usage["completion_tokens"])
        self.usable[fingerprint(body)] += plan.fault is None
        return plan


def answer(prompt: str) -> str:
    """A model that does every task by looking at the words."""
    if (asked := find_facts_to_group(prompt)) is not None:
        facts = asked.split("\n")
        return "\n".join([*facts[: len(facts) // 2], "- ===", *facts[len(facts) // 2 :]])
    if prompt.startswith("Please breakdown"):
        sentence = prompt.rstrip("\n").rsplit("independent facts: ", 1)[1]
        return f"- {sentence}\n- {sentence[:-1]} indeed."
    if "True or False?" in prompt:
        return "False" if "3" in prompt.rsplit("Input:", 1)[-1] else "True"
    return "Yes" if sum(map(ord, prompt)) % 3 else "No"


def prepare(folder: Path) -> None:
    """The files that the commands read."""

    def write(name: str, rows: list[dict[str, Any]]) -> None:
        (folder / name).write_text(
            "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
        )

    claims = [
        {
            "dataset": "d",
            "system": f"s{i % 3}",
            "claim": f"Number {i} rains.",
            "doc": f"Document {i % 9}.",
            "label": i % 2,
        }
        for i in range(120)
    ]
    write("claims.jsonl", claims)
    write(
        "pages.jsonl",
        [
            {"title": f"Ann Lee ({one})", "text": f"She was a {one}."}
            for one in ("painter", "diver")
        ],
    )
    outputs = [" ".join(f"It rained {i} {j}." for j in range(4)) for i in range(8)]
    write("bios.jsonl", [{"topic": "Ann Lee (painter)", "output": output} for output in outputs])
    write("names.jsonl", [{"topic": "Ann Lee", "output": output} for output in outputs[:5]])


def arguments(command: str, files: Path, life: Path, url: str) -> list[str]:
    """A command whose results come into ``life/out``."""
    model = (
        f"base_url={url},concurrency={CONCURRENCY},cache={life / 'cache.sqlite'}"
        f",prices.input={PRICE * 1e6},prices.output={PRICE * 1e6}"
    )
    engine = [
        "--knowledge",
        str(files / "pages.jsonl"),
        "--llm",
        f"m:{model}",
    ]
    audits = "dfactscore" if command == "people" else "rates"
    figures = ["--set", "replicates=20", "--set", f"audits=[{audits}]", "--out", str(life / "out")]
    match command:
        case "judge":
            return [
                "judge",
                str(files / "claims.jsonl"),
                "--evaluator",
                f"llm:model=m,{model}",
                *_table(life),
            ]
        case "batch":
            return [
                "judge",
                str(files / "claims.jsonl"),
                "--evaluator",
                f"llm:model=m,{model},batch=true",
                *_table(life),
            ]
        case "score":
            return ["factscore", str(files / "bios.jsonl"), *engine, *figures]
        case "people":
            return ["dfactscore", str(files / "names.jsonl"), *engine, *figures]
    pairs = [part.partition("=") for part in model.split(",")]
    asked = {
        "model": "m",
        **{key: int(value) if value.isdigit() else value for key, _, value in pairs},
    }
    (life / "run.yaml").write_text(
        json.dumps(
            {"claims": str(files / "claims.jsonl"), "evaluators": [{"llm": asked}, "rouge2"]}
        )
    )
    return ["run", str(life / "run.yaml"), *figures]


def _table(life: Path) -> list[str]:
    return ["--out", str(life / "out" / "verdicts.parquet")]


@dataclass
class Told:
    """What came of a command that was killed again and again. Costs are US dollars; None where a
    verb tells none.

    different: files that are not byte by byte those of an undisturbed run. left: files that a
    killed run had begun.
    """

    command: str
    kills: int = 0
    lives: int = 0
    lost: int = 0
    twice: int = 0
    billed: float = 0.0
    told: float | None = 0.0
    different: list[str] | None = None
    left: int = 0


def trial(
    command: str, kills: int, folder: Path, start: Starter, seed: int = 0, each: int = 5
) -> Told:
    """Kill a command ``kills`` times at random moments, up to ``each`` times before it may end,
    then compare."""
    chance = random.Random(f"{seed}:{command}")
    files = folder / "files"
    files.mkdir(parents=True, exist_ok=True)
    prepare(files)
    told = Told(command, different=[])
    whole, seconds = undisturbed(command, files, folder / f"{command}-whole", start)
    while told.kills < kills:
        life = folder / f"{command}-{told.lives}"
        (life / "out").mkdir(parents=True)
        books = Books(seed)
        with FaultServer(plan=books.plan, line_plan=books.line, keep=False) as server:
            given = arguments(command, files, life, server.url)
            for _ in range(min(each, kills - told.kills)):
                process = start.start(given)
                # The less is left to do, the sooner: else most kills would come too late.
                time.sleep(chance.uniform(0.0, seconds * chance.choice((0.3, 0.6, 1.0))))
                os.kill(process, signal.SIGKILL)
                ended = start.wait()
                assert ended in (0, -signal.SIGKILL), start.output.read_text()
                told.kills += ended != 0
                if ended == 0:  # too late: what is left is quicker done than the whole was
                    seconds *= 0.8
            start.start(given)
            assert start.wait() == 0, start.output.read_text()
        told.lives += 1
        found = contents(life / "out")
        told.different += sorted(
            name for name in whole.keys() | found.keys() if whole.get(name) != found.get(name)
        )
        told.left += sum(1 for path in (life / "out").rglob(".factaudit-*") if path.is_file())
        told.twice += sum(max(0, count - 1) for count in books.usable.values())
        told.lost += len(set(predicted(whole)) - set(predicted(found)))
        told.billed += books.billed
        cost = cost_of(life / "out")
        told.told = None if cost is None or told.told is None else told.told + cost
        shutil.rmtree(life)
    return told


def undisturbed(
    command: str, files: Path, life: Path, start: Starter
) -> tuple[dict[str, bytes], float]:
    """The results of a run that nobody kills, and its seconds."""
    (life / "out").mkdir(parents=True)
    books = Books(-1)
    with FaultServer(plan=books.plan, line_plan=books.line, keep=False) as server:
        begun = time.monotonic()
        start.start(arguments(command, files, life, server.url))
        assert start.wait() == 0, start.output.read_text()
        return contents(life / "out"), time.monotonic() - begun


#: What a run spends, in dollars and seconds.
OF_ONE_RUN = ("calls", "cost")


def contents(folder: Path) -> dict[str, bytes]:
    """Each file's bytes, but for what tells calls, and the paths of this very run."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if not path.is_file() or name.startswith(".") or path.name in OF_CALLS:
            continue
        data = path.read_bytes()
        if path.name == "results.json":
            shown = json.loads(data)
            data = json.dumps(
                {key: value for key, value in shown.items() if key not in OF_ONE_RUN}
            ).encode()
        elif path.name == "experiment.yaml":
            data = b"".join(
                line
                for line in data.splitlines(True)
                if b"/" not in line and b"127.0.0.1" not in line
            )
        found[name] = data
    return found


def predicted(found: dict[str, bytes]) -> Iterator[str]:
    """The claims that have a verdict with a prediction."""
    import io

    import pandas as pd

    for name, data in found.items():
        if name.endswith("verdicts.parquet"):
            verdicts = pd.read_parquet(io.BytesIO(data))
            known = verdicts[verdicts["prediction"].notna()]
            yield from (known["evaluator"] + " " + known["claim_id"]).tolist()


def cost_of(out: Path) -> float | None:
    """What a run folder says that its calls have cost, at the most; None without one."""
    path = out / "results.json"
    return (
        sum(row["cost"] for row in json.loads(path.read_text())["calls"]) if path.exists() else None
    )
