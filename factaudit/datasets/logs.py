"""Logs of evaluation tools as tables, by a recipe for each tool (`logs.yaml`): a sample is a claim,
a metric an evaluator.

A log becomes a table with a row for each sample. Its claims, documents, labels and systems have our
names, what each evaluator said has a column of the evaluator's name, and what users added keeps its
own name: from there on a log is read like any table. A log that holds more than its recipe says
(several answers to one sample, a model that is itself the judge) is refused with what to export.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.datasets.conversion import expand_folders
from factaudit.datasets.inspect_log import read_inspect_log
from factaudit.datasets.lm_eval_log import read_lm_eval_log
from factaudit.datasets.source_files import read_json
from factaudit.errors import InputError, Problem
from factaudit.settings.yaml_file import read_shipped_yaml
from factaudit.tables.cell_values import find_verdict_in_reply, has_only_words
from factaudit.tables.claim_keys import name_table_stem
from factaudit.tables.column_kinds import is_name_of_person
from factaudit.tables.column_mapping import ColumnMapping, EvaluatorColumnMapping
from factaudit.tables.nested_columns import flatten_columns
from factaudit.tables.schema import EVALUATORS_KEY
from factaudit.tables.table_files import read_table
from factaudit.tables.table_loading import OpenedTable
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    name_has_word,
    parse_label_word,
)

#: What `logs.yaml` says of a tool, by key.
Recipe = Mapping[str, Any]
#: Columns of ours whose fields a recipe names, and what it says of evaluators.
_ROLES = ("claim", "doc", "label", "system")
_KINDS = ("score", "prediction", "direction")
#: Not supported and supported, by how a tool says that a score is to be.
_SCALES = {"minimize": (1.0, 0.0), "maximize": (0.0, 1.0)}
#: The letter of a choice, as models answer multiple-choice questions: ``ANSWER: A``.
_CHOICE = re.compile(r"(answer:?\s*)?\(?[A-E]", re.IGNORECASE)
#: What the user may do where a file is not read.
WANTED_TABLE = (
    "save a table with a row for each claim (claim, doc, label, a column for each evaluator)"
)


def _load_recipes() -> dict[str, Recipe]:
    recipes: dict[str, dict[str, Any]] = read_shipped_yaml("factaudit.datasets", "logs.yaml")
    usual = recipes.pop("usual")
    return {name: usual | own for name, own in recipes.items()}


LOG_RECIPES = _load_recipes()


def read_log(name: str, paths: Sequence[Path], given: ColumnMapping) -> OpenedTable:
    """The logs of one tool, files or folders, as a table; ``given`` names fields that are to be
    kept, or that take a role. Raises `InputError`.
    """
    recipe = LOG_RECIPES[name]
    paths = expand_folders(map(Path, paths), recipe["files"])
    source = ", ".join(map(str, paths))
    parts = []
    for path in paths:
        task, part = _read_samples(name, path, recipe, given)
        if task or len(paths) > 1:
            part = part.assign(dataset=task or name_table_stem(str(path)))
        parts.append(part)
    table = pd.concat(parts, ignore_index=True)
    if table.empty:
        raise InputError(source, [Problem("the log holds no samples")])
    made, renamed = _place_fields(table, recipe, given, source)
    if "claim" not in {*made, *given.columns}:
        listed = ", ".join(map(str, table.columns[:20]))
        message = f"no field holds the claims: name one by --claim FIELD ({listed})"
        raise InputError(source, [Problem(message)])
    if recipe["id"] or not {*map(str.lower, map(str, made))} & {*COLUMN_NAMES["claim_id"]}:
        made["claim_id"] = _make_claim_ids(table, recipe, source)
    if len(recipe["id"]) == 1:
        renamed[recipe["id"][0]] = "claim_id"
    return OpenedTable(source, made, is_log=True, renamed=renamed)


def _make_claim_ids(table: pd.DataFrame, recipe: Recipe, source: str) -> pd.Series:
    """The id of each sample, or its number. Raises `InputError` where two samples have one id."""
    ids = table.index.astype("str").to_series(table.index)
    if {*recipe["id"][:1]} & {*table}:
        fields = [one for one in recipe["id"] if one in table]
        ids = table[fields].astype("str").agg("-".join, axis=1)
    if "dataset" in table and table["dataset"].nunique() > 1:
        ids = table["dataset"].astype("str") + ":" + ids
    repeated = ids[ids.duplicated()]
    if len(repeated):
        message = f"several samples have the id {repeated.iloc[0]!r} (epochs, or other prompts)"
        raise InputError(source, [Problem(f"{message}: {WANTED_TABLE}")])
    return ids


# Samples ------------------------------------------------------------------------------------------


def _read_samples(
    name: str, path: Path, recipe: Recipe, given: ColumnMapping
) -> tuple[str | None, pd.DataFrame]:
    """The task that a log names, and its samples: a row each, a column for each field."""
    task = None
    if name == "inspect":
        task, items = read_inspect_log(path)
    elif name == "lm-eval":
        task, items = read_lm_eval_log(path, given.labels)
    elif recipe["rows"]:
        document: Any = read_json(path, Any)
        items = next(filter(None, (_get_at(document, one) for one in recipe["rows"])), [])
        if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
            raise InputError(str(path), [Problem(f"expected samples under {recipe['rows'][0]!r}")])
        items = [one | {"verdicts": _index_verdicts(one, recipe)} for one in items]
    else:
        table = flatten_columns(read_table(path))
        for column in [
            one for pattern in recipe["first"] for one in fnmatch.filter(table, pattern)
        ]:
            table[column] = table[column].map(_take_first)
        return None, flatten_columns(table)
    wanted = [one for key in ("id", "fields", *_ROLES, *_KINDS) for one in recipe[key]]
    heads = {one.partition(".")[0] for one in [*wanted, *_list_named_fields(given)]}
    rows = [{key: value for key, value in one.items() if key in heads} for one in items]
    return task, flatten_columns(pd.DataFrame(rows, dtype="object"))


def _take_first(cell: Any) -> Any:
    return next(iter(cell), None) if isinstance(cell, list) else cell


def _list_named_fields(given: ColumnMapping) -> list[str]:
    """The fields that the user names."""
    found = [*given.evaluator, *given.people, *given.ignore, *given.annotators.values()]
    for theirs in given.columns.values():
        found += [theirs] if isinstance(theirs, str) else theirs
    return found


def _get_at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _index_verdicts(item: Mapping[str, Any], recipe: Recipe) -> dict[str, Any]:
    """What each evaluator said of a sample, by the evaluator's name."""
    listed: list[Any] = next(filter(None, (_get_at(item, one) for one in recipe["verdicts"])), [])
    named: dict[str, Any] = {}
    for one in listed:
        names = (_get_at(one, path) for path in recipe["name"])
        named[str(next(filter(None, names), "evaluator"))] = one
    return named


