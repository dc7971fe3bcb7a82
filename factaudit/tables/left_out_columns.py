"""Questions about columns that nothing reads, though they may hold judgements: no guess leaves one out."""

from __future__ import annotations

from collections.abc import Sequence

from factaudit.tables.agreement_columns import ask_about_agreement_with_judge, ask_whether_labels_hold
from factaudit.tables.cell_values import find_verdict_in_reply, has_no_value
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.column_roles import holds_names_of_people
from factaudit.tables.judgement_columns import (
    REASONS,
    TableReading,
    classify_judgement_column_by_name,
)
from factaudit.tables.open_questions import (
    OpenQuestion,
    PossibleColumnReading,
    leave_columns_unread,
    read_columns_as_evaluators,
    read_columns_as_people,
)
from factaudit.tables.score_verdict_pairs import leave_out_numbers_against
from factaudit.tables.unread_judgements import goes_with_judgements, parse_column_as_numbers
from factaudit.tables.unreadable_rows import MAX_UNREADABLE_SHARE
from factaudit.tables.vocabulary import (
    find_vocabulary_words_in_column_name,
    has_name_of_error,
    has_vocabulary_word_in_column_name,
    parse_label_word,
    parse_stated_range,
)
from factaudit.tables.word_scales import is_scale_of_judgement, is_word_and_denial, rank_scale_words

#: What a name says that a column is, and may be wrong in.
_DOUBTED_REASONS = {REASONS[kind] for kind in ("measure", "quality", "flag")}
#: Numbers that go so well with judgements would do so by chance less often than this.
_LEVEL = 0.001
#: More different words are no judgement.
_MAX_WORDS = 6
#: Of more columns of a kind it is not asked which one holds the labels.
_MAX_COLUMNS = 8


def ask_about_columns_left_out(readings: Sequence[TableReading], chosen: ColumnMapping) -> None:
    """Ask, of tables that are read otherwise, of columns that may hold judgements and are read by nothing: of most
    where there are no labels, or no judges, and of few where there are both."""
    roles = {ours for one in readings for ours in one.roles}
    has_labels = "label" in roles or any(one.people or one.label_evaluators for one in readings)
    has_labels = has_labels or bool(chosen.annotators)
    has_judges = bool({"score", "prediction"} & roles) or any(one.evaluators for one in readings)
    has_judges = has_judges or bool(chosen.evaluators)
    mapped = {*chosen.annotators.values()}
    mapped |= {name for one in chosen.evaluators.values() for name in (one.score, one.prediction) if name}
    for one in readings:
        if one.kind is None and {"claim", "claim_id"} & {*one.roles}:
            free = [column for name, column in one.profiles.items() if name not in mapped]
            if has_judges and not has_labels:
                ask_about_agreement_with_judge(one, [column for column in free if column.has_both_verdicts])
            asked = ask_whether_labels_hold(one, [column for column in free if one.is_free(column.name)])
            free = [column for column in free if column not in asked]
            left = [column for column in free if _may_judge(one, column, has_labels, has_judges)]
            before = dict(one.unread)
            leave_out_numbers_against(one, left)
            left = [column for column in left if one.unread.get(column.name) == before.get(column.name)]
            marks = [] if has_labels else [column for column in free if _may_mark_claims(one, column)]
            left = [column for column in left if column not in marks]
            # The kinds of errors are labels where nothing else is.
            _ask_about_marks(one, [column for column in marks if column.n_different == 1 or not left])
            ask_about_unknown_columns(one, left, has_labels)


