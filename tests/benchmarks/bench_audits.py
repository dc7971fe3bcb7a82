"""What audits, runs and reports take: 10,000 to 1,000,000 claims x 5 evaluators, the shipped runs, start-up.

Each line is of processes of their own, from the files on; CPU is of all that they start, peak memory of the largest.
Reading and three audits without intervals are timed within theirs.

    python tests/benchmarks/bench_audits.py [--claims 10000 100000 1000000] [--words 60] [--each]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from table import Cost, clocked, report, spawned

if TYPE_CHECKING:
    import pandas as pd

    from factaudit.arrays.judgements import Judgements

EVALUATORS, PARTS = 5, ("rates", "consistency", "quantification")
#: A run of all audits with its report: seconds of the CPU and MB, at 1,000,000 claims.
SECONDS, MEGABYTES = 60, 1500
FACTAUDIT = ("-m", "factaudit")


def make(n: int, folder: Path, length: int) -> None:
    """10 datasets, 6 systems, 5 claims in a response, a document of so many words for 30 claims, 2 % unscored."""
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    from factaudit.tables import validate_claims, validate_verdicts, write_table
    from factaudit.tables.documents import DocumentColumnBuilder

    random = np.random.default_rng(0)
    at = np.arange(n)
    words = np.array([f"word{i}" for i in range(2000)])
    documents = DocumentColumnBuilder()
    # Some at a time: as a text for each claim, long ones of a million claims do not fit in memory.
    for first in range(0, n // 30 + 1, 1000):
        ends = range(first, min(first + 1000, n // 30 + 1))
        texts = pa.array([" ".join(words[random.integers(0, 2000, length)]) for _ in ends], pa.large_string())
        own = pa.array(at[first * 30 : ends.stop * 30] // 30 - first, pa.int32())
        documents.add(pa.DictionaryArray.from_arrays(own, texts))
    label = (random.random(n) < 0.7).astype(int)
    claims = pd.DataFrame(
        {
            "claim_id": [f"claim-{i:07}" for i in at],
            "dataset": np.array([f"dataset-{i}" for i in range(10)], dtype=object)[at * 10 // n],
            "system": np.array([f"system-{i}" for i in range(6)], dtype=object)[at // 5 % 6],
            "response_id": (at // 30).astype(str),
            "doc_id": (at // 30).astype(str),
            "claim": [f"{words[i % 2000]} is {words[i * 7 % 2000]}" for i in at],
            "doc": documents.build_column(),
            "label": label,
        }
    )
    write_table(validate_claims(claims), folder / "claims.parquet")
    for number in range(EVALUATORS):
        score = np.clip(random.normal(0.3 + 0.4 * label, 0.25), 0, 1)
        unscored = random.random(n) < 0.02
        verdicts = pd.DataFrame(
            {
                "claim_id": claims["claim_id"],
                "evaluator": f"evaluator-{number}",
                "score": np.where(unscored, np.nan, score),
                "status": np.where(unscored, "unparsed", "ok"),
            }
        )
        write_table(validate_verdicts(verdicts), folder / f"verdicts-{number}.parquet")


def load(folder: Path) -> Judgements:
    from factaudit.arrays.judgements import Judgements
    from factaudit.tables import read_claims, read_verdicts

    claims = read_claims(folder / "claims.parquet")
    return Judgements.join(claims, read_verdicts(*sorted(folder.glob("verdicts-*.parquet")), claims=claims))


def merge(folder: Path) -> pd.DataFrame:
    """The same by pandas, which checks nothing."""
    import pandas as pd

    verdicts = pd.concat(map(pd.read_parquet, sorted(folder.glob("verdicts-*.parquet"))))
    scores = verdicts.pivot(index="claim_id", columns="evaluator", values="score")
    return pd.read_parquet(folder / "claims.parquet").merge(scores, on="claim_id")


def step(name: str, folder: Path) -> Cost:
    """Reading and joining, by us or by pandas, or an audit of what was read."""
    from factaudit.arrays.judgements import Judgements
    from factaudit.audit import list_computable_audits

    if name in ("load", "merge"):
        return clocked(partial({"load": load, "merge": merge}[name], folder), 3)
    judged = load(folder)
    # A new Judged each time: it keeps what audits have in common (the responses, say), and that is work too.
    parts = (judged.claims, judged.evaluators, judged.label, judged.prediction, judged.score, judged.status)
    return clocked(lambda: list_computable_audits()[name].compute(Judgements(*parts)), 5)


def each(n: int, folder: Path) -> None:
    """A line for every audit with 2,000 replicates, one after the other in one process, as a run computes them."""
    from factaudit.audit import list_computable_audits
    from factaudit.stats.cluster_bootstrap import ClusterBootstrap

    judged = load(folder)
    for name, audit in list_computable_audits().items():
        if audit.applies is None or audit.applies(judged):
            cost = clocked(partial(audit.compute, judged, intervals=ClusterBootstrap(2000)))
            report(f"`{name}`, {n:,} claims × {EVALUATORS} evaluators", cost)


def stepped(name: str, folder: Path) -> Cost:
    """A step in a process of its own."""
    return Cost(**json.loads(spawned(__file__, "--step", name, "--folder", folder).result))


def tables(sizes: list[int], words: int) -> Iterator[bool]:
    """Lines of growth: each part, and everything by the command; and of a run in which nothing has changed."""
    found: dict[str, dict[int, Cost]] = {}
    for n in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            spawned(__file__, "--step", "make", "--folder", folder, "--claims", str(n), "--words", str(words))
            for part in ("load", "merge", *PARTS):
                found.setdefault(part, {})[n] = stepped(part, folder)
            audit = (*FACTAUDIT, "audit", folder / "claims.parquet", *sorted(folder.glob("verdicts-*.parquet")))
            for times in ("audit", "again"):
                found.setdefault(times, {})[n] = spawned(*audit, "--out", folder / "run")
    of = f"{{:,}} claims × {EVALUATORS} evaluators".format
    merged = ("pandas, merge unchecked", found["merge"][n])
    yield report(f"read, check and join, {of(n)}", found["load"][n], peer=merged, growth=found["load"])
    for part in PARTS:
        yield report(f"`{part}` without intervals, {of(n)}", found[part][n], growth=found[part])
    every = f"`factaudit audit`: all audits, 2,000 replicates, the report; {of(n)}, documents of {words} words"
    yield report(every, found["audit"][n], at_most=SECONDS, growth=found["audit"])
    memory = {size: cost.megabytes or 0.0 for size, cost in found["audit"].items()}
    yield report(f"{every}: peak memory", memory[n], "MB", at_most=MEGABYTES, growth=memory)
    for size, limit in ((sizes[0], 2), (n, None)):
        yield report(f"the same with nothing changed, {of(size)}", found["again"][size], at_most=limit)


def shipped() -> Iterator[bool]:
    """What `make audit` runs, the size of the quickstart's report, and start-up."""
    with tempfile.TemporaryDirectory() as name:
        demo = (*FACTAUDIT, "demo", "--out", f"{name}/demo")
        yield report("`make audit`, after set-up", spawned(*demo), at_most=8)
        yield report("`make audit` with nothing changed", spawned(*demo))
        spawned(*FACTAUDIT, "run", "experiments/quickstart.yaml", "--out", f"{name}/quickstart")
        size = Path(name, "quickstart", "report.html").stat().st_size / 1e6
        yield report("report.html of the quickstart", size, "MB", at_most=1)
    bare = spawned("-c", "pass", runs=5)
    for work, command, limit in (
        ("`factaudit --help`", (*FACTAUDIT, "--help"), 0.25),
        ("`import factaudit`", ("-c", "import factaudit"), 0.1),
    ):
        yield report(work, spawned(*command, runs=5), peer=("Python alone", bare), at_most=limit)


