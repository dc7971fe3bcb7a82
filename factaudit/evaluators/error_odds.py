"""The probability that a claim is an error, by the scores of several evaluators: what learned rules keep in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy

from factaudit.errors import InputError, Problem, UsageError
from factaudit.evaluators.base import Claim, Evaluator, Verdict
from factaudit.evaluators.judging import NamedEvaluator, make_named_evaluator
from factaudit.files import parse_json_file_text
from factaudit.signature import compute_file_checksum, make_signature
from factaudit.stats.score_combination import ScoreStandardiser, fit_error_odds
from factaudit.yaml_paths import YamlPathKind


@dataclass(frozen=True)
class ErrorOdds:
    """Log odds of an error: ``intercept`` and a slope on each evaluator's risk, the standardised logit of 1 − score.

    slopes: by evaluator, none below 0; mean, spread: by evaluator, those of its risks; the spread is None of one that
    does not vary, which says nothing.
    """

    intercept: float
    slopes: dict[str, float]
    mean: dict[str, float]
    spread: dict[str, float | None]

    @classmethod
    def fit(cls, evaluators: Sequence[str], score: np.ndarray, error: np.ndarray) -> ErrorOdds:
        """score: float64 (E, n), support, NaN where missing; error: (n,), from 0 to 1. A claim that an evaluator did
        not score has its mean risk.
        """
        scale = ScoreStandardiser.from_scores(score)
        intercept, slopes = fit_error_odds(np.nan_to_num(scale.standardise(score)), error)
        spread = [one if np.isfinite(one) else None for one in scale.spread.tolist()]
        columns = (slopes.tolist(), scale.mean.tolist(), spread)
        return cls(intercept, *(dict(zip(evaluators, column, strict=True)) for column in columns))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ErrorOdds:
        """Raises `ValueError`, `TypeError` or `KeyError` where the data are of another form."""
        odds = cls(**data)
        if not odds.slopes or not set(odds.slopes) == set(odds.mean) == set(odds.spread):
            raise ValueError("expected a slope, a mean and a spread of each evaluator")
        for number in (odds.intercept, *odds.slopes.values(), *odds.mean.values()):
            if not np.isfinite(number):
                raise ValueError("expected finite numbers")
        return odds

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def compute_error_probabilities(self, score: np.ndarray) -> np.ndarray:
        """float64 (n,) of scores (E, n) in the order of ``slopes``; one that is missing counts as the mean."""
        names = list(self.slopes)
        spread = [np.inf if self.spread[name] is None else self.spread[name] for name in names]
        scale = ScoreStandardiser(np.array([self.mean[name] for name in names]), np.array(spread, dtype=np.float64))
        slopes = np.array(list(self.slopes.values()))
        odds = self.intercept + slopes @ np.nan_to_num(scale.standardise(score))
        probabilities: np.ndarray = scipy.special.expit(odds)
        return probabilities


def read_evaluator_rule_json(path: str | Path, schema: str, written_by: str) -> dict[str, Any]:
    """The JSON of a rule's file, without its schema. Raises `InputError` where it is of another schema."""
    try:
        data = parse_json_file_text(Path(path).read_bytes())
        if data.pop("schema") != schema:
            raise ValueError
    except FileNotFoundError:
        raise InputError(str(path), [Problem("no such file")]) from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise make_rule_file_error(path, written_by) from None
    rule_data: dict[str, Any] = data
    return rule_data


def make_rule_file_error(path: str | Path, written_by: str) -> InputError:
    message = f"no rule of this version of factaudit: expected the file that `factaudit {written_by}` wrote"
    return InputError(str(path), [Problem(message)])


#: Evaluators as options name them: specs joined by ``+``, or a YAML's list.
EvaluatorSpecs = str | list[str | dict[str, dict[str, Any] | None]]


def make_evaluators_of_rule(
    kind: str, rule_path: Path, names: Sequence[str], specs: EvaluatorSpecs | None
) -> list[NamedEvaluator]:
    """The evaluators of a rule in its order, of specs, or by its names. Raises `UsageError` where they are others."""
    given = list(names) if specs is None else specs.split("+") if isinstance(specs, str) else specs
    by_name = {one.name: one for one in map(make_named_evaluator, given)}
    if set(by_name) != set(names):
        wanted, found = (" and ".join(each) for each in (names, by_name))
        raise UsageError(f"evaluator {kind!r}: the rule {rule_path} is of {wanted}, found evaluators {found}")
    return [by_name[name] for name in names]


@dataclass
class RuleEvaluator:
    """What evaluators share that judge by a rule in a file.

    rule: the file. evaluators: specs of the rule's evaluators, by default their names; on the command line joined by
    ``+``, after the other options.
    """

    rule: Path
    evaluators: Annotated[EvaluatorSpecs | None, YamlPathKind.EVALUATORS] = None

    #: The evaluator's name in signatures and messages.
    _kind: ClassVar[str]

    def _make_members(self, names: Sequence[str]) -> None:
        self._members = make_evaluators_of_rule(self._kind, self.rule, names, self.evaluators)

    @property
    def members(self) -> list[Evaluator]:
        """The evaluators inside, for the runner's budget and bookkeeping."""
        return [one.evaluator for one in self._members]

    @property
    def promise_caveat(self) -> str | None:
        """What a rule does not promise, where it promises something of the claims alone that certified it."""
        promise = getattr(getattr(self, "_rule", None), "promise", {})
        if promise.get("target") != "corpus":
            return None
        return (
            "its rule promises nothing of claims other than those that certified it (triage --target population does)"
        )

    @property
    def _signed_settings(self) -> dict[str, Any]:
        return {"rule": compute_file_checksum(self.rule), "evaluators": [one.signature for one in self._members]}

    @cached_property
    def signature(self) -> str:
        """The rule's content and the members' signatures are among the settings."""
        return make_signature(self._kind, self._signed_settings)


def collect_member_support(members: Sequence[NamedEvaluator], block: Sequence[Claim]) -> np.ndarray:
    """float64 (E, n): each member's score of each claim, its prediction where there is none, NaN without either."""
    found = [{one.claim_id: one for one in member.evaluator.judge(block)} for member in members]
    return np.array([[read_verdict_support(by_claim.get(claim.claim_id)) for claim in block] for by_claim in found])


def read_verdict_support(verdict: Verdict | None) -> float:
    """The score, the prediction where there is none, NaN where there is neither."""
    if verdict is None:
        return np.nan
    value = verdict.prediction if verdict.score is None else verdict.score
    return np.nan if value is None else float(value)
