"""The page to label on, in a real browser (skipped where there is none), and what it is made of."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from audit_tables import join
from estimate_data import World, tables, without_labels

from factaudit import InputError, estimate_rates, read_annotations, validate_claims
from factaudit.estimate.page import (
    render_labelling_page,
    write_labelling_page,
    write_labelling_pages,
)
from factaudit.estimate.sample import draw_sample

HOSTILE = [
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 2</script>",
    '<img src=x onerror="window.hacked = 3">',
    "<!-- <script>",
    "{{ 7 * 7 }} ${window.hacked = 4} `",
    "line\u2028separator \u202eright to left\u202c \x00 \U0001f600 e\u0301",
    '"\\u003c"</title><svg onload=window.hacked=5>',
    "javascript:window.hacked=6",
]


def claims_of(texts: list[str], docs: list[str | None]) -> pd.DataFrame:
    ids = [f"c{at}" for at in range(len(texts))]
    return validate_claims(
        pd.DataFrame({"claim_id": ids, "dataset": "d", "claim": texts, "doc": docs})
    )


# ---- without a browser


def test_the_page_is_one_file_that_loads_nothing():
    text = render_labelling_page(claims_of(["A claim."], ["A document."]), "ann", "labels")
    assert re.findall(r"<(?:link|img|iframe|object|embed|base|form)\b", text) == []
    assert set(re.findall(r'\b(?:src|href)="([^"]*)"', text)) == {"#answer"}
    assert not re.search(r"https?://|//[a-z]+\.|@import|url\(", text)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy[1]
    assert "\n<script>" in text


def test_it_is_blind_to_systems_and_verdicts():
    claims, verdicts = tables(World(size=6))
    sample = draw_sample(join(without_labels(claims), verdicts), ["e0"], 12)
    data = data_of(
        render_labelling_page(
            claims[claims["claim_id"].isin(sample.rows["claim_id"])], "ann", "labels"
        )
    )
    assert set(data) == {"page", "name", "annotator", "docs", "claims"}
    assert all(set(claim) == {"id", "claim", "doc"} for claim in data["claims"])


def data_of(text: str) -> dict[str, Any]:
    return json.loads(text.split('id="data">')[1].split("</script>")[0])


def test_texts_stay_data():
    text = render_labelling_page(claims_of(HOSTILE, HOSTILE[::-1]), "ann", HOSTILE[0])
    assert text.count("<script") == 2
    data = data_of(text)
    assert [claim["claim"] for claim in data["claims"]] == HOSTILE
    assert [data["docs"][claim["doc"]] for claim in data["claims"]] == HOSTILE[::-1]


@pytest.mark.parametrize("rates", [World.rates, World.rates[:1]])
def test_claims_of_a_response_stay_together(rates, tmp_path):
    claims, verdicts = tables(World(rates, size=60, documents=20))
    claims["response_id"] = claims["doc_id"]
    if len(rates) == 1:
        claims["system"] = None
    sample = draw_sample(join(without_labels(claims), verdicts), ["e0"], 12, level="response")
    (path,) = write_labelling_pages(sample, claims, tmp_path / "label.html")
    ids = pd.Series([c["id"] for c in data_of(path.read_text())["claims"]])
    of = claims.set_index("claim_id").loc[ids].fillna({"system": ""})
    assert (of["system"] + of["response_id"]).ne(
        (of["system"] + of["response_id"]).shift()
    ).sum() == 12


def test_what_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"ends in \.html"):
        write_labelling_page(claims_of(["a"], ["b"]), tmp_path / "page.txt", "ann")
    with pytest.raises(InputError, match="no text to show"):
        write_labelling_page(
            claims_of(["a"], ["b"]).assign(claim=None), tmp_path / "page.html", "ann"
        )


# ---- in the browser

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")
browser_test = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="needs a browser (Debian: apt install chromium chromium-driver)",
)


class Page:
    """A page in headless Chromium: keys go to whatever has the focus, as a person's do."""

    def __init__(self, profile: Path, downloads: Path) -> None:
        selenium = pytest.importorskip("selenium.webdriver", reason="needs selenium ([dev] extra)")
        from selenium.webdriver.chrome.service import Service
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        options = selenium.ChromeOptions()
        options.binary_location = str(CHROMIUM)
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
        ):
            options.add_argument(argument)
        options.add_argument(f"--user-data-dir={profile}")
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = selenium.Chrome(options=options, service=Service(str(DRIVER)))
        self.driver.set_window_size(1280, 800)
        self.downloads, self.keys, self._chains = downloads, Keys, ActionChains

    def open(self, path: Path) -> Page:
        self.driver.get(path.resolve().as_uri())
        return self

    def press(self, *keys: str, shift: bool = False) -> None:
        chain = self.chain()
        if shift:
            chain.key_down(self.keys.SHIFT)
        for key in keys:
            chain.send_keys(key)
        if shift:
            chain.key_up(self.keys.SHIFT)
        chain.perform()

    def chain(self) -> Any:
        return self._chains(self.driver)

    def js(self, script: str) -> Any:
        return self.driver.execute_script(f"return {script}")

    def text(self, element: str) -> str:
        return self.driver.find_element("id", element).text

    def wait_for_text(self, element: str, text: str) -> None:
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 10).until(lambda _: self.text(element) == text)

    def wait_for_element(self, selector: str) -> Any:
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, 10).until(
            lambda driver: driver.find_elements("css selector", selector)
        )[0]

    def click(self, element: str) -> None:
        self.driver.find_element("id", element).click()

    def download(self) -> Path:
        for old in self.downloads.glob("*"):
            old.unlink()
        self.click("download")
        for _ in range(100):
            found = list(self.downloads.glob("*.jsonl"))
            if found:
                return found[0]
            time.sleep(0.1)
        raise AssertionError("no download within 10 seconds")

    def requests(self) -> list[str]:
        """What the page asked of the network since the browser began."""
        events = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        sent = [
            event["params"] for event in events if event["method"] == "Network.requestWillBeSent"
        ]
        own = [one["request"]["url"] for one in sent if one["documentURL"].startswith("file:")]
        assert own, "the log is on"
        return [url for url in own if not url.startswith(("file:", "data:", "blob:"))]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Callable[[], Page]]:
    """Opens browsers that share one profile, as the same browser started again does."""
    opened = []
    (tmp_path / "downloads").mkdir()

    def start() -> Page:
        opened.append(Page(tmp_path / "profile", tmp_path / "downloads"))
        return opened[-1]

    yield start
    for one in opened:
        one.driver.quit()


