"""Error rates of 50 systems from 1,000,000 claims, 5 evaluators and 2,000 labels: CPU seconds and
memory.

    python tests/benchmarks/bench_estimate.py [--claims 1000000]

The tables are written as Parquet first; what is measured begins with reading them, in a process of
its own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from table import report, spawned

SYSTEMS, EVALUATORS, LABELS = 50, 5, 2000
#: What is aimed at for 1,000,000 claims.
SECONDS, MEGABYTES = 20, 3000


def write(folder: Path, size: int) -> None:
    """Claims without text, verdicts, and a third table with labels drawn by a sample."""
    from factaudit import Judgements
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
        verdicts.append(
            pd.DataFrame(
                {"claim_id": claims["claim_id"], "evaluator": f"evaluator-{at}", "score": score}
            )
        )
    claims.to_parquet(folder / "claims.parquet")
    pd.concat(verdicts, ignore_index=True).to_parquet(folder / "verdicts.parquet")
    from factaudit.tables import read_claims, read_verdicts

    table = read_claims(folder / "claims.parquet")
    judged = Judgements.join(table, read_verdicts(folder / "verdicts.parquet", claims=table))
    sample = draw_sample(judged, [f"evaluator-{at}" for at in range(EVALUATORS)], LABELS, phases=1)
    sample.write(folder / "sample.parquet")
    at = sample.rows["claim_id"].str.removeprefix("claim-").astype(int)
    labels = pd.DataFrame(
        {"claim_id": sample.rows["claim_id"], "annotator": "a", "label": 1 - error[at].astype(int)}
    )
    labels.to_parquet(folder / "labels.parquet")


def estimate(folder: Path) -> None:
    from factaudit import estimate_rates, read_annotations, read_sample
    from factaudit.tables import read_claims, read_verdicts

    claims = read_claims(folder / "claims.parquet")
    found = estimate_rates(
        claims,
        read_verdicts(folder / "verdicts.parquet", claims=claims),
        annotations=read_annotations(folder / "labels.parquet", claims=claims),
        sample=read_sample(folder / "sample.parquet"),
        levels=["claim"],
    )
    assert {row["system"] for row in found.rates} >= {f"system-{at:02d}" for at in range(SYSTEMS)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--claims", type=int, default=1_000_000)
    parser.add_argument("--step", choices=("write", "estimate"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        write(args.folder, args.claims) if args.step == "write" else estimate(args.folder)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        spawned(__file__, "--step", "write", "--folder", folder, "--claims", str(args.claims))
        cost = spawned(__file__, "--step", "estimate", "--folder", folder)
    work = (
        f"error rates of {SYSTEMS} systems from {LABELS:,} labels, {args.claims:,} claims ×"
        f" {EVALUATORS} evaluators"
    )
    met = report(work, cost, at_most=SECONDS)
    return not (
        report(f"{work}: peak memory", cost.megabytes or 0.0, "MB", at_most=MEGABYTES) and met
    )


if __name__ == "__main__":
    sys.exit(main())
