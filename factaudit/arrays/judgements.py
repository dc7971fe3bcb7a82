"""Claims and verdicts joined once, as arrays that every audit computes on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from factaudit.arrays.claim_groups import (
    ClaimGroups,
    encode_claim_group_column,
    find_claims_in_responses,
    group_claims_by_columns,
    split_claim_groups_by_column,
)
from factaudit.arrays.figures import Tally, encode_cells
from factaudit.errors import UsageError, suggest_known_name
from factaudit.stats.clustered_proportions import (
    ClusterCounts,
    GroupClusterPairs,
    count_codes_by_cluster,
)
from factaudit.stats.distinct_rows import encode_distinct_integer_pairs
from factaudit.tables import STATUSES, find_claim_positions_in_table
from factaudit.tables.documents import encode_distinct_documents
from factaudit.tables.schema import GRADE_COLUMN, is_text_placeholder
from factaudit.tables.validation import find_claim_variants

T = TypeVar("T")

#: In `Judgements.label` and `Judgements.prediction`: not annotated, unscored.
MISSING = -1
#: In `Judgements.tally`: the label, where an evaluator would be named by its place.
LABEL = -1
#: What may be counted: claims, or responses (a response is attributable when all its claims are).
LEVELS = ("claim", "response")
#: In `ClaimGroups.tallies`: the pairs of a group and a cluster, which every tally starts from.
PAIRS = ("pairs",)


def check_evaluators(wanted_names: Iterable[str], evaluators: Sequence[str]) -> None:
    """Raise `UsageError` for a name that no verdict has."""
    for name in wanted_names:
        if name not in evaluators:
            raise UsageError(f"no verdicts of {name!r}{suggest_known_name(name, evaluators)}")


def check_first_repeats(names: Iterable[str]) -> None:
    """Raise `UsageError` where there are evaluators without a verdict of repeat 0: these."""
    if listed := ", ".join(sorted(map(str, names))):
        raise UsageError(
            f"no verdict of {listed} has repeat 0, which audits read: number repeats from 0"
        )


def pair_evaluators(
    evaluators: Sequence[str], partner_by_evaluator: Mapping[str, str] | None
) -> list[tuple[int, int]]:
    """Places of the pairs of evaluators that are wanted, each to its other one; None: every two."""
    if partner_by_evaluator is None:
        return list(combinations(range(len(evaluators)), 2))
    check_evaluators((name for pair in partner_by_evaluator.items() for name in pair), evaluators)
    return [(evaluators.index(a), evaluators.index(b)) for a, b in partner_by_evaluator.items()]


@dataclass(frozen=True)
class Judgements:
    """n claims (or responses) and what E evaluators said of them.

    claims: the claims table, n rows in the order of the arrays.
    evaluators: E names, sorted, so that no figure depends on the order of the input's rows.
    label: int8 (n,), 1 attributable, 0 unattributable, -1 not annotated.
    prediction: int8 (E, n), 1, 0 or -1 for unscored (a verdict without a prediction, or no verdict
    at all).
    score, grade: float64 (E, n), NaN where the evaluator gave none; grade is None where verdicts
    have none at all.
    status: int8 (E, n), an index into `factaudit.tables.STATUSES`; -1 where there is no verdict at
    all.
    empty_responses: the rows of the claims table that stand for responses without any claim; they
    are in no array.
    repeat_predictions: int8 (R, E, n), of all R repeats, the first of which is ``prediction``; None
    without any.
    annotations: claim_id, annotator, label and grade of these claims (`list_annotator_judgements`);
    None without.
    label_rules: the rules that a run names for them, the first of which made ``label``; () where
    the labels are given.
    variants: the claims that were made of these to see what a change does (`variant_of`); they are
    in no other array.
    cache: what several audits compute from these arrays, by what it is.
    """

    claims: pd.DataFrame
    evaluators: tuple[str, ...]
    label: np.ndarray
    prediction: np.ndarray
    score: np.ndarray
    status: np.ndarray
    empty_responses: pd.DataFrame = field(default_factory=pd.DataFrame)
    repeat_predictions: np.ndarray | None = None
    annotations: pd.DataFrame | None = None
    label_rules: tuple[str, ...] = ()
    variants: Judgements | None = None
    grade: np.ndarray | None = None
    cache: dict[tuple[Any, ...], Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def join(
        cls, claims: pd.DataFrame, verdicts: pd.DataFrame, annotations: pd.DataFrame | None = None
    ) -> Judgements:
        """Join validated tables (`factaudit.tables`); a verdict of a claim that isn't in ``claims``
        is left out.

        Of repeats the first (repeat 0) is read; all are in ``repeat_predictions``. Rows of
        responses without any claim are set apart (``empty_responses``), and so are variants of
        claims that are here (``variants``).
        """
        varied = find_claim_variants(claims)
        if varied.any():
            plain, made = (claims[rows].reset_index(drop=True) for rows in (~varied, varied))
            judged = cls.join(plain, verdicts, annotations)
            return replace(judged, variants=cls.join(made, verdicts))
        evaluators = sorted(map(str, verdicts.loc[verdicts["repeat"] == 0, "evaluator"].unique()))
        claims, silent = split_empty_responses(claims)
        rows = find_claim_positions_in_table(claims, verdicts["claim_id"])
        if (rows < 0).any():  # mostly all are known: then nothing is copied to be picked from
            rows, verdicts = rows[rows >= 0], verdicts[rows >= 0]
        arrays = VerdictArrays(evaluators, len(claims))
        arrays.add(rows, verdicts)
        if annotations is not None:
            inside = find_claim_positions_in_table(claims, annotations["claim_id"]) >= 0
            annotations = annotations[inside].reset_index(drop=True)
        return replace(arrays.judge(claims, silent), annotations=annotations)

    @cached_property
    def has_double_labels(self) -> bool:
        """Whether some claim was labelled by two annotators or more."""
        known = None if self.annotations is None else self.annotations.dropna(subset="label")
        return known is not None and bool(known["claim_id"].duplicated().any())

    @cached_property
    def stated_prediction(self) -> np.ndarray:
        """int8 (E, n): `prediction` without what was guessed, a reply that states no verdict and
        was read as one."""
        return np.where(self.status > STATUSES.index("ok"), MISSING, self.prediction).astype(
            np.int8
        )

    def compute_support(self, evaluators: Sequence[str]) -> np.ndarray:
        """float64 (E, n): their scores, predictions where one gave no score, NaN where it gave
        neither."""
        at = [self.evaluators.index(name) for name in evaluators]
        said = np.where(np.isnan(self.score[at]), self.prediction[at], self.score[at])
        return np.where(self.prediction[at] == MISSING, np.nan, said)

    def at_level(self, level: str) -> Judgements:
        """The claims themselves, or their responses (see `responses`)."""
        if level not in LEVELS:
            raise UsageError(f"unknown level {level!r}{suggest_known_name(level, LEVELS)}")
        return self if level == "claim" else self.responses

    @cached_property
    def responses(self) -> Judgements:
        """The same, one row per response, which is 1 when all its claims are, and 0 when one is
        not.

        It has a label where all its claims have one: of responses labelled in part only those whose
        error happens to be among the labels would be known, and all would be errors. Its prediction
        is the Kleene AND: 0 as soon as one of its claims is 0, 1 when all are 1, else missing, for
        which there are bounds. Its score is the least of its claims' (NaN where a claim has none),
        so that ``score > t`` says of the response what it says of all its claims. A response is a
        (dataset, system, response_id); `find_claims_in_responses` says who belongs to none. Its
        ``claims`` has dataset, system, response_id and doc_id (of `name_documents`, null where they
        are several); its ``status`` is -1, for a response has no verdict of its own, or
        ``unparsed`` where its prediction rests on a guessed one.
        """
        rows, starts = self._response_rows
        columns = ["dataset", "system", "response_id", "doc_id"]
        claims = self.claims[columns].iloc[rows[starts]].reset_index(drop=True)
        document, documents = self._document_codes_and_names
        first, last = (self.reduce_responses(how, document) for how in (np.minimum, np.maximum))
        named = np.array([*documents, None], dtype=object)[first]
        claims["doc_id"] = np.where(first == last, named, None)
        prediction, stated = map(self._join_by_and, (self.prediction, self.stated_prediction))
        guessed = STATUSES.index("unparsed")
        return Judgements(
            claims=claims,
            evaluators=self.evaluators,
            label=self.reduce_responses(np.minimum, self.label),
            prediction=prediction,
            score=self.reduce_responses(np.minimum, self.score),
            status=np.where(stated != prediction, guessed, MISSING).astype(np.int8),
        )

    def _join_by_and(self, prediction: np.ndarray) -> np.ndarray:
        """The Kleene AND of 1, 0 and -1 over the claims of each response (0 < -1 < 1)."""
        least = self.reduce_responses(np.minimum, np.array([0, 2, 1], np.int8)[prediction])
        return np.array([0, MISSING, 1], np.int8)[least]

    def reduce_responses(self, how: np.ufunc, values: np.ndarray) -> np.ndarray:
        """The least or the greatest of (..., n) values in each response, in the order of
        `responses`."""
        rows, starts = self._response_rows
        inside = values[..., rows]
        reduced: np.ndarray = how.reduceat(inside, starts, axis=-1) if len(starts) else inside
        return reduced

    @cached_property
    def response_index(self) -> np.ndarray:
        """int64 (n,): the place of each claim's response in `responses`, -1 where it belongs to
        none."""
        rows, starts = self._response_rows
        found = np.full(len(self.claims), -1, dtype=np.int64)
        found[rows] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(rows))))
        return found

    # ---- numbers
    # Cells of k fields have k axes of 3: 0, 1 and (last) missing.

    @property
    def dataset_names(self) -> list[str]:
        return self._dataset_codes_and_names[1]

    @property
    def system_names(self) -> list[str]:
        return sorted(self.claims["system"].dropna().unique())

    def make_groups(
        self, level: str, by: Sequence[str] = ("dataset",), *, systems: bool = False
    ) -> ClaimGroups:
        """The claims or responses in the groups that the *claims* have (so that a group without a
        response is seen).

        ``systems``: each group split by system; what has none is in no group then. Raises
        `UsageError` for an unknown level or column, and where the claims of a response are in
        several groups.
        """
        key = ("groups", level, tuple(by), systems)
        return self.compute_once(key, lambda: self._make_groups(level, by, systems))

    def _make_groups(self, level: str, by: Sequence[str], systems: bool) -> ClaimGroups:
        units, groups = self.at_level(level), group_claims_by_columns(self.claims, by)
        if level == "response":
            alone = groups.codes[self.response_index < 0]
            outside = np.bincount(alone, minlength=len(groups.keys))
            codes = self.reduce_responses(np.minimum, groups.codes)
            if (codes != self.reduce_responses(np.maximum, groups.codes)).any():
                raise UsageError(
                    f"claims of one response differ in {', '.join(by)}: use levels: [claim]"
                )
            groups = ClaimGroups(codes, groups.keys, level, tuple(outside.tolist()))
        return split_claim_groups_by_column(groups, units.claims, "system") if systems else groups

    def tally(self, groups: ClaimGroups, *fields: int) -> Tally:
        """Count the claims or responses of each group by `LABEL`, or by what evaluators (their
        places) predict. What several audits ask for is counted once."""
        if fields not in groups.tallies:
            units = self.at_level(groups.level)
            values, stated = (
                [units.label if place == LABEL else said[place] for place in fields]
                for said in (units.prediction, units.stated_prediction)
            )
            groups.tallies[fields] = self.tally_values(groups, values, stated)
        found: Tally = groups.tallies[fields]
        return found

    def tally_values(
        self, groups: ClaimGroups, values: Sequence[np.ndarray], stated: Sequence[np.ndarray]
    ) -> Tally:
        """Count by any k values, int8 (n,) each: 0, 1 or -1; stated: the same without guesses."""
        if PAIRS not in groups.tallies:
            clusters = self.at_level(groups.level).cluster_codes
            groups.tallies[PAIRS] = GroupClusterPairs.of(groups.codes, clusters, len(groups.keys))
        size = 3 ** len(values)
        counts = groups.tallies[PAIRS].count_codes(encode_cells(*values), size)
        if all(map(np.array_equal, values, stated)):
            return Tally(counts)
        inside = groups.codes >= 0
        places = groups.codes[inside] * size + encode_cells(*stated)[inside]
        cells = np.bincount(places, minlength=len(groups.keys) * size)
        return Tally(counts, cells.reshape(-1, *[3] * len(values)))

    def tally_jointly(
        self, groups: ClaimGroups, members: Sequence[int], evaluator: int, *, stated: bool = False
    ) -> ClusterCounts:
        """Kinds of clusters by their claims in several groups at once: one group, counts (k,
        members * 9).

        By label and prediction of an evaluator; stated: guessed predictions are missing.
        """
        units, place_of = self.at_level(groups.level), np.full(len(groups.keys) + 1, -1)
        place_of[list(members)] = np.arange(len(members))
        member = place_of[groups.codes]  # of a claim in no group the last, -1
        rows = np.flatnonzero(member >= 0)
        said = (units.stated_prediction if stated else units.prediction)[evaluator]
        codes = member[rows] * 9 + encode_cells(units.label[rows], said[rows])
        everywhere = np.zeros_like(rows)
        size = len(members) * 9
        return count_codes_by_cluster(units.cluster_codes[rows], everywhere, 1, codes, size)

    def compute_once(self, key: tuple[Any, ...], compute: Callable[[], T]) -> T:
        """What several audits ask for, computed for the first of them. Groups are told apart by
        identity."""
        if key not in self.cache:
            self.cache[key] = compute()
        found: T = self.cache[key]
        return found

    # ---- arrays

    @property
    def dataset_codes(self) -> np.ndarray:
        """int64 (n,): the place of each row's dataset among `dataset_names`."""
        return self._dataset_codes_and_names[0]

    @cached_property
    def _dataset_codes_and_names(self) -> tuple[np.ndarray, list[str]]:
        return encode_claim_group_column(self.claims, "dataset")

    @cached_property
    def cluster_codes(self) -> np.ndarray:
        """int64 (n,): what is resampled together. Responses of a document where one is known, else
        responses.

        A claim with neither is a cluster of its own, and a response whose claims name several
        documents is one. No cluster spans datasets. The codes follow the names, not the order of
        the rows.
        """
        document, documents = self._document_codes_and_names
        answered = self.claims["response_id"].notna().to_numpy()
        response = self._response_codes
        # A response that names several documents (a passage per atomic fact, say) must not be torn
        # apart.
        named = pd.Series(document).groupby(np.where(answered, response, -1))
        is_single = (named.transform("min") == named.transform("max")).to_numpy() | ~answered
        by_document = is_single & (document < len(documents) - (None in documents))
        kind = np.where(by_document, 0, np.where(answered, 1, 2))
        which = np.where(by_document, document, response)
        lone = np.flatnonzero(kind == 2)
        if len(lone):  # responses all have a response_id, so these are claims, and have an id
            which[lone] = pd.factorize(self.claims["claim_id"].iloc[lone], sort=True)[0]
        codes = (self.dataset_codes * 3 + kind) * (int(which.max(initial=0)) + 1) + which
        return pd.factorize(codes, sort=True)[0]

    @cached_property
    def _document_codes_and_names(self) -> tuple[np.ndarray, list[Any]]:
        return encode_claim_group_column(
            pd.DataFrame({"document": name_documents(self.claims)}), "document"
        )

    @cached_property
    def _response_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The claims that are in a response, response by response, and where each response begins
        among them."""
        inside = np.flatnonzero(find_claims_in_responses(self.claims, self._response_codes))
        member = self._response_codes[inside]
        order = np.argsort(member, kind="stable")
        return inside[order], np.flatnonzero(np.diff(member[order], prepend=-1))

    @cached_property
    def _response_codes(self) -> np.ndarray:
        """int64 (n,): the response of each claim; of no meaning where a claim has no
        response_id."""
        codes = self.dataset_codes
        for column in ("system", "response_id"):
            values, names = encode_claim_group_column(self.claims, column)
            codes = encode_distinct_integer_pairs(codes, values, len(names))[1]
        return codes


def name_documents(claims: pd.DataFrame) -> pd.Series:
    """The document of each claim: its doc_id, else a hash of its text; null where it has neither.

    Claims of one text share a document whether or not somebody gave it an id: without that, ten
    claims of a document would count as ten independent observations, and 95 % intervals would cover
    the truth in 77 % of runs.
    """
    named = claims["doc_id"].astype(object).where(claims["doc_id"].notna(), None)
    if "doc" not in claims or named.notna().all():
        return named
    numbers, texts = encode_distinct_documents(claims["doc"])
    hashes = list(map(_hash_document, texts))
    of_row = np.array([*hashes, None], dtype=object)[numbers]
    return named.where(named.notna(), pd.Series(of_row, index=claims.index, dtype=object))


def _hash_document(text: str) -> str | None:
    """A name for a document without an id, the same in every table that has the text."""
    if not text.strip() or is_text_placeholder(text):
        return None
    data = text.encode("utf-8", "surrogatepass")
    return f"text {hashlib.md5(data, usedforsecurity=False).hexdigest()}"


def split_empty_responses(claims: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The claims, and the rows that stand for responses without any."""
    lone = claims["abstained"].notna()
    if lone.any():
        return claims[~lone].reset_index(drop=True), claims[lone]
    # Not their columns either: an empty part of a column of documents holds them all.
    return claims, claims.iloc[:0].astype(object)


