"""The knowledge source: files that are refused, look-ups, building, retrieval, Wikipedia."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import time
import urllib.parse
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from published_server import PublishedFilesServer, send_bytes

from factaudit import FactauditError, InputError
from factaudit.knowledge.docdb import PASSAGE_SEPARATOR, DocDB, KnowledgePage
from factaudit.knowledge.knowledge_builder import build_knowledge_source
from factaudit.knowledge.retrieval import PassageRetriever
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.knowledge.wikipedia_api import WikipediaPageCache


def original(
    path: Path, pages: dict[str, list[str]], schema: str = "title PRIMARY KEY, text"
) -> Path:
    """A file as the original's `build_db` makes it."""
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE documents ({schema});")
        rows = [(title, PASSAGE_SEPARATOR.join(passages)) for title, passages in pages.items()]
        connection.executemany("INSERT INTO documents VALUES (?,?)", rows)
    connection.close()
    return path


PAGES = {
    "Ada Fenn": ["<s>Ada Fenn was a miller.</s>", "<s>She died.</s>"],
    "ADA FENN": ["loud"],
    "Émile Oru": ["one"],
}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[DocDB]:
    with DocDB(original(tmp_path / "wiki.db", PAGES)) as opened:
        yield opened


# ---- docdb


def test_an_original_file_is_read_as_it_is(db):
    assert db.passages("Ada Fenn") == ("<s>Ada Fenn was a miller.</s>", "<s>She died.</s>")
    assert db.find("Ada Fenn") == KnowledgePage("Ada Fenn", tuple(PAGES["Ada Fenn"]))
    assert db.info()["n_pages"] == 3
    assert [title for title, _ in db.titles_and_redirects()] == sorted(PAGES)


@pytest.mark.parametrize(
    ("topic", "title"),
    [
        ("Ada_Fenn", "Ada Fenn"),
        (" Ada  Fenn ", "Ada Fenn"),
        ("E\N{COMBINING ACUTE ACCENT}mile_Oru", "Émile Oru"),
    ],
)
def test_a_topic_is_found_by_its_normalised_title(db, topic, title):
    page = db.find(topic)
    assert page is not None
    assert page.title == title


OTHER_SPELLINGS = [
    "Sinéad O’Connor",
    "Barack_Obama",
    "Beyoncé",
    "Łódź",
    "Müller, Thomas",
    "St. John",
]


@pytest.mark.parametrize(
    ("topic", "title"),
    [
        ("Sinead O'Connor", "Sinéad O’Connor"),
        ("Sinéad O'Connor", "Sinéad O’Connor"),
        ("barack OBAMA", "Barack_Obama"),
        ("Beyonce", "Beyoncé"),
        ("Lodz", "Łódź"),
        ("Thomas Müller", "Müller, Thomas"),
        ("St John", "St. John"),
        ("Barak Obama", "Barack_Obama"),
        ("Ada Fenn", None),
    ],
)
def test_a_topic_without_a_page_is_told_what_there_is(tmp_path, topic, title):
    with DocDB(
        original(tmp_path / "wiki.db", {one: ["text"] for one in OTHER_SPELLINGS})
    ) as opened:
        _, page, status, reason = TopicLookup(opened).find_page(topic)
    assert (page, status) == (None, "skipped")
    assert (reason or "").partition("; ")[2] == (f"there is {title!r}" if title else "")


def test_redirects_are_followed_where_there_is_a_table_of_them(tmp_path):
    path = original(tmp_path / "wiki.db", PAGES)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE redirects (title, target)")
        connection.executemany(
            "INSERT INTO redirects VALUES (?, ?)", [("A. Fenn", "Ada Fenn"), ("Lost", "Nowhere")]
        )
    connection.close()
    with DocDB(path) as opened:
        assert opened.find("A._Fenn") == KnowledgePage("Ada Fenn", tuple(PAGES["Ada Fenn"]))
        assert opened.find("Lost") is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not an SQLite file"),
        (b'{"title": "A"}\n', "not an SQLite file"),
        (b"SQLite format 3\x00abc", "a damaged SQLite file"),
    ],
)
def test_what_is_no_knowledge_source_is_refused_with_the_reason(tmp_path, content, said):
    path = tmp_path / "wiki.db"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        DocDB(path)
    assert str(path) in str(caught.value)


def test_a_truncated_download_is_refused(tmp_path):
    path = original(tmp_path / "wiki.db", {f"T{i}": ["word " * 300] for i in range(50)})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="an unfinished download"):
        DocDB(path)


