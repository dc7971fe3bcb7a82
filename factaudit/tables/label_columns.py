"""Which columns hold what people said of claims: the label, one column of each of several people, or a question."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from factaudit.tables.agreement_columns import (
    ask_whether_label_says_who_was_right,
    drop_columns_of_agreement_with_labels,
    find_columns_of_agreement,
    is_name_of_agreement,
)
from factaudit.tables.annotator_columns import list_annotators_like_models
from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.column_roles import list_searchable_forms_of_column_name
from factaudit.tables.judgement_columns import (
    LOOSE_JUDGE_WORDS,
    REASONS,
    TableReading,
    are_same,
    detect_direction_of_threshold_between_columns,
    read_column_as_binary_judgements,
)
from factaudit.tables.open_questions import OpenQuestion, PossibleColumnReading
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.vocabulary import (
    ANNOTATOR_COLUMN_PATTERN,
    COLUMN_NAMES,
    NUMBERED_PERSON_PATTERN,
    find_vocabulary_words_in_column_name,
    has_name_of_error,
    has_vocabulary_word_in_column_name,
    normalise_vocabulary_words,
    parse_label_word,
)

#: What a flag of an export says ("was_cancelled").
_FLAG_WORDS = {"0", "1", "True", "False"}


def find_annotator_label_columns(reading: TableReading, classes: Mapping[str, str]) -> None:
    """Take columns that hold what one of several people said each: annotator_1, annotator_2, or of one heading."""
    groups: dict[str, list[str]] = {}
    for name, kind in classes.items():
        words = normalise_vocabulary_words(name)
        heading = name.rpartition(".")[0]
        if kind in REASONS:
            continue
        if heading and has_vocabulary_word_in_column_name("people", heading):
            groups.setdefault(heading, []).append(name)
        elif kind in ("people", "label", "unknown") and (
            ANNOTATOR_COLUMN_PATTERN.fullmatch(words) or NUMBERED_PERSON_PATTERN.search(words)
        ):
            groups.setdefault(re.sub(r"[\d\W_]|\b\w\b", "", words), []).append(name)
    for group in groups.values():
        for code, word in (("value", "name"), ("score", "label")):  # of Labelbox and Phoenix; people saw the words
            for name in [one for one in group if one.endswith(f".{code}") and one.removesuffix(code) + word in group]:
                reading.unread[name] = "the answer's code"
                group.remove(name)
        kinds = {reading.profiles[name].kind for name in group}
        varied = [name for name in group if reading.profiles[name].n_different > 1]
        if _are_marks_of_classes(reading, group) or len(varied) == 1 < len(group):
            continue  # one who judges, and a note that is always the same
        if len(group) > 1 and (len(kinds) == 1 or kinds <= {"grade", "number", "share"}):
            reading.people += [name for name in group if name not in reading.people]


def _are_marks_of_classes(reading: TableReading, group: Sequence[str]) -> bool:
    """Whether each row has one mark in a group of columns: the class that it was given (``supported: true``)."""
    marked = reading.rows[list(group)].map(lambda cell: not is_missing_value(cell) and cell != "").to_numpy()
    return all(reading.profiles[name].n_different == 1 for name in group) and bool((marked.sum(axis=1) <= 1).all())


def find_label_column(reading: TableReading, classes: dict[str, str], labels_elsewhere: bool) -> None:
    """Take the column of labels; ask where it could be another one, or a judge's."""
    free = [column for column in reading.list_free_columns() if column.name in classes]
    by_people = [one for one in free if classes[one.name] == "people" and not _is_constant_flag(one)]
    labels = [one for one in free if classes[one.name] == "label"]
    exact = [one for one in labels if normalise_vocabulary_words(one.name) == "label"]
    judges = [one for one in free if classes[one.name] in ("judge", "plain")]
    judges += [one for ours, one in reading.roles.items() if ours in ("score", "prediction")]
    if reading.people:
        settled = [
            one
            for one in [*by_people, *labels]
            if has_vocabulary_word_in_column_name("settled", one.name) or one in exact
        ]
        by_people = settled or by_people
        if not settled:
            reading.questions += [_ask_about_label_beside_people(one) for one in labels if one.has_both_verdicts]
            labels = []
        if not by_people:
            return
    called = [*exact, *(one for one in by_people if one not in exact)] if by_people else labels
    varied = [one for one in [*by_people, *labels] if one.n_different > 1]
    if varied and any(one.n_different < 2 for one in called):
        by_people, labels = ([one for one in ones if one in varied] for ones in (by_people, labels))
        called = [one for one in called if one in varied] or labels
    for one in [one for one in called if not is_name_of_agreement(one.name)]:
        derived = find_columns_of_agreement(reading, one, [*judges, *called])
        reading.unread |= dict.fromkeys(derived, REASONS["derived"])
    called = [one for one in called if reading.is_free(one.name)]
    candidates = _drop_copies_of_label_candidates(reading, sorted(called, key=_rank_candidate))
    asked = [one for one in free if one.n_different == 1 < one.n_present and one in [*labels, *exact, *by_people]]
    answers = [one for one in free if one.kind == "binary" and one.n_different > 1]
    answers = [one for one in answers if one in candidates or classes[one.name] in ("answer", "unknown", "flag")]
    if asked and len(answers) == 1 and len(candidates) == 1 and candidates[0] in (asked[0], answers[0]):
        reading.questions.append(_ask_about_constant_label(asked[0], answers[0]))
    elif len(candidates) == 1 and (keys := _list_answer_keys_beside(candidates[0], free, classes)):
        reading.questions.append(_ask_which_column_is_label([*keys, *candidates], True))
    elif len(candidates) == 1:
        label = candidates[0]
        rest = [one for one in labels if one != label and reading.is_free(one.name)]
        drop_columns_of_agreement_with_labels(reading, label, [one for one in [*judges, *rest, *free] if one != label])
        rest = [one for one in rest if reading.is_free(one.name)]
        rest = _drop_copies_of_label_candidates(reading, [label, *rest])[1:]
        reading.roles["label"] = label
        ask_whether_label_says_who_was_right(reading, label)
        scores = [one for one in rest if _is_judge_by_value(one)]
        classes |= dict.fromkeys((one.name for one in scores), "judge")  # "grounded in context", beside the labels
        reading.questions += [_ask_about_second_label_column(one, label.name) for one in rest if one not in scores]
    elif len(candidates) > 1:
        reading.questions.append(_ask_which_column_is_label(candidates, bool({"claim", "claim_id"} & {*reading.roles})))
    elif not labels_elsewhere and not reading.people:
        _ask_about_possible_label_column(reading, free, classes)


