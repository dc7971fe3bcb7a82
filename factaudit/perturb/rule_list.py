"""Which rules are there? By the kind of variant that each makes, in the order of reports."""

from __future__ import annotations

from collections.abc import Sequence

from factaudit.errors import UsageError, suggest_known_name
from factaudit.perturb import changed_rules, same_rules
from factaudit.perturb.claim_text import PerturbationRule

PERTURBATION_RULES: dict[str, PerturbationRule] = {
    rule.kind: rule for rule in (*same_rules.RULES, *changed_rules.RULES)
}


def choose_perturbation_rules(kinds: Sequence[str]) -> list[PerturbationRule]:
    """The rules of some kinds; ``same`` and ``changed`` are all of theirs, and nothing is all.

    Raises `UsageError` for an unknown kind.
    """
    known = list(PERTURBATION_RULES)
    for kind in kinds:
        if kind not in (*known, "same", "changed"):
            raise UsageError(
                f"unknown kind {kind!r}{suggest_known_name(kind, ['same', 'changed', *known])}"
            )
    return [
        rule
        for rule in PERTURBATION_RULES.values()
        if not kinds or {rule.kind, rule.expected} & set(kinds)
    ]
