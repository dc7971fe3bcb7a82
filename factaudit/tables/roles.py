"""Decides the role of each column of a table by its name. Values only validate a role, and what is
not certain is asked.

Each of factaudit's columns has other names under which users know it (`vocabulary.yaml`). Other
columns belong to an evaluator or an annotator if their names say so (``gpt4_score``,
``annotator_2``). A column without a role that looks as if somebody judged in it is unclear:
`factaudit.tables.role_questions` asks whose it is, or whether to ignore it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import pandas as pd

from factaudit.errors import UsageError, suggest_known_name
from factaudit.tables.column_kinds import (
    REASONS,
    find_known_form,
    is_measure,
    is_name_of_person,
    is_quality,
    list_name_forms,
    split_evaluator_name,
)
from factaudit.tables.column_mapping import (
    ColumnMapping,
    EvaluatorColumnMapping,
    match_column_patterns,
)
from factaudit.tables.column_profiles import ColumnProfile, profile_column
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.questions import OpenQuestion
from factaudit.tables.schema import CLAIM_COLUMNS, EVALUATORS_KEY
from factaudit.tables.standard_columns import (
    OWN_COLUMNS,
    WANTED_CLAIM_COLUMNS,
    find_other_names,
)
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    is_name_of_annotator,
    name_has_word,
    normalise_words,
    parse_label_word,
)

#: Columns with judgements. Whose they are depends on the whole table.
_JUDGEMENT_ROLES = ("label", "score", "prediction")
#: Columns that are read only in tables that name the evaluator of each row.
_LONG_FORM_ROLES = ("evaluator", "status", "raw", "chunk_scores", "repeat")
#: Names of a column of texts that are the documents if there are claims.
_MERE_TEXTS = {"text", "texto", "texte", "testo", "tekst", "текст", "文本", "本文", "텍스트"}
#: Names of columns that may hold a model's answers or the expected answers.
_ANSWERS = {
    "answer",
    "answers",
    "response",
    "output",
    "outputs",
    "completion",
    "generation",
    "model answer",
}
_NOT_NAMED = "not among the evaluators that you named"


@dataclass
class TableRoles:
    """The roles of the columns of one table. All columns have their names in the table.

    roles: factaudit's name of a column to its name in the table. people: columns with the
    judgements of one annotator each. people_evaluators: evaluators of the long form that are
    people. left_out: evaluators of the long form that are not read, and why. ignored, unclear:
    columns that are not read, or not certain, and why. settled: columns whose role the user said.
    kind: what a table with factaudit's columns is.
    """

    name: str
    rows: pd.DataFrame
    columns: dict[str, ColumnProfile]
    given: ColumnMapping = field(default_factory=ColumnMapping)
    kind: str | None = None
    roles: dict[str, str] = field(default_factory=dict)
    people: list[str] = field(default_factory=list)
    evaluators: dict[str, EvaluatorColumnMapping] = field(default_factory=dict)
    people_evaluators: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)
    unclear: dict[str, str] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    questions: list[OpenQuestion] = field(default_factory=list)

    @property
    def is_labelled(self) -> bool:
        return "label" in self.roles or bool(self.people or self.people_evaluators)

    @property
    def is_judged(self) -> bool:
        return bool(
            self.evaluators or self.given.evaluators or {"score", "prediction"} & {*self.roles}
        )

    def list_free_columns(self, *kinds: str) -> list[str]:
        """The columns without a role. kinds: only those whose name says one of these
        (`ColumnProfile.calls`)."""
        taken = {*self.roles.values(), *self.people, *self.ignored}
        taken |= {column for one in self.evaluators.values() for column in one.columns}
        return [
            name
            for name, one in self.columns.items()
            if name not in taken and (not kinds or one.calls in kinds)
        ]

    def find_by_role(self, ours: str, fits: Callable[[ColumnProfile], bool]) -> list[str]:
        """The free columns that have a name of a role and whose values fit it. The likeliest name
        comes first."""
        known = COLUMN_NAMES[ours]
        forms = {name: find_known_form(name, known) for name in self.list_free_columns()}
        named = [
            name for name, form in forms.items() if form is not None and fits(self.columns[name])
        ]
        return sorted(named, key=lambda name: known.index(str(forms[name])))

    def list_values(self, column: str) -> list[str]:
        """The distinct values of a column, as text."""
        return [*dict.fromkeys(str(one) for one in self.rows[column] if not is_missing_value(one))]

    def doubt(self, columns: Iterable[str], why: str) -> None:
        """Note that the role of columns is unclear. Only the first doubt about a column counts, and
        none if the user said what it is."""
        for name in columns:
            if name not in self.settled:
                self.unclear.setdefault(name, why)


def place_standard_columns(
    name: str, rows: pd.DataFrame, kind: str, has_others: bool, given: ColumnMapping
) -> TableRoles:
    """The roles in a table with factaudit's columns. Only these columns have a role, and those that
    stand for one of them that is missing.

    If there are other tables, a table of verdicts may hold labels, documents or systems that the
    table of claims lacks.
    """
    own = (*OWN_COLUMNS[kind], *(WANTED_CLAIM_COLUMNS if kind == "verdicts" and has_others else ()))
    named = _find_named_columns(given, rows)
    left = {*named.values(), *match_column_patterns(map(str, rows.columns), given.ignore)}
    roles = {ours: ours for ours in own if ours in rows and ours not in left}
    roles |= find_other_names(kind, rows.columns, has_others) | named
    columns = {one: profile_column(one, rows[one]) for one in roles.values()}
    return TableRoles(name, rows, columns, kind=kind, roles=roles)


def _find_named_columns(given: ColumnMapping, rows: pd.DataFrame) -> dict[str, str]:
    """factaudit's name of a column to its name in the table, as the user says."""
    found: dict[str, str] = {}
    for ours, theirs in given.columns.items():
        present = [one for one in ([theirs] if isinstance(theirs, str) else theirs) if one in rows]
        found |= {ours: present[0]} if present else {}
    return found


