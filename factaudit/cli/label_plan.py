"""How many labels an interval takes: ``sample --plan``; and options that ``sample`` and ``estimate`` have, too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from factaudit.cli.json_output import JsonOutputCommand, print_json_output
from factaudit.cli.options import (
    LABEL_RULE_OPTION,
    LEVEL_OPTION,
    PATH_TYPE,
    SEED_OPTION,
    add_mapping_options,
    format_help_example,
)
from factaudit.cli.result_display import display_label_plan
from factaudit.cli.terminal import print_line
from factaudit.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from factaudit.tables.column_mapping import ColumnMapping

CLAIMS_ARGUMENT = click.argument("claims", type=PATH_TYPE)
VERDICTS_ARGUMENT = click.argument("verdicts", type=PATH_TYPE, nargs=-1)
MAIN_EVALUATOR_OPTION = click.option("--main", help="The evaluator that leads.  [default: the first of the verdicts]")
COVARIATES_OPTION = click.option(
    "--covariate", "covariates", multiple=True, help="Another evaluator to use; 'none' for none.  [default: all]"
)
STRATA_OPTION = click.option(
    "--strata", multiple=True, metavar="COLUMN", help="Columns of the claims that rates may differ by."
)


@click.command(
    "sample --plan",
    cls=JsonOutputCommand,
    json_keys={
        "rows": "array: per dataset, method, system (__mean__: of all) and n_labels: width with _low and _high",
        "labels_for_width": "array: per dataset and method: the n_labels of the wanted width, with _low and _high; null"
        " where it takes more than planned for",
        "out": "string or null: the file of the rows",
        "figure": "string or null: the file of the figure",
    },
    short_help="Say how many labels an interval takes.",
    epilog=format_help_example(
        "factaudit sample --plan claims.parquet verdicts.parquet --labels pilot.csv --sample pilot.parquet --width 0.1"
    ),
)
@CLAIMS_ARGUMENT
@VERDICTS_ARGUMENT
@add_mapping_options
@click.option("--sample", type=PATH_TYPE, help="The file that the pilot's labels were drawn by.")
@click.option("--tpr", type=click.FloatRange(0, 1), help="Without a pilot: the main evaluator's TPR ...")
@click.option("--tnr", type=click.FloatRange(0, 1), help="... and its TNR.")
@MAIN_EVALUATOR_OPTION
@COVARIATES_OPTION
@STRATA_OPTION
@LABEL_RULE_OPTION
@LEVEL_OPTION
@click.option("--width", type=click.FloatRange(0, 1, min_open=True), default=0.1, show_default=True, help="To aim at.")
@click.option(
    "--seconds-per-label",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="How long one label takes: the plan's hours follow from it.",
)
@click.option(
    "--budget",
    "budgets",
    type=click.IntRange(1),
    multiple=True,
    help="Labels a dataset to plan for.  [default: 50 to 800]",
)
@click.option("--out", type=PATH_TYPE, help="Write the rows there: .csv, .jsonl or .parquet; a figure beside it.")
@SEED_OPTION
def sample_plan_command(
    claims: Path,
    verdicts: tuple[Path, ...],
    labels: Sequence[Path],
    sample: Path | None,
    tpr: float | None,
    tnr: float | None,
    main: str | None,
    covariates: Sequence[str],
    strata: Sequence[str],
    rule: str,
    level: str,
    width: float,
    seconds_per_label: float,
    budgets: Sequence[int],
    out: Path | None,
    seed: int,
    mapping: ColumnMapping,
) -> None:
    """Say how wide the intervals will be by the number of labels: from a pilot's labels, or from stated TPR and TNR."""
    import pandas as pd

    from factaudit.estimate.label_budget_plan import (
        BUDGETS,
        BudgetPlanAccuracy,
        list_planned_label_budgets_for_width,
        plan_label_budgets,
    )
    from factaudit.estimate.label_sample import read_sample
    from factaudit.files import check_outputs_do_not_replace_inputs
    from factaudit.tables import parse_table_suffix, write_table

    if (tpr is None) != (tnr is None):
        raise UsageError("expected both --tpr and --tnr, or neither")
    figure = None if out is None else out.with_suffix(".svg")
    if out is not None:
        parse_table_suffix(out)
    check_outputs_do_not_replace_inputs([claims, *verdicts, *labels, *([sample] if sample else [])], out, figure)
    table, judgements, annotations = read_claims_for_label_plan_command([claims, *verdicts], labels, mapping)
    rows = plan_label_budgets(
        table,
        judgements,
        annotations=annotations,
        sample=None if sample is None else read_sample(sample),
        stated_accuracy=None if tpr is None or tnr is None else BudgetPlanAccuracy(tpr, tnr),
        rule=rule,
        main=main,
        covariates=parse_covariates_option(covariates),
        strata=strata,
        level=level,
        budgets=sorted(budgets) or BUDGETS,
        seconds_per_label=seconds_per_label,
        seed=seed,
    )
    if out is not None and figure is not None:
        from factaudit.report.plots.figure_files import write_report_figure_files
        from factaudit.report.plots.label_plan_plot import draw_label_plan_plot
        from factaudit.report.plots.panel_layout import DrawnAuditFigure

        write_table(pd.DataFrame(rows), out)
        drawn = DrawnAuditFigure(draw_label_plan_plot(rows, width))
        write_report_figure_files(drawn, figure.with_suffix(""), "The width of intervals by the number of labels")
        print_line(f"{out}, {figure}")
    display_label_plan(rows, width, seconds_per_label, has_pilot=tpr is None)
    print_json_output(
        {
            "rows": rows,
            "labels_for_width": list_planned_label_budgets_for_width(rows, width),
            "out": out,
            "figure": figure,
        }
    )


def read_claims_for_label_plan_command(
    files: Sequence[Path], label_files: Sequence[Path], mapping: ColumnMapping
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame | None]:
    """Claims, verdicts and what people said of them, of files of any shape."""
    from factaudit.input_tables import load_judged_input_claims
    from factaudit.tables.annotations import read_annotations

    loaded = load_judged_input_claims(files, mapping, print_line)
    annotations = read_annotations(*label_files, claims=loaded.claims) if label_files else None
    return loaded.claims, loaded.verdicts, annotations


def parse_covariates_option(covariate_names: Sequence[str]) -> list[str] | None:
    """None for all; an empty list for none."""
    return None if not covariate_names else [name for name in covariate_names if name != "none"]
