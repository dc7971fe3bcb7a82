"""What a rule that changes one thing of a claim says of itself; `factaudit.perturb.rule_list` has
them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Literal

#: Every way in which a rule can change a text: from the claim, its document and a source of chance.
ListEdits = Callable[[str, str, Random], Iterable[str]]


@dataclass(frozen=True)
class PerturbationRule:
    """A rule that makes a variant of a claim.

    ``expected``: what the verdict should do: stay the ``same``, or be ``changed`` to unattributable
    where the claim is attributable. ``list_edits`` gives every text that the rule surely can make,
    none where it does not surely fit.
    ``example``: a text before and after; ``document``: the document that the example needs.
    """

    kind: str
    expected: Literal["same", "changed"]
    says: str
    example: tuple[str, str]
    list_edits: ListEdits
    #: What is changed: the claim, or its document.
    changes: Literal["claim", "doc"] = "claim"
    document: str = ""
