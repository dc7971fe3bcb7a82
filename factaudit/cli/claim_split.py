"""Train, dev and a sealed test, for the development of a judge: ``sample --split``."""

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
from factaudit.errors import UsageError

if TYPE_CHECKING:
    from factaudit.tables.column_mapping import ColumnMapping


@click.command(
    "sample --split",
    cls=JsonOutputCommand,
    json_keys={
        "out": "string: the claims with their splits; those of the test have no label",
        "sealed": "string: the folder with the test's labels and the ledger of its openings",
        "splits": "array: per split: n_claims, n_documents, n_errors, n_labelled; of the test, what was sealed",
    },
    short_help="Split labelled claims into train, dev and a sealed test.",
    epilog=format_help_example("factaudit sample labelled.parquet --split --out split.parquet"),
)
@click.argument("claims", type=PATH_TYPE)
@click.option("--out", type=PATH_TYPE, required=True, help="The claims with their splits: .parquet.")
@click.option("--shares", default="20/40/40", show_default=True, metavar="TRAIN/DEV/TEST", help="Of the claims.")
@add_mapping_options
@LABEL_RULE_OPTION
@SEED_OPTION
def sample_split_command(
    claims: Path, out: Path, shares: str, labels: Sequence[Path], rule: str, seed: int, mapping: ColumnMapping
) -> None:
    """Split labelled claims into train, dev and test, whole documents together, and seal the labels of the test.

    Take examples for a prompt from train, audit on dev as often as you like (`audit --split dev`), and open
    the test once (`--open-test`): each time is written down, and widens what the report claims.
    """
    from factaudit.estimate.sealed_split import SPLITS, find_seal_folder, write_sealed_split
    from factaudit.files import check_outputs_do_not_replace_inputs
    from factaudit.input_tables import load_input_tables
    from factaudit.tables.annotations import (
        list_annotator_judgements,
        read_annotations,
        relabel_claims_by_annotations,
    )

    if out.suffix.lower() != ".parquet":
        raise UsageError(f"{out}: expected a name that ends in .parquet")
    parts = _parse_shares_option(shares)
    check_outputs_do_not_replace_inputs([claims, *labels], out)
    table = load_input_tables([claims], mapping, print_line).claims
    if table is None:
        raise UsageError(f"{claims}: no claims in it; `factaudit inspect {claims}` shows what it holds")
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
