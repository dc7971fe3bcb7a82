"""What each column of a table is: names decide, values only validate, and what is not certain is asked.

Each column of ours has names under which users know it (`vocabulary.yaml`). Other columns are evaluators or annotators
where their names say so (``gpt4_score``, ``annotator_2``). A column that is none of these and looks as if somebody had
judged in it is asked about: whose it is, or whether it is to be ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from factaudit.errors import UsageError, suggest_known_name
from factaudit.tables import CLAIM_COLUMNS
from factaudit.tables.column_kinds import (
    REASONS,
    classify_column,
    find_known_form,
    is_measure,
    is_name_of_model,
    is_name_of_person,
    is_quality,
    list_name_forms,
    split_evaluator_name,
)
from factaudit.tables.column_mapping import ColumnMapping, EvaluatorColumnMapping, match_column_patterns
from factaudit.tables.column_profiles import ColumnProfile, profile_column_for_mapping
from factaudit.tables.nested_lists import ROW_COLUMN
from factaudit.tables.questions import OpenQuestion
from factaudit.tables.role_questions import (
    ask_about_repeated_claims,
    ask_about_unclear_columns,
    doubt_columns_about_other_judgements,
    states_verdicts,
)
from factaudit.tables.schema import EVALUATORS_KEY
from factaudit.tables.standard_columns import OWN_COLUMNS, WANTED_CLAIM_COLUMNS, list_missing_standard_columns
from factaudit.tables.table_roles import TableRoles
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    has_vocabulary_word_in_column_name,
    is_name_of_annotator,
    normalise_vocabulary_words,
    parse_label_word,
)

#: Columns of ours that hold judgements: whose they are, the whole table tells.
_JUDGEMENT_ROLES = ("label", "score", "prediction")
#: Columns of ours that are read only beside an evaluator's name.
_LONG_FORM_ROLES = ("evaluator", "status", "raw", "chunk_scores", "repeat")
#: Names of a text that is the claim where nothing else is, and the document beside a claim.
_MERE_TEXTS = {"text", "texto", "texte", "testo", "tekst", "текст", "文本", "本文", "텍스트"}
#: Names of texts that may be a model's answers, or the answers expected.
_ANSWERS = {"answer", "answers", "response", "output", "outputs", "completion", "generation", "model answer"}


def place_standard_columns(name: str, rows: pd.DataFrame, kind: str, has_others: bool) -> TableRoles:
    """The columns of a table with our own names: these alone play a role, and those that stand for one that it lacks.

    Beside others a table of verdicts may say what its claims do not: their labels, documents or systems.
    """
    own = (*OWN_COLUMNS[kind], *(WANTED_CLAIM_COLUMNS if kind == "verdicts" and has_others else ()))
    names = [str(column) for column in rows.columns]
    missing = list_missing_standard_columns(kind, names, has_others)
    profiles = {one: profile_column_for_mapping(one, rows[one]) for one in names if one in {*own, *missing.values()}}
    table = TableRoles(name, rows, profiles, kind)
    table.roles = {ours: profiles[ours] for ours in own if ours in profiles}
    table.roles |= {ours: profiles[theirs] for ours, theirs in missing.items()}
    return table


def leave_out_other_evaluators(table: TableRoles, names: Sequence[str]) -> None:
    """Of a table with a row for each evaluator leave out those that the user did not name, if any are named."""
    if names and "evaluator" in table.roles:
        values = table.list_values(table.roles["evaluator"])
        others = {*values} - {*match_column_patterns(values, names), *table.people_evaluators}
        table.left_out |= dict.fromkeys(sorted(others), "not among the evaluators that you named")


def place_columns(
    name: str, rows: pd.DataFrame, given: ColumnMapping, has_others: bool = False, has_labels: bool = False
) -> TableRoles:
    """The columns of a user's table. What the user said is not asked again.

    has_others: it is one of several tables. has_labels: another table has people's labels for certain.
    """
    declared: dict[str, EvaluatorColumnMapping] = rows.attrs.get(EVALUATORS_KEY, {})
    hidden = {column for one in declared.values() for column in (one.raw, one.status, one.repeat)} | {ROW_COLUMN}
    columns = [str(column) for column in rows.columns if column not in hidden]
    table = TableRoles(name, rows, {column: profile_column_for_mapping(column, rows[column]) for column in columns})
    fixed = _place_what_the_user_named(table, given)
    if EVALUATORS_KEY in rows.attrs:  # a log, whose claims have our names
        own = [ours for ours in CLAIM_COLUMNS if ours in columns and table.is_free(ours) and ours not in fixed]
        table.roles |= {ours: table.profiles[ours] for ours in own}
    _place_declared_evaluators(table, declared, given)
    named = _find_named_evaluators(table, given.evaluator)
    table.evaluators |= _pair_scores_with_predictions(named)
    table.settled |= {one.name for one in named}
    _place_texts_and_names(table, fixed)
    kinds = {one.name: classify_column(one) for one in table.list_free_columns()}
    table.ignored |= {column: REASONS[kind] for column, kind in kinds.items() if kind in REASONS}
    _place_long_form(table, given, fixed, kinds, has_others)
    if not ("label" in table.roles or table.people_evaluators or (table.people and "label" not in fixed)):
        _place_labels(table, kinds, has_labels)
    _place_evaluators(table, given, kinds, has_labels)
    if "label" not in fixed:
        doubt_columns_about_other_judgements(table)
    is_ours = {"dataset", "claim", "label"} <= {*columns}  # of further columns nothing is asked
    may_ask = not is_ours and (not has_others or "claim" in table.roles)
    ask_about_unclear_columns(table, given, kinds if may_ask else {}, has_labels)
    if not {"evaluator", "annotator", "system"} & {*fixed}:
        ask_about_repeated_claims(table)
    if not {"score", "prediction"} & {*table.roles}:
        table.roles = {ours: one for ours, one in table.roles.items() if ours not in _LONG_FORM_ROLES}
        ids = table.roles.get("claim_id")
        is_wide = "annotator" not in table.roles and (table.evaluators or not has_others)
        if is_wide and ids is not None and table.rows[ids.name].duplicated().any():
            del table.roles["claim_id"]  # each system has a claim on each document
            table.roles.setdefault("doc_id", ids)
    return table


def _place_what_the_user_named(table: TableRoles, given: ColumnMapping) -> set[str]:
    """Place the columns that the mapping names; returns the columns of ours that have one so."""
    fixed = set[str]()
    for ours, theirs in given.columns.items():
        for name in [theirs] if isinstance(theirs, str) else theirs:
            if name in table.profiles and ours not in fixed:
                fixed.add(ours)
                table.roles[ours] = table.profiles[name]
    table.ignored = dict.fromkeys(match_column_patterns(table.profiles, given.ignore), "as you said")
    named = [*given.annotators.values(), *match_column_patterns(table.profiles, given.people)]
    table.people = [one for one in dict.fromkeys(named) if one in table.profiles]
    own = [one for pair in given.evaluators.values() for one in pair.columns]
    table.ignored |= {one: "as you said" for one in own if one in table.profiles}  # `given` has them already
    table.settled = {*table.ignored, *table.people, *(one.name for one in table.roles.values())}
    return fixed


def _place_declared_evaluators(
    table: TableRoles, declared: Mapping[str, EvaluatorColumnMapping], given: ColumnMapping
) -> None:
    """Place the evaluators of a log that the user wants; the columns of the others are ignored, or have the role that
    the user said."""
    taken = {*table.ignored, *table.people, *(one.name for one in table.roles.values())}
    why = "not among the evaluators that you named" if given.evaluator else "as you said"
    for name, one in declared.items():
        is_wanted = not given.evaluator or match_column_patterns([name], given.evaluator)
        if is_wanted and not match_column_patterns([name], given.ignore) and not taken & {*one.columns}:
            table.declared[name] = one
            columns = {"score": one.score, "prediction": one.prediction}
            table.evaluators[name] = {kind: column for kind, column in columns.items() if column}
        else:
            table.ignored |= dict.fromkeys((column for column in one.columns if column not in taken), why)


def _place_texts_and_names(table: TableRoles, fixed: set[str]) -> None:
    """Find the claims, documents, ids and names: each role's likeliest name first, exact names before parts of them."""
    forms = {one.name: list_name_forms(one.name) for one in table.list_free_columns()}
    ranked = sorted(
        (known.index(form), depth, order, ours, column)
        for order, (ours, known) in enumerate(COLUMN_NAMES.items())
        for column, own in forms.items()
        for depth, form in enumerate(own)
        if form in known and ours not in _JUDGEMENT_ROLES
    )
    texts: dict[str, list[ColumnProfile]] = {"claim": [], "doc": []}
    for _, _, _, ours, column in ranked:
        profile = table.profiles[column]
        if table.is_free(column) and _can_be(ours, profile):
            texts.setdefault(ours, []).append(profile)
            table.roles.setdefault(ours, profile)
    for ours in ("claim", "doc"):
        chosen = table.roles.get(ours)
        found = [one for one in texts[ours] if one == chosen or table.is_free(one.name)]
        if ours not in fixed and len(found) > 1 and _may_be_either(ours, found):
            listed = " and ".join(repr(one.name) for one in found[:3])
            text = f"{listed} may both hold the {'claims' if ours == 'claim' else 'documents'}"
            table.questions.append(OpenQuestion(text, [{"columns": {ours: one.name}} for one in found[:3]]))
        free = table.list_free_columns()
        if chosen is None and ours == "doc" and "claim" in table.roles:
            near = [one for one in free if normalise_vocabulary_words(one.name) in _MERE_TEXTS]
        else:
            near = [one for one in free if chosen is None and _has_word_of_role(ours, one)]
        near = [one for one in near if _can_be(ours, one)]
        if len(near) == 1:
            table.roles[ours] = near[0]


