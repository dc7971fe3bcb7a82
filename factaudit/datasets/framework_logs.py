"""What the logs of evaluation frameworks have in common: samples with fields, and what metrics said of them.

A log's metric is an evaluator here, and a sample's output the claim. The document and the label are fields that the
user's own data brought (``metadata.context``, say): options name them where the framework has no place of its own.

The module of a framework has one function, which reads a log's samples; `make_framework_log_converter` makes a
converter of it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, get_type_hints

from factaudit.datasets.framework_log_metrics import (
    FrameworkLogMetric,
    find_metric_scale,
    has_metric_said_anything,
    is_metric_like_label,
    is_metric_off_scale,
    make_metric_verdict,
    parse_metric_scales,
)
from factaudit.datasets.repeated_answers import RepeatedAnswerNumbering
from factaudit.datasets.source_files import Conversion, expand_dataset_source_folders
from factaudit.errors import InputError, Problem, UsageError, suggest_known_name
from factaudit.tables.cell_values import parse_printed_value
from factaudit.tables.column_kinds import find_judged_columns, is_surely_label
from factaudit.tables.unreadable_rows import leave_out_unreadable_rows
from factaudit.tables.vocabulary import (
    BARE_WORDS,
    has_vocabulary_word_in_column_name,
    normalise_vocabulary_words,
    parse_label_word,
)
from factaudit.text.display_text import format_count


@dataclass(frozen=True)
class FrameworkLogSample:
    """A line of a log. ``fields`` are flat: an object within is ``name.key``."""

    id: str
    fields: Mapping[str, Any]
    metric_outputs: Mapping[str, FrameworkLogMetric]
    repeat: int = 0


@dataclass(frozen=True)
class FrameworkLog:
    """A log as it was read; ``dataset`` is the dataset's name unless the user gives one.

    ``has_own_dataset``: else it is the file's name, which is no part of a claim's id.
    """

    dataset: str
    samples: Sequence[FrameworkLogSample]
    has_own_dataset: bool = False


#: The options that the converters of all logs take, with their types.
_COMMON_OPTIONS: dict[str, Any] = {
    **dict.fromkeys(("claim", "doc", "label", "system", "dataset"), str | None),
    "labels": dict[str, int | None] | str | None,
    "scales": dict[str, tuple[float, float]] | str | None,
    "metrics": Sequence[str] | str | None,
}


#: The letter of a choice, as multiple-choice solvers have models answer: ``ANSWER: A``.
_CHOICE = re.compile(r"(answer:?\s*)?\(?[A-E]", re.IGNORECASE)
#: What begins the names of fields that hold what somebody said of a sample.
_JUDGEMENT_FIELDS = ("scores.", "feedback.")


def make_framework_log_converter(
    *patterns: str,
    claim: Sequence[str],
    doc: Sequence[str] = (),
    label: Sequence[str] = (),
    system: Sequence[str] = (),
    is_split: bool = False,
) -> Callable[[Callable[..., FrameworkLog]], Callable[..., Conversion]]:
    """Make a converter of a function that reads a log's file.

    The converter takes the options that all logs share, and the reader's own keywords as further options. A reader that
    has a shared option among its keywords is given it too.

    Args:
        patterns: names of the files that are looked for in a folder.
        claim, doc, label, system: the fields in which the framework keeps them, the likelier first.
        is_split: whether a log may consist of several files.
    """
    usual_fields = {"claim": claim, "doc": doc, "label": label, "system": system}

    def decorate(read_log: Callable[..., FrameworkLog]) -> Callable[..., Conversion]:
        keywords = [each for each in inspect.signature(read_log).parameters.values() if each.kind is each.KEYWORD_ONLY]
        common = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
            for name in _COMMON_OPTIONS
            if name not in {each.name for each in keywords}
        ]

        @wraps(read_log)
        def convert_log(sources: Sequence[Path], **options: Any) -> Conversion:
            paths = list(expand_dataset_source_folders(sources, *patterns))
            if len(paths) != 1 and not is_split:
                raise UsageError(f"expected one log, found {len(paths)}: {', '.join(map(str, paths[:5]))}")
            own = {each.name: options[each.name] for each in keywords if each.name in options}
            logs = [read_log(path, **own) for path in paths]
            tool = read_log.__name__.removeprefix("convert_").removesuffix("_log")
            return _convert_framework_log_samples(logs, usual_fields, options, ", ".join(map(str, paths)), tool)

        hints = get_type_hints(read_log, include_extras=True)
        own_hints = {each.name: hints[each.name] for each in keywords}
        convert_log.__annotations__ = {"sources": Sequence[Path], **_COMMON_OPTIONS, **own_hints, "return": Conversion}
        sources = inspect.Parameter("sources", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        convert_log.__signature__ = inspect.Signature([sources, *common, *keywords])  # type: ignore[attr-defined]
        return convert_log

    return decorate


def _is_said_by_people(name: str, kinds: Sequence[str] = ("people",)) -> bool:
    by_judges = has_vocabulary_word_in_column_name("judges", name)
    return not by_judges and any(has_vocabulary_word_in_column_name(kind, name) for kind in kinds)


def _check_claims_are_no_verdicts(samples: Sequence[FrameworkLogSample], field: str, source: str) -> None:
    """Raise `InputError` where the model's answers are words of verdicts or letters of choices: it is a judge, and its
    scorer says whether it agreed with somebody."""
    texts = {str(sample.fields.get(field)).strip(" .!*()") for sample in samples}
    if len(texts) > 1 and all(parse_label_word(text) is not None or _CHOICE.fullmatch(text) for text in texts):
        listed = ", ".join(map(repr, sorted(texts)[:3]))
        message = f"the answers in {field} are verdicts ({listed}), no claims: the model under test is the judge"
        raise InputError(source, [Problem(f"{message}; write a table of claim, label and prediction from the log")])


def _choose_framework_log_fields(
    samples: Sequence[FrameworkLogSample],
    usual_fields: Mapping[str, Sequence[str]],
    options: Mapping[str, Any],
    source: str,
) -> dict[str, str]:
    """The field of each role that the samples have; `UsageError` for one of the user's that none has."""
    present = list(dict.fromkeys(name for sample in samples for name in sample.fields))
    chosen: dict[str, str] = {}
    for role, usual in usual_fields.items():
        name = options.get(role)
        if name is not None and name not in present:
            raise UsageError(f"option {role}: no sample has a field {name!r}{suggest_known_name(name, present)}")
        name = name or next((one for one in usual if one in present), None)
        if name is not None:
            chosen[role] = name
    people = [name for name in present if name.startswith(_JUDGEMENT_FIELDS) and _is_said_by_people(name)]
    if "label" not in chosen and len(people) == 1:
        chosen["label"] = people[0]
    if "claim" not in chosen:
        raise InputError(source, [Problem(f"no field holds the claims: name one by claim= ({', '.join(present)})")])
    return chosen


