"""The name of a person becomes that of another in the document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from random import Random

from factaudit.perturb.claim_text import find_pattern_outside_quotes, is_plain_assertion, replace_claim_text_span
from factaudit.perturb.rule_declaration import PerturbationRule
from factaudit.text.sentences import split_sentences

_FULL_NAME = re.compile(
    r"(?<![\w.@/#’'-])(?<![A-Z]\w )[A-Z][a-z]{2,} [A-Z][a-z]{2,}(?![\w@/-]| [A-Z]|['’]\w| (?:of|and|&) [A-Z])"
)
#: What is said beside the names of people, hardly of anything else.
_PERSONAL_VERB = (
    r"(?:says?|said|told|tells|added|adds|recalled|insisted|admitted|resigned|died|was born|married|apologi[sz]ed"
    r"|retired|thinks|thought|believes|asked|thanked|laughed|replied|argued|wrote|grew up|studied|graduated"
    r"|was appointed|was elected|was hired|explained|joked|tweeted)\b"
)
_HONORIFIC = (
    r"(?:Mr|Mrs|Ms|Dr|Professor|Captain|Sir|Dame|Councillor|Inspector|Judge|Senator|coach|actor|singer|director) ?\.? "
)
_NO_PERSON = re.compile(
    r"\b(?:The|This|That|New|San|Los|Saint|North|South|East|West|United|Great|Supreme|High|News|Court|Health|University"
    r"|College|School|Company|Party|House|Street|Road|Lane|City|County|River|Lake|Bridge|Park|Club|Press|Times|Works|Hall"
    r"|State|States|Island|Islands|Committee|Council|Board|Fund|Group|Team|League|Cup|Day|Week|Church|Museum|Office|Union"
    r"|Duo|Trio|Band|Beach|Charity|Minister|Academy|Mr|Mrs|Dr|He|She|It|In|On|At|As|And|But|When|While|Their|His|Her|Medical|Center|Centre|Studios?|Records?)\b"
)


@lru_cache(maxsize=256)
def _list_sentences_and_names(document: str) -> tuple[list[str], list[str]]:
    """The sentences of a document, and what looks like a full name in them."""
    sentences = [one for line in document.splitlines() for one in split_sentences(line)]
    names = {
        found[0]
        for sentence in sentences
        for found in _FULL_NAME.finditer(sentence)
        if not re.search(r"[A-Z][\w.'’]*\s$", sentence[: found.start()])
    }
    return sentences, sorted(
        name for name in names if not _NO_PERSON.search(name) and not _has_plain_word(name, document)
    )


def _has_plain_word(name: str, document: str) -> bool:
    """Whether a word of a name is a plain word elsewhere in the document."""
    return any(re.search(rf"\b{word.lower()}s?\b", document) for word in name.split())


def _is_full_name_of_person(name: str, sentences: Sequence[str]) -> bool:
    first, last = name.split()
    told = (
        rf"\b(?:{first} )?{last}(?:,? (?:also |later |then )?{_PERSONAL_VERB}|, (?:who|\d\d)\b)|\b{_HONORIFIC}{name}\b"
        rf"|said {name}\b"
    )
    return any(re.search(told, sentence) for sentence in sentences if last in sentence)


def _list_claims_with_other_name(claim: str, doc: str, random: Random) -> Iterator[str]:
    if not is_plain_assertion(claim):
        return
    sentences, names = _list_sentences_and_names(doc)
    for name in names:
        last = name.split()[1]
        if claim.count(last) != 1 or not _is_full_name_of_person(name, sentences):
            continue
        beside = " ".join(sentence for sentence in sentences if last in sentence)
        others = [
            other
            for other in names
            # Who is named in one sentence may have done one thing together; who shares a word may be one.
            if not set(other.split()) & set(name.split())
            and other.split()[1] not in beside + claim
            and _is_full_name_of_person(other, sentences)
        ]
        alone = rf"\b(?:{name}|(?<![A-Z]\w )(?<!\w [A-Z]\. )(?<!\w [A-Z]){last})\b(?!['’]\w|[-\w]| [A-Z])"
        span = next((found.span() for found in find_pattern_outside_quotes(re.compile(alone), claim)), None)
        if others and span is not None:
            other = random.choice(others)
            yield replace_claim_text_span(claim, span, other if " " in claim[slice(*span)] else other.split()[1])


RULES = (
    PerturbationRule(
        "name_swapped",
        "changed",
        "The name of a person becomes that of another in the document, who stands in no sentence with the first.",
        ("Ada Fenn wrote the report.", "Tom Reed wrote the report."),
        _list_claims_with_other_name,
        document="Ada Fenn said that she wrote the report. The printer, said Tom Reed, was late.",
    ),
)