def _may_be_either(ours: str, found: Sequence[ColumnProfile]) -> bool:
    """Whether two texts may each be the claim (a model's answer, or the one expected), or the document."""
    first, second = (list_name_forms(one.name)[-1] for one in found[:2])
    if ours == "claim":
        return {first, second} <= _ANSWERS
    return first in ("reference", "references", "source") or "reference" in first


def _has_word_of_role(ours: str, column: ColumnProfile) -> bool:
    words = {name for name in COLUMN_NAMES[ours] if " " not in name}
    is_text = column.kind in ("text", "list") and not column.name.rstrip().endswith("?")
    return is_text and bool({*normalise_vocabulary_words(column.name).split()} & words)


def _can_be(role: str, column: ColumnProfile) -> bool:
    """Whether what a column holds fits a role that its name has."""
    name = normalise_vocabulary_words(column.name)
    if column.kind == "empty":
        return role == name.replace(" ", "_")
    if role in ("claim", "doc"):
        is_answer = has_vocabulary_word_in_column_name("answers", name) and name not in COLUMN_NAMES["doc"]
        is_text = column.kind == "text" and column.has_sentences
        is_other = column.has_questions or column.is_time or is_answer
        return (is_text or (role == "doc" and column.kind == "list")) and not is_other
    if role in ("system", "evaluator"):
        heading = column.name.rpartition(".")[0]  # "judge.model" says who judged, and not whose the claim is
        is_of_judge = "model" not in heading and has_vocabulary_word_in_column_name("judges", heading)
        is_named = column.kind == "text" or (role == "system" and column.kind in ("binary", "grade"))
        is_named = is_named and not column.has_both_verdicts and not (role == "system" and is_of_judge)
        return is_named and column.mean_length < 80
    if role == "annotator":
        said = {parse_label_word(word) for word in column.words if len(word) > 3} - {None}
        return not (column.is_unique or column.has_both_verdicts or said or column.kind == "list")
    if role.endswith("_id"):
        is_worded = column.has_both_verdicts and not {*column.words} <= {"0", "1"}
        is_long = column.mean_length > 80 or (role == "claim_id" and any(" " in word.strip() for word in column.words))
        is_fraction = column.low is not None and not column.is_whole
        return not (is_worded or is_long or is_fraction or column.kind == "list")
    if role == "dataset" and name == "data" and column.has_sentences:
        return False  # doccano's text
    return column.kind not in ("list", "share") and column.mean_length < 80


