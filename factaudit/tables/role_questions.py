"""Questions about columns whose names do not say for certain what they hold, or whose judgements these are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from factaudit.tables.cell_values import find_verdict_in_reply
from factaudit.tables.column_kinds import (
    MAX_LABEL_WORDS,
    REASONS,
    find_known_form,
    has_words_of_labels,
    is_name_of_model,
    list_name_forms,
    looks_judged,
)
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.questions import (
    OpenQuestion,
    PossibleReading,
    ignore_columns,
    read_columns_as_evaluators,
    read_columns_as_people,
)
from factaudit.tables.table_roles import TableRoles
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    find_vocabulary_words_in_column_name,
    has_name_of_error,
    has_vocabulary_word_in_column_name,
    normalise_vocabulary_words,
    parse_label_word,
)

#: First words of the name of a property that a claim has or has not.
_PROPERTY_WORDS = ("is", "has", "contains", "needs", "was")


#: Names of a label that may say whether an evaluator was right.
_NAMES_OF_BEING_RIGHT = {"correct", "is correct", "right", "incorrect", "is incorrect", "wrong", "is wrong"}


#: Words of an annotator who accepts, or rejects, a label that was suggested.
_ACCEPTANCE_NAMES = {
    "accepted",
    "acceptance",
    "approved",
    "approval",
    "agreed",
    "agrees",
    "confirmed",
    "endorsed",
    "upheld",
}
_ACCEPTANCE_WORDS = {"accept", "accepted", "reject", "rejected", "agree", "disagree", "ignore"}


#: So many replies of a judge are looked at for a verdict.
_N_REPLIES = 50


def states_verdicts(table: TableRoles, column: ColumnProfile, share: float = 1.0) -> bool:
    """Whether all of a column's texts are a judge's replies that begin with a verdict, or a share of them state one."""
    texts = [one for one in table.rows[column.name].head(_N_REPLIES) if isinstance(one, str) and one.strip()]
    stated = []
    for text in texts:
        verdict = find_verdict_in_reply(text)
        is_first = verdict is not None and (share < 1 or text.strip(" \"'*").startswith(verdict))
        stated += [text] if is_first or parse_label_word(text) is not None else []
    return column.kind in ("name", "text", "id") and bool(texts) and len(stated) >= share * len(texts)


def ask_about_annotators_like_models(table: TableRoles, given: ColumnMapping) -> None:
    """Ask where a column of annotators names what looks like a model."""
    column, label = table.roles["annotator"], table.roles["label"]
    values = table.list_values(column)
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


def ask_which_is_the_label(table: TableRoles, columns: Sequence[ColumnProfile]) -> None:
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


def ask_about_unplaced_columns(
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
        is_reply = kind == "judge" and not is_judged and states_verdicts(table, column, 0.5)
        if is_reply or _may_be_judged(column, kind, is_labelled, is_judged):
            unplaced.append(column)
    if unplaced:
        for column in unplaced:
            table.ignored.pop(column.name, None)
        table.questions.append(_ask_whose_they_are(table, unplaced, is_labelled, is_judged))


def _may_be_judged(column: ColumnProfile, kind: str, is_labelled: bool, is_judged: bool) -> bool:
    """Whether a column that has no role may hold labels or what an evaluator said."""
    is_plausible = looks_judged(column) or has_words_of_labels(column)
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
    has_few_words = 0 < len(column.words) <= MAX_LABEL_WORDS and column.mean_length <= 40
    has_few_words = has_few_words and column.n_different < column.n_present and not column.has_questions
    varies = column.n_different > 1 or column.n_missing > 0
    if is_labelled and is_judged:
        if find_known_form(column.name, COLUMN_NAMES["label"]) and has_few_words and varies:
            return True  # LABEL_0 and LABEL_1 beside how sure a classifier is
        is_property = normalise_vocabulary_words(column.name).split()[:1] in [[word] for word in _PROPERTY_WORDS]
        return is_plausible and (is_telling or (column.kind != "grade" and not is_property))
    if not is_labelled and not is_judged:  # claims that nobody judged, or not in a way that we know
        return (is_plausible and column.kind != "grade") or (is_telling and has_few_words and varies)
    return is_plausible or (has_few_words and varies) or (is_telling and column.low is not None and varies)


def _ask_whose_they_are(
    table: TableRoles, unplaced: Sequence[ColumnProfile], is_labelled: bool, is_judged: bool
) -> OpenQuestion:
    """The question whose judgements some columns hold; the likeliest answer is the first."""
    names = [one.name for one in unplaced]
    people, evaluators, ignored = (
        read_columns_as_people(names),
        read_columns_as_evaluators(names),
        ignore_columns(names),
    )
    label = table.roles.get("label")
    if not is_labelled:
        ways = [] if len(names) == 1 else [way for one in names[:3] for way in _read_as_label(one, names)]
        ways = [*ways, people] if is_judged else [people, *ways]
        ways += [evaluators, ignored]
    elif is_judged:
        ways = [ignored, evaluators, people]
    else:
        ways = [evaluators, ignored]
    if label is not None and len(names) == 1:
        both = [label.name, names[0]]
        ways = [one for one in ways if one is not people]
        if not is_judged and not has_vocabulary_word_in_column_name("people", label.name):
            said = f"{names[0]} holds the labels, {label.name} is an evaluator"
            ways.append(PossibleReading(said, {"columns": {"label": names[0]}, "evaluator": [label.name]}))
        ways.append(PossibleReading(f"{both[0]} and {both[1]}: one annotator each", {"people": both}))
    held = ", ".join(f"{one.name} ({_describe_values(one)})" for one in unplaced[:4])
    return OpenQuestion(f"{held}: labels of people, what an evaluator said, or neither", ways)


def _read_as_label(name: str, names: Sequence[str]) -> list[PossibleReading]:
    """The readings by which one of several columns holds the labels, and the others nothing, or what judges said."""
    rest = [one for one in names if one != name]
    said, named = f"{name} holds the labels", {"columns": {"label": name}}
    return [
        PossibleReading(f"{said}; ignore {', '.join(rest)}", named | {"ignore": rest}),
        PossibleReading(f"{said}, {', '.join(rest)} what evaluators said", named | {"evaluator": rest}),
    ]


def ask_whether_label_is_of_being_right(table: TableRoles) -> None:
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


def ask_about_acceptance(table: TableRoles) -> None:
    """Ask where a column may say whether somebody accepted what another one says: labels that were suggested (Prodigy's
    ``answer``), or what a metric said. The labels follow from both then, and somebody has to write them down."""
    said = {name: {normalise_vocabulary_words(word) for word in one.words} for name, one in table.profiles.items()}
    accepted = [name for name, words in said.items() if words and words <= _ACCEPTANCE_WORDS]
    accepted = accepted or [
        one.name
        for one in table.profiles.values()
        if one.kind == "binary" and {*normalise_vocabulary_words(one.name).split()} & _ACCEPTANCE_NAMES
    ]
    labels = [name for name in table.profiles if name not in accepted and list_name_forms(name)[-1] == "label"]
    judged = labels or [name for name, one in table.profiles.items() if one.kind == "binary" and name not in accepted]
    if len(accepted) == len(judged) == 1 and (labels or "label" not in table.roles):
        (answer,), (verdict,) = accepted, judged
        others = "ignore" if labels else "evaluator"
        apart = {"columns": {"label": answer}, others: judged}
        kept = {"columns": {"label": verdict}, "ignore": accepted}
        ways = [
            PossibleReading(f"{answer} holds the labels, whatever {verdict} says", apart),
            PossibleReading(f"{verdict} holds the labels; ignore {answer}", kept),
        ]
        text = f"{answer} may say whether somebody agreed with {verdict}: then write a column of the labels that follow"
        table.questions = [OpenQuestion(text, ways)]


def ask_about_repeated_claims(table: TableRoles) -> None:
    """Ask where each claim stands in a row for each value of another column: systems, evaluators or their prompts, or
    annotators."""
    roles = table.roles
    if "claim" not in roles or {"annotator", "evaluator"} & {*roles} or table.people:
        return
    if "system" in roles and "model" not in normalise_vocabulary_words(roles["system"].name):
        return  # systems, by their name
    keys = [roles[ours].name for ours in ("claim", "doc") if ours in roles]
    if not table.rows[keys[0]].astype("str").duplicated(keep=False).all():
        return
    times = table.rows[keys].astype("str").groupby(keys).size()
    if times.min() < 2 or times.min() != times.max():
        return
    used = {one.name for ours, one in roles.items() if ours != "system"}
    judged = [one for pair in table.evaluators.values() for one in pair.items()]
    judged += [(ours, roles[ours].name) for ours in ("score", "prediction") if ours in roles]
    for column in table.profiles.values():
        if column.name in used or column.n_different != times.min():
            continue
        if table.rows[[*keys, column.name]].astype("str").duplicated().any():
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
