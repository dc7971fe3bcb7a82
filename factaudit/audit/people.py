"""People against the machine: FActScore and D-FActScore by annotators beside the machine's (MF §4.2, §5.2, App. B).

An annotation is a mapping with system, response_id, annotator, fact, biography, entity, label and page, as
`factaudit.datasets.people.Annotation` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from factaudit.audit.core.declare import Audit, Column, shared
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.means import averaged, mean, percentiles
from factaudit.audit.core.rows import ALL, Row

#: Of each figure, its key in a machine's response row.
FIGURES = {
    "factscore": "init_factscore",
    "dfactscore": "init_dfactscore",
    "n_biographies": "n_biographies",
    "n_entities": "n_entities",
}
Annotations = Iterable[Mapping[str, Any]]


def human_scores(annotations: Annotations) -> list[Row]:
    """FActScore and D-FActScore by people: a row per response and annotator.

    ``dfactscore``: the share of facts that the page of the person whom their biography is about supports (S, with that
    page or none). ``factscore``: of those that some page supports: an S, and an NS that was found on somebody else's
    page. Irrelevant facts are left out of both. Also n_biographies, n_entities (distinct pages that facts were found
    on), n_facts, n_irrelevant. A score without a fact is None.
    """
    responses: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for one in annotations:
        responses.setdefault((one["system"], one["response_id"], one["annotator"]), []).append(one)
    found = []
    for (system, response_id, annotator), facts in responses.items():
        judged = [one for one in facts if one["label"] != "IR"]
        pages = [_page(one) for one in judged]
        own = [one["label"] == "S" and one["page"] in (None, one["entity"]) for one in judged]
        some = [one["label"] == "S" or page is not None for one, page in zip(judged, pages, strict=True)]
        found.append(
            {
                "system": system,
                "response_id": response_id,
                "annotator": annotator,
                "n_facts": len(judged),
                "n_irrelevant": len(facts) - len(judged),
                "n_biographies": len({one["biography"] for one in facts}),
                "n_entities": len(set(pages) - {None}),
                "factscore": mean(some),
                "dfactscore": mean(own),
            }
        )
    return found


def _page(fact: Mapping[str, Any]) -> str | None:
    """The title of the page that a fact was found on; None where it is on none."""
    if fact["label"] == "S":
        page: str | None = fact["page"] or fact["entity"]
        return page
    # Not supported by the page of its biography's person, but found on somebody else's.
    return None if fact["page"] == fact["entity"] else fact["page"]


def compare_with_machine(
    people: Sequence[Mapping[str, Any]], machine: Sequence[Mapping[str, Any]], *, intervals: Intervals | None = None
) -> list[Row]:
    """People's scores beside the machine's over the responses that both scored: a row per system, and ``__all__``.

    people: rows of `human_scores` (several annotators of a response are averaged). machine: rows of responses with
    system, response_id and the keys of `FIGURES` (`factaudit.audit.core.biographies.score`).

    For FActScore, D-FActScore, # bio and # ent.: both means, and Pearson's r over responses with a bootstrap interval;
    ``gap`` = FActScore - D-FActScore by either, with a paired bootstrap. ``__all__`` also has Kendall's τ-b between the
    systems' means, and ``n_unmatched``: annotated responses that the machine did not score.
    """
    annotated = _averaged(people)
    scored = {(row["system"], row["response_id"]): row for row in machine if row.get("init_dfactscore") is not None}
    pairs = {
        key: (row, {name: scored[key].get(theirs) for name, theirs in FIGURES.items()})
        for key, row in annotated.items()
        if key in scored and row["factscore"] is not None
    }
    systems = list(dict.fromkeys(system for system, _ in pairs))
    rows = [
        {"system": system} | _side_by_side([two for key, two in pairs.items() if key[0] == system], intervals)
        for system in systems
    ]
    whole: Row = {"system": ALL, **_side_by_side(list(pairs.values()), intervals)}
    whole["n_unmatched"] = len(annotated) - len(pairs)
    for name in ("factscore", "dfactscore"):
        both: list[Any] = [(row[f"human_{name}"], row[name]) for row in rows]
        whole[f"{name}_kendall_tau"] = _statistic("kendalltau", both)
    return [whole, *rows]


def _side_by_side(pairs: Sequence[tuple[Row, Row]], intervals: Intervals | None) -> Row:
    row: Row = {"n": len(pairs)}
    for name in FIGURES:
        both = np.array([(human[name], machine[name]) for human, machine in pairs], dtype=np.float64).reshape(-1, 2)
        both = both[~np.isnan(both).any(axis=1)]
        row[f"human_{name}"], row[name] = (float(one) for one in both.mean(axis=0)) if len(both) else (None, None)
        row[f"{name}_pearson_r"] = _statistic("pearsonr", both.tolist())
        low, high = _pearson_interval(both, intervals)
        row[f"{name}_pearson_r_low"], row[f"{name}_pearson_r_high"] = low, high
    for prefix, side in (("human_", 0), ("", 1)):
        gaps = [pair[side]["factscore"] - pair[side]["dfactscore"] for pair in pairs]
        row |= averaged(f"{prefix}gap", gaps, intervals)
    undefined = [name for name in FIGURES if row[f"{name}_pearson_r"] is None]
    row["reason"] = f"no Pearson r for {', '.join(undefined)}: too few or all equal" if undefined else None
    return row


def _pearson_interval(both: np.ndarray, intervals: Intervals | None) -> tuple[float | None, float | None]:
    if len(both) < 3 or intervals is None:
        return None, None
    random = np.random.default_rng(intervals.seed)
    draws = both[random.integers(0, len(both), (intervals.replicates, len(both)))]
    centred = draws - draws.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).sum(axis=1)).prod(axis=1)
    # A draw in which one score is constant has no correlation.
    known = spread > 1e-12
    if known.mean() < 0.5:
        return None, None
    return percentiles(centred[known].prod(axis=2).sum(axis=1) / spread[known], intervals)


def _statistic(name: str, pairs: Sequence[Sequence[float | None]]) -> float | None:
    known = [pair for pair in pairs if None not in pair]
    if len(known) < 2 or any(len(set(side)) < 2 for side in zip(*known, strict=True)):
        return None
    from scipy import stats  # slow to import

    value = getattr(stats, name)(*zip(*known, strict=True)).statistic
    return None if np.isnan(value) else float(value)


def _averaged(people: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], Row]:
    grouped: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in people:
        grouped.setdefault((row["system"], row["response_id"]), []).append(row)
    return {key: {name: mean(row[name] for row in rows) for name in FIGURES} for key, rows in grouped.items()}


_MEANS = "people's mean over responses, and the machine's"
_R = "Pearson's r over responses"
_COLUMNS: dict[str, Column] = {
    "system": Column("system", "text", "the system that wrote the responses", key=True, values={ALL: "all systems"}),
    **shared("n"),
    "n_unmatched": Column("not scored", "count", "annotated responses that the machine did not score", shown="any"),
}
for _name, _heading, _unit in (
    ("factscore", "FActScore", "percent"),
    ("dfactscore", "D-FActScore", "percent"),
    ("n_biographies", "# bio", "number"),
    ("n_entities", "# ent.", "number"),
):
    _COLUMNS[f"human_{_name}"] = Column(f"{_heading}, people", _unit, _MEANS, digits=2)  # type: ignore[arg-type]
    _COLUMNS[_name] = Column(_heading, _unit, _MEANS, digits=2)  # type: ignore[arg-type]
    _COLUMNS[f"{_name}_pearson_r"] = Column(f"r of {_heading}", "number", _R, interval=True, digits=2)
_COLUMNS |= {
    "human_gap": Column(
        "gap, people", "points", "FActScore − D-FActScore, by people and by the machine", interval=True
    ),
    "gap": Column("gap", "points", "FActScore − D-FActScore, by people and by the machine", interval=True),
    **{
        f"{name}_kendall_tau": Column("τ of systems", "number", "Kendall's τ-b of the systems' means", shown=False)
        for name in ("factscore", "dfactscore")
    },
    **shared("reason"),
}

AUDIT = Audit(
    name="dfactscore_people",
    place=5,
    title="People and the machine",
    question="Do people's FActScore, D-FActScore and numbers of people agree with the machine's?",
    source="MF §4.2-4.3, §5.2, Tables 3 and 5",
    text="The same scores by annotators and by the machine, over the responses that both scored.",
    formula="D-FActScore by people: facts that the page of the person supports whom their biography is about / facts; "
    "FActScore: those found on any page. Irrelevant facts are left out. Pearson's r over responses.",
    columns=_COLUMNS,
    compute=None,
)
