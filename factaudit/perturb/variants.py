"""Variants of claims: each rule applied where it surely fits, as rows of a claims table."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, field_validator

from factaudit.errors import UsageError
from factaudit.perturb.rule_declaration import PerturbationRule
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
    """The claims with their variants: at most one of each kind, and ``per_kind`` of them in each data set.

    A variant has the columns of its claim, an id of its own, no label, and `VARIANT_COLUMNS`, which are null on claims.
    The variants of a claim stand behind it, those with another document behind all that share one. What is drawn
    follows from the seed, the kind and the claim alone: another kind, or another claim, changes nothing. Raises
    `UsageError` for an unknown kind, for claims that have variants already, and where there is no variant.
    """
    rules = choose_perturbation_rules(kinds)
    if set(VARIANT_COLUMNS) & set(claims.columns):
        taken = ", ".join(column for column in VARIANT_COLUMNS if column in claims)
        raise UsageError(
            f"perturb: the claims have a column {taken} already; expected claims without variants, such as the "
            "file that perturb was given before"
        )
    rows: list[dict[str, Any]] = []
    plain: list[dict[str, Any]] = [{str(key): value for key, value in row.items()} for row in claims.to_dict("records")]
    for rule in rules:
        rows += _make_variants_of_kind(plain, rule, per_kind, seed)
    if not rows:
        raise UsageError(
            "perturb: no rule can change any of these claims; rules change English text with numbers, dates, "
            "negations or comparisons"
        )
    places = {claim["claim_id"]: at for at, claim in enumerate(plain)}
    first_of_document: dict[Any, int] = {}
    for at, claim in enumerate(plain):
        first_of_document.setdefault(claim["doc"], at)
    order = [
        *((first_of_document[claim["doc"]], 0, at, 0) for at, claim in enumerate(plain)),
        *(
            (
                first_of_document[plain[places[row["variant_of"]]]["doc"]],
                int(row["doc"] not in first_of_document),
                places[row["variant_of"]],
                1 + at,
            )
            for at, row in enumerate(rows)
        ),
    ]
    table = validate_claims(pd.DataFrame([*plain, *rows]))
    return table.iloc[sorted(range(len(order)), key=order.__getitem__)].reset_index(drop=True)


def select_claims_with_variants(claims: pd.DataFrame) -> pd.DataFrame:
    """The variants of `add_claim_variants` and the claims that they were made of."""
    used = set(claims["variant_of"].dropna())
    return claims[claims["variant_of"].notna() | claims["claim_id"].isin(used)].reset_index(drop=True)


def _make_variants_of_kind(
    claims: Sequence[dict[str, Any]], rule: PerturbationRule, per_kind: int | None, seed: int
) -> list[dict[str, Any]]:
    """Variants of one kind, of the claims that chance puts first in each data set."""
    drawn = sorted(claims, key=lambda claim: hash_texts(str(seed), rule.kind, claim["claim_id"]))
    counts: dict[str, int] = {}
    found = []
    for claim in drawn:
        dataset = claim["dataset"]
        if per_kind is not None and counts.get(dataset, 0) >= per_kind:
            continue
        text = _pick_perturbed_claim_text(claim, rule, seed)
        if text is not None:
            counts[dataset] = counts.get(dataset, 0) + 1
            variant = {"claim_id": f"{claim['claim_id']}~{rule.kind}", rule.changes: text, "label": None}
            variant |= {"variant_of": claim["claim_id"], "kind": rule.kind, "expected": rule.expected}
            found.append(claim | variant)
    return found


def _pick_perturbed_claim_text(claim: dict[str, Any], rule: PerturbationRule, seed: int) -> str | None:
    """One of the texts that the rule can make of a claim; None where it does not fit."""
    text, document = claim["claim"], claim["doc"]
    if not isinstance(text, str) or not isinstance(document, str) or is_text_placeholder(text):
        return None
    random = Random(f"{seed}|{rule.kind}|{claim['claim_id']}")
    old = text if rule.changes == "claim" else document
    edits = [one for one in dict.fromkeys(rule.list_edits(text, document, random)) if one != old]
    return random.choice(edits) if edits else None
