"""Logs of evaluation tools as tables, by a recipe for each tool (`logs.yaml`): a sample is a claim, a metric an
evaluator.

A log becomes a table with a row for each sample. Its claims, documents, labels and systems have our names, what each
evaluator said has a column of the evaluator's name, and what users added keeps its own name: from there on a log is
read like any table. Only Inspect's and lm-eval's samples need code of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from factaudit.datasets.inspect_log import read_inspect_log
from factaudit.datasets.lm_eval_log import read_lm_eval_log
from factaudit.datasets.log_recipes import LOG_OPTION_KEYS, LOG_RECIPES, LogRecipe
from factaudit.datasets.source_files import Conversion, expand_dataset_source_folders, read_dataset_source_json
from factaudit.errors import InputError, Problem
from factaudit.tables.cell_values import has_only_words, parse_judgement_numbers
from factaudit.tables.claim_keys import join_passages_into_document, name_table_stem
from factaudit.tables.column_kinds import is_name_of_person
from factaudit.tables.column_mapping import ColumnMapping, EvaluatorColumnMapping
from factaudit.tables.mapping_options import parse_column_mapping_options
from factaudit.tables.nested_columns import flatten_columns
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.schema import EVALUATORS_KEY
from factaudit.tables.table_files import read_table
from factaudit.tables.table_loading import OpenedTable, load_tables
from factaudit.tables.unreadable_rows import leave_out_unreadable_rows
from factaudit.tables.vocabulary import COLUMN_NAMES, has_vocabulary_word_in_column_name, parse_label_word

#: The letter of a choice, as models answer multiple-choice questions: ``ANSWER: A``.
_CHOICE = re.compile(r"(answer:?\s*)?\(?[A-E]", re.IGNORECASE)
#: Columns of ours whose fields a recipe names.
_ROLES = ("claim", "doc", "label", "system")
#: What a recipe says of evaluators.
_KINDS = ("score", "prediction", "raw", "error", "direction")
#: Not supported and supported, by how a tool says that a score is to be.
_SCALES = {"minimize": (1.0, 0.0), "maximize": (0.0, 1.0)}


def make_log_converter(name: str) -> Callable[..., Conversion]:
    """The converter of a tool's logs, see `factaudit.datasets.formats`."""

    def convert_log(
        sources: Sequence[Path],
        *,
        claim: str | None = None,
        doc: str | None = None,
        label: str | None = None,
        labels: dict[str, int | None] | str | None = None,
        scales: dict[str, tuple[float, float]] | str | None = None,
        system: str | None = None,
        dataset: str | None = None,
        metrics: Sequence[str] | str | None = None,
        evaluator: str | None = None,
        attributable: str | None = None,
    ) -> Conversion:
        """A sample is a claim, a metric an evaluator."""
        columns = {"claim": claim, "doc": doc, "label": label, "system": system}
        given = _make_mapping(columns, {"labels": labels, "scales": scales, "metrics": metrics})
        table = read_log(name, sources, given, dataset, evaluator=evaluator, attributable=attributable)
        notes: list[str] = []
        loaded = load_tables([table], given, notes.append)
        if loaded.claims is None:
            raise InputError(table.name, [Problem("the log holds no claims")])
        return Conversion(loaded.claims, loaded.verdicts, notes, annotations=loaded.annotations)

    return convert_log


def _make_mapping(columns: Mapping[str, str | None], options: Mapping[str, Any]) -> ColumnMapping:
    """Options of ``convert`` as a mapping: plain data, or texts as on the command line."""
    said = {LOG_OPTION_KEYS[key]: value for key, value in options.items() if value is not None}
    texts = {key: said.pop(key).split(",") for key in ("labels", "scale") if isinstance(said.get(key), str)}
    parsed = parse_column_mapping_options(**texts).model_dump(exclude_defaults=True, mode="json")
    return ColumnMapping.from_source(
        {"columns": {ours: theirs for ours, theirs in columns.items() if theirs is not None}, **parsed, **said}
    )


