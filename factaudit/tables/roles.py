"""What each column of a table is: names decide, values only validate, and what is not certain is asked.

Each column of ours has names under which users know it (`vocabulary.yaml`). Other columns are evaluators or annotators
where their names say so (``gpt4_score``, ``annotator_2``). A column that is none of these and looks as if somebody had
judged in it is asked about: whose it is, or whether it is to be ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from factaudit.errors import UsageError, suggest_known_name
from factaudit.tables import CLAIM_COLUMNS
from factaudit.tables.column_kinds import (
    REASONS,
    can_hold_labels,
    classify_column,
    find_known_form,
    has_words_of_labels,
    is_name_of_person,
    list_measures,
    list_name_forms,
    looks_judged,
    split_evaluator_name,
)
from factaudit.tables.column_mapping import ColumnMapping, EvaluatorColumnMapping, match_column_patterns
from factaudit.tables.column_profiles import ColumnProfile, profile_column_for_mapping
from factaudit.tables.nested_lists import ROW_COLUMN
from factaudit.tables.questions import OpenQuestion, PossibleReading
from factaudit.tables.role_questions import (
    ask_about_acceptance,
    ask_about_annotators_like_models,
    ask_about_repeated_claims,
    ask_about_unplaced_columns,
    ask_whether_label_is_of_being_right,
    ask_which_is_the_label,
    states_verdicts,
)
from factaudit.tables.schema import EVALUATORS_KEY
from factaudit.tables.standard_columns import OWN_COLUMNS, WANTED_CLAIM_COLUMNS, list_missing_standard_columns
from factaudit.tables.table_roles import TableRoles
from factaudit.tables.vocabulary import (
    ANNOTATOR_COLUMN_PATTERN,
    COLUMN_NAMES,
    NUMBERED_PERSON_PATTERN,
    has_vocabulary_word_in_column_name,
    normalise_vocabulary_words,
    parse_label_word,
)

#: Columns of ours that hold judgements: whose they are, the whole table tells.
_JUDGEMENT_ROLES = ("label", "score", "prediction")


#: Columns of ours that are read only beside an evaluator's name.
_LONG_FORM_ROLES = ("evaluator", "status", "raw", "chunk_scores", "repeat")


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
        own = [ours for ours in CLAIM_COLUMNS if ours in columns and table.is_free(ours)]
        table.roles |= {ours: table.profiles[ours] for ours in own if ours not in fixed}
    table.declared = _choose_declared_evaluators(table, declared, given)
    named = _find_named_evaluators(table, given.evaluator)
    table.evaluators = {
        name: {kind: column for kind in ("score", "prediction") if (column := getattr(one, kind))}
        for name, one in table.declared.items()
    } | _pair_scores_with_predictions(named)
    _place_texts_and_names(table, fixed)
    kinds = {one.name: classify_column(one) for one in table.list_free_columns()}
    table.ignored |= {column: REASONS[kind] for column, kind in kinds.items() if kind in REASONS}
    _place_long_form(table, given, fixed, kinds, has_others)
    if "label" not in table.roles and not (table.people_evaluators or (table.people and "label" not in fixed)):
        _place_labels(table, kinds, has_labels)
    _place_evaluators(table, given, kinds, has_labels)
    is_ours = {"dataset", "claim", "label"} <= {*columns}  # of further columns nothing is asked
    if not is_ours and (not has_others or "claim" in table.roles):
        ask_about_unplaced_columns(table, given, kinds, has_labels)
    if not {"evaluator", "annotator", "system"} & {*fixed}:
        ask_about_repeated_claims(table)
    if "label" not in fixed:
        ask_whether_label_is_of_being_right(table)
        ask_about_acceptance(table)
    if not {"score", "prediction"} & {*table.roles}:
        table.roles = {ours: one for ours, one in table.roles.items() if ours not in _LONG_FORM_ROLES}
        if "annotator" not in table.roles and (table.evaluators or not has_others):
            _take_repeated_ids_for_those_of_documents(table)
    return table


def _choose_declared_evaluators(
    table: TableRoles, declared: Mapping[str, EvaluatorColumnMapping], given: ColumnMapping
) -> dict[str, EvaluatorColumnMapping]:
    """The evaluators of a log that the user wants; the columns of the others are ignored, or have the role that the
    user said."""
    taken = {*table.ignored, *table.people, *(one.name for one in table.roles.values())}
    chosen = {
        name: one
        for name, one in declared.items()
        if (not given.evaluator or match_column_patterns([name], given.evaluator))
        and not match_column_patterns([name], given.ignore)
        and not taken & {*one.columns}
    }
    others = [column for name, one in declared.items() if name not in chosen for column in one.columns]
    why = "not among the evaluators that you named" if given.evaluator else "as you said"
    table.ignored |= dict.fromkeys((column for column in others if column not in taken), why)
    return chosen


def _place_what_the_user_named(table: TableRoles, given: ColumnMapping) -> dict[str, str]:
    """Place the columns that the mapping names; returns those that have a role, by the role."""
    fixed: dict[str, str] = {}
    for ours, theirs in given.columns.items():
        present = [one for one in ([theirs] if isinstance(theirs, str) else theirs) if one in table.profiles]
        if present:
            fixed[ours] = present[0]
            table.roles[ours] = table.profiles[present[0]]
    table.ignored = dict.fromkeys(match_column_patterns(table.profiles, given.ignore), "as you said")
    table.people = [column for column in given.annotators.values() if column in table.profiles]
    named = match_column_patterns(table.profiles, given.people)
    table.people += [one for one in named if one not in table.people]
    own = [one for pair in given.evaluators.values() for one in (pair.score, pair.prediction)]
    table.ignored |= {one: "as you said" for one in own if one in table.profiles}  # `given` has them already
    return fixed


def _place_texts_and_names(table: TableRoles, fixed: Mapping[str, str]) -> None:
    """Find the claims, documents, ids and names: each role's likeliest name first, exact names before parts of them."""
    forms = {one.name: list_name_forms(one.name) for one in table.list_free_columns()}
    ranked = sorted(
        (known.index(form), depth, order, ours, column)
        for order, (ours, known) in enumerate(COLUMN_NAMES.items())
        for column, own in forms.items()
        for depth, form in enumerate(own)
        if form in known and ours not in _JUDGEMENT_ROLES
    )
    candidates: dict[str, list[ColumnProfile]] = {}
    for _, _, _, ours, column in ranked:
        profile = table.profiles[column]
        if not table.is_free(column) or not _can_be(ours, profile):
            continue
        if ours in ("claim", "doc"):
            candidates.setdefault(ours, []).append(profile)
        if ours not in table.roles:
            table.roles[ours] = profile
    for ours, described in (("claim", "the claims"), ("doc", "the documents")):
        free = {table.roles[ours].name, *_names(table)} if ours in table.roles else set()
        found = [one for one in candidates.get(ours, []) if one.name in free]
        if ours not in fixed and len(found) > 1 and _may_be_either(ours, found):
            ways = [PossibleReading(f"{one.name} holds {described}", {"columns": {ours: one.name}}) for one in found]
            listed = " and ".join(repr(one.name) for one in found[:3])
            table.questions.append(OpenQuestion(f"{listed} may both hold {described}", ways[:3]))
        if ours == "doc" and "claim" in table.roles and "doc" not in table.roles:
            texts = [one for one in table.list_free_columns() if normalise_vocabulary_words(one.name) in _MERE_TEXTS]
            if len(texts) == 1 and _can_be("doc", texts[0]):
                table.roles["doc"] = texts[0]
        if ours not in table.roles:
            near = [one for one in table.list_free_columns() if _has_word_of_role(ours, one) and _can_be(ours, one)]
            if len(near) == 1:
                table.roles[ours] = near[0]


