"""Error rates of 50 systems from 1,000,000 claims, 5 evaluators and 2,000 labels: processor seconds and memory.

    python tests/benchmarks/bench_estimate.py [claims]

The tables are written as Parquet first; what is measured begins with reading them, in a process of its own.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

SYSTEMS, EVALUATORS, LABELS = 50, 5, 2000
#: What is aimed at for 1,000,000 claims.
SECONDS, GIGABYTES = 20, 3


def write(folder: Path, size: int) -> None:
    """Claims without text, verdicts, and a third table with labels drawn by a sample."""
    from factaudit.audit.core.judged import Judged
    from factaudit.estimate.sample import draw_sample

    random = np.random.default_rng(0)
    system = np.arange(size) % SYSTEMS
    error = random.random(size) < 0.05 + 0.4 * system / SYSTEMS
    claims = pd.DataFrame(
        {
            "claim_id": [f"claim-{at:07d}" for at in range(size)],
            "dataset": "bench",
            "system": [f"system-{at:02d}" for at in system],
            "doc_id": [f"doc-{at:06d}" for at in np.arange(size) // SYSTEMS],
            "response_id": [f"response-{at:06d}" for at in np.arange(size) // SYSTEMS],
            "claim": "-",
        }
    )
    verdicts = []
    for at in range(EVALUATORS):
        logit = (2 - 0.2 * at) * (error - 0.5) + random.standard_normal(size)
        score = 1 / (1 + np.exp(logit))
        verdicts.append(pd.DataFrame({"claim_id": claims["claim_id"], "evaluator": f"evaluator-{at}", "score": score}))
    claims.to_parquet(folder / "claims.parquet")
    pd.concat(verdicts, ignore_index=True).to_parquet(folder / "verdicts.parquet")
    from factaudit.tables import read_claims, read_verdicts

    table = read_claims(folder / "claims.parquet")
    judged = Judged.join(table, read_verdicts(folder / "verdicts.parquet", claims=table))
    sample = draw_sample(judged, [f"evaluator-{at}" for at in range(EVALUATORS)], LABELS, phases=1)
    sample.write(folder / "sample.parquet")
    at = sample.rows["claim_id"].str.removeprefix("claim-").astype(int)
    labels = pd.DataFrame({"claim_id": sample.rows["claim_id"], "annotator": "a", "label": 1 - error[at].astype(int)})
    labels.to_parquet(folder / "labels.parquet")


def measure(folder: Path) -> None:
    from factaudit.estimate.run import estimate_rates
    from factaudit.estimate.sample import read_sample
    from factaudit.tables import read_claims, read_verdicts
    from factaudit.tables.annotations import read_annotations

    parts = [("import", time.process_time())]
    claims = read_claims(folder / "claims.parquet")
    verdicts = read_verdicts(folder / "verdicts.parquet", claims=claims)
    parts.append(("read", time.process_time()))
    found = estimate_rates(
        claims,
        verdicts,
        annotations=read_annotations(folder / "labels.parquet", claims=claims),
        sample=read_sample(folder / "sample.parquet"),
        levels=["claim"],
    )
    parts.append(("estimate", time.process_time()))
    before = 0.0
    for name, at in parts:
        print(f"{name:<10}{at - before:8.1f} s")
        before = at
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{'all':<10}{before:8.1f} s (aim: {SECONDS}), {peak:.2f} GB (aim: {GIGABYTES}), {len(found.rates)} rates")


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(Path(sys.argv[2]))
    else:
        claims = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
        with tempfile.TemporaryDirectory() as name:
            write(Path(name), claims)
            print(f"{claims:,} claims, {EVALUATORS} evaluators, {SYSTEMS} systems, {LABELS:,} labels")
            subprocess.run([sys.executable, __file__, "measure", name], check=True)
