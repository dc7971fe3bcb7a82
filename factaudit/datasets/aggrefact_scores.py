"""Scores on claims without their texts, one file for each evaluator: the n-th rows of all files are the same claim.

The files are JSON ({dataset: [[label, score], ...]}, as there are on LLM-AggreFact's claims), or CSV with the columns
y_true and y_score. They must agree on data sets, rows and labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from factaudit.datasets.aggrefact_subsets import find_dataset_task
from factaudit.datasets.source_files import (
    BinaryLabel,
    Conversion,
    DatasetSourceRow,
    NamesOption,
    Probability,
    expand_dataset_source_folders,
    read_dataset_source_json,
    read_dataset_source_rows,
)
from factaudit.errors import InputError, Problem, UsageError
from factaudit.files import resolve_path
from factaudit.tables import validate_claims, validate_verdicts
from factaudit.tables.schema import make_text_placeholder
from factaudit.text.display_text import format_count

#: Of each data set the labels and scores of its rows: arrays (n, 2).
Pairs = Mapping[str, np.ndarray]


class LabelScoreRow(DatasetSourceRow):
    y_true: BinaryLabel
    y_score: Probability


def convert_aggrefact_scores(sources: Sequence[Path], *, name: NamesOption = ()) -> Conversion:
    """One claim per row and dataset, one verdict per file; the evaluators are named after the files, or ``name``."""
    paths = list(expand_dataset_source_folders(sources, "*.json"))
    files = []
    for path in paths:
        read: dict[str, list[tuple[int, float]]] = read_dataset_source_json(
            path, dict[str, list[tuple[BinaryLabel, Probability]]]
        )
        files.append({dataset: np.array(rows, dtype=np.float64) for dataset, rows in read.items() if rows})
        if not files[-1]:
            raise InputError(str(path), [Problem("the file has no rows")])
    return _convert_aligned_scores(paths, files, name, None)


def convert_score_csv(sources: Sequence[Path], *, dataset: str, name: NamesOption = ()) -> Conversion:
    """One claim per row of ``dataset``, and one verdict per file.

    The evaluators are named after the files, or ``name``; files of the same name in two folders get the folder's name
    too: ``MiniCheck (plain)`` and ``MiniCheck (sliding)``.
    """
    paths = list(expand_dataset_source_folders(sources, "*.csv"))
    rows = [read_dataset_source_rows(path, LabelScoreRow, is_counted=True) for path in paths]
    files = [{dataset: np.array([(one.y_true, one.y_score) for one in own])} for own in rows]
    return _convert_aligned_scores(paths, files, name, "y_true")


def _convert_aligned_scores(
    paths: Sequence[Path], files: Sequence[Pairs], names: Sequence[str], label_column: str | None
) -> Conversion:
    """Claims from the labels, and one verdict per file and claim. label_column: what a message calls the labels, where
    it is not the data set."""
    evaluators = _name_evaluators(paths, names)
    for path, file in zip(paths[1:], files[1:], strict=True):
        _check_is_aligned(path, file, paths[0].name, files[0], label_column)
    sizes = {dataset: len(rows) for dataset, rows in files[0].items()}
    source = ", ".join(map(str, paths))
    claims = pd.DataFrame(
        [
            {"dataset": name, "task": find_dataset_task(name), "claim": make_text_placeholder(name, at), "label": label}
            for name, rows in files[0].items()
            for at, label in enumerate(rows[:, 0], start=1)
        ]
    )
    claims = validate_claims(claims, source=source)
    verdicts = pd.DataFrame(
        {
            "claim_id": np.tile(claims["claim_id"].to_numpy(), len(files)),
            "evaluator": np.repeat(evaluators, len(claims)),
            "score": np.concatenate([file[dataset][:, 1] for file in files for dataset in sizes]),
        }
    )
    note = (
        f"{format_count(len(claims), 'claim')} of {format_count(len(sizes), 'dataset')}, "
        f"{format_count(len(files), 'evaluator')}; no text, no systems"
    )
    return Conversion(claims, validate_verdicts(verdicts, claims=claims, source=source), [note])


def _name_evaluators(paths: Sequence[Path], names: Sequence[str]) -> list[str]:
    """The evaluators' names: those given, else the files' names, with the folder's where two files share one."""
    if names and len(names) != len(paths):
        raise UsageError(
            f"option 'name': expected {format_count(len(paths), 'name')}, one per file, found {len(names)}"
        )
    shared = Counter(path.stem for path in paths)
    found = list(names) or [
        f"{path.stem} ({resolve_path(path).parent.name})" if shared[path.stem] > 1 else path.stem for path in paths
    ]
    twice = [name for name, number in Counter(found).items() if number > 1]
    if twice:
        raise UsageError(f"two files would be evaluator {twice[0]!r}; give each a name (option name)")
    return found


def _check_is_aligned(path: Path, file: Pairs, first_name: str, first: Pairs, label_column: str | None) -> None:
    problems = []
    for dataset in sorted(file.keys() | first.keys()):
        if dataset not in file:
            problems.append(Problem(f"expected the dataset {dataset!r}, as in {first_name}"))
        elif dataset not in first:
            problems.append(Problem(f"the dataset {dataset!r} is not in {first_name}"))
        elif len(file[dataset]) != len(first[dataset]):
            message = f"expected {format_count(len(first[dataset]), 'row')}, as in {first_name}, found"
            problems.append(Problem(f"{message} {len(file[dataset]):,}", column=None if label_column else dataset))
        else:
            wanted, found = (one[dataset][:, 0].astype(int) for one in (first, file))
            problems += [
                Problem(
                    f"expected the label {wanted[at]}, as in {first_name}, found {found[at]}",
                    int(at) + 1,
                    label_column or dataset,
                )
                for at in np.flatnonzero(wanted != found)
            ]
    if problems:
        raise InputError(str(path), problems)
