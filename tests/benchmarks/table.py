"""What a bench measured, as lines of one table; ``python tests/benchmarks/table.py`` runs every bench and prints it.

A bench calls `report` once for each figure. Run alone it prints its lines as they come; `make bench` collects the lines
of all benches and prints them together at the end.

    python tests/benchmarks/table.py [bench_llm bench_overlap ...]
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The file that lines are added to while all benches run.
LINES = "FACTAUDIT_BENCH_LINES"
#: Seconds after which a bench is ended: one that waits for a server that has died would wait for ever.
LONGEST = 3600
_HEAD = "| work | ours | peer | limit | ratio | growth |\n|---|--:|--:|--:|--:|---|"


@dataclass(frozen=True)
class Cost:
    """What some work took: seconds of the CPU (all threads), seconds by the clock, its result, and peak memory."""

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
    """The run of several of a process, with all that it started, that took the least CPU; the result is its output."""
    # Linux counts kilobytes, macOS bytes.
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    costs = []
    for _ in range(runs):
        wall = time.perf_counter()
        with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as process:
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
    """What ``work`` gives, run in another process: on Linux the peak of what is `spawned` begins at this one's."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def report(
    work: str,
    ours: Cost | float,
    unit: str = "s",
    *,
    peer: tuple[str, Cost | float] | None = None,
    at_most: float | None = None,
    ratio: float | None = None,
    growth: Mapping[int, Cost | float] | None = None,
) -> bool:
    """Print one line and keep it for the table; whether its limits are met.

    Args:
        ours, unit: what is measured; of a `Cost` the CPU seconds, with those by the clock beside them.
        peer: what does the same work, named, and what it took in the same unit.
        at_most: the limit on ``ours``, in its unit. ratio: the least that peer / ours may be.
        growth: ``ours`` by the number of claims: the line says how the cost of a claim grows from least to most.
    """
    times = None if peer is None else _number(peer[1]) / _number(ours)
    met = (at_most is None or _number(ours) <= at_most) and (ratio is None or (times is not None and times >= ratio))
    limits = [] if at_most is None else [f"≤ {at_most:,g} {unit}".strip()]
    limits += [] if ratio is None else [f"≥ {ratio:g} ×"]
    cells = (
        work,
        _shown(ours, unit),
        "" if peer is None else f"{_shown(peer[1], unit)} {peer[0]}",
        ", ".join(limits) + (": " + ("met" if met else "MISSED") if limits else ""),
        "" if times is None else f"{_figure(times)} ×",
        "" if not growth else _growth(growth, unit),
    )
    line = f"| {' | '.join(cells)} |"
    print(line, flush=True)
    if path := os.environ.get(LINES):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
    return met


def _number(value: Cost | float) -> float:
    return value.cpu if isinstance(value, Cost) else value


def _shown(value: Cost | float, unit: str) -> str:
    if isinstance(value, Cost):
        return f"{_figure(value.cpu)} {unit} CPU ({_figure(value.wall)} by the clock)"
    return f"{_figure(value)} {unit}".strip()


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _growth(growth: Mapping[int, Cost | float], unit: str) -> str:
    sizes = sorted(growth)
    small, large = sizes[0], sizes[-1]
    each = {size: _number(growth[size]) / size for size in (small, large)}
    steps = " → ".join(f"{_count(size)}: {_figure(_number(growth[size]))} {unit}" for size in sizes)
    return f"{steps}; {each[large] / each[small]:.2f} × a claim"


def _count(size: int) -> str:
    for power, name in ((1_000_000, " M"), (1000, " k")):
        if size >= power:
            return f"{size / power:g}{name}"
    return str(size)


def main() -> int:
    """Run the benches named, or all, one after the other; print the table."""
    folder = Path(__file__).resolve().parent
    named = [folder / f"{name.removesuffix('.py')}.py" for name in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as name:
        lines = Path(name) / "lines"
        lines.touch()
        failed = [said for bench in named or sorted(folder.glob("bench_*.py")) if (said := _run(bench, lines))]
        table = lines.read_text(encoding="utf-8")
    print(f"\n{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}\n\n{_HEAD}\n{table}")
    print(*failed, sep="\n")
    return bool(failed)


def _run(bench: Path, lines: Path) -> str | None:
    """Run a bench to its end; what went wrong. Nothing that it started is left."""
    print(f"== {bench.name}", flush=True)
    command, settings = [sys.executable, str(bench)], {**os.environ, LINES: str(lines)}
    with subprocess.Popen(command, env=settings, start_new_session=True) as process:
        try:
            code = process.wait(LONGEST)
            return f"{bench.name}: exit {code}" if code else None
        except subprocess.TimeoutExpired:
            return f"{bench.name}: ended after {LONGEST} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
