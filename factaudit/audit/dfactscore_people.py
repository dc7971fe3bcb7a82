"""Do people and the machine give the same FActScore and D-FActScore? (MF §4.2, §4.3, §5.2)

An annotation is a mapping with system, response_id, annotator, fact, biography, entity, label and
page, as described by `factaudit.datasets.biography_annotations.BiographyFactAnnotation`. The
D-FActScore engine writes the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factaudit.arrays.response_means import (
    TOO_FEW_RESPONSES,
    average_changes,
    mean_of_defined,
    split_by_system,
)
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.interval_methods import RESPONSE_CHANGE, RESPONSE_INFLUENCE
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.tabulate import explain_row
from factaudit.stats.agreement import correlation_interval, pearson
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.undefined_values import name_ends, none_if_undefined

#: For each figure, its key in the machine's rows.
MACHINE_KEYS = {
    "factscore": "init_factscore",
    "dfactscore": "init_dfactscore",
    "n_biographies": "n_biographies",
    "n_entities": "n_entities",
}
_RESPONSE = ["system", "response_id"]


def compute_human_dfactscores(annotations: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """FActScore and D-FActScore by people: a row per response and annotator.

    ``dfactscore``: the share of facts that the page of the person whom their biography is about
    supports (S, with that page or none). ``factscore``: the share that some page supports: an S,
    and an NS that was found on somebody else's page. Irrelevant facts are left out of both. The row
    also has n_biographies and n_entities (the distinct pages on which facts were found). A score
    without a fact is NaN.
    """
    columns = [*_RESPONSE, "annotator", "biography", "entity", "label", "page"]
    facts = pd.DataFrame(list(annotations), columns=columns).astype(object)
    is_supported, is_judged = facts["label"] == "S", facts["label"] != "IR"
    is_own_page = facts["page"].isna() | (facts["page"] == facts["entity"])
    # The page on which a fact was found: that of its biography's person, or somebody else's.
    found = facts["page"].where(facts["page"].notna(), facts["entity"])
    found = found.where(is_judged & (is_supported | ~is_own_page))
    facts["n_entities"] = found
    facts["dfactscore"] = (is_supported & is_own_page).astype(float).where(is_judged)
    facts["factscore"] = (is_supported | found.notna()).astype(float).where(is_judged)
    responses = facts.groupby([*_RESPONSE, "annotator"], sort=False)
    counts = responses[["biography", "n_entities"]].nunique()
    scores = responses[["factscore", "dfactscore"]].mean()
    return scores.join(counts).rename(columns={"biography": "n_biographies"}).reset_index()


def compare_human_and_machine_dfactscores(
    human_scores: pd.DataFrame,
    machine_rows: Sequence[Mapping[str, Any]],
    *,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """The scores by people beside the machine's, over the responses that both scored: a row per
    system, after ``__all__`` if there are several.

    human_scores: from `compute_human_dfactscores`; several annotators of a response are averaged.
    machine_rows: rows of responses with system, response_id and the keys of `MACHINE_KEYS`
    (`factaudit.arrays.biography_scores.score_biography`).

    For FActScore, D-FActScore, # bio and # ent. the rows have both means, and Pearson's r over
    responses with its interval. ``gap`` = FActScore - D-FActScore, by people and by the machine,
    paired. ``n_unmatched``: annotated responses that the machine did not score.
    """
    human = human_scores.groupby(_RESPONSE, sort=False)[list(MACHINE_KEYS)].mean().reset_index()
    machine = pd.DataFrame(machine_rows, columns=[*_RESPONSE, *MACHINE_KEYS.values()])
    machine = machine.rename(columns={theirs: name for name, theirs in MACHINE_KEYS.items()})
    both = human.merge(machine, on=_RESPONSE, how="left", suffixes=("_human", "_machine"))
    is_pair = both["factscore_human"].notna() & both["dfactscore_machine"].notna()
    rows = []
    for key, inside in split_by_system(both.assign(dataset=None)):
        pairs = both[inside & is_pair]
        row = {"system": key["system"], "n_unmatched": int(inside.sum()) - len(pairs)}
        rows.append(row | _compare_pairs(pairs, intervals))
    return rows


def _compare_pairs(pairs: pd.DataFrame, intervals: ClusterBootstrap | None) -> Row:
    """The figures of responses, from the values by people (``NAME_human``) and by the machine
    (``NAME_machine``)."""
    row: Row = {"n": len(pairs)}
    for name in MACHINE_KEYS:
        people, machine = (
            pairs[f"{name}_{side}"].to_numpy(dtype=float) for side in ("human", "machine")
        )
        correlation = pearson(people, machine)
        row |= {f"human_{name}": mean_of_defined(people), name: mean_of_defined(machine)}
        row[f"{name}_pearson_r"] = none_if_undefined(correlation.point)
        if intervals is not None:
            ends = correlation_interval(correlation, np.arange(len(pairs)), intervals.confidence)
            row |= name_ends(f"{name}_pearson_r", ends)
    # Both scores by people are about the same facts, so no gap is below 0; the machine's may be
    # about different facts.
    for prefix, side, least in (("human_", "human", 0), ("", "machine", -1)):
        gaps = pairs[f"factscore_{side}"] - pairs[f"dfactscore_{side}"]
        row |= average_changes(f"{prefix}gap", gaps, intervals, least)
    figures = [f"{name}_pearson_r" for name in MACHINE_KEYS] + ["human_gap", "gap"]
    return explain_row(row, figures, few_clusters=TOO_FEW_RESPONSES)


_MEANS_DESCRIPTION = "mean over responses, human and computed"
_CORRELATION_DESCRIPTION = "Pearson's r over responses"
_PEOPLE_COLUMNS: dict[str, Column] = {
    **pick_shared_columns("system"),
    **pick_shared_columns("n"),
    "n_unmatched": Column(
        "not scored", "count", "annotated responses without a computed score", shown="any"
    ),
}
for _name, _heading, _unit in (
    ("factscore", "FActScore", "percent"),
    ("dfactscore", "D-FActScore", "percent"),
    ("n_biographies", "# bio", "number"),
    ("n_entities", "# ent.", "number"),
):
    for _key, _title in ((f"human_{_name}", f"{_heading}, people"), (_name, _heading)):
        _PEOPLE_COLUMNS[_key] = Column(
            _title,
            _unit,  # type: ignore[arg-type]
            _MEANS_DESCRIPTION,
            digits=2,
        )
    _PEOPLE_COLUMNS[f"{_name}_pearson_r"] = Column(
        f"r of {_heading}",
        "number",
        _CORRELATION_DESCRIPTION,
        interval=RESPONSE_INFLUENCE,
        digits=2,
    )
_PEOPLE_COLUMNS |= {
    "human_gap": Column(
        "gap, people",
        "points",
        "FActScore − D-FActScore, human and computed",
        interval=RESPONSE_CHANGE,
    ),
    "gap": Column(
        "gap", "points", "FActScore − D-FActScore, human and computed", interval=RESPONSE_CHANGE
    ),
    **pick_shared_columns("reason"),
}

AUDIT = Audit(
    name="dfactscore_people",
    title="People and the machine",
    question=(
        "Do human FActScores, D-FActScores and numbers of people agree with the computed ones?"
    ),
    source="MF §4.2, §4.3, §5.2, Tables 3 and 5",
    text=(
        "The same scores, once from annotators and once computed, over the responses that have"
        " both."
    ),
    formula=(
        "Human D-FActScore = facts supported by the page of the person whom their biography is"
        " about / facts. Human FActScore = facts found on any page / facts. Irrelevant facts are"
        " left out. Pearson's r is over responses."
    ),
    columns=_PEOPLE_COLUMNS,
    compute=None,
)