# Fields -------------------------------------------------------------------------------------------


def _place_fields(
    table: pd.DataFrame, recipe: Recipe, given: ColumnMapping, source: str
) -> tuple[pd.DataFrame, dict[str, str]]:
    """The table of claims and judgements, under our names, and which fields these were."""
    named = {*_list_named_fields(given)}
    renamed: dict[str, str] = {}
    for ours in _ROLES:
        usual = [one for pattern in recipe[ours] for one in fnmatch.filter(table, pattern)]
        usual = [one for one in usual if table[one].notna().any()]
        if ours == "claim" and usual:
            _check_claims_are_no_verdicts(table[usual[0]], source)
        usual = [one for one in usual if one not in named]
        if ours not in given.columns and usual:
            renamed[usual[0]] = ours
    made = table[[*renamed]].rename(columns=renamed)
    if "label" in made:
        made["label"] = _read_words(made["label"], recipe)
    evaluators: dict[str, EvaluatorColumnMapping] = {}
    for name, own in _find_evaluators(table, recipe, source).items():
        said = _read_words(table[own.get("score", own.get("prediction"))], recipe)
        if _may_be_of_people(name, said):
            made[name] = said  # a column like any other: its name decides, or it is asked about
        else:
            columns, evaluators[name] = _read_evaluator(table, name, own, said)
            made = made.assign(**columns)
    for column in map(str, table.columns):
        is_kept = _matches(column, recipe["fields"]) and not _matches(column, recipe["ignore"])
        if (is_kept or column in {*named, "dataset"}) and column not in {*made, *renamed}:
            made[column] = table[column]
    made.attrs[EVALUATORS_KEY] = evaluators
    return made, renamed


