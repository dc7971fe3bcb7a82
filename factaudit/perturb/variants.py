"""How do rules make variants of claims? Each rule is applied where it surely fits, and a variant is
one more row of the claims table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, field_validator

from factaudit.errors import UsageError
from factaudit.perturb.claim_text import PerturbationRule
from factaudit.perturb.rule_list import choose_perturbation_rules
from factaudit.signature import hash_texts
from factaudit.tables.schema import VARIANT_COLUMNS, is_text_placeholder
from factaudit.tables.validation import validate_claims


class ClaimVariantSettings(BaseModel):
    """The variants of an experiment's claims, as `add_claim_variants` takes them."""

    model_config = ConfigDict(extra="forbid")

    kinds: list[str] = Field(default_factory=list)
    per_kind: int | None = Field(default=None, ge=1)

    @field_validator("kinds")
    @classmethod
    def _check_kinds(cls, kinds: list[str]) -> list[str]:
        try:
            choose_perturbation_rules(kinds)
        except UsageError as error:
            raise ValueError(str(error)) from None
        return kinds


def add_claim_variants(
    claims: pd.DataFrame, kinds: Sequence[str] = (), per_kind: int | None = None, seed: int = 0
) -> pd.DataFrame:
    """The claims with their variants: at most one variant of each kind for a claim, and at most
    ``per_kind`` of each kind in a data set.

    A variant has the columns of its claim, an id of its own and no label. `VARIANT_COLUMNS` say
    whose variant it is; they are null for claims. The variants of a claim stand behind it. What is
    drawn depends on the seed, the kind and the claim alone: other kinds, or other claims, change
    nothing.

    Raises `UsageError` for an unknown kind, for claims that have variants already, and if no rule
    can change any of the claims.
    """
    rules = choose_perturbation_rules(kinds)
    if set(VARIANT_COLUMNS) & set(claims.columns):
        taken = ", ".join(column for column in VARIANT_COLUMNS if column in claims)
        raise UsageError(
            f"perturb: the claims have a column {taken} already; expected claims without variants,"
            " such as the file that perturb was given before"
        )
    rows: list[dict[str, Any]] = []
    plain: list[Any] = claims.to_dict("records")
    for rule in rules:
        rows += _make_variants_of_kind(plain, rule, per_kind, seed)
    if not rows:
        raise UsageError(
            "perturb: no rule can change any of these claims; rules change plain sentences in"
            " English (a number, a year, a spelling, a negation), and their documents"
        )
    table = validate_claims(pd.DataFrame([*plain, *rows]))
    owner = table["variant_of"].fillna(table["claim_id"])
    places = dict(zip(claims["claim_id"], range(len(claims)), strict=True))
    order = np.argsort(owner.map(places), kind="stable")
    return table.iloc[order].reset_index(drop=True)


def select_claims_with_variants(claims: pd.DataFrame) -> pd.DataFrame:
    """The variants of `add_claim_variants` and the claims that they were made of."""
    used = set(claims["variant_of"].dropna())
    return claims[claims["variant_of"].notna() | claims["claim_id"].isin(used)].reset_index(
        drop=True
    )


def _make_variants_of_kind(
    claims: Sequence[dict[str, Any]], rule: PerturbationRule, per_kind: int | None, seed: int
) -> list[dict[str, Any]]:
    """Variants of one kind, of the claims that chance puts first in each data set."""
    counts: Counter[str] = Counter()
    found = []
    for claim in sorted(claims, key=lambda one: hash_texts(str(seed), rule.kind, one["claim_id"])):
        text, document, dataset = claim["claim"], claim["doc"], claim["dataset"]
        has_texts = isinstance(text, str) and isinstance(document, str)
        if not has_texts or is_text_placeholder(text) or counts[dataset] == per_kind:
            continue
        random = Random(f"{seed}|{rule.kind}|{claim['claim_id']}")
        edits = dict.fromkeys(rule.list_edits(text, document, random))
        edits.pop(claim[rule.changes], None)
        if edits:
            counts[dataset] += 1
            variant = {
                "claim_id": f"{claim['claim_id']}~{rule.kind}",
                rule.changes: random.choice(list(edits)),
                "variant_of": claim["claim_id"],
                "kind": rule.kind,
                "expected": rule.expected,
                "label": None,
            }
            found.append(claim | variant)
    return found
