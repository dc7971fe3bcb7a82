"""Whom a biography may be about: names as people write them, passages that its facts find, and what a cap costs."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factaudit.arrays.judgements import Judgements
from factaudit.audit.dfactscore_candidates import AUDIT, compute_dfactscore_by_candidates
from factaudit.engines.dfactscore.candidate_finder import MAX_CANDIDATES, MIN_PLACES_FOR_FACTS, CandidateFinder
from factaudit.engines.responses import AtomicFact, Response
from factaudit.knowledge.docdb import DocDB, KnowledgePage
from factaudit.knowledge.knowledge_builder import build_knowledge_source
from factaudit.knowledge.passage_index import PassageIndex
from factaudit.knowledge.person_names import (
    _PersonTitlePrefilter,
    find_titles_of_same_name,
    is_title_of_name,
    list_person_name_keys,
    name_likeness,
    rank_person_titles_by_likeness,
    remove_person_title_suffix,
)
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.knowledge.wikipedia_api import WikipediaPageCache
from factaudit.tables import validate_claims, validate_verdicts

# -------------------------------------------------------------------------------------------------------- names


def test_the_same_name() -> None:
    titles = [
        "Ann Lee",
        "Ann Lee (painter)",
        "Ann K. Lee",
        "Anna Lee",
        "A. K. Lee (diver)",
        "Ann Lee (disambiguation)",
        "Lee Ann",
        "Ann Léé Jr.",
        "Ann",
    ]
    found = find_titles_of_same_name(["Ann Lee", "Ann M. Lee", "Nobody Else"], titles)
    assert found["Ann Lee"] == ["A. K. Lee (diver)", "Ann K. Lee", "Ann Lee", "Ann Lee (painter)", "Ann Léé Jr."]
    assert "Ann K. Lee" not in found["Ann M. Lee"]
    assert found["Nobody Else"] == []
    assert not is_title_of_name("", "Ann Lee")
    assert remove_person_title_suffix("Ann Lee (painter)") == "Ann Lee"


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("Thomas Seymour", "Thomas Seymour, 1st Baron Seymour of Sudeley"),
        ("Lord Sudeley", "Thomas Seymour, 1st Baron Seymour of Sudeley"),
        ("Albert of Prussia", "Prince Albert of Prussia (1809–1872)"),
        ("Bill Sharkey", "William J. Sharkey (murderer)"),
        ("Jon Snow", "John Snow (cricketer)"),
        ("Eduard Strauss", "Edward Strauss"),
        ("Aleksandr Tkachyov", "Alexander Tkachov (politician)"),
        ("Sergei Prokofiev", "Sergey Prokofyev"),
        ("John Quincy Public", "John Public"),
        ("José Núñez", "Jose Nunez (shortstop)"),
        ("Kim Min-jae", "Min-jae Kim"),
        ("Dr. Martin Luther King Jr.", "Martin Luther King"),
    ],
)
def test_a_name_is_known_as_people_write_it(name: str, title: str) -> None:
    others = ["Kimberly Pate", "Nell Gwyn", "Thomas More", "Albert Camus", "Bill Gates", "Jon Voight", "John Adams"]
    found = rank_person_titles_by_likeness([name], [(one, one) for one in [*others, title]])[name]
    assert found[0][1] == title
    assert name_likeness(name, f"{title.split(' (')[0]} (disambiguation)") == 0


def test_a_redirect_leads_to_its_page_and_the_better_of_both_counts() -> None:
    names = [("Boris Karloff", "Boris Karloff"), ("William Henry Pratt", "Boris Karloff"), ("Bill Pratt", "Bill Pratt")]
    found = rank_person_titles_by_likeness(["William Pratt"], names)["William Pratt"]
    assert [title for _, title in found] == ["Boris Karloff", "Bill Pratt"]


_NAMES = st.one_of(
    st.text("aAeéoßłІ'’-_., ()B1jJhHnN\u00a0", max_size=14),
    st.lists(
        st.sampled_from(
            [
                "Bill",
                "William",
                "Jean-Luc",
                "O'Neil",
                "Lee",
                "Li",
                "Sir",
                "III",
                "J.",
                "(boxer)",
                "Seymour,",
                "1st Baron",
            ]
        ),
        min_size=1,
        max_size=4,
    ).map(" ".join),
)


@given(_NAMES, _NAMES)
def test_no_title_with_a_key_is_passed_over(name: str, title: str) -> None:
    asked = list_person_name_keys(name, is_query=True)
    assert _PersonTitlePrefilter(asked).may_have_key(title) or not asked & list_person_name_keys(title)


@given(st.permutations(["Ann Lee (painter)", "Ann Lee (diver)", "Ann Lee", "Anne Lee", "Ana Li"]))
def test_equals_do_not_depend_on_the_order_of_pages(titles: list[str]) -> None:
    found = rank_person_titles_by_likeness(["Ann Lee"], [(one, one) for one in titles])["Ann Lee"]
    assert [title for _, title in found[:3]] == ["Ann Lee", "Ann Lee (diver)", "Ann Lee (painter)"]


def test_published_pages_are_among_ten_candidates(shared: Path) -> None:
    """Of the pages that support facts in MF's decisions, at least 88 % are found among all those and 6,119 others."""
    root = shared / "dfactscore"
    if not (root / "citation").is_dir() or not (shared / "wikipedia").is_dir():
        pytest.skip("the published decisions are not here")
    names: dict[int, str] = {}
    for path in root.glob("citation/*.score"):
        for row in json.loads(path.read_text(encoding="utf-8"))["autoais_log"]:
            names[row["qid"]] = row["question"].replace("Tell me a bio of", "").replace("(disambiguation)", "").strip()
    supporting: list[tuple[str, Counter[str]]] = []  # of each response of each file: its name, its pages
    for path in root.glob("results/*.json"):
        for number, decisions in enumerate(json.loads(path.read_text(encoding="utf-8"))["decisions"]):
            told = [one["supporting_topic"] for one in decisions or [] if one["is_supported"]]
            if number in names and (pages := Counter(title for title in told if isinstance(title, str))):
                supporting.append((names[number], pages))
    corpus = json.loads((shared / "wikipedia/2wikimultihopqa_corpus.json").read_text(encoding="utf-8"))
    titles = {title for _, pages in supporting for title in pages} | {row["title"] for row in corpus}
    asked = list(dict.fromkeys(name for name, _ in supporting))
    found = rank_person_titles_by_likeness(asked, ((title, title) for title in sorted(titles)))

    def recall(kept: dict[str, set[str]]) -> tuple[float, float]:
        """Of pages, and of the main persons."""
        hits = [title in kept[name] for name, pages in supporting for title in pages]
        main = [pages.most_common(1)[0][0] in kept[name] for name, pages in supporting]
        return sum(hits) / len(hits), sum(main) / len(main)

    capped = {
        cap: recall({name: {title for _, title in ranked[:cap]} for name, ranked in found.items()})
        for cap in (MAX_CANDIDATES - MIN_PLACES_FOR_FACTS, MAX_CANDIDATES)
    }
    by_name = recall({name: set(same) for name, same in find_titles_of_same_name(asked, titles).items()})
    assert by_name == (pytest.approx(0.61, abs=0.02), pytest.approx(0.71, abs=0.03))
    assert capped[MAX_CANDIDATES][0] >= 0.88
    assert capped[MAX_CANDIDATES][1] >= 0.95
    assert capped[MAX_CANDIDATES - MIN_PLACES_FOR_FACTS][0] >= 0.87  # where the facts find pages of their own


