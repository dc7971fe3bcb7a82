"""How fast FActScore is beside the server it asks, and how a knowledge source is made and read.

``python tests/benchmarks/bench_factscore.py [--articles 1000000]``. The server (500 ms a call) runs in a process of its
own on the same machine. "Ideal" is calls / concurrency x latency.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from factaudit.engines.decompose import Demonstrations, distinct, sentences
from factaudit.engines.facts import read_facts
from factaudit.engines.factscore.engine import FactScorer
from factaudit.engines.verify import is_supported, prompt, request
from factaudit.knowledge.build import build
from factaudit.knowledge.docdb import DocDB
from factaudit.knowledge.retrieval import Retriever
from factaudit.llm.client import Client

LATENCY, CONCURRENCY = 0.5, 64
RESPONSES, SENTENCES, FACTS = 40, 8, 30

SERVER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from llm_server import FaultServer, Plan
def plan(body, attempt):
    text = body["messages"][-1]["content"]
    if not text.startswith("Please breakdown"):
        return Plan(text="True", delay=float(sys.argv[2]))
    sentence = text.rstrip("\\n").rsplit("independent facts: ", 1)[1]
    number = int(sentence.split()[3])
    facts = "\\n".join(f"- {sentence[:-1]}, fact {i}." for i in range(4 if number < 6 else 3))
    return Plan(text=facts, delay=float(sys.argv[2]))
with FaultServer(plan=plan, keep=False) as server:
    print(server.port, flush=True)
    time.sleep(3600)
"""


@contextmanager
def server() -> Iterator[str]:
    """The base URL of a loopback server that gives 30 facts for the 8 sentences of a response."""
    command = [sys.executable, "-c", SERVER, str(Path(__file__).resolve().parent.parent), str(LATENCY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        process.kill()


def biographies(n: int) -> tuple[list[str], list[str]]:
    """Topics and texts of eight sentences each."""
    texts = [" ".join(f"Person {i} did {j} good things." for j in range(SENTENCES)) for i in range(n)]
    return [f"Person {i}" for i in range(n)], texts


def knowledge(folder: Path, n: int, passages: int = 20) -> Path:
    """A knowledge source of n pages of 256-word passages."""
    rng = random.Random(0)
    words = [f"word{i}" for i in range(5000)]
    with (folder / "pages.jsonl").open("w", encoding="utf-8") as file:
        for i in range(n):
            given = [" ".join(rng.choices(words, k=256)) for _ in range(passages)]
            file.write(json.dumps({"title": f"Person {i}", "passages": given}) + "\n")
    build(folder / "pages.jsonl", folder / "wiki.db")
    return folder / "wiki.db"


def ours(url: str, db: Path, cache: Path, n: int) -> tuple[float, int]:
    """Seconds and calls for n responses through the engine, with cache, journal and retrieval."""
    llm = Client("m", base_url=url, api_key="none", concurrency=CONCURRENCY, cache=cache)
    topics, texts = biographies(n)
    start = time.perf_counter()
    result = FactScorer(db, llm).score(topics, texts, journal=cache.with_suffix(".journal"))
    elapsed = time.perf_counter() - start
    assert result["n_facts"] == n * FACTS, result["n_facts"]
    return elapsed, llm.usage.calls


def plain_loop(url: str, db: Path, n: int) -> tuple[float, int]:
    """The same prompts one at a time, as the original does."""
    import openai

    demonstrations, retriever = Demonstrations.load(), Retriever()
    calls = 0
    with openai.OpenAI(api_key="none", base_url=url) as client, DocDB(db) as source:

        def ask(text: str) -> str:
            nonlocal calls
            calls += 1
            reply = client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": text}], **request(text).params
            )
            return str(reply.choices[0].message.content)

        start = time.perf_counter()
        for topic, output in zip(*biographies(n), strict=True):
            page = source.find(topic)
            assert page is not None
            found, _, _ = distinct([read_facts(ask(demonstrations.prompt(one))).facts for one in sentences(output)])
            for fact in (fact for group in found for fact in group):
                passages = retriever.retrieve(page, topic, fact)
                is_supported(ask(prompt(topic, page.title, passages, fact)))
        return time.perf_counter() - start, calls


def speed() -> None:
    with tempfile.TemporaryDirectory() as name, server() as url:
        folder = Path(name)
        db = knowledge(folder, RESPONSES)
        ours(url, db, folder / "warm.sqlite", 1)  # imports, connections' code
        elapsed, calls = ours(url, db, folder / "llm.sqlite", RESPONSES)
        ideal = calls / CONCURRENCY * LATENCY
        print(f"FActScore of {RESPONSES} responses, {SENTENCES} sentences and {FACTS} facts each: {calls} calls of")
        print(f"{LATENCY * 1000:.0f} ms at concurrency {CONCURRENCY}")
        print(f"  ours           {elapsed:7.2f} s, {elapsed / ideal:.2f} x ideal ({ideal:.2f} s); at most 1.2")
        tenth = RESPONSES // 10
        slow, n = plain_loop(url, db, tenth)
        own, m = ours(url, db, folder / "tenth.sqlite", tenth)
        print(f"a tenth of it    {slow:7.2f} s in a plain loop ({n} calls), {own:.2f} s ours ({m} calls)")
        print(f"  per call       {slow / n * 1000:7.1f} ms in a plain loop, {elapsed / calls * 1000:.1f} ms ours")


def knowledge_speed(articles: int) -> None:
    """Build a knowledge source of short articles in a process of its own, for its own peak memory; then look up."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rng = random.Random(1)
        words = [f"word{i}" for i in range(5000)]
        texts = [" ".join(rng.choices(words, k=300)) for _ in range(100)]
        order = list(range(articles))
        rng.shuffle(order)
        with (folder / "pages.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps({"title": f"Article {i}", "text": texts[i % 100]}) + "\n" for i in order)
        del order
        code = (
            "import re, sys, time\nfrom pathlib import Path\nfrom factaudit.knowledge.build import build\n"
            # A child's ru_maxrss begins at its parent's on Linux; the high-water mark of /proc is its own.
            "peak = lambda: re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]\n"
            "before = peak()\nstart = time.perf_counter()\nbuild(sys.argv[1], sys.argv[2])\n"
            "print(time.perf_counter() - start, peak(), before)"
        )
        command = [sys.executable, "-c", code, str(folder / "pages.jsonl"), str(folder / "wiki.db")]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        seconds, peak, before = map(float, printed.split())
        size = (folder / "wiki.db").stat().st_size / 1e9
        print(f"knowledge build: {articles:,} articles of 300 words, {size:.2f} GB, in {seconds:.1f} s")
        print(f"  peak memory    {peak / 1024:7.0f} MB ({before / 1024:.0f} MB before the first line); at most 1,000")
        with DocDB(folder / "wiki.db") as db:
            titles = [f"Article {rng.randrange(articles)}" for _ in range(2000)]
            start = time.perf_counter()
            assert all(db.find(title) for title in titles)
            exact = time.perf_counter() - start
            start = time.perf_counter()
            assert all(db.find(title.lower().replace(" ", "_")) for title in titles)
            folded = time.perf_counter() - start
        print(f"  look-up        {exact / 2000 * 1e6:7.0f} us by title, {folded / 2000 * 1e6:.0f} us normalised")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=int, default=100_000, help="of the knowledge source that is built")
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} processors, Python {sys.version.split()[0]}")
    speed()
    knowledge_speed(arguments.articles)


if __name__ == "__main__":
    main()
