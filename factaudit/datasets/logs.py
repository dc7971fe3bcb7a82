"""Logs of evaluation tools as tables, by a recipe for each tool (`logs.yaml`): a sample is a claim,
a metric an evaluator.

A log becomes a table with a row for each sample. Its claims, documents, labels and systems have our
names, what each evaluator said has a column of the evaluator's name, and what users added keeps its
own name: from there on a log is read like any table. Only Inspect's and lm-eval's samples need code
of their own.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from factaudit.datasets.conversion import Conversion, expand_folders, reads
from factaudit.datasets.inspect_log import read_inspect_log
from factaudit.datasets.lm_eval_log import read_lm_eval_log
from factaudit.datasets.source_files import read_json
from factaudit.errors import InputError, Problem
from factaudit.tables.cell_values import has_only_words, parse_judgement_numbers
from factaudit.tables.claim_keys import join_passages_into_document, name_table_stem
from factaudit.tables.column_kinds import is_name_of_person
from factaudit.tables.column_mapping import ColumnMapping, EvaluatorColumnMapping
from factaudit.tables.nested_columns import flatten_columns
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.schema import EVALUATORS_KEY
from factaudit.tables.table_files import read_table
from factaudit.tables.table_loading import OpenedTable, load_tables
from factaudit.tables.unreadable_rows import leave_out_unreadable_rows
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    has_vocabulary_word_in_column_name,
    parse_label_word,
)

#: What `logs.yaml` says of a tool, by key.
Recipe = Mapping[str, Any]
#: The letter of a choice, as models answer multiple-choice questions: ``ANSWER: A``.
_CHOICE = re.compile(r"(answer:?\s*)?\(?[A-E]", re.IGNORECASE)
#: Columns of ours whose fields a recipe names, and what it says of evaluators.
_ROLES = ("claim", "doc", "label", "system")
_KINDS = ("score", "prediction", "raw", "error", "direction")
#: Not supported and supported, by how a tool says that a score is to be.
_SCALES = {"minimize": (1.0, 0.0), "maximize": (0.0, 1.0)}
_OPTIONS = {
    "mapping": (
        "how fields are read: other commands' options as keys (claim, doc, label, labels, ...), or"
        " a YAML file"
    ),
    "dataset": "the dataset's name (default: the log's)",
    "evaluator": "lm-eval: the model's name (default: the folder's)",
}


def _register_logs() -> dict[str, Recipe]:
    text = files("factaudit.datasets").joinpath("logs.yaml").read_text(encoding="utf-8")
    recipes: dict[str, dict[str, Any]] = yaml.safe_load(text)
    usual = recipes.pop("usual")
    for name, own in recipes.items():
        recipe = recipes[name] = usual | own
        declare = reads(
            name,
            recipe["summary"],
            recipe["example"],
            recipe["files"],
            options=_OPTIONS,
            marks=recipe["marks"],
            is_log=True,
        )
        declare(_make_converter(name))
    return dict(recipes)


def _make_converter(name: str) -> Callable[..., Conversion]:
    def convert_log(
        sources: Sequence[Path],
        *,
        mapping: dict[str, Any] | Path | None = None,
        dataset: str | None = None,
        evaluator: str | None = None,
    ) -> Conversion:
        """A sample is a claim, a metric an evaluator."""
        given = ColumnMapping.from_source(mapping)
        table = read_log(name, sources, given, dataset, evaluator)
        notes: list[str] = []
        loaded = load_tables([table], given, notes.append)
        if loaded.claims is None:
            raise InputError(table.name, [Problem("the log holds no claims")])
        return Conversion(loaded.claims, loaded.verdicts, notes, annotations=loaded.annotations)

    return convert_log


def read_log(
    name: str,
    paths: Sequence[Path],
    given: ColumnMapping,
    dataset: str | None = None,
    evaluator: str | None = None,
) -> OpenedTable:
    """The logs of one tool, files or folders, as a table; ``given`` names fields that are to be
    kept, or take a role.

    dataset: the data set's name; by default what the log says, or the file's name. evaluator: the
    model of lm-eval. Raises `InputError`.
    """
    recipe = LOG_RECIPES[name]
    paths = expand_folders(map(Path, paths), recipe["files"])
    source = ", ".join(map(str, paths))
    parts = []
    for path in paths:
        task, table = _read_samples(name, path, recipe, given, evaluator)
        if task or dataset or len(paths) > 1:
            table = table.assign(dataset=dataset or task or name_table_stem(str(path)))
        parts.append(table)
    table = pd.concat(parts, ignore_index=True)
    if table.empty:
        raise InputError(source, [Problem("the log holds no samples")])
    made, renamed = _place_fields(table, recipe, given, source)
    if "claim" not in {*made, *given.columns}:
        listed = ", ".join(map(str, table.columns[:20]))
        raise InputError(
            source, [Problem(f"no field holds the claims: name one by claim= ({listed})")]
        )
    _check_claims_are_no_verdicts(made, given, source)
    made = _number_answers(made, table, recipe)
    if len(recipe["id"]) == 1:
        renamed[recipe["id"][0]] = "claim_id"
    return OpenedTable(source, made, is_log=True, renamed=renamed)


# Samples
# ------------------------------------------------------------


def _read_samples(
    name: str, path: Path, recipe: Recipe, given: ColumnMapping, evaluator: str | None
) -> tuple[str | None, pd.DataFrame]:
    """The task that a log names, and its samples, flat: what the recipe and the user name of
    them."""
    task = None
    if name == "inspect":
        task, items = read_inspect_log(path, bool(given.labels))
    elif name == "lm-eval":
        task, items = read_lm_eval_log(path, given.labels, evaluator)
    elif recipe["rows"]:
        document: Any = read_json(path, Any)
        items = next(
            (found for one in recipe["rows"] if isinstance(found := _get_at(document, one), list)),
            [],
        )
        if not items:
            raise InputError(
                str(path), [Problem(f"expected a list of items under {recipe['rows'][0]!r}")]
            )
    else:
        return None, _arrange_rows(flatten_columns(read_table(path)), recipe)
    bad = [at for at, item in enumerate(items, start=1) if not isinstance(item, dict)]
    problems = [
        Problem("cannot be read as a sample (expected an object)", at, unit="item") for at in bad
    ]
    leave_out_unreadable_rows(path, problems, len(items))
    wanted = [one for key in ("id", "fields", *_ROLES, *_KINDS) for one in recipe[key]]
    heads = {one.partition(".")[0] for one in [*wanted, *_list_named_fields(given)]}
    rows = []
    for item in items:
        if isinstance(item, dict):
            row = {key: value for key, value in item.items() if key in heads}
            rows.append(row | _index_verdicts(item, recipe))
    return task, flatten_columns(pd.DataFrame(rows, dtype="object"))


def _arrange_rows(table: pd.DataFrame, recipe: Recipe) -> pd.DataFrame:
    """The samples' own rows of a log that is a table, flat."""
    if recipe["same"] and {*recipe["same"]} <= {*table}:
        own, root = (table[one] for one in recipe["same"])
        table = table[root.isna() | (own == root)]
    for column in (column for path in recipe["first"] for column in fnmatch.filter(table, path)):
        table[column] = table[column].map(
            lambda cell: next(iter(cell), None) if isinstance(cell, list) else cell
        )
    return flatten_columns(table)


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
    """What each evaluator said of a sample, by the evaluator's name under ``verdicts``."""
    found = next(
        (said for one in recipe["verdicts"] if isinstance(said := _get_at(item, one), list)), []
    )
    named: dict[str, Any] = {}
    for one in found:
        name = next(filter(None, (_get_at(one, path) for path in recipe["name"])), None)
        named |= {} if name is None else {str(name): one}
    return {"verdicts": named} if recipe["verdicts"] else {}