def thirty(tmp_path: Path) -> tuple[pd.DataFrame, pd.DataFrame, Any, Path, dict[str, str]]:
    """Claims, verdicts, a sample of 30, its page, and the key for each claim's text."""
    claims, verdicts = tables(World())
    claims["claim"] = [f"Claim number {at} costs 1,5{at % 10}0 euros" for at in range(len(claims))]
    claims["doc"] = [
        f"Introduction.\nThe {at}th costs 1,5{at % 10}0 euros.\nThe end."
        for at in range(len(claims))
    ]
    sample = draw_sample(join(without_labels(claims), verdicts), ["e0", "e1"], 30)
    (path,) = write_labelling_pages(sample, claims, tmp_path / "label.html")
    keys = {text: str(label) for text, label in zip(claims["claim"], claims["label"], strict=True)}
    return claims, verdicts, sample, path, keys


@pytest.mark.slow
@browser_test
def test_thirty_claims_by_key_with_a_crash_between(tmp_path, browser):
    claims, verdicts, sample, path, keys = thirty(tmp_path)
    view = browser().open(path)
    for _ in range(13):
        view.press(keys[view.text("claim")])
    assert view.text("count") == "13 of 30"
    view.driver.refresh()
    view.wait_for_text("count", "13 of 30")  # a reload loses nothing
    wrong = {"1": "0", "0": "1"}[keys[view.text("claim")]]
    before = view.text("claim")
    view.press(wrong)
    assert view.text("claim") != before
    view.press("u")
    assert (view.text("claim"), view.text("count")) == (before, "13 of 30"), "undone"
    view.driver.quit()  # the browser dies without a goodbye to the page
    view = browser().open(path)
    assert view.text("count") == "13 of 30"
    while view.text("count") != "30 of 30":
        view.press(keys[view.text("claim")])
    assert view.text("left") == "all done"
    saved = view.download()
    assert saved.name == "label-annotator-1.jsonl", "another page's labels have another name"
    found = read_annotations(saved, claims=claims)
    label = claims.set_index("claim_id")["label"]
    assert len(found) == 30
    assert (found["label"].to_numpy() == label[found["claim_id"]].to_numpy()).all()
    assert found["annotator"].unique().tolist() == ["annotator-1"]
    assert found["seconds"].ge(0).all()
    assert view.requests() == []
    made = estimate_rates(claims, verdicts, annotations=found, sample=sample, levels=["claim"])
    assert made.summary[0]["n_labels"] == 30
    assert all(row["rate"] is not None for row in made.rates)


