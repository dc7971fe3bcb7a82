"""People against the machine: annotations, annotator agreement, both scores side by side (MF §4.2-4.3, §5.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field
from scipy import stats

from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.means import bootstrap_mean
from factaudit.datasets.sources import Row as SourceRow
from factaudit.datasets.sources import read_rows

Row = dict[str, Any]
#: Of the two scores, the name in a machine's response row.
SCORES = {"factscore": "init_factscore", "dfactscore": "init_dfactscore"}


class Annotation(SourceRow):
    """What one annotator said of one fact.

    biography: which of the paragraph's biographies the fact is in (any mark). entity: the title of the page of the
    person whom that biography is about. label: S, NS or IR. page: the title of the page that supports the fact; where
    an S has none, it is the entity's.
    """

    system: str
    response_id: str
    fact: str = Field(pattern=r"\S")
    biography: str
    label: Literal["S", "NS", "IR"]
    annotator: str = "1"
    entity: str | None = None
    page: str | None = None


def read_annotations(path: str | Path) -> list[Annotation]:
    """Read annotations from CSV, JSONL or Parquet: a row per annotator and fact, with the columns of `Annotation`."""
    return read_rows(Path(path), Annotation)


class _Views(SourceRow):
    title: str
    views: float = Field(ge=0)


def read_views(path: str | Path) -> dict[str, float]:
    """Page views by title, from a table with the columns ``title`` and ``views``."""
    return {row.title: row.views for row in read_rows(Path(path), _Views)}


def human_scores(annotations: Iterable[Annotation]) -> list[Row]:
    """FActScore and D-FActScore by people: a row per response and annotator.

    ``factscore`` = S / (S + NS): a fact is supported by some page. ``dfactscore`` counts an S only where the page is
    the entity's of its biography. Irrelevant facts are left out of both. Also n_biographies, n_entities (distinct
    pages of supported facts), n_facts, n_irrelevant. A score without a fact is None.
    """
    found = []
    for (system, response_id, annotator), facts in _by(annotations, "system", "response_id", "annotator").items():
        judged = [one for one in facts if one.label != "IR"]
        supported = [one for one in judged if one.label == "S"]
        own = [one for one in supported if one.page is None or one.page == one.entity]
        found.append(
            {
                "system": system,
                "response_id": response_id,
                "annotator": annotator,
                "n_facts": len(judged),
                "n_irrelevant": len(facts) - len(judged),
                "n_biographies": len({one.biography for one in facts}),
                "n_entities": len({one.page or one.entity for one in supported} - {None}),
                "factscore": len(supported) / len(judged) if judged else None,
                "dfactscore": len(own) / len(judged) if judged else None,
            }
        )
    return found


def annotator_agreement(annotations: Sequence[Annotation]) -> list[Row]:
    """How far annotators agree: a row each for fact labels, numbers of biographies, and entities of biographies.

    Over what at least two of them judged: n_units, n_annotators, ``percent`` (the share of pairs of judgements that
    agree), Cohen's ``kappa`` (two annotators only) and Krippendorff's ``alpha`` (nominal; any number).
    """
    facts: dict[Any, dict[str, Hashable]] = {}
    numbers: dict[Any, dict[str, Hashable]] = {}
    entities: dict[Any, dict[str, Hashable]] = {}
    repeated: Counter[Any] = Counter()
    for one in annotations:
        # The same words may be a fact twice: told apart by their order.
        key = (one.system, one.response_id, one.fact)
        repeated[key, one.annotator] += 1
        facts.setdefault((*key, repeated[key, one.annotator]), {})[one.annotator] = one.label
        if one.entity is not None:
            entities.setdefault((one.system, one.response_id, one.biography), {})[one.annotator] = one.entity
    for row in human_scores(annotations):
        numbers.setdefault((row["system"], row["response_id"]), {})[row["annotator"]] = row["n_biographies"]
    return [
        {"judgement": name, **_agreement(list(units.values()))}
        for name, units in (("fact label", facts), ("number of biographies", numbers), ("entity", entities))
    ]


def krippendorff_alpha(units: Iterable[Sequence[Hashable]]) -> float | None:
    """Krippendorff's α for nominal data (Krippendorff 2011): 1 - observed / expected disagreement.

    units: of each unit the values that it was given, missing ones left out; a unit with one value does not count.
    None where there are no pairs, or only one value in all.

    >>> krippendorff_alpha([["a", "a"], ["b", "b"]])
    1.0
    """
    totals: Counter[Hashable] = Counter()
    agreed = 0.0
    for values in units:
        if len(values) < 2:
            continue
        counts = Counter(values)
        totals.update(counts)
        agreed += sum(n * (n - 1) for n in counts.values()) / (len(values) - 1)
    n = totals.total()
    expected = n * (n - 1) - sum(count * (count - 1) for count in totals.values())
    if n < 2 or expected == 0:
        return None
    return 1 - (n - agreed) * (n - 1) / expected


def compare_with_machine(
    people: Sequence[Mapping[str, Any]],
    machine: Sequence[Mapping[str, Any]],
    *,
    replicates: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> list[Row]:
    """People's scores beside the machine's over the responses that both scored: a row per system, and ``__all__``.

    people: rows of `human_scores` (several annotators of a response are averaged). machine: response rows of
    `factaudit.engines.dfactscore.engine` or `factaudit.engines.dfactscore.published`. For FActScore and D-FActScore:
    both means and
    Pearson's r over responses with a bootstrap interval; ``gap`` = FActScore - D-FActScore by either, with a paired
    bootstrap. ``__all__`` also has Kendall's τ-b between the systems' means, and ``n_unmatched``: annotated responses
    that the machine did not score.
    """
    annotated = _averaged(people)
    scored = {(row["system"], row["response_id"]): row for row in machine if row.get("init_dfactscore") is not None}
    pairs = {
        key: (row, {name: scored[key][theirs] for name, theirs in SCORES.items()})
        for key, row in annotated.items()
        if key in scored and None not in row.values()
    }
    systems = list(dict.fromkeys(system for system, _ in pairs))
    options: Row = {"replicates": replicates, "seed": seed, "confidence": confidence}
    rows = [
        {"system": system} | _side_by_side([two for key, two in pairs.items() if key[0] == system], **options)
        for system in systems
    ]
    whole: Row = {"system": "__all__", **_side_by_side(list(pairs.values()), **options)}
    whole["n_unmatched"] = len(annotated) - len(pairs)
    for name in SCORES:
        both: list[Any] = [(row[f"human_{name}"], row[name]) for row in rows]
        whole[f"{name}_kendall_tau"] = _statistic(stats.kendalltau, both)
    return [whole, *rows]


def popularity(responses: Iterable[Mapping[str, Any]], views: Mapping[str, float]) -> Row:
    """Does a system tell of the person whom most people look up? (MF §5.3)

    responses: rows of `factaudit.engines.dfactscore.engine`; views: page views by title. Over the responses with at
    least two
    candidates, all with views: how often the entity of the largest group is the most viewed candidate, how often it
    would be by chance, and the mean rank from 0 (most viewed) to 1.
    """
    hits, chances, ranks = [], [], []
    n_without = 0
    for row in responses:
        groups = [group for group in row["groups"] if group["entity"] is not None]
        known = [title for title in row["candidates"] if title in views]
        if len(row["candidates"]) < 2 or not groups:
            continue
        if len(known) < len(row["candidates"]):
            n_without += 1
            continue
        chosen = max(groups, key=lambda group: group["n_facts"])["entity"]
        above = sum(views[title] > views[chosen] for title in known)
        hits.append(above == 0)
        chances.append(sum(views[title] == max(views[one] for one in known) for title in known) / len(known))
        ranks.append(above / (len(known) - 1))
    return {
        "n": len(hits),
        "n_without_views": n_without,
        "most_viewed": float(np.mean(hits)) if hits else None,
        "by_chance": float(np.mean(chances)) if hits else None,
        "mean_rank": float(np.mean(ranks)) if hits else None,
        "reason": None if hits else "no response whose candidates all have views",
    }


def _side_by_side(pairs: Sequence[tuple[Row, Row]], replicates: int, seed: int, confidence: float) -> Row:
    row: Row = {"n": len(pairs)}
    for name in SCORES:
        both = np.array([(human[name], machine[name]) for human, machine in pairs], dtype=np.float64).reshape(-1, 2)
        row[f"human_{name}"], row[name] = (float(mean) for mean in both.mean(axis=0)) if len(both) else (None, None)
        row[f"{name}_pearson_r"] = _statistic(stats.pearsonr, both.tolist())
        low, high = _pearson_interval(both, replicates, seed, confidence)
        row[f"{name}_pearson_r_low"], row[f"{name}_pearson_r_high"] = low, high
    for prefix, side in (("human_", 0), ("", 1)):
        gaps = np.array([pair[side]["factscore"] - pair[side]["dfactscore"] for pair in pairs])
        row[f"{prefix}gap"] = float(gaps.mean()) if len(gaps) else None
        row[f"{prefix}gap_low"], row[f"{prefix}gap_high"] = bootstrap_mean(
            gaps, _intervals(replicates, seed, confidence)
        )
    undefined = [name for name in SCORES if row[f"{name}_pearson_r"] is None]
    row["reason"] = f"no Pearson r for {', '.join(undefined)}: too few or all equal" if undefined else None
    return row


def _pearson_interval(
    both: np.ndarray, replicates: int, seed: int, confidence: float
) -> tuple[float | None, float | None]:
    if len(both) < 3 or not replicates:
        return None, None
    draws = both[np.random.default_rng(seed).integers(0, len(both), (replicates, len(both)))]
    centred = draws - draws.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).sum(axis=1)).prod(axis=1)
    # A draw in which one score is constant has no correlation.
    known = spread > 1e-12
    if known.mean() < 0.5:
        return None, None
    found = centred[known].prod(axis=2).sum(axis=1) / spread[known]
    low, high = np.quantile(found, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def _statistic(function: Any, pairs: Sequence[Sequence[float | None]]) -> float | None:
    known = [pair for pair in pairs if None not in pair]
    if len(known) < 2 or any(len(set(side)) < 2 for side in zip(*known, strict=True)):
        return None
    value = function(*zip(*known, strict=True)).statistic
    return None if np.isnan(value) else float(value)


def _averaged(people: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], Row]:
    grouped: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in people:
        grouped.setdefault((row["system"], row["response_id"]), []).append(row)
    found: dict[tuple[str, str], Row] = {}
    for key, rows in grouped.items():
        found[key] = {}
        for name in SCORES:
            values = [row[name] for row in rows if row[name] is not None]
            found[key][name] = float(np.mean(values)) if values else None
    return found


def _agreement(units: Sequence[Mapping[str, Hashable]]) -> Row:
    shared = [unit for unit in units if len(unit) > 1]
    pairs = [(one, other) for unit in shared for one, other in combinations(unit.values(), 2)]
    annotators = sorted({name for unit in shared for name in unit})
    row: Row = {
        "n_units": len(shared),
        "n_annotators": len(annotators),
        "percent": sum(one == other for one, other in pairs) / len(pairs) if pairs else None,
        "kappa": None,
        "alpha": krippendorff_alpha([list(unit.values()) for unit in shared]),
        "reason": None,
    }
    if not pairs:
        return row | {"reason": "nothing was judged by two annotators"}
    if len(annotators) != 2:
        return row | {"reason": "Cohen's κ is for two annotators"}
    first, second = ([str(unit[name]) for unit in shared] for name in annotators)
    if len({*first, *second}) < 2:
        return row | {"reason": "only one value was given: κ and α are undefined"}
    from sklearn.metrics import cohen_kappa_score

    return row | {"kappa": float(cohen_kappa_score(first, second))}


def _by(annotations: Iterable[Annotation], *names: str) -> dict[tuple[str, ...], list[Annotation]]:
    found: dict[tuple[str, ...], list[Annotation]] = {}
    for one in annotations:
        found.setdefault(tuple(getattr(one, name) for name in names), []).append(one)
    return found


def _intervals(replicates: int, seed: int, confidence: float) -> Intervals | None:
    return Intervals(replicates=replicates, seed=seed, confidence=confidence) if replicates else None
