"""Rates by the place of the evidence: places by hand, ties, short documents, the test, and words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from audit_tables import Row, find, judged, tables

from factaudit.audit.evidence_position import compute_evidence_position
from factaudit.audit.findings import collect_findings
from factaudit.errors import UsageError
from factaudit.results import compare
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.text.rouge_overlap import locate_best_rouge_chunks, rouge2_precision

INTERVALS = ClusterBootstrap(replicates=20)
PLACES = ("beginning", "middle", "end")


def make_document(number: int, n_sentences: int = 9) -> list[str]:
    return [f"A{number}x{at} b{number}x{at} c{number}x{at}." for at in range(n_sentences)]


def draw_rows(seed: int, tnr: tuple[float, float, float], n: int = 600) -> list[Row]:
    """Claims that repeat one sentence of nine; ``tnr``: how often an error is found, by the third that has it."""
    random = np.random.default_rng(seed)
    rows = []
    for at in range(n):
        document = make_document(at // 4)
        sentence, label = int(random.integers(0, 9)), int(random.random() < 0.5)
        said = int(random.random() < 0.8) if label else int(random.random() >= tnr[sentence // 3])
        rows.append({"claim": f"{document[sentence]} own", "doc": " ".join(document), "label": label, "e": said})
        rows[-1] |= {"doc_id": str(at // 4), "place": PLACES[sentence // 3], "task": "t"}
    return rows


def compute(rows: list[Row], **options: object) -> list[Row]:
    return compute_evidence_position(judged(rows, "e"), size=3, **options)


def test_rates_are_those_of_the_claims_whose_sentence_is_there():
    rows = draw_rows(1, (0.9, 0.4, 0.7))
    found = compute(rows, intervals=INTERVALS)
    assert [row["place"] for row in found] == list(PLACES)
    for row in found:
        mine = [each for each in rows if each["place"] == row["place"]]
        for rate, label, n in (("tpr", 1, "n_pos"), ("tnr", 0, "n_neg")):
            of_class = [each["e"] == label for each in mine if each["label"] == label]
            assert row[rate] == pytest.approx(np.mean(of_class))
            assert row[n] == len(of_class)
        assert (row["n"], row["n_unscored"], row["n_short"], row["n_no_place"]) == (len(mine), 0, 0, 0)
    assert len({row["p_tnr"] for row in found}) == 1
    assert found[0]["p_tnr"] < 1e-4
    assert found[0]["p_tpr"] > 0.01


def test_ties_between_thirds_claims_without_a_bigram_and_short_documents_have_no_place():
    first, *_, last = make_document(0)
    doc = " ".join(make_document(0))
    rows = [
        {"claim": f"{first} {last}", "doc": doc, "label": 1, "e": 1},  # as many bigrams at both ends
        {"claim": "nothing of it", "doc": doc, "label": 1, "e": 1},
        {"claim": first, "doc": first, "label": 1, "e": 1},  # short
        {"claim": first, "doc": None, "label": 1, "e": 1},
        {"claim": f"{first} {make_document(0)[1]}", "doc": doc, "label": 0, "e": None},  # two chunks of one third
        {"claim": last, "doc": doc, "label": None, "e": 1},
    ]
    found = compute(rows)
    row = find(found, place="beginning")
    assert (row["n"], row["n_unscored"], row["n_short"], row["n_no_place"]) == (0, 1, 1, 3)
    assert row["reason"] == "tpr needs attributable claims: this place has none; tnr needs unattributable claims: " + (
        "none of this place's is scored"
    )
    assert find(found, place="end")["n"] == 0
    assert compute(rows[2:4]) == []  # no long document
    with pytest.raises(UsageError, match="at least 1 word"):
        compute_evidence_position(judged(rows, "e"), size=0)


def test_the_best_chunk_is_the_one_that_a_search_finds():
    random = np.random.default_rng(3)
    words = [f"w{at}" for at in range(12)]
    chunks = [[" ".join([*random.choice(words, 5), "."]).capitalize() for _ in range(6)] for _ in range(20)]
    claims = [" ".join(random.choice(words, 8)) for _ in chunks]
    docs = [" ".join(each) for each in chunks]
    first, last = locate_best_rouge_chunks(claims, docs, 6)
    n_with_place = 0
    for at, (claim, each) in enumerate(zip(claims, chunks, strict=True)):
        shares = rouge2_precision([claim] * len(each), each)
        if not shares.max():
            assert np.isnan(first[at])
            continue
        n_with_place += 1
        best = np.flatnonzero(shares == shares.max())
        starts = np.cumsum([0, *(len(one) + 1 for one in each)])
        middles = [(starts[k] + len(each[k]) / 2) / len(docs[at]) for k in (best[0], best[-1])]
        assert (first[at], last[at]) == (pytest.approx(middles[0]), pytest.approx(middles[1]))
    assert n_with_place > 10


def say(rows: list[Row]) -> list[Row]:
    return [each for each in collect_findings({"evidence_position": rows}) if each["id"] == "evidence_position"]


def test_an_evaluator_that_loses_the_middle_is_named_and_one_that_does_not_is_not():
    (finding,) = say(compute(draw_rows(4, (0.9, 0.4, 0.7)), intervals=INTERVALS))
    assert (finding["severity"], finding["evaluator"], finding["dataset"]) == ("warn", "e", "t")
    assert finding["evidence"]["worst_place"] == "middle"
    assert "finds fewer of the errors where the evidence is in the middle of a long document" in finding["statement"]
    assert "passages" not in finding["statement"]  # its documents may be some
    assert say(compute(draw_rows(5, (0.7, 0.7, 0.7)), intervals=INTERVALS)) == []
    assert say(compute(draw_rows(4, (0.9, 0.4, 0.7)))) == []  # without intervals nothing was tested


def test_an_evaluator_of_chunks_is_not_told_to_try_passages():
    rows = compute(draw_rows(4, (0.9, 0.4, 0.7)), intervals=INTERVALS)
    assert say([row | {"evaluator": "chunked-e"} for row in rows]) == []


def test_what_is_unscored_may_keep_it_from_being_said():
    rows = draw_rows(4, (0.9, 0.4, 0.7))
    lost = [row | {"e": None} if not row["label"] and at % 2 else row for at, row in enumerate(rows)]
    assert say(compute(lost, intervals=INTERVALS)) == []


def test_it_is_computed_where_a_labelled_claim_has_a_long_document():
    rows = [
        {"claim": "A claim.", "doc": "word " * n + "end.", "label": at % 2, "e": 1} for at, n in enumerate([400, 9])
    ]
    assert "evidence_position" in compare(*tables(rows, ["e"]), replicates=20).audits
    assert "evidence_position" not in compare(*tables(rows[1:], ["e"]), replicates=20).audits


def test_real_long_documents_have_evidence_in_all_thirds(shared: Path):
    """WiCE: what people marked as supporting mostly lies in the third that the audit finds."""
    lines = (shared / "wice" / "dev.jsonl").read_text(encoding="utf-8").splitlines()
    claims, docs, thirds = [], [], []
    for line in map(json.loads, lines):
        marked = {at for group in line["supporting_sentences"] for at in group}
        ends = np.cumsum([len(sentence) + 1 for sentence in line["evidence"]])
        places = {int(3 * (ends[at] - len(line["evidence"][at]) / 2) / ends[-1]) for at in marked}
        if line["label"] == "supported" and len(places) == 1:
            claims.append(line["claim"])
            docs.append(" ".join(line["evidence"]))
            thirds.append(places.pop())
    first, last = locate_best_rouge_chunks(claims, docs, 100)
    found = np.floor(3 * first)
    agree = (found == thirds)[found == np.floor(3 * last)]
    assert len(agree) == 40
    assert np.mean(agree) > 0.8
