"""What does a FActScore run say of each response, and of all of them? As in the audit `factscore`, and what only an
engine knows: sentences, facts that were removed and cut, topics without a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
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
from factaudit.tables import list_plain_rows
from factaudit.text.display_text import format_count

if TYPE_CHECKING:
    from factaudit.engines.factscore import FactScorer

#: Responses that the report shows, each with so many of the facts that were found unsupported.
MAX_SHOWN_RESPONSES, MAX_SHOWN_FACTS = 10, 8
#: Topics without a page that the report names, and those that the terminal does.
MAX_NAMED_TOPICS, MAX_TOLD_TOPICS = 8, 3
#: What of decomposing is added up over responses.
DECOMPOSITION_COUNTS = ("n_failed_sentences", "n_left_out_sentences", "n_truncated_sentences", "n_duplicates", "n_cut")

#: What is counted in a summary, in the order of the report's table; what is 0 is not shown.
_COUNTED = {
    "n_responses": "responses",
    "n_abstained": "responses that abstained",
    "n_without_facts": "responses without a fact",
    "n_unscored_responses": "responses about which nobody was asked",
    "n_facts": "facts",
    "n_unscored": "facts without a verdict: the bounds let them be either",
    "n_unscored_linked": "facts without a verdict on the person of their group",
    "n_narrow": "links that are narrow: another person supports nearly as many facts of the group",
    "n_unparsed": "replies of the verifier that do not clearly state True or False",
    "n_failed_sentences": "sentences that were not decomposed: each counts as one fact without a verdict",
    "n_truncated_sentences": "decompositions that broke off at the limit of tokens: what they hold is used",
    "n_left_out_sentences": "lines of layout or talk to the user, of which no facts were asked",
    "n_duplicates": "repeated facts that were removed",
    "n_cut": "facts that were cut beyond the limit of a response (max_facts)",
}


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
    names, gamma, irrelevant = scorer.names, scorer.options.gamma, scorer.options.irrelevant
    judged = Judgements.join(claims, verdicts)
    responses = _build_response_rows(records, verdicts, judged, names, gamma)
    by_verifier = _summarise_factscore(judged, responses, scorer)
    lost = find_topics_without_page(responses)
    summary = by_verifier[0] | ({"evaluators": by_verifier} if len(by_verifier) > 1 else {})
    summary["n_topics_without_page"] = len(lost)
    table: list[Row] = []
    lines = []
    for one in by_verifier:
        whole = {key: value for key, value in one.items() if key != "systems"}
        table += [*([whole] if len(one["systems"]) != 1 else []), *one["systems"]]
        lines += [_format_score(row | {"evaluator": one["evaluator"]}, scorer) for row in one["systems"] or [one]]
    lines += list(lost.values())[:MAX_TOLD_TOPICS]
    if len(lost) > MAX_TOLD_TOPICS:
        lines.append(f"no page for {format_count(len(lost) - MAX_TOLD_TOPICS, 'more topic')}")
    if lost and scorer.knowledge and scorer.knowledge.missing != "wikipedia":
        lines.append("to ask Wikipedia for missing pages, say --missing wikipedia")
    return ScoredResponses(
        claims,
        verdicts,
        responses,
        summary,
        {
            "factscore": {"gamma": gamma},
            "discrimination": {},
            "factscore_agreement": {"irrelevant": irrelevant, "gamma": gamma},
            **list_decomposition_audits(scorer),
        },
        (claims, verdicts),
        {"factscore": table},
        _build_sections(responses, summary, scorer),
        lines,
    )


def list_decomposition_audits(scorer: FactScorer) -> dict[str, Row]:
    """The audits of how facts were obtained."""
    shown = {} if scorer.options.demos is None else {"demonstrations": str(scorer.options.demos)}
    return {"decomposition": shown, "decomposition_scores": dict(shown)}


def count_decomposition(made: Decomposition) -> Row:
    """`DECOMPOSITION_COUNTS` of a response."""
    return {
        "n_failed_sentences": sum(one.is_failed for one in made.sentences),
        "n_left_out_sentences": sum(one.is_left_out for one in made.sentences),
        "n_truncated_sentences": sum(one.truncated for one in made.sentences),
        "n_duplicates": made.n_duplicates,
        "n_cut": made.n_cut,
    }


def build_counts_section(summary: Row, text: str, more: Mapping[str, int]) -> Row:
    """How many responses and facts were lost on the way to the scores; ``more`` has counts that are one engine's."""
    counts = {words: summary[key] for key, words in _COUNTED.items() if summary.get(key)}
    rows = [[words, f"{n:,}"] for words, n in (counts | {words: n for words, n in more.items() if n}).items()]
    table = {"columns": ["counted", "number"], "rows": rows}
    return {"title": "How the facts were obtained", "text": [text], "table": table, "figure": None}


