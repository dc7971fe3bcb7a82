"""Evaluators of columns of scores and of verdicts: which are one evaluator's, and which say the same."""

from __future__ import annotations

from collections.abc import Container, Sequence

from factaudit.tables.cell_values import parse_judgement_numbers
from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.judgement_columns import (
    VERDICT_AFFIXES,
    TableReading,
    are_same,
    detect_direction_of_threshold_between_columns,
    extract_evaluator_name,
    has_numbers,
    read_column_as_binary_judgements,
)
from factaudit.tables.open_questions import OpenQuestion, PossibleColumnReading, leave_columns_unread
from factaudit.tables.vocabulary import (
    find_vocabulary_words_in_column_name,
    has_name_of_error,
    is_reversed_column_name,
    normalise_vocabulary_words,
    parse_label_word,
)

#: Words of columns' names that do not say which evaluator judged.
_NAMELESS_WORDS = {*VERDICT_AFFIXES, "pred", "predicted", "raw", "judge", "llm", "model", "p", "support", "supported"}
_NAMELESS_WORDS |= {"binary", "final", "ai", "auto", "metric", "grader", "scorer", "evaluator", "eval", "classifier"}
_NAMELESS_WORDS |= {"detector", "confidence", "max"}
#: What a score is called beside the verdict that it is of.
_SCORE_NAMES = ("score", "confidence", "prob", "probability")


def pair_score_and_verdict_columns(
    reading: TableReading, columns: Sequence[ColumnProfile]
) -> dict[str, dict[str, str]]:
    """The evaluators of columns: ``X_score`` and ``X_label`` are one, X. Of two columns of a kind each is its own."""
    found: dict[str, dict[str, str]] = {}
    for column in columns:
        is_worded = column.kind in ("binary", "name", "text", "id") and not has_numbers(column)
        kind = "prediction" if is_worded else "score"
        stem = extract_evaluator_name(column.name)
        head, _, last = column.name.rpartition("_")
        if kind == "score" and parse_label_word(last) is not None and f"{head}_class" in found:
            stem = f"{head}_class"  # tidymodels' .pred_class and .pred_supported
        other = found.get(stem, {}).get(kind)
        copied = next(
            (one for pair in found.values() for one in pair.values() if _is_duplicate_column(reading, one, column)),
            None,
        )
        if other is not None and are_same(
            read_column_as_binary_judgements(reading.rows, reading.profiles[other]),
            read_column_as_binary_judgements(reading.rows, column),
        ):
            reading.unread[column.name] = f"the same as {other}"
        elif copied is not None:
            reading.unread[column.name] = f"the same as {copied}"
        elif other is not None:
            found[column.name] = {kind: column.name}
        else:
            found.setdefault(stem, {})[kind] = column.name
    for heading, dot, last in (pair["score"].rpartition(".") for pair in [*found.values()] if [*pair] == ["score"]):
        said = [
            one for one, pair in found.items() if "score" not in pair and pair["prediction"].startswith(f"{heading}.")
        ]
        if dot and normalise_vocabulary_words(last) in _SCORE_NAMES and len(said) == 1:  # Label Studio's "predictions"
            score = next(one for one, pair in found.items() if pair.get("score") == f"{heading}.{last}")
            found[score] |= found.pop(said[0])
    return found


def _is_duplicate_column(reading: TableReading, name: str, column: ColumnProfile) -> bool:
    """Whether a column says in each row what another one of the same judge does (``gpt4_supported``, ``gpt4_refuted``;
    ``groundedness``, ``gpt_groundedness``): the same verdict, or the same number of three or more."""
    judges = [find_vocabulary_words_in_column_name("judges", one) for one in (name, column.name)]
    other = reading.profiles[name]
    if not judges[0] & judges[1] or other.kind != column.kind:
        return False
    if column.kind == "binary":
        if has_name_of_error(name) == has_name_of_error(column.name):
            return False
        return are_same(*(read_column_as_binary_judgements(reading.rows, one) for one in (other, column)))
    words = [{*normalise_vocabulary_words(one).split()} for one in (name, column.name)]
    if column.n_different < 3 or not words[0] <= words[1]:
        return False
    return are_same(*(parse_judgement_numbers(reading.rows[one.name]).to_numpy() for one in (other, column)))


def leave_out_numbers_against(reading: TableReading, columns: Sequence[ColumnProfile]) -> None:
    """Leave out columns of numbers whose names differ from another's in yes and no alone (votes, log-probabilities):
    a high number in them is no support."""
    numeric = [name for name, one in reading.profiles.items() if one.low is not None]
    names = {name: normalise_vocabulary_words(name).split() for name in numeric}
    for column in (one for one in columns if one.name in names):
        for other, words in names.items():
            own = names[column.name]
            differing = [pair for pair in zip(words, own, strict=False) if pair[0] != pair[1]]
            if differing == [("1", "0")] and own[:-1] in (["logit"], ["logits"]) and len(words) == 2:
                reading.unread |= dict.fromkeys((other, column.name), "a class's logit: only the difference is a score")
            elif len(own) == len(words) and [[*map(parse_label_word, pair)] for pair in differing] == [[1, 0]]:
                reading.unread[column.name] = f"the opposite of {other}"


