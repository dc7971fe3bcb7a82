"""``triage``: which claims can pass without review, and which should a person see first?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli import options
from factaudit.cli.output import Outcome, verb
from factaudit.cli.terminal import print_line
from factaudit.text.display_text import format_count

if TYPE_CHECKING:
    import pandas as pd

    from factaudit.estimate.triage import TriageResults
    from factaudit.tables.column_mapping import ColumnMapping

#: How many claims the review page holds: the first ones of the queue. More would make it slow to
#: open.
MAX_PAGE_CLAIMS = 500
_SHARE_TYPE = click.FloatRange(0, 1, min_open=True, max_open=True)


@verb(
    "triage",
    short_help="Choose which claims can pass without review.",
    example=(
        "factaudit triage claims.parquet verdicts.parquet --label-file mine.csv --max-error 0.05"
        " --out triage"
    ),
)
@options.CLAIMS_ARGUMENT
@options.VERDICTS_ARGUMENT
@click.option("--out", type=options.PATH_TYPE, required=True, help="The folder to write.")
@click.option(
    "--max-error",
    type=_SHARE_TYPE,
    default=0.05,
    show_default=True,
    help="Guarantee that at most this share of the passing claims are errors.",
)
@click.option(
    "--confidence",
    type=_SHARE_TYPE,
    default=0.9,
    show_default=True,
    help="The probability with which the guarantee must hold.",
)
@click.option(
    "--target",
    type=click.Choice(["corpus", "population"]),
    default="corpus",
    show_default=True,
    help=(
        "Give the guarantee for the claims in your files (corpus), or also for new claims about new"
        " documents (population)."
    ),
)
@options.SAMPLE_OPTION
@options.LABEL_RULE_OPTION
@options.LABEL_FILES_OPTION
@options.add_mapping_options
@options.SEED_OPTION
def triage_command(
    claims: Path,
    verdicts: tuple[Path, ...],
    out: Path,
    sample: Path | None,
    label_files: Sequence[Path],
    seed: int,
    mapping: ColumnMapping,
    **promise: Any,
) -> Outcome:
    """Choose claims that can pass without review, with a guaranteed limit on the share of errors
    among them.

    Claims pass if the score of an evaluator, or of several combined, is above a threshold. The
    labels of a random sample (`factaudit sample --at-random`) show which threshold keeps the
    guarantee. All other claims are written as a queue for review, the most probable errors first.
    """
    from factaudit.datasets.input_tables import load_judged_input_claims
    from factaudit.estimate.sample import read_sample
    from factaudit.estimate.triage import triage_claims
    from factaudit.files import check_outputs

    files = {name: out / f"{name}.{suffix}" for name, suffix in _FILES.items()}
    check_outputs([claims, *verdicts, *label_files, sample], *files.values())
    table, judged, annotations = load_judged_input_claims(
        [claims, *verdicts], mapping, print_line, label_files
    )
    results = triage_claims(
        table,
        judged,
        annotations=annotations,
        sample=None if sample is None else read_sample(sample),
        seed=seed,
        **promise,
    )
    has_page = _write_triage(results, out, files)
    lines = [f"promise   {results.rule['promise']['statement']}"]
    if len(results.rule["weights"]) > 1:
        weights = ", ".join(
            f"{name} {weight:.2f}" for name, weight in results.rule["weights"].items()
        )
        lines.append(f"weights   of the evaluators in the combined score: {weights}")
    if sample is None:
        lines.append(
            "labels    are assumed to be a random sample; if `factaudit sample` drew them, name its"
            " file with --sample"
        )
    if annotations is not None:
        lines += _describe_undecided_claims(results.queue, annotations, promise["rule"])
    decisions = results.queue["decision"].value_counts()
    known = f" ({decisions['labelled']:,} are labelled already)" if "labelled" in decisions else ""
    n_review = format_count(int(decisions.get("review", 0)), "claim")
    lines.append(f"review    {n_review}{known}, the most probable errors first: {files['queue']}")
    if has_page:
        lines.append(f"page      {files['review']}, to review them in your browser")
    bound = " (for these claims only; --target population makes one for new claims)"
    lines.append(f"rule      {files['rule']}{bound * (promise['target'] == 'corpus')}")
    document = {
        "promise": results.rule["promise"],
        "rule": files["rule"],
        "queue": files["queue"],
        "page": files["review"] if has_page else None,
    }
    return Outcome(lines, document)


def _describe_undecided_claims(
    queue: pd.DataFrame, annotations: pd.DataFrame, rule: str
) -> list[str]:
    from factaudit.tables.annotations import (
        find_undecided_claims,
        label_claims_by_annotations,
        list_annotator_judgements,
    )

    labels = label_claims_by_annotations(rule, list_annotator_judgements(annotations))
    undecided = queue[
        queue["claim_id"].isin(find_undecided_claims(rule, annotations, labels).index)
    ]
    if undecided.empty:
        return []
    n_passing = int((undecided["decision"] == "pass").sum())
    claims = format_count(len(undecided), "claim")
    return [
        f"undecided {claims}, treated as unlabelled because the annotators could not decide;"
        f" {n_passing:,} of them pass"
    ]


#: The files that a triage writes.
_FILES = {"rule": "json", "queue": "csv", "review": "html"}


def _write_triage(results: TriageResults, out: Path, files: Mapping[str, Path]) -> bool:
    """Write the results of a triage. Returns whether there is a review page; claims without text
    have none."""
    from factaudit.estimate.page import render_labelling_page
    from factaudit.files import hold_folder_lock, write_json, write_text
    from factaudit.tables import write_table
    from factaudit.tables.schema import is_text_placeholder

    with hold_folder_lock(out / ".work", str(out)):
        write_json(files["rule"], results.rule)
        write_table(results.queue.drop(columns="doc"), files["queue"])
        review = results.queue[results.queue["decision"] == "review"].head(MAX_PAGE_CLAIMS)
        texts = review["claim"]
        if review.empty or texts.isna().any() or texts.map(is_text_placeholder).any():
            # the page of an earlier triage shows other claims
            files["review"].unlink(missing_ok=True)
            return False
        write_text(files["review"], render_labelling_page(review, "reviewer", "review"))
        return True


COMMANDS = (triage_command,)