# ---------------------------------------------------------------------------------------------- rows and summary


def _build_response_rows(
    records: Sequence[FactRecord],
    verdicts: pd.DataFrame,
    judged: Judgements,
    names: Sequence[str],
    gamma: float,
) -> list[Row]:
    figures = {name: dict(_compute_figures(judged, name, gamma)) for name in names if name in judged.evaluators}
    said: dict[str, dict[str, Row]] = {}
    for told in list_plain_rows(verdicts[["claim_id", "evaluator", "prediction", "score", "status"]]):
        said.setdefault(told.pop("claim_id"), {})[told.pop("evaluator")] = told
    rows = []
    for record in records:
        response, made, page = record.response, record.decomposition, record.candidates[0].page
        own = {name: _explain_figures(figures.get(name, {}).get(response.response_id, {}), record) for name in names}
        row: Row = {
            "response_id": response.response_id,
            "system": response.system,
            "topic": response.topic,
            "output": response.output,
            "abstained": made.abstained,
            "page": page and page.title,
            "matched": page and page.title_match,
            **own[names[0]],
            **count_decomposition(made),
        }
        if response.human is not None:
            row["human"] = dict(zip(("n_supported", "n_not_supported", "n_irrelevant"), response.human, strict=True))
        sentences: list[Row] = []
        for one in made.sentences:
            sentence: Row = {"text": one.text, "status": one.status, "facts": []}
            sentence |= {"reply": one.reply} if one.reply is not None else {}
            sentence |= {"truncated": True} if one.truncated else {}
            sentence |= {"error": one.error} if one.error else {}
            sentences.append(sentence)
        for claim_id, number, _ in record.iterate_claims():
            fact = made.facts[number]
            told = {"text": fact.text, "label": fact.label, "claim_id": claim_id, "verdicts": said[claim_id]}
            sentences[fact.sentence or 0]["facts"].append(told)
        rows.append(row | {"evaluators": own, "sentences": sentences})
    return rows


def _compute_figures(judged: Judgements, verifier: str, gamma: float) -> Iterator[tuple[str, Row]]:
    """The figures of each response by one verifier, by its id."""
    facts = collect_response_facts(judged)
    scores = score_response_facts(facts, judged, judged.evaluators.index(verifier), gamma)
    for place, response_id in enumerate(facts.responses["response_id"]):
        shares = {key: float(values[place]) for key, values in scores.figures.items()}
        counts = {key: int(getattr(scores, key)[place]) for key in _COUNTS}
        yield response_id, counts | {key: None if np.isnan(value) else value for key, value in shares.items()}


_COUNTS = ("n_facts", "n_supported", "n_unscored", "n_unparsed")
_SHARES = ("score", "score_min", "score_max", "init_score", "init_score_min", "init_score_max")


def _explain_figures(figures: Row, record: FactRecord) -> Row:
    """A response's figures with the reason where one is missing; the score of a response without facts is none."""
    row = {key: figures.get(key) for key in _SHARES} | {key: figures.get(key, 0) for key in _COUNTS}
    if not row["n_facts"]:
        return row | dict.fromkeys(_SHARES) | {"reason": "abstained" if record.decomposition.abstained else "no fact"}
    missing = next((one.reason for one in record.candidates if one.reason), None)
    return row | {"reason": missing or "facts have no verdict" if row["n_unscored"] else None}


