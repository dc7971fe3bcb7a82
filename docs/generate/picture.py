"""The pictures on the pages, drawn from data that ships: ``make picture``.

Figures are drawn by matplotlib. What a reader sees in a report is photographed in a headless
Chromium.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

import factaudit
from factaudit.cli import cli
from factaudit.results import Results

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "figures"
#: Audits of the demo that a page shows a figure of.
DEMO_FIGURES = ("rates", "ranking", "quantification", "headroom", "adjustment")
WORD_EVALUATORS = ["rouge2", "unigram", "tfidf"]


def run_command(*words: str) -> None:
    """Run a command of factaudit, as a reader would."""
    cli.main(list(words), standalone_mode=False)


def draw(results: Results, audit: str, **where: object) -> None:
    """Write the report's figure of an audit as a PNG."""
    results.figure(audit, **where).savefig(FIGURES / f"{audit}.png", dpi=130)


def audit_minibench() -> Results:
    """Evaluators that count words, on whole documents and on chunks of 200 words."""
    claims = factaudit.read_claims(ROOT / "data/minibench/claims.jsonl.gz")
    claims["dataset"] = "minibench"
    chunked = [{"chunked": {"evaluator": name, "size": 200}} for name in WORD_EVALUATORS]
    verdicts = factaudit.judge(claims, [*WORD_EVALUATORS, *chunked])
    return factaudit.compare(claims, verdicts, audits=["surface_bias", {"chunking": {"size": 200}}])


def photograph(
    report: Path, element: tuple[str, str], picture: Path, unfolded: bool = False
) -> None:
    """Write what an element of a report looks like as a PNG; ``unfolded``: with its details
    open."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium") or shutil.which("google-chrome"))
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    with webdriver.Chrome(
        options=options, service=Service(shutil.which("chromedriver"))
    ) as browser:
        browser.set_window_size(860, 1600)
        browser.get(report.resolve().as_uri())
        if unfolded:
            browser.execute_script(
                "document.querySelectorAll('details').forEach(each => each.open = true)"
            )
        picture.write_bytes(browser.find_element(*element).screenshot_as_png)


def main() -> None:
    """Draw all of them."""
    with tempfile.TemporaryDirectory() as folder:
        demo, people = Path(folder) / "demo", Path(folder) / "people"
        run_command("run", "demo", "--out", str(demo))
        run_command(
            "run", str(ROOT / "experiments/dfactscore_quickstart.yaml"), "--out", str(people)
        )
        for audit in DEMO_FIGURES:
            draw(Results.load(demo), audit)
        draw(Results.load(people), "dfactscore")
        words = audit_minibench()
        draw(
            words, "surface_bias", task=["long-form QA", "summarization"], evaluator=WORD_EVALUATORS
        )
        draw(words, "chunking")
        photograph(demo / "report.html", (By.ID, "summary"), ROOT / "docs" / "report.png")
        merged = (By.XPATH, "//article[@class='merged'][.//h3[contains(., 'Elena Varga')]]")
        photograph(people / "report.html", merged, FIGURES / "merged_paragraph.png", unfolded=True)


if __name__ == "__main__":
    main()
