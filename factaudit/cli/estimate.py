"""``estimate`` and ``adjust``: what are the error rates of systems, from few labels or those of one system?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli import options
from factaudit.cli.json_output import JsonOutputCommand, print_json_output
from factaudit.cli.result_display import display_run_results
from factaudit.cli.terminal import print_line
from factaudit.errors import UsageError
from factaudit.files import resolve_path

if TYPE_CHECKING:
    from factaudit.tables.column_mapping import ColumnMapping


@click.command(
    "estimate",
    cls=JsonOutputCommand,
    short_help="Estimate the error rate of each system from a few labels.",
    example="factaudit estimate claims.parquet verdicts.parquet --label-file mine.csv --sample sample.parquet"
    " --out runs/rates",
)
@options.CLAIMS_ARGUMENT
@options.VERDICTS_ARGUMENT
@options.RUN_FOLDER_OPTION
@options.OVERWRITE_OPTION
@options.LABEL_FILES_OPTION
@options.add_mapping_options
@click.option(
    "--sample",
    type=options.PATH_TYPE,
    help="The sample that `factaudit sample` wrote for these labels. Without it, the labelled claims are treated as "
    "a random sample.",
)
@options.MAIN_EVALUATOR_OPTION
@options.COVARIATES_OPTION
@options.STRATA_OPTION
@options.LABEL_RULE_OPTION
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=click.Choice(["hierarchical", "regression-ppi", "labels", "raw"]),
    help="A method to use; repeat the option for several.  [default: all]",
)
@click.option(
    "--level",
    "levels",
    multiple=True,
    type=click.Choice(["claim", "response"]),
    help="Estimate only the rates of claims, or only those of responses.  [default: both]",
)
@click.option(
    "--target",
    type=click.Choice(["corpus", "population"]),
    default="corpus",
    show_default=True,
    help="What the rates are about: the claims in your files (corpus), or all claims that the systems would make "
    "about such documents (population).",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="The share of intervals that should contain the true rate.",
)
@options.SEED_OPTION
def estimate_command(
    claims: Path,
    verdicts: tuple[Path, ...],
    out: Path,
    overwrite: bool,
    label_files: Sequence[Path],
    sample: Path | None,
    confidence: float,
    seed: int,
    mapping: ColumnMapping,
    **settings: Any,
) -> None:
    """Estimate the error rate of each system from a few labels and from the scores of evaluators on all claims.

    The report shows four methods: hierarchical (a model of labels and scores), regression-ppi (prediction-powered
    inference), labels (the labels alone) and raw (the predicted rates, which have no interval). It says which one to
    quote.
    """
    from factaudit.estimate.settings import EstimateSettings
    from factaudit.experiment.run import Experiment
    from factaudit.experiment.run import run as run_experiment

    if claims.suffix in (".yaml", ".yml"):
        raise UsageError(
            f"{claims}: `factaudit run {claims} --dry-run` says what it will cost; this estimates error rates"
        )
    settings = {key: value for key, value in settings.items() if value != ()}  # what is not said has a default
    settings["labels"] = [str(resolve_path(path)) for path in label_files]
    settings["sample"] = None if sample is None else str(resolve_path(sample))
    experiment = Experiment(
        title="Error rates from few labels",
        claims=[str(resolve_path(claims))],
        verdicts=[str(resolve_path(path)) for path in verdicts],
        mapping=mapping.model_dump(exclude_defaults=True, mode="json"),
        audits=[],
        seed=seed,
        confidence=confidence,
        estimate=EstimateSettings(**settings),
    )
    results = run_experiment(experiment, out, overwrite=overwrite, say=print_line)
    for about in results.audits["estimate_summary"]:
        if about["reason"]:
            print_line(f"note      {about['dataset']}: {about['reason']}")
    display_run_results(results, out)


#: What one labelled system can correct by, and what was predicted.
_METHODS = ("none", "adjusted_counts", "zero_bias_threshold", "bacc_threshold")


@click.command(
    "adjust",
    cls=JsonOutputCommand,
    short_help="Correct error rates with the labels of one system (this often makes them worse).",
    example="factaudit adjust claims.parquet verdicts.parquet --calibrate gpt-4 --method adjusted_counts",
)
@options.CLAIMS_ARGUMENT
@options.VERDICTS_ARGUMENT
@click.option("--calibrate", required=True, metavar="SYSTEM", help="The system whose labels are used.")
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=click.Choice(_METHODS),
    help="A method to use; repeat the option for several.  [default: all]",
)
@options.LEVEL_OPTION
@click.option(
    "--out", type=options.PATH_TYPE, help="Also write the corrected rates to this file: .csv, .jsonl or .parquet."
)
@options.add_mapping_options
def adjust_command(
    claims: Path,
    verdicts: tuple[Path, ...],
    calibrate: str,
    methods: Sequence[str],
    level: str,
    out: Path | None,
    mapping: ColumnMapping,
) -> None:
    """Correct the error rates of all systems with the labels of one system.

    Such a correction assumes that the evaluator judges all systems alike, and often makes rates worse. The table shows
    the tuned thresholds, the corrected error rates and a test of this assumption.
    """
    import pandas as pd

    from factaudit.audit.calibration import correct_system_error_rates
    from factaudit.datasets.input_tables import load_judged_input_claims
    from factaudit.files import check_outputs_do_not_replace_inputs
    from factaudit.stats.cluster_bootstrap import ClusterBootstrap
    from factaudit.tables import list_plain_rows, parse_table_suffix, write_table

    if out is not None:
        parse_table_suffix(out)  # a wrong name is said before the work, not after
    check_outputs_do_not_replace_inputs([claims, *verdicts], out)
    loaded = load_judged_input_claims([claims, *verdicts], mapping, print_line)
    rows = pd.DataFrame(
        correct_system_error_rates(
            loaded.claims, loaded.verdicts, None, calibrate, levels=(level,), intervals=ClusterBootstrap()
        )
    )
    rows = rows[rows["method"].isin(methods or _METHODS)].reset_index(drop=True)
    if out is not None:
        write_table(rows, out)
    shown = rows.drop(columns=["reason", "n_calibration_labels"]).dropna(axis="columns", how="all")
    print_line(shown.to_string(index=False, na_rep="–", float_format="{:.3f}".format))
    for reason in rows["reason"].dropna().unique():
        print_line(f"–: {reason}")
    print_json_output({"rows": list_plain_rows(rows), "out": out})


COMMANDS = (estimate_command, adjust_command)