def _names(table: TableRoles) -> list[str]:
    return [one.name for one in table.list_free_columns()]


#: Names under which a text surely is the claim or the document, whatever other texts are there.
_SURE_NAMES = {
    "claim": {"claim", "claim text", "sentence", "statement", "hypothesis", "atomic fact", "fact", "claim sentence"},
    "doc": {"doc", "document", "context", "contexts", "evidence", "premise", "source document", "doc text", "passage"},
}


#: Names of a text that is the claim where nothing else is, and the document beside a claim.
_MERE_TEXTS = {"text", "texto", "texte", "testo", "tekst", "текст", "文本", "本文", "텍스트"}


#: Names of texts that may be a model's answers, or the answers expected.
_ANSWERS = {"answer", "answers", "response", "output", "outputs", "completion", "generation", "model answer"}


def _may_be_either(ours: str, found: Sequence[ColumnProfile]) -> bool:
    """Whether two texts may each be the claim (a model's answer, or the one expected), or the document."""
    first, second = (list_name_forms(one.name)[-1] for one in found[:2])
    if first in _SURE_NAMES[ours]:
        return False
    return {first, second} <= _ANSWERS if ours == "claim" else "reference" in first or "reference" in second


def _has_word_of_role(ours: str, column: ColumnProfile) -> bool:
    words = {name for name in COLUMN_NAMES[ours] if " " not in name}
    is_text = column.kind in ("text", "name", "list") and not column.name.rstrip().endswith("?")
    return is_text and bool({*normalise_vocabulary_words(column.name).split()} & words)


