"""An audit is one file: adding one adds it everywhere, removing one removes it everywhere, no other
file names it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from audit_tables import tables
from click.testing import CliRunner
from report_results import read_report_text

import factaudit.audit
from factaudit import Results, compare
from factaudit.audit import load_all_audits
from factaudit.cli import cli

#: How often the label is 1: a whole audit.
FRESH = '''
    """How many of the labels say attributable?"""

    from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
    from operator import methodcaller
    from factaudit.audit.core.checks import Count
    from factaudit.audit.core.audit_declaration import PlotSpec


    def balance(judgements, *, least=0.4, intervals=None):
        dataset, names = judgements.dataset_codes, judgements.dataset_names
        labels = [judgements.label[dataset == at] for at in range(len(names))]
        return [
            {"dataset": name, "evaluator": evaluator, "n": len(found),
             "attributable_share": float((found == 1).mean()),
             "enough": bool((found == 1).mean() >= least), "reason": None}
            for name, found in zip(names, labels)
            for evaluator in judgements.evaluators
        ]


    AUDIT = Audit(
        name="balance",
        title="A fresh section on balance",
        question="Are the labels of both classes?",
        formula="Share = labels of 1 / labels.",
        text="What a fresh audit has to say.",
        columns={
            **pick_shared_columns("dataset", "evaluator", "n", "reason"),
            "attributable_share": Column(
                "labels of 1", "percent", "share of the labels that are 1"
            ),
            "enough": Column("enough", "text", "whether there are enough"),
        },
        options={"least": "the least share that is enough"},
        compute=balance,
        plot=PlotSpec(what="A fresh figure of labels", keys=("attributable_share",)),
        checks=(
            Count(
                id="lopsided",
                title="Lopsided labels",
                rows=methodcaller("per_dataset", "balance"),
                figure="attributable_share",
                limit=0.4,
                side="under",
                says="{dataset} has {attributable_share:percent} labels of 1, {verdict}.",
                beyond="less than {limit:limit} %",
            ),
        ),
    )
'''


@pytest.fixture(
    params=["a file in the package", "an entry point", "an entry point of a module's attribute"]
)
def added(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The audit `FRESH`, where audits are looked for."""
    source = textwrap.dedent(FRESH).lstrip()
    assert len(source.splitlines()) <= 60
    (tmp_path / "fresh_balance.py").write_text(source, encoding="utf-8")
    if request.param.startswith("a file"):
        monkeypatch.setattr(factaudit.audit, "__path__", [*factaudit.audit.__path__, str(tmp_path)])
    else:
        info = tmp_path / "acme_audits-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-audits\nVersion: 1.0\n")
        target = "fresh_balance:AUDIT" if "attribute" in request.param else "fresh_balance"
        (info / "entry_points.txt").write_text(f"[factaudit.audits]\nbalance = {target}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
    load_all_audits.cache_clear()
    yield
    monkeypatch.undo()
    load_all_audits.cache_clear()


def rows() -> list[dict]:
    return [
        {"label": int(i % 4 == 0), "system": "xy"[i % 2], "response_id": str(i // 2), "e": i % 2}
        for i in range(40)
    ]


def said_by(folder: Path) -> dict[str, str]:
    compare(*tables(rows(), ["e"]), replicates=20).save(folder)
    found = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.suffix in (".html", ".csv", ".svg")
    }
    found["list"] = CliRunner().invoke(cli, ["list", "audits"]).output
    return found


def test_an_audit_that_is_added_is_everywhere(added, tmp_path):
    assert list(load_all_audits())[-1] == "balance"
    found = said_by(tmp_path / "run")
    results = Results.load(tmp_path / "run")
    assert [row["attributable_share"] for row in results.rows("balance")] == [0.25]
    assert [each["statement"] for each in results.finding_rows if each["id"] == "lopsided"] == [
        "d has 25.0 % labels of 1, less than 40 %."
    ]
    page = found["report.html"]
    for text in ("A fresh section on balance", "labels of 1, less than 40"):
        assert text in page
    assert re.search(r"A fresh figure of labels\.", page)
    assert "Share = labels of 1 / labels." in page
    assert found["tables/balance.csv"].splitlines()[1] == "d,e,40,0.25,False,"
    assert "<path" in found["figures/balance.svg"]
    assert results.figure("balance").axes
    assert "balance: Are the labels of both classes?" in found["list"]
    (row,) = compare(
        *tables(rows(), ["e"]), audits=[{"balance": {"least": 0.1}}], replicates=0
    ).rows("balance")
    assert row["enough"] is True


def test_rows_of_an_audit_that_is_not_installed_are_kept_and_not_shown(tmp_path):
    results = compare(*tables(rows(), ["e"]), audits=["rates"], replicates=0)
    results.audits["balance"] = [
        {"dataset": "d", "evaluator": "e", "n": 40, "attributable_share": 0.25, "reason": None}
    ]
    results.save(tmp_path)
    assert "25.0" not in read_report_text(tmp_path)
    assert Results.load(tmp_path).balance["attributable_share"].tolist() == [0.25]


def test_a_package_whose_audits_do_not_load_is_left_out_with_a_warning(tmp_path, monkeypatch):
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[factaudit.audits]\nbroken = acme_absent\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    load_all_audits.cache_clear()
    with pytest.warns(
        UserWarning,
        match="audits of the package broken are left out: No module named 'acme_absent'",
    ):
        assert "rates" in load_all_audits()
    monkeypatch.undo()
    load_all_audits.cache_clear()