# ----------------------------------------------------------------------------------------------------- passages


def test_passages_find_people_only_and_only_by_a_word() -> None:
    pages = [
        KnowledgePage("Ann Lee (disambiguation)", ("Nan Lee may be Ann Lee or Nan.",)),
        KnowledgePage("Ann Lee", ("<s>Ann Lee, on the stage nan of Leith.</s>", "She sang as NAN .")),
        KnowledgePage("Bo Ray", ("Bo Ray met Nan once, and",)),
        KnowledgePage("Cy Fox", ("",)),
    ]
    for texts in (None, ["Nan of Leith", "Zoe Quin"]):
        index = PassageIndex(pages, texts)
        assert index.rank_passages("Nan of Leith", 9) == [("Ann Lee", 0), ("Ann Lee", 1), ("Bo Ray", 0)]
        assert index.find_best_pages("Leith", 1) == {"Ann Lee"}
        assert index.rank_passages("Zoe Quin", 2) == []
        assert index.find_best_pages("Zoe Quin", 2) == set()
    assert PassageIndex(pages[:1]).rank_passages("Nan", 1) == PassageIndex([]).rank_passages("Nan", 1) == []


def test_equally_good_passages_are_found_together() -> None:
    text = ("He was born in Kribi.",)
    others = [KnowledgePage(f"Other {n}", ("Nothing here.",)) for n in range(4)]
    assert PassageIndex([KnowledgePage("B", text), KnowledgePage("A", text), *others]).find_best_pages("Kribi", 1) == {
        "A",
        "B",
    }


# ------------------------------------------------------------------------------------------------------ candidates


