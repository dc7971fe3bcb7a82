"""Citation recall and precision (MF App. D, after ALCE: Gao et al. 2023, §3), with any evaluator as the NLI judge.

A sentence is recalled where the documents that it cites together support it. A citation is precise where its sentence
is recalled and the citation is needed or sufficient: its document alone supports the sentence, or the others without it
don't. What a citation cannot be read from (``[7]`` of five documents, ``[0]``, ``[Document 1]``) is reported, not
judged: such a sentence is not recalled, as in ALCE.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.means import bootstrap_mean
from factaudit.datasets.sources import expand, read_json
from factaudit.engines.responses import Response, remove_citations
from factaudit.evaluators.judging import NamedEvaluator, judge
from factaudit.signature import digest
from factaudit.tables import validate_claims
from factaudit.text.sentences import split_sentences

#: Citations of a sentence beyond this are not looked at (ALCE's ``at_most_citations``).
AT_MOST = 3

_CITATION = re.compile(r"\[(\d+)\]")
# What was meant as a citation: brackets with a number that are not "[3]".
_MALFORMED = re.compile(
    r"\[(?!\d+\])[^\[\]]{0,40}\d[^\[\]]{0,40}\]|\[\d+(?![\d\]])|\(\s*(?:doc(?:ument)?|source)\s+\d+\s*\)", re.IGNORECASE
)

Row = dict[str, Any]


@dataclass(frozen=True)
class CitedSentence:
    """A sentence with the documents that it cites.

    text: without citations. cited: indexes into the documents (from 0), each once, in order. malformed: citations that
    name no document, as written.
    """

    text: str
    cited: tuple[int, ...] = ()
    malformed: tuple[str, ...] = ()


def cited_sentences(output: str, n_docs: int, at_most: int | None = AT_MOST) -> list[CitedSentence]:
    """The sentences of an output with their citations ``[1]`` .. ``[n_docs]``; what is left of brackets is malformed.

    >>> cited_sentences("He sang [1][9]. He died.", 2)[0]
    CitedSentence(text='He sang.', cited=(0,), malformed=('[9]',))
    """
    found = []
    for sentence in split_sentences(output):
        numbers = [int(number) for number in _CITATION.findall(sentence)]
        wrong = [f"[{number}]" for number in numbers if not 1 <= number <= n_docs]
        wrong += [match.group() for match in _MALFORMED.finditer(sentence)]
        cited = tuple(dict.fromkeys(number - 1 for number in numbers if 1 <= number <= n_docs))[:at_most]
        found.append(CitedSentence(remove_citations(sentence).strip(), cited, tuple(wrong)))
    return found


@dataclass
class _Response:
    bio: Response
    sentences: list[CitedSentence] = field(default_factory=list)

    def question(self, number: int, docs: Sequence[int]) -> tuple[str, str]:
        """(claim, document) of one judgement."""
        joint = "\n".join(f"Title: {title}\n{text}" for title, text in (self.bio.docs[one] for one in docs))
        return self.sentences[number].text, joint


def citation_scores(
    biographies: Sequence[Response],
    evaluator: str | Mapping[str, Any] | NamedEvaluator,
    *,
    at_most: int | None = AT_MOST,
    journal: str | Path | None = None,
    progress: bool = False,
) -> tuple[list[Row], pd.DataFrame]:
    """Citation recall and precision of each response that has documents, and the judgements as a claims table.

    A row per response: ``recall`` = recalled sentences / sentences; ``precision`` = precise citations / citations (0
    where there are none, as ALCE has it); n_sentences, n_uncited, n_citations, n_malformed, ``malformed`` (the texts),
    n_unscored (judgements without a verdict). A figure that such a judgement could change is None, and lies between its
    ``_min`` and ``_max``. A response without a sentence is left out, as in ALCE.

    Judging goes in three steps, so that nothing is asked in vain: whole citation sets, the single documents of the
    sets that passed, the sets without a document that does not suffice.
    """
    responses = [_Response(bio, cited_sentences(bio.output, len(bio.docs), at_most)) for bio in biographies if bio.docs]
    responses = [one for one in responses if one.sentences]
    wholes = {
        (n, s, one.cited): response.question(s, one.cited)
        for n, response in enumerate(responses)
        for s, one in enumerate(response.sentences)
        if one.cited and not _rejected(one)
    }
    verdicts, table = _judge(wholes, responses, evaluator, journal, progress)
    tables = [table]
    several = [(n, s, cited) for n, s, cited in wholes if verdicts[n, s, cited] == 1 and len(cited) > 1]
    singles: dict[_Key, tuple[str, str]] = {
        (n, s, (doc,)): responses[n].question(s, (doc,)) for n, s, cited in several for doc in cited
    }
    more, table = _judge(singles, responses, evaluator, journal, progress)
    verdicts |= more
    tables.append(table)
    rests = {
        (n, s, rest): responses[n].question(s, rest)
        for n, s, cited in several
        for doc, rest in _rests(cited)
        if verdicts[n, s, (doc,)] != 1 and (n, s, rest) not in verdicts
    }
    more, table = _judge(rests, responses, evaluator, journal, progress)
    verdicts |= more
    tables.append(table)
    rows = [_row(n, response, verdicts) for n, response in enumerate(responses)]
    return rows, pd.concat([one for one in tables if len(one)] or tables[:1], ignore_index=True)


def summarise_citations(
    rows: Sequence[Mapping[str, Any]], *, replicates: int = 2000, seed: int = 0, confidence: float = 0.95
) -> list[Row]:
    """Means per system of `citation_scores`' rows, with intervals over responses.

    recall and precision are means of the responses that have them, their bounds (``_min``, ``_max``) of all.
    """
    found = []
    for system in dict.fromkeys(row["system"] for row in rows):
        own = [row for row in rows if row["system"] == system]
        told: Row = {"system": system, "n_responses": len(own)}
        for key in ("n_sentences", "n_uncited", "n_citations", "n_malformed", "n_unscored"):
            told[key] = sum(row[key] for row in own)
        for key in ("recall", "precision"):
            values = np.array([row[key] for row in own if row[key] is not None], dtype=np.float64)
            told[key] = float(values.mean()) if len(values) else None
            for end in ("min", "max"):
                told[f"{key}_{end}"] = float(np.mean([row[f"{key}_{end}"] for row in own]))
            told[f"{key}_low"], told[f"{key}_high"] = bootstrap_mean(values, _intervals(replicates, seed, confidence))
        n_missing = sum(row["recall"] is None or row["precision"] is None for row in own)
        told["reason"] = f"{n_missing} responses have unscored judgements (see _min, _max)" if n_missing else None
        found.append(told)
    return found


# ------------------------------------------------------------------------------------------- published judgements


class _Logged(BaseModel):
    qid: int = Field(ge=0)
    output: str = Field(pattern=r"\S")
    claim: str
    model_output: Literal[0, 1]


class _Scores(BaseModel):
    citation_rec: float
    citation_prec: float
    autoais_log: list[_Logged]


def read_alce_scores(
    sources: Sequence[str | Path],
    *,
    n_responses: int | None = None,
    replicates: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> list[Row]:
    """Citation recall again from the claim-level judgements of ALCE ``*.score`` files: a row per file.

    A response that cites nothing, or no document that there is, is in no judgement and has recall 0; how many there
    are is told by the largest ``qid`` where ``n_responses`` is not given. (ALCE leaves responses without a sentence
    out; none of them can be seen in the file.) The judgements behind precision are not in the files.
    """
    found = []
    for path in expand([Path(one) for one in sources], "*.score"):
        content: _Scores = read_json(path, _Scores)
        by_response: dict[int, list[_Logged]] = {}
        for one in content.autoais_log:
            by_response.setdefault(one.qid, []).append(one)
        total = max(n_responses or 0, max(by_response, default=-1) + 1)
        recalls = np.zeros(total)
        for qid, judged in by_response.items():
            recalls[qid] = sum(one.model_output for one in judged) / len(split_sentences(judged[0].output))
        low, high = bootstrap_mean(recalls, _intervals(replicates, seed, confidence))
        found.append(
            {
                "file": path.name,
                "n_responses": total,
                "n_judged_responses": len(by_response),
                "n_judgements": len(content.autoais_log),
                "recall": float(recalls.mean()) if total else None,
                "recall_low": low,
                "recall_high": high,
                "file_recall": content.citation_rec / 100,
                "file_precision": content.citation_prec / 100,
            }
        )
    return found


# ------------------------------------------------------------------------------------------------------- judging

_Key = tuple[int, int, tuple[int, ...]]


def _rejected(sentence: CitedSentence) -> bool:
    # ALCE gives no credit to a sentence that cites a document that is not there.
    return any(_CITATION.fullmatch(one) for one in sentence.malformed)


def _judge(
    questions: Mapping[_Key, tuple[str, str]],
    responses: Sequence[_Response],
    evaluator: str | Mapping[str, Any] | NamedEvaluator,
    journal: str | Path | None,
    progress: bool,
) -> tuple[dict[_Key, int | None], pd.DataFrame]:
    if not questions:
        return {}, pd.DataFrame()
    table = validate_claims(
        pd.DataFrame(
            {
                "claim_id": [
                    f"{responses[n].bio.response_id}.{s}.{digest(*map(str, docs), length=8)}"
                    for n, s, docs in questions
                ],
                "dataset": "citations",
                "system": [responses[n].bio.system for n, _, _ in questions],
                "response_id": [responses[n].bio.response_id for n, _, _ in questions],
                "topic": [responses[n].bio.topic for n, _, _ in questions],
                "claim": [claim for claim, _ in questions.values()],
                "doc": [doc for _, doc in questions.values()],
            }
        )
    )
    verdicts = judge(table, [evaluator], journal=journal, progress=progress)
    table["prediction"] = verdicts["prediction"]
    table["status"] = verdicts["status"]
    predictions = [None if pd.isna(one) else int(one) for one in verdicts["prediction"]]
    return dict(zip(questions, predictions, strict=True)), table


def _rests(cited: Sequence[int]) -> list[tuple[int, tuple[int, ...]]]:
    """Each document with the others."""
    return [(doc, tuple(other for other in cited if other != doc)) for doc in cited]


def _row(n: int, response: _Response, verdicts: Mapping[_Key, int | None]) -> Row:
    recalled = precise = citations = unscored = 0
    # Sentences and citations whose judgements are missing, so that they may count or not.
    open_sentences = open_citations = 0
    for s, sentence in enumerate(response.sentences):
        if not sentence.cited or _rejected(sentence):
            continue
        citations += len(sentence.cited)
        whole = verdicts[n, s, sentence.cited]
        if whole is None:
            unscored += 1
            open_sentences += 1
            open_citations += len(sentence.cited)
        elif whole and len(sentence.cited) == 1:
            recalled += 1
            precise += 1
        elif whole:
            recalled += 1
            for doc, rest in _rests(sentence.cited):
                alone, others = verdicts[n, s, (doc,)], verdicts.get((n, s, rest))
                if alone == 1 or others == 0:
                    precise += 1
                elif alone is None or others is None:
                    open_citations += 1
                unscored += alone is None
                unscored += alone != 1 and others is None
    bio = response.bio
    malformed = [one for sentence in response.sentences for one in sentence.malformed]
    total = len(response.sentences)
    row: Row = {
        "response_id": bio.response_id,
        "name": bio.topic,
        "system": bio.system,
        "n_sentences": total,
        "n_uncited": sum(not one.cited and not one.malformed for one in response.sentences),
        "n_citations": citations,
        "n_malformed": len(malformed),
        "malformed": malformed,
        "n_unscored": unscored,
    }
    for key, sure, maybe, of in (
        ("recall", recalled, open_sentences, total),
        ("precision", precise, open_citations, citations),
    ):
        row[f"{key}_min"] = sure / of if of else 0.0
        row[f"{key}_max"] = (sure + maybe) / of if of else 0.0
        row[key] = None if maybe else row[f"{key}_min"]
    return row


def _intervals(replicates: int, seed: int, confidence: float) -> Intervals | None:
    return Intervals(replicates=replicates, seed=seed, confidence=confidence) if replicates else None