class VerdictArrays:
    """What E evaluators said of n claims, as blocks of verdicts fill it.

    repeats: by its number what a repeat says, int8 (2, E, n), predictions and statuses.
    """

    def __init__(self, evaluators: Sequence[str], n_claims: int) -> None:
        self.evaluators = tuple(evaluators)
        self.score = np.full((len(self.evaluators), n_claims), np.nan)
        self.grade: np.ndarray | None = None
        self.repeats = {0: self._make_repeat()}

    def _make_repeat(self) -> np.ndarray:
        return np.full((2, *self.score.shape), MISSING, dtype=np.int8)

    def add(self, rows: np.ndarray, verdicts: pd.DataFrame) -> np.ndarray:
        """Take validated verdicts of the claims at these rows; gives which of them stand beside
        another one of theirs.

        Repeats of an evaluator that is not among these are left out.
        """
        evaluator = pd.Categorical(verdicts["evaluator"], categories=list(self.evaluators)).codes
        status = pd.Categorical(verdicts["status"], categories=list(STATUSES)).codes
        prediction = verdicts["prediction"].fillna(MISSING).to_numpy(dtype=np.int8)
        score = verdicts["score"].to_numpy(dtype=np.float64)
        is_again = np.zeros(len(rows), dtype=bool)
        repeat = verdicts["repeat"].to_numpy(dtype=np.int64)
        for number in np.unique(repeat).tolist():
            mine = np.flatnonzero((repeat == number) & (evaluator >= 0))
            at = evaluator[mine], rows[mine]
            if number not in self.repeats:
                self.repeats[number] = self._make_repeat()
            said, statuses = self.repeats[number]
            is_again[mine] = statuses[at] != MISSING
            said[at], statuses[at] = prediction[mine], status[mine]
            if number == 0:
                self.score[at] = score[mine]
            if number == 0 and GRADE_COLUMN in verdicts:
                self.grade = np.full_like(self.score, np.nan) if self.grade is None else self.grade
                self.grade[at] = verdicts[GRADE_COLUMN].to_numpy(dtype=np.float64)[mine]
        return is_again

    def judge(self, claims: pd.DataFrame, silent: pd.DataFrame) -> Judgements:
        """With the claims, and the rows of responses without any."""
        repeats = [self.repeats[number][0] for number in sorted(self.repeats)]
        return Judgements(
            claims=claims,
            evaluators=self.evaluators,
            label=claims["label"].fillna(MISSING).to_numpy(dtype=np.int8),
            prediction=repeats[0],
            score=self.score,
            status=self.repeats[0][1],
            empty_responses=silent,
            repeat_predictions=np.stack(repeats) if len(repeats) > 1 else None,
            grade=self.grade,
        )