def _can_be(role: str, column: ColumnProfile) -> bool:
    """Whether what a column holds fits a role that its name has."""
    name = normalise_vocabulary_words(column.name)
    if column.kind == "empty":
        return role == name.replace(" ", "_")
    if role in ("claim", "doc"):
        if (
            column.has_questions
            or column.is_time
            or (has_vocabulary_word_in_column_name("answers", name) and name not in COLUMN_NAMES["doc"])
        ):
            return False
        has_sentences = column.mean_length >= 15 or any(" " in word.strip() for word in column.words)
        is_text = column.kind == "text" or (column.kind in ("name", "id") and has_sentences)
        return is_text or (role == "doc" and column.kind == "list")
    if role in ("system", "evaluator"):
        is_named = column.kind in ("name", "id", "text") or (role == "system" and column.kind in ("binary", "grade"))
        is_named = is_named and not column.has_both_verdicts and not _is_of_judge(role, column.name)
        return is_named and column.mean_length < 80
    if role == "annotator":
        said = {parse_label_word(word) for word in column.words if len(word) > 3} - {None}
        is_row = column.n_different == column.n_present > 1  # respondents of a form, one a row
        return not (is_row or column.has_both_verdicts or said or column.kind == "list")
    if role.endswith("_id"):
        is_worded = column.has_both_verdicts and not {*column.words} <= {"0", "1"}
        is_long = column.mean_length > 80 or (role == "claim_id" and any(" " in word.strip() for word in column.words))
        return not is_worded and not is_long and column.kind != "list" and (column.is_whole or not column.is_fine_score)
    if role == "dataset" and name == "data" and column.kind == "text":
        return False  # doccano's text
    return column.kind not in ("list", "share") and column.mean_length < 80


def _is_of_judge(role: str, column_name: str) -> bool:
    """Whether a name such as ``judge.model`` says who judged, and not whose the claim is."""
    heading = column_name.rpartition(".")[0]
    return role == "system" and "model" not in heading and has_vocabulary_word_in_column_name("judges", heading)


