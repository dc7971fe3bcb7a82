"""AmbigBio: ambiguous names of Wikipedia, and biographies by retrieval-augmented generation (MF §2.1, §2.2, App. A)."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from factaudit.audit.core.result_rows import Row
from factaudit.datasets.source_files import DatasetSourceRow as SourceRow
from factaudit.datasets.source_files import read_dataset_source_rows
from factaudit.engines.responses import parse_name_from_question
from factaudit.errors import InputError, Problem, UsageError, suggest_known_name
from factaudit.files import JsonLinesJournal, parse_json_file_text, write_jsonl
from factaudit.knowledge.bm25 import Bm25Index
from factaudit.knowledge.docdb import DocDB
from factaudit.knowledge.passage_index import PassageIndex
from factaudit.knowledge.person_names import find_titles_of_same_name, is_title_of_name, remove_person_title_suffix
from factaudit.knowledge.retrieval import remove_special_tokens
from factaudit.knowledge.wikipedia_api import WIKIPEDIA_API, MediaWikiApi
from factaudit.llm.answer_extraction import extract_llm_answer
from factaudit.llm.chat_types import ChatModelProtocol, ChatRequest
from factaudit.llm.coroutine_runner import open_llm_clients_for_block, run_coroutine, run_coroutines_concurrently

#: Where Wikipedia lists its disambiguation pages of people.
DISAMBIGUATION_CATEGORY = "Category:Human name disambiguation pages"
#: A page that links to fewer people of the name is not ambiguous.
MIN_PEOPLE = 2
#: Titles per request: the API allows 50, and their links come in several parts anyway.
TITLES_PER_REQUEST = 20
#: Passages in a prompt, and demonstrations (MF App. A).
PASSAGES_PER_PROMPT, DEMONSTRATIONS_PER_PROMPT = 5, 2
DEMONSTRATION_SETS = ("ambiguity", "no-ambiguity", "careful")
SAMPLING_PARAMETERS: Mapping[str, Any] = {"temperature": 0.0, "max_tokens": 300}

Say = Callable[[str], None]


@dataclass(frozen=True)
class AmbigBioName:
    """An ambiguous name; candidates: the titles of the people who have it, None where nobody has looked."""

    name: str
    candidates: tuple[str, ...] | None = None

    @property
    def question(self) -> str:
        """What a system is asked."""
        return f"Tell me a bio of {self.name}"


# --------------------------------------------------------------------------------------------------- collecting


def collect_ambigbio_names(
    out: str | Path,
    n: int = 500,
    *,
    seed: int = 0,
    api: str = WIKIPEDIA_API,
    pause: float = 1.0,
    say: Say = lambda text: None,
) -> list[AmbigBioName]:
    """Draw ``n`` ambiguous names from Wikipedia's disambiguation pages of people.

    The category is listed whole, shuffled by ``seed``, and gone through until ``n`` pages are found that link to at
    least `MIN_PEOPLE` people of the name. One request at a time, ``pause`` seconds apart. What was learnt is written
    down beside ``out`` as it comes: the same call again goes on where it was.

    Writes JSONL ``{name, question, page, candidates}`` and returns the names; fewer than ``n`` where there are not
    more. Raises `FactauditError` where the API cannot be asked.
    """
    if n < 1:
        raise UsageError(f"expected to collect 1 name or more, found {n}")
    target = Path(out)
    wiki = MediaWikiApi(api, pause)
    titles = _list_ambigbio_category_titles(wiki, target.with_name(f".{target.name}.titles"), say)
    order = sorted(set(titles))
    random.Random(seed).shuffle(order)
    links: dict[str, list[str]] = {}
    known = JsonLinesJournal(
        target.with_name(f".{target.name}.links"), lambda row: links.update({row["page"]: row["candidates"]})
    )
    rows: list[Row] = []
    for start in range(0, len(order), TITLES_PER_REQUEST):
        batch = order[start : start + TITLES_PER_REQUEST]
        ask = [title for title in batch if title not in links]
        if ask:
            found = _list_ambigbio_page_links(wiki, ask)
            for title in ask:
                links[title] = sorted(
                    link for link in found.get(title, ()) if is_title_of_name(link, remove_person_title_suffix(title))
                )
                known.write_row({"page": title, "candidates": links[title]})
        rows += [
            {"name": one.name, "question": one.question, "page": title, "candidates": list(one.candidates or ())}
            for title in batch
            if len(links[title]) >= MIN_PEOPLE
            for one in [AmbigBioName(remove_person_title_suffix(title), tuple(links[title]))]
        ]
        say(f"names     {min(len(rows), n):>9,} of {n:,}")
        if len(rows) >= n:
            break
    known.close()
    rows = rows[:n]
    write_jsonl(target, rows)
    return [AmbigBioName(row["name"], tuple(row["candidates"])) for row in rows]


def _list_ambigbio_category_titles(wiki: MediaWikiApi, path: Path, say: Say) -> list[str]:
    """The titles of all disambiguation pages of people; each part is written down with where the next one begins."""
    parts: list[Row] = []
    log = JsonLinesJournal(path, parts.append)
    state: Row = parts[-1] if parts else {"next": {}}
    while state["next"] is not None:
        answer = wiki.query_api(
            list="categorymembers",
            cmtitle=DISAMBIGUATION_CATEGORY,
            cmnamespace="0",
            cmtype="page",
            cmlimit="500",
            **state["next"],
        )
        titles = [str(page["title"]) for page in answer.get("query", {}).get("categorymembers", [])]
        state = {"titles": titles, "next": answer.get("continue")}
        parts.append(state)
        log.write_row(state)
        say(f"listed    {sum(len(row['titles']) for row in parts):>9,} disambiguation pages")
    log.close()
    return [title for row in parts for title in row["titles"]]


def _list_ambigbio_page_links(wiki: MediaWikiApi, titles: Sequence[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    more: dict[str, str] | None = {}
    while more is not None:
        answer = wiki.query_api(prop="links", titles="|".join(titles), plnamespace="0", pllimit="max", **more)
        for page in answer.get("query", {}).get("pages", []):
            found.setdefault(str(page["title"]), set()).update(str(link["title"]) for link in page.get("links", ()))
        more = answer.get("continue")
    return found


# --------------------------------------------------------------------------------------------------- generating


class _AmbiguousNameRow(SourceRow):
    name: str
    candidates: list[str] | None = None


def read_ambigbio_names(path: str | Path) -> list[AmbigBioName]:
    """Read names: JSONL of `collect_ambigbio_names`, or MF's ``AmbigBio.csv`` (question, tab, list with the name)."""
    source = Path(path)
    if not source.name.endswith(".csv"):
        return [
            AmbigBioName(line.name.strip(), None if line.candidates is None else tuple(line.candidates))
            for line in read_dataset_source_rows(source, _AmbiguousNameRow)
        ]
    if not source.is_file():
        raise InputError(str(source), [Problem("no such file")])
    names = []
    problems = []
    # Its columns are parted by tabs, and names are not quoted.
    for number, line in enumerate(source.read_text(encoding="utf-8-sig").splitlines(), start=1):
        question, _, listed = line.partition("\t")
        try:
            given = ast.literal_eval(listed) if listed else None
        except (ValueError, SyntaxError):
            given = None
        name = (
            given[0]
            if isinstance(given, list) and given and isinstance(given[0], str)
            else parse_name_from_question(question)
        )
        if name.strip():
            names.append(AmbigBioName(name.strip()))
        elif line.strip():
            problems.append(Problem("expected a question, a tab and a list with the name", number))
    if problems or not names:
        raise InputError(str(source), problems or [Problem("the file has no names")])
    return names


