"""Error rates from few labels: ``sample`` which (``--plan``: how many), ``labels`` together, ``estimate`` the rates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from factaudit.cli.claim_split import sample_split_command
from factaudit.cli.combination import estimate_combine_command
from factaudit.cli.correction import estimate_calibrate_command
from factaudit.cli.json_output import print_json_output
from factaudit.cli.label_plan import (
    CLAIMS_ARGUMENT,
    COVARIATES_OPTION,
    MAIN_EVALUATOR_OPTION,
    STRATA_OPTION,
    VERDICTS_ARGUMENT,
    parse_covariates_option,
    read_claims_for_label_plan_command,
    sample_plan_command,
)
from factaudit.cli.labels import labels_command
from factaudit.cli.options import (
    LABEL_RULE_OPTION,
    LEVEL_OPTION,
    PATH_TYPE,
    RUN_FOLDER_OPTION,
    SEED_OPTION,
    FlagSwitchedCommand,
    add_mapping_options,
    format_help_example,
)
from factaudit.cli.result_display import (
    RUN_JSON_KEYS,
    display_drawn_sample,
    display_estimated_rates,
    display_run_json,
)
from factaudit.cli.terminal import print_line
from factaudit.errors import UsageError
from factaudit.files import resolve_path

if TYPE_CHECKING:
    from factaudit.tables.column_mapping import ColumnMapping


@click.command(
    "estimate",
    cls=FlagSwitchedCommand,
    json_keys={
        **RUN_JSON_KEYS,
        "summary": "array: per dataset and level: which method to quote and why, how sure the order of systems is",
        "estimates": "array: per dataset, level, system and method: rate, rate_low, rate_high, n_labels, reason",
        "looks": "array: with --sequential, per dataset, level and look: n_labels, widest, best, stop (yes or no)",
    },
    short_help="Estimate systems' error rates from few labels.",
    epilog=format_help_example(
        "factaudit estimate claims.parquet verdicts.parquet --labels mine.csv --sample sample.parquet --out runs/rates"
    ),
)
@CLAIMS_ARGUMENT
@VERDICTS_ARGUMENT
@RUN_FOLDER_OPTION
@add_mapping_options
@click.option("--sample", type=PATH_TYPE, help="The file that the labels were drawn by.")
@MAIN_EVALUATOR_OPTION
@COVARIATES_OPTION
@STRATA_OPTION
@LABEL_RULE_OPTION
@click.option(
    "--method",
    "methods",
    multiple=True,
    help="Only these; ppi, ppi++, stratified-ppi, active and rogan-gladen are on demand.",
)
@click.option(
    "--level",
    "levels",
    multiple=True,
    type=click.Choice(["claim", "response"]),
    help="What rates are of.  [default: both]",
)
@click.option(
    "--target",
    type=click.Choice(["corpus", "population"]),
    default="corpus",
    show_default=True,
    help="These claims, or what their documents were drawn from.",
)
@click.option(
    "--undecided",
    type=click.Choice(["keep", "leave-out"]),
    default="keep",
    show_default=True,
    help="Claims labelled `?`: rates are of them too, with bounds, or of the others alone.",
)
@click.option(
    "--sequential",
    is_flag=True,
    help="Also intervals that hold at every look at the sample's phases, and when to stop.",
)
@click.option(
    "--width",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.1,
    show_default=True,
    help="With --sequential: labelling may stop when no interval is wider.",
)
@click.option("--transfer", is_flag=True, help="Rates also for systems without labels, with the test of whether to.")
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="How often the intervals hold the truth.",
)
@SEED_OPTION
def estimate_command(
    claims: Path,
    verdicts: tuple[Path, ...],
    out: Path,
    labels: Sequence[Path],
    sample: Path | None,
    main: str | None,
    covariates: Sequence[str],
    strata: Sequence[str],
    rule: str,
    methods: Sequence[str],
    levels: Sequence[str],
    target: str,
    undecided: str,
    sequential: bool,
    width: float,
    transfer: bool,
    confidence: float,
    seed: int,
    mapping: ColumnMapping,
) -> None:
    """Estimate each system's error rate from few labels and the scores of evaluators on all claims.

    Five ways side by side, three of them with intervals; the report says which to quote. `factaudit run YAML --dry-run`
    says what the calls of an experiment cost.
    """
    from factaudit.cli.label_looks import (
        count_drawn_sample_phases,
        display_label_looks,
        display_repeated_look_warning,
        read_former_label_counts,
    )
    from factaudit.estimate.estimate_settings import EstimateSettings
    from factaudit.experiment import Experiment
    from factaudit.experiment import run as run_experiment

    if claims.suffix in (".yaml", ".yml"):
        raise UsageError(
            f"{claims}: `factaudit run {claims} --dry-run` says what it will cost; this estimates error rates"
        )
    given = {
        "labels": [str(resolve_path(path)) for path in labels],
        "sample": None if sample is None else str(resolve_path(sample)),
        "rule": rule,
        "main": main,
        "covariates": parse_covariates_option(covariates),
        "target": target,
        "undecided": undecided,
        "transfer": transfer,
        "sequential": sequential,
        "stop_width": width,
    }
    chosen = {"methods": list(methods), "levels": list(levels), "strata": list(strata)}
    experiment = Experiment(
        title="Error rates from few labels",
        claims=[str(resolve_path(claims))],
        verdicts=[str(resolve_path(path)) for path in verdicts],
        mapping=mapping.model_dump(exclude_defaults=True, mode="json"),
        audits=[],
        seed=seed,
        confidence=confidence,
        estimate=EstimateSettings.model_validate({**given, **{key: value for key, value in chosen.items() if value}}),
    )
    former = read_former_label_counts(out)
    results = run_experiment(experiment, out, say=print_line)
    display_estimated_rates(results.audits)
    looks = results.audits.get("estimate_look_summary", [])
    display_label_looks(results.audits)
    if not sequential:
        n_phases = 1 if sample is None else count_drawn_sample_phases(sample)
        display_repeated_look_warning(results.audits["estimate_summary"], former, n_phases)
    display_run_json(
        results,
        out,
        summary=results.audits["estimate_summary"],
        estimates=results.audits["estimates"],
        looks=looks,
    )


@click.command(
    "sample",
    cls=FlagSwitchedCommand,
    json_keys={
        "out": "string: the sample",
        "pages": "array: pages to label on",
        "drawn": "object: per dataset, the claims (or responses) to label now",
        "remaining": "integer: labels of the budget that the next phase draws",
    },
    short_help="Draw the claims to label.",
    epilog=format_help_example(
        "factaudit sample claims.parquet verdicts.parquet --budget 200 --out sample.parquet --page label.html"
    ),
)
@CLAIMS_ARGUMENT
@VERDICTS_ARGUMENT
@click.option("--out", type=PATH_TYPE, required=True, help="The sample: .parquet.")
@click.option("--budget", type=click.IntRange(1), help="Labels in all, over all datasets.")
@click.option(
    "--then", type=PATH_TYPE, metavar="SAMPLE", help="Draw the next phase of this sample, by the labels so far."
)
@click.option("--more", type=click.IntRange(1), help="With --then: so many labels on top of its budget.")
@add_mapping_options
@LABEL_RULE_OPTION
@MAIN_EVALUATOR_OPTION
@COVARIATES_OPTION
@STRATA_OPTION
@LEVEL_OPTION
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
@click.option("--page", type=PATH_TYPE, help="Also write the page to label on: .html, one for each annotator.")
@SEED_OPTION
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
    covariates: Sequence[str],
    strata: Sequence[str],
    level: str,
    one_phase: bool,
    same_documents: bool,
    at_random: bool,
    annotators: int,
    overlap: str,
    page: Path | None,
    seed: int,
    mapping: ColumnMapping,
) -> None:
    """Draw the claims that labels tell most of, and keep in the file how: `factaudit estimate` needs to know.

    From 100 labels a dataset and 8 a system on a sample has two phases: label the first, then draw the second with
    --then SAMPLE --labels LABELS.
    """
    from factaudit.estimate.label_sample import draw_label_sample, draw_next_sample_phase, read_sample
    from factaudit.estimate.rate_estimation import choose_estimation_covariates, join_claims_for_estimation
    from factaudit.files import check_outputs_do_not_replace_inputs
    from factaudit.tables.schema import is_text_placeholder

    if (budget is None) == (then is None):
        raise UsageError("expected --budget for a new sample, or --then for the next phase of one")
    if at_random and same_documents:
        raise UsageError("expected --at-random or --same-documents, not both")
    if more is not None and then is None:
        raise UsageError("--more extends a sample: name it with --then")
    check_outputs_do_not_replace_inputs([claims, *verdicts, *labels, *([then] if then else [])], out, page)
    table, judgements, annotations = read_claims_for_label_plan_command([claims, *verdicts], labels, mapping)
    if page is not None and table["claim"].map(is_text_placeholder, na_action="ignore").all():
        raise UsageError(
            f"--page {page}: {claims} has no text to show on a page; name its column with --map claim=COLUMN, or draw "
            "the sample without --page"
        )
    if then is not None:
        before = read_sample(then)
        judged = join_claims_for_estimation(table, judgements, annotations, rule)
        drawn = draw_next_sample_phase(before, judged, more, seed, annotations, rule)
    elif budget is not None:
        judged = join_claims_for_estimation(table.assign(label=None), judgements)
        drawn = draw_label_sample(
            judged,
            choose_estimation_covariates(judged, judgements, main, parse_covariates_option(covariates)),
            budget,
            level=level,
            strata=strata,
            seed=seed,
            phases=1 if one_phase else 2,
            annotators=annotators,
            overlap=_parse_overlap_option(overlap),
            same_documents=same_documents,
            is_at_random=at_random,
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


sample_command.add_mode("--plan", sample_plan_command)
sample_command.add_mode("--split", sample_split_command)
estimate_command.add_mode("--calibrate", estimate_calibrate_command)
estimate_command.add_mode("--combine", estimate_combine_command)
COMMANDS = (sample_command, labels_command, estimate_command)