def _summarise_factscore(judged: Judgements, responses: Sequence[Row], scorer: FactScorer) -> list[Row]:
    """The audit's row of each verifier, with ``systems``, and what is added up over the responses."""

    def add_counts(row: Row) -> Row:
        members = [one for one in responses if row["system"] in (ALL_TOGETHER, one["system"])]
        return row | {key: sum(one[key] for one in members) for key in DECOMPOSITION_COUNTS}

    audited = compute_factscore_audit(judged, gamma=scorer.options.gamma, intervals=scorer.intervals)
    n_abstained = sum(one["abstained"] for one in responses)
    #: Where there is no claim, and so no verdict of anybody.
    ends = [f"{key}{end}" for key in ("score", "init_score", "f1") for end in ("", "_min", "_max")]
    nothing = {
        "system": ALL_TOGETHER,
        "n_responses": len(responses),
        "n_abstained": n_abstained,
        "n_without_facts": len(responses) - n_abstained,
        **dict.fromkeys((*_COUNTS, "n_scored", "n_unscored_responses"), 0),
        "respond_ratio": 0.0,
        **dict.fromkeys((*ends, "k", "num_facts_per_response")),
        "reason": "no response has a scored fact",
    }
    found = []
    for name in scorer.names:
        mine = [add_counts(row) for row in audited if row["evaluator"] == name] or [add_counts(nothing)]
        systems = [row for row in mine if row["system"] != ALL_TOGETHER]
        found.append({**mine[0], "evaluator": name, "systems": systems})
    return found


# ------------------------------------------------------------------------------------- the report and the terminal


def find_topics_without_page(responses: Sequence[Row]) -> dict[str, str]:
    """Topics of which no fact could be put to a page, each with the reason, which names pages of similar titles."""
    reasons = ((str(row["topic"]), str(row["reason"])) for row in responses if row["page"] is None)
    return {topic: reason for topic, reason in reasons if reason.startswith("no page ")}


def _build_sections(responses: Sequence[Row], summary: Row, scorer: FactScorer) -> list[Row]:
    name, irrelevant = scorer.names[0], scorer.options.irrelevant
    text = f"Verified by {name}."
    if name.startswith(("retrieval+", "no-context+")):
        text += f" Replies are read by the parser {scorer.options.parser!r}."
    if any(row.get("human") for row in responses):
        how = "are left out" if irrelevant == "exclude" else "count as not supported"
        text += f" Facts that people found irrelevant {how}; people's score knows no length penalty."
    lost = list(find_topics_without_page(responses))
    named = ", ".join(lost[:MAX_NAMED_TOPICS]) + ", ..." * (len(lost) > MAX_NAMED_TOPICS)
    counts = {f"topics without a page: {named}": len(lost)}
    for row in responses:
        if row["matched"] not in (None, "exact"):
            words = f"pages that were not found under the topic itself, but by {row['matched']}"
            counts[words] = counts.get(words, 0) + 1
    told = build_counts_section(summary, text, counts)
    lowest = _build_lowest_section(responses, name)
    return [told, *([lowest] if lowest else [])]


def _build_lowest_section(responses: Sequence[Row], verifier: str) -> Row | None:
    """The responses with the lowest share of supported facts, and what was found unsupported: where to look first."""
    judged = [row for row in responses if row["init_score"] is not None and row["n_supported"] < row["n_facts"]]
    judged.sort(key=lambda row: (row["init_score"], -row["n_facts"]))
    rows = []
    for row in judged[:MAX_SHOWN_RESPONSES]:
        facts = [fact for sentence in row["sentences"] for fact in sentence["facts"]]
        unsupported = [fact["text"] for fact in facts if fact["verdicts"][verifier]["prediction"] == 0]
        shown = unsupported[:MAX_SHOWN_FACTS]
        if len(unsupported) > MAX_SHOWN_FACTS:
            shown.append(f"and {len(unsupported) - MAX_SHOWN_FACTS:,} more")
        share = f"{row['n_supported']} of {row['n_facts']}"
        rows.append([row["topic"], row["system"] or "–", share, " · ".join(shown)])
    columns = ["topic", "system", "supported", "facts found unsupported"]
    text = f"The {len(rows)} responses of the lowest share of supported facts ({verifier}); all are in responses.jsonl."
    table = {"columns": columns, "rows": rows}
    return {"title": "Where to look first", "text": text, "table": table, "figure": None} if rows else None


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
    of += [f"{row[key]:,} {what}" for key, what in left_out.items() if row.get(key)]
    # Unscored facts count as not supported: where all are, that is no score of 0.
    if n == 0 or row["score"] is None or row["n_unscored"] == row["n_facts"]:
        of[0] = format_count(row["n_responses"], "response")
        why = f"none of {format_count(n, 'fact')} has a verdict" if n else "there is no fact"
        if row.get("n_abstained") == row["n_responses"]:
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
