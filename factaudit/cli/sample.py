"""``sample``: which claims should be labelled?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli import options
from factaudit.cli.output import Outcome, verb
from factaudit.cli.terminal import print_line
from factaudit.errors import UsageError
from factaudit.text.display_text import format_count

if TYPE_CHECKING:
    from factaudit.tables.column_mapping import ColumnMapping


@verb(
    "sample",
    short_help="Choose which claims to label.",
    example=(
        "factaudit sample claims.parquet verdicts.parquet --budget 200 --out sample.parquet --page"
        " labels.html"
    ),
)
@options.CLAIMS_ARGUMENT
@options.VERDICTS_ARGUMENT
@click.option("--out", type=options.PATH_TYPE, required=True, help="The sample to write: .parquet.")
@click.option(
    "--budget",
    type=click.IntRange(1),
    help="How many claims (or responses, with --level response) you can label, over all data sets.",
)
@click.option(
    "--then",
    type=options.PATH_TYPE,
    metavar="SAMPLE",
    help="Draw the second phase of this sample, using the labels of the first.",
)
@click.option(
    "--more", type=click.IntRange(1), help="With --then: add this many labels to the budget."
)
@options.LABEL_FILES_OPTION
@options.add_mapping_options
@options.LABEL_RULE_OPTION
@options.MAIN_EVALUATOR_OPTION
@options.STRATA_OPTION
@options.LEVEL_OPTION
@click.option("--one-phase", is_flag=True, help="Draw the whole sample now, in one phase.")
@click.option(
    "--at-random",
    is_flag=True,
    help=(
        "Give each claim of a data set the same chance of being drawn, in one phase. Use this for"
        " `factaudit triage`."
    ),
)
@click.option(
    "--annotators",
    type=click.IntRange(1, 99),
    default=1,
    show_default=True,
    help="The number of annotators. Each gets a part of the claims and a page of their own.",
)
@click.option(
    "--overlap",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="The share of the claims that all annotators label, for example 0.2.",
)
@click.option(
    "--page",
    type=options.PATH_TYPE,
    help="Also write a web page (.html) for labelling, one for each annotator.",
)
@options.SEED_OPTION
def sample_command(
    claims: Path,
    verdicts: tuple[Path, ...],
    out: Path,
    budget: int | None,
    then: Path | None,
    more: int | None,
    label_files: Sequence[Path],
    rule: str,
    main: str | None,
    one_phase: bool,
    at_random: bool,
    page: Path | None,
    seed: int,
    mapping: ColumnMapping,
    **design: Any,
) -> Outcome:
    """Draw claims to label, with higher chances for those whose labels say most about error rates.

    The sample file records how the claims were drawn. Give it to `factaudit estimate` after
    labelling. If the budget is at least 100 labels per data set and 8 per system, the sample has
    two phases: label the first one, then draw the second one with --then SAMPLE --label-file
    LABELS. With --one-phase there is only one.
    """
    from factaudit.datasets.input_tables import load_judged_input_claims
    from factaudit.estimate.rates import join_claims, order_evaluators
    from factaudit.estimate.sample import draw_next_phase, draw_sample, read_sample
    from factaudit.files import check_outputs
    from factaudit.tables.schema import is_text_placeholder

    if (budget is None) == (then is None):
        raise UsageError("expected --budget for a new sample, or --then for the next phase of one")
    if more is not None and then is None:
        raise UsageError("--more adds labels to a sample; name the sample with --then")
    check_outputs([claims, *verdicts, *label_files, then], out, page)
    table, judgements, said = load_judged_input_claims(
        [claims, *verdicts], mapping, print_line, label_files
    )
    annotations = said if label_files else None
    if page is not None and table["claim"].map(is_text_placeholder, na_action="ignore").all():
        raise UsageError(
            f"--page {page}: {claims} has no text to show on a page; name its column with --claim"
            " COLUMN, or draw the sample without --page"
        )
    if then is not None:
        before = read_sample(then)
        judged = join_claims(table, judgements, annotations, rule)
        drawn = draw_next_phase(before, judged, more or 0, seed, annotations, rule)
    elif budget is not None:
        judged = join_claims(table.assign(label=None), judgements)
        order = list(map(str, judgements["evaluator"].unique()))
        drawn = draw_sample(
            judged,
            order_evaluators(judged, order, main),
            budget,
            seed=seed,
            phases=1 if one_phase else 2,
            is_at_random=at_random,
            **design,
        )
    drawn.write(out)
    pages: list[Path] = []
    if page is not None:
        from factaudit.estimate.page import write_labelling_pages

        pages = write_labelling_pages(drawn, table, page, seed)
    plan = drawn.plan
    rows = drawn.rows[drawn.rows["phase"] == len(plan.drawn) - 1]
    left = sum(plan.count_remaining_labels(name) for name in plan.shares)
    lines = []
    for dataset, part in rows.groupby("dataset"):
        n_systems = part["system"].nunique()
        systems = f" of {format_count(n_systems, 'system')}" if n_systems else ", no systems,"
        strata = format_count(part["stratum"].nunique(), "stratum", "strata")
        n_drawn = format_count(plan.drawn[-1][str(dataset)], plan.level)
        lines.append(f"drawn     {n_drawn}{systems} in {strata} from {dataset}")
    lines.append(f"sample    {out}")
    lines += [f"next      open {path} in your browser and label the claims" for path in pages]
    if left:
        lines.append(
            f"next      label these claims, then draw the remaining {left:,} of {plan.budget:,}:"
            f" add --then {out.name}"
        )
    return Outcome(lines, {"out": out, "pages": pages, "drawn": plan.drawn[-1], "remaining": left})


COMMANDS = (sample_command,)
