"""The datasets of LLM-AggreFact (Tang et al. 2024, MiniCheck): their names, and the task of each.

``aggrefact_subsets.csv`` has a row for each of the benchmark's 11 datasets, for each of RAGTruth's
four sources, and for each of its three tasks (for files that do not say the source). ``in_vc``
marks the 14 subsets of VC's Table 2, the source of ``task``, ``claim_source`` and
``longer_responses``; ``systems_source`` names the public documentation of the systems. An empty
cell is unknown, not "none". ``test_claims`` counts LLM-AggreFact's test split of August 2024
(29,320 claims).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files


@dataclass(frozen=True)
class AggreFactSubset:
    """What the converters need of a row of ``aggrefact_subsets.csv``.

    ``part_of``: the LLM-AggreFact dataset of which this is a part. ``task``: None where it is
    unknown, or mixed (as that of RAGTruth as a whole).
    """

    dataset: str
    part_of: str | None
    task: str | None


def find_aggrefact_subset(dataset: str) -> AggreFactSubset | None:
    """The subset of that name or alias, in any case; None where there is none.

    >>> find_aggrefact_subset("TofuEval-MediaS").dataset
    'TofuEval-MediaSum'
    """
    return _index_aggrefact_subsets().get(dataset.casefold())


def find_whole_aggrefact_dataset(dataset: str) -> str:
    """The LLM-AggreFact dataset that ``dataset`` is or is a part of; an unknown name stays as it
    is.

    >>> [find_whole_aggrefact_dataset(name) for name in ("RAGTruth-QA", "Lfqa", "mine")]
    ['RAGTruth', 'LFQA', 'mine']
    """
    subset = find_aggrefact_subset(dataset)
    return dataset if subset is None else subset.part_of or subset.dataset


def find_dataset_task(dataset: str) -> str | None:
    """The task of a dataset, None where it is unknown or mixed."""
    subset = find_aggrefact_subset(dataset)
    return None if subset is None else subset.task


@lru_cache(maxsize=1)
def _index_aggrefact_subsets() -> dict[str, AggreFactSubset]:
    """The subsets by their names and aliases, casefolded."""
    text = files("factaudit.datasets").joinpath("aggrefact_subsets.csv").read_text(encoding="utf-8")
    return {
        name.casefold(): AggreFactSubset(
            row["dataset"], row["part_of"] or None, row["task"] or None
        )
        for row in csv.DictReader(text.splitlines())
        for name in (row["dataset"], *filter(None, row["aliases"].split(";")))
    }
