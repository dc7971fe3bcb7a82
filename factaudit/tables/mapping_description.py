"""A mapping in lines for people: what was taken for what."""

from __future__ import annotations

from collections.abc import Sequence

from factaudit.tables.column_mapping import SCORE_TRANSFORM_NAMES, ColumnMapping, EvaluatorColumnMapping


def describe_mapping(mapping: ColumnMapping, own_names: Sequence[str] = ()) -> list[str]:
    """What was taken for what, in lines. own_names: columns that have our names already."""
    lines = []
    named = {ours: [names] if isinstance(names, str) else names for ours, names in mapping.columns.items()}
    told = [*own_names, *(f"{' / '.join(names)} → {ours}" for ours, names in named.items())]
    if told:
        lines.append("columns  " + ", ".join(told))
    labels = mapping.columns.get("label", "label")
    own = {*mapping.evaluators, *([labels] if isinstance(labels, str) else labels)}
    evaluators = [_describe_evaluator_mapping(name, one, mapping) for name, one in mapping.evaluators.items()]
    evaluators += [f"{name} ({_describe_scale(one)})" for name, one in mapping.scale.items() if name not in own]
    if evaluators:
        lines.append("evaluators  " + ", ".join(evaluators))
    words = [mapping.labels, *mapping.words.values()]
    meant = [
        f"{word or 'blank'} = {'nothing' if value is None else value}" for one in words for word, value in one.items()
    ]
    graded = [
        name
        for name in mapping.threshold
        if name in (*own, *mapping.annotators.values()) and name not in mapping.evaluators
    ]
    meant += [f"{name} above {mapping.threshold[name]:g} = 1" for name in graded]
    if meant:
        lines.append("labels  " + ", ".join(dict.fromkeys(meant)))
    people = [*mapping.annotators, *mapping.people_evaluators]
    if people or "annotator" in mapping.columns:
        who = f"{', '.join(people)} are people" if people else f"{mapping.columns['annotator']} says who"
        has_own_labels = bool(mapping.annotators) and "label" in mapping.columns
        rule = "majority for theirs" if has_own_labels else "any_unattributable for another"
        made = "beside the labels" if has_own_labels else "labels by majority"
        lines.append(f"annotators  {who}: {made} (--label-rule {rule})")
    return lines


def _describe_evaluator_mapping(name: str, evaluator: EvaluatorColumnMapping, mapping: ColumnMapping) -> str:
    columns = " + ".join(filter(None, (evaluator.score, evaluator.prediction)))
    scale = evaluator.scale
    limit = evaluator.threshold
    told = [columns, *([] if scale is None else [_describe_scale(scale)])]
    told += [] if limit is None or evaluator.score is None else [f"support beyond {limit:g}"]
    return name if told == [name] else f"{name} ({', '.join(told)})"


def _describe_scale(scale: tuple[float, float] | str) -> str:
    if isinstance(scale, str):
        return SCORE_TRANSFORM_NAMES[scale]
    return f"{scale[0]:g} not supported, {scale[1]:g} supported"
