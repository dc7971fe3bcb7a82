"""Auditing tables past memory: DuckDB at 1 M and 30 M claims x 5 evaluators beside the arrays at 1 M.

Each way is a process of its own, from Parquet to the rows of all audits with 2,000 replicates and of estimates from
2,000 labels; peak memory is that process's. At the sizes that both read, the rows must be the same to the last digit.

    python tests/benchmarks/bench_past_memory.py [--claims 1000000 30000000] [--audits rates ...] [--folder DIR]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from table import Cost, report

from factaudit.arrays.judgements import Judgements
from factaudit.audit import list_computable_audits
from factaudit.blas_threads import use_one_blas_thread
from factaudit.estimate.rate_estimation import estimate_rates, estimate_rates_past_memory
from factaudit.sql.source_tables import find_parquet_tables_for_sql
from factaudit.sql.sql_tallies import SqlTallies
from factaudit.sql.table_join import join_source_tables
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables import read_claims, read_verdicts
from factaudit.tables.annotations import validate_annotations

EVALUATORS = 5
#: At most this many claims are read into memory to compare with.
IN_MEMORY = 1_000_000
#: The target of 30 M claims, in MB.
PEAK = 2048
#: All that are computed of numbers, and ``estimate``.
AUDITS = (
    *("rates", "differences", "consistency", "quantification", "headroom", "ranking", "ranking_pairs", "transfer"),
    *("adjustment", "adjusted_bias", "estimate"),
)
#: Left out above `IN_MEMORY` claims where nobody asks for it: it takes longest.
LONG = "adjusted_bias"
TOGETHER = f"all but {LONG}"
#: Those that read scores.
SCORES = {"adjustment", "adjusted_bias", "estimate"}
#: Claims that are labelled for estimates.
LABELS = 2000


def make(n: int, folder: Path) -> None:
    """10 datasets, 6 systems, 5 claims in a response, a document for 30 claims, a tenth unlabelled; 2 % of the verdicts
    unscored and 1 % guessed. By DuckDB, from hashes of the claims' numbers: the same whatever it does in parallel."""
    import duckdb

    def uniform(seed: str) -> str:
        return f"((hash({seed}) >> 11) / 9007199254740992.0)"

    number, right = "lpad(CAST(i AS VARCHAR), 8, '0')", f"({uniform('i * 7 + 2')} < 0.6 + 0.02 * (i // 5 % 6))"
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '1GB'; SET threads = 2; SET preserve_insertion_order = false")
        connection.execute(
            f"COPY (SELECT 'claim-' || {number} AS claim_id, 'dataset-' || CAST(i * 10 // {n} AS VARCHAR) AS dataset, "
            "'system-' || CAST(i // 5 % 6 AS VARCHAR) AS system, CAST(i // 30 AS VARCHAR) AS response_id, "
            "CAST(i // 30 AS VARCHAR) AS doc_id, 'claim ' || CAST(i AS VARCHAR) AS claim, "
            f"CASE WHEN {uniform('i * 7 + 1')} < 0.1 THEN NULL WHEN {right} THEN 1 ELSE 0 END AS label "
            f"FROM range({n}) AS t(i)) TO '{folder}/claims.parquet'"
        )
        for evaluator in range(EVALUATORS):
            first, second, third = (uniform(f"i * 101 + {evaluator * 3 + k}") for k in (1, 2, 3))
            normal = f"sqrt(-2 * ln({first} + 1e-12)) * cos(2 * pi() * {second})"
            score = f"greatest(0, least(1, CASE WHEN {right} THEN 0.68 ELSE 0.32 END + 0.25 * {normal}))"
            connection.execute(
                f"COPY (SELECT claim_id, evaluator, CASE WHEN x >= 0.02 THEN score END AS score, "
                "CASE WHEN x >= 0.02 AND x < 0.03 THEN CAST(score > 0.5 AS INTEGER) END AS prediction, "
                "CASE WHEN x < 0.03 THEN 'unparsed' ELSE 'ok' END AS status "
                f"FROM (SELECT 'claim-' || {number} AS claim_id, 'evaluator-{evaluator}' AS evaluator, {third} AS x, "
                f"{score} AS score FROM range({n}) AS t(i))) TO '{folder}/verdicts-{evaluator}.parquet'"
            )


