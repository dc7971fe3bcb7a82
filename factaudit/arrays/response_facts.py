"""The atomic facts of responses, and what people and an evaluator say of each response, as arrays
(Min et al. 2023)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.arrays.response_means import DEFAULT_GAMMA, length_penalty, number_clusters
from factaudit.stats.undefined_values import divide_or_undefined
from factaudit.tables import STATUSES

_OK, _UNPARSED, _SKIPPED = (STATUSES.index(name) for name in ("ok", "unparsed", "skipped"))
_RESPONSE = ["dataset", "system", "response_id"]
#: Of a response, how many facts people found supported, not supported and irrelevant (the same in
#: all its rows).
HUMAN_FACT_COUNTS = ("human_supported", "human_not_supported", "human_irrelevant")


@dataclass(frozen=True)
class ResponseFacts:
    """F facts of R responses; a fact may have several rows of the claims table (one per candidate
    entity).

    responses: R rows of dataset, system, response_id (sorted by these, so that no figure depends on
    the order of the input's rows), topic, abstained (bool), and `HUMAN_FACT_COUNTS` (NaN: not
    annotated).
    first_rows: int (F,), the first row of each fact. response: int (F,). fact_of_claim: int (n,),
    the fact of each claim, -1: none. label: int8 (F,), as in `Judgements`. is_decomposed: bool
    (F,), False of a sentence that was not decomposed, and stands for its facts (``undecomposed`` is
    1 in the claims table).
    """

    responses: pd.DataFrame
    first_rows: np.ndarray
    response: np.ndarray
    fact_of_claim: np.ndarray
    label: np.ndarray
    is_decomposed: np.ndarray

    def responses_by_system(self) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
        """dataset and system with their responses (bool (R,)); ``__all__`` first where a dataset
        has several."""
        dataset, system = self.responses["dataset"].to_numpy(), self.responses["system"].to_numpy()
        for name in dict.fromkeys(dataset):
            inside = dataset == name
            found = list(dict.fromkeys(system[inside]))
            if len(found) > 1:
                yield {"dataset": name, "system": ALL_TOGETHER}, inside
            for one in found:
                yield {"dataset": name, "system": one}, inside & (system == one)

    def clusters(self, judgements: Judgements) -> np.ndarray:
        """Which responses may be alike: those about one topic; without topics, those about one
        document. int (R,)."""
        names: list[str | None] = [None] * len(self.responses)
        for response, row in zip(self.response, self.first_rows, strict=True):
            names[response] = names[response] or f"document {judgements.cluster_codes[row]}"
        topics = self.responses["topic"]
        return number_clusters(topic or name for topic, name in zip(topics, names, strict=True))

    def count(self, which: np.ndarray) -> np.ndarray:
        """How many of these facts (bool (F,)) each response has: int64 (R,)."""
        return np.bincount(self.response[which], minlength=len(self.responses))

    def human_scores(self, irrelevant: str) -> np.ndarray:
        """People's scores: float64 (R,), S / (S + NS); where irrelevant facts are ``unsupported``,
        S / (S + NS + IR).

        NaN without such a fact.
        """
        supported, not_supported, beside = (
            self.responses[name].to_numpy() for name in HUMAN_FACT_COUNTS
        )
        return divide_or_undefined(
            supported, supported + not_supported + (beside if irrelevant == "unsupported" else 0)
        )


@dataclass(frozen=True)
class ResponseFactScores:
    """What one evaluator says of R responses.

    figures: of each response init_score (supported / facts), score (with the length penalty), and
    their least and greatest over what is unscored or guessed; same_facts and same_facts_human, the
    shares supported by the evaluator and by people of the facts that both judged: float64 (R,), NaN
    where there is no such fact, or nothing was asked. n_facts, n_supported, n_unscored, n_unparsed:
    int64 (R,).
    """

    figures: dict[str, np.ndarray]
    n_facts: np.ndarray
    n_supported: np.ndarray
    n_unscored: np.ndarray
    n_unparsed: np.ndarray


def collect_response_facts(judgements: Judgements) -> ResponseFacts:
    """The facts of a claims table: of equal (dataset, system, response_id, fact_id), or rows
    without a fact_id.

    Facts that are none of the response's own (``invented`` is 1, `factaudit.arrays.biographies`)
    are left out.
    """
    claims, silent = judgements.claims, judgements.empty_responses
    is_own = claims["response_id"].notna()
    if "invented" in claims:
        is_own &= (claims["invented"] != 1).fillna(True)
    rows = np.flatnonzero(is_own)
    columns = [*_RESPONSE, "topic", "fact_id", "undecomposed", "abstained", *HUMAN_FACT_COUNTS]
    table = pd.concat(
        [claims.reindex(columns=columns).iloc[rows], silent.reindex(columns=columns)]
    ).astype(object)
    by_response = table.groupby(_RESPONSE, dropna=False)
    owner = by_response.ngroup().to_numpy()[: len(rows)]
    responses = by_response[["topic", "abstained", *HUMAN_FACT_COUNTS]].first().reset_index()
    responses[[*_RESPONSE, "topic"]] = (
        responses[[*_RESPONSE, "topic"]].astype(object).where(responses.notna(), None)
    )
    responses["abstained"] = (responses["abstained"] == 1).to_numpy(dtype=bool)
    # A row without a fact_id is a fact of its own. ("\0" would not do: pandas 2 reads a text up to
    # the first.)
    ids = table["fact_id"].to_numpy(dtype=object)[: len(rows)]
    ids = np.where(pd.notna(ids), ids, np.char.add("\x1f", rows.astype("U")))
    member = (
        pd.DataFrame({"response": owner, "fact": ids})
        .groupby(["response", "fact"], sort=False)
        .ngroup()
    )
    start = np.unique(member, return_index=True)[1]
    fact_of_claim = np.full(len(claims), -1, dtype=np.int64)
    fact_of_claim[rows] = member
    label, response = judgements.label[rows[start]], owner[start]
    if HUMAN_FACT_COUNTS[0] in claims or HUMAN_FACT_COUNTS[0] in silent:
        counts = [
            pd.to_numeric(responses[name]).to_numpy(np.float64, na_value=np.nan)
            for name in HUMAN_FACT_COUNTS
        ]
    else:
        n_labels = [
            np.bincount(response[label == value], minlength=len(responses)) for value in (1, 0, 2)
        ]
        counts = [np.where(n_labels[0] + n_labels[1] > 0, count, np.nan) for count in n_labels]
    responses[list(HUMAN_FACT_COUNTS)] = np.stack(counts, axis=1)
    is_decomposed = table["undecomposed"].to_numpy(dtype=object)[: len(rows)][start] != 1
    return ResponseFacts(
        responses, rows[start], response, fact_of_claim, label, is_decomposed.astype(bool)
    )


def score_response_facts(
    facts: ResponseFacts, judgements: Judgements, evaluator: int, gamma: float = DEFAULT_GAMMA
) -> ResponseFactScores:
    """The scores of responses by one evaluator; a fact is supported where one of its rows is."""
    inside = facts.fact_of_claim >= 0
    member, n = facts.fact_of_claim[inside], len(facts.first_rows)
    given, status = judgements.prediction[evaluator][inside], judgements.status[evaluator][inside]

    def of_facts(rows: np.ndarray) -> np.ndarray:
        """The facts that have one of these rows: bool (F,)."""
        return np.bincount(member[rows], minlength=n) > 0

    supported = of_facts(given == 1)
    unscored = of_facts(given == MISSING) & ~supported
    is_guess = (given == MISSING) | (status != _OK)
    n_facts, n_supported = facts.count(np.ones(n, dtype=bool)), facts.count(supported)
    asked = facts.count(of_facts((given != MISSING) | ((status >= 0) & (status != _SKIPPED)))) > 0
    shares = {
        "init_score": np.where(asked, divide_or_undefined(n_supported, n_facts), np.nan),
        "init_score_min": divide_or_undefined(
            facts.count(of_facts((given == 1) & ~is_guess)), n_facts
        ),
        "init_score_max": divide_or_undefined(
            facts.count(of_facts((given == 1) | is_guess)), n_facts
        ),
    }
    penalty = length_penalty(n_facts, gamma)
    figures = {
        name.removeprefix("init_"): penalty * values for name, values in shares.items()
    } | shares
    # Like for like: of the facts that people labelled and the evaluator scored, both shares.
    both = (facts.label != MISSING) & ~unscored
    for name, is_supported in (("same_facts", supported), ("same_facts_human", facts.label == 1)):
        figures[name] = divide_or_undefined(facts.count(both & is_supported), facts.count(both))
    unparsed = facts.count(of_facts(status == _UNPARSED))
    return ResponseFactScores(figures, n_facts, n_supported, facts.count(unscored), unparsed)


def has_response_facts(judgements: Judgements) -> bool:
    """Whether the claims are the atomic facts of responses: they say which fact, or which response
    abstained."""
    claims = judgements.claims
    return bool(len(judgements.empty_responses)) or bool(
        (claims["fact_id"].notna() & claims["response_id"].notna()).any()
    )


def has_human_response_facts(judgements: Judgements) -> bool:
    """Whether, besides, people said something of them."""
    return has_response_facts(judgements) and (
        HUMAN_FACT_COUNTS[0] in judgements.claims or bool((judgements.label >= 0).any())
    )
