"""Claims and verdicts joined once, with what else audits and their results need of the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from factaudit.audit.core.judged import Judged
from factaudit.errors import UsageError
from factaudit.intake.load import frames
from factaudit.signature import digest
from factaudit.tables.annotations import judgements, relabelled
from factaudit.tables.digest import table_digest


@dataclass(frozen=True)
class Joined:
    """All that `compare` needs of claims and verdicts: whoever has this can let go of the verdicts.

    tables: a digest of what was joined; order: the evaluators in the order of their verdicts.
    """

    judged: Judged
    tables: str
    order: Sequence[str]

    @classmethod
    def of(
        cls,
        claims: Any,
        verdicts: Any,
        annotations: pd.DataFrame | None = None,
        label_rules: Sequence[str] = (),
        mapping: Any = None,
    ) -> Joined:
        """The arguments are those of `compare`."""
        loaded = frames(claims, verdicts, mapping)
        if loaded.claims is None or loaded.verdicts is None:
            missing = "claims" if loaded.claims is None else "verdicts"
            raise UsageError(f"compare: there are no {missing} in what was given")
        claims, verdicts = loaded.claims, loaded.verdicts
        annotations = loaded.annotations if annotations is None else annotations
        if label_rules and annotations is None:
            raise UsageError("label_rules: there are no annotations that they could be made of")
        said = None if annotations is None else judgements(annotations)
        if said is not None and label_rules:
            claims = relabelled(claims, said, label_rules[0])
        judged = replace(Judged.join(claims, verdicts, said), label_rules=tuple(label_rules))
        read = [claims, verdicts] if said is None else [claims, verdicts, said]
        return cls(judged, digest(*map(table_digest, read), *label_rules), list(verdicts["evaluator"].unique()))
