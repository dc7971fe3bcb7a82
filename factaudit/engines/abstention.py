"""Responses that decline to answer: they count in the respond ratio only (Min et al. 2023, §4.3).

The rules are the original's, so that respond ratios can be compared.
"""

from __future__ import annotations

import re

from factaudit.engines.responses import Response
from factaudit.errors import UsageError, suggest_known_name

ABSTENTION_DETECTORS = ("generic", "perplexity_ai", "none")

_NO_ANSWER_PHRASES = tuple(
    phrase.lower()
    for phrase in (
        "I could not find any information",
        "The search results do not provide",
        "There is no information",
        "There are no search results",
        "there are no provided search results",
        "not provided in the search results",
        "is not mentioned in the provided search results",
        "There seems to be a mistake in the question",
        "Not sources found",
        "No sources found",
        "Try a more general question",
    )
)


def is_abstaining_response(output: str, detector: str = "generic") -> bool:
    """Whether a response abstains.

    ``generic``: it begins with "I'm sorry" or asks to "provide more". ``perplexity_ai``: without its citations, it
    begins with a phrase such as "I could not find any information", or its first paragraph holds one or is blank.
    ``none``: never. Raises `UsageError` for another detector.
    """
    if detector == "generic":
        return output.startswith("I'm sorry") or "provide more" in output
    if detector == "perplexity_ai":
        text = re.sub(r"\s*\[\d+\]\s*", "", output)
        if text.startswith("According to , "):
            text = text.replace("According to , ", "According to the search results, ")
        first = text.lower().split("\n\n")[0]
        return not first.strip() or any(phrase in first for phrase in _NO_ANSWER_PHRASES)
    if detector == "none":
        return False
    raise UsageError(f"unknown abstention detector {detector!r}{suggest_known_name(detector, ABSTENTION_DETECTORS)}")


def does_response_abstain(response: Response, detector: str = "generic") -> bool:
    """Whether a response abstains: as its file says, else as the detector finds (`is_abstaining_response`)."""
    return is_abstaining_response(response.output, detector) if response.abstained is None else response.abstained
