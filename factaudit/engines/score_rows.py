"""What is the score of each response, and of whom is each of its facts true? Rows for
``responses.jsonl``, the report and the terminal, of the same arrays that the audits `factscore` and
`dfactscore` read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from factaudit.arrays.biographies import collect_biographies
from factaudit.arrays.biography_scores import score_biography
from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.arrays.response_facts import collect_response_facts, score_response_facts
from factaudit.arrays.support_matrix import GroupLinks, SupportMatrix
from factaudit.audit.core.audit_declaration import Column
from factaudit.audit.core.figure_formatting import format_figure_range, format_percent
from factaudit.audit.core.result_rows import Row
from factaudit.stats.undefined_values import none_if_undefined
from factaudit.tables import list_plain_rows
from factaudit.text.display_text import format_count

#: Merged paragraphs that the report shows; all are in responses.jsonl, their facts in
#: tables/dfactscore_elsewhere.csv.
MAX_SHOWN_PARAGRAPHS = 12
_PERCENT = Column("", "percent")


# ---- FActScore


def list_factscore_responses(judged: Judgements, gamma: float) -> list[Row]:
    """A row per response with its figures by each verifier; the first one's are *the* score."""
    facts = collect_response_facts(judged)
    rows: list[Row] = [
        {
            **{key: one[key] for key in ("response_id", "system", "topic")},
            "abstained": one["abstained"],
            "evaluators": {},
        }
        for one in facts.responses.to_dict("records")
    ]
    for number, name in enumerate(judged.evaluators):
        scores = score_response_facts(facts, judged, number, gamma)
        for at, row in enumerate(rows):
            figures = {key: none_if_undefined(values[at]) for key, values in scores.figures.items()}
            counts = {
                key: int(getattr(scores, key)[at])
                for key in ("n_facts", "n_supported", "n_unscored")
            }
            row["evaluators"][name] = figures | counts
    return rows


def format_factscore(row: Row, confidence: float) -> str:
    """The score of a system by a verifier: its interval, what unscored facts leave open, and of how
    many."""
    who = row["system"] or "all"
    of = [f"{row['n_scored']:,} of {format_count(row['n_responses'], 'response')} scored"]
    if row["n_abstained"]:
        of.append(f"{row['n_abstained']:,} abstained")
    # Unscored facts count as not supported: where all are, that is no score of 0.
    if row["score"] is None or row["n_unscored"] == row["n_facts"]:
        why = (
            row["reason"]
            if row["score"] is None
            else f"none of {format_count(row['n_facts'], 'fact')} has a verdict"
        )
        return f"{who}: no FActScore by {row['evaluator']}: {why} ({'; '.join(of)})"
    if row.get("score_low") is not None:
        ends = format_figure_range(_PERCENT, row["score_low"], row["score_high"])
        of.insert(0, f"{100 * confidence:g} % CI {ends}")
    if row["score_min"] < row["score_max"]:
        ends = f"{format_percent(row['score_min'])} and {format_percent(row['score_max'])}"
        of.append(f"between {ends}, as unscored or guessed facts may be supported")
    if row["score"] != row["init_score"]:
        of.append(f"without the length penalty {format_percent(row['init_score'])}")
    return (
        f"{who}: FActScore {format_percent(row['score'])} by {row['evaluator']} ({'; '.join(of)})"
    )


# ---- D-FActScore


def list_dfactscore_responses(
    judged: Judgements, verifier: int, link: str, gamma: float, narrow: float
) -> list[Row]:
    """A row per response with its figures by one verifier, its groups with their people, and its
    facts."""
    known = _list_facts(judged)
    rows = []
    for one in collect_biographies(judged, verifier):
        figures, links = score_biography(one, link, gamma=gamma, narrow=narrow)
        figures = {
            key: value for key, value in figures.items() if key not in ("categories", "false_cells")
        }
        names = {key: one.key[key] for key in ("response_id", "system", "topic")}
        facts = known.get(one.key["response_id"], [])
        rows.append(
            {
                **names,
                **figures,
                "groups": _list_groups(one, links),
                "facts": _place_facts(one, links, facts),
            }
        )
    return rows


def _list_facts(judged: Judgements) -> dict[str, list[Row]]:
    """By response its facts, each once, in the order of the claims."""
    columns = ["response_id", "fact_id", "claim", "sentence"]
    table = judged.claims.drop_duplicates("fact_id").reindex(columns=columns)
    found: dict[str, list[Row]] = {}
    for row in list_plain_rows(table):
        found.setdefault(row["response_id"], []).append(row)
    return found


def _list_groups(one: SupportMatrix, links: GroupLinks) -> list[Row]:
    return [
        {
            "entity": _name(one, links.person[number]),
            "share": none_if_undefined(links.share[number]),
            "margin": none_if_undefined(links.margin[number]),
            "n_facts": int((one.group == number).sum()),
        }
        for number in range(one.n_groups)
    ]


