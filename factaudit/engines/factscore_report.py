"""What does a FActScore run say of each response, and of all of them? As in the audit `factscore`, and what only an
engine knows: sentences, facts that were removed and cut, topics without a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_facts import collect_response_facts, score_response_facts
from factaudit.audit.core.audit_declaration import Column
from factaudit.audit.core.figure_formatting import format_figure_range, format_percent
from factaudit.audit.core.result_rows import Row
from factaudit.audit.factscore import compute_factscore_audit
from factaudit.engines.decompose import Decomposition
from factaudit.engines.passages import FactRecord
from factaudit.stats.undefined_values import none_if_undefined
from factaudit.tables import list_plain_rows
from factaudit.text.display_text import format_count

if TYPE_CHECKING:
    from factaudit.engines.factscore import FactScorer

#: Topics without a page that the report names, and those that the terminal does.
MAX_NAMED_TOPICS, MAX_TOLD_TOPICS = 8, 3
#: What of decomposing is added up over responses.
DECOMPOSITION_COUNTS = ("n_failed_sentences", "n_left_out_sentences", "n_truncated_sentences", "n_duplicates", "n_cut")
_COUNTS = ("n_facts", "n_supported", "n_unscored", "n_unparsed")
_SHARES = ("score", "score_min", "score_max", "init_score", "init_score_min", "init_score_max")


@dataclass(frozen=True)
class ScoredResponses:
    """What an engine makes of responses, and what the run folder says of it.

    responses: a row per response, in order. audits: those that compute the engine's figures from ``claims`` and
    ``verdicts``, with their options. audit_tables: the claims and verdicts that the other audits read. tables: rows of
    tables that only the engine can make. sections: what the report says besides. lines: what the command prints.
    """

    claims: pd.DataFrame
    verdicts: pd.DataFrame
    responses: list[Row]
    summary: Row
    audits: Mapping[str, Row]
    audit_tables: tuple[pd.DataFrame, pd.DataFrame]
    tables: Mapping[str, list[Row]] = field(default_factory=dict)
    sections: Sequence[Row] = ()
    lines: Sequence[str] = ()


def report_factscore(
    records: Sequence[FactRecord], claims: pd.DataFrame, verdicts: pd.DataFrame, scorer: FactScorer
) -> ScoredResponses:
    """The figures of each response and of all; the first verifier's are *the* score."""
    options = scorer.options
    judged = Judgements.join(claims, verdicts)
    responses = _build_response_rows(records, verdicts, judged, scorer)
    audited = compute_factscore_audit(judged, gamma=options.gamma, intervals=scorer.intervals)
    by_verifier, table, lines = [], [], []
    for name in scorer.names:
        rows = [row for row in audited if row["evaluator"] == name] or [_NOTHING | _count_silent(responses)]
        rows = [add_decomposition_counts(row, responses) | {"evaluator": name} for row in rows]
        systems = [row for row in rows if row["system"] != ALL_TOGETHER]
        by_verifier.append({**rows[0], "systems": systems})
        table += rows
        lines += [_format_score(row, scorer) for row in systems or rows]
    # Topics of which no fact could be put to a page; the reason names pages of similar titles.
    lost = {one["topic"]: one["reason"] for one in responses if (one["reason"] or "").startswith("no page ")}
    lines += list(lost.values())[:MAX_TOLD_TOPICS]
    if len(lost) > MAX_TOLD_TOPICS:
        lines.append(f"no page for {format_count(len(lost) - MAX_TOLD_TOPICS, 'more topic')}")
    if lost and scorer.knowledge and scorer.knowledge.missing != "wikipedia":
        lines.append("to ask Wikipedia for missing pages, say --missing wikipedia")
    summary = by_verifier[0] | {"n_topics_without_page": len(lost)}
    return ScoredResponses(
        claims,
        verdicts,
        responses,
        summary | ({"evaluators": by_verifier} if len(by_verifier) > 1 else {}),
        {
            "factscore": {"gamma": options.gamma},
            "discrimination": {},
            "factscore_agreement": {"irrelevant": options.irrelevant, "gamma": options.gamma},
            **list_decomposition_audits(scorer),
        },
        (claims, verdicts),
        {"factscore": table},
        [make_section(_describe_run(responses, list(lost), scorer))],
        lines,
    )


