"""A run folder from tables past memory: checked, joined, audited and rendered; the tables themselves are not copied."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from factaudit.results import Results, Row, compare_stored, stored_options
from factaudit.runfolder import RunSettings, checksums, opened, write_lock
from factaudit.signature import digest
from factaudit.sql.prepare import prepare
from factaudit.sql.source import Tables
from factaudit.sql.stored import Stored
from factaudit.text.printable import count
from factaudit.unchanged import finish, kept_rows

#: Audits that read scores.
_BY_SCORE = {"adjustment", "adjusted_bias"}
#: What the lock file records of the environment.
_PACKAGES = ("duckdb", "numpy", "pandas", "pyarrow", "scipy")


@dataclass(frozen=True)
class Further:
    """What a run makes of tables beside audits: rows by audit, from the tables and columns that it groups by.

    files: what it reads beside them; signature: of how, from the checksums of the files.
    """

    rows: Callable[[Stored], Mapping[str, list[Row]]]
    columns: Sequence[str]
    files: Sequence[Path]
    signature: Callable[[Sequence[Row]], str]


def run(
    settings: RunSettings, tables: Tables, out: str | Path, say: Callable[[str], None], further: Further | None = None
) -> Results:
    """Audit tables and write the run folder; what queries keep is in its ``.work``, and removed at the end."""
    folder = Path(out)
    options = stored_options(settings.audits)  # what is refused is refused before the tables are read
    with opened(folder, [*tables.files, *(further.files if further else ())]) as work:
        spill = work / "tables"
        shutil.rmtree(spill, ignore_errors=True)
        spill.mkdir()
        engine = tables.engine(spill)
        try:
            by = _columns(options)
            if further is not None:
                by += [one for one in further.columns if one not in by and one in engine.columns(tables.claims)]
            scores = further is not None or bool(_BY_SCORE & set(options))
            prepared = prepare(engine, tables, by, scores, ids=further is not None)
            stored = Stored(engine, prepared)
            say(f"claims    {prepared.n_claims:>11,} in {count(len(stored.dataset_names), 'dataset')}")
            say(f"verdicts  {prepared.n_verdicts:>11,} of {count(len(stored.evaluators), 'evaluator')}")
            inputs = checksums(tables.files)
            with kept_rows(work / "audits") as reuse:
                results = compare_stored(
                    stored,
                    stored.about(),
                    digest(tables.claims, tables.verdicts, *(row["checksum"] for row in inputs)),
                    **settings.asked,
                    inputs=inputs,
                    reuse=reuse,
                )
            if further is not None:
                results.audits.update(further.rows(stored))
                read = checksums(further.files)
                results.about["inputs"] += read
                results = replace(results, signature=f"{results.signature}|{further.signature(read)}")
        finally:
            engine.close()
            shutil.rmtree(spill, ignore_errors=True)
        say(f"audits    {sum(map(len, results.audits.values())):>11,} rows in {count(len(results.audits), 'audit')}")
        write_lock(folder, settings, results, packages=_PACKAGES)
        finish(folder, results)
        say(f"report    {folder / 'report.html'}")
    return results


def _columns(options: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The columns that audits are asked to group by."""
    return list(dict.fromkeys(column for each in options.values() for column in each.get("by", ())))