def _convert_framework_log_samples(
    logs: Sequence[FrameworkLog],
    usual_fields: Mapping[str, Sequence[str]],
    options: Mapping[str, Any],
    source: str,
    tool: str,
) -> Conversion:
    """Claims and verdicts of the samples of a log's files, and notes on the field of each role."""
    samples = [sample for log in logs for sample in log.samples]
    if not samples:
        raise InputError(source, [Problem("the log holds no samples")])
    outputs_by_metric: dict[str, list[FrameworkLogMetric]] = {}
    for sample in samples:
        for name, output in sample.metric_outputs.items():
            outputs_by_metric.setdefault(name, []).append(output)
    known = [name for name, outputs in outputs_by_metric.items() if has_metric_said_anything(outputs)]
    metrics = options.get("metrics")
    wanted = known if metrics is None else [metrics] if isinstance(metrics, str) else metrics
    for name in wanted:
        if name not in known:
            raise UsageError(f"option metrics: the log has no metric {name!r}{suggest_known_name(name, known)}")
    fields = _choose_framework_log_fields(samples, usual_fields, options, source)
    _check_claims_are_no_verdicts(samples, fields["claim"], source)
    further = {
        name: [sample.fields.get(name) for sample in samples]
        for name in dict.fromkeys(name for sample in samples for name in sample.fields)
        if name not in {*fields.values(), *known}
        and not name.startswith((*_JUDGEMENT_FIELDS, f"{fields.get('label', '')}."))
    }
    judged = find_judged_columns(further, ("people", "judge", "both", *([] if "label" in fields else ["label"])))
    unknown = find_judged_columns(further, ("unknown",))
    if "label" not in fields and [*map(is_surely_label, judged.values())] == [True]:
        fields["label"] = next(iter(judged))
    unread = [name for name in judged if name not in fields.values()]
    unnamed = [name for name, one in unknown.items() if one.has_both_verdicts and name not in judged]
    # What people said is the label, and no evaluator's besides (`scores.human`).
    wanted = [name for name in wanted if fields.get("label") not in (f"scores.{name}", f"feedback.{name}")]
    by_people = [name for name in wanted if metrics is None and _is_said_by_people(name, ("people", "users"))]
    wanted = [name for name in wanted if name not in by_people]
    bare = {name: name.partition("(")[0] or name for name in wanted}  # ragas' "factual_correctness(mode=f1)"
    agreeing = [
        name for name in wanted if metrics is None and has_vocabulary_word_in_column_name("measures", bare[name])
    ]
    wanted = [name for name in wanted if name not in agreeing]
    said_scales = parse_metric_scales(options.get("scales"), wanted)
    scales = {name: find_metric_scale(name, outputs_by_metric[name], said_scales) for name in wanted}
    off_scale = [name for name in wanted if is_metric_off_scale(outputs_by_metric[name], scales[name])]
    reversed_by_name = [name for name in wanted if name not in said_scales and scales[name] == (1, 0)]
    meanings = parse_framework_log_labels(samples, fields.get("label"), options.get("labels"), source)
    claims: dict[str, dict[str, Any]] = {}
    numbering, verdicts = RepeatedAnswerNumbering(), []
    for log, sample in [(one, sample) for one in logs for sample in one.samples]:
        dataset = log.dataset
        own_id = f"{dataset if log.has_own_dataset or len(logs) > 1 else tool}:{sample.id}"
        texts = {
            role: _format_log_value_as_text(sample.fields.get(name)) for role, name in fields.items() if role != "label"
        }
        claim_id, repeat = numbering.number_answer(own_id, texts, sample.repeat)
        label = meanings[str(sample.fields.get(fields.get("label", "")))]
        if claim_id in claims and claims[claim_id]["label"] is None:
            claims[claim_id]["label"] = label
        claims.setdefault(
            claim_id,
            {
                "claim_id": claim_id,
                "dataset": options.get("dataset") or dataset,
                "system": None,
                "response_id": sample.id,
                "doc": None,
                **texts,
                "label": label,
            },
        )
        verdicts += [
            {
                "claim_id": claim_id,
                "evaluator": name,
                "repeat": repeat,
                **make_metric_verdict(output, scales[name], name in off_scale),
            }
            for name, output in sample.metric_outputs.items()
            if name in wanted
        ]
    notes = [f"{format_count(len(claims), 'claim')}: {', '.join(f'{name} is {role}' for role, name in fields.items())}"]
    if off_scale:
        told = f"not all numbers of {', '.join(off_scale)} are between 0 and 1, so that none of them is read as a score"
        notes.append(f"{told}: say --scale NAME=LOW:HIGH")
    if reversed_by_name:
        notes.append(f"{', '.join(reversed_by_name)}: by the name 1 is not supported (--scale NAME=0:1 if it is)")
    if by_people:
        notes.append(
            f"{', '.join(by_people)}: what people said, and no evaluator's: name the labels' field (option label)"
        )
    if agreeing:
        notes.append(f"ignored  {', '.join(agreeing)}: a measure, no judgement (option metrics takes it)")
    metrics_like_labels = [name for name in wanted if is_metric_like_label(name, outputs_by_metric[name])]
    if metrics_like_labels and "label" not in fields:
        notes.append(f"{', '.join(metrics_like_labels)}: an evaluator here; if people said it, --label NAME")
    if unread:
        notes.append(
            f"ignored  {', '.join(unread)}: by the name people or an evaluator judged there (--label NAME takes one"
            " for people's labels; with --labels 1=0,0=1 where 1 is an error)"
        )
    if unnamed:
        notes.append(f"ignored  {', '.join(unnamed)}: the name does not say what it judges (--label NAME)")
    if "label" not in fields:
        notes.append("labels  none: no field was taken for people's labels (--label NAME; convert: --option label=)")
    if "doc" not in fields:
        notes.append("no field was taken for the documents: audits that read text are left out (option doc)")
    converted = Conversion.from_rows(list(claims.values()), verdicts, source=source, notes=notes)
    if "label" not in fields:
        present = {name for sample in samples for name in sample.fields}
        said = [
            next((one for one in (f"{prefix}{name}" for prefix in _JUDGEMENT_FIELDS) if one in present), name)
            for name in by_people
        ]
        words = {name: one.words for name, one in judged.items() if one.kind == "name"}
        converted.unread_judgements.update({one: words.get(one, ()) for one in [*unread, *said, *metrics_like_labels]})
    if converted.verdicts is not None:
        without = int(converted.verdicts["prediction"].isna().sum())
        evaluators = ", ".join(converted.verdicts["evaluator"].unique())
        count = f"{format_count(len(verdicts), 'verdict')} of {evaluators}"
        converted.notes.append(count + (f", {without:,} without a prediction" if without else ""))
    return converted