@browser_test
@pytest.mark.slow
def test_notes_spans_and_what_cannot_be_told(tmp_path, browser):
    claims = claims_of(
        ["\U0001f600 Zoë paid 1,500 euros in May."] * 2 + ["Third."], ["Zoë paid 1,400 euros."] * 3
    )
    path = write_labelling_page(claims.iloc[:2], tmp_path / "label.html", "ann")
    view = browser().open(path)
    keys = view.keys
    view.press("s", keys.ARROW_RIGHT, keys.ARROW_RIGHT, keys.ARROW_RIGHT)
    view.press(keys.ARROW_RIGHT, shift=True)
    view.press(keys.ENTER)
    assert view.driver.find_element("css selector", "#claim mark.wrong").text == "1,500 euros"
    view.press("n", "not 1 but 0", keys.ESCAPE, "0")
    assert view.text("count") == "1 of 2", "keys in a note are letters"
    box = view.driver.find_element("id", "claim")
    left = 40 - box.size["width"] // 2
    view.chain().move_to_element_with_offset(box, left, 0).double_click().perform()
    assert len(view.driver.find_elements("css selector", "#spans li")) == 1
    view.driver.find_element("css selector", "#spans button").click()
    assert view.driver.find_elements("css selector", "#spans li") == []
    view.press("?")
    assert view.driver.find_element("id", "reasons").is_displayed(), "asked for a reason"
    view.press("two Zoës", keys.ENTER)
    assert not view.driver.find_element("id", "reasons").is_displayed()
    found = read_annotations(view.download(), claims=claims).sort_values(
        "label", na_position="last"
    )
    first, second = found.to_dict("records")
    assert (first["label"], first["note"]) == (0, "not 1 but 0")
    text = claims["claim"][0]
    assert text[first["start"] : first["end"]] == "1,500 euros", "positions count characters"
    assert (pd.isna(second["label"]), second["note"]) == (True, "two Zoës")


@browser_test
def test_the_document_shows_what_the_claim_shares_where_asked(tmp_path, browser):
    filler = "\n".join(
        f"Nothing of note happened in the year {year}." for year in range(1000, 1400)
    )
    doc = f"{filler}\nThe bridge at Teverham was closed for 42 days.\n{filler}"
    claims = claims_of(["The Teverham bridge was closed 42 days."], [doc])
    view = browser().open(write_labelling_page(claims, tmp_path / "label.html", "ann"))
    assert view.driver.find_elements("css selector", "#doc mark, #doc .best") == [], (
        "nothing leads unless it is asked to"
    )
    view.press("h")
    view.wait_for_element("#doc .best")  # a key on its way would be lost with the page
    view.driver.refresh()
    best = view.wait_for_element("#doc .best")
    assert "The bridge at Teverham" in best.text
    marked = [m.text for m in best.find_elements("css selector", "mark")]
    assert marked == ["bridge", "Teverham", "closed", "42", "days"]
    assert best.find_element("css selector", "mark.number").text == "42"
    seen = view.js(
        "(() => { const b = document.querySelector('#doc .best').getBoundingClientRect();"
        "const d = document.getElementById('doc').getBoundingClientRect();"
        "return d.top <= b.top && b.bottom <= d.bottom; })()"
    )
    assert seen, "scrolled into view"


@browser_test
def test_hostile_texts_cannot_run(tmp_path, browser):
    claims = claims_of(HOSTILE, HOSTILE[::-1])
    view = browser().open(
        write_labelling_page(
            claims, tmp_path / "label.html", '<img src=x onerror="window.hacked=9">'
        )
    )
    shown = set()
    for _ in HOSTILE:
        shown.add(view.js("document.getElementById('claim').textContent"))
        assert view.js("document.querySelectorAll('img, svg, main script').length") == 0
        view.press("1")
    assert shown == set(HOSTILE)
    assert view.js("window.hacked") is None
    assert view.requests() == []
    complaints = [entry["message"] for entry in view.driver.get_log("browser")]
    assert complaints == []
    found = read_annotations(view.download(), claims=claims)
    assert len(found) == len(HOSTILE)


@browser_test
@pytest.mark.slow
def test_on_a_phone_and_by_axe(tmp_path, browser):
    axe = pytest.importorskip(
        "axe_selenium_python", reason="needs axe-selenium-python ([dev] extra)"
    )
    _, _, _, path, keys = thirty(tmp_path)
    view = browser()
    view.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 780, "deviceScaleFactor": 2, "mobile": True},
    )
    view.open(path)
    assert view.js("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"
    for label in ("1", "0", "?"):
        button = view.driver.find_element("css selector", f"#answer [data-label='{label}']")
        box = view.js(
            "JSON.stringify(document.querySelector('#answer"
            f' [data-label="{label}"]\').getBoundingClientRect())'
        )
        assert json.loads(box)["bottom"] <= 780, "in reach of the thumb"
        assert button.size["height"] >= 44
    view.driver.find_element(
        "css selector", f"#answer [data-label='{keys[view.text('claim')]}']"
    ).click()
    assert view.text("count") == "1 of 30"
    for width in (390, 1280):
        view.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 780, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        for scheme in ("light", "dark"):
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            view.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            check = axe.Axe(view.driver)
            check.inject()
            faults = check.run()["violations"]
            assert [(fault["id"], fault["nodes"][0]["html"]) for fault in faults] == [], (
                width,
                scheme,
            )
