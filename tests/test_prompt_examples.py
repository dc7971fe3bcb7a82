"""A claim of the dev or test split inside a judge's prompt is an error, before anything is asked."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from conftest import Call

from factaudit.errors import UsageError
from factaudit.evaluators.judge_prompt import check_prompts_spare_claims
from factaudit.evaluators.judging import judge, make_named_evaluator
from factaudit.experiment import Experiment, run
from factaudit.tables import validate_claims

CLAIM = "The mill stands by  the River."


def split_claims(split: str | None, claim: str = CLAIM) -> pd.DataFrame:
    return validate_claims(
        pd.DataFrame([{"claim_id": "c1", "dataset": "d", "claim": claim, "doc": "x", "split": split}])
    )


@pytest.fixture
def spec(tmp_path: Path) -> dict[str, dict[str, str]]:
    text = (
        "user: |\n  Example: the mill stands by the river. No.\n  {doc} {claim}\npositive: ['yes']\nnegative: ['no']\n"
    )
    (tmp_path / "mine.yaml").write_text(text)
    return {"llm": {"model": "m", "template": str(tmp_path / "mine.yaml"), "base_url": "http://127.0.0.1:9/v1"}}


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_measured_claim_in_a_prompt_stops_the_judge_before_it_asks(spec, split):
    with pytest.raises(UsageError, match=f"contains 1 claim that .* 'c1' of the split '{split}'; take examples"):
        judge(split_claims(split), [spec])
    with pytest.raises(UsageError, match="take examples from the split 'train'"):
        judge(split_claims(split), [{"chunked": {"evaluator": spec}}])


@pytest.mark.parametrize(
    ("split", "claim"), [("train", CLAIM), (None, CLAIM), ("test", "No."), ("test", "A cat sat up.")]
)
def test_a_claim_of_train_or_one_that_is_not_in_the_prompt_is_no_error(spec, split, claim):
    check_prompts_spare_claims([make_named_evaluator(spec).evaluator], split_claims(split, claim))


def test_a_claim_of_the_test_stops_a_judge_of_dev_too(spec, tmp_path: Path, call: Call):
    claims = pd.concat([split_claims("dev", "A cat sat up today.").assign(claim_id="c2"), split_claims("test")])
    claims.to_parquet(tmp_path / "split.parquet")
    experiment = Experiment(claims=[str(tmp_path / "split.parquet")], evaluators=[spec], split="dev")
    with pytest.raises(UsageError, match="'c1' of the split 'test'; take examples"):
        run(experiment, tmp_path / "run")
    evaluator = f"llm:model=m,template={spec['llm']['template']},base_url=http://127.0.0.1:9/v1"
    code, _, err = call(
        "judge", tmp_path / "split.parquet", "--split", "dev", "--evaluator", evaluator, "--out", tmp_path / "v.csv"
    )
    assert code == 2
    assert "of the split 'test'; take examples" in err
