"""What the report of a FActScore run says besides its audits: which topics have no page, and where to look first."""

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


def list_topics_without_page(responses: Sequence[Row]) -> list[str]:
    """The topics of the responses of which no fact could be put to a page, as there is none."""
    lost = (row["topic"] for row in responses if row["page"] is None and str(row["reason"]).startswith("no page "))
    return list(dict.fromkeys(map(str, lost)))


def format_topics_without_page(responses: Sequence[Row]) -> list[str]:
    """How many topics have no page, and of the first of them what pages there are with a similar title."""
    lost = list_topics_without_page(responses)
    if not lost:
        return []
    reasons = {str(row["topic"]): str(row["reason"]) for row in responses}
    shown = []
    for topic in lost[:MAX_TOLD_TOPICS]:
        _, _, similar = reasons[topic].partition("; ")
        shown.append(f"{topic!r}{f' ({similar})' if similar else ''}")
    more = ", ..." if len(lost) > MAX_TOLD_TOPICS else ""
    way = "" if "on Wikipedia" in reasons[lost[0]] else "; --missing wikipedia asks Wikipedia for them"
    return [f"no page for {format_count(len(lost), 'topic')}: {', '.join(shown)}{more}{way}"]


def count_pages(responses: Sequence[Row]) -> dict[str, int]:
    """The topics without a page, by their first names, and the pages that were found in another way than by title."""
    lost = list_topics_without_page(responses)
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