def parse_framework_log_entries(
    path: Path, entries: Sequence[Any], parse_entry: Callable[[Any], FrameworkLogSample]
) -> list[FrameworkLogSample]:
    """The samples of a log's entries; an entry of another form is left out (`leave_out_unreadable_row`)."""
    samples: list[FrameworkLogSample] = []
    problems: list[Problem] = []
    for number, entry in enumerate(entries, start=1):
        try:
            samples.append(parse_entry(entry))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"no {error} in it" if isinstance(error, KeyError) else str(error)
            problems.append(Problem(f"cannot be read as a sample ({reason})", number, unit="item"))
    leave_out_unreadable_rows(path, problems, len(entries))
    return samples


def flatten_framework_log_fields(nested_fields: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """An object's fields, those of objects within as ``name.key``.

    >>> flatten_framework_log_fields({"id": 1, "meta": {"human": 0}})
    {'id': 1, 'meta.human': 0}
    """
    found: dict[str, Any] = {}
    for key, inner in nested_fields.items():
        if isinstance(inner, Mapping):
            found |= flatten_framework_log_fields(inner, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = inner
    return found


def parse_framework_log_json_cell(cell: Any) -> Any:
    """A list, an object or a quoted text that a cell holds as JSON, or as Python writes it; else the cell."""
    if isinstance(cell, str) and cell.lstrip().startswith(("[", "{", '"')):
        value = parse_printed_value(cell)
        return cell if value is None else value
    return parse_framework_log_python_cell(cell)


def parse_framework_log_score_cell(cell: Any) -> Any:
    """A number that CSV holds as text; else the cell."""
    try:
        return float(cell) if isinstance(cell, str) else cell
    except ValueError:
        return cell


def parse_framework_log_python_cell(cell: Any) -> Any:
    """A list or an object that CSV holds as Python writes it."""
    if isinstance(cell, str) and re.match(r"\s*([\[{]|(np\.|numpy\.)?(array|list)\(\[)", cell):
        value = parse_printed_value(cell)
        return cell if value is None else value
    return cell


def _format_log_value_as_text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, list):
        return "\n\n".join(part for one in value if (part := _format_log_value_as_text(one))) or None
    if isinstance(value, Mapping):
        only = next(iter(value.values())) if len(value) == 1 else None
        return _format_log_value_as_text(value.get("content") or value.get("text") or only)
    return str(value) or None


def parse_framework_log_labels(
    samples: Sequence[FrameworkLogSample],
    field_name: str | None,
    told: Mapping[str, int | None] | str | None,
    source: str,
) -> dict[str, int | None]:
    """What each value of the field of labels means: as ``told`` (``fine=1,bad=0``), else by its word."""
    if isinstance(told, str):
        told = _parse_framework_log_label_option(told)
    known = {normalise_vocabulary_words(word): value for word, value in (told or {}).items()}
    bare = {word: str(parse_label_word(word)) for word in BARE_WORDS}  # yes is what 1 is
    known = {word: known[one] for word, one in bare.items() if one in known} | known
    values = {str(value): value for sample in samples if (value := sample.fields.get(field_name or "")) is not None}
    meanings: dict[str, int | None] = {"None": None, "": None}
    for text in values.keys() - meanings.keys():
        word = normalise_vocabulary_words(text)
        meanings[text] = known[word] if word in known else parse_label_word(text)
    unknown = [
        text for text in values if text and meanings[text] is None and normalise_vocabulary_words(text) not in known
    ]
    if unknown:
        shown = ", ".join(map(repr, unknown[:10])) + (" ..." if len(unknown) > 10 else "")
        expected = "expected 1, 0 or a word like supported or refuted"
        message = f"{expected}, found {shown}: say --labels WORD=1,WORD=0 (convert: --option labels=WORD=1,WORD=0)"
        raise InputError(source, [Problem(message, column=field_name)])
    return meanings


def _parse_framework_log_label_option(told: str) -> dict[str, int | None]:
    """``fine=1,bad=0,unsure=``: what words mean, nothing being not annotated."""
    meanings: dict[str, int | None] = {}
    for part in told.split(","):
        word, equals, value = part.rpartition("=")
        if not equals or value.strip() not in ("0", "1", ""):
            raise UsageError(f"option labels: expected WORD=1, WORD=0 or WORD= (not annotated), found {part!r}")
        meanings[word.strip()] = int(value) if value.strip() else None
    return meanings
