"""What share of a response's atomic facts is supported? FActScore (Min et al. 2023, §3).

Score of a response = penalty × supported / facts, with penalty = exp(1 − γ/n) if n < γ (the penalty
is from their code). The score of a system is the mean over its responses.
"""

from __future__ import annotations

from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_facts import (
    collect_response_facts,
    has_response_facts,
    score_response_facts,
)
from factaudit.arrays.response_means import (
    DEFAULT_GAMMA,
    TOO_FEW_RESPONSES,
    average_responses,
    mean_of_defined,
    split_by_system,
)
from factaudit.audit.core.audit_declaration import (
    RESPONSE_MEAN,
    Audit,
    Column,
    PlotSpec,
    pick_shared_columns,
    share_column,
)
from factaudit.audit.core.result_rows import Row, explain_row
from factaudit.stats.cluster_bootstrap import ClusterBootstrap


def compute_factscore_audit(
    judgements: Judgements,
    *,
    gamma: float = DEFAULT_GAMMA,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """FActScore of each system: a row per evaluator, dataset and system; ``__all__`` comes first if
    there are several systems.

    A fact is a claim with a ``response_id``. Rows with one ``fact_id`` are one fact, which is
    supported if one of them is. A fact without a verdict counts as not supported, so that no
    failure raises a score. ``score`` and ``init_score`` (without the penalty) are unweighted means
    over the n_scored responses that answered and of which at least one fact was put to the
    evaluator. For ``_min`` and ``_max``, everything unscored (or guessed) is unsupported or
    supported, and a response of which nothing was asked scores 0 or 1 (n_unscored_responses). A
    sentence that could not be decomposed (``n_failed_sentences``) is a fact without a verdict; its
    response does not count in ``num_facts_per_response``. ``respond_ratio``: the share of responses
    that did not abstain and contain at least one fact.
    """
    facts = collect_response_facts(judgements)
    responses = facts.responses[["abstained", "cluster"]].assign(
        n_failed_sentences=facts.count(~facts.is_decomposed)
    )
    rows = []
    for at, evaluator in enumerate(judgements.evaluators):
        scores = responses.join(score_response_facts(facts, judgements, at, gamma))
        for key, inside in split_by_system(facts.responses):
            own = scores[inside]
            spoke = own[own["n_facts"] > 0]
            scored = spoke[spoke["score"].notna()]
            whole = spoke[spoke["n_failed_sentences"] == 0]
            row: Row = {"dataset": key["dataset"], "evaluator": evaluator, "system": key["system"]}
            row |= {
                "n_responses": len(own),
                "n_abstained": int(own["abstained"].sum()),
                "n_without_facts": int((~own["abstained"] & (own["n_facts"] == 0)).sum()),
                "n_scored": len(scored),
                "n_unscored_responses": len(spoke) - len(scored),
                "respond_ratio": len(spoke) / len(own),
                "num_facts_per_response": mean_of_defined(whole["n_facts"]),
                "n_failed_sentences": int(own["n_failed_sentences"].sum()),
            }
            for name in ("n_facts", "n_supported", "n_unscored", "n_unparsed"):
                row[name] = int(spoke[name].sum())
            for name in ("score", "init_score"):
                cluster = scored["cluster"].to_numpy()
                row |= average_responses(name, scored[name], intervals, cluster=cluster)
                # The point is the mean of fewer responses, so it may lie outside what the mean of
                # all can be: an unscored response of one fact scores at most exp(1 − γ).
                for end, narrower in (("_min", min), ("_max", max)):
                    known = [row[name], mean_of_defined(spoke[f"{name}{end}"])]
                    row[f"{name}{end}"] = narrower(
                        (each for each in known if each is not None), default=None
                    )
            why = "" if len(scored) else "no response has a scored fact"
            rows.append(explain_row(row, ("score", "init_score"), [why], TOO_FEW_RESPONSES))
    return rows


# ---- declarations


_SCORE_DESCRIPTION = "means over responses; `init_` means without the length penalty"
_NOT_SCORED_DESCRIPTION = (
    "responses that abstained, that contain no fact, or in which no fact was checked"
)
_FACTSCORE_COLUMNS: dict[str, Column] = {
    **pick_shared_columns("dataset", "evaluator", "system"),
    "n_responses": Column(
        "all responses", "count", "responses, and how many of them are scored", shown=False
    ),
    "n_scored": Column("responses", "count", "responses, and how many of them are scored"),
    "n_facts": Column("facts", "count", "facts, supported facts, and facts without a verdict"),
    "n_supported": Column(
        "supported", "count", "facts, supported facts, and facts without a verdict", shown=False
    ),
    "n_unscored": Column(
        "unscored", "count", "facts, supported facts, and facts without a verdict", shown="any"
    ),
    **pick_shared_columns("n_failed_sentences"),
    "n_unparsed": Column("unparsed", "count", "facts whose reply states no verdict", shown="any"),
    "n_abstained": Column("abstained", "count", _NOT_SCORED_DESCRIPTION, shown="any"),
    "n_without_facts": Column("without facts", "count", _NOT_SCORED_DESCRIPTION, shown="any"),
    "n_unscored_responses": Column("not asked", "count", _NOT_SCORED_DESCRIPTION, shown="any"),
    "score": share_column("FActScore", _SCORE_DESCRIPTION, RESPONSE_MEAN),
    "init_score": share_column("without penalty", _SCORE_DESCRIPTION, RESPONSE_MEAN),
    "respond_ratio": Column("respond ratio", "percent", "share of all responses that state a fact"),
    "num_facts_per_response": Column(
        "facts per response",
        "number",
        "mean number of facts of the responses that state a fact and were decomposed",
        digits=1,
    ),
    **pick_shared_columns("reason"),
}

AUDIT = Audit(
    name="factscore",
    title="FActScore of the systems",
    question="What share of a response's atomic facts does the knowledge source support?",
    source="Min et al. 2023, §3",
    text=(
        "The unweighted mean over responses, with and without the length penalty. Responses"
        " that abstain, and responses without a fact, count only in the respond ratio."
    ),
    formula=(
        "Penalty × supported facts / facts, averaged over responses. Penalty = exp(1 − γ/n) for"
        " responses with n < γ facts. A fact without a verdict counts as not supported; the"
        " bounds allow either."
    ),
    remedy=(
        "A score means little if you do not know its verifier's errors: label some facts and"
        " read their `rates`. If many replies cannot be read, ask with another prompt or model."
    ),
    columns=_FACTSCORE_COLUMNS,
    options={"gamma": "γ of the length penalty; 0 turns it off"},
    compute=compute_factscore_audit,
    applies=has_response_facts,
    plot=PlotSpec(what="FActScore of systems", keys=("score", "init_score"), groups=("system",)),
)