def _list_answer_keys_beside(
    label: ColumnProfile, free: Sequence[ColumnProfile], classes: Mapping[str, str]
) -> list[ColumnProfile]:
    """Columns called an answer key whose answers are the words of what is taken for the label: they may be it."""
    words = {*map(normalise_vocabulary_words, label.words)}
    keys = [one for one in free if classes[one.name] == "answer" and one.has_both_verdicts]
    return [one for one in keys if {*map(normalise_vocabulary_words, one.words)} == words]


def _is_constant_flag(column: ColumnProfile) -> bool:
    """Whether a column that no label is called by says the same number of every claim (`cancelled_annotations`)."""
    is_called = has_vocabulary_word_in_column_name("labels", column.name) or any(
        key in COLUMN_NAMES["label"] for key in list_searchable_forms_of_column_name(column.name)
    )
    return not is_called and column.n_different == 1 < column.n_present and {*column.words} <= _FLAG_WORDS


def _is_judge_by_value(column: ColumnProfile) -> bool:
    return column.kind == "share" and column.is_fine_score


def _ask_about_possible_label_column(
    reading: TableReading, free: Sequence[ColumnProfile], classes: Mapping[str, str]
) -> None:
    """No column is called a label: one that could be is asked about."""
    candidates = {
        "the answer that was asked for": [
            one for one in free if classes[one.name] == "answer" and one.kind == "binary"
        ],
        "a property of the claim": [
            one for one in free if classes[one.name] == "flag" and one.kind == "binary" and one.n_different > 1
        ],
        "a count of something else than votes": [
            one for one in free if classes[one.name] == "measure" and _parse_last_word(one.name) == 1
        ],
    }
    plain = [one for one in free if classes[one.name] == "plain" and not one.is_fine_score]
    judges = [one for one in free if classes[one.name] == "judge"]
    has_scores = any(one.is_fine_score for one in judges)
    loose = [
        one
        for one in judges
        if (has_scores or normalise_vocabulary_words(one.name).endswith(" label"))
        and one.kind in ("binary", "share")
        and not (one.is_fine_score or plain)
        and find_vocabulary_words_in_column_name("judges", one.name) <= LOOSE_JUDGE_WORDS
    ]  # RAGBench's "adherence_score" of true and false, FRANK's "Factuality" of thirds, beside detectors' scores
    plain = plain or loose
    if counts := [one for one in free if classes[one.name] in ("measure", "quality") and _may_count_errors(one)]:
        reading.questions.append(_ask_about_error_count(counts[0]))
        return
    other, found = next(((other, ones) for other, ones in candidates.items() if len(ones) == 1), ("", []))
    if found:
        name = found[0].name
        readings = [_read_as_label(name), PossibleColumnReading(f"{name} is no label", {"unread": [name]})]
        reading.questions.append(OpenQuestion(f"{name!r} may hold people's labels, or {other}", readings))
    elif (
        len(plain) == 1
        and "evaluator" not in reading.roles
        and (loose or _may_be_of_nobody_beside(reading, free, plain[0], classes))
    ):
        name = plain[0].name
        reading.questions.append(
            OpenQuestion(
                f"{name!r} may hold people's labels, or what an evaluator said",
                [_read_as_label(name), PossibleColumnReading(f"{name} is an evaluator", {"wide": [name]})],
            )
        )