def read_log(
    name: str, paths: Sequence[Path], given: ColumnMapping, dataset: str | None = None, **options: str | None
) -> OpenedTable:
    """The logs of one tool, files or folders, as a table; ``given`` names fields that are to be kept, or take a role.

    dataset: the data set's name; by default what the log says, or the file's name. options: `read_lm_eval_log`'s.
    Raises `InputError`.
    """
    recipe = LOG_RECIPES[name]
    paths = list(expand_dataset_source_folders(map(Path, paths), *recipe.files))
    source = ", ".join(map(str, paths))
    parts = []
    for path in paths:
        task, samples = _read_samples(name, path, recipe, given, options)
        if recipe.same and {*recipe.same} <= {*samples}:
            own, root = (samples[one] for one in recipe.same)
            samples = samples[root.isna() | (own == root)]
        by = [one for one in recipe.order if one in samples]
        table = flatten_columns(
            samples.sort_values(by, kind="stable", key=lambda cells: cells.astype("str")) if by else samples
        )
        if task is not None or dataset is not None or len(paths) > 1:
            table = table.assign(dataset=dataset or task or name_table_stem(str(path)))
        parts.append(table)
    table = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0].reset_index(drop=True)
    if table.empty:
        raise InputError(source, [Problem("the log holds no samples")])
    made, renamed = _place_fields(table, recipe, given)
    if "claim" not in {*made, *given.columns}:
        listed = ", ".join(map(str, table.columns[:20]))
        raise InputError(source, [Problem(f"no field holds the claims: name one by claim= ({listed})")])
    _check_claims_are_no_verdicts(made, given, source)
    made = _number_answers(made, table, recipe)
    renamed |= {one: "claim_id" for one in recipe.id[:1] if len(recipe.id) == 1}
    return OpenedTable(source, made, is_log=True, renamed=renamed)


def _read_samples(
    name: str, path: Path, recipe: LogRecipe, given: ColumnMapping, options: Mapping[str, str | None]
) -> tuple[str | None, pd.DataFrame]:
    """The task that a log names, and its samples: what the recipe and the user name of them."""
    task = None
    if name == "inspect":
        task, items = read_inspect_log(path, bool(given.labels))
    elif name == "lm-eval":
        task, items = read_lm_eval_log(path, **options)
    elif recipe.rows:
        items = _find_items(path, recipe)
    else:
        table = flatten_columns(read_table(path))
        lists = [column for one in recipe.first for column in _match_fields(table, one)]
        return None, table.assign(**{one: table[one].map(_take_first) for one in lists})
    bad = [at for at, item in enumerate(items, start=1) if not isinstance(item, dict)]
    problems = [Problem("cannot be read as a sample (expected an object)", at, unit="item") for at in bad]
    leave_out_unreadable_rows(path, problems, len(items))
    named = [theirs for one in given.columns.values() for theirs in ([one] if isinstance(one, str) else one)]
    named += [*given.evaluator, *given.people, *given.ignore]
    paths = [*recipe.id, *recipe.claim, *recipe.doc, *recipe.label, *recipe.system, *recipe.score, *recipe.prediction]
    heads = {one.partition(".")[0] for one in (*paths, *recipe.raw, *recipe.error, *recipe.fields, *named)}
    rows = [{key: item.get(key) for key in item if key in heads} for item in items if isinstance(item, dict)]
    if recipe.verdicts:
        samples = [item for item in items if isinstance(item, dict)]
        rows = [row | {"verdicts": _list_verdicts(item, recipe)} for row, item in zip(rows, samples, strict=True)]
    return task, pd.DataFrame(rows, dtype="object")


def _take_first(cell: Any) -> Any:
    return next(iter(cell), None) if isinstance(cell, list) else cell


def _find_items(path: Path, recipe: LogRecipe) -> list[Any]:
    document: Any = read_dataset_source_json(path, Any)
    found = next((items for one in recipe.rows if (items := _get_at(document, one)) is not None), None)
    if not isinstance(found, list) or not found:
        raise InputError(str(path), [Problem(f"expected a list of items under {recipe.rows[0]!r}")])
    return found


def _get_at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _list_verdicts(item: Mapping[str, Any], recipe: LogRecipe) -> dict[str, Any]:
    """By evaluator's name what it said of a sample."""
    found = next((said for one in recipe.verdicts if isinstance(said := _get_at(item, one), list)), [])
    names = [next((name for path in recipe.name if (name := _get_at(one, path))), None) for one in found]
    return {str(name): one for name, one in zip(names, found, strict=True) if name is not None}


