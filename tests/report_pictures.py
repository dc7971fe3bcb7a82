"""The pages' pictures: ``python tests/report_pictures.py docs`` writes docs/report.png and docs/figures/AUDIT.png.

Runs ``factaudit demo``, three shipped experiments and invented judges, and takes the first figure of each audit in a
headless Chromium.
The README shows how the demo's report opens, docs/audits.md all of the figures.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

import factaudit
from factaudit.audit import load_builtin_audits
from factaudit.tables.annotations import validate_annotations

ROOT = Path(__file__).resolve().parents[1]
#: The first one that has a figure of an audit gives it.
EXPERIMENTS = (
    "factaudit/start/demo/ragtruth.yaml",
    "experiments/quickstart.yaml",
    "experiments/dfactscore_quickstart.yaml",
)


def compute_invented_results(seed: int = 0) -> factaudit.Results:
    """What no shipped data has, of judges that are simulated: pairs, repeats, annotators, chunks of long documents."""
    random = np.random.default_rng(seed)
    vocabulary = [f"word{at}" for at in range(400)]
    n = 600
    documents = [random.choice(vocabulary, 150) for _ in range(n // 6)]
    label = np.arange(n) % 2
    rising = np.arange(1, 61) / np.arange(1, 61).sum()  # some responses are good, others bad
    response = np.where(label == 1, random.choice(60, n, p=rising), random.choice(60, n, p=rising[::-1]))
    rows = []
    for at in range(n):
        words, begin = documents[at // 6], int(random.integers(0, 40))
        apart = begin + (100 if at % 3 else 4)  # two parts of the document, near or far from each other
        claim = " ".join([*words[begin : begin + 4], *words[apart : apart + 4]])
        rows.append(
            {"claim_id": f"c{at}", "claim": claim, "doc": " ".join(words), "system": "ABC"[response[at] % 3]}
            | {"response_id": f"r{response[at]}", "error_type": ("number", "name", "date")[at // 2 % 3]}
            | {"pair_of": None if label[at] else f"c{at + 1}"}
        )
    claims = pd.DataFrame(rows).assign(dataset="invented", label=label)
    judges = {"judge-a": (0.9, 0.75, 0.02), "judge-b": (0.8, 0.85, 0.12), "chunked-judge-a": (0.6, 0.9, 0.02)}
    verdicts = []
    for name, (tpr, tnr, flips) in judges.items():
        share = np.where(label == 1, tpr, 1 - tnr) - (0.25 * (np.arange(n) % 3 > 0) if "chunked" in name else 0)
        said = random.random(n) < share
        for repeat in range(4):
            flipped = said ^ (random.random(n) < (flips if repeat else 0))
            score = np.clip(0.3 + 0.4 * flipped + random.normal(0, 0.1, n), 0, 1)
            about = {"claim_id": claims["claim_id"], "evaluator": name, "repeat": repeat, "status": "ok"}
            grade = np.clip(np.rint(1 + 4 * score + random.normal(0, 0.5, n)), 1, 5)
            about |= {} if "chunked" in name else {"grade": grade}
            verdicts.append(pd.DataFrame(about | {"prediction": flipped.astype(int), "score": score}))
    quality = label + random.normal(0, 0.4, n)
    people = [
        pd.DataFrame(
            {"claim_id": claims["claim_id"], "annotator": who, "label": label ^ (random.random(n) < error)}
        ).assign(grade=1 + np.searchsorted([-0.2, 0.3, 0.7, 1.2], quality + random.normal(0, 4 * error, n)))
        for who, error in (("ann", 0.05), ("ben", 0.1), ("cem", 0.2))
    ]
    annotations = validate_annotations(pd.concat(people).astype({"label": "Int8"}))
    rules = ["majority", "any_unattributable"]
    audits: list[Any] = ["pairs", "stability", "ceiling", "label_rules", "factscore", "factscore_agreement"]
    audits += ["slices", "grades", "grade_calibration", "grade_cuts"]
    audits += [{"chunking": {"size": 60}}, {"chunking_rates": {"size": 60}}, "factscore_calibration"]
    families = {"judge-a": "A", "A": "A", "judge-b": "B", "B": "B"}
    audits += [{"evidence_position": {"size": 40}}, {"self_preference": {"families": families}}]
    return factaudit.compare(
        claims, pd.concat(verdicts), audits=audits, annotations=annotations, label_rules=rules, replicates=500
    )


def take_pictures(figures: dict[str, Path], folder: Path, report: Path, opening: Path) -> None:
    """Write each SVG as a PNG of its name, and the opening of a report."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium") or shutil.which("google-chrome"))
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        browser.set_window_size(1000, 1600)
        for name, path in figures.items():
            page = path.with_suffix(".html")
            page.write_text(f"<body style='margin:0;background:white'>{path.read_text('utf-8')}</body>", "utf-8")
            browser.get(page.resolve().as_uri())
            (folder / f"{name}.png").write_bytes(browser.find_element(By.TAG_NAME, "svg").screenshot_as_png)
        browser.set_window_size(860, 1600)
        browser.get(report.resolve().as_uri())
        opening.write_bytes(browser.find_element(By.ID, "summary").screenshot_as_png)
    finally:
        browser.quit()


def find_audit_figures(runs: list[Path]) -> dict[str, Path]:
    """By audit its first figure in the first run that has one."""
    figures: dict[str, Path] = {}
    for audit in load_builtin_audits():
        for run in runs:
            paths = sorted((run / "figures").glob("*.svg"))
            own = [path for path in paths if re.fullmatch(rf"{audit.name}(_claim|_response)?(_1)?\.svg", path.name)]
            if own:
                figures.setdefault(audit.name, own[0])
    return figures


if __name__ == "__main__":
    docs = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        runs = [Path(folder) / Path(name).stem for name in EXPERIMENTS]
        for name, run in zip(EXPERIMENTS, runs, strict=True):
            factaudit.run(ROOT / name, run)
        runs.append(Path(folder) / "invariance")
        changed = {"evaluators": ["rouge2", "unigram", "tfidf"], "limit_documents": 10}
        factaudit.run(ROOT / "experiments/invariance.yaml", runs[-1], settings=changed)
        runs.append(Path(folder) / "invented")
        compute_invented_results().save(runs[-1])
        take_pictures(find_audit_figures(runs), docs / "figures", runs[0] / "report.html", docs / "report.png")
