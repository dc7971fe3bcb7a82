"""What a FActScore run's report says besides its audits: where the facts are from, and where to look first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from factaudit.audit.core.result_rows import Row
from factaudit.text.display_text import format_count

#: Responses that the report shows, each with so many of the facts that were found unsupported.
MAX_SHOWN_RESPONSES, MAX_SHOWN_FACTS = 10, 8
#: Topics without a page that the report names.
MAX_NAMED_TOPICS = 8


def list_topics_without_page(responses: Sequence[Row]) -> list[str]:
    """The topics of the responses of which no fact could be put to a page, as there is none."""
    lost = (row["topic"] for row in responses if row["page"] is None and str(row["reason"]).startswith("no page "))
    return list(dict.fromkeys(map(str, lost)))


def build_factscore_facts_section(
    responses: Sequence[Row], summary: Row, *, max_facts: int, parser: str, irrelevant: str
) -> Row:
    """Where the facts and their verdicts are from, and what went wrong on the way."""
    left_out = {
        "n_abstained": "abstained",
        "n_without_facts": "hold no fact",
        "n_unscored_responses": "were not asked about",
    }
    why = ", ".join(f"{summary[key]:,} {what}" for key, what in left_out.items() if summary[key])
    said = f"{summary['n_scored']:,} of {summary['n_responses']:,} responses are scored{f' ({why})' if why else ''}."
    n_facts, n_unscored = (summary[key] - summary["n_failed_sentences"] for key in ("n_facts", "n_unscored"))
    if n_unscored:
        lacking = f"Of {n_facts:,} facts {n_unscored:,} have no verdict of {summary['evaluator']}."
        said += f" {lacking} In a response that has a score they count as not supported, and the bounds let them be "
        said += "either; a response without any verdict has no score."
    text = [said]
    if summary["n_duplicates"] or summary["n_cut"]:
        text.append(
            f"Of the facts of the replies, {summary['n_duplicates']:,} were repeated in a response and removed"
            + (f", and {summary['n_cut']:,} cut beyond {max_facts} a response." if summary["n_cut"] else ".")
        )
    if summary["n_filtered"]:
        text.append(f"Of the facts of the replies, {summary['n_filtered']:,} outside the core were left out.")
    if n_left_out := summary["n_left_out_sentences"]:
        text.append(
            f"{format_count(n_left_out, 'line')} of the responses only lay them out or talk to the user (headings, "
            "rules, code, “I hope this helps”): no facts were asked of them."
        )
    if summary["n_failed_sentences"] or summary["n_truncated_sentences"]:
        text.append(
            f"{format_count(summary['n_failed_sentences'], 'sentence')} not decomposed (calls failed, or the topic has "
            "no page): each counts in scores as one fact without a verdict. "
            f"{summary['n_truncated_sentences']:,} replies broke off at the limit of tokens: what they hold is used."
        )
    if summary["n_unparsed"]:
        how = "guessed, as published" if parser == "original" else "left unscored"
        text.append(f"{summary['n_unparsed']:,} replies do not clearly state True or False: their verdicts are {how}.")
    lost = list_topics_without_page(responses)
    if lost:
        named = ", ".join(lost[:MAX_NAMED_TOPICS]) + f" and {len(lost) - MAX_NAMED_TOPICS:,} more" * (
            len(lost) > MAX_NAMED_TOPICS
        )
        text.append(f"No page was found for {format_count(len(lost), 'topic')}: {named}.")
    pages = Counter(row["matched"] for row in responses if row["matched"] not in (None, "exact"))
    if pages:
        found = ", ".join(f"{n:,} by {how}" for how, n in pages.most_common())
        text.append(f"Pages that were not found under the topic itself: {found}.")
    if any(row.get("human") for row in responses):
        how = "are left out" if irrelevant == "exclude" else "count as not supported"
        text.append(f"Facts that people found irrelevant {how}; people's score knows no length penalty.")
    return {"title": "How the facts were come by", "text": text, "table": None, "figure": None}


def build_factscore_unsupported_section(responses: Sequence[Row], verifier_name: str) -> Row | None:
    """The responses with the lowest share of supported facts, and what was found unsupported: where to look first."""
    judged = [row for row in responses if row["init_score"] is not None and row["n_supported"] < row["n_facts"]]
    judged.sort(key=lambda row: (row["init_score"], -row["n_facts"]))
    rows = []
    for row in judged[:MAX_SHOWN_RESPONSES]:
        facts = [fact for sentence in row["sentences"] for fact in sentence["facts"]]
        unsupported = [fact["text"] for fact in facts if fact["verdicts"][verifier_name]["prediction"] == 0]
        more = len(unsupported) - MAX_SHOWN_FACTS
        shown = unsupported[:MAX_SHOWN_FACTS] + ([f"and {more:,} more"] if more > 0 else [])
        share = f"{row['n_supported']} of {row['n_facts']}"
        rows.append([row["topic"], row["system"] or "–", share, " · ".join(shown)])
    if not rows:
        return None
    columns = ["topic", "system", "supported", "facts found unsupported"]
    text = f"The {len(rows)} responses of the lowest share of supported facts ({verifier_name}); all are in "
    text += "responses.jsonl."
    return {"title": "Where to look first", "text": text, "table": {"columns": columns, "rows": rows}, "figure": None}
