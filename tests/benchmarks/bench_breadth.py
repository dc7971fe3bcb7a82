"""What a run with all audits and its report takes as it gets wider: 5 to 50 systems, 2 to 20 evaluators, 10 data sets.

Each line is of a process of its own, from the files on; each system has 20 claims in a data set. The growth is over
verdicts, which both add to. Files and memory are those of the widest.

    python tests/benchmarks/bench_breadth.py [--systems 5 16 50] [--evaluators 2 6 20] [--datasets 10]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from table import Cost, report, run_in_own_process, spawned

CLAIMS_PER_SYSTEM = 20
#: At 50 systems x 20 evaluators x 10 data sets: MB of memory, of results.json and of the report.
MEGABYTES, RESULTS_MEGABYTES, REPORT_MEGABYTES = 1000, 20, 1.5


def make_wide_tables(n_datasets: int, n_systems: int, n_evaluators: int, folder: Path) -> int:
    """Write claims and verdicts; gives how many verdicts there are."""
    import numpy as np
    import pandas as pd

    random = np.random.default_rng(1)
    number = np.arange(n_datasets * n_systems * CLAIMS_PER_SYSTEM)
    dataset, system = (
        number // (n_systems * CLAIMS_PER_SYSTEM),
        number // CLAIMS_PER_SYSTEM % n_systems,
    )
    label = (random.random(len(number)) < 0.8).astype(int)
    claims = {"claim_id": number.astype(str), "claim": "a claim of words", "doc": "a document of words", "label": label}
    claims |= {"dataset": [f"set{each}" for each in dataset], "system": [f"model-{each}" for each in system]}
    claims |= {"doc_id": (number % CLAIMS_PER_SYSTEM + dataset * CLAIMS_PER_SYSTEM).astype(str)}
    pd.DataFrame(claims).to_parquet(folder / "claims.parquet")
    said = [
        {"claim_id": claims["claim_id"], "evaluator": f"judge{each}", "status": "ok"}
        | {"score": np.clip(label * 0.3 + 0.4 + random.normal(0, 0.25, len(number)), 0, 1)}
        for each in range(n_evaluators)
    ]
    pd.concat(map(pd.DataFrame, said)).to_parquet(folder / "verdicts.parquet")
    return len(number) * n_evaluators


def run_all_audits(n_datasets: int, n_systems: int, n_evaluators: int, folder: Path) -> tuple[int, Cost]:
    """The number of verdicts, and what auditing them takes."""
    folder.mkdir(exist_ok=True)
    n_verdicts = run_in_own_process(make_wide_tables, n_datasets, n_systems, n_evaluators, folder)
    tables = [folder / f"{name}.parquet" for name in ("claims", "verdicts")]
    return n_verdicts, spawned("-m", "factaudit", "audit", *tables, "--out", folder / "run")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", nargs="+", type=int, default=[5, 16, 50])
    parser.add_argument("--evaluators", nargs="+", type=int, default=[2, 6, 20])
    parser.add_argument("--datasets", type=int, default=10)
    asked = parser.parse_args()
    systems, evaluators = max(asked.systems), max(asked.evaluators)
    met = []
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        widest = work / f"{systems}x{evaluators}"
        found = {
            (s, e): run_all_audits(asked.datasets, s, e, work / f"{s}x{e}")
            for s, e in dict.fromkeys(
                [*((s, evaluators) for s in asked.systems), *((systems, e) for e in asked.evaluators)]
            )
        }
        cost = found[systems, evaluators][1]
        of = f"{systems} systems × {evaluators} evaluators × {asked.datasets} data sets"
        of_systems = dict(found[each, evaluators] for each in asked.systems)
        of_evaluators = dict(found[systems, each] for each in asked.evaluators)
        report(f"all audits and the report, {of}; growth over systems, by verdict", cost, growth=of_systems)
        report("the same; growth over evaluators, by verdict", cost, growth=of_evaluators)
        met.append(report("its peak memory", cost.megabytes or 0, "MB", at_most=MEGABYTES))
        for file, limit in (("results.json", RESULTS_MEGABYTES), ("report.html", REPORT_MEGABYTES)):
            size = (widest / "run" / file).stat().st_size / 1e6
            met.append(report(f"its {file}", size, "MB", at_most=limit))
    return not all(met)


if __name__ == "__main__":
    sys.exit(main())