def many(systems: int = 200, evaluators: int = 20) -> Iterator[bool]:
    """The report of results with a row of every system and evaluator."""
    with tempfile.TemporaryDirectory() as name:
        spawned(__file__, "--step", "results", "--folder", name, "--claims", str(systems), str(evaluators))
        cost = spawned(__file__, "--step", "render", "--folder", name)
        size = Path(name, "report.html").stat().st_size / 1e6
    work = f"the report of {systems} systems × {evaluators} evaluators"
    yield report(work, cost, at_most=60)
    yield report(f"{work}: report.html", size, "MB")


def results(folder: Path, systems: int, evaluators: int) -> None:
    """Rows of all audits but of pairs of systems, of which there would be 400,000."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from report_results import make_results

    names = tuple(f"evaluator-{at}" for at in range(evaluators)), tuple(f"system-{at}" for at in range(systems))
    made = make_results(1, evaluators, systems, evaluators=names[0], systems=names[1])
    del made["audits"]["ranking_pairs"]
    (folder / "results.json").write_text(json.dumps(made), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--claims", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--words", type=int, default=60, help="in a document, of which 30 claims are (default 60)")
    parser.add_argument("--each", action="store_true", help="a line for each audit at the most claims, and no others")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step == "make":
        make(args.claims[0], args.folder, args.words)
    elif args.step == "results":
        results(args.folder, *args.claims)
    elif args.step == "render":
        from factaudit.report.rendering import render_report

        render_report(args.folder)
    elif args.each:
        with tempfile.TemporaryDirectory() as folder:
            make(max(args.claims), Path(folder), args.words)
            each(max(args.claims), Path(folder))
    elif args.step:
        cost = step(args.step, args.folder)
        print(json.dumps({"cpu": cost.cpu, "wall": cost.wall}))
    else:
        return not all([*shipped(), *many(), *tables(sorted(args.claims), args.words)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