def _place_fields(table: pd.DataFrame, recipe: LogRecipe, given: ColumnMapping) -> tuple[pd.DataFrame, dict[str, str]]:
    """The table of claims and judgements, under our names, and which fields these were."""
    named = {one for theirs in given.columns.values() for one in ([theirs] if isinstance(theirs, str) else theirs)}
    renamed: dict[str, str] = {}
    for ours in _ROLES:
        usual = (column for path in getattr(recipe, ours) for column in _match_fields(table, path))
        theirs = next((one for one in usual if one not in named and table[one].notna().any()), None)
        if ours not in given.columns and theirs is not None:
            renamed[theirs] = ours
    made = table[[*renamed]].rename(columns=renamed)
    if recipe.labels and "label" in made:
        made["label"] = made["label"].map(lambda cell: _replace_word(cell, recipe))
    evaluators: dict[str, EvaluatorColumnMapping] = {}
    for number, (name, own) in enumerate(_find_evaluators(table, recipe).items(), start=1):
        columns, evaluator = _read_evaluator(table, name, own, number, recipe)
        made = made.assign(**columns)
        evaluators |= {} if evaluator is None else {name: evaluator}
    said = {*named, *given.evaluator, *given.people, *given.ignore, *given.annotators.values(), "dataset"}
    for column in map(str, table.columns):
        is_own = any(fnmatchcase(column, one) for one in recipe.fields)
        is_own = is_own and not any(fnmatchcase(column, one) for one in recipe.ignore)
        if column not in made and column not in renamed and (is_own or column in said):
            made[column] = table[column]
    made.attrs[EVALUATORS_KEY] = evaluators
    return made, renamed


def _match_fields(table: pd.DataFrame, path: str) -> dict[str, str]:
    """The columns that a path names, and what stands for its ``NAME``: of a path without one all of the column."""
    pattern = re.compile("(?P<name>.+)".join(re.escape(one).replace(r"\*", ".*") for one in path.split("NAME")))
    found = {str(column): pattern.fullmatch(str(column)) for column in table.columns}
    return {column: match.groupdict().get("name", column) for column, match in found.items() if match}


def _replace_word(cell: Any, recipe: LogRecipe) -> Any:
    return (recipe.labels or {}).get(cell, cell) if isinstance(cell, str) else cell


def _find_evaluators(table: pd.DataFrame, recipe: LogRecipe) -> dict[str, dict[str, str]]:
    """By evaluator's name the fields in which it said something: ``score``, ``prediction``, ``raw``, ``error`` and
    ``direction``. Raises `InputError` where a table has none."""
    patterns = recipe.evaluators or recipe.score
    names = dict.fromkeys(name for path in patterns for name in _match_fields(table, path).values())
    if not names and patterns and not recipe.rows:
        expected = patterns[0].partition(".")[0]
        raise InputError("", [Problem(f"no evaluator in it: expected columns {expected}")])
    found: dict[str, dict[str, str]] = {}
    for name in names:
        own: dict[str, str] = {}
        for kind in _KINDS:
            paths = [path.replace("NAME", name) for path in getattr(recipe, kind)]
            present = [path for path in paths if path in table and table[path].notna().any()]
            own |= {kind: present[0]} if present else {}
        if {"score", "prediction"} & {*own}:
            found[name] = own
    return {
        name: own
        for name, own in found.items()
        if not has_vocabulary_word_in_column_name("measures", name.partition("(")[0])
    }


def _read_evaluator(
    table: pd.DataFrame, name: str, own: Mapping[str, str], number: int, recipe: LogRecipe
) -> tuple[dict[str, pd.Series], EvaluatorColumnMapping | None]:
    """The columns of what an evaluator said, and which is which; None where people may have said it
    (``scores.human``): a column like any other."""
    cells = table[own.get("score", own.get("prediction"))]
    said = cells.map(lambda cell: _replace_word(cell, recipe))
    if is_name_of_person(name) or _may_be_of_people(name, said):
        return {name: said}, None
    nothing = pd.Series(None, index=table.index, dtype="object")
    reasons = table[own["error"]].map(lambda cell: cell or None) if "error" in own else nothing  # no list of none
    said = said.mask(reasons.notna() | _find_infinite(said), None)
    is_unread = pd.Series(False, index=table.index)
    if not has_only_words(said):  # a word among numbers is no score: a lower-case "c" beside C and I
        is_unread = said.notna() & parse_judgement_numbers(said).isna()
        said = said.mask(is_unread, None)
    is_told = "direction" in own or {"score", "prediction"} <= {*own}
    is_worded = has_only_words(said) or (not is_told and said.dropna().map(lambda cell: cell in (0, 1)).all())
    # C and I, and what a metric concluded from its score, are of support whatever the metric is called.
    is_conclusion = "score" not in own or not said.dropna().equals(cells[said.notna()])
    concluded, raw, status = (f"{kind} {number}" for kind in ("passed", "raw", "status"))
    columns = {concluded if is_worded and is_conclusion else name: said}
    kinds = {"prediction" if is_worded else "score": next(iter(columns))}
    if not is_worded and "prediction" in own:
        columns[concluded] = table[own["prediction"]].mask(said.map(is_missing_value), None)
        kinds["prediction"] = concluded
    columns[raw] = reasons.where(reasons.notna(), table[own["raw"]] if "raw" in own else cells.where(is_unread, None))
    columns[status] = reasons.mask(reasons.notna(), "error").mask(is_unread, "unparsed")
    directions = {*map(str, table[own["direction"]].dropna())} if "direction" in own else set()
    scale = _SCALES.get(directions.pop()) if len(directions) == 1 else None
    kinds |= {"raw": raw, "status": status}
    return columns, EvaluatorColumnMapping.model_validate(kinds | {"scale": scale})


