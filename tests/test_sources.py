"""Each section, figure and table of a paper that the code and the pages cite exists and is about what cites it.

tests/paper_sections.csv has the papers' headings and, for each, the audits that compute what it tells of: VC is *Verify
with Caution* (Godbole & Jia 2025), MF *Merging Facts, Crafting Fallacies* (Chiang & Lee 2024).
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from factaudit.audit import load_builtin_audits

ROOT = Path(__file__).parents[1]
PAPERS = {"VC": "verify_with_caution.txt", "MF": "merging_facts.txt"}
#: How many figures and tables each paper has.
N_FIGURES = {"VC": 10, "MF": 3}
N_TABLES = {"VC": 31, "MF": 8}

with (ROOT / "tests/paper_sections.csv").open(encoding="utf-8", newline="") as _file:
    SECTIONS = list(csv.DictReader(_file))
TITLES = {(row["paper"], row["section"]): row["title"] for row in SECTIONS}
#: Sections by audit, as (paper, section).
AUDIT_SECTIONS: dict[str, set[tuple[str, str]]] = defaultdict(set)
for _row in SECTIONS:
    for _name in _row["audits"].split():
        AUDIT_SECTIONS[_name].add((_row["paper"], _row["section"]))

#: From a paper's name to where the next source, the bracket, the cell or the sentence ends.
_CITATION = re.compile(
    r"\b(VC|MF|Verify with Caution|Merging Facts)\b[^\s\w;)]{0,2} (?=\(?§|App|Fig|Tab)((?:(?! after )[^;)\"|\n])*)"
)
_SECTION = re.compile(r"§(\d(?:\.\d+)?)|\b(?:App\. |and |, )([A-D](?:\.\d+)?)\b")
_NUMBERED = re.compile(r"\b(Fig|Tab)(?:s?\.|ures?|les?) ((?:\d+(?:-\d+)?(?:, | and )?)+)")


def list_citations(text: str) -> Iterator[tuple[str, str, str]]:
    """Paper, kind (section, Fig or Tab) and number of all that a text names."""
    for named, rest in _CITATION.findall(text):
        paper = {"Verify with Caution": "VC", "Merging Facts": "MF"}.get(named, named)
        for numbered, lettered in _SECTION.findall(rest):
            yield paper, "section", numbered or lettered
        for kind, numbers in _NUMBERED.findall(rest):
            yield from ((paper, kind, number) for number in re.findall(r"\d+", numbers))


def cited_sections(text: str) -> set[tuple[str, str]]:
    return {(paper, number) for paper, kind, number in list_citations(text) if kind == "section"}


def test_citations_are_read_as_people_write_them():
    assert list(list_citations("(VC §3.1 and A.8, Figs. 2, 9, 10)")) == [
        *(("VC", "section", number) for number in ("3.1", "A.8")),
        *(("VC", "Fig", number) for number in ("2", "9", "10")),
    ]
    assert set(list_citations("MF §2.4, App. C.1, Tables 9-11 and 13; VC §5")) == {
        ("MF", "section", "2.4"),
        ("MF", "section", "C.1"),
        *(("MF", "Tab", number) for number in ("9", "11", "13")),
        ("VC", "section", "5"),
    }


@pytest.mark.parametrize("audit", load_builtin_audits(), ids=lambda audit: audit.name)
def test_an_audit_names_the_sections_that_tell_of_it(audit):
    assert cited_sections(audit.source) == AUDIT_SECTIONS[audit.name]


def test_the_table_names_audits_only():
    assert set(AUDIT_SECTIONS) <= {audit.name for audit in load_builtin_audits()} | {""}


def test_what_a_file_of_an_audit_cites_is_a_section_of_its_audits():
    for path in sorted((ROOT / "factaudit/audit").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        names = re.findall(r'^        ?name="(\w+)"|^    name="(\w+)"', text, re.MULTILINE)
        of_audits = set().union(*(AUDIT_SECTIONS[first or second] for first, second in names))
        if of_audits:
            others = {("MF", "2.4"), ("VC", "A.3")}  # what figures are made of, not what an audit asks
            assert cited_sections(text) <= of_audits | others, path.name


def test_a_table_of_audits_on_a_page_names_their_sections():
    n_rows = 0
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for row in re.findall(r"^\| (`.+)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            names = [name for name in re.findall(r"`(\w+)`", row.split("|")[0]) if name in AUDIT_SECTIONS]
            cited = cited_sections(row.replace(", §", "; VC §"))
            if names and cited:
                n_rows += 1
                assert cited <= set().union(*(AUDIT_SECTIONS[name] for name in names)), f"{path.name}: {row}"
    assert n_rows > 5


def test_all_that_is_cited_exists():
    paths = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("data/**/*.md"), *ROOT.glob("notebooks/*.ipynb")]
    paths += [*ROOT.glob("factaudit/**/*.py"), *ROOT.glob("factaudit/**/*.json"), *ROOT.glob("experiments/*.yaml")]
    n_citations = 0
    for path in paths:
        for paper, kind, number in list_citations(path.read_text(encoding="utf-8")):
            n_citations += 1
            told = f"{path.relative_to(ROOT)}: {paper} {kind} {number}"
            if kind == "section":
                assert (paper, number) in TITLES, told
            else:
                assert int(number) <= (N_FIGURES if kind == "Fig" else N_TABLES)[paper], told
    assert n_citations > 100


@pytest.mark.parametrize("paper", PAPERS)
def test_the_table_of_sections_is_the_papers(paper, shared):
    path = shared.parent / "papers" / PAPERS[paper]
    if not path.is_file():
        pytest.skip(f"no text of the paper at {path}")
    text = path.read_text(encoding="utf-8")
    for (of_paper, number), title in TITLES.items():
        if of_paper == paper:
            assert f"\n{number} {title}\n" in text, f"{paper} {number} {title}"
    assert {int(number) for number in re.findall(r"^Figure (\d+):", text, re.MULTILINE)} == set(
        range(1, N_FIGURES[paper] + 1)
    )
    assert {int(number) for number in re.findall(r"^Table (\d+):", text, re.MULTILINE)} == set(
        range(1, N_TABLES[paper] + 1)
    )
