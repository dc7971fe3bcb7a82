"""What each column of a table is: names decide, values only validate, and what is not certain is asked.

Each column of ours has names under which users know it (`vocabulary.yaml`). Other columns are evaluators or annotators
where their names say so (``gpt4_score``, ``annotator_2``). A column that is none of these and looks as if somebody had
judged in it is asked about: whose it is, or whether it is to be ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from factaudit.errors import UsageError, suggest_known_name
from factaudit.tables.cell_values import find_verdict_in_reply
from factaudit.tables.column_mapping import ColumnMapping, match_column_patterns
from factaudit.tables.column_profiles import ColumnProfile, profile_column_for_mapping
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.questions import (
    OpenQuestion,
    PossibleReading,
    ignore_columns,
    read_columns_as_evaluators,
    read_columns_as_people,
)
from factaudit.tables.standard_columns import OWN_COLUMNS, WANTED_CLAIM_COLUMNS, list_missing_standard_columns
from factaudit.tables.vocabulary import (
    ANNOTATOR_COLUMN_PATTERN,
    COLUMN_NAMES,
    NUMBERED_PERSON_PATTERN,
    find_vocabulary_words_in_column_name,
    has_name_of_error,
    has_vocabulary_word_in_column_name,
    normalise_vocabulary_words,
    parse_label_word,
    strip_column_name_values_hint,
)

#: Columns of ours that hold judgements: whose they are, the whole table tells.
_JUDGEMENT_ROLES = ("label", "score", "prediction")
#: Columns of ours that are read only beside an evaluator's name.
_LONG_FORM_ROLES = ("evaluator", "status", "raw", "chunk_scores", "repeat")
#: Names of the content of whatever the name before it says.
_GENERIC_NAME_PARTS = ("text", "content", "value", "page content", "name")
#: How the name of an evaluator's column says what it holds.
_AFFIXES = (
    *("score", "prediction", "probability", "pred", "prob", "verdict", "judgement", "judgment", "decision", "label"),
    *("rating", "logits", "logit", "output", "result", "passed", "pass", "check", "vote", "urteil", "nota"),
    *(name for role in ("score", "prediction") for name in COLUMN_NAMES[role] if " " not in name and name != "preds"),
)
#: The same in scripts without blanks; and headings over several evaluators.
_GLUED_AFFIXES = ("判定", "評価", "分数", "得分")
_JUDGE_HEADINGS = {"feedback", "judges", "evaluators", "detectors", "models", "llms", "evaluator", "verdicts"}
#: Of these, those that only an evaluator's column has, whoever it is.
_SURE_AFFIXES = {"score", "prediction", "probability", "pred", "prob", "logit", "logits"}
#: Words for people that a judge's name may have, and for judges that a person's may.
_LOOSE_PEOPLE = {"annotation", "annotations", "annotated"}
_LOOSE_JUDGES = {"judge", "judges", "judged", "eval", "rubric", "grader", "adherence"}
#: Of words for judges, what is judged: people may have judged it, too.
SUPPORT_WORDS = {"adherence", "faithfulness", "factuality", "groundedness", "entailment"}
#: Metrics of overlap, and which of their numbers a column holds: `bertscore_f1`, `rouge2_precision`.
_OVERLAP_METRICS = {"bertscore", "rouge", "rouge1", "rouge2", "rougel", "chrf", "meteor"}
_OVERLAP_PARTS = {"f1", "precision", "recall"}
#: Words that say whether a judge was called with success, or what it said.
_CALL_WORDS = {
    *("error", "errors", "err", "failure", "failed", "fail", "refused", "ok", "success", "valid", "done", "flag"),
    *(
        "correct",
        "right",
        "match",
        "hit",
        "pass",
        "passed",
        "parsed",
        "complete",
        "completed",
        "finished",
        "succeeded",
        "returned",
        "timeout",
        "usable",
    ),
}
#: First words of the name of a property that a claim has or has not.
_PROPERTY_WORDS = ("is", "has", "contains", "needs", "was")
#: Why a column is no judgement.
REASONS = {
    "measure": "a measure, no judgement",
    "quality": "another quality than support",
    "answer": "a reference answer",
    "reason": "a reason",
    "time": "a time",
    "counter": "counts up",
    "constant": "never varies",
}
#: So many replies of a judge are looked at for a verdict.
_N_REPLIES = 50
#: Names of a label that may say whether an evaluator was right.
_NAMES_OF_BEING_RIGHT = {"correct", "is correct", "right", "incorrect", "is incorrect", "wrong", "is wrong"}
#: Different words than so many are no words of labels.
_MAX_LABEL_WORDS = 12


@dataclass
class TableRoles:
    """What one table is taken for, column by column.

    ``roles``: column of ours to theirs. ``people``: columns of one annotator each. ``evaluators``: by name their
    columns (``score``, ``prediction``). ``ignored``: columns that are not read, and why. ``people_evaluators``: the
    evaluators of the long form that are people; ``left_out``: those that are not read, and why. ``kind``: of a table
    with our own columns, what it is.
    """

    name: str
    rows: pd.DataFrame
    profiles: dict[str, ColumnProfile]
    kind: str | None = None
    roles: dict[str, ColumnProfile] = field(default_factory=dict)
    people: list[str] = field(default_factory=list)
    evaluators: dict[str, dict[str, str]] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)
    people_evaluators: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    questions: list[OpenQuestion] = field(default_factory=list)

    def is_free(self, column: str) -> bool:
        """Whether nothing has been found out of a column."""
        taken = {one.name for one in self.roles.values()} | {*self.people, *self.ignored}
        return column not in taken | {name for pair in self.evaluators.values() for name in pair.values()}

    def list_free_columns(self) -> list[ColumnProfile]:
        return [column for name, column in self.profiles.items() if self.is_free(name)]


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
        values = _list_values(table, table.roles["evaluator"])
        others = {*values} - {*match_column_patterns(values, names), *table.people_evaluators}
        table.left_out |= dict.fromkeys(sorted(others), "not among the evaluators that you named")


def place_columns(
    name: str, rows: pd.DataFrame, given: ColumnMapping, has_others: bool = False, has_labels: bool = False
) -> TableRoles:
    """The columns of a user's table. What the user said is not asked again.

    has_others: it is one of several tables. has_labels: another table has people's labels for certain.
    """
    table = TableRoles(
        name, rows, {str(column): profile_column_for_mapping(str(column), rows[column]) for column in rows.columns}
    )
    fixed = _place_what_the_user_named(table, given)
    named = _find_named_evaluators(table, given.evaluator)
    table.evaluators = _pair_scores_with_predictions(named)
    _place_texts_and_names(table, fixed)
    kinds = {one.name: classify_column(one) for one in table.list_free_columns()}
    table.ignored |= {column: REASONS[kind] for column, kind in kinds.items() if kind in REASONS}
    _place_long_form(table, given, fixed, kinds, has_others)
    if "label" not in table.roles and not (table.people_evaluators or (table.people and "label" not in fixed)):
        _place_labels(table, kinds, has_labels)
    _place_evaluators(table, given, kinds, has_labels)
    if not has_others or "claim" in table.roles:
        _ask_about_unplaced_columns(table, given, kinds, has_labels)
    if not {"evaluator", "annotator", "system"} & {*fixed}:
        _ask_about_repeated_claims(table)
    if "label" not in fixed:
        _ask_whether_label_is_of_being_right(table)
        _ask_whether_labels_were_accepted(table)
    if not {"score", "prediction"} & {*table.roles}:
        table.roles = {ours: one for ours, one in table.roles.items() if ours not in _LONG_FORM_ROLES}
        if "annotator" not in table.roles and (table.evaluators or not has_others):
            _take_repeated_ids_for_those_of_documents(table)
    return table


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


def list_name_forms(column_name: str) -> list[str]:
    """What a column may be found by: its name; of a dotted one (``input.text``) the last part but a mere "text"."""
    plain = strip_column_name_values_hint(re.sub(r"^(INPUT|OUTPUT|GOLDEN|ASSIGNMENT):", r"\1.", column_name))
    parts = [normalise_vocabulary_words(part) for part in plain.split(".")]
    telling = next((part for part in reversed(parts) if part not in _GENERIC_NAME_PARTS), parts[-1])
    return [normalise_vocabulary_words(plain), *([telling] if len(parts) > 1 else [])]


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


def classify_column(column: ColumnProfile) -> str:
    """What a column that has no role may be, by its name.

    ``people``, ``judge``, ``both``, ``label`` (of whomever), ``support`` (what was judged: "faithfulness"), ``plain``
    (a score or verdict of whomever), ``unknown``, or a key of `REASONS`.
    """
    name = column.name.rpartition("[].")[2]
    forms = list_name_forms(name)
    people = find_vocabulary_words_in_column_name("people", name)
    judges = find_vocabulary_words_in_column_name("judges", name)
    parts = _OVERLAP_PARTS if judges & _OVERLAP_METRICS else set()
    if column.is_time:
        return "time"
    if column.counts_up:
        return "counter"
    if find_vocabulary_words_in_column_name("measures", re.sub(r"(?i)(\b|_)json\w*\.", ".", name)) - parts:
        return "measure"
    if find_vocabulary_words_in_column_name("qualities", name) - parts:
        return "quality"
    if not people and not judges and has_vocabulary_word_in_column_name("soft_measures", forms[-1]):
        return "measure"
    if has_vocabulary_word_in_column_name("reasons", forms[-1]):
        return "reason"
    if has_vocabulary_word_in_column_name("answers", name):
        return "answer"
    if forms[0] in (*COLUMN_NAMES["score"], *COLUMN_NAMES["prediction"]):
        return "plain"
    if forms[0] in COLUMN_NAMES["system"]:
        return "unknown"  # "model" with yes and no
    if people:
        is_both = judges - _LOOSE_JUDGES - SUPPORT_WORDS
        return "people" if not is_both else "judge" if people <= _LOOSE_PEOPLE else "both"
    is_doubtful = has_vocabulary_word_in_column_name("doubtful_judgements", name)
    is_call = column.kind == "binary" and {*re.findall(r"\w+", normalise_vocabulary_words(name))} & _CALL_WORDS
    if judges:
        is_question = re.fullmatch(r"[Qq]\d+", name) and not column.is_fine_score  # a form's second question
        is_quality = judges <= SUPPORT_WORDS and not column.is_fine_score  # whoever judged it
        is_doubtful = is_doubtful and not judges & SUPPORT_WORDS
        if is_call or is_doubtful or is_question:
            return "unknown"
        return "support" if is_quality else "judge"
    if forms[-1] in COLUMN_NAMES["label"] or has_vocabulary_word_in_column_name("labels", name):
        return "label"
    stem, affix = split_evaluator_name(name)
    is_doubtful = is_doubtful or has_vocabulary_word_in_column_name("users", forms[-1])
    if affix in _SURE_AFFIXES and not is_doubtful and normalise_vocabulary_words(stem) not in COLUMN_NAMES["label"]:
        return "judge"
    return "plain" if forms[-1] in (*COLUMN_NAMES["score"], *COLUMN_NAMES["prediction"]) else "unknown"


def split_evaluator_name(column_name: str) -> tuple[str, str]:
    """The evaluator's name in a column's, and what the rest says that it holds ("" where the name is all).

    >>> [split_evaluator_name(one) for one in ("gpt4_score", "pred_gpt4", "judgeScore", "AlignScore", "Verdict (AI)")]
    [('gpt4', 'score'), ('gpt4', 'pred'), ('judge', 'score'), ('AlignScore', ''), ('AI', 'verdict')]
    """
    plain = re.sub(r"(\.(value|result|choices))+$", "", strip_column_name_values_hint(column_name))
    heading, dot, rest = plain.partition(".")
    if dot and rest and normalise_vocabulary_words(heading) in _JUDGE_HEADINGS:
        return split_evaluator_name(rest)
    if normalise_vocabulary_words(plain).replace(" ", "") in find_vocabulary_words_in_column_name("judges", plain):
        return plain, ""
    if (glued := next((one for one in _GLUED_AFFIXES if plain.endswith(one)), "")) and plain != glued:
        return plain.removesuffix(glued), "verdict"
    for affix in _AFFIXES:
        if found := re.fullmatch(rf"(?i)(.+?)[\s_./-]+\(?{affix}\)?", plain):
            return found[1], affix
        if found := re.fullmatch(rf"(?i){affix}[\s_./-]+\(?(.+?)\)?", plain):
            return (
                (found[1], affix)
                if not re.match(r"(of|du|de|des|del|der|von|van|do|da)[ _]", found[1])
                else (plain, "")
            )
        if found := re.fullmatch(rf"(.+[a-z]){affix.capitalize()}", plain):
            return found[1], affix
    return plain, ""


def looks_judged(column: ColumnProfile) -> bool:
    """Whether a column's values could be what somebody said of claims: words for a label, or varying numbers."""
    if column.n_different < 2 or column.is_time or column.counts_up:
        return False
    is_grade = column.kind == "grade" and column.low is not None and column.low >= -1 and (column.high or 0) <= 10
    return column.kind in ("binary", "share") or is_grade


