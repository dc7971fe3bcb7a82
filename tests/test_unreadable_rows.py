"""Converters leave out what they cannot read, count it and say why; a file of another form is
refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from audit_tables import load_input_tables
from conftest import run_command

from factaudit import InputError


def write(path: Path, value: Any) -> Path:
    lines = (
        "".join(json.dumps(row) + "\n" for row in value)
        if path.suffix == ".jsonl"
        else json.dumps(value)
    )
    path.write_text(lines, encoding="utf-8")
    return path


def write_wice(path: Path, n_claims: int, odd: dict[int, dict[str, Any]]) -> Path:
    """Claims of WiCE; ``odd``: what some have otherwise."""
    rows = [
        {"claim": f"It pours {at}.", "evidence": [f"It rains {at}."], "label": "supported"}
        | {"meta": {"id": f"{path.stem}{at}"}}
        | odd.get(at, {})
        for at in range(n_claims)
    ]
    return write(path, rows)


def test_rows_that_cannot_be_read_are_left_out_and_the_first_reasons_said(tmp_path, capsys):
    source = write_wice(
        tmp_path / "test.jsonl", 40, {at: {"claim": None} for at in range(0, 35, 5)}
    )
    assert run_command("convert", "wice", source, "--out", tmp_path / "claims.csv") == 0
    said = capsys.readouterr().out
    assert "test.jsonl: 7 of 40 rows left out, which cannot be read" in said
    assert "... and 2 more" in said
    assert len(pd.read_csv(tmp_path / "claims.csv")) == 33


#: Twelve labelled and judged claims in other people's columns.
JUDGED = [
    {"sentence": f"It rains {at}.", "human": at % 2, "gpt4_score": 0.1 + 0.06 * at}
    for at in range(12)
]
OWN = [
    {"claim_id": f"c{at}", "dataset": "d", "claim": f"It rains {at}.", "label": at % 2}
    for at in range(12)
]


@pytest.mark.parametrize(
    ("rows", "first"), [(JUDGED, "sentence"), (OWN, "claim_id")], ids=["theirs", "ours"]
)
@pytest.mark.parametrize("kind", ["cut line", "no object", "cell too many", "cell too few"])
def test_a_broken_row_of_a_table_is_left_out_and_told(kind, rows, first, tmp_path):
    is_json = kind in ("cut line", "no object")
    path = tmp_path / ("rows.jsonl" if is_json else "rows.csv")
    header = [] if is_json else [",".join(rows[0])]
    lines = [json.dumps(row) if is_json else ",".join(map(str, row.values())) for row in rows]
    lines[4] = {
        "cut line": lines[4][:20],
        "no object": "[1]",
        "cell too many": lines[4] + ",x",
    }.get(kind, "c4")
    path.write_text("\n".join([*header, *lines]), encoding="utf-8")
    told = []
    claims = load_input_tables([path], None, told.append).claims
    assert claims is not None
    assert len(claims) == 11
    assert "It rains 4." not in set(claims["claim"])
    assert any(
        "rows.jsonl: 1 of 12 rows left out" in line or "rows.csv: 1 of 12 rows left out" in line
        for line in told
    )
    assert any(f"{'line' if is_json else 'row'} 5: " in line for line in told)
    lines[5:8] = [lines[4]] * 3
    path.write_text("\n".join([*header, *lines]), encoding="utf-8")
    with pytest.raises(InputError, match="4 problems"):
        load_input_tables([path])


def test_a_folder_is_of_the_format_of_its_files(tmp_path):
    for number in (1, 2):
        write_wice(tmp_path / f"part{number}.jsonl", 6, {})
    claims = load_input_tables([tmp_path]).claims
    assert claims is not None
    assert len(claims) == 12
