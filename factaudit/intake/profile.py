"""What the columns of a table seem to hold, and the mapping that follows: proposed and told, never applied unseen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd

from factaudit.intake.mapping import Mapping, Wide
from factaudit.intake.words import BETWEEN, COLUMN_NAMES, GOLD, NEGATIVE, PERSON, POSITIVE, REVERSED, plain, polarity
from factaudit.tables import CLAIM_COLUMNS

#: Columns of ours that say nothing of an evaluator.
_NO_VERDICTS = (*CLAIM_COLUMNS, "annotator")
#: More different values than this are no words of a scale.
_MAX_WORDS = 12
#: The rows that are looked at for the kind of a column.
_LOOKED_AT = 20_000
#: Scales that whole grades are commonly on; the narrowest that holds all values is proposed.
_SCALES = ((0, 1), (1, 3), (1, 5), (0, 5), (1, 7), (1, 10), (0, 10), (0, 100))
#: Names of the content of whatever the name before it says.
_BARE = ("text", "content", "value", "page content")
_ENDINGS = ("score", "label", "pred", "prediction", "verdict", "judgement", "judgment", "decision", "prob", "rating")


@dataclass(frozen=True)
class Column:
    """What one column holds.

    ``kind``: ``empty``, ``binary`` (words or 0 / 1), ``share`` (numbers in [0, 1]), ``grade`` (whole numbers on a
    scale), ``number``, ``list``, ``name`` (few different texts), ``text``, or ``id`` (all different).
    """

    name: str
    kind: str
    n_different: int
    n_missing: int
    words: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    mean_length: float = 0.0

    def __str__(self) -> str:
        held = ", ".join(map(repr, self.words[:6])) if self.words and self.kind in ("binary", "name") else ""
        if not held and self.low is not None:
            held = f"{self.low:g} to {self.high:g}"
        held = held or (f"about {self.mean_length:.0f} characters" if self.kind in ("text", "id") else "")
        missing = f", {self.n_missing:,} empty" if self.n_missing else ""
        return f"{self.name:<24} {self.kind:<7} {held}{missing}"


@dataclass(frozen=True)
class Proposal:
    """A mapping with what speaks for it: ``told`` (what was taken for what), ``questions`` that only the user can
    answer (with what is assumed until then), and the columns that nothing reads, each with a hint."""

    mapping: Mapping
    told: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    @property
    def is_standard(self) -> bool:
        """The tables have our columns already, and nothing is to be mapped."""
        return self.mapping == Mapping()


def describe(name: str, values: pd.Series) -> Column:
    """What a column holds, from at most 20,000 of its rows."""
    values = values.iloc[:_LOOKED_AT]
    present = [value for value in values.tolist() if not _missing(value)]
    n_missing = len(values) - len(present)
    if not present:
        return Column(name, "empty", 0, n_missing)
    if any(isinstance(value, list | tuple | np.ndarray) for value in present):
        return Column(name, "list", len(present), n_missing)
    texts = [str(value) for value in present]
    different = list(dict.fromkeys(texts))
    length = float(np.mean([len(text) for text in texts]))
    words = tuple(different) if len(different) <= _MAX_WORDS else ()
    known = {plain(word) for word in words}
    if words and known <= POSITIVE | NEGATIVE | BETWEEN and any(polarity(word) is not None for word in words):
        return Column(name, "binary", len(different), n_missing, words, mean_length=length)
    numbers = pd.to_numeric(pd.Series(texts), errors="coerce").to_numpy(dtype=np.float64)
    if np.isfinite(numbers).all():
        low, high = float(numbers.min()), float(numbers.max())
        whole = bool((numbers == np.round(numbers)).all())
        is_id = whole and len(different) == len(texts) and len(texts) > _MAX_WORDS
        kind = "id" if is_id else "grade" if whole and len(different) <= _MAX_WORDS else "number"
        kind = "share" if kind != "id" and low >= 0 and high <= 1 else kind
        return Column(name, kind, len(different), n_missing, words, low, high, length)
    if len(different) == len(texts) and length < 40 and not any(" " in text for text in texts[:50]):
        return Column(name, "id", len(different), n_missing, words, mean_length=length)
    kind = "name" if len(different) <= max(2, len(texts) // 3) and length < 60 else "text"
    return Column(name, kind, len(different), n_missing, words, mean_length=length)


def propose(tables: Sequence[tuple[str, pd.DataFrame]]) -> Proposal:
    """The mapping that tables (name, rows) seem to need; nothing where their columns are ours already."""
    columns: dict[str, list[str]] = {}
    labels: dict[str, int | None] = {}
    reversed_words: dict[str, dict[str, int | None]] = {}
    evaluators: dict[str, Wide] = {}
    annotators: dict[str, str] = {}
    told: list[str] = []
    questions: list[str] = []
    unread: list[str] = []
    extra: dict[str, Any] = {}
    roles: dict[str, Column] = {}
    for name, table in tables:
        found = [describe(str(column), table[column]) for column in table.columns]
        people = _people(found)
        annotators |= {column.name: column.name for column in people}
        roles |= {"label": people[0]} if people and "label" not in roles else {}
        others = [column for column in found if column not in people]
        taken = _roles(others)
        wide = {} if {"evaluator", "score"} <= set(taken) else _evaluators(others, taken)
        if wide:
            taken = {ours: column for ours, column in taken.items() if ours in _NO_VERDICTS}
            evaluators |= wide
        for ours, column in taken.items():
            if column.name not in columns.setdefault(ours, []):
                columns[ours].append(column.name)
            roles.setdefault(ours, column)
        said = {c for one in wide.values() for c in (one.score, one.prediction)}
        said |= {column.name for column in (*taken.values(), *people)}
        unread += [_unread(name, column.name, len(tables) > 1) for column in found if column.name not in said]
        for column in found:
            if column.kind == "binary" and (column.name in said):
                own, asked = _words(column)
                if REVERSED.search(plain(column.name)):
                    reversed_words[column.name] = own
                else:
                    labels |= own
                questions += [one for one in asked if one not in questions]
    if "label" in roles and roles["label"].kind in ("grade", "number", "share") and roles["label"].n_different > 1:
        limit, question = _grades(roles["label"])
        if limit is not None:
            extra["label_threshold"] = limit
            questions.append(question)
    if "score" in roles and (scale := _scale(roles["score"])) is not None:
        extra["scale"] = scale
        questions.append(_told_scale(roles["score"], scale))
    for one, wide_column in evaluators.items():
        if wide_column.scale is not None:
            low, high = wide_column.scale
            questions.append(
                f"{one!r} is taken on the scale from {low:g} (not supported) to {high:g} (supported), support beyond "
                "the middle: say --scale LOW:HIGH or --threshold if not"
            )
    renamed = {ours: names for ours, names in columns.items() if names != [ours]}
    if renamed:
        told.append("columns  " + ", ".join(f"{' / '.join(names)} → {ours}" for ours, names in renamed.items()))
    if evaluators:
        told.append("evaluators  " + ", ".join(f"{one} ({_told_wide(wide)})" for one, wide in evaluators.items()))
    meant = {word: value for word, value in labels.items() if plain(word) not in ("0", "1", "true", "false")}
    if meant or reversed_words:
        shown = [meant, *reversed_words.values()]
        told.append("labels  " + ", ".join(f"{word} = {value}" for words in shown for word, value in words.items()))
    if annotators or "annotator" in columns:
        who = f"{', '.join(annotators)} are people" if annotators else f"{columns['annotator'][0]} says who"
        told.append(f"annotators  {who}: labels by majority (--label-rule any_unattributable for another)")
    elif "label" not in columns and "claim" in columns:
        told.append("labels  none: no column was taken for people's labels (--map label=COLUMN)")
    if "dataset" not in columns and ("claim" in columns):
        told.append("dataset  the file's name, since no column says it (--map dataset=COLUMN)")
    mapping = Mapping(
        columns={ours: names[0] if len(names) == 1 else names for ours, names in renamed.items()},
        labels=meant,
        words=reversed_words,
        evaluators=evaluators,
        annotators=annotators,
        **extra,
    )
    return Proposal(mapping, told, questions, unread)


def _roles(found: Sequence[Column]) -> dict[str, Column]:
    """Which column plays which role: by its name, where what it holds fits; each column once, exact names first."""
    names = {plain(column.name): column for column in found}
    # In a dotted name (`input.text`, `metadata.model`) the last part that is no mere "text" says what it is.
    for column in found:
        parts = [plain(part) for part in column.name.split(".")]
        if len(parts) > 1:
            names.setdefault(next((part for part in reversed(parts) if part not in _BARE), parts[-1]), column)
    taken: dict[str, Column] = {}
    used: set[str] = set()
    ranked = sorted(
        (place, order, ours, name)
        for order, (ours, known) in enumerate(COLUMN_NAMES.items())
        for place, name in enumerate(known)
        if name in names
    )
    for _, _, ours, name in ranked:
        column = names[name]
        if ours not in taken and column.name not in used and _fits(ours, column):
            taken[ours] = column
            used.add(column.name)
    if "label" not in taken:  # `verdict_gold`, where it is the only one
        free = (one for one in found if one.name not in used and _fits("label", one))
        gold = [one for one in free if GOLD & {*plain(one.name).split()}]
        taken |= {"label": gold[0]} if len(gold) == 1 else {}
    return taken


def _people(found: Sequence[Column]) -> list[Column]:
    """Columns that hold what one of several people said each; none where there is but one."""
    people = [
        one for one in found if PERSON.fullmatch(plain(one.name)) and one.kind in ("binary", "grade", "share", "number")
    ]
    return people if len(people) > 1 else []


def _fits(ours: str, column: Column) -> bool:
    if column.kind == "empty":
        return ours == plain(column.name).replace(" ", "_")
    if ours in ("claim", "doc"):
        sentences = column.mean_length >= 15 or any(" " in word.strip() for word in column.words)
        texts = column.kind == "text" or (column.kind in ("name", "id") and sentences)
        return texts or (ours == "doc" and column.kind == "list") or plain(column.name) == ours
    if ours == "label":
        return column.kind in ("binary", "grade", "share") or (column.kind == "number" and column.n_different <= 50)
    if ours in ("score", "prediction"):
        return column.kind in ("binary", "share", "grade", "number")
    if ours == "claim_id":
        return column.kind in ("id", "text", "name", "grade", "number", "share")
    if ours in ("system", "dataset", "evaluator", "task", "split"):
        return column.kind in ("name", "id", "text", "grade", "number") and column.mean_length < 80
    return True


def _evaluators(found: Iterable[Column], taken: dict[str, Column]) -> dict[str, Wide]:
    """The evaluators of a wide table: every column of scores or verdicts that is nothing else.

    ``X_score`` and ``X_label`` are one evaluator, X. Without a column for claims or ids there is nothing to judge.
    """
    mine = {column.name for ours, column in taken.items() if ours in _NO_VERDICTS}
    pairs: dict[str, dict[str, Column]] = {}
    for column in found:
        if column.name in mine or column.kind not in ("binary", "share", "grade"):
            continue
        if (column.kind == "grade" and not _scale(column)) or (column.n_different < 2 and column.kind != "binary"):
            continue
        stem = _stem(column.name)
        pairs.setdefault(stem, {})["prediction" if column.kind == "binary" else "score"] = column
    if not pairs or not {"claim", "claim_id"} & set(taken):
        return {}
    # Columns called just `score` or `prediction` are the long form: of an evaluator in a column, or of the file's name.
    said = {taken[key].name for key in ("score", "prediction") if key in taken}
    if {column.name for pair in pairs.values() for column in pair.values()} <= said:
        return {}
    return {
        stem: Wide(
            score=None if "score" not in pair else pair["score"].name,
            prediction=None if "prediction" not in pair else pair["prediction"].name,
            scale=None if "score" not in pair else _scale(pair["score"]),
        )
        for stem, pair in pairs.items()
    }


def _stem(name: str) -> str:
    """The evaluator's name in a column's: ``gpt4_score`` and ``pred_gpt4`` are gpt4's."""
    for ending in _ENDINGS:
        for separator in ("_", "-", ".", " "):
            if name.lower().endswith(f"{separator}{ending}"):
                return name[: -len(ending) - 1]
            if name.lower().startswith(f"{ending}{separator}"):
                return name[len(ending) + 1 :]
    return name


