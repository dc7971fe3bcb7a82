"""Error rates from few labels: ``plan`` how many, ``sample`` which, ``labels`` together, ``estimate`` the rates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from factaudit.cli.labels import labels
from factaudit.cli.options import PATH, RULE, RUN_FOLDER, SEED, example
from factaudit.cli.show import RUN, answer_run, show_estimates, show_plan, show_sample
from factaudit.cli.terminal import say
from factaudit.cli.verb import Verb, answer
from factaudit.errors import UsageError

_CLAIMS = click.argument("claims", type=PATH)
_VERDICTS = click.argument("verdicts", type=PATH, nargs=-1, required=True)
_LABELS = click.option("--labels", type=PATH, multiple=True, help="Annotations.  [default: the claims' own labels]")
_MAIN = click.option("--main", help="The evaluator that leads.  [default: the first of the verdicts]")
_COVARIATES = click.option(
    "--covariate", "covariates", multiple=True, help="Another evaluator to use; 'none' for none.  [default: all]"
)
_STRATA = click.option(
    "--strata", multiple=True, metavar="COLUMN", help="Columns of the claims that rates may differ by."
)
_LEVEL = click.option("--level", type=click.Choice(["claim", "response"]), default="claim", show_default=True)


@click.command(
    cls=Verb,
    gives={
        **RUN,
        "summary": "array: per dataset and level: which method to quote and why, how sure the order of systems is",
        "estimates": "array: per dataset, level, system and method: rate, rate_low, rate_high, n_labels, reason",
    },
    short_help="Estimate systems' error rates from few labels.",
    epilog=example(
        "factaudit estimate claims.parquet verdicts.parquet --labels mine.csv --sample sample.parquet --out runs/rates"
    ),
)
@_CLAIMS
@_VERDICTS
@RUN_FOLDER
@_LABELS
@click.option("--sample", type=PATH, help="The file that the labels were drawn by.")
@_MAIN
@_COVARIATES
@_STRATA
@RULE
@click.option("--method", "methods", multiple=True, help="Only these; ppi, ppi++ and rogan-gladen are on demand.")
@click.option("--level", "levels", multiple=True, type=click.Choice(["claim", "response"]), help="[default: both]")
@click.option(
    "--target",
    type=click.Choice(["corpus", "population"]),
    default="corpus",
    show_default=True,
    help="These claims, or what their documents were drawn from.",
)
@click.option("--transfer", is_flag=True, help="Rates also for systems without labels, with the test of whether to.")
@click.option(
    "--confidence", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95, show_default=True
)
@SEED
def estimate(
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
    transfer: bool,
    confidence: float,
    seed: int,
) -> None:
    """Estimate each system's error rate from few labels and the scores of evaluators on all claims.

    Four ways side by side, with intervals; which one to quote is said. The cost of an experiment is told by
    `factaudit cost`.
    """
    from factaudit.estimate.settings import EstimateSettings
    from factaudit.experiment import Experiment
    from factaudit.experiment import run as run_experiment

    if claims.suffix in (".yaml", ".yml"):
        raise UsageError(f"{claims}: `factaudit cost` says what an experiment will cost; this estimates error rates")
    given = {
        "labels": [str(path.resolve()) for path in labels],
        "sample": None if sample is None else str(sample.resolve()),
        "rule": rule,
        "main": main,
        "covariates": _covariates(covariates),
        "target": target,
        "transfer": transfer,
    }
    chosen = {"methods": list(methods), "levels": list(levels), "strata": list(strata)}
    experiment = Experiment(
        title="Error rates from few labels",
        claims=[str(claims.resolve())],
        verdicts=[str(path.resolve()) for path in verdicts],
        audits=[],
        seed=seed,
        confidence=confidence,
        estimate=EstimateSettings.model_validate({**given, **{key: value for key, value in chosen.items() if value}}),
    )
    results = run_experiment(experiment, out, say=say)
    show_estimates(results.audits)
    answer_run(results, out, summary=results.audits["estimate_summary"], estimates=results.audits["estimates"])


@click.command(
    cls=Verb,
    gives={
        "rows": "array: per dataset, method, system (__mean__: of all) and n_labels: width with _low and _high",
        "labels_for_width": "array: per dataset and method: the n_labels of the wanted width, with _low and _high; null"
        " where it takes more than planned for",
        "out": "string or null: the file of the rows",
        "figure": "string or null: the file of the figure",
    },
    short_help="Say how many labels an interval takes.",
    epilog=example(
        "factaudit plan claims.parquet verdicts.parquet --labels pilot.csv --sample pilot.parquet --width 0.1"
    ),
)
@_CLAIMS
@_VERDICTS
@_LABELS
@click.option("--sample", type=PATH, help="The file that the pilot's labels were drawn by.")
@click.option("--tpr", type=click.FloatRange(0, 1), help="Without a pilot: the main evaluator's TPR ...")
@click.option("--tnr", type=click.FloatRange(0, 1), help="... and its TNR.")
@_MAIN
@_COVARIATES
@_STRATA
@RULE
@_LEVEL
@click.option("--width", type=click.FloatRange(0, 1, min_open=True), default=0.1, show_default=True, help="To aim at.")
@click.option("--seconds-per-label", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True)
@click.option(
    "--budget", "budgets", type=click.IntRange(1), multiple=True, help="Labels to plan for.  [default: 50 to 800]"
)
@click.option("--out", type=PATH, help="Write the rows there: .csv, .jsonl or .parquet; a figure beside it.")
@SEED
def plan(
    claims: Path,
    verdicts: tuple[Path, ...],
    labels: Sequence[Path],
    sample: Path | None,
    tpr: float | None,
    tnr: float | None,
    main: str | None,
    covariates: Sequence[str],
    strata: Sequence[str],
    rule: str,
    level: str,
    width: float,
    seconds_per_label: float,
    budgets: Sequence[int],
    out: Path | None,
    seed: int,
) -> None:
    """Say how wide the intervals will be by the number of labels: from a pilot's labels, or from stated TPR and TNR."""
    import pandas as pd

    from factaudit.estimate.plan import BUDGETS, Stated, plan_rates, planned_labels
    from factaudit.estimate.sample import read_sample
    from factaudit.files import atomic, spare
    from factaudit.tables import read_claims, read_verdicts, suffix, write_table
    from factaudit.tables.annotations import read_annotations

    if (tpr is None) != (tnr is None):
        raise UsageError("expected both --tpr and --tnr, or neither")
    figure = None if out is None else out.with_suffix(".svg")
    if out is not None:
        suffix(out)
    spare([claims, *verdicts, *labels, *([sample] if sample else [])], out, figure)
    table = read_claims(claims)
    rows = plan_rates(
        table,
        read_verdicts(*verdicts, claims=table),
        annotations=read_annotations(*labels, claims=table) if labels else None,
        sample=None if sample is None else read_sample(sample),
        stated=None if tpr is None or tnr is None else Stated(tpr, tnr),
        rule=rule,
        main=main,
        covariates=_covariates(covariates),
        strata=strata,
        level=level,
        budgets=sorted(budgets) or BUDGETS,
        seconds_per_label=seconds_per_label,
        seed=seed,
    )
    if out is not None and figure is not None:
        from factaudit.report.plots.plan import draw_plan

        write_table(pd.DataFrame(rows), out)
        with atomic(figure) as temporary:
            draw_plan(rows, width).savefig(temporary)
        say(f"{out}, {figure}")
    show_plan(rows, width, seconds_per_label, piloted=tpr is None)
    answer({"rows": rows, "labels_for_width": planned_labels(rows, width), "out": out, "figure": figure})