def _may_be_of_people(name: str, said: pd.Series) -> bool:
    """Whether people may have said what an evaluator called ``is_supported`` or ``checked`` says."""
    is_doubtful = has_vocabulary_word_in_column_name("doubtful_labels", name)
    is_doubtful = is_doubtful and not has_vocabulary_word_in_column_name("judges", name)
    is_binary = said.dropna().map(lambda cell: isinstance(cell, int | float) and cell in (0, 1)).all()
    return name.lower().startswith("is_") or bool(is_doubtful and is_binary)


def _find_infinite(cells: pd.Series) -> pd.Series:
    """Which cells are infinite: with that, and with NaN, tools say that a metric failed."""
    return pd.Series(np.isinf(parse_judgement_numbers(cells).to_numpy(dtype="float64")), index=cells.index)


def _check_claims_are_no_verdicts(made: pd.DataFrame, given: ColumnMapping, source: str) -> None:
    """Raise `InputError` where the model's answers are words of verdicts or letters of choices: it is a judge, and its
    metric says whether it agreed with somebody."""
    field = given.columns.get("claim", "claim")
    if not isinstance(field, str) or field not in made:
        return
    texts = {str(text).strip(" .!*()") for text in made[field].dropna().head(1000)}
    if len(texts) > 1 and all(parse_label_word(text) is not None or _CHOICE.fullmatch(text) for text in texts):
        listed = ", ".join(map(repr, sorted(texts)[:3]))
        message = f"the answers in {field} are verdicts ({listed}), no claims: the model under test is the judge"
        raise InputError(source, [Problem(f"{message}; write a table of claim, label and prediction from the log")])


def _number_answers(made: pd.DataFrame, table: pd.DataFrame, recipe: LogRecipe) -> pd.DataFrame:
    """The table with ids of claims: a sample's id, for each further answer with a number; and, where a model gave an
    answer again, which repeat of its verdicts a row is."""
    fields = [one for one in recipe.id if one in table]
    if not fields and {*map(str.lower, map(str, made.columns))} & {*COLUMN_NAMES["claim_id"]}:
        return made
    ids = (
        table[fields].apply(lambda row: "-".join(map(str, row)), axis=1)
        if fields
        else pd.Series(map(str, range(len(table))), index=table.index)
    )
    if "dataset" in made and made["dataset"].nunique() > 1:
        ids = made["dataset"].astype("str") + ":" + ids
    claims = made.get("claim", ids)
    docs = made["doc"].map(lambda cell: str(join_passages_into_document(cell))) if "doc" in made else ids
    known: dict[tuple[str, Any, str], str] = {}
    n_answers: Counter[str] = Counter()
    n_rows: Counter[str] = Counter()
    found, repeats = [], []
    for own, claim, doc in zip(ids, claims, docs, strict=True):
        key = own, None if is_missing_value(claim) else str(claim), doc
        if key[1] is None and n_answers[own]:  # an attempt that failed has no answer
            known.setdefault(key, own)
        if key not in known:
            n_answers[own] += 1
            known[key] = own if n_answers[own] == 1 else f"{own}#{n_answers[own]}"
        found.append(known[key])
        repeats.append(n_rows[known[key]])
        n_rows[known[key]] += 1
    made = made.assign(claim_id=found, response_id=table[fields[0]].astype("str") if len(fields) == 1 else ids)
    if max(repeats):
        made["repeat"] = repeats
        evaluators = made.attrs[EVALUATORS_KEY]
        made.attrs[EVALUATORS_KEY] = {
            name: one.model_copy(update={"repeat": "repeat"}) for name, one in evaluators.items()
        }
    return made
