"""How does a run become JSON lines? One line per claim: its columns, and what each evaluator said
about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from factaudit.files import write_jsonl
from factaudit.tables import list_plain_rows, read_run_tables


def export_jsonl(run_dir: Path, out: Path) -> list[Path]:
    """Write ``claims.jsonl``. A verdict is {evaluator, repeat, score, prediction, status, raw,
    chunk_scores}."""
    claims, verdicts = read_run_tables(run_dir)
    said: dict[str, list[dict[str, Any]]] = {}
    for row in list_plain_rows(verdicts):
        said.setdefault(row.pop("claim_id"), []).append(_drop_nulls(row))
    rows = [
        {**_drop_nulls(row), "verdicts": said.get(row["claim_id"], [])}
        for row in list_plain_rows(claims)
    ]
    write_jsonl(out / "claims.jsonl", rows)
    return [out / "claims.jsonl"]


def _drop_nulls(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if value is not None}
