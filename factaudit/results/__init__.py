"""What do audits find? `compare` computes them; `Results` holds their rows, findings and
decisions."""

from factaudit.audit.core.result_rows import Row
from factaudit.results.compute import compare
from factaudit.results.published_counts import compare_counts
from factaudit.results.results import Results

__all__ = ["Results", "Row", "compare", "compare_counts"]
