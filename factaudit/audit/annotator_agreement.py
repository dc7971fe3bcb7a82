"""How far do annotators of biographies agree? A machine cannot be asked to agree with them more (MF App. B)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.result_rows import Row
from factaudit.audit.dfactscore_people import compute_human_dfactscores
from factaudit.stats.agreement import krippendorff_alpha
from factaudit.stats.undefined_values import none_if_undefined

AnnotatedUnits = dict[Hashable, dict[str, Hashable]]
_JUDGEMENT_KINDS = ("fact label", "number of biographies", "entity")


def compute_biography_annotator_agreement(annotations: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Agreement on labels of facts, numbers of biographies, and entities of biographies: of all systems, and of each.

    annotations: as `factaudit.datasets.biography_annotations.BiographyFactAnnotation` says. Over what at least two of
    them
    judged: n_units, n_annotators, ``percent`` (the share of pairs of judgements that agree), Cohen's ``kappa`` (two
    annotators only) and Krippendorff's ``alpha`` (nominal; any number).
    """
    systems = list(dict.fromkeys(one["system"] for one in annotations))
    rows = []
    for system in [ALL_TOGETHER, *systems] if len(systems) > 1 else systems:
        own = [one for one in annotations if system in (ALL_TOGETHER, one["system"])]
        for judgement, units in zip(_JUDGEMENT_KINDS, _group_biography_labels_by_annotator(own), strict=True):
            rows.append(
                {
                    "system": system,
                    "judgement": judgement,
                    **_compute_annotator_agreement_on_units(list(units.values())),
                }
            )
    return rows


def _group_biography_labels_by_annotator(
    annotations: Sequence[Mapping[str, Any]],
) -> tuple[AnnotatedUnits, AnnotatedUnits, AnnotatedUnits]:
    """What each annotator said of each fact, response and biography, in the order of `_JUDGEMENT_KINDS`."""
    facts: AnnotatedUnits = {}
    numbers: AnnotatedUnits = {}
    entities: AnnotatedUnits = {}
    repeated: Counter[Any] = Counter()
    for one in annotations:
        name, response = one["annotator"], (one["system"], one["response_id"])
        # The same words may be a fact twice: told apart by their order.
        repeated[response, one["fact"], name] += 1
        unit = (*response, one["fact"], repeated[response, one["fact"], name])
        facts.setdefault(unit, {})[name] = one["label"]
        if one["entity"] is not None:
            entities.setdefault((*response, one["biography"]), {})[name] = one["entity"]
    for row in compute_human_dfactscores(annotations):
        numbers.setdefault((row["system"], row["response_id"]), {})[row["annotator"]] = row["n_biographies"]
    return facts, numbers, entities


def _compute_annotator_agreement_on_units(units: Sequence[Mapping[str, Hashable]]) -> Row:
    shared_units = [unit for unit in units if len(unit) > 1]
    pairs = [(one, other) for unit in shared_units for one, other in combinations(unit.values(), 2)]
    annotators = sorted({name for unit in shared_units for name in unit})
    values = np.array([str(value) for unit in shared_units for value in unit.values()])
    numbers = np.repeat(np.arange(len(shared_units)), [len(unit) for unit in shared_units])
    row: Row = {
        "n_units": len(shared_units),
        "n_annotators": len(annotators),
        "percent": sum(one == other for one, other in pairs) / len(pairs) if pairs else None,
        "kappa": None,
        "alpha": none_if_undefined(krippendorff_alpha(values, numbers, len(shared_units)).point),
        "reason": None,
    }
    if not pairs:
        return row | {"reason": "nothing was judged by two annotators"}
    if len(annotators) != 2:
        return row | {"reason": "Cohen's κ is for two annotators"}
    first, second = ([str(unit[name]) for unit in shared_units] for name in annotators)
    if len({*first, *second}) < 2:
        return row | {"reason": "only one value was given: κ and α are undefined"}
    from sklearn.metrics import cohen_kappa_score

    return row | {"kappa": float(cohen_kappa_score(first, second))}


AUDIT = Audit(
    name="annotator_agreement",
    after="factscore_agreement",
    title="How far annotators agree",
    question="How well do annotators agree on facts, on numbers of biographies, and on whom these are about?",
    source="MF §4.2, App. B",
    text="Annotators' agreement is the most that computed scores can reach.",
    formula=(
        "Percent: share of pairs of judgements that agree; κ is Cohen's (two annotators), α is Krippendorff's "
        "(nominal)."
    ),
    columns={
        **pick_shared_columns("system"),
        "judgement": Column("judgement", "text", "what was judged", key=True),
        "n_units": Column("judged twice", "count", "units judged by at least two annotators"),
        "n_annotators": Column("annotators", "count", "number of annotators"),
        "percent": Column("agree", "percent", "share of pairs of judgements that agree"),
        "kappa": Column("Cohen's κ", "number", "Cohen's κ of two annotators", digits=2),
        "alpha": Column("Krippendorff's α", "number", "Krippendorff's α of any number of annotators", digits=2),
        **pick_shared_columns("reason"),
    },
    compute=None,
)
