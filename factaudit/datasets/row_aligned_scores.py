"""Row-aligned files of labels and scores, one file per evaluator and no text: the n-th rows are the same claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from factaudit.datasets.aggrefact_subsets import find_dataset_task
from factaudit.datasets.source_files import Conversion
from factaudit.errors import InputError, Problem, UsageError
from factaudit.files import resolve_path
from factaudit.tables import validate_claims, validate_verdicts
from factaudit.tables.schema import make_text_placeholder
from factaudit.text.display_text import format_count


@dataclass(frozen=True)
class RowAlignedScores:
    """One file: by dataset, its labels (int, 1 or 0) and scores (float in [0, 1]), row by row.

    label_column: what a message calls the labels; None where the dataset's name says it.
    """

    path: Path
    labels: dict[str, np.ndarray]
    scores: dict[str, np.ndarray]
    label_column: str | None = None


def name_row_aligned_evaluators(paths: Sequence[Path], evaluator_names: Sequence[str]) -> list[str]:
    """The evaluators' names: those given, else the files' names, with the folder's where two files share one."""
    if evaluator_names and len(evaluator_names) != len(paths):
        raise UsageError(
            f"option 'name': expected {format_count(len(paths), 'name')}, one per file, found {len(evaluator_names)}"
        )
    stems = [path.stem for path in paths]
    shared = Counter(stems)
    found = list(evaluator_names) or [
        f"{stem} ({resolve_path(path).parent.name})" if shared[stem] > 1 else stem
        for stem, path in zip(stems, paths, strict=True)
    ]
    twice = [name for name, number in Counter(found).items() if number > 1]
    if twice:
        raise UsageError(f"two files would be evaluator {twice[0]!r}; give each a name (option name)")
    return found


def convert_row_aligned_scores(
    score_files: Sequence[RowAlignedScores], evaluators: Sequence[str], source: str
) -> Conversion:
    """Claims from the labels, on which all files must agree, and one verdict per file and claim."""
    first = score_files[0]
    for other in score_files[1:]:
        _check_row_aligned_labels(first, other)
    sizes = {dataset: len(labels) for dataset, labels in first.labels.items()}
    claims = validate_claims(
        pd.DataFrame(
            {
                "dataset": np.repeat(list(sizes), list(sizes.values())),
                "task": np.repeat([find_dataset_task(name) for name in sizes], list(sizes.values())),
                "claim": [
                    make_text_placeholder(name, row) for name, size in sizes.items() for row in range(1, size + 1)
                ],
                "label": np.concatenate(list(first.labels.values())),
            }
        ),
        source=source,
    )
    verdicts = pd.DataFrame(
        {
            "claim_id": np.tile(claims["claim_id"].to_numpy(), len(score_files)),
            "evaluator": np.repeat(list(evaluators), len(claims)),
            "score": np.concatenate([file.scores[dataset] for file in score_files for dataset in sizes]),
        }
    )
    notes = [
        f"{format_count(len(claims), 'claim')} of {format_count(len(sizes), 'dataset')}, "
        f"{format_count(len(score_files), 'evaluator')}; no text, no systems"
    ]
    return Conversion(claims, validate_verdicts(verdicts, claims=claims, source=source), notes)


def _check_row_aligned_labels(first_file: RowAlignedScores, other_file: RowAlignedScores) -> None:
    problems = []
    for dataset in first_file.labels.keys() | other_file.labels.keys():
        if dataset not in other_file.labels:
            problems.append(Problem(f"expected the dataset {dataset!r}, as in {first_file.path.name}"))
        elif dataset not in first_file.labels:
            problems.append(Problem(f"the dataset {dataset!r} is not in {first_file.path.name}"))
        elif len(first_file.labels[dataset]) != len(other_file.labels[dataset]):
            expected, found = len(first_file.labels[dataset]), len(other_file.labels[dataset])
            message = f"expected {format_count(expected, 'row')}, as in {first_file.path.name}, found {found:,}"
            problems.append(Problem(message, column=None if other_file.label_column else dataset))
        else:
            wanted, got = first_file.labels[dataset], other_file.labels[dataset]
            problems += [
                Problem(
                    f"expected the label {wanted[row]}, as in {first_file.path.name}, found {got[row]}",
                    int(row) + 1,
                    other_file.label_column or dataset,
                )
                for row in np.flatnonzero(wanted != got)
            ]
    if problems:
        raise InputError(
            str(other_file.path), sorted(problems, key=lambda problem: (problem.column or "", problem.row or 0))
        )
