"""``estimate``: what are the error rates of systems, estimated from a few labels?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli import options
from factaudit.cli.outcomes import make_run_outcome
from factaudit.cli.output import Outcome, verb
from factaudit.cli.terminal import print_line
from factaudit.errors import UsageError
from factaudit.files import resolve_path

if TYPE_CHECKING:
    from factaudit.tables.column_mapping import ColumnMapping


@verb(
    "estimate",
    short_help="Estimate the error rate of each system from a few labels.",
    example=(
        "factaudit estimate claims.parquet verdicts.parquet --label-file mine.csv --sample"
        " sample.parquet --out runs/rates"
    ),
)
@options.CLAIMS_ARGUMENT
@options.VERDICTS_ARGUMENT
@options.RUN_FOLDER_OPTION
@options.OVERWRITE_OPTION
@options.LABEL_FILES_OPTION
@options.add_mapping_options
@options.SAMPLE_OPTION
@options.MAIN_EVALUATOR_OPTION
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
) -> Outcome:
    """Estimate the error rate of each system from a few labels and from the scores of evaluators on
    all claims.

    The report shows four methods: hierarchical (a model of labels and scores), regression-ppi
    (prediction-powered inference), labels (the labels alone) and raw (the predicted rates, which
    have no interval). It says which one to quote.
    """
    from factaudit.estimate.settings import EstimateSettings
    from factaudit.experiment.run import Experiment
    from factaudit.experiment.run import run as run_experiment

    if claims.suffix in (".yaml", ".yml"):
        raise UsageError(
            f"{claims}: `factaudit run {claims} --dry-run` says what it will cost; this estimates"
            " error rates"
        )
    # Options that are not given have a default.
    settings = {key: value for key, value in settings.items() if value != ()}
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
    return make_run_outcome(results, out)


COMMANDS = (estimate_command,)
