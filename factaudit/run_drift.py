"""What moved over dates, the judge or the system: anchor claims judged again and again, and each date's own labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import Judgements
from factaudit.arrays.paired_changes import compute_paired_changes
from factaudit.errors import UsageError
from factaudit.input_tables import load_input_tables
from factaudit.results import Row
from factaudit.signature import hash_texts
from factaudit.stats.clustered_proportions import ClusterCounts, estimate_clustered_proportions
from factaudit.stats.date_exchangeability import (
    DirectedPValues,
    change_capital,
    fresh_units_p_value,
    repeated_units_p_value,
)
from factaudit.stats.undefined_values import none_if_undefined
from factaudit.tables import read_claims, read_verdicts

#: What may have moved of a judge: per figure the label of its claims (-1: none).
JUDGE_FIGURES = {"TPR": 1, "TNR": 0, "PPR": -1}


@dataclass(frozen=True)
class DriftDate:
    """What one date brought: verdicts on the anchors, and claims of its own with labels (None: none)."""

    name: str
    verdicts: pd.DataFrame
    claims: pd.DataFrame | None = None


@dataclass(frozen=True)
class RunDrift:
    """Rows per date, in the order of dates.

    judge: evaluator, date, n anchors, n_unscored, n_flips (predictions unlike the first date's), tpr, tnr, bacc,
    ppr and the change of bacc (ppr without labels) since the first date with its interval at one look (change, _low,
    _high). system: system, date, n_labels, error_rate with _low and _high. Both: evidence (the capital of the bets that
    something moved), moved (the figure that did, and how; null), since (the date at which that was first sure).
    left_out: evaluators that did not judge at every date.
    """

    judge: list[Row]
    system: list[Row]
    left_out: list[str]

    def list_moves(self, what: str) -> list[Row]:
        """The last row of each evaluator (``judge``) or system (``system``) that moved."""
        rows = {"judge": self.judge, "system": self.system}[what]
        return [row for row in {row[_NAME_KEYS[what]]: row for row in rows}.values() if row["moved"]]


_NAME_KEYS = {"judge": "evaluator", "system": "system"}


def read_drift_dates(
    anchors: pd.DataFrame,
    sources: Sequence[Path],
    mapping: Any = None,
    report_line: Callable[[str], None] = lambda line: None,
) -> list[DriftDate]:
    """A date of each file or run folder, in their order; of a single file with repeats a date of each repeat.

    Verdicts of claims that are no anchors count nowhere. Raises `UsageError` where there are fewer than two dates.
    """
    known = set(anchors["claim_id"])
    found = []
    for source in sources:
        claims: pd.DataFrame | None
        if source.is_dir():
            claims, verdicts = read_claims(source / "claims.parquet"), read_verdicts(source / "verdicts.parquet")
        else:
            loaded = load_input_tables([source], mapping, report_line)
            if loaded.verdicts is None:
                raise UsageError(f"{source}: no verdicts in it: each date is a file of verdicts, or a run folder")
            claims, verdicts = loaded.claims, loaded.verdicts
        own = None if claims is None else claims[~claims["claim_id"].isin(known) & claims["label"].notna()]
        found.append(DriftDate(source.stem, verdicts[verdicts["claim_id"].isin(known)], own))
    if len(found) == 1 and (found[0].verdicts["repeat"] > 0).any():
        repeats = found[0].verdicts.groupby("repeat", sort=True)
        found = [DriftDate(f"repeat {number}", part.assign(repeat=0)) for number, part in repeats]
    if len(found) < 2:
        raise UsageError("expected the verdicts of at least two dates (or a file with repeats)")
    if len({one.name for one in found}) < len(found):  # runs/2026-05-01/verdicts.parquet: the folder has the date
        names = [f"{number}: {source.parent.name}/{source.stem}" for number, source in enumerate(sources, start=1)]
        found = [replace(one, name=name) for name, one in zip(names, found, strict=True)]
    return found


def detect_drift(
    anchors: pd.DataFrame, dates: Sequence[DriftDate], *, confidence: float = 0.95, seed: int = 0
) -> RunDrift:
    """Whether the judges or the systems moved, by tests that hold after every date, however many there will be.

    A judge: its right verdicts (without labels: those of 1) on the same anchors, document by document. A system: the
    errors among each date's own labelled claims, which are to be drawn at random. False alarms: at most a share
    1 − confidence of all evaluators and systems that never move.
    """
    evaluators = [set(date.verdicts["evaluator"]) for date in dates]
    everywhere = set.intersection(*evaluators)
    judged = [Judgements.join(anchors, date.verdicts[date.verdicts["evaluator"].isin(everywhere)]) for date in dates]
    names = [date.name for date in dates]
    if not everywhere and not any(date.claims is not None and len(date.claims) for date in dates):
        told = "; ".join(
            f"{date.name}: {', '.join(sorted(mine)) or 'none'}" for date, mine in zip(dates, evaluators, strict=True)
        )
        raise UsageError(
            f"no evaluator judged the anchors at every date ({told}), and no date has labelled claims of its own: give "
            "a judge the same name at each date"
        )
    judge = [row for name in sorted(everywhere) for row in _detect_judge_drift(name, judged, names, confidence, seed)]
    system = list(_detect_system_drift(dates, confidence, seed))
    return RunDrift(judge, system, sorted(set.union(*evaluators) - everywhere))


def _detect_judge_drift(
    evaluator: str, judged: Sequence[Judgements], names: Sequence[str], confidence: float, seed: int
) -> Iterator[Row]:
    first = judged[0]
    said = np.stack([one.prediction[one.evaluators.index(evaluator)] for one in judged])
    # An anchor that the first date did not judge is none; one that a later date did not is not right there.
    inside = first.status[first.evaluators.index(evaluator)] >= 0
    said, label, cluster = said[:, inside], first.label[inside], first.cluster_codes[inside]
    p_values = {}
    for figure, kind in JUDGE_FIGURES.items():
        mine = label == kind
        if not mine.any():
            continue
        hit = said[:, mine] == (0 if kind == 0 else 1)
        unit = np.unique(cluster[mine], return_inverse=True)[1]
        scores = np.stack([np.bincount(unit, one) for one in hit], axis=1).astype(np.int64)
        p_values[figure] = [
            repeated_units_p_value(scores[:, : at + 1], _seed_date(seed, evaluator, figure, at))
            for at in range(1, len(judged))
        ]
    evidence, moved, since = _bet_on_drift_p_values(p_values, len(judged), confidence)
    share = np.where(said < 0, np.nan, said).astype(np.float64)
    groups = np.zeros(len(label), dtype=np.int64)
    for at, name in enumerate(names):
        changes = compute_paired_changes(label, share[0], share[at], groups, 1, cluster, confidence)
        row: Row = {"evaluator": evaluator, "date": name, "n": len(label), "n_unscored": int((said[at] < 0).sum())}
        row |= {"n_flips": int(((said[at] != said[0]) & (said[[0, at]] >= 0).all(0)).sum())}
        row |= {key: none_if_undefined(changes[key][1][0]) for key in ("tpr", "tnr", "bacc", "ppr")}
        change = changes["bacc" if (label >= 0).any() else "ppr"]
        ends = dict(zip(("change", "change_low", "change_high"), change[2:], strict=True))
        row |= {key: none_if_undefined(value[0]) if at else None for key, value in ends.items()}
        yield row | _describe_detected_drift(at, evidence, moved, since, names)


def _detect_system_drift(dates: Sequence[DriftDate], confidence: float, seed: int) -> Iterator[Row]:
    tables = [
        (at, Judgements.join(date.claims.reset_index(drop=True), date.verdicts.iloc[:0]))
        for at, date in enumerate(dates)
        if date.claims is not None and len(date.claims)
    ]
    systems = sorted(
        {name for _, one in tables for name in one.claims["system"].dropna()} or ({None} if tables else ())
    )
    for system in systems:
        errors, sizes, when = [], [], []
        for at, one in tables:
            mine = np.ones(len(one.label), dtype=bool)
            if system is not None:
                mine = (one.claims["system"] == system).to_numpy(dtype=bool, na_value=False)
            unit = np.unique(one.cluster_codes[mine], return_inverse=True)[1]
            errors.append(np.bincount(unit, one.label[mine] == 0).astype(np.int64))
            sizes.append(np.bincount(unit))
            when.append(np.full(len(sizes[-1]), at))
        wrong, size, date = (np.concatenate(parts) for parts in (errors, sizes, when))
        present = np.unique(date)
        p_values = [
            fresh_units_p_value(
                wrong[date <= at], size[date <= at], date[date <= at] == at, _seed_date(seed, str(system), "system", at)
            )
            for at in present[1:]
        ]
        evidence, moved, since = _bet_on_drift_p_values({"error rate": p_values}, len(present), confidence)
        place = np.searchsorted(present, date)
        counts = ClusterCounts(place, np.ones(len(place), dtype=np.int64), np.zeros((len(place), 0)), len(present))
        share = estimate_clustered_proportions(counts, wrong[:, None].astype(float), size[:, None].astype(float))
        low, high = share.wilson_intervals(confidence)
        names = [dates[at].name for at in present]
        for at, name in enumerate(names):
            row: Row = {"system": system, "date": name, "n_labels": int(size[place == at].sum())}
            ends = (share.point, low, high)
            row |= {f"error_rate{end}": none_if_undefined(one[at, 0]) for end, one in zip(_ENDS, ends, strict=True)}
            yield row | _describe_detected_drift(at, evidence, moved, since, names)


_ENDS = ("", "_low", "_high")


def _bet_on_drift_p_values(
    p_values: dict[str, list[DirectedPValues]], n_dates: int, confidence: float
) -> tuple[np.ndarray, str | None, int | None]:
    """The capital after each date, (T,), of equal bets on each figure's fall and rise; what moved, and when."""
    bets = {
        f"{figure} {word}": np.append(1.0, change_capital([getattr(p, side) for p in values]))
        for figure, values in p_values.items()
        for word, side in (("fell", "lower"), ("rose", "higher"))
    }
    if not bets:
        return np.ones(n_dates), None, None
    evidence = np.mean(list(bets.values()), axis=0)
    sure = np.flatnonzero(evidence >= 1 / (1 - confidence))
    if not len(sure):
        return evidence, None, None
    since = int(sure[0])
    return evidence, max(bets, key=lambda name: bets[name][since]), since


def _describe_detected_drift(
    at: int, evidence: np.ndarray, moved: str | None, since: int | None, names: Sequence[str]
) -> Row:
    is_sure = since is not None and at >= since
    return {
        "evidence": float(evidence[at]),
        "moved": moved if is_sure else None,
        "since": names[since] if is_sure and since is not None else None,
    }


def _seed_date(seed: int, *names: object) -> np.random.Generator:
    """Ties at a date are broken alike whenever the dates up to it are looked at."""
    return np.random.default_rng([seed, int(hash_texts(*map(str, names)), 16)])