def _matches(column: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(column, one) for one in patterns)


def _read_words(cells: pd.Series, recipe: Recipe) -> pd.Series:
    """Cells with the tool's own words as what they mean."""
    words = recipe["labels"]
    return cells.map(lambda cell: words.get(cell, cell) if isinstance(cell, str) else cell)


def _find_evaluators(table: pd.DataFrame, recipe: Recipe, source: str) -> dict[str, dict[str, str]]:
    """By evaluator's name the fields in which it said something, by kind.

    Raises `InputError` where a table has no evaluator.
    """
    paths = recipe["evaluators"] or recipe["score"]
    names: dict[str, None] = {}
    for path in paths:
        pattern = re.compile(fnmatch.translate(path).replace("NAME", "(.+)"))
        matches = filter(None, map(pattern.fullmatch, map(str, table)))
        names |= dict.fromkeys(match["NAME" in path] for match in matches)
    if not names and not recipe["rows"]:
        message = f"no evaluator in it: expected columns {paths[0].partition('.')[0]}"
        raise InputError(source, [Problem(message)])
    found: dict[str, dict[str, str]] = {}
    for name in names:
        own: dict[str, str] = {}
        for kind in _KINDS:
            fields = [path.replace("NAME", name) for path in recipe[kind]]
            fields = [path for path in fields if path in table]
            filled = [path for path in fields if table[path].notna().any()]
            # A metric that always failed has a field without any score, and stays unscored.
            if fields:
                own[kind] = (filled or fields)[0]
        is_measure = name_has_word("measures", name.partition("(")[0])
        if {"score", "prediction"} & {*own} and not is_measure:
            found[name] = own
    return found


def _may_be_of_people(name: str, said: pd.Series) -> bool:
    """Whether people may have said what is called ``human``, ``is_supported`` or ``checked``."""
    is_doubtful = name_has_word("doubtful_labels", name)
    is_doubtful = is_doubtful and not name_has_word("judges", name)
    may_be_labels = name.lower().startswith("is_") or bool(
        is_doubtful and said.dropna().isin((0, 1)).all()
    )
    return is_name_of_person(name) or may_be_labels


def _read_evaluator(
    table: pd.DataFrame, name: str, own: Mapping[str, str], said: pd.Series
) -> tuple[dict[str, pd.Series], EvaluatorColumnMapping]:
    """The columns of what an evaluator said, and which is which."""
    passed = f"{name}: passed"
    columns, kinds = dict[str, pd.Series](), dict[str, Any]()
    directions = {*table[own["direction"]].dropna()} if "direction" in own else set()
    is_told = bool(directions) or {"score", "prediction"} <= {*own}
    if has_only_words(said) or (not is_told and said.dropna().isin((0, 1)).all()):
        # C and I, and what a metric concluded, are of support whatever the metric is called.
        is_plain = "score" in own and said.equals(table[own["score"]])
        kinds["prediction"] = name if is_plain else passed
        columns[kinds["prediction"]] = said
    else:
        kinds["score"] = name
        columns[name] = said
        if "prediction" in own:
            # A metric that failed has no score, and may say all the same that it was not passed.
            kinds["prediction"] = passed
            columns[passed] = table[own["prediction"]].mask(said.isna(), None)
    if len(directions) == 1:
        kinds["scale"] = _SCALES.get(directions.pop())
    return columns, EvaluatorColumnMapping.model_validate(kinds)


def _check_claims_are_no_verdicts(claims: pd.Series, source: str) -> None:
    """Raise `InputError` where the model's answers are verdicts or letters of choices: it is a
    judge, and its metric says whether it agreed with somebody."""
    texts = {str(text).strip(" .!*()") for text in claims.dropna().head(1000)}
    if all(_is_verdict(text) for text in texts):
        listed = ", ".join(map(repr, sorted(texts)[:3]))
        message = f"the answers are verdicts ({listed}), no claims: the model under test is a judge"
        raise InputError(source, [Problem(f"{message}; {WANTED_TABLE}")])


def _is_verdict(text: str) -> bool:
    said = text if parse_label_word(text) is not None else find_verdict_in_reply(text)
    return said is not None or _CHOICE.fullmatch(text) is not None
