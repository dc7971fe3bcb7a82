"""Single verdicts: ``triage``, which claims pass without review and which a person should see first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from factaudit.text.display_text import format_count

if TYPE_CHECKING:
    import pandas as pd

    from factaudit.estimate.cascade import CascadeResults
    from factaudit.estimate.triage import TriageResults
    from factaudit.tables.column_mapping import ColumnMapping

#: Claims on the page to review on: the first of the queue. More make it slow to open.
MAX_PAGE_CLAIMS = 500
_SHARE_TYPE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command(
    "triage",
    cls=JsonOutputCommand,
    json_keys={
        "promises": "array: per group (all claims, a dataset or a system): n_passing, n_known_errors"
        " (labelled, do not pass), share_passing, statement",
        "rule": "string: the rule, a file that `judge` and Python apply to new claims",
        "queue": "string: a row per claim, those to review first",
        "curve": "string: errors that pass by the share that passes, a row per threshold",
        "figure": "string: the curve",
        "page": "string or null: the first claims of the queue, to label; null where claims have no text",
        "ways": "array: with --then: the first judges alone (first), the cascade, and the second judge of all claims"
        " (second): n_asked, cost in US dollars, n_passing, n_review, minutes of people; else empty",
    },
    short_help="Say which claims pass without review.",
    epilog=format_help_example(
        "factaudit triage claims.parquet verdicts.parquet --labels mine.csv --max-error 0.05 --out triage"
    ),
)
@click.argument("claims", type=PATH_TYPE)
@click.argument("verdicts", type=PATH_TYPE, nargs=-1)
@click.option("--out", type=PATH_TYPE, required=True, help="The folder to write into.")
@click.option(
    "--max-error",
    type=_SHARE_TYPE,
    help="At most this share of what passes are errors.  [default: 0.05, without --min-recall]",
)
@click.option("--min-recall", type=_SHARE_TYPE, help="At least this share of all errors are among what is reviewed.")
@click.option("--confidence", type=_SHARE_TYPE, default=0.9, show_default=True, help="How often the promise holds.")
@click.option(
    "--evaluator", "evaluators", multiple=True, help="Whose scores decide; several are combined.  [default: all]"
)
@click.option(
    "--by",
    type=click.Choice(["all", "dataset", "system"]),
    default="all",
    show_default=True,
    help="One promise over all claims, or one for each.",
)
@click.option(
    "--target",
    type=click.Choice(["corpus", "population"]),
    default="corpus",
    show_default=True,
    help="Promised of these claims, or of further ones on new documents.",
)
@click.option("--sample", type=PATH_TYPE, help="The file that the labels were drawn by.")
@click.option(
    "--then",
    metavar="EVALUATOR",
    help="A second judge, asked where the others are unsure: of the verdicts, or asked now of the labelled claims.",
)
@click.option(
    "--call-cost",
    type=click.FloatRange(0),
    help="US dollars that --then costs a claim.  [default: by the prices of its model]",
)
@LABEL_RULE_OPTION
@add_mapping_options
@SEED_OPTION
def triage_command(
    claims: Path,
    verdicts: tuple[Path, ...],
    out: Path,
    max_error: float | None,
    min_recall: float | None,
    confidence: float,
    evaluators: Sequence[str],
    by: str,
    target: str,
    sample: Path | None,
    then: str | None,
    call_cost: float | None,
    labels: Sequence[Path],
    rule: str,
    seed: int,
    mapping: ColumnMapping,
) -> None:
    """Choose claims that pass without review, with a promise of how few errors pass, and queue the others.

    Labels of a random draw, or of `factaudit sample`, certify a threshold on an evaluator's score, or on a combination
    of several that is fitted to the labels.
    """
    from factaudit.cli.cascade import certify_cascade_for_command, display_cascade_beside_single_judges
    from factaudit.estimate.cascade import CascadeResults
    from factaudit.estimate.label_sample import read_sample
    from factaudit.estimate.triage import triage_claims
    from factaudit.evaluators.triage_rule import TriageRule
    from factaudit.files import check_outputs_do_not_replace_inputs
    from factaudit.input_tables import load_judged_input_claims
    from factaudit.tables.annotations import read_annotations

    if then is None and call_cost is not None:
        raise UsageError("--call-cost is of the second judge: name it with --then")
    if then is not None and by != "all":
        raise UsageError(f"--by {by}: a cascade makes one promise over all claims")

    inputs = [claims, *verdicts, *labels, *([sample] if sample else [])]
    check_outputs_do_not_replace_inputs(inputs, *(out / name for name in _TRIAGE_FILES))
    loaded = load_judged_input_claims([claims, *verdicts], mapping, print_line)
    annotations = read_annotations(*labels, claims=loaded.claims) if labels else loaded.annotations
    given: dict[str, Any] = {
        "annotations": annotations,
        "sample": None if sample is None else read_sample(sample),
        "rule": rule,
        "max_error": 0.05 if max_error is None and min_recall is None else max_error,
        "min_recall": min_recall,
        "confidence": confidence,
        "evaluators": evaluators,
        "target": target,
    }
    if then is None:
        results: TriageResults | CascadeResults = triage_claims(
            loaded.claims, loaded.verdicts, **given, by=by, seed=seed
        )
        ways: list[Any] = []
    else:
        results, how_priced = certify_cascade_for_command(loaded.claims, loaded.verdicts, then, call_cost, out, given)
        ways = results.ways
    page = write_triage_command_folder(results, out, max_error=given["max_error"])
    for row in results.promises:
        print_line(row["statement"])
    if isinstance(results, CascadeResults):
        display_cascade_beside_single_judges(results, how_priced)
    if isinstance(results.rule, TriageRule) and len(results.rule.weights) > 1:
        weights = ", ".join(f"{name} {weight:.2f}" for name, weight in results.rule.weights.items())
        print_line(f"combined by weights: {weights}")
    if sample is None:
        print_line("the labels are taken as drawn at random: name the file of `factaudit sample` with --sample")
    n_review = int((results.queue["decision"] == "review").sum())
    if n_ask := int((results.queue["decision"] == "ask").sum()):
        print_line(
            f"{n_ask:,} claims wait for {then}: `factaudit judge {claims} --evaluator cascade:rule={out / 'rule.json'}`"
        )
    labelled = results.queue[results.queue["decision"] == "labelled"]["passes"]
    kinds = [
        f"{n:,} that {verb}"
        for n, verb in ((int((labelled == 1).sum()), "pass"), (int((labelled == 0).sum()), "do not"))
        if n
    ]
    known = f" (labelled already: {' and '.join(kinds)})" if kinds else ""
    if annotations is not None:
        _display_undecided_triage_claims(results.queue, annotations, rule)
    to_open = f"{out / 'queue.csv'}{f', {page}' if page else ''}"
    print_line(f"to review {n_review:,} claims{known}, the riskiest first: {to_open}")
    print_line(f"rule {out / 'rule.json'}, curve {out / 'curve.svg'}")
    files = {"rule": "rule.json", "queue": "queue.csv", "curve": "curve.csv", "figure": "curve.svg"}
    print_json_output(
        {"promises": results.promises, **{key: out / name for key, name in files.items()}, "page": page, "ways": ways}
    )


def _display_undecided_triage_claims(queue: pd.DataFrame, annotations: pd.DataFrame, rule: str) -> None:
    from factaudit.tables.annotations import (
        find_undecided_claims,
        label_claims_by_annotations,
        list_annotator_judgements,
    )

    labels = label_claims_by_annotations(rule, list_annotator_judgements(annotations))
    undecided = queue[queue["claim_id"].isin(find_undecided_claims(rule, annotations, labels).index)]
    if len(undecided):
        n_passing = int((undecided["decision"] == "pass").sum())
        told = format_count(len(undecided), "claim") + " that people could not decide"
        print_line(f"{told} {'counts' if len(undecided) == 1 else 'count'} as unlabelled: {n_passing:,} pass")


_TRIAGE_FILES = ("rule.json", "then.parquet", "promises.json", "queue.csv", "curve.csv", "curve.svg", "review.html")


def write_triage_command_folder(
    results: TriageResults | CascadeResults, out: Path, max_error: float | None
) -> Path | None:
    """Write what a triage found; the page to review on, or None where the claims have no text."""
    import pandas as pd

    from factaudit.estimate.page import render_labelling_page
    from factaudit.files import hold_folder_lock, write_json, write_text
    from factaudit.report.plots.figure_files import write_report_figure_files
    from factaudit.report.plots.panel_layout import DrawnAuditFigure
    from factaudit.report.plots.triage_plot import draw_triage_curve
    from factaudit.tables import write_table
    from factaudit.tables.schema import is_text_placeholder

    with hold_folder_lock(out / ".work", str(out)):
        results.rule.write(out / "rule.json")
        write_json(out / "promises.json", results.promises)
        write_table(results.queue.drop(columns="doc"), out / "queue.csv")
        write_table(pd.DataFrame(results.curve), out / "curve.csv")
        drawn = DrawnAuditFigure(draw_triage_curve(results.curve, max_error))
        write_report_figure_files(drawn, out / "curve", "Errors among what passes without review")
        review = results.queue[results.queue["decision"] == "review"].head(MAX_PAGE_CLAIMS)
        texts = review["claim"]
        page = out / "review.html"
        if not len(review) or texts.isna().any() or texts.map(is_text_placeholder).any():
            page.unlink(missing_ok=True)  # that of an earlier triage shows other claims
            return None
        write_text(page, render_labelling_page(review, "reviewer"))
        return page


COMMANDS = (triage_command,)