def _has_words_of_labels(column: ColumnProfile) -> bool:
    """Whether a column holds few words, one of which at least is a label's."""
    is_short = column.kind in ("name", "text", "id") and 0 < len(column.words) <= _MAX_LABEL_WORDS
    return is_short and column.mean_length <= 30 and any(parse_label_word(word) is not None for word in column.words)


def _can_hold_labels(column: ColumnProfile) -> bool:
    """Whether a column that is called a label may hold labels."""
    if column.kind in ("binary", "share", "grade", "number"):
        return not column.is_time and not column.counts_up
    is_short = 0 < len(column.words) <= _MAX_LABEL_WORDS and column.mean_length <= 40
    return column.kind in ("name", "text", "id") and is_short


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
        for ours in ("score", "prediction"):
            known = COLUMN_NAMES[ours]
            found = [table.profiles[name] for name in kinds if table.is_free(name) and _form_in(name, known)]
            found = [one for one in found if looks_judged(one) or one.kind in ("number", "grade") or one.words]
            if ours not in roles and found:
                roles[ours] = min(found, key=lambda one: known.index(_form_in(one.name, known) or known[-1]))
        if not {"score", "prediction"} & {*roles}:
            stem = normalise_vocabulary_words(roles["evaluator"].name).split()[0]
            judged = [table.profiles[name] for name, kind in kinds.items() if kind == "judge" and table.is_free(name)]
            near = [one for one in judged if normalise_vocabulary_words(one.name).split()[0] == stem]
            for one in near or (judged if len(judged) == 1 else []):
                roles.setdefault("score" if one.low is not None else "prediction", one)
        if {"score", "prediction"} & {*roles}:
            values = _list_values(table, roles["evaluator"])
            table.people_evaluators = match_column_patterns(values, given.people) or [
                one for one in values if is_name_of_person(one)
            ]
            table.left_out = list_measures(set(values) - {*table.people_evaluators})
        else:
            column = roles.pop("evaluator")
            kinds[column.name] = classify_column(column)
    if "annotator" in roles and "label" not in roles:
        known = COLUMN_NAMES["label"]
        wanted = ("people", "label", "plain", "support", "unknown")
        names = [name for name, kind in kinds.items() if table.is_free(name) and kind in wanted]
        found = [
            table.profiles[name]
            for name in names
            if looks_judged(table.profiles[name]) or _has_words_of_labels(table.profiles[name])
        ]
        telling = [one for one in found if kinds[one.name] != "unknown"]
        found = telling or (found if len(found) == 1 else [])
        if found:
            roles["label"] = min(
                found, key=lambda one: known.index(form) if (form := _form_in(one.name, known)) else len(known)
            )
    if "annotator" in roles and "label" in roles and "annotator" not in fixed:
        _ask_about_annotators_like_models(table, given)
    elif "annotator" in roles and "label" not in roles:
        column = roles.pop("annotator")
        kinds[column.name] = classify_column(column)
    ids = roles.get("response_id")
    if "annotator" in roles and ids is not None and ids.n_different == ids.n_present:
        table.ignored[roles.pop("response_id").name] = "the id of a row"


