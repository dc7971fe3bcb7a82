"""Auditing tables past memory: DuckDB at 1 M and 30 M claims x 5 evaluators beside the arrays at 1 M.

Each run is a process of its own, from Parquet to the rows of the audits with 2,000 replicates; peak memory is that
process's. At the sizes that both read, the rows must be the same to the last digit.

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
from pathlib import Path
from typing import Any

from table import Cost, report

from factaudit.audit import computable
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.sql.prepare import prepare
from factaudit.sql.source import of_files
from factaudit.sql.stored import Stored
from factaudit.tables import read_claims, read_verdicts

EVALUATORS = 5
#: At most this many claims are read into memory to compare with.
IN_MEMORY = 1_000_000
#: The target of 30 M claims, in MB.
PEAK = 2048
AUDITS = ("rates", "quantification", "consistency", "headroom", "ranking_pairs", "transfer")
#: Those that resample or permute single clusters, or read scores: where their rows are compared with those of arrays.
COMPARED = ("differences", "ranking", "adjustment", "adjusted_bias")
#: Those that read scores.
SCORES = {"adjustment", "adjusted_bias"}


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


def step(how: str, folder: Path, audits: list[str], rows: Path) -> dict[str, float]:
    """What a way takes from the files to the rows, which it writes."""
    wall, cpu = time.perf_counter(), time.process_time()
    if how == "arrays":
        claims = read_claims(folder / "claims.parquet")
        judged: Any = Judged.join(claims, read_verdicts(*sorted(folder.glob("verdicts-*.parquet")), claims=claims))
        found = _rows(judged, audits)
    else:
        tables = of_files([str(folder / "claims.parquet")], [str(folder / "verdicts-*.parquet")])
        with tempfile.TemporaryDirectory(dir=folder) as spill:
            engine = tables.engine(Path(spill))
            prepared = prepare(engine, tables, scores=bool(SCORES & set(audits)))
            found = _rows(Stored(engine, prepared), audits)
            engine.close()
    told = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    rows.write_text(json.dumps(found))
    # Linux counts kilobytes, macOS bytes.
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return told | {"megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit}


def _rows(judged: Any, audits: list[str]) -> dict[str, Any]:
    return {name: computable()[name].compute(judged, intervals=Intervals(2000)) for name in audits}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--claims", type=int, nargs="+", default=[IN_MEMORY, 30_000_000])
    parser.add_argument("--audits", nargs="+", help="By default six, and four more up to 1 M claims.")
    parser.add_argument("--folder", type=Path, help="Where tables are made (and kept), by default a temporary folder.")
    parser.add_argument("--step", choices=("arrays", "queries"), help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        print(json.dumps(step(args.step, args.folder, args.audits, args.rows)))
        return 0
    sizes = sorted(args.claims)
    work = [(n, args.audits or list(AUDITS)) for n in sizes]
    work += [(n, list(COMPARED)) for n in sizes if n <= IN_MEMORY and not args.audits]
    met: list[bool] = []
    growth: dict[int, Cost] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for n, audits in work:
            folder = (args.folder or Path(temporary)) / str(n)
            if not (folder / "claims.parquet").exists():
                folder.mkdir(parents=True, exist_ok=True)
                make(n, folder)
            found, rows = {}, {}
            for how in ("queries", "arrays")[: 2 if n <= IN_MEMORY else 1]:
                path = Path(temporary) / f"{how}.json"
                command = [sys.executable, __file__, "--step", how, "--folder", folder, "--rows", path]
                done = subprocess.run([*command, "--audits", *audits], check=True, capture_output=True, text=True)
                found[how], rows[how] = json.loads(done.stdout), path.read_bytes()
            if len(rows) == 2 and rows["queries"] != rows["arrays"]:
                print(f"{n:,} claims: the rows of queries and arrays differ")
                return 1
            cost = {how: Cost(each["cpu"], each["wall"]) for how, each in found.items()}
            told = "" if audits != list(COMPARED) else f" ({', '.join(COMPARED)})"
            what = f"{len(audits)} audits past memory{told}, {n:,} claims × {EVALUATORS} evaluators"
            if not told:
                growth[n] = cost["queries"]
            met.append(report(what, cost["queries"], peer=_peer(cost), growth=growth if not told else None))
            peaks = {how: each["megabytes"] for how, each in found.items()}
            limit = PEAK if n == sizes[-1] else None
            met.append(report(f"{what}: peak memory", peaks["queries"], "MB", peer=_peer(peaks), at_most=limit))
    return not all(met)


def _peer(found: dict[str, Any]) -> tuple[str, Any] | None:
    return ("in memory", found["arrays"]) if "arrays" in found else None


if __name__ == "__main__":
    sys.exit(main())
