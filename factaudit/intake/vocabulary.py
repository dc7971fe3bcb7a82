"""Names that users give to columns, and words that they write in them; the lists are in vocabulary.yaml."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from importlib.resources import files

import yaml

_VOCABULARY = yaml.safe_load(files("factaudit.intake").joinpath("vocabulary.yaml").read_text(encoding="utf-8"))
#: Column of ours -> names that users give it, the likelier first. Names are compared after
#: `normalise_vocabulary_words`.
COLUMN_NAMES: dict[str, list[str]] = _VOCABULARY["columns"]
#: Words for attributable, for unattributable, for something between, and for nothing, after
#: `normalise_vocabulary_words`.
ATTRIBUTABLE_WORDS, UNATTRIBUTABLE_WORDS, INTERMEDIATE_WORDS, BLANK_WORDS = (
    frozenset(_VOCABULARY[name]) for name in ("attributable", "unattributable", "between", "blank")
)
#: Names of numbers that are no judgement where nothing else says so.
SOFT_MEASURES = frozenset(_VOCABULARY["soft_measures"])
#: Words that say 1 or 0 of whatever the column's name says.
BARE_WORDS = frozenset(
    [
        "0",
        "1",
        "true",
        "false",
        "yes",
        "no",
        "y",
        "n",
        "t",
        "f",
        "ja",
        "nein",
        "oui",
        "non",
        "si",
        "sim",
        "nao",
        "nee",
        "да",
        "нет",
        "✓",
        "✔",
        "✅",
        "☑",
        "✗",
        "✘",
        "❌",
        "☒",
        "×",
        "はい",
        "いいえ",
        "是",
        "否",
    ]
)
#: Names of columns that say 1, or a high score, of what is *not* supported.
_REVERSED_COLUMN_PATTERN = re.compile(
    r"halluc|halluz|\bhalu|\bal+ucin|\bgalluts|галлюцин|幻觉|幻覚|환각|\berrad[oa]\b|\bflag(ged|s)?\b|\bunsupported|\bunfaithful|\binconsisten|\brefut|contradict|\berror|\bunground|\bnonfactual"
    r"|\bnot (supported|correct|factual|faithful|grounded|entailed|attributable|true)|\bfabricat|\bincorrect|\bwrong"
    r"|\bfalse\b|\buntrue\b|\binaccura|\bunattribut|\bunverifi|\bfehler|\bfalsch|\berreur|\berrore\b|\bfaux\b|\bfalso\b"
)
#: Names that hold such a word, and yet say 1 of what is supported: HHEM's score is high where a text is consistent.
_UPRIGHT_COLUMN_PATTERN = re.compile(
    r"\b(no|non|not|without|free of) (halluc|error|contradict)|halluc\w* free|\bfehlerfrei"
    r"|\b(true|right|correct|consistent|faithful|supported|factual|grounded)( or| vs)? (un|in|not |false|wrong|nonfact)"
    r"|\bhhem\b|\bvectara\b|hallucination evaluation"
)
#: Letters that have no accent to take off.
_PLAIN_LETTERS = str.maketrans("łıøđ", "liod")
#: Names of columns that hold what one of several people said of the row's claim (``annotator_1``, ``human b``).
ANNOTATOR_COLUMN_PATTERN = re.compile(
    r"(annotator|rater|coder)s? ?\w+( (label|rating|grade|score|judge?ment|verdict))?"
    r"|(annotation|human|worker|expert|reviewer|person|label|labell?er) ?(\d+|[a-z])"
    r"( (label|rating|grade|score|judge?ment))?"
    r"|(label|rating|grade|judge?ment|verdict) ?(ann|annotator|rater|coder|worker|person|human) ?(\d+|[a-z])"
)
#: The same where the question stands first: ``Is it supported? (Worker 2)``.
NUMBERED_PERSON_PATTERN = re.compile(r"\((annotator|rater|coder|worker|reviewer|expert|person) ?(\d+|[a-z])\)$")
#: What a name says of the values: ``(Y/N)``, ``(0-1)``, ``(1 to 5)``, ``Y/N/NA`` at its end.
_VALUES_HINT_PATTERN = re.compile(
    r"\(\s*\w{1,5}(?:\s*[/,–-]\s*|\s+(?:to|or)\s+)\w{1,5}(?:\s*[/,]\s*[\w?]{1,5})*\s*\)"
    r"|(?<=[\s?:])(?:y|yes)\s*/\s*(?:n|no)(?:\s*/\s*[\w?]{1,5})*\s*$",
    re.IGNORECASE,
)


def normalise_vocabulary_words(text: object) -> str:
    """A name or word in lower case, without accents, with single blanks for ``_``, ``-``, dots and the humps of
    camelCase.

    >>> normalise_vocabulary_words("modelName"), normalise_vocabulary_words("Not_Supported"),
    ...     normalise_vocabulary_words(1.0), normalise_vocabulary_words("Énoncé")
    ('model name', 'not supported', '1', 'enonce')
    """
    if whole := re.fullmatch(r"(-?\d+)(\.0+|,00?)?", str(text).strip()):
        return whole[1]
    humps = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])", " ", str(text))
    words = re.sub(r"[\s_\-/]+", " ", humps).strip().lower()
    if not words.isascii():
        parts = unicodedata.normalize("NFKD", words)
        words = unicodedata.normalize("NFC", "".join(one for one in parts if not "\u0300" <= one <= "\u036f"))
        words = words.replace("\ufe0f", "").translate(_PLAIN_LETTERS)
    return words if re.fullmatch(r"-?\d*\.\d+", words) else re.sub(r"[\s.]+", " ", words).strip()


def strip_values_hint(column_name: str) -> str:
    """A column's name without what it says of its values in brackets.

    >>> strip_values_hint("Supported? (Y/N)"), strip_values_hint("score (human)")
    ('Supported?', 'score (human)')
    """
    return _VALUES_HINT_PATTERN.sub(" ", column_name).strip() or column_name


def parse_label_word(word: object) -> int | None:
    """1 or 0 where a word says so; None where it says neither, or something between."""
    known = normalise_vocabulary_words(word)
    return 1 if known in ATTRIBUTABLE_WORDS else 0 if known in UNATTRIBUTABLE_WORDS else None


def is_blank_cell(value: object) -> bool:
    """Whether a cell is text that stands for nothing: white space, ``n/a``, ``-``."""
    return isinstance(value, str) and (not value.strip() or value.strip().lower() in BLANK_WORDS)


def is_reversed_name(column_name: str) -> bool:
    """Whether a column of this name says 1, or a high score, of what is *not* supported."""
    heading, dot, last = column_name.rpartition(".")
    if dot and heading and _REVERSED_COLUMN_PATTERN.search(normalise_vocabulary_words(last)):
        column_name = last  # Weave's "HallucinationFreeScorer.has_hallucination"
    name = normalise_vocabulary_words(column_name)
    return bool(_REVERSED_COLUMN_PATTERN.search(name)) and not _UPRIGHT_COLUMN_PATTERN.search(name)


def has_vocabulary_word_in_column_name(kind: str, column_name: str) -> bool:
    """Whether a column's name has a word of a list of the vocabulary (``people``, ``judges``, ``measures`` ...).

    >>> has_vocabulary_word_in_column_name("judges", "gpt4_score")
    True
    >>> has_vocabulary_word_in_column_name("people", "human-label")
    True
    >>> has_vocabulary_word_in_column_name("judges", "judgement")
    False
    """
    return bool(find_vocabulary_words_in_column_name(kind, column_name))


@lru_cache(maxsize=4096)
def find_vocabulary_words_in_column_name(kind: str, column_name: str) -> frozenset[str]:
    """The words of a list of the vocabulary that a column's name has."""
    name = normalise_vocabulary_words(strip_values_hint(column_name)).replace("factual accuracy", "factuality")
    single = {*_split_into_words(name)}
    name = " ".join(_split_into_words(name))
    single |= {word.lower() for word in re.findall(r"[^\W_]*[a-z][A-Z][^\W_]*", column_name)}  # MiniCheck
    single |= {stem for word in single if (stem := word.rstrip("0123456789"))}
    return frozenset(
        one
        for one in _VOCABULARY[kind]
        if (
            one in name
            if (not one.isascii() and not one[0].isalpha()) or _has_no_blanks(one)
            else f" {one} " in f" {name} "
            if " " in one
            else one in single
        )
    )


def _split_into_words(text: str) -> list[str]:
    """The words of a text; the vowel signs of Hindi, which `re` takes for no part of one, belong to them."""
    return "".join(one if unicodedata.category(one)[0] in "LMN" or one == "_" else " " for one in text).split()


def _has_no_blanks(word: str) -> bool:
    """Whether a word is of a script that writes no blanks (Chinese, Japanese)."""
    return any("\u3040" <= one <= "\u9fff" for one in word)
