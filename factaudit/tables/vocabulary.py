"""Names that users give to columns, and words that they write in them; the lists are in vocabulary.yaml."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache
from importlib.resources import files
from typing import Literal

import yaml

_VOCABULARY = yaml.safe_load(files("factaudit.tables").joinpath("vocabulary.yaml").read_text(encoding="utf-8"))
#: Column of ours -> names that users give it, the likelier first. Names are compared after
#: `normalise_vocabulary_words`.
COLUMN_NAMES: dict[str, list[str]] = _VOCABULARY["columns"]
#: Words for attributable, for unattributable, for something between, and for nothing, after
#: `normalise_vocabulary_words`.
ATTRIBUTABLE_WORDS, UNATTRIBUTABLE_WORDS, INTERMEDIATE_WORDS, BLANK_WORDS = (
    frozenset(_VOCABULARY[name]) for name in ("attributable", "unattributable", "between", "blank")
)
_KINDS_OF_ERRORS = ("unattributable", "between", "failures", "error_smells", "foreign_errors")
#: Words of columns' names that leave open no question of what 1 means.
_KNOWN_WORDS = frozenset(
    word
    for kind, words in [*COLUMN_NAMES.items(), *_VOCABULARY.items()]
    if isinstance(words, list) and kind not in _KINDS_OF_ERRORS
    for phrase in words
    for word in str(phrase).split()
)
#: What a judge that failed leaves in its column, the likelier first.
FAILURE_WORDS: tuple[str, ...] = tuple(_VOCABULARY["failures"])
#: Words that say 1 or 0 of whatever the column's name says.
BARE_WORDS = frozenset(_VOCABULARY["bare"])
#: Errors, in cells.
_ERROR_NAMES = (
    r"halluc|\bunsupported|\bunfaithful|\binconsisten|\berror|\bunground|\bnon ?factual|\bfabricat|\bincorrect|\bwrong"
    r"|\bfalse\b|\buntrue\b|\binaccura|\bunattribut|\bunverifi|\bmistake|\bmade up\b|\binvented\b"
    r"|\bnot (supported|correct|factual|faithful|grounded|entailed|attributable|true|mentioned|stated)"
    r"|\bnot in (the )?(source|doc|context|article|text|evidence)"
    rf"|{'|'.join(_VOCABULARY['foreign_errors'])}"
)
#: The closed list of names that say 1, or a high score, of what is *not* supported.
_TURNING_PATTERN = re.compile(
    r"halluc\w*|inconsisten\w+|incorrect|unfaithful|ungrounded|non ?factual"
    r"|(un|not |non )(supported|attributable|faithful|grounded)"
)
#: Words that smell of an error. What a high score means in a column whose name has one, and is on no list, is asked.
_SMELL_PATTERN = re.compile("|".join(_VOCABULARY["error_smells"] + _VOCABULARY["foreign_errors"]))
#: An error that is denied, and so says 1 of what is supported.
_ERROR = r"(halluc|contradict|error|fabricat|inconsisten|unsupported|mistake)\w*"
_DENIALS = sorted(_VOCABULARY["denials"], key=len, reverse=True)
_UPRIGHT_NAME_PATTERN = re.compile(
    rf"(no|non|not|without|zero|never|free of|free from|free) ?{_ERROR}|{_ERROR} (free|absent)|unhallucinated"
)
#: Names of detectors that hold such a word, and yet score support.
_UPRIGHT_DETECTOR_PATTERN = re.compile(r"\bhhem\b|\bvectara\b|\bhallucination evaluation model\b")
#: Words that say nothing of what 1 means: whose judgement it is, in which form, of what.
_NEUTRAL_WORDS = frozenset(
    word for kind in ("people", "judges", "neutral") for phrase in _VOCABULARY[kind] for word in phrase.split()
) - {"entailment", "faithfulness", "groundedness", "factuality", "adherence"}
#: An error in a cell that says nothing else, but that it is there, or is not.
_NAMED_ERROR_PATTERN = re.compile(rf"(?:{_ERROR_NAMES})[^\W_\u3040-\u9fff]*")
#: Data sets that are called after hallucinations.
_DATASET_PATTERN = re.compile(r"\bhalu ?(eval|bench)\w*")
_UP, _DOWN, _IS = r"\b(?:high|higher|highest|more)", r"\b(?:low|lower|lowest|less|smaller)", r"\s*(?:is|are|=|:|\s)\s*"
_GOOD, _BAD = r"(?:good|better|best)\b", r"(?:bad|worse|worst)\b"
_HIGH_IS_BAD_PATTERN = re.compile(f"{_DOWN}{_IS}{_GOOD}|{_UP}{_IS}{_BAD}")
_HIGH_IS_GOOD_PATTERN = re.compile(f"{_UP}{_IS}{_GOOD}|{_DOWN}{_IS}{_BAD}")
#: A name that says what codes mean: ``label (1 = hallucinated)``, ``hallucinated_0_faithful_1``. It is asked about.
_STATED_CODES_PATTERN = re.compile(
    r"(?<![\w.])-?\d\s*[=:]\s*[^\W\d]|[^\W\d]\s*=\s*-?\d|(?<![\w.-])[01]\s*[-–−]\s*[^\W\d]|\((yes|no|y|n)\s*=|=\s*(yes|no)\b"
    r"|[^\W\d]\s*\(\s*[01]\s*\).*[^\W\d]\s*\(\s*[01]\s*\)|[^\W\d_]{3}_[01]_.*[^\W\d_]{3}_[01]$|_[01][^\W\d_]+_[01][^\W\d_]"
)
#: Letters that have no accent to take off.
_PLAIN_LETTERS = str.maketrans("łıøđ", "liod")
#: Names of columns that hold what one of several people said of the row's claim (``annotator_1``, ``human b``).
ANNOTATOR_COLUMN_PATTERN = re.compile(
    r"(annotator|rater|coder)s? ?\w+( (label|rating|grade|score|judge?ment|verdict))?"
    r"|(annotation|human|worker|expert|reviewer|person|label|labell?er) ?(\d+|[a-z])"
    r"( (label|rating|grade|score|judge?ment))?"
    rf"|({'|'.join(one for one in _VOCABULARY['people'] if one not in _VOCABULARY['settled'])})( ?\d+| [a-z])"
    r"|(label|rating|grade|judge?ment|verdict) ?(ann|annotator|rater|coder|worker|person|human) ?(\d+|[a-z])"
)
#: The same where the question stands first: ``Is it supported? (Worker 2)``.
NUMBERED_PERSON_PATTERN = re.compile(r"\((annotator|rater|coder|worker|reviewer|expert|person) ?(\d+|[a-z])\)$")
#: What a name says of the values: ``(Y/N)``, ``(0-1)``, ``(1 to 5)``, ``Y/N/NA`` at its end.
_VALUES_HINT_PATTERN = re.compile(
    r"\((?!\s*[^\W\d]+[–-]\d)\s*\w{1,5}(?:\s*[/,–-]\s*|\s+(?:to|or)\s+)\w{1,5}(?:\s*[/,]\s*[\w?]{1,5})*\s*\)"
    r"|(?<=[\s?:])(?:y|yes)\s*/\s*(?:n|no)(?:\s*/\s*[\w?]{1,5})*\s*$",
    re.IGNORECASE,
)
#: A model's name with its version behind: gpt4o, qwen72b, hhemv1.
_MODEL_VERSION_PATTERN = re.compile(r"([a-z]{3,}?)v?\d\w*")
#: What a name says of the numbers: ``(1-5)``, ``[0 bis 10]``, ``_0_100`` at its end.
_RANGE_PATTERN = re.compile(
    r"[(\[]\s*(-?\d{1,3})\s*(?:[-–—/:]|\.\.\.?|to|bis|à|a|al|до)\s*\+?(\d{1,3})\s*[)\]]|[_ ]([01])[_-](\d{2,3}|[3-9])$"
)
_GLUED_DENIALS = "|".join(one for one in _DENIALS if not one.isascii())
#: What is denied, by a word before or behind it, or by how it begins: "not ok", "stöds inte", "不一致", "untruthful".
_DENIED_PATTERN = re.compile(
    rf"(?:{'|'.join(_DENIALS)}) (.+)|(.+) (?:{'|'.join(_DENIALS)})|(?:{_GLUED_DENIALS})(.+)|(.+)(?:{_GLUED_DENIALS})"
    r"|(?:un|in|im|il|ir|mis|dis|nie|ne)(\w{4,})"
)
#: What an error with another word means: that it is there, or not.
_MEANINGS_OF_ERROR = {"": 0, **dict.fromkeys(_VOCABULARY["presences"], 0), **dict.fromkeys(_DENIALS, 1)}
#: A longer text is no word and its denial.
_MAX_DENIAL_LENGTH = 60
#: What parts a verdict from its reason.
_DASH_PATTERN = re.compile(r"\s[-–—]|[-–—]\s")
#: The mark of an option before what it says: ``A)``, ``(2)``, ``b.``.
_OPTION_PATTERN = re.compile(r"\(?[A-Ea-e1-9](?:\)|[.:](?=\s))\s*(?=[^\W\d_]{2})")


def normalise_vocabulary_words(text: object) -> str:
    """A name or word in lower case, without accents, with single blanks for ``_``, ``-``, dots and the humps of
    camelCase.

    >>> [normalise_vocabulary_words(one) for one in ("modelName", "Not_Supported", 1.0, "Énoncé")]
    ['model name', 'not supported', '1', 'enonce']
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