def _form_in(column_name: str, known: Sequence[str]) -> str | None:
    return next((form for form in list_name_forms(column_name) if form in known), None)


def _list_values(table: TableRoles, column: ColumnProfile) -> list[str]:
    return [*dict.fromkeys(str(one) for one in table.rows[column.name] if not is_missing_value(one))]


def is_name_of_person(evaluator: str) -> bool:
    """Whether an evaluator's name is one of people ("human"), and of no judge."""
    judges = find_vocabulary_words_in_column_name("judges", evaluator) - _LOOSE_JUDGES - SUPPORT_WORDS
    return has_vocabulary_word_in_column_name("people", evaluator) and not judges


def is_name_of_model(annotator: str) -> bool:
    """Whether an annotator's name is one of a model or another judge, and of no person."""
    is_judge = has_vocabulary_word_in_column_name("judges", annotator)
    return is_judge and not has_vocabulary_word_in_column_name("people", annotator)


def list_measures(evaluators: set[str]) -> dict[str, str]:
    """The evaluators of a long table whose names are those of measures (latency) or of other qualities (helpfulness),
    and which; none where nothing would be left."""
    found: dict[str, str] = {}
    for name in sorted(evaluators):
        judges = find_vocabulary_words_in_column_name("judges", name)
        parts = _OVERLAP_PARTS if judges & _OVERLAP_METRICS else set()
        for kind, words in (("measure", "measures"), ("quality", "qualities")):
            if find_vocabulary_words_in_column_name(words, name) - parts:
                found.setdefault(name, REASONS[kind])
    return found if len(found) < len(evaluators) else {}


