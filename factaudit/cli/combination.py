"""An ensemble learned from labels: ``estimate --combine``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from factaudit.cli.json_output import JsonOutputCommand, print_json_output
from factaudit.cli.options import (
    LABEL_RULE_OPTION,
    PATH_TYPE,
    SEED_OPTION,
    add_mapping_options,
    format_help_example,
)
from factaudit.cli.terminal import print_line

if TYPE_CHECKING:
    from factaudit.tables.column_mapping import ColumnMapping


@click.command(
    "estimate --combine",
    cls=JsonOutputCommand,
    json_keys={
        "rows": "array: of ensemble, best member (chosen inside the folds) and each member: bacc, tpr, tnr on claims"
        " left out, n, threshold; of the ensemble gain, gain_low, gain_high",
        "statement": "string: whether to use the ensemble",
        "out": "string: the ensemble, a file that `judge` applies",
    },
    short_help="Learn an ensemble of evaluators from labels.",
    epilog=format_help_example(
        "factaudit estimate --combine claims.parquet verdicts.parquet --labels mine.csv --out ensemble.json"
    ),
)
@click.argument("claims", type=PATH_TYPE)
@click.argument("verdicts", type=PATH_TYPE, nargs=-1)
@click.option("--evaluator", "evaluators", multiple=True, help="Only these.  [default: all]")
@click.option("--out", type=PATH_TYPE, required=True, help="The ensemble: a JSON file.")
@LABEL_RULE_OPTION
@add_mapping_options
@SEED_OPTION
def estimate_combine_command(
    claims: Path,
    verdicts: tuple[Path, ...],
    evaluators: Sequence[str],
    out: Path,
    labels: Sequence[Path],
    rule: str,
    seed: int,
    mapping: ColumnMapping,
) -> None:
    """Learn weights of evaluators' scores from labels, and compare the ensemble with its best member.

    Both are measured on documents that nothing was fitted or chosen on (nested cross-validation). The file is an
    evaluator: `judge CLAIMS --evaluator learned:rule=ensemble.json`.
    """
    from factaudit.estimate.learned_ensemble import learn_ensemble
    from factaudit.files import check_outputs_do_not_replace_inputs
    from factaudit.input_tables import load_judged_input_claims
    from factaudit.tables.annotations import read_annotations

    check_outputs_do_not_replace_inputs([claims, *verdicts, *labels], out)
    loaded = load_judged_input_claims([claims, *verdicts], mapping, print_line)
    annotations = read_annotations(*labels, claims=loaded.claims) if labels else loaded.annotations
    found = learn_ensemble(
        loaded.claims, loaded.verdicts, annotations=annotations, rule=rule, evaluators=evaluators, seed=seed
    )
    found.rule.write(out)
    width = max(len(row["evaluator"]) for row in found.rows)
    print_line(f"{'':{width}}  balanced acc.    TPR    TNR   (%, on documents left out)")
    for row in found.rows:
        print_line(
            f"{row['evaluator']:{width}}  {100 * row['bacc']:13.1f}  {100 * row['tpr']:5.1f}  {100 * row['tnr']:5.1f}"
        )
    slopes = found.rule.odds.slopes
    print_line(f"weights of standardised scores: {', '.join(f'{name} {one:.2f}' for name, one in slopes.items())}")
    print_line(found.statement)
    print_line(str(out))
    print_json_output({"rows": found.rows, "statement": found.statement, "out": out})
