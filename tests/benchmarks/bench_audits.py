"""Time and peak memory of loading claims and verdicts and of three audits, at 10k, 100k and 1M claims x 5 evaluators.

Each step runs in a process of its own, which reads the tables from Parquet; peak memory is that process's. Costs are
compared in CPU seconds (of all threads), which other work on the machine disturbs less than the clock's.

    python tests/benchmarks/bench_audits.py [--claims 10000 100000 1000000]

With --intervals: every audit once, with 2,000 bootstrap replicates, at 100k claims or what --claims says.

    python tests/benchmarks/bench_audits.py --intervals [--claims 100000]
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from factaudit.audit import computable
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.tables import read_claims, read_verdicts, validate_claims, validate_verdicts, write_table

EVALUATORS = 5
STEPS = ("load", "rates", "consistency", "quantification")
#: A step is run at least so often and so long; the least time counts.
RUNS, SECONDS = 3, 2.0


def make(n: int, folder: Path) -> None:
    """10 datasets, 6 systems, 5 claims in a response, a document of 60 words for every 30 claims, 2 % unscored."""
    random = np.random.default_rng(0)
    at = np.arange(n)
    words = np.array([f"word{i}" for i in range(2000)])
    documents = np.array([" ".join(words[random.integers(0, 2000, 60)]) for _ in range(n // 30 + 1)], dtype=object)
    label = (random.random(n) < 0.7).astype(int)
    claims = pd.DataFrame(
        {
            "claim_id": [f"claim-{i:07}" for i in at],
            "dataset": np.array([f"dataset-{i}" for i in range(10)], dtype=object)[at * 10 // n],
            "system": np.array([f"system-{i}" for i in range(6)], dtype=object)[at // 5 % 6],
            "response_id": (at // 30).astype(str),
            "doc_id": (at // 30).astype(str),
            "claim": [f"{words[i % 2000]} is {words[i * 7 % 2000]}" for i in at],
            "doc": documents[at // 30],
            "label": label,
        }
    )
    write_table(validate_claims(claims), folder / "claims.parquet")
    for number in range(EVALUATORS):
        score = np.clip(random.normal(0.3 + 0.4 * label, 0.25), 0, 1)
        unscored = random.random(n) < 0.02
        verdicts = pd.DataFrame(
            {
                "claim_id": claims["claim_id"],
                "evaluator": f"evaluator-{number}",
                "score": np.where(unscored, np.nan, score),
                "status": np.where(unscored, "unparsed", "ok"),
            }
        )
        write_table(validate_verdicts(verdicts), folder / f"verdicts-{number}.parquet")


def load(folder: Path) -> Judged:
    claims = read_claims(folder / "claims.parquet")
    return Judged.join(claims, read_verdicts(*sorted(folder.glob("verdicts-*.parquet")), claims=claims))


def step(name: str, folder: Path) -> dict[str, float]:
    """Seconds by the clock and of the CPU that one step takes, and this process's peak memory in MB."""
    if name == "load":
        seconds, cpu = timed(lambda: load(folder))
    else:
        judged = load(folder)
        # A new Judged each time: it keeps what audits have in common (the responses, say), and that is work too.
        parts = (judged.claims, judged.evaluators, judged.label, judged.prediction, judged.score, judged.status)
        seconds, cpu = timed(lambda: computable()[name].compute(Judged(*parts)))
    # Linux counts kilobytes, macOS bytes.
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return {"seconds": seconds, "cpu": cpu, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit}


def with_intervals(n: int) -> None:
    """Print what every audit takes with 2,000 replicates, one after the other in this process."""
    with tempfile.TemporaryDirectory() as folder:
        make(n, Path(folder))
        judged = load(Path(folder))
    intervals = Intervals(replicates=2000)
    print(f"{n:,} claims, {EVALUATORS} evaluators, {intervals.replicates:,} replicates")
    print()
    print("| audit | rows | seconds | CPU seconds |")
    print("|---|---:|---:|---:|")
    total, total_cpu = 0.0, 0.0
    for name, audit in computable().items():
        if audit.applies is not None and not audit.applies(judged):
            continue
        start, start_cpu = time.perf_counter(), time.process_time()
        rows = audit.compute(judged, intervals=intervals)
        seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
        total, total_cpu = total + seconds, total_cpu + cpu
        print(f"| {name} | {len(rows):,} | {seconds:.1f} | {cpu:.1f} |", flush=True)
    print(f"| all | | {total:.1f} | {total_cpu:.1f} |")


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """The least time of a few runs, by the clock and of the CPU."""
    clock: list[float] = []
    cpu: list[float] = []
    while len(clock) < RUNS or sum(clock) < SECONDS:
        start, start_cpu = time.perf_counter(), time.process_time()
        run()
        clock.append(time.perf_counter() - start)
        cpu.append(time.process_time() - start_cpu)
    return min(clock), min(cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--claims", type=int, nargs="+")
    parser.add_argument("--intervals", action="store_true")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        print(json.dumps(step(args.step, args.folder)))
        return
    if args.intervals:
        for n in args.claims or [100_000]:
            with_intervals(n)
        return
    found: dict[tuple[str, int], dict[str, float]] = {}
    sizes = args.claims or [10_000, 100_000, 1_000_000]
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            make(n, Path(folder))
            for name in STEPS:
                command = [sys.executable, __file__, "--step", name, "--folder", folder]
                found[name, n] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(f"{EVALUATORS} evaluators, without intervals; Python {platform.python_version()}, {platform.machine()}")
    print()
    print("| step | claims | seconds | CPU seconds | CPU microseconds per claim | peak memory (MB) |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in STEPS:
        for n in sizes:
            row = found[name, n]
            each = row["cpu"] / n * 1e6
            print(
                f"| {name} | {n:,} | {row['seconds']:.3f} | {row['cpu']:.3f} | {each:.2f} | {row['megabytes']:,.0f} |"
            )
    if len(sizes) > 1:
        small, large = sizes[-2:]
        print()
        for name in STEPS:
            ratio = found[name, large]["cpu"] / large / (found[name, small]["cpu"] / small)
            print(f"{name}: cost per claim at {large:,} is {ratio:.2f} x that at {small:,}")


if __name__ == "__main__":
    main()
