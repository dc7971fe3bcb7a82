"""Looking at claims: what the report and the local server hold, and both in a real browser."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pandas as pd
import pytest
from test_estimate_page import CHROMIUM, DRIVER, HOSTILE, browser_test

from factaudit.arrays.judgements import Judgements
from factaudit.report import claim_browser as module
from factaudit.report.claim_browser import ClaimBrowser, make_claim_browser_link
from factaudit.report.claim_server import make_claim_server
from factaudit.results import compare
from factaudit.tables import validate_claims, validate_verdicts, write_table
from factaudit.tables.annotations import validate_annotations


def tables(size: int = 120) -> tuple[pd.DataFrame, pd.DataFrame]:
    random = np.random.default_rng(0)
    texts = [HOSTILE[at] if at < len(HOSTILE) else f"Claim number {at} of the mill." for at in range(size)]
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


def test_claims_without_text_are_not_shown(tmp_path: Path) -> None:
    claims, verdicts = tables(12)
    results = compare(claims.drop(columns=["claim", "doc"]), verdicts, audits=["rates"], replicates=0)
    results.save(tmp_path)
    text = (tmp_path / "report.html").read_text()
    assert 'id="claims"' not in text


def test_a_report_holds_the_most_telling_claims_that_fit(monkeypatch) -> None:
    claims, verdicts = tables()
    whole = unpacked(ClaimBrowser(Judgements.join(claims, verdicts), verdicts).pack_telling_claims())
    assert len(whole["claims"]) == whole["total"] == 120
    assert [row["claim"] for row in whole["claims"] if row["id"] in ("c0", "c3")] != []
    assert {row["doc"] for row in whole["claims"]} == set(range(-1, len(whole["docs"])))
    monkeypatch.setattr(module, "MAX_REPORT_CLAIMS", 30)
    few = unpacked(ClaimBrowser(Judgements.join(claims, verdicts), verdicts).pack_telling_claims())
    assert len(few["claims"]) == 30
    assert few["total"] == 120
    wrong = [any(one["p"] is not None and one["p"] != row["label"] for one in row["said"]) for row in few["claims"]]
    assert all(wrong)  # 120 claims have more than 30 errors
    assert {row["dataset"] for row in few["claims"]} == {"a", "b"}
    monkeypatch.setattr(module, "MAX_REPORT_CLAIM_BYTES", 2_000)
    assert (
        len(ClaimBrowser(Judgements.join(claims, verdicts), verdicts).pack_telling_claims()) <= 2_000
        or len(unpacked(ClaimBrowser(Judgements.join(claims, verdicts), verdicts).pack_telling_claims())["claims"])
        == 20
    )


def test_a_finding_links_to_its_claims() -> None:
    about = {"datasets": ["a b"], "evaluators": ["x&y"]}
    finding = {"id": "gap", "evaluator": "x&y", "dataset": "a b"}
    assert make_claim_browser_link(finding, about) == "evaluator=x%26y&dataset=a+b&kind=wrong"
    assert make_claim_browser_link({"id": "gap", "evaluator": "x&y / z", "dataset": None}, about) is None
    named = about | {"evaluators": ["x / y"]}
    assert (
        make_claim_browser_link(finding | {"evaluator": "x / y"}, named) == "evaluator=x+%2F+y&dataset=a+b&kind=wrong"
    )


def test_a_folder_without_claims_is_named(tmp_path) -> None:
    from factaudit.errors import InputError

    with pytest.raises(InputError, match=r"no claims\.parquet"):
        make_claim_server(tmp_path)


# ------------------------------------------------------------------------------------------------------- the server


@pytest.fixture(scope="module")
def served(run_dir: Path) -> Iterator[int]:
    server = make_claim_server(run_dir)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def get(port: int, path: str, host: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", host or f"127.0.0.1:{port}")
    connection.endheaders()
    reply = connection.getresponse()
    return reply.status, reply.read()


def test_the_server_answers_loopback_and_nobody_else(served) -> None:
    status, body = get(served, "/claims.json")
    held = json.loads(gzip.decompress(body))
    assert status == 200
    assert len(held["claims"]) == held["total"] == 120
    assert all("mill" in text for text in held["docs"])
    assert get(served, "/", host=f"evil.example:{served}")[0] == 403
    assert get(served, "/../claims.parquet")[0] == 404


def test_a_claim_is_shown_with_what_people_said(run_dir: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run_dir, folder)
    first = ClaimBrowser.read_run_folder(folder).table["claim_id"].iloc[0]
    said = [
        {"claim_id": first, "annotator": "ann", "label": 0, "start": 0, "end": 3, "note": "</script><b>"},
        {"claim_id": first, "annotator": "bob", "label": None, "grade": "benign"},
    ]
    write_table(validate_annotations(pd.DataFrame(said)), folder / "annotations.parquet")
    row = ClaimBrowser.read_run_folder(folder).make_claim_row(0)
    assert row["people"] == [
        {"annotator": "ann", "label": 0, "start": 0, "end": 3, "note": "</script><b>"},
        {"annotator": "bob", "grade": "benign"},
    ]
    assert "people" not in ClaimBrowser.read_run_folder(folder).make_claim_row(1)
    assert "people" not in ClaimBrowser.read_run_folder(run_dir).make_claim_row(0)
    held = json.loads(gzip.decompress(base64.b64decode(ClaimBrowser.read_run_folder(folder).pack_telling_claims())))
    assert [one["people"] for one in held["claims"] if one["id"] == first] == [row["people"]]


# ------------------------------------------------------------------------------------------------------ the browser


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

    return WebDriverWait(driver, 30).until(lambda browser: browser.execute_script(f"return {script}"))


READY = "document.querySelector('#claims').dataset.ready"
COUNT = "document.querySelector('#claims [data-part=count]').textContent"


@browser_test
@pytest.mark.slow
def test_claims_are_looked_at_in_the_report_and_on_the_server(run_dir, served, driver) -> None:
    claims, verdicts = tables()
    merged = verdicts.merge(claims[["claim_id", "claim", "dataset", "label"]], on="claim_id")
    of_x = merged[merged["evaluator"] == "x"]
    passed = of_x[(of_x["dataset"] == "a") & (of_x["label"] == 0) & (of_x["prediction"] == 1)]
    texts = "Array.from(document.querySelectorAll('.claim .text'), (node) => node.textContent)"
    for address in ((run_dir / "report.html").as_uri(), f"http://127.0.0.1:{served}/"):
        driver.get("about:blank")
        driver.get(f"{address}#claims?evaluator=x&dataset=a&kind=passed")
        wait(driver, READY)
        assert wait(driver, COUNT) == f"1 to {min(20, len(passed))} of {len(passed)}"
        assert set(wait(driver, texts)) <= set(passed["claim"])
        driver.execute_script("document.querySelectorAll('.claim summary').forEach((node) => node.click())")
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
        offered = "Array.from(document.querySelectorAll('[data-part=kind] option'), (node) => node.value)"
        assert wait(driver, offered) == ["", "wrong", "passed", "rejected", "right", "unscored", "disagree"]
        assert driver.get_log("browser") == []
    driver.get("about:blank")
    driver.get((run_dir / "report.html").as_uri())
    wait(driver, READY)
    # The figure is part of the page, and a point of it leads to its claims, by the keyboard too.
    assert driver.execute_script("return document.querySelector('#rates svg').getBoundingClientRect().width") > 300
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    driver.execute_script("document.querySelector('#rates svg a[data-asked*=evaluator]').focus()")
    point = driver.switch_to.active_element
    asked = parse_qs(point.get_attribute("data-asked"))
    point.send_keys(keys.ENTER)
    found = int((claims["dataset"] == asked["dataset"][0]).sum()) if "dataset" in asked else len(claims)
    assert wait(driver, f"{COUNT}.startsWith('1 to ')")
    assert int(wait(driver, COUNT).rpartition(" ")[2]) <= found
    assert wait(driver, f"document.querySelector('[data-part=evaluator]').value === '{asked['evaluator'][0]}'")


@browser_test
@pytest.mark.slow
def test_the_report_has_no_fault_of_accessibility_and_prints_in_few_pages(run_dir, driver) -> None:
    axe = pytest.importorskip("axe_selenium_python", reason="needs axe-selenium-python ([dev] extra)")
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


#: Names that an address, HTML, or a file's name would change.
NAMES = (
    *("R&D", "a+b", "50%", "mean(rouge2+unigram)", "C:\\data\\new.csv", "a#b", "what?", "x=1&kind=right"),
    *('"quoted"', "it's", "<b>bold</b>", "日本 語", "100%25", "a/b / c", "a;b,c", "emoji 🙂"),
)