def _knowledge(tmp_path: Path, pages: dict[str, str], **redirects: str) -> TopicLookup:
    source = tmp_path / "pages.jsonl"
    rows = [{"title": title, "text": text} for title, text in pages.items()]
    rows += [{"title": name.replace("_", " "), "redirect": target} for name, target in redirects.items()]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    build_knowledge_source(source, tmp_path / "pages.db")
    return TopicLookup(DocDB(tmp_path / "pages.db"))


def _find(finder: CandidateFinder, response: Response, *facts: str) -> dict[str | None, str | None]:
    finder.prepare_responses([response])
    found = finder.find_candidates(response, [AtomicFact(text) for text in facts])
    return {one.title: one.found_by for one in found.candidates}


def test_titles_redirects_and_facts_find_candidates_together(tmp_path: Path) -> None:
    knowledge = _knowledge(
        tmp_path,
        {
            "William Sharkey (boxer)": "William Sharkey boxed.",
            "Boris Karloff": "Boris Karloff, born Sharkey, played the monster in Frankenstein.",
            "Frankenstein": "A film of a monster.",
            "Billy Sharkie": "A rower.",
            **{f"Town {n}": f"Town {n} lies by a river." for n in range(8)},
        },
        Bill_Sharkey_Junior="Boris Karloff",
    )
    response = Response("r", "Bill Sharkey", "x", "s")
    fact = "He played the monster in Frankenstein."
    found = {"William Sharkey (boxer)": "both", "Boris Karloff": "both", "Billy Sharkie": "titles"}
    assert _find(CandidateFinder(knowledge), response, fact) == found
    assert set(_find(CandidateFinder(knowledge, "titles"), response, fact)) == set(found)
    by_facts = dict.fromkeys(("William Sharkey (boxer)", "Boris Karloff"), "passages")
    assert _find(CandidateFinder(knowledge, "passages"), response, fact) == by_facts
    # What it brings itself always counts.
    own = Response("r", "Bill Sharkey", "x", "s", docs=(("Town 1", "It lies."),))
    assert _find(CandidateFinder(knowledge, max_candidates=1), own, fact) == {
        "Boris Karloff": "both",
        "Town 1": "given",
    }


def test_a_cap_keeps_places_for_what_the_facts_find_and_says_how_many_it_left_out(tmp_path: Path) -> None:
    people = {f"Ann Lee ({n:02})": "A person." for n in range(12)}
    knowledge = _knowledge(tmp_path, people | {"Zara": "Zara, once Lee, dived in Oslo."} | {"Oslo": "A town."})
    response = Response("r", "Ann Lee", "x", "s")
    finder = CandidateFinder(knowledge)
    finder.prepare_responses([response])
    found = finder.find_candidates(response, [AtomicFact("She dived in Oslo.")])
    titles = [one.title for one in found.candidates]
    assert titles == [*sorted(people)[: MAX_CANDIDATES - 1], "Zara"]
    assert found.n_left_out == 3
    assert finder.find_candidates(response, []).n_left_out == 2


def test_a_large_source_is_read_through_for_a_name_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("factaudit.engines.dfactscore.candidate_finder.MAX_INDEXED_PAGES", 1)
    knowledge = _knowledge(tmp_path, {"Ann Lee (poet)": "A poet.", "Bo Lee": "A rower.", "Oslo": "A town."})
    reads: list[int] = []
    names = DocDB.titles_and_redirects

    def counted(self: DocDB) -> Any:
        reads.append(1)
        return names(self)

    monkeypatch.setattr(DocDB, "titles_and_redirects", counted)

    def found(*asked: str) -> list[list[str | None]]:
        responses = [Response(name, name, "x", "s") for name in asked]
        finder = CandidateFinder(knowledge, "titles")
        finder.prepare_responses(responses, tmp_path / "journal")
        return [[one.title for one in finder.find_candidates(response, []).candidates] for response in responses]

    once = found("Ann Lee", "Nobody")
    assert once[0][0] == "Ann Lee (poet)"
    assert once[1] == [None]
    assert found("Ann Lee", "Nobody") == once
    assert len(reads) == 1
    assert found("Bo Lee", "Ann Lee") == [found("Bo Lee")[0], once[0]]
    assert len(reads) == 2


# ----------------------------------------------------------------------------------------------------- sensitivity


def _judged(cells: list[tuple[str, str, str, int, int]]) -> Judgements:
    """(fact, entity, found by, rank, supported) of one response."""
    rows: list[dict[str, Any]] = [
        {"claim_id": f"{fact}.{entity}", "dataset": "d", "system": "s", "response_id": "r", "topic": "Ann Lee"}
        | {"fact_id": fact, "group": "1", "entity": entity, "claim": fact, "found_by": way, "candidate_rank": rank}
        for fact, entity, way, rank, _ in cells
    ]
    verdicts = [{"claim_id": f"{c[0]}.{c[1]}", "evaluator": "e", "prediction": c[4]} for c in cells]
    return Judgements.join(validate_claims(pd.DataFrame(rows)), validate_verdicts(pd.DataFrame(verdicts)))


