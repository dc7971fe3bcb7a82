"""Knows the names that users give to columns and the words that they write into cells.

The lists are data: vocabulary.yaml is English, and vocabulary_other_languages.yaml has the same
lists for other languages.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any, Literal

from factaudit.settings.yaml_file import read_shipped_yaml


def _join_languages(english: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """Each English list, followed by the words in other languages. Names of columns stand where the
    English list has a ``~``."""
    names = {}
    for ours, known in english["columns"].items():
        at = known.index(None) if None in known else len(known)
        names[ours] = [*known[:at], *others["columns"].get(ours, ()), *known[at + 1 :]]
    lists = {kind: [*words, *others.get(kind, ())] for kind, words in english.items()}
    return {**lists, "columns": names}


def _compile_pattern(text: str) -> re.Pattern[str]:
    """A pattern in which ``{people}`` stands for the words for a single person, and
    ``{errors_elsewhere}`` for what smells of an error in other languages."""
    single = [word for word in _LISTS["people"] if word not in _LISTS["settled"]]
    text = text.replace("{people}", "|".join(single))
    text = text.replace("{errors_elsewhere}", "|".join(_OTHERS["error_smells"]))
    return re.compile(text, re.IGNORECASE)


_ENGLISH = read_shipped_yaml("factaudit.tables", "vocabulary.yaml")
_OTHERS = read_shipped_yaml("factaudit.tables", "vocabulary_other_languages.yaml")
_TEXTS = _ENGLISH.pop("patterns")
_LISTS = _join_languages(_ENGLISH, _OTHERS)
_PATTERNS = {name: _compile_pattern(text) for name, text in _TEXTS.items()}
#: factaudit's name of a column -> names that users give it, the likelier first, as
#: `normalise_words` writes them.
COLUMN_NAMES: dict[str, list[str]] = _LISTS.pop("columns")
#: Words in cells: attributable, unattributable, in between, blank; and the words that a failed
#: judge leaves.
ATTRIBUTABLE_WORDS, UNATTRIBUTABLE_WORDS, INTERMEDIATE_WORDS, BLANK_WORDS, FAILURE_WORDS = (
    frozenset(_LISTS[name])
    for name in ("attributable", "unattributable", "between", "blank", "failures")
)
#: Parts of the name of an evaluator's column that say what it holds.
EVALUATOR_AFFIXES: list[str] = _LISTS["affixes"]
#: Words whose meaning depends on the column's name: yes, true, 1.
BARE_WORDS = frozenset(_LISTS["bare"])
#: Words in names after which it is clear what 1 means.
_KNOWN_WORDS = frozenset(
    word
    for kind, phrases in [*COLUMN_NAMES.items(), *_LISTS.items()]
    if kind not in ("unattributable", "between", "failures", "error_smells")
    for phrase in phrases
    for word in str(phrase).split()
)
#: Words in names that do not say what 1 means, but whose judgement it is, of what, and in which
#: form.
_NEUTRAL_WORDS = frozenset(
    word
    for kind in ("people", "judges", "neutral")
    for phrase in _LISTS[kind]
    for word in phrase.split()
) - {*_LISTS["supports"]}
_DENIALS = sorted(_LISTS["denials"], key=len, reverse=True)
_ANY_DENIAL = "|".join(_DENIALS)
_GLUED_DENIAL = "|".join(word for word in _DENIALS if not word.isascii())
#: A denial before or behind a word, or in its first letters: "not ok", "stöds inte", "不一致",
#: "untruthful".
_DENIED_PATTERN = re.compile(
    rf"(?:{_ANY_DENIAL}) (.+)|(.+)"
    rf" (?:{_ANY_DENIAL})|(?:{_GLUED_DENIAL})(.+)|(.+)(?:{_GLUED_DENIAL})"
    r"|(?:un|in|im|il|ir|mis|dis|nie|ne)(\w{4,})"
)
#: Parts of a name that may mean an error. What 1 means is then asked, unless the name is known to
#: turn scores round.
_SMELL_PATTERN = re.compile("|".join(_LISTS["error_smells"]))
#: What an error means with the word beside it: there is one, or none.
_ERROR_BESIDE = {"": 0, **dict.fromkeys(_LISTS["presences"], 0), **dict.fromkeys(_DENIALS, 1)}
#: A longer text is no word with a denial.
_MAX_WORD_LENGTH = 60
#: Letters whose accents cannot be removed by Unicode.
_PLAIN_LETTERS = str.maketrans("łıøđ", "liod")

Direction = Literal["upright", "reversed", "doubtful"]


def normalise_words(text: object) -> str:
    """A name or word in lower case, without accents, with single blanks in place of ``_``, ``-``,
    dots and the humps of camelCase.

    >>> [normalise_words(one) for one in ("modelName", "Not_Supported", 1.0, "Énoncé")]
    ['model name', 'not supported', '1', 'enonce']
    """
    if whole := re.fullmatch(r"(-?\d+)(\.0+|,00?)?", str(text).strip()):
        return whole[1]
    humps = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])", " ", str(text))
    words = re.sub(r"[\s_\-/]+", " ", humps).strip().lower()
    if not words.isascii():
        parts = unicodedata.normalize("NFKD", words)
        words = unicodedata.normalize(
            "NFC", "".join(one for one in parts if not "\u0300" <= one <= "\u036f")
        )
        words = words.replace("\ufe0f", "").translate(_PLAIN_LETTERS)
    return words if re.fullmatch(r"-?\d*\.\d+", words) else re.sub(r"[\s.]+", " ", words).strip()


def normalise_label_word(word: object) -> str:
    """The word in a cell as the vocabulary writes it, without the letter or number of an option
    before it.

    >>> normalise_label_word("A) Supported"), normalise_label_word("2. No")
    ('supported', 'no')
    """
    return normalise_words(_PATTERNS["option"].sub("", str(word).strip(), count=1))


def parse_label_word(word: object) -> int | None:
    """1 or 0 if a word says so; None if it says neither, or something in between."""
    known = normalise_label_word(word)
    if known in ATTRIBUTABLE_WORDS or known in UNATTRIBUTABLE_WORDS:
        return int(known in ATTRIBUTABLE_WORDS)
    if len(known) > _MAX_WORD_LENGTH:
        return None
    if find_denied_word(known) in ATTRIBUTABLE_WORDS - BARE_WORDS:
        return 0
    if not (error := _PATTERNS["error_in_cell"].search(known)):
        return None
    rest = known.replace(error[0], " ").strip()
    if rest and (find_denied_word(error[0]) or _PATTERNS["dash"].search(str(word))):
        return None  # "NO - not in the context"
    return _ERROR_BESIDE.get(rest)


def find_denied_word(text: str) -> str | None:
    """The word that a phrase denies, both as the vocabulary writes them; None if it denies nothing.

    >>> tuple(map(find_denied_word, ("not in source", "ungrounded", "stods inte")))
    ('in source', 'grounded', 'stods')
    """
    match = _DENIED_PATTERN.fullmatch(text)
    return next(filter(None, match.groups())) if match else None


def is_blank_cell(value: object) -> bool:
    """Whether a cell is text that stands for nothing: white space, ``n/a``, ``-``."""
    return isinstance(value, str) and (not value.strip() or value.strip().lower() in BLANK_WORDS)


def strip_values_hint(column_name: str) -> str:
    """A column's name without what it says in brackets about its values.

    >>> strip_values_hint("Supported? (Y/N)"), strip_values_hint("score (human)")
    ('Supported?', 'score (human)')
    """
    return _PATTERNS["values_hint"].sub(" ", column_name).strip() or column_name


def parse_stated_range(column_name: str) -> tuple[float, float] | None:
    """The lowest and highest number that a column may hold according to its name; None if the name
    does not say.

    >>> tuple(map(parse_stated_range, ("human (0-2)", "gpt4_score_0_100", "round (24-25)")))
    ((0.0, 2.0), (0.0, 100.0), None)
    """
    if match := _PATTERNS["stated_range"].search(column_name):
        low, high = float(match[1] or match[3]), float(match[2] or match[4])
        return (low, high) if low in (-1, 0, 1) and low < high <= 100 else None
    return None


@lru_cache(maxsize=4096)
def find_direction_of_name(column_name: str) -> Direction:
    """What a high score, 1 or yes means in a column of this name: ``upright`` (support),
    ``reversed`` (an error), or ``doubtful`` if a word may mean an error and neither the closed list
    nor the name tells.

    >>> names = ["Hallucination?", "gpt4_factual_inconsistency", "noncontradiction", "mismatch"]
    >>> names.append("risk (low is good)")
    >>> [find_direction_of_name(name) for name in names]
    ['reversed', 'reversed', 'upright', 'doubtful', 'doubtful']
    """
    if _PATTERNS["says_codes"].search(unicodedata.normalize("NFKC", column_name)):
        return "doubtful"
    heading, _, last = column_name.rpartition(".")
    if heading and _SMELL_PATTERN.search(normalise_words(last)):
        column_name = last  # Weave's "HallucinationFreeScorer.has_hallucination"
    name = _PATTERNS["dataset_of_errors"].sub(" ", normalise_words(column_name))
    if _PATTERNS["either_way"].search(name):
        return "doubtful"
    rest = _find_telling_part(name)
    if _PATTERNS["upright_detector"].search(name) or _PATTERNS["error_denied"].fullmatch(rest):
        return "upright"
    if _PATTERNS["turning"].fullmatch(rest):
        return "reversed"
    is_denied = bool({*_split_into_words(name)} & {*_DENIALS})
    joined = re.sub(r"\b(in|un|mis|dis) (?=\w{4})", r"\1", name)  # "mis-match"
    return (
        "doubtful"
        if is_denied or _SMELL_PATTERN.search(name) or _SMELL_PATTERN.search(joined)
        else "upright"
    )


def _find_telling_part(name: str) -> str:
    """A normalised name without versions of models, and without words that do not say what 1
    means."""
    words = [
        word for word in _split_into_words(strip_values_hint(name)) if word not in _NEUTRAL_WORDS
    ]
    return " ".join(word for word in words if len(word) > 1 and word.isalpha())


def is_reversed_name(column_name: str) -> bool:
    """Whether 1, or a high score, certainly means *not* supported in a column of this name."""
    return find_direction_of_name(column_name) == "reversed"


def has_name_of_error(column_name: str) -> bool:
    """Whether a name has a word that may mean an error, and is not known to deny it."""
    is_upright = find_direction_of_name(column_name) == "upright"
    return not is_upright and bool(_SMELL_PATTERN.search(normalise_words(column_name)))


def find_unknown_words(*column_names: str) -> frozenset[str]:
    """Words in columns' names that are on no list. Names that say what 1 means have none.

    >>> tuple(map(find_unknown_words, ("gpt4_wobbly", "human_wrong", "Is the claim so?")))
    (frozenset({'wobbly'}), frozenset(), frozenset())
    """
    found: set[str] = set()
    for name in column_names:
        if not _SMELL_PATTERN.search(normalise_words(name)):
            field = strip_values_hint(name.partition(".")[2] or name)
            words = _split_into_words(normalise_words(field))
            found |= {
                one for one in words if one.isalpha() and (len(one) > 2 or has_no_blanks(one))
            }
    return frozenset(found - _KNOWN_WORDS)


@lru_cache(maxsize=4096)
def find_words_in_name(kind: str, column_name: str) -> frozenset[str]:
    """The words of a list of the vocabulary (``people``, ``judges``, ``measures`` ...) in a
    column's name.

    >>> find_words_in_name("judges", "MiniCheck score")
    frozenset({'minicheck'})
    >>> find_words_in_name("people", "human-label")
    frozenset({'human'})
    >>> find_words_in_name("judges", "gpt4o"), find_words_in_name("judges", "judgement")
    (frozenset({'gpt'}), frozenset())
    """
    plain = strip_values_hint(column_name)
    words = _split_into_words(normalise_words(plain))
    name = " ".join(words).replace("factual accuracy", "factuality")
    single = {*name.split(), *re.findall(r"[^\W_]+", plain.lower())}
    single |= {word.rstrip("0123456789") for word in single}
    # As in LLM評価.
    single |= {
        part for word in single if has_no_blanks(word) for part in re.findall("[a-z]+", word)
    }
    if kind == "judges":
        single |= {
            match[1] for word in single if (match := _PATTERNS["model_version"].fullmatch(word))
        }
    found = set()
    for one in _LISTS[kind]:
        is_anywhere = has_no_blanks(one) or not (one.isascii() or one[0].isalpha())
        if is_anywhere:
            is_found = one in name
        elif " " in one:
            is_found = f" {one} " in f" {name} "
        else:
            is_found = one in single
        if is_found:
            found.add(one)
    return frozenset(found)


def name_has_word(kind: str, column_name: str) -> bool:
    """Whether a column's name has a word of a list of the vocabulary (`find_words_in_name`)."""
    return bool(find_words_in_name(kind, column_name))


def is_name_of_annotator(column_name: str) -> bool:
    """Whether a name is that of one of several people: ``annotator_1``, ``human b``, ``Is it
    supported? (Worker 2)``.

    >>> names = ("rater_b_label", "Supported? (Worker 2)", "human_label")
    >>> [is_name_of_annotator(name) for name in names]
    [True, True, False]
    """
    name = normalise_words(column_name)
    return bool(
        _PATTERNS["annotator"].fullmatch(name) or _PATTERNS["annotator_behind"].search(name)
    )


def _split_into_words(text: str) -> list[str]:
    """The words of a text. The vowel signs of Hindi, which `re` does not take for parts of words,
    belong to them."""
    return "".join(
        one if unicodedata.category(one)[0] in "LMN" or one == "_" else " " for one in text
    ).split()


def has_no_blanks(word: str) -> bool:
    """Whether a word is in a script without blanks (Chinese, Japanese)."""
    return any("\u3040" <= one <= "\u9fff" for one in word)
