"""Error rates from few labels: ``plan`` how many, ``sample`` which, ``labels`` together, ``estimate`` the rates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from factaudit.cli.options import PATH, RUN_FOLDER, example
from factaudit.cli.show import show_agreement, show_estimates, show_plan, show_sample
from factaudit.cli.terminal import say
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
_SEED = click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
_RULE = click.option(
    "--rule", default="majority", show_default=True, help="How several annotators' labels become one; or one's name."
)
_LEVEL = click.option("--level", type=click.Choice(["claim", "response"]), default="claim", show_default=True)


@click.command(
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
@_RULE
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
@_SEED
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
    show_estimates(run_experiment(experiment, out, say=say).audits)


@click.command(
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
@_RULE
@_LEVEL
@click.option("--width", type=click.FloatRange(0, 1, min_open=True), default=0.1, show_default=True, help="To aim at.")
@click.option("--seconds-per-label", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True)
@click.option(
    "--budget", "budgets", type=click.IntRange(1), multiple=True, help="Labels to plan for.  [default: 50 to 800]"
)
@click.option("--out", type=PATH, help="Write the rows there: .csv, .jsonl or .parquet; a figure beside it.")
@_SEED
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

    from factaudit.estimate.plan import BUDGETS, Stated, plan_rates
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


@click.command(
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
@_RULE
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
@_SEED
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
    pages = []
    if page is not None:
        from factaudit.estimate.page import write_pages

        pages = write_pages(drawn, table, page, seed)
    show_sample(drawn, out, pages)


@click.command(
    short_help="Merge annotations: agreement, disagreements, labels.",
    epilog=example(
        "factaudit labels ann.csv ben.csv --claims claims.parquet --out labels.parquet --page disagree.html"
    ),
)
@click.argument("annotations", type=PATH, nargs=-1, required=True)
@click.option("--out", type=PATH, required=True, help="The annotations together: .parquet, .jsonl[.gz] or .csv[.gz].")
@click.option("--claims", type=PATH, help="The claims that they are of: checked, and needed for --page.")
@_RULE
@click.option("--grade", "grades", multiple=True, metavar="WORD=1|0|", help="What a grade means: partially=0.")
@click.option("--page", type=PATH, help="A page with what annotators disagree on, to adjudicate: .html.")
@_SEED
def labels(
    annotations: tuple[Path, ...],
    out: Path,
    claims: Path | None,
    rule: str,
    grades: Sequence[str],
    page: Path | None,
    seed: int,
) -> None:
    """Merge annotation files, say how far the annotators agree, and make labels of them by a rule."""
    from factaudit.estimate.agreement import agreement, disagreements
    from factaudit.files import spare
    from factaudit.tables import read_claims, suffix, write_table
    from factaudit.tables.annotations import judgements, labels_by, read_annotations

    suffix(out)
    spare([*annotations, *([claims] if claims else [])], out, page)
    if page is not None and claims is None:
        raise UsageError("--page shows the claims: name them with --claims")
    table = None if claims is None else read_claims(claims)
    together = read_annotations(*annotations, claims=table)
    judged = judgements(together, _grades(grades))
    made = labels_by(rule, judged)
    write_table(together, out)
    split = disagreements(judged)
    show_agreement(agreement(judged, seed=seed), made, rule, len(split))
    say(str(out))
    if page is not None and table is not None:
        from factaudit.estimate.page import write_page

        if not len(split):
            say("no disagreement: no page to write")
            return
        write_page(table[table["claim_id"].isin(split)], page, "adjudicator", seed)
        say(str(page))


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


def _grades(given: Sequence[str]) -> dict[str, int | None] | None:
    found: dict[str, int | None] = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        if not equals or value not in ("1", "0", ""):
            raise UsageError(f"expected GRADE=1, GRADE=0 or GRADE= (no label), found {text!r}")
        found[name] = int(value) if value else None
    return found or None


COMMANDS = (plan, sample, labels, estimate)
