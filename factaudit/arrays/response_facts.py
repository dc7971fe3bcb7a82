"""Which atomic facts do responses consist of, and what do people and an evaluator say of each
response? As arrays (Min et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.arrays.response_means import DEFAULT_GAMMA, length_penalty, number_clusters
from factaudit.stats import divide_or_undefined
from factaudit.tables import STATUSES

_OK, _UNPARSED, _SKIPPED = (STATUSES.index(name) for name in ("ok", "unparsed", "skipped"))
_RESPONSE = ["dataset", "system", "response_id"]
#: The numbers of facts of a response that people found supported, not supported and irrelevant.
#: They are the same in all rows of the response.
HUMAN_FACT_COUNTS = ("human_supported", "human_not_supported", "human_irrelevant")


@dataclass(frozen=True)
class ResponseFacts:
    """F facts of R responses. A fact may have several rows of the claims table, one for each
    candidate entity.

    responses: R rows with dataset, system, response_id (sorted by these three, so that no figure
    depends on the order of the input's rows), topic, abstained (bool), `HUMAN_FACT_COUNTS` (NaN if
    not annotated) and cluster (int). Responses about one topic may resemble each other, so they are
    a cluster; without topics, responses about one document are. first_rows: int (F,), the first row
    of each fact. response: int (F,). fact_of_claim: int (n,), the fact of each claim, -1 for none.
    label: int8 (F,), 1 if one of the fact's rows has the label 1, else 0 if one has the label 0,
    else -1. is_decomposed: bool (F,), False for a sentence that could not be decomposed and stands
    for its facts (``undecomposed`` is 1 in the claims table).
    """

    responses: pd.DataFrame
    first_rows: np.ndarray
    response: np.ndarray
    fact_of_claim: np.ndarray
    label: np.ndarray
    is_decomposed: np.ndarray

    def count(self, which: np.ndarray) -> np.ndarray:
        """The number of these facts (bool (F,)) in each response: int64 (R,)."""
        return np.bincount(self.response[which], minlength=len(self.responses))

    def human_scores(self, irrelevant: str) -> np.ndarray:
        """The scores by people, float64 (R,): S / (S + NS), or S / (S + NS + IR) if irrelevant
        facts count as ``unsupported``.

        NaN if a response has no such fact.
        """
        supported, not_supported, beside = self.responses[list(HUMAN_FACT_COUNTS)].to_numpy().T
        judged = supported + not_supported + (beside if irrelevant == "unsupported" else 0)
        return divide_or_undefined(supported, judged)


def collect_response_facts(judgements: Judgements) -> ResponseFacts:
    """The facts of a claims table. Rows with equal (dataset, system, response_id, fact_id) are one
    fact; so is each row without a fact_id.

    Facts that are not the response's own (``invented`` is 1, see `factaudit.arrays.biographies`)
    are left out.
    """
    claims, silent = judgements.claims, judgements.empty_responses
    columns = [*_RESPONSE, "topic", "fact_id", "undecomposed", "abstained", *HUMAN_FACT_COUNTS]
    table = claims.reindex(columns=[*columns, "invented"])
    rows = np.flatnonzero(table["response_id"].notna() & ~(table["invented"] == 1).fillna(False))
    own = table.iloc[rows]
    both = pd.concat([own, silent.reindex(columns=columns)])[columns].astype(object)
    by_response = both.groupby(_RESPONSE, dropna=False)
    owner = by_response.ngroup().to_numpy()[: len(rows)]
    responses = by_response[["topic", "abstained", *HUMAN_FACT_COUNTS]].first().reset_index()
    names = [*_RESPONSE, "topic"]
    responses[names] = responses[names].astype(object).where(responses[names].notna(), None)
    responses["abstained"] = (responses["abstained"] == 1).to_numpy(dtype=bool)
    # A row without a fact_id is a fact of its own. ("\0" cannot mark it: pandas 2 reads a text only
    # up to the first "\0".)
    ids = own["fact_id"].to_numpy(dtype=object)
    ids = np.where(pd.notna(ids), ids, np.char.add("\x1f", rows.astype("U")))
    pairs = pd.DataFrame({"response": owner, "fact": ids})
    member = pairs.groupby(["response", "fact"], sort=False).ngroup()
    start = np.unique(member, return_index=True)[1]
    fact_of_claim = np.full(len(claims), -1, dtype=np.int64)
    fact_of_claim[rows] = member
    first, response = rows[start], owner[start]
    document = pd.Series(judgements.cluster_codes[first]).groupby(response).first()
    document = document.reindex(responses.index).astype(object)
    responses["cluster"] = number_clusters(
        responses["topic"].where(responses["topic"].notna(), document)
    )
    # A fact that people found true of one person and false of another is supported.
    label = np.full(len(first), MISSING, dtype=np.int8)
    np.maximum.at(label, member, judgements.label[rows])
    if HUMAN_FACT_COUNTS[0] in claims or HUMAN_FACT_COUNTS[0] in silent:
        for name in HUMAN_FACT_COUNTS:
            responses[name] = pd.to_numeric(responses[name]).to_numpy(np.float64, na_value=np.nan)
    else:
        # Labels do not say which facts are irrelevant.
        n_supported, n_not_supported = (
            np.bincount(response[label == value], minlength=len(responses)) for value in (1, 0)
        )
        is_labelled = n_supported + n_not_supported > 0
        counts = (n_supported, n_not_supported, np.zeros_like(n_supported))
        for name, count in zip(HUMAN_FACT_COUNTS, counts, strict=True):
            responses[name] = np.where(is_labelled, count, np.nan)
    is_decomposed = own["undecomposed"].to_numpy(dtype=object)[start] != 1
    return ResponseFacts(
        responses, first, response, fact_of_claim, label, is_decomposed.astype(bool)
    )


def score_response_facts(
    facts: ResponseFacts, judgements: Judgements, evaluator: int, gamma: float = DEFAULT_GAMMA
) -> pd.DataFrame:
    """What one evaluator says of the R responses. A fact is supported if one of its rows is.

    Columns: n_facts, n_supported, n_unscored, n_unparsed; init_score (supported / facts) and score
    (with the length penalty), each with the least and the greatest value that unscored and guessed
    verdicts allow (``_min``, ``_max``); same_facts and same_facts_human, the shares that the
    evaluator and people support among the facts that both judged. NaN if there is no such fact, or
    if nothing was asked.
    """
    inside = facts.fact_of_claim >= 0
    member, n = facts.fact_of_claim[inside], len(facts.first_rows)
    given = judgements.prediction[evaluator][inside]
    status = judgements.status[evaluator][inside]

    def of_facts(rows: np.ndarray) -> np.ndarray:
        """bool (F,): the facts that have one of these rows."""
        return np.bincount(member[rows], minlength=n) > 0

    supported = of_facts(given == 1)
    unscored = of_facts(given == MISSING) & ~supported
    is_guess = (given == MISSING) | (status != _OK)
    is_asked = (given != MISSING) | ((status >= 0) & (status != _SKIPPED))
    n_facts, n_supported = facts.count(np.ones(n, dtype=bool)), facts.count(supported)
    found = {
        "n_facts": n_facts,
        "n_supported": n_supported,
        "n_unscored": facts.count(unscored),
        "n_unparsed": facts.count(of_facts(status == _UNPARSED)),
    }
    shares = {
        "score": np.where(facts.count(of_facts(is_asked)) > 0, n_supported, np.nan),
        "score_min": facts.count(of_facts((given == 1) & ~is_guess)),
        "score_max": facts.count(of_facts((given == 1) | is_guess)),
    }
    for name, count in shares.items():
        found[f"init_{name}"] = divide_or_undefined(count, n_facts)
        found[name] = length_penalty(n_facts, gamma) * found[f"init_{name}"]
    # Both shares are over the same facts: those that people labelled and the evaluator scored.
    both = (facts.label != MISSING) & ~unscored
    for name, is_supported in (("same_facts", supported), ("same_facts_human", facts.label == 1)):
        found[name] = divide_or_undefined(facts.count(both & is_supported), facts.count(both))
    return pd.DataFrame(found)


def has_response_facts(judgements: Judgements) -> bool:
    """Whether the claims are atomic facts of responses: they name the fact, or say that the
    response abstained."""
    claims = judgements.claims
    return bool(len(judgements.empty_responses)) or bool(
        (claims["fact_id"].notna() & claims["response_id"].notna()).any()
    )


def has_human_response_facts(judgements: Judgements) -> bool:
    """Whether the claims are atomic facts, and people judged some of them."""
    return has_response_facts(judgements) and (
        HUMAN_FACT_COUNTS[0] in judgements.claims or bool((judgements.label >= 0).any())
    )