def _may_judge(reading: TableReading, column: ColumnProfile, has_labels: bool, has_judges: bool) -> bool:
    reason = reading.unread.get(column.name)
    if (not reading.is_free(column.name) and reason not in _DOUBTED_REASONS) or holds_names_of_people(column):
        return False
    by_people = has_vocabulary_word_in_column_name("people", column.name)
    by_judges = has_vocabulary_word_in_column_name("judges", column.name)
    of_support = has_vocabulary_word_in_column_name("labels", column.name) or has_name_of_error(column.name)
    may_be_label = has_vocabulary_word_in_column_name("doubtful_labels", column.name)
    is_called = (not has_labels and (by_people or of_support or may_be_label)) or (
        not has_judges and (by_judges or of_support)
    )
    if column.is_time or column.counts_up or (column.n_different < 2 and not (by_people and column.kind == "binary")):
        return False
    kind = classify_judgement_column_by_name(column)
    is_stated = parse_stated_range(column.name) is not None
    if column.kind == "number" and kind in ("unknown", "judge", "plain", "both"):
        may_be_score = (not column.is_whole and not has_judges) or is_stated
        return may_be_score or _go_with_judgements(reading, column)
    if kind in ("measure", "quality") and not _is_doubtful_measure(column):
        return False
    if column.kind in ("name", "text", "id") and not has_judges and _are_replies(reading, column):
        return True
    ranks = rank_scale_words(column.words) if column.low is None else None
    is_scale = ranks is not None
    has_sides = column.has_opposite_verdicts or is_word_and_denial(column.words)
    has_sides = has_sides or bool(ranks and min(ranks.values()) < 0 < max(ranks.values()))
    if not has_labels and kind == "unknown" and has_sides:
        return True
    is_few = is_scale or (column.kind == "name" and len(column.words) <= _MAX_WORDS)
    is_called = is_called or (is_scale and not (has_labels and has_judges) and is_scale_of_judgement(column.words))
    return is_called and (is_few or column.kind in ("binary", "share", "grade"))


def _may_mark_claims(reading: TableReading, column: ColumnProfile) -> bool:
    """Whether a column has one word in some rows and nothing in the others, under a name of a label; or the kinds of
    errors in some."""
    is_error = has_name_of_error(column.name)
    is_mark = column.kind in ("binary", "name") and column.n_different == 1
    is_mark = column.n_missing > 0 and (
        is_mark or (column.kind in ("name", "text") and is_error and bool(column.words))
    )
    reason = reading.unread.get(column.name)
    is_open = reading.is_free(column.name) or reason in _DOUBTED_REASONS or reason == REASONS["constant"]
    kinds = ("doubtful_labels", "labels", "people")
    is_called = any(has_vocabulary_word_in_column_name(kind, column.name) for kind in kinds)
    return is_mark and is_open and (is_called or is_error)


def _ask_about_marks(reading: TableReading, columns: Sequence[ColumnProfile]) -> None:
    """Ask whether marked claims are the errors, or those that are not marked."""
    for column in columns:
        name, marks = column.name, column.words
        listed = ", ".join(map(repr, marks))
        may_be_error = has_name_of_error(name)
        ways = [
            PossibleColumnReading(
                f"{name}: people's labels, {listed} is {'not ' * (not said)}attributable, and what is not marked is"
                f"{' not' * said}",
                {"columns": {"label": name}, "labels": {**dict.fromkeys(marks, said), "": 1 - said}},
            )
            for said in ((0, 1) if may_be_error else (1, 0))
            if said == 0 or len(marks) == 1
        ]
        text = f"{name}: {listed} or nothing; which of them is attributable is not said"
        reading.questions.append(OpenQuestion(text, [*ways, leave_columns_unread([name])]))


def _are_replies(reading: TableReading, column: ColumnProfile) -> bool:
    """Whether texts begin or end with a verdict, and not always with the same."""
    texts = [text for text in reading.rows[column.name] if not has_no_value(text)]
    said, n_without = set(), 0
    for text in texts:
        verdict = find_verdict_in_reply(text)
        if verdict is not None:
            said.add(parse_label_word(verdict))
            continue
        n_without += 1
        if n_without > MAX_UNREADABLE_SHARE * len(texts):  # ordinary texts, of which there may be many, and long ones
            return False
    return said == {0, 1}