def test_another_schema_and_an_empty_table_are_refused(tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE pages (name, body)")
    with pytest.raises(
        InputError, match=r"expected a table documents\(title, text\), found CREATE TABLE pages"
    ):
        DocDB(tmp_path / "other.db")
    with pytest.raises(InputError, match=r"found CREATE TABLE documents \(id, text\)"):
        DocDB(original(tmp_path / "columns.db", {}, "id, text"))
    with pytest.raises(InputError, match="without a page"):
        DocDB(original(tmp_path / "none.db", {}))
    with pytest.raises(InputError, match="no such knowledge source"):
        DocDB(tmp_path / "absent.db")


# ---- build


def write_pages(path: Path, rows: list[dict[str, Any]]) -> Path:
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["pages.jsonl", "pages.jsonl.gz"])
def test_build_cuts_texts_keeps_passages_and_records_how(tmp_path, name):
    words = [f"w{i}" for i in range(600)]
    source = write_pages(
        tmp_path / name,
        [
            {"title": "Long", "text": " ".join(words)},
            {"title": "Parts", "text": ["one two", "three"]},
            {"title": "Given", "passages": ["<s>a</s>", "b", " "]},
            {"title": "Long", "text": "a second one"},
            {"title": "The long one", "redirect": "Long"},
        ],
    )
    told = build_knowledge_source(source, tmp_path / "wiki.db")
    assert {key: told[key] for key in ("n_pages", "n_passages", "n_duplicates", "n_redirects")} == {
        "n_pages": 3,
        "n_passages": 6,
        "n_duplicates": 1,
        "n_redirects": 1,
    }
    with DocDB(tmp_path / "wiki.db") as opened:
        assert opened.passages("Long") == (
            " ".join(words[:256]),
            " ".join(words[256:512]),
            " ".join(words[512:]),
        )
        assert opened.passages("Parts") == ("one two three",)
        assert opened.passages("Given") == ("<s>a</s>", "b")
        found = opened.find("The long one")
        assert found is not None
        assert found.title == "Long"
        info = opened.info()
        assert (info["tokenizer"], info["passage_tokens"], info["n_passages"]) == (
            "white space",
            256,
            6,
        )
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted([name, "wiki.db"])


def test_an_empty_source_and_a_cut_gzip_are_refused(tmp_path):
    (tmp_path / "none.jsonl").write_text("\n")
    with pytest.raises(InputError, match="has no page"):
        build_knowledge_source(tmp_path / "none.jsonl", tmp_path / "wiki.db")
    whole = write_pages(
        tmp_path / "p.jsonl.gz",
        [{"title": str(i), "text": os.urandom(200).hex()} for i in range(99)],
    )
    whole.write_bytes(whole.read_bytes()[:5000])
    with pytest.raises(InputError, match="not a whole gzip file"):
        build_knowledge_source(whole, tmp_path / "wiki.db")


@pytest.mark.hf
def test_a_roberta_tokenizer_cuts_as_the_original_does(tmp_path):
    folder = tiny_roberta_tokenizer(tmp_path / "tokenizer")
    text = ["one two three four five six", "seven eight nine"]
    source = write_pages(tmp_path / "pages.jsonl", [{"title": "T", "text": text}])
    told = build_knowledge_source(
        source, tmp_path / "wiki.db", passage_tokens=5, tokenizer=str(folder)
    )
    assert told["tokenizer"] == str(folder)
    with DocDB(tmp_path / "wiki.db") as opened:
        passages = opened.passages("T")
    assert passages is not None
    # <s> one two three four | five six </s> <s> seven | eight nine </s>
    assert [passage.replace(" ", "") for passage in passages] == [
        "<s>onetwothreefour",
        "fivesix</s><s>seven",
        "eightnine</s>",
    ]


NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def tiny_roberta_tokenizer(folder: Path) -> Path:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import RobertaProcessing
    from transformers import PreTrainedTokenizerFast

    words = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *NUMBERS]
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = RobertaProcessing(("</s>", 2), ("<s>", 0))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token="<mask>",
    )
    fast.save_pretrained(folder)
    return folder


# ---- retrieval


def test_bm25_ranks_as_rank_bm25_with_ties_in_passage_order():
    page = KnowledgePage(
        "Ada",
        ("<s>the mill burned</s>", "x y", "x y", "she sold the mill in 1901", "x y", "x y", "x y"),
    )
    found = PassageRetriever(k=4).retrieve(page, "Ada", " She sold it in 1901. ")
    assert found == ["she sold the mill in 1901", "the mill burned", "x y", "x y"]
    assert PassageRetriever(k=3).retrieve(
        KnowledgePage("T", ("c", "a", "b")), "nothing", "fits"
    ) == ["c", "a", "b"]


def test_the_query_is_topic_and_fact_between_white_space():
    page = KnowledgePage("T", ("alpha beta", "gamma delta", "Topic delta.", "zeta eta"))
    assert PassageRetriever(k=1).retrieve(page, "Topic", "delta.") == ["Topic delta."]
    # "delta." is another word.
    assert PassageRetriever(k=1).retrieve(page, "", "delta") == ["gamma delta"]