def _ask_about_annotators_like_models(table: TableRoles, given: ColumnMapping) -> None:
    """Ask where a column of annotators names what looks like a model."""
    column, label = table.roles["annotator"], table.roles["label"]
    values = _list_values(table, column)
    models = [one for one in values if is_name_of_model(one)]
    if not models or given.people:
        return
    kind = "prediction" if label.kind == "binary" else "score"
    people = [one for one in values if one not in models]
    apart = {"columns": {"evaluator": column.name, kind: label.name}} | ({"people": people} if people else {})
    ways = [
        PossibleReading(f"{', '.join(models)}: evaluators" + ", the others people" * bool(people), apart),
        PossibleReading("all are people", {"columns": {"annotator": column.name, "label": label.name}}),
    ]
    text = f"{column.name!r} names {', '.join(map(repr, models))}: a model, or a person"
    table.questions.append(OpenQuestion(text, ways))


def _place_labels(table: TableRoles, kinds: Mapping[str, str], has_labels: bool) -> None:
    """Find the column of labels, or those of single annotators."""
    free = [one for one in table.list_free_columns() if _can_hold_labels(one)]
    free = [one for one in free if looks_judged(one) or _has_words_of_labels(one)] or free
    numbered = [one for one in free if kinds.get(one.name) in ("people", "label", "unknown") and _is_annotator(one)]
    named = [one for one in free if kinds.get(one.name) == "label" and _form_in(one.name, COLUMN_NAMES["label"])]
    exact = [one for one in named if normalise_vocabulary_words(one.name) == "label"]
    people = [
        one for one in free if kinds.get(one.name) == "people" and one not in numbered and _varies_or_is_named(one)
    ]
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
            _ask_which_is_the_label(table, [labels[0], *rest[:2]])
    elif labels:
        _ask_which_is_the_label(table, labels)
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


