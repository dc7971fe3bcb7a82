"""How fast a language model is asked, beside as many bare requests in the same run.

The server (tests/llm_server.py) runs in a process of its own on the same machine. Each figure is
the best of three rounds in which both ways take turns. "Ideal" is calls / concurrency x latency.

    python tests/benchmarks/bench_llm.py
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
from table import Cost, clocked, report

from factaudit import Claim
from factaudit.evaluators.llm_judges import LLMJudge

SERVER = Path(__file__).resolve().parent.parent / "llm_server.py"
DOCUMENT = "The quick brown fox jumps over the lazy dog. " * 40
#: Seconds after which a server that does not answer ends the bench.
PATIENCE = 60


def make_claims(count: int) -> Iterator[Claim]:
    """Claims on documents of 1,800 characters, made as they are read."""
    return (Claim(f"c{i}", f"Claim number {i}.", f"{i} {DOCUMENT}") for i in range(count))


@contextmanager
def serve(latency: float) -> Iterator[str]:
    """The base URL of a loopback server that answers after ``latency`` seconds."""
    command = [sys.executable, str(SERVER), "--latency", str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            # Else the end of the block would wait for it, also where something failed.
            process.kill()


def judge_claims(url: str, count: int, concurrency: int) -> None:
    """New verdicts through the evaluator, with cache and bookkeeping."""
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/cache.sqlite"
        judge = LLMJudge(
            model="m",
            base_url=url,
            concurrency=concurrency,
            cache=store,
            timeout=PATIENCE,
            max_retries=1,
        )
        assert sum(verdict.status == "ok" for verdict in judge.judge(make_claims(count))) == count


def send_requests(url: str, count: int, concurrency: int) -> None:
    """The same requests through aiohttp alone: nothing cached, counted or understood."""

    async def run() -> None:
        timeout = aiohttp.ClientTimeout(total=PATIENCE)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            requests = LLMJudge(model="m", cache="none").requests(make_claims(count))

            async def work() -> None:
                for request in requests:
                    body = {"model": "m", "messages": list(request.messages), **request.params}
                    async with session.post(
                        f"{url}/chat/completions", json=body, raise_for_status=True
                    ) as answer:
                        json.loads(await answer.text())

            await asyncio.gather(*(work() for _ in range(concurrency)))

    asyncio.run(run())


def take_best(*ways: Callable[[], None], rounds: int = 3) -> list[Cost]:
    """The round of each with the least CPU; the ways take turns."""
    costs = [[clocked(way) for way in ways] for _ in range(rounds)]
    return [min(column, key=lambda cost: cost.cpu) for column in zip(*costs, strict=True)]


def main() -> int:
    """One line beside the ideal time, one beside the CPU of bare requests."""
    concurrency, calls = 256, 2560
    with serve(0.5) as url:
        judge_claims(url, 20, 4)
        ours = clocked(lambda: judge_claims(url, calls, concurrency))
    ideal = calls / concurrency * 0.5
    met = report(
        f"judge: {calls:,} calls, {concurrency} at once",
        ours.wall / ideal,
        "× the ideal",
        at_most=1.2,
    )
    with serve(0.01) as url:
        ours, bare = take_best(
            lambda: judge_claims(url, calls, concurrency),
            lambda: send_requests(url, calls, concurrency),
        )
    return not (report("judge: CPU of the same calls", ours, peer=("aiohttp alone", bare)) and met)


if __name__ == "__main__":
    sys.exit(main())
