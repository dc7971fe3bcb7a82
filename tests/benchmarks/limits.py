"""The limits on time and memory that we promise, measured: ``make bench``.

Commands run in processes of their own, from the files on, and what counts is their CPU time (of all
threads) and their greatest memory. Scores are continuous, six claims have a document, and
responses are spread over documents, so that few clusters are alike. A line that misses its limit
says so, and the exit code is 1.

    python tests/benchmarks/limits.py [long wide estimates judge]
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Cost:
    cpu_seconds: float
    megabytes: float


def measure_command(*command: str | Path) -> Cost:
    """What a process of Python took, with all that it started."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10  # macOS counts bytes, Linux kilobytes
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / unit)


def report(work: str, figure: float, unit: str, at_most: float | None = None) -> bool:
    """Print a line of the table; whether the limit is met."""
    is_met = at_most is None or figure <= at_most
    limit = "" if at_most is None else f"≤ {at_most:,g} {'met' if is_met else 'MISSED'}"
    print(f"| {work} | {figure:,.4g} {unit} | {limit} |", flush=True)
    return is_met


def write_tables(
    folder: str, n_claims: int, n_datasets: int, n_systems: int, n_evaluators: int
) -> None:
    """Write claims with labels and verdicts of each evaluator on each claim."""
    import numpy as np
    import pandas as pd

    random, at = np.random.default_rng(0), np.arange(n_claims)
    document, system = random.integers(0, n_claims // 6, n_claims), at % n_systems
    label = (random.random(n_claims) < 0.8 - 0.15 * system / n_systems).astype(int)
    texts = np.array([f"Text {each} is of some words. " * 5 for each in range(n_claims // 6)])
    claims = pd.DataFrame({"claim_id": at, "dataset": random.integers(0, n_datasets, n_claims)})
    claims = claims.assign(doc_id=document, response_id=at // 3, system=system).astype(str)
    claims.assign(label=label, claim="Some words.", doc=texts[document]).to_parquet(
        f"{folder}/claims.parquet"
    )
    verdicts = [
        pd.DataFrame({"claim_id": claims["claim_id"], "evaluator": f"evaluator-{each}"}).assign(
            score=np.clip(label * 0.35 + 0.35 + random.normal(0, 0.25, n_claims), 0, 1)
        )
        for each in range(n_evaluators)
    ]
    pd.concat(verdicts).assign(status="ok").to_parquet(f"{folder}/verdicts.parquet")


@contextmanager
def tables(*sizes: int) -> Iterator[list[Path]]:
    """The files of claims and verdicts, made in another process: on Linux the memory of a new
    process begins at that of its parent."""
    with tempfile.TemporaryDirectory() as folder:
        code = f"import limits; limits.write_tables({folder!r}, *{sizes})"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)
        yield [Path(folder) / f"{name}.parquet" for name in ("claims", "verdicts")]


def measure_long() -> bool:
    """All audits and the report of 1,000,000 claims, beside a tenth as many."""
    costs = []
    for n_claims in (100_000, 1_000_000):
        with tables(n_claims, 3, 6, 5) as files:
            out = files[0].with_name("run")
            costs.append(measure_command("-m", "factaudit", "audit", *files, "--out", out))
    work = "all audits and the report, 1,000,000 claims × 5 evaluators"
    few, many = costs
    report(work, many.cpu_seconds, "s CPU")
    growth = report("ten times as many claims take", many.cpu_seconds / few.cpu_seconds, "×", 10.5)
    return report("their memory", many.megabytes, "MB", at_most=1200) and growth


def measure_wide() -> bool:
    """All audits and the report of 10 data sets, 50 systems and 20 evaluators."""
    with tables(10_000, 10, 50, 20) as files:
        out = files[0].with_name("run")
        cost = measure_command("-m", "factaudit", "audit", *files, "--out", out)
        sizes = {
            name: (out / name).stat().st_size / 1e6 for name in ("results.json", "report.html")
        }
    work = "all audits and the report, 50 systems × 20 evaluators × 10 data sets"
    report(work, cost.cpu_seconds, "s CPU")
    met = [report("their memory", cost.megabytes, "MB", at_most=1000)]
    met.append(report("results.json", sizes["results.json"], "MB", at_most=20))
    return all([*met, report("report.html", sizes["report.html"], "MB", at_most=1.5)])


ESTIMATE = """
import sys
import factaudit as fa
claims = fa.read_claims(sys.argv[1])
claims["label"] = claims["label"].where(claims.index % 500 == 0)
found = fa.estimate_rates(claims, fa.read_verdicts(sys.argv[2], claims=claims), levels=["claim"])
assert len({row["system"] for row in found.rates}) == 50
"""


def measure_estimates() -> bool:
    with tables(1_000_000, 1, 50, 5) as files:
        cost = measure_command("-c", ESTIMATE, *files)
    work = "error rates of 50 systems from 2,000 labels, 1,000,000 claims × 5 evaluators"
    met = report(work, cost.cpu_seconds, "s CPU", at_most=20)
    return report("their memory", cost.megabytes, "MB", at_most=3000) and met


SERVER = """
import sys
from llm_server import FaultServer, Plan
with FaultServer(plan=lambda body, attempt: Plan(p_yes=0.75, delay=0.5), keep=False) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


def measure_judge() -> bool:
    """A model that answers after half a second, asked 256 questions at once: calls / concurrency ×
    latency is the ideal."""
    import pandas as pd

    import factaudit

    calls, at_once = 2560, 256
    claims = [
        {"claim_id": str(at), "claim": f"Claim {at}.", "doc": f"{at} rivers run. " * 100}
        for at in range(calls)
    ]
    table = factaudit.validate_claims(pd.DataFrame(claims).assign(dataset="d", label=None))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen([sys.executable, "-c", SERVER], cwd=TESTS, text=True, **pipes) as server,
    ):
        url = server.stdout.readline().strip()
        judge = f"llm:model=m,base_url={url},concurrency={at_once},cache={folder}/cache.sqlite"
        factaudit.judge(table.head(20), [judge])
        begun = time.perf_counter()
        verdicts = factaudit.judge(table, [judge])
        seconds = time.perf_counter() - begun
        server.stdin.close()
    assert (verdicts["status"] == "ok").all()
    ideal = calls / at_once * 0.5
    return report(f"judge: {calls:,} calls, {at_once} at once", seconds / ideal, "× ideal", 1.2)


BENCHES = {
    "long": measure_long,
    "wide": measure_wide,
    "estimates": measure_estimates,
    "judge": measure_judge,
}


if __name__ == "__main__":
    print(f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}\n")
    print("| work | measured | limit |\n|---|--:|---|")
    met = [BENCHES[name]() for name in sys.argv[1:] or BENCHES]
    sys.exit(not all(met))