def parse_stated_range(column_name: str) -> tuple[float, float] | None:
    """The lowest and the highest number that a name says that its column may hold; None where it says none.

    >>> parse_stated_range("human (0-2)"), parse_stated_range("KI (1 bis 7)"), parse_stated_range("gpt4_score_0_100")
    ((0.0, 2.0), (1.0, 7.0), (0.0, 100.0))
    >>> parse_stated_range("gpt-4 (2024-05)") is None
    True
    """
    if match := _RANGE_PATTERN.search(column_name):
        low, high = float(match[1] or match[3]), float(match[2] or match[4])
        return (low, high) if low in (-1, 0, 1) and low < high <= 100 else None
    return None


def strip_column_name_values_hint(column_name: str) -> str:
    """A column's name without what it says of its values in brackets.

    >>> strip_column_name_values_hint("Supported? (Y/N)"), strip_column_name_values_hint("score (human)")
    ('Supported?', 'score (human)')
    """
    return _VALUES_HINT_PATTERN.sub(" ", column_name).strip() or column_name


def normalise_label_word(word: object) -> str:
    """A cell's word in the vocabulary's form, without the letter or number of an option before it.

    >>> normalise_label_word("A) Supported"), normalise_label_word("2. No")
    ('supported', 'no')
    """
    return normalise_vocabulary_words(_OPTION_PATTERN.sub("", str(word).strip()))