def _is_doubtful_measure(column: ColumnProfile) -> bool:
    """Whether all words of a name that call it a measure or a quality may be said of support, too."""
    said = {
        word
        for kind in ("measures", "qualities", "soft_measures")
        for word in find_vocabulary_words_in_column_name(kind, column.name)
    }
    may_be_said = find_vocabulary_words_in_column_name("doubtful_measures", column.name)
    is_judge_sure = has_vocabulary_word_in_column_name("judges", column.name)  # "confidence of judge"
    return said <= may_be_said | ({"confidence", "conf"} if is_judge_sure else set())


def _go_with_judgements(reading: TableReading, column: ColumnProfile) -> bool:
    """Whether numbers rise or fall with the labels, or with what an evaluator says, by more than chance."""
    read = [one for ours, one in reading.roles.items() if ours in ("label", "score", "prediction")]
    read += [reading.profiles[name] for pair in reading.evaluators.values() for name in pair.values()]
    said = [parse_column_as_numbers(reading.rows, one) for one in read]
    return any(goes_with_judgements(reading.rows, column, one, _LEVEL) for one in said)


def ask_about_unknown_columns(reading: TableReading, unknown: Sequence[ColumnProfile], has_labels: bool) -> None:
    """Ask of columns of judgements whose names tell nothing: people, evaluators, or something else."""
    groups: dict[tuple[str, ...], list[str]] = {}
    asked = ask_whether_labels_hold(reading, unknown)
    for column in [one for one in unknown if one not in asked]:
        key = (column.kind, *(sorted(column.words) if column.kind == "binary" else ()))
        groups.setdefault(key, []).append(column.name)
    for (kind, *_), names in groups.items():
        listed = ", ".join(names)
        text = f"{listed}: judgements of people, of evaluators, or something else; the name does not say"
        reading.questions.append(OpenQuestion(text, _list_readings_of_unknown_columns(names, kind, has_labels)))


def _list_readings_of_unknown_columns(names: list[str], kind: str, has_labels: bool) -> list[PossibleColumnReading]:
    """What columns of a kind may be, the likelier first."""
    several = len(names) > 1
    by_people, by_judges = read_columns_as_people(names), read_columns_as_evaluators(names)
    nothing = leave_columns_unread(names)
    if has_labels and has_vocabulary_word_in_column_name("settled", names[0]) and not several:
        return [by_people, by_judges, nothing]  # "final", beside a column of each rater
    if has_labels:
        return [by_judges, nothing, *([by_people] if several else [])]  # people, beside what they agreed on
    judges = [one for one in names if has_vocabulary_word_in_column_name("judges", one)]
    people = [one for one in names if has_vocabulary_word_in_column_name("people", one) and one not in judges]
    others = [one for one in names if one not in people]
    readings = [by_people, by_judges, nothing]
    if people and others:
        readings.insert(0, _read_as_people_and_judges(people, others))
    elif len(names) == 2:
        readings += [_read_as_people_and_judges([one], [other]) for one, other in (names, names[::-1])]
    elif judges and not people:
        readings = [by_judges, by_people, nothing]
    if not several and kind == "binary":
        turned = {"columns": {"label": names[0]}, "scales": {names[0]: [1.0, 0.0]}}
        readings.append(PossibleColumnReading(f"{names[0]}: people's labels, 1 and yes are not attributable", turned))
    if several and len(names) <= _MAX_COLUMNS and len({one.rstrip("0123456789") for one in names}) == 1:
        readings += [  # the questions of a form, of which one asks for support, or rounds of which one counts
            PossibleColumnReading(
                f"{one} holds people's labels, the others nothing that is needed",
                {"columns": {"label": one}, "unread": [name for name in names if name != one]},
            )
            for one in names
        ]
    return readings


def _read_as_people_and_judges(people: Sequence[str], judges: Sequence[str]) -> PossibleColumnReading:
    """The reading that columns hold what people said, and others what judges said."""
    reading = read_columns_as_people(people)
    return PossibleColumnReading(
        f"{reading.description}; {', '.join(judges)}: evaluators", {**reading.mapping, "wide": [*judges]}
    )
