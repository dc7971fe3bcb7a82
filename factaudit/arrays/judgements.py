"""How are claims and verdicts joined and grouped? Once, into arrays on which every audit
computes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from factaudit.arrays.figures import Tally, encode_cells
from factaudit.errors import UsageError, suggest_known_name
from factaudit.stats.clustered_proportions import GroupClusterPairs, encode_distinct_integer_pairs
from factaudit.tables import STATUSES, find_claim_positions
from factaudit.tables.annotations import has_double_labels
from factaudit.tables.documents import encode_distinct_documents
from factaudit.tables.schema import GRADE_COLUMN, is_text_placeholder
from factaudit.tables.validation import find_claim_variants


def find_claims_in_responses(claims: pd.DataFrame, response_codes: np.ndarray) -> np.ndarray:
    """bool (n,): whether a claim has a response_id and is a part of that response.

    If one fact has several rows (one for each person whom it may be about, or for each document
    that it cites), the response is not wrong because one row is 0. The rows of such responses,
    which their codes name as a whole, count as no part of a response.
    """
    inside: np.ndarray = claims["response_id"].notna().to_numpy(dtype=bool, copy=True)
    if "fact_id" in claims:
        facts = pd.DataFrame({"response": response_codes, "fact": claims["fact_id"]})
        facts = facts[inside & facts["fact"].notna()]
        several = facts["response"][facts.duplicated()]
        inside &= ~np.isin(response_codes, several)
    return inside


@dataclass(frozen=True, eq=False)
class ClaimGroups:
    """Rows in groups. ``codes``: int64 (n,), the group of each row, -1 for none; ``keys``: for each
    group its value of each column, sorted.

    ``level`` says whether the rows are claims or responses. ``has_lone_claims``: bool, for each
    group whether some of its claims are in no response. ``tallies``: the counts that
    `Judgements.tally` has made.
    """

    codes: np.ndarray
    keys: list[dict[str, Any]]
    level: str = "claim"
    has_lone_claims: np.ndarray | None = None
    tallies: dict[tuple[Any, ...], Any] = field(default_factory=dict, init=False, repr=False)

    def rows(self, group_index: int) -> np.ndarray:
        """int64: the rows of one group in ascending order."""
        return np.flatnonzero(self.codes == group_index)


def group_claims_by_columns(claims: pd.DataFrame, column_names: Sequence[str]) -> ClaimGroups:
    """Groups with equal values of the columns ``column_names``. A missing value is a group of its
    own (key None), sorted last.

    Each key begins with ``dataset``, which is ``__all__`` if it is not among ``column_names``.
    Raises `UsageError` for an unknown column.
    """
    groups = ClaimGroups(
        np.zeros(len(claims), dtype=np.int64), [{"dataset": ALL_TOGETHER}] if len(claims) else []
    )
    for column in dict.fromkeys(column_names):
        groups = split_claim_groups_by_column(groups, claims, column, keep_missing=True)
    return groups


def split_claim_groups_by_column(
    groups: ClaimGroups, claims: pd.DataFrame, column: str, *, keep_missing: bool = False
) -> ClaimGroups:
    """Each group, split by one more column. Rows without a value get the code -1, or form a group
    that is sorted last."""
    values, names = encode_claim_group_column(claims, column)
    inside = claims[column].notna().to_numpy() | keep_missing
    pairs, codes = encode_distinct_integer_pairs(groups.codes[inside], values[inside], len(names))
    found = np.full(len(claims), -1, dtype=np.int64)
    found[inside] = codes
    keys = [
        {**groups.keys[pair // len(names)], column: names[pair % len(names)]}
        for pair in pairs.tolist()
    ]
    return ClaimGroups(found, keys, groups.level)


def encode_claim_group_column(claims: pd.DataFrame, column: str) -> tuple[np.ndarray, list[Any]]:
    """A column as int64 codes (n,) into its distinct values, which are sorted; None comes last if a
    value is missing."""
    if column not in claims:
        raise UsageError(
            "the claims have no column"
            f" {column!r}{suggest_known_name(column, [str(c) for c in claims.columns])}"
        )
    try:
        codes, found = pd.factorize(claims[column], use_na_sentinel=True)
    except TypeError as error:
        raise UsageError(
            f"column {column!r} holds lists or objects: claims cannot be grouped by it"
        ) from error
    names = pd.Index(found).astype(object).tolist()
    order = sorted(range(len(names)), key=lambda i: (str(type(names[i])), names[i]))
    rank = np.empty(len(names) + 1, dtype=np.int64)
    rank[order] = np.arange(len(names))
    rank[-1] = len(names)  # where pandas' code is -1: missing
    missing = [None] if (codes == -1).any() else []
    return rank[codes], [names[i] for i in order] + missing


#: The value of a key that means "not split by this column": the row is about all datasets, or about
#: all systems.
ALL_TOGETHER = "__all__"


T = TypeVar("T")

#: Values of `Judgements.label` and `Judgements.prediction`: not annotated, and unscored.
MISSING = -1
#: In `Judgements.tally`: the label, where an evaluator would be named by its place.
LABEL = -1
#: What may be counted: claims, or responses (a response is attributable when all its claims are).
LEVELS = ("claim", "response")
#: In `ClaimGroups.tallies`: the pairs of a group and a cluster, which every tally starts from.
PAIRS = ("pairs",)


def check_evaluators(wanted_names: Iterable[str], evaluators: Sequence[str]) -> None:
    """Raise `UsageError` for a name without any verdict."""
    for name in wanted_names:
        if name not in evaluators:
            raise UsageError(f"no verdicts of {name!r}{suggest_known_name(name, evaluators)}")


def check_first_repeats(names: Iterable[str]) -> None:
    """Raise `UsageError` that names the evaluators without a verdict of repeat 0."""
    if listed := ", ".join(sorted(map(str, names))):
        raise UsageError(
            f"no verdict of {listed} has repeat 0, which audits read: number repeats from 0"
        )


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
    variants: Judgements | None = None
    grade: np.ndarray | None = None
    cache: dict[tuple[Any, ...], Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def join(
        cls, claims: pd.DataFrame, verdicts: pd.DataFrame, annotations: pd.DataFrame | None = None
    ) -> Judgements:
        """Join validated tables (`factaudit.tables`). A verdict about a claim that is not in
        ``claims`` is left out.

        If an evaluator has repeats, the first one (repeat 0) is its prediction; all of them are in
        ``repeat_predictions``. Rows that stand for responses without any claim are set apart
        (``empty_responses``), and so are variants of claims that are in the table (``variants``).
        """
        varied = find_claim_variants(claims)
        if varied.any():
            plain, made = (claims[rows].reset_index(drop=True) for rows in (~varied, varied))
            judged = cls.join(plain, verdicts, annotations)
            return replace(judged, variants=cls.join(made, verdicts))
        evaluators = sorted(map(str, verdicts.loc[verdicts["repeat"] == 0, "evaluator"].unique()))
        claims, silent = split_empty_responses(claims)
        rows = find_claim_positions(claims, verdicts["claim_id"])
        # Usually all claims are known, and then nothing needs to be copied.
        if (rows < 0).any():
            rows, verdicts = rows[rows >= 0], verdicts[rows >= 0]
        arrays = VerdictArrays(evaluators, len(claims))
        arrays.add(rows, verdicts)
        if annotations is not None:
            inside = find_claim_positions(claims, annotations["claim_id"]) >= 0
            annotations = annotations[inside].reset_index(drop=True)
        return replace(arrays.judge(claims, silent), annotations=annotations)

    def select(self, rows: np.ndarray) -> Judgements:
        """The judgements of the claims in these rows (of one several times, where its row stands
        there so often), without annotations, variants and responses without claims."""
        repeats = self.repeat_predictions
        return Judgements(
            claims=self.claims.iloc[rows].reset_index(drop=True),
            evaluators=self.evaluators,
            label=self.label[rows],
            prediction=self.prediction[:, rows],
            score=self.score[:, rows],
            status=self.status[:, rows],
            empty_responses=self.empty_responses.iloc[:0],
            repeat_predictions=None if repeats is None else repeats[:, :, rows],
            grade=None if self.grade is None else self.grade[:, rows],
        )

    @cached_property
    def has_double_labels(self) -> bool:
        """Whether some claim has labels of two annotators or more."""
        return has_double_labels(self.annotations)

    @cached_property
    def stated_prediction(self) -> np.ndarray:
        """int8 (E, n): `prediction` without guesses. A prediction is guessed if the reply states no
        verdict and was still read as one."""
        return np.where(self.status > STATUSES.index("ok"), MISSING, self.prediction).astype(
            np.int8
        )

    def compute_support(self, evaluators: Sequence[str]) -> np.ndarray:
        """float64 (E, n): the score of each verdict, its prediction if it has no score, NaN if it
        has neither."""
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
        """The same judgements with a row for each response. A response is 1 if all its claims are
        1, and 0 if one of them is 0.

        A response is a (dataset, system, response_id); `find_claims_in_responses` says which claims
        belong to none. It has a label only if all its claims have one: among partly labelled
        responses, one would know only those whose error happens to be labelled, and all of these
        would be errors. Its prediction is the Kleene AND: 0 as soon as one of its claims is 0, 1 if
        all are 1, else missing, for which there are bounds. Its score is the lowest of its claims'
        scores (NaN if a claim has none), so that ``score > t`` holds for the response if it holds
        for all its claims. Its ``claims`` table has dataset, system, response_id and doc_id (from
        `name_documents`, null if there are several). Its ``status`` is -1, because a response has
        no verdict of its own, or ``unparsed`` if its prediction rests on a guessed one.
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
        """The Kleene AND of 1, 0 and -1 over the claims of each response. It is a minimum in the
        order 0 < -1 < 1."""
        least = self.reduce_responses(np.minimum, np.array([0, 2, 1], np.int8)[prediction])
        return np.array([0, MISSING, 1], np.int8)[least]

    def reduce_responses(self, how: np.ufunc, values: np.ndarray) -> np.ndarray:
        """The minimum or maximum of (..., n) values in each response, as `responses` orders
        them."""
        rows, starts = self._response_rows
        inside = values[..., rows]
        reduced: np.ndarray = how.reduceat(inside, starts, axis=-1) if len(starts) else inside
        return reduced

    @cached_property
    def response_index(self) -> np.ndarray:
        """int64 (n,): the position of each claim's response in `responses`; -1 if the claim belongs
        to none."""
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
        """The claims or responses in the groups that the *claims* have, so that a data set without
        any response is still seen.

        by: columns of the claims; of responses the data set alone. systems: split each group by
        system; claims without a system are then in no group. Raises `UsageError` for an unknown
        level or column.
        """
        key = ("groups", level, tuple(by), systems)
        return self.compute_once(key, lambda: self._make_groups(level, by, systems))

    def _make_groups(self, level: str, by: Sequence[str], systems: bool) -> ClaimGroups:
        units, groups = self.at_level(level), group_claims_by_columns(self.claims, by)
        if level == "response":
            alone = np.isin(np.arange(len(groups.keys)), groups.codes[self.response_index < 0])
            codes = self.reduce_responses(np.minimum, groups.codes)
            groups = ClaimGroups(codes, groups.keys, level, alone)
        return split_claim_groups_by_column(groups, units.claims, "system") if systems else groups

    def tally(self, groups: ClaimGroups, *fields: int) -> Tally:
        """Count the claims or responses of each group by `LABEL`, or by the predictions of
        evaluators (given by their positions). Each count is made once and kept, because several
        audits ask for it."""
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
        """Count by any k values, int8 (n,) each, which are 0, 1 or -1. stated: the same values
        without guesses."""
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

    def compute_once(self, key: tuple[Any, ...], compute: Callable[[], T]) -> T:
        """A value that several audits ask for, computed for the first of them and then kept. Groups
        are told apart by identity."""
        if key not in self.cache:
            self.cache[key] = compute()
        found: T = self.cache[key]
        return found

    # ---- arrays

    @property
    def dataset_codes(self) -> np.ndarray:
        """int64 (n,): the position of each row's dataset in `dataset_names`."""
        return self._dataset_codes_and_names[0]

    @cached_property
    def _dataset_codes_and_names(self) -> tuple[np.ndarray, list[str]]:
        return encode_claim_group_column(self.claims, "dataset")

    @cached_property
    def cluster_codes(self) -> np.ndarray:
        """int64 (n,): the cluster of each row, that is, what is resampled together. It is the
        document if there is one, else the response.

        A claim with neither is a cluster of its own, and so is a response whose claims name several
        documents. No cluster spans datasets. The codes follow the names, not the order of the rows.
        """
        document, documents = self._document_codes_and_names
        answered = self.claims["response_id"].notna().to_numpy()
        response = self._response_codes
        # A response that names several documents (such as a passage for each atomic fact) must stay
        # in one cluster.
        named = pd.Series(document).groupby(np.where(answered, response, -1))
        is_single = (named.transform("min") == named.transform("max")).to_numpy() | ~answered
        by_document = is_single & (document < len(documents) - (None in documents))
        kind = np.where(by_document, 0, np.where(answered, 1, 2))
        which = np.where(by_document, document, response)
        lone = np.flatnonzero(kind == 2)
        # Responses all have a response_id, so these rows are claims, which have an id.
        if len(lone):
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
        """The rows of all claims that belong to a response, ordered by response, and the position
        at which each response begins."""
        inside = np.flatnonzero(find_claims_in_responses(self.claims, self._response_codes))
        member = self._response_codes[inside]
        order = np.argsort(member, kind="stable")
        return inside[order], np.flatnonzero(np.diff(member[order], prepend=-1))

    @cached_property
    def _response_codes(self) -> np.ndarray:
        """int64 (n,): the response of each claim; without meaning if a claim has no response_id."""
        codes = self.dataset_codes
        for column in ("system", "response_id"):
            values, names = encode_claim_group_column(self.claims, column)
            codes = encode_distinct_integer_pairs(codes, values, len(names))[1]
        return codes


