"""AmbigBio: names from a double of Wikipedia's API, biographies from a knowledge source and a scripted LLM."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from scripted_llm import ScriptedLLM

from factaudit.engines.ambigbio import (
    DEMONSTRATION_SETS,
    AmbigBioName,
    AmbigBioPrompt,
    collect_ambigbio_names,
    generate_ambigbio_biographies,
    rank_ambigbio_passages,
    read_ambigbio_names,
)
from factaudit.engines.engine_settings import open_engine_knowledge_source
from factaudit.engines.responses import read_response_file
from factaudit.errors import FactauditError, InputError, UsageError
from factaudit.knowledge.docdb import DocDB
from factaudit.llm.chat_types import ChatReply

#: What the double links to from "Name 3 Xy (disambiguation)": two people of the name, one of another, a place.
PEOPLE = 45


class Wiki:
    """A double of the MediaWiki API: a category of `PEOPLE` pages in three parts, links in two."""

    def __init__(self) -> None:
        self.queries: list[dict[str, str]] = []
        self.broken_after: int | None = None
        double = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
                double.queries.append(query)
                broken = double.broken_after is not None and len(double.queries) > double.broken_after
                body = json.dumps({} if broken else double.answer(query)).encode()
                self.send_response(403 if broken else 200)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/w/api.php"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, query: dict[str, str]) -> dict[str, Any]:
        assert query["format"] == "json"
        if query.get("list") == "categorymembers":
            start = int(query.get("cmcontinue", "0"))
            titles = [f"Name{n} Xy (disambiguation)" for n in range(start, min(start + 20, PEOPLE))]
            more = {"continue": {"cmcontinue": str(start + 20), "continue": "-||"}} if start + 20 < PEOPLE else {}
            return {"query": {"categorymembers": [{"title": title} for title in titles]}, **more}
        assert query["prop"] == "links"
        first = "plcontinue" not in query
        pages = []
        for title in query["titles"].split("|"):
            name = title.split(" (")[0]
            number = int(name.removeprefix("Name").removesuffix(" Xy"))
            links = [f"{name} (poet)", "Xy, Texas", f"Other{number} Xy"] if first else []
            # Every third name has only one person.
            links += [f"{name} (judge)"] if not first and number % 3 else []
            pages.append({"title": title, "links": [{"title": link} for link in links]})
        more = {"continue": {"plcontinue": "x", "continue": "||"}} if first else {}
        return {"query": {"pages": pages}, **more}


@pytest.fixture
def wiki() -> Iterator[Wiki]:
    double = Wiki()
    yield double
    double.server.shutdown()
    double.server.server_close()


def test_names_are_drawn_by_seed_and_have_their_people(wiki: Wiki, tmp_path: Path) -> None:
    out = tmp_path / "names.jsonl"
    names = collect_ambigbio_names(out, 12, seed=1, api=wiki.url, pause=0)
    assert len(names) == len({one.name for one in names}) == 12
    for one in names:
        assert one.candidates == (f"{one.name} (judge)", f"{one.name} (poet)")
        assert int(one.name[4:-3]) % 3
    assert read_ambigbio_names(out) == names
    assert names != collect_ambigbio_names(tmp_path / "others.jsonl", 12, seed=2, api=wiki.url, pause=0)
    assert {query.get("cmlimit", "500") for query in wiki.queries} == {"500"}


def test_there_may_be_fewer_names_than_asked_for(wiki: Wiki, tmp_path: Path) -> None:
    assert len(collect_ambigbio_names(tmp_path / "names.jsonl", 500, api=wiki.url, pause=0)) == PEOPLE - PEOPLE // 3
    with pytest.raises(UsageError, match="1 name or more"):
        collect_ambigbio_names(tmp_path / "names.jsonl", 0, api=wiki.url)


def test_collecting_goes_on_where_it_was(wiki: Wiki, tmp_path: Path) -> None:
    whole = collect_ambigbio_names(tmp_path / "whole.jsonl", 30, api=wiki.url, pause=0)
    needed = len(wiki.queries)
    wiki.queries.clear()
    out = tmp_path / "names.jsonl"
    for broken_after in (2, 2, 2):
        before = len(wiki.queries)
        wiki.broken_after = before + broken_after
        with pytest.raises(FactauditError, match="HTTP 403"):
            collect_ambigbio_names(out, 30, api=wiki.url, pause=0)
        assert not out.exists()
        # A torn last line is no line.
        links = tmp_path / ".names.jsonl.links"
        if links.exists():
            links.write_bytes(links.read_bytes() + b'{"page": "Na')
    wiki.broken_after = None
    assert collect_ambigbio_names(out, 30, api=wiki.url, pause=0) == whole
    refused = 3
    # A batch of links is asked for whole, so the part of it that was there before a refusal is asked for again.
    assert len(wiki.queries) <= needed + 2 * refused
    wiki.queries.clear()
    assert collect_ambigbio_names(out, 30, api=wiki.url, pause=0) == whole
    assert wiki.queries == []


def test_names_are_read_from_the_published_file(shared: Path, tmp_path: Path) -> None:
    names = read_ambigbio_names(shared / "dfactscore" / "AmbigBio.csv")
    assert len(names) == 497  # the paper says 500; the file that is published has 497 lines
    assert names[:2] == [AmbigBioName("Manuel Suárez"), AmbigBioName("Bruce Johnston")]
    assert names[0].question == "Tell me a bio of Manuel Suárez"


def test_names_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    file = tmp_path / "names.csv"
    file.write_text("Tell me a bio of Ann Lee\n\t[]\n")
    with pytest.raises(InputError, match="row 2"):
        read_ambigbio_names(file)
    with pytest.raises(InputError, match="no such file"):
        read_ambigbio_names(tmp_path / "none.csv")


# -------------------------------------------------------------------------------------------------- generating


@pytest.fixture
def people(root: Path, tmp_path: Path) -> DocDB:
    return open_engine_knowledge_source(root / "data/people/pages.jsonl", out=tmp_path).db


def test_biographies_are_written_from_the_best_passages(people: DocDB, tmp_path: Path) -> None:
    llm = ScriptedLLM(lambda prompt: "Somebody [1].")
    out = tmp_path / "bios.jsonl"
    names = [
        AmbigBioName("Elena Varga"),
        AmbigBioName("Samuel Adeyo", ("Samuel Adeyo (architect)",)),
        AmbigBioName("Nobody Atall"),
    ]
    said: list[str] = []
    rows = generate_ambigbio_biographies(names, people, llm, out, say=said.append)
    assert [row["name"] for row in rows] == ["Elena Varga", "Samuel Adeyo"]
    assert said == ["no page for 'Nobody Atall': left out"]
    one, two = read_response_file(out)
    assert (one.system, one.output, len(one.docs)) == ("scripted", "Somebody [1].", 3)
    assert one.candidates == ("Elena Varga (botanist)", "Elena Varga (cellist)", "Elena Varga (chess player)")
    assert two.candidates == ("Samuel Adeyo (architect)",)
    prompt = llm.prompts[0]
    # Two demonstrations and the question, each with the instruction; titles keep their parentheses.
    assert prompt.count("Write an accurate, engaging, and concise biography") == 3
    assert prompt.count("\n\n\n") == 2
    assert "\n\nName of the person: Elena Varga\n\nDocument [1] (Title: Elena Varga (" in prompt
    assert prompt.endswith("Answer:")


def test_a_search_of_everything_finds_documents_of_others(people: DocDB, tmp_path: Path) -> None:
    (row,) = generate_ambigbio_biographies(
        [AmbigBioName("Elena Varga")], people, ScriptedLLM(lambda p: "x"), tmp_path / "b.jsonl", k=9, whole=True
    )
    titles = [doc["title"] for doc in row["docs"]]
    assert len(titles) == 9
    assert all(title.startswith("Elena Varga") for title in titles[:3])
    assert not all(title.startswith("Elena Varga") for title in titles)
    assert row["candidates"] == ["Elena Varga (botanist)", "Elena Varga (cellist)", "Elena Varga (chess player)"]
    text = {title: "".join(people.passages(title) or ()) for title in titles}
    assert all(doc["text"] in text[doc["title"]] for doc in row["docs"])


def test_demonstrations_with_and_without_ambiguity(tmp_path: Path) -> None:
    def people_of(demo: dict[str, Any]) -> int:
        return len({doc["title"] for doc in demo["docs"]})

    assert all(people_of(demo) > 1 for demo in AmbigBioPrompt.load("ambiguity").demos)
    assert all(people_of(demo) == 1 for demo in AmbigBioPrompt.load("no-ambiguity").demos)
    # Documents of several people, answers about one (MF §5.3); only the careful answer says that there are several.
    several = {
        name: [demo["answer"].count("Several people") for demo in AmbigBioPrompt.load(name).demos]
        for name in DEMONSTRATION_SETS
    }
    assert several == {"ambiguity": [0, 0], "no-ambiguity": [0, 0], "careful": [0, 1]}
    for name in DEMONSTRATION_SETS:
        assert len(AmbigBioPrompt.load(name).demos) == 2
        assert all(len(demo["docs"]) == 5 for demo in AmbigBioPrompt.load(name).demos)
    file = tmp_path / "demos.json"
    demos = [{"question": "Q", "answer": "A", "docs": [{"title": "T", "text": "X"}]}] * 3
    file.write_text(json.dumps({"instruction": "Write.", "demos": demos}))
    one = "Write.\n\nName of the person: Q\n\nDocument [1] (Title: T): X\nAnswer: A"
    assert (
        AmbigBioPrompt.load(file).make_prompt("B", [])
        == f"{one}\n\n\n{one}\n\n\nWrite.\n\nName of the person: B\n\nAnswer:"
    )
    file.write_text("{}")
    with pytest.raises(InputError, match="instruction"):
        AmbigBioPrompt.load(file)
    with pytest.raises(UsageError, match="did you mean 'ambiguity'"):
        AmbigBioPrompt.load("ambiguty")


def test_a_failed_call_is_said_and_asked_again(people: DocDB, tmp_path: Path) -> None:
    said: list[str] = []
    names = [AmbigBioName("Elena Varga"), AmbigBioName("Samuel Adeyo")]
    llm = ScriptedLLM(lambda p: ChatReply("error", error="gave up") if p.count("Samuel Adeyo") else "Text.")
    rows = generate_ambigbio_biographies(names, people, llm, tmp_path / "bios.jsonl", system="x", say=said.append)
    assert [row["system"] for row in rows] == ["x"]
    assert said == ["no reply for 'Samuel Adeyo': gave up"]


def test_passages_of_several_pages_are_ranked_together(people: DocDB) -> None:
    titles = ["Elena Varga (cellist)", "Elena Varga (botanist)", "Not There"]
    best = rank_ambigbio_passages(people, titles, "Elena Varga saxifrages of the Caucasus", k=1)
    assert [one["title"] for one in best] == ["Elena Varga (botanist)"]
    assert rank_ambigbio_passages(people, ["Not There"], "x") == []