def test_the_scores_by_each_way_are_those_of_a_table_without_the_others() -> None:
    cells = [
        ("r.0", "A", "titles", 1, 1),
        ("r.0", "B", "passages", 2, 0),
        ("r.0", "C", "both", 3, 0),
        ("r.1", "A", "titles", 1, 0),
        ("r.1", "B", "passages", 2, 1),
        ("r.1", "C", "both", 3, 0),
    ]
    rows = {(row["candidates"], row["cap"]): row for row in compute_dfactscore_by_candidates(_judged(cells))}
    told = {key: (row["init_factscore"], row["init_dfactscore"], row["n_candidates"]) for key, row in rows.items()}
    assert told["both", None] == (1.0, 0.5, 3)
    assert told["titles", None] == (0.5, 0.5, 2)
    assert told["passages", None] == (0.5, 0.5, 2)
    assert told["both", 1] == (0.5, 0.5, 1)
    assert told["both", 2] == (*told["both", 5][:2], 2)
    assert rows["both", None]["share_merged"] == 1
    assert rows["both", 1]["share_merged"] == 0
    assert AUDIT.applies is not None
    assert AUDIT.applies(_judged(cells))
    nobody = [(fact, entity, "titles", 1, said) for fact, entity, _, _, said in cells if entity == "A"]
    (by_facts,) = [row for row in compute_dfactscore_by_candidates(_judged(nobody)) if row["candidates"] == "passages"]
    assert (by_facts["init_dfactscore"], by_facts["n_without_candidates"]) == (None, 1)
    assert (by_facts["init_dfactscore_min"], by_facts["init_dfactscore_max"]) == (0, 1)


# ------------------------------------------------------------------------------------------- titles in any case


@given(
    st.lists(st.text("aAbBéÉ1 ", min_size=1, max_size=4), min_size=1, max_size=30, unique=True),
    st.text("aAbBéÉ1 ", min_size=1, max_size=4),
)
def test_a_title_in_any_case_is_what_sqlite_finds_without_case(titles: list[str], asked: str) -> None:
    source = object.__new__(DocDB)
    source.has_title_index = True
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE documents (title PRIMARY KEY, text)")
    connection.executemany("INSERT INTO documents VALUES (?, '')", [(one,) for one in titles])
    source._query_rows = lambda query, *values: connection.execute(query, values).fetchall()  # type: ignore[method-assign]
    query = "SELECT title FROM documents WHERE title = ? COLLATE NOCASE ORDER BY title LIMIT 1"
    expected = source._query_rows(query, asked)
    assert source._find_title_in_any_case(asked) == (expected[0][0] if expected else None)


def test_a_miss_costs_as_many_look_ups_however_many_pages_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = []
    for n in (100, 20_000):
        source = tmp_path / f"{n}.jsonl"
        source.write_text("".join(json.dumps({"title": f"Person {i}", "text": "x"}) + "\n" for i in range(n)))
        build_knowledge_source(source, tmp_path / f"{n}.db")
        with DocDB(tmp_path / f"{n}.db") as db:
            queries: list[str] = []
            rows = db._query_rows
            monkeypatch.setattr(
                db,
                "_query_rows",
                lambda query, *v, rows=rows, queries=queries: queries.append(query) or rows(query, *v),
            )
            assert db.find("Personage Unknown") is None
            assert not any("NOCASE" in query for query in queries)
            needed.append(len(queries))
    assert needed[0] == needed[1] < 60


def test_known_pages_of_wikipedia_do_not_wait_for_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wikipedia = WikipediaPageCache(tmp_path / "side.db")
    asked, answered = threading.Event(), threading.Event()

    def get(list: str | None = None, **query: str) -> dict[str, Any]:
        if query.get("srsearch") == "slow":
            asked.set()
            assert answered.wait(10)
        title = query.get("titles") or query["srsearch"]
        return {"query": {"search": [{"title": title}], "pages": [{"extract": f"Of {title}."}]}}

    monkeypatch.setattr(wikipedia._wiki, "query_api", get)
    assert wikipedia.find_page("quick") == KnowledgePage("quick", ("Of quick.",), "wikipedia")
    found: list[KnowledgePage | None] = []
    thread = threading.Thread(target=lambda: found.append(wikipedia.find_page("slow")))
    thread.start()
    assert asked.wait(10)
    assert wikipedia.find_page("quick") is not None  # while the other is under way
    answered.set()
    thread.join(10)
    assert found == [KnowledgePage("slow", ("Of slow.",), "wikipedia")]
