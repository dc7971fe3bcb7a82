"""What people call the columns and the labels of such tables: the names and words that are understood (words.yaml)."""

from __future__ import annotations

import re
from importlib.resources import files

import yaml

_WORDS = yaml.safe_load(files("factaudit.intake").joinpath("words.yaml").read_text(encoding="utf-8"))
#: Column of ours -> names under which it is found, the likelier first. All are compared as `plain` makes them.
COLUMN_NAMES: dict[str, list[str]] = _WORDS["columns"]
#: Words for attributable, for unattributable, and for something between, as `plain` makes them.
POSITIVE, NEGATIVE, BETWEEN = (frozenset(_WORDS[name]) for name in ("attributable", "unattributable", "between"))
#: Names of columns that say 1, or a high score, of what is *not* supported.
REVERSED = re.compile(
    r"halluc|\bhalu|\bunsupported|\bnot supported|\bunfaithful|\binconsisten|\brefut|contradict|\berror"
)
#: Names of columns that hold what one of several people said of the row's claim (``annotator_1``, ``human b``).
PERSON = re.compile(
    r"(annotator|rater|coder)s? ?\w+( (label|rating|grade|judge?ment|verdict))?"
    r"|(annotation|human|worker|expert|reviewer|person|label|labell?er) ?(\d+|[a-z])( (label|rating|grade|judge?ment))?"
)
#: Parts of names that tell people's labels from evaluators' verdicts.
GOLD = frozenset({"gold", "human", "truth", "annotation", "annotated", "manual", "expert"})


def plain(text: object) -> str:
    """A name or word in lower case, with single blanks for ``_``, ``-``, dots and the humps of camelCase.

    >>> plain("modelName"), plain("Not_Supported"), plain(1.0)
    ('model name', 'not supported', '1')
    """
    if re.fullmatch(r"-?\d+\.0+", str(text).strip()):
        return str(text).strip().split(".")[0]
    humps = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])", " ", str(text))
    words = re.sub(r"[\s_\-/]+", " ", humps).strip().lower()
    return words if re.fullmatch(r"-?\d*\.\d+", words) else re.sub(r"[\s.]+", " ", words).strip()


def polarity(word: object) -> int | None:
    """1 or 0 where a word says so; None where it says neither, or something between."""
    known = plain(word)
    return 1 if known in POSITIVE else 0 if known in NEGATIVE else None
