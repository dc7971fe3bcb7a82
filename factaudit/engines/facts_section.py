"""How many responses and facts were lost on the way to the scores? The table of counts in the report."""

from __future__ import annotations

from collections.abc import Mapping

from factaudit.audit.core.result_rows import Row

#: What is counted in a summary, in the order of the table; what is 0 is not shown.
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


def build_facts_section(summary: Row, text: str, more: Mapping[str, int]) -> Row:
    """The section: ``text`` says who verified; ``more`` has counts that are one engine's alone."""
    counts = {words: summary[key] for key, words in _COUNTED.items() if summary.get(key)}
    rows = [[words, f"{n:,}"] for words, n in (counts | {words: n for words, n in more.items() if n}).items()]
    table = {"columns": ["counted", "number"], "rows": rows}
    return {"title": "How the facts were obtained", "text": [text], "table": table, "figure": None}