def name_documents(claims: pd.DataFrame) -> pd.Series:
    """The document of each claim: its doc_id, else a hash of its text; null if it has neither.

    So claims of one document share it even where documents have no ids. Without this, ten claims of
    one document would count as ten independent observations, and 95 % intervals would cover the
    true value in 77 % of runs. A text with an id in one row and without one in another is two
    documents.
    """
    named = claims["doc_id"].astype(object).where(claims["doc_id"].notna(), None)
    if "doc" not in claims or named.notna().all():
        return named
    numbers, texts = encode_distinct_documents(claims["doc"])
    hashes = list(map(_hash_document, texts))
    of_row = np.array([*hashes, None], dtype=object)[numbers]
    return named.where(named.notna(), pd.Series(of_row, index=claims.index, dtype=object))


def _hash_document(text: str) -> str | None:
    """A name for a document without an id, which is the same in every table with this text."""
    if not text.strip() or is_text_placeholder(text):
        return None
    data = text.encode("utf-8", "surrogatepass")
    return f"text {hashlib.md5(data, usedforsecurity=False).hexdigest()}"


def split_empty_responses(claims: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The claims, and the rows that stand for responses without any claim."""
    lone = claims["abstained"].notna()
    if lone.any():
        return claims[~lone].reset_index(drop=True), claims[lone]
    # The columns are not kept either: even an empty slice of the column of documents holds all
    # documents in memory.
    return claims, claims.iloc[:0].astype(object)


class VerdictArrays:
    """What E evaluators said of n claims, filled block by block.

    repeats: for each number of a repeat its predictions and statuses, int8 (2, E, n).
    """

    def __init__(self, evaluators: Sequence[str], n_claims: int) -> None:
        self.evaluators = tuple(evaluators)
        self.score = np.full((len(self.evaluators), n_claims), np.nan)
        self.grade: np.ndarray | None = None
        self.repeats = {0: self._make_repeat()}

    def _make_repeat(self) -> np.ndarray:
        return np.full((2, *self.score.shape), MISSING, dtype=np.int8)

    def add(self, rows: np.ndarray, verdicts: pd.DataFrame) -> np.ndarray:
        """Take in validated verdicts of the claims at these rows. Returns which of them are about a
        claim that already has a verdict of the same evaluator and repeat.

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
        """The judgements, together with the claims and the rows of responses without any claim."""
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
