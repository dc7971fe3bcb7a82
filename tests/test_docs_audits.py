"""docs/audits.md against what the audits really give."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from audit_tables import judged
from test_audit_properties import EVALUATORS, of

from factaudit.audit import AUDITS, findings
from factaudit.audit.core.intervals import Intervals

ENDS = {"bounds": ("_min", "_max"), "interval": ("_low", "_high")}


@pytest.fixture(scope="module")
def sections(root: Path) -> dict[str, str]:
    parts = re.split(r"^## ", (root / "docs/audits.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {part.split("\n")[0].strip("`"): part for part in parts[1:]}


def documented(section: str) -> set[str]:
    keys = set()
    for names, text in re.findall(r"^\| (`.*`) \| (.*) \|$", section, flags=re.MULTILINE):
        # What stands beside a figure is told at the end, after a semicolon.
        _, _, beside = text.rpartition("; ") if "; " in text else ("", "", "")
        for name in re.findall(r"`(\w+)`", names):
            keys |= {name} | {name + end for word, ends in ENDS.items() if word in beside for end in ends}
    return keys


def test_every_audit_is_documented_in_the_order_of_the_report(sections):
    assert [name for name in sections if name != "Findings"] == list(AUDITS)


@pytest.mark.parametrize("audit", AUDITS)
def test_every_key_of_real_rows_is_documented_and_no_other(audit, sections):
    options = {"size": 3} if audit.startswith("chunking") else {}
    rows = AUDITS[audit](judged(of(), *EVALUATORS), intervals=Intervals(5), **options)
    assert rows
    assert {key for row in rows for key in row} == documented(sections[audit])


@pytest.mark.parametrize("audit", AUDITS)
def test_every_option_is_documented(audit, sections):
    parameters = inspect.signature(AUDITS[audit]).parameters.values()
    text = sections[audit]
    if found := re.search(r"Options as for `(\w+)`", text):
        text += sections[found[1]]
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name != "intervals":
            assert f"`{parameter.name}`" in text.split("| key |")[0] + text.split("Options as for")[-1], parameter.name


def test_every_finding_is_documented(sections):
    source = inspect.getsource(findings)
    ids = set(re.findall(r'_finding\(\s*"(\w+)"', source))
    assert len(ids) == 12
    assert documented(sections["Findings"]) == ids
