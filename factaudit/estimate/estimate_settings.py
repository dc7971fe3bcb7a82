"""The settings of an estimate: the block ``estimate:`` of an experiment YAML, or the options of the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from factaudit.arrays.estimation_units import EstimationUnitsInDatabase
from factaudit.arrays.judgements import LEVELS
from factaudit.audit.core.result_rows import Row
from factaudit.errors import UsageError
from factaudit.estimate.budget_rehearsal import rehearse_label_budget, rehearse_sampling_designs_by_dataset
from factaudit.estimate.estimation_methods import DEFAULT_METHODS
from factaudit.estimate.label_sample import read_sample
from factaudit.estimate.rate_estimation import (
    EstimationResults,
    check_estimation_names,
    estimate_rates,
    estimate_rates_past_memory,
)
from factaudit.estimate.sequential_estimation import STOP_WIDTH, estimate_rates_at_every_look
from factaudit.signature import hash_texts, make_signature
from factaudit.tables.annotations import read_annotations

#: Settings that are no arguments of `estimate_rates`.
_NO_ARGUMENTS = {"labels", "sample", "budget", "sequential", "stop_width"}


class EstimateSettings(BaseModel):
    """How error rates are estimated; `factaudit.estimate.rate_estimation.estimate_rates` says what each means.

    labels: annotation files (without them the labels are the claims' own); sample: the file that they were drawn by;
    budget: where the claims are labelled already, so many of their labels are drawn, and no other label is read;
    sequential: also intervals that hold at every look at the sample's phases, until none is wider than ``stop_width``.
    """

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    labels: list[str] = Field(default_factory=list)
    sample: str | None = None
    budget: int | None = Field(default=None, ge=1)
    rule: str = "majority"
    grades: dict[str, int | None] | None = None
    main: str | None = None
    covariates: list[str] | None = None
    methods: list[str] = list(DEFAULT_METHODS)
    levels: list[str] = list(LEVELS)
    strata: list[str] = ["task"]
    target: str = "corpus"
    transfer: bool = False
    undecided: str = "keep"
    sequential: bool = False
    stop_width: float = Field(default=STOP_WIDTH, gt=0, le=1)

    def check(self) -> None:
        """Raise `UsageError` for what is known to be wrong before any file is read."""
        if self.budget is not None and (self.labels or self.sample):
            raise UsageError("expected labels (and the sample that they were drawn by), or a budget, not both")
        check_estimation_names(self.methods, self.levels, self.target, self.undecided)
        if self.sequential and self.sample is None and self.budget is None:
            raise UsageError("sequential: expected a sample, whose phases are the looks (`factaudit sample` draws one)")
        if self.sequential and self.undecided != "keep":
            raise UsageError("sequential: undecided claims count as either in intervals for every look: expected keep")
        if self.sequential and self.target != "corpus":
            raise UsageError("sequential: intervals for every look are of these claims: expected the target corpus")

    def files(self) -> Sequence[str]:
        """The files that it names."""
        return [*self.labels, *([self.sample] if self.sample else [])]

    def signature(self, file_checksums: Sequence[Mapping[str, str]]) -> str:
        """A hash of how rates are estimated; ``file_checksums`` stand for the paths of `files`."""
        settings = make_signature("estimate", self.model_dump(exclude={"labels", "sample", *self._looks_left_out()}))
        return hash_texts(settings, *(one["checksum"] for one in file_checksums))

    def estimate(self, claims: pd.DataFrame, verdicts: pd.DataFrame, seed: int, confidence: float) -> EstimationResults:
        """Read the files and estimate. Raises `UsageError` as `check` does."""
        self.check()
        annotations = read_annotations(*self.labels, claims=claims) if self.labels else None
        sample = read_sample(self.sample) if self.sample else None
        if self.budget is not None:
            annotations, sample = rehearse_label_budget(
                claims, verdicts, self.budget, main=self.main, covariates=self.covariates, seed=seed
            )
        found = estimate_rates(
            claims,
            verdicts,
            annotations=annotations,
            sample=sample,
            seed=seed,
            confidence=confidence,
            **self.model_dump(exclude=_NO_ARGUMENTS),
        )
        more: dict[str, list[Row]] = {}
        if self.budget is not None:
            more["estimate_rehearsal"] = rehearse_sampling_designs_by_dataset(
                claims,
                verdicts,
                self.budget,
                main=self.main,
                covariates=self.covariates,
                seed=seed,
                confidence=confidence,
            )
        if not self.sequential or sample is None:
            return replace(found, more=more)
        looks = estimate_rates_at_every_look(
            claims,
            verdicts,
            sample,
            annotations=annotations,
            seed=seed,
            confidence=confidence,
            **self.model_dump(exclude=_NO_ARGUMENTS - {"stop_width"} | {"methods", "target", "transfer", "undecided"}),
        )
        return replace(found, more=more | looks)

    def estimate_past_memory(
        self, stored_claims: EstimationUnitsInDatabase, seed: int, confidence: float
    ) -> EstimationResults:
        """The same of claims that are not in memory."""
        if self.sequential:
            raise UsageError("sequential: intervals for every look need the claims in memory")
        annotations = read_annotations(*self.labels) if self.labels else None
        return estimate_rates_past_memory(
            stored_claims,
            annotations=annotations,
            seed=seed,
            confidence=confidence,
            **self.model_dump(exclude=_NO_ARGUMENTS),
        )

    def _looks_left_out(self) -> set[str]:
        """Settings that do not matter: signatures of estimates without looks stay as they were."""
        return set() if self.sequential else {"sequential", "stop_width"}