def _place_long_form(
    table: TableRoles, given: ColumnMapping, fixed: set[str], kinds: dict[str, str], has_others: bool
) -> None:
    """Find what the evaluator, or the annotator, named in each row said of the row's claim."""
    roles = table.roles
    if "system" in roles and not {"claim", "evaluator", *_JUDGEMENT_ROLES} & {*roles} and has_others:
        ids = roles.get("claim_id")  # a table of scores beside the claims: the model is who judged
        if ids is not None and table.rows[ids.name].duplicated().any():
            roles["evaluator"] = roles.pop("system")
    if "evaluator" in roles and not given.evaluators:
        _place_judgements_of_evaluators(table, kinds)
        if {"score", "prediction"} & {*roles}:
            values = table.list_values(roles["evaluator"])
            people = match_column_patterns(values, given.people) or [one for one in values if is_name_of_person(one)]
            others = {
                one: REASONS["measure" if is_measure(one) else "quality"]
                for one in sorted({*values} - {*people})
                if is_measure(one) or is_quality(one)
            }
            table.people_evaluators = people
            table.left_out = others if len(others) + len(people) < len(values) else {}
        else:
            _free_column(table, "evaluator", kinds)
    if "annotator" in roles and "label" not in roles and (label := _find_labels_of_annotators(table, kinds)):
        roles["label"] = label
    if "annotator" in roles and "label" not in roles:
        _free_column(table, "annotator", kinds)
    elif "annotator" in roles and "annotator" not in fixed and not given.people:
        _ask_about_annotators_like_models(table)
    ids = roles.get("response_id")
    if "annotator" in roles and ids is not None and ids.is_unique:
        table.ignored[roles.pop("response_id").name] = "the id of a row"


