"""FActScore: the share of a response's atomic facts that are supported (Min et al. 2023, §3; penalty: its code)."""

from __future__ import annotations

import numpy as np

from factaudit.audit.core.declare import Audit, Column, shared
from factaudit.audit.core.facts import Facts, Scores, applies, facts_of, scores_of
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.means import GAMMA, averaged, mean
from factaudit.audit.core.plot import DotPlot
from factaudit.audit.core.rows import Row, number, ratio


def factscore(judged: Judged, *, gamma: float = GAMMA, intervals: Intervals | None = None) -> list[Row]:
    """FActScore of each system: a row per evaluator, dataset and system; first ``__all__`` where there are several.

    A fact is a claim with a ``response_id`` (rows of one ``fact_id`` are one fact, supported where one of them is). The
    score of a response is penalty × supported / facts, penalty = exp(1 - γ/n) where n < γ = ``gamma``, else 1; a fact
    without a verdict counts as not supported, so that no failure raises a score. The row: ``score`` and ``init_score``
    (without the penalty), unweighted means over the n_scored responses that answered and of which at least one fact
    was put to the evaluator; ``_min`` and ``_max`` let what is unscored (or guessed) be all unsupported or all
    supported, and a response of which nothing was asked score 0 or 1 (n_unscored_responses); intervals resample
    responses. ``respond_ratio``: the share of responses that did not abstain and said at least one fact.
    """
    facts = facts_of(judged)
    rows = []
    for at, evaluator in enumerate(judged.evaluators):
        scores = scores_of(facts, judged, at, gamma)
        for key, inside in facts.systems():
            rows.append({"dataset": key["dataset"], "evaluator": evaluator, "system": key["system"]})
            rows[-1] |= _row(facts, scores, inside, intervals)
    return rows


def _row(facts: Facts, scores: Scores, inside: np.ndarray, intervals: Intervals | None) -> Row:
    abstained = facts.responses["abstained"].to_numpy(dtype=bool)
    spoke = inside & (scores.n_facts > 0)
    scored = spoke & ~np.isnan(scores.figures["score"])
    n_spoke = int(spoke.sum())
    row: Row = {
        "n_responses": int(inside.sum()),
        "n_abstained": int((inside & abstained).sum()),
        "n_without_facts": int((inside & ~abstained & ~spoke).sum()),
        "n_scored": int(scored.sum()),
        "n_unscored_responses": n_spoke - int(scored.sum()),
        "respond_ratio": number(ratio(n_spoke, inside.sum())),
    }
    for key in ("score", "init_score"):
        row |= averaged(key, scores.figures[key][scored].tolist(), intervals)
        for end in ("min", "max"):
            row[f"{key}_{end}"] = mean(scores.figures[f"{key}_{end}"][spoke])
    row["num_facts_per_response"] = number(ratio(scores.n_facts[spoke].sum(), n_spoke))
    for name in ("n_facts", "n_supported", "n_unscored", "n_unparsed"):
        row[name] = int(getattr(scores, name)[spoke].sum())
    row["reason"] = None if scored.any() else "no response has a scored fact"
    return row


_SCORE = "means over responses; `init_`: without the length penalty"
_NOT_SCORED = "responses that abstained, hold no fact, or of which no fact was put to the evaluator"
_COLUMNS: dict[str, Column] = {
    **shared("dataset", "evaluator"),
    "system": Column(
        "system", "text", "the system that wrote the responses", key=True, values={"__all__": "all systems"}
    ),
    "n_responses": Column("all responses", "count", "responses, and those of them that are scored", shown=False),
    "n_scored": Column("responses", "count", "responses, and those of them that are scored"),
    "n_facts": Column("facts", "count", "facts, those supported, and those without a verdict"),
    "n_supported": Column("supported", "count", "facts, those supported, and those without a verdict", shown=False),
    "n_unscored": Column("unscored", "count", "facts, those supported, and those without a verdict", shown="any"),
    "n_unparsed": Column("unparsed", "count", "facts with a reply that states no verdict", shown="any"),
    "n_abstained": Column("abstained", "count", _NOT_SCORED, shown="any"),
    "n_without_facts": Column("without facts", "count", _NOT_SCORED, shown="any"),
    "n_unscored_responses": Column("not asked", "count", _NOT_SCORED, shown="any"),
    "score": Column("FActScore", "percent", _SCORE, bounds=True, interval=True),
    "init_score": Column("without penalty", "percent", _SCORE, bounds=True, interval=True),
    "respond_ratio": Column("respond ratio", "percent", "responses that said a fact, of all"),
    "num_facts_per_response": Column("facts per response", "number", "of those that said a fact", digits=1),
    **shared("reason"),
}

AUDIT = Audit(
    name="factscore",
    place=0,
    title="FActScore of the systems",
    question="What share of a response's atomic facts does the knowledge source support?",
    source="Min et al. 2023, §3",
    text="The unweighted mean over responses, with and without the length penalty. Responses that abstain or hold no "
    "fact count in the respond ratio only.",
    formula="Penalty × supported facts / facts, mean over responses; penalty = exp(1 − γ/n) for responses of n < γ "
    "facts. A fact without a verdict counts as not supported; the bounds let it be either.",
    columns=_COLUMNS,
    options={"gamma": "γ of the length penalty; 0 turns it off"},
    compute=factscore,
    applies=applies,
    plots=(DotPlot(what="FActScore of systems", keys=("score", "init_score"), groups=("system",)),),
)