def place_columns(
    name: str,
    rows: pd.DataFrame,
    given: ColumnMapping,
    has_others: bool = False,
    has_labels: bool = False,
) -> TableRoles:
    """The roles of the columns of a user's table. Nothing that the user said is asked again.

    has_others: there are several tables. has_labels: another table certainly has labels by people.
    """
    declared: dict[str, EvaluatorColumnMapping] = rows.attrs.get(EVALUATORS_KEY, {})
    names = [*map(str, rows.columns)]
    table = TableRoles(name, rows, {one: profile_column(one, rows[one]) for one in names}, given)
    _place_what_the_user_named(table, declared)
    if EVALUATORS_KEY in rows.attrs:  # the columns of a log's claims have factaudit's names
        free = table.list_free_columns()
        table.roles |= {
            ours: ours for ours in CLAIM_COLUMNS if ours in free and ours not in table.roles
        }
    _place_texts_and_names(table)
    table.ignored |= {
        one: REASONS[table.columns[one].calls] for one in table.list_free_columns(*REASONS)
    }
    _place_long_form(table, has_others)
    if not (
        "label" in table.roles
        or table.people_evaluators
        or (table.people and "label" not in given.columns)
    ):
        _place_labels(table, has_labels)
    if not (given.evaluators or {"evaluator", "score", "prediction"} & {*table.roles}):
        _place_evaluators(table, has_labels)
    if not {"score", "prediction"} & {*table.roles}:
        table.roles = {
            ours: one
            for ours, one in table.roles.items()
            if ours not in _LONG_FORM_ROLES or ours in given.columns
        }
        ids = table.roles.get("claim_id")
        is_wide = not {"annotator", "repeat"} & {*table.roles}
        is_wide &= bool(table.evaluators) or not has_others
        # A column that the user, or its own name, calls the claims' id must be one.
        is_certain = "claim_id" in given.columns or normalise_words(ids or "") == "claim id"
        if is_wide and ids is not None and not is_certain and rows[ids].duplicated().any():
            del table.roles["claim_id"]  # the claims of several systems share a document
            table.roles.setdefault("doc_id", ids)
    return table