def _ask_about_annotators_like_models(table: TableRoles) -> None:
    column, label = table.roles["annotator"], table.roles["label"]
    values = table.list_values(column)
    people = [one for one in values if not is_name_of_model(one)]
    if len(people) < len(values):
        kind = "prediction" if label.kind == "binary" else "score"
        apart: dict[str, Any] = {"columns": {"evaluator": column.name, kind: label.name}}
        apart |= {"people": people} if people else {}
        models = ", ".join(repr(one) for one in values if one not in people)
        answers: list[Mapping[str, Any]] = [apart, {"columns": {"annotator": column.name, "label": label.name}}]
        table.questions.append(OpenQuestion(f"{column.name!r} names {models}: a model, or a person", answers))


def _free_column(table: TableRoles, ours: str, kinds: dict[str, str]) -> None:
    """Take a role from a column, which is then one like any other."""
    column = table.roles.pop(ours)
    kinds[column.name] = classify_column(column)


def _place_judgements_of_evaluators(table: TableRoles, kinds: Mapping[str, str]) -> None:
    """Find the score and the prediction beside the evaluator's name: by their names, or as a judge's only column."""
    roles = table.roles
    for ours in ("score", "prediction"):
        found = _find_by_role(table, ours, lambda one: one.can_hold_labels or bool(one.words))
        if ours not in roles and found:
            roles[ours] = found[0]
    judged = [table.profiles[name] for name, kind in kinds.items() if kind == "judge" and table.is_free(name)]
    if not {"score", "prediction"} & {*roles} and len(judged) == 1:
        roles["score" if judged[0].low is not None else "prediction"] = judged[0]


def _find_by_role(table: TableRoles, ours: str, fits: Callable[[ColumnProfile], bool]) -> list[ColumnProfile]:
    """The free columns that fit a role of ours by name, the likeliest name first."""
    known = COLUMN_NAMES[ours]
    forms = {one.name: find_known_form(one.name, known) for one in table.list_free_columns()}
    found = [table.profiles[name] for name, form in forms.items() if form is not None and fits(table.profiles[name])]
    return sorted(found, key=lambda one: known.index(str(forms[one.name])))


def _find_labels_of_annotators(table: TableRoles, kinds: Mapping[str, str]) -> ColumnProfile | None:
    """The column of what the annotator in each row said; of columns that only look so, there must be one."""
    by_name = _find_by_role(table, "label", lambda one: one.looks_judged)
    wanted = ("people", "label", "plain", "support", "unknown")
    others = [one for one in table.list_free_columns() if kinds.get(one.name) in wanted and one.looks_judged]
    return by_name[0] if by_name else others[0] if len(others) == 1 else None


def _place_labels(table: TableRoles, kinds: Mapping[str, str], has_labels: bool) -> None:
    """Find the column of labels, or those of single annotators."""
    possible = [one for one in table.list_free_columns() if one.can_hold_labels]
    free = [one for one in possible if one.looks_judged] or possible
    by_kind = {kind: [one for one in free if kinds.get(one.name) == kind] for kind in ("people", "label")}
    named = [one for one in by_kind["label"] if find_known_form(one.name, COLUMN_NAMES["label"])]
    exact = [one for one in named if normalise_vocabulary_words(one.name) == "label"]
    annotators = [one for one in possible if kinds.get(one.name) not in REASONS and is_name_of_annotator(one.name)]
    annotators = annotators if any(one in free for one in annotators) else []  # one of them may always say the same
    people = [one for one in by_kind["people"] if one not in annotators and not _may_say_who_judged(one)]
    people = [one for one in people if one.n_different > 1 or find_known_form(one.name, COLUMN_NAMES["label"])]
    settled = [one for one in (*by_kind["people"], *by_kind["label"]) if one not in annotators]
    settled = [one for one in settled if has_vocabulary_word_in_column_name("settled", one.name)]
    if len(annotators) > 1:
        table.people = [one.name for one in annotators]
    else:
        people += annotators
    labels = settled if len(settled) == 1 else people or exact or named
    rest = [one for one in named if one not in labels] if people and not has_labels else []
    if len(labels) != 1 or rest:
        table.doubt([*labels, *rest], "may hold the labels")
    if len(labels) == 1:
        table.roles["label"] = labels[0]
        table.people += [one.name for one in people if settled and one != labels[0] and one.name not in table.people]
        if table.people and not settled and not exact:
            table.doubt(labels, "stands beside the labels of annotators: labels, or what an evaluator said")