# Fields
# ------------------------------------------------------------


def _place_fields(
    table: pd.DataFrame, recipe: Recipe, given: ColumnMapping, source: str
) -> tuple[pd.DataFrame, dict[str, str]]:
    """The table of claims and judgements, under our names, and which fields these were."""
    named = {*_list_named_fields(given)}
    renamed: dict[str, str] = {}
    for ours in _ROLES:
        usual = (column for path in recipe[ours] for column in fnmatch.filter(table, path))
        theirs = next((one for one in usual if one not in named and table[one].notna().any()), None)
        if ours not in given.columns and theirs is not None:
            renamed[theirs] = ours
    made = table[[*renamed]].rename(columns=renamed)
    if "label" in made:
        made["label"] = _read_words(made["label"], recipe)
    evaluators: dict[str, EvaluatorColumnMapping] = {}
    for number, (name, own) in enumerate(_find_evaluators(table, recipe, source).items(), start=1):
        said = _read_words(table[own.get("score", own.get("prediction"))], recipe)
        if is_name_of_person(name) or _may_be_of_people(name, said):
            made[name] = said  # a column like any other
        else:
            columns, evaluators[name] = _read_evaluator(table, name, own, said, number)
            made = made.assign(**columns)
    for column in map(str, table.columns):
        is_kept, is_left_out = (
            any(fnmatch.fnmatchcase(column, one) for one in recipe[key])
            for key in ("fields", "ignore")
        )
        is_wanted = column in {*named, "dataset"} or (is_kept and not is_left_out)
        if is_wanted and column not in {*made, *renamed}:
            made[column] = table[column]
    made.attrs[EVALUATORS_KEY] = evaluators
    return made, renamed