def _place_what_the_user_named(
    table: TableRoles, declared: dict[str, EvaluatorColumnMapping]
) -> None:
    """Place the columns that the mapping names, and the evaluators of a log that the user wants."""
    given, names = table.given, [*table.columns]
    table.roles |= _find_named_columns(given, table.rows)
    table.people = match_column_patterns(names, given.people)
    # The mapping has these already.
    own = [column for one in given.evaluators.values() for column in one.columns]
    table.ignored = dict.fromkeys(
        [*match_column_patterns(names, given.ignore), *own], "as you said"
    )
    table.settled = {*table.ignored, *table.people, *table.roles.values()}
    free = table.list_free_columns()
    for name, one in declared.items():
        free = [column for column in free if column not in one.columns]
        is_wanted = match_column_patterns([name], given.evaluator or ["*"])
        if (
            is_wanted
            and not match_column_patterns([name], given.ignore)
            and not table.settled & {*one.columns}
        ):
            table.evaluators[name] = one
        else:
            left = [column for column in one.columns if column not in table.settled]
            table.ignored |= dict.fromkeys(left, "as you said" if is_wanted else _NOT_NAMED)
    named: dict[str, None] = {}
    for evaluator in given.evaluator:
        by_name = [one for one in free if split_evaluator_name(one)[0] == evaluator]
        named |= dict.fromkeys(match_column_patterns(free, [evaluator]) or by_name)
    _add_evaluators(table, [*named])
    table.settled |= {*named}


def _place_texts_and_names(table: TableRoles) -> None:
    """Find the columns of claims, documents, ids and names, by the likeliest of their names."""
    for ours in COLUMN_NAMES:
        if ours in _JUDGEMENT_ROLES or ours in table.roles:
            continue
        found = table.find_by_role(ours, lambda column, role=ours: _can_be(role, column))  # type: ignore[misc]
        if ours in ("claim", "doc"):
            near = (
                []
                if found
                else [
                    one for one in table.list_free_columns() if _has_word_of_role(table, ours, one)
                ]
            )
            found = near if len(near) == 1 else found
            if len(found) > 1 and _may_be_either(ours, found):
                what = (
                    f"{' and '.join(map(repr, found[:3]))} may both hold the"
                    f" {ours.replace('doc', 'document')}s"
                )
                table.questions.append(
                    OpenQuestion(what, [{"columns": {ours: one}} for one in found[:3]])
                )
        table.roles |= {ours: found[0]} if found else {}


def _may_be_either(ours: str, columns: Sequence[str]) -> bool:
    """Whether two columns of texts may each hold the claims (a model's answers, or the expected
    ones), or the documents."""
    first, second = (list_name_forms(one)[-1] for one in columns[:2])
    return (
        {first, second} <= _ANSWERS
        if ours == "claim"
        else first == "source" or "reference" in first
    )


def _has_word_of_role(table: TableRoles, ours: str, column: str) -> bool:
    """Whether a column of texts has the name of a role among other words, or is the only text
    beside the claims."""
    name, held = normalise_words(column), table.columns[column]
    if (
        held.kind not in ("text", "list")
        or column.rstrip().endswith("?")
        or not _can_be(ours, held)
    ):
        return False
    if ours == "doc" and "claim" in table.roles:
        return name in _MERE_TEXTS
    return bool({*name.split()} & {one for one in COLUMN_NAMES[ours] if " " not in one})


def _can_be(role: str, column: ColumnProfile) -> bool:
    """Whether the values of a column fit a role that its name has."""
    name = normalise_words(column.name)
    if column.kind == "empty":
        return role == name.replace(" ", "_")
    if role in ("claim", "doc"):
        if name == role and column.kind == "text":
            return True  # an exact name decides
        is_answer = name_has_word("answers", name) and name not in COLUMN_NAMES["doc"]
        is_text = (column.kind == "text" and column.has_sentences) or (
            role == "doc" and column.kind == "list"
        )
        return is_text and not (column.has_questions or column.is_time or is_answer)
    if column.kind == "list":
        return False
    if role.endswith("_id"):
        is_worded = column.has_both_verdicts and not {*column.words} <= {"0", "1"}
        is_phrase = role == "claim_id" and any(" " in word.strip() for word in column.words)
        is_fraction = column.low is not None and not column.is_whole
        return not (is_worded or is_phrase or is_fraction or column.mean_length > 80)
    if role == "annotator":
        is_verdict = any(
            parse_label_word(word) is not None for word in column.words if len(word) > 3
        )
        return not (column.is_unique or column.has_both_verdicts or is_verdict)
    if role in ("system", "evaluator"):
        # "judge.model" says who judged, not who wrote the claim.
        heading = column.name.rpartition(".")[0]
        is_of_judge = "model" not in heading and name_has_word("judges", heading)
        is_named = column.kind == "text" or (
            role == "system" and column.kind in ("binary", "grade")
        )
        is_named = (
            is_named and not column.has_both_verdicts and not (role == "system" and is_of_judge)
        )
        return is_named and column.mean_length < 80
    if role == "dataset" and name == "data" and column.has_sentences:
        return False  # "data" is the text in files of doccano
    return column.kind != "share" and column.mean_length < 80


