"""docs/report.png, the opening of the demo's report, taken in a headless Chromium: ``make picture``."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

PICTURE = Path(__file__).resolve().parents[1] / "report.png"


def take_picture(report: Path, picture: Path) -> None:
    """Write the first section of a report as a PNG."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium") or shutil.which("google-chrome"))
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    with webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver"))) as browser:
        browser.set_window_size(860, 1600)
        browser.get(report.resolve().as_uri())
        picture.write_bytes(browser.find_element(By.ID, "summary").screenshot_as_png)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "factaudit", "demo", "--out", folder], check=True, stdout=subprocess.DEVNULL
        )
        take_picture(Path(folder) / "report.html", PICTURE)
