"""What are the scores if one setting of the pipeline is changed?

Each variant is the whole pipeline with one setting replaced. All variants share the cache of
replies and the journals of the run, so that what two of them have in common is asked once. The
tables of all variants are joined for the audit `sensitivity`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ValidationError

from factaudit.engines.passages import VerifiedFacts
from factaudit.errors import UsageError, suggest_known_name
from factaudit.settings.yaml_paths import YamlPathKind, find_yaml_path_options
from factaudit.tables import validate_claims, validate_verdicts

#: What may be varied: the steps of the pipeline, not what is scored.
VARIED_SETTINGS = (
    *("decomposer", "demos", "decontextualize", "abstain"),
    *("knowledge", "retrieval", "k"),
    *("llm", "verifier", "verifiers", "parser", "gamma"),
)
#: The score's name among the evaluators of the tables of variants: what is varied is the whole
#: pipeline.
METRIC_NAME = "FActScore"


def list_score_variants(block: Any) -> dict[str, Any]:
    """The variants that a block of settings names, without those that are as the base is: by its
    name ("k=1") the settings of the whole pipeline with one setting another.

    Raises `UsageError` for settings that cannot be varied, values that they do not take, and two of
    one name.
    """
    varied, kinds = getattr(block, "variants", {}), find_yaml_path_options(type(block))
    found: dict[str, Any] = {}
    for key, values in varied.items():
        if key not in VARIED_SETTINGS:
            known = suggest_known_name(key, VARIED_SETTINGS)
            raise UsageError(f"variants: {key!r} cannot be varied{known}")
        field = "verifiers" if key == "verifier" else key
        for value in values:
            try:
                one = type(block).model_validate({"responses": block.responses, field: value})
            except ValidationError as error:
                message = error.errors()[0]["msg"]
                raise UsageError(f"variants: {key}: {message}, found {value!r}") from None
            chosen = getattr(one, field)
            if chosen == getattr(block, field):
                continue
            is_path = kinds.get(key) is YamlPathKind.PATH
            name = f"{key}={Path(value).name if is_path else _name_value(value)}"
            if name in found:
                raise UsageError(f"variants: two are called {name!r}")
            other = {field: chosen, "variants": {}, "citation_judge": None}
            found[name] = block.model_copy(update=other)
    if varied and not found:
        raise UsageError("variants: all values are those of the base")
    return found


def _name_value(value: Any) -> str:
    """A value in the name of its variant; of a model its name, of an evaluator its name without
    options."""
    if isinstance(value, list):
        return "+".join(map(_name_value, value))
    if isinstance(value, dict):
        return str(value.get("model") or next(iter(value)))
    return str(getattr(value, "model", value))


def stack_variants(
    verifiers: Mapping[str, str], scored: Mapping[str, VerifiedFacts]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All facts by variant, and what each variant's own verifier, whose name ``verifiers`` has,
    says of them."""
    claims, verdicts = [], []
    for name, facts in scored.items():
        ids = {key: facts.claims[key] + f"@{name}" for key in ("claim_id", "fact_id")}
        claims.append(facts.claims.assign(**ids, doc=None, variant=name))
        mine = facts.verdicts[facts.verdicts["evaluator"] == verifiers[name]]
        told = mine.assign(claim_id=mine["claim_id"] + f"@{name}", evaluator=METRIC_NAME)
        verdicts.append(told)
    return (
        validate_claims(pd.concat(claims, ignore_index=True)),
        validate_verdicts(pd.concat(verdicts, ignore_index=True)),
    )
