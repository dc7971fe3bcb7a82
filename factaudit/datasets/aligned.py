"""Row-aligned files of labels and scores, one file per evaluator and no text: the n-th rows are the same claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from factaudit.datasets import registry
from factaudit.datasets.sources import Conversion, no_text
from factaudit.errors import InputError, Problem, UsageError
from factaudit.tables import validate_claims, validate_verdicts
from factaudit.text.printable import count


@dataclass(frozen=True)
class Scores:
    """One file: by dataset, its labels (int, 1 or 0) and scores (float in [0, 1]), row by row.

    label_column: what a message calls the labels; None where the dataset's name says it.
    """

    path: Path
    labels: dict[str, np.ndarray]
    scores: dict[str, np.ndarray]
    label_column: str | None = None


def names(paths: Sequence[Path], given: Sequence[str]) -> list[str]:
    """The evaluators' names: those given, else the files' names, with the folder's where two files share one."""
    if given and len(given) != len(paths):
        raise UsageError(f"option 'name': expected {count(len(paths), 'name')}, one per file, found {len(given)}")
    stems = [path.stem for path in paths]
    shared = Counter(stems)
    found = list(given) or [
        f"{stem} ({path.resolve().parent.name})" if shared[stem] > 1 else stem
        for stem, path in zip(stems, paths, strict=True)
    ]
    twice = [name for name, number in Counter(found).items() if number > 1]
    if twice:
        raise UsageError(f"two files would be evaluator {twice[0]!r}; give each a name (option name)")
    return found


def align(files: Sequence[Scores], evaluators: Sequence[str], source: str) -> Conversion:
    """Claims from the labels, on which all files must agree, and one verdict per file and claim."""
    first = files[0]
    for other in files[1:]:
        _compare(first, other)
    sizes = {dataset: len(labels) for dataset, labels in first.labels.items()}
    claims = validate_claims(
        pd.DataFrame(
            {
                "dataset": np.repeat(list(sizes), list(sizes.values())),
                "task": np.repeat([registry.task(name) for name in sizes], list(sizes.values())),
                "claim": [no_text(name, row) for name, size in sizes.items() for row in range(1, size + 1)],
                "label": np.concatenate(list(first.labels.values())),
            }
        ),
        source=source,
    )
    verdicts = pd.DataFrame(
        {
            "claim_id": np.tile(claims["claim_id"].to_numpy(), len(files)),
            "evaluator": np.repeat(list(evaluators), len(claims)),
            "score": np.concatenate([file.scores[dataset] for file in files for dataset in sizes]),
        }
    )
    notes = [
        f"{count(len(claims), 'claim')} of {count(len(sizes), 'dataset')}, {count(len(files), 'evaluator')}; "
        "no text, no systems"
    ]
    return Conversion(claims, validate_verdicts(verdicts, claims=claims, source=source), notes)


def _compare(first: Scores, other: Scores) -> None:
    problems = []
    for dataset in first.labels.keys() | other.labels.keys():
        if dataset not in other.labels:
            problems.append(Problem(f"expected the dataset {dataset!r}, as in {first.path.name}"))
        elif dataset not in first.labels:
            problems.append(Problem(f"the dataset {dataset!r} is not in {first.path.name}"))
        elif len(first.labels[dataset]) != len(other.labels[dataset]):
            expected, found = len(first.labels[dataset]), len(other.labels[dataset])
            message = f"expected {count(expected, 'row')}, as in {first.path.name}, found {found:,}"
            problems.append(Problem(message, column=None if other.label_column else dataset))
        else:
            wanted, got = first.labels[dataset], other.labels[dataset]
            problems += [
                Problem(
                    f"expected the label {wanted[row]}, as in {first.path.name}, found {got[row]}",
                    int(row) + 1,
                    other.label_column or dataset,
                )
                for row in np.flatnonzero(wanted != got)
            ]
    if problems:
        raise InputError(
            str(other.path), sorted(problems, key=lambda problem: (problem.column or "", problem.row or 0))
        )
