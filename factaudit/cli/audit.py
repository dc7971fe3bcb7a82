"""``audit``: what can each evaluator be used for? Answered from files of claims and verdicts,
without a YAML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli import options
from factaudit.cli.outcomes import make_run_outcome
from factaudit.cli.output import Outcome, verb
from factaudit.cli.terminal import print_line
from factaudit.files import resolve_path

if TYPE_CHECKING:
    from factaudit.tables.column_mapping import ColumnMapping


@verb(
    "audit",
    short_help="Compare the verdicts of evaluators with human labels.",
    example="factaudit audit claims.parquet gpt-4o.parquet minicheck.csv --out runs/mine",
)
@click.argument(
    "files", nargs=-1, required=True, metavar="CLAIMS|COUNTS|TABLES [VERDICTS|LABELS]..."
)
@options.RUN_FOLDER_OPTION
@options.OVERWRITE_OPTION
@options.add_mapping_options
@click.option(
    "--title", default="Evaluators compared", show_default=True, help="The heading of the report."
)
@options.SEED_OPTION
@click.option(
    "--replicates",
    type=options.REPLICATES_TYPE,
    default=2000,
    show_default=True,
    help="The number of bootstrap replicates. With 0, no confidence intervals are computed.",
)
@click.option(
    "--where",
    type=click.Choice(["memory", "duckdb"]),
    default="memory",
    show_default=True,
    help=(
        "duckdb: load Parquet files that are too large for memory with DuckDB, without the texts of"
        " claims and documents, and leave out the audits that need them."
    ),
)
@click.option(
    "--require",
    "limits",
    multiple=True,
    metavar="NAME=SHARE",
    help=(
        "The limits that decide what is recommended, such as max_bias=0.03. min_rate (default 0.8):"
        " the smallest share of the errors that must be found, and of the correct claims that must"
        " pass. max_bias (0.05): how far an error rate may be off. max_misordered (0.1): the"
        " largest share of pairs of systems on which an evaluator may disagree with the labels."
        " min_orderable (0.25): rankings are judged only if, according to the labels, at least this"
        " share of pairs differs significantly. max_unscored (0.1): the largest share of claims"
        " without a verdict."
    ),
)
@click.option(
    "--label-rule",
    metavar="RULE",
    help=f"{options.LABEL_RULE_HELP}  [default: the labels of the claims, else majority]",
)
@options.SPLIT_OPTION
def audit_command(
    files: tuple[str, ...],
    out: Path,
    overwrite: bool,
    mapping: ColumnMapping,
    title: str,
    seed: int,
    replicates: int,
    where: str,
    limits: tuple[str, ...],
    label_rule: str | None,
    split: str | None,
) -> Outcome:
    """Compare the verdicts of evaluators with human labels, and write a report.

    Claims and verdicts can be in one file or in several. The command says how it read your columns,
    and `factaudit inspect` shows it beforehand. If you only have published error rates, give a
    table of counts with the columns dataset, system, evaluator, n, labelled_error_rate and
    predicted_error_rate. Files of labels by several annotators, without verdicts, show how far the
    annotators agree.

    Parquet files that do not fit into memory are read with --where duckdb.
    """
    from factaudit.datasets.input_tables import is_input_counts_file
    from factaudit.experiment.run import Experiment
    from factaudit.experiment.run import run as run_experiment

    given: dict[str, Any] = {"title": title, "seed": seed, "replicates": replicates, "where": where}
    given["require"] = dict(_parse_decision_limit_option(text) for text in limits)
    paths = [str(resolve_path(name)) for name in files]
    if len(paths) == 1 and is_input_counts_file(Path(files[0]), mapping):
        given["counts"] = paths[0]
    else:
        given["claims"], given["verdicts"] = paths[:1], paths[1:]
        given["mapping"] = mapping.model_dump(exclude_defaults=True, mode="json")
        given["label_rule"] = label_rule
    given["split"] = split
    experiment = Experiment(**given)
    return make_run_outcome(
        run_experiment(experiment, out, overwrite=overwrite, say=print_line), out
    )


def _parse_decision_limit_option(limit_text: str) -> tuple[str, float]:
    """``max_bias=0.03``."""
    from factaudit.audit.core.audited_run import DecisionLimits

    name, _, value = limit_text.partition("=")
    try:
        return name, DecisionLimits.parse({name: float(value)}).as_dict()[name]
    except ValueError:
        raise click.BadParameter(
            f"expected NAME=SHARE, found {limit_text!r}", param_hint="--require"
        ) from None


COMMANDS = (audit_command,)
