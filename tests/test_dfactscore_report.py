"""What the report of a D-FActScore run says, of the twenty invented biographies."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs

import pytest

from factaudit.engines.dfactscore import DFactScorer
from factaudit.engines.runs import score_dfactscore_files
from factaudit.engines.settings import open_knowledge_source
from factaudit.report.claim_browser import ClaimBrowser, make_claim_browser_link
from factaudit.report.html import render_html_report
from factaudit.report.report_document import ReportDocument, build_report_document
from factaudit.report.report_tables import ReportTable
from factaudit.results import Results

PEOPLE = Path(__file__).parents[1] / "data" / "people"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results, ReportDocument]:
    folder = tmp_path_factory.mktemp("people")
    scorer = DFactScorer(
        open_knowledge_source(PEOPLE / "pages.jsonl", out=folder),
        verifiers="unigram:threshold=0.9",
        groupers=("given", "one-group"),
        gamma=0,
        replicates=20,
    )
    results = score_dfactscore_files(PEOPLE / "biographies.jsonl", scorer, folder, audits=["rates"])
    return folder, results, build_report_document(results.to_dict(), folder)


def find_table(document: ReportDocument, start: str) -> ReportTable:
    (found,) = [table for one in document.sections for table in one.tables if table.caption.startswith(start)]
    return found


def test_no_response_tells_of_less_than_one_person(ran: tuple[Path, Results, ReportDocument]) -> None:
    """``# bio`` 1.20 had an interval from 0.93 on."""
    rows = [*ran[1].rows("dfactscore"), *ran[1].rows("dfactscore_linking")]
    lows = [(row["n_biographies_low"], row["n_biographies"]) for row in rows if row["n_biographies_low"] is not None]
    assert all(1 <= low <= mean for low, mean in lows)
    assert any(low == 1 < mean for low, mean in lows)
    assert any(low > 1 for low, _ in lows)


def test_what_was_not_decomposed_is_not_counted_in_the_table(ran: tuple[Path, Results, ReportDocument]) -> None:
    """Facts came with the responses: "failed sentences 0, broken off 0, cut 0" were zeros of nothing."""
    table = find_table(ran[2], "FActScore and D-FActScore of the systems")
    heads = {str(head) for head in table.columns}
    assert not [head for head in heads if head.startswith(("sentences", "broken", "repeated", "cut", "filtered"))]
    assert not [head for head in heads if head.startswith(("failed", "truncated", "duplicates", "unparsed"))]
    assert {"verifier", "category as given (%)"} <= heads
    assert "evaluator" not in heads


def test_the_verifiers_verdicts_stand_in_the_table_of_verdicts(ran: tuple[Path, Results, ReportDocument]) -> None:
    """It held the 164 facts of each score as if somebody had been asked for them, and not the 392 verdicts."""
    table = find_table(ran[2], "The evaluators: how many")
    counts = {row[0].text: row[1].text for row in table.rows}
    assert counts == {"unigram@0.9": "392", "D-FActScore": "164", "FActScore": "164"}
    assert "D-FActScore, FActScore is about a fact. It is made from the verdicts by unigram@0.9" in table.caption


def test_the_claims_of_a_finding_are_there(ran: tuple[Path, Results, ReportDocument]) -> None:
    """ "its claims" asked for those that the verifier judges wrongly: there are none."""
    folder, results, document = ran
    browser = ClaimBrowser.read_run_folder(folder)
    choices = browser.list_filter_choices()
    assert list(choices["kinds"]) == ["right"]
    (finding,) = [row for row in results.finding_rows if row["id"] == "merged_facts"]
    link = make_claim_browser_link(finding, choices)
    assert link is not None
    (dataset,) = parse_qs(link)["dataset"]
    assert (browser.table["dataset"] == dataset).sum() == 392
    page = render_html_report(document, folder / "figures", browser)
    assert "A row is a fact and one person of the name" in page
    assert "judged wrongly</option>" not in page


def test_whose_verdicts_scores_are_made_of_is_called_the_verifier(ran: tuple[Path, Results, ReportDocument]) -> None:
    """Its figures were of "1 evaluator", beside two evaluators that are the scores themselves."""
    told = {one.stem: one.alt for section in ran[2].sections for one in section.figures}
    assert "; 1 verifier." in told["dfactscore"]
    assert "; 2 evaluators." in told["rates"]