def list_decomposition_audits(scorer: FactScorer) -> dict[str, Row]:
    """The audit of how facts were obtained."""
    shown = {} if scorer.options.demos is None else {"demonstrations": str(scorer.options.demos)}
    return {"decomposition": shown}


def count_decomposition(made: Decomposition) -> Row:
    """`DECOMPOSITION_COUNTS` of a response."""
    return {
        "n_failed_sentences": sum(one.is_failed for one in made.sentences),
        "n_left_out_sentences": sum(one.is_left_out for one in made.sentences),
        "n_truncated_sentences": sum(one.truncated for one in made.sentences),
        "n_duplicates": made.n_duplicates,
        "n_cut": made.n_cut,
    }


def add_decomposition_counts(row: Row, responses: Sequence[Row]) -> Row:
    """The row of a system with the sums over its responses."""
    members = [one for one in responses if row["system"] in (ALL_TOGETHER, one["system"])]
    return row | {key: sum(one[key] for one in members) for key in DECOMPOSITION_COUNTS}


def make_section(text: Sequence[str]) -> Row:
    """The section of the report that says how the facts were obtained."""
    return {"title": "How the facts were obtained", "text": list(text), "table": None, "figure": None}


#: The audit's row where there is no claim, and so no verdict of anybody.
_NOTHING: Row = {
    "system": ALL_TOGETHER,
    **dict.fromkeys((*_SHARES, "num_facts_per_response")),
    **dict.fromkeys((*_COUNTS, "n_scored", "n_unscored_responses", "respond_ratio"), 0),
    "reason": "no response has a scored fact",
}


def _count_silent(responses: Sequence[Row]) -> Row:
    n_abstained = sum(one["abstained"] for one in responses)
    n_without = len(responses) - n_abstained
    return {"n_responses": len(responses), "n_abstained": n_abstained, "n_without_facts": n_without}


def _build_response_rows(
    records: Sequence[FactRecord], verdicts: pd.DataFrame, judged: Judgements, scorer: FactScorer
) -> list[Row]:
    figures = {name: _compute_figures(judged, name, scorer.options.gamma) for name in scorer.names}
    said: dict[str, dict[str, Row]] = {}
    for told in list_plain_rows(verdicts[["claim_id", "evaluator", "prediction", "score", "status"]]):
        said.setdefault(told.pop("claim_id"), {})[told.pop("evaluator")] = told
    rows = []
    for record in records:
        response, made, page = record.response, record.decomposition, record.candidates[0].page
        own = {name: _explain(found.get(response.response_id, {}), record) for name, found in figures.items()}
        row: Row = {
            "response_id": response.response_id,
            "system": response.system,
            "topic": response.topic,
            "output": response.output,
            "abstained": made.abstained,
            "page": page and page.title,
            "matched": page and page.title_match,
            **own[scorer.names[0]],
            **count_decomposition(made),
        }
        if response.human is not None:
            row["human"] = dict(zip(("n_supported", "n_not_supported", "n_irrelevant"), response.human, strict=True))
        sentences: list[Row] = [
            {key: value for key in ("text", "status", "reply", "error", "truncated") if (value := getattr(one, key))}
            | {"facts": []}
            for one in made.sentences
        ]
        for claim_id, number, _ in record.iterate_claims():
            fact = made.facts[number]
            told = {"text": fact.text, "label": fact.label, "claim_id": claim_id, "verdicts": said[claim_id]}
            sentences[fact.sentence or 0]["facts"].append(told)
        rows.append(row | {"evaluators": own, "sentences": sentences})
    return rows


