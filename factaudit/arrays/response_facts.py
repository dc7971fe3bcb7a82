"""The facts of responses, and what people and an evaluator say of each response, as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.arrays.response_means import response_length_penalty
from factaudit.stats.undefined_values import divide_or_undefined
from factaudit.tables import STATUSES

_OK, _UNPARSED, _SKIPPED = (STATUSES.index(name) for name in ("ok", "unparsed", "skipped"))
_RESPONSE_KEYS = ["dataset", "system", "response_id"]
#: Of a response, how much people found supported, not supported and irrelevant (of the same in all its rows).
HUMAN_FACT_COUNTS = ("human_supported", "human_not_supported", "human_irrelevant")
#: What becomes of facts that people found irrelevant: left out, or counted as not supported.
IRRELEVANT_RULES = ("exclude", "unsupported")


@dataclass(frozen=True)
class ResponseFacts:
    """F facts of R responses; a fact may have several rows of the claims table (one per candidate entity).

    responses: R rows of dataset, system, response_id (sorted by these, so that no figure depends on the order of the
    input's rows), abstained (bool), and `HUMAN_FACT_COUNTS` (NaN: not annotated).
    first_rows: int (F,), the first row of each fact. response: int (F,). fact_of_claim: int (n,), the fact of each
    claim, -1: none. label: int8 (F,), as in `Judgements`. is_decomposed: bool (F,), False of a sentence that was not
    decomposed, and stands for its facts (``undecomposed`` is 1 in the claims table).
    """

    responses: pd.DataFrame
    first_rows: np.ndarray
    response: np.ndarray
    fact_of_claim: np.ndarray
    label: np.ndarray
    is_decomposed: np.ndarray

    def responses_by_system(self) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
        """dataset and system with their responses (bool (R,)); ``__all__`` first where a dataset has several."""
        dataset, system = self.responses["dataset"].to_numpy(), self.responses["system"].to_numpy()
        for name in dict.fromkeys(dataset):
            inside = dataset == name
            found = list(dict.fromkeys(system[inside]))
            if len(found) > 1:
                yield {"dataset": name, "system": ALL_TOGETHER}, inside
            for one in found:
                yield {"dataset": name, "system": one}, inside & (system == one)

    def count_facts_of_responses(self, which: np.ndarray) -> np.ndarray:
        """How many of these facts (bool (F,)) each response has: int64 (R,)."""
        return np.bincount(self.response[which], minlength=len(self.responses))

    def human_scores(self, irrelevant: str) -> np.ndarray:
        """People's scores: float64 (R,), S / (S + NS), or S / (S + NS + IR); NaN without such a fact."""
        supported, not_supported, beside = (self.responses[name].to_numpy() for name in HUMAN_FACT_COUNTS)
        return divide_or_undefined(
            supported, supported + not_supported + (beside if irrelevant == "unsupported" else 0)
        )


@dataclass(frozen=True)
class ResponseFactScores:
    """What one evaluator says of F facts and R responses.

    prediction: int8 (F,), -1: unscored. fact_score: float64 (F,), NaN: none. figures: of each response score,
    init_score, score (with the length penalty), and their least and greatest over what is unscored or guessed;
    same_facts and same_facts_human, of the facts that both people and the evaluator judged: float64 (R,), NaN where
    there is no such fact, or nothing was asked. n_facts, n_supported, n_unscored, n_unparsed: int64 (R,).
    """

    prediction: np.ndarray
    fact_score: np.ndarray
    figures: dict[str, np.ndarray]
    n_facts: np.ndarray
    n_supported: np.ndarray
    n_unscored: np.ndarray
    n_unparsed: np.ndarray


def collect_response_facts(judgements: Judgements) -> ResponseFacts:
    """The facts of a claims table: of equal (dataset, system, response_id, fact_id), or rows without a fact_id.

    Facts that are none of the response's own (``invented`` is 1, see `factaudit.audit.dfactscore`) are left out.
    """
    claims = judgements.claims
    own = claims["response_id"].notna().to_numpy()
    if "invented" in claims:
        own = own & (claims["invented"] != 1).to_numpy(dtype=bool, na_value=True)
    inside = np.flatnonzero(own)
    answered = claims.iloc[inside]
    both = pd.concat(
        [answered[_RESPONSE_KEYS], judgements.empty_responses.reindex(columns=_RESPONSE_KEYS)], ignore_index=True
    )
    codes = both.groupby(_RESPONSE_KEYS, dropna=False).ngroup().to_numpy()
    owner, silent = codes[: len(inside)], codes[len(inside) :]
    first = np.unique(codes, return_index=True)[1]
    responses = both.iloc[first].astype(object).where(both.iloc[first].notna(), None).reset_index(drop=True)
    abstained = np.zeros(len(responses), dtype=bool)
    if len(silent):
        abstained[silent] = (judgements.empty_responses["abstained"] == 1).to_numpy(dtype=bool)
    responses["abstained"] = abstained
    # A row without a fact_id is a fact of its own. ("\0" would not do: pandas 2 reads a text up to the first.)
    ids = answered["fact_id"].to_numpy(dtype=object)
    fact_id = pd.Series(np.where(pd.notna(ids), ids, np.char.add("\x1f", inside.astype("U"))))
    member = pd.DataFrame({"response": owner, "fact": fact_id}).groupby(["response", "fact"], sort=False).ngroup()
    start = np.unique(member, return_index=True)[1]
    all_rows = np.full(len(claims), -1, dtype=np.int64)
    all_rows[inside] = member
    row = inside[start]
    label = judgements.label[row]
    for name, values in _count_human_response_facts(
        answered, judgements.empty_responses, owner[start], owner, silent, label, len(responses)
    ).items():
        responses[name] = values
    is_decomposed = np.ones(len(row), dtype=bool)
    if "undecomposed" in claims:
        is_decomposed = (claims["undecomposed"].iloc[row] != 1).to_numpy(dtype=bool, na_value=True)
    return ResponseFacts(responses, row, owner[start], all_rows, label, is_decomposed)


def _count_human_response_facts(
    answered_rows: pd.DataFrame,
    empty_response_rows: pd.DataFrame,
    fact_owner: np.ndarray,
    row_owner: np.ndarray,
    empty_response_codes: np.ndarray,
    label: np.ndarray,
    n_responses: int,
) -> dict[str, np.ndarray]:
    """What people found of each response: as told, else from the labels of its facts."""
    if HUMAN_FACT_COUNTS[0] in answered_rows or HUMAN_FACT_COUNTS[0] in empty_response_rows:
        found = {}
        for name in HUMAN_FACT_COUNTS:
            values = np.full(n_responses, np.nan)
            for table, owners in ((empty_response_rows, empty_response_codes), (answered_rows, row_owner)):
                if name in table and len(table):
                    values[owners] = pd.to_numeric(table[name]).to_numpy(dtype=np.float64, na_value=np.nan)
            found[name] = values
        return found
    counts = [np.bincount(fact_owner[label == value], minlength=n_responses).astype(np.float64) for value in (1, 0)]
    annotated = counts[0] + counts[1] > 0
    return dict(
        zip(
            HUMAN_FACT_COUNTS,
            (np.where(annotated, one, np.nan) for one in (*counts, np.zeros(n_responses))),
            strict=True,
        )
    )


def score_response_facts(
    facts: ResponseFacts, judgements: Judgements, evaluator: int, gamma: float
) -> ResponseFactScores:
    """The scores of responses by one evaluator; a fact is supported where one of its rows is."""
    inside = facts.fact_of_claim >= 0
    member = facts.fact_of_claim[inside]
    given, status = judgements.prediction[evaluator][inside], judgements.status[evaluator][inside]
    n, count = len(facts.first_rows), facts.count_facts_of_responses
    # Of equal facts: supported before unscored before not supported.
    rank = np.zeros(n, dtype=np.int8)
    np.maximum.at(rank, member, np.array([0, 2, 1], dtype=np.int8)[given])
    prediction = np.array([0, MISSING, 1], dtype=np.int8)[rank]
    fact_score = np.full(n, np.nan)
    np.fmax.at(fact_score, member, judgements.score[evaluator][inside])

    def any_of(rows: np.ndarray) -> np.ndarray:
        return np.bincount(member[rows], minlength=n) > 0

    sure = (given == 1) & (status == _OK)
    unsure = (given == MISSING) | (status != _OK)
    n_facts, n_supported = count(np.ones(n, dtype=bool)), count(prediction == 1)
    asked = count(any_of((given != MISSING) | ((status >= 0) & (status != _SKIPPED)))) > 0
    shares = {
        "init_score": np.where(asked, divide_or_undefined(n_supported, n_facts), np.nan),
        "init_score_min": divide_or_undefined(count(any_of(sure)), n_facts),
        "init_score_max": divide_or_undefined(count(any_of(sure | unsure)), n_facts),
    }
    # Like for like: of the facts that people labelled and the evaluator scored, both shares.
    both = (facts.label >= 0) & (prediction != MISSING)
    shares["same_facts"] = divide_or_undefined(count(both & (prediction == 1)), count(both))
    shares["same_facts_human"] = divide_or_undefined(count(both & (facts.label == 1)), count(both))
    factor = np.array([response_length_penalty(number, gamma) for number in n_facts.tolist()])
    figures = {name.removeprefix("init_"): factor * values for name, values in shares.items()} | shares
    unparsed = count(any_of(status == _UNPARSED))
    return ResponseFactScores(
        prediction, fact_score, figures, n_facts, n_supported, count(prediction == MISSING), unparsed
    )


def has_response_facts(judgements: Judgements) -> bool:
    """Whether the claims are the atomic facts of responses: they say which fact, or which response abstained."""
    claims = judgements.claims
    return bool(len(judgements.empty_responses)) or bool(
        (claims["fact_id"].notna() & claims["response_id"].notna()).any()
    )


def has_human_response_facts(judgements: Judgements) -> bool:
    """Whether, besides, people said something of them."""
    return has_response_facts(judgements) and (
        HUMAN_FACT_COUNTS[0] in judgements.claims or bool((judgements.label >= 0).any())
    )
