"""Describes a mapping in words."""

from __future__ import annotations

from collections.abc import Sequence

from factaudit.tables.column_mapping import SCORE_TRANSFORM_NAMES, ColumnMapping
from factaudit.tables.schema import CLAIM_COLUMNS, GRADE_COLUMN, VERDICT_COLUMNS


def list_placed_columns(mapping: ColumnMapping, own_names: Sequence[str] = ()) -> list[str]:
    """The role of each column: ``doc: context``, ``evaluator gpt4: gpt4_score``.

    own_names: columns that already have factaudit's names.
    """
    placed = [*own_names]
    for ours, theirs in mapping.columns.items():
        placed.append(f"{ours}: {theirs if isinstance(theirs, str) else ' / '.join(theirs)}")
    for name, one in mapping.evaluators.items():
        held = "" if one.columns == [name] else f": {' + '.join(one.columns)}"
        scale = "" if one.scale is None else f" ({_describe_scale(one.scale)})"
        placed.append(f"evaluator {name}{held}{scale}")
    return placed + [f"annotator {column}" for column in mapping.people]


def describe_mapping(
    mapping: ColumnMapping, own_names: Sequence[str], meanings: Sequence[str]
) -> list[str]:
    """Lines about the roles of columns, and about the meaning of words and numbers.

    meanings: of words, such as ``supported = 1``."""
    lines = []
    if placed := list_placed_columns(mapping, own_names):
        lines.append(f"columns   {', '.join(placed)}")
    limits = [f"{name} above {limit:g} = 1" for name, limit in mapping.threshold.items()]
    meant = [*meanings, *limits]
    if meant:
        lines.append(f"labels    {', '.join(dict.fromkeys(meant))}")
    alone = {name: scale for name, scale in mapping.scale.items() if name not in mapping.evaluators}
    if alone:
        lines.append(
            "scales   "
            f" {', '.join(f'{name} ({_describe_scale(scale)})' for name, scale in alone.items())}"
        )
    if mapping.people or "annotator" in mapping.columns:
        who = ", ".join(mapping.people) or f"named in {mapping.columns.get('annotator')}"
        rule = (
            "the labels are those of the label column (to use theirs: --label-rule majority)"
            if mapping.people and "label" in mapping.columns
            else "the labels are those of the majority (another rule: --label-rule"
            " any_unattributable)"
        )
        lines.append(f"people    {who}; {rule}")
    return lines


def describe_roles(mapping: ColumnMapping, columns: Sequence[str]) -> dict[str, str]:
    """The role of each column of a table; ``ignored`` if it has none."""
    own = (*CLAIM_COLUMNS, *VERDICT_COLUMNS, GRADE_COLUMN, "annotator")
    found = {name: name for name in columns if name in own and name not in mapping.ignore}
    for ours, theirs in mapping.columns.items():
        found |= dict.fromkeys([theirs] if isinstance(theirs, str) else theirs, ours)
    for name, one in mapping.evaluators.items():
        found |= dict.fromkeys(one.columns, f"evaluator {name}")
    found |= dict.fromkeys(mapping.people, "annotator")
    return {name: found.get(name, "ignored") for name in columns}


def _describe_scale(scale: tuple[float, float] | str) -> str:
    if isinstance(scale, str):
        return SCORE_TRANSFORM_NAMES[scale]
    return f"{scale[0]:g} not supported, {scale[1]:g} supported"