@pytest.mark.parametrize("passages", [("only one",), ("",), ("<s></s>", " ")])
def test_pages_of_one_passage_or_of_none_with_a_word_are_returned_whole(
    passages,
):
    cleaned = [one.replace("<s>", "").replace("</s>", "") for one in passages]
    assert PassageRetriever().retrieve(KnowledgePage("T", passages), "T", "a fact") == cleaned


def test_dense_ranks_by_cosine_of_title_and_passage(monkeypatch):
    asked = []

    class Encoder:
        def encode(self, texts, normalize_embeddings):
            assert normalize_embeddings
            asked.append(texts)
            return np.array([[float("sea" in text), float("hill" in text)] for text in texts])

    monkeypatch.setattr(PassageRetriever, "_encoder", Encoder())
    page = KnowledgePage("T", ("by the sea", "on a hill", "nowhere"))
    assert PassageRetriever("dense", k=2).retrieve(page, "Topic", "a hill") == [
        "on a hill",
        "by the sea",
    ]
    assert asked == [["T by the sea", "T on a hill", "T nowhere"], ["Topic a hill"]]


# ---- topics, Wikipedia


@pytest.fixture
def api(serve: Callable[..., PublishedFilesServer], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What an API of one page it was asked for: "Busy" gives 429 once, "Broken"
    always 500."""
    asked = []

    def answer(path: str, request: BaseHTTPRequestHandler) -> None:
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(request.path).query))
        topic = query.get("srsearch", query.get("titles", ""))
        asked.append(topic)
        if topic == "Broken" or (topic == "Busy" and asked.count("Busy") == 1):
            return request.send_error(500 if topic == "Broken" else 429)
        found = {"search": [] if topic == "Nobody" else [{"title": "Ada Fenn (miller)"}]}
        if query.get("list") != "search":
            found = {"pages": [{"title": topic, "extract": " ".join(f"w{i}" for i in range(300))}]}
        return send_bytes(request, json.dumps({"query": found}).encode())

    monkeypatch.setenv("FACTAUDIT_WIKIPEDIA_API", f"{serve(answer).address}/w/api.php")
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    return asked


def test_wikipedia_is_asked_once_and_its_page_kept_as_a_knowledge_source(api, tmp_path):
    side = tmp_path / "side.db"
    for _ in range(2):
        wikipedia = WikipediaPageCache(side)
        page = wikipedia.find_page("Ada Fenn the miller")
        assert page is not None
        assert (page.title, len(page.passages)) == ("Ada Fenn (miller)", 2)
        assert page.passages[0].split()[-1] == "w255"
        assert wikipedia.find_page("Nobody") is None
    assert len(api) == 3  # search and page, and the search that found nothing
    with DocDB(side) as opened:
        assert page is not None
        assert opened.passages("Ada Fenn (miller)") == page.passages
        assert opened.info()["n_pages"] == 1


def test_a_busy_wikipedia_is_asked_again_and_a_broken_one_said_to_be_so(api, tmp_path):
    wikipedia = WikipediaPageCache(tmp_path / "side.db")
    assert wikipedia.find_page("Busy") is not None
    with pytest.raises(FactauditError, match="could not be asked: HTTP 500"):
        wikipedia.find_page("Broken")
    n = len(api)
    with pytest.raises(FactauditError, match="HTTP 500"):  # a failure is not remembered
        wikipedia.find_page("Broken")
    assert len(api) > n


def test_topics_without_a_page(db, api, tmp_path):
    assert TopicLookup(db).find_page("Ada Fenn").page is not None
    _, page, status, reason = TopicLookup(db).find_page("Nobody")
    assert (page, status) == (None, "skipped")
    assert reason == "no page for the topic 'Nobody' in the knowledge source"
    online = TopicLookup(db, WikipediaPageCache(tmp_path / "side.db"))
    _, page, status, reason = online.find_page("Ada Fenn the miller")
    assert page is not None
    assert (page.title, status, reason) == ("Ada Fenn (miller)", "ok", None)
    assert online.find_page("Nobody").status == "skipped"
    assert online.find_page("Broken").status == "error"
    online.check_topics(["Broken"])  # there are pages, so Wikipedia need not answer


def test_the_signature_is_of_the_content_wherever_the_file_lies(tmp_path, monkeypatch):
    def sign(name, text):
        with DocDB(original(tmp_path / name, {"Bob": [text]})) as db:
            return db.signature

    assert sign("one.db", "Bob swam.") == sign("two.db", "Bob swam.")
    assert sign("three.db", "Bob flew.") != sign("one.db".replace("one", "four"), "Bob swam.")
    monkeypatch.setattr("factaudit.knowledge.docdb.MAX_HASHED_BYTES", 10)
    assert sign("five.db", "Bob swam.") == f"bytes:{(tmp_path / 'five.db').stat().st_size}"