def step(how: str, folder: Path, audits: list[str], rows: Path) -> dict[str, Any]:
    """What a way takes from the files to the rows, which it writes: seconds of the CPU and by the clock of each part,
    and peak memory in MB."""
    took: dict[str, tuple[float, float]] = {}

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        took[name] = time.process_time() - cpu, time.perf_counter() - wall
        print(f"{how} {name}: {took[name][0]:.1f} s CPU, {_peak():.0f} MB so far", file=sys.stderr, flush=True)

    found: dict[str, Any] = {}
    with ExitStack() as opened:
        with timed("check and join"):
            if how == "arrays":
                claims = read_claims(folder / "claims.parquet")
                verdicts = read_verdicts(*sorted(folder.glob("verdicts-*.parquet")), claims=claims)
                judged: Any = Judgements.join(claims, verdicts)
            else:
                tables = find_parquet_tables_for_sql(
                    [str(folder / "claims.parquet")], [str(folder / "verdicts-*.parquet")]
                )
                engine = tables.open_engine(Path(opened.enter_context(tempfile.TemporaryDirectory(dir=folder))))
                opened.callback(engine.close)
                scores = bool(SCORES & set(audits))
                judged = SqlTallies(
                    engine, join_source_tables(engine, tables, with_scores=scores, with_ids="estimate" in audits)
                )
        for name in audits:
            with timed(name):
                if name != "estimate":
                    with use_one_blas_thread():
                        found[name] = list_computable_audits()[name].compute(judged, intervals=ClusterBootstrap(2000))
                elif how == "arrays":
                    found[name] = estimate_rates(claims, verdicts, **_estimated(len(claims))).audits()
                else:
                    found[name] = estimate_rates_past_memory(
                        judged, **_estimated(judged.join_summary.n_claims)
                    ).audits()
    rows.write_text(json.dumps(found))
    return {"took": took, "megabytes": _peak()}


def _estimated(n: int) -> dict[str, Any]:
    """What is estimated, and from which labels: those of claims at random, each a coin."""
    random = np.random.default_rng(0)
    ids = [f"claim-{number:08}" for number in sorted(random.choice(n, LABELS, replace=False))]
    labels = pd.DataFrame({"claim_id": ids, "annotator": "one", "label": random.integers(0, 2, LABELS)})
    return {"main": "evaluator-0", "levels": ["claim"], "strata": [], "annotations": validate_annotations(labels)}


def _peak() -> float:
    # Linux counts kilobytes, macOS bytes.
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--claims", type=int, nargs="+", default=[IN_MEMORY, 30_000_000])
    parser.add_argument("--audits", nargs="+", help="By default all, above 1 M claims but adjusted_bias.")
    parser.add_argument("--folder", type=Path, help="Where tables are made (and kept), by default a temporary folder.")
    parser.add_argument("--step", choices=("arrays", "queries"), help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        print(json.dumps(step(args.step, args.folder, args.audits, args.rows)))
        return 0
    sizes = sorted(args.claims)
    met: list[bool] = []
    growth: dict[str, dict[int, Cost]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for n in sizes:
            audits = args.audits or [name for name in AUDITS if n <= IN_MEMORY or name != LONG]
            folder = (args.folder or Path(temporary)) / str(n)
            if not (folder / "claims.parquet").exists():
                folder.mkdir(parents=True, exist_ok=True)
                make(n, folder)
            found: dict[str, dict[str, Any]] = {}
            rows: dict[str, bytes] = {}
            for how in ("queries", "arrays")[: 2 if n <= IN_MEMORY else 1]:
                path = Path(temporary) / f"{how}.json"
                command = [sys.executable, __file__, "--step", how, "--folder", folder, "--rows", path]
                done = subprocess.run([*command, "--audits", *audits], check=True, stdout=subprocess.PIPE, text=True)
                found[how], rows[how] = json.loads(done.stdout), path.read_bytes()
            if len(rows) == 2 and rows["queries"] != rows["arrays"]:
                print(f"{n:,} claims: the rows of queries and arrays differ")
                return 1
            of = f"{n:,} claims × {EVALUATORS} evaluators past memory"
            for name in [*found["queries"]["took"], TOGETHER]:
                cost = {how: _cost(each["took"], name) for how, each in found.items()}
                growth.setdefault(name, {})[n] = cost["queries"]
                grown = growth[name] if n == sizes[-1] > sizes[0] else None
                met.append(report(f"{of}: {name}", cost["queries"], peer=_peer(cost), growth=grown))
            peaks = {how: each["megabytes"] for how, each in found.items()}
            limit = PEAK if n == sizes[-1] else None
            met.append(report(f"{of}: peak memory", peaks["queries"], "MB", peer=_peer(peaks), at_most=limit))
    return not all(met)


def _cost(took: dict[str, list[float]], name: str) -> Cost:
    """Of one part, or of all that are measured at every size."""
    parts = [each for part, each in took.items() if part != LONG] if name == TOGETHER else [took[name]]
    return Cost(sum(cpu for cpu, _ in parts), sum(wall for _, wall in parts))


def _peer(found: dict[str, Any]) -> tuple[str, Any] | None:
    return ("in memory", found["arrays"]) if "arrays" in found else None


if __name__ == "__main__":
    sys.exit(main())
