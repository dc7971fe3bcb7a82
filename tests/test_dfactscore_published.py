"""MF's own outputs: totals to the last digit, Table 4 to the printed one, lost facts; ALCE's citation recall."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from factaudit.audit.core.judged import Judged
from factaudit.audit.entities import entities
from factaudit.datasets import convert
from factaudit.engines.dfactscore.citations import (
    citation_scores,
    cited_sentences,
    read_alce_scores,
    summarise_citations,
)
from factaudit.engines.dfactscore.published import compare_printed, read_printed
from factaudit.engines.dfactscore.settings import load, run
from factaudit.engines.responses import Response
from factaudit.errors import InputError
from factaudit.evaluators.base import Claim, Verdict
from factaudit.evaluators.judging import NamedEvaluator


def test_table_4_to_the_printed_digit(shared: Path, root: Path) -> None:
    published = convert("merging-facts", [shared / "dfactscore" / "results"])
    assert published.verdicts is not None
    found = entities(Judged.join(published.claims, published.verdicts), link="given")
    printed = read_printed(root / "data/published/mf_table4.csv")
    rows = compare_printed(found, printed)
    assert (len(rows), len(printed)) == (16, 40)  # six of the fifteen files are at hand
    assert [row for row in rows if not row["same"]] == []
    figures = {(row["system"], row["figure"]): row["rebuilt"] for row in rows}
    assert figures["Llama-2-13b-chat", "init_factscore"] == 94.6
    assert figures["Llama-2-13b-chat", "init_dfactscore"] == 86.0
    assert figures["gpt-3.5-turbo-0301", "init_dfactscore"] == 95.2
    assert figures["Llama-2-13b-chat, no ambiguity", "init_dfactscore"] == 83.2
    wrong = [one | {"value": one["value"] + 0.1} for one in printed]
    assert not any(row["same"] for row in compare_printed(found, wrong))


def test_the_experiment_rebuilds_the_table(shared: Path, root: Path, tmp_path: Path) -> None:
    settings = {"data": str(shared), "replicates": 50}
    results = run(root / "experiments/dfactscore_published.yaml", tmp_path, settings=settings)
    assert all(row["same"] for row in results.audits["dfactscore_printed"])
    assert [row["recall"] for row in results.audits["citation_recall"]] == pytest.approx([0.4351300866, 0.5543950216])
    assert "Facts that belong to someone else" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "tables/dfactscore.csv").is_file()


def test_a_wrong_experiment_is_said_by_line(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text("dfactscore:\n  published: x.json\n  knowlege: y\n")
    with pytest.raises(InputError, match=r"line 3.*knowlege"):
        load(path)
    path.write_text("dfactscore:\n  biographies: x.jsonl\n  groupers: heuristics\n")
    with pytest.raises(InputError, match="line 3"):
        load(path)
    path.write_text("dfactscore:\n  biographies: e.yaml\n  verifier: unigran\naudits: [rate]\n")
    with pytest.raises(InputError, match=r"line 3.*did you mean 'unigram'[\s\S]*line 4: unknown audit"):
        load(path)
    path.write_text("dfactscore:\n  biographies: x.jsonl\n")
    with pytest.raises(InputError, match="line 2: no such file"):
        load(path)
    path.write_text("dfactscore:\n  biographies: ${data}/x.jsonl\n")
    with pytest.raises(InputError, match="'data' is not set"):
        load(path)


# --------------------------------------------------------------------------------------------------- citations


def test_citation_recall_of_the_published_judgements(shared: Path) -> None:
    rows = read_alce_scores([shared / "dfactscore" / "citation"], replicates=100)
    assert len(rows) == 2
    for row in rows:
        assert row["recall"] == pytest.approx(row["file_recall"], abs=1e-9)
        assert row["n_responses"] == 500
    assert round(100 * rows[1]["recall"], 2) == 55.44  # MF Table 7, Vicuna


def test_sentences_with_their_citations() -> None:
    output = "He sang [1][3]. He danced[2][2]. He rested. He slept [9]. He ate [Document 1]. He drank [2,3]."
    found = cited_sentences(output, 3)
    assert [one.cited for one in found] == [(0, 2), (1,), (), (), (), ()]
    assert [one.malformed for one in found] == [(), (), (), ("[9]",), ("[Document 1]",), ("[2,3]",)]
    assert found[0].text == "He sang."
    assert cited_sentences("He sang [1][2][3][4].", 4)[0].cited == (0, 1, 2)
    assert cited_sentences("He sang [1][2][3][4].", 4, at_most=None)[0].cited == (0, 1, 2, 3)
    assert cited_sentences("He sang [0].", 4)[0].malformed == ("[0]",)


DOCS = (("A", "He sang in Rome."), ("B", "He danced in Oslo."), ("C", "Bees make honey."))


def cited(output: str) -> dict[str, Any]:
    bio = Response("r", "N", output, "s", docs=DOCS)
    (row,), _ = citation_scores([bio], "unigram:threshold=0.9")
    return row


def test_recall_and_precision_by_hand() -> None:
    # Supported by its one citation; by two, one of which is needless; not supported; not cited.
    row = cited("He sang in Rome [1]. He danced in Oslo [2][3]. He sang in Paris [1]. Bees make honey.")
    assert row["recall"] == pytest.approx(2 / 4)
    assert row["precision"] == pytest.approx(2 / 4)
    assert (row["n_citations"], row["n_uncited"], row["n_malformed"]) == (4, 1, 0)
    # Needed together: neither is enough, so both citations count.
    row = cited("He sang in Rome, danced in Oslo [1][2].")
    assert (row["recall"], row["precision"]) == (1.0, 1.0)


def test_malformed_citations_are_reported_and_not_judged() -> None:
    row = cited("He sang in Rome [1][7]. He danced in Oslo [Document 2].")
    assert (row["recall"], row["precision"], row["n_malformed"]) == (0.0, 0.0, 2)
    assert row["malformed"] == ["[7]", "[Document 2]"]
    (told,) = summarise_citations([row], replicates=0)
    assert (told["n_malformed"], told["recall"]) == (2, 0.0)


def test_a_judgement_without_a_verdict_leaves_recall_undefined() -> None:
    row = cited("It was [1].")  # no content word: the evaluator skips it
    assert (row["n_unscored"], row["recall"], row["precision"]) == (1, None, None)
    (told,) = summarise_citations([row])
    assert told["recall"] is None
    assert told["reason"] == "1 responses have unscored judgements (see _min, _max)"
    assert (told["recall_min"], told["recall_max"], told["precision_min"], told["precision_max"]) == (0, 1, 0, 1)


class Scripted:
    """Says 1 where the documents' first letters are among ``yes``, nothing where they are among ``silent``."""

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
    ("yes", "silent", "asked", "precision", "bounds"),
    [
        # A suffices; without B the others support it: needless; without C they don't: needed.
        ("ABC A AC", "", ["ABC", "A", "B", "C", "AC", "AB"], 2 / 3, (2 / 3, 2 / 3)),
        # Whether B suffices is not known, but without it the others don't: needed in any case.
        ("ABC A C", "B", ["ABC", "A", "B", "C", "AC"], 1.0, (1.0, 1.0)),
        ("ABC A AC", "B", ["ABC", "A", "B", "C", "AC", "AB"], None, (2 / 3, 1.0)),
        ("", "ABC", ["ABC"], None, (0.0, 1.0)),
        ("", "", ["ABC"], 0.0, (0.0, 0.0)),
    ],
)
def test_nothing_is_asked_in_vain_and_what_is_missing_bounds_precision(
    yes: str, silent: str, asked: list[str], precision: float | None, bounds: tuple[float, float]
) -> None:
    evaluator = Scripted(yes, silent)
    bio = Response("r", "N", "He sang and danced [1][2][3].", "s", docs=DOCS)
    (row,), table = citation_scores([bio], NamedEvaluator("scripted", evaluator))
    assert evaluator.asked == asked
    assert len(table) == len(asked)
    assert row["precision"] == pytest.approx(precision)
    assert (row["precision_min"], row["precision_max"]) == pytest.approx(bounds)
    assert row["recall"] == (None if "ABC" in silent.split() else float("ABC" in yes.split()))
