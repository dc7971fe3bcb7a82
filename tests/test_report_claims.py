"""Looking at claims: what the report and the page of `factaudit view` hold, and both in a real
browser."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pandas as pd
import pytest
from audit_tables import join
from conftest import run_command
from test_estimate_page import CHROMIUM, DRIVER, HOSTILE, browser_test

from factaudit import compare, validate_claims, validate_verdicts, write_table
from factaudit.report.claim_browser import ClaimBrowser, make_claim_browser_link


def tables(size: int = 120) -> tuple[pd.DataFrame, pd.DataFrame]:
    random = np.random.default_rng(0)
    texts = [
        HOSTILE[at] if at < len(HOSTILE) else f"Claim number {at} of the mill."
        for at in range(size)
    ]
    claims = pd.DataFrame(
        {
            "claim_id": [f"c{at}" for at in range(size)],
            "dataset": ["a" if at % 2 else "b" for at in range(size)],
            "system": [f"s{at % 3}" for at in range(size)],
            "claim": texts,
            "doc": [f"The mill number {at % 10} closed." if at % 5 else None for at in range(size)],
            "label": random.integers(0, 2, size),
        }
    )
    verdicts = [
        {
            "claim_id": f"c{at}",
            "evaluator": name,
            "score": float(random.random()),
            "status": "ok",
            "raw": HOSTILE[at % 8],
        }
        for name in ("x", "y")
        for at in range(size)
    ]
    verdicts[7] |= {"score": None, "status": "error"}
    return validate_claims(claims), validate_verdicts(pd.DataFrame(verdicts))


def unpacked(packed: str) -> dict[str, Any]:
    return json.loads(gzip.decompress(base64.b64decode(packed)))


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    claims, verdicts = tables()
    write_table(claims, folder / "claims.parquet")
    write_table(verdicts, folder / "verdicts.parquet")
    compare(claims, verdicts, audits=["rates"], replicates=0).save(folder)
    return folder


def test_a_report_holds_the_most_telling_claims_that_fit():
    claims, verdicts = tables()
    browser = ClaimBrowser(join(claims, verdicts), verdicts)
    whole = unpacked(browser.pack_claims(2_000, 450_000))
    assert len(whole["claims"]) == whole["total"] == 120
    assert [row["claim"] for row in whole["claims"] if row["id"] in ("c0", "c3")] != []
    assert {row["doc"] for row in whole["claims"]} == set(range(-1, len(whole["docs"])))
    few = unpacked(browser.pack_claims(30, 450_000))
    assert len(few["claims"]) == 30
    assert few["total"] == 120
    wrong = [
        any(one["p"] is not None and one["p"] != row["label"] for one in row["said"])
        for row in few["claims"]
    ]
    assert all(wrong)  # 120 claims have more than 30 errors
    assert {row["dataset"] for row in few["claims"]} == {"a", "b"}
    fewer = unpacked(browser.pack_claims(2_000, 2_000))
    assert 0 < len(fewer["claims"]) < 20


def test_a_finding_links_to_its_claims():
    about = {"datasets": ["a b"], "evaluators": ["x&y"]}
    finding = {"id": "gap", "evaluator": "x&y", "dataset": "a b"}
    assert make_claim_browser_link(finding, about) == "evaluator=x%26y&dataset=a+b&kind=wrong"
    assert (
        make_claim_browser_link({"id": "gap", "evaluator": "x&y / z", "dataset": None}, about)
        is None
    )
    named = about | {"evaluators": ["x / y"]}
    assert (
        make_claim_browser_link(finding | {"evaluator": "x / y"}, named)
        == "evaluator=x+%2F+y&dataset=a+b&kind=wrong"
    )


def test_a_folder_without_claims_is_named(tmp_path, capsys):
    assert run_command("view", tmp_path, "--no-open") == 1
    assert "no claims.parquet" in capsys.readouterr().err


@pytest.fixture(scope="module")
def page(run_dir: Path) -> Path:
    """The page of `factaudit view`."""
    assert run_command("view", run_dir, "--no-open") == 0
    return run_dir / "claims.html"


def test_the_page_of_a_run_has_all_its_claims_and_runs_no_other_script(page):
    text = page.read_text(encoding="utf-8")
    (packed,) = re.findall(r'id="claims-data">([^<]*)<', text)
    held = unpacked(packed)
    assert len(held["claims"]) == held["total"] == 120
    assert all("mill" in text for text in held["docs"])
    assert "default-src 'none'" in text
    assert text.count("<script") == 2


def test_a_claim_is_shown_with_what_people_said(run_dir, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run_dir, folder)
    first = ClaimBrowser.read_run_folder(folder).table["claim_id"].iloc[0]
    said = [
        {
            "claim_id": first,
            "annotator": "ann",
            "label": 0,
            "start": 0,
            "end": 3,
            "note": "</script><b>",
        },
        {"claim_id": first, "annotator": "bob", "label": None, "grade": "benign"},
    ]
    write_table(pd.DataFrame(said), folder / "annotations.parquet")
    verdicts = tables()[1]
    again = verdicts.assign(repeat=1, raw="said later")
    write_table(pd.concat([verdicts, again]), folder / "verdicts.parquet")
    rows = {
        one["id"]: one
        for one in ClaimBrowser.read_run_folder(folder).make_page_content(200)["claims"]
    }
    assert {said["raw"] for one in rows.values() for said in one["said"]} == {*HOSTILE}
    assert rows[first]["people"] == [
        {"annotator": "ann", "label": 0, "start": 0, "end": 3, "note": "</script><b>"},
        {"annotator": "bob", "grade": "benign"},
    ]
    assert sum("people" in one for one in rows.values()) == 1
    assert all(
        "people" not in one
        for one in ClaimBrowser.read_run_folder(run_dir).make_page_content(200)["claims"]
    )


# ---- the browser


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    selenium = pytest.importorskip("selenium.webdriver", reason="needs selenium ([dev] extra)")
    from selenium.webdriver.chrome.service import Service

    options = selenium.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = selenium.Chrome(options=options, service=Service(str(DRIVER)))
    made.set_window_size(1280, 900)
    yield made
    made.quit()


def wait(driver: Any, script: str) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, 30).until(
        lambda browser: browser.execute_script(f"return {script}")
    )


READY = "document.querySelector('#claims').dataset.ready"
COUNT = "document.querySelector('#claims [data-part=count]').textContent"


@browser_test
@pytest.mark.slow
def test_claims_are_looked_at_in_the_report_and_on_their_page(run_dir, page, driver):
    claims, verdicts = tables()
    merged = verdicts.merge(claims[["claim_id", "claim", "dataset", "label"]], on="claim_id")
    of_x = merged[merged["evaluator"] == "x"]
    passed = of_x[(of_x["dataset"] == "a") & (of_x["label"] == 0) & (of_x["prediction"] == 1)]
    texts = "Array.from(document.querySelectorAll('.claim .text'), (node) => node.textContent)"
    for address in ((run_dir / "report.html").as_uri(), page.as_uri()):
        driver.get("about:blank")
        driver.get(f"{address}#claims?evaluator=x&dataset=a&kind=passed")
        wait(driver, READY)
        assert wait(driver, COUNT) == f"1 to {min(20, len(passed))} of {len(passed)}"
        assert set(wait(driver, texts)) <= set(passed["claim"])
        driver.execute_script(
            "document.querySelectorAll('.claim summary').forEach((node) => node.click())"
        )
        assert wait(driver, "document.querySelectorAll('.claim mark').length > 0")
        shown = driver.execute_script(
            "return Array.from(document.querySelectorAll('.claim pre'), (n) => n.textContent)"
        )
        assert set(shown) & set(HOSTILE)
        assert driver.execute_script("return window.hacked") is None
        inside = "document.querySelectorAll('.claim img, .claim script, .claim svg').length"
        assert driver.execute_script(f"return {inside}") == 0
        for order, is_lowest in (("lowest", True), ("highest", False)):
            driver.get("about:blank")
            driver.get(f"{address}#claims?evaluator=x&order={order}")
            wait(driver, READY)
            first = of_x.sort_values("score", ascending=is_lowest)["claim"].iloc[0]
            assert wait(driver, f"{texts}[0]") == first
        offered = (
            "Array.from(document.querySelectorAll('[data-part=kind] option'), (node) => node.value)"
        )
        assert wait(driver, offered) == [
            "",
            "wrong",
            "passed",
            "rejected",
            "right",
            "unscored",
            "disagree",
        ]
        assert driver.get_log("browser") == []
    driver.get("about:blank")
    driver.get((run_dir / "report.html").as_uri())
    wait(driver, READY)
    # The figure is part of the page, and a point of it leads to its claims, by the keyboard too.
    assert (
        driver.execute_script(
            "return document.querySelector('#rates svg').getBoundingClientRect().width"
        )
        > 300
    )
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    driver.execute_script("document.querySelector('#rates svg a[data-asked*=evaluator]').focus()")
    point = driver.switch_to.active_element
    asked = parse_qs(point.get_attribute("data-asked"))
    point.send_keys(keys.ENTER)
    found = (
        int((claims["dataset"] == asked["dataset"][0]).sum()) if "dataset" in asked else len(claims)
    )
    assert wait(driver, f"{COUNT}.startsWith('1 to ')")
    assert int(wait(driver, COUNT).rpartition(" ")[2]) <= found
    assert wait(
        driver,
        f"document.querySelector('[data-part=evaluator]').value === '{asked['evaluator'][0]}'",
    )


@browser_test
@pytest.mark.slow
def test_the_report_has_no_fault_of_accessibility_and_prints_in_few_pages(run_dir, driver):
    axe = pytest.importorskip(
        "axe_selenium_python", reason="needs axe-selenium-python ([dev] extra)"
    )
    for dark in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": dark}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        driver.get((run_dir / "report.html").as_uri() + "#claims?kind=wrong")
        wait(driver, READY)
        driver.execute_script("document.querySelector('.claim summary').click()")
        found = axe.Axe(driver)
        found.inject()
        violations = found.run()["violations"]
        assert violations == [], found.report(violations)
    printed = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert len(re.findall(rb"/Type\s*/Page[^s]", printed)) <= 2
