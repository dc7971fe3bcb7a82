"""Evaluators asked again: `judge --repeats`, paraphrased prompts, and what the audit `stability`
makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pandas as pd
import pytest

from factaudit import (
    Claim,
    UsageError,
    Verdict,
    compare,
    judge,
    validate_claims,
)
from factaudit.evaluators.judging import make_named_evaluator


@dataclass
class Moody:
    """Says 1 but for every tenth claim when it is asked again."""

    flips: int = 10
    repeat: int = 0

    @property
    def signature(self) -> str:
        return f"moody|{self.flips}|{self.repeat}"

    def again(self, repeat: int) -> Moody:
        return Moody(self.flips, repeat)

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        for claim in claims:
            yield Verdict(
                claim.claim_id,
                prediction=int(not self.repeat or int(claim.claim_id) % self.flips != 0),
            )


def claims(size: int = 400) -> pd.DataFrame:
    ids = list(map(str, range(size)))
    return validate_claims(
        pd.DataFrame({"claim_id": ids, "dataset": "d", "claim": ids, "label": [0, 1] * (size // 2)})
    )


def test_repeats_are_judged_and_audited():
    table = claims()
    verdicts = judge(table, [Moody(), "always-yes"], repeats=None)
    assert verdicts["repeat"].tolist() == [0] * 800
    verdicts = judge(table, [Moody()], repeats=3)
    assert verdicts["repeat"].value_counts().to_dict() == {0: 400, 1: 400, 2: 400}
    results = compare(table, verdicts, audits=["stability"])
    (row,) = results.audits["stability"]
    assert row["n_repeats"] == 3
    assert row["flip_rate"] == pytest.approx(40 * 2 / (400 * 3))


def test_what_gives_the_same_each_time_is_not_repeated():
    with pytest.raises(UsageError, match="gives the same verdict each time"):
        make_named_evaluator("rouge2", 3)
    with pytest.raises(UsageError, match=r"option repeats: .* found 'often'"):
        make_named_evaluator({"random": {"repeats": "often"}})
    assert len(make_named_evaluator({"random": {"repeats": 4}}).evaluator_and_repeats) == 4
    assert len(make_named_evaluator("random", 2).evaluator_and_repeats) == 2


def test_a_judge_is_asked_past_the_cache():
    named = make_named_evaluator({"llm": {"model": "m", "repeats": 2}})
    first, again = named.evaluator_and_repeats
    claim = [Claim("1", "It rains.", "It rains. It pours.", None)]
    said = [next(iter(one.requests(claim))) for one in (first, again)]
    assert said[0] == said[1]
    assert first.client_key() != again.client_key()
    assert first.signature != again.signature
    assert "repeats:" in named.signature
