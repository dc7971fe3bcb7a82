"""Two runs beside each other: what changed on the claims that both have, and whether a judge got worse."""

from factaudit.diff.compare import RunDiff, diff_runs

__all__ = ["RunDiff", "diff_runs"]