def join_nameless_score_and_verdict(reading: TableReading) -> None:
    """Make one evaluator of a score and a verdict whose names do not say whose they are (``raw_prob``, ``pred_label``),
    where the verdict follows from the score by a threshold; ask where it does not."""
    nameless = {
        name: pair
        for name, pair in reading.evaluators.items()
        if len(pair) == 1 and {*normalise_vocabulary_words(next(iter(pair.values()))).split()} <= _NAMELESS_WORDS
    }
    _leave_out_copies(reading, nameless)
    nameless = {name: pair for name, pair in nameless.items() if name in reading.evaluators}
    scores, verdicts = ([name for name, pair in nameless.items() if kind in pair] for kind in ("score", "prediction"))
    if len(scores) != 1 or len(verdicts) != 1:
        return
    both = {**nameless[verdicts[0]], **nameless[scores[0]]}
    said = read_column_as_binary_judgements(reading.rows, reading.profiles[both["prediction"]])
    direction = detect_direction_of_threshold_between_columns(reading.rows, reading.profiles[both["score"]], said)
    if direction == (-1 if is_reversed_column_name(both["score"]) else 1):
        del reading.evaluators[scores[0]]
        reading.evaluators[verdicts[0]] = both
        return
    columns = [both["prediction"], both["score"]]
    readings = [PossibleColumnReading(f"{' and '.join(columns)} are two evaluators", {"wide": columns})]
    if len(reading.evaluators) == 2:
        one = PossibleColumnReading(f"{' and '.join(columns)} are one evaluator's", {"columns": dict(both)})
        readings.insert(0, one)
    readings.append(leave_columns_unread([both["score"]]))
    text = f"{columns[0]!r} does not follow from {columns[1]!r} by a threshold: of one evaluator, or of two"
    reading.questions.append(OpenQuestion(text, readings))


def _leave_out_copies(reading: TableReading, nameless: Container[str]) -> None:
    """Leave out evaluators without a name that say in each row what one with a name does ("score", "lynx_8b")."""
    columns = {name: pair.get("prediction", pair.get("score", "")) for name, pair in reading.evaluators.items()}
    said = {
        name: read_column_as_binary_judgements(reading.rows, reading.profiles[column])
        for name, column in columns.items()
        if reading.profiles[column].kind == "binary"
    }
    for name in [one for one in said if one in nameless]:
        if same := [one for one in said if one not in nameless and are_same(said[name], said[one])]:
            del reading.evaluators[name]
            reading.unread[columns[name]] = f"the same as {same[0]}"


def ask_about_repeated_claims(reading: TableReading) -> None:
    """Ask where each claim stands in as many rows as another column has values: a judge's prompts or temperatures, each
    of which would be a claim more, or systems."""
    keys = [reading.roles[key].name for key in ("dataset", "system", "doc", "claim") if key in reading.roles]
    columns = [one for pair in reading.evaluators.values() for one in pair.items()]
    if "claim" not in reading.roles or {"claim_id", "annotator"} & {*reading.roles} or len(columns) != 1:
        return
    if not reading.rows[reading.roles["claim"].name].astype("str").duplicated(keep=False).all():
        return
    cells = reading.rows.astype("str")
    times = cells.groupby(keys).size()
    if times.min() < 2 or times.min() != times.max():
        return
    for column in reading.profiles.values():
        if column.n_different == times.min() and not cells.duplicated([*keys, column.name]).any():
            ((kind, judged),) = columns
            readings = [
                PossibleColumnReading(
                    f"each of {column.name} is an evaluator", {"columns": {"evaluator": column.name, kind: judged}}
                ),
                PossibleColumnReading(f"{column.name} names systems", {"columns": {"system": column.name}}),
            ]
            text = f"each claim stands in {times.min()} rows, which {column.name!r} tells apart"
            reading.questions.append(OpenQuestion(text, readings))
            return


def ask_about_constant_judge_columns(reading: TableReading, columns: Sequence[ColumnProfile]) -> None:
    """Ask of columns that are called judges and say the same of every claim."""
    for column in columns:
        name, said = column.name, column.words[0] if column.words else column.low
        kept = PossibleColumnReading(f"{extract_evaluator_name(name)} is an evaluator all the same", {"wide": [name]})
        ways = [kept, leave_columns_unread([name])]
        reading.questions.append(
            OpenQuestion(f"{name!r} says {said!r} of every claim", ways[::-1] if reading.evaluators else ways)
        )
