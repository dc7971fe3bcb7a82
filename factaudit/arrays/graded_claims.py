"""Grades of people and of evaluators on the same claims, as numbers: what audits of grades compute on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import Judgements
from factaudit.errors import UsageError, suggest_known_name
from factaudit.tables import STATUSES, find_claim_positions_in_table
from factaudit.tables.schema import GRADE_COLUMN


@dataclass(frozen=True)
class GradedClaims:
    """The n claims of one dataset that people graded; cluster by cluster, in an order that the grades alone make.

    people: float64 (n,), the claim's grade: its own, else the lower median of its annotators'. evaluators: float64
    (E, n), NaN where one gave none. cluster: int64 (n,). Of the r grades of annotators of claims that several graded:
    annotated: int64 (r,), the claim; own: float64 (r,), the grade; others: float64 (r,), the lower median of the others
    of the claim.
    """

    dataset: str
    people: np.ndarray
    evaluators: np.ndarray
    cluster: np.ndarray
    annotated: np.ndarray
    own: np.ndarray
    others: np.ndarray

    def check_people_on_scale(self, scale: tuple[float, float] | None) -> None:
        """Raise `UsageError` where people gave grades outside of a scale (lowest, highest)."""
        low, high = self.people.min(), self.people.max()
        if scale is not None and not (scale[0] <= low and high <= scale[1]):
            found = f"{low:g} to {high:g} on {self.dataset}"
            raise UsageError(f"grades: expected people's grades from {scale[0]:g} to {scale[1]:g}, found {found}")

    def find_common_scale(self, evaluator: int, scale: tuple[float, float] | None) -> tuple[float, float] | None:
        """The ends of the scale that people and an evaluator share; None where that is not known.

        scale: what the user says; else both have the same lowest and the same highest grade.
        """
        given = self.evaluators[evaluator]
        if np.isnan(given).all():
            return None
        low, high = float(np.nanmin(given)), float(np.nanmax(given))
        if scale is not None:
            return scale if scale[0] <= low and high <= scale[1] else None
        return (low, high) if low < high and (low, high) == (self.people.min(), self.people.max()) else None


def has_people_grades(judgements: Judgements) -> bool:
    """Whether people gave three different numbers or more; words have no order."""
    given = [judgements.claims[GRADE_COLUMN]] if GRADE_COLUMN in judgements.claims else []
    if judgements.annotations is not None and GRADE_COLUMN in judgements.annotations:
        given.append(judgements.annotations[GRADE_COLUMN])
    different = [one.dropna().drop_duplicates() for one in given]
    numbers = [pd.to_numeric(one, errors="coerce") for one in different]
    return not any(one.isna().any() for one in numbers) and len({value for one in numbers for value in one}) > 2


def choose_evaluator_grade_fields(judgements: Judgements) -> list[str]:
    """Of each evaluator what is taken for its grades: its ``grade`` where it gives some, else its ``score``."""
    grade = judgements.grade
    graded = np.zeros(len(judgements.evaluators), dtype=bool) if grade is None else ~np.isnan(grade).all(1)
    return ["grade" if one else "score" for one in graded]


def collect_graded_claims(judgements: Judgements, order: Sequence[str] | None) -> list[GradedClaims]:
    """The graded claims of each dataset that has some.

    order: people's grades from the lowest to the highest, where they are words: then they count 1, 2, 3, ... A grade or
    score of a verdict whose status is not ok is none. Raises `UsageError` for a word that ``order`` lacks.
    """
    people = np.full(len(judgements.claims), np.nan)
    if GRADE_COLUMN in judgements.claims:
        people = _parse_grades_as_numbers(judgements.claims[GRADE_COLUMN], order)
    at, own = _list_annotator_grades(judgements, order)
    median = np.full(len(people), np.nan)
    count = np.bincount(at, minlength=len(people))
    first = np.cumsum(count) - count
    median[count > 0] = own[(first + (count - 1) // 2)[count > 0]]
    people = np.where(np.isnan(people), median, people)
    is_ok = judgements.status == STATUSES.index("ok")
    measures = choose_evaluator_grade_fields(judgements)
    given = [
        judgements.grade[place] if judgements.grade is not None and measure == "grade" else judgements.score[place]
        for place, measure in enumerate(measures)
    ]
    evaluators = np.where(is_ok, np.array(given).reshape(is_ok.shape), np.nan)
    # Sums of numbers round by their order: rows that are equal in all that is summed may stand in any.
    sums = [np.bincount(at, own**power, len(people)) for power in (1, 2)]
    rows = np.lexsort((*sums, *evaluators, people, judgements.cluster_codes))
    rows = rows[~np.isnan(people[rows])]
    dataset = judgements.dataset_codes[rows]
    ends = np.searchsorted(dataset, np.arange(len(judgements.dataset_names) + 1))  # no cluster spans datasets
    rank = np.full(len(people), -1, dtype=np.int64)
    rank[rows] = np.arange(len(rows))
    several = count[at] > 1
    others = _find_lower_median_of_others(own, (np.arange(len(at)) - first[at]), first[at], count[at])
    annotated, own, others = rank[at[several]], own[several], others[several]
    sorted_rows = np.lexsort((own, annotated))
    annotated, own, others = annotated[sorted_rows], own[sorted_rows], others[sorted_rows]
    found = []
    for name, start, stop in zip(judgements.dataset_names, ends, ends[1:], strict=False):
        if stop > start:
            mine, part = rows[start:stop], slice(*np.searchsorted(annotated, (start, stop)))
            each = (people[mine], evaluators[:, mine], judgements.cluster_codes[mine])
            found.append(GradedClaims(name, *each, annotated[part] - start, own[part], others[part]))
    return found


def _parse_grades_as_numbers(values: pd.Series, order: Sequence[str] | None) -> np.ndarray:
    """float64 (n,): numbers, or the places of words in ``order``; NaN where there is none."""
    codes, different = pd.factorize(values)
    numbers = []
    for value in different:
        if order:
            if str(value) not in order:
                raise UsageError(f"grades: {str(value)!r} is not in order{suggest_known_name(str(value), list(order))}")
            numbers.append(list(order).index(str(value)) + 1.0)
            continue
        try:
            numbers.append(float(value))
        except ValueError:
            known = f"order: [{', '.join(sorted(map(str, different)))}]"
            message = f"grades: people's grades are words ({str(value)!r}): name them from the lowest to the highest"
            raise UsageError(f"{message}, as an option ({known}, in the right order)") from None
    return np.array([*numbers, np.nan])[codes]


def _list_annotator_grades(judgements: Judgements, order: Sequence[str] | None) -> tuple[np.ndarray, np.ndarray]:
    """The claim's row and the number of each grade of an annotator, claim by claim, the lowest first."""
    table = judgements.annotations
    if table is None or GRADE_COLUMN not in table or not table[GRADE_COLUMN].notna().any():
        return np.empty(0, dtype=np.int64), np.empty(0)
    table = table.dropna(subset=GRADE_COLUMN)
    at = find_claim_positions_in_table(judgements.claims, table["claim_id"])
    own = _parse_grades_as_numbers(table[GRADE_COLUMN], order)
    rows = np.lexsort((own, at))
    return at[rows], own[rows]


def _find_lower_median_of_others(
    own: np.ndarray, place: np.ndarray, first: np.ndarray, count: np.ndarray
) -> np.ndarray:
    """Of each grade, sorted within its claim, the lower median of the claim's others; of no meaning where it is alone.

    place: which of its claim's grades it is; first: where these begin; count: how many they are.
    """
    middle = np.maximum(count - 2, 0) // 2
    return own[np.minimum(first + middle + (place <= middle), len(own) - 1)]
