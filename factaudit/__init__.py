"""factaudit: how far can a factuality metric be trusted?

>>> import factaudit
>>> claims = factaudit.read_claims("data/minibench/claims.jsonl.gz")  # doctest: +SKIP
>>> verdicts = factaudit.judge(claims, ["rouge2", "tfidf"])  # doctest: +SKIP
>>> results = factaudit.compare(claims, verdicts)  # doctest: +SKIP
>>> results.save("runs/mine")  # doctest: +SKIP
"""

from factaudit.datasets import convert
from factaudit.evaluators.judging import judge
from factaudit.experiment import run
from factaudit.results import Results, compare
from factaudit.tables import read_claims, read_verdicts, validate_claims, validate_verdicts, write_table
from factaudit.version import __version__

__all__ = [
    "Results",
    "__version__",
    "compare",
    "convert",
    "judge",
    "read_claims",
    "read_verdicts",
    "run",
    "validate_claims",
    "validate_verdicts",
    "write_table",
]