def _compute_figures(judged: Judgements, verifier: str, gamma: float) -> dict[str, Row]:
    """The figures of each response by one verifier, by its id; none where there is no verdict at all."""
    if verifier not in judged.evaluators:
        return {}
    facts = collect_response_facts(judged)
    scores = score_response_facts(facts, judged, judged.evaluators.index(verifier), gamma)
    return {
        response_id: {key: none_if_undefined(scores.figures[key][at]) for key in _SHARES}
        | {key: int(getattr(scores, key)[at]) for key in _COUNTS}
        for at, response_id in enumerate(facts.responses["response_id"])
    }


def _explain(figures: Row, record: FactRecord) -> Row:
    """A response's figures with the reason where one is missing; the score of a response without facts is none."""
    if not figures.get("n_facts"):
        reason = "abstained" if record.decomposition.abstained else "no fact"
        return {**dict.fromkeys(_SHARES), **dict.fromkeys(_COUNTS, 0), "reason": reason}
    missing = next((one.reason for one in record.candidates if one.reason), None)
    return figures | {"reason": missing or "facts have no verdict" if figures["n_unscored"] else None}


def _describe_run(responses: Sequence[Row], topics_without_page: Sequence[str], scorer: FactScorer) -> list[str]:
    name, irrelevant = scorer.names[0], scorer.options.irrelevant
    text = [f"Verified by {name}."]
    if name.startswith(("retrieval+", "no-context+")):
        text.append(f"Replies are read by the parser {scorer.options.parser!r}.")
    if any(row.get("human") for row in responses):
        how = "are left out" if irrelevant == "exclude" else "count as not supported"
        text.append(f"Facts that people found irrelevant {how}; people's score knows no length penalty.")
    if n := len(topics_without_page):
        more = ", ..." if n > MAX_NAMED_TOPICS else ""
        text.append(f"{n:,} topics have no page: {', '.join(topics_without_page[:MAX_NAMED_TOPICS])}{more}.")
    if n := sum(row["matched"] not in (None, "exact") for row in responses):
        text.append(f"{n:,} pages were found by another title than the topic (`matched` in responses.jsonl).")
    return text


def _format_score(row: Row, scorer: FactScorer) -> str:
    """The score of a system by a verifier: its interval, what unscored facts leave open, and of how many."""
    n = row["n_facts"] - row["n_failed_sentences"]
    who = "all" if row["system"] in (None, ALL_TOGETHER) else row["system"]
    of = [f"{row['n_scored']:,} of {format_count(row['n_responses'], 'response')} scored"]
    left_out = {
        "n_abstained": "abstained",
        "n_without_facts": "without facts",
        "n_unscored_responses": "not asked about",
    }
    of += [f"{row[key]:,} {what}" for key, what in left_out.items() if row[key]]
    # Unscored facts count as not supported: where all are, that is no score of 0.
    if n == 0 or row["score"] is None or row["n_unscored"] == row["n_facts"]:
        of[0] = format_count(row["n_responses"], "response")
        why = f"none of {format_count(n, 'fact')} has a verdict" if n else "there is no fact"
        if row["n_abstained"] == row["n_responses"]:
            why = "every response abstained"
        return f"{who}: FActScore no score by {row['evaluator']}: {why} ({'; '.join(of)})"
    shown = Column("", "percent")
    if row.get("score_low") is not None:
        ends = format_figure_range(shown, row["score_low"], row["score_high"])
        of.insert(0, f"{100 * scorer.confidence:g} % CI {ends}")
    if row["score_min"] < row["score_max"]:
        ends = format_figure_range(shown, row["score_min"], row["score_max"])
        of.insert(0, f"what is unscored or guessed leaves {ends}")
    if row["score"] != row["init_score"]:
        of.append(f"without the length penalty {format_percent(row['init_score'])}")
    return f"{who}: FActScore {format_percent(row['score'])} by {row['evaluator']} ({'; '.join(of)})"