def classify_what_annotators_said(
    reading: TableReading, classes: Mapping[str, str], has_others: bool
) -> dict[str, str]:
    """Where a column says who annotated, the only column of verdicts, called by a word of people and of judges
    ("factuality"), is the label, beside a judge or in a file beside others."""
    who = [name for name in reading.profiles if normalise_vocabulary_words(name) in COLUMN_NAMES["annotator"]]
    others = [name for name, kind in classes.items() if kind != "judge" and reading.profiles[name].has_both_verdicts]
    if not who or others or list_annotators_like_models(reading.rows[who[0]]):
        return {}
    judges = [reading.profiles[name] for name, kind in classes.items() if kind == "judge"]
    loose = [one for one in judges if find_vocabulary_words_in_column_name("judges", one.name) <= LOOSE_JUDGE_WORDS]
    loose = [one for one in loose if one.has_both_verdicts]
    return {loose[0].name: "label"} if len(loose) == 1 and (has_others or len(judges) > 1) else {}


def _may_count_errors(column: ColumnProfile) -> bool:
    """Whether a column may say how many errors people found in a claim, or how grave they are (`num_errors`)."""
    whole = column.kind in ("grade", "binary") and column.low is not None
    return whole and column.low == 0 and column.n_different > 1 and has_name_of_error(column.name)


def _ask_about_error_count(column: ColumnProfile) -> OpenQuestion:
    name = column.name
    meanings: dict[str, int | None] = {word: int(float(word) == 0) for word in column.words}
    return OpenQuestion(
        f"{name!r} may hold people's labels: 0 where they found no error",
        [
            PossibleColumnReading(
                f"{name} holds the labels: 0 is attributable, more is not",
                {"columns": {"label": name}, "labels": meanings},
            ),
            PossibleColumnReading(f"{name} is no label", {"unread": [name]}),
        ],
    )


