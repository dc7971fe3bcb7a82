"""Error rates that one labelled system corrects: ``estimate --calibrate SYSTEM``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from factaudit.cli.json_output import JsonOutputCommand, print_json_output
from factaudit.cli.options import LEVEL_OPTION, PATH_TYPE, add_mapping_options, format_help_example
from factaudit.cli.result_display import display_adjusted_rates
from factaudit.cli.terminal import print_line

if TYPE_CHECKING:
    from factaudit.tables.column_mapping import ColumnMapping


#: What one labelled system can correct by, and what was predicted.
_METHODS = ("none", "adjusted_counts", "zero_bias_threshold", "bacc_threshold")


@click.command(
    "estimate --calibrate",
    cls=JsonOutputCommand,
    json_keys={
        "rows": "array: per dataset, evaluator, method and system: threshold, n, predicted_error_rate,"
        " adjusted_error_rate with _low and _high, labelled_error_rate, reason where there is none",
        "out": "string or null: the file of the rows",
    },
    short_help="Correct error rates from one labelled system.",
    epilog=format_help_example(
        "factaudit estimate claims.parquet verdicts.parquet --calibrate gpt-4 --method adjusted_counts"
    ),
)
@click.argument("claims", type=PATH_TYPE)
@click.argument("verdicts", type=PATH_TYPE, nargs=-1)
@click.option("--calibrate", required=True, metavar="SYSTEM", help="The system whose labels are used.")
@click.option("--method", "methods", multiple=True, type=click.Choice(_METHODS), help="Only these.  [default: all]")
@click.option("--evaluator", help="Only this one.  [default: all]")
@LEVEL_OPTION
@click.option("--out", type=PATH_TYPE, help="Also write the rows as a table: .csv, .jsonl or .parquet.")
@add_mapping_options
def estimate_calibrate_command(
    claims: Path,
    verdicts: tuple[Path, ...],
    calibrate: str,
    methods: Sequence[str],
    evaluator: str | None,
    level: str,
    out: Path | None,
    mapping: ColumnMapping,
) -> None:
    """Calibrate on one labelled system: the tuned thresholds, and the corrected error rates of the other systems."""
    import pandas as pd

    from factaudit.audit.error_rate_correction import correct_system_error_rates as adjust_rates
    from factaudit.files import check_outputs_do_not_replace_inputs
    from factaudit.input_tables import load_judged_input_claims
    from factaudit.stats.cluster_bootstrap import ClusterBootstrap
    from factaudit.tables import list_plain_rows, parse_table_suffix, write_table

    if out is not None:
        parse_table_suffix(out)  # a wrong name is said before the work, not after
    check_outputs_do_not_replace_inputs([claims, *verdicts], out)
    loaded = load_judged_input_claims([claims, *verdicts], mapping, print_line)
    rows = pd.DataFrame(
        adjust_rates(
            loaded.claims,
            loaded.verdicts,
            evaluator,
            calibrate,
            levels=(level,),
            intervals=ClusterBootstrap(),
        )
    )
    rows = rows[rows["method"].isin(methods or _METHODS)].reset_index(drop=True)
    if out is not None:
        write_table(rows, out)
    display_adjusted_rates(rows)
    print_json_output({"rows": list_plain_rows(rows), "out": out})
