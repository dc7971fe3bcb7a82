"""What the report of a D-FActScore run says, of the twenty invented biographies."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs

import pytest

from factaudit.engines.dfactscore import DFactScorer
from factaudit.engines.runs import score_dfactscore_files
from factaudit.engines.settings import open_knowledge_source
from factaudit.report.claim_browser import ClaimBrowser, make_claim_browser_link
from factaudit.report.document import ReportDocument, build_report_document
from factaudit.report.html import render_html_report
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


def test_no_response_tells_of_less_than_one_person(ran: tuple[Path, Results, ReportDocument]) -> None:
    """``# bio`` 1.20 had an interval from 0.93 on."""
    rows = [*ran[1].rows("dfactscore"), *ran[1].rows("dfactscore_linking")]
    lows = [(row["n_biographies_low"], row["n_biographies"]) for row in rows if row["n_biographies_low"] is not None]
    assert all(1 <= low <= mean for low, mean in lows)
    assert any(low == 1 < mean for low, mean in lows)
    assert any(low > 1 for low, _ in lows)


def test_the_verifiers_verdicts_stand_in_the_table_of_verdicts(ran: tuple[Path, Results, ReportDocument]) -> None:
    """It held the 164 facts of each score as if somebody had been asked for them, and not the 392 verdicts."""
    (table,) = [one for one in ran[2].tables if one.caption == "The evaluators."]
    counts = {row[0]: row[1] for row in table.rows}
    assert counts == {"unigram@0.9": "392", "D-FActScore": "164", "FActScore": "164"}


def test_the_claims_of_a_finding_are_there(ran: tuple[Path, Results, ReportDocument]) -> None:
    """ "its claims" asked for those that the verifier judges wrongly: there are none."""
    folder, results, document = ran
    browser = ClaimBrowser.read_run_folder(folder)
    choices = browser.list_filter_choices()
    (finding,) = [row for row in results.finding_rows if row["id"] == "merged_facts"]
    link = make_claim_browser_link(finding, choices)
    assert link is not None
    (dataset,) = parse_qs(link)["dataset"]
    assert (browser.table["dataset"] == dataset).sum() == 392
    page = render_html_report(document, folder / "figures", browser)
    assert "A row is a fact and one person of the name" in page