def _place_facts(one: SupportMatrix, links: GroupLinks, facts: Sequence[Row]) -> list[Row]:
    """The facts with whom they are told of (``entity``), of whom they are true (``about``), and
    both verdicts."""
    person, about = one.person_of_facts(links), one.attribute_facts()
    by_any, by_link = one.supported_by_any(), one.supported_by(person)
    return [
        {
            "text": fact["claim"],
            "sentence": fact["sentence"],
            "group": _none_if_missing(one.group[at]),
            "entity": _name(one, person[at]),
            "about": _name(one, about[at]),
            "factscore": _none_if_missing(by_any[at]),
            "dfactscore": None if one.group[at] < 0 else _none_if_missing(by_link[at]),
        }
        for at, fact in enumerate(facts)
    ]


def _name(one: SupportMatrix, column: int) -> str | None:
    return None if column < 0 else one.people[column]


def _none_if_missing(value: int) -> int | None:
    return None if value == MISSING else int(value)


def format_dfactscore(row: Row) -> str:
    """The scores of a system. Unscored facts count as not supported: where all are, that is no
    score of 0."""
    unscored = {"factscore": row["n_unscored"], "dfactscore": row["n_unscored_linked"]}
    told = []
    for start in ("init_", ""):
        shown = [row[start + key] if n < row["n_facts"] else None for key, n in unscored.items()]
        told.append(["no score" if value is None else format_percent(value) for value in shown])
    plain, penalised = told
    line = f"{row['system'] or 'all'}: FActScore {plain[0]}, D-FActScore {plain[1]}"
    return line + (
        f" (with the length penalty {' and '.join(penalised)})" if plain != penalised else ""
    )


# ---- merged paragraphs


def make_merged_section(rows: Sequence[Row]) -> Row | None:
    """The report's section of merged paragraphs with their facts by person; None where none is
    merged.

    ``merged`` is a list of ``{name, system, response_id, factscore, dfactscore, people: [{title, n,
    linked}],
    sentences: [{text, person}], facts: [{text, person, elsewhere}]}``; a person is a number in
    ``people``, or null.
    """
    merged = [row for row in rows if row["merged"]]
    merged.sort(key=lambda row: (-row["n_elsewhere"], row["response_id"]))
    if not merged:
        return None
    n_facts = sum(row["n_elsewhere"] for row in merged)
    text = (
        f"{len(merged):,} paragraphs say {n_facts:,} things of one person that are true of another"
        " of the name, by the verifier and by how facts are grouped (in bold among the facts). On"
        " the page a sentence has the colour of the person whom most of its facts are of. "
        + f"Shown: the {MAX_SHOWN_PARAGRAPHS} with most of them. "
        * (len(merged) > MAX_SHOWN_PARAGRAPHS)
        + "As a file: tables/dfactscore_elsewhere.csv."
    )
    shown = list(map(_colour_paragraph, merged[:MAX_SHOWN_PARAGRAPHS]))
    return {
        "title": "Merged paragraphs",
        "text": text,
        "table": None,
        "figure": None,
        "merged": shown,
    }


def _colour_paragraph(row: Row) -> Row:
    """Whom each sentence and fact of a paragraph is of; people in the order of how many facts are
    true of them."""
    facts = row["facts"]
    # Of several people a fact is shown as true of the one that it was linked to, where that is one
    # of them.
    owners = [
        fact["entity"] if fact["dfactscore"] == 1 and fact["entity"] else fact["about"]
        for fact in facts
    ]
    n_about = Counter(fact["about"] for fact in facts if fact["about"] is not None)
    people = sorted(n_about, key=lambda title: (-n_about[title], title))
    people += [
        title for title in dict.fromkeys(owners) if title is not None and title not in people
    ]
    numbers: Mapping[Any, int] = {title: number for number, title in enumerate(people)}
    of_sentence: dict[str, Counter[int]] = {}
    for fact, owner in zip(facts, owners, strict=True):
        of_sentence.setdefault(fact["sentence"] or fact["text"], Counter()).update(
            [numbers[owner]] if owner else []
        )
    linked, totals = {group["entity"] for group in row["groups"]}, Counter(owners)
    return {
        **{key: row[key] for key in ("system", "response_id")},
        "name": row["topic"],
        "factscore": row["init_factscore"],
        "dfactscore": row["init_dfactscore"],
        "people": [
            {"title": title, "n": totals[title], "linked": title in linked} for title in people
        ],
        "sentences": list(_colour_sentences(of_sentence)),
        "facts": [
            {
                "text": fact["text"],
                "person": numbers.get(owner),
                "elsewhere": fact["factscore"] == 1 and fact["dfactscore"] == 0,
            }
            for fact, owner in zip(facts, owners, strict=True)
        ],
    }


def _colour_sentences(of_sentence: Mapping[str, Counter[int]]) -> Iterator[Row]:
    for text, counts in of_sentence.items():
        yield {"text": text, "person": counts.most_common(1)[0][0] if counts else None}
