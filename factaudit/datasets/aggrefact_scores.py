"""Scores on claims without their texts, one file for each evaluator: the n-th rows of all files are
the same claim.

The files are JSON ({dataset: [[label, score], ...]}, as there are on LLM-AggreFact's claims), or
CSV with the columns y_true and y_score. They must agree on data sets, rows and labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from factaudit.datasets.conversion import VERDICTS, Conversion
from factaudit.datasets.source_files import (
    BinaryLabel,
    Probability,
    SourceRow,
    describe_wrong_file,
    read_json,
    read_rows,
)
from factaudit.files import resolve_path
from factaudit.tables.schema import make_text_placeholder
from factaudit.text.display_text import format_count

#: Of each data set the label and the score of each row.
Pairs = Mapping[str, Sequence[tuple[int, float]]]


class _Row(SourceRow):
    y_true: BinaryLabel
    y_score: Probability


def convert_aggrefact_scores(sources: Sequence[Path]) -> Conversion:
    """One claim per row and data set, and one verdict per file."""
    files: list[Pairs] = []
    for path in sources:
        read: Pairs = read_json(path, dict[str, list[tuple[BinaryLabel, Probability]]])
        files.append({dataset: rows for dataset, rows in read.items() if rows})
        if not files[-1]:
            raise describe_wrong_file(path, "the file has no rows")
    return _convert_aligned_scores(sources, files)


def convert_score_csv(sources: Sequence[Path], *, dataset: str) -> Conversion:
    """One claim per row of ``dataset``, and one verdict per file."""
    read = [read_rows(path, _Row, is_counted=True) for path in sources]
    files = [{dataset: [(one.y_true, one.y_score) for one in rows]} for rows in read]
    return _convert_aligned_scores(sources, files)


def _convert_aligned_scores(paths: Sequence[Path], files: Sequence[Pairs]) -> Conversion:
    """Claims from the labels, and one verdict per file and claim.

    An evaluator is called as its file. Files of the same name in two folders get the folder's name
    too: ``MiniCheck (plain)`` and ``MiniCheck (sliding)``.
    """
    stems = [path.stem for path in paths]
    evaluators = [
        f"{stem} ({resolve_path(path).parent.name})" if stems.count(stem) > 1 else stem
        for stem, path in zip(stems, paths, strict=True)
    ]
    if len({*evaluators}) < len(evaluators):
        message = f"two files would be one evaluator, {max(evaluators, key=evaluators.count)!r}"
        raise describe_wrong_file(paths, f"{message}: rename one")
    for path, file in zip(paths, files, strict=True):
        _check_same_labels(path, file, paths[0], files[0])
    claims = []
    for dataset, rows in files[0].items():
        for at, (label, _) in enumerate(rows):
            said = [
                {"evaluator": name, "score": file[dataset][at][1]}
                for name, file in zip(evaluators, files, strict=True)
            ]
            claim = make_text_placeholder(dataset, at + 1)
            claims.append({"dataset": dataset, "claim": claim, "label": label, VERDICTS: said})
    note = f"{format_count(len(files), 'evaluator')}; no text, no systems"
    return Conversion.from_claims(", ".join(map(str, paths)), claims, [note])


def _check_same_labels(path: Path, file: Pairs, first_path: Path, first: Pairs) -> None:
    """Raise `InputError` where a file has other data sets, rows or labels than the first."""
    for dataset in sorted(file.keys() | first.keys()):
        wanted, found = ([label for label, _ in one.get(dataset, ())] for one in (first, file))
        if wanted != found:
            same = zip(wanted, found, strict=False)
            at = next((row for row, pair in enumerate(same, start=1) if len({*pair}) > 1), None)
            message = f"expected the {len(wanted):,} labels of {first_path.name}, found others"
            raise describe_wrong_file(path, f"{message} ({len(found):,})", at, dataset)
