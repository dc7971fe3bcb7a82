"""What a D-FActScore run's report says besides its audits: where its facts are from, and who is merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from factaudit.audit.core.figure_formatting import format_percent
from factaudit.audit.core.finding_parts import MIN_SHARE_COUNT
from factaudit.audit.core.result_rows import Row
from factaudit.text.display_text import format_count

#: Merged paragraphs that the report shows; all are in responses.jsonl, their facts in tables/dfactscore_elsewhere.csv.
MAX_SHOWN_PARAGRAPHS = 12


def build_dfactscore_facts_section(
    responses: Sequence[Row], summary: Row, max_facts: int, prefilter: int | None = None
) -> Row:
    """Where the facts, their groups and the candidates are from, and what went wrong on the way."""
    text = [
        f"Verified by {summary['evaluator']}; groups by {summary['grouper']!r}; linked by {summary['link']!r}. "
        + _describe_dfactscore_verdicts(summary),
        _describe_dfactscore_candidates(responses),
        "Groupers. " + "; ".join(_describe_dfactscore_grouper(row) for row in summary["grouping"]) + ".",
    ]
    if prefilter is not None:
        text.append(
            f"Each fact was put to the {prefilter:,} candidates with the nearest passages only; the others are "
            "unscored, and the bounds say what they could change."
        )
    doubts = [
        f"{told}: {summary[key]:,}"
        for key, told in (
            ("n_unparsed", "replies of the verifier that do not clearly state True or False"),
            ("n_failed_sentences", "sentences whose decomposition failed (each stands for its facts, unscored)"),
            ("n_left_out_sentences", "headings, rules, code and talk to the user, of which no facts were asked"),
            ("n_truncated_sentences", "decompositions that broke off at the limit of tokens"),
            ("n_cut", f"facts cut beyond {max_facts} a response"),
        )
        if summary[key]
    ]
    if doubts:
        text.append(f"Doubtful: {'; '.join(doubts)}.")
    if summary["category_accuracy"] is not None:
        n = sum(bool(row["given_category"] and row["category"]) for row in responses)
        text.append(f"The category is as given for {_format_share_of_responses(summary['category_accuracy'], n)}.")
    return {"title": "How facts, groups and candidates were come by", "text": text, "table": None, "figure": None}


def _describe_dfactscore_verdicts(summary: Row) -> str:
    n_facts = f"{summary['n_facts']:,} facts"
    if not summary["n_unscored"] and not summary["n_unscored_linked"]:
        text = f"Each of the {n_facts} has both verdicts."
    else:
        text = f"Of the {n_facts} {summary['n_unscored']:,} have no FActScore verdict, "
        text += f"{summary['n_unscored_linked']:,} no D-FActScore verdict."
    if summary["n_narrow"]:
        text += f" {summary['n_narrow']:,} links are narrow: the second-best person supports nearly as many facts."
    return text


def _format_share_of_responses(share: float, n: int) -> str:
    """``19 of 20 responses``; of many the percentage."""
    count = f"{round(share * n):,}" if n < MIN_SHARE_COUNT else format_percent(share)
    return f"{count} of {format_count(n, 'response')}"


def build_dfactscore_paragraphs_section(responses: Sequence[Row]) -> Row | None:
    """The section of merged paragraphs with their facts by person; None where none is merged.

    ``merged`` is a list of ``{name, system, response_id, factscore, dfactscore, people: [{title, n, linked}],
    sentences: [{text, person}], facts: [{text, person, elsewhere}]}``; a person is a number in ``people``, or null.
    """
    merged = [row for row in responses if row.get("merged")]
    merged.sort(key=lambda row: (-row["n_elsewhere"], row["response_id"]))
    if not merged:
        return None
    n_facts = sum(row["n_elsewhere"] for row in merged)
    text = (
        f"{len(merged):,} paragraphs say {n_facts:,} things of one person that are true of another of the name, by the "
        "verifier and by how facts are grouped (in bold among the facts). On the page a sentence has the colour of the "
        "person whom most of its facts are of. "
        + f"Shown: the {MAX_SHOWN_PARAGRAPHS} with most of them. " * (len(merged) > MAX_SHOWN_PARAGRAPHS)
        + "As a file: tables/dfactscore_elsewhere.csv."
    )
    items = [_make_dfactscore_paragraph(row) for row in merged[:MAX_SHOWN_PARAGRAPHS]]
    return {"title": "Merged paragraphs", "text": text, "table": None, "figure": None, "merged": items}


def _make_dfactscore_paragraph(response_row: Row) -> Row:
    linked = {group["entity"] for group in response_row["groups"]}
    counts = Counter(fact["about"] for fact in response_row["facts"] if fact["about"] is not None)
    people = [title for title, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    owner = [_find_dfactscore_person_of_fact(fact) for fact in response_row["facts"]]
    people += [title for title in dict.fromkeys(owner) if title is not None and title not in people]
    number = {title: position for position, title in enumerate(people)}
    sentences = []
    for position, sentence in enumerate(response_row["sentences"]):
        mine = Counter(
            title
            for title, fact in zip(owner, response_row["facts"], strict=True)
            if fact["sentence"] == position and title
        )
        best = max(mine, key=lambda title: mine[title]) if mine else None
        sentences.append({"text": sentence, "person": None if best is None else number[best]})
    totals = Counter(owner)
    return {
        "name": response_row["name"],
        "system": response_row["system"],
        "response_id": response_row["response_id"],
        "factscore": response_row["init_factscore"],
        "dfactscore": response_row["init_dfactscore"],
        "people": [{"title": title, "n": totals[title], "linked": title in linked} for title in people],
        "sentences": sentences,
        "facts": [
            {
                "text": fact["text"],
                "person": None if title is None else number[title],
                "elsewhere": fact["factscore"] == 1 and fact["dfactscore"] == 0,
            }
            for title, fact in zip(owner, response_row["facts"], strict=True)
        ],
    }


def _find_dfactscore_person_of_fact(fact_row: Row) -> str | None:
    """Whom a fact is shown as true of; of several people the one that it was linked to, where that is one of them."""
    if fact_row["dfactscore"] == 1 and fact_row["entity"] is not None:
        return fact_row["entity"]
    return fact_row["about"]


def _describe_dfactscore_candidates(responses: Sequence[Row]) -> str:
    n = Counter(row["candidates_from"] for row in responses)
    ways = (
        ("given", "given"),
        ("titles", "the pages of the name"),
        ("none", "nobody was found, so that their facts have no verdict"),
    )
    told = [f"{words} ({n[way]:,} of {len(responses):,})" for way, words in ways if n[way]]
    asked = [row["n_candidates"] for row in responses if row["n_facts"]]
    text = f"Whom a biography may be about: {'; '.join(told)}."
    if asked:
        text += (
            f" Each fact is put to all candidates of its biography: {sum(asked) / len(asked):.1f} on average, "
            f"{max(asked):,} at most."
        )
    if n_cut := sum(row["n_candidates_left_out"] for row in responses):
        many = sum(row["n_candidates_left_out"] > 0 for row in responses)
        text += f" Of {many:,} biographies {n_cut:,} more pages of the name were left out."
    return text


def _describe_dfactscore_grouper(grouper_row: Row) -> str:
    told = []
    if grouper_row["grouper"] == "llm":
        told.append(f"{grouper_row['n_changed']:,} facts changed, {grouper_row['n_dropped']:,} dropped by its replies")
        told.append(f"{grouper_row['n_invented']:,} lines invented, {grouper_row['n_repeated']:,} repeated")
    if grouper_row["n_failed"]:
        told.append(f"{grouper_row['n_failed']:,} responses without a usable reply")
    if grouper_row["same_as_given"] is not None and grouper_row["grouper"] != "given":
        same = _format_share_of_responses(grouper_row["same_as_given"], grouper_row["n_compared_given"])
        right = format_percent(grouper_row["agreement_given"])
        told.append(f"as given for {same} (facts in the right group: {right} on average over responses)")
    if grouper_row["grouper"] == "one-group":
        told.append("it takes all facts of a response for one person's")
    if grouper_row["grouper"] == "given":
        told.append("the groups that came with the responses")
    return f"{grouper_row['grouper']}: {', '.join(told)}" if told else str(grouper_row["grouper"])