def _may_say_who_judged(column: ColumnProfile) -> bool:
    """Whether a column of people's may say who judged (an "annotator" 1 or 0), or whether anybody did ("reviewed")."""
    name = normalise_vocabulary_words(column.name)
    is_coded = {*column.words} <= {"0", "1"} and name in COLUMN_NAMES["annotator"]
    return is_coded or name.endswith(("reviewed", "annotated"))


def _place_evaluators(table: TableRoles, given: ColumnMapping, kinds: Mapping[str, str], has_labels: bool) -> None:
    """Find the evaluators of a wide table: a column each, or a score and a prediction."""
    if given.evaluators or "evaluator" in table.roles:
        return
    free = table.list_free_columns()
    if given.evaluator:
        others = [one.name for one in free if kinds.get(one.name) in ("judge", "plain")]
        table.ignored |= dict.fromkeys(others, "not among the evaluators that you named")
        return
    if {"score", "prediction"} & {*table.roles}:
        return
    wanted = ("judge", "support") if "label" in table.roles else ("judge",)
    judges = [one for one in free if kinds.get(one.name) in wanted]
    judges = [one for one in judges if one.looks_judged or one.low is not None or states_verdicts(table, one)]
    constant = [one.name for one in judges if one.n_different == 1 and len(table.rows) > 1]
    table.ignored |= dict.fromkeys(constant, REASONS["constant"])
    table.evaluators |= _pair_scores_with_predictions([one for one in judges if one.name not in constant])
    doubled = [one.name for one in judges if table.is_free(one.name)]
    table.ignored |= dict.fromkeys(doubled, "the same evaluator's word is read")
    if table.evaluators:
        return
    is_labelled = table.is_labelled or has_labels
    for ours in ("score", "prediction"):
        plain = _find_by_role(table, ours, lambda one: kinds.get(one.name) == "plain" and one.n_different > 1)
        plain = [one for one in plain if is_labelled or (one.low is not None and not one.is_whole)]
        plain = [one for one in plain if one.low is not None or one.looks_judged]
        table.roles |= {ours: plain[0]} if plain else {}


def _find_named_evaluators(table: TableRoles, names: Sequence[str]) -> list[ColumnProfile]:
    """The columns that the user names as evaluators: by their own names, by patterns, or by the evaluators' names."""
    said = {column for one in table.declared.values() for column in one.columns}
    free = [one.name for one in table.list_free_columns() if one.name not in said]
    found: dict[str, ColumnProfile] = {}
    for name in names:
        own = match_column_patterns(free, [name]) or [one for one in free if split_evaluator_name(one)[0] == name]
        found |= {one: table.profiles[one] for one in own}
    return [*found.values()]


def check_named_evaluators(tables: Sequence[TableRoles], names: Sequence[str]) -> None:
    """Raise `UsageError` for an evaluator that the user names and no table has."""
    columns = [column for table in tables for column in table.profiles]
    known = [*columns, *(split_evaluator_name(one)[0] for one in columns), *(n for one in tables for n in one.declared)]
    for table in tables:
        if "evaluator" in table.profiles or "evaluator" in table.roles:
            known += table.list_values(table.roles.get("evaluator") or table.profiles["evaluator"])
    for name in names:
        if not match_column_patterns(known, [name]):
            message = f"no evaluator or column {name!r} in it{suggest_known_name(name, [*dict.fromkeys(columns)])}"
            raise UsageError(f"{', '.join(table.name for table in tables)}: {message}")


def _pair_scores_with_predictions(columns: Sequence[ColumnProfile]) -> dict[str, dict[str, str]]:
    """By evaluator's name its columns: those of one name together, where one has scores and the other predictions."""
    by_name: dict[str, list[ColumnProfile]] = {}
    for one in columns:
        by_name.setdefault(split_evaluator_name(one.name)[0], []).append(one)
    found: dict[str, dict[str, str]] = {}
    for name, own in by_name.items():
        if len(own) == 2 and all(one.low is None for one in own):  # 0 and 1 beside the word for it
            own = [one for one in own if split_evaluator_name(one.name)[1] != "score"] or own
        kinds = ["score" if one.low is not None else "prediction" for one in own]
        if len({*kinds}) == len(own):
            found[name] = {kind: one.name for kind, one in zip(kinds, own, strict=True)}
        else:
            found |= {one.name: {kind: one.name} for kind, one in zip(kinds, own, strict=True)}
    return found
