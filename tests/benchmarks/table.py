"""What a bench measured, as lines of one table; ``python tests/benchmarks/table.py`` runs every
bench and prints it.

A bench calls `report` once for each figure. Run alone it prints its lines as they come;
`make bench` collects the lines of all benches and prints them together at the end.

    python tests/benchmarks/table.py [bench_llm bench_overlap ...]
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The file that lines are added to while all benches run.
LINES = "FACTAUDIT_BENCH_LINES"
#: Seconds after which a bench is ended: one that waits for a server that has died would wait for
#: ever.
LONGEST = 3600
_HEAD = "| work | ours | peer | limit |\n|---|--:|--:|---|"


@dataclass(frozen=True)
class Cost:
    """What some work took: seconds of the CPU (all threads), seconds by the clock, its result, and
    peak memory."""

    cpu: float
    wall: float
    result: Any = None
    megabytes: float | None = None


def clocked(work: Callable[[], Any], runs: int = 1) -> Cost:
    """The run of several that took the least CPU."""
    costs = []
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        costs.append(Cost(time.process_time() - cpu, time.perf_counter() - wall, result))
    return min(costs, key=lambda cost: cost.cpu)


def spawned(*command: str | Path, runs: int = 1) -> Cost:
    """The run of several of a process, with all that it started, that took the least CPU; the
    result is its output."""
    # Linux counts kilobytes, macOS bytes.
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    costs = []
    for _ in range(runs):
        wall = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, *command], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            said = process.stdout.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, process.args, said)
        seconds = time.perf_counter() - wall
        costs.append(Cost(used.ru_utime + used.ru_stime, seconds, said, used.ru_maxrss / unit))
    return min(costs, key=lambda cost: cost.cpu)


def run_in_own_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """What ``work`` gives, run in another process: on Linux the peak of what is `spawned` begins at
    this one's."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def report(
    work: str,
    ours: Cost | float,
    unit: str = "s CPU",
    *,
    peer: tuple[str, Cost | float] | None = None,
    at_most: float | None = None,
    ratio: float | None = None,
) -> bool:
    """Print one line and keep it for the table; whether its limits are met.

    Args:
        ours, unit: what is measured; of a `Cost` the CPU seconds.
        peer: what does the same work, named, and what it took in the same unit.
        at_most: the limit on ``ours``, in its unit. ratio: the least that peer / ours may be.
    """
    figure = ours.cpu if isinstance(ours, Cost) else ours
    told, times, limits = "", 0.0, []
    if peer is not None:
        other = peer[1].cpu if isinstance(peer[1], Cost) else peer[1]
        times = other / figure
        told = f"{_show(other)} {unit}, {peer[0]} ({_show(times)} ×)"
    is_met = (at_most is None or figure <= at_most) and (ratio is None or times >= ratio)
    limits += [] if at_most is None else [f"≤ {at_most:,g} {unit}"]
    limits += [] if ratio is None else [f"≥ {ratio:g} ×"]
    outcome = "" if not limits else " met" if is_met else " MISSED"
    line = f"| {work} | {_show(figure)} {unit} | {told} | {', '.join(limits)}{outcome} |"
    print(line, flush=True)
    if path := os.environ.get(LINES):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
    return is_met


def _show(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def main() -> int:
    """Run the benches named, or all, one after the other; print the table."""
    folder = Path(__file__).resolve().parent
    named = [folder / f"{name.removesuffix('.py')}.py" for name in sys.argv[1:]]
    failed = []
    with tempfile.TemporaryDirectory() as name:
        lines = Path(name) / "lines"
        lines.touch()
        for bench in named or sorted(folder.glob("bench_*.py")):
            print(f"== {bench.name}", flush=True)
            settings = {**os.environ, LINES: str(lines)}
            try:
                code = subprocess.run(
                    [sys.executable, bench], env=settings, timeout=LONGEST, check=False
                ).returncode
            except subprocess.TimeoutExpired:
                code = f"more than {LONGEST} s"
            failed += [f"{bench.name}: {code}"] if code else []
        table = lines.read_text(encoding="utf-8")
    print(
        f"\n{os.cpu_count()} cores, {platform.machine()}, Python"
        f" {platform.python_version()}\n\n{_HEAD}\n{table}"
    )
    print(*failed, sep="\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
