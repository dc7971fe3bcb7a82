"""Judging: what evaluators may give, and a journal that is never lost to one bad line or to another
process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest

from factaudit import Claim, FactauditError, UsageError, Verdict, judge, validate_claims
from factaudit.evaluators.judging import NamedEvaluator
from factaudit.files import hold_folder_lock


@pytest.fixture
def claims() -> pd.DataFrame:
    return validate_claims(
        pd.DataFrame({"claim_id": list("abcd"), "dataset": "D", "claim": "x y", "doc": "x y z"})
    )


@dataclass
class Scripted:
    """Says of every claim what it was told to say."""

    says: dict[str, Any]
    signature: str = "scripted"
    asked: list[str] = field(default_factory=list)

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        for claim in claims:
            self.asked.append(claim.claim_id)
            yield Verdict(**{"claim_id": claim.claim_id, **self.says})


def scripted(**says: Any) -> NamedEvaluator:
    return NamedEvaluator("s", Scripted(says))


@pytest.mark.parametrize(
    ("says", "said"),
    [
        ({"claim_id": "z", "score": 1.0}, "it gave the claim_id 'z'"),
        ({"score": 1.7}, "gave the score 1.7"),
        ({"score": float("nan")}, "gave the score nan"),
        ({"prediction": 2}, "gave the prediction 2"),
        ({"status": "tired"}, "gave the status 'tired'"),
        ({}, "gave the status 'ok' (ok needs a score"),
    ],
)
def test_an_evaluators_mistake_is_a_message_and_is_not_kept(claims, tmp_path, says, said):
    with pytest.raises(FactauditError, match="evaluator 's'") as caught:
        judge(claims, [scripted(**says)], journal=tmp_path)
    assert said in str(caught.value)
    assert judge(claims, [scripted(score=0.9)], journal=tmp_path)["score"].tolist() == [0.9] * 4


def test_numpys_numbers_and_broken_text_are_understood(claims, tmp_path):
    says = {"score": np.float32(0.5), "prediction": np.int64(1), "raw": "half a pair: \ud800"}
    verdicts = judge(claims, [scripted(**says)], journal=tmp_path)
    assert verdicts["prediction"].tolist() == [1] * 4
    assert verdicts["raw"].tolist() == ["half a pair: ?"] * 4
    again = scripted(score=0.1)
    pd.testing.assert_frame_equal(judge(claims, [again], journal=tmp_path), verdicts)
    assert again.evaluator.asked == []


@pytest.mark.parametrize(
    "line", [b"\x00\xff\n", b"5\n", b'{"input": "x"}\n', b'{"input": "x", "claim_id": ["b"]}\n']
)
def test_a_bad_line_in_a_journal_costs_its_own_claim_only(claims, tmp_path, line):
    judge(claims, [scripted(score=0.9)], journal=tmp_path)
    (journal,) = tmp_path.glob("*.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[2] = line
    journal.write_bytes(b"".join(lines))
    again = scripted(score=0.9)
    assert len(judge(claims, [again], journal=tmp_path)) == 4
    assert again.evaluator.asked == ["b"]


@pytest.mark.parametrize("given", [(0.25, 0.5), np.array([0.25, 0.5])])
def test_scores_of_chunks_are_any_sequence_of_numbers(claims, tmp_path, given):
    for _ in range(2):  # the second time from the journal
        found = judge(claims, [scripted(score=0.5, chunk_scores=given)], journal=tmp_path)
        assert list(map(list, found["chunk_scores"])) == [[0.25, 0.5]] * 4


@pytest.mark.parametrize("said", [True, np.bool_(True), np.float32(1), np.int64(1)])
def test_a_function_may_say_what_numpy_calls_true(claims, said):
    assert judge(claims, [lambda claim, doc: said])["score"].tolist() == [1.0] * 4


def test_two_processes_do_not_write_one_journal(claims, tmp_path):
    with (
        hold_folder_lock(tmp_path, "j"),
        pytest.raises(FactauditError, match="another run is writing to this folder"),
    ):
        judge(claims, [scripted(score=0.9)], journal=tmp_path)


def test_rows_of_responses_without_claims_are_not_judged():
    rows = pd.DataFrame(
        {"dataset": "D", "response_id": ["1", "2"], "claim": ["x", None], "abstained": [None, 1]}
    )
    claims = validate_claims(rows)
    assert judge(claims, ["always-yes"])["claim_id"].tolist() == claims["claim_id"].tolist()[:1]
    with pytest.raises(UsageError, match="nothing to judge"):
        judge(claims.iloc[1:], ["always-yes"])


def test_a_log_gets_lines_with_whole_numbers_and_none_twice(claims, capsys, monkeypatch):
    monkeypatch.setattr("factaudit.text.progress_lines.SECONDS_BETWEEN_LINES", 0)
    judge(claims, [scripted(score=1.0)], progress=True)
    lines = [one.strip() for one in capsys.readouterr().err.split("\n") if one.strip()]
    said = [one.split(",")[0] for one in lines]
    assert said[-2:] == ["s: 3 of 4 claims", "s: 4 of 4 claims"]