def _read_words(cells: pd.Series, recipe: Recipe) -> pd.Series:
    """Cells with the tool's own words as what they mean."""
    words = recipe["labels"]
    return cells.map(lambda cell: words.get(cell, cell) if isinstance(cell, str) else cell)


def _find_evaluators(table: pd.DataFrame, recipe: Recipe, source: str) -> dict[str, dict[str, str]]:
    """By evaluator's name the fields in which it said something, by kind. Raises `InputError` where
    there is none."""
    paths = recipe["evaluators"] or recipe["score"]
    names: dict[str, None] = {}
    for path in paths:
        pattern = re.compile(fnmatch.translate(path).replace("NAME", "(.+)"))
        matches = filter(None, map(pattern.fullmatch, map(str, table)))
        names |= dict.fromkeys(match["NAME" in path] for match in matches)
    if not names and not recipe["rows"]:
        raise InputError(
            source, [Problem(f"no evaluator in it: expected columns {paths[0].partition('.')[0]}")]
        )
    found: dict[str, dict[str, str]] = {}
    for name in names:
        fields = [
            (kind, path.replace("NAME", name)) for kind in _KINDS for path in reversed(recipe[kind])
        ]
        own = {kind: path for kind, path in fields if path in table and table[path].notna().any()}
        is_measure = has_vocabulary_word_in_column_name("measures", name.partition("(")[0])
        if {"score", "prediction"} & {*own} and not is_measure:
            found[name] = own
    return found


def _may_be_of_people(name: str, said: pd.Series) -> bool:
    """Whether people may have said what an evaluator called ``is_supported`` or ``checked``
    says."""
    is_doubtful = has_vocabulary_word_in_column_name("doubtful_labels", name)
    is_doubtful = is_doubtful and not has_vocabulary_word_in_column_name("judges", name)
    return name.lower().startswith("is_") or bool(is_doubtful and said.dropna().isin((0, 1)).all())