@dataclass(frozen=True)
class AmbigBioPrompt:
    """The VANILLA prompt (ALCE's, as MF Table 1 has it) with its demonstrations.

    Each demonstration, and then the question itself: the instruction, the name, the documents with their titles
    (parentheses included, they tell people apart), the answer.
    """

    instruction: str
    demos: tuple[Row, ...]

    @classmethod
    def load(cls, demos: str | Path = "ambiguity") -> AmbigBioPrompt:
        """Our own demonstrations, or a file in ALCE's form (its first two are shown).

        `ambiguity`: the documents are of several people of the name, the answers tell of one; `careful`: an answer says
        openly that there are several; `no-ambiguity`: nobody else has the name.
        """
        if demos in DEMONSTRATION_SETS:
            content = parse_json_file_text(
                (files("factaudit.engines") / "ambigbio_demos.json").read_text(encoding="utf-8")
            )
            return cls(content["instruction"], tuple(content["demos"][demos][:DEMONSTRATIONS_PER_PROMPT]))
        source = Path(demos)
        if not source.is_file():
            known = suggest_known_name(str(demos), DEMONSTRATION_SETS)
            raise UsageError(f"unknown demonstrations {str(demos)!r}{known}; or the path of a file")
        try:
            content = parse_json_file_text(source.read_text(encoding="utf-8"))
            prompt = cls(str(content["instruction"]), tuple(content["demos"][:DEMONSTRATIONS_PER_PROMPT]))
            prompt.make_prompt("", [])
        except (ValueError, TypeError, LookupError) as error:
            message = f"expected {{instruction, demos: [{{question, answer, docs: [{{title, text}}]}}]}} ({error!r})"
            raise InputError(str(source), [Problem(message)]) from None
        return prompt

    def make_prompt(self, name: str, docs: Sequence[Mapping[str, str]]) -> str:
        """The whole prompt for one name and its documents."""
        shown = [self._format_documents(demo["question"], demo["docs"]) + f" {demo['answer']}" for demo in self.demos]
        return "\n\n\n".join([*shown, self._format_documents(name, docs)])

    def _format_documents(self, name: str, docs: Sequence[Mapping[str, str]]) -> str:
        listed = "".join(f"Document [{n}] (Title: {doc['title']}): {doc['text']}\n" for n, doc in enumerate(docs, 1))
        return f"{self.instruction}\n\nName of the person: {name}\n\n{listed}Answer:"


