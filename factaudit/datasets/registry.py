"""What is known of LLM-AggreFact's datasets (Tang et al. 2024, MiniCheck): task, who wrote the claims, the systems.

``registry.csv`` has a row for each of the benchmark's 11 datasets, for each of RAGTruth's four sources, and for each of
its three tasks (for files that do not say the source). ``in_vc`` marks the 14 subsets of VC's Table 2, which is where
``task``, ``claim_source`` and ``longer_responses`` are from; the systems rest on the public documentation that
``systems_source`` names. An empty cell is unknown, not "none". ``test_claims`` counts LLM-AggreFact's test split of
August 2024 (29,320 claims).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files


@dataclass(frozen=True)
class Subset:
    """One row of ``registry.csv``; None and ``()`` where the cell is empty, that is, unknown.

    ``part_of``: the LLM-AggreFact dataset of which this is a part. ``label`` is the name for tables and figures.
    ``claim_source``: who wrote the claims, as VC's Table 2 says it. ``longer_responses``: the claims are parts
    (sentences, facts) of longer responses, so that there is a response level. ``systems``: their names in the claims
    table, empty where the claims cannot be told apart by system (WiCE: people wrote them; FactCheck-GPT: one system).
    """

    dataset: str
    aliases: tuple[str, ...]
    part_of: str | None
    label: str
    in_vc: bool
    task: str | None
    claim_source: tuple[str, ...]
    longer_responses: bool | None
    systems: tuple[str, ...]
    systems_source: str | None
    test_claims: int | None
    source: str


@lru_cache(maxsize=1)
def subsets() -> dict[str, Subset]:
    """All subsets by name, in the order of LLM-AggreFact's files."""
    text = files("factaudit.datasets").joinpath("registry.csv").read_text(encoding="utf-8")
    return {row["dataset"]: _subset(row) for row in csv.DictReader(text.splitlines())}


def find(dataset: str) -> Subset | None:
    """The subset of that name or alias, whatever its case; None where the registry has none.

    >>> find("TofuEval-MediaS").label
    'TofuEval MediaSum'
    """
    return _names().get(dataset.casefold())


def whole(dataset: str) -> str:
    """The registry's name of the LLM-AggreFact dataset that ``dataset`` is (a part of); itself where it is not there.

    >>> whole("RAGTruth-QA"), whole("Lfqa"), whole("mine")
    ('RAGTruth', 'LFQA', 'mine')
    """
    subset = find(dataset)
    return dataset if subset is None else subset.part_of or subset.dataset


def task(dataset: str) -> str | None:
    """The task group of a dataset, None where it is unknown (or mixed, as RAGTruth's as a whole)."""
    subset = find(dataset)
    return None if subset is None else subset.task


@lru_cache(maxsize=1)
def _names() -> dict[str, Subset]:
    return {name.casefold(): subset for subset in subsets().values() for name in (subset.dataset, *subset.aliases)}


def _subset(row: dict[str, str]) -> Subset:
    return Subset(
        dataset=row["dataset"],
        aliases=_listed(row["aliases"]),
        part_of=row["part_of"] or None,
        label=row["label"],
        in_vc=row["in_vc"] == "yes",
        task=row["task"] or None,
        claim_source=_listed(row["claim_source"]),
        longer_responses={"yes": True, "no": False}.get(row["longer_responses"]),
        systems=_listed(row["systems"]),
        systems_source=row["systems_source"] or None,
        test_claims=int(row["test_claims"]) if row["test_claims"] else None,
        source=row["source"],
    )


def _listed(cell: str) -> tuple[str, ...]:
    return tuple(filter(None, cell.split(";")))
