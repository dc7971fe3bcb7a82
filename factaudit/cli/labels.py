"""``labels``: how far do annotators agree, and which label does each claim get?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli import options
from factaudit.cli.output import Outcome, verb
from factaudit.cli.terminal import print_line
from factaudit.errors import UsageError
from factaudit.text.display_text import format_count

if TYPE_CHECKING:
    import pandas as pd

    from factaudit.tables.column_mapping import ColumnMapping


@verb(
    "labels",
    short_help="Merge the labels of several annotators and measure their agreement.",
    example=(
        "factaudit labels ann.csv ben.csv --claims claims.parquet --out labels.parquet --page"
        " disagree.html"
    ),
)
@click.argument("annotations", type=options.PATH_TYPE, nargs=-1, required=True)
@click.option(
    "--out",
    type=options.PATH_TYPE,
    required=True,
    help="The file of merged annotations to write: .parquet, .jsonl[.gz] or .csv[.gz].",
)
@click.option(
    "--claims",
    type=options.PATH_TYPE,
    help=(
        "The file of the claims that were annotated. Annotations of other claims are listed in the"
        " output. --page needs this file."
    ),
)
@options.LABEL_RULE_OPTION
@options.add_mapping_options
@click.option(
    "--grade",
    "grades",
    multiple=True,
    metavar="WORD=LABEL",
    help=(
        "Which label a grade becomes: 1, 0 or nothing, for example partially=0, or unsure= (no"
        " label)."
    ),
)
@click.option(
    "--page",
    type=options.PATH_TYPE,
    help="Also write a page (.html) for deciding the claims on which annotators disagree.",
)
@options.SEED_OPTION
def labels_command(
    annotations: tuple[Path, ...],
    out: Path,
    claims: Path | None,
    rule: str,
    grades: Sequence[str],
    page: Path | None,
    seed: int,
    mapping: ColumnMapping,
) -> Outcome:
    """Merge the files of several annotators, measure how well they agree, and make one label per
    claim by a rule."""
    from factaudit.datasets.input_tables import load_input_annotations
    from factaudit.estimate.label_agreement import compute_label_agreement, find_disputed_claims
    from factaudit.files import check_outputs
    from factaudit.tables import parse_table_suffix, write_table
    from factaudit.tables.annotations import (
        find_undecided_claims,
        label_claims_by_annotations,
        list_annotator_judgements,
    )

    parse_table_suffix(out)
    check_outputs([*annotations, claims], out, page)
    if page is not None and claims is None:
        raise UsageError("--page needs the claims that it shows; name their file with --claims")
    grade_labels = _parse_grade_options(grades)
    table, together = load_input_annotations(annotations, claims, mapping, print_line)
    judged = list_annotator_judgements(together, grade_labels)
    made = label_claims_by_annotations(rule, judged)
    write_table(together, out)
    split = find_disputed_claims(judged)
    rows = compute_label_agreement(judged, table)
    reasons = find_undecided_claims(rule, together, made)
    undecided = {str(reason): int(n) for reason, n in reasons.value_counts().items()}
    lines = [*_describe_agreement(rows, made, rule, len(split), undecided), str(out)]
    if page is not None and table is not None and len(split):
        from factaudit.estimate.page import write_labelling_page

        write_labelling_page(table[table["claim_id"].isin(split)], page, "adjudicator", seed)
        lines.append(str(page))
    elif page is not None:
        page = None
        lines.append("no disagreement: no page to write")
    told = {
        "agreement": rows,
        "rule": rule,
        "labels": _count_labels(made),
        "undecided": undecided,
        "disagreements": list(split),
    }
    return Outcome(lines, {"out": out, "page": page, **told})


def _count_labels(labels: pd.Series) -> dict[str, int]:
    counts = {"attributable": labels == 1, "unattributable": labels == 0, "without": labels.isna()}
    return {name: int(which.sum()) for name, which in counts.items()}


def _describe_agreement(
    agreement_rows: Sequence[dict[str, Any]],
    labels: pd.Series,
    rule: str,
    n_disagreements: int,
    undecided_reasons: Mapping[str, int],
) -> Iterator[str]:
    """The agreement of the annotators, and how many labels the rule makes, as lines."""
    for row in agreement_rows:
        who = (
            "all annotators"
            if row["annotator_a"] == "__all__"
            else f"{row['annotator_a']} and {row['annotator_b']}"
        )
        told = [
            f"{name} {_format_displayed_agreement(row, key)}"
            for key, name in _AGREEMENT_FIGURES
            if row[key] is not None
        ]
        yield f"{who}, {row['n']:,} claims: {', '.join(told) or row['reason']}"
    yield f"labels by {rule}: " + ", ".join(
        f"{number:,} {name}" for name, number in _count_labels(labels).items()
    )
    if undecided_reasons:
        reasons = ", ".join(
            f"{reason} {n:,}" for reason, n in undecided_reasons.items() if reason != "?"
        )
        yield (
            f"{format_count(sum(undecided_reasons.values()), 'claim')} undecided"
            + f": {reasons}" * bool(reasons)
        )
    if n_disagreements:
        yield (
            f"{format_count(n_disagreements, 'claim')} {'has' if n_disagreements == 1 else 'have'}"
            " both labels"
        )


_AGREEMENT_FIGURES = (("percent", "agreement"), ("kappa", "κ"), ("alpha", "α"))


def _format_displayed_agreement(agreement_row: Mapping[str, Any], figure: str) -> str:
    form = "{:.1%}" if figure == "percent" else "{:.2f}"
    text = form.format(agreement_row[figure])
    low, high = agreement_row[f"{figure}_low"], agreement_row[f"{figure}_high"]
    return text if low is None else f"{text} ({form.format(low)} to {form.format(high)})"


def _parse_grade_options(grade_texts: Sequence[str]) -> dict[str, int | None] | None:
    found: dict[str, int | None] = {}
    for text in grade_texts:
        name, equals, value = text.rpartition("=")
        if not equals or value not in ("1", "0", ""):
            raise UsageError(f"expected GRADE=1, GRADE=0 or GRADE= (no label), found {text!r}")
        found[name] = int(value) if value else None
    return found or None


COMMANDS = (labels_command,)