@click.command(
    cls=Verb,
    gives={
        "out": "string: the sample",
        "pages": "array: pages to label on",
        "drawn": "object: per dataset, the claims (or responses) to label now",
        "remaining": "integer: labels of the budget that the next phase draws",
    },
    short_help="Draw the claims to label.",
    epilog=example(
        "factaudit sample claims.parquet verdicts.parquet --budget 200 --out sample.parquet --page label.html"
    ),
)
@_CLAIMS
@_VERDICTS
@click.option("--out", type=PATH, required=True, help="The sample: .parquet.")
@click.option("--budget", type=click.IntRange(1), help="Labels in all, over all datasets.")
@click.option("--then", type=PATH, metavar="SAMPLE", help="Draw the next phase of this sample, by the labels so far.")
@click.option("--more", type=click.IntRange(1), help="With --then: so many labels on top of its budget.")
@_LABELS
@RULE
@_MAIN
@_COVARIATES
@_STRATA
@_LEVEL
@click.option("--one-phase", is_flag=True, help="Draw the whole budget now.")
@click.option(
    "--same-documents", is_flag=True, help="The same documents for all systems: sharper differences, blunter rates."
)
@click.option("--annotators", type=click.IntRange(1, 99), default=1, show_default=True)
@click.option("--overlap", default="0%", show_default=True, metavar="SHARE", help="Labelled by all: 20% or 0.2.")
@click.option("--page", type=PATH, help="Also write the page to label on: .html, one for each annotator.")
@SEED
def sample(
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
    annotators: int,
    overlap: str,
    page: Path | None,
    seed: int,
) -> None:
    """Draw the claims that labels tell most of, and keep in the file how: `estimate` needs to know.

    From 100 labels and 8 a system on a sample has two phases: label the first, then draw the second with
    --then SAMPLE --labels LABELS.
    """
    from factaudit.estimate.run import chosen_evaluators, labelled
    from factaudit.estimate.sample import draw_again, draw_sample, read_sample
    from factaudit.files import spare
    from factaudit.tables import read_claims, read_verdicts
    from factaudit.tables.annotations import read_annotations

    if (budget is None) == (then is None):
        raise UsageError("expected --budget for a new sample, or --then for the next phase of one")
    if more is not None and then is None:
        raise UsageError("--more extends a sample: name it with --then")
    spare([claims, *verdicts, *labels, *([then] if then else [])], out, page)
    table = read_claims(claims)
    judgements = read_verdicts(*verdicts, claims=table)
    if then is not None:
        before = read_sample(then)
        judged = labelled(table, judgements, read_annotations(*labels, claims=table) if labels else None, rule)
        before.check_labels(judged.claims["claim_id"][judged.label >= 0])
        drawn = draw_again(before, judged, more, seed)
    elif budget is not None:
        judged = labelled(table.assign(label=None), judgements)
        drawn = draw_sample(
            judged,
            chosen_evaluators(judged, judgements, main, _covariates(covariates)),
            budget,
            level=level,
            strata=strata,
            seed=seed,
            phases=1 if one_phase else 2,
            annotators=annotators,
            overlap=_share(overlap),
            same_documents=same_documents,
        )
    drawn.write(out)
    pages: list[Path] = []
    if page is not None:
        from factaudit.estimate.page import write_pages

        pages = write_pages(drawn, table, page, seed)
    show_sample(drawn, out, pages)
    left = sum(drawn.plan.remaining(name) for name in drawn.plan.shares)
    answer({"out": out, "pages": pages, "drawn": drawn.plan.drawn[-1], "remaining": left})


def _covariates(names: Sequence[str]) -> list[str] | None:
    """None for all; an empty list for none."""
    return None if not names else [name for name in names if name != "none"]


def _share(text: str) -> float:
    try:
        share = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise UsageError(f"expected a share like 20% or 0.2, found {text!r}") from None
    if not 0 <= share <= 1:
        raise UsageError(f"expected a share from 0 to 1 (or 0% to 100%), found {text!r}")
    return share


COMMANDS = (plan, sample, labels, estimate)
