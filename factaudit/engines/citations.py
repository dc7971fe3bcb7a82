"""Judging what sentences cite (MF App. D, after ALCE: Gao et al. 2023, §3), with any evaluator as the NLI judge.

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

from factaudit.engines.responses import Response
from factaudit.evaluators.judging import NamedEvaluator, judge, name_evaluator
from factaudit.signature import digest
from factaudit.tables import merge_verdicts, validate_claims, validate_verdicts
from factaudit.text.sentences import split_sentences

#: Citations of a sentence beyond this are not looked at (ALCE's ``at_most_citations``).
AT_MOST = 3
DATASET = "citations"

_CITATION = re.compile(r"\s*\[(\d+(?:\s*[,;]\s*\d+)*)\]")
# What was meant as a citation: brackets with a number that are no citation.
_MALFORMED = re.compile(
    r"\[(?!\d+(?:\s*[,;]\s*\d+)*\])[^\[\]]{0,40}\d[^\[\]]{0,40}\]|\[\d+(?![\d\s,;\]])"
    r"|\(\s*(?:doc(?:ument)?|source)\s+\d+\s*\)",
    re.IGNORECASE,
)
#: Number of the response, number of the sentence, documents.
_Key = tuple[int, int, tuple[int, ...]]
Row = dict[str, Any]


@dataclass(frozen=True)
class CitedSentence:
    """A sentence with the documents that it cites.

    text: without citations. cited: indexes into the documents (from 0), each once, in order. malformed: citations that
    name no document, as written. rejected: whether one of them is the number of a document that is not there.
    """

    text: str
    cited: tuple[int, ...] = ()
    malformed: tuple[str, ...] = ()
    rejected: bool = False


def cited_sentences(output: str, n_docs: int, at_most: int | None = AT_MOST) -> list[CitedSentence]:
    """The sentences of an output with their citations ``[1]`` .. ``[n_docs]``; what is left of brackets is malformed.

    >>> cited_sentences("He sang [1][9]. He died.", 2)[0]
    CitedSentence(text='He sang.', cited=(0,), malformed=('[9]',), rejected=True)
    """
    found = []
    for sentence in split_sentences(output):
        numbers = [int(number) for group in _CITATION.findall(sentence) for number in re.findall(r"\d+", group)]
        absent = [f"[{number}]" for number in numbers if not 1 <= number <= n_docs]
        wrong = [*absent, *(match.group() for match in _MALFORMED.finditer(sentence))]
        cited = tuple(dict.fromkeys(number - 1 for number in numbers if 1 <= number <= n_docs))[:at_most]
        found.append(CitedSentence(_CITATION.sub("", sentence).strip(), cited, tuple(wrong), bool(absent)))
    return found


@dataclass
class _Cited:
    response: Response
    sentences: list[CitedSentence] = field(default_factory=list)

    def row(self, number: int, docs: Sequence[int]) -> Row:
        """A sentence and some of the documents, as a row of the claims table."""
        sentence = self.sentences[number]
        fact = f"{self.response.response_id}.{number}"
        texts = (self.response.docs[one] for one in docs)
        return {
            "claim_id": f"{fact}.{digest(*map(str, docs), length=8)}",
            **_shared(self.response),
            "fact_id": fact,
            "claim": sentence.text,
            "doc": "\n".join(f"Title: {title}\n{text}" for title, text in texts) if docs else None,
            "cited": ",".join(str(one + 1) for one in docs) or None,
            "malformed": "; ".join(sentence.malformed) or None,
        }


def judge_citations(
    responses: Sequence[Response],
    evaluator: str | Mapping[str, Any] | NamedEvaluator,
    *,
    at_most: int | None = AT_MOST,
    journal: str | Path | None = None,
    progress: bool = False,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Claims and verdicts for the audit `citations`, of the responses that have documents.

    Claims: a row per sentence and set of documents that was asked about; one (``cited`` null) for each sentence that
    cites nothing, or a document that is not there. A response without a sentence is a row without a claim.

    Judging goes in three steps, so that nothing is asked in vain: whole citation sets, the single documents of the
    sets that passed, the sets without a document that does not suffice.
    """
    works = [_Cited(one, cited_sentences(one.output, len(one.docs), at_most)) for one in responses if one.docs]
    places = [(n, s, one) for n, work in enumerate(works) for s, one in enumerate(work.sentences)]
    silent = [(n, s, ()) for n, s, one in places if one.rejected or not one.cited]
    wholes: list[_Key] = [(n, s, one.cited) for n, s, one in places if one.cited and not one.rejected]
    named = evaluator if isinstance(evaluator, NamedEvaluator) else name_evaluator(evaluator)
    rows = [works[n].row(s, docs) for n, s, docs in silent]
    # Not a judgement, but the evaluator's all the same: without any there would be nobody to have a recall of 0.
    told = [
        {
            "claim_id": row["claim_id"],
            "evaluator": named.name,
            "prediction": 0,
            "raw": "cites no document that there is",
        }
        for row in rows
    ]
    rows += [
        _shared(work.response) | {"claim_id": f"{work.response.response_id}.-", "abstained": 1}
        for work in works
        if not work.sentences
    ]
    verdicts = [validate_verdicts(pd.DataFrame(told))] if told else []
    known: dict[_Key, int | None] = {}

    def ask(keys: Sequence[_Key]) -> None:
        if keys:
            asked = [works[n].row(s, docs) for n, s, docs in keys]
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
    if not rows:
        return validate_claims(_nothing("claim")).iloc[:0], validate_verdicts(_nothing("evaluator")).iloc[:0]
    names = ["claim_id", "dataset", "claim", "cited", "malformed"]
    columns = list(dict.fromkeys([*names, *(key for row in rows for key in row)]))
    claims = validate_claims(pd.DataFrame(rows, columns=columns))
    return claims, merge_verdicts(verdicts) if verdicts else validate_verdicts(_nothing("evaluator")).iloc[:0]


def _shared(response: Response) -> Row:
    return {
        "dataset": DATASET,
        "system": response.system,
        "response_id": response.response_id,
        "topic": response.topic,
    }


def _nothing(column: str) -> pd.DataFrame:
    return pd.DataFrame([{"claim_id": "-", "dataset": "-", "claim": "-", column: "-", "prediction": 1}])