def _varies_or_is_named(column: ColumnProfile) -> bool:
    """Whether a column of people's has different values, or is called a label whatever it says."""
    return column.n_different > 1 or _form_in(column.name, COLUMN_NAMES["label"]) is not None


def _is_annotator(column: ColumnProfile) -> bool:
    name = normalise_vocabulary_words(column.name)
    return bool(ANNOTATOR_COLUMN_PATTERN.fullmatch(name) or NUMBERED_PERSON_PATTERN.search(name))


def _ask_which_is_the_label(table: TableRoles, columns: Sequence[ColumnProfile]) -> None:
    names = [one.name for one in columns]
    ways = [
        PossibleReading(
            f"{one} holds the labels", {"columns": {"label": one}, "ignore": [n for n in names if n != one]}
        )
        for one in names
    ]
    if all(one.kind == columns[0].kind for one in columns):
        ways.insert(0, read_columns_as_people(names))
    table.questions.append(OpenQuestion(f"{' and '.join(map(repr, names))} may hold the labels", ways))


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
        and (looks_judged(one) or one.low is not None or _has_words_of_labels(one) or _states_verdicts(table, one))
    ]
    constant = [one for one in judges if one.n_different == 1 and len(table.rows) > 1]
    table.ignored |= {one.name: REASONS["constant"] for one in constant}
    table.evaluators = _pair_scores_with_predictions([one for one in judges if one not in constant])
    taken = {name for pair in table.evaluators.values() for name in pair.values()}
    doubled = [one.name for one in judges if one.name not in taken and one not in constant]
    table.ignored |= dict.fromkeys(doubled, "the same evaluator's word is read")
    if table.evaluators:
        return
    is_labelled = "label" in table.roles or bool(table.people) or has_labels
    plain = [one for one in free if kinds.get(one.name) == "plain" and one.n_different > 1]
    for ours in ("score", "prediction"):
        known = COLUMN_NAMES[ours]
        found = [one for one in plain if _form_in(one.name, known) and (is_labelled or one.is_fine_score)]
        found = [one for one in found if one.low is not None or one.kind == "binary" or _has_words_of_labels(one)]
        if found:
            table.roles[ours] = min(found, key=lambda one: known.index(_form_in(one.name, known) or known[-1]))


def _states_verdicts(table: TableRoles, column: ColumnProfile, share: float = 1.0) -> bool:
    """Whether all of a column's texts are a judge's replies that begin with a verdict, or a share of them state one."""
    texts = [one for one in table.rows[column.name].head(_N_REPLIES) if isinstance(one, str) and one.strip()]
    stated = []
    for text in texts:
        verdict = find_verdict_in_reply(text)
        is_first = verdict is not None and (share < 1 or text.strip(" \"'*").startswith(verdict))
        stated += [text] if is_first or parse_label_word(text) is not None else []
    return column.kind in ("name", "text", "id") and bool(texts) and len(stated) >= share * len(texts)


