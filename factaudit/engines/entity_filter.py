"""FActScore's filter of facts by dates and numbers, which its prompts of text-davinci-003 needed: off by default.

The original drops a fact with a date or a number that its sentence does not have, completes one that the fact cuts
short, and drops facts that break off at a verb where another fact goes on (``postprocess_atomic_facts`` of Min et al.
2023).
"""

from __future__ import annotations

import re
import string
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from factaudit.errors import FactauditError, format_error_first_line
from factaudit.signature import make_signature

#: What the original loads.
SPACY_PIPELINE = "en_core_web_sm"
#: The kinds of entities that are looked at; the original found spaCy too often wrong about the others.
_ENTITY_KINDS = frozenset(("DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"))
#: A fact that ends so, and goes on in another one, says nothing of its own.
_BROKEN_ENDINGS = (
    *("born.", " appointed.", " characterized.", " described.", " known.", " member.", " advocate.", "served."),
    "elected.",
)
_WHOLE_ENDING = "founding member."
_MONTHS = frozenset(
    (
        *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october"),
        *("november", "december"),
    )
)
_NUMBER = re.compile(r"\b\d+\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass
class SpacyEntityFactFilter:
    """The filter, with the entities that a pipeline of spaCy finds. Safe to use from several threads.

    pipeline: the name of an installed one, or a folder. Raises `FactauditError` without spaCy (extra ``[entities]``) or
    without the pipeline.
    """

    pipeline: str = SPACY_PIPELINE
    _nlp: Callable[[str], Any] = field(init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            import spacy
        except ImportError as error:
            raise FactauditError("the entity filter needs spaCy: pip install 'factaudit[entities]'") from error
        try:
            # Of the rest of a pipeline nothing is read.
            loaded = spacy.load(self.pipeline, exclude=["parser", "lemmatizer", "attribute_ruler"])
        except (OSError, ValueError) as error:
            told = format_error_first_line(error)
            raise FactauditError(
                f"no spaCy pipeline at {self.pipeline!r} (python -m spacy download {SPACY_PIPELINE}): {told}"
            ) from None
        self._nlp = loaded
        self._version = f"{loaded.meta['lang']}_{loaded.meta['name']}-{loaded.meta['version']}"

    @property
    def signature(self) -> str:
        """The pipeline with its version, on one line."""
        return make_signature("entities", {"pipeline": self._version})

    def filter_facts(self, sentence: str, facts: Sequence[str]) -> list[str]:
        """The facts of a sentence that pass, in order, some of them with a date completed.

        All of them as they are where those that pass do not have every date and number of the sentence: the entities
        are then more likely wrong than the facts. Where a fact's could be several of the sentence's, it is the first.
        """
        own = self._find_dates_and_numbers(sentence)
        covered: set[str] = set()
        left = []
        for place, fact in enumerate(facts):
            others = (other for number, other in enumerate(facts) if number != place)
            if (
                fact.endswith(_BROKEN_ENDINGS)
                and not fact.endswith(_WHOLE_ENDING)
                and any(fact[:-1] in other for other in others)
            ):
                continue
            found = self._find_dates_and_numbers(fact)
            covered.update(one for one in found if one in own)
            for new in (one for one in found if one not in own):
                whole = next((one for one in own if one.startswith(new)), None)
                if whole is None:
                    break
                fact = fact.replace(new, whole)
                covered.add(whole)
            else:
                left.append(fact)
        return left if covered == set(own) else list(facts)

    def _find_dates_and_numbers(self, text: str) -> list[str]:
        """The dates and numbers of a text, each once, in the order in which they are found."""
        with self._lock:
            entities = self._nlp(text).ents
        found = dict.fromkeys(
            part for one in entities if one.label_ in _ENTITY_KINDS for part in _split_dates_and_numbers(one.text)
        )
        for number in _NUMBER.findall(text):
            if not any(number in one for one in found):
                found[number] = None
        return list(found)


def _split_dates_and_numbers(entity: str) -> Iterator[str]:
    """What of an entity is a date or a number: all of it, else its words; "1914-1918" is two."""
    for one in [entity] if _is_date_or_number(entity) else filter(_is_date_or_number, entity.split()):
        yield from (part.strip() for part in one.split("-"))


def _is_date_or_number(text: str) -> bool:
    """Whether all words are numbers or months, but for articles."""
    plain = re.sub(r"\b(a|an|the)\b", " ", text.lower().translate(_NO_PUNCTUATION))
    return bool(plain.split()) and all(word.isdecimal() or word in _MONTHS for word in plain.split())
