"""The rules by the kind of their pairs, in the order of docs and reports."""

from __future__ import annotations

from collections.abc import Sequence

from factaudit.errors import UsageError, suggest_known_name
from factaudit.perturb import date_rules, document_rules, meaning_rules, number_rules, wording_rules
from factaudit.perturb.rule_declaration import PerturbationRule

_FILES = (number_rules, date_rules, wording_rules, document_rules, meaning_rules)
PERTURBATION_RULES: dict[str, PerturbationRule] = {
    rule.kind: rule
    for expected in ("same", "changed")
    for file in _FILES
    for rule in file.RULES
    if rule.expected == expected
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
