"""Evaluators of the user's own, without a package: classes, functions, classifiers, pipelines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from conftest import run_command

from factaudit import (
    Claim,
    FactauditError,
    UsageError,
    Verdict,
    evaluator,
    judge,
    validate_claims,
    write_table,
)
from factaudit.evaluators.base import FromFunction

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
from factaudit import Verdict

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


def test_objects_and_functions_judge_beside_named_ones():
    verdicts = judge(CLAIMS, [Never(), contains, "rouge2"])
    assert verdicts["evaluator"].unique().tolist() == ["Never", "contains", "rouge2"]
    own = verdicts[verdicts["evaluator"] == "contains"]
    assert own["prediction"].fillna(-1).tolist() == [1, 0, -1]
    assert own["status"].tolist() == ["ok", "ok", "skipped"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("no_such_module:Words", "cannot import 'no_such_module'"),
        (
            "factaudit.evaluators.lexical_baselines:Rouge3Evaluator",
            "did you mean 'Rouge2Evaluator'?",
        ),
        ("factaudit.evaluators.lexical_baselines:Rouge2Evaluator:least=1", "has no option 'least'"),
        ("rogue2", "did you mean 'rouge2'?"),
        (3, "found 3"),
    ],
)
def test_what_is_no_evaluator_is_said(spec, said):
    with pytest.raises(UsageError) as error:
        judge(CLAIMS, [spec])
    assert said in str(error.value)


def test_a_function_that_gives_no_share_is_told_with_its_claim():
    with pytest.raises(FactauditError, match=r"claim 'a': it gave the score 7\.0"):
        judge(CLAIMS, [lambda claim, doc: 7])


def test_a_changed_function_has_another_signature():
    def one(claim, doc):
        return 0.25

    def other(claim, doc):
        return 0.75

    other.__name__ = "one"
    assert FromFunction(one).signature != FromFunction(other).signature
    assert FromFunction(one).signature == FromFunction(one).signature


def test_a_named_class_is_listed_and_signed_by_its_fields(tmp_path, monkeypatch):
    @evaluator("longer", method={"counts": "words"})
    @dataclass
    class Longer:
        """Whether the document is longer than the claim."""

        times: float = 1.0

        def judge(self, claims):
            for claim in claims:
                yield Verdict(
                    claim.claim_id,
                    score=float(len(claim.doc or "") > self.times * len(claim.claim)),
                )

    entry = Longer.entry
    assert (entry.name, entry.summary) == (
        "longer",
        "Whether the document is longer than the claim",
    )
    assert Longer(2.0).signature == "longer|counts:words|times:2.0"
    assert judge(CLAIMS, [Longer(2.0)])["prediction"].tolist() == [0, 1, 0]

    @evaluator("holds")
    def contained(claim, doc):
        return claim in (doc or "")

    assert judge(CLAIMS, [contained])["evaluator"].unique().tolist() == ["holds"]


HOSTILE_MODULE = """
from dataclasses import dataclass
from factaudit import Verdict
class NoJudge:
    signature = "x"
class NoSignature:
    def judge(self, claims):
        return ()
class Odd:
    signature = "odd"
    def __init__(self, gives):
        self.gives = gives
    def judge(self, claims):
        for claim in claims:
            yield self.gives(claim) if callable(self.gives) else self.gives
@dataclass
class Broken:
    signature = "broken"
    def judge(self, claims):
        raise KeyError("my own")
        yield
tuples, nobody = Odd(("a", 1.0)), Odd(Verdict(None, score=1.0))
words = Odd(lambda claim: Verdict(claim.claim_id, score="0.7"))
objects = Odd(lambda claim: Verdict(claim.claim_id, score=0.5, raw=object()))
def raises(claim, doc):
    return 1 / 0
def says(claim, doc):
    return "Yes, it does"
def one_argument(claim):
    return 1.0
"""


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("../x:f", "expected MODULE:NAME"),
        ("x y:f", "expected MODULE:NAME"),
        (":f", "expected MODULE:NAME"),
        ("json:", "expected MODULE:NAME"),
        ("json:JSONDecoder.decode", "expected MODULE:NAME"),
        ("math:nope", "'math' has no 'nope'"),
        ("os:getcwd", "'getcwd' failed: TypeError"),
        ("json:loads", "'loads' failed: TypeError"),
        ("math:pi", "found 3.14"),
        ("os:path", "found <module"),
        ("json:JSONDecoder", "the class JSONDecoder has no method judge"),
        ("builtins:int", "the class int has no method judge"),
        ("hostile_module:NoJudge", "the class NoJudge has no method judge"),
        ("hostile_module:NoSignature", "the class NoSignature has no signature"),
        (
            "hostile_module:Broken",
            "'hostile_module:Broken' failed: KeyError: 'my own' (factaudit --debug",
        ),
        ("hostile_module:Odd", "its class is no dataclass"),
        ("hostile_module:tuples", "expected a Verdict with the claim's id, found ('a', 1.0)"),
        ("hostile_module:nobody", "it gave the claim_id None"),
        ("hostile_module:words", "it gave the score '0.7'"),
        ("hostile_module:objects", "it gave the raw <"),
        ("hostile_module:raises", "'raises' failed: ZeroDivisionError: division by zero"),
        (
            "hostile_module:says",
            "claim 'a': expected a score from 0 to 1, True, False, None or a Verdict, found 'Yes",
        ),
        (
            "hostile_module:one_argument",
            "'one_argument' failed: TypeError",
        ),
        ("chunked:evaluator=hostile_module:Broken", "failed: KeyError"),
    ],
)
def test_what_cannot_judge_is_one_sentence(
    spec,
    said,
    tmp_path,
    monkeypatch,
    capsys,
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("hostile_module.py").write_text(HOSTILE_MODULE, encoding="utf-8")
    write_table(CLAIMS, "claims.jsonl")
    assert run_command("judge", "claims.jsonl", "--evaluator", spec, "--out", "v.jsonl") in (1, 2)
    message = capsys.readouterr().err.strip().splitlines()[-1]
    assert said in message
    assert "is a bug" not in message
    assert len(message) < 300, "no list of a foreign module's names"
    assert not Path("v.jsonl").exists()
    sys.modules.pop("hostile_module", None)
