"""Which settings does an estimate have? The block ``estimate:`` of an experiment YAML, or the
command's options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from factaudit.estimate.rates import EstimationResults, estimate_rates
from factaudit.estimate.sample import read_sample
from factaudit.signature import hash_texts, make_signature
from factaudit.tables.annotations import read_annotations


class EstimateSettings(BaseModel):
    """How error rates are estimated; `factaudit.estimate.rates.estimate_rates` says what each
    means.

    labels: annotation files (without them the labels are the claims' own); sample: the file that
    they were drawn by.
    """

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    labels: list[str] = Field(default_factory=list)
    sample: str | None = None
    rule: str = "majority"
    grades: dict[str, int | None] | None = None
    main: str | None = None
    methods: list[Literal["hierarchical", "regression-ppi", "labels", "raw"]] = [
        "hierarchical",
        "regression-ppi",
        "labels",
        "raw",
    ]
    levels: list[Literal["claim", "response"]] = ["claim", "response"]
    strata: list[str] = ["task"]

    def files(self) -> Sequence[str]:
        """The files that it names."""
        return [*self.labels, *([self.sample] if self.sample else [])]

    def signature(self, file_checksums: Sequence[Mapping[str, str]]) -> str:
        """A hash of how rates are estimated; ``file_checksums`` stand for the paths of `files`."""
        settings = make_signature("estimate", self.model_dump(exclude={"labels", "sample"}))
        return hash_texts(settings, *(one["checksum"] for one in file_checksums))

    def estimate(
        self, claims: pd.DataFrame, verdicts: pd.DataFrame, seed: int, confidence: float
    ) -> EstimationResults:
        """Read the files and estimate."""
        return estimate_rates(
            claims,
            verdicts,
            annotations=read_annotations(*self.labels, claims=claims) if self.labels else None,
            sample=read_sample(self.sample) if self.sample else None,
            seed=seed,
            confidence=confidence,
            **self.model_dump(exclude={"labels", "sample"}),
        )
