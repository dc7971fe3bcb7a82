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
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.datasets.conversion import expand_folders
from factaudit.datasets.lm_eval_log import read_lm_eval_log
from factaudit.datasets.source_files import describe_wrong_file, read_json
from factaudit.settings.yaml_file import read_shipped_yaml
from factaudit.tables.cell_values import find_verdict_in_reply, has_only_words
from factaudit.tables.claim_keys import name_table_stem
from factaudit.tables.column_kinds import is_name_of_person
from factaudit.tables.column_mapping import ColumnMapping, EvaluatorColumnMapping
from factaudit.tables.nested_columns import flatten_columns
from factaudit.tables.schema import EVALUATORS_KEY
from factaudit.tables.table_files import read_table
from factaudit.tables.table_loading import OpenedTable
from factaudit.tables.vocabulary import COLUMN_NAMES, name_has_word, parse_label_word

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
    named = [*given.evaluator, *given.people, *given.ignore]
    for theirs in given.columns.values():
        named += [theirs] if isinstance(theirs, str) else theirs
    parts = []
    for path in paths:
        if path.suffix.lower() == ".eval":
            command = f"inspect log dump {shlex.quote(str(path))} > {shlex.quote(path.stem)}.json"
            message = f"an archive of Inspect, which is read as JSON: run `{command}`"
            raise describe_wrong_file(path, message)
        task, part = _read_samples(name, path, named, given)
        if task or len(paths) > 1:
            part = part.assign(dataset=task or name_table_stem(str(path)))
        parts.append(part)
    table = pd.concat(parts, ignore_index=True)
    if table.empty:
        raise describe_wrong_file(source, "the log holds no samples")
    renamed = _find_roles(table, recipe, named, given, source)
    made = table[[*renamed]].rename(columns=renamed)
    if "label" in made:
        made["label"] = _read_words(made["label"], recipe)
    made = _add_evaluators(made, table, recipe, source)
    kept = {*_match_fields(table, recipe["fields"])} - {*_match_fields(table, recipe["ignore"])}
    for column in map(str, table.columns):
        is_wanted = column in kept or column in named or column == "dataset"
        if is_wanted and column not in made and column not in renamed:
            made[column] = table[column]
    if "claim" not in {*made, *given.columns}:
        listed = ", ".join(map(str, table.columns[:20]))
        message = f"no field holds the claims: name one by --claim FIELD ({listed})"
        raise describe_wrong_file(source, message)
    if recipe["id"] or not {*map(str.lower, map(str, made))} & {*COLUMN_NAMES["claim_id"]}:
        made["claim_id"] = _make_claim_ids(table, recipe, source)
    if len(recipe["id"]) == 1:
        renamed[recipe["id"][0]] = "claim_id"
    return OpenedTable(source, made, is_log=True, renamed=renamed)


def _make_claim_ids(table: pd.DataFrame, recipe: Recipe, source: str) -> pd.Series:
    """The id of each sample, or its number. Raises `InputError` where two samples have one id."""
    ids = table.index.astype("str").to_series(table.index)
    fields = [one for one in recipe["id"] if one in table]
    if fields[:1] == recipe["id"][:1] and fields:
        ids = table[fields].astype("str").agg("-".join, axis=1)
    if "dataset" in table and table["dataset"].nunique() > 1:
        ids = table["dataset"].astype("str") + ":" + ids
    repeated = ids[ids.duplicated()]
    if len(repeated):
        message = f"several samples have the id {repeated.iloc[0]!r} (epochs, or other prompts)"
        raise describe_wrong_file(source, f"{message}: {WANTED_TABLE}")
    return ids


# Samples ------------------------------------------------------------------------------------------


def _read_samples(
    name: str, path: Path, named: Sequence[str], given: ColumnMapping
) -> tuple[str | None, pd.DataFrame]:
    """The task that a log names, and its samples: a row each, a column for each field."""
    recipe = LOG_RECIPES[name]
    if name == "lm-eval":
        task, samples = read_lm_eval_log(path, given.labels)
    elif recipe["rows"]:
        document: Any = read_json(path, Any)
        task = _find_first(document, recipe["task"])
        samples = _find_first(document, recipe["rows"]) or []
        if not isinstance(samples, list) or not all(isinstance(one, dict) for one in samples):
            raise describe_wrong_file(path, f"expected samples under {recipe['rows'][0]!r}")
        samples = [one | {"verdicts": _index_verdicts(one, recipe)} for one in samples]
    else:
        table = flatten_columns(read_table(path))
        for column in _match_fields(table, recipe["first"]):
            table[column] = table[column].map(_take_first)
        return None, flatten_columns(table)
    wanted = [one for key in ("id", "fields", *_ROLES, *_KINDS) for one in recipe[key]]
    heads = {one.partition(".")[0] for one in [*wanted, *named]}
    rows = [{key: value for key, value in one.items() if key in heads} for one in samples]
    return task, flatten_columns(pd.DataFrame(rows, dtype="object"))


def _take_first(cell: Any) -> Any:
    return next(iter(cell), None) if isinstance(cell, list) else cell


