"""How fast the LLM layer is beside the server it asks: ``python tests/benchmarks/bench_llm.py``.

The server (tests/llm_server.py) runs in a process of its own on the same machine. Every figure is the best of three
runs, the rivals' too, taken in turns, after a warm-up that pays for imports and connections' code. "Ideal" is
calls / concurrency x latency.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from table import clocked, report

from factaudit.evaluators.base import Claim
from factaudit.evaluators.judging import NamedEvaluator
from factaudit.evaluators.judging import judge as judge_claims
from factaudit.evaluators.llm_judges import LLMJudge
from factaudit.llm.chat_types import ChatReply, ChatReplyToken, ChatRequest
from factaudit.llm.reply_cache import ReplyCache, hash_cached_request
from factaudit.tables import read_verdicts, validate_claims, write_table

SERVER = Path(__file__).resolve().parent.parent / "llm_server.py"
#: Seconds after which a server that does not answer ends the bench.
PATIENCE = 60
#: As many calls as are under way at a time, so often: the first and the last, where fewer are, weigh little.
ROUNDS = 10
DOCUMENT = "The quick brown fox jumps over the lazy dog. " * 40


def claims(count: int) -> Iterator[Claim]:
    """Claims on documents of 1,800 characters, made as they are read."""
    return (Claim(f"c{i}", f"Claim number {i}.", f"{i} {DOCUMENT}") for i in range(count))


@contextmanager
def server(latency: float) -> Iterator[str]:
    """The base URL of a loopback server that answers after ``latency`` seconds."""
    command = [sys.executable, str(SERVER), "--latency", str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.kill()  # else the end of the block would wait for it, also where something failed


def ours(url: str, count: int, concurrency: int) -> float:
    """Seconds for ``count`` new verdicts through the evaluator, with cache and bookkeeping."""
    with tempfile.TemporaryDirectory() as folder:
        judge = LLMJudge(
            model="m",
            base_url=url,
            concurrency=concurrency,
            cache=f"{folder}/cache.sqlite",
            timeout=PATIENCE,
            max_retries=1,
        )
        start = time.perf_counter()
        done = sum(verdict.status == "ok" for verdict in judge.judge(claims(count)))
        elapsed = time.perf_counter() - start
    assert done == count
    return elapsed


def sdk(url: str, count: int, concurrency: int, aiohttp: bool = False) -> float:
    """Seconds for the same requests through the openai SDK in a plain loop: nothing cached, nothing counted."""
    import openai

    async def run() -> float:
        http: Any = openai.DefaultAioHttpClient() if aiohttp else None
        async with openai.AsyncOpenAI(
            api_key="none", base_url=url, max_retries=0, timeout=PATIENCE, http_client=http
        ) as client:
            judge = LLMJudge(model="m", cache="none")
            requests = judge.requests(claims(count))

            async def work() -> None:
                for request in requests:
                    await client.chat.completions.create(model="m", messages=request.messages, **request.params)  # type: ignore[arg-type]

            start = time.perf_counter()
            await asyncio.gather(*(work() for _ in range(concurrency)))
            return time.perf_counter() - start

    return asyncio.run(run())


def bare(url: str, count: int, concurrency: int, requests: Iterator[ChatRequest] | None = None) -> float:
    """Seconds for the same requests through aiohttp alone: the floor, nothing cached, counted or understood.

    requests: those of another bench, in place of the evaluator's.
    """
    import aiohttp

    async def run() -> float:
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=PATIENCE)
        ) as session:
            asked = requests or LLMJudge(model="m", cache="none").requests(claims(count))

            async def work() -> None:
                for request in asked:
                    body = {"model": "m", "messages": list(request.messages), **request.params}
                    async with session.post(f"{url}/chat/completions", json=body, raise_for_status=True) as answer:
                        json.loads(await answer.text())

            start = time.perf_counter()
            await asyncio.gather(*(work() for _ in range(concurrency)))
            return time.perf_counter() - start

    return asyncio.run(run())


def _cpu(way: Callable[[str, int, int], Any], url: str, count: int, concurrency: int) -> Callable[[], float]:
    """CPU seconds of this process for so many calls, over all its threads."""
    return lambda: clocked(lambda: way(url, count, concurrency)).cpu


def best(*runs: Callable[[], float], rounds: int = 3) -> list[float]:
    """The least time of each, in rounds that take turns."""
    times = [[run() for run in runs] for _ in range(rounds)]
    return [min(column) for column in zip(*times, strict=True)]


def speed(count: int = 2000) -> None:
    """Calls beside the ideal, and beside the SDK."""
    with server(0.01) as url:
        ours(url, 20, 4)
        sdk(url, 20, 4)
    for concurrency in (64, 256, 1000):
        calls = ROUNDS * concurrency
        with server(0.5) as url:
            mine, floor = best(
                lambda: ours(url, calls, concurrency),  # noqa: B023
                lambda: bare(url, calls, concurrency),  # noqa: B023
            )
        what = f"judge: {calls:,} calls of 500 ms, {concurrency:,} at once"
        ideal = ROUNDS * 0.5
        peer = ("aiohttp alone", floor / ideal)
        report(what, mine / ideal, "× the ideal by the clock", peer=peer, at_most=1.1)
    with server(0.1) as url:
        mine, plain, fast, floor = best(
            lambda: ours(url, count, 256),
            lambda: sdk(url, count, 256),
            lambda: sdk(url, count, 256, True),
            lambda: bare(url, count, 256),
        )
    what = f"judge: {count:,} calls of 100 ms, 256 at once, by the clock"
    for peer, seconds in (("the SDK", plain), ("the SDK over aiohttp", fast), ("aiohttp alone", floor)):
        report(what, mine, peer=(peer, seconds), ratio=1 if seconds is plain else None)
    for concurrency in (64, 1000):
        calls = max(count, ROUNDS * concurrency)
        with server(0.01) as url:
            costs = best(*(_cpu(way, url, calls, concurrency) for way in (ours, partial(sdk, aiohttp=True), bare)))
        mine, fast, floor = (1000 * seconds / calls for seconds in costs)
        for peer in (("the SDK over aiohttp", fast), ("aiohttp alone", floor)):
            report(f"judge: CPU a call, {concurrency:,} at once", mine, "ms", peer=peer, at_most=1.0)


def cache(count: int = 100_000) -> None:
    """What was bought, read again in our three ways, beside one JSON file per reply: same keys, same replies."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        judge = LLMJudge(model="m", cache=f"{folder}/cache.sqlite")
        keys = [hash_cached_request("m", request) for request in judge.requests(claims(count))]
        reply = ChatReply("ok", "Yes", "stop", (ChatReplyToken("Yes", -0.1, {"Yes": -0.1, "No": -2.3}),), 480, 1)
        store = ReplyCache(path / "cache.sqlite")
        for key in keys:
            store.put(key, "m", "", reply)
            name = key.hex()
            file = path / name[:2] / f"{name}.json"
            file.parent.mkdir(exist_ok=True)
            file.write_text(json.dumps({"text": "Yes", "finish_reason": "stop", "tokens": [["Yes", -0.1, {}]]}))

        def read() -> float:
            start = time.perf_counter()
            found = 0
            for first in range(0, count, 256):
                found += sum(reply is not None for reply in store.get_many(keys[first : first + 256]))
            assert found == count
            return time.perf_counter() - start

        def read_files() -> float:
            start = time.perf_counter()
            for key in keys:
                name = key.hex()
                data = json.loads((path / name[:2] / f"{name}.json").read_text())
                ChatReply("ok", data["text"], data["finish_reason"], tuple(ChatReplyToken(*t) for t in data["tokens"]))
            return time.perf_counter() - start

        def judged() -> float:
            start = time.perf_counter()
            assert sum(verdict.status == "ok" for verdict in judge.judge(claims(count))) == count
            return time.perf_counter() - start

        table = validate_claims(pd.DataFrame([{**asdict(claim), "dataset": "d"} for claim in claims(count)]))
        named = NamedEvaluator("judge", judge)
        write_table(judge_claims(table, [named], journal=path / "journal"), path / "verdicts.parquet")
        verdicts, journal, replies, prompts, theirs = best(
            lambda: timed(lambda: read_verdicts(path / "verdicts.parquet")),
            lambda: timed(lambda: judge_claims(table, [named], journal=path / "journal")),
            read,
            judged,
            read_files,
        )
    for what, seconds in (
        ("read_verdicts of the verdicts table", verdicts),
        ("judge() again with its journal, claims compared", journal),
        ("replies from the cache, by key", replies),
        ("the evaluator again: prompts, keys, cache, scores", prompts),
    ):
        report(f"{count:,} cached verdicts: {what}", seconds, peer=("a JSON file each", theirs))


def timed(work: Callable[[], Any]) -> float:
    """Seconds that ``work`` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def memory() -> None:
    """Peak memory of judging 100,000 claims beside 1,000, each in a process of its own."""
    peaks = []
    with server(0.0) as url:
        for count in (1000, 100_000):
            out = subprocess.run(
                [sys.executable, __file__, "--judge", str(count), url], capture_output=True, text=True, check=True
            )
            peaks.append(float(out.stdout))
    growth = {1000: peaks[0], 100_000: peaks[1]}
    report("judge: 100,000 claims, peak memory", peaks[1], "MB", at_most=peaks[0] + 300, growth=growth)


def main() -> None:
    """Run all, or the parts named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["speed", "cache", "memory"])
    parser.add_argument("--judge", nargs=2, metavar=("COUNT", "URL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.judge:
        ours(options.judge[1], int(options.judge[0]), 64)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    for part in options.parts:
        {"speed": speed, "cache": cache, "memory": memory}[part]()


if __name__ == "__main__":
    main()