def _place_long_form(table: TableRoles, has_others: bool) -> None:
    """Find the judgements of the evaluator or annotator that each row names."""
    roles, given = table.roles, table.given
    if (
        "system" in roles
        and not {"claim", "evaluator", *_JUDGEMENT_ROLES} & {*roles}
        and has_others
    ):
        ids = roles.get("claim_id")  # a table of scores beside the claims: the model judged
        if ids is not None and table.rows[ids].duplicated().any():
            roles["evaluator"] = roles.pop("system")
    if "evaluator" in roles and not given.evaluators:
        for ours in ("score", "prediction"):
            found = table.find_by_role(ours, lambda one: one.can_hold_labels or bool(one.words))
            roles |= {ours: found[0]} if found and ours not in roles else {}
        judged = table.list_free_columns("judge")
        if not {"score", "prediction"} & {*roles} and len(judged) == 1:
            roles["score" if table.columns[judged[0]].low is not None else "prediction"] = judged[0]
        if {"score", "prediction"} & {*roles}:
            _sort_named_evaluators(table)
        else:
            del roles["evaluator"]
    if "annotator" in roles and "label" not in roles:
        found = table.find_by_role("label", lambda one: one.looks_judged)
        judged = table.list_free_columns("people", "label", "plain", "support", "unknown")
        judged = [one for one in judged if table.columns[one].looks_judged]
        if found or len(judged) == 1:
            roles["label"] = (found or judged)[0]
        else:
            del roles["annotator"]
    if (
        "annotator" in roles
        and "response_id" in roles
        and table.columns[roles["response_id"]].is_unique
    ):
        table.ignored[roles.pop("response_id")] = "the id of a row"


def _sort_named_evaluators(table: TableRoles) -> None:
    """In a table with a row for each evaluator, find those that are people, and those that judge
    something other than support."""
    values = table.list_values(table.roles["evaluator"])
    people = match_column_patterns(values, table.given.people) or [
        one for one in values if is_name_of_person(one)
    ]
    judges = [one for one in values if one not in people]
    others = {one: REASONS["measure"] for one in judges if is_measure(one)}
    others = {one: REASONS["quality"] for one in judges if is_quality(one)} | others
    table.people_evaluators = people
    table.left_out = others if len(others) < len(judges) else {}


def leave_out_other_evaluators(table: TableRoles, names: Sequence[str]) -> None:
    """If the user names evaluators, leave out the others in a table with a row for each
    evaluator."""
    if names and "evaluator" in table.roles:
        values = table.list_values(table.roles["evaluator"])
        others = {*values} - {*match_column_patterns(values, names), *table.people_evaluators}
        table.left_out |= dict.fromkeys(sorted(others), _NOT_NAMED)


def _place_labels(table: TableRoles, has_labels: bool) -> None:
    """Find the column of labels, or the columns of single annotators. If several columns may be the
    labels, all are in doubt."""
    possible = [one for one in table.list_free_columns() if table.columns[one].can_hold_labels]
    free = [one for one in possible if table.columns[one].looks_judged] or possible
    named = [
        one for one in table.find_by_role("label", lambda one: one.calls == "label") if one in free
    ]
    exact = [one for one in named if normalise_words(one) == "label"]
    annotators = [one for one in possible if is_name_of_annotator(one)]
    # One of the annotators may always give the same label.
    annotators = annotators if {*annotators} & {*free} else []
    people = [one for one in free if table.columns[one].calls == "people" and one not in annotators]
    people = [one for one in people if not _may_say_who_judged(table.columns[one])]
    if len(annotators) > 1:
        table.people = annotators
    else:
        people += annotators
    labels = people or exact or named
    labels += [one for one in named if people and not has_labels and one not in labels]
    if len(labels) == 1:
        table.roles["label"] = labels[0]
    if len(labels) > 1 or (labels and table.people and not exact):
        table.doubt(labels, "may hold the labels")