def _find_named_evaluators(table: TableRoles, names: Sequence[str]) -> list[ColumnProfile]:
    """The columns that the user names as evaluators: by their own names, by patterns, or by the evaluators' names."""
    found: list[ColumnProfile] = []
    free = table.list_free_columns()
    for name in names:
        own = match_column_patterns([one.name for one in free], [name])
        own = own or [one.name for one in free if split_evaluator_name(one.name)[0] == name]
        found += [table.profiles[one] for one in own if table.profiles[one] not in found]
    return found


def check_named_evaluators(tables: Sequence[TableRoles], names: Sequence[str]) -> None:
    """Raise `UsageError` for an evaluator that the user names and no table has."""
    columns = [column for table in tables for column in table.profiles]
    known = [*columns, *(split_evaluator_name(one)[0] for one in columns)]
    for table in tables:
        if "evaluator" in table.profiles or "evaluator" in table.roles:
            known += _list_values(table, table.roles.get("evaluator") or table.profiles["evaluator"])
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


def _ask_about_unplaced_columns(
    table: TableRoles, given: ColumnMapping, kinds: Mapping[str, str], has_labels: bool
) -> None:
    """Ask about columns that look judged, where nobody says by whom.

    Where the labels, or the evaluators, are missing, more columns may be theirs: whose words are few, whatever they
    are, and measures such as "severity".
    """
    is_labelled = "label" in table.roles or bool(table.people or table.people_evaluators) or has_labels
    is_judged = bool(table.evaluators or given.evaluators or {"score", "prediction"} & {*table.roles})
    asked = {name for one in table.questions for way in one.readings for name in _list_named_columns(way.mapping)}
    if is_labelled and (given.evaluator or given.evaluators):
        return
    unplaced = []
    for column in table.profiles.values():
        kind = kinds.get(column.name, "unknown")
        if column.name in asked or column.name not in kinds or kind in ("time", "counter", "constant", "reason"):
            continue
        if "label" in given.columns and kind in ("label", "people"):
            continue
        is_left_out = column.name in table.ignored and kind in REASONS
        if not table.is_free(column.name) and not is_left_out:
            continue
        is_reply = kind == "judge" and not is_judged and _states_verdicts(table, column, 0.5)
        if is_reply or _may_be_judged(column, kind, is_labelled, is_judged):
            unplaced.append(column)
    if unplaced:
        for column in unplaced:
            table.ignored.pop(column.name, None)
        table.questions.append(_ask_whose_they_are(table, unplaced, is_labelled, is_judged))


def _may_be_judged(column: ColumnProfile, kind: str, is_labelled: bool, is_judged: bool) -> bool:
    """Whether a column that has no role may hold labels or what an evaluator said."""
    is_plausible = looks_judged(column) or _has_words_of_labels(column)
    is_telling = kind in ("people", "both", "judge", "support", "label", "plain") or has_name_of_error(column.name)
    if kind in ("measure", "quality", "answer"):
        is_doubtful = has_vocabulary_word_in_column_name("doubtful_measures", column.name) or kind == "answer"
        if not is_labelled and is_judged:
            counted = {"n", "num", "number", "count", "counts"}
            hard = find_vocabulary_words_in_column_name("measures", column.name) - counted
            hard -= find_vocabulary_words_in_column_name("doubtful_measures", column.name)
            is_doubtful = is_doubtful or column.n_different == 2 or has_name_of_error(column.name)
            is_doubtful = is_doubtful and (not hard or kind == "answer")
            return is_doubtful and column.n_different > 1 and (is_plausible or column.low is not None)
        is_of_judge = has_vocabulary_word_in_column_name("judges", column.name) and not is_judged
        is_answer = kind == "answer" and column.kind == "binary"
        return (is_answer and is_plausible) or (is_of_judge and (is_plausible or column.low is not None))
    if is_labelled and is_judged:
        is_property = normalise_vocabulary_words(column.name).split()[:1] in [[word] for word in _PROPERTY_WORDS]
        return is_plausible and (is_telling or (column.kind != "grade" and not is_property))
    has_few_words = 0 < len(column.words) <= _MAX_LABEL_WORDS and column.mean_length <= 40
    has_few_words = has_few_words and column.n_different < column.n_present and not column.has_questions
    varies = column.n_different > 1 or column.n_missing > 0
    if not is_labelled and not is_judged:  # claims that nobody judged, or not in a way that we know
        return (is_plausible and column.kind != "grade") or (is_telling and has_few_words and varies)
    return is_plausible or (has_few_words and varies) or (is_telling and column.low is not None and varies)


