"""The claims to label: ``sample`` which, ``sample --plan`` how many, ``sample --split`` for a judge's development."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli import options
from factaudit.cli.json_output import JsonOutputCommand, print_json_output
from factaudit.cli.label_plan import display_label_plan
from factaudit.cli.result_display import display_drawn_sample
from factaudit.cli.terminal import print_line
from factaudit.errors import UsageError

if TYPE_CHECKING:
    from factaudit.tables.column_mapping import ColumnMapping


@click.command(
    "sample",
    cls=options.FlagSwitchedCommand,
    json_keys={
        "out": "string: the sample",
        "pages": "array: pages to label on",
        "drawn": "object: per dataset, the claims (or responses) to label now",
        "remaining": "integer: labels of the budget that the next phase draws",
    },
    short_help="Draw the claims to label.",
    epilog=options.format_help_example(
        "factaudit sample claims.parquet verdicts.parquet --budget 200 --out sample.parquet --page labels.html"
    ),
)
@options.CLAIMS_ARGUMENT
@options.VERDICTS_ARGUMENT
@click.option("--out", type=options.PATH_TYPE, required=True, help="The sample: .parquet.")
@click.option(
    "--budget", type=click.IntRange(1), help="Labels in all, over all datasets; with --level response, responses."
)
@click.option(
    "--then", type=options.PATH_TYPE, metavar="SAMPLE", help="Draw the next phase of this sample, by the labels so far."
)
@click.option("--more", type=click.IntRange(1), help="With --then: so many labels on top of its budget.")
@options.add_mapping_options
@options.LABEL_RULE_OPTION
@options.MAIN_EVALUATOR_OPTION
@options.COVARIATES_OPTION
@options.STRATA_OPTION
@options.LEVEL_OPTION
@click.option("--one-phase", is_flag=True, help="Draw the whole budget now.")
@click.option(
    "--same-documents", is_flag=True, help="The same documents for all systems: sharper differences, blunter rates."
)
@click.option("--at-random", is_flag=True, help="Every claim of a dataset with the same chance: what `triage` wants.")
@click.option(
    "--annotators",
    type=click.IntRange(1, 99),
    default=1,
    show_default=True,
    help="People who label; each gets a part, and a page of their own.",
)
@click.option("--overlap", default="0%", show_default=True, metavar="SHARE", help="Labelled by all: 20% or 0.2.")
@click.option("--page", type=options.PATH_TYPE, help="Also write the page to label on: .html, one for each annotator.")
@options.SEED_OPTION
def sample_command(
    claims: Path,
    verdicts: tuple[Path, ...],
    out: Path,
    budget: int | None,
    then: Path | None,
    more: int | None,
    labels: Sequence[Path],
    rule: str,
    main: str | None,
    covariates: Sequence[str] | None,
    one_phase: bool,
    at_random: bool,
    page: Path | None,
    seed: int,
    mapping: ColumnMapping,
    **design: Any,
) -> None:
    """Draw the claims that labels tell most of, and keep in the file how: `factaudit estimate` needs to know.

    From 100 labels a dataset and 8 a system on a sample has two phases: label the first, then draw the second with
    --then SAMPLE --labels LABELS.
    """
    from factaudit.estimate.label_sample import draw_label_sample, draw_next_sample_phase, read_sample
    from factaudit.estimate.rate_estimation import choose_estimation_covariates, join_claims_for_estimation
    from factaudit.files import check_outputs_do_not_replace_inputs
    from factaudit.input_tables import load_judged_input_claims
    from factaudit.tables.schema import is_text_placeholder

    if (budget is None) == (then is None):
        raise UsageError("expected --budget for a new sample, or --then for the next phase of one")
    if at_random and design["same_documents"]:
        raise UsageError("expected --at-random or --same-documents, not both")
    if more is not None and then is None:
        raise UsageError("--more extends a sample: name it with --then")
    check_outputs_do_not_replace_inputs([claims, *verdicts, *labels, then], out, page)
    loaded = load_judged_input_claims([claims, *verdicts], mapping, print_line, labels)
    table, annotations = loaded.claims, loaded.annotations if labels else None
    if page is not None and table["claim"].map(is_text_placeholder, na_action="ignore").all():
        raise UsageError(
            f"--page {page}: {claims} has no text to show on a page; name its column with --map claim=COLUMN, or draw "
            "the sample without --page"
        )
    if then is not None:
        before = read_sample(then)
        judged = join_claims_for_estimation(table, loaded.verdicts, annotations, rule)
        drawn = draw_next_sample_phase(before, judged, more, seed, annotations, rule)
    elif budget is not None:
        judged = join_claims_for_estimation(table.assign(label=None), loaded.verdicts)
        drawn = draw_label_sample(
            judged,
            choose_estimation_covariates(judged, loaded.verdicts, main, covariates),
            budget,
            seed=seed,
            phases=1 if one_phase else 2,
            is_at_random=at_random,
            **design | {"overlap": _parse_overlap_option(design["overlap"])},
        )
    drawn.write(out)
    pages: list[Path] = []
    if page is not None:
        from factaudit.estimate.page import write_labelling_pages

        pages = write_labelling_pages(drawn, table, page, seed)
    display_drawn_sample(drawn, out, pages)
    left = sum(drawn.plan.count_remaining_labels(name) for name in drawn.plan.shares)
    print_json_output({"out": out, "pages": pages, "drawn": drawn.plan.drawn[-1], "remaining": left})


def _parse_overlap_option(share_text: str) -> float:
    try:
        share = float(share_text.rstrip("%")) / (100 if share_text.endswith("%") else 1)
    except ValueError:
        raise UsageError(f"expected a share like 20% or 0.2, found {share_text!r}") from None
    if not 0 <= share <= 1:
        raise UsageError(f"expected a share from 0 to 1 (or 0% to 100%), found {share_text!r}")
    return share


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
    epilog=options.format_help_example(
        "factaudit sample --plan claims.parquet verdicts.parquet --labels pilot.csv --sample pilot.parquet --width 0.1"
    ),
)
@options.CLAIMS_ARGUMENT
@options.VERDICTS_ARGUMENT
@options.add_mapping_options
@click.option("--sample", type=options.PATH_TYPE, help="The file that the pilot's labels were drawn by.")
@click.option("--tpr", type=click.FloatRange(0, 1), help="Without a pilot: the main evaluator's TPR ...")
@click.option("--tnr", type=click.FloatRange(0, 1), help="... and its TNR.")
@options.MAIN_EVALUATOR_OPTION
@options.COVARIATES_OPTION
@options.STRATA_OPTION
@options.LABEL_RULE_OPTION
@options.LEVEL_OPTION
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
@click.option(
    "--out", type=options.PATH_TYPE, help="Write the rows there: .csv, .jsonl or .parquet; a figure beside it."
)
@options.SEED_OPTION
def sample_plan_command(
    claims: Path,
    verdicts: tuple[Path, ...],
    labels: Sequence[Path],
    sample: Path | None,
    tpr: float | None,
    tnr: float | None,
    width: float,
    budgets: Sequence[int],
    out: Path | None,
    mapping: ColumnMapping,
    **settings: Any,
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
    from factaudit.input_tables import load_judged_input_claims
    from factaudit.tables import parse_table_suffix, write_table

    if (tpr is None) != (tnr is None):
        raise UsageError("expected both --tpr and --tnr, or neither")
    figure = None if out is None else out.with_suffix(".svg")
    if out is not None:
        parse_table_suffix(out)
    check_outputs_do_not_replace_inputs([claims, *verdicts, *labels, sample], out, figure)
    loaded = load_judged_input_claims([claims, *verdicts], mapping, print_line, labels)
    rows = plan_label_budgets(
        loaded.claims,
        loaded.verdicts,
        annotations=loaded.annotations if labels else None,
        sample=None if sample is None else read_sample(sample),
        stated_accuracy=None if tpr is None or tnr is None else BudgetPlanAccuracy(tpr, tnr),
        budgets=sorted(budgets) or BUDGETS,
        **settings,
    )
    if out is not None and figure is not None:
        from factaudit.report.plots.command_plots import draw_label_plan_plot, write_command_figure

        write_table(pd.DataFrame(rows), out)
        drawn = draw_label_plan_plot(rows, width)
        write_command_figure(drawn, figure, "The width of intervals by the number of labels")
        print_line(f"{out}, {figure}")
    display_label_plan(rows, width, settings["seconds_per_label"], has_pilot=tpr is None)
    budgets_for_width = list_planned_label_budgets_for_width(rows, width)
    print_json_output({"rows": rows, "labels_for_width": budgets_for_width, "out": out, "figure": figure})


@click.command(
    "sample --split",
    cls=JsonOutputCommand,
    json_keys={
        "out": "string: the claims with their splits; those of the test have no label",
        "sealed": "string: the folder with the test's labels and the ledger of its openings",
        "splits": "array: per split: n_claims, n_documents, n_errors, n_labelled; of the test, what was sealed",
    },
    short_help="Split labelled claims into train, dev and a sealed test.",
    epilog=options.format_help_example("factaudit sample labelled.parquet --split --out split.parquet"),
)
@options.CLAIMS_ARGUMENT
@click.option("--out", type=options.PATH_TYPE, required=True, help="The claims with their splits: .parquet.")
@click.option("--shares", default="20/40/40", show_default=True, metavar="TRAIN/DEV/TEST", help="Of the claims.")
@options.add_mapping_options
@options.LABEL_RULE_OPTION
@options.SEED_OPTION
def sample_split_command(
    claims: Path, out: Path, shares: str, labels: Sequence[Path], rule: str, seed: int, mapping: ColumnMapping
) -> None:
    """Split labelled claims into train, dev and test, whole documents together, and seal the labels of the test.

    Take examples for a prompt from train, audit on dev as often as you like (`audit --split dev`), and open
    the test once (`--open-test`): each time is written down, and widens what the report claims.
    """
    from factaudit.estimate.sealed_split import SPLITS, find_seal_folder, write_sealed_split
    from factaudit.files import check_outputs_do_not_replace_inputs
    from factaudit.input_tables import load_input_claims
    from factaudit.tables.annotations import list_annotator_judgements, read_annotations, relabel_claims_by_annotations

    if out.suffix.lower() != ".parquet":
        raise UsageError(f"{out}: expected a name that ends in .parquet")
    parts = _parse_shares_option(shares)
    check_outputs_do_not_replace_inputs([claims, *labels], out)
    table = load_input_claims(claims, mapping, print_line)
    if labels:
        said = list_annotator_judgements(read_annotations(*labels, claims=table))
        table = relabel_claims_by_annotations(table, said, rule)
    written = write_sealed_split(table, out, parts, seed)
    rows = []
    for name in SPLITS:
        mine = table[(written["split"] == name).to_numpy()]
        row = {"split": name, "n_claims": len(mine), "n_documents": int(mine["doc_id"].fillna(mine["doc"]).nunique())}
        row |= {"n_labelled": int(mine["label"].notna().sum()), "n_errors": int((mine["label"] == 0).sum())}
        rows.append(row)
        print_line(
            f"{name:<5} {len(mine):,} claims, {row['n_labelled']:,} labelled, {row['n_errors']:,} of them errors"
        )
    print_line(f"{out}; the test's labels are sealed in {find_seal_folder(out)}")
    print_json_output({"out": out, "sealed": find_seal_folder(out), "splits": rows})


def _parse_shares_option(shares_text: str) -> list[float]:
    try:
        found = [float(one) for one in shares_text.split("/")]
    except ValueError:
        found = []
    if len(found) != 3 or min(found) <= 0:
        raise UsageError(f"--shares: expected three numbers like 20/40/40, found {shares_text!r}")
    return [one / sum(found) for one in found]


sample_command.add_mode("--plan", sample_plan_command)
sample_command.add_mode("--split", sample_split_command)

COMMANDS = (sample_command,)
