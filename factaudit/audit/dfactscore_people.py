"""Do people and the machine give the same FActScore and D-FActScore? (MF §4.2, §4.3, §5.2)

An annotation is a mapping with system, response_id, annotator, fact, biography, entity, label and
page, as `factaudit.datasets.biography_annotations.BiographyFactAnnotation` says. The table is
written by the D-FActScore engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.response_means import (
    average_changes,
    mean_of_defined,
)
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.interval_methods import RESPONSE_CHANGE, RESPONSE_INFLUENCE
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.tabulate import explain_row
from factaudit.stats.agreement import correlation_interval, pearson
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.rank_correlation import kendall_tau
from factaudit.stats.undefined_values import name_ends, none_if_undefined

#: Of each figure, its key in a machine's response row.
MACHINE_KEYS = {
    "factscore": "init_factscore",
    "dfactscore": "init_dfactscore",
    "n_biographies": "n_biographies",
    "n_entities": "n_entities",
}
BiographyAnnotations = Iterable[Mapping[str, Any]]


def compute_human_dfactscores(annotations: BiographyAnnotations) -> list[Row]:
    """FActScore and D-FActScore by people: a row per response and annotator.

    ``dfactscore``: the share of facts that the page of the person whom their biography is about
    supports (S, with that page or none). ``factscore``: of those that some page supports: an S, and
    an NS that was found on somebody else's page. Irrelevant facts are left out of both. Also
    n_biographies, n_entities (distinct pages that facts were found on), n_facts, n_irrelevant. A
    score without a fact is None.
    """
    responses: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for one in annotations:
        responses.setdefault((one["system"], one["response_id"], one["annotator"]), []).append(one)
    found = []
    for (system, response_id, annotator), facts in responses.items():
        judged = [one for one in facts if one["label"] != "IR"]
        pages = [_find_page_supported_by_people(one) for one in judged]
        own = [one["label"] == "S" and one["page"] in (None, one["entity"]) for one in judged]
        some = [
            one["label"] == "S" or page is not None for one, page in zip(judged, pages, strict=True)
        ]
        found.append(
            {
                "system": system,
                "response_id": response_id,
                "annotator": annotator,
                "n_facts": len(judged),
                "n_irrelevant": len(facts) - len(judged),
                "n_biographies": len({one["biography"] for one in facts}),
                "n_entities": len(set(pages) - {None}),
                "factscore": mean_of_defined(some),
                "dfactscore": mean_of_defined(own),
            }
        )
    return found


def _find_page_supported_by_people(fact: Mapping[str, Any]) -> str | None:
    """The title of the page that a fact was found on; None where it is on none."""
    if fact["label"] == "S":
        page: str | None = fact["page"] or fact["entity"]
        return page
    # Not supported by the page of its biography's person, but found on somebody else's.
    return None if fact["page"] == fact["entity"] else fact["page"]


def compare_human_and_machine_dfactscores(
    human_rows: Sequence[Mapping[str, Any]],
    machine_rows: Sequence[Mapping[str, Any]],
    *,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """People's scores beside the machine's over the responses that both scored: a row per system,
    and ``__all__``.

    human_rows: rows of `compute_human_dfactscores` (several annotators of a response are averaged).
    machine_rows: rows of responses with system, response_id and the keys of `MACHINE_KEYS`
    (`factaudit.arrays.biography_scores.score_biography`).

    For FActScore, D-FActScore, # bio and # ent.: both means, and Pearson's r over responses with a
    bootstrap interval; ``gap`` = FActScore - D-FActScore by either, paired. ``__all__`` also has
    Kendall's τ-b between the systems' means, and ``n_unmatched``: annotated responses that the
    machine did not score.
    """
    key = ["system", "response_id"]
    human = pd.DataFrame(human_rows, columns=[*key, *MACHINE_KEYS]).groupby(key, sort=False).mean()
    machine = pd.DataFrame(machine_rows, columns=[*key, *MACHINE_KEYS.values()]).set_index(key)
    machine = machine.rename(columns={theirs: name for name, theirs in MACHINE_KEYS.items()})
    pairs = human[human["factscore"].notna()].join(
        machine[machine["dfactscore"].notna()], how="inner", lsuffix="_human", rsuffix="_machine"
    )
    systems = list(dict.fromkeys(pairs.index.get_level_values("system")))
    rows = [
        {"system": system, **_compare_pairs(pairs.loc[[system]], intervals)} for system in systems
    ]
    whole: Row = {
        "system": ALL_TOGETHER,
        **_compare_pairs(pairs, intervals),
        "n_unmatched": len(human) - len(pairs),
    }
    for name in ("factscore", "dfactscore"):
        means = (
            np.array([[row[f"human_{name}"], row[name]] for row in rows], dtype=float)
            .reshape(-1, 2)
            .T
        )
        whole[f"{name}_kendall_tau"] = (
            none_if_undefined(kendall_tau(*means)) if len(rows) > 1 else None
        )
    return [whole, *rows]


def _compare_pairs(pairs: pd.DataFrame, intervals: ClusterBootstrap | None) -> Row:
    """The figures of responses with what people (``NAME_human``) and the machine (``NAME_machine``)
    give them."""
    row: Row = {"n": len(pairs)}
    for name in MACHINE_KEYS:
        people, machine = (
            pairs[f"{name}_{side}"].to_numpy(dtype=float) for side in ("human", "machine")
        )
        correlation, ends = pearson(people, machine), (np.nan, np.nan)
        if intervals is not None:
            ends = correlation_interval(correlation, np.arange(len(pairs)), intervals.confidence)
        row |= {f"human_{name}": mean_of_defined(people), name: mean_of_defined(machine)}
        row[f"{name}_pearson_r"] = none_if_undefined(correlation.point)
        row |= name_ends(f"{name}_pearson_r", ends)
    # People's scores are of the same facts, so that no gap is below 0; the machine's may not be.
    for prefix, side, least in (("human_", "human", 0), ("", "machine", -1)):
        gaps = pairs[f"factscore_{side}"] - pairs[f"dfactscore_{side}"]
        row |= average_changes(f"{prefix}gap", gaps, intervals, least)
    figures = [f"{name}_pearson_r" for name in MACHINE_KEYS] + ["human_gap", "gap"]
    return explain_row(row, figures, few_clusters="too few responses, or all have the same value")


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
    **{
        f"{name}_kendall_tau": Column(
            "τ of systems", "number", "Kendall's τ-b of the systems' means", shown=False
        )
        for name in ("factscore", "dfactscore")
    },
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