def _ask_whose_they_are(
    table: TableRoles, unplaced: Sequence[ColumnProfile], is_labelled: bool, is_judged: bool
) -> OpenQuestion:
    """The question whose judgements some columns hold; the likeliest answer is the first."""
    names = [one.name for one in unplaced]
    evaluators, ignored = read_columns_as_evaluators(names), ignore_columns(names)
    ways = [read_columns_as_people(names)]
    if not is_labelled:
        for one in names[:3] if len(names) > 1 else ():
            rest = [name for name in names if name != one]
            named = {"columns": {"label": one}}
            ways.append(PossibleReading(f"{one} holds the labels; ignore {', '.join(rest)}", named | {"ignore": rest}))
            others = f"{one} holds the labels, {', '.join(rest)} what evaluators said"
            ways.append(PossibleReading(others, named | {"evaluator": rest}))
        ways = ways[1:] + ways[:1] if is_judged else ways
        ways += [evaluators, ignored]
    elif is_judged:
        ways = [ignored, evaluators, *ways]
    else:
        ways = [evaluators, ignored]
        label = table.roles.get("label")
        if len(names) == 1 and label is not None and not has_vocabulary_word_in_column_name("people", label.name):
            said = f"{names[0]} holds the labels, {label.name} is an evaluator"
            ways.append(PossibleReading(said, {"columns": {"label": names[0]}, "evaluator": [label.name]}))
    if is_labelled and "label" in table.roles and len(names) == 1:
        both = [table.roles["label"].name, names[0]]
        ways = [one for one in ways if "label" not in one.mapping.get("columns", {}) or "evaluator" in one.mapping]
        ways.append(PossibleReading(f"{both[0]} and {both[1]}: one annotator each", {"people": both}))
    held = ", ".join(f"{one.name} ({_describe_values(one)})" for one in unplaced[:4])
    return OpenQuestion(f"{held}: labels of people, what an evaluator said, or neither", ways)


def _ask_whether_label_is_of_being_right(table: TableRoles) -> None:
    """Ask where a column called just "correct" stands beside predictions: it may say whether these are right."""
    label = table.roles.get("label")
    judged = {*table.evaluators} | {"score", "prediction"} & {*table.roles}
    if label is None or not judged or list_name_forms(label.name)[-1] not in _NAMES_OF_BEING_RIGHT:
        return
    ways = [
        PossibleReading(f"{label.name} says whether the claim is correct", {"columns": {"label": label.name}}),
        ignore_columns([label.name]),
    ]
    text = f"{label.name} may say whether the claim is supported, or whether the evaluator was right"
    table.questions.append(OpenQuestion(text, ways))


#: Words of an annotator who accepts, or rejects, a label that was suggested.
_ACCEPTANCE_WORDS = {"accept", "accepted", "reject", "rejected", "agree", "disagree", "ignore"}


def _ask_whether_labels_were_accepted(table: TableRoles) -> None:
    """Ask where a column says accept or reject beside one of labels (Prodigy's ``answer``): of what it says."""
    said = {name: {normalise_vocabulary_words(word) for word in one.words} for name, one in table.profiles.items()}
    accepted = [name for name, words in said.items() if words and words <= _ACCEPTANCE_WORDS]
    labels = [name for name in table.profiles if name not in accepted and list_name_forms(name)[-1] == "label"]
    if len(accepted) != 1 or len(labels) != 1:
        return
    agreed = {"columns": {"label": labels[0], "agreed": accepted[0]}}
    ways = [
        PossibleReading(f"{accepted[0]} says whether {labels[0]} is right", agreed),
        PossibleReading(
            f"{labels[0]} holds the labels; ignore {accepted[0]}", {"columns": {"label": labels[0]}, "ignore": accepted}
        ),
        PossibleReading(
            f"{accepted[0]} holds the labels; ignore {labels[0]}", {"columns": {"label": accepted[0]}, "ignore": labels}
        ),
    ]
    words = ", ".join(table.profiles[accepted[0]].words)
    text = f"{accepted[0]} ({words}) may say whether somebody agreed with {labels[0]}"
    table.questions = [OpenQuestion(text, ways)]


