"""Do the cited documents support a sentence? Any evaluator is the judge (MF App. D; Gao et al.
2023, §3).

``[1]`` and ``[1][3]`` are citations, and so is ``[1, 3]`` (of which ALCE reads the first number
only). What a citation cannot be read from (``[7]`` of five documents, ``[0]``, ``[Document 1]``) is
reported as malformed. A sentence with a number that no document has is not judged and not recalled,
as in ALCE (where ``[0]``, though, is the last document). Recall and precision are the audit
`citations` (`factaudit.audit.citations`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.audit.core.result_rows import Row
from factaudit.engines.passages import validate_any_verdicts
from factaudit.engines.responses import Response
from factaudit.errors import UsageError
from factaudit.evaluators.judging import NamedEvaluator, judge
from factaudit.signature import hash_texts
from factaudit.tables import validate_claims
from factaudit.text.sentences import split_sentences

#: Citations of a sentence beyond this are not looked at (ALCE's ``at_most_citations``).
MAX_CITATIONS = 3
CITATIONS_DATASET = "citations"

_CITATION = re.compile(r"\s*\[(\d+(?:\s*[,;]\s*\d+)*)\]")
# What was meant as a citation: brackets with a number that are no citation.
_MALFORMED = re.compile(
    r"\[(?!\d+(?:\s*[,;]\s*\d+)*\])[^\[\]]{0,40}\d[^\[\]]{0,40}\]|\[\d+(?![\d\s,;\]])"
    r"|\(\s*(?:doc(?:ument)?|source)\s+\d+\s*\)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class CitedSentence:
    """A sentence with the documents that it cites.

    text: without citations. doc_numbers: of the documents, from 0, each once, in order.
    malformed_citations: those that name no document, as written. cites_absent_doc: whether one of
    them is the number of a document that is not there.
    """

    text: str
    doc_numbers: tuple[int, ...] = ()
    malformed_citations: tuple[str, ...] = ()
    cites_absent_doc: bool = False


def parse_cited_sentences(output: str, n_docs: int) -> list[CitedSentence]:
    """The sentences of an output with their citations ``[1]`` .. ``[n_docs]``; what is left of
    brackets is malformed.

    >>> parse_cited_sentences("He sang [1][9]. He died.", 2)[0].malformed_citations
    ('[9]',)
    """
    found = []
    for sentence in split_sentences(output):
        numbers = [int(one) for one in re.findall(r"\d+", " ".join(_CITATION.findall(sentence)))]
        cited = dict.fromkeys(number - 1 for number in numbers if 1 <= number <= n_docs)
        absent = [f"[{number}]" for number in numbers if number - 1 not in cited]
        wrong = [*absent, *(match.group() for match in _MALFORMED.finditer(sentence))]
        text, docs = _CITATION.sub("", sentence).strip(), tuple(cited)[:MAX_CITATIONS]
        found.append(CitedSentence(text, docs, tuple(wrong), bool(absent)))
    return found


@dataclass(frozen=True)
class _CitedSet:
    """A sentence of a response with some of the documents."""

    response: Response
    number: int
    sentence: CitedSentence
    docs: tuple[int, ...]

    def make_claim(self) -> Row:
        """As a row of the claims table."""
        fact = f"{self.response.response_id}.{self.number}"
        texts = [self.response.docs[one] for one in self.docs]
        return {
            **_name_response(self.response),
            "claim_id": f"{fact}.{hash_texts(*map(str, self.docs), length=8)}",
            "fact_id": fact,
            "claim": self.sentence.text,
            "doc": "\n".join(f"Title: {title}\n{text}" for title, text in texts) or None,
            "cited": ",".join(str(one + 1) for one in self.docs) or None,
            "malformed": "; ".join(self.sentence.malformed_citations) or None,
        }


def _name_response(response: Response) -> Row:
    """As a row of a response without a sentence."""
    return {
        "claim_id": f"{response.response_id}.-",
        "dataset": CITATIONS_DATASET,
        "system": response.system,
        "response_id": response.response_id,
        "topic": response.topic,
        "claim": None,
        "cited": None,
        "malformed": None,
    }


def judge_citations(
    responses: Sequence[Response],
    evaluator: NamedEvaluator,
    *,
    journal: str | Path | None = None,
    progress: bool = False,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Claims and verdicts for the audit `citations`, of the responses that have documents (one at
    least).

    Claims: a row per sentence and set of documents that was asked about; one (``cited`` null) for
    each sentence that cites nothing, or a document that is not there. A response without a sentence
    is a row without a claim.

    Judging goes in three steps, so that nothing is asked in vain: whole citation sets, the single
    documents of the sets that passed, the sets without a document that does not suffice.
    """
    rows, told, wholes = [], [], []
    for response in responses:
        if not response.docs:
            continue
        sentences = parse_cited_sentences(response.output, len(response.docs))
        if not sentences:
            rows.append(_name_response(response) | {"abstained": 1})
        for number, sentence in enumerate(sentences):
            one = _CitedSet(response, number, sentence, sentence.doc_numbers)
            if sentence.doc_numbers and not sentence.cites_absent_doc:
                wholes.append(one)
                continue
            rows.append(replace(one, docs=()).make_claim())
            # Not a judgement, but the evaluator's all the same: without any there would be nobody
            # to have a recall of 0.
            uncited = {"evaluator": evaluator.name, "prediction": 0, "raw": "cites no document"}
            told.append({"claim_id": rows[-1]["claim_id"], **uncited})
    tables = [pd.DataFrame(told, columns=["claim_id", "evaluator", "prediction", "raw"])]
    verdict: dict[_CitedSet, Any] = {}

    def ask(sets: Iterable[_CitedSet]) -> None:
        """Judge the sets that were not judged yet."""
        new = [one for one in dict.fromkeys(sets) if one not in verdict]
        if new:
            claims = [one.make_claim() for one in new]
            table = validate_claims(pd.DataFrame(claims))
            tables.append(judge(table, [evaluator], journal=journal, progress=progress))
            verdict.update(zip(new, tables[-1]["prediction"].fillna(-1), strict=True))
            rows.extend(claims)

    ask(wholes)
    passed = [one for one in wholes if verdict[one] == 1 and len(one.docs) > 1]
    ask(replace(one, docs=(doc,)) for one in passed for doc in one.docs)
    rests = []
    for one in passed:
        for doc in one.docs:
            if verdict[replace(one, docs=(doc,))] != 1:
                others = tuple(other for other in one.docs if other != doc)
                rests.append(replace(one, docs=others))
    ask(rests)
    if not rows:
        raise UsageError("no response has documents (docs) by which its citations could be judged")
    return validate_claims(pd.DataFrame(rows)), validate_any_verdicts(pd.concat(tables))