def parse_label_word(word: object) -> int | None:
    """1 or 0 where a word says so; None where it says neither, or something between."""
    known = _take_masculine_form(normalise_label_word(word))
    if known in ATTRIBUTABLE_WORDS or known in UNATTRIBUTABLE_WORDS:
        return int(known in ATTRIBUTABLE_WORDS)
    denied = find_denied_word(known)
    if denied and _take_masculine_form(denied) in ATTRIBUTABLE_WORDS - BARE_WORDS:
        return 0
    error = _NAMED_ERROR_PATTERN.search(known) if len(known) <= _MAX_DENIAL_LENGTH else None
    rest = known.replace(error[0], " ").strip() if error else ""
    if not error or (rest and (find_denied_word(error[0]) or _DASH_PATTERN.search(str(word)))):
        return None  # "NO - not in the context"
    return _MEANINGS_OF_ERROR.get(rest)


def find_denied_word(text: str) -> str | None:
    """What a phrase in the vocabulary's form denies; None where it denies nothing.

    >>> find_denied_word("not in source"), find_denied_word("ungrounded"), find_denied_word("stods inte")
    ('in source', 'grounded', 'stods')
    """
    match = _DENIED_PATTERN.fullmatch(text) if len(text) <= _MAX_DENIAL_LENGTH else None
    return next(filter(None, match.groups())) if match else None


def _take_masculine_form(word: str) -> str:
    """A participle in the form that the lists have: "respaldada" as "respaldado"."""
    other = f"{word[:-1]}o"
    return other if len(word) > 5 and word.endswith("a") and other in ATTRIBUTABLE_WORDS else word


def is_blank_cell(value: object) -> bool:
    """Whether a cell is text that stands for nothing: white space, ``n/a``, ``-``."""
    return isinstance(value, str) and (not value.strip() or value.strip().lower() in BLANK_WORDS)


Direction = Literal["upright", "reversed", "doubtful"]


@lru_cache(maxsize=4096)
def find_direction_of_column_name(column_name: str) -> Direction:
    """What a high score, 1 or yes says in a column of this name: ``upright`` (support), ``reversed`` (an error), or
    ``doubtful``, where a word smells of an error and neither the closed list nor the name itself tells which.

    >>> names = ("Hallucination?", "gpt4_factual_inconsistency", "noncontradiction", "mismatch")
    >>> [find_direction_of_column_name(name) for name in names]
    ['reversed', 'reversed', 'upright', 'doubtful']
    >>> [find_direction_of_column_name(name) for name in ("hallucinated (0) / faithful (1)", "risk (lower is better)")]
    ['doubtful', 'reversed']
    """
    text = unicodedata.normalize("NFKC", column_name).lower()
    if _STATED_CODES_PATTERN.search(text):
        return "doubtful"
    if _HIGH_IS_GOOD_PATTERN.search(text) or _HIGH_IS_BAD_PATTERN.search(text):
        return "reversed" if _HIGH_IS_BAD_PATTERN.search(text) else "upright"
    heading, dot, last = column_name.rpartition(".")
    if dot and heading and _SMELL_PATTERN.search(normalise_vocabulary_words(last)):
        column_name = last  # Weave's "HallucinationFreeScorer.has_hallucination"
    name = _DATASET_PATTERN.sub(" ", normalise_vocabulary_words(column_name))
    rest = _list_telling_part(name)
    if _UPRIGHT_DETECTOR_PATTERN.search(name) or _UPRIGHT_NAME_PATTERN.fullmatch(rest):
        return "upright"
    if _TURNING_PATTERN.fullmatch(rest):
        return "reversed"
    is_denied = bool({*_split_into_words(name)} & {*_DENIALS})
    whole = re.sub(r"\b(in|un|mis|dis) (?=\w{4})", r"\1", name)  # "mis-match"
    return "doubtful" if is_denied or _SMELL_PATTERN.search(name) or _SMELL_PATTERN.search(whole) else "upright"