def _parse_last_word(column_name: str) -> int | None:
    words = normalise_vocabulary_words(column_name).split()
    return parse_label_word(words[-1]) if words else None


def _may_be_of_nobody_beside(
    reading: TableReading, free: Sequence[ColumnProfile], column: ColumnProfile, classes: Mapping[str, str]
) -> bool:
    """Whether no evaluator stands beside a column of verdicts, or one stands there, and people may say what the column
    is called ("verdict", "rating"), which does not follow from the evaluator's scores."""
    others = [one for one in free if one != column and classes[one.name] in ("judge", "plain")]
    if not others:
        return True
    said = read_column_as_binary_judgements(reading.rows, column)
    return (
        column.kind == "binary"
        and has_vocabulary_word_in_column_name("doubtful_labels", column.name)
        and not any(detect_direction_of_threshold_between_columns(reading.rows, one, said) for one in others)
    )


def _drop_copies_of_label_candidates(reading: TableReading, candidates: Sequence[ColumnProfile]) -> list[ColumnProfile]:
    """The candidates that do not say the same as an earlier one, as words, or as numbers that a threshold cuts."""
    kept: list[ColumnProfile] = []
    for one in candidates:
        for other in kept:
            said = read_column_as_binary_judgements(reading.rows, other)
            fine = one.kind != "binary" and detect_direction_of_threshold_between_columns(reading.rows, one, said) != 0
            if (one.kind == "binary" and are_same(said, read_column_as_binary_judgements(reading.rows, one))) or fine:
                reading.unread[one.name] = f"the same as {other.name}"
                break
        else:
            kept.append(one)
    return kept


def _rank_candidate(column: ColumnProfile) -> tuple[bool, int]:
    known = COLUMN_NAMES["label"]
    name = normalise_vocabulary_words(column.name)
    return column.kind != "binary", known.index(name) if name in known else len(known)


def _read_as_label(name: str) -> PossibleColumnReading:
    return PossibleColumnReading(f"{name} holds the labels", {"columns": {"label": name}})


def _ask_which_column_is_label(candidates: Sequence[ColumnProfile], has_claims: bool) -> OpenQuestion:
    names = [one.name for one in candidates]
    said = f"{', '.join(map(repr, names[:-1]))} and {names[-1]!r} all look like people's labels, and differ"
    readings = []
    for name in names:
        others = [one for one in names if one != name]
        readings.append(
            PossibleColumnReading(
                f"{name} holds the labels, {', '.join(others)} nothing that is needed",
                {"columns": {"label": name}, "unread": others},
            )
        )
    if len(names) == 2 and has_claims:
        readings += [
            PossibleColumnReading(
                f"{one} holds the labels, {other} is an evaluator", {"columns": {"label": one}, "wide": [other]}
            )
            for one, other in (names, names[::-1])
        ]
    if len({one.kind for one in candidates}) == 1:
        readings.append(PossibleColumnReading(f"{', '.join(names)} are one person's each", {"people": names}))
    # A name for what all agreed on is the likelier label, and an expert the likelier one than a crowd.
    readings.sort(
        key=lambda one: (
            0
            if has_vocabulary_word_in_column_name("settled", str(one.mapping.get("columns", {}).get("label", "")))
            else 1
        )
    )
    return OpenQuestion(said, readings)


def _ask_about_constant_label(asked: ColumnProfile, answer: ColumnProfile) -> OpenQuestion:
    """A label that never varies may be what was asked ("hallucination"), and another column the answer (accept)."""
    said = {word: value for word in answer.words if (value := parse_label_word(word)) is not None}
    ways = [said, {word: 1 - value for word, value in said.items()}]
    is_error = bool(asked.words) and parse_label_word(asked.words[0]) == 0
    readings = [
        PossibleColumnReading(
            f"{answer.name} holds the labels: {', '.join(repr(word) for word in way if way[word])} is attributable",
            {"columns": {"label": answer.name}, "labels": way, "unread": [asked.name]},
        )
        for way in (ways[::-1] if is_error else ways)
    ]
    readings.append(_read_as_label(asked.name))
    word = asked.words[0] if asked.words else asked.low
    text = f"{asked.name!r} says {word!r} of every claim: it may be what {answer.name!r} answers"
    return OpenQuestion(text, readings)