def _may_say_who_judged(column: ColumnProfile) -> bool:
    """Whether a column with a name of people may say who judged (an "annotator" 1 or 0), or whether
    anybody did ("reviewed")."""
    name = normalise_words(column.name)
    is_coded = {*column.words} <= {"0", "1"} and name in COLUMN_NAMES["annotator"]
    is_constant = column.n_different < 2 and not find_known_form(column.name, COLUMN_NAMES["label"])
    return is_coded or is_constant or name.endswith(("reviewed", "annotated"))


def _place_evaluators(table: TableRoles, has_labels: bool) -> None:
    """Find the evaluators of a wide table: a column for each, or one score and one prediction."""
    if table.given.evaluator:
        table.ignored |= dict.fromkeys(table.list_free_columns("judge", "plain"), _NOT_NAMED)
        return
    judges = table.list_free_columns("judge", *(["support"] if "label" in table.roles else []))
    held = {
        one: table.columns[one]
        for one in judges
        if table.columns[one].looks_judged or table.columns[one].low is not None
    }
    constant = [name for name, one in held.items() if one.n_different == 1 and len(table.rows) > 1]
    table.ignored |= dict.fromkeys(constant, REASONS["constant"])
    _add_evaluators(table, [name for name in held if name not in constant])
    if table.evaluators:
        return
    is_labelled = table.is_labelled or has_labels
    for ours in ("score", "prediction"):
        plain = table.find_by_role(ours, lambda one: _may_be_plain_judgement(one, is_labelled))
        table.roles |= {ours: plain[0]} if plain else {}


def _may_be_plain_judgement(column: ColumnProfile, is_labelled: bool) -> bool:
    """Whether a mere ``score`` is an evaluator's: beside labels, or if it has decimals."""
    is_decimal = column.low is not None and not column.is_whole
    is_judgement = column.calls == "plain" and (column.low is not None or column.looks_judged)
    return column.n_different > 1 and is_judgement and (is_labelled or is_decimal)


def _add_evaluators(table: TableRoles, names: Sequence[str]) -> None:
    """Place columns of evaluators. A score and a prediction with the same name are one
    evaluator."""
    by_name: dict[str, list[str]] = {}
    for one in names:
        by_name.setdefault(split_evaluator_name(one)[0], []).append(one)
    for name, own in by_name.items():
        kinds = ["score" if table.columns[one].low is not None else "prediction" for one in own]
        pairs = [*zip(kinds, own, strict=True)]
        if len({*kinds}) == len(own):
            table.evaluators[name] = EvaluatorColumnMapping.model_validate(dict(pairs))
        elif {*kinds} == {"prediction"} and (
            words := [one for one in own if split_evaluator_name(one)[1] != "score"]
        ):
            # One column has 0 and 1, the other the words for them.
            table.evaluators[name] = EvaluatorColumnMapping(prediction=words[0])
            table.ignored |= {
                one: "the same evaluator's word is read" for one in own if one != words[0]
            }
        else:
            table.evaluators |= {
                one: EvaluatorColumnMapping.model_validate({kind: one}) for kind, one in pairs
            }


def check_named_evaluators(tables: Sequence[TableRoles], names: Sequence[str]) -> None:
    """Raise `UsageError` for an evaluator that the user names and that no table has."""
    columns = [*dict.fromkeys(column for table in tables for column in table.columns)]
    known = [*columns, *(split_evaluator_name(one)[0] for one in columns)]
    for table in tables:
        known += table.evaluators
        if "evaluator" in table.roles or "evaluator" in table.columns:
            known += table.list_values(table.roles.get("evaluator", "evaluator"))
    for name in names:
        if not match_column_patterns(known, [name]):
            message = (
                f"no evaluator or column {name!r} in it{suggest_known_name(name, sorted({*known}))}"
            )
            raise UsageError(f"{', '.join(table.name for table in tables)}: {message}")
