"""What changed between two runs on the claims that both have, and did a judge get worse?"""

from factaudit.diff.compare import RunDiff, diff_runs

__all__ = ["RunDiff", "diff_runs"]