def _ask_about_repeated_claims(table: TableRoles) -> None:
    """Ask where each claim stands in a row for each value of another column: systems, evaluators or their prompts, or
    annotators."""
    roles = table.roles
    if "claim" not in roles or {"annotator", "evaluator"} & {*roles} or table.people:
        return
    if "system" in roles and "model" not in normalise_vocabulary_words(roles["system"].name):
        return  # systems, by their name
    keys = [roles[ours].name for ours in ("claim", "doc") if ours in roles]
    cells = table.rows.map(lambda cell: "" if is_missing_value(cell) else str(cell))
    times = cells.groupby(keys).size()
    if times.min() < 2 or times.min() != times.max():
        return
    used = {one.name for ours, one in roles.items() if ours != "system"}
    judged = [one for pair in table.evaluators.values() for one in pair.items()]
    judged += [(ours, roles[ours].name) for ours in ("score", "prediction") if ours in roles]
    for column in table.profiles.values():
        if column.name in used or column.n_different != times.min() or cells.duplicated([*keys, column.name]).any():
            continue
        ways = []
        others = [one.name for one in table.profiles.values() if one.name not in used and looks_judged(one)]
        if len(judged) == 1:
            ((kind, name),) = judged
            told = {"columns": {"evaluator": column.name, kind: name}}
            ways.append(PossibleReading(f"{column.name} names evaluators", told))
        elif not judged and len(others) == 1:
            told = {"columns": {"annotator": column.name, "label": others[0]}}
            ways.append(PossibleReading(f"{column.name} names annotators", told))
        else:
            continue
        ways.append(PossibleReading(f"{column.name} names systems", {"columns": {"system": column.name}}))
        text = f"each claim stands in {times.min()} rows, which {column.name} tells apart"
        table.questions = [OpenQuestion(text, ways)]
        return


def _describe_values(column: ColumnProfile) -> str:
    if column.words and (column.low is None or len(column.words) <= 3):
        return ", ".join(column.words[:3])
    return f"{column.low:g} to {column.high:g}" if column.low is not None else "words"


def _list_named_columns(mapping: Mapping[str, object]) -> list[str]:
    columns = mapping.get("columns", {})
    assert isinstance(columns, Mapping)
    return [*columns.values(), *(name for key in ("ignore", "evaluator", "people") for name in mapping.get(key, ()))]  # type: ignore[attr-defined]


def _take_repeated_ids_for_those_of_documents(table: TableRoles) -> None:
    """Take ids that repeat in a table of a row per claim for the ids of documents: each system has a claim on each."""
    column = table.roles.get("claim_id")
    if column is not None and table.rows[column.name].duplicated().any():
        del table.roles["claim_id"]
        table.roles.setdefault("doc_id", column)


def find_judged_columns(
    columns: Mapping[str, Sequence[object]], kinds: Sequence[str] = ("people", "judge", "both")
) -> dict[str, ColumnProfile]:
    """The columns, by name, in which people or evaluators judged, single values or lists of them, by `classify_column`;
    those that no name tells of where their words are opposite verdicts, too."""
    found = {}
    for name, values in columns.items():
        if normalise_vocabulary_words(name) == "status":
            continue  # whether a call went well
        cells = [one for cell in values for one in (cell if isinstance(cell, list) else [cell])]
        column = profile_column_for_mapping(name, pd.Series(cells, dtype="object"))
        names_judge = normalise_vocabulary_words(name) in (*COLUMN_NAMES["annotator"], *COLUMN_NAMES["evaluator"])
        kind = classify_column(column)
        is_lettered = kind == "people" and column.kind == "name" and column.n_different == 2  # C and I
        if not (column.is_judgement or is_lettered) or column.n_different < 2:
            continue
        if names_judge and not column.has_both_verdicts:
            continue
        if kind in kinds or (kind == "unknown" and column.has_opposite_verdicts):
            found[name] = column
    return found


def is_surely_label(column: ColumnProfile) -> bool:
    """Whether a column of judgements is people's label, 1 or a word such as "supported" for what is supported."""
    name = normalise_vocabulary_words(column.name.rpartition(".")[2])
    is_named = has_vocabulary_word_in_column_name("labels", column.name) or bool(split_evaluator_name(column.name)[1])
    words = {word for word in name.split() if not word.isdigit()}
    known = find_vocabulary_words_in_column_name("people", name) - {"reviewed", "annotated"}
    is_named = is_named or words <= known | SUPPORT_WORDS
    is_people = classify_column(column) == "people" and column.kind == "binary"
    is_people = is_people and name not in COLUMN_NAMES["annotator"]  # who it was
    return is_people and is_named and not has_name_of_error(column.name)


def is_surely_evaluator_verdict(column: ColumnProfile) -> bool:
    """Whether a column holds an evaluator's words for what is supported and what is not."""
    is_worded = column.kind == "binary" and not {*column.words} <= {"0", "1", "0.0", "1.0"}
    return classify_column(column) == "judge" and is_worded and not has_name_of_error(column.name)
