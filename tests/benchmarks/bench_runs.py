"""What a run with all audits and its report takes as it gets longer (to 1,000,000 claims) and wider
(to 50 systems, 20 evaluators and 10 data sets).

Each line is of processes of their own, from the files on. Scores are continuous, six claims have a
document, and responses are spread over documents, so that few clusters are alike. The floor of the
longest reads both tables and counts labels and predictions by system with DuckDB.

    python tests/benchmarks/bench_runs.py
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from table import Cost, report, run_in_own_process, spawned

CLAIMS = (10_000, 100_000, 1_000_000)
#: Data sets, systems and evaluators: of the long tables, and of wide ones, whose systems have 20
#: claims in a data set.
LONG, WIDE = (
    (3, 6, 5),
    tuple((10, systems, evaluators) for systems, evaluators in ((5, 20), (50, 2), (50, 20))),
)
CLAIMS_PER_SYSTEM = 20
#: At the most claims: MB of memory, and the CPU beside that of a tenth as many.
LONG_MEGABYTES, MOST_GROWTH = 1200, 10.5
#: At the widest: MB of memory, of results.json and of the report.
WIDE_MEGABYTES, RESULTS_MEGABYTES, REPORT_MEGABYTES = 1000, 20, 1.5

FLOOR = """
import sys, duckdb
duckdb.sql("SET threads = 1")
claims, verdicts = sys.argv[1:]
print(duckdb.sql(f'''
    SELECT dataset, system, evaluator, label, prediction, count(*), count(score)
    FROM '{verdicts}' JOIN '{claims}' USING (claim_id) GROUP BY ALL
''').fetchall()[:1])
"""


def make_tables(
    n_claims: int, n_datasets: int, n_systems: int, n_evaluators: int, folder: Path
) -> None:
    import numpy as np
    import pandas as pd

    random, at = np.random.default_rng(0), np.arange(n_claims)
    dataset, system = random.integers(0, n_datasets, n_claims), at % n_systems
    document = random.integers(0, n_claims // 6, n_claims)
    label = (random.random(n_claims) < 0.8 - 0.15 * system / n_systems).astype(int)
    words = np.array([f"word{each}" for each in range(20)])

    def write_texts(rows: int, length: int) -> np.ndarray:
        return np.array(
            [" ".join(words[each]) for each in random.integers(0, len(words), (rows, length))]
        )

    ids = at.astype(str)
    claims = {"claim_id": ids, "dataset": np.char.add("set-", dataset.astype(str)), "label": label}
    claims |= {"claim": write_texts(n_claims, 8), "doc": write_texts(n_claims // 6, 40)[document]}
    claims |= {"doc_id": document.astype(str), "response_id": (at // 3).astype(str)}
    claims |= {"system": np.char.add("system-", system.astype(str))}
    pd.DataFrame(claims).to_parquet(folder / "claims.parquet")
    scores = [
        np.clip(label * 0.35 + 0.35 + random.normal(0, 0.25, n_claims), 0, 1)
        for _ in range(n_evaluators)
    ]
    said = [
        {
            "claim_id": ids,
            "evaluator": f"evaluator-{each}",
            "score": score,
            "prediction": (score > 0.5).astype(int),
        }
        for each, score in enumerate(scores)
    ]
    pd.concat(map(pd.DataFrame, said)).assign(status="ok").to_parquet(folder / "verdicts.parquet")


@contextmanager
def run_all_audits(
    n_claims: int, n_datasets: int, n_systems: int, n_evaluators: int
) -> Iterator[tuple[Path, Cost]]:
    """A folder with the tables and the run, and what the run took."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run_in_own_process(make_tables, n_claims, n_datasets, n_systems, n_evaluators, folder)
        tables = [folder / f"{name}.parquet" for name in ("claims", "verdicts")]
        yield folder, spawned("-m", "factaudit", "audit", *tables, "--out", folder / "run")


def measure_length() -> list[bool]:
    costs: dict[int, Cost] = {}
    for n in CLAIMS:
        with run_all_audits(n, *LONG) as (folder, costs[n]):
            floor = spawned("-c", FLOOR, folder / "claims.parquet", folder / "verdicts.parquet")
    work = f"all audits and the report, {n:,} claims × {LONG[-1]} evaluators, continuous scores"
    report(work, costs[n], peer=("DuckDB reads and counts", floor))
    growth = costs[n].cpu / costs[n // 10].cpu
    return [
        report(f"{work}: peak memory", costs[n].megabytes or 0, "MB", at_most=LONG_MEGABYTES),
        report(f"from {n // 10:,} claims to {n:,}", growth, "×", at_most=MOST_GROWTH),
    ]


def measure_breadth() -> list[bool]:
    costs: dict[tuple[int, int], tuple[int, Cost]] = {}
    for datasets, systems, evaluators in WIDE:
        n_claims = datasets * systems * CLAIMS_PER_SYSTEM
        with run_all_audits(n_claims, datasets, systems, evaluators) as (folder, cost):
            costs[systems, evaluators] = n_claims * evaluators, cost
            sizes = {
                file: (folder / "run" / file).stat().st_size / 1e6
                for file in ("results.json", "report.html")
            }
    report(
        f"all audits and the report, {systems} systems × {evaluators} evaluators × {datasets} data"
        " sets",
        cost,
    )
    for narrow in ((5, 20), (50, 2)):
        few, many = costs[narrow], costs[50, 20]
        growth = many[1].cpu / many[0] / (few[1].cpu / few[0])
        report(
            f"a verdict of it, beside one of {narrow[0]} systems × {narrow[1]} evaluators",
            growth,
            "×",
        )
    limits = {"results.json": RESULTS_MEGABYTES, "report.html": REPORT_MEGABYTES}
    return [
        report("its peak memory", cost.megabytes or 0, "MB", at_most=WIDE_MEGABYTES),
        *(report(f"its {file}", size, "MB", at_most=limits[file]) for file, size in sizes.items()),
    ]


if __name__ == "__main__":
    sys.exit(not all([*measure_length(), *measure_breadth()]))