def _find_first(value: Any, paths: Sequence[str]) -> Any:
    """What stands at the first of some paths that has anything."""
    for path in paths:
        found = value
        for key in path.split("."):
            found = found.get(key) if isinstance(found, Mapping) else None
        if found:
            return found
    return None


def _index_verdicts(sample: Mapping[str, Any], recipe: Recipe) -> dict[str, Any]:
    """What each evaluator said of a sample, by the evaluator's name; nothing where it failed."""
    listed = _find_first(sample, recipe["verdicts"]) or []
    if _find_first(sample, recipe["failed"]):
        return {}
    if isinstance(listed, Mapping):
        return {name: one["value"] for name, one in listed.items()}
    return {str(_find_first(one, recipe["name"]) or "evaluator"): one for one in listed}


# Fields -------------------------------------------------------------------------------------------


def _find_roles(
    table: pd.DataFrame, recipe: Recipe, named: Sequence[str], given: ColumnMapping, source: str
) -> dict[str, str]:
    """The fields that hold claims, documents, labels and systems, with our names for them; the
    user's word goes first."""
    renamed: dict[str, str] = {}
    for ours in _ROLES:
        fields = [one for one in _match_fields(table, recipe[ours]) if table[one].notna().any()]
        if ours == "claim" and fields:
            _check_claims_are_no_verdicts(table[fields[0]], source)
        free = [one for one in fields if one not in named]
        if ours not in given.columns and free:
            renamed[free[0]] = ours
    return renamed


def _check_claims_are_no_verdicts(claims: pd.Series, source: str) -> None:
    """Raise `InputError` where the model's answers are verdicts or letters of choices: it is a
    judge, and its metric says whether it agreed with somebody."""
    texts = {str(text).strip(" .!*()") for text in claims.dropna().head(1000)}
    if all(
        parse_label_word(text) is not None or find_verdict_in_reply(text) or _CHOICE.fullmatch(text)
        for text in texts
    ):
        listed = ", ".join(map(repr, sorted(texts)[:3]))
        message = f"the answers are verdicts ({listed}), no claims: the model under test is a judge"
        raise describe_wrong_file(source, f"{message}; {WANTED_TABLE}")


def _match_fields(table: pd.DataFrame, patterns: Sequence[str]) -> list[str]:
    """The columns that fit patterns, those of the first pattern first."""
    columns = [*map(str, table.columns)]
    return [column for pattern in patterns for column in fnmatch.filter(columns, pattern)]


def _read_words(cells: pd.Series, recipe: Recipe) -> pd.Series:
    """Cells with the tool's own words as what they mean."""
    words = recipe["labels"]
    return cells.map(lambda cell: words.get(cell, cell) if isinstance(cell, str) else cell)


def _add_evaluators(
    made: pd.DataFrame, table: pd.DataFrame, recipe: Recipe, source: str
) -> pd.DataFrame:
    """The table with the columns of what each evaluator said; which is which stands in its
    ``attrs``. Raises `InputError` where a table has no evaluator."""
    found: dict[str, dict[str, str]] = {}
    known = {name for path in recipe["evaluators"] for name, _ in _match_names(path, table)}
    for kind in _KINDS:
        for path in recipe[kind]:
            for name, column in _match_names(path, table):
                own = found.setdefault(name, {})
                # A metric that always failed has a field without any score, and stays unscored.
                if kind not in own or table[own[kind]].isna().all():
                    own[kind] = column
    if recipe["evaluators"]:
        found = {name: own for name, own in found.items() if name in known}
    if not found and not recipe["rows"]:
        expected = (recipe["evaluators"] or recipe["score"])[0].partition(".")[0]
        message = f"no evaluator in it: expected columns {expected}"
        raise describe_wrong_file(source, message)
    evaluators: dict[str, EvaluatorColumnMapping] = {}
    for name, own in found.items():
        is_measure = name_has_word("measures", name.partition("(")[0])
        if is_measure or not {"score", "prediction"} & {*own}:
            continue
        said = _read_words(table[own.get("score", own.get("prediction"))], recipe)
        if _may_be_of_people(name, said):
            made[name] = said  # a column like any other: its name decides, or it is asked about
        else:
            columns, evaluators[name] = _read_evaluator(table, name, own, said)
            made = made.assign(**columns)
    made.attrs[EVALUATORS_KEY] = evaluators
    return made


def _match_names(path: str, table: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """The columns that a path with NAME in it fits, with what stands there for NAME."""
    pattern = re.compile(fnmatch.translate(path).replace("NAME", "(.+)"))
    for column in map(str, table.columns):
        if match := pattern.fullmatch(column):
            yield match[pattern.groups], column


def _may_be_of_people(name: str, said: pd.Series) -> bool:
    """Whether people may have said what is called ``human``, ``is_supported`` or ``checked``."""
    is_doubtful = name_has_word("doubtful_labels", name) and not name_has_word("judges", name)
    may_be_labels = is_doubtful and bool(said.dropna().isin((0, 1)).all())
    return is_name_of_person(name) or name.lower().startswith("is_") or may_be_labels


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
