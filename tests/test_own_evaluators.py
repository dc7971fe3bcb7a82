"""Evaluators of the user's own, without a package: classes, functions, classifiers, pipelines."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from factaudit.errors import FactauditError, UsageError
from factaudit.evaluators.base import Claim, Verdict
from factaudit.evaluators.judging import judge
from factaudit.evaluators.own import FromClassifier, FromFunction, FromPipeline
from factaudit.tables import read_verdicts, validate_claims, write_table

CLAIMS = validate_claims(
    pd.DataFrame(
        {
            "claim_id": ["a", "b", "c"],
            "dataset": "d",
            "doc": ["It rains in May.", "Snow fell in June.", None],
            "claim": ["It rains", "It rains", "It rains"],
        }
    )
)
MODULE = '''
from dataclasses import dataclass
from factaudit.evaluators.base import Verdict

@dataclass
class Words:
    """The share of the claim's words that the document has, at least `least`."""
    least: int = 1
    signature = "words|version:1"
    def judge(self, claims):
        for claim in claims:
            words = claim.claim.split()
            found = sum(word in (claim.doc or "") for word in words)
            yield Verdict(claim.claim_id, score=float(found >= self.least))

def contains(claim, doc):
    return None if doc is None else claim in doc
'''


@dataclass
class Never:
    signature = "never|version:1"

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        for claim in claims:
            yield Verdict(claim.claim_id, prediction=0)


def contains(claim: str, doc: str | None) -> bool | None:
    return None if doc is None else claim in doc


def test_objects_and_functions_judge_beside_named_ones() -> None:
    verdicts = judge(CLAIMS, [Never(), contains, "rouge2"])
    assert verdicts["evaluator"].unique().tolist() == ["Never", "contains", "rouge2"]
    own = verdicts[verdicts["evaluator"] == "contains"]
    assert own["prediction"].fillna(-1).tolist() == [1, 0, -1]
    assert own["status"].tolist() == ["ok", "ok", "skipped"]


def test_the_command_line_takes_a_class_and_a_function_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "my_metric.py").write_text(MODULE, encoding="utf-8")
    write_table(CLAIMS, tmp_path / "claims.jsonl")
    command = [sys.executable, "-c", "from factaudit.cli import main; main()", "judge", "claims.jsonl"]
    for spec in ("my_metric:Words", "my_metric:Words:least=2", "my_metric:contains"):
        command += ["--evaluator", spec]
    done = subprocess.run([*command, "--out", "v.jsonl"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    verdicts = read_verdicts(tmp_path / "v.jsonl")
    by_evaluator = {str(name): part["prediction"].fillna(-1).tolist() for name, part in verdicts.groupby("evaluator")}
    assert by_evaluator == {
        "my_metric:Words": [1, 0, 0],
        "my_metric:Words:least=2": [1, 0, 0],
        "contains": [1, 0, -1],
    }


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("no_such_module:Words", "cannot import 'no_such_module'"),
        ("factaudit.evaluators.lexical:Rouge3", "did you mean 'Rouge2'?"),
        ("factaudit.evaluators.lexical:Rouge2:least=1", "has no option 'least'"),
        ("rogue2", "did you mean 'rouge2'?"),
        (3, "found 3"),
    ],
)
def test_what_is_no_evaluator_is_said(spec: Any, said: str) -> None:
    with pytest.raises(UsageError) as error:
        judge(CLAIMS, [spec])
    assert said in str(error.value)


def test_a_function_that_gives_no_share_is_told_with_its_claim() -> None:
    with pytest.raises(FactauditError, match=r"claim 'a': it gave the score 7\.0"):
        judge(CLAIMS, [lambda claim, doc: 7])


def test_a_changed_function_has_another_signature() -> None:
    def one(claim: str, doc: str | None) -> float:
        return 0.25

    def other(claim: str, doc: str | None) -> float:
        return 0.75

    other.__name__ = "one"
    assert FromFunction(one).signature != FromFunction(other).signature
    assert FromFunction(one).signature == FromFunction(one).signature
    assert FromFunction(one, version="2").signature != FromFunction(one).signature


def test_a_classifier_of_scikit_learn_is_one_line() -> None:
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    model.fit(["rains\nrains", "snow\nrains", "rains\nIt rains", "snow\nIt rains"], [1, 0, 1, 0])
    verdicts = judge(CLAIMS, [FromClassifier(model, version="1")])
    expected = model.predict_proba(["It rains in May.\nIt rains", "Snow fell in June.\nIt rains"])[:, 1]
    assert np.allclose(verdicts["score"][:2], expected)
    assert verdicts["status"].tolist() == ["ok", "ok", "skipped"]


def test_a_pipeline_is_asked_for_its_label() -> None:
    def pipeline(pairs: list[dict[str, str]], top_k: None = None) -> list[list[dict[str, Any]]]:
        shares = [0.8 if "rains" in pair["text"] else 0.1 for pair in pairs]
        return [[{"label": "entailment", "score": s}, {"label": "contradiction", "score": 1 - s}] for s in shares]

    verdicts = judge(CLAIMS, [FromPipeline(pipeline, version="1")])
    assert verdicts["score"][:2].tolist() == [0.8, 0.1]
    with pytest.raises(UsageError, match="no label 'yes'"):
        judge(CLAIMS, [FromPipeline(pipeline, version="1", attributable="yes")])