def _place_long_form(
    table: TableRoles, given: ColumnMapping, fixed: Mapping[str, str], kinds: dict[str, str], has_others: bool
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
            table.people_evaluators = match_column_patterns(values, given.people) or [
                one for one in values if is_name_of_person(one)
            ]
            table.left_out = list_measures(set(values) - {*table.people_evaluators})
        else:
            _free_column(table, "evaluator", kinds)
    if "annotator" in roles and "label" not in roles and (label := _find_labels_of_annotators(table, kinds)):
        roles["label"] = label
    if "annotator" in roles and "label" not in roles:
        _free_column(table, "annotator", kinds)
    elif "annotator" in roles and "annotator" not in fixed:
        ask_about_annotators_like_models(table, given)
    ids = roles.get("response_id")
    if "annotator" in roles and ids is not None and ids.n_different == ids.n_present:
        table.ignored[roles.pop("response_id").name] = "the id of a row"


def _free_column(table: TableRoles, ours: str, kinds: dict[str, str]) -> None:
    """Take a role from a column, which is then one like any other."""
    column = table.roles.pop(ours)
    kinds[column.name] = classify_column(column)


def _place_judgements_of_evaluators(table: TableRoles, kinds: Mapping[str, str]) -> None:
    """Find the score and the prediction beside the evaluator's name: by their names, or as a judge's only column."""
    roles = table.roles
    for ours in ("score", "prediction"):
        known = COLUMN_NAMES[ours]
        found = [table.profiles[name] for name in kinds if table.is_free(name) and find_known_form(name, known)]
        found = [one for one in found if looks_judged(one) or one.kind in ("number", "grade") or one.words]
        if ours not in roles and found:
            roles[ours] = _choose_likeliest_name(found, known)
    if {"score", "prediction"} & {*roles}:
        return
    stem = normalise_vocabulary_words(roles["evaluator"].name).split()[0]
    judged = [table.profiles[name] for name, kind in kinds.items() if kind == "judge" and table.is_free(name)]
    near = [one for one in judged if normalise_vocabulary_words(one.name).split()[0] == stem]
    for one in near or (judged if len(judged) == 1 else []):
        roles.setdefault("score" if one.low is not None else "prediction", one)


def _find_labels_of_annotators(table: TableRoles, kinds: Mapping[str, str]) -> ColumnProfile | None:
    """The column of what the annotator in each row said; of columns that only look so, there must be one."""
    wanted = ("people", "label", "plain", "support", "unknown")
    free = [table.profiles[name] for name, kind in kinds.items() if table.is_free(name) and kind in wanted]
    found = [one for one in free if looks_judged(one) or has_words_of_labels(one)]
    telling = [one for one in found if kinds[one.name] != "unknown"]
    found = telling or (found if len(found) == 1 else [])
    return _choose_likeliest_name(found, COLUMN_NAMES["label"]) if found else None


def _choose_likeliest_name(columns: Sequence[ColumnProfile], known: Sequence[str]) -> ColumnProfile:
    """The column whose name comes first among known ones."""
    forms = {one.name: find_known_form(one.name, known) for one in columns}
    return min(columns, key=lambda one: known.index(form) if (form := forms[one.name]) else len(known))


def _place_labels(table: TableRoles, kinds: Mapping[str, str], has_labels: bool) -> None:
    """Find the column of labels, or those of single annotators."""
    possible = [one for one in table.list_free_columns() if can_hold_labels(one)]
    free = [one for one in possible if looks_judged(one) or has_words_of_labels(one)] or possible
    numbered = [one for one in possible if kinds.get(one.name) in ("people", "label", "unknown") and _is_annotator(one)]
    numbered = numbered if any(one in free for one in numbered) else []  # one of them may always say the same
    named = [one for one in free if kinds.get(one.name) == "label" and find_known_form(one.name, COLUMN_NAMES["label"])]
    exact = [one for one in named if normalise_vocabulary_words(one.name) == "label"]
    people = [
        one for one in free if kinds.get(one.name) == "people" and one not in numbered and _varies_or_is_named(one)
    ]
    people = [one for one in people if not _may_say_who_judged(one)]
    settled = [one for one in free if kinds.get(one.name) in ("people", "label") and one not in numbered]
    settled = [one for one in settled if has_vocabulary_word_in_column_name("settled", one.name)]
    if len(numbered) > 1:
        table.people = [one.name for one in numbered]
    else:
        people += numbered
    labels = settled if len(settled) == 1 else people or exact or named
    if len(labels) == 1:
        table.roles["label"] = labels[0]
        table.people += [one.name for one in people if settled and one != labels[0] and one.name not in table.people]
        rest = [one for one in named if one not in labels]
        if people and rest and not has_labels:
            ask_which_is_the_label(table, [labels[0], *rest[:2]])
    elif labels:
        ask_which_is_the_label(table, labels)
    if table.people and "label" in table.roles and not settled and not exact:
        name = table.roles["label"].name
        ways = [
            PossibleReading(
                f"{name} holds the labels, {', '.join(table.people)} one annotator's each",
                {"columns": {"label": name}, "people": table.people},
            ),
            PossibleReading(f"{name} is an evaluator", {"people": table.people, "evaluator": [name]}),
            PossibleReading(f"ignore {name}", {"people": table.people, "ignore": [name]}),
        ]
        text = f"{name} stands beside the labels of annotators: labels, or what an evaluator said"
        table.questions.append(OpenQuestion(text, ways))


def _may_say_who_judged(column: ColumnProfile) -> bool:
    """Whether a column of people's may say who judged (an "annotator" 1 or 0), or whether anybody did ("reviewed")."""
    name = normalise_vocabulary_words(column.name)
    is_coded = {*column.words} <= {"0", "1"} and name in COLUMN_NAMES["annotator"]
    return is_coded or bool({*name.split()[-1:]} & {"reviewed", "annotated"})


def _varies_or_is_named(column: ColumnProfile) -> bool:
    """Whether a column of people's has different values, or is called a label whatever it says."""
    return column.n_different > 1 or find_known_form(column.name, COLUMN_NAMES["label"]) is not None


def _is_annotator(column: ColumnProfile) -> bool:
    name = normalise_vocabulary_words(column.name)
    return bool(ANNOTATOR_COLUMN_PATTERN.fullmatch(name) or NUMBERED_PERSON_PATTERN.search(name))


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
    judges = [
        one
        for one in free
        if kinds.get(one.name) in (("judge", "support") if "label" in table.roles else ("judge",))
        and (looks_judged(one) or one.low is not None or has_words_of_labels(one) or states_verdicts(table, one))
    ]
    constant = [one for one in judges if one.n_different == 1 and len(table.rows) > 1]
    table.ignored |= {one.name: REASONS["constant"] for one in constant}
    table.evaluators |= _pair_scores_with_predictions([one for one in judges if one not in constant])
    taken = {name for pair in table.evaluators.values() for name in pair.values()}
    doubled = [one.name for one in judges if one.name not in taken and one not in constant]
    table.ignored |= dict.fromkeys(doubled, "the same evaluator's word is read")
    if table.evaluators:
        return
    is_labelled = "label" in table.roles or bool(table.people) or has_labels
    plain = [one for one in free if kinds.get(one.name) == "plain" and one.n_different > 1]
    for ours in ("score", "prediction"):
        known = COLUMN_NAMES[ours]
        found = [one for one in plain if find_known_form(one.name, known) and (is_labelled or one.is_fine_score)]
        found = [one for one in found if one.low is not None or one.kind == "binary" or has_words_of_labels(one)]
        if found:
            table.roles[ours] = _choose_likeliest_name(found, known)


def _find_named_evaluators(table: TableRoles, names: Sequence[str]) -> list[ColumnProfile]:
    """The columns that the user names as evaluators: by their own names, by patterns, or by the evaluators' names."""
    found: list[ColumnProfile] = []
    said = {column for one in table.declared.values() for column in one.columns}
    free = [one for one in table.list_free_columns() if one.name not in said]
    for name in names:
        own = match_column_patterns([one.name for one in free], [name])
        own = own or [one.name for one in free if split_evaluator_name(one.name)[0] == name]
        found += [table.profiles[one] for one in own if table.profiles[one] not in found]
    return found


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
        kinds = ["score" if one.low is not None else "prediction" for one in own]
        if kinds == ["prediction"] * 2:  # a score of 0 and 1 beside the word for it
            own = [
                one for one in own if split_evaluator_name(one.name)[1] not in ("score", "prob", "probability")
            ] or own
            kinds = kinds[: len(own)]
        if len(set(kinds)) == len(own):
            found[name] = {kind: one.name for kind, one in zip(kinds, own, strict=True)}
        else:
            found |= {one.name: {kind: one.name} for kind, one in zip(kinds, own, strict=True)}
    return found


def _take_repeated_ids_for_those_of_documents(table: TableRoles) -> None:
    """Take ids that repeat in a table of a row per claim for the ids of documents: each system has a claim on each."""
    column = table.roles.get("claim_id")
    if column is not None and table.rows[column.name].duplicated().any():
        del table.roles["claim_id"]
        table.roles.setdefault("doc_id", column)