def _list_telling_part(name: str) -> str:
    """The words of a normalised name without those that say nothing of what 1 means, and without versions of models."""
    words = _split_into_words(strip_column_name_values_hint(name))
    return " ".join(
        word
        for word in words
        if word not in _NEUTRAL_WORDS and len(word) > 1 and not any(letter.isdigit() for letter in word)
    )


def is_reversed_column_name(column_name: str) -> bool:
    """Whether a column of this name surely says 1, or a high score, of what is *not* supported."""
    return find_direction_of_column_name(column_name) == "reversed"


def is_name_of_doubtful_direction(column_name: str) -> bool:
    """Whether a name may call an error what a column says 1 of: ``issue``, ``mismatch``, ``hallucination_defense``."""
    return find_direction_of_column_name(column_name) == "doubtful"


def has_name_of_error(text: str) -> bool:
    """Whether a name has a word that smells of an error, and is not known to deny it."""
    name = _DATASET_PATTERN.sub(" ", normalise_vocabulary_words(text))
    is_upright = _UPRIGHT_DETECTOR_PATTERN.search(name) or _UPRIGHT_NAME_PATTERN.fullmatch(_list_telling_part(name))
    return bool(_SMELL_PATTERN.search(name)) and not is_upright


@lru_cache(maxsize=4096)
def find_unknown_words(*column_names: str) -> frozenset[str]:
    """Words of columns' names that no list has; none of names that say of what a column says 1.

    >>> find_unknown_words("gpt4_wobbly"), find_unknown_words("human_wrong"), find_unknown_words("Is the claim so?")
    (frozenset({'wobbly'}), frozenset(), frozenset())
    """
    found: set[str] = set()
    for name in column_names:
        if not _SMELL_PATTERN.search(normalise_vocabulary_words(name)):
            field = strip_column_name_values_hint(name.partition(".")[2] or name)
            words = _split_into_words(normalise_vocabulary_words(field))
            found |= {one for one in words if one.isalpha() and (len(one) > 2 or _has_no_blanks(one))}
    return frozenset(found - _KNOWN_WORDS)


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
    name = normalise_vocabulary_words(strip_column_name_values_hint(column_name)).replace(
        "factual accuracy", "factuality"
    )
    single = {*_split_into_words(name)}
    name = " ".join(_split_into_words(name))
    single |= {word.lower() for word in re.findall(r"[^\W_]*[a-z][A-Z][^\W_]*", column_name)}  # MiniCheck
    single |= {stem for word in single if (stem := word.rstrip("0123456789"))}
    single |= {part for word in single if _has_no_blanks(word) for part in re.findall("[a-z]+", word)}  # LLM評価
    if kind == "judges":
        single |= {match[1] for word in single if (match := _MODEL_VERSION_PATTERN.fullmatch(word))}
    return _find_vocabulary_words(kind, name, single)


def _find_vocabulary_words(kind: str, text: str, words: Collection[str]) -> frozenset[str]:
    return frozenset(
        one
        for one in _VOCABULARY[kind]
        if (
            one in text
            if (not one.isascii() and not one[0].isalpha()) or _has_no_blanks(one)
            else f" {one} " in f" {text} "
            if " " in one
            else one in words
        )
    )


def _split_into_words(text: str) -> list[str]:
    """The words of a text; the vowel signs of Hindi, which `re` takes for no part of one, belong to them."""
    return "".join(one if unicodedata.category(one)[0] in "LMN" or one == "_" else " " for one in text).split()


def _has_no_blanks(word: str) -> bool:
    """Whether a word is of a script that writes no blanks (Chinese, Japanese)."""
    return any("\u3040" <= one <= "\u9fff" for one in word)
