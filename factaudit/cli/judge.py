"""``judge``: what do evaluators say of claims, and what will it cost?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from factaudit.cli.options import (
    CLAIMS_ARGUMENT,
    DRY_RUN_OPTION,
    PATH_TYPE,
    SPLIT_OPTION,
    add_mapping_options,
    check_out_is_given,
)
from factaudit.cli.outcomes import describe_cached_replies, make_cost_outcome
from factaudit.cli.output import Outcome, verb
from factaudit.cli.terminal import print_line
from factaudit.errors import FactauditError
from factaudit.text.display_text import put_on_one_line

if TYPE_CHECKING:
    import pandas as pd

    from factaudit.evaluators.judging import NamedEvaluator
    from factaudit.tables.column_mapping import ColumnMapping


@verb(
    "judge",
    short_help="Judge claims with evaluators.",
    example=(
        "factaudit judge claims.jsonl --evaluator rouge2 --evaluator random:seed=1 --out"
        " verdicts.parquet"
    ),
)
@CLAIMS_ARGUMENT
@click.option(
    "--evaluator",
    "evaluators",
    multiple=True,
    required=True,
    metavar="NAME[:key=value,...]",
    help=(
        "An evaluator to judge with; repeat the option for several. `factaudit list evaluators`"
        " shows them."
    ),
)
@SPLIT_OPTION
@click.option(
    "--repeats",
    type=click.IntRange(1),
    help="Judge each claim this many times, to see how stable the verdicts are.",
)
@click.option(
    "--out",
    type=PATH_TYPE,
    help="The file of verdicts to write: .parquet, .jsonl[.gz] or .csv[.gz].",
)
@click.option(
    "--on",
    metavar="ray[://HOST:PORT]",
    help=(
        "Judge on a Ray cluster (extra [ray]). Calls to language models are sent from this machine."
    ),
)
@DRY_RUN_OPTION
@add_mapping_options
def judge_command(
    claims: Path,
    evaluators: Sequence[str],
    split: str | None,
    repeats: int | None,
    out: Path | None,
    on: str | None,
    dry_run: bool,
    mapping: ColumnMapping,
) -> Outcome:
    """Judge claims with evaluators. If the command was interrupted, start it again: it continues
    where it stopped."""
    from factaudit.evaluators.judging import judge as judge_claims
    from factaudit.evaluators.judging import walk_evaluator_members
    from factaudit.evaluators.unscored_verdicts import format_unscored_verdicts
    from factaudit.files import delete_unheld_folder
    from factaudit.tables import parse_table_suffix, write_table

    if dry_run:
        from factaudit.evaluators.judging import estimate_evaluator_costs

        table, named = _read_claims_for_judge_command(claims, evaluators, split, repeats, mapping)
        return make_cost_outcome(estimate_evaluator_costs(named, table))
    out = check_out_is_given(out)
    parse_table_suffix(out)  # a wrong name is an error before the work, not after it
    table, named = _read_claims_for_judge_command(claims, evaluators, split, repeats, mapping, out)
    journal = out.parent / f".{out.name}.journal"
    verdicts = judge_claims(table, named, journal=journal, progress=True, on=on)
    write_table(verdicts, out)
    lines, judged = [], []
    for name, part in verdicts.groupby("evaluator", sort=False):
        counts = part["status"].value_counts()
        # Those without a prediction have a line of their own.
        scored = part["status"][part["prediction"].notna()].value_counts()
        told = (f", {n:,} {status}" for status, n in scored.items())
        lines.append(f"{name}: {len(part):,} verdicts{''.join(told)}")
        judged.append({"evaluator": name, "n_verdicts": len(part), "statuses": counts.to_dict()})
    lines += format_unscored_verdicts(verdicts, [*verdicts["evaluator"].unique()])
    members = [
        part
        for one in named
        for asked in one.evaluator_and_repeats
        for part, _ in walk_evaluator_members(asked)
    ]
    lines += describe_cached_replies(
        [part.usage.row() for part in members if hasattr(part, "usage")]
    )
    failed = int((verdicts["status"] == "error").sum())
    if not failed:
        delete_unheld_folder(journal)
    failure = None
    if not verdicts["prediction"].notna().any():
        said = verdicts["raw"].dropna()
        why = f": {put_on_one_line(str(said.iloc[0]))}" if len(said) else ""
        failure = FactauditError(f"no claim was scored{why}")
    return Outcome(
        [*lines, str(out)], {"out": out, "evaluators": judged, "n_errors": failed}, failure
    )


def _read_claims_for_judge_command(
    claims: Path,
    evaluators: Sequence[str],
    split: str | None,
    repeats: int | None,
    mapping: ColumnMapping,
    out: Path | None = None,
) -> tuple[pd.DataFrame, list[NamedEvaluator]]:
    from factaudit.datasets.input_tables import load_input_claims
    from factaudit.evaluators.judging import (
        check_unique_evaluator_names,
        make_named_evaluator,
    )
    from factaudit.experiment.inputs import select_claims_of_split
    from factaudit.files import check_outputs

    named = [make_named_evaluator(spec, repeats) for spec in evaluators]
    check_unique_evaluator_names(named)
    if out is not None:
        check_outputs([claims], out)
    table = load_input_claims(claims, mapping, print_line)
    return table if split is None else select_claims_of_split(table, split), named


COMMANDS = (judge_command,)
