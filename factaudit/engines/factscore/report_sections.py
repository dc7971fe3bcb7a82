"""Which topics have no page, and where should a reader look first? The report of a FActScore run."""

from __future__ import annotations

from collections.abc import Sequence

from factaudit.audit.core.result_rows import Row
from factaudit.text.display_text import format_count

#: Responses that the report shows, each with so many of the facts that were found unsupported.
MAX_SHOWN_RESPONSES, MAX_SHOWN_FACTS = 10, 8
#: Topics without a page that the report names.
MAX_NAMED_TOPICS = 8
#: Topics without a page that the terminal names.
MAX_TOLD_TOPICS = 3


def find_missing_pages(responses: Sequence[Row]) -> dict[str, str]:
    """Topics of which no fact could be put to a page, each with the reason, which names pages of similar titles."""
    reasons = ((str(row["topic"]), str(row["reason"])) for row in responses if row["page"] is None)
    return {topic: reason for topic, reason in reasons if reason.startswith("no page ")}


def format_topics_without_page(responses: Sequence[Row], asks_wikipedia: bool) -> list[str]:
    """A line for each of the first topics without a page, how many more there are, and what can be done."""
    reasons = list(find_missing_pages(responses).values())
    lines = reasons[:MAX_TOLD_TOPICS]
    if more := len(reasons) - len(lines):
        lines.append(f"no page for {format_count(more, 'more topic')}")
    if reasons and not asks_wikipedia:
        lines.append("to ask Wikipedia for missing pages, say --missing wikipedia")
    return lines


def count_pages(responses: Sequence[Row]) -> dict[str, int]:
    """The topics without a page, by their first names, and the pages that were found in another way than by title."""
    lost = list(find_missing_pages(responses))
    named = ", ".join(lost[:MAX_NAMED_TOPICS]) + ", ..." * (len(lost) > MAX_NAMED_TOPICS)
    counts = {f"topics without a page: {named}": len(lost)}
    for row in responses:
        if row["matched"] not in (None, "exact"):
            words = f"pages that were not found under the topic itself, but by {row['matched']}"
            counts[words] = counts.get(words, 0) + 1
    return counts


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
