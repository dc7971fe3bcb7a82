"""Commands in processes that can be killed, what they leave, and a model that answers them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