def _read_evaluator(
    table: pd.DataFrame, name: str, own: Mapping[str, str], said: pd.Series, number: int
) -> tuple[dict[str, pd.Series], EvaluatorColumnMapping]:
    """The columns of what an evaluator said, and which is which."""
    passed, raw, status = (f"{kind} {number}" for kind in ("passed", "raw", "status"))
    nothing = pd.Series(None, index=table.index, dtype="object")
    cells = table[own.get("score", own.get("prediction"))]
    # No reason is an empty list of reasons. With an infinite number tools say that a metric failed.
    reasons = table[own["error"]].map(lambda cell: cell or None) if "error" in own else nothing
    numbers = parse_judgement_numbers(said)
    said = said.mask(reasons.notna() | np.isinf(numbers.to_numpy(dtype="float64")), None)
    is_unread = said.notna() & numbers.isna() & (not has_only_words(said))
    # A word among numbers is no score: a lower-case "c" beside C and I.
    said = said.mask(is_unread, None)
    columns = {
        raw: reasons.where(
            reasons.notna(), table[own["raw"]] if "raw" in own else cells.where(is_unread, None)
        ),
        status: reasons.mask(reasons.notna(), "error").mask(is_unread, "unparsed"),
    }
    kinds: dict[str, Any] = {"raw": raw, "status": status}
    is_told = "direction" in own or {"score", "prediction"} <= {*own}
    if has_only_words(said) or (not is_told and said.dropna().isin((0, 1)).all()):
        # C and I, and what a metric concluded from its score, are of support whatever the metric is
        # called.
        is_plain = "score" in own and said.dropna().equals(cells[said.notna()])
        kinds["prediction"] = name if is_plain else passed
    else:
        kinds["score"] = name
        if "prediction" in own:
            kinds["prediction"] = passed
            columns[passed] = table[own["prediction"]].mask(said.map(is_missing_value), None)
    columns[kinds["score"] if "score" in kinds else kinds["prediction"]] = said
    directions = {*map(str, table[own["direction"]].dropna())} if "direction" in own else set()
    if len(directions) == 1:
        kinds["scale"] = _SCALES.get(directions.pop())
    return columns, EvaluatorColumnMapping.model_validate(kinds)


def _check_claims_are_no_verdicts(made: pd.DataFrame, given: ColumnMapping, source: str) -> None:
    """Raise `InputError` where the model's answers are words of verdicts or letters of choices: it
    is a judge, and its metric says whether it agreed with somebody."""
    field = str(given.columns.get("claim", "claim"))
    texts = (
        {str(text).strip(" .!*()") for text in made[field].dropna().head(1000)}
        if field in made
        else set()
    )
    if len(texts) > 1 and all(
        parse_label_word(text) is not None or _CHOICE.fullmatch(text) for text in texts
    ):
        listed = ", ".join(map(repr, sorted(texts)[:3]))
        message = (
            f"the answers in {field} are verdicts ({listed}), no claims: the model under test is"
            " the judge"
        )
        raise InputError(
            source,
            [Problem(f"{message}; write a table of claim, label and prediction from the log")],
        )


def _number_answers(made: pd.DataFrame, table: pd.DataFrame, recipe: Recipe) -> pd.DataFrame:
    """The table with ids of claims: a sample's id, for each further answer with a number; and,
    where a model gave an answer again, which repeat of its verdicts a row is."""
    fields = [one for one in recipe["id"] if one in table]
    if not fields and {*map(str.lower, map(str, made.columns))} & {*COLUMN_NAMES["claim_id"]}:
        return made
    samples = (
        table[fields].astype("str").agg("-".join, axis=1)
        if fields
        else table.index.astype("str").to_series()
    )
    samples = ids = pd.Series(samples.to_numpy(), index=made.index)
    if "dataset" in made and made["dataset"].nunique() > 1:
        ids = made["dataset"].astype("str") + ":" + samples
    docs = made["doc"].map(join_passages_into_document).astype("str") if "doc" in made else ids
    claims = made.get("claim", ids)
    # An attempt that failed has no answer: it is about the first.
    answers = (claims.astype("str") + "\x1f" + docs).mask(claims.map(is_missing_value))
    numbers = answers.groupby(ids).transform(lambda own: pd.factorize(own)[0].clip(0) + 1)
    found = ids.where(numbers == 1, ids + "#" + numbers.astype("str"))
    made = made.assign(claim_id=found, response_id=samples if len(fields) == 1 else ids)
    repeats = made.groupby("claim_id").cumcount()
    if repeats.any():
        made["repeat"] = repeats
        evaluators = made.attrs[EVALUATORS_KEY].items()
        made.attrs[EVALUATORS_KEY] = {
            name: one.model_copy(update={"repeat": "repeat"}) for name, one in evaluators
        }
    return made


LOG_RECIPES = _register_logs()
