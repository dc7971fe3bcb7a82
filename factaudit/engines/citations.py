"""Do the cited documents support a sentence? Any evaluator is the judge (MF App. D; Gao et al. 2023, §3).

``[1]`` and ``[1][3]`` are citations, and so is ``[1, 3]`` (of which ALCE reads the first number only). What a citation
cannot be read from (``[7]`` of five documents, ``[0]``, ``[Document 1]``) is reported as malformed. A sentence with a
number that no document has is not judged and not recalled, as in ALCE (where ``[0]``, though, is the last document).
Recall and precision are the audit `citations` (`factaudit.audit.citations`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.audit.core.result_rows import Row
from factaudit.engines.responses import Response
from factaudit.evaluators.judging import NamedEvaluator, judge, make_named_evaluator
from factaudit.signature import hash_texts
from factaudit.tables import merge_verdict_tables, validate_claims, validate_verdicts
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
#: Number of the response, number of the sentence, documents.
_CitationKey = tuple[int, int, tuple[int, ...]]


@dataclass(frozen=True)
class CitedSentence:
    """A sentence with the documents that it cites.

    text: without citations. doc_numbers: of the documents, from 0, each once, in order. malformed_citations: those that
    name no document, as written. cites_absent_doc: whether one of them is the number of a document that is not there.
    """

    text: str
    doc_numbers: tuple[int, ...] = ()
    malformed_citations: tuple[str, ...] = ()
    cites_absent_doc: bool = False


def parse_cited_sentences(output: str, n_docs: int, max_citations: int | None = MAX_CITATIONS) -> list[CitedSentence]:
    """The sentences of an output with their citations ``[1]`` .. ``[n_docs]``; what is left of brackets is malformed.

    >>> parse_cited_sentences("He sang [1][9]. He died.", 2)[0]
    CitedSentence(text='He sang.', doc_numbers=(0,), malformed_citations=('[9]',), cites_absent_doc=True)
    """
    found = []
    for sentence in split_sentences(output):
        numbers = [int(number) for group in _CITATION.findall(sentence) for number in re.findall(r"\d+", group)]
        absent = [f"[{number}]" for number in numbers if not 1 <= number <= n_docs]
        wrong = [*absent, *(match.group() for match in _MALFORMED.finditer(sentence))]
        cited = tuple(dict.fromkeys(number - 1 for number in numbers if 1 <= number <= n_docs))[:max_citations]
        found.append(CitedSentence(_CITATION.sub("", sentence).strip(), cited, tuple(wrong), bool(absent)))
    return found


@dataclass
class _CitedResponse:
    response: Response
    sentences: list[CitedSentence] = field(default_factory=list)

    def make_claim_row(self, number: int, docs: Sequence[int]) -> Row:
        """A sentence and some of the documents, as a row of the claims table."""
        sentence = self.sentences[number]
        fact = f"{self.response.response_id}.{number}"
        texts = (self.response.docs[one] for one in docs)
        return {
            "claim_id": f"{fact}.{hash_texts(*map(str, docs), length=8)}",
            **_make_cited_response_columns(self.response),
            "fact_id": fact,
            "claim": sentence.text,
            "doc": "\n".join(f"Title: {title}\n{text}" for title, text in texts) if docs else None,
            "cited": ",".join(str(one + 1) for one in docs) or None,
            "malformed": "; ".join(sentence.malformed_citations) or None,
        }


def judge_citations(
    responses: Sequence[Response],
    evaluator: str | Mapping[str, Any] | NamedEvaluator,
    *,
    max_citations: int | None = MAX_CITATIONS,
    journal: str | Path | None = None,
    progress: bool = False,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Claims and verdicts for the audit `citations`, of the responses that have documents.

    Claims: a row per sentence and set of documents that was asked about; one (``cited`` null) for each sentence that
    cites nothing, or a document that is not there. A response without a sentence is a row without a claim.

    Judging goes in three steps, so that nothing is asked in vain: whole citation sets, the single documents of the
    sets that passed, the sets without a document that does not suffice.
    """
    cited = [one for one in responses if one.docs]
    works = [_CitedResponse(one, parse_cited_sentences(one.output, len(one.docs), max_citations)) for one in cited]
    places = [(n, s, one) for n, work in enumerate(works) for s, one in enumerate(work.sentences)]
    wholes: list[_CitationKey] = []
    rows = []
    for n, s, one in places:
        if one.doc_numbers and not one.cites_absent_doc:
            wholes.append((n, s, one.doc_numbers))
        else:
            rows.append(works[n].make_claim_row(s, ()))
    named = evaluator if isinstance(evaluator, NamedEvaluator) else make_named_evaluator(evaluator)
    # Not a judgement, but the evaluator's all the same: without any there would be nobody to have a recall of 0.
    verdict = {"evaluator": named.name, "prediction": 0, "raw": "cites no document that there is"}
    told = [{"claim_id": row["claim_id"], **verdict} for row in rows]
    rows += [
        _make_cited_response_columns(work.response) | {"claim_id": f"{work.response.response_id}.-", "abstained": 1}
        for work in works
        if not work.sentences
    ]
    verdicts = [validate_verdicts(pd.DataFrame(told))] if told else []
    known: dict[_CitationKey, int | None] = {}

    def ask(keys: Sequence[_CitationKey]) -> None:
        if keys:
            asked = [works[n].make_claim_row(s, docs) for n, s, docs in keys]
            found = judge(validate_claims(pd.DataFrame(asked)), [named], journal=journal, progress=progress)
            rows.extend(asked)
            verdicts.append(found)
            known.update(zip(keys, (None if pd.isna(one) else int(one) for one in found["prediction"]), strict=True))

    ask(wholes)
    several = [key for key in wholes if known[key] == 1 and len(key[2]) > 1]
    ask([(n, s, (doc,)) for n, s, docs in several for doc in docs])
    rests = [
        (n, s, rest)
        for n, s, docs in several
        for doc, rest in ((doc, tuple(other for other in docs if other != doc)) for doc in docs)
        if known[n, s, (doc,)] != 1 and (n, s, rest) not in known
    ]
    ask(rests)
    no_verdicts = validate_verdicts(_make_placeholder_table("evaluator")).iloc[:0]
    if not rows:
        return validate_claims(_make_placeholder_table("claim")).iloc[:0], no_verdicts
    names = ["claim_id", "dataset", "claim", "cited", "malformed"]
    columns = list(dict.fromkeys([*names, *(key for row in rows for key in row)]))
    claims = validate_claims(pd.DataFrame(rows, columns=columns))
    return claims, merge_verdict_tables(verdicts) if verdicts else no_verdicts


def _make_cited_response_columns(response: Response) -> Row:
    return {
        "dataset": CITATIONS_DATASET,
        "system": response.system,
        "response_id": response.response_id,
        "topic": response.topic,
    }


def _make_placeholder_table(column: str) -> pd.DataFrame:
    return pd.DataFrame([{"claim_id": "-", "dataset": "-", "claim": "-", column: "-", "prediction": 1}])
