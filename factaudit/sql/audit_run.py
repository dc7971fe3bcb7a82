"""A run folder from tables past memory: checked, joined, audited and rendered; the tables themselves are not copied."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from factaudit.audit.audit_options import read_options_of_audits_past_memory
from factaudit.results import Results, Row, compare_results_of_tallies
from factaudit.run_ending import describe_run_audit_rows, finish_run
from factaudit.run_folder import RunSettings, list_file_checksums, lock_run_folder_for_writing, write_experiment_yaml
from factaudit.signature import hash_texts
from factaudit.sql.source_tables import SourceTables
from factaudit.sql.sql_tallies import SqlTallies
from factaudit.sql.table_join import join_source_tables
from factaudit.text.display_text import format_count

#: Audits that read scores.
_SCORE_READING_AUDITS = {"adjustment", "adjusted_bias"}
#: Whose versions `experiment.yaml` of the run folder records.
_RECORDED_PACKAGES = ("duckdb", "numpy", "pandas", "pyarrow", "scipy")


@dataclass(frozen=True)
class AdditionalSqlAnalysis:
    """What a run makes of tables beside audits: rows by audit, from the tables and columns that it groups by.

    files: what it reads beside them; make_signature: of how, from the checksums of the files.
    """

    compute_rows: Callable[[SqlTallies], Mapping[str, list[Row]]]
    grouping_columns: Sequence[str]
    files: Sequence[Path]
    make_signature: Callable[[Sequence[Row]], str]


def run_sql_audits(
    settings: RunSettings,
    source_tables: SourceTables,
    out: str | Path,
    say: Callable[[str], None],
    additional_analysis: AdditionalSqlAnalysis | None = None,
) -> Results:
    """Audit tables and write the run folder; what queries keep is in its ``.work``, and removed at the end."""
    folder = Path(out)
    options = read_options_of_audits_past_memory(
        settings.audits
    )  # what is refused is refused before the tables are read
    with lock_run_folder_for_writing(
        folder, [*source_tables.files, *(additional_analysis.files if additional_analysis else ())]
    ) as work:
        spill = work / "tables"
        shutil.rmtree(spill, ignore_errors=True)
        spill.mkdir()
        engine = source_tables.open_engine(spill)
        try:
            by = list(dict.fromkeys(column for each in options.values() for column in each.get("by", ())))
            if additional_analysis is not None:
                by += [
                    one
                    for one in additional_analysis.grouping_columns
                    if one not in by and one in engine.read_column_kinds(source_tables.claims)
                ]
            scores = additional_analysis is not None or bool(_SCORE_READING_AUDITS & set(options))
            prepared = join_source_tables(engine, source_tables, by, scores, with_ids=additional_analysis is not None)
            stored = SqlTallies(engine, prepared)
            say(f"claims    {prepared.n_claims:>11,} in {format_count(len(stored.dataset_names), 'dataset')}")
            say(f"verdicts  {prepared.n_verdicts:>11,} of {format_count(len(stored.evaluators), 'evaluator')}")
            inputs = list_file_checksums(source_tables.files)
            results = compare_results_of_tallies(
                stored,
                stored.describe_tables(),
                hash_texts(source_tables.claims, source_tables.verdicts, *(row["checksum"] for row in inputs)),
                **settings.compare_arguments,
                inputs=inputs,
            )
            if additional_analysis is not None:
                results.audits.update(additional_analysis.compute_rows(stored))
                read = list_file_checksums(additional_analysis.files)
                results.about["inputs"] += read
                results = replace(results, signature=f"{results.signature}|{additional_analysis.make_signature(read)}")
        finally:
            engine.close()
            shutil.rmtree(spill, ignore_errors=True)
        say(describe_run_audit_rows(results, width=11))
        write_experiment_yaml(folder, settings, results, packages=_RECORDED_PACKAGES)
        finish_run(folder, results)
        say(f"report    {folder / 'report.html'}")
    return results
