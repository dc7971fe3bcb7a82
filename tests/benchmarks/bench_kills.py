"""A hundred kills at random moments over judge, score, dscore, run and batches, with 30 % of the calls failing.

    python tests/benchmarks/bench_kills.py --kills 100

The table says, by command: kills; runs that were let end after up to five kills each; requests sent; verdicts lost;
replies paid for twice, and at most how many can have been under way at the kills; US dollars billed by the server and
told by the run folders (at a price of $1 a token); files that are not byte by byte those of an undisturbed run; files
that killed runs had begun and that are left.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from kills import COMMANDS, starter, table, trial


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", nargs="*", default=COMMANDS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, starter(Path(folder) / "output.txt") as start:
        rows = []
        for command in given.commands:
            rows.append(trial(command, given.kills // len(given.commands), Path(folder), start, given.seed))
            print(*table(rows).splitlines()[0 if len(rows) == 1 else -1 :], sep="\n", flush=True)
            for name in sorted(set(rows[-1].different or ())):
                print(f"    differs: {name}")
    return int(any(row.different or row.lost or row.left for row in rows))


if __name__ == "__main__":
    sys.exit(main())
