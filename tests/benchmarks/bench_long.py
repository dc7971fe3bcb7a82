"""What a run with all audits and its report takes as it gets longer: 10,000 to 1,000,000 claims x 5 evaluators.

Scores are continuous, six claims have a document, and responses are spread over documents, so that few clusters are
alike. Each line is of processes of their own, from the files on, beside the floor: reading both tables and counting
labels and predictions by system with DuckDB.

    python tests/benchmarks/bench_long.py [--claims 10000 100000 1000000] [--base FOLDER]

base: another checkout of factaudit, whose run on the same files is the peer in place of the floor.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from table import Cost, report, run_in_own_process, spawned

EVALUATORS = 5
#: At the most claims: MB of memory, and the CPU beside that of a tenth as many.
MEGABYTES, MOST_GROWTH = 1200, 10.5
#: The least that the base's CPU is of ours.
LEAST_RATIO = 1 / 0.45

FLOOR = """
import sys, duckdb
duckdb.sql("SET threads = 1")
claims, verdicts = sys.argv[1:]
print(duckdb.sql(f'''
    SELECT dataset, system, evaluator, label, prediction, count(*), count(score)
    FROM '{verdicts}' JOIN '{claims}' USING (claim_id) GROUP BY ALL
''').fetchall()[:1])
"""


def make_long_tables(n_claims: int, folder: Path) -> None:
    """3 data sets, 6 systems, a document for six claims and a response for three, at random."""
    import numpy as np
    import pandas as pd

    random, at = np.random.default_rng(0), np.arange(n_claims)
    dataset, system = random.integers(0, 3, n_claims), random.integers(0, 6, n_claims)
    document = random.integers(0, n_claims // 6, n_claims)
    label = (random.random(n_claims) < 0.8 - 0.025 * system).astype(int)
    words = np.array([f"word{each}" for each in range(20)])

    def write_texts(rows: int, length: int) -> np.ndarray:
        return np.array([" ".join(words[each]) for each in random.integers(0, len(words), (rows, length))])

    ids = at.astype(str)
    claims = {"claim_id": ids, "dataset": np.array(list("abc"))[dataset], "label": label}
    claims |= {"claim": write_texts(n_claims, 8), "doc": write_texts(n_claims // 6, 40)[document]}
    claims |= {"doc_id": document.astype(str), "response_id": (at // 3).astype(str)}
    claims |= {"system": np.char.add("system-", system.astype(str))}
    pd.DataFrame(claims).to_parquet(folder / "claims.parquet")
    scores = [np.clip(label * 0.35 + 0.35 + random.normal(0, 0.25, n_claims), 0, 1) for _ in range(EVALUATORS)]
    said = [
        {"claim_id": ids, "evaluator": f"evaluator-{each}", "score": score, "prediction": (score > 0.5).astype(int)}
        for each, score in enumerate(scores)
    ]
    pd.concat(map(pd.DataFrame, said)).assign(status="ok").to_parquet(folder / "verdicts.parquet")


def run_all_audits(folder: Path, checkout: Path | None = None) -> Cost:
    """Of this package, or of another checkout."""
    tables = [folder / f"{name}.parquet" for name in ("claims", "verdicts")]
    before = os.environ.get("PYTHONPATH")
    try:
        if checkout is not None:
            os.environ["PYTHONPATH"] = str(checkout)
        # Another checkout is found by PYTHONPATH alone: the folder that one stands in may hold this package.
        flags = [] if checkout is None else ["-P"]
        return spawned(*flags, "-m", "factaudit", "audit", *tables, "--out", folder / f"run-{checkout is None}")
    finally:
        if checkout is not None:
            os.environ.pop("PYTHONPATH")
            os.environ.update({} if before is None else {"PYTHONPATH": before})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--claims", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--base", type=Path)
    asked = parser.parse_args()
    costs: dict[int, Cost] = {}
    for n in sorted(asked.claims):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            run_in_own_process(make_long_tables, n, folder)
            costs[n] = run_all_audits(folder)
            base = run_all_audits(folder, asked.base) if asked.base else None
            floor = spawned("-c", FLOOR, folder / "claims.parquet", folder / "verdicts.parquet")
    work = f"all audits and the report, {n:,} claims × {EVALUATORS} evaluators, continuous scores"
    report(work, costs[n], peer=("DuckDB reads and counts", floor), growth=costs)
    met = [report(f"{work}: peak memory", costs[n].megabytes or 0, "MB", at_most=MEGABYTES)]
    if base is not None:
        met.append(report(f"{work}: the base", costs[n], peer=(str(asked.base), base), ratio=LEAST_RATIO))
    if (tenth := costs.get(n // 10)) is not None:
        growth = costs[n].cpu / tenth.cpu
        met.append(report(f"from {n // 10:,} claims to {n:,}", growth, "×", at_most=MOST_GROWTH))
    return not all(met)


if __name__ == "__main__":
    sys.exit(main())
