"""How fast FActScore and D-FActScore are beside the server they ask, and how a knowledge source is made and read.

``python tests/benchmarks/bench_factscore.py [--articles 1000000]``. The server (500 ms a call) runs in a process of its
own on the same machine. "Ideal" is calls / concurrency x latency; beside stand as many requests through aiohttp alone,
as long as those that verify a fact.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench_llm import bare
from table import Cost, clocked, report

from factaudit.engines.dfactscore.engine import DFactScorer
from factaudit.engines.engine_settings import open_engine_knowledge_source
from factaudit.engines.fact_decomposition import (
    DecompositionDemonstrations,
    remove_repeated_decomposed_facts,
    split_sentences_for_decomposition,
)
from factaudit.engines.fact_verification import (
    make_fact_verification_prompt,
    make_verification_request,
    parse_true_or_false_verification,
)
from factaudit.engines.factscore.engine import FactScorer
from factaudit.engines.reply_facts import parse_reply_facts
from factaudit.engines.responses import Response
from factaudit.knowledge.docdb import DocDB
from factaudit.knowledge.knowledge_builder import build_knowledge_source
from factaudit.knowledge.retrieval import PassageRetriever
from factaudit.llm.chat_types import ChatRequest
from factaudit.llm.client import LLMClient

LATENCY = 0.5
SENTENCES, FACTS = 8, 30
CONCURRENCY = (64, 256, 1000)
#: What tells the two people of each name apart.
HOMONYMS = (" (painter)", " (diver)")
#: Seconds after which a server that does not answer ends the bench.
PATIENCE = 60

SERVER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from llm_server import FaultServer, Plan
def plan(body, attempt):
    text = body["messages"][-1]["content"]
    if text.startswith("Each paragraph below"):
        facts = text.rsplit("Facts:\\n", 1)[1].split("Facts by person:")[0].strip()
        return Plan(text=facts, delay=float(sys.argv[2]))
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
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.kill()  # else the end of the block would wait for it, also where something failed


def biographies(n: int) -> tuple[list[str], list[str]]:
    """Topics and texts of eight sentences each."""
    texts = [" ".join(f"Person {i} did {j} good things." for j in range(SENTENCES)) for i in range(n)]
    return [f"Person {i}" for i in range(n)], texts


def knowledge(folder: Path, n: int, passages: int = 20, homonyms: tuple[str, ...] = ("",)) -> Path:
    """A knowledge source of n pages of 256-word passages, or of so many for each of several people of one name."""
    rng = random.Random(0)
    words = [f"word{i}" for i in range(5000)]
    with (folder / "pages.jsonl").open("w", encoding="utf-8") as file:
        for title in (f"Person {i}{which}" for i in range(n) for which in homonyms):
            given = [" ".join(rng.choices(words, k=256)) for _ in range(passages)]
            file.write(json.dumps({"title": title, "passages": given}) + "\n")
    build_knowledge_source(folder / "pages.jsonl", folder / "wiki.db")
    return folder / "wiki.db"


def client(url: str, cache: Path, concurrency: int) -> LLMClient:
    return LLMClient(
        "m", base_url=url, api_key="none", concurrency=concurrency, cache=cache, timeout=PATIENCE, max_retries=1
    )


def ours(url: str, db: Path, cache: Path, n: int, concurrency: int = 64) -> tuple[Cost, int]:
    """Cost and calls of FActScore of n responses, with cache, journal and retrieval."""
    llm = client(url, cache, concurrency)
    topics, texts = biographies(n)
    cost = clocked(lambda: FactScorer(db, llm).score(topics, texts, journal=cache.with_suffix(".journal")))
    assert cost.result["n_facts"] == n * FACTS, cost.result["n_facts"]
    return cost, llm.usage.calls


def ours_by_person(url: str, db: Path, cache: Path, n: int, concurrency: int = 64) -> tuple[Cost, int]:
    """The same of D-FActScore: grouping, two candidates, and so twice the calls of each fact."""
    llm = client(url, cache, concurrency)
    given = [
        Response(f"r{i}", topic, text, "s", candidates=tuple(f"{topic}{which}" for which in HOMONYMS))
        for i, (topic, text) in enumerate(zip(*biographies(n), strict=True))
    ]
    scorer = DFactScorer(open_engine_knowledge_source(db, out=db.parent), llm)
    cost = clocked(lambda: scorer.score_responses(given, journal=cache.with_suffix(".journal")))
    assert len(cost.result.claims) == 2 * n * FACTS, len(cost.result.claims)
    return cost, llm.usage.calls


def verifying(db: Path, count: int) -> Iterator[ChatRequest]:
    """So many requests as long as those that verify a fact, of which most calls are."""
    with DocDB(db) as source:
        page = next(source.pages())
    for i in range(count):
        yield make_verification_request(
            make_fact_verification_prompt(
                page.title, page.title, page.passages[: PassageRetriever().k], f"Person {i} did good things."
            )
        )


def plain_loop(url: str, db: Path, n: int) -> tuple[float, int]:
    """The same prompts one at a time, as the original does."""
    import openai

    demonstrations, retriever = DecompositionDemonstrations.load(), PassageRetriever()
    calls = 0
    with openai.OpenAI(api_key="none", base_url=url, timeout=PATIENCE) as client, DocDB(db) as source:

        def ask(text: str) -> str:
            nonlocal calls
            calls += 1
            reply = client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": text}], **make_verification_request(text).params
            )
            return str(reply.choices[0].message.content)

        start = time.perf_counter()
        for topic, output in zip(*biographies(n), strict=True):
            page = source.find(topic)
            assert page is not None
            found, _, _ = remove_repeated_decomposed_facts(
                [
                    parse_reply_facts(ask(demonstrations.make_prompt(one))).facts
                    for one in split_sentences_for_decomposition(output)
                ]
            )
            for fact in (fact for group in found for fact in group):
                passages = retriever.retrieve(page, topic, fact)
                parse_true_or_false_verification(ask(make_fact_verification_prompt(topic, page.title, passages, fact)))
        return time.perf_counter() - start, calls


def speed(concurrencies: Sequence[int]) -> None:
    with tempfile.TemporaryDirectory() as name, server() as url:
        folder = Path(name)
        most = max(concurrencies) // 2
        (folder / "two").mkdir()
        two = knowledge(folder / "two", most, 4, HOMONYMS)
        for work, run, db in (("FActScore", ours, knowledge(folder, most)), ("D-FActScore", ours_by_person, two)):
            run(url, db, folder / f"warm-{work}.sqlite", 1)  # imports, connections' code
            for concurrency in concurrencies:
                cache = folder / f"{work}-{concurrency}.sqlite"
                # So many responses make 19 whole rounds of calls (D-FActScore 34.5): the ends weigh little.
                cost, calls = run(url, db, cache, concurrency // 2, concurrency)
                ideal = calls / concurrency * LATENCY
                what = f"{work}: {calls:,} calls of 500 ms, {concurrency:,} at once"
                floor = clocked(partial(bare, url, calls, concurrency, verifying(db, calls)))
                peer = ("aiohttp alone", floor.result / ideal)
                report(what, cost.wall / ideal, "× the ideal by the clock", peer=peer, at_most=1.1)
                peer = ("aiohttp alone", floor.cpu / calls * 1000)
                report(f"{what}: CPU a call", cost.cpu / calls * 1000, "ms", peer=peer)
        slow, n = plain_loop(url, folder / "wiki.db", 2)
        own, calls = ours(url, folder / "wiki.db", folder / "few.sqlite", 2)
        report("FActScore of 2 responses, a call by the clock", own.wall / calls, peer=("a plain loop", slow / n))


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
            "import re, sys, time\nfrom pathlib import Path\n"
            "from factaudit.knowledge.knowledge_builder import build_knowledge_source\n"
            # A child's ru_maxrss begins at its parent's on Linux; the high-water mark of /proc is its own.
            "peak = lambda: re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]\n"
            "before = peak()\nstart = time.perf_counter()\nbuild_knowledge_source(sys.argv[1], sys.argv[2])\n"
            "print(time.perf_counter() - start, peak(), before)"
        )
        command = [sys.executable, "-c", code, str(folder / "pages.jsonl"), str(folder / "wiki.db")]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        seconds, peak, before = map(float, printed.split())
        size = (folder / "wiki.db").stat().st_size / 1e9
        what = f"knowledge build: {articles:,} articles of 300 words, {size:.2f} GB"
        report(f"{what}, by the clock", seconds)
        report(f"{what}, peak memory ({before / 1024:.0f} MB before the first)", peak / 1024, "MB", at_most=1000)
        with DocDB(folder / "wiki.db") as db:
            titles = [f"Article {rng.randrange(articles)}" for _ in range(2000)]
            start = time.perf_counter()
            assert all(db.find(title) for title in titles)
            exact = time.perf_counter() - start
            start = time.perf_counter()
            assert all(db.find(title.lower().replace(" ", "_")) for title in titles)
            folded = time.perf_counter() - start
        report("knowledge: find a page by its title", exact / 2000 * 1e6, "µs")
        report("knowledge: find a page by its title in another case", folded / 2000 * 1e6, "µs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=int, default=100_000, help="of the knowledge source that is built")
    parser.add_argument("--concurrency", type=int, nargs="+", default=CONCURRENCY)
    arguments = parser.parse_args()
    speed(arguments.concurrency)
    knowledge_speed(arguments.articles)


if __name__ == "__main__":
    main()
