"""The block ``estimate:`` of an experiment YAML, and what the command line says in its stead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from factaudit.audit.core.judged import LEVELS
from factaudit.audit.core.units import Held
from factaudit.errors import UsageError, hint
from factaudit.estimate.methods import DEFAULT_METHODS, METHODS
from factaudit.estimate.rehearse import rehearse
from factaudit.estimate.run import TARGETS, Estimates, estimate_held, estimate_rates
from factaudit.estimate.sample import read_sample
from factaudit.signature import digest, signature
from factaudit.tables.annotations import read_annotations


class EstimateSettings(BaseModel):
    """How error rates are estimated; `factaudit.estimate.run.estimate_rates` says what each means.

    labels: annotation files (without them the labels are the claims' own); sample: the file that they were drawn by;
    budget: where the claims are labelled already, so many of their labels are drawn and the others are not looked at.
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

    def check(self) -> None:
        """Raise `UsageError` for what is known to be wrong before any file is read."""
        if self.budget is not None and (self.labels or self.sample):
            raise UsageError("expected labels (and the sample that they were drawn by), or a budget, not both")
        for what, given, known in (
            ("method", self.methods, METHODS),
            ("level", self.levels, LEVELS),
            ("target", [self.target], TARGETS),
        ):
            for name in given:
                if name not in known:
                    raise UsageError(f"unknown {what} {name!r}{hint(name, list(known))}")

    def files(self) -> Sequence[str]:
        """The files that it names."""
        return [*self.labels, *([self.sample] if self.sample else [])]

    def signature(self, files: Sequence[Mapping[str, str]]) -> str:
        """A hash of how rates are estimated; ``files``: the checksums of `files`, which stand for their paths."""
        settings = signature("estimate", self.model_dump(exclude={"labels", "sample"}))
        return digest(settings, *(one["checksum"] for one in files))

    def estimate(self, claims: pd.DataFrame, verdicts: pd.DataFrame, seed: int, confidence: float) -> Estimates:
        """Read the files and estimate."""
        annotations = read_annotations(*self.labels, claims=claims) if self.labels else None
        sample = read_sample(self.sample) if self.sample else None
        if self.budget is not None:
            annotations, sample = rehearse(
                claims, verdicts, self.budget, main=self.main, covariates=self.covariates, seed=seed
            )
        return estimate_rates(
            claims,
            verdicts,
            annotations=annotations,
            sample=sample,
            seed=seed,
            confidence=confidence,
            **self.model_dump(exclude={"labels", "sample", "budget"}),
        )

    def estimate_held(self, held: Held, seed: int, confidence: float) -> Estimates:
        """The same of claims that are not in memory."""
        annotations = read_annotations(*self.labels) if self.labels else None
        return estimate_held(
            held,
            annotations=annotations,
            seed=seed,
            confidence=confidence,
            **self.model_dump(exclude={"labels", "sample", "budget"}),
        )