def generate_ambigbio_biographies(
    names: Iterable[AmbigBioName],
    knowledge: DocDB,
    llm: ChatModelProtocol,
    out: str | Path,
    *,
    demos: str | Path = "ambiguity",
    k: int = PASSAGES_PER_PROMPT,
    whole: bool = False,
    system: str | None = None,
    params: Mapping[str, Any] = SAMPLING_PARAMETERS,
    say: Say = lambda text: None,
) -> list[Row]:
    """Write biographies by retrieval-augmented generation, one call a name.

    The documents are the ``k`` passages that BM25 ranks best for "Tell me a bio of NAME" among the pages of the people
    of that name (the name's candidates, else the titles that share it); with ``whole``, among all pages, as MF searched
    all of Wikipedia, so that documents of nobody of the name occur.

    Writes JSONL that `factaudit.engines.responses.read_response_file` reads: ``{name, system, output, docs,
    candidates}``. A name without a page, or whose call failed, is left out, and said; the same call again asks only
    for those (replies are in the client's cache). Returns the rows.
    """
    wanted = list(names)
    prompt = AmbigBioPrompt.load(demos)
    asked = [one.name for one in wanted if one.candidates is None]
    titles = find_titles_of_same_name(asked, ((title, title) for title in knowledge.titles()))
    tasks: list[tuple[AmbigBioName, list[str], list[Row]]] = []
    index = PassageIndex(knowledge.pages(), [one.question for one in wanted]) if whole else None
    for one in wanted:
        candidates = list(one.candidates) if one.candidates is not None else titles[one.name]
        if index is None:
            docs = rank_ambigbio_passages(knowledge, candidates, one.question, k)
        else:
            docs = [_make_passage_row(knowledge, *place) for place in index.rank_passages(one.question, k)]
        if docs:
            tasks.append((one, candidates, docs))
        else:
            say(f"no page for {one.name!r}: left out")
    failed: list[str] = []

    async def write() -> list[Row]:
        async with open_llm_clients_for_block(llm):

            async def ask(name: AmbigBioName, candidates: list[str], docs: list[Row]) -> Row | None:
                content = prompt.make_prompt(name.name, docs)
                asked = ChatRequest(({"role": "user", "content": content},), dict(params))
                reply = extract_llm_answer(await llm.ask(asked), is_whole=lambda text: bool(text.strip()))
                if reply.status != "ok":
                    failed.append(f"{name.name!r}: {reply.error or reply.status}")
                    return None
                owner = {"system": system or str(getattr(llm, "model", None) or "llm")}
                return {
                    "name": name.name,
                    **owner,
                    "output": reply.text.strip(),
                    "docs": docs,
                    "candidates": candidates,
                }

            return [row for row in await run_coroutines_concurrently(ask(*task) for task in tasks) if row is not None]

    rows = run_coroutine(write())
    for line in failed:
        say(f"no reply for {line}")
    write_jsonl(out, rows)
    return rows


def _make_passage_row(knowledge: DocDB, title: str, number: int) -> Row:
    return {"title": title, "text": remove_special_tokens((knowledge.passages(title) or ())[number])}


def rank_ambigbio_passages(
    knowledge: DocDB, titles: Sequence[str], query: str, k: int = PASSAGES_PER_PROMPT
) -> list[Row]:
    """The ``k`` best passages ``{title, text}`` for a query over several pages: BM25Okapi over words between spaces.

    A passage's title counts as part of it, as in the corpora that retrievers are trained on; ties in order of titles.
    """
    found = [knowledge.find(title) for title in titles]
    pages = {page.title: page for page in found if page is not None}
    passages = [
        {"title": page.title, "text": remove_special_tokens(text)} for page in pages.values() for text in page.passages
    ]
    index = Bm25Index(f"{passage['title']} {passage['text']}".lower().split() for passage in passages)
    return [passages[i] for i in index.rank_texts(query.lower().split(), k)]
