"""factaudit: how far can a factuality metric be trusted?

>>> import factaudit
>>> claims = factaudit.read_claims("data/minibench/claims.jsonl.gz")  # doctest: +SKIP
>>> verdicts = factaudit.judge(claims, ["rouge2", "tfidf"])  # doctest: +SKIP
>>> results = factaudit.compare(claims, verdicts)  # doctest: +SKIP
>>> results.save("runs/mine")  # doctest: +SKIP

Importing the package reads nothing else: each name is imported when it is first used (PEP 562).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from factaudit.version import __version__

if TYPE_CHECKING:
    from factaudit.arrays.judgements import Judgements
    from factaudit.datasets import convert
    from factaudit.datasets.python_input import read_python_input_claims as read_claims
    from factaudit.datasets.python_input import read_python_input_verdicts as read_verdicts
    from factaudit.errors import FactauditError, InputError, UsageError
    from factaudit.estimate.rates import estimate_rates
    from factaudit.estimate.sample import read_sample
    from factaudit.evaluators.base import Claim, Evaluator, Verdict, evaluator
    from factaudit.evaluators.judging import judge
    from factaudit.experiment.run import run
    from factaudit.llm.settings import LLM
    from factaudit.results import Results, compare, compare_counts
    from factaudit.tables import validate_claims, validate_verdicts, write_table
    from factaudit.tables.annotations import read_annotations

__all__ = [
    "LLM",
    "Claim",
    "Evaluator",
    "FactauditError",
    "InputError",
    "Judgements",
    "Results",
    "UsageError",
    "Verdict",
    "__version__",
    "compare",
    "compare_counts",
    "convert",
    "estimate_rates",
    "evaluator",
    "judge",
    "read_annotations",
    "read_claims",
    "read_sample",
    "read_verdicts",
    "run",
    "validate_claims",
    "validate_verdicts",
    "write_table",
]

_MODULES = {
    "LLM": "factaudit.llm.settings",
    "Claim": "factaudit.evaluators.base",
    "Evaluator": "factaudit.evaluators.base",
    "FactauditError": "factaudit.errors",
    "InputError": "factaudit.errors",
    "Judgements": "factaudit.arrays.judgements",
    "Results": "factaudit.results",
    "UsageError": "factaudit.errors",
    "Verdict": "factaudit.evaluators.base",
    "compare": "factaudit.results",
    "compare_counts": "factaudit.results",
    "convert": "factaudit.datasets",
    "estimate_rates": "factaudit.estimate.rates",
    "evaluator": "factaudit.evaluators.base",
    "judge": "factaudit.evaluators.judging",
    "read_annotations": "factaudit.tables.annotations",
    "read_claims": "factaudit.datasets.python_input",
    "read_sample": "factaudit.estimate.sample",
    "read_verdicts": "factaudit.datasets.python_input",
    "run": "factaudit.experiment.run",
    "validate_claims": "factaudit.tables",
    "validate_verdicts": "factaudit.tables",
    "write_table": "factaudit.tables",
}

#: The names inside their modules; the short names belong to functions of `factaudit.tables`.
_LONGER_NAMES = {
    "read_claims": "read_python_input_claims",
    "read_verdicts": "read_python_input_verdicts",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'factaudit' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), _LONGER_NAMES.get(name, name))
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
