"""Claims and verdicts joined once, as arrays that every audit computes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from factaudit.audit.core import counts as nine
from factaudit.audit.core.groups import Groups, column_codes, group_by, pair_codes, split
from factaudit.audit.core.kinds import dense, tally
from factaudit.audit.core.scores import Case, Claims
from factaudit.audit.core.shares import Clusters, Places
from factaudit.audit.core.tallies import Field, Stratum
from factaudit.errors import UsageError, hint
from factaudit.tables import STATUSES, claim_positions

#: In `Judged.label` and `Judged.prediction`: not annotated, unscored.
MISSING = -1
#: What may be counted: claims, or responses (a response is attributable when all its claims are).
LEVELS = ("claim", "response")


@dataclass(frozen=True)
class Judged:
    """n claims (or responses) and what E evaluators said of them.

    claims: the claims table, n rows in the order of the arrays.
    evaluators: E names, sorted, so that no figure depends on the order of the input's rows.
    label: int8 (n,), 1 attributable, 0 unattributable, -1 not annotated.
    prediction: int8 (E, n), 1, 0 or -1 for unscored (a verdict without a prediction, or no verdict at all).
    score: float64 (E, n), NaN where the evaluator gave none.
    status: int8 (E, n), an index into `factaudit.tables.STATUSES`; -1 where there is no verdict at all.
    repeats: int8 (R, E, n), the predictions of all R repeats, the first of which is ``prediction``; None without any.
    silent: the rows of the claims table that stand for responses without any claim; they are in no array.
    annotations: claim_id, annotator, label (`factaudit.tables.annotations.judgements`) of these claims; None without.
    label_rules: the rules that a run names for them, the first of which made ``label``; () where the labels are given.
    kept: what several audits make of these arrays, by what it is.
    """

    claims: pd.DataFrame
    evaluators: tuple[str, ...]
    label: np.ndarray
    prediction: np.ndarray
    score: np.ndarray
    status: np.ndarray
    silent: pd.DataFrame = field(default_factory=pd.DataFrame)
    repeats: np.ndarray | None = None
    annotations: pd.DataFrame | None = None
    label_rules: tuple[str, ...] = ()
    kept: dict[tuple[Any, ...], Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def join(cls, claims: pd.DataFrame, verdicts: pd.DataFrame, annotations: pd.DataFrame | None = None) -> Judged:
        """Join validated tables (`factaudit.tables`); a verdict of a claim that isn't in ``claims`` is left out.

        Of repeats the first (repeat 0) is read; all are in ``repeats``. Rows of responses without any claim are set
        apart (``silent``).
        """
        lone = claims["abstained"].notna()
        silent = claims[lone]
        if lone.any():
            claims = claims[~lone].reset_index(drop=True)
        again = verdicts[verdicts["repeat"] > 0]
        if len(again):
            verdicts = verdicts[verdicts["repeat"] == 0]
        rows = claim_positions(claims, verdicts["claim_id"])
        codes, names = column_codes(verdicts, "evaluator")
        # Mostly all are known: then nothing is copied to be picked from.
        known = slice(None) if (rows >= 0).all() else rows >= 0
        at = (codes[known], rows[known])
        shape = (len(names), len(claims))
        prediction = np.full(shape, MISSING, dtype=np.int8)
        score = np.full(shape, np.nan)
        status = np.full(shape, MISSING, dtype=np.int8)
        prediction[at] = verdicts["prediction"].fillna(MISSING).to_numpy(dtype=np.int8)[known]
        score[at] = verdicts["score"].to_numpy(dtype=np.float64)[known]
        said, words = column_codes(verdicts, "status")
        status[at] = np.array([STATUSES.index(word) for word in words], dtype=np.int8)[said[known]]
        label = claims["label"].fillna(MISSING).to_numpy(dtype=np.int8)
        evaluators = tuple(map(str, names))
        repeats = _repeats(claims, again, evaluators, prediction) if len(again) else None
        if annotations is not None:
            annotations = annotations[claim_positions(claims, annotations["claim_id"]) >= 0].reset_index(drop=True)
        return cls(claims, evaluators, label, prediction, score, status, silent, repeats, annotations)

    @cached_property
    def twice(self) -> bool:
        """Whether some claim was labelled by two annotators or more."""
        known = None if self.annotations is None else self.annotations.dropna(subset="label")
        return known is not None and bool(known["claim_id"].duplicated().any())

    @cached_property
    def certain(self) -> np.ndarray:
        """int8 (E, n): `prediction` without what was guessed, a reply that states no verdict and was read as one."""
        return np.where(self.status > STATUSES.index("ok"), MISSING, self.prediction).astype(np.int8)

    def at(self, level: str) -> Judged:
        """The claims themselves, or their responses (see `responses`)."""
        if level not in LEVELS:
            raise UsageError(f"unknown level {level!r}{hint(level, LEVELS)}")
        return self if level == "claim" else self.responses

    @cached_property
    def responses(self) -> Judged:
        """The same, one row per response: label and prediction are the Kleene AND over the response's claims.

        A response is 0 as soon as one of its claims is 0, 1 when all are 1, else missing. Its score is the least of
        its claims' (NaN where a claim has none), so that ``score > t`` says of the response what it says of all its
        claims. A response is a (dataset, system, response_id); claims without a response_id belong to none. Its
        ``claims`` has dataset, system, response_id and doc_id (null where the claims name several); its ``status`` is
        -1, for a response has no verdict of its own, or ``unparsed`` where its prediction rests on a guessed one.
        """
        rows, starts = self._response_rows
        label, prediction = self.label[rows], self.prediction[:, rows]
        status = np.full((len(self.evaluators), len(starts)), MISSING, dtype=np.int8)
        claims = self.claims[["dataset", "system", "response_id", "doc_id"]].iloc[rows[starts]].reset_index(drop=True)
        first, last = self.response_ends(column_codes(self.claims, "doc_id")[0])
        claims["doc_id"] = claims["doc_id"].where(first == last)
        empty = not len(rows)
        if not empty:
            status[_all(self.certain[:, rows], starts) != _all(prediction, starts)] = STATUSES.index("unparsed")
        return Judged(
            claims=claims,
            evaluators=self.evaluators,
            label=label if empty else _all(label, starts),
            prediction=prediction if empty else _all(prediction, starts),
            score=self.score[:, rows] if empty else np.minimum.reduceat(self.score[:, rows], starts, axis=-1),
            status=status,
        )

    def response_ends(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest of (n,) values in each response, in the order of `responses`."""
        rows, starts = self._response_rows
        if not len(rows):
            return values[rows], values[rows]
        return np.minimum.reduceat(values[rows], starts), np.maximum.reduceat(values[rows], starts)

    @cached_property
    def response_of(self) -> np.ndarray:
        """int64 (n,): the place of each claim's response in `responses`, -1 where it belongs to none."""
        rows, starts = self._response_rows
        found = np.full(len(self.claims), -1, dtype=np.int64)
        found[rows] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(rows))))
        return found

    # ------------------------------------------------------------------- numbers (factaudit.audit.core.tallies.Tallies)

    @property
    def dataset_names(self) -> list[str]:
        return self.datasets[1]

    @property
    def system_names(self) -> list[str]:
        return sorted(self.claims["system"].dropna().unique())

    def group(self, level: str, by: Sequence[str] = ("dataset",), *, systems: bool = False) -> Groups:
        key = ("groups", level, tuple(by), systems)
        if key not in self.kept:
            self.kept[key] = self._grouped(level, by, systems)
        found: Groups = self.kept[key]
        return found

    def _grouped(self, level: str, by: Sequence[str], systems: bool) -> Groups:
        units, groups = self.at(level), group_by(self.claims, by)
        if level == "response":
            alone = self.claims["response_id"].isna().to_numpy()
            outside = np.bincount(groups.codes[alone], minlength=len(groups.keys))
            first, last = self.response_ends(groups.codes)
            if (first != last).any():
                raise UsageError(f"claims of one response differ in {', '.join(by)}: use levels: [claim]")
            groups = Groups(first, groups.keys, level, tuple(outside.tolist()))
        return split(groups, units.claims, "system") if systems else groups

    def count(self, groups: Groups, *fields: Field) -> np.ndarray:
        key = ("count", id(groups), fields)
        if key not in self.kept:
            found = nine.count(groups.codes, len(groups.keys), *self._values(groups, fields))
            found.flags.writeable = False
            self.kept[key] = found, groups  # kept together, so that no other groups have that id
        counts: np.ndarray = self.kept[key][0]
        return counts

    def clusters_of(self, groups: Groups, *fields: Field, known: bool = False) -> Clusters:
        values = self._values(groups, fields)
        codes, size = nine.cells(*values), 3 ** len(values)
        if known:
            every = np.logical_and.reduce([one >= 0 for one in values])
            cells = np.ravel_multi_index(values, [2] * len(values), mode="clip")
            codes, size = np.where(every, cells, -1), 2 ** len(values)
        return self._places(groups).count(codes, size)

    def together(self, groups: Groups, places: Sequence[int], *fields: Field) -> Clusters:
        size, members = 3 ** len(fields), [groups.rows(place) for place in places]
        rows = np.concatenate(members) if members else np.empty(0, dtype=np.int64)
        cells = nine.cells(*(values[rows] for values in self._values(groups, fields)))
        codes = np.repeat(np.arange(len(places)), [len(each) for each in members]) * size + cells
        clusters = self.at(groups.level).clusters[rows]
        return Places.of(np.zeros(len(rows), dtype=np.int64), clusters, 1).count(codes, len(places) * size)

    def strata(self, groups: Groups, *fields: Field) -> Iterator[Stratum]:
        units, size = self.at(groups.level), 3 ** len(fields)
        codes = np.where(groups.codes < 0, -1, groups.codes * size + nine.cells(*self._values(groups, fields)))
        stratum, names = units.datasets
        for at, name in enumerate(names):
            rows = np.flatnonzero(stratum == at)
            used, local = dense(codes[rows])
            yield name, used, *tally(units.clusters[rows], local, len(used))

    def n_clusters(self, groups: Groups) -> np.ndarray:
        return np.bincount(self._places(groups).group, minlength=len(groups.keys))

    def scored(self, groups: Groups, places: Sequence[int], evaluator: int) -> Case:
        rows, system, pairs = self._labelled(groups, places)
        units = self.at(groups.level)

        def again() -> list[Claims]:
            return [units.claims_of(evaluator, *self._labelled(groups, places)[:2])]

        return Case.of(units.claims_of(evaluator, rows, system), len(places), pairs, again)

    def _labelled(self, groups: Groups, places: Sequence[int]) -> tuple[np.ndarray, np.ndarray, Places]:
        """The labelled rows of some groups, of each its group's place among them, and the pairs of both.

        Those that were asked for last are kept: mostly only the evaluator is another one.
        """
        units, key = self.at(groups.level), ("labelled", groups.level)
        last = self.kept.get(key)
        if last is None or last[0] is not groups or last[1] != list(places):
            rows = [groups.rows(place) for place in places]
            rows = [of[units.label[of] >= 0] for of in rows]
            system = np.repeat(np.arange(len(rows)), [len(of) for of in rows])
            every = np.concatenate([np.empty(0, dtype=np.int64), *rows])
            pairs = Places.of(system, units.clusters[every], len(rows))
            last = self.kept[key] = groups, list(places), (every, system, pairs)
        found: tuple[np.ndarray, np.ndarray, Places] = last[2]
        return found

    def claims_of(self, evaluator: int, rows: np.ndarray, system: np.ndarray) -> Claims:
        """Some claims, each with its system's place, as one evaluator sees them."""
        said, score = self.prediction[evaluator][rows], self.score[evaluator][rows]
        return Claims(system, self.label[rows], said, score, self.clusters[rows])

    def _places(self, groups: Groups) -> Places:
        """Of groups that are kept (`group`), found once."""
        key = ("places", id(groups))
        if key not in self.kept:
            found = Places.of(groups.codes, self.at(groups.level).clusters, len(groups.keys))
            self.kept[key] = found, groups  # kept together, so that no other groups have that id
        places: Places = self.kept[key][0]
        return places

    def _values(self, groups: Groups, fields: Sequence[Field]) -> list[np.ndarray]:
        units = self.at(groups.level)
        return [units.label if one.kind == "label" else getattr(units, one.kind)[one.evaluator] for one in fields]

    # ---------------------------------------------------------------------------------------------------------- arrays

    @cached_property
    def datasets(self) -> tuple[np.ndarray, list[str]]:
        """int64 (n,) codes into the sorted names of the datasets, and the names."""
        return column_codes(self.claims, "dataset")

    @cached_property
    def clusters(self) -> np.ndarray:
        """int64 (n,): what is resampled together. Responses of a document where doc_id is given, else responses.

        A claim with neither is a cluster of its own, and a response whose claims name several documents is one. No
        cluster spans datasets. The codes follow the names, not the order of the rows.
        """
        dataset, _ = self.datasets
        document, documents = column_codes(self.claims, "doc_id")
        grounded = self.claims["doc_id"].notna().to_numpy()
        answered = self.claims["response_id"].notna().to_numpy()
        response = self._response_codes
        size = int(response.max(initial=-1)) + 1
        # A response that names several documents (a passage per atomic fact, say) must not be torn apart.
        low = np.full(size, len(documents), dtype=np.int64)
        high = np.full(size, -1, dtype=np.int64)
        np.minimum.at(low, response[answered], document[answered])
        np.maximum.at(high, response[answered], document[answered])
        single = ~answered
        single[answered] = (low == high)[response[answered]]
        by_document = grounded & single
        kind = np.where(by_document, 0, np.where(answered, 1, 2))
        which = np.where(by_document, document, response)
        lone = np.flatnonzero(kind == 2)
        if len(lone):  # responses all have a response_id, so these are claims, and have an id
            which[lone] = pd.factorize(self.claims["claim_id"].iloc[lone], sort=True)[0]
        codes = (dataset * 3 + kind) * (max(len(documents), size, len(self.claims)) + 1) + which
        return pd.factorize(codes, sort=True)[0]

    @cached_property
    def _response_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The claims that have a response_id, response by response, and where each response begins among them."""
        inside = np.flatnonzero(self.claims["response_id"].notna().to_numpy())
        member = self._response_codes[inside]
        order = np.argsort(member, kind="stable")
        return inside[order], np.flatnonzero(np.diff(member[order], prepend=-1))

    @cached_property
    def _response_codes(self) -> np.ndarray:
        """int64 (n,): the response of each claim; of no meaning where a claim has no response_id."""
        codes, _ = self.datasets
        for column in ("system", "response_id"):
            values, names = column_codes(self.claims, column)
            codes = pair_codes(codes, values, len(names))[1]
        return codes


def _repeats(claims: pd.DataFrame, again: pd.DataFrame, evaluators: tuple[str, ...], first: np.ndarray) -> np.ndarray:
    """The predictions of all repeats: those of the first, then those of the verdicts asked ``again``."""
    found = [first]
    for _, part in again.groupby("repeat", sort=True):
        rows = claim_positions(claims, part["claim_id"])
        at = pd.Categorical(part["evaluator"], categories=list(evaluators)).codes
        known = (rows >= 0) & (at >= 0)
        one = np.full(first.shape, MISSING, dtype=np.int8)
        one[at[known], rows[known]] = part["prediction"].fillna(MISSING).to_numpy(dtype=np.int8)[known]
        found.append(one)
    return np.stack(found)


def _all(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Kleene AND of 1 / 0 / -1 over the runs that begin at ``starts`` (last axis)."""
    rank = np.array([0, 2, 1], dtype=np.int8)  # of 0, 1 and -1: false < unknown < true
    return np.array([0, MISSING, 1], dtype=np.int8)[np.minimum.reduceat(rank[values], starts, axis=-1)]
