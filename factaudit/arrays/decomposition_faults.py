"""The faults of the facts of all responses, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_facts import ResponseFacts, collect_response_facts
from factaudit.text.content_words import WordVocabulary
from factaudit.text.fact_faults import find_fact_faults

#: What may be wrong with a fact.
FACT_FAULTS = ("invented", "leaked", "repeated", "trivial")


@dataclass(frozen=True)
class DecompositionFaults:
    """The faults of F facts of R responses.

    faults: by name bool (F,): `FACT_FAULTS`. counts: by name int64 (R,), those of each response's
    `factaudit.text.fact_faults.FactFaults`. known: bool (R,), whether the text of a response is known.
    """

    facts: ResponseFacts
    faults: dict[str, np.ndarray]
    counts: dict[str, np.ndarray]
    known: np.ndarray


def find_decomposition_faults(
    judgements: Judgements, demonstrations: Sequence[WordVocabulary] = ()
) -> DecompositionFaults:
    """Find the faults of the facts of responses whose text is known: by ``response``, else by the facts' ``sentence``.

    The order of a response's facts is that of their ids, so that nothing depends on the order of rows.
    A sentence that was not decomposed is no fact, and is no part of the text: the decomposer has said nothing of it.
    """
    facts, claims = collect_response_facts(judgements), judgements.claims
    size, n = len(facts.responses), len(facts.first_rows)
    faults = {name: np.zeros(n, dtype=bool) for name in FACT_FAULTS}
    counts = {
        name: np.zeros(size, dtype=np.int64) for name in ("n_words", "n_covered_words", "n_sentences", "n_uncovered")
    }
    known = np.zeros(size, dtype=bool)
    columns = {
        name: claims[name].astype(object).where(claims[name].notna(), None).to_numpy()
        for name in ("claim_id", "claim", "topic", "response", "sentence")
        if name in claims
    }
    ids = columns["claim_id"]
    order = sorted(range(n), key=lambda fact: (len(ids[facts.first_rows[fact]]), ids[facts.first_rows[fact]]))
    members: list[list[int]] = [[] for _ in range(size)]
    for fact in order:
        members[facts.response[fact]].append(fact)
    for place, own in enumerate(members):
        rows = [facts.first_rows[fact] for fact in own]
        text = _find_response_text_for_decomposition(columns, rows)
        if text is None or any(columns["claim"][row] is None for row in rows):
            continue
        known[place] = True
        topic = columns["topic"][rows[0]] if "topic" in columns else None
        texts = []
        for fact, row in zip(own, rows, strict=True):
            if facts.is_decomposed[fact]:
                texts.append(columns["claim"][row])
            else:
                text = text.replace(columns["claim"][row], "", 1)
        own = [fact for fact in own if facts.is_decomposed[fact]]
        found = find_fact_faults(texts, text, topic, demonstrations)
        for name in FACT_FAULTS:
            faults[name][own] = getattr(found, name)
        for name in counts:
            counts[name][place] = getattr(found, name)
    return DecompositionFaults(facts, faults, counts, known)


def has_response_texts(judgements: Judgements) -> bool:
    """Whether claims are facts of responses whose texts, or sentences, the table has."""
    claims = judgements.claims
    return any(
        name in claims and bool((claims[name].notna() & claims["response_id"].notna()).any())
        for name in ("response", "sentence")
    )


def _find_response_text_for_decomposition(columns: dict[str, np.ndarray], rows: Sequence[int]) -> str | None:
    """The text of a response: as told, else the sentences of its facts; None where neither is known."""
    for name in ("response", "sentence"):
        if name in columns:
            told = dict.fromkeys(columns[name][row] for row in rows if columns[name][row] is not None)
            if told:
                return " ".join(told)
    return None