def _scale(column: Column) -> tuple[float, float] | None:
    """Not supported and supported on the column's scale; None for [0, 1] with 1 = supported, or nothing to tell by."""
    if column.low is None or column.high is None:
        return None
    low, high = next(((a, b) for a, b in _SCALES if a <= column.low and column.high <= b), (column.low, column.high))
    if low == high:
        return None
    if REVERSED.search(plain(column.name)):
        return float(high), float(low)
    return None if (low, high) == (0, 1) else (float(low), float(high))


def _told_scale(column: Column, scale: tuple[float, float]) -> str:
    return (
        f"{column.name!r} holds {column.low:g} to {column.high:g}: taken on the scale from {scale[0]:g} (not "
        f"supported) to {scale[1]:g} (supported), support beyond the middle: say --scale LOW:HIGH or --threshold if not"
    )


def _told_wide(wide: Wide) -> str:
    return " + ".join(one for one in (wide.score, wide.prediction) if one)


def _words(column: Column) -> tuple[dict[str, int | None], list[str]]:
    """Each word of a column as 1 or 0; a word between is 0, which is asked about."""
    reverse = bool(REVERSED.search(plain(column.name)))
    found: dict[str, int | None] = {}
    between = []
    for word in sorted(column.words):
        value = polarity(word)
        if value is None:
            between.append(word)
        bare = plain(word) in ("0", "1", "true", "false", "yes", "no", "y", "n", "t", "f")
        found[word] = 0 if value is None else 1 - value if reverse and bare else value
    asked = [f"{column.name!r}: {', '.join(map(repr, between))} taken as 0: say --labels if not"] if between else []
    if reverse:
        asked.append(f"{column.name!r} is taken to say 1 of what is not supported: say --labels 1=1,0=0 if not")
    return found, asked


def _grades(column: Column) -> tuple[float | None, str]:
    """The threshold of graded labels: above the middle of their scale is attributable."""
    if column.low is None or column.high is None:
        return None, ""
    low, high = _scale(column) or (0.0, 1.0)
    limit = (low + high) / 2
    text = (
        f"{column.name!r} holds grades from {column.low:g} to {column.high:g}: above {limit:g} is taken as "
        "attributable: say --label-threshold if not"
    )
    return limit, text


def nearest(name: str) -> str | None:
    """The column of ours whose known names a column's is nearest to; None where none is near."""
    known = {one: ours for ours, names in COLUMN_NAMES.items() for one in names}
    near = get_close_matches(plain(name), list(known), n=1, cutoff=0.8)
    return known[near[0]] if near else None


def _unread(source: str, name: str, many: bool) -> str:
    where, near = f"{source}: " if many else "", nearest(name)
    return f"{where}{name}" + (f" (did you mean {near!r}?)" if near else "")


def _missing(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value)
