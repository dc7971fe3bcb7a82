"""``perturb``: what do claims look like after one change by a rule?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from factaudit.cli.options import CLAIMS_ARGUMENT, PATH_TYPE, SEED_OPTION, add_mapping_options
from factaudit.cli.output import Outcome, verb
from factaudit.cli.terminal import print_line

if TYPE_CHECKING:
    from factaudit.tables.column_mapping import ColumnMapping


@verb(
    "perturb",
    short_help="Change one thing in each claim, to test whether verdicts change with the meaning.",
    example=(
        "factaudit perturb claims.jsonl --kinds number_changed,negation_added --out pairs.parquet"
    ),
)
@CLAIMS_ARGUMENT
@click.option(
    "--kinds",
    default="",
    metavar="KIND,...",
    help=(
        "Which kinds of variants to make: same (all that keep the meaning), changed (all that"
        " change it), or single kinds, for example number_changed.  [default: all]"
    ),
)
@click.option(
    "--per-kind",
    type=click.IntRange(1),
    help="Make at most this many variants of each kind in each data set.",
)
@click.option(
    "--out",
    type=PATH_TYPE,
    required=True,
    help="The file of claims to write: .parquet, .jsonl[.gz] or .csv[.gz].",
)
@SEED_OPTION
@add_mapping_options
def perturb_command(
    claims: Path, kinds: str, per_kind: int | None, out: Path, seed: int, mapping: ColumnMapping
) -> Outcome:
    """Write a file with your claims and variants of them. In each variant, a rule has changed
    either the wording or the meaning.

    Then judge and audit the file like any other: the audit `invariance` says how many verdicts
    stayed the same although the meaning changed, and how many verdicts changed although the meaning
    stayed the same. No language model is needed."""
    from factaudit.datasets.input_tables import load_input_claims
    from factaudit.files import check_outputs
    from factaudit.perturb.rule_list import PERTURBATION_RULES
    from factaudit.perturb.variants import add_claim_variants, select_claims_with_variants
    from factaudit.tables import parse_table_suffix, write_table
    from factaudit.text.display_text import format_count

    parse_table_suffix(out)
    check_outputs([claims], out)
    table = load_input_claims(claims, mapping, print_line)
    chosen = [kind.strip() for kind in kinds.split(",") if kind.strip()]
    pairs = select_claims_with_variants(add_claim_variants(table, chosen, per_kind, seed))
    write_table(pairs, out)
    variants = pairs[pairs["variant_of"].notna()]
    counts = variants["kind"].value_counts()
    rows = [
        {"kind": kind, "expected": rule.expected, "n_variants": int(counts[kind])}
        for kind, rule in PERTURBATION_RULES.items()
        if kind in counts
    ]
    lines = []
    for expected, heading in (("same", "the meaning stays"), ("changed", "the meaning changes")):
        found = [
            f"{row['n_variants']:,} {row['kind']}" for row in rows if row["expected"] == expected
        ]
        if found:
            lines.append(f"{heading}: {', '.join(found)}")
    n_claims = len(pairs) - len(variants)
    lines.append(
        f"{out}: {format_count(len(variants), 'variant')} of {n_claims:,} of"
        f" {format_count(len(table), 'claim')}"
    )
    return Outcome(
        lines, {"out": out, "n_claims": n_claims, "n_variants": len(variants), "kinds": rows}
    )


COMMANDS = (perturb_command,)
