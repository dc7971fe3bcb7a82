"""A hundred kills at random moments over judge, score, score --people, run and batches, with 30 % of the calls failing.

    python tests/benchmarks/bench_kills.py [--kills 100]

What is told, and must be 0: verdicts lost; replies paid for twice beyond those under way at the kills; dollars that
the server billed (at $1 a token) and the run folders do not tell; files that are not byte by byte those of an
undisturbed run; files that killed runs had begun and that are left.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from table import report

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from kills import COMMANDS, CONCURRENCY, Told, starter, trial


def under_way(row: Told) -> int:
    """At most so many replies were being made at the kills; a batch is sent once, and asked for."""
    return 0 if row.command == "batch" else CONCURRENCY * row.kills


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", nargs="*", default=COMMANDS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, starter(Path(folder) / "output.txt") as start:
        each = given.kills // len(given.commands)
        rows = [trial(command, each, Path(folder), start, given.seed) for command in given.commands]
    for row in rows:
        for name in sorted(set(row.different or ())):
            print(f"{row.command} differs: {name}")
    counts = {
        "verdicts lost": sum(row.lost for row in rows),
        "replies paid for twice beyond those under way": sum(max(0, row.twice - under_way(row)) for row in rows),
        "dollars billed beyond those told": sum(max(0, row.billed - row.told) for row in rows if row.told is not None),
        "files that differ from an undisturbed run's": sum(len(row.different or ()) for row in rows),
        "files left of killed runs": sum(row.left for row in rows),
    }
    kills = f"{sum(row.kills for row in rows)} kills of {', '.join(given.commands)}"
    met = [report(f"{kills}: {what}", number, "", at_most=0) for what, number in counts.items()]
    return not all(met)


if __name__ == "__main__":
    sys.exit(main())