def _ask_about_second_label_column(column: ColumnProfile, label: str) -> OpenQuestion:
    """A column that looks like labels beside those that are."""
    name = column.name
    return OpenQuestion(
        f"{name!r} looks like labels, too, beside {label!r}",
        [
            PossibleColumnReading(f"{name} is read by nothing", {"unread": [name]}),
            PossibleColumnReading(f"{name} is an evaluator", {"wide": [name]}),
            PossibleColumnReading(f"{name} holds the labels", {"columns": {"label": name}, "unread": [label]}),
        ],
    )


def _ask_about_label_beside_people(column: ColumnProfile) -> OpenQuestion:
    """A column that looks like labels beside one of each of several people may be what these agreed on."""
    name = column.name
    evaluator = PossibleColumnReading(f"{name} is an evaluator", {"wide": [name]})
    nothing = PossibleColumnReading(f"{name} is read by nothing", {"unread": [name]})
    return OpenQuestion(
        f"{name!r} may be what people agreed on, beside what each of them said",
        [_read_as_label(name), evaluator, nothing],
    )


def ask_about_judgement_of_own_answer(reading: TableReading) -> None:
    """Ask, where nothing else is a label, of `gpt4_correct` beside the answers `gpt4_answer`: people may say it."""
    claim = reading.roles.get("claim")
    if claim is None or "label" in reading.roles or reading.people or "annotator" in reading.roles:
        return
    author = find_vocabulary_words_in_column_name("judges", claim.name) - LOOSE_JUDGE_WORDS
    for evaluator, columns in [*reading.evaluators.items()]:
        name = columns.get("prediction", columns.get("score", ""))
        if len(columns) == 1 and author & find_vocabulary_words_in_column_name("judges", name):
            del reading.evaluators[evaluator]
            wide = PossibleColumnReading(f"{name} is what an evaluator said of them", {"wide": [name]})
            text = f"{name!r} may say of the answers in {claim.name!r} what people or what an evaluator found"
            reading.questions.append(OpenQuestion(text, [_read_as_label(name), wide]))


def ask_about_scores_equal_to_labels(reading: TableReading) -> None:
    """Ask of a score or verdict of nobody in particular that says what the labels say."""
    label = reading.roles.get("label")
    unnamed: list[tuple[str, ColumnProfile]] = [
        (ours, reading.roles[ours]) for ours in ("score", "prediction") if ours in reading.roles
    ]
    unnamed = [] if "evaluator" in reading.roles else unnamed
    judged = [reading.profiles[one] for pair in reading.evaluators.values() for one in pair.values()]
    for column in judged:
        judges = find_vocabulary_words_in_column_name("judges", column.name)
        if judges and judges <= LOOSE_JUDGE_WORDS:  # RAGBench's "adherence_score"
            unnamed.append(("wide", column))
    for ours, column in unnamed:
        if label is None or column.kind != "binary":
            continue
        if are_same(
            read_column_as_binary_judgements(reading.rows, label),
            read_column_as_binary_judgements(reading.rows, column),
        ):
            name = column.name
            kept = {"wide": [name]} if ours == "wide" else {"columns": {ours: name}}
            readings = [
                PossibleColumnReading(f"{name} is the label once more", {"unread": [name]}),
                PossibleColumnReading(f"{name} is an evaluator that is always right", kept),
            ]
            reading.questions.append(OpenQuestion(f"{name!r} says the same as {label.name!r} in every row", readings))
