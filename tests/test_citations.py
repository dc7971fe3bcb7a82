"""What sentences cite, and judging it: nothing is asked in vain, and nothing malformed is
judged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from audit_tables import compute, join
from scripted_llm import Response

from factaudit import Claim, UsageError, Verdict
from factaudit.engines.citations import judge_citations, parse_cited_sentences
from factaudit.evaluators.judging import NamedEvaluator, make_named_evaluator

DOCS = (("A", "He sang in Rome."), ("B", "He danced in Oslo."), ("C", "Bees make honey."))


def test_sentences_with_their_citations():
    output = (
        "He sang [1][3]. He danced[2][2]. He rested. He slept [9]. He ate [Document 1]. He drank"
        " [2, 3]. He ran [1;2]."
    )
    found = parse_cited_sentences(output, 3)
    assert [one.doc_numbers for one in found] == [(0, 2), (1,), (), (), (), (1, 2), (0, 1)]
    assert [one.malformed_citations for one in found] == [
        (),
        (),
        (),
        ("[9]",),
        ("[Document 1]",),
        (),
        (),
    ]
    assert [one.cites_absent_doc for one in found] == [
        False,
        False,
        False,
        True,
        False,
        False,
        False,
    ]
    assert [found[0].text, found[5].text] == ["He sang.", "He drank."]
    assert parse_cited_sentences("He sang [1][2][3][4].", 4)[0].doc_numbers == (0, 1, 2)
    zero = parse_cited_sentences("He sang [0][1].", 4)[0]
    assert (zero.doc_numbers, zero.malformed_citations, zero.cites_absent_doc) == (
        (0,),
        ("[0]",),
        True,
    )


def cited(output: str) -> dict[str, Any]:
    (row,) = compute(
        "citations",
        join(*judge_citations([response(output)], make_named_evaluator("unigram:threshold=0.9"))),
    )
    return row


def response(output: str) -> Response:
    return Response("r", "N", output, "s", docs=DOCS)


def test_recall_and_precision_of_judged_sentences():
    # Supported by its one citation; by two, one of which is needless; not supported; not cited.
    row = cited(
        "He sang in Rome [1]. He danced in Oslo [2][3]. He sang in Paris [1]. Bees make honey."
    )
    assert (row["recall"], row["precision"]) == (pytest.approx(2 / 4), pytest.approx(2 / 4))
    assert (row["n_citations"], row["n_uncited"], row["n_malformed"]) == (4, 1, 0)
    # Needed together: neither is enough, so both citations count.
    row = cited("He sang in Rome, danced in Oslo [1, 2].")
    assert (row["recall"], row["precision"]) == (1.0, 1.0)


def test_malformed_citations_are_reported_and_not_judged():
    row = cited("He sang in Rome [1][7]. He danced in Oslo [Document 2]. He sang in Rome [0].")
    assert (row["recall"], row["precision"], row["n_malformed"], row["n_uncited"]) == (
        0.0,
        0.0,
        3,
        0,
    )


def test_who_cites_nothing_has_recall_0_and_who_says_nothing_is_left_out():
    rows = [
        response("He sang."),
        Response("q", "N", "", "s", docs=DOCS),
        Response("p", "N", "No documents.", "s"),
    ]
    (row,) = compute("citations", join(*judge_citations(rows, make_named_evaluator("unigram"))))
    assert (row["recall"], row["n_responses"], row["n_empty"]) == (0, 1, 1)
    with pytest.raises(UsageError, match="no response has documents"):
        judge_citations(rows[2:], make_named_evaluator("unigram"))


def test_a_judgement_without_a_verdict_counts_against_recall():
    row = cited("It was [1].")  # no content word: the evaluator skips it
    assert (row["n_unscored"], row["recall"], row["precision"]) == (1, 0, 0)
    assert (row["recall_max"], row["precision_max"]) == (1, 1)


class Scripted:
    """Says 1 where the documents' first letters are among ``yes``, nothing where they are among
    ``silent``."""

    signature = "scripted"

    def __init__(self, yes: str, silent: str = "") -> None:
        self.yes, self.silent, self.asked = yes.split(), silent.split(), list[str]()

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        for claim in claims:
            docs = "".join(re.findall(r"^Title: (\w)", claim.doc or "", re.MULTILINE))
            self.asked.append(docs)
            if docs in self.silent:
                yield Verdict(claim.claim_id, status="error")
            else:
                yield Verdict(claim.claim_id, prediction=int(docs in self.yes))


@pytest.mark.parametrize(
    ("yes", "silent", "asked", "bounds"),
    [
        # A suffices; without B the others support it: needless; without C they don't: needed.
        ("ABC A AC", "", ["ABC", "A", "B", "C", "AC", "AB"], (2 / 3, 2 / 3)),
        # Whether B suffices is not known, but without it the others don't: needed in any case.
        ("ABC A C", "B", ["ABC", "A", "B", "C", "AC"], (1.0, 1.0)),
        ("ABC A AC", "B", ["ABC", "A", "B", "C", "AC", "AB"], (2 / 3, 1.0)),
        ("", "ABC", ["ABC"], (0.0, 1.0)),
        ("", "", ["ABC"], (0.0, 0.0)),
    ],
)
def test_nothing_is_asked_in_vain_and_what_is_missing_bounds_precision(yes, silent, asked, bounds):
    evaluator = Scripted(yes, silent)
    one = response("He sang and danced [1][2][3].")
    claims, verdicts = judge_citations([one], NamedEvaluator("scripted", evaluator))
    (row,) = compute("citations", join(claims, verdicts))
    assert evaluator.asked == asked
    assert len(claims) == len(asked)
    assert row["precision"] == pytest.approx(bounds[0])
    assert (row["precision_min"], row["precision_max"]) == pytest.approx(bounds)
    assert row["recall"] == float("ABC" in yes.split())
